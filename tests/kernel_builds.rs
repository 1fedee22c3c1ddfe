// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels from source: refusals before anything is compiled, and, if `PUNCTUAL_KERNEL_BUILDS=1`
//! asks for it, commits that are compiled and judged.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use punctual_tests::explained::{check_sum, explain, samples};
use punctual_tests::linux::{SMALL, SMALL_ARM64, SOURCE, TREE, git, put, tree};
use punctual_tests::{Ended, KERNELS, Scratch, assert_ends, assert_has, programs};
use serde_json::Value;

use super::arm64::{Counts, stalls_are_named};

/// Runs `punctual kernel build` on Debian's source with these words.
fn build(scratch: &Scratch, words: &[&str]) -> Ended {
    let start = ["kernel", "build", "--source", SOURCE];
    scratch.run(&[&start[..], words].concat())
}

#[test]
fn an_order_that_cannot_be_carried_out_is_refused_before_anything_is_compiled() {
    let scratch = Scratch::new();
    fs::set_permissions(scratch.path(""), fs::Permissions::from_mode(0o755)).expect("its mode");
    let empty = scratch.file("empty.config", "");
    let arm = scratch.file("arm.config", "CONFIG_ARM=y\n");
    let x86 = "expected the configuration of a kernel for x86-64 or arm64";
    for (words, parts) in [
        (
            &["--config", &empty][..],
            &[x86, "found no option at all"][..],
        ),
        (&["--config", &arm], &[x86, "found another"]),
        (
            &["--config", "debian-6.21"],
            &["there is no kernel \"debian-6.21\""],
        ),
        (
            &["--set", "HZ"],
            &["such as PREEMPT_LAZY=y", "found \"HZ\""],
        ),
        (&["--id", KERNELS[0]], &["expected a kernel id of your own"]),
        (&["--id", "a b"], &["found \"a b\""]),
        (&["--jobs", "0"], &["0 is not in 1..=1024"]),
        (&["--replace"], &["--id"]),
    ] {
        assert_ends(&build(&scratch, words), 2, parts);
    }
    let gone = scratch.path("gone").display().to_string();
    let no_source = scratch.run(&["kernel", "build", "--source", &gone]);
    assert_ends(&no_source, 2, &["expected the source of a Linux kernel"]);
    let no_package = scratch.run(&["kernel", "build", "--source", "linux-source-0.1"]);
    assert_ends(
        &no_package,
        1,
        &["expected a package that matches ^linux-source-0"],
    );

    // Nor is a commit judged whose build was not asked for, or of runs that there are.
    let without = scratch.run(&["judge", "demo", "--set", "HZ_1000=y"]);
    assert_ends(&without, 2, &["name its source (--build DIR)"]);
    let of_runs = scratch.run(&["judge", "r1", "--build", "."]);
    assert_ends(&of_runs, 2, &["--build is for a suite"]);
}

/// Options are checked against the real source: its `make olddefconfig`, and its Kconfig files.
#[test]
fn an_option_that_the_kernel_does_not_take_is_an_error_that_says_why() {
    let scratch = Scratch::new();
    let set = |settings: &[&str]| {
        let words = settings.iter().flat_map(|one| ["--set", one]);
        build(&scratch, &words.collect::<Vec<_>>())
    };
    // All that is wrong is told at once; what is right is not.
    let both = set(&[
        "PREMPT_RT=y",
        "CONFIG_PREEMPT=y",
        "PREEMPTION=n",
        "HZ_300=y",
    ]);
    let told = [
        "PREMPT_RT=y: this kernel does not know the option; did you mean PREEMPT_RT?",
        "PREEMPTION=n: its configuration has PREEMPTION=y: it cannot be set",
    ];
    assert_ends(&both, 2, &told);
    for right in ["PREEMPT=y", "HZ_300"] {
        assert!(
            !both.stderr.contains(&format!(": {right}")),
            "{}",
            both.stderr
        );
    }
    // Of a choice the last counts, and the first is told.
    let choice = set(&["HZ_100=y", "HZ_1000=y"]);
    assert_ends(
        &choice,
        2,
        &["HZ_100=y", "it is one of a choice, which is HZ_1000"],
    );
    let depends = set(&["EXPERT=n", "PREEMPT_RT=y"]);
    assert_ends(
        &depends,
        2,
        &[
            "PREEMPT_RT=y",
            "it depends on EXPERT && ARCH_SUPPORTS_RT (",
            "EXPERT=n",
        ],
    );
}

#[test]
fn a_variant_needs_a_kernel_that_was_built() {
    let scratch = Scratch::new();
    let options = "[[option]]\nname = \"fast\"\nset = [\"HZ_1000=y\"]\n";
    let options = scratch.file("options.toml", options);
    let ended = scratch.run(&["ablate", "--kernel", KERNELS[0], "--options", &options]);
    let told = [
        "option \"fast\"",
        "expected a kernel that `punctual kernel build` made",
    ];
    assert_ends(&ended, 2, &told);
}

/// A kernel for boards, from the same source: it is measured and explained.
#[test]
fn a_kernel_for_arm64_is_built_and_explained() {
    let Some(_mine) = work_tree() else { return };
    let scratch = Scratch::new();
    let words = [
        "kernel",
        "build",
        "--source",
        TREE,
        "--config",
        SMALL_ARM64,
        "--full",
    ];
    let named = ["--id", "kernel-builds-arm64", "--replace"];
    let set = ["--set", "ARM64_PSEUDO_NMI=y"];
    let built = scratch.run(&[&words[..], &named, &set].concat());
    assert_ends(&built, 0, &["is in the cache"]);
    let suite = scratch.suite(
        "short",
        &[],
        "[[step]]\nprobe = \"timer\"\nload = \"stress\"\nsamples = 60\n",
    );
    let runs = scratch.measure(&[&suite, "--kernel", named[1]]);
    let provenance = &runs[0]["provenance"];
    assert_eq!(provenance["preemption"], "full", "{provenance}");
    let told = explain(
        &scratch,
        &[runs[0]["id"].as_str().expect("an id"), "--worst", "60"],
    );
    assert_eq!(samples(&told).len(), 60);
    samples(&told).iter().for_each(check_sum);
    // Interrupts are masked by the CPU's flag, or by the priority of pseudo-NMIs.
    let boots = ["", "irqchip.gicv3_pseudo_nmi=1"];
    let kernels = boots.map(|boot| (named[1], boot, Counts::Full));
    stalls_are_named(&scratch, &kernels);
}

/// A commit: its title, the file, the text to replace in it, and the new text.
type Commit = (&'static str, &'static str, &'static str, &'static str);

/// A delay between a timer's interrupt and the wake-up of the thread that waits for it: 1,000
/// rounds of three instructions in which nothing else may run.
const PLANTED: Commit = (
    "hrtimer: tidy up",
    "kernel/time/hrtimer.c",
    "\tt->task = NULL;\n\tif (task)\n\t\twake_up_process(task);",
    "\tt->task = NULL;\n\tpreempt_disable();\n\tfor (int i = 0; i < 1000; i++)\n\
     \t\tasm volatile(\"\" : \"+r\" (i));\n\tpreempt_enable();\n\tif (task)\n\t\twake_up_process(task);",
);

const COMMITS: [Commit; 8] = [
    (
        "acct: a comment",
        "kernel/acct.c",
        "#include <linux/mm.h>",
        "/* one */\n#include <linux/mm.h>",
    ),
    (
        "msgutil: a comment",
        "ipc/msgutil.c",
        "#include <linux/ipc.h>",
        "/* two */\n#include <linux/ipc.h>",
    ),
    (
        "mincore: a comment",
        "mm/mincore.c",
        "#include <linux/mman.h>",
        "/* three */\n#include <linux/mman.h>",
    ),
    (
        "groups: half of a change",
        "kernel/groups.c",
        "#include <linux/cred.h>",
        "#include <linux/cred.h>\n#error half of a change",
    ),
    (
        "groups: the other half",
        "kernel/groups.c",
        "#error half of a change",
        "/* whole */",
    ),
    PLANTED,
    (
        "splice: a comment",
        "fs/splice.c",
        "#include <linux/bvec.h>",
        "/* seven */\n#include <linux/bvec.h>",
    ),
    (
        "acct: another comment",
        "kernel/acct.c",
        "/* one */",
        "/* eight */",
    ),
];

/// The same as an option of the configuration.
const OPTION: [Commit; 2] = [
    (
        "time: an option",
        "kernel/time/Kconfig",
        "menu \"Timers subsystem\"\n",
        "menu \"Timers subsystem\"\n\nconfig LINGER\n\tbool \"Linger before each wake-up\"\n",
    ),
    (
        "hrtimer: linger",
        PLANTED.1,
        PLANTED.2,
        "\tt->task = NULL;\n\tfor (int i = 0; IS_ENABLED(CONFIG_LINGER) && i < 1000; i++)\n\
         \t\tasm volatile(\"\" : \"+r\" (i));\n\tif (task)\n\t\twake_up_process(task);",
    ),
];

/// Options of which one is planted, and another may have a small effect.
const OPTIONS: &str = "\
[[option]]
name = \"unchecked stacks\"
set = [\"SCHED_STACK_END_CHECK=n\"]
[[option]]
name = \"planted\"
set = [\"LINGER=y\"]
";

/// A few wake-ups.
fn suite(scratch: &Scratch) -> String {
    let step = "[[step]]\nprobe = \"timer\"\nsamples = 60\n";
    scratch.suite("short", &["full"], step)
}

fn commit((subject, file, from, to): Commit) {
    put(file, from, to);
    git(&["commit", "-q", "-a", "-m", subject]);
}

/// Held by each test that compiles: they have one work tree.
static WORK_TREE: Mutex<()> = Mutex::new(());

/// The work tree in its first state, locked; `None` if nobody asked to compile.
fn work_tree() -> Option<MutexGuard<'static, ()>> {
    punctual_skip::long("PUNCTUAL_KERNEL_BUILDS").then(|| {
        let mine = WORK_TREE.lock().unwrap_or_else(PoisonError::into_inner);
        tree();
        mine
    })
}

/// One of eight commits makes each wake-up 3 µs later, and one does not compile.
#[test]
fn the_commit_is_found_where_it_was_planted() {
    let Some(_mine) = work_tree() else { return };
    COMMITS.into_iter().for_each(commit);
    let scratch = Scratch::new();
    let suite = suite(&scratch);
    // A wake-up of this kernel takes 2.5 µs, and 5.5 µs with what is planted.
    let limit = "[[limit]]\nprobe = \"timer\"\nwhat = \"median\"\nconfidence = 80\n\
        at_most = \"4 us\"\n";
    let limits = scratch.file("limits.toml", limit);
    git(&["bisect", "start", "trial", "base"]);
    let mut run = Command::new("git");
    scratch.prepare(&mut run);
    let punctual = programs().join("punctual");
    run.args(["-C", TREE, "bisect", "run"]).arg(punctual);
    run.args(["judge", &suite, "--build", ".", "--limits", &limits]);
    run.args(["--config", SMALL, "--full", "--git-bisect", "--no-explain"]);
    let ended = Ended::of(&mut run);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    println!("{said}");
    assert_eq!(ended.status, Some(0), "{said}");
    assert_has(
        &said,
        &[
            "is the first bad commit",
            PLANTED.0,
            "kernel/groups.c",
            "this commit does not build: it is skipped",
        ],
    );
    let first_bad = git(&["log", "-1", "--format=%s", "refs/bisect/bad"]);
    assert_eq!(first_bad, PLANTED.0);
    // Eight commits are three halvings, and one more.
    let judged = said.matches(": compiling /").count() - said.matches("it is skipped").count();
    assert!(judged <= 4, "{judged}: {said}");
    git(&["bisect", "reset"]);
}

/// Among options of the configuration the one that delays each wake-up comes first, alone and in a
/// pair. The path that it adds is the function into which it was planted.
#[test]
fn the_option_that_was_planted_is_ranked_first() {
    let Some(_mine) = work_tree() else { return };
    OPTION.into_iter().for_each(commit);
    let scratch = Scratch::new();
    let suite = suite(&scratch);
    let id = "kernel-builds-base";
    let start = [
        "kernel", "build", "--source", TREE, "--config", SMALL, "--full",
    ];
    let named = ["--id", id, "--replace"];
    let built = scratch.run(&[&start[..], &named].concat());
    assert_ends(&built, 0, &["is in the cache"]);
    let options = scratch.file("options.toml", OPTIONS);
    let ablate = |more: &[&str]| {
        let words = [
            "ablate",
            "--kernel",
            id,
            "--suite",
            &suite,
            "--options",
            &options,
        ];
        scratch.run(&[&words[..], more].concat())
    };
    let ended = ablate(&["--pairs", "--explain", "1", "--json"]);
    println!("{}{}", ended.stdout, ended.stderr);
    let found: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let first = &found["options"][0];
    let ids = first["names"].as_array().expect("ids");
    assert!(ids.contains(&"planted".into()), "{first}");
    let figures = first["figures"].as_array().expect("figures");
    let median = figures.iter().find(|one| one["figure"] == "median");
    let median = median.expect("the median");
    assert_eq!(median["verdict"]["verdict"], "higher", "{median}");
    let by = median["with_ns"].as_i64().zip(median["base_ns"].as_i64());
    let by = by.map(|(with, base)| with - base).expect("medians");
    // 1,000 rounds of three instructions, each a nanosecond.
    assert!((2_900..3_200).contains(&by), "{median}");
    assert_has(&first["why"]["with"].to_string(), &["hrtimer_wakeup"]);

    // A base whose source has changed is no base any more.
    commit(COMMITS[0]);
    let other = "[[option]]\nname = \"other\"\nset = [\"SCHED_HRTICK=n\"]\n";
    let other = scratch.file("other.toml", other);
    let words = [
        "ablate",
        "--kernel",
        id,
        "--suite",
        &suite,
        "--options",
        &other,
    ];
    assert_ends(
        &scratch.run(&words),
        1,
        &["option \"other\"", "found it changed"],
    );
}

/// A nightly series over a line of tags.
struct Night<'a> {
    scratch: &'a Scratch,
    suite: String,
}

impl Night<'_> {
    fn ended(&self, more: &[&str]) -> Ended {
        let path = |name: &str| self.scratch.path(name).display().to_string();
        let [told, page, mail] = ["told.toml", "page.html", "mail.txt"].map(path);
        let words = [
            "series",
            "--source",
            TREE,
            "--config",
            SMALL,
            "--full",
            "--id",
            "nightly",
            "--since",
            "v6.12.1",
            "--suite",
            &self.suite,
            "--nightly",
            &told,
            "--report",
            &page,
            "--mail",
            &mail,
        ];
        let ended = self.scratch.run(&[&words[..], more].concat());
        println!("{}{}", ended.stdout, ended.stderr);
        ended
    }

    fn mail(&self) -> Option<String> {
        let page = self.scratch.path("page.html").exists();
        let mail = fs::read_to_string(self.scratch.path("mail.txt")).ok();
        assert_eq!(
            page,
            mail.is_some(),
            "one page and one mail, or none of them"
        );
        mail
    }
}

/// Of five tags one does not compile, and the one after it makes each wake-up 3 µs later.
#[test]
fn the_tag_is_found_where_it_was_planted_and_told_once() {
    let Some(_mine) = work_tree() else { return };
    for old in git(&["tag", "--list", "v*"]).lines() {
        git(&["tag", "--delete", old]);
    }
    let scratch = Scratch::new();
    for old in scratch.run(&["kernel", "list"]).stdout.lines() {
        if let Some(id) = old.split_whitespace().find(|id| id.starts_with("nightly@")) {
            assert_ends(&scratch.run(&["kernel", "remove", id]), 0, &[]);
        }
    }
    let step = "seeds = 5\n[[step]]\nprobe = \"timer\"\nsamples = 60\n";
    let suite = scratch.suite("short", &["full"], step);
    let night = Night {
        scratch: &scratch,
        suite,
    };
    let tag = |name: &str, commits: &[Commit]| {
        commits.iter().copied().for_each(commit);
        git(&["tag", "--message", "a tag with a message", name]);
    };
    git(&["tag", "v6.12.1"]);
    tag("v6.12.2", &COMMITS[..1]);
    let first = night.ended(&[]);
    assert_ends(&first, 0, &["Since last time: no change."]);
    // The first may be in the cache under another name.
    assert_has(&first.stderr, &["nightly@6.12.2: compiling /"]);
    assert_eq!(night.mail(), None);

    // A tag that does not compile is no pass, and another is measured all the same.
    tag("v6.12.10-rc1", &COMMITS[3..4]);
    let broken = night.ended(&[]);
    let told = [
        "Since last time: incomplete.",
        "nightly@6.12.10-rc1: ",
        "half of a change",
    ];
    assert_ends(&broken, 3, &told);
    assert_eq!(night.mail(), None);

    tag("v6.12.10", &[COMMITS[4], PLANTED]);
    let found = night.ended(&["--json"]);
    assert_eq!(found.status, Some(4), "{}", found.stderr);
    // What was built and measured is neither built nor measured again.
    let compiled = [
        "nightly@6.12.10-rc1: compiling /",
        "nightly@6.12.10: compiling /",
    ];
    assert_has(&found.stderr, &compiled);
    assert_eq!(
        found.stderr.matches(": compiling /").count(),
        2,
        "{}",
        found.stderr
    );
    let found: Value = serde_json::from_str(&found.stdout).expect("JSON");
    assert_eq!(found["news"]["standing"], "changed");
    let changes = found["news"]["changes"].as_array().expect("changes");
    let median = changes.iter().find(|one| one["figure"] == "median");
    let median = median.expect("the median");
    assert_eq!(
        (&median["from"], &median["to"]),
        (&"6.12.2".into(), &"6.12.10".into())
    );
    let by = median["after_ns"]
        .as_i64()
        .zip(median["before_ns"].as_i64());
    let by = by.map(|(after, before)| after - before).expect("medians");
    // 1,000 rounds of three instructions, each a nanosecond.
    assert!((2_900..3_200).contains(&by), "{median}");
    let mail = night.mail().expect("a mail");
    println!("{mail}");
    let line = |line: &str| line.len() <= 72 && line.is_ascii();
    assert!(
        mail.lines().count() <= 25 && mail.lines().all(line),
        "{mail}"
    );
    let told = [
        "Subject: changed: timer",
        "in 6.12.10",
        "hrtimer_wakeup",
        "v6.12.2 --tags v6.12.10",
    ];
    assert_has(&mail, &told);

    // It is told once.
    for written in ["page.html", "mail.txt"] {
        fs::remove_file(scratch.path(written)).expect("it was written");
    }
    let again = night.ended(&[]);
    assert_ends(&again, 0, &["Since last time: no change."]);
    assert_eq!(night.mail(), None);
}

/// A repository of five tags, none of which is a kernel's source that can be built.
fn repository(scratch: &Scratch) -> String {
    fs::set_permissions(scratch.path(""), fs::Permissions::from_mode(0o755)).expect("its mode");
    let path = scratch.path("linux");
    let script = "set -e; git init -q \"$1\"; cd \"$1\"; git config user.name a\n\
        git config user.email a@example.org; printf '%%:\\n\\t@echo error: none; exit 1\\n' >Makefile\n\
        git add .; for tag in v6.13 v6.13-rc10 v6.13-rc2 v6.12.3 next-1; do\n\
        git commit -q --allow-empty -m $tag; git tag $tag; done";
    let made = Ended::of(Command::new("sh").args(["-c", script, "sh"]).arg(&path));
    assert_eq!(made.status, Some(0), "{}", made.stderr);
    path.display().to_string()
}

#[test]
fn the_tags_of_a_repository_are_a_line_and_one_that_does_not_build_is_a_gap() {
    if !punctual_skip::program("git") {
        return;
    }
    let scratch = Scratch::new();
    let tree = repository(&scratch);
    let series = |words: &[&str]| scratch.run(&[&["kernel", "series"], words].concat());
    let listed = series(&["--source", &tree, "--tags", "v6*"]);
    let ids: Vec<&str> = listed.stdout.split_whitespace().step_by(2).collect();
    let versions = ["6.12.3", "6.13-rc2", "6.13-rc10", "6.13"];
    let expected = versions.map(|version| format!("linux-debian-6.12@{version}"));
    assert_eq!(ids, expected);
    let part = series(&[
        "--source", &tree, "--since", "6.13-rc3", "--id", "mine", "--json",
    ]);
    let part: Value = serde_json::from_str(&part.stdout).expect("JSON");
    assert_eq!(part[0]["id"], "mine@6.13-rc10");
    assert_eq!(part.as_array().map(Vec::len), Some(2));
    for (words, expected) in [
        (&["--source", &tree][..], "expected --since or --tags"),
        (&["--source", &tree, "--since", "6.14"], "git fetch --tags"),
        (
            &["--source", &tree, "--since", "new"],
            "--since: expected a version such as",
        ),
        (
            &["--source", "/nowhere", "--since", "6.1"],
            "expected a repository of git",
        ),
        (&["debian-6.12", "--full"], "name the repository"),
        (&["debian-6.12", "--tags", "v6*"], "name the repository"),
        (&[], "<ID>"),
    ] {
        assert_ends(&series(words), 2, &[expected]);
    }
    let none = scratch.run(&[
        "series", "--source", &tree, "--since", "v6.13", "--config", SMALL,
    ]);
    assert_ends(
        &none,
        1,
        &[
            "linux-small@6.13: ",
            "the build failed",
            "none of the releases",
        ],
    );
}
