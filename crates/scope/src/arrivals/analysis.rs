// SPDX-License-Identifier: MIT OR Apache-2.0
//! From periods to how late each arrival would have been, and where the worst of them are.

use std::collections::HashMap;

use punctual_model::Nanos;

use super::path::{From, Paths, State};
use super::switch;
use super::tail::{Slope, Tail};
use super::timeline::{
    AFTER_TICK, Came, Change, IRQS, OFF, PREEMPT, Period, SOFTIRQ, TICKED, USER,
};
use crate::guest_clock::GuestClock;
use crate::names::{CodeKind, Func, Names};

/// Shorter than this nothing is a place.
const PLACE: u64 = 500;
/// So many beginnings of nested sections are kept of a place.
const STARTS: usize = 3;
/// No interrupt of the timer's takes longer to serve one timer.
const SOON: u64 = 10_000;
/// So long after a timer is due its interrupt comes: the kernel tells the timer how long to wait,
/// and takes so long to tell it.
const SLACK: u64 = 50;
/// The guest's clock and the count of instructions round, and differ by a millionth.
const ROUNDING: u64 = 100;

/// A sample that ends a period, by the guest's clock.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// From the reading of the clock for the sample before to when this one was due.
    pub after: Nanos,
    /// How late it was.
    pub late: Nanos,
}

/// What is off at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Off {
    /// Interrupts, for most of it.
    Interrupts,
    /// Soft interrupts, or one is served.
    SoftInterrupts,
    /// Preemption.
    Preemption,
    /// The kernel does not ask whether another thread is to run.
    NoPreemptionPoint,
}

impl Off {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupts => "interrupts off",
            Self::SoftInterrupts => "soft interrupts off or served",
            Self::Preemption => "preemption off",
            Self::NoPreemptionPoint => "no preemption point",
        }
    }
}

/// Which place: what is off, who switched it off, and who ran most.
pub type Key = (Off, Func, Func);

/// The longest stretch of a place.
#[derive(Clone, Debug)]
pub struct Found {
    /// How many such stretches there were.
    pub count: u64,
    /// Its length, in instructions.
    pub length: u64,
    /// How long the function ran that ran most.
    pub most: u64,
    /// The sample that its period ends.
    pub sample: u64,
    /// How long after the clock was read for the sample before; none where the CPU slept in
    /// between and after.
    pub after: Option<Nanos>,
    /// From where its sample was armed to where the probe's thread gave up the CPU, in
    /// instructions.
    pub arming: u64,
    /// Whether that sample's timer was the first of all to be due when it was armed, and whether
    /// one that is due here would be.
    pub first: (bool, bool),
    /// By how much longer arming takes for a sample that is due here.
    pub shift: i64,
    /// Where sections begin within it, after its begin: in instructions.
    pub starts: Vec<u64>,
    /// The state that the path behind it begins in.
    pub state: State,
    /// Interrupts that come into the path: how long they take.
    pub falls_in: u64,
    /// What is saved, as one interrupt serves two timers.
    pub saved: u64,
}

/// A stretch of arrivals that end in one way.
struct Piece {
    from: u64,
    to: u64,
    /// Where what is off is over; `to`, or each moment itself where nothing is.
    until: Option<u64>,
    state: State,
    key: Option<Key>,
    shares: Shares,
}

/// From where to where arrivals share an interrupt, and how.
type Round = (u64, u64, Shares);

/// Whether an arrival's interrupt is one that comes anyhow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shares {
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
struct Handling {
    whole: Vec<u64>,
    /// Entry, exit, and the setting of the next timer: what one interrupt does once, however many
    /// timers it serves.
    shared: Vec<u64>,
    /// All but the wake-up itself.
    besides: Vec<u64>,
}

impl Handling {
    fn sort(&mut self) {
        self.whole.sort_unstable();
        self.shared.sort_unstable();
        self.besides.sort_unstable();
    }

    /// What one interrupt for two timers saves.
    fn saved(&self) -> u64 {
        median(&self.shared)
    }

    /// What is saved where it finds, when it has served one, that another is due: it goes through
    /// its queues again, and does not wait for the next interrupt.
    fn saved_again(&self) -> u64 {
        median(&self.besides) + SLACK
    }

    /// Until when after its begin it finds another timer due, and serves it.
    fn open(&self) -> u64 {
        median(&self.whole).saturating_sub(self.saved() / 2)
    }
}

fn median(sorted: &[u64]) -> u64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

/// All that is known of a step.
#[derive(Default)]
pub struct Analysis {
    pieces: Vec<Piece>,
    /// The timer's interrupts, each with its length.
    timers: Vec<(u64, u64)>,
    /// Sleep in instructions' time; how often one was ended by the timer, and what that took.
    sleep: u64,
    woken: Vec<u64>,
    paths: Paths,
    handling: Handling,
    /// How long arming a sample takes, in instructions: where another timer is due before it, and
    /// where it is the first.
    arming: [Vec<u64>; 2],
    found: HashMap<Key, Found>,
    /// How many periods there were.
    pub periods: u64,
    /// Samples whose path is not learnt from, as another interrupt was in it.
    pub crossed: u64,
    /// Periods in which instructions and the guest's clock do not agree.
    pub strange: u64,
}

/// Where a sample was due, in instructions, and whether the CPU slept.
struct Due {
    at: u64,
    slept: bool,
    sleep: u64,
}

fn due(period: &Period, ends: Ends, clock: GuestClock) -> Option<Due> {
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
    /// Takes a period with the sample that ends it.
    pub fn take(&mut self, period: &Period, ends: Ends, clock: GuestClock, names: &Names) {
        self.periods += 1;
        let (Some(due), Some(left)) = (due(period, ends, clock), period.left) else {
            self.strange += 1;
            return;
        };
        self.learn(period, &due, clock.instructions(ends.late), names);
        self.paths.extras.learn(period, names);
        let arming = left.saturating_sub(period.armed);
        self.arming[usize::from(period.is_first(due.at))].push(arming);
        let timers = period.interrupts.iter().filter(|came| came.is_timer);
        let timers = timers.filter(|came| came.from < due.at);
        self.timers
            .extend(timers.clone().map(|came| (came.from, came.to - came.from)));
        self.sleep += due.sleep;
        let woken = timers.filter(|came| period.halts.contains(&came.from));
        self.woken.extend(woken.map(|came| came.to - came.from));
        let range = (left, due.at);
        let rounds = period.rounds(names);
        let mut after = period.interrupts.iter().filter(|came| came.from >= due.at);
        let own = after.find(|came| came.is_timer).copied();
        for mut run in runs(&period.changes, due.at, names) {
            // The sample's own interrupt does not come where another moment is due.
            if let Some(own) = own.filter(|own| own.to <= run.to) {
                let length = own.to - own.from;
                (run.own, run.to) = (length, run.to - length);
                run.masked = run.masked.saturating_sub(length);
            }
            for run in apart(run, period) {
                self.run(period, &run, (range, &rounds), (&due, ends), clock);
            }
        }
    }

    /// A stretch in which something is off, or nothing is.
    fn run(
        &mut self,
        period: &Period,
        run: &RunOf,
        (range, rounds): ((u64, u64), &[Round]),
        (due, ends): (&Due, Ends),
        clock: GuestClock,
    ) {
        let (from, to) = (run.from.max(range.0), run.to.min(range.1));
        if from >= to {
            return;
        }
        let Some(end) = run.end else {
            let kind = if run.user { From::User } else { From::Kernel };
            self.pieces.push(Piece {
                from,
                to,
                until: None,
                state: State::open(kind, run.held),
                key: None,
                shares: Shares::No,
            });
            return;
        };
        let (deferred, direct) = states(period, &end, run.is_switch);
        let (deferred, direct) = run
            .within
            .map_or((deferred, direct), |state| (state, state));
        let key = self.place(period, run, from, (due, ends), deferred, clock);
        let split = run.masked.saturating_sub(SLACK).clamp(from, to);
        let waiting = run.waiting(period).into_iter();
        let early = |(at, until): (u64, u64)| (at.saturating_sub(SLACK).max(from), until);
        let waiting = waiting.map(early);
        let waiting = waiting.map(|(at, until)| (at, until, Shares::At(until)));
        let shares: Vec<Round> = waiting.chain(rounds.iter().copied()).collect();
        let mut cuts = vec![from, split, to];
        cuts.extend(shares.iter().flat_map(|(from, to, _)| [*from, *to]));
        cuts.retain(|cut| (from..=to).contains(cut));
        cuts.sort_unstable();
        for pair in cuts.windows(2).filter(|pair| pair[0] < pair[1]) {
            let (from, to) = (pair[0], pair[1]);
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
            });
        }
    }

    fn place(
        &mut self,
        period: &Period,
        run: &RunOf,
        from: u64,
        (due, ends): (&Due, Ends),
        state: State,
        clock: GuestClock,
    ) -> Option<Key> {
        let length = run.to - from;
        if length < PLACE {
            return None;
        }
        let (most, ran) = period.longest(from, run.to)?;
        let key = (run.off(from), run.by, most);
        let found = self.found.entry(key).or_insert_with(|| Found {
            count: 0,
            length: 0,
            most: 0,
            sample: 0,
            after: None,
            arming: 0,
            first: (false, false),
            shift: 0,
            starts: Vec::new(),
            state,
            falls_in: 0,
            saved: 0,
        });
        found.count += 1;
        if length > found.length {
            *found = Found {
                count: found.count,
                length,
                most: ran,
                sample: period.sample,
                after: moment(period, from, due, ends, clock),
                arming: period.left.unwrap_or(period.armed) - period.armed,
                first: (period.is_first(due.at), period.is_first(from)),
                shift: 0,
                starts: run.nested(from),
                state: State {
                    from: if run.masked <= from {
                        From::Kernel
                    } else {
                        state.from
                    },
                    ..state
                },
                falls_in: 0,
                saved: 0,
            };
        }
        Some(key)
    }

    /// The path of the sample that ends a period.
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
        if due.slept {
            self.paths.learn(State::IDLE, late, 0);
            return;
        }
        let all = runs(&period.changes, period.taken, names);
        let Some(run) = all.iter().find(|run| run.from <= due.at && due.at < run.to) else {
            return;
        };
        let Some(end) = run.end else {
            let kind = if run.user { From::User } else { From::Kernel };
            let extra = switch::extra(period, due.at, names);
            self.paths.learn(State::open(kind, run.held), late, extra);
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
            self.paths.learn(state, path, extra);
        }
    }

    /// All is known: how late each arrival would be, and where the worst are.
    pub fn finish(mut self) -> (Tail, Paths, Vec<(Key, Found)>) {
        self.paths.sort();
        self.timers.sort_unstable();
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
                    let late = |at: u64| (until - at + falls_in).saturating_sub(saved);
                    let (most, least) = (late(piece.from), late(piece.to));
                    let least = least.min(most);
                    let slope = Slope { most, least };
                    tail.slope(piece.state, slope);
                    let place = piece.key.and_then(|key| found.get_mut(&key));
                    if let Some(place) = place.filter(|place| place.length == until - piece.from) {
                        (place.falls_in, place.state) = (falls_in, piece.state);
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
            tail.flat(idle, *length, before);
        }
        tail.flat(idle, 0, slept);
        tail.sort(&self.paths);
        for place in found.values_mut() {
            place.shift = self.shift(place.first);
        }
        (tail, self.paths, found.into_iter().collect())
    }

    /// By how much longer arming a sample takes that is due at a place than its own sample's
    /// took, in instructions.
    fn shift(&self, (was, is): (bool, bool)) -> i64 {
        let [later, first] = self.arming.each_ref().map(|all| median(all));
        if was == is || later == 0 || first == 0 {
            return 0;
        }
        let longer = first as i64 - later as i64;
        if is { longer } else { -longer }
    }

    /// Nothing is off, but the timer's interrupt may come into the path.
    fn open(&self, piece: &Piece, path: u64, tail: &mut Tail) {
        let next = self.timers.partition_point(|(from, _)| *from < piece.from);
        let next = self.timers.get(next);
        let crossed = next.filter(|(from, _)| *from < piece.to + path);
        let Some((from, length)) = crossed else {
            tail.flat(piece.state, 0, piece.to - piece.from);
            return;
        };
        let split = from.saturating_sub(path).clamp(piece.from, piece.to);
        tail.flat(piece.state, 0, split - piece.from);
        tail.flat(piece.state, *length, piece.to - split);
    }

    /// What is saved, as one interrupt of the timer's serves two.
    fn saved(&self, shares: Shares) -> u64 {
        let at = match shares {
            Shares::No => return 0,
            Shares::First => return self.handling.saved(),
            Shares::Again => return self.handling.saved_again(),
            Shares::At(at) => at,
        };
        let next = self.timers.partition_point(|(from, _)| *from < at);
        let next = self.timers.get(next);
        let is_one = next.is_some_and(|(from, _)| *from <= at + self.handling.open().max(2));
        if is_one { self.handling.saved() } else { 0 }
    }

    fn falls_in(&self, from: u64, to: u64) -> u64 {
        let first = self.timers.partition_point(|(at, _)| *at < from);
        let within = self.timers[first..].iter().take_while(|(at, _)| *at < to);
        within.map(|(_, length)| length).sum()
    }
}

/// When a place begins, after the clock was read for the sample before.
fn moment(period: &Period, at: u64, due: &Due, ends: Ends, clock: GuestClock) -> Option<Nanos> {
    let slept_before = period.halts.iter().any(|halt| *halt <= at);
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

/// From which states the path goes on: of arrivals whose interrupt comes before the end, and at it.
fn states(period: &Period, end: &Change, is_switch: bool) -> (State, State) {
    let kinds = if period.halts.contains(&end.at) {
        (From::Idle, From::Idle)
    } else if end.state & USER != 0 {
        (From::Leave, From::User)
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

/// A stretch in which something is off, or nothing is.
struct RunOf {
    from: u64,
    to: u64,
    /// The change that ends it, where something is off.
    end: Option<Change>,
    user: bool,
    /// What the thread holds, where nothing is off.
    held: u8,
    by: Func,
    /// Whether the scheduler ends it.
    is_switch: bool,
    /// How long the sample's own interrupt took in it, which is left out.
    own: u64,
    /// The state that the path begins in, where that is not told by the change at its end.
    within: Option<State>,
    /// Since when interrupts are off at its end; its end where they are not.
    masked: u64,
    /// What is off, and for how long.
    off: Vec<(u64, u8)>,
}

impl RunOf {
    /// The stretches in which interrupts are off; two where an interrupt came in between.
    fn all_masked(&self) -> Vec<(u64, u64)> {
        let ends = self.off.iter().skip(1).map(|(at, _)| *at).chain([self.to]);
        let mut found: Vec<(u64, u64)> = Vec::new();
        let mut apart = false;
        for ((at, state), end) in self.off.iter().zip(ends) {
            if state & IRQS == 0 {
                apart = true;
            } else if *at < end {
                match found.last_mut().filter(|last| last.1 == *at && !apart) {
                    Some(last) => last.1 = end,
                    None => found.push((*at, end)),
                }
                apart = false;
            }
        }
        found
    }

    /// The stretches with interrupts off at whose end, or shortly after, one of the timer's comes.
    fn waiting(&self, period: &Period) -> Vec<(u64, u64)> {
        let timers = || period.interrupts.iter().filter(|came| came.is_timer);
        let comes = |(_, end): &(u64, u64)| {
            let soon = |came: &Came| (*end..=*end + SOON).contains(&came.from);
            timers().any(soon)
        };
        let mut found = self.all_masked();
        found.retain(comes);
        found
    }

    /// Where the longest sections with interrupts off begin within it, after its begin.
    fn nested(&self, from: u64) -> Vec<u64> {
        let mut all = self.all_masked();
        all.retain(|(at, _)| *at > from + ROUNDING);
        all.sort_by_key(|(at, end)| (*at, *end));
        all.sort_by_key(|(at, end)| std::cmp::Reverse(end - at));
        let starts = all.into_iter().take(STARTS);
        starts.map(|(at, _)| at - from).collect()
    }

    /// What is off for most of it.
    fn off(&self, from: u64) -> Off {
        let ends = self.off.iter().skip(1).map(|(at, _)| *at).chain([self.to]);
        let mut sums = [0; 4];
        for ((at, state), end) in self.off.iter().zip(ends) {
            let length = end.saturating_sub(from.max(*at));
            let kind = match state {
                state if state & IRQS != 0 => 0,
                state if state & SOFTIRQ != 0 => 1,
                state if state & PREEMPT != 0 => 2,
                _ => 3,
            };
            sums[kind] += length;
        }
        let kinds = [
            Off::Interrupts,
            Off::SoftInterrupts,
            Off::Preemption,
            Off::NoPreemptionPoint,
        ];
        // Interrupts off keep a thread away as preemption off does, and so on.
        let (all, mut sum): (u64, _) = (sums.iter().sum(), 0);
        let most = sums.iter().zip(kinds).find(|(own, _)| {
            sum += **own;
            2 * sum >= all
        });
        most.map_or(Off::NoPreemptionPoint, |(_, kind)| kind)
    }
}

/// The stretches of a period, in order, up to a position.
fn runs(changes: &[Change], until: u64, names: &Names) -> Vec<RunOf> {
    let mut found = Vec::new();
    let mut now: Option<RunOf> = None;
    let mut masked = None;
    for change in changes.iter().filter(|change| change.at <= until) {
        let off = change.state & OFF;
        match &mut now {
            Some(run) if off != 0 => {
                run.off.push((change.at, off));
            }
            _ => {}
        }
        let ends = off == 0 && now.is_some();
        if let Some(mut run) = now.take_if(|_| ends) {
            run.to = change.at;
            run.masked = masked.unwrap_or(change.at);
            run.end = Some(*change);
            run.is_switch = is_switch(change, names);
            found.push(run);
        }
        if off & IRQS != 0 {
            masked.get_or_insert(change.at);
        } else {
            masked = None;
        }
        if off == 0 {
            open(&mut found, change, changes, until);
        } else {
            now.get_or_insert_with(|| RunOf {
                from: change.at,
                to: until,
                end: None,
                user: false,
                held: change.held,
                by: change.by,
                is_switch: false,
                own: 0,
                within: None,
                masked: until,
                off: vec![(change.at, off)],
            });
        }
    }
    // What is not over is followed to its end.
    if let Some(mut run) = now {
        let rest = changes.iter().skip_while(|change| change.at <= until);
        let rest: Vec<&Change> = rest.collect();
        let end = rest.iter().find(|change| change.state & OFF == 0);
        if let Some(end) = end {
            run.to = end.at;
            let mut masked = masked;
            for change in rest.iter().take_while(|change| change.at < end.at) {
                let is_masked = change.state & IRQS != 0;
                masked = masked.or(Some(change.at)).filter(|_| is_masked);
            }
            run.masked = masked.unwrap_or(end.at);
            run.end = Some(**end);
            run.is_switch = is_switch(end, names);
            found.push(run);
        }
    }
    found
}

/// An interrupt that goes over into the scheduler has it look for a thread: who is ready by then
/// gets the CPU.
fn apart(run: RunOf, period: &Period) -> Vec<RunOf> {
    let within = |came: &&Came| run.from <= came.from && came.to < run.to;
    let came = period.interrupts.iter().filter(within);
    let last = came
        .filter_map(|came| Some((came.to, came.scheduled?)))
        .next_back();
    let Some((at, from_user)) = last.filter(|_| run.end.is_some()) else {
        return vec![run];
    };
    let kind = if from_user { From::User } else { From::Kernel };
    let before = run.off.iter().copied().filter(|(from, _)| *from < at);
    let state = run.off.iter().rev().find(|(from, _)| *from <= at);
    let state = state.map_or(IRQS, |(_, state)| *state);
    let behind = run.off.iter().copied().filter(|(from, _)| *from > at);
    let behind = [(at, state)].into_iter().chain(behind);
    let changes = period.changes.iter();
    let by = changes.take_while(|change| change.at <= at).last();
    let first = RunOf {
        to: at,
        within: Some(State::open(kind, by.map_or(0, |change| change.held))),
        masked: at,
        off: before.collect(),
        ..run
    };
    let second = RunOf {
        from: at,
        by: by.map_or(run.by, |change| change.by),
        masked: run.masked.max(at),
        off: behind.collect(),
        ..run
    };
    vec![first, second]
}

fn is_switch(end: &Change, names: &Names) -> bool {
    names.name(end.func).kind == CodeKind::Scheduler
}

fn open(found: &mut Vec<RunOf>, change: &Change, changes: &[Change], until: u64) {
    let next = changes.partition_point(|other| other.at <= change.at);
    let to = changes.get(next).map_or(until, |next| next.at).min(until);
    found.push(RunOf {
        from: change.at,
        to,
        end: None,
        user: change.state & USER != 0,
        held: change.held,
        by: change.by,
        is_switch: false,
        own: 0,
        within: None,
        masked: to,
        off: Vec::new(),
    });
}

impl Period {
    /// Whether no other timer is due before a position, from where the sample was armed.
    fn is_first(&self, at: u64) -> bool {
        let mut timers = self.interrupts.iter().filter(|came| came.is_timer);
        !timers.any(|came| (self.armed..at).contains(&came.from))
    }

    /// How long an interrupt serves a timer, and how long the wake-up takes of that; if it is all
    /// of one timer that is no tick.
    fn served(&self, came: &Came, names: &Names) -> Option<(u64, u64)> {
        let range = came.from..came.to;
        if self.ticks.iter().any(|tick| range.contains(tick)) {
            return None;
        }
        let first = self.ran.partition_point(|(at, _)| *at < came.from);
        let mut within = self.ran[first..].iter();
        let mut find = |name: &str| within.find(|(_, func)| names.text(*func) == name);
        find("__hrtimer_run_queues")?;
        // What comes before and behind is done once.
        let (from, _) = find("timerqueue_del")?;
        let (wakes, _) = find("hrtimer_wakeup")?;
        let (woken, _) = find("__hrtimer_run_queues")?;
        let (to, _) = find("hrtimer_interrupt")?;
        (*to < came.to).then(|| (woken - from, woken - wakes))
    }

    /// Within which of the timer's interrupts an arrival is served by them: before they read the
    /// clock, and behind that until they set the next timer.
    fn rounds(&self, names: &Names) -> Vec<Round> {
        let reads = names.known("ktime_get_update_offsets_now");
        let sets = names.known("clockevents_program_event");
        let timers = self.interrupts.iter().filter(|came| came.is_timer);
        let rounds = timers.filter_map(|came| {
            let first = self.ran.partition_point(|(at, _)| *at < came.from);
            let mut within = self.ran[first..].iter();
            let (read, _) = within.find(|(_, func)| Some(*func) == reads)?;
            let (set, _) = within.find(|(_, func)| Some(*func) == sets)?;
            let first = (came.from, *read, Shares::First);
            (*set < came.to).then_some([first, (*read, *set, Shares::Again)])
        });
        rounds.flatten().collect()
    }

    /// Which function ran longest, and for how long.
    fn longest(&self, from: u64, to: u64) -> Option<(Func, u64)> {
        let first = self
            .ran
            .partition_point(|(at, _)| *at <= from)
            .saturating_sub(1);
        let mut own: HashMap<Func, u64> = HashMap::new();
        let all = &self.ran[first.min(self.ran.len())..];
        let ends = all.iter().skip(1).map(|(at, _)| *at).chain([to]);
        let pieces = all.iter().zip(ends).take_while(|((at, _), _)| *at < to);
        for ((at, func), end) in pieces {
            let length = end.min(to).saturating_sub((*at).max(from));
            *own.entry(*func).or_default() += length;
        }
        own.into_iter().max_by_key(|(func, ran)| (*ran, *func))
    }
}
