// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual list`: the probes, loads, suites and kernels to measure with.

use anyhow::Result;
use clap::{Args, Subcommand};
use punctual_agent::probes;
use punctual_kernels::{Listed, State};
use punctual_model::plan::IDLE;
use punctual_report::lists::{self, KernelState, Named, Parameter, Rows};
use punctual_runner::{loads, pages, suites};

use super::catalog;
use crate::{ExitStatus, output};

/// List probes, loads, suites, kernels or checks
#[derive(Debug, Args)]
pub struct List {
    #[command(subcommand)]
    what: What,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Clone, Debug, Subcommand)]
pub enum What {
    /// What can be measured
    Probes {
        /// Only this probe, with its parameters
        name: Option<String>,
    },
    /// The stress that can run beside a probe
    Loads,
    /// Which probes run under which loads
    Suites,
    /// Kernels that can be measured
    Kernels,
    /// What `punctual doctor` asks a machine
    Checks,
}

impl List {
    /// Lists these.
    pub fn new(what: What, json: bool) -> Self {
        Self { what, json }
    }

    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        let rows = match &self.what {
            What::Probes { name: Some(name) } => return print_parameters(name, self.json),
            What::Probes { name: None } => probes(),
            What::Loads => load_rows()?,
            What::Suites => suite_rows()?,
            What::Kernels => kernels()?,
            What::Checks => checks(),
        };
        if self.json {
            let rows = match self.what {
                What::Probes { .. } => Rows::Probes(rows),
                What::Loads => Rows::Loads(rows),
                What::Suites => Rows::Suites(rows),
                What::Kernels => Rows::Kernels(rows),
                What::Checks => Rows::Checks(rows),
            };
            output::print_json(&rows.json())?;
        } else {
            let rows: Vec<_> = rows.into_iter().map(cells).collect();
            output::print(&output::columns(&rows, output::text_width()))?;
        }
        Ok(ExitStatus::Done)
    }
}

fn named(name: &str, summary: &str) -> Named {
    Named {
        name: name.to_owned(),
        summary: summary.to_owned(),
        parameters: None,
        state: None,
    }
}

fn cells(row: Named) -> Vec<String> {
    let state = row.state.map(|state| match state {
        KernelState::Cached { release } => release,
        KernelState::NotFetched => "(not fetched)".to_owned(),
        KernelState::Damaged { reason } => format!("(damaged: {reason})"),
    });
    [Some(row.name), state, Some(row.summary)]
        .into_iter()
        .flatten()
        .collect()
}

fn probes() -> Vec<Named> {
    probes::ALL
        .iter()
        .map(|probe| named(probe.name, probe.summary))
        .collect()
}

/// Prints a probe's parameters.
fn print_parameters(probe: &str, as_json: bool) -> Result<ExitStatus> {
    let parameters = lists::parameters(pages::of_probe(probe)?);
    let own = probes::ALL.iter().find(|own| own.name == probe);
    let summary = own.map_or("", |own| own.summary);
    if as_json {
        let own = Named {
            parameters: Some(parameters),
            ..named(probe, summary)
        };
        output::print_json(&Rows::Probes(vec![own]).json())?;
    } else {
        let width = output::text_width();
        output::print(&parameters_text(probe, summary, &parameters, width))?;
    }
    Ok(ExitStatus::Done)
}

/// A probe's parameters as a table, and the document that has the rest.
fn parameters_text(probe: &str, summary: &str, parameters: &[Parameter], width: usize) -> String {
    let head = ["NAME", "DEFAULT", "UNIT", "MEANING"].map(str::to_owned);
    let mut rows = vec![head.to_vec()];
    rows.extend(parameters.iter().map(|own| {
        let meaning = if own.range.is_empty() {
            own.meaning.clone()
        } else {
            format!("{}: {}", own.range, own.meaning)
        };
        vec![
            own.name.clone(),
            own.default.clone(),
            own.unit.clone(),
            meaning,
        ]
    }));
    let table = if parameters.is_empty() {
        "no parameters\n".to_owned()
    } else {
        output::columns(&rows, width)
    };
    let title = output::columns(&[vec![probe.to_owned(), summary.to_owned()]], width);
    let rest = format!("docs/method/probes/{probe}.md: what it measures, its path, its limits");
    format!("{title}\n{table}\n{rest}\n")
}

fn load_rows() -> Result<Vec<Named>> {
    let mut rows = vec![named(IDLE, "no load at all")];
    rows.extend(
        loads::all()?
            .iter()
            .map(|(name, load)| named(name, &load.summary)),
    );
    Ok(rows)
}

fn suite_rows() -> Result<Vec<Named>> {
    let suites = suites::all()?;
    Ok(suites
        .values()
        .map(|suite| named(&suite.name, &suite.summary))
        .collect())
}

fn checks() -> Vec<Named> {
    let all = punctual_doctor::ALL.into_iter().flatten();
    all.map(|check| named(check.id, check.wanted)).collect()
}

/// The kernels, each with its release if it is in the cache.
fn kernels() -> Result<Vec<Named>> {
    let row = |kernel: Listed| Named {
        state: Some(match kernel.state {
            State::Cached { release } => KernelState::Cached { release },
            State::NotFetched => KernelState::NotFetched,
            State::Damaged { reason } => KernelState::Damaged { reason },
        }),
        ..named(&kernel.id, &kernel.summary)
    };
    Ok(catalog()?.list()?.into_iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use punctual_model::suite::Suite;
    use punctual_report::text::WIDTH;

    use super::*;

    #[track_caller]
    fn fits(text: &str) {
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }

    /// A user's own suites are not read: their summaries may be longer.
    #[test]
    fn each_suite_is_one_line_of_a_terminal() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites");
        let row = |path: &Path| {
            let suite = Suite::parse(&fs::read_to_string(path).unwrap()).unwrap();
            cells(named(&suite.name, &suite.summary))
        };
        let files = fs::read_dir(folder).unwrap();
        let rows: Vec<_> = files.map(|file| row(&file.unwrap().path())).collect();
        assert!(rows.len() > 10);
        fits(&output::columns(&rows, usize::MAX));
    }

    #[test]
    fn each_probes_parameters_fit_a_terminal() {
        let of = |name: &str| {
            let parameters = lists::parameters(pages::of_probe(name).unwrap());
            let is_whole = |own: &Parameter| !own.name.is_empty() && !own.meaning.is_empty();
            assert!(parameters.iter().all(is_whole), "{name}");
            parameters_text(name, "late", &parameters, WIDTH)
        };
        probes::ALL.iter().for_each(|probe| fits(&of(probe.name)));
        let timer = of("timer");
        assert!(timer.starts_with("timer  late\n\nNAME "), "{timer}");
        assert!(timer.contains(" 10 to 10,000,000: the period\n"), "{timer}");
        let document = "\ndocs/method/probes/timer.md: what it measures, its path, its limits\n";
        assert!(timer.ends_with(document), "{timer}");
        assert!(of("footprint").contains("\nno parameters\n"));
    }
}
