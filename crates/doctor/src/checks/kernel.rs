// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's kind and configuration.

use punctual_model::Reason;

use super::isolation::tickless;
use super::source;
use crate::check::{Check, Severity, Trial, Verdict};
use crate::machine::Machine;

const BUILT: Trial = Trial::None("it takes a kernel that was built otherwise");
const NO_FREQUENCY: Trial = Trial::None("virtual time has no frequency");

pub const CHECKS: &[Check] = &[
    Check {
        id: "preempt-rt",
        severity: Severity::Fatal,
        wanted: "the kernel has PREEMPT_RT",
        advice: "boot a kernel with CONFIG_PREEMPT_RT=y: Debian's linux-image-rt-amd64, \
                 Ubuntu's linux-realtime, or one of your own from Linux 6.12 on",
        source: source::KERNEL_CONFIGURATION,
        needs_root: false,
        trial: Trial::Kernel,
        look: preempt_rt,
    },
    Check {
        id: "rt-name",
        severity: Severity::High,
        wanted: "a kernel that is called rt is one",
        advice: "do not trust its name: install the package again, or build it with \
                 CONFIG_PREEMPT_RT=y",
        source: source::RT_NAME,
        needs_root: false,
        trial: Trial::None("a name costs nothing; see preempt-rt"),
        look: rt_name,
    },
    Check {
        id: "preemption-model",
        severity: Severity::High,
        wanted: "the kernel can be preempted: PREEMPT_RT, full or lazy",
        advice: "boot with preempt=full, where there is no PREEMPT_RT",
        source: source::PREEMPTION,
        needs_root: false,
        trial: Trial::Boot("preempt=full"),
        look: preemption_model,
    },
    Check {
        id: "preempt-argument",
        severity: Severity::Low,
        wanted: "the boot argument preempt= names a model that this kernel has",
        advice: "take it away, or name full or lazy: from Linux 7.0 on these two are left, and \
                 without PREEMPT_DYNAMIC it does nothing",
        source: source::PREEMPTION,
        needs_root: false,
        trial: Trial::None("an argument that is ignored costs nothing; see preemption-model"),
        look: preempt_argument,
    },
    Check {
        id: "cpu-freq",
        severity: Severity::High,
        wanted: "the kernel can set the CPUs' frequency (CONFIG_CPU_FREQ)",
        advice: "build the kernel with CONFIG_CPU_FREQ=y: not every boot loader sets the highest \
                 frequency",
        source: source::KERNEL_CONFIGURATION,
        needs_root: false,
        trial: NO_FREQUENCY,
        look: |m| on(m, "CPU_FREQ"),
    },
    Check {
        id: "governors",
        severity: Severity::Medium,
        wanted: "no governor but performance is built in",
        advice: "build the kernel without the others, so that nothing can choose one",
        source: source::KERNEL_CONFIGURATION,
        needs_root: false,
        trial: NO_FREQUENCY,
        look: governors,
    },
    Check {
        id: "irqsoff-tracer",
        severity: Severity::High,
        wanted: "the tracer irqsoff is not built in (CONFIG_IRQSOFF_TRACER)",
        advice: "build the kernel without it: it costs time even when it is not active",
        source: source::KERNEL_CONFIGURATION,
        needs_root: false,
        trial: BUILT,
        look: |m| off(m, &["IRQSOFF_TRACER"]),
    },
    Check {
        id: "preempt-tracer",
        severity: Severity::High,
        wanted: "the tracer preemptoff is not built in (CONFIG_PREEMPT_TRACER)",
        advice: "build the kernel without it: it costs time even when it is not active",
        source: source::KERNEL_CONFIGURATION,
        needs_root: false,
        trial: BUILT,
        look: |m| off(m, &["PREEMPT_TRACER"]),
    },
    Check {
        id: "prove-locking",
        severity: Severity::High,
        wanted: "the kernel does not check its own locking (CONFIG_PROVE_LOCKING)",
        advice: "build the kernel without CONFIG_PROVE_LOCKING: it is for tests",
        source: source::KERNEL_CONFIGURATION,
        needs_root: false,
        trial: BUILT,
        look: |m| off(m, &["PROVE_LOCKING"]),
    },
    Check {
        id: "lockup-detector",
        severity: Severity::High,
        wanted: "the lockup detector is not built in, or off",
        advice: "boot with nowatchdog (or `sysctl kernel.watchdog=0`), and use a watchdog of the \
                 hardware; or build the kernel without CONFIG_LOCKUP_DETECTOR",
        source: source::KERNEL_CONFIGURATION,
        needs_root: false,
        trial: Trial::Boot("nowatchdog"),
        look: lockup_detector,
    },
    Check {
        id: "efi-runtime",
        severity: Severity::Medium,
        wanted: "EFI's runtime services are off",
        advice: "boot with efi=noruntime (programs such as efibootmgr then cannot change boot \
                 entries), or keep the workqueue efi_runtime on a housekeeping CPU",
        source: source::KERNEL_CONFIGURATION,
        needs_root: false,
        trial: Trial::None("the guest has no EFI"),
        look: efi_runtime,
    },
    Check {
        id: "no-hz",
        severity: Severity::Medium,
        wanted: "the tick does not stop, unless nohz_full= is the aim",
        advice: "boot with nohz=off for periodic work; for threads that only compute, isolate \
                 their CPUs and name them in nohz_full=",
        source: source::KERNEL_CONFIGURATION,
        needs_root: false,
        trial: Trial::Boot("nohz=off"),
        look: no_hz,
    },
    Check {
        id: "high-resolution-timers",
        severity: Severity::High,
        wanted: "timers can expire between ticks (CONFIG_HIGH_RES_TIMERS)",
        advice: "boot without highres=off; or build the kernel with CONFIG_HIGH_RES_TIMERS=y",
        source: source::RTCQS,
        needs_root: false,
        trial: BUILT,
        look: high_resolution_timers,
    },
    Check {
        id: "threadirqs",
        severity: Severity::Medium,
        wanted: "interrupts are handled in threads",
        advice: "boot with threadirqs, where there is no PREEMPT_RT and devices interrupt often; \
                 on a virtual CPU whose only device is a clock it buys nothing (docs/ADVICE.md)",
        source: source::RTCQS,
        needs_root: false,
        trial: Trial::Boot("threadirqs"),
        look: threadirqs,
    },
    Check {
        id: "tracing",
        severity: Severity::Info,
        wanted: "the kernel can be traced, should it be late (CONFIG_TRACING)",
        advice: "build the kernel with CONFIG_TRACING=y and CONFIG_TIMERLAT_TRACER=y",
        source: source::KERNEL_CONFIGURATION,
        needs_root: false,
        trial: BUILT,
        look: |m| on(m, "TRACING"),
    },
    Check {
        id: "hwlat-tracer",
        severity: Severity::Info,
        wanted: "the kernel can measure the time that firmware takes (CONFIG_HWLAT_TRACER)",
        advice: "build the kernel with CONFIG_HWLAT_TRACER=y",
        source: source::HWLAT,
        needs_root: false,
        trial: BUILT,
        look: |m| on(m, "HWLAT_TRACER"),
    },
    Check {
        id: "active-tracer",
        severity: Severity::Medium,
        wanted: "no tracer is active",
        advice: "`echo nop > /sys/kernel/tracing/current_tracer`, and `echo 0 > \
                 /sys/kernel/tracing/events/enable`; the same in instances/NAME there",
        source: source::KERNEL_CONFIGURATION,
        needs_root: true,
        trial: Trial::None("no boot argument does what a user does here"),
        look: active_tracer,
    },
];

/// Checks that an option is on.
fn on(machine: &Machine, option: &str) -> Result<Verdict, Reason> {
    let has = machine.config()?.has(option)?;
    let value = if has { "on" } else { "off" };
    Ok(Verdict::of(has, &format!("CONFIG_{option}"), value))
}

/// Checks that none of these options is built in.
fn off(machine: &Machine, options: &[&str]) -> Result<Verdict, Reason> {
    let found = machine.config()?.built_in(options)?;
    Ok(Verdict::of(
        found.is_empty(),
        "options that are built in",
        found,
    ))
}

/// The words about preemption in `/proc/version`: `PREEMPT_DYNAMIC`, `PREEMPT RT`.
fn preemption_words(machine: &Machine) -> Result<String, Reason> {
    let path = "/proc/version";
    let version = machine.text(path)?;
    if !version.starts_with("Linux version ") {
        let expected = format!("expected \"Linux version …\", found \"{version}\"");
        return Err(Reason::unreadable(path, expected));
    }
    let words = version.split_whitespace();
    // The patches for Linux 4 wrote two words.
    let words = words.filter(|word| word.starts_with("PREEMPT") || *word == "RT");
    Ok(words.collect::<Vec<_>>().join(" "))
}

fn is_rt(machine: &Machine) -> Result<bool, Reason> {
    let words = preemption_words(machine)?;
    Ok(words.split(' ').any(|word| word == "PREEMPT_RT") || words.ends_with("PREEMPT RT"))
}

fn preempt_rt(machine: &Machine) -> Result<Verdict, Reason> {
    let words = preemption_words(machine)?;
    let words = if words.is_empty() {
        "no word of preemption"
    } else {
        &words
    };
    Ok(Verdict::of(is_rt(machine)?, "/proc/version", words))
}

fn rt_name(machine: &Machine) -> Result<Verdict, Reason> {
    let release = machine.release()?;
    let is_word = |word: &str| {
        let rest = word.strip_prefix("rt");
        word == "realtime" || rest.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
    };
    let is_called_rt = release
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(is_word);
    let is_fine = !is_called_rt || is_rt(machine)?;
    Ok(Verdict::of(is_fine, "release", release.as_str()))
}

/// Judges the model in force: read back, else as the boot argument or the configuration asks.
fn preemption_model(machine: &Machine) -> Result<Verdict, Reason> {
    if is_rt(machine)? {
        return Ok(Verdict::of(true, "/proc/version", "PREEMPT_RT"));
    }
    let of = |model: &str, name: &str| Verdict::of(["full", "lazy"].contains(&model), name, model);
    let debugfs = "/sys/kernel/debug/sched/preempt";
    if let Ok(models) = machine.text(debugfs) {
        let in_force = models
            .split_whitespace()
            .find_map(|model| model.strip_prefix('(')?.strip_suffix(')'));
        return in_force
            .map(|model| of(model, debugfs))
            .ok_or_else(|| Reason::unreadable(debugfs, format!("found \"{models}\"")));
    }
    let config = machine.config()?;
    let asked = machine.argument("preempt")?;
    if let Some(model) = asked.filter(|model| offered(machine, model) == Ok(true)) {
        return Ok(of(&model, "boot argument preempt"));
    }
    let built = [
        ("PREEMPT_NONE", "none"),
        ("PREEMPT_VOLUNTARY", "voluntary"),
        ("PREEMPT_LAZY", "lazy"),
        ("PREEMPT", "full"),
    ];
    let mut unknown = None;
    for (option, model) in built {
        match config.has(option) {
            Ok(true) => return Ok(of(model, &format!("CONFIG_{option}"))),
            Ok(false) => {}
            Err(reason) => unknown = Some(reason),
        }
    }
    let none = || "the configuration names no model of preemption".into();
    Err(unknown.unwrap_or_else(none))
}

/// Returns true if the boot argument `preempt=` can choose a model (`sched_dynamic_mode` in
/// `kernel/sched/core.c`).
fn offered(machine: &Machine, model: &str) -> Result<bool, Reason> {
    let is_model = match model {
        "full" | "lazy" => true,
        "none" | "voluntary" => !is_rt(machine)?,
        _ => false,
    };
    if !is_model {
        return Ok(false);
    }
    // PREEMPT_RT has it from Linux 6.13 on, and in patches for 6.12.
    let config = machine.config()?;
    if !config.has("PREEMPT_DYNAMIC")? {
        return Ok(false);
    }
    let lazy = || config.has("ARCH_HAS_PREEMPT_LAZY");
    match model {
        "full" => Ok(true),
        "lazy" => lazy(),
        _ => Ok(!machine.is_since(7, 0)? || !lazy()?),
    }
}

fn preempt_argument(machine: &Machine) -> Result<Verdict, Reason> {
    let Some(model) = machine.argument("preempt")? else {
        return Ok(Verdict::Moot("there is no boot argument preempt=".into()));
    };
    let name = if is_rt(machine)? {
        "boot argument preempt, on PREEMPT_RT"
    } else {
        "boot argument preempt"
    };
    Ok(Verdict::of(offered(machine, &model)?, name, model.as_str()))
}

fn governors(machine: &Machine) -> Result<Verdict, Reason> {
    off(
        machine,
        &[
            "CPU_FREQ_GOV_POWERSAVE",
            "CPU_FREQ_GOV_USERSPACE",
            "CPU_FREQ_GOV_ONDEMAND",
            "CPU_FREQ_GOV_CONSERVATIVE",
            "CPU_FREQ_GOV_SCHEDUTIL",
        ],
    )
}

/// A detector that is built in but switched off runs no timer. Without the sysctl there is no
/// detector.
fn lockup_detector(machine: &Machine) -> Result<Verdict, Reason> {
    match machine.find_sysctl("kernel.watchdog")? {
        Some(on) => Ok(Verdict::of(on == 0, "kernel.watchdog", on)),
        None => off(machine, &["LOCKUP_DETECTOR"]),
    }
}

fn efi_runtime(machine: &Machine) -> Result<Verdict, Reason> {
    let booted = "/sys/firmware/efi";
    let firmware = "/sys/firmware";
    if machine.names(firmware)?.is_empty() {
        let hidden = "it is empty, as in a container that hides it";
        return Err(Reason::unreadable(firmware, hidden));
    }
    if !machine.has(booted)? {
        return Ok(Verdict::Moot(format!("not booted by EFI: no {booted}")));
    }
    // The last one that says either counts, and of both in one *runtime*
    // (`parse_efi_cmdline()` in `drivers/firmware/efi/efi.c`).
    let asks = |asked: &str, word: &str| asked.split(',').any(|own| own == word);
    let mut asked = machine.arguments("efi")?;
    asked.retain(|asked| asks(asked, "runtime") || asks(asked, "noruntime"));
    if let Some(asked) = asked.last() {
        let is_fine = !asks(asked, "runtime");
        let name = "boot argument efi";
        return Ok(Verdict::of(is_fine, name, asked.as_str()));
    }
    if machine.argument("noefi")?.is_some() {
        return Ok(Verdict::of(true, "boot argument noefi", "given"));
    }
    let option = "EFI_DISABLE_RUNTIME";
    let config = machine.config()?;
    let is_older = || Ok::<_, Reason>(machine.is_since(4, 18)? && !machine.is_since(5, 19)?);
    // Until Linux 5.19 brought the option, PREEMPT_RT alone turned them off. Distributions have
    // taken the option over into older kernels.
    if !config.has(option)? && !config.names(option) && is_older()? && is_rt(machine)? {
        return Ok(Verdict::of(true, "/proc/version", "PREEMPT_RT"));
    }
    on(machine, option)
}

fn no_hz(machine: &Machine) -> Result<Verdict, Reason> {
    if let Some(value) = nohz_off(machine)? {
        return Ok(Verdict::of(true, "boot argument nohz", &*value));
    }
    let tickless = tickless(machine)?;
    if !tickless.is_empty() {
        return Ok(Verdict::of(true, "CPUs in nohz_full", tickless));
    }
    off(machine, &["NO_HZ_IDLE", "NO_HZ_FULL"])
}

/// The value of the boot argument `nohz=`, if that keeps the tick on.
pub(super) fn nohz_off(machine: &Machine) -> Result<Option<String>, Reason> {
    Ok(machine.argument("nohz")?.filter(|value| is_off(value)))
}

/// Returns true for what the kernel reads as *off* (`kstrtobool` in `lib/kstrtox.c`).
fn is_off(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    value.starts_with(['0', 'n', 'f']) || value.starts_with("of")
}

fn high_resolution_timers(machine: &Machine) -> Result<Verdict, Reason> {
    // Only root reads the kernel's own word.
    if let Ok(list) = machine.text("/proc/timer_list") {
        let active = list.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == ".hres_active").then(|| value.trim().to_owned())
        });
        if let Some(active) = active {
            let name = "hres_active in /proc/timer_list";
            return Ok(Verdict::of(active == "1", name, active.as_str()));
        }
    }
    match machine.argument("highres")? {
        Some(value) if is_off(&value) => {
            Ok(Verdict::of(false, "boot argument highres", value.as_str()))
        }
        _ => on(machine, "HIGH_RES_TIMERS"),
    }
}

fn threadirqs(machine: &Machine) -> Result<Verdict, Reason> {
    if is_rt(machine)? {
        return Ok(Verdict::of(true, "/proc/version", "PREEMPT_RT"));
    }
    let asked = machine.argument("threadirqs")?.is_some();
    let value = if asked { "given" } else { "not given" };
    Ok(Verdict::of(asked, "boot argument threadirqs", value))
}

/// Each instance has a tracer and events of its own.
fn active_tracer(machine: &Machine) -> Result<Verdict, Reason> {
    let tracing = "/sys/kernel/tracing";
    let instances = format!("{tracing}/instances");
    let mut places = vec![String::new()];
    if machine.has(&instances)? {
        let names = machine.names(&instances)?.into_iter();
        places.extend(names.map(|name| format!("instances/{name}/")));
    }
    let mut active = Vec::new();
    for place in places {
        let tracer = machine.text(&format!("{tracing}/{place}current_tracer"))?;
        let events = machine.text(&format!("{tracing}/{place}set_event"))?;
        if tracer != "nop" {
            active.push(format!("{place}{tracer}"));
        }
        active.extend(events.lines().map(|event| format!("{place}{event}")));
    }
    Ok(Verdict::of(active.is_empty(), "tracers and events", active))
}
