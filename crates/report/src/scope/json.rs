// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stories as JSON.

use punctual_model::{Nanos, Run};
use serde_json::{Value, json};

use super::compare::differences;
use super::page::Other;
use super::text;
use punctual_scope::breakdown::{Breakdown, Cause, FunctionTime, Ipi, Part, Spin};
use punctual_scope::explain::Explained;
use punctual_scope::survey::{Hotspot, Survey};
use punctual_scope::tally::{Tally, tally};

/// The stories of a run's samples, beside another run's where there is one. All times are
/// integer nanoseconds, virtual ones.
pub fn explained(run: &Run, explained: &[Explained], other: Option<Other<'_>>) -> Value {
    let mut value = stories(run, explained);
    if let Some(other) = other {
        let pairs = explained.iter().zip(other.explained);
        let differences = pairs.filter_map(|(one, against)| {
            let (one, against) = (one.breakdown.as_ref(), against.breakdown.as_ref());
            Some(difference(one.ok()?, against.ok()?))
        });
        let mut against = stories(other.run, other.explained);
        against["differences"] = differences.collect();
        value["compared_with"] = against;
    }
    value
}

/// How long each function ran itself in either of two samples.
fn difference(one: &Breakdown, other: &Breakdown) -> Value {
    let function = |(name, here, there): (&str, Nanos, Nanos)| json!({ "function": name, "here_ns": here, "there_ns": there });
    differences(one, other).into_iter().map(function).collect()
}

/// The story of one sample, or why there is none.
pub fn told(one: &super::Story) -> Value {
    match one.as_ref().map(|one| one.breakdown.as_ref()) {
        Ok(Ok(told)) => story(told),
        Ok(Err(why)) | Err(why) => json!({ "not_explained": why }),
    }
}

fn stories(run: &Run, explained: &[Explained]) -> Value {
    let sample = |explained: &Explained| {
        let chosen = &explained.chosen;
        let recording = &run.recordings[chosen.recording];
        let mut value = json!({
            "probe": recording.key.probe,
            "load": recording.key.load,
            "variant": recording.key.variant,
            "repetition": recording.key.repetition,
            "step": recording.key.step,
            "cpu": recording.settings.get("affinity"),
            "seq": chosen.sample.seq,
            "at_ns": chosen.sample.at,
            "late_ns": chosen.sample.value,
        });
        match &explained.breakdown {
            Ok(told) => value["story"] = story(told),
            Err(why) => value["not_explained"] = json!(why),
        }
        value
    };
    json!({
        "schema": "punctual.explain/1",
        "run": run.id,
        "subject": run.subject.name,
        "kernel": run.subject.kernel,
        "digest": run.digest(),
        "samples": explained.iter().map(sample).collect::<Vec<_>>(),
        "in_the_way": tally(explained).iter().map(in_the_way).collect::<Vec<_>>(),
    })
}

fn in_the_way(tally: &Tally) -> Value {
    json!({
        "cause": tally.cause.map(Cause::name),
        "function": tally.function,
        "times": tally.times,
        "longest_ns": tally.longest,
    })
}

pub(crate) fn story(story: &Breakdown) -> Value {
    let mut value = json!({
        "sentence": text::sentence(story),
        "culprit": story.culprit,
        "held_ns": story.held(),
        "parts": story.parts.iter().map(part).collect::<Vec<_>>(),
        "notes": story.notes,
    });
    if let Some(others) = story.others() {
        value["own_ns"] = json!(story.late - others);
        value["others_ns"] = json!(others);
        value["ipis"] = story.ipis.iter().map(ipi).collect();
        value["spins"] = story.spins.iter().map(spin).collect();
    }
    value
}

fn ipi(ipi: &Ipi) -> Value {
    json!({
        "from_cpu": ipi.from,
        "sender": ipi.sender,
        "callers": ipi.callers,
        "thread": ipi.thread,
        "to_cpu": ipi.to,
        "entry": ipi.entry,
        "sent_ns": ipi.sent,
        "taken_ns": ipi.taken,
    })
}

fn spin(spin: &Spin) -> Value {
    let holder = spin.holder.as_ref().map(|holder| {
        json!({
            "cpu": holder.cpu,
            "function": holder.function,
            "caller": holder.caller,
            "certain": holder.certain,
        })
    });
    json!({
        "cpu": spin.cpu,
        "function": spin.function,
        "caller": spin.caller,
        "from_ns": spin.from,
        "length_ns": spin.length,
        "holder": holder,
    })
}

fn part(part: &Part) -> Value {
    let mut value = json!({
        "stage": part.stage.name(),
        "cause": part.cause.name(),
        "from_ns": part.from,
        "length_ns": part.length,
        "by": part.by,
        "thread": part.thread,
        "main": part.main.as_ref().map(ran),
        "within": part.within.iter().map(ran).collect::<Vec<_>>(),
    });
    if let Some(cpu) = part.cpu {
        value["cpu"] = json!(cpu);
    }
    value
}

fn ran(ran: &FunctionTime) -> Value {
    json!({
        "function": ran.function,
        "caller": ran.caller,
        "time_ns": ran.time,
        "whole_ns": ran.whole,
        "times": ran.times,
    })
}

/// What a survey found.
pub fn survey(run: &Run, survey: &Survey, digest: &str) -> Value {
    let place = |place: &Hotspot| {
        json!({
            "what": place.what.name(),
            "cpu": place.cpu,
            "function": place.function,
            "count": place.count,
            "longest_ns": place.longest,
            "sum_ns": place.sum,
            "step": place.step,
            "ended_in": place.ended,
            "most_in": place.most.0,
            "most_ns": place.most.1,
            "for_cpu": place.awaited.as_ref().map(|(cpu, _)| cpu),
            "for_function": place.awaited.as_ref().map(|(_, function)| function),
        })
    };
    json!({
        "schema": "punctual.survey/1",
        "run": run.id,
        "subject": run.subject.name,
        "kernel": run.subject.kernel,
        "digest": run.digest(),
        "digest_watched": digest,
        "cpus": survey.cpus,
        "cpus_unknown": survey.unknown,
        "instructions": survey.instructions,
        "mended": survey.mended,
        "places": survey.hotspots.iter().map(place).collect::<Vec<_>>(),
    })
}
