// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims that one kernel, or one boot argument, is better than another, for comparison with runs
//! on a real machine.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Measure, PublishedError};

/// A file of claims.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// One line for tables.
    pub summary: String,
    /// The suite that measures the subject of the claims.
    pub suite: String,
    /// The claims.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
}

/// A claim: runs of one side are lower, or higher, than those of another.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The document that makes the claim.
    pub document: String,
    /// The claim, in a plain sentence.
    pub says: String,
    /// The direction in which the figures go, according to the document.
    pub expects: Way,
    /// The side whose figures are lower or higher.
    pub of: Side,
    /// The side it is compared with.
    pub than: Side,
    /// The figure to compare.
    pub what: Measure,
}

/// The direction in which figures go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// They are shorter.
    Lower,
    /// They are longer.
    Higher,
}

/// A kernel as it is booted, as far as a claim is about it. A property that it leaves open may be
/// anything, and is the same on both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Side {
    /// Preemption models, one of which the kernel has; empty: any.
    pub preemption: Vec<String>,
    /// First numbers of the release: `6.12` means 6.12.43, and not 6.1; empty: any.
    pub release: String,
    /// Boot arguments that the kernel has.
    pub boot: String,
    /// Boot arguments that the kernel does not have.
    pub without: String,
}

/// The numbers of a kernel's release: 6, 12 and 117 for `6.12.117+deb12-rt-amd64`.
pub fn release_numbers(release: &str) -> Vec<u64> {
    let is_plain = |c: char| c.is_ascii_digit() || c == '.';
    let head = release.split(|c| !is_plain(c)).next().unwrap_or_default();
    head.split('.')
        .filter_map(|part| part.parse().ok())
        .collect()
}

/// The name of a boot argument: `nohz` for `nohz=off`.
fn name(argument: &str) -> &str {
    argument.split_once('=').map_or(argument, |(name, _)| name)
}

/// Returns true if a command line has a boot argument. Of several with one name the last one
/// counts.
fn has(command_line: &str, argument: &str) -> bool {
    let own = command_line.split_whitespace();
    let mut own = own.filter(|own| name(own) == name(argument));
    own.next_back() == Some(argument)
}

impl Side {
    /// Returns true if this side means a kernel of this release and command line, with one of these
    /// preemption models.
    pub fn means(&self, release: &str, command_line: &str, models: &[&str]) -> bool {
        let is_model = |model: &&str| self.preemption.iter().any(|own| own == model);
        let is_preempted =
            self.preemption.is_empty() || (!models.is_empty() && models.iter().all(is_model));
        let mut boot = self.boot.split_whitespace();
        let mut without = self.without.split_whitespace();
        is_preempted
            && release_numbers(release).starts_with(&release_numbers(&self.release))
            && boot.all(|argument| has(command_line, argument))
            && !without.any(|argument| has(command_line, argument))
    }

    /// The way the kernel is booted, as a phrase: `with PREEMPT_RT`, `with Linux 6.12,
    /// preempt=full`, `without nohz=off`.
    pub fn told(&self) -> String {
        let mut parts = Vec::new();
        if !self.release.is_empty() {
            parts.push(format!("Linux {}", self.release));
        }
        match self.preemption.as_slice() {
            [] => {}
            [one] if one == "rt" => parts.push("PREEMPT_RT".to_owned()),
            [one] => parts.push(format!("preempt={one}")),
            models => parts.push(format!("preempt={}", models.join(" or "))),
        }
        parts.extend((!self.boot.is_empty()).then(|| self.boot.clone()));
        let with = (!parts.is_empty()).then(|| format!("with {}", parts.join(", ")));
        let without = (!self.without.is_empty()).then(|| format!("without {}", self.without));
        let told: Vec<String> = with.into_iter().chain(without).collect();
        told.join(", ")
    }
}

impl Claim {
    /// The properties that must be the same on both sides, for a kernel that is one of them: its
    /// release and its preemption model as far as the claim names none, and all other boot
    /// arguments.
    pub fn rest(&self, release: &str, command_line: &str, models: &[&str]) -> String {
        let sides = [&self.of, &self.than];
        let is_of_models = sides.iter().any(|side| !side.preemption.is_empty());
        let is_of_releases = sides.iter().any(|side| !side.release.is_empty());
        let mut parts = Vec::new();
        if !is_of_releases {
            // A kernel of PREEMPT_RT says so in its release: 6.12.117+deb12-rt-amd64.
            let is_rt = |word: &&str| {
                let digits = word.strip_prefix("rt");
                digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
            };
            let words = release.split(['-', '+']);
            let words: Vec<&str> = words
                .filter(|word| !(is_of_models && is_rt(word)))
                .collect();
            parts.push(format!("Linux {}", words.join("-")));
        }
        if !is_of_models {
            parts.push(models.join(" or "));
        }
        let own = sides.iter().flat_map(|side| [&side.boot, &side.without]);
        let own = own.flat_map(|all| all.split_whitespace());
        let mut own: Vec<&str> = own.map(name).collect();
        // A boot loader's own words; and what asks for the model, where that is known.
        own.extend(["BOOT_IMAGE", "initrd"]);
        own.extend((!models.is_empty()).then_some("preempt"));
        let words = command_line.split_whitespace();
        let mut words: Vec<&str> = words.filter(|word| !own.contains(&name(word))).collect();
        words.sort_unstable();
        parts.extend(words.into_iter().map(str::to_owned));
        parts.join(" ")
    }
}

/// Parses a file of claims; error messages call it `file`.
///
/// # Errors
/// If the text is not TOML, is not in the form of claims, or a claim does not say how its two sides
/// differ.
pub fn parse_claims(file: &Path, text: &str) -> Result<Claims, PublishedError> {
    let claims: Claims = toml::from_str(text).map_err(|reason| PublishedError::Form {
        file: file.to_owned(),
        reason,
    })?;
    let wrong = |says: &str, wrong: String| PublishedError::Claim {
        file: file.to_owned(),
        says: says.to_owned(),
        wrong,
    };
    if claims.claims.is_empty() {
        return Err(wrong("", "expected [[claim]], found none".to_owned()));
    }
    for claim in &claims.claims {
        claim.check().map_err(|why| wrong(&claim.says, why))?;
    }
    Ok(claims)
}

impl Claim {
    /// Checks the sides; an error says what is wrong with them.
    fn check(&self) -> Result<(), String> {
        const MODELS: [&str; 5] = ["none", "voluntary", "full", "lazy", "rt"];
        for side in [&self.of, &self.than] {
            let mut models = side.preemption.iter();
            if let Some(model) = models.find(|one| !MODELS.contains(&one.as_str())) {
                let models = MODELS.join(", ");
                return Err(format!(
                    "expected a preemption model ({models}), found {model}"
                ));
            }
            if !side.release.is_empty() && release_numbers(&side.release).is_empty() {
                let release = &side.release;
                return Err(format!("expected a release such as 6.12, found {release}"));
            }
        }
        if self.of.excludes(&self.than) || self.than.excludes(&self.of) {
            return Ok(());
        }
        Err(
            "expected two sides of which no kernel is both: another preemption model, another \
             release, or an argument that one has and the other is without"
                .to_owned(),
        )
    }
}

impl Side {
    /// Returns true if no kernel of this side is one of the other.
    fn excludes(&self, other: &Self) -> bool {
        let [own, its] = [self, other].map(|side| release_numbers(&side.release));
        let is_other_release = !own.iter().zip(&its).all(|(own, its)| own == its);
        let mut models = self.preemption.iter();
        let is_other_model = !self.preemption.is_empty()
            && !other.preemption.is_empty()
            && !models.any(|model| other.preemption.contains(model));
        let mut without = other.without.split_whitespace();
        let is_without = without.any(|argument| has(&self.boot, argument));
        let mut boot = self.boot.split_whitespace();
        let is_other_value = boot.any(|argument| {
            let mut its = other.boot.split_whitespace();
            its.any(|its| name(its) == name(argument) && its != argument)
        });
        is_other_release || is_other_model || is_without || is_other_value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: &str = "summary = \"s\"\nsuite = \"metal\"\n[[claim]]\ndocument = \"d\"\nsays = \
                         \"it is so\"\nexpects = \"lower\"\nof = { boot = \"nohz=off\" }\nthan = \
                         { without = \"nohz=off\" }\nwhat = { probe = \"timer\", statistic = \
                         \"max\" }\n";

    fn parse(text: &str) -> Result<Claims, PublishedError> {
        parse_claims(Path::new("c.toml"), text)
    }

    #[test]
    fn a_side_is_known_by_release_model_and_arguments() {
        let side = |release: &str, boot: &str, without: &str, models: &[&str]| Side {
            release: release.into(),
            boot: boot.into(),
            without: without.into(),
            preemption: models.iter().map(|one| (*one).to_owned()).collect(),
        };
        let release = "6.12.117+deb12-rt-amd64";
        let means = |side: Side| side.means(release, "quiet nohz=on nohz=off x", &["rt"]);
        assert!(means(side("6.12", "", "", &[])));
        assert!(!means(side("6.1", "", "", &[])));
        assert!(!means(side("6.12.1", "", "", &[])));
        assert!(means(side("", "nohz=off x", "y", &["full", "rt"])));
        assert!(!means(side("", "nohz=on", "", &[])));
        assert!(!means(side("", "", "nohz=off", &[])));
        assert!(!means(side("", "", "", &["full"])));
        // A model that is not known is none that a claim names, unless each that it may be is.
        let both = ["none", "voluntary"];
        assert!(side("", "", "", &both).means(release, "", &both));
        assert!(!side("", "", "", &["none"]).means(release, "", &both));
        assert!(!side("", "", "", &["none"]).means(release, "", &[]));
    }

    #[test]
    fn all_else_is_to_be_the_same() {
        let claim = &parse(CLAIM).unwrap().claims[0];
        let rest = |line| claim.rest("6.12.117-rt", line, &["rt"]);
        let kept = "Linux 6.12.117-rt rt quiet root=/dev/sda1";
        let sorted = |text: &str| {
            let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            words.sort();
            words
        };
        let found = rest("BOOT_IMAGE=/a root=/dev/sda1 quiet nohz=off");
        assert_eq!(sorted(&found), sorted(kept));
        assert_eq!(found, rest("BOOT_IMAGE=/b quiet root=/dev/sda1"));
        assert_ne!(found, rest("quiet root=/dev/sda1 isolcpus=1"));
        assert_ne!(
            found,
            claim.rest("6.12.117", "quiet root=/dev/sda1", &["full"])
        );
    }

    #[test]
    fn a_claim_says_what_its_sides_differ_in() {
        let wrong = |text: &str| parse(text).unwrap_err().to_string();
        let two_sides = |text: &str| {
            let expected =
                "c.toml: claim \"it is so\": expected two sides of which no kernel is both";
            let found = wrong(text);
            assert!(found.contains(expected), "{found}");
        };
        two_sides(&CLAIM.replace("without", "boot"));
        // One boot may be both.
        two_sides(&CLAIM.replace("{ without = \"nohz=off\" }", "{ release = \"6.12\" }"));
        two_sides(&CLAIM.replace("{ without = \"nohz=off\" }", "{}"));
        let release = CLAIM.replace("{ without = \"nohz=off\" }", "{ release = \"v6\" }");
        assert!(wrong(&release).contains("expected a release such as 6.12, found v6"));
        let none = "summary = \"s\"\nsuite = \"metal\"\nclaim = []\n";
        assert!(wrong(none).contains("expected [[claim]], found none"));
        let model = CLAIM.replace("{ boot = \"nohz=off\" }", "{ preemption = [\"real\"] }");
        assert!(wrong(&model).contains("expected a preemption model (none, voluntary"));
        assert!(wrong(&CLAIM.replace("expects = \"lower\"", "")).contains("expects"));
    }
}
