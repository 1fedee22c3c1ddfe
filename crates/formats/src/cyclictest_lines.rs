// SPDX-License-Identifier: MIT OR Apache-2.0
//! cyclictest's lines: one for each thread (`-q`, and on the screen), and one for each
//! value (`-v`).

use crate::FormatError;

/// The smallest value that is shown before there is any value.
pub const NO_MINIMUM: u64 = 1_000_000;

/// A thread's line: `T: 0 ( 2234) P:80 I:1000 C:     50 Min:     19 Act:   39 Avg: …`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadLine {
    /// The thread's number, from 0.
    pub index: usize,
    /// Its id, as the kernel counts threads.
    pub tid: u64,
    /// Its real-time priority; 0 if it has none.
    pub priority: u8,
    /// Its period, in microseconds.
    pub interval_us: u64,
    /// The number of values.
    pub cycles: u64,
    /// The smallest value; [`NO_MINIMUM`] if there is none.
    pub min: u64,
    /// The last value.
    pub act: u64,
    /// The mean, rounded down.
    pub avg: u64,
    /// The largest value.
    pub max: u64,
}

impl ThreadLine {
    /// Returns the line without its newline. `nanoseconds` is true if values are nanoseconds
    /// (`-N`), for which two columns are wider.
    pub fn write(&self, nanoseconds: bool) -> String {
        let width = if nanoseconds { 8 } else { 5 };
        format!(
            "T:{:2} ({:5}) P:{:2} I:{} C:{:7} Min:{:7} Act:{:width$} Avg:{:width$} Max:{:8}",
            self.index,
            self.tid,
            self.priority,
            self.interval_us,
            self.cycles,
            self.min,
            self.act,
            self.avg,
            self.max
        )
    }

    /// Reads such a line.
    pub fn read(number: usize, line: &str) -> Result<Self, FormatError> {
        parse(line).ok_or_else(|| FormatError::new(number, "a line \"T: 0 (…) P:… Max:…\"", line))
    }
}

fn parse(line: &str) -> Option<ThreadLine> {
    let mut rest = line;
    let mut next = |label: &str| -> Option<u64> {
        rest = rest.trim_start().strip_prefix(label)?.trim_start();
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let number = rest[..end].parse().ok()?;
        rest = &rest[end..];
        Some(number)
    };
    let (index, tid) = (next("T:")?, next("(")?);
    let line = ThreadLine {
        index: index as usize,
        tid,
        priority: u8::try_from(next(") P:")?).ok()?,
        interval_us: next("I:")?,
        cycles: next("C:")?,
        min: next("Min:")?,
        act: next("Act:")?,
        avg: next("Avg:")?,
        max: next("Max:")?,
    };
    // Behind it stands how many SMIs came (`--smi`); digits behind a comma, or a unit, would be
    // another number.
    let smis = rest.trim().strip_prefix("SMI:").map(str::trim);
    let is_smis = smis.is_some_and(|smis| smis.parse::<u64>().is_ok());
    (rest.trim().is_empty() || is_smis).then_some(line)
}

/// A value's line: thread, cycle, value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueLine {
    /// The thread's number, from 0.
    pub index: usize,
    /// The value's number, from 0.
    pub cycle: u64,
    /// The value.
    pub value: u64,
}

impl ValueLine {
    /// Returns the line without its newline.
    pub fn write(&self) -> String {
        format!("{:8}:{:8}:{:8}", self.index, self.cycle, self.value)
    }

    /// Reads such a line.
    pub fn read(number: usize, line: &str) -> Result<Self, FormatError> {
        let words = line.split(':').map(str::trim);
        match crate::numbers(words).as_deref() {
            Some([index, cycle, value]) => Ok(Self {
                index: *index as usize,
                cycle: *cycle,
                value: *value,
            }),
            _ => Err(FormatError::new(number, "thread:cycle:value", line)),
        }
    }
}

/// Returns the text above the threads' lines on a screen: the policy and the machine's load.
pub fn screen_head(policy: &str, load_average: &str) -> String {
    format!("policy: {policy}: loadavg: {load_average}          \n\n")
}

/// Returns the sequence that moves a terminal's cursor up to the head, so that the next screen
pub fn screen_again(threads: usize) -> String {
    format!("\x1b[{}A", threads + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As printed by cyclictest 2.4.
    const LINE: &str =
        "T: 0 ( 2234) P:80 I:1000 C:     50 Min:     19 Act:   39 Avg:   34 Max:      47";
    const NANOSECONDS: &str =
        "T: 0 ( 2266) P: 0 I:1000 C:     20 Min:  83372 Act:   84012 Avg:   99432 Max:  210093";

    #[test]
    fn a_threads_line_is_read_and_written_as_it_was() {
        assert_eq!(ThreadLine::read(1, LINE).unwrap().write(false), LINE);
        let line = ThreadLine::read(1, NANOSECONDS).unwrap();
        assert_eq!((line.priority, line.max), (0, 210_093));
        assert_eq!(line.write(true), NANOSECONDS);
    }

    #[test]
    fn a_values_line_is_read_and_written_as_it_was() {
        let line = "       1:      42:    1028";
        let read = ValueLine::read(1, line).unwrap();
        assert_eq!((read.index, read.cycle, read.value), (1, 42, 1028));
        assert_eq!(read.write(), line);
    }

    #[test]
    fn what_is_no_such_line_is_named() {
        let error = ThreadLine::read(7, "policy: fifo").unwrap_err().to_string();
        assert!(
            error.contains("line 7") && error.contains("policy: fifo"),
            "{error}"
        );
        assert!(ThreadLine::read(1, &LINE[..60]).is_err());
        for end in [",119", ".119 ms", " 119"] {
            assert!(
                ThreadLine::read(1, &format!("{LINE}{end}")).is_err(),
                "{end}"
            );
        }
        assert!(ValueLine::read(1, "1:2").is_err() && ValueLine::read(1, "1:2:x").is_err());
    }
}
