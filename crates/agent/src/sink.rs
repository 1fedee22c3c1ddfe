// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receivers of samples: a recorder, or a program with an output of its own.

use punctual_model::{Nanos, Recorder};

/// Takes samples as they come. An implementation must not allocate, lock, print or do I/O, unless
/// that ends the measurement.
pub trait Sink {
    /// Takes one sample: when it was due, counted from the first sample, and the measured value.
    fn record(&mut self, at: Nanos, value: Nanos);

    /// Counts periods in which no sample could be taken.
    fn miss(&mut self, periods: u64);

    /// Returns true if no further sample is wanted.
    fn is_over(&mut self) -> bool {
        false
    }

    /// Returns the time until which the sink has kept its thread since the last sample, if it has:
    /// nothing was measured until then, so that nothing was late or missed.
    fn held_until(&mut self) -> Option<Nanos> {
        None
    }
}

impl Sink for Recorder {
    #[inline]
    fn record(&mut self, at: Nanos, value: Nanos) {
        Recorder::record(self, at, value);
    }

    #[inline]
    fn miss(&mut self, periods: u64) {
        Recorder::miss(self, periods);
    }
}
