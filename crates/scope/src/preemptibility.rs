// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a kernel lets a thread be preempted by, as far as breakdowns differ by it.

use punctual_model::{Preemption, Run};

/// Where a kernel lets a thread be preempted, by the preemption model in a run's provenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preemptibility {
    /// `none`, `voluntary`: kernel code goes on until it asks whether it is to.
    Asked,
    /// `full`, `lazy`: wherever nothing forbids it.
    Full,
    /// `PREEMPT_RT`: soft interrupts can be preempted, too.
    Rt,
}

impl Preemptibility {
    /// That of a run's subject.
    pub fn of(run: &Run) -> Self {
        let found = run.provenance.as_ref();
        found.map_or(Self::Full, |found| Self::of_model(&found.preemption))
    }

    /// That of a preemption model.
    pub fn of_model(model: &Preemption) -> Self {
        match model {
            Preemption::None | Preemption::Voluntary => Self::Asked,
            Preemption::Rt => Self::Rt,
            _ => Self::Full,
        }
    }
}
