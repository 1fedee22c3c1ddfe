// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts besides the kernel that decide how late a real machine is. They are read before the first
//! sample, and none of them is changed. A guest in virtual time has none of them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;

use punctual_model::cpus::{parse_list, show_list};
use punctual_model::{CpuId, Fact, Facts, Reason};

const CPUS: &str = "/sys/devices/system/cpu";

/// Files whose content is a fact of its own, with the fact's name.
const FACTS: [(&str, &str); 7] = [
    ("idle_driver", "cpuidle/current_driver"),
    ("idle_governor", "cpuidle/current_governor_ro"),
    ("cpus_isolated", "isolated"),
    ("cpus_without_tick", "nohz_full"),
    ("smt", "smt/control"),
    ("frequency_driver", "cpu0/cpufreq/scaling_driver"),
    ("turbo_off", "intel_pstate/no_turbo"),
];

/// The model specific register that counts system management interrupts (Intel SDM 4, table
/// 2-2, `MSR_SMI_COUNT`).
const SMI_COUNT: u64 = 0x34;

/// Returns the facts about the machine's configuration.
pub fn facts() -> Facts {
    let read = |(name, file): &(&str, &str)| {
        let fact = line(&format!("{CPUS}/{file}")).map(|text| Fact::parse(&text));
        ((*name).to_owned(), fact.into())
    };
    let mut facts: Facts = FACTS.iter().map(read).collect();
    let online = online();
    let with_cpus = |what: fn(CpuId) -> Result<Fact, Reason>| -> Fact {
        let online = online.clone();
        online.and_then(|online| by_cpus(&online, what)).into()
    };
    facts.insert("governors".into(), with_cpus(governor));
    facts.insert("idle_states".into(), with_cpus(idle_states));
    facts.insert("idle_exit_latency_us".into(), exit_latency(&online).into());
    facts.insert("machine_model".into(), model().into());
    facts
}

/// Returns the machine's maker and its name: by DMI, or by the device tree, where the text
/// ends with a zero byte.
fn model() -> Result<String, Reason> {
    let words =
        ["sys_vendor", "product_name"].map(|name| line(&format!("/sys/class/dmi/id/{name}")));
    let words = words.into_iter().collect::<Result<Vec<_>, _>>();
    words.map(|words| words.join(" ")).or_else(|absent| {
        let text = line("/proc/device-tree/model").map_err(|_| absent)?;
        Ok(text.trim_end_matches('\0').to_owned())
    })
}

fn line(path: &str) -> Result<String, Reason> {
    let text = fs::read_to_string(path).map_err(|error| Reason::unreadable(path, error))?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

fn online() -> Result<Vec<CpuId>, Reason> {
    Ok(parse_list(&line(&format!("{CPUS}/online"))?)?)
}

/// Returns one word if it is the same on all CPUs, else each word with its CPUs:
/// `performance on 0-2, powersave on 3`.
fn by_cpus(online: &[CpuId], what: fn(CpuId) -> Result<Fact, Reason>) -> Result<Fact, Reason> {
    let mut groups: Vec<(Fact, Vec<CpuId>)> = Vec::new();
    for cpu in online {
        let fact = what(*cpu)?;
        match groups.iter_mut().find(|(known, _)| *known == fact) {
            Some((_, cpus)) => cpus.push(*cpu),
            None => groups.push((fact, vec![*cpu])),
        }
    }
    if let [(only, _)] = groups.as_slice() {
        return Ok(only.clone());
    }
    let group = |(fact, cpus): &(Fact, Vec<CpuId>)| format!("{fact} on {}", show_list(cpus));
    Ok(groups
        .iter()
        .map(group)
        .collect::<Vec<_>>()
        .join(", ")
        .into())
}

fn governor(cpu: CpuId) -> Result<Fact, Reason> {
    line(&format!("{CPUS}/{cpu}/cpufreq/scaling_governor")).map(Fact::from)
}

/// Returns the idle states that a CPU may enter, shallow ones first: `POLL C1 C6`.
fn idle_states(cpu: CpuId) -> Result<Fact, Reason> {
    let names = states(cpu)?.into_iter().map(|state| state.name);
    Ok(names.collect::<Vec<_>>().join(" ").into())
}

/// Returns the longest exit latency of an idle state that any CPU may enter.
fn exit_latency(online: &Result<Vec<CpuId>, Reason>) -> Result<Fact, Reason> {
    let mut longest = 0;
    for cpu in online.clone()? {
        let latencies = states(cpu)?.into_iter().map(|state| state.exit_latency_us);
        longest = longest.max(latencies.max().unwrap_or(0));
    }
    Ok(longest.into())
}

struct IdleState {
    name: String,
    exit_latency_us: i64,
}

/// Returns the idle states that are not disabled.
fn states(cpu: CpuId) -> Result<Vec<IdleState>, Reason> {
    let directory = format!("{CPUS}/{cpu}/cpuidle");
    let entries =
        fs::read_dir(&directory).map_err(|error| Reason::unreadable(&directory, error))?;
    let mut numbers: Vec<u32> = entries
        .flatten()
        .filter_map(|entry| {
            entry
                .file_name()
                .to_str()?
                .strip_prefix("state")?
                .parse()
                .ok()
        })
        .collect();
    numbers.sort_unstable();
    let mut states = Vec::new();
    for number in numbers {
        let of = |file: &str| line(&format!("{directory}/state{number}/{file}"));
        if of("disable").is_ok_and(|disabled| disabled != "0") {
            continue;
        }
        let latency = of("latency")?;
        let is_no_number =
            |error: std::num::ParseIntError| Reason::from(format!("{latency}: {error}"));
        states.push(IdleState {
            name: of("name")?,
            exit_latency_us: latency.parse().map_err(is_no_number)?,
        });
    }
    Ok(states)
}

/// System management interrupts: they run code of the firmware, which no kernel sees, and which
/// stops all CPUs.
#[derive(Debug)]
pub struct Smis {
    before: Result<Vec<(CpuId, u64)>, Reason>,
}

impl Smis {
    /// Begins to count.
    pub fn begin() -> Self {
        Self { before: smis() }
    }

    /// Returns their number since then; if CPUs differ, that of the CPU that had most.
    pub fn so_far(&self) -> Fact {
        let counted = self.before.clone().and_then(|before| {
            let after = smis()?;
            let more = |(cpu, count): &(CpuId, u64)| {
                let now = after.iter().find(|(other, _)| other == cpu);
                now.map_or(0, |(_, now)| now.wrapping_sub(*count))
            };
            Ok(before.iter().map(more).max().unwrap_or(0))
        });
        counted.into()
    }
}

/// Returns the counter of each CPU. It has 32 bits.
fn smis() -> Result<Vec<(CpuId, u64)>, Reason> {
    let count = |cpu: CpuId| {
        let path = registers(cpu);
        let counter = File::open(&path)
            .and_then(SmiCounter::new)
            .map_err(|error| {
                let needs = "it takes root, the module msr, and an Intel CPU";
                Reason::unreadable(&path, format!("{error}: {needs}"))
            })?;
        Ok((cpu, u64::from(counter.last)))
    };
    online()?.into_iter().map(count).collect()
}

/// Returns true if the CPUs are Intel's: no others have the counter.
pub fn is_intel() -> bool {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    cpus.contains("GenuineIntel")
}

/// Returns the file with the model specific registers of a CPU.
pub fn registers(cpu: CpuId) -> String {
    format!("/dev/cpu/{}/msr", cpu.0)
}

/// Counts the system management interrupts of one CPU, by [its registers](registers).
#[derive(Debug)]
pub struct SmiCounter {
    registers: File,
    last: u32,
}

impl SmiCounter {
    /// Begins to count.
    pub fn new(registers: File) -> io::Result<Self> {
        let last = smi_count(&registers)?;
        Ok(Self { registers, last })
    }

    /// Returns the number of interrupts since the last call.
    pub fn more(&mut self) -> io::Result<u64> {
        let before = self.last;
        self.last = smi_count(&self.registers)?;
        Ok(self.last.wrapping_sub(before).into())
    }
}

/// Reads the counter, which is the register's lower half.
fn smi_count(registers: &File) -> io::Result<u32> {
    let mut bytes = [0; 8];
    registers.read_exact_at(&mut bytes, SMI_COUNT)?;
    Ok(u64::from_ne_bytes(bytes) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_cpus_agree_about_is_one_word() {
        let cpus = [0, 1, 2, 5].map(CpuId);
        let same = by_cpus(&cpus, |_| Ok("performance".into()));
        assert_eq!(same.unwrap(), "performance".into());
        let last = |cpu: CpuId| {
            Ok(if cpu.0 < 2 {
                "performance"
            } else {
                "powersave"
            }
            .into())
        };
        let expected = "performance on 0-1, powersave on 2,5";
        assert_eq!(by_cpus(&cpus, last).unwrap(), expected.into());
        let absent = by_cpus(&cpus, |_| Err(Reason::from("no cpufreq")));
        assert_eq!(absent.unwrap_err(), Reason::from("no cpufreq"));
    }

    #[test]
    fn each_fact_is_there_or_says_why_not() {
        let facts = facts();
        for name in [
            "governors",
            "idle_states",
            "idle_exit_latency_us",
            "cpus_isolated",
        ] {
            assert!(facts.contains_key(name), "{name}");
        }
    }

    #[test]
    fn smis_are_counted_or_it_is_said_why_not() {
        match Smis::begin().so_far() {
            Fact::Number(count) => assert!(count >= 0),
            Fact::Unknown { unknown } => assert!(unknown.to_string().contains("msr"), "{unknown}"),
            other => panic!("{other:?}"),
        }
    }
}
