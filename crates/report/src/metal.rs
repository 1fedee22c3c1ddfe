// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims of virtual time, held against runs on a real machine: the same way, the other way, or
//! not told.

use punctual_judge::{Comparison, Rule, Verdict, beyond_the_kernel, compare};
use punctual_model::run::State;
use punctual_model::{MachineRecord, Preemption, Run};
use punctual_published::{Claim, Claims, Side, Way};
use serde::Serialize;

use crate::block::{self, Block};
use crate::matrix::{Column, Matrix};
use crate::published::{by_run, rows, says};
use crate::shell;
use crate::text::{counted, list};

/// The form's name and version.
const SCHEMA: &str = "punctual.metal/1";

/// What came of a file of claims; it is its own JSON.
#[derive(Debug, Serialize)]
pub struct Metal {
    schema: &'static str,
    summary: String,
    /// What keeps runs from being of a side: whose preemption model is not known, and why.
    unknown: Vec<String>,
    /// The claims, in the order of the file.
    pub claims: Vec<Tried>,
}

/// A claim, and what came of it on a machine.
#[derive(Debug, Serialize)]
pub struct Tried {
    document: String,
    says: String,
    expects: Way,
    /// `timer, stress: max`.
    figure: String,
    /// What came of it.
    #[serde(flatten)]
    pub cell: Cell,
}

/// What came of a claim.
#[derive(Debug, Serialize)]
#[serde(tag = "on_a_machine", rename_all = "kebab-case")]
pub enum Cell {
    /// No run on a real machine is of either side, or none is of one.
    NotTried {
        /// The machine and the kernel of the runs that there are of one side.
        have: Option<Place>,
        /// How a machine is to be booted for what is missing.
        needs: Vec<String>,
    },
    /// Runs of both sides were compared.
    Told {
        /// Where they were made.
        at: Place,
        /// Which way the figures go there.
        sign: Sign,
        /// Why that says nothing of the machine, or nothing at all.
        why: Option<String>,
        /// How many times the one side's figure the other's is; absent where it is not above zero.
        ratio: Option<f64>,
        /// The 95 % interval of that ratio; absent where there are too few runs.
        interval: Option<(f64, f64)>,
        /// How many runs of each side were compared.
        runs: (usize, usize),
        /// In words: `lower, 0.12 times (0.10–0.15)`.
        told: String,
    },
}

/// Which way figures go on a machine, beside what is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
pub struct Place {
    /// The machine's name.
    host: String,
    /// What both sides have besides: `Linux 6.12.117 quiet`.
    all_else: String,
}

/// Runs of one plan on one machine as it was booted once.
struct Boot<'a> {
    column: &'a Column<'a>,
    matrix: &'a Matrix<'a>,
    first: &'a Run,
    release: &'a str,
    command_line: &'a str,
    models: Vec<&'static str>,
}

/// What came of each claim, by runs of its file's suite. Runs in virtual time, and those that did
/// not finish, do not count.
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
        figure: claim.what.name(),
        cell: cell(claim, &boots),
    };
    Metal {
        schema: SCHEMA,
        summary: claims.summary.clone(),
        unknown: unknown(&boots),
        claims: claims.claims.iter().map(tried).collect(),
    }
}

/// How the machines of a matrix were booted, as far as their runs say it.
fn boots<'a>(matrix: &'a Matrix<'a>) -> impl Iterator<Item = Boot<'a>> {
    matrix.columns.iter().filter_map(move |column| {
        let first = *column.runs.first()?;
        let found = first.provenance.as_ref()?;
        let is_known = !found.cmdline.trim().is_empty() && !found.release.is_empty();
        is_known.then(|| Boot {
            column,
            matrix,
            first,
            release: &found.release,
            command_line: &found.cmdline,
            models: models(&found.preemption),
        })
    })
}

/// The machines that may be of any side that names a preemption model, and so are of none.
fn unknown(boots: &[Boot<'_>]) -> Vec<String> {
    let of_boot = |boot: &Boot<'_>| {
        let found = boot.first.provenance.as_ref()?;
        let Preemption::Unknown(why) = &found.preemption else {
            return None;
        };
        let (host, release) = (boot.host(), boot.release);
        Some(format!(
            "{host}, {release}: its preemption model is not known ({why})"
        ))
    };
    let mut all: Vec<String> = boots.iter().filter_map(of_boot).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// What a preemption model may be; nothing where it may be any.
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

    /// What a claim is about, run by run; nothing where it was not measured.
    fn figures(&self, claim: &Claim) -> Vec<f64> {
        let rows = rows(self.matrix, &claim.what, None);
        let found = by_run(self.column, &rows, claim.what.statistic);
        let found = found.into_iter().flatten();
        found.map(|run| run.value).collect()
    }

    /// The machine's name, or as what it was reached.
    fn host(&self) -> &str {
        match &self.first.machine {
            MachineRecord::Host(machine) => machine.ssh.as_ref().unwrap_or(&machine.host),
            MachineRecord::Virtual(_) => "",
        }
    }

    fn place(&self, claim: &Claim) -> Place {
        Place {
            host: self.host().to_owned(),
            all_else: self.rest(claim),
        }
    }
}

/// What came of a claim: of all pairs of boots that differ in nothing but its two sides, the one
/// with the most runs.
fn cell(claim: &Claim, boots: &[Boot<'_>]) -> Cell {
    let with_figures = |side: &Side| -> Vec<(&Boot<'_>, Vec<f64>)> {
        let own = boots.iter().filter(|boot| boot.is(side));
        let own = own.map(|boot| (boot, boot.figures(claim)));
        own.filter(|(_, figures)| !figures.is_empty()).collect()
    };
    let (of, than) = (with_figures(&claim.of), with_figures(&claim.than));
    let pairs = of
        .iter()
        .flat_map(|one| than.iter().map(move |other| (one, other)));
    let mut pairs: Vec<_> = pairs
        .filter(|((one, _), (other, _))| {
            one.first.other_machine(other.first).is_none()
                && one.rest(claim) == other.rest(claim)
                && std::ptr::eq(one.matrix, other.matrix)
        })
        .collect();
    // The last one of equals is the newest.
    pairs.sort_by_key(|((_, ones), (_, others))| ones.len().min(others.len()));
    let Some(((boot, ones), (other, others))) = pairs.pop() else {
        let newest = [of.last(), than.last()].map(|side| side.map(|(boot, _)| *boot));
        return untried(claim, newest);
    };
    let compared = compare(ones, others, &Rule::default());
    let why = [boot, other]
        .into_iter()
        .find_map(|side| beyond_the_kernel(side.first));
    let (sign, little) = sign(claim, &compared);
    Cell::Told {
        at: boot.place(claim),
        sign: if why.is_some() { Sign::Undecided } else { sign },
        why: why.or(little),
        ratio: compared.ratio.map(|ratio| ratio.estimate),
        interval: compared.ratio.and_then(|ratio| ratio.bounds),
        runs: (ones.len(), others.len()),
        told: says(&compared),
    }
}

/// What is missing of a claim, where a side was measured, or none.
fn untried(claim: &Claim, newest: [Option<&Boot<'_>>; 2]) -> Cell {
    let (have, needs) = match newest {
        [Some(boot), _] => (Some(boot), vec![&claim.than]),
        [None, Some(boot)] => (Some(boot), vec![&claim.of]),
        [None, None] => (None, vec![&claim.of, &claim.than]),
    };
    Cell::NotTried {
        have: have.map(|boot| boot.place(claim)),
        needs: needs.into_iter().map(Side::told).collect(),
    }
}

/// Which way it goes beside what is claimed; and why it cannot be told, where that is so.
fn sign(claim: &Claim, compared: &Comparison) -> (Sign, Option<String>) {
    let is_lower = claim.expects == Way::Lower;
    match compared.verdict {
        Verdict::Lower if is_lower => (Sign::Same, None),
        Verdict::Higher if !is_lower => (Sign::Same, None),
        Verdict::Lower | Verdict::Higher => (Sign::Other, None),
        Verdict::Identical => (Sign::None, None),
        Verdict::Undecided(few) => (Sign::Undecided, Some(few.to_string())),
        Verdict::NotSeparated { more } => {
            let effect = Rule::default().effect;
            let bounds = compared.ratio.and_then(|ratio| ratio.bounds);
            let is_excluded = bounds.is_some_and(|(low, high)| low > 1.0 / effect && high < effect);
            if is_excluded {
                return (Sign::None, None);
            }
            let more = more.filter(|more| *more > 0);
            let why = more.map_or_else(
                || "the runs lie too far apart".to_owned(),
                |more| {
                    let runs = counted(more as usize, "more run");
                    format!("{runs} of each side would show a difference of {effect} times")
                },
            );
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
            Self::None => "No difference of 1.2 times",
            Self::Undecided => "Undecided",
        }
    }
}

impl Cell {
    /// Whether both sides were measured, and a sign is told.
    pub fn is_decided(&self) -> bool {
        matches!(self, Self::Told { sign, .. } if *sign != Sign::Undecided)
    }

    /// In a sentence.
    fn told(&self) -> String {
        match self {
            Self::NotTried { have: None, needs } => {
                format!("Not tried: it takes {}.", needs.join("; and "))
            }
            Self::NotTried {
                have: Some(place),
                needs,
            } => format!(
                "Not tried: {} has the other side; boot it with {} and change nothing else.",
                place.host,
                list(needs)
            ),
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
    fn blocks(&self) -> Vec<Block> {
        let tried = self
            .claims
            .iter()
            .filter(|one| matches!(one.cell, Cell::Told { .. }));
        let mut blocks = vec![Block::Para(format!(
            "{}, {} of them tried on a real machine: {}. Each is compared run by run, at 95 % by \
             itself.",
            counted(self.claims.len(), "claim"),
            tried.count(),
            self.summary
        ))];
        blocks.extend(
            self.unknown
                .iter()
                .map(|said| Block::Para(format!("{said}: it is no side of a claim about one."))),
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
        shell::page("Punctual: claims on a real machine", &lead, chapters)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use punctual_model::Fact;
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
        run.machine = MachineRecord::Host(HostMachine {
            host: host.into(),
            ..HostMachine::default()
        });
        run.subject.kernel = format!("6.12.117-{model}");
        run.subject.boot = boot.into();
        run.subject.bench = "host".into();
        let found = run.provenance.get_or_insert_default();
        found.release = format!("6.12.117-{model}");
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
    fn runs_of_both_sides_tell_the_sign() {
        let rt = || runs("board", "rt", "quiet", 1);
        let same = [rt(), runs("board", "none", "quiet", 3)];
        assert_says(
            &same,
            "it is so (timer, max). Same sign. board: lower, 0.333 times",
        );
        assert_says(&same, "; 5 runs against 5.");
        assert_says(&same, "1 claim, 1 of them tried on a real machine");
        let other = [
            runs("board", "rt", "quiet", 3),
            runs("board", "none", "quiet", 1),
        ];
        assert_says(&other, "Other sign. board: higher, 3.00 times");
        let equal = [rt(), runs("board", "none", "quiet", 1)];
        assert!(found(&same).claims[0].cell.is_decided());
        assert_says(&equal, "No difference of 1.2 times");
    }

    #[test]
    fn nothing_is_told_of_what_was_not_measured() {
        assert_says(&[], "Not tried: it takes PREEMPT_RT; and preempt=none.");
        let rt = || runs("board", "rt", "quiet", 1);
        let stock = || runs("board", "none", "quiet", 3);
        let missing = "Not tried: board has the other side; boot it with preempt=none and change";
        assert_says(&[rt()], missing);
        // Another machine, other boot arguments, another release, another plan.
        assert_says(&[rt(), runs("other", "none", "quiet", 3)], "Not tried");
        assert_says(
            &[rt(), runs("board", "none", "quiet isolcpus=1", 3)],
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
            "board, 6.12.117-none: its preemption model is not known (it was not looked for): it",
        );
    }

    #[test]
    fn little_is_undecided() {
        let few = |model, times| vec![run("board", model, "quiet", 1, times)];
        assert_says(&[few("rt", 1), few("none", 3)], "Undecided: ");
        let mut all = [
            runs("board", "rt", "quiet", 1),
            runs("board", "none", "quiet", 3),
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
            runs("board", "none", "quiet", 3),
        ]);
        fixtures::assert_has(
            &found.page(),
            &["Same sign. board: lower", "<h2", "it is so"],
        );
    }
}
