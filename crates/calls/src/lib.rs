// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs of system calls: their parts, their written form, and their execution.
//!
//! A program is one line: `mmap 65536 *8; fork *16 { touch 4096; sleep 1024 }; reap`. Each call has
//! its name, a size if its kind has one, the number of repetitions, and calls in braces that its
//! children make. `grammar.toml` describes the kinds; programs are found by
//! `punctual search`, and run by `punctual-calls`, which is no part of the target: its
//! abilities change no digest.

mod interpreter;
mod supervisor;
mod sys;

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::sys::What;
pub use supervisor::{Batch, run};

/// The kinds of calls that come with Punctual.
const OWN: &str = include_str!("grammar.toml");

/// The greatest depth of calls in braces.
const DEPTH: usize = 3;

/// The kinds of calls that programs are made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Grammar {
    kinds: BTreeMap<String, Kind>,
}

/// A kind of call.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// Its name in programs.
    pub name: String,
    /// A description of its effect.
    pub does: String,
    /// The system call, or the interpreter's own.
    pub syscall: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<Argument>,
    /// The kinds of things that it makes.
    #[serde(default)]
    pub makes: Vec<String>,
    /// A thing that is gone afterwards.
    #[serde(default)]
    pub takes: Option<String>,
    /// A call that must come first, besides those that make what it needs.
    #[serde(default)]
    pub after: Option<String>,
    /// The range of its size, if it has one.
    #[serde(default)]
    pub size: Option<(u64, u64)>,
    /// The range of its repetitions at once.
    #[serde(default = "often")]
    pub times: (u64, u64),
    /// True if children make calls in braces.
    #[serde(default)]
    pub block: bool,
    /// True if an ordinary user may not make it.
    #[serde(default)]
    pub root: bool,
}

fn often() -> (u64, u64) {
    (1, 1024)
}

impl Kind {
    /// Iterates over the kinds of things that it needs: they must have been made before.
    pub fn needs(&self) -> impl Iterator<Item = &str> {
        let things = self.args.iter().flat_map(Argument::things);
        things.chain(self.takes.as_deref())
    }
}

/// An argument of a call, as the grammar states it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Argument {
    /// This number.
    Number(i64),
    /// The value that this word stands for.
    Word(String),
    /// The address of these values, with 64 bits each.
    Longs {
        /// The values.
        u64: Vec<Argument>,
    },
    /// The address of these values, with 32 bits each.
    Ints {
        /// The values.
        u32: Vec<Argument>,
    },
}

impl Argument {
    fn things(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Word(word) => Box::new(thing(word).into_iter()),
            Self::Longs { u64: all } | Self::Ints { u32: all } => {
                Box::new(all.iter().flat_map(Self::things))
            }
            Self::Number(_) => Box::new(std::iter::empty()),
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::Number(_) => Ok(()),
            Self::Longs { u64: all } | Self::Ints { u32: all } => {
                all.iter().try_for_each(Self::check)
            }
            Self::Word(word) => {
                const WORDS: [&str; 13] = [
                    "size", "index", "buffer", "zeros", "shared", "shared2", "path", "path.old",
                    "self", "soon.s", "soon.ns", "out", "ring",
                ];
                let is_text = word.len() >= 2 && word.starts_with('\'') && word.ends_with('\'');
                let is_known = WORDS.contains(&word.as_str())
                    || is_text
                    || thing(word).is_some()
                    || factor(word).is_some();
                is_known.then_some(()).ok_or_else(|| {
                    let words = WORDS.join(", ");
                    format!(
                        "expected a number, {words}, index*N, #KIND or 'text', found \"{word}\""
                    )
                })
            }
        }
    }
}

/// Follows a thing whose size is meant.
const SIZE: &str = ".size";

/// Returns the kind of thing that a word stands for.
fn thing(word: &str) -> Option<&str> {
    let kind = word.strip_prefix('#')?;
    Some(kind.strip_suffix(SIZE).unwrap_or(kind))
}

/// Returns the factor by which the index is multiplied.
fn factor(word: &str) -> Option<i64> {
    word.strip_prefix("index*")?.parse().ok()
}

impl Default for Grammar {
    /// Returns the grammar that comes with Punctual.
    ///
    /// # Panics
    /// Never: a test reads it.
    fn default() -> Self {
        Self::parse(OWN).expect("the grammar that comes along can be read")
    }
}

impl Grammar {
    /// Returns true if these calls make objects that outlive their processes: those of System V's
    /// or POSIX's IPC. Such a program has a namespace of its own for them, if it may.
    pub fn outlive(&self, calls: &[Call]) -> bool {
        const MAKERS: [&str; 4] = ["semget", "shmget", "msgget", "mq_open"];
        calls.iter().any(|call| {
            let kind = self.kind(&call.name);
            kind.is_some_and(|kind| MAKERS.contains(&kind.syscall.as_str()))
                || self.outlive(&call.body)
        })
    }

    /// Parses a grammar: entries `[[call]]`. An error names an entry, and its fault.
    pub fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            call: Vec<Kind>,
        }
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut kinds = BTreeMap::new();
        for kind in file.call {
            kind.check()
                .map_err(|why| format!("call \"{}\": {why}", kind.name))?;
            let name = kind.name.clone();
            if kinds.insert(name.clone(), kind).is_some() {
                return Err(format!("call \"{name}\": there are two of this name"));
            }
        }
        Ok(Self { kinds })
    }

    /// Adds the kinds of another grammar, which replace those of the same name.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.kinds.extend(other.kinds);
        self
    }

    /// Iterates over all kinds, in the order of their names.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.values()
    }

    /// Returns the kind with this name.
    pub fn kind(&self, name: &str) -> Option<&Kind> {
        self.kinds.get(name)
    }

    /// Parses a program; an error describes its fault.
    pub fn program(&self, text: &str) -> Result<Program, String> {
        let mut words = text
            .replace(';', " ; ")
            .replace('{', " { ")
            .replace('}', " } ");
        words.push_str(" ;");
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut at = 0;
        let calls = self.block(&words, &mut at, 0)?;
        match words.get(at) {
            None => Ok(Program { calls }),
            Some(word) => Err(format!(
                "expected a call, found \"{word}\" in \"{}\"",
                text.trim()
            )),
        }
    }

    fn block(&self, words: &[&str], at: &mut usize, depth: usize) -> Result<Vec<Call>, String> {
        let mut calls = Vec::new();
        while let Some(word) = words.get(*at) {
            match *word {
                ";" => *at += 1,
                "}" => break,
                name => {
                    *at += 1;
                    calls.push(self.call(name, words, at, depth)?);
                }
            }
        }
        Ok(calls)
    }

    fn call(
        &self,
        name: &str,
        words: &[&str],
        at: &mut usize,
        depth: usize,
    ) -> Result<Call, String> {
        let kind = self.kind(name);
        let kind = kind.ok_or_else(|| format!("there is no call \"{name}\""))?;
        let mut call = Call {
            name: name.to_owned(),
            size: kind.size.map(|(least, _)| least),
            times: 1,
            body: Vec::new(),
        };
        while let Some(word) = words.get(*at).filter(|word| !["}", ";"].contains(word)) {
            *at += 1;
            let number = |digits: &str| -> Result<u64, String> {
                let wrong =
                    |_| format!("{name}: expected a number, *TIMES or {{, found \"{word}\"");
                digits.parse().map_err(wrong)
            };
            match word.strip_prefix('*') {
                Some(times) => call.times = number(times)?.max(1),
                None if *word == "{" && kind.block && depth < DEPTH => {
                    call.body = self.block(words, at, depth + 1)?;
                    if words.get(*at) != Some(&"}") {
                        return Err(format!("{name}: expected }} at its end"));
                    }
                    *at += 1;
                }
                None if kind.size.is_some() => call.size = Some(number(word)?),
                None => return Err(format!("{name}: expected no \"{word}\"")),
            }
        }
        Ok(call)
    }
}

impl Kind {
    fn check(&self) -> Result<(), String> {
        if What::named(&self.syscall).is_none() {
            return Err(format!("there is no system call \"{}\"", self.syscall));
        }
        let ranges = [Some(self.times), self.size].into_iter().flatten();
        for (least, most) in ranges {
            if least < 1 || least > most {
                return Err(format!("expected a range, found {least} to {most}"));
            }
        }
        // A ring, its size, how often, and fields of an entry, of which there are nine.
        let (least, most) = match self.syscall.as_str() {
            "submit" => (4, 12),
            _ => (0, 6),
        };
        let found = self.args.len();
        if found < least {
            return Err(format!(
                "expected at least {least} arguments, found {found}"
            ));
        }
        if found > most {
            return Err(format!("expected at most {most} arguments, found {found}"));
        }
        self.args.iter().try_for_each(Argument::check)
    }
}

/// A program of system calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Program {
    /// Its calls, in their order.
    pub calls: Vec<Call>,
}

/// A call of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Call {
    /// The name of its kind.
    pub name: String,
    /// Its size, if its kind has one.
    pub size: Option<u64>,
    /// The number of times that it is made.
    pub times: u64,
    /// The calls of its children.
    pub body: Vec<Call>,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls: Vec<String> = self.calls.iter().map(ToString::to_string).collect();
        f.write_str(&calls.join("; "))
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(size) = self.size {
            write!(f, " {size}")?;
        }
        if self.times != 1 {
            write!(f, " *{}", self.times)?;
        }
        if !self.body.is_empty() {
            let body: Vec<String> = self.body.iter().map(ToString::to_string).collect();
            write!(f, " {{ {} }}", body.join("; "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_read_as_it_is_written() {
        let grammar = Grammar::default();
        let text = "mmap 65536 *8; fork *16 { touch 4096; thread { sleep 1024 } }; reap";
        let program = grammar.program(text).unwrap();
        assert_eq!(program.to_string(), text);
        assert_eq!(program.calls[1].body[1].body[0].size, Some(1024));
        assert_eq!(grammar.program(" ;; ").unwrap(), Program::default());
    }

    #[test]
    fn a_program_that_is_wrong_is_refused_and_says_where() {
        let grammar = Grammar::default();
        let wrong = |text| grammar.program(text).unwrap_err();
        assert!(wrong("mmmap").contains("no call \"mmmap\""));
        assert!(wrong("reap 5").contains("reap: expected no \"5\""));
        assert!(wrong("mmap x").contains("\"x\""));
        assert!(wrong("fork { reap").contains("expected }"));
        assert!(wrong("reap } reap").contains("found \"}\""));
        assert!(wrong("pipe { reap }").contains("expected no \"{\""));
    }

    #[test]
    fn what_a_grammar_does_not_know_is_refused() {
        let entry = "[[call]]\nname = \"a\"\ndoes = \"\"\nsyscall = \"close\"\nargs = [ARG]\n";
        let parse = |argument: &str| Grammar::parse(&entry.replace("ARG", argument));
        assert!(parse("\"#file.size\", \"index*3\", {u64 = [1, \"size\"]}").is_ok());
        assert!(parse("\"sise\"").unwrap_err().contains("\"sise\""));
        assert!(
            parse("1, 2, 3, 4, 5, 6, 7")
                .unwrap_err()
                .contains("found 7")
        );
        let submission = entry.replace("close", "submit");
        let submission = |fields: &str| Grammar::parse(&submission.replace("ARG", fields));
        assert!(submission("1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12").is_ok());
        assert!(submission("1, 2, 3").unwrap_err().contains("found 3"));
        let unknown = entry.replace("close", "klose").replace("ARG", "");
        assert!(Grammar::parse(&unknown).unwrap_err().contains("\"klose\""));
        let twice = entry.replace("ARG", "").repeat(2);
        assert!(Grammar::parse(&twice).unwrap_err().contains("two of this"));
    }

    #[test]
    fn whatever_a_call_needs_another_one_makes() {
        let grammar = Grammar::default();
        let makes: Vec<&String> = grammar.kinds().flat_map(|kind| &kind.makes).collect();
        for kind in grammar.kinds() {
            for need in kind.needs().filter(|need| *need != "child") {
                assert!(
                    makes.iter().any(|made| *made == need),
                    "{}: {need}",
                    kind.name
                );
            }
        }
    }
}
