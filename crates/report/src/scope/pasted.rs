// SPDX-License-Identifier: MIT OR Apache-2.0
//! The story of a trace from elsewhere, for terminals and as JSON.

use punctual_model::Nanos;
use punctual_scope::pasted::{Kind, Piece, Told};
use serde::Serialize;
use serde_json::{Value, json};

use crate::text::{Lines, clean};

/// The form's name and version; `docs/schema/explained-trace-1.json` describes it.
const SCHEMA: &str = "punctual.explained-trace/1";

/// Times are whole nanoseconds, as precise as the trace. New fields may be added to version 1; none
/// is removed or changes its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// The traces.
    traces: Vec<Trace<'a>>,
}

/// The findings from one trace.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Trace<'a> {
    /// The source that was read: `wakeup_rt`, `events`, `rtla timerlat`.
    source: &'a str,
    /// The answer, as the text has it.
    sentence: String,
    /// The thread that waited, or whose section it is.
    whose: Option<&'a str>,
    /// The CPU on which it was.
    cpu: Option<u32>,
    /// The length of the whole.
    whole_ns: Option<Nanos>,
    /// The parts, in the order of time.
    pieces: Vec<Part<'a>>,
    /// The place in `pieces` of the part that stood in the way for longest; null if it is
    /// undecided.
    culprit: Option<usize>,
    /// The place of another part that took a quarter or more.
    also: Option<usize>,
    /// The number of events that were read.
    events: usize,
    /// The number of events for which the kernel had no room.
    lost: u64,
    /// The number of lines that have no known form.
    unread: u64,
    /// Notes on the trace, and on what it does not show.
    notes: &'a [String],
    /// The reason why it is undecided, if it is.
    undecided: Option<&'a str>,
    /// Commands, each of which would decide it.
    decide: &'a [String],
}

/// A part of the time that somebody waited.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Part<'a> {
    /// The kind of thing that stood in the way.
    #[cfg_attr(
        test,
        schemars(with = "String", extend("enum" = [
            "higher-thread",
            "thread",
            "interrupt",
            "soft-interrupt",
            "interrupts-off",
            "preemption-off",
            "not-preemptible",
            "hardware",
            "idle",
            "scheduler",
            "path",
            "unknown"
        ]))
    )]
    kind: Kind,
    /// Its start, from the moment when the waiting began.
    from_ns: Nanos,
    /// Its length.
    length_ns: Nanos,
    /// The thread that had the CPU.
    thread: Option<&'a str>,
    /// The interrupt, or the function of the kernel.
    what: Option<&'a str>,
    /// The function that called that one.
    caller: Option<&'a str>,
}

/// The width from which on a part has its names beside its times, in columns.
const WIDE: usize = 70;

/// Each trace: a sentence, its parts in the order of time, and what it does not show.
pub fn text(all: &[Told], width: usize) -> String {
    let one = |told: &Told| {
        let mut lines = Lines::new(width);
        lines.put(&sentence(told));
        if !told.pieces.is_empty() {
            lines.line("");
            lines.line(format!(
                "{:>9} {:>9}  {:22}  what",
                "from", "length", "kind"
            ));
        }
        for piece in &told.pieces {
            let kind = word(piece.kind);
            let first = format!("{:>9} {:>9}  {kind:22}  ", piece.from, piece.length);
            let what = clean(&what(piece));
            if width < WIDE {
                lines.line(first.trim_end());
                lines.wrap(&what, "    ", "    ");
            } else {
                lines.wrap(&what, &first, &" ".repeat(45));
            }
        }
        if !told.notes.is_empty() {
            lines.line("");
        }
        for note in &told.notes {
            lines.wrap(&clean(note), "- ", "  ");
        }
        if !told.decide.is_empty() {
            lines.line("");
            lines.put("One of these tells it:");
            for command in &told.decide {
                lines.line(format!("  {command}"));
            }
        }
        lines.finish()
    };
    all.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn what(piece: &Piece) -> String {
    let what = match (&piece.what, &piece.caller) {
        (Some(what), Some(caller)) => format!("{what} called from {caller}"),
        (Some(what), None) => what.clone(),
        (None, _) => String::new(),
    };
    let thread = piece.thread.clone().unwrap_or_default();
    let all = [what, thread];
    let told: Vec<String> = all.into_iter().filter(|text| !text.is_empty()).collect();
    told.join(", in ")
}

/// The word for a kind in a table.
fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::HigherThread => "higher or equal thread",
        Kind::Thread => "another thread",
        Kind::Interrupt => "interrupt",
        Kind::SoftInterrupt => "soft interrupt",
        Kind::InterruptsOff => "interrupts off",
        Kind::PreemptionOff => "preemption off",
        Kind::NotPreemptible => "no preemption point",
        Kind::Hardware => "outside the kernel",
        Kind::Idle => "idle",
        Kind::Scheduler => "scheduler",
        Kind::Path => "the way itself",
        Kind::Unknown => "not shown",
    }
}

/// Names the culprit in one sentence. A second one follows if another part was long, too.
pub fn sentence(told: &Told) -> String {
    let whose = told.whose.as_deref().unwrap_or("the waiting");
    let on = told
        .cpu
        .map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
    let of = match told.whole {
        Some(time) => format!("{time} of {whose}{on}"),
        None => format!("{} trace", told.source),
    };
    let Some(culprit) = told.culprit else {
        let why = told
            .undecided
            .as_deref()
            .unwrap_or("the trace does not say");
        return clean(&format!("{of}: undecided: {why}."));
    };
    let first = format!("{of}: {}.", blame(told, culprit));
    let second = told
        .also
        .map(|also| format!(" Beside it, {}.", blame(told, also)));
    clean(&(first + &second.unwrap_or_default()))
}

/// `the thread a-7, of higher or equal priority, had the CPU for 1.65 ms`
fn blame(told: &Told, place: usize) -> String {
    let piece = &told.pieces[place];
    let held = told.held(place);
    let (thread, in_thread) = match &piece.thread {
        Some(thread) => (
            format!("the thread {thread}"),
            format!(", in the thread {thread}"),
        ),
        None => ("a thread that is not named".to_owned(), String::new()),
    };
    let function = match (&piece.what, &piece.caller) {
        (Some(what), Some(caller)) => format!("`{what}` called from `{caller}`"),
        (Some(what), None) => format!("`{what}`"),
        (None, _) => "code that is not named".to_owned(),
    };
    match piece.kind {
        Kind::HigherThread => {
            format!("{thread}, of higher or equal priority, had the CPU for {held}")
        }
        Kind::Thread => {
            format!("{thread}, of unknown priority, had the CPU for {held}")
        }
        Kind::Interrupt => format!("an interrupt ({}) was handled for {held}", name(piece)),
        Kind::SoftInterrupt => {
            format!("a soft interrupt ({}) was handled for {held}", name(piece))
        }
        Kind::InterruptsOff => {
            format!("{function} had interrupts off for {held}{in_thread}")
        }
        Kind::PreemptionOff => {
            format!("{function} had preemption off, or held a spinning lock, for {held}{in_thread}")
        }
        Kind::NotPreemptible => format!(
            "{function} ran for {held} without a preemption point{in_thread}, on a kernel that \
             gives the CPU away only there"
        ),
        Kind::Hardware if piece.what.as_deref() == Some("NMI") => {
            format!("an interrupt that cannot be masked (NMI) took {held}")
        }
        Kind::Hardware => format!(
            "nothing of the kernel ran for {held}: hardware, firmware (SMI) or a hypervisor had \
             the CPU"
        ),
        Kind::Idle => format!("the CPU took {held} to come out of idle"),
        Kind::Scheduler => format!("the switch of threads itself took {held}"),
        Kind::Path => "nothing stood in the way for long: this is the way itself".to_owned(),
        Kind::Unknown => format!("{held} are not shown"),
    }
}

/// Names an interrupt, by its handler or the function that it ran.
fn name(piece: &Piece) -> String {
    match (&piece.what, &piece.caller) {
        (Some(what), Some(caller)) => format!("`{what}` called from `{caller}`"),
        (Some(what), None) => what.clone(),
        (None, _) => "not named".to_owned(),
    }
}

/// The full story of each trace.
pub fn json(all: &[Told]) -> Value {
    json!(Document {
        schema: SCHEMA,
        traces: all.iter().map(Trace::of).collect(),
    })
}

impl<'a> Trace<'a> {
    fn of(told: &'a Told) -> Self {
        Self {
            source: &told.source,
            sentence: sentence(told),
            whose: told.whose.as_deref(),
            cpu: told.cpu,
            whole_ns: told.whole,
            pieces: told.pieces.iter().map(Part::of).collect(),
            culprit: told.culprit,
            also: told.also,
            events: told.events,
            lost: told.lost,
            unread: told.unread,
            notes: &told.notes,
            undecided: told.undecided.as_deref(),
            decide: &told.decide,
        }
    }
}

impl<'a> Part<'a> {
    fn of(piece: &'a Piece) -> Self {
        Self {
            kind: piece.kind,
            from_ns: piece.from,
            length_ns: piece.length,
            thread: piece.thread.as_deref(),
            what: piece.what.as_deref(),
            caller: piece.caller.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_scope::pasted::explain;
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    /// From `Documentation/tools/rtla/rtla-timerlat-top.rst` of Linux, and one that tells nothing.
    const TEXT: &str = "\
  ## CPU 23 hit stop tracing, analyzing it ##
  IRQ handler delay:                                        27.49 us (65.52 %)
  IRQ latency:                                              28.13 us
  Timerlat IRQ duration:                                     9.59 us (22.85 %)
  Blocking thread:                                           3.79 us (9.03 %)
                         objtool:49256                       3.79 us
    Blocking thread stacktrace
                -> timerlat_irq
                -> asm_sysvec_apic_timer_interrupt
                -> _raw_spin_unlock_irqrestore
                -> cgroup_rstat_flush_locked
                -> cgroup_rstat_flush_irqsafe
    Thread latency:                                          41.96 us (100%)
# tracer: nop
   bash-77  [000] d.h..   840.000100: local_timer_entry: vector=236
";

    #[test]
    fn the_answer_comes_first_and_no_line_is_too_long() {
        let all = explain(TEXT);
        let told = text(&all, 80);
        let first = "\
42.0 µs of rtla's measuring thread on CPU 23: `cgroup_rstat_flush_locked` called
  from `cgroup_rstat_flush_irqsafe` had interrupts off for 27.5 µs, in the
  thread objtool:49256.
";
        assert!(told.starts_with(first), "{told}");
        assert!(
            told.contains("\nevents trace: undecided: nothing in it says"),
            "{told}"
        );
        assert!(told.contains("\n  rtla timerlat top -a 20\n"), "{told}");
        assert!(told.lines().all(|line| line.width() <= 80), "{told}");
        assert!(
            text(&all, 40)
                .lines()
                .take(6)
                .all(|line| line.width() <= 40)
        );
    }

    #[test]
    fn a_thread_that_is_not_named_is_left_out() {
        let block = "                         objtool:49256                       3.79 us\n";
        assert!(TEXT.contains(block));
        let mut told = explain(&TEXT.replace(block, "")).remove(0);
        let said = sentence(&told);
        assert!(said.ends_with(" had interrupts off for 27.5 µs."), "{said}");
        let culprit = told.culprit.unwrap();
        told.pieces[culprit].kind = Kind::Thread;
        let said = sentence(&told);
        let expected =
            ": a thread that is not named, of unknown priority, had the CPU for 27.5 µs.";
        assert!(said.ends_with(expected), "{said}");
    }

    #[test]
    fn json_is_of_its_schema() {
        let schema = include_str!("../../../../docs/schema/explained-trace-1.json");
        let check = |value: &Value| crate::schema::check("explained-trace-1.json", schema, value);
        let mut value = json(&explain(TEXT));
        check(&value).unwrap();
        assert_eq!(value["traces"][0]["pieces"][0]["kind"], "interrupts-off");
        assert_eq!(value["traces"][0]["pieces"][0]["length_ns"], 27_490);
        value["traces"][0]["pieces"][0]["length_ns"] = json!("27 us");
        check(&value).unwrap_err();
    }

    #[test]
    fn the_schema_is_what_the_type_says() {
        crate::schema::assert_is_of::<Document<'_>>(
            "explained-trace-1.json",
            "The story of a trace from elsewhere: what `punctual explain FILE --json` prints",
        );
    }
}
