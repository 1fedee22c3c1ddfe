// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the scope's plugin writes.

use punctual_trace::{Reader, Word};

use crate::Target;

/// A trace.
pub const TRACE: Target = Target {
    name: "trace",
    seeds: || vec![trace()],
    run: |bytes| {
        let Ok(mut reader) = Reader::new(bytes) else {
            return false;
        };
        loop {
            match reader.next_item() {
                Ok(Some(item)) => drop(std::hint::black_box(item)),
                ended => return ended.is_ok(),
            }
        }
    },
};

/// A block of two instructions, a window, words, whole blocks, the end.
fn trace() -> Vec<u8> {
    let mut bytes = b"PNCTRC1\nB".to_vec();
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(2_u16.to_le_bytes());
    for (address, code) in [(0xffff_ffff_8100_0000_u64, &b"\x90"[..]), (1, b"\xfa\xc3")] {
        bytes.extend(address.to_le_bytes());
        bytes.push(code.len() as u8);
        bytes.extend(code);
    }
    bytes.push(b'W');
    bytes.extend(3_u32.to_le_bytes());
    bytes.extend(7_u64.to_le_bytes());
    bytes.extend(0_u64.to_le_bytes());
    bytes.push(b'X');
    bytes.extend(2_u32.to_le_bytes());
    for instructions in 1..=2 {
        let word = Word::Ran {
            block: 0,
            instructions,
        };
        bytes.extend(word.encode().to_le_bytes());
    }
    bytes.push(b'R');
    bytes.extend(2_u32.to_le_bytes());
    bytes.extend([0; 8]);
    bytes.push(b'E');
    bytes
}
