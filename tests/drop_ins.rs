// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs that people's scripts know, against those of rt-tests: the same options
//! give lines of the same form, and what reads theirs reads ours.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use punctual_agent::sys::time::now;
use punctual_formats::cyclictest_lines::{ThreadLine, ValueLine};
use punctual_formats::{cyclictest_histogram, cyclictest_json, hackbench, realfeel};
use punctual_tests::{Ended, Scratch, assert_has, has_fair_qemu, is_alive, programs, until};
use rustix::process::{Pid, Signal, kill_process};

/// Ours, by the link that `./build` makes.
fn ours(name: &str) -> PathBuf {
    programs().join("drop-in").join(name)
}

fn run_ours(name: &str, options: &[&str]) -> Ended {
    Ended::of(Command::new(ours(name)).args(options))
}

/// Theirs, of the package rt-tests.
fn theirs(name: &str) -> PathBuf {
    PathBuf::from("/usr/bin").join(name)
}

fn run_theirs(name: &str, options: &[&str]) -> Ended {
    Ended::of(Command::new(theirs(name)).args(options))
}

/// Whether this is root, for whom alone real-time priorities are, for theirs as for ours.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A line in which each number is `#`, with its sign, the spaces and zeros that fill its column,
/// and a row of numbers is one.
fn masked(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split([' ', '\t']).filter(|word| !word.is_empty()) {
        let mut mask = String::new();
        let mut letters = word.chars().peekable();
        while let Some(letter) = letters.next() {
            let letter = if letter.is_ascii_digit() { '#' } else { letter };
            // A timer of theirs that is very late gives a negative value.
            let is_sign = letter == '-'
                && (mask.is_empty() || mask.ends_with(':'))
                && letters.peek().is_some_and(char::is_ascii_digit);
            if !is_sign && (letter != '#' || !mask.ends_with('#')) {
                mask.push(letter);
            }
        }
        let mask = mask.replace("#.#", "#");
        // Both have either a hole or a number behind the colon, as it is wide.
        if words.last() != Some(&mask) || mask != "#" {
            words.push(mask);
        }
    }
    words.join(" ").replace(": #", ":#").replace("( #", "(#")
}

fn masked_lines(text: &str) -> Vec<String> {
    text.lines().map(masked).collect()
}

/// Widths count too: where columns of numbers begin and end, up to the first number that no
/// column has room for.
fn widths(line: &str) -> Vec<usize> {
    let is_wide = |text: &str| {
        let mut numbers = text.split(|letter: char| !letter.is_ascii_digit());
        numbers.any(|number| number.len() > 5)
    };
    let columns = line.match_indices(':');
    let mut widths = Vec::new();
    for ((place, _), behind) in columns.zip(line.split(':').skip(1)) {
        widths.push(place);
        if is_wide(behind) {
            break;
        }
    }
    widths
}

/// Whether columns stand at the same places, as far as both can tell.
fn are_as_wide(ours: &str, theirs: &str) -> bool {
    let (ours, theirs) = (widths(ours), widths(theirs));
    ours.iter()
        .zip(&theirs)
        .all(|(ours, theirs)| ours == theirs)
}

#[test]
fn signs_are_masked_and_a_number_that_is_too_wide_ends_the_columns() {
    assert_eq!(masked("Act:-7 Max:  -12 -b 0-3"), "Act:# Max:# -b #-#");
    let line = "T: 0 (12345) Avg:   7 Max: 9";
    assert_eq!(widths(line), [1, 16, 25]);
    assert!(are_as_wide(line, "T: 0 (  123) Avg:123456 Max: 9"));
    assert!(!are_as_wide(line, "T: 0 (  123) Avg:  7 Max: 9"));
}

#[test]
fn the_same_options_give_lines_of_the_same_form() {
    if !punctual_skip::root() {
        return;
    }
    let cases: &[&[&str]] = &[
        &["-q", "-l20", "-p80"],
        &["-q", "-l", "20", "-t1", "-p", "80", "-i", "500", "-m"],
        &["-q", "-l20", "-S", "-p80"],
        &["-q", "-l20", "-t", "2", "-a", "0", "--policy=rr", "-p10"],
        &["-q", "-l20", "-N"],
        &["-q", "-l20", "-h100", "-p80", "-m"],
        &["-q", "-l20", "-H100", "-t2", "-p80"],
        // Nothing is as early as this: all are past the end.
        &["-q", "-l20", "-h2", "-p80"],
        &["-q", "-l20", "-N", "-h", "60", "-p80", "--laptop"],
        &["-q", "-l5", "-b1", "-t2", "-p80"],
        &["-q", "-l5", "--secaligned", "-t2", "-p80"],
        &["-q", "-D1", "--priospread", "-t2", "-p80", "-d0"],
        &["-v", "-l5", "-p80"],
        &["-q", "-l20", "-s", "-p80"],
        &["-q", "-l20", "--system", "-c1", "-t2", "-p80"],
        &["-q", "-l20", "-x", "-p80"],
        &["-q", "-l20", "--posix_timers", "-r", "-c1", "-t2", "-p80"],
        &["-q", "-l5", "-x", "--secaligned", "-t2", "-p80"],
        &["-q", "-l20", "-s", "-x", "-p80"],
        &["-v", "-l5", "-R", "-c1", "-p80"],
        // Each value is above this, and none above that.
        &[
            "-q",
            "-l20",
            "-N",
            "--spike",
            "1",
            "--spike-nodes",
            "5",
            "-p80",
        ],
        &["-q", "-l20", "-t2", "-p80", "--spike=1000000000", "-h100"],
    ];
    for options in cases {
        let (ours, theirs) = (
            run_ours("cyclictest", options),
            run_theirs("cyclictest", options),
        );
        assert_eq!(ours.status, theirs.status, "{options:?}: {}", ours.stderr);
        // How many values are past a longer histogram's end is a matter of chance.
        let lines = |ended: &Ended| -> Vec<String> {
            let mut lines = masked_lines(&ended.stdout);
            for line in lines.iter_mut().filter(|_| !options.contains(&"-h2")) {
                if line.starts_with("# Thread #:") {
                    line.truncate("# Thread #:".len());
                }
            }
            lines
        };
        assert_eq!(lines(&ours), lines(&theirs), "{options:?}");
        assert_eq!(warnings(&ours), warnings(&theirs), "{options:?}");
    }
}

/// What is said of clocks and timers beside the results, by both in the same words.
fn warnings(ended: &Ended) -> Vec<String> {
    let lines = masked_lines(&ended.stderr).into_iter();
    let is_of_clock = |line: &String| line.contains("clock") || line.contains("posix_timers");
    lines
        .filter(|line| line.starts_with("WARN:") && is_of_clock(line))
        .collect()
}

#[test]
fn each_spike_has_its_moment_and_all_are_counted() {
    if !punctual_skip::root() {
        return;
    }
    let options = [
        "-q",
        "-N",
        "-l20",
        "-p80",
        "--spike",
        "1",
        "--spike-nodes=15",
    ];
    for run in [run_ours, run_theirs] {
        let before = now().0 / 1_000;
        let text = run("cyclictest", &options).stdout;
        let after = now().0 / 1_000;
        let moments: Vec<i64> = text
            .lines()
            .filter_map(|line| line.split_once(": TS: "))
            .map(|(_, moment)| moment.trim().parse().unwrap())
            .collect();
        assert_eq!(moments.len(), 15, "{text}");
        assert!(moments.is_sorted(), "{text}");
        let all = before..=after;
        assert!(
            all.contains(&moments[0]) && all.contains(&moments[14]),
            "{text}"
        );
        assert!(text.contains("\nspikes = 20\n"), "{text}");
    }
}

/// Where there are no SMIs to count both say why in the same words.
#[test]
fn smis_are_counted_or_both_say_why_not() {
    const REASONS: [&str; 3] = [
        "SMI counter is not supported on this processor",
        "Could not open MSR interface",
        "Could not read SMI counter",
    ];
    if !punctual_skip::root() {
        return;
    }
    let options = ["-q", "-l20", "-t2", "-p80", "-a", "--smi", "-h100"];
    let (ours, theirs) = (
        run_ours("cyclictest", &options),
        run_theirs("cyclictest", &options),
    );
    let reason = |ended: &Ended| REASONS.iter().position(|why| ended.stderr.contains(why));
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap();
    if reason(&theirs) == Some(0) && cpus.contains("GenuineIntel") {
        punctual_skip::skip("rt-tests does not know this processor");
        return;
    }
    assert_eq!(
        (ours.status, reason(&ours)),
        (theirs.status, reason(&theirs)),
        "{}",
        ours.stderr
    );
    let smis = |ended: &Ended| -> Vec<String> {
        let lines = masked_lines(&ended.stdout).into_iter();
        lines.filter(|line| line.contains("SMI")).collect()
    };
    assert_eq!(smis(&ours), smis(&theirs));
    assert!(theirs.status != Some(0) || smis(&ours).len() == 1);
}

#[test]
fn who_reads_the_named_pipe_gets_the_threads_lines() {
    if !punctual_skip::root() {
        return;
    }
    let lines = |program: PathBuf| {
        let scratch = Scratch::new();
        let path = scratch.path("status");
        let pipe = path.display().to_string();
        let child = begin(&program, &scratch, &["-q", "-t2", "-p80", "-F", &pipe]);
        until("the pipe is there", || path.exists());
        let read = Ended::of(Command::new("timeout").args(["600", "cat", &pipe]));
        send(child.id(), Signal::INT);
        let ended = Ended::from(child.wait_with_output().unwrap());
        assert_eq!(
            (read.status, ended.status),
            (Some(0), Some(0)),
            "{}",
            read.stdout
        );
        // Theirs may give a reader the lines twice, and may leave the pipe behind.
        let is_ours = program.starts_with(programs());
        assert!(!is_ours || !path.exists() && read.stdout.lines().count() == 2);
        let mut lines: Vec<String> = read.stdout.lines().map(str::to_owned).collect();
        let index = |line: &String| line[..4].to_owned();
        lines.sort_by_key(index);
        lines.dedup_by_key(|line| index(line));
        lines
    };
    let (ours, theirs) = (lines(ours("cyclictest")), lines(theirs("cyclictest")));
    assert_eq!((ours.len(), theirs.len()), (2, 2));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(masked(ours), masked(theirs));
        assert!(are_as_wide(ours, theirs), "{ours}\n{theirs}");
    }
}

/// The lines of a table that have a number, and what stands before it.
fn table_of(text: &str) -> Vec<String> {
    masked_lines(text)
        .into_iter()
        .filter(|line| line.contains('#'))
        .collect()
}

#[test]
fn cyclicdeadline_has_the_lines_of_the_original() {
    if !punctual_skip::root() {
        return;
    }
    let scratch = Scratch::new();
    let file = scratch.path("threads.json").display().to_string();
    // A runtime of less than 2 ms needs more of the original.
    let options = ["-t2", "-i5000", "-s0", "-D1", "-q", "--json", &file];
    let written = |ended: Ended, what: &str| {
        assert_eq!(ended.status, Some(0), "{what}: {}", ended.stderr);
        let of_threads = |line: &&str| line.starts_with("T:");
        let lines: Vec<&str> = ended.stdout.lines().filter(of_threads).collect();
        assert_eq!(lines.len(), 2, "{what}: {}", ended.stdout);
        let masks: Vec<String> = lines.iter().map(|line| masked(line)).collect();
        let json = fs::read_to_string(&file).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json.replace('\t', " ")).unwrap();
        let keys = |value: &serde_json::Value| -> Vec<String> {
            value.as_object().unwrap().keys().cloned().collect()
        };
        let first = lines[0].to_owned();
        (first, (masks, keys(&json), keys(&json["thread"]["1"])))
    };
    let ((line, ours), (other, theirs)) = (
        written(run_ours("cyclicdeadline", &options), "ours"),
        written(run_theirs("cyclicdeadline", &options), "theirs"),
    );
    assert_eq!(ours, theirs);
    assert!(are_as_wide(&line, &other), "{line}\n{other}");
    // One that is short, which the original refuses, and a limit that everything is above.
    let ended = run_ours("cyclicdeadline", &["-i1000", "-D5", "-q", "-b1"]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert_has(
        &ended.stdout,
        &["interval: 600:1000", "# Break thread: ", "# Break value: "],
    );
}

#[test]
fn oslat_has_the_lines_of_the_original() {
    if !punctual_skip::root() {
        return;
    }
    let scratch = Scratch::new();
    for options in [
        &["-D1", "-c0"][..],
        &["-D1", "-q", "-b", "5", "-w", "memmove", "-m4K"],
        &["-D1", "-c0", "-s", "-f", "1", "-b8"],
    ] {
        let lines = |name: &str, of: fn(&str, &[&str]) -> Ended| {
            let file = scratch.path(name).display().to_string();
            let ended = of("oslat", &[options, &["--json", &file]].concat());
            assert_eq!(ended.status, Some(0), "{name}: {}", ended.stderr);
            let json = fs::read_to_string(file).unwrap();
            let json: serde_json::Value = serde_json::from_str(&json).unwrap();
            let keys = json.as_object().unwrap().keys().cloned();
            let thread = json["thread"]["0"].as_object().unwrap().keys().cloned();
            let mut table = table_of(&ended.stdout);
            // Theirs warns of what ours ends by itself.
            table.retain(|line| !line.starts_with("WARNING"));
            (table, keys.collect::<Vec<_>>(), thread.collect::<Vec<_>>())
        };
        assert_eq!(
            lines("ours", run_ours),
            lines("theirs", run_theirs),
            "{options:?}"
        );
    }
    let ended = run_ours("oslat", &["-D5", "-c0", "-T1"]);
    assert_eq!(ended.status, Some(1));
    assert_has(
        &ended.stderr,
        &["Trace threshold (1 us) triggered on cpu0 with "],
    );
}

#[test]
fn the_json_file_has_the_same_lines() {
    if !punctual_skip::root() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.path("results.json");
    let file = format!("--json={}", path.display());
    let lines = |run: fn(&str, &[&str]) -> Ended| {
        let ended = run("cyclictest", &["-q", "-l5", "-p80", "-t2", &file]);
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        let text = fs::read_to_string(&path).unwrap();
        // One is called by another path than the other; of a thread that came too late to have
        // a value theirs has no mean.
        let text = text.replace("/usr/bin/", "").replace("-nan", "0.00");
        masked_lines(&text.replace(&format!("{}/", programs().join("drop-in").display()), ""))
    };
    assert_eq!(lines(run_ours), lines(run_theirs));
}

#[test]
fn columns_stand_where_they_stand() {
    if !punctual_skip::root() {
        return;
    }
    let options = ["-q", "-l20", "-t2", "-p80"];
    let lines = |ended: Ended| -> Vec<String> {
        let lines = ended.stdout.lines().filter(|line| line.starts_with("T:"));
        lines.map(str::to_owned).collect()
    };
    let (ours, theirs) = (
        lines(run_ours("cyclictest", &options)),
        lines(run_theirs("cyclictest", &options)),
    );
    assert_eq!((ours.len(), theirs.len()), (2, 2));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert!(are_as_wide(ours, theirs), "{ours}\n{theirs}");
    }
}

#[test]
fn the_screen_has_the_same_lines() {
    if !punctual_skip::root() {
        return;
    }
    // How many screens there are is a matter of time.
    let lines = |ended: Ended| -> BTreeSet<String> {
        let lines = masked_lines(&ended.stdout).into_iter();
        lines.map(|line| line.trim().to_owned()).collect()
    };
    let options = ["-l100", "-t2", "-p80"];
    let ours = lines(run_ours("cyclictest", &options));
    assert_eq!(ours, lines(run_theirs("cyclictest", &options)));
    assert!(
        ours.iter()
            .any(|line| line.contains("policy: fifo: loadavg:")),
        "{ours:?}"
    );
}

#[test]
fn what_both_write_is_read_by_the_same_readers() {
    if !punctual_skip::root() {
        return;
    }
    let scratch = Scratch::new();
    for (number, run) in [run_ours, run_theirs].into_iter().enumerate() {
        let json = scratch.path(&format!("{number}.json"));
        let file = format!("--json={}", json.display());
        let text = run("cyclictest", &["-q", "-l30", "-h500", "-t2", "-p80", &file]).stdout;
        let columns = cyclictest_histogram::read(&text).unwrap();
        assert_eq!(columns.len(), 2);
        let results = cyclictest_json::read(&fs::read_to_string(json).unwrap()).unwrap();
        for (column, thread) in columns.iter().zip(&results.threads) {
            let counted = column.bins.iter().sum::<u64>() + column.overflows;
            assert_eq!((counted, column.max), (thread.cycles, thread.max), "{text}");
        }
        // The first thread that is through ends the program: others may be behind.
        let cycles = results.threads.iter().map(|thread| thread.cycles);
        assert_eq!(cycles.max(), Some(30), "{text}");
        let text = run("cyclictest", &["-q", "-l30", "-p80"]).stdout;
        let line = text.lines().find(|line| line.starts_with("T:")).unwrap();
        let line = ThreadLine::read(1, line).unwrap();
        assert_eq!((line.cycles, line.priority), (30, 80));
        assert!(line.min <= line.avg && line.avg <= line.max);
        let text = run("cyclictest", &["-v", "-l7", "-p80"]).stdout;
        let values = text
            .lines()
            .filter_map(|line| ValueLine::read(1, line).ok());
        assert_eq!(
            values.map(|value| value.cycle).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4, 5, 6]
        );
        let text = run("hackbench", &["-p", "-g1", "-l5"]).stdout;
        assert!(hackbench::read_time(&text).unwrap() > 0.0);
    }
}

#[test]
fn the_later_histogram_is_the_earlier_one_without_what_is_empty() {
    if !punctual_skip::root() {
        return;
    }
    let options = ["-q", "-l30", "-h500", "-t2", "-p80", "--bins", "recorded"];
    let text = run_ours("cyclictest", &options).stdout;
    assert!(!text.contains("# Total:"), "{text}");
    assert!(!text.contains(" 000000\t000000\n"), "{text}");
    assert_eq!(cyclictest_histogram::read(&text).unwrap().len(), 2);
}

/// The steps of OSADL's script for latency plots, as published.
#[test]
fn the_plot_script_finds_each_threads_histogram() {
    if !punctual_skip::root() {
        return;
    }
    let scratch = Scratch::new();
    let text = run_ours(
        "cyclictest",
        &["-l100", "-m", "-Sp90", "-i200", "-h400", "-q"],
    )
    .stdout;
    let output = scratch.file("output", &text);
    let shell = |script: &str| {
        let script = script.replace("OUTPUT", &output);
        Ended::of(Command::new("sh").args(["-c", &script])).stdout
    };
    let max = shell("grep 'Max Latencies' OUTPUT | tr ' ' '\\n' | sort -n | tail -1 | sed s/^0*//");
    let columns = cyclictest_histogram::read(&text).unwrap();
    let worst = columns.iter().map(|column| column.max).max();
    assert_eq!(max.trim().parse::<u64>().ok(), worst);
    let data = "grep -v -e '^#' -e '^$' OUTPUT | tr ' ' '\\t'";
    let cores = shell(&format!("{data} | tail -1 | awk '{{print NF - 1}}'"));
    assert_eq!(cores.trim(), columns.len().to_string());
    let second = shell(&format!("{data} | cut -f1,2"));
    let counts = second
        .lines()
        .map(|line| line.split_once('\t').unwrap().1.parse::<u64>());
    let counted: u64 = counts.map(Result::unwrap).sum();
    assert_eq!(counted, columns[0].bins.iter().sum::<u64>());
    // The first thread that is through ends the program: others may be behind.
    let samples =
        |column: &cyclictest_histogram::Column| column.bins.iter().sum::<u64>() + column.overflows;
    assert_eq!(columns.iter().map(samples).max(), Some(100), "{text}");
}

/// A cyclictest, running until it is told to end, when it has taken samples. Its complaints go
/// to a file in the scratch directory.
fn begin(program: &Path, scratch: &Scratch, options: &[&str]) -> Child {
    let mut command = Command::new(program);
    command
        .args(options)
        .stdout(Stdio::piped())
        .stderr(File::create(scratch.path("stderr")).unwrap());
    let child = command.spawn().unwrap();
    let note = note(child.id());
    until(&format!("{} is there", note.display()), || note.exists());
    // It is there before the threads, of which the first takes no samples.
    until("two threads sleep and wake up", || {
        let waits = waits(child.id());
        waits.iter().skip(1).filter(|waits| **waits > 20).count() >= 2
    });
    child
}

/// How often each thread of a process has waited for something.
fn waits(pid: u32) -> Vec<u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let read = |thread: PathBuf| fs::read_to_string(thread.join("status")).ok();
    let waits = |status: String| {
        let mut lines = status.lines();
        lines.find_map(|line| {
            line.strip_prefix("voluntary_ctxt_switches:")?
                .trim()
                .parse()
                .ok()
        })
    };
    let threads = threads.into_iter().flatten().flatten();
    threads
        .filter_map(|thread| waits(read(thread.path())?))
        .collect()
}

fn note(pid: u32) -> PathBuf {
    PathBuf::from(format!("/dev/shm/cyclictest{pid}"))
}

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

#[test]
fn an_interrupt_ends_it_with_its_summary_and_leaves_nothing() {
    let policy: &[&str] = if is_root() { &["-p80"] } else { &[] };
    for signal in [Signal::INT, Signal::TERM] {
        let child = begin(
            &ours("cyclictest"),
            &Scratch::new(),
            &[&["-q", "-t2"], policy].concat(),
        );
        let pid = child.id();
        send(pid, signal);
        let ended = Ended::from(child.wait_with_output().unwrap());
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        let lines = ended.stdout.lines().filter(|line| line.starts_with("T:"));
        let lines: Vec<_> = lines
            .map(|line| ThreadLine::read(1, line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|line| line.cycles > 0), "{lines:?}");
        assert!(!note(pid).exists() && !is_alive(pid));
    }
}

#[test]
fn the_snapshot_program_of_rt_tests_reads_ours() {
    if !punctual_skip::root() {
        return;
    }
    let scratch = Scratch::new();
    let child = begin(&ours("cyclictest"), &scratch, &["-q", "-t2", "-p80"]);
    let pid = child.id().to_string();
    let snapshot = |option: &str| {
        Ended::of(Command::new("/usr/sbin/get_cyclictest_snapshot").args([option, &pid])).stdout
    };
    let is_status = |text: &str| {
        text.contains("# cyclictest current status:")
            && text.lines().filter(|line| line.starts_with("T:")).count() == 2
    };
    let list = Ended::of(Command::new("/usr/sbin/get_cyclictest_snapshot").arg("-l")).stdout;
    assert!(list.lines().any(|line| line == pid), "{list}");
    snapshot("-s");
    until("its status is in shared memory", || {
        is_status(&snapshot("-p"))
    });
    send(child.id(), Signal::USR1);
    until("its status is in its standard error", || {
        is_status(&fs::read_to_string(scratch.path("stderr")).unwrap())
    });
    send(child.id(), Signal::INT);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn hackbench_prints_what_that_of_rt_tests_prints() {
    let cases: &[&[&str]] = &[
        &["-p", "-g1", "-l5"],
        &["-T", "-g2", "-l5"],
        &["-P", "-g1", "-l5", "-f4"],
        &["-i", "-g1", "-l5", "-f4"],
    ];
    for options in cases {
        let (ours, theirs) = (
            run_ours("hackbench", options),
            run_theirs("hackbench", options),
        );
        assert_eq!(ours.status, theirs.status, "{}", ours.stderr);
        let work = |text: &str| text.lines().take(2).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(work(&ours.stdout), work(&theirs.stdout));
        assert_eq!(masked_lines(&ours.stdout), masked_lines(&theirs.stdout));
    }
    // As in the days before there were options.
    let old = run_ours("hackbench", &["2"]).stdout;
    assert_has(&old, &["with 2 groups using 40 file"]);
}

#[test]
fn a_killed_hackbench_takes_its_workers_along() {
    for signal in [Signal::INT, Signal::TERM] {
        kill_hackbench(signal);
    }
}

fn kill_hackbench(signal: Signal) {
    // Whoever started the tests in the background may have had them ignore Ctrl-C.
    let mut command = Command::new("env");
    let mut child = command
        .arg("--default-signal=INT,TERM")
        .arg(ours("hackbench"))
        .args(["-g10", "-l100000"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut below = Vec::new();
    until("400 workers are there", || {
        below = punctual_tests::descendants(child.id());
        below.len() >= 400
    });
    send(child.id(), signal);
    child.wait().unwrap();
    until("all workers have ended", || {
        !below.iter().any(|(pid, _)| is_alive(*pid))
    });
}

#[test]
fn realfeel_writes_a_histogram_of_what_it_read() {
    if !punctual_skip::root() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.path("rt.hist");
    let file = path.to_str().unwrap();
    let ended = run_ours("realfeel", &["--samples", "40", "--hertz", "64", file]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let bins = realfeel::read(&fs::read_to_string(&path).unwrap()).unwrap();
    let counted: u64 = bins.iter().map(|(_, count)| count).sum();
    let past = ended
        .stderr
        .lines()
        .find_map(|line| line.split_once(" past the histogram"));
    let past: u64 = past.map_or(0, |(past, _)| past.parse().unwrap());
    assert_eq!(counted + past, 40, "{}", ended.stderr);
    assert!(ended.stderr.starts_with("40 intervals"), "{}", ended.stderr);
    let (head, _) = ended.stdout.split_once("64 Hz\n").unwrap();
    assert_has(head, &[" MHz\nsecondsPerTick=0.0"]);
    assert!(
        ended
            .stdout
            .lines()
            .skip(4)
            .all(|line| line.ends_with(" msec"))
    );
    let jitters = realfeel::read_jitters(&ended.stdout).unwrap();
    assert_eq!(jitters.len(), 40, "{}", ended.stdout);
    // What a bin of 0.1 ms holds is what was printed, to the microsecond that is printed.
    let printed = jitters.iter().filter(|jitter| **jitter < 0.0995).count() as u64;
    let first = bins
        .iter()
        .find(|(bin, _)| *bin == 0)
        .map_or(0, |(_, count)| *count);
    assert!(printed <= first && first <= 40, "{printed} {first}");
    let ended = run_ours("realfeel", &["--samples", "5", "--hertz", "64"]);
    assert_eq!(realfeel::read_jitters(&ended.stdout).unwrap().len(), 5);
}

#[test]
fn realfeel_keeps_what_it_has_when_it_is_interrupted() {
    if !punctual_skip::root() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.path("rt.hist");
    let mut command = Command::new(ours("realfeel"));
    let child = command
        .args(["--hertz", "64"])
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("a thread of it has read twenty times", || {
        waits(child.id()).iter().any(|waits| *waits > 20)
    });
    send(child.id(), Signal::INT);
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.status, Some(0));
    assert_has(&ended.stderr, &[" intervals, jitter "]);
    assert!(
        !realfeel::read(&fs::read_to_string(&path).unwrap())
            .unwrap()
            .is_empty()
    );
}

#[test]
fn what_cannot_be_done_is_said_with_what_to_do() {
    let error = |name: &str, options: &[&str]| {
        let ended = run_ours(name, options);
        assert_eq!(
            ended.status,
            Some(1),
            "{name} {options:?}: {}",
            ended.stderr
        );
        assert!(
            ended.stderr.starts_with(&format!("{name}: ")),
            "{}",
            ended.stderr
        );
        ended.stderr
    };
    assert!(error("cyclictest", &["-U"]).contains("use -S"));
    assert!(error("cyclictest", &["-F", "/dev/null"]).contains("Error creating fifo /dev/null"));
    assert!(error("cyclicdeadline", &["-a0"]).contains("cpuset"));
    assert!(error("oslat", &["-b", "3"]).contains("4 to 1024"));
    assert!(error("realfeel", &["--hertz", "1000"]).contains("power of two"));
    assert!(error("realfeel", &["/no/such/directory/file"]).contains("/no/such"));
    if is_root() && !PathBuf::from("/dev/backfire").exists() {
        assert!(error("sendme", &["-l3"]).contains("modprobe backfire"));
    }
    let copy = Scratch::new();
    let public = copy.path("cyclictest");
    fs::copy(ours("cyclictest"), &public).unwrap();
    assert_refused_without_privileges(&public);
}

/// Nobody else's right is needed to see that one has none.
fn assert_refused_without_privileges(program: &Path) {
    let mut command = Command::new(program);
    if is_root() {
        // The program must be where anybody may read it.
        let directory = program.parent().unwrap();
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(directory, all).unwrap();
        command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(program);
    }
    let ended = Ended::of(command.args(["-q", "-l3", "-p80"]));
    assert_eq!(ended.status, Some(1), "{}", ended.stdout);
    assert_has(&ended.stderr, &["run as root"]);
    assert!(
        !ended.stdout.contains("T: 0"),
        "nothing was measured: {}",
        ended.stdout
    );
}

#[test]
fn they_run_in_a_guest_too() {
    const SUITE: &str = r#"
        modules = ["backfire", "pulse", "stall"]
        [[step]]
        probe = "program"
        run = ["punctual-target", "cyclictest", "-q", "-l200", "-i1000", "-p80"]
        [[step]]
        probe = "program"
        run = ["punctual-target", "sendme", "-i1000", "-p80", "-l50"]
    "#;
    let scratch = Scratch::new();
    let suite = &scratch.suite("drop-ins", &[], SUITE);
    let run = scratch.run(&["run", suite, "--kernel", "debian-6.12", "--quiet", "--json"]);
    let run = &punctual_tests::runs(&run.stdout)[0];
    let text = run["recordings"][0]["output"].as_str().unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("T:"));
    let line = ThreadLine::read(1, line.expect(text)).unwrap();
    // Virtual time: each cycle is due when it should be, and late by some microseconds.
    assert_eq!((line.cycles, line.interval_us), (200, 1_000));
    assert!((1..100).contains(&line.max), "{text}");
    let absent = run["unsupported"].as_array().unwrap();
    if absent.is_empty() {
        let text = run["recordings"][1]["output"].as_str().unwrap_or_default();
        let travel = punctual_formats::sendme::read(text).unwrap();
        assert_eq!(travel.samples, 50);
        assert!(travel.from.max < 100, "{text}");
    } else {
        let reason = absent[0]["reason"].as_str().unwrap();
        assert_has(reason, &["backfire"]);
        punctual_skip::skip(reason);
    }
}

/// A guest of one CPU has nothing below its kernel that could take time from it. One of two has:
/// the turns of the other CPU, which are what a hypervisor is to a real machine.
#[test]
fn hwlatdetect_finds_what_is_below_the_kernel_and_nothing_else() {
    const SUITE: &str = r#"
        [[step]]
        probe = "program"
        run = ["sh", "-c", "punctual-target hwlatdetect --duration 2 --threshold 2us 2>&1 || true; echo instances; ls /sys/kernel/tracing/instances || true"]
    "#;
    if !has_fair_qemu() {
        return;
    }
    let scratch = Scratch::new();
    let suite = &scratch.suite("hwlat", &[], SUITE);
    let said = |cpus: &str, kernel: &str| {
        let words = [
            "run", suite, "--kernel", kernel, "--cpus", cpus, "--quiet", "--json",
        ];
        let ended = scratch.run(&words);
        let runs = punctual_tests::runs(&ended.stdout);
        runs[0]["recordings"][0]["output"]
            .as_str()
            .expect(&ended.stderr)
            .to_owned()
    };
    let alone = said("1", "debian-6.12-rt");
    assert_has(
        &alone,
        &[
            "Latency threshold: 2us",
            "Below threshold",
            "Samples recorded: 0\n",
        ],
    );
    // The sample of each second, but for a first one that the tracer may begin with.
    let beside = said("2", "debian-6.12-rt");
    let recorded = beside
        .lines()
        .find_map(|line| line.strip_prefix("Samples recorded: "));
    let recorded: usize = recorded.expect(&beside).parse().unwrap();
    assert!((1..=3).contains(&recorded), "{beside}");
    assert_eq!(beside.matches("\nts: ").count(), recorded, "{beside}");
    assert!(!beside.contains("Max Latency: Below"), "{beside}");
    // Neither has left anything.
    for said in [&alone, &beside] {
        let (_, left) = said.split_once("\ninstances\n").expect(said);
        assert_eq!(left.trim(), "", "{said}");
    }
    // Debian's other flavour has no such tracer, and says so.
    let without = said("1", "debian-6.12");
    assert_has(&without, &["CONFIG_HWLAT_TRACER", "--probe noise"]);
}
