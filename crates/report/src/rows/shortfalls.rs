// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shortfalls: too few rounds of a load, or too few samples.

use punctual_model::recording::Work;

use crate::matrix::Matrix;
use crate::text::{seconds, thousands};

/// Repetitions of a recipe are told if there are fewer than this.
const ENOUGH: u64 = 2;

/// Returns a line for each worker that was played too little beside a measurement.
/// That is fewer than two periods, or fewer than two rounds, by the run that played least of it.
pub fn of_loads(matrix: &Matrix<'_>) -> Vec<String> {
    let mut least: Vec<(&str, &Work)> = Vec::new();
    for step in matrix.runs().flat_map(|run| &run.steps) {
        for work in step.work.iter().filter(|work| is_little(work)) {
            let known = least
                .iter_mut()
                .find(|(load, known)| *load == step.load && known.worker == work.worker);
            match known {
                Some((_, known)) if share(known) <= share(work) => {}
                Some((_, known)) => *known = work,
                None => least.push((&step.load, work)),
            }
        }
    }
    least.iter().map(|(load, work)| line(load, work)).collect()
}

/// A line for each recording that the time ended before it had all of its samples.
pub fn of_samples(matrix: &Matrix<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for column in &matrix.columns {
        for recording in column.runs.iter().flat_map(|run| &run.recordings) {
            let settings = &recording.settings;
            let is_cut = settings
                .get("ended_by")
                .is_some_and(|by| *by == "duration".into());
            if let Some(asked) = settings.get("samples_asked").filter(|_| is_cut) {
                let (title, got) = (recording.title(), thousands(recording.count));
                let number = asked.number().and_then(|asked| u64::try_from(asked).ok());
                let asked = number.map_or_else(|| asked.to_string(), thousands);
                lines.push(format!(
                    "{title}, {}: the time (`duration_ms`) was over after {got} of {asked} samples.",
                    column.name
                ));
            }
        }
    }
    lines.dedup();
    lines
}

fn is_little(work: &Work) -> bool {
    let is_known = work.span > punctual_model::Nanos::ZERO;
    is_known && !work.endless && share(work) < ENOUGH as f64
}

/// Returns the repetitions of the recipe: by its period if it has one, else in rounds.
fn share(work: &Work) -> f64 {
    work.periods().unwrap_or(work.rounds as f64)
}

fn line(load: &str, work: &Work) -> String {
    let (span, worker) = (seconds(work.span), short(&work.worker));
    let Some(periods) = work.periods() else {
        let times = match work.rounds {
            0 => "did not finish once".to_owned(),
            rounds => format!("finished {rounds} time"),
        };
        let (amount, unit) = (thousands(work.amount), &work.unit);
        return format!("Load {load}: in {span} `{worker}` {times} ({amount} {unit}).");
    };
    let (period, percent) = (seconds(work.period), periods * 100.0);
    format!(
        "Load {load}: `{worker}` has a period of {period}; {span} were played, {percent:.0} % of one."
    )
}

/// A command's first line.
fn short(worker: &str) -> String {
    let line = worker.lines().next().unwrap_or_default();
    crate::text::cut(line.trim_end(), 48)
}

#[cfg(test)]
mod tests {
    use punctual_model::Nanos;

    use super::*;
    use crate::fixtures;

    fn told(change: impl Fn(&mut Work)) -> Vec<String> {
        let mut run = fixtures::run("rt", 1);
        let works = run.steps.iter_mut().flat_map(|step| &mut step.work);
        for work in works {
            work.span = Nanos::from_millis(4_000);
            change(work);
        }
        of_loads(&Matrix::new(&[run]))
    }

    #[test]
    fn what_was_played_often_is_not_told_and_what_was_not_is() {
        assert!(told(|_| ()).is_empty());
        let rounds = told(|work| work.rounds = 1);
        assert_eq!(rounds.len(), 2);
        assert!(
            rounds[0].contains("`hackbench -g 1 -l 100` finished 1 time"),
            "{rounds:?}"
        );
        let none = told(|work| work.rounds = 0);
        assert!(
            none[1].contains("did not finish once (88,150 lines)"),
            "{none:?}"
        );
        assert!(told(|work| (work.rounds, work.endless) = (0, true)).is_empty());
        let periods = told(|work| work.period = Nanos::from_millis(5_000));
        assert!(periods[0].contains("period of 5"), "{periods:?}");
        assert!(periods[0].contains("80 % of one"), "{periods:?}");
        assert!(told(|work| work.period = Nanos::from_millis(2_000)).is_empty());
    }

    #[test]
    fn a_recording_that_the_time_has_ended_is_told() {
        let mut run = fixtures::run("rt", 1);
        let settings = &mut run.recordings[0].settings;
        settings.insert("samples_asked".into(), 600_000.into());
        settings.insert("ended_by".into(), "samples".into());
        assert!(of_samples(&Matrix::new(&[run.clone()])).is_empty());
        let settings = &mut run.recordings[0].settings;
        settings.insert("ended_by".into(), "duration".into());
        let told = of_samples(&Matrix::new(&[run]));
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("of 600,000 samples"), "{told:?}");
    }
}
