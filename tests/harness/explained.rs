// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the output of `punctual explain --json`.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::{Scratch, schema};

/// Explains samples, which must succeed, and checks the output against its schema.
///
/// # Panics
/// If it fails, or does not match.
pub fn explain(scratch: &Scratch, arguments: &[&str]) -> Value {
    // Threads of a test may ask at once.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name = format!("parts-{}.csv", NUMBER.fetch_add(1, Ordering::Relaxed));
    let table = scratch.path(&name).display().to_string();
    let words = ["explain", "--quiet", "--json", "--csv", &table];
    let ended = scratch.run(&[&words, arguments].concat());
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let explained = serde_json::from_str(&ended.stdout).expect("JSON");
    schema::check("explain", &explained).expect("as its schema has it");
    // A line for each part, and for each sample without any.
    let parts = |sample: &Value| {
        sample["story"]["parts"]
            .as_array()
            .map_or(1, Vec::len)
            .max(1)
    };
    let lines: usize = samples(&explained).iter().map(parts).sum();
    let table = fs::read_to_string(table).expect("the table");
    assert_eq!(table.lines().count(), 1 + lines.max(1), "{table}");
    explained
}

/// The samples with their stories.
///
/// # Panics
/// If there are none.
pub fn samples(explained: &Value) -> &Vec<Value> {
    explained["samples"].as_array().expect("samples")
}

/// An integer.
///
/// # Panics
/// If it is not one.
pub fn number(value: &Value) -> i64 {
    value
        .as_i64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

/// Checks that the parts of a sample's story follow one another without a gap, that all were
/// watched, and that they add up to its value.
///
/// # Panics
/// If they do not.
pub fn check_sum(sample: &Value) {
    let parts = sample["story"]["parts"].as_array();
    let parts = parts.unwrap_or_else(|| panic!("no parts: {sample:#}"));
    let mut at = 0;
    for part in parts {
        assert_eq!(number(&part["from_ns"]), at, "{sample:#}");
        assert!(number(&part["length_ns"]) > 0, "{sample:#}");
        assert_ne!(part["cause"], "not watched", "{sample:#}");
        at += number(&part["length_ns"]);
    }
    assert_eq!(at, number(&sample["late_ns"]), "{sample:#}");
}
