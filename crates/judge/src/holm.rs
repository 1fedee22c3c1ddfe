// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several comparisons at once.

/// Each p as Holm's step-down procedure adjusts it: where it is at most the level, the
/// difference counts, and among all of them one is wrong no more often than the level says.
///
/// Source: S. Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian
/// Journal of Statistics 6 (1979).
pub fn holm(ps: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ps.len()).collect();
    order.sort_by(|one, other| ps[*one].total_cmp(&ps[*other]));
    let mut adjusted = vec![1.0; ps.len()];
    let mut least: f64 = 0.0;
    for (rank, row) in order.into_iter().enumerate() {
        least = least.max(((ps.len() - rank) as f64 * ps[row]).min(1.0));
        adjusted[row] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_pays_for_all_and_none_is_below_a_smaller_one() {
        // By R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm").
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[0.9, 0.9]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
