// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual runs`: the measurements so far.

use anyhow::Result;
use clap::Args;
use punctual_model::run::State;
use punctual_report::lists::{Rows, runs_csv};
use punctual_report::text::{clean, columns_of, cut};
use punctual_runner::run_names::number;
use punctual_runner::times;
use punctual_store::{Filter, Store, Summary};

use super::{StoreArgs, id, no_runs};
use crate::hints::store_option;
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
            let of = store_option();
            let without = if of.is_empty() {
                "without options"
            } else {
                "alone"
            };
            say!("no run matches; `punctual runs{of}` {without} lists all");
        } else if runs.is_empty() {
            say!("{}", no_runs());
        } else {
            let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
            rows.extend(runs.iter().map(row));
            shorten_subjects(&mut rows, output::text_width());
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

/// The heads of the columns.
const HEAD: [&str; 7] = [
    "RUN", "STARTED", "SUITE", "SUBJECT", "SEED", "STATE", "DIGEST",
];

/// The number of the column of subjects.
const SUBJECT: usize = 3;

/// Cuts the subjects in their middle to bring the rows to `width` columns, but none to fewer than
/// [`LEAST_SUBJECT`].
fn shorten_subjects(rows: &mut [Vec<String>], width: usize) {
    let widest = |column: usize| {
        let cells = rows.iter().map(|row| columns_of(&row[column]));
        cells.max().unwrap_or(0)
    };
    let columns = rows.first().map_or(0, Vec::len);
    let others = (0..columns).filter(|column| *column != SUBJECT);
    let taken: usize = others.map(|column| widest(column) + 2).sum();
    let room = width.saturating_sub(taken).max(LEAST_SUBJECT);
    for row in rows {
        row[SUBJECT] = cut(&clean(&row[SUBJECT]), room);
    }
}

/// The least columns of a subject: shorter names would no longer tell subjects apart.
const LEAST_SUBJECT: usize = 28;

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

    /// The head, and a row of each of these subjects.
    fn rows(subjects: &[&str]) -> Vec<Vec<String>> {
        let row = |&subject: &&str| {
            let cells = [
                "r1",
                "2026-05-01 00:00:00",
                "cyclictest",
                subject,
                "0",
                "finished",
                "0123456789ab",
            ];
            cells.map(str::to_owned).to_vec()
        };
        let head = HEAD.map(str::to_owned).to_vec();
        [vec![head], subjects.iter().map(row).collect()].concat()
    }

    #[test]
    fn a_long_subject_is_cut_where_the_terminal_has_no_room_for_it() {
        let whole = rows(&["board-a-with-a-kernel-of-its-own (board-a.txt 01234567)"]);
        let mut rows = whole.clone();
        shorten_subjects(&mut rows, usize::MAX);
        assert_eq!(rows, whole);
        shorten_subjects(&mut rows, 100);
        let text = output::columns(&rows, usize::MAX);
        let longest = text.lines().map(columns_of).max();
        assert_eq!(longest, Some(100), "{text}");
        assert!(text.contains("board-a") && text.contains("4567)"), "{text}");
    }

    #[test]
    fn subjects_can_be_told_apart_on_a_narrow_terminal() {
        let names = [
            "debian-6.1-arm64",
            "debian-6.12-arm64",
            "debian-6.12-rt-arm64",
        ];
        let mut rows = rows(&names);
        shorten_subjects(&mut rows, 80);
        let cells = rows[1..].iter().map(|row| row[SUBJECT].as_str());
        assert_eq!(cells.collect::<Vec<_>>(), names);
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
