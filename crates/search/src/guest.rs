// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs candidates in guests that are watched.

use std::sync::atomic::AtomicBool;

use punctual_model::{Nanos, Preemption};
use punctual_scope::error::ScopeError;
use punctual_scope::observe::{Observed, Observer};
use punctual_scope::survey::Hotspot;

use crate::{Place, Seen, Stretch};

/// The seed of all guests: only the candidates differ.
const SEED: u64 = 1;

/// The settings with which candidates run.
#[derive(Clone, Debug)]
pub struct How {
    /// True to run as root.
    pub root: bool,
    /// Time after which each is ended.
    pub limit: Nanos,
    /// The wait after each, until the kernel has ended what it left behind.
    pub settle: Nanos,
    /// Kinds of calls of the user's own, as text; may be empty.
    pub grammar: String,
}

impl Default for How {
    fn default() -> Self {
        Self {
            root: false,
            limit: Nanos::from_millis(50),
            settle: Nanos::from_millis(100),
            grammar: String::new(),
        }
    }
}

/// Guests of one machine.
pub struct Guests<'a> {
    observer: Observer<'a>,
    preemption: Preemption,
    how: How,
    cancel: &'a AtomicBool,
}

impl<'a> Guests<'a> {
    /// Asks a first guest for its preemption model; an error if that guest says nothing.
    pub fn new(
        observer: Observer<'a>,
        how: How,
        cancel: &'a AtomicBool,
    ) -> Result<Self, ScopeError> {
        let mut guests = Self {
            observer,
            preemption: Preemption::Full,
            how,
            cancel,
        };
        let seen = guests.observe(&[String::new()])?;
        let silent = || {
            let why = seen.failed.clone().unwrap_or_default();
            ScopeError::Unreadable("the guest".to_owned(), why)
        };
        if let Some(why) = &seen.failed {
            return Err(ScopeError::Unreadable("the guest".to_owned(), why.clone()));
        }
        guests.preemption = seen.preemption.clone().ok_or_else(silent)?;
        Ok(guests)
    }

    /// Returns the preemption model of their kernel.
    pub fn preemption(&self) -> &Preemption {
        &self.preemption
    }

    fn observe(&self, candidates: &[String]) -> Result<Observed, ScopeError> {
        let plan = self.plan(candidates);
        self.observer.observe(&plan, &self.preemption, self.cancel)
    }

    fn plan(&self, candidates: &[String]) -> String {
        let mut run = vec!["punctual-calls".to_owned()];
        let millis = |span: Nanos| (span.0 / 1_000_000).to_string();
        run.push("--marked".to_owned());
        run.extend(["--limit-ms".to_owned(), millis(self.how.limit)]);
        run.extend(["--settle-ms".to_owned(), millis(self.how.settle)]);
        run.extend(self.how.root.then(|| "--root".to_owned()));
        if !self.how.grammar.is_empty() {
            run.extend(["--grammar".to_owned(), self.how.grammar.clone()]);
        }
        run.extend_from_slice(candidates);
        let run = run.into_iter().map(toml::Value::from).collect();
        let mut step = toml::Table::new();
        step.insert("probe".into(), "program".into());
        step.insert("run".into(), toml::Value::Array(run));
        let mut plan = toml::Table::new();
        plan.insert("seed".into(), toml::Value::Integer(SEED as i64));
        plan.insert("step".into(), vec![step].into());
        plan.to_string()
    }

    /// Returns what was seen of the candidates that were over when the guest ended.
    fn seen(&self, observed: &Observed) -> Vec<Seen> {
        let is_rt = self.preemption == Preemption::Rt;
        let stretches = |places: &Vec<Hotspot>| {
            let stretch = |place: &Hotspot| {
                Some(Stretch {
                    what: Stretch::name(place.what, is_rt)?.to_owned(),
                    function: place.function.clone(),
                    most: place.most.0.clone(),
                    ns: place.longest.0,
                })
            };
            let mut all: Vec<Stretch> = places.iter().filter_map(stretch).collect();
            all.sort_by(|a, b| (b.ns, &a.function, &a.what).cmp(&(a.ns, &b.function, &b.what)));
            all
        };
        // Before the plan, its step, then each candidate and what is behind it.
        let own = observed.steps.iter().skip(2).step_by(2);
        let mut told = told(&observed.printed).into_iter();
        own.map(|places| Seen::Ran {
            stretches: stretches(places),
            told: told.next().unwrap_or_default(),
        })
        .collect()
    }
}

/// Splits the output by candidate: its own lines, and the target's line about it, which is the
/// last.
fn told(printed: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for line in printed.lines() {
        let last = all.len() - 1;
        all[last] += line;
        all[last].push('\n');
        if line.starts_with("ended: ") || line.starts_with("killed: ") {
            all.push(String::new());
        }
    }
    all
}

impl Place for Guests<'_> {
    /// Runs the candidates. If a guest ends before its time, the candidate that ran then has
    /// another guest to itself. Those after it run in a further one.
    fn run(&self, candidates: &[String]) -> Result<Vec<Seen>, ScopeError> {
        let mut all = Vec::new();
        while all.len() < candidates.len() {
            let left = &candidates[all.len()..];
            let observed = self.observe(left)?;
            let mut seen = self.seen(&observed);
            seen.truncate(left.len());
            let done = seen.len();
            all.extend(seen);
            let Some(why) = observed.failed.filter(|_| done < left.len()) else {
                if done < left.len() {
                    let text = format!("{done} of {} candidates were marked", left.len());
                    return Err(ScopeError::Unreadable("the guest".to_owned(), text));
                }
                continue;
            };
            if left.len() == 1 {
                all.push(Seen::Killed(why));
                continue;
            }
            let again = self.observe(&left[done..=done])?;
            let own = self.seen(&again).into_iter().next();
            let why = again.failed.unwrap_or(why);
            all.push(own.unwrap_or(Seen::Killed(why)));
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::told;

    #[test]
    fn what_is_printed_is_told_candidate_by_candidate() {
        let printed = "ended: 3 calls, 0 refused\nbogo-ops: 4\nkilled: 0 calls, 0 refused\n";
        let told = told(printed);
        assert_eq!(told[0], "ended: 3 calls, 0 refused\n");
        assert_eq!(told[1], "bogo-ops: 4\nkilled: 0 calls, 0 refused\n");
    }
}
