// SPDX-License-Identifier: MIT OR Apache-2.0
//! A load's work while samples are taken, and only then.
//!
//! The first thread that is made ready to measure looks at the workers' progress, before
//! its first sample; the last thread that ends looks again, after its last sample. Both do so at
//! their own priority, so that no worker on their CPU does anything between the look and the
//! sample. If a probe measures in several goes, these are added up.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use punctual_model::Nanos;

use super::worker::{Done, Shared};
use crate::sys::{process, time};

/// The load that runs beside the measurement.
static WATCHED: Mutex<Option<Arc<Window>>> = Mutex::new(None);

thread_local! {
    /// Dropped when the thread ends.
    static MEASURING: RefCell<Option<Measuring>> = const { RefCell::new(None) };
}

/// The workers of a load, and their work while samples were taken.
pub struct Window {
    workers: Vec<Arc<Shared>>,
    state: Mutex<State>,
}

struct State {
    /// The number of measuring threads.
    threads: u32,
    /// The time when the first of them began, and the work done by then.
    begun: Option<(Nanos, Vec<Done>)>,
    /// The time that was measured, and the work done meanwhile.
    span: Nanos,
    done: Vec<Done>,
    /// Start of the whole probe, which counts if no thread says when it measures.
    whole: (Nanos, Vec<Done>),
}

struct Measuring(Arc<Window>);

impl Drop for Measuring {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Marks that the calling thread measures from now on, until it ends. A load's work is counted.
pub fn enter() {
    let Some(window) = lock(&WATCHED).clone() else {
        return;
    };
    MEASURING.with_borrow_mut(|measuring| {
        if measuring.is_none() {
            window.enter();
            *measuring = Some(Measuring(window));
        }
    });
}

/// Marks that the calling thread, the only one that measures, begins now: work of a load since the
/// thread was made ready does not count.
pub fn begin() {
    MEASURING.with_borrow(|measuring| {
        if let Some(Measuring(window)) = measuring {
            let now = window.seen();
            lock(&window.state).begun = Some((time::now(), now));
        }
    });
}

impl Window {
    /// Creates the window of these workers.
    pub fn of(workers: Vec<Arc<Shared>>) -> Arc<Self> {
        let nothing = vec![Done::default(); workers.len()];
        Arc::new(Self {
            workers,
            state: Mutex::new(State {
                threads: 0,
                begun: None,
                span: Nanos::ZERO,
                done: nothing.clone(),
                whole: (Nanos::ZERO, nothing),
            }),
        })
    }

    /// Observes from now on when threads measure.
    pub fn watch(self: &Arc<Self>) {
        let seen = self.seen();
        lock(&self.state).whole = (time::now(), seen);
        *lock(&WATCHED) = Some(Arc::clone(self));
    }

    /// Ends the observation. Returns how long samples were taken, each worker's work meanwhile,
    /// and its work in all.
    pub fn close(&self) -> (Nanos, Vec<Done>, Vec<Done>) {
        *lock(&WATCHED) = None;
        let (end, seen) = (time::now(), self.seen());
        let mut state = lock(&self.state);
        if state.begun.is_some() {
            state.end(end, &seen);
        }
        if state.span == Nanos::ZERO {
            let (begin, before) = state.whole.clone();
            state.begun = Some((begin, before));
            state.end(end, &seen);
        }
        (state.span, state.done.clone(), seen)
    }

    /// Returns the work of each worker up to now.
    pub fn seen(&self) -> Vec<Done> {
        let ended: Vec<_> = self.workers.iter().map(|worker| worker.ended()).collect();
        let leaders: Vec<_> = self
            .workers
            .iter()
            .map(|worker| worker.group.leader())
            .filter(|leader| *leader != 0)
            .collect();
        let usage = process::usage(&leaders);
        let done = |(worker, ended): (&Arc<Shared>, &MutexGuard<'_, Done>)| {
            let running = usage.get(&worker.group.leader());
            worker.done(**ended, running.copied().unwrap_or_default())
        };
        self.workers.iter().zip(&ended).map(done).collect()
    }

    fn enter(&self) {
        let mut state = lock(&self.state);
        state.threads += 1;
        if state.threads == 1 {
            let seen = self.seen();
            state.begun = Some((time::now(), seen));
        }
    }

    fn leave(&self) {
        let mut state = lock(&self.state);
        state.threads -= 1;
        if state.threads == 0 && state.begun.is_some() {
            state.end(time::now(), &self.seen());
        }
    }
}

impl State {
    fn end(&mut self, now: Nanos, seen: &[Done]) {
        let Some((begin, before)) = self.begun.take() else {
            return;
        };
        self.span += now - begin;
        for (sum, (after, before)) in self.done.iter_mut().zip(seen.iter().zip(before)) {
            *sum += *after - before;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
