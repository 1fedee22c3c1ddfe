// SPDX-License-Identifier: MIT OR Apache-2.0
//! Witnesses who repeated the runs of a file, and their results.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};

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
    pub runs: Vec<(String, Option<String>)>,
    /// The signed sightings, in the order in which they were added.
    pub all: Vec<Sighting>,
}

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
        let known = self.all.iter().filter(|one| one.name.is_some());
        let known: Vec<&Seen> = known.flat_map(|one| &one.seen).collect();
        let is_seen = |(id, _): &(String, Option<String>)| {
            let mut own = known.iter().filter(|seen| seen.run == *id);
            own.any(|seen| self.of(seen) == Outcome::Equal)
        };
        // Whoever could not tell may have seen something else nevertheless.
        let is_other = |seen: &Seen| {
            let own = self.runs.iter().find(|(id, _)| *id == seen.run);
            seen.digest.is_some() && own.is_some_and(|(_, digest)| *digest != seen.digest)
        };
        let mut all = self.all.iter().flat_map(|one| &one.seen);
        if self.runs.is_empty() || !self.runs.iter().all(is_seen) || all.any(is_other) {
            return Outcome::Undecided;
        }
        Outcome::Equal
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
        let words = [
            (Outcome::Equal, "equal"),
            (Outcome::Differs, "different"),
            (Outcome::Undecided, "undecided"),
        ];
        let told = words.into_iter().filter_map(|(outcome, word)| {
            let count = one
                .seen
                .iter()
                .filter(|seen| self.of(seen) == outcome)
                .count();
            (count > 0).then(|| format!("{} {word}", counted(count, "run")))
        });
        list(&told.collect::<Vec<_>>())
    }
}

/// Each witness with what it saw, and all in one line; no line longer than `width`.
pub fn witnesses_text(witnesses: &Witnesses, width: usize) -> String {
    let mut lines = Lines::new(width);
    for one in &witnesses.all {
        let who = match (&one.name, &one.key) {
            (Some(name), _) => name.clone(),
            (None, Some(key)) => format!("{key}, whose owner is not known"),
            (None, None) => "nobody".to_owned(),
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
    let told = match witnesses.outcome() {
        Outcome::Equal => "each run was seen equal by somebody with a name".to_owned(),
        Outcome::Differs => "one is forged, or saw another digest".to_owned(),
        Outcome::Undecided => "not each run was seen equal by somebody with a name".to_owned(),
    };
    lines.wrap(&clean(&format!("{file}: {all}: {told}.")), "", "  ");
    if witnesses.outcome() == Outcome::Undecided {
        let is_unnamed = |one: &Sighting| one.refused.is_none() && one.name.is_none();
        if witnesses.all.iter().any(is_unnamed) {
            lines.line("To name the owner of a key: --allowed-signers FILE, with lines NAME KEY");
        }
        lines.line("To add your signature:");
        let sign = format!("punctual verify {} --sign ~/.ssh/id_ed25519", clean(file));
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

    /// Whoever saw another digest, though he could not tell, keeps it from being equal.
    #[test]
    fn another_digest_is_never_equal() {
        let sighting = |name: &str, outcome, digest: &str| Sighting {
            name: Some(name.into()),
            key: None,
            refused: None,
            when: String::new(),
            punctual: String::new(),
            seen: vec![Seen {
                run: "r1".into(),
                outcome,
                digest: Some(digest.into()),
                qemu: None,
                initramfs: None,
            }],
        };
        let of = |other: Sighting| Witnesses {
            file: "x.punctual".into(),
            runs: vec![("r1".into(), Some("aa".into()))],
            all: vec![sighting("ann", Outcome::Equal, "aa"), other],
        };
        let same = of(sighting("bob", Outcome::Undecided, "aa"));
        assert_eq!(same.outcome(), Outcome::Equal);
        let other = of(sighting("bob", Outcome::Undecided, "bb"));
        assert_eq!(other.outcome(), Outcome::Undecided);
        let differs = of(sighting("bob", Outcome::Equal, "bb"));
        assert_eq!(differs.outcome(), Outcome::Differs);
    }

    #[test]
    fn the_schema_is_what_the_type_says() {
        crate::schema::assert_is_of::<Document<'_>>(
            "witnesses-1.json",
            "Witnesses of a file: what `punctual verify --witnesses --json` prints",
        );
    }
}
