// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan, carried out step by step.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use punctual_model::capture::Tracing;
use punctual_model::plan::{IDLE, Plan, Step};
use punctual_model::record::{Finished, Provenance, Started, StepRecord, Unsupported};
use punctual_model::recording::Work;
use punctual_model::{Fact, Facts, Reason, Record, Recording, RecordingKey};

use crate::loads::RunningLoad;
use crate::phases::Phases;
use crate::probes::{self, Context, Measurement};
use crate::rt::{self, CONTROL_PRIORITY};
use crate::stream::Records;
use crate::sys::{marker, process, sched};
use crate::tracer::{self, Watcher};
use crate::{cpus, provenance, scratch, setting, status_page};

/// Carries out a plan and sends the results; returns an error only if sending fails. `facts`
/// are the caller's additions to the provenance, `in_the_end` those after all measurements.
/// If the target is asked to end, the running step ends after its sample, and no further
/// step begins.
pub fn carry_out(
    plan: &Plan,
    facts: Facts,
    in_the_end: impl FnOnce() -> Facts,
    stream: &mut impl Records,
) -> io::Result<()> {
    let measurements = match understand(plan) {
        Ok(measurements) => measurements,
        Err(reason) => return stream.send(&Record::Refused(reason)),
    };
    let first = Record::Provenance(provenance(facts));
    stream.send(&first)?;
    prepare_control_thread();
    let mut sent = Finished {
        recordings: 0,
        unsupported: 0,
    };
    let mut repetitions = Repetitions::default();
    for ((step, measurement), number) in plan.steps.iter().zip(&measurements).zip(0..) {
        if status_page::is_stop_requested() {
            break;
        }
        marker::step();
        if step.skip {
            continue;
        }
        stream.send(&Record::Started(Started {
            step: number,
            probe: step.probe.clone(),
            load: step.load.clone(),
            nominal: measurement.nominal(),
        }))?;
        status_page::begin_step(number);
        stream.begin_step(number, step, measurement.as_ref(), &repetitions);
        let measured = measure(plan, step, number, measurement.as_ref());
        stream.end_step();
        match measured {
            Ok((recordings, work)) => {
                stream.send(&Record::Step(StepRecord {
                    step: number,
                    probe: step.probe.clone(),
                    load: step.load.clone(),
                    work,
                    marks: Vec::new(),
                }))?;
                for mut recording in recordings {
                    repetitions.complete(&mut recording.key, step, number);
                    stream.send(&Record::Recording(Box::new(recording)))?;
                    sent.recordings += 1;
                }
            }
            // It is no property of the subject that the step was cut short.
            Err(_) if status_page::is_stop_requested() => {}
            Err(reason) => {
                stream.send(&Record::Unsupported(Unsupported {
                    step: number,
                    probe: step.probe.clone(),
                    load: step.load.clone(),
                    reason: explained(plan, reason),
                }))?;
                sent.unsupported += 1;
            }
        }
    }
    marker::end();
    let facts = in_the_end();
    if let (Record::Provenance(mut provenance), false) = (first, facts.is_empty()) {
        provenance.facts.extend(facts);
        stream.send(&Record::Provenance(provenance))?;
    }
    stream.send(&if status_page::is_stop_requested() {
        Record::Interrupted(sent)
    } else {
        Record::Finished(sent)
    })
}

/// Returns the facts about the subject, and about the state that was restored before.
fn provenance(facts: Facts) -> Provenance {
    scratch::remove_left_behind();
    let mut restored = setting::restore_left_behind();
    restored.extend(tracer::remove_left_behind());
    let mut provenance = provenance::read();
    provenance.facts.extend(facts);
    if !restored.is_empty() {
        let text = restored.join(", ");
        let text = Fact::from(text);
        provenance.facts.insert("restored_after_crash".into(), text);
    }
    provenance
}

/// The number of times that each probe, load and variant has been recorded: a plan may measure
/// the same twice, in two ways.
#[derive(Clone, Default)]
pub struct Repetitions(BTreeMap<(String, String, String), u32>);

impl Repetitions {
    /// Completes a key whose variant the probe has set.
    pub fn complete(&mut self, key: &mut RecordingKey, step: &Step, number: u32) {
        key.step = number;
        key.probe.clone_from(&step.probe);
        key.load.clone_from(&step.load);
        let name = (key.probe.clone(), key.load.clone(), key.variant.clone());
        let times = self.0.entry(name).or_default();
        *times += 1;
        key.repetition = *times;
    }
}

/// Returns a reason, with the reason for it if a module could not be brought along.
fn explained(plan: &Plan, reason: Reason) -> Reason {
    let why = reason
        .missing_module()
        .and_then(|name| plan.absent.get(name));
    match why {
        Some(why) => reason.because(why),
        None => reason,
    }
}

/// Parses all steps before the first one begins.
fn understand(plan: &Plan) -> Result<Vec<Box<dyn Measurement>>, String> {
    let parse = |(step, number): (&Step, u32)| {
        if step.load != IDLE && !plan.loads.contains_key(&step.load) {
            return Err(format!(
                "step {number}: the plan has no load \"{}\"",
                step.load
            ));
        }
        let wrong = |why| format!("step {number}: {why}");
        let measurement = probes::parse(&step.probe, &step.params).map_err(wrong)?;
        let load = plan.loads.get(&step.load);
        for place in load
            .iter()
            .flat_map(|load| &load.workers)
            .filter_map(|one| one.cpus.as_ref())
        {
            let wrong = |why| format!("step {number}, load \"{}\": {why}", step.load);
            cpus::of(place, measurement.cpus()).map_err(wrong)?;
        }
        Ok(measurement)
    };
    plan.steps.iter().zip(1..).map(parse).collect()
}

/// Lets the calling thread start and stop loads while these take all CPU time.
fn prepare_control_thread() {
    // Without the right to do so loads may start and stop late, but the probes, which
    // insist on their own scheduling and on locked memory, will say so themselves.
    let _ = sched::set_fifo(CONTROL_PRIORITY);
    let _ = rt::lock_memory();
    let _ = process::adopt_orphans();
}

/// Returns the recordings of a step's probe, and its load's work meanwhile.
fn measure(
    plan: &Plan,
    step: &Step,
    number: u32,
    measurement: &dyn Measurement,
) -> Result<(Vec<Recording>, Vec<Work>), Reason> {
    let mut phases = Phases::new(plan.seed, number);
    let load = plan.loads.get(&step.load);
    let watcher = plan
        .tracing
        .map(|request| Arc::new(watcher(request, measurement)));
    let start = |load| RunningLoad::start(load, measurement.cpus(), &mut phases);
    let running = load.map(start).transpose()?;
    let result = measurement.run(&mut Context {
        phases,
        watcher: watcher.clone(),
        aim: plan.aim.within(number),
    });
    let work = running.map(RunningLoad::finish).transpose();
    let (mut recordings, work) = (result?, work?.unwrap_or_default());
    let interrupted = status_page::is_stop_requested();
    // What was cut short before its first sample was not measured.
    recordings.retain(|recording| !interrupted || recording.count > 0);
    for recording in &mut recordings {
        recording.interrupted |= interrupted;
        if let Some(watcher) = &watcher {
            watcher.tell(recording);
        }
    }
    Ok((recordings, work))
}

/// Creates the watcher of samples above a limit. The kernel's tracer is started before the load,
/// so that none of that falls into the measurement.
fn watcher(request: Tracing, measurement: &dyn Measurement) -> Watcher {
    match measurement.watched_priority() {
        Some(priority) => Watcher::start(request, priority),
        None => Watcher::none(
            request,
            "only samples of `timer` with policy fifo and of `noise` are watched",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(probe: &str) -> Step {
        let text = format!("probe = \"{probe}\"\n");
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn recordings_of_one_name_are_told_apart() {
        let mut repetitions = Repetitions::default();
        let mut label = |probe, number, variant: &str| {
            let mut key = RecordingKey::of_variant(variant);
            repetitions.complete(&mut key, &step(probe), number);
            assert_eq!((&*key.probe, &*key.load, key.step), (probe, IDLE, number));
            key.label()
        };
        assert_eq!(label("timer", 0, "cpu0"), "cpu0");
        assert_eq!(label("timer", 1, "cpu0"), "cpu0 (2)");
        assert_eq!(label("timer", 1, "cpu1"), "cpu1");
        assert_eq!(label("kthreads", 2, ""), "");
        assert_eq!(label("kthreads", 3, ""), "(2)");
        assert_eq!(label("timer", 4, "cpu0"), "cpu0 (3)");
    }

    #[test]
    fn why_a_module_is_missing_is_said_where_its_device_is_missing() {
        let mut plan: Plan = toml::from_str("seed = 1\nstep = []\n").unwrap();
        plan.absent.insert("pulse".into(), "no compiler".into());
        let absent = |module| Reason::no_device("/dev/x", module, "No such file");
        let text = explained(&plan, absent("pulse")).to_string();
        assert!(text.ends_with("(module pulse): no compiler"), "{text}");
        assert_eq!(explained(&plan, absent("stall")), absent("stall"));
        let other = Reason::from("no /dev/pulse");
        assert_eq!(explained(&plan, other.clone()), other);
    }
}
