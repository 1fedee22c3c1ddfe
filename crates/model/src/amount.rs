// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of a recording against its step: the number of samples, the time, and the periods that
//! its samples must have missed.

use crate::recording::Recording;
use crate::units::Nanos;

/// Probes whose recordings all have as many samples as requested, each with its number of samples
/// if a step does not say; 0 for a probe whose steps must say.
pub const COUNTED: [(&str, i64); 9] = [
    ("timer", 10_000),
    ("realfeel", 10_000),
    ("signal", 10_000),
    ("irq", 10_000),
    ("clock", 10_000),
    ("eventfd", 1_000),
    ("wake", 200),
    ("hackbench", 1),
    ("program", 0),
];

/// Probes that watch for events and report for how long, each with its time in milliseconds if a
/// step does not say.
pub const TIMED: [(&str, i64); 2] = [("tick", 2_000), ("noise", 2_000)];

/// Probes of which a sample misses as many whole periods as it is late.
const PERIODIC: [&str; 2] = ["timer", "signal"];

/// The name of the part of a program's cycle that is compared with its period.
const RESPONSE: &str = "response";

/// Returns the value of a step's parameter or, if the step does not set it, the probe's default.
fn asked(params: &toml::Table, name: &str, defaults: &[(&str, i64)], probe: &str) -> Option<i64> {
    let own = defaults.iter().find(|(other, _)| *other == probe);
    let (_, default) = own?;
    match params.get(name) {
        Some(value) => value.as_integer(),
        None => Some(*default),
    }
}

/// Describes how a recording deviates from its step's request: less of it, more time, or fewer
/// missed periods than its samples imply.
pub fn against_step(params: &toml::Table, recording: &Recording) -> Option<String> {
    let more = |what| format!("it claims more time than its plan asks for: {what}");
    let missed = |what| format!("it claims fewer missed periods than its samples show: {what}");
    let less = |what| format!("it has less than its plan asks for: {what}");
    excess(params, recording)
        .map(more)
        .or_else(|| uncounted(params, recording).map(missed))
        .or_else(|| shortfall(params, recording).map(less))
}

/// Returns how long a step is to watch; `None` if its samples are counted.
fn duration(params: &toml::Table, recording: &Recording) -> Option<Nanos> {
    let said = params.get("duration_ms").and_then(toml::Value::as_integer);
    let probe = &*recording.key.probe;
    let millis = said.or_else(|| asked(params, "duration_ms", &TIMED, probe))?;
    Some(Nanos::from_millis(millis))
}

/// Describes how a recording falls short of its step's request: `40 samples of 100`. `None` if it
/// is marked as interrupted.
fn shortfall(params: &toml::Table, recording: &Recording) -> Option<String> {
    if recording.interrupted {
        return None;
    }
    let Some(duration) = duration(params, recording) else {
        let samples = asked(params, "samples", &COUNTED, &recording.key.probe)?;
        let count = recording.count;
        let is_short = i128::from(count) < i128::from(samples);
        return is_short.then(|| format!("{count} samples of {samples}"));
    };
    let observed = recording.observed()?;
    // A hundredth is left for threads that begin late.
    let is_short = observed.0 < duration.0 / 100 * 99;
    is_short.then(|| format!("{observed} of {duration}"))
}

/// Describes a recording's claim of a longer observation than its step asks for, which no probe
/// makes: `2000 s of 2 s`. Half as much again and a second are left for a late end. A probe that
/// counts samples does not watch for a time of its own.
fn excess(params: &toml::Table, recording: &Recording) -> Option<String> {
    let observed = recording.observed()?;
    let Some(duration) = duration(params, recording) else {
        return Some(format!("{observed} where samples are counted"));
    };
    let most = Nanos(duration.0.saturating_mul(3) / 2) + Nanos::from_millis(1_000);
    (observed > most).then(|| format!("{observed} of {duration}"))
}

/// Counts the periods, besides a cycle's own, that began before a program's cycle had ended: each
/// once, even if the next cycles catch up. A cycle is the time when it was due, and its response.
pub fn periods_missed(cycles: impl Iterator<Item = (Nanos, Nanos)>, period: Nanos) -> u64 {
    let mut until = i64::MIN;
    let missed = cycles.map(|(due, response)| {
        let all = (response.0 - 1).max(0) / period.0;
        // A program's own clock may begin a period somewhat later.
        let counted = until.saturating_add(period.0 / 2).saturating_sub(due.0);
        let known = (counted.max(0) / period.0).min(all);
        until = until.max(due.0.saturating_add(all.saturating_mul(period.0)));
        (all - known).unsigned_abs()
    });
    missed.sum()
}

/// Describes a recording's claim of fewer missed periods than its worst samples are late:
/// `0 of at least 3`.
fn uncounted(params: &toml::Table, recording: &Recording) -> Option<String> {
    let is_response = recording.key.variant.rsplit(' ').next() == Some(RESPONSE);
    let period = match &*recording.key.probe {
        probe if PERIODIC.contains(&probe) => recording.interval,
        "app" if is_response => {
            let period = params.get("period_us").and_then(toml::Value::as_integer);
            period.map(Nanos::from_micros)
        }
        _ => None,
    };
    let period = period.filter(|period| *period > Nanos::ZERO)?;
    // What comes at a period's very end has missed the next one, or not.
    let late_by = |value: Nanos| u64::try_from((value.0 - 1) / period.0).unwrap_or(0);
    let known = recording.worst.iter().map(|one| one.value);
    let least: u64 = match (is_response, recording.is_complete()) {
        (true, true) => {
            let cycles = recording.samples.iter().map(|one| (one.at, one.value));
            periods_missed(cycles, period)
        }
        (true, false) => known.map(late_by).max().unwrap_or(0),
        (false, true) => recording.samples.iter().map(|one| late_by(one.value)).sum(),
        (false, false) => known.map(late_by).sum(),
    };
    let told = recording.missed;
    (told < least).then(|| format!("{told} of at least {least}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Finding;
    use crate::key::RecordingKey;
    use crate::recording::{OBSERVED, Recorder};

    /// Makes a recording of a probe with samples of these lengths, each period of 1 ms.
    fn of(probe: &str, variant: &str, values: &[i64]) -> Recording {
        let mut recorder = Recorder::new(values.len());
        for (at, value) in (0..).zip(values) {
            recorder.record(Nanos::from_millis(at), Nanos(*value));
        }
        let mut recording = recorder.finish(RecordingKey::new(probe, "idle", variant));
        recording.interval = (probe == "timer").then(|| Nanos::from_millis(1));
        recording
    }

    #[test]
    fn what_a_step_does_not_say_is_what_its_probe_measures_by_itself() {
        let (silent, asked) = (toml::Table::new(), toml::toml! { samples = 3 });
        let short = |params, probe| shortfall(params, &of(probe, "", &[1, 2]));
        let told = |text: &str| Some(text.to_owned());
        assert_eq!(short(&asked, "timer"), told("2 samples of 3"));
        assert_eq!(short(&silent, "timer"), told("2 samples of 10000"));
        assert_eq!(short(&silent, "wake"), told("2 samples of 200"));
        assert_eq!(short(&silent, "hackbench"), None);
        assert_eq!(short(&silent, "mutex"), None);
        let mut noise = of("noise", "cpu0", &[]);
        let looked = |seconds: i64| Finding::Nanos(Nanos::from_millis(1_000 * seconds));
        noise.findings.insert(OBSERVED.into(), looked(1));
        assert_eq!(shortfall(&silent, &noise), told("1.00 s of 2.00 s"));
        noise.interrupted = true;
        assert_eq!(shortfall(&silent, &noise), None);
    }

    #[test]
    fn nobody_looked_for_longer_than_was_asked_for_or_where_samples_are_counted() {
        let hour = Finding::Nanos(Nanos::from_millis(3_600_000));
        let mut noise = of("noise", "cpu0", &[]);
        noise.findings.insert(OBSERVED.into(), hour.clone());
        let silent = toml::Table::new();
        assert_eq!(excess(&silent, &noise).as_deref(), Some("3600 s of 2.00 s"));
        assert_eq!(
            excess(&toml::toml! { duration_ms = 3_600_000 }, &noise),
            None
        );
        let mut timer = of("timer", "cpu0", &[1]);
        assert_eq!(excess(&silent, &timer), None);
        timer.findings.insert(OBSERVED.into(), hour);
        let told = excess(&silent, &timer);
        assert_eq!(told.as_deref(), Some("3600 s where samples are counted"));
    }

    #[test]
    fn a_period_is_missed_once_when_it_begins_before_the_last_cycle_has_ended() {
        let missed = |cycles: &[(i64, i64)]| {
            let cycles = cycles.iter().map(|(due, took)| (Nanos(*due), Nanos(*took)));
            periods_missed(cycles, Nanos(1_000))
        };
        let alone = [1_000, 1_001, 2_000, 2_001].map(|response| missed(&[(0, response)]));
        assert_eq!(alone, [0, 1, 1, 2]);
        // A cycle of 2.5 periods, those behind it that catch up, and a late one.
        let late = [(0, 2_500), (1_000, 1_510), (2_000, 520), (3_001, 1_200)];
        let each = [1, 2, 3, 4].map(|count| missed(&late[..count]));
        assert_eq!(each, [2, 2, 2, 3]);
        // It was stopped for 300 periods.
        let stopped: Vec<(i64, i64)> = (0..300)
            .map(|at| (at * 1_000, 300_000 - at * 999))
            .collect();
        assert_eq!(missed(&stopped), 300);
    }

    #[test]
    fn periods_that_samples_were_late_by_were_missed() {
        let silent = toml::Table::new();
        let mut timer = of("timer", "cpu0", &[5, 3_500_000, 1_000_000]);
        timer.missed = 4;
        assert_eq!(uncounted(&silent, &timer), None);
        timer.missed = 0;
        let told = uncounted(&silent, &timer);
        assert_eq!(told.as_deref(), Some("0 of at least 3"));
        let period = toml::toml! { period_us = 2_000 };
        let response = of("app", "loop response", &[2_000_001]);
        assert!(uncounted(&period, &response).is_some());
        assert_eq!(uncounted(&silent, &response), None);
        let lateness = of("app", "loop lateness", &[2_000_001]);
        assert_eq!(uncounted(&period, &lateness), None);
    }
}
