// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a guest has done before it is measured: a little, which the seed decides.
//!
//! All runs of a subject resume one booted guest. What its boot left behind, such as the order
//! of free pages or how full a ring buffer is, would be the same in each of them, and a
//! comparison would take it for the subject's. So each run lives for a while first, each
//! another life: processes that touch memory, files that come and go, and a rest.

use std::fs;
use std::io;
use std::path::PathBuf;

use punctual_model::{Fact, Facts, Nanos};

use crate::phases::Phases;
use crate::scratch::PrivateDirectory;
use crate::sys::{process, time};

/// No plan has so many steps: what is drawn here is drawn for none of them.
const NO_STEP: u32 = u32::MAX;

/// At most so many processes, less one, each after the other.
const PROCESSES: u64 = 64;
/// Each touches and writes less than so many bytes.
const BYTES: u64 = 64 << 10;
/// What was put off meanwhile (callbacks of RCU, for instance) is done in this time ...
const REST: Nanos = Nanos::from_millis(50);
/// ... and for up to so long more nothing is done.
const FURTHER_REST: Nanos = Nanos::from_millis(100);

/// Lets the guest live for as long as the seed says, some 0.1 s. Gives back what it did, as a
/// fact of the run's provenance.
///
/// # Errors
/// If there is no process or no file to be had.
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
