// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bound of the scheduling latency: as text, as JSON, as a page.

use std::fmt::Write as _;

use maud::html;
use punctual_model::{Nanos, Run};
use punctual_scope::bound::{Apart, Bound, CAP, Observed, TIMER_GRAIN, Worst};
use serde::Serialize;
use serde_json::{Value, json};

use super::page::to_repeat;
use super::text::paragraph;
use crate::shell::{self, Chapter, wide};
use crate::text::{cut, exact, list, thousands};

/// The form's name and version; `docs/schema/bound-1.json` describes it.
const SCHEMA: &str = "punctual.bound/1";

/// Times are whole nanoseconds of virtual time. New fields may be added to version 1; none is
/// removed or changes its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// The runs that were observed, all of one kernel.
    runs: Vec<Watched<'a>>,
    /// The number of instructions that were followed.
    instructions: u64,
    /// The longest delay of each kind; a kind without delays is missing.
    delays: Vec<Kind<'a>>,
    /// The longest way from the last switch to a sample of the probe timer; null if there was none.
    way_back_ns: Option<Nanos>,
    /// The longest delay of a timer for which an idle CPU waits.
    timer_grain_ns: Nanos,
    /// The interrupts, by entry.
    interrupts: Vec<Vector<'a>>,
    /// The bounds; empty if the model does not fit.
    bounds: Vec<Limit>,
    /// The reason why there is no bound.
    no_bound: Option<&'a str>,
    /// The worst sample of the probe timer.
    observed: Option<Sample<'a>>,
    /// The latest aimed sample that is kept of these runs; null if none is.
    reached: Option<Sample<'a>>,
    /// The parts of the longest bound and of the latest aimed sample, those that lack most first;
    /// empty if one of the two is not known.
    apart: Vec<Portion>,
    /// The number of times that code other than scheduling switched preemption or interrupts off
    /// between the end of a section and the scheduler.
    detours: u64,
    /// The number of times that the followed state was not what the code proved it to be.
    mended: u64,
}

/// A run that was observed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Watched<'a> {
    /// The run.
    run: &'a str,
    /// Its subject.
    subject: &'a str,
    /// Its kernel.
    kernel: &'a str,
    /// Its seed.
    seed: u64,
    /// Its digest.
    digest: Option<String>,
}

/// The delays of one kind.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
struct Kind<'a> {
    /// The symbol of the kind.
    #[cfg_attr(test, schemars(extend("enum" = ["D_POID", "D_PAIE", "D_PSD", "D_ST"])))]
    delay: &'static str,
    /// The longest delay, without interrupts.
    longest_ns: Nanos,
    /// The number of delays.
    count: u64,
    /// The run with the longest.
    run: &'a str,
    /// The step of that run, from 0.
    step: u32,
    /// The functions in which the longest began, the outermost first; empty if that was too long
    /// before its end.
    path: &'a [String],
    /// The function that took most of it.
    most_in: Option<&'a str>,
    /// The time that this function took.
    most_ns: Option<Nanos>,
}

/// The interrupts of one entry.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Vector<'a> {
    /// The entry to which the CPU goes.
    entry: &'a str,
    /// The number of interrupts.
    count: u64,
    /// The longest interrupt: oWCET.
    longest_ns: Nanos,
    /// The smallest distance between two, without sleep: oMIAT; null if there was only one.
    distance_ns: Option<Nanos>,
}

/// The bound with one model of interference.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Limit {
    /// The model of interference.
    #[cfg_attr(
        test,
        schemars(extend("enum" = [
            "none",
            "worst single",
            "sporadic",
            "sliding window",
            "sliding window with oWCET"
        ]))
    )]
    interference: &'static str,
    /// The latency until the thread is scheduled: L; null above 100 ms.
    scheduled_ns: Option<Nanos>,
    /// The latency up to the reading of the clock in user space; also null if no way back was seen.
    sampled_ns: Option<Nanos>,
}

/// A sample with which the bound is compared.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Sample<'a> {
    /// Its run.
    run: &'a str,
    /// Its recording.
    recording: &'a str,
    /// Its lateness.
    late_ns: Nanos,
    /// The time from it to a second timer that was aimed, too; null if there was none.
    second_ns: Option<Nanos>,
}

/// A part of the bound, and of the latest aimed sample.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Portion {
    /// The part.
    #[cfg_attr(test, schemars(extend("enum" = ["what is off", "interrupts", "the path"])))]
    part: &'static str,
    /// Its length in the bound.
    bound_ns: Nanos,
    /// Its length in the sample.
    reached_ns: Nanos,
}

/// The observation and the bounds, no line longer than `width`.
pub fn bound_text(runs: &[Run], bound: &Bound, width: usize) -> String {
    let instructions = thousands(bound.instructions);
    let mut text = paragraph(&answer(bound), width) + "\n";
    text += &paragraph(
        &format!("{}: {instructions} instructions", named(runs)),
        width,
    );
    text += "\nlongest, without interrupts   ns\n";
    for worst in &bound.delays {
        text += &delay_text(worst, width);
    }
    text += "\ninterrupts        times    oWCET ns    oMIAT ns\n";
    for vector in &bound.interrupts.vectors {
        let (count, longest) = (thousands(vector.count), exact(vector.longest));
        let distance = vector.distance.map_or_else(|| "–".to_owned(), exact);
        let name = cut(&vector.name, width.saturating_sub(49));
        let _ = writeln!(text, "{count:>23} {longest:>11} {distance:>11}  {name}");
    }
    text.push('\n');
    if let Some(why) = &bound.misfit {
        text += &paragraph(&format!("No bound: {why}."), width);
        for note in samples(bound) {
            text += &paragraph(&note, width);
        }
        return text;
    }
    text += "interference               scheduled ns    sampled ns\n";
    for latency in &bound.latencies {
        let name = latency.interference.name();
        let [scheduled, sampled] = [latency.scheduled, latency.sampled].map(shown);
        let _ = writeln!(text, "{name:<25} {scheduled:>13} {sampled:>13}");
    }
    text.push('\n');
    for note in notes(bound) {
        text += &paragraph(&note, width);
    }
    text
}

/// The bound in one sentence.
/// It takes that account of interference that makes the bound longest, of those that have an end.
/// It is the bound of `timer`'s sample, if its way back was seen.
fn answer(bound: &Bound) -> String {
    if let Some(why) = &bound.misfit {
        return format!("No bound: {why}.");
    }
    let most = |of: fn(&punctual_scope::bound::Latency) -> Option<Nanos>| {
        bound.latencies.iter().filter_map(of).max()
    };
    let (sampled, scheduled) = (most(|one| one.sampled), most(|one| one.scheduled));
    let told = match (sampled, scheduled) {
        (Some(time), _) => format!("At most {time} for the probe"),
        (None, Some(time)) => format!("At most {time} until the thread is scheduled"),
        (None, None) => return format!("No bound below {CAP}."),
    };
    let worst = bound.observed.as_ref();
    let worst = worst.map_or_else(String::new, |worst| {
        format!("; the worst sample was {}", worst.late)
    });
    format!("{told} (every alignment of what was seen){worst}.")
}

fn delay_text(worst: &Worst, width: usize) -> String {
    let delay = &worst.delay;
    let (symbol, what) = (delay.kind.symbol(), delay.kind.name());
    let (longest, run, step) = (exact(delay.longest), &worst.run, delay.step + 1);
    let times = thousands(delay.count);
    let line = format!("{symbol:<7}{longest:>25}  {run}, step {step}; {times} times {what}");
    let mut text = cut(&line, width) + "\n";
    let indent = " ".repeat(34);
    for line in crate::text::wrap(&path(worst), &indent, &indent, width) {
        text += &(line + "\n");
    }
    if let Some((most, time)) = &delay.most {
        let line = format!("{indent}most of it in {most}: {}", exact(*time));
        text += &(cut(&line, width) + "\n");
    }
    text
}

/// The functions that a delay began in: `entry_SYSCALL_64 › do_syscall_64 › …`.
fn path(worst: &Worst) -> String {
    if worst.delay.path.is_empty() {
        return "began too long before its end to be remembered".to_owned();
    }
    worst.delay.path.join(" › ")
}

/// `r1, rt; r2, rt`.
fn named(runs: &[Run]) -> String {
    let names: Vec<String> = runs.iter().map(|run| super::name(run, ",")).collect();
    names.join("; ")
}

fn shown(latency: Option<Nanos>) -> String {
    latency.map_or_else(|| "none".to_owned(), exact)
}

/// Returns notes without which the numbers may be misread.
fn notes(bound: &Bound) -> Vec<String> {
    let mut notes = vec![format!(
        "Scheduled: L = max(D_ST, D_POID) + D_PAIE + D_PSD + I(L), for a thread of the highest \
         priority, of all alignments of what was observed; a path that never ran is in no D. None: \
         above {CAP}."
    )];
    if let Some(way) = bound.way_back {
        notes.push(format!(
            "Sampled: up to the reading of the clock by the probe timer, with the longest way from \
             the switch to it ({} ns) and the timer's grain ({} ns).",
            exact(way),
            exact(TIMER_GRAIN)
        ));
    }
    notes.extend(samples(bound));
    if bound.reached.is_none() {
        notes.push(
            "Option --aim aims samples at the latest arrivals, and says what of the bound they \
             reach."
                .to_owned(),
        );
    }
    notes.extend(apart(bound));
    if bound.detours > 0 {
        notes.push(format!(
            "The model was left {} times: something else was switched off between the end of a \
             section and the scheduler; D_PAIE has that time in it.",
            thousands(bound.detours)
        ));
    }
    notes
}

/// Describes the worst sample and the latest aimed one, as far as they are known.
fn samples(bound: &Bound) -> Vec<String> {
    let worst = bound.observed.as_ref().map(|observed| {
        let late = exact(observed.late);
        let (run, recording) = (&observed.run, &observed.recording);
        format!("Worst sample: {late} ns ({run}, {recording}).")
    });
    let aimed = bound.reached.as_ref().map(|reached| {
        let late = exact(reached.late);
        let (run, recording) = (&reached.run, &reached.recording);
        let second = reached.second.map_or_else(String::new, |behind| {
            let behind = exact(behind);
            format!(", with a second timer due {behind} ns after its own")
        });
        format!("Latest aimed sample: {late} ns ({run}, {recording}){second}.")
    });
    worst.into_iter().chain(aimed).collect()
}

/// Describes the share of the bound that was reached.
/// It also names the parts that never met in an aimed sample.
fn apart(bound: &Bound) -> Option<String> {
    let parts = bound.apart();
    let all = parts.iter().fold(Nanos::ZERO, |sum, one| sum + one.bound);
    let late = bound.reached.as_ref()?.late;
    let is_short = |one: &&Apart| one.reached < one.bound;
    let short: Vec<&Apart> = parts.iter().filter(is_short).take(2).collect();
    let each = short.iter().map(|one| {
        let (bound, reached) = (exact(one.bound), exact(one.reached.max(Nanos::ZERO)));
        format!("{} ({bound} ns, reached {reached} ns)", one.part.name())
    });
    let each: Vec<String> = each.collect();
    let met = match each.as_slice() {
        [] => return None,
        [one] => format!("Its {one} came never whole in an aimed sample."),
        several => format!("These never met in an aimed sample: {}.", list(several)),
    };
    let percent = 100.0 * late.0 as f64 / all.0.max(1) as f64;
    let all = exact(all);
    Some(format!(
        "Reached: {percent:.0} % of the bound of {all} ns. {met}"
    ))
}

/// The observation and the bounds. All times are integer nanoseconds, virtual ones.
pub fn bound_json(runs: &[Run], bound: &Bound) -> Value {
    let runs = runs.iter().map(|run| Watched {
        run: &run.id,
        subject: &run.subject.name,
        kernel: &run.subject.kernel,
        seed: run.seed,
        digest: run.digest(),
    });
    let interrupts = bound.interrupts.vectors.iter().map(|vector| Vector {
        entry: &vector.name,
        count: vector.count,
        longest_ns: vector.longest,
        distance_ns: vector.distance,
    });
    let bounds = bound.latencies.iter().map(|latency| Limit {
        interference: latency.interference.name(),
        scheduled_ns: latency.scheduled,
        sampled_ns: latency.sampled,
    });
    let apart = bound.apart().into_iter().map(|one| Portion {
        part: one.part.name(),
        bound_ns: one.bound,
        reached_ns: one.reached,
    });
    json!(Document {
        schema: SCHEMA,
        runs: runs.collect(),
        instructions: bound.instructions,
        delays: bound.delays.iter().map(Kind::of).collect(),
        way_back_ns: bound.way_back,
        timer_grain_ns: TIMER_GRAIN,
        interrupts: interrupts.collect(),
        bounds: bounds.collect(),
        no_bound: bound.misfit.as_deref(),
        observed: bound.observed.as_ref().map(Sample::of),
        reached: bound.reached.as_ref().map(Sample::of),
        apart: apart.collect(),
        detours: bound.detours,
        mended: bound.mended,
    })
}

impl<'a> Kind<'a> {
    fn of(worst: &'a Worst) -> Self {
        let delay = &worst.delay;
        let most = delay.most.as_ref();
        Self {
            delay: delay.kind.symbol(),
            longest_ns: delay.longest,
            count: delay.count,
            run: &worst.run,
            step: delay.step,
            path: &delay.path,
            most_in: most.map(|(function, _)| function.as_str()),
            most_ns: most.map(|(_, time)| *time),
        }
    }
}

impl<'a> Sample<'a> {
    fn of(sample: &'a Observed) -> Self {
        Self {
            run: &sample.run,
            recording: &sample.recording,
            late_ns: sample.late,
            second_ns: sample.second,
        }
    }
}

/// The page about a bound.
pub fn bound_page(runs: &[Run], bound: &Bound) -> String {
    let delays = html! { table.text.kept {
        thead { tr {
            th { "delay" } th.number { "longest, ns" } th.number { "times" } th { "where" }
            th { "began in" } th { "most of it in" }
        } }
        tbody { @for worst in &bound.delays { tr {
            td { (worst.delay.kind.symbol()) " " span.soft { (worst.delay.kind.name()) } }
            td.number { (exact(worst.delay.longest)) }
            td.number { (thousands(worst.delay.count)) }
            td { (worst.run) ", step " (worst.delay.step + 1) }
            td { code { (path(worst)) } }
            td { @if let Some((most, time)) = &worst.delay.most {
                code { (most) } ", " (exact(*time))
            } }
        } } }
    } };
    let interrupts = html! { table.text.kept {
        thead { tr {
            th { "entry" } th.number { "times" } th.number { "oWCET, ns" }
            th.number { "oMIAT, ns" }
        } }
        tbody { @for vector in &bound.interrupts.vectors { tr {
            td { code { (vector.name) } }
            td.number { (thousands(vector.count)) }
            td.number { (exact(vector.longest)) }
            td.number { (vector.distance.map_or_else(|| "–".to_owned(), exact)) }
        } } }
    } };
    let latencies = html! {
        @if let Some(why) = &bound.misfit {
            p { "No bound: " (why) "." }
            @for note in samples(bound) { p { (note) } }
        } @else {
            table.text.kept {
                thead { tr {
                    th { "interference" } th.number { "scheduled, ns" }
                    th.number { "sampled, ns" }
                } }
                tbody { @for latency in &bound.latencies { tr {
                    td { (latency.interference.name()) }
                    td.number { (shown(latency.scheduled)) }
                    td.number { (shown(latency.sampled)) }
                } } }
            }
            @for note in notes(bound) { p { (note) } }
        }
    };
    let ids: Vec<String> = runs.iter().map(|run| run.id.clone()).collect();
    let command = format!("punctual bound {}", ids.join(" "));
    let chapters = vec![
        Chapter::new("Bounds", latencies),
        Chapter::new("Delays", wide(&delays)),
        Chapter::new("Interrupts", wide(&interrupts)),
        to_repeat(runs, &command),
    ];
    let lead = html! { p.soft {
        (thousands(bound.instructions)) " instructions of " (list(&ids)) ". Times are virtual \
        nanoseconds: lengths of code paths, not times of a certain CPU."
    } };
    shell::page(
        &format!("{}: how late at most?", named(runs)),
        &lead,
        chapters,
    )
}

#[cfg(test)]
mod tests;
