// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a kernel lets a thread be preempted by, as far as breakdowns differ by it.

use punctual_model::{Preemption as Model, Run};

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
        match found.map(|found| &found.preemption) {
            Some(Model::None | Model::Voluntary) => Self::Asked,
            Some(Model::Rt) => Self::Rt,
            _ => Self::Full,
        }
    }
}
