// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times on the wall, for ratios within one run; never for comparison with another day's. And
//! memory.
#![forbid(unsafe_code)]

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

/// How long a command takes to its end, which must be a good one.
pub fn time(command: &mut Command) -> Result<Duration> {
    let begun = Instant::now();
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(begun.elapsed())
}

/// Prints a figure once more, for programs: `bench overhead/cold 1.043`. What is kept of a
/// bench is these lines (`grep '^bench '`); only ratios can be compared with another day's.
pub fn figure(name: &str, value: f64) {
    println!("bench {} {value:.3}", name.replace(' ', "-"));
}

/// The middle one, in seconds.
pub fn median(times: &[Duration]) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    times
        .get(times.len() / 2)
        .map_or(f64::NAN, Duration::as_secs_f64)
}

/// What a command has taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// From begin to end.
    pub seconds: f64,
    /// Its own peak memory, in MiB.
    pub mib: u64,
    /// The largest peak memory of a process that it started, in MiB.
    pub children_mib: u64,
}

/// Runs a command to its end, which must be a good one, and looks at its memory meanwhile.
pub fn watch(command: &mut Command) -> Result<Cost> {
    let begun = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{command:?}"))?;
    let mut cost = Cost::default();
    let status = loop {
        cost.mib = cost.mib.max(peak_mib(child.id()));
        let children = children(child.id()).into_iter().map(peak_mib);
        cost.children_mib = children.fold(cost.children_mib, u64::max);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(Duration::from_millis(2));
    };
    ensure!(status.success(), "{command:?}: {status}");
    cost.seconds = begun.elapsed().as_secs_f64();
    Ok(cost)
}

/// CPU time, user and system, and time on the wall.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// Of all CPUs.
    pub cpu: Duration,
    /// From begin to end.
    pub wall: Duration,
}

/// Has a shell time a command, which must end well; the processes that it waits for are in it.
pub fn spent(command: &mut Command) -> Result<Spent> {
    let begun = Instant::now();
    let output = Command::new("bash")
        .args([
            "-c",
            "TIMEFORMAT='cpu %U %S'; time \"$0\" \"$@\" > /dev/null",
        ])
        .arg(command.get_program())
        .args(command.get_args())
        .output()?;
    let wall = begun.elapsed();
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {said}");
    let line = said.lines().find_map(|line| line.strip_prefix("cpu "));
    let cpu: f64 = line
        .context("the shell tells no time")?
        .split_whitespace()
        .filter_map(|word| word.parse::<f64>().ok())
        .sum();
    Ok(Spent {
        cpu: Duration::from_secs_f64(cpu),
        wall,
    })
}

/// The most memory that a process has had, in MiB; 0 when it is gone.
pub fn peak_mib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) >> 10
}

/// The processes that a process has started, by any of its threads.
fn children(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let texts = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let words = |text: String| -> Vec<u32> {
        text.split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect()
    };
    texts.flat_map(words).collect()
}
