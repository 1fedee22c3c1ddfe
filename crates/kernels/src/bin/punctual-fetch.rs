// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fetches kernels by their ids, as `punctual kernel fetch` does: a small program, so that
//! `./demo` fetches them while the rest is compiled.
#![forbid(unsafe_code)]

use std::error::Error;
use std::iter;
use std::process::ExitCode;

use punctual_kernels::{Catalog, paths};

fn main() -> ExitCode {
    let ids: Vec<String> = std::env::args().skip(1).collect();
    match fetch(&ids) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The whole chain on one line, as `punctual` prints it.
            let chain = iter::successors(Some(&*error), |cause| (*cause).source());
            let said: Vec<String> = chain.map(ToString::to_string).collect();
            eprintln!("punctual-fetch: {}", said.join(": "));
            ExitCode::FAILURE
        }
    }
}

fn fetch(ids: &[String]) -> Result<(), Box<dyn Error>> {
    let catalog = Catalog::open(&paths::cache_dir()?)?;
    for id in ids {
        let kernel = catalog.fetch(id, false, &mut |message| eprintln!("{message}"))?;
        eprintln!("{id} is in the cache: Linux {}", kernel.release);
    }
    Ok(())
}
