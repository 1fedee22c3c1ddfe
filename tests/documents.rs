// SPDX-License-Identifier: MIT OR Apache-2.0
//! The documents: each probe has a page with its parameters, and no link is broken.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use punctual_agent::probes::{self, ALL};
use punctual_doctor::Trial;
use punctual_tests::Ended;
use punctual_tests::markdown::{files, prose, root};
use toml::{Table, Value};

/// The sections of a probe's page, in this order.
const SECTIONS: [&str; 6] = [
    "What it measures",
    "Path",
    "Parameters",
    "Known answer",
    "Source",
    "Limits",
];
/// The most words of a paragraph, or of an item of a list.
const PARAGRAPH_WORDS: usize = 90;

fn page(probe: &str) -> String {
    let path = root().join(format!("docs/method/probes/{probe}.md"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The least parameters that a probe needs.
fn required(probe: &str) -> Table {
    match probe {
        "app" | "program" => Table::from_iter([("run".into(), Value::Array(vec!["true".into()]))]),
        _ => Table::new(),
    }
}

/// A probe's parameters with their defaults, as in the code.
fn in_code(probe: &str) -> BTreeMap<String, String> {
    let required = required(probe);
    let measurement = probes::parse(probe, &required).unwrap();
    let mut found: Vec<(String, String)> = Vec::new();
    let mut indent = "    ".to_owned();
    for line in format!("{measurement:#?}").lines().skip(1) {
        let field = line.strip_prefix(&indent).unwrap_or_default();
        // The parameters of `packet` are in two structures, one within the other.
        if ["packet: Packet {", "further: Further {"].contains(&field) {
            indent.push_str("    ");
            continue;
        }
        if let Some((name, value)) = field.split_once(": ").filter(|_| !field.starts_with(' ')) {
            found.push((name.to_owned(), value.to_owned()));
        } else if let Some((_, value)) = found.last_mut() {
            value.push_str(field.trim());
        }
    }
    let default = |(name, value): (String, String)| {
        let is_required = required.contains_key(&name);
        let inner = value.split_once('(').map_or(&*value, |(_, inner)| inner);
        let value = plain(if is_required { "required" } else { inner });
        (name, value)
    };
    let is_told = |(name, _): &(String, String)| {
        let own = ["xdp", "ptp", "mode", "collector", "cpus"];
        probe != "packet" || !own.contains(&name.as_str())
    };
    found.into_iter().filter(is_told).map(default).collect()
}

/// A value without the differences between TOML and Rust: case, quotation marks, separators.
fn plain(value: &str) -> String {
    let matters = |c: &char| c.is_ascii_alphanumeric() || "/.,".contains(*c);
    let kept: String = value.chars().filter(matters).collect();
    kept.trim_matches(',').to_lowercase()
}

/// A row of a page's table of parameters.
struct Row {
    name: String,
    default: String,
    range: String,
}

fn rows(page: &str) -> Vec<Row> {
    let section = page.split("\n## Parameters\n").nth(1).expect("Parameters");
    let section = section.split("\n## ").next().unwrap_or_default();
    let table = section.split("\n\n").find(|part| part.contains("| name |"));
    let row = |line: &str| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let mut next = || cells.next().expect("a cell").to_owned();
        let (name, default, _unit, range) = (next(), next(), next(), next());
        let name = name.trim_matches('`').to_owned();
        Row {
            name,
            default,
            range,
        }
    };
    let lines = table.into_iter().flat_map(str::lines);
    lines
        .filter(|line| line.starts_with("| `"))
        .map(row)
        .collect()
}

#[test]
fn each_probe_has_a_page_with_all_sections() {
    let index = page("README");
    for probe in ALL {
        let page = page(probe.name);
        let headings = page.lines().filter_map(|line| line.strip_prefix("## "));
        assert!(headings.eq(SECTIONS), "{}", probe.name);
        let title = format!("# Probe `{}`\n", probe.name);
        assert!(page.starts_with(&title), "{}", probe.name);
        let link = format!("| [`{0}`]({0}.md) |", probe.name);
        assert!(index.contains(&link), "{link}");
    }
    let pages = fs::read_dir(root().join("docs/method/probes")).unwrap();
    assert_eq!(pages.count(), ALL.len() + 1);
}

#[test]
fn each_parameter_stands_in_its_page_with_its_default() {
    for probe in ALL {
        let row = |row: Row| (row.name, plain(&row.default));
        let told: BTreeMap<String, String> = rows(&page(probe.name)).into_iter().map(row).collect();
        assert_eq!(told, in_code(probe.name), "{}", probe.name);
    }
}

/// The ends of a range such as `1 to 1,000`, if it is one.
fn ends(range: &str) -> Option<(i64, i64)> {
    let (low, rest) = range.split_once(" to ")?;
    let digits = |text: &str| {
        let number = text.split([' ', ';']).next().unwrap_or_default();
        number.trim_end_matches(',').replace(',', "").parse().ok()
    };
    Some((digits(low)?, digits(rest)?))
}

#[test]
fn each_range_is_that_of_the_code() {
    let mut checked = 0;
    for probe in ALL {
        for row in rows(&page(probe.name)) {
            let parse = |value: Value| {
                let several = row.default.starts_with("`[");
                let value = if several {
                    Value::Array(vec![value])
                } else {
                    value
                };
                let mut table = required(probe.name);
                table.insert(row.name.clone(), value);
                probes::parse(probe.name, &table).map(drop)
            };
            let named = format!("{}, {} = {}", probe.name, row.name, row.range);
            if let Some((low, high)) = ends(&row.range) {
                // What is refused of another parameter is not this one's range.
                let refused = format!("{} = ", row.name);
                for inside in [low, high] {
                    let taken = parse(inside.into());
                    let taken = taken.map_or_else(|why| !why.contains(&refused), |()| true);
                    assert!(taken, "{named}: {inside} is refused");
                }
                for outside in [low - 1, high + 1] {
                    assert!(parse(outside.into()).is_err(), "{named}: takes {outside}");
                }
                checked += 1;
            } else if row.range.starts_with('`') {
                for word in row.range.split('`').skip(1).step_by(2) {
                    let value = word.parse().map_or_else(|_| word.into(), Value::Boolean);
                    assert_eq!(parse(value), Ok(()), "{named}: {word}");
                }
                assert!(parse("nothing-of-the-kind".into()).is_err(), "{named}");
                checked += 1;
            }
        }
    }
    assert!(checked > 40, "only {checked} ranges were found");
}

/// The name of a heading in a link, as on GitHub.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let headings = prose(&text)
        .into_iter()
        .filter(|(_, line)| line.starts_with('#'));
    headings.map(|(_, line)| anchor(line)).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut links = 0;
    for path in files("md") {
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in prose(&text) {
            for link in line
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split(')').next())
            {
                if link.contains("://") {
                    continue;
                }
                links += 1;
                let named = format!("{}:{number}: {link}", path.display());
                let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
                let target = match file {
                    "" => path.clone(),
                    _ => path.parent().unwrap().join(file),
                };
                assert!(target.exists(), "{named}");
                assert!(
                    anchor.is_empty() || anchors(&target).contains(anchor),
                    "{named}"
                );
            }
        }
    }
    assert!(links > 50, "only {links} links were found");
}

#[test]
fn every_document_that_code_and_data_name_is_there() {
    let mut named = 0;
    let all = ["rs", "toml", "md", "c", "h", "1", "8"].into_iter();
    for path in all.flat_map(files) {
        let text = fs::read_to_string(&path).unwrap();
        for (start, _) in text.match_indices("docs/") {
            let part_of_name = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
            let name = text[start..].split(|c| !part_of_name(c)).next().unwrap();
            let Some(end) = name.find(".md").filter(|_| !name.contains("NAME")) else {
                continue;
            };
            let name = &name[..end + ".md".len()];
            let beside = path.parent().unwrap().join(name);
            let found = root().join(name).is_file() || beside.is_file();
            assert!(found, "{}: {name}", path.display());
            named += 1;
        }
    }
    assert!(named > 8, "only {named} were found");
}

/// The words in backticks of the first cell of a table's row.
fn first_cell(line: &str) -> impl Iterator<Item = &str> {
    let cell = line.split('|').nth(1).unwrap_or_default();
    cell.split('`').skip(1).step_by(2)
}

/// The crates of `ARCHITECTURE.md` in its order, each with the files in its table.
fn code_map() -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let crates = text.split("\n### `crates/").skip(1);
    let files = |section: &str| {
        let (name, rest) = section.split_once('`').expect("a heading");
        let rest = rest.split("\n## ").next().unwrap_or_default();
        let rows = rest.lines().filter(|line| line.starts_with("| `"));
        let files = rows.flat_map(first_cell).map(str::to_owned);
        (name.to_owned(), files.collect())
    };
    crates.map(files).collect()
}

#[test]
fn the_code_map_names_all_crates_and_only_files_that_are_there() {
    let map = code_map();
    for (name, files) in &map {
        for file in files {
            let path = root().join("crates").join(name).join("src").join(file);
            assert!(path.exists(), "{}", path.display());
        }
    }
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let crates: BTreeSet<_> = crates.map(|entry| entry.unwrap().file_name()).collect();
    let named: BTreeSet<_> = map.into_iter().map(|(name, _)| name.into()).collect();
    assert_eq!(crates, named);
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for path in text.split('`').skip(1).step_by(2) {
        if path.starts_with("crates/") {
            assert!(root().join(path).exists(), "{path}");
        }
    }
}

#[test]
fn a_crate_uses_only_crates_below_it_in_the_code_map() {
    let order: Vec<String> = code_map().into_iter().map(|(name, _)| name).collect();
    for (name, place) in order.iter().zip(0..) {
        let manifest = root().join("crates").join(name).join("Cargo.toml");
        let manifest: Table = fs::read_to_string(manifest).unwrap().parse().unwrap();
        let Some(used) = manifest.get("dependencies").and_then(Value::as_table) else {
            continue;
        };
        for used in used
            .keys()
            .filter_map(|name| name.strip_prefix("punctual-"))
        {
            let below = order
                .iter()
                .position(|other| other == used)
                .expect("a crate");
            assert!(below > place, "{name} uses {used}");
        }
    }
}

/// The table of the doctor's checks, made from the code.
fn checks() -> String {
    let row = |check: &punctual_doctor::Check| {
        let (id, severity, wanted) = (check.id, check.severity.name(), check.wanted);
        let root = if check.needs_root { "root" } else { "" };
        let trial = match check.trial {
            Trial::Boot(arguments) => format!("`{arguments}`"),
            Trial::Beside(arguments) => format!("`{arguments}`, on two CPUs"),
            Trial::Kernel => "`debian-6.12` and `debian-6.12-rt`".to_owned(),
            Trial::None(why) => why.to_owned(),
        };
        let source = check.source;
        let host = source.split('/').nth(2).unwrap();
        format!("| `{id}` | {severity} | {wanted} | {root} | {trial} | [{host}]({source}) |\n")
    };
    let head = "| check | severity | wanted | root | in virtual time | source |\n\
                |---|---|---|---|---|---|\n";
    let rows = punctual_doctor::ALL.into_iter().flatten().map(row);
    head.to_owned() + &rows.collect::<String>()
}

#[test]
fn the_doctors_page_has_all_its_checks() {
    let page = fs::read_to_string(root().join("docs/DOCTOR.md")).unwrap();
    let expected = checks();
    let table = page
        .split("\n\n")
        .find(|part| part.starts_with("| check |"));
    assert_eq!(table.map(str::trim), Some(expected.trim()), "{expected}");
    assert!(expected.lines().count() > 50);
}

#[test]
fn no_paragraph_is_long() {
    let mut long = Vec::new();
    for path in files("md") {
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in prose(&text) {
            let words = line.split_whitespace().count();
            if !line.starts_with('|') && words > PARAGRAPH_WORDS {
                long.push(format!("{}:{number}: {words} words", path.display()));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn every_quoted_output_has_a_block_and_a_command() {
    let ended = Ended::of(Command::new(env!("CARGO_BIN_EXE_quote")).arg("--list"));
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("README.md: punctual run demo\n"),
        "{}",
        ended.stdout
    );
}

/// A reader sees the command to type: the comment that `tools/quote` reads is not on a rendered
/// page. The tutorial has its commands in blocks of their own, with their path after `./build`;
/// CONTRIBUTING shows such a comment.
#[test]
fn every_quoted_output_shows_its_command() {
    let mut hidden = Vec::new();
    let others = ["TUTORIAL.md", "CONTRIBUTING.md"];
    let is_other = |path: &Path| others.iter().any(|other| path.ends_with(other));
    for path in files("md").into_iter().filter(|path| !is_other(path)) {
        let text = fs::read_to_string(&path).unwrap();
        for rest in text.split("\n<!-- output of: ").skip(1) {
            let (command, rest) = rest.split_once(" -->\n").unwrap();
            let block = rest.split("```").nth(1).unwrap_or_default();
            let mut shown = block
                .lines()
                .skip(1)
                .take_while(|line| line.starts_with("$ "));
            if !shown.any(|line| line.strip_prefix("$ ") == Some(command)) {
                hidden.push(format!("{}: {command}", path.display()));
            }
        }
    }
    assert!(
        hidden.is_empty(),
        "no line `$ COMMAND`:\n{}",
        hidden.join("\n")
    );
}

#[test]
fn each_file_of_tests_is_run() {
    let tests = root().join("tests");
    let run = fs::read_to_string(tests.join("main.rs")).unwrap();
    for entry in fs::read_dir(&tests).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap_or_default();
        if path.extension().is_some_and(|end| end == "rs") && text.contains("\n#[test]\n") {
            let name = path.file_stem().unwrap().to_string_lossy();
            assert!(run.contains(&format!("\nmod {name};\n")), "{name}");
        }
    }
}

/// The tables of the blind trials in JUDGE are those of the verdicts that the repository keeps.
#[test]
fn the_blind_trials_are_told_as_their_verdicts_are() {
    let told = fs::read_to_string(root().join("docs/JUDGE.md")).unwrap();
    let shown = |words: &str, kept: &str| {
        let mut trial = Command::new(env!("CARGO_BIN_EXE_blind"));
        trial.args(words.split(' ')).arg("--results");
        let kept = root().join("tests/blind").join(kept);
        let shown = trial.arg(kept).arg("--show").output().unwrap();
        assert!(shown.status.success(), "{words}");
        String::from_utf8(shown.stdout).unwrap()
    };
    for seed in 1..=2 {
        let words = format!("--planted 20 --harmless 20 --seed {seed}");
        let shown = shown(&words, &format!("seed-{seed}.jsonl"));
        let begin = shown.find("| instructions |").expect("a table by size");
        let end = shown.find("\n| figure,").expect("a table of figures");
        let table = shown[begin..end].trim();
        assert!(told.contains(table), "{table}");
    }
    let table = shown("--commits 16 --planted 20 --seed 2", "commits-2.jsonl");
    assert!(told.contains(table.trim()), "{table}");
}
