// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of Xenomai's `latency -h` (testsuite/latency/latency.c), and RTAI's port of it.

use crate::{FormatError, hours_minutes_seconds, thousandths};

/// The results in the output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// The mode, which names what was woken: `periodic user-mode task`.
    pub mode: String,
    /// The nominal time between two samples, in microseconds.
    pub period_us: u64,
    /// The duration of the measurement, in seconds.
    pub seconds: u64,
    /// The requested duration (`-T`), in seconds, if it is stated.
    pub asked_seconds: Option<u64>,
    /// Periods that were missed.
    pub overruns: u64,
    /// The number of times that the task left real time by mistake.
    pub switches: u64,
    /// The smallest latency, in nanoseconds; below zero if a timer was set too early.
    pub min_ns: i64,
    /// The mean, of the means of each second.
    pub mean_ns: i64,
    /// The largest.
    pub max_ns: i64,
    /// Counts of the absolute values of all latencies, by the numbers of their bins.
    pub bins: Vec<(u64, u64)>,
    /// The width of a bin, in nanoseconds: 1,000 unless a command line above says otherwise (`-B`).
    pub bin_ns: u64,
    /// The number of bins: 200 unless a command line above says otherwise (`-H`).
    pub size: u64,
}

/// The beginning of each line with the figures of a second.
const SECOND: &str = "RTD|";

/// Returns true if the text is such an output.
pub fn is_one(text: &str) -> bool {
    let mut lines = text.lines();
    lines.any(|line| line.starts_with(SECOND) || line.starts_with("HSD|"))
}

/// Reads the output; needs the histogram of all samples (`-h`) and the summary at the end. Values
/// that it states twice must agree.
pub fn read(text: &str) -> Result<Results, FormatError> {
    let mut results = Results {
        bin_ns: 1_000,
        size: 200,
        ..Results::default()
    };
    let end = |expected: &'static str| FormatError::new(text.lines().count(), expected, "the end");
    if !text.lines().any(|line| line.starts_with("HSD|")) {
        let expected = "a histogram of all samples: measure with latency -h (Xenomai) or latmus -g \
            FILE (EVL)";
        return Err(end(expected));
    }
    let (mut counted, mut is_summed) = (None, false);
    let mut seconds: Vec<(usize, i64, i64)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |expected: &'static str| FormatError::new(number, expected, line);
        let Some((kind, rest)) = line.split_once('|') else {
            command(&mut results, line);
            if line.contains("All results in ") && !line.contains("microseconds") {
                return Err(wrong("results in microseconds"));
            }
            continue;
        };
        // Who pastes it into a table has bars at the ends of lines.
        let rest = rest.trim_end_matches(|c: char| c == '|' || c.is_whitespace());
        let fields: Vec<&str> = rest.split('|').map(str::trim).collect();
        match (kind, &fields[..]) {
            ("RTT", _) => {
                let (mode, period) =
                    settings(rest).ok_or_else(|| wrong("(…, 100 us period, …)"))?;
                let is_other = (&results.mode, results.period_us) != (&mode, period);
                if results.period_us > 0 && is_other {
                    return Err(wrong("one mode and one period"));
                }
                (results.mode, results.period_us) = (mode, period);
            }
            ("RTD", [min, _, max, ..]) => {
                let both = thousandths(min).zip(thousandths(max));
                let (min, max) = both.ok_or_else(|| wrong("microseconds with three decimals"))?;
                seconds.push((number, min, max));
            }
            ("HSD", ["avg", range, count]) => {
                let bin = range
                    .split('-')
                    .next()
                    .and_then(|low| low.trim().parse().ok());
                let bin: Option<(u64, u64)> = bin.zip(count.parse().ok());
                let bin = bin.ok_or_else(|| wrong("a range and its count"))?;
                if results.bins.last().is_some_and(|last| last.0 >= bin.0) {
                    return Err(wrong("ranges in their order, each once"));
                }
                results.bins.push(bin);
            }
            ("HSS", ["avg", count, mean, ..]) => {
                if counted.is_some() {
                    return Err(wrong("one line HSS of all samples"));
                }
                let both = count.parse::<u64>().ok().zip(mean.parse::<f64>().ok());
                counted = Some(both.ok_or_else(|| wrong("a count and a mean"))?);
            }
            ("RTS", fields) => {
                summary(&mut results, fields)
                    .ok_or_else(|| wrong("microseconds with three decimals, and counts"))?;
                is_summed = true;
            }
            _ => {}
        }
    }
    if results.bins.is_empty() {
        return Err(end("a histogram of all samples: measure with latency -h"));
    }
    if !is_summed {
        return Err(end("a line RTS with the summary"));
    }
    check(&results, counted, &seconds)?;
    Ok(results)
}

/// Reads the options for bins in a command line: `latency -h -B 10000 -H 500`.
fn command(results: &mut Results, line: &str) {
    let mut words = line.split_whitespace();
    if !words.any(|word| word.rsplit('/').next() == Some("latency")) {
        return;
    }
    while let Some(word) = words.next() {
        for (letter, own) in [("-B", &mut results.bin_ns), ("-H", &mut results.size)] {
            let Some(rest) = word.strip_prefix(letter) else {
                continue;
            };
            let value = if rest.is_empty() {
                words.next()
            } else {
                Some(rest)
            };
            let value = value.and_then(|value| value.parse().ok());
            *own = value.filter(|value| *value > 0).unwrap_or(*own);
        }
    }
}

/// Checks values that are stated twice against each other.
fn check(
    results: &Results,
    counted: Option<(u64, f64)>,
    seconds: &[(usize, i64, i64)],
) -> Result<(), FormatError> {
    let differ = |what: String| Err(FormatError::contradiction(what));
    let bins = results.bins.iter();
    let all = bins.clone().map(|(_, count)| *count);
    let all = all.fold(0, u64::saturating_add);
    let Some((count, mean)) = counted.filter(|(count, _)| *count == all) else {
        let told = counted.map_or_else(|| "none".to_owned(), |(count, _)| count.to_string());
        return differ(format!(
            "expected a line HSS with as many samples as all bins have, {all}, found {told}"
        ));
    };
    let sum: f64 = bins.map(|(bin, count)| *bin as f64 * *count as f64).sum();
    let own = sum / count.max(1) as f64;
    // Three decimals, rounded or cut off.
    if (own - mean).abs() > 0.0011 + own * 1e-6 {
        return differ(format!(
            "expected a mean of {own:.3} bins in HSS, found {mean:.3}"
        ));
    }
    let (least, most) = (results.min_ns, results.max_ns);
    let odd = seconds
        .iter()
        .find(|(_, min, max)| *min < least || *max > most);
    match odd {
        Some((number, min, max)) => {
            let expected = format!("a second within {least} to {most} ns, as RTS says");
            Err(FormatError::new(
                *number,
                expected,
                &format!("{min} to {max}"),
            ))
        }
        None => Ok(()),
    }
}

/// Reads `  00:00:01  (periodic user-mode task, 100 us period, priority 99)`.
fn settings(head: &str) -> Option<(String, u64)> {
    let inside = head.split_once('(')?.1;
    let (mode, rest) = inside.split_once(',')?;
    let period = rest.split_once(" us period")?.0;
    Some((mode.to_owned(), period.trim().parse().ok()?))
}

/// Reads `1.175|      2.955|    374.075|      40|     0|    00:01:00/00:01:00`.
fn summary(results: &mut Results, fields: &[&str]) -> Option<()> {
    let [min, avg, max, overruns, switches, duration] = fields else {
        return None;
    };
    results.mean_ns = thousandths(avg)?;
    results.min_ns = thousandths(min)?;
    results.max_ns = thousandths(max)?;
    results.overruns = overruns.parse().ok()?;
    results.switches = switches.parse().ok()?;
    let (seconds, asked) = duration.split_once('/').unwrap_or((duration, ""));
    results.seconds = hours_minutes_seconds(seconds)?;
    // Without an end there is none.
    let asked = hours_minutes_seconds(asked).filter(|asked| *asked > 0);
    results.asked_seconds = asked.or(results.asked_seconds);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the source of Xenomai 3: `latency -h -T 2`.
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
    fn a_command_line_tells_how_wide_bins_are() {
        let with = |line: &str| read(&(line.to_owned() + "\n" + PRINTED)).unwrap();
        let of = |line: &str| (with(line).bin_ns, with(line).size);
        assert_eq!(
            of("root@board:~# latency -h -B 10000 -H 500"),
            (10_000, 500)
        );
        assert_eq!(
            of("# /usr/xenomai/bin/latency -h -B5000 -T 2"),
            (5_000, 200)
        );
        assert_eq!(of("a latency of -5 us"), (1_000, 200));
    }

    #[test]
    fn what_is_said_twice_must_agree() {
        let error = |from: &str, to: &str| {
            assert!(PRINTED.contains(from), "{from}");
            read(&PRINTED.replacen(from, to, 1))
                .unwrap_err()
                .to_string()
        };
        let told = error("      1.102|", "      2.102|");
        assert!(
            told.contains("a mean of 1.102 bins") || told.contains("1.103"),
            "{told}"
        );
        let told = error(
            "RTD|     -0.343|      2.866|     52.299",
            "RTD|     -0.343|      2.866|     52.300",
        );
        assert!(told.contains("line 8") && told.contains("52299"), "{told}");
        let bars = PRINTED.replace('\n', "||\n");
        assert_eq!(read(&bars).unwrap(), read(PRINTED).unwrap());
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
