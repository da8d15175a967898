//! How alike two feature vectors are: everything about a similarity, in one place.
//!
//! Neighbours are ranked by raw score; edge weights ε are computed from the score later. To add a similarity, add a variant, its
//! word, and an arm to every `match` in this file; the compiler names those that are missing. Then add it to the test below.

use crate::kernels::Chain;
use serde::{Deserialize, Serialize};

/// How alike two feature vectors are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Similarity {
    /// ⟨vᵢ,vⱼ⟩ / (‖vᵢ‖‖vⱼ‖), negatives count as 0. Rows are scaled to unit length first.
    Cosine,
    /// exp(−‖vᵢ−vⱼ‖² / 2σ²) on the features as they are.
    Gaussian {
        /// σ²
        sigma2: f64,
    },
    /// max(⟨vᵢ,vⱼ⟩, 0)³ on the features as they are.
    Dot3,
}

impl Similarity {
    /// Default σ² of the Gaussian similarity; the paper's.
    pub const DEFAULT_SIGMA2: f64 = 1.0;

    /// The words that users write, and their values; parameters have their defaults.
    pub const WORDS: &[(&str, Similarity)] = &[
        ("cosine", Similarity::Cosine),
        ("gaussian", Similarity::Gaussian { sigma2: Similarity::DEFAULT_SIGMA2 }),
        ("dot3", Similarity::Dot3),
    ];

    /// The word users write.
    pub fn as_str(self) -> &'static str {
        match self {
            Similarity::Cosine => "cosine",
            Similarity::Gaussian { .. } => "gaussian",
            Similarity::Dot3 => "dot3",
        }
    }

    /// The same similarity with this σ², where it has one.
    pub fn with_sigma2(self, sigma2: f64) -> Self {
        match self {
            Similarity::Gaussian { .. } => Similarity::Gaussian { sigma2 },
            other => other,
        }
    }

    /// The value and the rule of a parameter that is out of range.
    pub(crate) fn wrong_parameter(self) -> Option<(&'static str, f64, &'static str)> {
        match self {
            Similarity::Gaussian { sigma2 } if !(sigma2.is_finite() && sigma2 > 0.0) => {
                Some(("gauss-sigma2", sigma2, "above 0"))
            }
            _ => None,
        }
    }

    /// Are rows scaled to unit length before they are compared?
    pub fn scales_rows(self) -> bool {
        match self {
            Similarity::Cosine => true,
            Similarity::Gaussian { .. } | Similarity::Dot3 => false,
        }
    }

    /// Is the weight of rows without negative numbers their product, so that sums over all pairs need no pairs?
    pub(crate) fn is_linear(self) -> bool {
        match self {
            Similarity::Cosine => true,
            Similarity::Gaussian { .. } | Similarity::Dot3 => false,
        }
    }

    /// What the kernels accumulate.
    pub(crate) fn chain(self) -> Chain {
        match self {
            Similarity::Cosine | Similarity::Dot3 => Chain::Product,
            Similarity::Gaussian { .. } => Chain::SquaredDistance,
        }
    }

    /// The score by which nodes are ranked (larger = nearer), from what the kernel accumulated.
    #[inline]
    pub(crate) fn score(self, accumulated: f32) -> f32 {
        match self {
            Similarity::Cosine | Similarity::Dot3 => accumulated,
            Similarity::Gaussian { .. } => -accumulated,
        }
    }

    /// A neighbour must score above this: edges of weight 0 are absent.
    pub(crate) fn floor(self) -> f32 {
        match self {
            Similarity::Cosine | Similarity::Dot3 => 0.0,
            Similarity::Gaussian { .. } => f32::NEG_INFINITY,
        }
    }

    /// ε(vᵢ, vⱼ) of eq. 6, from the score of the pair.
    pub(crate) fn weight(self, score: f32) -> f32 {
        match self {
            Similarity::Cosine => score.max(0.0),
            Similarity::Dot3 => score.max(0.0).powi(3),
            Similarity::Gaussian { sigma2 } => (f64::from(score) / (2.0 * sigma2)).exp() as f32,
        }
    }

    /// The score that has this weight; the reverse of [`weight`](Self::weight).
    pub(crate) fn score_of_weight(self, weight: f32) -> f32 {
        match self {
            Similarity::Cosine => weight,
            Similarity::Dot3 => weight.cbrt(),
            Similarity::Gaussian { sigma2 } => (2.0 * sigma2 * f64::from(weight).ln()) as f32,
        }
    }

    /// ε of two vectors at this distance, as other libraries measure it (1 − cosine, or Euclid's); `None` when a distance does
    /// not determine it.
    pub fn weight_of_distance(self, distance: f64) -> Option<f32> {
        match self {
            Similarity::Cosine => Some(self.weight((1.0 - distance) as f32)),
            Similarity::Gaussian { .. } => Some(self.weight(-(distance * distance) as f32)),
            Similarity::Dot3 => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every step from two vectors to a weight, and back, against the formula.
    #[test]
    fn weights_are_those_of_the_formulas() {
        let (a, b) = ([0.6f32, 0.8, 0.0], [0.0f32, 0.8, 0.6]);
        let product: f64 = 0.64;
        let squared: f64 = 0.72;
        for (similarity, want) in [
            (Similarity::Cosine, product),
            (Similarity::Gaussian { sigma2: 2.5 }, (-squared / 5.0).exp()),
            (Similarity::Dot3, product.powi(3)),
        ] {
            let score = similarity.score(similarity.chain().of(&a, &b));
            let weight = similarity.weight(score);
            assert!((f64::from(weight) - want).abs() < 1e-6, "{similarity:?}: {weight} {want}");
            assert!((similarity.score_of_weight(weight) - score).abs() < 1e-5, "{similarity:?}");
            assert!(score > similarity.floor());
            let distance = if similarity.scales_rows() { 1.0 - product } else { squared.sqrt() };
            match similarity.weight_of_distance(distance) {
                Some(weight) => assert!((f64::from(weight) - want).abs() < 1e-6, "{similarity:?}: {weight}"),
                None => assert_eq!(similarity, Similarity::Dot3),
            }
        }
    }

    #[test]
    fn words_stand_for_what_they_say() {
        for (word, similarity) in Similarity::WORDS {
            assert_eq!(similarity.as_str(), *word);
            assert_eq!(similarity.wrong_parameter(), None);
            assert_eq!(similarity.with_sigma2(1.0), *similarity);
        }
        let narrow = Similarity::Gaussian { sigma2: 1.0 }.with_sigma2(0.0);
        assert_eq!(narrow.wrong_parameter(), Some(("gauss-sigma2", 0.0, "above 0")));
    }
}
