// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `app`: the cycles of any real-time program, which need not be changed for it.
//!
//! The kernel's events show when its threads wait, are woken, and get the CPU. They are noted in
//! the kernel's ring and read when the program has ended.

mod running;

use std::collections::{BTreeMap, BTreeSet};

use punctual_model::amount::periods_missed;
use punctual_model::place::{self, FAULT_PLACES, FaultPlace, PLACES, Place};
use punctual_model::probe::{
    FindingView, Form, ProbeInfo, SampleSpan, Shape, View, Watched, Windows,
};
use punctual_model::recording::{ENDED_BY, ENDED_WITHIN, MISSED, UNTOLD};
use punctual_model::{Fact, Finding, Findings, Nanos, Reason, Recorder, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Extent, Measurement, Probe, parameters, within};
use crate::cycles::{self, Cycle, DesignFaults, Fault, Thread};
use crate::figures::Figure;
use crate::sys::time;
use crate::tracer::threads::{self as tracer, ThreadEvents};

use running::{Program, Ran};

/// This probe.
pub const PROBE: Probe = Probe {
    name: "app",
    summary: "the cycles of a program of yours: lateness, execution, response",
    parse: |table| parameters::<App>(table, App::check),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View {
        shape: Shape::Latency,
        spoken: "",
        findings: &[
            FindingView::new("period", "period", Form::Plain).only_of("execution"),
            FindingView::new("slept_within", "slept within", Form::Plain).only_of("execution"),
            FindingView::new(DESIGN_FAULTS, "design faults", Form::Plain).only_of("execution"),
            FindingView::new("exit", "exit", Form::Plain).only_of("execution"),
            FindingView::new(ENDED_WITHIN, "last, not counted", Form::Plain),
            FindingView::new(UNTOLD, "begin not told", Form::Plain),
        ],
    },
    scope: Ok(Watched {
        span: SampleSpan::Cycle,
        windows: Windows::BySwitch,
        stages: &[],
    }),
};

/// Finding: whether the program has faults in its design, and which.
const DESIGN_FAULTS: &str = "design_faults";

/// The recorded parts of a cycle; no figure of the program's own may have one of these names.
const LATENESS: &str = "lateness";
const EXECUTION: &str = "execution";
const RESPONSE: &str = "response";

/// The most threads that are recorded: each takes some 800 kB, and nobody reads more.
const THREADS_MOST: usize = 200;

/// The most cycles of which all places are recorded; of more, only the worst are.
const PLACES_MOST: usize = 5_000;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct App {
    /// The program and its arguments.
    run: Vec<String>,
    /// The time that it runs, in milliseconds; then it is asked to end, by SIGTERM.
    #[serde(default = "duration_ms")]
    duration_ms: u64,
    /// The names of the threads to record; if empty, the real-time threads, or all if none is one.
    #[serde(default)]
    threads: Vec<String>,
    /// The period of its cycles, in microseconds; 0 if it has none. A cycle that responds later
    /// than this has missed as many periods as it overlaps.
    #[serde(default)]
    period_us: u64,
    /// The number of first cycles of each thread that are not counted.
    #[serde(default)]
    warmup: u32,
    /// The kernel's ring for events, for each CPU, in mebibytes: some 5,000 cycles each.
    #[serde(default = "ring_mib")]
    ring_mib: usize,
    /// Figures that the program prints about itself, by name.
    #[serde(default)]
    figure: BTreeMap<String, Figure>,
    /// True if page faults and system calls are also noted, to find faults in its design.
    #[serde(default = "yes")]
    design_faults: bool,
}

fn yes() -> bool {
    true
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
        within("ring_mib", self.ring_mib, 1, 1_024)?;
        for (name, figure) in &self.figure {
            figure.check(name)?;
            let is_ours = [LATENESS, EXECUTION, RESPONSE]
                .iter()
                .any(|part| name.ends_with(part));
            if is_ours || name.trim().is_empty() {
                return Err(format!(
                    "figure.{name}: expected a name that does not end with lateness, execution \
                     or response, which are those of cycles"
                ));
            }
        }
        Ok(())
    }

    fn duration(&self) -> Nanos {
        Nanos::from_millis(self.duration_ms as i64)
    }

    /// Returns the recordings of each thread that counts, and those of the program's own figures.
    fn recordings(
        &self,
        threads: &[Thread],
        faults: &DesignFaults<'_>,
        switches: &[Nanos],
        ran: &Ran,
    ) -> Result<Vec<Recording>, Reason> {
        let has_some = |thread: &&&Thread| thread.cycles.len() > self.warmup as usize;
        let counted: Vec<&Thread> = self.chosen(threads);
        let counted: Vec<&Thread> = counted.iter().filter(has_some).copied().collect();
        let has_cycles = |name: &&String| counted.iter().any(|thread| thread.name == **name);
        if let Some(absent) = self.threads.iter().find(|name| !has_cycles(name)) {
            return Err(self.without_thread(absent, threads, ran));
        }
        if counted.is_empty() && self.figure.is_empty() {
            return Err(self.without_cycles(threads, ran));
        }
        if counted.len() > THREADS_MOST {
            return Err(format!(
                "{}: {} of its threads had cycles, and {THREADS_MOST} at most are told: name those \
                 that count (threads = [\"loop\"])",
                self.run.join(" "),
                counted.len()
            )
            .into());
        }
        let mut recordings = Vec::new();
        let mut of_name: BTreeMap<&str, u32> = BTreeMap::new();
        let mut of_program = Some(faults.of_program(threads, ran.stopped));
        for thread in counted {
            let number = of_name.entry(&thread.name).or_default();
            *number += 1;
            let name = match number {
                1 => thread.name.clone(),
                number => format!("{} {number}", thread.name),
            };
            let cycles = &thread.cycles[self.warmup as usize..];
            let mut found = faults.of_thread(thread, cycles);
            found.extend(of_program.take().unwrap_or_default());
            let told = self.told_faults(&found, faults.unseen());
            let of_thread = self.of_thread(&name, thread, ran);
            let places = places(cycles, &of_thread, switches);
            recordings.extend(of_thread.into_iter().map(|mut recording| {
                if recording.key.variant.ends_with(EXECUTION) {
                    recording.findings.extend(told.clone());
                    let places = Finding::Text(places.clone());
                    recording.findings.insert(PLACES.into(), places);
                }
                recording
            }));
        }
        for (name, figure) in &self.figure {
            recordings.push(self.of_figure(name, figure, ran)?);
        }
        if let Some(first) = recordings.first_mut() {
            let end = Finding::Text(ran.end.clone());
            first.findings.insert("exit".into(), end);
            first.output = Some(ran.output.clone());
        }
        Ok(recordings)
    }

    /// Returns the finding on faults in its design, and one for each kind of fault.
    fn told_faults(&self, faults: &[Fault], unseen: Option<&str>) -> Findings {
        let of = |fault: &Fault| (fault.kind.key().into(), Finding::Text(fault.to_string()));
        let mut told: Findings = faults.iter().map(of).collect();
        let unseen = unseen.map(|what| {
            if self.design_faults {
                format!("the kernel has no events of {what}")
            } else {
                format!("{what} were not noted (design_faults = false)")
            }
        });
        let all = faults.iter().map(ToString::to_string).chain(unseen.clone());
        let all: Vec<String> = all.collect();
        let finding = match unseen {
            Some(unseen) if faults.is_empty() => Finding::Absent(unseen.into()),
            _ => Finding::Answer {
                yes: !faults.is_empty(),
                why: all.join(" | "),
            },
        };
        told.insert(DESIGN_FAULTS.into(), finding);
        let places = faults.iter().filter_map(|one| {
            Some(FaultPlace {
                fault: one.kind.key().into(),
                cycle: one.cycle?,
                after: one.after,
            })
        });
        let places: Vec<String> = places.map(|place| place.to_string()).collect();
        if !places.is_empty() {
            told.insert(FAULT_PLACES.into(), Finding::Text(places.join(" ")));
        }
        told
    }

    /// Records a figure of the program's output, with a sample for each occurrence. The time of the
    /// samples is that of the program's end, since nobody has noted when it printed them.
    fn of_figure(&self, name: &str, figure: &Figure, ran: &Ran) -> Result<Recording, Reason> {
        if ran.not_kept > 0 {
            return Err(format!(
                "{}: it printed more than 1 MiB, of which the rest is not kept, so that the figure \
                 {name} is not known: let it print less",
                self.run.join(" ")
            )
            .into());
        }
        let values = figure.values(&ran.output).map_err(|line| {
            format!(
                "{}: the figure {name} cannot be read {} in its line \"{line}\": expected a number \
                 such as 1200 or 1.2e3, and no other unit",
                self.run.join(" "),
                figure.place()
            )
        })?;
        if values.is_empty() {
            return Err(format!(
                "{}: the figure {name} is not in its output: no line has a number {}; {}",
                self.run.join(" "),
                figure.place(),
                ran.told_end()
            )
            .into());
        }
        let mut recorder = Recorder::new(values.len());
        for value in values {
            recorder.record(ran.lived, value);
        }
        let mut recording = recorder.finish(RecordingKey::of_variant(name));
        let unknown = "a figure of the program's own misses no periods".into();
        recording
            .settings
            .insert(MISSED.into(), Fact::Unknown { unknown });
        Ok(recording)
    }

    fn chosen<'a>(&self, threads: &'a [Thread]) -> Vec<&'a Thread> {
        let real_time = threads.iter().any(|thread| thread.is_real_time);
        let counts = |thread: &&Thread| match self.threads.as_slice() {
            [] => thread.is_real_time || !real_time,
            names => names.contains(&thread.name),
        };
        threads.iter().filter(counts).collect()
    }

    /// Explains why a thread that is requested by its name was not recorded.
    fn without_thread(&self, name: &str, threads: &[Thread], ran: &Ran) -> Reason {
        let what = match threads
            .iter()
            .filter(|thread| thread.name == name)
            .max_by_key(|thread| thread.cycles.len())
        {
            None => format!("no thread \"{name}\" ran"),
            Some(thread) if thread.cycles.is_empty() => {
                format!("its thread \"{name}\" did not wait twice")
            }
            Some(thread) => format!(
                "its thread \"{name}\" had {} cycles, no more than the warm-up",
                thread.cycles.len()
            ),
        };
        let (command, seen) = (self.run.join(" "), seen(threads));
        let (lived, end) = (ran.lived, ran.told_end());
        format!("{command}: {what} in {lived}: {seen}; {end}").into()
    }

    fn without_cycles(&self, threads: &[Thread], ran: &Ran) -> Reason {
        let (command, seen) = (self.run.join(" "), seen(threads));
        let (lived, end) = (ran.lived, ran.told_end());
        let never_waits = threads.iter().all(|thread| thread.cycles.is_empty());
        let is_awake = |thread: &Thread| thread.awake_since.is_some();
        let hint = if ran.outlived_by > 0 {
            ": a program that goes to the background is measured in the foreground only"
        } else if ran.stopped.is_none() || !never_waits {
            ""
        } else if threads.iter().any(is_awake) {
            ": one that does not wait in the kernel marks its cycles (punctual.h)"
        } else {
            ": it slept in the end, and what it waited for did not come"
        };
        format!("{command}: no cycle in {lived}: {seen}; {end}{hint}").into()
    }

    fn of_thread(&self, name: &str, thread: &Thread, ran: &Ran) -> Vec<Recording> {
        let (warmup, counted) = thread.cycles.split_at(self.warmup as usize);
        let first = counted.first().map_or(Nanos::ZERO, |cycle| cycle.due);
        let period = Nanos::from_micros(self.period_us as i64);
        let all: [Part; 3] = [
            (LATENESS, Cycle::lateness),
            (EXECUTION, |cycle| cycle.execution),
            (RESPONSE, Cycle::response),
        ];
        // Who does not say when its cycles are due tells nothing of how late they are.
        let parts = all
            .into_iter()
            .filter(|(part, _)| thread.is_due_known || *part == EXECUTION);
        let record = |(part, of): Part| {
            let mut recorder = Recorder::new(counted.len());
            for cycle in counted {
                recorder.record(cycle.due - first, of(cycle));
            }
            if part == RESPONSE && period > Nanos::ZERO {
                let cycles = counted.iter().map(|one| (one.due - first, one.response()));
                recorder.miss(periods_missed(cycles, period));
            }
            let variant = format!("{name} {part}");
            let mut recording = recorder.finish(RecordingKey::of_variant(variant));
            recording.warmup = warmup.len() as u64;
            if let Some(by) = ran.cut_short(thread) {
                recording.interrupted = true;
                recording.settings.insert(ENDED_BY.into(), by.into());
            }
            if let Some(unknown) = self.missed_unknown(part, thread, recording.missed) {
                let unknown = Fact::Unknown {
                    unknown: unknown.into(),
                };
                recording.settings.insert(MISSED.into(), unknown);
            }
            if part == EXECUTION {
                recording.findings = found_of(counted, &ran.end);
            }
            let untold = counted.iter().filter(|cycle| cycle.untold > 0).count() as u64;
            // When it was due, and when it waited again, is known of each.
            if untold > 0 && part != RESPONSE {
                recording
                    .findings
                    .insert(UNTOLD.into(), Finding::Count(untold));
            }
            let last = thread.ended.as_ref().map(of);
            if let Some(last) = last.filter(|last| recording.max().is_some_and(|max| *last > max)) {
                let last = Finding::Nanos(last);
                recording.findings.insert(ENDED_WITHIN.into(), last);
            }
            recording
        };
        parts.map(record).collect()
    }
}

impl App {
    /// Explains why the number of missed periods is not known.
    fn missed_unknown(&self, part: &str, thread: &Thread, missed: u64) -> Option<String> {
        let period = Nanos::from_micros(self.period_us as i64);
        if part != RESPONSE || period == Nanos::ZERO {
            return Some("the response misses periods, of the length period_us".into());
        }
        // A thread that is late again and again is due less often than it is to be.
        if let Some(last) = thread
            .ended
            .map(|last| last.response())
            .filter(|last| *last > period)
        {
            return Some(format!(
                "it ended within a cycle, {last} after that was due"
            ));
        }
        let found = period_of(&thread.cycles[self.warmup as usize..])?;
        let is_shorter = found.0 * 20 < period.0 * 19;
        let is_longer = missed == 0 && found.0 * 2 > period.0 * 3;
        let differs = is_shorter || is_longer;
        differs.then(|| format!("period_us is {period}, and its cycles are {found} apart"))
    }
}

/// Returns the findings on a thread's cycles besides their lengths.
fn found_of(counted: &[Cycle], end: &str) -> Findings {
    let blocks: u64 = counted.iter().map(|cycle| u64::from(cycle.blocks)).sum();
    let found = [
        ("period", period_of(counted).map(Finding::Nanos)),
        ("slept_within", Some(Finding::Count(blocks))),
        ("exit", Some(Finding::Text(end.to_owned()))),
    ];
    let found = found.into_iter();
    found
        .filter_map(|(key, what)| Some((key.into(), what?)))
        .collect()
}

/// Returns the places of cycles for the scope: of all, or of the worst if there are many. A cycle
/// that does not begin and end with a switch has none.
fn places(cycles: &[Cycle], recordings: &[Recording], switches: &[Nanos]) -> String {
    let worst = recordings.iter().flat_map(|one| &one.worst);
    let worst: BTreeSet<u64> = worst.map(|sample| sample.seq).collect();
    let place =
        |(seq, cycle): (u64, &Cycle)| Place::of(seq, [cycle.due, cycle.begin, cycle.end], switches);
    let told = (0..).zip(cycles);
    let told = told.filter(|(seq, _)| cycles.len() <= PLACES_MOST || worst.contains(seq));
    place::told(told.filter_map(place))
}

/// Names the threads that had cycles.
fn seen(threads: &[Thread]) -> String {
    let with_some = threads.iter().filter(|thread| !thread.cycles.is_empty());
    let seen: Vec<String> = with_some
        .map(|thread| format!("{} ({})", thread.name, thread.cycles.len()))
        .collect();
    match seen.as_slice() {
        [] => "none of its threads waited twice".to_owned(),
        seen => format!("cycles were seen of: {}", seen.join(", ")),
    }
}

/// A part of a cycle that is recorded: its name, and a function that returns its length.
type Part = (&'static str, fn(&Cycle) -> Nanos);

/// Returns the median of the times from one cycle's due moment to that of the next.
fn period_of(cycles: &[Cycle]) -> Option<Nanos> {
    let mut spans: Vec<Nanos> = cycles
        .windows(2)
        .map(|two| two[1].due - two[0].due)
        .collect();
    spans.sort_unstable();
    spans.get(spans.len() / 2).copied()
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
        let extent = if self.design_faults {
            tracer::Extent::DesignFaults
        } else {
            tracer::Extent::Cycles
        };
        let events = ThreadEvents::start(self.ring_mib << 20, extent)?;
        time::sleep_until(time::now() + context.phases.below(Nanos::from_millis(4)));
        let program = Program {
            command: &self.run,
            duration: self.duration(),
        };
        let ran = program.run(&events)?;
        let (noted, seen) = (events.read(ran.leader)?, events.seen());
        let mut threads = cycles::of(&noted.events);
        if let Some(at) = ran.stopped {
            // A program that never waits is watched for somewhat longer.
            let at = noted.events.last().map_or(at, |last| at.max(last.at));
            threads.iter_mut().for_each(|thread| thread.cut_at(at));
        }
        let faults = DesignFaults::of(&noted.events, &seen);
        self.recordings(&threads, &faults, &noted.switches, &ran)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycles::Seen;

    fn cycle(due: i64, response: i64) -> Cycle {
        Cycle {
            due: Nanos(due),
            begin: Nanos(due + 1),
            end: Nanos(due + response),
            execution: Nanos(response - 1),
            blocks: 1,
            untold: 0,
        }
    }

    fn app(parameters: &str) -> App {
        toml::from_str(&format!("run = [\"loop\"]\n{parameters}")).unwrap()
    }

    fn threads() -> Vec<Thread> {
        let thread = |name: &str, is_real_time| Thread {
            id: 7,
            is_due_known: true,
            name: name.into(),
            is_real_time,
            cycles: vec![
                cycle(0, 9),
                cycle(1_000, 5),
                cycle(2_000, 2_001),
                cycle(5_000, 8),
            ],
            cut: None,
            is_stuck: false,
            ended: None,
            is_killed: false,
            awake_since: None,
        };
        vec![thread("main", false), thread("loop", true)]
    }

    fn ran() -> Ran {
        Ran {
            leader: 7,
            end: "status 0".into(),
            lived: Nanos(7),
            stopped: None,
            has_failed: false,
            output: "hello\nbye\nmax_ns 12\n".into(),
            not_kept: 0,
            outlived_by: 0,
        }
    }

    fn recordings(app: &App, threads: &[Thread]) -> Result<Vec<Recording>, String> {
        recordings_of(app, threads, &ran())
    }

    fn recordings_of(app: &App, threads: &[Thread], ran: &Ran) -> Result<Vec<Recording>, String> {
        let seen = Seen {
            page_faults: true,
            calls: false,
        };
        let faults = DesignFaults::of(&[], &seen);
        // The last cycle's end is none.
        let switches = [1, 9, 1_001, 1_005, 2_001, 4_001, 5_001].map(Nanos);
        let recordings = app.recordings(threads, &faults, &switches, ran);
        recordings.map_err(|reason| reason.to_string())
    }

    #[test]
    fn threads_of_real_time_count_unless_others_are_named() {
        let variants = |app: &App| -> Vec<String> {
            let recordings = recordings(app, &threads()).unwrap();
            recordings.into_iter().map(|one| one.key.variant).collect()
        };
        let parts = ["loop lateness", "loop execution", "loop response"];
        assert_eq!(variants(&app("")), parts);
        assert_eq!(variants(&app("threads = [\"main\"]"))[0], "main lateness");
        let two = [threads(), threads()].concat();
        let two = recordings(&app(""), &two).unwrap();
        assert_eq!(two[3].key.variant, "loop 2 lateness");
    }

    #[test]
    fn a_thread_that_is_asked_for_and_has_no_cycles_is_never_silence() {
        let refused = |rest: &str, threads: &[Thread]| recordings(&app(rest), threads).unwrap_err();
        let none = refused("threads = [\"loop\", \"other\"]", &threads());
        let all = ["no thread \"other\" ran", "main (4), loop (4)", "max_ns 12"];
        assert!(all.iter().all(|part| none.contains(part)), "{none}");
        let silent = Thread {
            cycles: Vec::new(),
            name: "silent".into(),
            ..threads().remove(1)
        };
        let none = refused("threads = [\"silent\"]", std::slice::from_ref(&silent));
        assert!(none.contains("\"silent\" did not wait twice"), "{none}");
        let none = refused("threads = [\"loop\"]\nwarmup = 4", &threads());
        assert!(none.contains("had 4 cycles, no more"), "{none}");
        let none = refused("", &[silent]);
        assert!(none.contains("none of its threads waited twice"), "{none}");
        let none = recordings(&app("warmup = 4"), &threads());
        assert!(none.is_err(), "none is left");
    }

    #[test]
    fn a_program_without_cycles_is_told_with_what_it_did_in_the_end() {
        let stopped = Ran {
            stopped: Some(Nanos(7)),
            ..ran()
        };
        let refused = |awake_since| {
            let silent = Thread {
                cycles: Vec::new(),
                awake_since,
                ..threads().remove(1)
            };
            recordings_of(&app(""), &[silent], &stopped).unwrap_err()
        };
        let spins = refused(Some(Nanos(1)));
        assert!(spins.contains("marks its cycles"), "{spins}");
        let sleeps = refused(None);
        assert!(
            sleeps.contains("it slept in the end") && !sleeps.contains("marks"),
            "{sleeps}"
        );
    }

    #[test]
    fn more_threads_than_anybody_reads_are_refused_with_their_number() {
        let many = |count| -> Vec<Thread> {
            let thread = threads().remove(1);
            std::iter::repeat_n(thread, count).collect()
        };
        let refused = recordings(&app(""), &many(THREADS_MOST + 1)).unwrap_err();
        let expected = "201 of its threads had cycles, and 200 at most";
        assert!(refused.contains(expected), "{refused}");
        let told = recordings(&app(""), &many(THREADS_MOST)).unwrap();
        assert_eq!(told.len(), 3 * THREADS_MOST);
    }

    #[test]
    fn figures_that_the_program_prints_are_recordings_or_a_reason() {
        let figure = |text| format!("figure.max = {{ after = \"{text}\", unit = \"us\" }}");
        let all = recordings(&app(&figure("max_ns ")), &threads()).unwrap();
        let last = all.last().unwrap();
        assert_eq!((last.key.variant.as_str(), last.count), ("max", 1));
        assert_eq!(
            (last.max(), last.missed_periods()),
            (Some(Nanos(12_000)), None)
        );
        let none = recordings(&app(&figure("min_ns ")), &threads()).unwrap_err();
        assert!(
            none.contains("no line has a number after \"min_ns \""),
            "{none}"
        );
        // Of what was not kept nobody knows whether it had another one.
        let long = Ran {
            not_kept: 1,
            ..ran()
        };
        let cut = recordings_of(&app(&figure("max_ns ")), &threads(), &long).unwrap_err();
        assert!(cut.contains("printed more than 1 MiB"), "{cut}");
        let alone = recordings(&app(&figure("max_ns ")), &[]).unwrap();
        assert_eq!(alone[0].output.as_deref(), Some(&*ran().output));
        assert_eq!(alone[0].findings["exit"], Finding::Text("status 0".into()));
        for wrong in [
            "figure.max = { unit = \"us\" }",
            "figure.\"a response\" = { after = \"a\", unit = \"s\" }",
        ] {
            assert!(
                app(wrong).check().unwrap_err().contains("figure."),
                "{wrong}"
            );
        }
    }

    #[test]
    fn who_does_not_say_when_it_was_due_has_execution_times_only() {
        let marked = Thread {
            is_due_known: false,
            ..threads().remove(1)
        };
        let all = recordings(&app(""), &[marked]).unwrap();
        let variants: Vec<&str> = all.iter().map(|one| one.key.variant.as_str()).collect();
        assert_eq!(variants, ["loop execution"]);
        assert!(all[0].findings.contains_key("exit"));
    }

    #[test]
    fn figures_are_those_of_the_cycles() {
        let app = app("period_us = 1\nwarmup = 1");
        let recordings = recordings(&app, &threads()).unwrap();
        let [lateness, execution, response] = &recordings[..] else {
            panic!("{}", recordings.len());
        };
        assert_eq!((lateness.count, lateness.max()), (3, Some(Nanos(1))));
        assert_eq!(execution.max(), Some(Nanos(2_000)));
        assert_eq!(response.max(), Some(Nanos(2_001)));
        assert_eq!(response.missed_periods(), Some(2));
        assert_eq!(lateness.missed_periods(), None);
        assert_eq!(response.warmup, 1);
        assert_eq!(execution.findings["slept_within"], Finding::Count(3));
        assert_eq!(execution.findings["period"], Finding::Nanos(Nanos(3_000)));
        assert_eq!(lateness.output.as_deref(), Some(&*ran().output));
        assert_eq!(execution.findings["exit"], Finding::Text("status 0".into()));
        let unseen = "the kernel has no events of system calls";
        let unseen = Finding::Absent(unseen.into());
        assert_eq!(execution.findings[DESIGN_FAULTS], unseen);
        let places = Finding::Text("0,1,2,1 1,1,4,1".into());
        assert_eq!(execution.findings[PLACES], places);
        assert!(!response.findings.contains_key(PLACES));
    }

    #[test]
    fn periods_of_another_length_are_missed_by_nobody_knows_how_many() {
        let missed = |period: u64| {
            let app = app(&format!("period_us = {period}"));
            let mut threads = threads();
            // Each 1,000 ns, and never late.
            threads[1].cycles = (0..9).map(|number| cycle(1_000 * number, 500)).collect();
            recordings(&app, &threads).unwrap()[2].missed_periods()
        };
        assert_eq!([1, 2, 50].map(missed), [Some(0), None, None]);
        let app = App {
            period_us: 1,
            ..app("")
        };
        let of = |step: i64, missed| {
            let mut thread = threads().remove(1);
            thread.cycles = (0..9).map(|number| cycle(step * number, 1)).collect();
            app.missed_unknown(RESPONSE, &thread, missed).is_some()
        };
        let (rare, late, often) = (of(1_501, 0), of(1_501, 1), of(949, 1));
        assert_eq!((rare, late, often, of(950, 0)), (true, false, true, false));
    }

    #[test]
    fn cycles_of_which_the_kernel_does_not_tell_the_begin_are_counted() {
        let mut threads = threads();
        threads[1].cycles[2].untold = 2;
        let known = |threads: &[Thread]| -> Vec<bool> {
            let all = recordings(&app(""), threads).unwrap();
            all.iter().map(|one| one.shortcoming().is_none()).collect()
        };
        assert_eq!(known(&threads), [false, false, true], "the response");
        threads[1].cycles[2].untold = 0;
        assert_eq!(known(&threads), [true; 3]);
    }

    #[test]
    fn a_cycle_within_which_a_thread_ends_is_told_where_it_is_longer_than_all() {
        let ended = |response| {
            let mut threads = threads();
            threads[1].ended = Some(cycle(6_000, response));
            let all = recordings(&app(""), &threads).unwrap();
            all.into_iter()
                .map(|one| (one.count, one.findings.get(ENDED_WITHIN).cloned()))
                .collect::<Vec<_>>()
        };
        let longest = |value| Some(Finding::Nanos(Nanos(value)));
        assert_eq!(
            ended(9_000),
            [(4, None), (4, longest(8_999)), (4, longest(9_000))]
        );
        assert!(ended(2_001).iter().all(|one| *one == (4, None)));
        let mut thread = threads().remove(1);
        let app = app("period_us = 5");
        let unknown = |thread: &Thread| app.missed_unknown(RESPONSE, thread, 1);
        thread.cycles = (0..9).map(|number| cycle(5_000 * number, 1)).collect();
        thread.ended = Some(cycle(50_000, 5_000));
        assert_eq!(unknown(&thread), None);
        thread.ended = Some(cycle(50_000, 5_001));
        assert!(unknown(&thread).unwrap().contains("within a cycle"));
    }
}
