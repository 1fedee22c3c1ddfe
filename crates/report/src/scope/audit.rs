// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events that reached CPUs that were to be left alone: as text, as JSON, as a page.

use std::cmp::Reverse;
use std::fmt::Write as _;

use maud::html;
use punctual_model::{Nanos, Recording, Run};
use punctual_scope::audit::{Audit, Intruder, Sender};
use serde::Serialize;
use serde_json::{Value, json};

use super::page::to_repeat;
use super::text::paragraph;
use crate::names::Names;
use crate::repeat::quoted;
use crate::shell::{self, Chapter, wide};
use crate::text::{counted, cut, exact, list, thousands, wrap};

/// The form's name and version; `docs/schema/audit-1.json` describes it.
const SCHEMA: &str = "punctual.audit/1";
/// The columns of one run in a table of several.
const COLUMN: usize = 7;
/// The least columns for the names of its rows.
const NAME: usize = 36;

/// Times are whole nanoseconds of virtual time. New fields may be added to version 1; none is
/// removed or changes its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// The runs.
    runs: Vec<OfRun<'a>>,
}

/// A run, and the events that reached each of its CPUs that were watched.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OfRun<'a> {
    /// The run.
    run: &'a str,
    /// Its subject.
    subject: &'a str,
    /// Its kernel.
    kernel: &'a str,
    /// Its boot arguments.
    boot: &'a str,
    /// The run's digest.
    digest: Option<String>,
    /// Its recordings, each of one CPU.
    recordings: Vec<Watched<'a>>,
}

/// A recording, and the events that reached its CPU.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Watched<'a> {
    /// Its step, from 0.
    step: u32,
    #[serde(flatten)]
    names: Names<'a>,
    /// The number of interruptions.
    interruptions: u64,
    /// The time for which the CPU was watched.
    observed_ns: Option<Nanos>,
    /// All interruptions together, with the turns of other CPUs.
    sum_ns: Nanos,
    /// The longest interruption; null if there was none.
    longest_ns: Option<Nanos>,
    /// The events, the one that took most time first; one interruption can contain several.
    came_in: Vec<CameIn<'a>>,
    /// The samples whose events cannot be determined.
    not_explained: Vec<NotExplained<'a>>,
}

/// An event that came in again and again from the same place.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CameIn<'a> {
    /// The entry to which the CPU went, such as `apic_timer_interrupt`; or the thread that got it.
    entry: &'a str,
    /// The functions that were carried out there because somebody had asked for them: timers, work,
    /// functions for this CPU.
    did: &'a [String],
    /// The sender; null if no other CPU sent it, or if it was sent before the sample was watched.
    sender: Option<Sent<'a>>,
    /// The number of times.
    times: usize,
    /// The time that the CPU itself spent on it, without the turns of other CPUs.
    sum_ns: Nanos,
    /// The longest single time.
    longest_ns: Nanos,
    /// The number of the sample with the longest time.
    longest_in: u64,
}

/// The sender of an interrupt to another CPU.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Sent<'a> {
    /// The CPU that sent it.
    cpu: u32,
    /// The threads for which it ran, each once; for an interrupt, the thread that it met.
    threads: &'a [String],
    /// The function that sent it, and those that called it, the innermost first.
    functions: &'a [String],
}

/// A sample whose events cannot be determined.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct NotExplained<'a> {
    /// Its number.
    seq: u64,
    /// The reason.
    why: &'a str,
}

/// A run, and the events that reached each of its CPUs that were watched.
pub type Audited = (Run, Vec<Audit>);

/// Describes the events: a table of all runs, then each run with the senders.
/// No line is longer than `width`.
pub fn audit_text(audited: &[Audited], width: usize) -> String {
    let mut text = String::new();
    if audited.len() > 1 {
        for table in tables(audited) {
            text += &table_text(audited, &table, width);
        }
    }
    for (run, audits) in audited {
        for audit in audits {
            text += &recording_text(run, audit, width);
        }
    }
    text
}

/// The count of each event, by run, of recordings that are the same measurement.
struct Table {
    /// `noise / idle / cpu1`.
    title: String,
    /// The counts of each run; `None` if it did not measure that.
    rows: Vec<(String, Vec<Option<usize>>)>,
}

fn tables(audited: &[Audited]) -> Vec<Table> {
    let mut titles: Vec<String> = Vec::new();
    for (run, audits) in audited {
        let own = audits.iter().map(|audit| recording(run, audit).title());
        for title in own {
            if !titles.contains(&title) {
                titles.push(title);
            }
        }
    }
    titles
        .into_iter()
        .map(|title| table(audited, title))
        .collect()
}

fn table(audited: &[Audited], title: String) -> Table {
    let of_run = |(run, audits): &'_ Audited| {
        let own = audits
            .iter()
            .position(|audit| recording(run, audit).title() == title);
        own.map(|number| audits[number].intruders.clone())
    };
    let found: Vec<Option<Vec<Intruder>>> = audited.iter().map(of_run).collect();
    let mut names: Vec<String> = Vec::new();
    for name in found.iter().flatten().flatten().flat_map(Intruder::names) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let times = |name: &String, all: &[Intruder]| {
        let own = all.iter().filter(|one| one.names().contains(name));
        own.map(|one| one.times).sum::<usize>()
    };
    let row = |name: String| {
        let counts = found.iter().map(|all| Some(times(&name, all.as_ref()?)));
        let counts: Vec<Option<usize>> = counts.collect();
        (name, counts)
    };
    let mut rows: Vec<_> = names.into_iter().map(row).collect();
    rows.sort_by_key(|(_, counts)| Reverse(counts.iter().flatten().sum::<usize>()));
    Table { title, rows }
}

fn table_text(audited: &[Audited], table: &Table, width: usize) -> String {
    let fitting = (width.saturating_sub(NAME) / COLUMN).clamp(1, audited.len());
    let name = width.saturating_sub(fitting * COLUMN + 1).min(60);
    let mut text = format!("{}: how often what came in\n", table.title);
    for (run, _) in audited {
        text += &paragraph(&super::name(run, ","), width);
    }
    for first in (0..audited.len()).step_by(fitting) {
        let runs = &audited[first..audited.len().min(first + fitting)];
        let heads = runs.iter().map(|(run, _)| run.id.clone());
        let _ = writeln!(text, "\n{}", row("", name, heads));
        for (what, counts) in &table.rows {
            let own = &counts[first..first + runs.len()];
            let cells = own.iter().map(|count| cell(*count));
            let _ = writeln!(text, "{}", row(&cut(what, name), name, cells));
        }
    }
    text + "\n"
}

/// A row of a table, its name so wide.
fn row(name: &str, wide: usize, cells: impl Iterator<Item = String>) -> String {
    cells.fold(format!("{name:wide$}"), |row, cell| {
        format!("{row}{cell:>COLUMN$}")
    })
}

fn cell(count: Option<usize>) -> String {
    count.map_or_else(|| "–".to_owned(), |count| thousands(count as u64))
}

fn recording<'a>(run: &'a Run, audit: &Audit) -> &'a Recording {
    &run.recordings[audit.recording]
}

fn heading(run: &Run, audit: &Audit) -> String {
    format!(
        "{}: {}",
        super::name(run, ","),
        recording(run, audit).title()
    )
}

/// `46 interruptions in 500 ms, 882 µs in all, the longest 32.0 µs`.
fn summary(recording: &Recording) -> String {
    let mut text = counted(recording.count as usize, "interruption");
    if let Some(observed) = recording.observed() {
        let _ = write!(text, " in {observed}");
    }
    if let Some(longest) = recording.max() {
        let _ = write!(text, ", {} in all, the longest {longest}", recording.sum);
    }
    text += ".";
    let kept = recording.samples.len();
    if (kept as u64) < recording.count {
        let _ = write!(
            text,
            " The first {} of them were kept.",
            thousands(kept as u64)
        );
    }
    text
}

fn recording_text(run: &Run, audit: &Audit, width: usize) -> String {
    let own = recording(run, audit);
    let mut text = paragraph(&heading(run, audit), width) + &paragraph(&summary(own), width);
    if !audit.intruders.is_empty() {
        text += "   times      sum ns  longest ns  what came in\n";
    }
    for one in &audit.intruders {
        let times = thousands(one.times as u64);
        let (sum, longest) = (exact(one.sum), exact(one.longest));
        let first = format!("{times:>8} {sum:>11} {longest:>11}  ");
        let indent = " ".repeat(first.len() + 2);
        let mut lines = wrap(&one.name(), &first, &indent, width);
        if let Some(sender) = &one.sender {
            lines.extend(wrap(&sent_by(sender), &indent, &indent, width));
        }
        text += &(lines.join("\n") + "\n");
    }
    for (seq, why) in &audit.untold {
        text += &paragraph(&format!("sample {seq} is not explained: {why}"), width);
    }
    if let Some(one) = audit.intruders.first() {
        let told = format!("Each in full: `{}`", example(run, own, one));
        text += &paragraph(&told, width);
    }
    text + "\n"
}

/// `from CPU 0, busybox: native_send_call_func_ipi ← …`.
fn sent_by(sender: &Sender) -> String {
    format!("{}: {}", origin(sender), sender.functions.join(" ← "))
}

fn origin(sender: &Sender) -> String {
    let Sender { cpu, threads, .. } = sender;
    format!("from CPU {cpu}, {}", threads.join(", "))
}

fn example(run: &Run, recording: &Recording, one: &Intruder) -> String {
    let key = &recording.key;
    let [probe, load, variant] = [&key.probe, &key.load, &key.label()].map(|word| quoted(word));
    format!(
        "punctual explain {} --probe {probe} --load {load} --variant {variant} --sample {}",
        run.id, one.longest_in
    )
}

/// The events that reached the CPUs of runs. All times are integer nanoseconds, virtual ones.
pub fn audit_json(audited: &[Audited]) -> Value {
    let runs = audited.iter().map(|(run, audits)| OfRun {
        run: &run.id,
        subject: &run.subject.name,
        kernel: &run.subject.kernel,
        boot: &run.subject.boot,
        digest: run.digest(),
        recordings: audits.iter().map(|audit| watched(run, audit)).collect(),
    });
    json!(Document {
        schema: SCHEMA,
        runs: runs.collect(),
    })
}

fn watched<'a>(run: &'a Run, audit: &'a Audit) -> Watched<'a> {
    let own = recording(run, audit);
    let came_in = audit.intruders.iter().map(|one| CameIn {
        entry: &one.entry,
        did: &one.did,
        sender: one.sender.as_ref().map(|sender| Sent {
            cpu: sender.cpu,
            threads: &sender.threads,
            functions: &sender.functions,
        }),
        times: one.times,
        sum_ns: one.sum,
        longest_ns: one.longest,
        longest_in: one.longest_in,
    });
    let untold = audit.untold.iter();
    Watched {
        step: own.key.step,
        names: Names::from(&own.key),
        interruptions: own.count,
        observed_ns: own.observed(),
        sum_ns: own.sum,
        longest_ns: own.max(),
        came_in: came_in.collect(),
        not_explained: untold
            .map(|(seq, why)| NotExplained { seq: *seq, why })
            .collect(),
    }
}

/// The page about the events that reached the CPUs of runs.
pub fn audit_page(audited: &[Audited]) -> String {
    let runs: Vec<Run> = audited.iter().map(|(run, _)| run.clone()).collect();
    let ids: Vec<String> = runs.iter().map(|run| run.id.clone()).collect();
    let mut chapters = Vec::new();
    if audited.len() > 1 {
        for table in tables(audited) {
            chapters.push(Chapter::new(
                &table.title,
                wide(&table_html(audited, &table)),
            ));
        }
    }
    for (run, audits) in audited {
        for audit in audits {
            chapters.push(Chapter::new(
                heading(run, audit),
                recording_html(run, audit),
            ));
        }
    }
    chapters.push(to_repeat(
        &runs,
        &format!("punctual audit {}", ids.join(" ")),
    ));
    let lead = html! { p.soft {
        "All that took the CPU from a thread that never gives it up, of " (list(&ids)) ", and \
        who sent it. Times are the CPU's own, in virtual nanoseconds: lengths of code paths, \
        without the turns of other CPUs."
    } };
    shell::page(
        "What reached CPUs that were to be left alone",
        &lead,
        chapters,
    )
}

fn table_html(audited: &[Audited], table: &Table) -> maud::Markup {
    html! { table.text.kept {
        thead { tr {
            th { "what came in, times" }
            @for (run, _) in audited { th.number { (run.id) br; (run.subject.name) } }
        } }
        tbody { @for (what, counts) in &table.rows { tr {
            td { code { (what) } }
            @for count in counts { td.number { (cell(*count)) } }
        } } }
    } }
}

fn recording_html(run: &Run, audit: &Audit) -> maud::Markup {
    let own = recording(run, audit);
    let table = html! { table.text.kept {
        thead { tr {
            th.number { "times" } th.number { "sum, ns" } th.number { "longest, ns" }
            th { "what came in" } th { "who sent it" }
        } }
        tbody { @for one in &audit.intruders { tr {
            td.number { (thousands(one.times as u64)) }
            td.number { (exact(one.sum)) }
            td.number { (exact(one.longest)) }
            td { code { (one.name()) } }
            td { @if let Some(sender) = &one.sender {
                (origin(sender)) ": " code { (sender.functions.join(" ← ")) }
            } }
        } } }
    } };
    html! {
        p { (summary(own)) }
        @if !audit.intruders.is_empty() { (wide(&table)) }
        @for (seq, why) in &audit.untold { p { "Sample " (seq) " is not explained: " (why) "." } }
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::Finding;
    use punctual_model::recording::OBSERVED;

    use super::*;
    use crate::fixtures;

    /// A run with one interruption by the tick, and one that CPU 0 sent; and one with none.
    fn audited() -> [Audited; 2] {
        let run = |id: &str, values: &[i64]| {
            let mut one = fixtures::recording(["noise", "idle", "cpu1"], values);
            let observed = Finding::Nanos(Nanos::from_millis(500));
            one.findings.insert(OBSERVED.into(), observed);
            let mut run = fixtures::run_with(vec![one]);
            run.id = id.to_owned();
            run
        };
        let intruder = |entry: &str, did: &[&str], sender| Intruder {
            entry: entry.to_owned(),
            did: did.iter().map(|did| (*did).to_owned()).collect(),
            sender,
            times: 1,
            sum: Nanos(2_287),
            longest: Nanos(2_287),
            longest_in: 1,
        };
        let sender = Sender {
            cpu: 0,
            threads: vec!["<busybox>".to_owned()],
            functions: vec!["native_send_call_func_ipi".to_owned(), "zap".to_owned()],
        };
        let came = vec![
            intruder(
                "apic_timer_interrupt",
                &["tick_nohz_handler", "rcu_core_si"],
                None,
            ),
            intruder("call_function", &["flush_tlb_func"], Some(sender)),
        ];
        let audit = |intruders, untold| Audit {
            recording: 0,
            intruders,
            untold,
        };
        let untold = vec![(2, "no begin".to_owned())];
        [
            (run("r1", &[7_820, 3_690, 900]), vec![audit(came, untold)]),
            (run("r2", &[]), vec![audit(Vec::new(), Vec::new())]),
        ]
    }

    #[test]
    fn each_is_told_with_its_sender_and_what_is_not_told_is_said() {
        let text = audit_text(&audited(), 80);
        let line = |name: &str| format!("{name:60}{:>7}{:>7}\n", 1, 0);
        let expected = [
            "noise / idle / cpu1: how often what came in\n",
            &line("apic_timer_interrupt: rcu_core_si"),
            &line("call_function: flush_tlb_func"),
            "r1, rt: noise / idle / cpu1\n3 interruptions in 500 ms, 12.4 µs in all, the longest 7.82 µs.\n",
            "       1       2,287       2,287  call_function: flush_tlb_func\n",
            "from CPU 0, <busybox>:\n",
            "      native_send_call_func_ipi ← zap\n",
            "sample 2 is not explained: no begin\n",
            "0 interruptions in 500 ms.\n",
        ];
        fixtures::assert_has(&text, &expected);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        // By itself a run needs no table.
        assert!(!audit_text(&audited()[..1], 80).contains("how often"));
    }

    #[test]
    fn what_came_in_is_counted_by_function_in_as_many_tables_as_there_is_room_for() {
        let many: Vec<Audited> = std::iter::repeat_n(audited(), 6).flatten().collect();
        let text = audit_text(&many, 80);
        let heads = text
            .lines()
            .filter(|line| line.trim_start().starts_with("r1 "));
        assert_eq!(heads.count(), 2, "{text}");
    }

    #[test]
    fn a_page_has_all_of_it_and_nothing_in_it_is_markup() {
        let page = audit_page(&audited());
        fixtures::assert_has(
            &page,
            &["from CPU 0, &lt;busybox&gt;", "0 interruptions in"],
        );
    }

    #[test]
    fn what_is_printed_is_what_the_schema_describes() {
        let schema = |value: &_| {
            let text = include_str!("../../../../docs/schema/audit-1.json");
            crate::schema::check("audit-1.json", text, value)
        };
        let mut value = audit_json(&audited());
        schema(&value).unwrap();
        assert_eq!(value["runs"][1]["recordings"][0]["longest_ns"], Value::Null);
        value["runs"][0]["recordings"][0]["came_in"][0]["times"] = json!("often");
        assert!(schema(&value).is_err());
    }

    #[test]
    fn the_schema_is_what_the_type_says() {
        crate::schema::assert_is_of::<Document<'_>>(
            "audit-1.json",
            "Events that reached CPUs that were to be left alone: what `punctual audit --json` \
             prints",
        );
    }
}
