// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts about the subject, as read back from the running kernel before the first sample.

use std::fs;
use std::path::Path;

use punctual_model::record::{Preemption, Provenance};
use punctual_model::{Fact, Facts, Reason};

use crate::sys::{time, tsc};
use crate::virtualised;

/// Files whose content is a fact of its own, with the fact's name.
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

/// Reads all facts back.
pub fn read() -> Provenance {
    let version = shown("/proc/version");
    let (release, cmdline) = (shown("/proc/sys/kernel/osrelease"), shown("/proc/cmdline"));
    let dynamic = line("/sys/kernel/debug/sched/preempt").map_err(|locked| {
        let config = fs::read_to_string(format!("/boot/config-{release}")).unwrap_or_default();
        match as_booted(&cmdline, &config) {
            Some(model) => format!("{model} as booted; {locked}").into(),
            None => locked,
        }
    });
    Provenance {
        release,
        preemption: preemption(&version, dynamic),
        version,
        cmdline,
        tsc_khz: tsc::khz(),
        facts: facts(),
    }
}

fn facts() -> Facts {
    let read = |(name, path): &(&str, &str)| {
        let fact = line(path).map(|text| Fact::parse(&text));
        ((*name).to_owned(), fact.into())
    };
    let mut facts: Facts = FACTS.iter().map(read).collect();
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name| {
        let absent = || Reason::unreadable("/proc/cpuinfo", format!("no \"{name}\""));
        cpu_field(&cpu, name).ok_or_else(absent)
    };
    let model = field("model name").map(str::to_owned);
    let model = model.or_else(|absent| arm_model(&cpu).ok_or(absent));
    #[cfg(target_arch = "riscv64")]
    let model = model.or_else(|absent| riscv_model(&cpu).ok_or(absent));
    facts.insert("cpu".into(), model.into());
    let virtualised = virtualised::found(&cpu, Path::new("/"));
    facts.insert("virtualised".into(), virtualised.into());
    facts.insert("high_resolution_timers".into(), high_resolution());
    facts.insert("memory_kib".into(), memory_kib().into());
    facts.insert("target".into(), env!("CARGO_PKG_VERSION").into());
    facts
}

/// Returns a file's first line, or the reason why there is none.
fn line(path: &str) -> Result<String, Reason> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().next().unwrap_or_default().trim().to_owned()),
        Err(error) => Err(Reason::unreadable(path, error)),
    }
}

/// Returns a file's first line; if there is none, says that it is not known, and why.
fn shown(path: &str) -> String {
    Fact::from(line(path)).to_string()
}

/// Returns the preemption model in force.
///
/// `PREEMPT_RT` is looked for in `/proc/version`, because `/sys/kernel/realtime` exists
/// only with the out-of-tree patch. A kernel with `PREEMPT_DYNAMIC` shows the model chosen
/// at boot in debugfs, in parentheses. A kernel without either shows by `PREEMPT` in its
/// version that it is fully preemptible; `none` and `voluntary` then look the same.
fn preemption(version: &str, dynamic: Result<String, Reason>) -> Preemption {
    let has = |word| {
        version
            .split(|c: char| !c.is_ascii_uppercase() && c != '_')
            .any(|w| w == word)
    };
    if has("PREEMPT_RT") {
        return Preemption::Rt;
    }
    match dynamic {
        Ok(models) => models
            .split_whitespace()
            .find_map(|model| model.strip_prefix('(')?.strip_suffix(')'))
            .and_then(Preemption::of_name)
            .unwrap_or_else(|| Preemption::Unknown(format!("debugfs says \"{models}\"").into())),
        Err(reason) if has("PREEMPT_DYNAMIC") => Preemption::Unknown(reason),
        Err(_) if has("PREEMPT") => Preemption::Full,
        Err(_) => Preemption::Unknown(Preemption::NONE_OR_VOLUNTARY.into()),
    }
}

/// Returns the model that a kernel with `PREEMPT_DYNAMIC` booted with, by its command line or else
/// its configuration. Root may have chosen another one since.
fn as_booted(cmdline: &str, config: &str) -> Option<Preemption> {
    let arguments = cmdline.split_whitespace();
    let arguments = arguments.filter_map(|one| one.strip_prefix("preempt="));
    let of = |name| Preemption::of_name(name).filter(|model| *model != Preemption::Rt);
    let chosen = arguments.filter_map(of).next_back();
    let built = |option: &&str| {
        config
            .lines()
            .any(|line| line == format!("CONFIG_{option}=y"))
    };
    chosen.or_else(|| {
        let options = [
            "PREEMPT_NONE",
            "PREEMPT_VOLUNTARY",
            "PREEMPT",
            "PREEMPT_LAZY",
        ];
        let name = options.into_iter().find(built)?;
        Preemption::of_name(
            match name {
                "PREEMPT" => "full".to_owned(),
                _ => name.trim_start_matches("PREEMPT_").to_lowercase(),
            }
            .as_str(),
        )
    })
}

/// Returns whether timers end on the nanosecond or on the tick.
fn high_resolution() -> Fact {
    match time::resolution() {
        Ok(resolution) if resolution.0 == 1 => "active".into(),
        Ok(resolution) => format!("inactive: timers end on a tick of {resolution}").into(),
        Err(error) => Reason::from(format!("clock_getres: {error}")).into(),
    }
}

/// Returns the total memory of the kernel, in kibibytes.
fn memory_kib() -> Result<i64, Reason> {
    let path = "/proc/meminfo";
    let text = fs::read_to_string(path).map_err(|error| Reason::unreadable(path, error))?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let size = total.and_then(|total| total.split_whitespace().next()?.parse().ok());
    size.ok_or_else(|| Reason::unreadable(path, "no MemTotal"))
}

fn cpu_field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// Returns the model on arm64, where no name is shown: the maker and the part, as numbers.
fn arm_model(cpuinfo: &str) -> Option<String> {
    let maker = cpu_field(cpuinfo, "CPU implementer")?;
    let part = cpu_field(cpuinfo, "CPU part")?;
    Some(format!("implementer {maker}, part {part}"))
}

/// Returns the model on RISC-V: its name if the device tree has one, else its three numbers.
#[cfg(any(target_arch = "riscv64", test))]
fn riscv_model(cpuinfo: &str) -> Option<String> {
    let number = |name| cpu_field(cpuinfo, name);
    let numbers = || {
        let (vendor, kind) = (number("mvendorid")?, number("marchid")?);
        let version = number("mimpid")?;
        Some(format!(
            "mvendorid {vendor}, marchid {kind}, mimpid {version}"
        ))
    };
    number("uarch").map(str::to_owned).or_else(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DYNAMIC: &str = "Linux version 6.12 (gcc) #1 SMP PREEMPT_DYNAMIC Debian";
    const RT: &str = "Linux version 6.12-rt (gcc) #1 SMP PREEMPT_RT Debian 6.12";

    fn missing() -> Result<String, Reason> {
        Err(Reason::unreadable("/sys/x", "no such file"))
    }

    fn is_unknown(found: &Preemption) -> bool {
        matches!(found, Preemption::Unknown(_))
    }

    #[test]
    fn the_model_in_parentheses_is_the_one_in_force() {
        let told = |text: &str| preemption(DYNAMIC, Ok(text.into()));
        assert_eq!(told("none (voluntary) full"), Preemption::Voluntary);
        assert_eq!(told("none voluntary (full) lazy"), Preemption::Full);
        assert_eq!(told("full (lazy)"), Preemption::Lazy);
        assert!(is_unknown(&told("none voluntary")));
        assert!(is_unknown(&told("none (other)")));
    }

    #[test]
    fn an_arm_processor_is_told_by_its_numbers() {
        let cpuinfo = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd07\n";
        let expected = Some("implementer 0x41, part 0xd07".to_owned());
        assert_eq!(arm_model(cpuinfo), expected);
        assert_eq!(arm_model("processor\t: 0\n"), None);
    }

    #[test]
    fn a_riscv_processor_is_told_by_its_name_or_its_numbers() {
        let numbers = "hart\t: 0\nmvendorid\t: 0x489\nmarchid\t: 0x8\nmimpid\t: 0x7\n";
        let expected = "mvendorid 0x489, marchid 0x8, mimpid 0x7".to_owned();
        assert_eq!(riscv_model(numbers), Some(expected));
        let name = format!("uarch\t: sifive,u74-mc\n{numbers}");
        assert_eq!(riscv_model(&name), Some("sifive,u74-mc".to_owned()));
        assert_eq!(riscv_model("hart\t: 0\n"), None);
    }

    #[test]
    fn where_debugfs_is_locked_it_is_said_how_it_was_booted() {
        let config = "CONFIG_PREEMPT_BUILD=y\nCONFIG_PREEMPT_NONE=y\n";
        let cmdline = "ro preempt=voluntary preempt=full preempt=fulll";
        assert_eq!(as_booted(cmdline, config), Some(Preemption::Full));
        assert_eq!(as_booted("ro", config), Some(Preemption::None));
        let full = "CONFIG_PREEMPT=y\n# CONFIG_PREEMPT_NONE is not set";
        assert_eq!(as_booted("ro", full), Some(Preemption::Full));
        assert_eq!(as_booted("ro", ""), None);
    }

    #[test]
    fn rt_is_told_by_the_version_and_nothing_is_guessed() {
        assert_eq!(preemption(RT, missing()), Preemption::Rt);
        assert!(is_unknown(&preemption(DYNAMIC, missing())));
        let fixed = |version| preemption(version, missing());
        let full = fixed("Linux version 5.4 #1 SMP PREEMPT Mon");
        assert_eq!(full, Preemption::Full);
        assert!(is_unknown(&fixed("Linux version 5.4 #1 SMP Mon")));
    }
}
