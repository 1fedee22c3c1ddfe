// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `app`: the cycles of any real-time program, which is not changed for it.
//!
//! The kernel's events say when its threads wait, are woken, and get the CPU. They are noted in
//! the kernel's ring and read when the program has ended.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::process::ChildStdout;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use punctual_model::probe::{FindingView, Form, ProbeInfo, Shape, View};
use punctual_model::recording::MISSED;
use punctual_model::{Fact, Finding, Nanos, Reason, Recorder, Recording, RecordingKey};
use serde::Deserialize;

use super::program::{MEASURED, not_started};
use super::{Context, Extent, Measurement, Probe, parameters, within};
use crate::cycles::{self, Cycle, Thread};
use crate::loads::spawn;
use crate::status_page;
use crate::sys::process::{self, Ended};
use crate::sys::time;
use crate::threads;
use crate::tracer::threads::ThreadEvents;

/// This probe.
pub const PROBE: Probe = Probe {
    name: "app",
    summary: "the cycles of a program of yours: lateness, execution, response",
    parse: |table| parameters::<App>(table, App::check),
};

/// How it is shown and explained.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View {
        shape: Shape::Latency,
        spoken: "",
        findings: &[
            FindingView::new("period", "period", Form::Plain).only_of("response"),
            FindingView::new("slept_within", "slept within", Form::Plain).only_of("response"),
            FindingView::new("exit", "exit", Form::Plain).only_of("response"),
        ],
    },
    scope: Err("is found by the kernel's events, which set no window for the scope"),
};

/// More than this of what the program prints is not kept, in bytes.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// Between two looks whether the target is asked to end.
const LOOK: Nanos = Nanos::from_millis(100);

/// A program that is asked to end has this long to do so, and is then killed.
const GRACE: Nanos = Nanos::from_millis(1_000);

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct App {
    /// The program and its arguments.
    run: Vec<String>,
    /// How long it runs, in milliseconds; then it is asked to end, by SIGTERM.
    #[serde(default = "duration_ms")]
    duration_ms: u64,
    /// Which of its threads, by name; if empty, those of real time, or all where none is.
    #[serde(default)]
    threads: Vec<String>,
    /// The period of its cycles, in microseconds; 0 where it has none. A cycle that responds
    /// later than this has missed as many periods as it overlaps.
    #[serde(default)]
    period_us: u64,
    /// Cycles of each thread that come first and are not counted.
    #[serde(default)]
    warmup: u32,
    /// The kernel's ring for events, for each CPU, in mebibytes: some 5,000 cycles each.
    #[serde(default = "ring_mib")]
    ring_mib: usize,
}

fn duration_ms() -> u64 {
    1_000
}

fn ring_mib() -> usize {
    8
}

impl App {
    fn check(&self) -> Result<(), String> {
        if self.run.is_empty() {
            return Err("run is empty, but it must name a program".into());
        }
        within("duration_ms", self.duration_ms, 10, 3_600_000)?;
        within("period_us", self.period_us, 0, 60_000_000)?;
        within("warmup", self.warmup, 0, 1_000_000)?;
        within("ring_mib", self.ring_mib, 1, 1_024)
    }

    fn duration(&self) -> Nanos {
        Nanos::from_millis(self.duration_ms as i64)
    }

    /// The three recordings of each thread that counts.
    fn recordings(&self, threads: &[Thread], ran: &Ran) -> Result<Vec<Recording>, Reason> {
        let has_some = |thread: &&&Thread| thread.cycles.len() > self.warmup as usize;
        let mut recordings = Vec::new();
        let mut of_name: BTreeMap<&str, u32> = BTreeMap::new();
        for thread in self.chosen(threads).iter().filter(has_some) {
            let number = of_name.entry(&thread.name).or_default();
            *number += 1;
            let name = match number {
                1 => thread.name.clone(),
                number => format!("{} {number}", thread.name),
            };
            recordings.extend(self.of_thread(&name, thread, &ran.end));
        }
        let Some(first) = recordings.first_mut() else {
            return Err(self.without_cycles(threads, ran));
        };
        first
            .findings
            .insert("exit".into(), Finding::Text(ran.end.clone()));
        first.output = Some(ran.output.clone());
        Ok(recordings)
    }

    fn chosen<'a>(&self, threads: &'a [Thread]) -> Vec<&'a Thread> {
        let real_time = threads.iter().any(|thread| thread.is_real_time);
        let counts = |thread: &&Thread| match self.threads.as_slice() {
            [] => thread.is_real_time || !real_time,
            names => names.contains(&thread.name),
        };
        threads.iter().filter(counts).collect()
    }

    fn without_cycles(&self, threads: &[Thread], ran: &Ran) -> Reason {
        let named = self.run.join(" ");
        let seen: Vec<String> = threads
            .iter()
            .map(|thread| format!("{} ({})", thread.name, thread.cycles.len()))
            .collect();
        let seen = match seen.as_slice() {
            [] => "none of its threads waited twice".to_owned(),
            seen => format!("cycles were seen of: {}", seen.join(", ")),
        };
        let last = ran.output.lines().last().unwrap_or_default();
        format!(
            "{named}: no cycle of the threads asked for in {}: {seen}; it ended with {}, and its \
             last line is \"{last}\"",
            ran.lived, ran.end
        )
        .into()
    }

    fn of_thread(&self, name: &str, thread: &Thread, end: &str) -> [Recording; 3] {
        let (warmup, counted) = thread.cycles.split_at(self.warmup as usize);
        let first = counted.first().map_or(Nanos::ZERO, |cycle| cycle.due);
        let period = Nanos::from_micros(self.period_us as i64);
        let parts: [Part; 3] = [
            ("lateness", Cycle::lateness),
            ("execution", |cycle| cycle.execution),
            ("response", Cycle::response),
        ];
        parts.map(|(part, of)| {
            let mut recorder = Recorder::new(counted.len());
            for cycle in counted {
                recorder.record(cycle.due - first, of(cycle));
                if part == "response" && period > Nanos::ZERO {
                    recorder.miss(periods_missed(cycle, period));
                }
            }
            let variant = format!("{name} {part}");
            let mut recording = recorder.finish(RecordingKey::of_variant(variant));
            recording.warmup = warmup.len() as u64;
            if part != "response" || period == Nanos::ZERO {
                let unknown = "the response misses periods, of the length period_us".into();
                let unknown = Fact::Unknown { unknown };
                recording.settings.insert(MISSED.into(), unknown);
            }
            if part == "response" {
                let blocks: u64 = counted.iter().map(|cycle| u64::from(cycle.blocks)).sum();
                let found = [
                    ("period", period_of(counted).map(Finding::Nanos)),
                    ("slept_within", Some(Finding::Count(blocks))),
                    ("exit", Some(Finding::Text(end.to_owned()))),
                ];
                let found = found
                    .into_iter()
                    .filter_map(|(key, what)| Some((key.into(), what?)));
                recording.findings.extend(found);
            }
            recording
        })
    }
}

/// A part of a cycle that is recorded: its name, and how long it took.
type Part = (&'static str, fn(&Cycle) -> Nanos);

/// How many periods began while a cycle had not ended, besides its own.
fn periods_missed(cycle: &Cycle, period: Nanos) -> u64 {
    let later = (cycle.response().0 - 1).max(0) / period.0;
    later.unsigned_abs()
}

/// The median of the times from one cycle's due moment to the next one's.
fn period_of(cycles: &[Cycle]) -> Option<Nanos> {
    let mut spans: Vec<Nanos> = cycles
        .windows(2)
        .map(|two| two[1].due - two[0].due)
        .collect();
    spans.sort_unstable();
    spans.get(spans.len() / 2).copied()
}

/// How the program ran.
struct Ran {
    /// How it ended, in words.
    end: String,
    lived: Nanos,
    output: String,
}

impl Measurement for App {
    fn nominal(&self) -> Nanos {
        self.duration()
    }

    fn extent(&self) -> Option<Extent> {
        Some(Extent {
            parameter: "duration_ms",
            each: Nanos::from_millis(1),
            most: 3_600_000,
            own: None,
        })
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let events = ThreadEvents::start(self.ring_mib << 20)?;
        time::sleep_until(time::now() + context.phases.below(Nanos::from_millis(4)));
        let ran = self.run_program(&events)?;
        let threads = cycles::of(&events.read()?);
        self.recordings(&threads, &ran)
    }
}

impl App {
    /// Runs the program for as long as it is asked for, or until it ends.
    fn run_program(&self, events: &ThreadEvents) -> Result<Ran, Reason> {
        let named = |what: &dyn std::fmt::Display| format!("{}: {what}", self.run.join(" "));
        let begin = time::now();
        let mut child = spawn(&self.run).map_err(|error| not_started(&self.run, &error))?;
        MEASURED.led_by(process::id(&child));
        let output = child.stdout.take();
        thread::scope(|scope| {
            let (tell, ends) = mpsc::channel();
            let started = threads::start(scope, move || printed(output)).and_then(|printed| {
                let wait = move || {
                    let _ = tell.send(MEASURED.wait_for_end());
                };
                Ok((printed, threads::start(scope, wait)?))
            });
            let by_itself = started.is_ok() && ends_within(&ends, self.duration());
            let lived = time::now() - begin;
            let stopped = events.stop();
            if !by_itself {
                MEASURED.stop();
                if !ends_within(&ends, GRACE) {
                    MEASURED.kill();
                }
            }
            let (printed, waiter) = started?;
            waiter.join()?;
            let (ended, _) = MEASURED.collect().map_err(|error| named(&error))?;
            stopped?;
            Ok(Ran {
                end: told(&ended, by_itself),
                lived,
                output: printed.join()?.map_err(|error| named(&error))?,
            })
        })
    }
}

/// Waits for the program's end, or that the target is asked to end; whether the program has.
/// Between two looks at the latter nothing of this gets the CPU.
fn ends_within(ends: &Receiver<io::Result<()>>, span: Nanos) -> bool {
    let last = time::now() + span;
    while !status_page::is_stop_requested() {
        let left = last - time::now();
        if left <= Nanos::ZERO {
            return false;
        }
        let look = Duration::from_nanos(left.min(LOOK).0.unsigned_abs());
        match ends.recv_timeout(look) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return true,
        }
    }
    false
}

fn told(ended: &Ended, by_itself: bool) -> String {
    match (by_itself, ended.status.code()) {
        (true, Some(code)) => format!("status {code}"),
        (true, None) => ended.status.to_string(),
        (false, Some(code)) => format!("status {code}, when it was asked to end"),
        (false, None) => "the signal that asked it to end".to_owned(),
    }
}

/// What the program prints until its end; only the beginning of it is kept.
fn printed(output: Option<ChildStdout>) -> io::Result<String> {
    let Some(mut output) = output else {
        return Ok(String::new());
    };
    let mut kept = Vec::new();
    output.by_ref().take(OUTPUT_LIMIT).read_to_end(&mut kept)?;
    // It is read on, so that the program never waits for a reader.
    io::copy(&mut output, &mut io::sink())?;
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(due: i64, response: i64) -> Cycle {
        Cycle {
            due: Nanos(due),
            begin: Nanos(due + 1),
            end: Nanos(due + response),
            execution: Nanos(response - 1),
            blocks: 1,
        }
    }

    fn app(parameters: &str) -> App {
        toml::from_str(&format!("run = [\"loop\"]\n{parameters}")).unwrap()
    }

    fn threads() -> Vec<Thread> {
        let thread = |name: &str, is_real_time| Thread {
            name: name.into(),
            is_real_time,
            cycles: vec![
                cycle(0, 9),
                cycle(1_000, 5),
                cycle(2_000, 2_001),
                cycle(5_000, 8),
            ],
        };
        vec![thread("main", false), thread("loop", true)]
    }

    fn ran() -> Ran {
        Ran {
            end: "status 0".into(),
            lived: Nanos(7),
            output: "hello\nbye\n".into(),
        }
    }

    #[test]
    fn threads_of_real_time_count_unless_others_are_named() {
        let variants = |app: &App| -> Vec<String> {
            let recordings = app.recordings(&threads(), &ran()).unwrap();
            recordings.into_iter().map(|one| one.key.variant).collect()
        };
        let parts = ["loop lateness", "loop execution", "loop response"];
        assert_eq!(variants(&app("")), parts);
        assert_eq!(variants(&app("threads = [\"main\"]"))[0], "main lateness");
        let two = [threads(), threads()].concat();
        let two = app("").recordings(&two, &ran()).unwrap();
        assert_eq!(two[3].key.variant, "loop 2 lateness");
        let none = app("threads = [\"other\"]").recordings(&threads(), &ran());
        let none = none.unwrap_err().to_string();
        assert!(
            none.contains("main (4), loop (4)") && none.contains("bye"),
            "{none}"
        );
        let none = app("warmup = 4").recordings(&threads(), &ran());
        assert!(none.is_err(), "none is left");
    }

    #[test]
    fn figures_are_those_of_the_cycles() {
        let app = app("period_us = 1\nwarmup = 1");
        let recordings = app.recordings(&threads(), &ran()).unwrap();
        let [lateness, execution, response] = &recordings[..] else {
            panic!("{}", recordings.len());
        };
        assert_eq!((lateness.count, lateness.max()), (3, Some(Nanos(1))));
        assert_eq!(execution.max(), Some(Nanos(2_000)));
        assert_eq!(response.max(), Some(Nanos(2_001)));
        assert_eq!(response.missed_periods(), Some(2));
        assert_eq!(lateness.missed_periods(), None);
        assert_eq!(response.warmup, 1);
        assert_eq!(response.findings["slept_within"], Finding::Count(3));
        assert_eq!(response.findings["period"], Finding::Nanos(Nanos(3_000)));
        assert_eq!(lateness.output.as_deref(), Some("hello\nbye\n"));
        assert_eq!(response.findings["exit"], Finding::Text("status 0".into()));
    }

    #[test]
    fn a_period_is_missed_when_the_next_one_begins() {
        let missed = |response| periods_missed(&cycle(0, response), Nanos(1_000));
        assert_eq!([1_000, 1_001, 2_000, 2_001].map(missed), [0, 1, 1, 2]);
    }
}
