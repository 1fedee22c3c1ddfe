// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual man`: manual pages, from the same text as `--help`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, Command, CommandFactory as _};
use clap_mangen::Man as Page;

use super::Cli;
use crate::{ExitStatus, UsageError, output};

/// Print the manual page, or write all of them to a directory
#[derive(Debug, Args)]
pub struct Man {
    /// Write punctual.1, punctual-run.1 and so on to this directory
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl Man {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        if let Some(directory) = &self.directory {
            refuse_command(&command, directory)?;
            fs::create_dir_all(directory)
                .and_then(|()| write_all(&command, directory))
                .with_context(|| directory.display().to_string())?;
        } else {
            let (_, page) = page(&command)?;
            output::print_exactly(&String::from_utf8_lossy(&page))?;
        }
        Ok(ExitStatus::Done)
    }
}

/// Refuses the name of a command in place of a directory: its user wants that command's page.
fn refuse_command(command: &Command, word: &Path) -> Result<(), UsageError> {
    let name = word.to_string_lossy();
    if word.is_dir() || command.find_subcommand(&*name).is_none() {
        return Ok(());
    }
    Err(UsageError(format!(
        "expected a directory, found the command {name}: `punctual {name} --help` describes it, \
         and `punctual man ./{name}` writes into a directory of this name"
    )))
}

/// Writes the page of a command and those of the commands below it.
fn write_all(command: &Command, directory: &Path) -> io::Result<()> {
    let (name, text) = page(command)?;
    fs::write(directory.join(name), text)?;
    let mut below = command.get_subcommands();
    below.try_for_each(|command| write_all(command, directory))
}

/// The page of a command, and its file's name. The final text of `--help` becomes separate
/// sections, line by line: `clap_mangen` would fill it as one paragraph.
fn page(command: &Command) -> io::Result<(String, Vec<u8>)> {
    let end = command.get_after_help().map(ToString::to_string);
    let page = Page::new(command.clone().after_help(None::<&str>));
    let mut text = Vec::new();
    page.render(&mut text)?;
    text.extend(sections(end.as_deref().unwrap_or_default()).into_bytes());
    Ok((page.get_filename(), text))
}

/// Turns paragraphs that begin with a heading into sections, and adds the others to those before.
fn sections(text: &str) -> String {
    let mut roff = String::new();
    for paragraph in text
        .trim()
        .split("\n\n")
        .filter(|paragraph| !paragraph.is_empty())
    {
        let heading = paragraph.split_once(':').filter(|(heading, _)| {
            let mut chars = heading.chars();
            chars.next().is_some_and(char::is_uppercase)
                && chars.all(|c| c.is_lowercase() || c == ' ')
                && heading.len() <= LONGEST_HEADING
        });
        let lines = heading.map_or(paragraph, |(_, rest)| rest.trim_start_matches(['\n', ' ']));
        roff += &heading.map_or(".PP\n".to_owned(), |(heading, _)| {
            format!(".SH \"{}\"\n", heading.to_uppercase())
        });
        roff += ".nf\n";
        for line in lines.lines() {
            roff += &escaped(line.trim_start());
            roff.push('\n');
        }
        roff += ".fi\n";
    }
    roff
}

/// The longest heading; a longer one is a sentence with a colon.
const LONGEST_HEADING: usize = 14;

/// A line of text, escaped so that groff takes it as text.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    if line.starts_with(['.', '\'']) {
        return format!("\\&{line}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_stay_in_lines() {
        let roff = sections(
            "Examples:\n  punctual run a-b\n  punctual runs\n\nExit status: 0 done\n\n.more",
        );
        let expected = ".SH \"EXAMPLES\"\n.nf\npunctual run a\\-b\npunctual runs\n.fi\n\
            .SH \"EXIT STATUS\"\n.nf\n0 done\n.fi\n.PP\n.nf\n\\&.more\n.fi\n";
        assert_eq!(roff, expected);
    }

    #[test]
    fn a_command_is_no_directory() {
        let refused = |word: &str| refuse_command(&Cli::command(), Path::new(word));
        let said = refused("run").unwrap_err().to_string();
        assert!(
            said.contains("`punctual run --help` describes it"),
            "{said}"
        );
        for directory in ["./run", "out", "/tmp/run"] {
            assert!(refused(directory).is_ok(), "{directory}");
        }
    }

    #[test]
    fn no_page_fills_its_examples() {
        let mut command = Cli::command();
        command.build();
        let run = command.find_subcommand("run").unwrap();
        let (name, text) = page(run).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(name, "punctual-run.1");
        assert!(
            text.contains(".SH \"EXAMPLES\"\n.nf\npunctual run demo\n"),
            "{text}"
        );
        assert!(!text.contains("EXTRA"));
    }
}
