// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kills whichever process at whatever moment: nothing is lost, and nothing is left behind.
//!
//! Three runs side by side use one store and one cache. At random moments two of them are killed,
//! or their QEMUs are. `PUNCTUAL_KILLS` is the number of kills, 30 by default; each round has two.
//! `PUNCTUAL_KILLS_SEED` repeats the seed that a failure names.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use punctual_model::run::State;
use punctual_model::{Recording, Run};
use punctual_store::Store;
use punctual_tests::{Scratch, is_soon, number, qemus_of, until};
use rustix::process::{Pid, Signal, kill_process};

const SUITE: &str = r#"
[[step]]
probe = "timer"
samples = 20
[[step]]
probe = "timer"
load = "ls-recursive"
samples = 40
"#;

/// The number of rounds after which the runs must make their snapshot anew.
const BOOT_EVERY: u64 = 10;

#[derive(Clone, Copy, Debug)]
enum Victim {
    Punctual(Signal),
    Qemu(Signal),
}

const VICTIMS: [Victim; 5] = [
    Victim::Punctual(Signal::KILL),
    Victim::Punctual(Signal::TERM),
    Victim::Punctual(Signal::INT),
    Victim::Qemu(Signal::KILL),
    Victim::Qemu(Signal::TERM),
];

/// The data that all runs share, and the samples that they should measure.
struct Bench {
    scratch: Scratch,
    suite: String,
    store: Store,
    expected: Run,
    /// The duration of an undisturbed run on this machine, under its present load.
    takes: Duration,
}

impl Bench {
    fn new() -> Self {
        let scratch = Scratch::with_new_cache();
        let suite = scratch.suite("short", &["rt"], SUITE);
        scratch.measure(&[&suite]);
        let begun = Instant::now();
        scratch.measure(&[&suite]);
        let takes = begun.elapsed();
        let store = Store::open(&scratch.path("data/punctual/runs.db")).expect("the store");
        let expected = store.load("r1").expect("the first run");
        assert!(expected.digest().is_some());
        assert_eq!(
            store.load("r2").expect("the second run").digest(),
            expected.digest()
        );
        Self {
            scratch,
            suite,
            store,
            expected,
            takes,
        }
    }

    fn cache(&self, name: &str) -> std::path::PathBuf {
        self.scratch.path("cache/punctual").join(name)
    }

    fn begin(&self) -> Child {
        let mut command = self.scratch.punctual(&["run", "--quiet", &self.suite]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.process_group(0).spawn().expect("punctual starts")
    }

    /// Kills two of three runs, each with its own signal, after its own share of a run. Returns how
    /// many were there to be killed, and how long all took.
    fn round(&self, kills: [(Victim, f64); 2]) -> (u64, Duration) {
        let before = self.ids();
        let takes = self.takes;
        let begun = Instant::now();
        let (killed, mut other) = ([self.begin(), self.begin()], self.begin());
        let ended = thread::scope(|scope| {
            let pairs = killed.into_iter().zip(kills);
            let threads = pairs.map(|(mut run, (victim, share))| {
                scope.spawn(move || {
                    let was_there = kill(&run, victim, takes.mul_f64(share));
                    (was_there, run.wait().expect("it ends"))
                })
            });
            let threads: Vec<_> = threads.collect();
            let ended = threads.into_iter().map(|one| one.join().expect("no panic"));
            ended.collect::<Vec<_>>()
        });
        let other = other.wait().expect("it ends");
        let took = begun.elapsed();
        assert_eq!(other.code(), Some(0), "the other run goes on");
        until("no QEMU is left", || processes_in(&self.cache("work")) == 0);
        let mut new = self.ids();
        new.retain(|id| !before.contains(id));
        let runs: Vec<Run> = new.iter().map(|id| self.sound(id)).collect();
        let finished = runs
            .iter()
            .filter(|run| run.state == State::Finished)
            .count();
        assert!(runs.len() <= 3, "{new:?}");
        let well = ended.iter().filter(|(_, one)| one.code() == Some(0));
        let expected = 1 + well.count();
        assert!(finished >= expected, "{finished} of {new:?}, {ended:?}");
        let were_there = ended.iter().filter(|(was_there, _)| *was_there).count();
        (were_there as u64, took)
    }

    fn ids(&self) -> Vec<String> {
        let runs = self.store.list().expect("the store can be read");
        runs.into_iter().map(|run| run.id).collect()
    }

    /// Checks a run of the store: it has all that was measured, or the first part of it and no
    /// digest.
    fn sound(&self, id: &str) -> Run {
        let run = self.store.load(id).expect("the run can be read");
        let recordings = &self.expected.recordings;
        match run.state {
            State::Finished => assert_eq!(run.digest(), self.expected.digest(), "{id}"),
            State::Interrupted | State::Failed => {
                assert_eq!(run.digest(), None, "{id}");
                assert!(run.error.is_some(), "{id} says why");
                let had = run.recordings.len();
                assert!(had <= recordings.len(), "{id}");
                for (found, expected) in run.recordings.iter().zip(recordings) {
                    let state = (run.state, found.interrupted, found.count, expected.count);
                    let differs = found.samples.iter().zip(expected.samples.iter());
                    let differs = differs.into_iter().find(|(one, other)| one != other);
                    assert!(
                        is_part(found, expected),
                        "{id}: {}: {state:?}, {differs:?}",
                        found.title()
                    );
                }
            }
            State::Running => panic!("{id} runs, and nobody is left"),
        }
        run
    }

    /// Makes one more run, undisturbed: it measures the same as the first, and clears away what
    /// others left.
    fn undisturbed(&self) {
        let status = self.begin().wait().expect("it ends");
        assert_eq!(status.code(), Some(0));
        let newest = self.ids().remove(0);
        assert_eq!(self.sound(&newest).state, State::Finished);
        let left = fs::read_dir(self.cache("work")).expect("the directory");
        let left: Vec<_> = left
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert_eq!(left, ["lock"]);
    }
}

/// Returns true if a recording is the expected one, or its first samples after a request to end.
fn is_part(found: &Recording, expected: &Recording) -> bool {
    let mut samples = found.samples.iter().zip(expected.samples.iter());
    let first = found.interrupted
        && found.key == expected.key
        && found.count <= expected.count
        && samples.all(|(found, expected)| found == expected);
    found == expected || first
}

/// Waits, then kills; returns true if there was anything to kill.
fn kill(run: &Child, victim: Victim, wait: Duration) -> bool {
    let (pid, signal) = match victim {
        Victim::Punctual(signal) => {
            thread::sleep(wait);
            (Some(run.id()), signal)
        }
        Victim::Qemu(signal) => {
            is_soon(|| !qemus_of(run.id()).is_empty() || !punctual_tests::is_alive(run.id()));
            thread::sleep(wait / 2);
            (qemus_of(run.id()).first().copied(), signal)
        }
    };
    let pid = pid.filter(|pid| punctual_tests::is_alive(*pid));
    let pid = pid.and_then(|pid| Pid::from_raw(pid as i32));
    pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// The number of processes that work in a directory or below it.
fn processes_in(directory: &Path) -> usize {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let cwd = processes.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok());
    cwd.filter(|cwd| cwd.starts_with(directory)).count()
}

#[test]
fn kills_at_random_moments_lose_nothing_and_leave_nothing() {
    let kills = number("PUNCTUAL_KILLS", 30).next_multiple_of(2);
    let seed = number("PUNCTUAL_KILLS_SEED", fastrand::u64(..1_000_000));
    println!("PUNCTUAL_KILLS_SEED={seed}");
    let mut bench = Bench::new();
    let mut rng = Rng::with_seed(seed);
    let mut there = 0;
    for round in 1..=kills / 2 {
        let boots = round % BOOT_EVERY == 0;
        let both = [(); 2].map(|()| {
            let victim = VICTIMS[rng.usize(..VICTIMS.len())];
            (victim, rng.f64() * if boots { 4.8 } else { 1.2 })
        });
        if boots {
            fs::remove_dir_all(bench.cache("snapshots")).expect("snapshots");
        }
        println!("{round}: each after a share of a run: {both:?}");
        let (were_there, took) = bench.round(both);
        there += were_there;
        if !boots {
            bench.takes = took;
        }
    }
    bench.undisturbed();
    println!("{there} of {kills} kills met a run or its QEMU");
    assert!(
        there > kills / 3,
        "most kills came too late: {there} of {kills}"
    );
}
