// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of `rtla timerlat hist`.

use std::collections::{BTreeMap, BTreeSet};

use crate::cyclictest_command::duration;
use crate::foreign::counted::printed_mean;
use crate::{FormatError, hours_minutes_seconds};

/// The counts of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// The end of its latency: `IRQ` at the timer's handler, `Thr` at the thread, `Usr` at the
    /// return to user space.
    pub stage: String,
    /// The CPU.
    pub cpu: u32,
    /// Values that have a bin, and their counts; a bin of several values goes by its lowest.
    pub bins: Vec<(u64, u64)>,
    /// The number of values above the bins.
    pub over: u64,
    /// The number of values.
    pub count: u64,
    /// The smallest value; none if there is no value.
    pub min: Option<u64>,
    /// The bounds of the mean.
    pub mean: Option<(f64, f64)>,
    /// The largest value; none if there is no value.
    pub max: Option<u64>,
}

/// The summary of a stage on all CPUs together; `None` if a line is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct All {
    /// The stage.
    pub stage: String,
    /// The number of values.
    pub count: Option<u64>,
    /// The smallest value.
    pub min: Option<u64>,
    /// The largest value.
    pub max: Option<u64>,
}

/// The request of a command line; `None` if it is not stated, or not understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The number of values in a bin (`-b`).
    pub bucket: Option<u64>,
    /// The period, in microseconds (`-p`).
    pub period_us: Option<u64>,
    /// The duration in seconds (`-d`).
    pub seconds: Option<u64>,
    /// The threads' real-time priority (`-P f:95`).
    pub priority: Option<u64>,
    /// True if values are nanoseconds (`-n`).
    pub nanoseconds: Option<bool>,
    /// The CPUs (`-c`), if they are named.
    pub cpus: Option<BTreeSet<u32>>,
    /// The latency of a thread at which it stops (`-T`, `-a`), in microseconds.
    pub stop_us: Option<u64>,
    /// The latency of an interrupt at which it stops (`-i`, `-a`), in microseconds.
    pub stop_irq_us: Option<u64>,
    /// The settings that make it another measurement, by their long names in a fixed order;
    /// empty if all are rtla's defaults.
    pub settings: Option<String>,
}

/// The results in the output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// True if values are nanoseconds instead of microseconds.
    pub nanoseconds: bool,
    /// The duration of the measurement, in seconds, if it is stated.
    pub seconds: Option<u64>,
    /// The request of a command line above the title, if there is one.
    pub asked: Option<Asked>,
    /// The columns.
    pub columns: Vec<Column>,
    /// The summary of all CPUs, if there is one: a column for each stage.
    pub all: Vec<All>,
}

/// The first line.
pub const TITLE: &str = "# RTLA timerlat histogram";

/// The value of a column without values: the unsigned form of -1.
const NONE: &str = "18446744073709551615";

/// Reads the output. Lines before the title are skipped, and so is the text after the summaries:
/// the analysis of a trace. A part that a result has only once must not occur twice.
pub fn read(text: &str) -> Result<Results, FormatError> {
    let mut reader = Reader::default();
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |expected: &'static str| FormatError::new(number, expected, line);
        reader.line(line).map_err(wrong)?;
    }
    let end = |expected: &'static str| FormatError::new(text.lines().count(), expected, "the end");
    if ![Row::Over, Row::Count, Row::Max]
        .iter()
        .all(|row| reader.has(*row))
    {
        return Err(end("lines over:, count: and max:, without --no-summary"));
    }
    if reader.unit.is_none() {
        return Err(end("\"# Time unit is microseconds (us)\" or nanoseconds"));
    }
    let results = reader.results;
    let told = results.asked.as_ref().and_then(|asked| asked.nanoseconds);
    if told.is_some_and(|told| told != results.nanoseconds) {
        let what = "its command line and its line \"# Time unit\" say two units";
        return Err(FormatError::contradiction(what.to_owned()));
    }
    Ok(results)
}

/// The part of the output that was read so far.
#[derive(Default)]
struct Reader {
    results: Results,
    /// True if values are nanoseconds, once it is stated.
    unit: Option<bool>,
    is_titled: bool,
    /// True if the summary of all CPUs has begun.
    is_all: bool,
    /// True if the lines that follow are no data.
    is_over: bool,
    /// The lines of the summaries that were read: of the columns, of all CPUs.
    seen: [Vec<Row>; 2],
}

impl Reader {
    fn has(&self, row: Row) -> bool {
        self.seen[0].contains(&row)
    }

    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else {
            return Ok(());
        };
        if line.trim_end() == TITLE {
            self.is_titled = true;
        } else if !self.is_titled {
            self.results.asked = asked(line).or_else(|| self.results.asked.take());
        } else if self.is_over {
            let is_data = matches!(first, "Index" | "over:" | "count:" | "ALL:");
            return if is_data && words.next().is_some() {
                Err("the end: a file holds one result (cut the file in two)")
            } else {
                Ok(())
            };
        } else if first == "#" {
            return self.comment(line);
        } else if first == "Index" {
            let columns = words.map(column).collect::<Option<_>>();
            if !self.results.columns.is_empty() {
                return Err("the columns once: a file holds one result");
            }
            self.results.columns = columns.ok_or("columns such as IRQ-000")?;
        } else if first == "ALL:" {
            if self.is_all {
                return Err("ALL: once: a file holds one result");
            }
            self.is_all = true;
            let stage = |stage: &str| All {
                stage: stage.to_owned(),
                ..All::default()
            };
            self.results.all = words.map(stage).collect();
        } else {
            return self.row(first, &words.collect::<Vec<_>>());
        }
        Ok(())
    }

    fn row(&mut self, first: &str, values: &[&str]) -> Result<(), &'static str> {
        let row = Row::of(first);
        let is_summed = [Row::Over, Row::Count, Row::Max];
        let is_summed = is_summed.iter().all(|row| self.has(*row));
        if is_summed && matches!(row, None | Some(Row::Bin(_))) {
            self.is_over = true;
            return Ok(());
        }
        let row = row.ok_or("a bin, over:, count: or max:")?;
        let seen = &mut self.seen[usize::from(self.is_all)];
        let is_ordered = match (row, seen.last()) {
            (Row::Bin(bin), Some(Row::Bin(last))) => bin > *last,
            (Row::Bin(_), last) => last.is_none(),
            _ => !seen.contains(&row),
        };
        if !is_ordered {
            return Err("bins in their order, and each line once: a file holds one result");
        }
        if matches!(row, Row::Bin(_)) {
            seen.clear();
        }
        seen.push(row);
        let expected = if self.is_all {
            self.results.all.len()
        } else {
            self.results.columns.len()
        };
        if expected == 0 || values.len() != expected {
            return Err("as many values as there are columns");
        }
        for (number, value) in values.iter().enumerate() {
            let taken = if self.is_all {
                row.take_all(&mut self.results.all[number], value)
            } else {
                row.take(&mut self.results.columns[number], value)
            };
            taken.ok_or("numbers")?;
        }
        Ok(())
    }

    fn comment(&mut self, line: &str) -> Result<(), &'static str> {
        if let Some(unit) = line.strip_prefix("# Time unit is ") {
            let nanoseconds = match unit.trim() {
                "microseconds (us)" => false,
                "nanoseconds (ns)" => true,
                _ => return Err("\"# Time unit is microseconds (us)\" or \"nanoseconds (ns)\""),
            };
            if self.unit.replace(nanoseconds).is_some() {
                return Err("one time unit");
            }
            self.results.nanoseconds = nanoseconds;
        } else if let Some(duration) = line.strip_prefix("# Duration:") {
            let seconds = days_and_time(duration).ok_or("\"# Duration:   0 00:10:00\"")?;
            if self.results.seconds.replace(seconds).is_some() {
                return Err("one duration");
            }
        }
        Ok(())
    }
}

/// Converts `   0 00:10:00` to seconds.
fn days_and_time(duration: &str) -> Option<u64> {
    let (days, time) = duration.trim().split_once(' ')?;
    let days: u64 = days.parse().ok()?;
    days.checked_mul(86_400)?
        .checked_add(hours_minutes_seconds(time.trim())?)
}

/// Options that take an argument.
const WITH_VALUE: [(&str, char); 23] = [
    ("auto", 'a'),
    ("bucket-size", 'b'),
    ("cpus", 'c'),
    ("duration", 'd'),
    ("event", 'e'),
    ("entries", 'E'),
    ("house-keeping", 'H'),
    ("irq", 'i'),
    ("period", 'p'),
    ("priority", 'P'),
    ("stack", 's'),
    ("thread", 'T'),
    ("trigger", '\0'),
    ("filter", '\0'),
    ("dma-latency", '\0'),
    ("warm-up", '\0'),
    ("trace-buffer-size", '\0'),
    ("deepest-idle-state", '\0'),
    ("aligned", 'A'),
    ("stack-format", '\0'),
    ("on-threshold", '\0'),
    ("on-end", '\0'),
    ("bpf-action", '\0'),
];

/// Options that take no argument, or one within their own word.
const WITHOUT: [(&str, char); 17] = [
    ("nano", 'n'),
    ("trace", 't'),
    ("cgroup", 'C'),
    ("debug", 'D'),
    ("user-threads", 'u'),
    ("kernel-threads", 'k'),
    ("user-load", 'U'),
    ("no-irq", '\0'),
    ("no-thread", '\0'),
    ("no-header", '\0'),
    ("no-summary", '\0'),
    ("no-index", '\0'),
    ("with-zeros", '\0'),
    ("no-aa", '\0'),
    ("dump-tasks", '\0'),
    ("dump-task", '\0'),
    ("quiet", 'q'),
];

/// Reads a command line: `# rtla timerlat hist -b 10 -d 1m`. Unstated settings are rtla's defaults
/// if the line is understood to its last word.
fn asked(line: &str) -> Option<Asked> {
    let mut words = line.split_whitespace();
    words.find(|word| word.ends_with("timerlat"))?;
    words.find(|word| *word == "hist")?;
    let mut asked = Asked {
        bucket: Some(1),
        period_us: Some(1_000),
        nanoseconds: Some(false),
        ..Asked::default()
    };
    let positive = |value: &str| value.parse().ok().filter(|number| *number > 0);
    let mut goes_on = false;
    let mut settings = BTreeMap::new();
    while let Some(word) = words.next() {
        let option = option(word, &mut words);
        if let Some((name, value)) = option.filter(|(name, _)| SETTINGS.contains(name)) {
            settings.insert(name, value);
        }
        match option {
            Some(("bucket-size", value)) => asked.bucket = positive(value),
            Some(("period", value)) => asked.period_us = positive(value),
            Some(("duration", value)) => asked.seconds = duration(value),
            Some(("priority", value)) => {
                let number = value.split_once(':').map(|(_, number)| number);
                asked.priority = number.and_then(|number| number.parse().ok());
            }
            Some(("nano", _)) => asked.nanoseconds = Some(true),
            Some(("cpus", value)) => asked.cpus = cpus(value),
            Some(("thread", value)) => asked.stop_us = positive(value),
            Some(("irq", value)) => asked.stop_irq_us = positive(value),
            Some(("auto", value)) => {
                (asked.stop_us, asked.stop_irq_us) = (positive(value), positive(value));
            }
            Some(("on-threshold", "continue")) => goes_on = true,
            Some(_) => {}
            // What follows is not understood.
            None => return Some(Asked::default()),
        }
    }
    asked.settings = Some(settings_of(settings));
    if goes_on {
        (asked.stop_us, asked.stop_irq_us) = (None, None);
    }
    Some(asked)
}

/// Settings, besides the period, that make it another measurement.
const SETTINGS: [&str; 12] = [
    "aligned",
    "cgroup",
    "cpus",
    "deepest-idle-state",
    "dma-latency",
    "event",
    "house-keeping",
    "kernel-threads",
    "priority",
    "trigger",
    "user-load",
    "user-threads",
];

/// Returns these settings in a fixed order, without rtla's defaults.
fn settings_of(settings: BTreeMap<&str, &str>) -> String {
    let text = |(name, value): (&str, &str)| {
        let list = cpus(value).filter(|_| matches!(name, "cpus" | "house-keeping"));
        let list = list.map(|cpus| {
            let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
            cpus.join(",")
        });
        match (name, list.as_deref().unwrap_or(value)) {
            ("priority", "f:95") => None,
            (name, "") => Some(format!("--{name}")),
            (name, value) => Some(format!("--{name}={value}")),
        }
    };
    let settings: Vec<String> = settings.into_iter().filter_map(text).collect();
    settings.join(" ")
}

/// Reads the CPUs of `0-3,5`; `None` if the list is not understood.
fn cpus(list: &str) -> Option<BTreeSet<u32>> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (from.parse().ok()?, to.parse().ok()?);
        (from <= to && to < 65_536).then_some(from..=to)
    };
    let ranges: Option<Vec<_>> = list.split(',').map(range).collect();
    Some(ranges?.into_iter().flatten().collect())
}

/// Returns an option's long name, with its argument.
fn option<'a>(
    word: &'a str,
    words: &mut impl Iterator<Item = &'a str>,
) -> Option<(&'static str, &'a str)> {
    let (name, value) = if let Some(long) = word.strip_prefix("--") {
        let both = long.split_once('=');
        both.map_or((long, None), |(name, value)| (name, Some(value)))
    } else {
        let (letter, rest) = word.strip_prefix('-')?.split_at_checked(1)?;
        (letter, Some(rest).filter(|rest| !rest.is_empty()))
    };
    let is_long = word.starts_with("--");
    let is_it = |(long, letter): &&(&str, char)| {
        (is_long && *long == name) || (!is_long && name.starts_with(*letter))
    };
    if let Some((own, _)) = WITH_VALUE.iter().find(is_it) {
        return Some((own, value.or_else(|| words.next())?));
    }
    let (own, _) = WITHOUT.iter().find(is_it)?;
    // Letters in one word: what the others are is not told here.
    let is_alone = value.is_none() || is_long || matches!(*own, "trace" | "cgroup");
    is_alone.then_some((own, value.unwrap_or_default()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Bin(u64),
    Over,
    Count,
    Min,
    Mean,
    Max,
}

impl Row {
    fn of(first: &str) -> Option<Self> {
        Some(match first {
            "over:" => Self::Over,
            "count:" => Self::Count,
            "min:" => Self::Min,
            "avg:" => Self::Mean,
            "max:" => Self::Max,
            bin => Self::Bin(bin.parse().ok()?),
        })
    }

    /// Puts a value into its column; only the smallest, the mean and the largest value may be
    /// missing.
    fn take(self, column: &mut Column, word: &str) -> Option<()> {
        let value: Option<u64> = word.parse().ok();
        let or_none = || match (word, value) {
            ("-" | NONE, _) => Some(None),
            (_, value) => value.map(Some),
        };
        match self {
            Self::Bin(bin) => column.bins.push((bin, value?)),
            Self::Over => column.over = value?,
            Self::Count => column.count = value?,
            Self::Min => column.min = or_none()?,
            Self::Max => column.max = or_none()?,
            Self::Mean if word == "-" => column.mean = None,
            Self::Mean => column.mean = Some(printed_mean(word)?),
        }
        Some(())
    }

    /// Puts a value into the summary of all CPUs.
    fn take_all(self, all: &mut All, word: &str) -> Option<()> {
        let mut column = Column::default();
        self.take(&mut column, word)?;
        match self {
            Self::Count => all.count = Some(column.count),
            Self::Min => all.min = column.min,
            Self::Max => all.max = column.max,
            Self::Bin(_) | Self::Over | Self::Mean => {}
        }
        Some(())
    }
}

/// Reads `IRQ-000`.
fn column(word: &str) -> Option<Column> {
    let (stage, cpu) = word.split_once('-')?;
    Some(Column {
        stage: stage.to_owned(),
        cpu: cpu.parse().ok()?,
        ..Column::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of rtla-timerlat-hist(1), shortened, with counts that add up.
    const PRINTED: &str = "\
[root@alien ~]# timerlat hist -d 10m -c 0-4 -P d:100us:1ms -p 1ms
# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:10:00
Index   IRQ-000   Thr-000
0        276489         0
1        323513    600001
36            0         1
over:         0         0
count:   600002    600002
min:          0         1
avg:          0         5
max:          1        36
ALL:        IRQ       Thr
count:   600002    600002
";

    #[test]
    fn a_histogram_is_read_column_by_column() {
        let results = read(PRINTED).unwrap();
        assert_eq!((results.seconds, results.nanoseconds), (Some(600), false));
        // A period of "1ms" is none that rtla takes.
        let own = results.asked.clone().unwrap();
        assert_eq!(
            (own.bucket, own.period_us, own.seconds),
            (Some(1), None, Some(600))
        );
        assert_eq!(
            (results.all.len(), results.all[0].count),
            (2, Some(600_002))
        );
        let all = |options: &str| asked(&format!("# rtla timerlat hist {options}"));
        let of = |options: &str| all(options).unwrap().bucket;
        assert_eq!(of("-b 10 -d 1m"), Some(10));
        assert_eq!(of("-d 1m --bucket-size=5"), Some(5));
        assert_eq!((of("-b25"), of("-b x")), (Some(25), None));
        assert_eq!(asked("# rtla osnoise hist -b 10"), None);
        let one = all("-u -p 100 -Pf:90 --nano -t=x --no-aa").unwrap();
        assert_eq!((one.period_us, one.priority), (Some(100), Some(90)));
        assert_eq!((one.bucket, one.nanoseconds), (Some(1), Some(true)));
        for unknown in ["-p 100 --what", "-nk", "-p"] {
            assert_eq!(all(unknown), Some(Asked::default()), "{unknown}");
        }
        let [irq, thread] = &results.columns[..] else {
            panic!("{results:?}");
        };
        assert_eq!((irq.stage.as_str(), irq.cpu, irq.max), ("IRQ", 0, Some(1)));
        assert_eq!(thread.bins, [(0, 0), (1, 600_001), (36, 1)]);
        assert_eq!((thread.over, thread.count), (0, 600_002));
        // Where nothing was measured there is no largest.
        let none = PRINTED.replace("max:          1", "max:          -");
        assert_eq!(read(&none).unwrap().columns[0].max, None);
    }

    #[test]
    fn damage_is_told_with_its_line() {
        let line = |from: &str, to: &str| read(&PRINTED.replacen(from, to, 1)).unwrap_err().line;
        assert_eq!(line("276489", "2x6489"), 6);
        assert_eq!(line("36            0         1", "36            0"), 8);
        assert_eq!(line("IRQ-000", "IRQ"), 5);
        assert_eq!(line("00:10:00", "10 minutes"), 4);
        assert_eq!(line("over:", "under:"), 9);
        assert_eq!(line("microseconds (us)", "milliseconds (ms)"), 3);
        assert_eq!(line("min:          0", "max:          0"), 13);
        assert_eq!(line("36            0", "1             0"), 8);
        let more = format!("{PRINTED}\nrtla timerlat hit stop tracing\ncount:  3  3\n");
        assert_eq!(read(&more).unwrap_err().line, 18);
        let nano = PRINTED.replace("-p 1ms", "-n");
        assert!(read(&nano).unwrap_err().to_string().contains("two units"));
        let error = read(&PRINTED.replace("count:   600002    600002\n", "")).unwrap_err();
        assert!(error.to_string().contains("--no-summary"), "{error}");
        assert!(read("something else").is_err());
    }
}
