// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Xenomai's `latency -h` prints (testsuite/latency/latency.c), and RTAI's port of it.

use crate::{FormatError, hours_minutes_seconds, thousandths};

/// What it printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// Who was woken: `periodic user-mode task`.
    pub mode: String,
    /// The nominal time between two samples, in microseconds.
    pub period_us: u64,
    /// For how long was measured, in seconds.
    pub seconds: u64,
    /// Periods that were missed.
    pub overruns: u64,
    /// How often the task left real time by mistake.
    pub switches: u64,
    /// The smallest latency, in nanoseconds; below zero where a timer was set too early.
    pub min_ns: i64,
    /// The largest.
    pub max_ns: i64,
    /// Counts of the absolute values of all latencies, by their whole microseconds.
    pub bins: Vec<(u64, u64)>,
}

/// How each line with the figures of a second begins.
const SECOND: &str = "RTD|";

/// Whether this is what it prints.
pub fn is_one(text: &str) -> bool {
    let mut lines = text.lines();
    lines.any(|line| line.starts_with(SECOND) || line.starts_with("HSD|"))
}

/// Reads it; needs the histogram of all samples (`-h`), in bins of 1 µs (without `-B`), and the
/// summary at the end.
pub fn read(text: &str) -> Result<Results, FormatError> {
    let mut results = Results::default();
    let (mut counted, mut is_summed) = (None, false);
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |expected: &'static str| FormatError::new(number, expected, line);
        let Some((kind, rest)) = line.split_once('|') else {
            continue;
        };
        let fields: Vec<&str> = rest.split('|').map(str::trim).collect();
        match (kind, &fields[..]) {
            ("RTT", _) => {
                (results.mode, results.period_us) =
                    settings(rest).ok_or_else(|| wrong("(…, 100 us period, …)"))?;
            }
            ("HSD", ["avg", range, count]) => {
                let bin = range
                    .split('-')
                    .next()
                    .and_then(|low| low.trim().parse().ok());
                let bin = bin.zip(count.parse().ok());
                results
                    .bins
                    .push(bin.ok_or_else(|| wrong("a range and its count"))?);
            }
            ("HSS", ["avg", count, ..]) => {
                counted = Some(count.parse::<u64>().map_err(|_| wrong("a count"))?);
            }
            ("RTS", fields) => {
                summary(&mut results, fields)
                    .ok_or_else(|| wrong("microseconds with three decimals, and counts"))?;
                is_summed = true;
            }
            _ => {}
        }
    }
    let end = |expected: &'static str| FormatError::new(text.lines().count(), expected, "the end");
    if results.bins.is_empty() {
        return Err(end("a histogram of all samples: measure with latency -h"));
    }
    if !is_summed {
        return Err(end("a line RTS with the summary"));
    }
    let bins = results.bins.iter().map(|(_, count)| *count);
    if counted != Some(bins.fold(0, u64::saturating_add)) {
        return Err(end("a line HSS with as many samples as all bins have"));
    }
    Ok(results)
}

/// `  00:00:01  (periodic user-mode task, 100 us period, priority 99)`.
fn settings(head: &str) -> Option<(String, u64)> {
    let inside = head.split_once('(')?.1;
    let (mode, rest) = inside.split_once(',')?;
    let period = rest.split_once(" us period")?.0;
    Some((mode.to_owned(), period.trim().parse().ok()?))
}

/// `1.175|      2.955|    374.075|      40|     0|    00:01:00/00:01:00`.
fn summary(results: &mut Results, fields: &[&str]) -> Option<()> {
    let [min, avg, max, overruns, switches, duration] = fields else {
        return None;
    };
    thousandths(avg)?;
    results.min_ns = thousandths(min)?;
    results.max_ns = thousandths(max)?;
    results.overruns = overruns.parse().ok()?;
    results.switches = switches.parse().ok()?;
    results.seconds = hours_minutes_seconds(duration.split('/').next()?)?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the source of Xenomai 3: `latency -h -T 2`.
    const PRINTED: &str = "\
== Sampling period: 100 us
== Test mode: periodic user-mode task
== All results in microseconds
warming up...
RTT|  00:00:01  (periodic user-mode task, 100 us period, priority 99)
RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst
RTD|      1.269|      2.865|      9.891|       0|     0|      1.269|      9.891
RTD|     -0.343|      2.866|     52.299|       3|     0|     -0.343|     52.299
---|--param|----range-|--samples
HSD|    min|   0 -  1 |        1
HSD|    min|   1 -  2 |        1
---|--param|----range-|--samples
HSD|    avg|   0 -  1 |     9000
HSD|    avg|   2 -  3 |    10999
HSD|    avg|  52 - 53 |        1
---|--param|----range-|--samples
HSD|    max|   9 - 10 |        1
HSD|    max|  52 - 53 |        1
HSH|--param|--samples-|--average--|---stddev--
HSS|    min|         2|      0.500|      0.707
HSS|    avg|     20000|      1.102|      1.054
HSS|    max|         2|     30.500|     30.406
---|-----------|-----------|-----------|--------|------|-------------------------
RTS|     -0.343|      2.865|     52.299|       3|     0|    00:00:02/00:00:02
";

    #[test]
    fn the_histogram_of_all_samples_is_read() {
        let results = read(PRINTED).unwrap();
        assert_eq!(results.bins, [(0, 9_000), (2, 10_999), (52, 1)]);
        assert_eq!((results.min_ns, results.max_ns), (-343, 52_299));
        assert_eq!((results.period_us, results.seconds), (100, 2));
        assert_eq!((results.overruns, results.switches), (3, 0));
        assert_eq!(results.mode, "periodic user-mode task");
        assert!(is_one(PRINTED) && !is_one("T: 0 ( 1234) P:80\n"));
    }

    #[test]
    fn damage_is_told_with_its_line() {
        let error = |from: &str, to: &str| read(&PRINTED.replacen(from, to, 1)).unwrap_err();
        let line = |from: &str, to: &str| error(from, to).line;
        assert_eq!(line("   0 -  1 |     9000", "   x -  1 |     9000"), 13);
        assert_eq!(line("     9000", "     9x00"), 13);
        assert_eq!(line("100 us period", "often"), 5);
        assert_eq!(line("RTS|     -0.343", "RTS|       -343"), 24);
        assert_eq!(line("     20000", "     2000x"), 21);
        let short = error("|    10999", "|    10998").to_string();
        assert!(short.contains("as many samples"), "{short}");
        let plain: String = PRINTED
            .lines()
            .filter(|line| !line.starts_with("HS"))
            .map(|line| line.to_owned() + "\n")
            .collect();
        let error = read(&plain).unwrap_err().to_string();
        assert!(error.contains("latency -h"), "{error}");
        let error = read(PRINTED.split("RTS").next().unwrap()).unwrap_err();
        assert!(error.to_string().contains("RTS"), "{error}");
    }
}
