// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explains why a kernel's configuration refuses an option, from the `Kconfig` files of its source,
//! as far as these state it on the option's own lines or around them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::config::Config;
use super::setting::Setting;
use super::tools;

/// One definition of an option.
#[derive(Debug, Default, PartialEq, Eq)]
struct Definition {
    /// True if a user is asked for it; if not, other options select it.
    is_asked: bool,
    /// The conditions on which it depends: its own lines, and those of the blocks around it.
    depends: Vec<String>,
    /// The options of the choice to which it belongs, including itself; empty if there is none.
    choice: Vec<String>,
}

/// The reason why a setting was refused, in words that follow `NAME=VALUE: `.
pub(crate) fn why_refused(source: &Path, setting: &Setting, config: &Config) -> String {
    let architecture = config.architecture().map_or("x86", tools::of_kernel);
    let files = files(source, architecture).into_iter();
    let texts = files.filter_map(|path| fs::read_to_string(path).ok());
    why_refused_by(texts, setting, config)
}

/// The same for the texts of these files.
pub(crate) fn why_refused_by(
    texts: impl Iterator<Item = String>,
    setting: &Setting,
    config: &Config,
) -> String {
    let name = &setting.name;
    let mut definitions = Vec::new();
    let mut all_names = BTreeSet::new();
    let mut selectors = Vec::new();
    for text in texts {
        definitions.extend(definitions_in(&text, name));
        all_names.extend(names_in(&text).map(str::to_owned));
        selectors.extend(selectors_in(&text, name));
    }
    if definitions.is_empty() {
        let likely = likely(name, &all_names);
        return format!("this kernel does not know the option{likely}");
    }
    let found = format!("its configuration has {name}={}", config.value(name));
    let reasons = reasons(&definitions, &selectors, setting, config);
    if reasons.is_empty() {
        return found;
    }
    format!("{found}: {}", reasons.join("; "))
}

fn reasons(
    definitions: &[Definition],
    selectors: &[String],
    setting: &Setting,
    config: &Config,
) -> Vec<String> {
    let mut reasons = Vec::new();
    if !definitions.iter().any(|one| one.is_asked) {
        reasons.push("it cannot be set, other options select it".to_owned());
    }
    let chosen = definitions.iter().flat_map(|one| &one.choice);
    let mut chosen = chosen.filter(|other| **other != setting.name && config.value(other) == "y");
    if let Some(chosen) = chosen.next() {
        reasons.push(format!("it is one of a choice, which is {chosen}"));
    }
    let mut selectors = selectors.iter().filter(|one| config.value(one) != "n");
    if let Some(selector) = selectors.next() {
        reasons.push(format!("{selector} selects it"));
    }
    let depends: BTreeSet<&String> = definitions.iter().flat_map(|one| &one.depends).collect();
    let is_met = |depends: &str| config.value(depends) == "y";
    // What is not to be set has no dependencies that are in the way.
    let in_the_way = |depends: &&&String| setting.value != "n" && !is_met(depends);
    for depends in depends.iter().filter(in_the_way) {
        let of = symbols(depends);
        let values = of
            .iter()
            .map(|name| format!("{name}={}", config.value(name)));
        let values: Vec<String> = values.collect();
        reasons.push(format!("it depends on {depends} ({})", values.join(", ")));
    }
    reasons
}

/// The `Kconfig` files for an architecture; others define the same names.
fn files(source: &Path, architecture: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![source.to_owned()];
    while let Some(directory) = directories.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let below = path.strip_prefix(source).unwrap_or(&path);
                if !is_elsewhere(below, architecture) {
                    directories.push(path);
                }
            } else if name.starts_with("Kconfig") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn is_elsewhere(below: &Path, own: &str) -> bool {
    let words: Vec<_> = below.iter().filter_map(|word| word.to_str()).collect();
    match words.as_slice() {
        ["arch", architecture, ..] => *architecture != own,
        [first] => {
            ["Documentation", "scripts", "tools", "samples"].contains(first)
                || first.starts_with('.')
        }
        _ => false,
    }
}

/// The name of the option whose definition begins on a line.
fn defined(line: &str) -> Option<&str> {
    let rest = line
        .trim_start()
        .strip_prefix("config ")
        .or_else(|| line.trim_start().strip_prefix("menuconfig "))?;
    Some(rest.trim())
}

fn names_in(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(defined)
}

/// The options that select `name`.
fn selectors_in(text: &str, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut current = None;
    for line in text.lines() {
        if let Some(name) = defined(line) {
            current = Some(name);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if let (["select", selected, ..], Some(current)) = (words.as_slice(), current) {
            if *selected == name {
                found.push(current.to_owned());
            }
        }
    }
    found
}

/// A block around options: `if`, `menu` or `choice`.
#[derive(Debug, Default)]
struct Block {
    depends: Vec<String>,
    /// For a choice: the definitions of the option that are in it, and all its options.
    choice: Option<(Vec<usize>, Vec<String>)>,
}

/// The element to which the following lines belong.
enum Place {
    Nowhere,
    /// A block, whose own `depends on` may follow.
    Block,
    /// Another option.
    Other,
    /// The wanted option.
    Wanted,
    /// The help of the wanted option.
    Help,
}

/// The definitions of `name` in a file.
fn definitions_in(text: &str, name: &str) -> Vec<Definition> {
    let mut found: Vec<Definition> = Vec::new();
    let mut blocks: Vec<Block> = Vec::new();
    let mut place = Place::Nowhere;
    for line in text.replace("\\\n", " ").lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_at_margin = !line.starts_with(char::is_whitespace);
        match words.as_slice() {
            ["if", condition @ ..] if is_at_margin => {
                blocks.push(Block {
                    depends: vec![condition.join(" ")],
                    choice: None,
                });
                place = Place::Nowhere;
            }
            ["menu", ..] if is_at_margin => {
                blocks.push(Block::default());
                place = Place::Block;
            }
            ["choice", ..] if is_at_margin => {
                let choice = Some(Default::default());
                blocks.push(Block {
                    choice,
                    ..Default::default()
                });
                place = Place::Block;
            }
            ["endif" | "endmenu" | "endchoice", ..] if is_at_margin => {
                let choice = blocks.pop().and_then(|block| block.choice);
                if let Some((own, options)) = choice {
                    own.into_iter()
                        .for_each(|at| found[at].choice.clone_from(&options));
                }
                place = Place::Nowhere;
            }
            ["config" | "menuconfig", option] => {
                let is_wanted = *option == name;
                if let Some((own, options)) =
                    blocks.last_mut().and_then(|block| block.choice.as_mut())
                {
                    options.push((*option).to_owned());
                    own.extend(is_wanted.then_some(found.len()));
                }
                place = Place::Other;
                if is_wanted {
                    let depends = blocks.iter().flat_map(|block| block.depends.clone());
                    found.push(Definition {
                        depends: depends.collect(),
                        ..Default::default()
                    });
                    place = Place::Wanted;
                }
            }
            ["help" | "---help---"] if matches!(place, Place::Wanted) => place = Place::Help,
            ["depends", "on", condition @ ..] => match (&place, blocks.last_mut()) {
                (Place::Wanted, _) => found
                    .last_mut()
                    .expect("it was just found")
                    .depends
                    .push(condition.join(" ")),
                (Place::Block, Some(block)) => block.depends.push(condition.join(" ")),
                _ => {}
            },
            [
                "bool" | "tristate" | "int" | "hex" | "string" | "prompt",
                prompt,
                ..,
            ] if matches!(place, Place::Wanted) && prompt.starts_with(['"', '\'']) => {
                found.last_mut().expect("it was just found").is_asked = true;
            }
            _ => {}
        }
    }
    found
}

/// The options in a condition.
fn symbols(condition: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = condition.split(|c: char| !is_part(c));
    words
        .filter(|word| !matches!(*word, "" | "y" | "m" | "n"))
        .filter(|word| word.chars().any(|c| c.is_ascii_uppercase()))
        .collect()
}

/// `; did you mean …?` if a name is close, else nothing.
fn likely(name: &str, all: &BTreeSet<String>) -> String {
    let distance = |other: &&String| strsim::osa_distance(name, other);
    let close = all.iter().min_by_key(distance);
    let close = close.filter(|other| distance(other) <= 2);
    close.map_or(String::new(), |close| format!("; did you mean {close}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KCONFIG: &str = "\
if EXPERT
menu \"a\"
\tdepends on X86

config LAZY
\tbool \"lazy\"
\tdepends on HAS_LAZY && \\
\t\t!RT
\thelp
\t  depends on the weather

config COUNT
\tbool

choice
\tprompt \"model\"
config NONE
\tbool \"none\"
config FULL
\tbool \"full\"
\tselect COUNT
endchoice
endmenu
endif
config OTHER
\tbool \"other\"
";

    fn tree() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("kernel")).unwrap();
        fs::write(directory.path().join("kernel/Kconfig.preempt"), KCONFIG).unwrap();
        let arm = directory.path().join("arch/arm");
        fs::create_dir_all(&arm).unwrap();
        fs::write(arm.join("Kconfig"), "config ARM_ONLY\n\tbool \"x\"\n").unwrap();
        directory
    }

    fn why(setting: &str, config: &str) -> String {
        let tree = tree();
        why_refused(
            tree.path(),
            &setting.parse().unwrap(),
            &Config::parse(config),
        )
    }

    #[test]
    fn an_unknown_option_is_told_with_the_likely_name() {
        let unknown = "this kernel does not know the option";
        assert_eq!(why("LASY=y", ""), format!("{unknown}; did you mean LAZY?"));
        assert_eq!(why("ARM_ONLY=y", ""), unknown);
    }

    #[test]
    fn dependencies_are_those_of_the_option_and_around_it() {
        assert_eq!(
            why("LAZY=y", "CONFIG_X86=y\nCONFIG_RT=y\n"),
            "its configuration has LAZY=n: it depends on EXPERT (EXPERT=n); it depends on \
             HAS_LAZY && !RT (HAS_LAZY=n, RT=y)"
        );
        assert_eq!(why("OTHER=y", ""), "its configuration has OTHER=n");
    }

    #[test]
    fn choices_and_selections_are_told() {
        let on = "CONFIG_FULL=y\nCONFIG_COUNT=y\nCONFIG_X86=y\nCONFIG_EXPERT=y\n";
        let told = why("NONE=y", on);
        assert!(told.contains("one of a choice, which is FULL"), "{told}");
        let told = why("COUNT=n", on);
        assert!(
            told.contains("it cannot be set, other options select it"),
            "{told}"
        );
        assert!(told.contains("FULL selects it"), "{told}");
    }
}
