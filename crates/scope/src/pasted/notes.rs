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
    let losses = losses_without_number(page.text);
    let known = match trace.lost {
        1 => "1 event was lost".to_owned(),
        lost => format!("{lost} events were lost"),
    };
    let lost = match (trace.lost, losses) {
        (0, 0) => None,
        (_, 0) => Some(known),
        (0, _) => Some("an unknown number of events were lost".to_owned()),
        _ => Some(known + ", and an unknown number more"),
    };
    notes.extend(lost.map(|lost| lost + ": what is between two events may be among them"));
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
    let unread = trace.unread.saturating_sub(losses);
    match unread {
        0 => {}
        1 => notes.push("1 line is of no known form".into()),
        _ => notes.push(format!("{unread} lines are of no known form")),
    }
    notes
}

/// Returns the number of lines that say that events were lost, but not how many:
/// `CPU:0 [LOST EVENTS]`, or `CPU:0 [EVENTS DROPPED]` of trace-cmd. They count as unread.
pub fn losses_without_number(text: &str) -> u64 {
    let is_one = |line: &&str| {
        let head = line.trim().strip_prefix("CPU:");
        let said = head.and_then(|head| head.split_once(" ["));
        matches!(said, Some((_, "LOST EVENTS]" | "EVENTS DROPPED]")))
    };
    text.lines().filter(is_one).count() as u64
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

#[cfg(test)]
mod tests {
    use punctual_formats::ftrace;

    use super::super::explain;

    #[test]
    fn a_loss_without_a_number_is_not_none() {
        let lines = "# tracer: nop\n\
            <idle>-0 [003] dNh2. 501.100000: sched_waking: comm=rt pid=8 prio=19 target_cpu=003\n\
            LOST\
            <idle>-0 [003] d..2. 501.100450: sched_switch: prev_comm=swapper/3 prev_pid=0 \
            prev_prio=120 prev_state=R ==> next_comm=rt next_pid=8 next_prio=19\n";
        let notes = |lost: &str| explain(&lines.replace("LOST", lost))[0].notes.clone();
        let unknown = "CPU:3 [LOST EVENTS]\n";
        let dropped = "CPU:3 [EVENTS DROPPED]\n";
        let known = "CPU:3 [LOST 12 EVENTS]\n";
        for (lost, told) in [
            (
                unknown.to_owned(),
                "an unknown number of events were lost: ",
            ),
            (
                dropped.to_owned(),
                "an unknown number of events were lost: ",
            ),
            (known.to_owned(), "12 events were lost: "),
            (known.replace("12", "1"), "1 event was lost: "),
            (
                known.replace("12", "1") + dropped,
                "1 event was lost, and an unknown number more: ",
            ),
            (
                known.to_owned() + unknown,
                "12 events were lost, and an unknown number more: ",
            ),
        ] {
            let notes = notes(&lost);
            assert!(notes.iter().any(|note| note.starts_with(told)), "{notes:?}");
            assert!(
                !notes.iter().any(|note| note.contains("no known form")),
                "{notes:?}"
            );
        }
        assert!(!notes("").iter().any(|note| note.contains("lost")));
        let notes = notes("nonsense\n");
        assert!(notes.contains(&"1 line is of no known form".to_owned()));
    }

    #[test]
    fn a_loss_with_a_number_is_none_without() {
        let lost = "CPU:3 [LOST EVENTS]\nCPU:3 [EVENTS DROPPED]\nCPU:3 [LOST 12 EVENTS]\n";
        let trace = ftrace::read(lost);
        assert_eq!((trace.lost, trace.unread), (12, 2));
        assert_eq!(super::losses_without_number(lost), 2);
    }
}
