// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `program`: runs any program, times it as a whole, and keeps its output.
//!
//! So other tools' figures can come from the same guest, beside the same load.

use std::io::Read;

use punctual_model::probe::{ProbeInfo, Shape, View};
use punctual_model::{Nanos, Reason, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Measurement, Probe, parameters, within};
use crate::loads::spawn;
use crate::shutdown;
use crate::sink::Sink as _;
use crate::status_page::{self, SeenRecorder};
use crate::sys::process::{self, Group};
use crate::sys::time;

/// This probe.
pub const PROBE: Probe = Probe {
    name: "program",
    summary: "any program: its elapsed time, and what it prints, kept word for word",
    parse: |table| parameters::<Program>(table, Program::check),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View::of_samples(Shape::Work, ""),
    scope: Err("is the time that whole programs take, which is throughput, not a latency"),
};

/// The running program: each probe that measures programs runs one at a time.
pub static MEASURED: Group = Group::new();

/// The most bytes of all executions' output; more is an error, since a silent cut would mislead.
const OUTPUT_LIMIT: u64 = 64 << 20;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    /// The program and its arguments.
    run: Vec<String>,
    /// The number of executions; each is a sample.
    #[serde(default = "one")]
    samples: u32,
}

fn one() -> u32 {
    1
}

impl Program {
    fn check(&self) -> Result<(), String> {
        if self.run.is_empty() {
            return Err("run is empty, but it must name a program".into());
        }
        within("samples", self.samples, 1, 1_000_000)
    }
}

impl Measurement for Program {
    fn nominal(&self) -> Nanos {
        Nanos::ZERO
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let mut recorder = SeenRecorder::new(self.samples as usize, self.samples.into());
        let mut printed = String::new();
        let begin = time::now() + context.phases.below(Nanos::from_millis(4));
        time::sleep_until(begin);
        for _ in 0..self.samples {
            let start = time::now();
            let output = run_once(&self.run);
            if status_page::is_stop_requested() {
                break;
            }
            printed.push_str(&output?);
            if printed.len() as u64 > OUTPUT_LIMIT {
                return Err(too_much(&self.run));
            }
            recorder.record(start - begin, time::now() - start);
        }
        let mut recording = recorder.finish(RecordingKey::of_variant(self.run.join(" ")));
        recording.output = Some(printed);
        Ok(vec![recording])
    }
}

/// Runs a command to its end and returns its output; a failure is an error.
pub fn run_once(command: &[String]) -> Result<String, Reason> {
    let named = |what: &dyn std::fmt::Display| format!("{}: {what}", command.join(" "));
    let mut child = spawn(command).map_err(|error| not_started(command, &error))?;
    MEASURED.led_by(process::id(&child));
    let mut printed = Vec::new();
    if let Some(output) = child.stdout.take() {
        output
            .take(OUTPUT_LIMIT + 1)
            .read_to_end(&mut printed)
            .map_err(|error| named(&error))?;
    }
    let is_too_much = printed.len() as u64 > OUTPUT_LIMIT;
    if is_too_much {
        MEASURED.kill();
    }
    let (ended, _) = MEASURED.wait().map_err(|error| named(&error))?;
    if is_too_much {
        return Err(too_much(command));
    }
    if !ended.status.success() {
        return Err(named(&ended.status).into());
    }
    Ok(String::from_utf8_lossy(&printed).into_owned())
}

fn too_much(command: &[String]) -> Reason {
    let limit = OUTPUT_LIMIT >> 20;
    format!("{}: printed more than {limit} MiB", command.join(" ")).into()
}

/// Returns the reason why a command could not be started.
pub fn not_started(command: &[String], error: &std::io::Error) -> Reason {
    Reason::NotFound {
        program: command.join(" "),
        error: command
            .first()
            .and_then(|program| shutdown::cannot_start(program))
            .unwrap_or_else(|| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn run(words: &[&str]) -> Result<String, Reason> {
        run_once(
            &words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn what_a_program_prints_is_kept_and_a_failure_is_a_reason() {
        assert_eq!(run(&["echo", "hello"]).unwrap(), "hello\n");
        let reason = run(&["false"]).unwrap_err().to_string();
        assert!(reason.contains("exit status: 1"), "{reason}");
        let told = |program: &str| run(&[program]).unwrap_err().to_string();
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        let write = |name: &str, mode, text: &[u8]| {
            std::fs::write(at(name), text).unwrap();
            std::fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
        };
        write("plain", 0o644, b"#!/bin/sh\n");
        write("script", 0o755, b"#!/no/such/sh -e\n");
        let mut foreign = std::fs::read("/proc/self/exe").unwrap();
        foreign[19] ^= 0x40;
        write("foreign", 0o755, &foreign);
        for (program, why) in [
            ("no-such-program".into(), "this machine has no such program"),
            (at("none"), "this machine has no such program"),
            (at(""), "it is a directory"),
            (at("plain"), "it is not executable (chmod +x)"),
            (
                at("script"),
                "it is a script, and its /no/such/sh is not there",
            ),
            (at("foreign"), "it is a program for another architecture"),
        ] {
            assert_eq!(told(&program), format!("{program}: {why}"));
        }
        let reason = run(&["no-such-program"]).unwrap_err();
        assert!(matches!(reason, Reason::NotFound { program, .. } if program == "no-such-program"));
    }
}
