// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `wake`: wake-up latency from one CPU to another.
//!
//! A thread on one CPU wakes a thread that sleeps on another: by a futex, a pipe, an eventfd,
//! a semaphore, or by giving back a mutex with priority inheritance. The kernel notifies the other
//! CPU by an inter-processor interrupt, or by a flag that its idle loop looks at.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

use punctual_model::probe::{ProbeInfo, Shape, View, Watched, Windows};
use punctual_model::{CpuId, Nanos, Reason, Recorder, Recording, RecordingKey};
use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::futex;
use serde::Deserialize;

use super::{Context, Measurement, Probe, parameters, within};
use crate::sys::marker;
use crate::sys::mutex::{Mutex, Owned, Protocol};
use crate::sys::pipe::pipe;
use crate::sys::semaphore::Semaphore;
use crate::sys::time::{now, sleep};
use crate::threads::{self, ThreadSpec};

/// This probe.
pub const PROBE: Probe = Probe {
    name: "wake",
    summary: "wake-up latency of a thread that a thread on the same or another CPU wakes",
    parse: |table| parameters::<Wake>(table, Wake::check),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View::of_samples(Shape::Latency, "wake-up by another CPU"),
    scope: Ok(Watched::handover(Windows::OneAfterTheOther)),
};

/// The waker's sleep before each sample: no multiple of a tick.
const PAUSE: Nanos = Nanos::from_micros(997);
const LONGEST_PHASE: Nanos = Nanos::from_millis(4);

/// The way in which a thread is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Means {
    Futex,
    Pipe,
    Eventfd,
    Semaphore,
    Mutex,
}

impl Means {
    fn name(self) -> &'static str {
        match self {
            Self::Futex => "futex",
            Self::Pipe => "pipe",
            Self::Eventfd => "eventfd",
            Self::Semaphore => "semaphore",
            Self::Mutex => "mutex",
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Wake {
    /// The number of wake-ups that are measured of each means and pair; all are kept.
    samples: u64,
    /// The number of first wake-ups that are not counted.
    warmup: u32,
    /// The waker's `SCHED_FIFO` priority; the sleeper has the next one above.
    priority: u8,
    /// The means by which the sleeper is woken; one recording for each.
    by: Vec<Means>,
    /// The CPUs of waker and sleeper; if empty, from the first to itself, to each other, and back.
    pairs: Vec<(CpuId, CpuId)>,
}

impl Default for Wake {
    fn default() -> Self {
        Self {
            samples: 200,
            warmup: 5,
            priority: 80,
            by: vec![
                Means::Futex,
                Means::Pipe,
                Means::Eventfd,
                Means::Semaphore,
                Means::Mutex,
            ],
            pairs: vec![],
        }
    }
}

impl Wake {
    fn check(&self) -> Result<(), String> {
        within("samples", self.samples, 1, 1_000_000)?;
        within("warmup", self.warmup, 0, 1_000_000)?;
        within("priority", self.priority, 1, 98)?;
        within("the number of means in by", self.by.len(), 1, 5)
    }

    fn all(&self) -> u64 {
        self.samples + u64::from(self.warmup)
    }

    fn measure(
        &self,
        means: Means,
        (from, to): (CpuId, CpuId),
        phase: Nanos,
    ) -> Result<Recording, Reason> {
        let bell = Bell::of(means).map_err(|error| format!("{}: {error}", means.name()))?;
        let exchange = Exchange::default();
        let recorder = std::sync::Mutex::new(Recorder::new(self.samples as usize));
        let found = threads::run(
            from,
            vec![
                ThreadSpec::new(self.priority, || {
                    exchange.wake(&bell, 0..self.all(), phase);
                }),
                ThreadSpec::new(self.priority + 1, || {
                    let mut recorder = recorder.lock().expect("nobody else has it yet");
                    exchange.sleep(&bell, &mut recorder, self.warmup.into());
                })
                .on(to),
            ],
        )?;
        let recorder = recorder.into_inner().map_err(|_| "a thread has panicked")?;
        let variant = format!("{}, {from} to {to}", means.name());
        let mut recording = recorder.finish(RecordingKey::of_variant(variant));
        recording.warmup = self.warmup.into();
        recording.settings = threads::common(&found, &["waker", "sleeper"]);
        let cpus = [("from", from), ("to", to)];
        let cpus = cpus.map(|(role, cpu)| (role.into(), cpu.to_string().into()));
        recording.settings.extend(cpus);
        recording.settings.remove("affinity");
        Ok(recording)
    }
}

impl Measurement for Wake {
    fn nominal(&self) -> Nanos {
        let pairs = threads::pairs(&self.pairs).map_or(1, |pairs| pairs.len());
        PAUSE * (self.all() as i64 * pairs as i64 * self.by.len() as i64)
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let phase = context.phases.below(LONGEST_PHASE);
        let mut recordings = Vec::new();
        for means in &self.by {
            for pair in threads::pairs(&self.pairs)? {
                recordings.push(self.measure(*means, pair, phase)?);
            }
        }
        Ok(recordings)
    }
}

/// The state that the two threads share.
#[derive(Default)]
struct Exchange {
    /// The time when the waker was about to wake.
    rung: AtomicI64,
    /// The number of wake-ups that the sleeper has noted.
    heard: AtomicU64,
    over: AtomicBool,
    /// True if the waker owns the mutex that the sleeper is to want.
    ready: AtomicBool,
}

impl Exchange {
    /// Runs the waker for its whole life. By its first sample the sleeper has long since blocked;
    /// before the next one it has noted this one and blocks again.
    fn wake(&self, bell: &Bell, all: std::ops::Range<u64>, phase: Nanos) {
        let mut held = bell.hold(0);
        self.ready.store(true, Ordering::Release);
        sleep(PAUSE + phase);
        let mut rung = 0;
        threads::lead(all, PAUSE, None, || {
            while self.heard.load(Ordering::Acquire) < rung {
                sleep(PAUSE);
            }
            rung += 1;
            let next = bell.hold(rung);
            marker::armed();
            self.rung.store(now().0, Ordering::Release);
            bell.ring(held.take());
            held = next;
        });
        while self.heard.load(Ordering::Acquire) < rung {
            sleep(PAUSE);
        }
        self.over.store(true, Ordering::Release);
        bell.ring(held);
    }

    /// Runs the sleeper for its whole life.
    fn sleep(&self, bell: &Bell, recorder: &mut Recorder, warmup: u64) {
        while !self.ready.load(Ordering::Acquire) {
            sleep(PAUSE);
        }
        let mut first = None;
        for number in 0_u64.. {
            let owned = bell.wait(number);
            let stamp = now();
            marker::taken();
            drop(owned);
            if self.over.load(Ordering::Acquire) {
                return;
            }
            let rung = Nanos(self.rung.load(Ordering::Acquire));
            if number >= warmup {
                recorder.record(rung - *first.get_or_insert(rung), stamp - rung);
            }
            self.heard.store(number + 1, Ordering::Release);
        }
    }
}

/// An object that one thread waits for, and another rings.
enum Bell {
    Futex(AtomicU32),
    Pipe(File, File),
    Eventfd(File),
    Semaphore(Semaphore),
    /// Two mutexes in turn: the waker owns the next one before it gives this one back.
    Mutex([Mutex; 2]),
}

impl Bell {
    fn of(means: Means) -> std::io::Result<Self> {
        Ok(match means {
            Means::Futex => Self::Futex(AtomicU32::new(0)),
            Means::Pipe => {
                let (read, write) = pipe()?;
                Self::Pipe(read.into(), write.into())
            }
            Means::Eventfd => Self::Eventfd(eventfd(0, EventfdFlags::CLOEXEC)?.into()),
            Means::Semaphore => Self::Semaphore(Semaphore::new()?),
            Means::Mutex => {
                let mutex = || Mutex::new(Protocol::Inherit);
                Self::Mutex([mutex()?, mutex()?])
            }
        })
    }

    /// Takes what the waker must own before the sleeper can wait for the sample of that number.
    fn hold(&self, number: u64) -> Option<Owned<'_>> {
        match self {
            Self::Mutex(both) => Some(both[(number % 2) as usize].lock()),
            _ => None,
        }
    }

    /// Wakes the sleeper, which waits for the `held` mutex, if any.
    #[inline]
    fn ring(&self, held: Option<Owned<'_>>) {
        match self {
            Self::Mutex(_) => drop(held),
            Self::Futex(word) => {
                word.store(1, Ordering::Release);
                let woken = futex::wake(word, futex::Flags::PRIVATE, 1);
                woken.expect("a futex of this process is woken");
            }
            Self::Pipe(_, write) => {
                let written = (&*write).write_all(&[0]);
                written.expect("a pipe that is read each time is never full");
            }
            Self::Eventfd(counter) => {
                let added = (&*counter).write_all(&1_u64.to_ne_bytes());
                added.expect("a counter that is read each time is never full");
            }
            Self::Semaphore(semaphore) => semaphore.post(),
        }
    }

    /// Waits to be woken; a mutex that the sleeper then owns is given back when it is dropped.
    #[inline]
    fn wait(&self, number: u64) -> Option<Owned<'_>> {
        match self {
            Self::Mutex(_) => return self.hold(number),
            Self::Futex(word) => {
                // It returns for no reason at times, and at once where the word has changed.
                while word.swap(0, Ordering::Acquire) == 0 {
                    _ = futex::wait(word, futex::Flags::PRIVATE, 0, None);
                }
            }
            Self::Pipe(read, _) => {
                (&*read).read_exact(&mut [0]).expect("a byte is read");
            }
            Self::Eventfd(counter) => {
                let read = (&*counter).read_exact(&mut [0; 8]);
                read.expect("a counter of 8 bytes is read");
            }
            Self::Semaphore(semaphore) => semaphore.wait(),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::Phases;
    use crate::sys::sched;

    #[test]
    fn every_means_wakes_the_sleeper_once_for_each_sample() {
        let cpu = sched::affinity().unwrap()[0];
        let probe = Wake {
            samples: 20,
            warmup: 2,
            pairs: vec![(cpu, cpu)],
            ..Wake::default()
        };
        let phases = Phases::new(1, 1);
        let measured = threads::measured(probe.run(&mut Context::new(phases)));
        if let Some(recordings) = measured {
            assert_eq!(recordings.len(), 5);
            for recording in recordings {
                assert_eq!((recording.count, recording.missed), (20, 0));
                assert!(recording.min() > Some(Nanos::ZERO));
                assert_eq!(recording.settings["priority_sleeper"].number(), Some(81));
            }
        }
    }
}
