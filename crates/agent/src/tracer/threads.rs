// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduler and timer events of one program's threads, from its start: the kernel's
//! events are kept in its ring, and read when the program has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use punctual_formats::trace_page::{EventFormat, Field, Page};
use punctual_model::{Nanos, Reason};

use super::instance::Directory;
use super::tracefs::{self, Tracefs};
use crate::cycles::{Event, Out, Seen, What};
use crate::sys::process::{Pid, thread_id};
use crate::sys::time;

/// The bits of an event's flags that mean that it happened in an interrupt: the kernel's
/// `TRACE_FLAG_HARDIRQ` and `TRACE_FLAG_SOFTIRQ`.
const IN_INTERRUPT: i64 = 0x08 | 0x10;
/// The kernel's `TASK_INTERRUPTIBLE`, and all states in which a thread does not run.
const INTERRUPTIBLE: i64 = 0x01;
const NOT_RUNNING: i64 = 0xff;
/// The states of a thread that has ended: `EXIT_DEAD`, `EXIT_ZOMBIE` and `TASK_DEAD`.
const ENDED: i64 = 0xb0;

/// The words that a program writes into the ring to mark a cycle: numbers of `punctual.h`.
const MARK_BEGINS: i64 = 0x504e_4310;
const MARK_ENDS: i64 = 0x504e_4320;

/// The number of a system call's arguments in an event.
const ARGUMENTS: usize = 6;

/// The environment variable that names the file in which a program marks its cycles.
pub const MARKS_VARIABLE: &str = "PUNCTUAL_MARKS";

/// The largest page of a ring.
const PAGE_MOST: usize = 64 << 10;

/// An event of the ring, with the fields that are read.
struct Known {
    group: &'static str,
    name: &'static str,
    fields: &'static [&'static str],
    /// True if cycles can be reconstructed without it.
    is_optional: bool,
}

impl Known {
    const fn new(group: &'static str, name: &'static str, fields: &'static [&'static str]) -> Self {
        Self {
            group,
            name,
            fields,
            is_optional: false,
        }
    }

    const fn optional(self) -> Self {
        Self {
            is_optional: true,
            ..self
        }
    }
}

const SWITCH: usize = 0;
const WAKING: usize = 1;
const TIMER_START: usize = 2;
const TIMER_CANCEL: usize = 3;
const FORK: usize = 4;
const MARK: usize = 5;
const PAGE_FAULT: usize = 6;
const CALL: usize = 7;

const EVENTS: [Known; 8] = [
    Known::new(
        "sched",
        "sched_switch",
        &[
            "prev_pid",
            "prev_state",
            "next_pid",
            "next_prio",
            "next_comm",
        ],
    ),
    Known::new(
        "sched",
        "sched_waking",
        &["common_flags", "common_pid", "pid"],
    ),
    Known::new(
        "timer",
        "hrtimer_start",
        &[
            "common_flags",
            "common_pid",
            "hrtimer",
            "expires",
            "softexpires",
        ],
    ),
    Known::new(
        "timer",
        "hrtimer_cancel",
        &["common_flags", "common_pid", "hrtimer"],
    ),
    Known::new("sched", "sched_process_fork", &["parent_pid", "child_pid"]),
    // What is written into `trace_marker_raw`.
    Known::new("ftrace", "raw_data", &["common_pid", "id", "buf"]),
    Known::new("exceptions", "page_fault_user", &["common_pid"]).optional(),
    Known::new("raw_syscalls", "sys_enter", &["common_pid", "id", "args"]).optional(),
];

/// The kernel's events that are noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The events that cycles consist of.
    Cycles,
    /// Page faults and system calls, in addition.
    DesignFaults,
}

/// The events of a program's threads while they are noted.
#[derive(Debug)]
pub struct ThreadEvents {
    directory: Directory,
    _tracefs: Tracefs,
    /// A format for each of [`EVENTS`]; `None` if the kernel has no such event, or if it is not
    /// noted.
    formats: Vec<Option<EventFormat>>,
    /// The time by which `CLOCK_REALTIME` is ahead of the clock of all moments here.
    real_time_ahead: Nanos,
}

/// The notes.
#[derive(Debug)]
pub struct Noted {
    /// The events of the program's threads, in order of time.
    pub events: Vec<Event>,
    /// The times when the kernel switched from one thread to another, whoever's they were, as far
    /// as noted: the scope finds a cycle by the number of these.
    pub switches: Vec<Nanos>,
}

impl ThreadEvents {
    /// Notes the events of processes that the calling thread starts from now on, and of all their
    /// threads and processes. Each CPU's ring has `ring` bytes; events after it is full
    /// are lost.
    pub fn start(ring: usize, extent: Extent) -> Result<Self, Reason> {
        let tracefs = Tracefs::reach()?;
        let directory = Directory::make(&tracefs)?;
        let starter = thread_id();
        let real = time::real().map_err(|error| format!("CLOCK_REALTIME: {error}"))?;
        let real_time_ahead = real - time::now();
        let formats = EVENTS.iter().map(|event| match format(&tracefs, event) {
            _ if event.is_optional && extent == Extent::Cycles => Ok(None),
            Err(_) if event.is_optional => Ok(None),
            format => format.map(Some),
        });
        let events = Self {
            formats: formats.collect::<Result<_, _>>()?,
            directory,
            _tracefs: tracefs,
            real_time_ahead,
        };
        events.set("tracing_on", "0")?;
        events.set("trace_clock", "mono")?;
        events.set("buffer_size_kb", &ring.div_ceil(1 << 10).to_string())?;
        // What was noted first is kept: the begin of the program, without a gap.
        events.set("options/overwrite", "0")?;
        events.set("options/event-fork", "1")?;
        events.set("set_event_pid", &starter.to_string())?;
        for (event, format) in EVENTS.iter().zip(&events.formats) {
            // Those that programs write need nobody's leave.
            if format.is_some() && event.group != "ftrace" {
                let switch = format!("events/{}/{}/enable", event.group, event.name);
                events.set(&switch, "1")?;
            }
        }
        events.set("tracing_on", "1")?;
        Ok(events)
    }

    fn set(&self, name: &str, word: &str) -> Result<(), Reason> {
        tracefs::write(&self.directory.path().join(name), word)
    }

    /// Returns the file in which the program marks its cycles.
    pub fn marks(&self) -> PathBuf {
        self.directory.path().join("trace_marker_raw")
    }

    /// Returns the kinds of events that the kernel reports, besides those that cycles consist of.
    pub fn seen(&self) -> Seen {
        Seen {
            page_faults: self.formats[PAGE_FAULT].is_some(),
            calls: self.formats[CALL].is_some(),
        }
    }

    /// Stops noting. Later events are not included.
    pub fn stop(&self) -> Result<(), Reason> {
        self.set("tracing_on", "0")
    }

    /// Returns all notes about the program that this process leads, in order of time; an error
    /// if some of them were lost.
    pub fn read(&self, leader: Pid) -> Result<Noted, Reason> {
        let path = self.directory.path().join("per_cpu");
        let unread = |error| Reason::unreadable("the kernel's trace ring", error);
        let mut events = Vec::new();
        for cpu in fs::read_dir(path).map_err(unread)? {
            let cpu = cpu.map_err(unread)?.path();
            let stats = fs::read_to_string(cpu.join("stats")).map_err(unread)?;
            let lost = lost(&stats).ok_or("the kernel's trace ring tells no losses")?;
            if lost > 0 {
                return Err(format!(
                    "the kernel's trace ring was full, and lost {lost} events: measure for a \
                     shorter time, or give it a larger ring_mib"
                )
                .into());
            }
            self.read_ring(&cpu.join("trace_pipe_raw"), &mut events)?;
        }
        // Of the same moment are those of one CPU only, and they are in order.
        events.sort_by_key(|event| event.at);
        let is_switch = |event: &&Event| matches!(event.what, What::Out(_));
        Ok(Noted {
            switches: events.iter().filter(is_switch).map(|one| one.at).collect(),
            events: of_program(events, leader),
        })
    }

    fn read_ring(&self, path: &Path, events: &mut Vec<Event>) -> Result<(), Reason> {
        let unread = |error| Reason::unreadable("the kernel's trace ring", error);
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let mut ring = options.open(path).map_err(unread)?;
        let mut bytes = vec![0; PAGE_MOST];
        loop {
            let length = match ring.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(unread(error)),
            };
            let page = Page::read(&bytes[..length]).filter(|page| !page.has_lost);
            let page = page.ok_or("the kernel's trace ring has a page that cannot be read")?;
            for (at, record) in page.events {
                self.push(at, record, events)
                    .ok_or("the kernel's trace ring has an event that cannot be read")?;
            }
        }
    }

    /// Adds an event's content if it is about the program's threads; `None` if it cannot be read.
    fn push(&self, at: Nanos, bytes: &[u8], events: &mut Vec<Event>) -> Option<()> {
        let id = u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?);
        let mut known = self.formats.iter().zip(0..);
        let is_it = |format: &EventFormat| format.id == id;
        let found = known.find(|(format, _)| format.as_ref().is_some_and(is_it));
        let Some((Some(format), kind)) = found else {
            return Some(());
        };
        let record = Record { format, bytes };
        let mut add = |thread: i64, what| {
            let thread = Pid::try_from(thread).ok()?;
            events.push(Event { at, thread, what });
            Some(())
        };
        match kind {
            SWITCH => {
                let state = record.number("prev_state")? & NOT_RUNNING;
                let out = match state {
                    0 => Out::Preempted,
                    state if state & ENDED != 0 => Out::Ended,
                    state if state & INTERRUPTIBLE != 0 => Out::Sleeps,
                    _ => Out::Blocked,
                };
                add(record.number("prev_pid")?, What::Out(out))?;
                let name = record.field("next_comm")?.text(bytes)?;
                let priority = record.number("next_prio")?;
                add(record.number("next_pid")?, What::In { name, priority })
            }
            WAKING => {
                let is_of_thread = record.is_of_thread()?;
                let by = record.number("common_pid")?.try_into().ok();
                let by = by.filter(|_| is_of_thread);
                add(record.number("pid")?, What::Waking { by })
            }
            FORK => {
                let child = Pid::try_from(record.number("child_pid")?).ok()?;
                add(record.number("parent_pid")?, What::Forked { child })
            }
            MARK if record.is_mark()? => add(record.number("common_pid")?, record.mark()?),
            MARK => Some(()),
            PAGE_FAULT => add(record.number("common_pid")?, What::PageFault),
            CALL => add(record.number("common_pid")?, record.call()?),
            // In an interrupt it is somebody else's timer.
            _ if !record.is_of_thread()? => Some(()),
            TIMER_START => add(record.number("common_pid")?, self.set_by(at, &record)?),
            TIMER_CANCEL => {
                let timer = record.number("hrtimer")?;
                add(record.number("common_pid")?, What::TookBack { timer })
            }
            _ => Some(()),
        }
    }

    /// Returns the timer that a thread set.
    fn set_by(&self, at: Nanos, record: &Record<'_>) -> Option<What> {
        let (soft, hard) = (record.number("softexpires")?, record.number("expires")?);
        let due = self.by_our_clock(at, Nanos(soft));
        Some(What::Set {
            timer: record.number("hrtimer")?,
            due,
            slack: Nanos(hard.saturating_sub(soft)),
            is_settable: due != Nanos(soft),
        })
    }

    /// Converts a timer's moment to the clock of the events. No event names the clock of a timer:
    /// the nearer one is taken, and the two are years apart.
    fn by_our_clock(&self, now: Nanos, expires: Nanos) -> Nanos {
        let other = Nanos(expires.0.saturating_sub(self.real_time_ahead.0));
        let distance = |moment: Nanos| moment.0.abs_diff(now.0);
        if distance(other) < distance(expires) {
            other
        } else {
            expires
        }
    }
}

/// An event of the ring.
struct Record<'a> {
    format: &'a EventFormat,
    bytes: &'a [u8],
}

impl Record<'_> {
    fn field(&self, name: &str) -> Option<Field> {
        self.format.field(name)
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.field(name)?.number(self.bytes)
    }

    /// Returns true if it happened in a thread, and not in an interrupt.
    fn is_of_thread(&self) -> Option<bool> {
        Some(self.number("common_flags")? & IN_INTERRUPT == 0)
    }

    /// Returns true if a program's write is one of our marks.
    fn is_mark(&self) -> Option<bool> {
        Some([MARK_BEGINS, MARK_ENDS].contains(&self.number("id")?))
    }

    fn mark(&self) -> Option<What> {
        if self.number("id")? == MARK_ENDS {
            return Some(What::Ends);
        }
        let due = self.field("buf")?.rest(self.bytes)?.first_chunk()?;
        let due = Some(Nanos(i64::from_le_bytes(*due)));
        let due = due.filter(|due| *due > Nanos::ZERO);
        Some(What::Begins { due })
    }

    fn call(&self) -> Option<What> {
        let argument = |index| self.field("args")?.item(self.bytes, index, ARGUMENTS);
        Some(What::Call {
            number: self.number("id")? as libc::c_long,
            arguments: [argument(0)?, argument(1)?, argument(2)?],
        })
    }
}

/// Keeps the events of this thread, of those that it has started, and of theirs. A switch names two
/// threads, one of which may be anybody's.
fn of_program(mut events: Vec<Event>, leader: Pid) -> Vec<Event> {
    let mut own = BTreeSet::from([leader]);
    for event in &events {
        if let What::Forked { child } = event.what {
            if own.contains(&event.thread) {
                own.insert(child);
            }
        }
    }
    events.retain(|event| own.contains(&event.thread));
    events
}

/// Reads the positions of an event's fields, all of which must exist.
fn format(tracefs: &Tracefs, event: &Known) -> Result<EventFormat, Reason> {
    let path = format!("events/{}/{}/format", event.group, event.name);
    let text = fs::read_to_string(tracefs.path(&path))
        .map_err(|error| tracefs::refused(&format!("the kernel's event {}", event.name), &error))?;
    let format = EventFormat::parse(&text);
    let has = |format: &EventFormat| event.fields.iter().all(|name| format.field(name).is_some());
    let complete = format.filter(has);
    complete.ok_or_else(|| format!("the kernel's event {} has other fields", event.name).into())
}

/// Returns the number of events that a ring had no room for, from its `stats`.
fn lost(stats: &str) -> Option<u64> {
    let of: BTreeMap<&str, &str> = stats
        .lines()
        .filter_map(|line| line.split_once(": "))
        .collect();
    let number = |key: &str| of.get(key)?.trim().parse::<u64>().ok();
    Some(number("overrun")? + number("commit overrun")? + number("dropped events")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_whoever_started_the_program_are_not_its_own() {
        let forks = |thread, child| Event {
            at: Nanos(1),
            thread,
            what: What::Forked { child },
        };
        let events = vec![
            forks(1, 2),
            forks(1, 3),
            forks(2, 4),
            forks(4, 5),
            forks(3, 6),
        ];
        let own: Vec<Pid> = of_program(events, 2)
            .iter()
            .map(|event| event.thread)
            .collect();
        assert_eq!(own, [2, 4]);
    }

    #[test]
    fn what_a_ring_had_no_room_for_is_counted() {
        let stats = "entries: 7\noverrun: 1\ncommit overrun: 2\nbytes: 44\ndropped events: 3\n";
        assert_eq!(lost(stats), Some(6));
        assert_eq!(lost("entries: 7\n"), None);
    }
}
