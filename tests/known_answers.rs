// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares Punctual's probes with well-known programs, in the same guest.

use std::sync::LazyLock;

use punctual_tests::{KERNELS, Scratch, has_fair_qemu, sized};
use serde_json::Value;

/// The allowed distance between the same figure of two programs. Figures are given once for each
/// seed.
#[derive(Clone, Copy, Debug)]
enum Bound {
    /// The largest of each differ by at most this many ns: for minima. A seed may have a sample
    /// with a shorter way, and whether it has is chance.
    NsOfLargest(f64),
    /// The medians differ by at most this share: for figures in which one seed may be far off.
    ShareOfMiddle(f64),
    /// The means differ by at most this share.
    Share(f64),
    /// The means differ by at most this share and twice the standard error of their difference: for
    /// figures that a few rare events decide, as many as a seed brings.
    ShareAndNoise(f64),
    /// The ranges overlap: for maxima, each of which is one draw. All of one lie above all of the
    /// other by chance once in 126 times with five of each, and once in 462 with six of each.
    Overlap,
}

fn largest(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// The median: with two in the middle, their mean.
fn middle(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    mean(&sorted[sorted.len().div_ceil(2) - 1..=half])
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

/// The variance of the mean of independent figures.
fn variance_of_mean(figures: &[f64]) -> f64 {
    let (count, mean) = (figures.len() as f64, mean(figures));
    let squares = figures.iter().map(|figure| (figure - mean).powi(2));
    squares.sum::<f64>() / (count - 1.0) / count
}

impl Bound {
    /// Returns true if two programs measure the same.
    fn holds(self, ours: &[f64], theirs: &[f64]) -> bool {
        assert!(ours.len() > 1 && ours.len() == theirs.len());
        let apart = (mean(ours) - mean(theirs)).abs();
        let share = |share: f64| share * mean(theirs);
        match self {
            Self::NsOfLargest(most) => (largest(ours) - largest(theirs)).abs() <= most,
            Self::ShareOfMiddle(most) => {
                (middle(ours) - middle(theirs)).abs() <= most * middle(theirs)
            }
            Self::Share(most) => apart <= share(most),
            Self::ShareAndNoise(most) => {
                let noise = variance_of_mean(ours) + variance_of_mean(theirs);
                apart <= share(most) + 2.0 * noise.sqrt()
            }
            Self::Overlap => {
                let above = |these: &[f64], those: &[f64]| {
                    these.iter().all(|figure| *figure > largest(those))
                };
                !above(ours, theirs) && !above(theirs, ours)
            }
        }
    }

    /// Returns true if two programs measure the same, and would not if ours had `more` added.
    fn agrees(self, ours: &[f64], theirs: &[f64], more: Option<f64>) -> bool {
        let is_seen = more.is_none_or(|more| {
            let longer: Vec<f64> = ours.iter().map(|figure| figure + more).collect();
            !self.holds(&longer, theirs)
        });
        self.holds(ours, theirs) && is_seen
    }

    /// Checks this, and that it would fail if ours had `more` added: a check that cannot fail is
    /// none.
    fn check(self, ours: &[f64], theirs: &[f64], more: Option<f64>, what: &str) {
        let what = format!("{what}, {self:?}: {ours:.3?}, theirs {theirs:.3?}");
        println!("{what}");
        assert!(self.holds(ours, theirs), "{what}");
        if let Some(more) = more {
            let longer: Vec<f64> = ours.iter().map(|figure| figure + more).collect();
            assert!(
                !self.holds(&longer, theirs),
                "{more} more go unseen: {what}"
            );
        }
    }
}

#[test]
fn figures_that_are_too_far_apart_do_not_agree() {
    let theirs = [3_900.0, 3_910.0];
    assert!(Bound::NsOfLargest(100.0).holds(&[4_000.0, 4_010.0], &theirs));
    assert!(Bound::NsOfLargest(100.0).holds(&[3_000.0, 3_910.0], &theirs));
    assert!(!Bound::NsOfLargest(100.0).holds(&[4_011.0, 3_910.0], &theirs));
    assert!(!Bound::NsOfLargest(100.0).holds(&[3_809.0, 3_809.0], &theirs));
    let three = [10_000.0, 11_000.0, 12_000.0];
    assert!(Bound::ShareOfMiddle(0.1).holds(&[5_000.0, 12_100.0, 12_200.0], &three));
    assert!(!Bound::ShareOfMiddle(0.1).holds(&[5_000.0, 12_101.0, 12_200.0], &three));
    assert!(Bound::ShareOfMiddle(0.1).holds(&[1.0, 9_900.0], &[4_000.0, 6_000.0]));
    assert!(!Bound::ShareOfMiddle(0.1).holds(&[1.0, 8_900.0], &[4_000.0, 6_000.0]));
    assert!(Bound::Share(0.03).holds(&[4_020.0, 4_020.0], &theirs));
    assert!(!Bound::Share(0.03).holds(&[4_025.0, 4_025.0], &theirs));
    // Twice the standard error: 2 √(200² + 200²) is 566.
    assert!(Bound::ShareAndNoise(0.0).holds(&[1_000.0, 1_400.0], &[1_550.0, 1_950.0]));
    assert!(!Bound::ShareAndNoise(0.0).holds(&[1_000.0, 1_400.0], &[1_580.0, 1_980.0]));
    assert!(!Bound::ShareAndNoise(0.0).holds(&[1_000.0, 1_001.0], &[1_010.0, 1_011.0]));
    assert!(Bound::Overlap.holds(&[10.0, 11.0], &[10.5, 12.0]));
    assert!(!Bound::Overlap.holds(&[10.0, 11.0], &[12.0, 13.0]));
    assert!(!Bound::Overlap.holds(&[12.0, 13.0], &[10.0, 11.0]));
    let near = [4_020.0, 4_020.0];
    assert!(Bound::Share(0.03).agrees(&near, &theirs, None));
    assert!(Bound::Share(0.03).agrees(&near, &theirs, Some(5.0)));
    assert!(!Bound::Share(0.03).agrees(&near, &theirs, Some(1.0)));
    assert!(!Bound::Share(0.03).agrees(&[4_025.0, 4_025.0], &theirs, None));
}

fn number(text: &str, after: &str) -> f64 {
    let rest = text
        .split(after)
        .nth(1)
        .unwrap_or_else(|| panic!("no {after} in {text}"));
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

/// The probe, and the program with the same settings, with `samples` samples each.
fn programs(samples: usize) -> [String; 2] {
    let interval = sized(499, 997);
    let ours = format!(
        "probe = \"timer\"\ninterval_us = {interval}\npriority = 80\nsamples = {samples}\n"
    );
    let options = "\"-q\", \"-N\", \"-m\", \"-t1\", \"-a0\", \"-p80\", \"-h30000\"";
    let options = format!("{options}, \"-i{interval}\"");
    let theirs =
        format!("probe = \"program\"\nrun = [\"cyclictest\", {options}, \"-l{samples}\"]\n");
    [ours, theirs]
}

/// Steps for each, idle and under the same load, in this order.
fn in_order(order: &[String; 2]) -> String {
    let step = |load: &str, what: &String| format!("[[step]]\nload = \"{load}\"\n{what}");
    let both = |load| order.each_ref().map(|what| step(load, what)).concat();
    let steps = ["idle", "stress"].map(both);
    format!(
        "programs = [\"cyclictest\", \"hackbench\", \"oslat\"]\n{}",
        steps.concat()
    )
}

/// The number of samples of each, and the number left without the latest 5 %. Under stress
/// cyclictest's histogram lacks up to 1 % of them.
static SAMPLES: LazyLock<usize> = LazyLock::new(|| sized(600, 2_000));

fn earliest() -> usize {
    *SAMPLES / 100 * 95
}

/// A recording's samples, in ns, sorted.
fn samples(recording: &Value) -> Vec<f64> {
    let samples = recording["samples"].as_array().unwrap().iter();
    let mut values: Vec<f64> = samples.map(|sample| sample[1].as_f64().unwrap()).collect();
    assert_eq!(values.len(), *SAMPLES);
    values.sort_by(f64::total_cmp);
    values
}

/// The samples of the histogram of 1 ns bins that cyclictest prints. Those that overflowed are
/// late.
fn samples_of(output: &str) -> Vec<f64> {
    let line = |line: &str| -> Option<(f64, usize)> {
        let (value, count) = line.split_once(' ')?;
        Some((value.parse().ok()?, count.parse().ok()?))
    };
    let lines = output.lines().filter_map(line);
    let values = lines.flat_map(|(value, count)| std::iter::repeat_n(value, count));
    let values: Vec<f64> = values.collect();
    assert!((earliest()..=*SAMPLES).contains(&values.len()), "{output}");
    values
}

/// The detour of our path, compared with theirs, that a figure must show.
const LONGER_NS: f64 = 500.0;

/// One of the figures that both give.
struct Figure {
    name: &'static str,
    ours: fn(&Value) -> f64,
    theirs: fn(&str) -> f64,
    bound: Bound,
    /// True if the figure shows [`LONGER_NS`].
    tells: bool,
}

/// The figures that are compared idle, or under a load, where a few late samples decide the mean.
fn figures(is_idle: bool) -> [Figure; 5] {
    [
        Figure {
            name: "min",
            ours: |recording| recording["min"].as_f64().unwrap(),
            theirs: |output| number(output, "# Min Latencies:"),
            // Beside a load the shortest way of so few samples is a draw in each seed.
            bound: if is_idle {
                Bound::NsOfLargest(200.0)
            } else {
                Bound::ShareAndNoise(0.03)
            },
            tells: true,
        },
        Figure {
            name: "median",
            ours: |recording| recording["quantiles"]["0.5"].as_f64().unwrap(),
            theirs: |output| samples_of(output)[*SAMPLES / 2 - 1],
            bound: Bound::Share(0.03),
            tells: true,
        },
        Figure {
            name: "mean without the latest 5 %",
            ours: |recording| mean(&samples(recording)[..earliest()]),
            theirs: |output| mean(&samples_of(output)[..earliest()]),
            bound: Bound::Share(0.03),
            tells: true,
        },
        Figure {
            name: "mean",
            ours: |recording| recording["mean"].as_f64().unwrap(),
            theirs: |output| number(output, "# Avg Latencies:"),
            bound: if is_idle {
                Bound::Share(0.03)
            } else {
                Bound::ShareAndNoise(0.03)
            },
            tells: is_idle,
        },
        Figure {
            name: "max",
            ours: |recording| recording["max"].as_f64().unwrap(),
            theirs: |output| number(output, "# Max Latencies:"),
            bound: Bound::Overlap,
            tells: false,
        },
    ]
}

/// Measures both with these seeds, and returns the figures that do not agree.
///
/// The second half of the seeds has the two in the other order: long and rare events come at their
/// own place, whoever measures there.
fn differing(scratch: &Scratch, kernel: &str, seeds: [&str; 2]) -> Vec<String> {
    let [ours, theirs] = programs(*SAMPLES);
    let orders = [[ours.clone(), theirs.clone()], [theirs, ours]];
    let mut runs = Vec::new();
    for (at, (order, seeds)) in orders.iter().zip(seeds).enumerate() {
        let suite = &scratch.suite("cyclictest", &[], &in_order(order));
        let found = scratch.measure(&[suite, "--kernel", kernel, "--seeds", seeds]);
        runs.extend(found.into_iter().map(|run| (run, at)));
    }
    let mut differing = Vec::new();
    for (load, step) in [("idle", 0), ("stress", 2)] {
        for figure in figures(load == "idle") {
            let ours = runs.iter().map(|(run, at)| &run["recordings"][step + at]);
            let ours: Vec<f64> = ours.map(figure.ours).collect();
            let theirs = runs
                .iter()
                .map(|(run, at)| &run["recordings"][step + 1 - at]);
            let outputs = theirs.map(|one| one["output"].as_str().unwrap());
            let theirs: Vec<f64> = outputs.map(figure.theirs).collect();
            let what = format!("{kernel} {load} {}", figure.name);
            let more = figure.tells.then_some(LONGER_NS);
            let agrees = figure.bound.agrees(&ours, &theirs, more);
            let told = if agrees { "agrees" } else { "differs" };
            let bound = figure.bound;
            println!("{what} {told}, {bound:?}: {ours:.3?}, theirs {theirs:.3?}");
            if !agrees {
                differing.push(what);
            }
        }
    }
    differing
}

/// Some figure of six seeds may differ by chance alone. Only one that differs with other seeds as
/// well counts.
#[test]
fn timer_agrees_with_cyclictest() {
    let scratch = Scratch::new();
    // The programs are the same whatever kernel they run on.
    for kernel in *sized(&&KERNELS[1..], &&KERNELS[..]) {
        // Of fewer seeds all maxima of one lie above all of the other too often, by chance alone.
        let first = differing(&scratch, kernel, ["1..3", "4..6"]);
        if first.is_empty() {
            continue;
        }
        let again = differing(&scratch, kernel, ["7..9", "10..12"]);
        let twice: Vec<&String> = first.iter().filter(|what| again.contains(what)).collect();
        assert!(twice.is_empty(), "with both sets of seeds: {twice:#?}");
    }
}

/// A thread on each of two CPUs, all woken at the same moments. Idle, each program wakes another
/// CPU first, and the other one waits for its turns: there only the minimum is the same.
#[test]
fn timer_agrees_with_cyclictest_on_each_of_two_cpus() {
    const OURS: &str = "probe = \"timer\"\ninterval_us = 997\npriority = 80\nsamples = ";
    const THEIRS: &str = r#"probe = "program"
        run = ["cyclictest", "-q", "-S", "-d0", "-A0", "-N", "-m", "-p80", "-i997", "-l"#;
    if !punctual_skip::long("PUNCTUAL_LONG") || !has_fair_qemu() {
        return;
    }
    let scratch = Scratch::new();
    let programs = [format!("{OURS}500"), format!("{THEIRS}500\"]")];
    let steps: Vec<String> = ["idle", "stress"]
        .iter()
        .flat_map(|load| {
            let step = |what: &String| format!("[[step]]\nload = \"{load}\"\n{what}\n");
            programs.each_ref().map(step)
        })
        .collect();
    let suite = format!(
        "programs = [\"cyclictest\", \"hackbench\", \"oslat\"]\n{}",
        steps.concat()
    );
    let suite = &scratch.suite("two", &[], &suite);
    let words = [suite, "--kernel", KERNELS[1], "--cpus", "2"];
    let runs = scratch.measure(&[&words[..], &["--seeds", "1..4"]].concat());
    for cpu in [0, 1] {
        let ours = |run: &Value, step: usize, figure: &str| {
            let recording = &run["recordings"][3 * step + cpu];
            assert_eq!(recording["variant"], format!("cpu{cpu}"));
            recording[figure].as_f64().unwrap()
        };
        let theirs = |run: &Value, step: usize, figure: &str| {
            let output = run["recordings"][3 * step + 2]["output"].as_str().unwrap();
            let line = output
                .lines()
                .find(|line| line.starts_with(&format!("T: {cpu} ")));
            number(line.expect("a line for each thread"), figure)
        };
        let check = |step, bound: Bound, (here, there), more| {
            let ours: Vec<f64> = runs.iter().map(|run| ours(run, step, here)).collect();
            let theirs: Vec<f64> = runs.iter().map(|run| theirs(run, step, there)).collect();
            bound.check(
                &ours,
                &theirs,
                more,
                &format!("step {step}, cpu{cpu} {here}"),
            );
        };
        // Of the CPU that is in nobody's way.
        if cpu == 0 {
            check(
                0,
                Bound::NsOfLargest(150.0),
                ("min", "Min:"),
                Some(LONGER_NS),
            );
        }
        // One seed of four may have its wake-ups in the other CPU's way, or out of it, by 2.5 us.
        let longer = Some(6.0 * LONGER_NS);
        check(1, Bound::ShareOfMiddle(0.1), ("mean", "Avg:"), longer);
        check(1, Bound::Overlap, ("max", "Max:"), None);
    }
}

/// On PREEMPT_RT one execution takes up to twice as long as another, and a message by a socket
/// takes longest. A factor of two shows in any case; [`LONGER_NS`] for each message by a pipe shows
/// on the stock kernel.
#[test]
fn hackbench_agrees_with_that_of_rt_tests() {
    const SUITE: &str = r#"
        programs = ["cyclictest", "hackbench", "oslat"]
        [[step]]
        probe = "hackbench"
        ipc = "IPC"
        groups = 1
        loops = 50
        samples = 3
        [[step]]
        probe = "program"
        run = ["hackbench", "-g1", "-l50" OPTION]
        samples = 3
    "#;
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let scratch = Scratch::new();
    // Each seed gives another interleaving.
    let seeds = sized("1..3", "1..5");
    let both = [("pipe", ", \"-p\""), ("socket", "")];
    for (ipc, option) in sized(&both[..1], &both) {
        let suite = SUITE.replace("IPC", ipc).replace(" OPTION", option);
        let suite = &scratch.suite("hackbench", &[], &suite);
        for kernel in KERNELS {
            let runs = scratch.measure(&[suite, "--kernel", kernel, "--seeds", seeds]);
            let ours: Vec<f64> = runs
                .iter()
                .map(|run| run["recordings"][0]["mean"].as_f64().unwrap() / 1e9)
                .collect();
            let theirs: Vec<f64> = runs.iter().map(mean_of_times).collect();
            // 20 senders, 20 receivers, 50 loops.
            let messages = f64::from(20 * 20 * 50);
            let is_exact = (*ipc, kernel) == ("pipe", KERNELS[0]);
            let more = if is_exact {
                messages * LONGER_NS / 1e9
            } else {
                mean(&ours)
            };
            let what = format!("{kernel} {ipc}, in s");
            Bound::ShareAndNoise(0.1).check(&ours, &theirs, Some(more), &what);
        }
    }
}

/// The mean of the seconds that rt-tests' hackbench prints, once for each execution.
fn mean_of_times(run: &Value) -> f64 {
    let output = run["recordings"][1]["output"].as_str().unwrap();
    let times: Vec<f64> = output
        .lines()
        .filter_map(|line| line.strip_prefix("Time: "))
        .map(|time| time.trim().parse().unwrap())
        .collect();
    assert_eq!(times.len(), 3, "{output}");
    times.iter().sum::<f64>() / times.len() as f64
}

/// The path of a deadline thread is that of a fifo thread, with some code more; its first period
/// begins within the reported limits. Times are exact here.
#[test]
fn a_deadline_thread_is_as_late_as_its_path_is_long() {
    let scratch = Scratch::new();
    let step = |policy: &str| {
        format!("[[step]]\nprobe = \"timer\"\nsamples = 300\npolicy = \"{policy}\"\n")
    };
    let text = format!(
        "name = \"both\"\nsummary = \"policies\"\n{}{}",
        step("fifo"),
        step("deadline")
    );
    let suite = scratch.file("both.toml", text);
    let [stock, rt] = KERNELS;
    let words = [
        "run", &suite, "--kernel", stock, "--kernel", rt, "--json", "--quiet",
    ];
    let ended = scratch.run(&words);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    for run in told["runs"].as_array().unwrap() {
        let recordings = run["recordings"].as_array().unwrap();
        let [fifo, deadline] = recordings.as_slice() else {
            panic!("{recordings:#?}");
        };
        assert_eq!(
            (&fifo["variant"], &deadline["variant"]),
            (&"cpu0".into(), &"thread0".into())
        );
        assert_eq!(deadline["settings"]["policy"], "SCHED_DEADLINE");
        assert_eq!(
            (&deadline["count"], &deadline["missed"]),
            (&300.into(), &0.into())
        );
        let least = |recording: &Value| recording["min"].as_i64().unwrap();
        let within = deadline["settings"]["period_begins_within_ns"]
            .as_i64()
            .unwrap();
        assert!((1..10_000).contains(&within), "{within}");
        let longer = least(deadline) - least(fifo);
        assert!(
            (1..within + 2_000).contains(&longer),
            "{longer} ns, {within}"
        );
    }
}

/// Each control must fail, or a pass would prove nothing.
#[test]
fn priority_inheritance_prevents_inversion_and_no_protocol_does_not() {
    const SUITE: &str = r#"
        [[step]]
        probe = "inversion"
        rounds = 20
        work_us = 500
    "#;
    let scratch = Scratch::new();
    let suite = &scratch.suite("inversion", &[], SUITE);
    let kernels = ["--kernel", "debian-6.12", "--kernel", "debian-6.12-rt"];
    for run in scratch.measure(&[&[suite.as_str()], &kernels[..]].concat()) {
        let kernel = &run["subject"]["kernel"];
        for recording in run["recordings"].as_array().unwrap() {
            let variant = recording["variant"].as_str().unwrap();
            let passed = !variant.starts_with("none");
            let result = &recording["findings"]["result"]["verdict"];
            assert_eq!(result["passed"], passed, "{kernel} {variant}: {result}");
            assert_eq!(result["expected"], passed, "{kernel} {variant}: {result}");
            // A control waits for all of the medium thread's work, the others for none.
            let min = recording["min"].as_i64().unwrap();
            assert_eq!(min > 500_000, !passed, "{kernel} {variant}: {min} ns");
        }
        let lent = |step: usize| {
            let found = &run["recordings"][step]["findings"];
            let counts = found["priority_of_owner_while_wanted"]["count"].as_u64();
            counts.unwrap_or_else(|| panic!("{found}"))
        };
        let lent: Vec<u64> = (0..9).map(lent).collect();
        assert_eq!(lent, [82, 80, 82, 83, 80, 84, 80, 83, 80], "{kernel}");
    }
}

/// A delay added to the handler is added to the shortest interval at which no interrupt is lost.
#[test]
fn a_longer_handler_moves_the_highest_interrupt_rate_by_its_length() {
    const STEP: &str =
        "[[step]]\nprobe = \"irqrate\"\nbursts = [1000]\nburst_ms = 40\nrepeats = 1\nhandler_ns = ";
    let scratch = Scratch::new();
    let suite = format!(
        "name = \"rate\"\nsummary = \"\"\nmodules = [\"backfire\", \"pulse\", \"stall\"]\n{STEP}20000\n{STEP}40000\n"
    );
    let suite = &scratch.file("rate.toml", suite);
    let kernels = ["--kernel", "debian-6.12", "--kernel", "debian-6.12-rt"];
    for run in scratch.measure(&[&[suite.as_str()], &kernels[..]].concat()) {
        let interval = |step: usize| run["recordings"][step]["max"].as_i64().unwrap();
        let moved = interval(1) - interval(0);
        // The search goes in steps of 100 ns.
        assert!(
            (19_800..=20_200).contains(&moved),
            "{}: {moved} ns",
            run["subject"]["kernel"]
        );
    }
}
