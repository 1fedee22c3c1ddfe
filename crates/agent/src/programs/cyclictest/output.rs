// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of cyclictest, during the measurement and at the end.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use punctual_formats::cyclictest_histogram::{self as histogram, Column};
use punctual_formats::cyclictest_json::{self as json, Results};
use punctual_formats::cyclictest_lines::{
    NO_MINIMUM, ThreadLine, ValueLine, screen_again, screen_head,
};
use punctual_model::Nanos;

use super::Part;
use super::fifo::Fifo;
use super::options::Options;
use crate::programs::live::{Common, Table};
use crate::programs::spikes::Spikes;
use crate::programs::{cpus, results};

/// The place to which the numbers are written.
pub struct Screen<'a> {
    options: &'a Options,
    parts: &'a [Part],
    command: String,
    started: Timestamp,
    out: io::StdoutLock<'a>,
    shown: bool,
    highest: Nanos,
    /// With `-v`: the progress in printing each thread's values.
    printed: Vec<Printed>,
    /// The note that `get_cyclictest_snapshot` reads; without it there are no snapshots.
    note: Option<Note>,
    /// The pipe whose readers get the threads' lines (`-F`).
    fifo: Option<Fifo>,
}

#[derive(Clone, Copy, Default)]
struct Printed {
    next: u64,
    lost: u64,
    group: u64,
    worst: Option<(u64, u64)>,
}

impl<'a> Screen<'a> {
    /// Creates a screen for these threads.
    pub fn new(
        options: &'a Options,
        parts: &'a [Part],
        command: &[String],
        mut out: io::StdoutLock<'a>,
    ) -> Result<Self> {
        if options.verbose {
            for part in parts {
                // The next thread's, as the original says it.
                let next = part.interval_us + options.distance_us;
                writeln!(out, "Thread {} Interval: {next}", part.index)?;
            }
        }
        Ok(Self {
            options,
            parts,
            command: command.join(" "),
            started: Timestamp::now(),
            out,
            shown: false,
            highest: Nanos(-1),
            printed: vec![Printed::default(); parts.len()],
            note: Note::new().ok(),
            fifo: options.fifo.clone().map(Fifo::new).transpose()?,
        })
    }

    fn value(&self, time: Nanos) -> u64 {
        let unit = if self.options.nanoseconds { 1 } else { 1_000 };
        (time.0.max(0) / unit) as u64
    }

    fn line(&self, part: &Part) -> String {
        let seen = part.shared.seen();
        let mean = seen.sum.0 / i64::try_from(seen.cycles).unwrap_or(i64::MAX).max(1);
        let line = ThreadLine {
            index: part.index,
            tid: part.shared.tid.load(Relaxed),
            priority: part.priority,
            interval_us: part.interval_us,
            cycles: seen.cycles,
            min: seen.min.map_or(NO_MINIMUM, |min| self.value(min)),
            act: self.value(seen.act),
            avg: self.value(Nanos(mean)),
            max: self.value(seen.max),
        };
        let line = line.write(self.options.nanoseconds);
        if self.options.smi {
            line + &smi_column(seen.smis) + "\n"
        } else {
            line + "\n"
        }
    }

    fn lines(&self) -> String {
        self.parts.iter().map(|part| self.line(part)).collect()
    }

    /// Shows the current numbers wherever they are requested.
    pub fn show(&mut self) -> io::Result<()> {
        if let Some(fifo) = &self.fifo {
            fifo.offer(|| self.lines());
        }
        if self.options.verbose {
            return self.print_values();
        }
        if self.options.quiet {
            return Ok(());
        }
        let highest = self.parts.iter().map(|part| part.shared.seen().max).max();
        let highest = highest.unwrap_or_default();
        if self.options.refresh_on_max && highest <= self.highest {
            return Ok(());
        }
        self.highest = highest;
        let again = if self.shown {
            screen_again(self.parts.len())
        } else {
            String::new()
        };
        self.shown = true;
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let policy = self
            .options
            .policy
            .name()
            .trim_start_matches("SCHED_")
            .to_lowercase();
        // The last thread's, where that is not of real time, is told as the original tells it.
        let of_last = if self.options.policy.is_real_time() {
            ""
        } else {
            "/other"
        };
        let head = screen_head(&format!("{policy}{of_last}"), load.trim());
        let text = again + &head + &self.lines();
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    fn print_values(&mut self) -> io::Result<()> {
        let mut text = String::new();
        for (part, printed) in self.parts.iter().zip(&mut self.printed) {
            for (cycle, time, smis) in part.shared.values(printed.next) {
                printed.lost += cycle - printed.next;
                printed.next = cycle + 1;
                let unit = if self.options.nanoseconds { 1 } else { 1_000 };
                let value = (time.0.max(0) / unit) as u64;
                if printed.worst.is_none_or(|(_, worst)| value > worst) {
                    printed.worst = Some((cycle, value));
                }
                printed.group += 1;
                if printed.group < self.options.reduction {
                    continue;
                }
                printed.group = 0;
                if let Some((cycle, value)) = printed.worst.take() {
                    let index = part.index;
                    let line = ValueLine {
                        index,
                        cycle,
                        value,
                    };
                    text += &line.write();
                    if self.options.smi {
                        // Those of the group's last value, as in the original.
                        let _ = write!(text, "{smis:8}");
                    }
                    text.push('\n');
                }
            }
        }
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    fn status_text(&self) -> String {
        let rule = "#---------------------------\n";
        format!("{rule}# cyclictest current status:\n{}{rule}", self.lines())
    }

    /// Prints the progress on standard error.
    pub fn status(&self) {
        eprint!("{}", self.status_text());
    }

    /// Writes the progress down for `get_cyclictest_snapshot`.
    pub fn snapshot(&self) {
        if let Some(note) = &self.note {
            let _ = note.write(&self.status_text());
        }
    }

    /// Prints everything that is due at the end.
    pub fn finish(mut self, tables: &[Table], common: &Common) -> Result<()> {
        let options = self.options;
        self.show()?;
        if options.quiet && options.histogram.is_none() {
            let lines = self.lines();
            self.out.write_all(lines.as_bytes())?;
        }
        if let Some(spikes) = &common.spikes {
            self.out.write_all(self.spikes(spikes).as_bytes())?;
        }
        if options.histogram.is_some() {
            let text = self.histogram(tables);
            match &options.histfile {
                Some(path) => fs::write(path, text).with_context(|| path.display().to_string())?,
                None => self.out.write_all(text.as_bytes())?,
            }
        }
        if common.limit.is_some() {
            let text = self.broken(common);
            self.out.write_all(text.as_bytes())?;
        }
        if let Some(path) = &options.json {
            let text = json::write(&self.results(tables));
            if path.as_os_str() == "-" {
                self.out.write_all(text.as_bytes())?;
            } else {
                fs::write(path, text).with_context(|| path.display().to_string())?;
            }
        }
        self.out.flush()?;
        let lost: u64 = self.printed.iter().map(|printed| printed.lost).sum();
        if lost > 0 {
            eprintln!("cyclictest: {lost} values came faster than they could be printed");
        }
        Ok(())
    }

    fn spikes(&self, spikes: &Spikes) -> String {
        if spikes.count() == 0 {
            return String::new();
        }
        let mut text = "\n".to_owned();
        for spike in spikes.kept() {
            text += &spike_line(spike.thread, self.value(spike.value), spike.at);
        }
        let _ = write!(text, "spikes = {}\n\n", spikes.count());
        text
    }

    fn histogram(&self, tables: &[Table]) -> String {
        let options = self.options;
        let mut text = histogram::write(&self.columns(tables), options.bins, options.sum);
        if options.smi {
            // Before the empty line in the end.
            text.pop();
            let count = |part: &Part| format!(" {:05}", part.shared.seen().smis);
            let counts: String = self.parts.iter().map(count).collect();
            let _ = write!(text, "# SMIs:{counts}\n\n");
        }
        text
    }

    fn broken(&self, common: &Common) -> String {
        let tid = |part: &Part| format!(" {:05}", part.shared.tid.load(Relaxed));
        let tids: String = self.parts.iter().map(tid).collect();
        let mut text = format!("# Thread Ids:{tids}\n");
        let thread = common.broken.0.load(Relaxed);
        if thread > 0 {
            let value = self.value(Nanos(common.broken.1.load(Relaxed)));
            let _ = write!(text, "# Break thread: {thread}\n# Break value: {value}\n");
        }
        text
    }

    fn columns(&self, tables: &[Table]) -> Vec<Column> {
        let both = self.parts.iter().zip(tables);
        let column = |(part, table): (&Part, &Table)| {
            let seen = part.shared.seen();
            let mean = seen.sum.0 / i64::try_from(seen.cycles).unwrap_or(i64::MAX).max(1);
            Column {
                bins: table.bins.clone(),
                min: seen.min.map_or(NO_MINIMUM, |min| self.value(min)),
                avg: self.value(Nanos(mean)),
                max: self.value(seen.max),
                overflows: table.overflows,
                overflow_cycles: table.overflow_cycles.clone(),
            }
        };
        both.map(column).collect()
    }

    fn results(&self, tables: &[Table]) -> Results {
        let unit = if self.options.nanoseconds { 1.0 } else { 1e3 };
        let both = self.parts.iter().zip(tables);
        let thread = |(part, table): (&Part, &Table)| {
            let seen = part.shared.seen();
            let bins = (0..).zip(&table.bins).filter(|(_, count)| **count > 0);
            json::Thread {
                histogram: bins.map(|(value, count)| (value, *count)).collect(),
                cycles: seen.cycles,
                min: seen.min.map_or(NO_MINIMUM, |min| self.value(min)),
                max: self.value(seen.max),
                avg: seen.sum.0 as f64 / unit / seen.cycles.max(1) as f64,
                cpu: part.cpu.0,
                node: cpus::node(part.cpu),
            }
        };
        Results {
            nanoseconds: self.options.nanoseconds,
            threads: both.map(thread).collect(),
            ..results::now(&self.command, self.started)
        }
    }
}

/// Returns the additional column of a thread's line with `--smi`.
fn smi_column(count: u64) -> String {
    format!(" SMI:{count:8}")
}

/// Returns the line of a value above the trigger, with its moment in microseconds.
fn spike_line(thread: usize, value: u64, at: Nanos) -> String {
    let micros = at.0 / 1_000;
    format!("T:{thread:2} Spike:{value:8}: TS: {micros:12}\n")
}

/// A file in memory under a well-known name, where anybody may have put something.
struct Note {
    path: PathBuf,
    file: File,
}

impl Note {
    fn new() -> io::Result<Self> {
        let path = PathBuf::from(format!("/dev/shm/cyclictest{}", std::process::id()));
        // One of this number may have been killed. Neither of the two follows a link.
        let _ = fs::remove_file(&path);
        let file = File::options().write(true).create_new(true).open(&path)?;
        Ok(Self { path, file })
    }

    fn write(&self, text: &str) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.write_all_at(text.as_bytes(), 0)
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spikes_and_smis_stand_where_the_original_has_them() {
        let expected = "T: 1 Spike:      35: TS:    608811136\n";
        assert_eq!(spike_line(1, 35, Nanos(608_811_136_999)), expected);
        assert_eq!(smi_column(7), " SMI:       7");
    }
}
