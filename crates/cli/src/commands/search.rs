// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual search`: programs of system calls that keep threads of the highest priority waiting.

mod confirm;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use clap::{Args, value_parser};
use punctual_bench::RunError;
use punctual_bench::virtual_bench::{Machine, Start};
use punctual_kernels::paths::{self, Lock};
use punctual_model::Nanos;
use punctual_model::suite::{SubjectSpec, Suite};
use punctual_report::search::{GRAMMAR, Told, Tried, in_c};
use punctual_report::text::{clean, counted};
use punctual_runner::systems::{Builder, Equipment, calls};
use punctual_runner::{Companion, loads};
use punctual_scope::error::ScopeError;
use punctual_scope::observe::Observer;
use punctual_scope::repeat::Repeater;
use punctual_search::guest::{Guests, How};
use punctual_search::minimise::{Confirmed, Find, Gone, Minimised, minimise};
use punctual_search::{Asked, BATCHES, Grammar, Place as _, Search as Found, Seen, Stretch};
use serde_json::Value;

use super::{StoreArgs, catalog, virtual_bench};
use crate::output::say;
use crate::scale_args::parse_duration;
use crate::{ExitStatus, UsageError, interrupt, output};
use confirm::Confirm;

const EXAMPLES: &str = "\
Examples:
  punctual search --kernel debian-6.12 --boot preempt=full --time 10m
  punctual search --kernel debian-6.12-rt --time 8h --root --jobs 2
  punctual search --candidates 0 --from search-debian-6.12-[0-9]* --into all
  punctual search --program 'create; lock-ranges *1024; unlock-range'
  punctual search --program 'fork *128' --boot preempt=full --confirm
  punctual search --kernel debian-6.12-rt --stressors clone,mremap,timerfd
  punctual search --program 'fork *128' --c > worst.c
  punctual search --calls

What is found is in the directory of --into; the same command goes on there.

Exit status: 0 reported; 3 Ctrl-C has ended it, or a guest was lost to a program
of --program or to a stressor (guests that a search has lost are part of its
report); 1 an error; 2 a wrong request.";

/// The interval of progress reports.
const SAY_EVERY: Duration = Duration::from_secs(30);
/// The number of stressors in one guest.
const STRESSORS: usize = 8;
/// The unit of the time after which programs are ended, in nanoseconds.
const MILLI: i64 = 1_000_000;
/// The number of a program's stretches that are shown.
const SHOWN: usize = 8;

/// Search for the load that keeps a thread of the highest priority waiting longest
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub struct Search {
    /// On this kernel
    #[arg(long, value_name = "ID", default_value = "debian-6.12")]
    kernel: String,
    /// With these boot arguments besides, such as `preempt=full`
    #[arg(long, value_name = "ARGUMENTS", default_value = "")]
    boot: String,
    /// For so long, and then until the finds are short [default: 10m without --candidates]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    time: Option<Nanos>,
    /// Until so many programs were tried: with the same seed the finds are the same
    #[arg(long, value_name = "N")]
    candidates: Option<u64>,
    /// Decides all that is made by chance
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// So many guests side by side, 2 at most
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = value_parser!(u8).range(1..=BATCHES as i64)
    )]
    jobs: u8,
    /// As root, not as an ordinary user
    #[arg(long)]
    root: bool,
    /// Make each program afresh: what an evolved search is to be better than
    #[arg(long)]
    random: bool,
    /// So many finds are made as short as they can be
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Kinds of calls of your own, besides (TOML, as `--calls` lists them)
    #[arg(long, value_name = "FILE")]
    grammar: Option<PathBuf>,
    /// Keep what is found here [default: search-KERNEL-SEED]
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Take over what other searches of this kernel have found: their directories
    #[arg(
        long,
        value_name = "DIR",
        num_args = 1..,
        requires = "into",
        conflicts_with_all = ["random", "program", "stressors"]
    )]
    from: Vec<PathBuf>,
    /// Search for nothing: run this program, and tell what it shows (may be repeated)
    #[arg(
        long,
        value_name = "PROGRAM",
        conflicts_with_all = ["time", "candidates", "seed", "jobs", "random", "top", "into"]
    )]
    program: Vec<String>,
    /// Search for nothing: tell what each stressor of stress-ng shows, of these, or of all
    #[arg(
        long,
        value_name = "LIST",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with_all = [
            "time", "candidates", "seed", "jobs", "random", "top", "grammar", "into", "program"
        ]
    )]
    stressors: Option<String>,
    /// End each program, or stressor, after this time of its guest [default: 50ms; 100ms for
    /// stressors]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    each: Option<Nanos>,
    /// Prove what is found: measure beside each with the probe timer, and aim samples at the
    /// latest arrivals; the runs are kept
    #[arg(long, conflicts_with = "stressors")]
    confirm: bool,
    /// List the kinds of calls
    #[arg(
        long,
        conflicts_with_all = [
            "kernel", "boot", "time", "candidates", "seed", "jobs", "root", "random", "top", "into",
            "program", "stressors", "each", "confirm", "report", "json"
        ]
    )]
    calls: bool,
    /// Print the program of --program in C, and run nothing
    #[arg(long, requires = "program", conflicts_with_all = ["confirm", "json"])]
    c: bool,
    /// Write a page (HTML, one file) to FILE, with figures and C programs; finds that grow come
    /// first
    #[arg(long, value_name = "FILE", conflicts_with_all = ["program", "stressors"])]
    report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Search {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        let mut found = Found::new(self.asked()?);
        let grammar = found.grammar().map_err(|why| self.wrong_grammar(&why))?;
        if self.calls {
            let line = |kind: &punctual_calls::Kind| vec![kind.name.clone(), kind.does.clone()];
            let lines: Vec<Vec<String>> = grammar.kinds().map(line).collect();
            output::print(&output::columns(&lines, output::text_width()))?;
            return Ok(ExitStatus::Done);
        }
        for program in &self.program {
            grammar
                .program(program)
                .map_err(|why| UsageError(format!("--program: {why}")))?;
        }
        if self.c {
            return self.print_c(&grammar);
        }
        let (repeater, machine) = self.machine()?;
        let directory = self.directory();
        let is_search = self.program.is_empty() && self.stressors.is_none();
        let _lock = is_search.then(|| locked(&directory)).transpose()?;
        if is_search {
            found
                .asked
                .image_sha256
                .clone_from(&machine.kernel.image_sha256);
            found = begun(&directory, found)?;
            self.take_over(&mut found)?;
        }
        if self.confirm {
            // Not after hours.
            self.store.open_or_make()?;
        }
        let cancel = interrupt::flag()?;
        let result = Observer::new(&repeater, &machine, cancel)
            .and_then(|observer| Guests::new(observer, self.how(&found.asked), cancel));
        let guests = match result {
            Err(error) if is_interrupted(&error) => return Ok(ExitStatus::Incomplete),
            result => result?,
        };
        if !self.program.is_empty() {
            return self.try_all(&guests, (&self.program, &self.program), SHOWN, &found.asked);
        }
        if let Some(list) = &self.stressors {
            let names = stressors(list)?;
            let command = |name: &String| format!("run {}", loads::stressor(name, 60).join(" "));
            let commands: Vec<String> = names.iter().map(command).collect();
            return self.try_all(&guests, (&names, &commands), 1, &found.asked);
        }
        self.search(&mut found, &guests, &directory, cancel)
    }

    /// Prints each program in C.
    fn print_c(&self, grammar: &Grammar) -> Result<ExitStatus> {
        for text in &self.program {
            let program = grammar.program(text).map_err(UsageError)?;
            let code = in_c(&program, grammar, &[], &self.asked()?);
            output::print(&code.context("it has calls that the grammar does not know")?)?;
        }
        Ok(ExitStatus::Done)
    }

    fn asked(&self) -> Result<Asked> {
        if self
            .each
            .is_some_and(|each| each.0 < MILLI || each.0 % MILLI != 0)
        {
            return Err(
                UsageError("--each: expected whole milliseconds, 1 at least".into()).into(),
            );
        }
        let read = |path: &PathBuf| {
            fs::read_to_string(path)
                .map_err(|error| UsageError(format!("{}: {error}", path.display())))
        };
        let grammar = self.grammar.as_ref().map(read).transpose()?;
        Ok(Asked {
            kernel: self.kernel.clone(),
            image_sha256: String::new(),
            boot: self.boot.clone(),
            seed: self.seed,
            root: self.root,
            random: self.random,
            grammar: grammar.unwrap_or_default(),
            each: self.each.filter(|each| *each != How::default().limit),
        })
    }

    fn wrong_grammar(&self, why: &str) -> UsageError {
        let path = self.grammar.as_deref().unwrap_or(Path::new("--grammar"));
        UsageError(format!("{}: {why}", path.display()))
    }

    fn directory(&self) -> PathBuf {
        let own = || PathBuf::from(format!("search-{}-{}", self.kernel, self.seed));
        self.into.clone().unwrap_or_else(own)
    }

    /// Takes over the findings of the searches in `--from`.
    fn take_over(&self, found: &mut Found) -> Result<()> {
        for directory in &self.from {
            let place = directory.display();
            let other = kept(directory)?.ok_or_else(|| {
                UsageError(format!(
                    "--from {place}: expected search.json, which a search keeps there, found none"
                ))
            })?;
            found
                .merge(&other)
                .map_err(|why| UsageError(format!("--from {place}: {why}")))?;
        }
        if self.from.is_empty() {
            return Ok(());
        }
        keep(&self.directory(), found)
    }

    fn how(&self, asked: &Asked) -> How {
        let usual = How::default();
        let stressors = self.stressors.as_ref().map(|_| Nanos::from_millis(100));
        How {
            root: self.root || self.stressors.is_some(),
            limit: self.each.or(stressors).unwrap_or(usual.limit),
            grammar: asked.grammar.clone(),
            ..usual
        }
    }

    /// The machine, and the bench that watches it.
    fn machine(&self) -> Result<(Repeater, Machine)> {
        let stress_ng = if self.stressors.is_some() {
            ", \"stress-ng\""
        } else {
            ""
        };
        let text = format!(
            "name = \"search\"\nsummary = \"\"\nprograms = [\"punctual-calls\"{stress_ng}]\n[[step]]\nprobe = \"program\"\nrun = [\"true\"]\n"
        );
        let suite = Suite::parse(&text)?;
        let cache = paths::cache_dir()?;
        let bench = virtual_bench(&cache, 1)?;
        let say = &mut |message: &str| {
            if !self.quiet {
                say!("{message}");
            }
        };
        let equipment = Equipment::of(&suite, &loads::of(&suite)?, say)?;
        let builder = Builder {
            bench: &bench,
            catalog: &catalog()?,
            cache: &cache,
            equipment: &equipment,
        };
        let subject = SubjectSpec {
            name: self.kernel.clone(),
            kernel: self.kernel.clone(),
            boot: self.boot.clone(),
        };
        let machine = builder.machine(&subject, say)?;
        let architecture = machine.kernel.architecture;
        if self.stressors.is_some() && architecture.is_foreign() {
            let kernel = &self.kernel;
            return Err(UsageError(format!(
                "--stressors: {kernel} is a kernel for {architecture}, where this machine's stress-ng does not run"
            ))
            .into());
        }
        calls(architecture).map_err(UsageError)?;
        let repeater = Repeater {
            bench: bench.of(architecture, machine.cpus, machine.network)?,
            plugin: Companion::ScopePlugin.find(),
            start: Start::Resumed,
            cache,
        };
        Ok((repeater, machine))
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            say!("{text}");
        }
    }

    /// Runs all these candidates, and reports what they show.
    fn try_all(
        &self,
        guests: &Guests,
        (names, candidates): (&[String], &[String]),
        top: usize,
        asked: &Asked,
    ) -> Result<ExitStatus> {
        let mut seen = Vec::new();
        for batch in candidates.chunks(STRESSORS) {
            match guests.run(batch) {
                Err(error) if is_interrupted(&error) => break,
                result => seen.extend(result?),
            }
            self.say(&format!("{} of {} tried", seen.len(), candidates.len()));
        }
        let mut confirmed = Vec::new();
        let mut is_whole = seen.len() == candidates.len();
        for (program, seen) in names.iter().zip(&seen).filter(|_| self.confirm) {
            let one = match seen {
                Seen::Ran { .. } => self.confirmed(asked, program)?,
                Seen::Killed(_) => None,
            };
            is_whole &= one.is_some();
            confirmed.push(one);
        }
        let tried = Tried {
            title: format!(
                "{} ({}): the longest stretch that each shows, in virtual time (1 ns an instruction)",
                self.kernel,
                guests.preemption().name()
            ),
            names: &names[..seen.len()],
            seen: &seen,
            top,
            confirmed: &confirmed,
        };
        let json = serde_json::to_value(tried.json())?;
        output::print_result(self.json, || json, |width| tried.text(width))?;
        let lost = seen.iter().any(|seen| matches!(seen, Seen::Killed(_)));
        Ok(if is_whole && !lost {
            ExitStatus::Done
        } else {
            ExitStatus::Incomplete
        })
    }

    fn search(
        &self,
        found: &mut Found,
        guests: &Guests,
        directory: &Path,
        cancel: &AtomicBool,
    ) -> Result<ExitStatus> {
        let grammar = found.grammar().map_err(|why| self.wrong_grammar(&why))?;
        let begin = Instant::now();
        let mut said = begin;
        while let Some(left) = self.left(found, begin) {
            match found.step(&grammar, guests, (left, self.jobs.into())) {
                Err(error) if is_interrupted(&error) => break,
                result => result?,
            }
            keep(directory, found)?;
            if said.elapsed() > SAY_EVERY {
                said = Instant::now();
                self.say(&progress(found));
            }
        }
        self.say(&progress(found));
        let mut finds = Vec::new();
        let (mut gone, mut without_calls) = (Vec::new(), Vec::new());
        let causes: Vec<_> = found
            .corpus
            .causes()
            .into_iter()
            .take(self.top)
            .cloned()
            .collect();
        for entry in &causes {
            if cancel.load(Ordering::SeqCst) {
                break;
            }
            match minimise(&grammar, guests, entry) {
                Err(error) if is_interrupted(&error) => break,
                Err(error) => return Err(error.into()),
                Ok(Minimised::Find(find)) => {
                    self.say(&format!("{}: {}", find.stretch.function, find.program));
                    finds.push(*find);
                }
                Ok(Minimised::Gone(one)) => gone.push(one),
                Ok(Minimised::WithoutCalls(stretch)) => without_calls.push(stretch),
            }
        }
        let confirmed: Result<()> = finds.iter_mut().try_for_each(|find| {
            if !cancel.load(Ordering::SeqCst) {
                find.confirmed = self.confirmed(&found.asked, &find.program)?;
            }
            Ok(())
        });
        self.tell(
            found,
            guests,
            directory,
            (&mut finds, &gone, &without_calls),
        )?;
        // What was found is told whatever comes of that.
        confirmed?;
        if cancel.load(Ordering::SeqCst) {
            let place = directory.display();
            self.say(&format!(
                "punctual: interrupted: what was found is kept in {place}; the same command goes on"
            ));
            return Ok(ExitStatus::Incomplete);
        }
        Ok(ExitStatus::Done)
    }

    /// The result of a run beside a program; `None` if nobody asked for it, or Ctrl-C has ended it.
    fn confirmed(&self, asked: &Asked, program: &str) -> Result<Option<Confirmed>> {
        let confirm = Confirm {
            asked,
            store: &self.store,
            quiet: self.quiet,
        };
        if self.confirm {
            confirm.of(program)
        } else {
            Ok(None)
        }
    }

    fn tell(
        &self,
        found: &Found,
        guests: &Guests,
        directory: &Path,
        (finds, gone, without_calls): (&mut Vec<Find>, &[Gone], &[Stretch]),
    ) -> Result<()> {
        finds.sort_by_key(|find| std::cmp::Reverse(find.stretch.ns));
        let place = directory.display().to_string();
        let grammar = found.grammar().map_err(|why| self.wrong_grammar(&why))?;
        let list = directory.join("finds.json");
        let is_whole = !interrupt::flag()?.load(Ordering::SeqCst);
        let told = Told {
            search: found,
            preemption: guests.preemption().name(),
            finds,
            gone,
            without_calls,
            place: &place,
            are_written: is_whole || replaces(finds.len(), &list),
            grammar: &grammar,
        };
        let worst = |number: usize, kind: &str| directory.join(format!("worst-{number:02}.{kind}"));
        if told.are_written {
            for (number, find) in (1..).zip(finds.iter()) {
                write(&worst(number, "toml"), &told.load(find))?;
                if let Some(code) = told.c(find) {
                    write(&worst(number, "c"), &code)?;
                }
            }
            // Of a search before this one, which had more finds.
            for kind in ["toml", "c"] {
                let others = (finds.len() + 1..).map(|number| worst(number, kind));
                for path in others.take_while(|path| path.is_file()) {
                    fs::remove_file(&path).with_context(|| path.display().to_string())?;
                }
            }
            write(&list, &serde_json::to_string_pretty(&told.json())?)?;
        }
        if !found.asked.grammar.is_empty() {
            write(&directory.join(GRAMMAR), &found.asked.grammar)?;
        }
        let json = serde_json::to_value(told.json())?;
        output::print_result(self.json, || json, |width| told.text(width))?;
        let page = self.report.as_ref();
        page.map_or(Ok(()), |path| write(path, &told.page()))
    }

    /// The number of candidates still to be tried; `None` if the time is over, or none is left.
    fn left(&self, found: &Found, begin: Instant) -> Option<u64> {
        let left = self
            .candidates
            .map_or(u64::MAX, |all| all.saturating_sub(found.candidates));
        let usual = self.candidates.is_none().then_some(Nanos(600_000_000_000));
        let time = self.time.or(usual);
        let is_over = time.is_some_and(|time| begin.elapsed().as_nanos() as i64 >= time.0);
        (left > 0 && !is_over).then_some(left)
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    let written = paths::write_atomically(path, text.as_bytes());
    written.with_context(|| path.display().to_string())
}

fn is_interrupted(error: &ScopeError) -> bool {
    matches!(error, ScopeError::Run(RunError::Interrupted))
}

fn progress(found: &Found) -> String {
    let best = found.corpus.entries().first();
    let best = best.map_or_else(String::new, |entry| {
        let stretch = &entry.stretch;
        let length = punctual_report::text::time(stretch.length(), false);
        format!(
            "; longest {length}: {} by {}",
            stretch.what, stretch.function
        )
    });
    let programs = counted(found.candidates as usize, "program");
    let places = counted(found.corpus.entries().len(), "place");
    let lost = match found.killers.len() {
        0 => String::new(),
        lost => format!("; {} lost", counted(lost, "guest")),
    };
    clean(&format!("{programs}, {places}{best}{lost}"))
}

/// Returns true if the finds of a search that Ctrl-C has ended, so many, take the place of those in
/// the list: those of an earlier part stay if they are more.
fn replaces(finds: usize, list: &Path) -> bool {
    let text = fs::read_to_string(list).unwrap_or_default();
    let list: Value = serde_json::from_str(&text).unwrap_or_default();
    finds > 0
        && list["finds"]
            .as_array()
            .is_none_or(|known| known.len() <= finds)
}

/// The right to search in a directory, until it is dropped.
fn locked(directory: &Path) -> Result<Lock> {
    let path = directory.join("lock");
    let lock = Lock::try_acquire(&path).with_context(|| path.display().to_string())?;
    lock.ok_or_else(|| {
        let place = directory.display();
        UsageError(format!(
            "another punctual searches in {place}: wait for it, or name another directory (--into)"
        ))
        .into()
    })
}

/// The search that was begun in a directory, if it is the same one; else a new one.
fn begun(directory: &Path, new: Found) -> Result<Found> {
    let Some(mut found) = kept(directory)? else {
        return Ok(new);
    };
    if let Some(difference) = new.asked.difference(&found.asked) {
        return Err(UsageError(format!(
            "{} has another search ({difference}): name another directory (--into), or remove it",
            directory.display()
        ))
        .into());
    }
    found.asked.image_sha256.clone_from(&new.asked.image_sha256);
    Ok(found)
}

/// The search that is kept in a directory.
fn kept(directory: &Path) -> Result<Option<Found>> {
    let path = directory.join("search.json");
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| path.display().to_string())?,
    };
    let expected = "expected what a search keeps there: name another directory, or remove it";
    let found =
        serde_json::from_str(&text).with_context(|| format!("{}: {expected}", path.display()))?;
    Ok(Some(found))
}

fn keep(directory: &Path, found: &Found) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let path = directory.join("search.json");
    let text = serde_json::to_string(found)?;
    let written = paths::write_atomically(&path, text.as_bytes());
    written.with_context(|| path.display().to_string())
}

/// The stressors of a list; all that stress-ng has if the list is empty.
fn stressors(list: &str) -> Result<Vec<String>> {
    let missing = "expected stress-ng in the PATH, found none: install it (apt install stress-ng)";
    let output = Command::new("stress-ng").arg("--stressors").output();
    let output = output.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => anyhow::Error::new(UsageError(missing.to_owned())),
        _ => anyhow!("stress-ng: {error}"),
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let known: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if list.is_empty() {
        return Ok(known);
    }
    let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
    match names.iter().find(|name| !known.contains(name)) {
        Some(unknown) => Err(UsageError(format!(
            "--stressors: stress-ng has no \"{unknown}\" (`stress-ng --stressors` lists them)"
        ))
        .into()),
        None => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::commands::Cli;

    fn found(seed: u64) -> Found {
        Found::new(Asked {
            kernel: "debian-6.12".into(),
            seed,
            ..Asked::default()
        })
    }

    #[test]
    fn what_no_search_would_use_is_refused() {
        for (line, is_taken) in [
            ("--jobs 2 --top 3 --seed 9", true),
            ("--jobs 0", false),
            ("--jobs 3", false),
            ("--calls --grammar own.toml", true),
            ("--calls --json", false),
            ("--calls --stressors clone", false),
            ("--calls --kernel debian-6.12", false),
            ("--program fork --kernel debian-6.12 --json", true),
            ("--program fork --seed 9", false),
            ("--program fork --jobs 2", false),
            ("--program fork --top 3", false),
            ("--stressors clone --each 10ms --json", true),
            ("--stressors clone --seed 9", false),
            ("--stressors clone --jobs 2", false),
            ("--stressors clone --top 3", false),
        ] {
            let words = format!("punctual search {line}");
            let parsed = Cli::try_parse_from(words.split(' '));
            assert_eq!(parsed.is_ok(), is_taken, "{line}: {:?}", parsed.err());
        }
    }

    #[test]
    fn what_an_interrupted_search_has_found_takes_the_place_of_no_more() {
        let directory = tempfile::tempdir().unwrap();
        let list = directory.path().join("finds.json");
        assert!(!replaces(0, &list) && replaces(1, &list));
        for (text, one, two) in [
            (r#"{"finds": []}"#, true, true),
            (r#"{"finds": [{}]}"#, true, true),
            (r#"{"finds": [{}, {}]}"#, false, true),
            (r#"{"finds": [{"#, true, true),
        ] {
            fs::write(&list, text).unwrap();
            assert!(!replaces(0, &list), "{text}");
            assert_eq!(
                (replaces(1, &list), replaces(2, &list)),
                (one, two),
                "{text}"
            );
        }
    }

    #[test]
    fn a_directory_has_one_search_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let own = locked(directory.path()).unwrap();
        let refused = locked(directory.path()).unwrap_err();
        assert!(refused.is::<UsageError>(), "{refused}");
        let text = refused.to_string();
        assert!(text.starts_with("another punctual searches in "), "{text}");
        drop(own);
        locked(directory.path()).unwrap();
    }

    #[test]
    fn another_search_or_none_in_a_directory_is_refused_and_named() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(begun(directory.path(), found(1)).unwrap(), found(1));
        keep(directory.path(), &found(1)).unwrap();
        assert_eq!(begun(directory.path(), found(1)).unwrap(), found(1));
        let refused = begun(directory.path(), found(2)).unwrap_err().to_string();
        let named = "has another search (its seed is \"1\", and here it is \"2\"): name another";
        assert!(refused.contains(named), "{refused}");
        fs::write(directory.path().join("search.json"), "{").unwrap();
        let damaged = begun(directory.path(), found(1)).unwrap_err().to_string();
        assert!(
            damaged.contains("expected what a search keeps there"),
            "{damaged}"
        );
    }

    #[test]
    fn one_of_a_kind_is_told_in_the_singular() {
        let mut found = found(1);
        assert_eq!(progress(&found), "0 programs, 0 places");
        found.candidates = 1;
        found.killers.push(("fork".into(), "it panicked".into()));
        assert_eq!(progress(&found), "1 program, 0 places; 1 guest lost");
    }
}
