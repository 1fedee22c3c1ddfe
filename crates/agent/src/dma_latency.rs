// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/dev/cpu_dma_latency`: a bound on the exit latency of the idle states that CPUs may enter.
//!
//! The request holds as long as the file is open (the kernel's
//! `Documentation/power/pm_qos_interface.rst`). cyclictest, rtla and jitterdebugger hold it at
//! zero, or they would measure the way out of an idle state.

use std::fs::File;
use std::io::{self, Write as _};

use punctual_model::Fact;

/// The device.
pub const DEVICE: &str = "/dev/cpu_dma_latency";

/// A request, which ends when this is dropped.
#[derive(Debug)]
pub struct DmaLatency {
    _file: File,
}

impl DmaLatency {
    /// Asks for exit latencies of `micros` µs at most.
    pub fn hold(micros: u32) -> io::Result<Self> {
        let mut file = File::options().write(true).open(DEVICE)?;
        file.write_all(&micros.to_ne_bytes())?;
        Ok(Self { _file: file })
    }

    /// Requests no idle state at all, unless they are `allowed`. Also returns the fact for a run's
    /// provenance.
    pub fn for_run(allowed: bool) -> (Option<Self>, Fact) {
        if allowed {
            return (None, "not held: idle states are allowed".into());
        }
        match Self::hold(0) {
            Ok(held) => (Some(held), 0.into()),
            Err(error) => {
                let why =
                    format!("not held: {DEVICE}: {error}: idle states add to what is measured");
                (None, why.into())
            }
        }
    }
}
