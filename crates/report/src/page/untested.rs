// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limits of a verdict's scope: its readers must not take it for more.

use maud::{Markup, html};
use punctual_agent::probes;
use punctual_judge::Judgement;
use punctual_model::Plan;
use punctual_model::run::Run;

use crate::matrix::{Matrix, distinct};
use crate::text::{list, thousands};

/// Lists everything that was not tested, or not judged, a line each.
pub fn untested(runs: &[Run], judgement: Option<&Judgement>) -> Markup {
    let matrix = Matrix::new(runs);
    let mut lines = benches(runs);
    lines.extend(judgement.and_then(|judgement| not_judged(&matrix, judgement)));
    lines.extend(smaller(runs));
    lines.extend(other_probes(runs));
    lines.extend(loads(runs));
    let seeds: Vec<String> = matrix.seeds().iter().map(ToString::to_string).collect();
    lines.push(format!(
        "Other interleavings than those of {}.",
        if seeds.len() == 1 {
            format!("seed {}", seeds[0])
        } else {
            format!("the seeds {}", seeds.join(", "))
        }
    ));
    html! { ul.plain { @for line in &lines { li { (line) } } } }
}

fn benches(runs: &[Run]) -> Vec<String> {
    let mut lines = Vec::new();
    if runs.iter().any(Run::is_virtual) {
        lines.push(
            "The virtual bench has neither caches nor firmware nor devices that interrupt by \
             themselves: these results do not tell microseconds of real hardware."
                .to_owned(),
        );
    }
    let cpus = |run: &Run| {
        run.machine
            .as_virtual()
            .is_some_and(|machine| machine.cpus == 1)
    };
    if runs.iter().any(cpus) {
        lines.push("One CPU: effects between CPUs were not measured.".to_owned());
    }
    if !runs.iter().all(Run::is_virtual) {
        lines.push("A host's times are those of one machine, as it was.".to_owned());
    }
    lines
}

fn not_judged(matrix: &Matrix<'_>, judgement: &Judgement) -> Option<String> {
    let is_judged = |probe: &str, load: &str, label: &str| {
        judgement.answers.iter().any(|answer| {
            let key = &answer.key;
            key.probe == probe && key.load == load && key.label() == label
        })
    };
    let rows = matrix.rows.iter();
    let rows = rows.filter(|row| !is_judged(&row.probe, &row.load, &row.label()));
    let titles: Vec<String> = rows.map(crate::matrix::Measurement::title).collect();
    let none = titles.is_empty();
    (!none).then(|| format!("Measured, and in no limit: {}.", titles.join("; ")))
}

/// Steps that took fewer samples than the document that they repeat.
fn smaller(runs: &[Run]) -> Vec<String> {
    let steps = plans(runs).into_iter().flat_map(|plan| plan.steps);
    let lines = steps.filter_map(|step| {
        let took = step.params.get("samples")?.as_integer()?.unsigned_abs();
        let full = step.full.filter(|full| *full > took)?;
        let (probe, load) = (&step.probe, &step.load);
        let [took, full] = [took, full].map(thousands);
        Some(format!(
            "{probe}, {load}: {took} samples in each run, where the document took {full}."
        ))
    });
    distinct(lines)
}

fn other_probes(runs: &[Run]) -> Option<String> {
    let plans = plans(runs);
    let measured = |name: &str| {
        let mut steps = plans.iter().flat_map(|plan| &plan.steps);
        steps.any(|step| step.probe == name && !step.skip)
    };
    let others = probes::ALL.iter().map(|probe| probe.name);
    let others: Vec<String> = others
        .filter(|name| !measured(name))
        .map(str::to_owned)
        .collect();
    let none = others.is_empty();
    (!none).then(|| format!("What these probes measure: {}.", list(&others)))
}

fn loads(runs: &[Run]) -> Option<String> {
    let plans = plans(runs);
    let steps = plans.iter().flat_map(|plan| &plan.steps);
    let loads: Vec<String> = distinct(steps.map(|step| step.load.clone()));
    let none = loads.is_empty();
    (!none).then(|| format!("Other loads than {}.", list(&loads)))
}

fn plans(runs: &[Run]) -> Vec<Plan> {
    let plans = runs.iter().map(|run| toml::from_str(&run.plan));
    plans.filter_map(Result::ok).collect()
}
