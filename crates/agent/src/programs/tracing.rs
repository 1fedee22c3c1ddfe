// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's tracer, which is stopped when a value was too long (`-b`).

use std::fs::{File, OpenOptions};
use std::io::Write as _;

use anyhow::{Context as _, Result};

const DIRECTORIES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The switch, and the file for marks; both are open before the first sample.
#[derive(Debug)]
pub struct Tracing {
    switch: File,
    marks: Option<File>,
}

impl Tracing {
    /// Opens the tracer; returns an error if the kernel has none or this user may not use it.
    pub fn open(with_marks: bool) -> Result<Self> {
        let open = |name: &str| {
            let open = |directory: &&str| {
                let path = format!("{directory}/{name}");
                OpenOptions::new().write(true).open(path).ok()
            };
            DIRECTORIES.iter().find_map(open)
        };
        let switch = open("tracing_on").context(
            "the kernel's tracer cannot be reached: mount it as root \
             (mount -t tracefs nodev /sys/kernel/tracing), or leave out -b",
        )?;
        let marks = with_marks.then(|| open("trace_marker")).flatten();
        Ok(Self { switch, marks })
    }

    /// Stops it. This ends the measurement.
    pub fn stop(&self, what: &str) {
        if let Some(mut marks) = self.marks.as_ref() {
            let _ = marks.write_all(what.as_bytes());
        }
        // The value that was too long is told whether or not there is a trace of it.
        let _ = (&self.switch).write_all(b"0");
    }
}
