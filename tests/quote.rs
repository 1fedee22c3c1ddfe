// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renews the quotations in documents: runs the command of each quoted output, and puts what it
//! prints into the document.
//!
//! Comments in a document say how each part is made:
//!
//! - `<!-- output of: COMMAND -->`: the code block below is the output of the shell command.
//!   Lines at the beginning that start with `$ ` show the command to the reader, and stay.
//! - `<!-- file: NAME -->`: the code block below is a file for the commands after it.
//! - `<!-- run: COMMAND -->`: a command that they need, whose output is not shown.
//! - `<!-- keep: FILE -->`: a file that they have written, which is kept beside the document.
//!
//! The commands of a document run in its order, in a directory of their own and with a store of
//! their own, so that the first run is `r1`.
#![forbid(unsafe_code)]

use std::env;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use punctual_tests::markdown::{files, root};
use punctual_tests::{Scratch, programs};

const USAGE: &str = "\
Usage: tools/quote [--check | --list] [FILE...]

Runs the commands of the outputs that documents quote, and puts what they print
into the documents: all of them, unless some are named.

  --check  change nothing; say what differs, and end with 1 where something does
  --list   run nothing; say which commands there are";

/// The use of the commands' output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Replace,
    Check,
    List,
}

/// The step that a comment asks for. The lines are those within a code block.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Output {
        command: String,
        lines: Range<usize>,
    },
    File {
        name: String,
        lines: Range<usize>,
    },
    Run {
        command: String,
    },
    Keep {
        name: String,
    },
}

fn main() -> ExitCode {
    match all(env::args().skip(1).collect()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("quote: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Processes all documents, or those named; returns true if no output differs that must not.
fn all(arguments: Vec<String>) -> Result<bool> {
    let (options, names): (Vec<_>, Vec<_>) = arguments
        .into_iter()
        .partition(|word| word.starts_with('-'));
    let mode = match options.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Mode::Replace,
        ["--check"] => Mode::Check,
        ["--list"] => Mode::List,
        ["--help" | "-h"] => {
            println!("{USAGE}");
            return Ok(true);
        }
        _ => bail!(
            "expected --check or --list, found {}\n\n{USAGE}",
            options.join(" ")
        ),
    };
    let documents = if names.is_empty() {
        files("md")
    } else {
        names.iter().map(PathBuf::from).collect()
    };
    let mut all_equal = true;
    for path in documents {
        let equal = document(&path, mode).with_context(|| path.display().to_string())?;
        all_equal &= equal;
    }
    Ok(all_equal || mode != Mode::Check)
}

/// Processes one document; returns true if its quotations are the commands' output.
fn document(path: &Path, mode: Mode) -> Result<bool> {
    let path = path.canonicalize()?;
    let name = path
        .strip_prefix(root())
        .unwrap_or(&path)
        .display()
        .to_string();
    let text = fs::read_to_string(&path)?;
    let lines: Vec<&str> = text.lines().collect();
    let steps = steps(&lines)?;
    if mode == Mode::List {
        for step in &steps {
            if let Step::Output { command, .. } | Step::Run { command } = step {
                println!("{name}: {command}");
            }
        }
        return Ok(true);
    }
    let done = carry_out(&steps, &lines)?;
    let new = replaced(&lines, &done.outputs);
    let beside = path.parent().unwrap_or(&path);
    let kept = done
        .files
        .into_iter()
        .map(|(file, bytes)| (beside.join(file), bytes));
    let all = kept.chain([(path.clone(), new.into_bytes())]);
    let mut is_equal = true;
    for (file, bytes) in all.filter(|(file, bytes)| fs::read(file).ok().as_ref() != Some(bytes)) {
        is_equal = false;
        match mode {
            Mode::Replace => fs::write(file, bytes)?,
            Mode::Check | Mode::List => {
                println!("{name}: {}: not what is printed any more", file.display());
                let there = fs::read(file).unwrap_or_default();
                let texts = [&there, &bytes].map(|bytes| String::from_utf8_lossy(bytes));
                tell_first_difference(&texts[0], &texts[1]);
            }
        }
    }
    Ok(is_equal)
}

/// Prints the first pair of lines that differ.
fn tell_first_difference(there: &str, printed: &str) {
    let pairs = (1..).zip(there.lines().zip(printed.lines()));
    let first = pairs.into_iter().find(|(_, (one, other))| one != other);
    match first {
        Some((line, (one, other))) => println!("  line {line}: {one}\n  printed: {other}"),
        None => println!("  one of the two goes on"),
    }
}

/// The steps that the comments of a document ask for, in its order.
fn steps(lines: &[&str]) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut in_code = false;
    for (line, index) in lines.iter().zip(0..) {
        in_code ^= line.starts_with("```");
        let Some((kind, what)) = directive(line).filter(|_| !in_code) else {
            continue;
        };
        let block = || block(lines, index + 1).with_context(|| format!("line {}", index + 1));
        let what = what.to_owned();
        steps.push(match kind {
            "output of" => Step::Output {
                command: what,
                lines: block()?,
            },
            "file" => Step::File {
                name: what,
                lines: block()?,
            },
            "keep" => Step::Keep { name: what },
            _ => Step::Run { command: what },
        });
    }
    Ok(steps)
}

/// The kind and the content of a comment that is for this program.
fn directive(line: &str) -> Option<(&str, &str)> {
    let inner = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    let (kind, what) = inner.split_once(": ")?;
    ["output of", "file", "run", "keep"]
        .contains(&kind)
        .then_some((kind, what))
}

/// The lines within the code block that begins at a line.
fn block(lines: &[&str], fence: usize) -> Result<Range<usize>> {
    let opens = lines.get(fence).is_some_and(|line| line.starts_with("```"));
    ensure!(opens, "expected a code block below the comment");
    let begin = fence + 1;
    let length = lines[begin..].iter().position(|line| *line == "```");
    let length = length.context("the code block does not end")?;
    Ok(begin..begin + length)
}

/// The results of a document's commands.
#[derive(Default)]
struct Done {
    /// The lines to replace, with their new text.
    outputs: Vec<(Range<usize>, String)>,
    /// Files to be kept beside the document.
    files: Vec<(String, Vec<u8>)>,
}

/// Runs all commands.
fn carry_out(steps: &[Step], lines: &[&str]) -> Result<Done> {
    let scratch = Scratch::new();
    let mut done = Done::default();
    for step in steps {
        match step {
            Step::File { name, lines: block } => {
                scratch.file(name, lines[block.clone()].join("\n") + "\n");
            }
            Step::Run { command } => {
                print(&scratch, command)?;
            }
            Step::Output {
                command,
                lines: block,
            } => {
                let printed = print(&scratch, command)?;
                ensure!(!printed.is_empty(), "`{command}` prints nothing");
                let is_shown = |line: &&&str| line.starts_with("$ ");
                let shown = lines[block.clone()].iter().take_while(is_shown).count();
                done.outputs.push((block.start + shown..block.end, printed));
            }
            Step::Keep { name } => {
                let bytes = fs::read(scratch.path(name)).with_context(|| name.clone())?;
                done.files.push((name.clone(), bytes));
            }
        }
    }
    Ok(done)
}

/// The output of a shell command, which must succeed.
fn print(scratch: &Scratch, command: &str) -> Result<String> {
    eprintln!("$ {command}");
    let begin = Instant::now();
    let programs = programs();
    let path = env::var_os("PATH").unwrap_or_default();
    let paths = [programs.clone(), programs.join("drop-in")];
    let paths = paths.into_iter().chain(env::split_paths(&path));
    let mut shell = Command::new("sh");
    scratch.prepare(&mut shell);
    shell
        .args(["-c", command])
        .current_dir(scratch.path(""))
        .env("PATH", env::join_paths(paths)?)
        .stderr(Stdio::inherit());
    let output = shell.output()?;
    eprintln!("  {:.0} s", begin.elapsed().as_secs_f64());
    ensure!(output.status.success(), "`{command}`: {}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// The document with these lines replaced, which are in its order.
fn replaced(lines: &[&str], outputs: &[(Range<usize>, String)]) -> String {
    let mut new = String::new();
    let mut done = 0;
    let keep = |new: &mut String, range: Range<usize>| {
        for line in &lines[range] {
            new.push_str(line);
            new.push('\n');
        }
    };
    for (range, text) in outputs {
        keep(&mut new, done..range.start);
        new.push_str(text.trim_end());
        new.push('\n');
        done = range.end;
    }
    keep(&mut new, done..lines.len());
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "\
Text.
<!-- file: loop.toml -->
```toml
name = \"loop\"
```
<!-- output of: cat loop.toml -->
```
$ cat loop.toml
old
older
```
<!-- keep: loop.toml -->
More.
";

    #[test]
    fn a_quotation_is_replaced_and_the_rest_stays() {
        let lines: Vec<&str> = DOCUMENT.lines().collect();
        let steps = steps(&lines).unwrap();
        assert_eq!(steps.len(), 3);
        let done = carry_out(&steps, &lines).unwrap();
        let new = replaced(&lines, &done.outputs);
        assert_eq!(new, DOCUMENT.replace("old\nolder", "name = \"loop\""));
        let kept = ("loop.toml".to_owned(), b"name = \"loop\"\n".to_vec());
        assert_eq!(done.files, [kept]);
    }

    #[test]
    fn a_comment_without_a_block_and_a_command_that_fails_are_errors() {
        let error = |text: &str| {
            let lines: Vec<&str> = text.lines().collect();
            let outputs = steps(&lines).and_then(|steps| carry_out(&steps, &lines));
            format!("{:#}", outputs.map(drop).unwrap_err())
        };
        let no_block = "<!-- output of: true -->\n\n```\n```\n";
        assert_eq!(
            error(no_block),
            "line 1: expected a code block below the comment"
        );
        let endless = "<!-- output of: true -->\n```\n";
        assert_eq!(error(endless), "line 1: the code block does not end");
        let fails = "<!-- output of: false -->\n```\n```\n";
        assert_eq!(error(fails), "`false`: exit status: 1");
        let silent = "<!-- output of: true -->\n```\n```\n";
        assert_eq!(error(silent), "`true` prints nothing");
    }

    #[test]
    fn other_comments_are_not_for_this_program() {
        let shown = ["```", "<!-- run: false -->", "```"];
        assert_eq!(steps(&shown).unwrap(), []);
        assert_eq!(directive("<!-- SPDX: MIT -->"), None);
        assert_eq!(directive("output of: x"), None);
        assert_eq!(directive("<!-- run: a: b -->"), Some(("run", "a: b")));
    }
}
