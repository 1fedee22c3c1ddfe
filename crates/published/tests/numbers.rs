// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers that follow from other numbers: counted, divided and compared once more.

use std::fs;
use std::path::Path;

use punctual_published::{Check, Document, Measure, Role, Row, Table, documents};

fn document(name: &str) -> Document {
    let mut all = documents().unwrap().into_iter();
    all.find(|one| one.name == name).unwrap()
}

fn numbers(row: &Row) -> Vec<f64> {
    let values = row.values.get_ref().iter();
    values.filter_map(|value| value.parse().ok()).collect()
}

/// All numbers of a text but releases (`3.6.6`) and numbers of thousand millions.
fn in_text(text: &str) -> Vec<f64> {
    let words: Vec<&str> = text.split([' ', '\t', '\n', ',']).collect();
    let number = |word: &str| {
        let word = word.trim_matches(|c: char| "().$".contains(c));
        word.strip_suffix("us").unwrap_or(word).parse().ok()
    };
    let is_counted = |at: &usize| words.get(at + 1) != Some(&"billion");
    let places = (0..words.len()).filter(is_counted);
    places.filter_map(|at| number(words[at])).collect()
}

#[test]
fn no_number_of_a_rows_quotations_is_left_out() {
    for document in documents().unwrap() {
        for row in document.tables.iter().flat_map(|table| &table.rows) {
            let text = row.quotes.get_ref().join("\n");
            assert_eq!(
                in_text(&text),
                numbers(row),
                "{}: {}",
                document.name,
                row.name
            );
        }
    }
}

#[test]
fn counts_add_up_and_give_the_durations() {
    let review = document("Patch review");
    let told: Vec<(u64, String)> = review
        .histograms
        .iter()
        .map(|one| (one.count(), format!("{:.3}", one.seconds())))
        .collect();
    assert_eq!(
        told,
        [(54_466, "26.595".into()), (309_757, "151.249".into())]
    );
    let [vanilla, rt] = &review.histograms[..] else {
        panic!("two histograms")
    };
    let amount = format!(
        "54,466 and 309,757 samples; {:.1} s and {:.0} s, if at the 2048 Hz of the example",
        vanilla.seconds(),
        rt.seconds()
    );
    assert_eq!(review.tables[0].amount, amount);
    // The text's largest is the first edge of the last bin.
    let last = [vanilla, rt].map(|one| one.steps().last().unwrap().0 * 100);
    let worst: Vec<f64> = review.tables[0].rows.iter().flat_map(numbers).collect();
    assert_eq!([worst[0] * 1e3, worst[1]].map(|us| us.round() as u64), last);
    let lengths: Vec<usize> = review.lists.iter().map(|one| one.lines.len()).collect();
    assert_eq!(lengths, [23, 11]);
    assert_eq!(document("Linux Journal").series[0].values.len(), 34);
    assert_eq!(review.series[0].values.len(), 6);
}

/// `full` of each step of a suite that has one.
fn full(suite: &str) -> Vec<i64> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites");
    let text = fs::read_to_string(root.join(format!("{suite}.toml"))).unwrap();
    let suite: toml::Table = text.parse().unwrap();
    let steps = suite["step"].as_array().unwrap().iter();
    steps
        .filter_map(|step| step.get("full")?.as_integer())
        .collect()
}

#[test]
fn suites_are_as_large_as_their_documents_say() {
    let review = document("Patch review");
    let most = review
        .histograms
        .iter()
        .map(punctual_published::Histogram::count);
    let most = most.max().unwrap() as i64;
    assert!(full("patch-review").iter().all(|full| *full == most));
    // One minute at the 64 Hz of the comment.
    assert_eq!(full("linux-journal"), [60 * 64]);
    // Ten hours and one, a sample every 997 µs.
    let hours = |hours: f64| (hours * 3600e6 / 997.0) as i64;
    let celf = full("celf");
    assert!((celf[0] - hours(10.0)).abs() <= 1 && (celf[1] - hours(1.0)).abs() <= 1);
    let osadl = document("OSADL");
    assert_eq!(full("osadl"), [10, 10_000_000]);
    let seconds: f64 = 10_000_000.0 * 200e-6;
    let amount = format!(
        "10,000,000 samples, one every 200 µs: {:.0} min {:.0} s",
        (seconds / 60.0).floor(),
        seconds % 60.0
    );
    assert_eq!(osadl.tables[0].amount, amount);
}

#[test]
fn improvements_are_those_of_the_numbers_in_the_text() {
    let vub = document("VUB");
    let [older, newer] = &vub.tables[0].rows[..] else {
        panic!("two kernels")
    };
    let columns = vub.tables[0].columns.iter().zip(0..);
    let bursts = columns.filter(|(column, _)| column.measure.probe == "irqrate");
    let value = |row: &Row, at: usize| row.values.get_ref()[at].parse::<f64>().unwrap();
    let percent = |at| 100.0 * (value(older, at) - value(newer, at)) / value(older, at);
    let told: Vec<String> = bursts
        .map(|(_, at)| format!("{:.0} %", percent(at)))
        .collect();
    let told = format!("{} less", told.join(" and "));
    let improved = vub
        .directions
        .iter()
        .find(|one| one.id == "improved-on-average");
    assert!(
        improved.unwrap().note.as_ref().unwrap().contains(&told),
        "{told}"
    );
}

/// Which of a document's kernels a role means.
fn rows<'a>(document: &str, table: &'a Table, role: Role) -> Vec<&'a Row> {
    let name = match (document, role) {
        (_, Role::Rt) => "Realtime-pre",
        (_, Role::None) => "Vanilla",
        (_, Role::Voluntary) => "Voluntary",
        (_, Role::Full) => "Preemptible",
        ("OSADL", Role::NewerRt) => "2.6.29.4-rt17",
        ("OSADL", Role::OlderRt) => "2.6.26.8-rt16",
        ("OSADL", Role::NewerStock) => "2.6.29",
        ("OSADL", Role::OlderStock) => "2.6.26",
        ("VUB", Role::NewerRt) => "3.6.6-rt17",
        ("VUB", Role::OlderRt) => "2.6.33.7-rt30",
        _ => "",
    };
    let is_meant = |row: &&Row| match role {
        Role::Stock => !row.name.starts_with("Realtime-pre"),
        Role::Rt | Role::None => row.name.starts_with(name),
        _ => row.name == name,
    };
    table.rows.iter().filter(is_meant).collect()
}

/// The columns of a table that hold a figure.
fn columns(table: &Table, measure: &Measure) -> Vec<usize> {
    let is_there = |load: &String| table.ours.as_ref() == Some(load);
    let is_meant = |at: &usize| {
        let theirs = &table.columns[*at].measure;
        measure.means(&theirs.probe, &theirs.variant) && measure.statistic == theirs.statistic
    };
    let all = 0..table.columns.len();
    let all = all.filter(|_| measure.load.as_ref().is_none_or(is_there));
    all.filter(is_meant).collect()
}

#[test]
fn the_documents_own_numbers_say_what_is_claimed() {
    let mut compared = Vec::new();
    for document in documents().unwrap() {
        for direction in &document.directions {
            let (comparison, sign) = match &direction.check {
                Check::Lower(comparison) => (comparison, 1.0),
                Check::Higher(comparison) => (comparison, -1.0),
                _ => continue,
            };
            let mut count = 0;
            for (table, measure) in document
                .tables
                .iter()
                .flat_map(|table| comparison.what.iter().map(move |what| (table, what)))
            {
                for of in rows(&document.name, table, comparison.of) {
                    for than in rows(&document.name, table, comparison.than) {
                        for at in columns(table, measure) {
                            let value = |row: &Row| row.values.get_ref()[at].parse::<f64>().ok();
                            let Some((one, other)) = value(of).zip(value(than)) else {
                                continue;
                            };
                            // The one pair that contradicts the document's conclusion has a
                            // claim of its own.
                            let contradicts = (one, other) == (0.1378, 0.1824);
                            let holds = sign * (other - one) > 0.0;
                            let (name, id) = (&document.name, &direction.id);
                            let expected = !contradicts || id != "rt-throughput-lower";
                            assert_eq!(holds, expected, "{name}, {id}: {one}, {other}");
                            count += 1;
                        }
                    }
                }
            }
            compared.push((direction.id.clone(), count));
        }
    }
    let count = |id: &str| compared.iter().find(|(one, _)| one == id).unwrap().1;
    assert_eq!(count("rt-throughput-lower"), 8);
    assert_eq!(count("preemptible-worst-lower"), 2);
    assert_eq!(count("rt-average-ten-hours"), 1);
    assert_eq!(count("signal-from-newer-lower"), 1);
    assert_eq!(count("signal-to-newer-lower"), 2);
    assert_eq!(count("image-newer-lower"), 1);
}
