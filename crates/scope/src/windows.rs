//! Which window a sample is in: how many samples the target has marked before it in its step.

use punctual_model::{Recording, Sample};

/// The number of a sample's window in its step; `step` is what was recorded in it, and
/// `place` which of that the sample belongs to. An error is the reason why there is none.
pub fn number(step: &[&Recording], place: usize, sample: Sample) -> Result<u64, String> {
    let recording = step[place];
    let counted = recording.warmup + sample.seq;
    let counts_switches = |probe: &str| matches!(probe, "mutex" | "semaphore" | "switch");
    let missed: u64 = step.iter().map(|recording| recording.missed).sum();
    if missed > 0 && counts_switches(&recording.key.probe) {
        return Err(format!(
            "{} missed {missed} of its switches: which samples are between them was not noted",
            recording.title()
        ));
    }
    match recording.key.probe.as_str() {
        "mutex" => Ok(in_turns(counted, 1, recording)),
        "semaphore" => Ok(in_turns(counted, waiters(recording)?, recording)),
        // Several recordings, one after the other. Whoever joins the ring has not yielded in it.
        "switch" => Ok(before(&step[..place], |_| 0) + sample.seq),
        "inversion" => Ok(before(&step[..place], |recording| recording.warmup) + counted),
        "tick" => in_time(step, sample),
        _ => Ok(sample.seq),
    }
}

/// So many acquisitions, then as many releases, and again.
fn in_turns(counted: u64, turn: u64, recording: &Recording) -> u64 {
    let release = u64::from(recording.key.variant == "release");
    counted / turn * 2 * turn + release * turn + counted % turn
}

fn waiters(recording: &Recording) -> Result<u64, String> {
    let found = recording.settings.get("waiters");
    let found = found.and_then(|number| u64::try_from(number.number()?).ok());
    let some = found.filter(|number| *number > 0);
    some.ok_or_else(|| format!("{}: its waiters were not noted", recording.title()))
}

fn before(recordings: &[&Recording], warmup: impl Fn(&Recording) -> u64) -> u64 {
    let all = recordings.iter();
    all.map(|recording| warmup(recording) + recording.count)
        .sum()
}

/// What was found in one loop, and told apart afterwards.
fn in_time(step: &[&Recording], sample: Sample) -> Result<u64, String> {
    let whole = |recording: &&&Recording| recording.samples.len() as u64 == recording.count;
    if step.iter().filter(whole).count() < step.len() {
        return Err("not all of its step's samples were kept".to_owned());
    }
    let all = step.iter().flat_map(|recording| recording.samples.iter());
    Ok(all.filter(|other| other.at < sample.at).count() as u64)
}

#[cfg(test)]
mod tests {
    use punctual_model::{Nanos, Recorder, RecordingKey};

    use super::*;

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
                .map(|sample| number(&step, place, sample).unwrap())
                .collect()
        };
        (0..step.len()).map(of).collect()
    }

    #[test]
    fn acquisitions_and_releases_take_turns_from_the_warm_up_on() {
        let of = |probe: &str, warmup| {
            ["acquire", "release (2)"].map(|variant| {
                let mut recording = recording(probe, variant, warmup, &[0, 1, 2, 3]);
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
        let reason = number(&[&missed], 0, sample).unwrap_err();
        assert!(reason.contains("missed 1 of its switches"), "{reason}");
        missed.key.probe = "timer".into();
        assert_eq!(number(&[&missed], 0, sample), Ok(0));
        let mut cut = recording("tick", "tick", 0, &[0, 1]);
        cut.count += 1;
        assert!(number(&[&cut], 0, sample).is_err());
    }
}
