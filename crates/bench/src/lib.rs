//! Where subjects run: kernels, the guest's file system, and the virtual bench.
#![forbid(unsafe_code)]

pub mod cache;
pub mod checksum;
mod elf;
pub mod initramfs;
pub mod kernels;
pub mod paths;
pub mod virtual_bench;
