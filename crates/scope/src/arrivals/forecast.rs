// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes how late each arrival would have been from the periods, and finds the worst places.

use std::collections::HashMap;

use punctual_model::Nanos;

use super::handling::{Handling, Round, SLACK, Shares, median};
use super::looks::{self, Spared, spared};
use super::path::{From, Paths, State, Walked};
use super::place::{Found, Key};
use super::steps::{Kind, Times, add_times};
use super::stretch::{ROUNDING, Stretch, apart, before_last_look, stretches};
use super::switch::{self, SCHEDULER};
use super::tail::{Slope, Tail};
use super::timeline::{AFTER_TICK, Came, Change, Look, OFF, Period, TICKED, USER};
use crate::guest_clock::GuestClock;
use crate::names::{Func, Names};

/// The functions with which a timer wakes the thread that has set it.
const WAKERS: [&str; 5] = [
    "hrtimer_wakeup",
    "timerfd_tmrproc",
    "posix_timer_fn",
    "it_real_fn",
    "dl_task_timer",
];
/// The minimum length of a place.
const PLACE: u64 = 500;
/// A sample that ends a period, by the guest's clock.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Time from the reading of the clock for the previous sample to when this one was due.
    pub after: Nanos,
    /// Its lateness.
    pub late: Nanos,
}

/// A stretch of arrivals that end in one way.
struct Piece {
    from: u64,
    to: u64,
    /// Position at which what is off is over; `to`, or each moment itself if nothing is off.
    until: Option<u64>,
    state: State,
    key: Option<Key>,
    shares: Shares,
    /// The amount of what is off that such an arrival spares.
    spared: u64,
}

/// The analysis of a step.
#[derive(Default)]
pub struct Analysis {
    pieces: Vec<Piece>,
    /// The timer's interrupts, each with its length.
    timers: Vec<(u64, u64)>,
    /// Sleep, in instructions; and the lengths of the timer's interrupts that ended it.
    pub(super) sleep: u64,
    woken: Vec<u64>,
    /// The positions at which the CPU was put to sleep, each with how long it slept.
    sleeps: Vec<(u64, u64)>,
    pub(super) paths: Paths,
    handling: Handling,
    /// Times that arming a sample takes, in instructions: where another timer is due before it, and
    /// where it is the first.
    arming: [Vec<u64>; 2],
    found: HashMap<Key, Found>,
    /// The number of periods that were seen, looked at or not.
    pub seen: u64,
    /// The number of periods that were looked at.
    pub periods: u64,
    /// The number of samples from whose path nothing is learnt, as another interrupt was in it.
    pub crossed: u64,
    /// The number of periods in which instructions and the guest's clock do not agree, or in which
    /// something that was off was missed.
    pub strange: u64,
    /// The number of samples whose timer's interrupt does not wake the thread itself.
    pub roundabout: u64,
    /// True if it is of a program's thread, before which others may go.
    of_program: bool,
    /// Stretches in which threads that go before it have the CPU.
    ahead: Vec<Ahead>,
}

/// A stretch in which threads that go before the waiting one have the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ahead {
    from: u64,
    length: u64,
    /// The function that runs most of it, and its time.
    most: (Func, u64),
}

/// A period with its context.
#[derive(Clone, Copy)]
struct About<'a> {
    period: &'a Period,
    due: &'a Due,
    ends: Ends,
    clock: GuestClock,
    names: &'a Names<'a>,
    looks: &'a [Look],
    /// The interrupt of the sample that ends it.
    own: Option<(u64, u64)>,
}

impl About<'_> {
    /// Splits a range of positions, leaving out the sample's own interrupt.
    fn apart(&self, (from, to): (u64, u64)) -> [(u64, u64); 2] {
        let within = self
            .own
            .filter(|own| from <= own.0 && own.1 <= to + (own.1 - own.0));
        match within {
            // The stretch was told without it, and is so much longer.
            Some(own) => [(from, own.0), (own.1, to + (own.1 - own.0))],
            None => [(from, to), (to, to)],
        }
    }

    /// Adds the time of each function between two positions, leaving out the sample's own
    /// interrupt.
    fn add_times(&self, times: &mut Times<Func>, range: (u64, u64)) {
        let kind = |func| Kind::of(self.names.text(func));
        for range in self.apart(range) {
            add_times(times, self.period.ran_in(range), range, kind);
        }
    }
}

/// The moment at which a sample was due, in instructions, and whether the CPU slept.
pub(super) struct Due {
    pub(super) at: u64,
    pub(super) slept: bool,
    pub(super) sleep: u64,
}

pub(super) fn due(period: &Period, ends: Ends, clock: GuestClock) -> Option<Due> {
    if period.mended {
        return None;
    }
    let late = clock.instructions(ends.late);
    let at = period.taken.checked_sub(late)?;
    let halt = period.halts.iter().rev().find(|halt| **halt > at);
    let at = halt.copied().unwrap_or(at);
    let executed = at.checked_sub(period.read)?;
    let sleep = clock.instructions(ends.after).checked_sub(executed);
    let slept = halt.is_some();
    let over = || executed.saturating_sub(clock.instructions(ends.after));
    let sleep = sleep.or_else(|| (over() < ROUNDING).then_some(0))?;
    let fits = sleep < ROUNDING || !period.halts.is_empty();
    fits.then_some(Due { at, slept, sleep })
}

impl Analysis {
    /// Creates the analysis of a program's thread.
    pub fn of_program() -> Self {
        Self {
            of_program: true,
            ..Self::default()
        }
    }

    /// Takes a period with the sample that ends it.
    pub fn take(&mut self, period: &Period, ends: Ends, clock: GuestClock, names: &Names) {
        self.seen += 1;
        let overdue = clock.instructions(ends.late) > period.taken.saturating_sub(period.read);
        if self.of_program && overdue {
            return;
        }
        let (Some(due), Some(left)) = (due(period, ends, clock), period.left) else {
            self.strange += 1;
            return;
        };
        // It was due before it slept: it slept for something else, and awaited no moment.
        if self.of_program && due.at < left {
            return;
        }
        self.periods += 1;
        self.learn(period, &due, clock.instructions(ends.late), names);
        self.paths.extras.learn(period, names);
        // A program does its work between the two.
        if !self.of_program {
            let arming = left.saturating_sub(period.armed);
            self.arming[usize::from(period.is_first(due.at))].push(arming);
        }
        let ahead = period.all_ahead().into_iter();
        let ahead = ahead.filter(|(from, to)| left <= *from && *to <= due.at);
        self.ahead.extend(ahead.filter_map(|range| {
            let (from, to) = range;
            let length = to - from;
            let most = period.longest(&[range])?;
            Some(Ahead { from, length, most })
        }));
        let timers = period.interrupts.iter().filter(|came| came.is_timer);
        let timers = timers.filter(|came| came.from < due.at);
        // Those that come while a thread goes first are a part of that.
        let alone = timers.clone().filter(|came| !period.is_ahead(came.from));
        self.timers
            .extend(alone.map(|came| (came.from, came.to - came.from)));
        self.sleep += due.sleep;
        self.sleeps.extend(period.sleeps(&due));
        // Some architectures wake up with interrupts off still.
        let woken = timers.filter(|came| {
            let slept = period.last_halt(came.from);
            slept.is_some_and(|halt| came.from - halt <= ROUNDING)
        });
        self.woken.extend(woken.map(|came| came.to - came.from));
        let rounds = period.rounds(due.at, names);
        let mut after = period.interrupts.iter().filter(|came| came.from >= due.at);
        let own = after.find(|came| came.is_timer).copied();
        let mut looks = looks::all(period, names);
        // For this thread none of those leaves off that go before it.
        looks.retain(|look| !period.is_ahead(look.at));
        for mut run in stretches(&period.changes, due.at, names) {
            // The sample's own interrupt does not come where another moment is due.
            if let Some(own) = own.filter(|own| own.to <= run.to) {
                let length = own.to - own.from;
                (run.own, run.to) = (length, run.to - length);
                run.last = run.last.min(run.to);
                run.masked = run.masked.saturating_sub(length);
            }
            // A section in which the sample is due goes on behind that, and so do its arrivals.
            let until = run.end.map_or(due.at, |_| run.to.max(due.at));
            let range = (left, until);
            let parts = apart(run, period).into_iter();
            let scheduler = names.known(SCHEDULER);
            for run in parts.flat_map(|run| before_last_look(run, period, scheduler)) {
                let own = own.map(|own| (own.from, own.to));
                let looks = &looks;
                let about = About {
                    looks,
                    period,
                    due: &due,
                    ends,
                    clock,
                    names,
                    own,
                };
                self.run(&run, (range, &rounds), &about);
            }
        }
    }

    /// Takes a stretch in which interrupts are off, or on.
    pub(super) fn masked(
        &mut self,
        run: &Stretch,
        (range, state): ((u64, u64), State),
        (period, due): (&Period, &Due),
        (ends, clock, names): (Ends, GuestClock, &Names),
    ) {
        let (from, to) = (run.from.max(range.0), run.last.min(range.1));
        if from >= to {
            return;
        }
        let about = About {
            period,
            due,
            ends,
            clock,
            names,
            looks: &[],
            own: None,
        };
        let is_off = run.end.is_some();
        let kind = if run.user { From::User } else { From::Kernel };
        let place = is_off.then(|| self.places(run, (from, to), &[], state, &about));
        self.pieces.push(Piece {
            from,
            to,
            until: is_off.then_some(run.to),
            state: if is_off { state } else { State::open(kind, 0) },
            key: place.flatten(),
            shares: Shares::No,
            spared: 0,
        });
    }

    /// Takes a stretch in which something is off, or nothing is.
    fn run(&mut self, run: &Stretch, (range, rounds): ((u64, u64), &[Round]), about: &About<'_>) {
        let (from, to) = (run.from.max(range.0), run.last.min(range.1));
        if from >= to {
            return;
        }
        let period = about.period;
        let Some(end) = run.end else {
            let kind = if run.user { From::User } else { From::Kernel };
            self.pieces.push(Piece {
                from,
                to,
                until: None,
                state: State::open(kind, run.held),
                key: None,
                shares: Shares::No,
                spared: 0,
            });
            return;
        };
        let (deferred, direct) = states(period, &end, run.is_switch);
        let (deferred, direct) = run
            .within
            .map_or((deferred, direct), |state| (state, state));
        let looked = spared(about.looks, (from, run.to), run.own, &run.all_masked());
        let key = self.places(run, (from, to), &looked, deferred, about);
        let split = run.masked.saturating_sub(SLACK).clamp(from, to);
        let waiting = run.waiting(period).into_iter();
        let early = |(at, until): (u64, u64)| (at.saturating_sub(SLACK).max(from), until);
        let waiting = waiting.map(early);
        let waiting = waiting.map(|(at, until)| (at, until, Shares::At(until)));
        let shares: Vec<Round> = waiting.chain(rounds.iter().copied()).collect();
        let mut cuts = vec![from, split, to];
        cuts.extend(shares.iter().flat_map(|(from, to, _)| [*from, *to]));
        cuts.extend(looked.iter().map(|one| one.until));
        cuts.retain(|cut| (from..=to).contains(cut));
        cuts.sort_unstable();
        for pair in cuts.windows(2).filter(|pair| pair[0] < pair[1]) {
            let (from, to) = (pair[0], pair[1]);
            let next = looked.partition_point(|one| one.until <= from);
            self.pieces.push(Piece {
                from,
                to,
                until: Some(run.to),
                state: if from < split { deferred } else { direct },
                key,
                shares: shares
                    .iter()
                    .find(|one| one.0 <= from && to <= one.1)
                    .map_or(Shares::No, |one| one.2),
                spared: looked.get(next).map_or(0, |one| one.length),
            });
        }
    }

    /// Adds places. The latest moment of a stretch is one, and so is the first that spares nothing.
    fn places(
        &mut self,
        run: &Stretch,
        (from, to): (u64, u64),
        spares: &[Spared],
        state: State,
        about: &About<'_>,
    ) -> Option<Key> {
        let begins = [from].into_iter().chain(spares.iter().map(|one| one.until));
        let begins = begins.filter(|begin| *begin < to);
        let each = begins.zip(spares.iter().map(Some).chain([None]));
        let left = |(begin, spared): &(u64, Option<&Spared>)| {
            (run.to - begin).saturating_sub(spared.map_or(0, |one| one.length))
        };
        let each: Vec<_> = each.collect();
        let most = each.iter().rev().max_by_key(|one| left(one))?;
        let key = self.place(run, *most, state, about);
        if let Some(last) = each.last().filter(|last| last.0 != most.0) {
            self.place(run, *last, state, about);
        }
        key
    }

    fn place(
        &mut self,
        run: &Stretch,
        (from, spared): (u64, Option<&Spared>),
        state: State,
        about: &About<'_>,
    ) -> Option<Key> {
        let About {
            period, due, ends, ..
        } = *about;
        let length = (run.to - from).saturating_sub(spared.map_or(0, |one| one.length));
        if length < PLACE {
            return None;
        }
        let whole = (from, run.to);
        let ranges = spared.map_or(vec![whole], |one| looks::left(about.looks, one, whole));
        let (most, ran) = period.longest(&ranges)?;
        let off = run.off(from);
        // Sections that have begun before it are cut off there.
        let before = |change: &Change| change.at <= run.from && change.state & OFF == 0;
        let open = period.changes.iter().rposition(before).unwrap_or(0);
        let by = off.by(&period.changes[open..], &about.apart(whole));
        let by = by.unwrap_or(run.by);
        let key = (off, by, most);
        let found = self.found.entry(key).or_insert_with(|| Found::of(0, state));
        found.count += 1;
        if length > found.length {
            let mut times = Times::new();
            for range in ranges {
                about.add_times(&mut times, range);
            }
            *found = Found {
                length,
                most: ran,
                ran: times,
                sample: period.sample,
                after: moment(period, from, due, ends, about.clock),
                arming: period.left.unwrap_or(period.armed) - period.armed,
                first: (period.is_first(due.at), period.is_first(from)),
                wait: period.wait.map(|wait| (wait, ends.after)),
                starts: run.nested(from),
                state: State {
                    from: if run.masked <= from {
                        From::Kernel
                    } else {
                        state.from
                    },
                    ..state
                },
                ..Found::of(found.count, state)
            };
        }
        Some(key)
    }

    /// Learns the path of the sample that ends a period.
    fn learn(&mut self, period: &Period, due: &Due, late: u64, names: &Names) {
        let mut after = period.interrupts.iter().filter(|came| came.from >= due.at);
        let own = after.find(|came| came.is_timer);
        let Some(own) = own else {
            self.crossed += 1;
            return;
        };
        if let Some((served, woken)) = period.served(own, names) {
            let length = own.to - own.from;
            self.handling.whole.push(length);
            self.handling.shared.push(length.saturating_sub(served));
            self.handling.besides.push(length.saturating_sub(woken));
        }
        let ticks = period.ticks.iter().any(|tick| *tick >= due.at);
        if ticks || after.next().is_some() {
            self.crossed += 1;
            return;
        }
        if self.of_program && !self.is_direct(period, due, own, names) {
            return;
        }
        if due.slept {
            self.paths.learn(State::IDLE, late, 0, Walked::default());
            return;
        }
        let all = stretches(&period.changes, period.taken, names);
        let Some(run) = all.iter().find(|run| run.from <= due.at && due.at < run.to) else {
            return;
        };
        let Some(end) = run.end else {
            let kind = if run.user { From::User } else { From::Kernel };
            let extra = switch::extra(period, due.at, names);
            let walked = walked(period, &[(due.at, period.switched)], names);
            self.paths
                .learn(State::open(kind, run.held), late, extra, walked);
            return;
        };
        let (deferred, direct) = states(period, &end, run.is_switch);
        let off = run.to - due.at;
        let (state, path) = if own.from >= run.to {
            (direct, late.checked_sub(off))
        } else {
            let path = (late + (own.to - own.from)).checked_sub(off);
            (deferred, path)
        };
        if let Some(path) = path {
            let extra = switch::extra(period, run.to, names);
            // The interrupt that came before counts as path.
            let before = (own.from, if own.from < run.to { own.to } else { own.from });
            let walked = walked(period, &[before, (run.to, period.switched)], names);
            self.paths.learn(state, path, extra, walked);
        }
    }

    /// Returns true if a program's thread went the path of an arrival: its timer's interrupt woke
    /// it, and no other thread went before it then.
    fn is_direct(&mut self, period: &Period, due: &Due, own: &Came, names: &Names) -> bool {
        let mut ran = period.ran_in((own.from, own.to));
        if !ran.any(|(_, func)| WAKERS.contains(&names.text(func))) {
            self.roundabout += 1;
            return false;
        }
        let behind = |(from, _): &(u64, u64)| due.at <= *from;
        let is_crossed = period.all_ahead().iter().any(behind);
        self.crossed += u64::from(is_crossed);
        !is_crossed
    }

    /// Finishes: returns how late each arrival would be, and the worst places.
    pub fn finish(mut self) -> (Tail, Paths, Vec<(Key, Found)>) {
        self.paths.sort();
        self.timers.sort_unstable();
        self.sleeps.sort_unstable();
        self.ahead.sort_unstable();
        self.handling.sort();
        self.arming.iter_mut().for_each(|all| all.sort_unstable());
        let mut tail = Tail::default();
        let mut found = std::mem::take(&mut self.found);
        for piece in &self.pieces {
            let path = self.paths.typical(piece.state).unwrap_or(0);
            match piece.until {
                None => self.open(piece, path, &mut tail),
                Some(until) => {
                    let falls_in = self.falls_in(until, until + path);
                    let saved = self.saved(piece.shares);
                    let spared = saved + piece.spared;
                    let late = |at: u64| (until - at + falls_in).saturating_sub(spared);
                    let (most, least) = (late(piece.from), late(piece.to));
                    let least = least.min(most);
                    let slope = Slope { most, least };
                    tail.slope(piece.state, slope);
                    let place = piece.key.and_then(|key| found.get_mut(&key));
                    let length = (until - piece.from).saturating_sub(piece.spared);
                    if let Some(place) = place.filter(|place| place.length == length) {
                        (place.falls_in, place.state) = (falls_in, piece.state);
                        place.ahead = self.longest_ahead(until, until + path, place.length);
                        place.saved = saved;
                    }
                }
            }
        }
        let idle = State::IDLE;
        let path = self.paths.typical(idle).unwrap_or(0);
        let mut slept = self.sleep;
        for length in &self.woken {
            let before = path.min(slept);
            slept -= before;
            // Where the arrival's own interrupt is not over yet, it serves that timer, too.
            let served = (2 * SLACK + self.handling.open()).min(before);
            let rest = length.saturating_sub(self.handling.saved());
            tail.flat(idle, rest, served);
            if served < before {
                tail.flat(idle, *length, before - served);
            }
        }
        tail.flat(idle, 0, slept);
        tail.sort(&self.paths);
        for place in found.values_mut() {
            place.shift = self.shift(place.first);
        }
        (tail, self.paths, found.into_iter().collect())
    }

    /// Returns the extra time that arming a sample due at a place takes, compared with its own
    /// sample, in instructions.
    fn shift(&self, (was, is): (bool, bool)) -> i64 {
        let [later, first] = self.arming.each_ref().map(|all| median(all));
        if was == is || later == 0 || first == 0 {
            return 0;
        }
        let longer = first as i64 - later as i64;
        if is { longer } else { -longer }
    }

    /// Adds a piece in which nothing is off, but the timer's interrupt may come into the path.
    fn open(&self, piece: &Piece, path: u64, tail: &mut Tail) {
        let next = self.timers.partition_point(|(from, _)| *from < piece.from);
        let next = self.timers.get(next);
        // The interrupt comes so much later, as seen from here.
        let after = |from: u64| from + self.slept(piece.from + 1, from);
        let crossed = next.filter(|(from, _)| after(*from) < piece.to + path);
        let Some((from, length)) = crossed else {
            tail.flat(piece.state, 0, piece.to - piece.from);
            return;
        };
        let came = after(*from);
        let split = came.saturating_sub(path).clamp(piece.from, piece.to);
        let length = length + self.goes_before(from + 1, from + length + path);
        // Where the arrival's own interrupt is not over yet, it serves that timer, too.
        let served = came.saturating_sub(2 * SLACK + self.handling.open());
        let served = served.clamp(split, piece.to);
        tail.flat(piece.state, 0, split - piece.from);
        tail.flat(piece.state, length, served - split);
        let rest = length.saturating_sub(self.handling.saved());
        tail.flat(piece.state, rest, piece.to - served);
    }

    /// Returns the time that is saved, as one of the timer's interrupts serves two.
    fn saved(&self, shares: Shares) -> u64 {
        let at = match shares {
            Shares::No => return 0,
            Shares::First => return self.handling.saved(),
            Shares::Again => return self.handling.saved_again(),
            Shares::At(at) => at,
        };
        let next = self.timers.partition_point(|(from, _)| *from < at);
        let next = self.timers.get(next);
        let open = self.handling.open().max(2);
        let is_one = next.is_some_and(|(from, _)| from + self.slept(at, *from) <= at + open);
        if is_one { self.handling.saved() } else { 0 }
    }

    /// Returns how long the CPU slept between two positions. Positions stand still meanwhile, and
    /// the interrupt that ends a sleep is at the very position at which it began.
    fn slept(&self, from: u64, to: u64) -> u64 {
        let first = self.sleeps.partition_point(|(at, _)| *at < from);
        let within = self.sleeps[first..].iter().take_while(|(at, _)| *at <= to);
        within.map(|(_, length)| length).sum()
    }

    /// Returns how long the timer's interrupts take that come into a path from a position on, which
    /// would be over at another one. What comes behind a sleep comes that much later.
    fn falls_in(&self, from: u64, to: u64) -> u64 {
        let first = self.timers.partition_point(|(at, _)| *at < from);
        let within = self.timers[first..].iter();
        let within = within.take_while(|(at, _)| at + self.slept(from, *at) < to);
        let fallen: u64 = within.map(|(_, length)| length).sum();
        fallen + self.goes_before(from, to + fallen)
    }

    /// Returns how long threads that go before a program's, and get the CPU on such a path, have
    /// it.
    fn goes_before(&self, from: u64, to: u64) -> u64 {
        self.ahead_in(from, to).iter().map(|one| one.length).sum()
    }

    fn ahead_in(&self, from: u64, to: u64) -> &[Ahead] {
        let first = self.ahead.partition_point(|one| one.from < from);
        let behind = &self.ahead[first..];
        let within = |one: &&Ahead| one.from + self.slept(from, one.from) < to;
        &behind[..behind.iter().take_while(within).count()]
    }

    /// Returns the function that threads that go before a program's run most on such a path, and
    /// its time, if one of them has the CPU for longer than `length`.
    fn longest_ahead(&self, from: u64, to: u64, length: u64) -> Option<(Func, u64)> {
        let longest = self.ahead_in(from, to).iter().max_by_key(|one| one.length);
        longest
            .filter(|one| one.length > length)
            .map(|one| one.most)
    }
}

/// Returns the start of a place, after the clock was read for the previous sample.
fn moment(period: &Period, at: u64, due: &Due, ends: Ends, clock: GuestClock) -> Option<Nanos> {
    let slept_before = period.last_halt(at).is_some();
    let sleeps_after = period
        .halts
        .iter()
        .any(|halt| at < *halt && *halt <= due.at);
    if !slept_before {
        Some(clock.time(at - period.read))
    } else if !sleeps_after && !due.slept {
        Some(ends.after - clock.time(due.at - at))
    } else {
        None
    }
}

/// Returns the states from which the path goes on: for arrivals whose interrupt comes before the
/// end, and at it.
fn states(period: &Period, end: &Change, is_switch: bool) -> (State, State) {
    let kinds = if period.halts.contains(&end.at) {
        (From::Idle, From::Idle)
    } else if end.state & USER != 0 {
        (From::Schedule, From::User)
    } else if end.scheduled {
        (From::Schedule, From::Schedule)
    } else if is_switch {
        (From::Switched, From::Kernel)
    } else {
        (From::Preempt, From::Kernel)
    };
    let (func, held) = (end.func, end.held);
    let ticked = |tick: &u64| (end.at.saturating_sub(TICKED)..end.at).contains(tick);
    let held = held | (u8::from(period.ticks.iter().any(ticked)) * AFTER_TICK);
    let state = |from: From| State { from, func, held };
    (state(kinds.0), state(kinds.1))
}

/// Returns how a sample's path was walked: its ranges before the switch, and the rest after it.
fn walked(period: &Period, ranges: &[(u64, u64)], names: &Names) -> Walked {
    let mut ran = Times::new();
    let kind = |func| Kind::of(names.text(func));
    for range in ranges.iter().filter(|range| range.0 < range.1) {
        add_times(&mut ran, period.ran_in(*range), *range, kind);
    }
    let back = period.taken.saturating_sub(period.switched);
    Walked { ran, back }
}

impl Period {
    /// Returns the positions at which the CPU was put to sleep before a sample was due, each with
    /// how long it slept. If it slept several times, only the sum is known: each of them is taken
    /// for as long as the others.
    fn sleeps(&self, due: &Due) -> impl Iterator<Item = (u64, u64)> {
        let halts = self.halts.iter().filter(|halt| **halt <= due.at);
        let count = halts.clone().count() as u64;
        let each = due.sleep.checked_div(count).unwrap_or(0);
        halts.map(move |halt| (*halt, each))
    }

    /// Returns the functions that ran between two positions, each with its first position.
    fn ran_in(&self, (from, to): (u64, u64)) -> impl Iterator<Item = (u64, Func)> {
        let first = self.ran.partition_point(|(at, _)| *at <= from);
        let ran = self.ran[first.saturating_sub(1)..].iter();
        // The one behind the end tells how long the last ran.
        ran.take_while(move |(at, _)| *at < to).copied()
    }

    /// Returns the function that ran longest in these ranges, and its time.
    fn longest(&self, ranges: &[(u64, u64)]) -> Option<(Func, u64)> {
        let mut own = Times::new();
        for range in ranges.iter().filter(|range| range.0 < range.1) {
            add_times(&mut own, self.ran_in(*range), *range, |_| Kind::Plain);
        }
        own.into_iter().max_by_key(|(func, ran)| (*ran, *func))
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::Architecture;

    use super::*;
    use crate::symbols::Symbols;
    use crate::user_symbols::UserSymbols;

    /// Creates an analysis in which the CPU sleeps for this long from position 1,000 on, and one of
    /// the timer's interrupts ends that.
    fn asleep(length: u64) -> Analysis {
        Analysis {
            timers: vec![(1_000, 900)],
            sleep: length,
            woken: vec![900],
            sleeps: vec![(1_000, length)],
            handling: Handling {
                whole: vec![900],
                shared: vec![700],
                besides: vec![600],
            },
            ..Analysis::default()
        }
    }

    #[test]
    fn a_period_that_is_left_out_was_not_looked_at() {
        let symbols = Symbols::parse(Architecture::Amd64, "ffffffff81000000 T _text\n").unwrap();
        let programs = UserSymbols::default();
        let names = Names::new(&symbols, &programs);
        let clock = GuestClock::new(1, 1_000_000).unwrap();
        let whole = Period {
            left: Some(100),
            taken: 10_000,
            ..Period::default()
        };
        let mended = Period {
            mended: true,
            ..whole.clone()
        };
        // It was due at 9,500, before it slept.
        let busy = Period {
            left: Some(9_800),
            ..whole.clone()
        };
        let counted = |mut analysis: Analysis, period: &Period, late: i64| {
            let ends = Ends {
                after: Nanos(9_500),
                late: Nanos(late),
            };
            analysis.take(period, ends, clock, &names);
            assert_eq!(analysis.seen, 1);
            (analysis.periods, analysis.strange)
        };
        assert_eq!(counted(Analysis::default(), &whole, 500), (1, 0));
        assert_eq!(counted(Analysis::default(), &mended, 500), (0, 1));
        assert_eq!(counted(Analysis::of_program(), &whole, 500), (1, 0));
        assert_eq!(counted(Analysis::of_program(), &mended, 500), (0, 1));
        assert_eq!(counted(Analysis::of_program(), &busy, 500), (0, 0));
        // It was due before the clock was read for the sample before.
        assert_eq!(counted(Analysis::of_program(), &whole, 10_001), (0, 0));
    }

    #[test]
    fn what_ends_a_sleep_does_not_come_into_the_path_of_what_was_before_it() {
        // What was off is over where the CPU is put to sleep.
        let falls_in = |length| asleep(length).falls_in(1_000, 5_000);
        assert_eq!((falls_in(0), falls_in(3_999)), (900, 900));
        assert_eq!(falls_in(4_000), 0);
        // Interrupts are on one instruction before.
        let saved = |length| asleep(length).saved(Shares::At(999));
        assert_eq!((saved(0), saved(50_000)), (700, 0));
        // Where nothing is off.
        let besides = |length| {
            let piece = Piece {
                from: 500,
                to: 1_000,
                until: None,
                state: State::open(From::Kernel, 0),
                key: None,
                shares: Shares::No,
                spared: 0,
            };
            let mut tail = Tail::default();
            asleep(length).open(&piece, 4_000, &mut tail);
            (tail.time, tail.most())
        };
        assert_eq!(besides(2_000), (500, 900));
        assert_eq!(besides(50_000), (500, 0));
    }

    #[test]
    fn threads_that_go_first_behind_a_sleep_are_not_in_a_path_before_it() {
        let ahead = |length| Analysis {
            ahead: vec![Ahead {
                from: 1_200,
                length: 70,
                most: (0, 60),
            }],
            ..asleep(length)
        };
        assert_eq!(ahead(0).goes_before(1_000, 3_000), 70);
        assert_eq!(ahead(50_000).goes_before(1_000, 3_000), 0);
        assert_eq!(ahead(50_000).goes_before(1_001, 3_000), 70);
        assert_eq!(ahead(50_000).longest_ahead(1_000, 3_000, 0), None);
    }

    #[test]
    fn an_arrival_shortly_before_the_end_of_a_sleep_shares_its_interrupt() {
        let mut analysis = asleep(100_000);
        let paths = &mut analysis.paths;
        (0..3).for_each(|_| paths.learn(State::IDLE, 4_000, 0, Walked::default()));
        let (tail, ..) = analysis.finish();
        assert_eq!(tail.time, 100_000);
        for (x, later) in [(4_000, 0.04), (4_200, 0.0335), (4_900, 0.0)] {
            let found = tail.later(x);
            assert!((found - later).abs() < 1e-12, "{x}: {found}");
        }
    }
}
