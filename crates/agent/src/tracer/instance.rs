// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace instance of its own: a directory in tracefs's `instances`, with rings, events and
//! a current tracer that nobody else uses. Removing the directory ends it all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use punctual_formats::ftrace::{self, Trace};
use punctual_model::{CpuId, Reason, Tracer};

use super::tracefs::{self, Tracefs};

/// The instance's name.
const NAME: &str = "punctual";
/// Its name while the threads of `osnoise` are switched off, so that a target that finds it left
/// behind knows that they must be switched on.
const NAME_WITHOUT_THREADS: &str = "punctual-without-osnoise-threads";

/// The option of `osnoise` and `timerlat` that controls whether their threads run.
const THREADS: &str = "OSNOISE_WORKLOAD";

/// The size of each CPU's ring, in KiB: some thousand events.
const RING_KIB: u32 = 128;
/// The size of each CPU's ring, in KiB, if each function is an event.
const RING_OF_FUNCTIONS_KIB: u32 = 1_024;

/// The most bytes that are read from a ring.
const TEXT_MOST: u64 = 4 << 20;

/// The events of interrupts, timers and the scheduler. Not every kernel has all of them.
const EVENTS: [&str; 10] = [
    "sched/sched_switch",
    "sched/sched_waking",
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "irq_vectors",
    "timer/hrtimer_expire_entry",
    "preemptirq",
    "nmi/nmi_handler",
];

/// The number of first events without which a sample cannot be explained.
const NEEDED: usize = 2;

/// A running tracer.
#[derive(Debug)]
pub struct Instance {
    tracer: Tracer,
    switch: File,
    marks: File,
    /// The directory, removed after the files in it are closed: the kernel keeps instances in use.
    directory: Directory,
    tracefs: Tracefs,
}

/// An instance's directory, which is removed when this is dropped.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// `osnoise/options`, if its threads were switched off for this.
    threads: Option<PathBuf>,
}

impl Instance {
    /// Starts a tracer. Stacks are noted when a thread of this real-time priority, or a higher one,
    /// is woken or gets the CPU.
    pub fn start(tracer: Tracer, priority: u8) -> Result<Self, Reason> {
        let tracefs = Tracefs::reach()?;
        check(&tracefs, tracer)?;
        let name = if tracer == Tracer::Osnoise {
            NAME_WITHOUT_THREADS
        } else {
            NAME
        };
        let directory = Directory::named(name, &tracefs)?;
        Self::begin(tracer, priority, tracefs, directory)
    }

    fn begin(
        tracer: Tracer,
        priority: u8,
        tracefs: Tracefs,
        directory: Directory,
    ) -> Result<Self, Reason> {
        let file = |name: &str| {
            let path = directory.path.join(name);
            let opened = OpenOptions::new().write(true).open(path);
            opened.map_err(|error| tracefs::refused(name, &error))
        };
        let mut instance = Self {
            tracer,
            switch: file("tracing_on")?,
            marks: file("trace_marker")?,
            directory,
            tracefs,
        };
        instance.set("tracing_on", "0")?;
        instance.set("trace_clock", "mono")?;
        let kib = if tracer == Tracer::Function {
            RING_OF_FUNCTIONS_KIB
        } else {
            RING_KIB
        };
        instance.set("buffer_size_kb", &kib.to_string())?;
        if matches!(tracer, Tracer::Events | Tracer::Function) {
            instance.enable_events(priority)?;
        }
        if tracer == Tracer::Osnoise {
            let options = instance.tracefs.path("osnoise/options");
            tracefs::write(&options, &format!("NO_{THREADS}"))?;
            instance.directory.threads = Some(options);
        }
        if matches!(tracer, Tracer::Osnoise | Tracer::Timerlat) {
            instance.set("events/osnoise/enable", "1")?;
        }
        if matches!(tracer, Tracer::Wakeup | Tracer::Irqsoff) {
            // The longest is told without each function on its way.
            let _ = instance.set("options/function-trace", "0");
        }
        instance.set("current_tracer", tracer.in_kernel())?;
        instance.set("tracing_on", "1")?;
        Ok(instance)
    }

    fn set(&self, name: &str, word: &str) -> Result<(), Reason> {
        tracefs::write(&self.directory.path.join(name), word)
    }

    fn enable_events(&self, priority: u8) -> Result<(), Reason> {
        for (event, number) in EVENTS.iter().zip(0..) {
            let enabled = self.set(&format!("events/{event}/enable"), "1");
            if number < NEEDED {
                enabled?;
            }
        }
        // As the kernel counts, a lower number is a higher priority.
        let prio = 99 - i32::from(priority.min(99));
        self.set(
            "events/sched/sched_waking/trigger",
            &format!("stacktrace if prio <= {prio}"),
        )?;
        self.set(
            "events/sched/sched_switch/trigger",
            &format!("stacktrace if next_prio <= {prio}"),
        )
    }

    /// Stops noting, with a last word; must be called at once when a sample is too long.
    pub fn stop(&self, word: &[u8]) {
        // What is read says whether it has worked.
        let _ = (&self.marks).write_all(word);
        let _ = (&self.switch).write_all(b"0");
    }

    /// Resumes noting.
    pub fn go_on(&self) {
        let _ = (&self.switch).write_all(b"1");
    }

    /// Returns the notes from a CPU.
    pub fn read(&self, cpu: CpuId) -> io::Result<Trace> {
        let is_latency = matches!(self.tracer, Tracer::Wakeup | Tracer::Irqsoff);
        let path = if is_latency {
            self.directory.path.join("trace")
        } else {
            self.directory
                .path
                .join(format!("per_cpu/cpu{}/trace", cpu.0))
        };
        let mut text = Vec::new();
        File::open(path)?.take(TEXT_MOST).read_to_end(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        if !is_latency {
            return Ok(ftrace::read(&text));
        }
        // The next one is to be the longest of those to come.
        let _ = self.set("tracing_max_latency", "0");
        let longest = ftrace::read_longest(&text);
        Ok(Trace {
            longest,
            ..Trace::default()
        })
    }
}

impl Directory {
    /// Makes a directory in which nothing is noted yet.
    pub fn make(tracefs: &Tracefs) -> Result<Self, Reason> {
        Self::named(NAME, tracefs)
    }

    fn named(name: &str, tracefs: &Tracefs) -> Result<Self, Reason> {
        remove_left_behind();
        let path = tracefs.path("instances").join(name);
        let made = fs::create_dir(&path);
        made.map_err(|error| tracefs::refused("an instance of the kernel's tracer", &error))?;
        let threads = None;
        Ok(Self { path, threads })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = tracefs::write(&self.path.join("current_tracer"), "nop");
        let _ = tracefs::write(&self.path.join("events/enable"), "0");
        if let Some(options) = &self.threads {
            let _ = tracefs::write(options, THREADS);
        }
        // What is left then the next target removes.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Checks that the kernel has the tracer.
fn check(tracefs: &Tracefs, tracer: Tracer) -> Result<(), Reason> {
    let path = tracefs.path("available_tracers");
    let known = fs::read_to_string(&path)
        .map_err(|error| tracefs::refused("the list of the kernel's tracers", &error))?;
    let name = tracer.in_kernel();
    if known.split_whitespace().any(|one| one == name) {
        return Ok(());
    }
    let known = known.trim();
    Err(format!("the kernel has no tracer {name}: it has {known}; `events` needs none").into())
}

/// Removes instances that a killed target has left, and names them. The lock for the machine's
/// only measurement guarantees that they belong to nobody else.
pub fn remove_left_behind() -> Vec<String> {
    let Some(tracefs) = tracefs::found() else {
        return Vec::new();
    };
    let names = [NAME, NAME_WITHOUT_THREADS];
    let removed = names.into_iter().filter(|name| remove(&tracefs, name));
    removed
        .map(|name| format!("tracing instance {name}"))
        .collect()
}

fn remove(tracefs: &Path, name: &str) -> bool {
    let directory = tracefs.join("instances").join(name);
    if !directory.is_dir() {
        return false;
    }
    let _ = tracefs::write(&directory.join("current_tracer"), "nop");
    if name == NAME_WITHOUT_THREADS {
        let _ = tracefs::write(&tracefs.join("osnoise/options"), THREADS);
    }
    fs::remove_dir(directory).is_ok()
}
