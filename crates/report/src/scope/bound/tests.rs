// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bound from a survey made by hand.

use punctual_model::Preemption;
use punctual_model::record::Provenance;
use punctual_scope::bound::bound;
use punctual_scope::survey::{Delay, DelayKind, Delays, Interrupt, Survey};

use super::*;
use crate::fixtures;

/// The run `r1` with this preemption model.
fn run(preemption: Preemption) -> Run {
    let mut run = fixtures::seeds(1).remove(3);
    run.id = "r1".into();
    run.provenance = Some(Provenance {
        release: "6.12".into(),
        version: "#1".into(),
        cmdline: String::new(),
        preemption,
        tsc_khz: None,
        facts: punctual_model::Facts::new(),
    });
    run
}

fn survey() -> Survey {
    let delay = |kind, longest| Delay {
        kind,
        count: 3,
        longest: Nanos(longest),
        step: 0,
        path: vec!["entry_SYSCALL_64".into(), "worker".into()],
        most: Some(("worker".into(), Nanos(longest / 2))),
    };
    let lengths = [4_000, 30, 9_000, 8_000];
    let longest = DelayKind::ALL.into_iter().zip(lengths);
    Survey {
        cpus: 1,
        unknown: Vec::new(),
        hotspots: Vec::new(),
        instructions: 1_234_567,
        mended: 0,
        delays: Delays {
            longest: longest
                .map(|(kind, longest)| delay(kind, longest))
                .collect(),
            vectors: vec!["asm_sysvec_apic_timer_interrupt".into()],
            interrupts: vec![Interrupt {
                at: Nanos(5),
                length: Nanos(1_000),
                vector: 0,
                sleeps: 0,
            }],
            way_back: [(0, Nanos(500))].into(),
            detours: 1,
        },
    }
}

fn of(run: &Run) -> Bound {
    bound(&[(run, survey())])
}

#[test]
fn a_bound_is_told_with_all_that_it_is_made_of() {
    let run = run(Preemption::Rt);
    let text = bound_text(std::slice::from_ref(&run), &of(&run), 100);
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    for line in [
        "D_POID 4,000 r1, step 1; 3 times",
        "entry_SYSCALL_64 › worker",
        "most of it in worker: 4,500",
        // max(8,000, 4,000) + 30 + 9,000; then an interrupt, the way back and the timer's grain.
        "none 17,030 17,630",
        "sliding window 18,030 18,630",
        "The model was left 1 times",
    ] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
}

#[test]
fn where_the_model_does_not_fit_no_bound_is_told() {
    let run = run(Preemption::Full);
    let runs = std::slice::from_ref(&run);
    let text = bound_text(runs, &of(&run), 80);
    assert!(
        text.contains("No bound: the kernel of r1 is not PREEMPT_RT"),
        "{text}"
    );
    assert!(!text.contains("sliding window"), "{text}");
    assert_eq!(bound_json(runs, &of(&run))["bounds"], json!([]));
    assert!(bound_page(runs, &of(&run)).contains("No bound: "));
}

#[test]
fn samples_are_told_where_there_is_no_bound() {
    let run = run(Preemption::Full);
    let runs = std::slice::from_ref(&run);
    let mut bound = of(&run);
    let sample = |late, second| {
        Some(Observed {
            run: "r1".into(),
            recording: "timer, stress, cpu0".into(),
            late: Nanos(late),
            parts: None,
            second,
        })
    };
    bound.observed = sample(9_000, None);
    bound.reached = sample(12_000, Some(Nanos(700)));
    let (text, page) = (bound_text(runs, &bound, 200), bound_page(runs, &bound));
    for told in [
        "Worst sample: 9,000 ns (r1, timer, stress, cpu0).",
        "Latest aimed sample: 12,000 ns (r1, timer, stress, cpu0), with a second timer due 700 ns \
         after its own.",
    ] {
        assert!(text.contains(told), "{text}");
        assert!(page.contains(told), "{page}");
    }
}

/// Anything missed may have been longer than everything seen.
#[test]
fn where_something_was_missed_no_bound_is_told() {
    let run = run(Preemption::Rt);
    let mended = Survey {
        mended: 2,
        ..survey()
    };
    let bound = bound(&[(&run, mended)]);
    let runs = std::slice::from_ref(&run);
    let text = bound_text(runs, &bound, 80);
    for line in ["No bound: what is off was not followed", "2 times"] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
    assert!(!text.contains("sliding window"), "{text}");
    let value = bound_json(runs, &bound);
    assert_eq!(value["bounds"], json!([]));
    assert_eq!(value["mended"], 2);
}

#[test]
fn what_is_printed_is_what_the_schema_describes() {
    let schema = |value: &_| {
        let text = include_str!("../../../../../docs/schema/bound-1.json");
        crate::schema::check("bound-1.json", text, value)
    };
    for preemption in [Preemption::Rt, Preemption::None] {
        let run = run(preemption);
        let mut value = bound_json(std::slice::from_ref(&run), &of(&run));
        schema(&value).unwrap();
        value["delays"][0]["longest"] = json!("long");
        assert!(schema(&value).is_err());
    }
}

/// In the bound with the most interference, a sample had the section, and no interrupt.
#[test]
fn what_never_met_in_an_aimed_sample_is_said() {
    let run = run(Preemption::Rt);
    let mut bound = of(&run);
    let reached = |parts| {
        Some(Observed {
            run: "r1".into(),
            recording: "timer, stress, cpu0".into(),
            late: Nanos(12_000),
            parts,
            second: None,
        })
    };
    bound.reached = reached(None);
    let text = bound_text(std::slice::from_ref(&run), &bound, 100);
    assert!(
        text.contains("Latest aimed sample: 12,000 ns") && !text.contains("never met"),
        "{text}"
    );
    bound.reached = reached(Some((Nanos(7_900), Nanos::ZERO)));
    let parts = bound.apart();
    let sum = |of: fn(&Apart) -> Nanos| parts.iter().fold(Nanos::ZERO, |sum, one| sum + of(one));
    let most = bound.latencies.iter().filter_map(|one| one.sampled).max();
    assert_eq!(Some(sum(|one| one.bound)), most);
    assert_eq!(sum(|one| one.reached), Nanos(12_000));
    let text = bound_text(std::slice::from_ref(&run), &bound, 100);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("These never met in an aimed sample: the path (9,630 ns, reached 4,100 ns)"),
        "{text}"
    );
    let json = bound_json(std::slice::from_ref(&run), &bound);
    crate::schema::check(
        "bound-1.json",
        include_str!("../../../../../docs/schema/bound-1.json"),
        &json,
    )
    .unwrap();
}

#[test]
fn the_schema_is_what_the_type_says() {
    crate::schema::assert_is_of::<Document<'_>>(
        "bound-1.json",
        "A bound of the scheduling latency: what `punctual bound --json` prints",
    );
}
