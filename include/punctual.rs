// SPDX-License-Identifier: MIT OR Apache-2.0
//! Marks for a Rust program that Punctual measures; `punctual.h` says when they are of use.
//!
//! ```ignore
//! #[path = "punctual.rs"]
//! mod punctual;
//!
//! let marks = punctual::Marks::open();
//! loop {
//!     wait_for_the_bus();
//!     marks.begin(Some(when_the_frame_came)); // nanoseconds of CLOCK_MONOTONIC, or None
//!     control();
//!     marks.end();
//! }
//! ```
//!
//! Where nobody measures, each costs a comparison; else one write, into the kernel's trace.

use std::fs::{File, OpenOptions};
use std::io::Write as _;

/// Marks cycles, where somebody measures.
#[derive(Debug)]
pub struct Marks(Option<File>);

impl Marks {
    /// To be opened before the program gives up its rights.
    pub fn open() -> Self {
        let path = std::env::var_os("PUNCTUAL_MARKS");
        Self(path.and_then(|path| OpenOptions::new().write(true).open(path).ok()))
    }

    /// A cycle of the calling thread begins, which was due then, if that is known.
    #[inline]
    pub fn begin(&self, due: Option<i64>) {
        self.mark(0x504e_4310, due.unwrap_or(0));
    }

    /// It ends.
    #[inline]
    pub fn end(&self) {
        self.mark(0x504e_4320, 0);
    }

    #[inline]
    fn mark(&self, mark: u32, due: i64) {
        if let Some(mut file) = self.0.as_ref() {
            let mut record = [0; 12];
            record[..4].copy_from_slice(&mark.to_ne_bytes());
            record[4..].copy_from_slice(&due.to_ne_bytes());
            // Nobody waits for it, and nothing is wrong where it is not noted.
            let _ = file.write_all(&record);
        }
    }
}
