// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges while measuring: more than one look, at the price of one.

use punctual_model::Limit;
use punctual_model::run::Run;

use crate::answer::{Answer, Fitness, Judgement, Why};
use crate::fitness::{Baselines, Unanswered, judge_with};
use crate::typical::runs_for_typical;

/// Looks at runs as more of them arrive. The first look may be wrong half as often as a limit
/// allows, each further one half as often as the one before: all together no more often than the
/// limit allows, whatever is measured.
///
/// A verdict stands once a look has decided it, unless a later sample breaks the limit. *Fit* does
/// not stand where a later look finds a gap.
///
/// Source: K. K. G. Lan and D. L. `DeMets`, *Discrete sequential boundaries for clinical trials*,
/// Biometrika 70 (1983), with the errors of all looks added up, so that nothing needs to be known
/// of how they depend on one another.
#[derive(Clone, Debug)]
pub struct Sequential {
    limits: Vec<Limit>,
    baselines: Baselines,
    share: f64,
    first: usize,
    looks: u32,
    decided: Vec<Answer>,
}

impl Sequential {
    /// Starts before the first look.
    pub fn new(limits: &[Limit], baselines: Baselines) -> Self {
        Self::at_share(limits, baselines, 1.0)
    }

    /// Like [`Self::new`], at a share of each limit's level: for callers that judge several
    /// subjects, and must be wrong in any of them no more often than a limit allows.
    pub fn at_share(limits: &[Limit], baselines: Baselines, share: f64) -> Self {
        let needed = |limit: &Limit| {
            let by_rule = runs_for_typical(limit.level() * share / 2.0);
            limit.runs.unwrap_or(0).max(by_rule)
        };
        Self {
            limits: limits.to_vec(),
            baselines,
            share,
            first: limits.iter().map(needed).max().unwrap_or(1),
            looks: 0,
            decided: Vec::new(),
        }
    }

    /// The number of runs of each subject for the next look: twice as many as for the one before.
    pub fn next_runs(&self) -> usize {
        self.first << self.looks
    }

    /// The judgement, if no further run can change it for any limit: samples and missed periods
    /// that break theirs, and gaps. `None` if some limit needs a look.
    pub fn settled(&self, runs: &[Run]) -> Result<Option<Judgement>, Unanswered> {
        let judgement = judge_with(&self.limits, runs, &self.baselines, self.share)?;
        let is_settled = |one: &Answer| is_certain(one) || matches!(one.why, Why::Gap(_));
        let all = judgement.answers.iter().all(is_settled);
        Ok(all.then_some(judgement))
    }

    /// Looks at all runs so far.
    pub fn look(&mut self, runs: &[Run]) -> Result<Judgement, Unanswered> {
        self.looks += 1;
        let share = self.share * 0.5_f64.powi(self.looks as i32);
        let mut judgement = judge_with(&self.limits, runs, &self.baselines, share)?;
        for answer in &mut judgement.answers {
            let before = self.decided.iter().find(|one| is_same(one, answer));
            match before {
                Some(before) if stands(before, answer) => *answer = before.clone(),
                _ if answer.fitness != Fitness::Undecided => self.decided.push(answer.clone()),
                _ => {}
            }
        }
        Ok(judgement)
    }
}

fn is_certain(answer: &Answer) -> bool {
    let is_fact = matches!(
        answer.why,
        Why::Broken { .. } | Why::Reached { .. } | Why::Missed { .. } | Why::Jitter { .. }
    );
    is_fact && answer.fitness == Fitness::Unfit
}

/// Returns true if an earlier decision stands: no sample has broken the limit since, and nothing
/// is missing now that a pass would need.
fn stands(before: &Answer, now: &Answer) -> bool {
    let lacks = before.fitness == Fitness::Fit && matches!(now.why, Why::Gap(_));
    !(is_certain(now) || lacks)
}

/// Returns true if both answer a limit for the same step: another one of the same name answers for
/// itself.
fn is_same(one: &Answer, other: &Answer) -> bool {
    one.limit == other.limit
        && one.subject == other.subject
        && one.key.step == other.key.step
        && one.key.is_same_measurement(&other.key)
}

#[cfg(test)]
mod tests {
    use punctual_model::record::Unsupported;
    use punctual_model::run::State;
    use serde::Deserialize;

    use super::*;
    use crate::synthetic;

    fn limits(rest: &str) -> Vec<Limit> {
        #[derive(Deserialize)]
        struct File {
            limit: Vec<Limit>,
        }
        let text = format!("[[limit]]\nprobe = \"timer\"\n{rest}\n");
        toml::from_str::<File>(&text).unwrap().limit
    }

    fn runs(values: &[i64]) -> Vec<Run> {
        let run = |(value, seed): (&i64, u64)| synthetic::run("rt", seed, &[*value; 9]);
        values.iter().zip(1..).map(run).collect()
    }

    #[test]
    fn looks_double_and_a_decision_stands_until_a_sample_breaks_it() {
        let limits = limits("what = \"median\"\nat_most = \"10 us\"");
        let mut sequential = Sequential::new(&limits, Baselines::new());
        // Half of 5 %: six runs.
        assert_eq!(sequential.next_runs(), 6);
        let six = runs(&[5_000; 6]);
        assert_eq!(sequential.look(&six).unwrap().fitness(), Fitness::Fit);
        assert_eq!(sequential.next_runs(), 12);
        // At a quarter of 5 % nine of twelve would tell nothing.
        let mut values = [5_000; 12];
        values[9..].fill(20_000);
        let again = sequential.look(&runs(&values)).unwrap();
        assert_eq!(again.fitness(), Fitness::Fit);
        assert_eq!(
            Sequential::new(&limits, Baselines::new())
                .look(&runs(&values))
                .unwrap()
                .fitness(),
            Fitness::Undecided
        );
    }

    /// A pass of one step is none of another of its name, and none of a step that is not whole later.
    #[test]
    fn a_fit_step_speaks_neither_for_another_nor_for_what_is_missing_later() {
        let limits = limits("what = \"worst\"\nat_most = \"10 us\"");
        let two_steps = |mut run: Run| {
            let step = "[[step]]\nprobe = \"timer\"\nload = \"stress\"\ncpus = [0]\nsamples = 1\n";
            run.plan = run.plan.replacen(step, &step.repeat(2), 1);
            run.unsupported.push(Unsupported {
                step: 1,
                probe: "timer".into(),
                load: "stress".into(),
                reason: "no such CPU".into(),
            });
            run
        };
        let six: Vec<Run> = runs(&[5_000; 6]).into_iter().map(two_steps).collect();
        let look = Sequential::new(&limits, Baselines::new())
            .look(&six)
            .unwrap();
        let fitness: Vec<Fitness> = look.answers.iter().map(|one| one.fitness).collect();
        assert_eq!(fitness, [Fitness::Fit, Fitness::Undecided]);
        let mut sequential = Sequential::new(&limits, Baselines::new());
        let six = sequential.look(&runs(&[5_000; 6])).unwrap();
        assert_eq!(six.fitness(), Fitness::Fit);
        let mut twelve = runs(&[5_000; 12]);
        twelve[8].state = State::Failed;
        let twelve = sequential.look(&twelve).unwrap();
        assert_eq!(twelve.fitness(), Fitness::Undecided);
    }

    #[test]
    fn a_share_of_the_level_takes_more_runs() {
        let limits = limits("what = \"median\"\nat_most = \"10 us\"");
        let mut sequential = Sequential::at_share(&limits, Baselines::new(), 1.0 / 7.0);
        // Half of a seventh of 5 %: 0.36 %, one of 512.
        assert_eq!(sequential.next_runs(), 9);
        let (few, enough) = (runs(&[5_000; 8]), runs(&[5_000; 9]));
        assert_eq!(
            sequential.clone().look(&few).unwrap().fitness(),
            Fitness::Undecided
        );
        assert_eq!(sequential.look(&enough).unwrap().fitness(), Fitness::Fit);
    }

    #[test]
    fn a_broken_worst_case_needs_no_look_and_undoes_one() {
        let limits = limits("what = \"worst\"\nat_most = \"10 us\"");
        let mut sequential = Sequential::new(&limits, Baselines::new());
        assert!(sequential.settled(&runs(&[5_000; 2])).unwrap().is_none());
        assert_eq!(
            sequential.look(&runs(&[5_000; 6])).unwrap().fitness(),
            Fitness::Fit
        );
        let mut failed = runs(&[5_000; 2]);
        failed[1].state = State::Failed;
        let settled = sequential.settled(&failed).unwrap().unwrap();
        assert_eq!(
            settled.fitness(),
            Fitness::Undecided,
            "more runs do not mend it"
        );
        let mut values = [5_000; 8];
        values[7] = 11_000;
        let broken = runs(&values);
        let settled = sequential.settled(&broken).unwrap().unwrap();
        assert_eq!(settled.fitness(), Fitness::Unfit);
        assert_eq!(sequential.look(&broken).unwrap().fitness(), Fitness::Unfit);
    }
}
