// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host bench: this machine as it is, in real time, and left as it was.
//!
//! Nothing here asserts any duration. Most tests need root and change this machine's settings, such
//! as real-time throttling: they run if `PUNCTUAL_HOST_TESTS=1` allows it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use punctual_model::{Recorder, Recording, Sample};
use punctual_store::Store;
use punctual_tests::{
    Ended, Scratch, assert_has, descendants, finding, is_alive, is_soon, programs, runs, until,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const SUITE: &str = r#"
[[step]]
probe = "timer"
samples = 50
load = "busy"
[[step]]
probe = "hackbench"
ipc = "pipe"
groups = 1
loops = 5
[[step]]
probe = "tick"
duration_ms = 100
"#;

const LONG: &str = r#"
[[step]]
probe = "tick"
duration_ms = 10000
[[step]]
probe = "timer"
samples = 1000000000
load = "busy"
"#;

const BUSY: &str = r#"
summary = "a shell with a child of its own"
[[worker]]
run = ["sh", "-c", "sleep 1000 & yes"]
unit = "bytes"
count = "bytes"
"#;

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    let loads = scratch.path("config/punctual/loads");
    fs::create_dir_all(&loads).unwrap();
    fs::write(loads.join("busy.toml"), BUSY).unwrap();
    scratch
}

/// Locks the machine: there is only one, and one test at a time has it.
fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The machine for a test that changes its settings. `None` if that is not allowed; the test is
/// then skipped.
fn machine() -> Option<MutexGuard<'static, ()>> {
    punctual_skip::host().then(alone)
}

/// A command that may lock no more than 64 KiB of memory, whether root's or not.
fn without_locked_memory(program: &Path, scratch: &Scratch) -> Command {
    let mut command = Command::new("prlimit");
    command.arg("--memlock=65536:65536");
    if rustix::process::geteuid().is_root() {
        command.args([
            "setpriv",
            "--bounding-set=-ipc_lock",
            "--inh-caps=-ipc_lock",
        ]);
    }
    command.arg(program);
    scratch.prepare(&mut command);
    command
}

/// Every setting that a probe may change, with its present value.
fn settings() -> Vec<(String, String)> {
    let mut paths = vec![
        "/proc/sys/kernel/sched_rt_runtime_us".to_owned(),
        "/proc/sys/kernel/sched_rt_period_us".to_owned(),
    ];
    let servers = fs::read_dir("/sys/kernel/debug/sched/fair_server");
    for server in servers.into_iter().flatten().flatten() {
        paths.push(server.path().join("runtime").to_string_lossy().into_owned());
    }
    let read = |path: String| {
        let value = fs::read_to_string(&path).unwrap_or_else(|error| error.to_string());
        (path, value)
    };
    paths.into_iter().map(read).collect()
}

#[test]
fn a_suite_runs_to_its_end_and_changes_no_setting() {
    let Some(_alone) = machine() else { return };
    let before = settings();
    let scratch = scratch();
    let suite = &scratch.suite("host", &[], SUITE);
    let ended = scratch.run(&["run", suite, "--bench", "host", "--json", "--quiet"]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let run = &runs(&ended.stdout)[0];
    assert_eq!(run["state"], "finished");
    assert_eq!(run["subject"]["bench"], "host");
    assert!(run["ns_per_insn"].is_null(), "this is no virtual time");
    assert_eq!(run["unsupported"], Value::Array(Vec::new()));
    let recordings = run["recordings"].as_array().unwrap().iter();
    let mut measured: Vec<&str> = recordings.filter_map(|one| one["probe"].as_str()).collect();
    measured.dedup();
    assert_eq!(measured, ["timer", "hackbench", "tick"]);
    assert_eq!(settings(), before);
    let table = scratch.run(&["show", "r1"]).stdout;
    assert!(!table.contains("Virtual time"), "{table}");
}

const CLAIMS: &str = r#"
summary = "what nobody has booted with"
suite = "./own.toml"
[[claim]]
document = "a note"
says = "with it, a thread wakes up earlier"
expects = "lower"
of = { boot = "punctual-has-no-such-argument" }
than = { without = "punctual-has-no-such-argument" }
what = { probe = "timer", load = "idle", statistic = "max" }
"#;

#[test]
fn claims_are_held_against_this_machine_as_it_is_booted() {
    let Some(_alone) = machine() else { return };
    let scratch = scratch();
    let own = "name = \"own\"\nsummary = \"short\"\n[[step]]\nprobe = \"timer\"\nsamples = 20\n";
    fs::write(scratch.path("own.toml"), own).unwrap();
    fs::write(scratch.path("claims.toml"), CLAIMS).unwrap();
    let metal = |more: &[&str]| {
        let mut command = scratch.punctual(&[&["metal", "./claims.toml", "--json"], more].concat());
        let ended = Ended::of(command.current_dir(scratch.path("")));
        assert_eq!(ended.status, Some(5), "{}", ended.stderr);
        let found: Value = serde_json::from_str(&ended.stdout).unwrap();
        found["claims"][0].clone()
    };
    let nothing = metal(&[]);
    assert_eq!(nothing["on_a_machine"], "not-tried");
    assert_eq!(nothing["have"], Value::Null);
    let of_host = ["--bench", "host", "--seeds", "1..2", "--quiet"];
    let one_side = metal(&of_host);
    assert_eq!(one_side["on_a_machine"], "not-tried");
    assert!(one_side["have"]["host"].is_string(), "{one_side}");
    assert_eq!(
        one_side["needs"],
        serde_json::json!(["with punctual-has-no-such-argument"])
    );
    // What the store has is not measured again, and tells the same without a machine.
    assert_eq!(metal(&of_host), one_side);
    assert_eq!(metal(&[]), one_side);
    let kept = scratch.run(&["runs", "--json"]).stdout;
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["runs"].as_array().unwrap().len(), 2);
    // The other side: the same machine, as if it were booted with the argument.
    let booted = fs::read_to_string("/proc/cmdline").unwrap();
    let argument = "punctual-has-no-such-argument";
    let line = scratch.file("cmdline", format!("{argument} {booted}"));
    let mut command = Command::new("unshare");
    let script = "mount --bind \"$0\" /proc/cmdline && exec \"$@\"";
    command.args(["--mount", "sh", "-c", script, &line]);
    command.arg(scratch.punctual(&[]).get_program());
    command
        .args(["metal", "./claims.toml", "--json"])
        .args(of_host);
    scratch.prepare(&mut command);
    let ended = Ended::of(command.current_dir(scratch.path("")));
    assert_eq!(ended.status, Some(5), "{}", ended.stderr);
    let found = punctual_tests::json(&ended);
    let both = &found["claims"][0];
    assert_eq!(both["on_a_machine"], "told", "{both}");
    assert_eq!(both["runs"], serde_json::json!([2, 2]));
    // Two runs of each side tell nothing, on any machine.
    assert_eq!(both["sign"], "undecided");
    assert!(
        both["why"].is_string() && both["ratio"].is_number(),
        "{both}"
    );
}

/// A pair of interfaces, made as the page of `packet` describes, but with names of its own.
pub(crate) struct Pair;

impl Pair {
    pub(crate) const SPACE: &str = "pu-test";
    pub(crate) const ENDS: [&str; 2] = ["pu-test0", "pu-test1"];

    pub(crate) fn new() -> Self {
        let ([near, far], space) = (Self::ENDS, Self::SPACE);
        let commands = [
            format!("netns add {space}"),
            format!("link add {near} type veth peer name {far} netns {space}"),
            format!("addr add 198.18.77.1/30 dev {near}"),
            format!("link set {near} up"),
            format!("-n {space} addr add 198.18.77.2/30 dev {far}"),
            format!("-n {space} link set {far} up"),
        ];
        // A test that was killed has left them.
        Self::remove();
        let pair = Self;
        for command in commands {
            let ended = Command::new("ip").args(command.split(' ')).status();
            assert!(ended.unwrap().success(), "ip {command}");
        }
        pair
    }

    /// Removes the pair, and then its namespace, with which it would go only some time later.
    fn remove() {
        for words in [
            ["link", "del", Self::ENDS[0]],
            ["netns", "del", Self::SPACE],
        ] {
            let ended = Command::new("ip").args(words).output();
            ended.expect("ip runs");
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        Self::remove();
    }
}

#[test]
fn frames_go_over_a_pair_of_interfaces_and_over_the_loopback_interface() {
    let Some(_alone) = machine() else { return };
    if !punctual_skip::program("ip") {
        return;
    }
    let _pair = Pair::new();
    let scratch = scratch();
    let ([near, far], space) = (Pair::ENDS, Pair::SPACE);
    let step = |rest: String| format!("[[step]]\nprobe = \"packet\"\nsamples = 20\n{rest}");
    let pair = |rest: &str| {
        step(format!(
            "from = \"{near}\"\nto = \"{far}\"\nnamespace = \"{space}\"\n{rest}\n"
        ))
    };
    let lo = |rest: &str| {
        step(format!(
            "from = \"lo\"\nto = \"lo\"\nnamespace = \"\"\n{rest}\n"
        ))
    };
    let steps = [
        pair(""),
        pair("way = \"round-trip\""),
        pair("kind = \"tcp\""),
        lo("kind = \"udp\""),
        lo("kind = \"tcp\"\nway = \"round-trip\""),
    ];
    let suite = scratch.suite("frames", &[], &steps.concat());
    let ended = scratch.run(&["run", &suite, "--bench", "host", "--json", "--quiet"]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let recordings = &runs(&ended.stdout)[0]["recordings"];
    let recordings = recordings.as_array().unwrap();
    assert_eq!(recordings.len(), steps.len());
    for recording in recordings {
        let [sent, received] = ["sent", "received"].map(|name| finding(recording, name));
        assert_eq!((sent, received), (30, 30), "{recording}");
        assert_eq!(recording["count"], 20, "{recording}");
    }
    let drivers = recordings.iter().map(|one| &one["settings"]["driver"]);
    assert!(drivers.into_iter().all(|driver| driver == "none"));
    frames_come_back_from_a_peer(&scratch);
    frames_bypass_the_network_stack(&scratch, &pair("kind = \"xdp\""));
}

/// `punctual-wire echo` answers in the other namespace, as on another machine.
fn frames_come_back_from_a_peer(scratch: &Scratch) {
    let wire = programs().join("punctual-wire");
    let mut command = Command::new("ip");
    command.args(["netns", "exec", Pair::SPACE]).arg(wire);
    let mut echo = command
        .args(["echo", "--priority", "50"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    let mut says = BufReader::new(echo.stderr.take().unwrap());
    says.read_line(&mut told).unwrap();
    assert!(told.contains("echo at priority 50 on cpu0"), "{told}");
    let kinds = ["udp", "tcp", "raw"];
    let steps = kinds.map(|kind| {
        format!(
            "[[step]]\nprobe = \"packet\"\nsamples = 20\nkind = \"{kind}\"\nfrom = \"{}\"\n\
             peer = \"198.18.77.2\"\n",
            Pair::ENDS[0]
        )
    });
    let nobody = "[[step]]\nprobe = \"packet\"\nkind = \"udp\"\npeer = \"198.18.77.3\"\n";
    let suite = scratch.suite("peer", &[], &(steps.concat() + nobody));
    let ended = scratch.run(&["run", &suite, "--bench", "host", "--json", "--quiet"]);
    echo.kill().unwrap();
    echo.wait().unwrap();
    let run = &runs(&ended.stdout)[0];
    let recordings = run["recordings"].as_array().unwrap();
    assert_eq!(recordings.len(), kinds.len(), "{}", run["unsupported"]);
    for (recording, kind) in recordings.iter().zip(kinds) {
        let variant = recording["variant"].as_str().unwrap();
        assert!(variant.starts_with(kind) && variant.ends_with("round trip"));
        assert_eq!(recording["settings"]["to"], "198.18.77.2");
        assert_eq!(finding(recording, "received"), 30, "{recording}");
    }
    let reason = run["unsupported"][0]["reason"].to_string();
    assert_has(&reason, &["198.18.77.3", "`punctual-wire echo`"]);
}

fn frames_bypass_the_network_stack(scratch: &Scratch, step: &str) {
    let suite = scratch.suite("xdp", &[], step);
    let ended = scratch.run(&["run", &suite, "--bench", "host", "--json", "--quiet"]);
    let run = &runs(&ended.stdout)[0];
    if let Some(absent) = run["unsupported"].as_array().unwrap().first() {
        // This machine's kernel may have been built without it.
        let reason = absent["reason"].as_str().unwrap();
        let known = ["AF_XDP", "BPF"].iter().any(|word| reason.contains(word));
        assert!(known, "{reason}");
        return;
    }
    let recording = &run["recordings"][0];
    assert_eq!(recording["variant"], "xdp 60 one way");
    assert_eq!(finding(recording, "received"), 30, "{recording}");
}

#[test]
fn where_memory_cannot_be_locked_nothing_is_measured_and_the_reason_is_told() {
    if !["prlimit", "setpriv"]
        .into_iter()
        .all(punctual_skip::program)
    {
        return;
    }
    let _alone = alone();
    let scratch = scratch();
    let step = "[[step]]\nprobe = ";
    let probes = ["timer", "clock", "switch", "realfeel", "eventfd"];
    let steps = probes.map(|probe| format!("{step}\"{probe}\"\n")).concat();
    let suite = &scratch.file(
        "locked.toml",
        format!("name = \"locked\"\nsummary = \"\"\n{steps}"),
    );
    let mut command = without_locked_memory(&programs().join("punctual"), &scratch);
    command.args(["run", suite, "--bench", "host", "--json", "--quiet"]);
    let ended = Ended::of(&mut command);
    let run = &runs(&ended.stdout)[0];
    assert_eq!(
        run["recordings"],
        Value::Array(Vec::new()),
        "{}",
        ended.stderr
    );
    let refused = run["unsupported"].as_array().unwrap();
    assert_eq!(refused.len(), probes.len());
    for one in refused {
        let reason = one["reason"].as_str().unwrap();
        assert!(reason.contains("locking memory is refused"), "{one}");
    }
    let realfeel = programs().join("drop-in/realfeel");
    let mut command = without_locked_memory(&realfeel, &scratch);
    command
        .args(["--samples", "10"])
        .arg(scratch.path("histogram"));
    let ended = Ended::of(&mut command);
    assert_ne!(ended.status, Some(0));
    assert_has(&ended.stderr, &["locking memory is refused"]);
}

/// All measuring threads on this machine have their memory locked, and meet no page fault.
#[test]
fn no_page_fault_is_met_by_a_thread_that_measures() {
    let Some(_alone) = machine() else { return };
    let scratch = scratch();
    let suite = &scratch.suite("host", &[], SUITE);
    for run in scratch.measure(&[suite, "--bench", "host"]) {
        for recording in run["recordings"].as_array().unwrap() {
            let settings = &recording["settings"];
            if recording["probe"] != "hackbench" {
                assert!(
                    settings["memory_locked_kib"].as_i64() > Some(0),
                    "{settings}"
                );
                let faults = ["minor_faults", "major_faults"].map(|name| &settings[name]);
                assert_eq!(faults, [0, 0], "{recording}");
            }
        }
    }
}

#[test]
fn what_is_for_the_virtual_bench_is_refused() {
    let ended = scratch().run(&["run", "demo", "--bench", "host", "--boot", "quiet"]);
    assert_eq!(ended.status, Some(2));
    assert_has(&ended.stderr, &["--boot"]);
    let ended = scratch().run(&["metal", "--seeds", "1..2"]);
    assert_eq!(ended.status, Some(2));
    assert_has(&ended.stderr, &["--seeds says how to measure"]);
}

/// Starts a long run on this machine; returns the processes below it once `seen` holds.
fn begin(scratch: &Scratch, seen: fn(&[(u32, String)]) -> bool) -> (Child, Vec<(u32, String)>) {
    let suite = &scratch.suite("long", &[], LONG);
    let mut command = scratch.punctual(&["run", suite, "--bench", "host", "--quiet"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.process_group(0).spawn().unwrap();
    let begun = is_soon(|| seen(&descendants(child.id())));
    if !begun {
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("it has never begun");
    }
    let below = descendants(child.id());
    (child, below)
}

fn load_runs(below: &[(u32, String)]) -> bool {
    below.iter().any(|(_, name)| name == "yes")
}

/// Returns true if a setting is noted and changed. The note comes before the change, and its file
/// before its content: a test that looked only for the file would stop a target that has changed
/// nothing yet.
fn setting_is_changed(_: &[(u32, String)]) -> bool {
    let setting = "/proc/sys/kernel/sched_rt_runtime_us";
    let note = Path::new("/run/punctual/settings").join(setting.replace('/', "!"));
    fs::read_to_string(note)
        .is_ok_and(|before| !before.is_empty() && fs::read_to_string(setting).unwrap() != before)
}

fn assert_gone(processes: &[(u32, String)]) {
    until(&format!("{processes:?} have ended"), || {
        !processes.iter().any(|(pid, _)| is_alive(*pid))
    });
}

/// Returns true if every thread of the process is stopped.
fn is_stopped(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim().starts_with('T'))
    })
}

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

#[test]
fn a_second_run_at_a_time_is_refused() {
    let Some(_alone) = machine() else { return };
    let (scratch, another) = (scratch(), scratch());
    let (mut child, below) = begin(&scratch, setting_is_changed);
    let suite = &another.suite("host", &[], SUITE);
    let refused = another.run(&["run", suite, "--bench", "host", "--quiet"]);
    assert_ne!(refused.status, Some(0));
    assert_has(&refused.stderr, &["another run is measuring"]);
    assert!(child.try_wait().unwrap().is_none(), "the first goes on");
    send(child.id(), Signal::INT);
    child.wait().unwrap();
    assert_gone(&below);
}

#[test]
fn an_interrupted_run_leaves_no_process() {
    let Some(_alone) = machine() else { return };
    let scratch = scratch();
    let (mut child, below) = begin(&scratch, load_runs);
    send(child.id(), Signal::INT);
    child.wait().unwrap();
    assert_gone(&below);
}

/// One step, longer than anybody waits for.
const ONE_STEP: &str = r#"
name = "loop"
summary = "a loop at 1 kHz"
[[step]]
probe = "timer"
samples = 900000
cpus = [0]
"#;

/// How long it measured depends on the host: the wait grows until it has measured at all.
#[test]
fn ctrl_c_keeps_the_samples_of_the_only_step() {
    let _alone = alone();
    for seconds in [2, 8, 32] {
        let scratch = scratch();
        let suite = &scratch.file("loop.toml", ONE_STEP);
        let mut command = scratch.punctual(&["run", suite, "--bench", "host", "--quiet"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.process_group(0).spawn().unwrap();
        thread::sleep(Duration::from_secs(seconds));
        send(child.id(), Signal::INT);
        let status = child.wait().unwrap();
        // On a busy host it had not begun to listen yet.
        if status.signal() == Some(Signal::INT.as_raw()) {
            continue;
        }
        assert_eq!(status.code(), Some(3));
        let shown = scratch.run(&["show", "r1", "--json"]);
        if shown.status != Some(0) {
            continue;
        }
        let run = &runs(&shown.stdout)[0];
        assert_eq!(run["state"], "interrupted");
        if let Some(recording) = run["recordings"].get(0) {
            assert!(recording["count"].as_u64().unwrap() > 0);
            let table = scratch.run(&["show", "r1"]).stdout;
            assert_has(&table, &["worst"]);
            return;
        }
    }
    panic!("nothing was ever kept");
}

/// The store of a scratch directory, as soon as its first run has a recording.
fn stored(scratch: &Scratch) -> Recording {
    let mut found = None;
    until("something is stored", || {
        let store = Store::open(&scratch.path("data/punctual/runs.db"));
        let run = store.and_then(|store| store.load("r1"));
        found = run.ok().and_then(|mut run| run.recordings.pop());
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn what_was_measured_before_a_loss_of_power_is_in_the_store() {
    let _alone = alone();
    let scratch = scratch();
    let suite = &scratch.file("loop.toml", ONE_STEP);
    let every = ["--store-every", "1", "--quiet"];
    let mut command = scratch.punctual(&[&["run", suite, "--bench", "host"], &every[..]].concat());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.process_group(0).spawn().unwrap();
    let first = stored(&scratch);
    until("more is stored", || stored(&scratch).count > first.count);
    let below = descendants(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_gone(&below);
    let shown = scratch.run(&["show", "r1", "--json"]);
    let run = &runs(&shown.stdout)[0];
    assert_eq!(run["state"], "interrupted");
    let recordings = run["recordings"].as_array().unwrap();
    assert_eq!(recordings.len(), 1);
    assert_eq!(recordings[0]["variant"], "cpu0");
    assert_eq!(recordings[0]["interrupted"], true);
    assert!(recordings[0]["count"].as_u64() > Some(first.count));
}

/// Whatever the hand-overs, each sample is counted once, in its place.
#[test]
fn what_is_told_in_parts_is_what_was_measured() {
    let _alone = alone();
    for samples in [5_000, 20_000, 80_000] {
        let scratch = scratch();
        let suite = ONE_STEP.replace("900000", &samples.to_string());
        let suite = &scratch.file("loop.toml", suite);
        let arguments = [
            "run",
            suite,
            "--bench",
            "host",
            "--store-every",
            "1",
            "--quiet",
        ];
        let ended = scratch.run(&arguments);
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        let told = stored(&scratch);
        assert!(!told.interrupted);
        assert_eq!(told.count, samples);
        let mut again = Recorder::new(samples as usize);
        for sample in told.samples.iter() {
            again.record(sample.at, sample.value);
        }
        let again = again.finish(told.key.clone());
        assert_eq!(told.samples, again.samples);
        assert_eq!(told.histogram, again.histogram);
        assert_eq!((told.sum, told.extremes), (again.sum, again.extremes));
        assert_eq!(told.worst, again.worst);
        let parts = told.maxima.len();
        if parts > 2 {
            let all: Vec<Sample> = told.samples.iter().collect();
            assert!(told.maxima.iter().all(|one| all[one.seq as usize] == *one));
            assert!(told.maxima.contains(&told.worst[0]));
            assert!(told.maxima.is_sorted_by_key(|one| one.at));
            return;
        }
    }
    panic!("nothing was ever told in parts");
}

#[test]
fn settings_are_restored_after_a_signal_and_after_a_kill() {
    let Some(_alone) = machine() else { return };
    let before = settings();
    let scratch = scratch();
    let (mut child, below) = begin(&scratch, setting_is_changed);
    assert_ne!(settings(), before, "it has changed something");
    send(child.id(), Signal::KILL);
    child.wait().unwrap();
    assert_gone(&below);
    assert_eq!(
        settings(),
        before,
        "punctual was killed, and the target ended in good order"
    );

    let (mut child, below) = begin(&scratch, setting_is_changed);
    let (target, _) = below
        .iter()
        .find(|(_, name)| name == "punctual-target")
        .unwrap();
    send(*target, Signal::KILL);
    child.wait().unwrap();
    assert_gone(&below);
    assert_eq!(
        settings(),
        before,
        "the target alone was killed, and punctual, which saw it, has restored"
    );

    let (mut child, below) = begin(&scratch, setting_is_changed);
    let (target, _) = below
        .iter()
        .find(|(_, name)| name == "punctual-target")
        .unwrap();
    // Stopped, so that it does not see the target die. The other way round the kernel wakes the
    // target (SIGHUP, SIGCONT), whose process group has lost its last parent.
    send(child.id(), Signal::STOP);
    until("it has stopped", || is_stopped(child.id()));
    send(*target, Signal::KILL);
    assert_gone(&below);
    send(child.id(), Signal::KILL);
    child.wait().unwrap();
    let suite = &scratch.suite("host", &[], SUITE);
    let next = scratch.run(&["run", suite, "--bench", "host", "--json", "--quiet"]);
    let facts = &runs(&next.stdout)[0]["provenance"]["facts"];
    let said = facts["restored_after_crash"].as_str().unwrap();
    assert_has(said, &["sched_rt_runtime_us"]);
    assert_eq!(
        settings(),
        before,
        "both were killed, and the next target restored"
    );
}
