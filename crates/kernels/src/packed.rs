// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compressed files, unpacked into bounded memory.

use std::io::{self, Read};

use liblzma::read::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Not compressed.
    None,
    /// Compressed by xz.
    Xz,
    /// Compressed by gzip.
    Gzip,
    /// Compressed by zstd.
    Zstd,
}

impl Packing {
    /// Detects the compression by the first bytes.
    pub fn of(bytes: &[u8]) -> Self {
        match bytes {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// Unpacks a file; more than `most` unpacked bytes are an error of the kind `FileTooLarge`. A
/// compressed file may ask for a dictionary of any size, and gets no more memory for that either.
pub fn unpack(packed: Vec<u8>, packing: Packing, most: u64) -> io::Result<Vec<u8>> {
    let packed_bytes = &packed[..];
    match packing {
        Packing::None => Ok(packed),
        Packing::Xz => {
            let decoder = Stream::new_stream_decoder(most, CONCATENATED)?;
            limited(XzDecoder::new_stream(packed_bytes, decoder), most)
        }
        Packing::Gzip => limited(flate2::read::MultiGzDecoder::new(packed_bytes), most),
        Packing::Zstd => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(packed_bytes);
            limited(decoder.map_err(io::Error::other)?, most)
        }
    }
}

/// Reads everything, but never more than `most` bytes.
fn limited(reader: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let error = format!("more than {} MiB when unpacked", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, error));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_unpacks_to_gigabytes_is_refused() {
        let error = limited(io::repeat(0), 1 << 20).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn an_xz_file_gets_no_dictionary_of_gigabytes() {
        // `printf x | xz --lzma2=dict=1536MiB`: 60 bytes.
        let mut options = liblzma::stream::LzmaOptions::new_preset(0).unwrap();
        options.dict_size(4096);
        let mut filters = liblzma::stream::Filters::new();
        filters.lzma2(&options);
        let encoder = Stream::new_stream_encoder(&filters, liblzma::stream::Check::Crc32).unwrap();
        let mut packed = liblzma::write::XzEncoder::new_stream(Vec::new(), encoder);
        packed.write_all(b"x").unwrap();
        let mut packed = packed.finish().unwrap();
        assert_eq!(
            unpack(packed.clone(), Packing::Xz, 256 << 20).unwrap(),
            b"x"
        );
        // The block's header: size, flags, filter 0x21, one byte of properties, the dictionary.
        assert_eq!(packed[14..16], [0x21, 1]);
        packed[16] = 40; // 4 GiB - 1
        let checksum = crc32(&packed[12..20]);
        packed[20..24].copy_from_slice(&checksum.to_le_bytes());
        let packing = Packing::of(&packed);
        assert_eq!(packing, Packing::Xz);
        let error = unpack(packed, packing, 256 << 20).unwrap_err().to_string();
        assert!(error.contains("memory"), "{error}");
    }

    fn crc32(bytes: &[u8]) -> u32 {
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        crc.sum()
    }
}
