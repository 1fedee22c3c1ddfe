//! From chosen samples to their stories.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use punctual_bench::virtual_bench::Machine;
use punctual_model::{Recording, Run};
use punctual_trace::{Item, Window};

use crate::blocks::Blocks;
use crate::error::ScopeError;
use crate::guest_clock::GuestClock;
use crate::names::Names;
use crate::preemption::Preemption;
use crate::probes::{Chosen, choose, is_explained};
use crate::repeat::{Place, Say};
use crate::story::{Circumstances, Measure, Story, tell};
use crate::survey::{Survey, Surveyor};
use crate::user_symbols::UserSymbols;
use crate::walk::Walker;

/// Which samples are to be explained.
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
    /// So many of the worst.
    pub worst: usize,
}

impl Wanted {
    fn wants(&self, recording: &Recording) -> bool {
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        is(&self.probe, &recording.key.probe)
            && is(&self.load, &recording.key.load)
            && (is(&self.variant, &recording.key.variant)
                || is(&self.variant, &recording.key.label()))
    }

    /// The samples of a run that are meant, the worst first; an error where there is none.
    pub fn choose(&self, run: &Run) -> Result<Vec<Chosen>, ScopeError> {
        let unreadable = |what: &str| ScopeError::Unreadable(run.id.clone(), what.to_owned());
        let numbered = run.recordings.iter().enumerate();
        let wanted: Vec<_> = numbered
            .filter(|(_, recording)| self.wants(recording))
            .collect();
        if wanted.is_empty() {
            return Err(unreadable(&none_such(run)));
        }
        let mut samples = Vec::new();
        let (mut why, count) = (Vec::new(), wanted.len());
        for (number, recording) in wanted {
            if let Err(reason) = is_explained(run, number) {
                why.push(reason);
                continue;
            }
            let all = recording
                .samples
                .iter()
                .chain(recording.worst.iter().copied());
            let all = all.filter(|sample| self.sample.is_none_or(|wanted| wanted == sample.seq));
            samples.extend(all.map(|sample| (number, sample)));
        }
        if why.len() == count {
            return Err(why.swap_remove(0));
        }
        samples.sort_by_key(|(number, sample)| (-sample.value.0, *number, sample.seq));
        samples.dedup_by_key(|(number, sample)| (*number, sample.seq));
        samples.truncate(self.worst);
        if samples.is_empty() {
            return Err(unreadable("it has no such sample, or did not keep it"));
        }
        let chosen = samples
            .into_iter()
            .map(|(recording, sample)| choose(run, recording, sample));
        chosen.collect()
    }
}

/// No recording is meant: which there are.
fn none_such(run: &Run) -> String {
    let kind = |recording: &Recording| format!("{} / {}", recording.key.probe, recording.key.load);
    let mut kinds: Vec<String> = run.recordings.iter().map(kind).collect();
    kinds.dedup();
    if kinds.is_empty() {
        return "it has no recordings".to_owned();
    }
    format!("it has no such recording; it has {}", kinds.join(", "))
}

/// A sample with its story.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The sample.
    pub chosen: Chosen,
    /// Its story, or why there is none.
    pub story: Result<Story, String>,
}

/// Lives through the run again and tells the stories of these samples, in their order.
pub fn explain(
    place: &Place,
    run: &Run,
    machine: &Machine,
    chosen: &[Chosen],
    cancel: &AtomicBool,
    say: Say,
) -> Result<Vec<Explained>, ScopeError> {
    let symbols = place.symbols(machine, cancel)?;
    let programs = programs(machine)?;
    let windows: Vec<_> = chosen.iter().flat_map(watched).collect();
    let mut trace = place.watch(run, machine, &windows, &symbols, cancel, say)?;
    let mut library = Blocks::new(Names::new(&symbols, &programs));
    let mut stories = HashMap::new();
    while let Some((window, _, words)) = trace.next_window(|block| library.learn(block))? {
        let walk = Walker::new(&library).window(&words);
        for (number, chosen) in chosen
            .iter()
            .enumerate()
            .filter(|(_, c)| c.window == window)
        {
            let story = tell(&walk, library.names.all(), about(run, chosen));
            stories.insert(number, story.map_err(|untold| untold.to_string()));
        }
    }
    let missing = chosen.len() - stories.len();
    if missing > 0 {
        return Err(ScopeError::Unmarked(missing));
    }
    let explained = chosen.iter().enumerate().map(|(number, chosen)| Explained {
        chosen: *chosen,
        story: stories
            .remove(&number)
            .unwrap_or_else(|| Err(String::new())),
    });
    Ok(explained.collect())
}

/// The windows to be watched for a sample. The reading of the clock that ends a gap may begin
/// another one.
fn watched(chosen: &Chosen) -> impl Iterator<Item = Window> + use<> {
    let window = chosen.window;
    let is_gap = chosen.measure == Measure::Gap;
    let before = window.index.checked_sub(1).filter(|_| is_gap);
    let before = before.map(|index| Window { index, ..window });
    before.into_iter().chain([window])
}

/// Surveys a whole run; also returns the digest of what came out.
pub fn survey(
    place: &Place,
    run: &Run,
    machine: &Machine,
    cancel: &AtomicBool,
    say: Say,
) -> Result<(Survey, String), ScopeError> {
    let symbols = place.symbols(machine, cancel)?;
    let programs = programs(machine)?;
    let names = Names::new(&symbols, &programs);
    let mut surveyor = Surveyor::new(names, Preemption::of(run));
    let take = &mut |item: &Item| surveyor.take(item);
    let digest = place.watch_everything(run, machine, take, cancel, say)?;
    Ok((surveyor.finish(scale(run)), digest))
}

fn programs(machine: &Machine) -> Result<UserSymbols, ScopeError> {
    UserSymbols::of_initramfs(&machine.initramfs).map_err(|error| ScopeError::Io {
        path: machine.initramfs.clone(),
        error,
    })
}

fn scale(run: &Run) -> GuestClock {
    GuestClock::of_console(&run.console, run.ns_per_insn().unwrap_or(1))
}

fn about(run: &Run, chosen: &Chosen) -> Circumstances {
    Circumstances {
        scale: scale(run),
        measure: chosen.measure,
        late: chosen.sample.value,
        ends_before: chosen.ends_before,
        preemption: Preemption::of(run),
    }
}
