// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest kernel's own names for its code, from its `/proc/kallsyms`.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::io::Read as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use flate2::read::GzDecoder;
use punctual_model::Architecture;

use crate::arch::Code;

/// A name for an address and all addresses after it, up to the next name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The address at which it begins.
    pub address: u64,
    /// The name.
    pub name: String,
    /// The module to which it belongs; `None` for the kernel itself.
    pub module: Option<String>,
}

/// The names of a kernel's code.
#[derive(Clone, Debug)]
pub struct Symbols {
    code: &'static Code,
    /// Symbols by address. Of several names for one address, the first global one that is not
    /// [`EARLY`].
    text: Vec<Symbol>,
    by_name: HashMap<String, usize>,
    /// Offsets of variables within each CPU's own area.
    per_cpu: HashMap<String, u64>,
    /// The registers into which the code of each name takes the place of the preemption count, by
    /// the kernel's file.
    pointers: HashMap<usize, u64>,
    /// The offset of the count from that place, by the same file.
    count_place: Option<u64>,
    /// The addresses at which it saves the interrupt mask, by the same file.
    saves: HashSet<u64>,
}

/// The prefix of the second name that some functions have in Linux 7.2, not yet in 6.12. Among them
/// are `memcpy` and the retpolines, which code that runs early calls by it.
const EARLY: &str = "__pi_";

/// The name of the address at which the kernel's file begins in memory; and that of its code, less
/// than [`ALIGNED`] bytes after it, for kernels such as Linux 6.1 in which the former is no name of
/// code.
const FIRST: &str = "_text";
const CODE: &str = "_stext";
const ALIGNED: u64 = 2 << 20;

/// The limit of an unpacked text, in bytes: more than the names of any kernel.
const TEXT_MAX: u64 = 64 << 20;

/// Unpacks the output of `gzip | base64`; an error if the text is none.
pub fn unpacked(packed: &str) -> Result<String, String> {
    let damaged = |error: &dyn Display| format!("their list is damaged on its way: {error}");
    let packed = STANDARD.decode(packed.trim());
    let packed = packed.map_err(|error| damaged(&error))?;
    let mut text = String::new();
    let mut reader = GzDecoder::new(packed.as_slice()).take(TEXT_MAX);
    let read = reader.read_to_string(&mut text);
    read.map_err(|error| damaged(&error))?;
    if reader.limit() == 0 {
        return Err(format!("their list is longer than {TEXT_MAX} bytes"));
    }
    Ok(text)
}

impl Symbols {
    /// Reads the text of `/proc/kallsyms` of a kernel of this architecture; an error if it holds
    /// nothing of use.
    pub fn parse(architecture: Architecture, text: &str) -> Result<Self, String> {
        let mut symbols = Self {
            code: Code::of(architecture),
            text: Vec::new(),
            by_name: HashMap::new(),
            per_cpu: HashMap::new(),
            pointers: HashMap::new(),
            count_place: None,
            saves: HashSet::new(),
        };
        let mut found: Vec<(Symbol, bool)> = Vec::new();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let three = (words.next(), words.next(), words.next());
            let (Some(address), Some(kind), Some(name)) = three else {
                continue;
            };
            let unreadable = |_| format!("expected a line of /proc/kallsyms, found \"{line}\"");
            let address = u64::from_str_radix(address, 16).map_err(unreadable)?;
            if symbols.code.variables.contains(&name) {
                symbols.per_cpu.insert(name.to_owned(), address);
            } else if matches!(kind, "t" | "T" | "w" | "W") {
                let module = words.next().map(|word| word.trim_matches(['[', ']']));
                let symbol = Symbol {
                    address,
                    name: name.to_owned(),
                    module: module.map(str::to_owned),
                };
                found.push((symbol, kind == "T"));
            }
        }
        if found.iter().all(|(symbol, _)| symbol.address == 0) {
            return Err("the guest's /proc/kallsyms shows no addresses".to_owned());
        }
        let rank = |name: &str, is_global: bool| (name.starts_with(EARLY), !is_global);
        found.sort_by_key(|(symbol, is_global)| (symbol.address, rank(&symbol.name, *is_global)));
        found.dedup_by_key(|(symbol, _)| symbol.address);
        symbols.text = found.into_iter().map(|(symbol, _)| symbol).collect();
        let names = symbols.text.iter().map(|symbol| symbol.name.clone());
        symbols.by_name = names.zip(0..).collect();
        Ok(symbols)
    }

    /// Learns from the kernel's file what its code tells before any of it runs: what threads did
    /// before they were watched.
    pub(crate) fn learn(&mut self, image: &[u8]) {
        self.count_place = (self.code.count_place)(image);
        let named = |name: &str| self.by_name.get(name).map(|at| self.text[*at].address);
        let first = named(FIRST).or_else(|| Some(named(CODE)? & !(ALIGNED - 1)));
        let Some(first) = first else { return };
        let saves = (self.code.saves)(image).into_iter();
        self.saves = saves.map(|behind| first + behind).collect();
        for (behind, register) in (self.code.pointers)(image) {
            if let Some(number) = self.number(first + behind) {
                *self.pointers.entry(number).or_default() |= 1 << register;
            }
        }
    }

    /// Returns the registers into which the function at an address takes the place of the
    /// preemption count, as far as the kernel's file tells: a bit for each.
    pub(crate) fn pointers(&self, address: u64) -> u64 {
        let number = self.number(address);
        let found = number.and_then(|number| self.pointers.get(&number));
        found.copied().unwrap_or_default()
    }

    /// Returns the offset of the count from that place, as far as the kernel's file tells.
    pub(crate) fn count_place(&self) -> Option<u64> {
        self.count_place
    }

    /// Returns true if its file shows any place for which [`Self::saves`] is true.
    pub(crate) fn saves_any(&self) -> bool {
        !self.saves.is_empty()
    }

    /// Returns true if the interrupt mask is read at an address to have it restored in any case, as
    /// far as the kernel's file tells.
    pub(crate) fn saves(&self, address: u64) -> bool {
        self.saves.contains(&address)
    }

    fn number(&self, address: u64) -> Option<usize> {
        let next = self
            .text
            .partition_point(|symbol| symbol.address <= address);
        next.checked_sub(1)
    }

    /// Returns the name that covers an address of the kernel, and the distance of the address from
    /// it.
    pub fn at(&self, address: u64) -> Option<(&Symbol, u64)> {
        let number = self.number(address)?;
        let (symbol, next) = (&self.text[number], self.text.get(number + 1));
        let behind = address - symbol.address;
        let is_last = next.is_none_or(|next| next.module != symbol.module);
        (!is_last || behind < LAST).then_some((symbol, behind))
    }

    /// Returns the range of the code with this name.
    pub fn range(&self, name: &str) -> Option<(u64, u64)> {
        let at = *self.by_name.get(name)?;
        let end = self.text.get(at + 1)?.address;
        Some((self.text[at].address, end))
    }

    /// Returns the offset of a variable within each CPU's own area.
    pub(crate) fn variable(&self, name: &str) -> Option<u64> {
        self.per_cpu.get(name).copied()
    }

    /// Returns the architecture's own code.
    pub(crate) fn code(&self) -> &'static Code {
        self.code
    }
}

/// The most bytes that the last name of the kernel, or of a module, covers. Code that is made at run
/// time, such as that of BPF, lies behind them and has no name.
const LAST: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    const TEXT: &str = "\
0000000000034e80 A pcpu_hot
ffffffff81000000 T _stext
ffffffff81000000 t alias
ffffffff81001000 t first
ffffffff81002000 T __pi_second
ffffffff81002000 t second
ffffffff82000000 D data
ffffffffc0000000 t stall_run\t[stall]
";

    fn packed(text: &[u8]) -> String {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        STANDARD.encode(encoder.finish().unwrap())
    }

    #[test]
    fn a_packed_text_is_unpacked_and_a_damaged_or_endless_one_is_refused() {
        let whole = packed(TEXT.as_bytes());
        assert_eq!(unpacked(&format!("{whole}\n")).unwrap(), TEXT);
        let damaged = [&whole[..whole.len() - 8], &whole[4..], "grep: no", "", "A"];
        for damaged in damaged {
            assert!(unpacked(damaged).unwrap_err().contains("damaged"));
        }
        let endless = packed(&vec![b'a'; TEXT_MAX as usize + 1]);
        assert!(unpacked(&endless).unwrap_err().contains("longer"));
    }

    #[test]
    fn an_address_has_the_name_before_it() {
        let symbols = Symbols::parse(Architecture::Amd64, TEXT).unwrap();
        let name = |address| {
            let (symbol, behind) = symbols.at(address)?;
            Some((symbol.name.as_str(), behind))
        };
        assert_eq!(name(0xffff_ffff_8100_0000), Some(("_stext", 0)));
        assert_eq!(name(0xffff_ffff_8100_1abc), Some(("first", 0xabc)));
        assert_eq!(name(0xffff_ffff_8100_2000), Some(("second", 0)));
        assert_eq!(name(0x40_0000), None);
        let (symbol, _) = symbols.at(0xffff_ffff_c000_0010).unwrap();
        assert_eq!(symbol.module.as_deref(), Some("stall"));
        let range = (0xffff_ffff_8100_1000, 0xffff_ffff_8100_2000);
        assert_eq!(symbols.range("first"), Some(range));
        assert_eq!(symbols.variable("pcpu_hot"), Some(0x34e80));
    }

    #[test]
    fn a_list_without_addresses_is_refused() {
        let hidden = "0000000000000000 T _stext\n0000000000000000 t first\n";
        assert!(
            Symbols::parse(Architecture::Amd64, hidden)
                .unwrap_err()
                .contains("no addresses")
        );
        assert!(Symbols::parse(Architecture::Amd64, "what is this").is_err());
    }
}
