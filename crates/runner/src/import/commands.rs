// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command lines of results: as people type them into a shell, and as `punctual_formats` reads
//! them.

use std::borrow::Cow;
use std::ops::Range;

use punctual_formats::foreign::{self, Foreign};
use punctual_formats::{cyclictest_command, cyclictest_histogram, rtla_timerlat};

use super::ImportError;

/// A program whose command lines are read.
struct Program {
    /// Its name in [`Foreign`].
    name: &'static str,
    /// The words before its options.
    words: &'static str,
    /// The letters of its options that take no argument.
    flags: &'static str,
    /// The letter of its option `--duration`.
    duration: char,
    /// Its options that say how long it is to run.
    lengths: &'static [&'static str],
    /// Long names of options, which may be shortened as far as they are unique: those that its
    /// reader does not complete itself, and all that begin like `--duration`.
    names: &'static [&'static str],
}

static CYCLICTEST: Program = Program {
    name: "cyclictest",
    words: "cyclictest",
    flags: "BCEIMNPQRSUWfmnqrsuvwx",
    duration: 'D',
    lengths: &["-D", "--duration", "-l", "--loops"],
    names: &[
        "deepest-idle-state",
        "default-system",
        "distance",
        "duration",
    ],
};

static RTLA: Program = Program {
    name: "rtla timerlat",
    words: "timerlat hist",
    flags: "DUknqu",
    duration: 'd',
    lengths: &["-d", "--duration"],
    names: &[
        "aligned",
        "auto",
        "bpf-action",
        "bucket-size",
        "cgroup",
        "cpus",
        "debug",
        "deepest-idle-state",
        "dma-latency",
        "dump-task",
        "duration",
        "entries",
        "event",
        "filter",
        "help",
        "house-keeping",
        "irq",
        "kernel-threads",
        "nano",
        "no-aa",
        "no-header",
        "no-index",
        "no-irq",
        "no-summary",
        "no-thread",
        "on-end",
        "on-threshold",
        "period",
        "priority",
        "quiet",
        "stack",
        "stack-format",
        "thread",
        "trace",
        "trace-buffer-size",
        "trigger",
        "user-load",
        "user-threads",
        "warm-up",
        "with-zeros",
    ],
};

/// The end of rtla's line about samples that its tracer lost.
const MISSED: &str = "events missed, results might not be accurate";

/// Programs that run another one, which their command lines name.
const RUNNERS: [&str; 16] = [
    "chrt", "doas", "env", "exec", "ionice", "nice", "nohup", "numactl", "setsid", "ssh", "stdbuf",
    "strace", "sudo", "taskset", "time", "timeout",
];

/// The program that ends another one after a time.
const TIMEOUT: &str = "timeout";

/// Options that measure nothing, if they are alone.
const NOTHING: [&str; 3] = ["--help", "-h", "--version"];

/// The start of the reason why a measurement may be incomplete: its command line does not tell.
pub const UNREAD: &str = "its command line is not understood";

/// Options of cyclictest that take no argument, change nothing, and are unknown to its reader.
const IDLE: [&str; 2] = ["--dbg_cyclictest", "--notrace"];

/// Reads a file. A measurement is cut short, too, if nobody knows how long it was to run.
///
/// # Errors
/// If the file has no known format, is damaged, or contradicts itself.
pub fn read(content: &[u8]) -> Result<Foreign, ImportError> {
    let text = foreign::decode(content)?;
    let json = in_json(&text);
    let found = above(&text);
    let plain = match &json {
        Some((place, _, plain)) => {
            let mut whole = text.clone();
            whole.replace_range(place.clone(), plain);
            Some(whole)
        }
        None => (!found.is_empty()).then(|| plain(&text, &found)),
    };
    let plain: Cow<'_, [u8]> = plain.map_or(content.into(), |plain| encoded(plain, content).into());
    if json.as_ref().is_some_and(|(_, own, _)| !is_named(own)) {
        // The reader knows by their names which programs measure something else.
        let read = foreign::read_bytes(content);
        read.map_err(|error| broken_off(&text).unwrap_or(error.into()))?;
    }
    let read = foreign::read_bytes(&plain);
    let mut foreign = read.map_err(|error| broken_off(&text).unwrap_or(error.into()))?;
    let unread = match &foreign.command {
        Some(command) => CYCLICTEST.unread(&plain_of_json(command)),
        None => unread(&text, &found, foreign.program),
    };
    let cut = foreign.cut_short.take().or_else(|| missed(&text, &foreign));
    foreign.cut_short = cut.or_else(|| {
        unread.map(|word| format!("{UNREAD} at \"{word}\": how long it was to run is unknown"))
    });
    if let Some((_, command, _)) = json.filter(|_| foreign.command.is_some()) {
        foreign.command = Some(command);
    }
    Ok(foreign)
}

/// Returns a decoded text as a file that ends as the original one does: within its last line, or
/// behind it.
fn encoded(mut text: String, original: &[u8]) -> Vec<u8> {
    let last = original.iter().rev().find(|byte| **byte > 0);
    if !matches!(last, Some(b'\n' | b'\r')) && text.ends_with('\n') {
        text.pop();
    }
    // Decoded, a cursor that moves up is a form feed.
    text.replace('\u{c}', "\x1b[A").into_bytes()
}

/// Returns the error for JSON that ends before its last brace.
fn broken_off(text: &str) -> Option<ImportError> {
    let from = if text.starts_with('{') {
        0
    } else {
        text.find("\n{")? + 1
    };
    // Within a string a line does not end.
    let json = text[from..].trim_end();
    let error = serde_json::from_str::<serde::de::IgnoredAny>(json).err()?;
    let lines = text.lines().count();
    error.is_eof().then_some(ImportError::BrokenOff(lines))
}

/// Returns rtla's line about samples that its tracer lost, below its title.
fn missed(text: &str, foreign: &Foreign) -> Option<String> {
    let is_title = |line: &&str| line.trim_end() == rtla_timerlat::TITLE;
    let mut below = text.lines().skip_while(|line| !is_title(line));
    let line = below.find(|line| line.contains(MISSED))?;
    (foreign.program == RTLA.name).then(|| line.trim().to_owned())
}

/// Returns the place of the command line in JSON, the command line, and the JSON string that
/// replaces it; `None` if it is read as it is.
fn in_json(text: &str) -> Option<(Range<usize>, String, String)> {
    let key = "\"cmdline";
    let rest = &text[text.find(key)? + key.len()..];
    let rest = rest.strip_prefix(':').unwrap_or(rest).strip_prefix('"')?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let from = text.len() - rest.len();
    let mut all = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    let command = all.next()?.ok()?;
    let place = from..from + all.byte_offset();
    if command.trim().is_empty() {
        return None;
    }
    let plain = plain_of_json(&command);
    let is_read = cyclictest_command::read(&command) == cyclictest_command::read(&plain);
    let plain = serde_json::to_string(&plain).ok()?;
    (!is_read).then_some((place, command, plain))
}

/// Returns the file's name in a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Returns true if a command line begins with cyclictest by its name; some have its version behind
/// it.
fn is_named(command: &str) -> bool {
    let program = command.split_whitespace().next();
    program.is_some_and(|program| file_name(program).starts_with(CYCLICTEST.name))
}

/// Returns a command line of JSON as cyclictest's reader understands it, whatever its program is
/// called. Nothing tells there which blanks are within a word.
fn plain_of_json(command: &str) -> String {
    let bare = command.replace(['"', '\'', '\\'], "");
    let words: Vec<&str> = bare.split_whitespace().collect();
    let is_run = words
        .first()
        .is_some_and(|one| RUNNERS.contains(&file_name(one)));
    let named = words
        .iter()
        .position(|one| file_name(one).contains(CYCLICTEST.name));
    let at = named.filter(|_| is_run).unwrap_or(0);
    let options = words.iter().skip(at + 1);
    let all = std::iter::once(&CYCLICTEST.name).chain(options);
    let all: Vec<String> = all.map(|one| (*one).to_owned()).collect();
    CYCLICTEST.plain(&all)
}

/// A command line above a result, or a sentence that mentions one.
struct Found {
    program: &'static Program,
    /// Its lines, from 0: several if they end with `\`, or if the next one begins with an option.
    lines: Range<usize>,
    /// The line that replaces them.
    text: String,
    /// Its first word that is not understood, or whose value only the shell knew.
    unread: Option<String>,
    /// True if it measures nothing: a sentence, or a question for help.
    measures_nothing: bool,
    /// True if it is no sentence for certain.
    is_certain: bool,
}

/// Returns the last command line of a program: of earlier ones nothing was measured here. What may
/// be a sentence counts only if there is no other.
fn last<'a>(found: &'a [Found], program: &str) -> Option<&'a Found> {
    let is_own = |one: &&Found| one.program.name == program && !one.measures_nothing;
    let certain = found.iter().rfind(|one| is_own(one) && one.is_certain);
    certain.or_else(|| found.iter().rfind(is_own))
}

/// Returns the word that leaves open how long a program was to run: the first of its command line
/// that is not understood; or, if that gives no length, an option for one elsewhere, beside the
/// program's name.
fn unread(text: &str, found: &[Found], program: &str) -> Option<String> {
    let last = last(found, program);
    if let Some(unread) = last.and_then(|last| last.unread.clone()) {
        return Some(unread);
    }
    let mut all = [&CYCLICTEST, &RTLA].into_iter();
    let program = all.find(|one| one.name == program)?;
    let words: Vec<&str> = last.map_or(Vec::new(), |last| last.text.split_whitespace().collect());
    if program.has_length(&words) {
        return None;
    }
    // Of earlier commands that are understood nothing was measured here.
    let is_earlier = |number: usize| {
        let own = found.iter().filter(|one| one.program.name == program.name);
        let mut others = own.filter(|one| last.is_none_or(|last| last.lines != one.lines));
        others
            .any(|one| one.lines.contains(&number) && one.unread.is_none() && !one.measures_nothing)
    };
    let mut is_named = false;
    let lines = head(text).enumerate();
    for (_, line) in lines.filter(|(number, _)| !is_earlier(*number)) {
        for command in commands_of(line) {
            let is_own = command.to_lowercase().contains(program.word());
            is_named = is_own || (is_named && is_rest(uncommented(command, "#")));
            if let Some(length) = program.length_in(command).filter(|_| is_named) {
                return Some(length);
            }
        }
    }
    None
}

/// Returns the commands of a line, as a shell divides it.
fn commands_of(line: &str) -> impl Iterator<Item = &str> {
    let mut quote = None;
    line.split(move |one: char| {
        match quote {
            Some(open) if open == one => quote = None,
            None if is_quote(one) => quote = Some(one),
            _ => {}
        }
        quote.is_none() && matches!(one, ';' | '|' | '&')
    })
}

/// Returns the lines above the first result.
fn head(text: &str) -> impl Iterator<Item = &str> {
    let titles = [cyclictest_histogram::TITLE, rtla_timerlat::TITLE];
    let is_output = move |line: &str| {
        let line = line.trim();
        line.starts_with("T:") || line.starts_with('{') || titles.contains(&line)
    };
    text.lines().take_while(move |line| !is_output(line))
}

/// Returns the text with the last command line of each program alone, as its reader understands it.
/// Lines keep their numbers.
fn plain(text: &str, found: &[Found]) -> String {
    let mut lines: Vec<Cow<'_, str>> = text.lines().map(Cow::from).collect();
    let both = [CYCLICTEST.name, RTLA.name].map(|program| last(found, program));
    for last in both.iter().flatten() {
        let name = last.program.name;
        for other in found.iter().filter(|one| one.program.name == name) {
            lines[other.lines.clone()].fill("".into());
        }
    }
    for last in both.into_iter().flatten() {
        let line = lines[last.lines.start].to_mut();
        // One line may have commands of both programs.
        if !line.is_empty() {
            line.push_str("; ");
        }
        line.push_str(&last.text);
    }
    lines.join("\n") + "\n"
}

/// Returns all command lines above a result, and sentences that mention one.
fn above(text: &str) -> Vec<Found> {
    let mut lines = head(text).enumerate().peekable();
    let mut found = Vec::new();
    while let Some((number, line)) = lines.next() {
        let mut whole = line.trim_end().to_owned();
        let mut end = number + 1;
        let mut is_command = has_command(line);
        while let Some((next, more)) = lines.next_if(|(_, next)| {
            whole.ends_with('\\') || (is_command && is_rest(uncommented(next, line)))
        }) {
            if whole.ends_with('\\') {
                whole.pop();
            }
            whole.push(' ');
            whole.push_str(uncommented(more, line).trim_end());
            is_command |= has_command(more);
            end = next + 1;
        }
        found.extend(in_line(&whole, &(number..end)));
    }
    found
}

/// Returns a line without the `#` that it has if the first one has it.
fn uncommented<'a>(line: &'a str, first: &str) -> &'a str {
    match line.trim_start().strip_prefix('#') {
        Some(rest) if first.starts_with('#') => rest,
        _ => line,
    }
}

/// Returns true if a line mentions a command line.
fn has_command(line: &str) -> bool {
    let all = [&CYCLICTEST, &RTLA];
    all.iter().any(|program| program.begin(line).is_some())
}

/// Returns true for a line that can only be the rest of the command line above it.
fn is_rest(line: &str) -> bool {
    line.split_whitespace().next().is_some_and(is_option) && !has_command(line)
}

/// Returns true for the quotation marks of a shell.
fn is_quote(one: char) -> bool {
    matches!(one, '"' | '\'' | '`')
}

/// Returns the part of a word that is shown.
fn shortened(word: &str) -> String {
    word.chars().take(60).collect()
}

/// Returns true for an option, and not for a dash or an arrow.
fn is_option(word: &str) -> bool {
    word.starts_with('-') && word.contains(char::is_alphanumeric)
}

/// Returns true for the last word of a shell's prompt: `$`, `board:~#`, `board%`.
fn is_prompt(word: &str) -> bool {
    let host = word.strip_suffix('%');
    word.ends_with(['$', '#']) || host.is_some_and(|host| host.ends_with(char::is_alphabetic))
}

/// Returns true if a program's first option is written here, or a variable of the shell.
fn begins_options(own: &str) -> bool {
    own.trim_start_matches(is_quote).starts_with(['-', '$'])
}

/// Returns the command lines in a line, or sentences that mention one.
///
/// Behind a prompt, behind a program that runs another one, at a line's start and in quotation
/// marks it is a command. Elsewhere it is a sentence if a word follows that is no option and no
/// argument, and so it is behind a `#`, which begins a comment, too.
fn in_line(line: &str, lines: &Range<usize>) -> Vec<Found> {
    let mut found = Vec::new();
    for program in [&CYCLICTEST, &RTLA] {
        let mut rest = line;
        let mut first = None;
        while let Some(at) = program.begin(rest) {
            let (before, own) = rest.split_at(at);
            let begun = begun(before);
            let quote = begun.chars().next_back().filter(|one| is_quote(*one));
            // The name may be quoted by itself.
            let quote = quote.filter(|one| !own[program.words.len()..].starts_with(*one));
            let (words, end) = words(quoted(own, quote));
            rest = &own[end..];
            // Behind the first one, only what the shell begins itself is a command.
            let is_own = first.is_none() || begun.rsplit(is_shell).next().is_some_and(is_run);
            let (place, kept) = first.get_or_insert_with(|| (Place::of(begun), kept(line, before)));
            if is_own {
                let place = Place { quote, ..*place };
                found.push(program.found(&words, place, kept, lines.clone()));
            }
        }
    }
    found
}

/// Returns what stands before a program and its path.
fn begun(before: &str) -> &str {
    let begun = before.strip_suffix("rtla ").unwrap_or(before);
    if begun.ends_with('/') {
        return begun.trim_end_matches(|one: char| !one.is_whitespace() && !is_quote(one));
    }
    begun
}

/// Returns true for nothing, and for a program that runs another one, behind variables or not.
fn is_run(begun: &str) -> bool {
    let (words, _) = words(begun);
    let mut first = words.iter().skip_while(|word| is_variable(word));
    first
        .next()
        .is_none_or(|first| RUNNERS.contains(&first.as_str()))
}

/// Returns true for a variable with its value: `ARGS=-q`.
fn is_variable(word: &str) -> bool {
    let is_name = |name: &str| name.chars().all(|one| one.is_alphanumeric() || one == '_');
    word.split_once('=')
        .is_some_and(|(name, _)| !name.is_empty() && is_name(name))
}

/// Returns what is kept of a line before its first command line: comments distinguish files.
/// Nothing else in the line is read.
fn kept(line: &str, before: &str) -> String {
    if !line.starts_with('#') {
        return String::new();
    }
    let kept = before.trim_end_matches(is_quote);
    let kept = kept.replace("cyclictest ", "cyclictest: ");
    kept.replace("timerlat ", "timerlat: ")
        .trim_end()
        .to_owned()
        + " "
}

/// The place of a command line in its line.
#[derive(Clone, Copy)]
struct Place {
    /// The quotation mark before it.
    quote: Option<char>,
    /// True behind a `#` alone.
    is_comment: bool,
    /// True behind a shell's prompt.
    is_prompted: bool,
    /// True at the line's start, and behind a program that runs another one.
    is_start: bool,
}

impl Place {
    /// Returns the place behind this start of a line.
    fn of(begun: &str) -> Self {
        let is_comment = begun.trim_end() == "#";
        let mut told = begun.split_whitespace();
        Self {
            quote: None,
            is_comment,
            is_prompted: begun == "+ " || (!is_comment && told.any(is_prompt)),
            is_start: is_run(begun.trim_start_matches('#')),
        }
    }
}

/// Returns the part of a command line up to this quotation mark.
fn quoted(own: &str, quote: Option<char>) -> &str {
    let end = quote.and_then(|quote| {
        let mut all = own.match_indices(quote);
        all.find(|(at, _)| !own[..*at].ends_with('\\'))
    });
    end.map_or(own, |(end, _)| &own[..end])
}

/// Returns true for a letter that ends a command, and begins what the shell does with its output.
fn is_shell(one: char) -> bool {
    matches!(one, '|' | '>' | '<' | '&' | ';')
}

/// Returns what stands after the name of a file to which the shell sends the output: of
/// `> log -D 1h`, the option.
fn behind_name(line: &str) -> &str {
    let name = line.trim_start_matches(['>', '<', '&', '|']).trim_start();
    if let Some(quote) = name.chars().next().filter(|one| is_quote(*one)) {
        let end = name[1..].find(quote);
        return end.map_or("", |end| &name[end + 2..]);
    }
    let end = name.find(|one: char| one.is_whitespace() || is_shell(one));
    end.map_or("", |end| &name[end..])
}

/// Returns the words of a command line as a shell has them, up to the next command (`| tee log`), or
/// to a comment; and where they end. Files for the output (`2>&1`) are left out. A quotation mark
/// without a second one is dropped, and one behind a `\` is one like any other.
fn words(line: &str) -> (Vec<String>, usize) {
    let mut end = line.len();
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(mut one) = rest.next() {
        if one == '\\' && rest.as_str().starts_with(is_quote) {
            one = rest.next().unwrap_or(one);
        }
        if one.is_whitespace() {
            words.extend(word.take());
        } else if matches!(one, '>' | '<') || (one == '&' && rest.as_str().starts_with('>')) {
            // The 2 of `2>` is no word of the command, and a file's name is none.
            let is_number = |own: &String| own.chars().all(|one| one.is_ascii_digit());
            words.extend(word.take().filter(|own| !is_number(own)));
            rest = behind_name(rest.as_str()).chars();
        } else if is_shell(one) || (one == '#' && word.is_none()) {
            if is_shell(one) {
                end -= rest.as_str().len() + one.len_utf8();
            }
            break;
        } else if is_quote(one) {
            if let Some((within, behind)) = rest.as_str().split_once(one) {
                let within = within.strip_suffix('\\').unwrap_or(within);
                let within = within.replace("\\\"", "\"").replace("\\'", "'");
                word.get_or_insert_default().push_str(&within);
                rest = behind.chars();
            }
        } else if let Some(own) = Some(one).filter(|one| *one != '\\').or_else(|| rest.next()) {
            word.get_or_insert_default().push(own);
        }
    }
    words.extend(word);
    (words, end)
}

/// Returns a word without anything at which a reader would end it.
fn one_word(word: &str) -> String {
    let word = word.trim();
    if word.is_empty() {
        return "_".to_owned();
    }
    word.replace(|one: char| one.is_whitespace() || is_shell(one), "_")
}

impl Program {
    /// Returns where in a line the words of this program's first command line begin.
    fn begin(&self, line: &str) -> Option<usize> {
        let mut all = line.match_indices(self.words);
        let found = all.find(|(at, name)| {
            let (before, behind) = (&line[..*at], &line[at + name.len()..]);
            if self.name == RTLA.name {
                let next = behind.chars().next();
                return next
                    .is_none_or(|one| one.is_whitespace() || is_quote(one) || is_shell(one));
            }
            // Anything but a part of another program's name.
            let begins = !before.ends_with(|c: char| c.is_alphanumeric() || "-_.".contains(c));
            let options = behind
                .trim_start_matches(is_quote)
                .strip_prefix(char::is_whitespace)
                .map(str::trim_start);
            begins && options.is_some_and(begins_options)
        });
        found.map(|(at, _)| at)
    }

    /// Returns the command line of these words, or the sentence that mentions it.
    fn found(
        &'static self,
        words: &[String],
        place: Place,
        kept: &str,
        lines: Range<usize>,
    ) -> Found {
        let plain = self.plain(words);
        let mut unread = self.unread_at(&plain);
        let mut all: Vec<&str> = plain.split_whitespace().collect();
        let options = &words[self.words.split(' ').count().min(words.len())..];
        let is_nothing = matches!(options, [only] if NOTHING.contains(&only.as_str()));
        let (mut is_sentence, mut is_certain) = (false, true);
        if let Some(at) = unread {
            let behind: Vec<bool> = all[at + 1..].iter().map(|own| is_option(own)).collect();
            let has_options = options.first().is_some_and(|first| begins_options(first));
            let is_comment = place.is_comment && !behind.contains(&true);
            let is_command = place.is_prompted || place.quote.is_some();
            let is_command = is_command || (place.is_start && has_options && !is_comment);
            is_sentence = !is_command && !is_option(all[at]);
            // Two words in a row are a sentence rather than an unknown option's arguments.
            let is_talk = behind.windows(2).any(|two| two == [false, false]);
            let is_bare = place.is_start && place.quote.is_none();
            is_certain = place.is_prompted || (is_bare && !is_talk);
        }
        // A sentence that says for how long is read as far as it is a command: `-D 24h on a board`.
        if let Some(at) = unread.filter(|at| is_sentence && self.has_length(&all[..*at])) {
            all.truncate(at);
            (unread, is_sentence) = (None, false);
        }
        // Nobody but the shell knew the value of a variable.
        let variable = all.iter().copied().find(|word| word.contains('$'));
        Found {
            program: self,
            lines,
            unread: variable.or(unread.map(|at| all[at])).map(shortened),
            text: format!("{kept}{}", all.join(" ")),
            measures_nothing: is_sentence || is_nothing,
            is_certain,
        }
    }

    /// Returns a command line as its reader understands it: each flag in its own word, long names
    /// as a whole, and durations as [`seconds`] has them.
    fn plain(&self, words: &[String]) -> String {
        let mut words = words.iter().map(String::as_str).peekable();
        let mut plain: Vec<Cow<'_, str>> = Vec::new();
        while let Some(word) = words.next() {
            let is_end = word == "--" && words.peek().is_none();
            if is_end || (self.name == CYCLICTEST.name && IDLE.contains(&word)) {
                continue;
            }
            if let Some(long) = word.strip_prefix("--") {
                let both = long.split_once('=');
                let (name, value) = both.map_or((long, None), |(name, own)| (name, Some(own)));
                let name = self.long(name);
                let is_duration = name == "duration";
                if let Some(value) = value {
                    let own = Some(value).filter(|_| is_duration).map(seconds);
                    plain.push(format!("--{name}={}", own.unwrap_or(value.into())).into());
                } else {
                    plain.push(format!("--{name}").into());
                    if is_duration {
                        plain.extend(words.next().map(seconds));
                    }
                }
            } else if let Some(letters) = word.strip_prefix('-').filter(|all| !all.is_empty()) {
                let rest = letters.trim_start_matches(|one: char| self.flags.contains(one));
                let flags = letters[..letters.len() - rest.len()].chars();
                plain.extend(flags.map(|flag| Cow::from(format!("-{flag}"))));
                if let Some(value) = rest.strip_prefix(self.duration) {
                    plain.push(format!("-{}", self.duration).into());
                    let value = Some(value).filter(|value| !value.is_empty());
                    plain.extend(value.or_else(|| words.next()).map(seconds));
                } else if !rest.is_empty() {
                    plain.push(format!("-{rest}").into());
                }
            } else {
                plain.push(word.into());
            }
            // The next word may be an argument that the reader does not look for there.
            let Some(last) = plain.last_mut() else {
                continue;
            };
            let is_cpus =
                |own: &&str| own.starts_with(|one: char| one.is_ascii_digit() || one == '+');
            let is_value = |own: &&str| !own.starts_with('-');
            match (self.name, &**last) {
                ("cyclictest", "-a" | "--affinity") => {
                    let equals = if last.len() > 2 { "=" } else { "" };
                    if let Some(cpus) = words.next_if(is_cpus) {
                        *last = format!("{last}{equals}{cpus}").into();
                    } else {
                        words.next_if_eq(&"all");
                    }
                }
                ("rtla timerlat", "-C" | "--cgroup") => {
                    if let Some(name) = words.next_if(is_value) {
                        *last = format!("--cgroup={name}").into();
                    }
                }
                // rtla writes its trace into a file.
                ("rtla timerlat", "-t" | "--trace") => {
                    words.next_if(is_value);
                }
                _ => {}
            }
        }
        let plain: Vec<String> = plain.iter().map(|word| one_word(word)).collect();
        plain.join(" ")
    }

    /// Returns the whole name of an option that is shortened; another one as it is.
    fn long<'a>(&self, name: &'a str) -> &'a str {
        let names = self.names.iter().copied();
        let mut begun = names.filter(|own| own.starts_with(name));
        match (begun.next(), begun.next()) {
            (Some(own), None) => own,
            _ => name,
        }
    }

    /// Returns the first word of a command line that is not understood, shortened; `None` if all
    /// are.
    fn unread(&self, line: &str) -> Option<String> {
        let word = line.split_whitespace().nth(self.unread_at(line)?)?;
        Some(shortened(word))
    }

    /// Returns the number of that word, from 0.
    fn unread_at(&self, line: &str) -> Option<usize> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if self.is_understood(line) {
            return None;
        }
        let first = |count: usize| words[..count.min(words.len())].join(" ");
        // An option is understood with its argument only.
        let is_begun = |count: usize| {
            let line = first(count);
            self.is_understood(&line) || self.is_understood(&format!("{line} 1"))
        };
        // If the first words are no begin of a command line, no more of them are one.
        let mut read = self.words.split(' ').count() - 1;
        let mut above = words.len() + 1;
        while above - read > 1 {
            let middle = read.midpoint(above);
            if is_begun(middle) {
                read = middle;
            } else {
                above = middle;
            }
        }
        if !self.is_understood(&first(read)) {
            read = read.saturating_sub(1);
        }
        (read < words.len()).then_some(read)
    }

    /// Returns the word that stands for this program, whatever the file is called that runs it.
    fn word(&self) -> &'static str {
        self.words.split(' ').next().unwrap_or_default()
    }

    /// Returns true if these words say how long the measurement is to run, by a number.
    fn has_length(&self, words: &[&str]) -> bool {
        self.length_of(words).is_some()
    }

    /// Returns the option among these words that says by a number how long the measurement is to
    /// run.
    fn length_of<'a>(&self, words: &[&'a str]) -> Option<&'a str> {
        let is_number = |own: &str| own.starts_with(|one: char| one.is_ascii_digit() || one == '+');
        let mut pairs = words
            .iter()
            .zip(words.iter().skip(1).map(Some).chain([None]));
        let found = pairs.find(|(word, next)| {
            self.lengths
                .iter()
                .any(|name| match word.strip_prefix(name) {
                    Some("") => next.is_some_and(|next| is_number(next)),
                    Some(value) => is_number(value.trim_start_matches('=')),
                    None => false,
                })
        });
        found.map(|(word, _)| *word)
    }

    /// Returns such an option of a text that need not be a command line.
    fn length_in(&self, text: &str) -> Option<String> {
        let is_bare = |one: char| !(one.is_alphanumeric() || matches!(one, '-' | '+'));
        let word = |word: &str| {
            word.replace(['–', '—', '−'], "-")
                .trim_matches(is_bare)
                .to_owned()
        };
        // An option may stand within quotation marks: `ARGS="-D 24h"`.
        let words = text.split(|one: char| one.is_whitespace() || is_quote(one));
        let words: Vec<String> = words.map(word).filter(|word| !word.is_empty()).collect();
        if let Some(at) = words.iter().position(|word| word == TIMEOUT) {
            // `timeout` ends it, perhaps after an option of its own.
            let mut behind = words[at + 1..].iter().take(3);
            if behind.any(|word| word.starts_with(|one: char| one.is_ascii_digit())) {
                return Some(TIMEOUT.to_owned());
            }
        }
        let plain = self.plain(&words);
        let words: Vec<&str> = plain.split_whitespace().collect();
        self.length_of(&words).map(str::to_owned)
    }

    /// Returns true if each value that says how long the measurement is to run begins with a digit,
    /// or is a variable.
    fn has_lengths(&self, line: &str) -> bool {
        let is_number = |value: &str| {
            let digits = value.strip_prefix('+').unwrap_or(value);
            digits.starts_with(|one: char| one.is_ascii_digit() || one == '$')
        };
        let mut words = line.split_whitespace().peekable();
        while let Some(word) = words.next() {
            let begun = self.lengths.iter().find_map(|name| word.strip_prefix(name));
            let value = match begun {
                Some("") => words.peek().copied(),
                Some(own) if !word.starts_with("--") => Some(own),
                Some(own) => own.strip_prefix('='),
                None => None,
            };
            if value.is_some_and(|value| !is_number(value)) {
                return false;
            }
        }
        true
    }

    /// Returns true if a command line is understood to its last word.
    fn is_understood(&self, line: &str) -> bool {
        if !self.has_lengths(line) {
            return false;
        }
        if self.name == CYCLICTEST.name {
            // Its reader passes over a line with a value that cyclictest refuses.
            return matches!(cyclictest_command::read(line), Ok(Some(_)));
        }
        let title = rtla_timerlat::TITLE;
        let result = format!(
            "{line}\n{title}\n# Time unit is microseconds (us)\nIndex Thr-000\nover: 0\ncount: 0\n\
             max: 0\n"
        );
        // Only -n contradicts this result.
        rtla_timerlat::read(&result).map_or(true, |own| {
            own.asked.is_some_and(|asked| asked.settings.is_some())
        })
    }
}

/// Returns a duration as both readers understand it: `90`, `10m`, `2h` and `1d` as they are, others
/// in seconds. cyclictest and rtla read one letter after the number and ignore the rest: `1h30m` is
/// an hour.
fn seconds(word: &str) -> Cow<'_, str> {
    let word = word.trim();
    let digits = word.strip_prefix('+').unwrap_or(word);
    let behind = digits.trim_start_matches(|one: char| one.is_ascii_digit());
    let number = &digits[..digits.len() - behind.len()];
    if digits.len() == word.len() && matches!(behind, "" | "s" | "m" | "h" | "d") {
        return word.into();
    }
    let factor = match behind.chars().next() {
        Some('m' | 'M') => 60,
        Some('h' | 'H') => 3_600,
        Some('d' | 'D') => 86_400,
        _ => 1,
    };
    let seconds = number.parse::<u64>().ok();
    let seconds = seconds.and_then(|number| number.checked_mul(factor));
    seconds.map_or(word.into(), |seconds| seconds.to_string().into())
}

#[cfg(test)]
mod tests;
