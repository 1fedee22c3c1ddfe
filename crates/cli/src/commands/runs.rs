// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual runs`: the measurements so far.

use anyhow::Result;
use clap::Args;
use punctual_model::run::State;
use punctual_report::lists::{Rows, runs_csv};
use punctual_runner::run_names::number;
use punctual_runner::times;
use punctual_store::{Filter, Store, Summary};

use super::{NO_RUNS, StoreArgs, id};
use crate::output::say;
use crate::{ExitStatus, UsageError, output};

const EXAMPLES: &str = "\
Examples:
  punctual runs --limit 20
  punctual runs --kernel debian-6.12-rt --state failed
  punctual runs --suite demo --from 2026-05-01 --until 2026-06-01 --json";

/// List all runs, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Runs {
    /// Only runs of this suite
    #[arg(long, value_name = "NAME")]
    suite: Option<String>,
    /// Only runs of this subject
    #[arg(long, value_name = "NAME")]
    subject: Option<String>,
    /// Only runs of this kernel
    #[arg(long, value_name = "ID")]
    kernel: Option<String>,
    /// Only runs in virtual time, or only those on real machines: this one, and boards
    #[arg(long, value_name = "BENCH", value_parser = ["virtual", "host"])]
    bench: Option<String>,
    /// Only runs that were written on this machine
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Only runs with a recording of this probe
    #[arg(long, value_name = "NAME")]
    probe: Option<String>,
    /// Only runs in this state: finished, failed, interrupted or running
    #[arg(long, value_name = "STATE", value_parser = parse_state)]
    state: Option<State>,
    /// Only runs begun then or later (2026-05-01, 2026-05-01T12:00, UTC)
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only runs begun before
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// At most so many
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// Only runs before this one
    #[arg(long, value_name = "RUN")]
    before: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print comma-separated values, with the names that JSON has
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Runs {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        let filter = self.filter()?;
        // That nothing was measured yet is no mistake here, as long as no store is named.
        let (runs, has_others) = if self.store.is_new()? {
            (Vec::new(), false)
        } else {
            let store = self.store.open()?;
            let runs = self.list(&store, &filter)?;
            let has_others = runs.is_empty() && store.newest()?.is_some();
            (runs, has_others)
        };
        if self.csv {
            output::print_exactly(&runs_csv(&runs))?;
        } else if self.json {
            output::print_json(&Rows::runs(&runs).json())?;
        } else if has_others {
            say!("no run matches; `punctual runs` without options lists all");
        } else if runs.is_empty() {
            say!("{NO_RUNS}");
        } else {
            let head = [
                "RUN", "STARTED", "SUITE", "SUBJECT", "SEED", "STATE", "DIGEST",
            ];
            let mut rows = vec![head.map(str::to_owned).to_vec()];
            rows.extend(runs.iter().map(row));
            output::print(&output::columns(&rows, usize::MAX))?;
        }
        Ok(ExitStatus::Done)
    }
}

impl Runs {
    fn filter(&self) -> Result<Filter, UsageError> {
        let time = |option: &str, given: &Option<String>| {
            let given = given.as_deref();
            let parsed = given.map(|text| times::parse(option, text)).transpose();
            parsed.map_err(UsageError)
        };
        Ok(Filter {
            suite: self.suite.clone(),
            subject: self.subject.clone(),
            kernel: self.kernel.clone(),
            bench: self.bench.clone(),
            host: self.host.clone(),
            probe: self.probe.clone(),
            state: self.state,
            from: time("--from", &self.from)?,
            until: time("--until", &self.until)?,
        })
    }

    fn list(&self, store: &Store, filter: &Filter) -> Result<Vec<Summary>> {
        let before = self.before.as_ref().map(|name| before(store, name));
        let limit = self.limit.unwrap_or(usize::MAX);
        Ok(store.page(filter, before.transpose()?.as_deref(), limit)?)
    }
}

/// The id of the run before which a list goes on. It may be one that was removed.
fn before(store: &Store, name: &str) -> Result<String> {
    let id = id(store, name)?;
    if number(&id).is_none() {
        let expected = format!("--before: expected a run such as r3, found \"{name}\"");
        return Err(UsageError(expected).into());
    }
    Ok(id)
}

/// The states, in the order in which help and errors name them.
const STATES: [State; 4] = [
    State::Finished,
    State::Failed,
    State::Interrupted,
    State::Running,
];

fn parse_state(text: &str) -> Result<State, String> {
    let found = STATES.into_iter().find(|state| state.name() == text);
    found.ok_or_else(|| {
        let [first @ .., last] = STATES.map(State::name);
        let first = first.join(", ");
        format!("expected {first} or {last}, found \"{text}\"")
    })
}

fn row(run: &Summary) -> Vec<String> {
    let digest = run.digest.as_deref().unwrap_or("-");
    vec![
        run.id.clone(),
        run.started
            .replace('T', " ")
            .trim_end_matches('Z')
            .to_owned(),
        run.suite.clone(),
        run.subject.name.clone(),
        run.seed.to_string(),
        run.state.to_string(),
        digest.chars().take(12).collect(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_is_known_by_its_name() {
        for state in STATES {
            assert_eq!(parse_state(state.name()), Ok(state));
        }
        let wrong = "expected finished, failed, interrupted or running, found \"done\"";
        assert_eq!(parse_state("done"), Err(wrong.to_owned()));
    }

    #[test]
    fn a_list_goes_on_before_a_run_and_before_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("runs.db")).unwrap();
        for (name, id) in [("r3", "r3"), ("3", "r3"), ("R3", "r3")] {
            assert_eq!(before(&store, name).unwrap(), id);
        }
        let error = before(&store, "nope").unwrap_err();
        let expected = "--before: expected a run such as r3, found \"nope\"";
        assert_eq!(error.to_string(), expected);
        assert!(error.is::<UsageError>());
    }
}
