// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `footprint`: the amount of memory that the kernel itself takes.
//!
//! It reads and takes no samples: its findings are in bytes, and samples are times. Only the bench
//! can tell how large the image file is.

use std::fmt::Write as _;
use std::fs;

use punctual_model::probe::{FindingView, Form, ProbeInfo, Shape, View};
use punctual_model::{Finding, Findings, Nanos, Reason, Recorder, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Measurement, Probe, parameters};

/// This probe.
pub const PROBE: Probe = Probe {
    name: "footprint",
    summary: "the memory that the kernel takes: text, data, modules, in use after boot",
    parse: |table| parameters::<Footprint>(table, |_| Ok(())),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View {
        shape: Shape::Findings,
        spoken: "",
        findings: &[
            FindingView::new("kernel_text_bytes", "text", Form::Plain),
            FindingView::new("kernel_rodata_bytes", "rodata", Form::Plain),
            FindingView::new("kernel_data_bytes", "data", Form::Plain),
            FindingView::new("kernel_bss_bytes", "bss", Form::Plain),
            FindingView::new("modules_bytes", "modules", Form::Plain),
            FindingView::new("memory_in_use_bytes", "memory in use", Form::Plain),
        ],
    },
    scope: Err("has no samples of the time between two moments"),
};

/// Values that are taken over from `/proc/meminfo`, each with its new name.
const MEMINFO: &[(&str, &str)] = &[
    ("MemTotal", "memory_total"),
    ("MemFree", "memory_free"),
    ("MemAvailable", "memory_available"),
    ("Slab", "slab"),
    ("KernelStack", "kernel_stacks"),
    ("PageTables", "page_tables"),
    ("Percpu", "per_cpu"),
    ("Cached", "page_cache"),
];

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Footprint {}

impl Measurement for Footprint {
    fn nominal(&self) -> Nanos {
        Nanos::ZERO
    }

    fn run(&self, _: &mut Context) -> Result<Vec<Recording>, Reason> {
        let read = |path| fs::read_to_string(path).map_err(|error| Reason::unreadable(path, error));
        let mut figures = Vec::new();
        match read("/proc/iomem").and_then(|text| image(&text)) {
            Ok(image) => figures.extend(image),
            Err(reason) => figures.push(("kernel_text", Err(reason))),
        }
        match read("/proc/modules") {
            Ok(text) => figures.extend(modules(&text)),
            // A kernel that cannot load modules has no such file.
            Err(reason) => figures.push(("modules", Err(reason))),
        }
        figures.extend(memory(&read("/proc/meminfo")?, &read("/proc/self/status")?));
        let mut recording = Recorder::new(0).finish(RecordingKey::of_variant(""));
        recording.output = Some(lines(&figures));
        recording.findings = findings(figures);
        Ok(vec![recording])
    }
}

/// A size in bytes, or the reason why it is not known.
type Figure = (&'static str, Result<u64, Reason>);

/// Returns the parts of the kernel's image as they lie in memory, and the total memory.
fn image(iomem: &str) -> Result<Vec<Figure>, Reason> {
    let total = |name: &str| {
        let named = iomem.lines().filter_map(|line| line.split_once(" : "));
        let sizes = named
            .filter(|(_, found)| *found == name)
            .filter_map(|(range, _)| size(range));
        // On arm64 rodata is told as part of the code, and bss of the data.
        let absent = || Reason::unreadable("/proc/iomem", format!("no \"{name}\" of its own"));
        sizes.reduce(|sum, size| sum + size).ok_or_else(absent)
    };
    let text = total("Kernel code")?;
    if text <= 1 {
        return Err(Reason::unreadable(
            "/proc/iomem",
            "its addresses are shown to root only",
        ));
    }
    Ok(vec![
        ("kernel_text", Ok(text)),
        ("kernel_rodata", total("Kernel rodata")),
        ("kernel_data", total("Kernel data")),
        ("kernel_bss", total("Kernel bss")),
        ("system_ram", total("System RAM")),
    ])
}

/// Returns the size of a range `  01000000-01ffffff`, both ends included.
fn size(range: &str) -> Option<u64> {
    let (first, last) = range.trim().split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(number(last)?.checked_sub(number(first)?)? + 1)
}

fn modules(proc_modules: &str) -> Vec<Figure> {
    let sizes = proc_modules.lines().filter_map(|line| {
        let size = line.split_whitespace().nth(1)?;
        size.parse::<u64>().ok()
    });
    vec![
        ("modules", Ok(sizes.sum())),
        ("modules_loaded", Ok(proc_modules.lines().count() as u64)),
    ]
}

/// Returns the memory in use, and the part of it that belongs to this program.
fn memory(meminfo: &str, status: &str) -> Vec<Figure> {
    let mut figures: Vec<Figure> = MEMINFO
        .iter()
        .map(|(key, name)| (*name, kibibytes(meminfo, key)))
        .collect();
    let used = match (
        kibibytes(meminfo, "MemTotal"),
        kibibytes(meminfo, "MemFree"),
    ) {
        (Ok(total), Ok(free)) => Ok(total - free),
        (Err(reason), _) | (_, Err(reason)) => Err(reason),
    };
    figures.push(("memory_in_use", used));
    figures.push(("memory_in_use_by_target", kibibytes(status, "VmRSS")));
    figures
}

/// Returns the value of a line such as `MemTotal:  251820 kB`, in bytes.
fn kibibytes(text: &str, key: &str) -> Result<u64, Reason> {
    let value = text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found == key).then_some(value)
    });
    let number = value.and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok());
    let absent = || Reason::from(format!("this kernel does not tell {key}"));
    number.map(|kibibytes| kibibytes * 1024).ok_or_else(absent)
}

fn lines(figures: &[Figure]) -> String {
    let mut text = String::new();
    for (name, value) in figures {
        let _ = match value {
            Ok(bytes) => writeln!(text, "{name:<24} {bytes:>12}"),
            Err(reason) => writeln!(text, "{name:<24} unknown: {reason}"),
        };
    }
    text
}

fn findings(figures: Vec<Figure>) -> Findings {
    let finding = |(name, value): Figure| match name {
        "modules_loaded" => (
            name.to_owned(),
            value.map_or_else(Finding::Absent, Finding::Count),
        ),
        _ => (format!("{name}_bytes"), Finding::bytes(value)),
    };
    figures.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IOMEM: &str = "00000000-00000fff : Reserved\n00001000-0009fbff : System RAM\n\
        00100000-0ffdffff : System RAM\n  01000000-01ffffff : Kernel code\n  \
        02000000-02b70fff : Kernel rodata\n  02c00000-02e70f7f : Kernel data\n  \
        03736000-03bfffff : Kernel bss\n";

    fn value(figures: &[Figure], name: &str) -> Result<u64, Reason> {
        let found = figures.iter().find(|(found, _)| *found == name);
        found.unwrap().1.clone()
    }

    #[test]
    fn the_image_is_measured_where_it_lies() {
        let figures = image(IOMEM).unwrap();
        assert_eq!(value(&figures, "kernel_text"), Ok(16 << 20));
        assert_eq!(value(&figures, "kernel_bss"), Ok(0x4c_a000));
        assert_eq!(value(&figures, "system_ram"), Ok(0x9_ec00 + 0xfee_0000));
    }

    #[test]
    fn what_is_not_told_apart_is_unknown() {
        let arm64 = "40000000-4fffffff : System RAM\n  40200000-41ebffff : Kernel code\n  \
            42820000-42d0ffff : Kernel data\n";
        let figures = image(arm64).unwrap();
        assert_eq!(value(&figures, "kernel_data"), Ok(0x4f_0000));
        for part in ["kernel_rodata", "kernel_bss"] {
            assert!(value(&figures, part).is_err(), "{part}");
        }
        assert!(image("").is_err());
    }

    #[test]
    fn hidden_addresses_are_no_size() {
        let hidden = "00000000-00000000 : System RAM\n  00000000-00000000 : Kernel code\n";
        assert!(image(hidden).unwrap_err().to_string().contains("root"));
    }

    #[test]
    fn modules_are_added_up() {
        let two = modules("ext4 1000000 1 - Live 0x0\njbd2 200000 1 ext4, Live 0x0\n");
        assert_eq!(value(&two, "modules"), Ok(1_200_000));
        assert_eq!(value(&two, "modules_loaded"), Ok(2));
        assert_eq!(value(&modules(""), "modules"), Ok(0));
    }

    #[test]
    fn what_a_kernel_does_not_tell_is_unknown_and_not_zero() {
        let figures = memory("MemTotal:  1000 kB\nMemFree:   400 kB\n", "VmRSS:\t 8 kB\n");
        assert_eq!(value(&figures, "memory_in_use"), Ok(600 * 1024));
        assert_eq!(value(&figures, "memory_in_use_by_target"), Ok(8 * 1024));
        assert!(value(&figures, "slab").is_err());
        let found = findings(figures);
        assert!(matches!(found["slab_bytes"], Finding::Absent(_)));
        assert_eq!(found["memory_total_bytes"], Finding::Bytes(1_024_000));
    }
}
