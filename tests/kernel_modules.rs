// SPDX-License-Identifier: MIT OR Apache-2.0
//! Punctual's kernel modules on the kernels that it knows: each loads, works, refuses wrong input,
//! unloads and loads again, without a warning in the kernel's log.

use std::path::Path;
use std::process::Command;

use punctual_tests::{Ended, Scratch, sized, user_cache};

#[test]
fn the_modules_work_and_leave_no_warning() {
    let scratch = Scratch::new();
    let kmod = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kmod");
    let kernels = sized(
        &["debian-6.12-rt"][..],
        &[
            "debian-6.1",
            "debian-6.1-rt",
            "debian-6.12",
            "debian-6.12-rt",
        ],
    );
    for kernel in kernels {
        let fetched = scratch.run(&["kernel", "fetch", kernel]);
        assert_eq!(fetched.status, Some(0), "{}", fetched.stderr);
        let release = fetched.stderr.trim().rsplit(' ').next().unwrap().to_owned();
        let modules = scratch.path(&release);
        let built = Ended::of(Command::new(kmod.join("build")).arg(&release).arg(&modules));
        assert_eq!(built.status, Some(0), "{kernel}: {}", built.stderr);
        let image = user_cache()
            .join("punctual/kernels")
            .join(kernel)
            .join("vmlinuz");
        // QEMU before 8.1 does not give two CPUs fair turns, and then Linux 6.1 may spin for
        // ever while it boots.
        let cpus: &[&str] = if ["debian-6.1", "debian-6.1-rt"].contains(kernel) {
            &["1"]
        } else {
            sized(&["2"], &["1", "2"])
        };
        for cpus in cpus {
            let mut boot = Command::new(kmod.join("tests/boot"));
            let boot = Ended::of(boot.args([&image, &modules]).arg(cpus));
            let said = format!("{}{}", boot.stdout, boot.stderr);
            assert_eq!(boot.status, Some(0), "{kernel}, {cpus} CPUs: {said}");
        }
    }
}
