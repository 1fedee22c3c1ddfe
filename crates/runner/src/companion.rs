// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that belong to the `punctual` program and are installed with it.

use std::path::{Path, PathBuf};

use punctual_bench::Processor;
use punctual_model::Architecture;
use punctual_model::suite::Suite;

/// The processor whose target has no further name.
const OWN: Processor = Processor::OfGuests(Architecture::Amd64);

/// The name that loads and suites use for the program that runs programs of system calls.
pub(crate) const CALLS: &str = "punctual-calls";

/// A file that the `punctual` program needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Companion {
    /// The static program that measures: on a host, and as process 1 of a guest.
    Target(Processor),
    /// The same program with all that `packet` can do: in guests with a wire, and on machines
    /// where a suite has that probe.
    Wire(Processor),
    /// QEMU's plugin that watches a guest.
    ScopePlugin,
    /// The static program that runs programs of system calls in guests of this architecture.
    Calls(Architecture),
}

impl Companion {
    /// The program that carries out a suite on a machine with this processor.
    pub fn that_measures(suite: &Suite, processor: Processor) -> Self {
        if suite.steps.iter().any(|step| step.probe == "packet") {
            Self::Wire(processor)
        } else {
            Self::Target(processor)
        }
    }

    /// The file's name.
    pub fn file_name(self) -> String {
        match self {
            Self::Target(OWN) => "punctual-target".to_owned(),
            Self::Target(other) => format!("punctual-target-{}", other.machine()),
            Self::Wire(OWN) => "punctual-wire".to_owned(),
            Self::Wire(other) => format!("punctual-wire-{}", other.machine()),
            Self::ScopePlugin => "libpunctual_scope.so".to_owned(),
            Self::Calls(Architecture::Amd64) => CALLS.to_owned(),
            Self::Calls(other) => format!("{CALLS}-{}", Processor::from(other).machine()),
        }
    }

    /// The environment variable that names another file in its place.
    pub fn variable(self) -> String {
        match self {
            Self::Target(OWN) => "PUNCTUAL_TARGET".to_owned(),
            Self::Target(other) => format!("PUNCTUAL_TARGET_{}", other.machine().to_uppercase()),
            Self::Wire(OWN) => "PUNCTUAL_WIRE".to_owned(),
            Self::Wire(other) => format!("PUNCTUAL_WIRE_{}", other.machine().to_uppercase()),
            Self::ScopePlugin => "PUNCTUAL_PLUGIN".to_owned(),
            Self::Calls(Architecture::Amd64) => "PUNCTUAL_CALLS".to_owned(),
            Self::Calls(other) => {
                format!(
                    "PUNCTUAL_CALLS_{}",
                    Processor::from(other).machine().to_uppercase()
                )
            }
        }
    }

    /// The path of the file: from the environment variable, else beside this executable, else in
    /// `../lib/punctual` from there, where packages install it. If the file is in none of these
    /// places, returns the path beside the executable, for an error message to name.
    pub fn find(self) -> PathBuf {
        if let Some(path) = std::env::var_os(self.variable()) {
            return path.into();
        }
        // Without /proc the file is looked for in the working directory.
        let executable = std::env::current_exe().unwrap_or_default();
        self.find_near(&executable)
    }

    fn find_near(self, executable: &Path) -> PathBuf {
        let beside = executable.with_file_name(self.file_name());
        let directory = executable.parent().unwrap_or(Path::new("."));
        let installed = directory.join("../lib/punctual").join(self.file_name());
        if !beside.exists() && installed.exists() {
            return installed;
        }
        beside
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_target_for_another_processor_has_its_name() {
        let armv7 = Companion::Target(Processor::Armv7);
        assert_eq!(armv7.file_name(), "punctual-target-armv7");
        assert_eq!(armv7.variable(), "PUNCTUAL_TARGET_ARMV7");
        let calls = Companion::Calls(Architecture::Arm64);
        assert_eq!(calls.file_name(), "punctual-calls-aarch64");
        assert_eq!(calls.variable(), "PUNCTUAL_CALLS_AARCH64");
        assert_eq!(Companion::Target(OWN).file_name(), "punctual-target");
        assert_eq!(Companion::Target(OWN).variable(), "PUNCTUAL_TARGET");
        assert_eq!(
            Companion::Wire(Processor::Armv7).file_name(),
            "punctual-wire-armv7"
        );
    }

    #[test]
    fn a_companion_is_beside_the_program_or_in_its_library_directory() {
        let root = tempfile::tempdir().unwrap();
        let (bin, lib) = (root.path().join("bin"), root.path().join("lib/punctual"));
        fs::create_dir(&bin).unwrap();
        fs::create_dir_all(&lib).unwrap();
        let executable = bin.join("punctual");
        let found = || Companion::Target(OWN).find_near(&executable);
        assert_eq!(
            found(),
            bin.join("punctual-target"),
            "named where it is nowhere"
        );
        fs::write(lib.join("punctual-target"), "").unwrap();
        assert_eq!(found(), bin.join("../lib/punctual/punctual-target"));
        fs::write(bin.join("punctual-target"), "").unwrap();
        assert_eq!(found(), bin.join("punctual-target"), "beside comes first");
    }
}
