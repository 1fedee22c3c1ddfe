// SPDX-License-Identifier: MIT OR Apache-2.0
//! The path behind what was off, as the run's own samples went it.

use std::collections::BTreeMap;

use crate::names::Func;

/// From which state the path begins.
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
    /// The interrupt has come, and the kernel is left for user space.
    Leave,
    /// The interrupt has come, and the scheduler is called, or asked for.
    Schedule,
}

impl From {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "the CPU sleeps",
            Self::User => "user space runs",
            Self::Kernel => "the kernel runs",
            Self::Preempt => "preemption is switched on",
            Self::Switched => "a switch of threads is over",
            Self::Leave => "the kernel is left",
            Self::Schedule => "the scheduler is called",
        }
    }

    /// Whether the interrupt has come before.
    fn is_behind(self) -> bool {
        matches!(
            self,
            Self::Preempt | Self::Switched | Self::Leave | Self::Schedule
        )
    }
}

/// A state, and the function in which it ends.
pub type State = (From, Func);

/// As few samples of a state are not taken for all.
const ENOUGH: usize = 3;
/// So many of a distribution's values are kept.
const KEPT: usize = 200;

/// The paths, by the state in which they begin.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    exact: BTreeMap<State, Vec<u64>>,
    like: BTreeMap<From, Vec<u64>>,
}

impl Paths {
    /// A sample went its path in so much time.
    pub fn learn(&mut self, state: State, length: u64) {
        self.exact.entry(state).or_default().push(length);
        self.like.entry(state.0).or_default().push(length);
    }

    /// All have been learnt.
    pub fn sort(&mut self) {
        let all = self.exact.values_mut().chain(self.like.values_mut());
        all.for_each(|lengths| lengths.sort_unstable());
    }

    /// How many samples went such a path.
    pub fn count(&self) -> usize {
        self.like.values().map(Vec::len).sum()
    }

    /// The paths from a state, sorted: those of the same function where there are enough, else
    /// those of the same kind, else those of kinds like it; none where there is nothing alike.
    pub fn of(&self, state: State) -> &[u64] {
        let exact = self.exact.get(&state).map_or(&[][..], Vec::as_slice);
        let like = |from: From| self.like.get(&from).map_or(&[][..], Vec::as_slice);
        let kinds = self.like.keys();
        let mut alike = kinds.filter(|kind| kind.is_behind() == state.0.is_behind());
        let same = like(state.0);
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

    /// The typical path from a state.
    pub fn typical(&self, state: State) -> Option<u64> {
        let all = self.of(state);
        all.get(all.len() / 2).copied()
    }

    /// The paths from a state, evenly chosen of all, each as likely as the others.
    pub fn some_of(&self, state: State) -> Vec<u64> {
        let all = self.of(state);
        let kept = all.len().min(KEPT);
        let middle = |number: usize| all[(2 * number + 1) * all.len() / (2 * kept)];
        (0..kept).map(middle).collect()
    }
}
