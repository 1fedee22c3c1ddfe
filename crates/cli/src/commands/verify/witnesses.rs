// SPDX-License-Identifier: MIT OR Apache-2.0
//! Witnesses of a file: signs as one here, and lists them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use punctual_exchange::witness::{Seen, Signer, Statement, has_room};
use punctual_exchange::{Reader, Witness};
use punctual_report::verification::{Outcome, Verification};
use punctual_report::witnesses::{self, Sighting, Witnesses, witnesses_json, witnesses_text};
use punctual_store::Store;

use crate::{ExitStatus, UsageError, output};

/// Checks, before hours of measuring, that a file can be added to, and that a key signs.
pub fn check(file: &Path, key: &Path) -> Result<()> {
    let of = |path: &Path| path.display().to_string();
    let open = std::fs::OpenOptions::new().append(true).open(file);
    open.with_context(|| of(file))?;
    let mut reader = Reader::new(std::fs::File::open(file)?).with_context(|| of(file))?;
    while reader.next_run().with_context(|| of(file))?.is_some() {}
    has_room(reader.witnesses().len())
        .map_err(|error| UsageError(format!("{}: {error}", of(file))))?;
    let trial = Statement::new("", "", Vec::new());
    let signed = Witness::sign(&trial, key).with_context(|| of(key));
    signed.map_err(|error| UsageError(format!("{error:#}")))?;
    Ok(())
}

/// Adds the results of repeating the runs of a file, signed.
pub fn sign(
    file: &Path,
    sha256: &str,
    verification: &Verification,
    store: &Store,
    key: &Path,
) -> Result<()> {
    let seen = verification.claims.iter().map(|claim| {
        let here = claim.here.as_ref().map(|(id, _)| store.load(id));
        let here = here.transpose()?;
        let machine = here.as_ref().and_then(|run| run.machine.as_virtual());
        Ok(Seen {
            run: claim.run.clone(),
            outcome: claim.outcome.name().to_owned(),
            digest: claim.here.as_ref().and_then(|(_, digest)| digest.clone()),
            qemu: machine.map(|machine| machine.qemu.clone()),
            initramfs: machine.map(|machine| machine.initramfs_sha256.clone()),
        })
    });
    let seen: Vec<Seen> = seen.collect::<Result<_>>()?;
    let statement = Statement::new(sha256, &punctual_runner::now(), seen);
    Witness::sign(&statement, key)?.append_to(file)?;
    Ok(())
}

/// Lists the witnesses of a file.
pub fn list(file: &Path, allowed: Option<&Path>, json: bool) -> Result<ExitStatus> {
    let named = || file.display().to_string();
    let mut reader = Reader::new(super::super::open_named(file)?).with_context(named)?;
    let mut runs = Vec::new();
    while let Some(exported) = reader.next_run().with_context(named)? {
        let digest = exported.run.digest();
        runs.push((exported.run.id, digest));
    }
    let own = std::env::home_dir().map(|home| home.join(".ssh/allowed_signers"));
    let own: Option<PathBuf> = own.filter(|file| file.is_file());
    // A pipe could be read for the first signature only.
    if let Some(other) = allowed.filter(|file| !file.is_file()) {
        super::super::check_named(other)?;
        let found = if other.is_dir() {
            "a directory"
        } else {
            "a pipe or a device"
        };
        let other = other.display();
        return Err(UsageError(format!("{other}: expected a file, found {found}")).into());
    }
    let allowed = allowed.or(own.as_deref());
    let all = reader.witnesses().iter();
    let all = all.map(|one| sighting(one, reader.sha256(), allowed));
    let told = Witnesses {
        file: named(),
        runs,
        all: all.collect::<Result<_>>()?,
    };
    let (json_form, text) = (
        || witnesses_json(&told),
        |width| witnesses_text(&told, width),
    );
    output::print_result(json, json_form, text)?;
    Ok(match told.outcome() {
        Outcome::Equal => ExitStatus::Done,
        Outcome::Differs => ExitStatus::Unfit,
        Outcome::Undecided => ExitStatus::Undecided,
    })
}

fn sighting(witness: &Witness, sha256: &str, allowed: Option<&Path>) -> Result<Sighting> {
    let mut told = Sighting {
        name: None,
        key: None,
        refused: None,
        when: String::new(),
        punctual: String::new(),
        seen: Vec::new(),
    };
    match witness.signer(allowed)? {
        Signer::Known { name } => told.name = Some(name),
        Signer::Unknown { key } => told.key = Some(key),
        Signer::Forged { why } => told.refused = Some(why),
    }
    let statement = match witness.statement() {
        Ok(statement) => statement,
        Err(error) => {
            told.refused.get_or_insert(error.to_string());
            return Ok(told);
        }
    };
    if statement.file != sha256 {
        told.refused
            .get_or_insert("it was signed for another file".into());
    }
    (told.when, told.punctual) = (statement.when, statement.punctual);
    let seen = statement.runs.into_iter().map(|one| witnesses::Seen {
        run: one.run,
        outcome: Outcome::of_name(&one.outcome).unwrap_or(Outcome::Undecided),
        digest: one.digest,
        qemu: one.qemu,
        initramfs: one.initramfs,
    });
    told.seen = seen.collect();
    Ok(told)
}
