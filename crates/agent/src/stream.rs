// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a target's records go: a file descriptor, or the guest's debug console port.

use std::io::{self, Write};

use punctual_model::Record;
use punctual_model::frame::Encoder;

use crate::sys::port::{Port, Ports};

/// Sends records, one frame each.
pub struct Stream {
    encoder: Encoder,
    sink: Box<dyn Write>,
}

impl Stream {
    /// A stream into anything that takes bytes.
    pub fn new(sink: impl Write + 'static) -> Self {
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

    /// Sends one record, whole.
    pub fn send(&mut self, record: &Record) -> io::Result<()> {
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
