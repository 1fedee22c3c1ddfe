// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Punctual adds to QEMU: the same guest by hand and by `punctual run`.
//!
//! `cargo bench -p punctual-benches --bench overhead`, after `./build` and
//! `punctual kernel fetch debian-6.12-rt`.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use punctual_bench::virtual_bench::{
    Machine, Memory, Start, TURN, VirtualBench, cmdline, hardware,
};
use punctual_benches::{figure, median, time};
use punctual_kernels::Catalog;
use punctual_kernels::initramfs;
use punctual_kernels::paths;
use punctual_tests::{Scratch, programs};

const ROUNDS: usize = 3;

const LOAD: &str = include_str!("../loads/stress.toml");

const STEP: &str = "probe = \"timer\"\nload = \"stress\"\nsamples = 3000\n";

fn main() -> Result<()> {
    let (bench, machine) = machine()?;
    let scratch = Scratch::new();
    let suite = format!("name = \"overhead\"\nsummary = \"\"\n[[step]]\n{STEP}");
    let suite = scratch.file("overhead.toml", suite);
    let plan = format!(
        "seed = 1\n[[step]]\n{STEP}[loads.stress]\n{}",
        LOAD.replace("[[worker]]", "[[loads.stress.worker]]")
    );
    let report = scratch.path("report.html");
    let report = report.to_string_lossy();

    let (mut by_hand, mut cold, mut warm, mut show) = (vec![], vec![], vec![], vec![]);
    let (mut booting, mut measuring, mut resuming) = (vec![], vec![], vec![]);
    for round in 0..ROUNDS {
        eprintln!("round {} of {ROUNDS}", round + 1);
        let run = |more: &[&str]| {
            let common = [
                "run",
                &suite,
                "--kernel",
                "debian-6.12-rt",
                "--report",
                &report,
            ];
            time(&mut scratch.punctual(&[&common, more].concat()))
        };
        by_hand.push(time(&mut qemu_by_hand(
            &machine,
            &plan,
            &scratch.path("hand"),
        )?)?);
        cold.push(run(&["--cold"])?);
        warm.push(run(&[])?);
        show.push(time(
            &mut scratch.punctual(&["show", "r1", "--report", &report]),
        )?);
        let never = AtomicBool::new(false);
        let outcome = bench.run(
            &machine,
            &plan,
            Start::Cold,
            &mut |_| ControlFlow::Continue(()),
            &never,
        );
        outcome.result?;
        booting.push(outcome.preparing);
        measuring.push(outcome.measuring);
        let outcome = bench.run(
            &machine,
            &plan,
            Start::Resumed,
            &mut |_| ControlFlow::Continue(()),
            &never,
        );
        outcome.result?;
        resuming.push(outcome.preparing);
    }
    let (by_hand, cold, warm) = (median(&by_hand), median(&cold), median(&warm));
    let (booting, measuring) = (median(&booting), median(&measuring));
    println!("medians of {ROUNDS} rounds, wake-up latency under stress, 3 s of virtual time");
    println!("QEMU by hand               {by_hand:6.2} s");
    println!(
        "punctual run --cold        {cold:6.2} s  = {:.3} times by hand",
        cold / by_hand
    );
    println!(
        "  boot                     {booting:6.2} s  = {:3.0} %",
        100.0 * booting / cold
    );
    println!(
        "  measuring                {measuring:6.2} s  = {:3.0} %",
        100.0 * measuring / cold
    );
    println!(
        "  table, report, store     {:6.2} s  = {:3.0} %",
        median(&show),
        100.0 * median(&show) / cold
    );
    println!(
        "punctual run (warm)        {warm:6.2} s  = {:.3} times by hand",
        warm / by_hand
    );
    println!("  resuming                 {:6.2} s", median(&resuming));
    println!("  outside of measuring     {:6.2} s", warm - measuring);
    figure("overhead/cold-by-hand", cold / by_hand);
    figure("overhead/warm-by-hand", warm / by_hand);
    figure("overhead/boot-share", booting / cold);
    figure("overhead/report-share", median(&show) / cold);
    Ok(())
}

fn machine() -> Result<(VirtualBench, Machine)> {
    let cache = paths::cache_dir()?;
    let bench = VirtualBench::open(&cache, 1)?;
    let kernel = Catalog::open(&cache)?.get("debian-6.12-rt")?;
    let busybox = initramfs::find_busybox()?;
    let target = programs().join("punctual-target");
    let guest = initramfs::base(kernel.architecture, &target, &busybox, &kernel.modules, &[])?;
    let (initramfs, initramfs_sha256) = bench.keep_initramfs(&guest)?;
    let machine = Machine {
        cmdline: cmdline(&kernel, "", 1),
        cpus: 1,
        turn: TURN,
        network: None,
        kernel,
        initramfs,
        initramfs_sha256,
        memory_mib: 512,
        ns_per_insn: 1,
    };
    Ok((bench, machine))
}

/// The same guest, which is not stopped on its way, to its power-off.
fn qemu_by_hand(machine: &Machine, plan: &str, directory: &Path) -> Result<Command> {
    fs::create_dir_all(directory)?;
    fs::write(directory.join("plan"), plan)?;
    let words = machine.arguments(Memory::Fresh).into_iter();
    let words = words.map(|word| match word.to_str() {
        Some("watchdog=pause") => "watchdog=none".into(),
        // Nobody speaks to it.
        Some("stdio") => "null".into(),
        _ => word,
    });
    let mut command = Command::new(hardware(machine.kernel.architecture).program);
    command.args(words).current_dir(directory);
    Ok(command)
}
