// SPDX-License-Identifier: MIT OR Apache-2.0
//! Places of a program's cycles, which mark nothing. The scope finds a cycle between two of the
//! switches that the kernel's tracer noted in its step.

use std::fmt;

use crate::finding::Finding;
use crate::recording::Recording;
use crate::units::Nanos;

/// Finding of a recording: the places of its thread's cycles.
pub const PLACES: &str = "places";

/// Finding of a recording: the place at which each fault in its program's design first occurred.
pub const FAULT_PLACES: &str = "places_of_faults";

/// The recorded parts of a thread's cycles, each as a variant's ending after the thread's name.
pub const LATENESS: &str = " lateness";
/// The time for which the thread had the CPU.
pub const EXECUTION: &str = " execution";
/// The time from when it was due to its next wait.
pub const RESPONSE: &str = " response";

/// Returns the thread whose cycles a variant records; `None` if it records none.
pub fn thread_of(variant: &str) -> Option<&str> {
    let parts = [LATENESS, RESPONSE, EXECUTION];
    parts.iter().find_map(|part| variant.strip_suffix(part))
}

/// Returns the recording of the same step that has the given part of the same thread's cycles.
pub fn sister<'a>(all: &'a [Recording], own: &Recording, part: &str) -> Option<&'a Recording> {
    let thread = thread_of(&own.key.variant)?;
    let is_it = |one: &&Recording| {
        let variant = one.key.variant.strip_suffix(part);
        one.key.step == own.key.step && variant == Some(thread)
    };
    all.iter().find(is_it)
}

/// Returns the place of a cycle of a recording's thread; `None` if it was not noted.
pub fn of_cycle(all: &[Recording], own: &Recording, seq: u64) -> Option<Place> {
    match sister(all, own, EXECUTION)?.findings.get(PLACES)? {
        Finding::Text(places) => Place::find(places, seq),
        _ => None,
    }
}

/// The place at which a fault in the design of a program first occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultPlace {
    /// The fault's finding: `fault_page`.
    pub fault: String,
    /// The number of the cycle's sample.
    pub cycle: u64,
    /// The time since the cycle was due.
    pub after: Nanos,
}

/// Prints `fault_page,30,4711`.
impl fmt::Display for FaultPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.fault, self.cycle, self.after.0)
    }
}

impl FaultPlace {
    /// Returns the fault places of a recording's thread.
    pub fn all(all: &[Recording], own: &Recording) -> Vec<Self> {
        let of_thread = sister(all, own, EXECUTION);
        match of_thread.and_then(|one| one.findings.get(FAULT_PLACES)) {
            Some(Finding::Text(told)) => told.split(' ').filter_map(Self::parse).collect(),
            _ => Vec::new(),
        }
    }

    fn parse(told: &str) -> Option<Self> {
        let mut parts = told.split(',');
        let [fault, cycle, after] = [parts.next()?, parts.next()?, parts.next()?];
        Some(Self {
            fault: fault.to_owned(),
            cycle: cycle.parse().ok()?,
            after: Nanos(after.parse().ok()?),
        })
    }
}

/// The longest response that is watched instruction by instruction.
pub const WATCHED_MOST: Nanos = Nanos(50_000_000);

/// The most switches within a cycle whose moments are recorded.
const BETWEEN_MOST: usize = 64;

/// The place of a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of its sample.
    pub seq: u64,
    /// The number of switches from the last one before the cycle was due, which is counted, to its
    /// start; one more than all switches if there was none before.
    pub before: u64,
    /// The number of the switch with which it began, from 0.
    pub begin: u64,
    /// The number of the switch with which it ended.
    pub end: u64,
    /// The moments of the switches between these two, from its start; empty if there are too many.
    pub between: Vec<Nanos>,
}

impl Place {
    /// Returns the place of a cycle that was due, began and ended at these moments, among these
    /// switches in order of time; `None` if it did not begin and end with a switch.
    pub fn of(seq: u64, [due, begin, end]: [Nanos; 3], switches: &[Nanos]) -> Option<Self> {
        let (first, last) = (
            switches.binary_search(&begin).ok()?,
            switches.binary_search(&end).ok()?,
        );
        let before = switches.partition_point(|at| *at <= due).min(first);
        let between = switches.get(first + 1..last)?;
        let between = between.iter().map(|at| *at - begin);
        Some(Self {
            seq,
            before: (first + 1 - before) as u64,
            begin: first as u64,
            end: last as u64,
            between: if last - first > BETWEEN_MOST {
                Vec::new()
            } else {
                between.collect()
            },
        })
    }

    /// Finds the place of the sample with this number in the text from [`told`]; `None` if there
    /// is none.
    pub fn find(text: &str, seq: u64) -> Option<Self> {
        let of = |word: &str| {
            let mut numbers = word.split(',').map(str::parse::<u64>);
            let mut next = || numbers.next()?.ok();
            if next()? != seq {
                return None;
            }
            let (before, begin, length) = (next()?, next()?, next()?);
            let between = numbers.map(|number| Some(Nanos(i64::try_from(number.ok()?).ok()?)));
            Some(Self {
                seq,
                before,
                begin,
                end: begin.checked_add(length)?,
                between: between.collect::<Option<_>>()?,
            })
        };
        text.split(' ').find_map(of)
    }
}

/// Prints `30,2,122,2,1500`: sample, switches before, begin, the number of switches from there to
/// the end, and the moments of those in between.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.end.saturating_sub(self.begin);
        write!(f, "{},{},{},{length}", self.seq, self.before, self.begin)?;
        self.between
            .iter()
            .try_for_each(|at| write!(f, ",{}", at.0))
    }
}

/// Joins places into one text.
pub fn told(places: impl Iterator<Item = Place>) -> String {
    let words: Vec<String> = places.map(|place| place.to_string()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Recorder, RecordingKey};

    #[test]
    fn places_are_read_as_they_were_told() {
        let switches = [5, 10, 20, 30, 40, 50].map(Nanos);
        let of = |seq, moments: [i64; 3]| Place::of(seq, moments.map(Nanos), &switches);
        let places = [of(3, [19, 20, 50]), of(40, [4, 5, 10])].map(Option::unwrap);
        let text = told(places.iter().cloned());
        assert_eq!(text, "3,1,2,3,10,20 40,1,0,1");
        assert_eq!(of(4, [5, 40, 50]).unwrap().before, 4, "from the first on");
        for place in &places {
            assert_eq!(Place::find(&text, place.seq).as_ref(), Some(place));
        }
        assert_eq!(Place::find(&text, 4), None);
        let too_large = "3,1,18446744073709551615,1";
        assert_eq!(Place::find(too_large, 3), None);
        assert_eq!(Place::find("3,1,2", 3), None);
        assert_eq!(of(3, [1, 2, 5]), None, "no switch began it");
        assert_eq!(of(3, [19, 20, 25]), None, "none ended it");
        assert_eq!(of(3, [19, 50, 20]), None);
    }

    #[test]
    fn places_of_faults_are_read_as_they_were_told() {
        let key = RecordingKey::of_variant("loop execution");
        let mut execution = Recorder::new(1).finish(key);
        let told = "fault_page,30,4711 fault_timer_slack,35,12";
        execution
            .findings
            .insert(FAULT_PLACES.into(), Finding::Text(told.into()));
        let all = [execution];
        let places = FaultPlace::all(&all, &all[0]);
        let again: Vec<String> = places.iter().map(ToString::to_string).collect();
        assert_eq!(again.join(" "), told);
        assert_eq!((places[0].cycle, places[0].after), (30, Nanos(4_711)));
    }
}
