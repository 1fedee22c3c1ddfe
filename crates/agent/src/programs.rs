// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs whose names, options and output users' scripts know: one file each, one
//! line each in [`ALL`].
//!
//! Each is `punctual-target` called by another name (`argv[0]`, a link), or by that name as
//! its subcommand. They measure with the code of the probes; the code here handles options,
//! output, and the end on Ctrl-C.

mod cpus;
mod cyclicdeadline;
mod cyclictest;
mod getopt;
mod hackbench;
mod hwlatdetect;
mod live;
mod oslat;
mod realfeel;
mod results;
mod sendme;
mod spikes;
mod tracing;

use std::ffi::OsStr;
use std::path::Path;

use anyhow::Result;
use lexopt::Parser;

/// A program that is known from elsewhere.
#[derive(Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// Runs the program to its end.
    pub run: fn(&mut Parser) -> Result<()>,
}

/// All programs.
pub const ALL: &[Program] = &[
    cyclicdeadline::PROGRAM,
    cyclictest::PROGRAM,
    hackbench::PROGRAM,
    hwlatdetect::PROGRAM,
    oslat::PROGRAM,
    realfeel::PROGRAM,
    sendme::PROGRAM,
];

/// Returns the program of this name, or with a path that ends in it.
pub fn called(name: &OsStr) -> Option<&'static Program> {
    let name = Path::new(name).file_name()?;
    ALL.iter().find(|program| program.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_anywhere_is_called_by_its_name() {
        let name = |path: &str| called(OsStr::new(path)).map(|program| program.name);
        assert_eq!(name("/usr/local/bin/cyclictest"), Some("cyclictest"));
        assert_eq!(name("sendme"), Some("sendme"));
        assert_eq!(name("target/release/punctual-target"), None);
        assert_eq!(name("mycyclictest"), None);
    }
}
