// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every arrival: a stall of known length is foretold, reached, and named; without it nothing is.

use punctual_tests::explained::number;
use punctual_tests::{KERNELS, Scratch, assert_ends, json as json_of, schema};
use serde_json::{Value, json};

/// How long interrupts are off, each 20 ms, in µs; the second load burns nothing.
const BURNT_US: i64 = 20;

fn load(name: &str, order: &str) -> String {
    format!(
        "[load.{name}]\nsummary = \"{order}\"\n[[load.{name}.worker]]\nendless = true\n\
         unit = \"lines\"\ncount = \"lines\"\nrun = [\"sh\", \"-c\", \"exec 3>/dev/stall; \
         echo {order} >&3; while :; do echo; done\"]\n"
    )
}

fn place<'a>(step: &'a Value, function: &str) -> Option<&'a Value> {
    let mut places = step["places"].as_array().unwrap().iter();
    places.find(|place| place["most_in"] == function)
}

#[test]
fn what_holds_the_cpu_is_foretold_and_reached_and_nothing_is_where_nothing_does() {
    let scratch = Scratch::new();
    let step =
        |load: &str| format!("[[step]]\nprobe = \"timer\"\nload = \"{load}\"\nsamples = 60\n");
    let loads = load("burn", &format!("irqs-off {BURNT_US} every=20011")) + &load("spare", "stop");
    let steps = step("burn") + &step("spare");
    let suite = &scratch.suite(
        "mine",
        &["rt"],
        &format!("modules = [\"stall\"]\n{loads}{steps}"),
    );
    let run = scratch.measure(&[suite]).remove(0);
    let id = run["id"].as_str().unwrap();
    let ended = scratch.run(&["arrivals", id, "--aim", "1", "--quiet", "--json"]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    schema::check("arrivals", &told).unwrap();
    assert_eq!(told["digest"], told["digest_watched"]);
    let [burn, spare] = &told["steps"].as_array().unwrap()[..] else {
        panic!("{told:#}");
    };
    let stall = place(burn, "stall_irqs_off [stall]")
        .or_else(|| place(burn, "ktime_get"))
        .unwrap_or_else(|| panic!("{burn:#}"));
    let burnt = BURNT_US * 1_000;
    assert!(
        (burnt..burnt + 15_000).contains(&number(&stall["foretold_ns"])),
        "{stall:#}"
    );
    // The path behind it is 5.3 µs: the thread that is switched away from is bound to its CPU, which
    // alone takes 1.2 µs. The stall's interrupt serves the sample as well, which saves 0.7 µs.
    // Without either the forecast is not as near.
    let difference = number(&stall["difference_ns"]);
    assert!((-200..=200).contains(&difference), "{stall:#}");
    // The aimed sample meets it at its begin, which no sample of the run did.
    let reached = number(&burn["reached_ns"]);
    assert!((burnt..burnt + 15_000).contains(&reached), "{burn:#}");
    assert!(reached >= number(&burn["sampled_ns"]), "{burn:#}");
    let cause = stall["cause"].as_str().unwrap_or_default();
    assert!(
        cause.contains("stall_irqs_off") || cause.contains("interrupt"),
        "{stall:#}"
    );
    assert!(number(&spare["worst_ns"]) < burnt, "{spare:#}");
    assert!(number(&spare["reached_ns"]) < burnt, "{spare:#}");
    for step in [burn, spare] {
        assert_eq!(step["periods_left_out"], 0, "{step:#}");
        let quantiles = step["quantiles"].as_array().unwrap();
        let late: Vec<i64> = quantiles
            .iter()
            .map(|one| number(&one["late_ns"]))
            .collect();
        assert!(
            late.is_sorted() && late[6] <= number(&step["worst_ns"]),
            "{step:#}"
        );
        // The samples of the run are some of all arrivals.
        assert!(
            number(&step["sampled_ns"]) <= number(&step["worst_ns"]) + 1_000,
            "{step:#}"
        );
    }
    // What was told is kept: it is read, not watched, and a part of it answers for itself.
    let kept = scratch.run(&["arrivals", id, "--aim", "1", "--json"]);
    assert_eq!((&kept.stdout, &*kept.stderr), (&ended.stdout, ""));
    let part = scratch.run(&["arrivals", id, "--load", "burn", "--json"]);
    let part: Value = serde_json::from_str(&part.stdout).unwrap();
    assert_eq!(part["steps"], json!([burn]));
    // Nothing of an aimed sample is in the run, and the worst are listed beside it.
    let shown = scratch.run(&["show", id, "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    schema::check("run", &shown).unwrap();
    let shown = &shown["runs"][0];
    assert_eq!(shown["digest"], told["digest"]);
    assert_eq!(shown["recordings"][0]["max"], burn["sampled_ns"]);
    let figures = shown["arrivals"].as_array().unwrap();
    assert_eq!(figures.len(), 2);
    assert_eq!(figures[0]["reached_ns"], burn["reached_ns"]);
    assert_eq!(figures[1]["worst_ns"], spare["worst_ns"]);
}

#[test]
fn commands_that_measure_many_look_at_every_arrival() {
    let scratch = Scratch::new();
    let suite = scratch.suite(
        "short",
        &["rt"],
        "[[step]]\nprobe = \"timer\"\nload = \"stress\"\nsamples = 60\n",
    );
    let limit = "[[limit]]\nprobe = \"timer\"\nwhat = \"arrival\"\nat_most = \"40 us\"\n";
    let limits = scratch.file("limits.toml", limit);
    let words = ["judge", &suite, "--limits", &limits, "--quiet", "--json"];
    let judged = scratch.run(&[&words[..], &["--arrivals", "--budget", "1h"]].concat());
    assert_ends(&judged, 0, &[]);
    let verdict = &json_of(&judged)["answers"][0];
    assert_eq!(verdict["verdict"], "fit", "{verdict:#}");
    let options = "boot = \"trace_event=sched\"\n[[option]]\nname = \"planted\"\n\
                   without = \"trace_event=sched\"\n";
    let options = scratch.file("options.toml", options);
    let words = [
        "ablate",
        "--kernel",
        KERNELS[1],
        "--suite",
        &suite,
        "--options",
        &options,
    ];
    let more = [
        "--arrivals",
        "--seeds",
        "1..2",
        "--explain",
        "0",
        "--quiet",
        "--json",
    ];
    let ablated = scratch.run(&[&words[..], &more].concat());
    assert_ends(&ablated, 0, &[]);
    let ablated = json_of(&ablated);
    let figures = ablated["options"][0]["figures"].as_array().unwrap();
    let arrival = figures.iter().find(|one| one["figure"] == "arrival");
    let arrival = arrival.unwrap_or_else(|| panic!("{figures:#?}"));
    assert!(
        number(&arrival["with_ns"]) < number(&arrival["base_ns"]),
        "{arrival:#}"
    );
}
