// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs, clocks, interrupts, firmware.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::Path;

use punctual_model::cpus::show_list;
use punctual_model::units::CpuId;
use punctual_model::{Nanos, Reason};

use super::source;
use crate::check::{Check, Severity, Trial, Verdict};
use crate::machine::Machine;

const NO_HARDWARE: Trial = Trial::None("virtual time has no firmware, no caches, no devices");
const NO_IDLE: Trial = Trial::None("a virtual CPU has no deep idle state");

pub const CHECKS: &[Check] = &[
    Check {
        id: "virtualisation",
        severity: Severity::High,
        wanted: "the kernel runs on the hardware itself",
        advice: "measure on the machine itself; where it must be a guest, give each of its CPUs \
                 a CPU of the host, at a real-time priority",
        source: source::HARDWARE,
        needs_root: false,
        trial: Trial::None("a guest in virtual time has no host"),
        look: virtualisation,
    },
    Check {
        id: "smi",
        severity: Severity::High,
        wanted: "firmware does not take the CPU away (SMIs)",
        advice: "look for it before anything else: `echo hwlat > \
                 /sys/kernel/tracing/current_tracer`, `rtla hwnoise` or `hwlatdetect`; turn off \
                 in the firmware's settings what causes it, such as USB legacy support, power and \
                 fan control, and `systemctl disable --now fwupd-refresh.timer`; --skip smi once \
                 you have measured it",
        source: source::HWLAT,
        needs_root: true,
        trial: NO_HARDWARE,
        look: smi,
    },
    Check {
        id: "governor",
        severity: Severity::High,
        wanted: "each CPU has the governor performance",
        advice: "`cpupower frequency-set -g performance`, or a kernel with \
                 CONFIG_CPU_FREQ_DEFAULT_GOV_PERFORMANCE=y",
        source: source::KERNEL_CONFIGURATION,
        needs_root: false,
        trial: Trial::None("virtual time has no frequency"),
        look: governor,
    },
    Check {
        id: "idle-states",
        severity: Severity::Info,
        wanted: "no idle state takes longer to leave than C1, 2 µs",
        advice: "boot with processor.max_cstate=1 (intel_idle.max_cstate=1), or hold \
                 /dev/cpu_dma_latency at 0 while the work is done, as --bench host does",
        source: source::KERNEL_CONFIGURATION,
        needs_root: false,
        trial: NO_IDLE,
        look: idle_states,
    },
    Check {
        id: "cpu-dma-latency",
        severity: Severity::Medium,
        wanted: "a program keeps CPUs out of deep idle states (/dev/cpu_dma_latency)",
        advice: "have the program write four zero bytes to /dev/cpu_dma_latency and keep it open, \
                 or use tuned with force_latency",
        source: source::TUNED_LATENCY,
        needs_root: true,
        trial: NO_IDLE,
        look: cpu_dma_latency,
    },
    Check {
        id: "smt",
        severity: Severity::Medium,
        wanted: "no two CPUs share a core (SMT)",
        advice: "`echo off > /sys/devices/system/cpu/smt/control`, or boot with nosmt",
        source: source::RTCQS,
        needs_root: false,
        trial: NO_HARDWARE,
        look: smt,
    },
    Check {
        id: "clocksource",
        severity: Severity::Medium,
        wanted: "time is read from the CPU's own counter",
        advice: "`dmesg | grep -i clocksource` says why the kernel gave it up; boot with \
                 clocksource=tsc tsc=reliable only if you know that it is sound",
        source: source::TIMEKEEPING,
        needs_root: false,
        trial: Trial::None("virtual time is the same whichever clock is read"),
        look: clocksource,
    },
    Check {
        id: "tsc-reliable",
        severity: Severity::Low,
        wanted: "no timer watches the time stamp counter (tsc=reliable)",
        advice: "boot with tsc=reliable; nowatchdog leaves the timer that checks tsc_adjust",
        source: source::TUNED_NETWORK_LATENCY,
        needs_root: false,
        trial: Trial::None("all guests have it: their counter is virtual time itself"),
        look: tsc_reliable,
    },
    Check {
        id: "shared-interrupts",
        severity: Severity::Medium,
        wanted: "sound and USB share their interrupts with nothing else",
        advice: "move the card to another slot, or turn the other device off",
        source: source::RTCQS,
        needs_root: false,
        trial: NO_HARDWARE,
        look: shared_interrupts,
    },
    Check {
        id: "shared-caches",
        severity: Severity::Info,
        wanted: "no cache is shared by several cores",
        advice: "give the real-time work its share with resctrl (Intel CAT, AMD PQoS), or leave \
                 the neighbours idle",
        source: source::HARDWARE,
        needs_root: false,
        trial: NO_HARDWARE,
        look: shared_caches,
    },
    Check {
        id: "graphics",
        severity: Severity::Info,
        wanted: "no graphics card shares caches and memory with the CPUs",
        advice: "test under a load of graphics, such as glmark2, or build the kernel without \
                 CONFIG_DRM",
        source: source::KERNEL_CONFIGURATION,
        needs_root: false,
        trial: NO_HARDWARE,
        look: graphics,
    },
];

const CPUS: &str = "/sys/devices/system/cpu";

/// A field of the first CPU in `/proc/cpuinfo`.
fn cpu_field(machine: &Machine, name: &str) -> Result<Option<String>, Reason> {
    let text = machine.text("/proc/cpuinfo")?;
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    let mut own = fields.filter(|(own, _)| own.trim() == name);
    Ok(own.next().map(|(_, value)| value.trim().to_owned()))
}

fn flags(machine: &Machine) -> Result<Option<BTreeSet<String>>, Reason> {
    let flags = cpu_field(machine, "flags")?;
    Ok(flags.map(|flags| flags.split_whitespace().map(str::to_owned).collect()))
}

/// Returns true if the machine is a virtual one.
fn is_guest(machine: &Machine) -> Result<bool, Reason> {
    Ok(matches!(virtualisation(machine)?, Verdict::Wrong(_)))
}

fn virtualisation(machine: &Machine) -> Result<Verdict, Reason> {
    if let Some(kind) = machine.find("/sys/hypervisor/type")? {
        return Ok(Verdict::of(false, "/sys/hypervisor/type", kind.as_str()));
    }
    if let Some(flags) = flags(machine)? {
        let is_guest = flags.contains("hypervisor");
        let vendor = machine.text("/sys/class/dmi/id/sys_vendor").ok();
        let told = match (is_guest, &vendor) {
            (false, _) => "no".to_owned(),
            (true, None) => "yes".to_owned(),
            (true, Some(vendor)) => format!("yes, {vendor}"),
        };
        return Ok(Verdict::of(!is_guest, "CPU flag hypervisor", &*told));
    }
    of_firmware(machine)
}

/// Files whose first line shows a virtual machine's maker by its beginning. The signs are those of
/// systemd (`src/basic/virt.c`), which the target knows, too.
const DMI: [&str; 5] = [
    "product_name",
    "sys_vendor",
    "board_vendor",
    "bios_vendor",
    "product_version",
];
const MAKERS: [&str; 17] = [
    "KVM",
    "OpenStack",
    "KubeVirt",
    "Amazon EC2",
    "QEMU",
    "VMware",
    "VMW",
    "innotek GmbH",
    "VirtualBox",
    "Oracle Corporation",
    "Xen",
    "Bochs",
    "Parallels",
    "BHYVE",
    "Hyper-V",
    "Apple Virtualization",
    "Google Compute Engine",
];
/// Machines that a device tree calls so are virtual.
const BOARDS: [&str; 4] = ["dummy-virt", "xen,xenvm", "riscv-virtio", "qemu,pseries"];

/// A machine that is not x86 tells it by DMI or its device tree, if it has one.
fn of_firmware(machine: &Machine) -> Result<Verdict, Reason> {
    let dmi = DMI.map(|name| machine.text(&format!("/sys/class/dmi/id/{name}")).ok());
    let is_metal = dmi[0].as_ref().is_some_and(|name| {
        name.rsplit_once('.')
            .is_some_and(|(_, kind)| kind == "metal")
    });
    let is_maker = |text: &&String| MAKERS.iter().any(|maker| text.starts_with(maker));
    let maker = dmi.iter().flatten().find(is_maker);
    if let Some(maker) = maker.filter(|_| !is_metal) {
        return Ok(Verdict::of(false, "/sys/class/dmi/id", maker.as_str()));
    }
    // A link in /proc, which a copy of the files may lack.
    let trees = ["/sys/firmware/devicetree/base", "/proc/device-tree"];
    for tree in trees {
        let Ok(compatible) = machine.text(&format!("{tree}/compatible")) else {
            continue;
        };
        let board = BOARDS.iter().find(|board| compatible.contains(**board));
        let is_guest = board.is_some() || machine.has(&format!("{tree}/hypervisor"))?;
        let told = board
            .copied()
            .unwrap_or(if is_guest { "there" } else { "not there" });
        return Ok(Verdict::of(
            !is_guest,
            "hypervisor in the device tree",
            told,
        ));
    }
    if dmi.iter().any(Option::is_some) {
        let name = "virtual machine's maker in /sys/class/dmi/id";
        return Ok(Verdict::of(true, name, "none"));
    }
    Err("neither CPU flags, nor DMI, nor a device tree".into())
}

/// `MSR_SMI_COUNT` of Intel's CPUs since Nehalem: the number of SMIs since the reset.
const SMI_COUNT: u64 = 0x34;

fn smi(machine: &Machine) -> Result<Verdict, Reason> {
    let how = "`rtla hwnoise`, `hwlatdetect` or the tracer hwlat measure it";
    let Some(vendor) = cpu_field(machine, "vendor_id")? else {
        return Err(format!("no counter tells it on this architecture: {how}").into());
    };
    if vendor != "GenuineIntel" {
        return Err(format!("{vendor} has no counter that can be read in passing: {how}").into());
    }
    if is_guest(machine)? {
        return Err(format!("a guest does not see its host's: {how}").into());
    }
    let counter = machine
        .bytes("/dev/cpu/0/msr", SMI_COUNT)
        .map_err(|why| Reason::from(format!("{why} (`modprobe msr`, as root); {how}")))?;
    // The upper half is reserved.
    let count = i64::from(u64::from_le_bytes(counter) as u32);
    let uptime = uptime(machine)?;
    let is_steady = uptime >= LONG && count >= uptime;
    if count > 0 && !is_steady {
        return Err(format!(
            "{count} SMIs came since the reset, while the firmware booted or later: {how}"
        )
        .into());
    }
    Ok(Verdict::of(count == 0, "SMIs since the reset", count))
}

/// One hour, in seconds. Firmware makes thousands of SMIs before it boots a kernel; one SMI a
/// second for an hour is more than that.
const LONG: i64 = 3_600;

/// The time since the kernel was booted, in seconds.
fn uptime(machine: &Machine) -> Result<i64, Reason> {
    let path = "/proc/uptime";
    let text = machine.text(path)?;
    let seconds = text.split('.').next().and_then(|whole| whole.parse().ok());
    seconds.ok_or_else(|| Reason::unreadable(path, format!("found \"{text}\"")))
}

fn governor(machine: &Machine) -> Result<Verdict, Reason> {
    let directory = "/sys/devices/system/cpu/cpufreq";
    let names = machine.names(directory)?;
    let policies = names.iter().filter(|name| name.starts_with("policy"));
    let mut governors = BTreeSet::new();
    let mut set = BTreeSet::new();
    let mut unknown = None;
    for policy in policies {
        let at = |file: &str| format!("{directory}/{policy}/{file}");
        // Of a policy without an online CPU the kernel shows an empty list here, or no file at all
        // (`show()` in `drivers/cpufreq/cpufreq.c`: `EBUSY`).
        let affected = machine.text(&at("affected_cpus"));
        if affected.as_deref() == Ok("") {
            continue;
        }
        let cpus = affected.as_deref().unwrap_or_default().split_whitespace();
        set.extend(cpus.filter_map(|cpu| cpu.parse().ok().map(CpuId)));
        match machine.text(&at("scaling_governor")) {
            Ok(governor) => {
                governors.insert(governor);
            }
            Err(_) if affected.is_err() && !is_of_online(machine, policy)? => {}
            Err(reason) => unknown = Some(reason),
        }
    }
    let is_fine = governors.iter().all(|name| name == "performance");
    if let Some(reason) = unknown.filter(|_| is_fine) {
        return Err(reason);
    }
    if governors.is_empty() {
        let none = "no driver sets a frequency: firmware, or a host, may change it";
        return Err(Reason::unreadable(directory, none));
    }
    if is_fine {
        let mut bare = machine.online()?;
        bare.retain(|cpu| !set.contains(cpu));
        if !bare.is_empty() {
            let bare = show_list(&bare);
            let none = format!("no policy has CPU {bare}: firmware, or a host, may change it");
            return Err(Reason::unreadable(directory, none));
        }
    }
    let governors: Vec<String> = governors.into_iter().collect();
    Ok(Verdict::of(is_fine, "scaling_governor", governors))
}

/// Returns true if an online CPU has this policy: by its link, or by the policy's number, which is
/// that of its first CPU.
fn is_of_online(machine: &Machine, policy: &str) -> Result<bool, Reason> {
    let has_it = |cpu: &CpuId| {
        let link = machine.link(&format!("{CPUS}/cpu{}/cpufreq", cpu.0));
        policy == format!("policy{}", cpu.0) || link.is_ok_and(|link| link.ends_with(policy))
    };
    Ok(machine.online()?.iter().any(has_it))
}

/// The exit latency that `intel_idle` gives for C1; C1E and all deeper states take longer.
const C1: Nanos = Nanos::from_micros(2);

/// The enabled idle state that takes longest to leave, with its CPU; `None` if no driver knows any.
/// CPUs of one machine differ, and each has its own switches.
fn deepest(machine: &Machine) -> Result<Option<(String, Nanos)>, Reason> {
    let mut deepest: Option<(Nanos, Reverse<CpuId>, String)> = None;
    let mut unknown = None;
    for cpu in machine.online()? {
        match deepest_of(machine, cpu) {
            Ok(own) => {
                let own = own.map(|(latency, name)| (latency, Reverse(cpu), name));
                deepest = deepest.max(own);
            }
            Err(reason) => unknown = unknown.or(Some(reason)),
        }
    }
    // A deep state decides, whatever the CPUs are that do not tell.
    let is_deep = deepest.as_ref().is_some_and(|(latency, ..)| *latency > C1);
    if let Some(reason) = unknown.filter(|_| !is_deep) {
        return Err(reason);
    }
    if !is_deep && is_guest(machine)? {
        return Err("a guest does not see how its host idles".into());
    }
    Ok(deepest.map(|(latency, Reverse(cpu), name)| {
        let name = format!("{name} of CPU {}", cpu.0);
        (name, latency)
    }))
}

/// The enabled idle state of a CPU that takes longest to leave; `None` if no driver knows any.
fn deepest_of(machine: &Machine, cpu: CpuId) -> Result<Option<(Nanos, String)>, Reason> {
    let directory = format!("{CPUS}/cpu{}/cpuidle", cpu.0);
    if !machine.has(&directory)? {
        let driver = machine.text(&format!("{CPUS}/cpuidle/current_driver"))?;
        return match driver.as_str() {
            "none" => Ok(None),
            driver => Err(format!("{driver} drives idle CPUs, and no {directory}").into()),
        };
    }
    let mut deepest = None;
    for state in machine.names(&directory)? {
        let at = |file: &str| format!("{directory}/{state}/{file}");
        if !state.starts_with("state") || machine.number(&at("disable"))? != 0 {
            continue;
        }
        let latency = Nanos(machine.number(&at("latency"))?.saturating_mul(1_000));
        let name = machine.text(&at("name"))?;
        deepest = deepest.max(Some((latency, name)));
    }
    Ok(deepest)
}

const ONLY_HALT: &str = "no driver knows idle states: CPUs only halt";

fn idle_states(machine: &Machine) -> Result<Verdict, Reason> {
    let Some((name, latency)) = deepest(machine)? else {
        return Ok(Verdict::Moot(ONLY_HALT.into()));
    };
    let name = format!("latency of the idle state {name}");
    Ok(Verdict::of(latency <= C1, &name, latency))
}

/// Reads the requested latency from the device itself, and the programs that request it from the
/// list of open files.
fn cpu_dma_latency(machine: &Machine) -> Result<Verdict, Reason> {
    match deepest(machine)? {
        None => return Ok(Verdict::Moot(ONLY_HALT.into())),
        Some((_, latency)) if latency <= C1 => {
            return Ok(Verdict::Moot("no deep idle state is enabled".into()));
        }
        Some(_) => {}
    }
    let device = "/dev/cpu_dma_latency";
    let asked = i32::from_le_bytes(machine.bytes(device, 0)?);
    let asked = Nanos::from_micros(asked.into());
    let holders = holders(machine, device);
    let by = if holders.is_empty() {
        String::new()
    } else {
        format!(", held by {}", holders.join(", "))
    };
    Ok(Verdict::of(
        asked <= C1,
        &format!("cpu_dma_latency{by}"),
        asked,
    ))
}

/// The programs that have a file open, as far as this user can see.
fn holders(machine: &Machine, file: &str) -> Vec<String> {
    let open = |process: &u32| {
        let directory = format!("/proc/{process}/fd");
        let names = machine.names(&directory).unwrap_or_default();
        let mut links = names
            .iter()
            .map(|name| machine.link(&format!("{directory}/{name}")));
        links.any(|link| link.is_ok_and(|link| link == Path::new(file)))
    };
    let processes = machine.processes().unwrap_or_default();
    let holding = processes.into_iter().filter(open);
    let name = |process: u32| {
        let name = machine
            .text(&format!("/proc/{process}/comm"))
            .unwrap_or_default();
        format!("{name} ({process})")
    };
    holding.map(name).collect()
}

fn smt(machine: &Machine) -> Result<Verdict, Reason> {
    let active = machine.number(&format!("{CPUS}/smt/active"))?;
    if active == 0 && is_guest(machine)? {
        return Err("a guest does not see which of its host's CPUs share a core".into());
    }
    Ok(Verdict::of(active == 0, "smt/active", active))
}

fn clocksource(machine: &Machine) -> Result<Verdict, Reason> {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = machine.text(path)?;
    // Read by user space itself, of x86, Arm, RISC-V, PowerPC, s390 and LoongArch.
    let own = [
        "tsc",
        "arch_sys_counter",
        "riscv_clocksource",
        "timebase",
        "tod",
        "Constant",
    ];
    Ok(Verdict::of(
        own.contains(&&*source),
        "clocksource",
        &*source,
    ))
}

/// A counter with `tsc_adjust` is visited on each CPU in turn by a timer of its own, since Linux
/// 5.17 (`start_sync_check_timer` in `arch/x86/kernel/tsc_sync.c`), unless it is called reliable.
/// Any other counter is watched by the clocksource watchdog, unless that is switched off.
fn tsc_reliable(machine: &Machine) -> Result<Verdict, Reason> {
    let flags = flags(machine);
    if flags == Ok(None) || is_other_architecture(machine) {
        return Ok(Verdict::Moot("only x86 has it".into()));
    }
    let asked = machine.arguments("tsc")?;
    let name = "boot argument tsc";
    if asked.iter().any(|value| value == "reliable") {
        return Ok(Verdict::of(true, name, "reliable"));
    }
    let is_unwatched = asked.iter().any(|value| value == "nowatchdog");
    if !is_unwatched {
        let told = asked.last().map_or("not given", String::as_str);
        flags?;
        return Ok(Verdict::of(false, name, told));
    }
    let has_timer =
        flags?.is_some_and(|flags| flags.contains("tsc_adjust")) && machine.is_since(5, 17)?;
    let told = if has_timer {
        "nowatchdog; a timer checks tsc_adjust all the same"
    } else {
        "nowatchdog"
    };
    Ok(Verdict::of(!has_timer, name, told))
}

/// Returns true if the machine is known not to be x86, by its CPU or by its kernel's configuration.
pub fn is_other_architecture(machine: &Machine) -> bool {
    let others = ["ARM64", "ARM", "RISCV", "PPC", "S390", "LOONGARCH"];
    let cpuinfo = machine.text("/proc/cpuinfo").unwrap_or_default();
    let names = ["CPU implementer", "mvendorid", "vendor_id\t: IBM"];
    if names.iter().any(|name| cpuinfo.contains(name)) {
        return true;
    }
    let config = machine.config();
    config.is_ok_and(|config| others.iter().any(|name| config.has(name) == Ok(true)))
}

/// Returns true if an interrupt's handler is one of USB: a host's (`xhci_hcd:usb1`), or another one
/// of the same controller. A Raspberry Pi's has several: `dwc_otg, dwc_otg_pcd, dwc_otg_hcd:usb1`,
/// or `fe980000.usb, dwc2_hsotg:usb1`.
fn is_usb(name: &str) -> bool {
    let parts = ["hcd", ":usb", ".usb", "dwc_otg"];
    parts.iter().any(|part| name.contains(part))
}

fn shared_interrupts(machine: &Machine) -> Result<Verdict, Reason> {
    let path = "/proc/interrupts";
    let text = machine.text(path)?;
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    if !head.trim_start().starts_with("CPU") {
        return Err(Reason::unreadable(path, "expected a line of CPUs"));
    }
    let mut shared = Vec::new();
    let mut is_there = false;
    for line in lines {
        // `16:  0  0  IO-APIC  16-fasteoi   snd_hda_intel, i801_smbus`
        let names = line.split(", ").map(|part| {
            let last = part.split_whitespace().last();
            last.unwrap_or_default()
        });
        let names: Vec<&str> = names.collect();
        let of_usb = names.iter().filter(|name| is_usb(name)).count();
        let has_one = of_usb > 0 || names.iter().any(|name| name.starts_with("snd_"));
        is_there |= has_one;
        if has_one && names.len() > 1 && of_usb < names.len() {
            let number = line.split(':').next().unwrap_or_default().trim();
            shared.push(format!("{number} ({})", names.join(" and ")));
        }
    }
    if !is_there {
        return Ok(Verdict::Moot(
            "neither sound nor USB has an interrupt".into(),
        ));
    }
    Ok(Verdict::of(shared.is_empty(), "shared interrupts", shared))
}

fn shared_caches(machine: &Machine) -> Result<Verdict, Reason> {
    let directory = format!("{CPUS}/cpu0/cache");
    let siblings = machine.cpus(&format!("{CPUS}/cpu0/topology/thread_siblings_list"))?;
    let mut shared = Vec::new();
    for index in machine.names(&directory)? {
        if !index.starts_with("index") {
            continue;
        }
        let level = machine.number(&format!("{directory}/{index}/level"))?;
        let cpus = machine.cpus(&format!("{directory}/{index}/shared_cpu_list"))?;
        if cpus.iter().any(|cpu| !siblings.contains(cpu)) {
            let cpus = show_list(&cpus);
            shared.push(format!("level {level} (CPUs {cpus})"));
        }
    }
    if shared.is_empty() && is_guest(machine)? {
        return Err("a guest does not see which caches its host's CPUs share".into());
    }
    Ok(Verdict::of(
        shared.is_empty(),
        "caches of CPU 0 that others share",
        shared,
    ))
}

fn graphics(machine: &Machine) -> Result<Verdict, Reason> {
    let classes = machine.names("/sys/class")?;
    let mut cards = Vec::new();
    if classes.iter().any(|name| name == "drm") {
        cards = machine.names("/sys/class/drm")?;
        // Not the connectors: card0-HDMI-A-1.
        cards.retain(|name| name.starts_with("card") && !name.contains('-'));
    }
    Ok(Verdict::of(cards.is_empty(), "graphics cards", cards))
}
