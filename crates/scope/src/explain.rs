// SPDX-License-Identifier: MIT OR Apache-2.0
//! Breaks down chosen samples.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_bench::RunError;
use punctual_bench::virtual_bench::Machine;
use punctual_model::place::{self, EXECUTION, FaultPlace, LATENESS, Place};
use punctual_model::probe::SampleSpan;
use punctual_model::recording::WORST_KEPT;
use punctual_model::{Finding, Nanos, Recording, Run, Sample};
use punctual_trace::{Item, Window};

use crate::blocks::Blocks;
use crate::breakdown::{Breakdown, SampleContext, breakdown, line_at};
use crate::cycle::{self, Cut, Cutter};
use crate::error::{ScopeError, at};
use crate::guest_clock::GuestClock;
use crate::lines::Lines;
use crate::names::Names;
use crate::preemptibility::Preemptibility;
pub use crate::probes::Chosen;
use crate::probes::{choose, is_explained, watched};
use crate::repeat::{OnEvent, Repeater};
use crate::survey::{RunTracer, Survey};
use crate::symbols::Symbols;
use crate::user_symbols::UserSymbols;
use crate::walk::Walker;

/// The samples that are to be explained.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only those of this probe.
    pub probe: Option<String>,
    /// Only those under this load.
    pub load: Option<String>,
    /// Only those of this variant.
    pub variant: Option<String>,
    /// The sample with this number.
    pub sample: Option<u64>,
    /// The number of the worst samples.
    pub worst: usize,
    /// True to choose instead the cycles in which faults in the design of a program were first.
    pub faults: bool,
}

impl Wanted {
    pub(crate) fn wants(&self, recording: &Recording) -> bool {
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        is(&self.probe, &recording.key.probe)
            && is(&self.load, &recording.key.load)
            && (is(&self.variant, &recording.key.variant)
                || is(&self.variant, &recording.key.label()))
    }

    /// Returns the text for no matching recording: what was asked for, and what the run has.
    pub(crate) fn none_such(&self, run: &Run) -> String {
        let asked = [
            ("probe", &self.probe),
            ("load", &self.load),
            ("variant", &self.variant),
        ];
        let asked = asked.into_iter().filter_map(|(what, name)| {
            let name = name.as_ref()?;
            Some(format!(" with {what} \"{name}\""))
        });
        let asked: String = asked.collect();
        let titles: Vec<String> = run.recordings.iter().map(Recording::title).collect();
        if titles.is_empty() {
            return "no recordings".to_owned();
        }
        format!("no recording{asked}; it has {}", titles.join(", "))
    }

    /// Returns the matching samples of a run, the worst first; an error if there is none.
    pub fn choose(&self, run: &Run) -> Result<Vec<Chosen>, ScopeError> {
        if self.faults {
            return self.choose_faults(run);
        }
        let mut worst = Worst::new(self.worst);
        let none = |what: String| ScopeError::NoSuch(run.id.clone(), what);
        let (mut explained, mut why) = (false, None);
        let numbered = run.recordings.iter().enumerate();
        for (number, recording) in numbered.filter(|(_, recording)| self.wants(recording)) {
            match is_explained(run, number) {
                Ok(()) => {
                    explained = true;
                    self.offer(number, recording, &mut worst);
                }
                Err(reason) => drop(why.get_or_insert(reason)),
            }
        }
        if !explained {
            return Err(why.unwrap_or_else(|| none(self.none_such(run))));
        }
        let samples = worst.into_sorted();
        if samples.is_empty() {
            return Err(none(self.no_sample(run)));
        }
        let chosen = samples.into_iter();
        let chosen = chosen.map(|(recording, sample)| choose(run, recording, sample));
        chosen.collect()
    }

    /// Returns the text for no sample in the matching recordings.
    fn no_sample(&self, run: &Run) -> String {
        let matching = run.recordings.iter().filter(|one| self.wants(one));
        let count = matching.map(|one| one.count).max().unwrap_or(0);
        match self.sample {
            Some(seq) if count > 0 && seq >= count => {
                format!("no sample {seq}: expected one of 0 to {}", count - 1)
            }
            _ => "no such sample, or did not keep it".to_owned(),
        }
    }

    fn choose_faults(&self, run: &Run) -> Result<Vec<Chosen>, ScopeError> {
        let mut chosen = Vec::new();
        for (number, recording) in run.recordings.iter().enumerate() {
            if !self.wants(recording) || !recording.key.variant.ends_with(EXECUTION) {
                continue;
            }
            let places = FaultPlace::all(&run.recordings, recording);
            let cycles: BTreeSet<u64> = places.iter().map(|place| place.cycle).collect();
            if !cycles.is_empty() {
                is_explained(run, number)?;
            }
            for seq in cycles {
                let one = Self {
                    sample: Some(seq),
                    worst: 1,
                    ..Self::default()
                };
                let mut found = Worst::new(1);
                one.offer(number, recording, &mut found);
                let found = found.into_sorted().into_iter();
                let found = found.map(|(number, sample)| choose(run, number, sample));
                chosen.extend(found.collect::<Result<Vec<_>, _>>()?);
            }
        }
        if chosen.is_empty() {
            let none = "no cycle of a program with a fault in its design".to_owned();
            return Err(ScopeError::NoSuch(run.id.clone(), none));
        }
        Ok(chosen)
    }

    /// Returns the numbers of the matching recordings whose samples are interruptions of a running
    /// thread.
    pub fn gap_recordings(&self, run: &Run) -> Vec<usize> {
        let is_gap = |recording: &Recording| {
            watched(recording).is_ok_and(|watched| watched.span == SampleSpan::Gap)
        };
        let numbered = run.recordings.iter().enumerate();
        let meant = numbered.filter(|(_, recording)| self.wants(recording) && is_gap(recording));
        meant.map(|(number, _)| number).collect()
    }

    /// Returns all samples of such recordings that were kept.
    pub fn gaps(&self, run: &Run) -> Result<Vec<Chosen>, ScopeError> {
        let recordings = self.gap_recordings(run).into_iter();
        let samples = recordings.flat_map(|number| {
            let samples = run.recordings[number].samples.iter();
            samples.map(move |sample| choose(run, number, sample))
        });
        samples.collect()
    }

    /// Offers the matching samples of a recording, without a look at more of them than needed: each
    /// recording keeps its worst separately.
    fn offer(&self, number: usize, recording: &Recording, worst: &mut Worst) {
        let (all, kept) = (&recording.samples, recording.samples.len() as u64);
        let not_kept = recording.worst.iter().filter(|sample| sample.seq >= kept);
        if let Some(seq) = self.sample {
            let nth = usize::try_from(seq).ok();
            let nth = nth.and_then(|seq| all.iter().nth(seq));
            let apart = || not_kept.copied().find(|sample| sample.seq == seq);
            worst.extend(number, nth.or_else(apart));
        } else if self.worst <= WORST_KEPT {
            worst.extend(number, recording.worst.iter().copied());
        } else {
            worst.extend(number, all.iter().chain(not_kept.copied()));
        }
    }
}

/// The worst of all samples that are offered, up to a maximum number.
struct Worst {
    most: usize,
    /// The least bad sample on top: by value, the number of the recording, and that of the sample.
    heap: BinaryHeap<Reverse<Rank>>,
}

/// The rank of a sample. A worse sample is greater; of equal ones, the earlier is.
type Rank = (Nanos, Reverse<(usize, u64)>, Nanos);

impl Worst {
    fn new(most: usize) -> Self {
        let heap = BinaryHeap::new();
        Self { most, heap }
    }

    fn extend(&mut self, recording: usize, samples: impl IntoIterator<Item = Sample>) {
        for sample in samples {
            let place = Reverse((recording, sample.seq));
            self.heap.push(Reverse((sample.value, place, sample.at)));
            if self.heap.len() > self.most {
                self.heap.pop();
            }
        }
    }

    /// Returns the worst first, each with the number of its recording.
    fn into_sorted(self) -> Vec<(usize, Sample)> {
        let sorted = self.heap.into_sorted_vec().into_iter();
        let sample = |Reverse((value, Reverse((recording, seq)), at))| {
            (recording, Sample { seq, at, value })
        };
        sorted.map(sample).collect()
    }
}

/// A sample with its breakdown.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The sample.
    pub chosen: Chosen,
    /// Its breakdown, or the reason why there is none.
    pub breakdown: Result<Breakdown, String>,
}

/// Repeats the run while it is watched, and breaks these samples down, in their order.
pub fn explain(
    repeater: &Repeater,
    run: &Run,
    machine: &Machine,
    chosen: &[Chosen],
    cancel: &AtomicBool,
    on: OnEvent,
) -> Result<Vec<Explained>, ScopeError> {
    if chosen.iter().any(|one| one.cycle.is_some()) {
        return of_cycles(repeater, run, machine, chosen, cancel, on);
    }
    let clock = clock(run)?;
    let symbols = repeater.symbols(machine, cancel)?;
    let programs = programs(machine)?;
    let windows: Vec<_> = chosen.iter().flat_map(windows).collect();
    let mut trace = repeater.watch(run, machine, &windows, &symbols, cancel, on)?;
    let mut library = Blocks::new(Names::new(&symbols, &programs));
    let mut explained: Vec<Option<Explained>> = vec![None; chosen.len()];
    while let Some((window, words)) = trace.next_window(|block| library.learn(block))? {
        if cancel.load(Ordering::SeqCst) {
            return Err(RunError::Interrupted.into());
        }
        let walk = Walker::new(&library).window(&words);
        let pairs = explained.iter_mut().zip(chosen);
        for (place, chosen) in pairs.filter(|(_, chosen)| chosen.window == window) {
            let found = breakdown(&walk, library.names.all(), about(run, clock, chosen));
            *place = Some(Explained {
                chosen: *chosen,
                breakdown: found.map_err(|why| why.to_string()),
            });
        }
    }
    let missing = explained.iter().filter(|place| place.is_none()).count();
    if missing > 0 {
        return Err(ScopeError::Unmarked(missing));
    }
    Ok(explained.into_iter().flatten().collect())
}

/// The same for cycles of programs.
fn of_cycles(
    repeater: &Repeater,
    run: &Run,
    machine: &Machine,
    chosen: &[Chosen],
    cancel: &AtomicBool,
    on: OnEvent,
) -> Result<Vec<Explained>, ScopeError> {
    let unreadable = |why: String| ScopeError::Unreadable(run.id.clone(), why);
    if chosen.iter().any(|one| one.cycle.is_none()) {
        let why = "cycles of programs and other samples are explained one after the other: name \
                   the probe";
        return Err(unreadable(why.to_owned()));
    }
    let symbols = repeater.symbols(machine, cancel)?;
    let programs = programs(machine)?;
    let last = chosen.iter().map(|one| one.window.step).max();
    let follow = &mut |take: &mut (dyn FnMut(&Item) + Send)| {
        repeater.watch_up_to(run, machine, last, &symbols, take, cancel, &mut *on)
    };
    of_followed(run, machine, chosen, (&symbols, &programs), follow)
}

/// Lets the caller follow a run whose cycles are to be explained.
pub(crate) type Follow<'a> =
    &'a mut dyn FnMut(&mut (dyn FnMut(&Item) + Send)) -> Result<(), ScopeError>;

/// Explains cycles of programs in a run that `follow` repeats.
pub(crate) fn of_followed(
    run: &Run,
    machine: &Machine,
    chosen: &[Chosen],
    (symbols, programs): (&Symbols, &UserSymbols),
    follow: Follow<'_>,
) -> Result<Vec<Explained>, ScopeError> {
    let unreadable = |why: String| ScopeError::Unreadable(run.id.clone(), why);
    let clock = clock(run)?;
    let places = chosen.iter().map(|one| {
        let own = &run.recordings[one.recording];
        let place = place::of_cycle(&run.recordings, own, one.sample.seq);
        Ok((one.window.step, place.ok_or("a cycle has no place")?))
    });
    let places: Vec<(u32, Place)> = places
        .collect::<Result<_, &str>>()
        .map_err(|why| unreadable(why.to_owned()))?;
    let mut cutter = Cutter::new(Names::new(symbols, programs), &places);
    follow(&mut |item: &Item| cutter.take(item))?;
    let (cuts, blocks) = cutter.finish();
    let lines = Lines::of(programs, &machine.initramfs, &blocks);
    let lines = lines.map_err(at(&machine.initramfs))?;
    let mut library = Blocks::new(Names::with_lines(symbols, programs, lines));
    blocks.iter().for_each(|block| library.learn(block));
    let all = chosen.iter().zip(&places).zip(cuts);
    let explain = |((chosen, (_, place)), cut): ((&Chosen, &(u32, Place)), Cut)| Explained {
        chosen: *chosen,
        breakdown: {
            let about = about(run, clock, chosen);
            of_cycle(&library, about, (run, chosen), place, &cut)
        },
    };
    Ok(all.map(explain).collect())
}

/// Returns the breakdown of a cycle.
fn of_cycle(
    library: &Blocks<'_>,
    about: SampleContext,
    (run, chosen): (&Run, &Chosen),
    place: &Place,
    cut: &Cut,
) -> Result<Breakdown, String> {
    let own = &run.recordings[chosen.recording];
    let variant = &own.key.variant;
    let Some(whole) = chosen.cycle.filter(|_| cut.is_whole) else {
        return Err("its end was not seen, or it is too long to be kept".to_owned());
    };
    let mut walk = Walker::new(library).window(&cut.words);
    let found = cycle::fit(&mut walk, place, whole, about.clock)?;
    let [response, late] = whole;
    let [begin, end] = found;
    let (late, cycle) = if variant.ends_with(LATENESS) {
        (late, [begin, begin])
    } else {
        (response, [begin, end])
    };
    let cycle = Some(cycle);
    let about = SampleContext {
        late,
        cycle,
        ..about
    };
    let mut story = breakdown(&walk, library.names.all(), about).map_err(|why| why.to_string())?;
    if variant.ends_with(EXECUTION) {
        let value = chosen.sample.value;
        story.notes.push(format!(
            "this is the whole cycle; its thread had the CPU for {value} of it"
        ));
    }
    let execution = place::sister(&run.recordings, own, EXECUTION);
    for fault in FaultPlace::all(&run.recordings, own) {
        let finding = execution.and_then(|one| one.findings.get(&fault.fault));
        let Some(Finding::Text(told)) = finding.filter(|_| fault.cycle == chosen.sample.seq) else {
            continue;
        };
        let line = line_at(&walk, library.names.all(), about, fault.after);
        let line = line.map(|line| format!(", by {line}")).unwrap_or_default();
        let (what, advice) = told.split_once("; ").unwrap_or((told, ""));
        let note = format!("{what}{line}; {advice}");
        story.notes.push(note);
    }
    Ok(story)
}

/// Returns the windows to be watched for a sample. The reading of the clock that ends a gap may
/// begin another one.
fn windows(chosen: &Chosen) -> impl Iterator<Item = Window> + use<> {
    let window = chosen.window;
    let is_gap = chosen.span == SampleSpan::Gap;
    let before = window.index.checked_sub(1).filter(|_| is_gap);
    let before = before.map(|index| Window { index, ..window });
    before.into_iter().chain([window])
}

/// Surveys a whole run. Also returns the digest of the output.
pub fn survey(
    repeater: &Repeater,
    run: &Run,
    machine: &Machine,
    cancel: &AtomicBool,
    on: OnEvent,
) -> Result<(Survey, String), ScopeError> {
    let clock = clock(run)?;
    let symbols = repeater.symbols(machine, cancel)?;
    let programs = programs(machine)?;
    let names = || Names::new(&symbols, &programs);
    let mut tracer = RunTracer::new(names, Preemptibility::of(run), machine.cpus);
    let take = &mut |item: &Item| tracer.take(item);
    let digest = repeater.watch_everything(run, machine, &[], take, cancel, on)?;
    Ok((tracer.finish(clock), digest))
}

pub(crate) fn programs(machine: &Machine) -> Result<UserSymbols, ScopeError> {
    UserSymbols::of_initramfs(&machine.initramfs).map_err(|error| ScopeError::Io {
        path: machine.initramfs.clone(),
        error,
    })
}

pub(crate) fn clock(run: &Run) -> Result<GuestClock, ScopeError> {
    GuestClock::of_run(run).map_err(|why| ScopeError::Unreadable(run.id.clone(), why))
}

pub(crate) fn about(run: &Run, clock: GuestClock, chosen: &Chosen) -> SampleContext {
    SampleContext {
        clock,
        span: chosen.span,
        late: chosen.sample.value,
        ends_before: chosen.ends_before,
        preemption: Preemptibility::of(run),
        cycle: None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use punctual_model::Recorder;

    use super::*;

    fn sample(seq: u64, value: i64) -> Sample {
        let (at, value) = (Nanos(seq as i64 * 10), Nanos(value));
        Sample { seq, at, value }
    }

    proptest! {
        #[test]
        fn the_worst_of_all_are_those_that_sorting_would_find(
            values in prop::collection::vec((0..3_usize, -4_i64..5), 0..60),
            most in 0..70_usize,
        ) {
            let offered = values.iter().zip(0..);
            let offered = offered.map(|((recording, value), seq)| (*recording, sample(seq, *value)));
            let mut sorted: Vec<_> = offered.collect();
            let mut worst = Worst::new(most);
            for (recording, sample) in &sorted {
                worst.extend(*recording, [*sample]);
                prop_assert!(worst.heap.len() <= most);
            }
            sorted.sort_by_key(|(recording, sample)| (-sample.value.0, *recording, sample.seq));
            sorted.truncate(most);
            prop_assert_eq!(worst.into_sorted(), sorted);
        }
    }

    #[test]
    fn samples_are_found_whether_they_were_kept_or_are_among_the_worst() {
        let mut recorder = Recorder::new(20);
        (0..100).for_each(|n| recorder.record(Nanos(n * 1_000), Nanos(n % 50)));
        let recording = recorder.finish(punctual_model::RecordingKey::new("timer", "idle", "cpu0"));
        let offered = |worst, sample| {
            let wanted = Wanted {
                sample,
                worst,
                ..Wanted::default()
            };
            let mut found = Worst::new(worst);
            wanted.offer(0, &recording, &mut found);
            let found = found.into_sorted().into_iter();
            found.map(|(_, sample)| sample.seq).collect::<Vec<_>>()
        };
        assert_eq!(offered(3, None), [49, 99, 48]);
        // Sixteen are kept apart; behind them come those that were kept in order.
        assert_eq!(offered(18, None)[14..], [42, 92, 19, 18]);
        assert_eq!(offered(usize::MAX, Some(7)), [7]);
        assert_eq!(offered(usize::MAX, Some(99)), [99]);
        assert_eq!(offered(usize::MAX, Some(60)), [] as [u64; 0]);
        assert_eq!(offered(0, None), [] as [u64; 0]);
    }
}
