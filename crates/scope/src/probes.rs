// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the samples that can be explained, by what their probes say of them.

use punctual_agent::probes;
use punctual_model::place;
use punctual_model::probe::{SampleSpan, Watched, Windows};
use punctual_model::{Nanos, Recording, Run, Sample};
use punctual_trace::Window;

use crate::cycle;
use crate::error::ScopeError;
use crate::windows;

/// A sample that can be explained, with its place.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    /// The recording's number in the run.
    pub recording: usize,
    /// The sample.
    pub sample: Sample,
    /// The span of the sample.
    pub span: SampleSpan,
    /// The window in which the plugin finds it.
    pub window: Window,
    /// Time from its end to the last reading of the clock.
    pub ends_before: Nanos,
    /// The whole response of a program's cycle, and the lateness of its start.
    pub cycle: Option<[Nanos; 2]>,
}

/// Returns what the probe says of a recording's samples. The error is the reason why they cannot be
/// explained.
pub fn watched(recording: &Recording) -> Result<&'static Watched, String> {
    let (title, probe) = (recording.title(), &recording.key.probe);
    let info = probes::info(probe)
        .ok_or_else(|| format!("not explained: {title}: unknown probe \"{probe}\""))?;
    let watched = info.scope.as_ref();
    let watched = watched.map_err(|why| {
        format!("not explained: {title} {why}; `punctual profile` shows where its step's time goes")
    })?;
    let variant = recording.key.variant.as_str();
    let mut stages = watched.stages.iter().copied().flatten();
    let is_known = watched.stages.is_empty() || stages.any(|stage| *stage == variant);
    if watched.windows == Windows::BySwitch && place::thread_of(variant).is_none() {
        return Err(format!(
            "not explained: {title} is a figure of the program's own"
        ));
    }
    let unknown = || format!("not explained: {title}: unknown stage \"{variant}\"");
    is_known.then_some(watched).ok_or_else(unknown)
}

/// Checks that the samples of a recording can be explained: their kind and place are known.
pub fn is_explained(run: &Run, recording: usize) -> Result<(), ScopeError> {
    let found = watched(&run.recordings[recording]).map(|_| ());
    found.map_err(|why| ScopeError::NotTold(run.id.clone(), why))
}

/// Chooses a sample of a recording that [`is_explained`], with all that is needed to find it again.
pub fn choose(run: &Run, recording: usize, sample: Sample) -> Result<Chosen, ScopeError> {
    let unreadable = |what: String| ScopeError::Unreadable(run.id.clone(), what);
    let chosen = &run.recordings[recording];
    let watched = watched(chosen).map_err(unreadable)?;
    let numbered = run.recordings.iter().enumerate();
    let of_step = numbered.filter(|(_, other)| other.key.step == chosen.key.step);
    let (numbers, of_step): (Vec<usize>, Vec<&Recording>) = of_step.unzip();
    if watched.windows == Windows::BySwitch {
        return cycle::choose(&run.recordings, recording, sample).map_err(unreadable);
    }
    let place = numbers.iter().position(|number| *number == recording);
    let index = windows::number(watched.windows, &of_step, place.unwrap_or_default(), sample);
    Ok(Chosen {
        recording,
        sample,
        span: watched.span,
        window: Window {
            step: chosen.key.step,
            index: index.map_err(unreadable)?,
            cpu: counted_on(run, watched, chosen),
        },
        ends_before: ends_before(watched, &of_step, chosen, sample).map_err(unreadable)?,
        cycle: None,
    })
}

/// Returns the CPU whose windows are counted, if each of several takes samples of its own.
fn counted_on(run: &Run, watched: &Watched, chosen: &Recording) -> Option<u32> {
    let machine = run.machine.as_virtual()?;
    let apart = machine.cpus > 1 && watched.windows == Windows::BySample;
    let cpu = chosen.settings.get("affinity").filter(|_| apart)?.text()?;
    cpu.strip_prefix("cpu")?.parse().ok()
}

/// Returns the length of the stages of the same sample that follow its own.
fn ends_before(
    watched: &Watched,
    step: &[&Recording],
    chosen: &Recording,
    sample: Sample,
) -> Result<Nanos, String> {
    let variant = chosen.key.variant.as_str();
    let group = watched.stages.iter().find(|group| group.contains(&variant));
    let stages = group.copied().unwrap_or_default();
    let later = stages.iter().skip_while(|stage| **stage != variant).skip(1);
    let mut sum = Nanos::ZERO;
    for stage in later {
        let found = step.iter().find(|other| other.key.variant == *stage);
        let found = found.and_then(|other| other.samples.iter().nth(sample.seq as usize));
        let found =
            found.ok_or_else(|| format!("the same sample's stage \"{stage}\" was not kept"))?;
        let value = found.value.0;
        let longer = sum.0.checked_add(value).filter(|_| value >= 0);
        sum = Nanos(longer.ok_or_else(|| format!("stage \"{stage}\" took {value} ns"))?);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use punctual_model::{Recorder, RecordingKey};

    use super::*;

    #[test]
    fn an_unknown_probe_or_stage_is_not_explained_and_is_named() {
        let reason = |probe: &str, variant: &str| {
            watched(&Recorder::new(0).finish(RecordingKey::new(probe, "idle", variant)))
                .unwrap_err()
        };
        assert!(reason("tmier", "cpu0").contains("unknown probe \"tmier\""));
        assert!(reason("irq", "soft").contains("unknown stage \"soft\""));
        assert!(reason("clock", "").contains("clock / idle /  is the clock read"));
        let mut known = Recorder::new(0).finish(RecordingKey::new("irq", "idle", "thread"));
        known.key.repetition = 2;
        assert_eq!(watched(&known).unwrap().span, SampleSpan::Lateness);
    }

    #[test]
    fn a_stage_ends_before_the_stages_that_follow_it() {
        let stage = |variant, value| {
            let mut recorder = Recorder::new(1);
            recorder.record(Nanos::ZERO, Nanos(value));
            recorder.finish(RecordingKey::new("irq", "idle", variant))
        };
        let stages = [("hard", 5), ("thread", 7), ("reader", 11), ("whole", 23)];
        let step = stages.map(|(variant, value)| stage(variant, value));
        let all: Vec<&Recording> = step.iter().collect();
        let before = |all: &[&Recording], own: usize| {
            let sample = step[own].samples.iter().next().unwrap();
            ends_before(watched(&step[own]).unwrap(), all, &step[own], sample)
        };
        let ends = [0, 1, 2, 3].map(|own| before(&all, own));
        assert_eq!(ends, [18, 11, 0, 0].map(|ns| Ok(Nanos(ns))));
        let reason = before(&all[..2], 0).unwrap_err();
        assert!(reason.contains("\"reader\" was not kept"), "{reason}");
    }
}
