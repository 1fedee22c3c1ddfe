// SPDX-License-Identifier: MIT OR Apache-2.0
//! The form of a document.

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::PICTURE;
use crate::direction::{Direction, Measure};

/// Verbatim excerpts of a document's text, in the order of the facts that they prove.
pub type Quotes = Spanned<Vec<String>>;

/// One document and its contents.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// The suite that repeats the document's measurements.
    pub suite: String,
    /// Short name of the document, such as `OSADL`.
    pub name: String,
    /// Name of the file that holds the text.
    pub file: String,
    /// Title of the document.
    pub title: String,
    /// The author.
    pub author: String,
    /// The publication it appeared in.
    pub publisher: String,
    /// The year of the measurements.
    pub year: String,
    /// The differences in method between the document and Punctual: a paragraph.
    pub method: String,
    /// Figures in rows and columns.
    #[serde(default, rename = "table")]
    pub tables: Vec<Table>,
    /// Counts by value.
    #[serde(default, rename = "histogram")]
    pub histograms: Vec<Histogram>,
    /// Samples in order.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Lists of names.
    #[serde(default, rename = "list")]
    pub lists: Vec<List>,
    /// Statements in words.
    #[serde(default, rename = "statement")]
    pub statements: Vec<Statement>,
    /// Results that the document shows only as pictures: no number can be taken from these.
    #[serde(default, rename = "picture")]
    pub pictures: Vec<Picture>,
    /// Trends that the document claims.
    #[serde(default, rename = "direction")]
    pub directions: Vec<Direction>,
}

impl Document {
    /// Fills the fields that only the quotations hold.
    pub(crate) fn fill(&mut self) {
        self.histograms.iter_mut().for_each(Histogram::fill);
        self.series.iter_mut().for_each(Series::fill);
        self.lists.iter_mut().for_each(List::fill);
    }
}

/// Unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Microseconds.
    #[serde(rename = "us")]
    Micros,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Millis,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Per cent.
    #[serde(rename = "%")]
    Percent,
}

impl Unit {
    /// The symbol of the unit.
    pub fn name(self) -> &'static str {
        match self {
            Self::Micros => "µs",
            Self::Millis => "ms",
            Self::Seconds => "s",
            Self::Percent => "%",
        }
    }

    /// The number of nanoseconds in one unit; `None` if it is not a unit of time.
    pub fn nanos(self) -> Option<f64> {
        match self {
            Self::Micros => Some(1e3),
            Self::Millis => Some(1e6),
            Self::Seconds => Some(1e9),
            Self::Percent => None,
        }
    }
}

/// Figures of several kernels, all measured in the same way.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Name within the document.
    pub id: String,
    /// Title of the table.
    pub title: String,
    /// Section of the document.
    pub section: String,
    /// The machine.
    pub hardware: String,
    /// The stress, in the document's words; `idle`; `not told`.
    pub load: String,
    /// Punctual's name for the load whose recordings are shown beside the table; no other load's
    /// are. If absent, recordings under any load are shown, or those without a load if there are no
    /// others.
    #[serde(default)]
    pub ours: Option<String>,
    /// The duration, or the number of samples.
    pub amount: String,
    /// Unit of the numbers.
    pub unit: Unit,
    /// Excerpts that prove machine, load and amount.
    pub quotes: Quotes,
    /// The meaning of each number in a row.
    #[serde(rename = "column")]
    pub columns: Vec<Column>,
    /// One row for each kernel.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
}

/// A column of a table.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// The document's name for the column.
    pub head: String,
    /// The figure of Punctual's to compare it with.
    pub measure: Measure,
}

/// The results for one kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The kernel, as the document names it.
    pub name: String,
    /// The row's own unit, where it differs from the table's.
    #[serde(default)]
    pub unit: Option<Unit>,
    /// The numbers as printed; `picture` for one that is only drawn, empty for one not given.
    pub values: Spanned<Vec<String>>,
    /// Excerpts that prove the numbers, which occur there in this order.
    pub quotes: Quotes,
}

impl Row {
    /// The text of a cell, with its unit.
    pub fn text(&self, column: usize, unit: Unit) -> String {
        match self.values.get_ref().get(column).map_or("", String::as_str) {
            "" => "not told".to_owned(),
            PICTURE => "picture only".to_owned(),
            number => format!("{number} {}", self.unit.unwrap_or(unit).name()),
        }
    }
}

/// Counts of samples by value.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Histogram {
    /// The kernel.
    pub name: String,
    /// Title of the histogram.
    pub title: String,
    /// Section of the document.
    pub section: String,
    /// The probe that measures the same.
    pub probe: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Distance from one value to the next.
    pub step: String,
    /// Samples taken per second.
    pub hertz: u32,
    /// Excerpts with the data; each line with a value and a count is a bin.
    pub quotes: Quotes,
    /// Value and count, as printed in the quotations.
    #[serde(skip_deserializing)]
    pub bins: Vec<[String; 2]>,
}

impl Histogram {
    /// The number of each step that has samples, counted from 0, and the count of its samples.
    pub fn steps(&self) -> Vec<(u64, u64)> {
        let step = number(&self.step).unwrap_or(1.0);
        let bins = self.bins.iter();
        bins.filter_map(|[value, count]| {
            let place = (number(value)? / step).round() as u64;
            Some((place, count.parse().ok()?))
        })
        .collect()
    }

    /// The number of samples.
    pub fn count(&self) -> u64 {
        self.steps().iter().map(|(_, count)| count).sum()
    }

    /// Duration of the measurement, in seconds.
    pub fn seconds(&self) -> f64 {
        self.count() as f64 / f64::from(self.hertz)
    }

    pub(crate) fn fill(&mut self) {
        let lines = self.quotes.get_ref().iter().flat_map(|quote| quote.lines());
        let bin = |line: &str| {
            let (value, count) = line.split_once(' ')?;
            let is_bin = number(value).is_some() && count.parse::<u64>().is_ok();
            is_bin.then(|| [value.to_owned(), count.to_owned()])
        };
        self.bins = lines.filter_map(bin).collect();
    }
}

/// Samples in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Title of the series.
    pub title: String,
    /// Section of the document.
    pub section: String,
    /// Machine, rate and load.
    pub system: String,
    /// The probe that measures the same.
    pub probe: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Excerpts with the data; each line with a number, with or without `msec`, is a sample.
    pub quotes: Quotes,
    /// The samples, as printed in the quotations.
    #[serde(skip_deserializing)]
    pub values: Vec<String>,
}

impl Series {
    pub(crate) fn fill(&mut self) {
        let lines = self.quotes.get_ref().iter().flat_map(|quote| quote.lines());
        let values = lines.map(|line| line.strip_suffix(" msec").unwrap_or(line));
        let values = values.filter(|value| number(value).is_some());
        self.values = values.map(str::to_owned).collect();
    }
}

/// A list of names.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// The kernel.
    pub name: String,
    /// Title of the list.
    pub title: String,
    /// Section of the document.
    pub section: String,
    /// The probe that lists the same.
    pub probe: String,
    /// Excerpts with the data, as `ps -A` prints it.
    pub quotes: Quotes,
    /// The names, from the quotations' last column.
    #[serde(skip_deserializing)]
    pub lines: Vec<String>,
}

impl List {
    pub(crate) fn fill(&mut self) {
        let lines = self.quotes.get_ref().iter().flat_map(|quote| quote.lines());
        let name = |line: &str| line.splitn(4, ' ').nth(3).map(str::to_owned);
        self.lines = lines.filter_map(name).collect();
    }
}

/// A statement that a document makes in words.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// Section of the document.
    pub section: String,
    /// The system that the statement is about.
    pub system: String,
    /// The statement.
    pub says: String,
    /// The number in it, if there is one.
    #[serde(default)]
    pub value: Option<String>,
    /// Unit of the number.
    #[serde(default)]
    pub unit: Option<Unit>,
    /// The probe that measures it.
    pub probe: String,
    /// The part that one CPU, one bench or one size cannot show.
    #[serde(default)]
    pub note: Option<String>,
    /// Excerpts that prove the statement.
    pub quotes: Quotes,
}

/// A result that a document shows only as a picture.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// The document's name for the picture.
    pub label: String,
    /// Section of the document.
    pub section: String,
    /// Content of the picture, as far as the text says.
    pub shows: String,
    /// The probe that measures the same.
    pub probe: String,
    /// Excerpts that prove that the document has the picture.
    pub quotes: Quotes,
}

/// Parses a number as printed: digits, at most one point between them, perhaps a minus sign.
pub fn number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let all = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let plain = match digits.split_once('.') {
        Some((whole, fraction)) => all(whole) && all(fraction),
        None => all(digits),
    };
    if plain { text.parse().ok() } else { None }
}
