// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a find as short as it can be, and finds the numbers with which it grows.

use punctual_calls::{Call, Grammar, Program};
use punctual_scope::error::ScopeError;
use serde::{Deserialize, Serialize};

use crate::corpus::Entry;
use crate::{Place, Seen, Stretch};

/// The percentage of its stretch that a shorter program must still have.
const STILL: i64 = 90;
/// The factor of a threshold: a length has one if it grows by more than this where a number is
/// doubled, and then no further.
const STEP: i64 = 16;

/// A find.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Find {
    /// The longest stretch, by the program as it is now, in a guest of its own.
    pub stretch: Stretch,
    /// The shortest program that still does it.
    pub program: String,
    /// The program that was found, and the stretch that it had then, in nanoseconds.
    pub found: (String, i64),
    /// With what it grows.
    pub growth: Vec<Growth>,
    /// What a run beside it came to; null where nobody asked for one.
    #[serde(default)]
    pub confirmed: Option<Confirmed>,
}

/// What a run of the probe timer beside a program came to, in nanoseconds of virtual time. What
/// is not known is null, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Confirmed {
    /// The run, by its id in the store.
    pub run: String,
    /// The latest of its own samples.
    pub sampled_ns: Option<i64>,
    /// The latest of all of its arrivals, as foretold.
    pub foretold_ns: Option<i64>,
    /// The latest aimed sample, which is proof as its own samples are.
    pub reached_ns: Option<i64>,
    /// The function that ran most of what kept that one waiting.
    pub function: Option<String>,
    /// What kept that one waiting, as a sentence.
    #[serde(default)]
    pub cause: Option<String>,
    /// Why something of it is not known.
    pub why_not: Option<String>,
}

/// The length of a find's stretch by one number of its program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Growth {
    /// Which number: `size of mmap`, `times of create`.
    pub with: String,
    /// The number, and the length with it in nanoseconds, null where its guest was lost; that of
    /// the program is the last but those that are larger.
    pub lengths: Vec<(u64, Option<i64>)>,
    /// How it grows.
    pub order: Order,
}

impl Growth {
    /// Returns each number with the length in nanoseconds, where that is known.
    pub fn known(&self) -> Vec<(u64, i64)> {
        known(&self.lengths)
    }
}

fn known(lengths: &[(u64, Option<i64>)]) -> Vec<(u64, i64)> {
    let pair = |(number, ns): &(u64, Option<i64>)| Some((*number, (*ns)?));
    lengths.iter().filter_map(pair).collect()
}

/// How a length grows where a number is doubled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// By less than a tenth.
    None,
    /// By less than it does.
    LessThanLinear,
    /// As it does.
    Linear,
    /// By more, and less than its square.
    MoreThanLinear,
    /// As its square.
    Quadratic,
    /// By more.
    MoreThanQuadratic,
    /// It takes the program's own number: half as much does less than a sixteenth of it, and
    /// twice as much no more.
    Threshold,
    /// It is shorter with a larger number: what ran before in its guest matters, too.
    Irregular,
    /// Too few lengths are known.
    Unknown,
}

impl Order {
    /// Returns the order of lengths by numbers that double, of which `own` is the program's. The
    /// largest numbers up to there count, because a constant part weighs least in them. Above it, a
    /// limit may be met. An unknown length says nothing.
    fn of(lengths: &[(u64, Option<i64>)], own: u64) -> Self {
        let up_to = lengths.partition_point(|(number, _)| *number <= own);
        let (up_to, above) = lengths.split_at(up_to);
        let (order, above) = (Self::up_to(&known(up_to)), known(above));
        let no_more = |(_, length): &(u64, i64), by: i64| length * 10 < by * 11;
        match (order, up_to) {
            (Self::MoreThanQuadratic | Self::Unknown, [.., (_, Some(short)), (_, Some(long))])
                if short * STEP < *long
                    && !above.is_empty()
                    && above.iter().all(|one| no_more(one, *long)) =>
            {
                Self::Threshold
            }
            _ => order,
        }
    }

    fn up_to(lengths: &[(u64, i64)]) -> Self {
        let [.., (small, short), (large, long)] = lengths else {
            return Self::Unknown;
        };
        let falls = |pair: &[(u64, i64)]| pair[1].1 * 10 < pair[0].1 * 9;
        if lengths.windows(2).any(falls) {
            return Self::Irregular;
        }
        if *short <= 0 || *small == 0 || small == large {
            return Self::Unknown;
        }
        let by = (*large as f64 / *small as f64).log2();
        let slope = (*long as f64 / *short as f64).log2() / by;
        match slope {
            slope if slope < 0.14 => Self::None,
            slope if slope < 0.75 => Self::LessThanLinear,
            slope if slope < 1.25 => Self::Linear,
            slope if slope < 1.75 => Self::MoreThanLinear,
            slope if slope < 2.25 => Self::Quadratic,
            _ => Self::MoreThanQuadratic,
        }
    }

    /// Returns the order in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "does not grow",
            Self::LessThanLinear => "grows less than linearly",
            Self::Linear => "grows linearly",
            Self::MoreThanLinear => "grows more than linearly",
            Self::Quadratic => "grows quadratically",
            Self::MoreThanQuadratic => "grows more than quadratically",
            Self::Threshold => "has a threshold",
            Self::Irregular => "varies",
            Self::Unknown => "growth unknown",
        }
    }

    /// Returns true if it grows.
    pub fn grows(self) -> bool {
        !matches!(
            self,
            Self::None | Self::Threshold | Self::Irregular | Self::Unknown
        )
    }
}

/// A change that makes a program smaller.
#[derive(Clone, Debug, PartialEq)]
enum Edit {
    /// Leaves this call out.
    Remove(Vec<usize>),
    /// Makes the calls of its children the program's own.
    Unwrap(Vec<usize>),
    /// Makes the call once.
    Once(Vec<usize>),
    /// Gives the call its least size.
    Least(Vec<usize>),
    /// Makes the call half as often.
    Rarer(Vec<usize>),
    /// Halves the size of the call.
    Halved(Vec<usize>),
}

/// The result for a program that was kept for its stretch.
#[derive(Clone, Debug, PartialEq)]
pub enum Minimised {
    /// The shortest program that still does it.
    Find(Box<Find>),
    /// No guest of its own has shown half of the stretch.
    Gone(Gone),
    /// The stretch takes no call at all: the start and the end of each program show it.
    WithoutCalls(Stretch),
}

/// A stretch that no guest of its own has shown again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gone {
    /// The stretch.
    #[serde(flatten)]
    pub stretch: Stretch,
    /// Why none has, as a sentence without its full stop.
    pub why: String,
}

/// Makes a find of a program that was kept for its stretch.
pub fn minimise(
    grammar: &Grammar,
    place: &dyn Place,
    entry: &Entry,
) -> Result<Minimised, ScopeError> {
    let gone = |why| {
        let stretch = entry.stretch.clone();
        Ok(Minimised::Gone(Gone { stretch, why }))
    };
    let program = match grammar.program(&entry.program) {
        Ok(program) => program,
        Err(why) => return gone(format!("the grammar does not have its program ({why})")),
    };
    let mut shrinking = Shrinking {
        grammar,
        place,
        least: entry.stretch.ns / 2,
        program: Program::default(),
        stretch: entry.stretch.clone(),
    };
    if let Some(why) = shrinking.refuses(program)? {
        return gone(why);
    }
    shrinking.least = shrinking.stretch.ns * STILL / 100;
    while shrinking.shrink(Shrinking::fewer_calls)? {}
    while shrinking.shrink(Shrinking::smallest_numbers)? {}
    while shrinking.shrink(Shrinking::smaller_numbers)? {}
    if shrinking.program.calls.is_empty() {
        return Ok(Minimised::WithoutCalls(shrinking.stretch));
    }
    Ok(Minimised::Find(Box::new(Find {
        growth: shrinking.growth()?,
        stretch: shrinking.stretch,
        found: (entry.program.clone(), entry.stretch.ns),
        program: shrinking.program.to_string(),
        confirmed: None,
    })))
}

struct Shrinking<'a> {
    grammar: &'a Grammar,
    place: &'a dyn Place,
    /// The minimum length of its stretch, in nanoseconds.
    least: i64,
    program: Program,
    /// Its stretch in a guest of its own.
    stretch: Stretch,
}

impl Shrinking<'_> {
    /// Returns the lengths of the cause's stretch by these programs; 0 where there is none, and
    /// `None` where the guest was lost.
    fn lengths(&self, programs: &[Program]) -> Result<Vec<Option<i64>>, ScopeError> {
        let texts: Vec<String> = programs.iter().map(ToString::to_string).collect();
        let seen = self.place.run(&texts)?;
        let length = |seen: &Seen| match seen {
            Seen::Ran { .. } => Some(seen.of(&self.stretch).map_or(0, |found| found.ns)),
            Seen::Killed(_) => None,
        };
        Ok(seen.iter().map(length).collect())
    }

    /// Goes on with a program if its stretch is long enough in a guest of its own. Returns why it
    /// does not; `None` if it does. In a guest with others, what those have left behind may be
    /// seen.
    fn refuses(&mut self, program: Program) -> Result<Option<String>, ScopeError> {
        let seen = self.place.run(&[program.to_string()])?;
        if let Some(Seen::Killed(why)) = seen.first() {
            return Ok(Some(format!("a guest of its own was lost ({why})")));
        }
        let alone = seen.first().and_then(|seen| seen.of(&self.stretch));
        let Some(stretch) = alone.filter(|alone| alone.ns >= self.least).cloned() else {
            return Ok(Some("a guest of its own did not show it".to_owned()));
        };
        (self.program, self.stretch) = (program, stretch);
        Ok(None)
    }

    /// Tries all edits, each by itself, then as many as possible together. Returns true if any was
    /// of use.
    fn shrink(&mut self, edits: fn(&Self) -> Vec<Edit>) -> Result<bool, ScopeError> {
        let edits = edits(self);
        let (whole, grammar) = (self.program.clone(), self.grammar);
        let edited = |some: &[Edit]| {
            let mut program = whole.clone();
            // From behind, so that those before are where they were.
            some.iter()
                .rev()
                .for_each(|edit| edit.apply(&mut program, grammar));
            program
        };
        let each: Vec<Program> = edits.chunks(1).map(edited).collect();
        if each.is_empty() {
            return Ok(false);
        }
        let least = self.least;
        let is_enough = |length: Option<i64>| length.is_some_and(|ns| ns >= least);
        let lengths = self.lengths(&each)?;
        let of_use = edits.iter().zip(lengths);
        let of_use = of_use.filter(|(_, length)| is_enough(*length));
        let of_use: Vec<Edit> = of_use.map(|(edit, _)| edit.clone()).collect();
        if of_use.is_empty() {
            return Ok(false);
        }
        let together = (1..=of_use.len()).map(|count| edited(&of_use[..count]));
        let together: Vec<Program> = together.collect();
        let lengths = self.lengths(&together)?;
        let longest = lengths.into_iter().rposition(is_enough);
        // The first one alone was of use before, but in another guest.
        let Some(number) = longest else {
            return Ok(false);
        };
        if self.refuses(together[number].clone())?.is_none() {
            return Ok(true);
        }
        // Others in its guest had helped it: one edit more at a time, each in a guest of its own.
        let (mut kept, mut is_any) = (Vec::new(), false);
        for edit in of_use {
            kept.push(edit);
            if self.refuses(edited(&kept))?.is_none() {
                is_any = true;
            } else {
                kept.pop();
            }
        }
        Ok(is_any)
    }

    fn fewer_calls(&self) -> Vec<Edit> {
        let mut edits = Vec::new();
        for path in paths(&self.program.calls) {
            let is_block =
                call(&self.program.calls, &path).is_some_and(|call| !call.body.is_empty());
            edits.push(Edit::Remove(path.clone()));
            if is_block {
                edits.push(Edit::Unwrap(path));
            }
        }
        edits
    }

    fn smallest_numbers(&self) -> Vec<Edit> {
        self.of_numbers(Edit::Once, Edit::Least)
    }

    fn smaller_numbers(&self) -> Vec<Edit> {
        self.of_numbers(Edit::Rarer, Edit::Halved)
    }

    /// Returns one edit for each number that is not the least.
    fn of_numbers(&self, times: fn(Vec<usize>) -> Edit, size: fn(Vec<usize>) -> Edit) -> Vec<Edit> {
        let mut edits = Vec::new();
        for path in paths(&self.program.calls) {
            let Some(call) = call(&self.program.calls, &path) else {
                continue;
            };
            let kind = self.grammar.kind(&call.name);
            let least = kind.and_then(|kind| kind.size).map(|(least, _)| least);
            edits.extend((call.times > 1).then(|| times(path.clone())));
            edits.extend((call.size > least).then(|| size(path)));
        }
        edits
    }

    /// Returns the lengths by each number that is not the least: halved three times, and doubled
    /// twice.
    fn growth(&self) -> Result<Vec<Growth>, ScopeError> {
        let mut all = Vec::new();
        for path in paths(&self.program.calls) {
            let Some(own) = call(&self.program.calls, &path) else {
                continue;
            };
            let numbers = [("times", own.times), ("size", own.size.unwrap_or(1))];
            for (what, number) in numbers.into_iter().filter(|(_, number)| *number > 1) {
                let scaled = [
                    number / 8,
                    number / 4,
                    number / 2,
                    number,
                    number * 2,
                    number * 4,
                ];
                let scaled: Vec<u64> = scaled.into_iter().filter(|one| *one > 0).collect();
                let with = |value: &u64| {
                    let mut program = self.program.clone();
                    if let Some(call) = call_mut(&mut program.calls, &path) {
                        match what {
                            "times" => call.times = *value,
                            _ => call.size = Some(*value),
                        }
                    }
                    program
                };
                let programs: Vec<Program> = scaled.iter().map(with).collect();
                let lengths = self.lengths(&programs)?;
                let lengths = scaled.into_iter().zip(lengths);
                let lengths: Vec<(u64, Option<i64>)> = lengths.collect();
                all.push(Growth {
                    with: format!("{what} of {}", own.name),
                    order: Order::of(&lengths, number),
                    lengths,
                });
            }
        }
        Ok(all)
    }
}

impl Edit {
    fn apply(&self, program: &mut Program, grammar: &Grammar) {
        let calls = &mut program.calls;
        match self {
            Self::Remove(path) => {
                if let Some((block, at)) = block(calls, path) {
                    block.remove(at);
                }
            }
            Self::Unwrap(path) => {
                if let Some((block, at)) = block(calls, path) {
                    let body = block.remove(at).body;
                    block.splice(at..at, body);
                }
            }
            Self::Once(path) => {
                if let Some(call) = call_mut(calls, path) {
                    call.times = 1;
                }
            }
            Self::Rarer(path) => {
                if let Some(call) = call_mut(calls, path) {
                    call.times = (call.times / 2).max(1);
                }
            }
            Self::Halved(path) => {
                if let Some(call) = call_mut(calls, path) {
                    let least = grammar.kind(&call.name).and_then(|kind| kind.size);
                    let least = least.map_or(1, |(least, _)| least);
                    call.size = call.size.map(|size| (size / 2).max(least));
                }
            }
            Self::Least(path) => {
                if let Some(call) = call_mut(calls, path) {
                    let size = grammar.kind(&call.name).and_then(|kind| kind.size);
                    call.size = size.map(|(least, _)| least);
                }
            }
        }
    }
}

/// Returns the paths of calls, those of children after their own.
fn paths(calls: &[Call]) -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        all.push(vec![at]);
        let inner = paths(&call.body).into_iter();
        all.extend(inner.map(|path| [vec![at], path].concat()));
    }
    all
}

fn call<'a>(calls: &'a [Call], path: &[usize]) -> Option<&'a Call> {
    let (first, rest) = path.split_first()?;
    let found = calls.get(*first)?;
    if rest.is_empty() {
        return Some(found);
    }
    call(&found.body, rest)
}

fn call_mut<'a>(calls: &'a mut Vec<Call>, path: &[usize]) -> Option<&'a mut Call> {
    let (block, at) = block(calls, path)?;
    block.get_mut(at)
}

/// Returns the calls among which a call is, and its index.
fn block<'a>(calls: &'a mut Vec<Call>, path: &[usize]) -> Option<(&'a mut Vec<Call>, usize)> {
    let (first, rest) = path.split_first()?;
    if rest.is_empty() {
        return (*first < calls.len()).then_some((calls, *first));
    }
    block(&mut calls.get_mut(*first)?.body, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_largest_numbers() {
        let order = |lengths: &[(u64, i64)]| {
            let all = lengths.iter().map(|(number, ns)| (*number, Some(*ns)));
            Order::of(&all.collect::<Vec<_>>(), 512)
        };
        assert_eq!(order(&[(1, 500), (2, 510), (4, 505)]), Order::None);
        assert_eq!(order(&[(1, 900), (64, 1_000), (128, 2_000)]), Order::Linear);
        assert_eq!(order(&[(256, 100), (512, 400)]), Order::Quadratic);
        assert_eq!(order(&[(256, 100), (512, 900)]), Order::MoreThanQuadratic);
        assert_eq!(order(&[(256, 100), (512, 150)]), Order::LessThanLinear);
        assert_eq!(order(&[(1, 900), (2, 300), (4, 900)]), Order::Irregular);
        assert_eq!(order(&[(512, 150)]), Order::Unknown);
        assert_eq!(order(&[(256, 0), (512, 150)]), Order::Unknown);
        // Twice as much does no more: the number is needed, and nothing grows with it.
        for half in [0, 10] {
            let lengths = [(256, half), (512, 1_000), (1_024, 1_010), (2_048, 990)];
            assert_eq!(order(&lengths), Order::Threshold);
        }
        let growing = [(256, 100), (512, 900), (1_024, 8_000)];
        assert_eq!(order(&growing), Order::MoreThanQuadratic);
        let cubic = [(128, 16), (256, 125), (512, 1_000), (1_024, 1_000)];
        assert_eq!(order(&cubic), Order::MoreThanQuadratic);
        // A larger number may even do a little less.
        let killed = [(128, 5), (256, 6), (512, 1_090), (1_024, 970)];
        assert_eq!(order(&killed), Order::Threshold);
        // A limit is met above.
        let limited = [(256, 500), (512, 1_000), (1_024, 1_000)];
        assert_eq!(order(&limited), Order::Linear);
    }

    /// A kernel that is slow to write into a pipe, once there has been a pipe in its guest.
    struct Leftovers;

    impl Place for Leftovers {
        fn run(&self, candidates: &[String]) -> Result<Vec<Seen>, ScopeError> {
            let grammar = Grammar::default();
            let mut is_made = false;
            let see = |text: &String| {
                let program = grammar.program(text).unwrap();
                let first = |name: &str| program.calls.iter().find(|call| call.name == name);
                is_made |= first("pipe").is_some();
                let written = first("write-pipe").filter(|_| is_made);
                let size = written.and_then(|call| call.size).unwrap_or(0);
                Seen::Ran {
                    stretches: vec![slow(size as i64)],
                    told: String::new(),
                }
            };
            Ok(candidates.iter().map(see).collect())
        }
    }

    fn slow(ns: i64) -> Stretch {
        Stretch {
            what: "preemption off".into(),
            function: "pipe_write".into(),
            most: "pipe_write".into(),
            ns,
        }
    }

    #[test]
    fn what_only_others_in_its_guest_have_left_behind_is_not_made_shorter() {
        let entry = Entry {
            stretch: slow(4_096),
            program: "sleep 1024; pipe; write-pipe 4096".into(),
            candidate: 0,
            is_scaled: false,
        };
        let made = minimise(&Grammar::default(), &Leftovers, &entry).unwrap();
        let Minimised::Find(find) = made else {
            panic!("{made:?}");
        };
        assert_eq!(find.program, "pipe; write-pipe 4096");
        assert_eq!(find.stretch.ns, 4_096);
    }

    /// A kernel that takes n⁵ steps to write n bytes into a pipe, and panics with more than 1,024.
    struct Panics;

    impl Place for Panics {
        fn run(&self, candidates: &[String]) -> Result<Vec<Seen>, ScopeError> {
            let grammar = Grammar::default();
            let see = |text: &String| {
                let calls = grammar.program(text).unwrap().calls;
                let written = calls.iter().find(|call| call.name == "write-pipe");
                let size = written.and_then(|call| call.size).unwrap_or(0);
                if size > 1_024 {
                    return Seen::Killed("the kernel has panicked".into());
                }
                Seen::Ran {
                    stretches: vec![slow(size.pow(5) as i64)],
                    told: String::new(),
                }
            };
            Ok(candidates.iter().map(see).collect())
        }
    }

    #[test]
    fn a_lost_guest_has_no_length_and_is_no_sign_of_a_threshold() {
        let grammar = Grammar::default();
        let entry = |program: &str| Entry {
            stretch: slow(1_024_i64.pow(5)),
            program: program.into(),
            candidate: 0,
            is_scaled: false,
        };
        let made = minimise(&grammar, &Panics, &entry("pipe; write-pipe 1024")).unwrap();
        let Minimised::Find(find) = made else {
            panic!("{made:?}");
        };
        let growth = &find.growth[0];
        assert_eq!(growth.lengths[4..], [(2_048, None), (4_096, None)]);
        assert_eq!(growth.known().len(), 4);
        assert_eq!(growth.order, Order::MoreThanQuadratic);
        // Nobody knows what half the number does.
        let lengths = [
            (256, Some(1)),
            (512, None),
            (1_024, Some(1_000)),
            (2_048, Some(1_000)),
        ];
        assert_eq!(Order::of(&lengths, 1_024), Order::MoreThanQuadratic);
        for (program, why) in [
            ("pipe; write-pipe 2048", "lost (the kernel has panicked)"),
            ("pipe; write-pipe 512", "did not show it"),
            ("pipes", "there is no call \"pipes\""),
        ] {
            let made = minimise(&grammar, &Panics, &entry(program)).unwrap();
            let Minimised::Gone(gone) = made else {
                panic!("{made:?}");
            };
            assert!(gone.why.contains(why), "{}", gone.why);
        }
    }

    #[test]
    fn calls_of_children_are_edited_where_they_are() {
        let grammar = Grammar::default();
        let text = "pipe; fork *4 { sleep 2048 *2; reap }; reap";
        let edited = |edits: &[Edit]| {
            let mut program = grammar.program(text).unwrap();
            edits
                .iter()
                .rev()
                .for_each(|edit| edit.apply(&mut program, &grammar));
            program.to_string()
        };
        let program = grammar.program(text).unwrap();
        let all = paths(&program.calls);
        assert_eq!(all, [vec![0], vec![1], vec![1, 0], vec![1, 1], vec![2]]);
        let two = [Edit::Remove(vec![0]), Edit::Least(vec![1, 0])];
        assert_eq!(edited(&two), "fork *4 { sleep 1024 *2; reap }; reap");
        assert_eq!(
            edited(&[Edit::Unwrap(vec![1]), Edit::Once(vec![1, 0])]),
            "pipe; sleep 2048; reap; reap"
        );
    }
}
