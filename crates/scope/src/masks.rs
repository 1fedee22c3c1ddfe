// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is read of the interrupts' mask to be restored later.
//!
//! The values are in registers, which are not seen. But what saves and restores masks is nested:
//! the last that was read is the first to be restored. Where interrupts are open nothing that was
//! read before matters any more; and an exception that comes while they are masked has its own.

/// How many instructions before it masks interrupts a function reads the mask, at most.
const NEAR: u64 = 4;

/// What was read and not restored.
#[derive(Clone, Debug, Default)]
pub struct Masks {
    /// Whether interrupts were masked.
    read: Vec<bool>,
    /// How much of `read` is from before each exception that came while they were masked.
    levels: Vec<usize>,
    /// The position at which the mask was read last.
    last: Option<u64>,
}

impl Masks {
    /// The mask is read at a position.
    pub fn reads(&mut self, position: u64) {
        self.last = Some(position);
    }

    /// Interrupts are masked at a position, where they are `masked` or not.
    pub fn mask(&mut self, position: u64, masked: bool) {
        let last = self.last.take();
        if last.is_some_and(|last| position.saturating_sub(last) <= NEAR) {
            self.read.push(masked);
        }
    }

    /// Interrupts are opened.
    pub fn open(&mut self) {
        *self = Self::default();
    }

    /// What was read last is restored: returns whether interrupts are masked now. Behind an
    /// exception that is what was before it.
    pub fn restore(&mut self) -> bool {
        let base = self.levels.last().copied();
        let own = (self.read.len() > base.unwrap_or(0)).then(|| self.read.pop());
        let masked = own.flatten().unwrap_or(base.is_some());
        if !masked {
            self.open();
        }
        masked
    }

    /// The CPU comes into the kernel by itself, while interrupts are `masked` or not.
    pub fn enter(&mut self, masked: bool) {
        if masked {
            self.levels.push(self.read.len());
        } else {
            self.open();
        }
    }

    /// It goes back.
    pub fn leave(&mut self) {
        match self.levels.pop() {
            Some(length) => self.read.truncate(length),
            None => self.open(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_last_is_restored_first() {
        let mut masks = Masks::default();
        masks.reads(10);
        masks.mask(11, false);
        masks.reads(20);
        masks.mask(21, true);
        assert!(masks.restore());
        assert!(!masks.restore());
        // What masks without having read has nothing to restore.
        masks.mask(30, false);
        masks.reads(40);
        masks.mask(60, true);
        assert!(!masks.restore());
    }

    #[test]
    fn an_exception_restores_what_was_before_it_and_leaves_what_it_interrupted() {
        let mut masks = Masks::default();
        masks.reads(0);
        masks.mask(1, false);
        masks.enter(true);
        assert!(masks.restore(), "it came while they were masked");
        masks.reads(5);
        masks.mask(6, true);
        masks.leave();
        assert!(!masks.restore());
        masks.enter(false);
        assert!(!masks.restore(), "it came while they were open");
    }
}
