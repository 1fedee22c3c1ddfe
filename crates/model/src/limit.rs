// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits: demands on a subject, as data.

use std::fmt;

use jiff::SignedDuration;
use serde::Deserialize;
use toml::Value;

use crate::key::RecordingKey;
use crate::units::Nanos;

/// The most runs that a limit may ask for.
pub const RUNS_MOST: usize = 1_000;

/// The most characters in any name in a limit.
pub const TEXT_MOST: usize = 200;

/// A demand on a subject: a `[[limit]]` of a suite, or of a file of limits.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Written")]
pub struct Limit {
    /// The limit's name, if it has one.
    pub name: Option<String>,
    /// The probe.
    pub probe: String,
    /// The load; `None` means each load by itself.
    pub load: Option<String>,
    /// The variant; `None` means each variant by itself.
    pub variant: Option<String>,
    /// The part of a program's cycles; `None` means all parts.
    pub part: Option<Part>,
    /// The subject's name; `None` means each subject by itself.
    pub subject: Option<String>,
    /// The demand.
    pub demand: Demand,
    /// The required confidence, above 0.5 and below 1.
    pub confidence: f64,
    /// The smallest number of independent runs; `None` means as many as the rule
    /// needs.
    pub runs: Option<usize>,
}

/// A part of a program's cycles: the last word of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The lateness with which cycles begin.
    Lateness,
    /// The time until cycles are done.
    Response,
}

impl Part {
    /// Returns the name of the part.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lateness => "lateness",
            Self::Response => "response",
        }
    }
}

/// A demand.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// No sample is above this time.
    Never(Nanos),
    /// No arrival is later than this, no matter when a timer might have been due.
    Arrival {
        /// The greatest lateness.
        most: Nanos,
        /// True if samples are to be aimed at the worst arrivals.
        reached: bool,
    },
    /// No run misses more than this number of periods.
    Missed(u64),
    /// In no run do two samples differ by more than this.
    Jitter(Nanos),
    /// Samples above a bound are rare.
    Rare {
        /// The bound.
        above: Nanos,
        /// The measured time in which fewer than one such sample occurs.
        once_in: Nanos,
    },
    /// A figure of the typical run meets a bound: a time in nanoseconds, or work per second.
    Typical(Figure, Bound),
    /// A figure, as a share of another figure, meets a bound: 1 means that they are equal.
    Relative(Figure, Bound, Reference),
}

/// The reference that a share refers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// Another subject of the same runs, by its name.
    Subject(String),
    /// The same subject in earlier runs: those of the baseline of this name or, without a name,
    /// those that the caller names.
    Baseline(Option<String>),
}

/// A figure of one run.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// The largest sample.
    Worst,
    /// The mean of all samples.
    Mean,
    /// The value that this share of all samples does not exceed.
    Quantile(f64),
    /// The CPU time that the load took, in nanoseconds per second of measured time.
    Cpu,
    /// The amount of the load's work in this unit, per second of measured time.
    Work(String),
}

/// A bound; a value that is equal to the bound meets it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// An upper bound.
    AtMost(f64),
    /// A lower bound.
    AtLeast(f64),
}

impl Limit {
    /// Returns true if the limit applies to recordings of this probe and load.
    pub fn means_step(&self, probe: &str, load: &str) -> bool {
        self.probe == probe && self.load.as_deref().is_none_or(|own| own == load)
    }

    /// Returns true if the limit applies to the recording of this key.
    pub fn means_key(&self, key: &RecordingKey) -> bool {
        let variant = self.variant.as_deref();
        let is_meant = variant.is_none_or(|own| own == key.variant);
        let last = key.variant.rsplit(' ').next();
        let has_part = self.part.is_none_or(|part| last == Some(part.name()));
        self.means_step(&key.probe, &key.load) && is_meant && has_part
    }

    /// Returns true if the limit applies to this subject.
    pub fn means_subject(&self, name: &str) -> bool {
        self.subject.as_deref().is_none_or(|own| own == name)
    }

    /// Returns the probability with which a verdict may be wrong.
    pub fn level(&self) -> f64 {
        1.0 - self.confidence
    }
}

/// A limit as it is written in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Option<String>,
    probe: Option<String>,
    load: Option<String>,
    variant: Option<String>,
    subject: Option<String>,
    deadline: Option<String>,
    jitter: Option<String>,
    missed: Option<u64>,
    thread: Option<String>,
    what: Option<String>,
    unit: Option<String>,
    at_most: Option<Value>,
    at_least: Option<Value>,
    of: Option<String>,
    above: Option<String>,
    once_in: Option<String>,
    confidence: Option<f64>,
    runs: Option<usize>,
}

impl Written {
    /// Checks the lengths of names, which are for people and stand in every line of a verdict.
    fn check_lengths(&self) -> Result<(), String> {
        let texts = [
            ("name", self.name.as_deref()),
            ("probe", self.probe.as_deref()),
            ("thread", self.thread.as_deref()),
            ("load", self.load.as_deref()),
            ("variant", self.variant.as_deref()),
            ("subject", self.subject.as_deref()),
            ("unit", self.unit.as_deref()),
            ("of", self.of.as_deref()),
        ];
        let length = |text: Option<&str>| text.map_or(0, |text| text.chars().count());
        let long = texts
            .into_iter()
            .find(|(_, text)| length(*text) > TEXT_MOST);
        long.map_or(Ok(()), |(key, text)| {
            let found = length(text);
            Err(format!(
                "{key}: expected {TEXT_MOST} characters at most, found {found}"
            ))
        })
    }
}

impl TryFrom<Written> for Limit {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let confidence = match written.confidence {
            None => 0.95,
            Some(percent) if percent > 50.0 && percent < 100.0 => percent / 100.0,
            Some(other) => {
                return Err(format!(
                    "confidence: expected per cent above 50 and below 100, found {other}"
                ));
            }
        };
        let runs = written.runs.unwrap_or(1);
        if !(1..=RUNS_MOST).contains(&runs) {
            return Err(format!("runs: expected 1 to {RUNS_MOST}, found {runs}"));
        }
        written.check_lengths()?;
        let cycles = of_cycles(&written)?;
        let (part, demand) = match cycles {
            Some((part, demand)) => (Some(part), demand),
            None => (None, demand(&written)?),
        };
        let of_thread = written.thread.zip(part);
        let probe = written.probe.or(part.map(|_| APP.to_owned()));
        Ok(Self {
            demand,
            name: written.name,
            probe: probe.ok_or("expected `probe`, found none")?,
            load: written.load,
            variant: of_thread
                .map(|(thread, part)| format!("{thread} {}", part.name()))
                .or(written.variant),
            part,
            subject: written.subject,
            confidence,
            runs: written.runs,
        })
    }
}

/// The probe whose samples are a program's cycles.
const APP: &str = "app";

/// Parses a demand on a program's cycles, which has its own words, with the part of them that it
/// is on: a deadline applies to the response, jitter is the range of lateness.
fn of_cycles(written: &Written) -> Result<Option<(Part, Demand)>, String> {
    let deadline = written
        .deadline
        .as_deref()
        .map(|text| time("deadline", text));
    let jitter = written.jitter.as_deref().map(|text| time("jitter", text));
    let all = [
        deadline
            .transpose()?
            .map(|most| (Part::Response, Demand::Never(most))),
        jitter
            .transpose()?
            .map(|most| (Part::Lateness, Demand::Jitter(most))),
        written
            .missed
            .map(|most| (Part::Response, Demand::Missed(most))),
    ];
    let mut all = all.into_iter().flatten();
    let (first, second) = (all.next(), all.next());
    if first.is_none() {
        return match written.thread {
            None => Ok(None),
            Some(_) => Err("`thread` is for `deadline`, `jitter` and `missed`".to_owned()),
        };
    }
    if second.is_some() {
        return Err(
            "expected one of `deadline`, `jitter` and `missed`: each is a limit".to_owned(),
        );
    }
    let others = [
        ("what", written.what.is_some()),
        ("unit", written.unit.is_some()),
        ("at_most", written.at_most.is_some()),
        ("at_least", written.at_least.is_some()),
        ("of", written.of.is_some()),
        ("above", written.above.is_some()),
        ("once_in", written.once_in.is_some()),
        ("variant", written.variant.is_some()),
    ];
    if let Some((other, _)) = others.iter().find(|(_, is_there)| *is_there) {
        return Err(format!(
            "`deadline`, `jitter` and `missed` say it all: expected no `{other}` besides"
        ));
    }
    match written.probe.as_deref() {
        None | Some(APP) => Ok(first),
        Some(other) => Err(format!(
            "`deadline`, `jitter` and `missed` are for the probe app, found {other}"
        )),
    }
}

fn demand(written: &Written) -> Result<Demand, String> {
    if let (Some(above), Some(once_in)) = (&written.above, &written.once_in) {
        let no_more = written.what.is_none() && written.at_most.is_none();
        if !no_more || written.at_least.is_some() || written.of.is_some() {
            return Err("`above` and `once_in` say it all: expected nothing besides".to_owned());
        }
        return Ok(Demand::Rare {
            above: time("above", above)?,
            once_in: time("once_in", once_in)?,
        });
    }
    if written.above.is_some() || written.once_in.is_some() {
        return Err("expected `above` and `once_in` together, found one of them".to_owned());
    }
    let what = written.what.as_deref().ok_or(
        "expected `what` (worst, arrival, reached, mean, median, p99.9, missed, cpu, work), or \
         `above` and `once_in`, found neither",
    )?;
    let (key, value, is_most) = match (&written.at_most, &written.at_least) {
        (Some(value), None) => ("at_most", value, true),
        (None, Some(value)) => ("at_least", value, false),
        _ => return Err("expected one of `at_most` and `at_least`".to_owned()),
    };
    if what == "missed" {
        let most = value.as_integer().and_then(|most| u64::try_from(most).ok());
        return most
            .filter(|_| is_most && written.of.is_none())
            .map(Demand::Missed)
            .ok_or_else(|| {
                "missed: expected `at_most` with a whole number of periods, such as 0".to_owned()
            });
    }
    if matches!(what, "arrival" | "reached") {
        return arrival(written, value, is_most);
    }
    let figure = figure(what, written.unit.as_deref())?;
    if matches!(figure, Figure::Worst) && !is_most {
        return Err(
            "worst: expected `at_most`, found `at_least`, which a single late sample would meet"
                .to_owned(),
        );
    }
    let text = value.as_str().ok_or_else(|| {
        let example = match figure {
            Figure::Work(_) => "1000 /s",
            _ => "100 us",
        };
        format!("{key}: expected a text with its unit, such as \"{example}\", found {value}")
    })?;
    let bound = |value| {
        if is_most {
            Bound::AtMost(value)
        } else {
            Bound::AtLeast(value)
        }
    };
    match (&written.of, share(text)) {
        (Some(of), Some(share)) => Ok(Demand::Relative(figure, bound(share), reference(of)?)),
        (Some(_), None) => Err(format!(
            "{key}: expected a share of the other subject, such as \"115 %\", found \"{text}\""
        )),
        (None, Some(_)) => Err(format!(
            "{key}: \"{text}\" is a share: expected `of` with it"
        )),
        (None, None) => absolute(figure, key, text, bound),
    }
}

/// Parses a demand on the lateness of arrivals.
fn arrival(written: &Written, value: &Value, is_most: bool) -> Result<Demand, String> {
    let what = written.what.as_deref().unwrap_or_default();
    let text = value
        .as_str()
        .filter(|_| is_most && written.of.is_none() && written.unit.is_none());
    let text = text.ok_or_else(|| {
        format!(
            "{what}: expected `at_most` with a time, such as \"100 us\", and neither `of` nor `unit`"
        )
    })?;
    Ok(Demand::Arrival {
        most: time("at_most", text)?,
        reached: what == "reached",
    })
}

/// Parses `none`, `baseline` or `baseline:stable`.
fn reference(of: &str) -> Result<Reference, String> {
    match of.strip_prefix("baseline") {
        Some("") => Ok(Reference::Baseline(None)),
        Some(":") => Err(format!(
            "of: expected a baseline's name, such as \"baseline:stable\", found \"{of}\""
        )),
        Some(name) if name.starts_with(':') => {
            Ok(Reference::Baseline(Some(name[1..].trim().to_owned())))
        }
        _ => Ok(Reference::Subject(of.to_owned())),
    }
}

/// Parses a bound that is not relative to another subject.
fn absolute(
    figure: Figure,
    key: &str,
    text: &str,
    bound: impl Fn(f64) -> Bound,
) -> Result<Demand, String> {
    if let Figure::Work(_) = figure {
        let amount = text.strip_suffix("/s").and_then(|rest| number(rest.trim()));
        let amount = amount.ok_or_else(|| {
            format!("{key}: expected work per second, such as \"1000 /s\", found \"{text}\"")
        })?;
        return Ok(Demand::Typical(figure, bound(amount)));
    }
    if let Figure::Cpu = figure {
        return Err(format!(
            "{key}: CPU time is judged against another subject: expected `of`"
        ));
    }
    let time = time(key, text)?;
    Ok(match (figure, bound(time.0 as f64)) {
        (Figure::Worst, Bound::AtMost(_)) => Demand::Never(time),
        (figure, bound) => Demand::Typical(figure, bound),
    })
}

fn figure(what: &str, unit: Option<&str>) -> Result<Figure, String> {
    let quantile = || {
        let per_cent = number(what.strip_prefix('p')?)?;
        (per_cent > 0.0 && per_cent < 100.0).then_some(Figure::Quantile(per_cent / 100.0))
    };
    if let Some(Figure::Quantile(share)) = quantile().filter(|_| what.starts_with("p0.")) {
        let meant = (share * 1e10).round() / 1e6;
        return Err(format!(
            "what: {what} is what less than 1 % of all samples are below: did you mean p{meant}, \
             or p1?"
        ));
    }
    let figure = match (what, unit) {
        ("work", Some(unit)) => return Ok(Figure::Work(unit.to_owned())),
        ("work", None) => return Err("work: expected `unit`, such as \"messages\"".to_owned()),
        (_, Some(_)) => return Err("`unit` is for `what = \"work\"`".to_owned()),
        ("worst", _) => Figure::Worst,
        ("mean", _) => Figure::Mean,
        ("median", _) => Figure::Quantile(0.5),
        ("cpu", _) => Figure::Cpu,
        _ => quantile().ok_or_else(|| {
            format!(
                "what: expected worst, arrival, reached, mean, median, p99.9 or such, missed, cpu \
                 or work, found \"{what}\""
            )
        })?,
    };
    Ok(figure)
}

/// Parses `115 %` as 1.15.
fn share(text: &str) -> Option<f64> {
    let per_cent = number(text.strip_suffix('%')?.trim())?;
    Some(per_cent / 100.0)
}

fn number(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    (number.is_finite() && number > 0.0).then_some(number)
}

/// Parses a time with its unit: `100 us`, `1.5 ms`, `10 min`.
fn time(key: &str, text: &str) -> Result<Nanos, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || ". ".contains(c));
    if unit.trim_end() == "m" {
        return Err(format!(
            "{key}: \"{text}\" may be minutes or milliseconds: write min or ms"
        ));
    }
    // It may be meant as a point, or part thousands.
    if text.contains(',') {
        return Err(format!("{key}: \"{text}\" has a comma: write 1000 or 1.5"));
    }
    let duration = text.replace('μ', "µ").parse::<SignedDuration>().ok();
    let nanos = duration.and_then(|span| i64::try_from(span.as_nanos()).ok());
    nanos.filter(|nanos| *nanos > 0).map(Nanos).ok_or_else(|| {
        format!(
            "{key}: expected a time with its unit, such as \"100 us\", \"1.5 ms\" or \"10 min\", \
             found \"{text}\""
        )
    })
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worst => f.write_str("worst"),
            Self::Mean => f.write_str("mean"),
            Self::Quantile(share) if (share - 0.5).abs() < f64::EPSILON => f.write_str("median"),
            // 0.999 × 100 is a little more than 99.9.
            Self::Quantile(share) => write!(f, "p{}", (share * 1e8).round() / 1e6),
            Self::Cpu => f.write_str("the load's CPU time"),
            Self::Work(unit) => write!(f, "{unit} of the load"),
        }
    }
}

impl Figure {
    /// Formats a value of this figure with its unit.
    pub fn shown(&self, value: f64) -> String {
        match self {
            Self::Work(_) => format!("{value:.1} /s"),
            Self::Cpu => format!("{} per second", Nanos(value as i64)),
            _ => Nanos(value as i64).to_string(),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subject(name) => f.write_str(name),
            Self::Baseline(None) => f.write_str("the baseline"),
            Self::Baseline(Some(name)) => write!(f, "baseline {name}"),
        }
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never(bound) => write!(f, "worst at most {bound}"),
            Self::Arrival { most, reached } => {
                let what = if *reached { "reached" } else { "arrival" };
                write!(f, "{what} at most {most}")
            }
            Self::Missed(most) => write!(f, "at most {most} missed"),
            Self::Jitter(most) => write!(f, "jitter at most {most}"),
            Self::Rare { above, once_in } => {
                write!(f, "above {above} less than once in {once_in}")
            }
            Self::Typical(figure, Bound::AtMost(bound)) => {
                write!(f, "{figure} at most {}", figure.shown(*bound))
            }
            Self::Typical(figure, Bound::AtLeast(bound)) => {
                write!(f, "{figure} at least {}", figure.shown(*bound))
            }
            Self::Relative(figure, Bound::AtMost(share), of) => {
                write!(f, "{figure} at most {} % of {of}", per_cent(*share))
            }
            Self::Relative(figure, Bound::AtLeast(share), of) => {
                write!(f, "{figure} at least {} % of {of}", per_cent(*share))
            }
        }
    }
}

/// Converts 1.15 to 115.
fn per_cent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(rest: &str) -> Result<Limit, String> {
        let text = format!("probe = \"timer\"\n{rest}");
        toml::from_str(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn cycles_have_limits_in_their_own_words() {
        let read = |text: &str| toml::from_str::<Limit>(text).map_err(|error| error.to_string());
        for (text, shown, part) in [
            ("deadline = \"200 us\"", "worst at most 200 µs", "response"),
            ("jitter = \"50 us\"", "jitter at most 50.0 µs", "lateness"),
            ("missed = 2", "at most 2 missed", "response"),
        ] {
            let limit = read(text).unwrap();
            assert_eq!(
                (limit.probe.as_str(), limit.demand.to_string().as_str()),
                ("app", shown)
            );
            let means = |limit: &Limit, variant: &str| {
                limit.means_key(&RecordingKey::new("app", "idle", variant))
            };
            assert!(means(&limit, &format!("control loop {part}")));
            assert!(!means(&limit, &format!("x{part}")) && !means(&limit, "loop execution"));
            let limit = read(&format!("{text}\nprobe = \"app\"\nthread = \"loop\"")).unwrap();
            assert!(means(&limit, &format!("loop {part}")));
            assert!(!means(&limit, &format!("other {part}")));
        }
        for (wrong, told) in [
            ("deadline = \"200\"", "a time with its unit"),
            ("deadline = \"1 us\"\nmissed = 0", "expected one of"),
            ("deadline = \"1 us\"\nprobe = \"timer\"", "found timer"),
            ("deadline = \"1 us\"\nvariant = \"x\"", "no `variant`"),
            ("missed = 0\nwhat = \"worst\"", "no `what`"),
            ("thread = \"x\"\nwhat = \"worst\"", "`thread` is for"),
            ("deadline = \"8 m\"", "write min or ms"),
            ("deadline = \"1,000 us\"", "has a comma"),
            ("deadline = \"1,5 ms\"", "has a comma"),
            ("what = \"worst\"\nat_most = \"1 us\"", "expected `probe`"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(told), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_share_that_is_no_per_cent_is_asked_back() {
        let read = |what: &str| {
            let rest = format!("probe = \"timer\"\nwhat = \"{what}\"\nat_most = \"1 ms\"");
            toml::from_str::<Limit>(&rest).map_err(|error| error.to_string())
        };
        let error = read("p0.99").unwrap_err();
        assert!(error.contains("did you mean p99, or p1?"), "{error}");
        assert!(read("p1").is_ok() && read("p99.9").is_ok());
    }

    #[test]
    fn each_demand_is_read_as_it_is_shown() {
        for (rest, shown) in [
            (
                "what = \"worst\"\nat_most = \"100 us\"",
                "worst at most 100 µs",
            ),
            (
                "what = \"p99.9\"\nat_most = \"1.5 ms\"",
                "p99.9 at most 1.50 ms",
            ),
            (
                "what = \"median\"\nat_most = \"900 ns\"",
                "median at most 900 ns",
            ),
            (
                "what = \"arrival\"\nat_most = \"20 us\"",
                "arrival at most 20.0 µs",
            ),
            (
                "what = \"reached\"\nat_most = \"20 us\"",
                "reached at most 20.0 µs",
            ),
            ("what = \"missed\"\nat_most = 0", "at most 0 missed"),
            (
                "above = \"50 us\"\nonce_in = \"10 min\"",
                "above 50.0 µs less than once in 600 s",
            ),
            (
                "what = \"median\"\nat_most = \"115 %\"\nof = \"none\"",
                "median at most 115 % of none",
            ),
            (
                "what = \"median\"\nat_most = \"115 %\"\nof = \"baseline\"",
                "median at most 115 % of the baseline",
            ),
            (
                "what = \"median\"\nat_most = \"115 %\"\nof = \"baseline:6.1\"",
                "median at most 115 % of baseline 6.1",
            ),
            (
                "what = \"work\"\nunit = \"files\"\nat_least = \"90 %\"\nof = \"none\"",
                "files of the load at least 90 % of none",
            ),
            (
                "what = \"work\"\nunit = \"files\"\nat_least = \"1000 /s\"",
                "files of the load at least 1000.0 /s",
            ),
        ] {
            assert_eq!(limit(rest).unwrap().demand.to_string(), shown, "{rest}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_was_expected() {
        for (rest, expected) in [
            ("", "expected `what`"),
            ("what = \"wurst\"\nat_most = \"1 us\"", "found \"wurst\""),
            (
                "what = \"worst\"\nat_most = \"100\"",
                "a time with its unit",
            ),
            (
                "what = \"worst\"\nat_most = 100",
                "its unit, such as \"100 us\"",
            ),
            (
                "what = \"work\"\nunit = \"files\"\nat_least = 100",
                "its unit, such as \"1000 /s\"",
            ),
            (
                "what = \"worst\"\nat_most = \"-1 us\"",
                "a time with its unit",
            ),
            ("what = \"worst\"", "one of `at_most` and `at_least`"),
            (
                "what = \"worst\"\nat_least = \"100 us\"",
                "expected `at_most`",
            ),
            (
                "what = \"worst\"\nat_least = \"90 %\"\nof = \"none\"",
                "expected `at_most`",
            ),
            ("what = \"worst\"\nat_most = \"90 %\"", "expected `of`"),
            (
                "what = \"worst\"\nat_most = \"9 us\"\nof = \"none\"",
                "a share",
            ),
            (
                "what = \"worst\"\nat_most = \"9 %\"\nof = \"baseline:\"",
                "a baseline's name",
            ),
            (
                "what = \"reached\"\nat_least = \"9 us\"",
                "expected `at_most` with a time",
            ),
            (
                "what = \"arrival\"\nat_most = \"115 %\"\nof = \"none\"",
                "neither `of` nor `unit`",
            ),
            (
                "what = \"arrival\"\nat_most = \"9\"",
                "a time with its unit",
            ),
            ("what = \"p100\"\nat_most = \"9 us\"", "found \"p100\""),
            ("above = \"9 us\"", "together"),
            ("what = \"missed\"\nat_most = \"none\"", "a whole number"),
            (
                "what = \"worst\"\nat_most = \"9 us\"\nconfidence = 5",
                "above 50",
            ),
            ("what = \"worst\"\nat_moost = \"9 us\"", "at_moost"),
            (
                "what = \"worst\"\nat_most = \"9 us\"\nruns = 0",
                "expected 1 to 1000, found 0",
            ),
            (
                "what = \"worst\"\nat_most = \"9 us\"\nruns = 9223372036854775807",
                "expected 1 to 1000, found 9223372036854775807",
            ),
            (
                &format!(
                    "what = \"worst\"\nat_most = \"9 us\"\nname = \"{}\"",
                    "ä".repeat(201)
                ),
                "name: expected 200 characters at most, found 201",
            ),
        ] {
            let error = limit(rest).unwrap_err();
            assert!(error.contains(expected), "{rest}: {error}");
        }
    }
}
