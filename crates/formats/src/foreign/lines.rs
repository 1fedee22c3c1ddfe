// SPDX-License-Identifier: MIT OR Apache-2.0
//! cyclictest's lines of threads: by themselves, or beside a histogram or JSON.

use super::results::second;
use super::{Counted, Foreign, bins_for, checked, encoding, uneven, wrong};
use crate::FormatError;
use crate::cyclictest_lines::{ThreadLine, ValueLine};

/// Checks the threads' lines, and the values of `-v`, against the counts, and adds the facts that
/// only the lines state.
pub fn check(text: &str, counted: &mut [Counted]) -> Result<(), FormatError> {
    for line in thread_lines(text)? {
        let index = line.index;
        let Some(own) = counted.get_mut(index) else {
            let known = counted.len();
            let what = format!("a line T: of thread {index}, and {known} threads in its histogram");
            return Err(FormatError::contradiction(what));
        };
        check_line(own, &line)?;
        describe(own, &line);
    }
    let spikes = text.lines().filter_map(spike);
    for line in values(text).chain(spikes) {
        let own = counted.get(line.index);
        let most = own.and_then(|own| own.max);
        if let (Some(own), Some(max)) = (own, most) {
            if i128::from(line.value) > i128::from(max) {
                let what = format!(
                    "a value {} of -v or --spike, and its largest is {max}",
                    line.value
                );
                return Err(wrong(own, what));
            }
        }
    }
    Ok(())
}

/// Reads a value above `--spike`: `T: 0 Spike:      90: TS:  55189289376`.
fn spike(line: &str) -> Option<ValueLine> {
    let (index, rest) = line.trim_start().strip_prefix("T:")?.split_once("Spike:")?;
    let (value, _) = rest.split_once(':')?;
    Some(ValueLine {
        index: index.trim().parse().ok()?,
        cycle: 0,
        value: value.trim().parse().ok()?,
    })
}

/// Iterates over the values that `-v` has printed.
fn values(text: &str) -> impl Iterator<Item = ValueLine> {
    text.lines()
        .filter_map(|line| ValueLine::read(1, line).ok())
}

/// Adds the facts that only a thread's line states.
fn describe(counted: &mut Counted, line: &ThreadLine) {
    counted.interval_us = Some(line.interval_us).filter(|interval| *interval > 0);
    counted.priority = Some(line.priority.into());
    counted.tid = Some(line.tid);
}

/// Checks a thread's line, which was printed while the thread measured, or at its end.
fn check_line(counted: &Counted, line: &ThreadLine) -> Result<(), FormatError> {
    let found = |what: &str, of_line: u64, own: i64| {
        let what = format!("{what}{of_line} in its line T:, and {own} in its histogram");
        Err(wrong(counted, what))
    };
    if line.cycles > counted.count {
        let count = i64::try_from(counted.count).unwrap_or(i64::MAX);
        return found("C:", line.cycles, count);
    }
    if line.cycles == 0 {
        return Ok(());
    }
    let is_end = line.cycles == counted.count;
    let [min, max] = [line.min, line.max].map(i128::from);
    let is_odd_max = |own: &i64| max > i128::from(*own) || (is_end && max != i128::from(*own));
    if let Some(own) = counted.max.filter(is_odd_max) {
        return found("Max:", line.max, own);
    }
    let is_odd_min = |own: &i64| min < i128::from(*own) || (is_end && min != i128::from(*own));
    match counted.min.filter(is_odd_min) {
        Some(own) => found("Min:", line.min, own),
        None => Ok(()),
    }
}

/// Returns true if a later line may be of the same measurement: no count is lost, and
/// the increase is possible.
fn goes_on(before: &ThreadLine, line: &ThreadLine) -> bool {
    let is_same = (before.tid, before.priority, before.interval_us)
        == (line.tid, line.priority, line.interval_us);
    if before.cycles == 0 {
        // A thread that has not begun has no id yet.
        let is_begun = before.tid > 0 || before.priority != line.priority;
        return is_same || (!is_begun && before.interval_us == line.interval_us);
    }
    let is_more = before.cycles <= line.cycles && before.max <= line.max && before.min >= line.min;
    let is_still = before.cycles < line.cycles
        || (before.min, before.avg, before.max) == (line.min, line.avg, line.max);
    let [cycles, avg, min, max] = [line.cycles, line.avg, line.min, line.max].map(u128::from);
    let added = cycles.saturating_sub(before.cycles.into());
    let old = u128::from(before.cycles) * u128::from(before.avg);
    // A mean is cut off.
    let is_least = (avg + 1).saturating_mul(cycles) >= old.saturating_add(added * min);
    let is_most = avg.saturating_mul(cycles)
        <= (old + u128::from(before.cycles)).saturating_add(added.saturating_mul(max));
    is_same && is_more && is_still && is_least && is_most
}

/// Returns true if there is a thread's line of cyclictest; other programs' `T:` lines differ.
pub fn has_any(text: &str) -> bool {
    text.lines().any(|line| ThreadLine::read(1, line).is_ok())
}

/// Returns the last line of each thread. A screen shows them again and again, each time over the
/// last. If nothing says that they cover others, they belong to another result.
pub fn thread_lines(text: &str) -> Result<Vec<ThreadLine>, FormatError> {
    let mut last: Vec<(usize, ThreadLine)> = Vec::new();
    let mut screen = 0;
    for (number, text) in (1..).zip(text.lines()) {
        if text.starts_with(encoding::SCREEN) {
            screen = number;
        }
        if !text.trim_start().starts_with("T:") || spike(text).is_some() {
            continue;
        }
        let line = ThreadLine::read(number, text)?;
        let known = last.iter_mut().find(|(_, known)| known.index == line.index);
        match known {
            None => last.push((number, line)),
            Some((at, known)) if screen > *at && goes_on(known, &line) => {
                (*at, *known) = (number, line);
            }
            Some(_) => return Err(second(number, text)),
        }
    }
    let mut last: Vec<ThreadLine> = last.into_iter().map(|(_, line)| line).collect();
    last.sort_by_key(|line| line.index);
    Ok(last)
}

/// Reads threads for which only count, extremes and mean are known.
pub fn of_lines(text: &str, lines: &[ThreadLine]) -> Result<Foreign, FormatError> {
    let mut counted = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        if line.index != number {
            let expected = format!("the line of thread {number}");
            return Err(FormatError::new(1, expected, &format!("T: {}", line.index)));
        }
        let count = line.cycles;
        let signed = |value: u64| (count > 0).then(|| i64::try_from(value).unwrap_or(i64::MAX));
        let mean = line.avg as f64;
        let bins = bins_for(signed(line.max));
        let mut one = Counted {
            variant: format!("thread {number}"),
            over: count,
            over_from: line.min,
            count,
            min: signed(line.min),
            max: signed(line.max),
            mean: (count > 0).then_some((mean, mean + 1.0)),
            gap: Some(format!(
                "the file has no distribution: measure with -h {bins}"
            )),
            ..Counted::default()
        };
        describe(&mut one, line);
        if count > 0 && !(line.min..=line.max).contains(&line.act) {
            let (min, act, max) = (line.min, line.act, line.max);
            return Err(wrong(&one, format!("Min:{min}, Act:{act}, Max:{max}")));
        }
        counted.push(one);
    }
    if let Some(odd) = values(text).find(|value| value.index >= counted.len()) {
        let what = format!("values of thread {}, and no line T: of it", odd.index);
        return Err(FormatError::contradiction(what));
    }
    check(text, &mut counted)?;
    checked(Foreign {
        program: "cyclictest",
        cut_short: uneven(&counted),
        is_summary: true,
        counted,
        ..Foreign::default()
    })
}
