// SPDX-License-Identifier: MIT OR Apache-2.0
//! One option of a kernel's configuration, as a user sets it: `PREEMPT_LAZY=y`.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// An option and its value.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Setting {
    /// Its name, without `CONFIG_`.
    pub name: String,
    /// Its value as in `.config`: `y`, `m`, a number, a text in quotation marks; `n` if it is not
    /// set.
    pub value: String,
}

/// A word that sets no option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected an option of the kernel's configuration and its value, such as PREEMPT_LAZY=y or CONFIG_HZ=1000, found \"{0}\""
)]
pub struct SettingError(String);

impl FromStr for Setting {
    type Err = SettingError;

    fn from_str(word: &str) -> Result<Self, SettingError> {
        let wrong = || SettingError(word.to_owned());
        let (name, value) = word.trim().split_once('=').ok_or_else(wrong)?;
        let name = name.strip_prefix("CONFIG_").unwrap_or(name);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) || value.is_empty() {
            return Err(wrong());
        }
        let is_text = value.chars().any(char::is_control);
        let is_quoted = value.len() > 1 && value.starts_with('"') && value.ends_with('"');
        if is_text || (value.contains('"') && !is_quoted) {
            return Err(wrong());
        }
        let is_plain = matches!(value, "y" | "m" | "n") || is_quoted || is_number(value);
        Ok(Self {
            name: name.to_owned(),
            value: if is_plain {
                value.to_owned()
            } else {
                format!("\"{value}\"")
            },
        })
    }
}

impl TryFrom<String> for Setting {
    type Error = SettingError;

    fn try_from(word: String) -> Result<Self, SettingError> {
        word.parse()
    }
}

/// The settings that count: of those of one name the last.
pub(crate) fn that_count(settings: &[Setting]) -> Vec<Setting> {
    let is_last = |(at, setting): &(usize, &Setting)| {
        let mut later = settings[at + 1..].iter();
        !later.any(|other| other.name == setting.name)
    };
    let last = settings.iter().enumerate().filter(is_last);
    last.map(|(_, setting)| setting.clone()).collect()
}

/// Returns true for numbers such as `250`, `-1` or `0x1000`.
fn is_number(value: &str) -> bool {
    let all = |digits: &str, are: fn(&char) -> bool| {
        !digits.is_empty() && digits.chars().all(|c| are(&c))
    };
    match value.strip_prefix("0x") {
        Some(digits) => all(digits, char::is_ascii_hexdigit),
        None => all(
            value.strip_prefix('-').unwrap_or(value),
            char::is_ascii_digit,
        ),
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.name, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_setting_of_a_name_counts() {
        let settings = ["FOO=y", "HZ=250", "CONFIG_FOO=n", "BAR=y"];
        let settings = settings.map(|one| one.parse::<Setting>().unwrap());
        let counting = that_count(&settings);
        let shown: Vec<String> = counting.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["HZ=250", "FOO=n", "BAR=y"]);
        assert!(that_count(&[]).is_empty());
    }

    #[test]
    fn a_word_sets_an_option() {
        let shown = |word: &str| word.parse::<Setting>().map(|one| one.to_string());
        for (word, expected) in [
            ("PREEMPT_LAZY=y", "PREEMPT_LAZY=y"),
            ("CONFIG_HZ=1000", "HZ=1000"),
            ("A=-1", "A=-1"),
            ("A=0x1f", "A=0x1f"),
            ("A=n", "A=n"),
            ("DEFAULT_HOSTNAME=ada", "DEFAULT_HOSTNAME=\"ada\""),
            ("DEFAULT_HOSTNAME=\"a b\"", "DEFAULT_HOSTNAME=\"a b\""),
        ] {
            assert_eq!(shown(word).as_deref(), Ok(expected));
        }
        for wrong in ["", "A", "A=", "=y", "A B=y", "A=\"", "A=a\"b", "A=y\nB=y"] {
            let error = shown(wrong).unwrap_err().to_string();
            assert!(error.contains("such as PREEMPT_LAZY=y"), "{error}");
        }
    }
}
