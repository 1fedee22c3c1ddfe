// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver of a guest's network cards, from its kernel's package.
//!
//! What was fetched is kept by the kernel's release: `CACHE/network/RELEASE/e1000e.ko`.

use std::io;
use std::path::{Path, PathBuf};

use punctual_model::network::Card;

use crate::error::KernelError;
use crate::{Kernel, packaged};

/// The module that drives a card, fetched if need be. Both cards' modules are taken together,
/// so that a kernel's package is read once; what else they need is a part of Debian's kernels.
///
/// # Errors
/// Where the kernel is none of the distribution's, or its package has no such module.
pub fn module(
    cache: &Path,
    kernel: &Kernel,
    card: Card,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, KernelError> {
    let package = kernel.package.as_ref().ok_or_else(|| {
        let text = format!("its module {card} is not at hand: it is no kernel of Debian's");
        KernelError::Io {
            path: kernel.id.clone().into(),
            error: io::Error::other(text),
        }
    })?;
    let names = Card::ALL.map(Card::name);
    let place = packaged::modules(cache, "network", kernel, package, &names, progress)?;
    Ok(place.join(format!("{card}.ko")))
}
