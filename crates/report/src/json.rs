// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs as JSON, for programs. Every time is an integer number of nanoseconds.

use std::collections::BTreeMap;
use std::{io, iter};

use punctual_model::probe::Shape;
use punctual_model::record::{Mark, Provenance, StepRecord, Unsupported};
use punctual_model::recording::{Samples, Work};
use punctual_model::run::State;
use punctual_model::{
    Capture, Facts, Findings, MachineRecord, Nanos, Quantiles, Reason, Recording, Run, Sample,
    Subject,
};
use punctual_scope::captured::breakdown;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::names::Names;
use crate::stats::supports;
use crate::{arrivals, scope, views};

/// The quantiles given, each under its number.
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

/// The form's name and version; `docs/schema/run-2.json` describes it.
const SCHEMA: &str = "punctual.run/2";

/// Runs. Times are whole nanoseconds. New fields may be added to version 2; none is removed or
/// changes its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// One or several.
    #[cfg_attr(test, schemars(with = "Vec<OfRun<'_>>"))]
    runs: EachRun<'a>,
}

/// One suite on one subject.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OfRun<'a> {
    /// Its name in the store; empty if it was not stored.
    id: &'a str,
    /// The suite's name.
    suite: &'a str,
    /// Its progress.
    state: State,
    /// The reason why it failed or was interrupted.
    error: Option<&'a str>,
    /// Equal digests mean equal behaviour; null if there is none, and `no_digest` has the reason.
    #[cfg_attr(test, schemars(regex(pattern = "^[0-9a-f]{64}$")))]
    digest: Option<String>,
    /// The reason why there is no digest: the run did not finish, nothing was measured.
    no_digest: Option<String>,
    /// The seed.
    seed: u64,
    /// Nanoseconds of virtual time per instruction; null in real time.
    ns_per_insn: Option<u32>,
    /// The number of runs that make it up.
    shards: u64,
    /// The time at which it began, RFC 3339, UTC.
    started: &'a str,
    /// The time at which it ended, RFC 3339, UTC.
    finished: Option<&'a str>,
    /// The version of Punctual that made it.
    punctual: &'a str,
    /// The subject that was judged.
    subject: &'a Subject,
    /// The machine on which it was made.
    machine: &'a MachineRecord,
    /// Facts that the target read back before its first sample; null if it never got so far.
    provenance: Option<&'a Provenance>,
    /// The plan that the target was given, as TOML.
    plan: &'a str,
    /// The steps that were carried out, in order.
    steps: Vec<CarriedOut<'a>>,
    /// The data that `punctual arrivals` kept of the run; missing if nothing is kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    arrivals: Vec<arrivals::Figure>,
    /// The recordings that the probes delivered, in order.
    recordings: Vec<OfRecording<'a>>,
    /// The steps that could not be measured, in order.
    unsupported: Vec<Absent<'a>>,
}

/// A step that was carried out.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CarriedOut<'a> {
    /// Its number in the plan, from 0.
    step: u32,
    /// The probe.
    probe: &'a str,
    /// The load; `idle` if there was none.
    load: &'a str,
    /// The work of each of the load's workers while samples were taken; empty when idle.
    work: Vec<WorkDone<'a>>,
    /// The moments that an observer marked, in order.
    marks: Vec<Moment>,
}

/// The work of one worker of a load while samples were taken.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WorkDone<'a> {
    /// The worker's command.
    worker: &'a str,
    /// The number of times that the command was done.
    rounds: u64,
    /// The amount of work, counted in `unit`.
    amount: u64,
    /// The unit of `amount`: `messages`, `files`, `bytes`.
    unit: &'a str,
    /// CPU time, user and system.
    cpu_ns: Nanos,
    /// The time during which samples were taken: all other figures are of this time.
    span_ns: Nanos,
    /// The time after which the recipe repeats itself; 0 if it repeats with each round.
    period_ns: Nanos,
    /// Whether the command never ends by itself, so that no round is expected.
    endless: bool,
    /// The CPUs on which it may run, as read back: `0-2`; empty if that is not known.
    cpus: &'a str,
}

/// A moment that an observer of a step marked.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Moment {
    /// The time from the step's start, by the clock of the observer's machine.
    at_ns: Nanos,
    /// The number of samples that all threads had taken.
    samples: u64,
    /// The largest of them; null if it was not known then.
    worst_ns: Option<Nanos>,
}

/// A step that could not be measured.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Absent<'a> {
    /// Its number in the plan, from 0.
    step: u32,
    /// The probe.
    probe: &'a str,
    /// The load.
    load: &'a str,
    /// The reason, for people.
    reason: String,
    /// The reason, for programs.
    cause: &'a Reason,
}

/// What one probe delivered under one load.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OfRecording<'a> {
    /// The number of its step, from 0.
    step: u32,
    #[serde(flatten)]
    names: Names<'a>,
    #[cfg_attr(test, schemars(extend("const" = "ns")))]
    unit: &'static str,
    /// The number of samples taken.
    count: u64,
    /// The number of samples taken first and set aside.
    warmup: u64,
    /// The smallest sample.
    min: Option<Nanos>,
    /// The mean, rounded.
    mean: Option<Nanos>,
    /// The largest sample.
    max: Option<Nanos>,
    /// Periods in which no sample could be taken; null if nobody counted them.
    missed: Option<u64>,
    /// Whether the target was asked to end meanwhile: there may be fewer samples than the plan
    /// asked for.
    interrupted: bool,
    /// Samples above the histogram's range.
    overflow: u64,
    /// Samples below zero.
    negative: u64,
    /// The nominal time between two samples, if there is one.
    interval_ns: Option<Nanos>,
    /// Quantiles, by the share of samples that do not exceed them.
    quantiles: Levels,
    /// Whether the quantiles are exact, or as fine as the histogram.
    #[cfg_attr(test, schemars(extend("enum" = ["samples", "histogram"])))]
    quantiles_from: &'static str,
    /// With the samples that a late one displaced; null if there is no interval, and for jitters.
    corrected: Option<Corrected>,
    /// The largest samples, largest first.
    worst: &'a [Sample],
    /// The figures that are known only between two edges: of a run of another program, which
    /// counted samples in wide bins, or in none.
    #[serde(skip_serializing_if = "Option::is_none")]
    between: Option<Between<'a>>,
    /// The largest sample of each part, in order, of a recording that was reported in parts.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    maxima: &'a [Sample],
    /// The kernel's tracer's notes about samples above a limit, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    captures: Vec<Captured<'a>>,
    /// How it was measured, as read back.
    settings: &'a Facts,
    /// The probe's findings besides its samples.
    findings: &'a Findings,
    /// A program's output, or the probe's own report besides its samples.
    output: Option<&'a str>,
    /// With --raw: every kept sample, its time from the recording's start and its value, in
    /// nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<Vec<[i64; 2]>>"))]
    samples: Option<Raw<'a>>,
}

/// Quantiles in nanoseconds; null if so few samples do not support one.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Levels {
    #[serde(rename = "0.5")]
    median: Option<Nanos>,
    #[serde(rename = "0.9")]
    p90: Option<Nanos>,
    #[serde(rename = "0.99")]
    p99: Option<Nanos>,
    #[serde(rename = "0.999")]
    thousandth: Option<Nanos>,
    #[serde(rename = "0.9999")]
    rarest: Option<Nanos>,
}

/// The view that accounts for the samples which a late one displaced.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Corrected {
    /// The number of samples that there are then.
    count: u64,
    /// The largest.
    max: Option<Nanos>,
    /// Quantiles of all.
    quantiles: Levels,
}

/// Figures that are known only between two edges, the lower one first.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Between<'a> {
    /// The edges of the mean; null if the mean is known.
    mean: Option<[i64; 2]>,
    /// The edges of each quantile that is not known.
    quantiles: BTreeMap<String, [Nanos; 2]>,
    /// The reason, and what would make them known.
    why: &'a Reason,
}

/// A tracer's notes about a sample, with their story.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Captured<'a> {
    #[serde(flatten)]
    notes: &'a Capture,
    /// The story of the sample, in the form of `punctual explain --json`.
    #[cfg_attr(test, schemars(with = "scope::json::Told<'_>"))]
    story: Value,
}

/// Runs, each written before the next one is looked at.
struct EachRun<'a> {
    runs: &'a [Run],
    raw: bool,
}

impl Serialize for EachRun<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.runs.iter().map(|run| OfRun::of(run, self.raw)))
    }
}

/// Kept samples, written from where they are: never all in memory as JSON.
struct Raw<'a>(&'a Samples);

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|one| [one.at, one.value]))
    }
}

/// Runs, be they one or many; with `raw`, every kept sample as `[at, value]`.
pub fn runs_json(runs: &[Run], raw: bool) -> Value {
    json!(Document::of(runs, raw))
}

/// Writes the same, the samples one by one: they are never all in memory as JSON.
/// Samples have no lines of their own.
///
/// # Errors
///
/// Fails if the writer does.
pub fn write_runs_json(runs: &[Run], raw: bool, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Document::of(runs, raw))?;
    writeln!(out)
}

impl<'a> Document<'a> {
    fn of(runs: &'a [Run], raw: bool) -> Self {
        Self {
            schema: SCHEMA,
            runs: EachRun { runs, raw },
        }
    }
}

impl<'a> OfRun<'a> {
    fn of(run: &'a Run, raw: bool) -> Self {
        let recordings = run.recordings.iter();
        Self {
            id: &run.id,
            suite: &run.suite,
            state: run.state,
            error: run.error.as_deref(),
            digest: run.digest(),
            no_digest: run.no_digest().map(|why| why.to_string()),
            seed: run.seed,
            ns_per_insn: run.clock().map(|clock| clock.ns_per_insn),
            shards: run.shards,
            started: &run.started,
            finished: run.finished.as_deref(),
            punctual: &run.punctual,
            subject: &run.subject,
            machine: &run.machine,
            provenance: run.provenance.as_ref(),
            plan: &run.plan,
            steps: run.steps.iter().map(CarriedOut::of).collect(),
            arrivals: arrivals::figures(run),
            recordings: recordings
                .map(|one| OfRecording::of(run, one, raw))
                .collect(),
            unsupported: run.unsupported.iter().map(Absent::of).collect(),
        }
    }
}

impl<'a> CarriedOut<'a> {
    fn of(step: &'a StepRecord) -> Self {
        Self {
            step: step.step,
            probe: &step.probe,
            load: &step.load,
            work: step.work.iter().map(WorkDone::of).collect(),
            marks: step.marks.iter().map(Moment::of).collect(),
        }
    }
}

impl<'a> WorkDone<'a> {
    fn of(work: &'a Work) -> Self {
        Self {
            worker: &work.worker,
            rounds: work.rounds,
            amount: work.amount,
            unit: &work.unit,
            cpu_ns: work.cpu,
            span_ns: work.span,
            period_ns: work.period,
            endless: work.endless,
            cpus: &work.cpus,
        }
    }
}

impl Moment {
    fn of(mark: &Mark) -> Self {
        Self {
            at_ns: mark.at,
            samples: mark.count,
            worst_ns: mark.worst,
        }
    }
}

impl<'a> Absent<'a> {
    fn of(absent: &'a Unsupported) -> Self {
        Self {
            step: absent.step,
            probe: &absent.probe,
            load: &absent.load,
            reason: absent.reason.to_string(),
            cause: &absent.reason,
        }
    }
}

impl<'a> OfRecording<'a> {
    fn of(run: &Run, recording: &'a Recording, raw: bool) -> Self {
        let all = Quantiles::of(iter::once(recording));
        let is_complete = recording.is_complete();
        let captures = recording.captures.iter();
        Self {
            step: recording.key.step,
            names: Names::from(&recording.key),
            unit: "ns",
            count: recording.count,
            warmup: recording.warmup,
            min: recording.min(),
            mean: recording.mean(),
            max: recording.max(),
            missed: recording.missed_periods(),
            interrupted: recording.interrupted,
            overflow: recording.histogram.overflow(),
            negative: recording.histogram.negative(),
            interval_ns: recording.interval,
            quantiles: Levels::of(recording.count, |q| all.at(q)),
            quantiles_from: if is_complete { "samples" } else { "histogram" },
            corrected: Corrected::of(recording),
            worst: &recording.worst,
            between: Between::of(recording, &all),
            maxima: &recording.maxima,
            captures: captures
                .map(|one| Captured::of(run, recording, one))
                .collect(),
            settings: &recording.settings,
            findings: &recording.findings,
            output: recording.output.as_deref(),
            samples: raw.then_some(Raw(&recording.samples)),
        }
    }
}

impl Levels {
    fn of(count: u64, quantile: impl Fn(f64) -> Option<Nanos>) -> Self {
        let at = |q| supports(count, q).then(|| quantile(q)).flatten();
        let [median, p90, p99, thousandth, rarest] = QUANTILES.map(at);
        Self {
            median,
            p90,
            p99,
            thousandth,
            rarest,
        }
    }
}

impl<'a> Between<'a> {
    fn of(recording: &'a Recording, all: &Quantiles) -> Option<Self> {
        let why = recording.distribution_gap()?;
        let quantiles = QUANTILES.iter().filter_map(|q| {
            let own = all.between(*q).filter(|_| all.at(*q).is_none());
            let (low, high) = own.filter(|_| supports(recording.count, *q))?;
            Some((q.to_string(), [low, high]))
        });
        let mean = recording
            .mean_between()
            .filter(|_| recording.mean().is_none());
        Some(Self {
            mean: mean.map(|(low, high)| [low.floor() as i64, high.ceil() as i64]),
            quantiles: quantiles.collect(),
            why,
        })
    }
}

impl Corrected {
    /// Returns nothing for a jitter: it is no lateness but the time since the sample before, which
    /// no other one displaces.
    fn of(recording: &Recording) -> Option<Self> {
        let is_jitter = views::of(&recording.key.probe).shape == Shape::Jitter;
        let interval = recording.interval.filter(|_| !is_jitter)?;
        let histogram = recording.histogram.corrected_for(interval)?;
        let count = histogram.count();
        // Values are only added below those that were measured: the largest stays, exactly, and the
        // upper edge of its bin is no quantile.
        let max = recording.max().filter(|_| count > 0);
        let quantile = |q| Some(histogram.quantile(q)?.min(max?));
        Some(Self {
            count,
            max,
            quantiles: Levels::of(count, quantile),
        })
    }
}

impl<'a> Captured<'a> {
    fn of(run: &Run, recording: &Recording, notes: &'a Capture) -> Self {
        let story = match breakdown(run, recording, notes) {
            Ok(story) => json!(scope::json::story(&story)),
            Err(why) => json!({ "not_explained": why }),
        };
        Self { notes, story }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn of_run(run: &Run, raw: bool) -> Value {
        json!(OfRun::of(run, raw))
    }

    #[test]
    fn a_run_says_what_it_found_in_whole_nanoseconds() {
        let run = fixtures::run("rt", 1);
        let value = of_run(&run, false);
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
        let value = of_run(&fixtures::run("rt", 1), false);
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
        let value = of_run(&run, true);
        let samples = value["recordings"][1]["samples"].as_array().unwrap();
        assert_eq!(samples.len() as u64, fixtures::SAMPLES);
        assert_eq!(samples[1_234], json!([1_234 * 997_000, 381_400]));
    }

    #[test]
    fn the_correction_counts_displaced_samples() {
        let mut run = fixtures::run("none", 1);
        run.recordings[1].interval = Some(Nanos(100_000));
        let plain = &of_run(&run, false)["recordings"][1];
        let corrected = &plain["corrected"];
        assert!(corrected["count"].as_u64() > plain["count"].as_u64());
        assert_eq!(corrected["max"], plain["max"]);
        // All are in one bin, whose upper edge no sample has.
        let late = fixtures::recording(["timer", "idle", "cpu0"], &[1_000_123; 20]);
        let mut one = fixtures::run_with(vec![late]);
        one.recordings[0].interval = Some(Nanos::from_millis(10));
        let late = &of_run(&one, false)["recordings"][0]["corrected"];
        assert_eq!(late["max"], 1_000_123);
        assert_eq!(late["quantiles"]["0.5"], 1_000_123);
        run.recordings[1].key.probe = "realfeel".into();
        let value = of_run(&run, false);
        assert!(value["recordings"][1]["interval_ns"].is_i64());
        assert!(value["recordings"][1]["corrected"].is_null());
    }

    #[test]
    fn the_schema_is_what_the_type_says() {
        crate::schema::assert_is_of::<Document<'_>>(
            "run-2.json",
            "Runs of Punctual: what `punctual run --json` and `punctual show --json` print",
        );
    }

    /// Checks real runs, and ones with everything that a run can have, against the schema.
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
        let schema = include_str!("../../../docs/schema/run-2.json");
        let validate = |value: &Value| crate::schema::check("run-2.json", schema, value);
        for raw in [false, true] {
            let value = runs_json(&runs, raw);
            validate(&value).unwrap();
            let mut written = Vec::new();
            write_runs_json(&runs, raw, &mut written).unwrap();
            assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), value);
        }
        validate(&runs_json(&[], false)).unwrap();
        let mut wrong = runs_json(&runs, false);
        let last = runs.len() - 1;
        wrong["runs"][last]["recordings"][1]["count"] = json!("many");
        assert!(validate(&wrong).is_err());
    }
}
