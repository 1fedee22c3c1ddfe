//! Standard output: what kind of terminal it is, if any, and runs in the form asked for.

use std::fs;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use punctual_model::Run;
use punctual_report::table::WIDTH;
use serde_json::Value;

/// Writes text to standard output. A reader that has gone, like `head`, is no error.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("standard output")
        }
        _ => Ok(()),
    }
}

/// Prints a JSON value, indented.
pub fn print_json(value: &Value) -> Result<()> {
    print(&format!("{value:#}\n"))
}

/// Prints the table of runs, as wide as the terminal, with colour only there.
pub fn print_table(runs: &[Run]) -> Result<()> {
    let width = terminal_size::terminal_size().map_or(WIDTH, |(width, _)| width.0.into());
    print(&punctual_report::table(runs, width, has_colour()))
}

/// See <https://no-color.org>.
fn has_colour() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    io::stdout().is_terminal() && !set("NO_COLOR") && !dumb
}

/// One run as an object of its own, several as a list.
pub fn json(runs: &[Run], raw: bool) -> Value {
    match runs {
        [run] => punctual_report::run_json(run, raw),
        runs => punctual_report::runs_json(runs, raw),
    }
}

/// Writes the page about runs to a file.
pub fn write_report(runs: &[Run], path: &Path) -> Result<()> {
    fs::write(path, punctual_report::page(runs))
        .with_context(|| format!("cannot write the report to {}", path.display()))
}

/// Rows as columns of equal width, two spaces between them.
pub fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let length = |text: &String| text.chars().count();
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(length)
            .max()
    };
    let widths: Vec<usize> = (0..count)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let text = columns(&[row(["a", "b"]), row(["µsec", "d"])]);
        assert_eq!(text, "a     b\nµsec  d\n");
    }
}
