// SPDX-License-Identifier: MIT OR Apache-2.0
//! The straight line of least squares through some points, with its uncertainty.

/// A fitted line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearFit {
    /// The increase of y per unit of x.
    pub slope: f64,
    /// The slope's standard error.
    pub error: f64,
    /// The degrees of freedom of the residuals: two fewer than points.
    pub freedom: usize,
}

/// Student's 97.5 % quantiles for 1 to 10 degrees of freedom.
const STUDENT: [f64; 10] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
];

/// Student's 97.5 % quantile, to 0.003: above ten degrees of freedom the normal one with
/// the first two corrections of Cornish and Fisher (Abramowitz and Stegun, 26.7.5).
fn student(freedom: usize) -> f64 {
    const NORMAL: f64 = 1.959_964;
    if let Some(known) = freedom.checked_sub(1).and_then(|at| STUDENT.get(at)) {
        return *known;
    }
    let n = freedom as f64;
    let power = |exponent| NORMAL.powi(exponent);
    NORMAL
        + (power(3) + NORMAL) / (4.0 * n)
        + (5.0 * power(5) + 16.0 * power(3) + 3.0 * NORMAL) / (96.0 * n * n)
}

impl LinearFit {
    /// Fits a line through points with different x; none through fewer than three, which would
    /// leave nothing to judge its uncertainty by.
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        if points.len() < 3 {
            return None;
        }
        let count = points.len() as f64;
        let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
        let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
        let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
        let common = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y));
        let slope = common.sum::<f64>() / spread;
        let residual = |(x, y): &(f64, f64)| y - mean_y - slope * (x - mean_x);
        let rest: f64 = points.iter().map(|point| residual(point).powi(2)).sum();
        let error = (rest / (count - 2.0) / spread).sqrt();
        let freedom = points.len() - 2;
        Some(Self {
            slope,
            error,
            freedom,
        })
    }

    /// Returns the slope's 95 % interval, by Student's quantile: it is wide for few points.
    pub fn interval_95(self) -> (f64, f64) {
        let half = student(self.freedom) * self.error;
        (self.slope - half, self.slope + half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_and_its_error_are_those_of_the_textbook() {
        // Residual sum of squares 4.2, so the standard error is √(4.2 / 2 / 5).
        let line = LinearFit::through(&[(1.0, 6.0), (2.0, 5.0), (3.0, 7.0), (4.0, 10.0)]).unwrap();
        assert!((line.slope - 1.4).abs() < 1e-12);
        assert!((line.error - 0.42_f64.sqrt()).abs() < 1e-12);
        let (low, high) = line.interval_95();
        // Two degrees of freedom: 4.303 standard errors, not 1.96.
        assert!((low + 1.389).abs() < 1e-3 && (high - 4.189).abs() < 1e-3);
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let known = [
            (1, 12.706),
            (3, 3.182),
            (10, 2.228),
            (11, 2.201),
            (20, 2.086),
            (88, 1.987),
        ];
        for (freedom, quantile) in known {
            let found = student(freedom);
            assert!((found - quantile).abs() < 3e-3, "{freedom}: {found}");
        }
    }

    #[test]
    fn two_points_have_no_uncertainty_and_so_no_line() {
        assert_eq!(LinearFit::through(&[(1.0, 6.0), (2.0, 5.0)]), None);
    }
}
