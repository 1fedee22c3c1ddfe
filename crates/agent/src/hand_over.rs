// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports of the figures so far, while they are measured.
//!
//! A measuring thread asks its [status page](crate::status_page) after each sample whether
//! it is to end. Now and then the answer is to hand over its figures: it takes an empty
//! [`Tally`] from its cell and leaves its own there, which is a move of some words and neither
//! waits nor allocates. Another thread, of no priority, adds them up and sends them. A target
//! without a reporting interval, such as that of a guest, has no such thread and no cells.

use std::io;
use std::num::NonZeroU32;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use punctual_model::plan::Step;
use punctual_model::recording::Tally;
use punctual_model::status_page::SLOTS;
use punctual_model::{CpuId, Nanos, Record, RecordingKey, Sample};

use crate::probes::Measurement;
use crate::session::Repetitions;
use crate::status_page;
use crate::stream::{Records, Stream};
use crate::sys::sched;

/// The time that measuring threads have for their next sample.
const PATIENCE: Duration = Duration::from_secs(2);

static CELLS: OnceLock<Vec<Mutex<Cell>>> = OnceLock::new();

/// The cell of one measuring thread.
#[derive(Default)]
struct Cell {
    /// An empty tally for the thread to take.
    spare: Option<Tally>,
    /// The tally that it has left, and its CPU.
    given: Option<(Tally, CpuId)>,
    /// The total of all that it has given in this step.
    total: Option<Total>,
}

#[derive(Clone)]
struct Total {
    tally: Tally,
    cpu: CpuId,
    maxima: Vec<Sample>,
}

impl Cell {
    /// Adds the given tally to the total; the emptied tally becomes the next spare one.
    fn take_in(&mut self) {
        let Some((mut given, cpu)) = self.given.take() else {
            return;
        };
        let total = self.total.get_or_insert_with(|| Total {
            tally: Tally::new(),
            cpu,
            maxima: Vec::new(),
        });
        total.add(&given);
        given.clear();
        self.spare = Some(given);
    }
}

impl Total {
    fn add(&mut self, later: &Tally) {
        self.maxima.extend(later.worst().map(|worst| Sample {
            seq: worst.seq + self.tally.count(),
            ..worst
        }));
        self.tally.absorb(later);
    }
}

fn cell(slot: usize) -> Option<&'static Mutex<Cell>> {
    CELLS.get()?.get(slot.checked_sub(1)?)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands over a thread's figures, if an empty tally is ready; never waits.
pub fn give(slot: usize, tally: &mut Tally) {
    let Some(mut cell) = cell(slot).and_then(|cell| cell.try_lock().ok()) else {
        return;
    };
    if let Some(mut taken) = cell.spare.take() {
        std::mem::swap(&mut taken, tally);
        cell.given = Some((taken, sched::current_cpu()));
    }
}

/// Puts all that a thread has handed over before its last figures, and returns the largest sample
/// of each part. Returns nothing if the thread has handed over nothing.
pub fn complete(slot: usize, last: &mut Tally) -> Vec<Sample> {
    let Some(mut cell) = cell(slot).map(lock) else {
        return Vec::new();
    };
    cell.take_in();
    let Some(mut total) = cell.total.take() else {
        return Vec::new();
    };
    total.add(last);
    *last = total.tally;
    total.maxima
}

/// The running step, if it has one recording on each CPU.
struct Current {
    number: u32,
    step: Step,
    interval: Option<Nanos>,
    repetitions: Repetitions,
}

impl Current {
    fn key(&self, cpu: CpuId) -> RecordingKey {
        let mut key = RecordingKey::of_variant(cpu.to_string());
        let mut repetitions = self.repetitions.clone();
        repetitions.complete(&mut key, &self.step, self.number);
        key
    }
}

/// A stream that two threads write to, one of which reports the figures so far.
pub struct Told {
    stream: Arc<Mutex<Stream>>,
    current: Arc<Mutex<Option<Current>>>,
    teller: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Told {
    /// Begins to report at the given interval.
    pub fn every(seconds: NonZeroU32, stream: Stream) -> io::Result<Self> {
        CELLS.get_or_init(|| (0..SLOTS).map(|_| Mutex::default()).collect());
        let (stream, current) = (Arc::new(Mutex::new(stream)), Arc::default());
        let (end, ended) = mpsc::channel();
        let every = Duration::from_secs(seconds.get().into());
        let (own, step) = (Arc::clone(&stream), Arc::clone(&current));
        let tell = move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                tell(&own, &step);
            }
        };
        let teller = Some((end, thread::Builder::new().spawn(tell)?));
        Ok(Self {
            stream,
            current,
            teller,
        })
    }
}

impl Records for Told {
    fn send(&mut self, record: &Record) -> io::Result<()> {
        lock(&self.stream).send(record)
    }

    fn begin_step(
        &mut self,
        number: u32,
        step: &Step,
        measurement: &dyn Measurement,
        repetitions: &Repetitions,
    ) {
        for cell in CELLS.get().into_iter().flatten() {
            let mut cell = lock(cell);
            (cell.given, cell.total) = (None, None);
        }
        let current = || Current {
            number,
            step: step.clone(),
            interval: measurement.period(),
            repetitions: repetitions.clone(),
        };
        *lock(&self.current) = measurement.is_by_cpu().then(current);
    }

    fn end_step(&mut self) {
        *lock(&self.current) = None;
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if let Some((end, teller)) = self.teller.take() {
            drop(end);
            let _ = teller.join();
        }
    }
}

/// Makes all measuring threads hand over, and sends the available figures.
fn tell(stream: &Mutex<Stream>, current: &Mutex<Option<Current>>) {
    let Some(cells) = CELLS.get().filter(|_| lock(current).is_some()) else {
        return;
    };
    let used = &cells[..status_page::slots().min(cells.len())];
    for cell in used {
        let mut cell = lock(cell);
        if cell.spare.is_none() {
            cell.spare = Some(Tally::new());
        }
    }
    status_page::request_hand_over();
    let mut waited = Duration::ZERO;
    while used.iter().any(|cell| lock(cell).given.is_none()) && waited < PATIENCE {
        let moment = Duration::from_millis(10);
        thread::sleep(moment);
        waited += moment;
    }
    status_page::withdraw_hand_over();
    // What the step delivers comes after all that was told of it before.
    let current = lock(current);
    let Some(current) = current.as_ref() else {
        return;
    };
    for cell in used {
        let mut cell = lock(cell);
        cell.take_in();
        let Some(total) = cell.total.clone() else {
            continue;
        };
        drop(cell);
        let mut recording = total.tally.finish(current.key(total.cpu));
        recording.interval = current.interval;
        recording.maxima = total.maxima;
        recording.interrupted = true;
        // Where the stream is gone, the step's end says so.
        let _ = lock(stream).send(&Record::SoFar(Box::new(recording)));
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::Recorder;

    use super::*;

    /// A slot that no probe in other tests uses.
    const OWN: usize = SLOTS;

    #[test]
    fn what_is_given_in_parts_is_whole_in_the_end() {
        CELLS.get_or_init(|| (0..SLOTS).map(|_| Mutex::default()).collect());
        let cell = cell(OWN).unwrap();
        let (mut whole, mut parts) = (Recorder::new(5), Recorder::new(5));
        for number in 0..100 {
            if number % 30 == 20 {
                lock(cell).take_in();
                lock(cell).spare.get_or_insert_with(Tally::new);
            }
            // Asked again and again, it gives once for each empty one that lies ready.
            give(OWN, &mut parts.tally);
            for recorder in [&mut whole, &mut parts] {
                recorder.record(Nanos(number * 1_000), Nanos(number * 37 % 101));
            }
        }
        let maxima = complete(OWN, &mut parts.tally);
        let counts: Vec<u64> = maxima.iter().map(|one| one.seq).collect();
        assert_eq!(counts.len(), 4, "{counts:?}");
        let key = RecordingKey::of_variant("cpu0");
        assert_eq!(parts.finish(key.clone()), whole.finish(key));
        assert!(complete(OWN, &mut Tally::new()).is_empty(), "it is over");
    }

    #[test]
    fn who_finds_no_empty_tally_keeps_its_own() {
        let mut recorder = Recorder::new(0);
        recorder.record(Nanos(0), Nanos(7));
        // There is no such slot, and so no cell.
        give(SLOTS + 1, &mut recorder.tally);
        assert_eq!(recorder.tally.count(), 1);
        assert!(complete(SLOTS + 1, &mut recorder.tally).is_empty());
        assert_eq!(recorder.tally.count(), 1);
    }
}
