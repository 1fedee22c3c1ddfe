// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the changes in a series of releases.
//!
//! Source: D. S. Matteson and N. A. James, *A nonparametric approach for multiple change point
//! analysis of multivariate data*, Journal of the American Statistical Association 109 (2014):
//! energy statistics, hierarchical division, permutation test. Here a release has several runs, and
//! is never divided. A single release between others may also differ by itself, which a division
//! into two parts does not see.

use std::ops::Range;

use fastrand::Rng;

/// The number of times that runs are shuffled for a test.
const SHUFFLES: u32 = 1_999;
/// The seed of the shuffles, which are the same at each call.
const SEED: u64 = 3;

/// A place where a series changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The number of the first release that is different, from 0.
    pub at: usize,
    /// The chance of so large a change, anywhere in the series.
    pub p: f64,
}

/// The changes in a series, in the order of the releases. The series has each release's figures,
/// one for each run, the oldest release first. All runs of releases without a change between them
/// are taken for exchangeable. The chance of finding a change where there is none is at most
/// `level`.
///
/// Figures above zero are compared by their logarithms, others as they are. A release without
/// figures changes nothing.
///
/// # Panics
/// If a figure is no number.
pub fn change_points(series: &[Vec<f64>], level: f64) -> Vec<ChangePoint> {
    let figures = || series.iter().flatten();
    assert!(!figures().any(|one| one.is_nan()), "a figure is no number");
    let is_positive = figures().all(|one| *one > 0.0);
    let scaled = |one: &f64| if is_positive { one.ln() } else { *one };
    let mut random = Rng::with_seed(SEED);
    // Segments between changes, each with the best place to divide it.
    let whole: Vec<Vec<f64>> = series
        .iter()
        .map(|release| release.iter().map(scaled).collect())
        .collect();
    let mut segments = vec![Segment::new(0, whole)];
    let mut found = Vec::new();
    while let Some(number) = most_energy(&segments) {
        let p = chance(&segments, segments[number].energy, &mut random);
        if p > level {
            break;
        }
        let parts = segments.swap_remove(number).divided();
        found.extend(
            parts[1..]
                .iter()
                .map(|part| ChangePoint { at: part.from, p }),
        );
        segments.extend(parts);
    }
    found.sort_by_key(|one| one.at);
    found
}

/// Returns true if a change at the last release could be found at all, however large. `runs` has
/// the number of runs of each release since the change before it. The chance of the largest change
/// is that all runs of one release of this size happen to stand together.
pub fn could_change_last(runs: &[usize], level: f64) -> bool {
    let Some(own) = runs.last().copied().filter(|own| *own > 0) else {
        return false;
    };
    let places = runs.iter().filter(|count| **count == own).count();
    let all: usize = runs.iter().sum();
    // One of all choices of so many runs: all! / (own! (all - own)!).
    let choices = (0..own).fold(1.0, |choices, at| {
        choices * (all - at) as f64 / (own - at) as f64
    });
    let least = places as f64 / choices;
    all > own && least.max(1.0 / f64::from(SHUFFLES + 1)) <= level
}

/// The number of the segment whose division gives the most energy; `None` if none has any.
fn most_energy(segments: &[Segment]) -> Option<usize> {
    let numbers = (0..segments.len()).filter(|number| segments[*number].energy > 0.0);
    numbers.max_by(|one, other| segments[*one].energy.total_cmp(&segments[*other].energy))
}

/// The chance that runs shuffled within their segments are divided with as much energy.
fn chance(segments: &[Segment], energy: f64, random: &mut Rng) -> f64 {
    // What is equal but for rounding is as much.
    let energy = energy * (1.0 - 1e-9);
    let mut reached = 0;
    for _ in 0..SHUFFLES {
        let mut is_reached = |one: &Segment| one.shuffled(random).energy >= energy;
        reached += u32::from(segments.iter().any(&mut is_reached));
    }
    f64::from(reached + 1) / f64::from(SHUFFLES + 1)
}

/// Releases with no known change between them.
struct Segment {
    /// The number of its first release.
    from: usize,
    releases: Vec<Vec<f64>>,
    /// The releases that are least like the others.
    different: Range<usize>,
    /// The energy between these and the others.
    energy: f64,
}

impl Segment {
    fn new(from: usize, releases: Vec<Vec<f64>>) -> Self {
        let best = |one: (Range<usize>, f64), other: (Range<usize>, f64)| {
            if other.1 > one.1 { other } else { one }
        };
        let divisions = halves(&releases).into_iter().chain(single(&releases));
        let (different, energy) = divisions.fold((0..0, 0.0), best);
        Self {
            from,
            releases,
            different,
            energy,
        }
    }

    /// The releases before the different ones, these, and those behind them; empty parts are left
    /// out.
    fn divided(self) -> Vec<Self> {
        let ends = [
            self.different.start,
            self.different.end,
            self.releases.len(),
        ];
        let mut parts = Vec::new();
        let mut from = 0;
        for to in ends.into_iter().filter(|end| *end > 0) {
            if to > from {
                parts.push(Self::new(
                    self.from + from,
                    self.releases[from..to].to_vec(),
                ));
            }
            from = to;
        }
        parts
    }

    /// The same releases with their runs shuffled.
    fn shuffled(&self, random: &mut Rng) -> Self {
        let mut runs = self.releases.concat();
        random.shuffle(&mut runs);
        let mut runs = runs.into_iter();
        let releases = self.releases.iter();
        let releases = releases.map(|release| runs.by_ref().take(release.len()).collect());
        Self::new(self.from, releases.collect())
    }
}

/// Sums of distances: of the runs of two parts from each other, and within each.
#[derive(Clone, Copy)]
struct Sums {
    sizes: [usize; 2],
    between: f64,
    within: [f64; 2],
}

impl Sums {
    fn energy(&self) -> f64 {
        let [n, m] = self.sizes.map(|size| size as f64);
        let mean = |sum: f64, n: f64| {
            if n > 1.0 {
                2.0 * sum / (n * (n - 1.0))
            } else {
                0.0
            }
        };
        let [left, right] = self.within;
        n * m / (n + m) * (2.0 * self.between / (n * m) - mean(left, n) - mean(right, m))
    }
}

/// The energy of each division before a release, which then belongs to the part behind it.
/// Sums are kept up to date as one release after another moves to the left part.
fn halves(releases: &[Vec<f64>]) -> Vec<(Range<usize>, f64)> {
    let (mut left, mut right) = (Vec::new(), releases.concat());
    right.reverse();
    let mut sums = Sums {
        sizes: [0, right.len()],
        between: 0.0,
        within: [0.0, sum_within(&right)],
    };
    let mut found = Vec::new();
    for (at, release) in releases.iter().enumerate() {
        if !left.is_empty() && !release.is_empty() {
            found.push((at..releases.len(), sums.energy()));
        }
        for run in release {
            right.pop();
            let (to_left, to_right) = (distances(*run, &left), distances(*run, &right));
            sums.within[0] += to_left;
            sums.within[1] -= to_right;
            sums.between += to_right - to_left;
            sums.sizes = [sums.sizes[0] + 1, sums.sizes[1] - 1];
            left.push(*run);
        }
    }
    found
}

/// The energy between each inner release and all others.
fn single(releases: &[Vec<f64>]) -> Vec<(Range<usize>, f64)> {
    let runs = releases.concat();
    let all = sum_within(&runs);
    let inner = 1..releases.len().saturating_sub(1);
    let has_runs = inner.filter(|at| !releases[*at].is_empty());
    let energy = |at: usize| {
        let own = &releases[at];
        let within = sum_within(own);
        let from_own: f64 = own.iter().map(|run| distances(*run, &runs)).sum();
        let between = from_own - 2.0 * within;
        let sums = Sums {
            sizes: [own.len(), runs.len() - own.len()],
            between,
            within: [within, all - within - between],
        };
        (at..at + 1, sums.energy())
    };
    let has_others = |own: &usize| releases[*own].len() < runs.len();
    has_runs.filter(has_others).map(energy).collect()
}

fn distances(one: f64, others: &[f64]) -> f64 {
    others.iter().map(|other| (one - other).abs()).sum()
}

fn sum_within(all: &[f64]) -> f64 {
    (0..all.len())
        .map(|at| distances(all[at], &all[..at]))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trials::Share;

    /// Releases with three runs each, whose durations are their levels apart from chance.
    fn series(levels: &[f64], random: &mut Rng) -> Vec<Vec<f64>> {
        let mut run = |level: &f64| level * (1.0 + 0.1 * random.f64());
        levels
            .iter()
            .map(|level| (0..3).map(|_| run(level)).collect())
            .collect()
    }

    #[test]
    fn changes_are_found_where_they_are() {
        let levels = [[5.0; 6], [8.0; 6], [6.0; 6]].concat();
        let found = change_points(&series(&levels, &mut Rng::with_seed(1)), 0.05);
        let places: Vec<usize> = found.iter().map(|one| one.at).collect();
        assert_eq!(places, [6, 12], "{found:?}");
        assert!(found.iter().all(|one| one.p < 0.002), "{found:?}");
    }

    #[test]
    fn the_last_release_is_told_where_there_are_runs_enough_for_it() {
        for level in [0.05, 0.025] {
            for (releases, seeds) in (2..7).flat_map(|releases| [(releases, 3), (releases, 5)]) {
                let could = could_change_last(&vec![seeds; releases], level);
                // A last one that is apart from all others, whatever these are.
                let mut levels: Vec<Vec<f64>> = (0..releases)
                    .map(|one| (0..seeds).map(|run| (1 + run + one) as f64).collect())
                    .collect();
                levels[releases - 1] = vec![1e6; seeds];
                let found = change_points(&levels, level);
                let is_found = found.last().is_some_and(|one| one.at == releases - 1);
                assert_eq!(
                    could, is_found,
                    "{releases} of {seeds} at {level}: {found:?}"
                );
            }
        }
        assert!(!could_change_last(&[3, 3, 0], 0.05));
        assert!(!could_change_last(&[9], 0.05));
    }

    #[test]
    fn one_release_that_went_wrong_is_two_changes() {
        let mut levels = [5.0; 12];
        levels[7] = 20.0;
        let found = change_points(&series(&levels, &mut Rng::with_seed(2)), 0.05);
        let places: Vec<usize> = found.iter().map(|one| one.at).collect();
        assert_eq!(places, [7, 8], "{found:?}");
    }

    #[test]
    fn what_does_not_change_is_told_to_no_more_often_than_the_level_says() {
        let mut random = Rng::with_seed(3);
        let is_wrong = |_: &u32| !change_points(&series(&[5.0; 8], &mut random), 0.1).is_empty();
        let wrong = (0..200).filter(is_wrong).count();
        let share = Share::of(wrong as u64, 200);
        assert!(
            share.interval.0 <= 0.1 && share.interval.1 >= 0.05,
            "{share:?}"
        );
    }

    #[test]
    fn equal_figures_few_releases_and_gaps_are_no_change() {
        assert!(change_points(&vec![vec![7.0; 3]; 9], 0.05).is_empty());
        assert!(change_points(&[], 0.05).is_empty());
        assert!(change_points(&[vec![], vec![]], 0.05).is_empty());
        // Of twenty divisions of six runs two are so far apart.
        let two = [vec![1.0, 1.1, 1.2], vec![9.0, 9.1, 9.2]];
        assert!(change_points(&two, 0.05).is_empty());
        let mut gap = vec![vec![1.0, 1.1, 1.2]; 4];
        gap.push(Vec::new());
        gap.extend(vec![vec![3.0, 3.1, 3.2]; 4]);
        let found = change_points(&gap, 0.05);
        assert_eq!((found.len(), found[0].at), (1, 5), "{found:?}");
    }

    #[test]
    fn sums_kept_up_to_date_are_those_made_anew() {
        let mut random = Rng::with_seed(4);
        let all = series(&[1.0, 2.0, 3.0, 1.0], &mut random);
        let divisions = [halves(&all), single(&all)].concat();
        assert_eq!(divisions.len(), 3 + 2);
        for (own, energy) in divisions {
            let (one, other) = (
                all[own.clone()].concat(),
                [&all[..own.start], &all[own.end..]],
            );
            let other = other.concat().concat();
            let (n, m) = (one.len() as f64, other.len() as f64);
            let between: f64 = one.iter().map(|run| distances(*run, &other)).sum();
            let anew = 2.0 * between / (n * m)
                - 2.0 * sum_within(&one) / (n * (n - 1.0))
                - 2.0 * sum_within(&other) / (m * (m - 1.0));
            assert!((energy - anew * n * m / (n + m)).abs() < 1e-9, "{own:?}");
        }
    }
}
