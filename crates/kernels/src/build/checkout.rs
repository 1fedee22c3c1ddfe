// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of a tag, in a work tree of Punctual's own: the user's is left as it is.
//!
//! ```text
//! ROOT/tags/NAME-DIGEST/        of one repository, whose objects it borrows
//! ROOT/tags/NAME-DIGEST.lock    held while a kernel of it is built
//! ```
//!
//! The tree is kept from tag to tag: only files that differ are written, so only these are
//! compiled.

use std::path::{Path, PathBuf};

use super::error::BuildError;
use super::source::SourceTree;
use super::tags::{Tag, directory_name};
use super::walk::outside;
use super::worker::{self, Worker};
use super::{KEY_DIGITS, checksum};
use crate::paths::Lock;

/// A file is as git wrote it if its size and its modification time say so: nobody else writes there,
/// and a copy out of an archive has no more of it.
const UNTOUCHED: [&str; 4] = [
    "-c",
    "core.checkStat=minimal",
    "-c",
    "core.trustctime=false",
];

/// A work tree with the files of one tag, for as long as this value lives.
pub(crate) struct Checkout {
    pub(crate) tree: SourceTree,
    _lock: Lock,
}

impl Checkout {
    /// Checks out a tag of the repository at `source`.
    pub(crate) fn of(
        tag: &Tag,
        source: &Path,
        root: &Path,
        worker: Worker,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, BuildError> {
        let base = root.join("tags");
        worker::public_directory(&base)?;
        let digest = checksum::of_bytes(source.as_os_str().as_encoded_bytes());
        let name = format!(
            "{}-{}{}",
            directory_name(source),
            &digest[..KEY_DIGITS],
            worker.mark()
        );
        let path = base.join(&name);
        let lock = base.join(format!("{name}.lock"));
        let lock = if let Some(lock) = Lock::try_acquire(&lock).map_err(BuildError::at(&lock))? {
            lock
        } else {
            progress(&format!("{name}: waiting for another punctual"));
            Lock::acquire(&lock).map_err(BuildError::at(&lock))?
        };
        worker.directory(&path)?;
        // A git that was killed leaves them, and there is no other git here.
        for lock in ["index.lock", "HEAD.lock", "config.lock"] {
            worker.remove(&path.join(".git").join(lock))?;
        }
        let git = |words: &[&str]| told(worker, &path, &[&UNTOUCHED[..], words].concat());
        git(&["init", "--quiet", "--template="])?;
        let objects = [
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "objects",
        ];
        let objects = told(worker, source, &objects)?;
        let borrowed = path.join(".git/objects/info");
        worker.directory(&borrowed)?;
        worker.write(&borrowed.join("alternates"), &objects)?;
        progress(&format!("{}: checking out {}", source.display(), tag.name));
        let checkout = git(&["checkout", "--quiet", "--force", "--detach", &tag.commit]);
        checkout.map_err(|error| {
            let filters = [
                "config",
                "--get-regexp",
                r"^remote\..*\.partialclonefilter$",
            ];
            if told(worker, source, &filters).is_err() {
                return error;
            }
            BuildError::Partial {
                path: source.to_owned(),
                tag: tag.name.clone(),
            }
        })?;
        // A checkout that was killed leaves files that no index knows.
        git(&["clean", "--quiet", "-ffdx"])?;
        check_links(&path, &git(&["ls-files", "--stage", "-z"])?)?;
        let tree = SourceTree {
            path,
            identity: tag.identity.clone(),
            described: format!("{} at {}", source.display(), tag.name),
            is_own: true,
            outside: Vec::new(),
        };
        Ok(Self { tree, _lock: lock })
    }
}

/// Refuses links that lead out of a tag's files: the tag does not say to what.
fn check_links(path: &Path, listed: &str) -> Result<(), BuildError> {
    let path = path.canonicalize().map_err(BuildError::at(path))?;
    for line in listed.split('\0') {
        // A link's mode, its object and stage, and its name.
        let link = line.strip_prefix("120000 ");
        let Some((_, name)) = link.and_then(|rest| rest.split_once('\t')) else {
            continue;
        };
        let link = path.join(name);
        if let Some(target) = outside(&path, &link)? {
            return Err(BuildError::LeadsOut { link, target });
        }
    }
    Ok(())
}

/// The output of git in a directory; a complaint of git is an error.
fn told(worker: Worker, path: &Path, words: &[&str]) -> Result<String, BuildError> {
    let output = worker.git(path).args(words).output();
    let output = output.map_err(BuildError::of_setpriv)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let path = PathBuf::from(path);
    Err(BuildError::Git { path, said })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;
    use crate::build::tags::tags;

    /// A repository with three tags, each with a different file, and with changes of the user's in
    /// its work tree.
    fn repository(path: &Path) {
        let script = "set -e; git init -q .; git config user.name a; git config user.email a@b\n\
            for tag in v6.13-rc1 v6.13 v6.12; do\n\
                echo $tag >Makefile; git add .; git commit -qm $tag\n\
                case $tag in v6.13) git tag -m message $tag;; *) git tag $tag;; esac\n\
            done; echo mine >Makefile\n";
        let mut command = Command::new("sh");
        let output = command.args(["-c", script]).current_dir(path).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    #[test]
    fn each_tag_has_its_files_and_the_users_tree_is_left_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path(), open).unwrap();
        // No kernel can be built below a directory with a space.
        let source = directory.path().join("my linux.git");
        let root = directory.path().join("root");
        fs::create_dir(&source).unwrap();
        repository(&source);
        let word = source.to_str().unwrap();
        let all = tags(word, &[], Some("6.12"), None, &mut |_| ()).unwrap();
        let names: Vec<&str> = all.iter().map(|tag| &*tag.name).collect();
        assert_eq!(names, ["v6.12", "v6.13-rc1", "v6.13"]);
        let worker = Worker::new();
        for tag in all.iter().chain(&all[..1]) {
            let out = Checkout::of(tag, &source, &root, worker, &mut |_| ()).unwrap();
            let text = fs::read_to_string(out.tree.path.join("Makefile")).unwrap();
            assert_eq!(text.trim(), tag.name);
            assert_eq!(out.tree.identity, tag.identity);
            let own = out.tree.path.file_name().unwrap().to_string_lossy();
            assert!(own.starts_with("my-linux-"), "{own}");
            // What a killed git has left is in nobody's way.
            worker
                .write(&out.tree.path.join(".git/index.lock"), "")
                .unwrap();
        }
        // It is what a work tree of that commit is: neither is built again for the other.
        git(&source, &["checkout", "-q", "--force", "v6.13"]);
        let path = source.to_str().unwrap();
        fs::write(source.join("Kconfig"), "").unwrap();
        git(
            &source,
            &["rm", "-q", "--cached", "Kconfig", "--ignore-unmatch"],
        );
        fs::write(source.join(".git/info/exclude"), "Kconfig\n").unwrap();
        let found = crate::build::source::find(path, &root, &root, worker, &mut |_| ());
        assert_eq!(found.unwrap().identity, all[2].identity);

        for (patterns, since, until, left) in [
            (&["v6.13*"][..], None, None, 2),
            (&["v6.12", "v6.13"], None, None, 2),
            (&[], Some("v6.13-rc1"), Some("v6.13-rc9"), 1),
            (&[], None, Some("6.12.99"), 1),
        ] {
            let patterns: Vec<String> = patterns.iter().map(|one| (*one).to_owned()).collect();
            let found = tags(word, &patterns, since, until, &mut |_| ()).unwrap();
            assert_eq!(found.len(), left, "{patterns:?} {since:?} {until:?}");
        }
        for (since, expected) in [
            ("v6.14", "3 tags"),
            (
                "newest",
                "--since: expected a version such as v6.13-rc1, found newest",
            ),
        ] {
            let error = tags(word, &[], Some(since), None, &mut |_| ()).unwrap_err();
            assert!(
                error.is_request() && error.to_string().contains(expected),
                "{error}"
            );
        }
        let none = tags("/nowhere", &[], None, None, &mut |_| ())
            .unwrap_err()
            .to_string();
        assert!(none.contains("expected a repository of git"), "{none}");
    }

    /// A copy out of an archive has the times of modification, and no others.
    #[test]
    fn files_of_a_copy_are_not_written_again() {
        let directory = tempfile::tempdir().unwrap();
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path(), open).unwrap();
        repository(directory.path());
        let word = directory.path().to_str().unwrap();
        let all = tags(word, &[], Some("6.12"), None, &mut |_| ()).unwrap();
        let root = tempfile::tempdir().unwrap();
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(root.path(), open).unwrap();
        let out = || {
            let source = directory.path();
            Checkout::of(&all[0], source, root.path(), Worker::new(), &mut |_| ()).unwrap()
        };
        let file = out().tree.path.join("Makefile");
        let modified = || fs::metadata(&file).unwrap().modified().unwrap();
        let before = modified();
        let copy = root.path().join("copy");
        fs::copy(&file, &copy).unwrap();
        let times = fs::FileTimes::new().set_modified(before);
        let copied = fs::File::options().write(true).open(&copy).unwrap();
        copied.set_times(times).unwrap();
        fs::rename(&copy, &file).unwrap();
        out();
        assert_eq!(modified(), before);
    }

    #[test]
    fn a_tag_with_a_link_out_of_its_files_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path(), open).unwrap();
        let (source, root) = (
            directory.path().join("linux"),
            directory.path().join("root"),
        );
        fs::create_dir(&source).unwrap();
        repository(&source);
        let script = "set -e; ln -s Makefile within; git add .; git commit -qm within\n\
            git tag v6.14; ln -s /etc out; git add .; git commit -qm out; git tag v6.15\n";
        let mut command = Command::new("sh");
        let made = command.args(["-c", script]).current_dir(&source).status();
        assert!(made.unwrap().success());
        let word = source.to_str().unwrap();
        let all = tags(word, &[], Some("6.14"), None, &mut |_| ()).unwrap();
        let out = |tag| Checkout::of(tag, &source, &root, Worker::new(), &mut |_| ()).map(|_| ());
        out(&all[0]).unwrap();
        let error = out(&all[1]).unwrap_err();
        assert!(error.is_of_tag(), "{error}");
        assert!(error.to_string().contains("found one to /etc"), "{error}");
    }

    #[test]
    fn a_clone_that_lacks_files_is_told_how_to_get_them() {
        let directory = tempfile::tempdir().unwrap();
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path(), open).unwrap();
        let whole = directory.path().join("whole");
        fs::create_dir(&whole).unwrap();
        repository(&whole);
        git(&whole, &["config", "uploadpack.allowFilter", "true"]);
        let url = format!("file://{}", whole.display());
        let words = ["clone", "-q", "--bare", "--filter=blob:none", &url, "part"];
        git(directory.path(), &words);
        let part = directory.path().join("part");
        let worker = Worker::new();
        let root = directory.path().join("root");
        let all = tags(part.to_str().unwrap(), &[], Some("6.12"), None, &mut |_| ()).unwrap();
        let out = |tag| Checkout::of(tag, &part, &root, worker, &mut |_| ()).map(|_| ());
        let error = out(&all[0]).unwrap_err();
        assert!(!error.is_of_tag());
        let told = format!("git -C {} fetch --refetch --no-filter", part.display());
        assert!(error.to_string().contains(&told), "{error}");
        // It is what helps.
        git(&part, &["fetch", "-q", "--refetch", "--no-filter"]);
        out(&all[0]).unwrap();
    }

    fn git(path: &Path, words: &[&str]) {
        let output = Command::new("git").arg("-C").arg(path).args(words).output();
        assert!(output.unwrap().status.success());
    }
}
