// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures: what the kernel's own tracer had noted when a sample was longer than a limit.
//!
//! The words are those of the kernel's documentation (`Documentation/trace/ftrace.rst`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::recording::Sample;
use crate::units::{CpuId, Nanos};

/// So many captures a recording keeps at most.
pub const CAPTURES_MOST: usize = 16;

/// So many events a capture keeps at most: the last ones before its sample was taken.
pub const EVENTS_MOST: usize = 600;

/// So many functions of a stack are kept at most, the innermost first.
pub const STACK_MOST: usize = 32;

/// The setting that says which tracer ran beside a recording, or why none did.
pub const TRACER: &str = "tracer";

/// The setting that says at which sample a recording was ended, where one was above the limit.
pub const STOPPED: &str = "stopped_at_sample";

/// Which of the kernel's tracers is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tracer {
    /// Events of interrupts, soft interrupts, timers and the scheduler, with two stacks.
    #[default]
    Events,
    /// `osnoise` without its threads: how long interrupts, soft interrupts and threads ran.
    Osnoise,
    /// `timerlat` with its threads, which measure beside the probe.
    Timerlat,
    /// `wakeup_rt`: the longest way from a wake-up to the thread woken.
    Wakeup,
    /// `irqsoff`: the longest time with interrupts off.
    Irqsoff,
    /// `function`: the events, and each function of the kernel that is entered.
    Function,
}

impl Tracer {
    /// All, in the order in which they are listed.
    pub const ALL: [Self; 6] = [
        Self::Events,
        Self::Osnoise,
        Self::Timerlat,
        Self::Wakeup,
        Self::Irqsoff,
        Self::Function,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Osnoise => "osnoise",
            Self::Timerlat => "timerlat",
            Self::Wakeup => "wakeup",
            Self::Irqsoff => "irqsoff",
            Self::Function => "function",
        }
    }

    /// The kernel's name for it in `current_tracer`; `nop` where it is none of the kernel's.
    pub fn in_kernel(self) -> &'static str {
        match self {
            Self::Events => "nop",
            Self::Osnoise => "osnoise",
            Self::Timerlat => "timerlat",
            Self::Wakeup => "wakeup_rt",
            Self::Irqsoff => "irqsoff",
            Self::Function => "function",
        }
    }
}

impl fmt::Display for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Tracer {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        let names = || Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| format!("expected {}, found \"{name}\"", names()))
    }
}

/// That the kernel's tracer is read when a sample is above a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tracing {
    /// Each new worst sample above this is captured; never, where there is none: then the
    /// tracer only runs.
    #[serde(default, rename = "above_ns", skip_serializing_if = "Option::is_none")]
    pub above: Option<Nanos>,
    /// Whether the first such sample is the last of its step.
    #[serde(default)]
    pub stop: bool,
    /// Which tracer.
    #[serde(default)]
    pub tracer: Tracer,
}

/// What the tracer had noted of one sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// The sample.
    pub sample: Sample,
    /// The CPU on which it was taken, whose events these are.
    pub cpu: CpuId,
    /// The measuring thread.
    pub pid: u32,
    /// Which tracer it was.
    pub tracer: Tracer,
    /// How long the reading took; no sample was due meanwhile.
    #[serde(rename = "pause_ns")]
    pub pause: Nanos,
    /// How many events were not kept: the ring had no room for them, or a capture has not.
    pub lost: u64,
    /// The events, the earliest first.
    pub events: Vec<TraceEvent>,
    /// What a tracer says of the longest that it has seen: `wakeup_rt`, `irqsoff`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<Longest>,
}

/// What a latency tracer says of the longest that it has seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Longest {
    /// How long, in whole microseconds.
    #[serde(rename = "latency_ns")]
    pub latency: Nanos,
    /// The thread: for `wakeup_rt` the one that was woken.
    pub task: Task,
    /// For `irqsoff`, where interrupts were masked; may be empty.
    pub started: String,
    /// For `irqsoff`, where they were opened again; may be empty.
    pub ended: String,
}

/// A thread, as the kernel calls it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its command, up to 15 bytes.
    pub comm: String,
    /// Its number; 0 is the idle thread.
    pub pid: u32,
}

/// In what the CPU was when it noted an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel notes each apart")]
pub struct Context {
    /// Interrupts were masked.
    pub irqs_off: bool,
    /// It was in the handler of an interrupt.
    pub hard_irq: bool,
    /// It was in a soft interrupt, or in an interrupt of one.
    pub soft_irq: bool,
    /// Another thread was to have the CPU.
    pub need_resched: bool,
    /// How often preemption had been switched off, the interrupt itself not counted.
    pub preempt_depth: u8,
}

/// One event of the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceEvent {
    /// When, counted from the moment when the sample was due. The kernel tells it in
    /// microseconds.
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// Who had the CPU.
    pub task: Task,
    /// In what the CPU was.
    pub context: Context,
    /// What happened.
    pub what: Happened,
    /// The functions that led there, the innermost first; most often none were noted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Happened {
    /// `sched_switch`: another thread gets the CPU.
    Switch {
        /// Who had it.
        prev: Task,
        /// The state in which it leaves it: `R` where it would go on.
        state: String,
        /// Who gets it.
        next: Task,
    },
    /// `sched_waking`: a thread is woken.
    Waking {
        /// Which.
        task: Task,
    },
    /// `irq_handler_entry`, or an entry of `irq_vectors`.
    IrqEntry {
        /// The device's or the vector's name: `local_timer`.
        name: String,
    },
    /// It ends.
    IrqExit {
        /// The same name; the number of a device's interrupt.
        name: String,
    },
    /// `softirq_entry`.
    SoftirqEntry {
        /// Which: `TIMER`, `NET_RX`.
        name: String,
    },
    /// `softirq_exit`.
    SoftirqExit {
        /// Which.
        name: String,
    },
    /// `hrtimer_expire_entry`: a timer has run out.
    TimerExpires {
        /// Its function.
        function: String,
    },
    /// An event of `osnoise`: something has run, and was not interrupted for so long.
    Noise {
        /// What kind of thing.
        kind: NoiseKind,
        /// Its name.
        name: String,
        /// When it began, counted as `at` is.
        #[serde(rename = "start_ns")]
        start: Nanos,
        /// How long it ran, without what interrupted it.
        #[serde(rename = "ran_ns")]
        ran: Nanos,
    },
    /// A function of the kernel is entered.
    Function {
        /// Its name.
        name: String,
        /// What called it.
        caller: String,
    },
    /// What was written to `trace_marker`.
    Mark(String),
    /// Anything else.
    Other {
        /// The event's name.
        name: String,
        /// What it says.
        detail: String,
    },
}

/// What made noise, as `osnoise` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseKind {
    /// An interrupt that cannot be masked.
    Nmi,
    /// An interrupt.
    Irq,
    /// A soft interrupt.
    Softirq,
    /// A thread.
    Thread,
}

impl Capture {
    /// What in it contradicts itself, where it was forged or damaged.
    pub fn contradiction(&self) -> Option<&'static str> {
        let deep = |event: &TraceEvent| event.stack.len() > STACK_MOST;
        let rules = [
            (self.events.len() > EVENTS_MOST, "too many events"),
            (self.events.iter().any(deep), "a stack that is too deep"),
        ];
        rules.iter().find(|(is, _)| *is).map(|(_, what)| *what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracers_are_found_by_the_names_that_they_have() {
        for tracer in Tracer::ALL {
            assert_eq!(tracer.name().parse(), Ok(tracer));
        }
        let error = "ftrace".parse::<Tracer>().unwrap_err();
        assert!(error.contains("events, osnoise"), "{error}");
    }

    #[test]
    fn a_request_travels_as_toml() {
        let text = "above_ns = 200000\nstop = true\ntracer = \"function\"\n";
        let tracing: Tracing = toml::from_str(text).unwrap();
        assert_eq!(tracing.above, Some(Nanos(200_000)));
        assert_eq!(toml::to_string(&tracing).unwrap(), text);
        assert!(toml::from_str::<Tracing>("abov_ns = 1").is_err());
    }
}
