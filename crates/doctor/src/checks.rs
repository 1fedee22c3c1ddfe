// SPDX-License-Identifier: MIT OR Apache-2.0
//! All checks: a table for each kind of thing that they examine.

mod arguments;
mod hardware;
mod isolation;
mod kernel;
mod process;
mod settings;
mod source;

use std::cmp::Reverse;

use crate::check::{Check, Diagnosis, Finding, Verdict};
use crate::machine::Machine;

pub(crate) use settings::SIZES_OF_HUGE_PAGES;

/// All checks, by the kind of thing that they examine.
pub const ALL: [&[Check]; 6] = [
    kernel::CHECKS,
    arguments::CHECKS,
    settings::CHECKS,
    isolation::CHECKS,
    process::CHECKS,
    hardware::CHECKS,
];

/// Runs those checks on a machine for which `is_wanted` returns true.
pub fn examine(machine: &Machine, is_wanted: &dyn Fn(&Check) -> bool) -> Diagnosis {
    let wanted = ALL.into_iter().flatten().filter(|check| is_wanted(check));
    let find = |check: &'static Check| Finding {
        check,
        severity: check.severity,
        verdict: (check.look)(machine).unwrap_or_else(Verdict::Unknown),
    };
    let mut findings: Vec<Finding> = wanted.map(find).collect();
    findings.sort_by_key(|one| Reverse(one.severity));
    Diagnosis(findings)
}
