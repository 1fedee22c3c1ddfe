// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows values of the interrupt mask that are read to be restored later.
//!
//! The values are in registers, which are not seen. But code that saves and restores masks is
//! nested: the last value that was read is the first to be restored. Where interrupts are open,
//! values that were read before no longer matter. An exception that comes while they are off has
//! its own.

/// The maximum number of instructions between a function's reading of the mask and its masking of
/// interrupts.
const NEAR: u64 = 4;

/// The mask that keeps interrupts from a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// A flag of the CPU itself.
    Flag,
    /// A priority with which the interrupt controller compares those of interrupts.
    Priority,
}

/// An operation on a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masking {
    /// Masks interrupts.
    Set,
    /// Opens interrupts.
    Clear,
    /// Reads the mask, to have it restored if interrupts are masked next.
    Read,
    /// Reads the mask, to have it restored in any case.
    Save,
    /// Restores the mask as it was read.
    Restore,
}

/// The state of a CPU's masks, with the values of each that were read and not restored.
#[derive(Clone, Debug, Default)]
pub struct Masks {
    flag: Saved,
    priority: Saved,
}

impl Masks {
    /// Applies an operation at a position, where interrupts are `off` or not. Returns whether they
    /// are off now; `None` if that stays as it is.
    pub fn apply(
        &mut self,
        (mask, masking): (Mask, Masking),
        position: u64,
        off: bool,
    ) -> Option<bool> {
        self.agree(off);
        let own = match mask {
            Mask::Flag => &mut self.flag,
            Mask::Priority => &mut self.priority,
        };
        match masking {
            Masking::Read => own.last = Some(position),
            Masking::Save => own.save(),
            Masking::Set => own.set(position),
            Masking::Clear => own.masked = false,
            Masking::Restore => own.restore(),
        }
        if matches!(masking, Masking::Read | Masking::Save) {
            return None;
        }
        let off = self.flag.masked || self.priority.masked;
        if !off {
            *self = Self::default();
        }
        Some(off)
    }

    /// Enters the kernel as the CPU comes by itself, with its flag set, while interrupts are `off`
    /// or not.
    pub fn enter(&mut self, off: bool) {
        self.agree(off);
        if off {
            self.flag.enter();
            self.priority.enter();
        } else {
            *self = Self::default();
        }
        self.flag.masked = true;
    }

    /// Leaves the kernel's entry.
    pub fn leave(&mut self) {
        self.flag.leave();
        self.priority.leave();
    }

    /// Agrees with what the code proves, whatever was followed.
    fn agree(&mut self, off: bool) {
        if !off {
            self.flag.masked = false;
            self.priority.masked = false;
        } else if !self.priority.masked {
            self.flag.masked = true;
        }
    }
}

/// Values of one mask that were read and not restored.
#[derive(Clone, Debug, Default)]
struct Saved {
    masked: bool,
    /// True if interrupts were masked.
    read: Vec<bool>,
    /// The number of values in `read` that are from before each exception that came while
    /// interrupts were off; and true if this mask was set there.
    levels: Vec<(usize, bool)>,
    /// The position at which the mask was last read.
    last: Option<u64>,
}

impl Saved {
    fn save(&mut self) {
        self.last = None;
        self.read.push(self.masked);
    }

    fn set(&mut self, position: u64) {
        let last = self.last.take();
        if last.is_some_and(|last| position.saturating_sub(last) <= NEAR) {
            self.save();
        }
        self.masked = true;
    }

    /// Restores the mask. After an exception, the value from before it is restored first.
    fn restore(&mut self) {
        let (length, before) = self.levels.last().copied().unwrap_or_default();
        let own = (self.read.len() > length).then(|| self.read.pop());
        self.masked = own.flatten().unwrap_or(before);
    }

    fn enter(&mut self) {
        self.levels.push((self.read.len(), self.masked));
    }

    fn leave(&mut self) {
        match self.levels.pop() {
            Some((length, before)) => {
                self.read.truncate(length);
                self.masked = before;
            }
            None => *self = Self::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies these operations at these positions, and follows whether interrupts are off.
    fn done(masks: &mut Masks, all: &[(Mask, Masking, u64)]) -> bool {
        let off = |masks: &Masks| masks.flag.masked || masks.priority.masked;
        for (mask, masking, at) in all {
            let before = off(masks);
            let now = masks.apply((*mask, *masking), *at, before);
            assert_eq!(now.unwrap_or(before), off(masks));
        }
        off(masks)
    }

    #[test]
    fn what_was_read_last_is_restored_first() {
        use Mask::Flag;
        use Masking::{Clear, Read, Restore, Set};
        let mut masks = Masks::default();
        let twice = [
            (Flag, Read, 10),
            (Flag, Set, 11),
            (Flag, Read, 20),
            (Flag, Set, 21),
        ];
        assert!(done(&mut masks, &twice));
        assert!(done(&mut masks, &[(Flag, Restore, 30)]));
        assert!(!done(&mut masks, &[(Flag, Restore, 31)]));
        // What masks without having read has nothing to restore.
        let unread = [
            (Flag, Clear, 39),
            (Flag, Set, 40),
            (Flag, Read, 50),
            (Flag, Set, 70),
        ];
        assert!(done(&mut masks, &unread));
        assert!(!done(&mut masks, &[(Flag, Restore, 80)]));
    }

    #[test]
    fn what_is_set_already_is_saved_without_being_set_again() {
        use Mask::Flag;
        use Masking::{Restore, Save, Set};
        let mut masks = Masks::default();
        let once = [
            (Flag, Save, 1),
            (Flag, Set, 2),
            (Flag, Save, 3),
            (Flag, Restore, 4),
        ];
        assert!(done(&mut masks, &once));
        assert!(!done(&mut masks, &[(Flag, Restore, 5)]));
    }

    #[test]
    fn an_exception_restores_what_was_before_it_and_leaves_what_it_interrupted() {
        use Mask::Flag;
        use Masking::{Read, Restore, Set};
        let mut masks = Masks::default();
        done(&mut masks, &[(Flag, Read, 0), (Flag, Set, 1)]);
        masks.enter(true);
        let within = [(Flag, Restore, 2)];
        assert!(done(&mut masks, &within), "it came while they were masked");
        done(&mut masks, &[(Flag, Read, 5), (Flag, Set, 6)]);
        masks.leave();
        assert!(!done(&mut masks, &[(Flag, Restore, 7)]));
        masks.enter(false);
        let within = [(Flag, Restore, 8)];
        assert!(!done(&mut masks, &within), "it came while they were open");
    }

    #[test]
    fn what_the_priority_masks_the_flag_does_not_open() {
        use Mask::{Flag, Priority};
        use Masking::{Clear, Restore, Save, Set};
        let mut masks = Masks::default();
        // A lock, as a kernel with pseudo-NMIs takes it, and what faults behind it.
        assert!(done(&mut masks, &[(Priority, Save, 1), (Priority, Set, 2)]));
        masks.enter(true);
        assert!(done(
            &mut masks,
            &[(Priority, Clear, 3), (Priority, Set, 4), (Flag, Clear, 5)]
        ));
        masks.leave();
        assert!(done(&mut masks, &[]));
        assert!(!done(&mut masks, &[(Priority, Restore, 6)]));
        // An interrupt: the priority masks the others, and the way back sets the flag again.
        masks.enter(false);
        assert!(done(
            &mut masks,
            &[(Priority, Clear, 7), (Priority, Set, 8), (Flag, Clear, 9)]
        ));
        assert!(done(&mut masks, &[(Flag, Set, 10), (Priority, Clear, 11)]));
        masks.leave();
        assert!(!done(&mut masks, &[]));
    }
}
