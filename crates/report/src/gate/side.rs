// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sides of a comparison: the kernel, its boot arguments, and the machine.

use punctual_model::Run;

use crate::matrix::distinct;

/// One side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// The subject: `debian-6.12 preempt=full`.
    pub subject: String,
    /// The kernel's release, as it was read back; empty if that is not known.
    pub release: String,
    /// The boot arguments that were asked for.
    pub boot: String,
    /// The machine: `QEMU 7.2.22, 1 CPU, 512 MiB, 1 ns per instruction`.
    pub machine: String,
    /// Its runs, in the order of their seeds.
    pub runs: Vec<String>,
    /// Their digests, cut to twelve digits; `none` for a run without one.
    pub digests: Vec<String>,
}

impl Side {
    /// Describes the runs of one subject.
    pub fn of(runs: &[&Run]) -> Self {
        let mut runs = runs.to_vec();
        runs.sort_by_key(|run| run.seed);
        let each = |told: &dyn Fn(&Run) -> String| {
            let mut words = distinct(runs.iter().map(|run| told(run)));
            words.retain(|word| !word.is_empty());
            words.join(" and ")
        };
        let release = |run: &Run| {
            let read_back = run.provenance.as_ref();
            read_back.map_or_else(String::new, |read_back| read_back.release.clone())
        };
        Self {
            subject: each(&|run| run.subject.name.clone()),
            release: each(&release),
            boot: each(&|run| run.subject.boot.clone()),
            machine: each(&machine),
            runs: runs.iter().map(|run| run.id.clone()).collect(),
            digests: runs.iter().map(|run| digest(run)).collect(),
        }
    }

    /// `debian-6.12 preempt=full: Linux 6.12.117-amd64`.
    /// Boot arguments that are not in the name stand behind it.
    pub fn told(&self) -> String {
        let boot = if self.boot.is_empty() || self.subject.ends_with(&self.boot) {
            String::new()
        } else {
            format!(" ({})", self.boot)
        };
        let release = match self.release.as_str() {
            "" => "release unknown".to_owned(),
            release => format!("Linux {release}"),
        };
        format!("{}{boot}: {release}", self.subject)
    }
}

fn digest(run: &Run) -> String {
    let digest = run.digest();
    digest.map_or_else(
        || "none".to_owned(),
        |digest| digest.chars().take(12).collect(),
    )
}

pub(crate) fn machine(run: &Run) -> String {
    let Some(machine) = run.machine.as_virtual() else {
        return format!("{}, in real time", run.subject.bench);
    };
    let cpus = match machine.cpus {
        1 => "1 CPU".to_owned(),
        cpus => format!("{cpus} CPUs"),
    };
    let clock = run
        .clock()
        .map_or_else(String::new, |clock| clock.to_string());
    let qemu = machine.qemu.replace("emulator version ", "");
    format!("{qemu}, {cpus}, {} MiB, {clock}", machine.memory_mib)
}

/// Lists differences between the runs that do not make them another measurement.
pub(super) fn notes(runs: &[&Run]) -> Vec<String> {
    type Version = fn(&Run) -> Option<&str>;
    let kinds: [(Version, &str); 2] = [
        (
            |run| run.machine.as_virtual().map(|machine| &*machine.qemu),
            "QEMU",
        ),
        (|run| Some(&run.punctual), "Punctual"),
    ];
    let mut notes = Vec::new();
    for (version, what) in kinds {
        let versions = distinct(runs.iter().filter_map(|run| version(run)));
        if versions.len() > 1 {
            let versions = versions.join("; ");
            notes.push(format!(
                "Measured with different versions of {what}: {versions}."
            ));
        }
    }
    let missed = |run: &&&Run| run.recordings.iter().map(|one| one.missed).sum::<u64>();
    let missed: Vec<String> = runs
        .iter()
        .filter(|run| missed(run) > 0)
        .map(|run| format!("{} in {}", missed(&run), run.id))
        .collect();
    if !missed.is_empty() {
        notes.push(format!("Missed periods: {}.", missed.join(", ")));
    }
    notes
}
