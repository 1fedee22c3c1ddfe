// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the suite `demo` on one of its subjects and prints the worst sample of each recording:
//! what `punctual run demo --subject rt` does, from Rust.
//!
//! `./build`, then `cargo run --release -p punctual-runner --example worst`, with
//! `PUNCTUAL_TARGET=target/release/punctual-target`, as this program is elsewhere.

use std::error::Error;
use std::sync::atomic::AtomicBool;

use punctual_bench::system::Event;
use punctual_bench::virtual_bench::VirtualBench;
use punctual_kernels::{Catalog, paths};
use punctual_model::run::Request;
use punctual_model::{Record, Run};
use punctual_runner::systems::{Builder, Equipment};
use punctual_runner::{Choice, Job, Observer, Runner, choose, loads, suites};
use punctual_store::Store;

/// Says which step has begun.
struct Steps;

impl Observer for Steps {
    fn event(&self, run: &Run, event: &Event) {
        if let Event::Record(record) = event {
            if let Record::Started(step) = &**record {
                eprintln!("{}: {} / {}", run.id, step.probe, step.load);
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let suite = suites::find("demo")?;
    let subjects = choose(
        &suite,
        &Choice {
            names: &["rt".to_owned()],
            ..Choice::default()
        },
    )?;
    let loads = loads::of(&suite)?;
    let plan = suites::plan(&suite, &suite.steps, &loads, 1)?;

    let cache = paths::cache_dir()?;
    let say = &mut |message: &str| eprintln!("{message}");
    let builder = Builder {
        bench: &VirtualBench::open(&cache, suite.cpus.get())?,
        catalog: &Catalog::open(&cache)?,
        cache: &cache,
        equipment: &Equipment::of(&suite, &loads, say)?,
    };
    let systems = builder.build(&subjects, say)?;

    let directory = tempfile::tempdir()?;
    let store = Store::open(&directory.path().join("runs.db"))?;
    let runner = Runner {
        store: &store,
        observer: &Steps,
        cancel: &AtomicBool::new(false),
        resume: false,
    };
    let job = Job {
        group: 0,
        suite: &suite.name,
        subject: &subjects[0],
        system: systems[0].system.as_ref(),
        plan,
        request: Request::default(),
    };
    for run in runner.carry_out(&[job], 1)?.runs {
        for recording in &run.recordings {
            if let Some(worst) = recording.max() {
                println!("{}: {worst}", recording.title());
            }
        }
    }
    Ok(())
}
