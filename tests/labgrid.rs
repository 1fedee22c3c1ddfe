// SPDX-License-Identifier: MIT OR Apache-2.0
//! A place of labgrid: a real coordinator and a real exporter, on loopback, and a board that is a
//! guest of QEMU, whose power is switched by a labgrid driver.
//!
//! `PUNCTUAL_LABGRID_PROGRAMS` is the directory that `tools/labgrid` prints. Nothing here asserts
//! any duration.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use punctual_bench::Processor;
use punctual_model::Architecture;
use punctual_tests::board::{Board, DIRECTORY};
use punctual_tests::{Ended, Scratch, assert_has, runs, until, until_samples_are_kept};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// More samples than any run here takes.
const ENDLESS: u64 = 100_000_000;

/// The measuring user, as labgrid names it.
const OWN: &str = "desk/ann";

/// A strategy as labs write them: it uses the drivers that the place has.
const STRATEGY: &str = r#"
import attr
from labgrid import target_factory
from labgrid.strategy import Strategy, StrategyError

@target_factory.reg_driver
@attr.s(eq=False)
class BoardStrategy(Strategy):
    bindings = {"power": "PowerProtocol"}

    def transition(self, status):
        if status != "booted":
            raise StrategyError(f"there is no state {status}")
        self.target.activate(self.power)
        self.power.cycle()
"#;

/// A process that ends with its owner.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A coordinator, and an exporter with its exports.
struct Lab {
    scratch: Scratch,
    programs: PathBuf,
    address: String,
    exporter: Option<Process>,
    _coordinator: Process,
}

/// A port on which nobody listens.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

impl Lab {
    /// Starts a lab. `None` if that is not possible; the test is then skipped.
    fn new() -> Option<Self> {
        let programs = std::env::var_os("PUNCTUAL_LABGRID_PROGRAMS").map(PathBuf::from);
        let programs = programs.filter(|programs| programs.join("labgrid-client").is_file());
        let Some(programs) = programs else {
            punctual_skip::skip("PUNCTUAL_LABGRID_PROGRAMS names no directory with labgrid");
            return None;
        };
        let mut scratch = Scratch::new();
        scratch.look_first_in(&programs);
        let address = format!("127.0.0.1:{}", free_port());
        let log = File::create(scratch.path("coordinator.log")).unwrap();
        let coordinator = Command::new(programs.join("labgrid-coordinator"))
            .args(["--listen", &address])
            .current_dir(scratch.path("."))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let lab = Self {
            scratch,
            programs,
            address,
            exporter: None,
            _coordinator: Process(coordinator),
        };
        until("the coordinator answers", || {
            lab.client(OWN, &["places"]).status == Some(0)
        });
        Some(lab)
    }

    /// Exports resources, and makes a place of each of these names, with the group of its name.
    fn export(&mut self, resources: &str, places: &[&str]) {
        let file = self.scratch.file("exports.yaml", resources);
        let log = File::create(self.scratch.path("exporter.log")).unwrap();
        let exporter = Command::new(self.programs.join("labgrid-exporter"))
            .args(["--name", "lab", &file])
            .env("LG_COORDINATOR", &self.address)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        self.exporter = Some(Process(exporter.unwrap()));
        for place in places {
            self.manage(&["-p", place, "create"]);
            let all = format!("lab/{place}/*");
            self.manage(&["-p", place, "add-match", &all]);
            until("its resources are there", || {
                let listed = self.client(OWN, &["resources", &all]);
                listed.stdout.contains(&format!("lab/{place}/"))
            });
        }
    }

    /// Prepares a command to run as a user of labgrid, `HOST/USER`.
    fn prepare<'c>(&self, command: &'c mut Command, user: &str) -> &'c mut Command {
        let (host, user) = user.split_once('/').unwrap();
        self.scratch.prepare(command);
        for name in ["LG_ENV", "LG_PLACE", "LG_STATE", "LG_INITIAL_STATE"] {
            command.env_remove(name);
        }
        command
            .env("XDG_CACHE_HOME", self.scratch.path("cache"))
            .env("LG_COORDINATOR", &self.address)
            .env("LG_HOSTNAME", host)
            .env("LG_USERNAME", user)
            // What labgrid leaves behind when it is killed.
            .env("TMPDIR", self.scratch.path("."))
            .env_remove("SSH_AUTH_SOCK")
    }

    fn client(&self, user: &str, arguments: &[&str]) -> Ended {
        let mut command = Command::new(self.programs.join("labgrid-client"));
        Ended::of(self.prepare(&mut command, user).args(arguments))
    }

    fn manage(&self, arguments: &[&str]) {
        let ended = self.client(OWN, arguments);
        assert_eq!(ended.status, Some(0), "{arguments:?}: {}", ended.stderr);
    }

    /// The user who holds a place.
    fn holder(&self, place: &str) -> String {
        let shown = self.client(OWN, &["-p", place, "show"]).stdout;
        let mut lines = shown.lines();
        let holder = lines.find_map(|line| line.strip_prefix("  acquired: "));
        holder.unwrap_or_else(|| panic!("{shown}")).to_owned()
    }

    fn punctual(&self, arguments: &[&str]) -> Command {
        let mut command = self.scratch.punctual(arguments);
        self.prepare(&mut command, OWN);
        command
    }

    /// The message of a refused run at this place.
    fn refused(&self, place: &str, more: &[&str]) -> String {
        let bench = format!("labgrid:{place}");
        let arguments = ["run", "demo", "--bench", &bench];
        let ended = Ended::of(&mut self.punctual(&[&arguments[..], more].concat()));
        assert_eq!(ended.status, Some(1), "{}", ended.stderr);
        ended.stderr
    }
}

/// A board, on or off.
type Shared = Arc<Mutex<Board>>;

fn lock(board: &Shared) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A relay of the kind that labgrid calls `simplerest`, which switches the board's power.
struct Relay {
    port: u16,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    fn new(board: Shared) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                if let Ok(stream) = stream {
                    serve(stream, &board);
                }
            }
        });
        Self {
            port,
            is_over,
            thread: Some(thread),
        }
    }

    fn export(&self) -> String {
        format!(
            "  NetworkPowerPort:\n    model: simplerest\n    host: \
             'http://127.0.0.1:{}/relay/{{index}}/{{value}}'\n    index: 0\n",
            self.port
        )
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Answers one request that switches the power.
fn serve(mut stream: TcpStream, board: &Shared) {
    let mut request = BufReader::new(stream.try_clone().unwrap());
    let (mut first, mut line) = (String::new(), String::new());
    let _ = request.read_line(&mut first);
    while request.read_line(&mut line).is_ok_and(|length| length > 2) {
        line.clear();
    }
    let mut board = lock(board);
    match first.split_whitespace().nth(1) {
        Some("/relay/0/1") if !board.has_power() => board.give_power(),
        Some("/relay/0/0") if board.has_power() => board.pull_power(),
        _ => {}
    }
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let _ = stream.write_all(answer);
}

/// A lab with one board, at the place `board`.
struct Rig {
    lab: Lab,
    board: Shared,
    _relay: Relay,
    _agent: Process,
}

impl Rig {
    /// A new rig, with the board on. `None` if that is not possible; the test is then skipped.
    fn new() -> Option<Self> {
        let mut lab = Lab::new()?;
        if !["ssh-agent", "ssh-add"]
            .into_iter()
            .all(punctual_skip::program)
        {
            return None;
        }
        let board = Board::new(Processor::OfGuests(Architecture::Amd64))?;
        let (port, key) = (board.port(), board.key());
        let board = Arc::new(Mutex::new(board));
        let relay = Relay::new(Arc::clone(&board));
        let service = format!(
            "board:\n  NetworkService:\n    address: 127.0.0.1\n    port: {port}\n    \
             username: root\n{}",
            relay.export()
        );
        lab.export(&service, &["board"]);
        let socket = lab.scratch.path("agent");
        let agent = Command::new("ssh-agent")
            .args(["-D", "-a"])
            .arg(&socket)
            .stdout(Stdio::null())
            .spawn();
        let agent = Process(agent.unwrap());
        until("the agent has the key", || {
            let mut add = Command::new("ssh-add");
            add.arg("-q").arg(&key).env("SSH_AUTH_SOCK", &socket);
            Ended::of(&mut add).status == Some(0)
        });
        Some(Self {
            lab,
            board,
            _relay: relay,
            _agent: agent,
        })
    }

    fn punctual(&self, arguments: &[&str]) -> Command {
        let mut command = self.lab.punctual(arguments);
        command.env("SSH_AUTH_SOCK", self.lab.scratch.path("agent"));
        command
    }

    /// `punctual run` with this many samples, one each millisecond.
    fn timer(&self, samples: u64, more: &[&str]) -> Command {
        let (bench, samples) = (bench(), format!("samples={samples}"));
        let probe = ["run", "--probe", "timer", "-p", &samples, "-p", "cpus=[0]"];
        let bench = ["-p", "interval_us=1000", "--bench", &bench];
        self.punctual(&[&probe[..], &bench, &["--store-every", "1"], more].concat())
    }

    /// Runs it to its end.
    fn run(&self, samples: u64, more: &[&str]) -> Ended {
        Ended::of(&mut self.timer(samples, more))
    }

    /// Begins it, and waits until the job is at work.
    fn begin(&self, samples: u64, more: &[&str]) -> Process {
        let mut command = self.timer(samples, more);
        let stderr = File::create(self.lab.scratch.path("stderr")).unwrap();
        command
            .stdout(Stdio::null())
            .stderr(stderr)
            .process_group(0);
        let mut process = Process(command.spawn().unwrap());
        until("a job runs", || {
            let ended = process.0.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {}", self.stderr());
            let stream = self
                .board()
                .bytes(&format!("cat {DIRECTORY}/jobs/*/stream"));
            stream.is_some_and(|stream| !stream.is_empty())
        });
        process
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.lab.scratch.path("stderr")).unwrap_or_default()
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        lock(&self.board)
    }

    fn boot_id(&self) -> String {
        self.board().answer("cat /proc/sys/kernel/random/boot_id")
    }

    fn show(&self, id: &str) -> Value {
        let shown = Ended::of(&mut self.punctual(&["show", id, "--json", "--raw"]));
        assert_eq!(shown.status, Some(0), "{}", shown.stderr);
        runs(&shown.stdout).remove(0)
    }

    /// Checks that nobody has the place, and nothing but the target is left on the board.
    fn assert_given_back(&self) {
        assert_eq!(self.lab.holder("board"), "None");
        let left = self.board().answer(&format!("ls {DIRECTORY}"));
        assert_eq!(left.lines().count(), 1, "{left}");
        assert!(left.starts_with("target-"), "{left}");
    }
}

fn bench() -> String {
    format!("labgrid:board:{DIRECTORY}")
}

fn send(process: &Process, signal: Signal) {
    let pid = Pid::from_raw(process.0.id() as i32).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Waits for the end of a process; returns its status.
fn end_of(process: &mut Process) -> Option<i32> {
    let mut status = None;
    until("the run ends", || {
        status = process.0.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap().code()
}

/// Checks that each sample of a run was taken, and is stored once.
fn assert_whole(run: &Value, samples: u64) {
    assert_eq!(run["state"], "finished", "{}", run["error"]);
    let recording = &run["recordings"][0];
    assert_eq!(recording["count"], samples);
    assert_eq!(
        recording["samples"].as_array().unwrap().len() as u64,
        samples
    );
}

#[test]
fn what_cannot_be_is_refused_and_said() {
    let Some(mut lab) = Lab::new() else { return };
    let nobody = format!(
        "powered:\n  NetworkPowerPort:\n    model: simplerest\n    host: \
         'http://127.0.0.1:{port}/{{index}}/{{value}}'\n    index: 0\n\
         silent:\n  NetworkService:\n    address: 127.0.0.1\n    port: {port}\n    \
         username: root\n",
        port = free_port()
    );
    lab.export(&nobody, &["powered", "silent"]);

    let said = lab.refused("nowhere", &[]);
    assert_has(&said, &["labgrid:nowhere", "matches nothing"]);
    let said = lab.refused("powered", &["--quiet"]);
    assert_has(&said, &["powered cannot be reached", "NetworkService"]);
    let said = lab.refused("powered", &["--power-cycle"]);
    assert_has(
        &said,
        &["labgrid:powered: its power cannot be switched", "refused"],
    );
    let said = lab.refused("silent", &["--power-cycle"]);
    assert_has(
        &said,
        &["its power cannot be switched", "no compatible resource"],
    );
    let said = lab.refused("silent", &["--labgrid-state", "booted"]);
    assert_has(
        &said,
        &["does not get to the state booted", "configuration file"],
    );
    for place in ["powered", "silent"] {
        assert_eq!(lab.holder(place), "None", "it is given back");
    }

    let mut command = lab.punctual(&["run", "demo", "--bench", "labgrid:silent"]);
    let ended = Ended::of(command.env("LG_SSH_CONNECT_TIMEOUT", "1"));
    assert_eq!(ended.status, Some(1));
    assert_has(
        &ended.stderr,
        &["silent is not reached", "Connection refused"],
    );

    assert_eq!(
        lab.client("couch/bob", &["-p", "silent", "acquire"]).status,
        Some(0)
    );
    let said = lab.refused("silent", &["--power-cycle"]);
    assert_has(
        &said,
        &["labgrid:silent is held by couch/bob", "allow desk/ann"],
    );
    assert_eq!(lab.holder("silent"), "couch/bob");

    let mut command = lab.punctual(&["run", "demo", "--bench", "labgrid:silent"]);
    let nobody = format!("127.0.0.1:{}", free_port());
    let ended = Ended::of(command.env("LG_COORDINATOR", nobody));
    assert_eq!(ended.status, Some(1));
    assert_has(&ended.stderr, &["connect to coordinator", "LG_COORDINATOR"]);
    let mut command = lab.punctual(&["run", "demo", "--bench", "labgrid:silent"]);
    let ended = Ended::of(command.env("PUNCTUAL_LABGRID", "/no/such/client"));
    assert_eq!(ended.status, Some(1));
    assert_has(&ended.stderr, &["/no/such/client", "pip install labgrid"]);
}

#[test]
fn options_for_places_are_for_places() {
    let scratch = Scratch::new();
    for option in [
        &["--power-cycle"][..],
        &["--labgrid-state", "booted"],
        &["--labgrid-env", "lab.yaml"],
    ] {
        for bench in ["host", "virtual"] {
            let arguments = [&["run", "demo", "--bench", bench][..], option].concat();
            let ended = scratch.run(&arguments);
            assert_eq!(ended.status, Some(2), "{}", ended.stderr);
            assert_has(&ended.stderr, &[option[0], "--bench labgrid:PLACE"]);
        }
    }
    let ended = scratch.run(&["run", "demo", "--bench", "labgrid:"]);
    assert_eq!(ended.status, Some(2));
    assert_has(&ended.stderr, &["expected PLACE"]);
}

#[test]
fn a_place_is_acquired_measured_and_given_back() {
    let Some(rig) = Rig::new() else { return };
    measure_and_give_back(&rig);
    ctrl_c_keeps_the_samples_and_gives_it_back(&rig);
}

/// Measures in each way in which a place is named. Leaves four runs in the store.
fn measure_and_give_back(rig: &Rig) {
    let ended = rig.run(500, &["--json", "--raw"]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert_has(&ended.stderr, &["labgrid:board acquired"]);
    let run = &runs(&ended.stdout)[0];
    assert_whole(run, 500);
    assert_eq!(run["subject"]["name"], "board");
    assert_eq!(run["machine"]["host"], "board");
    assert_eq!(run["machine"]["ssh"], bench());
    let release = rig.board().answer("uname -r");
    assert_eq!(run["subject"]["kernel"], release.trim());
    rig.assert_given_back();

    // A part of the name does, as for labgrid-client; the place has its own in the record.
    let part = format!("labgrid:oar:{DIRECTORY}");
    let ten = [
        "run",
        "--probe",
        "timer",
        "-p",
        "samples=10",
        "--quiet",
        "--bench",
    ];
    let ended = Ended::of(&mut rig.punctual(&[&ten[..], &[&part]].concat()));
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stderr, "", "it is quiet");
    assert_eq!(rig.show("r2")["machine"]["ssh"], bench());

    // A reservation names its place.
    rig.lab.manage(&["-p", "board", "set-tags", "kind=pc"]);
    let reserved = rig
        .lab
        .client(OWN, &["reserve", "--wait", "--shell", "kind=pc"]);
    let token = reserved
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("export LG_TOKEN="));
    let token = token.unwrap_or_else(|| panic!("{}{}", reserved.stdout, reserved.stderr));
    let reserved = format!("labgrid:+{token}:{DIRECTORY}");
    let said = Ended::of(&mut rig.punctual(&[&ten[..], &[&reserved]].concat()));
    assert_eq!(said.status, Some(0), "{}", said.stderr);
    assert_eq!(rig.show("r3")["machine"]["ssh"], bench());
    rig.lab.manage(&["cancel-reservation", token]);
    rig.assert_given_back();

    // What the user has acquired stays the user's.
    rig.lab.manage(&["-p", "board", "acquire"]);
    let ended = rig.run(10, &[]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert_has(&ended.stderr, &["was acquired before, and stays so"]);
    assert_eq!(rig.lab.holder("board"), OWN);
    rig.lab.manage(&["-p", "board", "release"]);
    rig.assert_given_back();
}

fn ctrl_c_keeps_the_samples_and_gives_it_back(rig: &Rig) {
    until_samples_are_kept(|number, time| {
        let mut child = rig.begin(ENDLESS, &["--quiet"]);
        thread::sleep(time);
        send(&child, Signal::INT);
        assert_eq!(end_of(&mut child), Some(3), "{}", rig.stderr());
        rig.assert_given_back();
        rig.show(&format!("r{}", number + 5))
    });
}

#[test]
fn a_power_cycle_boots_it_anew() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let Some(rig) = Rig::new() else { return };
    let first = rig.boot_id();
    // However long it takes to boot.
    let patient = ["--patience", "3600"];
    let ended = rig.run(100, &[&patient[..], &["--power-cycle"]].concat());
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert_has(
        &ended.stderr,
        &["switching its power", "waiting until ssh answers"],
    );
    assert_whole(&rig.show("r1"), 100);
    let second = rig.boot_id();
    assert_ne!(first, second);
    rig.assert_given_back();

    // The lab's own strategy, and a key that only its file names.
    rig.lab.scratch.file("strategy.py", STRATEGY);
    let environment = format!(
        "targets:\n  main:\n    resources:\n      RemotePlace:\n        name: board\n    \
         drivers:\n      NetworkPowerDriver: {{}}\n      BoardStrategy: {{}}\n      \
         SSHDriver:\n        keyfile: {}\nimports:\n- strategy.py\n",
        rig.board().key().display()
    );
    let environment = rig.lab.scratch.file("lab.yaml", environment);
    let by_strategy = |state: &str| {
        let more = ["--labgrid-env", &environment, "--labgrid-state", state];
        let mut command = rig.timer(100, &[&patient[..], &more].concat());
        Ended::of(
            command
                .env_remove("SSH_AUTH_SOCK")
                // That it is not heeded where it would spoil what the board says.
                .env("PYTHONUNBUFFERED", "1")
                .env("LG_STATE", "none"),
        )
    };
    let ended = by_strategy("booted");
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert_has(&ended.stderr, &["bringing it to the state booted"]);
    assert_whole(&rig.show("r2"), 100);
    assert_ne!(second, rig.boot_id());
    rig.assert_given_back();
    let ended = by_strategy("flashed");
    assert_eq!(ended.status, Some(1));
    assert_has(
        &ended.stderr,
        &["to the state flashed", "there is no state flashed"],
    );
    rig.assert_given_back();
}

#[test]
fn what_goes_on_there_keeps_its_place_until_it_is_fetched() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let Some(rig) = Rig::new() else { return };
    let boot_id = rig.boot_id();
    let mut child = rig.begin(8_000, &["--quiet"]);
    let said = rig.lab.refused("board", &[]);
    assert_has(&said, &["in use by another run of Punctual"]);
    // The connection is lost, and made again.
    until("a connection was there", || rig.board().kill_sessions() > 0);
    // The workstation is lost, too.
    send(&child, Signal::KILL);
    end_of(&mut child);
    assert_eq!(rig.lab.holder("board"), OWN);
    let ended = rig.run(8_000, &["--resume", "--power-cycle"]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let taken = [
        "left acquired by an earlier run",
        "neither switched nor booted",
    ];
    assert_has(&ended.stderr, &taken);
    assert_whole(&rig.show("r2"), 8_000);
    assert_eq!(rig.boot_id(), boot_id);
    rig.assert_given_back();

    // A connection that is cut is made again, and nothing is lost.
    let mut child = rig.begin(8_000, &["--quiet"]);
    until("a connection was there", || rig.board().kill_sessions() > 0);
    assert_eq!(end_of(&mut child), Some(0), "{}", rig.stderr());
    assert_whole(&rig.show("r3"), 8_000);
    rig.assert_given_back();

    // A board that is not reached any more stays the run's.
    let mut child = rig.begin(ENDLESS, &["--quiet", "--patience", "5"]);
    rig.board().pull_power();
    assert_eq!(end_of(&mut child), Some(1));
    assert_has(
        &rig.stderr(),
        &["has not been reached for 5 s", "stays acquired"],
    );
    assert_eq!(rig.lab.holder("board"), OWN);
    rig.board().switch_on();
    let ended = rig.run(ENDLESS, &["--resume"]);
    assert_eq!(ended.status, Some(1), "{}", ended.stderr);
    assert_eq!(rig.show("r5")["state"], "failed");
    rig.assert_given_back();
}
