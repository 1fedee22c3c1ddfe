// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver of a guest's network cards, from its kernel's package.
//!
//! Fetched modules are kept by the kernel's release: `CACHE/network/RELEASE/e1000e.ko`.

use std::io;
use std::path::{Path, PathBuf};

use punctual_model::network::Card;

use crate::apt::Wanted;
use crate::error::KernelError;
use crate::{Kernel, packaged};

/// Further modules that the cards' modules need, in the order in which they are loaded. They are
/// modules of Linux 5.10, and parts of Debian's later kernels.
const BESIDES: [&str; 2] = ["pps_core", "ptp"];

/// The modules that drive a card, in the order in which they are loaded, fetched if need be. Both
/// cards' modules are taken together, so that a kernel's package is read once.
///
/// # Errors
/// If the kernel is not one of the distribution's, or its package has no such module.
pub fn modules(
    cache: &Path,
    kernel: &Kernel,
    card: Card,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<PathBuf>, KernelError> {
    let package = kernel.package.as_ref().ok_or_else(|| {
        let text = format!("its module {card} is not at hand: it is no kernel of Debian's");
        KernelError::Io {
            path: kernel.id.clone().into(),
            error: io::Error::other(text),
        }
    })?;
    let names = Card::ALL.map(Card::name);
    let wanted = Wanted {
        needed: &names,
        besides: &BESIDES,
    };
    let place = packaged::modules(cache, "network", kernel, package, wanted, progress)?;
    let all = BESIDES.into_iter().chain([card.name()]);
    let all = all.map(|name| place.join(format!("{name}.ko")));
    Ok(all.filter(|path| path.is_file()).collect())
}
