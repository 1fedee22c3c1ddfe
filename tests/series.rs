// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line of kernels, release by release.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use punctual_tests::{Scratch, assert_ends, assert_has, json};
use serde_json::Value;

const SUITE: &str = "name = \"short\"\nsummary = \"a few wake-ups\"\nseeds = 2\n\
    [[subject]]\nname = \"rt\"\nkernel = \"debian-6.1-rt\"\n\
    [[step]]\nprobe = \"timer\"\nsamples = 60\n";

fn versions(releases: &Value) -> Vec<String> {
    let releases = releases.as_array().expect("releases").iter();
    let versions = releases.map(|one| one["version"].as_str().expect("a version").to_owned());
    versions.collect()
}

#[test]
fn the_last_releases_of_a_line_are_measured_in_their_order_and_only_once() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let scratch = Scratch::new();
    let listed = json(&scratch.run(&["kernel", "series", "debian-6.1-rt", "--json"]));
    let all = versions(&listed);
    assert!(all.len() >= 3, "{all:?}");
    let since = &all[all.len() - 2];

    let suite = scratch.file("short.toml", SUITE);
    let csv = scratch.path("series.csv");
    let csv = csv.to_str().expect("a path of text");
    let words = [
        "series",
        "debian-6.1-rt",
        "--suite",
        &suite,
        "--since",
        since,
        "--quiet",
    ];
    let ended = scratch.run(&[&words[..], &["--json", "--csv", csv]].concat());
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let found = json(&ended);
    let line = &found["lines"][0];
    assert_eq!(found["schema"], "punctual.series/1");
    assert_eq!(line["line"], "debian-6.1-rt");
    let releases = line["releases"].as_array().expect("releases");
    for (release, version) in releases.iter().zip(&all[all.len() - 2..]) {
        assert_eq!(release["subject"], format!("debian-6.1-rt@{version}"));
    }
    let [worst, median] = &line["figures"].as_array().expect("figures")[..] else {
        panic!("{line}")
    };
    assert_eq!(
        (&worst["figure"], &median["figure"]),
        (&"worst".into(), &"median".into())
    );
    let seeds = |figure: &Value| -> Vec<u64> {
        let values = figure["values"].as_array().expect("releases").iter();
        let runs = values.flat_map(|release| release.as_array().expect("runs"));
        runs.map(|run| run["seed"].as_u64().expect("a seed"))
            .collect()
    };
    assert_eq!(
        (seeds(worst), seeds(median)),
        (vec![1, 2, 1, 2], vec![1, 2, 1, 2])
    );
    // Two releases with two runs each cannot be told apart.
    assert_eq!(worst["levels"].as_array().map(Vec::len), Some(1));
    let table = fs::read_to_string(csv).expect("the table");
    assert_eq!(table.lines().count(), 1 + 2 * 2 * 2, "{table}");
    assert!(table.starts_with("line,release,subject,"), "{table}");

    // The same again measures nothing, and says the same.
    let again = scratch.run(&[&words[..], &["--json"]].concat());
    assert_eq!(json(&again), found);
    let runs = json(&scratch.run(&["runs", "--json"]));
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(4));

    for (words, expected) in [
        (&["--since", "6.1.1"][..], "--since: expected one of "),
        (
            &["--since", since, "--until", &all[0]],
            "no release is left",
        ),
        (
            &["--kernel", "debian-6.1"],
            "a series names the kernels itself",
        ),
    ] {
        let refused = scratch.run(&[&["series", "debian-6.1-rt"], words].concat());
        assert_eq!(refused.status, Some(2), "{}", refused.stderr);
        assert_has(&refused.stderr, &[expected]);
    }
    let refused = scratch.run(&["kernel", "series", &format!("debian-6.1-rt@{since}")]);
    assert_has(&refused.stderr, &["expected a line of kernels"]);
}

/// `apt-get` and `apt-cache` that know one release, whose download Ctrl-C ends.
const APT: [(&str, &str); 2] = [
    (
        "apt-get",
        "#!/bin/sh\ncase \"$*\" in\n*download*) kill -INT $PPID; sleep 0.2; exit 1 ;;\nesac\n",
    ),
    (
        "apt-cache",
        "#!/bin/sh
name=linux-image-6.12.9+deb12-rt-amd64
for name in $name $name-unsigned; do
    case \"$*\" in
        *search*) echo \"$name - a kernel\" ;;
        *) printf '%s\\n' \"Package: $name\" 'Version: 6.12.9-1' 'Filename: x' 'Size: 1' \
            'SHA256: a' '' ;;
    esac
done
",
    ),
];

#[test]
fn a_download_that_ctrl_c_has_ended_says_nothing_of_its_kernel() {
    let mut scratch = Scratch::with_new_cache();
    let programs = scratch.path("programs");
    fs::create_dir(&programs).expect("a directory");
    for (name, text) in APT {
        let program = scratch.file(&format!("programs/{name}"), text);
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("its mode");
    }
    scratch.look_first_in(&programs);
    let limit = "[[limit]]\nprobe = \"timer\"\nwhat = \"worst\"\nat_most = \"1 s\"\n";
    let limits = scratch.file("limits.toml", limit);
    let series = ["series", "debian-6.12-rt", "--since", "6.12.9"];
    let kernels = ["debian-6.12-rt@6.12.9", "debian-6.12-rt"];
    let bisect = ["bisect", kernels[0], kernels[1], "--limits", &limits];
    for words in [&series[..], &bisect] {
        let ended = scratch.run(&[words, &["--probe", "timer"]].concat());
        assert_ends(&ended, 3, &["downloading"]);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!said.contains("apt-get"), "{said}");
    }
}
