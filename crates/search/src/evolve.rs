// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes candidates: afresh, or from those that were found.

use fastrand::Rng;
use punctual_calls::{Call, Grammar, Kind, Program};

use crate::Asked;
use crate::corpus::Corpus;

/// The maximum number of calls in a program.
const LONGEST: usize = 14;
/// The maximum number of processes and threads that a program makes.
const CHILDREN: u64 = 400;
/// One of this many candidates is made afresh.
const AFRESH: u64 = 6;
/// One of this many calls is of a kind that the user has added, if there are any.
const OWN: u8 = 3;
/// The factor by which numbers are scaled up to try whether a stretch grows with them.
const LARGER: u64 = 16;

/// The maximum depth to which the things that a call needs are made.
const NESTED: usize = 4;

/// A change of one call of this kind.
type Change<'a> = &'a dyn Fn(&mut Call, &Kind);

/// Makes candidates.
pub struct Evolution<'a> {
    kinds: Vec<&'a Kind>,
    /// The kinds that the user has added.
    own: Vec<&'a Kind>,
    grammar: &'a Grammar,
    seed: u64,
    /// The programs of the corpus, the best first.
    parents: Vec<Program>,
    /// The first candidates: each kind by itself. Empty if nothing evolves.
    sweep: Vec<Program>,
}

impl<'a> Evolution<'a> {
    /// Creates an evolution from this corpus.
    pub fn new(grammar: &'a Grammar, asked: &Asked, corpus: &Corpus) -> Self {
        let may = |kind: &&Kind| asked.root || !kind.root;
        let mut parents: Vec<Program> = Vec::new();
        for entry in corpus.entries().iter().filter(|_| !asked.random) {
            // What an earlier grammar knew may be unknown by now.
            let program = grammar.program(&entry.program);
            if let Ok(program) = program {
                if !parents.contains(&program) {
                    parents.push(program);
                }
            }
        }
        let added = Grammar::parse(&asked.grammar).ok();
        let added = added.filter(|_| !asked.grammar.is_empty());
        let is_own = |kind: &&Kind| {
            added
                .as_ref()
                .is_some_and(|own| own.kind(&kind.name).is_some())
        };
        let kinds: Vec<&Kind> = grammar.kinds().filter(may).collect();
        let mut evolution = Self {
            own: kinds.iter().copied().filter(is_own).collect(),
            kinds,
            grammar,
            seed: asked.seed,
            parents,
            sweep: Vec::new(),
        };
        if !asked.random {
            evolution.sweep = evolution.each_alone();
        }
        evolution
    }

    /// Makes a program of each kind of call by itself, the user's own kinds first. The call has its
    /// largest size, as often as it may be. It stands after one of each thing that it needs, and in
    /// a second program after as many as there may be. Most stretches that are known to grow need
    /// no more than that. The seed decides the order, since what one program leaves behind may be
    /// seen by the next.
    fn each_alone(&self) -> Vec<Program> {
        let mut kinds = self.kinds.clone();
        Rng::with_seed(mixed(self.seed, 0)).shuffle(&mut kinds);
        let mut made: Vec<Program> = Vec::new();
        for kind in self.own.iter().chain(&kinds) {
            for is_often in [false, true] {
                let mut calls = Vec::new();
                self.put(kind, largest(kind), is_often, NESTED, &mut calls);
                let mut program = Program { calls };
                restrain(&mut program);
                if !made.contains(&program) {
                    made.push(program);
                }
            }
        }
        made
    }

    /// Puts a call after all that it needs and that is not there yet, to a maximum depth.
    fn put(&self, kind: &Kind, call: Call, is_often: bool, depth: usize, calls: &mut Vec<Call>) {
        if depth > 0 {
            for need in kind.needs() {
                let makes = |kind: &Kind| kind.makes.iter().any(|made| made == need);
                let is_there = |call: &Call| self.grammar.kind(&call.name).is_some_and(makes);
                if calls.iter().any(is_there) {
                    continue;
                }
                let able = self.kinds.iter().filter(|kind| makes(kind));
                let able = able.filter(|kind| kind.needs().all(|inner| inner != need));
                if let Some(maker) = able.min_by_key(|kind| kind.needs().count()) {
                    self.put(maker, made(maker, is_often), is_often, depth - 1, calls);
                }
            }
            let first = kind.after.as_ref();
            let first = first.filter(|first| !calls.iter().any(|call| call.name == **first));
            if let Some(first) = first.and_then(|first| self.grammar.kind(first)) {
                self.put(first, made(first, is_often), is_often, depth - 1, calls);
            }
        }
        calls.push(call);
    }

    /// Returns true if the candidate of this number is one of the first, which the seed only
    /// orders.
    pub fn is_swept(&self, number: u64) -> bool {
        (1..=self.sweep.len() as u64).contains(&number)
    }

    /// Returns the candidate of this number.
    pub fn candidate(&self, number: u64) -> Program {
        let mut rng = Rng::with_seed(mixed(self.seed, number));
        // What there is without any program is known from the first one on.
        if number == 0 {
            return Program::default();
        }
        if let Some(program) = self.sweep.get(number as usize - 1) {
            return program.clone();
        }
        let mut program = if self.parents.is_empty() || rng.u64(..AFRESH) == 0 {
            self.afresh(&mut rng)
        } else {
            let mut program = self.parent(&mut rng).clone();
            for _ in 0..=rng.u8(..3) {
                self.mutate(&mut program, &mut rng);
            }
            program
        };
        restrain(&mut program);
        program
    }

    /// Returns programs with larger numbers, one for each way that makes a different program:
    /// larger sizes, the largest sizes, and more repetitions.
    pub fn larger(&self, program: &str) -> Vec<Program> {
        let Ok(parent) = self.grammar.program(program) else {
            return Vec::new();
        };
        let by = |value: u64, most: u64| value.saturating_mul(LARGER).min(most);
        let sizes = |call: &mut Call, kind: &Kind| {
            call.size = call
                .size
                .zip(kind.size)
                .map(|(size, (_, most))| by(size, most));
        };
        let largest = |call: &mut Call, kind: &Kind| call.size = kind.size.map(|(_, most)| most);
        let times = |call: &mut Call, kind: &Kind| call.times = by(call.times, kind.times.1);
        let ways: [Change<'_>; 3] = [&sizes, &largest, &times];
        let mut made: Vec<Program> = Vec::new();
        for way in ways {
            let mut child = parent.clone();
            self.each(&mut child.calls, way);
            restrain(&mut child);
            if child != parent && !made.contains(&child) {
                made.push(child);
            }
        }
        made
    }

    fn each(&self, calls: &mut [Call], change: Change<'_>) {
        for call in calls {
            if let Some(kind) = self.grammar.kind(&call.name) {
                change(call, kind);
            }
            self.each(&mut call.body, change);
        }
    }

    /// Returns one program of the corpus: the longer its stretch is among all, the more often.
    fn parent(&self, rng: &mut Rng) -> &Program {
        let (chance, count) = (rng.f64(), self.parents.len());
        let rank = (chance * chance * chance * count as f64) as usize;
        &self.parents[rank.min(count - 1)]
    }

    fn afresh(&self, rng: &mut Rng) -> Program {
        let mut program = Program::default();
        for _ in 0..rng.usize(1..6) {
            let call = self.call(rng);
            self.insert(&mut program.calls, call, rng);
        }
        program
    }

    fn mutate(&self, program: &mut Program, rng: &mut Rng) {
        let calls = block(&mut program.calls, rng);
        match rng.u8(..10) {
            0..=3 => self.scale(calls, rng),
            4 | 5 => {
                let call = self.call(rng);
                self.insert(calls, call, rng);
            }
            6 if calls.len() > 1 => {
                let at = rng.usize(..calls.len());
                calls.remove(at);
            }
            7 if calls.len() > 1 => {
                let (one, other) = (rng.usize(..calls.len()), rng.usize(..calls.len()));
                calls.swap(one, other);
            }
            8 if !calls.is_empty() => self.wrap(calls, rng),
            _ => {
                let other = &self.parent(rng).calls;
                let keep = rng.usize(..=calls.len());
                let from = rng.usize(..=other.len());
                calls.truncate(keep);
                calls.extend_from_slice(&other[from..]);
            }
        }
    }

    /// Changes a size, or a number of times, by a power of two.
    fn scale(&self, calls: &mut [Call], rng: &mut Rng) {
        let Some(call) = rng.choice(calls) else {
            return;
        };
        let Some(kind) = self.grammar.kind(&call.name) else {
            return;
        };
        let step = |value: u64, (least, most): (u64, u64), rng: &mut Rng| {
            let by = 1 << rng.u32(1..5);
            // Longer stretches are where there is more: upwards twice as often.
            let scaled = match rng.u8(..6) {
                0 | 1 => value / by,
                5 => most,
                _ => value.saturating_mul(by),
            };
            scaled.clamp(least, most)
        };
        match (kind.size, call.size) {
            (Some(range), Some(size)) if rng.bool() => call.size = Some(step(size, range, rng)),
            _ => call.times = step(call.times, kind.times, rng),
        }
    }

    /// Lets a child do one of the calls from now on, or make one more.
    fn wrap(&self, calls: &mut Vec<Call>, rng: &mut Rng) {
        let at = rng.usize(..calls.len());
        if self
            .grammar
            .kind(&calls[at].name)
            .is_some_and(|kind| kind.block)
        {
            let call = self.call(rng);
            calls[at].body.push(call);
            return;
        }
        let blocks: Vec<&&Kind> = self.kinds.iter().filter(|kind| kind.block).collect();
        if let Some(kind) = rng.choice(blocks) {
            let inner = calls.remove(at);
            let mut outer = of_kind(kind, rng);
            outer.body = vec![inner];
            calls.insert(at, outer);
        }
    }

    fn kind(&self, rng: &mut Rng) -> &'a Kind {
        match rng.choice(&self.own) {
            Some(own) if rng.u8(..OWN) == 0 => own,
            _ => self.kinds[rng.usize(..self.kinds.len())],
        }
    }

    fn call(&self, rng: &mut Rng) -> Call {
        let kind = self.kind(rng);
        let mut call = of_kind(kind, rng);
        if kind.block {
            for _ in 0..rng.usize(1..3) {
                call.body.push(of_kind(self.kind(rng), rng));
            }
        }
        call
    }

    /// Puts a call somewhere, after what it needs. Things that are missing are made before it.
    fn insert(&self, calls: &mut Vec<Call>, call: Call, rng: &mut Rng) {
        let mut at = rng.usize(..=calls.len());
        let needs: Vec<String> = needs(self.grammar, &call);
        for need in needs {
            let can = |call: &Call| {
                let kind = self.grammar.kind(&call.name);
                kind.is_some_and(|kind| kind.makes.contains(&need))
            };
            if let Some(made) = calls.iter().position(can) {
                at = at.max(made + 1);
                continue;
            }
            let able = self.kinds.iter().filter(|kind| kind.makes.contains(&need));
            let able: Vec<&&Kind> = able.collect();
            if let Some(one) = rng.choice(able) {
                let one = of_kind(one, rng);
                // What that one needs itself, too; no kind needs what it makes of nothing.
                let before = at.min(calls.len());
                calls.insert(before, one);
                at = before + 1;
            }
        }
        let kind = self.grammar.kind(&call.name);
        if let Some(first) = kind.and_then(|kind| kind.after.as_ref()) {
            if let Some(before) = calls.iter().position(|call| call.name == *first) {
                at = at.max(before + 1);
            } else if let Some(first) = self.grammar.kind(first) {
                at = at.min(calls.len());
                calls.insert(at, of_kind(first, rng));
                at += 1;
            }
        }
        calls.insert(at.min(calls.len()), call);
    }
}

/// Returns a call of this kind with its largest size, as often as it may be.
fn largest(kind: &Kind) -> Call {
    Call {
        name: kind.name.clone(),
        size: kind.size.map(|(_, most)| most),
        times: kind.times.1,
        body: Vec::new(),
    }
}

/// Returns a call that makes what others need: a large one, or as many small ones as there may be.
/// Many large ones take longer than a program has.
fn made(kind: &Kind, is_often: bool) -> Call {
    let ((least, most), times) = (kind.size.unwrap_or_default(), kind.times);
    Call {
        size: kind.size.map(|_| if is_often { least } else { most }),
        times: if is_often { times.1 } else { times.0 },
        ..largest(kind)
    }
}

/// Returns a call of this kind, with random numbers.
fn of_kind(kind: &Kind, rng: &mut Rng) -> Call {
    Call {
        name: kind.name.clone(),
        size: kind.size.map(|range| power(range, rng)),
        // Once is what most calls do.
        times: if rng.bool() {
            kind.times.0
        } else {
            power(kind.times, rng)
        },
        body: Vec::new(),
    }
}

/// Returns the needs of a call and of its children's calls.
fn needs(grammar: &Grammar, call: &Call) -> Vec<String> {
    let own = grammar.kind(&call.name).into_iter().flat_map(Kind::needs);
    let mut needs: Vec<String> = own.map(str::to_owned).collect();
    needs.extend(
        call.body
            .iter()
            .flat_map(|inner| self::needs(grammar, inner)),
    );
    needs.sort();
    needs.dedup();
    needs
}

/// Returns the calls of the program, or of one of its children.
fn block<'a>(calls: &'a mut Vec<Call>, rng: &mut Rng) -> &'a mut Vec<Call> {
    let blocks = calls.iter().enumerate();
    let blocks: Vec<usize> = blocks
        .filter(|(_, call)| !call.body.is_empty())
        .map(|(at, _)| at)
        .collect();
    if blocks.is_empty() || rng.u8(..3) > 0 {
        return calls;
    }
    let at = blocks[rng.usize(..blocks.len())];
    &mut calls[at].body
}

/// Returns a power of two in a range, or one of its ends.
fn power((least, most): (u64, u64), rng: &mut Rng) -> u64 {
    let powers = (most / least).ilog2();
    (least << rng.u32(..=powers)).min(most)
}

/// Limits the length, the depth and the number of children of a program.
fn restrain(program: &mut Program) {
    let mut left = LONGEST;
    let mut children = CHILDREN;
    cut(&mut program.calls, 0, &mut left, 1, &mut children);
}

fn cut(calls: &mut Vec<Call>, depth: usize, left: &mut usize, each: u64, children: &mut u64) {
    let fits = (*left).min(calls.len());
    calls.truncate(fits);
    *left -= fits;
    for call in calls {
        if call.body.is_empty() && !["fork", "thread"].contains(&call.name.as_str()) {
            continue;
        }
        call.times = call.times.min((*children / each).max(1));
        *children = children.saturating_sub(call.times * each);
        if depth + 1 < 2 {
            cut(&mut call.body, depth + 1, left, each * call.times, children);
        } else {
            call.body.clear();
        }
    }
}

/// Returns a number of 64 bits that has nothing to do with its neighbours' (`SplitMix64`).
fn mixed(seed: u64, number: u64) -> u64 {
    let mut word = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(number.wrapping_mul(0xbf58_476d_1ce4_e5b9));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(root: bool) -> Asked {
        Asked {
            kernel: String::new(),
            image_sha256: String::new(),
            boot: String::new(),
            seed: 3,
            root,
            random: false,
            grammar: String::new(),
            each: None,
        }
    }

    fn count(calls: &[Call]) -> usize {
        calls.iter().map(|call| 1 + count(&call.body)).sum()
    }

    #[test]
    fn candidates_are_short_can_be_read_again_and_do_what_an_ordinary_user_may() {
        let grammar = Grammar::default();
        let mut corpus = Corpus::default();
        for number in 0..40 {
            let evolution = Evolution::new(&grammar, &asked(false), &corpus);
            let text = evolution.candidate(number).to_string();
            let stretch = crate::Stretch {
                what: String::new(),
                function: number.to_string(),
                most: String::new(),
                ns: number as i64,
            };
            corpus.take(&text, number, vec![stretch]);
        }
        let evolution = Evolution::new(&grammar, &asked(false), &corpus);
        for number in 0..2_000 {
            let program = evolution.candidate(number);
            assert!(count(&program.calls) <= LONGEST, "{program}");
            assert_eq!(grammar.program(&program.to_string()).as_ref(), Ok(&program));
            for call in &program.calls {
                assert!(!grammar.kind(&call.name).unwrap().root, "{program}");
            }
        }
        let evolution = Evolution::new(&grammar, &asked(true), &corpus);
        let all = (0..2_000).map(|number| evolution.candidate(number).to_string());
        assert!(all.filter(|text| text.contains("lock-all")).count() > 5);
    }

    #[test]
    fn each_kind_is_first_tried_by_itself_as_large_as_it_goes() {
        let own = "[[call]]\nname = \"mine\"\ndoes = \"\"\nsyscall = \"close\"\n";
        let grammar = Grammar::default().with(Grammar::parse(own).unwrap());
        let first = |asked: &Asked| {
            let evolution = Evolution::new(&grammar, asked, &Corpus::default());
            let texts = (0..500).map(|number| evolution.candidate(number).to_string());
            texts.collect::<Vec<_>>()
        };
        let mut user = asked(false);
        user.grammar = own.to_owned();
        let all = first(&user);
        // What there is without any call, then the user's own.
        assert_eq!(all[..2], ["", "mine *1024"]);
        for known in [
            "create; lock-ranges *65536",
            "create *4096; lock-ranges *65536",
            "fork *256",
            "uring 4096; uring-buffers 16777216 *32",
        ] {
            assert!(all.contains(&known.to_owned()), "{known}: {all:#?}");
        }
        let [of_user, of_root] = [false, true].map(|root| {
            let all = first(&Asked {
                root,
                ..user.clone()
            });
            let count = |kind: &str| all.iter().filter(|text| text.contains(kind)).count();
            ["perf-clock *512", "lock-all"].map(count)
        });
        assert_eq!(of_user, [0, 0]);
        assert!(of_root.iter().all(|count| *count > 0), "{of_root:?}");
        // Chance alone is to be compared with.
        user.random = true;
        assert!(!first(&user).contains(&"fork *256".to_owned()));
    }

    #[test]
    fn a_call_is_put_behind_the_one_that_must_come_first() {
        let grammar = Grammar::default();
        let evolution = Evolution::new(&grammar, &asked(false), &Corpus::default());
        for seed in 0..200 {
            let mut rng = Rng::with_seed(seed);
            for text in ["", "create; pipe; eventfd", "pipe; eventfd"] {
                let mut calls = grammar.program(text).unwrap().calls;
                let open = of_kind(grammar.kind("open").unwrap(), &mut rng);
                evolution.insert(&mut calls, open, &mut rng);
                let at = |name| calls.iter().position(|call| call.name == name).unwrap();
                assert!(at("create") < at("open"), "{text}: {calls:?}");
            }
        }
    }

    #[test]
    fn what_a_kind_needs_is_there_when_it_is_tried_by_itself() {
        let grammar = Grammar::default();
        let evolution = Evolution::new(&grammar, &asked(true), &Corpus::default());
        let mut tried = std::collections::BTreeSet::new();
        for program in &evolution.sweep {
            let mut things = std::collections::BTreeSet::from(["child"]);
            let mut before: Vec<&str> = Vec::new();
            for call in &program.calls {
                let kind = grammar.kind(&call.name).unwrap();
                let lacks: Vec<&str> = kind.needs().filter(|need| !things.contains(need)).collect();
                assert!(lacks.is_empty(), "{program}: {} lacks {lacks:?}", call.name);
                let first = kind.after.iter();
                let missing = first.filter(|first| !before.contains(&first.as_str()));
                assert_eq!(missing.count(), 0, "{program}: {}", call.name);
                things.extend(kind.makes.iter().map(String::as_str));
                before.push(&call.name);
            }
            tried.extend(before.last().copied());
        }
        let all = grammar.kinds().map(|kind| kind.name.as_str());
        assert_eq!(tried, all.collect());
    }
}
