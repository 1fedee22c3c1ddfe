// SPDX-License-Identifier: MIT OR Apache-2.0
//! The findings of the scope for people and programs: text, page, JSON, a viewer's trace.

pub mod arrivals;
pub mod audit;
pub mod bound;
pub mod chrome;
pub mod compare;
mod flame;
pub mod json;
pub mod page;
pub mod pasted;
pub mod text;

use punctual_model::Run;
use punctual_scope::explain::Explained;

use crate::repeat::quoted;

/// A sample with its obstacles, or the reason why its run could not be repeated.
pub type Story = Result<Explained, String>;

/// A story in one sentence.
pub(crate) fn told(story: &Story) -> String {
    match story.as_ref().map(|one| one.breakdown.as_ref()) {
        Ok(Ok(told)) => text::sentence(told),
        // An error may say it already.
        Ok(Err(why)) | Err(why) if why.contains("not explained: ") => why.clone(),
        Ok(Err(why)) | Err(why) => format!("not explained: {why}"),
    }
}

/// `timer / stress / cpu0, sample 2089`.
fn title(run: &Run, explained: &Explained) -> String {
    let recording = &run.recordings[explained.chosen.recording];
    let (title, sample) = (recording.title(), explained.chosen.sample.seq);
    format!("{title}, sample {sample}")
}

/// A run and its subject: `r3, full`, or with another sign between them.
fn name(run: &Run, sign: &str) -> String {
    format!("{}{sign} {}", run.id, run.subject.name)
}

/// The command that explains these samples of the stored run.
fn command(run: &Run, explained: &[Explained]) -> String {
    let id = &run.id;
    let [one] = explained else {
        return format!("punctual explain {id} --worst {}", explained.len());
    };
    let key = &run.recordings[one.chosen.recording].key;
    let words = [&key.probe, &key.load, &key.label()].map(|word| quoted(word));
    let ([probe, load, variant], sample) = (words, one.chosen.sample.seq);
    format!(
        "punctual explain {id} --probe {probe} --load {load} --variant {variant} --sample {sample}"
    )
}
