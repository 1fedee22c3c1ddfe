// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual search`: it notices growth, the same seed finds the same, and a program that ends its
//! guest costs the others nothing.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use punctual_tests::kernel::{add_kernel, module};
use punctual_tests::{Scratch, assert_has, json, schema, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const STOCK: [&str; 6] = [
    "search",
    "--quiet",
    "--json",
    "--kernel",
    "debian-6.12",
    "--boot=preempt=full",
];

/// Calls that only root may make: the kernel panics, the machine is reset, all processes end.
const CRASH: &str = "[[call]]\nname = \"open-sysrq\"\ndoes = \"\"\nsyscall = \"openat\"\n\
    args = [-100, \"'/proc/sysrq-trigger'\", 1, 0]\nmakes = [\"sysrq\"]\n\
    [[call]]\nname = \"crash\"\ndoes = \"\"\nsyscall = \"write\"\n\
    args = [\"#sysrq\", \"'c'\", 1]\n\
    [[call]]\nname = \"reset\"\ndoes = \"\"\nsyscall = \"write\"\n\
    args = [\"#sysrq\", \"'b'\", 1]\n\
    [[call]]\nname = \"kill-everybody\"\ndoes = \"\"\nsyscall = \"kill\"\nargs = [-1, 9]\n";

/// The time after which each program is ended, where it does not matter what it does: they are
/// watched for less than half of the usual price.
const BRIEFLY: &str = "2ms";

fn asked<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&STOCK[..], more].concat()
}

/// The longest stretch of a function that a program shows, in nanoseconds.
pub fn longest(tried: &Value, function: &str) -> i64 {
    let stretches = tried["stretches"].as_array().expect("stretches").iter();
    let own = stretches.filter(|stretch| stretch["function"] == function);
    let own = own.filter_map(|stretch| stretch["ns"].as_i64());
    own.max().unwrap_or(0)
}

/// Programs that lock parts of a file, and unlock one: the second has twice as many.
const LOCKS: [&str; 2] = [
    "create; lock-ranges *512; unlock-range",
    "create; lock-ranges *1024; unlock-range",
];

/// What both show.
static WALKED: LazyLock<Value> = LazyLock::new(|| {
    let both = ["--program", LOCKS[0], "--program", LOCKS[1]];
    let ended = Scratch::new().run(&asked(&both));
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    json(&ended)
});

/// The kernel walks the list of a file's locks with preemption off: a list twice as long takes
/// twice as long.
#[test]
fn a_list_twice_as_long_is_walked_twice_as_long() {
    schema::check("candidates", &WALKED).unwrap();
    let tried = &WALKED["tried"];
    let [short, long] = [0, 1].map(|number| longest(&tried[number], "posix_lock_inode"));
    assert!(short > 10_000, "{tried:#}");
    assert!(
        long * 10 >= short * 18 && long * 10 <= short * 22,
        "{short} {long}"
    );
}

/// A user without Punctual compiles the program, and it does the same.
#[test]
fn a_program_in_c_does_what_it_does_here() {
    let scratch = Scratch::new();
    let here = longest(&WALKED["tried"][1], "posix_lock_inode");
    let printed = scratch.run(&["search", "--program", LOCKS[1], "--c"]);
    assert_eq!(printed.status, Some(0), "{}", printed.stderr);
    let code = scratch.file("worst.c", &printed.stdout);
    let worst = scratch.path("worst");
    let compiled = Command::new("cc")
        .args(["-O2", "-static", "-pthread", "-Wall", "-Werror", "-o"])
        .args([worst.as_os_str(), code.as_ref()])
        .status();
    assert!(compiled.expect("cc").success(), "{}", printed.stdout);
    let load = format!(
        "summary = \"\"\nprograms = [\"{}\"]\n[[worker]]\nrun = [\"worst\"]\nunit = \"rounds\"\n\
         count = \"lines\"\n",
        worst.display()
    );
    let load = scratch.file("own.toml", load);
    // A round of the program takes 50 ms at most, and 20 ms pass before the next one: this time has
    // a whole one, and that is enough.
    let timer = [
        "run",
        "--probe",
        "timer",
        "--samples",
        "130",
        "--load",
        &load,
    ];
    let kernel = ["--kernel", "debian-6.12", "--boot=preempt=full"];
    let ended = scratch.run(&[&timer[..], &kernel].concat());
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let survey = scratch.run(&["survey", "last", "--top", "1", "--json"]);
    let told = json(&survey);
    let places = told["places"].as_array().expect("places").iter();
    let mut off = places.filter(|place| place["what"] == "preemption off");
    let off = off.next().expect("a place");
    assert_eq!(off["function"], "posix_lock_inode", "{off:#}");
    let there = off["longest_ns"].as_i64().expect("a length");
    // The list is the same; what holds the lock besides is not.
    assert!((there - here).abs() * 20 < here, "{there} {here}");
}

/// An aimed sample is as late as the list is long, and the drawn ones are not.
#[test]
fn a_stretch_is_proved_by_a_sample() {
    let scratch = Scratch::new();
    let program = "create; lock-ranges *2048; unlock-range";
    let ended = scratch.run(&asked(&["--program", program, "--confirm"]));
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let tried = &json(&ended)["tried"][0];
    let stretch = longest(tried, "posix_lock_inode");
    let told = &tried["confirmed"];
    let ns = |name: &str| told[name].as_i64().expect("nanoseconds");
    let reached = ns("reached_ns");
    // Not the same list, but one of as many locks.
    assert!(
        stretch > 200_000 && reached * 20 > stretch * 19,
        "{tried:#}"
    );
    assert!(ns("sampled_ns") < stretch / 2, "{tried:#}");
    let off = (reached - ns("foretold_ns")).abs();
    assert!(off * 50 <= reached, "{tried:#}");
    assert_eq!(told["function"], "posix_lock_inode");
    // It is a run like all others.
    let run = told["run"].as_str().expect("a run");
    let shown = scratch.run(&["show", run, "--json"]);
    let arrivals = &json(&shown)["runs"][0]["arrivals"][0];
    assert_eq!(arrivals["reached_ns"], reached, "{arrivals:#}");
}

/// The one call of `tests/quadratic`, which takes n * n turns with preemption off.
const SQUARE: &str = "[[call]]\nname = \"open-quadratic\"\ndoes = \"\"\nsyscall = \"openat\"\n\
    args = [-100, \"'/dev/quadratic'\", 2, 0]\nmakes = [\"quadratic\"]\n\
    [[call]]\nname = \"square\"\ndoes = \"\"\nsyscall = \"ioctl\"\n\
    args = [\"#quadratic\", 1, \"size\"]\nsize = [1, 1024]\ntimes = [1, 16]\n";

/// A call that grows with the square of its argument is found among others and shortened, its
/// growth is named, and a sample is as late.
#[test]
fn a_call_of_our_own_that_grows_is_found_made_short_and_proved() {
    let scratch = Scratch::with_own_kernels();
    add_kernel(&scratch, "quadratic", &module(&scratch, "quadratic", ""));
    let grammar = scratch.file("square.toml", SQUARE);
    let (into, page) = (scratch.path("found"), scratch.path("page.html"));
    fs::create_dir(&into).expect("its directory");
    for number in 1..=3 {
        // Of a search before this one.
        scratch.file(&format!("found/worst-{number:02}.toml"), "");
    }
    let words = ["search", "--quiet", "--json", "--kernel", "quadratic"];
    // As many as run in one guest. A user's own kinds come first.
    let limits = ["--candidates", "24", "--top", "1"];
    // Twice as long as the call with its largest number takes.
    let more = [
        "--each",
        "5ms",
        "--grammar",
        &grammar,
        "--confirm",
        "--into",
        into.to_str().unwrap(),
        "--report",
        page.to_str().unwrap(),
    ];
    let ended = scratch.run(&[&words[..], &limits, &more].concat());
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let told = json(&ended);
    schema::check("search", &told).unwrap();
    let find = &told["finds"][0];
    assert_eq!(find["program"], "open-quadratic; square 1024", "{find:#}");
    let stretch = &find["stretch"];
    assert_eq!(stretch["what"], "preemption off");
    assert_eq!(stretch["function"], "quadratic_turns [quadratic]");
    // Two instructions in each of 1,048,576 turns, and what comes in between.
    let ns = |value: &Value| value.as_i64().expect("nanoseconds");
    let length = ns(&stretch["ns"]);
    assert!((2_097_152..2_150_000).contains(&length), "{find:#}");
    let growth = &find["growth"][0];
    assert_eq!(growth["with"], "size of square");
    assert_eq!(growth["order"], "quadratic");
    let reached = ns(&find["confirmed"]["reached_ns"]);
    assert!((length..length + 50_000).contains(&reached), "{find:#}");
    let is_there = |number: u32| into.join(format!("worst-{number:02}.toml")).is_file();
    assert_eq!([1, 2, 3].map(is_there), [true, false, false]);
    let code = fs::read_to_string(into.join("worst-01.c")).expect("the program in C");
    let call = "syscall(SYS_ioctl, NEXT(s->quadratic, i).value, 1L, 1024L)";
    assert_has(&code, &["grows quadratically with size of square", call]);
    let page = fs::read_to_string(page).expect("the page");
    let has = [
        "grows quadratically with size of square</td>",
        "<svg ",
        "SYS_ioctl",
    ];
    assert_has(&page, &has);
}

#[test]
fn what_is_kept_gives_the_same_find() {
    let scratch = Scratch::new();
    let asked_of = |into: &str, each: &str| {
        let into = scratch.path(into);
        let more = ["--candidates", "24", "--each", each, "--top", "1", "--into"];
        scratch.run(&asked(&[&more[..], &[into.to_str().unwrap()]].concat()))
    };
    // What is told, and what is kept.
    let find = |into: &str| {
        let ended = asked_of(into, BRIEFLY);
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        let kept = fs::read_to_string(scratch.path(into).join("search.json"));
        (json(&ended), kept.expect("what is kept"))
    };
    let (one, kept) = find("one");
    assert_eq!(one["candidates"], 24);
    assert_eq!(one["finds"].as_array().unwrap().len(), 1, "{one:#}");
    // What is kept asks for the very same search, and is all of it: its find is made short anew.
    fs::create_dir(scratch.path("other")).expect("its directory");
    scratch.file("other/search.json", &kept);
    assert_eq!((one, kept), find("other"));
    let ended = asked_of("other", "20ms");
    assert_eq!(ended.status, Some(2), "{}", ended.stderr);
    assert_has(&ended.stderr, &["has another search"]);
}

/// The candidates tried before Ctrl-C are in its directory, and the same command continues: it
/// finds what an uninterrupted search with the same seed finds, however many guests that has at a
/// time.
#[test]
fn a_search_goes_on_where_it_was_ended() {
    let scratch = Scratch::new();
    let into = |name: &str| scratch.path(name).to_str().unwrap().to_owned();
    let (parts, whole) = (into("parts"), into("whole"));
    let each = ["--each", BRIEFLY];
    let search = |into: &str, candidates: &str, jobs: &str| {
        let more = ["--candidates", candidates, "--top", "0", "--into", into];
        let ended = scratch.run(&asked(&[&each[..], &more, &["--jobs", jobs]].concat()));
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        let kept = fs::read_to_string(Path::new(into).join("search.json"));
        serde_json::from_str::<Value>(&kept.expect("what is kept")).expect("JSON")
    };
    let endless = ["--time", "1h", "--top", "0", "--into", &parts];
    let mut endless = scratch.punctual(&asked(&[&each[..], &endless].concat()));
    let mut child = endless.stdout(Stdio::null()).spawn().expect("it starts");
    let kept = || fs::read_to_string(Path::new(&parts).join("search.json")).unwrap_or_default();
    let candidates = || {
        let kept = serde_json::from_str::<Value>(&kept()).unwrap_or_default();
        kept["candidates"].as_u64().unwrap_or(0)
    };
    until("a round is kept", || candidates() > 0);
    kill_process(Pid::from_child(&child), Signal::INT).expect("Ctrl-C");
    assert_eq!(child.wait().expect("it ends").code(), Some(3));
    let further = (candidates() + 6).to_string();
    let parts = search(&parts, &further, "1");
    assert_eq!(parts["candidates"].to_string(), further);
    assert_eq!(parts, search(&whole, &further, "2"));
}

#[test]
fn a_program_that_ends_its_guest_costs_nobody_else_anything() {
    let scratch = Scratch::new();
    let grammar = scratch.file("grammar.toml", CRASH);
    let fine = "mmap 4096";
    // A panic; a machine that is reset; everybody killed but init; more memory than there is, which
    // costs the program alone.
    let bad = [
        "open-sysrq; crash",
        "open-sysrq; reset",
        "kill-everybody",
        "mmap 33554432 *64",
    ];
    let each = bad.iter().flat_map(|bad| [fine, bad]).chain([fine]);
    let programs: Vec<&str> = each.clone().flat_map(|one| ["--program", one]).collect();
    let more = [&["--root", "--grammar", &grammar][..], &programs].concat();
    let ended = scratch.run(&asked(&more));
    assert_eq!(ended.status, Some(3), "{}", ended.stderr);
    let tried = &json(&ended)["tried"];
    let lost = |number: usize| tried[number]["guest_lost"].as_str().unwrap_or_default();
    assert!(
        lost(1).contains("panicked") || lost(1).contains("oops"),
        "{tried:#}"
    );
    assert!(!lost(3).is_empty() && !lost(5).is_empty(), "{tried:#}");
    for number in [0, 2, 4, 6, 7, 8] {
        assert!(tried[number]["stretches"].is_array(), "{tried:#}");
    }
    assert_eq!(each.count(), 9);
}

#[test]
fn what_is_wrong_is_said_before_anything_boots() {
    let scratch = Scratch::new();
    let ended = scratch.run(&asked(&["--program", "mmmap 4096"]));
    assert_eq!(ended.status, Some(2));
    assert!(
        ended.stderr.contains("no call \"mmmap\""),
        "{}",
        ended.stderr
    );
}
