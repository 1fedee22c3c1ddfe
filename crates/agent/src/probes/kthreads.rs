// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `kthreads`: the kernel's own threads, with policy and priority, and whether
//! interrupts are handled in threads.
//!
//! It lists and takes no samples. Threads of the same name, policy and priority share one
//! line, and nothing in a line depends on when a thread was started, so that the lists
//! of two kernels can be compared line by line.

use std::fmt::Write as _;
use std::fs;
use std::io;

use punctual_model::probe::{FindingView, Form, ProbeInfo, Shape, View};
use punctual_model::{Finding, Findings, Nanos, Reason, Recorder, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Measurement, Probe, parameters};
use crate::sys::arch::OF_EACH_CPU;

/// This probe.
pub const PROBE: Probe = Probe {
    name: "kthreads",
    summary: "the kernel's threads with policy and priority; are interrupts threaded?",
    parse: |table| parameters::<Kthreads>(table, |_| Ok(())),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View {
        shape: Shape::List,
        spoken: "",
        findings: &[
            FindingView::new("interrupts_threaded", "each irq threaded", Form::Plain),
            FindingView::new("interrupts_unthreaded", "no irq threaded", Form::Plain),
            FindingView::new("threads", "threads", Form::Plain),
            FindingView::new("real_time_threads", "real-time", Form::Plain),
        ],
    },
    scope: Err("has no samples of the time between two moments"),
};

/// The flag of a kernel thread in `/proc/PID/stat` (the kernel's `PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kthreads {}

impl Measurement for Kthreads {
    fn nominal(&self) -> Nanos {
        Nanos::ZERO
    }

    fn run(&self, _: &mut Context) -> Result<Vec<Recording>, Reason> {
        let threads = threads().map_err(|error| Reason::unreadable("/proc", error))?;
        let lines = interrupt_lines(&threads);
        let mut recording = Recorder::new(0).finish(RecordingKey::of_variant(""));
        recording.findings = findings(&threads, &lines);
        recording.output = Some(format!("{}\n{}", list(&threads), describe(&lines)));
        Ok(vec![recording])
    }
}

/// A kernel thread. The order is that of the list: most urgent first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Thread {
    policy: Policy,
    /// The real-time priority, negated, or the nice value.
    urgency: i64,
    name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Policy {
    Deadline,
    Fifo,
    RoundRobin,
    Other,
    Batch,
    Idle,
    Unknown,
}

impl Policy {
    /// Returns the policy with this number in the kernel's `uapi/linux/sched.h`.
    fn new(number: i64) -> Self {
        match number {
            0 => Self::Other,
            1 => Self::Fifo,
            2 => Self::RoundRobin,
            3 => Self::Batch,
            5 => Self::Idle,
            6 => Self::Deadline,
            _ => Self::Unknown,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Deadline => "SCHED_DEADLINE",
            Self::Fifo => "SCHED_FIFO",
            Self::RoundRobin => "SCHED_RR",
            Self::Other => "SCHED_OTHER",
            Self::Batch => "SCHED_BATCH",
            Self::Idle => "SCHED_IDLE",
            Self::Unknown => "unknown",
        }
    }

    fn has_priority(self) -> bool {
        matches!(self, Self::Fifo | Self::RoundRobin)
    }
}

impl Thread {
    /// Reads a line of `/proc/PID/stat`; `None` for a process of user space.
    fn parse(stat: &str) -> Option<Self> {
        // The name is in parentheses, and may contain some.
        let (head, fields) = stat.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        // proc(5) counts from the process's number, which is 1; the first here is 3.
        let field = |number: usize| fields.get(number - 3)?.parse::<i64>().ok();
        if field(9)? as u64 & KERNEL_THREAD == 0 {
            return None;
        }
        let policy = Policy::new(field(41)?);
        Some(Self {
            policy,
            urgency: if policy.has_priority() {
                -field(40)?
            } else {
                field(19)?
            },
            name: stable_name(name),
        })
    }

    fn line(&self, times: usize) -> String {
        let urgency = if self.policy.has_priority() {
            format!("{:>8}     -", -self.urgency)
        } else {
            format!("{:>8}  {:>4}", "-", self.urgency)
        };
        let policy = self.policy.name();
        let many = if times > 1 {
            format!("  ×{times}")
        } else {
            String::new()
        };
        format!("{policy:<14}  {urgency}  {}{many}", self.name)
    }
}

/// Returns a worker's name without its current work. Workers of a pool are created on demand, and
/// their names include that work: `kworker/0:1H-events_highpri` is one of `kworker/0:*H`.
fn stable_name(name: &str) -> String {
    let worker = || {
        let (pool, rest) = name.strip_prefix("kworker/")?.split_once(':')?;
        let mark = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let mark = mark.split(['-', '+']).next().unwrap_or_default();
        Some(format!("kworker/{pool}:*{mark}"))
    };
    worker().unwrap_or_else(|| name.to_owned())
}

/// Returns all kernel threads, in the order of the list.
fn threads() -> io::Result<Vec<Thread>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let number = path
            .file_name()
            .and_then(|name| name.to_str()?.parse::<u32>().ok());
        // A process that ends meanwhile is none.
        if let Some(stat) = number.and_then(|_| fs::read_to_string(path.join("stat")).ok()) {
            threads.extend(Thread::parse(&stat));
        }
    }
    threads.sort();
    Ok(threads)
}

/// Writes a line for each kind of thread.
fn list(threads: &[Thread]) -> String {
    let mut text = format!("{:<14}  priority  nice  thread\n", "policy");
    let same = threads.chunk_by(|one, next| one == next);
    for kind in same {
        text.push_str(&kind[0].line(kind.len()));
        text.push('\n');
    }
    text
}

/// An interrupt line that has a handler.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    number: u32,
    /// The names of its handlers.
    actions: String,
    /// The thread that handles it, if one does.
    thread: Option<String>,
    /// True if each CPU has its own, as each has its timer on arm64: no kernel gives it
    /// a thread.
    of_each_cpu: bool,
}

/// Returns true if each CPU has its own interrupt of this kind, by its number in the hardware and
/// its controller: ARM's GIC has these below 32 (GIC architecture specification, INTIDs).
fn is_of_each_cpu(chip: &str, in_hardware: &str) -> bool {
    let number = in_hardware.trim().parse::<u32>();
    chip.trim().starts_with("GIC") && number.is_ok_and(|number| number < 32)
}

fn interrupt_lines(threads: &[Thread]) -> Vec<Line> {
    let Ok(entries) = fs::read_dir("/sys/kernel/irq") else {
        return Vec::new();
    };
    let line = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.ok()?;
        let number = entry.file_name().to_str()?.parse().ok()?;
        let read = |file| fs::read_to_string(entry.path().join(file));
        let mut line = Line::new(number, read("actions").ok()?.trim(), threads)?;
        let (chip, hardware) = (read("chip_name"), read("hwirq"));
        line.of_each_cpu = OF_EACH_CPU.contains(&&*line.actions)
            || is_of_each_cpu(&chip.unwrap_or_default(), &hardware.unwrap_or_default());
        Some(line)
    };
    let mut lines: Vec<Line> = entries.filter_map(line).collect();
    lines.sort_by_key(|line| line.number);
    lines
}

impl Line {
    /// Creates the line; `None` if it has no handler.
    fn new(number: u32, actions: &str, threads: &[Thread]) -> Option<Self> {
        if actions.is_empty() {
            return None;
        }
        let prefix = format!("irq/{number}-");
        let mut names = threads.iter().map(|thread| &thread.name);
        Some(Self {
            number,
            actions: actions.to_owned(),
            thread: names.find(|name| name.starts_with(&prefix)).cloned(),
            of_each_cpu: false,
        })
    }

    /// Returns true if it is that of the clock, which interrupts before there are threads.
    fn is_clock(&self) -> bool {
        self.actions == "timer"
    }

    /// Returns true if it only leads to other lines, as that of a cascaded controller does
    /// (`chained_action` in `kernel/irq/chip.c`, which has no name).
    fn is_chained(&self) -> bool {
        self.actions == "(null)"
    }
}

fn describe(lines: &[Line]) -> String {
    let mut text = String::from("irq  handler           thread\n");
    for line in lines {
        let thread = line.thread.as_deref().unwrap_or("none");
        let _ = writeln!(text, "{:>3}  {:<16}  {thread}", line.number, line.actions);
    }
    text
}

fn findings(threads: &[Thread], lines: &[Line]) -> Findings {
    let real_time = threads.iter().filter(|thread| thread.policy.has_priority());
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let forced = forced(&read("/proc/version"), &read("/proc/cmdline"));
    let [each, none] = verdicts(forced, lines);
    Findings::from([
        ("threads".into(), Finding::Count(threads.len() as u64)),
        (
            "real_time_threads".into(),
            Finding::Count(real_time.count() as u64),
        ),
        ("interrupts_threaded".into(), each),
        ("interrupts_unthreaded".into(), none),
    ])
}

/// Names what makes the kernel handle every possible interrupt in a thread, or says nothing does.
fn forced(version: &str, cmdline: &str) -> &'static str {
    let has = |text: &str, word| text.split_whitespace().any(|found| found == word);
    if has(version, "PREEMPT_RT") {
        "PREEMPT_RT"
    } else if has(cmdline, "threadirqs") {
        "threadirqs"
    } else {
        "neither PREEMPT_RT nor threadirqs"
    }
}

/// Checks whether each interrupt line has a thread, and whether none has, each with its numbers,
/// whatever the kernel was told to do. The clock's line, those that each CPU has, and those that
/// only lead to others are named and not counted: no kernel gives them a thread.
fn verdicts(forced: &str, lines: &[Line]) -> [Finding; 2] {
    let (own, lines): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(|line| line.of_each_cpu);
    let (chained, lines): (Vec<&Line>, Vec<&Line>) =
        lines.into_iter().partition(|line| line.is_chained());
    let (clock, others): (Vec<&Line>, Vec<&Line>) =
        lines.into_iter().partition(|line| line.is_clock());
    let (with, without): (Vec<&Line>, Vec<&Line>) =
        others.iter().partition(|line| line.thread.is_some());
    if others.is_empty() {
        let none = || Finding::Absent("no interrupt line is seen in /sys/kernel/irq".into());
        return [none(), none()];
    }
    let (all, threaded) = (others.len(), with.len());
    let mut why = format!("{forced}; {threaded} of {all} interrupt lines have a thread");
    for (what, lines) in [("with", &with), ("without", &without)] {
        // All of them are no exceptions.
        if !lines.is_empty() && lines.len() < all {
            _ = write!(why, "; {what}: {}", names(lines));
        }
    }
    for (lines, what) in [
        (&clock, "the clock"),
        (&own, "each CPU's own"),
        (&chained, "which lead to others"),
    ] {
        if !lines.is_empty() {
            _ = write!(why, "; not counted: {}, {what}", names(lines));
        }
    }
    [without.is_empty(), with.is_empty()].map(|yes| Finding::Answer {
        yes,
        why: why.clone(),
    })
}

/// Lists lines by number and handler: `8 rtc0, 9 acpi`.
fn names(lines: &[&Line]) -> String {
    let name = |line: &&Line| format!("{} {}", line.number, line.actions);
    lines.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "0 0 0 0 0 0 0 2147483647 0 1 0 0 17 0";

    fn stat(name: &str, flags: u64, nice: i64, priority: i64, policy: i64) -> String {
        format!(
            "9 ({name}) S 2 0 0 0 -1 {flags} 0 0 0 0 0 0 0 0 20 {nice} 1 0 49 0 0 1844 {REST} {priority} {policy} 0\n"
        )
    }

    fn thread(name: &str, priority: i64, policy: i64) -> Thread {
        Thread::parse(&stat(name, 69_238_848, -20, priority, policy)).unwrap()
    }

    #[test]
    fn a_line_tells_policy_and_priority() {
        let migration = thread("migration/0", 99, 1);
        assert_eq!((migration.policy, migration.urgency), (Policy::Fifo, -99));
        assert!(
            migration
                .line(1)
                .starts_with("SCHED_FIFO            99     -  migration/0")
        );
        let worker = thread("kworker/0:0H-events_highpri", 0, 0);
        assert_eq!((worker.policy, worker.urgency), (Policy::Other, -20));
        assert!(
            worker.line(2).ends_with("-   -20  kworker/0:*H  ×2"),
            "{}",
            worker.line(2)
        );
        assert_eq!(Thread::parse(&stat("init) x (y", 256, 0, 1, 1)), None);
        assert_eq!(Thread::parse("9 (cut off"), None);
    }

    #[test]
    fn names_tell_nothing_of_the_moment() {
        for (name, stable) in [
            ("kworker/0:1", "kworker/0:*"),
            ("kworker/0:0H-events_highpri", "kworker/0:*H"),
            ("kworker/u4:17+flush-8:0", "kworker/u4:*"),
            ("kworker/R-mm_percpu_wq", "kworker/R-mm_percpu_wq"),
            ("irq/9-acpi", "irq/9-acpi"),
        ] {
            assert_eq!(stable_name(name), stable);
        }
    }

    #[test]
    fn the_most_urgent_stand_first_and_equal_ones_together() {
        let mut all = [
            thread("kworker/0:1-events", 0, 0),
            thread("ktimers/0", 1, 1),
            thread("kworker/0:0", 0, 0),
            thread("migration/0", 99, 1),
        ];
        all.sort();
        let text = list(&all);
        let names: Vec<&str> = text.lines().skip(1).map(|line| &line[32..]).collect();
        assert_eq!(names, ["migration/0", "ktimers/0", "kworker/0:*  ×2"]);
    }

    #[test]
    fn each_and_none_are_what_the_numbers_say() {
        let threads = [thread("irq/9-acpi", 50, 1), thread("irq/90-nvme", 50, 1)];
        let told = |forced: &str, lines: &[(u32, &str)]| {
            let line = |(number, actions): &(u32, &str)| Line::new(*number, actions, &threads);
            let lines: Vec<Line> = lines.iter().filter_map(line).collect();
            verdicts(forced, &lines).map(|finding| match finding {
                Finding::Answer { yes, why } => (yes, why),
                other => (false, format!("{other:?}")),
            })
        };
        assert_eq!(Line::new(3, "", &threads), None);
        let (clock, acpi, rtc) = ((0, "timer"), (9, "acpi"), (8, "rtc0"));
        let [each, none] = told("PREEMPT_RT", &[clock, acpi, (90, "nvme0q0")]);
        let why =
            "PREEMPT_RT; 2 of 2 interrupt lines have a thread; not counted: 0 timer, the clock";
        assert_eq!((each, none.0), ((true, why.to_owned()), false));
        // One without is named, and it is not each; one with is named, and it is not none.
        let [each, none] = told("PREEMPT_RT", &[clock, rtc, acpi]);
        assert!(!each.0 && !none.0, "{each:?} {none:?}");
        assert!(each.1.contains("1 of 2") && each.1.contains("without: 8 rtc0"));
        assert!(none.1.contains("with: 9 acpi;"), "{}", none.1);
        let [each, none] = told("neither", &[clock, rtc]);
        assert!(!each.0 && none.0, "{each:?} {none:?}");
        // Force without threads convinces nobody.
        let [each, none] = told("PREEMPT_RT", &[rtc]);
        assert!(!each.0 && none.0, "{each:?} {none:?}");
        for unseen in [&[clock][..], &[]] {
            let [each, none] = told("PREEMPT_RT", unseen);
            assert!(each.1.contains("no interrupt line") && each == none);
        }
        assert_eq!(
            forced("Linux 6.12 #1 SMP PREEMPT_RT Debian", ""),
            "PREEMPT_RT"
        );
        assert_eq!(forced("Linux", "quiet threadirqs"), "threadirqs");
    }

    #[test]
    fn what_each_cpu_has_its_own_of_is_not_counted_and_named() {
        assert!(is_of_each_cpu("GICv3\n", "27\n"));
        assert!(!is_of_each_cpu("GICv3\n", "33\n"));
        assert!(!is_of_each_cpu("IO-APIC\n", "8\n") && !is_of_each_cpu("", ""));
        let threads = [thread("irq/13-uart-pl011", 50, 1)];
        let line = |number, actions| Line::new(number, actions, &threads).unwrap();
        let timer = Line {
            of_each_cpu: true,
            ..line(11, "arch_timer")
        };
        let lines = [timer, line(13, "uart-pl011"), line(14, "(null)")];
        let [each, none] = verdicts("PREEMPT_RT", &lines);
        let why = "PREEMPT_RT; 1 of 1 interrupt lines have a thread; not counted: 11 arch_timer, \
                   each CPU's own; not counted: 14 (null), which lead to others";
        let answer = |yes| Finding::Answer {
            yes,
            why: why.into(),
        };
        assert_eq!([each, none], [answer(true), answer(false)]);
    }

    #[test]
    fn this_machine_has_kernel_threads_or_none_is_seen() {
        assert!(threads().is_ok());
    }
}
