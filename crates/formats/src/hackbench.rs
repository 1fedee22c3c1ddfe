// SPDX-License-Identifier: MIT OR Apache-2.0
//! hackbench's three lines.

use crate::FormatError;

/// The description that hackbench prints before the work begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// True if workers are threads instead of processes.
    pub threads: bool,
    /// The number of groups.
    pub groups: u32,
    /// The number of senders, and also of receivers, in a group.
    pub fds: u32,
    /// The number of messages that each sender writes to each receiver.
    pub loops: u32,
    /// A message's size in bytes.
    pub bytes: usize,
}

/// Writes the two lines before the work.
pub fn write_work(work: &Work) -> String {
    let mode = if work.threads { "threaded" } else { "process" };
    let (groups, descriptors) = (work.groups, 2 * work.fds);
    let tasks = u64::from(groups) * u64::from(descriptors);
    format!(
        "Running in {mode} mode with {groups} groups using {descriptors} file descriptors each \
         (== {tasks} tasks)\nEach sender will pass {} messages of {} bytes\n",
        work.loops, work.bytes
    )
}

/// Writes the line after the work, from nanoseconds.
pub fn write_time(nanoseconds: u64) -> String {
    // Cut off, not rounded, as the original does.
    let millis = nanoseconds / 1_000_000;
    format!("Time: {}.{:03}\n", millis / 1_000, millis % 1_000)
}

/// Returns the seconds in the line `Time: …` of a text; an error if there is no such line.
pub fn read_time(text: &str) -> Result<f64, FormatError> {
    let found = (1..)
        .zip(text.lines())
        .find_map(|(number, line)| Some((number, line, line.strip_prefix("Time: ")?)));
    let Some((number, line, seconds)) = found else {
        return Err(FormatError::new(1, "a line \"Time: …\"", text));
    };
    let seconds = seconds
        .trim()
        .parse()
        .ok()
        .filter(|time: &f64| *time >= 0.0);
    seconds.ok_or_else(|| FormatError::new(number, "seconds", line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_those_of_the_original() {
        let work = Work {
            threads: false,
            groups: 10,
            fds: 20,
            loops: 100,
            bytes: 100,
        };
        let expected = "Running in process mode with 10 groups using 40 file descriptors each \
            (== 400 tasks)\nEach sender will pass 100 messages of 100 bytes\n";
        assert_eq!(write_work(&work), expected);
        assert_eq!(write_time(1_702_999_999), "Time: 1.702\n");
    }

    #[test]
    fn the_time_is_read_among_other_lines_and_never_guessed() {
        assert_eq!(read_time("Running\nTime: 0.093\n"), Ok(0.093));
        assert!(read_time("Running\n").is_err());
        assert_eq!(read_time("a\nTime: x\n").unwrap_err().line, 2);
    }
}
