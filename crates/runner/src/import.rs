// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns the measurement of another program into a run, as far as its file permits.

mod commands;

use std::collections::BTreeMap;

use jiff::fmt::rfc2822;
use punctual_formats::FormatError;
use punctual_formats::foreign::{Counted, Distribution, Foreign, System};
use punctual_kernels::checksum;
use punctual_model::finding::{Fact, Facts};
use punctual_model::imported::{ASKED, FIGURES, PRIORITY, SAID, THREAD, UNIT};
use punctual_model::machine::HostMachine;
use punctual_model::record::Provenance;
use punctual_model::recording::{DISTRIBUTION, MEAN_WITHIN, MISSED};
use punctual_model::run::{IMPORTED, IMPORTED_PROBE, IMPORTED_TEXT, Request, Run, State, Subject};
use punctual_model::{MachineRecord, Nanos, Preemption, Recorder, Recording, RecordingKey};

pub use commands::UNREAD;

/// Names that many machines have: they do not tell machines apart.
const COMMON: [&str; 5] = [
    "",
    "(none)",
    "localhost",
    "localhost.localdomain",
    "unknown",
];

/// The slack for times of begin and end, which files give in seconds.
const SLACK: Nanos = Nanos::from_millis(2_000);

/// Facts that a file does not contain, and that its user may give.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// The name for the subject; made from the kernel's release and the machine's name by default.
    pub subject: Option<String>,
    /// The load that was running; unknown by default.
    pub load: Option<String>,
    /// The nominal time between two samples.
    pub interval: Option<Nanos>,
    /// True if values are nanoseconds, not microseconds.
    pub nanoseconds: bool,
}

/// The reason why a file cannot become a run.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file has no known format, or is damaged.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The file is the first part of JSON, up to this line.
    #[error(
        "line {0}: expected the last brace, found the end of the file: it was not copied or \
         written whole"
    )]
    BrokenOff(usize),
    /// The file itself gives another unit than the user.
    #[error("expected a file that does not say its unit, found one of {0} ns")]
    Unit(u64),
    /// The file does not hold everything that was measured, or contradicts itself.
    #[error("{variant}: {what}")]
    Content {
        /// The thread or CPU.
        variant: String,
        /// The expected and the found content.
        what: String,
    },
}

/// The run in a file. The `name` of the file is for people.
///
/// # Errors
/// If the file has no known format, is damaged, or contradicts itself or the facts given by the
/// user.
pub fn import(name: &str, content: &[u8], told: &Told) -> Result<Run, ImportError> {
    let mut foreign = commands::read(content)?;
    foreign.cut_short = foreign.cut_short.take().or_else(|| died(&foreign));
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
        let mut key = RecordingKey::new(IMPORTED_PROBE, load, &counted.variant);
        key.repetition = *repetition;
        let content = |what| ImportError::Content {
            variant: counted.variant.clone(),
            what,
        };
        let interval = interval(&foreign, counted, told.interval).map_err(content)?;
        let mut recording = recording(key, counted, unit_ns).map_err(content)?;
        recording.interval = interval;
        recording.missed = foreign.missed.unwrap_or(0);
        recording
            .settings
            .extend(settings(&foreign, counted, unit_ns));
        if let Some(what) = recording.contradiction() {
            let what = format!("expected a sound recording, found {what}");
            return Err(content(what));
        }
        recordings.push(recording);
    }
    let sha256 = checksum::of_bytes(content);
    let mut run = run(name, &sha256, &foreign, told, recordings);
    if let Some(found) = &mut run.provenance {
        let identity = identity(&foreign, content).into_iter();
        let identity = identity.map(|(name, text)| (name.to_owned(), Fact::Text(text)));
        found.facts.extend(identity);
    }
    (run.state, run.error) = match (&foreign.failed, &foreign.cut_short) {
        (Some(why), _) => (State::Failed, Some(why.clone())),
        (None, Some(why)) => (State::Interrupted, Some(why.clone())),
        (None, None) => (State::Finished, None),
    };
    Ok(run)
}

/// A thread of a histogram without interval that has less than half of another's samples: with a
/// histogram all of cyclictest's threads have one interval.
fn died(foreign: &Foreign) -> Option<String> {
    let threads = &foreign.counted;
    // A command line tells how long it was to take, and skipped periods count then.
    let is_timed =
        threads.iter().any(|one| one.interval_us.is_some()) || foreign.period_us.is_some();
    if foreign.program != "cyclictest" || is_timed {
        return None;
    }
    let most = threads.iter().map(|one| one.count).max()?;
    let few = threads
        .iter()
        .find(|one| one.count.saturating_mul(2) < most)?;
    let (variant, count) = (&few.variant, few.count);
    Some(format!(
        "{variant} has {count} samples where another has {most}"
    ))
}

/// Returns true if a run's values are taken for microseconds only because nothing says otherwise,
/// and are as large as if they were nanoseconds: even the smallest is longer than a millisecond, or
/// than its interval. On a kernel without high-resolution timers they may be microseconds all the
/// same.
pub fn is_unit_doubtful(run: &Run) -> bool {
    const LONG: Nanos = Nanos::from_millis(1);
    // cyclictest's JSON says its unit, and its machine.
    let is_nameless = match &run.machine {
        MachineRecord::Host(host) => host.release.is_none(),
        MachineRecord::Virtual(_) => false,
    };
    let is_long = |own: &Recording| {
        let least = own.extremes.map(|(min, _)| min).filter(|_| own.count > 1);
        let interval = own.interval.filter(|interval| *interval > Nanos::ZERO);
        least.is_some_and(|least| least > LONG.min(interval.unwrap_or(LONG)))
    };
    let is_taken = |own: &Recording| own.settings.get(UNIT).and_then(Fact::number) == Some(1_000);
    let is_doubtful = |own: &Recording| is_taken(own) && is_long(own);
    run.suite == "cyclictest" && is_nameless && run.recordings.iter().any(is_doubtful)
}

/// The facts that tell the file from other measurements, but not from its copies and other forms.
fn identity(foreign: &Foreign, content: &[u8]) -> Vec<(&'static str, String)> {
    let said = foreign.said.iter().map(|line| {
        let mut sum = checksum::of_bytes(line.as_bytes());
        sum.truncate(8);
        sum
    });
    let said: Vec<String> = said.collect();
    let mut all = vec![
        (IMPORTED_TEXT, text_sha256(content)),
        (SAID, said.join(" ")),
    ];
    if !foreign.is_summary {
        all.push((FIGURES, figures_sha256(&foreign.counted)));
    }
    all
}

/// The checksum of counts and values, as written; empty bins do not count.
fn figures_sha256(counted: &[Counted]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for one in counted {
        let (count, over, width) = (one.count, one.over, one.width);
        let _ = write!(text, "{count} {over} {width} {:?} {:?}", one.min, one.max);
        for (bin, count) in one.bins.iter().filter(|(_, count)| **count > 0) {
            let _ = write!(text, " {bin}:{count}");
        }
        text.push('\n');
    }
    checksum::of_bytes(text.as_bytes())
}

/// The checksum of the part that all copies of a file share: its letters and digits. White space,
/// line ends, encodings and quotation marks may change on the way.
fn text_sha256(content: &[u8]) -> String {
    let is_said = |byte: &u8| byte.is_ascii_alphanumeric();
    let said: Vec<u8> = content.iter().copied().filter(is_said).collect();
    checksum::of_bytes(&said)
}

/// Makes a recording from counts: each value as it is written, rounded down to its unit.
fn recording(key: RecordingKey, counted: &Counted, unit_ns: u64) -> Result<Recording, String> {
    let unit = i64::try_from(unit_ns).unwrap_or(i64::MAX);
    let time = |value: i64| {
        let ns = value.checked_mul(unit).map(Nanos);
        ns.ok_or_else(|| format!("expected a time, found {value}"))
    };
    let Distribution { ranges, mean } = counted.distribution()?;
    let mut recording = Recorder::new(0).finish(key);
    recording.count = counted.count;
    let mut sum = 0_i128;
    for range in &ranges {
        let (low, high) = (time(range.low)?, time(range.high)?);
        recording.histogram.record_between(low, high, range.count);
        sum = sum.saturating_add(i128::from(low.0).saturating_mul(i128::from(range.count)));
        let (min, max) = recording.extremes.unwrap_or((low, high));
        recording.extremes = Some((min.min(low), max.max(high)));
    }
    let is_exact = ranges.iter().all(|range| range.low == range.high);
    if !is_exact {
        let [low, high] = [mean.0, mean.1].map(|edge| edge * unit as f64);
        sum = (low * counted.count as f64).floor() as i128;
        let within = (high - low).ceil() as i64;
        recording
            .settings
            .insert(MEAN_WITHIN.to_owned(), within.into());
        let unknown = counted
            .gap
            .clone()
            .unwrap_or_else(|| "its bins are wide".to_owned());
        let unknown = Fact::Unknown {
            unknown: unknown.into(),
        };
        recording.settings.insert(DISTRIBUTION.to_owned(), unknown);
    }
    recording.sum = Nanos(i64::try_from(sum).unwrap_or(i64::MAX));
    Ok(recording)
}

/// The nominal time between samples: the one that the file says or shows, else the one that the
/// user gave.
///
/// # Errors
/// If the user's value contradicts the file.
fn interval(
    foreign: &Foreign,
    counted: &Counted,
    told: Option<Nanos>,
) -> Result<Option<Nanos>, String> {
    let count = i64::try_from(counted.count).unwrap_or(i64::MAX);
    let elapsed = elapsed(foreign)?;
    let fits = |interval: &Nanos| {
        let taken = i128::from(interval.0) * i128::from(count);
        elapsed.is_none_or(|elapsed| taken <= i128::from(elapsed.0) + i128::from(SLACK.0))
    };
    let said = counted.interval_us.or(foreign.period_us);
    let said = said.and_then(|us| i64::try_from(us).ok()?.checked_mul(1_000).map(Nanos));
    let Some(told) = told else {
        // Where both are said and do not go together, neither is known.
        return Ok(said.filter(fits));
    };
    let found = match said {
        Some(said) if said != told => format!("{said} in the file"),
        _ if fits(&told) => return Ok(Some(told)),
        _ => format!(
            "{count} samples in {} in the file",
            elapsed.unwrap_or_default()
        ),
    };
    Err(format!(
        "expected a file of --interval {told}, found {found}"
    ))
}

/// The duration of the measurement, if the file gives one: the shortest that it gives.
///
/// # Errors
/// If the measurement ended before it began.
fn elapsed(foreign: &Foreign) -> Result<Option<Nanos>, String> {
    let millis = |seconds: i64| Nanos::from_millis(seconds.saturating_mul(1_000));
    let seconds = foreign
        .seconds
        .map(|own| i64::try_from(own).unwrap_or(i64::MAX / 1_000_000));
    let seconds = seconds.map(|own| millis(own.min(i64::MAX / 1_000_000_000)));
    let Some([begin, end]) = &foreign.times else {
        return Ok(seconds);
    };
    let parsed = |time: &str| rfc2822::parse(time).map(|time| time.timestamp().as_second());
    let (Ok(from), Ok(to)) = (parsed(begin), parsed(end)) else {
        return Err(format!(
            "expected when it began and ended, found {begin} and {end}"
        ));
    };
    if to < from {
        return Err(format!("it ended before it began: {begin}, {end}"));
    }
    let own = millis(to - from);
    Ok(Some(seconds.map_or(own, |seconds| seconds.min(own))))
}

fn settings(foreign: &Foreign, counted: &Counted, unit_ns: u64) -> Facts {
    let number = |number: u64| Fact::Number(i64::try_from(number).unwrap_or(i64::MAX));
    let mut facts = vec![
        ("program", Fact::Text(foreign.program.to_owned())),
        (UNIT, number(unit_ns)),
    ];
    let priority = counted.priority.or(foreign.priority);
    facts.extend(priority.map(|priority| (PRIORITY, number(priority))));
    let asked = foreign.asked.clone();
    facts.extend(asked.map(|asked| (ASKED, Fact::Text(asked))));
    facts.extend(counted.tid.map(|tid| (THREAD, number(tid))));
    if counted.width > 1 {
        let width = counted.width.saturating_mul(unit_ns);
        facts.push(("bin_width_ns", number(width)));
    }
    if counted.over > 0 {
        facts.push(("without_bin", number(counted.over)));
    }
    if foreign.missed.is_none() {
        facts.push((MISSED, unknown()));
    }
    let facts = facts.into_iter();
    facts.map(|(name, fact)| (name.to_owned(), fact)).collect()
}

fn unknown() -> Fact {
    Fact::Unknown {
        unknown: "the imported file does not say it".into(),
    }
}

/// The machine's name, if it tells the machine from others.
pub fn machine_of(run: &Run) -> Option<&str> {
    match &run.machine {
        MachineRecord::Host(host) => Some(host.host.as_str()).filter(|name| !COMMON.contains(name)),
        MachineRecord::Virtual(_) => None,
    }
}

/// The subject: other machines and other kernels are always other subjects. If the file does not
/// name its machine, nothing more is known than that it belongs to this file, or to the name that
/// the user gave.
fn subject(name: &str, sha256: &str, system: &System, told: &Told) -> Subject {
    let release = Some(system.release.as_str()).filter(|release| !release.is_empty());
    let node = Some(system.node.as_str()).filter(|node| !COMMON.contains(node));
    let build = format!("{}\0{}", system.machine, system.version);
    let build = checksum::of_bytes(build.as_bytes());
    let mut kernel = release.unwrap_or("unknown").to_owned();
    if let Some(node) = node {
        kernel = format!("{kernel}@{node}");
    }
    if !system.version.is_empty() {
        kernel = format!("{kernel}#{}", &build[..8]);
    }
    let own = match (release, node) {
        (release, Some(node)) => format!("{} on {node}", release.unwrap_or("unknown")),
        (Some(release), None) => format!("{release} ({name} {})", &sha256[..8]),
        (None, None) => format!("{name} {}", &sha256[..8]),
    };
    Subject {
        name: told.subject.clone().unwrap_or(own),
        kernel,
        boot: String::new(),
        bench: "host".to_owned(),
    }
}

fn run(
    name: &str,
    sha256: &str,
    foreign: &Foreign,
    told: &Told,
    recordings: Vec<Recording>,
) -> Run {
    let system = foreign.system.clone().unwrap_or_default();
    let subject = subject(name, sha256, &system, told);
    let known = |text: &str| if text.is_empty() { "unknown" } else { text }.to_owned();
    let [started, finished] = times(foreign);
    let machine = MachineRecord::Host(HostMachine {
        host: known(&system.node),
        release: (!system.release.is_empty()).then(|| system.release.clone()),
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
        provenance: Some(provenance(name, sha256, foreign, &system)),
        steps: Vec::new(),
        recordings,
        unsupported: Vec::new(),
        console: String::new(),
        arrivals: Vec::new(),
    }
}

/// The times of begin and end; the time of the import if unknown.
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

/// The facts in the file about kernel and program, with the unknown ones marked.
fn provenance(name: &str, sha256: &str, foreign: &Foreign, system: &System) -> Provenance {
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
    if !system.machine.is_empty() {
        facts.insert(
            "architecture".to_owned(),
            Fact::Text(system.machine.clone()),
        );
    }
    let known = |text: &str| if text.is_empty() { "unknown" } else { text }.to_owned();
    Provenance {
        release: known(&system.release),
        version: known(&system.version),
        cmdline: "unknown".to_owned(),
        preemption: preemption(foreign.realtime, &system.version),
        tsc_khz: None,
        facts,
    }
}

/// The preemption model, from the kernel's version (`#1 SMP PREEMPT_RT …`) and from the content of
/// `/sys/kernel/realtime`, which not all kernels have.
fn preemption(realtime: Option<bool>, version: &str) -> Preemption {
    let mut words = version.split([' ', ',']);
    let flag = words.find(|word| word.starts_with("PREEMPT"));
    let is_old_rt = version.contains("PREEMPT RT");
    match (flag, realtime) {
        (Some("PREEMPT_RT"), _) | (_, Some(true)) => Preemption::Rt,
        _ if is_old_rt => Preemption::Rt,
        (Some("PREEMPT"), Some(false)) => Preemption::Full,
        (_, Some(false)) => Preemption::Unknown(
            "not PREEMPT_RT; which of the others, the imported file does not say".into(),
        ),
        _ => Preemption::Unknown("the imported file does not say it".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of cyclictest 2.4 with `-q -h 50 -t 2`, shortened.
    const HISTOGRAM: &str = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n\
        000007 000072\t000003\n000008 000197\t000000\n# Total: 000000269 000000003\n\
        # Min Latencies: 00007 00007\n# Avg Latencies: 00009 00007\n\
        # Max Latencies: 00413 00007\n# Histogram Overflows: 00001 00000\n\
        # Histogram Overflow at cycle number:\n# Thread 0: 00200\n# Thread 1:\n";

    fn told() -> Told {
        Told::default()
    }

    fn import(name: &str, text: &str, told: &Told) -> Result<Run, ImportError> {
        super::import(name, text.as_bytes(), told)
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
        // The second thread has three samples.
        assert_eq!((run.is_virtual(), run.state), (false, State::Interrupted));
        let provenance = run.provenance.unwrap();
        assert_eq!(provenance.release, "unknown");
        assert_eq!(provenance.facts["load"], unknown());
        assert!(matches!(provenance.preemption, Preemption::Unknown(_)));
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let error = |from: &str, to: &str| {
            let text = HISTOGRAM.replace(from, to);
            import("c.hist", &text, &told()).unwrap_err().to_string()
        };
        // Above the last bin is 9 µs or more.
        let two = HISTOGRAM.replace("Overflows: 00001", "Overflows: 00002");
        let two = two.replace("Avg Latencies: 00009", "Avg Latencies: 00010");
        let two = import("c.hist", &two, &told()).unwrap();
        let own = &two.recordings[0];
        assert_eq!((own.count, own.max()), (271, Some(Nanos(413_000))));
        let over: Vec<_> = own
            .histogram
            .bins()
            .filter(|bin| bin.low.0 > 8_000)
            .collect();
        assert_eq!((over[0].low, over[0].high), (Nanos(9_000), Nanos(413_000)));
        let told = error("00413 00007", "00413 00009");
        let expected = "thread 1: its largest sample is 9, and its last bin is 7";
        assert_eq!(told, expected);
        assert!(error("00413 00007", "00008 00007").contains("its largest sample is 8"));
        let error = import("x", "hello\n", &Told::default())
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("line 1: expected cyclictest"), "{error}");
    }

    /// Output of `latmus -g` according to the source of libevl, shortened.
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
        let (low, high) = recording.mean_between().unwrap();
        let least = 900_000 + 2 * 4_000 + 4_510;
        assert!((low * 998.0 - f64::from(least)).abs() < 998.0, "{low}");
        assert!(
            (high - low - 999.0 * 997.0 / 998.0).abs() < 2.0,
            "{low} {high}"
        );
        assert_eq!(recording.missed_periods(), Some(2));
        assert_eq!(recording.interval, Some(Nanos::from_micros(1_000)));
        assert!(run.subject.kernel.starts_with("5.5.0-rc7+#"));
        let facts = run.provenance.unwrap().facts;
        assert_eq!(facts["woken"], Fact::Text("user".into()));
        assert_eq!(facts["switches out of real time"], Fact::Text("0".into()));
        assert!(!facts.contains_key("missed periods"));
        // What is in the last bin may be larger than it.
        let above = |count: &str| {
            let text = LATMUS.replace("4.510", "9.510").replace("\n4 3", count);
            import("evl.txt", &text, &told())
        };
        let one = above("\n4+ 1").unwrap();
        assert_eq!(one.recordings[0].max(), Some(Nanos(9_510)));
        let three = above("\n4+ 3").unwrap();
        let bins: Vec<_> = three.recordings[0].histogram.bins().collect();
        assert_eq!(
            (bins[2].low, bins[2].high, bins[2].count),
            (Nanos(4_000), Nanos(9_510), 2)
        );
        // What contradicts itself is refused.
        let error = above("\n4 3").unwrap_err().to_string();
        assert!(error.contains("largest sample is 9510"), "{error}");
        let counts = LATMUS.replace("\n0 95", "\n# sample count: 999\n0 95");
        let error = import("evl.txt", &counts, &told()).unwrap_err().to_string();
        assert!(error.contains("expected 999 samples"), "{error}");
        let xenomai = "RTT|  00:00:01  (periodic user-mode task, 100 us period, priority 99)\n\
            HSD|    avg|   0 -  1 |     9000\nHSD|    avg|  52 - 53 |        2\n\
            HSS|    avg|      9002|      0.012|      1.054\n\
            RTS|     -0.343|      0.365|     52.299|       3|     1|    00:00:02/00:00:02\n";
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
    fn threads_of_one_cpu_are_repetitions() {
        let counted = |variant: &str| Counted {
            variant: variant.to_owned(),
            bins: [(5, 1)].into(),
            count: 1,
            min: Some(5),
            max: Some(5),
            ..Counted::default()
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
            ("mine", "6@a#a8bd95c1")
        );
        let key = RecordingKey::new(IMPORTED_PROBE, "idle", "cpu0");
        assert_eq!(
            recording(key, &counted("cpu0"), 1000).unwrap().max(),
            Some(Nanos(5_000))
        );
    }
}
