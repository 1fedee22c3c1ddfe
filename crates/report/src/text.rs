// SPDX-License-Identifier: MIT OR Apache-2.0
//! The form of numbers and words, and line breaks, in terminals and on pages.

use std::fmt::Write as _;

use punctual_model::units::Nanos;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The width assumed for an unknown terminal.
pub const WIDTH: usize = 80;

/// Seconds with three or four digits: `0.301 s`.
pub fn seconds(time: Nanos) -> String {
    let (seconds, decimals) = seconds_parts(time);
    format!("{seconds:.decimals$} s")
}

/// A time as tables write it: that of work in seconds, others in the unit that suits.
pub fn time(time: Nanos, is_work: bool) -> String {
    if is_work {
        seconds(time)
    } else {
        time.to_string()
    }
}

/// The span between two times, the unit written once: `355–381 µs`.
pub fn span(low: Nanos, high: Nanos) -> String {
    let (low, high) = (low.to_string(), high.to_string());
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}–{high}"),
        _ => format!("{low}–{high}"),
    }
}

/// The span between two times in seconds: `0.301–0.310 s`.
pub fn seconds_span(low: Nanos, high: Nanos) -> String {
    let (_, decimals) = seconds_parts(low);
    let (low, high) = (low.as_secs_f64(), high.as_secs_f64());
    format!("{low:.decimals$}–{high:.decimals$} s")
}

fn seconds_parts(time: Nanos) -> (f64, usize) {
    let seconds = time.as_secs_f64();
    let decimals = match seconds.abs() {
        x if x < 0.1 => 4,
        x if x < 10.0 => 3,
        x if x < 100.0 => 2,
        _ => 1,
    };
    (seconds, decimals)
}

/// A count with its thousands apart: `16,000`.
pub fn thousands(count: u64) -> String {
    if count < 1_000 {
        return count.to_string();
    }
    format!("{},{:03}", thousands(count / 1_000), count % 1_000)
}

/// `4.15 → 4.66 µs`: a time before and after; a unit that both share is written once.
pub fn arrow(there: Nanos, here: Nanos) -> String {
    let (there, here) = (there.to_string(), here.to_string());
    match (there.split_once(' '), here.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} → {here}"),
        _ => format!("{there} → {here}"),
    }
}

/// A number of things: `1 line`, `2 lines`.
pub fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", thousands(count as u64))
}

/// The verb of a number of things: `is` of one, else `are`.
pub fn is_or_are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// Nanoseconds to the last digit, without their unit: `-1,204,112`.
pub fn exact(time: Nanos) -> String {
    let sign = if time < Nanos::ZERO { "-" } else { "" };
    format!("{sign}{}", thousands(time.0.unsigned_abs()))
}

/// The ratio of two times: `2.41×`; far below one, as a fraction: `1/107`.
pub fn times(ratio: f64) -> String {
    if ratio > 0.0 && ratio < 0.1 {
        format!("1/{:.0}", 1.0 / ratio)
    } else {
        format!("{ratio:.2}×")
    }
}

/// A list in words: `a, b and c`.
pub fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Returns true if a character is not visible, but makes a terminal or a page do things.
/// That is a control character, or one that changes the direction of the text around it.
pub fn is_command(c: char) -> bool {
    let turns = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    let breaks = matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}');
    c.is_control() || turns || breaks
}

/// Text of foreign origin on one line, without characters that [command](is_command).
pub fn clean(text: &str) -> String {
    text.replace(is_command, " ")
}

/// A text of several lines, with tabs, but no other characters that [command](is_command).
/// Anyone may have written parts of it.
pub fn clean_lines(text: &str) -> String {
    text.replace(|c| is_command(c) && c != '\n' && c != '\t', " ")
}

/// The same JSON with characters that [command](is_command) escaped.
pub fn clean_json(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        // Line ends are between values; within them they are escaped anyway.
        if c == '\n' || !is_command(c) {
            clean.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(clean, "\\u{unit:04x}");
            }
        }
    }
    clean
}

/// The number of columns that a text takes in a terminal: two for some letters, none for others.
pub fn columns_of(text: &str) -> usize {
    text.width()
}

/// Text of at most `width` columns, with a sign for the part cut out of its middle.
/// Names of similar kernels differ at the end.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let start = &text[..fitting(text, width / 2)];
    let reversed: String = text.chars().rev().collect();
    let end = reversed[..fitting(&reversed, (width - 1) / 2)]
        .chars()
        .rev();
    format!("{start}…{}", end.collect::<String>())
}

/// Names of at most `width` columns each.
/// If one is too wide, all lose the words with which they all begin: the rest tells them apart.
pub fn short_names<T: AsRef<str>>(names: &[T], width: usize) -> Vec<String> {
    let names: Vec<String> = names.iter().map(|name| clean(name.as_ref())).collect();
    if names.iter().all(|name| name.width() <= width) {
        return names;
    }
    let words: Vec<Vec<&str>> = names.iter().map(|name| name.split(' ').collect()).collect();
    let is_common = |at: &usize| {
        let first = words[0].get(*at);
        // Each keeps its last word.
        let same = |own: &Vec<&str>| own.len() > at + 1 && own.get(*at) == first;
        words.len() > 1 && words.iter().all(same)
    };
    let most = words[0].len();
    let common = (0..most).take_while(is_common).count();
    let short = words.iter().map(|own| {
        let rest = own[common..].join(" ");
        let sign = if common > 0 { "…" } else { "" };
        cut(&format!("{sign}{rest}"), width)
    });
    short.collect()
}

/// Counts the bytes of a text that fit into `width` columns.
fn fitting(text: &str, width: usize) -> usize {
    let mut used = 0;
    let mut chars = text.char_indices();
    let over = chars.find(|(_, c)| {
        used += c.width().unwrap_or(0);
        used > width
    });
    over.map_or(text.len(), |(at, _)| at)
}

/// Lines for a terminal that has so many columns.
pub struct Lines {
    width: usize,
    lines: Vec<String>,
}

impl Lines {
    /// Creates a list without lines.
    pub fn new(width: usize) -> Self {
        let lines = Vec::new();
        Self { width, lines }
    }

    /// Adds text. The part that does not fit continues on further lines, each two columns in.
    pub fn put(&mut self, text: &str) {
        self.wrap(text, "", "  ");
    }

    /// Adds text that begins with `first`, its further lines with `rest`.
    pub fn wrap(&mut self, text: &str, first: &str, rest: &str) {
        self.lines.extend(wrap(text, first, rest, self.width));
    }

    /// Adds a line unchanged. An empty one separates the lines above from those below.
    pub fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// Returns all lines; empty if there are none.
    pub fn finish(self) -> String {
        let lines = self.lines.iter().map(|line| format!("{line}\n"));
        lines.collect()
    }
}

/// Rows as columns of equal width, the first to the left, all others to the right.
pub fn columns(rows: &[Vec<String>]) -> Vec<String> {
    let count = rows.first().map_or(0, Vec::len);
    let wide = |at: usize| rows.iter().map(|row| row[at].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(wide).collect();
    let line = |row: &Vec<String>| {
        let mut line = format!("  {}{}", row[0], " ".repeat(widths[0] - row[0].width()));
        for (cell, wide) in row.iter().zip(&widths).skip(1) {
            line = format!("{line}  {}{cell}", " ".repeat(wide - cell.width()));
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Lines of at most `width` columns; `first` begins the first, `rest` the others.
pub fn wrap(text: &str, first: &str, rest: &str, width: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), first.to_owned());
    let mut begun = false;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word = word.to_owned();
        if begun && line.width() + 1 + word.width() > width {
            lines.push(std::mem::replace(&mut line, rest.to_owned()));
            begun = false;
        }
        // A word longer than a line is broken, not cut: it may be a path or a checksum.
        while line.width() + word.width() > width {
            let part = split_off(&mut word, width - line.width());
            lines.push(std::mem::replace(&mut line, rest.to_owned()) + &part);
        }
        if begun {
            line.push(' ');
        }
        line.push_str(&word);
        begun = true;
    }
    lines.push(line);
    lines
}

/// Takes the first `width` columns off a word, at least one character.
fn split_off(word: &mut String, width: usize) -> String {
    let first = word.chars().next().map_or(0, char::len_utf8);
    let end = fitting(word, width).max(first);
    word.drain(..end).collect()
}

/// Text with its numbers and their units kept on one line.
pub fn unbroken(text: &str) -> String {
    let mut kept = text.to_owned();
    for unit in ["ns", "µs", "ms", "s", "%"] {
        for end in [";", ",", " ", ":", "."] {
            kept = kept.replace(&format!(" {unit}{end}"), &format!("\u{a0}{unit}{end}"));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_foreign_commands_a_terminal_or_turns_a_line() {
        let evil = "a\x1b[2J\0b\u{202e}c\u{2066}d\u{9b}e\u{200f}f\r\ng\th\u{2028}i";
        assert_eq!(clean(evil), "a [2J b c d e f  g h i");
        assert_eq!(clean_lines(evil), "a [2J b c d e f \ng\th i");
        // Who reads JSON gets every character.
        let value = serde_json::json!({ "name": evil });
        let text = clean_json(&format!("{value:#}\n"));
        assert!(text.chars().all(|c| c == '\n' || !is_command(c)), "{text}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            value
        );
        assert_eq!(clean("µs × … é 中"), "µs × … é 中");
    }

    #[test]
    fn times_are_written_shortly() {
        assert_eq!(seconds(Nanos(301_234_567)), "0.301 s");
        assert_eq!(seconds(Nanos(12_300_000)), "0.0123 s");
        assert_eq!(span(Nanos(355_000), Nanos(381_400)), "355–381 µs");
        assert_eq!(span(Nanos(355_000), Nanos(1_020_000)), "355 µs–1.02 ms");
        let (low, high) = (Nanos(100_400_000), Nanos(1_030_000_000));
        assert_eq!(seconds_span(low, high), "0.100–1.030 s");
        assert_eq!(thousands(1_000_007), "1,000,007");
        assert_eq!(thousands(16_000), "16,000");
        assert_eq!(thousands(999), "999");
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }

    #[test]
    fn exact_times_and_ratios_are_easy_to_read() {
        assert_eq!(exact(Nanos(1_234_567)), "1,234,567");
        assert_eq!(exact(Nanos(-1_000)), "-1,000");
        assert_eq!(times(1.0 / 107.0), "1/107");
        assert_eq!((times(0.75), times(2.0)), ("0.75×".into(), "2.00×".into()));
    }

    #[test]
    fn lines_are_broken_between_words_and_names_are_cut_in_the_middle() {
        assert_eq!(wrap("one two three", "", "  ", 7), ["one two", "  three"]);
        let whole = wrap("one two three", "", "  ", usize::MAX);
        assert_eq!(whole, ["one two three"]);
        let path = wrap("/a/long/path", "- ", "  ", 8);
        assert_eq!(path, ["- /a/lon", "  g/path"]);
        assert_eq!(cut("abcdefg", 5), "ab…fg");
        assert_eq!(cut("abcdefg", 6), "abc…fg");
    }
}
