// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel ids: `mine`, `debian-6.12`, or a pinned `debian-6.12@6.12.117-1~deb12u1`.

use crate::error::KernelError;

/// The parts of a kernel id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelId<'a> {
    /// The name before the `@`.
    pub(crate) name: &'a str,
    /// The package version to which it is pinned: all of it (`6.12.117-1~deb12u1`), or the upstream
    /// part (`6.12.117`).
    pub(crate) version: Option<&'a str>,
}

impl<'a> KernelId<'a> {
    /// Checks an id: it becomes the name of a directory and a part of command lines.
    pub(crate) fn parse(id: &'a str) -> Result<Self, KernelError> {
        let (name, version) = match id.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (id, None),
        };
        if is_name(name) && version.is_none_or(is_version) {
            return Ok(Self { name, version });
        }
        Err(KernelError::BadId(id.to_owned()))
    }

    /// Returns true if the id stands for a package of this version.
    pub(crate) fn fits(self, version: &str) -> bool {
        self.version.is_none_or(|pinned| {
            version == pinned || version.rsplit_once('-').is_some_and(|(v, _)| v == pinned)
        })
    }
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.starts_with(plain) && name.chars().all(|c| plain(c) || "._+-".contains(c))
}

/// Returns true for a version in the form of deb-version(7), without an epoch, which no kernel has.
fn is_version(version: &str) -> bool {
    let rest = |c: char| c.is_ascii_alphanumeric() || ".+~-".contains(c);
    version.starts_with(|c: char| c.is_ascii_digit()) && version.chars().all(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_a_name_and_perhaps_a_version() {
        let id = KernelId::parse("debian-6.12@6.12.117-1~deb12u1").unwrap();
        assert_eq!(id.name, "debian-6.12");
        assert_eq!(id.version, Some("6.12.117-1~deb12u1"));
        assert_eq!(KernelId::parse("mine").unwrap().version, None);
        for bad in [
            "", "@1", "a@", "A", "a b", "a@../x", "a@1/2", "-a", "a@1@2", "a@v1",
        ] {
            assert!(KernelId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_pin_is_a_whole_version_or_its_upstream_part() {
        let fits = |id, version| KernelId::parse(id).unwrap().fits(version);
        assert!(fits("k", "6.12.117-1~deb12u1"));
        assert!(fits("k@6.12.117", "6.12.117-1~deb12u1"));
        assert!(fits("k@6.12.117-1~deb12u1", "6.12.117-1~deb12u1"));
        assert!(!fits("k@6.12.11", "6.12.117-1"));
        assert!(!fits("k@6.12.117-1", "6.12.117-1~deb12u1"));
    }
}
