// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages of the kernel's trace ring from `trace_pipe_raw`: events to the nanosecond,
//! where the text of `trace` only gives microseconds.
//!
//! The form is that of `events/header_page` and `events/header_event`, and of each event's
//! `format`; see `Documentation/trace/ring-buffer-map.rst` and `kernel/trace/ring_buffer.c`.

use punctual_model::Nanos;

/// Offset of the events in a page: after its moment, and the number of bytes that are used.
const EVENTS_AT: usize = 16;
/// The bits of the number of used bytes that count bytes; higher bits mean that events were lost.
const USED_MASK: u64 = 0xf_ffff;
/// The bits of it that mean lost events.
const LOST_MASK: u64 = 0xc000_0000;

/// The kinds of entries that are not events.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// The number of bits of a full time stamp that an entry holds: the upper ones are those of the
/// previous time.
const STAMP_BITS: u32 = 59;

/// The positions of an event's fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    /// The event's number, with which each of its records begins.
    pub id: u16,
    fields: Vec<(String, Field)>,
}

/// The position of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    offset: usize,
    size: usize,
    is_signed: bool,
}

impl EventFormat {
    /// Reads `events/…/format`; `None` if it has another form.
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID: "))?;
        let fields = text.lines().filter_map(field).collect();
        let id = id.trim().parse().ok()?;
        Some(Self { id, fields })
    }

    /// Returns the field of this name, if the event has it.
    pub fn field(&self, name: &str) -> Option<Field> {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map(|(_, field)| *field)
    }
}

/// Reads `field:pid_t prev_pid; offset:24; size:4; signed:1;`.
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';');
    let name = parts.next()?.rsplit([' ', '*']).next()?;
    let name = name.split('[').next()?.to_owned();
    let mut number = |key| {
        let value = parts.next()?.trim().strip_prefix(key)?;
        value.parse().ok()
    };
    let (offset, size) = (number("offset:")?, number("size:")?);
    let is_signed = number("signed:")? == 1;
    Some((
        name,
        Field {
            offset,
            size,
            is_signed,
        },
    ))
}

impl Field {
    /// Reads a number of 1 to 8 bytes; `None` if the record is too short, or the field no number.
    pub fn number(&self, record: &[u8]) -> Option<i64> {
        let bytes = record.get(self.offset..self.offset.checked_add(self.size)?)?;
        let mut word = [0; 8];
        word.get_mut(..self.size)?.copy_from_slice(bytes);
        let word = i64::from_le_bytes(word);
        let unused = 64 - 8 * u32::try_from(self.size).ok()?;
        let shifted = word.checked_shl(unused)?;
        Some(if self.is_signed {
            shifted >> unused
        } else {
            ((shifted as u64) >> unused) as i64
        })
    }

    /// Reads one of the numbers of a field that has the given number of them.
    pub fn item(&self, record: &[u8], index: usize, of: usize) -> Option<i64> {
        let size = self.size.checked_div(of)?;
        let item = Self {
            offset: self.offset.checked_add(index.checked_mul(size)?)?,
            size,
            ..*self
        };
        (index < of).then(|| item.number(record))?
    }

    /// Returns the record from the field on: all that is left, for a field without a size.
    pub fn rest<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        record.get(self.offset..)
    }

    /// Reads a text that ends with a zero, or fills the field.
    pub fn text(&self, record: &[u8]) -> Option<String> {
        let bytes = record.get(self.offset..self.offset.checked_add(self.size)?)?;
        let text = bytes.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

/// A page of the ring, read to its end.
#[derive(Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// Each event's moment and record, in the order of time.
    pub events: Vec<(Nanos, &'a [u8])>,
    /// True if events were lost before the page.
    pub has_lost: bool,
}

impl<'a> Page<'a> {
    /// Reads a page; `None` if it is damaged.
    pub fn read(page: &'a [u8]) -> Option<Self> {
        let mut time = word64(page, 0)?;
        let used = word64(page, 8)?;
        let rest = page.get(EVENTS_AT..)?;
        let mut rest = rest.get(..(used & USED_MASK) as usize)?;
        let mut events = Vec::new();
        while rest.len() >= 4 {
            let head = word32(rest, 0)?;
            let (kind, delta) = (head & 0x1f, u64::from(head >> 5));
            let extended = || Some(delta | u64::from(word32(rest, 4)?) << 27);
            let length = match kind {
                TIME_EXTEND => {
                    time = time.wrapping_add(extended()?);
                    8
                }
                TIME_STAMP => {
                    let high = time >> STAMP_BITS << STAMP_BITS;
                    time = high | (extended()? & ((1 << STAMP_BITS) - 1));
                    8
                }
                // Without a time it is the rest of the page.
                PADDING if delta == 0 => break,
                PADDING => {
                    time = time.wrapping_add(delta);
                    4 + word32(rest, 4)? as usize
                }
                0 => {
                    time = time.wrapping_add(delta);
                    let length = 4 + word32(rest, 4)? as usize;
                    events.push((moment(time)?, rest.get(8..length)?));
                    length
                }
                words => {
                    time = time.wrapping_add(delta);
                    let length = 4 + 4 * words as usize;
                    events.push((moment(time)?, rest.get(4..length)?));
                    length
                }
            };
            rest = rest.get(length.next_multiple_of(4)..)?;
        }
        let has_lost = used & LOST_MASK != 0;
        Some(Self { events, has_lost })
    }
}

fn moment(time: u64) -> Option<Nanos> {
    i64::try_from(time).ok().map(Nanos)
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(word.try_into().ok()?))
}

fn word64(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(word.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.18 prints it, shortened.
    const FORMAT: &str = "name: sched_switch\nID: 372\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:void * hrtimer;\toffset:8;\tsize:8;\tsigned:0;\n\n\
        print fmt: \"prev_comm=%s\"\n";

    #[test]
    fn fields_are_where_the_format_says() {
        let format = EventFormat::parse(FORMAT).unwrap();
        assert_eq!(format.id, 372);
        let mut record = [0; 28];
        record[8..12].copy_from_slice(b"loop");
        record[24..28].copy_from_slice(&(-7_i32).to_le_bytes());
        let field = |name| format.field(name).unwrap();
        assert_eq!(field("prev_comm").text(&record).unwrap(), "loop");
        assert_eq!(field("prev_pid").number(&record), Some(-7));
        assert_eq!(field("prev_pid").number(&record[..27]), None);
        assert_eq!(
            field("hrtimer").number(&record),
            Some(i64::from_le_bytes(*b"loop\0\0\0\0"))
        );
        assert_eq!(format.field("next_pid"), None);
        let comm = field("prev_comm");
        assert_eq!(comm.item(&record, 1, 4), Some(0));
        assert_eq!(
            comm.item(&record, 0, 4).unwrap().to_le_bytes()[..4],
            *b"loop"
        );
        assert_eq!(
            (comm.item(&record, 4, 4), comm.item(&record, 0, 0)),
            (None, None)
        );
        assert_eq!(
            field("prev_pid").rest(&record).unwrap(),
            [0xf9, 0xff, 0xff, 0xff]
        );
        assert_eq!(field("prev_pid").rest(&record[..20]), None);
    }

    fn page(used: u64, entries: &[u32]) -> Vec<u8> {
        let mut page = 1_000_u64.to_le_bytes().to_vec();
        page.extend(used.to_le_bytes());
        page.extend(entries.iter().flat_map(|word| word.to_le_bytes()));
        page.resize(4_096, 0);
        page
    }

    #[test]
    fn each_entry_moves_the_time() {
        let entries = [
            // 5 ns later, two words; then 1 << 27 and 3 ns more; then a long one of two words.
            (5 << 5) | 2,
            11,
            12,
            (3 << 5) | TIME_EXTEND,
            1,
            7 << 5,
            12,
            21,
            22,
        ];
        let bytes = page(36, &entries);
        let read = Page::read(&bytes).unwrap();
        let times: Vec<i64> = read.events.iter().map(|(at, _)| at.0).collect();
        assert_eq!(times, [1_005, 1_008 + (1 << 27) + 7]);
        assert_eq!(read.events[0].1, [11, 0, 0, 0, 12, 0, 0, 0]);
        assert_eq!(read.events[1].1, [21, 0, 0, 0, 22, 0, 0, 0]);
        assert!(!read.has_lost);
        assert!(
            Page::read(&page((1 << 31) + 36, &entries))
                .unwrap()
                .has_lost
        );
    }

    #[test]
    fn a_damaged_page_is_none() {
        assert_eq!(Page::read(&[0; 12]), None);
        assert_eq!(Page::read(&page(4_090, &[])), None);
        // An event that is longer than the page.
        assert_eq!(Page::read(&page(8, &[0, 4_096])), None);
        assert_eq!(Page::read(&page(4, &[(1 << 5) + 28])), None);
    }
}
