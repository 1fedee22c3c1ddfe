// SPDX-License-Identifier: MIT OR Apache-2.0
//! The orders to `labgrid-client`, and its answers.

use std::fmt;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use super::Error;
use crate::ssh::{self, End, Fault, last_line, named};

/// The environment variable that names another command in place of `labgrid-client`, as words
/// separated by blanks.
pub const VARIABLE: &str = "PUNCTUAL_LABGRID";

/// The exit status of `labgrid-client` if it cannot do what it is asked.
const NOT_POSSIBLE: i32 = 1;

/// The exit status of `labgrid-client` if a driver fails, such as that of ssh.
const DRIVER_FAILED: i32 = 2;

/// Environment variables that would make every command bring the place's strategy to a state.
const STATES: [&str; 3] = ["LG_STATE", "LG_INITIAL_STATE", "STATE"];

/// Environment variable that would make `labgrid-client` print before the board does. Its own
/// output is to come after everything else, when nobody listens any more.
const UNBUFFERED: &str = "PYTHONUNBUFFERED";

/// The last words of its ssh driver when no server answers.
const NO_SSH_YET: &str = "Timeout while waiting for ssh connection";

/// Prefixes of the lines in which `labgrid-client` rejects a request.
const AGAINST: [&str; 2] = ["labgrid-client: ", "Server error: "];

/// Prefixes that then come before the reason.
const ERROR: [&str; 2] = ["Error: ", "error: "];

/// Prefix of what the ssh driver passes on.
const OF_SSH: &str = ": ssh: ";

/// Calls `labgrid-client` for one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The name of the place.
    pub place: String,
    /// The directory on the board; `None` for the usual one.
    pub directory: Option<String>,
    /// The environment file, if one is named.
    pub environment: Option<PathBuf>,
}

/// The form in the run's record: `labgrid:PLACE[:DIRECTORY]`.
impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "labgrid:{}", self.place)?;
        match &self.directory {
            Some(directory) => write!(f, ":{directory}"),
            None => Ok(()),
        }
    }
}

/// What `labgrid-client show` prints about a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The name of the place.
    pub name: String,
    /// The holder, as `HOST/USER`.
    pub holder: Option<String>,
    /// The time of the last change, such as an acquisition.
    pub changed: String,
}

impl Client {
    /// Returns a command that has the board's shell run a line.
    pub fn ssh(&self, line: &str) -> Command {
        let mut command = self.driving();
        command.args(["ssh", line]);
        command
    }

    /// Looks the place up.
    pub fn show(&self) -> Result<Shown, Error> {
        let place = self.place.clone();
        match ask(self.managing().arg("show"))? {
            Ok(found) => shown(&found).ok_or(Error::Shown { place, found }),
            Err(said) => Err(Error::Unknown { place, said }),
        }
    }

    /// Acquires the place, which nobody holds.
    pub fn acquire(&self) -> Result<(), Error> {
        let place = self.place.clone();
        let acquired = ask(self.managing().arg("acquire"))?;
        acquired
            .map(drop)
            .map_err(|said| Error::NotAcquired { place, said })
    }

    /// Asks whether the place, which somebody holds, may be used; the inner error is the complaint
    /// if not.
    pub fn may_use(&self) -> Result<Result<(), String>, Error> {
        Ok(ask(self.managing().arg("env"))?.map(drop))
    }

    /// Gives the place back; the inner error is the complaint if that fails.
    pub fn release(&self) -> Result<Result<(), String>, Error> {
        Ok(ask(self.managing().arg("release"))?.map(drop))
    }

    /// Switches the power off and on. A cycle that has begun is completed, so that the power is on
    /// again.
    pub fn power_cycle(&self) -> Result<(), Error> {
        let place = self.place.clone();
        let done = ask(self.driving().args(["power", "cycle"]))?;
        done.map(drop).map_err(|said| Error::Power { place, said })
    }

    /// Has the strategy bring the place to a state. The command is an `ssh` command that does
    /// nothing; a server that does not answer yet is no fault of the strategy.
    pub fn bring_to(&self, state: &str, cancel: &AtomicBool) -> Result<(), ssh::Error> {
        let mut command = self.driving();
        if let Some(initial) = std::env::var_os("LG_INITIAL_STATE") {
            command.env("LG_INITIAL_STATE", initial);
        }
        command.args(["-s", state, "ssh", "exec true"]);
        let output = ssh::output(&mut command, End::Asked, None, cancel)
            .map_err(|error| no_client(&command, &error))?
            .ok_or(ssh::Error::Interrupted)?;
        if output.status.success() || output.stderr.contains(NO_SSH_YET) {
            return Ok(());
        }
        Err(ssh::Error::Place(Error::State {
            place: self.place.clone(),
            state: state.to_owned(),
            said: complaint(&output.stderr),
        }))
    }

    /// A command for the coordinator. With an environment file, it would ask about all places in
    /// that file.
    fn managing(&self) -> Command {
        let mut command = self.command();
        command.env_remove("LG_ENV");
        command
    }

    /// A command that uses the place's drivers.
    fn driving(&self) -> Command {
        let mut command = self.command();
        if let Some(environment) = &self.environment {
            command.arg("-c").arg(environment);
        }
        command
    }

    fn command(&self) -> Command {
        let mut command = named(VARIABLE, "labgrid-client");
        command.args(["-p", &self.place]);
        for name in STATES.into_iter().chain([UNBUFFERED]) {
            command.env_remove(name);
        }
        command
    }
}

/// Runs the command; returns its output, or its complaint.
fn ask(command: &mut Command) -> Result<Result<String, String>, Error> {
    let output = command
        .stdin(Stdio::null())
        // Ctrl-C is for Punctual: a power cycle that was cut short would leave the board off.
        .process_group(0)
        .output()
        .map_err(|error| no_client(command, &error))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(Ok(stdout));
    }
    let said = complaint(&String::from_utf8_lossy(&output.stderr));
    // Which part of a place is another's.
    Ok(Err(match stdout.trim() {
        "" => said,
        more => format!("{said}: {more}"),
    }))
}

fn no_client(command: &Command, error: &std::io::Error) -> Error {
    Error::NoClient {
        program: command.get_program().to_string_lossy().into_owned(),
        error: error.to_string(),
    }
}

/// Locates the fault by the exit status of `labgrid-client ssh`.
pub fn fault(code: i32) -> Fault {
    match code {
        NOT_POSSIBLE => Fault::Client,
        DRIVER_FAILED => Fault::Connection,
        _ => Fault::Board,
    }
}

/// Picks the reason from the complaints: that of `labgrid-client`, that of `ssh`, or the last line.
pub fn complaint(stderr: &str) -> String {
    let against = |line: &str| Some(without(line, &ERROR).unwrap_or(line).to_owned());
    let own = |line: &str| without(line, &AGAINST).and_then(against);
    let of_ssh = |line: &str| {
        let (_, said) = line.split_once(OF_SSH)?;
        Some(said.trim().to_owned()).filter(|said| !said.is_empty())
    };
    let said = stderr.lines().find_map(own);
    said.or_else(|| stderr.lines().rev().find_map(of_ssh))
        .unwrap_or_else(|| last_line(stderr))
}

/// The line without the first of these prefixes that it has.
fn without<'a>(line: &'a str, beginnings: &[&str]) -> Option<&'a str> {
    let mut found = beginnings.iter().map(|own| line.strip_prefix(own));
    found.find_map(|rest| rest)
}

/// Reads the output of `labgrid-client show`.
pub fn shown(text: &str) -> Option<Shown> {
    let mut lines = text.lines();
    let name = lines.find_map(|line| line.strip_prefix("Place '")?.strip_suffix("':"))?;
    let lines: Vec<&str> = lines.collect();
    let value = |key: &str| {
        let mut values = lines.iter().map(|line| line.strip_prefix(key));
        values.find_map(|value| value.map(str::to_owned))
    };
    Some(Shown {
        name: name.to_owned(),
        holder: Some(value("  acquired: ")?).filter(|holder| holder != "None"),
        changed: value("  changed: ")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_labgrid_client_shows_it() {
        let text = "Place 'rack1':\n  comment: the first\n  matches:\n    lab/rack1/*\n  \
                    acquired: None\n  acquired resources:\n  created: 2026-01-02 03:04:05.6\n  \
                    changed: 2026-01-02 03:04:06.7\nMatching resource 'x' (lab/rack1/y/x):\n  {}\n";
        let found = shown(text).unwrap();
        assert_eq!(found.name, "rack1");
        assert_eq!(found.holder, None);
        assert_eq!(found.changed, "2026-01-02 03:04:06.7");
        let found = shown(&text.replace("acquired: None", "acquired: desk/ann")).unwrap();
        assert_eq!(found.holder.as_deref(), Some("desk/ann"));
        assert_eq!(shown("Place 'rack1':\n  matches:\n"), None);
        assert_eq!(shown(""), None);
    }

    #[test]
    fn ctrl_c_does_not_reach_who_is_asked() {
        let script = "read pid name state parent group rest </proc/$$/stat; echo $pid $group";
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let said = ask(&mut command).unwrap().unwrap();
        let (process, group) = said.trim().split_once(' ').unwrap();
        assert_eq!(process, group, "it leads a group of its own");
    }

    #[test]
    fn of_many_complaints_the_reason_is_taken() {
        let said = "ERROR root: x\nlabgrid-client: error: no driver\nThis is likely …\n";
        assert_eq!(complaint(said), "no driver");
        assert_eq!(complaint("labgrid-client: it is\n"), "it is");
        assert_eq!(complaint("Server error: Error: it is not\n"), "it is not");
        let said = "WARNING SSHDriver(x: ssh: ssh: connect to host h port 22: refused\n\
                    WARNING SSHDriver(x: ssh: \nTraceback\nException: Timeout\n";
        assert_eq!(complaint(said), "ssh: connect to host h port 22: refused");
        assert_eq!(complaint("a\nb\n\n"), "b");
    }
}
