// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text that every mailer carries: ASCII, in short lines.

use std::fmt::Write as _;

use crate::repeat::quoted;
use crate::text::{clean, wrap};

use super::COLUMNS;

/// The sign for a part left out.
const CUT: &str = "...";
/// Units that no line is broken before.
const UNITS: [&str; 6] = ["ns", "us", "ms", "s", "%", "CPU"];
/// A space at which no line is broken.
const KEPT: char = '\u{a0}';
/// The end of a command's line that continues below.
const GOES_ON: &str = " \\";

/// Text in ASCII on one line.
/// Signs are spelt with ASCII characters where these exist, and `?` stands for every other
/// character that a mail may not keep.
pub(super) fn ascii(text: &str) -> String {
    let mut plain = String::new();
    for c in clean(text).chars() {
        match c {
            'µ' | 'μ' => plain.push('u'),
            '→' => plain.push_str("->"),
            '←' => plain.push_str("<-"),
            '×' => plain.push('x'),
            '–' | '—' | '−' => plain.push('-'),
            '±' => plain.push_str("+-"),
            '≤' => plain.push_str("<="),
            '≥' => plain.push_str(">="),
            '…' => plain.push_str(CUT),
            '“' | '”' => plain.push('"'),
            '‘' | '’' => plain.push('\''),
            '\u{a0}' => plain.push(' '),
            c if c.is_ascii() => plain.push(c),
            _ => plain.push('?'),
        }
    }
    plain
}

/// ASCII of so many columns at most: the excess is cut out of its middle.
pub(super) fn shortened(text: &str, width: usize) -> String {
    if text.len() <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(CUT.len());
    let (begin, end) = (kept.div_ceil(2), kept / 2);
    format!(
        "{}{CUT}{}",
        text[..begin].trim_end(),
        text[text.len() - end..].trim_start()
    )
}

/// Lines of a paragraph, its second and further ones two columns in.
pub(super) fn paragraph(text: &str, indent: &str) -> Vec<String> {
    lines(text, indent, &format!("{indent}  "))
}

/// Lines of a paragraph that begin alike.
pub(super) fn flat(text: &str) -> Vec<String> {
    lines(text, "", "")
}

/// Lines that begin with these; a number stays with its unit.
fn lines(text: &str, first: &str, rest: &str) -> Vec<String> {
    let mut kept = String::new();
    for word in ascii(text).split(' ') {
        let unit = word.trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '%');
        let sign = if UNITS.contains(&unit) { KEPT } else { ' ' };
        if !kept.is_empty() {
            kept.push(sign);
        }
        kept.push_str(word);
    }
    let lines = wrap(&kept, first, rest, COLUMNS).into_iter();
    lines.map(|line| line.replace(KEPT, " ")).collect()
}

/// So many lines at most; a sign if there were more.
pub(super) fn clipped(mut lines: Vec<String>, most: usize) -> Vec<String> {
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            let begin = COLUMNS - CUT.len() - 1;
            if last.len() > begin {
                last.truncate(begin);
                // Half a number is another one.
                let words = last.trim_end().rfind(' ').filter(|at| *at > COLUMNS / 2);
                last.truncate(words.unwrap_or(begin));
            }
            _ = write!(last, " {CUT}");
        }
    }
    lines
}

/// Splits a command that a shell takes as it stands into as many lines as it needs.
/// It splits between two words if possible, else within one.
pub(super) fn command_lines(words: &[String]) -> Vec<String> {
    let (first, rest) = ("  ", "    ");
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut is_begun = false;
    for word in words {
        let parts = parts_of(word);
        let whole = parts.concat();
        let room = COLUMNS - GOES_ON.len();
        if is_begun && line.len() + 1 + parts[0].len() > room {
            lines.push(std::mem::replace(&mut line, rest.to_owned()) + GOES_ON);
            is_begun = false;
        }
        if is_begun {
            line.push(' ');
        }
        is_begun = true;
        if line.len() + whole.len() <= room {
            line.push_str(&whole);
            continue;
        }
        // Nothing may stand before the rest of a word.
        for (part, number) in parts.iter().zip(0..) {
            if number > 0 {
                lines.push(std::mem::take(&mut line) + "\\");
            }
            line.push_str(part);
        }
    }
    lines.push(line);
    lines
}

/// A word as a shell takes it, in parts that fit into a line each.
fn parts_of(word: &str) -> Vec<String> {
    let most = COLUMNS - GOES_ON.len() - "    ".len();
    let whole = shell(word);
    if whole.len() <= most {
        return vec![whole];
    }
    let mut parts = Vec::new();
    let mut part = String::new();
    for c in word.chars() {
        let longer = format!("{part}{c}");
        if shell(&longer).len() > most {
            parts.push(shell(&part));
            part = c.to_string();
        } else {
            part = longer;
        }
    }
    parts.push(shell(&part));
    parts
}

/// A word in ASCII that every shell takes for this very word.
fn shell(word: &str) -> String {
    if word.chars().all(|c| c.is_ascii_graphic() || c == ' ') {
        return quoted(word);
    }
    let octal = |text: &mut String, byte: &u8| {
        if byte.is_ascii_alphanumeric() || b"-_./=,:+@ ".contains(byte) {
            text.push(char::from(*byte));
        } else {
            _ = write!(text, "\\{byte:03o}");
        }
    };
    let mut text = String::new();
    word.as_bytes()
        .iter()
        .for_each(|byte| octal(&mut text, byte));
    // A word that begins with `-` is no option of printf's.
    format!("\"$(printf -- '{text}')\"")
}
