// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds where a CPU spins in the kernel for something that another one is to do, and what that one
//! did.

use std::collections::HashMap;

use super::attribution::Attribution;
use super::part::{Holder, Spin};
use crate::names::CodeKind;
use crate::walk::{Access, Number, Span, Walk};

/// A spin of a CPU: it pauses, looks again, pauses again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spun {
    /// The function that spins.
    pub(super) by: Number,
    pub(super) cpu: u32,
    /// Position of the first pause.
    from: u64,
    /// Position at which the CPU is back after the last pause.
    to: u64,
}

/// Returns all spins of a window, in order.
pub(super) fn all(walk: &Walk) -> Vec<Spun> {
    let mut found: Vec<Spun> = Vec::new();
    let mut places: HashMap<Number, usize> = HashMap::new();
    for pause in &walk.pauses {
        let to = back(walk, pause.at, pause.cpu);
        let place = *places.entry(pause.by).or_insert(found.len());
        if let Some(spun) = found.get_mut(place) {
            spun.to = to;
            continue;
        }
        found.push(Spun {
            by: pause.by,
            cpu: pause.cpu,
            from: pause.at,
            to,
        });
    }
    found
}

/// Returns where a CPU has its next turn.
fn back(walk: &Walk, position: u64, cpu: u32) -> u64 {
    let first = walk.spans.partition_point(|span| span.from < position);
    let own = walk.spans[first..].iter().find(|span| span.cpu == cpu);
    own.map_or(walk.total, |span| span.from)
}

impl Attribution<'_> {
    /// Returns the spin in which a CPU is at a position.
    pub(super) fn spin_at(&self, position: u64, cpu: u32) -> Option<Number> {
        let within = |spun: &&Spun| spun.cpu == cpu && (spun.from..spun.to).contains(&position);
        self.spun.iter().find(within).map(|spun| spun.by)
    }

    /// Returns the spins of the CPUs that went the sample's way.
    pub(super) fn spins(&self) -> Vec<Spin> {
        let of_sample = |spun: &&Spun| {
            let within = spun.from < self.end && spun.to > self.begin;
            within && self.stage(spun.from.max(self.begin)).1 == spun.cpu
        };
        let spin = |spun: &Spun| {
            let (from, to) = (spun.from.max(self.begin), spun.to.min(self.end));
            Spin {
                cpu: spun.cpu,
                function: self.text(spun.by).to_owned(),
                caller: self.on_behalf(spun.by).map(|by| self.text(by).to_owned()),
                from: self.at(from),
                length: self.at(to) - self.at(from),
                holder: self.holder(spun),
            }
        };
        self.spun.iter().filter(of_sample).map(spin).collect()
    }

    /// Returns the function for which a lock or the like works.
    fn on_behalf(&self, number: Number) -> Option<Number> {
        let mut callers = self.walk.chain(number).skip(1);
        callers.find(|caller| !self.kind(*caller).is_helper())
    }

    /// Returns the CPU that ended a spin: the last one that gave back the same lock or, if no lock
    /// was seen, the one that ran before.
    fn holder(&self, spun: &Spun) -> Option<Holder> {
        let lock = self.walk.waits.iter().rfind(|wait| wait.by == spun.by);
        let given_back = lock.and_then(|lock| {
            let ours = |unlock: &&Access| {
                unlock.address == lock.address && unlock.at <= spun.to && unlock.cpu != spun.cpu
            };
            self.walk.unlocks.iter().rfind(ours)
        });
        let certain = given_back.is_some();
        let (cpu, function) = if let Some(unlock) = given_back {
            (unlock.cpu, self.on_behalf(unlock.by)?)
        } else {
            let before = self.walk.spans.partition_point(|span| span.from < spun.to);
            let other = |span: &&Span| span.cpu != spun.cpu;
            let last = self.walk.spans[..before].iter().rfind(other)?;
            let helps = self.kind(last.top).is_helper();
            let function = if helps {
                self.on_behalf(last.top)?
            } else {
                last.top
            };
            (last.cpu, function)
        };
        let caller = self.walk.activation(function).parent;
        let caller = caller.filter(|caller| !self.is(*caller, CodeKind::User));
        Some(Holder {
            cpu,
            function: self.text(function).to_owned(),
            caller: caller.map(|caller| self.text(caller).to_owned()),
            certain,
        })
    }
}
