// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a machine's files say to the doctor.

use std::fs;
use std::path::Path;

use punctual_doctor::{Machine, examine};
use punctual_report::doctor::{Look, doctor_json, doctor_text};

use super::{text, texts};
use crate::Target;

/// All files of a machine, each in a line with what it holds.
pub const MACHINE: Target = Target {
    name: "machine",
    seeds: || texts(&[include_str!("../../../crates/doctor/src/tests/sound.txt")]),
    run: |bytes| {
        let root = tempfile::tempdir().expect("a directory");
        for line in text(bytes).lines() {
            let (path, text) = line.split_once(" = ").unwrap_or((line, ""));
            let text = text
                .replace("\\n", "\n")
                .replace("\\t", "\t")
                .replace("\\0", "\0");
            let is_own = ["/proc/", "/sys/", "/boot/", "/dev/"]
                .iter()
                .any(|start| path.starts_with(start) && !path.contains("/.."));
            let path = root.path().join(path.trim_start_matches('/'));
            let directory = path.parent().unwrap_or(Path::new("/"));
            // A name that no file can have makes none.
            if is_own && fs::create_dir_all(directory).is_ok() {
                _ = fs::write(path, text);
            }
        }
        let found = examine(&Machine::new(root.path()), &|_| true);
        let look = Look {
            width: 40,
            colour: false,
            all: true,
        };
        let shown = doctor_text(&found, look);
        assert!(!shown.contains('\u{1b}'), "{shown}");
        let _ = doctor_json(&found, &[], None);
        true
    },
};
