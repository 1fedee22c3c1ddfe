// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the plugin is told: which windows to watch, and where to write.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::arch::Arch;

/// A sample whose making is watched: from where it is armed to where it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    /// The step's number in the plan, from 0.
    pub step: u32,
    /// Its number among those of this step, from 0.
    pub index: u64,
    /// The CPU whose samples alone are counted, where each of several takes its own; none: those
    /// of all CPUs are.
    pub cpu: Option<u32>,
}

/// All that the plugin is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// The file, or the pipe, that the trace is written to.
    pub trace: PathBuf,
    /// How many words of a window are kept at most: the last ones.
    pub ring: usize,
    /// What is watched, in the order of time.
    pub windows: Vec<Window>,
    /// Everything is watched, from the first step to the end.
    pub everything: bool,
    /// Code whose accesses to memory are written too: from, and up to.
    pub memory: Vec<(u64, u64)>,
    /// How many virtual CPUs take turns, where there is more than one.
    pub cpus: Option<u32>,
    /// Whose instructions the guest executes.
    pub arch: Arch,
}

impl Orders {
    /// As text, one order to a line.
    pub fn to_text(&self) -> String {
        let (trace, ring, arch) = (self.trace.display(), self.ring, self.arch.name());
        let mut text = format!("trace {trace}\nring {ring}\narch {arch}\n");
        if self.everything {
            text.push_str("everything\n");
        }
        for (from, to) in &self.memory {
            let _ = writeln!(text, "memory {from:x} {to:x}");
        }
        if let Some(cpus) = self.cpus {
            let _ = writeln!(text, "cpus {cpus}");
        }
        for Window { step, index, cpu } in &self.windows {
            let cpu = cpu.map_or_else(String::new, |cpu| format!(" {cpu}"));
            let _ = writeln!(text, "window {step} {index}{cpu}");
        }
        text
    }

    /// What [`Self::to_text`] wrote; an error names the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut orders = Self::default();
        for line in text.lines() {
            orders
                .take(line)
                .ok_or_else(|| format!("expected an order, found \"{line}\""))?;
        }
        Ok(orders)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut fields = rest.split(' ');
        match word {
            "trace" => self.trace = rest.into(),
            "ring" => self.ring = rest.parse().ok()?,
            "arch" => self.arch = Arch::named(rest)?,
            "everything" => self.everything = true,
            "memory" => {
                let mut address = || u64::from_str_radix(fields.next()?, 16).ok();
                self.memory.push((address()?, address()?));
            }
            "cpus" => self.cpus = Some(rest.parse().ok()?),
            "window" => self.windows.push(Window {
                step: fields.next()?.parse().ok()?,
                index: fields.next()?.parse().ok()?,
                cpu: fields.next().map(str::parse).transpose().ok()?,
            }),
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_survive_their_travel_and_nonsense_is_named() {
        let orders = Orders {
            trace: "/tmp/a b/trace".into(),
            ring: 1000,
            windows: [None, Some(3)]
                .map(|cpu| Window {
                    step: 2,
                    index: 4711,
                    cpu,
                })
                .into(),
            everything: true,
            memory: vec![(0xffff_ffff_8100_0000, 0xffff_ffff_8100_0100)],
            cpus: Some(4),
            arch: Arch::Aarch64,
        };
        assert_eq!(Orders::parse(&orders.to_text()), Ok(orders));
        assert!(
            Orders::parse("window 1 x")
                .unwrap_err()
                .contains("window 1 x")
        );
    }
}
