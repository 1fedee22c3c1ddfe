// SPDX-License-Identifier: MIT OR Apache-2.0
//! The applets of a busybox that does not run on this machine, read from its bytes.
//!
//! Every busybox holds the names of its applets in a row, sorted, each after a zero byte
//! (`applet_names` in its `include/applet_tables.h`).

/// Returns true if the bytes can be the name of an applet.
fn is_name(name: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"[_-.+".contains(byte);
    !name.is_empty() && name.len() < 32 && name.iter().all(plain)
}

/// The longest row of sorted names in these bytes, if it includes the applets that any busybox for
/// a guest has.
pub(super) fn in_bytes(busybox: &[u8]) -> Option<Vec<String>> {
    let mut longest: Vec<&[u8]> = Vec::new();
    let mut row: Vec<&[u8]> = Vec::new();
    for word in busybox.split(|byte| *byte == 0) {
        let follows = row.last().is_none_or(|last| *last < word);
        if !is_name(word) || !follows {
            row.clear();
        }
        if is_name(word) {
            row.push(word);
        }
        if row.len() > longest.len() {
            longest.clone_from(&row);
        }
    }
    let has = |name: &str| longest.contains(&name.as_bytes());
    let text = |name: &&[u8]| String::from_utf8_lossy(name).into_owned();
    ["sh", "ls", "dd", "busybox"]
        .iter()
        .all(|name| has(name))
        .then(|| longest.iter().map(text).collect())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::find_busybox;
    use super::*;

    #[test]
    fn the_names_are_those_that_it_tells_itself() {
        let Ok(busybox) = find_busybox() else {
            return punctual_skip::skip("no static busybox is installed");
        };
        let told = Command::new(&busybox).arg("--list").output().unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        let told: Vec<&str> = told.lines().collect();
        let found = in_bytes(&std::fs::read(&busybox).unwrap()).unwrap();
        assert_eq!(found, told);
    }

    #[test]
    fn what_has_no_such_row_has_no_applets() {
        assert_eq!(in_bytes(b""), None);
        assert_eq!(in_bytes(b"busybox\0dd\0ls\0"), None);
        let found = in_bytes(b"x\0busybox\0dd\0ls\0sh\0\0zz").unwrap();
        assert_eq!(found, ["busybox", "dd", "ls", "sh"]);
    }
}
