//! Summaries of many measurements.

use serde::Serialize;

/// The order statistics of a set of measurements, in the measurements' unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many measurements.
    pub samples: usize,
    pub min: f64,
    pub median: f64,
    pub p95: f64,
    pub p99: f64,
}

impl Summary {
    /// `None` without a measurement. A percentile is the smallest measurement that so many per cent do not exceed.
    pub fn of(measurements: &[f64]) -> Option<Self> {
        let mut sorted = measurements.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            samples: sorted.len(),
            min: *sorted.first()?,
            median: percentile(&sorted, 50)?,
            p95: percentile(&sorted, 95)?,
            p99: percentile(&sorted, 99)?,
        })
    }

    /// The summary of one measurement.
    pub fn once(measurement: f64) -> Self {
        Self {
            samples: 1,
            min: measurement,
            median: measurement,
            p95: measurement,
            p99: measurement,
        }
    }
}

fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// Each figure less the floor that was measured with it: a disturbance of both cancels out.
pub fn differences(figures: &[f64], floors: &[f64]) -> Vec<f64> {
    figures
        .iter()
        .zip(floors)
        .map(|(figure, floor)| figure - floor)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_measured_says_nothing() {
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn one_measurement_is_all_of_its_statistics() {
        assert_eq!(Summary::of(&[3.0]), Some(Summary::once(3.0)));
    }

    #[test]
    fn a_percentile_is_a_measurement_that_was_taken() {
        let shuffled: Vec<f64> = (0..100).map(|n| f64::from((n * 37) % 100 + 1)).collect();
        let summary = Summary::of(&shuffled).unwrap();
        assert_eq!((summary.samples, summary.min, summary.median), (100, 1.0, 50.0));
        assert_eq!((summary.p95, summary.p99), (95.0, 99.0));
    }

    #[test]
    fn one_outlier_moves_no_median() {
        let summary = Summary::of(&[1.0, 1.0, 1.0, 1000.0]).unwrap();
        assert_eq!((summary.median, summary.p95), (1.0, 1000.0));
    }

    #[test]
    fn a_disturbance_of_both_leaves_their_difference() {
        assert_eq!(differences(&[11.0, 111.0], &[10.0, 110.0]), [1.0, 1.0]);
    }
}
