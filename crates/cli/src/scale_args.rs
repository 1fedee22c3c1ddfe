// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options for the part of a suite that is measured.

use clap::Args;
use jiff::{SignedDuration, Span};
use punctual_model::Nanos;
use punctual_runner::Scale;

/// The most samples that a probe can be asked for.
const SAMPLES_MAX: u64 = 1_000_000_000_000;

/// How much of it: one of these, or what the suite says.
#[derive(Clone, Debug, Default, Args)]
#[group(multiple = false)]
pub struct ScaleArgs {
    /// Take this share of the samples that the published measurement took (suites osadl, celf,
    /// …): 1 is all of them
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    scale: Option<f64>,
    /// As many samples (5000, 1e6), of each probe that has the parameter `samples`; executions of
    /// a program only where no other probe has
    #[arg(long, value_name = "N", value_parser = parse_samples)]
    samples: Option<u64>,
    /// As long a time (90s, 10m, 12h, 1d), for each probe that goes on for as long as you ask
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Nanos>,
}

impl ScaleArgs {
    /// The words of a command line that ask for the same.
    pub fn words(&self) -> Vec<String> {
        let share = self
            .scale
            .map(|share| ["--scale".into(), share.to_string()]);
        let samples = self
            .samples
            .map(|samples| ["--samples".into(), samples.to_string()]);
        let duration = self.duration.map(|time| {
            let time = SignedDuration::from_nanos(time.0);
            ["--duration".into(), format!("{time:#}").replace(' ', "")]
        });
        [share, samples, duration]
            .into_iter()
            .flatten()
            .flatten()
            .collect()
    }

    /// The option that is given, if any.
    pub fn option(&self) -> Option<String> {
        self.words().into_iter().next()
    }

    /// The scale that is asked for.
    pub fn scale(&self) -> Scale {
        match (self.scale, self.samples, self.duration) {
            (Some(share), ..) => Scale::Share(share),
            (_, Some(samples), _) => Scale::Samples(samples),
            (.., Some(time)) => Scale::Duration(time),
            _ => Scale::Suite,
        }
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| *share > 0.0 && *share <= 1000.0)
        .ok_or_else(|| {
            "expected a number above 0, 1000 at most, such as 0.01; 1 is the full size".into()
        })
}

fn parse_samples(text: &str) -> Result<u64, String> {
    let whole = text.replace('_', "").parse().ok();
    let exponent = || {
        let number: f64 = text.parse().ok()?;
        (number.fract() == 0.0 && number >= 0.0).then_some(number as u64)
    };
    whole
        .or_else(exponent)
        .filter(|count| (1..=SAMPLES_MAX).contains(count))
        .ok_or_else(|| "expected a whole number from 1 to 1e12, such as 5000 or 1e6".into())
}

/// Parses a time with its unit.
pub fn parse_duration(text: &str) -> Result<Nanos, String> {
    // `jiff` takes days for a span only: here each has 24 hours.
    let span = || {
        text.parse::<Span>()
            .ok()?
            .to_duration(jiff::SpanRelativeTo::days_are_24_hours())
            .ok()
    };
    let duration = text.parse::<SignedDuration>().ok().or_else(span);
    duration
        .and_then(|span| i64::try_from(span.as_nanos()).ok())
        .filter(|nanos| *nanos > 0)
        .map(Nanos)
        .ok_or_else(|| "expected a time with its unit, such as 90s, 10m, 12h or 1d".into())
}

/// Parses how late a sample must be, with its unit.
pub fn parse_lateness(text: &str) -> Result<Nanos, String> {
    let expected = "expected a time with its unit, such as 200us or 1ms";
    parse_duration(text).map_err(|_| format!("{expected}, found {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        assert_eq!(parse_duration("10m"), Ok(Nanos(600_000_000_000)));
        assert_eq!(parse_duration("12h"), Ok(Nanos(43_200_000_000_000)));
        assert_eq!(parse_duration("1d"), Ok(Nanos(86_400_000_000_000)));
        assert_eq!(parse_duration("1d 1h"), Ok(Nanos(90_000_000_000_000)));
        for wrong in ["10", "-1s", "0s", "-1d", "soon"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_lateness("200us"), Ok(Nanos(200_000)));
        let wrong = "expected a time with its unit, such as 200us or 1ms, found 200";
        assert_eq!(parse_lateness("200"), Err(wrong.to_owned()));
    }

    #[test]
    fn what_is_asked_for_can_be_asked_for_again() {
        for nanos in [90_000_000_000, 1_500_000_000, 43_200_000_000_000, 7] {
            let duration = Some(Nanos(nanos));
            let args = ScaleArgs {
                duration,
                ..ScaleArgs::default()
            };
            assert_eq!(
                parse_duration(&args.words()[1]),
                Ok(Nanos(nanos)),
                "{:?}",
                args.words()
            );
        }
        let args = ScaleArgs {
            scale: Some(0.01),
            ..ScaleArgs::default()
        };
        assert_eq!(args.words(), ["--scale", "0.01"]);
        assert_eq!(args.option().as_deref(), Some("--scale"));
    }

    #[test]
    fn shares_and_counts_are_read_with_their_limits() {
        assert_eq!(parse_share("0.01"), Ok(0.01));
        assert!(parse_share("0").is_err() && parse_share("nan").is_err());
        assert!(parse_share("2000").unwrap_err().contains("1000 at most"));
        for (text, count) in [
            ("7", 7),
            ("1e6", 1_000_000),
            ("1_000", 1_000),
            ("1e12", SAMPLES_MAX),
        ] {
            assert_eq!(parse_samples(text), Ok(count), "{text}");
        }
        for wrong in ["0", "-1", "1.5", "1e13", "many", ""] {
            assert!(parse_samples(wrong).is_err(), "{wrong}");
        }
    }
}
