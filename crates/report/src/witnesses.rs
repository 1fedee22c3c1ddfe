// SPDX-License-Identifier: MIT OR Apache-2.0
//! Witnesses who repeated the runs of a file, and their results.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};

use crate::matrix::distinct;
use crate::repeat::quoted;
use crate::text::{Lines, clean, counted, list};
use crate::verification::Outcome;

/// The form's name and version; `docs/schema/witnesses-1.json` describes it.
const SCHEMA: &str = "punctual.witnesses/1";

/// The witnesses of a file.
#[derive(Debug)]
pub struct Witnesses {
    /// The file's name.
    pub file: String,
    /// Its runs, each with its digest, as far as it has one.
    pub runs: Vec<Digested>,
    /// The signed sightings, in the order in which they were added.
    pub all: Vec<Sighting>,
}

/// A run's id, and its digest if it has one.
pub type Digested = (String, Option<String>);

/// The signed sighting of one witness.
#[derive(Debug)]
pub struct Sighting {
    /// The name of the key's owner, if somebody gave it.
    pub name: Option<String>,
    /// The key, if nobody gave a name.
    pub key: Option<String>,
    /// The reason why it counts for nothing: forged, or of another file.
    pub refused: Option<String>,
    /// The time, in UTC.
    pub when: String,
    /// The version of Punctual there.
    pub punctual: String,
    /// The runs that were repeated there.
    pub seen: Vec<Seen>,
}

/// A run, as it was repeated there.
#[derive(Debug)]
pub struct Seen {
    /// Its id in the file.
    pub run: String,
    /// The outcome.
    pub outcome: Outcome,
    /// The digest there.
    pub digest: Option<String>,
    /// QEMU's version there.
    pub qemu: Option<String>,
    /// The SHA-256 of the initramfs there.
    pub initramfs: Option<String>,
}

impl Witnesses {
    /// Equal if each run was seen equal by somebody with a name, and nobody says otherwise, or saw
    /// another digest.
    pub fn outcome(&self) -> Outcome {
        let is_against = |one: &Sighting| {
            one.refused.is_some()
                || one
                    .seen
                    .iter()
                    .any(|seen| self.of(seen) == Outcome::Differs)
        };
        if self.all.iter().any(is_against) {
            return Outcome::Differs;
        }
        // Whoever could not tell may have seen something else nevertheless.
        let mut all = self.all.iter().flat_map(|one| &one.seen);
        let is_whole = !self.runs.is_empty() && self.runs.iter().all(|run| self.is_seen(run));
        if !is_whole || all.any(|seen| self.is_other(seen)) {
            return Outcome::Undecided;
        }
        Outcome::Equal
    }

    /// Returns true if somebody with a name has seen a run equal.
    fn is_seen(&self, (id, _): &Digested) -> bool {
        let known = self.all.iter().filter(|one| one.name.is_some());
        let mut own = known.flat_map(|one| &one.seen);
        own.any(|seen| seen.run == *id && self.of(seen) == Outcome::Equal)
    }

    /// Returns true if another digest was seen than that of the file.
    fn is_other(&self, seen: &Seen) -> bool {
        let own = self.runs.iter().find(|(id, _)| *id == seen.run);
        let digest = own.and_then(|(_, digest)| digest.as_ref());
        digest.is_some() && seen.digest.is_some() && digest != seen.digest.as_ref()
    }

    /// Returns the outcome of a run there.
    /// An equal one whose digest is not the file's counts as different.
    fn of(&self, seen: &Seen) -> Outcome {
        let own = self.runs.iter().find(|(id, _)| *id == seen.run);
        let is_own = own.is_some_and(|(_, digest)| digest.is_some() && *digest == seen.digest);
        match seen.outcome {
            Outcome::Equal if !is_own => Outcome::Differs,
            other => other,
        }
    }

    /// `2 runs equal, 1 different`.
    fn counts(&self, one: &Sighting) -> String {
        let word = |seen: &Seen| match (self.of(seen), self.is_other(seen)) {
            (Outcome::Equal, _) => "equal",
            (Outcome::Differs, _) => "different",
            (Outcome::Undecided, false) => "undecided",
            (Outcome::Undecided, true) => "undecided with another digest",
        };
        let words = [
            "equal",
            "different",
            "undecided",
            "undecided with another digest",
        ];
        let told = words.into_iter().filter_map(|wanted| {
            let own = one.seen.iter().filter(|seen| word(seen) == wanted);
            let count = own.count();
            (count > 0).then(|| format!("{} {wanted}", counted(count, "run")))
        });
        list(&told.collect::<Vec<_>>())
    }

    /// Describes what was found, in one sentence.
    fn sentence(&self) -> String {
        let outcome = self.outcome();
        if outcome == Outcome::Equal {
            return "each run was seen equal by somebody with a name".to_owned();
        }
        let mut found = Vec::new();
        let (refused, sound): (Vec<&Sighting>, Vec<&Sighting>) =
            self.all.iter().partition(|one| one.refused.is_some());
        match refused.len() {
            0 => {}
            1 => found.push("1 signature is refused".to_owned()),
            count => found.push(format!("{count} signatures are refused")),
        }
        found.extend(sound.into_iter().flat_map(|one| self.contrary(one)));
        if outcome == Outcome::Undecided {
            found.extend(self.gaps());
        }
        found.join("; ")
    }

    /// Describes what a witness saw in place of what the file says.
    fn contrary(&self, one: &Sighting) -> Vec<String> {
        // What stands before the runs, and behind them.
        let contrary = |seen: &Seen| match (self.of(seen), self.is_other(seen)) {
            (Outcome::Differs, true) => Some(["saw another digest of", ""]),
            (Outcome::Differs, false) if seen.outcome == Outcome::Differs => {
                Some(["saw other figures of", ""])
            }
            (Outcome::Differs, false) => Some(["did not see the digest of", ""]),
            (Outcome::Undecided, true) => Some([
                "saw another digest of",
                " on a machine that is not the same",
            ]),
            _ => None,
        };
        let kinds = distinct(one.seen.iter().filter_map(contrary));
        let told = kinds.into_iter().map(|kind| {
            let own = one.seen.iter().filter(|seen| contrary(seen) == Some(kind));
            let runs: Vec<String> = own.map(|seen| seen.run.clone()).collect();
            let ([saw, where_], who) = (kind, one.who());
            format!("{who} {saw} {}{where_}", self.few(&runs))
        });
        told.collect()
    }

    /// Describes what is missing for all runs to be equal.
    fn gaps(&self) -> Vec<String> {
        let of = |is_own: &dyn Fn(&Digested) -> bool| -> Vec<String> {
            let own = self.runs.iter().filter(|run| is_own(run));
            own.map(|(id, _)| id.clone()).collect()
        };
        let unknown = of(&|(_, digest)| digest.is_none());
        let unseen = of(&|run| run.1.is_some() && !self.is_seen(run));
        let mut gaps = Vec::new();
        if self.runs.is_empty() {
            gaps.push("it has no run".to_owned());
        }
        if !unknown.is_empty() {
            gaps.push(format!("it has no digest of {}", self.few(&unknown)));
        }
        if !unseen.is_empty() {
            gaps.push(if self.all.is_empty() {
                "nobody has signed it".to_owned()
            } else {
                format!("nobody with a name saw {} equal", self.few(&unseen))
            });
        }
        gaps
    }

    /// Returns true if a further signature may make it equal.
    fn lacks_signature(&self) -> bool {
        let mut all = self.all.iter().flat_map(|one| &one.seen);
        let is_unseen = |run: &Digested| run.1.is_some() && !self.is_seen(run);
        self.runs.iter().any(is_unseen) && !all.any(|seen| self.is_other(seen))
    }

    /// `r1 and r2`; of many runs their number.
    fn few(&self, runs: &[String]) -> String {
        if runs.len() <= NAMED {
            list(runs)
        } else {
            format!("{} of {}", runs.len(), counted(self.runs.len(), "run"))
        }
    }
}

/// The most runs that a sentence names.
const NAMED: usize = 4;

impl Sighting {
    /// The name of the key's owner, else the key.
    fn who(&self) -> &str {
        let known = self.name.as_ref().or(self.key.as_ref());
        known.map_or("nobody", String::as_str)
    }
}

/// Each witness with what it saw, and all in one line; no line longer than `width`.
pub fn witnesses_text(witnesses: &Witnesses, width: usize) -> String {
    let mut lines = Lines::new(width);
    for one in &witnesses.all {
        let who = match (&one.name, &one.key) {
            (None, Some(key)) => format!("{key}, whose owner is not known"),
            _ => one.who().to_owned(),
        };
        let told = match &one.refused {
            Some(why) => format!("{who}: refused: {why}"),
            None => format!("{who}, {}: {}", one.when, witnesses.counts(one)),
        };
        lines.wrap(&clean(&told), "", "  ");
        let versions: BTreeSet<&str> = one
            .seen
            .iter()
            .filter_map(|seen| seen.qemu.as_deref())
            .collect();
        if one.refused.is_none() {
            let mut there: Vec<String> = vec![format!("Punctual {}", one.punctual)];
            there.extend(
                versions
                    .iter()
                    .map(|version| version.replace("emulator version ", "")),
            );
            lines.wrap(&clean(&list(&there)), "  ", "  ");
        }
    }
    if !witnesses.all.is_empty() {
        lines.line("");
    }
    let (file, all) = (&witnesses.file, counted(witnesses.all.len(), "signature"));
    let told = witnesses.sentence();
    lines.wrap(&clean(&format!("{file}: {all}: {told}.")), "", "  ");
    if witnesses.outcome() == Outcome::Undecided && witnesses.lacks_signature() {
        let is_unnamed = |one: &Sighting| one.refused.is_none() && one.name.is_none();
        if witnesses.all.iter().any(is_unnamed) {
            lines.line("To name the owner of a key: --allowed-signers FILE, with lines NAME KEY");
        }
        lines.line("To add your signature:");
        let sign = format!(
            "punctual verify {} --sign ~/.ssh/id_ed25519",
            clean(&quoted(file))
        );
        lines.wrap(&sign, "  ", "  ");
    }
    lines.finish()
}

/// Witnesses who repeated the runs of a file. New fields may be added to version 1; none is removed
/// or changes its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// The file's name.
    file: &'a str,
    /// The outcome of all. `equal`: somebody with a name has seen each run equal, and nobody saw
    /// otherwise. `differs`: a signature is forged or of another file, or somebody saw another
    /// digest. `undecided`: anything else.
    outcome: Outcome,
    /// The witnesses, in the order in which their signatures were added.
    witnesses: Vec<Witness<'a>>,
}

/// A witness.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Witness<'a> {
    /// The owner of the key, as the file of allowed signers has it.
    name: Option<&'a str>,
    /// The key, if nobody says whose it is.
    key: Option<&'a str>,
    /// The reason why the signature counts for nothing.
    refused: Option<&'a str>,
    /// The time, in UTC.
    when: &'a str,
    /// The version of Punctual that repeated the runs.
    punctual: &'a str,
    /// The runs that were repeated there.
    runs: Vec<Repeated<'a>>,
}

/// A run, as it was repeated there.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Repeated<'a> {
    /// Its id in the file.
    run: &'a str,
    /// The outcome; one that is said to be equal and has another digest than the file is `differs`.
    outcome: Outcome,
    /// The digest there.
    digest: Option<&'a str>,
    /// QEMU's version there.
    qemu: Option<&'a str>,
    /// The SHA-256 of the guest's initramfs there, which holds the target.
    initramfs_sha256: Option<&'a str>,
}

/// `punctual.witnesses/1`.
pub fn witnesses_json(witnesses: &Witnesses) -> Value {
    let all = witnesses.all.iter();
    json!(Document {
        schema: SCHEMA,
        file: &witnesses.file,
        outcome: witnesses.outcome(),
        witnesses: all.map(|one| Witness::of(witnesses, one)).collect(),
    })
}

impl<'a> Witness<'a> {
    fn of(witnesses: &Witnesses, one: &'a Sighting) -> Self {
        let runs = one.seen.iter().map(|seen| Repeated {
            run: &seen.run,
            outcome: witnesses.of(seen),
            digest: seen.digest.as_deref(),
            qemu: seen.qemu.as_deref(),
            initramfs_sha256: seen.initramfs.as_deref(),
        });
        Self {
            name: one.name.as_deref(),
            key: one.key.as_deref(),
            refused: one.refused.as_deref(),
            when: &one.when,
            punctual: &one.punctual,
            runs: runs.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::assert_has;

    fn sighting(name: &str, outcome: Outcome, digest: &str) -> Sighting {
        Sighting {
            name: Some(name.into()),
            key: None,
            refused: None,
            when: "2026-03-01T10:00:00Z".into(),
            punctual: "0.1.0".into(),
            seen: vec![Seen {
                run: "r1".into(),
                outcome,
                digest: Some(digest.into()),
                qemu: None,
                initramfs: None,
            }],
        }
    }

    fn of(all: Vec<Sighting>) -> Witnesses {
        Witnesses {
            file: "x.punctual".into(),
            runs: vec![("r1".into(), Some("aa".into()))],
            all,
        }
    }

    fn ann() -> Sighting {
        sighting("ann", Outcome::Equal, "aa")
    }

    /// Whoever saw another digest, though he could not tell, keeps it from being equal.
    #[test]
    fn another_digest_is_never_equal() {
        let with = |other: Sighting| of(vec![ann(), other]).outcome();
        let same = sighting("bob", Outcome::Undecided, "aa");
        assert_eq!(with(same), Outcome::Equal);
        let other = sighting("bob", Outcome::Undecided, "bb");
        assert_eq!(with(other), Outcome::Undecided);
        let differs = sighting("bob", Outcome::Equal, "bb");
        assert_eq!(with(differs), Outcome::Differs);
    }

    #[test]
    fn it_says_what_was_found_and_asks_for_signatures_only_where_one_is_missing() {
        let told = |all: Vec<Sighting>| witnesses_text(&of(all), 200);
        let with = |outcome, digest| told(vec![ann(), sighting("bob", outcome, digest)]);
        let other = with(Outcome::Undecided, "bb");
        assert_has(
            &other,
            &[
                "bob, 2026-03-01T10:00:00Z: 1 run undecided with another digest\n",
                "x.punctual: 2 signatures: bob saw another digest of r1 on a machine that is not \
                 the same.\n",
            ],
        );
        assert!(!other.contains("To add"), "{other}");
        let differs = with(Outcome::Differs, "bb");
        assert_has(&differs, &["2 signatures: bob saw another digest of r1.\n"]);
        let figures = with(Outcome::Differs, "aa");
        assert_has(&figures, &["2 signatures: bob saw other figures of r1.\n"]);
        let none = told(Vec::new());
        assert_has(&none, &["0 signatures: nobody has signed it.\n", "To add"]);
        let mut nameless = ann();
        (nameless.name, nameless.key) = (None, Some("SHA256:abc".into()));
        let nameless = told(vec![nameless]);
        let missing = "1 signature: nobody with a name saw r1 equal.\n";
        assert_has(&nameless, &[missing, "To name the owner", "To add"]);
        let mut forged = ann();
        forged.refused = Some("incorrect signature".into());
        let forged = told(vec![forged]);
        assert_has(&forged, &["1 signature: 1 signature is refused.\n"]);
    }

    #[test]
    fn of_many_runs_it_tells_how_many() {
        let mut many = of(vec![ann()]);
        let runs = (2..=9).map(|number| (format!("r{number}"), Some("aa".to_owned())));
        many.runs.extend(runs);
        let told = "nobody with a name saw 8 of 9 runs equal";
        assert_eq!(many.sentence(), told);
        many.runs.push(("r10".into(), None));
        assert_has(
            &many.sentence(),
            &["it has no digest of r10; nobody with a name"],
        );
    }

    #[test]
    fn the_schema_is_what_the_type_says() {
        crate::schema::assert_is_of::<Document<'_>>(
            "witnesses-1.json",
            "Witnesses of a file: what `punctual verify --witnesses --json` prints",
        );
    }
}
