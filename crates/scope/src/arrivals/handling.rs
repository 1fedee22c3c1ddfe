// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time of the timer's interrupts, and what is saved where one of them serves two timers.

use super::timeline::{Came, Period};
use crate::names::{Func, Names};

/// Time from when a timer is due to its interrupt. The kernel tells the timer how long to wait, and
/// takes this long to tell it.
pub const SLACK: u64 = 50;

/// The range in which arrivals share an interrupt, and how.
pub type Round = (u64, u64, Shares);

/// Says whether an arrival shares an interrupt that comes anyhow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shares {
    /// It shares none.
    No,
    /// Shared if one of the timer's comes where interrupts are on again, which is here.
    At(u64),
    /// Shared: the later one is due before the earlier one's interrupt reads the clock.
    First,
    /// Shared: it is due after that, before that interrupt sets the next timer.
    Again,
}

/// Times of the timer's interrupts that wake a sample up and do nothing else.
#[derive(Default)]
pub struct Handling {
    pub whole: Vec<u64>,
    /// Entry, exit, and the setting of the next timer: the work that one interrupt does once,
    /// however many timers it serves.
    pub shared: Vec<u64>,
    /// The time without the wake-up itself.
    pub besides: Vec<u64>,
}

impl Handling {
    pub fn sort(&mut self) {
        self.whole.sort_unstable();
        self.shared.sort_unstable();
        self.besides.sort_unstable();
    }

    /// Returns the time that one interrupt for two timers saves.
    pub fn saved(&self) -> u64 {
        median(&self.shared)
    }

    /// Returns the time that is saved where an interrupt has served one timer and finds another one
    /// due. It goes through its queues again, and does not wait for the next interrupt.
    pub fn saved_again(&self) -> u64 {
        median(&self.besides) + SLACK
    }

    /// Returns the time after its start until which it finds another timer due, and serves it.
    pub fn open(&self) -> u64 {
        median(&self.whole).saturating_sub(self.saved() / 2)
    }
}

pub fn median(sorted: &[u64]) -> u64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}
impl Period {
    /// Returns true if no other timer is due before a position, from where the sample was armed.
    pub(super) fn is_first(&self, at: u64) -> bool {
        let mut timers = self.interrupts.iter().filter(|came| came.is_timer);
        !timers.any(|came| (self.armed..at).contains(&came.from))
    }

    /// Returns how long an interrupt serves a timer, and how much of that the wake-up takes, if all
    /// of it is for one timer that is no tick.
    pub(super) fn served(&self, came: &Came, names: &Names) -> Option<(u64, u64)> {
        let range = came.from..came.to;
        if self.ticks.iter().any(|tick| range.contains(tick)) {
            return None;
        }
        let first = self.ran.partition_point(|(at, _)| *at < came.from);
        let mut within = self.ran[first..].iter();
        let is = |name: &'static str| move |(_, func): &&(u64, Func)| names.text(*func) == name;
        within.find(is("__hrtimer_run_queues"))?;
        let queues = within.clone();
        let (wakes, _) = within.find(is("hrtimer_wakeup"))?;
        // What comes before and behind is done once. Linux 7 calls no function to take a timer of
        // these out of its queue.
        let mut before = queues.take_while(|(at, _)| at < wakes);
        let taken = before.clone().find(is("timerqueue_del"));
        let from = taken.or(before.next()).map_or(*wakes, |(at, _)| *at);
        let (woken, _) = within.find(is("__hrtimer_run_queues"))?;
        let (to, _) = within.find(is("hrtimer_interrupt"))?;
        (*to < came.to).then(|| (woken - from, woken - wakes))
    }

    /// Finds where an arrival and one of the timer's interrupts are served by one. The later of the
    /// two is due before the earlier one's interrupt reads the clock, or after that, before it sets
    /// the next timer. The arrival's own interrupt is assumed to be as fast as the run's. The
    /// interrupt of the sample that is `due` does not come where another moment is.
    pub(super) fn rounds(&self, due: u64, names: &Names) -> Vec<Round> {
        let reads = names.known("ktime_get_update_offsets_now");
        let sets = names.known("clockevents_program_event");
        let others = |came: &&Came| came.is_timer && came.from < due;
        let timers = self.interrupts.iter().filter(others);
        let rounds = timers.filter_map(|came| {
            let first = self.ran.partition_point(|(at, _)| *at < came.from);
            let mut within = self.ran[first..].iter();
            let (read, _) = within.find(|(_, func)| Some(*func) == reads)?;
            let (set, _) = within.find(|(_, func)| Some(*func) == sets)?;
            let first = (came.from, *read, Shares::First);
            // The arrival is the earlier one. Before a sleep there is no telling: it has no length
            // in positions.
            let slept = self.last_halt(came.from);
            let awake = slept.map_or(0, |halt| halt + 1).min(came.from);
            let earlier = |at: &u64| {
                let from = came.from.saturating_sub(2 * SLACK + at - came.from);
                from.max(awake)
            };
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

#[cfg(test)]
mod tests {
    use punctual_model::Architecture;

    use super::*;
    use crate::symbols::Symbols;
    use crate::user_symbols::UserSymbols;

    const KALLSYMS: &str = "ffffffff81000000 T _text\n\
        ffffffff81000100 T ktime_get_update_offsets_now\n\
        ffffffff81000200 T clockevents_program_event\n\
        ffffffff81000300 T __hrtimer_run_queues\n\
        ffffffff81000400 T timerqueue_del\n\
        ffffffff81000500 T hrtimer_wakeup\n\
        ffffffff81000600 T hrtimer_interrupt\n\
        ffffffff81000700 T rb_erase\n";

    fn came(from: u64) -> Came {
        Came {
            from,
            to: from + 900,
            is_timer: true,
            scheduled: None,
        }
    }

    /// Tests a period in which these functions ran from these positions on, after these interrupts.
    fn tested(interrupts: &[u64], ran: &[(u64, u64)], test: impl FnOnce(Period, &Names)) {
        let symbols = Symbols::parse(Architecture::Amd64, KALLSYMS).unwrap();
        let programs = UserSymbols::default();
        let mut names = Names::new(&symbols, &programs);
        let mut func = |number: u64| names.at(0xffff_ffff_8100_0000 + number * 0x100, &[]).0;
        let ran = ran.iter().map(|(at, number)| (*at, func(*number)));
        let period = Period {
            ran: ran.collect(),
            interrupts: interrupts.iter().map(|from| came(*from)).collect(),
            ..Period::default()
        };
        test(period, &names);
    }

    #[test]
    fn an_arrival_shares_with_an_interrupt_shortly_after_it_but_not_with_its_own() {
        let ran = [(5_200, 1), (5_600, 2), (9_200, 1), (9_600, 2)];
        tested(&[5_000, 9_000], &ran, |mut period, names| {
            let within = [(5_000, 5_200, Shares::First), (5_200, 5_600, Shares::Again)];
            let before = [(4_300, 4_700, Shares::Again), (4_700, 5_000, Shares::First)];
            let due = 9_000 - SLACK;
            assert_eq!(period.rounds(due, names), [before, within].concat());
            // Nothing before a sleep shares with what ends it.
            period.halts = vec![5_000];
            let none = [(5_000, 5_000, Shares::Again), (5_000, 5_000, Shares::First)];
            assert_eq!(period.rounds(due, names), [none, within].concat());
        });
    }

    #[test]
    fn what_an_interrupt_does_once_is_told_without_a_function_for_the_queue() {
        let entered = [(5_100, 6), (5_200, 3)];
        let woken = [(5_400, 5), (5_700, 3), (5_800, 6)];
        let served = |between: &[(u64, u64)], behind: &[(u64, u64)]| {
            let ran = [&entered, between, &woken, behind].concat();
            let mut told = None;
            tested(&[5_000], &ran, |period, names| {
                told = period.served(&period.interrupts[0], names);
            });
            told
        };
        assert_eq!(served(&[(5_250, 4), (5_260, 7)], &[]), Some((450, 300)));
        // Linux 7; what other timers do behind it is none of its.
        assert_eq!(served(&[(5_260, 7)], &[]), Some((440, 300)));
        assert_eq!(served(&[(5_260, 7)], &[(6_500, 4)]), Some((440, 300)));
        assert_eq!(served(&[], &[(6_500, 4)]), Some((300, 300)));
    }
}
