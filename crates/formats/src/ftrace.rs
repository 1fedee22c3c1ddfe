// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel's tracer prints in `trace` and `per_cpu/cpuN/trace`, with the clock `mono`.
//!
//! ```text
//!  qemu-system-x86-14846   [000] d.h2.   840.061208: sched_waking: comm=sh pid=15145 prio=19 …
//!  qemu-system-x86-14846   [000] d.h2.   840.061215: <stack trace>
//!  => try_to_wake_up
//! ```
//!
//! Lines that are of no known form are counted as lost: a trace is foreign text, and what can
//! be read of it is still worth having.

use punctual_model::Nanos;
use punctual_model::capture::{
    Context, Happened, Longest, NoiseKind, STACK_MOST, Task, TraceEvent,
};

/// No text of an event is kept longer, in bytes.
const DETAIL_MOST: usize = 200;

/// A trace, as far as it could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The events in the order of the text; `at` is the clock's time.
    pub events: Vec<TraceEvent>,
    /// How many events the ring had no room for, and lines that could not be read.
    pub lost: u64,
    /// What a latency tracer says of the longest that it has seen.
    pub longest: Option<Longest>,
}

/// Reads a trace.
pub fn read(text: &str) -> Trace {
    let mut trace = Trace {
        longest: read_longest(text),
        ..Trace::default()
    };
    // The place of the event that functions are read for.
    let mut stack_of = None;
    for line in text.lines() {
        if let Some(function) = line.trim_start().strip_prefix("=> ") {
            let event = stack_of.and_then(|place: usize| trace.events.get_mut(place));
            if let Some(event) = event.filter(|event| event.stack.len() < STACK_MOST) {
                event.stack.push(bounded(function));
            }
        } else if let Some((event, text)) = head(line) {
            if text == "<stack trace>" {
                let own = |other: &TraceEvent| other.task.pid == event.task.pid;
                stack_of = trace.events.iter().rposition(own);
            } else {
                stack_of = None;
                let what = happened(text);
                trace.events.push(TraceEvent { what, ..event });
            }
        } else if let Some(lost) = lost(line) {
            trace.lost += lost;
        } else if !line.starts_with('#') && !line.trim().is_empty() {
            trace.lost += 1;
        }
    }
    align(&mut trace.events);
    trace
}

/// An event without what happened, and the text that says it.
fn head(line: &str) -> Option<(TraceEvent, &str)> {
    // A command's name may hold anything, brackets too.
    line.match_indices(" [").find_map(|(place, _)| {
        let (task, rest) = (&line[..place], &line[place + 2..]);
        let (cpu, rest) = rest.split_once("] ")?;
        cpu.parse::<u32>().ok()?;
        let (comm, pid) = task.trim().rsplit_once('-')?;
        let (flags, rest) = rest.trim_start().split_once(' ')?;
        let (time, text) = rest.trim_start().split_once(": ")?;
        let task = Task {
            comm: bounded(comm),
            pid: pid.parse().ok()?,
        };
        let event = TraceEvent {
            at: seconds(time)?,
            task,
            context: context(flags)?,
            what: Happened::Mark(String::new()),
            stack: Vec::new(),
        };
        Some((event, text.trim()))
    })
}

/// `840.061208`, or with nine decimals, in nanoseconds.
fn seconds(text: &str) -> Option<Nanos> {
    let (whole, decimals) = text.split_once('.')?;
    let is_digits = |text: &str| text.bytes().all(|one| one.is_ascii_digit());
    if !is_digits(whole) || !is_digits(decimals) || !matches!(decimals.len(), 6 | 9) {
        return None;
    }
    let part: i64 = decimals.parse().ok()?;
    let part = if decimals.len() == 6 {
        part * 1_000
    } else {
        part
    };
    let whole: i64 = whole.parse().ok()?;
    whole
        .checked_mul(1_000_000_000)?
        .checked_add(part)
        .map(Nanos)
}

/// `dNh2.`: interrupts, need-resched, interrupt or soft interrupt, preempt-depth, and since 5.11
/// migrate-disable.
fn context(flags: &str) -> Option<Context> {
    let flags: Vec<char> = flags.chars().collect();
    let [irqs, resched, context, depth, ..] = flags[..] else {
        return None;
    };
    if flags.len() > 5 {
        return None;
    }
    Some(Context {
        irqs_off: matches!(irqs, 'd' | 'D'),
        hard_irq: matches!(context, 'h' | 'H' | 'z' | 'Z'),
        soft_irq: matches!(context, 's' | 'H'),
        need_resched: matches!(resched, 'N' | 'n' | 'L' | 'l' | 'B' | 'b'),
        preempt_depth: depth.to_digit(16).unwrap_or(0) as u8,
    })
}

/// `CPU:0 [LOST 123 EVENTS]`
fn lost(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once("[LOST ")?;
    rest.strip_suffix(" EVENTS]")?.trim().parse().ok()
}

fn happened(text: &str) -> Happened {
    let known = text.split_once(": ").and_then(|(name, detail)| {
        let detail = detail.trim();
        match name {
            "sched_switch" => switch(detail),
            "sched_waking" => Some(Happened::Waking {
                task: task(detail, "comm=", " pid=")?,
            }),
            "irq_handler_entry" => Some(Happened::IrqEntry {
                name: bounded(detail.split_once("name=")?.1),
            }),
            "irq_handler_exit" => Some(Happened::IrqExit {
                name: word(detail, "irq=")?,
            }),
            "softirq_entry" => Some(Happened::SoftirqEntry {
                name: action(detail)?,
            }),
            "softirq_exit" => Some(Happened::SoftirqExit {
                name: action(detail)?,
            }),
            "hrtimer_expire_entry" => Some(Happened::TimerExpires {
                function: word(detail, "function=")?,
            }),
            "tracing_mark_write" => Some(Happened::Mark(bounded(detail))),
            _ => vector(name, detail).or_else(|| noise(name, detail)),
        }
    });
    known
        .or_else(|| function(text))
        .unwrap_or_else(|| other(text))
}

fn other(text: &str) -> Happened {
    let (name, detail) = text.split_once(": ").unwrap_or((text, ""));
    Happened::Other {
        name: bounded(name),
        detail: bounded(detail),
    }
}

/// `try_to_wake_up <-hrtimer_wakeup`
fn function(text: &str) -> Option<Happened> {
    let (name, caller) = text.split_once(" <-")?;
    let is_name = |name: &str| !name.is_empty() && !name.contains(' ');
    (is_name(name) && is_name(caller)).then(|| Happened::Function {
        name: bounded(name),
        caller: bounded(caller),
    })
}

/// An entry or exit of `irq_vectors`: `local_timer_entry: vector=236`.
fn vector(name: &str, detail: &str) -> Option<Happened> {
    let is_vector = detail.starts_with("vector=");
    let name = is_vector.then_some(name)?;
    match (name.strip_suffix("_entry"), name.strip_suffix("_exit")) {
        (Some(name), _) => Some(Happened::IrqEntry {
            name: bounded(name),
        }),
        (_, Some(name)) => Some(Happened::IrqExit {
            name: bounded(name),
        }),
        _ => None,
    }
}

fn switch(detail: &str) -> Option<Happened> {
    let (prev, next) = detail.split_once(" ==> ")?;
    Some(Happened::Switch {
        prev: task(prev, "prev_comm=", " prev_pid=")?,
        state: word(prev, "prev_state=")?,
        next: task(next, "next_comm=", " next_pid=")?,
    })
}

fn task(text: &str, comm: &str, pid: &str) -> Option<Task> {
    let rest = text.strip_prefix(comm)?;
    // A command's name may hold anything: its number is the last of that name.
    let (comm, rest) = rest.rsplit_once(pid)?;
    let pid = rest.split(' ').next()?.parse().ok()?;
    let comm = bounded(comm);
    Some(Task { comm, pid })
}

/// The word behind a key.
fn word(text: &str, key: &str) -> Option<String> {
    let (_, rest) = text.split_once(key)?;
    rest.split_whitespace().next().map(bounded)
}

/// `vec=9 [action=RCU]`
fn action(detail: &str) -> Option<String> {
    let (_, rest) = detail.split_once("[action=")?;
    rest.strip_suffix(']').map(bounded)
}

/// `irq_noise: local_timer:236 start 77.123456789 duration 1234 ns`
fn noise(name: &str, detail: &str) -> Option<Happened> {
    let kind = match name {
        "nmi_noise" => NoiseKind::Nmi,
        "irq_noise" => NoiseKind::Irq,
        "softirq_noise" => NoiseKind::Softirq,
        "thread_noise" => NoiseKind::Thread,
        _ => return None,
    };
    let (who, rest) = detail.split_once("start ")?;
    let (start, ran) = rest.split_once(" duration ")?;
    let ran: i64 = ran.strip_suffix(" ns")?.trim().parse().ok()?;
    Some(Happened::Noise {
        kind,
        name: bounded(who.trim()),
        start: seconds(start.trim())?,
        ran: Nanos(ran),
    })
}

/// The events of `osnoise` say by the CPU's own clock when something began: this is made the
/// trace's. An interrupt's event comes at its end, at once where nothing interrupted it.
fn align(events: &mut [TraceEvent]) {
    let offset = |event: &TraceEvent| match event.what {
        Happened::Noise {
            kind: NoiseKind::Irq,
            start,
            ran,
            ..
        } => Some(event.at - (start + ran)),
        _ => None,
    };
    let offset = events.iter().filter_map(offset).min();
    for event in events {
        if let Happened::Noise { start, ran, .. } = &mut event.what {
            *start = match offset {
                Some(offset) => *start + offset,
                None => event.at - *ran,
            };
        }
    }
}

/// Reads the head that latency tracers write, if there is one.
pub fn read_longest(text: &str) -> Option<Longest> {
    let head = || text.lines().take_while(|line| line.starts_with('#'));
    let behind = |key: &str| head().find_map(|line| line.split_once(key).map(|(_, rest)| rest));
    let micros: i64 = behind("# latency: ")?.split(' ').next()?.parse().ok()?;
    let (comm, pid) = behind("| task: ")?.split_once(" (")?.0.rsplit_once('-')?;
    let place = |key| bounded(behind(key).unwrap_or_default().trim());
    Some(Longest {
        latency: Nanos(micros.checked_mul(1_000)?),
        task: Task {
            comm: bounded(comm),
            pid: pid.parse().ok()?,
        },
        started: place("=> started at:"),
        ended: place("=> ended at:"),
    })
}

/// A text, cut where it is too long to be kept.
fn bounded(text: &str) -> String {
    let mut end = text.len().min(DETAIL_MOST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From Linux 6.18 on a virtual machine, cut.
    const EVENTS: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 2598/2894   #P:2
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
CPU:0 [LOST 296 EVENTS]
 qemu-system-x86-14846   [000] d.h..   840.061207: local_timer_entry: vector=236
 qemu-system-x86-14846   [000] d.h..   840.061208: hrtimer_expire_entry: hrtimer=0000000085523dc6 function=hrtimer_wakeup now=840061207104
 qemu-system-x86-14846   [000] d.h2.   840.061208: sched_waking: comm=punctual-target pid=15145 prio=19 target_cpu=000
 qemu-system-x86-14846   [000] d.h2.   840.061215: <stack trace>
 => trace_event_raw_event_sched_wakeup_template
 => try_to_wake_up
 => hrtimer_wakeup
 qemu-system-x86-14846   [000] dNh..   840.061226: local_timer_exit: vector=236
 qemu-system-x86-14846   [000] d..2.   840.061230: sched_switch: prev_comm=a pid=3 [x] prev_pid=14846 prev_prio=130 prev_state=R ==> next_comm=punctual-target next_pid=15145 next_prio=19
 punctual-target-15144   [000] .Ns3.   840.064139: softirq_entry: vec=9 [action=RCU]
 punctual-target-15144   [000] .Ns3.   840.064141: softirq_exit: vec=9 [action=RCU]
     kworker [1]-7       [000] d.H1.   840.064200: irq_handler_entry: irq=28 name=virtio0-input.0
          <idle>-0       [000] ..s1.   840.064300: try_to_wake_up <-hrtimer_wakeup
          <idle>-0       [000] .....   840.064301: tracing_mark_write: mark me
          <idle>-0       [000] .....   840.064302: cpu_idle: state=1 cpu_id=0
";

    #[test]
    fn a_real_trace_is_read_with_its_stacks() {
        let trace = read(EVENTS);
        assert_eq!((trace.events.len(), trace.lost), (11, 296));
        let waking = &trace.events[2];
        assert_eq!(waking.at, Nanos(840_061_208_000));
        assert_eq!(waking.stack[1..], ["try_to_wake_up", "hrtimer_wakeup"]);
        let context = Context {
            irqs_off: true,
            hard_irq: true,
            preempt_depth: 2,
            ..Context::default()
        };
        assert_eq!(waking.context, context);
        assert!(trace.events[3].context.need_resched);
        let Happened::Switch { prev, state, next } = &trace.events[4].what else {
            panic!("{:?}", trace.events[4]);
        };
        assert_eq!((prev.comm.as_str(), prev.pid), ("a pid=3 [x]", 14846));
        assert_eq!((state.as_str(), next.pid), ("R", 15145));
        assert!(trace.events[5].context.soft_irq);
        let device = &trace.events[7];
        assert_eq!(device.task.comm, "kworker [1]");
        assert!(device.context.hard_irq && device.context.soft_irq);
        let entry = Happened::IrqEntry {
            name: "virtio0-input.0".into(),
        };
        assert_eq!(device.what, entry);
        assert!(
            matches!(&trace.events[8].what, Happened::Function { caller, .. } if caller == "hrtimer_wakeup")
        );
        assert_eq!(trace.events[9].what, Happened::Mark("mark me".into()));
        assert!(
            matches!(&trace.events[10].what, Happened::Other { name, .. } if name == "cpu_idle")
        );
    }

    #[test]
    fn noises_begin_by_the_clock_of_the_trace() {
        let text = "\
 a-7  [000] d.h1.    50.000010: irq_noise: local_timer:236 start 40.000001000 duration 9000 ns
 a-7  [000] d.h1.    50.002012: irq_noise: local_timer:236 start 40.002000000 duration 10000 ns
 a-7  [000] d..2.    50.002020: thread_noise:        a:7 start 40.001500000 duration 500000 ns
";
        let starts: Vec<_> = read(text)
            .events
            .into_iter()
            .map(|event| match event.what {
                Happened::Noise { start, .. } => start.0,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(starts, [50_000_001_000, 50_002_000_000, 50_001_500_000]);
    }

    #[test]
    fn latency_tracers_say_what_was_longest() {
        let text = "\
# tracer: irqsoff
#
# irqsoff latency trace v1.1.5 on 3.8.0-test+
# --------------------------------------------------------------------
# latency: 16 us, #4/4, CPU#0 | (M:preempt VP:0, KP:0, SP:0 HP:0 #P:4)
#    -----------------
#    | task: swapper/0-0 (uid:0 nice:0 policy:0 rt_prio:0)
#    -----------------
#  => started at: run_timer_softirq
#  => ended at:   run_timer_softirq
";
        let longest = read_longest(text).unwrap();
        assert_eq!(longest.latency, Nanos(16_000));
        assert_eq!(longest.task.comm, "swapper/0");
        assert_eq!(longest.started, "run_timer_softirq");
        assert_eq!(longest.ended, "run_timer_softirq");
    }

    #[test]
    fn what_cannot_be_read_is_lost_and_counted() {
        let trace = read("nonsense\n a-b [000] d..1. 1.5: x\n a-1 [000] d..1. 1.000005: x\n");
        assert_eq!((trace.events.len(), trace.lost), (1, 2));
        let long = format!(" a-1 [000] d..1. 1.000005: {}\n", "é".repeat(999));
        let Happened::Other { name, .. } = &read(&long).events[0].what else {
            panic!();
        };
        assert!(name.len() <= DETAIL_MOST);
    }
}
