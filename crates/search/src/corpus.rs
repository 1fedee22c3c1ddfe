// SPDX-License-Identifier: MIT OR Apache-2.0
//! The best program of each place.

use serde::{Deserialize, Serialize};

use crate::Stretch;

/// A program, with the longest stretch for which it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The stretch. All but its length identify the place.
    pub stretch: Stretch,
    /// The program.
    pub program: String,
    /// The number of the candidate, from 0.
    pub candidate: u64,
    /// True if it was tried with larger numbers.
    #[serde(default)]
    pub is_scaled: bool,
}

/// The best program of each place. A place is what is off, the function that switched it off, and
/// the function in which most of it was spent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Corpus {
    /// The entries, the longest stretch first.
    entries: Vec<Entry>,
}

impl Corpus {
    /// Returns all entries, the longest stretch first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Takes the stretches that were seen of a program. A stretch replaces the known one of its
    /// place if it is longer, or if it is as long and the program is shorter.
    pub fn take(&mut self, program: &str, candidate: u64, stretches: Vec<Stretch>) {
        for stretch in stretches {
            let place = |of: &Stretch| (of.what.clone(), of.function.clone(), of.most.clone());
            let known = self.entries.iter_mut();
            let known = known.map(|entry| (place(&entry.stretch) == place(&stretch), entry));
            let entry = Entry {
                stretch: stretch.clone(),
                program: program.to_owned(),
                candidate,
                is_scaled: false,
            };
            match known.into_iter().find(|(is_same, _)| *is_same) {
                Some((_, known)) => {
                    let is_shorter = program.len() < known.program.len();
                    let is_as_long = stretch.ns == known.stretch.ns;
                    if stretch.ns > known.stretch.ns || (is_as_long && is_shorter) {
                        let is_scaled = known.is_scaled && is_as_long;
                        *known = Entry { is_scaled, ..entry };
                    }
                }
                None => self.entries.push(entry),
            }
        }
        let order = |of: &Entry| {
            let place = &of.stretch;
            let names = (
                place.what.clone(),
                place.function.clone(),
                place.most.clone(),
            );
            (-place.ns, names)
        };
        self.entries.sort_by_cached_key(order);
    }

    /// Takes the finds of another search.
    pub fn merge(&mut self, other: &Self) {
        for entry in &other.entries {
            self.take(&entry.program, entry.candidate, vec![entry.stretch.clone()]);
            let is_it =
                |own: &&mut Entry| (&own.program, &own.stretch) == (&entry.program, &entry.stretch);
            if let Some(own) = self.entries.iter_mut().find(is_it) {
                own.is_scaled |= entry.is_scaled;
            }
        }
    }

    /// Returns the programs of at most this many causes that were not tried with larger numbers
    /// yet, those with the longest stretches first.
    pub fn unscaled(&self, most: usize) -> Vec<String> {
        let causes = self.causes().into_iter().filter(|entry| !entry.is_scaled);
        let mut programs: Vec<String> = Vec::new();
        for entry in causes {
            if programs.len() < most && !programs.contains(&entry.program) {
                programs.push(entry.program.clone());
            }
        }
        programs
    }

    /// Notes that these programs were tried with larger numbers.
    pub fn scaled(&mut self, programs: &[String]) {
        let own = self.entries.iter_mut();
        let own = own.filter(|entry| programs.contains(&entry.program));
        own.for_each(|entry| entry.is_scaled = true);
    }

    /// Returns one entry for each cause, the longest first.
    pub fn causes(&self) -> Vec<&Entry> {
        let mut causes: Vec<&Entry> = Vec::new();
        for entry in &self.entries {
            let is_known = |known: &&Entry| known.stretch.is_like(&entry.stretch);
            if !causes.iter().any(is_known) {
                causes.push(entry);
            }
        }
        causes
    }
}
