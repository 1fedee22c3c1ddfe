// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stories and surveys as JSON.

use punctual_model::{Nanos, Run};
use serde::Serialize;
use serde_json::{Value, json};

use super::compare::{differences, own_times};
use super::page::Other;
use super::text;
use punctual_scope::breakdown::{self, Breakdown, Cause};
use punctual_scope::explain::Explained;
use punctual_scope::survey::{Hotspot, Survey};
use punctual_scope::tally::{Tally, tally};

/// The form's name and version; `docs/schema/explain-1.json` describes it.
const EXPLAIN: &str = "punctual.explain/1";
/// The schema of a survey; `docs/schema/survey-1.json` describes it.
const SURVEY: &str = "punctual.survey/1";

/// Why samples of a run were late, beside those of another run where there is one. Times are whole
/// nanoseconds of virtual time. New fields may be added to version 1; none is removed or changes
/// its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Stories<'a> {
    #[cfg_attr(test, schemars(extend("const" = EXPLAIN)))]
    schema: &'static str,
    /// The run.
    run: &'a str,
    /// Its subject.
    subject: &'a str,
    /// Its kernel.
    kernel: &'a str,
    /// The run's digest.
    digest: Option<String>,
    /// The samples, each with its story.
    samples: Vec<Sample<'a>>,
    /// What was in the way of most samples, the most frequent first.
    in_the_way: Vec<InTheWay>,
    /// Of the run that is compared with: for each pair of samples how long each function ran
    /// itself in either of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    differences: Option<Vec<Vec<Difference>>>,
    /// The other run of `--compare`.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared_with: Option<Box<Stories<'a>>>,
}

/// One sample.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Sample<'a> {
    /// Its probe.
    probe: &'a str,
    /// Its load.
    load: &'a str,
    /// Its variant.
    variant: &'a str,
    /// Its repetition, from 1.
    repetition: u32,
    /// Its step, from 0.
    step: u32,
    /// The CPU, or the CPUs, that its thread was bound to, as the run's settings have them.
    cpu: Option<Value>,
    /// Its number within its recording.
    seq: u64,
    /// When it was taken.
    at_ns: Nanos,
    /// How late it was.
    late_ns: Nanos,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    story: Option<Story<'a>>,
    /// The reason if there is no story.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_explained: Option<&'a str>,
}

/// What was in the way of samples.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct InTheWay {
    /// The kind of cause; null where nothing was in the way for long.
    cause: Option<&'static str>,
    /// The function that filled most of it.
    function: Option<String>,
    /// Of how many samples.
    times: usize,
    /// The longest of these delays.
    longest_ns: Option<Nanos>,
}

/// How long a function ran itself in each of two samples.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Difference {
    /// The function.
    function: String,
    /// In the sample of the first run.
    here_ns: Nanos,
    /// In the sample of the other one.
    there_ns: Nanos,
}

/// The story of one sample, or the reason why there is none.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum Told<'a> {
    /// The story, as `punctual explain --json` prints it.
    Story(Story<'a>),
    /// No story.
    NotExplained {
        /// The reason.
        not_explained: &'a str,
    },
}

/// Why a sample was late: parts that add up to its latency.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Story<'a> {
    /// In one sentence.
    sentence: String,
    /// The number of the part that delayed it most, from 0; null where none stands out.
    culprit: Option<usize>,
    /// For how long something kept it waiting.
    held_ns: Nanos,
    /// From the moment it was due to the moment it was taken.
    parts: Vec<Part<'a>>,
    /// What must be known to read it rightly.
    notes: &'a [String],
    /// With several CPUs: the time of its own CPU's turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    own_ns: Option<Nanos>,
    /// With several CPUs: the time of the others' turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    others_ns: Option<Nanos>,
    /// With several CPUs: interrupts that one CPU sent to another.
    #[serde(skip_serializing_if = "Option::is_none")]
    ipis: Option<Vec<Ipi<'a>>>,
    /// With several CPUs: where one waited for another in a loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    spins: Option<Vec<Spin<'a>>>,
}

/// A part of a sample's latency.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Part<'a> {
    /// How far the sample had come.
    stage: &'static str,
    /// What kept it.
    cause: &'static str,
    /// Where it begins, from the moment the sample was due.
    from_ns: Nanos,
    /// How long it is.
    length_ns: Nanos,
    /// What switched off what was off, or the interrupt that was handled.
    by: Option<&'a str>,
    /// The thread that the CPU worked for.
    thread: &'a str,
    /// The function that filled most of it.
    main: Option<Ran<'a>>,
    /// The functions within it.
    within: Vec<Ran<'a>>,
    /// With several CPUs: where.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<u32>,
}

/// A function that ran in a part.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Ran<'a> {
    /// The function.
    function: &'a str,
    /// Its caller.
    caller: Option<&'a str>,
    /// How long it ran within the part, with all that it called.
    time_ns: Nanos,
    /// How long it ran in all; it may have begun before the sample was due. As `time_ns` where its
    /// start or its end was not watched.
    whole_ns: Nanos,
    /// How often it was entered.
    times: u32,
}

/// An interrupt from one CPU to another.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Ipi<'a> {
    /// The CPU that sent it.
    from_cpu: u32,
    /// The function that sent it.
    sender: &'a str,
    /// Its callers, the innermost first.
    callers: &'a [String],
    /// The thread that the sending CPU worked for.
    thread: &'a str,
    /// The CPU that took it.
    to_cpu: u32,
    /// Where it was taken.
    entry: &'a str,
    /// When it was sent, from the moment the sample was due.
    sent_ns: Nanos,
    /// When it was taken.
    taken_ns: Nanos,
}

/// A CPU that waited for another one in a loop.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Spin<'a> {
    /// The CPU.
    cpu: u32,
    /// The function that spun.
    function: &'a str,
    /// Its caller, but for functions that only take locks.
    caller: Option<&'a str>,
    /// When it began, from the moment the sample was due.
    from_ns: Nanos,
    /// How long it took, with the turns of the others.
    length_ns: Nanos,
    /// Who ended it, if known.
    holder: Option<Holder<'a>>,
}

/// The CPU that another one waited for.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Holder<'a> {
    /// The CPU.
    cpu: u32,
    /// The function that held the lock, or ran when the wait was over.
    function: &'a str,
    /// Its caller.
    caller: Option<&'a str>,
    /// Whether it released the very lock.
    certain: bool,
}

/// The longest sections of a run in which something was off. Times are whole nanoseconds of
/// virtual time. New fields may be added to version 1; none is removed or changes its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Surveyed<'a> {
    #[cfg_attr(test, schemars(extend("const" = SURVEY)))]
    schema: &'static str,
    /// The run.
    run: &'a str,
    /// Its subject.
    subject: &'a str,
    /// Its kernel.
    kernel: &'a str,
    /// The run's digest.
    digest: Option<String>,
    /// The digest of the run as it was watched: the same.
    digest_watched: &'a str,
    /// How many CPUs the guest had.
    cpus: u32,
    /// CPUs that were never in user space: nothing is known of what was off there.
    cpus_unknown: &'a [u32],
    /// How many instructions ran on all CPUs.
    instructions: u64,
    /// How often something that was off had been missed; sections open then do not count.
    mended: u64,
    /// The places, the longest first.
    places: Vec<Place<'a>>,
}

/// All sections of one kind that one function began.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Place<'a> {
    /// What was off.
    what: &'static str,
    /// The CPU.
    cpu: u32,
    /// The function that began them.
    function: &'a str,
    /// How many there were.
    count: u64,
    /// The longest of them.
    longest_ns: Nanos,
    /// The sum of all.
    sum_ns: Nanos,
    /// The step of the longest, from 0.
    step: u32,
    /// The function in which the longest ended.
    ended_in: &'a str,
    /// The function that most of the longest was spent in.
    most_in: &'a str,
    /// How long that one ran itself.
    most_ns: Nanos,
    /// Of a loop that waited: the CPU that had the turn before the longest was over.
    for_cpu: Option<u32>,
    /// What that CPU executed.
    for_function: Option<&'a str>,
}

/// The stories of a run's samples, beside another run's where there is one.
pub fn explained(run: &Run, explained: &[Explained], other: Option<Other<'_>>) -> Value {
    let mut told = stories(run, explained);
    if let Some(other) = other {
        let pairs = explained.iter().zip(other.explained);
        let differences = pairs.filter_map(|(one, against)| {
            let (one, against) = (one.breakdown.as_ref(), against.breakdown.as_ref());
            Some(difference(one.ok()?, against.ok()?))
        });
        let mut against = stories(other.run, other.explained);
        against.differences = Some(differences.collect());
        told.compared_with = Some(Box::new(against));
    }
    json!(told)
}

fn difference(one: &Breakdown, other: &Breakdown) -> Vec<Difference> {
    let each = differences(&own_times(one), &own_times(other)).into_iter();
    let each = each.map(|(function, here_ns, there_ns)| Difference {
        function: function.to_owned(),
        here_ns,
        there_ns,
    });
    each.collect()
}

impl<'a> From<&'a super::Story> for Told<'a> {
    fn from(one: &'a super::Story) -> Self {
        match one.as_ref().map(|one| one.breakdown.as_ref()) {
            Ok(Ok(told)) => Self::Story(story(told)),
            Ok(Err(why)) | Err(why) => Self::NotExplained { not_explained: why },
        }
    }
}

fn stories<'a>(run: &'a Run, explained: &'a [Explained]) -> Stories<'a> {
    let sample = |explained: &'a Explained| {
        let chosen = &explained.chosen;
        let recording = &run.recordings[chosen.recording];
        let cpu = recording.settings.get("affinity");
        Sample {
            probe: &recording.key.probe,
            load: &recording.key.load,
            variant: &recording.key.variant,
            repetition: recording.key.repetition,
            step: recording.key.step,
            cpu: cpu.map(|cpu| json!(cpu)),
            seq: chosen.sample.seq,
            at_ns: chosen.sample.at,
            late_ns: chosen.sample.value,
            story: explained.breakdown.as_ref().ok().map(story),
            not_explained: explained.breakdown.as_ref().err().map(String::as_str),
        }
    };
    let in_the_way = tally(explained);
    Stories {
        schema: EXPLAIN,
        run: &run.id,
        subject: &run.subject.name,
        kernel: &run.subject.kernel,
        digest: run.digest(),
        samples: explained.iter().map(sample).collect(),
        in_the_way: in_the_way.into_iter().map(InTheWay::of).collect(),
        differences: None,
        compared_with: None,
    }
}

impl InTheWay {
    fn of(tally: Tally) -> Self {
        Self {
            cause: tally.cause.map(Cause::name),
            function: tally.function,
            times: tally.times,
            longest_ns: tally.longest,
        }
    }
}

pub(crate) fn story(story: &Breakdown) -> Story<'_> {
    let others = story.others();
    let is_shared = others.is_some();
    Story {
        sentence: text::sentence(story),
        culprit: story.culprit,
        held_ns: story.held(),
        parts: story.parts.iter().map(Part::of).collect(),
        notes: &story.notes,
        own_ns: others.map(|others| story.late - others),
        others_ns: others,
        ipis: is_shared.then(|| story.ipis.iter().map(Ipi::of).collect()),
        spins: is_shared.then(|| story.spins.iter().map(Spin::of).collect()),
    }
}

impl<'a> Part<'a> {
    fn of(part: &'a breakdown::Part) -> Self {
        Self {
            stage: part.stage.name(),
            cause: part.cause.name(),
            from_ns: part.from,
            length_ns: part.length,
            by: part.by.as_deref(),
            thread: &part.thread,
            main: part.main.as_ref().map(Ran::of),
            within: part.within.iter().map(Ran::of).collect(),
            cpu: part.cpu,
        }
    }
}

impl<'a> Ran<'a> {
    fn of(ran: &'a breakdown::FunctionTime) -> Self {
        Self {
            function: &ran.function,
            caller: ran.caller.as_deref(),
            time_ns: ran.time,
            whole_ns: ran.whole,
            times: ran.times,
        }
    }
}

impl<'a> Ipi<'a> {
    fn of(ipi: &'a breakdown::Ipi) -> Self {
        Self {
            from_cpu: ipi.from,
            sender: &ipi.sender,
            callers: &ipi.callers,
            thread: &ipi.thread,
            to_cpu: ipi.to,
            entry: &ipi.entry,
            sent_ns: ipi.sent,
            taken_ns: ipi.taken,
        }
    }
}

impl<'a> Spin<'a> {
    fn of(spin: &'a breakdown::Spin) -> Self {
        let holder = spin.holder.as_ref().map(|holder| Holder {
            cpu: holder.cpu,
            function: &holder.function,
            caller: holder.caller.as_deref(),
            certain: holder.certain,
        });
        Self {
            cpu: spin.cpu,
            function: &spin.function,
            caller: spin.caller.as_deref(),
            from_ns: spin.from,
            length_ns: spin.length,
            holder,
        }
    }
}

/// The findings of a survey.
pub fn survey(run: &Run, survey: &Survey, digest: &str) -> Value {
    json!(Surveyed {
        schema: SURVEY,
        run: &run.id,
        subject: &run.subject.name,
        kernel: &run.subject.kernel,
        digest: run.digest(),
        digest_watched: digest,
        cpus: survey.cpus,
        cpus_unknown: &survey.unknown,
        instructions: survey.instructions,
        mended: survey.mended,
        places: survey.hotspots.iter().map(Place::of).collect(),
    })
}

impl<'a> Place<'a> {
    fn of(place: &'a Hotspot) -> Self {
        let awaited = place.awaited.as_ref();
        Self {
            what: place.what.name(),
            cpu: place.cpu,
            function: &place.function,
            count: place.count,
            longest_ns: place.longest,
            sum_ns: place.sum,
            step: place.step,
            ended_in: &place.ended,
            most_in: &place.most.0,
            most_ns: place.most.1,
            for_cpu: awaited.map(|(cpu, _)| *cpu),
            for_function: awaited.map(|(_, function)| function.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::assert_is_of;

    #[test]
    fn the_schemas_are_what_the_types_say() {
        assert_is_of::<Stories<'_>>(
            "explain-1.json",
            "Why samples of a run were late: what `punctual explain --json` prints",
        );
        assert_is_of::<Surveyed<'_>>(
            "survey-1.json",
            "The longest sections of a run: what `punctual survey --json` prints",
        );
    }
}
