// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims of virtual time, held against real runs: the same way, the other way, or undecided.

use std::ptr;

use punctual_judge::{Comparison, Rule, Verdict, compare, shortcoming};
use punctual_model::run::State;
use punctual_model::{Fact, MachineRecord, Preemption, Recording, Run};
use punctual_published::{Claim, Claims, Side, Way};
use serde::Serialize;

use crate::block::{self, Block};
use crate::matrix::{Column, Matrix};
use crate::published::{OfRun, by_run, independent, rows, says};
use crate::shell;
use crate::text::counted;

/// The form's name and version.
const SCHEMA: &str = "punctual.metal/1";

/// What came of a file of claims.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Metal {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// In a sentence.
    summary: String,
    /// What keeps runs from being of a side: whose preemption model is not known, and why.
    unknown: Vec<String>,
    /// The claims, in the order of the file.
    pub claims: Vec<Tried>,
}

/// A claim, and what came of it on a machine.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tried {
    /// The document that claims it.
    document: String,
    /// What it says.
    says: String,
    /// Which way it says that figures go.
    #[cfg_attr(test, schemars(with = "String", extend("enum" = ["lower", "higher"])))]
    expects: Way,
    /// `timer, stress: max`.
    figure: String,
    /// What came of it.
    #[serde(flatten)]
    pub cell: Cell,
}

/// What came of a claim.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "on_a_machine", rename_all = "kebab-case")]
pub enum Cell {
    /// No run on a real machine is of either side, or none is of one.
    NotTried {
        /// Where the runs were made that there are of one side.
        have: Option<Place>,
        /// How a machine is to be booted for what is missing.
        needs: Vec<String>,
        /// Why runs that are of a side have no figure.
        why: Option<String>,
    },
    /// Runs of both sides were compared.
    Told {
        /// Where they were made.
        at: Place,
        /// Which way the figures go there.
        sign: Sign,
        /// Why that says nothing of the machine, or nothing at all.
        why: Option<String>,
        /// How many times the one side's figure the other's is; null where it is not above zero.
        ratio: Option<f64>,
        /// The 95 % interval of that ratio; null where there are too few runs.
        interval: Option<(f64, f64)>,
        /// How many runs of each side were compared.
        runs: (usize, usize),
        /// In words: `lower, 0.12 times (0.10–0.15)`.
        told: String,
    },
}

/// Which way figures go on a machine, beside what is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    /// As it is claimed.
    Same,
    /// The other way.
    Other,
    /// Neither: a difference that is worth finding is excluded.
    None,
    /// It cannot be told.
    Undecided,
}

/// A machine, and what runs on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Place {
    /// The machine's name.
    host: String,
    /// What both sides have besides: `Linux 6.12.117 quiet`.
    all_else: String,
}

/// Runs of one plan on one machine, with one kernel and one command line.
struct Boot<'a> {
    column: Column<'a>,
    matrix: &'a Matrix<'a>,
    first: &'a Run,
    release: &'a str,
    command_line: &'a str,
    models: Vec<&'static str>,
}

/// Judges each claim by runs of its file's suite.
/// Runs in virtual time, and those that did not finish, do not count.
pub fn metal(claims: &Claims, runs: &[Run]) -> Metal {
    let is_one = |run: &&Run| !run.is_virtual() && run.state == State::Finished;
    // Runs of other lengths have other worst cases.
    let mut plans: Vec<(String, Vec<Run>)> = Vec::new();
    for run in runs.iter().filter(is_one) {
        let Ok(mut plan) = run.parsed_plan() else {
            continue;
        };
        plan.seed = 0;
        let plan = plan.to_toml();
        match plans.iter_mut().find(|(own, _)| *own == plan) {
            Some((_, all)) => all.push(run.clone()),
            None => plans.push((plan, vec![run.clone()])),
        }
    }
    let matrices: Vec<Matrix<'_>> = plans.iter().map(|(_, runs)| Matrix::new(runs)).collect();
    let boots: Vec<Boot<'_>> = matrices.iter().flat_map(boots).collect();
    let tried = |claim: &Claim| Tried {
        document: claim.document.clone(),
        says: claim.says.clone(),
        expects: claim.expects,
        figure: figure(claim),
        cell: cell(claim, &boots),
    };
    Metal {
        schema: SCHEMA,
        summary: claims.summary.clone(),
        unknown: unknown(&boots),
        claims: claims.claims.iter().map(tried).collect(),
    }
}

/// `timer, stress: max`.
fn figure(claim: &Claim) -> String {
    let what = &claim.what;
    let parts = [&what.probe, &what.variant].into_iter().chain(&what.load);
    let parts: Vec<&str> = parts
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    format!("{}: {}", parts.join(", "), what.statistic.name())
}

/// Groups the runs of a matrix by the way that their machines were booted, as far as they say it.
/// Names do not count: two kernels may have one release.
fn boots<'a>(matrix: &'a Matrix<'a>) -> Vec<Boot<'a>> {
    let mut boots: Vec<(_, Vec<&'a Run>)> = Vec::new();
    let runs = matrix.columns.iter().flat_map(|column| &column.runs);
    for run in runs.copied() {
        let Some(found) = &run.provenance else {
            continue;
        };
        let line = found.cmdline.trim();
        if line.is_empty() || line.starts_with("unknown") || found.release.is_empty() {
            continue;
        }
        let model = found.preemption.name();
        let booted = (host(run), &found.version, &found.release, line, model);
        match boots.iter_mut().find(|(own, _)| *own == booted) {
            Some((_, runs)) => runs.push(run),
            None => boots.push((booted, vec![run])),
        }
    }
    let boots = boots.into_iter().filter_map(|(booted, runs)| {
        let (host, _, release, command_line, _) = booted;
        let first = *runs.first()?;
        Some(Boot {
            column: Column::of(host, &runs)?,
            matrix,
            first,
            release,
            command_line,
            models: models(&first.provenance.as_ref()?.preemption),
        })
    });
    boots.collect()
}

/// The name of a run's machine, or the address that it was reached by.
fn host(run: &Run) -> &str {
    match &run.machine {
        MachineRecord::Host(machine) => machine.ssh.as_ref().unwrap_or(&machine.host),
        MachineRecord::Virtual(_) => "",
    }
}

/// Machines that may be of any side that names a preemption model, and so are of none.
fn unknown(boots: &[Boot<'_>]) -> Vec<String> {
    let of_boot = |boot: &Boot<'_>| {
        let found = boot.first.provenance.as_ref()?;
        let (Preemption::Unknown(why), true) = (&found.preemption, boot.models.is_empty()) else {
            return None;
        };
        let (host, release) = (host(boot.first), boot.release);
        Some(format!(
            "{host}, {release}: its preemption model is not known ({why})"
        ))
    };
    let mut all: Vec<String> = boots.iter().filter_map(of_boot).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns the models that a preemption model may be; none if it may be any.
fn models(preemption: &Preemption) -> Vec<&'static str> {
    match preemption {
        Preemption::Unknown(_) if preemption.is_cooperative() => vec!["none", "voluntary"],
        Preemption::Unknown(_) => Vec::new(),
        known => vec![known.name()],
    }
}

impl Boot<'_> {
    fn is(&self, side: &Side) -> bool {
        side.means(self.release, self.command_line, &self.models)
    }

    fn rest(&self, claim: &Claim) -> String {
        claim.rest(self.release, self.command_line, &self.models)
    }

    fn place(&self, claim: &Claim) -> Place {
        Place {
            host: host(self.first).to_owned(),
            all_else: self.rest(claim),
        }
    }

    /// Returns true if it is the same machine, however many of its CPUs its kernel has.
    fn is_machine_of(&self, other: &Self) -> bool {
        let fact = |boot: &Self, name: &str| {
            let facts = &boot.first.provenance.as_ref()?.facts;
            facts.get(name).and_then(Fact::text).map(str::to_owned)
        };
        let is_same = |name| match (fact(self, name), fact(other, name)) {
            (Some(own), Some(its)) => own == its,
            _ => true,
        };
        host(self.first) == host(other.first) && ["cpu", "architecture"].into_iter().all(is_same)
    }
}

/// A side of a claim, as measured.
struct Sided<'a> {
    boot: &'a Boot<'a>,
    figures: Vec<OfRun<'a>>,
    /// The reason why its runs are no whole answer about its kernel.
    gap: Option<String>,
}

impl<'a> Sided<'a> {
    /// Returns the figure of a claim, run by run, or the reason why there is none.
    fn of(boot: &'a Boot<'a>, claim: &Claim) -> Result<Self, String> {
        let rows = rows(boot.matrix, &claim.what, None);
        let figures = by_run(&boot.column, &rows, claim.what.statistic).map(independent)?;
        // Two runs may have one seed.
        let has = |run: &Run, its: &Recording| run.recordings.iter().any(|own| ptr::eq(own, its));
        let mut recordings = figures.iter().flat_map(|figure| &figure.recordings);
        let gap = recordings.find_map(|recording| {
            let mut runs = boot.column.runs.iter();
            let run = runs.find(|run| has(run, recording))?;
            shortcoming(run, recording)
        });
        Ok(Self { boot, figures, gap })
    }

    fn values(&self) -> Vec<f64> {
        self.figures.iter().map(|run| run.value).collect()
    }
}

/// The boots of a side that have figures, and why others of it have none.
fn sided<'a>(boots: &'a [Boot<'a>], side: &Side, claim: &Claim) -> (Vec<Sided<'a>>, Vec<String>) {
    let (mut all, mut troubles) = (Vec::new(), Vec::new());
    for boot in boots.iter().filter(|boot| boot.is(side)) {
        match Sided::of(boot, claim) {
            Ok(one) => all.push(one),
            Err(why) => troubles.push(why),
        }
    }
    (all, troubles)
}

/// Judges a claim.
/// Of all pairs of boots that differ in nothing but its two sides, the one with the most runs
/// counts. Pairs of which the judge has no doubt come first.
fn cell(claim: &Claim, boots: &[Boot<'_>]) -> Cell {
    let (of, why_of) = sided(boots, &claim.of, claim);
    let (than, why_than) = sided(boots, &claim.than, claim);
    let pairs = of
        .iter()
        .flat_map(|one| than.iter().map(move |other| (one, other)));
    let pairs = pairs.filter(|(one, other)| {
        let (one, other) = (one.boot, other.boot);
        one.is_machine_of(other)
            && one.rest(claim) == other.rest(claim)
            && ptr::eq(one.matrix, other.matrix)
    });
    let best = pairs.max_by_key(|(one, other)| {
        let is_doubted = one.gap.is_some() || other.gap.is_some();
        (!is_doubted, one.figures.len().min(other.figures.len()))
    });
    let Some((one, other)) = best else {
        let newest = [&of, &than].map(|side| side.last().map(|one| one.boot));
        return untried(claim, newest, why_of.into_iter().chain(why_than).next());
    };
    let compared = compare(&one.values(), &other.values(), &Rule::default());
    let (sign, little) = sign(claim, &compared);
    let gap = one.gap.clone().or_else(|| other.gap.clone());
    Cell::Told {
        at: one.boot.place(claim),
        sign: if gap.is_some() { Sign::Undecided } else { sign },
        why: gap.or(little),
        ratio: compared.ratio.map(|ratio| ratio.estimate),
        interval: compared.ratio.and_then(|ratio| ratio.bounds),
        runs: (one.figures.len(), other.figures.len()),
        told: says(&compared),
    }
}

/// Returns the needs of a claim that lacks one side or both.
fn untried(claim: &Claim, newest: [Option<&Boot<'_>>; 2], why: Option<String>) -> Cell {
    let (have, needs) = match newest {
        [Some(boot), _] => (Some(boot), vec![&claim.than]),
        [None, Some(boot)] => (Some(boot), vec![&claim.of]),
        [None, None] => (None, vec![&claim.of, &claim.than]),
    };
    Cell::NotTried {
        have: have.map(|boot| boot.place(claim)),
        needs: needs.into_iter().map(Side::told).collect(),
        why,
    }
}

/// Returns the sign beside the claim, and the reason if it is undecided.
fn sign(claim: &Claim, compared: &Comparison) -> (Sign, Option<String>) {
    let is_lower = claim.expects == Way::Lower;
    let effect = Rule::default().effect;
    match compared.verdict {
        Verdict::Lower if is_lower => (Sign::Same, None),
        Verdict::Higher if !is_lower => (Sign::Same, None),
        Verdict::Lower | Verdict::Higher => (Sign::Other, None),
        Verdict::Identical => (Sign::None, None),
        Verdict::Undecided(few) => (Sign::Undecided, Some(few.to_string())),
        Verdict::NotSeparated { .. } if compared.excludes(effect) => (Sign::None, None),
        Verdict::NotSeparated { more } => {
            let more = more.filter(|more| *more > 0).map(|more| {
                let runs = counted(more as usize, "more run");
                format!("{runs} of each side would show a difference of {effect} times")
            });
            let why = more.unwrap_or_else(|| "the runs lie too far apart".to_owned());
            (Sign::Undecided, Some(why))
        }
    }
}

impl Sign {
    /// In words.
    fn name(self) -> &'static str {
        match self {
            Self::Same => "Same sign",
            Self::Other => "Other sign",
            Self::None => "No difference worth finding",
            Self::Undecided => "Undecided",
        }
    }
}

impl Cell {
    /// Returns true if both sides were measured, and the sign is decided.
    pub fn is_decided(&self) -> bool {
        matches!(self, Self::Told { sign, .. } if *sign != Sign::Undecided)
    }

    /// In a sentence.
    fn told(&self) -> String {
        match self {
            Self::NotTried { have, needs, why } => {
                let needs = needs.join(", then ");
                let told = match have {
                    None => format!("Not tried: boot a machine {needs}."),
                    Some(place) => format!(
                        "Not tried: {} was measured as the other side. Boot it {needs}, change \
                         nothing else, and run the same command.",
                        place.host
                    ),
                };
                let why = why.as_ref();
                let why = why.map(|why| format!(" Runs without a figure: {why}."));
                told + &why.unwrap_or_default()
            }
            Self::Told {
                at,
                sign,
                why,
                runs: (of, than),
                told,
                ..
            } => {
                let why = why.as_ref().map(|why| format!(": {why}"));
                format!(
                    "{}{}. {}: {told}; {} against {than}.",
                    sign.name(),
                    why.unwrap_or_default(),
                    at.host,
                    counted(*of, "run")
                )
            }
        }
    }
}

impl Metal {
    /// Counts the claims with runs of both sides.
    fn tried(&self) -> usize {
        let told = |one: &&Tried| matches!(one.cell, Cell::Told { .. });
        self.claims.iter().filter(told).count()
    }

    fn blocks(&self) -> Vec<Block> {
        let mut blocks = vec![Block::Para(format!(
            "{}, {} of them tried on a real machine: {}. Each is compared run by run, at 95 % by \
             itself.",
            counted(self.claims.len(), "claim"),
            self.tried(),
            self.summary
        ))];
        let unknown = self.unknown.iter();
        blocks.extend(
            unknown.map(|said| Block::Para(format!("{said}: it is no side of a claim about one."))),
        );
        let mut document = "";
        for one in &self.claims {
            if document != one.document {
                document = &one.document;
                blocks.push(Block::Head(document.to_owned()));
            }
            blocks.push(Block::Para(format!(
                "{} ({}). {}",
                one.says,
                one.figure,
                one.cell.told()
            )));
        }
        blocks
    }

    /// As text, no line longer than `width`.
    pub fn text(&self, width: usize) -> String {
        block::text(&self.blocks(), width)
    }

    /// As a page.
    pub fn page(&self) -> String {
        let (lead, chapters) = block::page(&self.blocks());
        let (tried, all) = (self.tried(), self.claims.len());
        let title = format!("Punctual: {tried} of {all} claims tried on a real machine");
        shell::page(&title, &lead, chapters)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use punctual_model::machine::HostMachine;
    use punctual_published::parse_claims;

    use super::*;
    use crate::{fixtures, schema};

    const CLAIMS: &str = "summary = \"s\"\nsuite = \"metal\"\n[[claim]]\ndocument = \"d\"\nsays \
                          = \"it is so\"\nexpects = \"lower\"\nof = { preemption = [\"rt\"] }\nthan \
                          = { preemption = [\"none\"] }\nwhat = { probe = \"timer\", load = \
                          \"stress\", statistic = \"max\" }\n";

    /// A run on a machine; each time is so many times that of the fixture.
    fn run(host: &str, model: &str, boot: &str, seed: u64, times: i64) -> Run {
        let mut run = fixtures::run("none", seed);
        run.id = format!("{host}-{model}-{boot}-{seed}");
        run.suite = "metal".into();
        let step = |load| {
            let count = fixtures::SAMPLES;
            format!("[[step]]\nprobe = \"timer\"\nload = \"{load}\"\nsamples = {count}\n")
        };
        run.plan = format!("seed = {seed}\n") + &step("idle") + &step("stress");
        run.machine = MachineRecord::Host(HostMachine {
            host: host.into(),
            ..HostMachine::default()
        });
        run.subject.kernel = format!("6.12.117-{model}");
        run.subject.boot = boot.into();
        run.subject.bench = "host".into();
        let found = run.provenance.get_or_insert_default();
        found.release = format!("6.12.117{}", if model == "rt" { "-rt" } else { "" });
        found.cmdline = format!("BOOT_IMAGE=/vmlinuz-{model} {boot}");
        found.preemption = fixtures::preemption(model);
        found.facts.insert("virtualised".into(), Fact::Flag(false));
        found
            .facts
            .insert("clocksource".into(), Fact::Text("tsc".into()));
        for recording in &mut run.recordings {
            *recording = fixtures::changed(recording, &|ns| ns * times + seed as i64);
        }
        run
    }

    fn runs(host: &str, model: &str, boot: &str, times: i64) -> Vec<Run> {
        (1..=5)
            .map(|seed| run(host, model, boot, seed, times))
            .collect()
    }

    fn found(runs: &[Vec<Run>]) -> Metal {
        let claims = parse_claims(Path::new("c.toml"), CLAIMS).unwrap();
        let found = metal(&claims, &runs.concat());
        let json = serde_json::to_value(&found).unwrap();
        let form = include_str!("../../../docs/schema/metal-1.json");
        schema::check("metal-1.json", form, &json).unwrap();
        found
    }

    #[track_caller]
    fn assert_says(runs: &[Vec<Run>], part: &str) {
        let text = found(runs).text(1000);
        assert!(text.contains(part), "there is no \"{part}\" in {text}");
    }

    #[test]
    fn the_schema_is_what_the_type_says() {
        schema::assert_is_of::<Metal>(
            "metal-1.json",
            "Claims held against a real machine: what `punctual metal --json` prints",
        );
    }

    #[test]
    fn runs_of_both_sides_tell_the_sign() {
        let rt = || runs("board", "rt", "quiet", 1);
        let same = [rt(), runs("board", "none", "quiet", 2)];
        assert_says(
            &same,
            "it is so (timer, stress: max). Same sign. board: lower, 0.500 times",
        );
        assert_says(&same, "; 5 runs against 5.");
        assert_says(&same, "1 claim, 1 of them tried on a real machine");
        let other = [
            runs("board", "rt", "quiet", 2),
            runs("board", "none", "quiet", 1),
        ];
        assert_says(&other, "Other sign. board: higher, 2.00 times");
        let equal = [rt(), runs("board", "none", "quiet", 1)];
        assert!(found(&same).claims[0].cell.is_decided());
        assert_says(&equal, "No difference worth finding");
    }

    #[test]
    fn nothing_is_told_of_what_was_not_measured() {
        assert_says(
            &[],
            "Not tried: boot a machine with PREEMPT_RT, then with preempt=none.",
        );
        let rt = || runs("board", "rt", "quiet", 1);
        let stock = || runs("board", "none", "quiet", 2);
        let missing =
            "Not tried: board was measured as the other side. Boot it with preempt=none, ";
        assert_says(&[rt()], missing);
        // Another machine, other boot arguments, another release, another plan.
        assert_says(&[rt(), runs("other", "none", "quiet", 2)], "Not tried");
        assert_says(
            &[rt(), runs("board", "none", "quiet isolcpus=1", 2)],
            "Not tried",
        );
        let changed = |change: &dyn Fn(&mut Run)| {
            let mut all = stock();
            all.iter_mut().for_each(change);
            all
        };
        let release = |run: &mut Run| run.provenance.as_mut().unwrap().release = "6.1.1".into();
        assert_says(&[rt(), changed(&release)], "Not tried");
        let plan = |run: &mut Run| run.plan += "[[step]]\nprobe = \"tick\"\n";
        assert_says(&[rt(), changed(&plan)], "Not tried");
        let ended = |run: &mut Run| run.state = State::Interrupted;
        assert_says(&[rt(), changed(&ended)], "Not tried");
        let model = |run: &mut Run| {
            run.provenance.as_mut().unwrap().preemption = Preemption::default();
        };
        let stock = changed(&model);
        assert_says(&[rt(), stock.clone()], "Not tried");
        assert_says(
            &[stock],
            "board, 6.12.117: its preemption model is not known (it was not looked for): it",
        );
    }

    /// Two kernels of one release are two, and one CPU less is no other machine.
    #[test]
    fn what_was_booted_tells_the_sides_apart_and_not_what_it_is_called() {
        let mut all = [
            runs("board", "rt", "quiet", 1),
            runs("board", "none", "quiet", 2),
        ];
        for run in all.iter_mut().flatten() {
            run.subject.kernel = "6.12.117".into();
            let found = run.provenance.as_mut().unwrap();
            found.release = "6.12.117".into();
            found.version = found.preemption.name().to_owned();
            found.cmdline = "quiet".into();
        }
        for run in &mut all[1] {
            run.machine = MachineRecord::Host(HostMachine {
                host: "board".into(),
                cpus: Some(3),
                ..HostMachine::default()
            });
        }
        assert_says(&all, "Same sign. board: lower, 0.500 times");
        // A load that did nothing is none, also in a second run of a seed.
        let mut idle = all.clone();
        let mut again = run("board", "rt", "quiet", 6, 1);
        again.seed = 5;
        again.provenance = idle[0][0].provenance.clone();
        again.subject = idle[0][0].subject.clone();
        idle[0].push(again);
        let steps = idle[0]
            .last_mut()
            .into_iter()
            .flat_map(|run| &mut run.steps);
        for work in steps.flat_map(|step| &mut step.work) {
            work.amount = 0;
            work.cpu = punctual_model::Nanos(0);
        }
        assert_says(
            &idle,
            "Undecided: load stress did next to nothing beside it",
        );
        // What could not be measured is said.
        for run in &mut all[1] {
            run.recordings.clear();
        }
        assert_says(&all, "Runs without a figure: ");
    }

    #[test]
    fn little_is_undecided() {
        let few = |model, times| vec![run("board", model, "quiet", 1, times)];
        assert_says(&[few("rt", 1), few("none", 2)], "Undecided: ");
        let mut all = [
            runs("board", "rt", "quiet", 1),
            runs("board", "none", "quiet", 2),
        ];
        let facts = &mut all[1][0].provenance.as_mut().unwrap().facts;
        facts.insert("virtualised".into(), Fact::Flag(true));
        assert_says(&all, "Undecided: measured in a virtual machine");
        assert!(!found(&all).claims[0].cell.is_decided());
        let wide = |model, times: [i64; 5]| -> Vec<Run> {
            let all = times.into_iter().zip(1..);
            all.map(|(times, seed)| run("board", model, "quiet", seed, times))
                .collect()
        };
        let apart = [wide("rt", [1, 9, 2, 8, 3]), wide("none", [2, 8, 1, 9, 4])];
        assert_says(&apart, "Undecided: ");
    }

    #[test]
    fn the_page_says_what_the_text_says() {
        let found = found(&[
            runs("board", "rt", "quiet", 1),
            runs("board", "none", "quiet", 2),
        ]);
        fixtures::assert_has(
            &found.page(),
            &["Same sign. board: lower", "<h2", "it is so"],
        );
    }
}
