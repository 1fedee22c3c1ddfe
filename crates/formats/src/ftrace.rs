// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output of the kernel's tracer in `trace` and `per_cpu/cpuN/trace`, with the clock `mono`.
//!
//! ```text
//!  qemu-system-x86-14846   [000] d.h2.   840.061208: sched_waking: comm=sh pid=15145 prio=19 …
//!  qemu-system-x86-14846   [000] d.h2.   840.061215: <stack trace>
//!  => try_to_wake_up
//! ```
//!
//! Lines that are of no known form are counted as lost: a trace is foreign text, and the rest
//! of it is still worth having.

use std::collections::BTreeMap;

use punctual_model::Nanos;
use punctual_model::capture::{
    Context, Happened, Longest, NoiseKind, STACK_MOST, Task, TraceEvent,
};

/// The longest text of an event that is kept, in bytes.
const DETAIL_MOST: usize = 200;

/// A trace, as far as it could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The events in the order of the text; `at` is the clock's time.
    pub events: Vec<TraceEvent>,
    /// The CPU of each event.
    pub cpus: Vec<u32>,
    /// The meaning of the times.
    pub clock: Clock,
    /// The number of events that the ring had no room for.
    pub lost: u64,
    /// The number of lines that are of no known form.
    pub unread: u64,
    /// A latency tracer's report of the longest latency that it has seen.
    pub longest: Option<Longest>,
    /// The priority of each thread as the kernel counts it, if an event states it: below 100 it is
    /// a real-time priority, and a lower number is a higher priority.
    pub priorities: BTreeMap<u32, i32>,
}

/// The meaning of a trace's times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Moments of a clock.
    #[default]
    Time,
    /// Time since the beginning of the latency that a latency tracer notes.
    Since,
    /// Numbers that only give the order: `counter`, or cycles (`x86-tsc`).
    Order,
}

/// Reads a trace.
pub fn read(text: &str) -> Trace {
    let mut trace = Trace {
        longest: read_longest(text),
        ..Trace::default()
    };
    let columns = Columns::of(text);
    // The place of the event that functions are read for.
    let mut stack_of = None;
    for line in text.lines() {
        if let Some(function) = line.trim_start().strip_prefix("=> ") {
            let event = stack_of.and_then(|place: usize| trace.events.get_mut(place));
            if let Some(event) = event.filter(|event| event.stack.len() < STACK_MOST) {
                event.stack.push(bounded(symbol(function)));
            }
        } else if let Some(head) = head(line, &columns) {
            let text = head.text;
            if text.ends_with("<stack trace>") || text.ends_with("<stack trace >") {
                let own = |other: &TraceEvent| other.task.pid == head.task.pid;
                stack_of = trace.events.iter().rposition(own);
            } else {
                stack_of = None;
                trace.clock = head.clock;
                trace.push(head);
            }
        } else if let Some(lost) = lost(line) {
            trace.lost += lost;
        } else if !line.trim_start().starts_with('#') && !line.trim().is_empty() {
            trace.unread += 1;
        }
    }
    align(&mut trace.events);
    trace
}

impl Trace {
    fn push(&mut self, head: Head<'_>) {
        let of_wakeup = wakeup(head.text, &head.task);
        let priorities = of_wakeup.as_ref().map(|(_, priorities)| *priorities);
        self.priorities.extend(
            priorities
                .into_iter()
                .flatten()
                .chain(priorities_of(head.text)),
        );
        self.cpus.push(head.cpu);
        self.events.push(TraceEvent {
            at: head.at,
            what: of_wakeup.map_or_else(|| happened(head.text), |(what, _)| what),
            task: head.task,
            context: head.context,
            stack: Vec::new(),
        });
    }
}

/// The part of each line before the event.
struct Head<'a> {
    task: Task,
    cpu: u32,
    context: Context,
    at: Nanos,
    clock: Clock,
    text: &'a str,
}

/// Reads a line of a trace, of `trace-cmd report`, or of a latency tracer.
fn head<'a>(line: &'a str, columns: &Columns) -> Option<Head<'a>> {
    bracketed(line, columns)
        .or_else(|| since(line, columns))
        .or_else(|| joined(line, columns))
}

/// Reads `bash-14846 (14840) [000] d.h2. 840.061208: …`; the thread's group and the flags may be
/// missing.
fn bracketed<'a>(line: &'a str, columns: &Columns) -> Option<Head<'a>> {
    // A command's name may hold anything, brackets too.
    line.match_indices(" [").find_map(|(place, _)| {
        let (cpu, rest) = line[place + 2..].split_once("] ")?;
        let cpu = cpu.trim().parse().ok()?;
        let rest = rest.trim_start();
        let (flags, timed) = match rest.split_once(' ') {
            Some((word, _)) if word.ends_with(':') => ("....", rest),
            Some((flags, timed)) => (flags, timed.trim_start()),
            None => ("....", rest),
        };
        let (time, text) = timed.split_once(':')?;
        let (at, clock) = moment(time)?;
        Some(Head {
            task: thread(&line[..place])?,
            cpu,
            context: columns.context(flags)?,
            at,
            clock,
            text: text.trim(),
        })
    })
}

/// Reads `bash-14846 0d.h2. 12us+: …`, as latency tracers print it.
fn since<'a>(line: &'a str, columns: &Columns) -> Option<Head<'a>> {
    line.match_indices("us").find_map(|(place, _)| {
        let rest = &line[place + 2..];
        let rest = rest.strip_prefix(['+', '!', '#', '*', '@', '$', ' ']);
        let text = rest.unwrap_or(&line[place + 2..]).strip_prefix(':')?;
        let (before, time) = line[..place].rsplit_once(' ')?;
        let micros: i64 = time.parse().ok()?;
        let (task, flags) = before.trim_end().rsplit_once(' ')?;
        let (cpu, context) = columns.with_cpu(flags)?;
        Some(Head {
            task: thread(task)?,
            cpu,
            context,
            at: Nanos(micros.checked_mul(1_000)?),
            clock: Clock::Since,
            text: text.trim(),
        })
    })
}

/// Reads `bash-14846 0d.h2. 840.061208: …`, as `trace-cmd report -l` prints it.
fn joined<'a>(line: &'a str, columns: &Columns) -> Option<Head<'a>> {
    let (before, text) = line.split_once(": ")?;
    let (before, time) = before.rsplit_once(' ')?;
    let (task, flags) = before.trim_end().rsplit_once(' ')?;
    let (cpu, context) = columns.with_cpu(flags)?;
    let (at, clock) = moment(time)?;
    Some(Head {
        task: thread(task)?,
        cpu,
        context,
        at,
        clock,
        text: text.trim(),
    })
}

/// Reads `kworker/0:1-77`, followed by its group or not.
fn thread(text: &str) -> Option<Task> {
    let text = text.trim();
    let group = text
        .strip_suffix(')')
        .and_then(|text| text.rsplit_once('('));
    let text = group.map_or(text, |(text, _)| text.trim_end());
    let (comm, pid) = text.rsplit_once('-')?;
    Some(Task {
        comm: bounded(comm.trim()),
        pid: pid.parse().ok()?,
    })
}

/// Reads a moment, and the kind of its clock: `840.061208`, `77123`.
fn moment(text: &str) -> Option<(Nanos, Clock)> {
    let text = text.trim();
    let at = seconds(text).map(|at| (at, Clock::Time));
    let is_count = !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    let count = || text.parse().ok().filter(|_| is_count);
    at.or_else(|| count().map(|count| (Nanos(count), Clock::Order)))
}

/// Converts `840.061208`, or a number with three or nine decimals, to nanoseconds.
fn seconds(text: &str) -> Option<Nanos> {
    let (whole, decimals) = text.split_once('.')?;
    let is_digits = |text: &str| text.bytes().all(|one| one.is_ascii_digit());
    if !is_digits(whole) || !is_digits(decimals) {
        return None;
    }
    let scale = match decimals.len() {
        3 => 1_000_000,
        6 => 1_000,
        9 => 1,
        _ => return None,
    };
    let part = decimals.parse::<i64>().ok()? * scale;
    let whole: i64 = whole.parse().ok()?;
    whole
        .checked_mul(1_000_000_000)?
        .checked_add(part)
        .map(Nanos)
}

/// The meaning of each flag by its column.
///
/// Linux has four: interrupts, need-resched, interrupt or soft interrupt, preempt-depth; since
/// 5.11 also migrate-disable. The patches for `PREEMPT_RT` have had need-resched-lazy and
/// preempt-lazy-depth between them, so that there are up to eight. The head of a trace tells.
#[derive(Clone, Copy, Debug)]
struct Columns(Option<[usize; 3]>);

impl Columns {
    /// Reads the columns from a trace's own head: `# || / _---=> hardirq/softirq`.
    fn of(text: &str) -> Self {
        let mut names = text.lines().filter_map(|line| {
            let line = line.trim_start();
            let (drawn, name) = line.split_once("=> ")?;
            let is_drawn = drawn.starts_with('#') && drawn.contains("_-") && drawn.ends_with('-');
            is_drawn.then(|| name.trim())
        });
        let heads: Vec<&str> = names.by_ref().take(9).collect();
        let own = heads.iter().filter(|name| **name != "CPU#");
        // A file may hold several traces: the first head counts.
        let mut own: Vec<&str> = own.copied().collect();
        if let Some(second) = own
            .iter()
            .skip(1)
            .position(|name| Some(name) == own.first())
        {
            own.truncate(second + 1);
        }
        let at = |wanted: &str| own.iter().position(|name| *name == wanted);
        let found = (
            at("need-resched"),
            at("hardirq/softirq"),
            at("preempt-depth"),
        );
        Self(match found {
            (Some(resched), Some(context), Some(depth)) => Some([resched, context, depth]),
            _ => None,
        })
    }

    fn context(&self, flags: &str) -> Option<Context> {
        let flags: Vec<char> = flags.chars().collect();
        if !(4..=8).contains(&flags.len()) {
            return None;
        }
        let is_context = |at: usize| "hHsSzZ".contains(flags[at]);
        // By their number where there is no head.
        let by_number = match flags.len() {
            4 | 5 => [1, 2, 3],
            6 if is_context(2) || flags[3].is_ascii_digit() => [1, 2, 3],
            _ => [1, 3, 4],
        };
        let of_head = self.0.filter(|at| at.iter().all(|at| *at < flags.len()));
        let [resched, context, depth] = of_head.unwrap_or(by_number);
        let is_flag = |flag: &char| flag.is_ascii_alphanumeric() || *flag == '.' || *flag == '#';
        if !flags.iter().all(is_flag) {
            return None;
        }
        let is_due = |at: usize| "NnLlBb".contains(flags[at]);
        Some(Context {
            irqs_off: matches!(flags[0], 'd' | 'D'),
            hard_irq: matches!(flags[context], 'h' | 'H' | 'z' | 'Z'),
            soft_irq: matches!(flags[context], 's' | 'S' | 'H'),
            need_resched: (resched..context).any(is_due),
            preempt_depth: flags[depth].to_digit(16).unwrap_or(0) as u8,
        })
    }

    /// Reads `128d.h2.`: the CPU and the flags.
    fn with_cpu(&self, text: &str) -> Option<(u32, Context)> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (cpu, flags) = text.split_at(digits);
        Some((cpu.parse().ok()?, self.context(flags)?))
    }
}

/// Reads `CPU:0 [LOST 123 EVENTS]`, or `CPU:0 [123 EVENTS DROPPED]` of trace-cmd.
fn lost(line: &str) -> Option<u64> {
    let (head, rest) = line.split_once('[')?;
    let rest = rest.trim_end();
    let of_kernel = || rest.strip_prefix("LOST ")?.strip_suffix(" EVENTS]");
    let count = of_kernel().or_else(|| rest.strip_suffix(" EVENTS DROPPED]"));
    let is_head = head.trim_start().starts_with("CPU:");
    count.filter(|_| is_head)?.trim().parse().ok()
}

/// Removes the address in or after a function: `schedule+0x2f/0x80 [x]`.
fn symbol(text: &str) -> &str {
    let text = text.trim();
    let text = text.split_once("+0x").map_or(text, |(name, _)| name);
    text.split_once(" (").map_or(text, |(name, _)| name)
}

/// Reads a note of a wake-up tracer: `0:120:R + [003] 2312: 94:R dd`, where the first thread has
/// the CPU and the second is woken (`+`) or gets it (`==>`). Also returns their priorities.
fn wakeup(text: &str, current: &Task) -> Option<(Happened, [(u32, i32); 2])> {
    let split = |sign| text.split_once(sign);
    let (is_switch, (left, right)) = match (split(" + ["), split(" ==> [")) {
        (Some(parts), _) => (false, parts),
        (_, Some(parts)) => (true, parts),
        _ => return None,
    };
    let mut left = left.trim().split(':');
    let (pid, prio) = (left.next()?.trim(), left.next()?.trim());
    let of_current = (pid.parse().ok()?, prio.parse().ok()?);
    let state = left.next()?.trim();
    let (_, right) = right.split_once(']')?;
    let (pid, right) = right.trim().split_once(':')?;
    let (prio, right) = right.trim().split_once(':')?;
    let (_, comm) = right.split_once(' ')?;
    let task = Task {
        comm: bounded(comm.trim().split("  ").next()?),
        pid: pid.trim().parse().ok()?,
    };
    let of_task = (task.pid, prio.trim().parse().ok()?);
    let what = if is_switch {
        Happened::Switch {
            prev: current.clone(),
            state: bounded(state),
            next: task,
        }
    } else {
        Happened::Waking { task }
    };
    Some((what, [of_current, of_task]))
}

/// Iterates over the priorities in the text of a scheduler event.
fn priorities_of(text: &str) -> impl Iterator<Item = (u32, i32)> {
    let number = |key: &str| word(text, key).and_then(|word| word.parse().ok());
    let is_sched = text.starts_with("sched_");
    let pair = |pid: &str, prio: &str| {
        let pid = number(pid).filter(|_| is_sched);
        Some((u32::try_from(pid?).ok()?, number(prio)?))
    };
    let named = [
        pair(" pid=", " prio="),
        pair(" prev_pid=", " prev_prio="),
        pair(" next_pid=", " next_prio="),
    ];
    let short = text.strip_prefix("sched_switch:").and_then(short_switch);
    let of_short = short.map(|(prev, _, next)| [(prev.0.pid, prev.1), (next.0.pid, next.1)]);
    named
        .into_iter()
        .flatten()
        .chain(of_short.into_iter().flatten())
}

/// A thread, and its priority as the kernel counts it.
type Ranked = (Task, i32);

/// Reads `swapper/0:0 [120] R ==> sshd:1234 [98]`, as trace-cmd prints a switch.
fn short_switch(detail: &str) -> Option<(Ranked, String, Ranked)> {
    let (prev, next) = detail.split_once(" ==> ")?;
    let one = |text: &str| {
        let (task, rest) = text.rsplit_once(" [")?;
        let (prio, rest) = rest.split_once(']')?;
        let (comm, pid) = task.trim().rsplit_once(':')?;
        let task = Task {
            comm: bounded(comm),
            pid: pid.parse().ok()?,
        };
        Some(((task, prio.parse().ok()?), bounded(rest.trim())))
    };
    let ((prev, state), (next, _)) = (one(prev)?, one(next)?);
    Some((prev, state, next))
}

fn happened(text: &str) -> Happened {
    let known = text.split_once(": ").and_then(|(name, detail)| {
        let detail = detail.trim();
        match name {
            "sched_switch" => switch(detail),
            // Where both are noted, the last one before the thread runs counts.
            "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => Some(Happened::Waking {
                task: task(detail, "comm=", " pid=").or_else(|| short_task(detail))?,
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

/// Reads `try_to_wake_up <-hrtimer_wakeup`.
fn function(text: &str) -> Option<Happened> {
    // trace-cmd prints `function: schedule <-- do_idle`.
    let text = text.strip_prefix("function:").unwrap_or(text).trim();
    let (name, caller) = text.split_once(" <-")?;
    let (name, caller) = (symbol(name), caller.trim_start_matches('-').trim());
    let caller = symbol(caller.split(' ').next()?);
    let is_name = |name: &str| !name.is_empty() && !name.contains(' ');
    (is_name(name) && is_name(caller)).then(|| Happened::Function {
        name: bounded(name),
        caller: bounded(caller),
    })
}

/// Reads an entry or exit of `irq_vectors`: `local_timer_entry: vector=236`.
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
    if let Some(((prev, _), state, (next, _))) = short_switch(detail) {
        return Some(Happened::Switch { prev, state, next });
    }
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

/// Reads `sshd:1234 [98] success=1 CPU:000`, as trace-cmd prints a wake-up.
fn short_task(detail: &str) -> Option<Task> {
    let (task, _) = detail.split_once(" [")?;
    let (comm, pid) = task.rsplit_once(':')?;
    Some(Task {
        comm: bounded(comm),
        pid: pid.parse().ok()?,
    })
}

/// Returns the word that follows a key.
fn word(text: &str, key: &str) -> Option<String> {
    let (_, rest) = text.split_once(key)?;
    rest.split_whitespace().next().map(bounded)
}

/// Reads `vec=9 [action=RCU]`.
fn action(detail: &str) -> Option<String> {
    let (_, rest) = detail.split_once("[action=")?;
    rest.strip_suffix(']').map(bounded)
}

/// Reads `irq_noise: local_timer:236 start 77.123456789 duration 1234 ns`.
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

/// Converts the start times of `osnoise` events from the CPU's own clock to the trace's clock.
/// An interrupt's event comes at its end, and at once if nothing interrupted it.
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
    let heads = || text.lines().map(str::trim_start);
    let head = || {
        let begun = heads().skip_while(|line| !line.starts_with('#'));
        begun.take_while(|line| line.starts_with('#'))
    };
    let behind = |key: &str| head().find_map(|line| line.split_once(key).map(|(_, rest)| rest));
    let micros: i64 = behind("# latency: ")?.split(' ').next()?.parse().ok()?;
    let (comm, pid) = behind("| task: ")?.split_once(" (")?.0.rsplit_once('-')?;
    let place = |key| bounded(symbol(behind(key).unwrap_or_default()));
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

/// Cuts a text that is too long to be kept.
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
        assert_eq!((trace.events.len(), trace.lost, trace.unread), (1, 0, 2));
        let long = format!(" a-1 [000] d..1. 1.000005: {}\n", "é".repeat(999));
        let Happened::Other { name, .. } = &read(&long).events[0].what else {
            panic!();
        };
        assert!(name.len() <= DETAIL_MOST);
    }
}
