// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits on every arrival, and on the lateness that aimed samples reached.
//!
//! A measured value above the limit is proof, whether of a sample of the run or of an aimed one. A
//! predicted value is not: if it is above the limit, an aimed sample decides.

use punctual_model::arrivals::{Arrivals, are_told_of, can_be_aimed};
use punctual_model::{Nanos, Run};

use super::{Found, broken};
use crate::answer::{Fitness, More, Why};
use crate::evidence::{Evidence, named};

/// The number of places to aim at if the user asks for no other number.
const AIMS: usize = 10;

/// Judges the limit. An error is the reason why it is kept, if there are enough runs.
pub(super) fn judged(evidence: &Evidence<'_>, most: Nanos, aimed: bool) -> Result<Found, Why> {
    if let Some(why) = never(evidence, aimed) {
        let found = Found::new(Fitness::Undecided, Why::Gap(why), Some(More::Whole));
        return Ok(broken(evidence, most).unwrap_or(found));
    }
    let watched: Vec<(&Run, Option<&Arrivals>)> = evidence
        .found
        .iter()
        .map(|(run, recording)| (*run, run.arrivals_of(recording)))
        .collect();
    let known = || {
        watched
            .iter()
            .filter_map(|(run, one)| Some((*run, (*one)?)))
    };
    let reached = known().filter_map(|(run, one)| Some((run, one, one.reached?)));
    let latest = reached.max_by_key(|one| one.2);
    if let Some((run, one, late)) = latest.filter(|one| one.2 > most) {
        let why = Why::Reached {
            run: run.id.clone(),
            seed: run.seed,
            late,
            function: one.reached_function.clone(),
        };
        return Ok(Found::new(Fitness::Unfit, why, None));
    }
    if let Some(broken) = broken(evidence, most) {
        return Ok(broken);
    }
    if let Some(gap) = gap(&watched, most, aimed) {
        let is_known = watched.iter().all(|(_, known)| known.is_some());
        let has_gap = known().any(|(_, one)| one.gap.is_some());
        // What was watched and is not known is not known the next time either.
        let more = Some(if is_known && has_gap {
            More::Whole
        } else {
            More::Watched { aimed }
        });
        return Ok(Found::new(Fitness::Undecided, Why::Gap(gap), more));
    }
    let time = known().fold(0, |sum: i64, (_, one)| sum.saturating_add(one.time.0));
    Err(Why::Arrivals {
        time: Nanos(time),
        worst: known().map(|(_, one)| one.worst).max().unwrap_or_default(),
        reached: known().filter_map(|(_, one)| one.reached).max(),
    })
}

/// The reason why arrivals are never known for such a measurement.
fn never(evidence: &Evidence<'_>, aimed: bool) -> Option<String> {
    let (_, recording) = evidence.found.first()?;
    let (key, title) = (&recording.key, recording.title());
    if key.probe == "app" {
        return Some(format!(
            "{title}: of a program's threads `punctual arrivals` tells, and no limit is on that: \
             limit its lateness, or `what = \"arrival\"` of the probe timer under the same load"
        ));
    }
    if !are_told_of(key) {
        return Some(format!(
            "{title}: of interrupts, arrivals are known at the hard handler only: `variant = \"hard\"`"
        ));
    }
    let is_never = aimed && !can_be_aimed(key);
    is_never
        .then(|| format!("{title}: no sample can be aimed at an interrupt: `what = \"arrival\"`"))
}

/// The amount by which an arrival may be later than predicted. Of 54 aims of an earlier build on
/// PREEMPT_RT the furthest from its forecast was 1.1 µs later; of 119 of a later one none was later
/// by more than 0.28 µs (docs/method/arrivals.md). Predictions for two subjects that lie no further
/// apart are not told apart.
pub fn margin(worst: Nanos) -> Nanos {
    Nanos(worst.0 / 50).max(Nanos(1_200))
}

/// The reason why nothing is broken and yet nothing is shown, with the command that tells more.
fn gap(watched: &[(&Run, Option<&Arrivals>)], most: Nanos, aimed: bool) -> Option<String> {
    if watched.is_empty() {
        return Some("there is no sample".to_owned());
    }
    let aim = if aimed {
        format!(" --aim {AIMS}")
    } else {
        String::new()
    };
    for (run, known) in watched {
        let (id, name) = (&run.id, named(run));
        let Some(known) = known else {
            return Some(format!(
                "{name}: its arrivals were not watched: `punctual arrivals {id}{aim}`"
            ));
        };
        if aimed && known.reached.is_none() {
            return Some(format!(
                "{name}: no sample was aimed: `punctual arrivals {id} --aim {AIMS}`"
            ));
        }
        if let Some(gap) = &known.gap {
            return Some(format!("{name}: not every arrival is known: {gap}"));
        }
        let worst = known.worst;
        if known.is_forecast {
            return Some(format!(
                "{name}: an arrival changes what follows on this kernel: that the latest is \
                 {worst} late is a forecast, and no proof"
            ));
        }
        if worst + margin(worst) > most {
            let place = known.function.as_ref();
            let place = place.map_or_else(String::new, |function| format!(", in `{function}`"));
            let reached = known.reached.map_or_else(
                || format!(": `punctual arrivals {id} --aim {AIMS}` may prove it"),
                |reached| format!("; the latest aimed sample was {reached} late"),
            );
            let within = if worst > most {
                String::new()
            } else {
                format!(", give or take {}", margin(worst))
            };
            return Some(format!(
                "{name}: an arrival is foretold to be {worst} late{within}{place}{reached}"
            ));
        }
    }
    None
}
