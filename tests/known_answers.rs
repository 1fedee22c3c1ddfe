//! Punctual's probes against the programs that everybody knows, in the same guest.

use punctual_tests::Scratch;
use serde_json::Value;

/// Two figures agree if they are this close: 2 µs, or a fifth.
fn agree(ours_ns: f64, theirs_ns: f64) -> bool {
    (ours_ns - theirs_ns).abs() <= (theirs_ns * 0.2).max(2_000.0)
}

fn number(text: &str, after: &str) -> f64 {
    let rest = text
        .split(after)
        .nth(1)
        .unwrap_or_else(|| panic!("no {after} in {text}"));
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

/// Both, idle and under the same load.
const CYCLICTEST: &str = r#"
name = "cyclictest"
summary = "our timer and cyclictest, same period, priority and load"
programs = ["cyclictest"]
[[step]]
probe = "timer"
interval_us = 997
priority = 80
samples = 3000
[[step]]
probe = "program"
run = ["cyclictest", "-q", "-N", "-m", "-t1", "-a0", "-p80", "-i997", "-l3000"]
[[step]]
probe = "timer"
load = "stress"
interval_us = 997
priority = 80
samples = 3000
[[step]]
probe = "program"
load = "stress"
run = ["cyclictest", "-q", "-N", "-m", "-t1", "-a0", "-p80", "-i997", "-l3000"]
"#;

/// Minimum, mean and maximum.
type Figures = [f64; 3];

fn ours(recording: &Value) -> Figures {
    ["min", "mean", "max"].map(|name| recording[name].as_f64().unwrap())
}

fn theirs(recording: &Value) -> Figures {
    let output = recording["output"].as_str().unwrap();
    ["Min:", "Avg:", "Max:"].map(|name| number(output, name))
}

/// Of several runs: one run's maximum is one draw.
fn pooled(runs: &[Value], step: usize, read: fn(&Value) -> Figures) -> Figures {
    let figures: Vec<Figures> = runs
        .iter()
        .map(|run| read(&run["recordings"][step]))
        .collect();
    let of = |index: usize| figures.iter().map(move |figures| figures[index]);
    [
        of(0).fold(f64::INFINITY, f64::min),
        of(1).sum::<f64>() / figures.len() as f64,
        of(2).fold(0.0, f64::max),
    ]
}

#[test]
fn timer_agrees_with_cyclictest() {
    let scratch = Scratch::new();
    let suite = &scratch.file("cyclictest.toml", CYCLICTEST);
    for kernel in ["debian-6.12", "debian-6.12-rt"] {
        let runs = scratch.measure(&[suite, "--kernel", kernel, "--seeds", "1..3"]);
        for (load, step) in [("idle", 0), ("stress", 2)] {
            let (ours, theirs) = (pooled(&runs, step, ours), pooled(&runs, step + 1, theirs));
            println!("{kernel} {load}: {ours:?}, cyclictest {theirs:?}");
            for (ours, theirs) in ours.into_iter().zip(theirs) {
                assert!(
                    agree(ours, theirs),
                    "{kernel} {load}: {ours}, cyclictest {theirs}"
                );
            }
        }
    }
}

/// On PREEMPT_RT one execution differs from the next by a fifth, so there are many of them.
#[test]
fn hackbench_agrees_with_that_of_rt_tests() {
    const SUITE: &str = r#"
        name = "hackbench"
        summary = "our hackbench and that of rt-tests"
        programs = ["hackbench"]
        [[step]]
        probe = "hackbench"
        ipc = "IPC"
        groups = 1
        loops = 50
        samples = SAMPLES
        [[step]]
        probe = "program"
        run = ["hackbench", "-g1", "-l50" OPTION]
        samples = SAMPLES
    "#;
    let scratch = Scratch::new();
    for (ipc, option) in [("pipe", ", \"-p\""), ("socket", "")] {
        let suite = SUITE.replace("IPC", ipc).replace(" OPTION", option);
        for (kernel, samples) in [("debian-6.12", 15), ("debian-6.12-rt", 60)] {
            let suite = suite.replace("SAMPLES", &samples.to_string());
            let suite = &scratch.file("hackbench.toml", suite);
            let run = &scratch.measure(&[suite, "--kernel", kernel])[0];
            let ours = run["recordings"][0]["mean"].as_f64().unwrap() / 1e9;
            let output = run["recordings"][1]["output"].as_str().unwrap();
            let times = output
                .lines()
                .filter_map(|line| line.strip_prefix("Time: "));
            let times: Vec<f64> = times.map(|time| time.trim().parse().unwrap()).collect();
            assert_eq!(times.len(), samples);
            let theirs = times.iter().sum::<f64>() / samples as f64;
            println!("{kernel} {ipc}: {ours:.3} s, theirs {theirs:.3} s");
            assert!(
                (ours / theirs - 1.0).abs() <= 0.1,
                "{kernel} {ipc}: {ours} {theirs}"
            );
        }
    }
}

/// The control must fail, or a pass would prove nothing.
#[test]
fn priority_inheritance_prevents_inversion_and_no_protocol_does_not() {
    const SUITE: &str = r#"
        name = "inversion"
        summary = "priority inversion, as S3 tells it"
        [[step]]
        probe = "inversion"
        rounds = 20
        work_us = 500
    "#;
    let scratch = Scratch::new();
    let suite = &scratch.file("inversion.toml", SUITE);
    let kernels = ["--kernel", "debian-6.12", "--kernel", "debian-6.12-rt"];
    for run in scratch.measure(&[&[suite.as_str()], &kernels[..]].concat()) {
        let kernel = &run["subject"]["kernel"];
        for (recording, expected) in run["recordings"].as_array().unwrap().iter().zip([
            ("inherit", "pass"),
            ("none", "fail"),
            ("protect", "pass"),
        ]) {
            let (variant, result) = expected;
            assert_eq!(recording["variant"], variant, "{kernel}");
            let settings = &recording["settings"];
            assert_eq!(settings["result"], result, "{kernel} {variant}: {settings}");
            // The control waits for all of the medium thread's work, the others for none.
            let min = recording["min"].as_i64().unwrap();
            assert_eq!(
                min > 500_000,
                variant == "none",
                "{kernel} {variant}: {min} ns"
            );
        }
    }
}

/// What is added to the handler is added to the shortest interval at which none is lost.
#[test]
fn a_longer_handler_moves_the_highest_interrupt_rate_by_its_length() {
    const STEP: &str = "[[step]]\nprobe = \"irqrate\"\nbursts = [1000]\nhandler_ns = ";
    let scratch = Scratch::new();
    let suite = format!(
        "name = \"rate\"\nsummary = \"\"\nmodules = [\"pulse\"]\n{STEP}20000\n{STEP}40000\n"
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
