// SPDX-License-Identifier: MIT OR Apache-2.0
//! A verdict as a mail to a list: short, plain, and with instructions to repeat it.
//!
//! The text of a [`Mail`] is made of its fields and nothing else. It has [`LINES`] lines of
//! [`COLUMNS`] columns at most, in ASCII, so that every mailer carries it and no header has to name
//! an encoding. Cases that do not fit are counted, and a line says where they are.

mod ascii;
mod chosen;
mod of_gate;
mod of_judgement;
mod of_series;
mod repeat;
#[cfg(test)]
mod tests;

use crate::judgement::Outcome;
use crate::text::{counted, is_or_are, list};

use ascii::{ascii, clipped, flat, shortened};
use chosen::Chosen;
pub use of_gate::mail_of_gate;
pub use of_judgement::mail_of_judgement;
pub use of_series::mail_of_series;
pub use repeat::{Again, again};

/// The most lines of a mail, its subject among them.
pub const LINES: usize = 25;
/// The most columns of a line.
pub const COLUMNS: usize = 72;

/// The prefix of the title.
const SUBJECT: &str = "Subject: ";
/// The fewest lines for what was compared, if there is so much to say of it.
const ABOUT_LEAST: usize = 3;
/// The most lines for it.
const ABOUT_MOST: usize = 7;
/// The lines reserved for cases, whatever else there is to say.
const CASES_LEAST: usize = 6;
/// The most lines of a case, without the functions to blame.
const CASE: usize = 3;

/// The text where no run was repeated to find a function to blame.
const UNKNOWN: &str = "Nobody looked for the function that is to blame.";

/// A verdict in a mail to a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// The verdict's word: `worse`, `fit`.
    pub verdict: String,
    /// The measurement that it is about, and the deciding figure.
    pub title: String,
    /// The subjects compared or judged, the kernels, the number of runs, the confidence.
    pub about: String,
    /// One for each verdict, in the order in which they were measured.
    pub cases: Vec<Told>,
    /// Instructions for repeating it.
    pub again: Again,
    /// The file that has all cases, if there is one: `gate.html`.
    pub page: Option<String>,
}

/// One case in a mail to a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The outcome.
    pub outcome: Outcome,
    /// The verdict, on what, and why: `worse: timer, stress, cpu0: median 4.15 → 4.66 µs`.
    pub sentence: String,
    /// The culprits: functions, with their lines where these are known.
    pub blame: Vec<String>,
}

/// Counts the cases of each outcome: `2 are worse, 1 is undecided`.
pub(crate) fn counts(cases: &[Told], failed: &str, passed: &str) -> String {
    let count = |outcome| cases.iter().filter(|one| one.outcome == outcome).count();
    let parts = [
        (count(Outcome::Fail), failed),
        (count(Outcome::Undecided), "undecided"),
        (count(Outcome::Missing), "not wholly measured"),
        (count(Outcome::Pass), passed),
    ];
    numbers(&parts)
}

/// Says how many are what: `2 are worse and 1 is undecided`, without what nothing is.
fn numbers(parts: &[(usize, &str)]) -> String {
    let some = parts.iter().filter(|(count, _)| *count > 0);
    let told = some.map(|(count, what)| {
        let verb = is_or_are(*count);
        format!("{count} {verb} {what}")
    });
    list(&told.collect::<Vec<_>>())
}

impl Mail {
    /// The mail: its subject, an empty line, and its body.
    pub fn text(&self) -> String {
        let tail = self.again.lines();
        // The subject, and three empty lines.
        let room = LINES.saturating_sub(tail.len() + 4);
        let most = room
            .saturating_sub(CASES_LEAST)
            .clamp(ABOUT_LEAST, ABOUT_MOST);
        let about = clipped(flat(&self.about), most);
        let cases = self.fitting(room.saturating_sub(about.len()));
        let mut lines = vec![self.subject(), String::new()];
        lines.extend(about);
        if !cases.is_empty() {
            lines.push(String::new());
            lines.extend(cases);
        }
        lines.push(String::new());
        lines.extend(tail);
        lines.join("\n") + "\n"
    }

    /// `Subject: worse: timer, stress, cpu0: median 4.15 -> 4.66 us`, on one line.
    fn subject(&self) -> String {
        let title = format!("{}: {}", ascii(&self.verdict), ascii(&self.title));
        format!("{SUBJECT}{}", shortened(&title, COLUMNS - SUBJECT.len()))
    }

    /// Returns the cases that fit into so many lines, the most telling first.
    /// Below them, it counts the others.
    fn fitting(&self, room: usize) -> Vec<String> {
        let told = self.to_tell();
        let all = Chosen::of(&told, room);
        if all.count() == told.len() {
            return all.lines();
        }
        // The line about the others needs room, too, which may take another case.
        let mut reserved = 1;
        loop {
            let chosen = Chosen::of(&told, room.saturating_sub(reserved));
            if chosen.count() == told.len() {
                // What is to blame has given way to a case.
                return chosen.lines();
            }
            let more = clipped(self.others(&told, &chosen), CASE);
            if more.len() <= reserved {
                let mut lines = chosen.lines();
                lines.extend(more);
                return lines;
            }
            reserved = more.len();
        }
    }

    /// Returns the cases that went wrong or are not known; all cases if there are none of these.
    fn to_tell(&self) -> Vec<&Told> {
        let order = [Outcome::Fail, Outcome::Undecided, Outcome::Missing];
        let of = |outcome| {
            let cases = self.cases.iter();
            cases.filter(move |one| one.outcome == outcome)
        };
        let told: Vec<&Told> = order.into_iter().flat_map(of).collect();
        if told.is_empty() {
            return self.cases.iter().collect();
        }
        told
    }

    /// Counts the cases left out, by outcome, and says where they are.
    fn others(&self, told: &[&Told], chosen: &Chosen) -> Vec<String> {
        let left = told.iter().enumerate();
        let left = left.filter(|(at, _)| !chosen.is_told(*at));
        let left: Vec<&Told> = left.map(|(_, one)| *one).collect();
        let kinds = [
            (Outcome::Fail, self.verdict.as_str()),
            (Outcome::Undecided, "undecided"),
            (Outcome::Missing, "not wholly measured"),
        ];
        let of = |(outcome, word): (Outcome, &str)| {
            let count = left.iter().filter(|one| one.outcome == outcome).count();
            (count > 0).then(|| format!("{count} {word}"))
        };
        let kinds: Vec<String> = kinds.into_iter().filter_map(of).collect();
        let kinds = match kinds.as_slice() {
            [] => String::new(),
            kinds => format!(" ({})", kinds.join(", ")),
        };
        let more = counted(left.len(), "more case");
        let text = match &self.page {
            Some(page) => format!("{page} has {more}{kinds}."),
            None if self.again.commands.is_empty() => {
                format!("The sender was shown {more}{kinds}.")
            }
            None => format!("The command below shows {more}{kinds}."),
        };
        flat(&text)
    }
}
