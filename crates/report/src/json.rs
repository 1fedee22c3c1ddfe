// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs as JSON, for programs. Every time is an integer number of nanoseconds.

use std::{io, iter};

use punctual_model::probe::Shape;
use punctual_model::record::{Mark, StepRecord, Unsupported};
use punctual_model::recording::Work;
use punctual_model::{Capture, Nanos, Quantiles, Recording, Run, Sample};
use punctual_scope::captured::breakdown;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::stats::supports;
use crate::{arrivals, scope, views};

/// The quantiles given, each under its number.
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

/// The form's name and version; `docs/schema/run-2.json` describes it.
const SCHEMA: &str = "punctual.run/2";

/// Runs, be they one or many; with `raw`, every kept sample as `[at, value]`.
pub fn runs_json(runs: &[Run], raw: bool) -> Value {
    let runs: Vec<Value> = runs.iter().map(|run| run_json(run, raw)).collect();
    json!({ "schema": SCHEMA, "runs": runs })
}

/// Writes the same, the samples one by one: they are never all in memory as JSON.
/// Samples have no lines of their own.
///
/// # Errors
///
/// Fails if the writer does.
pub fn write_runs_json(runs: &[Run], raw: bool, out: &mut dyn io::Write) -> io::Result<()> {
    write!(out, "{{\"schema\":\"{SCHEMA}\",\"runs\":[")?;
    for (run, number) in runs.iter().zip(0..) {
        if number > 0 {
            write!(out, ",")?;
        }
        let mut value = run_json(run, false);
        if raw {
            // Where they stand, each recording's samples take the place of this.
            let recordings = value["recordings"].as_array_mut();
            for recording in recordings.into_iter().flatten() {
                recording["samples"] = Value::Null;
            }
        }
        serde_json::to_writer(
            &mut *out,
            &Written {
                run,
                raw,
                value: &value,
            },
        )?;
    }
    writeln!(out, "]}}")
}

/// A run as JSON, whose samples are written from where they are.
struct Written<'a> {
    run: &'a Run,
    raw: bool,
    value: &'a Value,
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = self.value.as_object().into_iter().flatten();
        serializer.collect_map(parts.map(|(key, value)| {
            let recordings = value.as_array().filter(|_| self.raw && key == "recordings");
            let part = match recordings {
                Some(values) => Part::Recordings(&self.run.recordings, values),
                None => Part::Value(value),
            };
            (key, part)
        }))
    }
}

/// A part of a run.
enum Part<'a> {
    Value(&'a Value),
    Recordings(&'a [Recording], &'a [Value]),
    Recording(&'a Recording, &'a Value),
    Samples(&'a Recording),
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(serializer),
            Self::Recordings(recordings, values) => {
                let each = recordings.iter().zip(*values);
                serializer.collect_seq(each.map(|(one, value)| Part::Recording(one, value)))
            }
            Self::Recording(recording, value) => {
                let parts = value.as_object().into_iter().flatten();
                serializer.collect_map(parts.map(|(key, value)| match key.as_str() {
                    "samples" => (key, Part::Samples(recording)),
                    _ => (key, Part::Value(value)),
                }))
            }
            Self::Samples(recording) => {
                let samples = recording.samples.iter();
                serializer.collect_seq(samples.map(|one| [one.at.0, one.value.0]))
            }
        }
    }
}

fn run_json(run: &Run, raw: bool) -> Value {
    let recordings = run.recordings.iter();
    let mut value = json!({
        "id": run.id,
        "suite": run.suite,
        "state": run.state.name(),
        "error": run.error,
        "digest": run.digest(),
        "no_digest": run.no_digest().map(|why| why.to_string()),
        "seed": run.seed,
        "ns_per_insn": run.clock().map(|clock| clock.ns_per_insn),
        "shards": run.shards,
        "started": run.started,
        "finished": run.finished,
        "punctual": run.punctual,
        "subject": {
            "name": run.subject.name,
            "kernel": run.subject.kernel,
            "boot": run.subject.boot,
            "bench": run.subject.bench,
        },
        "machine": run.machine,
        "provenance": run.provenance,
        "plan": run.plan,
        "steps": run.steps.iter().map(step).collect::<Vec<_>>(),
        "recordings": recordings.map(|one| recording_json(run, one, raw)).collect::<Vec<_>>(),
        "unsupported": run.unsupported.iter().map(unsupported).collect::<Vec<_>>(),
    });
    let known = arrivals::figures(run);
    if !known.is_empty() {
        value["arrivals"] = json!(known);
    }
    value
}

fn step(step: &StepRecord) -> Value {
    json!({
        "step": step.step,
        "probe": step.probe,
        "load": step.load,
        "work": step.work.iter().map(work).collect::<Vec<_>>(),
        "marks": step.marks.iter().map(mark).collect::<Vec<_>>(),
    })
}

fn mark(mark: &Mark) -> Value {
    json!({
        "at_ns": mark.at,
        "samples": mark.count,
        "worst_ns": mark.worst,
    })
}

fn unsupported(absent: &Unsupported) -> Value {
    json!({
        "step": absent.step,
        "probe": absent.probe,
        "load": absent.load,
        "reason": absent.reason.to_string(),
        "cause": absent.reason,
    })
}

fn recording_json(run: &Run, recording: &Recording, raw: bool) -> Value {
    let is_complete = recording.is_complete();
    let all = Quantiles::of(iter::once(recording));
    let mut value = json!({
        "step": recording.key.step,
        "probe": recording.key.probe,
        "load": recording.key.load,
        "variant": recording.key.variant,
        "repetition": recording.key.repetition,
        "unit": "ns",
        "count": recording.count,
        "warmup": recording.warmup,
        "min": ns(recording.min()),
        "mean": ns(recording.mean()),
        "max": ns(recording.max()),
        "missed": recording.missed_periods(),
        "interrupted": recording.interrupted,
        "overflow": recording.histogram.overflow(),
        "negative": recording.histogram.negative(),
        "interval_ns": ns(recording.interval),
        "quantiles": quantiles(recording.count, |q| all.at(q)),
        "quantiles_from": if is_complete { "samples" } else { "histogram" },
        "corrected": corrected(recording),
        "worst": recording.worst.iter().map(worst).collect::<Vec<_>>(),
        "settings": recording.settings,
        "findings": recording.findings,
        "output": recording.output,
    });
    if let Some(between) = between(recording, &all) {
        value["between"] = between;
    }
    if !recording.maxima.is_empty() {
        value["maxima"] = json!(recording.maxima.iter().map(worst).collect::<Vec<_>>());
    }
    if !recording.captures.is_empty() {
        let captures = recording.captures.iter();
        value["captures"] = captures.map(|one| capture(run, recording, one)).collect();
    }
    if raw {
        let samples = recording.samples.iter();
        let samples: Vec<[i64; 2]> = samples.map(|one| [one.at.0, one.value.0]).collect();
        value["samples"] = json!(samples);
    }
    value
}

/// Returns the notes that the kernel's tracer took of a sample, with their story.
fn capture(run: &Run, recording: &Recording, capture: &Capture) -> Value {
    let mut value = json!(capture);
    value["story"] = match breakdown(run, recording, capture) {
        Ok(story) => json!(scope::json::story(&story)),
        Err(why) => json!({ "not_explained": why }),
    };
    value
}

fn ns(time: Option<Nanos>) -> Option<i64> {
    time.map(|time| time.0)
}

/// A quantile that so few samples cannot support is null.
fn quantiles(count: u64, quantile: impl Fn(f64) -> Option<Nanos>) -> Value {
    let values = QUANTILES.map(|q| {
        let value = supports(count, q).then(|| quantile(q)).flatten();
        (q.to_string(), json!(ns(value)))
    });
    Value::Object(Map::from_iter(values))
}

/// Returns the figures that are known only between two edges.
/// Another program has counted samples in wide bins there, or in none.
fn between(recording: &Recording, all: &Quantiles) -> Option<Value> {
    let why = recording.distribution_gap()?;
    let edges = |(low, high): (Nanos, Nanos)| [low.0, high.0];
    let quantiles = QUANTILES.iter().filter_map(|q| {
        let own = all.between(*q).filter(|_| all.at(*q).is_none());
        let own = own.filter(|_| supports(recording.count, *q))?;
        Some((q.to_string(), json!(edges(own))))
    });
    let mean = recording
        .mean_between()
        .filter(|_| recording.mean().is_none());
    let mean = mean.map(|(low, high)| [low.floor() as i64, high.ceil() as i64]);
    Some(json!({
        "mean": mean,
        "quantiles": quantiles.collect::<Map<_, _>>(),
        "why": why,
    }))
}

/// Returns the view that accounts for the samples which a late one displaced.
/// A jitter is no lateness: it is the time since the sample before, which no other one displaces.
fn corrected(recording: &Recording) -> Value {
    let is_jitter = views::of(&recording.key.probe).shape == Shape::Jitter;
    let interval = recording.interval.filter(|_| !is_jitter);
    let Some(histogram) = interval.and_then(|span| recording.histogram.corrected_for(span)) else {
        return Value::Null;
    };
    let count = histogram.count();
    json!({
        "count": count,
        // Values are only added below those that were measured: the largest stays, exactly.
        "max": ns(recording.max().filter(|_| count > 0)),
        "quantiles": quantiles(count, |q| histogram.quantile(q)),
    })
}

fn worst(one: &Sample) -> Value {
    json!({ "seq": one.seq, "at_ns": one.at.0, "value": one.value.0 })
}

fn work(work: &Work) -> Value {
    json!({
        "worker": work.worker,
        "rounds": work.rounds,
        "amount": work.amount,
        "unit": work.unit,
        "cpu_ns": work.cpu.0,
        "span_ns": work.span.0,
        "period_ns": work.period.0,
        "endless": work.endless,
        "cpus": work.cpus,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn a_run_says_what_it_found_in_whole_nanoseconds() {
        let run = fixtures::run("rt", 1);
        let value = run_json(&run, false);
        assert_eq!(value["digest"].as_str(), run.digest().as_deref());
        assert_eq!(value["provenance"]["preemption"], "rt");
        assert_eq!(value["machine"]["memory_mib"], 256);
        let stress = &value["recordings"][1];
        assert_eq!(stress["max"], 8_070);
        assert_eq!(stress["worst"][0]["seq"], 1_234);
        assert_eq!(stress["interval_ns"], 997_000);
        assert_eq!(value["steps"][1]["work"][0]["amount"], 240_000);
        assert_eq!(stress["quantiles_from"], "samples");
        assert!(stress["quantiles"]["0.999"].is_i64());
        assert!(stress.get("samples").is_none());
    }

    #[test]
    fn too_few_samples_support_no_high_quantile() {
        let value = run_json(&fixtures::run("rt", 1), false);
        assert!(value["recordings"][0]["quantiles"]["0.9999"].is_null());
        let hackbench = &value["recordings"][2];
        assert!(hackbench["quantiles"]["0.5"].is_i64());
        assert!(hackbench["quantiles"]["0.9"].is_null());
        assert!(hackbench["corrected"].is_null());
    }

    #[test]
    fn a_failed_run_has_no_digest_but_a_reason() {
        let runs = fixtures::with_gaps();
        let value = runs_json(&runs, false);
        assert_eq!(value["schema"], "punctual.run/2");
        assert_eq!(value["runs"].as_array().map(Vec::len), Some(4));
        let failed = &value["runs"][2];
        assert_eq!(failed["state"], "failed");
        assert!(failed["digest"].is_null() && failed["provenance"].is_null());
        assert_eq!(failed["error"], fixtures::NO_BOOT);
        let unsupported = &value["runs"][0]["unsupported"][0];
        assert_eq!(unsupported["reason"], fixtures::NO_MODULE);
    }

    #[test]
    fn raw_samples_come_when_asked_for() {
        let run = fixtures::run("none", 1);
        let value = run_json(&run, true);
        let samples = value["recordings"][1]["samples"].as_array().unwrap();
        assert_eq!(samples.len() as u64, fixtures::SAMPLES);
        assert_eq!(samples[1_234], json!([1_234 * 997_000, 381_400]));
    }

    #[test]
    fn the_correction_counts_displaced_samples() {
        let mut run = fixtures::run("none", 1);
        run.recordings[1].interval = Some(Nanos(100_000));
        let plain = &run_json(&run, false)["recordings"][1];
        let corrected = &plain["corrected"];
        assert!(corrected["count"].as_u64() > plain["count"].as_u64());
        assert_eq!(corrected["max"], plain["max"]);
        run.recordings[1].key.probe = "realfeel".into();
        let value = run_json(&run, false);
        assert!(value["recordings"][1]["interval_ns"].is_i64());
        assert!(value["recordings"][1]["corrected"].is_null());
    }

    /// Checks real runs, and ones with everything that a run can have, against the schema.
    /// The schema names each field, so that a field added here must be added there.
    #[test]
    fn what_is_printed_is_what_the_schema_describes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.db");
        let stored = include_bytes!("../../store/tests/fixtures/runs.db");
        std::fs::write(&path, stored).unwrap();
        let store = punctual_store::Store::open(&path).unwrap();
        let stored = store.list().unwrap().into_iter();
        let mut runs: Vec<Run> = stored.map(|run| store.load(&run.id).unwrap()).collect();
        runs.extend(fixtures::with_gaps());
        runs.extend(fixtures::all_probes());
        runs.push(fixtures::caught());
        let validate = schema();
        for raw in [false, true] {
            validate(&runs_json(&runs, raw)).unwrap();
        }
        validate(&runs_json(&[], false)).unwrap();
        let mut wrong = runs_json(&runs[..1], false);
        wrong["runs"][0]["more"] = json!(1);
        assert!(validate(&wrong).is_err());
        let mut wrong = runs_json(&runs, false);
        let last = runs.len() - 1;
        wrong["runs"][last]["recordings"][1]["count"] = json!("many");
        assert!(validate(&wrong).is_err());
    }

    fn schema() -> impl Fn(&Value) -> Result<(), String> {
        let text = include_str!("../../../docs/schema/run-2.json");
        |value| crate::schema::check("run-2.json", text, value)
    }
}
