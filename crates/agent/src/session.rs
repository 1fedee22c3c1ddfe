//! A plan, carried out step by step.

use std::collections::BTreeMap;
use std::io;

use punctual_model::plan::{IDLE, Load, Plan, Step};
use punctual_model::record::{Finished, Provenance, Started, Unsupported};
use punctual_model::{Nanos, Record, Recording};

use crate::loads::RunningLoad;
use crate::phases::Phases;
use crate::probes::{self, Context, Measurement};
use crate::rt::{self, CONTROL_PRIORITY};
use crate::stream::Stream;
use crate::sys::{marker, process, sched, time};
use crate::{provenance, scratch, setting, status_page};

/// How long a load runs before a probe is started beside it: longer than the longest
/// phase with which one of its workers may begin.
const SETTLING: Nanos = Nanos::from_millis(100);

/// Carries out a plan and sends what comes of it; an error only where sending fails. `facts`
/// are what the caller adds to the provenance. Where the target is asked to end, the step that
/// runs ends after its sample, and no further one is begun.
pub fn carry_out(
    plan: &Plan,
    facts: BTreeMap<String, String>,
    stream: &mut Stream,
) -> io::Result<()> {
    let measurements = match understand(plan) {
        Ok(measurements) => measurements,
        Err(reason) => return stream.send(&Record::Refused(reason)),
    };
    stream.send(&Record::Provenance(provenance(facts)))?;
    prepare_control_thread();
    let mut sent = Finished {
        recordings: 0,
        unsupported: 0,
    };
    let mut titles = BTreeMap::new();
    for ((step, measurement), number) in plan.steps.iter().zip(&measurements).zip(0..) {
        if status_page::is_stop_requested() {
            break;
        }
        marker::step();
        stream.send(&Record::Started(Started {
            step: number,
            probe: step.probe.clone(),
            load: step.load.clone(),
            nominal: measurement.nominal(),
        }))?;
        status_page::begin_step(number);
        match measure(plan, step, number, measurement.as_ref()) {
            Ok(recordings) => {
                for mut recording in recordings {
                    tell_apart(&mut recording, &mut titles);
                    stream.send(&Record::Recording(Box::new(recording)))?;
                    sent.recordings += 1;
                }
            }
            // It is no property of the subject that the step was cut short.
            Err(_) if status_page::is_stop_requested() => {}
            Err(reason) => {
                stream.send(&Record::Unsupported(Unsupported {
                    probe: step.probe.clone(),
                    load: step.load.clone(),
                    reason: explained(plan, reason),
                }))?;
                sent.unsupported += 1;
            }
        }
    }
    marker::end();
    stream.send(&if status_page::is_stop_requested() {
        Record::Interrupted(sent)
    } else {
        Record::Finished(sent)
    })
}

/// What is judged, and what was put in order before.
fn provenance(facts: BTreeMap<String, String>) -> Provenance {
    scratch::remove_left_behind();
    let restored = setting::restore_left_behind();
    let mut provenance = provenance::read();
    provenance.facts.extend(facts);
    if !restored.is_empty() {
        let text = restored.join(", ");
        provenance.facts.insert("restored_after_crash".into(), text);
    }
    provenance
}

/// Numbers recordings of the same name: a plan may measure the same twice, in two ways.
fn tell_apart(recording: &mut Recording, titles: &mut BTreeMap<String, u32>) {
    let times = titles.entry(recording.title()).or_default();
    *times += 1;
    recording.number(*times);
}

/// A reason, and the reason for it where a module could not be brought along.
fn explained(plan: &Plan, reason: String) -> String {
    let missing = |(module, _): &(&String, &String)| reason.contains(&format!("/dev/{module}"));
    match plan.absent.iter().find(missing) {
        Some((_, why)) => format!("{reason}: {why}"),
        None => reason,
    }
}

/// All steps, parsed before the first is begun.
fn understand(plan: &Plan) -> Result<Vec<Box<dyn Measurement>>, String> {
    let parse = |(step, number): (&Step, u32)| {
        if step.load != IDLE && !plan.loads.contains_key(&step.load) {
            return Err(format!(
                "step {number}: the plan has no load \"{}\"",
                step.load
            ));
        }
        probes::parse(&step.probe, &step.params).map_err(|why| format!("step {number}: {why}"))
    };
    plan.steps.iter().zip(1..).map(parse).collect()
}

/// Lets the calling thread start and stop loads while these take all the CPU there is.
fn prepare_control_thread() {
    // Without the right to do so loads may start and stop late, but the probes, which
    // insist on their own scheduling and on locked memory, will say so themselves.
    let _ = sched::set_fifo(CONTROL_PRIORITY);
    let _ = rt::lock_memory();
    let _ = process::adopt_orphans();
}

fn measure(
    plan: &Plan,
    step: &Step,
    number: u32,
    measurement: &dyn Measurement,
) -> Result<Vec<Recording>, String> {
    let mut phases = Phases::new(plan.seed, number);
    let load = plan.loads.get(&step.load);
    let running = load.map(|load| start(load, &mut phases)).transpose()?;
    let result = measurement.run(&mut Context {
        load: &step.load,
        phases,
    });
    let work = running.map(RunningLoad::stop).transpose();
    let (mut recordings, work) = (result?, work?.unwrap_or_default());
    let interrupted = status_page::is_stop_requested();
    // What was cut short before its first sample was not measured.
    recordings.retain(|recording| !interrupted || recording.count > 0);
    for recording in &mut recordings {
        recording.interrupted = interrupted;
        recording.step = Some(number);
        recording.work.clone_from(&work);
    }
    Ok(recordings)
}

fn start(load: &Load, phases: &mut Phases) -> Result<RunningLoad, String> {
    let running = RunningLoad::start(load, phases)?;
    time::sleep(SETTLING);
    Ok(running)
}

#[cfg(test)]
mod tests {
    use punctual_model::Recorder;

    use super::*;

    #[test]
    fn recordings_of_one_name_are_told_apart() {
        let mut titles = BTreeMap::new();
        let mut variant = |probe, variant| {
            let mut recording = Recorder::new(0).finish(probe, IDLE, variant);
            tell_apart(&mut recording, &mut titles);
            recording.variant
        };
        assert_eq!(variant("timer", "cpu0"), "cpu0");
        assert_eq!(variant("timer", "cpu0"), "cpu0 (2)");
        assert_eq!(variant("timer", "cpu1"), "cpu1");
        assert_eq!(variant("kthreads", ""), "");
        assert_eq!(variant("kthreads", ""), "(2)");
        assert_eq!(variant("timer", "cpu0"), "cpu0 (3)");
    }
}
