// SPDX-License-Identifier: MIT OR Apache-2.0
//! The preemptibility of a kernel, as far as breakdowns differ by it.

use punctual_model::{Preemption, Run};

/// The places where a kernel lets a thread be preempted, by the preemption model in a run's
/// provenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preemptibility {
    /// `none`, `voluntary`: kernel code goes on until it asks whether to give way.
    Asked,
    /// `full`, `lazy`: wherever nothing forbids it.
    Full,
    /// `PREEMPT_RT`: soft interrupts can be preempted, too.
    Rt,
}

impl Preemptibility {
    /// Returns the preemptibility of a run's subject.
    pub fn of(run: &Run) -> Self {
        let found = run.provenance.as_ref();
        found.map_or(Self::Full, |found| Self::of_model(&found.preemption))
    }

    /// Returns the preemptibility by a preemption model.
    pub fn of_model(model: &Preemption) -> Self {
        match model {
            cooperative if cooperative.is_cooperative() => Self::Asked,
            Preemption::Rt => Self::Rt,
            _ => Self::Full,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_was_built_for_none_or_voluntary_is_asked_whichever_it_is() {
        let built = Preemption::Unknown(Preemption::NONE_OR_VOLUNTARY.into());
        assert_eq!(Preemptibility::of_model(&built), Preemptibility::Asked);
        let hidden = Preemption::Unknown("no debugfs".into());
        assert_eq!(Preemptibility::of_model(&hidden), Preemptibility::Full);
    }
}
