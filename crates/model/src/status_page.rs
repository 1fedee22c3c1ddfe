// SPDX-License-Identifier: MIT OR Apache-2.0
//! The status page: memory that a target and its bench share, so that progress is seen and a
//! run can be stopped while no thread that measures does any input or output.
//!
//! It consists of 64-bit words in the machine's byte order. The first eight are its head, the
//! others are slots of eight, one cache line for each measuring thread. Each word has one
//! writer; a reader may see a sample counted whose value it does not see yet.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// How many words there are.
pub const WORDS: usize = 4096;
/// Its length in bytes.
pub const BYTES: usize = WORDS * 8;
/// The first word, which tells the page from other memory.
pub const MAGIC: u64 = u64::from_le_bytes(*b"punctual");

/// Head: where the magic number is.
pub const MAGIC_WORD: usize = 0;
/// Head: what measuring threads are asked for after their sample: nothing (0), [`STOP`], or
/// [`HAND_OVER`].
pub const STOP_WORD: usize = 1;
/// To end; of others than the target, only a bench without signals asks for it.
pub const STOP: u64 = 1;
/// To hand over the figures so far; only the target itself asks for it.
pub const HAND_OVER: u64 = 2;
/// Head: the number of the step that runs, from 1; 0 before the first.
pub const STEP_WORD: usize = 2;
/// Head: how many slots are used.
pub const SLOTS_WORD: usize = 3;

/// How many words a slot has, and the head.
pub const SLOT: usize = 8;
/// How many slots there are.
pub const SLOTS: usize = WORDS / SLOT - 1;
/// In a slot: how many samples were taken.
pub const COUNT_WORD: usize = 0;
/// In a slot: how many are to be taken; 0 where that is not known.
pub const OF_WORD: usize = 1;
/// In a slot: the largest sample so far, in nanoseconds, signed; [`NO_WORST`] where there is none.
pub const WORST_WORD: usize = 2;
/// In a slot: periods in which no sample could be taken.
pub const MISSED_WORD: usize = 3;
/// No largest sample.
pub const NO_WORST: i64 = i64::MIN;

/// How far a step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The step's number in the plan, from 0.
    pub step: u32,
    /// How many samples were taken so far, by all of its threads; warm-up not counted.
    pub count: u64,
    /// How many it is to take; `None` where the probe cannot tell.
    pub of: Option<u64>,
    /// The largest sample so far; `None` before the first, and where the probe works its
    /// samples out only in the end.
    pub worst: Option<Nanos>,
    /// Periods so far in which no sample could be taken.
    pub missed: u64,
}

impl Progress {
    /// What a page's bytes say; `None` where they are no status page, or no step runs that
    /// tells how far it is.
    pub fn read(page: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            let bytes = page.get(at * 8..)?.first_chunk()?;
            Some(u64::from_ne_bytes(*bytes))
        };
        if word(MAGIC_WORD)? != MAGIC {
            return None;
        }
        let step = u32::try_from(word(STEP_WORD)?.checked_sub(1)?).ok()?;
        let used = usize::try_from(word(SLOTS_WORD)?).ok()?.min(SLOTS);
        let mut progress = Self {
            step,
            ..Self::default()
        };
        for slot in (1..=used).map(|number| number * SLOT) {
            let (count, of) = (word(slot + COUNT_WORD)?, word(slot + OF_WORD)?);
            progress.count = progress.count.saturating_add(count);
            if of > 0 {
                progress.of = Some(progress.of.unwrap_or(0).saturating_add(of));
            }
            let worst = word(slot + WORST_WORD)? as i64;
            if worst != NO_WORST {
                progress.worst = progress.worst.max(Some(Nanos(worst)));
            }
            progress.missed = progress.missed.saturating_add(word(slot + MISSED_WORD)?);
        }
        (used > 0).then_some(progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(words: &[(usize, u64)]) -> Vec<u8> {
        let mut page = vec![0_u64; WORDS];
        for (at, word) in words {
            page[*at] = *word;
        }
        page.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn threads_are_added_up_and_the_worst_of_all_is_told() {
        let (first, second) = (SLOT, 2 * SLOT);
        let page = page(&[
            (MAGIC_WORD, MAGIC),
            (STEP_WORD, 3),
            (SLOTS_WORD, 2),
            (first + COUNT_WORD, 10),
            (first + OF_WORD, 100),
            (first + WORST_WORD, 7_000),
            (second + COUNT_WORD, 5),
            (second + OF_WORD, 100),
            (second + WORST_WORD, NO_WORST as u64),
            (second + MISSED_WORD, 2),
        ]);
        let expected = Progress {
            step: 2,
            count: 15,
            of: Some(200),
            worst: Some(Nanos(7_000)),
            missed: 2,
        };
        assert_eq!(Progress::read(&page), Some(expected));
    }

    #[test]
    fn what_is_no_page_or_no_step_says_nothing() {
        assert_eq!(Progress::read(&[]), None);
        assert_eq!(
            Progress::read(&page(&[(STEP_WORD, 1), (SLOTS_WORD, 1)])),
            None
        );
        let before = page(&[(MAGIC_WORD, MAGIC), (SLOTS_WORD, 1)]);
        assert_eq!(Progress::read(&before), None);
        let silent = page(&[(MAGIC_WORD, MAGIC), (STEP_WORD, 1)]);
        assert_eq!(Progress::read(&silent), None);
        let hostile = page(&[
            (MAGIC_WORD, MAGIC),
            (STEP_WORD, 1),
            (SLOTS_WORD, u64::MAX),
            (SLOT + COUNT_WORD, u64::MAX),
            (2 * SLOT + COUNT_WORD, u64::MAX),
        ]);
        assert_eq!(Progress::read(&hostile).unwrap().count, u64::MAX);
    }
}
