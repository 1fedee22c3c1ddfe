// SPDX-License-Identifier: MIT OR Apache-2.0
//! The aimed sample: a run whose one deadline is moved to a place.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use punctual_bench::virtual_bench::Machine;
use punctual_model::aim::Aim;
use punctual_model::place::{RESPONSE, sister};
use punctual_model::probe::SampleSpan;
use punctual_model::{Nanos, Recording, Run, Sample};
use punctual_trace::{Item, Window};

use super::program::Wait;
use super::steps::{Differs, Kind, Times, WAY_BACK, add_times, differences};
use super::{Arrivals, Place, Waits};
use crate::blocks::Blocks;
use crate::breakdown::{Breakdown, Cause, breakdown};
use crate::error::ScopeError;
use crate::explain::{about, clock, of_followed, programs};
use crate::guest_clock::GuestClock;
use crate::names::{Names, has_line, program};
use crate::probes::{Chosen, choose};
use crate::repeat::{Moved, OnEvent, Repeater};
use crate::symbols::Symbols;
use crate::user_symbols::UserSymbols;
use crate::walk::{Span, Walk, Walker};

/// The result of an aim.
#[derive(Clone, Debug)]
pub struct Reached {
    /// The moment that was aimed at, after the reading of the clock for the previous sample.
    pub after: Nanos,
    /// The extra time until the thread was asleep, compared with the run. Arming another deadline
    /// can take another time, and everything that follows is later by that.
    pub shift: Nanos,
    /// Time from that reading of the clock to where the thread gave up the CPU.
    pub asleep: Nanos,
    /// Time from the start of the section that was then off to when it was due; `None` if nothing
    /// was off.
    pub into: Option<Nanos>,
    /// Lateness of the sample.
    pub late: Nanos,
    /// The sample.
    pub chosen: Chosen,
    /// Time of each function until the switch to the probe's thread.
    pub ran: BTreeMap<String, Nanos>,
    /// Time of the way back to user space after that.
    pub back: Nanos,
    /// The breakdown of its lateness, or the reason why there is none.
    pub breakdown: Result<Breakdown, String>,
}

/// The result of aiming two timers at once.
#[derive(Clone, Debug)]
pub struct Second {
    /// Time from the sample's own deadline to that of the second timer.
    pub behind: Nanos,
    /// Time for which something was off from where the sample was due.
    pub off: Nanos,
    /// The result of the aim.
    pub reached: Reached,
}

/// Aims samples of a run.
pub struct Aimer<'a> {
    repeater: &'a Repeater,
    run: &'a Run,
    machine: &'a Machine,
    symbols: Symbols,
    programs: UserSymbols,
    clock: GuestClock,
    cancel: &'a AtomicBool,
}

impl<'a> Aimer<'a> {
    /// Creates an aimer for a run on its machine.
    pub fn new(
        repeater: &'a Repeater,
        run: &'a Run,
        machine: &'a Machine,
        cancel: &'a AtomicBool,
    ) -> Result<Self, ScopeError> {
        Ok(Self {
            repeater,
            run,
            machine,
            symbols: repeater.symbols(machine, cancel)?,
            programs: programs(machine)?,
            clock: clock(run)?,
            cancel,
        })
    }

    /// Aims at these places of a recording, several at once. Returns the results in their order;
    /// `None` where the aimed sample was not seen. `on` receives what the first of those at once
    /// sees.
    pub fn reach_all(
        &self,
        recording: usize,
        places: &[&Place],
        at_once: usize,
        on: OnEvent,
    ) -> Result<Vec<Option<Reached>>, ScopeError> {
        let next = AtomicUsize::new(0);
        let work = |on: OnEvent| {
            let mut reached = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(place) = places.get(number) else {
                    return Ok(reached);
                };
                reached.push((number, self.reach(recording, place, on)?));
            }
        };
        let others = 1..at_once.min(places.len());
        let all = thread::scope(|scope| {
            let others = others.map(|_| scope.spawn(|| work(&mut |_| ())));
            let others: Vec<_> = others.collect();
            let mut all = vec![work(on)];
            let join = |other: thread::ScopedJoinHandle<'_, _>| {
                other.join().unwrap_or(Err(ScopeError::Unmarked(1)))
            };
            all.extend(others.into_iter().map(join));
            all
        });
        let all: Result<Vec<_>, ScopeError> = all.into_iter().collect();
        let mut all: Vec<(usize, Option<Reached>)> = all?.into_iter().flatten().collect();
        all.sort_by_key(|(number, _)| *number);
        Ok(all.into_iter().map(|(_, reached)| reached).collect())
    }

    /// Aims a sample of a recording at a time after the reading of the clock for the previous one,
    /// with a second timer due at a given time after it.
    fn aimed(
        &self,
        (recording, place): (usize, &Place),
        (after, second): (Nanos, Nanos),
        on: OnEvent,
    ) -> Result<Reached, ScopeError> {
        let (run, clock, symbols) = (self.run, self.clock, &self.symbols);
        let sample = place.sample;
        let aim = Aim {
            step: u64::from(run.recordings[recording].key.step),
            sample,
            after,
            second,
        };
        let (repeater, machine) = (self.repeater, self.machine);
        let (mut trace, found) =
            repeater.watch_aimed(run, machine, aim, symbols, self.cancel, on)?;
        let last = found.samples.iter().last();
        let last = last
            .filter(|last| last.seq == sample)
            .ok_or(ScopeError::Unmarked(1))?;
        let mut aimed = run.clone();
        aimed.recordings[recording] = found;
        let chosen = choose(&aimed, recording, last)?;
        let mut library = Blocks::new(Names::new(symbols, &self.programs));
        let window = trace.next_window(|block| library.learn(block))?;
        let (_, words) = window.ok_or(ScopeError::Unmarked(1))?;
        let walk = Walker::new(&library).window(&words);
        let left = walk.switches.first().map_or(0, |switch| switch.at);
        let taken = walk.clocks.last().map_or(0, |clock| clock.at);
        // Of a long wait the trace keeps the end only, and the thread was asleep before it.
        let due = taken.checked_sub(clock.instructions(last.value));
        // Arming two timers takes longer: the thread must be asleep when it is due.
        if due.is_some_and(|due| due <= left) {
            return Err(ScopeError::Unmarked(1));
        }
        let told = breakdown(&walk, library.names.all(), about(run, clock, &chosen));
        let into = into(&walk, clock.instructions(last.value));
        let back = walk.clocks.last().zip(walk.switches.last());
        let back = back.map_or(0, |(clock, switch)| clock.at.saturating_sub(switch.at));
        let back = clock.time(back);
        let ran = told
            .as_ref()
            .map(|told| ran(told, last.value - back))
            .unwrap_or_default();
        Ok(Reached {
            after,
            into: into.map(|into| clock.time(into)),
            shift: due.map_or(Nanos::ZERO, |_| clock.time(left) - clock.time(place.arming)),
            asleep: due.map_or(Nanos::ZERO, |due| after - clock.time(due - left)),
            late: last.value,
            ran,
            back,
            chosen,
            breakdown: told.map_err(|why| why.to_string()),
        })
    }

    fn reach(
        &self,
        recording: usize,
        place: &Place,
        on: OnEvent,
    ) -> Result<Option<Reached>, ScopeError> {
        if let Waits::Program = Waits::of(&self.run.recordings[recording]) {
            let mut runs = BTreeMap::new();
            let found = reach(place, place.shift, &mut |after| {
                let (found, all) = self.moved((recording, place, after), on)?;
                runs.insert(after, all);
                Ok(found)
            })?;
            let told = found.and_then(|found| Some((runs.remove(&found.after)?, found)));
            let told = told.map(|(all, found)| self.told((recording, place), found, all, on));
            return told.transpose();
        }
        reach(place, place.shift, &mut |after| {
            self.aimed((recording, place), (after, Nanos::ZERO), on)
        })
    }

    /// Aims again at a place that `first` has reached, with a second timer whose interrupt falls
    /// into the path after it. `None` if no such sample was seen.
    pub fn reach_with_second(
        &self,
        (recording, place): (usize, &Place),
        first: &Reached,
        on: OnEvent,
    ) -> Result<Option<Second>, ScopeError> {
        reach_with_second(place, first, &mut |moments| {
            self.aimed((recording, place), moments, on)
        })
    }

    /// Moves a program's wait, so that it is over at a given time after the reading of the clock
    /// for the previous cycle.
    fn moved(
        &self,
        (recording, place, after): (usize, &Place, Nanos),
        on: OnEvent,
    ) -> Result<(Reached, Vec<Recording>), ScopeError> {
        let own = &self.run.recordings[recording];
        let missed = || ScopeError::Unmarked(1);
        let moved = moved(own, place, after).ok_or_else(missed)?;
        let (repeater, cancel) = (self.repeater, self.cancel);
        let (run, machine, symbols) = (self.run, self.machine, &self.symbols);
        let all = repeater.move_wait(run, machine, moved, symbols, None, cancel, on)?;
        let is_own = |one: &&Recording| one.key == own.key;
        let found = all.iter().find(is_own).ok_or_else(missed)?;
        let seq = usize::try_from(place.sample).map_err(|_| missed())?;
        let [then, now] = [own, found].map(|one| one.samples.iter().take(seq + 1));
        let [mut then, mut now] = [then.collect::<Vec<_>>(), now.collect()];
        let (Some(unmoved), Some(sample)) = (then.pop(), now.pop()) else {
            return Err(missed());
        };
        // All before are those of the run; and it waited until the moment that it was moved to.
        if then != now || sample.at - unmoved.at != moved.to - moved.from {
            return Err(missed());
        }
        let before = |all: &[Recording]| {
            let response = sister(all, own, RESPONSE)?;
            response.samples.iter().nth(seq - 1).map(|one| one.value)
        };
        let shift = before(&all).zip(before(&run.recordings));
        let reached = Reached {
            after,
            into: None,
            shift: shift.map_or(Nanos::ZERO, |(now, then)| now - then),
            asleep: Nanos::ZERO,
            late: sample.value,
            ran: BTreeMap::new(),
            back: Nanos::ZERO,
            chosen: chosen(recording, own.key.step, sample),
            breakdown: Err("it was not watched".to_owned()),
        };
        Ok((reached, all))
    }

    /// The same with the story of the sample that was reached.
    fn told(
        &self,
        (recording, place): (usize, &Place),
        found: Reached,
        all: Vec<Recording>,
        on: OnEvent,
    ) -> Result<Reached, ScopeError> {
        let own = &self.run.recordings[recording];
        let missed = || ScopeError::Unmarked(1);
        let moved = moved(own, place, found.after).ok_or_else(missed)?;
        let (repeater, cancel) = (self.repeater, self.cancel);
        let (machine, symbols) = (self.machine, &self.symbols);
        // Where its cycle is now is known by the recordings alone.
        let mut run = self.run.clone();
        for now in all {
            if let Some(then) = run.recordings.iter_mut().find(|then| then.key == now.key) {
                *then = now;
            }
        }
        let chosen = match choose(&run, recording, found.chosen.sample) {
            Ok(chosen) => chosen,
            Err(why) => {
                let breakdown = Err(why.to_string());
                return Ok(Reached { breakdown, ..found });
            }
        };
        let follow = &mut |take: &mut (dyn FnMut(&Item) + Send)| {
            let take = Some(take);
            let all = repeater.move_wait(self.run, machine, moved, symbols, take, cancel, &mut *on);
            all.map(drop)
        };
        let names = (symbols, &self.programs);
        let told = of_followed(&run, machine, &[chosen], names, follow)?;
        let breakdown = told.into_iter().next().ok_or_else(missed)?.breakdown;
        let ran = breakdown.as_ref().map(|told| ran(told, found.late));
        Ok(Reached {
            ran: ran.unwrap_or_default(),
            chosen,
            breakdown,
            ..found
        })
    }
}

/// Returns a sample of a program's thread of which nothing else is known.
fn chosen(recording: usize, step: u32, sample: Sample) -> Chosen {
    let index = sample.seq;
    Chosen {
        recording,
        sample,
        span: SampleSpan::Cycle,
        cycle: None,
        window: Window {
            step,
            index,
            cpu: None,
        },
        ends_before: Nanos::ZERO,
    }
}

/// Returns the wait of a place, moved so that it is over at a given time after the reading of the
/// clock for the previous cycle; `None` if it is not given by a moment.
fn moved(own: &Recording, place: &Place, after: Nanos) -> Option<Moved> {
    let (wait, then) = movable(place)?;
    Some(Moved {
        step: own.key.step,
        call: wait.call,
        from: wait.expires,
        to: wait.expires + after - then,
    })
}

/// Returns the wait of a place and the time from the reading of the clock to when it was due, if it
/// is given by a moment. That moment is in the program's memory.
fn movable(place: &Place) -> Option<(Wait, Nanos)> {
    place.wait.filter(|(wait, _)| wait.is_absolute)
}

/// Aims at a place, at one moment after the other until one is as late as foretold. Returns the
/// latest of them; `None` if the aimed sample was not seen. `shift` is the extra time that arming
/// is expected to take compared with the run.
fn reach(
    place: &Place,
    mut shift: Nanos,
    aimed: &mut dyn FnMut(Nanos) -> Result<Reached, ScopeError>,
) -> Result<Option<Reached>, ScopeError> {
    let Some(begin) = place.after else {
        return Ok(None);
    };
    let mut nested = place.starts.iter().copied();
    let (mut latest, mut offset) = (None::<Reached>, Nanos::ZERO);
    let mut located = false;
    for _ in 0..TRIES {
        let after = begin + shift + offset + MARGIN;
        let found = match aimed(after) {
            // What was reached before stands, and other places have their own samples.
            Err(ScopeError::Unmarked(_)) => break,
            found => found?,
        };
        let (late, is_shifted, into) = (found.late, found.shift != shift, found.into);
        shift = found.shift;
        if latest.as_ref().is_none_or(|latest| latest.late < late) {
            latest = Some(found);
        }
        if is_hit(place.foretold, late) || late > place.foretold {
            break;
        }
        let half = Nanos(place.length.0 / 2);
        offset = if is_shifted {
            // What is aimed at comes later where arming takes longer.
            offset
        } else if located {
            match into.filter(|_| offset == half) {
                // From the middle of a section its begin is seen.
                Some(into) => half - into,
                None => match nested.next() {
                    Some(start) => start,
                    None => break,
                },
            }
        } else {
            located = true;
            half
        };
    }
    Ok(latest)
}

/// Aims at a place with a second timer at half of the path after it until the place is found, then
/// at the path's first and third quarter. The latest counts.
fn reach_with_second(
    place: &Place,
    first: &Reached,
    aimed: &mut dyn FnMut((Nanos, Nanos)) -> Result<Reached, ScopeError>,
) -> Result<Option<Second>, ScopeError> {
    let path = (place.path + place.falls_in).min(first.late);
    let off = first.late - path;
    let quarter = |number: i64| off + Nanos(path.0 * number / 4);
    let half = quarter(2);
    // Two timers are armed before the first of them counts.
    let mut with_half = |after| {
        let mut reached = aimed((after, half))?;
        reached.shift = first.shift + reached.asleep - first.asleep;
        Ok(reached)
    };
    let Some(found) = reach(place, first.shift, &mut with_half)? else {
        return Ok(None);
    };
    let (after, mut latest) = (found.after, (half, found));
    for behind in [quarter(1), quarter(3)] {
        match aimed((after, behind)) {
            Ok(reached) if reached.late > latest.1.late => latest = (behind, reached),
            Ok(_) | Err(ScopeError::Unmarked(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let (behind, reached) = latest;
    Ok(Some(Second {
        behind,
        off,
        reached,
    }))
}

/// Returns the time of each function from where the sample was due, up to a limit.
fn ran<'a>(told: &'a Breakdown, until: Nanos) -> BTreeMap<String, Nanos> {
    let at = |time: Nanos| time.0.max(0) as u64;
    let blocks = told.blocks.iter();
    // What is foretold of a program has its name only.
    let name = |function: &'a str| {
        if has_line(function) {
            program(function)
        } else {
            function
        }
    };
    let ran = blocks.map(|(from, _, _, function)| (at(*from), name(function)));
    let mut times = Times::new();
    add_times(&mut times, ran, (0, at(until)), Kind::of);
    let owned = times
        .into_iter()
        .map(|(name, time)| (name.to_owned(), Nanos(time as i64)));
    owned.collect()
}

impl Reached {
    /// Returns the time of interrupts after what was off for a given time, its own among them;
    /// `None` if there is no breakdown.
    pub fn interrupts(&self, off: Nanos) -> Option<Nanos> {
        let parts = self.breakdown.as_ref().ok()?.parts.iter();
        let interrupts = parts.filter(|part| part.cause == Cause::HardIrq);
        let behind = interrupts.map(|part| part.from + part.length - part.from.max(off));
        Some(behind.fold(Nanos::ZERO, |sum, time| sum + time.max(Nanos::ZERO)))
    }

    /// Returns the functions that ran longer than foretold, or less long.
    pub fn differs(&self, place: &Place) -> Vec<Differs> {
        let with = |ran: &BTreeMap<String, Nanos>, back| {
            let mut all = ran.clone();
            all.insert(WAY_BACK.to_owned(), back);
            all
        };
        differences(&with(&place.ran, place.back), &with(&self.ran, self.back))
    }
}

/// Returns how far within a section with interrupts or preemption off the sample was due.
fn into(walk: &Walk, late: u64) -> Option<u64> {
    let due = walk.clocks.last()?.at.checked_sub(late)?;
    let behind = walk.spans.partition_point(|span| span.from <= due);
    let off = |span: &&Span| span.irqs_off.is_some() || span.preempt_off.is_some();
    let spans = walk.spans[..behind].iter().rev().take_while(off);
    Some(due - spans.last()?.from)
}

/// The difference between the foretold and the reached value that still counts as a hit; a fiftieth
/// does, too.
pub const NEAR: Nanos = Nanos(100);

/// Returns true if the reached value is as foretold.
pub fn is_hit(foretold: Nanos, reached: Nanos) -> bool {
    (foretold - reached).0.abs() <= NEAR.0.max(foretold.0 / 50)
}

/// The number of moments of a place that are aimed at.
const TRIES: usize = 5;

/// Returns the places to aim at, at most a given number: the worst first, those of different
/// functions before others.
pub fn worth_aiming(all: &Arrivals, most: usize) -> Vec<usize> {
    let (places, mut seen) = (&all.places, Vec::new());
    let can = |number: &usize| {
        let place = &places[*number];
        let is_movable = all.waits != Waits::Program || movable(place).is_some();
        place.after.is_some() && is_movable
    };
    let (first, rest): (Vec<usize>, Vec<usize>) =
        (0..places.len()).filter(can).partition(|number| {
            let function = &places[*number].most.0;
            let is_new = !seen.contains(&function);
            seen.push(function);
            is_new
        });
    let mut chosen: Vec<usize> = first.into_iter().chain(rest).take(most).collect();
    chosen.sort_unstable();
    chosen
}

/// The distance of the first candidate from a place's start: the timer's own grain.
pub const MARGIN: Nanos = Nanos(20);

#[cfg(test)]
mod tests {
    use super::super::path::From;
    use super::super::place::Off;
    use super::*;

    /// Returns a place of 10 µs, 2 µs after the reading of the clock.
    fn place() -> Place {
        Place {
            off: Off::Interrupts,
            function: "irqs_off".into(),
            most: ("burns".into(), Nanos(9_000)),
            count: 1,
            length: Nanos(10_000),
            falls_in: Nanos::ZERO,
            from: From::Kernel,
            path: Nanos(4_000),
            foretold: Nanos(14_000),
            sample: 7,
            after: Some(Nanos(2_000)),
            arming: 500,
            shift: Nanos::ZERO,
            ran: BTreeMap::new(),
            back: Nanos::ZERO,
            wait: None,
            starts: vec![Nanos(3_000)],
        }
    }

    fn sample(late: i64) -> Sample {
        Sample {
            seq: 7,
            at: Nanos(2_000),
            value: Nanos(late),
        }
    }

    fn reached(after: Nanos, late: i64, into: Option<i64>) -> Reached {
        Reached {
            after,
            shift: Nanos::ZERO,
            asleep: Nanos(1_000),
            into: into.map(Nanos),
            late: Nanos(late),
            chosen: chosen(0, 0, sample(late)),
            ran: BTreeMap::new(),
            back: Nanos::ZERO,
            breakdown: Err("none".into()),
        }
    }

    /// Returns the result of these aims, and the moments at which they were.
    fn tried(
        aims: Vec<Result<(i64, Option<i64>), ScopeError>>,
    ) -> (Result<Option<Nanos>, ScopeError>, Vec<i64>) {
        let (mut aims, mut moments) = (aims.into_iter(), Vec::new());
        let found = reach(&place(), place().shift, &mut |after| {
            moments.push(after.0);
            let (late, into) = aims.next().expect("no further aim")?;
            Ok(reached(after, late, into))
        });
        (found.map(|one| one.map(|one| one.late)), moments)
    }

    #[test]
    fn a_sample_that_was_not_seen_ends_its_place_and_no_command() {
        let missed = || Err(ScopeError::Unmarked(1));
        let (found, moments) = tried(vec![missed()]);
        assert_eq!((found.unwrap(), moments), (None, vec![2_020]));
        // What was reached before stands.
        let (found, moments) = tried(vec![Ok((6_000, None)), missed()]);
        assert_eq!(found.unwrap(), Some(Nanos(6_000)));
        assert_eq!(moments, [2_020, 7_020]);
        // Any other error is one.
        assert!(tried(vec![Err(ScopeError::Host("r1".into()))]).0.is_err());
        let nowhere = Place {
            after: None,
            ..place()
        };
        let none = reach(&nowhere, Nanos::ZERO, &mut |_| {
            panic!("there is no moment to aim at")
        });
        assert!(none.unwrap().is_none());
    }

    /// Arming two timers takes 8 µs longer; with the second at the third quarter it is latest.
    #[test]
    fn a_second_timer_is_due_in_the_path_and_the_latest_counts() {
        let first = reached(Nanos(2_020), 14_050, None);
        let (mut aims, late) = (Vec::new(), [9_000, 15_000, 14_500, 17_500]);
        let found = reach_with_second(&place(), &first, &mut |(after, behind)| {
            let late = late[aims.len()];
            aims.push((after.0, behind.0));
            let asleep = Nanos(9_000);
            Ok(Reached {
                asleep,
                ..reached(after, late, None)
            })
        });
        let found = found.unwrap().unwrap();
        assert_eq!((found.reached.late.0, found.behind.0), (17_500, 13_050));
        assert_eq!(found.off, Nanos(10_050));
        let moments = [
            (2_020, 12_050),
            (10_020, 12_050),
            (10_020, 11_050),
            (10_020, 13_050),
        ];
        assert_eq!(aims, moments);
        let none = reach_with_second(&place(), &first, &mut |_| Err(ScopeError::Unmarked(1)));
        assert!(none.unwrap().is_none());
    }

    #[test]
    fn a_place_that_came_later_is_aimed_at_where_its_middle_shows_its_begin() {
        // At its begin nothing was off yet; from its middle it had begun 3.5 µs before.
        let (found, moments) = tried(vec![
            Ok((4_000, None)),
            Ok((7_500, Some(3_500))),
            Ok((13_950, Some(20))),
        ]);
        assert_eq!(found.unwrap(), Some(Nanos(13_950)));
        assert_eq!(moments, [2_020, 7_020, 3_520]);
        let (found, moments) = tried(vec![Ok((14_050, None))]);
        assert_eq!(
            (found.unwrap(), moments),
            (Some(Nanos(14_050)), vec![2_020])
        );
        // Where nothing helps, the nested section is the last; the latest sample counts.
        let low = || Ok((5_000, Some(1_000)));
        let (found, moments) = tried(vec![low(), Ok((6_000, None)), low(), low()]);
        assert_eq!(found.unwrap(), Some(Nanos(6_000)));
        assert_eq!(moments, [2_020, 7_020, 5_020]);
    }
}
