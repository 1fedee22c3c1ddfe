// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of one store in another, and a choice of many.

use super::*;

/// Adds a run that has ended, with something in each of its parts.
fn add_whole(store: &Store, seed: u64, kernel: &str) -> String {
    let mut run = Run {
        seed,
        provenance: Some(provenance()),
        steps: vec![step()],
        recordings: recordings(2),
        unsupported: vec![unsupported()],
        ..begun()
    };
    run.subject.kernel = kernel.into();
    let id = store.begin(&run).unwrap();
    let digest = punctual_model::digest::digest(&run.recordings, &run.steps, &run.unsupported);
    let end = End {
        console: "a\0b",
        digest: Some(&digest),
        ..ended(State::Finished)
    };
    store.end(&id, &end).unwrap();
    id
}

fn copy(from: &Store, to: &Store) -> Vec<Transferred> {
    let mut all = Vec::new();
    let each = |one| {
        all.push(one);
        Ok(())
    };
    from.copy_into(to, each).unwrap();
    all
}

#[test]
fn a_copy_is_the_same_and_a_second_one_changes_nothing() {
    let ((_a, from), (_b, to)) = (fresh(), fresh());
    for seed in 1..=3 {
        add_whole(&from, seed, "mine");
    }
    from.remove("r2").unwrap();
    let story = Story {
        made: STARTED.into(),
        told: "late".into(),
        json: "{}".into(),
    };
    from.add_story("r3", &story).unwrap();
    from.add_story("r3", &story).unwrap();
    from.set_baseline("stable", &["r3".into(), "r1".into()])
        .unwrap();
    let running = from.begin(&begun()).unwrap();
    let copied = |id: &str| Transferred::Copied {
        from: id.into(),
        to: id.into(),
    };
    let baseline = Transferred::Baseline {
        name: "stable".into(),
    };
    let expected = [
        copied("r1"),
        copied("r3"),
        Transferred::Running { from: running },
        baseline.clone(),
    ];
    assert_eq!(copy(&from, &to), expected);
    for id in ["r1", "r3"] {
        assert_eq!(to.load(id).unwrap(), from.load(id).unwrap());
    }
    assert_eq!(to.baseline("stable").unwrap(), ["r3", "r1"]);
    assert_eq!(to.stories("r3").unwrap(), std::slice::from_ref(&story));
    let again = copy(&from, &to);
    assert!(
        again
            .iter()
            .all(|one| !matches!(one, Transferred::Copied { .. }))
    );
    assert!(again.contains(&baseline));
    // A story that was told since.
    let later = Story {
        json: "{\"later\": true}".into(),
        ..story.clone()
    };
    from.add_story("r3", &later).unwrap();
    let known = |stories| Transferred::Known {
        from: "r3".into(),
        to: "r3".into(),
        stories,
    };
    assert!(copy(&from, &to).contains(&known(1)));
    assert!(copy(&from, &to).contains(&known(0)));
    assert_eq!(to.stories("r3").unwrap(), [story, later]);
    // And back: nothing is new there.
    assert!(
        copy(&to, &from)
            .iter()
            .all(|one| !matches!(one, Transferred::Copied { .. }))
    );
    assert_eq!(to.list().unwrap().len(), 2);
}

#[test]
fn a_run_keeps_its_id_only_where_nobody_had_it() {
    let ((_a, from), (_b, to)) = (fresh(), fresh());
    let own = add_whole(&to, 7, "mine");
    add_whole(&from, 1, "mine");
    add_whole(&from, 2, "mine");
    let ids: Vec<_> = copy(&from, &to).into_iter().collect();
    let moved = |from: &str, to: &str| Transferred::Copied {
        from: from.into(),
        to: to.into(),
    };
    assert_eq!(ids, [moved("r1", "r2"), moved("r2", "r3")]);
    assert_eq!(to.load(&own).unwrap().seed, 7);
    assert_eq!(to.load("r3").unwrap().seed, 2);
    assert_eq!(add_finished(&to), "r4");
    // A baseline of the same name with other runs stays.
    to.set_baseline("stable", &[own]).unwrap();
    from.set_baseline("stable", &["r1".into()]).unwrap();
    let other = Transferred::OtherBaseline {
        name: "stable".into(),
    };
    assert!(copy(&from, &to).contains(&other));
    assert_eq!(to.baseline("stable").unwrap(), ["r1"]);
}

#[test]
fn what_is_damaged_is_not_copied() {
    let ((_a, from), (_b, to)) = (fresh(), fresh());
    for seed in 1..=3 {
        add_whole(&from, seed, "mine");
    }
    let damage = connection(&from);
    damage
        .execute("UPDATE runs SET seed = 9 WHERE number = 1", [])
        .unwrap();
    let change = "UPDATE recordings SET crc = crc + 1 WHERE run = 2";
    assert!(damage.execute(change, []).unwrap() > 0);
    drop(damage);
    let mut damaged = Vec::new();
    from.copy_into(&to, |one| {
        if let Transferred::Damaged { from, .. } = one {
            damaged.push(from);
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(damaged, ["r1", "r2"]);
    // The rest is copied.
    let there: Vec<u64> = to.list().unwrap().iter().map(|one| one.seed).collect();
    assert_eq!(there, [3]);
}

#[test]
fn damage_of_any_kind_is_named_with_its_run_and_keeps_no_other_back() {
    let ((_a, from), (_b, to)) = (fresh(), fresh());
    for seed in 1..=5 {
        add_whole(&from, seed, "mine");
    }
    let story = Story {
        made: STARTED.into(),
        told: "late".into(),
        json: "{}".into(),
    };
    from.add_story("r4", &story).unwrap();
    for change in [
        "UPDATE recordings SET probe = CAST(x'ff' AS TEXT) WHERE run = 1",
        "UPDATE runs SET key = CAST(x'ff' AS TEXT) WHERE number = 2",
        "UPDATE unsupported SET reason = CAST(x'ff' AS TEXT) WHERE run = 3",
        "UPDATE stories SET body = '[]' WHERE run = 4",
    ] {
        let changed = connection(&from).execute(change, []).unwrap();
        assert!(changed > 0, "{change}");
    }
    let mut damaged = Vec::new();
    from.copy_into(&to, |one| {
        if let Transferred::Damaged { from, why } = one {
            assert!(why.starts_with(&format!("run {from}: ")), "{why}");
            damaged.push(from);
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(damaged, ["r1", "r2", "r3", "r4"]);
    let there: Vec<u64> = to.list().unwrap().iter().map(|one| one.seed).collect();
    assert_eq!(there, [5]);
}

#[test]
fn a_page_has_what_a_filter_lets_through() {
    let (_directory, store) = fresh();
    for seed in 1..=10 {
        add_whole(&store, seed, if seed % 2 == 0 { "even" } else { "odd" });
    }
    let running = store.begin(&begun()).unwrap();
    let longest = store.longest(&["r2", &running, "r99", "mine"]).unwrap();
    let run = store.load("r2").unwrap();
    let own = run.recordings.iter().map(|one| (&one.key.probe, one.max()));
    let found = longest.iter().map(|one| (&one.key.probe, Some(one.value)));
    assert!(longest.iter().all(|one| one.run == "r2") && !longest.is_empty());
    assert!(found.eq(own));
    let ids = |filter: &Filter, before, limit| -> Vec<String> {
        let page = store.page(filter, before, limit).unwrap();
        page.into_iter().map(|run| run.id).collect()
    };
    let even = Filter {
        kernel: Some("even".into()),
        ..Filter::default()
    };
    assert_eq!(ids(&even, None, 2), ["r10", "r8"]);
    assert_eq!(ids(&even, Some("r8"), 9), ["r6", "r4", "r2"]);
    let state = |state| Filter {
        state: Some(state),
        ..Filter::default()
    };
    assert_eq!(ids(&state(State::Running), None, 9), [&*running]);
    assert_eq!(ids(&state(State::Interrupted), None, 9), [""; 0]);
    // Its owner is gone.
    let change = "UPDATE runs SET owner_start = owner_start + 1 WHERE number = 11";
    connection(&store).execute(change, []).unwrap();
    assert_eq!(ids(&state(State::Interrupted), None, 9), [&*running]);
    assert_eq!(ids(&state(State::Running), None, 9), [""; 0]);
    let probe = |probe: &str| Filter {
        probe: Some(probe.into()),
        ..Filter::default()
    };
    assert_eq!(ids(&probe("timer"), None, 99).len(), 10);
    assert_eq!(ids(&probe("tick"), None, 99).len(), 0);
    let date = |from: &str, until: &str| Filter {
        from: Some(from.into()),
        until: Some(until.into()),
        ..Filter::default()
    };
    assert_eq!(ids(&date("2026-01-01", "2026-01-02"), None, 99).len(), 11);
    assert_eq!(ids(&date("2026-01-02", "2027"), None, 99).len(), 0);
    let host = Filter {
        host: Some(Owner::this().unwrap().host),
        ..Filter::default()
    };
    assert_eq!(ids(&host, None, 99).len(), 11);
    assert_eq!(store.newest().unwrap(), Some(running));
}

#[test]
fn what_is_opened_to_be_read_is_not_written() {
    let (_directory, store) = fresh();
    add_finished(&store);
    let reader = Store::open_to_read(store.place()).unwrap();
    assert_eq!(reader.list().unwrap().len(), 1);
    assert!(reader.begin(&begun()).is_err() && reader.remove("r1").is_err());
    assert_eq!(store.list().unwrap().len(), 1);
    let (_nowhere, path) = scratch();
    let error = Store::open_to_read(&path.clone().into()).unwrap_err();
    assert!(matches!(error, StoreError::NoStore(_)) && !path.exists());
}
