// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the window of a sample: how many samples the target has marked before it in its step.

use punctual_model::probe::Windows;
use punctual_model::{Recording, Sample};

/// Returns the number of a sample's window in its step. `step` holds the recordings of the step,
/// and `place` is the index of the sample's own. The error is the reason why there is none.
pub fn number<'a>(
    windows: Windows,
    step: &[&'a Recording],
    place: usize,
    sample: Sample,
) -> Result<u64, String> {
    let recording = step[place];
    let number = match windows {
        // By switches the scope finds it by what the recording says ([`crate::cycle`]).
        Windows::BySample | Windows::BySwitch => return Ok(sample.seq),
        Windows::ByTime => return by_time(step, sample),
        Windows::ByTimeWithin { setting } => {
            nothing_missed(step, recording)?;
            let is_own =
                |other: &&Recording| other.settings.get(setting) == recording.settings.get(setting);
            let of = |all: &[&'a Recording], own: bool| -> Vec<&'a Recording> {
                let some = all.iter().copied();
                some.filter(|other| is_own(other) == own).collect()
            };
            let own = by_time(&of(step, true), sample)?;
            before(&of(&step[..place], false)).and_then(|before| before.checked_add(own))
        }
        Windows::OneAfterTheOther => {
            nothing_missed(step, recording)?;
            let own = recording.warmup.checked_add(sample.seq);
            own.and_then(|own| before(&step[..place])?.checked_add(own))
        }
    };
    number.ok_or_else(|| format!("{}: its counts are damaged", recording.title()))
}

/// Checks that no sample was missed. Where one was missed, there may have been a window.
fn nothing_missed(step: &[&Recording], recording: &Recording) -> Result<(), String> {
    let missed = step.iter().find(|recording| recording.missed > 0);
    missed.map_or(Ok(()), |found| {
        let (title, missed) = (recording.title(), found.missed);
        Err(format!(
            "{title} missed {missed} of its switches: which samples are between them was not noted"
        ))
    })
}

/// Returns the number of windows of all these recordings.
fn before(recordings: &[&Recording]) -> Option<u64> {
    recordings.iter().try_fold(0_u64, |sum, recording| {
        sum.checked_add(recording.warmup)?
            .checked_add(recording.count)
    })
}

/// Returns the number for samples that were found in one loop, and sorted afterwards.
fn by_time(step: &[&Recording], sample: Sample) -> Result<u64, String> {
    if !step.iter().all(|recording| recording.is_complete()) {
        return Err("not all of its step's samples were kept".to_owned());
    }
    let all = step.iter().flat_map(|recording| recording.samples.iter());
    Ok(all.filter(|other| other.at < sample.at).count() as u64)
}

#[cfg(test)]
mod tests {
    use punctual_model::{Nanos, Recorder, RecordingKey};

    use super::*;

    /// Returns the windows as the probe itself defines them.
    fn windows(probe: &str) -> Windows {
        let info = punctual_agent::probes::info(probe).unwrap();
        info.scope.as_ref().unwrap().windows
    }

    /// Creates a recording with samples at these moments.
    fn recording(probe: &str, variant: &str, warmup: u64, at: &[i64]) -> Recording {
        let mut recorder = Recorder::new(at.len());
        for at in at {
            recorder.record(Nanos(*at), Nanos(5));
        }
        let mut recording = recorder.finish(RecordingKey::new(probe, "idle", variant));
        recording.warmup = warmup;
        recording
    }

    fn numbers(step: &[Recording]) -> Vec<Vec<u64>> {
        let step: Vec<&Recording> = step.iter().collect();
        let of = |place: usize| {
            let samples = step[place].samples.iter();
            samples
                .map(|sample| {
                    number(windows(&step[place].key.probe), &step, place, sample).unwrap()
                })
                .collect()
        };
        (0..step.len()).map(of).collect()
    }

    #[test]
    fn beginnings_are_among_what_follows_them_by_time() {
        let of = |probe: &str| {
            let names = ["acquire", "release", "acquire first", "release first"];
            let at: [&[i64]; 4] = [&[30, 70], &[40, 80], &[10, 50], &[20, 60]];
            let pairs = names.into_iter().zip(at);
            let one = |(variant, at)| recording(probe, variant, 0, at);
            pairs.map(one).collect::<Vec<_>>()
        };
        for probe in ["mutex", "semaphore"] {
            let found = numbers(&of(probe));
            assert_eq!(found, [[2, 6], [3, 7], [0, 4], [1, 5]], "{probe}");
        }
    }

    #[test]
    fn rings_and_protocols_follow_one_another_in_a_step() {
        let of = |probe| ["a", "b"].map(|variant| recording(probe, variant, 3, &[0, 1]));
        assert_eq!(numbers(&of("inversion")), [[3, 4], [8, 9]]);
        assert_eq!(numbers(&of("timer")), [[0, 1], [0, 1]]);
        let ring = |threads: u32, variant, at| {
            let mut ring = recording("switch", variant, 0, at);
            ring.settings.insert("threads".into(), threads.into());
            ring
        };
        let rings = [
            ring(2, "N=2", &[5, 9]),
            ring(2, "N=2 first", &[1, 7]),
            ring(10, "N=10", &[2, 4]),
            ring(10, "N=10 first", &[1, 3]),
        ];
        assert_eq!(numbers(&rings), [[1, 3], [0, 2], [5, 7], [4, 6]]);
    }

    #[test]
    fn ticks_and_other_interruptions_are_numbered_in_the_order_of_time() {
        let step = [
            recording("tick", "tick", 0, &[10, 20, 30]),
            recording("tick", "other", 0, &[5, 25]),
        ];
        assert_eq!(numbers(&step), [vec![1, 2, 4], vec![0, 3]]);
    }

    #[test]
    fn what_was_missed_leaves_no_number_to_what_was_not() {
        let mut missed = recording("switch", "N=2", 0, &[0]);
        missed.missed = 1;
        let sample = missed.samples.iter().next().unwrap();
        let number_of = |probe, recording| number(windows(probe), &[recording], 0, sample);
        let reason = number_of("switch", &missed).unwrap_err();
        assert!(reason.contains("missed 1 of its switches"), "{reason}");
        assert_eq!(number_of("timer", &missed), Ok(0));
        let mut cut = recording("tick", "tick", 0, &[0, 1]);
        cut.count += 1;
        assert!(number_of("tick", &cut).is_err());
    }

    #[test]
    fn counts_that_cannot_be_have_no_window() {
        let damaged = recording("inversion", "none", u64::MAX, &[0]);
        let sample = damaged.samples.iter().next().unwrap();
        let seq = u64::MAX / 2;
        let sample = Sample { seq, ..sample };
        let reason = number(windows("inversion"), &[&damaged], 0, sample).unwrap_err();
        assert!(reason.contains("damaged"), "{reason}");
    }
}
