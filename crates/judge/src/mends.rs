// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules whose lack once let unfit runs pass as fit, each by its name. The test on made-up evidence
//! removes one after the other, and must notice. Outside of tests all apply.

/// A rule that was once missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mend {
    /// Two runs with one seed are one run only if their digests are equal.
    Digest,
    /// Another machine is another subject.
    Machine,
    /// Another plan beside a run is a gap.
    Plan,
    /// A run in real time counts once.
    Copies,
    /// Each step answers for itself.
    Steps,
    /// A plan that cannot be read is a gap.
    Unreadable,
    /// One sample supports no quantile.
    OneSample,
    /// A recording that is not what its plan asks for is no complete answer, whatever it says.
    Fewer,
    /// A file in another form, or as it was at another time, is the same measurement.
    Forms,
    /// Files of other programs that were measured differently are no runs of one measurement.
    Otherwise,
    /// A share compares with what was measured by the same plan, in the same kind of time.
    Reference,
    /// Anything that spoils a baseline's runs is a gap, as in those that are judged.
    Baseline,
}

/// Returns true if a rule is removed.
#[cfg(not(test))]
pub const fn without(_: Mend) -> bool {
    false
}

#[cfg(test)]
pub use tests::without;

#[cfg(test)]
pub mod tests {
    use std::cell::Cell;

    use super::Mend;

    thread_local! {
        static OUT: Cell<Option<Mend>> = const { Cell::new(None) };
    }

    pub fn without(mend: Mend) -> bool {
        OUT.get() == Some(mend)
    }

    /// Runs `work` with a rule removed.
    pub fn taken_out<T>(mend: Option<Mend>, work: impl FnOnce() -> T) -> T {
        OUT.set(mend);
        let done = work();
        OUT.set(None);
        done
    }
}
