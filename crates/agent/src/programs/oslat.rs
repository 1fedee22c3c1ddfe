// SPDX-License-Identifier: MIT OR Apache-2.0
//! `oslat`, with the options and the output of rt-tests': the time for which a thread that reads
//! the clock in a loop is kept from it. Unlike the probe `noise`, it counts every gap, whatever its
//! cause.

use std::fmt::{Display, Write as _};
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};
use jiff::Timestamp;
use lexopt::{Parser, ValueExt as _};
use punctual_formats::cyclictest_json::Results;
use punctual_formats::oslat_json::{self as json, Thread};
use punctual_model::{CpuId, Nanos};

use super::getopt::{self, Given, Known};
use super::tracing::Tracing;
use super::{Program, cpus, results};
use crate::rt;
use crate::sys::sched::Policy;
use crate::sys::time::now;
use crate::sys::{memory, signal};
use crate::threads::{self, Over, Started};

/// This program.
pub const PROGRAM: Program = Program { name: "oslat", run };

const HELP: &str = "\
oslat of Punctual, with the options and the output of rt-tests'.

Usage: oslat [OPTIONS]

  -b, --bucket-size N         buckets of 1 us each (5 to 1024); default 32
  -B, --bias                  take the smallest gap of the pre-heat from each
  -c, --cpu-list CPUS         one thread on each of these: 1,3-5; default all
  -C, --cpu-main-thread CPU   where the main thread runs; default 0
  -D, --duration TIME         90, 10m, 2h, 1d; default 1
  -f, --rtprio PRIO           SCHED_FIFO priority; without it SCHED_OTHER
      --json FILE             results as JSON to FILE
  -m, --workload-mem SIZE     of each of the two buffers: 4K, 1M; default 16K
  -q, --quiet                 print only a summary
  -s, --single-preheat        pre-heat on one CPU
  -T, --trace-threshold USEC  end, and stop the kernel's tracer, at such a gap
  -w, --workload no|memmove   what is done between two readings; default no
  -z, --zero-omit             leave out empty buckets
  -v, --version               the version of rt-tests whose output this is
  -h, --help                  this text

With -f a thread on each CPU leaves the machine no other: a second later at most
the kernel takes it away again (sched_rt_runtime_us), which shows as a gap.
";

const KNOWN: Known = Known {
    program: "oslat",
    longs: &[
        "bias",
        "bucket-size",
        "cpu-list",
        "cpu-main-thread",
        "duration",
        "help",
        "json",
        "quiet",
        "rtprio",
        "single-preheat",
        "trace-threshold",
        "version",
        "workload",
        "workload-mem",
        "zero-omit",
    ],
    refused: &[],
};

/// The duration of the pre-heating.
const PREHEAT: Nanos = Nanos::from_millis(1_000);

/// The time between two looks at whether the user requests the end.
const PACE: Nanos = Nanos::from_millis(20);

/// The request of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each flag")]
struct Options {
    buckets: usize,
    bias: bool,
    cpus: Vec<CpuId>,
    /// The CPUs as the command line names them.
    list: String,
    main: CpuId,
    duration: Nanos,
    priority: u8,
    json: Option<PathBuf>,
    bytes: usize,
    quiet: bool,
    single_preheat: bool,
    trace_above_us: Option<u64>,
    memmove: bool,
    omit_zeros: bool,
}

fn parse(arguments: &mut Parser) -> Result<Asked> {
    let mut options = Options {
        buckets: 32,
        bias: false,
        cpus: cpus::read("online")?,
        list: "all".into(),
        main: CpuId(0),
        duration: Nanos::from_millis(1_000),
        priority: 0,
        json: None,
        bytes: 16 << 10,
        quiet: false,
        single_preheat: false,
        trace_above_us: None,
        memmove: false,
        omit_zeros: false,
    };
    while let Some(given) = KNOWN.next(arguments)? {
        match given {
            Given::Short('b') | Given::Long("bucket-size") => {
                options.buckets = getopt::within(arguments, "-b", 5, 1_024)? as usize;
            }
            Given::Short('B') | Given::Long("bias") => options.bias = true,
            Given::Short('c') | Given::Long("cpu-list") => {
                options.list = arguments.value()?.string()?;
                options.cpus = cpus::online_among(&options.list)?;
            }
            Given::Short('C') | Given::Long("cpu-main-thread") => {
                let cpus = cpus::online_among(&arguments.value()?.string()?)?;
                options.main = cpus.first().copied().unwrap_or(CpuId(0));
            }
            Given::Short('D') | Given::Long("duration") => {
                let duration = getopt::duration(arguments, "-D")?;
                options.duration = duration.context("-D: expected a duration of 1 s or more")?;
            }
            Given::Short('f') | Given::Long("rtprio") => {
                options.priority = getopt::within(arguments, "-f", 1, 99)? as u8;
            }
            Given::Long("json") => options.json = Some(arguments.value()?.into()),
            Given::Short('m') | Given::Long("workload-mem") => {
                options.bytes = size(&arguments.value()?.string()?)?;
            }
            Given::Short('q') | Given::Long("quiet") => options.quiet = true,
            Given::Short('s') | Given::Long("single-preheat") => options.single_preheat = true,
            Given::Short('T') | Given::Long("trace-threshold") => {
                options.trace_above_us = Some(getopt::within(arguments, "-T", 1, 1 << 30)?);
            }
            Given::Short('w') | Given::Long("workload") => {
                options.memmove = match arguments.value()?.string()?.as_str() {
                    "no" => false,
                    "memmove" => true,
                    other => bail!("-w {other}: must be no or memmove"),
                }
            }
            Given::Short('z') | Given::Long("zero-omit") => options.omit_zeros = true,
            Given::Short('v') | Given::Long("version") => return Ok(Asked::Version),
            Given::Short('h') | Given::Long("help") => return Ok(Asked::Help),
            // The original passes over words that belong to no option.
            Given::Operand(_) => {}
            Given::Short(_) | Given::Long(_) => return Err(KNOWN.unexpected(&given)),
        }
    }
    Ok(Asked::Measurement(options))
}

/// The requested action.
#[derive(Debug)]
enum Asked {
    Measurement(Options),
    Version,
    Help,
}

/// Reads a number of bytes: `4K`, `1M`, `512`.
fn size(text: &str) -> Result<usize> {
    let (digits, shift) = match text.trim().to_ascii_uppercase().as_bytes() {
        [digits @ .., b'K'] => (digits.len(), 10),
        [digits @ .., b'M'] => (digits.len(), 20),
        all => (all.len(), 0),
    };
    let number = text
        .trim()
        .get(..digits)
        .and_then(|digits| digits.parse::<usize>().ok());
    let bytes = number.and_then(|number| number.checked_shl(shift));
    bytes
        .filter(|bytes| (1..=1 << 30).contains(bytes))
        .with_context(|| format!("-m {text}: expected a size up to 1024M: 4K, 1M"))
}

fn run(arguments: &mut Parser) -> Result<()> {
    let (command, started) = (std::env::args().collect::<Vec<_>>(), Timestamp::now());
    let mut out = io::stdout().lock();
    let options = match parse(arguments)? {
        Asked::Measurement(options) => options,
        Asked::Version => return Ok(out.write_all(version().as_bytes())?),
        Asked::Help => return Ok(out.write_all(HELP.as_bytes())?),
    };
    signal::hold(&signal::ENDING)?;
    rt::pin(options.main).map_err(|why| anyhow!("-C: {why}"))?;
    memory::lock_all().context("memory cannot be locked: run as root, or raise RLIMIT_MEMLOCK")?;
    let tracing = options
        .trace_above_us
        .map(|_| Tracing::open(true).ok())
        .unwrap_or_default();
    let preheated = if options.single_preheat {
        1
    } else {
        options.cpus.len()
    };
    let say = |out: &mut io::StdoutLock, text: &str| -> Result<()> {
        if !options.quiet {
            out.write_all(text.as_bytes())?;
            out.flush()?;
        }
        Ok(())
    };
    out.write_all(version().as_bytes())?;
    say(&mut out, &head(&options, preheated))?;
    say(&mut out, "Pre-heat for 1 seconds...\n")?;
    let warm = Options {
        cpus: options.cpus[..preheated].to_vec(),
        trace_above_us: None,
        duration: PREHEAT,
        ..options.clone()
    };
    let warm = experiment(&warm, 0, None)?;
    let least = warm.counts.iter().map(|one| one.min_us).min().unwrap_or(0);
    let bias = if options.bias { least } else { 0 };
    if options.bias {
        say(&mut out, &format!("Global bias set to {bias} (us)\n"))?;
    }
    if !warm.is_ended {
        say(&mut out, "Test starts...\n")?;
    }
    let done = experiment(&options, bias, tracing.as_ref())?;
    if let Some((cpu, micros)) = done.broken {
        let above = options.trace_above_us.unwrap_or_default();
        bail!(
            "Trace threshold ({above} us) triggered on {cpu} with {micros} us!\nStopping the test."
        );
    }
    say(&mut out, "Test completed.\n\n")?;
    out.write_all(summary(&options, bias, &done.counts).as_bytes())?;
    if let Some(path) = &options.json {
        let results = results::now(&command.join(" "), started);
        let text = json::write(&results_of(results, bias, &done.counts));
        fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// The outcome of an experiment.
struct Done {
    counts: Vec<Counts>,
    /// True if the user has ended it.
    is_ended: bool,
    /// The gap that was too long, in microseconds, and its CPU.
    broken: Option<(CpuId, u64)>,
}

/// Runs one thread on each CPU, all at once.
fn experiment(options: &Options, bias_us: u64, tracing: Option<&Tracing>) -> Result<Done> {
    let (over, gathered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (over, gathered) = (&over, &gathered);
    thread::scope(|scope| {
        // On each way out: they spin until somebody says so.
        let _over = Over(over);
        let live = move |cpu| watch(options, bias_us, cpu, tracing, over, gathered);
        let threads = threads::start_all(scope, None, options.cpus.iter().copied(), live);
        let threads = threads.map_err(|why| anyhow!("{why}"))?;
        let mut is_ended = false;
        while !threads.iter().all(Started::is_finished) {
            if signal::wait_for(&signal::ENDING, PACE)?.is_some() {
                is_ended = true;
                over.store(true, Ordering::Relaxed);
            }
        }
        let mut done = Done {
            counts: Vec::new(),
            is_ended,
            broken: None,
        };
        for thread in threads {
            let (counts, broken) = thread.join().map_err(|why| anyhow!("{why}"))??;
            done.broken = done.broken.or(broken.map(|micros| (counts.cpu, micros)));
            done.counts.push(counts);
        }
        Ok(done)
    })
}

/// Runs one thread for its whole life; returns its counts, and the gap that was too long.
fn watch(
    options: &Options,
    bias_us: u64,
    cpu: CpuId,
    tracing: Option<&Tracing>,
    over: &AtomicBool,
    gathered: &AtomicUsize,
) -> Result<(Counts, Option<u64>)> {
    let mut counts = Counts::new(cpu, options.buckets, bias_us);
    let mut work = Work::new(if options.memmove { options.bytes } else { 0 });
    let prepared = rt::pin(cpu).and_then(|()| match options.priority {
        0 => Ok(()),
        priority => rt::schedule(Policy::Fifo, priority),
    });
    // Also a thread that cannot measure is counted, so that the others go on.
    gathered.fetch_add(1, Ordering::SeqCst);
    prepared.map_err(|why| {
        over.store(true, Ordering::Relaxed);
        anyhow!("{why}")
    })?;
    // Nobody sleeps from here on: the CPU's frequency shall be what it will be.
    while gathered.load(Ordering::SeqCst) < options.cpus.len() && !over.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
    let limit = options.trace_above_us.unwrap_or(u64::MAX);
    let broken = spin(&mut counts, &mut work, options.duration, limit, over);
    if broken.is_some() {
        over.store(true, Ordering::Relaxed);
        if let Some(tracing) = tracing {
            tracing.stop("oslat: trace threshold");
        }
    }
    Ok((counts, broken))
}

/// Measures: reads the clock until the time is over, and counts each gap. Returns the first gap
/// of so many microseconds.
#[inline(never)]
fn spin(
    counts: &mut Counts,
    work: &mut Work,
    duration: Nanos,
    limit_us: u64,
    over: &AtomicBool,
) -> Option<u64> {
    let begin = now();
    let mut before = begin;
    let mut broken = None;
    while before - begin < duration && broken.is_none() && !over.load(Ordering::Relaxed) {
        work.go();
        let after = now();
        let micros = counts.take(after - before);
        broken = (micros >= limit_us).then_some(micros);
        before = after;
    }
    counts.duration = before - begin;
    broken
}

/// Two buffers, one of which is copied into the other.
struct Work {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Work {
    /// Creates buffers of so many bytes each, all of them touched.
    fn new(bytes: usize) -> Self {
        Self {
            from: vec![1; bytes],
            to: vec![2; bytes],
        }
    }

    #[inline]
    fn go(&mut self) {
        self.to.copy_from_slice(&self.from);
        std::hint::black_box(&self.to);
    }
}

/// Gaps of one CPU, in microseconds, rounded up.
#[derive(Debug)]
struct Counts {
    cpu: CpuId,
    bias_us: u64,
    /// The counts; the last bucket also includes all longer gaps.
    buckets: Vec<u64>,
    min_us: u64,
    max_us: u64,
    /// The sum of the times by which gaps in the last bucket exceed it.
    beyond_us: u64,
    duration: Nanos,
}

impl Counts {
    fn new(cpu: CpuId, buckets: usize, bias_us: u64) -> Self {
        // Each of its pages is touched.
        let mut all = vec![1; buckets];
        all.fill(0);
        Self {
            cpu,
            bias_us,
            buckets: all,
            min_us: u64::MAX,
            max_us: 0,
            beyond_us: 0,
            duration: Nanos::ZERO,
        }
    }

    /// Counts a gap; returns its length in microseconds.
    #[inline]
    fn take(&mut self, gap: Nanos) -> u64 {
        let micros = gap.0.unsigned_abs().div_ceil(1_000).max(1);
        self.min_us = self.min_us.min(micros);
        self.max_us = self.max_us.max(micros);
        let place = micros.saturating_sub(self.bias_us).max(1) as usize - 1;
        let last = self.buckets.len() - 1;
        self.beyond_us += place.saturating_sub(last) as u64;
        self.buckets[place.min(last)] += 1;
        micros
    }

    /// Returns the mean of the buckets' upper ends, in microseconds, as the original does.
    fn average_us(&self) -> f64 {
        let of_bucket = |(at, count): (u64, &u64)| count * (at + 1 + self.bias_us);
        let sum: u64 = (0..).zip(&self.buckets).map(of_bucket).sum();
        (sum + self.beyond_us) as f64 / self.buckets.iter().sum::<u64>().max(1) as f64
    }
}

fn version() -> String {
    format!("oslat V {}\n", results::VERSION)
}

fn head(options: &Options, preheated: usize) -> String {
    let priority = match options.priority {
        0 => "default".to_owned(),
        priority => format!("SCHED_FIFO:{priority}"),
    };
    let (work, kib) = if options.memmove {
        ("memmove", options.bytes >> 10)
    } else {
        ("no", 0)
    };
    format!(
        "Total runtime: \t\t{} seconds\nThread priority: \t{priority}\n\
         CPU list: \t\t{}\nCPU for main thread: \t{}\nWorkload: \t\t{work}\n\
         Workload mem: \t\t{kib} (KiB)\nPreheat cores: \t\t{preheated}\n\n",
        options.duration.0 / 1_000_000_000,
        options.list,
        options.main.0
    )
}

fn summary(options: &Options, bias_us: u64, all: &[Counts]) -> String {
    let mut text = String::new();
    let mut put = |label: &str, of: &dyn Fn(&Counts) -> String, end: &str| {
        let values: Vec<String> = all.iter().map(|one| format!(" {}", of(one))).collect();
        _ = writeln!(text, "{label:>12}:\t{}{end}", values.concat());
    };
    let shown = |value: &dyn Display| value.to_string();
    put("Core", &|one| shown(&one.cpu.0), "");
    // The clock that is read counts nanoseconds.
    put("Counter Freq", &|_| "1000".into(), " (Mhz)");
    let last = options.buckets - 1;
    let mut was_omitted = false;
    for at in 0..options.buckets {
        let is_empty = all.iter().all(|one| one.buckets[at] == 0);
        if at < last && options.omit_zeros && is_empty {
            was_omitted = true;
            continue;
        }
        if was_omitted {
            put(DOTS, &|_| String::new(), "");
            was_omitted = false;
        }
        let label = format!("{:03} (us)", bias_us + at as u64 + 1);
        let end = if at == last {
            " (including overflows)"
        } else {
            ""
        };
        put(&label, &|one| shown(&one.buckets[at]), end);
    }
    put("Minimum", &|one| shown(&one.min_us), " (us)");
    put(
        "Average",
        &|one| format!("{:.3}", one.average_us()),
        " (us)",
    );
    put("Maximum", &|one| shown(&one.max_us), " (us)");
    put(
        "Max-Min",
        &|one| shown(&one.max_us.saturating_sub(one.min_us)),
        " (us)",
    );
    let seconds = |one: &Counts| format!("{:.3}", one.duration.0 as f64 / 1e9);
    put("Duration", &seconds, " (sec)");
    let dots = format!("{DOTS:>12}:\t{}\n", " ".repeat(all.len()));
    text.replace(&dots, "    ...\n") + "\n"
}

/// Stands for a line that has no column.
const DOTS: &str = "...";

fn results_of(results: Results, bias_us: u64, all: &[Counts]) -> json::Oslat {
    let thread = |one: &Counts| {
        let bins = (0..).zip(&one.buckets).filter(|(_, count)| **count > 0);
        Thread {
            cpu: one.cpu.0,
            mhz: 1_000,
            min_us: one.min_us,
            avg_us: one.average_us(),
            max_us: one.max_us,
            duration_s: one.duration.0 as f64 / 1e9,
            histogram: bins
                .map(|(at, count): (u64, _)| (at + 1 + bias_us, *count))
                .collect(),
        }
    };
    json::Oslat {
        results,
        threads: all.iter().map(thread).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Result<Options> {
        match parse(&mut Parser::from_args(words))? {
            Asked::Measurement(options) => Ok(options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_that_of_the_original() {
        let words = "-b 8 -c 0 -C 0 -D 2M -f 5 -m 4K -q -s -T 100 -w memmove -z -B";
        let found = options(&words.split(' ').collect::<Vec<_>>()).unwrap();
        assert_eq!((found.buckets, found.priority, found.bytes), (8, 5, 4096));
        assert_eq!(found.duration, Nanos(120_000_000_000));
        assert!(found.bias && found.omit_zeros && found.memmove && found.single_preheat);
        let error = |words: &[&str]| options(words).unwrap_err().to_string();
        assert!(error(&["-b", "3"]).contains("5 to 1024"));
        assert!(error(&["-m", "2000M"]).contains("1024M"));
        assert!(error(&["-m", "é"]).contains("4K"));
        assert!(error(&["-c", "65535"]).contains("cpu65535"));
        assert!(error(&["-x"]).contains("-x"));
    }

    #[test]
    fn each_gap_is_in_the_bucket_of_its_begun_microseconds() {
        let mut counts = Counts::new(CpuId(0), 4, 0);
        for gap in [0, 20, 1_000, 1_001, 4_000, 4_001, 9_500] {
            counts.take(Nanos(gap));
        }
        assert_eq!(counts.buckets, [3, 1, 0, 3]);
        assert_eq!((counts.min_us, counts.max_us, counts.beyond_us), (1, 10, 7));
        // 1, 1, 1, 2, 4, 5 and 10 us.
        assert!((counts.average_us() - 24.0 / 7.0).abs() < 1e-9);
        let mut biased = Counts::new(CpuId(0), 4, 2);
        biased.take(Nanos(1_500));
        biased.take(Nanos(2_500));
        assert_eq!(biased.buckets, [2, 0, 0, 0]);
        assert!((biased.average_us() - 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_gap_that_is_too_long_ends_it_and_so_does_the_time() {
        let over = AtomicBool::new(false);
        let mut counts = Counts::new(CpuId(0), 4, 0);
        let mut work = Work::new(64);
        let broken = spin(
            &mut counts,
            &mut work,
            Nanos::from_millis(5),
            u64::MAX,
            &over,
        );
        assert_eq!(broken, None);
        assert!(counts.duration >= Nanos::from_millis(5));
        assert!(counts.buckets.iter().sum::<u64>() > 10);
        // Each gap begins a microsecond.
        let mut counts = Counts::new(CpuId(0), 4, 0);
        assert!(spin(&mut counts, &mut work, Nanos::from_millis(5), 1, &over).is_some());
        assert_eq!(counts.buckets.iter().sum::<u64>(), 1);
        over.store(true, Ordering::Relaxed);
        let mut counts = Counts::new(CpuId(0), 4, 0);
        spin(&mut counts, &mut work, Nanos::from_millis(5), 1, &over);
        assert_eq!(counts.buckets.iter().sum::<u64>(), 0);
    }

    #[test]
    fn the_measuring_loop_allocates_nothing() {
        let mut counts = Counts::new(CpuId(0), 32, 0);
        let (mut work, over) = (Work::new(4_096), AtomicBool::new(false));
        let before = crate::sys::counting_allocator::allocations();
        spin(
            &mut counts,
            &mut work,
            Nanos::from_millis(5),
            u64::MAX,
            &over,
        );
        assert_eq!(crate::sys::counting_allocator::allocations(), before);
    }
}
