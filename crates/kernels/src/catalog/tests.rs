// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels added, listed, replaced, damaged and removed.

use super::*;
use crate::apt::AptError;
use crate::image::synthetic::bzimage;
use crate::module::synthetic::module_for;
use crate::record::sum;

struct Scratch {
    directory: tempfile::TempDir,
    catalog: Catalog,
}

impl Scratch {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(&directory.path().join("cache")).unwrap();
        Self { directory, catalog }
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn vmlinuz(&self) -> PathBuf {
        self.file("vmlinuz-6.12.1-test", &bzimage("6.12.1-test"))
    }

    fn add(&self, id: &str) -> Result<Kernel, KernelError> {
        self.catalog.add(id, &self.vmlinuz(), "", &[], false)
    }

    /// The names in the catalog's directory, except for locks.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.catalog.directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.starts_with(".lock-"))
            .collect();
        names.sort();
        names
    }
}

#[test]
fn a_kernel_is_added_listed_got_and_removed() {
    let scratch = Scratch::new();
    let vmlinuz = scratch.vmlinuz();
    scratch.file("config-6.12.1-test", b"CONFIG_64BIT=y\n");
    let modules = [
        scratch.file("stall.ko", &module_for("6.12.1-test")),
        scratch.file("pulse.ko", &module_for("6.12.1-test")),
    ];
    let catalog = &scratch.catalog;
    let added = catalog
        .add("mine", &vmlinuz, " preempt=full ", &modules, false)
        .unwrap();
    assert_eq!(added.release, "6.12.1-test");
    assert_eq!(added.boot, "preempt=full");
    assert_eq!(added.origin, format!("file {}", vmlinuz.display()));
    assert_eq!(added.image_sha256, sum(&vmlinuz).unwrap());
    assert_eq!(fs::read(&added.image).unwrap(), fs::read(&vmlinuz).unwrap());
    let config = fs::read(added.config.as_ref().unwrap()).unwrap();
    assert_eq!(config, b"CONFIG_64BIT=y\n");
    assert!(added.modules[0].ends_with("mine/modules/0/stall.ko"));
    assert!(added.modules[1].ends_with("mine/modules/1/pulse.ko"));

    assert_eq!(catalog.get("mine").unwrap(), added);
    assert_eq!(catalog.ensure("mine", &mut |_| ()).unwrap(), added);
    assert_eq!(catalog.fetch("mine", false, &mut |_| ()).unwrap(), added);
    let listed = catalog.list().unwrap();
    assert_eq!(listed.len(), catalog.sources().len() + 1);
    assert_eq!(listed[0].state, State::NotFetched);
    let last = listed.last().unwrap();
    assert_eq!((last.id.as_str(), last.has_source), ("mine", false));
    assert!(matches!(&last.state, State::Cached { release } if release == "6.12.1-test"));

    catalog.remove("mine").unwrap();
    assert!(scratch.names().is_empty());
    assert!(matches!(
        catalog.get("mine"),
        Err(KernelError::Unknown { .. })
    ));
    // What there is to remove is listed, and not what could be fetched.
    let none = catalog.remove("mine").unwrap_err();
    assert_eq!(
        none.to_string(),
        "expected the id of a kernel in the cache, found \"mine\" (there is none)"
    );
    scratch.add("other").unwrap();
    let none = catalog.remove("debian-6.12").unwrap_err();
    assert!(none.is_request());
    assert_eq!(
        none.to_string(),
        "expected the id of a kernel in the cache, found \"debian-6.12\" (there are: other)"
    );
}

#[test]
fn what_changed_in_the_cache_is_noticed() {
    let scratch = Scratch::new();
    let vmlinuz = scratch.vmlinuz();
    let modules = [scratch.file("stall.ko", &module_for("6.12.1-test"))];
    let kernel = scratch
        .catalog
        .add("mine", &vmlinuz, "", &modules, false)
        .unwrap();
    fs::write(&kernel.modules[0], "changed").unwrap();
    let error = scratch.catalog.get("mine").unwrap_err().to_string();
    assert!(error.contains("stall.ko: expected sha256"), "{error}");
    fs::write(&kernel.image, "changed").unwrap();
    let error = scratch.catalog.get("mine").unwrap_err();
    let is_own = matches!(&error, KernelError::Changed { id, is_own: true, .. } if id == "mine");
    let error = error.to_string();
    assert!(
        is_own && error.contains("vmlinuz: expected sha256"),
        "{error}"
    );
    fs::remove_file(&kernel.image).unwrap();
    let error = scratch.catalog.get("mine").unwrap_err().to_string();
    assert!(error.contains("found no such file"), "{error}");
}

#[test]
fn an_id_is_taken_until_it_is_to_be_replaced() {
    let scratch = Scratch::new();
    scratch.add("mine").unwrap();
    let newer = scratch.file("newer", &bzimage("6.13.0"));
    let catalog = &scratch.catalog;
    let taken = catalog.add("mine", &newer, "", &[], false);
    assert!(matches!(taken, Err(KernelError::Taken(_))));
    assert_eq!(catalog.get("mine").unwrap().release, "6.12.1-test");
    catalog.add("mine", &newer, "", &[], true).unwrap();
    assert_eq!(catalog.get("mine").unwrap().release, "6.13.0");
    assert_eq!(scratch.names(), ["mine"]);
}

#[test]
fn the_id_of_a_source_is_reserved() {
    let scratch = Scratch::new();
    let error = scratch.add("debian-6.12").unwrap_err();
    assert!(matches!(error, KernelError::Reserved(_)));
}

#[test]
fn a_failed_addition_leaves_nothing_and_spoils_nothing() {
    let scratch = Scratch::new();
    scratch.add("mine").unwrap();
    let catalog = &scratch.catalog;
    let script = scratch.file("script", b"#!/bin/sh\n");
    let error = catalog.add("other", &script, "", &[], false).unwrap_err();
    assert!(error.to_string().contains("found a script"), "{error}");
    let wrong = [scratch.file("stall.ko", &module_for("5.10.0"))];
    let error = catalog.add("mine", &scratch.vmlinuz(), "", &wrong, true);
    assert!(matches!(error, Err(KernelError::Module(_))));
    assert_eq!(scratch.names(), ["mine"]);
    assert!(catalog.get("mine").is_ok());
}

#[test]
fn ids_are_plain() {
    for id in ["debian-6.12-rt", "6.12", "a", "a_b+c.d-e"] {
        assert!(KernelId::parse(id).is_ok(), "{id}");
    }
    for id in ["", ".", "..", ".a", "-a", "A", "a/b", "a b", "ä", "a\n"] {
        assert!(
            matches!(KernelId::parse(id), Err(KernelError::BadId(_))),
            "{id}"
        );
    }
    assert!(matches!(
        Scratch::new().catalog.get("../etc"),
        Err(KernelError::BadId(_))
    ));
}

#[test]
fn what_is_not_there_is_explained() {
    let scratch = Scratch::new();
    let error = scratch.catalog.get("debian-6.12-rt").unwrap_err();
    assert!(matches!(error, KernelError::NotFetched(id) if id == "debian-6.12-rt"));
    scratch.add("mine").unwrap();
    let error = scratch.catalog.get("nobodys").unwrap_err().to_string();
    assert!(
        error.starts_with("there is no kernel \"nobodys\""),
        "{error}"
    );
    assert!(error.ends_with("debian-backports-rt, mine)"), "{error}");
    let error = scratch.catalog.fetch("nobodys", true, &mut |_| ());
    assert!(matches!(error, Err(KernelError::Unknown { .. })));
}

#[test]
fn a_damaged_record_is_listed_and_can_be_removed() {
    let scratch = Scratch::new();
    scratch.add("mine").unwrap();
    fs::write(scratch.catalog.record_path("mine"), "id = 7").unwrap();
    let error = scratch.catalog.get("mine").unwrap_err();
    assert!(
        matches!(&error, KernelError::Record { id, .. } if id == "mine"),
        "{error}"
    );
    let listed = scratch.catalog.list().unwrap();
    assert!(matches!(
        listed.last().unwrap().state,
        State::Damaged { .. }
    ));
    scratch.catalog.remove("mine").unwrap();
}

#[test]
fn what_a_crash_left_over_is_cleared() {
    let scratch = Scratch::new();
    let left = scratch.catalog.directory.join(".work-mine");
    fs::create_dir_all(left.join("modules")).unwrap();
    fs::write(left.join("big.deb"), "x").unwrap();
    assert_eq!(
        scratch.catalog.list().unwrap().len(),
        scratch.catalog.sources().len()
    );
    scratch.add("mine").unwrap();
    assert_eq!(scratch.names(), ["mine"]);
    assert!(!scratch.catalog.place("mine").join("big.deb").exists());
}

/// Needs apt's lists, the network and a minute: `cargo test -- --ignored`.
#[test]
#[ignore = "downloads 107 MB"]
fn a_kernel_is_fetched() {
    let scratch = Scratch::new();
    let kernel = scratch
        .catalog
        .ensure("debian-6.12-rt", &mut |message| println!("{message}"))
        .unwrap();
    println!("{kernel:#?}");
    let record = scratch.catalog.record_path("debian-6.12-rt");
    println!("{}", fs::read_to_string(record).unwrap());
    assert!(kernel.release.ends_with("-rt-amd64"));
    let config = fs::read_to_string(kernel.config.as_ref().unwrap()).unwrap();
    assert!(config.contains("CONFIG_PREEMPT_RT=y"));
    let mut names: Vec<_> = fs::read_dir(kernel.image.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["config", "kernel.toml", "vmlinuz"]);
    let again = scratch.catalog.fetch("debian-6.12-rt", false, &mut |_| ());
    assert_eq!(again.unwrap(), kernel);
}

/// Leaves what fetching would: a kernel of a source, with its package's version.
fn leave_fetched(scratch: &Scratch, id: &str, version: &str) {
    let catalog = &scratch.catalog;
    scratch.add("mine").unwrap();
    fs::rename(catalog.place("mine"), catalog.place(id)).unwrap();
    fs::write(catalog.place(id).join("config"), "").unwrap();
    let mut record = catalog.read_record(id).unwrap();
    record.id = id.into();
    record.version = Some(version.into());
    let text = toml::to_string(&record).unwrap();
    fs::write(catalog.record_path(id), text).unwrap();
}

#[test]
fn the_newest_revision_of_a_version_is_meant() {
    let scratch = Scratch::new();
    let newest = "6.12.1-10";
    for version in ["6.12.1-2", newest, "6.12.1-9"] {
        leave_fetched(&scratch, &format!("debian-6.12@{version}"), version);
    }
    leave_fetched(&scratch, "debian-6.12", "6.12.2-1");
    let found = |id| scratch.catalog.cached_version(id)?.version;
    assert_eq!(found("debian-6.12@6.12.1").as_deref(), Some(newest));
    assert_eq!(found("debian-6.12@6.12.3"), None);
    // One that is damaged is none.
    let id = format!("debian-6.12@{newest}");
    fs::write(scratch.catalog.place(&id).join("vmlinuz"), "x").unwrap();
    assert_eq!(found("debian-6.12@6.12.1").as_deref(), Some("6.12.1-9"));
}

#[test]
fn a_pinned_version_that_is_here_is_not_fetched_again() {
    let scratch = Scratch::new();
    let catalog = &scratch.catalog;
    leave_fetched(&scratch, "debian-6.12", "6.12.1-1~deb12u1");

    let pinned = "debian-6.12@6.12.1";
    assert!(matches!(
        catalog.get(pinned),
        Err(KernelError::NotFetched(_))
    ));
    let kernel = catalog.fetch(pinned, false, &mut |_| ()).unwrap();
    assert_eq!((&*kernel.id, &*kernel.release), (pinned, "6.12.1-test"));
    assert_eq!(scratch.names(), ["debian-6.12", pinned]);
    let listed = catalog.list().unwrap();
    let listed = listed.iter().find(|one| one.id == pinned).unwrap();
    assert!(listed.has_source && matches!(listed.state, State::Cached { .. }));
    catalog.remove(pinned).unwrap();
    assert_eq!(scratch.names(), ["debian-6.12"]);
}

#[test]
fn a_kernel_without_releases_is_no_line() {
    let scratch = Scratch::new();
    scratch.add("mine").unwrap();
    for id in ["mine", "debian-6.12@6.12.1"] {
        let error = scratch.catalog.releases(id, &mut |_| ()).unwrap_err();
        let is_it = matches!(&error, KernelError::NoReleases(found) if found == id);
        assert!(is_it && error.is_request(), "{error}");
    }
    let error = scratch.catalog.releases("nobodys", &mut |_| ());
    assert!(matches!(error, Err(KernelError::Unknown { .. })));
}

#[test]
fn an_id_that_cannot_be_taken_is_a_wrong_request() {
    let scratch = Scratch::new();
    scratch.add("mine").unwrap();
    for id in ["mine", "mine@1.0", "debian-6.12"] {
        let error = scratch.add(id).unwrap_err();
        assert!(error.is_request(), "{error}");
    }
    let (id, known) = ("debian-6.12@1".to_owned(), String::new());
    let error = KernelError::from(AptError::NoVersion { id, known });
    assert!(error.is_request(), "{error}");
}

#[test]
fn a_kernel_of_ones_own_has_no_version_to_be_pinned_to() {
    let scratch = Scratch::new();
    assert!(matches!(
        scratch.add("mine@1.0"),
        Err(KernelError::NotPinned(_))
    ));
    assert!(matches!(
        scratch.add("debian-6.12@6.12.1"),
        Err(KernelError::Reserved(_))
    ));
}

#[test]
fn a_damaged_kernel_hides_no_other_with_the_same_image() {
    let scratch = Scratch::new();
    let image = scratch.add("a").unwrap().image_sha256;
    scratch.add("b").unwrap();
    let id = || {
        let found = scratch.catalog.of_image(&image).unwrap();
        found.map(|kernel| kernel.id)
    };
    assert_eq!(id().as_deref(), Some("a"));
    fs::write(scratch.catalog.place("a").join("vmlinuz"), "torn").unwrap();
    assert_eq!(id().as_deref(), Some("b"));
    fs::write(scratch.catalog.place("b").join("vmlinuz"), "torn").unwrap();
    assert_eq!(id(), None);
}
