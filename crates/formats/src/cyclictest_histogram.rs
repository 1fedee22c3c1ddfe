// SPDX-License-Identifier: MIT OR Apache-2.0
//! cyclictest's histogram (`-h`, `-H`), as the plotting scripts read it.
//!
//! Up to rt-tests 2.6, every bin is printed, and a line `# Total:`; later versions omit
//! empty bins and that line. Readers of the later form can read the earlier one, but not
//! vice versa.

use std::fmt::Write as _;

use crate::FormatError;

/// The most bins that `cyclictest -h` accepts (`HIST_MAX` in rt-tests).
const BINS_MAX: usize = 1_000_000;

/// The number of bins of all columns together that is accepted for any file, however short.
const FREE_CELLS: usize = 8_000_000;

/// One thread's column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// The number of values in each bin; bin n is the value n.
    pub bins: Vec<u64>,
    /// The smallest value.
    pub min: u64,
    /// The mean, rounded down.
    pub avg: u64,
    /// The largest value, whether or not it has a bin.
    pub max: u64,
    /// The number of values without a bin.
    pub overflows: u64,
    /// The first of these values, by the numbers of their cycles.
    pub overflow_cycles: Vec<u64>,
}

/// The bins that are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bins {
    /// All bins, and the total: rt-tests up to 2.6.
    All,
    /// Bins that are not empty: rt-tests from 2.7 on.
    Recorded,
}

/// Writes the histogram of some threads; `sum` adds a column for all of them together (`-H`).
pub fn write(columns: &[Column], which: Bins, sum: bool) -> String {
    let sum = sum && columns.len() > 1;
    let mut text = "# Histogram\n".to_owned();
    let bins = columns.iter().map(|column| column.bins.len()).max();
    for bin in 0..bins.unwrap_or(0) {
        let count = |column: &Column| column.bins.get(bin).copied().unwrap_or(0);
        let mut counts: Vec<u64> = columns.iter().map(count).collect();
        if which == Bins::Recorded && counts.iter().all(|count| *count == 0) {
            continue;
        }
        if sum {
            counts.push(sum_of(&counts));
        }
        let words: Vec<String> = counts.iter().map(|count| format!("{count:06}")).collect();
        let _ = writeln!(text, "{bin:06} {}", words.join("\t"));
    }
    if which == Bins::All {
        text += &line(
            "Total",
            columns,
            9,
            sum.then_some(Together::Sum),
            |column| sum_of(&column.bins),
        );
    }
    text += &line("Min Latencies", columns, 5, None, |column| column.min);
    text += &line("Avg Latencies", columns, 5, None, |column| column.avg);
    let most = sum.then_some(Together::Max);
    text += &line("Max Latencies", columns, 5, most, |column| column.max);
    let all = sum.then_some(Together::Sum);
    text += &line("Histogram Overflows", columns, 5, all, |column| {
        column.overflows
    });
    text += "# Histogram Overflow at cycle number:\n";
    for (index, column) in columns.iter().enumerate() {
        text += &overflow_line(index, column);
    }
    text + "\n"
}

/// Returns the sum of counts that a file may contain, which saturates at the largest number.
fn sum_of(counts: &[u64]) -> u64 {
    counts.iter().copied().fold(0, u64::saturating_add)
}

/// The content of the column of sums for all threads.
#[derive(Clone, Copy)]
enum Together {
    Sum,
    Max,
}

fn line(
    name: &str,
    columns: &[Column],
    width: usize,
    together: Option<Together>,
    value: impl Fn(&Column) -> u64,
) -> String {
    let mut values: Vec<u64> = columns.iter().map(value).collect();
    match together {
        Some(Together::Sum) => values.push(sum_of(&values)),
        Some(Together::Max) => values.push(values.iter().copied().max().unwrap_or(0)),
        None => {}
    }
    let words = values.iter().fold(String::new(), |mut words, value| {
        let _ = write!(words, " {value:0width$}");
        words
    });
    format!("# {name}:{words}\n")
}

fn overflow_line(index: usize, column: &Column) -> String {
    let mut text = format!("# Thread {index}:");
    for cycle in &column.overflow_cycles {
        let _ = write!(text, " {cycle:05}");
    }
    let listed = column.overflow_cycles.len() as u64;
    let others = column.overflows.saturating_sub(listed);
    if others > 0 {
        let _ = write!(text, " # {others:05} others");
    }
    text + "\n"
}

/// The first line of a histogram.
pub const TITLE: &str = "# Histogram";

/// Reads a histogram of either form, without the column of sums. Text around it (the threads'
/// lines, other comments) is skipped. Values that it states twice must agree.
pub fn read(text: &str) -> Result<Vec<Column>, FormatError> {
    let mut table = Table::default();
    let title = text.lines().position(|line| line.trim_end() == TITLE);
    let lines = (1..)
        .zip(text.lines())
        .skip(title.map_or(0, |line| line + 1));
    for (number, line) in lines {
        let wrong = |expected| FormatError::new(number, expected, line);
        if line.starts_with('#') {
            let comment = line.trim_start_matches('#').trim_start();
            let Some((name, values)) = comment.split_once(':') else {
                continue;
            };
            table.read_comment(number, name, values).map_err(wrong)?;
        } else if line.starts_with(|c: char| c.is_ascii_digit()) && !table.is_over {
            let row = crate::numbers(line.split_whitespace());
            let row = row.filter(|row| row.len() > 1);
            let row = row.ok_or_else(|| wrong("a bin and its counts"))?;
            let largest = largest_bin(row.len() - 1, text.len());
            table.read_bin(&row, largest).map_err(wrong)?;
        } else if crate::numbers(line.split_whitespace()).is_some_and(|row| row.len() > 1) {
            return Err(wrong("the end: a file holds one histogram"));
        } else if title.is_some() && !table.is_over && !line.trim().is_empty() {
            // Rows that were left out, as where a result is quoted.
            return Err(wrong("a bin and its counts"));
        }
    }
    table.finish()
}

/// The part of the table that was read so far.
#[derive(Default)]
struct Table {
    /// The columns, including that of sums if there is one.
    columns: Vec<Column>,
    last_bin: Option<usize>,
    /// True if the bins have ended.
    is_over: bool,
    /// The lines after the bins: number, name, values.
    foot: Vec<(usize, &'static str, Vec<u64>)>,
}

/// The lines after the bins, and the content of the column of sums there.
const FOOT: [(&str, Option<Together>); 5] = [
    ("Total", Some(Together::Sum)),
    ("Min Latencies", None),
    ("Avg Latencies", None),
    ("Max Latencies", Some(Together::Max)),
    ("Histogram Overflows", Some(Together::Sum)),
];

/// Returns true if a line is one of those after the bins.
pub(crate) fn is_foot(line: &str) -> bool {
    let comment = line.strip_prefix('#').map(str::trim_start);
    let name = comment.and_then(|comment| comment.split_once(':'));
    name.is_some_and(|(name, _)| FOOT.iter().any(|(own, _)| *own == name))
}

impl Table {
    fn read_bin(&mut self, row: &[u64], largest: usize) -> Result<(), &'static str> {
        let (bin, counts) = row.split_first().ok_or("a bin and its counts")?;
        if self.columns.is_empty() {
            self.columns.resize(counts.len(), Column::default());
        }
        if counts.len() != self.columns.len() {
            return Err("as many counts as before");
        }
        let bin = usize::try_from(*bin).ok().filter(|bin| *bin <= largest);
        let bin =
            bin.ok_or("a bin below 1000000, and no more bins than a file of this size has")?;
        if self.last_bin.is_some_and(|last| bin <= last) {
            return Err("bins in their order, each once");
        }
        self.last_bin = Some(bin);
        for (column, count) in self.columns.iter_mut().zip(counts) {
            column.bins.resize(bin + 1, 0);
            column.bins[bin] = *count;
        }
        Ok(())
    }

    fn read_comment(
        &mut self,
        number: usize,
        name: &str,
        values: &str,
    ) -> Result<(), &'static str> {
        if let Some(index) = name.strip_prefix("Thread ") {
            let Ok(index) = index.parse::<usize>() else {
                return Ok(());
            };
            let column = self.columns.get_mut(index);
            let column = column.ok_or("no thread without a column")?;
            let cycles = values.split('#').next().unwrap_or_default();
            let cycles = crate::numbers(cycles.split_whitespace());
            column.overflow_cycles = cycles.ok_or("numbers")?;
            return Ok(());
        }
        let Some((name, _)) = FOOT.iter().find(|(own, _)| *own == name) else {
            return Ok(());
        };
        self.is_over = true;
        let values = crate::numbers(values.split_whitespace()).ok_or("numbers")?;
        if self.foot.iter().any(|(_, known, _)| known == name) {
            return Err("each of these lines once: a file holds one histogram");
        }
        self.foot.push((number, name, values));
        Ok(())
    }

    /// Returns the threads' columns, with the foot's values for them.
    fn finish(mut self) -> Result<Vec<Column>, FormatError> {
        let minima = self.foot.iter().find(|line| line.1 == "Min Latencies");
        let columns = self.columns.len();
        // The smallest have no sum: they tell how many threads there are.
        let threads = minima.map_or(columns, |(.., values)| values.len());
        let sum = match columns.checked_sub(threads) {
            Some(0) => None,
            Some(1) if threads > 1 => self.columns.pop(),
            _ => {
                let number = minima.map_or(1, |(number, ..)| *number);
                let (expected, found) = (format!("{columns} columns"), format!("{threads}"));
                return Err(FormatError::new(number, expected, &found));
            }
        };
        if let Some(sum) = &sum {
            self.check_sums(sum)?;
        }
        for (number, name, values) in std::mem::take(&mut self.foot) {
            self.take(number, name, &values, sum.is_some())?;
        }
        Ok(self.columns)
    }

    fn check_sums(&self, sum: &Column) -> Result<(), FormatError> {
        for (bin, count) in sum.bins.iter().enumerate() {
            let counts = self.columns.iter().map(|column| column.bins[bin]);
            let all = counts.fold(0, u64::saturating_add);
            if all != *count {
                let expected = format!("a sum of {all} in bin {bin}");
                return Err(FormatError::new(1, expected, &count.to_string()));
            }
        }
        Ok(())
    }

    /// Processes a line of the foot.
    fn take(
        &mut self,
        number: usize,
        name: &str,
        values: &[u64],
        has_sum: bool,
    ) -> Result<(), FormatError> {
        let together = FOOT.iter().find(|(own, _)| *own == name);
        let together = together.and_then(|(_, together)| *together);
        let together = together.filter(|_| has_sum);
        let wrong = |expected: String, found: u64| {
            Err(FormatError::new(
                number,
                format!("# {name}: {expected}"),
                &found.to_string(),
            ))
        };
        let threads = self.columns.len();
        let (own, rest) = values.split_at(threads.min(values.len()));
        if own.len() != threads || rest.len() > usize::from(together.is_some()) {
            return wrong(format!("{threads} numbers"), values.len() as u64);
        }
        if let (Some(together), [last]) = (together, rest) {
            let of_all = match together {
                Together::Sum => own.iter().copied().fold(0, u64::saturating_add),
                Together::Max => own.iter().copied().max().unwrap_or(0),
            };
            if of_all != *last {
                return wrong(format!("{of_all} of all threads"), *last);
            }
        }
        for (column, value) in self.columns.iter_mut().zip(own) {
            match name {
                "Min Latencies" => column.min = *value,
                "Avg Latencies" => column.avg = *value,
                "Max Latencies" => column.max = *value,
                "Histogram Overflows" => column.overflows = *value,
                _ => {
                    let all = column.bins.iter().copied().fold(0, u64::saturating_add);
                    if all != *value {
                        return wrong(format!("{all}, as all bins hold"), *value);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the largest bin that is plausible in a file of `length` bytes with so many columns.
/// Memory is allocated for each bin up to it, no matter whether the file names that bin.
fn largest_bin(columns: usize, length: usize) -> usize {
    (FREE_CELLS.saturating_add(length) / columns.max(1)).min(BINS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<Column> {
        let column = |bins: [u64; 4], overflows, overflow_cycles| Column {
            bins: bins.to_vec(),
            min: 1,
            avg: 2,
            max: 822,
            overflows,
            overflow_cycles,
        };
        vec![
            column([0, 3, 0, 1], 3, vec![4, 5]),
            column([0, 0, 0, 7], 0, vec![]),
        ]
    }

    #[test]
    fn the_later_form_leaves_out_what_is_empty() {
        let text = write(&columns(), Bins::Recorded, false);
        let expected = "# Histogram\n\
            000001 000003\t000000\n\
            000003 000001\t000007\n\
            # Min Latencies: 00001 00001\n\
            # Avg Latencies: 00002 00002\n\
            # Max Latencies: 00822 00822\n\
            # Histogram Overflows: 00003 00000\n\
            # Histogram Overflow at cycle number:\n\
            # Thread 0: 00004 00005 # 00001 others\n\
            # Thread 1:\n\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_earlier_form_has_all_bins_the_total_and_sums_when_asked_for() {
        let text = write(&columns(), Bins::All, true);
        assert!(text.contains("000002 000000\t000000\t000000\n"), "{text}");
        assert!(text.contains("# Total: 000000004 000000007 000000011\n"));
        assert!(text.contains("# Max Latencies: 00822 00822 00822\n"));
        assert!(text.contains("# Histogram Overflows: 00003 00000 00003\n"));
    }

    #[test]
    fn both_forms_are_read_and_nothing_is_lost() {
        for which in [Bins::All, Bins::Recorded] {
            assert_eq!(read(&write(&columns(), which, false)).unwrap(), columns());
        }
        let with_sums = read(&write(&columns(), Bins::All, true)).unwrap();
        assert_eq!((with_sums.len(), with_sums[1].overflows), (2, 0));
    }

    #[test]
    fn what_is_said_twice_must_agree() {
        let sums = write(&columns(), Bins::All, true);
        let error = |from: &str, to: &str| {
            assert!(sums.contains(from), "{from}: {sums}");
            read(&sums.replace(from, to)).unwrap_err().to_string()
        };
        for (from, to, expected) in [
            (
                "# Total: 000000004 000000007 000000011",
                "# Total: 000060000 000000007",
                "# Total: 4, as all bins hold, found \"60000\"",
            ),
            ("000000011", "000000012", "# Total: 11 of all threads"),
            (
                "000003\t000000\t000003",
                "000003\t000000\t000004",
                "a sum of 3 in bin 1",
            ),
            (
                "# Min Latencies: 00001 00001",
                "# Min Latencies: 00001",
                "3 columns, found \"1\"",
            ),
            (
                "# Max Latencies: 00822 00822 00822",
                "# Max Latencies: 00822",
                "2 numbers",
            ),
            ("00003 00000 00003", "00003 00000 00004", "3 of all threads"),
            (
                "000002 000000\t000000\t000000\n",
                "...\n",
                "a bin and its counts, found \"...\"",
            ),
            ("000002 ", "000001 ", "in their order"),
        ] {
            let error = error(from, to);
            assert!(error.contains(expected), "{expected}: {error}");
        }
        let twice = sums.clone() + &sums;
        assert!(
            read(&twice)
                .unwrap_err()
                .to_string()
                .contains("one histogram")
        );
        // One thread has no column of sums.
        let one = "# Histogram\n1 2\t2\n# Min Latencies: 1\n# Avg Latencies: 1\n";
        assert!(read(one).unwrap_err().to_string().contains("2 columns"));
    }

    #[test]
    fn damage_is_told_with_its_line() {
        let text = write(&columns(), Bins::All, false).replace("000003\t", "00x003\t");
        assert_eq!(read(&text).unwrap_err().line, 3);
        let text = "000001 000003\n000002 000003\t000000\n";
        assert_eq!(read(text).unwrap_err().line, 2);
    }

    #[test]
    fn a_short_file_does_not_claim_gigabytes() {
        let many = format!("999999{}\n", " 1".repeat(900));
        let error = read(&many).unwrap_err();
        assert!(error.expected.contains("a file of this size"), "{error}");
        assert!(read("100000000 1\n").is_err());
        assert_eq!(read("999999 1\n").unwrap()[0].bins.len(), 1_000_000);
    }

    #[test]
    fn more_overflows_listed_than_counted_are_written_without_a_fuss() {
        let odd = "1 1\n# Histogram Overflows: 00000\n# Thread 0: 00004 00005\n";
        let columns = read(odd).unwrap();
        assert!(write(&columns, Bins::All, false).contains("# Thread 0: 00004 00005\n"));
    }
}
