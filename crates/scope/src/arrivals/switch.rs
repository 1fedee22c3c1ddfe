// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cost of a switch by the thread that is switched away from: its class, and its holds, as it
//! is bound to its CPU or reads under RCU.

use super::timeline::{AFTER_TICK, Change, PINNED, Period, READER, REAL_TIME, TICKED};
use crate::names::{Func, Names};

/// The function that switches.
pub const SCHEDULER: &str = "__schedule";
/// The scheduler's functions for the thread from which it switches away.
pub const TO_READERS: &str = "rcu_note_context_switch";
pub const TO_PINNED: &str = "__do_set_cpus_allowed";
pub const TO_ALL: [&str; 2] = ["put_prev_task_fair", "put_prev_task_rt"];

/// Time of the scheduler in each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Extra {
    reader: u64,
    pinned: u64,
    put: Option<u64>,
}

/// Times of the scheduler in each, by class and by the thread's holds.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    reader: [Vec<u64>; 2],
    /// Times by class.
    pinned: [Vec<u64>; 2],
    put: [Vec<u64>; 2],
    /// Times right after a tick, by class.
    ticked: [Vec<u64>; 2],
}

impl Extras {
    /// Learns from all switches of a period.
    pub fn learn(&mut self, period: &Period, names: &Names) {
        for (at, extra) in switches(period, 0, names) {
            let behind = period.changes.partition_point(|change| change.at <= at);
            let held = period.changes[..behind].last();
            let held = held.map_or(0, |change: &Change| change.held);
            let class = usize::from(held & REAL_TIME != 0);
            self.reader[usize::from(held & READER != 0)].push(extra.reader);
            if held & PINNED != 0 {
                self.pinned[class].push(extra.pinned);
            }
            let ticked = |tick: &u64| (at.saturating_sub(TICKED)..at).contains(tick);
            let put = if period.ticks.iter().any(ticked) {
                &mut self.ticked
            } else {
                &mut self.put
            };
            put[class].extend(extra.put);
        }
    }

    /// Sorts all times, once they have been learnt.
    pub fn sort(&mut self) {
        let all = self.reader.iter_mut().chain(&mut self.pinned);
        let all = all.chain(&mut self.put).chain(&mut self.ticked);
        all.for_each(|lengths| lengths.sort_unstable());
    }

    /// Returns the typical time for a thread with these holds.
    pub fn typical(&self, held: u8) -> u64 {
        self.each(held).into_iter().map(|(_, time)| time).sum()
    }

    /// The same, by function.
    pub fn each(&self, held: u8) -> [(&'static str, u64); 3] {
        let middle = |all: &[Vec<u64>; 2], of: bool| {
            let (own, other) = (&all[usize::from(of)], &all[usize::from(!of)]);
            let known = if own.is_empty() { other } else { own };
            known.get(known.len() / 2).copied().unwrap_or(0)
        };
        let is = |what: u8| held & what != 0;
        let pinned = middle(&self.pinned, is(REAL_TIME));
        let pinned = if is(PINNED) { pinned } else { 0 };
        let ticked = &self.ticked[usize::from(is(REAL_TIME))];
        let put = if is(AFTER_TICK) && !ticked.is_empty() {
            &self.ticked
        } else {
            &self.put
        };
        [
            (TO_READERS, middle(&self.reader, is(READER))),
            (
                TO_ALL[usize::from(is(REAL_TIME))],
                middle(put, is(REAL_TIME)),
            ),
            (TO_PINNED, pinned),
        ]
    }
}

/// Returns the time that the first switch from a position on took for all of it.
pub fn extra(period: &Period, from: u64, names: &Names) -> u64 {
    let first = switches(period, from, names).into_iter().next();
    first.map_or(0, |(_, extra)| {
        extra.reader + extra.pinned + extra.put.unwrap_or(0)
    })
}

/// Returns the switches from a position on: the start of each, and its times.
fn switches(period: &Period, from: u64, names: &Names) -> Vec<(u64, Extra)> {
    let (Some(scheduler), Some(notes)) = (names.known(SCHEDULER), names.known(TO_READERS)) else {
        return Vec::new();
    };
    let pinned = names.known(TO_PINNED);
    let put = TO_ALL.map(|text| names.known(text));
    let first = period.ran.partition_point(|(at, _)| *at < from);
    let ran = &period.ran[first..];
    let mut found: Vec<(u64, Extra)> = Vec::new();
    let calls = ran.iter().enumerate();
    for (number, (at, func)) in calls {
        let (is_note, is_pinned) = (*func == notes, Some(*func) == pinned);
        let is_put = put.contains(&Some(*func));
        if !(is_note || is_pinned || is_put) || !is_called(&ran[..number], scheduler, names) {
            continue;
        }
        let back = |(_, func): &&(u64, Func)| *func == scheduler;
        let Some((until, _)) = ran[number..].iter().find(back) else {
            break;
        };
        let took = until - at;
        if is_note {
            let reader = took;
            found.push((
                *at,
                Extra {
                    reader,
                    ..Extra::default()
                },
            ));
        } else if let Some((_, extra)) = found.last_mut() {
            if is_pinned {
                extra.pinned = took;
            } else {
                extra.put = Some(took);
            }
        }
    }
    found
}

/// Returns true if the scheduler itself called the code that comes after this.
fn is_called(before: &[(u64, Func)], scheduler: Func, names: &Names) -> bool {
    let mut before = before.iter().rev();
    let caller = before.find(|(_, func)| !names.name(*func).kind.is_helper());
    caller.is_some_and(|(_, func)| *func == scheduler)
}
