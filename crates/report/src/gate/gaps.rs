// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gaps in measurement, which no digest and no figure shows.

use punctual_judge::{Independent, beyond_the_kernel, fate, short_of_step};
use punctual_model::run::State;
use punctual_model::{Plan, Run};

use super::mends::{Mend, without};
use super::{Row, Standing};
use crate::matrix::Measurement;

/// A step that was not measured, or not completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The step's number in the plan, from 0; `None` of a plan that cannot be read.
    pub step: Option<u32>,
    /// The probe.
    pub probe: String,
    /// The load.
    pub load: String,
    /// The reason.
    pub why: String,
}

/// Returns the gaps of a run against its plan, each step answering for itself.
pub fn gaps(run: &Run) -> Vec<Gap> {
    let whole = |why: String| Gap {
        step: None,
        probe: "all steps".to_owned(),
        load: String::new(),
        why,
    };
    let plan = match run.parsed_plan() {
        Ok(plan) => plan,
        Err(_) if without(Mend::Unreadable) => return Vec::new(),
        Err(why) => return vec![whole(why)],
    };
    let steps = plan.steps.iter().zip(0..).filter(|(step, _)| !step.skip);
    let gap = |(step, number): (&punctual_model::plan::Step, u32)| {
        let mut unsupported = run.unsupported.iter();
        let unsupported = unsupported.find(|one| one.step == number);
        if without(Mend::Steps) && !run.recordings.is_empty() {
            return None;
        }
        let own = run.recordings.iter().filter(|one| one.key.step == number);
        let mut own = own.map(|one| one.is_hashed() || !one.findings.is_empty());
        let why = match unsupported {
            Some(one) => format!("unsupported: {}", one.reason),
            None if run.state != State::Finished => fate(run),
            None if !own.any(|is_measured| is_measured) => "nothing was measured".to_owned(),
            None => part(run, &plan, number)?,
        };
        Some(Gap {
            step: Some(number),
            probe: step.probe.clone(),
            load: step.load.clone(),
            why,
        })
    };
    let mut gaps: Vec<Gap> = steps.filter_map(gap).collect();
    let is_planned = |step: u32| (step as usize) < plan.steps.len();
    let strangers = run.unsupported.iter().filter(|one| !is_planned(one.step));
    gaps.extend(strangers.map(|one| Gap {
        step: Some(one.step),
        probe: one.probe.clone(),
        load: one.load.clone(),
        why: format!("unsupported: {}", one.reason),
    }));
    gaps.extend(
        beyond_the_kernel(run)
            .filter(|_| !without(Mend::Hypervisor))
            .map(whole),
    );
    if plan.steps.iter().all(|step| step.skip) {
        gaps.push(whole("its plan has no step".to_owned()));
    }
    gaps
}

/// Describes a step that was ended before it had all its samples, lacks samples or CPUs, or whose
/// load did nothing.
fn part(run: &Run, plan: &Plan, step: u32) -> Option<String> {
    if without(Mend::Interrupted) {
        return None;
    }
    let mut own = run.recordings.iter().filter(|one| one.key.step == step);
    own.find_map(|one| short_of_step(run, plan, one))
}

/// Returns the reasons why runs are not comparable.
/// The runs of either side, the baseline's first, are not of one measurement, or the two sides are
/// not of one machine.
pub(super) fn of_counted(counted: &[Independent<'_>; 2]) -> Vec<Gap> {
    let sides = counted.iter().zip([" (in the baseline)", ""]);
    let firsts = counted.each_ref().map(|one| one.runs.first());
    let [there, here] = firsts;
    let other_machine = here.zip(there).and_then(|(here, there)| {
        let what = here.other_machine(there)?;
        Some(Gap {
            step: None,
            probe: "all steps".to_owned(),
            load: String::new(),
            why: format!("the baseline is of another machine: {what}"),
        })
    });
    let other_machine = other_machine.filter(|_| !without(Mend::Machine));
    let gap = |(one, side): (&Independent<'_>, &str)| {
        let why = one
            .gap
            .as_ref()
            .filter(|_| !without(Mend::OneMeasurement))?;
        Some(Gap {
            step: None,
            probe: "all steps".to_owned(),
            load: String::new(),
            why: format!("{why}{side}"),
        })
    };
    sides.filter_map(gap).chain(other_machine).collect()
}

/// The gaps of both sides, those of several runs once.
pub(super) fn of_sides(there: &[&Run], here: &[&Run]) -> Vec<Gap> {
    let mut all: Vec<(Gap, Vec<&str>)> = Vec::new();
    for (runs, side) in [(here, ""), (there, " in the baseline")] {
        for run in runs {
            for mut gap in gaps(run) {
                gap.why += side;
                match all.iter_mut().find(|(known, _)| *known == gap) {
                    Some((_, runs)) => runs.push(&run.id),
                    None => all.push((gap, vec![&run.id])),
                }
            }
        }
    }
    let told = |(gap, runs): (Gap, Vec<&str>)| Gap {
        why: format!("{} ({})", gap.why, runs.join(", ")),
        ..gap
    };
    all.into_iter().map(told).collect()
}

/// Makes each row that lacks something say so; a step without a row gets one.
pub(super) fn put(rows: &mut Vec<Row>, gaps: &[Gap]) {
    let is_virtual = rows.iter().all(|row| row.is_virtual);
    for gap in gaps {
        let is_of = |row: &Row| {
            gap.step.is_none() || (&row.row.probe, &row.row.load) == (&gap.probe, &gap.load)
        };
        let mut is_told = false;
        for row in rows.iter_mut().filter(|row| is_of(row)) {
            is_told = true;
            row.has_words = false;
            row.standing = row.standing.max(Standing::Undecided);
            // The plan's reason says more than that there is no figure.
            let before = row.gap.take().filter(|_| !row.figures.is_empty());
            row.gap = Some(match before {
                Some(before) => format!("{before}; {}", gap.why),
                None => gap.why.clone(),
            });
        }
        if !is_told {
            rows.push(Row {
                row: Measurement {
                    probe: gap.probe.clone(),
                    load: gap.load.clone(),
                    variant: String::new(),
                    repetition: 1,
                },
                standing: Standing::Undecided,
                figures: Vec::new(),
                gap: Some(gap.why.clone()),
                has_words: false,
                differences: Vec::new(),
                has_other_findings: false,
                is_virtual,
                samples: 0,
            });
        }
    }
}
