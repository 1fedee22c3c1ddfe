// SPDX-License-Identifier: MIT OR Apache-2.0
//! The effect of a seed: the starts of loads and probes, relative to each other and the tick.

use punctual_model::Nanos;

/// Generates spans that depend on a seed and on nothing else.
///
/// The generator is `SplitMix64` (Steele, Lea, Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Phases {
    state: u64,
}

impl Phases {
    /// Creates the phases of one step of a plan.
    pub fn new(seed: u64, step: u32) -> Self {
        let mut phases = Self { state: seed };
        phases.state = phases.next() ^ u64::from(step);
        phases
    }

    /// Returns a span from zero up to, not including, `limit`.
    pub fn below(&mut self, limit: Nanos) -> Nanos {
        Nanos(self.number(u64::try_from(limit.0).unwrap_or(0)) as i64)
    }

    /// Returns a number from zero up to, not including, `limit`; zero if `limit` is zero.
    pub fn number(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // The first outputs for seed 0, as published with the reference implementation.
        let mut phases = Phases { state: 0 };
        assert_eq!(phases.next(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(phases.next(), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn seeds_and_steps_differ_and_repeat() {
        let first = |seed, step| Phases::new(seed, step).below(Nanos::from_millis(50));
        assert_eq!(first(1, 0), first(1, 0));
        assert_ne!(first(1, 0), first(2, 0));
        assert_ne!(first(1, 0), first(1, 1));
        assert!(first(9, 9) < Nanos::from_millis(50));
    }
}
