// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detection of virtual machines: on x86 by a flag of the processor; elsewhere by signs of the
//! firmware, which systemd knows, too (`src/basic/virt.c`).

use std::fs;
use std::path::Path;

use punctual_model::Reason;

/// Files whose first line shows a virtual machine's maker by its beginning.
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

/// Returns true if the machine is a virtual one, from the content of `/proc/cpuinfo` and the files
/// below `root`; a reason if nothing could tell.
pub fn found(cpuinfo: &str, root: &Path) -> Result<bool, Reason> {
    let flags = cpuinfo.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "flags").then_some(value)
    });
    if let Some(flags) = flags {
        return Ok(flags.split_whitespace().any(|flag| flag == "hypervisor"));
    }
    let tree = root.join("proc/device-tree");
    let text =
        |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let dmi = DMI.map(|name| text(&root.join("sys/class/dmi/id").join(name)));
    let compatible = text(&tree.join("compatible"));
    if compatible.is_err() && dmi.iter().all(Result::is_err) {
        let why = "neither \"flags\", nor a device tree, nor DMI";
        return Err(Reason::unreadable("/proc/cpuinfo", why));
    }
    let is_metal = dmi[0].as_ref().is_ok_and(|name| {
        name.trim()
            .rsplit_once('.')
            .is_some_and(|(_, kind)| kind == "metal")
    });
    let is_maker = |text: &String| MAKERS.iter().any(|maker| text.starts_with(maker));
    let of_dmi = !is_metal && dmi.iter().flatten().any(is_maker);
    #[cfg(any(target_arch = "riscv64", test))]
    if compatible
        .as_ref()
        .is_ok_and(|text| text.contains("riscv-virtio"))
    {
        return Ok(true);
    }
    let of_tree =
        compatible.is_ok_and(|text| text.contains("dummy-virt") || text.contains("xen,xenvm"));
    Ok(of_dmi || of_tree || tree.join("hypervisor").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(cpuinfo: &str, files: &[(&str, &str)]) -> Option<bool> {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        found(cpuinfo, root.path()).ok()
    }

    #[test]
    fn an_x86_processor_says_it_itself() {
        let dmi = [("sys/class/dmi/id/sys_vendor", "QEMU\n")];
        assert_eq!(told("flags\t\t: fpu hypervisor\n", &[]), Some(true));
        assert_eq!(told("flags\t\t: fpu\n", &dmi), Some(false));
    }

    #[test]
    fn elsewhere_the_firmware_does_or_nobody() {
        const ARM: &str = "Features\t: fp asimd\n";
        let told = |name: &str, text: &str| told(ARM, &[(name, text)]);
        let tree = "proc/device-tree/compatible";
        assert_eq!(
            told(tree, "raspberrypi,4-model-b\0brcm,bcm2711\0"),
            Some(false)
        );
        assert_eq!(told(tree, "linux,dummy-virt\0"), Some(true));
        assert_eq!(told(tree, "riscv-virtio\0"), Some(true));
        assert_eq!(told("sys/class/dmi/id/sys_vendor", "QEMU\n"), Some(true));
        assert_eq!(told("sys/class/dmi/id/sys_vendor", "Ampere\n"), Some(false));
        assert_eq!(
            told("sys/class/dmi/id/product_name", "a1.metal\n"),
            Some(false)
        );
        for (name, text) in [
            ("product_name", "Apple Virtualization Generic Platform\n"),
            ("product_version", "Hyper-V UEFI Release v4.1\n"),
        ] {
            let name = format!("sys/class/dmi/id/{name}");
            assert_eq!(told(&name, text), Some(true), "{text}");
        }
        assert_eq!(told("etc/nothing", ""), None);
    }
}
