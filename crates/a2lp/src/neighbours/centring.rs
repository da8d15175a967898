//! Scores of centred rows from the products of the rows as they are, so that one pass over all pairs serves both:
//!
//! ```text
//! ⟨a − m, b − m′⟩ / (‖a − m‖·‖b − m′‖) = (⟨a, b⟩ − ⟨a, m′⟩ − ⟨b, m⟩ + ⟨m, m′⟩) / (‖a − m‖·‖b − m′‖)
//! ```

use crate::features::FeatureMatrix;
use crate::kernels::{ScoreTile, Shift};
use rayon::prelude::*;
use std::ops::Range;

/// Rows nearer to their point than this are left to a search of their own: the difference of large products would not be exact
/// enough.
const LEAST_LENGTH: f64 = 0.25;

/// Every row less a point of its domain, scaled to unit length.
pub(crate) struct Centring {
    first_target: usize,
    /// ⟨a, m⟩ of every row with the point of the source, and with the point of the target.
    products: [Vec<f32>; 2],
    /// ⟨m, m′⟩ of the points.
    between: [[f32; 2]; 2],
    /// 1/‖a − m‖ of every row.
    scales: Vec<f32>,
}

impl Centring {
    /// For rows of unit length, the points of the source and of the target. `None` if a row lies too near its point.
    pub(crate) fn new(unit: &FeatureMatrix, first_target: usize, points: [&[f64]; 2]) -> Option<Self> {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let domain = |row: usize| usize::from(row >= first_target);
        let product = |point: &[f64], row: usize| {
            unit.row(row).iter().zip(point).map(|(&value, point)| f64::from(value) * point).sum::<f64>()
                as f32
        };
        let length = |row: usize| {
            let squares = unit.row(row).iter().zip(points[domain(row)]);
            squares.map(|(&value, point)| (f64::from(value) - point).powi(2)).sum::<f64>().sqrt()
        };
        let rows = || (0..unit.rows()).into_par_iter().with_min_len(64);
        let lengths: Vec<f64> = rows().map(length).collect();
        if lengths.iter().any(|&length| length < LEAST_LENGTH) {
            return None;
        }
        Some(Centring {
            first_target,
            products: points.map(|point| rows().map(|row| product(point, row)).collect()),
            between: points.map(|a| points.map(|b| dot(a, b) as f32)),
            scales: lengths.into_iter().map(|length| (1.0 / length) as f32).collect(),
        })
    }

    /// Turns the products of some rows with others into scores. Neither range crosses from one domain into the other.
    pub(super) fn apply(
        &self,
        products: &ScoreTile,
        rows: &Range<usize>,
        columns: &Range<usize>,
        scores: &mut ScoreTile,
    ) {
        let domain = |range: &Range<usize>| usize::from(range.start >= self.first_target);
        let (of_rows, of_columns) = (domain(rows), domain(columns));
        products.shift_and_scale(
            Shift { off: &self.products[of_columns][rows.clone()], scale: &self.scales[rows.clone()] },
            Shift { off: &self.products[of_rows][columns.clone()], scale: &self.scales[columns.clone()] },
            self.between[of_rows][of_columns],
            scores,
        );
    }
}
