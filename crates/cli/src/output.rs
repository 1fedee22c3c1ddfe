// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output: the kind of terminal, if it is one, and runs in the requested form.

mod whole;

use std::fs;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use punctual_model::Run;
use punctual_report::repeat::quoted;
use punctual_report::text::{
    WIDTH, clean, clean_json, clean_lines, columns_of, counted, is_or_are, wrap,
};
use punctual_runner::documents;
use serde_json::Value;

use crate::UsageError;

pub use whole::WholeFile;

/// Writes a line to standard error. Nothing in it commands the terminal, whoever has written it. A
/// reader that has gone, like `head`, is no error.
macro_rules! say {
    ($($what:tt)*) => {
        _ = std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("{}\n", punctual_report::text::clean_lines(&format!($($what)*))),
        )
    };
}
pub(crate) use say;

/// Writes text to standard output. Nothing in it commands the terminal, whoever has written it.
pub fn print(text: &str) -> Result<()> {
    print_exactly(&clean_lines(text))
}

/// Writes text to standard output unchanged. A reader that has gone, like `head`, is no error.
pub fn print_exactly(text: &str) -> Result<()> {
    print_lines(|out| out.write_all(text.as_bytes()))
}

/// Prints the output of `write`, of any length. A reader that has gone, like `head`, is no error.
pub fn print_lines(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("standard output")
        }
        _ => Ok(()),
    }
}

/// Prints a JSON value, indented.
pub fn print_json(value: &Value) -> Result<()> {
    print_exactly(&clean_json(&format!("{value:#}\n")))
}

/// Prints a result in the requested form: as JSON, or as text of the terminal's width.
pub fn print_result(
    as_json: bool,
    json: impl FnOnce() -> Value,
    text: impl FnOnce(usize) -> String,
) -> Result<()> {
    if as_json {
        print_json(&json())
    } else {
        print(&text(width()))
    }
}

/// The width of tables: `COLUMNS` if it is set, else the terminal's; 80 without a terminal.
pub fn width() -> usize {
    known_width().unwrap_or(WIDTH)
}

/// The width of text whose lines may be cut; without a terminal they are not.
pub fn text_width() -> usize {
    known_width().unwrap_or(usize::MAX)
}

fn known_width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok();
    let columns = columns.and_then(|columns| columns.trim().parse().ok());
    let terminal = || {
        let size = terminal_size::terminal_size_of(io::stdout());
        size.map(|(width, _)| width.0.into())
    };
    columns
        .filter(|columns| *columns > 0)
        .or_else(terminal)
        .map(|width: usize| width.max(40))
}

/// Prints the table of runs, as wide as the terminal, and coloured only there. Below it prints what
/// the document that they repeat says, and whether they show it.
pub fn print_table(runs: &[Run]) -> Result<()> {
    let width = width();
    let documents = documents::all()?;
    let table = punctual_report::table(runs, width, has_colour());
    // Its colours are ours.
    print_exactly(&(table + &punctual_report::directions_text(runs, &documents, width)))
}

/// Returns true if standard output takes colours; see <https://no-color.org>.
pub fn has_colour() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    io::stdout().is_terminal() && !set("NO_COLOR") && !dumb
}

/// Writes the page about runs to a file.
pub fn write_report(runs: &[Run], path: &Path) -> Result<()> {
    let documents = documents::all()?;
    write_page(&punctual_report::page(runs, &documents), path)
}

/// Writes a page to a file.
pub fn write_page(page: &str, path: &Path) -> Result<()> {
    write_whole(path, page)
        .with_context(|| format!("cannot write the report to {}", path.display()))?;
    say!("The report is in {}", path.display());
    Ok(())
}

/// Writes a file so that a reader meanwhile finds all of it or the former one; a pipe, a device and
/// what is open, such as `/dev/stdout`, are written to.
pub fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let mut file = WholeFile::create(path)?;
    file.write_all(text.as_bytes())?;
    file.finish().map(drop)
}

/// Writes data and scripts for gnuplot into a directory, which is made if it does not exist. Each
/// file is written as a whole or not at all.
pub fn write_data(runs: &[Run], directory: &Path) -> Result<()> {
    let named = |path: &Path| format!("cannot write the data to {}", path.display());
    fs::create_dir_all(directory).with_context(|| named(directory))?;
    let files = punctual_report::gnuplot::files(runs);
    for file in &files {
        let path = directory.join(&file.name);
        write_whole(&path, &file.text).with_context(|| named(&path))?;
    }
    say!("{}", drawn_by(files.len(), directory));
    Ok(())
}

/// The message with the number of gnuplot's files in a directory, and how to draw them.
fn drawn_by(count: usize, directory: &Path) -> String {
    let (files, are) = (counted(count, "file"), is_or_are(count));
    let cd = format!("cd {}", quoted(&directory.to_string_lossy()));
    let directory = directory.display();
    if count == 0 {
        return format!("{directory} has no files: no recording has samples to draw");
    }
    format!("{files} {are} in {directory}: `{cd} && gnuplot *.gp` draws them")
}

/// Checks that a file can be written, before any work whose results it must take.
pub fn check_file(path: Option<&Path>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    check_parent(path)?;
    if path.is_dir() {
        let path = path.display();
        return Err(UsageError(format!(
            "expected a file to write to, found the directory {path}: name a file in it"
        ))
        .into());
    }
    whole::check(path).with_context(|| format!("{} cannot be written", path.display()))
}

/// Refuses a file in a directory that does not exist.
pub fn check_parent(path: &Path) -> Result<(), UsageError> {
    let parent = path.parent().filter(|path| !path.as_os_str().is_empty());
    match parent {
        Some(parent) if matches!(parent.try_exists(), Ok(false)) => {
            let command = format!("mkdir -p {}", quoted(&parent.to_string_lossy()));
            let parent = parent.display();
            Err(UsageError(format!(
                "expected a file in an existing directory, found no {parent}: `{command}` makes it"
            )))
        }
        _ => Ok(()),
    }
}

/// Checks that a directory can be made and written to, before any work whose results it must take.
pub fn check_directory(path: Option<&Path>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    if path.exists() && !path.is_dir() {
        let path = path.display();
        return Err(UsageError(format!(
            "expected a directory to write to, found the file {path}: name a directory, or none \
             that exists"
        ))
        .into());
    }
    let made = fs::create_dir_all(path).and_then(|()| tempfile::tempfile_in(path));
    made.with_context(|| format!("{} cannot be written to", path.display()))?;
    Ok(())
}

/// Rows as columns of equal width, with two spaces between them. If a terminal or a page has only
/// `width` columns, the last column of a row continues below itself, or, if little space is left
/// for it, is printed below the row.
pub fn columns(rows: &[Vec<String>], width: usize) -> String {
    let cells = |row: &Vec<String>| row.iter().map(|cell| clean(cell)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|text| columns_of(text)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(widest).collect();
    let mut text = String::new();
    for row in &rows {
        let Some((last, others)) = row.split_last() else {
            continue;
        };
        let cells = others.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell}{}  ", " ".repeat(width - columns_of(cell))))
            .collect();
        let first = cells.concat();
        let indent = columns_of(&first);
        let lines = if width > indent + LEAST {
            wrap(last, &first, &" ".repeat(indent), width)
        } else if indent + columns_of(last) <= width {
            vec![first + last]
        } else {
            [vec![first], wrap(last, BELOW, BELOW, width)].concat()
        };
        for line in lines {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}

/// The narrowest column that is wrapped: a narrower one would have a word a line.
const LEAST: usize = 20;

/// The indentation of the last column if it is below its row.
const BELOW: &str = "    ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let text = columns(&[row(["a", "b"]), row(["µsec", "d"])], 80);
        assert_eq!(text, "a     b\nµsec  d\n");
        let text = columns(&[row(["中文", "b"]), row(["abcde", "d"])], 80);
        assert_eq!(text, "中文   b\nabcde  d\n");
    }

    #[test]
    fn a_strangers_cell_is_one_line_and_commands_nothing() {
        let row = ["a\nb\u{202e}c\0".to_owned(), "\x1b[31md".to_owned()];
        assert_eq!(columns(&[row.to_vec()], 80), "a b c   [31md\n");
    }

    #[test]
    fn a_long_cell_goes_on_below_itself() {
        let row = ["timer", "how late is a thread that sleeps"]
            .map(str::to_owned)
            .to_vec();
        let text = columns(&[row], 32);
        assert_eq!(text, "timer  how late is a thread that\n       sleeps\n");
    }

    #[test]
    fn a_cell_with_little_room_stands_below_its_row() {
        let row = |last: &str| ["debian-6.12", "6.12.1", last].map(str::to_owned).to_vec();
        let text = columns(&[row("stock"), row("Debian's stock build")], 32);
        let expected = "debian-6.12  6.12.1  stock\n\
                        debian-6.12  6.12.1\n    Debian's stock build\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_path_that_cannot_be_written_is_found_before() {
        let directory = tempfile::tempdir().unwrap();
        let page = directory.path().join("page.html");
        check_file(Some(&page)).unwrap();
        assert!(!page.exists(), "the check leaves nothing");
        fs::write(&page, "old").unwrap();
        check_file(Some(&page)).unwrap();
        assert_eq!(fs::read(&page).unwrap(), b"old");
        for wrong in [
            directory.path().join("none/page.html"),
            directory.path().to_owned(),
        ] {
            assert!(check_file(Some(&wrong)).is_err(), "{}", wrong.display());
        }
        let refused = check_file(Some(directory.path())).unwrap_err();
        assert!(refused.is::<UsageError>(), "{refused}");
        check_directory(Some(directory.path())).unwrap();
        let refused = check_directory(Some(&page)).unwrap_err();
        assert!(refused.is::<UsageError>(), "{refused}");
    }

    #[test]
    fn what_draws_the_files_can_be_pasted() {
        let told = |count| drawn_by(count, Path::new("my data"));
        let expected = "6 files are in my data: `cd 'my data' && gnuplot *.gp` draws them";
        assert_eq!(told(6), expected);
        assert!(!told(0).contains("gnuplot"), "{}", told(0));
    }

    #[test]
    fn a_file_in_no_directory_is_a_wrong_request() {
        let directory = tempfile::tempdir().unwrap();
        let lost = directory.path().join("none");
        let wrong = check_file(Some(&lost.join("page.html"))).unwrap_err();
        let lost = lost.display();
        let expected = format!(
            "expected a file in an existing directory, found no {lost}: `mkdir -p {lost}` makes it"
        );
        assert_eq!(wrong.to_string(), expected);
        assert!(wrong.is::<UsageError>());
        for there in ["page.html", "/page.html", "./page.html"] {
            assert!(check_parent(Path::new(there)).is_ok(), "{there}");
        }
        assert!(check_parent(&directory.path().join("page.html")).is_ok());
    }
}
