// SPDX-License-Identifier: MIT OR Apache-2.0
//! A board that `ssh` reaches: this machine, behind a real sshd of the test's own.
//!
//! `PUNCTUAL_REPEATS` is the number of times that the connection is cut, 5 by default. Nothing here
//! asserts any duration.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use punctual_tests::{
    Ended, Scratch, assert_ends, assert_has, descendants, finding, is_alive, number, runs, until,
    until_samples_are_kept,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::host::Pair;

const SSHD: &str = "/usr/sbin/sshd";

/// The address of this machine.
const LOOPBACK: &str = "127.0.0.1";

/// A board: an sshd, its keys, and the directory of the target.
struct Board {
    _alone: MutexGuard<'static, ()>,
    scratch: Scratch,
    address: String,
    port: u16,
    sshd: Child,
}

/// Locks the machine: one run at a time measures on it.
fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(path: &Path) {
    let ended = Ended::of(
        Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(path),
    );
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
}

impl Board {
    /// Makes this machine a board. `None` if that is not possible; the test is then skipped.
    fn new(sshd_config: &str) -> Option<Self> {
        Self::at(LOOPBACK, &[], sshd_config)
    }

    /// The same at another address, the server started by these words.
    fn at(address: &str, before: &[&str], sshd_config: &str) -> Option<Self> {
        let programs = ["ssh", "ssh-keygen"]
            .into_iter()
            .all(punctual_skip::program);
        if !programs || !punctual_skip::root() {
            return None;
        }
        if !Path::new(SSHD).is_file() {
            punctual_skip::skip("openssh-server is not installed");
            return None;
        }
        let alone = alone();
        let scratch = Scratch::new();
        for name in ["host_key", "own_key", "other_key"] {
            key(&scratch.path(name));
        }
        fs::copy(scratch.path("own_key.pub"), scratch.path("authorized")).unwrap();
        // As root it insists on this one.
        fs::create_dir_all("/run/sshd").unwrap();
        // Closed again at once: what listens below is sshd, and nobody else.
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
        let port = free.unwrap().port();
        let path = |name: &str| scratch.path(name).to_string_lossy().into_owned();
        let config = format!(
            "Port {port}\nListenAddress {address}\nHostKey {}\nAuthorizedKeysFile {}\n\
             PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nPermitRootLogin yes\nMaxStartups 100\n\
             {sshd_config}\n",
            path("host_key"),
            path("authorized"),
        );
        let config = scratch.file("sshd_config", config);
        let log = File::create(scratch.path("sshd.log")).unwrap();
        let words = [before, &[SSHD, "-D", "-e", "-f", &config]].concat();
        let sshd = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut board = Self {
            _alone: alone,
            scratch,
            address: address.to_owned(),
            port,
            sshd,
        };
        board.write_ssh_config("own_key");
        let is_up = || TcpStream::connect((address, port)).is_ok();
        until("sshd listens", || {
            is_up() || board.sshd.try_wait().unwrap().is_some()
        });
        assert!(is_up(), "{}", board.log());
        Some(board)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.scratch.path("sshd.log")).unwrap_or_default()
    }

    /// Writes the user's configuration for the board.
    fn write_ssh_config(&self, key: &str) {
        let path = |name: &str| self.scratch.path(name).to_string_lossy().into_owned();
        let host_key = fs::read_to_string(self.scratch.path("host_key.pub")).unwrap();
        let known = format!("[{}]:{} {host_key}", self.address, self.port);
        let known = self.scratch.file("known_hosts", known);
        let config = format!(
            "Host board\nHostName {}\nPort {}\nUser root\nIdentityFile {}\n\
             IdentitiesOnly yes\nUserKnownHostsFile {known}\nGlobalKnownHostsFile none\n\
             StrictHostKeyChecking yes\nLogLevel ERROR\n",
            self.address,
            self.port,
            path(key)
        );
        self.scratch.file("ssh_config", config);
    }

    /// The directory of the target and its jobs.
    fn directory(&self) -> PathBuf {
        self.scratch.path("board")
    }

    fn bench(&self) -> String {
        format!("ssh:board:{}", self.directory().display())
    }

    fn command(&self, scratch: &Scratch, arguments: &[&str]) -> Command {
        let mut command = scratch.punctual(arguments);
        let config = self.scratch.path("ssh_config");
        command.env("PUNCTUAL_SSH", format!("ssh -F {}", config.display()));
        command
    }

    /// `punctual run` with this many samples, one each millisecond, in `scratch`.
    fn timer(&self, scratch: &Scratch, samples: u64, more: &[&str]) -> Command {
        let (bench, samples) = (self.bench(), format!("samples={samples}"));
        let fixed = ["run", "--probe", "timer", "-p", &samples, "-p", "cpus=[0]"];
        let bench = ["-p", "interval_us=1000", "--bench", &bench];
        self.command(scratch, &[&fixed[..], &bench, more].concat())
    }

    /// Begins it.
    fn begin(&self, samples: u64, more: &[&str]) -> Child {
        let mut command = self.timer(&self.scratch, samples, more);
        let stderr = File::create(self.scratch.path("stderr")).unwrap();
        command.stdout(Stdio::null()).stderr(stderr);
        command.process_group(0).spawn().unwrap()
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.scratch.path("stderr")).unwrap_or_default()
    }

    /// The board as a peer.
    fn peer(&self, address: &str) -> String {
        format!("{}:{address}", self.bench())
    }

    /// `punctual run` of this many datagrams, which go from this machine to a peer and back.
    fn datagrams(&self, samples: u64, peer: &str, more: &[&str]) -> Command {
        let samples = format!("samples={samples}");
        let probe = ["run", "--probe", "packet", "-p", "kind=udp", "-p", &samples];
        let place = ["--bench", "host", "--peer", peer];
        self.command(&self.scratch, &[&probe[..], &place, more].concat())
    }

    /// Begins to measure datagrams for minutes. Returns the process, and its target as soon as
    /// there is one.
    fn begin_datagrams(&self) -> (Child, u32) {
        self.begin_datagrams_by(None)
    }

    /// Begins it with a client of its own, `None` for `ssh` itself.
    fn begin_datagrams_by(&self, client: Option<&str>) -> (Child, u32) {
        let mut command = self.datagrams(300_000, &self.peer(LOOPBACK), &["--quiet"]);
        command.envs(client.map(|client| ("PUNCTUAL_SSH", client)));
        let stderr = File::create(self.scratch.path("stderr")).unwrap();
        command.stdout(Stdio::null()).stderr(stderr);
        let mut child = command.process_group(0).spawn().unwrap();
        let mut target = None;
        until("there is a target, or an end", || {
            let mut below = descendants(child.id()).into_iter();
            target = below.find_map(|(pid, name)| (name == "punctual-wire").then_some(pid));
            target.is_some() || child.try_wait().unwrap().is_some()
        });
        assert!(self.echoes() > 0, "{}", self.stderr());
        let target = target.unwrap_or_else(|| panic!("{}", self.stderr()));
        (child, target)
    }

    /// The number of processes of the program there: the echo, shells that wait for it, and
    /// clients.
    fn echoes(&self) -> usize {
        let program = format!("{}/target-", self.directory().display());
        let all = fs::read_dir("/proc").unwrap().flatten();
        let lines = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
        lines.filter(|line| line.contains(&program)).count()
    }

    fn until_no_echo_is_left(&self) {
        until("no echo is left", || self.echoes() == 0);
    }

    /// All runs in the store, by their numbers.
    fn runs(&self) -> Vec<Value> {
        let listed = |id: &String| self.scratch.run(&["show", id, "--json", "--raw"]);
        let ids: Vec<String> = (1..).map(|number| format!("r{number}")).take(9).collect();
        let shown = ids.iter().map(listed);
        shown
            .take_while(|shown| shown.status == Some(0))
            .map(|shown| runs(&shown.stdout).remove(0))
            .collect()
    }

    fn jobs(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.directory().join("jobs"));
        let entries = entries.into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// The supervisor and the target of the only job, as soon as it measures.
    fn processes(&self) -> Vec<u32> {
        let mut found = Vec::new();
        until("a job runs", || {
            let job = self.jobs().pop().unwrap_or_default();
            let text = fs::read_to_string(job.join("process")).unwrap_or_default();
            found = text.split_whitespace().flat_map(str::parse).collect();
            found.len() == 3 && fs::metadata(job.join("stream")).is_ok_and(|file| file.len() > 0)
        });
        found.truncate(2);
        found
    }

    /// Kills the processes that serve the connections; the jobs are not among them.
    fn cut(&self) -> usize {
        let below = descendants(self.sshd.id()).into_iter();
        let serving: Vec<u32> = below
            .filter(|(_, name)| name.starts_with("sshd"))
            .map(|(pid, _)| pid)
            .collect();
        for pid in &serving {
            send(*pid, Signal::KILL);
        }
        serving.len()
    }

    /// Checks that nothing but the target is left there.
    fn assert_clean(&self) {
        let names = fs::read_dir(self.directory()).unwrap().flatten();
        let names: Vec<String> = names
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(names[0].starts_with("target-"), "{names:?}");
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        let _ = self.cut();
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

fn send(pid: u32, signal: Signal) {
    // It may have ended by itself.
    let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), signal);
}

/// Checks that each sample of a run was taken, and is stored once.
fn assert_whole(run: &Value, samples: u64) {
    assert_eq!(run["state"], "finished", "{}", run["error"]);
    let recordings = run["recordings"].as_array().unwrap();
    assert_eq!(recordings.len(), 1);
    assert_eq!(recordings[0]["count"], samples);
    let kept = recordings[0]["samples"].as_array().unwrap();
    assert_eq!(kept.len() as u64, samples, "each is kept");
}

#[test]
fn a_board_is_measured_as_this_machine_is() {
    let Some(board) = Board::new("") else { return };
    let ended = Ended::of(&mut board.timer(&board.scratch, 500, &["--json", "--raw"]));
    assert_eq!(ended.status, Some(0), "{}\n{}", ended.stderr, board.log());
    let run = &runs(&ended.stdout)[0];
    assert_whole(run, 500);
    assert_eq!(run["subject"]["name"], "board");
    let line = |path| fs::read_to_string(path).unwrap().trim().to_owned();
    assert_eq!(run["subject"]["kernel"], line("/proc/sys/kernel/osrelease"));
    assert_eq!(run["provenance"]["release"], run["subject"]["kernel"]);
    let machine = &run["machine"];
    assert_eq!(machine["host"], line("/proc/sys/kernel/hostname"));
    assert_eq!(machine["ssh"], board.bench()["ssh:".len()..]);
    let target = punctual_tests::programs().join("punctual-target");
    let target = punctual_model::digest::sha256(&fs::read(target).unwrap());
    assert_eq!(machine["target_sha256"], target);
    board.assert_clean();
    assert!(board.directory().join(format!("target-{target}")).is_file());
    let settings = &run["recordings"][0]["settings"];
    let host = board.scratch.measure(&[
        "--probe",
        "timer",
        "-p",
        "samples=10",
        "-p",
        "cpus=[0]",
        "--bench",
        "host",
    ]);
    assert_eq!(
        settings["policy"],
        host[0]["recordings"][0]["settings"]["policy"]
    );
    let names = |run: &Value| -> Vec<String> {
        let facts = run["provenance"]["facts"].as_object().unwrap();
        facts.keys().cloned().collect()
    };
    assert_eq!(names(run), names(&host[0]));
    // What only the end tells is there as well as what is read before.
    let facts = names(run);
    for name in ["smis", "governors", "idle_states", "cpu_dma_latency_us"] {
        assert!(facts.iter().any(|fact| fact == name), "{name}: {facts:?}");
    }
}

#[test]
fn a_connection_that_is_cut_again_and_again_loses_nothing() {
    let Some(board) = Board::new("") else { return };
    let wanted = number("PUNCTUAL_REPEATS", 5);
    let (mut cuts, mut measured) = (0, Vec::new());
    let mut rng = Rng::new();
    while cuts < wanted {
        let samples = (wanted - cuts).min(30) * 2_000;
        // What was measured so far makes the stream grow all the while.
        let mut child = board.begin(samples, &["--store-every", "1"]);
        measured.push(samples);
        board.processes();
        while child.try_wait().unwrap().is_none() {
            thread::sleep(Duration::from_millis(rng.u64(0..2_000)));
            if cuts < wanted && board.cut() > 0 {
                cuts += 1;
            }
        }
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{}", board.stderr());
    }
    let runs = board.runs();
    assert_eq!(runs.len(), measured.len().min(9), "exactly one run each");
    for (run, samples) in runs.iter().zip(measured) {
        assert_whole(run, samples);
    }
    board.assert_clean();
}

#[test]
fn what_is_measured_while_nobody_is_there_is_fetched_by_resume() {
    let Some(board) = Board::new("") else { return };
    let mut child = board.begin(10_000, &["--quiet"]);
    let processes = board.processes();
    child.kill().unwrap();
    child.wait().unwrap();
    until("it has ended by itself", || {
        !processes.iter().any(|pid| is_alive(*pid))
    });
    assert_eq!(board.jobs().len(), 1, "it waits to be fetched");
    let mut resumed = board.timer(&board.scratch, 10_000, &["--quiet", "--resume"]);
    let ended = Ended::of(&mut resumed);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let runs = board.runs();
    let states: Vec<&Value> = runs.iter().map(|run| &run["state"]).collect();
    assert_eq!(states, ["interrupted", "finished"]);
    assert_whole(&runs[1], 10_000);
    board.assert_clean();
    let ended = Ended::of(&mut resumed);
    assert_eq!((ended.status, board.runs().len()), (Some(0), 2));
}

#[test]
fn a_run_that_is_fetched_is_not_fetched_twice() {
    let Some(board) = Board::new("") else { return };
    let mut child = board.begin(100_000_000, &["--quiet"]);
    board.processes();
    let other = Scratch::new();
    for (samples, more, reason) in [
        (
            100_000_000,
            &["--quiet", "--resume"][..],
            "being fetched already",
        ),
        (10, &["--quiet"], "another run is measuring there"),
    ] {
        let refused = Ended::of(&mut board.timer(&other, samples, more));
        assert_eq!(refused.status, Some(1));
        assert_has(&refused.stderr, &[reason]);
    }
    send(child.id(), Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(3), "{}", board.stderr());
    board.assert_clean();
}

#[test]
fn ctrl_c_ends_the_step_there_and_keeps_its_samples() {
    let Some(board) = Board::new("") else { return };
    until_samples_are_kept(|number, time| {
        let mut child = board.begin(100_000_000, &["--quiet"]);
        let processes = board.processes();
        thread::sleep(time);
        send(child.id(), Signal::INT);
        assert_eq!(child.wait().unwrap().code(), Some(3), "{}", board.stderr());
        assert!(!processes.iter().any(|pid| is_alive(*pid)));
        board.assert_clean();
        board.runs().swap_remove(number)
    });
}

#[test]
fn a_target_that_is_killed_is_said_to_be() {
    let Some(board) = Board::new("") else { return };
    let mut child = board.begin(100_000_000, &["--quiet"]);
    let processes = board.processes();
    send(processes[1], Signal::KILL);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_has(&board.stderr(), &["killed by signal 9"]);
    assert!(!processes.iter().any(|pid| is_alive(*pid)));
    board.assert_clean();
}

/// `tick` lets threads of real-time priority run without a break, and restores that setting.
#[test]
fn no_setting_of_a_board_stays_changed_whoever_is_gone() {
    if !punctual_skip::host() {
        return;
    }
    let Some(board) = Board::new("") else { return };
    let setting = || fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap();
    let before = setting();
    let bench = board.bench();
    let begin = |duration: &str| {
        let probe = [
            "run", "--quiet", "--probe", "tick", "-p", duration, "--bench", &bench,
        ];
        let mut command = board.command(&board.scratch, &probe);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.process_group(0).spawn().unwrap();
        let processes = board.processes();
        until("it is changed, or over", || {
            setting() != before || !is_alive(processes[1])
        });
        (child, processes)
    };
    // Killed, it is restored by who waits for it.
    let (mut child, processes) = begin("duration_ms=10000");
    assert_ne!(setting(), before);
    send(processes[1], Signal::KILL);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(setting(), before);
    // Left alone, it ends with its plan.
    let (mut child, processes) = begin("duration_ms=3000");
    child.kill().unwrap();
    child.wait().unwrap();
    until("it has ended by itself", || {
        !processes.iter().any(|pid| is_alive(*pid))
    });
    assert_eq!(setting(), before);
}

#[test]
fn who_is_lost_for_longer_than_patience_is_told_how_to_go_on() {
    let Some(mut board) = Board::new("") else {
        return;
    };
    let more = ["--quiet", "--patience", "1"];
    let mut child = board.begin(15_000, &more);
    let processes = board.processes();
    // Stopped, it begins no other session.
    send(board.sshd.id(), Signal::STOP);
    board.cut();
    board.sshd.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{}", board.stderr());
    assert_has(
        &board.stderr(),
        &["has not been reached for 1 s", "--resume"],
    );
    until("it has ended by itself", || {
        !processes.iter().any(|pid| is_alive(*pid))
    });
    assert_eq!(board.jobs().len(), 1);
}

fn refused(board: &Board, bench: &str, parts: &[&str]) {
    let arguments = ["run", "--probe", "timer", "--quiet", "--bench", bench];
    let ended = Ended::of(&mut board.command(&board.scratch, &arguments));
    assert_eq!(ended.status, Some(1), "{}", ended.stderr);
    assert_has(&ended.stderr, parts);
    assert!(board.runs().is_empty(), "nothing was begun");
}

#[test]
fn whom_ssh_does_not_reach_is_told_in_its_words() {
    let Some(board) = Board::new("") else { return };
    refused(
        &board,
        "ssh:no-such.invalid",
        &["no-such.invalid is not reached", "resolve"],
    );
    board.write_ssh_config("other_key");
    refused(
        &board,
        &board.bench(),
        &["board is not reached", "Permission denied"],
    );
    board.write_ssh_config("own_key");
    board.scratch.file("known_hosts", "");
    refused(
        &board,
        &board.bench(),
        &["board is not reached", "verification failed"],
    );
    let mut without = board.command(&board.scratch, &["run", "demo", "--bench", "ssh:board"]);
    let ended = Ended::of(without.env("PUNCTUAL_SSH", "/no/such/ssh"));
    assert_eq!(ended.status, Some(1));
    assert_has(&ended.stderr, &["/no/such/ssh", "openssh-client"]);
}

#[test]
fn what_is_no_board_is_refused_before_anything_is_tried() {
    let scratch = Scratch::new();
    for (bench, part) in [
        ("ssh:", "expected [USER@]HOST"),
        ("ssh:board:data", "expected [USER@]HOST"),
        ("ssh:board:2222", "PUNCTUAL_SSH='ssh -p 2222'"),
        ("board", "expected virtual, host, ssh:"),
    ] {
        let ended = scratch.run(&["run", "demo", "--bench", bench]);
        assert_eq!(ended.status, Some(2), "{bench}");
        assert_has(&ended.stderr, &[part]);
    }
    let ended = scratch.run(&["run", "demo", "--bench", "ssh:board", "--boot", "quiet"]);
    assert_eq!(ended.status, Some(2));
    assert_has(&ended.stderr, &["--boot"]);
}

#[test]
fn another_architecture_is_refused_by_its_name() {
    let Some((board, _fake)) = board_that_says("mips64") else {
        return;
    };
    let expected = "expected Linux x86_64, aarch64, armv7l or riscv64";
    refused(&board, &board.bench(), &[expected, "found Linux mips64"]);
}

#[test]
fn a_board_gets_the_target_of_its_own_architecture() {
    for (uname, name, machine) in [
        ("aarch64", "arm64", "aarch64"),
        ("armv7l", "armv7", "armv7"),
        ("armv8l", "armv7", "armv7"),
        ("riscv64", "riscv64", "riscv64"),
    ] {
        let Some((board, _fake)) = board_that_says(uname) else {
            return;
        };
        let bench = board.bench();
        let arguments = ["run", "demo", "--bench", &bench];
        let variable = format!("PUNCTUAL_TARGET_{}", machine.to_uppercase());
        let target = |path: &str| {
            let mut command = board.command(&board.scratch, &arguments);
            let ended = Ended::of(command.env(&variable, path));
            assert_eq!(ended.status, Some(1), "{}", ended.stderr);
            ended.stderr
        };
        let said = target("/no/such/target");
        assert_has(
            &said,
            &[
                &format!("is {name}: expected the target for it as /no/such/target"),
                &format!("./build --targets {machine}"),
            ],
        );
        // One that does not run there: whatever is copied, it is that.
        let other = board.scratch.file("other", "no program");
        assert_has(&target(&other), &["the target does not run"]);
        let there = fs::read_dir(board.directory()).unwrap();
        let copied = there.map(|entry| fs::read(entry.unwrap().path()).unwrap_or_default());
        assert!(copied.into_iter().any(|bytes| bytes == b"no program"));
    }
}

/// A board whose `uname` reports another machine, and the directory with that program.
fn board_that_says(machine: &str) -> Option<(Board, Scratch)> {
    let fake = Scratch::new();
    let uname = fake.file(
        "uname",
        format!("#!/bin/sh\n[ \"$1\" = -m ] && echo {machine} || echo Linux\n"),
    );
    fs::set_permissions(&uname, fs::Permissions::from_mode(0o755)).unwrap();
    let directory = Path::new(&uname).parent().unwrap().display().to_string();
    let path = format!("SetEnv PATH={directory}:/usr/bin:/bin");
    Some((Board::new(&path)?, fake))
}

/// A file system of its own, mounted on the board's directory.
struct Mounted(PathBuf);

impl Mounted {
    fn new(board: &Board, options: &str) -> Option<Self> {
        let directory = board.directory();
        fs::create_dir_all(&directory).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]);
        let ended = Ended::of(mount.arg(&directory));
        if ended.status == Some(0) {
            return Some(Self(directory));
        }
        punctual_skip::skip(&format!("nothing can be mounted: {}", ended.stderr));
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn where_nothing_may_be_executed_that_is_said() {
    let Some(board) = Board::new("") else { return };
    let Some(_mounted) = Mounted::new(&board, "noexec") else {
        return;
    };
    refused(&board, &board.bench(), &["does not run in", "noexec"]);
}

#[test]
fn where_there_is_no_space_that_is_said_and_nothing_is_left() {
    let Some(board) = Board::new("") else { return };
    let Some(_mounted) = Mounted::new(&board, "size=1m") else {
        return;
    };
    refused(
        &board,
        &board.bench(),
        &["cannot be put there", "No space left"],
    );
    assert_eq!(fs::read_dir(board.directory()).unwrap().count(), 0);
}

#[test]
fn a_target_that_is_damaged_there_is_copied_anew() {
    let Some(board) = Board::new("") else { return };
    let measure = || Ended::of(&mut board.timer(&board.scratch, 10, &["--quiet"]));
    assert_eq!(measure().status, Some(0));
    let target = fs::read_dir(board.directory()).unwrap().next().unwrap();
    let target = target.unwrap().path();
    let sound = fs::read(&target).unwrap();
    // Behind all that is executed: it runs, and is not what it was.
    let longer = [&sound[..], &[0]].concat();
    // What a loss of power leaves of a copy does not even run.
    for damaged in [&longer[..], &sound[..1_000], &[]] {
        until("nobody executes it", || fs::write(&target, damaged).is_ok());
        let ended = measure();
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        assert!(fs::read(&target).unwrap() == sound);
    }
}

#[test]
fn without_a_directory_the_target_is_in_the_users_cache() {
    let home = Scratch::new();
    let cache = home.path("cache");
    let set = format!("SetEnv XDG_CACHE_HOME={}", cache.display());
    let Some(board) = Board::new(&set) else {
        return;
    };
    let arguments = [
        "run",
        "--probe",
        "timer",
        "-p",
        "samples=10",
        "--quiet",
        "--bench",
    ];
    let arguments = [&arguments[..], &["ssh:root@board"]].concat();
    let ended = Ended::of(&mut board.command(&board.scratch, &arguments));
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert_eq!(fs::read_dir(cache.join("punctual")).unwrap().count(), 1);
}

#[test]
fn a_peer_answers_while_it_is_needed() {
    let Some(board) = Board::new("") else { return };
    let peer = board.peer(LOOPBACK);
    let page = board.scratch.path("page.html").display().to_string();
    let mut command = board.datagrams(20, &peer, &["--json", "--report", &page]);
    let ended = Ended::of(&mut command);
    assert_eq!(ended.status, Some(0), "{}\n{}", ended.stderr, board.log());
    board.until_no_echo_is_left();
    let run = &runs(&ended.stdout)[0];
    assert_has(run["plan"].as_str().unwrap(), &["peer = \"127.0.0.1\""]);
    let recording = &run["recordings"][0];
    assert_eq!(recording["settings"]["to"], LOOPBACK);
    assert_eq!(finding(recording, "received"), 30, "{recording}");
    // The command that repeats it has it answer again.
    assert_has(
        &fs::read_to_string(page).unwrap(),
        &["--peer ", "ssh:board:"],
    );
    let mut again = board.datagrams(20, &peer, &["--quiet", "--resume"]);
    let ended = Ended::of(&mut again);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert_eq!(board.runs().len(), 1, "it is the same plan");
    board.until_no_echo_is_left();
    board.assert_clean();
}

#[test]
fn an_echo_ends_with_whatever_ends_the_measurement() {
    let Some(board) = Board::new("") else { return };
    let (mut child, _) = board.begin_datagrams();
    send(child.id(), Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(3), "{}", board.stderr());
    board.until_no_echo_is_left();
    // Without its peer, it does not go on. A client that is slow to end tells of the loss after
    // the first frame was refused.
    let ssh = format!("ssh -F {}", board.scratch.path("ssh_config").display());
    let slow = format!("{ssh} \"$@\"\nstatus=$?\nsleep 3\nexit $status\n");
    let slow = format!("sh {}", board.scratch.file("slow-ssh", slow));
    let (mut child, _) = board.begin_datagrams_by(Some(&slow));
    assert!(board.cut() > 0);
    assert_eq!(child.wait().unwrap().code(), Some(1), "{}", board.stderr());
    assert_has(&board.stderr(), &["nobody answers frames there any more"]);
    board.until_no_echo_is_left();
    let (mut child, target) = board.begin_datagrams();
    child.kill().unwrap();
    child.wait().unwrap();
    board.until_no_echo_is_left();
    until("the target has ended, too", || !is_alive(target));
    let runs = board.runs();
    let states: Vec<&Value> = runs.iter().map(|run| &run["state"]).collect();
    assert_eq!(states, ["interrupted", "failed", "interrupted"]);
}

#[test]
fn why_a_peer_does_not_answer_is_told() {
    let Some(board) = Board::new("") else { return };
    let refused = |peer: &str, wire: Option<&str>, parts: &[&str]| {
        let mut command = board.datagrams(20, peer, &["--quiet"]);
        command.envs(wire.map(|wire| ("PUNCTUAL_WIRE", wire)));
        let ended = Ended::of(&mut command);
        assert_eq!(ended.status, Some(1), "{}", ended.stderr);
        assert_has(&ended.stderr, parts);
    };
    let peer = board.peer(LOOPBACK);
    // This end needs it, too, and is asked first.
    let missing = "/no/such/wire: expected the program that measures";
    let named = "name it by PUNCTUAL_WIRE";
    refused(&peer, Some("/no/such/wire"), &[missing, "./build", named]);
    let used = UdpSocket::bind(("0.0.0.0", 20_998)).unwrap();
    refused(
        &peer,
        None,
        &["UDP port 20998", "another echo answers there"],
    );
    drop(used);
    for host in ["board", "no-such.invalid"] {
        let remedy = format!("`--peer ssh:{host}:192.168.7.2`");
        let expected = "expected the IPv4 address of another machine";
        refused(&format!("ssh:{host}"), None, &[expected, &remedy]);
    }
    board.write_ssh_config("other_key");
    refused(&peer, None, &["board is not reached", "Permission denied"]);
    assert!(board.runs().is_empty(), "nothing was begun");
    board.until_no_echo_is_left();
}

#[test]
fn a_peer_is_for_frames_of_real_machines() {
    let scratch = Scratch::new();
    let peer = |probe: &[&str], peer: &str, part: &str| {
        let words = [&["run"][..], probe, &["--peer", peer]].concat();
        assert_ends(&scratch.run(&words), 2, &[part]);
    };
    let named = "ssh:board:192.0.2.7";
    peer(&["demo"], "board", "expected ssh:[USER@]HOST");
    peer(&["demo"], "192.0.2.7", "`-p peer=192.0.2.7`");
    let packet = ["--probe", "packet"];
    peer(&packet, named, "--peer is for real machines");
    let timer = ["--probe", "timer", "--bench", "host"];
    peer(&timer, named, "expected a step with the probe packet");
    let one_way = ["--bench", "host", "-p", "way=one-way"];
    peer(
        &[&packet[..], &one_way].concat(),
        named,
        "peer needs way = \"round-trip\"",
    );
}

#[test]
fn a_peer_is_found_by_its_name() {
    if !punctual_skip::host() || !punctual_skip::program("ip") {
        return;
    }
    let _pair = Pair::new();
    let within = ["ip", "netns", "exec", Pair::SPACE];
    let Some(board) = Board::at("198.18.77.2", &within, "") else {
        return;
    };
    let kinds = ["udp", "tcp", "raw"];
    let steps = kinds.map(|kind| {
        format!(
            "[[step]]\nprobe = \"packet\"\nsamples = 20\nkind = \"{kind}\"\nfrom = \"{}\"\n",
            Pair::ENDS[0]
        )
    });
    let suite = board.scratch.suite("peer", &[], &steps.concat());
    let peer = board.bench();
    let place = ["--bench", "host", "--peer", &peer, "--json", "--quiet"];
    let words = [&["run", &suite][..], &place].concat();
    let ended = Ended::of(&mut board.command(&board.scratch, &words));
    assert_eq!(ended.status, Some(0), "{}\n{}", ended.stderr, board.log());
    let run = &runs(&ended.stdout)[0];
    let recordings = run["recordings"].as_array().unwrap();
    assert_eq!(recordings.len(), kinds.len(), "{}", run["unsupported"]);
    for recording in recordings {
        assert_eq!(recording["settings"]["to"], "198.18.77.2");
        assert_eq!(finding(recording, "received"), 30, "{recording}");
    }
    board.until_no_echo_is_left();
}
