// SPDX-License-Identifier: MIT OR Apache-2.0
//! Identifies a kernel file by its bytes.
//!
//! The virtual bench starts the files that distributions install under the name `vmlinuz`: a
//! bzImage for x86-64, or an `Image` for arm64. People take a dozen other kinds of file for these,
//! so each of those is recognised and named, together with the file to take instead.
//!
//! The offsets come from the kernel's `Documentation/arch/x86/boot.rst` and
//! `Documentation/arch/arm64/booting.rst`.

mod arm64;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use punctual_model::Architecture;

/// The number of bytes to read: the real-mode part of a bzImage has at most 64 sectors.
const HEAD_LEN: u64 = 65 * 512;

/// The most bytes to read of an arm64 kernel: its version may be anywhere.
const WHOLE_LEN: u64 = 512 << 20;

/// The facts about a bootable kernel image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageInfo {
    /// The output of `uname -r` there: `6.12.117+deb12-rt-amd64`.
    pub release: String,
    /// The whole version text: release, builder, and the output of `uname -v`.
    pub banner: String,
    /// The architecture of its processor.
    pub architecture: Architecture,
    /// Length of the file in bytes.
    pub len: u64,
}

/// The reason why a file cannot be booted.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The file does not exist.
    #[error("{}: expected a kernel image, found no such file: check the path; distributions install kernels as /boot/vmlinuz-*", .0.display())]
    Missing(PathBuf),
    /// The file exists, but cannot be read.
    #[error("{}: expected a readable kernel image, found: {err}: copy it as root, or make it readable with chmod", .0.display(), err = .1)]
    Unreadable(PathBuf, io::Error),
    /// The path is a directory.
    #[error("{}: expected a kernel image, found a directory: name the file in it: vmlinuz-* in /boot, arch/x86/boot/bzImage in a kernel tree", .0.display())]
    Directory(PathBuf),
    /// The path is a socket, pipe or device.
    #[error("{}: expected a kernel image, found something that is no regular file", .0.display())]
    Special(PathBuf),
    /// The file is empty.
    #[error("{}: expected a kernel image, found an empty file: copy or build it again", .0.display())]
    Empty(PathBuf),
    /// The file ends too early.
    #[error("{}: expected {expected} bytes, as its header says, found {found}: the copy is incomplete, make it again", .path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The length in its header.
        expected: u64,
        /// The length that the file has.
        found: u64,
    },
    /// The file is not a kernel for one of these architectures.
    #[error("{}: expected an x86-64 bzImage or an arm64 Image, found {found}: {advice}", .path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// The kind of file.
        found: String,
        /// Advice to the user.
        advice: &'static str,
    },
}

/// Identifies a kernel file. Only a complete x86-64 bzImage or arm64 Image is accepted.
pub fn inspect(path: &Path) -> Result<ImageInfo, ImageError> {
    let (mut head, len) = read_head(path, HEAD_LEN)?;
    if arm64::Header::find(&head).is_some() {
        (head, _) = read_head(path, WHOLE_LEN)?;
    }
    judge(path, &head, len)
}

/// Identifies a file of that length by its first bytes: [`HEAD_LEN`] of them are enough, except for
/// an arm64 kernel.
pub fn judge(path: &Path, head: &[u8], len: u64) -> Result<ImageInfo, ImageError> {
    if len == 0 {
        return Err(ImageError::Empty(path.to_owned()));
    }
    let other = |(found, advice)| ImageError::Other {
        path: path.to_owned(),
        found,
        advice,
    };
    let complete = |expected: u64| {
        let path = path.to_owned();
        let found = len;
        let truncated = ImageError::Truncated {
            path,
            expected,
            found,
        };
        if len < expected {
            Err(truncated)
        } else {
            Ok(())
        }
    };
    let (architecture, banner) = if let Some(setup) = Setup::find(head) {
        complete(setup.image_len())?;
        let banner = setup.banner().map_err(other)?;
        setup.check_64_bit(&banner).map_err(other)?;
        (Architecture::Amd64, banner)
    } else if let Some(header) = arm64::Header::find(head) {
        complete(header.image_len())?;
        header.check().map_err(other)?;
        (Architecture::Arm64, header.banner().map_err(other)?)
    } else {
        return Err(other(recognise(head)));
    };
    Ok(ImageInfo {
        release: banner.split(' ').next().unwrap_or_default().to_owned(),
        architecture,
        banner,
        len,
    })
}

fn read_head(path: &Path, most: u64) -> Result<(Vec<u8>, u64), ImageError> {
    let metadata = path.metadata().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            ImageError::Missing(path.to_owned())
        }
        _ => ImageError::Unreadable(path.to_owned(), error),
    })?;
    if metadata.is_dir() {
        return Err(ImageError::Directory(path.to_owned()));
    }
    if !metadata.is_file() {
        return Err(ImageError::Special(path.to_owned()));
    }
    let mut head = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most).read_to_end(&mut head))
        .map_err(|error| ImageError::Unreadable(path.to_owned(), error))?;
    Ok((head, metadata.len()))
}

/// The kind of file that was found, and advice.
type Finding = (String, &'static str);

const DISTRIBUTION_KERNEL: &str =
    "take a distribution's vmlinuz, or arch/x86/boot/bzImage of a kernel tree";

/// The setup header of an x86 kernel.
struct Setup<'a> {
    head: &'a [u8],
}

impl<'a> Setup<'a> {
    fn find(head: &'a [u8]) -> Option<Self> {
        let boot_sector = head.get(0x1FE..0x200)? == [0x55, 0xAA];
        let header = head.get(0x202..0x206)? == b"HdrS";
        (boot_sector && header && head.len() >= 0x238).then_some(Self { head })
    }

    fn u16(&self, offset: usize) -> u16 {
        u16::from_le_bytes([self.head[offset], self.head[offset + 1]])
    }

    fn protocol(&self) -> (u8, u8) {
        (self.head[0x207], self.head[0x206])
    }

    /// The length of boot sector, setup sectors (zero stands for four) and protected-mode code.
    fn image_len(&self) -> u64 {
        let sectors = match self.head[0x1F1] {
            0 => 4,
            sectors => u64::from(sectors),
        };
        let paragraphs = u64::from(self.u16(0x1F4)) | u64::from(self.u16(0x1F6)) << 16;
        (sectors + 1) * 512 + paragraphs * 16
    }

    fn banner(&self) -> Result<String, Finding> {
        let start = usize::from(self.u16(0x20E));
        let text = (start != 0)
            .then(|| self.head.get(start + 0x200..))
            .flatten()
            .and_then(|rest| rest.split(|byte| *byte == 0).next())
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .map(str::trim)
            .filter(|text| !text.is_empty());
        text.map(str::to_owned).ok_or_else(|| {
            (
                "an x86 kernel that does not tell its version".to_owned(),
                DISTRIBUTION_KERNEL,
            )
        })
    }

    /// Checks for a 64-bit kernel. `XLF_KERNEL_64` exists since boot protocol 2.12.
    fn check_64_bit(&self, banner: &str) -> Result<(), Finding> {
        let (major, minor) = self.protocol();
        if (major, minor) < (2, 12) {
            return Err((
                format!("boot protocol {major}.{minor:02}, older than 2.12: {banner}"),
                "take linux 3.8 or later",
            ));
        }
        if self.head[0x236] & 1 == 0 {
            return Err((
                format!("a 32-bit kernel: {banner}"),
                "take a kernel built for x86-64 (CONFIG_64BIT=y)",
            ));
        }
        Ok(())
    }
}

/// Names a file that is not an x86 kernel image.
fn recognise(head: &[u8]) -> Finding {
    if head.starts_with(b"\x7fELF") {
        return recognise_elf(head);
    }
    let known = KNOWN.iter().find(|known| {
        let end = known.offset + known.magic.len();
        head.get(known.offset..end) == Some(known.magic)
    });
    if let Some(known) = known {
        return (known.name.to_owned(), known.advice);
    }
    if is_text(head) {
        return ("a text file".to_owned(), DISTRIBUTION_KERNEL);
    }
    let start: Vec<String> = head.iter().take(8).map(|b| format!("{b:02x}")).collect();
    (
        format!("an unknown file that starts with {}", start.join(" ")),
        DISTRIBUTION_KERNEL,
    )
}

fn recognise_elf(head: &[u8]) -> Finding {
    let at = |offset: usize| head.get(offset).copied().unwrap_or_default();
    let machine = u16::from_le_bytes([at(0x12), at(0x13)]);
    let kind = u16::from_le_bytes([at(0x10), at(0x11)]);
    match (machine, kind) {
        (62, 1) => (
            "an object file or kernel module (ELF, x86-64)".to_owned(),
            "name the kernel's vmlinuz here, and the module as a module",
        ),
        (62, _) => (
            "an uncompressed vmlinux (ELF, x86-64)".to_owned(),
            "take arch/x86/boot/bzImage of the same tree (make bzImage)",
        ),
        (3, _) => (
            "an ELF file for 32-bit x86".to_owned(),
            "take arch/x86/boot/bzImage of a kernel built for x86-64",
        ),
        (183, 1) => (
            "an object file or kernel module (ELF, arm64)".to_owned(),
            "name the kernel's vmlinuz here, and the module as a module",
        ),
        (183, _) => (
            "an uncompressed vmlinux (ELF, arm64)".to_owned(),
            ARM64_IMAGE,
        ),
        (243, _) => ("an ELF file for RISC-V".to_owned(), OTHER_MACHINE),
        _ => (format!("an ELF file for machine {machine}"), OTHER_MACHINE),
    }
}

const OTHER_MACHINE: &str = "Punctual judges x86-64 and arm64 kernels only";
const ARM64_IMAGE: &str =
    "take arch/arm64/boot/Image of a kernel tree, or a distribution's vmlinuz if it is that";
const COMPRESSED: &str = "neither an x86-64 bzImage, which decompresses itself, nor an arm64 Image is packed; \
     unpack it if it was, else take a distribution's vmlinuz";
const NAME_THE_KERNEL: &str = "name the kernel's vmlinuz instead";

/// A kind of file that a few bytes identify.
struct Known {
    offset: usize,
    magic: &'static [u8],
    name: &'static str,
    advice: &'static str,
}

const fn known(
    offset: usize,
    magic: &'static [u8],
    name: &'static str,
    advice: &'static str,
) -> Known {
    Known {
        offset,
        magic,
        name,
        advice,
    }
}

/// The known kinds, in order: a kernel with an EFI stub also looks like a Windows program.
const KNOWN: &[Known] = &[
    known(56, b"RSC\x05", "a RISC-V kernel (Image)", OTHER_MACHINE),
    known(
        4,
        b"zimg",
        "a compressed EFI kernel (vmlinuz.efi, CONFIG_EFI_ZBOOT)",
        ARM64_IMAGE,
    ),
    known(
        0x24,
        b"\x18\x28\x6f\x01",
        "a 32-bit arm kernel (zImage)",
        OTHER_MACHINE,
    ),
    known(
        0,
        b"\x27\x05\x19\x56",
        "a U-Boot image (uImage)",
        OTHER_MACHINE,
    ),
    known(
        0,
        b"\xd0\x0d\xfe\xed",
        "a device tree or U-Boot FIT image",
        OTHER_MACHINE,
    ),
    known(
        0,
        b"MZ",
        "an EFI program without the header of an x86 kernel (a unified kernel image?)",
        "take the vmlinuz that it was made of",
    ),
    known(
        0,
        b"\x1f\x8b",
        "a gzip file (as Image.gz of arm64 is one)",
        COMPRESSED,
    ),
    known(0, b"\xfd7zXZ\0", "an xz file", COMPRESSED),
    known(0, b"\x28\xb5\x2f\xfd", "a zstd file", COMPRESSED),
    known(0, b"BZh", "a bzip2 file", COMPRESSED),
    known(0, b"\x02\x21\x4c\x18", "an lz4 file", COMPRESSED),
    known(0, b"\x04\x22\x4d\x18", "an lz4 file", COMPRESSED),
    known(
        0,
        b"070701",
        "a cpio archive (an initramfs)",
        NAME_THE_KERNEL,
    ),
    known(
        0,
        b"!<arch>\ndebian-binary",
        "a Debian package",
        "unpack it with dpkg-deb -x, and name boot/vmlinuz-* of it",
    ),
    known(
        0,
        b"\xed\xab\xee\xdb",
        "an RPM package",
        "unpack it, and name the vmlinuz of it",
    ),
    known(
        257,
        b"ustar",
        "a tar archive",
        "unpack it, and name the vmlinuz of it",
    ),
    known(0, b"QFI\xfb", "a disk image (qcow2)", NAME_THE_KERNEL),
    known(0, b"#!", "a script", DISTRIBUTION_KERNEL),
];

/// Returns true for text. The head may end within a character, so an error at its end does not
/// count.
fn is_text(head: &[u8]) -> bool {
    let sound = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    sound
        && !head
            .iter()
            .any(|b| b.is_ascii_control() && !b.is_ascii_whitespace())
}

/// Makes images for tests.
#[cfg(test)]
pub(crate) mod synthetic {
    /// A bzImage with nothing in it but a header and a version.
    pub(crate) fn bzimage(release: &str) -> Vec<u8> {
        let mut image = vec![0; 5 * 512 + 1600];
        image[0x1F1] = 4;
        image[0x1F4] = 100;
        image[0x1FE..0x200].copy_from_slice(&[0x55, 0xAA]);
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x206..0x208].copy_from_slice(&[15, 2]);
        image[0x20E..0x210].copy_from_slice(&0x400_u16.to_le_bytes());
        image[0x236] = 0x7F;
        let banner = format!("{release} (ada@analytical) #1 SMP PREEMPT_DYNAMIC\0");
        image[0x600..0x600 + banner.len()].copy_from_slice(banner.as_bytes());
        image
    }

    /// An arm64 kernel with nothing in it but a header, a section and a version.
    pub(crate) fn arm64_image(release: &str) -> Vec<u8> {
        let mut image = vec![0; 4096];
        let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"MZ");
        put(24, &[0x0A]);
        put(56, b"ARM\x64");
        put(0x3C, &64_u32.to_le_bytes());
        put(64, b"PE\0\0");
        put(70, &[1, 0]);
        // The only section has 4,000 bytes from 96 on.
        put(88 + 16, &4_000_u32.to_le_bytes());
        put(88 + 20, &96_u32.to_le_bytes());
        put(512, b"Linux version %s\0");
        let banner = format!("Linux version {release} (ada@analytical) #1 SMP PREEMPT_RT\n\0");
        put(1024, banner.as_bytes());
        image
    }
}

#[cfg(test)]
mod tests {
    use super::synthetic::bzimage;
    use super::*;

    fn inspect_bytes(bytes: &[u8]) -> Result<ImageInfo, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let path = format!("{}: ", file.path().display());
        inspect(file.path()).map_err(|error| error.to_string().replace(&path, ""))
    }

    fn placed(offset: usize, magic: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xEE; 1024];
        bytes[offset..offset + magic.len()].copy_from_slice(magic);
        bytes
    }

    #[test]
    fn a_bzimage_is_accepted() {
        let info = inspect_bytes(&bzimage("6.12.1-test")).unwrap();
        assert_eq!(info.release, "6.12.1-test");
        assert_eq!(
            info.banner,
            "6.12.1-test (ada@analytical) #1 SMP PREEMPT_DYNAMIC"
        );
        assert_eq!(info.architecture, Architecture::Amd64);
        assert_eq!(info.len, 4160);
    }

    #[test]
    fn an_image_that_was_signed_is_longer_than_its_header_says() {
        let mut image = bzimage("6.12.1-test");
        image.extend([1; 300]);
        assert!(inspect_bytes(&image).is_ok());
    }

    #[test]
    fn an_incomplete_copy_is_noticed() {
        let image = bzimage("6.12.1-test");
        let error = inspect_bytes(&image[..4000]).unwrap_err();
        assert_eq!(
            error,
            "expected 4160 bytes, as its header says, found 4000: the copy is incomplete, make it again"
        );
    }

    #[test]
    fn other_x86_kernels_are_named() {
        let mut image = bzimage("6.1.0-i386");
        image[0x236] = 0;
        let error = inspect_bytes(&image).unwrap_err();
        assert!(error.contains("a 32-bit kernel: 6.1.0-i386 ("), "{error}");

        let mut image = bzimage("2.6.32");
        image[0x206] = 10;
        let error = inspect_bytes(&image).unwrap_err();
        assert!(error.contains("found boot protocol 2.10, older"), "{error}");

        let mut image = bzimage("x");
        image[0x20E..0x210].fill(0);
        let error = inspect_bytes(&image).unwrap_err();
        assert!(error.contains("does not tell its version"), "{error}");
    }

    #[test]
    fn every_known_kind_of_file_is_named() {
        for known in KNOWN {
            let error = inspect_bytes(&placed(known.offset, known.magic)).unwrap_err();
            let expected = format!(
                "expected an x86-64 bzImage or an arm64 Image, found {}: {}",
                known.name, known.advice
            );
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn elf_files_are_told_apart() {
        let elf = |machine: u8, kind: u8| {
            let mut bytes = placed(0, b"\x7fELF\x02\x01\x01");
            bytes[0x10..0x14].copy_from_slice(&[kind, 0, machine, 0]);
            inspect_bytes(&bytes).unwrap_err()
        };
        assert!(
            elf(62, 2)
                .contains("an uncompressed vmlinux (ELF, x86-64): take arch/x86/boot/bzImage")
        );
        assert!(elf(62, 1).contains("kernel module"));
        assert!(elf(3, 2).contains("32-bit x86"));
        assert!(elf(183, 2).contains("an uncompressed vmlinux (ELF, arm64)"));
        assert!(elf(183, 1).contains("kernel module (ELF, arm64)"));
        assert!(elf(243, 2).contains("RISC-V"));
        assert!(elf(22, 2).contains("machine 22"));
        assert!(inspect_bytes(b"\x7fELF").unwrap_err().contains("machine 0"));
    }

    #[test]
    fn text_and_noise_are_told_apart() {
        let error = inspect_bytes("CONFIG_64BIT=y\n# Zurück\n".as_bytes()).unwrap_err();
        assert!(error.contains("found a text file"), "{error}");
        let error = inspect_bytes(&[0xC3, 0x28, 0, 1]).unwrap_err();
        assert!(
            error.contains("an unknown file that starts with c3 28 00 01"),
            "{error}"
        );
    }

    #[test]
    fn what_is_no_file_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("vmlinuz");
        assert!(matches!(inspect(&missing), Err(ImageError::Missing(_))));
        assert!(matches!(
            inspect(directory.path()),
            Err(ImageError::Directory(_))
        ));
        let dangling = directory.path().join("vmlinuz.old");
        std::os::unix::fs::symlink(&missing, &dangling).unwrap();
        assert!(matches!(inspect(&dangling), Err(ImageError::Missing(_))));
        assert!(matches!(
            inspect(Path::new("/dev/null")),
            Err(ImageError::Special(_))
        ));
        std::fs::write(&missing, "").unwrap();
        assert!(matches!(inspect(&missing), Err(ImageError::Empty(_))));
    }
}
