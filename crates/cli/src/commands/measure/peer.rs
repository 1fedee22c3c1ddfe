// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--peer`: another machine at the other end of the probe `packet`.
//!
//! The plan, and so the run, has the peer's address. By which way it is made to answer is part of
//! the request, as the bench is: a suite says what is measured, not where.

use anyhow::Result;
use punctual_bench::ssh::Peer;
use punctual_model::suite::Suite;
use punctual_runner::systems::{self, PreparedSystem};

use super::MeasureArgs;
use crate::{UsageError, interrupt};

/// The probe that has the parameter.
const PROBE: &str = "packet";
const PARAMETER: &str = "peer";

impl MeasureArgs {
    /// The suite, its frames going to the peer, if one is named, where a step says nothing else.
    pub(super) fn to_peer(&self, mut suite: Suite) -> Result<Suite> {
        let Some(peer) = &self.peer else {
            return Ok(suite);
        };
        let address = peer.address()?.to_string();
        let mut is_used = false;
        for step in suite.steps.iter_mut().filter(|step| step.probe == PROBE) {
            let own = step.params.entry(PARAMETER);
            let own = own.or_insert_with(|| address.clone().into());
            is_used |= own.as_str() == Some(address.as_str());
        }
        if !is_used {
            let wrong = format!(
                "--peer {peer}: expected a step with the probe {PROBE} that names no other peer, \
                 found none: --probe {PROBE} is one"
            );
            return Err(UsageError(wrong).into());
        }
        Ok(suite)
    }
}

/// Systems whose frames the peer answers as long as they exist.
pub(super) fn answered(prepared: Vec<PreparedSystem>, peer: &Peer) -> Result<Vec<PreparedSystem>> {
    // From here on Ctrl-C ends the echo.
    let cancel = interrupt::flag()?;
    let answered = prepared
        .into_iter()
        .map(|one| systems::answered(one, peer, cancel));
    Ok(answered.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::StoreArgs;

    fn args(peer: &str) -> MeasureArgs {
        let store = StoreArgs { db: None };
        let mut args = MeasureArgs::of_subjects(Vec::new(), Vec::new(), true, &store);
        args.peer = Some(peer.parse().unwrap());
        args
    }

    /// The steps' peers.
    fn peers(args: &MeasureArgs, steps: &str) -> Result<Vec<Option<String>>> {
        let text = format!("name = \"own\"\nsummary = \"\"\n{steps}");
        let suite = args.to_peer(toml::from_str(&text).unwrap())?;
        let peers = suite.steps.iter().map(|step| {
            let peer = step.params.get("peer")?.as_str();
            peer.map(str::to_owned)
        });
        Ok(peers.collect())
    }

    const PACKET: &str = "[[step]]\nprobe = \"packet\"\nkind = \"udp\"\n";
    const TIMER: &str = "[[step]]\nprobe = \"timer\"\n";
    const OTHER: &str = "[[step]]\nprobe = \"packet\"\npeer = \"192.0.2.9\"\n";

    #[test]
    fn frames_go_to_the_peer_where_a_step_names_none() {
        let args = args("ssh:root@board:192.0.2.7");
        let own = || Some("192.0.2.7".to_owned());
        let found = peers(&args, &[PACKET, TIMER, OTHER].concat()).unwrap();
        assert_eq!(found, [own(), None, Some("192.0.2.9".to_owned())]);
        // What a baseline measured names it already.
        let same = OTHER.replace("192.0.2.9", "192.0.2.7");
        assert_eq!(peers(&args, &same).unwrap(), [own()]);
    }

    #[test]
    fn a_peer_that_no_step_needs_is_refused() {
        let args = args("ssh:board:192.0.2.7");
        for steps in [TIMER, OTHER] {
            let error = peers(&args, steps).unwrap_err();
            assert!(error.is::<UsageError>(), "{error}");
            let told = "--peer ssh:board:192.0.2.7: expected a step with the probe packet";
            assert!(error.to_string().starts_with(told), "{error}");
        }
    }
}
