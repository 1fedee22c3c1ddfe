// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options that choose samples of a run.

use clap::Args;
use punctual_runner::loads;
use punctual_scope::explain::Wanted;

/// Samples of some measurements; all where nothing is asked for.
#[derive(Clone, Debug, Args)]
pub struct SampleArgs {
    /// Only samples of this probe
    #[arg(long, value_name = "NAME")]
    probe: Option<String>,
    /// Only samples under this load
    #[arg(long, value_name = "NAME|FILE")]
    load: Option<String>,
    /// Only samples of this variant of the probe
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
}

impl SampleArgs {
    /// Returns true if anything is named.
    pub fn is_given(&self) -> bool {
        self.probe.is_some() || self.load.is_some() || self.variant.is_some()
    }

    /// The chosen samples: the one with this number, or the `worst` worst.
    pub fn wanted(&self, sample: Option<u64>, worst: usize) -> Wanted {
        Wanted {
            probe: self.probe.clone(),
            load: self.load.as_deref().map(loads::name_of),
            variant: self.variant.clone(),
            sample,
            worst,
            faults: false,
        }
    }
}
