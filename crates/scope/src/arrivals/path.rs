// SPDX-License-Identifier: MIT OR Apache-2.0
//! The path after what was off, as the run's own samples went it.

use std::collections::BTreeMap;

use super::steps::Times;
use super::switch::Extras;
use crate::names::Func;

/// The kind of state in which the path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum From {
    /// The CPU sleeps, or is about to.
    Idle,
    /// User space runs, and the interrupt comes at once.
    User,
    /// The kernel runs, and the interrupt comes at once.
    Kernel,
    /// The interrupt has come, and preemption is switched on.
    Preempt,
    /// The interrupt has come, and a switch of threads is over.
    Switched,
    /// The interrupt has come, and the scheduler is called, or asked for.
    Schedule,
}

impl From {
    /// Returns the kind in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "the CPU sleeps",
            Self::User => "user space runs",
            Self::Kernel => "the kernel runs",
            Self::Preempt => "preemption is switched on",
            Self::Switched => "a switch of threads is over",
            Self::Schedule => "the scheduler is called",
        }
    }

    /// Returns true if the interrupt has come before.
    fn is_behind(self) -> bool {
        matches!(self, Self::Preempt | Self::Switched | Self::Schedule)
    }
}

/// The state in which a path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    /// Its kind.
    pub from: From,
    /// The function in which it ends.
    pub func: Func,
    /// The holds of the thread that the scheduler has to see to.
    pub held: u8,
}

/// No function: for states that do not end in one.
pub const NOWHERE: Func = Func::MAX;

impl State {
    /// The state of a sleeping CPU.
    pub const IDLE: Self = Self::open(From::Idle, 0);

    /// Creates a state that does not end in a function.
    pub const fn open(from: From, held: u8) -> Self {
        let func = NOWHERE;
        Self { from, func, held }
    }
}

/// The number of samples of a state from which on they stand for all.
const ENOUGH: usize = 3;
/// The number of samples from which on their distribution is used.
const MANY: usize = 10;
/// The number of a distribution's values that are kept.
const KEPT: usize = 200;
/// The golden ratio: the fractional parts of its multiples are spread evenly.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// The paths, by the state in which they begin. The time that a switch takes for the holds of a
/// thread is left out and added on top.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// Times that switches take for the holds of threads.
    pub extras: Extras,
    /// Times that the samples' own switches took for that.
    seen: BTreeMap<u8, Vec<u64>>,
    exact: BTreeMap<(From, Func), Vec<u64>>,
    like: BTreeMap<From, Vec<u64>>,
    /// The walk of a path of a length: the first of that length.
    walked: BTreeMap<u64, Walked>,
}

/// The walk of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Time of each function, up to the switch to the probe's thread.
    pub ran: Times<Func>,
    /// Time of the way back to user space from there, up to the reading of the clock.
    pub back: u64,
}

impl Paths {
    /// Learns the path of a sample; `extra` of its length is for a thread's holds.
    pub fn learn(&mut self, state: State, length: u64, extra: u64, walked: Walked) {
        let length = length.saturating_sub(extra);
        self.seen.entry(state.held).or_default().push(extra);
        self.walked.entry(length).or_insert(walked);
        let exact = self.exact.entry((state.from, state.func));
        exact.or_default().push(length);
        self.like.entry(state.from).or_default().push(length);
    }

    /// Sorts all paths, once they have been learnt.
    pub fn sort(&mut self) {
        let all = self.exact.values_mut().chain(self.like.values_mut());
        let all = all.chain(self.seen.values_mut());
        all.for_each(|lengths| lengths.sort_unstable());
        self.extras.sort();
    }

    /// Returns the number of samples that went such a path.
    pub fn count(&self) -> usize {
        self.like.values().map(Vec::len).sum()
    }

    /// Returns the paths from a state, sorted: those of the same function if there are enough, else
    /// those of the same kind, else those of kinds like it; empty if there is nothing alike.
    fn of(&self, state: State) -> &[u64] {
        let exact = self.exact.get(&(state.from, state.func));
        let exact = exact.map_or(&[][..], Vec::as_slice);
        let like = |from: From| self.like.get(&from).map_or(&[][..], Vec::as_slice);
        let kinds = self.like.keys();
        let mut alike = kinds.filter(|kind| kind.is_behind() == state.from.is_behind());
        let same = like(state.from);
        if exact.len() >= ENOUGH {
            exact
        } else if same.len() >= ENOUGH || (!same.is_empty() && alike.clone().count() == 1) {
            same
        } else {
            let longest = alike.clone().max_by_key(|kind| like(**kind).len());
            longest
                .or_else(|| alike.next())
                .map_or(same, |kind| like(*kind))
        }
    }

    /// Returns the length of the typical path from a state.
    pub fn typical(&self, state: State) -> Option<u64> {
        let all = self.of(state);
        let middle = all.get(all.len() / 2);
        middle.map(|middle| middle + self.extra(state))
    }

    /// Returns the walk of the typical path from a state, for the thread that it came upon there.
    pub fn walked(&self, state: State) -> Option<&Walked> {
        let all = self.of(state);
        self.walked.get(all.get(all.len() / 2)?)
    }

    /// Returns the time that a switch takes for the holds of the thread.
    fn extra(&self, state: State) -> u64 {
        match state.from {
            From::Idle => 0,
            _ => self.extras.typical(state.held),
        }
    }

    /// Returns the times that switches took for the holds of the thread, each as likely as the
    /// others.
    fn extras(&self, state: State) -> Vec<u64> {
        let seen = self.seen.get(&state.held);
        let seen = seen.filter(|seen| seen.len() >= MANY && state.from != From::Idle);
        seen.map_or_else(|| vec![self.extra(state)], |seen| evenly(seen, KEPT))
    }

    /// Returns some paths from a state, evenly chosen of all, each as likely as the others.
    pub fn some_of(&self, state: State) -> Vec<u64> {
        let extras = self.extras(state);
        let paths = evenly(self.of(state), KEPT).into_iter().enumerate();
        // Paths are sorted, and so are these: any with any.
        let spread = |number: usize| (number as f64 * GOLDEN).fract() * extras.len() as f64;
        let extra = |number: usize| extras[spread(number) as usize];
        paths.map(|(number, path)| path + extra(number)).collect()
    }
}

/// Returns at most a given number of values, evenly chosen of all.
fn evenly(all: &[u64], most: usize) -> Vec<u64> {
    let kept = all.len().min(most);
    let middle = |number: usize| all[(2 * number + 1) * all.len() / (2 * kept)];
    (0..kept).map(middle).collect()
}

#[cfg(test)]
mod tests {
    use super::super::timeline::READER;
    use super::*;

    #[test]
    fn what_a_switch_takes_is_as_likely_as_it_was_in_the_samples() {
        let state = State::open(From::User, 0);
        let mut paths = Paths::default();
        for number in 0..20 {
            let (length, extra) = (5_000 + number, if number % 5 < 2 { 1_000 } else { 200 });
            paths.learn(state, length + extra, extra, Walked::default());
        }
        paths.sort();
        let all = paths.some_of(state);
        let long = all.iter().filter(|path| **path >= 6_000).count();
        assert_eq!((all.len(), long), (20, 8));
        // A thread that holds what none of them held: what is known of all switches.
        let other = State::open(From::User, READER);
        let typical = paths.extras.typical(READER);
        assert_eq!(paths.some_of(other)[0], 5_000 + typical);
    }
}
