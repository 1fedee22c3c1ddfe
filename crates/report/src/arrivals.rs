// SPDX-License-Identifier: MIT OR Apache-2.0
//! Knowledge of every arrival of some runs.
//! These are the figures that tables, pages, comparisons and programs show of it. Anything that was
//! not watched is no figure.

use punctual_judge::{Comparison as Judged, Pair, Verdict, forecast_margin};
use punctual_model::{Nanos, Run};
use serde::Serialize;

use crate::matrix::Measured;

/// Placeholder for a figure that nobody has looked for.
const NOT_WATCHED: &str = "not watched";
/// Placeholder for a run that was watched without a sample aimed at its latest arrivals.
const NOT_AIMED: &str = "not aimed";

/// Explains figures of every arrival, for people.
pub const MEANING: &str = "Arrival: the latest of every arrival, as it is foretold; reached: the \
    latest aimed sample, which proves it (punctual arrivals).";
/// Explains a forecast.
pub const FORECAST: &str = "a forecast: on this kernel an arrival changes what follows";
/// The same of several kernels.
pub const FORECASTS: &str = "Some arrivals are forecasts: on kernels other than RT an arrival changes \
    what follows.";

/// Knowledge of every arrival of one measurement, over all of its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    runs: usize,
    worst: Vec<Nanos>,
    reached: Vec<Nanos>,
    /// True if the worst of any run is a forecast.
    pub is_forecast: bool,
}

impl Watched {
    /// Collects the knowledge of these recordings.
    /// A recording with arrivals unknown has no worst; a reached sample counts regardless of the
    /// rest.
    pub fn of(found: &[Measured<'_>]) -> Self {
        let mut own = Self {
            runs: found.len(),
            ..Self::default()
        };
        for one in found {
            let Some(known) = one.run.arrivals_of(one.recording) else {
                continue;
            };
            own.reached.extend(known.reached);
            if known.gap.is_none() {
                own.worst.push(known.worst);
                own.is_forecast |= known.is_forecast;
            }
        }
        own
    }

    /// Returns true if anything is known.
    pub fn is_any(&self) -> bool {
        !self.worst.is_empty() || !self.reached.is_empty()
    }

    /// Returns the latest of every arrival of all runs.
    /// Returns `None` if some run was not watched as a whole.
    pub fn worst(&self) -> Option<Nanos> {
        self.of_all(&self.worst)
    }

    /// Returns the latest aimed sample of all runs; `None` if no sample was aimed in some run.
    pub fn reached(&self) -> Option<Nanos> {
        self.of_all(&self.reached)
    }

    fn of_all(&self, known: &[Nanos]) -> Option<Nanos> {
        let all = known.iter().max().copied();
        all.filter(|_| known.len() == self.runs)
    }

    /// Returns the reason why there is no [`Self::worst`].
    pub fn no_worst(&self) -> String {
        self.missing(self.worst.len(), NOT_WATCHED)
    }

    /// Returns the reason why there is no [`Self::reached`].
    pub fn no_reached(&self) -> String {
        let is_watched = !self.worst.is_empty();
        let word = if is_watched { NOT_AIMED } else { NOT_WATCHED };
        self.missing(self.reached.len(), word)
    }

    /// `not watched`; of a part of the runs `2 of 5 runs not watched`.
    fn missing(&self, known: usize, word: &str) -> String {
        match (known, self.runs) {
            (0, _) => word.to_owned(),
            (known, all) => format!("{} of {all} runs {word}", all - known),
        }
    }
}

/// Tells latest arrivals apart only if they differ by more than a forecast has been wrong.
pub fn as_far_as_foretold(judged: Judged, pair: &Pair) -> Judged {
    let times = |values: &[f64]| values.iter().map(|one| Nanos(one.round() as i64)).collect();
    let [of, than] = [&pair.of, &pair.than].map(|one| middle(times(one)).unwrap_or_default());
    let is_apart = (of.0 - than.0).abs() > forecast_margin(of.max(than)).0;
    let is_told = matches!(judged.verdict, Verdict::Lower | Verdict::Higher);
    if is_apart || !is_told {
        return judged;
    }
    Judged {
        verdict: Verdict::NotSeparated { more: None },
        ..judged
    }
}

/// Knowledge of the arrivals of one step of a run, for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Figure {
    /// The step's number, from 0.
    pub step: u32,
    /// Probe, load and variant.
    pub recording: String,
    /// The latest of all arrivals; `None` if not every arrival is known.
    #[serde(rename = "worst_ns")]
    pub worst: Option<Nanos>,
    /// The reason why there is none.
    pub gap: Option<String>,
    /// The function that keeps it waiting.
    pub function: Option<String>,
    /// The latest aimed sample; `None` if no sample was aimed.
    #[serde(rename = "reached_ns")]
    pub reached: Option<Nanos>,
    /// The function that kept it waiting.
    pub reached_function: Option<String>,
    /// True if arrivals may change what follows, so that the worst is a forecast.
    pub is_forecast: bool,
}

/// Returns the figures of a run's known arrivals, step by step.
pub fn figures(run: &Run) -> Vec<Figure> {
    let recordings = run.recordings.iter();
    let known = recordings.filter_map(|one| Some((one, run.arrivals_of(one)?)));
    let figure = known.map(|(recording, known)| Figure {
        step: known.step,
        recording: recording.title(),
        worst: known.gap.is_none().then_some(known.worst),
        gap: known.gap.clone(),
        function: known.function.clone(),
        reached: known.reached,
        reached_function: known.reached_function.clone(),
        is_forecast: known.is_forecast,
    });
    figure.collect()
}

/// Knowledge of the arrivals of one measurement, over several runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Latest {
    /// Probe, load and variant.
    pub recording: String,
    /// The latest of every arrival of all runs; `None` if some run was not watched as a whole.
    #[serde(rename = "worst_ns")]
    pub worst: Option<Nanos>,
    /// The function that keeps it waiting.
    pub function: Option<String>,
    /// The latest aimed sample of all runs; `None` if no sample was aimed in some run.
    #[serde(rename = "reached_ns")]
    pub reached: Option<Nanos>,
    /// The function that kept it waiting.
    pub reached_function: Option<String>,
    /// True if arrivals may change what follows, so that the worst is a forecast.
    pub is_forecast: bool,
    /// The reason why there is no worst.
    #[serde(skip)]
    no_worst: String,
}

/// Returns the latest arrivals of several runs of one subject, measurement by measurement.
/// Measurements of which nothing is known are left out.
pub fn latest(runs: &[Run]) -> Vec<Latest> {
    let all = runs.iter().flat_map(|run| {
        let recordings = run.recordings.iter();
        recordings.map(move |recording| Measured { run, recording })
    });
    let mut measured: Vec<Vec<Measured<'_>>> = Vec::new();
    for one in all {
        let key = &one.recording.key;
        let is_same = |own: &&mut Vec<Measured<'_>>| own[0].recording.key.is_same_measurement(key);
        match measured.iter_mut().find(is_same) {
            Some(own) => own.push(one),
            None => measured.push(vec![one]),
        }
    }
    let latest = measured.iter().filter_map(|own| Latest::of(own));
    latest.collect()
}

impl Latest {
    fn of(own: &[Measured<'_>]) -> Option<Self> {
        let watched = Watched::of(own);
        let known = own.iter();
        let known = known.filter_map(|one| one.run.arrivals_of(one.recording));
        let latest = known.clone().max_by_key(|one| one.worst);
        let reached = known.max_by_key(|one| one.reached);
        watched.is_any().then(|| Self {
            recording: own[0].recording.title(),
            worst: watched.worst(),
            function: latest.and_then(|one| one.function.clone()),
            reached: watched.reached(),
            reached_function: reached.and_then(|one| one.reached_function.clone()),
            is_forecast: watched.is_forecast,
            no_worst: watched.no_worst(),
        })
    }

    /// In one sentence.
    pub fn sentence(&self) -> String {
        let within = |function: &Option<String>| {
            let name = function.as_ref();
            name.map_or_else(String::new, |name| format!(" in `{name}`"))
        };
        let foretold = if self.is_forecast { " as foretold" } else { "" };
        let worst = match self.worst {
            Some(worst) => {
                let place = within(&self.function);
                format!("the latest of every arrival is {worst} late{place}{foretold}")
            }
            None => self.no_worst.clone(),
        };
        let reached = self.reached.map_or_else(String::new, |reached| {
            let place = within(&self.reached_function);
            format!("; the latest aimed sample is {reached} late{place}")
        });
        format!("{}: {worst}{reached}", self.recording)
    }
}

/// The middle one of some times; of an even number the smaller of the two.
pub fn middle(mut times: Vec<Nanos>) -> Option<Nanos> {
    times.sort_unstable();
    let at = times.len().checked_sub(1)? / 2;
    times.get(at).copied()
}

#[cfg(test)]
mod tests {
    use punctual_judge::Rule;
    use punctual_model::Run;
    use punctual_model::arrivals::Arrivals;

    use super::*;
    use crate::campaign::Setting;
    use crate::compare::{Comparable, compare, comparison_json, comparison_text};
    use crate::fixtures::{self, assert_has};
    use crate::series::lines;

    fn known(worst: i64, reached: Option<i64>, step: u32) -> Arrivals {
        Arrivals {
            step,
            worst: Nanos(worst),
            reached: reached.map(Nanos),
            ..Arrivals::default()
        }
    }

    /// Two seeds each of two subjects; of the first subject both were watched and aimed at.
    fn runs() -> Vec<Run> {
        let mut runs = Vec::new();
        for (name, number) in [("rt", 0), ("full", 1)] {
            for seed in 1..=2 {
                let mut run = fixtures::run(name, seed);
                run.id = format!("r{}", 2 * number + seed);
                let step = run.recordings[1].key.step;
                run.arrivals = match (name, seed) {
                    ("rt", 1) => vec![known(16_700, Some(15_300), step)],
                    ("rt", _) => vec![known(14_100, Some(14_050), step)],
                    (_, 1) => vec![Arrivals {
                        is_forecast: true,
                        ..known(316_000, None, step)
                    }],
                    _ => Vec::new(),
                };
                runs.push(run);
            }
        }
        runs
    }

    fn line<'a>(text: &'a str, label: &str) -> Vec<&'a str> {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(label));
        line.unwrap_or_else(|| panic!("{text}"))
            .split("  ")
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .collect()
    }

    #[test]
    fn what_is_known_of_every_arrival_stands_in_each_form_and_nothing_stands_for_a_number() {
        let runs = runs();
        let text = crate::table(&runs, 100, false);
        assert_eq!(
            line(&text, "arrival"),
            ["arrival", "16.7 µs", "1 of 2 runs not watched¹"]
        );
        assert_eq!(line(&text, "reached"), ["reached", "15.3 µs", "not aimed"]);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_has(&words, &[MEANING, FORECAST]);
        assert_has(&crate::page(&runs, &[]), &["16.7 µs", "not aimed"]);
        let json = crate::runs_json(&runs, false);
        assert_eq!(json["runs"][0]["arrivals"][0]["worst_ns"], 16_700);
        assert_eq!(
            json["runs"][2]["arrivals"][0]["reached_ns"],
            serde_json::Value::Null
        );
        assert!(json["runs"][3].get("arrivals").is_none());
        let mut csv = Vec::new();
        crate::csv::write_figures_csv(&runs, &mut csv).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        assert_has(
            &csv,
            &[
                "max_ns,arrival_ns,reached_ns,digest",
                ",16700,15300,",
                ",316000,,",
            ],
        );
        // Who was not watched is compared with nothing.
        let comparison = compare(&Comparable::new(runs.clone()).unwrap());
        let stress = &comparison_json(&comparison)["measurements"][1]["subjects"];
        assert_eq!(stress[0]["figures"]["reached"]["ns"], 15_300);
        assert_eq!(
            stress[1]["figures"]["arrival"]["absent"],
            "1 of 2 runs not watched"
        );
        assert_has(
            &comparison_text(&comparison, 160),
            &["16.7 µs", "(not aimed)"],
        );
        // Nothing is said of arrivals where nobody has watched.
        let mut plain = runs;
        plain.iter_mut().for_each(|run| run.arrivals.clear());
        let text = crate::table(&plain, 100, false);
        assert!(
            !text.contains("arrival") && !text.contains("not watched"),
            "{text}"
        );
    }

    /// Five seeds each of two subjects, with every arrival known.
    fn watched(first: i64, second: i64) -> Vec<Run> {
        let mut runs = Vec::new();
        for (name, worst) in [("none", first), ("full", second)] {
            for seed in 1..=5 {
                let mut run = fixtures::run(name, seed);
                run.id = format!("{name}{seed}");
                let step = run.recordings[1].key.step;
                let one = known(worst + 10 * seed as i64, None, step);
                run.arrivals = vec![Arrivals {
                    is_forecast: true,
                    ..one
                }];
                runs.push(run);
            }
        }
        runs
    }

    fn judged(runs: Vec<Run>) -> (String, String, String) {
        let comparison = compare(&Comparable::new(runs).unwrap());
        let json = &comparison_json(&comparison)["measurements"][1];
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        (
            text(&json["judged"]),
            text(&json["subjects"][1]["verdict"]["verdict"]),
            comparison_text(&comparison, 160),
        )
    }

    #[test]
    fn the_latest_of_every_arrival_is_judged_where_all_runs_know_it() {
        // The fixtures' worst samples are those of `none` in both.
        let (figure, verdict, text) = judged(watched(300_000, 320_000));
        assert_eq!((&*figure, &*verdict), ("arrival", "higher"));
        assert_has(&text, &["timer, stress, cpu0  arrival", MEANING, FORECASTS]);
        // By 2 % forecasts have been wrong.
        let (_, verdict, _) = judged(watched(300_000, 306_000));
        assert_eq!(verdict, "not separated");
        let (_, verdict, _) = judged(watched(300_000, 306_500));
        assert_eq!(verdict, "higher");
        // By 1.2 µs, of short ones.
        assert_eq!(judged(watched(10_000, 11_200)).1, "not separated");
        assert_eq!(judged(watched(11_201, 10_000)).1, "lower");
        let mut partly = watched(300_000, 320_000);
        partly[9].arrivals.clear();
        let (figure, _, text) = judged(partly);
        assert_eq!(figure, "worst");
        assert!(!text.contains("is judged; 2 %"), "{text}");
    }

    #[test]
    fn equal_samples_answer_for_no_arrivals_on_another_kernel() {
        let mut runs = watched(300_000, 320_000);
        for number in 0..5 {
            let first = runs[number].clone();
            let other = &mut runs[5 + number];
            (other.recordings, other.machine) = (first.recordings, first.machine);
            other.subject.boot = first.subject.boot;
        }
        assert_eq!(judged(runs.clone()).1, "identical");
        for run in &mut runs[5..] {
            run.subject.boot = "another".into();
        }
        assert_eq!(judged(runs).1, "higher");
    }

    #[test]
    fn arrivals_that_are_known_in_part_have_no_worst() {
        let mut run = fixtures::run("rt", 1);
        run.arrivals = vec![Arrivals {
            gap: Some("they were not watched: two CPUs".into()),
            ..known(0, None, run.recordings[1].key.step)
        }];
        let text = crate::table(std::slice::from_ref(&run), 100, false);
        assert!(
            !text.contains("0 ns") && !text.contains("Arrival:"),
            "{text}"
        );
        let figure = &figures(&run)[0];
        assert_eq!((figure.worst, figure.reached), (None, None));
        assert!(figure.gap.is_some());
    }

    #[test]
    fn series_and_campaigns_have_them_and_rank_by_what_every_run_has() {
        let runs = runs();
        let found = lines(&runs, &Rule::default());
        let titles = found
            .iter()
            .flat_map(|line| &line.rows)
            .map(crate::series::Row::title);
        assert!(
            titles
                .into_iter()
                .any(|title| title == "timer, stress, cpu0: arrival")
        );
        let names = ["rt".to_owned(), "full".to_owned()];
        let mut setting = Setting::new("one", names.into_iter(), &[1, 2]);
        for (run, number) in runs.iter().zip(0..) {
            setting.take(number / 2, run);
        }
        let row = |name: &str| {
            setting
                .rows
                .iter()
                .find(|row| row.title().ends_with(name))
                .unwrap()
        };
        assert_eq!(row(": arrival").value(0), Some(Nanos(16_700)));
        assert_eq!(row(": reached").value(1), None);
        assert_eq!(setting.ranking().len(), 2);
    }
}
