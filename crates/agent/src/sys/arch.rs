// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts specific to an architecture: its instructions, and the devices by which a guest reaches
//! its bench. Each architecture has one file, and all files have the same functions.

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
pub use aarch64::*;

#[cfg(target_arch = "arm")]
mod arm;
#[cfg(target_arch = "arm")]
pub use arm::*;

#[cfg(target_arch = "riscv64")]
mod riscv64;
#[cfg(target_arch = "riscv64")]
pub use riscv64::*;

#[cfg(any(target_arch = "arm", target_arch = "riscv64"))]
mod without_bench;
