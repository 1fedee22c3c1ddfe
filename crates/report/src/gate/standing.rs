// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rule by which a figure of the gate is worse, not worse, or undecided.

use punctual_judge::{Comparison, Rule, Verdict};

use super::Standing;

/// Returns the standing of a function: worse if it certainly runs longer, and by so much that it
/// matters.
pub fn longer(compared: &Comparison, matters: bool) -> Standing {
    match compared.verdict {
        Verdict::Identical => Standing::Unchanged,
        Verdict::Higher if matters => Standing::Worse,
        _ => Standing::Undecided,
    }
}

/// Returns the standing of a figure.
/// *Not worse* is shown, not assumed: the ratio's upper bound is below the smallest effect worth
/// finding. *Worse* is higher by more than `matters`, for certain. A figure that is higher for
/// certain, but by less, is tolerated.
pub fn standing(compared: &Comparison, rule: &Rule, there: f64, matters: f64) -> Standing {
    let bounds = compared.ratio.and_then(|ratio| ratio.bounds);
    let by = bounds.map(|(low, high)| [low, high].map(|bound| (bound - 1.0) * there));
    match (compared.verdict, by) {
        (Verdict::Identical, _) => Standing::Unchanged,
        (Verdict::Lower, _) => Standing::NotWorse,
        (Verdict::Higher, Some([_, most])) if most <= matters => Standing::Tolerated,
        (Verdict::Higher, Some([least, _])) if least < matters => Standing::Undecided,
        (Verdict::Higher, _) => Standing::Worse,
        _ if bounds.is_some_and(|(_, high)| high <= rule.effect) => Standing::NotWorse,
        (Verdict::NotSeparated { .. } | Verdict::Undecided(_), _) => Standing::Undecided,
    }
}
