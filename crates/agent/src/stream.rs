// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a target's records go: a file descriptor, or a guest's bench.

use std::io::{self, Write};

use punctual_model::Record;
use punctual_model::frame::Encoder;
use punctual_model::plan::Step;

use crate::probes::Measurement;
use crate::session::Repetitions;
use crate::sys::arch;

/// Where the records of a plan go.
pub trait Records {
    /// Sends one, whole.
    fn send(&mut self, record: &Record) -> io::Result<()>;

    /// A step begins; `repetitions` are those of the steps before it.
    fn begin_step(
        &mut self,
        number: u32,
        step: &Step,
        measurement: &dyn Measurement,
        repetitions: &Repetitions,
    ) {
        let _ = (number, step, measurement, repetitions);
    }

    /// The step has ended.
    fn end_step(&mut self) {}
}

/// Sends records, one frame each.
pub struct Stream {
    encoder: Encoder,
    sink: Box<dyn Write + Send>,
}

impl Stream {
    /// A stream into anything that takes bytes.
    pub fn new(sink: impl Write + Send + 'static) -> Self {
        Self {
            encoder: Encoder::default(),
            sink: Box::new(sink),
        }
    }

    /// A stream from a guest to its bench; an error where there is none.
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
