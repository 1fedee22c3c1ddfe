// SPDX-License-Identifier: MIT OR Apache-2.0
//! Orders to the plugin: the windows to watch, and the place to write to.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::arch::Arch;

/// A sample whose making is watched: from the point where it is armed until it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    /// The step's number in the plan, from 0.
    pub step: u32,
    /// The sample's number among those of this step, from 0.
    pub index: u64,
    /// The only CPU whose samples are counted, if several CPUs each take their own; `None` if those
    /// of all CPUs are counted.
    pub cpu: Option<u32>,
}

/// All orders to the plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// The file, or the pipe, to which the trace is written.
    pub trace: PathBuf,
    /// The most words of a window that are kept: the last ones.
    pub ring: usize,
    /// The windows to watch, in order of time.
    pub windows: Vec<Window>,
    /// True if everything is watched, from the first step to the end.
    pub everything: bool,
    /// Ranges of code whose accesses to memory are written too: start and end, exclusive.
    pub memory: Vec<(u64, u64)>,
    /// The number of virtual CPUs that take turns, if there are several.
    pub cpus: Option<u32>,
    /// The architecture of the guest.
    pub arch: Arch,
}

impl Orders {
    /// Returns the orders as text, one to a line.
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

    /// Parses the text from [`Self::to_text`]; an error names the line.
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
