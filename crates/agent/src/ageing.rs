// SPDX-License-Identifier: MIT OR Apache-2.0
//! The past of a guest before it is measured: a short one, which the seed decides.
//!
//! All runs of a subject resume one booted guest. What its boot left behind, such as the order
//! of free pages or how full a ring buffer is, would be the same in each of them, and a
//! comparison would attribute it to the subject. So each run lives for a while first, and
//! differently each time: processes that touch memory, files that come and go, and a rest.

use std::fs;
use std::io;
use std::path::PathBuf;

use punctual_model::{Fact, Facts, Nanos};

use crate::phases::Phases;
use crate::scratch::PrivateDirectory;
use crate::sys::{process, time};

/// A step number that no plan has: the values drawn here are drawn for no step.
const NO_STEP: u32 = u32::MAX;

/// The upper bound, exclusive, of the number of processes, which run one after the other.
const PROCESSES: u64 = 64;
/// The upper bound, exclusive, of the bytes that each touches and writes.
const BYTES: u64 = 64 << 10;
/// The time in which postponed work (callbacks of RCU, for instance) is done ...
const REST: Nanos = Nanos::from_millis(50);
/// ... and the longest further time in which nothing is done.
const FURTHER_REST: Nanos = Nanos::from_millis(100);

/// Lets the guest live for as long as the seed says, some 0.1 s. Returns a description of what it
/// did, as a fact of the run's provenance.
///
/// # Errors
/// Fails if no process or no file can be created.
pub fn age(seed: u64) -> io::Result<Facts> {
    let mut phases = Phases::new(seed, NO_STEP);
    let directory = PrivateDirectory::new_in(&std::env::temp_dir())?;
    let processes = phases.number(PROCESSES);
    let mut files: Vec<PathBuf> = Vec::new();
    for number in 0..processes {
        let path = directory.path().join(number.to_string());
        let bytes = phases.number(BYTES) as usize;
        // The child touches what it writes, and the file's pages are others than those.
        let child = process::fork(|| fs::write(&path, vec![0x55; bytes]))?;
        process::wait(child)?;
        files.push(path);
        // Files do not go in the order in which they came.
        if phases.number(2) == 0 {
            let victim = phases.number(files.len() as u64) as usize;
            fs::remove_file(files.swap_remove(victim))?;
        }
    }
    drop(directory);
    let rest = REST + phases.below(FURTHER_REST);
    time::sleep(rest);
    let told = format!("{processes} processes, {} us of rest", rest.0 / 1_000);
    Ok(Facts::from([("aged".into(), Fact::from(told))]))
}
