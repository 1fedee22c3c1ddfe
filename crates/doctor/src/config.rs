// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a kernel was configured when it was built.

use std::collections::BTreeSet;

/// The options of a kernel that are on.
#[derive(Debug)]
pub struct Config(BTreeSet<String>);

impl Config {
    /// Reads a kernel's `.config`; `None` where it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let option = |line: &str| {
            let (name, value) = line.strip_prefix("CONFIG_")?.split_once('=')?;
            ["y", "m"].contains(&value).then(|| name.to_owned())
        };
        let on: BTreeSet<String> = text.lines().filter_map(option).collect();
        (!on.is_empty()).then_some(Self(on))
    }

    /// Whether an option (`PREEMPT_RT`) is on, built in or as a module.
    pub fn has(&self, option: &str) -> bool {
        self.0.contains(option)
    }

    /// Those of these options that are on.
    pub fn which(&self, options: &[&str]) -> Vec<String> {
        let on = options.iter().filter(|option| self.has(option));
        on.map(|option| format!("CONFIG_{option}")).collect()
    }
}
