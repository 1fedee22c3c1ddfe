// SPDX-License-Identifier: MIT OR Apache-2.0
//! The target's end of the [status page](punctual_model::status_page): measuring threads record
//! their progress there, and see there that the target is asked to end.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use punctual_model::status_page::{
    AMOUNT_WORD, COUNT_WORD, CPU_WORD, HAND_OVER, LEAST_WORD, MAGIC, MAGIC_WORD, MISSED_WORD,
    NO_LEAST, NO_WORST, OF_WORD, PAGE_WORDS, RING_COUNT_WORD, RING_FIRST_WORD, RING_MAGIC,
    RING_SAMPLES, RING_SLOT_WORD, ROUNDS_WORD, SLOT, SLOTS, SLOTS_WORD, STEP_WORD, STOP, STOP_WORD,
    SUM_WORD, WORDS, WORKERS_WORD, WORST_WORD, ring_of, slot_of, worker_slot_of,
};
use punctual_model::{CpuId, Nanos, Recorder, Recording, RecordingKey};

use crate::hand_over;
use crate::sink::Sink;
use crate::sys::memory;

/// The environment variable by which a bench names the file to map.
pub const FILE_VARIABLE: &str = "PUNCTUAL_STATUS_PAGE";

/// A page of this process's own, if no bench has named another.
#[repr(align(4096))]
struct OwnPage([AtomicU64; WORDS]);

static OWN: OwnPage = OwnPage([const { AtomicU64::new(0) }; WORDS]);
static MAPPED: OnceLock<&'static [AtomicU64]> = OnceLock::new();

fn page() -> &'static [AtomicU64] {
    MAPPED.get().copied().unwrap_or(&OWN.0)
}

/// Maps a page that the bench sees in a file. It must be in memory, or writing to the page would
/// wait for a disk. Must be called once, before anything else here.
pub fn map(path: &Path) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(path)?;
    let words = memory::words_of(&file, WORDS)?;
    MAPPED
        .set(words)
        .map_err(|_| io::Error::other("it is mapped already"))
}

/// Begins a step: no thread has done any of it yet.
pub fn begin_step(number: u32) {
    let page = page();
    let used = usize::try_from(page[SLOTS_WORD].swap(0, Relaxed)).unwrap_or(SLOTS);
    for slot in 1..=used.min(SLOTS) {
        clear(slot_of(slot));
        if let Some(ring) = ring_of(slot) {
            page[ring + RING_COUNT_WORD].store(0, Relaxed);
        }
    }
    page[WORKERS_WORD].store(0, Relaxed);
    page[STEP_WORD].store(u64::from(number) + 1, Relaxed);
    page[MAGIC_WORD].store(MAGIC, Relaxed);
}

fn clear(slot: usize) {
    let words = &page()[slot..][..SLOT];
    words.iter().for_each(|word| word.store(0, Relaxed));
}

/// Asks all measuring threads to end after their current sample.
pub fn request_stop() {
    page()[STOP_WORD].store(STOP, Relaxed);
}

/// Asks all measuring threads to hand over their figures, unless they are asked to end.
pub fn request_hand_over() {
    let _ = page()[STOP_WORD].compare_exchange(0, HAND_OVER, Relaxed, Relaxed);
}

/// Withdraws the request to hand over.
pub fn withdraw_hand_over() {
    let _ = page()[STOP_WORD].compare_exchange(HAND_OVER, 0, Relaxed, Relaxed);
}

/// Returns true if all measuring threads are asked to end.
#[inline]
pub fn is_stop_requested() -> bool {
    page()[STOP_WORD].load(Relaxed) == STOP
}

/// Returns the number of slots in use.
pub fn slots() -> usize {
    page()[SLOTS_WORD].load(Relaxed) as usize
}

/// A slot that nobody sees.
static UNSEEN: [AtomicU64; SLOT] = [const { AtomicU64::new(0) }; SLOT];

/// The slot of a load's worker: nobody else writes to it.
#[derive(Debug)]
pub struct WorkerSlot(&'static [AtomicU64]);

impl WorkerSlot {
    /// Takes the next free slot of this step. Workers that come after all are taken are not seen.
    pub fn take() -> Self {
        let page = page();
        let number = page[WORKERS_WORD].fetch_add(1, Relaxed) as usize + 1;
        let Some(at) = worker_slot_of(number) else {
            return Self(&UNSEEN);
        };
        clear(at);
        Self(&page[at..][..SLOT])
    }

    /// Records the number of rounds that have ended.
    pub fn rounds(&self, rounds: u64) {
        self.0[ROUNDS_WORD].store(rounds, Relaxed);
    }

    /// Records the least amount of work done, in the worker's unit.
    pub fn amount(&self, amount: u64) {
        self.0[AMOUNT_WORD].fetch_max(amount, Relaxed);
    }
}

/// One thread's slot: nobody else writes to it.
#[derive(Debug)]
pub struct Slot {
    words: &'static [AtomicU64],
    /// Its latest samples, if it has a ring.
    ring: Option<Ring>,
    stop: &'static AtomicU64,
    /// Its number, from 1; higher than the number of slots if it is not seen.
    number: usize,
    count: u64,
    least: i64,
    worst: i64,
    sum: i64,
    missed: u64,
}

/// The latest samples of a thread, for an observer.
#[derive(Debug)]
struct Ring {
    words: &'static [AtomicU64],
    /// The position of the next sample.
    next: usize,
    count: u64,
}

impl Ring {
    fn of(page: &'static [AtomicU64], slot: usize) -> Option<Self> {
        let words = page.get(ring_of(slot)?..)?.get(..PAGE_WORDS)?;
        words[RING_SLOT_WORD].store(slot as u64, Relaxed);
        words[0].store(RING_MAGIC, Relaxed);
        Some(Self {
            words,
            next: RING_FIRST_WORD,
            count: 0,
        })
    }

    #[inline]
    fn put(&mut self, value: i64) {
        self.words[self.next].store(value as u64, Relaxed);
        self.next += 1;
        if self.next == RING_FIRST_WORD + RING_SAMPLES {
            self.next = RING_FIRST_WORD;
        }
        self.count += 1;
        self.words[RING_COUNT_WORD].store(self.count, Relaxed);
    }
}

impl Slot {
    /// Takes the next free slot, for a thread that is to take `samples`. Threads that come after
    /// all slots are taken are not seen.
    pub fn take(samples: u64) -> Self {
        let page = page();
        let number = page[SLOTS_WORD].fetch_add(1, Relaxed) as usize + 1;
        let seen = Some(number).filter(|number| *number <= SLOTS);
        let words = seen.map_or(&UNSEEN[..], |number| &page[slot_of(number)..][..SLOT]);
        words[OF_WORD].store(samples, Relaxed);
        words[WORST_WORD].store(NO_WORST as u64, Relaxed);
        words[LEAST_WORD].store(NO_LEAST as u64, Relaxed);
        Self {
            words,
            ring: Ring::of(page, number),
            stop: &page[STOP_WORD],
            number,
            count: 0,
            least: NO_LEAST,
            worst: NO_WORST,
            sum: 0,
            missed: 0,
        }
    }

    /// Records the CPU to which its thread is bound.
    pub fn of_cpu(self, cpu: CpuId) -> Self {
        self.words[CPU_WORD].store(u64::from(cpu.0) + 1, Relaxed);
        self
    }

    /// Counts a sample whose value is not known yet.
    #[inline]
    pub fn count(&mut self) {
        self.count += 1;
        self.words[COUNT_WORD].store(self.count, Relaxed);
    }

    /// Returns true if its thread is asked to end.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed) == STOP
    }

    /// Returns true if its thread is asked for anything.
    #[inline]
    fn is_asked(&self) -> bool {
        self.stop.load(Relaxed) != 0
    }
}

impl Sink for Slot {
    #[inline]
    fn record(&mut self, _at: Nanos, value: Nanos) {
        if value.0 > self.worst {
            self.worst = value.0;
            self.words[WORST_WORD].store(self.worst as u64, Relaxed);
        }
        if value.0 < self.least {
            self.least = value.0;
            self.words[LEAST_WORD].store(self.least as u64, Relaxed);
        }
        self.sum = self.sum.wrapping_add(value.0);
        self.words[SUM_WORD].store(self.sum as u64, Relaxed);
        if let Some(ring) = &mut self.ring {
            ring.put(value.0);
        }
        self.count();
    }

    #[inline]
    fn miss(&mut self, periods: u64) {
        if periods > 0 {
            self.missed += periods;
            self.words[MISSED_WORD].store(self.missed, Relaxed);
        }
    }

    #[inline]
    fn is_over(&mut self) -> bool {
        self.is_stopped()
    }
}

/// A recorder whose progress is shown on the page, and which is over when the target is asked
/// to end.
#[derive(Debug)]
pub struct SeenRecorder {
    recorder: Recorder,
    slot: Slot,
}

impl SeenRecorder {
    /// Creates a recorder for `samples`, of which it keeps the first `keep` raw.
    pub fn new(keep: usize, samples: u64) -> Self {
        Self {
            recorder: Recorder::new(keep),
            slot: Slot::take(samples),
        }
    }

    /// Records the CPU to which its thread is bound.
    pub fn of_cpu(self, cpu: CpuId) -> Self {
        Self {
            slot: self.slot.of_cpu(cpu),
            ..self
        }
    }

    /// Returns the finished recording.
    pub fn finish(mut self, key: RecordingKey) -> Recording {
        let maxima = hand_over::complete(self.slot.number, &mut self.recorder.tally);
        let mut recording = self.recorder.finish(key);
        recording.maxima = maxima;
        recording
    }

    /// Returns true if it is asked to end; hands over if it is asked for that.
    #[cold]
    fn heed(&mut self) -> bool {
        hand_over::give(self.slot.number, &mut self.recorder.tally);
        self.slot.is_stopped()
    }
}

impl Sink for SeenRecorder {
    #[inline]
    fn record(&mut self, at: Nanos, value: Nanos) {
        self.recorder.record(at, value);
        self.slot.record(at, value);
    }

    #[inline]
    fn miss(&mut self, periods: u64) {
        self.recorder.miss(periods);
        self.slot.miss(periods);
    }

    #[inline]
    fn is_over(&mut self) -> bool {
        self.slot.is_asked() && self.heed()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use punctual_model::status_page::{BYTES, Reader};

    use super::*;

    /// The page belongs to the process, so this is one test, and no other writes to the page except
    /// for probes in other tests, which take slots of their own.
    #[test]
    fn what_a_recorder_takes_is_read_from_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let short = map(file.path()).unwrap_err();
        assert!(short.to_string().contains("shorter"), "{short}");
        file.as_file().set_len(BYTES as u64).unwrap();
        let words = memory::words_of(file.as_file(), WORDS).unwrap();
        words[MAGIC_WORD].store(MAGIC, Relaxed);
        words[STEP_WORD].store(5, Relaxed);
        words[SLOTS_WORD].store(1, Relaxed);
        let mut slot = Slot {
            words: &words[slot_of(1)..][..SLOT],
            ring: Ring::of(words, 1),
            stop: &words[STOP_WORD],
            number: 1,
            count: 0,
            least: NO_LEAST,
            worst: NO_WORST,
            sum: 0,
            missed: 0,
        }
        .of_cpu(CpuId(3));
        slot.record(Nanos(0), Nanos(-3));
        slot.record(Nanos(1), Nanos(9));
        slot.record(Nanos(2), Nanos(4));
        slot.miss(7);
        let mut bytes = vec![0; BYTES];
        file.as_file().read_exact_at(&mut bytes, 0).unwrap();
        let seen = Reader::default().read(&bytes).unwrap();
        assert_eq!((seen.step, seen.count, seen.missed), (4, 3, 7));
        assert_eq!(seen.worst, Some(Nanos(9)));
        let thread = &seen.threads[0];
        assert_eq!((thread.cpu, thread.least), (Some(3), Some(Nanos(-3))));
        assert_eq!(thread.mean, Some(Nanos(3)));
        assert_eq!(thread.recent, [-3, 9, 4].map(Nanos));
        assert!(!slot.is_over());
        file.as_file()
            .write_all_at(&1_u64.to_ne_bytes(), 8 * STOP_WORD as u64)
            .unwrap();
        assert!(slot.is_over());
    }
}
