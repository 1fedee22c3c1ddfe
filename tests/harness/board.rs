// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stand-in for a board: a guest of QEMU in real time, with an ssh server on loopback and a disk
//! that keeps its content when the power is pulled. `tools/board-guest` makes it.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use punctual_bench::Processor;
use punctual_model::Architecture;
use punctual_runner::Companion;

use crate::{Ended, Scratch, programs, until};

/// The directory of the target and its jobs there, on the disk.
pub const DIRECTORY: &str = "/data/punctual";

/// Debian's name for a processor.
fn debian(processor: Processor) -> &'static str {
    match processor {
        Processor::OfGuests(architecture) => architecture.debian(),
        other => other.machine(),
    }
}

/// The program that is copied to a board.
pub fn target(processor: Processor) -> PathBuf {
    programs().join(Companion::Target(processor).file_name())
}

fn qemu(processor: Processor) -> String {
    format!("qemu-system-{}", processor.machine())
}

/// QEMU's machine, and the kernel's name for its serial port.
fn machine(processor: Processor) -> (&'static [&'static str], &'static str) {
    match processor {
        // On a busy machine QEMU's timer comes later than the kernel waits for it.
        Processor::OfGuests(Architecture::Amd64) => (&["-M", "pc"], "ttyS0 no_timer_check"),
        Processor::OfGuests(Architecture::Arm64) => {
            (&["-M", "virt", "-cpu", "cortex-a57"], "ttyAMA0")
        }
        Processor::Riscv64 => (&["-M", "virt"], "ttyS0"),
        Processor::Armv7 => panic!("tools/board-guest makes no board of {processor}"),
    }
}

/// A board.
#[derive(Debug)]
pub struct Board {
    /// The workstation: its runs, and the board's disk and console.
    pub scratch: Scratch,
    processor: Processor,
    /// Directory of its kernel and its initramfs.
    parts: String,
    port: u16,
    qemu: Option<Child>,
}

impl Board {
    /// A new board with an empty disk, switched on. `None` if that is not possible; the test is
    /// then skipped.
    ///
    /// # Panics
    /// If a part of it is present and does not work.
    pub fn new(processor: Processor) -> Option<Self> {
        Self::with(processor, &[])
    }

    /// A board of x86-64 that can build modules for its kernel, made as in [`new`](Self::new).
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn with_compiler() -> Option<Self> {
        Self::with(Architecture::Amd64.into(), &["compiler"])
    }

    fn with(processor: Processor, more: &[&str]) -> Option<Self> {
        let needed = ["ssh", "ssh-keygen", "cpio"];
        let is_there = needed.into_iter().all(punctual_skip::program)
            && punctual_skip::program(&qemu(processor))
            && has_target(processor)
            && punctual_skip::root();
        let parts = is_there.then(|| parts(processor, more)).flatten()?;
        let scratch = Scratch::new();
        // Closed again at once: what listens there is QEMU, and nobody else.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let mut board = Self {
            scratch,
            processor,
            parts,
            port: free.expect("a port").port(),
            qemu: None,
        };
        board.make_disk();
        board.write_ssh_config();
        board.switch_on();
        Some(board)
    }

    /// Makes the disk, with the key with which the workstation may log in; the server makes its own
    /// key there.
    fn make_disk(&self) {
        let key = self.word("key");
        well(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &key]));
        let data = self.scratch.path("data-of-board");
        for name in ["ssh", "dropbear"] {
            fs::create_dir_all(data.join(name)).expect("a directory");
        }
        fs::copy(format!("{key}.pub"), data.join("ssh/authorized_keys")).expect("a copy");
        well(Command::new("chmod").args(["-R", "go="]).arg(&data));
        let mut make = Command::new("/usr/sbin/mke2fs");
        make.args(["-q", "-t", "ext4", "-d"]).arg(&data);
        well(make.args([&self.word("disk"), "128M"]));
    }

    fn write_ssh_config(&self) {
        let config = format!(
            "Host board\nHostName 127.0.0.1\nPort {}\nUser root\nIdentityFile {}\n\
             IdentitiesOnly yes\nUserKnownHostsFile {}\nGlobalKnownHostsFile none\n\
             StrictHostKeyChecking accept-new\nLogLevel ERROR\n",
            self.port,
            self.word("key"),
            self.word("known_hosts"),
        );
        self.scratch.file("ssh_config", config);
    }

    fn word(&self, name: &str) -> String {
        self.scratch.path(name).display().to_string()
    }

    /// The port of its ssh server, on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The key with which root may log in.
    pub fn key(&self) -> PathBuf {
        self.scratch.path("key")
    }

    /// Switches it on, and waits until it answers.
    ///
    /// # Panics
    /// If it does not.
    pub fn switch_on(&mut self) {
        self.give_power();
        let mut has_ended = false;
        until("the board answers", || {
            let qemu = self.qemu.as_mut().expect("it was started");
            has_ended = qemu.try_wait().expect("it is a child").is_some();
            has_ended || self.ask("true").is_some()
        });
        assert!(!has_ended, "{}", self.said());
    }

    /// Returns true if it is on.
    pub fn has_power(&self) -> bool {
        self.qemu.is_some()
    }

    /// Switches it on without waiting.
    ///
    /// # Panics
    /// If QEMU does not start.
    pub fn give_power(&mut self) {
        let (machine, console) = machine(self.processor);
        let log = File::create(self.scratch.path("qemu.log")).expect("a file");
        // `writeback`: the disk has a cache of its own, which the kernel there must flush. What
        // it was given is in the host's memory, and outlives QEMU.
        let drive = format!(
            "if=none,id=disk,file={},format=raw,cache=writeback",
            self.word("disk")
        );
        // What it has of /usr, if anything.
        let usr = format!("{}/usr", self.parts);
        let usr = Path::new(&usr).is_file().then(|| {
            let drive = format!("if=none,id=usr,file={usr},format=raw,readonly=on");
            [
                "-drive".into(),
                drive,
                "-device".into(),
                "virtio-blk-pci,drive=usr".into(),
            ]
        });
        let network = format!("user,id=net,hostfwd=tcp:127.0.0.1:{}-:22", self.port);
        let qemu = Command::new(qemu(self.processor))
            .args(machine)
            .args([
                "-accel",
                "tcg",
                "-smp",
                "2",
                "-m",
                // A compiler takes more.
                if usr.is_some() { "512" } else { "256" },
                "-nodefaults",
                "-no-reboot",
            ])
            .args(["-display", "none", "-serial"])
            .arg(format!("file:{}", self.word("console")))
            .args(["-kernel", &format!("{}/kernel", self.parts)])
            .args(["-initrd", &format!("{}/initramfs", self.parts)])
            .args(["-append", &format!("console={console} quiet panic=-1")])
            .args(["-drive", &drive])
            .args(["-device", "virtio-blk-pci,drive=disk"])
            .args(usr.into_iter().flatten())
            .args(["-netdev", &network])
            .args(["-device", "virtio-net-pci,netdev=net,romfile="])
            .stdin(Stdio::null())
            .stderr(log)
            .spawn();
        self.qemu = Some(qemu.expect("QEMU starts"));
    }

    /// Pulls the power: nothing there gets a warning, and only the disk survives.
    ///
    /// # Panics
    /// If it has no power.
    pub fn pull_power(&mut self) {
        let mut qemu = self.qemu.take().expect("it is on");
        qemu.kill().expect("QEMU is killed");
        qemu.wait().expect("QEMU ends");
    }

    /// The output of QEMU and of the board's console.
    pub fn said(&self) -> String {
        let read = |name| fs::read_to_string(self.scratch.path(name)).unwrap_or_default();
        read("qemu.log") + &read("console")
    }

    fn ssh(&self) -> String {
        format!("ssh -F {}", self.word("ssh_config"))
    }

    /// The output of a script there; `None` if the script or the connection fails.
    ///
    /// # Panics
    /// If there is no `ssh`.
    pub fn bytes(&self, script: &str) -> Option<Vec<u8>> {
        let mut command = Command::new("ssh");
        command.args(["-F", &self.word("ssh_config"), "-T"]);
        // One that was begun too early, while the board boots, would wait for minutes.
        command.args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=20"]);
        command.args(["board", script]).stdin(Stdio::null());
        let output = command.output().expect("ssh starts");
        output.status.success().then_some(output.stdout)
    }

    /// Like [`Self::bytes`], as text.
    pub fn ask(&self, script: &str) -> Option<String> {
        let bytes = self.bytes(script)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The output of a script there; it is run again if the connection is lost.
    ///
    /// # Panics
    /// If there is no answer in ten minutes.
    pub fn answer(&self, script: &str) -> String {
        let mut answer = None;
        until(&format!("the board answers {script:?}"), || {
            answer = self.ask(script);
            answer.is_some()
        });
        answer.unwrap_or_default()
    }

    /// Kills the server's processes for connections, at the board's end, and returns the number of
    /// other connections that this hit. The server itself goes on.
    pub fn kill_sessions(&self) -> u64 {
        // The own one comes last: then nobody hears more.
        let script = "n=0; for p in $(pidof dropbear); do read -r _ _ _ parent _ </proc/$p/stat; \
             [ $parent = 1 ] || [ $p = $PPID ] || { kill -9 $p && n=$((n + 1)); }; done; echo $n";
        let killed = self.ask(script).unwrap_or_default();
        killed.trim().parse().unwrap_or(0)
    }

    /// The value for `--bench`.
    pub fn bench() -> String {
        format!("ssh:board:{DIRECTORY}")
    }

    /// `punctual` with these arguments, which reaches the board as `board`.
    pub fn punctual(&self, arguments: &[&str]) -> Command {
        let mut command = self.scratch.punctual(arguments);
        command.env("PUNCTUAL_SSH", self.ssh());
        command
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        if let Some(qemu) = &mut self.qemu {
            let _ = qemu.kill();
            let _ = qemu.wait();
        }
    }
}

fn has_target(processor: Processor) -> bool {
    let is_built = target(processor).is_file();
    if !is_built {
        let machine = processor.machine();
        punctual_skip::skip(&format!(
            "no target for {processor} is built: ./build --targets {machine}"
        ));
    }
    is_built
}

/// The directory of its kernel and its initramfs; the test is skipped if Debian's packages are not
/// available.
fn parts(processor: Processor, more: &[&str]) -> Option<String> {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/board-guest");
    let made = Ended::of(Command::new(tool).arg(debian(processor)).args(more));
    if made.status != Some(0) {
        punctual_skip::skip(&format!("no board can be made: {}", made.stderr.trim()));
        return None;
    }
    Some(made.stdout.trim().to_owned())
}

fn well(command: &mut Command) {
    let ended = Ended::of(command);
    assert_eq!(ended.status, Some(0), "{command:?}: {}", ended.stderr);
}
