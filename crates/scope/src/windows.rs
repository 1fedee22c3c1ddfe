// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which window a sample is in: how many samples the target has marked before it in its step.

use punctual_model::probe::Windows;
use punctual_model::{Recording, Sample};

/// The number of a sample's window in its step; `step` is what was recorded in it, and
/// `place` which of that the sample belongs to. An error is the reason why there is none.
pub fn number(
    windows: Windows,
    step: &[&Recording],
    place: usize,
    sample: Sample,
) -> Result<u64, String> {
    let recording = step[place];
    let counted = recording.warmup.checked_add(sample.seq);
    let number = match windows {
        Windows::BySample => return Ok(sample.seq),
        Windows::ByTime => return by_time(step, sample),
        Windows::InTurns { variants, length } => {
            nothing_missed(step, recording)?;
            let length = length.map_or(Ok(1), |setting| turn(recording, setting))?;
            let own = variants.iter().position(|it| *it == recording.key.variant);
            let own = own.ok_or_else(|| {
                let (title, known) = (recording.title(), variants.join(", "));
                format!("{title} is of a variant that takes no turn; there are: {known}")
            })?;
            counted.and_then(|counted| in_turns(counted, length, variants.len(), own))
        }
        Windows::OneAfterTheOther { warmup } => {
            nothing_missed(step, recording)?;
            let own = if warmup { counted } else { Some(sample.seq) };
            own.and_then(|own| before(&step[..place], warmup)?.checked_add(own))
        }
    };
    number.ok_or_else(|| format!("{}: its counts are damaged", recording.title()))
}

/// Where a sample was missed there may have been a window.
fn nothing_missed(step: &[&Recording], recording: &Recording) -> Result<(), String> {
    let missed = step.iter().find(|recording| recording.missed > 0);
    missed.map_or(Ok(()), |found| {
        let (title, missed) = (recording.title(), found.missed);
        Err(format!(
            "{title} missed {missed} of its switches: which samples are between them was not noted"
        ))
    })
}

/// So many windows of the first variant, then as many of each other one, and again.
fn in_turns(counted: u64, length: u64, variants: usize, own: usize) -> Option<u64> {
    let (variants, own) = (u64::try_from(variants).ok()?, u64::try_from(own).ok()?);
    let turns = (counted / length).checked_mul(variants)?.checked_add(own)?;
    turns.checked_mul(length)?.checked_add(counted % length)
}

/// How many windows a turn has.
fn turn(recording: &Recording, setting: &str) -> Result<u64, String> {
    let found = recording.settings.get(setting);
    let found = found.and_then(|number| u64::try_from(number.number()?).ok());
    let some = found.filter(|number| *number > 0);
    some.ok_or_else(|| format!("{}: its {setting} were not noted", recording.title()))
}

fn before(recordings: &[&Recording], warmup: bool) -> Option<u64> {
    recordings.iter().try_fold(0_u64, |sum, recording| {
        let warmup = if warmup { recording.warmup } else { 0 };
        sum.checked_add(warmup)?.checked_add(recording.count)
    })
}

/// What was found in one loop, and sorted afterwards.
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

    /// As the probes themselves say it.
    fn windows(probe: &str) -> Windows {
        let info = punctual_agent::probes::info(probe).unwrap();
        info.scope.as_ref().unwrap().windows
    }

    /// A recording with samples at these moments.
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
    fn acquisitions_and_releases_take_turns_from_the_warm_up_on() {
        let of = |probe: &str, warmup| {
            ["acquire", "release"].map(|variant| {
                let mut recording = recording(probe, variant, warmup, &[0, 1, 2, 3]);
                recording.key.repetition = 2;
                recording.settings.insert("waiters".into(), 2.into());
                recording
            })
        };
        assert_eq!(
            numbers(&of("mutex", 10)),
            [[20, 22, 24, 26], [21, 23, 25, 27]]
        );
        assert_eq!(
            numbers(&of("semaphore", 4)),
            [[8, 9, 12, 13], [10, 11, 14, 15]]
        );
    }

    #[test]
    fn rings_and_protocols_follow_one_another_in_a_step() {
        let of = |probe| ["a", "b"].map(|variant| recording(probe, variant, 3, &[0, 1]));
        assert_eq!(numbers(&of("switch")), [[0, 1], [2, 3]]);
        assert_eq!(numbers(&of("inversion")), [[3, 4], [8, 9]]);
        assert_eq!(numbers(&of("timer")), [[0, 1], [0, 1]]);
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
    fn a_variant_without_a_turn_and_counts_that_cannot_be_have_no_window() {
        let odd = recording("mutex", "destroy", 0, &[0]);
        let sample = odd.samples.iter().next().unwrap();
        let reason = number(windows("mutex"), &[&odd], 0, sample).unwrap_err();
        assert!(reason.contains("acquire, release"), "{reason}");
        for (probe, variant) in [("mutex", "release"), ("inversion", "none")] {
            let damaged = recording(probe, variant, u64::MAX, &[0]);
            let seq = u64::MAX / 2;
            let sample = Sample { seq, ..sample };
            let reason = number(windows(probe), &[&damaged], 0, sample).unwrap_err();
            assert!(reason.contains("damaged"), "{reason}");
        }
        let mut nobody = recording("semaphore", "acquire", 0, &[0]);
        nobody.settings.insert("waiters".into(), 0_u64.into());
        assert!(number(windows("semaphore"), &[&nobody], 0, sample).is_err());
    }
}
