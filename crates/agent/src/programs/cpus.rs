// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs of the machine, and lists of them: `0-3,5`.

use std::fs;

use anyhow::{Context as _, Result, bail};
use punctual_model::CpuId;

/// Returns the CPUs in a list such as `0-3,5`, in ascending order.
pub fn parse(list: &str) -> Result<Vec<CpuId>> {
    let mut cpus = Vec::new();
    for part in list.trim().split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|cpu| *cpu < 1 << 16);
        let range = number(low)
            .zip(number(high))
            .filter(|(low, high)| low <= high);
        let (low, high) = range.with_context(|| format!("\"{list}\" is no list of CPUs: 0-3,5"))?;
        cpus.extend((low..=high).map(CpuId));
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// Returns the CPUs in a list, all of which this machine must have online.
pub fn online_among(list: &str) -> Result<Vec<CpuId>> {
    let online = read("online")?;
    let cpus = parse(list)?;
    if let Some(absent) = cpus.iter().find(|cpu| !online.contains(cpu)) {
        bail!("there is no {absent}; online are {}", shown(&online));
    }
    Ok(cpus)
}

/// Returns the machine's CPUs that are `online`, or `present`.
pub fn read(kind: &str) -> Result<Vec<CpuId>> {
    let path = format!("/sys/devices/system/cpu/{kind}");
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    parse(&text).with_context(|| path)
}

/// Returns the node of memory that a CPU belongs to; 0 if the kernel knows of none.
pub fn node(cpu: CpuId) -> u32 {
    let directory = fs::read_dir(format!("/sys/devices/system/cpu/{cpu}"));
    let names = directory.into_iter().flatten().flatten();
    let node = |name: &std::ffi::OsStr| name.to_str()?.strip_prefix("node")?.parse().ok();
    let mut nodes = names.filter_map(|entry| node(&entry.file_name()));
    nodes.next().unwrap_or(0)
}

fn shown(cpus: &[CpuId]) -> String {
    let numbers: Vec<String> = cpus.iter().map(|cpu| cpu.0.to_string()).collect();
    numbers.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_in_ascending_order() {
        let numbers =
            |list| parse(list).map(|cpus| cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>());
        assert_eq!(numbers("3-5,0\n").unwrap(), [0, 3, 4, 5]);
        assert_eq!(numbers("1,1").unwrap(), [1]);
        for wrong in ["", "5-3", "x", "1-", "0-4000000000"] {
            assert!(numbers(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_named() {
        let error = online_among("0,65535").unwrap_err().to_string();
        assert!(error.contains("cpu65535"), "{error}");
    }
}
