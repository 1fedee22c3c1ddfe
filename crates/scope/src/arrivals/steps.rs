// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the foretold and the reached time of each function: the differences of an aim, by name.

use std::collections::BTreeMap;

use punctual_model::Nanos;

use crate::arch;

use super::switch::{SCHEDULER, TO_ALL, TO_PINNED, TO_READERS};

/// Own running time of each function.
pub type Times<K> = BTreeMap<K, u64>;

/// The role of a function in these times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The scheduler, which calls the next kind.
    Scheduler,
    /// The scheduler's work on the thread from which it switches away. All that it calls counts as
    /// its own.
    Part,
    /// A detour by way of which others are called.
    Helper,
    /// Any other function.
    Plain,
}

impl Kind {
    /// Returns the kind of a function, by its name.
    pub fn of(name: &str) -> Self {
        if name == SCHEDULER {
            Self::Scheduler
        } else if name == TO_READERS || name == TO_PINNED || TO_ALL.contains(&name) {
            Self::Part
        } else if arch::is_detour(name) {
            Self::Helper
        } else {
            Self::Plain
        }
    }
}

/// Adds the time of each function between two positions; `ran` says from where on which ran.
pub fn add_times<K: Copy + Ord>(
    times: &mut Times<K>,
    ran: impl Iterator<Item = (u64, K)>,
    (from, to): (u64, u64),
    kind: impl Fn(K) -> Kind,
) {
    let mut ran = ran.peekable();
    let (mut before, mut part) = (Kind::Plain, None::<K>);
    while let Some((at, func)) = ran.next() {
        if at >= to {
            break;
        }
        let end = ran.peek().map_or(to, |(next, _)| *next).min(to);
        let own = kind(func);
        match own {
            Kind::Scheduler => part = None,
            Kind::Part if before == Kind::Scheduler => part = Some(func),
            _ => {}
        }
        before = if own == Kind::Helper { before } else { own };
        let length = end.saturating_sub(at.max(from));
        if length > 0 {
            *times.entry(part.unwrap_or(func)).or_default() += length;
        }
    }
}

/// The difference between a function's time and the foretold one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differs {
    /// The function.
    pub function: String,
    /// The extra time; negative if it ran less long.
    pub by: Nanos,
}

/// The way back to user space, which is not followed function by function.
pub const WAY_BACK: &str = "the way back to user space";
/// The smallest difference that is reported.
const TOLD: Nanos = Nanos(30);
/// The maximum number of differences.
const MOST: usize = 12;

/// Returns the largest differences.
pub fn differences(
    foretold: &BTreeMap<String, Nanos>,
    reached: &BTreeMap<String, Nanos>,
) -> Vec<Differs> {
    let time =
        |of: &BTreeMap<String, Nanos>, name: &String| of.get(name).copied().unwrap_or_default();
    let mut names: Vec<&String> = foretold.keys().chain(reached.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let differs = names.into_iter().map(|name| Differs {
        function: name.clone(),
        by: time(reached, name) - time(foretold, name),
    });
    let mut all: Vec<Differs> = differs.filter(|one| one.by.0.abs() >= TOLD.0).collect();
    all.sort_by_key(|one| -one.by.0.abs());
    all.truncate(MOST);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_scheduler_has_done_counts_as_one() {
        let ran = [
            (0, "schedule"),
            (100, SCHEDULER),
            (150, "__x86_indirect_thunk_rax"),
            (155, TO_PINNED),
            (160, "cpumask_copy"),
            (700, SCHEDULER),
            (900, TO_PINNED),
            (950, "other"),
        ];
        let mut times = Times::new();
        add_times(&mut times, ran[..6].iter().copied(), (50, 800), Kind::of);
        let helper = ("__x86_indirect_thunk_rax", 5);
        let expected = [("schedule", 50), (SCHEDULER, 150), helper, (TO_PINNED, 545)];
        assert_eq!(times, expected.into_iter().collect());
    }

    #[test]
    fn the_largest_differences_come_first_and_the_smallest_are_not_told() {
        let map = |all: &[(&str, i64)]| {
            all.iter()
                .map(|(name, time)| ((*name).to_owned(), Nanos(*time)))
                .collect()
        };
        let foretold = map(&[("a", 1_000), ("b", 500), ("c", 10)]);
        let reached = map(&[("a", 400), ("b", 510), ("d", 90)]);
        let told = differences(&foretold, &reached);
        let told: Vec<_> = told.iter().map(|one| (&*one.function, one.by.0)).collect();
        assert_eq!(told, [("a", -600), ("d", 90)]);
    }
}
