// SPDX-License-Identifier: MIT OR Apache-2.0
//! Process 1 of a guest: mounts what probes need, loads modules, and carries out the plan.

use std::fs;
use std::io;
use std::path::Path;

use punctual_model::suite::ROOT;
use punctual_model::{Facts, Plan, Record};

use crate::stream::{Records as _, Stream};
use crate::sys::{mount, net, process};
use crate::{ageing, cpus, disk, guest, network, session};

/// The directory where the bench puts the modules to load, named in load order.
const MODULES: &str = "/lib/modules/punctual";

/// Mounts: file system and mount point.
const MOUNTS: &[(&str, &str)] = &[
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("debugfs", "/sys/kernel/debug"),
    ("tmpfs", "/tmp"),
    ("tmpfs", "/run"),
];

/// Mounts in the programs' userland: they write their marks into tracefs.
const MOUNTS_OF_ROOT: &[(&str, &str)] = &[
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tracefs", "/sys/kernel/tracing"),
];

/// Runs as process 1, and switches the machine off at the end. An error that occurs before
/// there is a stream is shown on the console, and ends the guest with a kernel panic, as
/// the death of process 1 does.
///
/// # Panics
/// Panics if the guest cannot be set up: that is the way to stop it at once.
pub fn run() -> ! {
    if let Err(reason) = set_up() {
        panic!("punctual-target cannot set up the guest: {reason}");
    }
    if let Err(error) = measure() {
        panic!("punctual-target cannot send its results: {error}");
    }
    panic!("cannot switch the machine off: {}", process::power_off());
}

fn set_up() -> Result<(), String> {
    for (kind, target) in MOUNTS {
        mount_at(kind, Path::new(target))?;
    }
    if Path::new(ROOT).is_dir() {
        for (kind, target) in MOUNTS_OF_ROOT {
            mount_at(kind, Path::new(&format!("{ROOT}{target}")))?;
        }
    }
    load_modules(Path::new(MODULES))?;
    if let Err(error) = disk::set_up() {
        // The loads that need it will say so.
        eprintln!("punctual-target: no disk: {error}");
    }
    if let Err(error) = net::switch_on_loopback() {
        // A kernel without a network can be judged too; loads that need one will say so.
        eprintln!("punctual-target: no loopback interface: {error}");
    }
    guest::pause().map_err(|error| format!("cannot reach the bench: {error}"))
}

fn mount_at(kind: &str, target: &Path) -> Result<(), String> {
    match mount::mount(kind, target) {
        // A kernel may have mounted devtmpfs by itself.
        Err(error) if error.kind() != io::ErrorKind::ResourceBusy => {
            // Without debugfs some facts cannot be read back, which is said with them, and without
            // tracefs there are no cycles.
            if ["debugfs", "tracefs"].contains(&kind) {
                Ok(())
            } else {
                Err(format!("cannot mount {kind}: {error}"))
            }
        }
        _ => Ok(()),
    }
}

/// Loads the modules in a directory, in the order of their names, each with the parameters in
/// the file beside it, if there is one. Loads none if there is no such directory.
pub fn load_modules(directory: &Path) -> Result<usize, String> {
    let mut paths = match fs::read_dir(directory) {
        Ok(entries) => entries
            .map(|entry| entry.map(|e| e.path()))
            .collect::<io::Result<Vec<_>>>(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => Err(error),
    }
    .map_err(|error| format!("{}: {error}", directory.display()))?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "ko"));
    paths.sort();
    for path in &paths {
        let parameters = fs::read_to_string(path.with_extension("parameters"));
        mount::load_module(path, &parameters.unwrap_or_default())
            .map_err(|error| format!("cannot load {}: {error}", path.display()))?;
    }
    Ok(paths.len())
}

/// Returns the fact about idle states. A virtual CPU has none that takes long to leave. Without
/// those that it has, it would spin while idle, instruction by instruction, instead of leaping.
fn facts() -> Facts {
    let why = "not held: a virtual CPU has no deep idle states";
    Facts::from([("cpu_dma_latency_us".into(), why.into())])
}

fn measure() -> io::Result<()> {
    let mut stream = Stream::to_bench()?;
    match prepared() {
        Ok((plan, facts)) => session::carry_out(&plan, facts, Facts::new, &mut stream),
        Err(reason) => stream.send(&Record::Refused(reason)),
    }
}

/// Returns the plan, after the guest has lived for a while and all CPUs are up, with facts.
fn prepared() -> Result<(Plan, Facts), String> {
    network::set_up();
    // A thread that was joined counts for a moment longer, and what has two threads cannot fork.
    #[cfg(feature = "wire")]
    crate::sys::time::sleep(punctual_model::Nanos::from_millis(1));
    let plan = guest::plan()?;
    let mut facts = facts();
    let aged = ageing::age(plan.past.unwrap_or(plan.seed));
    let aged = aged.map_err(|error| format!("the guest cannot age: {error}"))?;
    facts.extend(aged);
    cpus::bring_up()?;
    Ok((plan, facts))
}
