// SPDX-License-Identifier: MIT OR Apache-2.0
use std::os::unix::fs::symlink;

use tar::{Builder, Header};

use super::*;

/// A tar file of these entries: name, kind, mode, and contents or link target.
fn tar_of(entries: &[(&str, EntryType, u32, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, kind, mode, contents) in entries {
        let mut header = Header::new_gnu();
        // As it is: `set_path` refuses what is to be refused here.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(*mode);
        let is_link = [EntryType::Symlink, EntryType::Link].contains(kind);
        if is_link {
            let target = std::str::from_utf8(contents).unwrap();
            header.set_link_name_literal(target).unwrap();
        }
        let contents = if is_link { &[] } else { *contents };
        header.set_size(contents.len() as u64);
        header.set_cksum();
        builder.append(&header, contents).unwrap();
    }
    builder.into_inner().unwrap()
}

fn read(bytes: &[u8]) -> Result<Userland, UserlandError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    Userland::read(file.path())
}

fn refused(bytes: &[u8]) -> String {
    read(bytes).unwrap_err().to_string()
}

fn file(mode: u32, text: &str) -> Entry {
    let bytes = text.as_bytes().to_vec();
    Entry::File { mode, bytes }
}

/// Checks that a userland holds these entries and nothing else.
fn assert_holds(userland: &Userland, expected: &[(&str, Entry)]) {
    let held: Vec<(&str, &Entry)> = userland.entries.iter().map(|(n, e)| (&**n, e)).collect();
    let expected: Vec<(&str, &Entry)> = expected.iter().map(|(n, e)| (*n, e)).collect();
    assert_eq!(held, expected);
}

const DIRECTORY: Entry = Entry::Directory { mode: 0o755 };

fn link(target: &str) -> Entry {
    let target = target.to_owned();
    Entry::Symlink { target }
}

#[test]
fn an_export_and_a_directory_are_one_userland_without_what_a_guest_may_not_have() {
    let export = tar_of(&[
        (".dockerenv", EntryType::Regular, 0o755, b""),
        ("dev/", EntryType::Directory, 0o755, b""),
        ("dev/null", EntryType::Char, 0o666, b""),
        ("bin", EntryType::Symlink, 0o777, b"usr/bin"),
        ("tmp/", EntryType::Directory, 0o1777, b""),
        ("./usr/bin/su", EntryType::Regular, 0o4755, b"su"),
        ("usr/bin/sg", EntryType::Link, 0o4755, b"usr/bin/su"),
        ("/usr/bin/ls", EntryType::Regular, 0o755, b"ls"),
        ("run/pipe", EntryType::Fifo, 0o644, b""),
    ]);
    let userland = read(&export).unwrap();
    let same = [
        (".dockerenv", file(0o755, "")),
        ("bin", link("usr/bin")),
        ("dev", DIRECTORY),
        ("tmp", Entry::Directory { mode: 0o1777 }),
        ("usr", DIRECTORY),
        ("usr/bin", DIRECTORY),
        ("usr/bin/ls", file(0o755, "ls")),
        ("usr/bin/sg", file(0o755, "su")),
        ("usr/bin/su", file(0o755, "su")),
    ];
    assert_holds(&userland, &same);
    assert_eq!(
        (userland.left_out, userland.lowered, userland.size()),
        (2, 1, 6)
    );
    let told = userland.told();
    let parts = [
        "4 files, 1 MiB",
        "without 2 device nodes",
        "without 1 setuid",
    ];
    assert!(parts.iter().all(|part| told.contains(part)), "{told}");

    let packed = {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packer, &export).unwrap();
        packer.finish().unwrap()
    };
    assert_holds(&read(&packed).unwrap(), &same);

    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for name in ["dev", "tmp", "usr", "usr/bin"] {
        fs::create_dir(at(name)).unwrap();
        let mode = if name == "tmp" { 0o1777 } else { 0o755 };
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    symlink("usr/bin", at("bin")).unwrap();
    for (name, mode, text) in [
        (".dockerenv", 0o755, ""),
        ("dev/null", 0o644, "none of it"),
        ("usr/bin/su", 0o4755, "su"),
        ("usr/bin/sg", 0o755, "su"),
        ("usr/bin/ls", 0o755, "ls"),
    ] {
        fs::write(at(name), text).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    assert_holds(&Userland::read(directory.path()).unwrap(), &same);
}

#[test]
fn a_saved_image_is_its_layers_one_upon_the_other() {
    let lower = tar_of(&[
        ("etc/", EntryType::Directory, 0o755, b""),
        ("etc/gone", EntryType::Regular, 0o644, b"1"),
        ("etc/kept", EntryType::Regular, 0o644, b"1"),
        ("old/a/b", EntryType::Regular, 0o644, b"1"),
        ("lib", EntryType::Symlink, 0o777, b"usr/lib"),
    ]);
    let upper = tar_of(&[
        ("etc/.wh.gone", EntryType::Regular, 0o644, b""),
        ("old/new", EntryType::Regular, 0o644, b"2"),
        ("old/.wh..wh..opq", EntryType::Regular, 0o644, b""),
        ("lib/", EntryType::Directory, 0o755, b""),
        ("lib/own", EntryType::Regular, 0o644, b"2"),
    ]);
    let image = |manifest: &str| {
        tar_of(&[
            ("a/layer.tar", EntryType::Regular, 0o644, &lower),
            ("blobs/sha256/b", EntryType::Regular, 0o644, &upper),
            (
                "manifest.json",
                EntryType::Regular,
                0o644,
                manifest.as_bytes(),
            ),
        ])
    };
    let one = r#"{"Config":"c","RepoTags":[],"Layers":["a/layer.tar","blobs/sha256/b"]}"#;
    let userland = read(&image(&format!("[{one}]"))).unwrap();
    let expected = [
        ("etc", DIRECTORY),
        ("etc/kept", file(0o644, "1")),
        ("lib", DIRECTORY),
        ("lib/own", file(0o644, "2")),
        ("old", DIRECTORY),
        ("old/new", file(0o644, "2")),
    ];
    assert_holds(&userland, &expected);
    let two = refused(&image(&format!("[{one},{one}]")));
    assert!(
        two.contains("expected one image, found 2: `docker export"),
        "{two}"
    );
    let lost = refused(&image(&format!("[{}]", one.replace("a/", "x/"))));
    assert!(
        lost.contains("its layer x/layer.tar is not in it"),
        "{lost}"
    );
    let oci = refused(&tar_of(&[("oci-layout", EntryType::Regular, 0o644, b"{}")]));
    assert!(oci.contains("an image of OCI: `docker export"), "{oci}");
}

#[test]
fn what_leads_out_of_the_root_or_cannot_be_read_is_refused() {
    let one = |name: &str| tar_of(&[(name, EntryType::Regular, 0o644, b"x")]);
    for name in ["../etc/passwd", "a/../../b", "/.."] {
        let told = refused(&one(name));
        assert!(told.contains("leads out of the root"), "{name}: {told}");
    }
    // Whatever a link leads to, nothing is put there.
    let through = refused(&tar_of(&[
        ("a", EntryType::Symlink, 0o777, b"/etc"),
        ("a/passwd", EntryType::Regular, 0o644, b"x"),
    ]));
    assert!(
        through.contains("a/passwd lies below a, which is no directory"),
        "{through}"
    );
    let early = refused(&tar_of(&[("a", EntryType::Link, 0o644, b"b")]));
    assert!(
        early.contains("a link to b, which does not stand before it"),
        "{early}"
    );
    for wrong in [&b"no tar file at all"[..], b"\x1f\x8bno"] {
        let told = refused(wrong);
        assert!(
            told.contains("expected a userland: a directory, or a tar file"),
            "{told}"
        );
    }
    let cut = one("etc/hosts");
    assert!(read(&cut[..300]).is_err());
    let none = Userland::read(Path::new("/no/such/root")).unwrap_err();
    assert!(none.to_string().contains("No such file"), "{none}");
}

#[test]
fn a_program_is_found_in_it_and_can_start_there() {
    let own = fs::read("/bin/ls").unwrap();
    let mut foreign = own.clone();
    foreign[18] = 183;
    let reader = elf::needs(&own, Architecture::Amd64).unwrap().interpreter;
    let reader = reader.expect("it is linked dynamically");
    let mut entries: Vec<(&str, EntryType, u32, &[u8])> = vec![
        ("bin", EntryType::Symlink, 0o777, b"usr/bin"),
        ("usr/bin/own", EntryType::Regular, 0o755, &own),
        ("usr/bin/again", EntryType::Symlink, 0o777, b"../../bin/own"),
        ("usr/bin/circle", EntryType::Symlink, 0o777, b"circle"),
        ("usr/bin/foreign", EntryType::Regular, 0o755, &foreign),
        ("usr/bin/plain", EntryType::Regular, 0o644, &own),
        (
            "usr/bin/script",
            EntryType::Regular,
            0o755,
            b"#! /bin/none -e\n",
        ),
        ("usr/bin/text", EntryType::Regular, 0o755, b"hello\n"),
    ];
    let check = |userland: &Userland, name: &str| {
        let checked = userland.check_program(name, Architecture::Amd64);
        checked.map_err(|error| error.to_string())
    };
    let bare = read(&tar_of(&entries)).unwrap();
    let needs = check(&bare, "own").unwrap_err();
    assert!(
        needs.contains(&format!("own in it needs {reader}, which it has not")),
        "{needs}"
    );
    entries.push((&reader[1..], EntryType::Regular, 0o755, b"x"));
    let whole = read(&tar_of(&entries)).unwrap();
    for name in ["own", "again", "/bin/own", "./usr/bin/../../bin/again"] {
        assert_eq!(check(&whole, name), Ok(()), "{name}");
    }
    for (name, why) in [
        (
            "loop",
            "expected the program loop in it, found none: its path",
        ),
        ("/usr/bin", "found none but a directory"),
        ("circle", "found none"),
        ("foreign", "an x86-64 program, found an ELF file for arm64"),
        ("plain", "is not executable"),
        ("script", "script in it needs /bin/none, which it has not"),
        ("text", "found no ELF file"),
    ] {
        let told = check(&whole, name).unwrap_err();
        assert!(told.contains(why), "{name}: {told}");
    }
}

#[test]
fn a_guest_has_it_below_one_directory_with_what_is_mounted_there() {
    let export = tar_of(&[
        ("etc/hosts", EntryType::Regular, 0o644, b"x"),
        ("lib", EntryType::Symlink, 0o777, b"/usr/lib"),
    ]);
    let mut initramfs = Initramfs::new();
    let own = [("/home/ann/loop".to_owned(), 0o755, b"loop".to_vec())];
    read(&export)
        .unwrap()
        .put_into(&mut initramfs, &own)
        .unwrap();
    let at = |path: &str| initramfs.get(&format!("{ROOT}{path}"));
    assert_eq!(at("/etc/hosts"), Some(&file(0o644, "x")));
    assert_eq!(at("/lib"), Some(&link("/usr/lib")));
    assert_eq!(at("/home/ann/loop"), Some(&file(0o755, "loop")));
    for name in ["/dev", "/proc", "/sys"] {
        assert_eq!(at(name), Some(&DIRECTORY));
    }
    assert_eq!(at("/tmp"), Some(&Entry::Directory { mode: 0o1777 }));
    assert_eq!(initramfs.get("/etc/hosts"), None);
}
