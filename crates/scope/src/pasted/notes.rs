// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notes on what a trace does not show, and on what would show it.

use std::collections::BTreeSet;

use punctual_formats::ftrace::{Clock, Trace};
use punctual_model::Nanos;
use punctual_model::capture::Happened;

use super::{Page, Told};

pub const NO_NOISE: &str = "it has no events of osnoise: what ran between the interrupt and the \
                            thread is not in it";

/// Lists what is not in a trace.
pub fn of(page: &Page<'_>, told: &Told) -> Vec<String> {
    let mut notes = Vec::new();
    let trace = page.trace;
    if trace.lost > 0 {
        notes.push(format!(
            "{} events were lost: what is between two events may be among them",
            trace.lost
        ));
    }
    notes.extend(cut(page));
    notes.extend(clock(page));
    let cpus: BTreeSet<u32> = trace.cpus.iter().copied().collect();
    if let (1, Some(cpu)) = (cpus.len(), cpus.first()) {
        notes.push(format!(
            "it has events of CPU {cpu} alone: what other CPUs did is not in it"
        ));
    }
    let has = |is: fn(&Happened) -> bool| trace.events.iter().any(|event| is(&event.what));
    let is_noise = has(|what| matches!(what, Happened::Noise { .. }));
    let is_of_events = ["nop", "events"].contains(&page.tracer.as_str());
    if is_of_events && !is_noise && !trace.events.is_empty() {
        if !has(|what| matches!(what, Happened::Switch { .. })) {
            notes.push("it has no sched_switch events: who ran is not in it".into());
        }
        if !has(|what| matches!(what, Happened::IrqEntry { .. })) {
            notes.push("it has no events of interrupts: they show by the flags alone".into());
        }
    }
    if told.source.starts_with("wakeup") {
        notes.push(
            "the tracer begins at the wake-up: how late the interrupt was that brought it is \
             not in it"
                .into(),
        );
    }
    if trace.unread > 0 {
        notes.push(format!("{} lines are of no known form", trace.unread));
    }
    notes
}

/// Notes that the text holds fewer events than its head says.
fn cut(page: &Page<'_>) -> Option<String> {
    let head = |key: &str| {
        let mut lines = page.text.lines();
        let rest = lines.find_map(|line| Some(line.split_once(key)?.1))?;
        let rest = rest.split([',', ' ']).find(|word| word.contains('/'))?;
        let (kept, written) = rest.trim().split_once('/')?;
        let number = |text: &str| text.trim_start_matches('#').parse::<usize>().ok();
        Some((number(kept)?, number(written)?))
    };
    let own = page.trace.events.len();
    let counts = head("# latency: ").or_else(|| head("entries-in-buffer/entries-written:"))?;
    let (kept, written) = counts;
    if own * 10 < kept * 9 && own + 4 < kept {
        return Some(format!(
            "it holds {own} of the {kept} events of its trace: it was cut"
        ));
    }
    (kept < written).then(|| {
        let gone = written - kept;
        format!("{gone} older events had been overwritten")
    })
}

fn clock(page: &Page<'_>) -> Option<String> {
    let trace = page.trace;
    if trace.clock == Clock::Order {
        return Some(
            "its clock counts (counter, x86-tsc): the order is known, and no duration".into(),
        );
    }
    is_coarse(trace)
        .then(|| "its clock tells whole milliseconds (uptime): what is shorter is not in it".into())
}

/// Returns true if its clock tells whole milliseconds.
pub fn is_coarse(trace: &Trace) -> bool {
    let moments: BTreeSet<i64> = trace.events.iter().map(|event| event.at.0).collect();
    let is_whole = moments.iter().all(|at| at % 1_000_000 == 0);
    trace.clock == Clock::Time && trace.events.len() > 4 && is_whole
}

/// Returns the commands that tell it, for a wait of this length.
pub fn commands(whole: Nanos) -> Vec<String> {
    // A little less, so that the same is caught again.
    let limit = match whole.0 / 1_000 * 4 / 5 {
        0..20 => 20,
        micros => micros,
    };
    vec![
        format!("rtla timerlat top -a {limit}"),
        format!("trace-cmd record -e sched -e irq -e timer cyclictest -m -p 95 -b {limit}"),
        format!("punctual run demo --bench host --stop-above {limit}us"),
    ]
}
