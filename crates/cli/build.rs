// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suites and loads are compiled in; Cargo does not notice a new one by itself.

fn main() {
    println!("cargo::rerun-if-changed=../../suites");
    println!("cargo::rerun-if-changed=../../loads");
}
