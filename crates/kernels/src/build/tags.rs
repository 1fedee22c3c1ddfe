// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tags of a kernel's repository as a line of releases, in their order.

use std::path::Path;

use super::error::BuildError;
use super::worker::Worker;
use super::{Order, is_file, variant_id};
use crate::catalog::Catalog;
use crate::checksum;

/// A tag of a kernel's repository, such as `v6.13-rc1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Its name in git.
    pub name: String,
    /// Its commit.
    pub(crate) commit: String,
    /// The digest of that commit's files.
    pub(crate) identity: String,
}

impl Tag {
    /// Its version: `6.13-rc1` of `v6.13-rc1`.
    pub fn version(&self) -> &str {
        bare(&self.name)
    }
}

/// The place of a version among others: numbers, then the suffixes behind them. A release candidate
/// comes before its release, anything else after it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    numbers: Vec<u64>,
    suffixes: Vec<(i8, String, u64)>,
}

impl Place {
    /// The place of a tag or a version; `None` if it is not a kernel's.
    fn of(tag: &str) -> Option<Self> {
        let mut parts = bare(tag).split('-');
        let numbers = parts.next()?.split('.').map(|one| one.parse().ok());
        let numbers: Option<Vec<u64>> = numbers.collect();
        let mut suffixes: Vec<(i8, String, u64)> = parts.map(suffix).collect::<Option<_>>()?;
        suffixes.push((0, String::new(), 0));
        Some(Self {
            numbers: numbers.filter(|numbers| numbers.len() > 1)?,
            suffixes,
        })
    }
}

/// Splits `rc12` into its word and its number, which sort as intended.
fn suffix(text: &str) -> Option<(i8, String, u64)> {
    let word = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
    if !is_plain || text.is_empty() {
        return None;
    }
    let number = text[word.len()..].parse().unwrap_or(0);
    let rank = if word == "rc" { -1 } else { 1 };
    Some((rank, word.to_owned(), number))
}

fn bare(tag: &str) -> &str {
    tag.strip_prefix('v').unwrap_or(tag)
}

/// The tags of a repository that name versions of a kernel, oldest version first. Only tags that
/// match one of `patterns`, as for `git tag --list`, count, or all if there is no pattern; of
/// these, the ones from `since` to `until`, both included. `progress` is told which tags match a
/// pattern but name no version.
///
/// # Errors
/// If the directory is not a repository that the compiling user can read, an end is not a version,
/// or no tag remains.
pub fn tags(
    source: &str,
    patterns: &[String],
    since: Option<&str>,
    until: Option<&str>,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Tag>, BuildError> {
    let worker = Worker::new();
    let path = repository(source, worker)?;
    let format = "%(refname:strip=2)\t%(objecttype)\t%(objectname)\t%(tree)\t\
        %(*objecttype)\t%(*objectname)\t%(*tree)";
    let mut git = worker.git(&path);
    git.args(["for-each-ref", &format!("--format={format}")]);
    if patterns.is_empty() {
        git.arg("refs/tags");
    }
    git.args(patterns.iter().map(|one| format!("refs/tags/{one}")));
    let output = git.output().map_err(BuildError::of_setpriv)?;
    if !output.status.success() {
        return Err(BuildError::NoRepository(path));
    }
    let (all, others) = in_order(&String::from_utf8_lossy(&output.stdout));
    if !patterns.is_empty() && !others.is_empty() {
        let names = others.join(", ");
        progress(&format!("left out, as no version of a kernel: {names}"));
    }
    let place = |word: Option<&str>, option| {
        let wrong = |word| BuildError::NoVersion { option, word };
        let place = |word: &str| Place::of(word).ok_or_else(|| wrong(word.to_owned()));
        word.map(place).transpose()
    };
    let (since, until) = (place(since, "--since")?, place(until, "--until")?);
    let is_between = |tag: &Tag| {
        let own = Place::of(&tag.name);
        let is_before = since.is_some() && own < since;
        let is_after = until.is_some() && own > until;
        !is_before && !is_after
    };
    let count = all.len();
    let left: Vec<Tag> = all.into_iter().filter(is_between).collect();
    if left.is_empty() {
        return Err(BuildError::NoTags { path, count });
    }
    Ok(left)
}

/// The tags in git's output, in the order of their versions, each version once; and the names of
/// those that are not versions.
fn in_order(told: &str) -> (Vec<Tag>, Vec<String>) {
    let tag = |line: &str| {
        let [name, kind, object, tree, kind_of, object_of, tree_of] =
            line.split('\t').collect::<Vec<_>>().try_into().ok()?;
        // A tag with a message is an object of its own, which has the commit.
        let (commit, tree) = match (kind, kind_of) {
            ("commit", _) => (object, tree),
            (_, "commit") => (object_of, tree_of),
            _ => return None,
        };
        let tag = Tag {
            name: name.to_owned(),
            commit: commit.to_owned(),
            identity: identity(tree),
        };
        Some((Place::of(name)?, tag))
    };
    let mut all: Vec<(Place, Tag)> = Vec::new();
    let mut others = Vec::new();
    for line in told.lines() {
        match tag(line) {
            Some(found) => all.push(found),
            None => others.extend(line.split('\t').next().map(str::to_owned)),
        }
    }
    all.sort_by(|one, other| (&one.0, &other.1.name).cmp(&(&other.0, &one.1.name)));
    all.dedup_by(|one, other| one.0 == other.0);
    (all.into_iter().map(|(_, tag)| tag).collect(), others)
}

/// The digest of the source in an unchanged work tree with these files.
fn identity(tree: &str) -> String {
    format!("git {}", checksum::of_bytes(format!("{tree}\n").as_bytes()))
}

/// The directory of a repository, which the compiling user can read.
pub(crate) fn repository(source: &str, worker: Worker) -> Result<std::path::PathBuf, BuildError> {
    let none = || BuildError::NoRepository(source.into());
    let path = Path::new(source).canonicalize().map_err(|_| none())?;
    if worker.can_read(&path)? {
        return Ok(path);
    }
    let user = worker.name();
    Err(BuildError::Closed { path, user })
}

/// A repository's name in characters that `make` accepts in a path: `linux` for `/x/linux.git`.
pub(crate) fn directory_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".git").unwrap_or(&name);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let plain = name.chars().map(|c| if is_plain(c) { c } else { '-' });
    plain.collect()
}

/// The name of the kernels of a repository's tags, before `@VERSION`, made from directory,
/// configuration and settings: `linux-debian-6.12-rt`.
pub fn line_name(catalog: &Catalog, order: &Order) -> String {
    let directory = Path::new(&order.source).canonicalize();
    let directory = directory.unwrap_or_else(|_| order.source.clone().into());
    let directory = directory_name(&directory);
    let config = if is_file(catalog, &order.config) {
        let file = Path::new(&order.config).file_stem().unwrap_or_default();
        file.to_string_lossy().trim_start_matches('.').to_owned()
    } else {
        order.config.clone()
    };
    let full = if order.is_full { "+full" } else { "" };
    let name = format!("{directory}-{config}{full}").to_ascii_lowercase();
    let name = variant_id(&name, &order.settings);
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let kept = |c: char| {
        if plain(c) || "._+-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let name: String = name.chars().map(kept).collect();
    name.trim_start_matches(|c| !plain(c)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(names: &[&str]) -> String {
        let line = |name: &&str| format!("{name}\tcommit\tc-{name}\tt-{name}\t\t\t\n");
        names.iter().map(line).collect()
    }

    #[test]
    fn tags_are_in_the_order_of_their_versions() {
        let sorted = [
            "v2.6.39",
            "v2.6.39.4",
            "v5.10",
            "v6.6-rt14",
            "v6.12-rc7",
            "v6.12",
            "v6.12.1",
            "v6.12.9",
            "v6.12.10-rc1",
            "v6.12.10",
            "v6.13-rc1",
            "v6.13-rc1-rt1",
            "v6.13-rc2",
            "v6.13-rc10",
            "v6.13",
            "v6.13-rt2",
            "v6.13.1-rc1",
            "v6.13.1",
        ];
        let mut other = sorted;
        other.reverse();
        other.swap(1, 7);
        // What is no version of a kernel is none of the line, and each version is there once.
        let more = [
            "next-20261104",
            "base",
            "v6",
            "6.13",
            "v6.13",
            "v6.13-",
            "v6.13-a/b",
        ];
        let names = |all: &[&str]| -> Vec<String> {
            let (tags, others) = in_order(&told(all));
            assert_eq!(
                tags.len() + others.len(),
                all.len() - usize::from(all == more)
            );
            tags.into_iter().map(|tag| tag.name).collect()
        };
        assert_eq!(names(&other), sorted);
        assert_eq!(names(&more), ["v6.13"]);
    }

    #[test]
    fn the_commit_of_a_tag_with_a_message_is_the_one_that_it_names() {
        let told = "v6.13\ttag\tobject\t\tcommit\tcommit\ttree\n\
            v6.14\ttag\tobject\t\ttree\ttree\t\n";
        let (tags, _) = in_order(told);
        let [tag] = &tags[..] else {
            panic!("a tag of a tree is none")
        };
        assert_eq!((&*tag.commit, tag.version()), ("commit", "6.13"));
        assert_eq!(tag.identity, identity("tree"));
    }

    #[test]
    fn a_line_is_called_after_tree_configuration_and_what_is_set() {
        let order = |source: &str, config: &str, set: &[&str], is_full| Order {
            source: source.to_owned(),
            config: config.to_owned(),
            settings: set.iter().map(|one| one.parse().unwrap()).collect(),
            is_full,
            jobs: 1,
            id: None,
            replace: false,
            identity: None,
            tag: None,
        };
        let cache = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(cache.path()).unwrap();
        for (order, expected) in [
            (
                order("/x/linux", "debian-6.12-rt", &[], false),
                "linux-debian-6.12-rt",
            ),
            (
                order("/x/Linux.git", "/y/.config", &[], true),
                "linux-config+full",
            ),
            // A version in it is no suffix.
            (
                order("/x/linux-6.12", "debian-6.12-rt", &[], false),
                "linux-6.12-debian-6.12-rt",
            ),
            (
                order("/x/_l s", "/y/a.config", &["HZ_1000=y"], false),
                "l-s-a+hz_1000-y",
            ),
        ] {
            assert_eq!(line_name(&catalog, &order), expected);
        }
    }
}
