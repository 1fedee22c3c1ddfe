// SPDX-License-Identifier: MIT OR Apache-2.0
//! The libraries that a program needs, and their places.
//!
//! This follows the search of the dynamic loader (ld.so(8)), except for features of run time only:
//! `LD_LIBRARY_PATH`, `dlopen` and variants for particular processors.

use std::collections::{HashSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use punctual_model::Architecture;

use super::InitramfsError;
use crate::elf::{self, Needs};

/// A file that a program needs to be loaded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Library {
    pub(super) host_path: PathBuf,
    pub(super) guest_path: String,
}

/// The directories that Debian's dynamic loader searches without a cache.
const STANDARD: &[&str] = &[
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// The dynamic loader and all libraries that a program needs. A static program needs none.
pub(super) fn of(program: &Path, needs: &Needs) -> Result<Vec<Library>, InitramfsError> {
    let Some(interpreter) = &needs.interpreter else {
        return Ok(Vec::new());
    };
    let found = search(program, needs, interpreter, &Directories::of_this_machine())?;
    let mut libraries = vec![Library {
        host_path: PathBuf::from(interpreter),
        guest_path: interpreter.clone(),
    }];
    // The one standard directory that the guest's loader knows for certain.
    let home = found
        .iter()
        .find_map(|found| found.home.clone())
        .unwrap_or_else(|| STANDARD[0].to_owned());
    libraries.extend(found.into_iter().map(|found| Library {
        guest_path: format!("{}/{}", found.home.as_ref().unwrap_or(&home), found.name),
        host_path: found.path,
    }));
    Ok(libraries)
}

/// The directories with libraries on a machine.
struct Directories {
    /// Directories that the dynamic loader knows only through its cache.
    configured: Vec<PathBuf>,
}

impl Directories {
    fn of_this_machine() -> Self {
        let mut configured = read_configuration(Path::new("/etc/ld.so.conf"));
        let mut files: Vec<PathBuf> = fs::read_dir("/etc/ld.so.conf.d")
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.extension().is_some_and(|end| end == "conf"))
            .collect();
        files.sort();
        configured.extend(files.iter().flat_map(|file| read_configuration(file)));
        Self { configured }
    }
}

struct Found {
    name: String,
    path: PathBuf,
    /// The directory in which it must be, if that is settled: a standard one, or the one in the
    /// path by which it is requested.
    home: Option<String>,
}

/// A library that some file needs, and the directories where that file has it looked for first.
struct Wanted {
    name: String,
    directories: Vec<PathBuf>,
    /// The search path that its own libraries inherit.
    rpath: Vec<PathBuf>,
}

/// Searches breadth first, as the dynamic loader does; the first library of a name serves all.
fn search(
    program: &Path,
    needs: &Needs,
    interpreter: &str,
    directories: &Directories,
) -> Result<Vec<Found>, InitramfsError> {
    // The C library names the loader, which is there under its own path.
    let loader = Path::new(interpreter).file_name().unwrap_or_default();
    let mut seen = HashSet::from([loader.to_string_lossy().into_owned()]);
    let mut queue: VecDeque<Wanted> = wanted(program, needs, &[]).collect();
    let mut all = Vec::new();
    while let Some(want) = queue.pop_front() {
        if !seen.insert(want.name.clone()) {
            continue;
        }
        let (found, needs) = locate(&want, directories).ok_or_else(|| missing(program, &want))?;
        queue.extend(wanted(&found.path, &needs, &want.rpath));
        all.push(found);
    }
    Ok(all)
}

fn wanted(of: &Path, needs: &Needs, inherited: &[PathBuf]) -> impl Iterator<Item = Wanted> {
    let origin = of.canonicalize().unwrap_or_else(|_| of.to_owned());
    let expand = |paths: &[String]| -> Vec<PathBuf> {
        paths.iter().map(|path| expand(path, &origin)).collect()
    };
    let mut rpath = expand(&needs.rpath);
    rpath.extend_from_slice(inherited);
    // A DT_RUNPATH turns every DT_RPATH off, inherited ones too.
    let directories = if needs.runpath.is_empty() {
        rpath.clone()
    } else {
        expand(&needs.runpath)
    };
    needs.libraries.clone().into_iter().map(move |name| Wanted {
        name,
        directories: directories.clone(),
        rpath: rpath.clone(),
    })
}

fn expand(path: &str, of: &Path) -> PathBuf {
    let directory = of.parent().unwrap_or(Path::new("/")).to_string_lossy();
    let path = ["$ORIGIN", "${ORIGIN}"]
        .iter()
        .fold(path.to_owned(), |path, word| path.replace(word, &directory));
    PathBuf::from(path)
}

fn locate(want: &Wanted, directories: &Directories) -> Option<(Found, Needs)> {
    // A name with a slash is a path, and nothing is searched.
    if let Some((home, name)) = want.name.rsplit_once('/') {
        return try_file(name, Path::new(&want.name), Some(home));
    }
    let own = want.directories.iter();
    let configured = directories.configured.iter();
    let by_name = |directory: &Path| {
        let standard = STANDARD
            .iter()
            .copied()
            .find(|standard| Path::new(standard) == directory);
        try_file(&want.name, &directory.join(&want.name), standard)
    };
    own.map(PathBuf::as_path)
        .chain(configured.map(PathBuf::as_path))
        .chain(STANDARD.iter().map(Path::new))
        .find_map(by_name)
}

/// Tries a file as a library. A library for another machine is passed over, as by the dynamic
/// loader.
fn try_file(name: &str, path: &Path, home: Option<&str>) -> Option<(Found, Needs)> {
    let needs = elf::needs(&fs::read(path).ok()?, Architecture::Amd64).ok()?;
    let found = Found {
        name: name.to_owned(),
        path: path.to_owned(),
        home: home.map(str::to_owned),
    };
    Some((found, needs))
}

fn missing(program: &Path, want: &Wanted) -> InitramfsError {
    let own = want
        .directories
        .iter()
        .map(|path| path.display().to_string());
    let standard = STANDARD.iter().map(|path| (*path).to_owned());
    let searched: Vec<String> = own.chain(standard).collect();
    InitramfsError::NoLibrary {
        program: program.to_owned(),
        library: want.name.clone(),
        searched: format!("{} and those of /etc/ld.so.conf", searched.join(", ")),
    }
}

/// The directories named in a file in the format of ld.so.conf; `include` is passed over.
fn read_configuration(file: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| line.starts_with('/'))
        .map(PathBuf::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn needs_of(path: &Path) -> Needs {
        elf::needs(&fs::read(path).unwrap(), Architecture::Amd64).unwrap()
    }

    #[test]
    fn a_static_program_needs_nothing() {
        assert_eq!(of(Path::new("/x"), &Needs::default()).unwrap(), []);
    }

    #[test]
    fn a_missing_library_is_named_with_its_program() {
        let needs = Needs {
            interpreter: Some("/lib64/ld-linux-x86-64.so.2".to_owned()),
            libraries: vec!["libnobody.so.1".to_owned()],
            runpath: vec!["$ORIGIN/../lib".to_owned()],
            ..Needs::default()
        };
        let error = of(Path::new("/nowhere/bin/x"), &needs)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(
                "/nowhere/bin/x: expected its library libnobody.so.1 in /nowhere/bin/../lib, /lib/x86"
            ),
            "{error}"
        );
    }

    #[test]
    fn the_loaders_configuration_is_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "# local\ninclude /etc/ld.so.conf.d/*.conf\n\n/opt/a # why\n /opt/b\n";
        fs::write(file.path(), text).unwrap();
        let expected = [PathBuf::from("/opt/a"), PathBuf::from("/opt/b")];
        assert_eq!(read_configuration(file.path()), expected);
        assert!(read_configuration(Path::new("/nowhere")).is_empty());
    }

    /// Builds a program with a library of its own and another below that, if there is a C compiler,
    /// and looks at where each of them goes.
    #[test]
    fn private_libraries_go_beside_the_c_library() {
        if !punctual_skip::program("cc") {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let build = |arguments: &str| {
            let mut command = Command::new("cc");
            command.current_dir(directory.path());
            command.args(arguments.split(' ')).status()
        };
        fs::create_dir(directory.path().join("lib")).unwrap();
        fs::write(directory.path().join("low.c"), "int low(void){return 1;}").unwrap();
        let high = "int low(void); int high(void){return low();}";
        fs::write(directory.path().join("high.c"), high).unwrap();
        let main = "int high(void); int main(void){return high();}";
        fs::write(directory.path().join("main.c"), main).unwrap();
        for arguments in [
            "-shared -fPIC -o lib/liblow.so low.c",
            "-shared -fPIC -o lib/libhigh.so high.c -Llib -llow -Wl,-rpath,$ORIGIN",
            "-o main main.c -Llib -lhigh -Wl,-rpath,$ORIGIN/lib -Wl,-rpath-link,lib",
        ] {
            assert!(build(arguments).unwrap().success());
        }
        let program = directory.path().join("main");
        let libraries = of(&program, &needs_of(&program)).unwrap();
        let home = libraries
            .iter()
            .find_map(|library| library.guest_path.strip_suffix("/libc.so.6"))
            .unwrap();
        for name in ["liblow.so", "libhigh.so"] {
            let library = libraries
                .iter()
                .find(|l| l.host_path.ends_with(name))
                .unwrap();
            assert_eq!(library.guest_path, format!("{home}/{name}"));
        }
        assert_eq!(libraries[0].guest_path, "/lib64/ld-linux-x86-64.so.2");
        assert_eq!(libraries.len(), 4);
    }
}
