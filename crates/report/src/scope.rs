// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the scope found, as people and programs see it: text, page, JSON, a viewer's trace.

pub mod chrome;
pub mod compare;
mod flame;
pub mod json;
pub mod page;
pub mod text;

use punctual_model::Run;
use punctual_scope::explain::Explained;
use std::fmt::Write as _;

/// `timer / stress / cpu0, sample 2089`.
fn title(run: &Run, explained: &Explained) -> String {
    let recording = &run.recordings[explained.chosen.recording];
    let (title, sample) = (recording.title(), explained.chosen.sample.seq);
    format!("{title}, sample {sample}")
}

/// The command that explains these samples of the stored run.
fn command(run: &Run, explained: &[Explained]) -> String {
    let mut words = format!("punctual explain {}", run.id);
    if let [one] = explained {
        let recording = &run.recordings[one.chosen.recording];
        let (probe, load) = (&recording.key.probe, &recording.key.load);
        let (variant, sample) = (recording.key.label(), one.chosen.sample.seq);
        let variant = crate::repeat::quoted(&variant);
        let _ = write!(
            words,
            " --probe {probe} --load {load} --variant {variant} --sample {sample}"
        );
    } else {
        let _ = write!(words, " --worst {}", explained.len());
    }
    words
}
