// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's console output: kept whole, and searched for signs of the end.

/// Texts that a kernel prints when it can no longer be relied on, with their meanings.
/// The strings are those of Linux 5.10 to 7.2 (`kernel/panic.c`, `kernel/watchdog.c`,
/// `kernel/rcu/tree_stall.h`, `kernel/hung_task.c`, `arch/x86/kernel/dumpstack.c`,
/// `arch/x86/mm/fault.c`, `arch/x86/kernel/traps.c`, `arch/arm64/kernel/traps.c`, `lib/bug.c`,
/// `mm/page_alloc.c`, `mm/kasan/report.c`, `mm/kfence/report.c`,
/// `kernel/locking/spinlock_debug.c`).
const MARKERS: &[(&str, &str)] = &[
    // The kernel panics for it: `Kernel panic - not syncing: System is deadlocked on memory`.
    ("System is deadlocked on memory", MEMORY),
    ("Out of memory: Killed process", MEMORY),
    ("Kernel panic - not syncing", "the kernel has panicked"),
    ("Internal error: Oops", "the kernel has had an oops"),
    ("Oops: ", "the kernel has had an oops"),
    ("BUG: unable to handle", "the kernel has had an oops"),
    // Of a process in user space the kernel says `traps: prog[12] general protection fault ip:…`.
    ("general protection fault, ", "the kernel has had an oops"),
    ("general protection fault: ", "the kernel has had an oops"),
    ("kernel BUG at", "the kernel has found a bug in itself"),
    // The first fault of each kernel, whatever it is: `divide error: 0000 [#1]`,
    // `Internal error: synchronous external abort: 0000000096000410 [#1]`.
    (" [#1]", "the kernel has had an oops"),
    ("BUG: soft lockup", "the kernel has locked up"),
    ("BUG: workqueue lockup", "the kernel has locked up"),
    ("watchdog: BUG:", "the kernel has locked up"),
    // `NMI watchdog: `, since 6.5 `watchdog: `, or `watchdog: CPU3: ` stands before it.
    ("Watchdog detected hard LOCKUP", "the kernel has locked up"),
    ("rcu_sched self-detected stall", "the kernel has stalled"),
    ("rcu_preempt self-detected stall", "the kernel has stalled"),
    ("rcu: INFO: rcu_", "the kernel has stalled"),
    ("blocked for more than", "a task of the guest hangs"),
    (
        "blocked in I/O wait for more than",
        "a task of the guest hangs",
    ),
    ("BUG: KASAN: ", "the kernel has found a bug in itself"),
    ("BUG: KFENCE: ", "the kernel has found a bug in itself"),
    ("BUG: Bad page ", "the kernel has found a bug in itself"),
    ("BUG: spinlock ", "the kernel has found a bug in itself"),
    (
        "BUG: scheduling while atomic",
        "the kernel has found a bug in itself",
    ),
    (
        "BUG: sleeping function called",
        "the kernel has found a bug in itself",
    ),
    (
        HALTED,
        "the kernel could not be unpacked or started, and has halted",
    ),
    (
        "Initramfs unpacking failed",
        "the guest cannot unpack its initramfs: has it enough memory?",
    ),
];

/// The meaning of every text that says that memory ran out.
const MEMORY: &str = "the guest has too little memory: --memory gives it more";

/// The last output of an x86 kernel's decompressor, without a line end
/// (`arch/x86/boot/compressed/error.c`).
const HALTED: &str = "-- System halted";

/// The number of last bytes in which [`HALTED`] is looked for: a line may have any length.
const HALTED_WITHIN: usize = 200;

/// The number of console lines that an error shows.
const TAIL_LINES: usize = 12;

/// The console so far.
#[derive(Debug, Default)]
pub struct Console {
    bytes: Vec<u8>,
    /// The end of the part already searched: always the beginning of a line.
    searched: usize,
}

impl Console {
    /// Takes what the guest has printed since the last call.
    pub fn feed(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
    }

    /// Returns true if a kernel has got as far as printing its name.
    pub fn has_kernel_spoken(&self) -> bool {
        self.text().contains("Linux version")
    }

    /// The whole output, as it came.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Searches the whole lines that have not been searched yet; returns the meaning of the first
    /// sign of the end.
    pub fn sign(&mut self) -> Option<&'static str> {
        let new = &self.bytes[self.searched..];
        let whole = new
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let text = String::from_utf8_lossy(&new[..whole]).into_owned();
        let rest = &new[whole..];
        let rest = &rest[rest.len().saturating_sub(HALTED_WITHIN)..];
        let rest = String::from_utf8_lossy(rest).into_owned();
        self.searched += whole;
        let halted = || meaning(&rest).filter(|_| rest.contains(HALTED));
        text.lines().find_map(meaning).or_else(halted)
    }

    /// The whole output, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).replace('\r', "")
    }
}

fn meaning(line: &str) -> Option<&'static str> {
    let (_, meaning) = MARKERS.iter().find(|(marker, _)| line.contains(marker))?;
    Some(meaning)
}

/// The last lines of a console, indented, for an error. If the beginning of the trouble can be
/// seen, the lines start there.
pub fn tail(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    if lines.is_empty() {
        return "\n  (the console is empty)".into();
    }
    let end = lines.len();
    let trouble = lines.iter().position(|line| meaning(line).is_some());
    // One line before it often says what was done.
    let start = trouble.map_or(end.saturating_sub(TAIL_LINES), |at| at.saturating_sub(2));
    let shown = &lines[start..end.min(start + TAIL_LINES)];
    format!("\n  | {}", shown.join("\n  | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_seen_once_its_line_is_whole() {
        let mut console = Console::default();
        console.feed(b"[    0.1] fine\r\n[    0.2] Kernel panic - not");
        assert_eq!(console.sign(), None);
        console.feed(b" syncing: VFS\r\n");
        assert_eq!(console.sign(), Some("the kernel has panicked"));
        assert_eq!(console.sign(), None);
        assert_eq!(console.text().lines().count(), 2);
    }

    #[test]
    fn a_guest_without_memory_is_told_to_need_more() {
        for line in [
            "[    8.8] Kernel panic - not syncing: System is deadlocked on memory\n",
            "[    5.1] Out of memory: Killed process 187 (eat) total-vm:422920kB\n",
        ] {
            let mut console = Console::default();
            console.feed(line.as_bytes());
            let sign = console.sign().expect("a sign");
            assert!(sign.contains("--memory"), "{sign}");
        }
    }

    #[test]
    fn a_fault_of_a_process_is_none_of_the_kernel() {
        let mut console = Console::default();
        let process = "[    3.1] traps: prog[12] general protection fault ip:401136 \
            sp:7ffd0f5e2c10 error:0 in prog[401000+1000]\n";
        console.feed(process.as_bytes());
        assert_eq!(console.sign(), None);
        for kernel in [
            "[    3.2] general protection fault: 0000 [#1] SMP PTI\n",
            "[    3.2] general protection fault, probably for non-canonical address 0x6b6b: \
                0000 [#1] PREEMPT SMP\n",
        ] {
            console.feed(kernel.as_bytes());
            assert_eq!(
                console.sign(),
                Some("the kernel has had an oops"),
                "{kernel}"
            );
        }
    }

    #[test]
    fn faults_lockups_and_bugs_of_any_wording_are_seen() {
        for (line, expected) in [
            ("divide error: 0000 [#1] PREEMPT SMP PTI", "an oops"),
            (
                "Internal error: synchronous external abort: 0000000096000410 [#1] PREEMPT_RT SMP",
                "an oops",
            ),
            (
                "NMI watchdog: Watchdog detected hard LOCKUP on cpu 1",
                "locked up",
            ),
            (
                "watchdog: Watchdog detected hard LOCKUP on cpu 1",
                "locked up",
            ),
            (
                "watchdog: CPU0: Watchdog detected hard LOCKUP on cpu 1",
                "locked up",
            ),
            (
                "INFO: task dd:77 blocked for more than 122 seconds.",
                "a task",
            ),
            (
                "INFO: task dd:77 blocked in I/O wait for more than 122 seconds.",
                "a task",
            ),
            ("BUG: KASAN: use-after-free in own_read+0x8/0x20", "a bug"),
            ("BUG: KFENCE: memory corruption in own+0x8/0x20", "a bug"),
            ("BUG: Bad page state in process dd  pfn:01a2b", "a bug"),
            ("BUG: spinlock bad magic on CPU#0, dd/77", "a bug"),
        ] {
            let mut console = Console::default();
            console.feed(format!("[    3.1] {line}\r\n").as_bytes());
            let sign = console.sign().unwrap_or_default();
            assert!(sign.contains(expected), "{line}: {sign}");
        }
    }

    #[test]
    fn a_kernel_that_cannot_be_unpacked_has_halted_without_an_end_of_its_line() {
        let mut console = Console::default();
        console.feed(b"\r\nXZ-compressed data is corrupt\r\n\r\n -- System halt");
        assert_eq!(console.sign(), None);
        console.feed(b"ed");
        assert!(console.sign().is_some_and(|sign| sign.contains("halted")));
    }

    #[test]
    fn an_ordinary_boot_shows_no_sign() {
        // Lines of a real boot that contain words of markers.
        let boot = "\
            rcu: Preemptible hierarchical RCU implementation.\n\
            Spectre V2 : Mitigation: Retpolines\n\
            NMI watchdog: Perf NMI watchdog permanently disabled\n\
            debug_vm_pgtable: [debug_vm_pgtable         ]: Validating\n\
            Run /init as init process\n";
        let mut console = Console::default();
        console.feed(boot.as_bytes());
        assert_eq!(console.sign(), None);
    }

    #[test]
    fn the_tail_begins_where_the_trouble_does() {
        let lines = |word| (0..30).map(move |number| format!("{word} {number}\n"));
        let mut text: String = lines("line").collect();
        assert!(tail(&text).starts_with("\n  | line 18\n"));
        assert!(tail(&text).ends_with("| line 29"));
        text += "Kernel panic - not syncing: no init\n";
        text.extend(lines("trace"));
        let tail = tail(&text);
        assert!(tail.starts_with("\n  | line 28\n"), "{tail}");
        assert!(
            tail.contains("no init") && tail.ends_with("trace 8"),
            "{tail}"
        );
        assert!(super::tail("\n").contains("empty"));
    }
}
