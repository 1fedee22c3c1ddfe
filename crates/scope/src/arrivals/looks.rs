// SPDX-License-Identifier: MIT OR Apache-2.0
//! The work that an arrival spares, as the kernel looks for a waiting thread and skips the rest.

use super::timeline::{Look, Period};
use crate::names::Names;

/// Time from one of the timer's interrupts until the thread is known to wait.
const KNOWN: u64 = 1_000;

/// The function by which wake-ups ask whether the woken thread goes before the running one. They do
/// not ask if another thread waits already; `kernel/sched/fair.c`.
const COMPARES: &str = "check_preempt_wakeup_fair";
/// The part of it that runs all the same.
const COMPARED: u64 = 20;

/// Returns all looks of a period, in order: its own, and those of wake-ups.
pub fn all(period: &Period, names: &Names) -> Vec<Look> {
    let mut looks = period.looks.clone();
    let Some(compares) = names.known(COMPARES) else {
        return looks;
    };
    let mut counted = 0;
    let numbered = period.ran.iter().enumerate().skip(1);
    for (number, (at, _)) in numbered.filter(|(_, (_, func))| *func == compares) {
        let (_, caller) = period.ran[number - 1];
        // Where it goes on behind what it has called, it was counted with its begin.
        let is_within = *at < counted;
        let mut rest = period.ran[number..].iter();
        let back = rest.find(|(_, func)| *func == caller);
        if let Some((to, _)) = back.filter(|(to, _)| !is_within && at + COMPARED < *to) {
            looks.push(Look {
                at: at + COMPARED,
                to: *to,
            });
            counted = *to;
        }
    }
    looks.sort_by_key(|look| look.at);
    looks
}

/// Returns the ranges that run for an arrival, up to `to`; `looks` are in order.
pub fn left(looks: &[Look], spared: &Spared, (from, to): (u64, u64)) -> Vec<(u64, u64)> {
    let (mut ranges, mut at) = (Vec::new(), from);
    let mut next = Some(spared.look);
    while let Some(look) = next {
        ranges.push((at, look.at));
        at = look.to;
        let later = looks[looks.partition_point(|one| one.at < at)..].iter();
        next = later
            .take_while(|one| one.at < to)
            .find(|one| one.to <= to)
            .copied();
    }
    ranges.push((at, to));
    ranges
}

/// The amount that arrivals up to a moment spare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spared {
    /// The moment before which arrivals come, and after that of the previous one.
    pub until: u64,
    /// The look at which the kernel leaves off for them.
    pub look: Look,
    /// The number of instructions that are left out.
    pub length: u64,
}

/// Returns what arrivals spare between two moments, in order; those after the last of them spare
/// nothing. The stretch is given without the interrupt of the sample that ends its period, which
/// took `own`. `masked` are the stretches in which interrupts are off.
pub fn spared(
    looks: &[Look],
    (from, to): (u64, u64),
    own: u64,
    masked: &[(u64, u64)],
) -> Vec<Spared> {
    let within = |look: &&Look| from < look.at && look.to <= to + own;
    let ends = |look: &Look| Look {
        at: look.at,
        to: look.to.min(to),
    };
    let looks = looks.iter().filter(within).map(ends);
    let mut looks: Vec<Look> = looks.filter(|look| look.at < look.to).collect();
    looks.sort_by_key(|look| look.at);
    let mut lengths = vec![0; looks.len()];
    for number in (0..looks.len()).rev() {
        let look = looks[number];
        // Who waits at one waits at those behind what is left out, too.
        let next = looks.partition_point(|other| other.at < look.to);
        lengths[number] = look.to - look.at + lengths.get(next).copied().unwrap_or(0);
    }
    let mut found: Vec<Spared> = Vec::new();
    for (look, length) in looks.into_iter().zip(lengths) {
        // The interrupt of an arrival waits until interrupts are on.
        let early = look.at.saturating_sub(KNOWN);
        let late = masked
            .iter()
            .find(|(begin, end)| *begin <= early && early < *end);
        let until = late.map_or(early, |(begin, _)| *begin);
        if until > found.last().map_or(from, |last| last.until) {
            found.push(Spared {
                until,
                look,
                length,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_where_the_kernel_looks_spares_the_rest() {
        let looks = [5_000, 7_000, 9_000].map(|at| Look { at, to: 9_500 });
        let found = spared(&looks, (1_000, 20_000), 0, &[]);
        let told: Vec<_> = found.iter().map(|one| (one.until, one.length)).collect();
        assert_eq!(told, [(4_000, 4_500), (6_000, 2_500), (8_000, 500)]);
        // The interrupt of the period's own sample is within.
        let own = spared(&looks, (1_000, 9_000), 1_200, &[]);
        assert_eq!(own.first().map(|one| one.length), Some(4_000));
        // What begins before, or goes on behind, is no matter.
        assert!(spared(&looks, (9_200, 20_000), 0, &[]).is_empty());
        assert!(spared(&looks, (1_000, 9_400), 0, &[]).is_empty());
    }

    #[test]
    fn what_comes_with_interrupts_off_is_known_where_they_are_on_again() {
        let looks = [5_000, 7_000].map(|at| Look { at, to: 9_500 });
        let told = |masked| {
            let found = spared(&looks, (1_000, 20_000), 0, masked);
            found
                .iter()
                .map(|one| (one.until, one.length))
                .collect::<Vec<_>>()
        };
        // From 3,000 on nobody is known to wait at 5,000.
        assert_eq!(told(&[(3_000, 4_500)]), [(3_000, 4_500), (6_000, 2_500)]);
        assert_eq!(told(&[(3_000, 6_500)]), [(3_000, 4_500)]);
    }

    #[test]
    fn two_that_look_one_behind_the_other_are_both_spared() {
        let looks = [(3_000, 5_000), (4_000, 5_000), (6_000, 8_000)];
        let looks = looks.map(|(at, to)| Look { at, to });
        let found = spared(&looks, (1_000, 9_000), 0, &[]);
        let told: Vec<_> = found.iter().map(|one| (one.until, one.length)).collect();
        assert_eq!(told, [(2_000, 4_000), (3_000, 3_000), (5_000, 2_000)]);
        let ran = left(&looks, &found[0], (1_000, 9_000));
        assert_eq!(ran, [(1_000, 3_000), (5_000, 6_000), (8_000, 9_000)]);
    }
}
