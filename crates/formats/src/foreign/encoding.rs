// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text of a file that was transferred in any way: saved by `PowerShell`, cut from a mail,
//! copied from a terminal.

use std::borrow::Cow;

use crate::FormatError;

/// First bytes of files that are not text, and the names of their formats.
const NO_TEXT: [(&[u8], &str); 7] = [
    (b"\x1f\x8b", "compressed by gzip: unpack it first (gunzip)"),
    (b"\xfd7zXZ\0", "compressed by xz: unpack it first (unxz)"),
    (
        b"\x28\xb5\x2f\xfd",
        "compressed by zstd: unpack it first (unzstd)",
    ),
    (b"BZh", "compressed by bzip2: unpack it first (bunzip2)"),
    (b"PK\x03\x04", "a zip archive: unpack it first (unzip)"),
    (
        b"\x17\x08\x44tracing",
        "a trace.dat of trace-cmd, which holds no histogram",
    ),
    (b"\x7fELF", "a program"),
];

/// Decodes the text of a file: UTF-8 with or without a byte-order mark, UTF-16 as `PowerShell`
/// writes it, else Latin-1. Lines end as on Unix. Colours and cursor movements of a terminal, the
/// `> ` of a mail and indentation are removed. A cursor that moves up leaves a [`SCREEN`]: the text
/// after it covers what was shown before.
///
/// # Errors
/// Fails if the file is known not to be text.
pub fn decode(bytes: &[u8]) -> Result<String, FormatError> {
    let known = NO_TEXT.iter().find(|(start, _)| bytes.starts_with(start));
    if let Some((_, what)) = known {
        return Err(FormatError::new(1, "a text", what));
    }
    let text = match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => utf8_or_latin1(rest),
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes).into(),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes).into(),
        // ASCII without the mark.
        [first, 0, second, 0, ..] if *first > 0 && *second > 0 => {
            utf16(bytes, u16::from_le_bytes).into()
        }
        [0, first, 0, second, ..] if *first > 0 && *second > 0 => {
            utf16(bytes, u16::from_be_bytes).into()
        }
        _ => utf8_or_latin1(bytes),
    };
    Ok(clean(&text))
}

/// First character of a line that covers an earlier one on the screen.
pub const SCREEN: char = '\u{c}';

fn utf8_or_latin1(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|two| unit([two[0], two[1]]));
    char::decode_utf16(units)
        .map(|one| one.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// Removes from lines everything that the program itself did not write.
fn clean(text: &str) -> String {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines = without_times(&lines).unwrap_or(lines);
    let mut clean = String::with_capacity(lines.len());
    for line in lines.lines() {
        let (line, is_again) = without_escapes(line);
        let line = line.trim_start_matches(|c: char| c == '>' || c.is_whitespace());
        let (line, is_again) = match without_up(line) {
            Some(rest) => (rest, true),
            None => (line, is_again),
        };
        // No other program's lines are read behind it.
        let is_screen = line.is_empty() || line.starts_with("T:") || line.starts_with("policy:");
        clean.extend(Some(SCREEN).filter(|_| is_again && is_screen));
        clean += line;
        clean.push('\n');
    }
    clean
}

/// Removes the time that a CI's log has put before each line:
/// `2024-08-29T10:24:53.1234567Z `.
fn without_times(text: &str) -> Option<String> {
    let without = |line: &str| {
        let (time, rest) = line.split_once(' ').unwrap_or((line, ""));
        let time = time.trim_end_matches('Z').as_bytes();
        let is_time = time.len() >= 19 && time[10] == b'T' && time[4] == b'-' && time[13] == b':';
        let is_part = |one: &u8| one.is_ascii_digit() || b"-:T.+".contains(one);
        (is_time && time.iter().all(is_part)).then(|| rest.to_owned() + "\n")
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(without)
        .collect::<Option<String>>()
        .filter(|text| !text.is_empty())
}

/// Removes the sequences that move a terminal's cursor or colour its text from a line. Also
/// returns true if one of them moves the cursor up.
fn without_escapes(line: &str) -> (Cow<'_, str>, bool) {
    if !line.contains('\x1b') {
        return (line.into(), false);
    }
    let (mut text, mut is_up) = (String::new(), false);
    let mut parts = line.split("\x1b[");
    text += parts.next().unwrap_or_default();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic());
        is_up |= end.is_some_and(|end| part[end..].starts_with('A'));
        text += end.map_or("", |end| &part[end + 1..]);
    }
    (text.into(), is_up)
}

/// Returns the line after `[4A`, which a forum leaves of the sequence that moves the cursor up.
fn without_up(line: &str) -> Option<&str> {
    let (lines, rest) = line.strip_prefix('[')?.split_once('A')?;
    let is_number = !lines.is_empty() && lines.bytes().all(|one| one.is_ascii_digit());
    is_number.then(|| rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_way_a_text_came_it_is_the_same() {
        let text = "# Histogram\n1 2\n";
        let units = || "# Histogram\r\n1 2\r\n".encode_utf16();
        let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        let with_mark = |mark: &[u8], rest: &[u8]| [mark, rest].concat();
        for bytes in [
            text.into(),
            with_mark(b"\xef\xbb\xbf", text.as_bytes()),
            with_mark(b"\xff\xfe", &little),
            with_mark(b"\xfe\xff", &big),
            little,
            big,
            b"> # Histogram\r\n> 1 2\r\n".to_vec(),
            b">> # Histogram\n> > 1 2\n".to_vec(),
            b"\t# Histogram\n    1 2".to_vec(),
            b"\x1b[2A# Hist\x1b[1;32mogram\n1 2\n".to_vec(),
        ] {
            assert_eq!(decode(&bytes).unwrap(), text, "{bytes:?}");
        }
        let of_ci = b"2024-08-29T10:24:53 # Histogram\n2024-08-29T10:24:54.1234567Z 1 2\n";
        assert_eq!(decode(of_ci).unwrap(), text);
        let screens = b"T: 0\n\x1b[3Apolicy: fifo\n[3AT: 0\n\x1b[3A\n\x1b[3Ax\n";
        let expected = "T: 0\n\u{c}policy: fifo\n\u{c}T: 0\n\u{c}\nx\n";
        assert_eq!(decode(screens).unwrap(), expected);
        assert_eq!(decode(b"# 5 \xb5s\n").unwrap(), "# 5 µs\n");
        assert_eq!(decode(b"").unwrap(), "");
    }

    #[test]
    fn what_is_no_text_is_named() {
        for (bytes, named) in [
            (&b"\x1f\x8b\x08"[..], "gunzip"),
            (b"PK\x03\x04", "unzip"),
            (b"\x17\x08\x44tracing", "trace.dat"),
        ] {
            let error = decode(bytes).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
