// SPDX-License-Identifier: MIT OR Apache-2.0
//! The best program of each place.

use serde::{Deserialize, Serialize};

use crate::Stretch;

/// A program, and the longest stretch that it is kept for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The stretch, of which the place is known by all but its length.
    pub stretch: Stretch,
    /// The program.
    pub program: String,
    /// Which candidate it was, from 0.
    pub candidate: u64,
    /// Whether it was tried with larger numbers.
    #[serde(default)]
    pub is_scaled: bool,
}

/// The best program of each place: of what is off, the function that switched it off, and the
/// one that most of it was spent in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Corpus {
    /// The longest stretch first.
    entries: Vec<Entry>,
}

impl Corpus {
    /// All of them, the longest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Takes what was seen of a program: where it is longer than what there was, or as long and
    /// the program is shorter, it takes its place.
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

    /// Takes what another search has found.
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

    /// The programs of so many causes that were not tried with larger numbers yet, those with the
    /// longest stretches first.
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

    /// These programs were tried with larger numbers.
    pub fn scaled(&mut self, programs: &[String]) {
        let own = self.entries.iter_mut();
        let own = own.filter(|entry| programs.contains(&entry.program));
        own.for_each(|entry| entry.is_scaled = true);
    }

    /// One entry for each cause, the longest first.
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
