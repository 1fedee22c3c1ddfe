// SPDX-License-Identifier: MIT OR Apache-2.0
//! A `PostgreSQL` server of a test's own: in its own directory, on a socket there and on a free
//! port of the loopback. It ends with the test.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use punctual_store::Place;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::{Ended, until};

/// The server's superuser.
pub const USER: &str = "ann";

/// A server.
#[derive(Debug)]
pub struct Server {
    directory: TempDir,
    programs: PathBuf,
    port: u16,
    process: Option<Child>,
    options: Vec<String>,
}

/// A way to end a database system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// By an administrator.
    Orderly,
    /// By a power cut: nothing is tidied up.
    Crash,
}

/// The directory of the server's programs; the latest of several.
fn programs() -> Option<PathBuf> {
    let all = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let all = all.map(|entry| entry.path().join("bin"));
    let mut all: Vec<_> = all.filter(|path| path.join("initdb").is_file()).collect();
    all.sort();
    all.pop()
}

/// A command that does not run as root, which servers refuse.
fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    // Nothing is left running where a test is killed.
    command.arg("--pdeathsig=QUIT");
    if geteuid().is_root() {
        command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
    }
    command.arg("--").arg(program);
    command
}

impl Server {
    /// A new server, which trusts everybody on this machine. `None` if there is no `PostgreSQL`;
    /// the test is then skipped.
    pub fn new() -> Option<Self> {
        Self::with(&["--auth=trust"], &[])
    }

    /// A new server that wants `password` on every connection.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn with_password(password: &str) -> Option<Self> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), password).expect("a file");
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).expect("its mode");
        let name = format!("--pwfile={}", file.path().display());
        Self::with(&["--auth=scram-sha-256", &name], &[])
    }

    /// A new server, made with these options of `initdb`, run with these of `postgres`.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn with(make: &[&str], options: &[&str]) -> Option<Self> {
        let Some(programs) = programs() else {
            punctual_skip::skip("postgresql is not installed");
            return None;
        };
        let directory = TempDir::new().expect("a directory");
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path(), open).expect("its mode");
        let own = directory.path().join("own");
        fs::create_dir(&own).expect("a directory");
        if geteuid().is_root() {
            chown(&own, Some(65534), Some(65534)).expect("its owner");
        }
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("its number").port();
        let mut server = Self {
            directory,
            programs,
            port,
            process: None,
            options: options.iter().map(|&option| option.to_owned()).collect(),
        };
        let initdb = Ended::of(
            unprivileged(&server.programs.join("initdb"))
                .arg("--pgdata")
                .arg(server.data())
                .args(["--username", USER, "--no-sync", "--encoding=UTF8"])
                .args(["--locale=C.UTF-8"])
                .args(make)
                .current_dir("/"),
        );
        assert_eq!(initdb.status, Some(0), "{}", initdb.stderr);
        drop(free);
        server.start();
        Some(server)
    }

    fn data(&self) -> PathBuf {
        self.own().join("data")
    }

    /// The directory that belongs to the user who runs the server; its socket is there, too.
    pub fn own(&self) -> PathBuf {
        self.directory.path().join("own")
    }

    /// Starts it, and waits until it accepts connections.
    ///
    /// # Panics
    /// If it runs already, or cannot be started.
    pub fn start(&mut self) {
        assert!(self.process.is_none(), "it runs");
        let log = fs::File::create(self.directory.path().join("log")).expect("a log");
        let child = unprivileged(&self.programs.join("postgres"))
            .arg("-D")
            .arg(self.data())
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-k"])
            .arg(self.own())
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .current_dir("/")
            .spawn();
        self.process = Some(child.expect("postgres can be started"));
        until("the server takes connections", || {
            let mut ready = Command::new(self.programs.join("pg_isready"));
            ready.arg("-q").args(self.address());
            ready.status().expect("pg_isready").success()
        });
    }

    /// Ends the server.
    ///
    /// # Panics
    /// If it does not run.
    pub fn stop(&mut self, stop: Stop) {
        let mut process = self.process.take().expect("it runs");
        let signal = match stop {
            Stop::Orderly => Signal::INT,
            Stop::Crash => Signal::QUIT,
        };
        _ = kill_process(Pid::from_child(&process), signal);
        process.wait().expect("it ends");
    }

    fn address(&self) -> [String; 4] {
        let port = self.port.to_string();
        [
            "-h".into(),
            self.own().display().to_string(),
            "-p".into(),
            port,
        ]
    }

    /// Makes a database, and returns the URL of a store in it, through the socket.
    ///
    /// # Panics
    /// If that fails.
    pub fn database(&self, name: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(name)
    }

    /// The URL of a database, through the socket.
    pub fn url(&self, name: &str) -> String {
        let (host, port) = (self.own(), self.port);
        format!(
            "postgres://{USER}@/{name}?host={}&port={port}",
            host.display()
        )
    }

    /// The URL of a database, through the loopback.
    pub fn url_of_port(&self, name: &str) -> String {
        format!("postgres://{USER}@localhost:{}/{name}", self.port)
    }

    /// Its port on the loopback.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The output of `psql` for a statement.
    ///
    /// # Panics
    /// If it fails.
    pub fn sql(&self, database: &str, statement: &str) -> String {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(self.address());
        psql.args(["-U", USER, "-d", database, "-qAtX", "-v", "ON_ERROR_STOP=1"]);
        let ended = Ended::of(psql.args(["-c", statement]));
        assert_eq!(ended.status, Some(0), "{statement}: {}", ended.stderr);
        ended.stdout
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.process.is_some() {
            self.stop(Stop::Crash);
        }
    }
}

/// The place of a URL.
///
/// # Panics
/// If it is not one.
pub fn place(url: &str) -> Place {
    Place::parse(url.as_ref()).expect("a place")
}
