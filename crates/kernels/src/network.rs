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

/// Further modules that the cards' modules need, in the order in which they are loaded: the first
/// two are modules of Linux 5.10, and parts of Debian's later kernels; the others are igb's.
const BESIDES: [&str; 4] = ["pps_core", "ptp", "dca", "i2c-algo-bit"];

/// Returns true if a card's module needs a further one.
fn needs(card: Card, module: &str) -> bool {
    card == Card::Igb || !["dca", "i2c-algo-bit"].contains(&module)
}

/// The modules that drive a card, in the order in which they are loaded, fetched if need be. All
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
    let besides = BESIDES.into_iter().filter(|module| needs(card, module));
    let all = besides.chain([card.name()]);
    let all = all.map(|name| place.join(format!("{name}.ko")));
    Ok(all.filter(|path| path.is_file()).collect())
}
