// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the place in a row of candidates at which fit becomes unfit.

use std::fmt;

/// The verdict on a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It is fit.
    Fit,
    /// It is unfit.
    Unfit,
    /// It is undecided, and passed over.
    Skipped,
}

impl Known {
    /// The verdict as a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fit => "fit",
            Self::Unfit => "unfit",
            Self::Skipped => "skipped",
        }
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The result of a bisection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The first candidate is not fit, or not known to be.
    GoodIsNot(Known),
    /// The last candidate is not unfit, or not known to be.
    BadIsNot(Known),
    /// The change is between these two, and no candidate between them could be decided.
    Between {
        /// The number of the last candidate that is fit.
        fit: usize,
        /// The number of the first candidate that is unfit. If it is not the next one, all between
        /// were skipped.
        unfit: usize,
    },
}

/// A search among candidates. The first is expected to be fit, the last to be unfit, and all others
/// to be fit up to some place and unfit behind it.
///
/// Both ends are tried first, then each time the middle one of those between the last fit and the
/// first unfit candidate; none twice.
///
/// It divides the level of a limit among its verdicts, so that all of them together are wrong no
/// more often than the limit allows, however many candidates are skipped.
#[derive(Clone, Debug)]
pub struct Bisection {
    known: Vec<Option<Known>>,
    /// The part of the level that no verdict has had.
    left: f64,
}

impl Bisection {
    /// Creates a search in which nothing has been tried.
    ///
    /// # Panics
    /// If there are fewer than two candidates: there is nothing between.
    pub fn new(candidates: usize) -> Self {
        assert!(candidates >= 2, "a good one and a bad one");
        Self {
            known: vec![None; candidates],
            left: 1.0,
        }
    }

    /// The most candidates between the ends that are tried if none is skipped.
    pub fn steps_most(candidates: usize) -> usize {
        // So many places there are at which it can change.
        let places = candidates.saturating_sub(1).max(1);
        places.next_power_of_two().trailing_zeros() as usize
    }

    /// The number of the candidate to try next; `None` at the end.
    pub fn next(&self) -> Option<usize> {
        let last = self.known.len() - 1;
        match (self.known[0], self.known[last]) {
            (None, _) => Some(0),
            (Some(Known::Fit), None) => Some(last),
            (Some(Known::Fit), Some(Known::Unfit)) => {
                let open = self.open();
                open.get(open.len().saturating_sub(1) / 2).copied()
            }
            _ => None,
        }
    }

    /// The candidates to try between the last fit and the first unfit one, as far as these are
    /// known.
    fn open(&self) -> Vec<usize> {
        let (fit, unfit) = self.ends();
        let between = fit + 1..unfit.min(self.known.len() - 1);
        between.filter(|at| self.known[*at].is_none()).collect()
    }

    /// The share of the level that the verdict on the next candidate has.
    ///
    /// The rest of the level is divided among the verdicts that will come if none is skipped. As
    /// long as a skipped candidate can cause a further one, that one has a part, too. Whatever is
    /// skipped, all shares together are 1 at most.
    pub fn share(&self) -> f64 {
        let last = self.known.len() - 1;
        let ends = [0, last].into_iter();
        let ends = ends.filter(|at| self.known[*at].is_none()).count();
        let open = self.open().len();
        let due = ends + Self::steps_most(open + 2);
        let further = usize::from(ends + open > due);
        self.left / (due + further).max(1) as f64
    }

    /// Takes this share from the level: a candidate was judged with it, even if that left it
    /// undecided. So does one that does not boot, which errs on the safe side; one that cannot be had
    /// takes nothing.
    pub fn spend(&mut self, share: f64) {
        self.left = (self.left - share).max(0.0);
    }

    /// Records the verdict on a candidate.
    pub fn tell(&mut self, at: usize, known: Known) {
        self.known[at] = Some(known);
    }

    /// The result; `None` while there is a candidate to try.
    pub fn found(&self) -> Option<Found> {
        if self.next().is_some() {
            return None;
        }
        Some(match (self.known[0], self.known[self.known.len() - 1]) {
            (Some(Known::Fit), Some(Known::Unfit)) => {
                let (fit, unfit) = self.ends();
                Found::Between { fit, unfit }
            }
            (Some(Known::Fit), Some(other)) => Found::BadIsNot(other),
            (Some(other), _) => Found::GoodIsNot(other),
            (None, _) => unreachable!("the first is to be tried"),
        })
    }

    /// The last fit candidate before the first unfit one, and that one.
    pub fn ends(&self) -> (usize, usize) {
        let is = |wanted: Known| move |known: &Option<Known>| *known == Some(wanted);
        let unfit = self.known.iter().position(is(Known::Unfit));
        let unfit = unfit.unwrap_or(self.known.len());
        let fit = self.known[..unfit].iter().rposition(is(Known::Fit));
        (fit.unwrap_or(0), unfit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bisects with a given answer for each candidate; also returns the number tried between the
    /// ends.
    fn bisect(answer: &[Known]) -> (Found, usize) {
        let mut bisection = Bisection::new(answer.len());
        let mut tried = Vec::new();
        while let Some(at) = bisection.next() {
            assert!(!tried.contains(&at), "{at} is tried twice");
            assert_eq!(bisection.found(), None);
            tried.push(at);
            bisection.tell(at, answer[at]);
        }
        let found = bisection.found().expect("an end");
        (found, tried.len().saturating_sub(2))
    }

    /// The shares of the level that the verdicts of such a bisection have.
    fn shares(answer: &[Known]) -> Vec<f64> {
        let mut bisection = Bisection::new(answer.len());
        let mut shares = Vec::new();
        while let Some(at) = bisection.next() {
            let share = bisection.share();
            bisection.spend(share);
            bisection.tell(at, answer[at]);
            shares.push(share);
        }
        shares
    }

    fn changes(candidates: usize, unfit: usize) -> Vec<Known> {
        let known = |at| if at < unfit { Known::Fit } else { Known::Unfit };
        (0..candidates).map(known).collect()
    }

    #[test]
    fn each_place_is_found_in_as_few_steps_as_can_be() {
        for candidates in 2..=40 {
            let most = Bisection::steps_most(candidates);
            assert!(most as f64 <= (candidates as f64).log2() + 1.0);
            for unfit in 1..candidates {
                let (found, steps) = bisect(&changes(candidates, unfit));
                let fit = unfit - 1;
                assert_eq!(found, Found::Between { fit, unfit });
                assert!(steps <= most, "{candidates} candidates, {unfit}: {steps}");
            }
        }
        assert_eq!(
            [2, 3, 4, 5, 17, 18].map(Bisection::steps_most),
            [0, 1, 2, 2, 4, 5]
        );
    }

    #[test]
    fn all_verdicts_together_have_the_level_once_whatever_is_skipped() {
        let all_of = |shares: &[f64]| shares.iter().sum::<f64>();
        for candidates in 2..=40 {
            let due = Bisection::steps_most(candidates) + 2;
            for unfit in 1..candidates {
                let mut answer = changes(candidates, unfit);
                let shares = shares(&answer);
                assert!(all_of(&shares) < 1.0 + 1e-9, "{shares:?}");
                // One part at most is kept for further verdicts.
                let least = 1.0 / (due + 1) as f64 - 1e-9;
                assert!(shares.iter().all(|share| *share > least), "{shares:?}");
                // Every second one, then all between the ends.
                for step in [2, 1] {
                    for at in (1..candidates - 1).step_by(step) {
                        answer[at] = Known::Skipped;
                    }
                    let shares = self::shares(&answer);
                    assert!(all_of(&shares) < 1.0 + 1e-9, "{shares:?}");
                    assert!(shares.iter().all(|share| *share > 0.0), "{shares:?}");
                }
            }
        }
        // Where none can come further, nothing is kept.
        assert_eq!(shares(&changes(2, 1)), [0.5; 2]);
        assert_eq!(shares(&changes(4, 2)), [0.25; 4]);
        // Eleven verdicts, where six would have done.
        let all = [&[Known::Fit][..], &[Known::Skipped; 9], &[Known::Unfit]].concat();
        let shares = shares(&all);
        assert_eq!(shares.len(), 11);
        assert!((shares[0] - 1.0 / 7.0).abs() < 1e-12, "{shares:?}");
        assert!((all_of(&shares) - 1.0).abs() < 1e-9, "{shares:?}");
    }

    #[test]
    fn what_is_skipped_leaves_a_span_only_where_it_stands_at_the_place() {
        let mut answer = changes(16, 9);
        answer[7] = Known::Skipped;
        let (found, _) = bisect(&answer);
        assert_eq!(found, Found::Between { fit: 8, unfit: 9 });
        answer[8] = Known::Skipped;
        let (found, _) = bisect(&answer);
        assert_eq!(found, Found::Between { fit: 6, unfit: 9 });
        let all = [&[Known::Fit][..], &[Known::Skipped; 9], &[Known::Unfit]].concat();
        assert_eq!(bisect(&all), (Found::Between { fit: 0, unfit: 10 }, 9));
    }

    #[test]
    fn an_end_that_is_not_what_it_was_said_to_be_ends_it() {
        for known in [Known::Unfit, Known::Skipped] {
            let mut answer = changes(9, 4);
            answer[0] = known;
            assert_eq!(bisect(&answer), (Found::GoodIsNot(known), 0));
        }
        for known in [Known::Fit, Known::Skipped] {
            let mut answer = changes(9, 4);
            answer[8] = known;
            assert_eq!(bisect(&answer), (Found::BadIsNot(known), 0));
        }
    }
}
