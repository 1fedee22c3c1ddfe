// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs that several ask for, and campaigns.

use punctual_model::campaign::{Asked, Setting};

use super::*;

fn asked(summary: &str) -> Asked {
    Asked {
        name: "nightly".into(),
        summary: summary.into(),
        left_out: vec!["preempt=none".into()],
        settings: vec![Setting {
            name: "demo".into(),
            subjects: vec!["rt".into()],
            seeds: vec![1, u64::MAX],
        }],
    }
}

fn of_seed(seed: u64) -> Run {
    Run {
        seed,
        plan: format!("seed = {seed}"),
        ..begun()
    }
}

fn finished() -> End<'static> {
    End {
        digest: Some("0123456789abcdef"),
        ..ended(State::Finished)
    }
}

fn planned(seeds: &[u64]) -> Vec<PlannedRun> {
    let one = |seed: &u64| PlannedRun {
        setting: 0,
        subject: 0,
        seed: *seed,
        key: crate::key(&of_seed(*seed)),
    };
    seeds.iter().map(one).collect()
}

const SEEDS: &[u64] = &[1, u64::MAX];

#[test]
fn of_all_that_ask_for_a_run_one_measures_it() {
    let (_directory, store) = fresh();
    let run = of_seed(1);
    let Begun::New(id) = store.begin_unless_known(&run).unwrap() else {
        panic!("nobody has it");
    };
    let again = store.begin_unless_known(&run).unwrap();
    assert_eq!(again, Begun::Elsewhere(id.clone()));
    let other = store.begin_unless_known(&of_seed(2)).unwrap();
    assert!(matches!(other, Begun::New(_)), "{other:?}");
    store.end(&id, &finished()).unwrap();
    let again = store.begin_unless_known(&run).unwrap();
    assert_eq!(again, Begun::Known(id.clone()));
    // Words that ask for it, and when, make no other run of it.
    let later = Run {
        started: "2031-01-01T00:00:00Z".into(),
        ..run
    };
    assert_eq!(store.begin_unless_known(&later).unwrap(), Begun::Known(id));
}

#[test]
fn what_is_left_of_a_dead_process_or_failed_is_measured_again() {
    let (_directory, store) = fresh();
    let run = of_seed(1);
    let first = store.begin(&run).unwrap();
    let gone = "UPDATE runs SET owner_start = owner_start + 1";
    connection(&store).execute(gone, []).unwrap();
    let Begun::New(second) = store.begin_unless_known(&run).unwrap() else {
        panic!("its process is gone");
    };
    assert_ne!(first, second);
    store.end(&second, &ended(State::Failed)).unwrap();
    let third = store.begin_unless_known(&run).unwrap();
    assert!(matches!(third, Begun::New(_)), "{third:?}");
}

#[test]
fn threads_that_ask_for_the_same_runs_at_once_make_each_once() {
    let (_directory, store) = fresh();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for seed in 0..20 {
                    if let Begun::New(id) = store.begin_unless_known(&of_seed(seed)).unwrap() {
                        store.end(&id, &finished()).unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(store.list().unwrap().len(), 20);
}

#[test]
fn a_campaign_knows_its_runs_by_what_they_measure() {
    let (_directory, store) = fresh();
    let before = store.begin(&of_seed(1)).unwrap();
    store.end(&before, &finished()).unwrap();
    let id = store
        .begin_campaign(&asked("a"), &planned(SEEDS), "2026-01-01T00:00:00Z")
        .unwrap();
    assert_eq!(id, "c1");
    let now = store.campaign(&id).unwrap();
    assert_eq!(now.summary.asked, asked("a"));
    assert!(now.summary.is_under_way);
    assert_eq!((now.summary.runs, now.summary.finished), (2, 1));
    let at = |now: &Campaign| -> Vec<(u64, String, State)> {
        let at = now.runs.iter();
        at.map(|one| (one.seed, one.run.clone(), one.state))
            .collect()
    };
    assert_eq!(at(&now), [(1, before.clone(), State::Finished)]);
    // A later failure does not take the place of what is finished, and finished runs take that
    // of failures.
    let failed = store.begin(&of_seed(1)).unwrap();
    store.end(&failed, &ended(State::Failed)).unwrap();
    let failed = store.begin(&of_seed(u64::MAX)).unwrap();
    store.end(&failed, &ended(State::Failed)).unwrap();
    let second = store.begin(&of_seed(u64::MAX)).unwrap();
    let mut expected = [
        (1, before, State::Finished),
        (u64::MAX, second.clone(), State::Running),
    ];
    assert_eq!(at(&store.campaign(&id).unwrap()), expected);
    store.end(&second, &finished()).unwrap();
    expected[1].2 = State::Finished;
    assert_eq!(at(&store.campaign(&id).unwrap()), expected);

    store
        .end_campaign(&id, "2026-01-01T01:00:00Z", "all is well")
        .unwrap();
    let after = store.campaigns().unwrap().remove(0);
    assert!(!after.is_under_way);
    assert_eq!((after.finished, &*after.told), (2, "all is well"));
}

#[test]
fn the_same_campaign_is_taken_up_and_another_is_not() {
    let (_directory, store) = fresh();
    let begin = |asked: &Asked, at: &str| store.begin_campaign(asked, &planned(SEEDS), at).unwrap();
    let id = begin(&asked("a"), "2026-01-01T00:00:00Z");
    store
        .end_campaign(&id, "2026-01-01T01:00:00Z", "half")
        .unwrap();
    assert_eq!(begin(&asked("a"), "2026-01-02T00:00:00Z"), id);
    let again = store.campaign(&id).unwrap().summary;
    assert_eq!(again.begun, "2026-01-01T00:00:00Z");
    assert_eq!((again.ended, &*again.told, again.runs), (None, "", 2));
    assert_eq!(begin(&asked("b"), "2026-01-02T00:00:00Z"), "c2");
    // Whoever has taken it up says when it ends.
    let gone = "UPDATE campaigns SET owner_start = owner_start + 1 WHERE number = 1";
    connection(&store).execute(gone, []).unwrap();
    assert!(!store.campaign(&id).unwrap().summary.is_under_way);
    store
        .end_campaign(&id, "2026-01-03T00:00:00Z", "mine")
        .unwrap();
    assert_eq!(store.campaign(&id).unwrap().summary.ended, None);
    for unknown in ["c3", "c01", "r1", ""] {
        let error = store.campaign(unknown).unwrap_err();
        assert!(
            matches!(error, StoreError::UnknownCampaign { .. }),
            "{error}"
        );
    }
}

#[test]
fn a_damaged_campaign_hides_no_other_and_is_not_copied() {
    let ((_here, from), (_there, to)) = (fresh(), fresh());
    for summary in ["a", "b"] {
        let id = from.begin_campaign(&asked(summary), &planned(SEEDS), "2026-01-01T00:00:00Z");
        from.end_campaign(&id.unwrap(), "2026-01-01T01:00:00Z", summary)
            .unwrap();
    }
    let change = "UPDATE campaigns SET body = '{}' WHERE number = 1";
    connection(&from).execute(change, []).unwrap();
    let all = from.campaigns().unwrap();
    let names: Vec<_> = all.iter().map(|one| (&*one.asked.name, one.runs)).collect();
    assert_eq!(names, [("nightly", 2), ("nightly", 2)]);
    assert_eq!(all[0].asked.summary, "b");
    let why = &all[1].asked.summary;
    let expected = "campaign c1: what it asks for is damaged (expected checksum ";
    assert!(why.starts_with(expected), "{why}");
    let one = from.campaign("c1");
    assert!(matches!(one, Err(StoreError::Campaign { .. })), "{one:?}");
    let mut told = Vec::new();
    from.copy_into(&to, |one| {
        told.push(one);
        Ok(())
    })
    .unwrap();
    let name = "nightly".to_owned();
    let damaged = Transferred::Damaged {
        from: "c1".into(),
        why: why.clone(),
    };
    assert_eq!(told, [damaged, Transferred::Campaign { name }]);
    assert_eq!(to.campaigns().unwrap().len(), 1);
}

#[test]
fn a_campaign_whose_request_is_no_text_hides_no_other() {
    let (_here, store) = fresh();
    for summary in ["a", "b"] {
        let id = store.begin_campaign(&asked(summary), &planned(SEEDS), "2026-01-01T00:00:00Z");
        id.unwrap();
    }
    let change = "UPDATE campaigns SET body = CAST(x'ff' AS TEXT) WHERE number = 1";
    connection(&store).execute(change, []).unwrap();
    let all = store.campaigns().unwrap();
    assert_eq!(all[0].asked.summary, "b");
    let why = &all[1].asked.summary;
    let expected = "campaign c1: what it asks for is damaged (";
    assert!(why.starts_with(expected), "{why}");
}

#[test]
fn campaigns_are_copied_once() {
    let ((_here, from), (_there, to)) = (fresh(), fresh());
    for summary in ["a", "b"] {
        let id = from.begin_campaign(&asked(summary), &planned(SEEDS), "2026-01-01T00:00:00Z");
        from.end_campaign(&id.unwrap(), "2026-01-01T01:00:00Z", summary)
            .unwrap();
    }
    from.begin_campaign(&asked("under way"), &[], "2026-01-01T00:00:00Z")
        .unwrap();
    for _ in 0..2 {
        let mut told = Vec::new();
        let each = |one| {
            told.push(one);
            Ok(())
        };
        from.copy_into(&to, each).unwrap();
        let name = || "nightly".to_owned();
        let copied = || Transferred::Campaign { name: name() };
        let left_out = Transferred::CampaignUnderWay { name: name() };
        assert_eq!(told, [copied(), copied(), left_out]);
        let there = to.campaigns().unwrap();
        let there: Vec<_> = there
            .iter()
            .rev()
            .map(|one| (&*one.told, one.runs))
            .collect();
        assert_eq!(there, [("a", 2), ("b", 2)]);
    }
}
