// SPDX-License-Identifier: MIT OR Apache-2.0
//! sendme's three lines.

use crate::FormatError;

/// One direction, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// The smallest value.
    pub min: u64,
    /// The last value.
    pub cur: u64,
    /// The mean.
    pub avg: u64,
    /// The largest value.
    pub max: u64,
}

/// Both directions of signal travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Travel {
    /// The number of signals sent.
    pub samples: u64,
    /// From the program to the driver.
    pub to: Way,
    /// From the driver back to the signal's handler.
    pub from: Way,
}

/// Sequence that moves a terminal's cursor back to the first of the three lines.
pub const AGAIN: &str = "\x1b[3A";

/// Returns the three lines.
pub fn write(travel: &Travel) -> String {
    let way = |way: &Way| {
        format!(
            "Min {:4}, Cur {:4}, Avg {:4}, Max {:4}",
            way.min, way.cur, way.avg, way.max
        )
    };
    format!(
        "Samples: {:8}\nTo:   {}\nFrom: {}\n",
        travel.samples,
        way(&travel.to),
        way(&travel.from)
    )
}

/// Reads the last three such lines of a text, since each sample covers those before.
pub fn read(text: &str) -> Result<Travel, FormatError> {
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().rposition(|line| line.contains("Samples:"));
    let first = first.ok_or_else(|| FormatError::new(1, "a line \"Samples: …\"", text))?;
    let line = |offset: usize| lines.get(first + offset).copied().unwrap_or_default();
    let wrong = |offset, expected| FormatError::new(first + offset + 1, expected, line(offset));
    let samples = line(0).split("Samples:").nth(1).unwrap_or_default();
    let samples = samples.trim().parse();
    Ok(Travel {
        samples: samples.map_err(|_| wrong(0, "a number of samples"))?,
        to: way("To:", line(1)).ok_or_else(|| wrong(1, "a line \"To: Min …\""))?,
        from: way("From:", line(2)).ok_or_else(|| wrong(2, "a line \"From: Min …\""))?,
    })
}

fn way(name: &str, line: &str) -> Option<Way> {
    let mut values = [0; 4];
    let fields = line.trim_start().strip_prefix(name)?.split(',');
    let names = ["Min", "Cur", "Avg", "Max"];
    let mut read = 0;
    for ((field, name), value) in fields.zip(names).zip(&mut values) {
        *value = field.trim().strip_prefix(name)?.trim().parse().ok()?;
        read += 1;
    }
    let [min, cur, avg, max] = values;
    (read == names.len()).then_some(Way { min, cur, avg, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As published by OSADL in 2009.
    const PUBLISHED: &str = "Samples: 10000000\n\
        To: Min 1, Cur 2, Avg 2, Max 14\n\
        From: Min 5, Cur 6, Avg 7, Max 290\n";

    #[test]
    fn what_was_published_is_read() {
        let travel = read(PUBLISHED).unwrap();
        assert_eq!(travel.samples, 10_000_000);
        assert_eq!((travel.to.max, travel.from.max), (14, 290));
    }

    #[test]
    fn what_is_written_is_read_and_stands_in_columns() {
        let travel = read(PUBLISHED).unwrap();
        let text = write(&travel);
        assert!(
            text.contains("\nTo:   Min    1, Cur    2, Avg    2, Max   14\n"),
            "{text}"
        );
        let twice = format!("{}{AGAIN}{text}", write(&Travel::default()));
        assert_eq!(read(&twice).unwrap(), travel);
    }

    #[test]
    fn what_is_cut_off_is_named() {
        assert_eq!(read(&PUBLISHED[..40]).unwrap_err().line, 2);
        assert!(read("").is_err());
    }
}
