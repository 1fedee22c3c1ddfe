// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measurement of a baseline, to be repeated.

use anyhow::Result;
use punctual_model::suite::{SubjectSpec, Suite};
use punctual_model::{Plan, Run};
use punctual_runner::suites;

use crate::UsageError;
use crate::commands::measure::what::WhatArgs;

/// The suite of a baseline, as in its runs, with the words that asked for it, and the plan. Steps
/// and loads are those of the plan, the guest is that of their machine. Its subjects are those of
/// the baseline, if no others are named.
pub fn of(there: &[Run], is_of_all_subjects: bool) -> Result<(Suite, WhatArgs, Plan)> {
    let run = &there[0];
    let plan = run
        .parsed_plan()
        .map_err(|why| UsageError(format!("{}: {why}: name a suite", run.id)))?;
    let what = WhatArgs::of_words(&run.request.what);
    let known = what.as_ref().and_then(|what| {
        let suite = if run.is_virtual() {
            what.suite_on_guest()
        } else {
            what.suite_on_host()
        };
        suite.ok()
    });
    let what = what.unwrap_or_else(|| WhatArgs::of_suite(&run.suite));
    // What the guest is given besides is only in the suite.
    let known = known.or_else(|| suites::find(&run.suite).ok());
    let mut suite = match known {
        Some(suite) => suite,
        None => bare(run)?,
    };
    suite.name.clone_from(&run.suite);
    suite.steps.clone_from(&plan.steps);
    suite.loads.extend(plan.loads.clone());
    if let Some(machine) = run.machine.as_virtual() {
        suite.memory_mib = machine.memory_mib;
        suite.cpus = machine.cpus.try_into().unwrap_or(suite.cpus);
    }
    if is_of_all_subjects && run.is_virtual() {
        suite.subjects = subjects(there);
    }
    Ok((suite, what, plan))
}

/// A suite of which only the plan is left.
fn bare(run: &Run) -> Result<Suite> {
    let text = format!(
        "summary = \"\"\nname = {:?}\n[[step]]\nprobe = \"timer\"\n",
        run.suite
    );
    Ok(toml::from_str(&text)?)
}

fn subjects(there: &[Run]) -> Vec<SubjectSpec> {
    let mut subjects: Vec<SubjectSpec> = Vec::new();
    for run in there {
        if !subjects.iter().any(|known| known.name == run.subject.name) {
            subjects.push(SubjectSpec {
                name: run.subject.name.clone(),
                kernel: run.subject.kernel.clone(),
                boot: run.subject.boot.clone(),
            });
        }
    }
    subjects
}
