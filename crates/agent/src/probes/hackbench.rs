// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `hackbench`: scheduler throughput, as seconds for groups of senders and receivers.

use punctual_model::probe::{ProbeInfo, Shape, View};
use punctual_model::{Nanos, Reason, Recording, RecordingKey};
use serde::Deserialize;

use super::program::run_once;
use super::{Context, Measurement, Probe, parameters, within};
use crate::hackbench_workers::{Ipc, Mode};
use crate::loads::SELF;
use crate::sink::Sink as _;
use crate::status_page::{self, SeenRecorder};
use crate::sys::time;

/// This probe.
pub const PROBE: Probe = Probe {
    name: "hackbench",
    summary: "scheduler throughput: seconds for groups of senders and receivers to pass messages",
    parse: |table| parameters::<Hackbench>(table, Hackbench::check),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View::of_samples(Shape::Work, "hackbench"),
    scope: Err("is the time that whole programs take, which is throughput, not a latency"),
};

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Hackbench {
    /// The way in which messages are sent: `socket` or `pipe`.
    ipc: Ipc,
    /// The kind of a worker: `process` or `thread`.
    mode: Mode,
    /// The number of groups of 20 senders and 20 receivers.
    groups: u32,
    /// The number of messages that each sender writes to each receiver.
    loops: u32,
    /// The number of executions; each is a sample.
    samples: u32,
}

impl Default for Hackbench {
    fn default() -> Self {
        Self {
            ipc: Ipc::Socket,
            mode: Mode::Process,
            groups: 10,
            loops: 100,
            samples: 1,
        }
    }
}

impl Hackbench {
    fn check(&self) -> Result<(), String> {
        within("groups", self.groups, 1, 1_000)?;
        within("loops", self.loops, 1, 1_000_000)?;
        within("samples", self.samples, 1, 1_000_000)
    }

    /// Returns the command line that does the work, in a process of its own: neither locked in
    /// memory nor real-time, as the known program would run.
    fn command(&self) -> Vec<String> {
        let mut words = vec![SELF, "hackbench", "--nanoseconds"];
        if self.ipc == Ipc::Pipe {
            words.push("--pipe");
        }
        words.push(if self.mode == Mode::Thread {
            "--threads"
        } else {
            "--process"
        });
        let (groups, loops) = (self.groups.to_string(), self.loops.to_string());
        words.extend(["--groups", &groups, "--loops", &loops]);
        words.into_iter().map(str::to_owned).collect()
    }

    fn variant(&self) -> String {
        let ipc = if self.ipc == Ipc::Pipe {
            "pipe"
        } else {
            "socket"
        };
        let mode = if self.mode == Mode::Thread {
            "thread"
        } else {
            "process"
        };
        format!("{ipc} {mode} {}", self.groups)
    }
}

impl Measurement for Hackbench {
    fn nominal(&self) -> Nanos {
        Nanos::ZERO
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let mut recorder = SeenRecorder::new(self.samples as usize, self.samples.into());
        let command = self.command();
        let begin = time::now() + context.phases.below(Nanos::from_millis(4));
        time::sleep_until(begin);
        for _ in 0..self.samples {
            let at = time::now() - begin;
            let output = run_once(&command);
            if status_page::is_stop_requested() {
                break;
            }
            recorder.record(at, elapsed(&output?)?);
        }
        let mut recording = recorder.finish(RecordingKey::of_variant(self.variant()));
        recording
            .settings
            .insert("command".into(), command.join(" ").into());
        Ok(vec![recording])
    }
}

/// Returns the time that the program reports.
fn elapsed(output: &str) -> Result<Nanos, Reason> {
    let line = output
        .lines()
        .find_map(|line| line.strip_prefix("Nanoseconds: "));
    let number = line.and_then(|number| number.parse().ok());
    number
        .map(Nanos)
        .ok_or_else(|| format!("hackbench tells no time: \"{output}\"").into())
}
