// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of cyclictest 2.10.

use std::path::PathBuf;

use anyhow::{Result, bail};
use lexopt::{Parser, ValueExt as _};
use punctual_formats::cyclictest_histogram::Bins;
use punctual_model::{CpuId, Nanos};

use crate::programs::cpus;
use crate::programs::getopt::{self, Given, Known};
use crate::programs::live::whole_micros;
use crate::sys::sched::Policy;
use crate::sys::time::Clock;

/// The output of `--help`.
pub const HELP: &str = "\
cyclictest of Punctual, with the options and the output of rt-tests'.

Usage: cyclictest [OPTIONS]

  -a, --affinity [CPUS]    CPUs for the threads, in turn: 0-3,5; default all
  -A, --aligned [USEC]     threads wake up together, each USEC after the last
  -b, --breaktrace USEC    end, and stop the kernel's tracer, at a longer value
  -c, --clock CLOCK        0: CLOCK_MONOTONIC (default), 1: CLOCK_REALTIME
  -d, --distance USEC      each thread's interval is longer by this; default 500
  -D, --duration TIME      end after TIME: 90, 10m, 2h, 1d
  -F, --fifo PATH          make a named pipe: who reads it gets the threads' lines
  -h, --histogram US       print a histogram of values up to US
  -H, --histofall US       the same with a column of sums
      --histfile FILE      the histogram to FILE
      --bins all|recorded  every bin, as rt-tests up to 2.6 (default), or those
                           that are not empty, as later versions
  -i, --interval USEC      the first thread's interval; default 1000
      --json FILE          results as JSON to FILE (- is standard output)
      --laptop, --default-system
                           leave the CPU's sleep states as they are
      --latency US         allow the CPU to sleep as long as waking takes US;
                           default 0
  -l, --loops N            end after N cycles; default 0, until Ctrl-C
      --mainaffinity CPU   bind the main thread
  -m, --mlockall           lock memory
  -M, --refresh_on_max     show anew only when a maximum has grown
  -N, --nsecs              values in nanoseconds
  -n, --nanosleep          as always
  -o, --oscope N           with -v: the largest of each N values
  -p, --priority PRIO      real-time priority; SCHED_FIFO unless --policy says rr
      --policy NAME        other, normal, batch, idle, fifo, rr
      --priospread         each thread's priority is lower by one
  -q, --quiet              print only a summary
      --secaligned [USEC]  as -A, from the next full second on
  -r, --relative           sleep for the interval, not until a deadline: the time
                           between two samples is not measured
  -R, --resolution         tell the clock's resolution, where it is coarser than
                           the kernel says; with -v always
  -s, --system             sleep by nanosleep(2), for the interval
  -S, --smp                one thread on each CPU
      --smi                count system management interrupts (Intel's CPUs)
      --spike US           keep the values above this, and print them in the end
      --spike-nodes N      keep as many of them; default 1024
  -t, --threads [N]        N threads; without N one for each CPU; default 1
      --tracemark          with -b: write a mark into the trace
  -u, --unbuffered         as always
  -v, --verbose            print each value: thread:cycle:value
  -x, --posix_timers       wait for a timer's signal (timer_create(2))
      --help               this text
";

/// The options that this program knows, and those that only the original has.
const KNOWN: Known = Known {
    program: "cyclictest",
    longs: &[
        "affinity",
        "aligned",
        "bins",
        "breaktrace",
        "clock",
        "dbg_cyclictest",
        "default-system",
        "distance",
        "duration",
        "fifo",
        "help",
        "histfile",
        "histofall",
        "histogram",
        "interval",
        "json",
        "laptop",
        "latency",
        "loops",
        "mainaffinity",
        "mlockall",
        "nanosleep",
        "nsecs",
        "oscope",
        "policy",
        "posix_timers",
        "priority",
        "priospread",
        "quiet",
        "refresh_on_max",
        "relative",
        "resolution",
        "secaligned",
        "smi",
        "smp",
        "spike",
        "spike-nodes",
        "system",
        "threads",
        "tracemark",
        "unbuffered",
        "verbose",
    ],
    refused: &[
        ("-U", "use -S"),
        ("--deepest-idle-state", "use --latency US"),
    ],
};

/// The request of the command line.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "one for each flag")]
pub struct Options {
    pub help: bool,
    pub threads: usize,
    pub cpus: Vec<CpuId>,
    pub main_cpu: Option<CpuId>,
    pub policy: Policy,
    pub priority: u8,
    pub spread: bool,
    pub interval_us: u64,
    pub distance_us: u64,
    pub loops: u64,
    pub duration: Option<Nanos>,
    pub aligned: Option<Aligned>,
    pub histogram: Option<usize>,
    pub sum: bool,
    pub bins: Bins,
    pub histfile: Option<PathBuf>,
    pub json: Option<PathBuf>,
    pub nanoseconds: bool,
    pub quiet: bool,
    pub verbose: bool,
    pub reduction: u64,
    pub refresh_on_max: bool,
    pub lock: bool,
    /// The longest time that the CPU may take to wake up; `None` does not limit it.
    pub pm_qos_us: Option<u32>,
    pub break_above: Option<u64>,
    pub mark: bool,
    pub clock: Clock,
    /// True if a thread sleeps for an interval instead of until a deadline.
    pub relative: bool,
    pub wait: Wait,
    pub resolution: bool,
    pub fifo: Option<PathBuf>,
    pub smi: bool,
    /// Values above this are kept.
    pub spike: Option<u64>,
    pub spikes_kept: usize,
}

/// The means by which a thread waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// `clock_nanosleep(2)`.
    #[default]
    Clock,
    /// nanosleep(2), always for an interval.
    System,
    /// A timer's signal, `timer_create(2)`.
    Timer,
}

impl Options {
    /// Returns the longest time that is not above this number of the command line's unit.
    pub fn up_to(&self, number: u64) -> Nanos {
        if self.nanoseconds {
            Nanos(number as i64)
        } else {
            whole_micros(number)
        }
    }
}

/// Threads that wake up together.
#[derive(Clone, Copy, Debug)]
pub struct Aligned {
    /// True if they wake up from the next full second on.
    pub second: bool,
    /// The time from a thread's wake-up to that of the next thread.
    pub offset: Nanos,
}

/// Reads the command line.
pub fn parse(parser: &mut Parser) -> Result<Options> {
    let mut options = Options {
        help: false,
        threads: 1,
        cpus: cpus::read("online")?,
        main_cpu: None,
        policy: Policy::Other,
        priority: 0,
        spread: false,
        interval_us: 1_000,
        distance_us: 500,
        loops: 0,
        duration: None,
        aligned: None,
        histogram: None,
        sum: false,
        bins: Bins::All,
        histfile: None,
        json: None,
        nanoseconds: false,
        quiet: false,
        verbose: false,
        reduction: 1,
        refresh_on_max: false,
        lock: false,
        pm_qos_us: Some(0),
        break_above: None,
        mark: false,
        clock: Clock::Monotonic,
        relative: false,
        wait: Wait::Clock,
        resolution: false,
        fifo: None,
        smi: false,
        spike: None,
        spikes_kept: 1_024,
    };
    let mut smp = false;
    while let Some(given) = KNOWN.next(parser)? {
        let name = match given {
            Given::Short(letter) => long_name(letter),
            Given::Long(name) => name,
            // The original passes over words that belong to no option.
            Given::Operand(_) => continue,
        };
        match name {
            "smp" => smp = true,
            "help" => options.help = true,
            "affinity" | "threads" if smp => {
                getopt::optional(parser)?;
                eprintln!("WARN: -{} ignored due to smp mode", &name[..1]);
            }
            name => {
                if name.is_empty() || !option(&mut options, parser, name)? {
                    return Err(KNOWN.unexpected(&given));
                }
            }
        }
    }
    if smp {
        options.cpus = cpus::read("online")?;
        options.threads = options.cpus.len();
    }
    settle(&mut options)?;
    Ok(options)
}

fn long_name(letter: char) -> &'static str {
    match letter {
        'a' => "affinity",
        'A' => "aligned",
        'b' => "breaktrace",
        'c' => "clock",
        'd' => "distance",
        'D' => "duration",
        'F' => "fifo",
        'h' => "histogram",
        'H' => "histofall",
        'i' => "interval",
        'l' => "loops",
        'm' => "mlockall",
        'M' => "refresh_on_max",
        'n' => "nanosleep",
        'N' => "nsecs",
        'o' => "oscope",
        'p' => "priority",
        'q' => "quiet",
        'r' => "relative",
        'R' => "resolution",
        's' => "system",
        'S' => "smp",
        't' => "threads",
        'u' => "unbuffered",
        'v' => "verbose",
        'x' => "posix_timers",
        _ => "",
    }
}

/// Takes one option with its value; returns true if there is such an option.
fn option(options: &mut Options, parser: &mut Parser, name: &str) -> Result<bool> {
    match name {
        "affinity" => {
            if let Some(list) = getopt::optional(parser)? {
                options.cpus = cpus::online_among(&list)?;
            }
        }
        "aligned" | "secaligned" => {
            let micros = getopt::optional(parser)?.unwrap_or_else(|| "0".into());
            let micros = getopt::among(&format!("--{name}"), &micros, 0, 1_000_000)?;
            options.aligned = Some(Aligned {
                second: name == "secaligned",
                offset: Nanos::from_micros(micros as i64),
            });
        }
        "breaktrace" => options.break_above = Some(getopt::within(parser, "-b", 1, 1 << 40)?),
        "clock" => {
            options.clock = match getopt::within(parser, "-c", 0, 1)? {
                0 => Clock::Monotonic,
                _ => Clock::Realtime,
            }
        }
        "distance" => options.distance_us = getopt::within(parser, "-d", 0, 1_000_000_000)?,
        "duration" => {
            options.duration = getopt::duration(parser, "-D")?;
        }
        "fifo" => options.fifo = Some(parser.value()?.into()),
        "histogram" | "histofall" => {
            options.histogram = Some(getopt::within(parser, "-h", 1, 1_000_000)? as usize);
            options.sum = name == "histofall";
        }
        "histfile" => options.histfile = Some(parser.value()?.into()),
        "bins" => {
            options.bins = match parser.value()?.string()?.as_str() {
                "all" => Bins::All,
                "recorded" => Bins::Recorded,
                other => bail!("--bins {other}: must be all or recorded"),
            }
        }
        "interval" => options.interval_us = getopt::within(parser, "-i", 10, 1_000_000_000)?,
        "json" => options.json = Some(parser.value()?.into()),
        "laptop" | "default-system" => options.pm_qos_us = None,
        "latency" => {
            options.pm_qos_us = Some(getopt::within(parser, "--latency", 0, 2_000_000_000)? as u32);
        }
        "loops" => options.loops = getopt::number(parser, "-l")?,
        "mainaffinity" => {
            options.main_cpu = cpus::online_among(&parser.value()?.string()?)?
                .first()
                .copied();
        }
        "mlockall" => options.lock = true,
        "refresh_on_max" => options.refresh_on_max = true,
        "nsecs" => options.nanoseconds = true,
        "oscope" => options.reduction = getopt::within(parser, "-o", 1, 1_000_000_000)?,
        "priority" => {
            options.priority = getopt::within(parser, "-p", 0, 99)? as u8;
            if !options.policy.is_real_time() {
                options.policy = Policy::Fifo;
            }
        }
        "policy" => options.policy = policy(&parser.value()?.string()?)?,
        "priospread" => options.spread = true,
        "quiet" => options.quiet = true,
        "posix_timers" => options.wait = both(options.wait, Wait::Timer),
        "resolution" => options.resolution = true,
        "smi" => options.smi = true,
        "spike" => options.spike = Some(getopt::within(parser, "--spike", 1, 1 << 40)?),
        "spike-nodes" => {
            options.spikes_kept = getopt::within(parser, "--spike-nodes", 1, 1_000_000)? as usize;
        }
        "system" => options.wait = both(options.wait, Wait::System),
        "threads" => {
            options.threads = match getopt::optional(parser)? {
                None => cpus::read("online")?.len(),
                Some(count) => getopt::among("-t", &count, 1, 4_096)? as usize,
            };
        }
        "tracemark" => options.mark = true,
        "relative" => options.relative = true,
        // What is always done, and what the original tells those who work on it.
        "nanosleep" | "unbuffered" | "dbg_cyclictest" => {}
        "verbose" => options.verbose = true,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Combines one way of waiting with another that is requested too.
fn both(one: Wait, other: Wait) -> Wait {
    if one == Wait::Clock || one == other {
        return other;
    }
    eprint!(
        "WARN: The system option requires clock_nanosleep\n\
         WARN: and is not compatible with posix_timers\n\
         WARN: Using clock_nanosleep\n"
    );
    Wait::System
}

fn policy(name: &str) -> Result<Policy> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "other" | "normal" => Policy::Other,
        "batch" => Policy::Batch,
        "idle" => Policy::Idle,
        "fifo" => Policy::Fifo,
        "rr" => Policy::RoundRobin,
        _ => bail!("--policy {name}: must be other, normal, batch, idle, fifo or rr"),
    })
}

/// Applies the consequences of options together.
fn settle(options: &mut Options) -> Result<()> {
    let need = options.threads + 1;
    if options.priority == 0 && (options.spread || options.policy.is_real_time()) {
        options.priority = need.min(99) as u8;
        eprintln!("defaulting realtime priority to {}", options.priority);
    }
    if options.priority > 0 && !options.policy.is_real_time() {
        eprintln!("policy and priority don't match: setting policy to SCHED_FIFO");
        options.policy = Policy::Fifo;
    }
    if options.spread && usize::from(options.priority) < options.threads {
        bail!(
            "--priospread: {} threads need a priority of as much",
            options.threads
        );
    }
    if options.histogram.is_some() {
        options.distance_us = 0;
    }
    if options.reduction > 1 && !options.verbose {
        bail!("-o is of use only with -v");
    }
    if options.mark && options.break_above.is_none() {
        bail!("--tracemark needs -b USEC");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Result<Options> {
        parse(&mut Parser::from_args(words))
    }

    fn error(words: &[&str]) -> String {
        options(words).unwrap_err().to_string()
    }

    #[test]
    fn command_lines_that_people_use_are_understood() {
        // OSADL's, without -U, which the original refuses too.
        let osadl = options(&["-l100000000", "-m", "-Sp99", "-i200", "-h400", "-q"]).unwrap();
        assert_eq!((osadl.loops, osadl.priority), (100_000_000, 99));
        assert_eq!((osadl.interval_us, osadl.histogram), (200, Some(400)));
        assert!(osadl.lock && osadl.quiet && osadl.policy == Policy::Fifo);
        assert_eq!((osadl.threads, osadl.distance_us), (osadl.cpus.len(), 0));
        // rteval's, with an empty word where it has no interval to tell.
        let rteval = options(&["", "-qmu", "-h 2000", "-p95", "-t", "-a"]).unwrap();
        assert_eq!((rteval.histogram, rteval.priority), (Some(2_000), 95));
        assert_eq!(rteval.threads, rteval.cpus.len());
        let one = options(&["-t", "1", "-a", "0", "-p", "80", "-D", "1m"]).unwrap();
        assert_eq!((one.threads, one.cpus), (1, vec![CpuId(0)]));
        assert_eq!(one.duration, Some(Nanos(60_000_000_000)));
    }

    #[test]
    fn what_the_original_has_and_this_has_not_is_refused_by_name() {
        for (name, instead) in KNOWN.refused {
            let error = error(&[name]);
            assert!(error.contains(name) && error.contains(instead), "{error}");
        }
        let old = options(&["-n", "-r", "-c", "1"]).unwrap();
        assert!(old.relative && old.clock == Clock::Realtime);
        assert!(error(&["-c", "2"]).contains("0 to 1"));
        assert!(error(&["--spike", "0"]).contains("--spike 0"));
        assert!(error(&["--nonsense"]).contains("--nonsense"));
    }

    #[test]
    fn ways_of_waiting_give_way_to_nanosleep_as_in_the_original() {
        let wait = |words: &[&str]| options(words).unwrap().wait;
        assert_eq!(wait(&["-q"]), Wait::Clock);
        assert_eq!(wait(&["-x"]), Wait::Timer);
        assert_eq!(wait(&["--system"]), Wait::System);
        assert_eq!(wait(&["-sx"]), Wait::System);
        assert_eq!(wait(&["--posix_timers", "-s", "-x"]), Wait::System);
    }

    #[test]
    fn spikes_are_above_whole_numbers_of_the_unit() {
        let spike = |words: &[&str]| {
            let options = options(words).unwrap();
            (
                options.spike.map(|above| options.up_to(above)),
                options.spikes_kept,
            )
        };
        assert_eq!(spike(&["--spike=5"]), (Some(Nanos(5_999)), 1_024));
        let words = ["--spike-nodes", "3", "--spike", "5", "-N"];
        assert_eq!(spike(&words), (Some(Nanos(5)), 3));
    }

    #[test]
    fn lines_of_other_peoples_scripts_are_read_as_the_original_reads_them() {
        let read = |line: &str| options(&line.split(' ').collect::<Vec<_>>()).unwrap();
        assert_eq!(read("-q --int=500 -l 20").interval_us, 500);
        assert_eq!(read("-q -l 20 -i 1000us").interval_us, 1_000);
        assert_eq!(read("-q -l 20 --latency=PM_QOS").pm_qos_us, Some(0));
        assert_eq!(read("-p 80x -q").priority, 80);
        assert_eq!(read("-smp -p 80").priority, 2);
        assert_eq!(read("-q -b 1000x").break_above, Some(1_000));
        let aligned = read("-q -l 20 -c 1 -A 500").aligned.unwrap();
        assert_eq!(
            (aligned.second, aligned.offset),
            (false, Nanos::from_micros(500))
        );
        let second = read("-D 1 -q -r -R --secaligned -s");
        assert!(second.aligned.unwrap().second && second.relative);
        let seconds = |line| {
            read(line)
                .duration
                .map(|duration| duration.0 / 1_000_000_000)
        };
        assert_eq!(seconds("-D 1 -q --dbg_cyclictest"), Some(1));
        assert_eq!(seconds("-q -l 20 --dur=1"), Some(1));
        assert_eq!(
            (seconds("-q -D 1m0s"), seconds("-q -D 1S")),
            (Some(60), Some(1))
        );
        assert_eq!((seconds("-D 1h0m0s"), seconds("-D 0")), (Some(3_600), None));
        // A CPU that there is not, and threads that are not wanted: -S has the word.
        let smp = read("-S -a 65535 -t 4096 -D 1 -q");
        assert_eq!(smp.threads, smp.cpus.len());
        assert!(error(&["-a", "65535", "-S"]).contains("cpu65535"));
    }

    #[test]
    fn what_contradicts_itself_is_an_error() {
        assert!(error(&["-o", "5"]).contains("-v"));
        assert!(error(&["--tracemark"]).contains("-b"));
        assert!(error(&["-t", "3", "--priospread", "-p", "2"]).contains("priospread"));
        assert!(error(&["-p", "100"]).contains("0 to 99"));
        assert!(error(&["--policy", "edf"]).contains("fifo"));
    }
}
