// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions in a mail for repeating its results with a clone and nothing installed.

use std::fmt::Write as _;

use punctual_model::Run;
use punctual_model::run::IMPORTED;

use super::ascii::{clipped, command_lines, flat, paragraph};
use crate::matrix::distinct;
use crate::repeat::{option_words, seed_words, what_words};
use crate::text::list;

/// The address of Punctual's sources.
const SOURCES: &str = env!("CARGO_PKG_REPOSITORY");
/// The most lines that all of it takes.
const LINES_MOST: usize = 12;
/// The most of these lines that commands take.
const COMMANDS_MOST: usize = 5;
/// The most of these lines that further needs take.
const NEEDS_MOST: usize = 3;
/// The option whose value is a path and arguments behind it.
const PROGRAM: &str = "--program";
/// The number of subjects whose digests are told.
const DIGESTS: usize = 4;
/// The number of digits that tell one checksum from another.
const DIGITS: usize = 12;

/// Instructions for repeating runs elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Again {
    /// The commands in a clone, each as its words; none where nothing repeats them.
    pub commands: Vec<Vec<String>>,
    /// The files or other needs that are not in a clone, or the reason why nothing repeats them.
    pub needs: Vec<String>,
    /// The kind of the times, the results to see again, and the machine that they were measured on.
    pub facts: String,
}

/// Returns instructions for repeating these runs, in the order in which they are named.
pub fn again(runs: &[&Run]) -> Again {
    let (imported, own): (Vec<&Run>, Vec<&Run>) = runs.iter().partition(|run| run.is_imported());
    let mut needs: Vec<String> = Vec::new();
    if !imported.is_empty() {
        needs.push(of_imported(&imported));
    }
    needs.extend(distinct(own.iter().flat_map(|run| files(run))));
    needs.extend(of_kernels(&own));
    let facts = [times(&own), digests(&own), machine(&own)];
    let facts = facts.into_iter().filter(|fact| !fact.is_empty());
    Again {
        commands: commands(&own),
        needs,
        facts: facts.collect::<Vec<_>>().join(" "),
    }
}

/// Returns instructions for repeating runs of kernels that are built of a repository's tags.
/// They use the line from one version to another; `source` asks for these kernels.
pub(super) fn again_of_tags(runs: &[&Run], source: &[String], versions: [&str; 2]) -> Again {
    let mut all = again(runs);
    let Some(run) = runs.first() else {
        return all;
    };
    let name = |word: &String| {
        if word.starts_with('/') || word.starts_with('.') {
            name_of(word).to_owned()
        } else {
            word.clone()
        }
    };
    let mut words: Vec<String> = ["./demo", "series"].map(str::to_owned).to_vec();
    words.extend(source.iter().map(name));
    // No tag between the two has to be built.
    let tags = versions.map(|version| ["--tags".to_owned(), format!("v{version}")]);
    words.extend(tags.into_iter().flatten());
    let boot = run.subject.boot.trim();
    if !boot.is_empty() {
        words.extend(["--boot".to_owned(), boot.to_owned()]);
    }
    let what: Vec<String> = what_words(run).iter().map(|word| here(word)).collect();
    let is_suite = what.first().is_some_and(|word| !word.starts_with('-'));
    words.extend(is_suite.then(|| "--suite".to_owned()));
    words.extend(what);
    words.extend(without_version(option_words(run)));
    let seeds = distinct(runs.iter().map(|run| run.seed));
    words.extend(seed_words(&seeds));
    all.commands = vec![words];
    all.needs = distinct(runs.iter().flat_map(|run| files(run)));
    all.needs.push(of_source(source, versions));
    all
}

/// Describes the needs for building them.
fn of_source(source: &[String], versions: [&str; 2]) -> String {
    let value = |option: &str| {
        let at = source.iter().position(|word| word == option)?;
        source.get(at + 1)
    };
    let tree = value("--source").map_or("", |path| name_of(path));
    let [from, to] = versions;
    let mut text = format!("Here {tree} is a clone of Linux with the tags v{from} and v{to}.");
    if let Some(file) = value("--config").filter(|word| word.contains('/')) {
        let _ = write!(text, " The sender has {}.", name_of(file));
    }
    text
}

impl Again {
    /// Returns the end of a mail, never with more lines than a mail has room for.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.commands.is_empty() {
            lines.push("To repeat it on x86-64 Debian, without installing Punctual:".to_owned());
            lines.push(format!("  git clone {SOURCES} && cd punctual"));
            let commands = self.commands.iter();
            let commands: Vec<String> = commands.flat_map(|words| command_lines(words)).collect();
            if commands.len() <= COMMANDS_MOST {
                lines.extend(commands);
            } else {
                // Half a command is none.
                let count = self.commands.len();
                let text =
                    format!("(what follows, {count} long, does not fit into a mail: ask for it)");
                lines.extend(paragraph(&text, "  "));
            }
        }
        let needs = self.needs.iter().flat_map(|text| flat(text));
        lines.extend(clipped(needs.collect(), NEEDS_MOST));
        if !self.facts.is_empty() {
            let room = LINES_MOST - lines.len();
            lines.extend(clipped(flat(&self.facts), room));
        }
        lines
    }
}

/// The common part of some runs that one command repeats.
struct Alike {
    what: Vec<String>,
    options: Vec<String>,
    kernels: Vec<String>,
    boots: Vec<String>,
    seeds: Vec<u64>,
}

impl Alike {
    fn of(run: &Run) -> Self {
        let (kernel, boot) = if run.is_virtual() {
            (vec![pinned(run)], run.subject.boot.clone())
        } else {
            (Vec::new(), String::new())
        };
        Self {
            what: what_words(run).iter().map(|word| here(word)).collect(),
            options: without_version(option_words(run)),
            kernels: kernel,
            boots: vec![boot],
            seeds: vec![run.seed],
        }
    }

    /// Merges in another that differs by one thing only.
    /// All values of one command are combined with one another.
    fn take(&mut self, other: &Self, by: By) -> bool {
        // No boot argument is none of several.
        let has_none = |one: &Self| one.boots.iter().any(String::is_empty);
        let same = [
            self.seeds == other.seeds,
            self.boots == other.boots,
            self.kernels == other.kernels,
        ];
        let is_it = match (by, same) {
            (By::Seeds, [_, true, true]) | (By::Kernels, [true, true, _]) => true,
            (By::Boots, [true, _, true]) => !has_none(self) && !has_none(other),
            _ => false,
        };
        if !is_it || (&self.what, &self.options) != (&other.what, &other.options) {
            return false;
        }
        add(&mut self.seeds, &other.seeds);
        add(&mut self.boots, &other.boots);
        add(&mut self.kernels, &other.kernels);
        self.seeds.sort_unstable();
        true
    }

    fn command(&self) -> Vec<String> {
        let words = |option: &str, values: &[String]| -> Vec<String> {
            let values = values.iter().filter(|value| !value.is_empty());
            values
                .flat_map(|value| [option.to_owned(), value.clone()])
                .collect()
        };
        let mut all = vec!["./demo".to_owned(), "run".to_owned()];
        all.extend_from_slice(&self.what);
        all.extend(words("--kernel", &self.kernels));
        all.extend(words("--boot", &self.boots));
        all.extend_from_slice(&self.options);
        all.extend(seed_words(&self.seeds));
        all
    }
}

/// The one thing that may differ between runs that one command repeats.
#[derive(Clone, Copy)]
enum By {
    Seeds,
    Boots,
    Kernels,
}

/// Adds the items that are not there yet.
fn add<T: Clone + PartialEq>(all: &mut Vec<T>, more: &[T]) {
    for one in more {
        if !all.contains(one) {
            all.push(one.clone());
        }
    }
}

/// One command for as many of these runs as possible.
fn commands(runs: &[&Run]) -> Vec<Vec<String>> {
    let mut all: Vec<Alike> = runs.iter().map(|run| Alike::of(run)).collect();
    for by in [By::Seeds, By::Boots, By::Kernels] {
        let mut fewer: Vec<Alike> = Vec::new();
        for one in all {
            if !fewer.iter_mut().any(|own| own.take(&one, by)) {
                fewer.push(one);
            }
        }
        all = fewer;
    }
    all.iter().map(Alike::command).collect()
}

/// The kernel's id, with the version of its package: `debian-6.12@6.12.117-1`.
fn pinned(run: &Run) -> String {
    let kernel = &run.subject.kernel;
    let name = kernel.split('@').next().unwrap_or_default();
    match package_version(run) {
        Some(version) => format!("{name}@{version}"),
        None => kernel.clone(),
    }
}

/// The version of the package that a kernel is of: anybody can fetch it.
fn package_version(run: &Run) -> Option<&str> {
    let origin = &run.machine.as_virtual()?.origin;
    origin.strip_prefix("debian package ")?.split(' ').nth(1)
}

/// Options without the version of a package: each kernel is named with its own.
fn without_version(mut options: Vec<String>) -> Vec<String> {
    while let Some(at) = options.iter().position(|word| word == "--kernel-version") {
        options.drain(at..(at + 2).min(options.len()));
    }
    options
}

/// A word of a command line; of a path the file's name, in the reader's own directory.
fn here(word: &str) -> String {
    // Arguments may hold paths, too.
    let (path, arguments) = match word.find(" -") {
        Some(at) => word.split_at(at),
        None => (word, ""),
    };
    if path.starts_with('/') {
        format!("./{}{arguments}", name_of(path))
    } else {
        word.to_owned()
    }
}

/// The last part of a path.
fn name_of(path: &str) -> &str {
    path.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default()
}

/// The files of the sender that a command names.
fn files(run: &Run) -> Vec<String> {
    let words = what_words(run);
    let before = std::iter::once("").chain(words.iter().map(String::as_str));
    let file = |(before, word): (&str, &String)| {
        let path = if before == PROGRAM {
            word.split(' ').next().unwrap_or_default()
        } else {
            word
        };
        let name = name_of(path);
        path.starts_with('/')
            .then(|| format!("The sender has {name}: put it into that directory."))
    };
    before.zip(&words).filter_map(file).collect()
}

/// The kernels that nobody can fetch, with the identity of their images, and their origin.
fn of_kernels(runs: &[&Run]) -> Option<String> {
    let told = runs.iter().filter_map(|run| {
        let machine = run.machine.as_virtual()?;
        if package_version(run).is_some() {
            return None;
        }
        // A path would tell of the sender's directories, and nobody else has it.
        let words = machine.origin.split(' ').map(|word| {
            if word.starts_with('/') {
                name_of(word)
            } else {
                word
            }
        });
        let origin = words.collect::<Vec<_>>().join(" ");
        let (kernel, image) = (&run.subject.kernel, digits(&machine.image_sha256));
        Some(format!("{kernel} (SHA-256 {image}, {origin})"))
    });
    let told = distinct(told);
    let noun = if told.len() == 1 {
        "this is no package"
    } else {
        "these are no packages"
    };
    (!told.is_empty()).then(|| {
        let kernels = list(&told);
        format!("First `./demo kernel add --id ID IMAGE`; {noun}: {kernels}.")
    })
}

fn digits(checksum: &str) -> String {
    checksum.chars().take(DIGITS).collect()
}

/// Says that another program has measured it, so that nothing here repeats it.
fn of_imported(runs: &[&Run]) -> String {
    let files = distinct(runs.iter().filter_map(|run| {
        let facts = &run.provenance.as_ref()?.facts;
        Some(digits(facts.get(IMPORTED)?.text()?))
    }));
    format!(
        "Another program measured it, so that no command here repeats it: files of SHA-256 {}.",
        files.join(", ")
    )
}

/// Describes the kind of the times.
fn times(runs: &[&Run]) -> String {
    let is_real = runs.iter().any(|run| !run.is_virtual());
    let told = match (runs.is_empty(), is_real) {
        (true, _) => "",
        (false, true) => "Times are real: another machine has others.",
        (false, false) => "Times are virtual: lengths of code paths, not those of a certain CPU.",
    };
    told.to_owned()
}

/// Returns the digests of the first seed, which the reader is to see again.
/// A run without one says so.
fn digests(runs: &[&Run]) -> String {
    let Some(seed) = runs.iter().map(|run| run.seed).min() else {
        return String::new();
    };
    let of_seed = runs
        .iter()
        .filter(|run| run.seed == seed && run.is_virtual());
    let told = of_seed.map(|run| {
        let digest = run
            .digest()
            .map_or_else(|| "none".to_owned(), |all| digits(&all));
        let boot = &run.subject.boot;
        let boot = if boot.is_empty() {
            String::new()
        } else {
            format!(" {boot}")
        };
        format!("{digest} ({}{boot})", run.subject.kernel)
    });
    let told = distinct(told);
    match told.as_slice() {
        [] => String::new(),
        told if told.len() > DIGESTS => {
            let (some, more) = (told[..DIGESTS].join(", "), told.len() - DIGESTS);
            format!("Digests, seed {seed}: {some}, and {more} more.")
        }
        told => format!("Digests, seed {seed}: {}.", told.join(", ")),
    }
}

/// `Punctual 0.1.0, QEMU 7.2.22, 1 CPU, 512 MiB, 1 ns per instruction`.
fn machine(runs: &[&Run]) -> String {
    let told = runs.iter().map(|run| {
        let machine = crate::gate::machine(run);
        format!("Punctual {}, {machine}", run.punctual)
    });
    let told = distinct(told);
    match told.as_slice() {
        [] => String::new(),
        told => format!("{}.", told.join("; ")),
    }
}
