//! How much of a suite's experiment is carried out, and in how many runs.

use clap::Args;
use jiff::SignedDuration;
use punctual_agent::probes;
use punctual_model::Nanos;
use punctual_model::plan::Step;
use toml::Value;

use crate::UsageError;

/// How much of it: one of these, or what the suite says.
#[derive(Clone, Debug, Default, Args)]
#[group(multiple = false)]
pub struct ScaleArgs {
    /// As large a share of what the suite's document took: 1 is all of it
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    scale: Option<f64>,
    /// As many samples, of each probe that takes them at an interval
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    samples: Option<u64>,
    /// As long a time (90s, 10m, 2h), for each probe that takes samples at an interval
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Nanos>,
}

/// The samples of one step, in each of the runs that share them.
struct Size {
    /// All of them.
    total: u64,
    /// What one run takes at most.
    most: u64,
}

impl ScaleArgs {
    /// The steps of each run that it takes. A run is no longer than `longest`: then an
    /// interruption costs no more than that, and a guest keeps no more samples.
    pub fn shards(&self, steps: &[Step], longest: Nanos) -> Result<Vec<Vec<Step>>, UsageError> {
        let sizes: Vec<Option<Size>> = steps
            .iter()
            .map(|step| self.size(step, longest))
            .collect::<Result<_, _>>()?;
        if self.scale.is_some() && sizes.iter().all(Option::is_none) {
            return Err(UsageError(
                "--scale is a share of what a document took, and no step of this suite says \
                 how much that was (`full`); --samples or --duration can be given"
                    .into(),
            ));
        }
        let runs = sizes.iter().flatten().map(Size::runs).max().unwrap_or(1);
        let shard = |run| -> Vec<Step> {
            let steps = steps.iter().zip(&sizes);
            steps
                .map(|(step, size)| shard(step, size.as_ref(), run))
                .collect()
        };
        Ok((0..runs).map(shard).collect())
    }

    /// The step's size, if it is another one than the suite's.
    fn size(&self, step: &Step, longest: Nanos) -> Result<Option<Size>, UsageError> {
        let measurement = probes::parse(&step.probe, &step.params).map_err(UsageError)?;
        let period = measurement.period();
        let total = match (self.scale, self.samples, self.duration) {
            (Some(share), ..) => step.full.map(|full| (full as f64 * share).ceil() as u64),
            (_, Some(samples), _) => period.map(|_| samples),
            (.., Some(time)) => period.map(|period| (time.0 / period.0.max(1)) as u64),
            _ => None,
        };
        Ok(total.map(|total| Size {
            total: total.max(1),
            most: period.map_or(u64::MAX, |period| {
                (longest.0 / period.0.max(1)).max(1) as u64
            }),
        }))
    }
}

impl Size {
    fn runs(&self) -> u64 {
        self.total.div_ceil(self.most)
    }

    /// How many samples the run of that number takes.
    fn of_run(&self, run: u64) -> u64 {
        self.total.saturating_sub(run * self.most).min(self.most)
    }
}

/// A step in the run of that number; a step that is not divided is in the first one.
fn shard(step: &Step, size: Option<&Size>, run: u64) -> Step {
    let mut step = step.clone();
    let samples = size.map(|size| size.of_run(run));
    step.skip = samples.map_or(run > 0, |samples| samples == 0);
    if let Some(samples @ 1..) = samples {
        step.params
            .insert("samples".into(), Value::Integer(samples as i64));
    }
    step
}

fn parse_share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| *share > 0.0 && *share <= 1000.0)
        .ok_or_else(|| "expected a number above 0, such as 0.01; 1 is the full size".into())
}

fn parse_duration(text: &str) -> Result<Nanos, String> {
    let span: Option<SignedDuration> = text.parse().ok();
    span.and_then(|span| i64::try_from(span.as_nanos()).ok())
        .filter(|nanos| *nanos > 0)
        .map(Nanos)
        .ok_or_else(|| "expected a time with its unit, such as 90s, 10m or 2h".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Nanos = Nanos(60_000_000_000);

    /// A step that takes a sample each millisecond, and one that is not divided.
    fn steps() -> Vec<Step> {
        #[derive(serde::Deserialize)]
        struct Steps {
            step: Vec<Step>,
        }
        let text = "[[step]]\nprobe = \"timer\"\ninterval_us = 1000\nfull = 150_000\n\
                    [[step]]\nprobe = \"footprint\"\n";
        toml::from_str::<Steps>(text).unwrap().step
    }

    fn samples(scale: &ScaleArgs) -> Vec<Vec<Option<i64>>> {
        let of = |step: &Step| step.params.get("samples").and_then(Value::as_integer);
        let shards = scale.shards(&steps(), MINUTE).unwrap();
        shards
            .iter()
            .map(|steps| steps.iter().filter(|step| !step.skip).map(of).collect())
            .collect()
    }

    #[test]
    fn what_is_not_asked_for_stays_as_the_suite_says() {
        assert_eq!(
            ScaleArgs::default().shards(&steps(), MINUTE).unwrap(),
            [steps()]
        );
    }

    #[test]
    fn the_full_size_is_shared_by_runs_of_a_minute() {
        let full = ScaleArgs {
            scale: Some(1.0),
            ..ScaleArgs::default()
        };
        assert_eq!(
            samples(&full),
            [
                vec![Some(60_000), None],
                vec![Some(60_000)],
                vec![Some(30_000)]
            ]
        );
    }

    #[test]
    fn a_step_has_the_same_number_in_each_run() {
        let full = ScaleArgs {
            scale: Some(1.0),
            ..ScaleArgs::default()
        };
        for shard in full.shards(&steps(), MINUTE).unwrap() {
            let probes: Vec<_> = shard.iter().map(|step| &*step.probe).collect();
            assert_eq!(probes, ["timer", "footprint"]);
        }
    }

    #[test]
    fn a_share_a_count_and_a_time_are_what_they_say() {
        let share = ScaleArgs {
            scale: Some(0.001),
            ..ScaleArgs::default()
        };
        assert_eq!(samples(&share), [[Some(150), None]]);
        let count = ScaleArgs {
            samples: Some(7),
            ..ScaleArgs::default()
        };
        assert_eq!(samples(&count), [[Some(7), None]]);
        let time = ScaleArgs {
            duration: Some(Nanos(2_000_000_000)),
            ..ScaleArgs::default()
        };
        assert_eq!(samples(&time), [[Some(2_000), None]]);
    }

    #[test]
    fn a_share_of_nothing_is_refused() {
        let mut steps = steps();
        steps[0].full = None;
        let share = ScaleArgs {
            scale: Some(0.5),
            ..ScaleArgs::default()
        };
        assert!(share.shards(&steps, MINUTE).unwrap_err().0.contains("full"));
    }

    #[test]
    fn times_and_shares_are_read_with_their_limits() {
        assert_eq!(parse_duration("10m"), Ok(Nanos(600_000_000_000)));
        assert!(parse_duration("10").is_err() && parse_duration("-1s").is_err());
        assert_eq!(parse_share("0.01"), Ok(0.01));
        assert!(parse_share("0").is_err() && parse_share("nan").is_err());
    }
}
