// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code that the tests share: the built programs, in a scratch directory of their own.
//!
//! The programs are those that `./build` makes, not those of `cargo test`: the guest needs the
//! static target, and determinism is a property of the shipped programs. Kernels and booted guests
//! come from the user's cache, so that each is fetched or booted only once.
#![forbid(unsafe_code)]

pub mod board;
pub mod cutter;
pub mod explained;
pub mod kernel;
pub mod linux;
pub mod long;
pub mod markdown;
pub mod originals;
pub mod schema;
pub mod served;
pub mod server;

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// The kernels that the tests run.
pub const KERNELS: [&str; 2] = ["debian-6.12", "debian-6.12-rt"];

/// A step for each probe but `program`, and `packet`, which needs a wire; each is as short as it
/// can be.
pub const EVERY_PROBE: &str = r#"
[[step]]
probe = "footprint"
[[step]]
probe = "kthreads"
[[step]]
probe = "clock"
[[step]]
probe = "tick"
duration_ms = 200
[[step]]
probe = "noise"
duration_ms = 100
[[step]]
probe = "timer"
samples = 100
[[step]]
probe = "realfeel"
samples = 100
[[step]]
probe = "signal"
samples = 100
load = "stress"
[[step]]
probe = "switch"
ticks = 2
[[step]]
probe = "irq"
samples = 100
[[step]]
probe = "irqrate"
burst_ms = 5
repeats = 1
[[step]]
probe = "semaphore"
ticks = 5
[[step]]
probe = "mutex"
ticks = 5
[[step]]
probe = "inversion"
[[step]]
probe = "eventfd"
samples = 100
[[step]]
probe = "wake"
samples = 10
[[step]]
probe = "migrate"
samples = 10
[[step]]
probe = "hackbench"
ipc = "socket"
groups = 1
loops = 5
[[step]]
probe = "image"
samples = 1
command = "as-published"
"#;

/// The load `spin` of a suite: a shell that prints lines, and never rests. Of what keeps a CPU busy
/// and goes through the kernel it is the cheapest to watch.
pub const SPIN: &str = r#"
[load.spin]
summary = "prints lines"
[[load.spin.worker]]
endless = true
unit = "lines"
count = "lines"
run = ["sh", "-c", "while :; do echo; done"]
"#;

/// A suite: its name, subjects of the suite `demo` by their names, and the rest of its text.
///
/// # Panics
/// If `demo` has no such subject.
pub fn suite(name: &str, subjects: &[&str], rest: &str) -> String {
    let subject = |name: &&str| {
        let (kernel, boot) = match *name {
            "none" | "voluntary" | "full" => (KERNELS[0], format!("preempt={name}")),
            "rt" => (KERNELS[1], String::new()),
            _ => panic!("expected none, voluntary, full or rt, found {name}"),
        };
        format!("[[subject]]\nname = \"{name}\"\nkernel = \"{kernel}\"\nboot = \"{boot}\"\n")
    };
    let subjects: String = subjects.iter().map(subject).collect();
    format!("name = \"{name}\"\nsummary = \"{name}\"\n{rest}\n{subjects}")
}

/// The directory of the built programs: those of `./build --tests`, or those of `./build` if the
/// tests are optimised, too (`cargo test --release`).
///
/// # Panics
/// If they are missing.
pub fn programs() -> PathBuf {
    let (built, order) = if cfg!(debug_assertions) {
        ("tests", "./build --tests")
    } else {
        ("release", "./build")
    };
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../target")
        .join(built);
    for program in ["punctual", "punctual-target", "punctual-wire"] {
        assert!(
            directory.join(program).is_file(),
            "{program} is not built: run {order}, or all tests by ./test"
        );
    }
    directory.canonicalize().expect("the directory is there")
}

/// Returns true if this machine has a QEMU for guests with several CPUs; if not, skips the test.
///
/// # Panics
/// If such a guest cannot be run for another reason.
pub fn has_fair_qemu() -> bool {
    static IS_FAIR: LazyLock<bool> = LazyLock::new(|| {
        let probe = ["--probe", "timer", "-p", "samples=1"];
        let guest = ["run", "--quiet", "--cpus", "2", "--kernel", KERNELS[1]];
        let ended = Scratch::new().run(&[&guest[..], &probe].concat());
        let is_unfair = ended.stderr.contains("expected QEMU 8.1");
        assert!(is_unfair || ended.status == Some(0), "{}", ended.stderr);
        !is_unfair
    });
    if !*IS_FAIR {
        punctual_skip::skip("no QEMU from 8.1 on");
    }
    *IS_FAIR
}

/// What a run could not measure, without a `tick` whose probe refused it: in some seeds it finds a
/// tick more than the kernel's counter has.
///
/// # Panics
/// If it is no run.
pub fn lacking(run: &Value) -> Vec<&Value> {
    let is_lacking = |one: &&Value| {
        let reason = one["reason"].to_string();
        one["probe"] != "tick" || !reason.contains("the kernel's counter does not agree")
    };
    let all = run["unsupported"].as_array().expect("a list");
    all.iter().filter(is_lacking).collect()
}

/// The store in a scratch directory.
const STORE: &str = "data/punctual/runs.db";

/// A scratch directory with its own runs.
#[derive(Debug)]
pub struct Scratch {
    directory: TempDir,
    cache: Option<PathBuf>,
    path: OsString,
}

impl Scratch {
    /// A new one, which uses the user's cache.
    ///
    /// # Panics
    /// If there is no temporary directory.
    #[expect(clippy::new_without_default, reason = "it makes a directory")]
    pub fn new() -> Self {
        Self {
            directory: TempDir::new().expect("a temporary directory"),
            cache: None,
            path: std::env::var_os("PATH").unwrap_or_default(),
        }
    }

    /// A new one with a cache of its own, which holds only the kernels.
    ///
    /// # Panics
    /// If the kernels are not in the user's cache.
    pub fn with_new_cache() -> Self {
        let scratch = Self::new();
        let cache = scratch.path("cache");
        for kernel in KERNELS {
            let from = user_cache().join("punctual/kernels").join(kernel);
            let to = cache.join("punctual/kernels").join(kernel);
            fs::create_dir_all(&to).expect("a directory");
            for entry in fs::read_dir(from).expect("./test fetches the kernels") {
                let path = entry.expect("an entry").path();
                if path.is_file() {
                    fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("a copy");
                }
            }
        }
        Self {
            cache: Some(cache),
            ..scratch
        }
    }

    /// A new one with kernels of its own, which are at first those of the tests. Booted guests are
    /// in the user's cache all the same, so that those of the tests' kernels need not boot again.
    ///
    /// # Panics
    /// If the kernels are not in the user's cache, or it cannot be written to.
    pub fn with_own_kernels() -> Self {
        let scratch = Self::with_new_cache();
        let (own, users) = (
            scratch.path("cache/punctual"),
            user_cache().join("punctual"),
        );
        let lock = "prune.lock";
        let file = File::options()
            .create(true)
            .append(true)
            .open(users.join(lock));
        file.expect("the lock of the cache");
        let directories = ["initramfs", "snapshots", "symbols", "work"];
        for name in directories {
            fs::create_dir_all(users.join(name)).expect("a directory of the cache");
        }
        for name in directories.into_iter().chain([lock]) {
            symlink(users.join(name), own.join(name)).expect("a link to the cache");
        }
        scratch
    }

    /// Makes this directory the first in which programs are looked for.
    ///
    /// # Panics
    /// If there is a colon in its name.
    pub fn look_first_in(&mut self, directory: &Path) {
        let others: Vec<_> = std::env::split_paths(&self.path).collect();
        let all = std::iter::once(directory.to_owned()).chain(others);
        self.path = std::env::join_paths(all).expect("no colon");
    }

    /// A path in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file in the directory; returns its path as a word for a command line.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, content).expect("a file in the scratch directory");
        path.to_str().expect("a path in UTF-8").to_owned()
    }

    /// Writes a suite, made by [`suite`]; returns its path as a word for a command line.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn suite(&self, name: &str, subjects: &[&str], rest: &str) -> String {
        self.file(&format!("{name}.toml"), suite(name, subjects, rest))
    }

    /// `punctual` with these arguments.
    pub fn punctual(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(programs().join("punctual"));
        self.prepare(&mut command);
        command.args(arguments);
        command
    }

    /// Makes a command keep its runs in the scratch directory.
    pub fn prepare(&self, command: &mut Command) {
        command
            .env("PATH", &self.path)
            .env("XDG_DATA_HOME", self.path("data"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env_remove("PUNCTUAL_DB")
            .stdin(Stdio::null());
        if let Some(cache) = &self.cache {
            command.env("XDG_CACHE_HOME", cache);
        }
    }

    /// Runs `punctual` to its end.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn run(&self, arguments: &[&str]) -> Ended {
        Ended::of(&mut self.punctual(arguments))
    }

    /// All runs of the scratch directory, for others that [begin with them](Self::begin_with).
    ///
    /// # Panics
    /// If there are none.
    pub fn all_runs(&self) -> Vec<u8> {
        fs::read(self.path(STORE)).expect("a store")
    }

    /// Begins with the runs of another scratch directory, in place of none: what several tests
    /// begin with is measured once.
    ///
    /// # Panics
    /// If they cannot be written.
    pub fn begin_with(&self, all_runs: &[u8]) {
        let store = self.path(STORE);
        fs::create_dir_all(store.parent().expect("a directory")).expect("a directory");
        fs::write(store, all_runs).expect("a store");
    }

    /// Runs `punctual run … --json`, which must succeed, and returns its runs.
    ///
    /// # Panics
    /// If it does not.
    pub fn measure(&self, arguments: &[&str]) -> Vec<Value> {
        let ended = self.run(&[&["run", "--quiet", "--json", "--raw"], arguments].concat());
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        runs(&ended.stdout)
    }

    /// Like [`measure`](Self::measure), of runs that may lack a `tick` as [`lacking`] says.
    ///
    /// # Panics
    /// If they lack anything else.
    pub fn measure_all_but_ticks(&self, arguments: &[&str]) -> Vec<Value> {
        let ended = self.run(&[&["run", "--quiet", "--json", "--raw"], arguments].concat());
        let is_ended = [Some(0), Some(3)].contains(&ended.status);
        assert!(is_ended, "{:?}: {}", ended.status, ended.stderr);
        let runs = runs(&ended.stdout);
        let is_whole = ended.status == Some(0) || runs.iter().all(|run| lacking(run).is_empty());
        assert!(is_whole, "{}", ended.stderr);
        runs
    }
}

/// The user's cache directory.
///
/// # Panics
/// If there is no home.
pub fn user_cache() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").expect("HOME")).join(".cache");
    std::env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from)
}

/// The runs in the output of `--json`.
///
/// # Panics
/// If it is not JSON of that form.
pub fn runs(json: &str) -> Vec<Value> {
    let value: Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(value["schema"], "punctual.run/2");
    value["runs"].as_array().expect("a list").clone()
}

/// A finding of a recording that is a number: a count, or nanoseconds.
///
/// # Panics
/// If it has no such finding.
pub fn finding(recording: &Value, name: &str) -> i64 {
    let found = &recording["findings"][name];
    let number = found["count"].as_i64().or_else(|| found["nanos"].as_i64());
    number.unwrap_or_else(|| panic!("no number {name}: {recording}"))
}

/// The digests of runs, by subject.
///
/// # Panics
/// If a run has none.
pub fn digests(runs: &[Value]) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().expect("text").to_owned();
    let both = |run: &Value| (word(&run["subject"]["name"]), word(&run["digest"]));
    runs.iter().map(both).collect()
}

/// Fails unless a text has all of these parts.
///
/// # Panics
/// If it lacks one.
#[track_caller]
pub fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "there is no \"{part}\" in {text}");
    }
}

/// The output of a program, as JSON.
///
/// # Panics
/// If it is not JSON.
#[track_caller]
pub fn json(ended: &Ended) -> Value {
    let text = &ended.stdout;
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}{}", ended.stderr))
}

/// Fails unless a program ended with this status and printed these parts, wherever its lines break.
///
/// # Panics
/// If it did not.
#[track_caller]
pub fn assert_ends(ended: &Ended, status: i32, parts: &[&str]) {
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.status, Some(status), "{said}");
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_has(&flat, parts);
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit status; `None` if a signal ended it.
    pub status: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Ended {
    /// Runs a command to its end.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn of(command: &mut Command) -> Self {
        command.output().expect("the program can be started").into()
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Works in bursts until it is dropped: a program beside it is interrupted again and again, by each
/// of three, and still has most of the time.
#[derive(Debug)]
pub struct HostLoad {
    busy: Vec<Child>,
}

impl HostLoad {
    /// Begins the load.
    ///
    /// # Panics
    /// If there is no `sh`.
    #[expect(clippy::new_without_default, reason = "it starts processes")]
    pub fn new() -> Self {
        // Not for longer than there is whoever started them, however that ends.
        let burst = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let bursts = format!("while kill -0 $PPID; do {burst}; sleep 0.1; done");
        let begin = || {
            Command::new("sh")
                .args(["-c", &bursts])
                .stderr(Stdio::null())
                .spawn()
        };
        let busy = (0..3).map(|_| begin().expect("sh")).collect();
        Self { busy }
    }
}

impl Drop for HostLoad {
    fn drop(&mut self) {
        for child in &mut self.busy {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The number of repetitions: the one in the environment, or `otherwise` if the variable is not
/// set.
///
/// # Panics
/// If it is not a number.
pub fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// Returns `small`, or `full` with `PUNCTUAL_LONG=1`. Lists the test if it was small.
///
/// # Panics
/// If it cannot be listed.
pub fn sized<T>(small: T, full: T) -> T {
    if punctual_skip::long("PUNCTUAL_LONG") {
        full
    } else {
        small
    }
}

/// Interrupts measurements until one has kept samples. The time that this takes depends on the
/// machine, so each is left alone for longer than the one before. `interrupt` gets the
/// measurement's number, from 0, and that time, and returns its run.
///
/// # Panics
/// If a run is not reported as interrupted, or none has kept samples.
pub fn until_samples_are_kept(mut interrupt: impl FnMut(usize, Duration) -> Value) {
    for (number, seconds) in [1, 4, 16, 64].into_iter().enumerate() {
        let run = interrupt(number, Duration::from_secs(seconds));
        assert_eq!(run["state"], "interrupted");
        if let Some(recording) = run["recordings"].get(0) {
            assert!(recording["count"].as_u64() > Some(0));
            return;
        }
    }
    panic!("nothing was ever kept");
}

/// Waits until a condition holds, however slow the machine.
///
/// # Panics
/// If it still does not hold after ten minutes of waiting: `what` was expected.
pub fn until(what: &str, is_so: impl FnMut() -> bool) {
    assert!(is_soon(is_so), "{what}: not within ten minutes");
}

/// Waits for ten minutes at most until a condition holds; returns true if it does.
pub fn is_soon(mut is_so: impl FnMut() -> bool) -> bool {
    const PAUSE: Duration = Duration::from_millis(20);
    for _ in 0..30_000 {
        if is_so() {
            return true;
        }
        thread::sleep(PAUSE);
    }
    false
}

/// The processes below `pid` whose name begins with `qemu`.
pub fn qemus_of(pid: u32) -> Vec<u32> {
    let below = descendants(pid).into_iter();
    below
        .filter(|(_, name)| name.starts_with("qemu"))
        .map(|(pid, _)| pid)
        .collect()
}

/// All processes below `pid`, with their names.
pub fn descendants(pid: u32) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for child in children(pid) {
        let name = fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
        found.push((child, name.trim().to_owned()));
        found.extend(descendants(child));
    }
    found
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let lists = threads
        .flatten()
        .map(|thread| fs::read_to_string(thread.path().join("children")));
    lists
        .flatten()
        .flat_map(|list| {
            list.split_whitespace()
                .flat_map(str::parse)
                .collect::<Vec<u32>>()
        })
        .collect()
}

/// Returns true if a process exists and has not ended. The first thread of a process that becomes
/// another program ends before the others do.
pub fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Field 2 is the name, in parentheses; 3 is the state, 20 the number of threads.
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let has_ended = |state: &str| state == "Z" && fields.get(17).is_none_or(|n| *n == "1");
    fields.first().is_some_and(|state| !has_ended(state))
}
