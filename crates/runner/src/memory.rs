// SPDX-License-Identifier: MIT OR Apache-2.0
//! This machine's memory, and the number of guests for which it has room.

/// The memory that a guest takes besides its own, in mebibytes: QEMU and its recording.
pub const BESIDE_GUEST_MIB: u32 = 128;

/// The number of guests of this size, in mebibytes, that fit side by side; at least one.
pub fn guests(memory_mib: u32, available_mib: u64) -> usize {
    let each = u64::from(memory_mib + BESIDE_GUEST_MIB);
    usize::try_from(available_mib / each).unwrap_or(1).max(1)
}

/// The available memory, in mebibytes; `None` if the kernel does not report it.
pub fn available_mib() -> Option<u64> {
    of_meminfo("MemAvailable:")
}

/// The total memory, in mebibytes; `None` if the kernel does not report it.
pub fn total_mib() -> Option<u64> {
    of_meminfo("MemTotal:")
}

/// A value of `/proc/meminfo`, in mebibytes.
fn of_meminfo(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let found = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = found.split_whitespace().next()?.parse().ok()?;
    Some(kib / 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_guests_as_memory_has_room_for_and_one_at_least() {
        assert_eq!(guests(512, 2_000), 3);
        assert_eq!(guests(512, 100), 1);
        assert_eq!(guests(16, 144_000), 1_000);
    }
}
