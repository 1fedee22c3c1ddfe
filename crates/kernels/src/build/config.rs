// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel's configuration as text: read, trimmed, changed, written.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use punctual_model::Architecture;

use super::setting::Setting;

/// Settings in place of those with which a kernel from source cannot or need not be built: see the
/// file.
const BUILDABLE: &str = include_str!("buildable.config");

/// Options that a guest of the virtual bench needs, and those that it does not use: see the file.
const TRIMMED: &str = include_str!("trimmed.config");

/// Options by name, without `CONFIG_`. An option that is not set is missing, or is `n`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Config(BTreeMap<String, String>);

impl Config {
    /// Reads a `.config`.
    pub(crate) fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(option).collect())
    }

    /// The value of an option; `n` if it is not set.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.0.get(name).map_or("n", String::as_str)
    }

    /// Returns true if it mentions an option.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns true if it has no option at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The architecture of its kernel; `None` if it is neither of the two.
    pub(crate) fn architecture(&self) -> Option<Architecture> {
        let is_set = |name| self.value(name) == "y";
        match (is_set("X86_64"), is_set("ARM64")) {
            (true, false) => Some(Architecture::Amd64),
            (false, true) => Some(Architecture::Arm64),
            _ => None,
        }
    }

    /// Drops parts that cannot be built elsewhere: keys that are the distribution's own, and debug
    /// information, which takes an hour and changes no instruction.
    pub(crate) fn buildable(mut self) -> Self {
        self.overlay(BUILDABLE);
        self
    }

    /// Drops modules, except those that guests load, and drivers of hardware that the virtual bench
    /// does not have.
    pub(crate) fn trimmed(mut self) -> Self {
        for value in self.0.values_mut().filter(|value| *value == "m") {
            "n".clone_into(value);
        }
        self.overlay(TRIMMED);
        self
    }

    /// Sets these options; of two that contradict each other, the last counts.
    pub(crate) fn with(mut self, settings: &[Setting]) -> Self {
        for setting in settings {
            self.0.insert(setting.name.clone(), setting.value.clone());
        }
        self
    }

    fn overlay(&mut self, text: &str) {
        self.0.extend(text.lines().filter_map(option));
    }

    /// Writes a `.config`, with the options `last` at the end: in a choice (one of several
    /// preemption models) the last one counts.
    pub(crate) fn text(&self, last: &[Setting]) -> String {
        let mut text = String::new();
        let is_last = |name: &str| last.iter().any(|one| one.name == name);
        let all = self.0.iter().filter(|(name, _)| !is_last(name));
        let last = last.iter().map(|one| (&one.name, &one.value));
        for (name, value) in all.chain(last) {
            // Writing to a string cannot fail.
            let _ = match value.as_str() {
                "n" => writeln!(text, "# CONFIG_{name} is not set"),
                value => writeln!(text, "CONFIG_{name}={value}"),
            };
        }
        text
    }
}

/// The architecture of a kernel tree's `arch/ARCH/configs/NAME_defconfig`, which the file does not
/// mention.
pub(crate) fn of_defconfig(path: &Path) -> Option<Architecture> {
    let within = path.parent()?;
    if within.ends_with("arch/arm64/configs") {
        return Some(Architecture::Arm64);
    }
    let name = path.file_name()?.to_str()?;
    (within.ends_with("arch/x86/configs") && name.starts_with("x86_64"))
        .then_some(Architecture::Amd64)
}

/// The option that a line sets, or declares as not set.
fn option(line: &str) -> Option<(String, String)> {
    let (name, value) = match line.strip_prefix("# CONFIG_") {
        Some(rest) => (rest.strip_suffix(" is not set")?, "n"),
        None => line.strip_prefix("CONFIG_")?.split_once('=')?,
    };
    Some((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "#\n# Automatically generated file; DO NOT EDIT.\n#\nCONFIG_A=y\n\
        CONFIG_SND=m\nCONFIG_HZ=250\nCONFIG_S=\"a=b\"\n# CONFIG_N is not set\n\
        CONFIG_BLK_DEV_NULL_BLK=m\nCONFIG_MODULE_SIG=y\nCONFIG_SYSTEM_TRUSTED_KEYS=\"x.pem\"\n";

    #[test]
    fn a_configuration_is_read_and_written() {
        let config = Config::parse(TEXT);
        assert_eq!(config.value("A"), "y");
        assert_eq!(config.value("S"), "\"a=b\"");
        assert_eq!((config.value("N"), config.has("N")), ("n", true));
        assert_eq!((config.value("O"), config.has("O")), ("n", false));
        assert_eq!(Config::parse(&config.text(&[])), config);
        assert!(Config::parse("a text\n").is_empty());
        let of = |text: &str| Config::parse(text).architecture();
        assert_eq!(of("CONFIG_X86_64=y\n"), Some(Architecture::Amd64));
        assert_eq!(
            of("# CONFIG_X86_64 is not set\nCONFIG_ARM64=y\n"),
            Some(Architecture::Arm64)
        );
        assert_eq!(of("CONFIG_ARM=y\n"), None);
        let of = |path: &str| of_defconfig(Path::new(path));
        let board = "/src/arch/arm64/configs/bcm2711_defconfig";
        assert_eq!(of(board), Some(Architecture::Arm64));
        let pc = "/src/arch/x86/configs/x86_64_defconfig";
        assert_eq!(of(pc), Some(Architecture::Amd64));
        assert_eq!(of("/src/arch/x86/configs/i386_defconfig"), None);
        assert_eq!(of("/src/arch/arm/configs/bcm2711_defconfig"), None);
    }

    #[test]
    fn a_trimmed_one_keeps_the_disk_and_no_other_module() {
        let config = Config::parse(TEXT).buildable().trimmed();
        assert_eq!(config.value("SND"), "n");
        assert_eq!(config.value("BLK_DEV_NULL_BLK"), "m");
        assert_eq!(config.value("MODULE_SIG"), "n");
        assert_eq!(config.value("SYSTEM_TRUSTED_KEYS"), "\"\"");
        assert_eq!((config.value("A"), config.value("HZ")), ("y", "250"));
    }

    #[test]
    fn what_is_set_comes_last() {
        let settings: Vec<Setting> = ["A=n", "B=y"].map(|one| one.parse().unwrap()).into();
        let text = Config::parse("CONFIG_A=y\nCONFIG_C=y\n")
            .with(&settings)
            .text(&settings);
        assert_eq!(text, "CONFIG_C=y\n# CONFIG_A is not set\nCONFIG_B=y\n");
    }
}
