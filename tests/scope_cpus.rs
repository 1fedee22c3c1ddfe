// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scope over several CPUs: own path and others' turns add up, and effects of one CPU on
//! another are reported.

use std::fmt::Write as _;

use punctual_tests::explained::{check_sum, explain, number, samples};
use punctual_tests::{KERNELS, Scratch, has_fair_qemu};
use serde_json::Value;

/// Idle, loaded, and across CPUs.
const SUITE: &str = "name = \"cpus\"\nsummary = \"\"\ncpus = 2\n\
    [[step]]\nprobe = \"timer\"\nsamples = 12\n\
    [[step]]\nprobe = \"timer\"\nload = \"stress\"\nsamples = 12\n\
    [[step]]\nprobe = \"wake\"\nsamples = 3\nby = [\"futex\", \"pipe\"]\n";

/// Returns true for code that another CPU executes meanwhile, waited for or not.
fn is_turn(part: &Value) -> bool {
    ["another CPU's turn", "awaited CPU's turn"].contains(&part["cause"].as_str().unwrap())
}

fn parts(sample: &Value) -> &Vec<Value> {
    sample["story"]["parts"].as_array().expect("parts")
}

/// Checks that the parts are the own path and others' turns, told apart, and add up to the sample.
pub fn check_turns(sample: &Value) {
    check_sum(sample);
    let story = &sample["story"];
    let (own, others) = (number(&story["own_ns"]), number(&story["others_ns"]));
    assert_eq!(own + others, number(&sample["late_ns"]), "{sample:#}");
    let turns = parts(sample).iter().filter(|part| is_turn(part));
    let turns: i64 = turns.map(|part| number(&part["length_ns"])).sum();
    assert_eq!(turns, others, "{sample:#}");
    // It ends where the measuring thread runs: on the CPU of the recording.
    let last = parts(sample).last().unwrap();
    let cpu = format!("cpu{}", number(&last["cpu"]));
    let taken_on = sample["variant"].as_str().unwrap().ends_with(&cpu);
    assert!(taken_on && !is_turn(last), "{sample:#}");
}

/// Checks a wake-up across CPUs. The sleeper's CPU gets an interrupt from the waker's: the path is
/// the waker's up to there, and the sleeper's from there on.
fn check_across(sample: &Value) {
    let (from, to) = match sample["variant"].as_str().unwrap().rsplit_once("cpu") {
        Some((_, "1")) => (0, 1),
        _ => (1, 0),
    };
    let ipis = sample["story"]["ipis"].as_array().unwrap();
    let ours = |ipi: &&Value| ipi["from_cpu"] == from && ipi["to_cpu"] == to;
    let ipi = ipis.iter().find(ours);
    let ipi = ipi.unwrap_or_else(|| panic!("no interrupt: {sample:#}"));
    let (sent, taken) = (number(&ipi["sent_ns"]), number(&ipi["taken_ns"]));
    let of = |stage: &str| {
        let parts = parts(sample).iter().filter(|part| part["stage"] == stage);
        let parts: Vec<&Value> = parts.collect();
        let begin = parts.first().map_or(-1, |part| number(&part["from_ns"]));
        let end = parts.last().map_or(-1, |part| {
            number(&part["from_ns"]) + number(&part["length_ns"])
        });
        let own = parts.iter().filter(|part| !is_turn(part));
        let cpus: Vec<i64> = own.map(|part| number(&part["cpu"])).collect();
        (begin, end, cpus)
    };
    let (begin, end, cpus) = of("call");
    assert_eq!((begin, end), (0, sent), "{sample:#}");
    assert!(cpus.iter().all(|cpu| *cpu == from), "{sample:#}");
    let (begin, end, _) = of("IPI");
    let at_once = sent == taken && begin == -1;
    assert!(at_once || (begin, end) == (sent, taken), "{sample:#}");
    for stage in ["switch", "return", "sample"] {
        let (_, _, cpus) = of(stage);
        let own = !cpus.is_empty() && cpus.iter().all(|cpu| *cpu == to);
        assert!(own, "{stage}: {sample:#}");
    }
}

#[test]
fn own_path_and_others_turns_add_up_on_two_cpus() {
    if !has_fair_qemu() {
        return;
    }
    let scratch = Scratch::new();
    let suite = &scratch.file("cpus.toml", SUITE);
    let stock = punctual_skip::long("PUNCTUAL_LONG").then_some(KERNELS[0]);
    for kernel in stock.into_iter().chain([KERNELS[1]]) {
        let run = scratch.measure(&[suite, "--kernel", kernel]).remove(0);
        // It explains nothing unless every recording comes out as it was, watched.
        let id = run["id"].as_str().unwrap();
        let explained = explain(&scratch, &[id, "--worst", "200"]);
        let all = samples(&explained);
        assert_eq!(all.len(), 4 * 12 + 2 * 3 * 3);
        all.iter().for_each(check_turns);
        let turns = |sample: &&Value| number(&sample["story"]["others_ns"]) > 0;
        assert!(all.iter().filter(turns).count() > 10);
        let across = all.iter().filter(|sample| {
            let variant = sample["variant"].as_str().unwrap();
            sample["probe"] == "wake" && !variant.contains("cpu0 to cpu0")
        });
        let across: Vec<&Value> = across.collect();
        assert_eq!(across.len(), 2 * 2 * 3);
        across.into_iter().for_each(check_across);
    }
}

/// The work that CPU 0 does for 400 µs again and again, the work of CPU 1 that has to wait for it,
/// and the place of the wait: for a lock, for its owner, or for an answer to an interrupt.
const WAITS: [(&str, &str, &[&str]); 3] = [
    (
        "raw-spinlock",
        "echo raw-spinlock 0 >&3",
        &["native_queued_spin_lock_slowpath"],
    ),
    (
        "mutex",
        "echo mutex 0 >&3",
        &["mutex_spin_on_owner", "rt_mutex_slowlock_block"],
    ),
    (
        "irqs-off",
        "echo 1 >/proc/sys/kernel/sched_schedstats; echo 0 >/proc/sys/kernel/sched_schedstats",
        &["smp_call_function_many_cond"],
    ),
];

/// A suite with one step for each wait.
fn waits() -> String {
    let mut text = "name = \"waits\"\nsummary = \"\"\ncpus = 2\nmodules = [\"backfire\", \"pulse\", \"stall\"]\n".to_owned();
    for (number, (kind, wants, _)) in WAITS.iter().enumerate() {
        write!(
            text,
            "[load.wait{number}]\nsummary = \"\"\n\
             [[load.wait{number}.worker]]\ncpus = \"0\"\nunit = \"stalls\"\n\
             count = \"lines\"\nendless = true\n\
             run = [\"sh\", \"-c\", 'exec 3<>/dev/stall; while :; do echo {kind} 400 >&3; \
             echo; usleep 150; done']\n\
             [[load.wait{number}.worker]]\ncpus = \"1\"\nunit = \"waits\"\n\
             count = \"lines\"\nendless = true\n\
             run = [\"sh\", \"-c\", 'exec 3<>/dev/stall; while :; do {wants}; echo; done']\n\
             [[step]]\nprobe = \"timer\"\nload = \"wait{number}\"\nsamples = 10\n"
        )
        .unwrap();
    }
    text
}

/// The survey finds each wait on the CPU that waits, with the length that the other one causes, and
/// none on the other one.
#[test]
fn what_holds_up_another_cpu_is_found_where_it_is_waited_for() {
    if !punctual_skip::long("PUNCTUAL_LONG") || !has_fair_qemu() || !punctual_skip::root() {
        return;
    }
    let scratch = Scratch::new();
    let suite = &scratch.file("waits.toml", waits());
    for kernel in KERNELS {
        let run = scratch.measure(&[suite, "--kernel", kernel]).remove(0);
        assert_eq!(run["unsupported"], Value::Array(Vec::new()), "{kernel}");
        let id = run["id"].as_str().unwrap();
        let ended = scratch.run(&["survey", id, "--quiet", "--json"]);
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        let survey: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(survey["digest_watched"], run["digest"]);
        assert_eq!(survey["cpus_unknown"].as_array().unwrap().len(), 0);
        let places = survey["places"].as_array().unwrap();
        let longest = |what: &str, functions: &[&str], cpu: i64| {
            let ours = places.iter().filter(|place| {
                let at = place["function"].as_str().unwrap();
                let is_at = functions.iter().any(|function| at.starts_with(function));
                place["what"] == what && place["cpu"] == cpu && is_at
            });
            ours.max_by_key(|place| number(&place["longest_ns"]))
        };
        let length = |place: Option<&Value>| place.map_or(0, |one| number(&one["longest_ns"]));
        let spinning = "spinning for another CPU";
        for (kind, _, functions) in WAITS {
            let spun = longest(spinning, functions, 1);
            let spun_for = length(spun);
            assert!(
                (100_000..403_000).contains(&spun_for),
                "{kernel}, {kind}: {spun:#?}\n{places:#?}"
            );
            assert_eq!(spun.unwrap()["for_cpu"], 0, "{spun:#?}");
            // CPU 1 holds up nobody for long.
            let other = length(longest(spinning, functions, 0));
            assert!(other < 50_000, "{kernel}, {kind}: {other}");
        }
        // Who wants the lock has preemption off meanwhile; who holds it, for as long as told.
        let spun_for = length(longest(spinning, WAITS[0].2, 1));
        let wanted = length(longest("preemption off", &["stall_raw_spinlock"], 1));
        assert!(wanted > spun_for, "{kernel}: {wanted} {spun_for}");
        let held = length(longest("preemption off", &["stall_raw_spinlock"], 0));
        assert!((200_000..403_000).contains(&held), "{kernel}: {held}");
    }
}
