//! Where subjects run: kernels, the guest's file system, and the virtual bench.
#![forbid(unsafe_code)]

pub mod cache;
pub mod checksum;
mod console;
mod elf;
mod error;
pub mod host;
pub mod initramfs;
pub mod kernels;
pub mod kmod;
pub mod paths;
pub mod site;
pub mod virtual_bench;
mod watch;
mod workdir;

pub use console::tail;
pub use error::BenchError;
pub use workdir::WorkDir;
