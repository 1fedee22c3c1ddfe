// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program of this machine as the subject: its command line, and the files that a guest gets for
//! it.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use punctual_model::suite::{Suite, is_variable};
use toml::{Table, Value};

use crate::data_files;
use crate::{Error, suites, systems};

/// Words that a shell would understand, but a program would not.
const OF_SHELLS: [&str; 10] = ["|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1"];

/// The origin of a program and its files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin<'a> {
    /// Further files of this machine.
    pub files: &'a [String],
    /// The userland that contains the program, instead of this machine's.
    pub root: Option<&'a str>,
    /// True if a guest gets them.
    pub in_guest: bool,
}

/// The suite with the probe `app` on a program, given with its arguments as a shell takes them. A
/// guest gets the program of this machine with its libraries, and the files that are arguments by a
/// relative path, and finds the program by its name. Or it gets a userland, in which these words
/// stay as they are. On this machine the program stays where it is.
///
/// # Errors
/// If there are no words, or the program does not exist or cannot run.
pub fn suite(
    command: &str,
    from: Origin<'_>,
    loads: &[String],
    params: &Table,
) -> Result<Suite, Error> {
    let wrong = |what: String| Error::Request(format!("--program: {what}"));
    let words = shlex::split(command).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| {
        wrong(format!(
            "expected a program and its arguments, as a shell takes them, found \"{command}\""
        ))
    })?;
    if let Some(word) = words.iter().find(|word| OF_SHELLS.contains(&word.as_str())) {
        return Err(wrong(format!(
            "expected a program and its arguments, found {word}: no shell reads them; what the \
             program prints is kept"
        )));
    }
    let mut command = Command {
        files: from.files.to_vec(),
        ..Command::default()
    };
    let place = match from.root {
        Some(_) => Place::Userland,
        None if from.in_guest => Place::Guest,
        None => Place::Here,
    };
    command.take(words, place).map_err(wrong)?;
    let run: Vec<Value> = command.run.into_iter().map(Value::from).collect();
    let mut params = params.clone();
    params.insert("run".into(), Value::Array(run));
    let mut suite = suites::of_probes(&["app".into()], loads, &params)?;
    suite.programs = command.programs;
    suite.files = command.files;
    let absolute = |root: &str| std::path::absolute(root).map_err(Error::at(Path::new(root)));
    let root = from.root.map(absolute).transpose()?;
    suite.root = root.map(|root| root.to_string_lossy().into_owned());
    Ok(suite)
}

/// The place where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// On this machine.
    Here,
    /// In a guest to which it is copied.
    Guest,
    /// In a guest, in a userland that contains it.
    Userland,
}

/// The command to run, and the files that a guest gets for it.
#[derive(Debug, Default)]
struct Command {
    run: Vec<String>,
    programs: Vec<String>,
    files: Vec<String>,
}

impl Command {
    fn take(&mut self, words: Vec<String>, place: Place) -> Result<(), String> {
        let variables = words.iter().take_while(|word| is_variable(word)).count();
        if variables > 0 {
            self.run.push("env".to_owned());
        }
        for (number, word) in words.into_iter().enumerate() {
            let word = match number {
                _ if number < variables => word,
                _ if place == Place::Userland => word,
                _ if number == variables => self.program(word, place)?,
                _ if place == Place::Guest => self.argument(word)?,
                _ => word,
            };
            self.run.push(word);
        }
        if self.run.len() <= variables + usize::from(variables > 0) {
            return Err("expected a program after its environment, found none".to_owned());
        }
        Ok(())
    }

    fn program(&mut self, word: String, place: Place) -> Result<String, String> {
        let path = startable(&word)?;
        if place == Place::Guest {
            self.bring(&path, &word)
        } else if data_files::is_path(&word) {
            Ok(path.to_string_lossy().into_owned())
        } else {
            Ok(word)
        }
    }

    /// Resolves a relative path as on this machine, since it means nothing in a guest.
    fn argument(&mut self, word: String) -> Result<String, String> {
        let path = Path::new(&word);
        if path.is_absolute() || !word.contains('/') || !path.is_file() {
            return Ok(word);
        }
        let path = absolute(path)?;
        if head(&path).starts_with(b"\x7fELF") && is_executable(&path) {
            return self.bring(&path, &word);
        }
        let path = path.to_string_lossy().into_owned();
        self.files.push(path.clone());
        Ok(path)
    }

    /// Has a guest get a program; returns the name by which the guest finds it.
    fn bring(&mut self, path: &Path, word: &str) -> Result<String, String> {
        let head = head(path);
        if let Some(line) = head.strip_prefix(b"#!") {
            let line = String::from_utf8_lossy(line);
            let interpreter = line.lines().next().unwrap_or_default().trim();
            return Err(format!(
                "{word} is a script: name the program that reads it, as in --program \
                 '{interpreter} {word}'"
            ));
        }
        if !head.starts_with(b"\x7fELF") {
            return Err(format!("{word} is not a program: expected an ELF file"));
        }
        self.programs.push(path.to_string_lossy().into_owned());
        let name = path.file_name().unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }
}

/// The path of a program that can start on this machine.
fn startable(word: &str) -> Result<PathBuf, String> {
    let found = systems::find_program(word).map_err(|error| error.to_string())?;
    let Some(found) = found else {
        let hint = if Path::new(word).is_dir() {
            format!(": {word} is a directory")
        } else if word.starts_with('~') {
            ": no shell reads ~".to_owned()
        } else if !word.contains('/') && Path::new(word).is_file() {
            format!("; a file is named with its directory: ./{word}")
        } else {
            String::new()
        };
        return Err(format!(
            "expected a program of this machine, found no {word}{hint}"
        ));
    };
    let found = absolute(&found)?;
    if is_executable(&found) {
        Ok(found)
    } else {
        Err(format!("{word} is not executable: chmod +x {word}"))
    }
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn is_executable(path: &Path) -> bool {
    let mode = fs::metadata(path).map(|about| about.permissions().mode());
    mode.is_ok_and(|mode| mode & 0o111 != 0)
}

/// The first bytes of a file.
pub(crate) fn head(path: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    if let Ok(file) = File::open(path) {
        // What cannot be read is no program.
        let _ = file.take(256).read_to_end(&mut head);
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &str, place: Place) -> Result<Command, String> {
        let mut command = Command::default();
        command.take(shlex::split(words).unwrap(), place)?;
        Ok(command)
    }

    fn refused(words: &str) -> String {
        let params = Table::new();
        let error = {
            let from = Origin {
                in_guest: true,
                ..Origin::default()
            };
            suite(words, from, &[], &params).unwrap_err()
        };
        assert!(matches!(error, Error::Request(_)), "{error}");
        error.to_string()
    }

    #[test]
    fn what_cannot_be_a_program_is_told_with_why() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        let write = |name: &str, mode, text: &str| {
            fs::write(at(name), text).unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        write("plain", 0o644, "\x7fELF");
        write("script", 0o755, "#!/usr/bin/env python3\n");
        write("text", 0o755, "hello\n");
        let (plain, script, text) = (at("plain"), at("script"), at("text"));
        for (words, why) in [
            ("", "as a shell takes them, found \"\"".to_owned()),
            ("'a", "as a shell takes them, found \"'a\"".to_owned()),
            ("/bin/ls | tee x", "found |: no shell reads them".to_owned()),
            ("no-such-loop", "found no no-such-loop".to_owned()),
            ("~/loop", "found no ~/loop: no shell reads ~".to_owned()),
            ("A=1 B=2", "after its environment, found none".to_owned()),
            (&at(""), format!("{} is a directory", at(""))),
            (&plain, format!("is not executable: chmod +x {plain}")),
            (
                &script,
                format!(
                    "is a script: name the program that reads it, as in --program '/usr/bin/env python3 {script}'"
                ),
            ),
            (&text, format!("{text} is not a program")),
        ] {
            let told = refused(words);
            assert!(told.contains(&why), "{words}: {told}");
        }
    }

    #[test]
    fn a_guest_gets_the_program_and_the_files_that_it_is_given() {
        let found = command(
            "A=1 /bin/ls 'a b' /etc/hosts ./Cargo.toml ./no-such",
            Place::Guest,
        )
        .unwrap();
        let manifest = absolute(Path::new("./Cargo.toml")).unwrap();
        let manifest = manifest.display().to_string();
        let run = [
            "env",
            "A=1",
            "ls",
            "a b",
            "/etc/hosts",
            &manifest,
            "./no-such",
        ];
        assert_eq!(found.run, run);
        assert_eq!(found.programs, ["/bin/ls"]);
        assert_eq!(found.files, [manifest]);
        let here = command("/bin/ls ./Cargo.toml", Place::Here).unwrap();
        assert_eq!(here.run, ["/bin/ls", "./Cargo.toml"]);
        assert!(here.programs.is_empty() && here.files.is_empty());
        let there = command("A=1 ./loop ./Cargo.toml", Place::Userland).unwrap();
        assert_eq!(there.run, ["env", "A=1", "./loop", "./Cargo.toml"]);
        assert!(there.programs.is_empty() && there.files.is_empty());
    }
}
