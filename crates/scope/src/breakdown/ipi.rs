// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts that one CPU sends another: their senders, and the moments when they were taken.

use std::collections::HashMap;

use super::attribution::Attribution;
use super::part::Ipi;
use crate::arch::IPIS;
use crate::names::Name;
use crate::walk::{Number, Walk};

/// The number of the sender's callers that are reported.
const CALLERS: usize = 8;

/// An interrupt from one CPU to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// The function that sent it.
    sender: Number,
    /// The entry at which it was taken.
    pub(super) entry: Number,
    /// The CPU that sent it, and the one that took it.
    pub(super) from: u32,
    pub(super) to: u32,
    /// Position at which it had been sent.
    pub(super) left: u64,
    /// Position at which its handler began.
    pub(super) taken: u64,
}

/// A run of a function that sends such interrupts.
#[derive(Clone, Copy)]
struct Sender {
    number: Number,
    cpu: u32,
    sent: u64,
}

/// Returns all that were taken in a window, in order. The sender of one is the last CPU that sent
/// its kind before, after the same CPU had taken one.
pub(super) fn all(walk: &Walk, names: &[Name]) -> Vec<Sent> {
    if !walk.in_turn {
        return Vec::new();
    }
    let kind = |number: usize, is: fn(&(&str, &str), &str) -> bool| {
        let text = &names[walk.activations[number].func as usize].text;
        IPIS.iter().position(|kind| is(kind, text))
    };
    let mut senders: [Vec<Sender>; IPIS.len()] = Default::default();
    let mut entries: Vec<(u64, usize, Number)> = Vec::new();
    for (number, activation) in walk.activations.iter().enumerate() {
        let Some(begin) = activation.begin else {
            continue;
        };
        if let Some(kind) = kind(number, |(_, sender), text| *sender == text) {
            senders[kind].extend(sender(walk, number as Number, begin));
        } else if let Some(kind) = kind(number, |(entry, _), text| *entry == text) {
            entries.push((begin, kind, number as Number));
        }
    }
    entries.sort_unstable();
    let mut before: HashMap<(u32, usize), u64> = HashMap::new();
    let mut found = Vec::new();
    for (taken, kind, entry) in entries {
        let Some(to) = walk.cpu_at(taken) else {
            continue;
        };
        let since = before.insert((to, kind), taken).unwrap_or(0);
        let fits = |sender: &&Sender| sender.cpu != to && (since..=taken).contains(&sender.sent);
        let sender = senders[kind].iter().filter(fits).max_by_key(|one| one.sent);
        found.extend(sender.map(|sender| Sent {
            sender: sender.number,
            entry,
            from: sender.cpu,
            to,
            left: sender.sent,
            taken,
        }));
    }
    found
}

/// Finds when it was sent: by the function's end, or where its CPU's turn ends within it.
fn sender(walk: &Walk, number: Number, begin: u64) -> Option<Sender> {
    let cpu = walk.cpu_at(begin)?;
    let end = walk.activation(number).end.unwrap_or(walk.total);
    let first = walk.spans.partition_point(|span| span.from < begin);
    let within = walk.spans[first..]
        .iter()
        .take_while(|span| span.from < end);
    let turn = within.map(|span| (span.cpu, span.from));
    let other = turn.clone().find(|(other, _)| *other != cpu);
    let sent = other.map_or(end, |(_, from)| from);
    Some(Sender { number, cpu, sent })
}

impl Attribution<'_> {
    /// Returns those taken by the CPUs that went the sample's way.
    pub(super) fn taken(&self) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(|sent| {
            let within = self.begin <= sent.taken && sent.taken < self.end;
            // Behind it is its handler's way: what is before it may be another CPU's.
            within && self.stage(sent.taken).1 == sent.to
        })
    }

    /// The same, in the form of the breakdown.
    pub(super) fn ipis(&self) -> Vec<Ipi> {
        let ipi = |sent: &Sent| {
            let callers = self.walk.chain(sent.sender).skip(1);
            let callers = callers
                .take(CALLERS)
                .map(|number| self.text(number).to_owned());
            Ipi {
                sender: self.text(sent.sender).to_owned(),
                callers: callers.collect(),
                thread: self
                    .thread(self.walk.activation(sent.sender).task)
                    .to_owned(),
                from: sent.from,
                entry: self.text(sent.entry).to_owned(),
                to: sent.to,
                sent: self.at(sent.left.max(self.begin)),
                taken: self.at(sent.taken),
            }
        };
        self.taken().map(ipi).collect()
    }
}
