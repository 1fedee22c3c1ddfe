// SPDX-License-Identifier: MIT OR Apache-2.0
//! A peer: the machine at the other end of the probe `packet`, on which `punctual-wire echo`
//! answers while a subject is measured.
//!
//! The echo has a connection of its own, and ends with it. Both sides speak now and then, so that
//! each notices the loss of the other, also where no packet tells of it.

use std::fmt;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::{ChildStdin, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use punctual_model::{MachineRecord, Plan};

use super::client::{Client, End};
use super::route::{Fault, VARIABLE, named};
use super::{Board, Destination, Error, Route, about_port, shell};
use crate::error::RunError;
use crate::processor::Processor;
use crate::system::{Afterwards, Listener, RunEnding, SystemUnderTest};

/// Keeps a program on the peer, and tells who is there.
const ECHO: &str = include_str!("echo.sh");

/// The list of the local sockets of the peer: one of them tells that a run measures there.
const LOCAL_SOCKETS: &str = "/proc/net/unix";

/// The form in which users name a peer.
const FORM: &str = "ssh:[USER@]HOST[:/DIRECTORY][:ADDRESS]";

/// The words by which the echo says that it answers frames.
const ANSWERS: &str = "punctual-wire: echo at ";

/// The answer of the peer's shell to each of our lines.
const ALIVE: &str = "alive";

/// The prefix of the program's errors.
const PREFIX: &str = "punctual-target: ";

/// The interval at which the peer is told that somebody is here.
const BEAT: Duration = Duration::from_secs(20);

/// A peer that says nothing for this long is lost.
const QUIET: Duration = Duration::from_secs(60);

/// The silence after which the echo ends there. By then this side has noticed the loss.
const PATIENCE: Duration = Duration::from_secs(90);

/// The time that it may take to connect and to begin.
const FIRST: Duration = Duration::from_secs(90);

/// The interval between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// The longest line that is read, in bytes.
const LINE: u64 = 4 << 10;

/// A machine that answers frames, as `--peer` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    destination: Destination,
    /// The address to which frames go; `None` for the one by which `ssh` reaches the machine.
    address: Option<Ipv4Addr>,
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.parse::<Ipv4Addr>().is_ok() {
            return Err(format!(
                "expected {FORM}, found \"{text}\": `-p peer={text}` measures to a machine where \
                 `punctual-wire echo` answers already"
            ));
        }
        let expected = || format!("expected {FORM}, found \"{text}\"");
        let named = text.strip_prefix("ssh:").ok_or_else(expected)?;
        let behind = named.rsplit_once(':');
        let behind = behind.and_then(|(host, last)| Some((host, last.parse::<Ipv4Addr>().ok()?)));
        let (host, address) = match behind {
            Some((host, address)) => (host, Some(address)),
            None => (named, None),
        };
        let destination: Result<Destination, String> = host.parse();
        Ok(Self {
            destination: destination.map_err(|_| expected() + &about_port(host))?,
            address,
        })
    }
}

/// The form that `--peer` takes.
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ssh:{}", self.destination)?;
        match self.address {
            Some(address) => write!(f, ":{address}"),
            None => Ok(()),
        }
    }
}

impl Peer {
    /// The address to which frames go. If none is named, it is the host's, as `ssh` would look it
    /// up.
    pub fn address(&self) -> Result<Ipv4Addr, Error> {
        let host = &*self.destination.host;
        let name = host.rsplit_once('@').map_or(host, |(_, name)| name);
        // No other machine is reached by the loopback interface, where tunnels begin.
        let literal = name.parse::<Ipv4Addr>().ok();
        let literal = literal.filter(|address| !address.is_loopback());
        match self.address.or(literal) {
            Some(address) => Ok(address),
            None => self.looked_up(),
        }
    }

    fn looked_up(&self) -> Result<Ipv4Addr, Error> {
        let none = |said: String| Error::NoAddress {
            peer: self.to_string(),
            said,
        };
        let route = self.route();
        let mut command = named(VARIABLE, "ssh");
        command
            .args(["-G", "--", &self.destination.host])
            .stdin(Stdio::null());
        let output = command.output();
        let output = output.map_err(|error| route.no_client(&command, &error))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(none(route.complaint(&stderr)));
        }
        let settings = String::from_utf8_lossy(&output.stdout);
        let name = host_name(&settings);
        let name = name.ok_or_else(|| none("`ssh -G` tells no hostname".to_owned()))?;
        let all = (name, 0).to_socket_addrs();
        let mut all = all.map_err(|error| none(format!("{name}: {error}")))?;
        let found = all.find_map(|place| match place {
            SocketAddr::V4(place) => Some(*place.ip()).filter(|address| !address.is_loopback()),
            SocketAddr::V6(_) => None,
        });
        found.ok_or_else(|| none(format!("{name} is this machine, or has no such address")))
    }

    fn route(&self) -> Route {
        Route::Ssh(self.destination.clone())
    }
}

/// The host in the output of `ssh -G`.
fn host_name(settings: &str) -> Option<&str> {
    let mut lines = settings.lines();
    lines.find_map(|line| line.strip_prefix("hostname "))
}

/// The reason why frames cannot be sent from a machine on which an echo answers.
pub(crate) const OWN_ECHO: &str = "expected no `punctual-wire echo` on the machine that measures, \
     found one (UDP port 20998): it and the peer would send each frame to and fro for ever: end it";

/// Returns true if a plan sends frames to a peer whose answers an echo on the sending machine would
/// send back: those that have no port.
pub(crate) fn sends_frames(plan: &str) -> bool {
    let Ok(plan) = toml::from_str::<Plan>(plan) else {
        // The target says what is wrong with it.
        return false;
    };
    plan.steps.iter().any(|step| {
        let kind = step.params.get("kind").and_then(toml::Value::as_str);
        let has_port = matches!(kind, Some("udp" | "tcp" | "icmp"));
        let is_to_peer = step.probe == "packet" && step.params.contains_key("peer");
        is_to_peer && !has_port && !step.skip
    })
}

/// Returns true if a table like `/proc/net/udp` has the socket of an echo: port 20998 of every
/// address.
pub(crate) fn has_echo(table: &str) -> bool {
    let mut places = table.lines().map(|line| line.split_whitespace().nth(1));
    places.any(|place| place == Some("00000000:5206"))
}

/// A subject, and a peer that answers its frames while this exists.
pub struct AnsweredSystem {
    system: Box<dyn SystemUnderTest>,
    /// The peer, as a machine that has the program on it.
    peer: Board,
    echo: Mutex<Echo>,
}

impl AnsweredSystem {
    /// Puts the program on the peer unless it is there, and has it answer. `wire` returns the path
    /// on this machine of the program for a processor.
    pub fn begin(
        system: Box<dyn SystemUnderTest>,
        peer: &Peer,
        wire: impl Fn(Processor) -> PathBuf,
        cancel: &AtomicBool,
    ) -> Result<Self, Error> {
        let peer = Board::reach(&peer.route(), wire, Duration::ZERO, cancel)?;
        let echo = Mutex::new(Echo::begin(&peer, cancel)?);
        Ok(Self { system, peer, echo })
    }

    /// Begins the echo anew if it has ended since the last run.
    fn renew(&self, echo: &mut Echo, cancel: &AtomicBool) -> Result<(), Error> {
        if echo.lost().is_some() {
            *echo = Echo::begin(&self.peer, cancel)?;
        }
        Ok(())
    }
}

impl SystemUnderTest for AnsweredSystem {
    fn machine(&self) -> MachineRecord {
        self.system.machine()
    }

    fn run(&self, plan: &str, on: Listener, cancel: &AtomicBool) -> RunEnding {
        let mut echo = self.echo.lock().unwrap_or_else(PoisonError::into_inner);
        let echo = &mut *echo;
        if let Err(error) = self.renew(echo, cancel) {
            return not_begun(error);
        }
        let stop = &AtomicBool::new(false);
        let (over, is_over) = mpsc::channel::<()>();
        let (mut ending, lost) = thread::scope(|scope| {
            let watch = scope.spawn(move || echo.watch(cancel, stop, &is_over));
            let ending = self.system.run(plan, on, stop);
            drop(over);
            (ending, watch.join().ok().flatten())
        });
        let is_asked_for = cancel.load(Ordering::SeqCst);
        let ended_by_loss = matches!(ending.result, Ok(()) | Err(RunError::Interrupted));
        if let Some(error) = lost.filter(|_| ended_by_loss && !is_asked_for) {
            ending.result = Err(RunError::bench(error));
        }
        ending
    }
}

/// The ending of a run that was not begun, because the peer does not answer.
fn not_begun(error: Error) -> RunEnding {
    RunEnding {
        console: String::new(),
        preparing: Duration::ZERO,
        measuring: Duration::ZERO,
        result: Err(error.into()),
        afterwards: Afterwards::default(),
    }
}

/// A line of the peer, and when it came: a line that nobody has looked at yet is no news.
type Line = (Instant, String);

/// The echo on a peer. It ends when this is dropped.
struct Echo {
    route: Route,
    /// The other end is the thread that writes to the peer's shell: at once if something is sent,
    /// and no more after this is dropped.
    beats: Option<Sender<()>>,
    client: Client,
    lines: Receiver<Line>,
    complaints: Option<JoinHandle<String>>,
    /// The last line of the program, but for the one that tells that it answers.
    said: String,
    /// The time of the last line.
    heard: Instant,
}

impl Echo {
    /// Begins the echo, and waits until it answers.
    fn begin(peer: &Board, cancel: &AtomicBool) -> Result<Self, Error> {
        let patience = PATIENCE.as_secs().to_string();
        let script = ["sh", "-c", ECHO, "punctual", &*patience, LOCAL_SOCKETS];
        let words = [&script[..], &[&*peer.program, "echo"]].concat();
        let mut command = shell::command(&peer.route, &words);
        command.stdin(Stdio::piped());
        // Asked, it ends when the echo has.
        let mut client = Client::start(&mut command, End::Asked)
            .map_err(|error| peer.route.no_client(&command, &error))?;
        let (sender, lines) = mpsc::sync_channel(64);
        if let Some(stdout) = client.child.stdout.take() {
            thread::spawn(move || pass_on(stdout, &sender));
        }
        let complaints = client.complaints();
        let (beats, is_over) = mpsc::channel();
        if let Some(input) = client.child.stdin.take() {
            thread::spawn(move || beat(input, &is_over));
        }
        let mut echo = Self {
            route: peer.route.clone(),
            beats: Some(beats),
            client,
            lines,
            complaints,
            said: String::new(),
            heard: Instant::now(),
        };
        echo.wait(cancel)?;
        Ok(echo)
    }

    /// Waits until it answers.
    fn wait(&mut self, cancel: &AtomicBool) -> Result<(), Error> {
        let begun = Instant::now();
        loop {
            match self.lines.recv_timeout(LOOK) {
                // A start-up file may have begun the line.
                Ok((at, line)) if line.contains(ANSWERS) => {
                    self.heard = at;
                    return Ok(());
                }
                Ok(line) => self.hear(&line),
                Err(RecvTimeoutError::Timeout) if cancel.load(Ordering::SeqCst) => {
                    return Err(Error::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if begun.elapsed() < FIRST => {}
                Err(_) => return Err(self.refusal()),
            }
        }
    }

    /// Has the subject end (`stop`) when the peer answers no more, and returns the reason; or when
    /// somebody asks for the end (`cancel`). Otherwise it asks the peer once more when the sender
    /// of `is_over` is dropped.
    fn watch(
        &mut self,
        cancel: &AtomicBool,
        stop: &AtomicBool,
        is_over: &Receiver<()>,
    ) -> Option<Error> {
        while is_over.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            let lost = self.lost();
            if lost.is_some() || cancel.load(Ordering::SeqCst) {
                stop.store(true, Ordering::SeqCst);
                return lost;
            }
        }
        self.lost_at_last(cancel)
    }

    /// Asks for a sign of life, and returns the reason if none comes. A refused frame may end a
    /// subject before this side notices that the peer has gone.
    fn lost_at_last(&mut self, cancel: &AtomicBool) -> Option<Error> {
        let asked = Instant::now();
        if let Some(beats) = &self.beats {
            let _ = beats.send(());
        }
        loop {
            let lost = self.lost();
            if lost.is_some() || self.heard > asked || cancel.load(Ordering::SeqCst) {
                return lost;
            }
            thread::sleep(LOOK);
        }
    }

    /// The reason why it answers no more; `None` if it does answer.
    fn lost(&mut self) -> Option<Error> {
        while let Ok(line) = self.lines.try_recv() {
            self.hear(&line);
        }
        let has_ended = !matches!(self.client.child.try_wait(), Ok(None));
        if !has_ended && self.heard.elapsed() < QUIET {
            return None;
        }
        let (_, said) = self.end();
        let said = if has_ended {
            said
        } else {
            "it says nothing any more".to_owned()
        };
        let host = self.route.name().to_owned();
        Some(Error::EchoEnded { host, said })
    }

    /// The reason why it does not begin to answer.
    fn refusal(&mut self) -> Error {
        let host = self.route.name().to_owned();
        match self.end() {
            (Fault::Board, said) => {
                let remedy = remedy(&said);
                Error::NoEcho { host, said, remedy }
            }
            (_, said) => Error::Unreachable { host, said },
        }
    }

    fn hear(&mut self, (at, line): &Line) {
        self.heard = *at;
        let line = line.strip_prefix(PREFIX).unwrap_or(line);
        if !line.is_empty() && line != ALIVE {
            line.clone_into(&mut self.said);
        }
    }

    /// Ends it, and waits until it has ended. Returns the location of the fault if it had ended by
    /// itself, and the last complaint.
    fn end(&mut self) -> (Fault, String) {
        drop(self.beats.take());
        self.client.end();
        while let Ok(line) = self.lines.recv_timeout(LOOK) {
            self.hear(&line);
        }
        let complaints = self.complaints.take().map(JoinHandle::join);
        let complaints = complaints.and_then(Result::ok).unwrap_or_default();
        let status = self.client.child.wait().ok();
        match self.route.fault(status.and_then(|status| status.code())) {
            Fault::Board if !self.said.is_empty() => (Fault::Board, self.said.clone()),
            fault => (fault, self.route.complaint(&complaints)),
        }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // The client, which is dropped next, waits for the echo, and that ends with its input.
        drop(self.beats.take());
    }
}

/// The remedy for an echo that does not begin, by what it says; empty if none is known.
fn remedy(said: &str) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if has(&["in use"]) {
        "; another echo answers there: wait until its measurement is over, or end it"
    } else if has(&["is measuring"]) {
        "; an echo would disturb it: wait until it has ended, or name another machine"
    } else if has(&["not permitted", "denied", "refused"]) {
        "; it needs root there: `--peer ssh:root@HOST`"
    } else {
        ""
    }
}

/// Tells the peer now and then, and when asked, that somebody is here, until the other end of the
/// channel is dropped.
fn beat(mut input: ChildStdin, asked: &Receiver<()>) {
    let goes_on = || asked.recv_timeout(BEAT) != Err(RecvTimeoutError::Disconnected);
    while goes_on() && input.write_all(b"\n").is_ok() {}
}

/// Passes on the peer's lines until the connection ends.
fn pass_on(from: impl Read, sender: &SyncSender<Line>) {
    let mut from = BufReader::new(from);
    loop {
        let mut line = Vec::new();
        match from.by_ref().take(LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&line).trim().to_owned();
        if sender.send((Instant::now(), line)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, ChildStdout, Command};

    use super::*;

    #[test]
    fn a_peer_is_a_destination_and_the_address_of_another_link() {
        let parse = |text: &str| {
            let found = Peer::from_str(text)?;
            assert_eq!(found.to_string(), text);
            let Destination { host, directory } = found.destination;
            let address = found.address.map(|address| address.to_string());
            Ok::<_, String>((host, directory, address))
        };
        let of = |host: &str, directory: Option<&str>, address: Option<&str>| {
            let [directory, address] = [directory, address].map(|word| word.map(str::to_owned));
            Ok((host.to_owned(), directory, address))
        };
        let far = Some("192.168.7.2");
        assert_eq!(parse("ssh:board"), of("board", None, None));
        let parsed = parse("ssh:root@192.0.2.7");
        assert_eq!(parsed, of("root@192.0.2.7", None, None));
        let parsed = parse("ssh:root@board:192.168.7.2");
        assert_eq!(parsed, of("root@board", None, far));
        let parsed = parse("ssh:192.0.2.7:192.168.7.2");
        assert_eq!(parsed, of("192.0.2.7", None, far));
        let parsed = parse("ssh:board:/data/x:192.168.7.2");
        assert_eq!(parsed, of("board", Some("/data/x"), far));
        let parsed = parse("ssh:board:/data/x");
        assert_eq!(parsed, of("board", Some("/data/x"), None));
        let parsed = parse("ssh:me@[fe80::1]:192.168.7.2");
        assert_eq!(parsed, of("me@fe80::1", None, far));
        for wrong in [
            "",
            "board",
            "ssh:",
            "ssh::192.168.7.2",
            "ssh:board:192.168.7",
            "ssh:-oProxyCommand=x",
            "labgrid:rack1",
        ] {
            let error = parse(wrong).unwrap_err();
            let expected = format!("expected {FORM}, found \"{wrong}\"");
            assert_eq!(error, expected);
        }
        let error = parse("192.0.2.7").unwrap_err();
        assert!(error.contains("`-p peer=192.0.2.7`"), "{error}");
    }

    #[test]
    fn an_address_that_is_named_is_not_looked_up() {
        let address = |text: &str| {
            let peer: Peer = text.parse().unwrap();
            peer.address().unwrap().to_string()
        };
        assert_eq!(address("ssh:root@192.0.2.7"), "192.0.2.7");
        assert_eq!(address("ssh:192.0.2.7:/data"), "192.0.2.7");
        assert_eq!(address("ssh:192.0.2.7:192.168.7.2"), "192.168.7.2");
        assert_eq!(
            address("ssh:root@no-such.invalid:192.168.7.2"),
            "192.168.7.2"
        );
        assert_eq!(address("ssh:root@127.0.0.1:127.0.0.1"), "127.0.0.1");
    }

    #[test]
    fn this_machine_is_no_other_however_it_is_named() {
        for text in ["ssh:127.0.0.1", "ssh:root@127.0.0.1:/data"] {
            let peer: Peer = text.parse().unwrap();
            let error = peer.address().unwrap_err();
            // The latter without OpenSSH's client.
            let is_refused = matches!(error, Error::NoAddress { .. } | Error::NoSsh { .. });
            assert!(is_refused, "{error}");
        }
    }

    #[test]
    fn a_plan_tells_whether_an_echo_would_take_its_frames() {
        let sends = |rest: &str| sends_frames(&format!("seed = 1\n[[step]]\n{rest}"));
        let to_peer = "probe = \"packet\"\npeer = \"192.0.2.7\"\n";
        assert!(sends(to_peer));
        for (kind, expected) in [
            ("raw", true),
            ("ptp", true),
            ("udp", false),
            ("tcp", false),
            ("icmp", false),
        ] {
            let step = format!("{to_peer}kind = \"{kind}\"\n");
            assert_eq!(sends(&step), expected, "{kind}");
        }
        assert!(!sends("probe = \"packet\"\n"));
        assert!(!sends(&format!("{to_peer}skip = true\n")));
    }

    #[test]
    fn an_echo_is_found_by_its_socket() {
        let table = |place: &str| {
            format!(
                "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   \
                 uid  timeout inode ref pointer drops\n 1463: {place} 07 00000000:00000000 \
                 00:00000000 00000000     0        0 21745 2 0000000000000000 0\n"
            )
        };
        assert!(has_echo(&table("00000000:5206 00000000:0000")));
        assert!(!has_echo(&table("0100007F:A3C1 0100007F:5206")));
        assert!(!has_echo(&table("00000000:0044 00000000:0000")));
        assert!(!has_echo(""));
    }

    #[test]
    fn the_host_is_the_one_that_ssh_would_reach() {
        let settings = "host board\nuser root\nhostname 192.0.2.7\nport 22\n";
        assert_eq!(host_name(settings), Some("192.0.2.7"));
        assert_eq!(host_name("hostnames x\n"), None);
    }

    #[test]
    fn an_echo_that_does_not_begin_has_a_remedy() {
        let used = remedy("UDP port 20998: Address already in use (os error 98)");
        assert!(used.contains("another echo"), "{used}");
        let unprivileged = remedy("raw frames: Operation not permitted (os error 1)");
        assert!(unprivileged.contains("root"), "{unprivileged}");
        let measured = remedy("another run is measuring there");
        assert!(measured.contains("another machine"), "{measured}");
        assert_eq!(remedy("cpu7: there is no such CPU"), "");
    }

    /// The local sockets of a machine on which nobody measures.
    const NOBODY: &str = "/dev/null";

    /// The script with a program of `sh`, and its output.
    fn begin(patience: &str, program: &str) -> (Child, BufReader<ChildStdout>) {
        begin_beside(NOBODY, patience, program)
    }

    /// The same where these are the local sockets.
    fn begin_beside(
        sockets: &str,
        patience: &str,
        program: &str,
    ) -> (Child, BufReader<ChildStdout>) {
        let mut child = Command::new("sh")
            .args(["-c", ECHO, "punctual", patience, sockets])
            .args(["sh", "-c", program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        (child, said)
    }

    /// The exit status of a shell for a program that SIGTERM has ended.
    const ENDED: Option<i32> = Some(128 + 15);

    #[test]
    fn the_program_ends_with_its_input_and_each_line_is_answered() {
        let (mut child, mut said) = begin("600", "echo up >&2; exec sleep 600");
        let mut input = child.stdin.take().unwrap();
        let mut next = || {
            let mut line = String::new();
            said.read_line(&mut line).unwrap();
            line
        };
        assert_eq!(next(), "up\n");
        for _ in 0..3 {
            input.write_all(b"\n").unwrap();
            assert_eq!(next(), "alive\n");
        }
        drop(input);
        assert_eq!(child.wait().unwrap().code(), ENDED);
        assert_eq!(next(), "", "nothing that it has started is left");
    }

    #[test]
    fn the_program_ends_if_nobody_is_heard() {
        let (mut child, _said) = begin("1", "exec sleep 600");
        let _input = child.stdin.take();
        assert_eq!(child.wait().unwrap().code(), ENDED);
    }

    #[test]
    fn what_guards_the_program_ends_where_nobody_listens() {
        // Another's guard, of a test that was killed, is none of these.
        let silence = &format!("600.{}", std::process::id());
        let guards = || {
            let all = std::fs::read_dir("/proc").unwrap().flatten();
            let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
            let guard = format!("sleep\0{silence}\0").into_bytes();
            lines.filter(|line| *line == guard).count()
        };
        let mut child = Command::new("sh")
            .args(["-c", ECHO, "punctual", silence, NOBODY, "sleep", "600"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while guards() == 0 {
            thread::sleep(LOOK);
        }
        // The other side is lost as with a connection: all at once.
        drop((child.stdout.take(), child.stderr.take(), child.stdin.take()));
        assert_eq!(child.wait().unwrap().code(), ENDED);
        while guards() > 0 {
            thread::sleep(LOOK);
        }
    }

    #[test]
    fn a_machine_that_is_being_measured_is_no_peer() {
        let sockets = tempfile::NamedTempFile::new().unwrap();
        let line = "0000000000000000: 00000002 00000000 00010000 0001 01 41721 @punctual-host\n";
        std::fs::write(sockets.path(), line).unwrap();
        let (mut child, mut said) =
            begin_beside(&sockets.path().display().to_string(), "600", "echo begun");
        let mut all = String::new();
        said.read_to_string(&mut all).unwrap();
        assert_eq!(all, "another run is measuring there\n");
        assert_eq!(child.wait().unwrap().code(), Some(1));
    }

    #[test]
    fn a_program_that_fails_is_not_waited_for() {
        let (mut child, mut said) = begin("600", "echo no; exit 7");
        let _input = child.stdin.take();
        assert_eq!(child.wait().unwrap().code(), Some(7));
        let mut all = String::new();
        said.read_to_string(&mut all).unwrap();
        assert_eq!(all, "no\n");
    }
}
