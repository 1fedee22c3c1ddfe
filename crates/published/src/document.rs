// SPDX-License-Identifier: MIT OR Apache-2.0
//! The form of a document.

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::PICTURE;
use crate::direction::{Direction, Measure};

/// Verbatim parts of a document's text, in the order in which it has what they prove.
pub type Quotes = Spanned<Vec<String>>;

/// One document, and what it says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// The suite that repeats it.
    pub suite: String,
    /// Its short name, such as `OSADL`.
    pub name: String,
    /// The name of the file that holds its text.
    pub file: String,
    /// Its title.
    pub title: String,
    /// Who wrote it.
    pub author: String,
    /// Where it appeared.
    pub publisher: String,
    /// When it was measured.
    pub year: String,
    /// What differs in method between the document and Punctual: a paragraph.
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
    /// What it says in words.
    #[serde(default, rename = "statement")]
    pub statements: Vec<Statement>,
    /// What it has as a picture only: no number can be taken from these.
    #[serde(default, rename = "picture")]
    pub pictures: Vec<Picture>,
    /// Which way it says that things go.
    #[serde(default, rename = "direction")]
    pub directions: Vec<Direction>,
}

impl Document {
    /// Takes from the quotations what is not written a second time beside them.
    pub(crate) fn fill(&mut self) {
        self.histograms.iter_mut().for_each(Histogram::fill);
        self.series.iter_mut().for_each(Series::fill);
        self.lists.iter_mut().for_each(List::fill);
    }
}

/// What a number counts.
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
    /// How it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Micros => "µs",
            Self::Millis => "ms",
            Self::Seconds => "s",
            Self::Percent => "%",
        }
    }

    /// How many nanoseconds it has; `None` if it is no time.
    pub fn nanos(self) -> Option<f64> {
        match self {
            Self::Micros => Some(1e3),
            Self::Millis => Some(1e6),
            Self::Seconds => Some(1e9),
            Self::Percent => None,
        }
    }
}

/// Figures of several kernels, measured alike.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Its name within the document.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Where it stands in the document.
    pub section: String,
    /// The machine.
    pub hardware: String,
    /// The stress, in the document's words; `idle`; `not told`.
    pub load: String,
    /// The only load whose recordings stand beside it, by Punctual's name for it. Without it,
    /// those under any load; those without one where there are no others.
    #[serde(default)]
    pub ours: Option<String>,
    /// How long, or how many samples.
    pub amount: String,
    /// What its numbers count.
    pub unit: Unit,
    /// What proves machine, load and amount.
    pub quotes: Quotes,
    /// What each of a row's numbers is.
    #[serde(rename = "column")]
    pub columns: Vec<Column>,
    /// One for each kernel.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
}

/// What a column of a table holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// What the document calls it.
    pub head: String,
    /// Which of Punctual's figures it is to be compared with.
    pub measure: Measure,
}

/// What was found on one kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The kernel, as the document names it.
    pub name: String,
    /// The row's own unit, where it differs from the table's.
    #[serde(default)]
    pub unit: Option<Unit>,
    /// A number as it is printed; `picture` where it is only drawn; empty where it is not told.
    pub values: Spanned<Vec<String>>,
    /// What proves the numbers: they occur there in their order.
    pub quotes: Quotes,
}

impl Row {
    /// How a cell is written, with its unit.
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
    /// What it shows.
    pub title: String,
    /// Where it stands in the document.
    pub section: String,
    /// Which probe measures the same.
    pub probe: String,
    /// What the values count.
    pub unit: Unit,
    /// From one value to the next.
    pub step: String,
    /// How many samples were taken in a second.
    pub hertz: u32,
    /// What it says; each line of a value and a count is a bin.
    pub quotes: Quotes,
    /// Value and count, as they are printed in the quotations.
    #[serde(skip_deserializing)]
    pub bins: Vec<[String; 2]>,
}

impl Histogram {
    /// The number of each step that has samples, from 0, with their count.
    pub fn steps(&self) -> Vec<(u64, u64)> {
        let step = number(&self.step).unwrap_or(1.0);
        let bins = self.bins.iter();
        bins.filter_map(|[value, count]| {
            let place = (number(value)? / step).round() as u64;
            Some((place, count.parse().ok()?))
        })
        .collect()
    }

    /// How many samples it has.
    pub fn count(&self) -> u64 {
        self.steps().iter().map(|(_, count)| count).sum()
    }

    /// How long they took, in seconds.
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
    /// What it shows.
    pub title: String,
    /// Where it stands in the document.
    pub section: String,
    /// Machine, rate and load.
    pub system: String,
    /// Which probe measures the same.
    pub probe: String,
    /// What the values count.
    pub unit: Unit,
    /// What it says; each line of a number, with or without `msec`, is a sample.
    pub quotes: Quotes,
    /// The samples as they are printed in the quotations.
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
    /// What it lists.
    pub title: String,
    /// Where it stands in the document.
    pub section: String,
    /// Which probe lists the same.
    pub probe: String,
    /// What it says, as `ps -A` prints it.
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

/// What a document says in words.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// Where it stands in the document.
    pub section: String,
    /// Of what it speaks.
    pub system: String,
    /// What it says.
    pub says: String,
    /// The number in it, if there is one.
    #[serde(default)]
    pub value: Option<String>,
    /// What the number counts.
    #[serde(default)]
    pub unit: Option<Unit>,
    /// Which probe measures it.
    pub probe: String,
    /// What one CPU, one bench, one size cannot show of it.
    #[serde(default)]
    pub note: Option<String>,
    /// What proves it.
    pub quotes: Quotes,
}

/// What a document has as a picture only.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// What the document calls it.
    pub label: String,
    /// Where it stands in the document.
    pub section: String,
    /// What it shows, as far as the text says.
    pub shows: String,
    /// Which probe measures the same.
    pub probe: String,
    /// What proves that it is there.
    pub quotes: Quotes,
}

/// A number as it is printed: digits, at most one point between them, perhaps a sign.
pub fn number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let all = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let plain = match digits.split_once('.') {
        Some((whole, fraction)) => all(whole) && all(fraction),
        None => all(digits),
    };
    if plain { text.parse().ok() } else { None }
}
