// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin's own orders, which concern the guest's memory: values that are reported beside their
//! addresses, and the one wait that is moved.
//!
//! ```text
//! ram 268435456                      size of the guest's memory, in bytes
//! values ffffffff81… ffffffff81…     range of code whose accesses are reported with values
//! calls ffffffff82…                  address at which system calls enter the kernel
//! move 0 4711 1500000000 1400000000  in step 0, the 4,711th call waits until 1.5 s: make it 1.4 s
//! ```

use std::cell::OnceCell;

use crate::ram::Ram;

/// Numbers beside those of instructions: the two halves of the word of the previous access.
pub const VALUE_LOW: u8 = 254;
pub const VALUE_HIGH: u8 = 255;

const SECOND: u64 = 1_000_000_000;

/// A wait that is moved, in nanoseconds of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The step, from 0.
    step: u32,
    /// The number of the system call in the step, from 1.
    call: u64,
    from: u64,
    to: u64,
}

/// The orders, and how far the guest has come.
#[derive(Debug, Default)]
pub struct Own {
    bytes: Option<u64>,
    /// The guest's memory, once it was looked for: QEMU makes it after it has loaded this library.
    ram: OnceCell<Option<Ram>>,
    values: Vec<(u64, u64)>,
    entry: Option<u64>,
    moves: Option<Move>,
    step: Option<u32>,
    calls: u64,
}

impl Own {
    /// Splits a text into the plugin's own orders and all others. The error names the line.
    pub fn split(text: &str) -> Result<(Option<Self>, String), String> {
        let (mut own, mut others) = (None::<Self>, String::new());
        for line in text.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            if !["ram", "values", "calls", "move"].contains(&word) {
                others += line;
                others.push('\n');
                continue;
            }
            own.get_or_insert_default()
                .take(word, rest)
                .ok_or_else(|| format!("expected an order, found \"{line}\""))?;
        }
        Ok((own, others))
    }

    fn take(&mut self, word: &str, rest: &str) -> Option<()> {
        let mut fields = rest.split(' ');
        let mut number = |base| u64::from_str_radix(fields.next()?, base).ok();
        match word {
            "ram" => self.bytes = Some(number(10)?),
            "values" => self.values.push((number(16)?, number(16)?)),
            "calls" => self.entry = Some(number(16)?),
            _ => {
                self.moves = Some(Move {
                    step: u32::try_from(number(10)?).ok()?,
                    call: number(10)?,
                    from: number(10)?,
                    to: number(10)?,
                });
            }
        }
        Some(())
    }

    /// Returns the guest's memory, if it is found.
    pub fn ram(&self) -> Option<Ram> {
        let bytes = self.bytes?;
        *self.ram.get_or_init(|| Ram::of_this_process(bytes))
    }

    /// Returns true if the accesses of an instruction are reported with their values.
    pub fn is_valued(&self, address: u64) -> bool {
        let within = |(from, to): &(u64, u64)| (from..to).contains(&&address);
        self.values.iter().any(within)
    }

    /// Returns true if a block that begins at an address is to be counted.
    pub fn counts(&self, address: u64) -> bool {
        self.moves.is_some() && self.entry == Some(address)
    }

    /// Begins a step.
    pub fn step(&mut self) {
        self.step = Some(self.step.map_or(0, |step| step + 1));
        self.calls = 0;
    }

    /// Counts a system call. If it is the one whose wait is to be moved, moves the wait.
    pub fn called(&mut self) {
        self.calls += 1;
        let is_it = |one: &Move| self.step == Some(one.step) && self.calls == one.call;
        let Some(found) = self.moves.filter(is_it) else {
            return;
        };
        let time = |ns: u64| [ns / SECOND, ns % SECOND];
        if let Some(ram) = self.ram() {
            ram.replace(time(found.from), time(found.to));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_own_orders_are_taken_out_and_nonsense_is_named() {
        let text = "trace /tmp/t\nvalues ff10 ff20\ncalls ff80\nmove 2 7 1500000001 9\nring 3\n";
        let (own, others) = Own::split(text).unwrap();
        assert_eq!(others, "trace /tmp/t\nring 3\n");
        let mut own = own.unwrap();
        assert!(own.is_valued(0xff10) && !own.is_valued(0xff20));
        assert!(own.counts(0xff80) && !own.counts(0xff10));
        let expected = Move {
            step: 2,
            call: 7,
            from: 1_500_000_001,
            to: 9,
        };
        assert_eq!(own.moves, Some(expected));
        (0..3).for_each(|_| own.step());
        own.called();
        assert_eq!((own.step, own.calls), (Some(2), 1));
        own.step();
        assert_eq!(own.calls, 0);
        assert!(Own::split("ring 3\n").unwrap().0.is_none());
        let wrong = Own::split("move 1 x 3 4").unwrap_err();
        assert!(wrong.contains("move 1 x 3 4"), "{wrong}");
    }
}
