// SPDX-License-Identifier: MIT OR Apache-2.0
//! The breakdown of a sample: splits the time between the moment when it was due and the moment
//! when it was taken into parts that add up to its lateness exactly.

mod arrivals;
mod attribution;
mod cause;
mod context;
mod cycle;
mod frame;
mod functions;
mod ipi;
mod part;
mod parts;
mod spin;
mod stages;
#[cfg(test)]
mod tests;
mod threads;

use punctual_model::Nanos;
use punctual_model::probe::SampleSpan;

use crate::names::Name;
use crate::walk::{Moment, Walk};

use attribution::Attribution;

pub use context::{SampleContext, Unexplained};
pub use part::{
    Arrival, Breakdown, Cause, FunctionSpan, FunctionTime, Holder, Ipi, Part, PathStage, Spin,
};

/// Breaks down the sample in a window.
pub fn breakdown(
    walk: &Walk,
    names: &[Name],
    about: SampleContext,
) -> Result<Breakdown, Unexplained> {
    if about.late.0 <= 0 {
        return Err(Unexplained::NotLate);
    }
    let own = |clock: &&Moment| clock.cpu == walk.cpu;
    let end = if let Some([_, end]) = about.cycle {
        end
    } else {
        let clock = walk.clocks.iter().rfind(own).ok_or(Unexplained::NoClock)?;
        let after = about.clock.instructions(about.ends_before);
        clock.at.saturating_sub(after)
    };
    let attribution = Attribution::new(walk, names, about, end)?;
    let mut pieces = attribution.parts();
    attribution.mend(&mut pieces);
    let parts: Vec<Part> = pieces.iter().map(|one| attribution.part(one)).collect();
    let culprit = culprit_of(&parts, about.late);
    let rest = |number: usize| attribution.note_of_rest(&pieces[number], held(&parts, number));
    let mut notes = attribution.notes();
    notes.extend(culprit.and_then(rest));
    Ok(Breakdown {
        span: about.span,
        late: about.late,
        culprit,
        flame: attribution.flame(),
        functions: attribution.functions(),
        blocks: attribution.blocks(),
        arrivals: attribution.arrivals(),
        ipis: attribution.ipis(),
        spins: attribution.spins(),
        notes,
        parts,
    })
}

/// Returns the line of a program that ran, or for which the kernel worked, at a time after a cycle
/// was due; without a line, its function.
pub fn line_at(walk: &Walk, names: &[Name], about: SampleContext, after: Nanos) -> Option<String> {
    let [_, end] = about.cycle?;
    let attribution = Attribution::new(walk, names, about, end).ok()?;
    attribution.line_at(after).map(str::to_owned)
}

/// Returns the part that is to blame, if one took at least a fifth of what its own CPU took.
pub fn culprit_of(parts: &[Part], late: Nanos) -> Option<usize> {
    let own = late - others(parts);
    culprit(parts).filter(|number| held(parts, *number).0 * 5 >= own.0)
}

/// Returns the time of other CPUs' turns, without those that were waited for.
fn others(parts: &[Part]) -> Nanos {
    let turns = parts.iter().filter(|part| part.cause == Cause::OtherTurn);
    turns.fold(Nanos::ZERO, |sum, part| sum + part.length)
}

/// Returns the part that stood in the way for longest, with those that are the same.
fn culprit(parts: &[Part]) -> Option<usize> {
    let in_the_way = |number: &usize| parts[*number].cause.is_in_the_way();
    let numbers = (0..parts.len()).filter(in_the_way);
    numbers.max_by_key(|number| (held(parts, *number), parts[*number].length))
}

/// Returns the time of a part and those like it together: an interrupt splits what is one.
/// Interrupts themselves each count on their own.
fn held(parts: &[Part], number: usize) -> Nanos {
    if matches!(parts[number].cause, Cause::HardIrq | Cause::Exception) {
        return parts[number].length;
    }
    // A tracer knows of another thread only its name.
    let function = |part: &Part| match (&part.main, part.cause) {
        (Some(main), _) => Some(main.function.clone()),
        (None, Cause::OtherThread) => Some(part.thread.clone()),
        (None, _) => None,
    };
    // What another CPU does while it is waited for is part of the waiting.
    let key = |part: &Part| match part.cause {
        Cause::Spin | Cause::AwaitedTurn => (Cause::Spin, part.by.clone(), None),
        cause => (cause, part.by.clone(), function(part)),
    };
    let own = key(&parts[number]);
    let alike = parts.iter().filter(|part| key(part) == own);
    alike.fold(Nanos::ZERO, |sum, part| sum + part.length)
}

impl Breakdown {
    /// Creates a breakdown without parts.
    pub fn empty(span: SampleSpan, late: Nanos) -> Self {
        Self {
            span,
            late,
            parts: Vec::new(),
            culprit: None,
            flame: Vec::new(),
            functions: Vec::new(),
            blocks: Vec::new(),
            arrivals: Vec::new(),
            ipis: Vec::new(),
            spins: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Returns the time of other CPUs' turns; `None` if there is only one CPU.
    pub fn others(&self) -> Option<Nanos> {
        let several = self.parts.iter().any(|part| part.cpu.is_some());
        let turns = self.parts.iter().filter(|part| part.cause.is_turn());
        several.then(|| turns.fold(Nanos::ZERO, |sum, part| sum + part.length))
    }

    /// Returns how long the culprit stood in the way, all its parts together.
    pub fn held(&self) -> Nanos {
        self.culprit
            .map_or(Nanos::ZERO, |number| held(&self.parts, number))
    }
}
