// SPDX-License-Identifier: MIT OR Apache-2.0
//! Extreme values of runs in real time: as text, and as JSON.

use std::fmt::Write as _;

use punctual_judge::{NoExtremes, ReturnLevel, Tail, fate, shortcoming, tail};
use punctual_model::run::State;
use punctual_model::{Nanos, Recording, Run};
use serde::Serialize;
use serde_json::Value;

use crate::names::Names;
use crate::text::{thousands, wrap};

/// The form's name and version.
const SCHEMA: &str = "punctual.extremes/1";

/// The levels' numbers of samples, as multiples.
const TIMES: [u64; 3] = [1, 10, 100];

/// The extremes of a recording.
#[derive(Clone, Debug)]
pub struct Extremes<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its recording.
    pub recording: &'a Recording,
    /// The tail, and the levels of 1, 10 and 100 times as many samples.
    /// An error says why there is none.
    pub found: Result<(Tail, Vec<ReturnLevel>), NoExtremes>,
}

/// The extreme values of all recordings of these runs.
pub fn extremes(runs: &[Run]) -> Vec<Extremes<'_>> {
    let of_run = |run| {
        let of = move |recording| Extremes {
            run,
            recording,
            found: of_recording(run, recording),
        };
        run.recordings.iter().map(of)
    };
    runs.iter().flat_map(of_run).collect()
}

fn of_recording(run: &Run, recording: &Recording) -> Result<(Tail, Vec<ReturnLevel>), NoExtremes> {
    if run.is_virtual() {
        return Err(NoExtremes::Virtual);
    }
    // What keeps no limit foretells nothing either.
    let is_finished = run.state == State::Finished;
    let why = (!is_finished).then(|| fate(run));
    if let Some(why) = why.or_else(|| shortcoming(run, recording)) {
        return Err(NoExtremes::Incomplete(why));
    }
    if !recording.is_complete() {
        let (kept, count) = (recording.samples.len() as u64, recording.count);
        return Err(NoExtremes::NotKept { kept, count });
    }
    let values: Vec<f64> = recording
        .samples
        .iter()
        .map(|one| one.value.0 as f64)
        .collect();
    let found = tail(&values)?;
    let level = |times| found.return_level(&values, recording.count * times);
    Ok((found, TIMES.map(level).to_vec()))
}

/// Rounded to a nanosecond.
fn nanos(level: f64) -> Nanos {
    Nanos(level.round() as i64)
}

/// As text, no line longer than `width`.
pub fn extremes_text(all: &[Extremes<'_>], width: usize) -> String {
    let mut text = String::new();
    for one in all {
        let (run, title) = (&one.run.id, one.recording.title());
        let _ = writeln!(text, "{run}: {title}");
        let lines = match &one.found {
            Err(why) => wrap(&format!("refused: {why}"), "  ", "  ", width),
            Ok((tail, levels)) => {
                let head = format!(
                    "{} of {} samples are above {}; shape {:.2}, worst {}",
                    thousands(tail.exceedances as u64),
                    thousands(one.recording.count),
                    nanos(tail.threshold),
                    tail.pareto.shape,
                    one.recording.max().unwrap_or_default(),
                );
                let mut lines = wrap(&head, "  ", "  ", width);
                lines.extend(levels.iter().map(|level| {
                    let (low, high) = level.interval;
                    let (samples, most) = (thousands(level.samples), nanos(level.level));
                    let (low, high) = (nanos(low), nanos(high));
                    format!("  once in {samples:>15} samples above {most:>9}  ({low} to {high})")
                }));
                lines
            }
        };
        text += &(lines.join("\n") + "\n");
    }
    text
}

/// Extreme values of recordings. Times are nanoseconds, not rounded. New fields may be added to
/// version 1; none is removed or changes its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// The recordings.
    recordings: Vec<OfRecording<'a>>,
}

/// The extreme values of a recording.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OfRecording<'a> {
    /// Its run.
    run: &'a str,
    #[serde(flatten)]
    names: Names<'a>,
    /// The number of its samples.
    count: u64,
    /// The largest sample; null if there is none.
    max_ns: Option<i64>,
    /// The tail and the levels, or the reason why there are none.
    #[serde(flatten)]
    found: Found,
}

/// The tail and the levels, or the reason why there are none; never both.
#[derive(Serialize)]
#[cfg_attr(
    test,
    derive(schemars::JsonSchema),
    schemars(extend("not" = { "required": ["refused", "tail"] }))
)]
#[serde(untagged)]
enum Found {
    /// Nothing can be told.
    Refused {
        /// The reason.
        refused: String,
    },
    /// The tail follows a generalised Pareto distribution.
    Told {
        /// The tail.
        tail: Excess,
        /// The levels: for as many samples, for ten times and for a hundred times as many.
        #[cfg_attr(test, schemars(length(min = 1)))]
        levels: Vec<Exceeded>,
    },
}

/// The samples above a threshold, and the generalised Pareto distribution of their excess over it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Excess {
    /// The threshold.
    threshold_ns: f64,
    /// The number of samples above it.
    exceedances: usize,
    /// The distribution's shape.
    shape: f64,
    /// The distribution's scale.
    scale_ns: f64,
}

/// A level that is exceeded once in a number of samples.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Exceeded {
    /// The number of samples.
    once_in_samples: u64,
    /// The level.
    level_ns: f64,
    /// The lower end of its 95 % interval.
    low_ns: f64,
    /// The upper end.
    high_ns: f64,
}

/// As JSON. Levels are nanoseconds, not rounded.
///
/// # Panics
/// Never: all of it can be written as JSON.
pub fn extremes_json(all: &[Extremes<'_>]) -> Value {
    let document = Document {
        schema: SCHEMA,
        recordings: all.iter().map(told).collect(),
    };
    serde_json::to_value(document).expect("it has no map but of texts")
}

fn told<'a>(one: &Extremes<'a>) -> OfRecording<'a> {
    let (recording, key) = (one.recording, &one.recording.key);
    let level = |level: &ReturnLevel| Exceeded {
        once_in_samples: level.samples,
        level_ns: level.level,
        low_ns: level.interval.0,
        high_ns: level.interval.1,
    };
    let found = match &one.found {
        Err(why) => Found::Refused {
            refused: why.to_string(),
        },
        Ok((tail, levels)) => Found::Told {
            tail: Excess {
                threshold_ns: tail.threshold,
                exceedances: tail.exceedances,
                shape: tail.pareto.shape,
                scale_ns: tail.pareto.scale,
            },
            levels: levels.iter().map(level).collect(),
        },
    };
    OfRecording {
        run: &one.run.id,
        names: Names::from(key),
        count: recording.count,
        max_ns: recording.max().map(|max| max.0),
        found,
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::{MachineRecord, Recorder, RecordingKey};
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    /// A run in real time with the quantiles of an exponential distribution, in an order that
    /// shows none.
    fn run() -> Run {
        let mut run = fixtures::seeds(1).remove(0);
        run.machine = MachineRecord::default();
        let facts = &mut run.provenance.as_mut().unwrap().facts;
        facts.insert("virtualised".into(), false.into());
        let count = 20_011_i64;
        let mut recorder = Recorder::new(usize::try_from(count).unwrap());
        for n in 0..count {
            // The seventh powers modulo this prime are all its numbers, in disorder.
            let place = (0..7).fold(1, |power, _| power * n % count);
            let share = (place as f64 + 0.5) / count as f64;
            recorder.record(Nanos(n * 1_000), Nanos((-5_000_000.0 * share.ln()) as i64));
        }
        run.recordings = vec![recorder.finish(RecordingKey::new("timer", "idle", "cpu0"))];
        run
    }

    fn schema(value: &Value) -> Result<(), String> {
        let text = include_str!("../../../docs/schema/extremes-1.json");
        crate::schema::check("extremes-1.json", text, value)
    }

    /// Each of these in place of what is there is refused.
    fn assert_refused(sound: &Value, broken: &[(&str, Value)]) {
        schema(sound).unwrap();
        for (path, wrong) in broken {
            let mut changed = sound.clone();
            *changed.pointer_mut(path).unwrap() = wrong.clone();
            assert!(schema(&changed).is_err(), "{path}");
        }
    }

    #[test]
    fn the_schema_is_what_the_type_says() {
        crate::schema::assert_is_of::<Document<'_>>(
            "extremes-1.json",
            "Extreme values in real time: what `punctual extremes --json` prints",
        );
    }

    #[test]
    fn what_keeps_no_limit_foretells_nothing() {
        type Damage = fn(&mut Run);
        let damages: [(Damage, &str); 5] = [
            (
                |run| run.state = State::Interrupted,
                "the run was interrupted",
            ),
            (
                |run| run.recordings[0].interrupted = true,
                "interrupted after 20011 samples",
            ),
            (
                |run| run.plan = run.plan.replace("samples = 1", "samples = 40000"),
                "20011 samples of 40000",
            ),
            (
                |run| {
                    let facts = &mut run.provenance.as_mut().unwrap().facts;
                    facts.insert("virtualised".into(), true.into());
                },
                "in a virtual machine in real time",
            ),
            (
                |run| run.provenance = None,
                "it is not known whether a hypervisor ran beneath it",
            ),
        ];
        for (damage, expected) in damages {
            let mut runs = [run()];
            damage(&mut runs[0]);
            let found = extremes(&runs).remove(0).found.unwrap_err();
            assert!(found.to_string().contains(expected), "{found}");
        }
    }

    #[test]
    fn levels_are_told_in_real_time_only_and_of_all_samples_only() {
        let runs = [run()];
        let all = extremes(&runs);
        let (tail, levels) = all[0].found.as_ref().unwrap();
        assert!(tail.pareto.shape.abs() < 0.3, "{tail:?}");
        assert_eq!(levels.len(), 3);
        let text = extremes_text(&all, 80);
        assert!(
            text.contains("once in       2,001,100 samples above"),
            "{text}"
        );
        let json = extremes_json(&all);
        assert_eq!(json["recordings"][0]["levels"].as_array().unwrap().len(), 3);
        let broken = [
            ("/schema", json!("punctual.extremes/2")),
            ("/recordings/0/levels", json!([])),
            ("/recordings/0/levels/0/low_ns", json!("1 us")),
            ("/recordings/0/tail", json!({ "shape": 0.1 })),
            ("/recordings/0/max_ns", json!(1.5)),
        ];
        assert_refused(&json, &broken);
        let mut both = json.clone();
        both["recordings"][0]["refused"] = json!("and told");
        assert!(schema(&both).is_err(), "told and refused");

        let mut virtual_run = run();
        virtual_run.machine = fixtures::seeds(1).remove(0).machine;
        let runs = [virtual_run];
        let text = extremes_text(&extremes(&runs), 80);
        assert!(text.contains("refused: in virtual time"), "{text}");

        let mut counted = run();
        counted.recordings[0].count += 1;
        let runs = [counted];
        let json = extremes_json(&extremes(&runs));
        assert_refused(&json, &[("/recordings/0/refused", json!(null))]);
        let refused = json["recordings"][0]["refused"].as_str().unwrap();
        assert!(refused.contains("found 20011 of 20012"), "{refused}");
    }
}
