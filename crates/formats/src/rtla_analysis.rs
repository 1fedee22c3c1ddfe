// SPDX-License-Identifier: MIT OR Apache-2.0
//! The automatic analysis of `rtla timerlat`, printed when it has hit its limit.
//!
//! ```text
//! ## CPU 23 hit stop tracing, analyzing it ##
//! IRQ handler delay:                                        27.49 us (65.52 %)
//! IRQ latency:                                              28.13 us
//! Timerlat IRQ duration:                                     9.59 us (22.85 %)
//! Blocking thread:                                           3.79 us (9.03 %)
//!                        objtool:49256                       3.79 us
//!   Blocking thread stacktrace
//!               -> timerlat_irq
//! ------------------------------------------------------------------------
//!   Thread latency:                                          41.96 us (100%)
//! ```

use punctual_model::Nanos;
use punctual_model::capture::STACK_MOST;

/// The analysis of one late thread by `rtla timerlat`. Times that it does not name are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Analysis {
    /// The CPU, if it is named.
    pub cpu: Option<u32>,
    /// The time from the moment when the timer was due to its interrupt.
    pub irq_delay: Nanos,
    /// True if the CPU came from idle.
    pub from_idle: bool,
    /// The most of that delay that another interrupt took.
    pub previous_irq: Nanos,
    /// The time that the timer's interrupt took.
    pub irq_duration: Nanos,
    /// The thread that continued after the interrupt, with its running time.
    pub blocking: Vec<(String, Nanos)>,
    /// The place where the interrupt occurred in it, innermost function first.
    pub stack: Vec<String>,
    /// Threads that ran before the measuring one.
    pub threads: Vec<(String, Nanos)>,
    /// Interrupts in between.
    pub irqs: Vec<(String, Nanos)>,
    /// Soft interrupts in between.
    pub softirqs: Vec<(String, Nanos)>,
    /// Non-maskable interrupts in between.
    pub nmis: Nanos,
    /// The lateness of the thread, or of its interrupt if that made rtla stop.
    pub latency: Nanos,
}

/// The subject of the lines after a head.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    None,
    Blocking,
    Stack,
    Threads,
    Irqs,
    Softirqs,
}

/// Reads each analysis in a text; empty if there is none.
pub fn read(text: &str) -> Vec<Analysis> {
    let mut all = Vec::new();
    let mut own = Analysis::default();
    let mut of = Of::None;
    // Nor an end of line behind the interrupt before.
    let text = text.replace(" us  IRQ handler delay:", " us\nIRQ handler delay:");
    for line in text.lines() {
        // The old one wrote no end of line behind its last.
        let line = line
            .split_once("Max timerlat")
            .map_or(line, |(line, _)| line);
        if let Some(rest) = line.trim().strip_prefix("## CPU ") {
            own = Analysis {
                cpu: rest.split(' ').next().and_then(|cpu| cpu.parse().ok()),
                ..Analysis::default()
            };
        } else if let Some(function) = line.trim().strip_prefix("-> ") {
            if of == Of::Stack && own.stack.len() < STACK_MOST {
                own.stack.push(function.trim().to_owned());
            }
        } else if line.contains("hread stack trace") || line.contains("hread stacktrace") {
            of = Of::Stack;
        } else if let Some(time) = time(line) {
            of = own.take(line, time, of);
            if of == Of::None && own.latency > Nanos::ZERO {
                all.push(std::mem::take(&mut own));
            }
        }
    }
    all.extend(Some(own).filter(|own| own.irq_delay > Nanos::ZERO));
    all
}

impl Analysis {
    /// Processes a line with a time, and returns the subject of the lines after it: none after the
    /// last line of an analysis.
    fn take(&mut self, line: &str, time: Nanos, of: Of) -> Of {
        // rtla 6.4 wrote no colon behind some of them.
        let own = line.trim();
        let end = own.find(':').or_else(|| own.find("  ")).unwrap_or(0);
        let key = own[..end].trim().to_ascii_lowercase();
        match key.as_str() {
            "irq handler delay" => {
                self.irq_delay = time;
                self.from_idle = line.contains("exit from idle");
                return Of::Blocking;
            }
            "irq latency" if line.contains("(100%)") => {
                self.latency = time;
                return Of::None;
            }
            "thread latency" | "user latency" => {
                self.latency = time;
                return Of::None;
            }
            // The delay, and what the handler took until it read the clock.
            "irq latency" => {}
            "previous irq interference" => self.previous_irq = time,
            "timerlat irq duration" => self.irq_duration = time,
            "nmi interference" => self.nmis = time,
            "blocking thread" => return Of::Blocking,
            "thread interference" => return Of::Threads,
            "irq interference" => return Of::Irqs,
            "softirq interference" => return Of::Softirqs,
            _ => {
                let list = match of {
                    Of::Blocking => &mut self.blocking,
                    Of::Threads => &mut self.threads,
                    Of::Irqs => &mut self.irqs,
                    Of::Softirqs => &mut self.softirqs,
                    Of::None | Of::Stack => return of,
                };
                if let Some(name) = named(line) {
                    list.push((name, time));
                }
            }
        }
        if of == Of::None { Of::Blocking } else { of }
    }
}

/// Reads the name in `objtool:49256   3.79 us`.
fn named(line: &str) -> Option<String> {
    let (name, _) = line
        .trim()
        .strip_suffix("us")?
        .trim_end()
        .rsplit_once([' ', '\t'])?;
    let name = name.trim();
    let is_name = name.contains(':') && !name.ends_with(':');
    is_name.then(|| name.to_owned())
}

/// Reads the time in a line: `27.49 us`.
fn time(line: &str) -> Option<Nanos> {
    line.match_indices(" us").find_map(|(place, _)| {
        let number = line[..place].rsplit([' ', '\t']).next()?;
        let (whole, decimals) = number.split_once('.')?;
        let is_two = decimals.len() == 2 && decimals.bytes().all(|one| one.is_ascii_digit());
        let hundredths: i64 = decimals.parse().ok().filter(|_| is_two)?;
        let whole: i64 = whole.parse().ok()?;
        Some(Nanos(
            whole.checked_mul(1_000)?.checked_add(hundredths * 10)?,
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `Documentation/tools/rtla/rtla-timerlat-top.rst` of Linux, cut.
    const NEW: &str = "\
  rtla timerlat hit stop tracing
  ## CPU 23 hit stop tracing, analyzing it ##
  IRQ handler delay:                                        27.49 us (65.52 %)
  IRQ latency:                                              28.13 us
  Timerlat IRQ duration:                                     9.59 us (22.85 %)
  Blocking thread:                                           3.79 us (9.03 %)
                         objtool:49256                       3.79 us
    Blocking thread stacktrace
                -> timerlat_irq
                -> asm_sysvec_apic_timer_interrupt
                -> _raw_spin_unlock_irqrestore
                -> cgroup_rstat_flush_locked
  ------------------------------------------------------------------------
    Thread latency:                                          41.96 us (100%)

  The system has exit from idle latency!
    Max timerlat IRQ latency from idle: 17.48 us in cpu 4
";

    #[test]
    fn each_part_of_an_analysis_is_read() {
        let [told] = &read(NEW)[..] else { panic!() };
        assert_eq!((told.cpu, told.from_idle), (Some(23), false));
        assert_eq!(
            (told.irq_delay, told.irq_duration),
            (Nanos(27_490), Nanos(9_590))
        );
        assert_eq!(told.blocking, [("objtool:49256".to_owned(), Nanos(3_790))]);
        assert_eq!(told.stack.last().unwrap(), "cgroup_rstat_flush_locked");
        assert_eq!(told.latency, Nanos(41_960));
        assert_eq!(read("Thread 4 ran 5 us\n"), []);
        // linux-trace-kernel: rtla/timerlat: Fix "Previous IRQ" auto analysis' line; and of 6.6,
        // copied from a terminal.
        let joined = " ## CPU 12 hit stop tracing, analyzing it ##\n  Previous IRQ interference:\t\tup \
            to      2.22 us  IRQ handler delay:\t\t    18.06 us (0.00 %)\n";
        let told = &read(joined)[0];
        assert_eq!(
            (told.previous_irq, told.irq_delay),
            (Nanos(2_220), Nanos(18_060))
        );
        let bare = "IRQ handler delay: 1.30 us (0.11 %)\nBlocking thread: 1223.16 us (99.00 %)\n\
            insync:4048   1223.16 us\nIRQ interference          4.93 us (0.40 %)\n\
            local_timer:236        4.93 us\nThread latency: 1235.47 us (100%)\n";
        let told = &read(bare)[0];
        assert_eq!(told.irqs, [("local_timer:236".to_owned(), Nanos(4_930))]);
        assert_eq!(
            told.blocking,
            [("insync:4048".to_owned(), Nanos(1_223_160))]
        );
    }
}
