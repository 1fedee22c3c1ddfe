// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process that writes a run, told apart from every other before and after it.
//!
//! A process on this machine is looked at. A process elsewhere, which writes to a server, reports
//! there every few seconds that it is still alive; the server's clock tells how long ago that was.

use std::{fs, io};

/// A process. Its number alone does not identify it: numbers are reused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The process number.
    pub pid: u32,
    /// Clock ticks from boot to the process's start.
    pub start: u64,
    /// The id of the boot: every boot of every machine has another one.
    pub boot: String,
    /// The name of the machine.
    pub host: String,
}

impl Owner {
    /// The calling process.
    pub fn this() -> io::Result<Self> {
        let pid = std::process::id();
        let line = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let start = living_since(&line).ok_or_else(|| {
            io::Error::other(format!(
                "expected a start time in /proc/{pid}/stat, found {line:?}"
            ))
        })?;
        Ok(Self {
            pid,
            start,
            boot: boot_id()?,
            host: host()?,
        })
    }

    /// Returns true if the process runs, or ran, on this machine since its last boot.
    pub fn is_here(&self) -> bool {
        boot_id().is_ok_and(|boot| boot == self.boot)
    }

    /// Returns true if the process still runs. One in a container with process numbers of its own
    /// cannot be seen from outside and counts as dead there.
    pub fn is_alive(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid));
        self.is_here() && stat.is_ok_and(|stat| living_since(&stat) == Some(self.start))
    }
}

fn boot_id() -> io::Result<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(id.trim_end().into())
}

fn host() -> io::Result<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname")?;
    Ok(name.trim_end().into())
}

/// Makes an identity that no other run has, in any store.
pub fn new_uid() -> io::Result<String> {
    let uid = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    Ok(uid.trim_end().replace('-', ""))
}

/// Field 22 of `/proc/PID/stat`, the start time, unless field 3 says that the process is dead and
/// only waits to be collected. Fields are counted from the end of field 2, the program's name,
/// because that may contain anything, spaces and parentheses included.
fn living_since(stat: &str) -> Option<u64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_its_number_alone_proves_nothing() {
        let this = Owner::this().unwrap();
        assert!(this.is_alive());
        let earlier = Owner {
            start: this.start - 1,
            ..this.clone()
        };
        assert!(!earlier.is_alive(), "another process of the same number");
        let before_boot = Owner {
            boot: "another".into(),
            ..this
        };
        assert!(!before_boot.is_alive(), "a process of another boot");
    }

    #[test]
    fn a_name_like_fields_confuses_nobody_and_a_zombie_is_dead() {
        let stat = |state| {
            let rest = (4..=21).map(|n| n.to_string()).collect::<Vec<_>>();
            format!("7 (a) Z 1 (b)) {state} {} 4711 23 24", rest.join(" "))
        };
        assert_eq!(living_since(&stat("S")), Some(4711));
        assert_eq!(living_since(&stat("Z")), None);
        assert_eq!(living_since("7 (a) S 1"), None);
    }
}
