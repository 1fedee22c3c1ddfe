// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a trace back, piece by piece.

use std::io::{self, Read};

use crate::format::{MAGIC, Word, tag};
use crate::orders::Window;

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insn {
    /// Its address.
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A run of instructions that is entered only at the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its number in the trace: the first block has 0, each new one the next.
    pub number: u32,
    /// Its instructions.
    pub insns: Vec<Insn>,
}

/// A piece of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A block that was not known before.
    Block(Block),
    /// The window to which the following words belong.
    Window {
        /// The window.
        window: Window,
        /// The number of words lost at its beginning.
        lost: u64,
    },
    /// Events.
    Words(Vec<Word>),
    /// The blocks that ran, each as a whole.
    Whole(Vec<u32>),
    /// The plan was carried out.
    End,
}

/// The reason why a trace cannot be read.
#[derive(Debug)]
pub enum ReadError {
    /// The trace cannot be read at all.
    Io(io::Error),
    /// The text is no trace, or a damaged one.
    Damaged(&'static str),
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => write!(f, "the trace cannot be read: {error}"),
            Self::Damaged(what) => write!(f, "the trace is damaged: {what}"),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Damaged("it ends too early"),
            _ => Self::Io(error),
        }
    }
}

/// Reads a trace.
pub struct Reader<R> {
    from: R,
    blocks: u32,
    /// The bytes of the current piece: one buffer for all pieces.
    bytes: Vec<u8>,
}

impl<R: Read> Reader<R> {
    /// Begins to read; returns an error if it is not a trace.
    pub fn new(mut from: R) -> Result<Self, ReadError> {
        let mut magic = [0; MAGIC.len()];
        from.read_exact(&mut magic)?;
        if &magic != MAGIC {
            return Err(ReadError::Damaged("it does not begin like one"));
        }
        let bytes = Vec::new();
        Ok(Self {
            from,
            blocks: 0,
            bytes,
        })
    }

    /// Returns the next piece; `None` at the end.
    pub fn next_item(&mut self) -> Result<Option<Item>, ReadError> {
        let mut tag = [0];
        if self.from.read(&mut tag)? == 0 {
            return Ok(None);
        }
        let item = match tag[0] {
            tag::BLOCK => Item::Block(self.block()?),
            tag::WINDOW => self.window(None)?,
            tag::OF_CPU => {
                let cpu = u32::from_le_bytes(self.array()?);
                if self.array()? != [tag::WINDOW] {
                    return Err(ReadError::Damaged("a CPU without a window"));
                }
                self.window(Some(cpu))?
            }
            tag::WORDS => Item::Words(self.words()?),
            tag::WHOLE => Item::Whole(self.whole()?),
            tag::END => Item::End,
            _ => return Err(ReadError::Damaged("an unknown tag")),
        };
        Ok(Some(item))
    }

    fn window(&mut self, cpu: Option<u32>) -> Result<Item, ReadError> {
        Ok(Item::Window {
            window: Window {
                step: u32::from_le_bytes(self.array()?),
                index: u64::from_le_bytes(self.array()?),
                cpu,
            },
            lost: u64::from_le_bytes(self.array()?),
        })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn block(&mut self) -> Result<Block, ReadError> {
        let number = u32::from_le_bytes(self.array()?);
        if number != self.blocks {
            return Err(ReadError::Damaged("blocks are not in their order"));
        }
        self.blocks += 1;
        let count = u16::from_le_bytes(self.array()?);
        let insns = (0..count).map(|_| self.insn()).collect::<Result<_, _>>()?;
        Ok(Block { number, insns })
    }

    fn insn(&mut self) -> Result<Insn, ReadError> {
        let address = u64::from_le_bytes(self.array()?);
        let length = self.array::<1>()?[0];
        let mut bytes = vec![0; length.into()];
        self.from.read_exact(&mut bytes)?;
        Ok(Insn { address, bytes })
    }

    fn whole(&mut self) -> Result<Vec<u32>, ReadError> {
        let count = u32::from_le_bytes(self.array()?);
        if count > 1 << 20 {
            return Err(ReadError::Damaged("a piece of that length"));
        }
        self.fill(count as usize * 4)?;
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        let blocks: Vec<u32> = self.bytes.chunks_exact(4).map(number).collect();
        if blocks.iter().max().is_some_and(|most| *most >= self.blocks) {
            return Err(ReadError::Damaged("a block that was not told"));
        }
        Ok(blocks)
    }

    /// Reads the given number of bytes.
    fn fill(&mut self, count: usize) -> Result<(), ReadError> {
        self.bytes.resize(count, 0);
        Ok(self.from.read_exact(&mut self.bytes)?)
    }

    fn words(&mut self) -> Result<Vec<Word>, ReadError> {
        let count = u32::from_le_bytes(self.array()?) as usize;
        let mut words = Vec::new();
        let mut left = count;
        while left > 0 {
            let now = left.min(8192);
            self.fill(now * 8)?;
            for bytes in self.bytes.chunks_exact(8) {
                let word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
                let word = Word::decode(word).ok_or(ReadError::Damaged("an unknown word"))?;
                match word {
                    Word::Ran { block, .. } if block >= self.blocks => {
                        return Err(ReadError::Damaged("a block that was not told"));
                    }
                    word => words.push(word),
                }
            }
            left -= now;
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_trace_or_torn_is_said() {
        let open = |bytes: &[u8]| Reader::new(io::Cursor::new(bytes.to_vec()));
        assert!(open(b"ELF").is_err() && open(b"something else").is_err());
        let mut torn = MAGIC.to_vec();
        torn.extend([tag::WORDS, 1, 0, 0, 0, 7]);
        let error = open(&torn).unwrap().next_item().unwrap_err();
        assert!(error.to_string().contains("too early"), "{error}");
        let mut unknown = MAGIC.to_vec();
        unknown.extend([tag::WORDS, 1, 0, 0, 0]);
        unknown.extend(
            Word::Ran {
                block: 3,
                instructions: 1,
            }
            .encode()
            .to_le_bytes(),
        );
        let error = open(&unknown).unwrap().next_item().unwrap_err();
        assert!(error.to_string().contains("not told"), "{error}");
    }
}
