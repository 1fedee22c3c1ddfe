// SPDX-License-Identifier: MIT OR Apache-2.0
//! The source to build: a directory of the user's, or Debian's package of a kernel's source; and
//! the identity that tells one state of it from another.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use liblzma::read::XzDecoder;

use super::error::BuildError;
use super::walk::{Walk, outside};
use super::worker::Worker;
use crate::apt::{self, Lists};
use crate::checksum;
use crate::paths::{self, Lock};
use punctual_model::Architecture;

/// The prefix of the names of Debian's packages.
const PACKAGE: &str = "linux-source-";

/// The source of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceTree {
    /// The directory.
    pub(crate) path: PathBuf,
    /// A digest that changes when the source does.
    pub(crate) identity: String,
    /// A description of it, for a run's provenance.
    pub(crate) described: String,
    /// True if Punctual put its files there, so that nobody else changes them.
    pub(crate) is_own: bool,
    /// The files elsewhere to which its links lead: they belong to it, too.
    pub(crate) outside: Vec<PathBuf>,
}

/// Finds the source that a word names; a package is fetched if need be.
pub(crate) fn find(
    word: &str,
    root: &Path,
    cache: &Path,
    worker: Worker,
    progress: &mut dyn FnMut(&str),
) -> Result<SourceTree, BuildError> {
    if word.starts_with(PACKAGE) && !Path::new(word).is_dir() {
        return of_package(word, root, cache, progress);
    }
    let path = Path::new(word).canonicalize();
    let path = path.map_err(|_| BuildError::NoSource(word.to_owned()))?;
    // A closed directory on the way hides even whether there is one.
    if !worker.can_read(&path)? {
        let user = worker.name();
        return Err(BuildError::Closed { path, user });
    }
    if !(path.join("Makefile").is_file() && path.join("Kconfig").is_file()) {
        return Err(BuildError::NoSource(word.to_owned()));
    }
    of_git(&path, worker)?.map_or_else(|| of_files(&path), Ok)
}

/// Debian's package, fetched, verified and unpacked: `ROOT/source/NAME@VERSION`.
fn of_package(
    id: &str,
    root: &Path,
    cache: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<SourceTree, BuildError> {
    let base = root.join("source");
    if let Some(tree) = unpacked_before(id, &base) {
        return Ok(tree);
    }
    let name = id.split('@').next().unwrap_or(id);
    let lists = Lists::fetch(cache, Architecture::Amd64, &[], progress)?;
    let pattern = format!("^{}$", name.replace('.', r"\."));
    let candidate = apt::resolve(&lists, &pattern, id)?.swap_remove(0);
    let id = format!("{name}@{}", candidate.version);
    let path = base.join(&id);
    let lock = base.join(format!("{id}.lock"));
    let _lock = Lock::acquire(&lock).map_err(BuildError::at(&lock))?;
    if unpacked_before(&id, &base).is_none() {
        // One without its digest is of nobody knows what.
        if path.exists() {
            fs::remove_dir_all(&path).map_err(BuildError::at(&path))?;
        }
        let megabytes = candidate.size.div_ceil(1_000_000);
        progress(&format!(
            "{name}: downloading {} ({megabytes} MB)",
            candidate.version
        ));
        // What a crash has left is in the way of nobody else, for there is a lock.
        let work = base.join(format!(".work-{id}"));
        if work.exists() {
            fs::remove_dir_all(&work).map_err(BuildError::at(&work))?;
        }
        fs::create_dir(&work).map_err(BuildError::at(&work))?;
        let deb = apt::download(&lists, &candidate, &work)?;
        progress(&format!("{name}: unpacking"));
        let packed = work.join("source.tar.xz");
        apt::unpack_file(&deb, &[&format!("usr/src/{name}.tar.xz")], &packed)?;
        let unpacked = work.join("unpacked");
        let tree = unpack(&packed, &unpacked).map_err(BuildError::at(&packed))?;
        let sum = digest_file(&base, &id);
        paths::write_atomically(&sum, candidate.sha256.as_bytes()).map_err(BuildError::at(&sum))?;
        fs::rename(tree, &path).map_err(BuildError::at(&path))?;
        fs::remove_dir_all(&work).map_err(BuildError::at(&work))?;
    }
    let none = || BuildError::NoSource(id.clone());
    unpacked_before(&id, &base).ok_or_else(none)
}

/// The file with the package's SHA-256, beside the unpacked source.
fn digest_file(base: &Path, id: &str) -> PathBuf {
    base.join(format!("{id}.sha256"))
}

/// A package with a full version that is already unpacked: no package list is needed.
fn unpacked_before(id: &str, base: &Path) -> Option<SourceTree> {
    let (name, version) = id.split_once('@')?;
    let path = base.join(id);
    let sum = fs::read_to_string(digest_file(base, id)).ok()?;
    path.is_dir().then(|| SourceTree {
        path,
        identity: format!("sha256 {sum}"),
        described: format!("{name} {version}"),
        is_own: true,
        outside: Vec::new(),
    })
}

/// Unpacks an archive that has one directory, and returns that directory.
fn unpack(packed: &Path, to: &Path) -> io::Result<PathBuf> {
    let mut archive = tar::Archive::new(XzDecoder::new(File::open(packed)?));
    archive.unpack(to)?;
    let mut all = fs::read_dir(to)?;
    let first = all.next().transpose()?;
    let none = || io::Error::other("expected a directory in the archive, found none");
    Ok(first.ok_or_else(none)?.path())
}

/// What git tells of the differences from a commit. Submodules are told by their files.
const DIFFERENCES: [&str; 6] = [
    "diff",
    "HEAD",
    "--binary",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules",
];

/// The state of a git work tree: the tree of its commit, the differences from it, and what git does
/// not look into: repositories within, and files outside to which links lead. `None` if this is not
/// a work tree.
fn of_git(path: &Path, worker: Worker) -> Result<Option<SourceTree>, BuildError> {
    // A file, in further work trees of one repository.
    if !path.join(".git").exists() {
        return Ok(None);
    }
    let git = |words: &[&str]| -> Result<Option<Vec<u8>>, BuildError> {
        let output = worker.git(path).args(words).output();
        let output = output.map_err(BuildError::of_setpriv)?;
        Ok(output.status.success().then_some(output.stdout))
    };
    let (Some(tree), Some(commit), Some(changed), Some(known), Some(new)) = (
        git(&["rev-parse", "HEAD^{tree}"])?,
        git(&["describe", "--always", "--tags", "--abbrev=12"])?,
        git(&DIFFERENCES)?,
        git(&["ls-files", "-v", "-z"])?,
        git(&["ls-files", "--others", "--exclude-standard", "-z"])?,
    ) else {
        return Ok(None);
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let mut told = tree;
    told.extend(&changed);
    let mut listed: Vec<PathBuf> = named(path, &new).collect();
    let mut is_changed = !(changed.is_empty() && new.is_empty());
    // Each name has a letter and a space before it.
    let known = known.split(|byte| *byte == 0).filter(|one| one.len() > 2);
    for (letter, name) in known.map(|one| (one[0], &one[2..])) {
        let file = path.join(OsStr::from_bytes(name));
        // Git does not look at files that it was asked to take as unchanged, or to leave out.
        let is_unseen = letter.is_ascii_lowercase() || letter == b'S';
        is_changed |= is_unseen;
        match fs::symlink_metadata(&file) {
            Ok(found) if is_unseen || found.is_dir() => listed.push(file),
            Ok(found) if found.is_symlink() => listed.extend(outside(path, &file)?),
            Err(_) if is_unseen => told.extend([&b"gone "[..], name, b"\n"].concat()),
            // Other files that are gone are among the differences.
            _ => {}
        }
    }
    let (lines, outside) = listing(path, Walk::among(path, listed))?;
    told.extend(lines.as_bytes());
    let besides = if is_changed { " with changes" } else { "" };
    Ok(Some(SourceTree {
        path: path.to_owned(),
        identity: format!("git {}", checksum::of_bytes(&told)),
        described: format!("{} at {}{besides}", path.display(), text(&commit)),
        is_own: false,
        outside,
    }))
}

/// The files of a work tree in a list of git's (`-z`).
fn named(path: &Path, list: &[u8]) -> impl Iterator<Item = PathBuf> {
    let names = list.split(|byte| *byte == 0);
    let names = names.filter(|name| !name.is_empty());
    names.map(move |name| path.join(OsStr::from_bytes(name)))
}

/// The state of all files of a directory, and of those outside to which its links lead.
fn of_files(path: &Path) -> Result<SourceTree, BuildError> {
    let (lines, outside) = listing(path, Walk::of(path))?;
    let identity = checksum::of_bytes(lines.as_bytes());
    Ok(SourceTree {
        path: path.to_owned(),
        described: format!("{}, files {:.12}", path.display(), identity),
        identity: format!("files {identity}"),
        is_own: false,
        outside,
    })
}

/// A line for each file: its name in the source, or its path elsewhere, and what it is. Also the
/// paths of those elsewhere.
fn listing(source: &Path, walk: Walk<'_>) -> Result<(String, Vec<PathBuf>), BuildError> {
    let (mut lines, mut elsewhere) = (BTreeSet::new(), Vec::new());
    for found in walk {
        let (file, metadata) = found?;
        let below = file.strip_prefix(source).unwrap_or(&file);
        let what = entry(&file, &metadata)?;
        lines.insert(format!("{} {what}\n", below.display()));
        if !file.starts_with(source) {
            elsewhere.push(file);
        }
    }
    Ok((lines.into_iter().collect(), elsewhere))
}

/// Describes a file: its content, or the target of a link.
fn entry(file: &Path, metadata: &Metadata) -> Result<String, BuildError> {
    if metadata.is_symlink() {
        let target = fs::read_link(file).map_err(BuildError::at(file))?;
        return Ok(format!("-> {}", target.display()));
    }
    if !metadata.is_file() {
        // A pipe or a socket is no part of a source, and would be waited for.
        return Ok("special".to_owned());
    }
    let is_executable = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111;
    let sum = checksum::of_file(file).map_err(BuildError::at(file))?;
    Ok(format!(
        "{sum} {}",
        if is_executable == 0 { "" } else { "x" }
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A directory that the user who compiles can read.
    fn tree() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(directory.path(), open).unwrap();
        for name in ["Makefile", "Kconfig"] {
            fs::write(directory.path().join(name), name).unwrap();
        }
        directory
    }

    fn found(path: &Path) -> Result<SourceTree, BuildError> {
        let word = path.to_str().unwrap();
        find(word, path, path, Worker::new(), &mut |_| ())
    }

    fn git(path: &Path, words: &[&str]) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b", "-C"]);
        let output = command.arg(path).args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    #[test]
    fn a_directory_is_told_by_all_of_its_files() {
        let tree = tree();
        let path = tree.path();
        let first = found(path).unwrap().identity;
        assert_eq!(found(path).unwrap().identity, first);
        let mut seen = vec![first];
        fs::write(path.join("Makefile"), "other").unwrap();
        seen.push(found(path).unwrap().identity);
        fs::rename(path.join("Makefile"), path.join("x")).unwrap();
        fs::write(path.join("Makefile"), "").unwrap();
        seen.push(found(path).unwrap().identity);
        std::os::unix::fs::symlink("x", path.join("link")).unwrap();
        seen.push(found(path).unwrap().identity);
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(path.join("x"), executable).unwrap();
        seen.push(found(path).unwrap().identity);
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }

    #[test]
    fn a_work_tree_is_told_by_its_commit_and_what_differs() {
        let tree = tree();
        let path = tree.path();
        git(path, &["init", "-q"]);
        fs::write(path.join(".gitignore"), "*.o\n").unwrap();
        git(path, &["add", "."]);
        git(path, &["commit", "-qm", "a"]);
        let clean = found(path).unwrap();
        assert!(clean.identity.starts_with("git "), "{clean:?}");
        assert!(!clean.described.contains("changes"), "{clean:?}");
        // The same files are the same source, whatever the commit says.
        git(path, &["commit", "-q", "--allow-empty", "-m", "b"]);
        assert_eq!(found(path).unwrap().identity, clean.identity);
        fs::write(path.join("a.o"), "built").unwrap();
        assert_eq!(found(path).unwrap().identity, clean.identity);
        fs::write(path.join("new.c"), "1").unwrap();
        let new = found(path).unwrap();
        assert!(new.described.ends_with("with changes"), "{new:?}");
        fs::write(path.join("new.c"), "2").unwrap();
        let other = found(path).unwrap();
        fs::remove_file(path.join("new.c")).unwrap();
        fs::write(path.join("Makefile"), "other").unwrap();
        let changed = found(path).unwrap();
        let all = [&clean, &new, &other, &changed].map(|one| &one.identity);
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one), "{one}");
        }
    }

    #[test]
    fn files_at_which_git_was_asked_not_to_look_are_told_by_their_contents() {
        for option in ["--assume-unchanged", "--skip-worktree"] {
            let tree = tree();
            let path = tree.path();
            git(path, &["init", "-q"]);
            fs::write(path.join("core.c"), "1").unwrap();
            git(path, &["add", "."]);
            git(path, &["commit", "-qm", "a"]);
            git(path, &["update-index", option, "core.c"]);
            let first = found(path).unwrap();
            assert!(first.described.ends_with("with changes"), "{first:?}");
            fs::write(path.join("core.c"), "2").unwrap();
            let second = found(path).unwrap().identity;
            assert_ne!(second, first.identity, "{option}");
            fs::remove_file(path.join("core.c")).unwrap();
            let third = found(path).unwrap().identity;
            assert!(third != first.identity && third != second, "{option}");
        }
    }

    #[test]
    fn a_repository_within_is_told_by_its_files() {
        let tree = tree();
        let path = tree.path();
        let commit = |path: &Path| {
            git(path, &["init", "-q"]);
            git(path, &["add", "."]);
            git(path, &["commit", "-qm", "a"]);
        };
        commit(path);
        let mut seen = vec![found(path).unwrap().identity];
        // First git does not know it, then it is a submodule.
        let within = path.join("drivers/mine");
        fs::create_dir_all(&within).unwrap();
        fs::write(within.join("a.c"), "1").unwrap();
        commit(&within);
        seen.push(found(path).unwrap().identity);
        fs::write(within.join("a.c"), "2").unwrap();
        seen.push(found(path).unwrap().identity);
        git(path, &["add", "drivers/mine"]);
        git(path, &["commit", "-qm", "b"]);
        for text in ["3", "4"] {
            fs::write(within.join("a.c"), text).unwrap();
            seen.push(found(path).unwrap().identity);
        }
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }

    #[test]
    fn what_a_link_leads_to_outside_is_a_part_of_the_source() {
        let (tree, other) = (tree(), tree());
        let path = tree.path();
        let (directory, file) = (other.path().join("mine"), other.path().join("mine/a.c"));
        fs::create_dir(&directory).unwrap();
        std::os::unix::fs::symlink(&directory, path.join("drivers")).unwrap();
        // Links may lead in circles.
        std::os::unix::fs::symlink(&directory, directory.join("again")).unwrap();
        let is_told = || {
            let told = ["1", "2"].map(|text| {
                fs::write(&file, text).unwrap();
                found(path).unwrap().identity
            });
            told[0] != told[1]
        };
        assert!(is_told());
        git(path, &["init", "-q"]);
        git(path, &["add", "Makefile", "Kconfig"]);
        git(path, &["commit", "-qm", "a"]);
        assert!(is_told(), "git does not know the link");
        git(path, &["add", "."]);
        git(path, &["commit", "-qm", "b"]);
        assert!(is_told(), "git knows the link");
        let outside = found(path).unwrap().outside;
        let file = file.canonicalize().unwrap();
        assert!(outside.contains(&file), "{outside:?}");
        fs::remove_file(path.join("drivers")).unwrap();
        std::os::unix::fs::symlink("/", path.join("drivers")).unwrap();
        let error = found(path).unwrap_err();
        assert!(error.is_request(), "{error}");
        let told = "drivers: expected a link to files that can be a part of the source, found one";
        assert!(error.to_string().contains(told), "{error}");
    }

    #[test]
    fn a_link_within_the_source_is_told_by_git() {
        let tree = tree();
        let path = tree.path();
        std::os::unix::fs::symlink("Makefile", path.join("link")).unwrap();
        git(path, &["init", "-q"]);
        git(path, &["add", "."]);
        git(path, &["commit", "-qm", "a"]);
        let mut shown = Command::new("git");
        shown.arg("-C").arg(path);
        let shown = shown.args(["rev-parse", "HEAD^{tree}"]).output().unwrap();
        // So it is the same source as a tag with these files.
        let expected = format!("git {}", checksum::of_bytes(&shown.stdout));
        assert_eq!(found(path).unwrap().identity, expected);
    }

    #[test]
    fn what_is_no_source_is_refused() {
        let tree = tree();
        let error = found(&tree.path().join("gone")).unwrap_err().to_string();
        assert!(
            error.contains("expected the source of a Linux kernel"),
            "{error}"
        );
        fs::remove_file(tree.path().join("Kconfig")).unwrap();
        assert!(matches!(found(tree.path()), Err(BuildError::NoSource(_))));
    }
}
