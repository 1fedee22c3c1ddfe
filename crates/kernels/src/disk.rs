// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's disk: modules of the distribution's own kernel for a disk whose answers come in the
//! guest's time, and for one that keeps files.
//!
//! A device that the host serves cannot be exact, as its answers would come in the host's time. So
//! both disks are drivers of the subject's own kernel:
//!
//! - `null_blk`, `/dev/nullb0`, 1 GiB: requests go the whole way through the block layer, one at a
//!   time, and a timer's interrupt answers each after [`SERVICE_US`]. Reads return no real data.
//! - `brd`, `/dev/ram0`: a disk in memory that answers at once, for a file system (ext4).
//!
//! Fetched modules are kept by the kernel's release: `CACHE/disk/RELEASE/null_blk.ko`.

use std::path::{Path, PathBuf};

use crate::apt::Wanted;
use crate::error::KernelError;
use crate::{Kernel, packaged};

/// The time that `/dev/nullb0` takes for a request, in microseconds. With requests of 128 KiB,
/// which is the kernel's read-ahead, this makes 50 MiB/s, as a disk of 2005.
pub const SERVICE_US: u32 = 2_500;

/// A module, and the parameters with which it is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskModule {
    /// The file, unpacked.
    pub path: PathBuf,
    /// The parameters, such as `gb=1 irqmode=2`; may be empty.
    pub parameters: String,
}

/// The modules without which there is no disk. The others are parts of some kernels, or do not
/// exist: Linux 7.2 has no `crc32c_generic`.
const NEEDED: [&str; 3] = ["null_blk", "brd", "ext4"];

/// The modules' names and parameters, in the order in which they are loaded.
fn modules_of_disk() -> [(&'static str, String); 8] {
    let answers_by_timer = 2;
    // Without a limit of its own it takes 255 sectors, one less than the kernel reads ahead.
    let read_ahead_sectors = 256;
    let null_blk = format!(
        "nr_devices=1 gb=1 bs=512 max_sectors={read_ahead_sectors} submit_queues=1 \
         hw_queue_depth=1 irqmode={answers_by_timer} \
         completion_nsec={}",
        SERVICE_US * 1_000
    );
    [
        ("configfs", String::new()),
        ("null_blk", null_blk),
        ("brd", "rd_nr=1 rd_size=786432".to_owned()),
        ("crc16", String::new()),
        ("crc32c_generic", String::new()),
        ("mbcache", String::new()),
        ("jbd2", String::new()),
        ("ext4", String::new()),
    ]
}

/// The modules for a kernel, fetched if need be. Returns an error if the kernel is not one of the
/// distribution's.
pub fn modules(
    cache: &Path,
    kernel: &Kernel,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<DiskModule>, KernelError> {
    if let Some(built) = &kernel.built {
        return of_build(kernel, &built.join("disk"));
    }
    let package = kernel.package.as_ref().ok_or_else(|| {
        let text = "it is no kernel of Debian's, nor one that `punctual kernel build` made";
        not_at_hand(kernel, text)
    })?;
    let names = modules_of_disk().map(|(name, _)| name);
    let (needed, besides): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| NEEDED.contains(name));
    let wanted = Wanted {
        needed: &needed,
        besides: &besides,
    };
    let place = packaged::modules(cache, "disk", kernel, package, wanted, progress)?;
    Ok(those_in(&place))
}

/// The modules found in a directory, in the order in which they are loaded.
fn those_in(directory: &Path) -> Vec<DiskModule> {
    let all = modules_of_disk().map(|(name, parameters)| DiskModule {
        path: directory.join(format!("{name}.ko")),
        parameters,
    });
    all.into_iter().filter(|one| one.path.is_file()).collect()
}

fn not_at_hand(kernel: &Kernel, why: &str) -> KernelError {
    let text = format!("its modules null_blk, brd and ext4 are not at hand: {why}");
    KernelError::Io {
        path: kernel.id.clone().into(),
        error: std::io::Error::other(text),
    }
}

/// The paths of the modules in a build directory; each exists, or is a part of the kernel, or does
/// not exist in that version.
pub(crate) fn built_modules() -> [&'static str; 8] {
    [
        "fs/configfs/configfs.ko",
        "drivers/block/null_blk/null_blk.ko",
        "drivers/block/brd.ko",
        "lib/crc16.ko",
        "crypto/crc32c_generic.ko",
        "fs/mbcache.ko",
        "fs/jbd2/jbd2.ko",
        "fs/ext4/ext4.ko",
    ]
}

/// The modules that were built with a kernel. Parameters define the disks themselves, so these must
/// be modules.
fn of_build(kernel: &Kernel, directory: &Path) -> Result<Vec<DiskModule>, KernelError> {
    for needed in ["null_blk", "brd"] {
        if !directory.join(format!("{needed}.ko")).is_file() {
            let text =
                format!("{needed} was not built as a module (BLK_DEV_NULL_BLK=m, BLK_DEV_RAM=m)");
            return Err(not_at_hand(kernel, &text));
        }
    }
    Ok(those_in(directory))
}
