// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every arrival, and samples reached by aim: one result, the source of text, page and JSON.

mod shown;

use std::collections::BTreeMap;

use punctual_model::{Nanos, Run, arrivals};
use punctual_scope::arrivals::aim::{NEAR, Reached, Second, is_hit};
use punctual_scope::arrivals::{self as scope, Arrivals, Place};
use serde::{Deserialize, Serialize};

use super::text::sentence;

/// The form's name and version; `docs/schema/arrivals-1.json` describes it.
const SCHEMA: &str = "punctual.arrivals/1";
/// The version of the teller; only results of the same version are read again.
/// The `+` precedes the version of the analysis, which changes with each change of its results.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+7");
/// A wait does not count as growing with a function that is entered less often than this.
const AGAIN: u32 = 10;

/// Times are whole nanoseconds of virtual time. New fields may be added to version 1; none is
/// removed or changes its meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Told {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: String,
    /// The version of Punctual that told it.
    punctual: String,
    /// The run.
    run: String,
    /// Its subject.
    subject: String,
    /// Its kernel.
    kernel: String,
    /// The run's digest.
    digest: Option<String>,
    /// The digest of the run as it was watched: the same.
    digest_watched: String,
    /// Steps of the probe timer, of the probe irq at its hard handler, and threads of programs.
    steps: Vec<Step>,
}

/// One step: a load, and what arrivals beside it come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Step {
    /// The step's number, from 0.
    #[serde(rename = "step")]
    number: u32,
    /// Probe, load and variant.
    recording: String,
    /// The load.
    load: String,
    /// What is late.
    waits: Waits,
    /// The time of which each moment was looked at.
    time_ns: Nanos,
    /// In how many periods.
    periods: u64,
    /// Periods of which nothing counts.
    periods_left_out: u64,
    /// The time behind which no sample shows the path: arrivals there are later than is told.
    unlearnt_ns: Nanos,
    /// Samples of which the path was learnt.
    samples_learnt: usize,
    /// The worst of the run's own samples.
    sampled_ns: Option<Nanos>,
    /// The worst of every arrival.
    worst_ns: Nanos,
    /// The latest aimed sample; null where none was aimed.
    reached_ns: Option<Nanos>,
    /// At how many places at most a sample was to be aimed.
    aims: usize,
    /// The latest sample that `punctual bound --aim` aimed together with a second timer; null where
    /// there is none.
    #[serde(default)]
    with_second: Option<WithSecond>,
    /// Whether an arrival may change what follows.
    is_forecast: bool,
    /// Quantiles over all moments.
    quantiles: Vec<Quantile>,
    /// The tail.
    later_than: Vec<Later>,
    /// The worst first.
    places: Vec<Shown>,
    /// The functions that run for half a microsecond and more within one section of the whole step,
    /// also while the load begins or ends, where no sample is taken; null where nobody looked.
    #[serde(default)]
    functions: Option<Vec<Function>>,
    /// Of a program's thread: why no sample can be aimed; null where one can.
    not_aimed: Option<String>,
}

/// What is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum Waits {
    /// A thread of the highest priority, whose timer is due.
    Thread,
    /// The hard handler of a device's interrupt, for which only interrupts off count, and at which
    /// no sample is aimed.
    Handler,
    /// A program's thread, whose timer is due, and which also waits for threads of its priority or
    /// a higher one.
    Program,
}

/// In this share of the time an arrival is no later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Quantile {
    /// The share, from 0 to 1.
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    share: f64,
    /// How late at most.
    late_ns: Nanos,
}

/// How much of the time an arrival is later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Later {
    /// How late.
    late_ns: Nanos,
    /// In this share of the time an arrival is later, from 0 to 1.
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    share: f64,
    /// So many nanoseconds of each second an arrival is later.
    ns_per_second: f64,
}

/// A function, and how long it ran within one section that keeps threads waiting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Function {
    /// The function.
    function: String,
    /// Its own time at most.
    longest_ns: Nanos,
}

/// A place; what was reached is null where no sample was aimed at it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Shown {
    /// What is off for most of it.
    #[cfg_attr(
        test,
        schemars(extend("enum" = [
            "interrupts off",
            "soft interrupts off or served",
            "preemption off",
            "no preemption point",
            "a thread of its priority or a higher one",
        ]))
    )]
    what: String,
    /// Who switched it off.
    function: String,
    /// Who ran most of the longest.
    most_in: String,
    /// How long.
    most_ns: Nanos,
    /// How many such stretches there were.
    count: u64,
    /// The longest.
    length_ns: Nanos,
    /// The timer's interrupts that come into the path.
    interrupts_ns: Nanos,
    /// The state in which the path begins.
    path_from: String,
    /// The typical path from there.
    path_ns: Nanos,
    /// How late an arrival at its begin is.
    foretold_ns: Nanos,
    /// How many samples had been taken before it in its step.
    samples_before: u64,
    /// When it begins, since the clock was read for the last of them; null where the CPU slept before
    /// and after.
    after_ns: Option<Nanos>,
    /// How late the latest sample was that was aimed at it; null where none was.
    reached_ns: Option<Nanos>,
    /// How long interrupts took in the aimed sample behind what was off, its own among them.
    #[serde(default)]
    reached_interrupts_ns: Option<Nanos>,
    /// Reached less foretold.
    difference_ns: Option<Nanos>,
    /// The moment that was aimed at, counted as `after_ns`.
    aimed_after_ns: Option<Nanos>,
    /// Whether they differ by no more than 100 ns, or 2 %.
    as_foretold: Option<bool>,
    /// Which functions ran longer than foretold, or less long, where it is not as foretold to
    /// 100 ns.
    differs: Vec<Differs>,
    /// What stood in the sample's way.
    cause: Option<String>,
    /// What was done again and again.
    grows_with: Option<Grows>,
    /// For whom the CPU worked meanwhile.
    thread: Option<String>,
}

/// A sample that was aimed together with a second timer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WithSecond {
    /// How late it was.
    reached_ns: Nanos,
    /// How long behind the sample's own deadline the second timer was due.
    behind_ns: Nanos,
    /// For how long something was off from where it was due.
    off_ns: Nanos,
    /// How long interrupts took behind that, its own among them; null where its story is not told.
    interrupts_ns: Option<Nanos>,
    /// Its story in one sentence.
    cause: Option<String>,
}

/// By how much longer a function ran than foretold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Differs {
    /// The function; what the scheduler calls for the thread that it switches away from counts with all
    /// that it calls.
    function: String,
    /// How much longer it ran than foretold; below zero, less long.
    by_ns: Nanos,
}

/// What is done again and again in it, so that it grows with how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Grows {
    /// What was entered most often.
    function: String,
    /// How often.
    times: u32,
    /// How long each time took: each more adds as much.
    each_ns: Nanos,
}

/// The samples reached at a recording's places, by the places' numbers.
pub type Aimed = Vec<(usize, Reached)>;

/// Merges a run's kept results, as JSON.
/// Of each step, the result with the most aims counts, and the newest of these. Text that is no
/// such result, is of another digest or is from another version of Punctual does not count. Returns
/// `None` if nothing counts.
pub fn kept<'a>(run: &Run, stories: impl IntoIterator<Item = &'a str>) -> Option<Told> {
    let digest = run.digest()?;
    let mut known: Option<Told> = None;
    for story in stories {
        let Ok(told) = serde_json::from_str::<Told>(story) else {
            continue;
        };
        let is_own = told.schema == SCHEMA && told.punctual == VERSION;
        if !is_own || told.digest.as_ref() != Some(&digest) || told.digest_watched != digest {
            continue;
        }
        match &mut known {
            Some(known) => known.add(told.steps),
            None => known = Some(told),
        }
    }
    let mut known = known?;
    known.run.clone_from(&run.id);
    known.subject.clone_from(&run.subject.name);
    Some(known)
}

/// Attaches the kept results about a run's arrivals to the run.
pub fn attach<'a>(run: &mut Run, stories: impl IntoIterator<Item = &'a str>) {
    if let Some(known) = kept(run, stories) {
        run.arrivals = known.arrivals();
    }
}

/// The one result; at most so many samples were to be aimed in each step.
pub fn told(run: &Run, found: &[(Arrivals, Aimed)], aims: usize, watched: &str) -> Told {
    let steps = found.iter().map(|(all, aimed)| Step {
        aims,
        ..step(run, all, aimed)
    });
    Told {
        schema: SCHEMA.to_owned(),
        punctual: VERSION.to_owned(),
        run: run.id.clone(),
        subject: run.subject.name.clone(),
        kernel: run.subject.kernel.clone(),
        digest: run.digest(),
        digest_watched: watched.to_owned(),
        steps: steps.collect(),
    }
}

fn step(run: &Run, all: &Arrivals, aimed: &Aimed) -> Step {
    let recording = &run.recordings[all.recording];
    let quantiles = all.quantiles.iter().map(|(share, late_ns)| Quantile {
        share: *share,
        late_ns: *late_ns,
    });
    let later = all.later.iter().map(|(late_ns, share)| Later {
        late_ns: *late_ns,
        share: *share,
        ns_per_second: share * 1e9,
    });
    let places = all.places.iter().enumerate().map(|(number, place)| {
        let reached = aimed.iter().find(|(of, _)| *of == number);
        shown(place, reached.map(|(_, reached)| reached))
    });
    let functions = all.functions.iter().map(|(name, ran)| Function {
        function: name.clone(),
        longest_ns: *ran,
    });
    Step {
        number: recording.key.step,
        recording: recording.title(),
        load: recording.key.load.clone(),
        waits: match all.waits {
            scope::Waits::Thread => Waits::Thread,
            scope::Waits::Handler => Waits::Handler,
            scope::Waits::Program => Waits::Program,
        },
        time_ns: all.time,
        periods: all.periods,
        periods_left_out: all.strange,
        unlearnt_ns: all.unlearnt,
        samples_learnt: all.learnt,
        sampled_ns: recording.max(),
        worst_ns: all.worst,
        reached_ns: aimed.iter().map(|(_, reached)| reached.late).max(),
        aims: 0,
        with_second: None,
        is_forecast: all.is_forecast,
        quantiles: quantiles.collect(),
        later_than: later.collect(),
        places: places.collect(),
        functions: Some(functions.collect()),
        not_aimed: not_aimed(all),
    }
}

/// Returns the reason why no wait of a program can be moved.
fn not_aimed(all: &Arrivals) -> Option<String> {
    let waits = all.places.iter().map(|place| place.wait);
    let mut known = waits.flatten().peekable();
    if all.waits != scope::Waits::Program || known.clone().any(|(wait, _)| wait.is_absolute) {
        return None;
    }
    let why = if known.peek().is_some() {
        "its waits are given as a span, not as a moment"
    } else {
        "it sets no timer in the system call in which it waits"
    };
    Some(format!(
        "{why}: what is moved is the moment that clock_nanosleep with TIMER_ABSTIME is given"
    ))
}

fn shown(place: &Place, reached: Option<&Reached>) -> Shown {
    let story = reached.and_then(|reached| reached.breakdown.as_ref().ok());
    let again = story.and_then(|story| {
        let ran = story.parts.iter().flat_map(|part| &part.within);
        ran.max_by_key(|ran| ran.times)
            .filter(|ran| ran.times >= AGAIN)
    });
    Shown {
        what: place.off.name().to_owned(),
        function: place.function.clone(),
        most_in: place.most.0.clone(),
        most_ns: place.most.1,
        count: place.count,
        length_ns: place.length,
        interrupts_ns: place.falls_in,
        path_from: place.from.name().to_owned(),
        path_ns: place.path,
        foretold_ns: place.foretold,
        samples_before: place.sample,
        after_ns: place.after,
        reached_ns: reached.map(|reached| reached.late),
        reached_interrupts_ns: reached.and_then(|reached| reached.interrupts(place.length)),
        difference_ns: reached.map(|reached| reached.late - place.foretold),
        aimed_after_ns: reached.map(|reached| reached.after),
        as_foretold: reached.map(|reached| is_hit(place.foretold, reached.late)),
        differs: differs(place, reached),
        cause: story.map(sentence),
        grows_with: again.map(|ran| Grows {
            function: ran.function.clone(),
            times: ran.times,
            each_ns: Nanos(ran.time.0 / i64::from(ran.times.max(1))),
        }),
        thread: story.and_then(|story| {
            let part = &story.parts[story.culprit?];
            Some(part.thread.clone())
        }),
    }
}

fn differs(place: &Place, reached: Option<&Reached>) -> Vec<Differs> {
    let is_missed = |reached: &&Reached| (reached.late - place.foretold).0.abs() > NEAR.0;
    let all = reached
        .filter(is_missed)
        .map(|reached| reached.differs(place));
    let differs = all.into_iter().flatten().map(|one| Differs {
        function: one.function,
        by_ns: one.by,
    });
    differs.collect()
}

impl Told {
    /// Returns the cause of the latest of all aimed samples, as a sentence.
    /// Returns `None` if none was seen, or its story is not told.
    pub fn latest_cause(&self) -> Option<&str> {
        let places = self.steps.iter().flat_map(|step| &step.places);
        let latest = places.max_by_key(|place| place.reached_ns)?;
        latest.cause.as_deref()
    }

    /// Takes the sample that a second timer reached in a step, unless a later one is known.
    pub fn add_second(&mut self, step: u32, second: &Second) {
        let story = second.reached.breakdown.as_ref().ok();
        let Some(step) = self.steps.iter_mut().find(|one| one.number == step) else {
            return;
        };
        let known = step.with_second.as_ref().map(|known| known.reached_ns);
        if known < Some(second.reached.late) {
            step.with_second = Some(WithSecond {
                reached_ns: second.reached.late,
                behind_ns: second.behind,
                off_ns: second.off,
                interrupts_ns: second.reached.interrupts(second.off),
                cause: story.map(sentence),
            });
        }
    }

    /// Takes steps that are not known yet, or by fewer aims.
    fn add(&mut self, steps: Vec<Step>) {
        for step in steps {
            let known = self.steps.iter_mut().find(|one| one.is_of(&step.of()));
            match known {
                Some(known) if known.aims > step.aims => {}
                Some(known) => {
                    let second = known.with_second.take();
                    *known = step;
                    known.with_second = known.with_second.take().or(second);
                }
                None => self.steps.push(step),
            }
        }
        self.steps.sort_by_key(Step::of);
    }

    /// Keeps only these recordings, each by its step and its title.
    /// Returns `None` if one of them is not known, or by fewer aims than so many.
    pub fn of(mut self, steps: &[(u32, String)], aims: usize) -> Option<Self> {
        self.steps
            .retain(|step| steps.iter().any(|one| step.is_of(one)) && step.has(aims));
        (self.steps.len() == steps.len()).then_some(self)
    }

    /// Returns the arrivals of each step, for judges.
    /// A program's step is left out: it has several recordings, and figures of a step belong to a
    /// single one.
    pub fn arrivals(&self) -> Vec<arrivals::Arrivals> {
        let steps = self.steps.iter();
        let steps = steps.filter(|step| step.waits != Waits::Program);
        steps.map(Step::arrivals).collect()
    }
}

impl Step {
    fn arrivals(&self) -> arrivals::Arrivals {
        let places = self.places.iter();
        let places = places.map(|place| (&*place.most_in, place.most_ns));
        let functions = self.functions.as_ref();
        let in_step = functions.map(|all| {
            let each = all.iter().map(|one| (&*one.function, one.longest_ns));
            longest(each)
        });
        let latest = self.places.iter().max_by_key(|place| place.foretold_ns);
        let reached = self.places.iter().max_by_key(|place| place.reached_ns);
        let name = |place: &Shown| own_name(&place.most_in);
        let reached = reached.filter(|place| place.reached_ns.is_some());
        let quantiles = self.quantiles.iter();
        arrivals::Arrivals {
            step: self.number,
            gap: self.gap(),
            time: self.time_ns,
            quantiles: quantiles.map(|one| (one.share, one.late_ns)).collect(),
            worst: self.worst_ns,
            function: latest.map(name),
            aims: self.aims,
            reached: self.reached_ns,
            reached_function: reached.map(name),
            reached_parts: reached
                .and_then(|place| Some((place.length_ns, place.reached_interrupts_ns?))),
            with_second: self
                .with_second
                .as_ref()
                .map(|second| arrivals::WithSecond {
                    late: second.reached_ns,
                    behind: second.behind_ns,
                    parts: second.interrupts_ns.map(|time| (second.off_ns, time)),
                }),
            is_forecast: self.is_forecast,
            functions: longest(places),
            in_step,
        }
    }

    /// Its step, and the title of its recording.
    fn of(&self) -> (u32, String) {
        (self.number, self.recording.clone())
    }

    fn is_of(&self, (step, recording): &(u32, String)) -> bool {
        (self.number, &self.recording) == (*step, recording)
    }

    /// Returns true if it is known by at least so many aims.
    fn has(&self, aims: usize) -> bool {
        self.waits == Waits::Handler || self.not_aimed.is_some() || self.aims >= aims
    }

    /// Returns true if a sample was to be aimed at some place, and was not seen.
    fn has_missed(&self) -> bool {
        let places = self.places.iter();
        let aimed_at = places
            .clone()
            .filter(|place| place.after_ns.is_some())
            .count();
        let reached = places.filter(|place| place.reached_ns.is_some()).count();
        reached < self.aims.min(aimed_at)
    }

    /// Returns the reason why not every arrival is known.
    fn gap(&self) -> Option<String> {
        if self.time_ns <= Nanos::ZERO {
            return Some("there was no moment to look at".to_owned());
        }
        if self.periods_left_out > 0 {
            let (left_out, all) = (self.periods_left_out, self.periods);
            return Some(format!(
                "{left_out} periods could not be looked at, {all} could"
            ));
        }
        let unlearnt = self.unlearnt_ns;
        (unlearnt > Nanos::ZERO).then(|| {
            format!("no sample shows the path after {unlearnt} of its time: more samples may")
        })
    }
}

/// The longest time of each function.
fn longest<'a>(each: impl Iterator<Item = (&'a str, Nanos)>) -> BTreeMap<String, Nanos> {
    let mut all = BTreeMap::<String, Nanos>::new();
    for (name, time) in each {
        let most = all.entry(own_name(name)).or_default();
        *most = time.max(*most);
    }
    all
}

/// A function's name without a compiler's additions: `do_exit.isra.0` is `do_exit`.
fn own_name(name: &str) -> String {
    let (name, module) = match name.split_once(' ') {
        Some((name, module)) => (name, format!(" {module}")),
        None => (name, String::new()),
    };
    let own = name.split('.').next().unwrap_or(name);
    format!("{own}{module}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_imported_run_cannot_be_repeated() {
        let mut run = crate::fixtures::run("rt", 1);
        let why = |run: &Run| {
            let can = scope::can_tell(run, &run.recordings[0]);
            can.err().unwrap_or_default()
        };
        assert!(!why(&run).contains("imported"));
        let facts = &mut run.provenance.as_mut().unwrap().facts;
        facts.insert(punctual_model::run::IMPORTED.to_owned(), "0".into());
        let told = "imported from a file of demo, so Punctual cannot repeat it";
        assert!(why(&run).contains(told), "{}", why(&run));
    }

    #[test]
    fn the_schema_is_what_the_type_says() {
        crate::schema::assert_is_of::<Told>(
            "arrivals-1.json",
            "Every arrival of a run: what `punctual arrivals --json` prints",
        );
    }
}
