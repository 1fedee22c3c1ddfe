// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual-fuzz [--inputs N] [--seed N] [--from N] [TARGET…]`: long rounds.
//! `punctual-fuzz --seeds DIRECTORY TARGET`: its sound inputs, as files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use std::{env, fs};

use punctual_fuzz::{Found, Round, TARGETS, Target};

/// An input that is read for so long on the wall is reported, and ends the program.
const HANGS: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    match Arguments::read() {
        Ok(arguments) => arguments.carry_out(),
        Err(reason) => {
            eprintln!("punctual-fuzz: {reason}");
            ExitCode::from(2)
        }
    }
}

struct Arguments {
    inputs: u64,
    seed: u64,
    from: u64,
    /// Where sound inputs are written, and nothing is read.
    seeds: Option<PathBuf>,
    targets: Vec<&'static Target>,
}

impl Arguments {
    fn read() -> Result<Self, String> {
        let (mut inputs, mut seed, mut from, mut targets) = (100_000, 1, 0, Vec::new());
        let mut seeds = None;
        let mut words = env::args().skip(1);
        while let Some(word) = words.next() {
            let mut number = || {
                let number = words.next().and_then(|word| word.parse().ok());
                number.ok_or(format!("{word}: expected a number"))
            };
            match word.as_str() {
                "--inputs" => inputs = number()?,
                "--seed" => seed = number()?,
                "--from" => from = number()?,
                "--seeds" => {
                    let directory = words.next().ok_or("--seeds: expected a directory")?;
                    seeds = Some(directory.into());
                }
                name => targets.push(find(name)?),
            }
        }
        if targets.is_empty() {
            targets.extend(TARGETS);
        }
        Ok(Self {
            inputs,
            seed,
            from,
            seeds,
            targets,
        })
    }

    fn carry_out(&self) -> ExitCode {
        let mut failures = 0;
        if let Some(directory) = &self.seeds {
            return self.write_seeds(directory);
        }
        for target in &self.targets {
            let now = Arc::new(AtomicU64::new(self.from));
            watch(target.name, &now);
            let round = Round {
                target,
                seed: self.seed,
                from: self.from,
                inputs: self.inputs,
                now: &now,
            };
            failures += self.report(target, &round.run());
        }
        if failures > 0 {
            return ExitCode::FAILURE;
        }
        ExitCode::SUCCESS
    }

    fn write_seeds(&self, directory: &Path) -> ExitCode {
        for target in &self.targets {
            for (seed, number) in (target.seeds)().iter().zip(0..) {
                let path = directory.join(format!("{}-{number}", target.name));
                if let Err(error) = fs::write(&path, seed) {
                    eprintln!("punctual-fuzz: {}: {error}", path.display());
                    return ExitCode::FAILURE;
                }
            }
        }
        ExitCode::SUCCESS
    }

    fn report(&self, target: &Target, found: &Found) -> usize {
        println!(
            "{:10} {} inputs of seed {}, {} accepted, {} failed, slowest {:.1} ms (input {}), largest {} KiB (input {})",
            target.name,
            self.inputs,
            self.seed,
            found.accepted,
            found.failures.len(),
            found.slowest.as_secs_f64() * 1e3,
            found.slowest_input,
            found.largest / 1024,
            found.largest_input,
        );
        for (number, input, wrong) in found.failures.iter().take(5) {
            let length = input.len();
            println!("  input {number} ({length} bytes) {wrong}: --from {number} --inputs 1");
        }
        found.failures.len()
    }
}

fn find(name: &str) -> Result<&'static Target, String> {
    let known = || TARGETS.iter().map(|target| target.name);
    let found = TARGETS.iter().find(|target| target.name == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = known().collect();
        format!("{name}: expected one of {}", known.join(", "))
    })
}

/// Ends the program where one input takes too long.
fn watch(name: &'static str, now: &Arc<AtomicU64>) {
    let now = Arc::downgrade(now);
    thread::spawn(move || {
        let mut last = None;
        while let Some(now) = now.upgrade() {
            let number = now.load(Ordering::Relaxed);
            drop(now);
            if last == Some(number) {
                eprintln!("{name}: input {number} is read for {} s", HANGS.as_secs());
                std::process::exit(1);
            }
            last = Some(number);
            thread::sleep(HANGS);
        }
    });
}
