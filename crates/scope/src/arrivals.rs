// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every arrival: how late a thread of the highest priority would have run, had its timer been due
//! at any moment of a run; and the aimed sample, which proves it.
//!
//! A run is repeated and watched, and each change of what is off is noted ([`timeline`]). This
//! shows, for each moment at which the probe's thread waits, how long it takes until a thread may
//! be switched to. Then the path follows, as the run's own samples went it from such a state
//! ([`path`]). Both together are the lateness of an arrival ([`tail`]). The same holds for an
//! interrupt's handler, but only disabled interrupts keep it away.

pub mod aim;
pub mod forecast;
mod handling;
mod looks;
mod masked;
pub mod path;
pub mod place;
pub mod program;
pub mod steps;
mod stretch;
mod switch;
pub mod tail;
pub mod timeline;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use punctual_bench::virtual_bench::Machine;
use punctual_model::arrivals::are_told_of;
use punctual_model::place::{LATENESS, thread_of};
use punctual_model::{Nanos, Recording, Run};
use punctual_trace::{Item, Word};

use crate::error::ScopeError;
use crate::explain::{Wanted, clock, programs};
use crate::guest_clock::GuestClock;
use crate::names::{Func, Names};
use crate::preemptibility::Preemptibility;
use crate::repeat::{OnEvent, Repeater};
use crate::survey::{SectionKind, SectionTracer};
use forecast::{Analysis, Ends};
use path::{From, Paths};
use place::{Found, Key, Off};
use program::{Program, REAL_TIME_BELOW, Turns, Wait};
use steps::Kind;
use timeline::Period;

/// The quantiles that are reported.
pub const QUANTILES: [f64; 7] = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999_999_9];

/// The shortest time for which a function runs within one section to be told.
pub const SHORTEST: Nanos = Nanos(500);

/// The kind of code that is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// A thread of the highest priority, whose timer is due.
    Thread,
    /// The hard handler of a device's interrupt.
    Handler,
    /// A program's thread, whose timer is due.
    Program,
}

impl Waits {
    /// Returns the kind of code that is late in the arrivals of a recording.
    pub fn of(recording: &Recording) -> Self {
        match recording.key.probe.as_str() {
            "irq" => Self::Handler,
            "app" => Self::Program,
            _ => Self::Thread,
        }
    }

    /// Returns true if a section of this kind keeps it waiting. On `PREEMPT_RT` soft interrupts are
    /// threads.
    fn is_kept_by(self, what: SectionKind, preemption: Preemptibility) -> bool {
        match what {
            SectionKind::IrqsOff => true,
            SectionKind::PreemptOff | SectionKind::NotPreemptible => self != Self::Handler,
            SectionKind::Softirq => self != Self::Handler && preemption != Preemptibility::Rt,
            SectionKind::Spinning => false,
        }
    }
}

/// All arrivals of a recording.
#[derive(Clone, Debug)]
pub struct Arrivals {
    /// The kind of code that is late.
    pub waits: Waits,
    /// The recording's number in the run.
    pub recording: usize,
    /// The time that was looked at: from where the probe's thread sleeps to where it is due.
    pub time: Nanos,
    /// The number of periods that were looked at.
    pub periods: u64,
    /// The number of periods in which the count of instructions and the guest's clock do not agree,
    /// or in which something that was off was missed. They do not count.
    pub strange: u64,
    /// Time that is followed by a path that no sample shows. Arrivals there are later than is
    /// reported.
    pub unlearnt: Nanos,
    /// The number of samples from which the path was learnt.
    pub learnt: usize,
    /// The lateness at each of [`QUANTILES`]: in that share of the time, an arrival is no later.
    pub quantiles: Vec<(f64, Nanos)>,
    /// The share of the time in which an arrival is later than the given lateness.
    pub later: Vec<(Nanos, f64)>,
    /// The latest of all.
    pub worst: Nanos,
    /// The places with the latest arrivals, worst first and each once.
    pub places: Vec<Place>,
    /// True if an arrival may change what follows, as soft interrupts run where interrupts end.
    pub is_forecast: bool,
    /// How long each function ran at most, if for [`SHORTEST`] or more, within one section that
    /// keeps its thread or handler waiting, of the whole step: also while its load begins and ends,
    /// where no sample is taken.
    pub functions: BTreeMap<String, Nanos>,
}

/// A place at which threads wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The kind of section.
    pub off: Off,
    /// The function that switched it off.
    pub function: String,
    /// The function that ran most of it, and its time.
    pub most: (String, Nanos),
    /// The number of such stretches.
    pub count: u64,
    /// Length of the longest one.
    pub length: Nanos,
    /// Time of the interrupts that come into the path after it.
    pub falls_in: Nanos,
    /// The state from which the path goes on.
    pub from: From,
    /// The path after it.
    pub path: Nanos,
    /// The foretold lateness of an arrival at its start, as near to that as can be aimed.
    pub foretold: Nanos,
    /// The sample in whose period it is, as the number of samples taken before it in its step.
    pub sample: u64,
    /// Time since the reading of the clock for the previous sample; `None` if the CPU slept before
    /// and after.
    pub after: Option<Nanos>,
    /// Length from where its sample was armed to where the probe's thread gave up the CPU, in
    /// instructions.
    pub arming: u64,
    /// The extra time that arming is expected to take if the sample is due here.
    pub shift: Nanos,
    /// The foretold time of each function, from the place's start to the switch to the probe's
    /// thread.
    pub ran: BTreeMap<String, Nanos>,
    /// Time of the way back to user space after that.
    pub back: Nanos,
    /// The wait of a program's thread that is moved for it, and the time from the reading of the
    /// clock to when that was due.
    pub wait: Option<(Wait, Nanos)>,
    /// Starts of the longest sections with interrupts off within it, counted from its own start.
    pub starts: Vec<Nanos>,
}

/// Checks that arrivals of a recording can be determined. The error is the reason why not.
pub fn can_tell(run: &Run, recording: &Recording) -> Result<(), String> {
    if run.is_imported() {
        return Err(format!(
            "it was imported from a file of {}, so Punctual cannot repeat it: measure it in a \
             guest: `punctual run --probe timer`",
            run.suite
        ));
    }
    let title = recording.title();
    match recording.key.probe.as_str() {
        "timer" => {}
        "irq" => can_tell_interrupts(recording)?,
        "app" => can_tell_waits(run, recording)?,
        _ => {
            return Err(format!(
                "{title}: arrivals are known of timers and interrupts only, those of the probes \
                 timer, irq and app"
            ));
        }
    }
    if recording
        .settings
        .get("policy")
        .and_then(|policy| policy.text())
        == Some("SCHED_DEADLINE")
        || recording.key.variant.starts_with("thread")
    {
        return Err(format!(
            "{title}: periods of SCHED_DEADLINE are not those of a timer"
        ));
    }
    if !recording.is_complete() {
        return Err(format!("{title}: not all of its samples were kept"));
    }
    if recording.samples.len() < 2 {
        return Err(format!(
            "{title}: arrivals lie between two samples, and it has fewer"
        ));
    }
    Ok(())
}

/// The same for the probe `app`: for a thread whose waits are found by the switches that began and
/// ended them.
fn can_tell_waits(run: &Run, recording: &Recording) -> Result<(), String> {
    let (title, variant) = (recording.title(), &recording.key.variant);
    let Some(thread) = thread_of(variant) else {
        return Err(format!("{title}: it is a figure of the program's own"));
    };
    if !variant.ends_with(LATENESS) {
        return Err(format!(
            "{title}: an arrival is late, and takes no time: `--variant \"{thread}{LATENESS}\"`"
        ));
    }
    if Turns::of(&run.recordings, recording).waits() == 0 {
        let load = &recording.key.load;
        return Err(format!(
            "{title}: no wait of it lies between two switches that are known: cycles that a \
             program marks have none, and of more than 5,000 only the worst are found again \
             (`-p duration_ms=…`); `punctual run --probe timer --load {load}`, and `punctual \
             arrivals` of that, tell what meets a thread of the highest priority"
        ));
    }
    Ok(())
}

/// The same for the probe `irq`.
fn can_tell_interrupts(recording: &Recording) -> Result<(), String> {
    let title = recording.title();
    if !are_told_of(&recording.key) {
        return Err(format!(
            "{title}: arrivals are known at the hard handler only, the variant hard"
        ));
    }
    let source = recording.settings.get("source");
    if source.and_then(|source| source.text()) != Some("hpet") {
        return Err(format!(
            "{title}: its interrupts come where a thread triggers them, which it does only while \
             they are on: measure with source = \"hpet\""
        ));
    }
    Ok(())
}

/// Returns the recordings of a run whose arrivals are wanted and can be determined; an error if
/// there is none.
pub fn chosen(run: &Run, wanted: &Wanted) -> Result<Vec<usize>, ScopeError> {
    let numbered = run.recordings.iter().enumerate();
    let meant = numbered.filter(|(_, recording)| wanted.wants(recording));
    let (mut found, mut why) = (Vec::<usize>::new(), None);
    for (number, recording) in meant {
        match can_tell(run, recording) {
            // One thread of a program is followed in each step: that which was latest.
            Ok(()) if Waits::of(recording) == Waits::Program => {
                let of_step =
                    |one: &&mut usize| run.recordings[**one].key.step == recording.key.step;
                match found.iter_mut().find(of_step) {
                    Some(known) if run.recordings[*known].max() < recording.max() => {
                        *known = number;
                    }
                    Some(_) => {}
                    None => found.push(number),
                }
            }
            Ok(()) => found.push(number),
            Err(reason) => drop(why.get_or_insert(reason)),
        }
    }
    if found.is_empty() {
        let id = run.id.clone();
        return Err(match why {
            Some(why) => ScopeError::NotTold(id, why),
            None => ScopeError::NoSuch(id, wanted.none_such(run)),
        });
    }
    Ok(found)
}

/// The state of one recording's step while its run is followed.
struct Followed {
    /// The recording's number in the run.
    recording: usize,
    waits: Waits,
    /// The end of each sample's period.
    ends: Vec<Ends>,
    /// The delay of each sample's handler after it was due; empty where a thread waits.
    handled: Vec<Nanos>,
    analysis: Analysis,
}

impl Followed {
    /// Creates the state of a recording of a run.
    fn new(run: &Run, number: usize) -> Result<Self, ScopeError> {
        let recording = &run.recordings[number];
        let waits = Waits::of(recording);
        let (read, handled) = match waits {
            Waits::Thread | Waits::Program => (recording, Vec::new()),
            Waits::Handler => (
                reader(run, recording)?,
                recording.samples.iter().map(|one| one.value).collect(),
            ),
        };
        Ok(Self {
            recording: number,
            waits,
            ends: ends(read),
            handled,
            analysis: match waits {
                Waits::Program => Analysis::of_program(),
                _ => Analysis::default(),
            },
        })
    }

    fn take(&mut self, period: &Period, clock: GuestClock, names: &Names) {
        let number = period.sample as usize;
        let Some(ends) = self.ends.get(number).copied() else {
            return;
        };
        match self.handled.get(number) {
            Some(handled) => {
                let ends = (ends, *handled);
                self.analysis.take_interrupt(period, ends, clock, names);
            }
            None => self.analysis.take(period, ends, clock, names),
        }
    }
}

impl Followed {
    /// Checks that what was seen of a program's thread tells something. The error is the reason why
    /// not.
    fn can_be_told(&self, recording: &Recording, program: Option<&Program>) -> Result<(), String> {
        let Some(program) = program.filter(|_| self.waits == Waits::Program) else {
            return Ok(());
        };
        let (title, load) = (recording.title(), &recording.key.load);
        let instead = format!(
            "`punctual run --probe timer --load {load}`, and `punctual arrivals` of that, tell \
             what meets a thread of the highest priority"
        );
        if self.analysis.seen == 0 {
            return Err(format!(
                "{title}: none of its waits was seen between two switches of threads: {instead}"
            ));
        }
        let priority = program.priority_in(recording.key.step);
        let (Some(priority), 0) = (priority, program.unseen) else {
            let unseen = program.unseen;
            return Err(format!(
                "{title}: the priority of the thread that gets the CPU was not seen at {unseen} \
                 switches, so that it is not known which of them go before this one: {instead}"
            ));
        };
        if !(0..REAL_TIME_BELOW).contains(&priority) {
            let what = if priority < 0 {
                "it has a deadline, whose periods are not those of a timer"
            } else {
                "it is no thread of real time: its timers may expire up to 50 µs late, and \
                 others share the CPU with it"
            };
            return Err(format!(
                "{title}: {what}: SCHED_FIFO or SCHED_RR (`chrt -f 80`)"
            ));
        }
        if self.analysis.paths.count() == 0 && self.analysis.roundabout > 0 {
            return Err(format!(
                "{title}: no timer's interrupt wakes it itself, as with a timerfd on PREEMPT_RT, \
                 which a thread of low priority serves: clock_nanosleep has an interrupt of its own"
            ));
        }
        Ok(())
    }
}

/// Returns the recording of the thread that waits for another recording's interrupts. It says when
/// that thread has read the clock.
fn reader<'a>(run: &'a Run, own: &Recording) -> Result<&'a Recording, ScopeError> {
    let variant = own.key.variant.replace("hard", "whole");
    let is_reader = |one: &&Recording| {
        let is_of_step = (one.key.step, &one.key.variant) == (own.key.step, &variant);
        is_of_step && one.samples.len() == own.samples.len()
    };
    run.recordings.iter().find(is_reader).ok_or_else(|| {
        let why = format!("{}: the samples of {variant} are not kept", own.title());
        ScopeError::NotTold(run.id.clone(), why)
    })
}

/// Follows a run, and hands each of its periods to the step's analysis.
struct Follower<'a> {
    tracer: SectionTracer<'a>,
    clock: GuestClock,
    steps: BTreeMap<u32, Followed>,
}

impl Follower<'_> {
    fn take(&mut self, item: &Item) {
        match item {
            Item::Block(block) => self.tracer.learn(block),
            Item::Words(words) => words.iter().for_each(|word| self.word(*word)),
            Item::Whole(blocks) => {
                for block in blocks {
                    self.tracer.whole(*block);
                }
            }
            Item::Window { .. } | Item::End => {}
        }
        for period in self.tracer.take_periods() {
            if let Some(step) = self.steps.get_mut(&period.step) {
                step.take(&period, self.clock, self.tracer.names());
            }
        }
    }

    fn word(&mut self, word: Word) {
        self.tracer.word(word);
    }
}

/// Returns the end of each sample's period.
fn ends(recording: &Recording) -> Vec<Ends> {
    let mut read = Nanos::ZERO;
    let samples = recording.samples.iter();
    let ends = samples.map(|sample| {
        let (after, late) = (sample.at - read, sample.value);
        read = sample.at + late;
        Ends { after, late }
    });
    ends.collect()
}

/// Examines every arrival of these recordings of a run, which is repeated and watched. Also returns
/// the digest of the output.
pub fn arrivals(
    repeater: &Repeater,
    run: &Run,
    machine: &Machine,
    recordings: &[usize],
    cancel: &AtomicBool,
    on: OnEvent,
) -> Result<(Vec<Arrivals>, String), ScopeError> {
    if machine.cpus > 1 {
        let why = format!(
            "it was measured on {} CPUs, and arrivals are known of one: the others' turns would \
             count, too",
            machine.cpus
        );
        return Err(ScopeError::NotTold(run.id.clone(), why));
    }
    let clock = clock(run)?;
    let symbols = repeater.symbols(machine, cancel)?;
    let programs = programs(machine)?;
    let preemption = Preemptibility::of(run);
    let of_step = recordings.iter().map(|number| {
        let step = run.recordings[*number].key.step;
        Ok((step, Followed::new(run, *number)?))
    });
    let steps: Result<_, ScopeError> = of_step.collect();
    let steps: BTreeMap<u32, Followed> = steps?;
    let program = threads(run, &steps);
    let values = program
        .as_ref()
        .map_or(Vec::new(), |_| Program::values(&symbols));
    let names = Names::new(&symbols, &programs);
    let mut follower = Follower {
        tracer: SectionTracer::with_periods(
            names,
            preemption,
            steps.keys().copied(),
            program,
            clock.instructions(SHORTEST),
        ),
        clock,
        steps,
    };
    let take = &mut |item: &Item| follower.take(item);
    let digest = repeater.watch_everything(run, machine, &values, take, cancel, on)?;
    let Follower { tracer, steps, .. } = follower;
    for step in steps.values() {
        let recording = &run.recordings[step.recording];
        let told = step.can_be_told(recording, tracer.program());
        told.map_err(|why| ScopeError::NotTold(run.id.clone(), why))?;
    }
    let told = steps.into_values().map(|step| {
        let told = tell(step.analysis, step.waits, tracer.names(), clock);
        // What is off goes on as it would, whatever waits for its end.
        let is_forecast = step.waits != Waits::Handler && preemption != Preemptibility::Rt;
        let number = run.recordings[step.recording].key.step;
        let counts = |what| step.waits.is_kept_by(what, preemption);
        let functions = tracer.functions_of(number, counts).into_iter();
        let functions =
            functions.map(|(func, ran)| (tracer.names().text(func).to_owned(), clock.time(ran)));
        let functions = functions.filter(|(_, ran)| *ran >= SHORTEST);
        Arrivals {
            recording: step.recording,
            is_forecast,
            functions: functions.collect(),
            ..told
        }
    });
    Ok((told.collect(), digest))
}

/// Returns the threads of programs that are followed; `None` if there is none.
fn threads(run: &Run, steps: &BTreeMap<u32, Followed>) -> Option<Program> {
    let own = steps
        .iter()
        .filter(|(_, step)| step.waits == Waits::Program);
    let turns = own.map(|(number, step)| {
        let recording = &run.recordings[step.recording];
        (*number, Turns::of(&run.recordings, recording))
    });
    let turns: BTreeMap<u32, Turns> = turns.collect();
    (!turns.is_empty()).then(|| Program::new(turns))
}

fn tell(analysis: Analysis, waits: Waits, names: &Names, clock: GuestClock) -> Arrivals {
    let margin = match waits {
        Waits::Thread | Waits::Program => aim::MARGIN,
        Waits::Handler => Nanos::ZERO,
    };
    let (periods, strange) = (analysis.periods, analysis.strange);
    let (tail, paths, found) = analysis.finish();
    let text = |func| names.text(func).to_owned();
    let place = |((off, by, most), found): (Key, Found)| {
        let path = paths.typical(found.state).unwrap_or(0);
        let (off, most) = match found.ahead {
            Some(most) => (Off::Ahead, most),
            None => (off, (most, found.most)),
        };
        Place {
            off,
            function: text(by),
            most: (text(most.0), clock.time(most.1)),
            count: found.count,
            length: clock.time(found.length),
            falls_in: clock.time(found.falls_in),
            from: found.state.from,
            path: clock.time(path),
            foretold: clock
                .time((found.length + path + found.falls_in).saturating_sub(found.saved))
                - margin,
            sample: found.sample,
            after: found.after,
            arming: found.arming,
            shift: clock.time(found.shift.unsigned_abs()) * found.shift.signum(),
            ran: foretold(&found, &paths, names, clock),
            back: clock.time(paths.walked(found.state).map_or(0, |walked| walked.back)),
            wait: found.wait,
            starts: found
                .starts
                .iter()
                .map(|start| clock.time(*start))
                .collect(),
        }
    };
    let mut places: Vec<Place> = found.into_iter().map(place).collect();
    places.sort_by(|a, b| {
        let order = |of: &Place| (of.off, of.function.clone(), of.most.0.clone());
        (b.foretold, order(a)).cmp(&(a.foretold, order(b)))
    });
    let quantile = |share: f64| (share, clock.time(tail.quantile(1.0 - share)));
    let worst = clock.time(tail.most());
    let later = steps(worst).map(|late| (late, tail.later(clock.instructions(late))));
    Arrivals {
        waits,
        recording: 0,
        time: clock.time(tail.time),
        periods,
        strange,
        unlearnt: clock.time(tail.unlearnt()),
        learnt: paths.count(),
        quantiles: QUANTILES.into_iter().map(quantile).collect(),
        later: later.collect(),
        worst,
        places,
        is_forecast: true,
        functions: BTreeMap::new(),
    }
}

/// Returns the foretold time of each function at a place, and on the path after it.
fn foretold(
    found: &Found,
    paths: &Paths,
    names: &Names,
    clock: GuestClock,
) -> BTreeMap<String, Nanos> {
    let mut all = BTreeMap::<String, Nanos>::new();
    let walked = paths.walked(found.state);
    let ran = found
        .ran
        .iter()
        .chain(walked.iter().flat_map(|walked| &walked.ran));
    // What the scheduler does to a thread goes by the thread that runs there.
    let is_part = |func: &Func| Kind::of(names.text(*func)) == Kind::Part;
    let own = |func: &Func| found.ran.contains_key(func);
    for (func, time) in ran.filter(|(func, _)| !is_part(func) || own(func)) {
        *all.entry(names.text(*func).to_owned()).or_default() += clock.time(*time);
    }
    for (name, time) in paths.extras.each(found.state.held) {
        *all.entry(name.to_owned()).or_default() += clock.time(time);
    }
    all
}

/// Returns round latenesses up to the worst: 1, 2, 5, 10 µs and so on.
fn steps(worst: Nanos) -> impl Iterator<Item = Nanos> {
    let tens = (0..7).map(|power| 10_i64.pow(power));
    let all = tens.flat_map(|ten| [1, 2, 5].map(|step| Nanos::from_micros(ten * step)));
    all.take_while(move |late| *late < worst)
}

#[cfg(test)]
mod tests {
    use punctual_model::{Recorder, RecordingKey};

    use super::*;

    /// A wait that was seen, and could not be looked at, is not one that was not seen.
    #[test]
    fn waits_that_could_not_be_looked_at_were_seen() {
        let key = RecordingKey::new("app", "idle", "thread lateness");
        let recording = Recorder::new(0).finish(key);
        let why = |seen: u64| {
            let mut analysis = Analysis::of_program();
            (analysis.seen, analysis.strange) = (seen, seen);
            let followed = Followed {
                recording: 0,
                waits: Waits::Program,
                ends: Vec::new(),
                handled: Vec::new(),
                analysis,
            };
            let program = Program::default();
            let told = followed.can_be_told(&recording, Some(&program));
            told.unwrap_err()
        };
        let none = why(0);
        assert!(none.contains("none of its waits was seen"), "{none}");
        let one = why(1);
        assert!(one.contains("the priority of the thread"), "{one}");
    }
}
