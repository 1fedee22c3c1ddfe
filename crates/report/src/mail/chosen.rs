// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of cases that a mail tells, if there is no room for all.

use super::ascii::{clipped, paragraph};
use super::{CASE, Told};

/// The most lines of each sentence about functions to blame.
const BLAME: usize = 3;

/// The fewest lines of a case that is the first of its kind.
const SHORT: usize = 2;

/// The lines of each case; no lines if the case is left out.
pub(super) struct Chosen {
    lines: Vec<Vec<String>>,
    left: usize,
}

impl Chosen {
    /// Chooses as many cases as fit into so many lines.
    /// It takes one of each outcome first, with the functions to blame, so that none hides another;
    /// then the others.
    pub(super) fn of(told: &[&Told], room: usize) -> Self {
        let mut chosen = Self {
            lines: vec![Vec::new(); told.len()],
            left: room,
        };
        let is_first = |at: &usize| {
            let is_alike = |one: &&Told| one.outcome == told[*at].outcome;
            told.iter().position(is_alike) == Some(*at)
        };
        let (first, others): (Vec<usize>, Vec<usize>) = (0..told.len()).partition(is_first);
        for (group, least) in [(first, SHORT), (others, 0)] {
            for (at, number) in group.iter().zip(1..) {
                // Those of another outcome that come after it need room, too.
                let others = least * (group.len() - number);
                let most = match least {
                    0 => CASE,
                    _ => chosen.left.saturating_sub(others).clamp(1, CASE),
                };
                chosen.put(*at, clipped(paragraph(&told[*at].sentence, ""), most));
            }
            for at in group {
                let is_told = chosen.is_told(at);
                for sentence in told[at].blame.iter().filter(|_| is_told) {
                    chosen.put(at, clipped(paragraph(sentence, "  "), BLAME));
                }
            }
        }
        chosen
    }

    /// Adds lines to a case, if they fit.
    fn put(&mut self, at: usize, more: Vec<String>) {
        if let Some(left) = self.left.checked_sub(more.len()) {
            self.left = left;
            self.lines[at].extend(more);
        }
    }

    /// Returns true if a case has lines.
    pub(super) fn is_told(&self, at: usize) -> bool {
        !self.lines[at].is_empty()
    }

    /// Counts the cases that are told.
    pub(super) fn count(&self) -> usize {
        self.lines.iter().filter(|own| !own.is_empty()).count()
    }

    /// All lines, case by case.
    pub(super) fn lines(self) -> Vec<String> {
        self.lines.concat()
    }
}
