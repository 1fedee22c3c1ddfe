// SPDX-License-Identifier: MIT OR Apache-2.0
//! The documents of the probes: `docs/method/probes`.

use include_dir::{Dir, File, include_dir};
use punctual_agent::probes;

use crate::Error;

static PAGES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../docs/method/probes");

/// The document of this probe.
///
/// # Errors
/// If there is no such probe.
pub fn of_probe(probe: &str) -> Result<&'static str, Error> {
    let known: Vec<&str> = probes::ALL.iter().map(|one| one.name).collect();
    let file = PAGES.get_file(format!("{probe}.md"));
    let page = file.and_then(File::contents_utf8);
    let page = page.filter(|_| known.contains(&probe));
    page.ok_or_else(|| Error::unknown("probe", probe, &known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_probe_has_a_page_and_nothing_else_has_one() {
        for probe in probes::ALL {
            let page = of_probe(probe.name).unwrap();
            assert!(page.contains("\n## Parameters\n"), "{}", probe.name);
        }
        let near = of_probe("tmier").unwrap_err().to_string();
        let expected = "there is no probe \"tmier\"; did you mean timer? (there are: timer, ";
        assert!(near.starts_with(expected), "{near}");
        assert!(of_probe("README").is_err());
    }
}
