// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files in `published/`: their form, their errors, and their documents' own text.

use std::fs;
use std::path::{Path, PathBuf};

use punctual_published::{Document, Quotes, documents, figures, parse};

const TEXT: &str = include_str!("../../../published/celf.toml");

fn error(text: &str) -> String {
    parse(Path::new("published/x.toml"), text)
        .unwrap_err()
        .to_string()
}

/// All quotations of a document.
fn quotes(document: &Document) -> Vec<&String> {
    let mut all: Vec<&Quotes> = Vec::new();
    for table in &document.tables {
        all.push(&table.quotes);
        all.extend(table.rows.iter().map(|row| &row.quotes));
    }
    all.extend(document.histograms.iter().map(|one| &one.quotes));
    all.extend(document.series.iter().map(|one| &one.quotes));
    all.extend(document.lists.iter().map(|one| &one.quotes));
    all.extend(document.statements.iter().map(|one| &one.quotes));
    all.extend(document.pictures.iter().map(|one| &one.quotes));
    all.extend(document.directions.iter().map(|one| &one.quotes));
    all.into_iter().flat_map(Quotes::get_ref).collect()
}

#[test]
fn each_of_the_five_documents_is_there_once() {
    let documents = documents().unwrap();
    let names: Vec<&str> = documents.iter().map(|one| one.name.as_str()).collect();
    let expected = ["OSADL", "Linux Journal", "Patch review", "VUB", "CELF"];
    assert_eq!(names, expected);
    for document in &documents {
        assert!(!document.directions.is_empty(), "{}", document.name);
        assert!(document.method.len() > 300, "{}", document.name);
    }
}

#[test]
fn the_numbers_that_matter_most_are_as_printed() {
    let documents = documents().unwrap();
    let value = |name: &str, kernel: &str, table: &str, place: usize| {
        let document = documents.iter().find(|one| one.name == name).unwrap();
        let mut all = figures(document).into_iter();
        let figure = all
            .by_ref()
            .filter(|one| (one.kernel, one.table) == (kernel, table));
        figure
            .skip(place)
            .map(|one| one.value.map(str::to_owned))
            .next()
            .unwrap()
    };
    let printed = |text: &str| Some(text.to_owned());
    assert_eq!(value("OSADL", "2.6.26.8-rt16", "sendme", 7), printed("290"));
    assert_eq!(value("OSADL", "2.6.29", "image", 1), printed("0.23"));
    assert_eq!(
        value("CELF", "Realtime-preempt", "ten-hours", 0),
        printed("33.7593")
    );
    assert_eq!(
        value("CELF", "Realtime-preemption", "hackbench", 6),
        printed("13.713")
    );
    assert_eq!(value("VUB", "2.6.33.7-rt30", "tests", 11), printed("47.4"));
    assert_eq!(value("VUB", "2.6.33.7-rt30", "tests", 0), None);
    let review = documents
        .iter()
        .find(|one| one.name == "Patch review")
        .unwrap();
    let counts: Vec<u64> = review
        .histograms
        .iter()
        .map(|one| one.steps().iter().map(|(_, count)| count).sum())
        .collect();
    assert_eq!(counts, [54_466, 309_757]);
    assert_eq!(review.histograms[0].steps().last(), Some(&(37, 1)));
}

#[test]
fn the_page_of_sources_has_every_claim_and_no_other() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/SOURCES.md");
    let text = fs::read_to_string(path).unwrap();
    let documents = documents().unwrap();
    let directions = documents.iter().flat_map(|one| &one.directions);
    let mut claims: Vec<&str> = directions.map(|one| one.id.as_str()).collect();
    for claim in &claims {
        assert!(text.contains(&format!("`{claim}`")), "{claim}");
    }
    claims.sort_unstable();
    let named = text.split("claim").skip(1).flat_map(|rest| {
        let cell = rest.split(['|', ';']).next().unwrap_or_default();
        let list = cell.strip_prefix("s ").or(cell.strip_prefix(' '));
        let words = list.filter(|list| list.starts_with('`'));
        let ids = words.unwrap_or_default().split('`').skip(1).step_by(2);
        ids.filter(|id| id.contains('-') && !id.contains(' '))
    });
    let named: Vec<&str> = named.collect();
    assert!(named.len() >= claims.len(), "{named:?}");
    for name in named {
        assert!(claims.binary_search(&name).is_ok(), "no claim: {name}");
    }
}

#[test]
fn every_quotation_is_in_its_document() {
    let Some(directory) = punctual_skip::beside("PUNCTUAL_SEEDS", "directory of documents") else {
        return;
    };
    let directory = PathBuf::from(directory);
    for document in documents().unwrap() {
        let path = directory.join(&document.file);
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for quote in quotes(&document) {
            assert!(
                text.contains(quote.as_str()),
                "{}: not there: {quote}",
                document.file
            );
        }
    }
}

#[test]
fn a_number_that_its_quotation_lacks_is_refused_with_its_line() {
    let wrong = TEXT.replacen("values = [\"17388\",", "values = [\"17389\",", 1);
    let line = TEXT
        .lines()
        .position(|line| line.contains("quotes = [\"Vanilla\\t17388"));
    let expected = format!(
        "published/x.toml, line {}: expected a quotation with \"17389\" in its order",
        line.unwrap() + 1
    );
    assert_eq!(error(&wrong), expected);
}

#[test]
fn a_row_must_fill_its_columns_with_numbers() {
    let short = TEXT.replacen("\"17388\", ", "", 1);
    assert!(
        error(&short).contains("expected 3 values, one for each column of \"ten-hours\", found 2")
    );
    let word = TEXT.replacen("\"17388\"", "\"many\"", 1);
    assert!(
        error(&word).contains("expected a number as it is printed"),
        "{}",
        error(&word)
    );
    let none = TEXT.replacen(
        "quotes = [\"Vanilla\\t17388\\t2.11627\\t7.8942\"]",
        "quotes = []",
        1,
    );
    assert!(error(&none).contains("expected a quotation, found none"));
}

#[test]
fn a_misspelt_word_is_named_with_file_and_line() {
    let wrong = TEXT.replacen("hardware =", "hardwear =", 1);
    let error = error(&wrong);
    assert!(
        error.starts_with("published/x.toml: ") && error.contains("hardwear"),
        "{error}"
    );
    assert!(error.contains("line "), "{error}");
    let role = TEXT.replacen("of = \"rt\"", "of = \"tr\"", 1);
    let error = parse(Path::new("x"), &role).unwrap_err().to_string();
    assert!(error.contains("newer-rt"), "{error}");
}
