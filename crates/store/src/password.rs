// SPDX-License-Identifier: MIT OR Apache-2.0
//! Passwords, from where `psql` looks for them: `PGPASSWORD`, then the file that `PGPASSFILE`
//! names, else `~/.pgpass`.
//!
//! <https://www.postgresql.org/docs/current/libpq-pgpass.html>

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// The password for a server's user and database, if one is known.
pub fn of(host: &str, port: u16, (user, database): (&str, &str)) -> Option<String> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(password) = set("PGPASSWORD") {
        return password.into_string().ok();
    }
    let home = || Some(PathBuf::from(set("HOME")?).join(".pgpass"));
    let path = set("PGPASSFILE").map(PathBuf::from).or_else(home)?;
    let is_private = fs::metadata(&path)
        .ok()?
        .permissions()
        .mode()
        .trailing_zeros()
        >= 6;
    // What others can read is no secret: `psql` ignores such a file, too.
    let text = is_private.then(|| fs::read_to_string(&path).ok())??;
    find(&text, [host, &port.to_string(), database, user])
}

/// The password of the first line whose four fields match.
fn find(text: &str, wanted: [&str; 4]) -> Option<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(fields).find_map(|fields| {
        let (password, names) = fields.split_last()?;
        let fits = |(field, wanted): (&String, &str)| {
            // A socket's directory is meant by "localhost", too.
            field == "*" || field == wanted || (wanted.starts_with('/') && field == "localhost")
        };
        (names.len() == 4 && names.iter().zip(wanted).all(fits)).then(|| password.clone())
    })
}

/// The five fields of a line; a backslash makes a colon or a backslash an ordinary character.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let plain = match character {
            '\\' => characters.next(),
            // Colons in a password need no backslash.
            ':' if fields.len() < 5 => None,
            other => Some(other),
        };
        match plain {
            Some(plain) => fields.last_mut().expect("there is a first").push(plain),
            None => fields.push(String::new()),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_decides() {
        let text = "# comment\n\
            db.example:5432:runs:ann:first\n\
            *:*:*:ann:any:colon\n\
            localhost:*:r\\:s:bob:back\\\\slash\n\
            broken:line\n";
        let of = |host, port, database, user| find(text, [host, port, database, user]);
        assert_eq!(of("db.example", "5432", "runs", "ann").unwrap(), "first");
        assert_eq!(
            of("db.example", "5433", "runs", "ann").unwrap(),
            "any:colon"
        );
        assert_eq!(of("/run/x", "5432", "r:s", "bob").unwrap(), "back\\slash");
        assert_eq!(of("db.example", "5432", "runs", "bob"), None);
    }
}
