// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of realfeel: its histogram file, a line `50.3 8121` for each bin that is not empty;
//! and, while it runs, the processor's rate, the frequency, and each jitter in milliseconds on a
//! line of its own.
//!
//! The original of 2001 counts in tenths of a millisecond and prints milliseconds; its
//! successor of 2004 counts in tenths of a microsecond, shifted by 50 µs so that intervals
//! that are too short have bins too. The file does not say which program wrote it.

use std::fmt::Write as _;

use crate::FormatError;

/// The unit of a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// 0.1 ms, from 0: the original.
    #[default]
    Milliseconds,
    /// 0.1 µs, from −50 µs: the successor.
    Microseconds,
}

impl Unit {
    /// Returns a bin's width, in nanoseconds.
    pub fn width_ns(self) -> i64 {
        match self {
            Self::Milliseconds => 100_000,
            Self::Microseconds => 100,
        }
    }

    /// Returns the offset that is added to a jitter before it is assigned to a bin, in nanoseconds.
    pub fn offset_ns(self) -> i64 {
        match self {
            Self::Milliseconds => 0,
            Self::Microseconds => 50_000,
        }
    }

    /// Returns the bin that a jitter falls into. One that is too short falls into the first, as in
    /// the original; one that is too long for `bins` of them has none.
    pub fn bin(self, jitter_ns: i64, bins: usize) -> Option<usize> {
        let bin = (jitter_ns.saturating_add(self.offset_ns())).max(0) / self.width_ns();
        usize::try_from(bin).ok().filter(|bin| *bin < bins)
    }
}

/// Returns the lines above the jitters: the rate of the processor's time stamp counter, if it is
/// known, and the frequency of the interrupts.
///
/// When it writes a histogram, as it was run for the patch review of 2006, it prints the rate in
/// three ways; when it does not, as it was run for Linux Journal, in one.
pub fn write_head(khz: Option<u64>, hertz: u32, has_file: bool) -> String {
    let mut text = String::new();
    if let Some(khz) = khz {
        let _ = writeln!(text, "{}.{:03} MHz", khz / 1_000, khz % 1_000);
        let ticks = khz as f64 * 1e3;
        if has_file {
            let _ = writeln!(text, "secondsPerTick={:.6}", ticks.recip());
            let _ = writeln!(text, "ticksPerSecond={ticks:.6}");
        }
    }
    let _ = writeln!(text, "{hertz} Hz");
    text
}

/// Returns the line of one jitter: `0.451 msec` if a histogram is written, else `0.564934`.
pub fn write_jitter(jitter_ns: i64, has_file: bool) -> String {
    let millis = jitter_ns as f64 / 1e6;
    if has_file {
        format!("{millis:.3} msec\n")
    } else {
        format!("{millis:.6}\n")
    }
}

/// Reads the jitters of such an output, in milliseconds: the first column, as in gnuplot's
/// `using 1`, of the lines after the one that ends with `Hz`.
pub fn read_jitters(text: &str) -> Result<Vec<f64>, FormatError> {
    let mut lines = (1..).zip(text.lines());
    if !lines.by_ref().any(|(_, line)| line.ends_with(" Hz")) {
        return Err(FormatError::new(
            1,
            "a line with the frequency, `64 Hz`",
            text,
        ));
    }
    let jitter = |(number, line): (usize, &str)| {
        let first = line.split(' ').next().and_then(|word| word.parse().ok());
        first.ok_or_else(|| FormatError::new(number, "a jitter in milliseconds", line))
    };
    lines.map(jitter).collect()
}

/// The number of bins of the original.
pub const BINS: usize = 10_000;

/// Returns the file's text.
pub fn write(bins: &[u64]) -> String {
    let mut text = String::new();
    for (bin, count) in bins.iter().enumerate().filter(|(_, count)| **count > 0) {
        let _ = writeln!(text, "{}.{} {count}", bin / 10, bin % 10);
    }
    text
}

/// Reads such a file: bins and their counts. A bin above [`BINS`] is an error, since no
/// realfeel writes one.
pub fn read(text: &str) -> Result<Vec<(usize, u64)>, FormatError> {
    let line = |(number, line): (usize, &str)| {
        parse(line).ok_or_else(|| FormatError::new(number, "a bin and its count", line))
    };
    (1..).zip(text.lines()).map(line).collect()
}

fn parse(line: &str) -> Option<(usize, u64)> {
    let (bin, count) = line.split_once(' ')?;
    let (whole, tenth) = bin.split_once('.').filter(|(_, tenth)| tenth.len() == 1)?;
    let tenths = whole.parse::<usize>().ok()?.checked_mul(10)?;
    let bin = tenths.checked_add(tenth.parse().ok()?)?;
    Some((bin, count.trim().parse().ok()?)).filter(|_| bin <= BINS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_those_of_either_program() {
        let micros = |jitter| Unit::Microseconds.bin(jitter, BINS);
        assert_eq!((micros(0), micros(345)), (Some(500), Some(503)));
        assert_eq!((micros(-50_001), micros(-1_000_000)), (Some(0), Some(0)));
        assert_eq!((micros(949_999), micros(950_000)), (Some(9_999), None));
        let millis = |jitter| Unit::Milliseconds.bin(jitter, BINS);
        assert_eq!(
            (millis(0), millis(150_000), millis(-1)),
            (Some(0), Some(1), Some(0))
        );
        assert_eq!(millis(1_000_000_000), None);
        assert_eq!(micros(i64::MAX), None);
    }

    /// The lines are those of the patch review, and of the question in Linux Journal.
    #[test]
    fn what_is_printed_is_what_its_readers_plotted() {
        let head = "1400.038 MHz\nsecondsPerTick=0.000000\nticksPerSecond=1400038000.000000\n\
                    2048 Hz\n";
        assert_eq!(write_head(Some(1_400_038), 2_048, true), head);
        assert_eq!(write_jitter(451_400, true), "0.451 msec\n");
        assert_eq!(write_jitter(-4_000, true), "-0.004 msec\n");
        assert_eq!(
            write_head(Some(1_666_759), 64, false),
            "1666.759 MHz\n64 Hz\n"
        );
        assert_eq!(write_jitter(564_934, false), "0.564934\n");
        assert_eq!(write_head(None, 64, true), "64 Hz\n");
        let text = format!(
            "{head}{}{}",
            write_jitter(451_400, true),
            write_jitter(-1, false)
        );
        assert_eq!(read_jitters(&text).unwrap(), [0.451, -0.000_001]);
        assert!(read_jitters("0.451 msec\n").is_err());
        assert_eq!(read_jitters("64 Hz\n0.4\nx\n").unwrap_err().line, 3);
    }

    #[test]
    fn only_bins_that_are_not_empty_are_written_and_read_again() {
        let mut bins = vec![0; BINS];
        (bins[503], bins[9_999]) = (8_121, 1);
        let text = write(&bins);
        assert_eq!(text, "50.3 8121\n999.9 1\n");
        assert_eq!(read(&text).unwrap(), [(503, 8_121), (9_999, 1)]);
    }

    #[test]
    fn damage_is_told_with_its_line() {
        assert_eq!(read("50.3 1\n50 1\n").unwrap_err().line, 2);
        assert!(read("1844674407370955161.9 1\n").is_err());
        assert!(read("50.31 1\n").is_err() && read("1000.1 1\n").is_err());
    }
}
