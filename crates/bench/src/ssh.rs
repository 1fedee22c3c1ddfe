// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host bench on a board: the target runs in real time on a machine that OpenSSH's client, or
//! labgrid's, reaches.
//!
//! The board needs a POSIX shell and nothing else. The target is copied there under a name derived
//! from its content, and is the other end of the [conversation](punctual_model::board). Each
//! measurement is a job that goes on whatever becomes of the connection. The job's output is copied
//! here, into files as on the other benches, and watched in the same way.

mod client;
mod job;
mod link;
mod modules;
mod peer;
mod route;
mod shell;

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use punctual_kernels::checksum;
use punctual_model::MachineRecord;
use punctual_model::board::{Hello, Refusal};
use punctual_model::machine::HostMachine;

use crate::error::RunError;
use crate::labgrid;
use crate::processor::Processor;
use crate::system::{Afterwards, Listener, RunEnding, SILENCE, SystemUnderTest};
use crate::watch::{Until, Watch};
use crate::workdir::WorkDir;
use job::Job;
use link::Link;
use modules::Modules;

pub(crate) use client::{End, output};
pub use modules::Absence;
pub use peer::{AnsweredSystem, Peer};
pub(crate) use peer::{OWN_ECHO, has_echo, sends_frames};
pub(crate) use route::{Fault, named};
pub use route::{Route, VARIABLE};
pub(crate) use shell::last_line;

/// The pause between two attempts to reach a booting board.
const PAUSE: Duration = Duration::from_millis(500);

/// The output of `uname -s` on a board where the target runs.
const SYSTEM: &str = "Linux";

/// The prefix of every line of Punctual's own from the board: its shell may print more than it is
/// asked.
const MARK: &str = "punctual-board ";

/// Returns the words after [`MARK`] in a line. A start-up file may have printed something before
/// it, such as the title of a terminal, without ending the line.
fn marked(line: &str) -> Option<&str> {
    line.split_once(MARK).map(|(_, words)| words)
}

/// The reason why a board cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `ssh` is missing or does not run.
    #[error(
        "expected OpenSSH's client as {program}, found none that runs ({error}): install it (`apt-get install openssh-client`), or name it by {VARIABLE}"
    )]
    NoSsh {
        /// The command that was looked for.
        program: String,
        /// The error that the system reports.
        error: String,
    },
    /// There is no connection.
    #[error("{host} is not reached: {said}{}", way_in(.said))]
    Unreachable {
        /// The board.
        host: String,
        /// The complaint of its client.
        said: String,
    },
    /// The board's client refuses to connect.
    #[error("{host} cannot be reached: {said}")]
    Refused {
        /// The board.
        host: String,
        /// The complaint of the client.
        said: String,
    },
    /// The run was asked to end before anything was measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
    /// Its place cannot be used.
    #[error(transparent)]
    Place(#[from] labgrid::Error),
    /// The directory on the board cannot be used.
    #[error(
        "{host}: the target cannot be put there: {said} ({bench}:/DIRECTORY names another directory)"
    )]
    Directory {
        /// The board.
        host: String,
        /// The bench, as `--bench` names it.
        bench: String,
        /// The complaint of the board's shell.
        said: String,
    },
    /// The target does not run on the board.
    #[error(
        "{host}: the target does not run in {directory}: {said}: is that mounted noexec? ({bench}:/DIRECTORY names another directory)"
    )]
    Target {
        /// The board.
        host: String,
        /// The bench, as `--bench` names it.
        bench: String,
        /// The directory of the target.
        directory: String,
        /// The complaint of the board's shell.
        said: String,
    },
    /// No target exists for such a machine.
    #[error(
        "{host}: expected {}, for which there is a target, found {found}",
        known()
    )]
    Architecture {
        /// The board.
        host: String,
        /// The kind of machine that it reports.
        found: String,
    },
    /// The target for that machine is missing on this machine.
    #[error(
        "{host} is {found}: expected the target for it as {}, found none: build it with `./build --targets {}`",
        .path.display(),
        .found.machine()
    )]
    NoTarget {
        /// The board.
        host: String,
        /// The processor of the board.
        found: Processor,
        /// The path where the target should be.
        path: PathBuf,
    },
    /// The board's shell does not answer as a shell does.
    #[error("{host}: expected a POSIX shell, found one that answers {found:?}")]
    Shell {
        /// The board.
        host: String,
        /// The answer.
        found: String,
    },
    /// The target on the board differs from the one that was copied.
    #[error("{host}: the target in {directory} is damaged, also after it was copied anew")]
    Damaged {
        /// The board.
        host: String,
        /// The directory of the target.
        directory: String,
    },
    /// A file of this machine cannot be used.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The connection was lost and could not be made again.
    #[error(
        "the board has not been reached for {seconds} s ({why}); what it measures goes on there: the same command with --resume fetches it"
    )]
    Lost {
        /// The time without a connection, in seconds.
        seconds: u64,
        /// The reason.
        why: String,
    },
    /// The run was asked to end, and the board has not told its end in time.
    #[error(
        "interrupted, but not all that the board has measured has come: it stays there, a measurement may go on, and the same command with --resume fetches it"
    )]
    Left,
    /// A file of this machine cannot be used while the board measures.
    #[error(
        "{}: {said}; what the board measures goes on there: the same command with --resume fetches it",
        .path.display()
    )]
    Here {
        /// The directory of the file.
        path: PathBuf,
        /// The error.
        said: String,
    },
    /// The board was booted anew, or another one has its address.
    #[error("the board runs another kernel now than when this command began: start it again")]
    OtherKernel,
    /// Somebody removed the job.
    #[error(
        "the board does not have this run any more: somebody else has fetched or removed it, or the board has lost its power"
    )]
    Gone,
    /// The address of a peer is not known.
    #[error(
        "{peer}: expected the IPv4 address of another machine, found none ({said}): name it behind the host (`--peer {peer}:192.168.7.2`)"
    )]
    NoAddress {
        /// The peer, as `--peer` names it.
        peer: String,
        /// The reason.
        said: String,
    },
    /// The echo does not begin on a peer.
    #[error(
        "{host}: expected `punctual-wire echo` to answer there, found that it ends: {said}{remedy}"
    )]
    NoEcho {
        /// The peer.
        host: String,
        /// The last words of the program, or of the peer's shell.
        said: String,
        /// The remedy; empty if none is known.
        remedy: &'static str,
    },
    /// An echo answers on the board that is measured.
    #[error("{host}: {OWN_ECHO}")]
    OwnEcho {
        /// The board.
        host: String,
    },
    /// The echo on a peer has ended while a subject was measured.
    #[error("{host}: nobody answers frames there any more ({said}): measure again")]
    EchoEnded {
        /// The peer.
        host: String,
        /// The reason.
        said: String,
    },
}

impl From<Error> for RunError {
    fn from(error: Error) -> Self {
        match error {
            Error::Interrupted => Self::Interrupted,
            other => Self::bench(other),
        }
    }
}

impl Error {
    /// Returns true if the job stays on the board, for a later command to fetch.
    fn leaves_job(&self) -> bool {
        matches!(self, Self::Lost { .. } | Self::Left | Self::Here { .. })
    }
}

/// The address of a board: `[USER@]HOST[:/DIRECTORY]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The argument for `ssh`: an address, or a name from its configuration, with or without a
    /// user.
    pub host: String,
    /// The directory on the board; `None` for the usual one.
    pub directory: Option<String>,
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            let advice = about_port(text);
            format!("expected [USER@]HOST or [USER@]HOST:/DIRECTORY, found \"{text}\"{advice}")
        };
        // An address with colons stands in brackets, as for scp.
        let (host, rest) = if let Some((user, rest)) = text.split_once('[') {
            let (address, rest) = rest.split_once(']').ok_or_else(expected)?;
            let is_user = user.is_empty() || user.ends_with('@');
            let address = Some(address).filter(|_| is_user).ok_or_else(expected)?;
            (format!("{user}{address}"), rest)
        } else {
            let end = text.find(':').unwrap_or(text.len());
            (text[..end].to_owned(), &text[end..])
        };
        let directory = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            Some(path) if path.starts_with('/') => Some(path.to_owned()),
            _ => return Err(expected()),
        };
        let is_host = |c: char| !c.is_whitespace() && !c.is_control();
        if host.is_empty() || host.starts_with('-') || !host.chars().all(is_host) {
            return Err(expected());
        }
        Ok(Self { host, directory })
    }
}

/// The way to name a port, if one stands behind the host in this text.
fn about_port(text: &str) -> String {
    let behind = match text.rsplit_once(']') {
        Some((_, rest)) => rest.strip_prefix(':'),
        None => text.split_once(':').map(|(_, rest)| rest),
    };
    let port = behind.unwrap_or_default().split([':', '/']).next();
    let port = port.filter(|port| !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit()));
    port.map_or_else(String::new, |port| {
        format!(": a port goes into ~/.ssh/config, or {VARIABLE}='ssh -p {port}'")
    })
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.host.find('@').map_or(0, |at| at + 1);
        let (user, address) = self.host.split_at(user);
        if address.contains(':') {
            write!(f, "{user}[{address}]")?;
        } else {
            write!(f, "{user}{address}")?;
        }
        match &self.directory {
            Some(directory) => write!(f, ":{directory}"),
            None => Ok(()),
        }
    }
}

/// A board that was reached and has the target on it.
#[derive(Clone, Debug)]
pub struct Board {
    route: Route,
    /// The absolute path of the directory on the board.
    directory: String,
    /// The path of the target on the board.
    program: String,
    target_sha256: String,
    /// Kernel modules that are loaded for each job.
    modules: Option<Modules>,
    /// The greeting of the target on the board.
    pub hello: Hello,
}

impl Board {
    /// Reaches a board, which may take up to `patience` to boot, and makes sure that the target for
    /// its architecture is there. `target` returns the path of that target on this machine.
    pub fn reach(
        route: &Route,
        target: impl Fn(Processor) -> PathBuf,
        patience: Duration,
        cancel: &AtomicBool,
    ) -> Result<Self, Error> {
        let processor = until_reached(patience, cancel, || ask(route, cancel))?;
        let target = &target(processor);
        let at = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Error::NoTarget {
                host: route.name().to_owned(),
                found: processor,
                path: target.clone(),
            },
            _ => Error::Io {
                path: target.clone(),
                error,
            },
        };
        let target_sha256 = checksum::of_file(target).map_err(at)?;
        let name = format!("target-{target_sha256}");
        let (mut is_there, directory) = prepare(route, &name, cancel)?;
        let program = format!("{directory}/{name}");
        let mut is_new = false;
        loop {
            if !is_there {
                let file = File::open(target).map_err(at)?;
                shell::run(route, PUT, &[&directory, &name], Some(file), cancel)?;
                is_new = true;
            }
            match Link::greet(route, &program, &directory, cancel) {
                Ok(hello) if hello.target_sha256.as_ref() == Some(&target_sha256) => {
                    return Ok(Self {
                        route: route.clone(),
                        directory,
                        program,
                        target_sha256,
                        modules: None,
                        hello,
                    });
                }
                Ok(_) if is_new => {
                    let host = route.name().to_owned();
                    return Err(Error::Damaged { host, directory });
                }
                Err(error) if is_new || !matches!(error, Error::Target { .. }) => {
                    return Err(error);
                }
                // A copy that was there may be a part of one: the board lost its power.
                Ok(_) | Err(_) => is_there = false,
            }
        }
    }

    /// Begins a conversation, in which a job may be begun if `begins` is true.
    fn connect(&self, begins: bool) -> Result<Link, Error> {
        let target = [&*self.program, "board", &self.directory];
        let mut before = Vec::new();
        if begins {
            before.extend(self.modules.iter().flat_map(Modules::words));
            before.extend(["sh", "-c", BEGIN, "punctual"]);
        }
        Link::begin(&self.route, &[&before[..], &target].concat())
    }

    /// Returns an error if an echo answers on the board.
    fn refuse_echo(&self, cancel: &AtomicBool) -> Result<(), Error> {
        let table = shell::run(&self.route, UDP_SOCKETS, &[], None, cancel)?;
        if has_echo(&table) {
            let host = self.route.name().to_owned();
            return Err(Error::OwnEcho { host });
        }
        Ok(())
    }
}

/// A script for any POSIX shell that prints the UDP sockets of the machine.
const UDP_SOCKETS: &str = "cat /proc/net/udp 2>/dev/null || :";

/// A script for any POSIX shell that asks what the board is.
const ASK: &str = r#"printf "punctual-board %s %s\n" "$(uname -s)" "$(uname -m)""#;
const PREPARE: &str = include_str!("ssh/prepare.sh");
const PUT: &str = include_str!("ssh/put.sh");
const BEGIN: &str = include_str!("ssh/begin.sh");

/// The remedy for a connection that `ssh` refuses with these words; empty if none is known.
fn way_in(said: &str) -> &'static str {
    if said.contains("Host key verification failed") {
        " (log in once by hand, so that `ssh` knows the board's host key)"
    } else if said.contains("Permission denied") {
        " (use an agent, or a key without a passphrase: Punctual asks for no password)"
    } else {
        ""
    }
}

/// The systems that have a target, as `uname -sm` prints them.
fn known() -> String {
    let [others @ .., last] = &Processor::ALL.map(Processor::uname);
    format!("{SYSTEM} {} or {last}", others.join(", "))
}

/// Asks a board until it answers; fails if it does not answer within `patience`.
fn until_reached<T>(
    patience: Duration,
    cancel: &AtomicBool,
    ask: impl Fn() -> Result<T, Error>,
) -> Result<T, Error> {
    let until = Instant::now() + patience;
    loop {
        match ask() {
            Err(Error::Unreachable { .. }) if Instant::now() < until => {
                if cancel.load(Ordering::SeqCst) {
                    return Err(Error::Interrupted);
                }
                thread::sleep(PAUSE);
            }
            answer => return answer,
        }
    }
}

/// Asks what a board is.
fn ask(route: &Route, cancel: &AtomicBool) -> Result<Processor, Error> {
    let said = shell::run(route, ASK, &[], None, cancel)?;
    let Some(found) = said.lines().find_map(marked) else {
        let host = route.name().to_owned();
        return Err(Error::Shell { host, found: said });
    };
    let machine = found
        .split_once(' ')
        .filter(|(system, _)| *system == SYSTEM);
    let processor = machine.and_then(|(_, machine)| Processor::that_says(machine));
    processor.ok_or_else(|| Error::Architecture {
        host: route.name().to_owned(),
        found: found.to_owned(),
    })
}

/// Asks whether the target is there, and in which directory.
fn prepare(route: &Route, name: &str, cancel: &AtomicBool) -> Result<(bool, String), Error> {
    let wanted = route.directory().unwrap_or_default();
    let said = shell::run(route, PREPARE, &[wanted, name], None, cancel)?;
    let line = said.lines().find_map(marked);
    let Some((is_there, directory)) = line.and_then(|line| line.split_once(' ')) else {
        return Err(Error::Shell {
            host: route.name().to_owned(),
            found: said,
        });
    };
    Ok((is_there == "yes", directory.to_owned()))
}

/// A board as a subject.
#[derive(Debug)]
pub struct SshSystem {
    /// The board.
    pub board: Board,
    /// The place, if the board is one of labgrid's: held until this is dropped.
    pub place: Option<Arc<labgrid::Held>>,
    /// Punctual's cache directory on this machine.
    pub cache: PathBuf,
    /// The time for which a lost connection is retried. If it is more than [`SILENCE`], it is also
    /// the wall-clock time that the target may stay silent in addition to what its step takes.
    pub patience: Duration,
    /// True if results that the board has measured by an equal plan under the kernel that runs
    /// there, and that nobody has fetched, are taken.
    pub resume: bool,
}

impl SystemUnderTest for SshSystem {
    fn machine(&self) -> MachineRecord {
        let hello = &self.board.hello;
        MachineRecord::Host(HostMachine {
            host: hello.host.clone(),
            release: Some(hello.release.clone()),
            cpus: hello.cpus,
            target_sha256: Some(self.board.target_sha256.clone()),
            ssh: Some(self.board.route.to_string()),
        })
    }

    fn run(&self, plan: &str, on: Listener, cancel: &AtomicBool) -> RunEnding {
        let begun = Instant::now();
        let mut ending = RunEnding {
            console: String::new(),
            preparing: Duration::ZERO,
            measuring: Duration::ZERO,
            result: Ok(()),
            afterwards: Afterwards::default(),
        };
        ending.result = self.carry_out(plan, on, cancel, &mut ending);
        ending.measuring = begun.elapsed();
        ending
    }
}

impl SshSystem {
    fn carry_out(
        &self,
        plan: &str,
        on: Listener,
        cancel: &AtomicBool,
        ending: &mut RunEnding,
    ) -> Result<(), RunError> {
        if sends_frames(plan) {
            until_reached(self.patience, cancel, || self.board.refuse_echo(cancel))?;
        }
        let work = WorkDir::new(&self.cache)?;
        let board = self.board.clone();
        let connect = Box::new(move |begins| board.connect(begins));
        let name = job_name(work.path());
        let mut job = Job::begin(
            connect,
            &self.board.hello,
            work.path(),
            &name,
            plan,
            self.resume,
            self.patience,
        )?;
        let silence = self.patience.max(SILENCE);
        let mut watch = Watch::begin(work.path(), silence, on, cancel)?;
        let result = watch.until(Until::Finished, &mut job);
        ending.console = watch.console.text();
        if !job.may_have_begun() {
            return result;
        }
        let result = result.map_err(|error| of_job(error, watch.gave_up, &self.cache));
        // Unless something else becomes of it, the place stays acquired.
        let place = Unfetched(self.place.clone());
        match result {
            Err(error) if error.of_bench().is_some_and(Error::leaves_job) => Err(error),
            Err(error) if error.of_bench::<Refusal>().is_some() => {
                place.untouched();
                Err(error)
            }
            result => {
                let has_ended = result.is_ok();
                ending.afterwards = Afterwards::new(move || {
                    if job.remove() || has_ended {
                        place.fetched();
                    }
                });
                result
            }
        }
    }
}

/// The error with which a run ends, in the words that say what becomes of its job. `cache` is the
/// directory of what has come here, and `gave_up` is true if not all of it has, after Ctrl-C.
fn of_job(error: RunError, gave_up: bool, cache: &Path) -> RunError {
    if gave_up {
        return RunError::bench(Error::Left);
    }
    let said = error.of_bench::<io::Error>().map(ToString::to_string);
    said.map_or(error, |said| {
        let path = cache.to_owned();
        RunError::bench(Error::Here { path, said })
    })
}

/// The place of a board on which results are that nobody has fetched and stored: when dropped, it
/// stays acquired.
struct Unfetched(Option<Arc<labgrid::Held>>);

impl Unfetched {
    /// Notes that all results have been fetched and stored, or are not wanted.
    fn fetched(mut self) {
        if let Some(place) = self.0.take() {
            place.fetched();
        }
    }

    /// Notes that no job was begun.
    fn untouched(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfetched {
    fn drop(&mut self) {
        if let Some(place) = &self.0 {
            place.keep();
        }
    }
}

/// A name that no other job has.
fn job_name(work: &Path) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let text = format!("{} {} {now:?} {host}", work.display(), std::process::id());
    checksum::of_bytes(text.as_bytes())[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_what_scp_takes() {
        let parse = |text: &str| {
            let found = Destination::from_str(text)?;
            assert_eq!(found.to_string(), text);
            Ok::<_, String>((found.host, found.directory))
        };
        let of = |host: &str, directory: Option<&str>| {
            Ok((host.to_owned(), directory.map(ToOwned::to_owned)))
        };
        assert_eq!(parse("board"), of("board", None));
        assert_eq!(parse("root@10.0.0.2"), of("root@10.0.0.2", None));
        assert_eq!(parse("me@board:/data/x"), of("me@board", Some("/data/x")));
        assert_eq!(parse("[fe80::1%eth0]"), of("fe80::1%eth0", None));
        assert_eq!(parse("me@[::1]:/tmp"), of("me@::1", Some("/tmp")));
        for wrong in [
            "",
            ":",
            "board:",
            "board:data",
            "-oProxyCommand=x",
            "a b",
            "[::1]x",
            "a]b[",
            "a[b]",
        ] {
            let error = parse(wrong).unwrap_err();
            assert!(error.contains("expected [USER@]HOST"), "{error}");
        }
    }

    #[test]
    fn a_port_has_its_place_elsewhere() {
        let advice = ": a port goes into ~/.ssh/config, or PUNCTUAL_SSH='ssh -p 2222'";
        for text in ["board:2222", "me@[::1]:2222", "board:2222:/data"] {
            let error = Destination::from_str(text).unwrap_err();
            assert!(
                error.ends_with(&format!("found \"{text}\"{advice}")),
                "{error}"
            );
            let error = Peer::from_str(&format!("ssh:{text}")).unwrap_err();
            assert!(error.ends_with(advice), "{error}");
        }
        for text in ["board:", "board:data", "[::1]x", "a b:/22"] {
            let error = Destination::from_str(text).unwrap_err();
            assert!(!error.contains("port"), "{error}");
        }
    }

    #[test]
    fn what_has_not_come_here_stays_on_the_board() {
        let full = || RunError::from(io::Error::from(io::ErrorKind::StorageFull));
        let of_job = |error, gave_up| of_job(error, gave_up, Path::new("/cache"));
        let lost = || {
            RunError::bench(Error::Lost {
                seconds: 1,
                why: String::new(),
            })
        };
        for told in [
            of_job(full(), false),
            of_job(RunError::Interrupted, true),
            of_job(lost(), false),
        ] {
            assert!(told.of_bench().is_some_and(Error::leaves_job), "{told}");
            assert!(told.to_string().contains("--resume"), "{told}");
        }
        assert!(of_job(full(), false).to_string().starts_with("/cache: "));
        for told in [
            of_job(RunError::Interrupted, false),
            of_job(RunError::Silent(120), false),
            of_job(RunError::bench(Error::OtherKernel), false),
        ] {
            assert!(!told.of_bench().is_some_and(Error::leaves_job), "{told}");
        }
    }

    #[test]
    fn a_board_that_refuses_has_a_remedy() {
        let told = |said: &str| {
            let (host, said) = ("board".to_owned(), said.to_owned());
            Error::Unreachable { host, said }.to_string()
        };
        let told_of_key = told("Host key verification failed.");
        assert!(told_of_key.contains("once by hand"), "{told_of_key}");
        let told_of_user = told("root@board: Permission denied (publickey).");
        assert!(told_of_user.contains("an agent"), "{told_of_user}");
        assert_eq!(told("no route"), "board is not reached: no route");
    }

    #[test]
    fn what_a_shell_prints_before_an_answer_is_passed_over() {
        let title = "\u{1b}]0;root@board\u{7}punctual-board Linux x86_64";
        assert_eq!(marked(title), Some("Linux x86_64"));
        let directory = "punctual-board yes /data/punctual-board x";
        assert_eq!(marked(directory), Some("yes /data/punctual-board x"));
        assert_eq!(marked("Welcome"), None);
    }

    #[test]
    fn what_a_copy_that_was_cut_short_has_left_is_removed() {
        let there = tempfile::tempdir().unwrap();
        let made = |name: &str, age: Duration| {
            let file = File::create(there.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        };
        made("new.1234", Duration::from_secs(3 * 24 * 60 * 60));
        // Another workstation may be copying.
        made("new.1235", Duration::ZERO);
        let mut put = std::process::Command::new("sh");
        put.args(["-c", PUT, "punctual"]).arg(there.path());
        let status = put
            .arg("target-0")
            .stdin(std::process::Stdio::null())
            .status();
        assert!(status.unwrap().success());
        let entries = std::fs::read_dir(there.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["new.1235", "target-0"]);
    }

    #[test]
    fn two_jobs_have_two_names() {
        let names = [(); 2].map(|()| job_name(Path::new("/tmp/x")));
        assert_ne!(names[0], names[1]);
        assert!(names[0].bytes().all(|byte| byte.is_ascii_alphanumeric()));
    }
}
