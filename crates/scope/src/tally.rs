// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts what stood in the way of many samples.

use std::cmp::Reverse;
use std::collections::HashMap;

use punctual_model::Nanos;

use crate::breakdown::{Breakdown, Cause};
use crate::explain::Explained;

/// An obstacle in the way of some of the samples: the same cause, in the same function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The cause; `None` if nothing stood in the way for long.
    pub cause: Option<Cause>,
    /// The function that filled most of it, if one did.
    pub function: Option<String>,
    /// The number of samples.
    pub times: usize,
    /// The longest time; `None` if nothing stood in the way.
    pub longest: Option<Nanos>,
}

impl Tally {
    /// Returns the obstacle in words: `interrupts off: free_pcppages_bulk`.
    pub fn name(&self) -> String {
        match (self.cause, &self.function) {
            (None, _) => "nothing for long".to_owned(),
            (Some(cause), None) => cause.name().to_owned(),
            (Some(cause), Some(function)) => format!("{}: {function}", cause.name()),
        }
    }
}

/// Counts what stood in the way of these samples, the most frequent first. Samples without a
/// breakdown are left out.
pub fn tally(explained: &[Explained]) -> Vec<Tally> {
    let breakdowns = explained.iter().flat_map(|explained| &explained.breakdown);
    of_breakdowns(breakdowns)
}

fn of_breakdowns<'a>(breakdowns: impl Iterator<Item = &'a Breakdown>) -> Vec<Tally> {
    let mut found: HashMap<_, (usize, Option<Nanos>)> = HashMap::new();
    for breakdown in breakdowns {
        let part = breakdown.culprit.map(|number| &breakdown.parts[number]);
        let main = part.and_then(|part| part.main.as_ref());
        let function = main.map(|main| main.function.clone());
        let key = (part.map(|part| part.cause), function);
        let (times, longest) = found.entry(key).or_default();
        *times += 1;
        *longest = part.map(|_| breakdown.held()).max(*longest);
    }
    let tally = |((cause, function), (times, longest))| Tally {
        cause,
        function,
        times,
        longest,
    };
    let mut tallies: Vec<Tally> = found.into_iter().map(tally).collect();
    tallies.sort_by_cached_key(|one| (Reverse((one.times, one.longest)), one.name()));
    tallies
}

#[cfg(test)]
mod tests {
    use punctual_model::probe::SampleSpan;

    use super::*;
    use crate::breakdown::{FunctionTime, Part, PathStage};

    fn breakdown(culprit: Option<(Cause, &str, i64)>) -> Breakdown {
        let part = |(cause, function, length): (Cause, &str, i64)| Part {
            stage: PathStage::Switch,
            cause,
            from: Nanos::ZERO,
            length: Nanos(length),
            by: None,
            cpu: None,
            thread: String::new(),
            main: Some(FunctionTime {
                function: function.to_owned(),
                caller: None,
                time: Nanos(length),
                whole: Nanos(length),
                times: 1,
            }),
            within: Vec::new(),
        };
        Breakdown {
            culprit: culprit.map(|_| 0),
            parts: culprit.into_iter().map(part).collect(),
            ..Breakdown::empty(SampleSpan::Lateness, Nanos(1_000))
        }
    }

    #[test]
    fn the_same_culprits_are_counted_together_and_the_most_frequent_comes_first() {
        let breakdowns = [
            breakdown(Some((Cause::Lock, "rare", 900))),
            breakdown(Some((Cause::IrqsOff, "often", 300))),
            breakdown(None),
            breakdown(Some((Cause::IrqsOff, "often", 700))),
            breakdown(Some((Cause::PreemptOff, "often", 500))),
        ];
        let tallies = of_breakdowns(breakdowns.iter()).into_iter();
        let found = tallies.map(|one| (one.times, one.longest, one.name()));
        let expected = [
            (2, Some(700), "interrupts off: often"),
            (1, Some(900), "spinning lock: rare"),
            (1, Some(500), "preemption off: often"),
            (1, None, "nothing for long"),
        ];
        let expected = expected.map(|(times, ns, name)| (times, ns.map(Nanos), name.to_owned()));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
