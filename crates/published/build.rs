// SPDX-License-Identifier: MIT OR Apache-2.0
//! The documents are compiled in: a changed one must be noticed.
fn main() {
    println!("cargo:rerun-if-changed=../../published");
}
