// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records who has repeated the runs of a file, and the outcome there: statements behind the file's
//! end, each signed with an SSH key.
//!
//! A statement is signed in the way of `ssh-keygen -Y sign`, in the namespace [`NAMESPACE`]; the
//! form is that of OpenSSH's `PROTOCOL.sshsig`. Each is a gzip member of its own, so that it can be
//! added without changing the runs that it is about.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use crate::ExchangeError;

/// The purpose of signatures: one made for another purpose is not valid here.
pub const NAMESPACE: &str = "punctual";
/// The form of a statement.
const SCHEMA: &str = "punctual.witness/1";
/// The most statements in a file.
const MOST: usize = 1_000;
/// The longest statement, in bytes.
const BYTES_MOST: u64 = 1 << 20;

/// A statement of somebody who has repeated the runs of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// The form.
    schema: String,
    /// The SHA-256 of the file's lines, as in its last line.
    pub file: String,
    /// The time of the repetition, in UTC.
    pub when: String,
    /// The version of Punctual that repeated them.
    pub punctual: String,
    /// The runs that were repeated.
    pub runs: Vec<Seen>,
}

impl Statement {
    /// A statement about runs of the file whose lines have this SHA-256.
    pub fn new(file: &str, when: &str, runs: Vec<Seen>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            file: file.to_owned(),
            when: when.to_owned(),
            punctual: env!("CARGO_PKG_VERSION").to_owned(),
            runs,
        }
    }
}

/// A run and its outcome elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The run's id in the file.
    pub run: String,
    /// `equal`, `differs` or `undecided`.
    pub outcome: String,
    /// The digest there, if there was one.
    pub digest: Option<String>,
    /// QEMU's version there.
    pub qemu: Option<String>,
    /// The SHA-256 of the initramfs there. It holds the target, which differs with the compiler.
    pub initramfs: Option<String>,
}

/// A statement, word for word as it was signed, and its signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// A [`Statement`] as JSON.
    statement: String,
    /// The signature, armoured.
    signature: String,
}

/// The signer of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signer {
    /// Somebody whose key is among the allowed signers.
    Known {
        /// The name in the file of allowed signers.
        name: String,
    },
    /// The signature is sound, but nobody has said whose key it is.
    Unknown {
        /// The key's type and fingerprint, as `ssh-keygen` prints them.
        key: String,
    },
    /// The signature is not for this statement, or not for this purpose.
    Forged {
        /// The message of `ssh-keygen`.
        why: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Witness(Witness),
}

impl Witness {
    /// Signs a statement with a private key, or with the agent's key that belongs to a public one.
    ///
    /// # Errors
    /// If `ssh-keygen` is missing, or refuses.
    pub fn sign(statement: &Statement, key: &Path) -> Result<Self, ExchangeError> {
        let statement = serde_json::to_string(statement).map_err(std::io::Error::other)?;
        let mut words = ssh_keygen("sign");
        let ended = ask(words.arg("-f").arg(key), &statement)?;
        if !ended.status.success() {
            return Err(ExchangeError::Signature(said(&ended)));
        }
        let signature = String::from_utf8_lossy(&ended.stdout).into_owned();
        Ok(Self {
            statement,
            signature,
        })
    }

    /// The statement.
    ///
    /// # Errors
    /// If it is not a statement, or is of a later form.
    pub fn statement(&self) -> Result<Statement, ExchangeError> {
        let parsed: Result<Statement, _> = serde_json::from_str(&self.statement);
        let wrong = |what: String| ExchangeError::Signature(format!("a witness: {what}"));
        let statement = parsed.map_err(|error| wrong(error.to_string()))?;
        if statement.schema != SCHEMA {
            let found = &statement.schema;
            return Err(wrong(format!("expected {SCHEMA}, found {found}")));
        }
        Ok(statement)
    }

    /// Finds the signer in a file of allowed signers, as `ssh-keygen(1)` describes it.
    ///
    /// # Errors
    /// If `ssh-keygen` is missing.
    pub fn signer(&self, allowed: Option<&Path>) -> Result<Signer, ExchangeError> {
        let scratch = tempfile::NamedTempFile::new()?;
        std::fs::write(scratch.path(), &self.signature)?;
        let check = |what: &str, allowed: Option<&Path>, name: Option<&str>| {
            let mut words = ssh_keygen(what);
            words.arg("-s").arg(scratch.path());
            words.args(
                allowed
                    .iter()
                    .flat_map(|file| ["-f".as_ref(), file.as_os_str()]),
            );
            words.args(name.iter().flat_map(|name| ["-I", name]));
            ask(&mut words, &self.statement)
        };
        let sound = check("check-novalidate", None, None)?;
        if !sound.status.success() {
            let why = said(&sound);
            return Ok(Signer::Forged { why });
        }
        if let Some(allowed) = allowed {
            let found = check("find-principals", Some(allowed), None)?;
            let names = String::from_utf8_lossy(&found.stdout).into_owned();
            // A pattern is nobody's name.
            let is_name = |name: &&str| !name.contains(['*', '?', '!']);
            let names = names.lines().filter(is_name);
            for name in names.filter(|_| found.status.success()) {
                if check("verify", Some(allowed), Some(name))?.status.success() {
                    let name = name.to_owned();
                    return Ok(Signer::Known { name });
                }
            }
        }
        let told = String::from_utf8_lossy(&sound.stdout).trim().to_owned();
        let key = told.split_once(" with ").map(|(_, key)| key.to_owned());
        Ok(Signer::Unknown {
            key: key.unwrap_or(told),
        })
    }

    /// Appends the witness to a file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append_to(&self, file: &Path) -> Result<(), ExchangeError> {
        let line =
            serde_json::to_vec(&Line::Witness(self.clone())).map_err(std::io::Error::other)?;
        if line.len() as u64 >= BYTES_MOST {
            let why = "a witness of so many runs has no room in a file: sign with --only RUN";
            return Err(ExchangeError::Signature(why.to_owned()));
        }
        let mut member = GzEncoder::new(Vec::new(), Compression::default());
        member.write_all(&line)?;
        member.write_all(b"\n")?;
        let mut file: File = OpenOptions::new().append(true).open(file)?;
        let whole = file.metadata()?.len();
        file.write_all(&member.finish()?).or_else(|error| {
            // Half a witness would make the whole file unreadable.
            file.set_len(whole)?;
            Err(error.into())
        })
    }
}

/// Checks that a file with so many witnesses has room for another.
///
/// # Errors
/// If it has none.
pub fn has_room(witnesses: usize) -> Result<(), ExchangeError> {
    if witnesses < MOST {
        return Ok(());
    }
    let why = format!("a file has room for {MOST} witnesses: export its runs anew");
    Err(ExchangeError::Signature(why))
}

/// Reads what follows the end of a file: witnesses, or nothing.
pub(crate) fn read(file: &mut impl BufRead) -> Result<Vec<Witness>, ExchangeError> {
    let mut all = Vec::new();
    while !file.fill_buf()?.is_empty() {
        if all.len() == MOST || !crate::is_export(file.fill_buf()?) {
            return Err(ExchangeError::Trailing);
        }
        let mut text = Vec::new();
        let mut member = BufReader::new(GzDecoder::new(&mut *file)).take(BYTES_MOST + 1);
        let read = member.read_to_end(&mut text);
        let line = read.ok().filter(|read| *read as u64 <= BYTES_MOST);
        let line = line.and_then(|_| serde_json::from_slice(&text).ok());
        let Some(Line::Witness(witness)) = line else {
            return Err(ExchangeError::Trailing);
        };
        all.push(witness);
    }
    Ok(all)
}

fn ssh_keygen(what: &str) -> Command {
    let mut words = Command::new("ssh-keygen");
    words.args(["-Y", what, "-n", NAMESPACE]);
    words
}

/// Runs the command with a text on its standard input.
fn ask(words: &mut Command, text: &str) -> Result<Output, ExchangeError> {
    words.stdin(Stdio::piped()).stdout(Stdio::piped());
    let absent = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => ExchangeError::Signature(
            "ssh-keygen is not here: it is in OpenSSH's client (Debian: openssh-client)".into(),
        ),
        _ => error.into(),
    };
    let mut child = words.stderr(Stdio::piped()).spawn().map_err(absent)?;
    let mut input = child.stdin.take().expect("it was asked for");
    // What it does not read it does not want.
    let _ = input.write_all(text.as_bytes());
    drop(input);
    Ok(child.wait_with_output()?)
}

fn said(ended: &Output) -> String {
    let text = [&ended.stderr, &ended.stdout].map(|text| String::from_utf8_lossy(text));
    let lines = text.iter().flat_map(|text| text.lines());
    let last = lines.map(str::trim).rfind(|line| !line.is_empty());
    format!("ssh-keygen: {}", last.unwrap_or("it failed"))
}
