// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the scheduler and timers do to the threads of one program, from its start: the kernel's
//! events, kept in its ring, and read when the program has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use punctual_formats::trace_page::{EventFormat, Page};
use punctual_model::{Nanos, Reason};

use super::instance::Directory;
use super::tracefs::{self, Tracefs};
use crate::cycles::{Event, Out, What};
use crate::sys::process::{Pid, thread_id};
use crate::sys::time;

/// The bits of an event's flags that say that it happened in an interrupt: the kernel's
/// `TRACE_FLAG_HARDIRQ` and `TRACE_FLAG_SOFTIRQ`.
const IN_INTERRUPT: i64 = 0x08 | 0x10;
/// The kernel's `TASK_INTERRUPTIBLE`, and all states in which a thread does not run.
const INTERRUPTIBLE: i64 = 0x01;
const NOT_RUNNING: i64 = 0xff;

/// No page of a ring is larger.
const PAGE_MOST: usize = 64 << 10;

/// An event of the ring and the fields of it that are read.
struct Known {
    group: &'static str,
    name: &'static str,
    fields: &'static [&'static str],
}

const SWITCH: usize = 0;
const WAKING: usize = 1;
const TIMER_START: usize = 2;
const TIMER_CANCEL: usize = 3;

const FORK: usize = 4;

const EVENTS: [Known; 5] = [
    Known {
        group: "sched",
        name: "sched_switch",
        fields: &[
            "prev_pid",
            "prev_state",
            "next_pid",
            "next_prio",
            "next_comm",
        ],
    },
    Known {
        group: "sched",
        name: "sched_waking",
        fields: &["pid"],
    },
    Known {
        group: "timer",
        name: "hrtimer_start",
        fields: &["common_flags", "common_pid", "hrtimer", "softexpires"],
    },
    Known {
        group: "timer",
        name: "hrtimer_cancel",
        fields: &["common_flags", "common_pid", "hrtimer"],
    },
    Known {
        group: "sched",
        name: "sched_process_fork",
        fields: &["parent_pid", "child_pid"],
    },
];

/// The events of a program's threads, while they are noted.
#[derive(Debug)]
pub struct ThreadEvents {
    directory: Directory,
    _tracefs: Tracefs,
    formats: Vec<EventFormat>,
    /// The thread that starts the program: it is none of its threads.
    starter: Pid,
    /// How far `CLOCK_REALTIME` is ahead of the clock of all moments here.
    real_time_ahead: Nanos,
}

impl ThreadEvents {
    /// Notes what happens to the processes that the calling thread starts from now on, and to
    /// all threads and processes of theirs. Each CPU's ring has so many bytes; what comes after
    /// it is full is lost.
    pub fn start(ring: usize) -> Result<Self, Reason> {
        let tracefs = Tracefs::reach()?;
        let directory = Directory::make(&tracefs)?;
        let starter = thread_id();
        let real = time::real().map_err(|error| format!("CLOCK_REALTIME: {error}"))?;
        let real_time_ahead = real - time::now();
        let formats = EVENTS.iter().map(|event| format(&tracefs, event));
        let events = Self {
            formats: formats.collect::<Result<_, _>>()?,
            directory,
            _tracefs: tracefs,
            starter,
            real_time_ahead,
        };
        events.set("tracing_on", "0")?;
        events.set("trace_clock", "mono")?;
        events.set("buffer_size_kb", &ring.div_ceil(1 << 10).to_string())?;
        // What was noted first is kept: the begin of the program, without a gap.
        events.set("options/overwrite", "0")?;
        events.set("options/event-fork", "1")?;
        events.set("set_event_pid", &starter.to_string())?;
        for event in &EVENTS {
            events.set(
                &format!("events/{}/{}/enable", event.group, event.name),
                "1",
            )?;
        }
        events.set("tracing_on", "1")?;
        Ok(events)
    }

    fn set(&self, name: &str, word: &str) -> Result<(), Reason> {
        tracefs::write(&self.directory.path().join(name), word)
    }

    /// Stops noting. What happens from now on is no part of it.
    pub fn stop(&self) -> Result<(), Reason> {
        self.set("tracing_on", "0")
    }

    /// All that was noted, in the order of time; an error where some of it was lost.
    pub fn read(&self) -> Result<Vec<Event>, Reason> {
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
        Ok(self.of_program(events))
    }

    /// Those of the threads that the starter has started, and of theirs. A switch tells of two
    /// threads, of which one may be anybody's.
    fn of_program(&self, mut events: Vec<Event>) -> Vec<Event> {
        let mut own = BTreeSet::from([self.starter]);
        for event in &events {
            if let What::Forked { child } = event.what
                && own.contains(&event.thread)
            {
                own.insert(child);
            }
        }
        own.remove(&self.starter);
        events.retain(|event| own.contains(&event.thread));
        events
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

    /// What an event says of the program's threads; `None` where it cannot be read.
    fn push(&self, at: Nanos, record: &[u8], events: &mut Vec<Event>) -> Option<()> {
        let id = u16::from_le_bytes(record.get(..2)?.try_into().ok()?);
        let Some(kind) = self.formats.iter().position(|format| format.id == id) else {
            return Some(());
        };
        let field = |name: &str| self.formats[kind].field(name);
        let number = |name: &str| field(name)?.number(record);
        let mut add = |thread: i64, what| {
            let thread = Pid::try_from(thread).ok()?;
            events.push(Event { at, thread, what });
            Some(())
        };
        match kind {
            SWITCH => {
                let state = number("prev_state")? & NOT_RUNNING;
                let out = match state {
                    0 => Out::Preempted,
                    state if state & INTERRUPTIBLE != 0 => Out::Sleeps,
                    _ => Out::Blocked,
                };
                add(number("prev_pid")?, What::Out(out))?;
                let (name, priority) = (field("next_comm")?.text(record)?, number("next_prio")?);
                add(number("next_pid")?, What::In { name, priority })
            }
            WAKING => add(number("pid")?, What::Waking),
            FORK => {
                let child = Pid::try_from(number("child_pid")?).ok()?;
                add(number("parent_pid")?, What::Forked { child })
            }
            // In an interrupt it is somebody else's timer.
            _ if number("common_flags")? & IN_INTERRUPT != 0 => Some(()),
            TIMER_START => {
                let timer = number("hrtimer")?;
                let due = self.by_our_clock(at, Nanos(number("softexpires")?));
                add(number("common_pid")?, What::Set { timer, due })
            }
            TIMER_CANCEL => {
                let timer = number("hrtimer")?;
                add(number("common_pid")?, What::TookBack { timer })
            }
            _ => Some(()),
        }
    }

    /// A timer's moment by the clock of the events. Which clock a timer goes by is in no event:
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

/// Where the fields of an event are, all of which must be there.
fn format(tracefs: &Tracefs, event: &Known) -> Result<EventFormat, Reason> {
    let path = format!("events/{}/{}/format", event.group, event.name);
    let text = fs::read_to_string(tracefs.path(&path))
        .map_err(|error| tracefs::refused(&format!("the kernel's event {}", event.name), &error))?;
    let format = EventFormat::parse(&text);
    let has = |format: &EventFormat| event.fields.iter().all(|name| format.field(name).is_some());
    let complete = format.filter(has);
    complete.ok_or_else(|| format!("the kernel's event {} has other fields", event.name).into())
}

/// How many events a ring had no room for, by its `stats`.
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
    fn what_a_ring_had_no_room_for_is_counted() {
        let stats = "entries: 7\noverrun: 1\ncommit overrun: 2\nbytes: 44\ndropped events: 3\n";
        assert_eq!(lost(stats), Some(6));
        assert_eq!(lost("entries: 7\n"), None);
    }
}
