// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual runs`: the measurements so far.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use jiff::civil::DateTime;
use punctual_model::run::State;
use punctual_report::csv::rows_csv;
use punctual_report::lists::Rows;
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
        if self.json || self.csv {
            let list = Rows::runs(&runs).json();
            if self.csv {
                output::print_exactly(&rows_csv(&list, "runs"))?;
            } else {
                output::print_json(&list)?;
            }
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
            given.map(|text| parse_time(option, text)).transpose()
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
        let before = self.before.as_ref().map(|name| id(store, name));
        let limit = self.limit.unwrap_or(usize::MAX);
        Ok(store.page(filter, before.transpose()?.as_deref(), limit)?)
    }
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

/// A time as the store has it: RFC 3339, UTC. A year or a month is its first part.
fn parse_time(option: &str, text: &str) -> Result<String, UsageError> {
    const FORM: &str = "%Y-%m-%dT%H:%M:%SZ";
    let begins = |rest: &str| format!("{text}{rest}").parse::<DateTime>().is_ok();
    // With an offset it is a moment; without one it is in UTC.
    if let Ok(moment) = text.parse::<Timestamp>() {
        Ok(moment.strftime(FORM).to_string())
    } else if let Ok(time) = text.parse::<DateTime>() {
        Ok(time.strftime(FORM).to_string())
    } else if begins("-01") || begins("-01-01") {
        Ok(text.to_owned())
    } else {
        Err(UsageError(format!(
            "{option}: expected a time such as 2026-05-01 or 2026-05-01T12:00 (UTC), found \
             \"{text}\""
        )))
    }
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
    fn times_are_in_utc_and_can_be_taken_from_the_list() {
        for (text, expected) in [
            ("2026", "2026"),
            ("2026-05", "2026-05"),
            ("2026-05-01", "2026-05-01T00:00:00Z"),
            ("2026-05-01T12:00", "2026-05-01T12:00:00Z"),
            ("2026-05-01 12:00:07", "2026-05-01T12:00:07Z"),
            ("2026-05-01T12:00:07Z", "2026-05-01T12:00:07Z"),
            ("2026-05-01T12:00+02:00", "2026-05-01T10:00:00Z"),
        ] {
            let parsed = parse_time("--from", text).map_err(|error| error.0);
            assert_eq!(parsed.as_deref(), Ok(expected), "{text}");
        }
        for text in ["yesterday", "2026-13-45", "2026-13", "12:00", ""] {
            let wrong = parse_time("--from", text).unwrap_err().to_string();
            let expected = format!(
                "--from: expected a time such as 2026-05-01 or 2026-05-01T12:00 (UTC), found \
                 \"{text}\""
            );
            assert_eq!(wrong, expected);
        }
    }
}
