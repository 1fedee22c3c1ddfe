// SPDX-License-Identifier: MIT OR Apache-2.0
//! Searches for programs of system calls that keep a thread of the highest priority waiting.
//!
//! Candidates run in guests that are watched instruction by instruction, many in one guest
//! ([`guest`]). For each place at which something was switched off, the program with the longest
//! stretch is kept ([`corpus`]), and others are made of those ([`evolve`]). In the end each find is
//! made as short as it can be, and the numbers with which it grows are found ([`minimise`]).
#![forbid(unsafe_code)]

pub mod c;
pub mod corpus;
pub mod evolve;
pub mod guest;
pub mod minimise;

pub use punctual_calls::{Grammar, Program};
use punctual_model::Nanos;
use punctual_scope::error::ScopeError;
use punctual_scope::survey::SectionKind;
use serde::{Deserialize, Serialize};

use corpus::Corpus;
use evolve::Evolution;
use guest::How;

/// A stretch in which something was off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stretch {
    /// What it is: `interrupts off` and so on.
    pub what: String,
    /// The function that switched it off.
    pub function: String,
    /// The function that most of it was spent in.
    pub most: String,
    /// How long it was, in nanoseconds of virtual time.
    pub ns: i64,
}

impl Stretch {
    /// Returns true if it has the same cause: the same thing, switched off by the same function.
    pub fn is_like(&self, other: &Self) -> bool {
        (&self.what, &self.function) == (&other.what, &other.function)
    }

    /// Returns its length.
    pub fn length(&self) -> Nanos {
        Nanos(self.ns)
    }

    /// Returns what is off, in the words of a survey, if it delays a thread of the highest
    /// priority.
    fn name(what: SectionKind, is_rt: bool) -> Option<&'static str> {
        match what {
            // A thread of the highest priority takes the CPU from it.
            SectionKind::Softirq if is_rt => None,
            SectionKind::Spinning => None,
            what => Some(what.name()),
        }
    }
}

/// The observations of a candidate.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// It ran.
    Ran {
        /// The longest stretch of each place.
        stretches: Vec<Stretch>,
        /// The target's output about it.
        told: String,
    },
    /// It ended its guest, for this reason.
    Killed(String),
}

impl Seen {
    /// Returns the longest stretch of this cause.
    pub fn of(&self, cause: &Stretch) -> Option<&Stretch> {
        let stretches = match self {
            Self::Ran { stretches, .. } => stretches.as_slice(),
            Self::Killed(_) => &[],
        };
        let own = stretches.iter().filter(|stretch| stretch.is_like(cause));
        own.max_by_key(|stretch| stretch.ns)
    }
}

/// A place where candidates run.
pub trait Place: Sync {
    /// Returns what was seen of each candidate, in their order. Things that a candidate leaves
    /// after may be seen by those after it.
    fn run(&self, candidates: &[String]) -> Result<Vec<Seen>, ScopeError>;
}

/// The number of candidates that run in one guest, one after the other.
pub const BATCH: usize = 24;
/// The number of batches that are made of one corpus. As many may run side by side, and the finds
/// do not depend on how many do.
pub const BATCHES: usize = 2;

/// The number of causes that are tried with larger numbers in the candidates of one corpus.
const SCALED: usize = 8;

/// The target and the settings of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The kernel's id.
    pub kernel: String,
    /// The SHA-256 of its image: a build that took the place of another has the same id. Empty
    /// where nothing runs.
    #[serde(default)]
    pub image_sha256: String,
    /// Additional boot arguments.
    pub boot: String,
    /// The seed of all random choices.
    pub seed: u64,
    /// True if programs run as root.
    pub root: bool,
    /// True if each candidate is made afresh, as a baseline: nothing evolves.
    pub random: bool,
    /// Kinds of calls of the user's own, as text; may be empty.
    pub grammar: String,
    /// Time of its guest after which each program is ended; the usual one if none is named.
    #[serde(default)]
    pub each: Option<Nanos>,
}

impl Asked {
    /// Returns false if its kernel is known to be of another build than the image with this
    /// checksum.
    pub fn is_of_build(&self, image_sha256: &str) -> bool {
        let is_told = !self.image_sha256.is_empty() && !image_sha256.is_empty();
        !is_told || self.image_sha256 == image_sha256
    }

    /// Returns what makes another search a different one; `None` if it is the same.
    pub fn difference(&self, its: &Self) -> Option<String> {
        let seed = |asked: &Self| asked.seed.to_string();
        let random = |asked: &Self| {
            if asked.random { "given" } else { "not given" }
        };
        self.difference_of_finds(its)
            .or_else(|| differ("seed", &seed(self), &seed(its)))
            .or_else(|| differ("--random", random(self), random(its)))
    }

    /// Returns what makes the finds of another search, whatever its seed, none of this one; `None`
    /// if nothing does.
    fn difference_of_finds(&self, its: &Self) -> Option<String> {
        let user = |asked: &Self| {
            if asked.root {
                "root"
            } else {
                "an ordinary user"
            }
        };
        let each = |asked: &Self| {
            let each = asked.each.unwrap_or(How::default().limit);
            format!("{}ms", each.0 / 1_000_000)
        };
        let build = || format!("its kernel \"{}\" is of another build", its.kernel);
        let is_of_build = self.is_of_build(&its.image_sha256);
        let grammar = || "its --grammar is another".to_owned();
        differ("kernel", &self.kernel, &its.kernel)
            .or_else(|| (!is_of_build).then(build))
            .or_else(|| differ("--boot", self.boot.trim(), its.boot.trim()))
            .or_else(|| differ("user", user(self), user(its)))
            .or_else(|| (self.grammar != its.grammar).then(grammar))
            .or_else(|| differ("--each", &each(self), &each(its)))
    }
}

fn differ(what: &str, own: &str, its: &str) -> Option<String> {
    (own != its).then(|| format!("its {what} is \"{its}\", and here it is \"{own}\""))
}

/// The state of a search, with all that is needed to continue it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// The target and the settings.
    pub asked: Asked,
    /// The number of candidates that have run.
    pub candidates: u64,
    /// The best program of each place.
    pub corpus: Corpus,
    /// Programs that have ended their guests, with the way in which they did.
    pub killers: Vec<(String, String)>,
    /// The searches that this one has taken over.
    #[serde(default)]
    pub merged: Vec<Merged>,
}

/// Another search of the same kernel, of which the finds were taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Merged {
    /// Its seed.
    pub seed: u64,
    /// Whether nothing evolved there.
    pub random: bool,
    /// How many candidates it had run.
    pub candidates: u64,
}

impl Search {
    /// Creates a search that has not begun.
    pub fn new(asked: Asked) -> Self {
        Self {
            asked,
            candidates: 0,
            corpus: Corpus::default(),
            killers: Vec::new(),
            merged: Vec::new(),
        }
    }

    /// Returns the kinds of calls. The error names the fault in the user's own kinds.
    pub fn grammar(&self) -> Result<Grammar, String> {
        let own = &self.asked.grammar;
        if own.is_empty() {
            return Ok(Grammar::default());
        }
        let grammar = Grammar::default().with(Grammar::parse(own)?);
        for kind in grammar.kinds() {
            if let Some(first) = kind.after.as_ref().filter(|it| grammar.kind(it).is_none()) {
                return Err(format!(
                    "call \"{}\": expected a call that there is in after, found \"{first}\"",
                    kind.name
                ));
            }
        }
        Ok(grammar)
    }

    /// Takes the finds of another search of the same kernel, whatever its seed. The error says in
    /// what the two differ.
    pub fn merge(&mut self, other: &Self) -> Result<(), String> {
        let its = &other.asked;
        if let Some(difference) = self.asked.difference_of_finds(its) {
            return Err(difference);
        }
        self.corpus.merge(&other.corpus);
        for killer in &other.killers {
            if !self.killers.contains(killer) {
                self.killers.push(killer.clone());
            }
        }
        let its = Merged {
            seed: its.seed,
            random: its.random,
            candidates: other.candidates,
        };
        for one in other.merged.iter().chain([&its]) {
            let is_it = |own: &&mut Merged| (own.seed, own.random) == (one.seed, one.random);
            match self.merged.iter_mut().find(is_it) {
                Some(own) => own.candidates = own.candidates.max(one.candidates),
                None => self.merged.push(*one),
            }
        }
        Ok(())
    }

    /// Runs the next `at_most` candidates, [`BATCHES`] batches at most, `jobs` of them side by
    /// side. An error leaves the search as it was.
    ///
    /// # Panics
    /// Panics if the place does.
    pub fn step(
        &mut self,
        grammar: &Grammar,
        place: &dyn Place,
        (at_most, jobs): (u64, usize),
    ) -> Result<(), ScopeError> {
        let evolution = Evolution::new(grammar, &self.asked, &self.corpus);
        let count = at_most.min((BATCH * BATCHES) as u64);
        let numbers = self.candidates..self.candidates + count;
        let scaled = self
            .corpus
            .unscaled(if self.asked.random { 0 } else { SCALED });
        let mut larger = scaled.iter().flat_map(|program| evolution.larger(program));
        // Every other one, so that no guest has them all.
        let mut next = |number: u64| {
            let is_free = number % 2 == 1 && !evolution.is_swept(number);
            let larger = is_free.then(|| larger.next()).flatten();
            larger.unwrap_or_else(|| evolution.candidate(number))
        };
        let programs: Vec<Program> = numbers.map(&mut next).collect();
        let are_all_tried = larger.next().is_none();
        let texts: Vec<String> = programs.iter().map(ToString::to_string).collect();
        let mut seen = Vec::new();
        let batches: Vec<&[String]> = texts.chunks(BATCH).collect();
        for side_by_side in batches.chunks(jobs.max(1)) {
            let results: Vec<_> = std::thread::scope(|scope| {
                let started: Vec<_> = side_by_side
                    .iter()
                    .copied()
                    .map(|batch| scope.spawn(move || place.run(batch)))
                    .collect();
                let joined = started.into_iter().map(|one| one.join().expect("no panic"));
                joined.collect()
            });
            for result in results {
                seen.extend(result?);
            }
        }
        if are_all_tried {
            self.corpus.scaled(&scaled);
        }
        for ((number, text), seen) in (self.candidates..).zip(texts).zip(seen) {
            match seen {
                Seen::Ran { stretches, .. } => self.corpus.take(&text, number, stretches),
                Seen::Killed(why) => self.killers.push((text, why)),
            }
        }
        self.candidates += count;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minimise::Minimised;

    /// A kernel that loops n² steps for each pipe of n bytes, with preemption off.
    struct Quadratic;

    impl Place for Quadratic {
        fn run(&self, candidates: &[String]) -> Result<Vec<Seen>, ScopeError> {
            let grammar = Grammar::default();
            let see = |text: &String| {
                let program = grammar.program(text).unwrap();
                if text.contains("unshare-net") {
                    return Seen::Killed("the kernel has panicked".into());
                }
                let pipe = program.calls.iter().position(|call| call.name == "pipe");
                let behind = &program.calls[pipe.unwrap_or(program.calls.len())..];
                let writes = behind.iter().filter(|call| call.name == "write-pipe");
                let size = writes.filter_map(|call| call.size).max().unwrap_or(1);
                let size = size.min(4096);
                let stretch = |function: &str, ns| Stretch {
                    what: "preemption off".into(),
                    function: function.into(),
                    most: "loop".into(),
                    ns,
                };
                Seen::Ran {
                    stretches: vec![
                        stretch("quadratic", (size * size) as i64),
                        stretch("always", 100),
                    ],
                    told: String::new(),
                }
            };
            Ok(candidates.iter().map(see).collect())
        }
    }

    fn asked(seed: u64) -> Asked {
        Asked {
            kernel: "k".into(),
            image_sha256: "1f".into(),
            seed,
            ..Asked::default()
        }
    }

    /// Creates a search that knows nothing of its first candidates, which have all sizes at their
    /// largest.
    fn behind_the_sweep(seed: u64) -> Search {
        Search {
            candidates: 1_000,
            ..Search::new(asked(seed))
        }
    }

    fn searched(seed: u64, jobs: usize, candidates: u64) -> Search {
        let mut search = Search::new(asked(seed));
        let grammar = search.grammar().unwrap();
        while search.candidates < candidates {
            let left = candidates - search.candidates;
            search.step(&grammar, &Quadratic, (left, jobs)).unwrap();
        }
        search
    }

    #[test]
    fn the_same_seed_finds_the_same_however_many_guests_there_are() {
        let one = searched(7, 1, 300);
        assert_eq!(one, searched(7, 2, 300));
        assert_ne!(one.corpus, searched(8, 1, 300).corpus);
        assert_eq!(one.candidates, 300);
    }

    #[test]
    fn what_grows_is_found_made_short_and_its_growth_named() {
        let mut search = behind_the_sweep(1);
        let grammar = search.grammar().unwrap();
        while search.candidates < 5_000 {
            search.step(&grammar, &Quadratic, (48, 1)).unwrap();
        }
        let grammar = search.grammar().unwrap();
        let causes = search.corpus.causes();
        assert_eq!(causes[0].stretch.function, "quadratic");
        assert_eq!(causes[0].stretch.ns, 4096 * 4096);
        let made = |entry| minimise::minimise(&grammar, &Quadratic, entry).unwrap();
        let Minimised::Find(find) = made(causes[0]) else {
            panic!("{:?}", causes[0]);
        };
        assert_eq!(find.program, "pipe; write-pipe 4096");
        assert_eq!(find.growth[0].with, "size of write-pipe");
        assert_eq!(find.growth[0].order, minimise::Order::Quadratic);
        // What each program shows is no find of any.
        let is_always = |stretch: &Stretch| stretch.function == "always";
        let always = causes.iter().find(|entry| is_always(&entry.stretch));
        let Minimised::WithoutCalls(stretch) = made(always.unwrap()) else {
            panic!("{always:?}");
        };
        assert!(is_always(&stretch));
    }

    #[test]
    fn what_others_have_found_is_taken_over_and_is_none_of_another_kernel() {
        let mut one = searched(1, 1, 96);
        let other = searched(2, 1, 96);
        let longest = |search: &Search, function: &str| {
            let mut all = search.corpus.entries().iter();
            let own = all.find(|entry| entry.stretch.function == function);
            own.map(|entry| entry.stretch.ns)
        };
        let both = longest(&one, "quadratic").max(longest(&other, "quadratic"));
        one.merge(&other).unwrap();
        assert_eq!(longest(&one, "quadratic"), both);
        let (merged, candidates) = (one.corpus.clone(), one.candidates);
        one.merge(&other).unwrap();
        assert_eq!((&one.corpus, one.candidates), (&merged, candidates));
        let taken = one.merged.iter().map(|one| (one.seed, one.candidates));
        assert_eq!(taken.collect::<Vec<_>>(), [(2, 96)]);
        // All that it had, and what was tried with larger numbers there is not tried again.
        let mut fresh = Search::new(asked(3));
        fresh.merge(&other).unwrap();
        assert_eq!(fresh.corpus, other.corpus);
        assert!(other.corpus.entries().iter().any(|entry| entry.is_scaled));
        for change in [
            |asked: &mut Asked| asked.kernel = "k-rt".into(),
            |asked: &mut Asked| asked.image_sha256 = "2e".into(),
            |asked: &mut Asked| asked.boot = "preempt=full".into(),
            |asked: &mut Asked| asked.root = true,
            |asked: &mut Asked| asked.grammar = "[[call]]".into(),
        ] {
            let mut foreign = other.clone();
            change(&mut foreign.asked);
            assert!(one.merge(&foreign).is_err(), "{:?}", foreign.asked);
        }
        assert_eq!(one.corpus, merged);
    }

    #[test]
    fn another_search_is_named_by_what_differs() {
        type Change = (fn(&mut Asked), &'static str);
        let own = asked(1);
        assert_eq!(own.difference(&own), None);
        let usual = Asked {
            each: Some(How::default().limit),
            boot: " ".into(),
            ..own.clone()
        };
        assert_eq!(own.difference(&usual), None);
        let changes: [Change; 8] = [
            (
                |asked| asked.kernel = "k-rt".into(),
                "its kernel is \"k-rt\"",
            ),
            (|asked| asked.image_sha256 = "2e".into(), "another build"),
            (
                |asked| asked.boot = "preempt=full".into(),
                "its --boot is \"preempt=full\", and here it is \"\"",
            ),
            (|asked| asked.root = true, "its user is \"root\""),
            (|asked| asked.grammar = "[[call]]".into(), "its --grammar"),
            (
                |asked| asked.each = Some(Nanos::from_millis(2)),
                "its --each is \"2ms\", and here it is \"50ms\"",
            ),
            (|asked| asked.seed = 2, "its seed is \"2\""),
            (|asked| asked.random = true, "its --random is \"given\""),
        ];
        for (change, named) in changes {
            let mut other = own.clone();
            change(&mut other);
            let difference = own.difference(&other).unwrap_or_default();
            assert!(difference.contains(named), "{named}: {difference}");
        }
    }

    /// The same kernel, but each other kind of call has a stretch of its own, which does not grow.
    struct Crowded;

    impl Place for Crowded {
        fn run(&self, candidates: &[String]) -> Result<Vec<Seen>, ScopeError> {
            let grammar = Grammar::default();
            let mut all = Quadratic.run(candidates)?;
            for (text, seen) in candidates.iter().zip(&mut all) {
                let Seen::Ran { stretches, .. } = seen else {
                    continue;
                };
                let calls = grammar.program(text).unwrap().calls;
                stretches.extend(calls.into_iter().map(|call| Stretch {
                    what: "preemption off".into(),
                    function: format!("{} itself", call.name),
                    most: "loop".into(),
                    ns: 1_000_000,
                }));
            }
            Ok(all)
        }
    }

    /// Returns the number of candidates from where a growing stretch is first seen to where it is
    /// at its longest.
    fn candidates_to_grow(seed: u64) -> u64 {
        let mut search = behind_the_sweep(seed);
        let grammar = search.grammar().unwrap();
        let mut first = None;
        loop {
            search.step(&grammar, &Crowded, (48, 1)).unwrap();
            assert!(search.candidates < 10_000, "seed {seed} does not get there");
            let mut entries = search.corpus.entries().iter();
            // A byte is a loop of one step, whatever the program.
            let own = entries.find(|one| one.stretch.function == "quadratic" && one.stretch.ns > 1);
            let Some(own) = own.map(|one| one.stretch.ns) else {
                continue;
            };
            let since = *first.get_or_insert(search.candidates);
            if own == 4096 * 4096 {
                return search.candidates - since;
            }
        }
    }

    #[test]
    fn what_grows_is_scaled_up_at_once_among_much_that_is_longer_and_does_not() {
        let mut all: Vec<u64> = (1..=8).map(candidates_to_grow).collect();
        all.sort_unstable();
        assert!(all[4] <= 96 && all[7] <= 600, "{all:?}");
    }

    /// Records every program that was asked for, in order.
    struct Heard(std::sync::Mutex<Vec<String>>);

    impl Place for Heard {
        fn run(&self, candidates: &[String]) -> Result<Vec<Seen>, ScopeError> {
            self.0.lock().unwrap().extend_from_slice(candidates);
            Crowded.run(candidates)
        }
    }

    #[test]
    fn each_kind_is_tried_by_itself_before_anything_evolves() {
        let heard = Heard(std::sync::Mutex::default());
        let mut search = Search::new(asked(1));
        let grammar = search.grammar().unwrap();
        let first = Evolution::new(&grammar, &search.asked, &Corpus::default());
        let swept = (1..1_000).filter(|number| first.is_swept(*number)).count();
        while search.candidates <= swept as u64 {
            search.step(&grammar, &heard, (48, 1)).unwrap();
        }
        let heard = heard.0.into_inner().unwrap();
        let expected = (0..=swept as u64).map(|number| first.candidate(number).to_string());
        assert_eq!(heard[..=swept], expected.collect::<Vec<_>>());
        assert!(swept > 200, "{swept}");
    }

    #[test]
    fn a_call_that_comes_after_none_that_there_is_is_refused() {
        let own = |after: &str| {
            let text = "[[call]]\nname = \"mine\"\ndoes = \"\"\nsyscall = \"close\"\nafter = ";
            let mut asked = asked(1);
            asked.grammar = format!("{text}\"{after}\"\n");
            Search::new(asked).grammar()
        };
        assert!(own("create").is_ok());
        assert!(own("creat").unwrap_err().contains("found \"creat\""));
    }

    #[test]
    fn what_ends_its_guest_is_told_and_is_no_find() {
        let search = searched(1, 1, 1_000);
        assert!(!search.killers.is_empty());
        let is_find = |text: &str| text.contains("unshare-net");
        assert!(
            !search
                .corpus
                .causes()
                .iter()
                .any(|entry| is_find(&entry.program))
        );
    }
}
