// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrivals of an interrupt: only disabled interrupts keep its handler away.

use punctual_model::Nanos;

use super::forecast::{Analysis, Due, Ends, due};
use super::path::{From, State, Walked};
use super::stretch::{ROUNDING, stretches};
use super::timeline::{Came, Change, IRQS, Period, USER};
use crate::guest_clock::GuestClock;
use crate::names::Names;

/// One more instruction runs after the one that opens interrupts before they come.
const SHADOW: u64 = 2;

impl Analysis {
    /// Takes a period with the sample that ends it, and the time from when it was due to its
    /// handler.
    pub fn take_interrupt(
        &mut self,
        period: &Period,
        (ends, handled): (Ends, Nanos),
        clock: GuestClock,
        names: &Names,
    ) {
        self.seen += 1;
        let (Some(mut due), Some(left)) = (due(period, ends, clock), period.left) else {
            self.strange += 1;
            return;
        };
        let asserted = period.taken.saturating_sub(clock.instructions(ends.late));
        let ran = asserted + clock.instructions(handled);
        let Some(own) = period.handled_at(ran) else {
            self.strange += 1;
            return;
        };
        self.periods += 1;
        // The handler's way is that from the interrupt's entry, whatever was off before.
        let from = period.state_at(own.from);
        self.paths.learn(from, ran - own.from, 0, Walked::default());
        due.meets(period, own, (ends, clock));
        self.sleep += due.sleep;
        let range = (left, due.at);
        for run in stretches(&period.masked(), due.at, names) {
            let state = period.state_at(run.to);
            self.masked(&run, (range, state), (period, &due), (ends, clock, names));
        }
    }
}

impl Due {
    /// Corrects the moment of an interrupt that comes where the CPU sleeps, and has woken it. The
    /// device's clock and the guest's differ by their grain.
    fn meets(&mut self, period: &Period, own: &Came, (ends, clock): (Ends, GuestClock)) {
        let wakes = !self.slept && period.halts.contains(&own.from);
        if wakes && own.from.abs_diff(self.at) <= ROUNDING {
            let executed = own.from.saturating_sub(period.read);
            self.sleep = clock.instructions(ends.after).saturating_sub(executed);
            (self.at, self.slept) = (own.from, true);
        }
        // Its own time is none in which another moment is due.
        self.at = self.at.min(own.from);
    }
}

impl Period {
    /// Returns the interrupt whose handler ran at a position; no other comes into it.
    fn handled_at(&self, at: u64) -> Option<&Came> {
        let mut before = self.interrupts.iter().rev();
        let own = before.find(|came| came.from <= at)?;
        (!own.is_timer && at < own.to).then_some(own)
    }

    /// Returns the state that an interrupt at a position interrupts.
    fn state_at(&self, at: u64) -> State {
        if self
            .halts
            .iter()
            .any(|halt| (at..=at + SHADOW).contains(halt))
        {
            return State::IDLE;
        }
        let before = self.changes.partition_point(|change| change.at <= at);
        // An interrupt that comes there has noted that they are off since.
        let open = self.changes[..before].iter().rev();
        let open = open.clone().find(|change| change.state & IRQS == 0);
        let is_user = open.is_some_and(|change| change.state & USER != 0);
        State::open(if is_user { From::User } else { From::Kernel }, 0)
    }

    /// Returns the changes of interrupts off. Where they are on again, one of the timer's
    /// interrupts goes before any device's, so that they stay off for it.
    fn masked(&self) -> Vec<Change> {
        let mut found: Vec<Change> = Vec::new();
        for change in &self.changes {
            let state = change.state & (IRQS | USER);
            let change = Change { state, ..*change };
            let last = found.last().copied();
            if last.is_some_and(|last| last.state == state) {
                continue;
            }
            let opened = last.filter(|last| last.state & IRQS == 0 && state & IRQS != 0);
            if opened.is_some_and(|opened| found.len() > 1 && !self.lets_in(opened.at, change.at)) {
                found.pop();
                // Off before and behind, and nothing in between.
                if found.last().is_some_and(|before| before.state & IRQS != 0) {
                    continue;
                }
            }
            found.push(change);
        }
        found
    }

    /// Returns true if a device's interrupt comes in where interrupts are on from one position to
    /// another.
    fn lets_in(&self, from: u64, to: u64) -> bool {
        let mut halts = self.halts.iter();
        if to > from + SHADOW || halts.any(|halt| (from..=to).contains(halt)) {
            return true;
        }
        let mut came = self.interrupts.iter();
        match came.find(|came| came.from == to) {
            Some(came) => !came.is_timer,
            None => from < to,
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::Architecture;

    use super::super::timeline::PREEMPT;
    use super::*;
    use crate::symbols::Symbols;
    use crate::user_symbols::UserSymbols;

    /// Returns a period with these states from these positions on.
    fn period(changes: &[(u64, u8)]) -> Period {
        let changes = changes.iter().map(|(at, state)| Change {
            at: *at,
            state: *state,
            by: 0,
            func: 0,
            scheduled: false,
            held: 0,
        });
        Period {
            changes: changes.collect(),
            ..Period::default()
        }
    }

    fn came(from: u64, to: u64, is_timer: bool) -> Came {
        Came {
            from,
            to,
            is_timer,
            scheduled: None,
        }
    }

    fn masked(period: &Period) -> Vec<(u64, u8)> {
        let changes = period.masked();
        changes.iter().map(|one| (one.at, one.state)).collect()
    }

    #[test]
    fn a_period_that_is_left_out_was_not_looked_at() {
        let symbols = Symbols::parse(Architecture::Amd64, "ffffffff81000000 T _text\n").unwrap();
        let programs = UserSymbols::default();
        let names = Names::new(&symbols, &programs);
        let whole = Period {
            left: Some(100),
            taken: 10_000,
            interrupts: vec![came(9_500, 9_700, false)],
            ..Period::default()
        };
        let without_handler = Period {
            interrupts: Vec::new(),
            ..whole.clone()
        };
        let mended = Period {
            mended: true,
            ..whole.clone()
        };
        let mut analysis = Analysis::default();
        for period in [whole, without_handler, mended] {
            let ends = Ends {
                after: Nanos(9_500),
                late: Nanos(500),
            };
            let clock = GuestClock::new(1, 1_000_000).unwrap();
            analysis.take_interrupt(&period, (ends, Nanos(100)), clock, &names);
        }
        assert_eq!(analysis.seen, 3);
        assert_eq!((analysis.periods, analysis.strange), (1, 2));
    }

    #[test]
    fn nothing_but_interrupts_off_counts() {
        let changes = [(0, USER), (5, 0), (10, PREEMPT), (20, 0), (30, PREEMPT)];
        let off = [(40, PREEMPT | IRQS), (50, IRQS), (60, 0)];
        let period = period(&[&changes[..], &off].concat());
        assert_eq!(masked(&period), [(0, USER), (5, 0), (40, IRQS), (60, 0)]);
    }

    #[test]
    fn the_timer_goes_before_a_device_where_both_wait_and_no_other_interrupt_does() {
        for (open, is_timer) in [(200, true), (201, true), (200, false)] {
            let mut period = period(&[(0, 0), (100, IRQS), (open, 0), (202, IRQS), (300, 0)]);
            period.interrupts = vec![came(202, 300, is_timer)];
            let apart = [(0, 0), (100, IRQS), (open, 0), (202, IRQS), (300, 0)];
            let whole = [(0, 0), (100, IRQS), (300, 0)];
            let expected = if is_timer { &whole[..] } else { &apart };
            assert_eq!(masked(&period), expected, "{open}, {is_timer}");
        }
        // Where they are on for longer, the device's has come before.
        let mut period = period(&[(0, 0), (100, IRQS), (199, 0), (202, IRQS), (300, 0)]);
        period.interrupts = vec![came(202, 300, true)];
        assert_eq!(masked(&period).len(), 5);
    }

    #[test]
    fn a_sleeping_cpu_lets_interrupts_in_and_a_call_of_the_scheduler_does_not() {
        let mut period = period(&[(0, 0), (100, IRQS), (200, 0), (200, IRQS), (300, 0)]);
        assert_eq!(masked(&period), [(0, 0), (100, IRQS), (300, 0)]);
        period.halts = vec![200];
        assert_eq!(masked(&period).len(), 5);
        assert_eq!(period.state_at(199), State::IDLE);
    }

    #[test]
    fn the_handlers_interrupt_is_the_last_before_it_and_no_timers() {
        let mut period = period(&[(0, USER), (200, IRQS), (300, USER)]);
        period.interrupts = vec![came(100, 150, false), came(200, 300, false)];
        assert_eq!(period.handled_at(250).map(|own| own.from), Some(200));
        assert_eq!(period.handled_at(300), None);
        assert_eq!(period.state_at(200).from, From::User);
        period.interrupts[1].is_timer = true;
        assert_eq!(period.handled_at(250), None);
    }
}
