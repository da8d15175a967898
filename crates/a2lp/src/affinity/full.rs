//! The full graph: every pair of nodes is joined. For the cosine of non-negative features it is never
//! stored: A + Aᵀ = 2(VVᵀ − diag), so A·X = 2(V(VᵀX) − …). Otherwise the n × n weights are kept in f32.

use super::{Affinity, Edges, Prepared};
use crate::error::Error;
use crate::features::FeatureMatrix;
use crate::kernels::{PackedRows, ScoreTile};
use crate::neighbours::Numbering;
use crate::similarity::Similarity;
use rayon::prelude::*;
use std::ops::Range;

pub(super) struct FullGraph<'v> {
    parts: [&'v FeatureMatrix; 2],
    /// 2ε of every pair, diagonal 0; `None` when V itself is enough.
    stored: Option<Vec<f32>>,
}

/// Columns of V summed up by one task.
const COLUMNS_PER_TASK: usize = 64;

/// The full graph over the rows of `base`, then of `anchors`.
pub(crate) fn full_graph<'v>(
    base: &'v FeatureMatrix,
    anchors: &'v FeatureMatrix,
    similarity: Similarity,
) -> Result<Affinity<'v>, Error> {
    let mut graph = FullGraph { parts: [base, anchors], stored: None };
    let implicit = similarity.is_linear() && base.is_non_negative() && anchors.is_non_negative();
    let degrees: Vec<f64>;
    if implicit {
        // dᵢ = 2(vᵢ·Σⱼvⱼ − vᵢ·vᵢ)
        let ones = vec![1f32; graph.nodes()];
        let Prepared::Products(sum) = graph.prepare(&ones, ones.as_chunks::<1>().0) else {
            unreachable!("a full graph that is not stored prepares products")
        };
        degrees = (0..graph.nodes())
            .into_par_iter()
            .with_min_len(64)
            .map(|i| {
                let v = graph.vector(i);
                let all: f64 = v.iter().zip(&sum).map(|(&v, s)| f64::from(v) * s).sum();
                // Rounding may leave a trace where the exact value is 0.
                let degree = 2.0 * (all - square(v));
                if degree > 1e-12 { degree } else { 0.0 }
            })
            .collect();
    } else {
        let weights = graph.all_weights(similarity)?;
        degrees =
            weights.par_chunks(graph.nodes()).map(|row| row.iter().map(|&w| f64::from(w)).sum()).collect();
        graph.stored = Some(weights);
    }
    if let Some(node) = degrees.iter().position(|d| !d.is_finite()) {
        return Err(Error::WeightOverflow(node));
    }
    Ok(Affinity::new(Edges::Full(graph), Numbering::default(), degrees))
}

fn square(v: &[f32]) -> f64 {
    v.iter().map(|&v| f64::from(v) * f64::from(v)).sum()
}

impl FullGraph<'_> {
    fn nodes(&self) -> usize {
        self.parts[0].rows() + self.parts[1].rows()
    }

    fn vector(&self, node: usize) -> &[f32] {
        let base = self.parts[0].rows();
        if node < base { self.parts[0].row(node) } else { self.parts[1].row(node - base) }
    }

    pub(super) fn entries(&self) -> usize {
        self.stored.as_ref().map_or(0, Vec::len)
    }

    fn all_weights(&self, similarity: Similarity) -> Result<Vec<f32>, Error> {
        let nodes = self.nodes();
        let mut weights = Vec::new();
        let bytes = nodes as u128 * nodes as u128 * 4;
        let advice = "choose a number of neighbours instead of all";
        let fits = usize::try_from(bytes / 4).is_ok_and(|count| weights.try_reserve_exact(count).is_ok());
        if !fits {
            return Err(Error::Memory { what: "full graph", bytes, advice });
        }
        weights.resize(nodes * nodes, 0f32);
        const ROWS: usize = 256;
        for (part, first_column) in self.parts.iter().zip([0, self.parts[0].rows()]) {
            for block in (0..part.rows()).step_by(ROWS) {
                let columns = block..part.rows().min(block + ROWS);
                let mut packed = PackedRows::new();
                packed.pack(part.block(columns.clone()), part.columns());
                weights.par_chunks_mut(nodes).enumerate().for_each_init(ScoreTile::new, |tile, (i, row)| {
                    tile.score(similarity.chain(), self.vector(i), &packed);
                    for (_, first, scores) in tile.segments() {
                        let start = first_column + columns.start + first;
                        for (j, (weight, &accumulated)) in (start..).zip(row[start..].iter_mut().zip(scores))
                        {
                            let score = similarity.score(accumulated);
                            if i != j && score > similarity.floor() {
                                *weight = 2.0 * similarity.weight(score);
                            }
                        }
                    }
                });
            }
        }
        Ok(weights)
    }

    /// Row `node` of A: stored, or worked out on the spot.
    pub(super) fn row(&self, node: usize, row: &mut Vec<(u32, f32)>) {
        let v = self.vector(node);
        for j in (0..self.nodes()).filter(|&j| j != node) {
            let weight = match &self.stored {
                Some(weights) => weights[node * self.nodes() + j],
                None => {
                    (2.0 * v
                        .iter()
                        .zip(self.vector(j))
                        .map(|(&a, &b)| f64::from(a) * f64::from(b))
                        .sum::<f64>()) as f32
                }
            };
            if weight > 0.0 {
                row.push((j as u32, weight));
            }
        }
    }

    /// VᵀD^-½X, each task a stretch of V's columns over all nodes in order, in f64.
    pub(super) fn prepare<const W: usize>(&self, scale: &[f32], x: &[[f32; W]]) -> Prepared {
        if self.stored.is_some() {
            return Prepared::Nothing;
        }
        let columns = self.parts[0].columns();
        let mut products = vec![0f64; columns * W];
        products.par_chunks_mut(COLUMNS_PER_TASK * W).enumerate().for_each(|(task, products)| {
            let start = task * COLUMNS_PER_TASK;
            for node in 0..self.nodes() {
                let v = &self.vector(node)[start..][..products.len() / W];
                let x: [f64; W] = std::array::from_fn(|c| f64::from(scale[node]) * f64::from(x[node][c]));
                for (sum, &v) in products.chunks_exact_mut(W).zip(v) {
                    if v != 0.0 {
                        for c in 0..W {
                            sum[c] += f64::from(v) * x[c];
                        }
                    }
                }
            }
        });
        Prepared::Products(products)
    }

    pub(super) fn multiply_rows<const W: usize>(
        &self,
        scale: &[f32],
        prepared: &Prepared,
        range: Range<usize>,
        x: &[[f32; W]],
        out: &mut [[f32; W]],
    ) {
        for (i, out) in range.zip(out) {
            let mut acc = [0f64; W];
            match (prepared, &self.stored) {
                (Prepared::Products(products), _) => {
                    let v = self.vector(i);
                    for (products, &v) in products.chunks_exact(W).zip(v) {
                        for c in 0..W {
                            acc[c] += f64::from(v) * products[c];
                        }
                    }
                    let own = square(v) * f64::from(scale[i]);
                    for c in 0..W {
                        acc[c] = 2.0 * (acc[c] - own * f64::from(x[i][c]));
                    }
                }
                (Prepared::Nothing, Some(weights)) => {
                    let row = &weights[i * self.nodes()..][..self.nodes()];
                    for ((&weight, &scale), x) in row.iter().zip(scale).zip(x) {
                        let s = f64::from(weight) * f64::from(scale);
                        for c in 0..W {
                            acc[c] += s * f64::from(x[c]);
                        }
                    }
                }
                (Prepared::Nothing, None) => unreachable!("prepare gives products when nothing is stored"),
            }
            for c in 0..W {
                out[c] = (f64::from(scale[i]) * acc[c]) as f32;
            }
        }
    }

    /// Spreads `reached` along the edges until nothing changes.
    pub(super) fn spread(&self, reached: &mut [bool]) {
        let joined: &dyn Fn(usize, usize) -> bool = match &self.stored {
            Some(weights) => &|i, j| weights[i * self.nodes() + j] > 0.0,
            // Non-negative vectors meet where both are positive.
            None => &|i, j| self.vector(i).iter().zip(self.vector(j)).any(|(&a, &b)| a > 0.0 && b > 0.0),
        };
        let mut queue: Vec<usize> = (0..reached.len()).filter(|&i| reached[i]).collect();
        let mut waiting: Vec<usize> = (0..reached.len()).filter(|&i| !reached[i]).collect();
        while let Some(node) = queue.pop() {
            if waiting.is_empty() {
                return;
            }
            waiting.retain(|&other| {
                let found = joined(node, other);
                if found {
                    reached[other] = true;
                    queue.push(other);
                }
                !found
            });
        }
    }
}
