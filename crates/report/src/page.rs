//! The page: one HTML file that needs no network, no script and no other file.

mod against;
mod evidence;
mod improved;
mod published;
mod told;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use punctual_model::run::Run;
use punctual_published::Document;

use crate::compare::Comparison;
use crate::figure::{Figure, Kind, figures};
use crate::matrix::Matrix;
use crate::rows::{Line, Range, Rank, Section, Sheet, Shown, clock_note};
use crate::summary::summary;
use crate::table::head_line;

/// The sections of figures, in their order on the page.
const FIGURES: [(&str, Kind); 8] = [
    ("How often each latency occurred", Kind::Histogram),
    ("Latency against time", Kind::OverTime),
    ("Jitter against sample number", Kind::Jitter),
    ("Average and maximum", Kind::Extremes),
    ("Against the number of threads", Kind::Against),
    ("Spread over seeds", Kind::Seeds),
    ("Throughput", Kind::Bars),
    ("Each execution", Kind::Each),
];

/// Runs side by side as a page: what they say first, beside the documents that they repeat;
/// where it comes from last.
pub fn page(runs: &[Run], documents: &[Document]) -> String {
    whole(runs, documents, None)
}

/// The same, with each subject's figures against the first one's.
pub fn comparison_page(runs: &[Run], documents: &[Document], comparison: &Comparison) -> String {
    whole(runs, documents, Some(comparison))
}

fn whole(runs: &[Run], documents: &[Document], comparison: Option<&Comparison>) -> String {
    let matrix = Matrix::new(runs);
    let title = format!("Punctual: {}", matrix.suites().join(" and "));
    let head = PreEscaped(include_str!("page/style.css"));
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (head) }
            }
            body {
                h1 { (title) }
                p.lead { (unbroken(&summary(runs))) }
                @if let Some(comparison) = comparison { (against::against(comparison)) }
                @if !matrix.columns.is_empty() { (contents(runs, &matrix, documents)) }
            }
        }
    };
    markup.into_string()
}

/// Keeps numbers and their units on one line.
fn unbroken(text: &str) -> String {
    let units = ["ns", "µs", "ms", "s", "%"];
    units.iter().fold(text.to_owned(), |text, unit| {
        text.replace(&format!(" {unit} "), &format!("\u{a0}{unit} "))
    })
}

fn contents(runs: &[Run], matrix: &Matrix<'_>, documents: &[Document]) -> Markup {
    let sheet = Sheet::new(matrix, Range::Beside);
    let drawn = figures(runs);
    let of = |kind: Kind| drawn.iter().filter(move |figure| figure.kind == kind);
    html! {
        p.soft { (head_line(matrix)) }
        (published::beside(matrix, documents))
        @if !published::repeated(matrix, documents).is_empty() { h2 { "All that was measured" } }
        (table(&sheet))
        @if let Some(note) = clock_note(matrix) { p.soft { (note) } }
        @for (title, kind) in FIGURES { (section(title, of(kind))) }
        @if clock_note(matrix).is_some() { (virtual_time()) }
        (evidence::unmeasured(matrix))
        (told::differences(matrix))
        (told::outputs(matrix))
        (evidence::work(matrix))
        (evidence::worst(matrix))
        (evidence::provenance(matrix))
        (evidence::consoles(matrix))
        (evidence::repeat(matrix))
    }
}

fn table(sheet: &Sheet) -> Markup {
    let columns = sheet.heads.len() + 1;
    html! {
        div.wide { table {
            thead { tr {
                th {}
                @for head in &sheet.heads {
                    th scope="col" {
                        (head.name) (marks(&head.notes))
                        @if let Some(clock) = &head.clock { small { (clock) } }
                    }
                }
            } }
            @for section in &sheet.sections { (rows(section, columns)) }
        } }
        @if !sheet.notes.is_empty() {
            ol.notes { @for note in &sheet.notes { li { (note) } } }
        }
    }
}

fn rows(section: &Section, columns: usize) -> Markup {
    html! {
        tbody {
            tr { th.title scope="rowgroup" colspan=(columns) { (section.title) } }
            @for line in &section.lines { (row(line)) }
        }
    }
}

fn row(line: &Line) -> Markup {
    html! {
        tr.strong[line.strong] {
            th scope="row" { (line.label) }
            @for cell in &line.cells { td class=[class(cell)] { (cell.text) (marks(&cell.notes)) } }
        }
    }
}

fn class(cell: &Shown) -> Option<&'static str> {
    match cell.rank {
        Rank::Lowest => Some("low"),
        Rank::Highest | Rank::Wrong => Some("high"),
        Rank::Absent => Some("gap"),
        Rank::Plain => None,
    }
}

fn marks(notes: &[usize]) -> Markup {
    let numbers: Vec<String> = notes.iter().map(ToString::to_string).collect();
    html! { @if !numbers.is_empty() { sup { (numbers.join(",")) } } }
}

fn section<'a>(title: &str, figures: impl Iterator<Item = &'a Figure>) -> Markup {
    let figures: Vec<&Figure> = figures.collect();
    html! {
        @if !figures.is_empty() {
            h2 { (title) }
            @for drawn in figures {
                (figure(drawn))
            }
        }
    }
}

fn figure(drawn: &Figure) -> Markup {
    html! {
        figure {
            h3 { (drawn.subject) }
            div.wide { (PreEscaped(drawn.inline())) }
            figcaption { (drawn.caption) }
        }
    }
}

fn virtual_time() -> Markup {
    html! {
        h2 { "How to read virtual time" }
        p {
            "Virtual time counts instructions. It says how long a code path is, exactly and for "
            "everybody alike; it does not say how many microseconds a certain CPU needs for it: "
            "caches, memory, firmware and other cores are not modelled. Use it to see which kernel, "
            "option, driver or patch has the longer path where the CPU cannot be had, and whether "
            "tomorrow's kernel still has it. One run's worst case is the worst of one interleaving; "
            "several seeds say more."
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::machine::HostMachine;
    use punctual_model::{MachineRecord, RecordingKey};

    use punctual_model::recording::Recorder;
    use punctual_model::units::Nanos;

    use super::*;
    use crate::fixtures;

    fn page_of(runs: &[Run]) -> String {
        page(runs, &punctual_published::documents().unwrap())
    }

    #[test]
    fn a_page_needs_nothing_but_itself() {
        for runs in [
            fixtures::whole(),
            fixtures::with_gaps(),
            fixtures::seeds(5),
            Vec::new(),
        ] {
            let text = page_of(&runs);
            for foreign in [
                "http://", "https://", "<script", "<link", "<img", "@import", "url(",
            ] {
                assert!(!text.contains(foreign), "{foreign}");
            }
            assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>"));
        }
    }

    #[test]
    fn what_counts_stands_first() {
        let text = page_of(&fixtures::seeds(2));
        let order = [
            "Punctual: demo</h1>",
            "rt is 47 times lower",
            "<table",
            ">How often each latency occurred<",
            ">Latency against time<",
            ">Spread over seeds<",
            ">Throughput<",
            ">How to read virtual time<",
            ">What the loads did<",
            ">Worst samples<",
            ">Provenance<",
            ">Consoles<",
            ">To repeat it<",
        ];
        let places: Vec<usize> = order
            .iter()
            .map(|part| text.find(part).unwrap_or_else(|| panic!("{part}")))
            .collect();
        assert!(places.is_sorted(), "{places:?}");
    }

    #[test]
    fn every_cell_says_something() {
        for runs in [fixtures::whole(), fixtures::with_gaps()] {
            let text = page_of(&runs);
            assert!(!text.contains("<td></td>") && !text.contains("<td class=\"gap\"></td>"));
        }
        let text = page_of(&fixtures::with_gaps());
        assert!(text.contains("failed<sup>1</sup>") && text.contains("unsupported<sup>2</sup>"));
        assert!(text.contains(fixtures::NO_MODULE));
        assert!(text.contains("panicked: &lt;VFS&gt; unable"));
    }

    #[test]
    fn the_worst_case_is_there_for_each_subject() {
        let text = page_of(&fixtures::whole());
        for cell in [
            ">381 µs</td>",
            ">384 µs</td>",
            ">508 µs</td>",
            ">8.07 µs</td>",
            ">0.301 s</td>",
        ] {
            assert!(text.contains(cell), "{cell}");
        }
        for run in fixtures::whole() {
            assert!(text.contains(&run.digest().unwrap()), "{}", run.id);
        }
    }

    #[test]
    fn what_was_printed_is_folded_and_lists_are_compared() {
        let text = page_of(&fixtures::all_probes());
        assert!(text.contains("<h2>What was printed</h2>"), "{text}");
        assert!(
            text.contains("0 lines only on none, 19 only on rt"),
            "{text}"
        );
        assert!(text.contains("<ins>+ rcu</ins>"), "{text}");
        assert!(text.contains("Against the number of threads"), "{text}");
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
            let mut recorder = Recorder::new(10);
            for value in values {
                recorder.record(Nanos::ZERO, Nanos(*value));
            }
            let variant = format!("{values:?}");
            run.recordings
                .push(recorder.finish(RecordingKey::new("odd", "idle", &variant)));
        }
        run.machine = MachineRecord::default();
        let text = page_of(&[run.clone()]);
        assert!(text.contains("no sample") && text.contains("-7 ns"));
        assert!(
            text.contains(
                "Samples of rt at or below zero, or past the last bin, are not drawn: 1."
            )
        );
        assert!(text.contains("1 of 2 samples are longer than"));
        assert!(!text.contains("Virtual time") && !text.contains("virtual s"));
        let many: Vec<Run> = (0..30)
            .map(|number| {
                let mut run = run.clone();
                run.subject.name = format!("kernel-{number}");
                run
            })
            .collect();
        assert!(page_of(&many).contains("kernel-29"));
    }
}
