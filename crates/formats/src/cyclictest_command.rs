// SPDX-License-Identifier: MIT OR Apache-2.0
//! A command line of cyclictest, read as its own `getopt_long` reads it.
//!
//! Words of a JSON file's `cmdline` cannot be distinguished from spaces within them. So a command
//! line is understood to its last word, or not at all.

/// The argument that an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// None.
    Nothing,
    /// Always one: the rest of its word, or the next word.
    One,
    /// The rest of its word, if any; it also reads a number after it, which is an operand.
    Perhaps,
}

use Takes::{Nothing, One, Perhaps};

/// All options of rt-tests 1.0 to 2.8: the long name, the letter, and the argument.
const OPTIONS: [(&str, char, Takes); 51] = [
    ("affinity", 'a', Perhaps),
    ("aligned", 'A', Perhaps),
    ("breaktrace", 'b', One),
    ("preemptirqs", 'B', Nothing),
    ("clock", 'c', One),
    ("context", 'C', Nothing),
    ("distance", 'd', One),
    ("duration", 'D', One),
    ("latency", 'e', One),
    ("event", 'E', Nothing),
    ("ftrace", 'f', Nothing),
    ("fifo", 'F', One),
    ("histogram", 'h', One),
    ("histofall", 'H', One),
    ("interval", 'i', One),
    ("irqsoff", 'I', Nothing),
    ("loops", 'l', One),
    ("mlockall", 'm', Nothing),
    ("refresh_on_max", 'M', Nothing),
    ("nanosleep", 'n', Nothing),
    ("nsecs", 'N', Nothing),
    ("oscope", 'o', One),
    ("traceopt", 'O', One),
    ("priority", 'p', One),
    ("preemptoff", 'P', Nothing),
    ("quiet", 'q', Nothing),
    ("priospread", 'Q', Nothing),
    ("relative", 'r', Nothing),
    ("resolution", 'R', Nothing),
    ("system", 's', Nothing),
    ("smp", 'S', Nothing),
    ("threads", 't', Perhaps),
    ("tracer", 'T', One),
    ("unbuffered", 'u', Nothing),
    ("numa", 'U', Nothing),
    ("verbose", 'v', Nothing),
    ("wakeup", 'w', Nothing),
    ("wakeuprt", 'W', Nothing),
    ("posix_timers", 'x', Nothing),
    ("policy", 'y', One),
    // Long names alone.
    ("histfile", '\0', One),
    ("json", '\0', One),
    ("laptop", '\0', Nothing),
    ("default-system", '\0', Nothing),
    ("mainaffinity", '\0', One),
    ("secaligned", '\0', Perhaps),
    ("smi", '\0', Nothing),
    ("spike", '\0', One),
    ("spike-nodes", '\0', One),
    ("deepest-idle-state", '\0', One),
    ("tracemark", '\0', Nothing),
];

/// The largest number that cyclictest accepts.
const INT_MAX: u64 = 2_147_483_647;

/// The most bins that cyclictest makes, however many are requested (`HIST_MAX`).
const BINS_MAX: u64 = 1_000_000;

/// The request of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The first thread's interval (`-i`), in microseconds: at least 1.
    pub interval_us: u64,
    /// The number of bins in the histogram (`-h`, `-H`); `None` without one.
    pub bins: Option<u64>,
    /// The number of values of each thread (`-l`); `None` without an end.
    pub loops: Option<u64>,
    /// The duration in seconds (`-D`).
    pub seconds: Option<u64>,
    /// True if values are nanoseconds (`-N`).
    pub nanoseconds: bool,
    /// The first thread's real-time priority (`-p`), if one is requested.
    pub priority: Option<u64>,
    /// The number of threads (`-t 4`), if a number is requested and no `-S`.
    pub threads: Option<u64>,
    /// The value above which it ends (`-b`), in the unit of the values; `None` if it does not.
    pub break_above: Option<u64>,
    /// The amount by which each thread's interval exceeds that of the previous thread (`-d`), in
    /// microseconds. By default, at most 500; 0 with a histogram.
    pub distance_us: u64,
}

/// Reads a command line; `None` if it contains a word that is not understood.
///
/// # Errors
/// Fails if an option has a value that cyclictest itself would have refused.
pub fn read(line: &str) -> Result<Option<Command>, String> {
    let Some(options) = options(line) else {
        return Ok(None);
    };
    let mut command = Command {
        interval_us: 1_000,
        bins: None,
        loops: None,
        seconds: None,
        nanoseconds: false,
        priority: None,
        threads: None,
        break_above: None,
        distance_us: 500,
    };
    let mut is_smp = false;
    for (name, value) in options {
        let number = leading_number(value);
        let positive = || {
            let above_zero = number.filter(|number| *number > 0);
            above_zero.ok_or_else(|| format!("--{name} above 0 in its command line, found {value}"))
        };
        match name {
            "interval" => {
                let wanted = positive()?;
                if wanted > INT_MAX {
                    return Err(format!("--interval up to {INT_MAX} us, found {value}"));
                }
                command.interval_us = wanted;
            }
            "histogram" | "histofall" => {
                command.bins = number
                    .filter(|bins| *bins > 0)
                    .map(|bins| bins.min(BINS_MAX));
            }
            "loops" => command.loops = number.filter(|loops| *loops > 0),
            "duration" => command.seconds = duration(value).filter(|seconds| *seconds > 0),
            "priority" => command.priority = number,
            "distance" => command.distance_us = number.unwrap_or(500),
            "threads" => command.threads = number.filter(|threads| *threads > 0),
            "breaktrace" => command.break_above = number.filter(|value| *value > 0),
            "smp" => is_smp = true,
            "nsecs" => command.nanoseconds = true,
            _ => {}
        }
    }
    command.threads = command.threads.filter(|_| !is_smp);
    if command.bins.is_some() {
        // "Same interval on CPUs".
        command.distance_us = 0;
    }
    Ok(Some(command))
}

/// Settings, besides intervals and priorities, that make it another measurement; in this order.
const SETTINGS: [&str; 27] = [
    "affinity",
    "mainaffinity",
    "aligned",
    "secaligned",
    "clock",
    "relative",
    "nanosleep",
    "posix_timers",
    "system",
    "policy",
    "priospread",
    "latency",
    "laptop",
    "default-system",
    "deepest-idle-state",
    "mlockall",
    "numa",
    "context",
    "event",
    "ftrace",
    "irqsoff",
    "preemptirqs",
    "preemptoff",
    "tracer",
    "tracemark",
    "wakeup",
    "wakeuprt",
];

/// Returns the settings of a command line that make it another measurement, by their long names
/// in a fixed order, without cyclictest's defaults: `--affinity=0 --clock=1`; empty if only
/// defaults are used. `None` if it contains a word that is not understood.
pub fn settings(line: &str) -> Option<String> {
    let all = options(line)?;
    let last = |name: &str| all.iter().rev().find(|(own, _)| *own == name);
    let is_fifo = last("priority").is_some_and(|(_, own)| leading_number(own) > Some(0));
    let policy = if is_fifo { "fifo" } else { "other" };
    let setting = |name: &&str| -> Option<String> {
        let value = last(name).map(|(_, value)| *value);
        let value = match (*name, value) {
            // Threads of all CPUs, each on its own.
            ("affinity", None) => last("smp").map(|_| "all")?,
            ("affinity", Some("")) => "all",
            ("clock" | "latency", Some(own)) if leading_number(own).unwrap_or(0) == 0 => {
                return None;
            }
            ("policy", Some(own)) if own == policy => return None,
            (_, own) => own?,
        };
        Some(match value {
            "" => format!("--{name}"),
            value => format!("--{name}={value}"),
        })
    };
    let settings: Vec<String> = SETTINGS.iter().filter_map(setting).collect();
    Some(settings.join(" "))
}

/// Returns all options and their arguments; `None` if a word is not understood.
fn options(line: &str) -> Option<Vec<(&'static str, &str)>> {
    let mut words = line.split_whitespace().peekable();
    let program = words.next()?.rsplit('/').next()?;
    (program == "cyclictest").then_some(())?;
    let mut found = Vec::new();
    // A number behind -a, -A or -t is an operand which these read.
    let mut may_be_number = false;
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long
                .split_once('=')
                .map_or((long, None), |(name, value)| (name, Some(value)));
            let (name, takes) = of_long(name)?;
            let value = match (takes, value) {
                (Nothing, Some(_)) => return None,
                (Nothing, None) => "",
                (One, None) => words.next()?,
                (_, value) => value.unwrap_or_default(),
            };
            may_be_number = takes == Perhaps;
            found.push((name, value));
        } else if let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            may_be_number = false;
            let mut rest = letters;
            while let Some(letter) = rest.chars().next() {
                rest = &rest[letter.len_utf8()..];
                let (name, _, takes) = OPTIONS.iter().find(|(_, own, _)| *own == letter)?;
                let value = match takes {
                    Nothing => "",
                    One if rest.is_empty() => words.next()?,
                    One | Perhaps => std::mem::take(&mut rest),
                };
                may_be_number = *takes == Perhaps && value.is_empty();
                found.push((*name, value));
            }
        } else {
            let is_list = |c: char| c.is_ascii_digit() || matches!(c, ',' | '-' | '!');
            let is_read = may_be_number && word.chars().all(is_list);
            is_read.then_some(())?;
            if let Some((_, value)) = found.last_mut() {
                *value = word;
            }
            may_be_number = false;
        }
    }
    Some(found)
}

/// Returns the option with this long name, or the only one that begins with it.
fn of_long(name: &str) -> Option<(&'static str, Takes)> {
    if let Some((own, _, takes)) = OPTIONS.iter().find(|(own, ..)| *own == name) {
        return Some((own, *takes));
    }
    let mut begun = OPTIONS.iter().filter(|(own, ..)| own.starts_with(name));
    match (begun.next(), begun.next()) {
        (Some((own, _, takes)), None) => Some((own, *takes)),
        _ => None,
    }
}

/// Returns the number that a word begins with, as `atoi` reads it: `1000us` is 1000.
fn leading_number(word: &str) -> Option<u64> {
    let end = word.find(|c: char| !c.is_ascii_digit());
    word[..end.unwrap_or(word.len())].parse().ok()
}

/// Converts `90`, `10m`, `2h` or `1d` to seconds.
pub(crate) fn duration(word: &str) -> Option<u64> {
    let number = leading_number(word)?;
    let factor = match word.trim_start_matches(|c: char| c.is_ascii_digit()) {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    number.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(line: &str) -> Option<u64> {
        read(line).unwrap().map(|command| command.interval_us)
    }

    #[test]
    fn an_interval_is_read_as_cyclictest_reads_it() {
        for (line, us) in [
            ("cyclictest -i 200 -h 50", 200),
            ("cyclictest -i200 --interval=500", 500),
            ("/usr/bin/cyclictest --interval 300", 300),
            ("cyclictest -qmSi200 -p 80 -h 100 --json=c.json", 200),
            ("cyclictest -qmSi 200", 200),
            ("cyclictest --interv=200", 200),
            ("cyclictest --int 200 --prior 80", 200),
            ("cyclictest -i 1000us", 1_000),
            ("cyclictest -p 80 -D 10m -t -a -h100 -q", 1_000),
            ("cyclictest -S -p 80", 1_000),
            // -p, -D, -b and -h take the next word, whatever it is.
            ("cyclictest -p -i5", 1_000),
            ("cyclictest -a 0,2-3 -t 4 -A 500 -i 250", 250),
            ("cyclictest -t4 -a3 -mni100", 100),
            ("cyclictest --affinity=3 --threads=1 --smp -i 50", 50),
            ("cyclictest -y fifo --policy=rr --latency=0 -i 60", 60),
        ] {
            assert_eq!(interval(line), Some(us), "{line}");
        }
    }

    #[test]
    fn a_command_line_is_understood_to_its_last_word_or_not_at_all() {
        for line in [
            "cyclictest -q --json=my file.json",
            "cyclictest --new-option -i 200",
            "cyclictest -Z200",
            "cyclictest -i",
            "cyclictest --spik=5",
            "cyclictest --quiet=1",
            "cyclictest 5 -q",
            "cyclictest -q 5",
            "rteval -i 200",
            "",
        ] {
            assert_eq!(interval(line), None, "{line}");
        }
    }

    #[test]
    fn what_cyclictest_refuses_is_refused() {
        for line in [
            "cyclictest -i 0",
            "cyclictest -i -5",
            "cyclictest -qmSi0",
            "cyclictest -i 9223372036854776",
            "cyclictest --interval=99999999999999999999999",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn settings_are_one_text_however_they_are_written() {
        for (line, text) in [
            ("cyclictest -q -p 80 -i 200 -h 100 -D 1h", ""),
            ("cyclictest -S", "--affinity=all"),
            ("cyclictest -t -a -n", "--affinity=all --nanosleep"),
            ("cyclictest -mqSp80", "--affinity=all --mlockall"),
            (
                "cyclictest -p 80 --mlock -a 1 -a 0",
                "--affinity=0 --mlockall",
            ),
            ("cyclictest -rc1 -a0", "--affinity=0 --clock=1 --relative"),
            ("cyclictest -c 0 -e 0 -p 80 --policy fifo", ""),
            ("cyclictest -y other -x -s", "--posix_timers --system"),
            ("cyclictest -y rr -p 1 --laptop", "--policy=rr --laptop"),
            ("cyclictest --latency=20", "--latency=20"),
        ] {
            assert_eq!(settings(line).as_deref(), Some(text), "{line}");
        }
        assert_eq!(settings("cyclictest --new-option"), None);
    }

    #[test]
    fn the_other_options_are_read_too() {
        let read = |line| read(line).unwrap().unwrap();
        let command = read("cyclictest -a 0 -l1000 -D 2h -H 400 -N");
        assert_eq!(
            command,
            Command {
                interval_us: 1_000,
                bins: Some(400),
                loops: Some(1_000),
                seconds: Some(7_200),
                nanoseconds: true,
                priority: None,
                threads: None,
                break_above: None,
                distance_us: 0,
            }
        );
        for four in ["-t4", "-t 4 -a", "--threads=4 -a 0-3"] {
            let line = format!("cyclictest -q {four}");
            let found = super::read(&line).unwrap().unwrap();
            assert_eq!(found.threads, Some(4), "{four}");
        }
        assert_eq!(read("cyclictest -t -a 3").threads, None);
        assert_eq!(read("cyclictest -S -t 4").threads, None);
        let command = read("cyclictest -p 80 -d0 -D 0");
        assert_eq!((command.priority, command.distance_us), (Some(80), 0));
        assert_eq!(command.seconds, None);
        assert_eq!(read("cyclictest -q -l 0").loops, None);
    }
}
