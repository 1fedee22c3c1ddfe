// SPDX-License-Identifier: MIT OR Apache-2.0
use punctual_judge::{Baselines, judge};
use punctual_model::limit::Demand;
use punctual_model::probe::SampleSpan;
use punctual_model::record::Unsupported;
use punctual_model::{Limit, Nanos, Run};
use punctual_scope::breakdown::{Breakdown, Cause, FunctionTime, Part, PathStage};
use punctual_scope::explain::{Explained, Wanted};

use super::*;
use crate::fixtures::{self, PLAN, changed};
use crate::gate::{Gate, TOLERANCE, Terms, gated};
use crate::judgement::Stories;
use crate::why::Why;

/// Five runs of a package's kernel, each of their times changed by seed.
fn runs(id: &str, kernel: &str, change: &dyn Fn(u64, i64) -> i64) -> Vec<Run> {
    let run = |seed| {
        let mut run = fixtures::run("rt", seed);
        run.id = format!("{id}{seed}");
        run.plan = PLAN.into();
        run.subject.name = kernel.into();
        run.subject.kernel = kernel.into();
        fixtures::virtual_machine(&mut run).origin =
            format!("debian package linux-image-{kernel} 6.12.90-1");
        for recording in &mut run.recordings {
            *recording = changed(recording, &|value| change(seed, value));
        }
        run
    };
    (1..=5).map(run).collect()
}

/// The path got longer by 500 ns; the worst sample differs by seed.
fn longer(seed: u64, value: i64) -> i64 {
    let by_seed = if value > 5_000 {
        seed as i64 % 3 * 2_000
    } else {
        0
    };
    value + 500 + by_seed
}

fn gate(there: &[Run], here: &[Run]) -> Gate {
    let [own, other] = [here, there].map(|runs| runs.iter().collect::<Vec<_>>());
    Gate {
        suite: "demo".into(),
        baseline: "stable".into(),
        subjects: vec![gated(&other, &own, Vec::new(), &Terms::default()).unwrap()],
        tolerance: TOLERANCE,
        again: None,
        decide: None,
    }
}

/// The worst sample of a run's first recording, which this function held up for so long.
fn story(run: &Run, function: &str, time: i64) -> (Run, crate::scope::Story) {
    let wanted = Wanted {
        worst: 1,
        ..Wanted::default()
    };
    let part = Part {
        stage: PathStage::Interrupt,
        cause: Cause::IrqsOff,
        from: Nanos::ZERO,
        length: Nanos(time),
        by: None,
        cpu: None,
        thread: "busybox-12".into(),
        main: Some(FunctionTime {
            function: function.into(),
            caller: Some("ksys_read".into()),
            time: Nanos(time),
            whole: Nanos(time),
            times: 1,
        }),
        within: Vec::new(),
    };
    let told = Breakdown {
        culprit: Some(0),
        parts: vec![part],
        flame: vec![(format!("ksys_read;{function}"), Nanos(time))],
        ..Breakdown::empty(SampleSpan::Lateness, Nanos(time + 800))
    };
    let explained = Explained {
        chosen: wanted.choose(run).unwrap()[0],
        breakdown: Ok(told),
    };
    (run.clone(), Ok(explained))
}

/// Checks what holds of every mail, and returns its text.
#[track_caller]
fn checked(mail: &Mail) -> String {
    let text = mail.text();
    assert!(text.lines().count() <= LINES, "{text}");
    for line in text.lines() {
        assert!(line.len() <= COLUMNS && line.is_ascii(), "{line}\n{text}");
        assert_eq!(line, line.trim_end(), "{text}");
    }
    let mut lines = text.lines();
    assert!(lines.next().unwrap().starts_with("Subject: "), "{text}");
    assert_eq!(lines.next(), Some(""), "a header, and no other");
    text
}

/// Asserts that a mail equals the one in `src/mail/tests`, to the last letter.
#[track_caller]
fn assert_is(mail: &Mail, name: &str) {
    let file = format!("{}/src/mail/tests/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    let text = checked(mail);
    assert!(text == expected, "{file} is not\n{text}");
}

#[test]
fn what_got_worse_is_told_with_its_function_and_how_to_repeat_it() {
    let there = runs("r", "debian-6.12", &|_, value| value);
    let here = runs("n", "debian-6.12-rt", &longer);
    let mut gate = gate(&there, &here);
    let one = &mut gate.subjects[0];
    one.why = Some(Why {
        row: one.worst().unwrap(),
        here: story(&here[0], "fill_pool (loop.c:41) [loop]", 4_100),
        there: story(&there[0], "fill_pool (loop.c:41) [loop]", 3_600),
        profiles: None,
    });
    let mail = mail_of_gate(&gate, &there, &here, None);
    assert_is(&mail, "worse");
}

#[test]
fn what_is_undecided_and_what_is_missing_is_told_beside_what_got_worse() {
    let there = runs("r", "debian-6.12", &|_, value| value);
    let mut here = runs("n", "mine", &longer);
    for run in &mut here {
        fixtures::virtual_machine(run).origin =
            "built from /home/me/linux at v6.13-rc1, configuration of debian-6.12".into();
        run.subject.boot = "threadirqs preempt=full".into();
        run.recordings.remove(2);
        run.unsupported.push(Unsupported {
            step: 2,
            probe: "hackbench".into(),
            load: "idle".into(),
            reason: "no sockets".into(),
        });
    }
    // Under load the seeds say different things.
    for (run, per_cent) in here.iter_mut().zip([50, 190, 70, 160, 110]) {
        let own = &there[0].recordings[1];
        run.recordings[1] = changed(own, &|value| {
            if value > 4_000 {
                value * per_cent / 100
            } else {
                value
            }
        });
    }
    let mail = mail_of_gate(&gate(&there, &here), &there, &here, None);
    assert_is(&mail, "undecided");
}

#[test]
fn what_is_unchanged_says_by_what() {
    let there = runs("r", "debian-6.12", &|_, value| value);
    let here = runs("n", "debian-6.12", &|_, value| value);
    let mail = mail_of_gate(&gate(&there, &here), &there, &here, None);
    assert_is(&mail, "unchanged");
}

fn case(outcome: Outcome, word: &str, number: usize) -> Told {
    Told {
        outcome,
        sentence: format!("{word}: timer, load{number}, cpu0: median 4.15 → 4.66 µs, 1.12×."),
        blame: vec![format!("After: `f{number}` ran 3 µs with interrupts off.")],
    }
}

fn of_cases(cases: Vec<Told>) -> Mail {
    let runs = runs("r", "debian-6.12", &|_, value| value);
    let runs: Vec<&Run> = runs.iter().collect();
    Mail {
        verdict: "worse".into(),
        title: "timer, load0, cpu0: median 4.15 → 4.66 µs".into(),
        about: counts(&cases, "worse", "not worse"),
        cases,
        again: again(&runs),
        page: None,
    }
}

#[test]
fn of_more_cases_than_fit_none_hides_another_and_the_rest_is_counted() {
    let mut cases: Vec<Told> = (0..30).map(|at| case(Outcome::Fail, "worse", at)).collect();
    cases.extend((30..40).map(|at| case(Outcome::Undecided, "undecided", at)));
    cases.extend((40..43).map(|at| case(Outcome::Missing, "not wholly measured", at)));
    cases.push(case(Outcome::Pass, "not worse", 43));
    let mut mail = of_cases(cases);
    assert_is(&mail, "many");
    mail.page = Some("gate.html".into());
    let text = checked(&mail);
    assert!(text.contains("\ngate.html has "), "{text}");
    // One more than fits is counted, too.
    for count in 1..12 {
        let cases = (0..count)
            .map(|at| case(Outcome::Fail, "worse", at))
            .collect();
        let text = checked(&of_cases(cases));
        let told = text.matches("\nworse: ").count();
        let more = text.split("The command below shows ").nth(1);
        let more = more.map_or(0, |rest| rest.split(' ').next().unwrap().parse().unwrap());
        assert_eq!(told + more, count, "{text}");
    }
}

#[test]
fn long_names_are_wrapped_and_a_command_stays_one() {
    let kernel = format!("mine-{}", "6.13-rc1-with-a-name-of-its-own.".repeat(4));
    let function = "a_function_whose_name_is_longer_than_a_line_".repeat(3);
    let there = runs("r", "debian-6.12", &|_, value| value);
    let mut here = runs("n", &kernel, &longer);
    for run in &mut here {
        fixtures::virtual_machine(run).origin = "file /home/me/bzImage".into();
        run.request.what = vec!["/home/me/my löop's.toml".into()];
    }
    let mut gate = gate(&there, &here);
    let one = &mut gate.subjects[0];
    one.why = Some(Why {
        row: one.worst().unwrap(),
        here: story(&here[0], &function, 4_100),
        there: story(&there[0], &function, 3_600),
        profiles: None,
    });
    let mail = mail_of_gate(&gate, &there, &here, None);
    assert_is(&mail, "long");
}

/// Returns the words that a shell makes of the lines of a command.
fn words_in_shell(lines: &[String]) -> Vec<String> {
    let script = format!(
        "set -- {}\nprintf '%s\\n' \"$@\"\n",
        lines.join("\n").trim_start()
    );
    let ended = std::process::Command::new("sh")
        .args(["-c", &script])
        .output()
        .unwrap();
    assert!(ended.status.success(), "{script}");
    let told = String::from_utf8(ended.stdout).unwrap();
    told.lines().map(str::to_owned).collect()
}

#[test]
fn a_shell_takes_a_broken_command_for_the_same_words() {
    let long = "x'y z\\$(id)%s#".repeat(20);
    let words = [
        "./demo",
        "run",
        "a b",
        "it's",
        "löop → µ.toml",
        "",
        "--boot",
        &long,
        "-p",
        "figure.max={ after = \"max_ns \" }",
        &"é".repeat(70),
        "--seeds",
        "1..5",
    ];
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let lines = ascii::command_lines(&words);
    for line in &lines {
        assert!(line.len() <= COLUMNS && line.is_ascii(), "{line}");
    }
    assert_eq!(words_in_shell(&lines), words);
}

#[test]
fn what_is_not_ascii_is_written_by_what_is() {
    assert_eq!(
        ascii::ascii("4.15 → 4.66 µs, 1.12×, ±3 – é中\u{202e}x"),
        "4.15 -> 4.66 us, 1.12x, +-3 - ?? x"
    );
    assert_eq!(ascii::shortened("abcdefghij", 8), "abc...ij");
    let clipped = ascii::clipped(vec!["a".repeat(72), "b".into()], 1);
    assert_eq!(clipped, [format!("{} ...", "a".repeat(68))]);
}

#[test]
fn one_command_repeats_as_much_as_it_can_and_no_other() {
    let mut all = fixtures::seeds(2);
    let text = |runs: &[Run]| -> Vec<String> {
        let runs: Vec<&Run> = runs.iter().collect();
        again(&runs)
            .commands
            .iter()
            .map(|words| words.join(" "))
            .collect()
    };
    let stock = "debian-6.12.90-amd64";
    assert_eq!(
        text(&all),
        [
            format!(
                "./demo run demo --kernel {stock} --boot preempt=none --boot preempt=voluntary \
                 --boot preempt=full --seeds 1..2"
            ),
            "./demo run demo --kernel debian-6.12.90-rt-amd64 --seeds 1..2".to_owned(),
        ]
    );
    // One seed less is no part of a command of all.
    all.remove(1);
    assert_eq!(text(&all).len(), 3);
    let mut imported = fixtures::run("rt", 1);
    let facts = &mut imported.provenance.as_mut().unwrap().facts;
    facts.insert(
        punctual_model::run::IMPORTED.into(),
        "0123456789abcdef".into(),
    );
    let again = again(&[&imported]);
    assert!(again.commands.is_empty() && again.needs[0].ends_with("SHA-256 0123456789ab."));
}

fn limit(load: &str, above: i64) -> Limit {
    Limit {
        name: None,
        probe: "timer".into(),
        load: Some(load.into()),
        variant: None,
        part: None,
        subject: None,
        demand: Demand::Never(Nanos::from_micros(above)),
        confidence: 0.95,
        runs: None,
    }
}

#[test]
fn a_judgement_tells_what_is_unfit_and_what_nobody_knows() {
    let mut runs = fixtures::seeds(5);
    runs.retain(|run| ["none", "rt"].contains(&&*run.subject.name));
    runs[7].recordings[0].interrupted = true;
    let limits = [limit("stress", 100), limit("idle", 50)];
    let judgement = judge(&limits, &runs, &Baselines::new()).unwrap();
    let mut stories = Stories::new();
    stories.insert(0, story(&runs[0], "proc_pident_readdir", 370_000).1);
    let mail = mail_of_judgement(&judgement, &stories, &runs, Some("verdict.html"));
    assert_is(&mail, "unfit");
}

/// Four tags with five seeds each, the last of which takes longer by 500 ns.
fn of_tags() -> Vec<Run> {
    let mut all = Vec::new();
    for (number, version) in ["6.12", "6.12.1", "6.13-rc1", "6.13-rc2"]
        .iter()
        .enumerate()
    {
        let kernel = format!("linux-debian-6.12-rt@{version}");
        let by = if number < 3 { 0 } else { 500 };
        let mut runs = runs(&format!("r{number}"), &kernel, &|_, value| value + by);
        for run in &mut runs {
            let origin = format!("built from /home/me/linux at v{version}, configuration of it");
            fixtures::virtual_machine(run).origin = origin;
            run.subject.boot = String::new();
        }
        all.extend(runs);
    }
    all
}

#[test]
fn a_mail_about_a_line_counts_figures_and_releases_each_by_themselves() {
    use crate::series::{LeftOut, News, Told, lines};
    let (rule, runs) = (punctual_judge::Rule::default(), of_tags());
    let mut found = lines(&runs, &rule);
    found[0].left_out = ["6.12.2", "6.12.3", "6.12.4"]
        .map(|version| LeftOut {
            kernel: format!("linux-debian-6.12-rt@{version}"),
            why: "it does not compile".into(),
            is_newest: false,
        })
        .into();
    let mut news = News::of(&found, &Told::default(), &rule);
    // A figure may change twice, and be undecided as well.
    news.changes.truncate(1);
    news.changes.push(news.changes[0].clone());
    news.undecided = vec![(news.changes[0].line, news.changes[0].row)];
    let mail = mail_of_series(&found, &news, &runs, &[], None).unwrap();
    let (figures, releases) = (found[0].rows.len(), news.missing.len());
    assert!(releases >= 3);
    let expected = format!(
        "Of {figures} figures 1 is changed, since the last report. {releases} releases are not \
         wholly measured. "
    );
    assert!(mail.about.starts_with(&expected), "{}", mail.about);
}

#[test]
fn of_several_lines_each_case_names_its_own() {
    use crate::series::{News, Told, lines};
    let rule = punctual_judge::Rule::default();
    let mut runs = of_tags();
    runs.extend(of_tags().into_iter().map(|mut run| {
        run.id.push('b');
        run.subject.kernel = run.subject.kernel.replace("-rt@", "@");
        run.subject.name.clone_from(&run.subject.kernel);
        run
    }));
    let found = lines(&runs, &rule);
    assert_eq!(found.len(), 2);
    let mut news = News::of(&found, &Told::default(), &rule);
    news.undecided = vec![(0, 0), (1, 0)];
    let mail = mail_of_series(&found, &news, &runs, &[], None).unwrap();
    let undecided = |line: &str| {
        let begin = format!("undecided: {line}: ");
        let mut cases = mail.cases.iter();
        cases.any(|one| one.sentence.starts_with(&begin))
    };
    assert!(undecided("linux-debian-6.12-rt"), "{:?}", mail.cases);
    assert!(undecided("linux-debian-6.12"), "{:?}", mail.cases);
}

#[test]
fn a_tag_that_changed_is_told_with_its_interval_function_and_how_to_build_both() {
    use crate::series::{News, Told, lines};
    let (rule, runs) = (punctual_judge::Rule::default(), of_tags());
    let mut found = lines(&runs, &rule);
    let news = News::of(&found, &Told::default(), &rule);
    let row = news.changes[0].row;
    let why = Why {
        row,
        here: story(&runs[15], "fill_pool (loop.c:41) [loop]", 4_100),
        there: story(&runs[10], "fill_pool (loop.c:41) [loop]", 3_600),
        profiles: None,
    };
    found[0].rows[row].why.push((3, why));
    let words = "--source /home/me/linux --config /home/me/rt.config --set HZ_1000=y";
    let source: Vec<String> = words.split(' ').map(str::to_owned).collect();
    let mail = mail_of_series(&found, &news, &runs, &source, Some("page.html")).unwrap();
    let text = checked(&mail);
    for expected in [
        "Subject: changed: timer",
        " in 6.13-rc2\n",
        "from 6.13-rc1 to 6.13-rc2",
        "`fill_pool",
        "./demo series --source linux --config rt.config --set HZ_1000=y",
        "--tags v6.13-rc1 --tags",
        "Here linux is a clone of Linux with the tags v6.13-rc1 and",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }

    let mut told = Told::default();
    told.add(&found);
    let news = News::of(&found, &told, &rule);
    assert_eq!(mail_of_series(&found, &news, &runs, &source, None), None);
}
