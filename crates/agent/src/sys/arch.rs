// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is one architecture's own: its instructions, and the devices by which a guest reaches
//! its bench. Each architecture has one file, and each file the same functions.

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
pub use aarch64::*;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod other;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub use other::*;
