// SPDX-License-Identifier: MIT OR Apache-2.0
//! The preemption model with which a subject is booted, and the one with which it runs.

use std::fs;

use punctual_kernels::Kernel;
use punctual_model::Preemption;

use crate::Error;
use crate::error::did_you_mean;

/// The values that the boot argument `preempt=` accepts (`kernel/sched/core.c`,
/// `sched_dynamic_mode`).
const MODELS: [&str; 4] = ["none", "voluntary", "full", "lazy"];

/// The value of `preempt=` in boot arguments; the last one counts.
fn asked_for(boot: &str) -> Option<&str> {
    let mut words = boot.split_whitespace().rev();
    words.find_map(|word| word.strip_prefix("preempt="))
}

/// The fault in the preemption model that boot arguments ask for, if there is one.
pub fn mistake(boot: &str) -> Option<String> {
    let asked = asked_for(boot).filter(|asked| !MODELS.contains(asked))?;
    Some(format!(
        "expected preempt={}, found preempt={asked}{}",
        MODELS.join("|"),
        did_you_mean(asked, &MODELS)
    ))
}

/// The fault in the preemption model that boot arguments ask for, if this kernel does not offer it.
/// A kernel of unknown configuration may offer any model: the one that it runs is read back.
///
/// # Errors
/// If its configuration cannot be read.
pub fn not_offered(kernel: &Kernel, boot: &str) -> Result<Option<String>, Error> {
    let (Some(asked), Some(config)) = (asked_for(boot), &kernel.config) else {
        return Ok(None);
    };
    let config = fs::read_to_string(config).map_err(Error::at(config))?;
    let offered = offered(&config, &kernel.release);
    let mistake = || {
        format!(
            "expected preempt={}, as {} offers, found preempt={asked}",
            offered.join("|"),
            kernel.id
        )
    };
    Ok((!offered.contains(&asked)).then(mistake))
}

/// The models among which `preempt=` chooses on a kernel of this configuration, or its only model
/// (`kernel/Kconfig.preempt`; `kernel/sched/core.c`, `sched_dynamic_mode`). From Linux 7.0 on, none
/// and voluntary exist only if the architecture has no lazy.
fn offered(config: &str, release: &str) -> Vec<&'static str> {
    let has = |option: &str| {
        let mut lines = config.lines();
        lines.any(|line| {
            line.strip_prefix("CONFIG_")
                .and_then(|l| l.strip_suffix("=y"))
                == Some(option)
        })
    };
    let lazy = has("ARCH_HAS_PREEMPT_LAZY");
    let major = release
        .split('.')
        .next()
        .and_then(|major| major.parse().ok());
    let narrowed = lazy && major.is_some_and(|major: u32| major >= 7);
    let offers = |model: &str| match model {
        "full" => has("PREEMPT_RT") || has("PREEMPT_DYNAMIC") || has("PREEMPT"),
        "lazy" if has("PREEMPT_DYNAMIC") => lazy,
        "lazy" => has("PREEMPT_LAZY") && !has("PREEMPT_RT"),
        _ if has("PREEMPT_RT") => false,
        _ if has("PREEMPT_DYNAMIC") => !narrowed,
        "voluntary" => has("PREEMPT_VOLUNTARY"),
        _ => has("PREEMPT_NONE"),
    };
    MODELS.into_iter().filter(|model| offers(model)).collect()
}

/// The contradiction between the boot arguments and the model that was read back from the kernel,
/// if there is one. A model that could not be read contradicts nothing. `PREEMPT_RT` is always full
/// or lazy.
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
    fn a_kernel_offers_what_its_configuration_has() {
        let dynamic = "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\n";
        let lazy = "CONFIG_PREEMPT_DYNAMIC=y\nCONFIG_ARCH_HAS_PREEMPT_LAZY=y\n";
        let rt = "CONFIG_PREEMPT_RT=y\nCONFIG_PREEMPT_LAZY=y\n";
        assert_eq!(
            offered(dynamic, "6.12.117+deb12-amd64"),
            ["none", "voluntary", "full"]
        );
        assert_eq!(offered(lazy, "6.18.5+deb13-amd64"), MODELS);
        assert_eq!(offered(lazy, "7.2.12+deb13-amd64"), ["full", "lazy"]);
        assert_eq!(
            offered(&format!("{lazy}{rt}"), "6.12.1-rt"),
            ["full", "lazy"]
        );
        // The patch set of 6.1: it has no choice.
        assert_eq!(offered(rt, "6.1.0-49-rt-amd64"), ["full"]);
        assert_eq!(
            offered("CONFIG_PREEMPT_VOLUNTARY=y\n", "5.10.0-30-amd64"),
            ["voluntary"]
        );
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
