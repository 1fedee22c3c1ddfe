// SPDX-License-Identifier: MIT OR Apache-2.0
//! A diagnosis in all its forms, of this machine and of findings made by hand.

use std::path::Path;

use punctual_doctor::{ALL, Found, Machine, Value as Of, examine};
use punctual_model::{CpuId, Nanos, Reason};
use unicode_width::UnicodeWidthStr as _;

use super::*;

/// Findings of these checks, in this order.
fn diagnosis(found: &[(&str, Verdict)]) -> Diagnosis {
    let one = |(id, verdict): &(&str, Verdict)| {
        let mut all = ALL.into_iter().flatten();
        let check = all.find(|check| check.id == *id).expect("a check");
        let verdict = verdict.clone();
        Finding { check, verdict }
    };
    Diagnosis(found.iter().map(one).collect())
}

fn found(name: &str, value: Of) -> Found {
    let name = name.to_owned();
    Found { name, value }
}

fn several() -> Diagnosis {
    diagnosis(&[
        (
            "preempt-rt",
            Verdict::Wrong(found("/proc/version", Of::Text("\u{1b}[5mPREEMPT".into()))),
        ),
        (
            "governor",
            Verdict::Unknown(Reason::unreadable("/sys/x", "no such file")),
        ),
        (
            "fair-server",
            Verdict::Wrong(found("runtime", Of::Nanos(Nanos(50_000_000)))),
        ),
        (
            "isolcpus",
            Verdict::Fine(found("isolated CPUs", Of::Cpus(vec![CpuId(2), CpuId(3)]))),
        ),
        (
            "rt-throttling",
            Verdict::Wrong(found("us", Of::Number(950_000))),
        ),
        (
            "fifo-99",
            Verdict::Wrong(found("threads", Of::Names(vec!["a (1)".into()]))),
        ),
        ("swappiness", Verdict::Moot("there is no swap".into())),
    ])
}

const PLAIN: Look = Look {
    width: 80,
    colour: false,
    all: false,
};

#[test]
fn a_summary_comes_first_then_what_is_wrong_by_weight() {
    let text = doctor_text(&several(), PLAIN);
    let expected = "\
Unfit for real-time work: found 1 fatal and 3 medium.
7 checks: 1 fine, 4 wrong, 1 unknown; 1 not for this machine.

fatal   preempt-rt
        wanted   the kernel has PREEMPT_RT
        found    /proc/version: [5mPREEMPT
        do       boot a kernel with CONFIG_PREEMPT_RT=y: Debian's
";
    assert!(text.starts_with(expected), "{text}");
    assert!(
        text.ends_with("\nFine: isolcpus.\nNot for this machine: swappiness.\n"),
        "{text}"
    );
    let at = |word: &str| text.find(word).expect(word);
    assert!(at("50.0 ms") < at("because /sys/x: no such file"));
    let all = doctor_text(&several(), Look { all: true, ..PLAIN });
    assert!(
        all.contains("\nfine    isolcpus: isolated CPUs: 2-3\n"),
        "{all}"
    );
    assert!(
        all.contains("\nmoot    swappiness: there is no swap\n"),
        "{all}"
    );
}

#[test]
fn no_line_is_longer_than_the_terminal_and_colour_only_where_there_is_one() {
    let here = examine(&Machine::new(Path::new("/")), &|_| true);
    for width in [40, 80, 200] {
        for all in [false, true] {
            let look = Look {
                width,
                colour: false,
                all,
            };
            let text = doctor_text(&here, look) + &doctor_text(&several(), look);
            let longest = text.lines().map(|line| line.width()).max();
            assert!(longest <= Some(width), "{text}");
            assert!(!text.contains('\u{1b}'));
        }
    }
    let coloured = doctor_text(
        &several(),
        Look {
            colour: true,
            ..PLAIN
        },
    );
    assert!(
        coloured.contains("\u{1b}[1;31mfatal   preempt-rt\u{1b}[0m\n"),
        "{coloured}"
    );
    assert!(
        coloured.contains("\u{1b}[1mmedium  fair-server\u{1b}[0m\n"),
        "{coloured}"
    );
}

#[test]
fn what_weighs_and_is_not_known_is_not_called_fit() {
    let summary = |found: &[(&str, Verdict)]| {
        let text = doctor_text(&diagnosis(found), PLAIN);
        text.lines().next().unwrap().to_owned()
    };
    let unknown = ("smi", Verdict::Unknown("no counter".into()));
    let fine = ("smt", Verdict::Fine(found("active", Of::Number(0))));
    let low = (
        "skew-tick",
        Verdict::Wrong(found("skew_tick", Of::Text("0".into()))),
    );
    assert_eq!(
        summary(&[unknown, low.clone()]),
        "Undecided: found 1 low, and what weighs cannot be told of smi."
    );
    assert_eq!(
        summary(&[fine.clone(), low]),
        "Nothing of weight stands in the way: found 1 low."
    );
    assert_eq!(
        summary(&[fine]),
        "Nothing of weight stands in the way: nothing was found."
    );
}

fn schema(value: &Value) -> Result<(), String> {
    let schema = serde_json::from_str(include_str!("../../../../docs/schema/doctor-1.json"));
    let mut compiler = boon::Compiler::new();
    let name = "doctor-1.json";
    compiler.add_resource(name, schema.unwrap()).unwrap();
    let mut schemas = boon::Schemas::new();
    let index = compiler.compile(name, &mut schemas).unwrap();
    let found = schemas.validate(value, index);
    found.map_err(|error| error.to_string())
}

#[test]
fn what_is_printed_is_what_the_schema_describes() {
    let here = examine(&Machine::new(Path::new("/")), &|_| true);
    schema(&doctor_json(&here, &[])).unwrap();
    let sound = doctor_json(&several(), &["smi".into()]);
    schema(&sound).unwrap();
    assert_eq!(sound["verdict"], "unfit");
    assert_eq!(
        sound["checks"][2]["found"]["value"],
        json!({ "nanos": 50_000_000 })
    );
    assert_eq!(
        sound["checks"][3]["found"]["value"],
        json!({ "cpus": [2, 3] })
    );
    assert_eq!(sound["checks"][1]["cause"]["unreadable"]["path"], "/sys/x");
    for (path, wrong) in [
        ("/schema", json!("punctual.doctor/2")),
        ("/verdict", json!("fine")),
        ("/checks/0/verdict", json!("unknown")),
        ("/checks/0/found", json!(null)),
        ("/checks/1/reason", json!(null)),
        ("/checks/1/verdict", json!("fine")),
        ("/checks/2/found/value", json!(50_000_000)),
        ("/checks/2/found/value", json!({ "nanos": 1, "number": 1 })),
        ("/checks/0/severity", json!("grave")),
        ("/checks/0/source", json!("a forum")),
        ("/skipped", json!("smi")),
    ] {
        let mut broken = sound.clone();
        *broken.pointer_mut(path).unwrap() = wrong;
        assert!(schema(&broken).is_err(), "{path}");
    }
}
