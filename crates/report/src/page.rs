// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page about runs: their message first, the provenance last.

mod against;
mod caught;
mod evidence;
mod improved;
mod provenance;
mod published;
mod told;
pub mod untested;

use maud::{Markup, html};
use punctual_model::Limit;
use punctual_model::run::Run;
use punctual_published::Document;

use crate::compare::Comparison;
use crate::figure::{self, Figure, Group, Kind};
use crate::matrix::{Column, Matrix, distinct};
use crate::repeat;
use crate::rows::{Line, Range, Rank, Sheet, Shown, clock_note, colour_note};
use crate::scope::page::code;
use crate::shell::{Chapter, Page, folded, wide};
use crate::stats::Stats;
use crate::summary::{self, summary};
use crate::table::{head_line, head_text};
use crate::text::{counted, unbroken};

/// A note that each table of worst cases needs.
const ONE_DRAW: &str = "A worst case is the worst that was seen: one draw, which the next seed \
    changes.";

/// How far two builds of one source are apart. `docs/JUDGE.md` has the trial.
const LAYOUT: &str = "Two builds of one source also differ, because their code is laid out \
    differently in memory: harmless changes move a median by less than 2 %, but the worst sample \
    under load by half or more.";

/// A table with more lines than this is shown in two.
const LONGEST: usize = 70;

/// Runs side by side as a page, beside the documents that they repeat.
pub fn page(runs: &[Run], documents: &[Document]) -> String {
    runs_page(runs, documents).html()
}

/// The same as a page that is not text yet.
pub fn runs_page(runs: &[Run], documents: &[Document]) -> Page {
    let matrix = Matrix::loaded_first(runs);
    Page {
        title: format!(
            "Punctual: {}{}",
            matrix.suites().join(" and "),
            worst_of(&matrix)
        ),
        lead: lead(runs),
        chapters: chapters(runs, &matrix, documents),
    }
}

/// Returns the worst row of what the lead speaks of, for the title; the first row of latencies
/// where it speaks of none.
/// `: timer, stress, cpu0: 8.07 µs (rt) to 508 µs (full) at worst`.
fn worst_of(matrix: &Matrix<'_>) -> String {
    let first = || matrix.rows.iter().find(|row| !row.is_throughput());
    let row = summary::worst_row(matrix).or_else(first);
    // Virtual and real times are not compared.
    let Some(row) = row.filter(|_| !matrix.is_mixed()) else {
        return String::new();
    };
    let of_column = |column: &Column<'_>| {
        let worst = summary::worst_of(row)(&Stats::of(&column.found(row)))?;
        Some((worst, column.name.clone()))
    };
    let mut all: Vec<_> = matrix.columns.iter().filter_map(of_column).collect();
    all.sort();
    let span = match all.as_slice() {
        [] => return String::new(),
        [(worst, name)] if matrix.columns.len() > 1 => format!("{worst} ({name})"),
        [(worst, _)] => worst.to_string(),
        [(low, _), .., (high, _)] if low == high => low.to_string(),
        [(low, best), .., (high, name)] => format!("{low} ({best}) to {high} ({name})"),
    };
    format!(": {}: {span} at worst", row.title())
}

/// The same, with each subject's figures against the first one's.
pub fn comparison_page(runs: &[Run], documents: &[Document], comparison: &Comparison) -> String {
    compared_page(runs, documents, comparison).html()
}

/// The same as a page that is not text yet.
pub fn compared_page(runs: &[Run], documents: &[Document], comparison: &Comparison) -> Page {
    let matrix = Matrix::loaded_first(runs);
    let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    let (first, others) = ids.split_first().unwrap_or((&"", &[]));
    let title = format!("Punctual: {first} against {}", others.join(", "));
    let first = comparison.subjects.first().map_or("", String::as_str);
    let against = Chapter::new(format!("Against {first}"), against::against(comparison));
    let mut all = vec![against];
    all.extend(chapters(runs, &matrix, documents));
    Page {
        title,
        lead: lead(runs),
        chapters: all,
    }
}

fn lead(runs: &[Run]) -> Markup {
    html! { p.lead { (unbroken(&summary(runs))) } }
}

/// The foundation of verdicts about runs: all measurements, and their provenance.
pub fn beneath(runs: &[Run], documents: &[Document]) -> Vec<Chapter> {
    chapters(runs, &Matrix::loaded_first(runs), documents)
}

/// The same, with limits drawn in its figures.
pub fn beneath_limits(runs: &[Run], limits: &[Limit], documents: &[Document]) -> Vec<Chapter> {
    let mut matrix = Matrix::loaded_first(runs);
    matrix.limits = limits.to_vec();
    chapters(runs, &matrix, documents)
}

fn chapters(runs: &[Run], matrix: &Matrix<'_>, documents: &[Document]) -> Vec<Chapter> {
    if matrix.columns.is_empty() {
        return Vec::new();
    }
    let mut chapters = vec![Chapter::new("All that was measured", measured(matrix))];
    for document in published::repeated(matrix, documents) {
        let body = published::beside(matrix, document);
        chapters.push(Chapter::new("Beside what was published", body));
    }
    let figures = figure::groups(matrix);
    chapters.extend([
        Chapter::new(
            "Figures",
            html! { @if !figures.is_empty() {
                div.figures { @for one in &figures { (group(one)) } }
            } },
        ),
        Chapter::new("What the kernel's tracer caught", caught::caught(matrix)),
        Chapter::new("What could not be measured", evidence::unmeasured(matrix)),
        Chapter::new("What differs between lists", told::differences(matrix)),
        Chapter::new("Evidence", evidence(matrix)),
        Chapter::new("To repeat it", commands(runs)),
    ]);
    if clock_note(matrix).is_some() {
        let how = html! { p { (VIRTUAL_TIME) } };
        chapters.push(Chapter::new("How to read virtual time", how));
    }
    chapters
}

fn measured(matrix: &Matrix<'_>) -> Markup {
    let sheet = Sheet::new(matrix, Range::Beside);
    let colours = colour_note(matrix, &sheet);
    html! {
        p.soft { (head_line(matrix)) }
        (tables(sheet, matrix))
        @if let Some(note) = colours { p.soft { (note) } }
        @for place in crate::rows::places(matrix) { p.soft { (code(&place)) } }
        p.soft { (ONE_DRAW) }
        @if has_two_builds(matrix) { p.soft { (LAYOUT) } }
        @if let Some(note) = clock_note(matrix) { p.soft { (note) } }
    }
}

/// Returns true if kernels of two builds were measured in virtual time.
fn has_two_builds(matrix: &Matrix<'_>) -> bool {
    let columns = matrix.columns.iter().filter(|one| one.clock.is_some());
    let runs = columns.flat_map(|one| &one.runs);
    let read_back = runs.filter_map(|run| run.provenance.as_ref());
    distinct(read_back.map(|one| (&one.release, &one.version))).len() > 1
}

fn evidence(matrix: &Matrix<'_>) -> Markup {
    html! {
        (told::outputs(matrix))
        (evidence::work(matrix))
        (evidence::marks(matrix))
        (evidence::worst(matrix))
        (provenance::provenance(matrix))
        (evidence::consoles(matrix))
    }
}

/// The commands that lead to the same digests.
pub fn commands(runs: &[Run]) -> Markup {
    html! { pre { (repeat::commands(runs).join("\n")) } }
}

/// A table. A long one is split in two, and the part measured idle is folded.
fn tables(mut sheet: Sheet, matrix: &Matrix<'_>) -> Markup {
    let lines: usize = sheet.sections.iter().map(|one| one.lines.len() + 1).sum();
    let groups = matrix.groups();
    let loaded = groups.iter().filter(|group| !group[0].is_idle()).count();
    let notes = html! { @if !sheet.notes.is_empty() {
        ol.notes { @for note in &sheet.notes { li { (note) } } }
    } };
    if lines <= LONGEST || loaded == 0 || loaded == groups.len() {
        return html! { (table(&sheet)) (notes) };
    }
    let idle = sheet.sections.split_off(loaded);
    let size = counted(idle.len(), "measurement");
    let under_load = table(&sheet);
    sheet.sections = idle;
    html! {
        (under_load)
        (folded("What was measured idle", &size, &table(&sheet)))
        (notes)
    }
}

fn table(sheet: &Sheet) -> Markup {
    let columns = sheet.heads.len() + 1;
    let in_one_line = |head| head_text(head).replace('\n', ", ");
    let names: Vec<String> = sheet.heads.iter().map(in_one_line).collect();
    wide(&html! { table.kept.measured[names.len() > 1] {
        thead { tr {
            th {}
            @for head in &sheet.heads {
                th scope="col" {
                    (head.name) (marks(&head.notes))
                    @if let Some(clock) = &head.clock { small { (clock) } }
                }
            }
        } }
        @for section in &sheet.sections { tbody {
            tr { th.title scope="rowgroup" colspan=(columns) { span { (section.title) } } }
            @for line in &section.lines { (row(line, &names)) }
        } }
    } })
}

/// A figure of all subjects. On a narrow screen each cell names its own subject.
fn row(line: &Line, columns: &[String]) -> Markup {
    html! { tr.strong[line.strong] {
        th scope="row" { (line.label) }
        @for (cell, column) in line.cells.iter().zip(columns) {
            td class=[class(cell)] data-of=(column) { (cell.text) (marks(&cell.notes)) }
        }
    } }
}

fn class(cell: &Shown) -> Option<&'static str> {
    match cell.rank {
        Rank::Lower => Some("low"),
        Rank::Higher | Rank::Wrong => Some("high"),
        Rank::Absent => Some("gap"),
        Rank::Plain => None,
    }
}

fn marks(notes: &[usize]) -> Markup {
    let numbers: Vec<String> = notes.iter().map(ToString::to_string).collect();
    html! { @if !numbers.is_empty() { sup { (numbers.join(",")) } } }
}

/// A group's first figure and its seeds.
/// Figures that say more, or the same in another way, are folded.
fn group(group: &Group) -> Markup {
    let is_shown = |(at, one): &(usize, &Figure)| *at == 0 || one.kind == Kind::Seeds;
    let figures = group.figures.iter().enumerate();
    let (shown, more): (Vec<_>, Vec<_>) = figures.partition(is_shown);
    let mut kinds: Vec<&str> = more.iter().map(|(_, one)| one.kind.name()).collect();
    kinds.dedup();
    let drawn = html! { @for (_, one) in &more { (figure(one)) } };
    html! { section {
        @for (_, one) in &shown { (figure(one)) }
        @if !more.is_empty() {
            (folded(&format!("More of {}", group.title), &kinds.join("; "), &drawn))
        }
    } }
}

fn figure(drawn: &Figure) -> Markup {
    html! { figure {
        h4 { (drawn.subject) ": " span { (drawn.kind.name()) } }
        @if !drawn.keys.is_empty() {
            ul.key { @for key in &drawn.keys { li { (key.swatch) " " (key.text) } } }
        }
        (drawn.svg)
        figcaption { (drawn.caption) }
    } }
}

/// Explains virtual time.
const VIRTUAL_TIME: &str = "Virtual time counts instructions. It says how long a code path is, \
    exactly and for everybody alike; it does not say how many microseconds a certain CPU needs \
    for it: caches, memory, firmware and CPUs that the guest does not have are not modelled. Use \
    it to see which kernel, option, driver or patch has the longer path where the CPU cannot be \
    had, and whether tomorrow's kernel still has it. One run's worst case is the worst of one \
    interleaving; several seeds say more. “Missed” are periods in which no sample was taken, \
    because the one before it was late by more than a period.";

#[cfg(test)]
mod tests {
    use punctual_model::MachineRecord;
    use punctual_model::machine::HostMachine;

    use super::*;
    use crate::fixtures::{self, assert_has};

    fn page_of(runs: &[Run]) -> String {
        page(runs, &punctual_published::documents().unwrap())
    }

    #[test]
    fn a_page_needs_nothing_but_itself() {
        let (whole, gaps) = (fixtures::whole(), fixtures::with_gaps());
        for runs in [whole, gaps, fixtures::seeds(5), Vec::new()] {
            let text = page_of(&runs);
            for foreign in "http:// https:// <script <link <img @import url(".split(' ') {
                assert!(!text.contains(foreign), "{foreign}");
            }
            assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>"));
        }
    }

    #[test]
    fn what_counts_stands_first() {
        let text = page_of(&fixtures::seeds(5));
        let order = [
            "Punctual: demo: timer, stress, cpu0: 8.07 µs (rt) to 508 µs (full) at worst</h1>",
            "rt is 47 times lower",
            "<nav>",
            "<table",
            ">timer, stress, cpu0<",
            ">timer, idle, cpu0<",
            ">Share of samples at least so late<",
            ">Worst case of each run<",
            ">Middle and range<",
            ">What the loads did ",
            ">Worst samples ",
            ">Provenance ",
            ">Consoles ",
            "\">To repeat it</h2>",
            "\">How to read virtual time</h2>",
        ];
        assert_has(&text, &order);
        let places = order.map(|part| text.find(part));
        assert!(places.is_sorted(), "{places:?}");
    }

    #[test]
    fn the_title_names_the_worst_row_of_what_the_lead_speaks_of() {
        let of = |cpu, value| fixtures::recording(["timer", "stress", cpu], &[value; 10]);
        let runs = [fixtures::run_with(vec![
            of("cpu0", 5_000),
            of("cpu1", 9_000),
        ])];
        let title = "timer, stress, cpu1: 9.00 µs at worst</h1>";
        assert_has(&page_of(&runs), &[title]);
        // Equals are no span.
        let [run] = runs;
        let mut other = run.clone();
        (other.id, other.subject.name) = ("r9".into(), "other".into());
        assert_has(&page_of(&[run, other]), &[title]);
    }

    #[test]
    fn every_cell_says_something() {
        for runs in [fixtures::whole(), fixtures::with_gaps()] {
            let text = page_of(&runs);
            for cell in text.split("<td").skip(1) {
                assert!(!cell.starts_with("></td>"), "{text}");
                let is_figure = cell.contains("data-of");
                assert!(!is_figure || !cell.contains("\"></td>"), "{cell}");
            }
            // On a narrow screen it says by itself whose it is.
            assert_has(&text, &["data-of=\"rt\""]);
        }
        let text = page_of(&fixtures::with_gaps());
        assert_has(&text, &["failed<sup>1</sup>", "unsupported<sup>2</sup>"]);
        let reasons = [fixtures::NO_MODULE, "panicked: &lt;VFS&gt; unable"];
        assert_has(&text, &reasons);
    }

    #[test]
    fn the_worst_case_is_there_for_each_subject() {
        let text = page_of(&fixtures::whole());
        for cell in ["381 µs", "384 µs", "508 µs", "8.07 µs", "0.301 s"] {
            assert_has(&text, &[&format!(">{cell}</td>")]);
        }
        for run in fixtures::whole() {
            assert!(text.contains(&run.digest().unwrap()), "{}", run.id);
        }
    }

    #[test]
    fn the_worst_of_jitter_is_the_same_everywhere() {
        let values = [-5_000, 4_000, 0].repeat(10);
        let jitter = fixtures::recording(["realfeel", "idle", "rtc 2048 Hz"], &values);
        let mut run = fixtures::run_with(vec![jitter]);
        let text = page_of(std::slice::from_ref(&run));
        assert_has(
            &text,
            &[
                "realfeel, idle, rtc 2048 Hz: 5.00 µs at worst</h1>",
                "<td><b>-5.00 µs</b><br><span class=\"soft\">#0, 0.000 s</span></td>",
                "farthest from zero",
            ],
        );
        // What is known of it is told, and no more.
        run.recordings[0].samples = punctual_model::recording::Samples::default();
        let text = page_of(&[run]);
        let lost = "<b>-5.00 µs</b><br><span class=\"soft\">its place was not kept";
        assert_has(&text, &[lost]);
        assert!(!page_of(&fixtures::whole()).contains("farthest from zero"));
    }

    #[test]
    fn runs_in_real_time_are_told_apart_by_their_ids() {
        let mut runs = [1, 1].map(|seed| fixtures::run("rt", seed));
        for (run, id) in runs.iter_mut().zip(["r7", "r8"]) {
            run.machine = MachineRecord::default();
            run.id = id.to_owned();
        }
        assert_has(&page_of(&runs), &[">rt, r7<", ">rt, r8<"]);
    }

    #[test]
    fn what_the_tracer_caught_is_told_with_its_events_folded() {
        let text = page_of(&[fixtures::caught()]);
        let told = [
            ">What the kernel's tracer caught</h2>",
            "<code>free_one_page</code> ran 508 µs with interrupts off",
            "its longest since it was read last: 16.0 µs, from a to b",
            "What it had noted <span>11 events</span>",
            "wakes punctual-7",
        ];
        assert_has(&text, &told);
        assert!(!text.contains("<script"));
        assert!(!page_of(&fixtures::whole()).contains("tracer caught"));
    }

    #[test]
    fn two_builds_are_told_apart_from_one() {
        let mut runs = fixtures::whole();
        for run in &mut runs {
            run.provenance
                .clone_from(&fixtures::run("rt", 1).provenance);
        }
        assert!(!page_of(&runs).contains("Two builds of one source"));
        let provenance = runs[0].provenance.as_mut().unwrap();
        provenance.version = "#2 SMP".to_owned();
        assert_has(&page_of(&runs), &["Two builds of one source also differ"]);
    }

    #[test]
    fn what_was_printed_is_folded_and_lists_are_compared() {
        let text = page_of(&fixtures::all_probes());
        let printed = "<summary>What was printed ";
        let differences = ["0 lines on none only, 19 on rt only", "<ins>+ rcu</ins>"];
        assert_has(&text, &[printed, "Against the number of threads"]);
        assert_has(&text, &differences);
    }

    #[test]
    fn nothing_foreign_becomes_markup() {
        let evil = "<script>alert(1)</script>\"'&";
        let mut runs = fixtures::with_gaps();
        for run in &mut runs {
            run.suite = evil.into();
            run.subject.name = evil.into();
            run.subject.kernel = evil.into();
            run.subject.boot = evil.into();
            run.error = Some(evil.into());
            run.console = evil.into();
            run.plan = evil.into();
            run.punctual = evil.into();
            run.machine = MachineRecord::Host(HostMachine {
                host: evil.into(),
                ..HostMachine::default()
            });
            if let Some(provenance) = &mut run.provenance {
                provenance.facts.insert(evil.into(), evil.into());
                provenance.cmdline = evil.into();
            }
            for recording in &mut run.recordings {
                recording.key.variant = evil.into();
                recording.output = Some(evil.into());
                recording.settings.insert(evil.into(), evil.into());
            }
            for work in run.steps.iter_mut().flat_map(|step| &mut step.work) {
                work.worker = evil.into();
                work.unit = evil.into();
            }
        }
        let text = page_of(&runs);
        assert!(!text.contains("<script") && text.contains("&lt;script&gt;"));
    }

    #[test]
    fn odd_values_are_shown_or_counted_and_break_nothing() {
        let mut run = fixtures::run("rt", 1);
        for values in [&[][..], &[0], &[-5, 12], &[-7], &[i64::MAX / 4, 9_000]] {
            let variant = format!("{values:?}");
            let odd = fixtures::recording(["odd", "idle", &variant], values);
            run.recordings.push(odd);
        }
        run.machine = MachineRecord::default();
        let text = page_of(&[run.clone()]);
        assert!(text.contains("no sample") && text.contains("-7 ns"));
        assert!(!text.contains(">odd, idle, [-7]: "), "too few samples");
        assert!(text.contains("1 of 2 samples are longer than"));
        assert!(!text.contains("Virtual time") && !text.contains("virtual s"));
        let mut many = vec![run; 30];
        for (run, number) in many.iter_mut().zip(0..) {
            run.subject.name = format!("kernel-{number}");
        }
        assert_has(&page_of(&many), &["kernel-29"]);
    }
}
