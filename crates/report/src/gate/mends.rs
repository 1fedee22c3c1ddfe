// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules without which a gate says more than is true, each by its name.
//! The test on made-up evidence takes out one after the other, and must notice that. Outside of
//! tests all rules hold.

/// A rule of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mend {
    /// A copy of a run counts once.
    Copies,
    /// Two machines, two plans or two outcomes of one seed on one side are a gap.
    OneMeasurement,
    /// A step that was interrupted is a gap, and so is one that is short of what it asks for.
    Interrupted,
    /// Each step answers for itself.
    Steps,
    /// A plan that cannot be read is a gap.
    Unreadable,
    /// A baseline of another machine is none.
    Machine,
    /// Runs above a hypervisor tell of more than their kernel.
    Hypervisor,
}

/// Returns true if a rule is taken out.
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
