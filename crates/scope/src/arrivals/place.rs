// SPDX-License-Identifier: MIT OR Apache-2.0
//! The places at which threads wait longest.

use std::collections::BTreeMap;

use punctual_model::Nanos;

use super::path::State;
use super::program::Wait;
use super::steps::Times;
use super::timeline::{AHEAD, Change, IRQS, PREEMPT, SOFTIRQ, STUCK};
use crate::names::Func;

/// The kind of section at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Off {
    /// Interrupts are off for most of it.
    Interrupts,
    /// Soft interrupts are off, or one is served.
    SoftInterrupts,
    /// Preemption is off.
    Preemption,
    /// The kernel does not ask whether another thread is to run.
    NoPreemptionPoint,
    /// A thread that goes before the waiting one has the CPU.
    Ahead,
}

impl Off {
    /// Returns the kind in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupts => "interrupts off",
            Self::SoftInterrupts => "soft interrupts off or served",
            Self::Preemption => "preemption off",
            Self::NoPreemptionPoint => "no preemption point",
            Self::Ahead => "a thread of its priority or a higher one",
        }
    }

    /// Returns the function of these changes that kept it off for longest within some ranges;
    /// `None` if it was never off.
    pub fn by(self, changes: &[Change], ranges: &[(u64, u64)]) -> Option<Func> {
        let bit = match self {
            Self::Interrupts => IRQS,
            Self::SoftInterrupts => SOFTIRQ,
            Self::Preemption => PREEMPT,
            Self::NoPreemptionPoint => STUCK,
            Self::Ahead => AHEAD,
        };
        let mut sums: BTreeMap<Func, u64> = BTreeMap::new();
        let mut add = |began: &Change, end: u64| {
            let length = |(from, to): &(u64, u64)| end.min(*to).saturating_sub(began.at.max(*from));
            *sums.entry(began.by).or_default() += ranges.iter().map(length).sum::<u64>();
        };
        let mut began: Option<&Change> = None;
        for change in changes {
            if change.state & bit != 0 {
                began.get_or_insert(change);
            } else if let Some(begin) = began.take() {
                add(begin, change.at);
            }
        }
        if let Some(begin) = began {
            add(begin, u64::MAX);
        }
        let longest = sums.into_iter().max_by_key(|(by, sum)| (*sum, *by))?;
        (longest.1 > 0).then_some(longest.0)
    }
}

/// The key of a place: what is off, the function that switched it off, and the one that ran most.
pub type Key = (Off, Func, Func);

/// The longest stretch of a place.
#[derive(Clone, Debug)]
pub struct Found {
    /// The number of such stretches.
    pub count: u64,
    /// Its length, in instructions, without what an arrival spares.
    pub length: u64,
    /// Running time of the function that ran most.
    pub most: u64,
    /// Running time of each function, without the sample's own interrupt.
    pub ran: Times<Func>,
    /// The sample that its period ends.
    pub sample: u64,
    /// Time since the clock was read for the previous sample; `None` if the CPU slept in between
    /// and after.
    pub after: Option<Nanos>,
    /// Length from where its sample was armed to where the probe's thread gave up the CPU, in
    /// instructions.
    pub arming: u64,
    /// True if that sample's timer was the first of all to be due when it was armed; and the same
    /// for a timer that is due here.
    pub first: (bool, bool),
    /// The extra time that arming takes for a sample that is due here.
    pub shift: i64,
    /// The wait of a program's thread, and the time from the reading of the clock to when it was
    /// due.
    pub wait: Option<(Wait, Nanos)>,
    /// The function that a thread that goes before a program's runs on its path, and its time, if
    /// that thread has the CPU for longer than all that is off before.
    pub ahead: Option<(Func, u64)>,
    /// Starts of sections within it, after its own start, in instructions.
    pub starts: Vec<u64>,
    /// The state in which the subsequent path begins.
    pub state: State,
    /// Time of the interrupts that come into the path.
    pub falls_in: u64,
    /// The time that is saved, as one interrupt serves two timers.
    pub saved: u64,
}

impl Found {
    /// Creates a place of which only this is known.
    pub fn of(count: u64, state: State) -> Self {
        Self {
            count,
            length: 0,
            most: 0,
            ran: Times::new(),
            sample: 0,
            after: None,
            arming: 0,
            first: (false, false),
            shift: 0,
            wait: None,
            ahead: None,
            starts: Vec::new(),
            state,
            falls_in: 0,
            saved: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_kept_it_off_for_longest_is_named_and_not_who_was_first() {
        let change = |at, state, by| Change {
            at,
            state,
            by,
            func: by,
            scheduled: false,
            held: 0,
        };
        // A system call without a preemption point; a lock in it, and a longer one that is taken
        // with preemption off.
        let changes = [
            change(100, STUCK, 1),
            change(200, STUCK | IRQS, 2),
            change(300, STUCK, 2),
            change(1_000, STUCK | PREEMPT, 3),
            change(1_100, STUCK | PREEMPT | IRQS, 4),
            change(5_100, STUCK | PREEMPT, 4),
            change(5_200, 0, 3),
        ];
        let by = |off: Off, from| off.by(&changes, &[(from, 5_200)]);
        assert_eq!(by(Off::Interrupts, 100), Some(4));
        assert_eq!(by(Off::Preemption, 100), Some(3));
        assert_eq!(by(Off::NoPreemptionPoint, 100), Some(1));
        assert_eq!(by(Off::SoftInterrupts, 100), None);
        // Of an arrival at its end there is less left than of the others.
        assert_eq!(by(Off::Interrupts, 5_100), None);
        assert_eq!(by(Off::Preemption, 5_150), Some(3));
        // Without the interrupt of the sample itself, which does not come there.
        let apart = [(100, 1_100), (5_100, 5_200)];
        assert_eq!(Off::Interrupts.by(&changes, &apart), Some(2));
        // Many short ones of one function are more than a long one of another.
        let many: Vec<Change> = (0..200)
            .map(|at| change(10 * at, if at % 2 == 0 { IRQS } else { 0 }, 7))
            .chain([change(2_000, IRQS, 8), change(2_500, 0, 8)])
            .collect();
        assert_eq!(Off::Interrupts.by(&many, &[(0, 3_000)]), Some(7));
    }
}
