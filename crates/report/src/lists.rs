// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists as JSON: what there is to measure with, and what was measured.

use punctual_store::{CampaignSummary, Summary};
use serde::Serialize;
use serde_json::{Value, json};

use crate::csv::rows_csv;

/// The form's name and version; `docs/schema/list-1.json` describes it.
const LIST: &str = "punctual.list/1";
/// The schema of an error; `docs/schema/error-1.json` describes it.
const ERROR: &str = "punctual.error/1";

/// The bench of runs in virtual time.
const VIRTUAL: &str = "virtual";

/// A list of things of one kind. New fields may be added to version 1; none is removed or changes
/// its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct List<'a> {
    #[cfg_attr(test, schemars(extend("const" = LIST)))]
    schema: &'static str,
    #[serde(flatten)]
    rows: Rows<'a>,
    /// The value of `before` that lists the runs behind these, or null if there are none. Only the
    /// pages of `punctual serve` have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[expect(clippy::option_option, reason = "null differs from absence")]
    next: Option<Option<&'a str>>,
}

/// The things in a list, by their kind.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Rows<'a> {
    /// All probes.
    Probes(Vec<Named>),
    /// All loads.
    Loads(Vec<Named>),
    /// All suites.
    Suites(Vec<Named>),
    /// All kernels, each with its state in the cache.
    Kernels(Vec<Named>),
    /// The checks of `punctual doctor`.
    Checks(Vec<Named>),
    /// Runs, the newest first.
    Runs(Vec<Run<'a>>),
    /// All baselines.
    Baselines(Vec<Baseline<'a>>),
    /// All campaigns, the newest first.
    Campaigns(Vec<Campaign<'a>>),
}

/// A thing that can be named on a command line or in a suite.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Named {
    /// Its name.
    pub name: String,
    /// Its description in one line.
    pub summary: String,
    /// The parameters of a probe that was asked for by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Vec<Parameter>>,
    /// The state of a kernel.
    #[serde(flatten)]
    pub state: Option<KernelState>,
}

/// A parameter of a probe, in the words of the probe's document.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its default, as TOML; `none` if it has none, `required` if it must be given.
    pub default: String,
    /// Its unit; empty if it has none.
    pub unit: String,
    /// Its range, or the values that it may have; empty if the document names none.
    pub range: String,
    /// Its meaning.
    pub meaning: String,
}

/// The state of a kernel in the cache.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum KernelState {
    /// It is in the cache.
    Cached {
        /// The output of `uname -r` there.
        release: String,
    },
    /// It can be fetched.
    NotFetched,
    /// It is in the cache, but its record cannot be understood.
    Damaged {
        /// The reason, and advice.
        reason: String,
    },
}

/// A run in one line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Run<'a> {
    /// Its id.
    #[cfg_attr(test, schemars(regex(pattern = "^r[0-9]+$")))]
    id: &'a str,
    /// The suite's name.
    suite: &'a str,
    /// The subject that was measured.
    subject: Subject<'a>,
    /// The seed.
    seed: u64,
    /// Its state.
    #[cfg_attr(test, schemars(extend("enum" = ["finished", "interrupted", "failed", "running"])))]
    state: &'static str,
    /// The time at which it began, RFC 3339, UTC.
    started: &'a str,
    /// The time at which it ended, RFC 3339, UTC.
    finished: Option<&'a str>,
    /// The digest over its measurements. Equal digests mean equal behaviour. It is null unless the
    /// run finished and something was measured.
    digest: Option<&'a str>,
    /// The number of recordings it has.
    recordings: usize,
    /// The name of the machine that wrote it.
    host: &'a str,
}

/// The subject of a run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Subject<'a> {
    /// Its name in tables.
    name: &'a str,
    /// The kernel's id on the workstation.
    kernel: &'a str,
    /// The boot arguments that were requested.
    boot: &'a str,
    /// The bench on which it ran.
    bench: &'a str,
}

/// A baseline: runs that others are compared with.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Baseline<'a> {
    /// Its name.
    name: &'a str,
    /// The ids of its runs.
    #[cfg_attr(test, schemars(inner(regex(pattern = "^r[0-9]+$"))))]
    runs: &'a [String],
}

/// A campaign in one line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Campaign<'a> {
    /// Its id.
    #[cfg_attr(test, schemars(regex(pattern = "^c[0-9]+$")))]
    id: &'a str,
    /// Its name.
    name: &'a str,
    /// One line that states its purpose.
    summary: &'a str,
    /// The time at which it was first begun, RFC 3339, UTC.
    begun: &'a str,
    /// The time at which it ended, RFC 3339, UTC; null if its process never reported an end.
    ended: Option<&'a str>,
    /// True if a process is working on it.
    under_way: bool,
    /// The machine of the process that last worked on it.
    host: &'a str,
    /// The number of runs that it asks for.
    runs: usize,
    /// The number of these runs that are finished.
    finished: usize,
}

/// The reason why there is no answer. New fields may be added to version 1; none is removed or
/// changes its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Failure<'a> {
    #[cfg_attr(test, schemars(extend("const" = ERROR)))]
    schema: &'static str,
    /// The reason, for people.
    error: &'a str,
}

impl<'a> Rows<'a> {
    /// Runs of a store.
    pub fn runs(runs: &'a [Summary]) -> Self {
        Self::Runs(runs.iter().map(Run::of).collect())
    }

    /// Baselines of a store: names, and the ids of runs.
    pub fn baselines(baselines: &'a [(String, Vec<String>)]) -> Self {
        let baseline = |(name, runs): &'a (String, Vec<String>)| Baseline { name, runs };
        Self::Baselines(baselines.iter().map(baseline).collect())
    }

    /// Campaigns of a store.
    pub fn campaigns(campaigns: &'a [CampaignSummary]) -> Self {
        Self::Campaigns(campaigns.iter().map(Campaign::of).collect())
    }

    /// The whole list.
    pub fn json(self) -> Value {
        json!(List {
            schema: LIST,
            rows: self,
            next: None,
        })
    }

    /// A page of the list, and the value of `before` for the next page.
    pub fn page(self, next: Option<&str>) -> Value {
        json!(List {
            schema: LIST,
            rows: self,
            next: Some(next),
        })
    }
}

/// Runs as a table, with the names that JSON has. In real time a seed decides nothing: there it is
/// empty.
pub fn runs_csv(runs: &[Summary]) -> String {
    let mut list = Rows::runs(runs).json();
    let rows = list["runs"].as_array_mut().into_iter().flatten();
    for (row, run) in rows.zip(runs) {
        if run.subject.bench != VIRTUAL {
            row["seed"] = Value::Null;
        }
    }
    rows_csv(&list, "runs")
}

impl<'a> Run<'a> {
    fn of(run: &'a Summary) -> Self {
        Self {
            id: &run.id,
            suite: &run.suite,
            subject: Subject {
                name: &run.subject.name,
                kernel: &run.subject.kernel,
                boot: &run.subject.boot,
                bench: &run.subject.bench,
            },
            seed: run.seed,
            state: run.state.name(),
            started: &run.started,
            finished: run.finished.as_deref(),
            digest: run.digest.as_deref(),
            recordings: run.recordings,
            host: &run.host,
        }
    }
}

impl<'a> Campaign<'a> {
    fn of(campaign: &'a CampaignSummary) -> Self {
        Self {
            id: &campaign.id,
            name: &campaign.asked.name,
            summary: &campaign.asked.summary,
            begun: &campaign.begun,
            ended: campaign.ended.as_deref(),
            under_way: campaign.is_under_way,
            host: &campaign.host,
            runs: campaign.runs,
            finished: campaign.finished,
        }
    }
}

/// The parameters of a probe, by the table in its document.
pub fn parameters(page: &str) -> Vec<Parameter> {
    let section = page.lines().skip_while(|line| *line != "## Parameters");
    let section = section.skip(1).take_while(|line| !line.starts_with("## "));
    let table = section.skip_while(|line| !line.starts_with("| name |"));
    let rows = table.skip(2).take_while(|line| line.starts_with('|'));
    rows.map(parameter).collect()
}

/// A row of that table.
fn parameter(row: &str) -> Parameter {
    let mut cells = row.trim_matches('|').split('|').map(plain);
    let mut next = || cells.next().unwrap_or_default();
    Parameter {
        name: next(),
        default: next(),
        unit: next(),
        range: next(),
        meaning: next(),
    }
}

/// A cell of a table as text: code without its marks, links as their words.
fn plain(cell: &str) -> String {
    let mut text = cell.trim().replace('`', "");
    while let Some(middle) = text.find("](") {
        let open = text[..middle].rfind('[');
        let close = text[middle..].find(')');
        let (Some(open), Some(close)) = (open, close) else {
            break;
        };
        text.replace_range(middle..=middle + close, "");
        text.replace_range(open..=open, "");
    }
    text
}

/// The answer to a request that fails.
pub fn error(error: &str) -> Value {
    json!(Failure {
        schema: ERROR,
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{assert_is_of, check};

    #[test]
    fn the_schemas_are_what_the_types_say() {
        assert_is_of::<List<'_>>(
            "list-1.json",
            "Lists: what `punctual list`, `punctual runs` and `punctual baseline list` print with \
             `--json`, and what `punctual serve` gives",
        );
        assert_is_of::<Failure<'_>>(
            "error-1.json",
            "Why there is no answer: what `punctual serve` gives",
        );
    }

    #[test]
    fn a_kernel_has_its_state_and_the_last_page_a_next_one_that_is_null() {
        let kernel = |state| Named {
            name: "rt".into(),
            summary: "stock".into(),
            parameters: None,
            state,
        };
        let release = "6.12".into();
        let states = [
            None,
            Some(KernelState::NotFetched),
            Some(KernelState::Cached { release }),
        ];
        let kernels = Rows::Kernels(states.map(kernel).into()).json();
        let expected = json!({
            "schema": "punctual.list/1",
            "kernels": [
                { "name": "rt", "summary": "stock" },
                { "name": "rt", "summary": "stock", "state": "not-fetched" },
                { "name": "rt", "summary": "stock", "state": "cached", "release": "6.12" },
            ],
        });
        assert_eq!(kernels, expected);
        let last = Rows::runs(&[]).page(None);
        let expected = json!({ "schema": "punctual.list/1", "runs": [], "next": null });
        assert_eq!(last, expected);
        for list in [kernels, last] {
            let text = include_str!("../../../docs/schema/list-1.json");
            check("list-1.json", text, &list).unwrap();
        }
    }

    #[test]
    fn a_run_in_real_time_has_no_seed_in_a_table() {
        let runs = ["virtual", "host"].map(|bench| Summary {
            id: "r1".into(),
            suite: "demo".into(),
            subject: punctual_model::Subject {
                name: "rt".into(),
                kernel: "6.12-rt".into(),
                boot: String::new(),
                bench: bench.into(),
            },
            seed: 7,
            state: punctual_model::run::State::Finished,
            started: "2026-01-01T00:00:00Z".into(),
            finished: None,
            digest: None,
            recordings: 1,
            host: "here".into(),
        });
        let table = runs_csv(&runs);
        let mut lines = table
            .lines()
            .map(|line| line.split(',').collect::<Vec<_>>());
        let names = lines.next().unwrap();
        let place = names.iter().position(|name| *name == "runs.seed").unwrap();
        let seeds: Vec<&str> = lines.map(|line| line[place]).collect();
        assert_eq!(seeds, ["7", ""]);
        assert_eq!(Rows::runs(&runs).json()["runs"][1]["seed"], 7);
    }

    #[test]
    fn parameters_are_those_of_the_first_table_in_plain_words() {
        let page = "# Probe `x`\n\n## Parameters\n\n\
            | name | default | unit | range | what it is |\n|---|---|---|---|---|\n\
            | `by` | `[\"a\", \"b\"]` | | `a`, `b` | [how it](#x) is `woken` |\n\
            | `stall` | none | | [Stalls](../stalls.md), `hpet` only | a stall |\n\n\
            | name | worst for |\n|---|---|\n| `a` | 6.1 |\n\n## Limits\n\nNone.\n";
        let found = parameters(page);
        let told = found.iter().map(|own| {
            let Parameter {
                name,
                default,
                unit,
                range,
                meaning,
            } = own;
            [name, default, unit, range, meaning].map(String::as_str)
        });
        let expected = [
            ["by", "[\"a\", \"b\"]", "", "a, b", "how it is woken"],
            ["stall", "none", "", "Stalls, hpet only", "a stall"],
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        let none = page.replace("| name |", "| order |");
        assert!(parameters(&none).is_empty());
        let probe = Named {
            name: "x".into(),
            summary: "y".into(),
            parameters: Some(found),
            state: None,
        };
        let list = Rows::Probes(vec![probe]).json();
        assert_eq!(list["probes"][0]["parameters"][1]["default"], "none");
        let text = include_str!("../../../docs/schema/list-1.json");
        check("list-1.json", text, &list).unwrap();
    }
}
