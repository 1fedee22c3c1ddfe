//! A QEMU plugin that watches a guest: QEMU shows it each instruction, and it changes none.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A plugin, and the file with its orders. It is no part of the machine: the same guest runs
/// with and without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    /// The shared library.
    pub library: PathBuf,
    /// What it is told, by an absolute path.
    pub orders: PathBuf,
}

impl Plugin {
    /// QEMU's arguments for it.
    pub(super) fn arguments(&self) -> [OsString; 2] {
        let (library, orders) = (escaped(&self.library), escaped(&self.orders));
        [
            "-plugin".into(),
            format!("{library},orders={orders}").into(),
        ]
    }
}

/// A comma in an option's value is written twice.
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
}
