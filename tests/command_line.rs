// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line as a user meets it.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use punctual_tests::{Scratch, assert_has, runs, suite};

const QUICK: &str = r#"
[[step]]
probe = "timer"
samples = 50
[[step]]
probe = "program"
run = ["no-such-program"]
"#;

#[test]
fn help_fits_a_terminal_of_eighty_columns_and_has_examples() {
    let scratch = Scratch::new();
    for arguments in [
        &["--help"][..],
        &["run", "--help"],
        &["kernel", "--help"],
        &["kernel", "add", "--help"],
        &["show", "--help"],
        &["compare", "--help"],
        &["published", "--help"],
        &["doctor", "--help"],
        &["cache", "prune", "--help"],
    ] {
        let help = scratch.run(arguments);
        assert_eq!(help.status, Some(0));
        for line in help.stdout.lines() {
            assert!(line.chars().count() <= 80, "{arguments:?}: {line}");
        }
    }
    for command in ["run", "show", "compare", "kernel", "completions", "doctor"] {
        let help = scratch.run(&[command, "--help"]).stdout;
        assert!(help.contains("Examples:\n  punctual"), "{command}");
    }
}

#[test]
fn everything_that_can_be_named_is_listed() {
    let scratch = Scratch::new();
    let list = |what| scratch.run(&["list", what]).stdout;
    assert!(list("probes").contains("hackbench") && list("probes").contains("timer"));
    assert!(list("loads").starts_with("idle") && list("loads").contains("stress"));
    assert!(list("suites").contains("demo"));
    assert!(list("kernels").contains("debian-6.12-rt"));
    let json = scratch.run(&["list", "probes", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["schema"], "punctual.list/1");
    assert_eq!(json["probes"][0]["name"], "timer");
    let timer = scratch.run(&["list", "probes", "timer"]).stdout;
    assert!(timer.contains("10 to 10,000,000: the period"), "{timer}");
    let json = scratch.run(&["list", "probes", "timer", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["probes"][0]["parameters"][1]["default"], "997");
    let json = scratch.run(&["list", "kernels", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    for kernel in json["kernels"].as_array().unwrap() {
        let state = kernel["state"].as_str().unwrap();
        assert!(["cached", "not-fetched", "damaged"].contains(&state));
        assert_eq!(kernel["release"].is_string(), state == "cached");
    }
}

#[test]
fn likely_mistakes_end_with_advice_and_status_two() {
    let scratch = Scratch::new();
    let wrong = scratch.suite("wrong", &[], &QUICK.replace("samples", "sample"));
    let unknown_load = scratch.suite(
        "load",
        &["none"],
        &QUICK.replace("samples = 50", "load = \"strss\""),
    );
    for (arguments, advice) in [
        (&["run", "dmeo"][..], "did you mean demo?"),
        (&["run", "demo", "--subject", "tr"], "did you mean rt?"),
        (&["run", &wrong], "samples"),
        (&["run", &unknown_load], "stress"),
        (&["run", "demo", "--ns-per-insn", "3"], "power of two"),
        (&["run", "demo", "--seeds", "5..1"], "FIRST..LAST"),
        (&["run", "demo", "--seeds", "5..1"], "1..5"),
        (&["run", "demo", "--seed", "-1"], "from 0 to"),
        (&["run", "demo", "--jobs", "0"], "from 1"),
        (&["run", "demo", "--patience", "0"], "from 1"),
        (&["run", "demo", "--samples", "1.5"], "such as 5000 or 1e6"),
        (&["run", "demo", "--duration", "soon"], "12h or 1d"),
        (
            &["run", "demo", "--kernel", "debian-6.12-tr"],
            "did you mean debian-6.12-rt?",
        ),
        (
            &["run", "demo", "--kernel", "a", "--kernel", "a"],
            "named twice",
        ),
        (
            &["run", "demo", "--boot", "preempt=fulll"],
            "did you mean full?",
        ),
        (&["run", "demo", "--load", "strss"], "did you mean stress?"),
        (&["run", "demo", "--cpus", "0"], "--bench host"),
        (&["run", "--probe", "timr"], "did you mean timer?"),
        (&["list", "probes", "timr"], "did you mean timer?"),
        (
            &["run", "--probe", "timer", "-p", "sampls=5"],
            "did you mean samples?",
        ),
        (
            &["run", "--probe", "timer", "-p", "samples=x"],
            "a whole number",
        ),
        (&["run"], "expected a suite, --probe or --program"),
        (&["show"], "there are no runs yet"),
        (
            &["show", "r1", "--db", "/nowhere/runs.db"],
            "found none of this name",
        ),
        (
            &["run", "demo", "--seed", "9223372036854775808"],
            "9223372036854775807",
        ),
        (
            &["run", "demo", "--seeds", "9223372036854775808"],
            "9223372036854775807",
        ),
        (&["doctor", "--skip", "smy"], "did you mean smi?"),
        (
            &["doctor", "--only", "smi", "--skip", "smi"],
            "expected a check, found none",
        ),
        (
            &["doctor", "--root", "/nowhere"],
            "expected a directory with proc",
        ),
        (&["frobnicate"], "--help"),
    ] {
        let ended = scratch.run(arguments);
        assert_eq!(ended.status, Some(2), "{arguments:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(advice),
            "{arguments:?}: {}",
            ended.stderr
        );
    }
}

const EXPORT: &str = "expected a run, found a file of `punctual export`: `punctual import ";

/// Nothing was measured yet, and all of these say what was meant.
#[test]
fn the_wrong_kind_of_argument_is_named_as_what_it_is() {
    let scratch = Scratch::new();
    let limit = "[[limit]]\nprobe = \"timer\"\nwhat = \"worst\"\nat_most = \"1 us\"\n";
    let limits = &scratch.file("limits.toml", limit);
    let max = &scratch.file("bad1.toml", format!("\n{}", limit.replace("worst", "max")));
    let table = &scratch.file("bad2.toml", limit.replace("[[limit]]", "[limit]"));
    for (arguments, expected) in [
        (&["show", "x.punctual"][..], EXPORT),
        (&["show", "r1", "./x.punctual"], EXPORT),
        (&["compare", "r1", "x.punctual"], EXPORT),
        (&["baseline", "set", "stable", "x.punctual"], EXPORT),
        (&["remove", "x.punctual"], EXPORT),
        (&["judge", "x.punctual"], EXPORT),
        (&["judge", "./x.punctual"], EXPORT),
        (&["explain", "x.punctual"], EXPORT),
        (&["explain", "./x.punctual"], EXPORT),
        (
            &["gate", "--baseline", "nofile.punctual"],
            "there is neither a file nor a baseline \"nofile.punctual\" (`punctual baseline list` \
             lists all)",
        ),
        (&["run", "r1"], "r1 is a run; `punctual show r1` shows it"),
        (
            &["gate", "r4", "--baseline", "stable"],
            "r4 is a run, and gate measures anew: `punctual compare` holds runs against each other",
        ),
        (
            &["verify", "r1"],
            "expected a file of `punctual export`, found a run: `punctual export r1 -o \
             r1.punctual` makes one",
        ),
        (
            &["judge", "r1-r4"],
            "expected runs such as r1 r2 or r1..r4, found r1-r4",
        ),
        (
            &["compare", "r1-r4"],
            "expected runs such as r1 r2 or r1..r4, found r1-r4",
        ),
        (&["run", limits], "limits.toml has limits and no steps: "),
        (&["judge", limits], "limits.toml` takes them"),
        (
            &["judge", "demo", "--limits", max],
            "bad1.toml:4: what: expected worst, ",
        ),
        (
            &["judge", "demo", "--limits", table],
            "bad2.toml:1: expected [[limit]], found [limit]",
        ),
    ] {
        let ended = scratch.run(arguments);
        assert_eq!(ended.status, Some(2), "{arguments:?}: {}", ended.stderr);
        assert_has(&ended.stderr, &[expected]);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
}

/// What cyclictest may have printed, as runs: they take no guest.
fn import(scratch: &Scratch, runs: usize) {
    for count in 1..=runs {
        let text = format!(
            "# Histogram\n000007 {count:06}\n# Min Latencies: 00007\n# Avg Latencies: 00007\n\
             # Max Latencies: 00007\n# Histogram Overflows: 00000\n"
        );
        let file = scratch.file(&format!("{count}.hist"), text);
        let ended = scratch.run(&["import", &file, "--subject", "rt"]);
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    }
}

#[test]
fn a_range_of_runs_is_shown_judged_exported_and_removed() {
    let scratch = Scratch::new();
    import(&scratch, 4);
    assert_eq!(scratch.run(&["remove", "r3"]).status, Some(0));
    let shown = scratch.run(&["show", "r1..r4", "--json"]);
    let ids: Vec<String> = runs(&shown.stdout)
        .iter()
        .map(|run| run["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids, ["r1", "r2", "r4"], "{}", shown.stderr);
    let limit = "[[limit]]\nprobe = \"timer\"\nwhat = \"worst\"\nat_most = \"1 us\"\n";
    let limits = &scratch.file("limits.toml", limit);
    let judged = scratch.run(&["judge", "r1..r4", "--limits", limits]);
    assert_eq!(judged.status, Some(4), "{}", judged.stderr);
    // A file of another name is one of runs by its content.
    let export = &scratch.path("exported").display().to_string();
    let ended = scratch.run(&["export", "r1..last", "-o", export]);
    assert_has(&ended.stderr, &["holds 3 runs"]);
    for (arguments, expected) in [
        (&["show", export][..], EXPORT),
        (
            &["judge", "r1", "--limits", export],
            "exported: expected a TOML file, found a file of `punctual export`",
        ),
        (
            &["show", "rt"],
            "rt is a subject: `punctual runs --subject rt` lists its runs",
        ),
        (
            &["compare", "demo", "r1"],
            "demo is a suite: `punctual runs --suite demo` lists its runs",
        ),
        (
            &["judge", "rt", "r1", "--limits", limits],
            "rt is a subject: `punctual runs --subject rt` lists its runs",
        ),
        (
            &["show", "r4..r1"],
            "expected the earlier run first, r1..r4, found r4..r1",
        ),
        (&["show", "r1..r3"], "there is no run \"r3\""),
        (&["show", "r1..r9"], "there is no run \"r9\""),
        (
            &["arrivals", "r1..r2"],
            "expected one run, such as r3, found r1..r2",
        ),
        (&["compare", "r1"], "expected two runs at least, found r1"),
    ] {
        let ended = scratch.run(arguments);
        assert_eq!(ended.status, Some(2), "{arguments:?}: {}", ended.stderr);
        assert_has(&ended.stderr, &[expected]);
    }
    let removed = scratch.run(&["remove", "r1..r4"]);
    assert_eq!(removed.status, Some(0), "{}", removed.stderr);
    assert!(scratch.run(&["runs"]).stderr.contains("no runs yet"));
}

#[test]
fn a_run_is_shown_listed_reported_and_removed() {
    let scratch = Scratch::new();
    let suite = &scratch.suite("quick", &["none"], QUICK);
    let page = scratch.path("page.html");
    let page = page.to_str().unwrap();
    let ended = scratch.run(&["run", suite, "--json", "--report", page]);
    // One of its two steps is unsupported.
    assert_eq!(ended.status, Some(3), "{}", ended.stderr);
    let run = &runs(&ended.stdout)[0];
    assert_eq!(run["id"], "r1");
    assert_eq!(run["provenance"]["preemption"], "none");
    assert!(
        run["provenance"]["release"]
            .as_str()
            .unwrap()
            .starts_with("6.12.")
    );
    assert!(
        run["provenance"]["cmdline"]
            .as_str()
            .unwrap()
            .ends_with("preempt=none")
    );
    assert_eq!(run["subject"]["bench"], "virtual");
    assert_eq!(run["recordings"][0]["count"], 50);
    assert_eq!(run["recordings"][0]["unit"], "ns");
    let worst = &run["recordings"][0]["worst"][0];
    assert_eq!(worst["value"], run["recordings"][0]["max"]);
    assert!(worst["at_ns"].is_i64() && worst["seq"].is_u64());
    assert_eq!(run["unsupported"][0]["probe"], "program");
    let reason = run["unsupported"][0]["reason"].as_str().unwrap();
    assert_has(reason, &["no-such-program"]);

    let shown = scratch.run(&["show", "r1", "--json"]);
    assert_eq!(
        runs(&shown.stdout)[0],
        *run,
        "what is stored is what was shown"
    );
    let table = scratch.run(&["show", "r1"]).stdout;
    assert!(
        table.contains("Virtual time") && table.contains("no-such-program"),
        "{table}"
    );
    assert!(!table.contains('\x1b'), "colour is for terminals");
    let console = scratch.run(&["show", "r1", "--console"]).stdout;
    assert!(console.contains("Linux version 6.12") && console.contains("Run /init"));
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("<svg") && html.contains("Linux version 6.12"));
    assert!(
        !html.contains("http://") || !html.contains("src=\"http"),
        "no network"
    );

    assert!(scratch.run(&["runs"]).stdout.contains("finished"));
    let shown = |names: &[&str]| scratch.run(&[&["show"], names].concat()).stdout;
    for names in [&["1"][..], &["R1"], &["last"], &[]] {
        assert_eq!(shown(names), table, "{names:?}");
    }
    let missing = scratch.run(&["show", "r2"]);
    assert_eq!(missing.status, Some(2));
    assert_has(&missing.stderr, &["did you mean r1?"]);
    assert_eq!(scratch.run(&["remove", "r1"]).status, Some(0));
    assert!(scratch.run(&["runs"]).stderr.contains("no runs yet"));
}

#[test]
fn manual_pages_and_completions_are_made() {
    let scratch = Scratch::new();
    let directory = scratch.path("man");
    assert_eq!(
        scratch.run(&["man", directory.to_str().unwrap()]).status,
        Some(0)
    );
    for page in ["punctual.1", "punctual-run.1", "punctual-kernel-add.1"] {
        let text = std::fs::read_to_string(directory.join(page)).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            scratch
                .run(&["completions", shell])
                .stdout
                .contains("punctual"),
            "{shell}"
        );
    }
}

#[test]
fn a_users_own_load_and_suite_are_found_by_name() {
    let scratch = Scratch::new();
    let directory = scratch.path("config/punctual");
    std::fs::create_dir_all(directory.join("loads")).unwrap();
    std::fs::create_dir_all(directory.join("suites")).unwrap();
    let load = "summary = \"a listing\"\n[[worker]]\nrun = [\"ls\", \"-lR\", \"/proc\"]\n\
        unit = \"lines\"\ncount = \"lines\"\n";
    std::fs::write(directory.join("loads/listing.toml"), load).unwrap();
    let suite = "name = \"mine\"\nsummary = \"\"\n\
        [[step]]\nprobe = \"timer\"\nsamples = 50\nload = \"listing\"\n";
    std::fs::write(directory.join("suites/mine.toml"), suite).unwrap();
    let runs = scratch.measure(&["mine", "--kernel", "debian-6.12-rt"]);
    let work = &runs[0]["steps"][0]["work"][0];
    assert!(work["amount"].as_u64().unwrap() > 0, "{work}");
    assert_eq!(work["unit"], "lines");
}

const LISTING: &str = "summary = \"a listing\"\n[[worker]]\nrun = [\"ls\", \"-lR\", \"/proc\"]\n\
    unit = \"lines\"\ncount = \"lines\"\n";

#[test]
fn probes_and_loads_can_be_named_without_a_suite() {
    let scratch = Scratch::new();
    let load = &scratch.file("mine.toml", LISTING);
    let probe = ["--probe", "timer", "-p", "samples=50", "--subject", "rt"];
    let runs = scratch.measure(&[&probe[..], &["--load", "idle", "--load", load]].concat());
    assert_eq!(runs.len(), 1);
    let recordings = runs[0]["recordings"].as_array().unwrap();
    let of = |field: &str| {
        recordings
            .iter()
            .map(|r| r[field].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("load"), ["idle", "mine"]);
    assert_eq!(of("count"), [50, 50]);
}

#[test]
fn what_cannot_be_written_is_said_before_anything_is_measured() {
    let scratch = Scratch::new();
    let file = &scratch.file("file", "");
    let lost = &scratch.path("none/runs.db").display().to_string();
    let made = &format!("`mkdir -p {}` makes it", scratch.path("none").display());
    for (arguments, status, why) in [
        (
            ["--report", "/nowhere/page.html"],
            2,
            "expected a file in an existing directory, found no /nowhere: ",
        ),
        (["--db", lost], 2, made),
        (["--data", file], 2, file),
    ] {
        let ended = scratch.run(&[&["run", "demo"][..], &arguments].concat());
        assert_eq!(ended.status, Some(status), "{}", ended.stderr);
        assert_has(&ended.stderr, &[why]);
    }
    assert!(!scratch.path("none").exists(), "no directory is made");
    let runs = scratch.run(&["runs"]);
    assert_has(&runs.stderr, &["no runs yet"]);
    assert!(!scratch.path("data").exists(), "reading makes no store");
}

#[test]
fn a_kernel_that_runs_another_preemption_model_than_asked_for_is_not_measured() {
    let scratch = Scratch::with_new_cache();
    // One whose configuration is not known: it might offer any model.
    let image = punctual_tests::user_cache().join("punctual/kernels/debian-6.12-rt/vmlinuz");
    let added = scratch.run(&["kernel", "add", "--id", "own", &image.to_string_lossy()]);
    assert_eq!(added.status, Some(0), "{}", added.stderr);
    let suite = &scratch.file(
        "quick.toml",
        suite("quick", &["none"], QUICK).replace("debian-6.12", "own"),
    );
    let ended = scratch.run(&["run", suite]);
    assert_eq!(ended.status, Some(1), "{}", ended.stderr);
    assert!(
        ended
            .stderr
            .contains("asked for preempt=none, the kernel runs rt"),
        "{}",
        ended.stderr
    );
    let run = &runs(&scratch.run(&["show", "--json"]).stdout)[0];
    assert_eq!(run["state"], "failed");
    assert_eq!(run["recordings"].as_array().unwrap().len(), 0);
}

#[test]
fn nothing_panics_where_standard_error_is_closed() {
    let scratch = Scratch::new();
    for arguments in [&["run", "dmeo"][..], &["runs"]] {
        let mut command = scratch.punctual(arguments);
        let (reader, writer) = UnixStream::pair().unwrap();
        drop(reader);
        let status = command.stderr(OwnedFd::from(writer)).status().unwrap();
        assert!(
            matches!(status.code(), Some(0 | 2)),
            "{arguments:?}: {status}"
        );
    }
}

/// A trace from elsewhere needs no store, and the exit status says whether it has an answer.
#[test]
fn a_trace_from_elsewhere_is_explained() {
    let scratch = Scratch::new();
    let write = |name: &str, text: &str| {
        std::fs::write(scratch.path(name), text).unwrap();
        scratch.path(name).to_str().unwrap().to_owned()
    };
    let told = write(
        "told.txt",
        include_str!("../crates/scope/src/pasted/tests/trace-cmd-higher.txt"),
    );
    let open = write(
        "open.txt",
        include_str!("../crates/scope/src/pasted/tests/nothing-late.txt"),
    );
    let none = write("none.txt", "T: 0 ( 1234) P:80 I:1000 C: 10000\n");
    let ended = scratch.run(&["explain", &told]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let first = "450 µs of my thread [x]-812 on CPU 3: the thread my rt [1]-900, of higher or";
    assert!(ended.stdout.starts_with(first), "{}", ended.stdout);
    assert_has(&ended.stdout, &["- 17 events were lost"]);
    let ended = scratch.run(&["explain", &open]);
    assert_eq!(ended.status, Some(5), "{}", ended.stderr);
    assert_has(
        &ended.stdout,
        &["undecided: nothing in it says", "rtla timerlat top -a"],
    );
    for (words, why) in [
        (vec!["explain", &none], "found no event in it"),
        (
            vec!["explain", "./nowhere"],
            "./nowhere: expected a file, found none of this name",
        ),
        (
            vec!["explain", "nowhere.txt"],
            "there is neither a run nor a file \"nowhere.txt\"",
        ),
        (
            vec!["explain", &told, "--captured"],
            "--captured is for runs",
        ),
    ] {
        let ended = scratch.run(&words);
        assert_eq!(ended.status, Some(2), "{words:?}: {}", ended.stderr);
        assert_has(&ended.stderr, &[why]);
    }
}

/// A machine that reveals little, and has one defect of weight.
#[test]
fn the_doctors_status_is_what_weighs() {
    let scratch = Scratch::new();
    let root = scratch.path("board");
    std::fs::create_dir_all(root.join("proc/sys/kernel")).unwrap();
    let file = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
    file("proc/sys/kernel/osrelease", "6.12.1-rt1\n");
    file("proc/sys/kernel/watchdog", "1\n");
    let version = |flags| {
        file(
            "proc/version",
            &format!("Linux version 6.12 #1 SMP {flags}\n"),
        );
    };
    version("PREEMPT_RT");
    let root = root.to_str().unwrap();
    let doctor = |more: &[&str]| scratch.run(&[&["doctor", "--root", root], more].concat());
    for (more, status) in [
        (&["--only", "preempt-rt", "--only", "rt-name"][..], 0),
        (&["--only", "preempt-rt", "--only", "lockup-detector"], 4),
        (&["--skip", "lockup-detector"], 5),
        (&["--only", "vm-stat-interval"], 0),
    ] {
        let ended = doctor(more);
        assert_eq!(ended.status, Some(status), "{more:?}: {}", ended.stdout);
    }
    version("PREEMPT_DYNAMIC");
    let ended = doctor(&["--only", "preempt-rt", "--skip", "smi", "--json"]);
    assert_eq!(ended.status, Some(4));
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(json["schema"], "punctual.doctor/1");
    let found = &json["checks"][0]["found"]["value"];
    assert_eq!(found, &serde_json::json!({ "text": "PREEMPT_DYNAMIC" }));
    assert_eq!(json["skipped"], serde_json::json!(["smi"]));
    // For sound PREEMPT_RT weighs little; what to do first is told, and is on the page, too.
    let page = scratch.path("doctor.html");
    let ended = doctor(&[
        "--for",
        "audio",
        "--json",
        "--report",
        page.to_str().unwrap(),
    ]);
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(json["purpose"], "audio");
    let mut checks = json["checks"].as_array().unwrap().iter();
    let rt = checks.find(|one| one["id"] == "preempt-rt").unwrap();
    assert_eq!(rt["severity"], "low");
    let mut steps = json["steps"].as_array().unwrap().iter();
    assert!(steps.any(|step| step["check"] == "preempt-rt"), "{json}");
    let page = std::fs::read_to_string(page).unwrap();
    assert_has(&page, &["linux-image-rpi-v8-rt", "misses six periods"]);
    let ended = doctor(&["--for", "music"]);
    assert_eq!(ended.status, Some(2));
    assert_has(&ended.stderr, &["expected audio, control, isolated"]);
    let listed = scratch.run(&["list", "checks"]).stdout;
    assert_has(&listed, &["preempt-rt", "the kernel has PREEMPT_RT"]);
}
