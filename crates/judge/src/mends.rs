// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules without which runs were once told fit that are not, each by its name: the test on
//! made-up evidence takes out one after the other, and must find it. Outside of tests all hold.

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
    /// What is not what its plan asks for is no whole answer, whatever it says.
    Fewer,
    /// A file in another form, or as it was at another moment, is the same measurement.
    Forms,
    /// Files of other programs that were measured otherwise are no runs of one measurement.
    Otherwise,
    /// A share is of what was measured by the same plan, in the same kind of time.
    Reference,
    /// What spoils a baseline's runs is a gap, as in those that are judged.
    Baseline,
}

/// Whether a rule is taken out.
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

    /// Takes a rule out of what `work` does.
    pub fn taken_out<T>(mend: Option<Mend>, work: impl FnOnce() -> T) -> T {
        OUT.set(mend);
        let done = work();
        OUT.set(None);
        done
    }
}
