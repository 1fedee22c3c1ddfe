// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the timer's interrupts take, and what is saved where one of them serves two timers.

use super::timeline::{Came, Period};
use crate::names::{Func, Names};

/// So long after a timer is due its interrupt comes: the kernel tells the timer how long to wait,
/// and takes so long to tell it.
pub const SLACK: u64 = 50;

/// From where to where arrivals share an interrupt, and how.
pub type Round = (u64, u64, Shares);

/// Whether an arrival's interrupt is one that comes anyhow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shares {
    /// No.
    No,
    /// If one of the timer's comes where interrupts are on again, which is here.
    At(u64),
    /// It is due before the interrupt reads the clock.
    First,
    /// It is due behind that, before the interrupt ends.
    Again,
}

/// How long the timer's interrupts take that wake a sample up and do nothing else.
#[derive(Default)]
pub struct Handling {
    pub whole: Vec<u64>,
    /// Entry, exit, and the setting of the next timer: what one interrupt does once, however many
    /// timers it serves.
    pub shared: Vec<u64>,
    /// All but the wake-up itself.
    pub besides: Vec<u64>,
}

impl Handling {
    pub fn sort(&mut self) {
        self.whole.sort_unstable();
        self.shared.sort_unstable();
        self.besides.sort_unstable();
    }

    /// What one interrupt for two timers saves.
    pub fn saved(&self) -> u64 {
        median(&self.shared)
    }

    /// What is saved where it finds, when it has served one, that another is due: it goes through
    /// its queues again, and does not wait for the next interrupt.
    pub fn saved_again(&self) -> u64 {
        median(&self.besides) + SLACK
    }

    /// Until when after its begin it finds another timer due, and serves it.
    pub fn open(&self) -> u64 {
        median(&self.whole).saturating_sub(self.saved() / 2)
    }
}

pub fn median(sorted: &[u64]) -> u64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}
impl Period {
    /// Whether no other timer is due before a position, from where the sample was armed.
    pub(super) fn is_first(&self, at: u64) -> bool {
        let mut timers = self.interrupts.iter().filter(|came| came.is_timer);
        !timers.any(|came| (self.armed..at).contains(&came.from))
    }

    /// How long an interrupt serves a timer, and how long the wake-up takes of that; if it is all
    /// of one timer that is no tick.
    pub(super) fn served(&self, came: &Came, names: &Names) -> Option<(u64, u64)> {
        let range = came.from..came.to;
        if self.ticks.iter().any(|tick| range.contains(tick)) {
            return None;
        }
        let first = self.ran.partition_point(|(at, _)| *at < came.from);
        let mut within = self.ran[first..].iter();
        let is = |name: &'static str| move |(_, func): &&(u64, Func)| names.text(*func) == name;
        within.find(is("__hrtimer_run_queues"))?;
        // What comes before and behind is done once. From Linux 7 on no function of its own takes a
        // timer out of its queue.
        let taken = within.clone().find(is("timerqueue_del"));
        let (from, _) = taken.or(within.clone().next())?;
        let (wakes, _) = within.find(is("hrtimer_wakeup"))?;
        let (woken, _) = within.find(is("__hrtimer_run_queues"))?;
        let (to, _) = within.find(is("hrtimer_interrupt"))?;
        (*to < came.to).then(|| (woken - from, woken - wakes))
    }

    /// Where an arrival and one of the timer's interrupts are served by one: the later of the two is
    /// due before the earlier one's interrupt reads the clock, or behind that, before it sets the
    /// next timer. The arrival's own interrupt is taken to be as fast as the run's.
    pub(super) fn rounds(&self, names: &Names) -> Vec<Round> {
        let reads = names.known("ktime_get_update_offsets_now");
        let sets = names.known("clockevents_program_event");
        let timers = self.interrupts.iter().filter(|came| came.is_timer);
        let rounds = timers.filter_map(|came| {
            let first = self.ran.partition_point(|(at, _)| *at < came.from);
            let mut within = self.ran[first..].iter();
            let (read, _) = within.find(|(_, func)| Some(*func) == reads)?;
            let (set, _) = within.find(|(_, func)| Some(*func) == sets)?;
            let first = (came.from, *read, Shares::First);
            // The arrival is the earlier one.
            let earlier = |at: &u64| came.from.saturating_sub(2 * SLACK + at - came.from);
            let (early, near) = (earlier(set), earlier(read));
            (*set < came.to).then_some([
                (early, near, Shares::Again),
                (near, came.from, Shares::First),
                first,
                (*read, *set, Shares::Again),
            ])
        });
        rounds.flatten().collect()
    }
}
