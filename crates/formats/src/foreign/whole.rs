// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a result has all samples that were requested: each thread is compared with the time.

use super::Counted;
use crate::cyclictest_command::Command;
use crate::cyclictest_histogram;

/// Explains why it is not a whole measurement by cyclictest's command line. All threads end with
/// the first that reaches its number (`-l`), or with the time (`-D`).
pub fn cut_short(counted: &[Counted], command: &Command) -> Option<String> {
    let above = |one: &Counted| {
        let (max, most) = (u64::try_from(one.max?).ok()?, command.break_above?);
        (max > most).then(|| format!("a sample of {max} ends it, by -b {most} in its command line"))
    };
    if let Some(broken) = counted.iter().find_map(above) {
        return Some(broken);
    }
    let most = counted.iter().map(|one| one.count).max()?;
    let numbered = || (0_u64..).zip(counted);
    let interval = |number: u64, one: &Counted| {
        let asked = u128::from(command.distance_us) * u128::from(number);
        let asked = asked.saturating_add(command.interval_us.into());
        one.interval_us.map_or(asked, u128::from)
    };
    let unit_ns = if command.nanoseconds { 1 } else { 1_000 };
    let time = |number: u64, one: &Counted| {
        let interval = interval(number, one);
        periods(one, interval, unit_ns).saturating_mul(interval)
    };
    // The time by the thread that has its number.
    let counted_us = command.loops.and_then(|loops| {
        let all = numbered().filter(|(_, one)| one.count >= loops);
        let times =
            all.map(|(number, one)| u128::from(loops).saturating_mul(interval(number, one)));
        times.min()
    });
    let timed_us = command.seconds.map(|own| u128::from(own) * 1_000_000);
    let longest_us = numbered().map(|(number, one)| time(number, one)).max()?;
    let is_short = |time: u128, asked: u128| time.saturating_mul(10) < asked.saturating_mul(9);
    let is_timed = timed_us.is_some_and(|asked| !is_short(longest_us, asked));
    if let Some(loops) = command.loops.filter(|_| counted_us.is_none() && !is_timed) {
        return Some(format!("{most} cycles, and -l {loops} in its command line"));
    }
    if let Some(asked) = counted_us.or(timed_us) {
        let few = numbered().find(|(number, one)| is_short(time(*number, one), asked));
        let (number, one) = few?;
        let (count, interval) = (one.count, interval(number, one));
        return Some(match command.seconds.filter(|_| counted_us.is_none()) {
            Some(seconds) => format!(
                "{}: {count} cycles each {interval} us, and -D {seconds} s in its command line",
                one.variant
            ),
            None => few_of(one, most),
        });
    }
    let few = numbered().find(|(number, one)| time(*number, one).saturating_mul(2) < longest_us);
    few.map(|(_, one)| few_of(one, most))
}

/// Returns the most periods that a thread can have taken: its samples, and the periods by which
/// each of them may have been late. cyclictest skips these and does not count them.
fn periods(one: &Counted, interval_us: u128, unit_ns: u128) -> u128 {
    let count = u128::from(one.count);
    let interval = interval_us.saturating_mul(1_000).max(1);
    let late = |value: u64| u128::from(value).saturating_mul(unit_ns) / interval;
    let widest = one.width.max(1) - 1;
    let binned = one
        .bins
        .iter()
        .map(|(bin, count)| late(bin.saturating_add(widest)).saturating_mul(u128::from(*count)));
    let max = one.max.map_or(0, i64::unsigned_abs);
    let over = late(max).saturating_mul(u128::from(one.over));
    let of_bins = binned.fold(over, u128::saturating_add);
    // No more than all samples together, by their mean.
    let sum_ns = one
        .mean
        .map(|(_, mean)| mean.max(0.0) * one.count as f64 * unit_ns as f64);
    let of_mean = sum_ns.map_or(of_bins, |sum| (sum / interval as f64) as u128);
    count.saturating_add(of_bins.min(of_mean))
}

/// Describes a thread with fewer samples than the measured time has periods, if both are known;
/// the last second of the time may only just have begun.
pub fn short_of_time(one: &Counted, periods: u128, period_us: u64, seconds: u64) -> Option<String> {
    let asked = u128::from(seconds.saturating_sub(1)) * 1_000_000;
    let taken = periods.saturating_mul(period_us.into());
    let is_short = period_us > 0 && taken.saturating_mul(10) < asked.saturating_mul(9);
    is_short.then(|| {
        format!(
            "{}: {} samples each {period_us} us in {seconds} s",
            one.variant, one.count
        )
    })
}

/// Returns the last line of a file if it has no newline and ends with a number that may be cut.
pub fn unended<'a>(bytes: &[u8], text: &'a str) -> Option<&'a str> {
    // UTF-16 has a zero beside each character.
    let last = bytes.iter().rev().find(|byte| **byte > 0);
    let line = text.lines().next_back()?.trim_end();
    let is_cycle = line.starts_with("# Thread ");
    // A number in a column as wide as cyclictest has it, with a blank before it, is whole.
    let is_padded = line.starts_with("T:")
        && line.rsplit_once("Max:").is_some_and(|(_, max)| {
            max.len() >= MAX_WIDTH && max.starts_with(' ') && max.trim().len() < MAX_WIDTH
        });
    // Nor has a number of more digits a zero before it, where five are printed.
    let last_word = line.rsplit(' ').next().unwrap_or_default();
    let is_zeroed = cyclictest_histogram::is_foot(line)
        && !line.starts_with("# Total")
        && last_word.len() >= 5
        && last_word.starts_with('0');
    let is_open = !matches!(last, Some(b'\n' | b'\r'));
    let is_number = line.ends_with(|c: char| c.is_ascii_digit());
    let is_whole = is_cycle || is_padded || is_zeroed;
    (is_open && is_number && !is_whole).then_some(line)
}

/// The width of `Max:%8ld`, as cyclictest prints it.
const MAX_WIDTH: usize = 8;

/// Describes a thread with far fewer samples than another, as one that has died.
pub fn few_of(one: &Counted, most: u64) -> String {
    format!(
        "{} has {} samples where another has {most}",
        one.variant, one.count
    )
}

/// Describes one of several threads, with equal measuring times, that has less than half of it.
pub fn uneven(counted: &[Counted]) -> Option<String> {
    let stage = |one: &Counted| {
        one.variant
            .split_once(' ')
            .map(|(_, stage)| stage.to_owned())
    };
    // A thread's own number is no stage.
    let stage = |one: &Counted| stage(one).filter(|stage| stage.parse::<u64>().is_err());
    let time = |one: &Counted| u128::from(one.count) * u128::from(one.interval_us.unwrap_or(1));
    counted.iter().find_map(|one| {
        let alike = counted.iter().filter(|other| {
            stage(other) == stage(one) && other.interval_us.is_some() == one.interval_us.is_some()
        });
        let longest = alike.max_by_key(|other| time(other))?;
        (time(one).saturating_mul(2) < time(longest)).then(|| few_of(one, longest.count))
    })
}
