//! Which probes mark their samples, and how their stages lie within a window.

use punctual_model::{Nanos, Recording, Run, Sample};
use punctual_trace::Window;

use crate::repeat::{ScopeError, steps};

/// A sample that can be explained: where it is, and what it is.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    /// The recording's number in the run.
    pub recording: usize,
    /// The sample.
    pub sample: Sample,
    /// Where the plugin finds it.
    pub window: Window,
    /// How long before the last reading of the clock it ended.
    pub ends_before: Nanos,
}

/// The stages of a probe that are one after the other in the same window, each a variant.
fn stages(probe: &str, variant: &str) -> Option<&'static [&'static str]> {
    match (probe, variant) {
        ("timer" | "realfeel", _) => Some(&[]),
        ("signal", _) => Some(&["to", "from"]),
        ("irq", "whole") => Some(&["whole"]),
        ("irq", _) => Some(&["hard", "thread", "reader"]),
        _ => None,
    }
}

/// Whether the samples of a recording can be explained; if not, why.
pub fn is_explained(recording: &Recording) -> Result<(), String> {
    let stages = stages(&recording.probe, &recording.variant);
    stages.map(drop).ok_or_else(|| {
        format!(
            "not explained: {} has no samples that are due at a moment and late",
            recording.title()
        )
    })
}

/// A sample of a recording, with all that is needed to find it again.
pub fn choose(run: &Run, recording: usize, sample: Sample) -> Result<Chosen, ScopeError> {
    let unreadable = |what: String| ScopeError::Unreadable(run.id.clone(), what);
    let steps = steps(run)?;
    let chosen = &run.recordings[recording];
    is_explained(chosen).map_err(unreadable)?;
    let stages = stages(&chosen.probe, &chosen.variant).unwrap_or_default();
    let later = stages
        .iter()
        .skip_while(|stage| **stage != chosen.variant)
        .skip(1);
    let mut ends_before = Nanos::ZERO;
    for stage in later {
        let of_step = run.recordings.iter().zip(&steps);
        let mut found =
            of_step.filter(|(r, step)| **step == steps[recording] && r.variant == *stage);
        let found = found
            .next()
            .and_then(|(r, _)| r.samples.iter().nth(sample.seq as usize));
        let found = found.ok_or_else(|| {
            unreadable(format!("the same sample's stage \"{stage}\" was not kept"))
        })?;
        ends_before += found.value;
    }
    Ok(Chosen {
        recording,
        sample,
        window: Window {
            step: steps[recording],
            index: sample.seq,
        },
        ends_before,
    })
}
