// SPDX-License-Identifier: MIT OR Apache-2.0
//! What guests and QEMU say.

use std::io::Cursor;

use punctual_bench::fuzzing::{Console, Qmp, labgrid};
use punctual_bench::tail;
use serde_json::json;

use super::{text, texts};
use crate::Target;

/// The console.
pub const CONSOLE: Target = Target {
    name: "console",
    seeds: || {
        texts(&[
            "[    0.000000] Linux version 6.12.1\r\n[    0.1] tsc: Detected 999.993 MHz\r\n\
             [    0.2] Kernel panic - not syncing: VFS\r\n[    0.3] Call Trace:\r\n",
            "\r\nXZ-compressed data is corrupt\r\n\r\n -- System halted",
        ])
    },
    run: |bytes| {
        let mut console = Console::default();
        let (first, second) = bytes.split_at(bytes.len() / 2);
        console.feed(first);
        let sign = console.sign();
        console.feed(second);
        let sign = sign.or(console.sign());
        let _ = (tail(&console.text()), console.has_kernel_spoken());
        assert_eq!(console.bytes(), bytes, "{sign:?}");
        sign.is_some()
    },
};

/// QEMU's machine protocol.
pub const QMP: Target = Target {
    name: "qmp",
    seeds: || {
        texts(&["{\"QMP\": {\"version\": {}}}\n{\"return\": {}}\n\
            {\"event\": \"STOP\", \"timestamp\": {\"seconds\": 1}}\n\
            {\"return\": {\"status\": \"paused\", \"running\": false}}\n\
            {\"error\": {\"class\": \"GenericError\", \"desc\": \"no disk\"}}\n"])
    },
    run: |bytes| {
        let Ok(mut qmp) = Qmp::begin(Vec::new(), Cursor::new(bytes.to_vec())) else {
            return false;
        };
        let answer = qmp.execute("query-status", &json!({}));
        while qmp.event().is_some() {}
        answer.is_ok()
    },
};

/// What `labgrid-client` shows of a place, and what it complains of.
pub const LABGRID: Target = Target {
    name: "labgrid",
    seeds: || {
        texts(&[
            "Place 'rack1':\n  comment: the first\n  matches:\n    lab/rack1/*\n  \
             acquired: host/ann\n  acquired resources:\n  created: 2026-01-01 00:00:00\n  \
             changed: 2026-01-02 00:00:00\n",
        ])
    },
    run: |bytes| labgrid(&text(bytes)).0,
};
