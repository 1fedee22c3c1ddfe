// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads of probes and programs: their start, and groups of threads for probes that need
//! several: on one CPU unless one is elsewhere, each with a priority of its own.
//!
//! No thread that measures is started in another way. If one cannot be created
//! (`RLIMIT_NPROC`, `RLIMIT_MEMLOCK`), the existing ones end, and the reason is returned.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, OnceLock, PoisonError, RwLock};
use std::thread::{self, Scope, ScopedJoinHandle};

use punctual_model::recording::TRACING_OVERHEAD;
use punctual_model::{CpuId, Nanos, Reason};

use crate::event_log;
use crate::rt::{self, Faults, Settings};
use crate::stall;
use crate::status_page::Slot;
use crate::sys::{sched, time};

/// A thread's stack: small, since there may be a thousand of them, all locked in memory, yet
/// several times what [`rt::prepare_thread`] touches.
const STACK: usize = 64 * 1024;

/// The time in which the kernel frees the remains of threads, after a delay, in softirq and for
/// 150 µs at a stretch if they were a thousand. It passes before anything else is measured.
const AFTERMATH: Nanos = Nanos::from_millis(100);

/// A thread that was started.
#[derive(Debug)]
pub struct Started<'scope, T>(ScopedJoinHandle<'scope, Option<T>>);

impl<T> Started<'_, T> {
    /// Returns true if it has ended.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for its end. Returns its result; an error if it has panicked.
    pub fn join(self) -> Result<T, Reason> {
        let joined = self.0.join().ok().flatten();
        joined.ok_or_else(|| "a measuring thread has panicked".into())
    }
}

/// Starts one thread; an error is the reason why it could not be started.
pub fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Result<Started<'scope, T>, Reason> {
    let started = thread::Builder::new().spawn_scoped(scope, || Some(body()));
    started.map(Started).map_err(|error| refused(1, &error))
}

/// Starts a thread for each member, with a stack of `stack` bytes, or of the default size. None
/// of them does anything before all exist. If one cannot be started, none ever does, and the
/// reason is returned.
pub fn start_all<'scope, M: Send + 'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    stack: Option<usize>,
    members: impl IntoIterator<Item = M>,
    body: impl Fn(M) -> T + Copy + Send + 'scope,
) -> Result<Vec<Started<'scope, T>>, Reason> {
    let members: Vec<M> = members.into_iter().collect();
    let wanted = members.len();
    let all_started = Arc::new(RwLock::new(false));
    let mut gate = all_started.write().unwrap_or_else(PoisonError::into_inner);
    let start = |member| {
        let all_started = Arc::clone(&all_started);
        let life = move || {
            let goes = *all_started.read().unwrap_or_else(PoisonError::into_inner);
            goes.then(|| body(member))
        };
        let builder = stack.map_or_else(thread::Builder::new, |stack| {
            thread::Builder::new().stack_size(stack)
        });
        builder.spawn_scoped(scope, life).map(Started)
    };
    let started: Result<Vec<_>, _> = members.into_iter().map(start).collect();
    *gate = started.is_ok();
    drop(gate);
    started.map_err(|error| refused(wanted, &error))
}

fn refused(wanted: usize, error: &std::io::Error) -> Reason {
    let what = match wanted {
        1 => "a thread".to_owned(),
        wanted => format!("{wanted} threads"),
    };
    format!("cannot start {what}: {error}; RLIMIT_NPROC, RLIMIT_MEMLOCK or memory is too low")
        .into()
}

/// Sets a flag when it is dropped: on each way out of a scope, which waits for its
/// threads.
#[derive(Debug)]
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One thread.
pub struct ThreadSpec<'a> {
    /// Its `SCHED_FIFO` priority.
    pub priority: u8,
    /// The CPU that it is bound to, if that is not the common one.
    pub cpu: Option<CpuId>,
    /// Its work once all of them are prepared.
    pub body: Box<dyn FnOnce() + Send + 'a>,
}

impl<'a> ThreadSpec<'a> {
    /// Creates a thread that runs `body`.
    pub fn new(priority: u8, body: impl FnOnce() + Send + 'a) -> Self {
        let body = Box::new(body);
        Self {
            priority,
            cpu: None,
            body,
        }
    }

    /// Puts the same thread on this CPU.
    #[must_use]
    pub fn on(self, cpu: CpuId) -> Self {
        let cpu = Some(cpu);
        Self { cpu, ..self }
    }
}

/// Runs all threads to their end and returns, in the same order, the scheduling of each, with
/// the page faults of all of them together, and the cost of a stamp of an [`EventLog`] there.
///
/// [`EventLog`]: crate::event_log::EventLog
/// If one cannot be started or prepared, none of them does anything, and the reason is returned.
pub fn run(cpu: CpuId, members: Vec<ThreadSpec<'_>>) -> Result<Vec<Settings>, Reason> {
    let prepared = Barrier::new(members.len());
    let failed = AtomicBool::new(false);
    let overhead = OnceLock::new();
    let live = |member: ThreadSpec<'_>| {
        let settings = rt::prepare_thread(member.cpu.unwrap_or(cpu), member.priority);
        failed.fetch_or(settings.is_err(), Ordering::SeqCst);
        if settings.is_ok() {
            overhead.get_or_init(event_log::overhead);
        }
        prepared.wait();
        let faults = Faults::of_thread();
        if !failed.load(Ordering::SeqCst) {
            (member.body)();
        }
        Ok((settings?, faults.until_now()))
    };
    let live = &live;
    let lived: Result<Vec<(Settings, Faults)>, Reason> = thread::scope(|scope| {
        // The barrier waits for all: none comes to it before all are there.
        let threads = start_all(scope, Some(STACK), members, live)?;
        let join = |thread: Started<'_, Result<_, Reason>>| thread.join()?;
        threads.into_iter().map(join).collect()
    });
    time::sleep(AFTERMATH);
    let (mut settings, faults): (Vec<Settings>, Vec<Faults>) = lived?.into_iter().unzip();
    let mut facts = faults
        .into_iter()
        .reduce(Faults::and)
        .map(|all| all.facts())
        .unwrap_or_default();
    let overhead = overhead.get().copied();
    facts.extend(overhead.map(|cost| (TRACING_OVERHEAD.into(), cost.into())));
    for one in &mut settings {
        one.extend(facts.clone());
    }
    Ok(settings)
}

/// Runs the body in a thread of its own, whose scheduling then ends with it.
pub fn alone<T: Send>(body: impl FnOnce() -> Result<T, Reason> + Send) -> Result<T, Reason> {
    thread::scope(|scope| start(scope, body)?.join())?
}

/// Runs a probe's rounds, in the thread that leads them: each begins after a pause, in which a
/// stall is armed that is to fall into the round. If the target is asked to end, the
/// current round is the last.
pub fn lead(
    rounds: Range<u64>,
    pause: Nanos,
    stall: Option<&stall::Within>,
    mut round: impl FnMut(),
) {
    let mut slot = Slot::take(rounds.end - rounds.start);
    for number in rounds {
        if slot.is_stopped() {
            break;
        }
        stall::pause(stall, number, pause);
        round();
        slot.count();
    }
}

/// Returns the pairs of CPUs to measure: the named ones or, if there are none, from the first CPU
/// that the target may use to itself, to each other one, and back.
pub fn pairs(named: &[(CpuId, CpuId)]) -> Result<Vec<(CpuId, CpuId)>, Reason> {
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let cpus = sched::affinity().map_err(|error| format!("sched_getaffinity: {error}"))?;
    let [first, others @ ..] = cpus.as_slice() else {
        return Err("there is no CPU to run on".into());
    };
    let there = others.iter().map(|other| (*first, *other));
    let back = others.iter().map(|other| (*other, *first));
    let itself = std::iter::once((*first, *first));
    Ok(itself.chain(there).chain(back).collect())
}

/// Combines the scheduling of the threads: the first one's settings, and each thread's
/// priority, as read back, under its role.
pub fn common(found: &[Settings], roles: &[&str]) -> Settings {
    let mut settings = found.first().cloned().unwrap_or_default();
    settings.remove("priority");
    for (role, found) in roles.iter().zip(found) {
        if let Some(priority) = found.get("priority") {
            settings.insert(format!("priority_{role}"), priority.clone());
        }
    }
    settings
}

/// Returns the measurements of a probe's test; `None`, and the test is skipped, if this machine
/// does not let it run real-time threads on its first CPU.
///
/// # Panics
/// Panics for any other reason.
#[cfg(test)]
#[track_caller]
pub fn measured<T>(result: Result<T, Reason>) -> Option<T> {
    let skipped = |reason: Reason| {
        let text = reason.to_string();
        let is_refused = matches!(reason, Reason::Refused { .. } | Reason::NoMemoryLock { .. })
            || text.contains("cannot bind");
        assert!(is_refused, "{text}");
        punctual_skip::skip(&text);
    };
    result.map_err(skipped).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn from_the_first_cpu_to_each_and_back() {
        let cpus = sched::affinity().unwrap();
        let found = pairs(&[]).unwrap();
        assert_eq!(found.len(), 2 * cpus.len() - 1);
        assert_eq!(found[0], (cpus[0], cpus[0]));
        assert!(
            found
                .iter()
                .all(|(from, to)| [from, to].contains(&&cpus[0]))
        );
        let named = [(CpuId(3), CpuId(2))];
        assert_eq!(pairs(&named).unwrap(), named);
    }

    #[test]
    fn either_all_threads_run_or_none_does_and_there_is_a_reason() {
        let ran = AtomicU32::new(0);
        let member =
            |priority| ThreadSpec::new(priority, || _ = ran.fetch_add(1, Ordering::SeqCst));
        match run(CpuId(0), (1..=3).map(member).collect()) {
            Ok(settings) => {
                let found = settings.iter().map(|s| s["priority"].number().unwrap());
                assert_eq!(found.collect::<Vec<_>>(), [1, 2, 3]);
                assert_eq!(ran.load(Ordering::SeqCst), 3);
            }
            refused => {
                assert_eq!(ran.load(Ordering::SeqCst), 0);
                measured(refused);
            }
        }
        // A CPU that there cannot be: nobody is prepared, and nobody waits for ever.
        let before = ran.load(Ordering::SeqCst);
        let reason = run(CpuId(1_000_000), vec![member(1), member(2)]).unwrap_err();
        assert!(reason.to_string().contains("cpu1000000"), "{reason}");
        assert_eq!(ran.load(Ordering::SeqCst), before);
    }
}
