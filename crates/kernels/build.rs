// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernels' files and the modules' sources are compiled in; Cargo does not notice a new one by itself.

fn main() {
    println!("cargo::rerun-if-changed=../../kernels");
    println!("cargo::rerun-if-changed=../../kmod");
}
