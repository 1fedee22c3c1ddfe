// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benefits of options in virtual time: without and with each, run by run.

use punctual_doctor::{Check, Diagnosis, Trial};
use punctual_judge::{Comparison as Judged, Rule, Verdict};
use punctual_model::{Nanos, Run};
use serde::Serialize;

use crate::compare::{Cell, Comparable, Compared, Refusal, compare_by, verdict_told};
use crate::scope::{Story, told};
use crate::text::{Lines, clean, columns, exact, list};

/// An option that was tried.
#[derive(Debug)]
pub struct Tried {
    /// The check that asks for it.
    pub check: &'static Check,
    /// The subject with the option, which its name tells.
    pub subject: String,
    /// The subject without it.
    pub without: String,
    /// The measurement: `timer, stress, cpu0`.
    pub title: String,
    /// Each figure of all seeds, without it and with it.
    pub figures: Vec<(&'static str, Nanos, Nanos)>,
    /// Run by run, by the worst sample; `None` where nothing can be judged.
    pub judged: Option<Judged>,
    /// The confidence rule of the verdict.
    pub rule: Rule,
    /// The number of seeds.
    pub seeds: usize,
    /// The causes of the worst samples' lateness.
    pub why: Option<Why>,
}

/// The worst samples of both sides: the run's id, and the story.
#[derive(Debug)]
pub struct Why {
    /// Without the option.
    pub without: (String, Story),
    /// With it.
    pub with: (String, Story),
}

/// Judges the options of these checks.
/// `names` are the subjects': the first has none of them, the others one each.
///
/// # Errors
///
/// Fails if these runs did not measure the same, or did not finish.
pub fn tried(
    runs: &[Run],
    checks: &[&'static Check],
    names: &[String],
    rule: Rule,
) -> Result<Vec<Tried>, Refusal> {
    let mut runs = runs.to_vec();
    // The first is what the others are compared with.
    runs.sort_by_key(|run| names.iter().position(|own| *own == run.subject.name));
    let comparable = Comparable::new(runs)?;
    let comparison = compare_by(&comparable, rule);
    let place = |name: &String| comparison.subjects.iter().position(|own| own == name);
    let count = |name: &str| {
        let own = |run: &&Run| run.subject.name == name;
        comparable.runs().iter().filter(own).count()
    };
    let Some((without, others)) = names.split_first() else {
        return Ok(Vec::new());
    };
    let one = |(check, name): (&&'static Check, &String)| {
        let (first, own) = (place(without)?, place(name)?);
        let section = comparison.sections.first()?;
        let pairs = section.cells[first].iter().zip(&section.cells[own]);
        let figures = section.figures.iter().zip(pairs);
        let figures = figures.filter_map(|(figure, pair)| match pair {
            (Cell::Time { value: without, .. }, Cell::Time { value: with, .. }) => {
                Some((*figure, *without, *with))
            }
            _ => None,
        });
        Some(Tried {
            check,
            subject: name.clone(),
            without: without.clone(),
            title: section.row.title(),
            figures: figures.collect(),
            judged: section.verdicts[own],
            rule,
            seeds: count(name),
            why: None,
        })
    };
    Ok(checks.iter().zip(others).filter_map(one).collect())
}

impl Tried {
    /// Returns the option given: boot arguments, or another kernel.
    fn option(&self) -> &str {
        let own = self.subject.strip_prefix(&self.without);
        own.filter(|own| own.starts_with(' '))
            .map_or(&*self.subject, str::trim)
    }

    /// Describes the result in words.
    fn sentence(&self) -> String {
        let seeds = self.seeds;
        let Some(judged) = &self.judged else {
            return "nothing can be judged".to_owned();
        };
        let bought = match judged.verdict {
            Verdict::Lower => "it buys this",
            Verdict::Higher => "it makes it worse",
            Verdict::Identical => "it buys nothing, to the last sample",
            Verdict::NotSeparated { .. } => "nothing that can be told apart from chance",
            Verdict::Undecided(_) => "nothing can be told",
        };
        let told = verdict_told(judged, &self.rule);
        format!("{bought}: of {seeds} seeds, the worst sample with it is {told}")
    }
}

/// Describes the options tried and their results, then what virtual time tells nothing of.
pub fn trials_text(trials: &[Tried], diagnosis: &Diagnosis, width: usize) -> String {
    let mut lines = Lines::new(width);
    lines.line("");
    lines.put(
        "In virtual time, in which each instruction takes 1 ns: lengths of code paths, without \
         an option and with it. There are no caches, no frequencies, no idle states, no firmware.",
    );
    lines.put(&in_all(trials));
    for one in trials {
        lines.line("");
        lines.put(&clean(&format!("{} ({})", one.option(), one.check.id)));
        let indent = |lines: &mut Lines, text: &str| lines.wrap(&clean(text), "  ", "    ");
        indent(&mut lines, &format!("{}, {}", one.title, one.without));
        let row = |(name, without, with): &(&str, Nanos, Nanos)| {
            let by = Nanos(with.0 - without.0);
            [(*name).to_owned(), exact(*without), exact(*with), exact(by)].into()
        };
        let heads = ["ns", "without", "with it", "difference"].map(str::to_owned);
        let rows = [heads.into()]
            .into_iter()
            .chain(one.figures.iter().map(row));
        for row in columns(&rows.collect::<Vec<_>>()) {
            lines.line(row);
        }
        indent(&mut lines, &one.sentence());
        for (word, story) in one.why.iter().flat_map(Why::both) {
            indent(
                &mut lines,
                &format!("{word} ({}): {}", story.0, told(&story.1)),
            );
        }
    }
    let untold = |one: &punctual_doctor::Finding| match one.check.trial {
        Trial::None(why) => Some(format!("{}: {why}", one.check.id)),
        _ => None,
    };
    let untold: Vec<String> = diagnosis.wrong().filter_map(untold).collect();
    if !untold.is_empty() {
        lines.line("");
        lines.put("Of these it tells nothing:");
        for one in untold {
            lines.wrap(&one, "  ", "    ");
        }
    }
    lines.finish()
}

/// `Tried: 13; the worst sample is lower with preempt-rt; nothing can be told of 12.`
fn in_all(trials: &[Tried]) -> String {
    let of = |is_it: fn(&Verdict) -> bool| {
        let verdict = |one: &Tried| one.judged.map(|judged| judged.verdict);
        let own = trials
            .iter()
            .filter(|one| verdict(one).is_some_and(|own| is_it(&own)));
        own.map(|one| one.check.id.to_owned()).collect::<Vec<_>>()
    };
    let kinds = [
        (
            "the worst sample is lower with",
            of(|one| *one == Verdict::Lower),
        ),
        ("it is higher with", of(|one| *one == Verdict::Higher)),
        ("all is the same with", of(|one| *one == Verdict::Identical)),
    ];
    let told: usize = kinds.iter().map(|(_, names)| names.len()).sum();
    let kinds = kinds.iter().filter(|(_, names)| !names.is_empty());
    let mut words: Vec<String> = kinds
        .map(|(word, names)| format!("{word} {}", list(names)))
        .collect();
    if told < trials.len() {
        words.push(format!("nothing can be told of {}", trials.len() - told));
    }
    format!("Tried: {}; {}.", trials.len(), words.join("; "))
}

impl Why {
    fn both(&self) -> [(&'static str, &(String, Story)); 2] {
        [
            ("the worst without it", &self.without),
            ("with it", &self.with),
        ]
    }
}

/// An option that was tried, for programs. Times are whole nanoseconds of virtual time.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Outcome<'a> {
    /// The check that asks for the option.
    check: &'static str,
    /// The option: boot arguments, or another kernel.
    option: &'a str,
    /// The subject without the option.
    subject: &'a str,
    /// The measurement.
    measurement: &'a str,
    /// The number of seeds.
    seeds: usize,
    /// The figures, over all seeds.
    figures: Vec<Figure>,
    /// The comparison run by run, by the worst sample; null if nothing can be judged.
    verdict: Option<Compared>,
    /// The causes of the worst samples' lateness; null unless the two are apart.
    why: Option<Causes<'a>>,
}

/// A figure, without the option and with it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Figure {
    /// Its name.
    name: &'static str,
    /// Its value without the option.
    without_ns: Nanos,
    /// Its value with the option.
    with_ns: Nanos,
}

/// The causes of the worst samples' lateness.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Causes<'a> {
    /// Without the option.
    without: Cause<'a>,
    /// With it.
    with: Cause<'a>,
}

/// The cause of a worst sample's lateness.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Cause<'a> {
    /// The run.
    run: &'a str,
    /// The story, in a sentence.
    told: String,
}

impl<'a> Outcome<'a> {
    pub(super) fn of(one: &'a Tried) -> Self {
        let figures = one.figures.iter();
        let figures = figures.map(|&(name, without_ns, with_ns)| Figure {
            name,
            without_ns,
            with_ns,
        });
        Self {
            check: one.check.id,
            option: one.option(),
            subject: &one.without,
            measurement: &one.title,
            seeds: one.seeds,
            figures: figures.collect(),
            verdict: one.judged.as_ref().map(Compared::from),
            why: one.why.as_ref().map(|why| Causes {
                without: Cause::of(&why.without),
                with: Cause::of(&why.with),
            }),
        }
    }
}

impl<'a> Cause<'a> {
    fn of((run, story): &'a (String, Story)) -> Self {
        Self {
            run,
            told: told(story),
        }
    }
}
