// SPDX-License-Identifier: MIT OR Apache-2.0
//! Our cyclictest against that of rt-tests: the same options give lines of the same form, and
//! programs that read theirs read ours.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use punctual_agent::sys::time::now;
use punctual_formats::cyclictest_lines::{ThreadLine, ValueLine};
use punctual_formats::{cyclictest_histogram, cyclictest_json};
use punctual_tests::originals::{
    are_as_wide, is_root, masked, masked_lines, ours, run_ours, run_theirs, send, theirs, waits,
};
use punctual_tests::{Ended, Scratch, is_alive, programs, until};
use rustix::process::Signal;

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

/// The warnings about clocks and timers beside the results, which both give in the same words.
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

/// If there are no SMIs to count, both give the reason in the same words.
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
    let smis = |ended: &Ended| -> Vec<String> {
        let lines = masked_lines(&ended.stdout).into_iter();
        lines.filter(|line| line.contains("SMI")).collect()
    };
    if reason(&theirs) == Some(0) && cpus.contains("GenuineIntel") {
        // Of Intel's processors rt-tests lists models, of which this one is younger: it does not
        // count, so that ours counts or says what else is in the way.
        let counted = smis(&ours).len() == 1;
        let (status, why) = (ours.status, reason(&ours));
        assert_eq!((status == Some(0), why.is_none()), (counted, counted));
        assert_ne!(why, Some(0), "{}", ours.stderr);
        return;
    }
    assert_eq!(
        (ours.status, reason(&ours)),
        (theirs.status, reason(&theirs)),
        "{}",
        ours.stderr
    );
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
        // A reader that is still there when the next lines come gets those, too. Theirs may leave
        // the pipe behind.
        let is_ours = program.starts_with(programs());
        assert!(!is_ours || !path.exists());
        assert_eq!(read.stdout.lines().count() % 2, 0, "{}", read.stdout);
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

/// Starts a cyclictest that runs until it is told to end, and waits until it has taken samples. Its
/// messages go to a file in the scratch directory.
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

fn note(pid: u32) -> PathBuf {
    PathBuf::from(format!("/dev/shm/cyclictest{pid}"))
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
