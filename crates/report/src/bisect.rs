// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bisection: the verdicts on the way, the result, and the change found.

mod json;
mod page;
mod text;

use punctual_judge::{Answer, Bisection, Fitness, Found, Judgement, Known};
use punctual_model::{Limit, Run};

use crate::arrivals::{Latest, latest};
use crate::asked::Asked;
use crate::judgement::title;
use crate::series::versions;
use crate::why::Why;

pub use json::bisect_json;
pub use page::bisect_page;
pub use text::bisect_text;

/// A bisection, as far as it has come.
#[derive(Debug)]
pub struct Bisect {
    /// The suite's name.
    pub suite: String,
    /// The limits demanded.
    pub limits: Vec<Limit>,
    /// The kernels' ids, from the one said to be good to the one said to be bad.
    pub candidates: Vec<String>,
    /// True if the order is the reverse of the source's: the good one is the newer.
    pub is_backwards: bool,
    /// The kernels tried, in order of trial.
    pub steps: Vec<Step>,
    /// The result; `None` if it was interrupted.
    pub found: Option<Found>,
    /// The cause: something that the bad one has and the good one lacks.
    pub why: Option<(Asked, Why)>,
}

/// A kernel that was tried.
#[derive(Debug)]
pub struct Step {
    /// Its number among the candidates.
    pub at: usize,
    /// The knowledge of it so far.
    pub known: Known,
    /// The verdict; `None` if it could not be measured.
    pub judgement: Option<Judgement>,
    /// The reason for skipping it, if it was skipped.
    pub skipped: Option<String>,
    /// The runs that the verdict rests on.
    pub runs: Vec<Run>,
}

impl Step {
    /// Creates the step of a kernel that was measured.
    pub fn judged(at: usize, judgement: Judgement, runs: Vec<Run>) -> Self {
        let known = match judgement.fitness() {
            Fitness::Fit => Known::Fit,
            Fitness::Unfit => Known::Unfit,
            Fitness::Undecided => Known::Skipped,
        };
        let mut answers = judgement.answers.iter();
        let open = answers.find(|one| one.fitness == Fitness::Undecided);
        let skipped = open.map(|one| {
            let more = one.more.filter(|_| !one.reason().is_empty());
            let more = more.map_or(String::new(), |more| format!("; to decide: {more}"));
            format!("undecided: {}{more}", one.reason())
        });
        Self {
            at,
            known,
            skipped: skipped.filter(|_| known == Known::Skipped),
            judgement: Some(judgement),
            runs,
        }
    }

    /// Creates the step of a kernel that cannot be had.
    pub fn skipped(at: usize, why: String) -> Self {
        Self {
            at,
            known: Known::Skipped,
            judgement: None,
            skipped: Some(why),
            runs: Vec::new(),
        }
    }

    /// Describes the known arrivals of it, one sentence a measurement.
    fn arrivals(&self) -> Vec<String> {
        let all = latest(&self.runs);
        all.iter().map(Latest::sentence).collect()
    }

    /// Describes the answers that decide it: each one that is as bad as the verdict on all.
    /// Of several that are fit, it gives only their number.
    fn sentences(&self) -> Vec<String> {
        if let Some(why) = &self.skipped {
            return vec![why.clone()];
        }
        let answers = self.judgement.iter().flat_map(|one| &one.answers);
        let wanted = match self.known {
            Known::Fit => Fitness::Fit,
            _ => Fitness::Unfit,
        };
        let own: Vec<&Answer> = answers.filter(|one| one.fitness == wanted).collect();
        match (self.known, own.len()) {
            (Known::Fit, count) if count > 1 => vec![format!("all {count} answers are fit")],
            _ => own.into_iter().map(sentence).collect(),
        }
    }
}

/// `timer, idle, cpu0: 9 of 9 runs keep to it; the middle one has 4.67 µs`.
fn sentence(answer: &Answer) -> String {
    let key = &answer.key;
    let mut parts = vec![key.probe.clone(), key.load.clone(), key.label()];
    parts.retain(|part| !part.is_empty());
    format!("{}: {}", parts.join(", "), answer.reason())
}

impl Bisect {
    /// Returns the common name of all candidates: a line's name, if they are of one.
    pub fn line(&self) -> Option<&str> {
        let (line, _) = self.candidates.first()?.split_once('@')?;
        let is_own = |id: &String| id.split_once('@').is_some_and(|(name, _)| name == line);
        self.candidates.iter().all(is_own).then_some(line)
    }

    /// Returns the names of the candidates: their versions, if all are of one line.
    pub fn names(&self) -> Vec<String> {
        if self.line().is_none() {
            return self.candidates.clone();
        }
        let ids: Vec<&str> = self.candidates.iter().map(String::as_str).collect();
        versions(&ids)
    }

    /// Counts the kernels tried between the ends.
    pub fn steps_between(&self) -> usize {
        let last = self.candidates.len() - 1;
        let between = self
            .steps
            .iter()
            .filter(|one| one.at != 0 && one.at != last);
        between.count()
    }

    /// Returns the numbers of the first different kernel and the one before it.
    /// They follow the order of releases: in a bisection backwards, the first is the first fit one.
    pub fn change(&self) -> Option<(usize, usize)> {
        match self.found? {
            Found::Between { fit, unfit } if self.is_backwards => Some((fit, unfit)),
            Found::Between { fit, unfit } => Some((unfit, fit)),
            _ => None,
        }
    }

    /// The candidates for the first that is different: one, if none had to be skipped there.
    pub fn suspects(&self) -> Vec<usize> {
        match self.found {
            Some(Found::Between { fit, unfit }) if self.is_backwards => {
                (fit..unfit).rev().collect()
            }
            Some(Found::Between { fit, unfit }) => (fit + 1..=unfit).collect(),
            _ => Vec::new(),
        }
    }

    /// Describes the result in one sentence.
    pub fn sentence(&self) -> String {
        let names = self.names();
        let whole = |at: usize| match self.line() {
            Some(line) => format!("{line} {}", names[at]),
            None => names[at].clone(),
        };
        let last = names.len() - 1;
        let word = if self.is_backwards { "fit" } else { "unfit" };
        match (self.found, self.change()) {
            (_, Some((first, before))) => match &self.suspects()[..] {
                [_] => {
                    let other = if self.is_backwards { "unfit" } else { "fit" };
                    let before = &names[before];
                    format!(
                        "{} is the first that is {word}; {before}, before it, is {other}",
                        whole(first)
                    )
                }
                many => {
                    let many: Vec<String> = many.iter().map(|at| names[*at].clone()).collect();
                    format!(
                        "the first that is {word} is one of {}: all but the last were skipped",
                        many.join(", ")
                    )
                }
            },
            (Some(Found::GoodIsNot(known)), _) => wrong_end(&whole(0), "good", known),
            (Some(Found::BadIsNot(known)), _) => wrong_end(&whole(last), "bad", known),
            _ => self.interrupted(&names),
        }
    }

    fn interrupted(&self, names: &[String]) -> String {
        let mut bisection = Bisection::new(names.len());
        for step in &self.steps {
            bisection.tell(step.at, step.known);
        }
        let (fit, unfit) = bisection.ends();
        let unfit = &names[unfit.min(names.len() - 1)];
        format!(
            "interrupted: it is between {} and {unfit}; the same command goes on",
            names[fit]
        )
    }

    /// Describes the effort in one sentence.
    pub fn effort(&self) -> String {
        let (steps, most) = (
            self.steps_between(),
            Bisection::steps_most(self.candidates.len()),
        );
        let kernels = self.candidates.len();
        let runs: usize = self.steps.iter().map(|step| step.runs.len()).sum();
        let word = if steps == 1 { "step" } else { "steps" };
        let skipped = self.steps.iter().filter(|one| one.known == Known::Skipped);
        let skipped = match skipped.count() {
            0 => String::new(),
            count => format!("; {count} skipped"),
        };
        format!(
            "{kernels} kernels, {steps} {word} between the ends (at most {most} without skipped \
             ones){skipped}; {runs} runs"
        )
    }

    /// `The median of timer, idle, cpu0 in 6.12.85, which is unfit, against 6.12.82:`
    fn asked_told(&self, asked: &Asked) -> String {
        let names = self.names();
        let (key, figure) = (&asked.key, asked.figure());
        let between = match self.found {
            Some(Found::Between { fit, unfit }) => {
                format!(
                    " in {}, which is unfit, against {}",
                    names[unfit], names[fit]
                )
            }
            _ => String::new(),
        };
        let (probe, load, variant) = (&key.probe, &key.load, key.label());
        format!("The {figure} of {probe}, {load}, {variant}{between}:")
    }

    /// Lists the demands, limit by limit.
    pub fn demands(&self) -> Vec<String> {
        self.limits.iter().map(title).collect()
    }

    /// All runs.
    pub fn runs(&self) -> Vec<Run> {
        let runs = self.steps.iter().flat_map(|step| &step.runs);
        runs.cloned().collect()
    }
}

/// Says that an end is not as claimed.
fn wrong_end(name: &str, word: &str, known: Known) -> String {
    match known {
        Known::Skipped => {
            let expected = if word == "good" { "fit" } else { "unfit" };
            format!("{name} is said to be {word}, and whether it is {expected} cannot be told")
        }
        known => {
            format!("{name} is said to be {word}, and is {known}: there is nothing to look for")
        }
    }
}

/// Returns the question to ask of the unfit kernel and the fit one.
/// The question is about the first limit that the unfit one breaks. Returns `None` if nothing was
/// found.
pub fn asked(bisect: &Bisect) -> Option<Asked> {
    let Found::Between { fit, unfit } = bisect.found? else {
        return None;
    };
    let step = |at| bisect.steps.iter().find(|step| step.at == at);
    let (good, bad) = (step(fit)?, step(unfit)?);
    let mut answers = bad.judgement.as_ref()?.answers.iter();
    let broken = answers.find(|one| one.fitness == Fitness::Unfit)?;
    Asked::of_limit(&broken.limit, &broken.key, [&bad.runs, &good.runs])
}

#[cfg(test)]
mod tests;
