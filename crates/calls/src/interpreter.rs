// SPDX-License-Identifier: MIT OR Apache-2.0
//! Carries out a program of system calls, in a process of its own, which ends without looking
//! back: so everything that it was given lives as long as it does.

use std::collections::BTreeMap;
use std::ffi::CString;

use super::{Argument, Call, Grammar, Kind, Program, SIZE, factor, thing};
use crate::sys::{self as calls, Memory, What, ring};

/// A thing that a call has made: its identifier and its size.
#[derive(Clone, Copy)]
struct Thing {
    value: i64,
    size: u64,
}

/// The state of a process or a thread of a program; its children inherit it.
pub struct Interpreter {
    grammar: &'static Grammar,
    memory: Memory,
    things: BTreeMap<&'static str, Vec<Thing>>,
    /// The number of names that were given.
    names: u64,
    children: Vec<i64>,
    /// The place where calls put results.
    out: Box<[u64; 4]>,
    /// True for the program's first process, false for its children.
    is_first: bool,
}

/// A call that is made.
#[derive(Clone, Copy)]
struct Making {
    kind: &'static Kind,
    call: &'static Call,
    what: What,
    /// The number of times that it was made before.
    index: u64,
}

/// Memory that arguments point to, for as long as their call takes.
#[derive(Default)]
struct Kept {
    words: Vec<Vec<u64>>,
    texts: Vec<CString>,
}

impl Interpreter {
    pub fn new(grammar: &'static Grammar, memory: Memory) -> Self {
        Self {
            grammar,
            memory,
            things: BTreeMap::new(),
            names: 0,
            children: Vec::new(),
            out: Box::default(),
            is_first: true,
        }
    }

    /// Makes all calls of a program.
    pub fn program(&mut self, program: &'static Program) {
        self.calls(&program.calls);
    }

    fn calls(&mut self, calls: &'static [Call]) {
        for call in calls {
            let Some(kind) = self.grammar.kind(&call.name) else {
                continue;
            };
            let Some(what) = What::named(&kind.syscall) else {
                continue;
            };
            for index in 0..call.times {
                let making = Making {
                    kind,
                    call,
                    what,
                    index,
                };
                match self.make(making) {
                    None => break,
                    Some(result) if self.is_first => self.memory.count(result < 0),
                    Some(_) => {}
                }
            }
        }
    }

    /// Makes a call; returns `None` if a thing that it needs does not exist.
    fn make(&mut self, making: Making) -> Option<i64> {
        let mut kept = Kept::default();
        let arguments = self.all(&making.kind.args, making, &mut kept)?;
        let result = match making.what {
            What::System(number) => calls::call(number, &arguments),
            What::Touch => calls::touch(&arguments),
            What::Submit => ring::submit(&arguments),
            What::Complete => ring::complete(&arguments),
            What::Exit => calls::exit(),
            What::Fork => {
                let mut own = self.child();
                calls::fork(|| own.live(&making.call.body))
            }
            What::Thread => {
                let mut own = self.child();
                calls::thread(move || own.live(&making.call.body))
            }
            What::Reap => {
                self.children.clear();
                calls::reap();
                0
            }
        };
        if result >= 0 {
            self.keep(making, result);
        }
        Some(result)
    }

    /// Keeps the things that a call has made, and drops those that it has taken.
    fn keep(&mut self, making: Making, result: i64) {
        match making.kind.takes.as_deref() {
            Some("child") => _ = self.children.pop(),
            Some(taken) => _ = self.things.get_mut(taken).and_then(Vec::pop),
            None => {}
        }
        if making.what == What::Fork {
            self.children.push(result);
        }
        let names_it = |argument: &Argument| *argument == Argument::Word("out".to_owned());
        let in_out = making.kind.args.iter().any(names_it);
        let size = making.call.size.unwrap_or(0);
        for (number, made) in making.kind.makes.iter().enumerate() {
            let value = if in_out { self.result(number) } else { result };
            let things = self.things.entry(made).or_default();
            things.push(Thing { value, size });
        }
    }

    /// Returns the 32-bit number that a call has put there.
    fn result(&self, number: usize) -> i64 {
        let word = calls::read(&self.out[number / 2 % 4]);
        i64::from((word >> (number % 2 * 32)) as i32)
    }

    fn child(&self) -> Self {
        Self {
            grammar: self.grammar,
            memory: self.memory,
            things: self.things.clone(),
            names: self.names,
            children: Vec::new(),
            out: Box::default(),
            is_first: false,
        }
    }

    /// Runs a child: its calls, and then nothing until it is killed.
    fn live(&mut self, body: &'static [Call]) {
        self.calls(body);
        calls::wait_for_the_end();
    }

    fn all(&mut self, all: &[Argument], making: Making, kept: &mut Kept) -> Option<Vec<i64>> {
        let all = all.iter();
        all.map(|one| self.argument(one, making, kept)).collect()
    }

    fn argument(&mut self, argument: &Argument, making: Making, kept: &mut Kept) -> Option<i64> {
        match argument {
            Argument::Number(number) => Some(*number),
            Argument::Word(word) => self.word(word, making, kept),
            Argument::Longs { u64: all } => {
                let values = self.all(all, making, kept)?;
                Some(kept.words(values.into_iter().map(|value| value as u64)))
            }
            Argument::Ints { u32: all } => {
                let values = self.all(all, making, kept)?;
                let half = |value: Option<&i64>| u64::from(value.copied().unwrap_or(0) as u32);
                let pairs = values.chunks(2);
                let pairs = pairs.map(|pair| half(pair.first()) | half(pair.get(1)) << 32);
                Some(kept.words(pairs))
            }
        }
    }

    fn word(&mut self, word: &str, making: Making, kept: &mut Kept) -> Option<i64> {
        if let Some(name) = thing(word) {
            let is_taken = making.kind.takes.as_deref() == Some(name);
            let thing = self.thing(name, is_taken, making.index)?;
            let is_size = word.strip_suffix(SIZE).is_some();
            return Some([thing.value, thing.size as i64][usize::from(is_size)]);
        }
        if let Some(factor) = factor(word) {
            return Some(making.index as i64 * factor);
        }
        match word {
            "size" => Some(making.call.size.unwrap_or(0) as i64),
            "index" => Some(making.index as i64),
            "out" => Some(self.out.as_ptr() as usize as i64),
            "path" => {
                self.names += 1;
                Some(kept.text(&self.names.to_string()))
            }
            "path.old" => {
                let before = making.index % self.names.max(1);
                (self.names > 0).then(|| kept.text(&(self.names - before).to_string()))
            }
            text if text.starts_with('\'') => Some(kept.text(text.trim_matches('\''))),
            place => self.memory.place(place),
        }
    }

    /// Returns the last thing of a kind, if it is taken; else the next one.
    fn thing(&self, kind: &str, is_taken: bool, index: u64) -> Option<Thing> {
        if kind == "child" {
            let value = *self.children.last()?;
            return Some(Thing { value, size: 0 });
        }
        let things = self.things.get(kind).filter(|things| !things.is_empty())?;
        let back = if is_taken {
            0
        } else {
            index as usize % things.len()
        };
        Some(things[things.len() - 1 - back])
    }
}

impl Kept {
    /// The most words that the kernel may read and write, even if fewer were given.
    const LEAST: usize = 32;

    fn words(&mut self, values: impl Iterator<Item = u64>) -> i64 {
        let mut words: Vec<u64> = values.collect();
        words.resize(words.len().max(Self::LEAST), 0);
        let address = words.as_ptr() as usize as i64;
        self.words.push(words);
        address
    }

    fn text(&mut self, text: &str) -> i64 {
        let text = CString::new(text).unwrap_or_default();
        let address = text.as_ptr() as usize as i64;
        self.texts.push(text);
        address
    }
}
