// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first remedies, as commands.

use std::collections::BTreeMap;

use punctual_model::CpuId;
use punctual_model::cpus::show_list;
use serde::Serialize;

use crate::check::{Diagnosis, Finding, Value, Verdict};
use crate::checks::SIZES_OF_HUGE_PAGES;
use crate::machine::{Machine, is_cpus};

/// A system, distinguished by the commands that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// Debian.
    Debian,
    /// Ubuntu.
    Ubuntu,
    /// Ubuntu on a Raspberry Pi.
    UbuntuOnPi,
    /// Raspberry Pi OS.
    RaspberryPi,
    /// Raspberry Pi OS, 32-bit.
    #[serde(rename = "raspberry-pi-32")]
    RaspberryPi32,
    /// Another system, for which no commands are known.
    Other,
}

impl System {
    /// The systems to give commands for if the machine's own is not known.
    pub const COMMON: [Self; 3] = [Self::Debian, Self::Ubuntu, Self::RaspberryPi];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Debian => "Debian",
            Self::Ubuntu => "Ubuntu",
            Self::UbuntuOnPi => "Ubuntu on a Raspberry Pi",
            Self::RaspberryPi => "Raspberry Pi OS",
            Self::RaspberryPi32 => "Raspberry Pi OS, 32 bits",
            Self::Other => "this system",
        }
    }

    /// The system that a machine runs, by `/etc/os-release`; `None` if that cannot be read.
    pub fn of(machine: &Machine) -> Option<Self> {
        let release = machine.text("/etc/os-release").ok()?;
        let mut ids = release.lines().filter_map(|line| line.strip_prefix("ID="));
        // Raspberry Pi OS of 64 bits calls itself Debian.
        let is_pi_os = || {
            let has_kernel = machine.release().is_ok_and(|name| name.contains("rpi-"));
            has_kernel || machine.has("/etc/rpi-issue") == Ok(true)
        };
        let is_pi = || {
            let model = machine.text("/proc/device-tree/model");
            model.is_ok_and(|model| model.starts_with("Raspberry Pi"))
        };
        Some(match ids.next()?.trim_matches(['"', '\'']) {
            "ubuntu" if is_pi() => Self::UbuntuOnPi,
            "ubuntu" => Self::Ubuntu,
            "raspbian" => Self::RaspberryPi32,
            "debian" if is_pi_os() => Self::RaspberryPi,
            "debian" => Self::Debian,
            _ => Self::Other,
        })
    }

    /// Command lines that set boot arguments permanently, in files that GRUB's configuration or the
    /// firmware of a Raspberry Pi reads.
    fn boot(self, arguments: &str) -> Vec<String> {
        match self {
            Self::Debian | Self::Ubuntu => vec![
                "echo 'GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT \\".to_owned(),
                format!("  {arguments}\"' | \\"),
                "  sudo tee -a /etc/default/grub.d/realtime.cfg".to_owned(),
                "sudo update-grub".to_owned(),
            ],
            Self::UbuntuOnPi | Self::RaspberryPi | Self::RaspberryPi32 => vec![
                format!("sudo sed -i '1s/$/ {arguments}/' \\"),
                "  /boot/firmware/cmdline.txt".to_owned(),
            ],
            Self::Other => vec![
                "# add to the kernel's command line, where the boot loader has it:".to_owned(),
                format!("#   {arguments}"),
            ],
        }
    }

    fn rt_kernel(self) -> Vec<String> {
        let commands: &[&str] = match self {
            Self::Debian => &["sudo apt install linux-image-rt-$(dpkg --print-architecture)"],
            Self::Ubuntu => &[
                "sudo pro attach   # Ubuntu Pro is free for one's own few machines",
                "sudo pro enable realtime-kernel   # LTS releases only",
            ],
            Self::UbuntuOnPi => &[
                "sudo pro attach   # Ubuntu Pro is free for one's own few machines",
                "sudo pro enable realtime-kernel --variant=raspi   # LTS releases only",
            ],
            // The firmware would boot nothing, were a file named that is not there.
            Self::RaspberryPi => &[
                "sudo apt install linux-image-rpi-v8-rt",
                "test -e /boot/firmware/kernel8_rt.img && \\",
                "  printf '[all]\\nkernel=kernel8_rt.img\\n' | \\",
                "  sudo tee -a /boot/firmware/config.txt",
            ],
            Self::RaspberryPi32 => &[
                "# linux-image-rpi-v8-rt is for 64 bits; for 32 bits look for one:",
                "apt search linux-image-rpi",
            ],
            Self::Other => &["# install a kernel with PREEMPT_RT, often called rt or realtime"],
        };
        commands.iter().map(|line| (*line).to_owned()).collect()
    }
}

/// A remedy to apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The check that it answers.
    pub check: &'static str,
    /// A title of a few words.
    pub title: String,
    /// The command lines on each system.
    pub commands: Vec<(System, Vec<String>)>,
    /// Other checks that it settles, too.
    pub settles: Vec<&'static str>,
    /// True if it takes effect only from the next boot on.
    pub reboot: bool,
}

impl Step {
    /// The command lines, each with the systems that take them.
    pub fn by_commands(&self) -> Vec<(Vec<System>, &[String])> {
        let mut groups: Vec<(Vec<System>, &[String])> = Vec::new();
        for (system, commands) in &self.commands {
            match groups.iter_mut().find(|(_, own)| own == commands) {
                Some((systems, _)) => systems.push(*system),
                None => groups.push((vec![*system], commands)),
            }
        }
        groups
    }
}

/// Checks that a step settles as well, if its own check is wrong.
const SETTLES: [(&str, &[&str]); 2] = [
    ("preempt-rt", &["preemption-model", "threadirqs"]),
    // `kernel.watchdog` is both of them.
    ("lockup-detector", &["soft-watchdog", "nmi-watchdog"]),
];

impl Diagnosis {
    /// The check that settles this one, which is wrong: that check is wrong, too, and weighs more.
    pub fn settled_by(&self, one: &Finding) -> Option<&'static str> {
        let mut by = self.wrong().filter(|other| {
            let mut pairs = SETTLES.iter();
            other.severity > one.severity
                && pairs.any(|(by, of)| *by == other.check.id && of.contains(&one.check.id))
        });
        by.next().map(|other| other.check.id)
    }

    /// The first `most` steps, heaviest first: for the machine's own system if it is known, else
    /// for each common one. Findings that no command mends are left out.
    pub fn first_steps(&self, machine: &Machine, most: usize) -> Vec<Step> {
        let systems: Vec<System> = match System::of(machine) {
            Some(system) => vec![system],
            None => System::COMMON.into(),
        };
        let cores = by_cores(machine);
        let open = self.wrong().filter(|one| self.settled_by(one).is_none());
        let steps = open.filter_map(|one| {
            let id = one.check.id;
            let anew = isolated_anew(one, machine).or_else(|| preempted(one, machine));
            let mut remedy = anew.or_else(|| remedy(one, &cores))?;
            if let (Does::Boot(arguments), Ok(false)) = (&mut remedy.does, machine.is_since(5, 6)) {
                // Of an argument with a flag that it does not know the kernel takes nothing.
                *arguments = arguments.replace("=managed_irq,", "=");
            }
            let settled = self.wrong().filter(|own| self.settled_by(own) == Some(id));
            let of = |system: &System| (*system, remedy.does.commands(*system));
            Some(Step {
                check: id,
                title: remedy.title,
                commands: systems.iter().map(of).collect(),
                settles: settled.map(|own| own.check.id).collect(),
                reboot: !matches!(remedy.does, Does::Now(_) | Does::Sysctl(_)),
            })
        });
        steps.take(most).collect()
    }
}

/// The remedy for an argument that isolates CPUs, but not properly. It keeps the CPUs and the flags
/// that their owner has chosen.
fn isolated_anew(one: &Finding, machine: &Machine) -> Option<Remedy> {
    if one.check.id != "isolcpus" {
        return None;
    }
    let asked = machine.argument("isolcpus").ok()??;
    let (cpus, mut flags): (Vec<&str>, Vec<&str>) =
        asked.split(',').partition(|part| is_cpus(part));
    let is_list = |c: char| c.is_ascii_alphanumeric() || ",-_:/".contains(c);
    if cpus.is_empty() || !asked.chars().all(is_list) {
        return None;
    }
    let is_flag_known = machine.is_since(5, 6) != Ok(false);
    let title = if is_flag_known {
        "Keep interrupts off the isolated CPUs, too"
    } else {
        "Isolate these CPUs as this kernel knows it"
    };
    flags.retain(|flag| *flag != "managed_irq");
    if is_flag_known {
        flags.insert(0, "managed_irq");
    }
    if !flags.contains(&"domain") {
        flags.push("domain");
    }
    Some(Remedy {
        title: title.to_owned(),
        does: Does::Reboot {
            from: format!("isolcpus={asked}"),
            to: format!("isolcpus={}", [flags, cpus].concat().join(",")),
        },
    })
}

/// The remedy for a kernel that is not preempted, and does not take `preempt=`.
fn preempted(one: &Finding, machine: &Machine) -> Option<Remedy> {
    let is_taken = machine
        .config()
        .and_then(|config| config.has("PREEMPT_DYNAMIC"));
    let is_it = one.check.id == "preemption-model" && is_taken == Ok(false);
    is_it.then(|| Remedy {
        title: "Install a kernel that can be preempted (this one ignores preempt=full)".into(),
        does: Does::RtKernel,
    })
}

/// A remedy for a finding.
struct Remedy {
    title: String,
    does: Does,
}

/// The action of a remedy.
enum Does {
    /// Installs a kernel.
    RtKernel,
    /// Sets boot arguments.
    Boot(String),
    /// Gives a boot argument in another form.
    Reboot {
        /// The present form.
        from: String,
        /// The form that it should have.
        to: String,
    },
    /// Removes boot arguments.
    Unboot(Vec<String>),
    /// Writes a setting permanently.
    Sysctl(&'static str),
    /// Runs these command lines, the same on each system.
    Now(&'static [&'static str]),
}

impl Does {
    fn commands(&self, system: System) -> Vec<String> {
        match self {
            Self::RtKernel => system.rt_kernel(),
            Self::Boot(arguments) => system.boot(arguments),
            Self::Reboot { from, to } => {
                let (files, then) = match system {
                    System::Debian | System::Ubuntu => (
                        "/etc/default/grub /etc/default/grub.d/*.cfg",
                        Some("sudo update-grub".to_owned()),
                    ),
                    System::UbuntuOnPi | System::RaspberryPi | System::RaspberryPi32 => {
                        ("/boot/firmware/cmdline.txt", None)
                    }
                    System::Other => {
                        return vec![
                            "# in the kernel's command line, where the boot loader has it:".into(),
                            format!("#   {from}"),
                            format!("# becomes {to}"),
                        ];
                    }
                };
                let lines = [
                    "sudo sed -i \\".to_owned(),
                    format!("  's#{from}#{to}#' \\"),
                    format!("  {files}"),
                ];
                lines.into_iter().chain(then).collect()
            }
            Self::Unboot(arguments) => {
                let (file, then) = match system {
                    System::Debian | System::Ubuntu => (
                        "sudo nano /etc/default/grub",
                        Some("sudo update-grub".to_owned()),
                    ),
                    System::UbuntuOnPi | System::RaspberryPi | System::RaspberryPi32 => {
                        ("sudo nano /boot/firmware/cmdline.txt", None)
                    }
                    System::Other => ("# in the boot loader's settings", None),
                };
                // A stranger's text ends with its line.
                let clean = |one: &String| one.replace(char::is_control, " ");
                let remarks = arguments
                    .iter()
                    .map(|one| format!("# mend or remove: {}", clean(one)));
                remarks.chain([file.to_owned()]).chain(then).collect()
            }
            Self::Sysctl(setting) => vec![
                format!("echo {setting} | \\"),
                "  sudo tee -a /etc/sysctl.d/99-realtime.conf".to_owned(),
                "sudo sysctl --system".to_owned(),
            ],
            Self::Now(lines) => lines.iter().map(|line| (*line).to_owned()).collect(),
        }
    }
}

/// The remedy for a finding; `None` if no command mends it.
fn remedy(one: &Finding, cores: &[Vec<CpuId>]) -> Option<Remedy> {
    let boot = |arguments: &str| Does::Boot(arguments.to_owned());
    let (title, does) = match one.check.id {
        "preempt-rt" => ("Install a kernel with PREEMPT_RT", Does::RtKernel),
        "preemption-model" => (
            "Let the kernel be preempted (preempt=full)",
            boot("preempt=full"),
        ),
        "threadirqs" => (
            "Handle interrupts in threads (helps where devices interrupt often)",
            boot("threadirqs"),
        ),
        "governor" => ("Keep the CPUs at full speed", Does::Now(GOVERNOR)),
        "rt-permission" => (
            "Let this user start real-time threads",
            Does::Now(PERMISSION),
        ),
        "lockup-detector" => (
            "Turn the lockup detector off",
            Does::Sysctl("kernel.watchdog=0"),
        ),
        "soft-watchdog" => (
            "Turn the soft lockup detector off",
            Does::Sysctl("kernel.soft_watchdog=0"),
        ),
        "nmi-watchdog" => (
            "Turn the hard lockup detector off",
            Does::Sysctl("kernel.nmi_watchdog=0"),
        ),
        "swappiness" => ("Swap less", Does::Sysctl("vm.swappiness=10")),
        "vm-stat-interval" => (
            "Gather statistics of memory more rarely",
            Does::Sysctl("vm.stat_interval=10"),
        ),
        "timer-migration" => (
            "Keep timers on their CPUs",
            Does::Sysctl("kernel.timer_migration=0"),
        ),
        "rt-throttling" => (
            "Lift the limit on real-time threads (one that spins then hangs its CPU)",
            Does::Sysctl("kernel.sched_rt_runtime_us=-1"),
        ),
        "irqbalance" => (
            "Stop irqbalance",
            Does::Now(&["sudo systemctl disable --now irqbalance"]),
        ),
        "isolcpus" if cores.iter().map(Vec::len).sum::<usize>() > 1 => (
            "Leave half of the CPUs to the real-time work",
            Does::Boot(isolation(cores)),
        ),
        "skew-tick" => ("Spread the CPUs' ticks", boot("skew_tick=1")),
        "rcu-normal" => (
            "Keep RCU from interrupting other CPUs",
            boot("rcupdate.rcu_normal_after_boot=1"),
        ),
        "no-hz" => ("Keep the tick on", boot("nohz=off")),
        "transparent-huge-pages" if is_of_sizes(one) => {
            ("Make no huge pages of any size", Does::Now(HUGE_PAGES))
        }
        "transparent-huge-pages" => (
            "Make no transparent huge pages",
            boot("transparent_hugepage=never"),
        ),
        "harmful-arguments" | "unknown-arguments" | "contradicting-arguments" => {
            let Verdict::Wrong(found) = &one.verdict else {
                return None;
            };
            let arguments = match &found.value {
                Value::Names(names) => names.clone(),
                other => vec![other.to_string()],
            };
            ("Mend the boot arguments", Does::Unboot(arguments))
        }
        // What is gained by less security is its owner's to weigh.
        _ => return None,
    };
    let title = title.to_owned();
    Some(Remedy { title, does })
}

/// Holds until the next boot. A permanent setting depends on what else manages power.
const GOVERNOR: &[&str] = &[
    "echo performance | \\",
    "  sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    "# holds until the next boot; for good, boot with",
    "# cpufreq.default_governor=performance",
];

/// Returns true if only single sizes of huge pages are made, whatever the common setting says.
fn is_of_sizes(one: &Finding) -> bool {
    matches!(&one.verdict, Verdict::Wrong(found) if found.name == SIZES_OF_HUGE_PAGES)
}

const HUGE_PAGES: &[&str] = &[
    "echo never | \\",
    "  sudo tee /sys/kernel/mm/transparent_hugepage/hugepages-*/enabled",
    "# holds until the next boot; for good, take thp_anon= away, or find the",
    "# program that sets it",
];

const PERMISSION: &[&str] = &[
    "sudo groupadd -f realtime && sudo usermod -aG realtime \"$USER\"",
    "printf '@realtime - rtprio 98\\n@realtime - memlock unlimited\\n' | \\",
    "  sudo tee /etc/security/limits.d/99-realtime.conf",
    "# then log in again",
];

/// Leaves the upper half of the cores to the work, and the lower half to all else. `cores` has each
/// core's CPUs; one core is divided.
fn isolation(cores: &[Vec<CpuId>]) -> String {
    let mut cpus: Vec<CpuId> = match cores {
        [only] => only[only.len().div_ceil(2)..].to_vec(),
        _ => cores[cores.len().div_ceil(2)..].concat(),
    };
    cpus.sort_unstable();
    format!("isolcpus=managed_irq,domain,{}", show_list(&cpus))
}

/// The CPUs that are online, by cores.
fn by_cores(machine: &Machine) -> Vec<Vec<CpuId>> {
    let core = |cpu: &CpuId| {
        let path = format!(
            "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list",
            cpu.0
        );
        let siblings = machine.cpus(&path).ok();
        siblings
            .and_then(|all| all.first().copied())
            .unwrap_or(*cpu)
    };
    let mut cores = BTreeMap::<CpuId, Vec<CpuId>>::new();
    for cpu in machine.online().unwrap_or_default() {
        cores.entry(core(&cpu)).or_default().push(cpu);
    }
    cores.into_values().collect()
}

/// The boot arguments of a check's trial and of the step that sets them: the two must agree.
#[cfg(test)]
pub(crate) fn of_trial(one: &Finding) -> Option<(String, String)> {
    use crate::check::Trial;
    let (Trial::Boot(tried) | Trial::Beside(tried)) = one.check.trial else {
        return None;
    };
    let does = match remedy(one, &[vec![CpuId(0)], vec![CpuId(1)]])?.does {
        Does::Boot(arguments) => arguments,
        Does::Sysctl(setting) => format!("sysctl.{setting}"),
        _ => return None,
    };
    Some((tried.to_owned(), does))
}
