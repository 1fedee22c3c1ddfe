// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `rtla timerlat hist` prints.

use crate::{FormatError, hours_minutes_seconds};

/// What is counted in a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// The largest value; none where there is no value.
    pub max: Option<u64>,
}

/// What it printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// Whether values are nanoseconds, not microseconds.
    pub nanoseconds: bool,
    /// For how long was measured, in seconds.
    pub seconds: u64,
    /// The columns.
    pub columns: Vec<Column>,
}

/// The first line.
pub const TITLE: &str = "# RTLA timerlat histogram";

/// Reads it; lines before the title are passed over, and so is the summary of all CPUs.
pub fn read(text: &str) -> Result<Results, FormatError> {
    let mut results = Results::default();
    let (mut titled, mut summed) = (false, [false; 3]);
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |expected: &'static str| FormatError::new(number, expected, line);
        let mut words = line.split_whitespace();
        match words.next() {
            _ if line.trim_end() == TITLE => titled = true,
            _ if !titled => {}
            Some("#") => read_comment(&mut results, line)
                .ok_or_else(|| wrong("\"# Duration:   0 00:10:00\""))?,
            Some("Index") => {
                let columns = words.map(column).collect::<Option<_>>();
                results.columns = columns.ok_or_else(|| wrong("columns such as IRQ-000"))?;
            }
            Some("ALL:") => break,
            Some("min:" | "avg:") | None => {}
            Some(first) => {
                let values: Vec<Option<u64>> = words.map(|word| word.parse().ok()).collect();
                if results.columns.is_empty() || values.len() != results.columns.len() {
                    return Err(wrong("as many values as there are columns"));
                }
                let row = Row::of(first).ok_or_else(|| wrong("a bin, over:, count: or max:"))?;
                if let Some(number) = row.summary() {
                    summed[number] = true;
                }
                for (column, value) in results.columns.iter_mut().zip(values) {
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

#[derive(Clone, Copy)]
enum Row {
    Bin(u64),
    Over,
    Count,
    Max,
}

impl Row {
    fn of(first: &str) -> Option<Self> {
        Some(match first {
            "over:" => Self::Over,
            "count:" => Self::Count,
            "max:" => Self::Max,
            bin => Self::Bin(bin.parse().ok()?),
        })
    }

    fn summary(self) -> Option<usize> {
        match self {
            Self::Bin(_) => None,
            Self::Over => Some(0),
            Self::Count => Some(1),
            Self::Max => Some(2),
        }
    }

    /// Puts a value into its column; only of a largest value there may be none.
    fn take(self, column: &mut Column, value: Option<u64>) -> Option<()> {
        match self {
            Self::Bin(bin) => column.bins.push((bin, value?)),
            Self::Over => column.over = value?,
            Self::Count => column.count = value?,
            Self::Max => column.max = value,
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
