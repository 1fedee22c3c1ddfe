// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stream between target and workstation: frames with lengths and checksums.
//! The [conversation](crate::board) with a board uses such frames, too.
//!
//! ```text
//!  0      4      8      12     16
//!  ┌──────┬──────┬──────┬──────┬─────────────────┐
//!  │ PNCT │ seq  │ len  │ crc  │ len bytes: CBOR │   numbers are little-endian u32
//!  └──────┴──────┴──────┴──────┴─────────────────┘
//! ```
//!
//! `crc` is the CRC-32 (ISO-HDLC) of `seq`, `len` and the body. `seq` counts up from 0,
//! so that the loss of a whole frame is noticed too. A reader keeps everything
//! before the first faulty frame, and nothing after it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::record::Record;

const MAGIC: [u8; 4] = *b"PNCT";
const HEADER: usize = 16;

/// The longest body of a frame; a length above this is a sign of corruption. It has room for
/// [`KEEP_MOST`](crate::recording::KEEP_MOST) samples of at most 18 bytes.
pub const BODY_LIMIT: usize = 1 << 28;

/// A fault in a stream.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The stream ends within a frame.
    #[error("the stream ends {have} bytes into frame {frame}: it was cut off")]
    Torn {
        /// The frame's number, from 0.
        frame: u32,
        /// The number of its bytes that arrived.
        have: usize,
    },
    /// A frame does not begin with the magic bytes.
    #[error("frame {frame} begins with {found:02x?} instead of \"PNCT\": not a record stream")]
    Magic {
        /// The frame's number, from 0.
        frame: u32,
        /// The bytes in their place.
        found: [u8; 4],
    },
    /// A frame is missing or occurs twice.
    #[error("frame {found} stands where frame {expected} was due: a part of the stream is lost")]
    Sequence {
        /// The number that was expected.
        expected: u32,
        /// The number that was found.
        found: u32,
    },
    /// A length that no frame can have.
    #[error(
        "frame {frame} claims {length} bytes, more than the {BODY_LIMIT} that a frame may have"
    )]
    Length {
        /// The frame's number, from 0.
        frame: u32,
        /// The length that it claims.
        length: usize,
    },
    /// A frame's bytes differ from those that were sent.
    #[error("frame {frame} is damaged: checksum {found:08x}, expected {expected:08x}")]
    Checksum {
        /// The frame's number, from 0.
        frame: u32,
        /// The checksum that it carries.
        expected: u32,
        /// The checksum of the bytes that arrived.
        found: u32,
    },
    /// An intact frame that holds no record known to this program.
    #[error(
        "frame {frame} holds no record that this program knows ({reason}): was it sent by another version?"
    )]
    Record {
        /// The frame's number, from 0.
        frame: u32,
        /// The decoder's message.
        reason: String,
    },
    /// A recording that no recorder can make.
    #[error("frame {frame} holds a recording with {what}: was it forged?")]
    Contradiction {
        /// The frame's number, from 0.
        frame: u32,
        /// The fault in the recording.
        what: &'static str,
    },
}

/// Encodes records into frames.
#[derive(Debug, Default)]
pub struct Encoder {
    next: u32,
}

impl Encoder {
    /// Returns the next frame, which holds `record` or another message.
    ///
    /// # Panics
    /// Panics if a record is longer than [`BODY_LIMIT`]; the plan's limits keep it far below.
    pub fn encode<T: Serialize>(&mut self, record: &T) -> Vec<u8> {
        let mut frame = vec![0; HEADER];
        ciborium::into_writer(record, &mut frame).expect("writing to memory does not fail");
        let length = frame.len() - HEADER;
        assert!(
            length <= BODY_LIMIT,
            "a record of {length} bytes does not fit into a frame"
        );
        let (seq, len) = (self.next.to_le_bytes(), (length as u32).to_le_bytes());
        let crc = checksum(seq, len, &frame[HEADER..]);
        frame[0..4].copy_from_slice(&MAGIC);
        frame[4..8].copy_from_slice(&seq);
        frame[8..12].copy_from_slice(&len);
        frame[12..16].copy_from_slice(&crc.to_le_bytes());
        self.next += 1;
        frame
    }
}

/// Decodes a stream, handed over in pieces of any size, back into records.
#[derive(Debug, Default)]
pub struct Decoder {
    pending: Vec<u8>,
    next: u32,
}

impl Decoder {
    /// Takes the next piece of the stream.
    pub fn feed(&mut self, piece: &[u8]) {
        self.pending.extend_from_slice(piece);
    }

    /// Returns the next record, or `None` if more of the stream is needed.
    pub fn next_record(&mut self) -> Result<Option<Record>, FrameError> {
        self.next_sound(contradiction)
    }

    /// Returns the next message of another kind, or `None` if more of the stream is needed.
    pub fn next_message<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        self.next_sound(|_| None)
    }

    /// Returns the next message that does not contradict itself.
    fn next_sound<T: DeserializeOwned>(
        &mut self,
        contradiction: impl Fn(&T) -> Option<&'static str>,
    ) -> Result<Option<T>, FrameError> {
        let frame = self.next;
        let begun = self.pending.len().min(MAGIC.len());
        if self.pending[..begun] != MAGIC[..begun] {
            let mut found = [0; 4];
            found[..begun].copy_from_slice(&self.pending[..begun]);
            return Err(FrameError::Magic { frame, found });
        }
        if self.pending.len() < HEADER {
            return Ok(None);
        }
        let field = |at: usize| -> [u8; 4] {
            [
                self.pending[at],
                self.pending[at + 1],
                self.pending[at + 2],
                self.pending[at + 3],
            ]
        };
        let (seq, len, crc) = (field(4), field(8), u32::from_le_bytes(field(12)));
        let length = u32::from_le_bytes(len) as usize;
        if length > BODY_LIMIT {
            return Err(FrameError::Length { frame, length });
        }
        let Some(body) = self.pending.get(HEADER..HEADER + length) else {
            return Ok(None);
        };
        let sum = checksum(seq, len, body);
        if sum != crc {
            return Err(FrameError::Checksum {
                frame,
                expected: crc,
                found: sum,
            });
        }
        let seq = u32::from_le_bytes(seq);
        if seq != frame {
            return Err(FrameError::Sequence {
                expected: frame,
                found: seq,
            });
        }
        let record = ciborium::from_reader(body).map_err(|error| FrameError::Record {
            frame,
            reason: error.to_string(),
        })?;
        if let Some(what) = contradiction(&record) {
            return Err(FrameError::Contradiction { frame, what });
        }
        self.pending.drain(..HEADER + length);
        self.next += 1;
        Ok(Some(record))
    }

    /// Marks the end of the stream; returns an error if it ended within a frame.
    pub fn finish(&self) -> Result<(), FrameError> {
        match self.pending.len() {
            0 => Ok(()),
            have => Err(FrameError::Torn {
                frame: self.next,
                have,
            }),
        }
    }
}

fn contradiction(record: &Record) -> Option<&'static str> {
    match record {
        Record::Recording(recording) | Record::SoFar(recording) => recording.contradiction(),
        _ => None,
    }
}

fn checksum(seq: [u8; 4], len: [u8; 4], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&seq);
    hasher.update(&len);
    hasher.update(body);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Finished, Started};
    use crate::units::Nanos;

    fn records() -> Vec<Record> {
        let started = Started {
            step: 0,
            probe: "timer".into(),
            load: "idle".into(),
            nominal: Nanos(5),
        };
        vec![
            Record::Started(started),
            Record::Refused("no such probe".into()),
            Record::Finished(Finished {
                recordings: 1,
                unsupported: 0,
            }),
        ]
    }

    /// Returns a stream, and the position at which each of its frames ends.
    fn stream() -> (Vec<u8>, Vec<usize>) {
        let mut encoder = Encoder::default();
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for record in records() {
            bytes.extend(encoder.encode(&record));
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    /// Returns everything that can be decoded from a stream, and its fault.
    fn decode(bytes: &[u8]) -> (Vec<Record>, Option<FrameError>) {
        let mut decoder = Decoder::default();
        decoder.feed(bytes);
        let mut records = Vec::new();
        loop {
            match decoder.next_record() {
                Ok(Some(record)) => records.push(record),
                Ok(None) => return (records, decoder.finish().err()),
                Err(error) => return (records, Some(error)),
            }
        }
    }

    #[test]
    fn a_stream_comes_back_in_pieces_of_any_size() {
        let (bytes, _) = stream();
        for size in 1..bytes.len() {
            let mut decoder = Decoder::default();
            let mut back = Vec::new();
            for piece in bytes.chunks(size) {
                decoder.feed(piece);
                while let Some(record) = decoder.next_record().unwrap() {
                    back.push(record);
                }
            }
            assert_eq!(back, records());
            assert_eq!(decoder.finish(), Ok(()));
        }
    }

    #[test]
    fn a_stream_torn_at_any_byte_keeps_every_whole_frame_and_says_so() {
        let (bytes, ends) = stream();
        for cut in 0..bytes.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let (kept, error) = decode(&bytes[..cut]);
            assert_eq!(kept, records()[..whole], "cut at byte {cut}");
            let at_boundary = cut == 0 || ends.contains(&cut);
            assert_eq!(error.is_none(), at_boundary, "cut at byte {cut}: {error:?}");
        }
    }

    #[test]
    fn a_wrong_bit_anywhere_is_noticed_and_what_stood_before_it_is_kept() {
        let (bytes, ends) = stream();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let whole = ends.iter().filter(|end| **end <= bit / 8).count();
            let (kept, error) = decode(&damaged);
            assert_eq!(kept, records()[..whole], "bit {bit}");
            assert!(
                error.is_some(),
                "bit {bit} was turned and nothing was noticed"
            );
        }
    }

    #[test]
    fn a_recording_that_contradicts_itself_is_refused() {
        let mut recording = crate::Recorder::new(0).finish(crate::RecordingKey::of_variant("cpu0"));
        let encoded = |one| Encoder::default().encode(&Record::Recording(Box::new(one)));
        assert_eq!(decode(&encoded(recording.clone())).1, None);
        recording.count = 7;
        let (kept, error) = decode(&encoded(recording));
        assert!(kept.is_empty());
        let error = error.unwrap().to_string();
        assert!(error.contains("bins that do not add up"), "{error}");
    }

    #[test]
    fn a_frame_that_is_lost_as_a_whole_is_noticed() {
        let (bytes, ends) = stream();
        let without_second = [&bytes[..ends[0]], &bytes[ends[1]..]].concat();
        let (kept, error) = decode(&without_second);
        assert_eq!(kept.len(), 1);
        assert_eq!(
            error,
            Some(FrameError::Sequence {
                expected: 1,
                found: 2
            })
        );
    }
}
