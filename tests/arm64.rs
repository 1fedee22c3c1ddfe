// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests with an arm64 kernel: as repeatable as those for x86-64, and clear about what they lack.
//!
//! `PUNCTUAL_REPEATS` is the number of times that each is measured again under load, from its
//! snapshot.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use punctual_tests::explained::{self, check_sum, explain, samples};
use punctual_tests::{
    EVERY_PROBE, HostLoad, Scratch, assert_has, digests, json as json_of, number, programs, runs,
};
use serde_json::{Value, json};

use super::arrivals::{self, BURNT_US};
use super::{many_cpus, noise, scope, scope_cpus, search};

const KERNELS: [&str; 2] = ["debian-6.12-arm64", "debian-6.12-rt-arm64"];

/// All guests here have these modules. A guest of its own would cost a test as much again.
const MODULES: &str = "modules = [\"backfire\", \"pulse\", \"stall\"]\n";

const SUITE: &str = r#"
name = "small"
summary = "idle, loaded, throughput"
modules = ["backfire", "pulse", "stall"]
[[step]]
probe = "timer"
samples = 500
[[step]]
probe = "timer"
load = "stress"
samples = 50
[[step]]
probe = "hackbench"
ipc = "pipe"
groups = 1
loops = 20
"#;

/// Returns true if there are QEMU and a target for arm64; if not, skips the test.
fn is_ready() -> bool {
    let built = programs().join("punctual-target-aarch64").is_file();
    if !built {
        punctual_skip::skip("no target for arm64 is built: ./build --targets aarch64");
    }
    built && punctual_skip::program("qemu-system-aarch64")
}

/// Returns true if there is a QEMU for guests with several CPUs; if not, skips the test. The
/// first call boots the guest that these tests resume.
fn is_fair() -> bool {
    static IS_FAIR: LazyLock<bool> = LazyLock::new(|| {
        let scratch = Scratch::new();
        let step = "[[step]]\nprobe = \"timer\"\nsamples = 1\n";
        let suite = &scratch.suite("fair", &[], &format!("{MODULES}{step}"));
        let guest = ["--cpus", "2", "--kernel", KERNELS[1]];
        let ended = scratch.run(&[&["run", "--quiet", suite], &guest[..]].concat());
        let is_unfair = ended.stderr.contains("expected QEMU 8.1");
        assert!(is_unfair || ended.status == Some(0), "{}", ended.stderr);
        !is_unfair
    });
    if !*IS_FAIR {
        punctual_skip::skip("no QEMU from 8.1 on");
    }
    *IS_FAIR
}

/// Measures [`SUITE`] on these kernels.
fn small(scratch: &Scratch, kernels: &[&str], more: &[&str]) -> Vec<Value> {
    let suite = scratch.file("small.toml", SUITE);
    let kernels = kernels.iter().flat_map(|kernel| ["--kernel", kernel]);
    let words: Vec<&str> = [suite.as_str()].into_iter().chain(kernels).collect();
    scratch.measure(&[&words, more].concat())
}

/// The runs of [`SUITE`] with which several tests begin, and the store that has them.
static SMALL: LazyLock<(Vec<Value>, Vec<u8>)> = LazyLock::new(|| {
    let scratch = Scratch::new();
    let runs = small(&scratch, &KERNELS, &[]);
    (runs, scratch.all_runs())
});

#[test]
fn the_host_has_no_influence_on_an_arm64_guest_either() {
    if !is_ready() {
        return;
    }
    let scratch = Scratch::new();
    let (runs, _) = &*SMALL;
    for run in runs {
        let machine = &run["machine"];
        assert_has(
            machine["qemu_command"].as_str().unwrap(),
            &["qemu-system-aarch64", "virt-7.2", "cntfrq=1000000000"],
        );
    }
    let expected = digests(runs);
    assert_ne!(expected[0].1, expected[1].1);
    if punctual_skip::long("PUNCTUAL_LONG") {
        let one_at_a_time = digests(&small(&scratch, &KERNELS, &["--jobs", "1"]));
        assert_eq!(one_at_a_time, expected, "one at a time");
    }
    let other_seed = digests(&small(&scratch, &KERNELS[1..], &["--seeds", "2"]));
    assert_ne!(other_seed[0].1, expected[1].1);
    let _load = HostLoad::new();
    for repeat in 0..number("PUNCTUAL_REPEATS", 0) {
        let again = digests(&small(&scratch, &KERNELS, &[]));
        assert_eq!(again, expected, "{repeat}, under load");
    }
    let cold = digests(&small(&scratch, &KERNELS[1..], &["--cold"]));
    assert_eq!(cold, expected[1..], "cold, under load");
}

/// Two CPUs are as repeatable as one: resumed, and cold beside other work on one CPU of the host.
/// The scope tells each CPU's own path from the turns of the other, in the very same run.
#[test]
fn two_arm64_cpus_are_repeatable_and_explained() {
    if !is_ready() || !is_fair() {
        return;
    }
    let scratch = Scratch::new();
    let suite = &scratch.file("many.toml", format!("{MODULES}{}", many_cpus::SUITE));
    let words = [suite.as_str(), "--cpus", "2", "--kernel", KERNELS[1]];
    let runs = scratch.measure(&words);
    many_cpus::every_cpu_is_measured_and_wakes_every_other(&runs[0]);
    let expected = digests(&runs);
    let load = HostLoad::new();
    let cold =
        many_cpus::on_one_cpu(|| digests(&scratch.measure(&[&words[..], &["--cold"]].concat())));
    assert_eq!(cold, expected, "without snapshot, on a busy CPU");
    for repeat in 0..number("PUNCTUAL_REPEATS", 0) {
        assert_eq!(digests(&scratch.measure(&words)), expected, "{repeat}");
    }
    drop(load);
    let id = runs[0]["id"].as_str().unwrap();
    let told = explain(&scratch, &[id, "--probe", "timer", "--worst", "20"]);
    assert_eq!(samples(&told).len(), 20);
    samples(&told).iter().for_each(scope_cpus::check_turns);
    let ended = scratch.run(&["bound", id]);
    assert_eq!(ended.status, Some(1), "{}", ended.stderr);
    assert_has(&ended.stderr, &["2 CPUs"]);
}

#[test]
fn every_probe_is_measured_or_says_why_not() {
    if !is_ready() {
        return;
    }
    let scratch = Scratch::new();
    // The image is one that `convert` makes, which is a program of this machine.
    let suite = &scratch.suite("every", &[], &format!("{MODULES}{EVERY_PROBE}"));
    let ended = scratch.run(&["run", "--quiet", "--json", suite, "--kernel", KERNELS[1]]);
    // Not all of it could be measured.
    assert_eq!(ended.status, Some(3), "{}", ended.stderr);
    let run = &runs(&ended.stdout)[0];
    assert_eq!(run["state"], "finished", "{}", run["error"]);
    let provenance = &run["provenance"];
    assert_eq!(provenance["preemption"], "rt");
    assert_has(
        provenance["release"].as_str().unwrap(),
        &["6.12.", "-rt-arm64"],
    );
    let probes = |list: &Value| -> BTreeSet<String> {
        let all = list.as_array().unwrap().iter();
        all.map(|one| one["probe"].as_str().unwrap().to_owned())
            .collect()
    };
    let unsupported = &run["unsupported"];
    let lacking = ["image", "irq", "irqrate"].map(str::to_owned);
    let mut found = probes(unsupported);
    // A tick may fall between the probe's begin and its reading of the kernel's counter.
    if found.remove("tick") {
        assert_has(
            &unsupported.to_string(),
            &["the kernel's counter does not agree: 51 ticks found, 50"],
        );
    }
    assert_eq!(found, BTreeSet::from(lacking), "{unsupported}");
    assert_has(&unsupported.to_string(), &["no comparator of /dev/hpet"]);
    let listed = scratch.run(&["list", "probes", "--json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let measured = probes(&run["recordings"]);
    for probe in listed["probes"].as_array().unwrap() {
        let name = probe["name"].as_str().unwrap();
        let told = measured.contains(name) || probes(unsupported).contains(name);
        let elsewhere = ["app", "packet", "program"].contains(&name);
        assert!(told || elsewhere, "{name}");
    }
    let recordings = run["recordings"].as_array().unwrap();
    let of = |probe: &str, variant: &str| {
        let is_it = |one: &&Value| one["probe"] == probe && one["variant"] == variant;
        recordings.iter().find(is_it).unwrap()
    };
    // A thousand instructions are 1,000 ns, to the last one.
    let least = |variant: &str| of("clock", variant)["min"].as_i64().unwrap();
    assert_eq!(least("stamp, 1000 instructions") - least("stamp"), 1_000);
    // On RT each interrupt that can have a thread has one.
    let threaded = &of("kthreads", "")["findings"]["interrupts_threaded"];
    assert_eq!(threaded["answer"]["yes"], true, "{threaded}");
    // What the kernel does not tell apart is unknown.
    let footprint = &of("footprint", "")["findings"];
    assert!(
        !footprint["kernel_bss_bytes"]["absent"].is_null(),
        "{footprint}"
    );
}

/// The parts of each sample add up to it, a late one has a culprit, and the watched run is the same
/// run. Nothing in the recorded path had to be repaired.
#[test]
fn the_worst_samples_of_arm64_are_explained_to_the_nanosecond() {
    if !is_ready() {
        return;
    }
    let scratch = Scratch::new();
    let (known, all_runs) = &*SMALL;
    scratch.begin_with(all_runs);
    let (mut runs, mut others) = (known.clone(), vec!["debian-6.1-rt-arm64"]);
    if punctual_skip::long("PUNCTUAL_LONG") {
        others.extend(["debian-7.2-arm64", "debian-7.2-rt-arm64"]);
        others.push("debian-6.1-arm64");
    } else {
        // RT of 6.1 stands for that of 6.12, whose masks are those of the stock kernel.
        runs.truncate(1);
    }
    runs.extend(small(&scratch, &others, &[]));
    for (run, (kernel, digest)) in runs.iter().zip(digests(&runs)) {
        let id = run["id"].as_str().unwrap();
        let told = explain(&scratch, &[id, "--probe", "timer", "--worst", "60"]);
        assert_eq!(samples(&told).len(), 60);
        for sample in samples(&told) {
            check_sum(sample);
            let story = &sample["story"];
            let mended = story["notes"].to_string().contains("mended");
            assert!(!mended, "{sample:#}");
            let late = story["culprit"].is_u64() || sample["late_ns"].as_i64() < Some(WAY_NS);
            assert!(late, "late, and nothing stood in the way: {sample:#}");
        }
        let ended = scratch.run(&["survey", id, "--quiet", "--json"]);
        assert_eq!(ended.status, Some(0), "{kernel}: {}", ended.stderr);
        let survey: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(survey["digest_watched"], digest, "{kernel}");
        assert_eq!(survey["mended"], 0, "{kernel}");
        // Where a mask that was set already is taken for one that was only looked at, an interrupt
        // seems to open the others after 0.6 to 0.9 µs: nothing that runs then contradicts it.
        let mut places = survey["places"].as_array().unwrap().iter();
        let interrupt = places.find(|it| it["what"] == "interrupts off" && it["function"] == IRQ);
        let longest = explained::number(&interrupt.expect("an interrupt")["longest_ns"]);
        assert!(longest > 1_800, "{kernel}: {longest}");
    }
}

/// Longer than any way by itself. From the interrupt to the reading of the clock it takes 4 to 9
/// µs, and up to 21 µs if the probe's thread waits for a lock on the way, as each system call of RT
/// may do for random numbers.
const WAY_NS: i64 = 21_000;

/// The entry of interrupts that find the CPU idle.
const IRQ: &str = "el1h_64_irq";

/// Known answers: the stalls of `scope.rs`, each of its kind and its length. Debian's stock kernel
/// for arm64 counts neither preemption nor spinning locks (no `CONFIG_PREEMPT_COUNT`): a thread
/// that holds the CPU in one is not preempted, as anywhere in that kernel.
#[test]
fn a_stall_on_arm64_is_named_with_its_kind_and_its_length() {
    if !is_ready() {
        return;
    }
    // Before Linux 6.3 a mask that is set is saved without being set again.
    let mut kernels = vec![
        (KERNELS[0], "", Counts::Nothing),
        (KERNELS[1], "", Counts::Rt),
        ("debian-6.1-rt-arm64", "", Counts::Rt),
    ];
    if punctual_skip::long("PUNCTUAL_LONG") {
        kernels.push(("debian-6.1-arm64", "", Counts::Nothing));
    }
    stalls_are_named(&Scratch::new(), &kernels);
}

/// The states that a kernel counts, and so has names for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Counts {
    /// Neither preemption nor spinning locks.
    Nothing,
    /// Both.
    Full,
    /// Both, and locks sleep.
    Rt,
}

/// Checks that each kind of stall is reported with its name and its length, on each of these
/// kernels, with these boot arguments.
pub(super) fn stalls_are_named(scratch: &Scratch, kernels: &[(&str, &str, Counts)]) {
    let subject = |(number, (kernel, boot, _)): (usize, &(&str, &str, Counts))| {
        format!("[[subject]]\nname = \"{number}\"\nkernel = \"{kernel}\"\nboot = \"{boot}\"\n")
    };
    let subjects: String = kernels.iter().enumerate().map(subject).collect();
    let suite = format!(
        "name = \"stalls\"\nsummary = \"known\"\n{MODULES}{}{subjects}",
        scope::every_stall()
    );
    let suite = &scratch.file("known.toml", suite);
    let runs = scratch.measure(&[suite, "--jobs", "1"]);
    for (run, (.., counts)) in runs.iter().zip(kernels) {
        let is_counted = |kind: &scope::Kind| match counts {
            Counts::Nothing => ["irqs-off", "softirq"].contains(&kind.name),
            Counts::Full => true,
            // On RT the holder of a spin lock, which sleeps there, can be preempted.
            Counts::Rt => kind.name != "spinlock",
        };
        let hold = |kind: &scope::Kind| match counts {
            Counts::Rt => kind.rt,
            _ if is_counted(kind) => kind.stock,
            _ => Some("no preemption point"),
        };
        scope::check_stories(scratch, run, &hold);
        let surveyed = scope::Surveyed {
            irq_work: IRQ,
            way_ns: 1_500,
            is_there: &is_counted,
        };
        scope::check_survey(scratch, run, &surveyed);
    }
}

/// Known answer: interrupts or preemption are off for 20 µs, every 20 ms. No sample of the run
/// meets that; an aimed one does. The bound of RT has it among its delays and interrupts.
#[test]
fn what_holds_an_arm64_cpu_is_foretold_reached_and_bounded() {
    if !is_ready() {
        return;
    }
    let scratch = Scratch::new();
    // Nothing holds the CPU beside the last one, however many samples it has.
    let suite = &scratch.file("known.toml", holding(&[BURN, HOLD, ("spare", None, 30)]));
    let kernels = KERNELS.iter().flat_map(|kernel| ["--kernel", kernel]);
    let words: Vec<&str> = [suite.as_str()].into_iter().chain(kernels).collect();
    for (run, kernel) in scratch.measure(&words).iter().zip(KERNELS) {
        let is_rt = kernel == KERNELS[1];
        let id = run["id"].as_str().unwrap();
        let told = as_json(&scratch, &["arrivals", id, "--aim", "1"]);
        assert_eq!(told["digest"], told["digest_watched"]);
        let [burn, hold, spare] = &told["steps"].as_array().unwrap()[..] else {
            panic!("{told:#}");
        };
        let off = if is_rt {
            "preemption off"
        } else {
            "no preemption point"
        };
        for (step, what) in [(burn, "interrupts off"), (hold, off)] {
            let stall = arrivals::place(step, "ktime_get");
            let stall = stall.unwrap_or_else(|| panic!("{step:#}"));
            assert_eq!(stall["what"], what, "{step:#}");
            assert!(is_as_long(&stall["foretold_ns"]), "{step:#}");
            assert!(is_as_long(&step["reached_ns"]), "{step:#}");
            // Earlier by an interrupt of the sample's own: it may serve another timer, too, and
            // what holds the CPU until the clock says so ends no later for it. Later by what runs
            // on the thread's own way back, which no forecast counts.
            let difference = explained::number(&stall["difference_ns"]);
            assert!((-3_000..=3_000).contains(&difference), "{step:#}");
            assert!(
                explained::number(&step["sampled_ns"]) < BURNT_NS,
                "{step:#}"
            );
            let cause = stall["cause"].as_str().unwrap_or_default();
            assert_has(cause, &["stall_"]);
        }
        for name in ["worst_ns", "reached_ns"] {
            assert!(explained::number(&spare[name]) < BURNT_NS, "{spare:#}");
        }
        if !is_rt {
            continue;
        }
        let bound = bound_with_burn(&scratch, id);
        let mut delays = bound["delays"].as_array().unwrap().iter();
        let off = delays.find(|one| one["delay"] == "D_POID").expect("one");
        assert!(is_as_long(&off["longest_ns"]), "{bound:#}");
        let began = off["path"].as_array().unwrap().last().unwrap();
        assert_eq!(began, "stall_preempt_off [stall]", "{bound:#}");
        let mut bounds = bound["bounds"].as_array().unwrap().iter();
        let window = bounds.find(|one| one["interference"] == "sliding window with oWCET");
        let reached = [burn, hold, spare].map(|step| explained::number(&step["reached_ns"]));
        let latest = reached.into_iter().max().unwrap();
        assert!(
            explained::number(&window.expect("one")["sampled_ns"]) >= latest,
            "{bound:#}"
        );
    }
    // The stock kernel has no bound, whatever runs: its shortest run shows that.
    let suite = &scratch.file("brief.toml", holding(&[(BURN.0, BURN.1, 30)]));
    let run = &scratch.measure(&[suite, "--kernel", KERNELS[0]])[0];
    let bound = bound_with_burn(&scratch, run["id"].as_str().unwrap());
    assert_has(bound["no_bound"].as_str().unwrap(), &["not PREEMPT_RT"]);
}

/// The time for which the CPU is held.
const BURNT_NS: i64 = BURNT_US * 1_000;

/// A load that holds the CPU: its name, what it has off, if anything, and the number of samples
/// beside it.
type Load = (&'static str, Option<&'static str>, u32);

const BURN: Load = ("burn", Some("irqs-off"), 60);
const HOLD: Load = ("hold", Some("preempt-off"), 60);

/// A suite with a step beside each of these loads.
fn holding(loads: &[Load]) -> String {
    let step = |(load, _, samples): &Load| {
        format!("[[step]]\nprobe = \"timer\"\nload = \"{load}\"\nsamples = {samples}\n")
    };
    let steps: String = loads.iter().map(step).collect();
    let holds = |what: &str| format!("{what} {BURNT_US} every=20023");
    let load = |(name, what, _): &Load| {
        arrivals::load(name, &what.map_or_else(|| "stop".to_owned(), holds))
    };
    let loads: String = loads.iter().map(load).collect();
    format!("name = \"known\"\nsummary = \"\"\n{MODULES}{loads}{steps}")
}

/// Returns true for the time for which the CPU is held, with the way behind it.
fn is_as_long(ns: &Value) -> bool {
    (BURNT_NS..BURNT_NS + 15_000).contains(&explained::number(ns))
}

/// The bound of a run in which interrupts are off for that long: it is among its interrupts.
fn bound_with_burn(scratch: &Scratch, run: &str) -> Value {
    let bound = as_json(scratch, &["bound", run]);
    assert_eq!(bound["mended"], 0, "{bound:#}");
    let interrupts = bound["interrupts"].as_array().unwrap().iter();
    let longest = interrupts.max_by_key(|one| explained::number(&one["longest_ns"]));
    let longest = longest.is_some_and(|one| is_as_long(&one["longest_ns"]));
    assert!(longest, "{bound:#}");
    bound
}

/// The output of a command as JSON.
fn as_json(scratch: &Scratch, words: &[&str]) -> Value {
    let ended = scratch.run(&[words, &["--quiet", "--json"]].concat());
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    json_of(&ended)
}

/// Known answer: 250 ticks a second, each by the generic timer.
#[test]
fn each_tick_of_arm64_is_told_by_audit() {
    if !is_ready() {
        return;
    }
    let scratch = Scratch::new();
    let step = "[[step]]\nprobe = \"tick\"\nduration_ms = 100\n";
    let suite = &scratch.suite("ticks", &[], &format!("{MODULES}{step}"));
    let kernels = KERNELS.iter().flat_map(|kernel| ["--kernel", kernel]);
    let words: Vec<&str> = [suite.as_str()].into_iter().chain(kernels).collect();
    for run in scratch.measure(&words) {
        let id = run["id"].as_str().unwrap();
        let ended = scratch.run(&["audit", id, "--quiet", "--json"]);
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        let audit: Value = serde_json::from_str(&ended.stdout).unwrap();
        let recordings = audit["runs"][0]["recordings"].as_array().unwrap();
        let ticks = recordings
            .iter()
            .find(|one| one["variant"] == "tick")
            .unwrap();
        assert_eq!(ticks["not_explained"], json!([]), "{ticks:#}");
        let came_in = ticks["came_in"].as_array().unwrap();
        let sum = |field: &str| -> i64 {
            let all = came_in.iter().map(|one| one[field].as_i64().unwrap());
            all.sum()
        };
        let is_tick =
            |one: &Value| one["entry"] == "el0t_64_irq" && one["did"][0] == "tick_nohz_handler";
        assert!(came_in.iter().all(is_tick), "{ticks:#}");
        assert_eq!((sum("times"), &ticks["interruptions"]), (25, &json!(25)));
        // What the timer's interrupt took is within what the program missed of its time.
        let (own, missed) = (sum("sum_ns"), ticks["sum_ns"].as_i64().unwrap());
        assert!(own < missed && own * 10 > missed * 8, "{own} of {missed}");
    }
}

/// Known answers: ticks and a stall, as on x86-64. The scope sees the stall in the longest
/// interruption. RT stands for the stock kernel, whose ticks are audited above.
#[test]
fn each_interruption_on_arm64_is_a_sample_of_noise() {
    if !is_ready() {
        return;
    }
    noise::each_tick_is_an_interruption(KERNELS[1]);
    if punctual_skip::long("PUNCTUAL_LONG") {
        noise::each_tick_is_an_interruption(KERNELS[0]);
        noise::a_stall_is_one_interruption(KERNELS[0]);
    }
    if is_fair() {
        noise::a_stall_interrupts_one_of_two_cpus(KERNELS[1]);
    }
    let scratch = Scratch::new();
    let step = format!("{MODULES}[[step]]\nprobe = \"noise\"\n{}\n", noise::STALL);
    let suite = &scratch.suite("stalled", &[], &step);
    let run = &scratch.measure(&[suite, "--kernel", KERNELS[1]])[0];
    assert_eq!(run["unsupported"], json!([]));
    let stalled = noise::check_stalled(&run["recordings"][0], KERNELS[1]);
    let told = explain(&scratch, &[run["id"].as_str().unwrap(), "--worst", "1"]);
    let sample = &samples(&told)[0];
    assert_eq!(explained::number(&sample["late_ns"]), stalled);
    check_sum(sample);
    assert_has(&sample.to_string(), &["stall_irqs_off"]);
}

/// A search for arm64: the same seed finds the same, a stretch grows with what makes it, and an
/// aimed sample proves one.
#[test]
fn a_search_on_arm64_finds_the_same_twice_and_what_grows() {
    if !is_ready() {
        return;
    }
    let scratch = Scratch::new();
    let search = |more: &[&str]| {
        let words = ["search", "--kernel", KERNELS[1], "--quiet", "--json"];
        let ended = scratch.run(&[&words[..], more].concat());
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        json_of(&ended)
    };
    let found = ["one", "other"].map(|into| {
        let into = scratch.path(into);
        let into = into.to_str().unwrap();
        // What they do does not matter: each is ended early, and so is watched for less.
        let briefly = ["--each", "2ms"];
        let few = ["--candidates", "12", "--top", "0", "--into", into];
        search(&[&briefly[..], &few].concat())
    });
    assert_eq!(found[0]["candidates"], 12);
    assert_eq!(found[0], found[1]);
    // Interrupts are off while the pages of a buffer of 1 and of 2 MiB are pinned, once they are
    // there.
    let program = |size: u32| format!("uring 1 *2; uring-buffers {size} *2");
    let (small, large) = (program(1 << 20), program(2 << 20));
    let tried = search(&["--program", &small, "--program", &large, "--confirm"]);
    let pinned = [0, 1].map(|number| search::longest(&tried["tried"][number], PINS));
    assert!(pinned[0] > 50_000, "{pinned:?}");
    let ratio = pinned[1] as f64 / pinned[0] as f64;
    assert!((1.9..2.1).contains(&ratio), "{pinned:?}");
    let aimed = &tried["tried"][1]["confirmed"];
    assert!(aimed["reached_ns"].as_i64() > Some(pinned[1]), "{aimed:#}");
    assert_has(&aimed["cause"].to_string(), &[PINS]);
}

/// The function that pins pages with interrupts off.
const PINS: &str = "gup_fast_fallback";

#[test]
fn what_is_lacking_for_arm64_is_refused_with_the_reason() {
    if !is_ready() {
        return;
    }
    let scratch = Scratch::new();
    let probe = ["--probe", "timer", "-p", "samples=20"];
    let kernel = ["--kernel", KERNELS[1]];
    let mut without = scratch.punctual(&[&["run"], &probe[..], &kernel].concat());
    let without = without.env("PUNCTUAL_TARGET_AARCH64", "/no/such/target");
    let ended = punctual_tests::Ended::of(without);
    assert_eq!(ended.status, Some(1), "{}", ended.stderr);
    assert_has(
        &ended.stderr,
        &["/no/such/target", "./build --targets aarch64"],
    );
}
