//! What a kernel lets a thread be preempted by, as far as breakdowns differ by it.

use punctual_model::Run;

/// A preemption model, as the kernel itself names it in a run's provenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preemption {
    /// `none`, `voluntary`: kernel code goes on until it asks whether it is to.
    Asked,
    /// `full`, `lazy`: wherever nothing forbids it.
    Full,
    /// `PREEMPT_RT`: soft interrupts can be preempted, too.
    Rt,
}

impl Preemption {
    /// That of a run's subject.
    pub fn of(run: &Run) -> Self {
        let found = run.provenance.as_ref();
        match found.map_or("", |found| found.preemption.as_str()) {
            "none" | "voluntary" => Self::Asked,
            "rt" => Self::Rt,
            _ => Self::Full,
        }
    }
}
