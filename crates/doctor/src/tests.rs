// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs each check on made-up machines: one with the defect, one without, one that cannot tell.

mod arguments;
mod defects;
mod first_steps;
mod hardware;
mod isolation;
mod kernels;
mod machines;
mod tree;

use super::*;
use tree::Edit::{self, Argument, File, Gone, NoOption, Option};
use tree::{RELEASE, Tree};

const CONFIG: &str = tree::CONFIG;
const STOCK: Edit = File(
    "/proc/version",
    "Linux version 6.12.117 (x) #1 SMP PREEMPT_DYNAMIC x",
);
const VERSION: &str = "/proc/version";
const CMDLINE: &str = "/proc/cmdline";
const CPUINFO: &str = "/proc/cpuinfo";
const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
const ONLINE: &str = "/sys/devices/system/cpu/online";
const WORKQUEUES: &str = "/sys/devices/virtual/workqueue/cpumask";
const WRITEBACK: &str = "/sys/bus/workqueue/devices/writeback/cpumask";

fn all() -> impl Iterator<Item = &'static Check> {
    ALL.into_iter().flatten()
}

/// The verdict of one check on a machine.
fn of(id: &str, tree: &Tree) -> Verdict {
    let found = examine(&tree.machine(), &|check| check.id == id);
    assert_eq!(found.0.len(), 1, "{id}");
    found.0[0].verdict.clone()
}

fn with(edits: &[Edit]) -> Tree {
    Tree::sound().edited(edits)
}

/// A machine with these files.
fn made(files: &[(&'static str, &'static str)]) -> Tree {
    let files: Vec<Edit> = files.iter().map(|(path, text)| File(path, text)).collect();
    Tree::empty().edited(&files)
}

fn found(id: &str, tree: &Tree) -> String {
    match of(id, tree) {
        Verdict::Fine(found) => format!("fine: {found}"),
        Verdict::Wrong(found) => format!("wrong: {found}"),
        Verdict::Unknown(reason) => format!("unknown: {reason}"),
        Verdict::Moot(why) => format!("moot: {why}"),
    }
}
