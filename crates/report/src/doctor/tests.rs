// SPDX-License-Identifier: MIT OR Apache-2.0
//! A diagnosis in all its forms, of this machine and of findings made by hand.

use std::path::Path;

use punctual_doctor::{Machine, examine};
use unicode_width::UnicodeWidthStr as _;

use super::*;
use crate::fixtures;
use crate::text::exact;

/// Findings of these checks, in this order.
fn diagnosis(found: &[(&str, Verdict)]) -> Diagnosis {
    let one = |(id, verdict): &(&str, Verdict)| {
        let mut all = ALL.into_iter().flatten();
        let check = all.find(|check| check.id == *id).expect("a check");
        let verdict = verdict.clone();
        let severity = check.severity;
        Finding {
            check,
            severity,
            verdict,
        }
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
    all: true,
    steps: &[],
    purpose: None,
};

#[test]
fn a_summary_comes_first_then_what_is_wrong_by_weight() {
    let text = doctor_text(&several(), PLAIN);
    let expected = "\
Unfit for real-time work: found 1 fatal and 3 medium.
Checks: 1 fine, 4 wrong, 1 unknown, 1 not for this machine; 47 not asked for.

fatal   preempt-rt
        wanted   the kernel has PREEMPT_RT
        found    /proc/version: [5mPREEMPT
        do       boot a kernel with CONFIG_PREEMPT_RT=y: Debian's
";
    assert!(text.starts_with(expected), "{text}");
    let at = |word: &str| text.find(word).expect(word);
    assert!(at("50.0 ms") < at("because /sys/x: no such file"));
    let all = doctor_text(&several(), PLAIN);
    let short = doctor_text(
        &several(),
        Look {
            all: false,
            ..PLAIN
        },
    );
    let names = "\
Wrong: preempt-rt, fair-server, rt-throttling, fifo-99.
Not known: governor.
Fine: isolcpus.
Not for this machine: swappiness.
";
    assert!(short.contains(names), "{short}");
    assert!(!short.contains("because"), "{short}");
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
                all,
                ..PLAIN
            };
            let text = doctor_text(&here, look) + &doctor_text(&several(), look);
            let longest = text.lines().map(str::width).max();
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

/// First steps come before findings, and the checks that one step settles stand under it.
#[test]
fn the_first_steps_are_commands_of_each_system() {
    let model = Verdict::Wrong(found("preempt", Of::Text("none".into())));
    let stock = diagnosis(&[
        (
            "preempt-rt",
            Verdict::Wrong(found("version", Of::Text("PREEMPT".into()))),
        ),
        ("preemption-model", model.clone()),
        (
            "governor",
            Verdict::Wrong(found("governor", Of::Names(vec!["powersave".into()]))),
        ),
        (
            "swappiness",
            Verdict::Wrong(found("vm.swappiness", Of::Number(60))),
        ),
        (
            "graphics",
            Verdict::Wrong(found("cards", Of::Names(vec!["card0".into()]))),
        ),
    ]);
    let empty = tempfile::tempdir().unwrap();
    let nowhere = Machine::new(empty.path());
    let steps = stock.first_steps(&nowhere, 3);
    let text = doctor_text(
        &stock,
        Look {
            all: false,
            steps: &steps,
            ..PLAIN
        },
    );
    let expected = "\
Do these first, in this order:
1. Install a kernel with PREEMPT_RT (preempt-rt; settles preemption-model, too)
   Debian:
     sudo apt install linux-image-rt-$(dpkg --print-architecture)
   Ubuntu:
     sudo pro attach   # Ubuntu Pro is free for one's own few machines
     sudo pro enable realtime-kernel   # LTS releases only
   Raspberry Pi OS:
     sudo apt install linux-image-rpi-v8-rt
     test -e /boot/firmware/kernel8_rt.img && \\
       printf '[all]\\nkernel=kernel8_rt.img\\n' | \\
       sudo tee -a /boot/firmware/config.txt
2. Keep the CPUs at full speed (governor)
     echo performance | \\
       sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor
     # holds until the next boot; for good, boot with
     # cpufreq.default_governor=performance
3. Swap less (swappiness)
     echo vm.swappiness=10 | \\
       sudo tee -a /etc/sysctl.d/99-realtime.conf
     sudo sysctl --system
Then restart the machine (`sudo reboot`), and run `punctual doctor` again.
";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("\nAlso wrong: graphics.\n"), "{text}");
    // For sound the model weighs more than PREEMPT_RT, and is no part of it.
    let sound = stock.weighed(Purpose::Audio);
    let steps = sound.first_steps(&nowhere, 1);
    assert_eq!(
        (steps[0].check, &steps[0].settles[..]),
        ("preemption-model", &[][..])
    );
    let text = doctor_text(
        &sound,
        Look {
            purpose: Some(Purpose::Audio),
            steps: &steps,
            ..PLAIN
        },
    );
    assert!(text.starts_with("Unfit for sound: found 2 high"), "{text}");
    assert!(text.contains("\n  misses six periods in a row"), "{text}");
}

/// Returns the first steps on a machine of which nothing is known.
fn nowhere_steps(diagnosis: &Diagnosis) -> Vec<Step> {
    let empty = tempfile::tempdir().unwrap();
    diagnosis.first_steps(&Machine::new(empty.path()), 3)
}

/// A page has everything that `--all` prints, and strangers' words are text there.
#[test]
fn a_page_has_the_steps_and_each_finding() {
    let several = several();
    let steps = nowhere_steps(&several);
    let look = Look {
        all: false,
        steps: &steps,
        ..PLAIN
    };
    let page = doctor_page(&several, look, Some(&trials()));
    for one in &several.0 {
        assert!(page.contains(one.check.id), "{}", one.check.id);
    }
    for said in [
        "Doctor: Unfit for real-time work: found 1 fatal and 3 medium",
        "<h2 id=\"c0\">Do these first, in this order</h2>",
        "sudo apt install linux-image-rt-$(dpkg --print-architecture)",
        "no such file",
        "there is no swap",
        "it buys this: of 5 seeds",
        "and run <code>punctual doctor</code> again.",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    assert!(!page.contains('\u{1b}'));
    let none = doctor_page(&diagnosis(&[]), PLAIN, None);
    assert!(!none.contains("<h2"), "{none}");
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
        "Undecided: found 1 low, and smi is unknown."
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

/// `none`, and measurements with one option that buys nothing and one that buys much.
fn trials() -> Vec<Tried> {
    let mut runs = fixtures::seeds(5);
    for run in &mut runs {
        run.recordings.retain(|one| one.key.load == "stress");
        run.steps.clear();
        run.subject.name = match run.subject.name.as_str() {
            "rt" => "rt".to_owned(),
            "none" => "none".to_owned(),
            "voluntary" => "none nothing=1".to_owned(),
            _ => continue,
        };
    }
    runs.retain(|run| run.subject.name != "full");
    let of = |id| {
        ALL.into_iter()
            .flatten()
            .find(|check| check.id == id)
            .unwrap()
    };
    let names = ["none", "none nothing=1", "rt"].map(str::to_owned);
    let rule = crate::gate::rule_of_each(2);
    tried(&runs, &[of("threadirqs"), of("preempt-rt")], &names, rule).unwrap()
}

#[test]
fn what_an_option_buys_is_told_in_nanoseconds_and_what_is_chance_is_not() {
    let mut trials = trials();
    assert_eq!(trials.len(), 2);
    let text = trials_text(&trials, &several(), 80);
    let summary =
        "\nTried: 2; the worst sample is lower with preempt-rt; nothing can be told of 1.\n";
    assert!(text.contains(summary), "{text}");
    let (nothing, rt) = text.split_once("\nrt (preempt-rt)\n").expect("rt");
    assert!(
        nothing.contains("\nnothing=1 (threadirqs)\n  timer, stress, cpu0, none\n"),
        "{text}"
    );
    assert!(
        nothing.contains("nothing that can be told apart from chance"),
        "{text}"
    );
    assert!(
        rt.contains("it buys this: of 5 seeds, the worst sample with it is lower"),
        "{text}"
    );
    for (one, (name, without, with)) in trials.iter().map(|one| (one, one.figures[0])) {
        let by = exact(Nanos(with.0 - without.0));
        let line = [name, &exact(without), &exact(with), &by].map(str::to_owned);
        let is_it = |own: &str| own.split_whitespace().eq(line.iter().map(String::as_str));
        assert!(text.lines().any(is_it), "{line:?}: {text}");
        assert!(one.seeds == 5 && text.lines().all(|line| line.width() <= 80));
    }
    assert!(
        !text.contains("\n  governor: "),
        "only of what is wrong: {text}"
    );
    assert!(
        text.contains("\n  fair-server: no boot argument turns it off\n"),
        "{text}"
    );
    let story = |run: &str| (run.to_owned(), Err("no plugin".to_owned()));
    trials[1].why = Some(Why {
        without: story("r1"),
        with: story("r16"),
    });
    let text = trials_text(&trials, &several(), 80);
    assert!(
        text.contains("the worst without it (r1): not explained: no plugin\n"),
        "{text}"
    );
    let json = doctor_json(&several(), None, &[], &[], Some(&trials));
    schema(&json).unwrap();
    assert_eq!(json["trials"][1]["verdict"]["verdict"], "lower");
    assert_eq!(json["trials"][0]["option"], "nothing=1");
    let mut broken = json.clone();
    broken["trials"][0]["figures"][0]["with_ns"] = json!("4 us");
    assert!(schema(&broken).is_err());
}

#[test]
fn what_behaves_the_same_buys_nothing_and_too_few_runs_tell_nothing() {
    let mut runs = fixtures::seeds(5);
    runs.retain(|run| ["none", "rt"].contains(&run.subject.name.as_str()));
    let check = ALL
        .into_iter()
        .flatten()
        .find(|check| check.id == "no-hz")
        .unwrap();
    let told = |runs: &[punctual_model::Run]| {
        let names = ["none", "rt"].map(str::to_owned);
        let trials = tried(runs, &[check], &names, crate::gate::rule_of_each(1)).unwrap();
        trials_text(&trials, &several(), 200)
    };
    let few: Vec<_> = runs.iter().filter(|run| run.seed < 3).cloned().collect();
    assert!(
        told(&few).contains("nothing can be told: of 2 seeds"),
        "{}",
        told(&few)
    );
    let same: Vec<_> = runs[..5]
        .iter()
        .cloned()
        .map(|mut run| {
            run.subject.name = "rt".into();
            run.id = format!("rt-{}", run.seed);
            run
        })
        .chain(runs[..5].iter().cloned())
        .collect();
    let text = told(&same);
    assert!(
        text.contains("it buys nothing, to the last sample"),
        "{text}"
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
    let machine = Machine::new(Path::new("/"));
    let steps = here.first_steps(&machine, 3);
    let audio = Some(Purpose::Audio);
    schema(&doctor_json(&here, audio, &steps, &[], None)).unwrap();
    let sound = doctor_json(
        &several(),
        None,
        &nowhere_steps(&several()),
        &["smi".into()],
        None,
    );
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
        ("/purpose", json!("music")),
        ("/steps/0/commands/0/system", json!("plan9")),
        ("/steps/0/commands/0/lines", json!("sudo")),
        ("/steps/0/reboot", json!(null)),
    ] {
        let mut broken = sound.clone();
        *broken.pointer_mut(path).unwrap() = wrong;
        assert!(schema(&broken).is_err(), "{path}");
    }
}

#[test]
fn the_schema_is_what_the_type_says() {
    crate::schema::assert_is_of::<Document<'_>>(
        "doctor-1.json",
        "Obstacles to real-time work on a machine: what `punctual doctor --json` prints",
    );
}
