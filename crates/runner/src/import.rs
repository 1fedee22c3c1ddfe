// SPDX-License-Identifier: MIT OR Apache-2.0
//! What another program has measured becomes a run, as far as its file says.

use std::collections::BTreeMap;

use jiff::fmt::rfc2822;
use punctual_formats::FormatError;
use punctual_formats::foreign::{self, Counted, Foreign};
use punctual_kernels::checksum;
use punctual_model::finding::{Fact, Facts};
use punctual_model::machine::HostMachine;
use punctual_model::record::Provenance;
use punctual_model::recording::MISSED;
use punctual_model::run::{IMPORTED, Request, Run, State, Subject};
use punctual_model::{MachineRecord, Nanos, Preemption, Recorder, Recording, RecordingKey};

/// The probe that measures the same: how late a thread is that a timer wakes up.
const PROBE: &str = "timer";

/// What a file does not say, and its user may.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// What the subject is to be called; else by the kernel's release.
    pub subject: Option<String>,
    /// The load that was under way; else it is not known.
    pub load: Option<String>,
    /// The nominal time between two samples.
    pub interval: Option<Nanos>,
    /// Whether values are nanoseconds, not microseconds.
    pub nanoseconds: bool,
}

/// Why a file does not become a run.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It is none that is known, or a damaged one.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// It says itself what was told otherwise.
    #[error("expected a file that does not say its unit, found one of {0} ns")]
    Unit(u64),
    /// It does not hold all that was measured, or contradicts itself.
    #[error("{variant}: {what}")]
    Content {
        /// The thread or CPU.
        variant: String,
        /// What was expected, and what found.
        what: String,
    },
}

/// The run that a file's text holds. Its name is for people.
pub fn import(name: &str, text: &str, told: &Told) -> Result<Run, ImportError> {
    let foreign = foreign::read(text)?;
    let unit_ns = match (foreign.unit_ns, told.nanoseconds) {
        (Some(unit_ns), true) if unit_ns != 1 => return Err(ImportError::Unit(unit_ns)),
        (Some(unit_ns), _) => unit_ns,
        (None, true) => 1,
        (None, false) => 1_000,
    };
    let mut repetitions: BTreeMap<&str, u32> = BTreeMap::new();
    let mut recordings = Vec::new();
    for counted in &foreign.counted {
        let repetition = repetitions.entry(&counted.variant).or_default();
        *repetition += 1;
        let load = told.load.as_deref().unwrap_or("unknown");
        let mut key = RecordingKey::new(PROBE, load, &counted.variant);
        key.repetition = *repetition;
        let content = |what| ImportError::Content {
            variant: counted.variant.clone(),
            what,
        };
        let interval = told.interval.or_else(|| interval(&foreign, counted));
        let mut recording = recording(key, counted, unit_ns).map_err(content)?;
        recording.interval = interval;
        recording.missed = foreign.missed.unwrap_or(0);
        recording.settings = settings(&foreign, unit_ns);
        recordings.push(recording);
    }
    let sha256 = checksum::of_bytes(text.as_bytes());
    Ok(run(name, &sha256, &foreign, told, recordings))
}

/// A recording of what was counted: each value as it is written, rounded down to its unit.
fn recording(key: RecordingKey, counted: &Counted, unit_ns: u64) -> Result<Recording, String> {
    let time = |value: u64, unit_ns: u64| {
        let ns = value
            .checked_mul(unit_ns)
            .and_then(|ns| i64::try_from(ns).ok());
        ns.map(Nanos)
            .ok_or_else(|| format!("expected a time, found {value}"))
    };
    let largest = match counted.max_ns {
        Some(max_ns) => Some(time(max_ns, 1)?),
        None => counted.max.map(|max| time(max, unit_ns)).transpose()?,
    };
    let mut recording = Recorder::new(0).finish(key);
    let mut record = |value: Nanos, count: u64| {
        recording.histogram.record_n(value, count);
        recording.count = recording.count.saturating_add(count);
        let sum = i64::try_from(count)
            .ok()
            .and_then(|count| value.0.checked_mul(count));
        recording.sum += Nanos(sum.unwrap_or(i64::MAX));
        let (min, max) = recording.extremes.unwrap_or((value, value));
        recording.extremes = Some((min.min(value), max.max(value)));
    };
    for (value, count) in counted.bins.iter().filter(|(_, count)| **count > 0) {
        // One of those in the last bin is the largest, which may be told exactly.
        let exact = largest.filter(|_| counted.max == Some(*value));
        if *count > u64::from(exact.is_some()) {
            record(time(*value, unit_ns)?, *count - u64::from(exact.is_some()));
        }
        if let Some(exact) = exact {
            record(exact, 1);
        }
    }
    let binned = counted.bins.values().copied().fold(0, u64::saturating_add);
    match (counted.count.checked_sub(binned), largest) {
        (Some(0), _) => {}
        // The only one without a bin is the largest.
        (Some(1), Some(largest)) => record(largest, 1),
        (Some(above), _) => {
            return Err(format!(
                "expected a histogram of all {} samples, found {above} without a bin: measure \
                 with more bins",
                counted.count
            ));
        }
        (None, _) => {
            let count = counted.count;
            return Err(format!(
                "expected {count} samples in all bins, found {binned}"
            ));
        }
    }
    if recording.max() != largest {
        let shown =
            |max: Option<Nanos>| max.map_or_else(|| "none".to_owned(), |max| max.to_string());
        let (found, told) = (shown(recording.max()), shown(largest));
        return Err(format!(
            "expected a largest sample of {told}, found {found} in the bins"
        ));
    }
    if let Some(what) = recording.contradiction() {
        return Err(format!("expected a sound recording, found {what}"));
    }
    Ok(recording)
}

/// The nominal time between samples, where the file says or shows it. A cyclictest with a
/// histogram has one interval for all threads, of 1,000 µs where it is not told otherwise.
fn interval(foreign: &Foreign, counted: &Counted) -> Option<Nanos> {
    if let Some(us) = foreign.period_us {
        return i64::try_from(us).ok()?.checked_mul(1_000).map(Nanos);
    }
    if let Some(command) = &foreign.command {
        let us = option(command, "-i", "--interval").map_or(Some(1_000), |word| word.parse().ok());
        return us.map(Nanos::from_micros);
    }
    let seconds = i64::try_from(foreign.seconds?).ok()?;
    let count = i64::try_from(counted.count)
        .ok()
        .filter(|count| *count > 0)?;
    Some(Nanos(seconds.checked_mul(1_000_000_000)? / count))
}

/// The last value of an option in a command line: `-i 200`, `-i200`, `--interval=200`.
fn option<'a>(command: &'a str, short: &str, long: &str) -> Option<&'a str> {
    let mut words = command.split_whitespace();
    let mut found = None;
    while let Some(word) = words.next() {
        if word == short || word == long {
            found = words.next();
        } else if let Some(value) = word
            .strip_prefix(long)
            .and_then(|rest| rest.strip_prefix('='))
        {
            found = Some(value);
        } else if let Some(value) = word.strip_prefix(short).filter(|_| !word.starts_with("--")) {
            found = Some(value);
        }
    }
    found
}

fn settings(foreign: &Foreign, unit_ns: u64) -> Facts {
    let resolution = i64::try_from(unit_ns).unwrap_or(i64::MAX);
    let facts = [
        ("program", Fact::Text(foreign.program.to_owned())),
        ("resolution_ns", Fact::Number(resolution)),
    ];
    let missed = foreign.missed.is_none().then(|| (MISSED, unknown()));
    let facts = facts.into_iter().chain(missed);
    facts.map(|(name, fact)| (name.to_owned(), fact)).collect()
}

fn unknown() -> Fact {
    Fact::Unknown {
        unknown: "the imported file does not say it".into(),
    }
}

fn run(
    name: &str,
    sha256: &str,
    foreign: &Foreign,
    told: &Told,
    recordings: Vec<Recording>,
) -> Run {
    let [node, release, version] = foreign.system.clone().unwrap_or_default();
    let release_known = (!release.is_empty()).then(|| release.clone());
    let kernel = release_known
        .clone()
        .unwrap_or_else(|| "unknown".to_owned());
    let subject = Subject {
        name: told.subject.clone().unwrap_or_else(|| kernel.clone()),
        kernel,
        boot: String::new(),
        bench: "host".to_owned(),
    };
    let [started, finished] = times(foreign);
    let machine = MachineRecord::Host(HostMachine {
        host: if node.is_empty() {
            "unknown".to_owned()
        } else {
            node
        },
        release: release_known,
        cpus: None,
        target_sha256: None,
        ssh: None,
    });
    Run {
        id: String::new(),
        suite: foreign.program.replace(' ', "-"),
        // The file's identity: the same file twice would be taken for two runs.
        plan: format!("# imported: sha256 {sha256}\nstep = []\n"),
        seed: 0,
        request: Request::default(),
        subject,
        state: State::Finished,
        error: None,
        started,
        finished: Some(finished),
        punctual: env!("CARGO_PKG_VERSION").to_owned(),
        machine,
        shards: 1,
        provenance: Some(provenance(name, sha256, foreign, &release, &version)),
        steps: Vec::new(),
        recordings,
        unsupported: Vec::new(),
        console: String::new(),
    }
}

/// When it began and ended; the time of the import where that is not known.
fn times(foreign: &Foreign) -> [String; 2] {
    let parsed = |text: &String| rfc2822::parse(text).ok().map(|time| time.timestamp());
    let now = jiff::Timestamp::now();
    let times = foreign
        .times
        .as_ref()
        .map(|times| times.each_ref().map(parsed));
    times
        .unwrap_or_default()
        .map(|time| format!("{:.0}", time.unwrap_or(now)))
}

/// What the file says of kernel and program, and what it does not say.
fn provenance(
    name: &str,
    sha256: &str,
    foreign: &Foreign,
    release: &str,
    version: &str,
) -> Provenance {
    let text = |text: &Option<String>| text.clone().map_or_else(unknown, Fact::Text);
    let mut facts: Facts = [
        ("imported from", Fact::Text(name.to_owned())),
        (IMPORTED, Fact::Text(sha256.to_owned())),
        ("program", Fact::Text(foreign.program.to_owned())),
        ("program version", text(&foreign.version)),
        ("program command", text(&foreign.command)),
    ]
    .map(|(name, fact)| (name.to_owned(), fact))
    .into();
    for what in ["boot command line", "clocksource", "load"] {
        facts.insert(what.to_owned(), unknown());
    }
    if foreign.missed.is_none() {
        facts.insert("missed periods".to_owned(), unknown());
    }
    for (what, said) in &foreign.remarks {
        facts.insert((*what).to_owned(), Fact::Text(said.clone()));
    }
    if foreign.times.is_none() {
        facts.insert("time of measuring".to_owned(), unknown());
    }
    let known = |text: &str| if text.is_empty() { "unknown" } else { text }.to_owned();
    Provenance {
        release: known(release),
        version: known(version),
        cmdline: "unknown".to_owned(),
        preemption: if foreign.realtime == Some(true) {
            Preemption::Rt
        } else {
            Preemption::Unknown("the imported file does not say it".into())
        },
        tsc_khz: None,
        facts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As printed by cyclictest 2.4: `-q -h 50 -t 2`, shortened.
    const HISTOGRAM: &str = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n\
        000007 000072\t000003\n000008 000197\t000000\n# Total: 000000269 000000003\n\
        # Min Latencies: 00007 00007\n# Avg Latencies: 00007 00007\n\
        # Max Latencies: 00413 00007\n# Histogram Overflows: 00001 00000\n\
        # Histogram Overflow at cycle number:\n# Thread 0: 00200\n# Thread 1:\n";

    fn told() -> Told {
        Told::default()
    }

    #[test]
    fn a_histogram_becomes_a_run_and_what_is_not_known_is_said() {
        let run = import("c.hist", HISTOGRAM, &told()).unwrap();
        let [one, other] = &run.recordings[..] else {
            panic!("{run:?}");
        };
        assert_eq!(one.title(), "timer / unknown / thread 0");
        assert_eq!((one.count, other.count), (270, 3));
        // The one without a bin is the largest.
        assert_eq!(one.extremes, Some((Nanos(7_000), Nanos(413_000))));
        assert_eq!(one.sum, Nanos(1_000 * (72 * 7 + 197 * 8 + 413)));
        assert_eq!(one.missed_periods(), None);
        assert_eq!((run.is_virtual(), run.state), (false, State::Finished));
        let provenance = run.provenance.unwrap();
        assert_eq!(provenance.release, "unknown");
        assert_eq!(provenance.facts["load"], unknown());
        assert!(matches!(provenance.preemption, Preemption::Unknown(_)));
    }

    #[test]
    fn what_no_bin_holds_is_refused() {
        let two = HISTOGRAM.replace("Overflows: 00001", "Overflows: 00002");
        let error = import("c.hist", &two, &told()).unwrap_err().to_string();
        assert!(
            error.contains("thread 0") && error.contains("found 2 without a bin"),
            "{error}"
        );
        let odd = HISTOGRAM.replace("00413 00007", "00413 00009");
        let error = import("c.hist", &odd, &told()).unwrap_err().to_string();
        assert!(
            error.contains("thread 1: expected a largest sample of 9.00 µs"),
            "{error}"
        );
        let error = import("x", "hello\n", &told()).unwrap_err().to_string();
        assert!(error.starts_with("line 1: expected cyclictest"), "{error}");
    }

    /// By the source of libevl: `latmus -g`, shortened.
    const LATMUS: &str = "# test started on: Fri Jan 24 15:36:34 2020\n\
        # Linux version 5.5.0-rc7+ (rpm@cobalt) (gcc version 9.2.1) #45 SMP PREEMPT\n\
        # libevl version: evl.0\n# sampling period: 1000 microseconds\n# context: user\n\
        # thread affinity: CPU1\n# duration (hhmmss): 00:00:01\n# OVERRUNS: 2\n\
        # max latency: 4.510\n0 95\n1 900\n4 3\n";

    #[test]
    fn a_co_kernel_stands_beside_others() {
        let run = import("evl.txt", LATMUS, &told()).unwrap();
        let recording = &run.recordings[0];
        assert_eq!(recording.title(), "timer / unknown / cpu1");
        // The largest is told in nanoseconds, the others are rounded down.
        assert_eq!(
            (recording.count, recording.max()),
            (998, Some(Nanos(4_510)))
        );
        assert_eq!(recording.sum, Nanos(900_000 + 2 * 4_000 + 4_510));
        assert_eq!(recording.missed_periods(), Some(2));
        assert_eq!(recording.interval, Some(Nanos::from_micros(1_000)));
        assert_eq!(run.subject.kernel, "5.5.0-rc7+");
        let facts = run.provenance.unwrap().facts;
        assert_eq!(facts["woken"], Fact::Text("user".into()));
        assert_eq!(facts["switches out of real time"], Fact::Text("0".into()));
        assert!(!facts.contains_key("missed periods"));
        // One value above the bins is the largest; of several the others are not known.
        let above = |count: &str| {
            let text = LATMUS.replace("4.510", "9.510").replace("\n4 3", count);
            import("evl.txt", &text, &told())
        };
        let one = above("\n4+ 1").unwrap();
        assert_eq!(one.recordings[0].max(), Some(Nanos(9_510)));
        let error = above("\n4+ 3").unwrap_err().to_string();
        assert!(error.contains("found 3 without a bin"), "{error}");
        // What contradicts itself is refused.
        let error = above("\n4 3").unwrap_err().to_string();
        assert!(error.contains("a largest sample of 9.51 µs"), "{error}");
        let counts = LATMUS.replace("\n0 95", "\n# sample count: 999\n0 95");
        let error = import("evl.txt", &counts, &told()).unwrap_err().to_string();
        assert!(error.contains("expected 999 samples"), "{error}");
        let xenomai = "RTT|  00:00:01  (periodic user-mode task, 100 us period, priority 99)\n\
            HSD|    avg|   0 -  1 |     9000\nHSD|    avg|  52 - 53 |        2\n\
            HSS|    avg|      9002|      0.102|      1.054\n\
            RTS|     -0.343|      2.865|     52.299|       3|     1|    00:00:02/00:00:02\n";
        let run = import("latency.txt", xenomai, &told()).unwrap();
        let recording = &run.recordings[0];
        assert_eq!(
            recording.title(),
            "timer / unknown / periodic user-mode task"
        );
        assert_eq!(recording.max(), Some(Nanos(52_299)));
        assert_eq!(recording.interval, Some(Nanos::from_micros(100)));
        let facts = run.provenance.unwrap().facts;
        assert_eq!(facts["smallest"], Fact::Text("-343 ns".into()));
        assert_eq!(facts["switches out of real time"], Fact::Text("1".into()));
    }

    #[test]
    fn an_interval_is_read_as_cyclictest_reads_it() {
        let of = |command| option(command, "-i", "--interval");
        assert_eq!(of("cyclictest -i 200 -h 50"), Some("200"));
        assert_eq!(of("cyclictest -i200 --interval=500"), Some("500"));
        assert_eq!(of("cyclictest --interval 300"), Some("300"));
        assert_eq!(of("cyclictest --priority 300"), None);
    }

    #[test]
    fn threads_of_one_cpu_are_repetitions() {
        let counted = |variant: &str| Counted {
            variant: variant.to_owned(),
            bins: [(5, 1)].into(),
            count: 1,
            max: Some(5),
            max_ns: None,
        };
        let json = "{\"version\": 3, \"sysinfo\": {\"nodename\": \"a\", \"release\": \"6\", \
            \"version\": \"#1\", \"resolution_in_ns\": 1}, \"cpu\": {\"3\": {\"histogram\": \
            {\"5\": 1}, \"count\": 1, \"max\": 5}}}";
        let told = Told {
            load: Some("stress".into()),
            interval: Some(Nanos(7)),
            subject: Some("mine".into()),
            nanoseconds: true,
        };
        let run = import("r.json", json, &told).unwrap();
        assert_eq!(run.recordings[0].title(), "timer / stress / cpu3");
        assert_eq!(run.recordings[0].max(), Some(Nanos(5)));
        assert_eq!(run.recordings[0].interval, Some(Nanos(7)));
        assert_eq!(
            (run.subject.name.as_str(), run.subject.kernel.as_str()),
            ("mine", "6")
        );
        let key = RecordingKey::new(PROBE, "idle", "cpu0");
        assert_eq!(
            recording(key, &counted("cpu0"), 1000).unwrap().max(),
            Some(Nanos(5_000))
        );
    }
}
