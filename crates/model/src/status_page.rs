// SPDX-License-Identifier: MIT OR Apache-2.0
//! The status page: memory that a target and its bench share. With it, progress can be seen and
//! a run stopped while no measuring thread does any input or output.
//!
//! It consists of 64-bit words in the machine's byte order. The first eight are its head; slots
//! of eight follow, one cache line for each of the load's first workers, then for each measuring
//! thread. Then come the rings of the first threads, a page each, with their latest samples for
//! an observer. Each word has one writer, which never waits for a reader. So a reader may see a
//! sample counted before it sees the sample's value, and it misses samples of a ring that it reads
//! too seldom.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// The number of words in a page of memory.
pub const PAGE_WORDS: usize = 512;
/// The word at which the rings begin.
const RINGS_AT: usize = 8 * PAGE_WORDS;
/// The number of rings: the first so many slots have one.
pub const RINGS: usize = 16;
/// The number of words in the status page.
pub const WORDS: usize = RINGS_AT + RINGS * PAGE_WORDS;
/// The length of the status page in bytes.
pub const BYTES: usize = WORDS * 8;
/// The first word, which distinguishes the page from other memory.
pub const MAGIC: u64 = u64::from_le_bytes(*b"punctual");

/// Head: position of the magic number.
pub const MAGIC_WORD: usize = 0;
/// Head: request to measuring threads, read after each sample: none (0), [`STOP`], or
/// [`HAND_OVER`].
pub const STOP_WORD: usize = 1;
/// Request to end. Apart from the target, only a bench without signals makes it.
pub const STOP: u64 = 1;
/// Request to hand over the figures so far; only the target itself makes it.
pub const HAND_OVER: u64 = 2;
/// Head: the number of the running step, from 1; 0 before the first.
pub const STEP_WORD: usize = 2;
/// Head: the number of thread slots in use.
pub const SLOTS_WORD: usize = 3;
/// Head: the number of workers in the step's load.
pub const WORKERS_WORD: usize = 4;

/// The number of words in a slot, and in the head.
pub const SLOT: usize = 8;
/// The number of workers of a load that have slots.
pub const WORKERS: usize = 15;
/// In a worker's slot: the number of its rounds that have ended.
pub const ROUNDS_WORD: usize = 0;
/// In a worker's slot: the amount of work done, in its unit, as far as it is known.
pub const AMOUNT_WORD: usize = 1;

/// The number of slots for threads.
pub const SLOTS: usize = RINGS_AT / SLOT - 1 - WORKERS;
/// In a slot: the number of samples taken.
pub const COUNT_WORD: usize = 0;
/// In a slot: the number of samples to take; 0 if it is not known.
pub const OF_WORD: usize = 1;
/// In a slot: the largest sample so far, in nanoseconds, signed; [`NO_WORST`] if there is none.
pub const WORST_WORD: usize = 2;
/// In a slot: periods in which no sample could be taken.
pub const MISSED_WORD: usize = 3;
/// In a slot: the smallest sample so far, signed; [`NO_LEAST`] if there is none.
pub const LEAST_WORD: usize = 4;
/// In a slot: the sum of all samples so far, signed, modulo 2^64: 292 years of latency.
pub const SUM_WORD: usize = 5;
/// In a slot: the number of its thread's CPU, from 1; 0 if the thread is not bound to one.
pub const CPU_WORD: usize = 6;
/// Value that stands for no largest sample.
pub const NO_WORST: i64 = i64::MIN;
/// Value that stands for no smallest sample.
pub const NO_LEAST: i64 = i64::MAX;

/// The first word of a ring, which distinguishes it from other memory.
pub const RING_MAGIC: u64 = u64::from_le_bytes(*b"punc-rng");
/// In a ring: the number of its slot, from 1.
pub const RING_SLOT_WORD: usize = 1;
/// In a ring: the number of samples written to it in this step.
pub const RING_COUNT_WORD: usize = 2;
/// In a ring: position of the first sample. The sample of number n is in the n-th place, modulo
/// [`RING_SAMPLES`].
pub const RING_FIRST_WORD: usize = 8;
/// The number of samples that a ring has room for.
pub const RING_SAMPLES: usize = PAGE_WORDS - RING_FIRST_WORD;

/// Returns the position of a thread's slot, in words from the page's start; threads count from 1.
pub fn slot_of(thread: usize) -> usize {
    (WORKERS + thread) * SLOT
}

/// Returns the position of a worker's slot; workers count from 1.
pub fn worker_slot_of(worker: usize) -> Option<usize> {
    (1..=WORKERS).contains(&worker).then_some(worker * SLOT)
}

/// Returns the position of a slot's ring, in words from the page's start; `None` if it has none.
pub fn ring_of(slot: usize) -> Option<usize> {
    (1..=RINGS)
        .contains(&slot)
        .then(|| RINGS_AT + (slot - 1) * PAGE_WORDS)
}

/// The progress of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The step's number in the plan, from 0.
    pub step: u32,
    /// The number of samples taken so far by all of its threads; warm-up not counted.
    pub count: u64,
    /// The number of samples to take; `None` if the probe cannot tell.
    pub of: Option<u64>,
    /// The largest sample so far; `None` before the first, and if the probe computes its samples
    /// only at the end.
    pub worst: Option<Nanos>,
    /// Periods so far in which no sample could be taken.
    pub missed: u64,
    /// The progress of each measuring thread, in the order in which they began.
    #[serde(default)]
    pub threads: Vec<ThreadProgress>,
    /// The first workers of the step's load, in the order in which the load names them.
    #[serde(default)]
    pub workers: Vec<WorkerProgress>,
}

/// The work that one of a load's workers has done since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerProgress {
    /// The number of its rounds that have ended.
    pub rounds: u64,
    /// The amount of work done, in its unit, as far as it is known by now: for some loads it is
    /// known only when a round has ended.
    pub amount: u64,
}

/// The progress of one measuring thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadProgress {
    /// The CPU to which it is bound.
    pub cpu: Option<u32>,
    /// The number of samples that it has taken so far.
    pub count: u64,
    /// Periods so far in which it could take none.
    pub missed: u64,
    /// The smallest sample so far.
    pub least: Option<Nanos>,
    /// The mean of all samples so far.
    pub mean: Option<Nanos>,
    /// The largest sample so far.
    pub worst: Option<Nanos>,
    /// Its samples since the last look, the latest last: as many as its ring had room for.
    pub recent: Vec<Nanos>,
}

impl Progress {
    /// Returns true if anything has happened since `before` was seen.
    pub fn is_news_after(&self, before: &Self) -> bool {
        let seen = |one: &Self| (one.step, one.count, one.missed, one.of);
        seen(self) != seen(before)
    }
}

/// Reads a status page again and again.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    step: u32,
    /// The number of samples of each ring that were seen.
    seen: [u64; RINGS],
}

impl Reader {
    /// Reads progress from all bytes of a page; `None` if they are no status page, or if no step
    /// that reports its progress is running.
    pub fn read(&mut self, page: &[u8]) -> Option<Progress> {
        let ring = |slot| page.get(ring_of(slot)? * 8..).map(<[u8]>::to_vec);
        self.read_with(page, ring)
    }

    /// Reads progress from the first bytes of a page, where rings are found elsewhere. Slots beyond
    /// these bytes are not seen.
    pub fn read_with(
        &mut self,
        page: &[u8],
        mut ring: impl FnMut(usize) -> Option<Vec<u8>>,
    ) -> Option<Progress> {
        if word(page, MAGIC_WORD)? != MAGIC {
            return None;
        }
        let step = u32::try_from(word(page, STEP_WORD)?.checked_sub(1)?).ok()?;
        if step != self.step {
            *self = Self::default();
            self.step = step;
        }
        let used = usize::try_from(word(page, SLOTS_WORD)?).ok()?.min(SLOTS);
        let mut progress = Progress {
            step,
            ..Progress::default()
        };
        for slot in 1..=used {
            let Some(words) = words_of(page, slot_of(slot)) else {
                break;
            };
            let of = word(words, OF_WORD)?;
            let mut thread = thread(words)?;
            if of > 0 {
                progress.of = Some(progress.of.unwrap_or(0).saturating_add(of));
            }
            progress.count = progress.count.saturating_add(thread.count);
            progress.worst = progress.worst.max(thread.worst);
            progress.missed = progress.missed.saturating_add(thread.missed);
            if let (Some(seen), Some(ring)) = (self.seen.get_mut(slot - 1), ring(slot)) {
                thread.recent = recent(&ring, seen).unwrap_or_default();
            }
            progress.threads.push(thread);
        }
        progress.workers = workers(page)?;
        (used > 0).then_some(progress)
    }
}

/// Returns the bytes of the slot that begins at a word.
fn words_of(page: &[u8], at: usize) -> Option<&[u8]> {
    page.get(at * 8..(at + SLOT) * 8)
}

/// Reads the slots of the load's workers.
fn workers(page: &[u8]) -> Option<Vec<WorkerProgress>> {
    let count = usize::try_from(word(page, WORKERS_WORD)?).ok()?;
    let worker = |number| {
        let slot = words_of(page, worker_slot_of(number)?)?;
        Some(WorkerProgress {
            rounds: word(slot, ROUNDS_WORD)?,
            amount: word(slot, AMOUNT_WORD)?,
        })
    };
    (1..=count.min(WORKERS)).map(worker).collect()
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at * 8..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

/// Reads a thread's slot.
fn thread(slot: &[u8]) -> Option<ThreadProgress> {
    let signed = |at| word(slot, at).map(|word| word as i64);
    let known = |value: i64, none: i64| (value != none).then_some(Nanos(value));
    let count = word(slot, COUNT_WORD)?;
    let worst = known(signed(WORST_WORD)?, NO_WORST);
    // A probe that works its samples out in the end has counted some, and knows none.
    let taken = i64::try_from(count).ok().filter(|count| *count > 0);
    let mean = worst.and(taken);
    Some(ThreadProgress {
        cpu: u32::try_from(word(slot, CPU_WORD)?).ok()?.checked_sub(1),
        count,
        missed: word(slot, MISSED_WORD)?,
        least: known(signed(LEAST_WORD)?, NO_LEAST),
        mean: mean
            .zip(signed(SUM_WORD))
            .map(|(count, sum)| Nanos(sum / count)),
        worst,
        recent: Vec::new(),
    })
}

/// Returns the samples of a ring that came after those already seen.
fn recent(ring: &[u8], seen: &mut u64) -> Option<Vec<Nanos>> {
    if word(ring, 0)? != RING_MAGIC {
        return None;
    }
    let count = word(ring, RING_COUNT_WORD)?;
    let room = RING_SAMPLES as u64;
    let first = (*seen).max(count.saturating_sub(room)).min(count);
    *seen = count;
    let sample = |number: u64| {
        let place = RING_FIRST_WORD + (number % room) as usize;
        word(ring, place).map(|word| Nanos(word as i64))
    };
    (first..count).map(sample).collect()
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
    fn threads_are_added_up_and_each_is_told_by_itself() {
        let (first, second) = (slot_of(1), slot_of(2));
        let ring = ring_of(1).unwrap();
        let worker = worker_slot_of(2).unwrap();
        let mut words = vec![
            (MAGIC_WORD, MAGIC),
            (STEP_WORD, 3),
            (SLOTS_WORD, 2),
            (WORKERS_WORD, 2),
            (worker + ROUNDS_WORD, 3),
            (worker + AMOUNT_WORD, 800),
            (first + COUNT_WORD, 10),
            (first + OF_WORD, 100),
            (first + WORST_WORD, 7_000),
            (first + LEAST_WORD, -20_i64 as u64),
            (first + SUM_WORD, 30_009),
            (first + CPU_WORD, 4),
            (second + COUNT_WORD, 5),
            (second + OF_WORD, 100),
            (second + WORST_WORD, NO_WORST as u64),
            (second + LEAST_WORD, NO_LEAST as u64),
            (second + MISSED_WORD, 2),
            (ring, RING_MAGIC),
            (ring + RING_COUNT_WORD, 2),
            (ring + RING_FIRST_WORD, 7_000),
            (ring + RING_FIRST_WORD + 1, -20_i64 as u64),
        ];
        let mut reader = Reader::default();
        let expected = Progress {
            step: 2,
            count: 15,
            of: Some(200),
            worst: Some(Nanos(7_000)),
            missed: 2,
            threads: vec![
                ThreadProgress {
                    cpu: Some(3),
                    count: 10,
                    missed: 0,
                    least: Some(Nanos(-20)),
                    mean: Some(Nanos(3_000)),
                    worst: Some(Nanos(7_000)),
                    recent: vec![Nanos(7_000), Nanos(-20)],
                },
                ThreadProgress {
                    count: 5,
                    missed: 2,
                    ..ThreadProgress::default()
                },
            ],
            workers: vec![
                WorkerProgress::default(),
                WorkerProgress {
                    rounds: 3,
                    amount: 800,
                },
            ],
        };
        assert_eq!(reader.read(&page(&words)), Some(expected));
        // Of a ring only what was not seen before is told.
        words.extend([
            (ring + RING_COUNT_WORD, 3),
            (ring + RING_FIRST_WORD + 2, 90),
        ]);
        let next = reader.read(&page(&words)).unwrap();
        assert_eq!(next.threads[0].recent, [Nanos(90)]);
    }

    #[test]
    fn what_is_no_page_or_no_step_says_nothing() {
        assert_eq!(Reader::default().read(&[]), None);
        assert_eq!(
            Reader::default().read(&page(&[(STEP_WORD, 1), (SLOTS_WORD, 1)])),
            None
        );
        let before = page(&[(MAGIC_WORD, MAGIC), (SLOTS_WORD, 1)]);
        assert_eq!(Reader::default().read(&before), None);
        let silent = page(&[(MAGIC_WORD, MAGIC), (STEP_WORD, 1)]);
        assert_eq!(Reader::default().read(&silent), None);
        let hostile = page(&[
            (MAGIC_WORD, MAGIC),
            (STEP_WORD, 1),
            (SLOTS_WORD, u64::MAX),
            (WORKERS_WORD, u64::MAX),
            (slot_of(1) + COUNT_WORD, u64::MAX),
            (slot_of(2) + COUNT_WORD, u64::MAX),
        ]);
        let seen = Reader::default().read(&hostile).unwrap();
        assert_eq!((seen.count, seen.workers.len()), (u64::MAX, WORKERS));
    }
}
