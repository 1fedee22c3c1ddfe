// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of `rtla timerlat hist`, checked against its command line, summary and analysis.

use std::collections::BTreeMap;

use super::whole::{short_of_time, uneven};
use super::{Counted, Foreign, checked};
use crate::rtla_timerlat::{self, Asked, Column, Results};
use crate::{FormatError, rtla_analysis};

/// The default period of rtla, in microseconds.
const PERIOD_US: u64 = 1_000;

/// Reads the content of a text.
pub fn of_text(text: &str) -> Result<Foreign, FormatError> {
    let results = rtla_timerlat::read(text)?;
    check_all(&results)?;
    check_analysis(text, &results)?;
    let (width, is_told) = bucket_size(&results)?;
    let mut counted = Vec::new();
    for column in &results.columns {
        let one = of_column(column, width, is_told, results.nanoseconds);
        if counted
            .iter()
            .any(|own: &Counted| own.variant == one.variant)
        {
            let expected = "each column once";
            return Err(FormatError::new(1, expected, &one.variant));
        }
        counted.push(one);
    }
    if !results.columns.iter().any(|column| column.stage == "Thr") {
        let expected = "columns Thr (these are of interrupts alone: measure without --no-thread)";
        let found = counted.first().map_or("none", |one| &one.variant);
        return Err(FormatError::new(1, expected, found));
    }
    let asked = results.asked.clone().unwrap_or_default();
    check_cpus(&results)?;
    let period_us = period(&results, &counted)?;
    let cut_short = cut_short(text, &results)
        .or_else(|| few(&results, &counted, period_us))
        .or_else(|| uneven(&counted));
    checked(Foreign {
        program: "rtla timerlat",
        seconds: results.seconds,
        unit_ns: Some(if results.nanoseconds { 1 } else { 1000 }),
        period_us,
        priority: asked.priority,
        asked: asked.settings,
        cut_short,
        counted,
        ..Foreign::default()
    })
}

fn of_column(column: &Column, width: u64, is_told: bool, nanoseconds: bool) -> Counted {
    let unit = if nanoseconds { "ns" } else { "µs" };
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let filled = column.bins.iter().copied().filter(|(_, count)| *count > 0);
    let bins: BTreeMap<u64, u64> = filled.collect();
    let last = bins.keys().next_back();
    let known = |value: Option<u64>| value.filter(|_| column.count > 0).map(signed);
    let mut one = Counted {
        variant: match column.stage.as_str() {
            "Thr" => format!("cpu{}", column.cpu),
            stage => format!("cpu{} {}", column.cpu, stage.to_lowercase()),
        },
        over_from: last.map_or(column.min.unwrap_or(0), |last| last.saturating_add(1)),
        bins,
        width,
        over: column.over,
        count: column.count,
        min: known(column.min),
        max: known(column.max),
        mean: column.mean.filter(|_| column.count > 0),
        ..Counted::default()
    };
    let are = if is_told { "are" } else { "may be" };
    let wide = format!("its bins {are} {width} {unit} wide: measure with -b 1");
    let over = format!(
        "{} samples are above the last bin: measure with -E",
        one.over
    );
    one.gap = match (one.over, width) {
        (0, 0 | 1) => None,
        (0, _) => Some(wide),
        _ => Some(over),
    };
    one
}

/// Returns the nominal time between two samples, in microseconds, from the command line. Without
/// one, it is rtla's own if count and duration confirm that to a hundredth.
///
/// # Errors
/// Fails if there are more samples than fit into the duration.
fn period(results: &Results, counted: &[Counted]) -> Result<Option<u64>, FormatError> {
    let most = counted.iter().map(|one| one.count).max().unwrap_or(0);
    let asked = results.asked.as_ref().map(|asked| asked.period_us);
    if let Some(period) = asked {
        let period = period.filter(|period| *period > 0);
        let taken = period.map_or(0, |period| period.saturating_mul(most));
        let room = |seconds: &u64| seconds.saturating_add(2).saturating_mul(1_000_000);
        if let Some(seconds) = results.seconds.filter(|seconds| taken > room(seconds)) {
            let what = format!(
                "{most} samples each {} us, as its command line says, and a duration of {seconds} s",
                period.unwrap_or(0),
            );
            return Err(FormatError::contradiction(what));
        }
        return Ok(period);
    }
    let seconds = u128::from(results.seconds.unwrap_or(0)) * 1_000_000;
    let taken = u128::from(most) * u128::from(PERIOD_US);
    let is_borne_out = most > 0 && taken.abs_diff(seconds) * 100 <= seconds;
    Ok(is_borne_out.then_some(PERIOD_US))
}

/// Explains why it is not a whole measurement.
fn cut_short(text: &str, results: &Results) -> Option<String> {
    let mut below = text
        .lines()
        .skip_while(|line| line.trim_end() != rtla_timerlat::TITLE);
    if below.any(|line| line.contains("hit stop tracing")) {
        return Some("rtla timerlat hit stop tracing".to_owned());
    }
    let asked = results.asked.as_ref()?;
    let is_short = |found: u64, asked: u64| u128::from(found) * 10 < u128::from(asked) * 9;
    let times = asked.seconds.zip(results.seconds);
    if let Some((asked, found)) = times.filter(|(asked, found)| is_short(*found, *asked)) {
        return Some(format!(
            "a duration of {found} s, and -d {asked} s in its command line"
        ));
    }
    stopped(results, asked).or_else(|| absent(results, asked))
}

/// Describes a sample at which rtla stops (`-T`, `-i`, `-a`).
fn stopped(results: &Results, asked: &Asked) -> Option<String> {
    let unit = if results.nanoseconds { 1_000 } else { 1 };
    results.columns.iter().find_map(|column| {
        let (option, most) = match column.stage.as_str() {
            "IRQ" => ("-i or -a", asked.stop_irq_us?),
            _ => ("-T or -a", asked.stop_us?),
        };
        let max = column.max.filter(|_| column.count > 0)?;
        (max / unit >= most).then(|| {
            let (stage, cpu) = (&column.stage, column.cpu);
            format!("a sample of {max} in {stage}-{cpu:03} ends it, by {option} {most} in its command line")
        })
    })
}

/// Names a requested CPU that has no column: rtla omits CPUs without a sample.
fn absent(results: &Results, asked: &Asked) -> Option<String> {
    let is_there = |cpu: &u32| results.columns.iter().any(|column| column.cpu == *cpu);
    let absent = asked.cpus.as_ref()?.iter().find(|cpu| !is_there(cpu))?;
    Some(format!(
        "no column of CPU {absent}, which -c in its command line asks for"
    ))
}

/// # Errors
/// Fails if there is a column of a CPU that was not requested.
fn check_cpus(results: &Results) -> Result<(), FormatError> {
    let Some(cpus) = results.asked.as_ref().and_then(|asked| asked.cpus.as_ref()) else {
        return Ok(());
    };
    let mut columns = results.columns.iter();
    let Some(other) = columns.find(|column| !cpus.contains(&column.cpu)) else {
        return Ok(());
    };
    let what = format!(
        "a column {}-{:03}, and -c in its command line asks for other CPUs",
        other.stage, other.cpu
    );
    Err(FormatError::contradiction(what))
}

/// Describes a column with fewer samples than the time has periods: the time that was requested,
/// or measured. A stage without samples on any CPU was not measured.
fn few(results: &Results, counted: &[Counted], period_us: Option<u64>) -> Option<String> {
    let asked = results.asked.as_ref().and_then(|asked| asked.seconds);
    // Of the time that it tells a second may have begun only.
    let seconds = results
        .seconds
        .max(asked.map(|asked| asked.saturating_add(1)))?;
    results
        .columns
        .iter()
        .zip(counted)
        .find_map(|(column, one)| {
            let mut alike = results.columns.iter();
            let is_measured = alike.any(|other| other.stage == column.stage && other.count > 0);
            let late = column.max.map_or(0, |max| u128::from(max) + 1);
            let unit_ns = if results.nanoseconds { 1 } else { 1_000 };
            let late = late * unit_ns / (u128::from(period_us?) * 1_000).max(1);
            let periods = u128::from(column.count).saturating_add(late);
            let few = short_of_time(one, periods, period_us?, seconds);
            few.filter(|_| is_measured)
        })
}

/// Returns the number of values in a bin, and whether it is stated. It is not in the output: the
/// greatest common divisor of all bins' numbers is the most that it can be.
fn bucket_size(results: &Results) -> Result<(u64, bool), FormatError> {
    let bins = results.columns.iter().flat_map(|column| &column.bins);
    let widest = bins.map(|(bin, _)| *bin).fold(0, greatest_common_divisor);
    if let Some(size) = results.asked.as_ref().and_then(|asked| asked.bucket) {
        if widest % size != 0 {
            let expected = format!("bins of {size}, as the command line above says");
            return Err(FormatError::new(1, expected, &format!("one of {widest}")));
        }
        return Ok((size, true));
    }
    // All are in the first bin: it has the largest, and more is not known.
    let largest = results.columns.iter().filter_map(|column| column.max).max();
    let widest = match widest {
        0 => largest.map_or(1, |largest| largest.saturating_add(1)),
        widest => widest,
    };
    Ok((widest, false))
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    match other {
        0 => one,
        _ => greatest_common_divisor(other, one % other),
    }
}

/// Checks the columns against the summary of all CPUs.
fn check_all(results: &Results) -> Result<(), FormatError> {
    for all in &results.all {
        let own = || {
            let own = results.columns.iter();
            own.filter(|column| column.stage == all.stage && column.count > 0)
        };
        let count = own().map(|column| column.count);
        let count = count.fold(0, u64::saturating_add);
        let min = own().filter_map(|one| one.min).min();
        let max = own().filter_map(|one| one.max).max();
        // Where nothing was measured, a smallest and a largest say nothing.
        let known = |value: Option<u64>| value.filter(|_| all.count != Some(0) && count > 0);
        let numbers = [
            ("count:", all.count, Some(count)),
            ("min:", known(all.min), min),
            ("max:", known(all.max), max),
        ];
        let odd = numbers.iter().find_map(|(name, found, expected)| {
            let found = found.filter(|found| Some(*found) != *expected)?;
            Some((name, found, expected.unwrap_or(0)))
        });
        if let Some((name, found, expected)) = odd {
            let stage = &all.stage;
            let expected = format!("{name} {expected} of {stage} below ALL:, as its columns have");
            return Err(FormatError::new(1, expected, &found.to_string()));
        }
    }
    Ok(())
}

/// Checks the columns against the analysis of the sample at which rtla stopped, which is counted,
/// too.
fn check_analysis(text: &str, results: &Results) -> Result<(), FormatError> {
    let title = text.find(rtla_timerlat::TITLE).unwrap_or(0);
    let unit = if results.nanoseconds { 1 } else { 1_000 };
    let check = |cpu: Option<u32>, ns: i64| {
        let own = results.columns.iter();
        let own = own.filter(|column| cpu.is_none_or(|cpu| column.cpu == cpu));
        let max = own.filter(|one| one.count > 0).filter_map(|one| one.max);
        let max = max.max();
        let room = max.map_or(0, |max| (u128::from(max) + 1) * unit);
        if u128::try_from(ns).unwrap_or(0) <= room {
            return Ok(());
        }
        let (us, max) = (ns as f64 / 1e3, max.unwrap_or(0));
        let of = cpu.map_or(String::new(), |cpu| format!(" of CPU {cpu}"));
        let what = format!("a latency of {us:.2} us{of} in its analysis, and columns up to {max}");
        Err(FormatError::contradiction(what))
    };
    for one in rtla_analysis::read(&text[title..]) {
        check(one.cpu, one.latency.0.max(one.irq_delay.0))?;
    }
    // `Max timerlat IRQ latency from idle: 49.11 us in cpu 2`.
    for line in text[title..].lines() {
        let Some((_, rest)) = line.split_once("Max timerlat IRQ latency from idle:") else {
            continue;
        };
        let mut words = rest.split_whitespace();
        let us: Option<f64> = words.next().and_then(|word| word.parse().ok());
        let cpu = words.next_back().and_then(|word| word.parse().ok());
        check(cpu, us.map_or(0, |us| (us * 1e3) as i64))?;
    }
    Ok(())
}
