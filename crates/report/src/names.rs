// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of a measurement, as all forms of JSON have them.

use punctual_model::RecordingKey;
use serde::Serialize;

use crate::matrix::Measurement;

/// The names of a measurement: fields of the object that is about it.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Names<'a> {
    /// The probe.
    probe: &'a str,
    /// The load.
    load: &'a str,
    /// The variant.
    variant: &'a str,
    /// The repetition, from 1.
    #[cfg_attr(test, schemars(range(min = 1)))]
    repetition: u32,
}

impl<'a> From<&'a Measurement> for Names<'a> {
    fn from(row: &'a Measurement) -> Self {
        Self {
            probe: &row.probe,
            load: &row.load,
            variant: &row.variant,
            repetition: row.repetition,
        }
    }
}

impl<'a> From<&'a RecordingKey> for Names<'a> {
    fn from(key: &'a RecordingKey) -> Self {
        Self {
            probe: &key.probe,
            load: &key.load,
            variant: &key.variant,
            repetition: key.repetition,
        }
    }
}
