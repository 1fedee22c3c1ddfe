// SPDX-License-Identifier: MIT OR Apache-2.0
//! The straight line of least squares through some points, with its uncertainty.

/// A fitted line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearFit {
    /// What y gains per unit of x.
    pub slope: f64,
    /// The slope's standard error.
    pub error: f64,
}

impl LinearFit {
    /// The line through points with different x; none through fewer than three, which would
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
        Some(Self { slope, error })
    }

    /// The slope's 95 % interval: ±1.96 standard errors, as for many points.
    pub fn interval_95(self) -> (f64, f64) {
        let half = 1.96 * self.error;
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
        assert!((low - 0.130).abs() < 1e-3 && (high - 2.670).abs() < 1e-3);
    }

    #[test]
    fn two_points_have_no_uncertainty_and_so_no_line() {
        assert_eq!(LinearFit::through(&[(1.0, 6.0), (2.0, 5.0)]), None);
    }
}
