// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a document's numbers are numbers and occur in their quotations.

use crate::PICTURE;
use crate::direction::Check;
use crate::document::{Document, Quotes, Row, Table, number};

/// A fault, and its place in the text.
pub struct Fault {
    /// The offset in bytes.
    pub at: usize,
    /// The expected content, and what was found instead.
    pub expected: String,
}

type Checked = Result<(), Fault>;

/// Checks everything that can be checked without the document itself.
pub fn check(document: &Document) -> Checked {
    for table in &document.tables {
        quoted(&[], &table.quotes)?;
        for row in &table.rows {
            row_of(table, row)?;
        }
    }
    for histogram in &document.histograms {
        numeric(&histogram.step, histogram.quotes.span().start)?;
        filled(&histogram.quotes, histogram.bins.len(), "value and count")?;
    }
    for series in &document.series {
        filled(&series.quotes, series.values.len(), "number")?;
    }
    for list in &document.lists {
        filled(&list.quotes, list.lines.len(), "process, as ps prints it")?;
    }
    for statement in &document.statements {
        let value: Vec<&str> = statement.value.iter().map(String::as_str).collect();
        for value in &value {
            numeric(value, statement.quotes.span().start)?;
        }
        quoted(&value, &statement.quotes)?;
    }
    for picture in &document.pictures {
        quoted(&[], &picture.quotes)?;
    }
    for direction in &document.directions {
        let at = direction.quotes.span().start;
        let limit = match &direction.check {
            Check::Below(below) => Some(below),
            _ => None,
        };
        let limits: Vec<&str> = limit.iter().map(|below| below.limit.as_str()).collect();
        quoted(&limits, &direction.quotes)?;
        let is_time = limit.is_none_or(|below| below.nanos().is_some());
        fail_unless(is_time, at, || "expected a limit in us, ms or s".to_owned())?;
        let is_told = direction.needs.is_none() || direction.note.is_some();
        fail_unless(is_told, at, || {
            format!(
                "\"{}\" has `needs`: expected a `note` that says why",
                direction.id
            )
        })?;
    }
    Ok(())
}

fn row_of(table: &Table, row: &Row) -> Checked {
    let (values, at) = (row.values.get_ref(), row.values.span().start);
    let (have, want) = (values.len(), table.columns.len());
    fail_unless(have == want, at, || {
        format!(
            "expected {want} values, one for each column of \"{}\", found {have}",
            table.id
        )
    })?;
    let printed = || {
        values
            .iter()
            .filter(|value| !["", PICTURE].contains(&value.as_str()))
    };
    for value in printed() {
        numeric(value, at)?;
    }
    let printed: Vec<&str> = printed().map(String::as_str).collect();
    quoted(&printed, &row.quotes)
}

/// Checks quotations that something was taken from, line by line.
fn filled(quotes: &Quotes, taken: usize, what: &str) -> Checked {
    quoted(&[], quotes)?;
    fail_unless(taken > 0, quotes.span().start, || {
        format!("expected a quotation with a {what} on a line, found none")
    })
}

fn numeric(value: &str, at: usize) -> Checked {
    fail_unless(number(value).is_some(), at, || {
        format!("expected a number as it is printed, \"{PICTURE}\", or nothing, found \"{value}\"")
    })
}

fn fail_unless(good: bool, at: usize, expected: impl FnOnce() -> String) -> Checked {
    if good {
        return Ok(());
    }
    Err(Fault {
        at,
        expected: expected(),
    })
}

/// Checks that all parts occur in the quotations, one after the other.
fn quoted(parts: &[&str], quotes: &Quotes) -> Checked {
    let at = quotes.span().start;
    let all = quotes.get_ref();
    let some = !all.is_empty() && all.iter().all(|quote| !quote.trim().is_empty());
    fail_unless(some, at, || "expected a quotation, found none".to_owned())?;
    let text = all.join("\n");
    let mut from = 0;
    for part in parts {
        let Some(end) = find(&text[from..], part) else {
            return Err(Fault {
                at,
                expected: format!("expected a quotation with \"{part}\" in its order"),
            });
        };
        from += end;
    }
    Ok(())
}

/// Finds the end of a part that is not a piece of a longer number or word.
fn find(text: &str, part: &str) -> Option<usize> {
    let word = |character: char| character.is_alphanumeric();
    let fits = |start: usize| {
        let (before, after) = (&text[..start], &text[start + part.len()..]);
        let mut next = after.chars();
        let (first, second) = (next.next(), next.next());
        // `8.2` must not be found in `18.25`, nor `10.8`; `us` may follow.
        let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let goes_on = digit(first) || (first == Some('.') && digit(second));
        let begun = before.ends_with(|c: char| word(c) || c == '.' || c == '-');
        !goes_on && !begun
    };
    let places = text.match_indices(part).map(|(start, _)| start);
    let mut places = places.filter(|start| fits(*start));
    places.next().map(|start| start + part.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_whole_or_not_at_all() {
        assert_eq!(find("Max 14", "14"), Some(6));
        assert_eq!(find("about 400us", "400"), Some(9));
        assert_eq!(find("at 17388\t2.11627", "2.11627"), Some(16));
        for (text, part) in [
            ("18.25", "8.2"),
            ("10.8", "10"),
            ("0.5", "5"),
            ("2014", "14"),
            ("140", "14"),
            ("-0.004", "0.004"),
        ] {
            assert_eq!(find(text, part), None, "{part} in {text}");
        }
        assert_eq!(find("25.", "25"), Some(2));
    }
}
