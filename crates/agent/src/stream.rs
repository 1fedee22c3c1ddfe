// SPDX-License-Identifier: MIT OR Apache-2.0
//! The destination of a target's records: a file descriptor, or a guest's bench.

use std::io::{self, Write};

use punctual_model::Record;
use punctual_model::frame::Encoder;
use punctual_model::plan::Step;

use crate::probes::Measurement;
use crate::session::Repetitions;
use crate::sys::arch;

/// The destination of a plan's records.
pub trait Records {
    /// Sends one whole record.
    fn send(&mut self, record: &Record) -> io::Result<()>;

    /// Begins a step; `repetitions` are those of the steps before it.
    fn begin_step(
        &mut self,
        number: u32,
        step: &Step,
        measurement: &dyn Measurement,
        repetitions: &Repetitions,
    ) {
        let _ = (number, step, measurement, repetitions);
    }

    /// Ends the step.
    fn end_step(&mut self) {}
}

/// Sends records, one frame each.
pub struct Stream {
    encoder: Encoder,
    sink: Box<dyn Write + Send>,
}

impl Stream {
    /// Creates a stream into anything that takes bytes.
    pub fn new(sink: impl Write + Send + 'static) -> Self {
        Self {
            encoder: Encoder::default(),
            sink: Box::new(sink),
        }
    }

    /// Creates a stream from a guest to its bench; returns an error if there is none.
    pub fn to_bench() -> io::Result<Self> {
        arch::find_bench()?;
        Ok(Self::new(Bench))
    }
}

impl Records for Stream {
    fn send(&mut self, record: &Record) -> io::Result<()> {
        self.sink.write_all(&self.encoder.encode(record))?;
        self.sink.flush()
    }
}

/// The device by which a guest sends to its bench.
struct Bench;

impl Write for Bench {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        arch::send(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
