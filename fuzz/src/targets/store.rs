// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is stored.

use punctual_store::fuzzing::{decode, encode};

use super::fixtures;
use crate::Target;

/// A recording whose checksum is right.
pub const STORED: Target = Target {
    name: "stored",
    seeds: || {
        let runs = [fixtures::run("rt", 1), fixtures::all_probes().remove(0)];
        let recordings = runs.iter().flat_map(|run| &run.recordings);
        recordings.map(encode).collect()
    },
    run: |bytes| {
        let Ok(recording) = decode(bytes, crc32fast::hash(bytes)) else {
            return false;
        };
        assert_eq!(recording.contradiction(), None);
        let again = encode(&recording);
        let again = decode(&again, crc32fast::hash(&again)).expect("what was written is read");
        assert!(again == recording || format!("{again:?}") == format!("{recording:?}"));
        true
    },
};
