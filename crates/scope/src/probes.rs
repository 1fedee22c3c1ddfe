//! Which probes mark their samples, and how their stages lie within a window.

use punctual_model::{Nanos, Recording, Run, Sample};
use punctual_trace::Window;

use crate::breakdown::Measure;
use crate::error::ScopeError;
use crate::windows;

/// A sample that can be explained: where it is, and what it is.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    /// The recording's number in the run.
    pub recording: usize,
    /// The sample.
    pub sample: Sample,
    /// From when to when it is.
    pub measure: Measure,
    /// Where the plugin finds it.
    pub window: Window,
    /// How long before the last reading of the clock it ended.
    pub ends_before: Nanos,
}

/// The stages of a probe that are one after the other in the same window, each a variant.
fn stages(recording: &Recording) -> &'static [&'static str] {
    match (recording.key.probe.as_str(), recording.key.variant.as_str()) {
        ("signal", _) => &["to", "from"],
        ("irq", "whole") => &["whole"],
        ("irq", _) => &["hard", "thread", "reader"],
        _ => &[],
    }
}

/// From when to when a recording's samples are; an error is the reason why they cannot be
/// explained.
pub fn measure(recording: &Recording) -> Result<Measure, String> {
    let why = match recording.key.probe.as_str() {
        "timer" | "realfeel" | "signal" | "irq" => return Ok(Measure::Lateness),
        "mutex" | "semaphore" | "switch" | "inversion" => return Ok(Measure::Handover),
        "tick" => return Ok(Measure::Gap),
        "hackbench" | "program" | "image" => {
            "is the time that whole programs take, which is throughput, not a latency"
        }
        "clock" => "is the clock read without a pause, and marks would be in each sample",
        _ => "has no samples of the time between two moments",
    };
    Err(format!("not explained: {} {why}", recording.title()))
}

/// Whether the samples of a recording can be explained: what they are and where is known.
pub fn is_explained(run: &Run, recording: usize) -> Result<(), ScopeError> {
    let unreadable = |what: String| ScopeError::Unreadable(run.id.clone(), what);
    let chosen = &run.recordings[recording];
    measure(chosen).map_err(unreadable)?;
    Ok(())
}

/// A sample of a recording that [`is_explained`], with all that is needed to find it again.
pub fn choose(run: &Run, recording: usize, sample: Sample) -> Result<Chosen, ScopeError> {
    let unreadable = |what: String| ScopeError::Unreadable(run.id.clone(), what);
    let chosen = &run.recordings[recording];
    let numbered = run.recordings.iter().enumerate();
    let of_step = numbered.filter(|(_, other)| other.key.step == chosen.key.step);
    let (numbers, of_step): (Vec<usize>, Vec<&Recording>) = of_step.unzip();
    let place = numbers.iter().position(|number| *number == recording);
    let index = windows::number(&of_step, place.unwrap_or_default(), sample);
    Ok(Chosen {
        recording,
        sample,
        measure: measure(chosen).map_err(unreadable)?,
        window: Window {
            step: chosen.key.step,
            index: index.map_err(unreadable)?,
        },
        ends_before: ends_before(&of_step, chosen, sample).map_err(unreadable)?,
    })
}

/// How long the stages of the same sample are that follow its own.
fn ends_before(step: &[&Recording], chosen: &Recording, sample: Sample) -> Result<Nanos, String> {
    let own = |stage: &&&str| **stage != chosen.key.variant;
    let later = stages(chosen).iter().skip_while(own).skip(1);
    let mut sum = Nanos::ZERO;
    for stage in later {
        let found = step.iter().find(|other| other.key.variant == *stage);
        let found = found.and_then(|other| other.samples.iter().nth(sample.seq as usize));
        let found =
            found.ok_or_else(|| format!("the same sample's stage \"{stage}\" was not kept"))?;
        sum += found.value;
    }
    Ok(sum)
}
