// SPDX-License-Identifier: MIT OR Apache-2.0
//! The preemption model that a subject is booted with, and the one that it runs with.

use punctual_model::Preemption;

use crate::error::did_you_mean;

/// What the boot argument `preempt=` knows (`kernel/sched/core.c`, `sched_dynamic_mode`).
const MODELS: [&str; 4] = ["none", "voluntary", "full", "lazy"];

/// What boot arguments ask for with `preempt=`; the last one counts.
fn asked_for(boot: &str) -> Option<&str> {
    let mut words = boot.split_whitespace().rev();
    words.find_map(|word| word.strip_prefix("preempt="))
}

/// What is wrong with the preemption model that boot arguments ask for, if anything.
pub fn mistake(boot: &str) -> Option<String> {
    let asked = asked_for(boot).filter(|asked| !MODELS.contains(asked))?;
    Some(format!(
        "expected preempt={}, found preempt={asked}{}",
        MODELS.join("|"),
        did_you_mean(asked, &MODELS)
    ))
}

/// What contradicts the boot arguments in the model that was read back from the kernel. A
/// model that could not be read contradicts nothing. `PREEMPT_RT` is always full or lazy.
pub fn contradiction(boot: &str, found: &Preemption) -> Option<String> {
    let asked = asked_for(boot)?;
    let is_it = match found {
        Preemption::Unknown(_) => true,
        Preemption::Rt => ["full", "lazy"].contains(&asked),
        found => found.name() == asked,
    };
    (!is_it)
        .then(|| format!("asked for preempt={asked}, the kernel runs {found}: nothing is measured"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_model_is_a_mistake() {
        assert_eq!(mistake("quiet preempt=full"), None);
        assert_eq!(mistake("quiet"), None);
        let said = mistake("preempt=fulll").unwrap();
        assert!(said.contains("did you mean full?"), "{said}");
    }

    #[test]
    fn what_is_read_back_must_be_what_was_asked_for() {
        assert_eq!(
            contradiction("preempt=none preempt=full", &Preemption::Full),
            None
        );
        assert_eq!(contradiction("quiet", &Preemption::Voluntary), None);
        assert_eq!(contradiction("preempt=full", &Preemption::default()), None);
        assert_eq!(contradiction("preempt=lazy", &Preemption::Rt), None);
        assert!(contradiction("preempt=none", &Preemption::Rt).is_some());
        let said = contradiction("preempt=full", &Preemption::Voluntary).unwrap();
        assert!(said.starts_with("asked for preempt=full, the kernel runs voluntary"));
    }
}
