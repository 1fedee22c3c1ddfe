// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notes of the kernel's tracer `hwlat` (`kernel/trace/trace_output.c`), a line each:
//!
//! ```text
//!   <...>-1729  [001] d....   714.756290: #3     inner/outer(us):   16/12    ts:1581527692.338063299 count:1
//! ```

use crate::FormatError;

/// A gap that was longer than the threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The time of the gap, in seconds since 1970, as it is written.
    pub at: String,
    /// The longest gap between two readings of one loop, in microseconds.
    pub inner_us: u64,
    /// The longest gap between two such loops, in microseconds.
    pub outer_us: u64,
}

impl Gap {
    /// Returns the longer of both, in microseconds.
    pub fn largest_us(&self) -> u64 {
        self.inner_us.max(self.outer_us)
    }
}

/// Writes a gap as hwlatdetect does.
pub fn write(gap: &Gap) -> String {
    let Gap {
        at,
        inner_us,
        outer_us,
    } = gap;
    format!("ts: {at}, inner:{inner_us}, outer:{outer_us}\n")
}

/// Reads the lines of the tracer; lines that begin with `#` are skipped.
pub fn read(text: &str) -> Result<Vec<Gap>, FormatError> {
    let lines = text.lines().zip(1..);
    let noted = lines.filter(|(line, _)| !line.trim().is_empty() && !line.starts_with('#'));
    let gap = |(line, number)| gap(line).ok_or_else(|| FormatError::new(number, EXPECTED, line));
    noted.map(gap).collect()
}

const EXPECTED: &str = "inner/outer(us): 16/12 ts:1581527692.338063299";

fn gap(line: &str) -> Option<Gap> {
    let (_, values) = line.split_once("inner/outer(us):")?;
    let (both, rest) = values.split_once("ts:")?;
    let (inner, outer) = both.split_once('/')?;
    let at = rest.split_whitespace().next()?;
    let is_time = |c: char| c == '.' || c.is_ascii_digit();
    Some(Gap {
        at: at.chars().all(is_time).then(|| at.to_owned())?,
        inner_us: inner.trim().parse().ok()?,
        outer_us: outer.trim().parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_tracer_are_read_and_others_are_named() {
        let text = "# tracer: hwlat\n#\n           <...>-1729  [001] d....   714.756290: \
            #3     inner/outer(us):   16/12    ts:1581527692.338063299 count:1\n\
            \t   <...>-1729  [000] d....   715.1: #4     inner/outer(us):    9/1234  \
            ts:1581527693.000000001\n";
        let gaps = read(text).unwrap();
        assert_eq!(gaps.len(), 2);
        assert_eq!((gaps[0].inner_us, gaps[0].outer_us), (16, 12));
        assert_eq!(gaps[1].largest_us(), 1_234);
        let written = write(&gaps[0]);
        assert_eq!(written, "ts: 1581527692.338063299, inner:16, outer:12\n");
        for wrong in [
            "x",
            "inner/outer(us): 1 ts:1",
            "inner/outer(us): 1/x ts:1",
            "inner/outer(us): 1/2 ts:y",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
