// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program that runs programs of system calls. See `punctual-calls --help`.

use std::process::ExitCode;

use lexopt::Parser;

fn main() -> ExitCode {
    match punctual_calls::run(&mut Parser::from_env()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("punctual-calls: {error:#}");
            let usage = error.downcast_ref::<lexopt::Error>().is_some();
            ExitCode::from(if usage { 2 } else { 1 })
        }
    }
}
