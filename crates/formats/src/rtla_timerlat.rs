// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `rtla timerlat hist` prints.

use crate::foreign::counted::printed_mean;
use crate::{FormatError, hours_minutes_seconds};

/// What is counted in a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// Where its latency ends: `IRQ` at the timer's handler, `Thr` at the thread, `Usr` at the
    /// return to user space.
    pub stage: String,
    /// The CPU.
    pub cpu: u32,
    /// Values that have a bin, and their counts; a bin of more than one value is by its lowest.
    pub bins: Vec<(u64, u64)>,
    /// How many values were above the bins.
    pub over: u64,
    /// How many values there are.
    pub count: u64,
    /// The smallest value; none where there is no value.
    pub min: Option<u64>,
    /// Between what the mean is.
    pub mean: Option<(f64, f64)>,
    /// The largest value; none where there is no value.
    pub max: Option<u64>,
}

/// What it printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Whether values are nanoseconds, not microseconds.
    pub nanoseconds: bool,
    /// For how long was measured, in seconds.
    pub seconds: u64,
    /// How many values a bin has (`-b`), where a command line above the title says so.
    pub bucket: Option<u64>,
    /// The columns.
    pub columns: Vec<Column>,
    /// The summary of all CPUs, where there is one: a column for each stage.
    pub all: Vec<Column>,
}

/// The first line.
pub const TITLE: &str = "# RTLA timerlat histogram";

/// What is said of a column where there is no value: the unsigned form of -1.
const NONE: &str = "18446744073709551615";

/// Reads it; lines before the title are passed over, and so is what follows the summaries: the
/// analysis of a trace.
pub fn read(text: &str) -> Result<Results, FormatError> {
    let mut results = Results::default();
    let (mut titled, mut summed) = (false, [false; 3]);
    let mut is_all = false;
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |expected: &'static str| FormatError::new(number, expected, line);
        let mut words = line.split_whitespace();
        match words.next() {
            _ if line.trim_end() == TITLE => titled = true,
            _ if !titled => results.bucket = bucket_size(line).or(results.bucket),
            Some("#") => read_comment(&mut results, line)
                .ok_or_else(|| wrong("\"# Duration:   0 00:10:00\""))?,
            Some("Index") => {
                let columns = words.map(column).collect::<Option<_>>();
                results.columns = columns.ok_or_else(|| wrong("columns such as IRQ-000"))?;
            }
            Some("ALL:") => {
                is_all = true;
                let stages = words.map(|stage| Column {
                    stage: stage.to_owned(),
                    ..Column::default()
                });
                results.all = stages.collect();
            }
            None => {}
            Some(first) => {
                let row = Row::of(first);
                if summed == [true; 3] && (row.is_none() || matches!(row, Some(Row::Bin(_)))) {
                    break;
                }
                let row = row.ok_or_else(|| wrong("a bin, over:, count: or max:"))?;
                let columns = if is_all {
                    &mut results.all
                } else {
                    if let Some(number) = row.summary() {
                        summed[number] = true;
                    }
                    &mut results.columns
                };
                let values: Vec<&str> = words.collect();
                if columns.is_empty() || values.len() != columns.len() {
                    return Err(wrong("as many values as there are columns"));
                }
                for (column, value) in columns.iter_mut().zip(values) {
                    row.take(column, value).ok_or_else(|| wrong("numbers"))?;
                }
            }
        }
    }
    if !summed.iter().all(|found| *found) {
        let expected = "lines over:, count: and max:, without --no-summary";
        return Err(FormatError::new(text.lines().count(), expected, "the end"));
    }
    Ok(results)
}

/// The bucket size of a command line: `# rtla timerlat hist -b 10 -d 1m`.
fn bucket_size(line: &str) -> Option<u64> {
    let mut words = line.split_whitespace();
    words.find(|word| word.ends_with("timerlat"))?;
    words.find(|word| *word == "hist")?;
    let mut size = Some(1);
    while let Some(word) = words.next() {
        let value = match word {
            "-b" | "--bucket-size" => words.next(),
            _ => word
                .strip_prefix("--bucket-size=")
                .or_else(|| word.strip_prefix("-b").filter(|rest| !rest.is_empty())),
        };
        size = value.map_or(size, |value| value.parse().ok().filter(|size| *size > 0));
    }
    size
}

#[derive(Clone, Copy)]
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

    fn summary(self) -> Option<usize> {
        match self {
            Self::Bin(_) | Self::Min | Self::Mean => None,
            Self::Over => Some(0),
            Self::Count => Some(1),
            Self::Max => Some(2),
        }
    }

    /// Puts a value into its column; only of a smallest, a mean and a largest value there may be
    /// none.
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
}

/// `IRQ-000`.
fn column(word: &str) -> Option<Column> {
    let (stage, cpu) = word.split_once('-')?;
    Some(Column {
        stage: stage.to_owned(),
        cpu: cpu.parse().ok()?,
        ..Column::default()
    })
}

fn read_comment(results: &mut Results, line: &str) -> Option<()> {
    if line.starts_with("# Time unit is nanoseconds") {
        results.nanoseconds = true;
    } else if let Some(duration) = line.strip_prefix("# Duration:") {
        let (days, time) = duration.trim().split_once(' ')?;
        let days: u64 = days.parse().ok()?;
        results.seconds = days
            .checked_mul(86_400)?
            .checked_add(hours_minutes_seconds(time)?)?;
    }
    Some(())
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
        assert_eq!((results.seconds, results.nanoseconds), (600, false));
        assert_eq!((results.bucket, results.all.len()), (Some(1), 2));
        let of = |options: &str| bucket_size(&format!("# rtla timerlat hist {options}"));
        assert_eq!(of("-b 10 -d 1m"), Some(10));
        assert_eq!(of("-d 1m --bucket-size=5"), Some(5));
        assert_eq!((of("-b25"), of("-b x")), (Some(25), None));
        assert_eq!(bucket_size("# rtla osnoise hist -b 10"), None);
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
        let error = read(&PRINTED.replace("count:", "min:")).unwrap_err();
        assert!(error.to_string().contains("--no-summary"), "{error}");
        assert!(read("something else").is_err());
    }
}
