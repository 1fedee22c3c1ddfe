// SPDX-License-Identifier: MIT OR Apache-2.0
//! A QEMU plugin that watches a guest. QEMU shows it each instruction, and it changes none.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Error;

/// A plugin, and the file with its orders. It is not part of the machine: the same guest runs with
/// and without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    /// The shared library.
    pub library: PathBuf,
    /// The file with its orders, as an absolute path.
    pub orders: PathBuf,
}

impl Plugin {
    /// The environment variable that tells the plugin which version of QEMU's plugin API to
    /// declare.
    pub(super) fn environment(qemu_version: &str) -> Result<(&'static str, String), Error> {
        let api = api(qemu_version).ok_or_else(|| Error::NoPluginApi(qemu_version.into()));
        api.map(|api| ("PUNCTUAL_PLUGIN_API", api.to_string()))
    }

    /// The arguments of QEMU that load it.
    pub(super) fn arguments(&self) -> [OsString; 2] {
        let (library, orders) = (escaped(&self.library), escaped(&self.orders));
        [
            "-plugin".into(),
            format!("{library},orders={orders}").into(),
        ]
    }
}

/// The releases of QEMU that introduced each version of the plugin API, newest first
/// (`QEMU_PLUGIN_VERSION` in its `qemu-plugin.h`).
const APIS: [((u32, u32), u32); 7] = [
    ((11, 1), 7),
    ((11, 0), 6),
    ((10, 1), 5),
    ((9, 2), 4),
    ((9, 1), 3),
    ((9, 0), 2),
    ((6, 0), 1),
];

/// The version of the plugin API that a QEMU has, by the first line of its `--version`. For a QEMU
/// newer than all that are known here, it is the newest known version. `None` if it is too old, or
/// if the line is no version.
///
/// QEMU exports the same functions in versions 6 and 7, with different arguments, and accepts no
/// plugin that declares the wrong one. So its own version has to tell.
fn api(qemu_version: &str) -> Option<u32> {
    let (_, numbers) = qemu_version.split_once(" version ")?;
    let mut numbers = numbers.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    let release = (number()?, number()?);
    let (_, api) = APIS.iter().find(|(since, _)| release >= *since)?;
    Some(*api)
}

/// Escapes a path as an option's value, in which a comma is written twice.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_in_a_path_does_not_end_it() {
        let plugin = Plugin {
            library: "/a,b/p.so".into(),
            orders: "/tmp/orders".into(),
        };
        let expected = ["-plugin", "/a,,b/p.so,orders=/tmp/orders"];
        assert_eq!(plugin.arguments(), expected);
    }

    #[test]
    fn the_api_is_the_one_that_came_with_the_release() {
        let of = |number: &str| api(&format!("QEMU emulator version {number}"));
        for (number, expected) in [
            ("6.0.0", 1),
            ("7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)", 1),
            ("8.2.10", 1),
            ("9.0.0", 2),
            ("9.1.3", 3),
            ("9.2.0", 4),
            ("10.0.13 (Debian 1:10.0.13+ds-0+deb13u1)", 4),
            ("10.1.0", 5),
            ("10.2.2", 5),
            ("11.0.0", 6),
            ("11.1.3 (Debian 1:11.1.3+ds-1)", 7),
            ("11.2.0", 7),
            ("20.0.0", 7),
        ] {
            assert_eq!(of(number), Some(expected), "{number}");
        }
    }

    #[test]
    fn what_has_no_known_api_is_said_so() {
        for version in [
            "QEMU emulator version 5.2.0",
            "QEMU emulator version unknown",
            "QEMU emulator version 10",
            "10.0.13",
            "",
        ] {
            assert_eq!(api(version), None, "{version}");
            let error = Plugin::environment(version).unwrap_err().to_string();
            assert!(error.contains(&format!("{version:?}")), "{error}");
        }
        let (name, value) = Plugin::environment("QEMU emulator version 9.0.2").unwrap();
        assert_eq!((name, value.as_str()), ("PUNCTUAL_PLUGIN_API", "2"));
    }
}
