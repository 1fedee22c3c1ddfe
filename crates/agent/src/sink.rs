// SPDX-License-Identifier: MIT OR Apache-2.0
//! What samples are given to: a recorder, or a program with an output of its own.

use punctual_model::{Nanos, Recorder};

/// Takes samples as they come. Nothing here may allocate, lock, print or do I/O, unless the
/// measurement is over with it.
pub trait Sink {
    /// Takes one sample: when it was due, from the first one on, and what was measured.
    fn record(&mut self, at: Nanos, value: Nanos);

    /// Counts periods in which no sample could be taken.
    fn miss(&mut self, periods: u64);

    /// Whether no further sample is wanted.
    fn is_over(&mut self) -> bool {
        false
    }

    /// The moment until which the sink has kept its thread since the last sample, if it has:
    /// nobody was measured until then, so that nothing was late or missed.
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
