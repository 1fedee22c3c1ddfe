// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual arrivals`: the lateness that each arrival would have had, and proof of the worst.

use std::sync::{Mutex, mpsc};
use std::thread;

use anyhow::Result;
use clap::Args;
use punctual_bench::virtual_bench::Machine;
use punctual_model::Run;
use punctual_model::arrivals::{Arrivals as Known, are_told_of, can_be_aimed};
use punctual_report::scope::arrivals::{Aimed, Told, kept, told};
use punctual_runner::{loads, memory};
use punctual_scope::arrivals::aim::{Aimer, Reached, worth_aiming};
use punctual_scope::arrivals::{Arrivals as Every, Place, arrivals, can_tell, chosen};
use punctual_scope::error::ScopeError;
use punctual_scope::explain::Wanted;
use punctual_scope::repeat::OnEvent;
use punctual_store::{Store, StoreError, Story};

use super::measure::side_by_side;
use super::output_args::OutputArgs;
use super::replay_args::ReplayArgs;
use super::{StoreArgs, load};
use crate::output::say;
use crate::{ExitStatus, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual arrivals r4
  punctual arrivals r4 --load stress --aim 10
  punctual arrivals r4 --aim 3 --json > arrivals.json
  punctual arrivals r4 --again

Punctual keeps the result beside the run, and shows it when you ask again.

Exit status: 0 reported; 3 Ctrl-C has ended it; 1 an error; 2 a wrong request.";

/// Tell how late a thread would run at each moment of a run, and prove the worst
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arrivals {
    /// The run
    #[arg(value_name = "RUN")]
    run: String,
    /// Only steps of this probe
    #[arg(long, value_name = "PROBE")]
    probe: Option<String>,
    /// Only steps under this load
    #[arg(long, value_name = "LOAD|FILE")]
    load: Option<String>,
    /// Only this variant: of a program, the thread: "loop lateness"; else the latest of its threads
    #[arg(long, value_name = "VARIANT")]
    variant: Option<String>,
    /// Aim a sample at each of the N worst places of each step
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10", default_value_t = 0)]
    aim: usize,
    /// Repeat the run although the store has what is asked for
    #[arg(long)]
    again: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    repeat: ReplayArgs,
    #[command(flatten)]
    store: StoreArgs,
}

impl Arrivals {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        self.output.check()?;
        let store = self.store.open()?;
        let run = load(&store, &self.run)?;
        let wanted = Wanted {
            probe: self.probe.clone(),
            load: self.load.as_deref().map(loads::name_of),
            variant: self.variant.clone(),
            ..Wanted::default()
        };
        let recordings = chosen(&run, &wanted)?;
        let told = match self.known(&store, &run, &recordings)? {
            Some(known) => known,
            None => match watch(&self.repeat, &run, &recordings, Aims::most(self.aim))? {
                Some(told) => {
                    keep(&store, &run, &told)?;
                    told
                }
                None => return Ok(ExitStatus::Incomplete),
            },
        };
        let json = serde_json::to_value(&told)?;
        self.output.show(
            "steps.places",
            || json.clone(),
            || told.text(output::text_width()),
            || Ok(told.page()),
        )?;
        Ok(ExitStatus::Done)
    }

    /// The arrivals in the store, if they are all that is asked for.
    fn known(&self, store: &Store, run: &Run, recordings: &[usize]) -> Result<Option<Told>> {
        if self.again {
            return Ok(None);
        }
        let known = of_run(store, run)?;
        Ok(known.and_then(|known| known.of(&steps(run, recordings), self.aim)))
    }
}

fn steps(run: &Run, recordings: &[usize]) -> Vec<(u32, String)> {
    let recordings = recordings.iter().map(|one| &run.recordings[*one]);
    let steps = recordings.map(|one| (one.key.step, one.title()));
    steps.collect()
}

/// The way to aim at a run's places.
#[derive(Clone, Copy)]
struct Aims {
    /// The number of places for each recording.
    most: usize,
    /// The number aimed at at once; `None` for as many as this machine can.
    at_once: Option<usize>,
    /// True to aim at the latest of all once more, with a second timer.
    with_second: bool,
}

impl Aims {
    fn most(most: usize) -> Self {
        Self {
            most,
            at_once: None,
            with_second: false,
        }
    }
}

/// Repeats a run, and aims at places of each recording. `None` if Ctrl-C has ended it.
fn watch(repeat: &ReplayArgs, run: &Run, recordings: &[usize], aims: Aims) -> Result<Option<Told>> {
    let Aims { most, at_once, .. } = aims;
    let (place, machine) = repeat.machine(run)?;
    let cancel = interrupt::flag()?;
    let body = |on: OnEvent| arrivals(&place, run, &machine, recordings, cancel, on);
    let Some((found, digest)) = repeat.repeat(run, None, body)? else {
        return Ok(None);
    };
    let aimer = Aimer::new(&place, run, &machine, cancel)?;
    let mut all: Vec<(Every, Aimed)> = Vec::new();
    for found in found {
        let step = run.recordings[found.recording].key.step;
        let can_be_aimed = can_be_aimed(&run.recordings[found.recording].key);
        let aims = worth_aiming(&found, if can_be_aimed { most } else { 0 });
        let places: Vec<&Place> = aims.iter().map(|one| &found.places[*one]).collect();
        let at_once = at_once.map_or_else(|| side_by_side_on(&machine), Ok)?;
        let body = |on: OnEvent| aimer.reach_all(found.recording, &places, at_once, on);
        let reached = if places.is_empty() {
            Some(Vec::new())
        } else {
            repeat.repeat(run, Some(step), body)?
        };
        let Some(reached) = reached else {
            return Ok(None);
        };
        let tried = aims.into_iter().zip(reached);
        let tried = tried.filter_map(|(number, reached)| Some((number, reached?)));
        all.push((found, tried.collect()));
    }
    let mut told = told(run, &all, most, &digest);
    if aims.with_second {
        let places = latest_first(&all);
        let alone = places.first().map(|(.., reached)| reached.late);
        for (found, number, first) in places.into_iter().take(SECONDS) {
            let step = run.recordings[found.recording].key.step;
            let place = (found.recording, &found.places[number]);
            let body = |on: OnEvent| aimer.reach_with_second(place, first, on);
            let Some(second) = repeat.repeat(run, Some(step), body)? else {
                return Ok(None);
            };
            if let Some(second) = &second {
                told.add_second(step, second);
            }
            if second.is_some_and(|second| Some(second.reached.late) > alone) {
                break;
            }
        }
    }
    Ok(Some(told))
}

/// The number of places at which a second timer is aimed, until one makes a sample later than
/// without.
const SECONDS: usize = 3;

/// The aimed samples of all recordings with their places' numbers, the latest first.
fn latest_first(all: &[(Every, Aimed)]) -> Vec<(&Every, usize, &Reached)> {
    let each = all.iter().flat_map(|(found, aimed)| {
        let aimed = aimed.iter();
        aimed.map(move |(number, reached)| (found, *number, reached))
    });
    let mut each: Vec<_> = each.collect();
    each.sort_by_key(|(.., reached)| std::cmp::Reverse(reached.late));
    each
}

/// Aims at the latest arrivals of a run's timers, `most` of each step, and at the latest of those
/// with a second timer, unless the store has that already. Adds the result to the run. Returns
/// false if Ctrl-C came.
pub fn aim_with_second(
    repeat: &ReplayArgs,
    store: &Store,
    run: &mut Run,
    most: usize,
) -> Result<bool> {
    attach(store, run)?;
    let timers = Wanted {
        probe: Some("timer".to_owned()),
        ..Wanted::default()
    };
    let recordings = chosen(run, &timers)?;
    let of = |one: &usize| run.arrivals_of(&run.recordings[*one]);
    let is_aimed = |one| of(one).is_some_and(|known| known.aims >= most);
    let has_second = |one| of(one).is_some_and(|known| known.with_second.is_some());
    if recordings.iter().all(is_aimed) && recordings.iter().any(has_second) {
        return Ok(true);
    }
    let aims = Aims {
        with_second: true,
        ..Aims::most(most)
    };
    let Some(told) = watch(repeat, run, &recordings, aims)? else {
        return Ok(false);
    };
    keep(store, run, &told)?;
    attach(store, run)?;
    Ok(true)
}

/// The number of aimed runs at a time: as many as this machine has CPUs and memory for.
fn side_by_side_on(machine: &Machine) -> Result<usize> {
    let cpus = side_by_side(None)?;
    let room = memory::available_mib().map(|free| memory::guests(machine.memory_mib, free));
    Ok(room.map_or(1, |room| room.min(cpus)))
}

/// The arrivals of a run in a store.
pub fn of_run(store: &Store, run: &Run) -> Result<Option<Told>> {
    let stories = store.stories(&run.id)?;
    Ok(kept(run, stories.iter().map(|story| story.json.as_str())))
}

/// Adds the arrivals in a store to the run, for judging by them.
pub fn attach(store: &Store, run: &mut Run) -> Result<(), StoreError> {
    let stories = store.stories(&run.id)?;
    punctual_report::scope::arrivals::attach(run, stories.iter().map(|story| story.json.as_str()));
    Ok(())
}

/// Stores a result beside its run.
fn keep(store: &Store, run: &Run, told: &Told) -> Result<()> {
    let result = Story {
        made: punctual_runner::now(),
        told: told.text(WIDTH),
        json: serde_json::to_string(told)?,
    };
    // Whoever may only read still wants to be told.
    if let Err(error) = store.add_story(&run.id, &result) {
        say!("the arrivals are not kept in the store: {error}");
    }
    Ok(())
}

/// The width of the stored text.
const WIDTH: usize = 80;

/// That what is judged is also judged by every arrival.
#[derive(Clone, Debug, Default, Args)]
pub struct WatchArgs {
    /// Judge every arrival, too: repeat and watch each run whose arrivals are not known yet; with
    /// =N, also aim a sample at each of the N worst places
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "0")]
    arrivals: Option<usize>,
}

impl WatchArgs {
    /// Asks for every arrival, and for `most` aimed samples of each step.
    pub fn aims(most: usize) -> Self {
        Self {
            arrivals: Some(most),
        }
    }

    /// Returns true if arrivals are asked for.
    pub fn is_given(&self) -> bool {
        self.arrivals.is_some()
    }

    /// Adds the known arrivals to the runs. Those that are asked for and not known are watched,
    /// `at_once` runs at a time, and stored. Reports those that cannot be watched. Returns false if
    /// Ctrl-C came.
    pub fn attach(
        &self,
        store: &Store,
        mut runs: Vec<&mut Run>,
        at_once: usize,
        is_quiet: bool,
    ) -> Result<bool> {
        let Some(aims) = self.arrivals else {
            for run in runs {
                attach(store, run)?;
                run.forget_parts();
            }
            return Ok(true);
        };
        let mut open = Vec::new();
        for (number, run) in runs.iter_mut().enumerate() {
            attach(store, run)?;
            match to_watch(run, aims) {
                Ok(recordings) if recordings.is_empty() => {}
                Ok(recordings) => open.push((number, (**run).clone(), recordings)),
                Err(why) => {
                    say!("punctual: {why}");
                    not_known(run, &format!("they were not watched: {why}"));
                }
            }
        }
        let open = Mutex::new(open.into_iter());
        let next = || open.lock().ok()?.next();
        let (send, told) = mpsc::channel();
        let work = |send: mpsc::Sender<_>| {
            while let Some((number, run, recordings)) = next() {
                if !is_quiet {
                    say!("{} (seed {}): every arrival is watched", run.id, run.seed);
                }
                let repeat = ReplayArgs::quiet(true);
                let aims = Aims {
                    at_once: Some(1),
                    ..Aims::most(aims)
                };
                let told = watch(&repeat, &run, &recordings, aims);
                let is_over = matches!(told, Ok(None));
                if send.send((number, told)).is_err() || is_over {
                    return;
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..at_once.max(1) {
                let send = send.clone();
                scope.spawn(|| work(send));
            }
            drop(send);
            let mut is_whole = true;
            for (number, told) in told {
                let run = &mut *runs[number];
                match told {
                    Ok(Some(told)) => {
                        keep(store, run, &told)?;
                        attach(store, run)?;
                    }
                    Ok(None) => is_whole = false,
                    Err(error) => {
                        say!("punctual: {}: arrivals not watched: {error:#}", run.id);
                        not_known(run, &format!("they were not watched: {error:#}"));
                    }
                }
            }
            for run in &mut runs {
                not_known(run, "they were not watched");
            }
            Ok(is_whole)
        })
    }
}

/// Records that the arrivals of a run's timers and interrupts were asked for, and are not known.
/// Those that can never be, such as of `SCHED_DEADLINE`, are no gap.
fn not_known(run: &mut Run, why: &str) {
    let asked = run.recordings.iter().filter(|one| {
        let is_asked = matches!(one.key.probe.as_str(), "timer" | "irq") && are_told_of(&one.key);
        is_asked && (can_tell(run, one).is_ok() || !one.is_complete())
    });
    let open = asked.filter(|one| run.arrivals_of(one).is_none());
    let open = open.map(|one| Known {
        step: one.key.step,
        gap: Some(can_tell(run, one).err().unwrap_or_else(|| why.to_owned())),
        ..Known::default()
    });
    let open: Vec<Known> = open.collect();
    run.arrivals.extend(open);
}

/// The recordings of a run that were not watched yet, or not with enough aims; an error is the
/// reason why they cannot be. A recording with a gap was watched: the same run has the same gap the
/// next time.
fn to_watch(run: &Run, aims: usize) -> Result<Vec<usize>, ScopeError> {
    let mut recordings = chosen(run, &Wanted::default())?;
    let is_program = |one: &usize| run.recordings[*one].key.probe == "app";
    if recordings.iter().all(is_program) {
        let why = "`punctual arrivals` tells of a program's threads, and figures and limits have \
                   no part of that yet";
        return Err(ScopeError::NotTold(run.id.clone(), why.to_owned()));
    }
    recordings.retain(|one| !is_program(one));
    recordings.retain(|one| {
        let recording = &run.recordings[*one];
        let needs = if can_be_aimed(&recording.key) {
            aims
        } else {
            0
        };
        let known = run.arrivals_of(recording);
        known.is_none_or(|known| known.aims < needs)
    });
    Ok(recordings)
}
