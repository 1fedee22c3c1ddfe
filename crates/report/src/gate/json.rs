// SPDX-License-Identifier: MIT OR Apache-2.0
//! A gate's verdict for programs.

use punctual_judge::Difference;
use punctual_model::Sample;
use serde::Serialize;
use serde_json::Value;

use super::{Gate, Gated, Judged, Row, Side};
use crate::compare::Compared;
use crate::names::Names;
use crate::scope::json::Told;
use crate::why::{Different, Why};

/// The form's name and version; `docs/schema/gate-1.json` describes it.
const SCHEMA: &str = "punctual.gate/1";
/// The words for each standing, the best first.
#[cfg(test)]
const STANDINGS: [&str; 5] = [
    "unchanged",
    "not worse",
    "changed, within tolerance",
    "undecided",
    "worse",
];

/// `punctual.gate/1`: times in nanoseconds. `docs/schema/gate-1.json` describes it.
///
/// # Panics
/// Never: all of it can be written as JSON.
pub fn gate_json(gate: &Gate) -> Value {
    let document = Document {
        schema: SCHEMA,
        suite: &gate.suite,
        baseline: &gate.baseline,
        verdict: gate.standing().name(),
        title: super::title(gate),
        tolerance: gate.tolerance,
        repeat: gate.again.as_deref(),
        decide: gate.to_decide(),
        subjects: gate.subjects.iter().map(|one| subject(gate, one)).collect(),
    };
    serde_json::to_value(document).expect("it has no map but of texts")
}

/// Subjects against their baseline. Times are whole nanoseconds. New fields may be added to version
/// 1; none is removed or changes its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// The suite's name.
    suite: &'a str,
    /// The baseline's name.
    baseline: &'a str,
    /// The verdict on all subjects: that on the worst of them.
    #[cfg_attr(test, schemars(extend("enum" = STANDINGS)))]
    verdict: &'static str,
    /// The result in one line.
    title: String,
    /// The smallest change that matters, as a share of a median.
    tolerance: f64,
    /// The command that does the same again; null if it is not known.
    repeat: Option<&'a str>,
    /// The command that decides what further seeds can decide; null if they decide nothing.
    decide: Option<&'a str>,
    /// The subjects.
    #[cfg_attr(test, schemars(length(min = 1)))]
    subjects: Vec<Subject<'a>>,
}

/// One subject against its baseline.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Subject<'a> {
    /// The subject's name.
    #[serde(rename = "subject")]
    name: &'a str,
    /// The verdict on it.
    #[cfg_attr(test, schemars(extend("enum" = STANDINGS)))]
    verdict: &'static str,
    /// The finding in one sentence.
    sentence: String,
    /// The baseline's side.
    before: About<'a>,
    /// The side that is judged.
    after: About<'a>,
    /// The pairs of runs with one seed.
    runs: Vec<Pair<'a>>,
    /// Seeds that were not measured: the machine is the same, and so the result would be the same.
    implied_seeds: &'a [u64],
    /// The chance of finding a difference where there is none, over all figures together.
    level: f64,
    /// The smallest ratio worth finding.
    effect: f64,
    /// The measurements; if all is unchanged, only those that were not measured.
    measurements: Vec<Measurement<'a>>,
    /// Notes without which it may be misread.
    notes: &'a [String],
    /// The sample that stands for what got worse, or may have, explained here and in the baseline.
    why: Option<Reason<'a>>,
}

/// One side of a comparison.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct About<'a> {
    /// The subject's name.
    subject: &'a str,
    /// The kernel's release; empty if it is not known.
    release: &'a str,
    /// The boot arguments that were asked for.
    boot: &'a str,
    /// The machine.
    machine: &'a str,
    /// The runs, in the order of their seeds.
    runs: &'a [String],
    /// Each run's digest, cut to twelve digits; `none` for a run without one.
    digests: &'a [String],
}

/// Two runs with one seed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Pair<'a> {
    /// The seed.
    seed: u64,
    /// The baseline's run.
    baseline: &'a str,
    /// The run that is judged.
    run: &'a str,
    /// True if their digests are equal.
    digest_equal: bool,
}

/// One measurement.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Measurement<'a> {
    #[serde(flatten)]
    names: Names<'a>,
    /// The verdict on it.
    #[cfg_attr(test, schemars(extend("enum" = STANDINGS)))]
    verdict: &'static str,
    /// The comparison by the leading figure, run by run; null if no figure leads.
    compared: Option<Compared>,
    /// The figures that have samples. All figures of all measurements are judged by the same
    /// permutation.
    figures: Vec<Figure<'a>>,
    /// The reason why it cannot be told, if no figure gives one.
    gap: Option<&'a str>,
    /// The command that decides it, if it is undecided and further seeds may decide it.
    decide: Option<&'a str>,
    /// The differences, seed by seed.
    differences: Vec<Differs>,
}

/// One figure of a measurement.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Figure<'a> {
    /// The name: `median`, `p99`, `worst`; for other kinds of samples `p1` to `p99`, `farthest`,
    /// `longest`. If the arrivals of all runs are known, also `p99.99`, `arrival p99`, `arrival`
    /// (the latest), `reached` (the latest aimed sample), and the names of functions.
    name: &'a str,
    /// The kind of data that it is about; for a function, the longest time that it runs within one
    /// stretch that keeps threads waiting, or within one such section of the whole step.
    #[cfg_attr(test, schemars(extend("enum" = ["samples", "arrivals", "function", "section"])))]
    of: &'static str,
    /// The quantile: of a run's samples, the one that is not shorter than this share of all.
    share: f64,
    /// The verdict on it.
    #[cfg_attr(test, schemars(extend("enum" = STANDINGS)))]
    verdict: &'static str,
    /// True if it counts for the measurement's verdict. A figure that does not count tells what got
    /// worse, and nothing else.
    counts: bool,
    /// The function that keeps the latest arrival waiting, if arrivals got worse.
    function: Option<&'a str>,
    /// The latest that the samples' tail may be by the baseline's arrivals, or, where these are not
    /// known, by an interruption that met another sample of an idle step; null unless the tail is
    /// higher here and not later than that. The draw may be all that differs, so it is undecided.
    within_ns: Option<i64>,
    /// The value of the baseline's middle run.
    before_ns: i64,
    /// The value of the middle run here.
    after_ns: i64,
    /// The number of shared seeds with which it is higher here; 0 in real time.
    higher_seeds: usize,
    /// The number of seeds that both sides have; 0 in real time, where no run is the same as
    /// another.
    seeds: usize,
    /// The comparison, run by run.
    compared: Compared,
}

/// The differences between two runs with one seed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Differs {
    /// The seed.
    seed: u64,
    /// The number of samples that both kept.
    compared: u64,
    /// The number of these that differ.
    differing: u64,
    /// The first sample that differs; null if no kept sample does.
    first: Option<First>,
    /// The median of all samples' differences: positive if they are longer here.
    middle_longer_ns: i64,
    /// The difference of the sample that differs most.
    most_longer_ns: i64,
    /// The number of samples in the baseline, with those that were not kept.
    baseline_count: u64,
    /// The number of samples here, with those that were not kept.
    count: u64,
}

/// The first sample that differs.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct First {
    /// The number within its recording.
    seq: u64,
    /// The baseline's sample.
    baseline: At,
    /// The sample here.
    here: At,
}

/// A sample.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct At {
    /// The time at which it was taken.
    at_ns: i64,
    /// The value.
    value_ns: i64,
}

/// The sample that stands for a verdict, explained here and in the baseline.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Reason<'a> {
    /// The probe.
    probe: &'a str,
    /// The load.
    load: &'a str,
    /// The variant.
    variant: &'a str,
    /// The run here.
    run: &'a str,
    /// The story of its sample.
    here: Told<'a>,
    /// The baseline's run.
    baseline_run: &'a str,
    /// The story of its sample.
    baseline: Told<'a>,
    #[serde(flatten)]
    different: Different<'a>,
}

fn subject<'a>(gate: &'a Gate, one: &'a Gated) -> Subject<'a> {
    let pair = |pair: &'a super::Pair| Pair {
        seed: pair.seed,
        baseline: &pair.there,
        run: &pair.here,
        digest_equal: pair.is_equal,
    };
    let [before, after] = &one.sides;
    Subject {
        name: &one.subject,
        verdict: one.standing.name(),
        sentence: one.sentence(),
        before: about(before),
        after: about(after),
        runs: one.pairs.iter().map(pair).collect(),
        implied_seeds: &one.implied,
        level: one.rule.level,
        effect: one.rule.effect,
        measurements: one.rows.iter().map(|row| measurement(gate, row)).collect(),
        notes: &one.notes,
        why: one.why.as_ref().map(|why| reason(one, why)),
    }
}

fn about(side: &Side) -> About<'_> {
    About {
        subject: &side.subject,
        release: &side.release,
        boot: &side.boot,
        machine: &side.machine,
        runs: &side.runs,
        digests: &side.digests,
    }
}

fn measurement<'a>(gate: &'a Gate, row: &'a Row) -> Measurement<'a> {
    let leading = row.figures.iter().find(|figure| figure.leads);
    Measurement {
        names: Names::from(&row.row),
        verdict: row.standing.name(),
        compared: leading.map(|figure| Compared::from(&figure.compared)),
        figures: row.figures.iter().map(figure).collect(),
        gap: row.gap.as_deref(),
        decide: gate.decides(row),
        differences: row.differences.iter().map(difference).collect(),
    }
}

fn figure(figure: &Judged) -> Figure<'_> {
    Figure {
        name: &figure.name,
        of: figure.of.name(),
        share: figure.share,
        verdict: figure.standing.name(),
        counts: figure.counts(),
        function: figure.blame.as_deref(),
        within_ns: figure.within.map(|may| may.latest().0),
        before_ns: figure.there.0,
        after_ns: figure.here.0,
        higher_seeds: figure.higher,
        seeds: figure.seeds,
        compared: Compared::from(&figure.compared),
    }
}

fn difference((seed, found): &(u64, Difference)) -> Differs {
    let at = |one: &Sample| At {
        at_ns: one.at.0,
        value_ns: one.value.0,
    };
    let first = found.first.as_ref().map(|(there, here)| First {
        seq: here.seq,
        baseline: at(there),
        here: at(here),
    });
    Differs {
        seed: *seed,
        compared: found.compared,
        differing: found.differing,
        first,
        middle_longer_ns: found.middle.0,
        most_longer_ns: found.most.0,
        baseline_count: found.counts.0,
        count: found.counts.1,
    }
}

fn reason<'a>(gated: &'a Gated, why: &'a Why) -> Reason<'a> {
    let row = &gated.rows[why.row].row;
    let ((here, own), (there, other)) = (&why.here, &why.there);
    Reason {
        probe: &row.probe,
        load: &row.load,
        variant: &row.variant,
        run: &here.id,
        here: own.into(),
        baseline_run: &there.id,
        baseline: other.into(),
        different: why.different(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_what_the_type_says() {
        crate::schema::assert_is_of::<Document<'_>>(
            "gate-1.json",
            "Subjects against their baseline: what `punctual gate --json` prints",
        );
    }
}
