// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every arrival: a stall of known length is predicted, reached, and named; without it none is.

use std::process::Command;

use punctual_tests::explained::number;
use punctual_tests::{
    Ended, KERNELS, SPIN, Scratch, assert_ends, assert_has, json as json_of, markdown, schema,
};
use serde_json::{Value, json};

/// The time for which interrupts are off, every 20 ms, in µs; the second load burns nothing.
pub(super) const BURNT_US: i64 = 20;

/// The most by which a sample may differ from its forecast. Other kernels have other paths, of
/// which each forecast takes the median. What a forecast must not leave out takes 0.7 µs at least.
const NEAR_NS: i64 = 340;

pub(super) fn load(name: &str, order: &str) -> String {
    format!(
        "[load.{name}]\nsummary = \"{order}\"\n[[load.{name}.worker]]\nendless = true\n\
         unit = \"lines\"\ncount = \"lines\"\nrun = [\"sh\", \"-c\", \"exec 3>/dev/stall; \
         echo {order} >&3; while :; do echo; done\"]\n"
    )
}

/// Samples of the device's interrupts under a load.
fn interrupted(load: &str) -> String {
    format!("[[step]]\nprobe = \"irq\"\nload = \"{load}\"\nsamples = 60\n")
}

/// Only code with interrupts off counts for an interrupt: `burn` has them off, `hold` preemption.
fn interrupts_wait_for_what_has_them_off_alone(burn: &Value, hold: &Value) {
    let burnt = BURNT_US * 1_000;
    // The way from the interrupt's entry to its handler is about 0.25 µs. The entry to what burns
    // and the way out of it come on top.
    let worst = number(&burn["worst_ns"]);
    assert!((burnt + 200..burnt + 1_000).contains(&worst), "{burn:#}");
    let first = &burn["places"][0];
    assert_eq!(first["what"], "interrupts off", "{burn:#}");
    let named = ["stall_irqs_off [stall]", "ktime_get"];
    assert!(
        named.map(Value::from).contains(&first["most_in"]),
        "{burn:#}"
    );
    // The whole step has the place's section, of which this is a part.
    let functions = burn["functions"].as_array().unwrap();
    let own = functions
        .iter()
        .find(|one| one["function"] == first["most_in"]);
    let longest = own.and_then(|one| one["longest_ns"].as_i64());
    assert!(longest >= first["most_ns"].as_i64(), "{functions:?}");
    let foretold = number(&first["foretold_ns"]);
    assert!((worst - 100..=worst).contains(&foretold), "{burn:#}");
    assert!(number(&hold["worst_ns"]) < burnt / 2, "{hold:#}");
    for step in [burn, hold] {
        assert_eq!(step["waits"], "handler");
        assert_eq!(step["is_forecast"], false);
        assert_eq!(step["reached_ns"], Value::Null);
        assert_eq!(
            (&step["periods"], &step["periods_left_out"]),
            (&json!(59), &json!(0))
        );
        assert_eq!(
            (&step["samples_learnt"], &step["unlearnt_ns"]),
            (&json!(59), &json!(0))
        );
        let sampled = number(&step["sampled_ns"]);
        assert!(sampled <= number(&step["worst_ns"]), "{step:#}");
        // Where nothing is off, the handler's way is all.
        let handler = number(&step["quantiles"][0]["late_ns"]);
        assert!((200..=300).contains(&handler), "{step:#}");
    }
}

pub(super) fn place<'a>(step: &'a Value, function: &str) -> Option<&'a Value> {
    let mut places = step["places"].as_array().unwrap().iter();
    places.find(|place| place["most_in"] == function)
}

#[test]
fn what_holds_the_cpu_is_foretold_and_reached_and_nothing_is_where_nothing_does() {
    let scratch = Scratch::new();
    let step =
        |load: &str| format!("[[step]]\nprobe = \"timer\"\nload = \"{load}\"\nsamples = 60\n");
    let holds = |what: &str| format!("{what} {BURNT_US} every=20011");
    let loads = load("burn", &holds("irqs-off")) + &load("spare", "stop");
    let loads = loads + &load("hold", &holds("preempt-off"));
    let steps = step("burn") + &step("spare") + &interrupted("burn") + &interrupted("hold");
    let suite = &scratch.suite(
        "mine",
        &["rt"],
        &format!("modules = [\"pulse\", \"stall\"]\n{loads}{steps}"),
    );
    let run = scratch.measure(&[suite]).remove(0);
    let id = run["id"].as_str().unwrap();
    let ended = scratch.run(&["arrivals", id, "--aim", "1", "--quiet", "--json"]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    schema::check("arrivals", &told).unwrap();
    assert_eq!(told["digest"], told["digest_watched"]);
    let [burn, spare, masked, held] = &told["steps"].as_array().unwrap()[..] else {
        panic!("{told:#}");
    };
    let stall = place(burn, "stall_irqs_off [stall]")
        .or_else(|| place(burn, "ktime_get"))
        .unwrap_or_else(|| panic!("{burn:#}"));
    interrupts_wait_for_what_has_them_off_alone(masked, held);
    let burnt = BURNT_US * 1_000;
    assert!(
        (burnt..burnt + 15_000).contains(&number(&stall["foretold_ns"])),
        "{stall:#}"
    );
    // The path behind it is 5.3 µs: the thread that is switched away from is bound to its CPU, which
    // alone takes 1.2 µs. The stall's interrupt serves the sample as well, which saves 0.7 µs.
    // Without one of the two the forecast is further off than this.
    let difference = number(&stall["difference_ns"]);
    assert!((-NEAR_NS..=NEAR_NS).contains(&difference), "{stall:#}");
    // The aimed sample meets it at its begin, which no sample of the run did.
    let reached = number(&burn["reached_ns"]);
    assert!((burnt..burnt + 15_000).contains(&reached), "{burn:#}");
    assert!(reached >= number(&burn["sampled_ns"]), "{burn:#}");
    let cause = stall["cause"].as_str().unwrap_or_default();
    assert!(
        cause.contains("stall_irqs_off") || cause.contains("interrupt"),
        "{stall:#}"
    );
    assert!(number(&spare["worst_ns"]) < burnt, "{spare:#}");
    assert!(number(&spare["reached_ns"]) < burnt, "{spare:#}");
    for step in [burn, spare] {
        assert_eq!(step["periods_left_out"], 0, "{step:#}");
        let quantiles = step["quantiles"].as_array().unwrap();
        let late: Vec<i64> = quantiles
            .iter()
            .map(|one| number(&one["late_ns"]))
            .collect();
        assert!(
            late.is_sorted() && late[6] <= number(&step["worst_ns"]),
            "{step:#}"
        );
        // The samples of the run are some of all arrivals.
        assert!(
            number(&step["sampled_ns"]) <= number(&step["worst_ns"]) + 1_000,
            "{step:#}"
        );
    }
    // What was told is kept: it is read, not watched, and a part of it answers for itself.
    let kept = scratch.run(&["arrivals", id, "--aim", "1", "--json"]);
    assert_eq!((&kept.stdout, &*kept.stderr), (&ended.stdout, ""));
    let part = scratch.run(&["arrivals", id, "--load", "burn", "--json"]);
    let part: Value = serde_json::from_str(&part.stdout).unwrap();
    assert_eq!(part["steps"], json!([burn, masked]));
    let none = scratch.run(&["arrivals", id, "--load", "nosuch"]);
    let known = "has no recording with load \"nosuch\"; it has timer / ";
    assert_ends(&none, 2, &[known, "irq / hold / hard"]);
    let words = ["arrivals", id, "--probe", "irq", "--load", "hold", "--aim"];
    assert_ends(
        &scratch.run(&words),
        0,
        &["irq / hold / hard", "No sample is aimed"],
    );
    // Nothing of an aimed sample is in the run, and the worst are listed beside it.
    let shown = scratch.run(&["show", id, "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    schema::check("run", &shown).unwrap();
    let shown = &shown["runs"][0];
    assert_eq!(shown["digest"], told["digest"]);
    assert_eq!(shown["recordings"][0]["max"], burn["sampled_ns"]);
    let figures = shown["arrivals"].as_array().unwrap();
    // Of an interrupt's five stages it is the first whose arrivals are known.
    let of: Vec<&Value> = figures.iter().map(|one| &one["recording"]).collect();
    assert_eq!(of[2..], ["irq / burn / hard", "irq / hold / hard"]);
    assert_eq!(figures[0]["reached_ns"], burn["reached_ns"]);
    assert_eq!(figures[1]["worst_ns"], spare["worst_ns"]);
}

/// The work of the thread in `tests/app/waits.c` that goes before the loop: two instructions each.
const AHEAD: i64 = 2 * 50_000;

/// `tests/app/waits.c` in one of its ways, each measured in a run of its own: to watch a run, and to
/// aim at its places, takes as long as all steps up to there.
struct Waits {
    scratch: Scratch,
    program: String,
}

impl Waits {
    fn new() -> Self {
        let scratch = Scratch::new();
        let program = scratch.path("waits").display().to_string();
        let source = markdown::root().join("tests/app/waits.c");
        let mut compiler = Command::new("cc");
        compiler
            .args(["-O1", "-g", "-Wall", "-Werror", "-pthread", "-o", &program])
            .arg(source);
        assert!(compiler.status().expect("a compiler").success());
        Self { scratch, program }
    }

    /// The id of a run of it, beside this load if there is one: its name, and its order.
    fn run(&self, how: &str, beside: Option<(&str, &str)>) -> String {
        let program = &self.program;
        let modules = format!("modules = [\"pulse\", \"stall\"]\nprograms = [\"{program}\"]\n");
        let (load, under) = beside.map_or_else(Default::default, |(name, order)| {
            (load(name, order), format!("load = \"{name}\"\n"))
        });
        let step = format!("[[step]]\nprobe = \"app\"\nrun = [\"waits\", \"{how}\"]\n{under}");
        let rest = modules + &load + &step;
        let suite = &self.scratch.suite("mine", &["rt"], &rest);
        let run = self.scratch.measure(&[suite]).remove(0);
        run["id"].as_str().unwrap().to_owned()
    }

    fn arrivals(&self, run: &str, more: &[&str]) -> Ended {
        let words = ["arrivals", run, "--quiet"];
        self.scratch.run(&[&words[..], more].concat())
    }

    /// The arrivals of a run's step, with this number of aims.
    fn told(&self, run: &str, aims: &str) -> Value {
        let of_main = ["--variant", "waits lateness", "--json", "--aim", aims];
        let ended = self.arrivals(run, &of_main);
        assert_ends(&ended, 0, &[]);
        let told = json_of(&ended);
        schema::check("arrivals", &told).unwrap();
        assert_eq!(told["digest"], told["digest_watched"]);
        let step = told["steps"][0].clone();
        assert_eq!(
            (&step["waits"], &step["periods_left_out"]),
            (&json!("program"), &json!(0))
        );
        assert!(number(&step["time_ns"]) > 70_000_000, "{step:#}");
        // Each of its own samples is one of the arrivals.
        let latest = number(&step["worst_ns"]) + 1_000;
        assert!(number(&step["sampled_ns"]) <= latest, "{step:#}");
        step
    }
}

#[test]
fn what_meets_the_timer_of_a_programs_thread_is_foretold_and_reached() {
    let waits = Waits::new();
    // Nothing runs beside these two: what is asked of them does not depend on it, and an idle CPU
    // is watched for a sixth of the price.
    let fair = waits.run("fair", None);
    assert_ends(
        &waits.arrivals(&fair, &[]),
        2,
        &["it is no thread of real time", "chrt -f"],
    );
    let span = waits.run("span", None);
    assert_ends(
        &waits.arrivals(&span, &["--variant", "waits response"]),
        2,
        &["--variant \"waits lateness\""],
    );
    // Nothing is later than the path of an idle CPU; and a span is nowhere in its memory.
    let span = waits.told(&span, "2");
    let burnt = BURNT_US * 1_000;
    assert!(number(&span["worst_ns"]) < burnt, "{span:#}");
    assert_eq!(span["reached_ns"], Value::Null);
    assert_has(
        &span["not_aimed"].to_string(),
        &["as a span", "TIMER_ABSTIME"],
    );
    a_section_is_reached_by_the_programs_own_sample(&waits);
    who_goes_before_it_keeps_it_away(&waits);
}

/// What the section adds is its length, and the program's own sample reaches it.
fn a_section_is_reached_by_the_programs_own_sample(waits: &Waits) {
    let order = format!("irqs-off {BURNT_US} every=20011");
    let burn = waits.run("still", Some(("burn", &order)));
    let burn = waits.told(&burn, "1");
    let first = &burn["places"][0];
    let named = ["stall_irqs_off [stall]", "ktime_get"].map(Value::from);
    assert!(named.contains(&first["most_in"]), "{burn:#}");
    let burnt = BURNT_US * 1_000;
    assert!(
        (burnt..burnt + 15_000).contains(&number(&first["foretold_ns"])),
        "{burn:#}"
    );
    assert!(number(&burn["sampled_ns"]) < burnt, "{burn:#}");
    let difference = number(&first["difference_ns"]);
    assert!((-NEAR_NS..=NEAR_NS).contains(&difference), "{burn:#}");
    assert_eq!(first["differs"], json!([]), "{burn:#}");
    assert_has(&first["cause"].to_string(), &["stall_irqs_off"]);
}

/// A thread of a higher priority does, and one of a lower priority, which works for twice as long,
/// does not.
fn who_goes_before_it_keeps_it_away(waits: &Waits) {
    let ahead = waits.run("ahead", Some(("spare", "stop")));
    let ahead = waits.told(&ahead, "1");
    let first = &ahead["places"][0];
    assert_eq!(
        first["what"], "a thread of its priority or a higher one",
        "{ahead:#}"
    );
    assert_eq!(first["most_in"], "waits", "{ahead:#}");
    assert!(
        (AHEAD..AHEAD + 1_000).contains(&number(&first["most_ns"])),
        "{ahead:#}"
    );
    let latest = number(&ahead["worst_ns"]);
    assert!((AHEAD..AHEAD + 45_000).contains(&latest), "{ahead:#}");
    assert!(number(&ahead["reached_ns"]) > AHEAD, "{ahead:#}");
    // The forecast is no better here than that.
    let early = number(&first["foretold_ns"]) - number(&first["reached_ns"]);
    assert!((-1_000..15_000).contains(&early), "{ahead:#}");
}

#[test]
fn commands_that_measure_many_look_at_every_arrival() {
    let scratch = Scratch::new();
    let suite = scratch.suite(
        "short",
        &["rt"],
        "[[step]]\nprobe = \"timer\"\nload = \"stress\"\nsamples = 60\n",
    );
    // Three runs show it at this confidence, and four as one of the two ends of a bisection.
    let limit = |name: &str, most: i64| {
        let limit = "[[limit]]\nprobe = \"timer\"\nwhat = \"arrival\"\nconfidence = 70\n";
        scratch.file(name, format!("{limit}at_most = \"{most} ns\"\n"))
    };
    let wide = limit("wide.toml", 1_000_000);
    // By its kernel, as it is called where many are measured: these runs are taken from the store
    // there, with what was watched of them.
    let words = ["judge", &suite, "--kernel", KERNELS[1], "--limits", &wide];
    let more = ["--arrivals", "--budget", "1h", "--json"];
    let judged = scratch.run(&[&words[..], &more].concat());
    assert_ends(&judged, 0, &[]);
    assert_eq!(watched(&judged), ["r1", "r2", "r3"]);
    let verdict = &json_of(&judged)["answers"][0];
    assert_eq!(verdict["verdict"], "fit", "{verdict:#}");
    let known = watched(&judged);
    // How late each kernel is depends on its version, so the limit lies between the two: as many
    // times above the latest arrival of the one as below the worst sample of the other.
    let worst = known.iter().map(|run| worst_of(&scratch, run));
    let worst = worst.max().unwrap();
    let words = [suite.as_str(), "--kernel", KERNELS[0], "--seed", "1"];
    let stock = scratch.measure(&words).remove(0);
    let sampled = number(&stock["recordings"][0]["max"]);
    assert!(worst < sampled, "{worst} {sampled}");
    let bound = (worst * sampled).isqrt();
    let limits = limit("limits.toml", bound);
    let judged = scratch.run(&[&["judge"][..], &known, &["--limits", &limits]].concat());
    assert_ends(&judged, 0, &[]);
    let stock = stock["id"].as_str().unwrap();
    bisect_shows_them(&scratch, &suite, (&limits, bound), (&known, stock));
    an_option_is_held_against_them(&scratch, &suite);
    series_has_them(&scratch);
    a_gap_is_looked_at_once(&scratch, &limits);
}

/// The runs of which a command has watched every arrival, as it said itself, in their order.
fn watched(ended: &Ended) -> Vec<&str> {
    let lines = ended.stderr.lines();
    let watched = lines.filter(|line| line.contains("every arrival is watched"));
    let mut runs: Vec<&str> = watched.filter_map(|line| line.split(' ').next()).collect();
    // Two at a time.
    runs.sort_unstable();
    runs
}

/// The latest of every arrival of a watched run.
fn worst_of(scratch: &Scratch, run: &str) -> i64 {
    let shown = json_of(&scratch.run(&["show", run, "--json"]));
    number(&shown["runs"][0]["arrivals"][0]["worst_ns"])
}

/// Checks that `ablate` has the figure, of an option that was planted in the base.
fn an_option_is_held_against_them(scratch: &Scratch, suite: &str) {
    let options = "boot = \"trace_event=sched\"\n[[option]]\nname = \"planted\"\n\
                   without = \"trace_event=sched\"\n";
    let options = scratch.file("options.toml", options);
    let kernel = ["ablate", "--kernel", KERNELS[1]];
    let what = ["--suite", suite, "--options", &options];
    let more = ["--arrivals", "--seeds", "1", "--explain", "0", "--json"];
    let ablated = scratch.run(&[&kernel[..], &what, &more].concat());
    assert_ends(&ablated, 0, &[]);
    // Without the option it is the first run of all.
    assert_eq!(watched(&ablated).len(), 1, "{}", ablated.stderr);
    let ablated = json_of(&ablated);
    let figures = ablated["options"][0]["figures"].as_array().unwrap();
    let arrival = figures.iter().find(|one| one["figure"] == "arrival");
    let arrival = arrival.unwrap_or_else(|| panic!("{figures:#?}"));
    assert!(
        number(&arrival["with_ns"]) < number(&arrival["base_ns"]),
        "{arrival:#}"
    );
}

/// An idle machine's samples do not show the path behind all of its time. Watching the run again
/// finds the same gap, so nothing does.
fn a_gap_is_looked_at_once(scratch: &Scratch, limits: &str) {
    let step = "[[step]]\nprobe = \"timer\"\nsamples = 40\n";
    let idle = scratch.suite("idle", &["rt"], step);
    let measured = json_of(&scratch.run(&["run", &idle, "--quiet", "--json"]));
    let run = measured["runs"][0]["id"].as_str().unwrap();
    for is_watched in [true, false] {
        let judged = scratch.run(&["judge", run, "--limits", limits, "--arrivals"]);
        assert_ends(&judged, 5, &["not every arrival is known"]);
        let said = !watched(&judged).is_empty();
        assert_eq!(said, is_watched, "{}", judged.stderr);
    }
}

/// Checks that `series` has both figures of each run for the newest release of a line.
fn series_has_them(scratch: &Scratch) {
    let step = "[[step]]\nprobe = \"timer\"\nload = \"spin\"\nsamples = 60\n";
    let suite = &scratch.suite("busy", &["rt"], &format!("{SPIN}{step}"));
    let listed = json_of(&scratch.run(&["kernel", "series", KERNELS[1], "--json"]));
    let newest = listed.as_array().unwrap().last().unwrap();
    let since = newest["version"].as_str().unwrap();
    let words = ["series", KERNELS[1], "--since", since, "--suite", suite];
    let more = ["--seeds", "1..2", "--arrivals=1", "--quiet", "--json"];
    let ended = scratch.run(&[&words[..], &more].concat());
    assert_ends(&ended, 0, &[]);
    let found = json_of(&ended);
    let figures = found["lines"][0]["figures"].as_array().unwrap();
    for name in ["worst", "arrival", "reached"] {
        let figure = figures.iter().find(|one| one["figure"] == name);
        let runs = &figure.unwrap_or_else(|| panic!("{found:#}"))["values"][0];
        assert_eq!(runs.as_array().map(Vec::len), Some(2), "{name}: {found:#}");
        assert!(number(&runs[0]["ns"]) > 3_000, "{name}: {found:#}");
    }
}

/// Checks that `bisect` shows the verdicts on both ends, with the latest arrival of each. It takes
/// the file of the limit, the limit in ns, the watched runs of the good end, and the run of the bad
/// end.
fn bisect_shows_them(
    scratch: &Scratch,
    suite: &str,
    (limits, bound): (&str, i64),
    (known, stock): (&[&str], &str),
) {
    let page = scratch.path("bisect.html");
    let words = [
        "bisect", KERNELS[1], KERNELS[0], "--suite", suite, "--limits", limits,
    ];
    let page = page.to_str().unwrap();
    // One at a time: of the bad one a single run decides.
    let more = [
        "--arrivals",
        "--no-explain",
        "--jobs",
        "1",
        "--json",
        "--report",
        page,
    ];
    let ended = scratch.run(&[&words[..], &more].concat());
    assert_ends(&ended, 0, &[]);
    // No run is watched twice. The bad end has the run that is there, and the good end one more.
    let now = watched(&ended);
    assert!(now.iter().all(|run| !known.contains(run)), "{now:?}");
    assert!(now.len() == 2 && now.contains(&stock), "{now:?} {stock}");
    let found = json_of(&ended);
    schema::check("bisect", &found).unwrap();
    assert_eq!(found["first_unfit"], KERNELS[0]);
    let steps = found["steps"].as_array().unwrap();
    for (step, is_forecast) in steps.iter().zip([false, true]) {
        let known = &step["arrivals"][0];
        assert_eq!(known["is_forecast"], is_forecast, "{step:#}");
        assert_eq!(known["reached_ns"], Value::Null, "{step:#}");
    }
    let [good, bad] = [0, 1].map(|at| number(&steps[at]["arrivals"][0]["worst_ns"]));
    assert!(good <= bound && bound < bad, "{good} {bound} {bad}");
    let page = std::fs::read_to_string(page).unwrap();
    assert_has(&page, &["every arrival", "the latest of every arrival is"]);
}
