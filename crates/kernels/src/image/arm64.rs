// SPDX-License-Identifier: MIT OR Apache-2.0
//! An arm64 kernel: an `Image`, which is not compressed, and has its version at any place.

use super::Finding;

/// The beginning of the kernel's version, wherever it is.
const VERSION: &[u8] = b"Linux version ";

/// The greatest length of a version.
const VERSION_MAX: usize = 1024;

/// The header of an arm64 kernel.
pub(super) struct Header<'a> {
    image: &'a [u8],
}

impl<'a> Header<'a> {
    /// The header, if the file begins with one.
    pub(super) fn find(image: &'a [u8]) -> Option<Self> {
        let magic = image.get(56..60)? == b"ARM\x64";
        (magic && image.len() >= 64).then_some(Self { image })
    }

    /// The least length of the file: up to the end of the last section, if its EFI stub, which
    /// distributions' kernels have, lists sections; otherwise only the header.
    pub(super) fn image_len(&self) -> u64 {
        self.sections_end().unwrap_or(64)
    }

    /// The end of the last section, by the PE format. The offset of the COFF header is at 0x3c;
    /// there are the number of sections and the length of the optional header; then the sections
    /// follow, 40 bytes each.
    fn sections_end(&self) -> Option<u64> {
        if !self.image.starts_with(b"MZ") {
            return None;
        }
        let coff = self.u32(0x3C)? as usize;
        if self.image.get(coff..)?.get(..4)? != b"PE\0\0" {
            return None;
        }
        let count = usize::from(self.u16(coff + 6)?);
        let optional = usize::from(self.u16(coff + 20)?);
        let end = |number: usize| {
            let section = coff + 24 + optional + number * 40;
            let (size, start) = (self.u32(section + 16)?, self.u32(section + 20)?);
            Some(u64::from(size) + u64::from(start))
        };
        (0..count).filter_map(end).max()
    }

    /// Checks the flags. Flag 0 is the byte order: only little-endian kernels run on the virtual
    /// bench. Flags 1 and 2 are the page size: the bench's processor, a Cortex-A57, has no pages of
    /// 16 KiB.
    pub(super) fn check(&self) -> Result<(), Finding> {
        if self.image[24] & 1 != 0 {
            let advice = "take a kernel built with CONFIG_CPU_LITTLE_ENDIAN=y";
            return Err(("a big-endian arm64 kernel".to_owned(), advice));
        }
        if self.image[24] >> 1 & 3 == 2 {
            let found = "an arm64 kernel with pages of 16 KiB, which the bench's processor has not";
            return Err((
                found.to_owned(),
                "take one built with CONFIG_ARM64_4K_PAGES=y",
            ));
        }
        Ok(())
    }

    /// The version without the words "Linux version", like that of a bzImage.
    pub(super) fn banner(&self) -> Result<String, Finding> {
        let begins = self.image.windows(VERSION.len()).enumerate();
        let begins = begins.filter(|(_, window)| *window == VERSION);
        let mut texts = begins.map(|(at, _)| {
            let bytes = self.image[at + VERSION.len()..].iter().take(VERSION_MAX);
            let printable = bytes.take_while(|byte| (b' '..=b'~').contains(*byte));
            printable.map(|byte| char::from(*byte)).collect::<String>()
        });
        // A format (`%s`) begins with the same words.
        let version = texts.find(|text| text.starts_with(|c: char| c.is_ascii_digit()));
        version.map(|text| text.trim().to_owned()).ok_or_else(|| {
            (
                "an arm64 kernel that does not tell its version".to_owned(),
                super::ARM64_IMAGE,
            )
        })
    }

    fn u16(&self, offset: usize) -> Option<u16> {
        let bytes = self.image.get(offset..)?.first_chunk()?;
        Some(u16::from_le_bytes(*bytes))
    }

    fn u32(&self, offset: usize) -> Option<u32> {
        let bytes = self.image.get(offset..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use punctual_model::Architecture;

    use super::super::{ImageInfo, judge, synthetic};

    fn told(image: &[u8], len: u64) -> Result<ImageInfo, String> {
        judge(Path::new("vmlinuz"), image, len).map_err(|error| error.to_string())
    }

    #[test]
    fn an_image_is_accepted() {
        let image = synthetic::arm64_image("6.12.1-test");
        let info = told(&image, image.len() as u64).unwrap();
        assert_eq!(info.architecture, Architecture::Arm64);
        assert_eq!(info.release, "6.12.1-test");
        assert_eq!(
            info.banner,
            "6.12.1-test (ada@analytical) #1 SMP PREEMPT_RT"
        );
    }

    #[test]
    fn one_that_is_cut_is_noticed_by_its_sections() {
        let image = synthetic::arm64_image("6.12.1-test");
        let len = image.len() as u64;
        let error = told(&image[..image.len() - 1], len - 1).unwrap_err();
        let expected = format!(
            "expected {len} bytes, as its header says, found {}",
            len - 1
        );
        assert!(error.contains(&expected), "{error}");
    }

    #[test]
    fn others_are_named() {
        let mut image = synthetic::arm64_image("6.12.1-test");
        let len = image.len() as u64;
        image[24] = 0x0B;
        let error = told(&image, len).unwrap_err();
        assert!(error.contains("a big-endian arm64 kernel"), "{error}");
        image[24] = 0x0C;
        let error = told(&image, len).unwrap_err();
        assert!(error.contains("CONFIG_ARM64_4K_PAGES=y"), "{error}");
        image[24] = 0x0A;
        let at = image.windows(7).rposition(|one| one == b"version");
        image[at.unwrap()] = b'x';
        let error = told(&image, len).unwrap_err();
        assert!(error.contains("does not tell its version"), "{error}");
    }
}
