// SPDX-License-Identifier: MIT OR Apache-2.0
//! `labgrid-client`: what it is told, and what it answers.

use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use super::Error;
use crate::ssh::{self, End, Fault, last_line, named};

/// The environment variable that names another command in place of `labgrid-client`: words
/// between blanks.
pub const VARIABLE: &str = "PUNCTUAL_LABGRID";

/// The exit status of `labgrid-client` where what it is asked for cannot be.
const NOT_POSSIBLE: i32 = 1;

/// The exit status of `labgrid-client` where a driver has failed, such as that of ssh.
const DRIVER_FAILED: i32 = 2;

/// What each command would bring the place's strategy to its state by.
const STATES: [&str; 3] = ["LG_STATE", "LG_INITIAL_STATE", "STATE"];

/// What makes `labgrid-client` print before the board does. What it says itself is to come
/// behind all else, where nobody listens any more.
const UNBUFFERED: &str = "PYTHONUNBUFFERED";

/// What its driver of ssh says, after all else is done, where no server answers.
const NO_SSH_YET: &str = "Timeout while waiting for ssh connection";

/// Before what `labgrid-client` says against what it is asked for.
const AGAINST: [&str; 2] = ["labgrid-client: ", "Server error: "];

/// What it says then, before the reason.
const ERROR: [&str; 2] = ["Error: ", "error: "];

/// Before what the driver of ssh passes on.
const OF_SSH: &str = ": ssh: ";

/// How a place is spoken of to `labgrid-client`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The place's own name.
    pub place: String,
    /// The directory there; the usual one where none is named.
    pub directory: Option<String>,
    /// The environment file, if one is named.
    pub environment: Option<PathBuf>,
}

/// As the run's record has it: `labgrid:PLACE[:DIRECTORY]`.
impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "labgrid:{}", self.place)?;
        match &self.directory {
            Some(directory) => write!(f, ":{directory}"),
            None => Ok(()),
        }
    }
}

/// What `labgrid-client show` says of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its own name.
    pub name: String,
    /// Who has it, `HOST/USER`.
    pub holder: Option<String>,
    /// When it was changed last, such as by being acquired.
    pub changed: String,
}

impl Client {
    /// Has the board's shell run a line.
    pub fn ssh(&self, line: &str) -> Command {
        let mut command = self.driving();
        command.args(["ssh", line]);
        command
    }

    /// Looks for the place.
    pub fn show(&self) -> Result<Shown, Error> {
        let place = self.place.clone();
        match ask(self.managing().arg("show"))? {
            Ok(found) => shown(&found).ok_or(Error::Shown { place, found }),
            Err(said) => Err(Error::Unknown { place, said }),
        }
    }

    /// Acquires the place, which nobody has.
    pub fn acquire(&self) -> Result<(), Error> {
        let place = self.place.clone();
        let acquired = ask(self.managing().arg("acquire"))?;
        acquired
            .map(drop)
            .map_err(|said| Error::NotAcquired { place, said })
    }

    /// Whether the place, which somebody has, may be used; what is said against it if not.
    pub fn may_use(&self) -> Result<Result<(), String>, Error> {
        Ok(ask(self.managing().arg("env"))?.map(drop))
    }

    /// Gives the place back; what is said against it if that fails.
    pub fn release(&self) -> Result<Result<(), String>, Error> {
        Ok(ask(self.managing().arg("release"))?.map(drop))
    }

    /// Switches its power off and on. What has begun comes to its end, so that it is on again.
    pub fn power_cycle(&self) -> Result<(), Error> {
        let place = self.place.clone();
        let done = ask(self.driving().args(["power", "cycle"]))?;
        done.map(drop).map_err(|said| Error::Power { place, said })
    }

    /// Has its strategy bring it to a state. The command is one of ssh, which is to do nothing;
    /// that its server does not answer yet is no fault of the strategy.
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

    /// What is asked of the coordinator. With an environment file it would be asked for all
    /// places of that.
    fn managing(&self) -> Command {
        let mut command = self.command();
        command.env_remove("LG_ENV");
        command
    }

    /// What takes the place's drivers.
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

/// What it prints, or what it complains of.
fn ask(command: &mut Command) -> Result<Result<String, String>, Error> {
    let output = command
        .stdin(Stdio::null())
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

/// Where the fault is, by the exit status of `labgrid-client ssh`.
pub fn fault(code: i32) -> Fault {
    match code {
        NOT_POSSIBLE => Fault::Client,
        DRIVER_FAILED => Fault::Connection,
        _ => Fault::Board,
    }
}

/// What of the complaints says why: what `labgrid-client` says against it, what `ssh` says, or
/// what was said last.
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

/// The line without the first of these that it begins with.
fn without<'a>(line: &'a str, beginnings: &[&str]) -> Option<&'a str> {
    let mut found = beginnings.iter().map(|own| line.strip_prefix(own));
    found.find_map(|rest| rest)
}

/// What of that `text` says.
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
