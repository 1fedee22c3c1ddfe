// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a target's records go: a file descriptor, or the guest's debug console port.

use std::io::{self, Write};

use punctual_model::Record;
use punctual_model::frame::Encoder;
use punctual_model::plan::Step;

use crate::probes::Measurement;
use crate::session::Repetitions;
use crate::sys::port::{Port, Ports};

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

    /// A stream over the guest's debug console; an error where there is none.
    pub fn over_debug_console() -> io::Result<Self> {
        // The device answers a read with its own address.
        let (own, answer) = (
            Port::DebugConsole as u8,
            Ports::open()?.read(Port::DebugConsole),
        );
        if answer != own {
            let text = format!("port {own:#x} answers {answer:#x}: no debug console");
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        Ok(Self::new(DebugConsole))
    }
}

impl Records for Stream {
    fn send(&mut self, record: &Record) -> io::Result<()> {
        self.sink.write_all(&self.encoder.encode(record))?;
        self.sink.flush()
    }
}

/// QEMU's `isa-debugcon`. There is no interrupt and no buffer, so nothing of the host's time
/// leaks into the guest.
struct DebugConsole;

impl Write for DebugConsole {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ports::open()?.write_all(Port::DebugConsole, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
