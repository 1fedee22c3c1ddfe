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
        match found.map(|found| &found.preemption) {
            Some(Preemption::None | Preemption::Voluntary) => Self::Asked,
            Some(Preemption::Rt) => Self::Rt,
            _ => Self::Full,
        }
    }
}
