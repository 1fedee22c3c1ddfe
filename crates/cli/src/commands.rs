// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line: one file for each subcommand.

mod ablate;
mod again;
mod arrivals;
mod audit;
mod baseline;
mod bisect;
mod bound;
mod build_args;
mod cache;
mod campaign;
mod commit_args;
mod compare;
#[cfg(feature = "manuals")]
mod completions;
mod db;
mod doctor;
mod explain;
mod export;
mod extremes;
mod forms_args;
mod gate;
mod import;
mod judge;
mod kernel;
#[cfg(not(all(feature = "manuals", feature = "serve")))]
mod left_out;
mod list;
#[cfg(feature = "manuals")]
mod man;
mod measure;
mod metal;
mod output_args;
mod places;
mod profile;
mod published;
mod remove;
mod replay_args;
mod run;
mod run_names;
mod runs;
mod sample_args;
mod search;
mod series;
#[cfg(feature = "serve")]
mod serve;
mod show;
mod survey;
mod tagged_args;
mod trace_args;
mod tracers;
mod verify;
mod work;

use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use punctual_bench::virtual_bench::VirtualBench;
use punctual_kernels::Catalog;
use punctual_kernels::paths;
use punctual_model::Run;
use punctual_store::{Place, Store};

use crate::hints::store_option;
use crate::{ExitStatus, UsageError, output};
use run_names::{LAST, id, ids, is_run, load};

const EXAMPLES: &str = "\
Examples:
  punctual run demo  # four preemption models, side by side
  punctual run demo --subject rt           # only one of them
  punctual kernel add --id mine ./bzImage  # a kernel of your own …
  punctual run demo --kernel mine          # … measured in the same way
  punctual judge r1 r4 --limits mine.toml  # fit, unfit or undecided, and why
  punctual explain r3 --load stress        # why its latest sample was late
  punctual show r3 --report r3.html        # a run again, as a page
  punctual compare r1 r4                   # one run against another
  punctual baseline set stable r4          # what others are compared with
  punctual gate demo --baseline stable --kernel mine  # did it get worse?
  punctual doctor                          # what stands in the way here
  punctual export r1 r4 -o mine.punctual   # runs as one file, for others

`punctual COMMAND --help` has examples of each.

A run is named r3 or 3; `last` is the newest one, r1..r4 are all from r1 to r4.

Exit status:
  0    all that was asked for was measured, explained or done
  1    an error: of a file, a kernel, the bench, the store
  2    the command line asks for something wrong or unknown
  3    measured or explained in part: unsupported, or interrupted by Ctrl-C
  4    judged: a limit is broken, it got worse, or it stands in the way
  5    judged: nothing is broken or worse, and something cannot be decided
  130  a second Ctrl-C has ended it at once

Environment:
  XDG_CACHE_HOME   kernels and booted guests [~/.cache], in punctual/
  XDG_DATA_HOME    runs [~/.local/share], in punctual/runs.db
  XDG_CONFIG_HOME  your own punctual/suites/NAME.toml, punctual/loads/NAME.toml,
                   punctual/options/NAME.toml, punctual/claims/NAME.toml and
                   punctual/published/NAME.toml [~/.config]
  PUNCTUAL_DB      what --db names; a password for a server comes from its URL,
                   PGPASSWORD or ~/.pgpass
  NO_COLOR         no colour in tables
  PUNCTUAL_CACHE_SIZE
                   the space that booted guests may take in the cache [10GiB];
                   those used longest ago make room
  PUNCTUAL_TOKEN   what must be known to read what `punctual serve` shows
  PUNCTUAL_TARGET  the program that measures, if not beside this one or in
                   ../lib/punctual
  PUNCTUAL_WIRE    the program that measures the probe packet, likewise
  PUNCTUAL_PLUGIN  the scope's plugin, likewise
  PUNCTUAL_CALLS   what runs the programs of `punctual search`, likewise
  PUNCTUAL_SSH     what reaches boards, with its options [ssh]
  PUNCTUAL_LABGRID what acquires and reaches places of labgrid, likewise
                   [labgrid-client]";

/// How late can this Linux kernel be? Real-time measurements with evidence.
#[derive(Debug, Parser)]
#[command(name = "punctual", version, after_help = EXAMPLES)]
#[command(help_template = help_template())]
// Not the terminal's width: a line that is broken by spaces cannot be pasted.
#[command(arg_required_else_help = true, term_width = 80)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Taken everywhere, also by commands that need no store.
    #[arg(
        id = "db",
        long = "db",
        value_name = "FILE|URL",
        global = true,
        hide = true
    )]
    _db: Option<OsString>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
    Runs(runs::Runs),
    Show(show::Show),
    Compare(compare::Compare),
    Judge(judge::Judge),
    Baseline(baseline::Baseline),
    Gate(gate::Gate),
    Series(series::Series),
    Bisect(bisect::Bisect),
    Ablate(ablate::Ablate),
    Campaign(campaign::Campaign),
    Search(search::Search),
    Profile(profile::Profile),
    Survey(survey::Survey),
    Arrivals(arrivals::Arrivals),
    Audit(audit::Audit),
    Bound(bound::Bound),
    Extremes(extremes::Extremes),
    Import(import::Import),
    Export(export::Export),
    Verify(verify::Verify),
    Doctor(doctor::Doctor),
    Remove(remove::Remove),
    Db(db::Db),
    #[cfg(feature = "serve")]
    Serve(serve::Serve),
    #[cfg(not(feature = "serve"))]
    Serve(left_out::Serve),
    Explain(explain::Explain),
    Tracers(tracers::Tracers),
    Metal(metal::Metal),
    List(list::List),
    Published(published::Published),
    Kernel(kernel::Kernel),
    Cache(cache::Cache),
    #[cfg(feature = "manuals")]
    Completions(completions::Completions),
    #[cfg(not(feature = "manuals"))]
    Completions(left_out::Completions),
    #[cfg(feature = "manuals")]
    Man(man::Man),
    #[cfg(not(feature = "manuals"))]
    Man(left_out::Man),
    #[command(hide = true)]
    Work(work::Work),
}

/// The commands by purpose; the ten that most people need come first.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "What most people need",
        &[
            "run", "judge", "explain", "doctor", "kernel", "runs", "show", "compare", "baseline",
            "gate",
        ],
    ),
    (
        "Measure more",
        &[
            "series",
            "bisect",
            "ablate",
            "campaign",
            "tracers",
            "published",
        ],
    ),
    ("Judge more", &["extremes", "verify", "metal"]),
    (
        "Explain more",
        &["profile", "arrivals", "survey", "audit", "bound", "search"],
    ),
    ("Share", &["export", "import", "serve"]),
    (
        "Manage",
        &["list", "remove", "cache", "db", "completions", "man"],
    ),
];

/// The commands that `--help` shows, each with its summary.
fn shown() -> Vec<(String, String)> {
    let all = Command::augment_subcommands(clap::Command::new("punctual"));
    let seen = all
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let about = |command: &clap::Command| command.get_about().map(ToString::to_string);
    seen.map(|command| {
        let about = about(command).unwrap_or_default();
        (command.get_name().to_owned(), about)
    })
    .collect()
}

/// The template of `punctual --help`, with [`GROUPS`] in place of one long list.
fn help_template() -> String {
    let shown = shown();
    let mut groups = String::new();
    for (title, names) in GROUPS {
        groups = groups + title + ":\n";
        for name in names {
            for (_, about) in shown.iter().filter(|(shown, _)| shown == name) {
                let about = about.lines().next().unwrap_or_default();
                groups += &folded(name, about);
            }
        }
        groups += "\n";
    }
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    )
}

/// The width of `--help`, in columns.
const HELP_WIDTH: usize = 80;

/// A command and its summary, in lines of [`HELP_WIDTH`] columns.
fn folded(name: &str, about: &str) -> String {
    const INDENT: usize = 14;
    let mut text = format!("  {name:<width$}", width = INDENT - 2);
    let mut column = INDENT;
    for (number, word) in about.split_whitespace().enumerate() {
        let width = word.chars().count();
        if number > 0 && column + 1 + width > HELP_WIDTH {
            text.push('\n');
            text += &" ".repeat(INDENT);
            column = INDENT;
        } else if number > 0 {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += width;
    }
    text + "\n"
}

impl Cli {
    /// Runs the command that the command line names.
    pub fn run(self) -> Result<ExitStatus> {
        match self.command {
            Command::Run(command) => command.run(),
            Command::Runs(command) => command.run(),
            Command::Show(command) => command.run(),
            Command::Compare(command) => command.run(),
            Command::Judge(command) => command.run(),
            Command::Baseline(command) => command.run(),
            Command::Gate(command) => command.run(),
            Command::Series(command) => command.run(),
            Command::Bisect(command) => command.run(),
            Command::Ablate(command) => command.run(),
            Command::Campaign(command) => command.run(),
            Command::Search(command) => command.run(),
            Command::Profile(command) => command.run(),
            Command::Survey(command) => command.run(),
            Command::Arrivals(command) => command.run(),
            Command::Audit(command) => command.run(),
            Command::Bound(command) => command.run(),
            Command::Extremes(command) => command.run(),
            Command::Import(command) => command.run(),
            Command::Export(command) => command.run(),
            Command::Verify(command) => command.run(),
            Command::Doctor(command) => command.run(),
            Command::Remove(command) => command.run(),
            Command::Db(command) => command.run(),
            Command::Serve(command) => command.run(),
            Command::Explain(command) => command.run(),
            Command::Tracers(command) => command.run(),
            Command::Metal(command) => command.run(),
            Command::List(command) => command.run(),
            Command::Published(command) => command.run(),
            Command::Kernel(command) => command.run(),
            Command::Cache(command) => command.run(),
            Command::Completions(command) => command.run(),
            Command::Man(command) => command.run(),
            Command::Work(command) => command.run(),
        }
    }
}

/// Names a store where none is needed: who calls several commands with the same options gives
/// it to all.
#[derive(Clone, Debug, Args)]
struct NoStoreArgs {
    /// Of no effect here
    #[arg(long, value_name = "FILE|URL", global = true, hide = true)]
    db: Option<OsString>,
}

/// Which store is meant.
#[derive(Clone, Debug, Args)]
struct StoreArgs {
    /// Keep runs in this file, or on a server (`postgres://USER@HOST/DATABASE`), not in
    /// ~/.local/share/punctual/runs.db
    // As it was given: what clap says of a wrong value would show a password in it.
    #[arg(
        long,
        value_name = "FILE|URL",
        global = true,
        env = "PUNCTUAL_DB",
        hide_env = true
    )]
    db: Option<OsString>,
}

impl StoreArgs {
    /// The store as an option of a follow-up command; `None` if the environment or nobody names it,
    /// or if the displayed command would show a password.
    fn option(&self) -> Option<String> {
        let named = self.db.as_ref()?.to_string_lossy();
        let is_of_environment = std::env::var("PUNCTUAL_DB").is_ok_and(|of| of == named);
        let is_shown = !is_of_environment && !named.is_empty() && !named.contains("://");
        is_shown.then(|| format!(" --db {}", punctual_report::repeat::quoted(&named)))
    }

    /// The ids of the store's next runs, `runs` of them.
    fn next(&self, runs: usize) -> String {
        let newest = self.open().ok().and_then(|store| store.newest().ok()?);
        let newest = newest.and_then(|id| id.strip_prefix('r')?.parse::<usize>().ok());
        newest.map_or_else(
            || "RUN…".to_owned(),
            |newest| {
                let next = (1..=runs).map(|more| format!("r{}", newest + more));
                next.collect::<Vec<_>>().join(" ")
            },
        )
    }

    fn place(&self) -> Result<Place> {
        let named = self.db.as_ref().filter(|named| !named.is_empty());
        Ok(match named {
            Some(named) => Place::parse(named)?,
            None => Store::default_path()?.into(),
        })
    }

    /// Opens the store, or makes it if there is none. Only the usual one gets its directories.
    fn open_or_make(&self) -> Result<Store> {
        let place = self.place()?;
        let is_named = self.db.as_ref().is_some_and(|named| !named.is_empty());
        if let (true, Some(path)) = (is_named, place.file()) {
            output::check_parent(path)?;
        }
        open(&place)
    }

    /// Returns true if nothing was ever measured, and no other store is named.
    fn is_new(&self) -> Result<bool> {
        let is_named = self.db.as_ref().is_some_and(|named| !named.is_empty());
        let place = self.place()?;
        Ok(!is_named && place.file().is_some_and(|path| !path.exists()))
    }

    /// Opens the store, which must exist. A server's database is made a store if it is not one.
    fn open(&self) -> Result<Store> {
        let place = self.place()?;
        if self.is_new()? {
            return Err(UsageError(no_runs()).into());
        }
        check_file(&place)?;
        open(&place)
    }

    /// The runs of these names, in their order; the last run if none is named.
    fn load(&self, names: &[String]) -> Result<Vec<Run>> {
        let last = [LAST.to_owned()];
        let names = if names.is_empty() { &last } else { names };
        let (store, ids) = self.ids(names)?;
        ids.iter().map(|id| load(&store, id)).collect()
    }

    /// The store, and the ids of the runs of these names in it.
    fn ids(&self, names: &[String]) -> Result<(Store, Vec<String>)> {
        // A file of runs is known as one also where there is no store yet.
        for name in names {
            run_names::refuse_form(name)?;
        }
        let store = self.open()?;
        let ids = ids(&store, names)?;
        Ok((store, ids))
    }
}

/// Opens a file that the command line names.
fn open_named(path: &Path) -> Result<File> {
    if path.is_dir() {
        let path = path.display();
        return Err(UsageError(format!("{path}: expected a file, found a directory")).into());
    }
    File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => found_none(path).into(),
        _ => anyhow::Error::new(error).context(path.display().to_string()),
    })
}

/// Reads a source to its end, unless that is beyond so many bytes; `advice` says what to do then.
fn read_at_most(source: impl Read, most: u64, advice: &str) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    source.take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        let most = most >> 20;
        let wrong = format!("expected at most {most} MiB, found more: {advice}");
        return Err(UsageError(wrong).into());
    }
    Ok(content)
}

/// Refuses the name of a file that does not exist. It does not open the file: a pipe can be read
/// only once.
fn check_named(path: &Path) -> Result<(), UsageError> {
    match path.try_exists() {
        Ok(false) => Err(found_none(path)),
        _ => Ok(()),
    }
}

fn found_none(path: &Path) -> UsageError {
    let path = path.display();
    UsageError(format!("{path}: expected a file, found none of this name"))
}

/// Returns an error if a store is a file that does not exist.
fn check_file(place: &Place) -> Result<(), UsageError> {
    match place.file() {
        Some(path) if !path.exists() => Err(UsageError(format!(
            "{place}: expected a file with runs, found none of this name"
        ))),
        _ => Ok(()),
    }
}

/// Opens the store at a place.
fn open(place: &Place) -> Result<Store> {
    Ok(Store::at(place)?)
}

/// The message if nothing was measured yet.
fn no_runs() -> String {
    let of = store_option();
    format!("there are no runs yet: `punctual run demo{of}` makes some")
}

/// The bench in QEMU, with the user's limit for its cache.
fn virtual_bench(cache: &Path, cpus: u32) -> Result<VirtualBench> {
    let mut bench = VirtualBench::open(cache, cpus)?;
    bench.cache_limit = cache::limit()?;
    Ok(bench)
}

fn catalog() -> Result<Catalog> {
    Ok(Catalog::open(&paths::cache_dir()?)?)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use clap::CommandFactory as _;
    use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};

    use super::*;

    /// Calls `of_each` with the words and the final help of each command.
    fn all(command: &clap::Command, words: &str, of_each: &mut dyn FnMut(&str, &str)) {
        let help = command.get_after_help().map(ToString::to_string);
        of_each(words, &help.unwrap_or_default());
        for own in command.get_subcommands() {
            all(own, &format!("{words} {}", own.get_name()), of_each);
        }
    }

    /// The examples of a help text, each on one line, as a shell reads them.
    fn examples(help: &str) -> Vec<String> {
        let paragraphs = help.split("\n\n");
        let of_examples = paragraphs.filter(|one| one.starts_with("Example"));
        let mut examples = Vec::new();
        for paragraph in of_examples {
            let text = paragraph.replace("\\\n", " ");
            examples.extend(text.lines().skip(1).map(|line| line.trim().to_owned()));
        }
        examples
    }

    /// The words of a shell command, up to the next command or redirection.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        let mut depth = 0;
        for c in line.chars() {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            match (quote, c) {
                // Within `$(…)` a space ends no word.
                (None, ' ') if depth > 0 => word.push(c),
                (None, '\'' | '"') => quote = Some(c),
                (Some(open), c) if open == c => quote = None,
                (None, '#') if word.is_empty() => break,
                (None, '>' | '|' | ';') => break,
                (None, ' ') => {
                    words.extend(Some(std::mem::take(&mut word)).filter(|w| !w.is_empty()));
                }
                (_, c) => word.push(c),
            }
        }
        words.extend(Some(word).filter(|word| !word.is_empty()));
        words
    }

    #[test]
    fn each_command_takes_a_store_also_where_it_needs_none() {
        for words in [
            "kernel list",
            "published celf",
            "list probes",
            "man",
            "runs",
            "cache",
        ] {
            for line in [
                format!("punctual {words} --db x.db"),
                format!("punctual --db x.db {words}"),
            ] {
                let parsed = Cli::try_parse_from(line.split(' '));
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
        let line = ["punctual", "--db", "x.db", "runs"];
        let found = Cli::command().get_matches_from(line);
        let (_, found) = found.subcommand().unwrap();
        let db: Option<&OsString> = found.get_one("db");
        assert_eq!(db.map(OsString::as_os_str), Some("x.db".as_ref()));
    }

    #[test]
    fn examples_can_be_pasted_as_they_stand() {
        // Other programs that examples begin with.
        const OTHERS: [&str; 11] = [
            "trace-cmd",
            "curl",
            "rtla",
            "latmus",
            "git",
            "latency",
            "sudo",
            "punctual-target",
            "gnuplot",
            "make",
            "cyclictest",
        ];
        let (mut seen, mut wrong) = (0, Vec::new());
        all(&Cli::command(), "punctual", &mut |command, help| {
            for line in help.lines().filter(|line| line.chars().count() > 80) {
                wrong.push(format!("{command}: longer than 80 columns: {line}"));
            }
            for example in examples(help) {
                if example.starts_with('#') {
                    continue;
                }
                seen += 1;
                // A remark without its sign would be arguments.
                let bare = example.split(" #").next().unwrap_or_default().trim_end();
                if bare.contains("  ") && !bare.contains('\'') && !example.contains(" \\") {
                    let joined = bare.split("      ").count() > 1;
                    if !joined {
                        wrong.push(format!("{command}: a remark without #: {example}"));
                    }
                }
                let mut words = words(&example).into_iter().peekable();
                while words
                    .next_if(|word| word == "sudo" || word.contains('='))
                    .is_some()
                {}
                match words.peek().map(String::as_str) {
                    Some("punctual") => {
                        let parsed = Cli::try_parse_from(words);
                        let failed = parsed
                            .err()
                            .filter(|error| !matches!(error.kind(), DisplayHelp | DisplayVersion));
                        wrong.extend(failed.map(|error| format!("{command}: {example}: {error}")));
                    }
                    Some(other) if OTHERS.contains(&other) => {}
                    _ => wrong.push(format!("{command}: begins with no command: {example}")),
                }
            }
        });
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(seen > 60, "{seen}");
    }

    /// The rows of `docs/exit-status.md`: each command with the statuses that it may have.
    fn table_of_statuses() -> BTreeMap<String, BTreeSet<u8>> {
        let document = include_str!("../../../docs/exit-status.md");
        let rows = document.lines().filter(|line| line.starts_with("| `"));
        let row = |line: &str| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let told = [0, 3, 4, 5].into_iter().zip(&cells[2..]);
            let told = told.filter(|(_, cell)| !cell.is_empty());
            let own = told.map(|(status, _)| status).chain([1, 2]);
            (cells[1].trim_matches('`').to_owned(), own.collect())
        };
        rows.map(row).collect()
    }

    /// The numbers in the exit-status part of a help text.
    fn statuses_of(help: &str) -> Option<BTreeSet<u8>> {
        let (_, told) = help.split_once("Exit status:")?;
        let told = told.split("With").next().unwrap_or_default();
        let words = told.split(|c: char| !c.is_alphanumeric() && c != '/' && c != '-');
        Some(words.filter_map(|word| word.parse().ok()).collect())
    }

    /// The statuses that a command's source names, except for errors and those that are only for
    /// git.
    fn statuses_in_source(command: &str) -> BTreeSet<u8> {
        let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands");
        let mut files = vec![own.join(format!("{command}.rs"))];
        if let Ok(inner) = std::fs::read_dir(own.join(command)) {
            files.extend(inner.map(|entry| entry.unwrap().path()));
        }
        let text: String = files
            .iter()
            .map(|path| std::fs::read_to_string(path).unwrap())
            .collect();
        let all = [
            ("ExitStatus::Done", 0),
            ("ExitStatus::Incomplete", 3),
            ("ExitStatus::Unfit", 4),
            ("ExitStatus::Undecided", 5),
        ];
        let found = all.iter().filter(|(name, _)| text.contains(name));
        found.map(|(_, status)| *status).chain([1, 2]).collect()
    }

    #[test]
    fn each_command_ends_as_the_one_table_of_statuses_says() {
        let table = table_of_statuses();
        assert_eq!(table["judge"], BTreeSet::from([0, 1, 2, 3, 4, 5]));
        let usual = BTreeSet::from([0, 1, 2]);
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            if command.is_hide_set() {
                continue;
            }
            let told = table.get(name).unwrap_or(&usual);
            assert_eq!(&statuses_in_source(name), told, "{name}: its source");
            // One that has subcommands says it where they are told.
            let mut own = None;
            all(command, name, &mut |_, help| {
                own = own.take().or(statuses_of(help));
            });
            match own {
                Some(own) => assert_eq!(&own, told, "{name}: its help"),
                None => assert!(!table.contains_key(name), "{name} --help has no statuses"),
            }
        }
        let known: Vec<String> = shown().into_iter().map(|(name, _)| name).collect();
        let stranger = table.keys().find(|name| !known.contains(name));
        assert_eq!(stranger, None);
        // What `punctual --help` says of each status.
        let document = include_str!("../../../docs/exit-status.md");
        for status in 0..=5 {
            assert!(EXAMPLES.contains(&format!("\n  {status}    ")), "{status}");
            assert!(document.contains(&format!("\n| {status} | ")), "{status}");
        }
    }

    #[test]
    fn what_measures_takes_probes_and_loads_by_the_same_words() {
        let words = "--probe timer --load stress -p samples=9 --cpus 2 --seed 3";
        for command in [
            "run",
            "gate --baseline r1",
            "judge --limits a.toml",
            "series debian-6.12",
            "bisect debian-6.12 --limits a.toml",
            "ablate --options advice",
        ] {
            let line = format!("punctual {command} {words}");
            let parsed = Cli::try_parse_from(line.split(' '));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
        // `--seeds` are seeds, not how many of them.
        for command in ["run demo", "tracers", "doctor --measure", "judge demo"] {
            let line = format!("punctual {command} --seeds 2..4");
            let parsed = Cli::try_parse_from(line.split(' '));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn each_command_is_in_one_group_of_the_help() {
        let grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        assert_eq!(GROUPS[0].1.len(), 10);
        for (name, _) in shown() {
            let found = grouped.iter().filter(|grouped| **grouped == name).count();
            assert_eq!(
                found, 1,
                "{name}: GROUPS of commands.rs has it {found} times"
            );
        }
        assert_eq!(grouped.len(), shown().len());
    }

    #[test]
    fn the_help_is_no_wider_than_a_terminal() {
        let help = <Cli as clap::CommandFactory>::command()
            .render_help()
            .to_string();
        let wide: Vec<&str> = help
            .lines()
            .filter(|line| line.chars().count() > HELP_WIDTH)
            .collect();
        assert!(wide.is_empty(), "{wide:#?}");
        assert!(help.contains("What most people need:\n  run "), "{help}");
    }
}
