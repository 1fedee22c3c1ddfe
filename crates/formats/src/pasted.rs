// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text that people paste: out of mails, with quotation marks, broken lines and other line ends.

use std::borrow::Cow;

/// Restores the text as the program printed it, as far as possible: removes a byte-order mark,
/// carriage returns, quotation marks of mails (`> > `), `quoted-printable` and prefixes of the
/// kernel's log, and joins lines that a mail program has broken.
pub fn clean(text: &str) -> String {
    let text = text.trim_start_matches('\u{feff}').replace('\r', "");
    let lines: Vec<&str> = text.lines().map(unquoted).collect();
    let is_encoded = lines.iter().any(|line| line.contains("=3D"));
    let text = lines.join("\n");
    let text = if is_encoded { decoded(&text) } else { text };
    let mut whole: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = &*in_todays_form(unlogged(line));
        match whole.last_mut() {
            Some(last) if is_rest(last, line) => {
                last.truncate(last.trim_end().len());
                last.push(' ');
                last.push_str(line.trim_start());
            }
            _ => whole.push(line.to_owned()),
        }
    }
    whole.join("\n")
}

/// Removes the `> > ` of mails from a line. No line of Linux's own begins with it.
fn unquoted(line: &str) -> &str {
    let mut line = line;
    while let Some(rest) = line.trim_start().strip_prefix('>') {
        line = rest;
    }
    line
}

/// Converts a line of a latency tracer to the form since Linux 2.6.28: the head after `#`, and
/// `schedule <-do_idle` for `schedule (do_idle)`.
fn in_todays_form(line: &str) -> Cow<'_, str> {
    let own = line.trim_start();
    let is_head = (own.starts_with("latency: ") && own.contains("CPU#"))
        || own.contains(" latency trace v1.") && !own.starts_with('#')
        || own.starts_with("----------")
        || own.starts_with("| task: ")
        || own.starts_with("=> started at:")
        || own.starts_with("=> ended at:");
    let function = || {
        let (before, caller) = line.trim_end().strip_suffix(')')?.rsplit_once(" (")?;
        let (_, name) = before.rsplit_once(": ")?;
        let is_name = |name: &str| !name.is_empty() && !name.contains([' ', '=', '+']);
        let is_since =
            before.contains("us : ") || before.contains("us+: ") || before.contains("us!: ");
        (is_since && is_name(name) && is_name(caller)).then(|| format!("{before} <-{caller}"))
    };
    if is_head {
        return format!("# {own}").into();
    }
    function().map_or(line.into(), Cow::from)
}

/// Removes the `[   12.345678] ` of the kernel's log, to which an oops prints its trace.
fn unlogged(line: &str) -> &str {
    let inner = line.trim_start().strip_prefix('[');
    let Some((time, rest)) = inner.and_then(|inner| inner.split_once("] ")) else {
        return line;
    };
    let is_time =
        time.contains('.') && time.trim().bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if is_time { rest } else { line }
}

/// Decodes `=3D` and `=` at the end of a line, as mails encode them.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('=') {
        bytes.extend_from_slice(before.as_bytes());
        let digits = after.get(..2);
        if let Some(joined) = after.strip_prefix('\n') {
            rest = joined;
        } else if let Some(byte) = digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(b'=');
            rest = after;
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns true if a line is the rest of the previous one: after a blank, where mail programs
/// break lines, or by its beginning, if the blank is gone.
fn is_rest(last: &str, line: &str) -> bool {
    let own = line.trim_start();
    let is_open = last.contains("# latency:") && !last.contains(')');
    let is_gap = last.trim_end().ends_with("inner/outer(us):") && own.contains(" ts:");
    if own.starts_with("<-") || (is_open && own.ends_with(')')) || is_gap {
        return true;
    }
    let is_event = last.contains("us") || last.contains("] ");
    let is_head = own.contains("us :") || own.contains(" [") || own.starts_with("=>");
    let begins = !own.is_empty() && !own.starts_with('#') && !line.starts_with("  ");
    last.ends_with(' ') && last.contains(':') && is_event && begins && !is_head
}

/// Splits a text with several traces, each from its `# tracer:` on. Text before the first one
/// is a section of its own.
pub fn sections(text: &str) -> Vec<&str> {
    let mut starts = Vec::new();
    let mut place = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("# tracer:") {
            starts.push(place);
        }
        place += line.len();
    }
    // A latency tracer writes two such lines.
    let is_next = |own: &usize, next: &usize| {
        let between = text[*own..*next].lines().skip(1);
        between
            .into_iter()
            .any(|line| !line.trim_start().starts_with('#'))
    };
    let mut kept: Vec<usize> = Vec::new();
    for start in starts {
        if kept.last().is_none_or(|last| is_next(last, &start)) {
            kept.push(start);
        }
    }
    if kept.is_empty() || !text[..kept[0]].trim().is_empty() {
        kept.insert(0, 0);
    }
    let ends = kept.iter().skip(1).copied().chain([text.len()]);
    kept.iter()
        .zip(ends)
        .map(|(from, to)| &text[*from..to])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mails_do_to_a_text_is_undone() {
        let mail = "\u{feff}>> a-1 [000]   119: \r\n>> 49:R irq\r\n> b =3D=3D> c=\r\n> d\r\n";
        assert_eq!(clean(mail), " a-1 [000]   119: 49:R irq\n b ==> c d");
        let flowed = "> a-1 0d... 5us : 0:120:R + [000] 119: \n> 49:R irq/104\n";
        assert_eq!(
            clean(flowed),
            " a-1 0d... 5us : 0:120:R + [000] 119: 49:R irq/104"
        );
        let of_2008 = " latency: 91 us, #1/1, CPU#0 | (M:x)\n a-1 0d... 5us+: f (g)\n";
        let todays = "# latency: 91 us, #1/1, CPU#0 | (M:x)\n a-1 0d... 5us+: f <-g";
        assert_eq!(clean(of_2008), todays);
        assert_eq!(
            clean("[  12.345678] a-1 0d... 5us : f\n"),
            "a-1 0d... 5us : f"
        );
    }

    #[test]
    fn traces_are_told_apart_by_their_heads() {
        let one = "# tracer: wakeup\n#\n# tracer: wakeup_rt\n#\n a\n";
        let other = "# tracer: irqsoff\n#\n b\n";
        assert_eq!(sections(&format!("{one}{other}")), [one, other]);
        assert_eq!(sections(" a\n"), [" a\n"]);
        assert_eq!(sections(&format!("word\n{other}")), ["word\n", other]);
    }
}
