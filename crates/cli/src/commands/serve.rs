// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual serve`: runs as web pages.

use std::fs;
use std::net::SocketAddr;

use anyhow::Result;
use clap::Args;
use punctual_runner::documents;
use punctual_serve::{Access, Options, serve};

use super::{StoreArgs, check_file};
use crate::output::say;
use crate::{ExitStatus, UsageError, interrupt};

const EXAMPLES: &str = "\
Examples:
  punctual serve  # http://127.0.0.1:8128/, for this machine
  punctual serve --db postgres://ann@db.example/punctual
  PUNCTUAL_TOKEN=$(cat token) punctual serve --listen 0.0.0.0:8128
  curl -H \"Authorization: Bearer $(cat token)\" \\
      http://lab:8128/api/runs?state=failed

Nothing can be changed through it. On a loopback address whoever is on this
machine may read; beyond it a token is asked for: a browser takes it as the
password of any user. The connection is not encrypted: beyond a network that you
trust, put a proxy with TLS before it. docs/serve.md lists all paths.
Ctrl-C ends it.";

/// Show runs to a team: web pages and JSON, to be read only
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Serve {
    /// Where to listen; with port 0, on a free one
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:8128",
        value_parser = parse_listen
    )]
    listen: SocketAddr,
    /// What must be known to read: at least 16 characters. Beyond a loopback address, one is
    /// made and printed where none is set
    // Not an option: others would see it in the list of processes.
    #[arg(skip = std::env::var("PUNCTUAL_TOKEN").ok())]
    token: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
}

/// The shortest token; a shorter one could be guessed.
const SHORTEST: usize = 16;

impl Serve {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        let place = self.store.place()?;
        check_file(&place)?;
        // Refused now, if it is none of this version; made, where a server has none.
        drop(self.store.open()?);
        let access = self.access()?;
        let cancel = interrupt::flag()?;
        let shown = place.to_string();
        let options = Options {
            place,
            listen: self.listen,
            access,
            documents: documents::all()?,
        };
        serve(options, cancel, |address| {
            say!("Runs of {shown} are at http://{address}/ until Ctrl-C");
        })?;
        Ok(ExitStatus::Done)
    }

    fn access(&self) -> Result<Access> {
        let token = self.token.as_deref().map(str::trim);
        match token.filter(|token| !token.is_empty()) {
            Some(token) if token.chars().count() < SHORTEST => {
                let expected = format!("PUNCTUAL_TOKEN: expected {SHORTEST} characters at least");
                Err(UsageError(expected).into())
            }
            Some(token) => Ok(Access::Token(token.to_owned())),
            None if self.listen.ip().is_loopback() => Ok(Access::Local),
            None => {
                let random = || fs::read_to_string("/proc/sys/kernel/random/uuid");
                let token = (random()? + &random()?).replace(['-', '\n'], "");
                say!("The token is {token} (PUNCTUAL_TOKEN sets one that stays)");
                Ok(Access::Token(token))
            }
        }
    }
}

fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let address = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    address
        .parse()
        .map_err(|_| "expected ADDRESS:PORT, such as 127.0.0.1:8128 or 0.0.0.0:8128".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_its_port_and_an_error_shows_one() {
        for (text, address) in [
            ("localhost:8128", "127.0.0.1:8128"),
            ("0.0.0.0:0", "0.0.0.0:0"),
            ("[::1]:8128", "[::1]:8128"),
        ] {
            assert_eq!(parse_listen(text).unwrap().to_string(), address);
        }
        for wrong in ["8128", "localhost", "lab:8128", "localhost:http"] {
            let expected = "expected ADDRESS:PORT, such as 127.0.0.1:8128 or 0.0.0.0:8128";
            assert_eq!(parse_listen(wrong), Err(expected.to_owned()), "{wrong}");
        }
    }
}
