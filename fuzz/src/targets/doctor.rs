// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a machine's files say to the doctor.

use std::fs;
use std::path::Path;

use punctual_doctor::{Machine, Purpose, examine};
use punctual_report::doctor::{Look, doctor_json, doctor_page, doctor_text};

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
            let is_own = ["/proc/", "/sys/", "/boot/", "/dev/", "/etc/"]
                .iter()
                .any(|start| path.starts_with(start) && !path.contains("/.."));
            let path = root.path().join(path.trim_start_matches('/'));
            let directory = path.parent().unwrap_or(Path::new("/"));
            // A name that no file can have makes none.
            if is_own && fs::create_dir_all(directory).is_ok() {
                _ = fs::write(path, text);
            }
        }
        let machine = Machine::new(root.path());
        let found = examine(&machine, &|_| true).weighed(Purpose::Isolated);
        let steps = found.first_steps(&machine, 9);
        let lines = steps.iter().flat_map(|step| &step.commands);
        for line in lines.flat_map(|(_, lines)| lines) {
            // What a stranger wrote is a remark, and ends with its line.
            assert!(!line.contains(char::is_control), "{line:?}");
        }
        let purpose = Some(Purpose::Isolated);
        let look = Look {
            width: 40,
            colour: false,
            all: true,
            steps: &steps,
            purpose,
        };
        let shown = doctor_text(&found, look) + &doctor_page(&found, look, None);
        assert!(!shown.contains('\u{1b}'), "{shown}");
        let _ = doctor_json(&found, purpose, &steps, &[], None);
        true
    },
};
