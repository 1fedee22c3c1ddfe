// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's tracer `hwlat`, which a killed target leaves running: it takes one CPU after
//! another, for half of each second.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// The directory of the trace instance in which a target has the tracer run.
pub const INSTANCE: &str = "/sys/kernel/tracing/instances/punctual-hwlat";

/// Ends the tracer in this instance, and removes the instance; returns true if there was one. The
/// lock for the machine's only measurement guarantees that no other run uses it.
///
/// # Errors
/// If the instance cannot be removed, such as one that `hwlatdetect` reads.
pub fn end_left_behind(instance: &Path) -> io::Result<bool> {
    if !instance.is_dir() {
        return Ok(false);
    }
    let tracer = instance.join("current_tracer");
    let tracer = OpenOptions::new().write(true).open(tracer);
    // If it cannot be ended, the instance cannot be removed either.
    _ = tracer.and_then(|mut tracer| tracer.write_all(b"nop"));
    fs::remove_dir(instance)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracer_that_is_left_behind_is_ended_and_its_instance_removed() {
        let directory = tempfile::tempdir().unwrap();
        let instance = directory.path().join("punctual-hwlat");
        assert!(!end_left_behind(&instance).unwrap());
        fs::create_dir(&instance).unwrap();
        assert!(end_left_behind(&instance).unwrap());
        assert!(!instance.exists());
    }

    #[test]
    fn an_instance_that_stays_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        // An ordinary file system removes no directory with files, as the kernel removes none
        // that is in use.
        let tracer = directory.path().join("current_tracer");
        fs::write(&tracer, "xxx").unwrap();
        assert!(end_left_behind(directory.path()).is_err());
        assert_eq!(fs::read_to_string(&tracer).unwrap(), "nop");
    }
}
