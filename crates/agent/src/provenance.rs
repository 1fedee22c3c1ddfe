//! What is judged, as read back from the running kernel, before the first sample.

use std::collections::BTreeMap;
use std::fs;

use punctual_model::record::Provenance;

use crate::sys::time;

/// Files whose content is a fact of its own, by the name of the fact.
const FACTS: &[(&str, &str)] = &[
    (
        "clocksource",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    ),
    ("cpus_online", "/sys/devices/system/cpu/online"),
    ("rt_runtime_us", "/proc/sys/kernel/sched_rt_runtime_us"),
    ("rt_period_us", "/proc/sys/kernel/sched_rt_period_us"),
    (
        "fair_server_runtime_ns",
        "/sys/kernel/debug/sched/fair_server/cpu0/runtime",
    ),
    ("tainted", "/proc/sys/kernel/tainted"),
    (
        "governor",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    ),
];

/// Reads everything back.
pub fn read() -> Provenance {
    let version = line("/proc/version").unwrap_or_else(|reason| reason);
    Provenance {
        release: line("/proc/sys/kernel/osrelease").unwrap_or_else(|reason| reason),
        preemption: preemption(&version, line("/sys/kernel/debug/sched/preempt")),
        version,
        cmdline: line("/proc/cmdline").unwrap_or_else(|reason| reason),
        facts: facts(),
    }
}

fn facts() -> BTreeMap<String, String> {
    let mut facts: BTreeMap<String, String> = FACTS
        .iter()
        .map(|(name, path)| {
            (
                (*name).to_owned(),
                line(path).unwrap_or_else(|reason| reason),
            )
        })
        .collect();
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name| cpu_field(&cpu, name).unwrap_or("unknown").to_owned();
    facts.insert("cpu".into(), field("model name"));
    facts.insert(
        "virtualised".into(),
        has_flag(&field("flags"), "hypervisor").to_string(),
    );
    facts.insert("high_resolution_timers".into(), high_resolution());
    facts.insert("memory".into(), memory());
    facts.insert("target".into(), env!("CARGO_PKG_VERSION").into());
    facts
}

/// A file's first line; where there is none, the reason.
fn line(path: &str) -> Result<String, String> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().next().unwrap_or_default().trim().to_owned()),
        Err(error) => Err(format!("unknown: {path}: {error}")),
    }
}

/// The preemption model in force.
///
/// `PREEMPT_RT` is looked for in `/proc/version`, because `/sys/kernel/realtime` exists
/// only with the out-of-tree patch. A kernel with `PREEMPT_DYNAMIC` tells the model chosen
/// at boot in debugfs, in parentheses. A kernel without either tells by `PREEMPT` in its
/// version that it is fully preemptible; `none` and `voluntary` then look the same.
fn preemption(version: &str, dynamic: Result<String, String>) -> String {
    let has = |word| {
        version
            .split(|c: char| !c.is_ascii_uppercase() && c != '_')
            .any(|w| w == word)
    };
    if has("PREEMPT_RT") {
        return "rt".into();
    }
    match dynamic {
        Ok(models) => models
            .split_whitespace()
            .find_map(|model| model.strip_prefix('(')?.strip_suffix(')'))
            .map_or_else(
                || format!("unknown: debugfs says \"{models}\""),
                str::to_owned,
            ),
        Err(reason) if has("PREEMPT_DYNAMIC") => reason,
        Err(_) if has("PREEMPT") => "full".into(),
        Err(_) => "unknown: none or voluntary, fixed when the kernel was built".into(),
    }
}

/// Whether timers end on the nanosecond or on the tick.
fn high_resolution() -> String {
    match time::resolution() {
        Ok(resolution) if resolution.0 == 1 => "active".into(),
        Ok(resolution) => format!("inactive: timers end on a tick of {resolution}"),
        Err(error) => format!("unknown: clock_getres: {error}"),
    }
}

fn memory() -> String {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    total.map_or_else(|| "unknown".into(), |size| size.trim().to_owned())
}

fn cpu_field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

fn has_flag(flags: &str, flag: &str) -> bool {
    flags.split_whitespace().any(|word| word == flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DYNAMIC: &str = "Linux version 6.12 (gcc) #1 SMP PREEMPT_DYNAMIC Debian";
    const RT: &str = "Linux version 6.12-rt (gcc) #1 SMP PREEMPT_RT Debian 6.12";

    fn missing() -> Result<String, String> {
        Err("unknown: no such file".into())
    }

    #[test]
    fn the_model_in_parentheses_is_the_one_in_force() {
        let told = |text: &str| preemption(DYNAMIC, Ok(text.into()));
        assert_eq!(told("none (voluntary) full"), "voluntary");
        assert_eq!(told("none voluntary (full) lazy"), "full");
        assert!(told("none voluntary").starts_with("unknown"));
    }

    #[test]
    fn rt_is_told_by_the_version_and_nothing_is_guessed() {
        assert_eq!(preemption(RT, missing()), "rt");
        assert!(preemption(DYNAMIC, missing()).starts_with("unknown"));
        assert_eq!(
            preemption("Linux version 5.4 #1 SMP PREEMPT Mon", missing()),
            "full"
        );
        assert!(preemption("Linux version 5.4 #1 SMP Mon", missing()).starts_with("unknown"));
    }
}
