// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures: notes of the kernel's own tracer from when a sample was longer than a limit.
//!
//! The terms are those of the kernel's documentation (`Documentation/trace/ftrace.rst`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::recording::Sample;
use crate::units::{CpuId, Nanos};

/// The most captures that a recording keeps.
pub const CAPTURES_MOST: usize = 16;

/// The most events that a capture keeps: the last ones before its sample was taken.
pub const EVENTS_MOST: usize = 600;

/// The most functions of a stack that are kept, the innermost first.
pub const STACK_MOST: usize = 32;

/// Setting: the tracer that ran beside a recording, or the reason why none did.
pub const TRACER: &str = "tracer";

/// Setting: the sample at which a recording was ended, if one was above the limit.
pub const STOPPED: &str = "stopped_at_sample";

/// One of the kernel's tracers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Tracer {
    /// Events of interrupts, soft interrupts, timers and the scheduler, with two stacks.
    #[default]
    Events,
    /// `osnoise` without its threads: the running times of interrupts, soft interrupts and threads.
    Osnoise,
    /// `timerlat` with its threads, which measure beside the probe.
    Timerlat,
    /// `wakeup_rt`: the longest time from a wake-up until the woken thread runs.
    Wakeup,
    /// `irqsoff`: the longest time with interrupts off.
    Irqsoff,
    /// `function`: the events, and each kernel function that is entered.
    Function,
}

impl Tracer {
    /// All tracers, in the order in which they are listed.
    pub const ALL: [Self; 6] = [
        Self::Events,
        Self::Osnoise,
        Self::Timerlat,
        Self::Wakeup,
        Self::Irqsoff,
        Self::Function,
    ];

    /// Returns its name on the command line.
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

    /// Returns the kernel's name for it in `current_tracer`; `nop` if it is none of the kernel's.
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

/// Instructions to read the kernel's tracer when a sample is above a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tracing {
    /// Limit above which each new worst sample is captured. Without a limit, nothing is captured:
    /// the tracer only runs.
    #[serde(default, rename = "above_ns", skip_serializing_if = "Option::is_none")]
    pub above: Option<Nanos>,
    /// True if the first such sample is the last of its step.
    #[serde(default)]
    pub stop: bool,
    /// The tracer to use.
    #[serde(default)]
    pub tracer: Tracer,
}

/// The tracer's notes about one sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capture {
    /// The sample.
    pub sample: Sample,
    /// The CPU on which the sample was taken, and which the events are from.
    pub cpu: CpuId,
    /// The measuring thread.
    pub pid: u32,
    /// The tracer that made the notes.
    pub tracer: Tracer,
    /// The time that the reading took; no sample was due meanwhile.
    #[serde(rename = "pause_ns")]
    pub pause: Nanos,
    /// The number of events that were not kept, because the ring or the capture had no room.
    pub lost: u64,
    /// The events, earliest first.
    pub events: Vec<TraceEvent>,
    /// The tracer's report of the longest latency that it has seen: `wakeup_rt`, `irqsoff`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<Longest>,
}

/// A latency tracer's report of the longest latency that it has seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Longest {
    /// The latency, in whole microseconds.
    #[serde(rename = "latency_ns")]
    pub latency: Nanos,
    /// The thread: for `wakeup_rt`, the one that was woken.
    pub task: Task,
    /// For `irqsoff`, the place where interrupts were masked; may be empty.
    pub started: String,
    /// For `irqsoff`, the place where interrupts were unmasked; may be empty.
    pub ended: String,
}

/// A thread, as the kernel calls it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Task {
    /// Its command, up to 15 bytes.
    pub comm: String,
    /// Its number; 0 for the idle thread.
    pub pid: u32,
}

/// The context in which the CPU was when it noted an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel notes each apart")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Context {
    /// Interrupts were masked.
    pub irqs_off: bool,
    /// The CPU was in an interrupt handler.
    pub hard_irq: bool,
    /// The CPU was in a soft interrupt, or in an interrupt during one.
    pub soft_irq: bool,
    /// Another thread was due to get the CPU.
    pub need_resched: bool,
    /// The depth to which preemption was disabled, not counting the interrupt itself.
    pub preempt_depth: u8,
}

/// One event of the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceEvent {
    /// Time of the event, counted from the moment when the sample was due. The kernel gives it in
    /// microseconds.
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// The thread that had the CPU.
    pub task: Task,
    /// The context in which the CPU was.
    pub context: Context,
    /// The event itself.
    pub what: Happened,
    /// The functions that led there, innermost first; usually none were noted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
}

/// The kind of an event, with its details.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Happened {
    /// `sched_switch`: another thread gets the CPU.
    Switch {
        /// The thread that had the CPU.
        prev: Task,
        /// The state in which that thread leaves the CPU: `R` if it could go on.
        state: String,
        /// The thread that gets the CPU.
        next: Task,
    },
    /// `sched_waking`: a thread is woken.
    Waking {
        /// The thread.
        task: Task,
    },
    /// `irq_handler_entry`, or an entry event of `irq_vectors`.
    IrqEntry {
        /// The device's or the vector's name: `local_timer`.
        name: String,
    },
    /// The interrupt ends.
    IrqExit {
        /// The same name; for a device, the interrupt's number.
        name: String,
    },
    /// `softirq_entry`.
    SoftirqEntry {
        /// Its kind: `TIMER`, `NET_RX`.
        name: String,
    },
    /// `softirq_exit`.
    SoftirqExit {
        /// Its kind.
        name: String,
    },
    /// `hrtimer_expire_entry`: a timer has expired.
    TimerExpires {
        /// The timer's function.
        function: String,
    },
    /// An event of `osnoise`: something ran for this long, interruptions not counted.
    Noise {
        /// The kind of thing that ran.
        kind: NoiseKind,
        /// Its name.
        name: String,
        /// The time at which it began, counted like `at`.
        #[serde(rename = "start_ns")]
        start: Nanos,
        /// The time for which it ran, without its interruptions.
        #[serde(rename = "ran_ns")]
        ran: Nanos,
    },
    /// A kernel function is entered.
    Function {
        /// Its name.
        name: String,
        /// Its caller.
        caller: String,
    },
    /// Text that was written to `trace_marker`.
    Mark(String),
    /// Any other event.
    Other {
        /// The event's name.
        name: String,
        /// The event's text.
        detail: String,
    },
}

/// The source of noise, as `osnoise` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum NoiseKind {
    /// A non-maskable interrupt.
    Nmi,
    /// An interrupt.
    Irq,
    /// A soft interrupt.
    Softirq,
    /// A thread.
    Thread,
}

impl Capture {
    /// Returns a contradiction within it, if any: it may have been forged or damaged.
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
