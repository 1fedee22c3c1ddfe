//! The files that come with this program and that it needs: the target, the scope's plugin.
//!
//! `./build` makes them beside it; an installed one has them in `../lib/punctual`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The file of this name: where the environment variable says, else beside this program, else
/// in `lib/punctual` beside this program's directory.
pub fn find(name: &str, variable: &str) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(variable).filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    let this = std::env::current_exe().context("cannot find out where this program is")?;
    first(&places(&this, name)).with_context(|| {
        let [beside, installed] = places(&this, name);
        let (beside, installed) = (beside.display(), installed.display());
        format!(
            "expected {beside} or {installed}, found neither: build it with `./build`, or say \
             where it is in {variable}"
        )
    })
}

fn places(program: &Path, name: &str) -> [PathBuf; 2] {
    let directory = program.parent().unwrap_or(Path::new("/"));
    let prefix = directory.parent().unwrap_or(Path::new("/"));
    [directory.join(name), prefix.join("lib/punctual").join(name)]
}

fn first(places: &[PathBuf]) -> Option<PathBuf> {
    places.iter().find(|place| place.is_file()).cloned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_beside_the_program_comes_before_what_is_installed() {
        let root = tempfile::tempdir().unwrap();
        let places = places(&root.path().join("bin/punctual"), "punctual-target");
        assert_eq!(first(&places), None);
        let expected = ["bin/punctual-target", "lib/punctual/punctual-target"];
        for (place, expected) in places.iter().zip(expected).rev() {
            assert_eq!(*place, root.path().join(expected));
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, "").unwrap();
            assert_eq!(first(&places).as_ref(), Some(place));
        }
    }

    #[test]
    fn a_missing_file_is_named_with_both_places_and_the_variable() {
        let error = find("no-such-file", "PUNCTUAL_NO_SUCH_VARIABLE").unwrap_err();
        let error = error.to_string();
        for word in [
            "/no-such-file or /",
            "lib/punctual/no-such-file",
            "PUNCTUAL_NO_SUCH",
        ] {
            assert!(error.contains(word), "{word}: {error}");
        }
    }
}
