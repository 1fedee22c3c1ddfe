// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cyclictest`, with the options and the output of rt-tests'. It measures with the code of
//! the probe `timer`.

mod fifo;
mod options;
mod otherwise;
mod output;
mod resolution;

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Barrier;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};
use lexopt::Parser;
use punctual_model::aim::Aim;
use punctual_model::{CpuId, Nanos};

use super::live::{Common, Limit, Live, Shared, Table};
use super::spikes::Spikes;
use super::{Program, cpus};
use crate::dma_latency::{DEVICE, DmaLatency};
use crate::probes::timer;
use crate::real_machine::{self, SmiCounter};
use crate::rt;
use crate::sys::memory;
use crate::sys::signal::{self, SNAPSHOT, STATUS};
use crate::sys::time::Clock;
use crate::threads::{self, Over, Started};
use options::{Options, Wait};
use otherwise::Way;
use output::Screen;

/// This program.
pub const PROGRAM: Program = Program {
    name: "cyclictest",
    run,
};

/// The interval of looks at the threads, and of updates of the screen.
const PACE: Nanos = Nanos::from_millis(10);

const UNREAD: &str = "Could not read SMI counter";

/// One thread's part.
#[derive(Debug)]
struct Part {
    index: usize,
    cpu: CpuId,
    priority: u8,
    interval_us: u64,
    shared: Shared,
}

fn run(arguments: &mut Parser) -> Result<()> {
    let command: Vec<_> = std::env::args().collect();
    let options = options::parse(arguments)?;
    let mut out = io::stdout().lock();
    if options.help {
        return Ok(out.write_all(options::HELP.as_bytes())?);
    }
    let signals = [&signal::ENDING[..], &[STATUS, SNAPSHOT]].concat();
    signal::hold(&signals)?;
    if let Some(cpu) = options.main_cpu {
        rt::pin(cpu).map_err(|why| anyhow!("--mainaffinity: {why}"))?;
    }
    if options.lock {
        memory::lock_all()
            .context("-m: memory cannot be locked: run as root, or raise RLIMIT_MEMLOCK")?;
    }
    if options.smi && !real_machine::is_intel() {
        bail!("SMI counter is not supported on this processor");
    }
    let parts: Vec<Part> = (0..options.threads)
        .map(|index| part(&options, index))
        .collect();
    if options.verbose {
        let count = |kind| cpus::read(kind).map(|cpus| cpus.len());
        writeln!(out, "Max CPUs = {}", count("present")?)?;
        writeln!(out, "Online CPUs = {}", count("online")?)?;
    }
    let _held = hold_dma_latency(&options, &mut out)?;
    if options.resolution {
        eprint!("{}", resolution::warnings(options.clock, options.verbose)?);
    }
    let common = common(&options)?;
    let screen = Screen::new(&options, &parts, &command, out)?;
    let barrier = Barrier::new(parts.len());
    let base = AtomicI64::new(0);
    thread::scope(|scope| {
        let (options, common) = (&options, &common);
        let (barrier, base) = (&barrier, &base);
        let _over = Over(&common.over);
        let live = move |part| measure(options, part, common, barrier, base);
        let threads = threads::start_all(scope, None, &parts, live);
        let threads = threads.map_err(|why| anyhow!("{why}"))?;
        let watch = |screen: &mut Screen| -> Result<()> {
            // As in the original the first to be ready ends all.
            while !common.is_over() && !threads.iter().any(Started::is_finished) {
                match signal::wait_for(&signals, PACE)? {
                    Some(STATUS) => screen.status(),
                    Some(SNAPSHOT) => screen.snapshot(),
                    Some(_) => common.end(),
                    None => screen.show()?,
                }
            }
            Ok(())
        };
        let mut screen = screen;
        let watched = watch(&mut screen);
        common.end();
        let mut tables = Vec::new();
        for thread in threads {
            tables.push(thread.join().map_err(|why| anyhow!("{why}"))??);
        }
        watched?;
        screen.finish(&tables, common)
    })
}

fn part(options: &Options, index: usize) -> Part {
    let lower = if options.spread { index as u8 } else { 0 };
    Part {
        index,
        cpu: options.cpus[index % options.cpus.len()],
        priority: options.priority - lower,
        interval_us: options.interval_us + options.distance_us * index as u64,
        shared: Shared::new(options.verbose),
    }
}

fn common(options: &Options) -> Result<Common> {
    let limit = |above| Limit::new(options.up_to(above), options.mark);
    let spikes = |above| Spikes::new(options.up_to(above), options.spikes_kept);
    Ok(Common {
        limit: options.break_above.map(limit).transpose()?,
        spikes: options.spike.map(spikes),
        ..Common::default()
    })
}

/// Keeps CPUs out of idle states that take long to leave, as long as the returned value lives.
fn hold_dma_latency(options: &Options, out: &mut io::StdoutLock) -> Result<Option<DmaLatency>> {
    let Some(micros) = options.pm_qos_us else {
        return Ok(None);
    };
    match DmaLatency::hold(micros) {
        Ok(held) => {
            writeln!(out, "# {DEVICE} set to {micros}us")?;
            Ok(Some(held))
        }
        Err(error) => {
            eprintln!("cyclictest: {DEVICE}: {error}: CPUs use all idle states (run as root)");
            Ok(None)
        }
    }
}

/// Runs one thread for its whole life.
fn measure(
    options: &Options,
    part: &Part,
    common: &Common,
    barrier: &Barrier,
    base: &AtomicI64,
) -> Result<Table> {
    let unit = if options.nanoseconds { 1 } else { 1_000 };
    let table = options
        .histogram
        .map_or_else(Table::default, |bins| Table::new(unit, bins));
    let mut live = Live::new(common, &part.shared, table, options.duration);
    let prepared = prepare(options, part);
    // Also a thread that cannot measure comes to the barriers, so that the others go on.
    let now = options.clock.now();
    if barrier.wait().is_leader() {
        base.store(now.as_ref().map_or(0, |now| now.0), SeqCst);
    }
    barrier.wait();
    live.smis = prepared?;
    now?;
    let begin = begin(options, part, Nanos(base.load(SeqCst)))?;
    take(options, part, &mut live, begin)?;
    match live.unread {
        Some(error) => Err(error).context(UNREAD),
        None => Ok(live.table),
    }
}

/// Prepares the calling thread, and the counter of its CPU's SMIs if it is requested.
fn prepare(options: &Options, part: &Part) -> Result<Option<SmiCounter>> {
    let prepared = rt::pin(part.cpu).and_then(|()| rt::schedule(options.policy, part.priority));
    prepared.map_err(|why| anyhow!("{why}"))?;
    if !options.smi {
        return Ok(None);
    }
    let path = real_machine::registers(part.cpu);
    let registers = File::open(&path).with_context(|| {
        format!(
            "Could not open MSR interface: {path} open failed, try modprobe msr, \
             chown or chmod +r /dev/cpu/*/msr, or run as root"
        )
    })?;
    let counter = SmiCounter::new(registers).context(UNREAD)?;
    Ok(Some(counter))
}

/// Returns the time when a thread begins, by its clock. All threads were there at `base`. A thread
/// that sleeps for an interval is aligned with no other, as in the original.
fn begin(options: &Options, part: &Part, base: Nanos) -> io::Result<Nanos> {
    let relative = options.relative || options.wait == Wait::System;
    let Some(aligned) = options.aligned.filter(|_| !relative) else {
        return options.clock.now();
    };
    let second = Nanos((base.0 / 1_000_000_000 + 2) * 1_000_000_000);
    let base = if aligned.second { second } else { base };
    Ok(base + aligned.offset * part.index as i64)
}

/// Takes a thread's samples.
fn take(options: &Options, part: &Part, live: &mut Live<'_>, begin: Nanos) -> Result<()> {
    let interval = Nanos::from_micros(part.interval_us as i64);
    let samples = match options.loops {
        0 => u64::MAX,
        loops => loops,
    };
    let first = begin + interval;
    live.origin = (part.index, first);
    let (clock, relative) = (options.clock, options.relative);
    if options.wait == Wait::Clock && !relative && clock == Clock::Monotonic {
        timer::sample(live, first, interval, samples, Aim::NONE);
        return Ok(());
    }
    let way = Way::of(options.wait, clock, relative, first, interval)?;
    Ok(otherwise::sample(live, &way, first, interval, samples)?)
}
