// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration that a kernel was built with.

use std::collections::BTreeMap;

use punctual_model::Reason;

/// The setting of an option in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    BuiltIn,
    Module,
    Off,
}

/// The options that a kernel's configuration names.
#[derive(Debug)]
pub struct Config {
    options: BTreeMap<String, Setting>,
    /// True if options that it does not name are off: it has its head and its end.
    is_whole: bool,
}

impl Config {
    /// Parses a kernel's `.config`; `None` if the text is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let option = |line: &str| {
            let line = line.trim_end();
            if let Some(name) = line.strip_prefix("# CONFIG_") {
                let name = name.strip_suffix(" is not set")?;
                return Some((name.to_owned(), Setting::Off));
            }
            let (name, value) = line.strip_prefix("CONFIG_")?.split_once('=')?;
            let setting = match value {
                "y" => Setting::BuiltIn,
                "m" => Setting::Module,
                _ => return None,
            };
            Some((name.to_owned(), setting))
        };
        let options: BTreeMap<String, Setting> = text.lines().filter_map(option).collect();
        let is_on = |setting: &Setting| *setting != Setting::Off;
        options.values().any(is_on).then(|| Self {
            options,
            is_whole: is_whole(text),
        })
    }

    fn setting(&self, option: &str) -> Result<Setting, Reason> {
        match self.options.get(option) {
            Some(setting) => Ok(*setting),
            None if self.is_whole => Ok(Setting::Off),
            None => Err(format!(
                "the configuration is an excerpt, or was cut, and does not name CONFIG_{option}"
            )
            .into()),
        }
    }

    /// Returns true if the text names an option, on or off: the kernel has it.
    pub fn names(&self, option: &str) -> bool {
        self.options.contains_key(option)
    }

    /// Returns true if an option (`PREEMPT_RT`) is on, either built in or as a module.
    pub fn has(&self, option: &str) -> Result<bool, Reason> {
        Ok(self.setting(option)? != Setting::Off)
    }

    /// Returns those of these options that are built in. An error if none is and one is not named.
    pub fn built_in(&self, options: &[&str]) -> Result<Vec<String>, Reason> {
        let settings = options.iter().map(|option| (option, self.setting(option)));
        let settings: Vec<_> = settings.collect();
        let is_on = |(_, setting): &&(_, Result<Setting, Reason>)| *setting == Ok(Setting::BuiltIn);
        let on = settings.iter().filter(is_on);
        let on: Vec<String> = on.map(|(option, _)| format!("CONFIG_{option}")).collect();
        let unknown = settings.into_iter().find_map(|(_, setting)| setting.err());
        match unknown {
            Some(reason) if on.is_empty() => Err(reason),
            _ => Ok(on),
        }
    }
}

/// Returns true if a configuration begins and ends as Kconfig writes it. Since Linux 5.4 it marks
/// the end of its last menu.
fn is_whole(text: &str) -> bool {
    let has = |wanted: &str| text.lines().any(|line| line.trim_end() == wanted);
    let has_head = text
        .lines()
        .take(10)
        .any(|line| line.contains("Automatically generated"));
    let says_ends = text.lines().any(|line| line.starts_with("# end of "));
    has_head && has("# Kernel hacking") && (!says_ends || has("# end of Kernel hacking"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "#\n# Automatically generated file; DO NOT EDIT.\n#\nCONFIG_A=y\n\
                         CONFIG_B=m\n# CONFIG_C is not set\n# end of x\n#\n# Kernel hacking\n#\n\
                         # end of Kernel hacking\n";

    #[test]
    fn what_an_excerpt_does_not_name_is_unknown() {
        let whole = Config::parse(WHOLE).unwrap();
        let has = |config: &Config| ["A", "B", "C", "D"].map(|name| config.has(name).ok());
        assert_eq!(
            has(&whole),
            [Some(true), Some(true), Some(false), Some(false)]
        );
        assert!(whole.names("C") && !whole.names("D"));
        assert_eq!(whole.built_in(&["A", "B"]), Ok(vec!["CONFIG_A".to_owned()]));
        for cut in [
            "CONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\n",
            &WHOLE[..WHOLE.len() - 12],
            &WHOLE[50..],
        ] {
            let config = Config::parse(cut).unwrap_or_else(|| panic!("{cut}"));
            assert_eq!(config.has("D").ok(), None, "{cut}");
            assert!(config.built_in(&["B", "D"]).is_err());
        }
        assert!(Config::parse("# CONFIG_C is not set\n").is_none());
    }
}
