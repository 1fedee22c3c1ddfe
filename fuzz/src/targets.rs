// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is fuzzed, by the crate that reads it.

pub mod bench;
pub mod calls;
pub mod doctor;
pub mod exchange;
pub mod formats;
pub mod kernels;
pub mod model;
pub mod published;
pub mod report;
pub mod runner;
pub mod scope;
pub mod serve;
pub mod store;
pub mod trace;

/// Made-up runs, which the report's own tests use too.
#[path = "../../crates/report/src/fixtures.rs"]
#[allow(dead_code)]
mod fixtures;

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
