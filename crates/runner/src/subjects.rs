// SPDX-License-Identifier: MIT OR Apache-2.0
//! The subjects of a run: the suite's own, or others that the caller names.

use std::collections::BTreeSet;

use punctual_model::suite::{SubjectSpec, Suite};

use crate::{Error, preemption};

/// The caller's choice of subjects.
#[derive(Clone, Debug, Default)]
pub struct Choice<'a> {
    /// Kernels that replace the suite's.
    pub kernels: &'a [String],
    /// Boot arguments: each kernel gets one subject for each of them.
    pub boots: &'a [String],
    /// Names, to which the suite's subjects are restricted.
    pub names: &'a [String],
}

/// The subjects, in the order in which they are shown.
///
/// # Errors
/// If a subject is named twice or does not exist, or if its boot arguments ask for a preemption
/// model that no kernel knows.
pub fn choose(suite: &Suite, choice: &Choice) -> Result<Vec<SubjectSpec>, Error> {
    for (what, given) in [
        ("kernel", choice.kernels),
        ("subject", choice.names),
        ("boot argument", choice.boots),
    ] {
        once(what, given)?;
    }
    let subjects = combine(suite, choice)?;
    for subject in &subjects {
        if let Some(mistake) = preemption::mistake(&subject.boot) {
            let name = &subject.name;
            return Err(Error::Request(format!("subject \"{name}\": {mistake}")));
        }
    }
    Ok(subjects)
}

fn once(what: &str, given: &[String]) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    // Other spaces are no other arguments.
    let words = |one: &String| one.split_whitespace().collect::<Vec<_>>().join(" ");
    match given.iter().find(|one| !seen.insert(words(one))) {
        Some(twice) => Err(Error::Request(format!(
            "{what} \"{twice}\" is named twice: it would be measured twice"
        ))),
        None => Ok(()),
    }
}

fn combine(suite: &Suite, choice: &Choice) -> Result<Vec<SubjectSpec>, Error> {
    let bases = if choice.kernels.is_empty() {
        pick(suite, choice.names)?
    } else {
        choice.kernels.iter().map(|id| bare(id)).collect()
    };
    if choice.boots.is_empty() {
        return Ok(bases);
    }
    let with_boots = |base: &SubjectSpec| {
        let with = |boot: &String| with_boot(base, boot);
        choice.boots.iter().map(with).collect::<Vec<_>>()
    };
    Ok(bases.iter().flat_map(with_boots).collect())
}

fn pick(suite: &Suite, names: &[String]) -> Result<Vec<SubjectSpec>, Error> {
    if suite.subjects.is_empty() {
        return Err(Error::Request(format!(
            "suite \"{}\" names no subject, and no kernel is named",
            suite.name
        )));
    }
    if names.is_empty() {
        return Ok(suite.subjects.clone());
    }
    let find = |name: &String| {
        let found = suite.subjects.iter().find(|subject| subject.name == *name);
        found.cloned().ok_or_else(|| {
            let known: Vec<&str> = suite.subjects.iter().map(|s| s.name.as_str()).collect();
            Error::unknown("subject", name, &known)
        })
    };
    names.iter().map(find).collect()
}

fn bare(kernel: &str) -> SubjectSpec {
    SubjectSpec {
        name: kernel.to_owned(),
        kernel: kernel.to_owned(),
        boot: String::new(),
    }
}

/// A subject with further boot arguments, which become part of its name: it has the same name alone
/// and beside others.
fn with_boot(base: &SubjectSpec, boot: &str) -> SubjectSpec {
    let words = |parts: [&str; 2]| parts.join(" ").trim().to_owned();
    SubjectSpec {
        name: words([&base.name, boot]),
        kernel: base.kernel.clone(),
        boot: words([&base.boot, boot]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite() -> Suite {
        let text = "name = \"s\"\nsummary = \"\"\n\
            [[subject]]\nname = \"none\"\nkernel = \"k\"\nboot = \"preempt=none\"\n\
            [[subject]]\nname = \"rt\"\nkernel = \"k-rt\"\n\
            [[step]]\nprobe = \"timer\"\n";
        Suite::parse(text).unwrap()
    }

    fn shown(kernels: &[&str], boots: &[&str], names: &[&str]) -> Result<Vec<String>, Error> {
        let owned = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let (kernels, boots, names) = (owned(kernels), owned(boots), owned(names));
        let choice = Choice {
            kernels: &kernels,
            boots: &boots,
            names: &names,
        };
        let show = |s: &SubjectSpec| format!("{}: {} [{}]", s.name, s.kernel, s.boot);
        Ok(choose(&suite(), &choice)?.iter().map(show).collect())
    }

    #[test]
    fn a_suite_has_its_own_subjects() {
        let all = ["none: k [preempt=none]", "rt: k-rt []"];
        assert_eq!(shown(&[], &[], &[]).unwrap(), all);
        assert_eq!(shown(&[], &[], &["rt"]).unwrap(), [all[1]]);
        assert!(
            shown(&[], &[], &["tr"])
                .unwrap_err()
                .to_string()
                .contains("did you mean rt?")
        );
    }

    #[test]
    fn what_is_named_twice_or_asks_for_an_unknown_model_is_refused() {
        let error = |kernels, boots, names| shown(kernels, boots, names).unwrap_err().to_string();
        assert!(error(&["k", "k"], &[], &[]).contains("kernel \"k\" is named twice"));
        assert!(error(&[], &[], &["rt", "rt"]).contains("subject \"rt\" is named twice"));
        assert!(error(&["k"], &["a", "a"], &[]).contains("named twice"));
        assert!(error(&["k"], &["a b", " a  b"], &[]).contains("\" a  b\" is named twice"));
        assert!(error(&["k"], &["preempt=fulll"], &[]).contains("did you mean full?"));
    }

    #[test]
    fn kernels_and_boot_arguments_of_the_command_line_come_first() {
        assert_eq!(
            shown(&["mine"], &["a b"], &[]).unwrap(),
            ["mine a b: mine [a b]"]
        );
        assert_eq!(
            shown(&["mine"], &["a", "b"], &[]).unwrap(),
            ["mine a: mine [a]", "mine b: mine [b]"]
        );
        assert_eq!(
            shown(&[], &["quiet"], &["none"]).unwrap(),
            ["none quiet: k [preempt=none quiet]"]
        );
    }
}
