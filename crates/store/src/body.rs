// SPDX-License-Identifier: MIT OR Apache-2.0
//! The form in which a recording is stored: CBOR, apart from the form in which it travels.
//!
//! A field that is added here has a default, so that recordings stored before stay readable; the
//! stores in `tests/fixtures` guard this.

use std::borrow::Cow;

use punctual_model::capture::Capture;
use punctual_model::recording::Samples;
use punctual_model::{Facts, Findings, Histogram, Nanos, Recording, RecordingKey, Sample};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Body<'a> {
    key: Cow<'a, RecordingKey>,
    #[serde(default)]
    interval: Option<Nanos>,
    count: u64,
    #[serde(default)]
    warmup: u64,
    sum: Nanos,
    #[serde(default)]
    extremes: Option<(Nanos, Nanos)>,
    missed: u64,
    #[serde(default)]
    interrupted: bool,
    histogram: Cow<'a, Histogram>,
    worst: Cow<'a, [Sample]>,
    samples: Cow<'a, Samples>,
    #[serde(default)]
    maxima: Cow<'a, [Sample]>,
    #[serde(default)]
    captures: Cow<'a, [Capture]>,
    #[serde(default)]
    settings: Cow<'a, Facts>,
    #[serde(default)]
    findings: Cow<'a, Findings>,
    #[serde(default)]
    output: Option<Cow<'a, str>>,
}

/// Encodes a recording as it is stored.
///
/// # Panics
/// Never: writing to memory does not fail.
pub fn encode(recording: &Recording) -> Vec<u8> {
    let body = Body {
        key: Cow::Borrowed(&recording.key),
        interval: recording.interval,
        count: recording.count,
        warmup: recording.warmup,
        sum: recording.sum,
        extremes: recording.extremes,
        missed: recording.missed,
        interrupted: recording.interrupted,
        histogram: Cow::Borrowed(&recording.histogram),
        worst: Cow::Borrowed(&recording.worst),
        samples: Cow::Borrowed(&recording.samples),
        maxima: Cow::Borrowed(&recording.maxima),
        captures: Cow::Borrowed(&recording.captures),
        settings: Cow::Borrowed(&recording.settings),
        findings: Cow::Borrowed(&recording.findings),
        output: recording.output.as_deref().map(Cow::Borrowed),
    };
    let mut bytes = Vec::new();
    ciborium::into_writer(&body, &mut bytes).expect("writing to memory does not fail");
    bytes
}

/// Decodes the recording in a body; the error says what is wrong with it. The checksum is checked
/// first: CBOR with a wrong bit may still be CBOR, with another number in it.
pub fn decode(bytes: &[u8], checksum: u32) -> Result<Recording, String> {
    check(bytes, checksum)?;
    let body: Body = ciborium::from_reader(bytes).map_err(|error| error.to_string())?;
    let recording = Recording {
        key: body.key.into_owned(),
        interval: body.interval,
        count: body.count,
        warmup: body.warmup,
        sum: body.sum,
        extremes: body.extremes,
        missed: body.missed,
        interrupted: body.interrupted,
        histogram: body.histogram.into_owned(),
        worst: body.worst.into_owned(),
        samples: body.samples.into_owned(),
        maxima: body.maxima.into_owned(),
        captures: body.captures.into_owned(),
        settings: body.settings.into_owned(),
        findings: body.findings.into_owned(),
        output: body.output.map(Cow::into_owned),
    };
    match recording.contradiction() {
        Some(what) => Err(format!("it has {what}")),
        None => Ok(recording),
    }
}

/// Checks that bytes are those that were stored.
pub fn check(bytes: &[u8], expected: u32) -> Result<(), String> {
    let found = crc32fast::hash(bytes);
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "expected checksum {expected:08x}, found {found:08x}"
    ))
}
