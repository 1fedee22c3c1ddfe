// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every arrival, and what was reached by aim: one result, of which text, page and JSON are made.

use punctual_model::{Nanos, Run};
use punctual_scope::arrivals::aim::{Reached, is_hit};
use punctual_scope::arrivals::{Arrivals, Place};
use serde::Serialize;

use super::text::sentence;
use crate::block::Block;
use crate::shell;
use crate::text::{exact, thousands};

/// The form's name and version; `docs/schema/arrivals-1.json` describes it.
const SCHEMA: &str = "punctual.arrivals/1";
/// So many places are shown as text where more are known.
const SHOWN: usize = 10;
/// What a function is entered less often than this does not grow with.
const AGAIN: u32 = 10;

/// All that `punctual arrivals` found. All times are whole nanoseconds, virtual ones.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    schema: &'static str,
    run: String,
    subject: String,
    kernel: String,
    digest: Option<String>,
    digest_watched: String,
    steps: Vec<Step>,
}

/// One step: a load, and what arrivals beside it come to.
#[derive(Clone, Debug, Serialize)]
struct Step {
    #[serde(rename = "step")]
    number: u32,
    recording: String,
    load: String,
    time_ns: Nanos,
    periods: u64,
    periods_left_out: u64,
    samples_learnt: usize,
    sampled_ns: Option<Nanos>,
    worst_ns: Nanos,
    reached_ns: Option<Nanos>,
    is_forecast: bool,
    quantiles: Vec<Quantile>,
    later_than: Vec<Later>,
    places: Vec<Shown>,
}

/// In this share of the time an arrival is no later.
#[derive(Clone, Debug, Serialize)]
struct Quantile {
    share: f64,
    late_ns: Nanos,
}

/// How much of the time an arrival is later.
#[derive(Clone, Debug, Serialize)]
struct Later {
    late_ns: Nanos,
    share: f64,
    ns_per_second: f64,
}

/// A place; what was reached is null where no sample was aimed at it.
#[derive(Clone, Debug, Serialize)]
struct Shown {
    what: &'static str,
    function: String,
    most_in: String,
    most_ns: Nanos,
    count: u64,
    length_ns: Nanos,
    interrupts_ns: Nanos,
    path_from: &'static str,
    path_ns: Nanos,
    foretold_ns: Nanos,
    samples_before: u64,
    after_ns: Option<Nanos>,
    reached_ns: Option<Nanos>,
    difference_ns: Option<Nanos>,
    aimed_after_ns: Option<Nanos>,
    as_foretold: Option<bool>,
    cause: Option<String>,
    grows_with: Option<Grows>,
}

/// What is done again and again in it.
#[derive(Clone, Debug, Serialize)]
struct Grows {
    function: String,
    times: u32,
}

/// What was reached of a recording's places, by their numbers.
pub type Aimed = Vec<(usize, Reached)>;

/// The one result.
pub fn told(run: &Run, found: &[(Arrivals, Aimed)], watched: &str) -> Told {
    let steps = found.iter().map(|(all, aimed)| step(run, all, aimed));
    Told {
        schema: SCHEMA,
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
    Step {
        number: recording.key.step,
        recording: recording.title(),
        load: recording.key.load.clone(),
        time_ns: all.time,
        periods: all.periods,
        periods_left_out: all.strange,
        samples_learnt: all.learnt,
        sampled_ns: recording.max(),
        worst_ns: all.worst,
        reached_ns: aimed.iter().map(|(_, reached)| reached.late).max(),
        is_forecast: all.is_forecast,
        quantiles: quantiles.collect(),
        later_than: later.collect(),
        places: places.collect(),
    }
}

fn shown(place: &Place, reached: Option<&Reached>) -> Shown {
    let story = reached.and_then(|reached| reached.breakdown.as_ref().ok());
    let again = story.and_then(|story| {
        let ran = story.parts.iter().flat_map(|part| &part.within);
        ran.max_by_key(|ran| ran.times)
            .filter(|ran| ran.times >= AGAIN)
    });
    Shown {
        what: place.off.name(),
        function: place.function.clone(),
        most_in: place.most.0.clone(),
        most_ns: place.most.1,
        count: place.count,
        length_ns: place.length,
        interrupts_ns: place.falls_in,
        path_from: place.from.name(),
        path_ns: place.path,
        foretold_ns: place.foretold,
        samples_before: place.sample,
        after_ns: place.after,
        reached_ns: reached.map(|reached| reached.late),
        difference_ns: reached.map(|reached| reached.late - place.foretold),
        aimed_after_ns: reached.map(|reached| reached.after),
        as_foretold: reached.map(|reached| is_hit(place.foretold, reached.late)),
        cause: story.map(sentence),
        grows_with: again.map(|ran| Grows {
            function: ran.function.clone(),
            times: ran.times,
        }),
    }
}

impl Told {
    /// What it says, block by block, with so many places at most.
    pub fn blocks(&self, most: usize) -> Vec<Block> {
        let steps = self.steps.iter();
        steps.flat_map(|step| step.blocks(most)).collect()
    }

    /// The page about it.
    pub fn page(&self) -> String {
        let (lead, chapters) = crate::block::page(&self.blocks(usize::MAX));
        let title = format!("{}, {}: every arrival", self.run, self.subject);
        shell::page(&title, &lead, chapters)
    }

    /// The text about it, no line of a paragraph longer than `width`.
    pub fn text(&self, width: usize) -> String {
        crate::block::text(&self.blocks(SHOWN), width)
    }
}

impl Step {
    fn blocks(&self, most: usize) -> Vec<Block> {
        let head = |names: [&str; 3]| names.map(Into::into).to_vec();
        // Those that were aimed at are shown wherever they stand.
        let numbered = self.places.iter().enumerate();
        let places = numbered.filter(|(number, one)| *number < most || one.reached_ns.is_some());
        let places: Vec<&Shown> = places.map(|(_, place)| place).collect();
        let mut blocks = vec![
            Block::Head(self.recording.clone()),
            Block::Para(self.answer()),
            Block::Table {
                head: vec![
                    "late at most, ns".into(),
                    "in this share of the time".into(),
                ],
                rows: self.quantiles.iter().map(quantile).collect(),
                numbers: 2,
            },
            Block::Table {
                head: head(["foretold, ns", "reached, ns", "place"]),
                rows: places.iter().map(|place| place.row()).collect(),
                numbers: 2,
            },
        ];
        blocks.extend(places.iter().filter_map(|place| place.story()));
        blocks.extend(self.notes().into_iter().map(Block::Para));
        blocks
    }

    fn answer(&self) -> String {
        let (load, worst) = (&self.load, exact(self.worst_ns));
        let sampled = self.sampled_ns.map_or_else(String::new, |sampled| {
            let sampled = exact(sampled);
            format!(" The worst of the run's own samples is {sampled} ns late.")
        });
        let reached = self.reached_ns.map_or_else(String::new, |reached| {
            let reached = exact(reached);
            format!(" The latest aimed sample is {reached} ns late: that is proved.")
        });
        format!("Load {load}: the latest of all arrivals is {worst} ns late.{sampled}{reached}")
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!(
            "A timer could have been due at each of {} ns in {} periods. The path behind what was \
             off is that of {} samples of this run.",
            exact(self.time_ns),
            thousands(self.periods),
            thousands(self.samples_learnt as u64)
        )];
        if self.periods_left_out > 0 {
            notes.push(format!(
                "{} periods are left out: their instructions and their time do not agree.",
                thousands(self.periods_left_out)
            ));
        }
        if self.is_forecast {
            notes.push(
                "These are forecasts: on this kernel an arrival can change what follows, because \
                 interrupts end with soft interrupts and code looks for waiting threads. Aimed \
                 samples are proof."
                    .to_owned(),
            );
        }
        if self.reached_ns.is_none() {
            notes.push("Option --aim N proves the N worst places, each by a sample.".to_owned());
        }
        notes
    }
}

fn quantile(one: &Quantile) -> Vec<String> {
    // Without the digits that binary fractions add.
    let percent = (one.share * 1e9).round() / 1e7;
    vec![exact(one.late_ns), format!("{percent} %")]
}

impl Shown {
    fn row(&self) -> Vec<String> {
        let reached = self.reached_ns.map_or_else(|| "–".to_owned(), exact);
        let (what, function, most) = (self.what, &self.function, &self.most_in);
        let place = format!("{what} by {function}, most in {most}");
        vec![exact(self.foretold_ns), reached, place]
    }

    /// The story of the aimed sample.
    fn story(&self) -> Option<Block> {
        let cause = Block::Para(self.cause.clone()?);
        let grows = self.grows_with.as_ref().map(|grows| {
            let (times, function) = (thousands(grows.times.into()), &grows.function);
            Block::Para(format!("`{function}` ran {times} times."))
        });
        let title = format!("{} by {}", self.what, self.function);
        Some(Block::Fold(
            title,
            [Some(cause), grows].into_iter().flatten().collect(),
        ))
    }
}
