// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists what reached a CPU that was to be left alone, its source and its cost, over all
//! interruptions of a recording.

use std::cmp::Reverse;

use punctual_model::Nanos;

use crate::breakdown::{Arrival, Breakdown, Ipi};
use crate::explain::Explained;

/// The intruders on the CPU of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// The recording's number in its run.
    pub recording: usize,
    /// The intruders, with the one that took most time first.
    pub intruders: Vec<Intruder>,
    /// The samples whose intruders cannot be determined, with the reasons.
    pub untold: Vec<(u64, String)>,
}

/// An intruder: something that came in again and again from the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intruder {
    /// The entry to which the CPU went, such as `apic_timer_interrupt`; or the thread that got it.
    pub entry: String,
    /// The work that was carried out there.
    pub did: Vec<String>,
    /// The sender of the interrupt, if another CPU sent it.
    pub sender: Option<Sender>,
    /// The number of times.
    pub times: usize,
    /// The time that the CPU spent on it, all together.
    pub sum: Nanos,
    /// The longest single time.
    pub longest: Nanos,
    /// The number of the sample with the longest time.
    pub longest_in: u64,
}

/// The sender of an interrupt to another CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The CPU that sent it.
    pub cpu: u32,
    /// The threads for which it ran, each once; for an interrupt, the thread that it met.
    pub threads: Vec<String>,
    /// The function that sent it, and those that called it, innermost first.
    pub functions: Vec<String>,
}

impl Sender {
    /// Returns true if both sent it from the same place.
    fn is_same(&self, other: &Self) -> bool {
        (self.cpu, &self.functions) == (other.cpu, &other.functions)
    }

    /// Adds the threads of another sender at the same place.
    fn also(&mut self, other: Self) {
        for thread in other.threads {
            if !self.threads.contains(&thread) {
                self.threads.push(thread);
            }
        }
    }

    fn of(ipi: &Ipi) -> Self {
        let functions = std::iter::once(&ipi.sender).chain(&ipi.callers);
        Self {
            cpu: ipi.from,
            threads: vec![ipi.thread.clone()],
            functions: functions.cloned().collect(),
        }
    }
}

impl Intruder {
    /// Returns the intruder in words: `apic_timer_interrupt: tick_nohz_handler`.
    pub fn name(&self) -> String {
        match self.did.as_slice() {
            [] => self.entry.clone(),
            did => format!("{}: {}", self.entry, did.join(", ")),
        }
    }

    /// The same, with one name for each piece of work.
    pub fn names(&self) -> Vec<String> {
        match self.did.as_slice() {
            [] => vec![self.entry.clone()],
            did => did
                .iter()
                .map(|did| format!("{}: {did}", self.entry))
                .collect(),
        }
    }
}

/// Audits the CPU of a recording, whose interruptions are all in `explained`.
pub fn audit(recording: usize, explained: &[Explained]) -> Audit {
    let own = explained
        .iter()
        .filter(|one| one.chosen.recording == recording);
    let own = own.map(|one| (one.chosen.sample.seq, one.breakdown.as_ref()));
    let told = own
        .clone()
        .filter_map(|(seq, found)| Some((seq, found.ok()?)));
    let untold = own.filter_map(|(seq, found)| Some((seq, found.err()?.clone())));
    Audit {
        recording,
        intruders: intruders(told),
        untold: untold.collect(),
    }
}

/// Returns the intruders of these interruptions, each of which comes with its sample's number.
fn intruders<'a>(gaps: impl Iterator<Item = (u64, &'a Breakdown)>) -> Vec<Intruder> {
    let mut found: Vec<Intruder> = Vec::new();
    for (seq, gap) in gaps {
        for arrival in &gap.arrivals {
            let sender = arrival.ipi.and_then(|number| gap.ipis.get(number));
            note(&mut found, seq, arrival, sender.map(Sender::of));
        }
    }
    found.sort_by_cached_key(|one| (Reverse((one.sum, one.times)), one.name()));
    found
}

fn note(found: &mut Vec<Intruder>, seq: u64, arrival: &Arrival, sender: Option<Sender>) {
    let Arrival {
        entry, did, own, ..
    } = arrival;
    let is_same = |one: &&mut Intruder| {
        let same_sender = match (&one.sender, &sender) {
            (Some(one), Some(other)) => one.is_same(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        same_sender && (&one.entry, &one.did) == (entry, did)
    };
    match found.iter_mut().find(is_same) {
        Some(one) => {
            one.times += 1;
            one.sum += *own;
            if *own > one.longest {
                (one.longest, one.longest_in) = (*own, seq);
            }
            if let (Some(known), Some(sender)) = (&mut one.sender, sender) {
                known.also(sender);
            }
        }
        None => found.push(Intruder {
            entry: entry.clone(),
            did: did.clone(),
            sender,
            times: 1,
            sum: *own,
            longest: *own,
            longest_in: seq,
        }),
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::probe::SampleSpan;

    use super::*;

    fn gap(arrivals: &[(&str, &[&str], i64, Option<usize>)], senders: &[&str]) -> Breakdown {
        let arrival = |(entry, did, own, ipi): &(&str, &[&str], i64, Option<usize>)| Arrival {
            entry: (*entry).to_owned(),
            did: did.iter().map(|did| (*did).to_owned()).collect(),
            own: Nanos(*own),
            ipi: *ipi,
        };
        let ipi = |caller: &&str| Ipi {
            sender: "native_send_call_func_ipi".to_owned(),
            callers: vec![(*caller).to_owned()],
            thread: "busybox".to_owned(),
            from: 0,
            entry: String::new(),
            to: 1,
            sent: Nanos::ZERO,
            taken: Nanos::ZERO,
        };
        Breakdown {
            arrivals: arrivals.iter().map(arrival).collect(),
            ipis: senders.iter().map(ipi).collect(),
            ..Breakdown::empty(SampleSpan::Gap, Nanos(1_000))
        }
    }

    #[test]
    fn the_same_from_the_same_place_is_one_and_what_took_most_time_comes_first() {
        let tick: (&str, &[&str], _, _) = ("apic_timer_interrupt", &["tick"], 300, None);
        let flush = |own, ipi| ("call_function", &["flush"][..], own, Some(ipi));
        let gaps = [
            gap(&[tick], &[]),
            gap(
                &[flush(900, 0), ("kworker", &["vmstat_update"], 100, None)],
                &["zap"],
            ),
            gap(&[flush(400, 1), tick], &["other", "unmap"]),
            gap(&[flush(950, 0)], &["zap"]),
        ];
        let found = intruders((0..).zip(&gaps));
        let told = |one: &Intruder| {
            let sender = one.sender.as_ref().map(|one| one.functions[1].clone());
            let numbers = (one.times, one.sum.0, one.longest.0, one.longest_in);
            (one.name(), sender, numbers)
        };
        let expected = [
            ("call_function: flush", Some("zap"), (2, 1_850, 950, 3)),
            ("apic_timer_interrupt: tick", None, (2, 600, 300, 0)),
            ("call_function: flush", Some("unmap"), (1, 400, 400, 2)),
            ("kworker: vmstat_update", None, (1, 100, 100, 1)),
        ];
        let expected = expected
            .map(|(name, sender, numbers)| (name.to_owned(), sender.map(str::to_owned), numbers));
        assert_eq!(found.iter().map(told).collect::<Vec<_>>(), expected);
    }
}
