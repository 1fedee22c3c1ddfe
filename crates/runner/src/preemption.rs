//! The preemption model that a subject is booted with, and the one that it runs with.

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
pub fn contradiction(boot: &str, found: &str) -> Option<String> {
    let asked = asked_for(boot)?;
    let is_unknown = !MODELS.contains(&found) && found != "rt";
    let is_rt = found == "rt" && ["full", "lazy"].contains(&asked);
    if asked == found || is_unknown || is_rt {
        return None;
    }
    Some(format!(
        "asked for preempt={asked}, the kernel runs {found}: nothing is measured"
    ))
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
        assert_eq!(contradiction("preempt=none preempt=full", "full"), None);
        assert_eq!(contradiction("quiet", "voluntary"), None);
        assert_eq!(contradiction("preempt=full", "unknown: no debugfs"), None);
        assert_eq!(contradiction("preempt=lazy", "rt"), None);
        assert!(contradiction("preempt=none", "rt").is_some());
        let said = contradiction("preempt=full", "voluntary").unwrap();
        assert!(said.starts_with("asked for preempt=full, the kernel runs voluntary"));
    }
}
