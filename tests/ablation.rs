// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ablation finds which of several options matters: a planted one is ranked first.

use std::fs;

use punctual_tests::{KERNELS, Scratch, assert_ends, assert_has, json, schema};
use serde_json::Value;

/// The base records what its scheduler does; the planted option is to go without.
const OPTIONS: &str = "\
boot = \"trace_event=sched\"
[[option]]
name = \"no audit\"
boot = \"audit=0\"
[[option]]
name = \"planted\"
without = \"trace_event=sched\"
advice = { source = \"a test\", says = \"do not trace\", probe = \"timer\" }
[[option]]
name = \"no such argument\"
boot = \"punctual_nonsense=1\"
advice = { source = \"a test\", says = \"a word helps\" }
[[option]]
name = \"cannot be seen\"
untold = \"virtual time has no frequency\"
";

#[test]
fn a_planted_option_is_ranked_first_and_explained() {
    let scratch = Scratch::new();
    let suite = scratch.suite(
        "short",
        &["rt"],
        "[[step]]\nprobe = \"timer\"\nsamples = 60\n",
    );
    let options = scratch.file("options.toml", OPTIONS);
    let page = scratch.path("options.html");
    let words = [
        "ablate", "--kernel", KERNELS[1], "--suite", &suite, "--quiet",
    ];
    let ablate = |options: &str, more: &[&str]| {
        scratch.run(&[&words[..], &["--options", options], more].concat())
    };
    let page_path = page.to_str().expect("a path of text");
    let report = ["--json", "--explain", "1", "--report", page_path];
    let ended = ablate(&options, &report);
    assert_ends(&ended, 0, &[]);
    let found = json(&ended);
    assert_eq!(found["schema"], "punctual.ablation/1");
    let tried = found["options"].as_array().expect("options");
    let first = &tried[0];
    assert_eq!(first["names"], serde_json::json!(["planted"]));
    assert_eq!(first["outcome"], "holds");
    let figures = first["figures"].as_array().expect("figures");
    let median = figures
        .iter()
        .find(|one| one["figure"] == "median")
        .expect("the median");
    assert_eq!(median["verdict"]["verdict"], "lower");
    assert!(
        median["with_ns"].as_i64() < median["base_ns"].as_i64(),
        "{median}"
    );
    // What is gone is named, on the base's side only.
    let gone = "trace_event_raw_event_sched";
    assert_has(&first["why"]["base"].to_string(), &[gone]);
    assert!(!first["why"]["with"].to_string().contains(gone));
    for other in &tried[1..] {
        assert_eq!(other["why"], Value::Null, "{other}");
    }
    let nonsense = |one: &&Value| one["names"][0] == "no such argument";
    let nonsense = tried.iter().find(nonsense).expect("it was tried");
    assert_eq!(
        nonsense["unknown"],
        serde_json::json!(["punctual_nonsense=1"])
    );
    assert_eq!(nonsense["outcome"], "undecided");
    assert_eq!(found["not_tried"][0]["name"], "cannot be seen");
    let page = fs::read_to_string(page).expect("the page");
    assert_has(
        &page,
        &["Option by option", "ring_buffer_", "do not trace (a test)"],
    );

    // The same as text, from the store; besides one that cannot be measured.
    let gone = "[[option]]\nname = \"gone\"\nkernel = \"debian-6.12-rt@6.12.1\"\n";
    let more = scratch.file("more.toml", format!("{OPTIONS}{gone}"));
    let count = || {
        let runs = json(&scratch.run(&["runs", "--json"]));
        runs["runs"].as_array().expect("runs").len()
    };
    let before = count();
    let told = [
        "1. planted (without boot arguments) buys ",
        "do not trace (a test): holds",
        "Not measured; ",
        ": gone (debian-6.12-rt@6.12.1)",
        "expected that version",
        "its kernel does not know the boot argument punctual_nonsense=1",
        "cannot be seen: virtual time has no frequency",
    ];
    let few = "with 5 seeds a change may stay undecided: 6 are needed for so many options and 2 \
               figures";
    let named = ["--explain", "0", "--seeds", "1..5"];
    assert_ends(&ablate(&more, &named), 3, &[&told[..], &[few]].concat());
    assert_eq!(count(), before, "nothing is measured again");
    // Where no seeds are named, as many are measured as the figures take.
    assert_ends(&ablate(&more, &["--explain", "0"]), 3, &told);
    assert_eq!(
        count(),
        before + 4,
        "a sixth seed of the base and of each option"
    );

    let gone = "[[option]]\nname = \"a\"\nwithout = \"quiet\"\n";
    let preempt = "[[option]]\nname = \"a\"\nboot = \"preempt=ful\"\n";
    for (options, expected) in [
        (
            scratch.file("gone.toml", gone),
            "expected the base to have the boot argument quiet",
        ),
        (scratch.file("preempt.toml", preempt), "did you mean full?"),
        (
            scratch.file("none.toml", "boot = \"a\"\n"),
            "expected an [[option]]",
        ),
        ("advise".to_owned(), "did you mean advice?"),
    ] {
        assert_ends(&ablate(&options, &[]), 2, &[expected]);
    }
    let no_kernel = scratch.run(&["ablate", "--options", &more]);
    assert_ends(&no_kernel, 2, &["expected one --kernel"]);
}

/// Set-up by `sh` in the guest: the kernel's tracer makes each wake-up longer, a command without
/// effect does not, and one that fails is not taken for an option without effect.
#[test]
fn what_is_set_up_in_the_guest_is_an_option() {
    let scratch = Scratch::new();
    let suite = scratch.suite(
        "short",
        &["rt"],
        "[[step]]\nprobe = \"timer\"\nsamples = 60\n",
    );
    let tracing = "/sys/kernel/tracing";
    let option =
        |name: &str, setup: &str| format!("[[option]]\nname = \"{name}\"\nsetup = \"{setup}\"\n");
    // What it prints is no sign that it has ended.
    let late = format!(
        "echo x\\nsleep 0.3\\nmount -t tracefs none {tracing}\\n\
         echo 1 > {tracing}/events/sched/enable"
    );
    let options = [
        option("nothing", "true"),
        // Idle steps have a load now, and the advice is still about them.
        option("tracing", &late) + "advice = { source = \"\", says = \"\", load = \"idle\" }\n",
        option("no such file", "echo 1 > /proc/sys/no-such-file\\ntrue"),
        option("fails late", "echo x; false"),
    ];
    let options = options.concat();
    let options = scratch.file("options.toml", options);
    let words = [
        "ablate", "--kernel", KERNELS[1], "--suite", &suite, "--quiet",
    ];
    let page = scratch.path("page.html");
    let page = page.to_str().unwrap();
    let more = [
        "--options",
        &options,
        "--json",
        "--no-explain",
        "--report",
        page,
    ];
    let ended = scratch.run(&[&words[..], &more].concat());
    assert_ends(&ended, 3, &[]);
    let page = fs::read_to_string(page).unwrap();
    assert_has(&page, &["punctual ablate --kernel BASE --suite "]);
    assert!(!page.contains("punctual run "), "{page}");
    let found = json(&ended);
    schema::check("ablation", &found).unwrap();
    let tried = found["options"].as_array().expect("options").iter();
    let of = |name: &str| {
        let mut tried = tried.clone();
        tried.find(|one| one["names"][0] == name).expect("a trial")
    };
    let median = |name: &str| {
        let mut figures = of(name)["figures"].as_array().expect("figures").iter();
        let median = figures.find(|one| one["figure"] == "median");
        median.unwrap_or_else(|| panic!("{found:#}")).clone()
    };
    assert_eq!(median("tracing")["verdict"]["verdict"], "higher");
    assert_eq!(
        of("tracing")["outcome"],
        "does not hold: the opposite is so"
    );
    let nothing = &median("nothing")["verdict"]["verdict"];
    assert!(nothing != "higher" && nothing != "lower", "{found:#}");
    assert_eq!(median("nothing")["load"], "setup");
    for failed in ["no such file", "fails late"] {
        let gap = of(failed)["gap"].as_str().expect("why");
        assert_has(gap, &["could not be measured", "its setup cannot run"]);
    }
}
