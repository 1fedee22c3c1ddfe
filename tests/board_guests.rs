// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boards that are guests of QEMU: their connections are killed and their power is pulled at random
//! moments. Nothing is lost except what was not yet reported, and all settings are restored.
//!
//! `PUNCTUAL_KILLS` is the number of times that the connection of each is killed, and
//! `PUNCTUAL_POWER_CUTS` the number of times that its power is pulled; `PUNCTUAL_KILLS_SEED`
//! repeats the seed that a failure names. Nothing here asserts any duration.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use punctual_bench::Processor;
use punctual_model::frame::Decoder;
use punctual_model::run::State;
use punctual_model::{Architecture, MachineRecord, Record, Recording, Run};
use punctual_store::Store;
use punctual_tests::board::{self, Board, DIRECTORY};
use punctual_tests::{Ended, Scratch, assert_has, descendants, is_alive, number, until};
use rustix::process::{Pid, Signal, kill_process};

/// The setting that `tick` changes while it measures.
const SETTING: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// The number of samples of a run that is to end by itself, one each millisecond.
const SAMPLES: u64 = 8_000;

/// More samples than any run here takes.
const ENDLESS: u64 = 1_800_000;

#[test]
fn a_pc_loses_nothing() {
    loses_nothing(Architecture::Amd64.into(), 5, 3);
}

#[test]
fn an_arm64_board_loses_nothing() {
    if punctual_skip::long("PUNCTUAL_LONG") {
        loses_nothing(Architecture::Arm64.into(), 5, 3);
    }
}

#[test]
fn a_riscv64_board_loses_nothing() {
    if punctual_skip::long("PUNCTUAL_LONG") {
        loses_nothing(Processor::Riscv64, 5, 3);
    }
}

/// Kills the connection and pulls the power again and again: `kills` and `cuts` times, unless the
/// environment says otherwise.
fn loses_nothing(processor: Processor, kills: u64, cuts: u64) {
    let Some(mut board) = Board::new(processor) else {
        return;
    };
    let seed = number("PUNCTUAL_KILLS_SEED", fastrand::u64(..1_000_000));
    println!("PUNCTUAL_KILLS_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    is_measured_as_this_machine(&board, processor);
    // One of them is enough.
    if processor == Architecture::Amd64.into() {
        has_no_headers(&board);
    }
    kill_connections(&board, &mut rng, number("PUNCTUAL_KILLS", kills));
    for cut in 1..=number("PUNCTUAL_POWER_CUTS", cuts) {
        pull_power(&mut board, &mut rng, cut);
    }
}

/// A suite of `tick` steps, which leave a CPU to the network, and then `timer`.
fn suite(board: &Board, ticks: usize, tick_ms: u64, samples: u64) -> String {
    // QEMU takes longer than a microsecond to read the clock.
    let tick = format!(
        "[[step]]\nprobe = \"tick\"\ncpu = 1\nduration_ms = {tick_ms}\n\
         threshold_ns = 100000\n"
    );
    let tick = tick.repeat(ticks);
    let timer = format!(
        "[[step]]\nprobe = \"timer\"\nsamples = {samples}\ninterval_us = 1000\ncpus = [0]\n"
    );
    let head = "name = \"board\"\nsummary = \"a setting, and samples\"\n";
    let text = format!("{head}{tick}{timer}");
    board
        .scratch
        .file(&format!("{ticks}-{tick_ms}-{samples}.toml"), text)
}

/// Begins `punctual run` on the board; the results so far are reported each second.
fn begin(board: &Board, suite: &str, seed: u64, more: &[&str]) -> Child {
    let (bench, seed) = (Board::bench(), seed.to_string());
    let fixed = ["run", suite, "--quiet", "--bench", &bench, "--seed", &seed];
    // However long it takes to boot.
    let patient = ["--store-every", "1", "--patience", "3600"];
    let mut command = board.punctual(&[&fixed[..], &patient, more].concat());
    let stderr = File::create(board.scratch.path("stderr")).unwrap();
    command.stdout(Stdio::null()).stderr(stderr);
    command.process_group(0).spawn().unwrap()
}

fn stderr(board: &Board) -> String {
    fs::read_to_string(board.scratch.path("stderr")).unwrap_or_default()
}

/// Waits for the end of a run.
fn end_of(child: &mut Child) -> ExitStatus {
    let mut status = None;
    until("the run ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap()
}

/// Waits for the end of a run, at most for `wait`.
fn has_ended(child: &mut Child, wait: Duration) -> Option<ExitStatus> {
    let until = Instant::now() + wait;
    loop {
        let status = child.try_wait().unwrap();
        if status.is_some() || Instant::now() >= until {
            return status;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The runs of this seed, the oldest first.
fn runs_of(board: &Board, seed: u64) -> Vec<Run> {
    let store = Store::open(&board.scratch.path("data/punctual/runs.db")).unwrap();
    let mut runs = store.list().unwrap();
    runs.retain(|run| run.seed == seed);
    runs.sort_by_key(|run| run.id[1..].parse::<u64>().unwrap());
    runs.iter()
        .map(|run| store.load(&run.id).unwrap())
        .collect()
}

fn timer(run: &Run) -> Option<&Recording> {
    run.recordings.iter().find(|one| one.key.probe == "timer")
}

/// Checks that each sample of a run was taken, and is stored once.
fn assert_whole(run: &Run) {
    assert_eq!(run.state, State::Finished, "{:?}", run.error);
    let timer = timer(run).expect("it was measured");
    assert_eq!(timer.count, SAMPLES);
    assert_eq!(timer.samples.len() as u64, SAMPLES, "each is kept");
    assert!(!timer.interrupted);
    let measured = run.recordings.iter().any(|one| one.key.probe == "tick");
    assert!(measured || run.unsupported.len() == 1, "{run:?}");
}

/// Returns true if a run got to its end. On a busy machine QEMU's ticks come in crowds, and `tick`
/// may refuse them.
fn is_over(status: ExitStatus) -> bool {
    matches!(status.code(), Some(0 | 3))
}

fn setting(board: &Board) -> String {
    board.answer(&format!("cat {SETTING}"))
}

/// The content of the target's directory there.
fn left(board: &Board) -> Vec<String> {
    let names = board.answer(&format!("ls {DIRECTORY}"));
    names.lines().map(str::to_owned).collect()
}

fn assert_clean(board: &Board) {
    let left = left(board);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].starts_with("target-"), "{left:?}");
}

fn is_measured_as_this_machine(board: &Board, processor: Processor) {
    let before = setting(board);
    let suite = suite(board, 1, 100, SAMPLES);
    let mut child = begin(board, &suite, 1, &[]);
    assert!(is_over(end_of(&mut child)), "{}", stderr(board));
    let run = runs_of(board, 1).remove(0);
    assert_whole(&run);
    assert_eq!(setting(board), before);
    assert_clean(board);
    let MachineRecord::Host(machine) = &run.machine else {
        panic!("{:?}", run.machine);
    };
    let target = fs::read(board::target(processor)).unwrap();
    let target = punctual_model::digest::sha256(&target);
    assert_eq!(machine.target_sha256, Some(target));
    let system = board.answer("uname -m; uname -r");
    assert_eq!(
        system,
        format!("{}\n{}\n", processor.uname(), run.subject.kernel)
    );
    assert_eq!(shape(&run), shape(&run_here(&suite)));
}

/// A probe that needs a kernel module is unsupported, with the reason why there is none.
fn has_no_headers(board: &Board) {
    let bench = Board::bench();
    let measure = |more: &[&str]| {
        let fixed = ["run", "--probe", "signal", "-p", "samples=10", "--bench"];
        let ended = Ended::of(&mut board.punctual(&[&fixed[..], &[&*bench], more].concat()));
        assert_eq!(ended.status, Some(3), "{}", ended.stderr);
        ended
    };
    assert_has(&measure(&[]).stdout, &["--build-modules has it built"]);
    let asked = measure(&["--build-modules", "--json"]);
    let said = ["no kernel module backfire", "linux-headers-"];
    assert_has(&asked.stderr, &said);
    assert_has(&asked.stdout, &["there are no headers of its kernel"]);
    assert_clean(board);
}

/// The same suite, measured on this machine.
fn run_here(suite: &str) -> Run {
    let scratch = Scratch::new();
    until("nobody else measures on this machine", || {
        let ended = scratch.run(&["run", suite, "--quiet", "--bench", "host"]);
        let is_busy = ended.stderr.contains("another run");
        assert!(
            is_busy || matches!(ended.status, Some(0 | 3)),
            "{}",
            ended.stderr
        );
        !is_busy
    });
    let store = Store::open(&scratch.path("data/punctual/runs.db")).unwrap();
    let id = store.list().unwrap().remove(0).id;
    store.load(&id).unwrap()
}

/// The structure of a run's results, without their values.
fn shape(run: &Run) -> Vec<String> {
    let facts = run.provenance.as_ref().expect("it was told").facts.keys();
    let facts = facts.map(|name| format!("fact {name}"));
    // What a tick is on several kernels, and whether others took time as well, differs.
    let timers = run.recordings.iter().filter(|one| one.key.probe == "timer");
    let timers = timers.flat_map(|one| {
        let settings = one.settings.keys().map(|name| format!("setting {name}"));
        settings.chain([one.title()])
    });
    facts.chain(timers).collect()
}

/// The process to kill.
#[derive(Clone, Copy, Debug)]
enum Victim {
    /// The client of `ssh`.
    Client,
    /// The server's processes for its connections.
    Server,
    /// `punctual` itself.
    Workstation,
}

const VICTIMS: [Victim; 3] = [Victim::Client, Victim::Server, Victim::Workstation];

impl Victim {
    /// Kills the victim, and returns how many processes that hit: they may have ended by
    /// themselves.
    fn kill(self, board: &Board, punctual: u32) -> u64 {
        let below = descendants(punctual);
        let clients = below.iter().filter(|(_, name)| name == "ssh");
        match self {
            Self::Client => clients.map(|(pid, _)| kill(*pid)).sum(),
            Self::Server => board.kill_sessions(),
            Self::Workstation => kill(punctual),
        }
    }
}

fn kill(pid: u32) -> u64 {
    let met =
        is_alive(pid) && kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).is_ok();
    met.into()
}

fn kill_connections(board: &Board, rng: &mut Rng, wanted: u64) {
    let suite = suite(board, 1, 1_000, SAMPLES);
    let before = setting(board);
    let mut kills = 0;
    for seed in 2.. {
        if kills >= wanted {
            break;
        }
        if rng.bool() {
            // It is copied again, and that may be cut off, too.
            board.answer(&format!("rm -rf {DIRECTORY}"));
        }
        let killed = measure_and_kill(board, &suite, rng, seed, wanted - kills);
        kills += killed.len() as u64;
        println!("{kills} of {wanted} connections killed: {killed:?}");
        let runs = runs_of(board, seed);
        let mut finished = runs.iter().filter(|run| run.state == State::Finished);
        assert_whole(finished.next().expect("it is fetched"));
        assert!(finished.next().is_none(), "it is fetched once");
        assert_eq!(setting(board), before);
        // One that is killed when all is stored removes nothing any more.
        let removes = |victim: &Victim| !matches!(victim, Victim::Workstation);
        if killed.iter().all(removes) {
            assert_clean(board);
        }
        board.answer(&format!("rm -rf {DIRECTORY}/jobs"));
    }
}

/// Makes one measurement, which is fetched in the end whichever victims are killed meanwhile;
/// returns those.
fn measure_and_kill(
    board: &Board,
    suite: &str,
    rng: &mut Rng,
    seed: u64,
    wanted: u64,
) -> Vec<Victim> {
    let (mut killed, mut jobs) = (Vec::new(), BTreeSet::new());
    let mut child = begin(board, suite, seed, &[]);
    let mut attempts = 1;
    loop {
        let wait = Duration::from_millis(rng.u64(0..4_000));
        match has_ended(&mut child, wait) {
            Some(status) if is_over(status) => {
                // Another one would measure anew what the first has measured.
                assert!(jobs.len() <= 1, "{jobs:?}: {killed:?}");
                return killed;
            }
            Some(_) => {
                assert!(attempts < 300, "never fetched: {}", stderr(board));
                attempts += 1;
                child = begin(board, suite, seed, &["--resume"]);
            }
            None => {
                let names = board.answer(&format!("ls {DIRECTORY}/jobs || true"));
                jobs.extend(names.lines().map(str::to_owned));
                // Few before the job is begun: else it hardly ever would be.
                let is_due = !names.is_empty() || rng.u8(..4) == 0;
                let victim = VICTIMS[rng.usize(..VICTIMS.len())];
                let is_wanted = is_due && (killed.len() as u64) < wanted;
                if is_wanted && victim.kill(board, child.id()) > 0 {
                    killed.push(victim);
                }
            }
        }
    }
}

/// The moment at which the power is pulled.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// While the workstation fetches.
    Fetched,
    /// While the workstation is gone.
    Alone,
    /// While a setting is changed.
    Changed,
}

const MOMENTS: [Moment; 3] = [Moment::Alone, Moment::Changed, Moment::Fetched];

fn pull_power(board: &mut Board, rng: &mut Rng, cut: u64) {
    let moment = MOMENTS[cut as usize % MOMENTS.len()];
    let before = setting(board);
    let seed = 1_000_000 + cut;
    let suite = match moment {
        Moment::Changed => suite(board, 6, 10_000, ENDLESS),
        Moment::Alone | Moment::Fetched => suite(board, 1, 100, ENDLESS),
    };
    let mut child = begin(board, &suite, seed, &[]);
    until("a job has begun", || {
        assert!(child.try_wait().unwrap().is_none(), "{}", stderr(board));
        stream(board).is_some_and(|stream| !stream.is_empty())
    });
    if matches!(moment, Moment::Alone) {
        kill(child.id());
        child.wait().unwrap();
    }
    let known = if matches!(moment, Moment::Changed) {
        wait_for_change(board, before.trim());
        [0, 0]
    } else {
        let tellings = rng.u64(1..4);
        let known = watch(board, tellings);
        thread::sleep(Duration::from_millis(rng.u64(0..2_000)));
        known
    };
    board.pull_power();
    if matches!(moment, Moment::Changed) {
        kill(child.id());
        child.wait().unwrap();
    }
    board.switch_on();
    assert_eq!(setting(board), before, "{moment:?}");
    let fetched = if matches!(moment, Moment::Fetched) {
        let status = end_of(&mut child);
        assert_eq!(status.code(), Some(1), "{}", stderr(board));
        assert_fetched(board, seed)
    } else {
        resume(board, &suite, seed)
    };
    println!("cut {cut}, {moment:?}: {fetched} samples are there, {known:?} were seen before");
    assert!(fetched >= known[0], "{fetched} samples of {known:?}");
    assert_clean(board);
}

/// Fetches what is on the disk of a board that has lost its power; returns the number of samples of
/// `timer`.
fn resume(board: &Board, suite: &str, seed: u64) -> u64 {
    let on_disk = told(&stream(board).expect("the job is on the disk"));
    let mut resumed = begin(board, suite, seed, &["--resume"]);
    let status = end_of(&mut resumed);
    assert_eq!(status.code(), Some(1), "{}", stderr(board));
    let fetched = assert_fetched(board, seed);
    assert_eq!(fetched, on_disk);
    fetched
}

/// Checks that the last run of this seed says why it was not finished; returns the number of its
/// `timer` samples.
fn assert_fetched(board: &Board, seed: u64) -> u64 {
    let run = runs_of(board, seed).pop().expect("it is stored");
    assert_eq!(run.state, State::Failed);
    let why = run.error.as_deref().unwrap_or_default();
    let known = ["its machine was restarted", "it was cut off"];
    assert!(known.iter().any(|known| why.contains(known)), "{why}");
    timer(&run).map_or(0, |timer| timer.count)
}

/// Waits, on the board itself, until the setting has changed.
fn wait_for_change(board: &Board, before: &str) {
    let script = format!(
        "n=0; while [ $n -lt 600 ] && [ \"$(cat {SETTING})\" = {before} ]; do \
         sleep 0.1; n=$((n + 1)); done; cat {SETTING}"
    );
    assert_has(&board.answer(&script), &["-1"]);
}

/// The output of the only job there, if it was begun.
fn stream(board: &Board) -> Option<Vec<u8>> {
    board.bytes(&format!("cat {DIRECTORY}/jobs/*/stream"))
}

/// The number of `timer` samples in a stream.
fn told(stream: &[u8]) -> u64 {
    let mut decoder = Decoder::default();
    decoder.feed(stream);
    let mut count = 0;
    while let Some(record) = decoder.next_record().unwrap() {
        match record {
            Record::SoFar(recording) if recording.key.probe == "timer" => count = recording.count,
            _ => {}
        }
    }
    count
}

/// Waits for a number of further reports. Returns the samples of the last but one, which was
/// written before the last one was begun, and of the last.
fn watch(board: &Board, tellings: u64) -> [u64; 2] {
    let mut seen = [0, 0];
    for _ in 0..=tellings {
        let mut now = 0;
        until("more is told", || {
            now = stream(board).map_or(0, |stream| told(&stream));
            now > seen[1]
        });
        seen = [seen[1], now];
    }
    seen
}
