//! A projection in which the classes known so far are tight. The space is reduced to its principal directions once, and
//! whitened from time to time by the scatter within the classes.
//!
//! Products are made block by block on one thread each, and blocks are joined in order: the same for any number of threads.

use super::nodes::{AnchorRule, Graph, Nodes, Scaling};
use super::{Lesson, View, ViewName};
use crate::anchors::Anchor;
use crate::error::Error;
use crate::features::{FeatureMatrix, ROWS_PER_TASK};
use crate::labels::ClassId;
use crate::linear_algebra::{Factor, inverse_cholesky_factor, leading_eigenvectors};
use crate::neighbours::{NeighbourLists, Wanted, find_again};
use crate::observer::{Stage, report_progress};
use crate::parameters::AnchorMode;
use crate::pseudo_labels::PseudoLabels;
use crate::setup::Setup;
use crate::similarity::Similarity;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Rounds before which the rows are projected anew.
const REBUILT_IN: [usize; 5] = [2, 3, 5, 7, 10];

/// The view that is projected anew from time to time. It votes from the second round on.
#[derive(Clone)]
pub(super) struct Discriminant {
    nodes: Nodes,
    projection: Arc<Projection>,
    /// The first neighbours that any hypothesis has found: the searches of the others start from them.
    first_lists: Arc<OnceLock<Arc<NeighbourLists>>>,
}

impl Discriminant {
    /// Of centred rows of unit length; `labels` are the source's. There are no rows and neighbours before the first lesson.
    pub(super) fn new(
        centred: &Arc<FeatureMatrix>,
        first_target: usize,
        labels: &[Option<ClassId>],
        k: usize,
        run: &Setup<'_>,
    ) -> Result<Self, Error> {
        let go_on = || report_progress(run.observer, Stage::Neighbours, 0, 1);
        let projection = Arc::new(Projection::new(centred, &go_on)?);
        let graph = Graph::Nearest { k, lists: NeighbourLists::new(), without_anchors: None, edges: None };
        let scaling = Scaling::Unit { norms: None };
        let base = FeatureMatrix::default();
        let nodes = Nodes::new(base, first_target, labels.to_vec(), Similarity::Dot3, scaling, graph, None);
        Ok(Discriminant { nodes, projection, first_lists: Arc::default() })
    }

    /// Projects by the source's labels and the most confident of the target's, and searches for neighbours.
    fn rebuild(&mut self, lesson: &Lesson<'_>, run: &Setup<'_>) -> Result<(), Error> {
        let nodes = &mut self.nodes;
        let mut known = nodes.labels[..nodes.first_target].to_vec();
        known.extend(most_confident(lesson.labels, lesson.round));
        nodes.drop_rows();
        let base = self.projection.project(&known, lesson.labels.classes());
        let Graph::Nearest { k, without_anchors, .. } = &nodes.graph else { return Ok(()) };
        let (wanted, similarity) = (Wanted::Nearest(*k), nodes.similarity);
        let (lists, report) = match without_anchors.as_ref().or(self.first_lists.get()) {
            Some(before) => find_again(&base, wanted, similarity, before, run.parameters, run.observer)?,
            None => run.search(&base, wanted, similarity)?,
        };
        let (lists, is_first) = (Arc::new(lists), without_anchors.is_none());
        if is_first {
            let for_others = std::mem::take(&mut self.first_lists);
            for_others.get_or_init(|| lists.clone());
        }
        nodes.replace_rows(base, lists, report);
        Ok(())
    }
}

impl View for Discriminant {
    fn name(&self) -> ViewName {
        ViewName::Discriminant
    }

    fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    fn votes_from(&self) -> usize {
        REBUILT_IN[0]
    }

    fn learn(&mut self, lesson: &Lesson<'_>, run: &Setup<'_>) -> Result<Vec<Anchor>, Error> {
        if REBUILT_IN.contains(&(lesson.round + 1)) {
            self.rebuild(lesson, run)?;
        }
        // Only the newest anchors: earlier ones may be points of another projection.
        let rule = AnchorRule { mode: AnchorMode::Replace, ..AnchorRule::from(run.parameters) };
        Ok(self.nodes.add_anchors(lesson, rule, true))
    }

    fn fork(&self) -> Box<dyn View> {
        Box::new(self.clone())
    }

    fn into_nodes(self: Box<Self>) -> Nodes {
        self.nodes
    }
}

/// Rounds after which every label counts; before, a share that grows evenly.
const ALL_COUNT_AFTER: usize = 10;

/// The labels of the most confident items of every class, `None` for the others.
fn most_confident(pseudo: &PseudoLabels, round: usize) -> Vec<Option<ClassId>> {
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); pseudo.classes()];
    for (item, label) in pseudo.labels().iter().enumerate() {
        if let Some(class) = label {
            members[*class as usize].push(item);
        }
    }
    let mut chosen = vec![None; pseudo.len()];
    for (class, mut items) in members.into_iter().enumerate() {
        let confidence = pseudo.confidence();
        items.sort_by(|&a, &b| confidence[b].total_cmp(&confidence[a]));
        let count = items.len() * round.min(ALL_COUNT_AFTER) / ALL_COUNT_AFTER;
        items[..count].iter().for_each(|&item| chosen[item] = Some(class as ClassId));
    }
    chosen
}

/// Principal directions that are kept.
const DIRECTIONS: usize = 128;

/// Columns of a tile of the covariance matrix.
const TILE: usize = 256;

/// Rows along their principal directions, of unit length.
struct Projection {
    principal: Arc<FeatureMatrix>,
}

impl Projection {
    /// Of centred rows of unit length. `check` is asked now and then whether to go on.
    fn new(centred: &Arc<FeatureMatrix>, check: &dyn Fn() -> Result<(), Error>) -> Result<Self, Error> {
        let kept = DIRECTIONS.min(centred.columns()).min(centred.rows() - 1);
        if kept == centred.columns() {
            // All directions are only a rotation, which changes no product.
            return Ok(Projection { principal: centred.clone() });
        }
        let mut principal = project_onto(centred, &principal_directions(centred, kept, check)?, kept);
        principal.normalise_rows();
        Ok(Projection { principal: Arc::new(principal) })
    }

    /// U = Z·L⁻ᵀ with LLᵀ = I + Σ_c n_c·S_c, the scatter of the rows whose class is known; mean removed, unit rows.
    fn project(&self, known: &[Option<ClassId>], classes: usize) -> FeatureMatrix {
        let columns = self.principal.columns();
        let mut whitened = match inverse_cholesky_factor(self.within_classes(known, classes), columns) {
            Some(inverse) => {
                let inverse: Vec<f32> = inverse.into_iter().map(|value| value as f32).collect();
                project_onto(&self.principal, &inverse, columns)
            }
            // I + a sum of squares has a factor unless something overflowed.
            None => FeatureMatrix::clone(&self.principal),
        };
        whitened.subtract_mean(0..whitened.rows());
        whitened.normalise_rows();
        whitened
    }

    /// I + Σ_c n_c Σ (x − mean_c)(x − mean_c)ᵀ, row after row.
    fn within_classes(&self, known: &[Option<ClassId>], classes: usize) -> Vec<f64> {
        let columns = self.principal.columns();
        let mut counts = vec![0f64; classes];
        let mut means = vec![vec![0f64; columns]; classes];
        for (row, class) in known.iter().enumerate() {
            if let Some(class) = class {
                counts[*class as usize] += 1.0;
                let mean = &mut means[*class as usize];
                mean.iter_mut().zip(self.principal.row(row)).for_each(|(mean, &v)| *mean += f64::from(v));
            }
        }
        for (mean, &count) in means.iter_mut().zip(&counts) {
            mean.iter_mut().for_each(|mean| *mean /= f64::max(count, 1.0));
        }
        let parts: Vec<Vec<f32>> = known
            .par_chunks(ROWS_PER_TASK)
            .enumerate()
            .map(|(task, known)| {
                let mut deviations = Vec::with_capacity(known.len() * columns);
                for (row, class) in (task * ROWS_PER_TASK..).zip(known) {
                    let Some(class) = class.map(|class| class as usize) else { continue };
                    let values = self.principal.row(row).iter().zip(&means[class]);
                    let weight = counts[class].sqrt();
                    deviations.extend(values.map(|(&v, mean)| (weight * (f64::from(v) - mean)) as f32));
                }
                gram(&deviations, columns, 0..columns, 0..columns)
            })
            .collect();
        let mut sum = vec![0f64; columns * columns];
        (0..columns).for_each(|at| sum[at * columns + at] = 1.0);
        for part in parts {
            sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += f64::from(part));
        }
        sum
    }
}

/// XᵀX for some of its rows and columns, where `rows` holds the rows of X, `width` numbers each.
fn gram(rows: &[f32], width: usize, left: Range<usize>, right: Range<usize>) -> Vec<f32> {
    let count = rows.len() / width;
    let mut turned = vec![0f32; left.len() * count];
    let mut cut = Vec::with_capacity(right.len() * count);
    for (at, row) in rows.chunks_exact(width).enumerate() {
        turned[at..].iter_mut().step_by(count).zip(&row[left.clone()]).for_each(|(slot, &v)| *slot = v);
        cut.extend_from_slice(&row[right.clone()]);
    }
    let mut out = vec![0f32; left.len() * right.len()];
    Factor::new(&cut, right.len()).multiply(&turned, &mut out);
    out
}

/// The eigenvectors of XᵀX with the largest eigenvalues, one after the other.
fn principal_directions(
    features: &FeatureMatrix,
    kept: usize,
    check: &dyn Fn() -> Result<(), Error>,
) -> Result<Vec<f32>, Error> {
    let columns = features.columns();
    let tiles: Vec<usize> = (0..columns).step_by(TILE).collect();
    let pairs: Vec<(usize, usize)> =
        tiles.iter().flat_map(|&a| tiles.iter().filter(move |&&b| b <= a).map(move |&b| (a, b))).collect();
    let mut covariance = vec![0f64; columns * columns];
    for start in (0..features.rows()).step_by(ROWS_PER_TASK) {
        check()?;
        let rows = features.block(start..features.rows().min(start + ROWS_PER_TASK));
        let tile = |at: usize| at..columns.min(at + TILE);
        let products: Vec<Vec<f32>> =
            pairs.par_iter().map(|&(a, b)| gram(rows, columns, tile(a), tile(b))).collect();
        for (&(a, b), product) in pairs.iter().zip(products) {
            for (i, line) in tile(a).zip(product.chunks_exact(tile(b).len())) {
                let sums = &mut covariance[i * columns..][tile(b)];
                sums.iter_mut().zip(line).for_each(|(sum, &part)| *sum += f64::from(part));
            }
        }
    }
    let symmetric = |at: usize| {
        let (i, j) = (at / columns, at % columns);
        covariance[i.max(j) * columns + i.min(j)] as f32
    };
    leading_eigenvectors((0..columns * columns).map(symmetric).collect(), columns, kept, check)
}

/// X·Dᵀ, block by block; `directions` holds the rows of D.
fn project_onto(features: &FeatureMatrix, directions: &[f32], count: usize) -> FeatureMatrix {
    let factor = Factor::transposed(directions, features.columns());
    let mut values = vec![0f32; features.rows() * count];
    values.par_chunks_mut(ROWS_PER_TASK * count).enumerate().for_each(|(task, out)| {
        let start = task * ROWS_PER_TASK;
        factor.multiply(features.block(start..start + out.len() / count), out);
    });
    FeatureMatrix::from_parts(features.rows(), count, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear_algebra::Lu;
    use rand::{RngExt, SeedableRng};

    fn random(rows: usize, columns: usize) -> FeatureMatrix {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        let values = (0..rows * columns).map(|at| {
            let along = 1.0 / (1 + at % columns) as f32;
            along * rng.random_range(-1.0f32..1.0)
        });
        FeatureMatrix::new(rows, columns, values.collect()).unwrap()
    }

    /// Rows of a projection are alike as much as the definition says: uᵢ·uⱼ from zᵢᵀB⁻¹zⱼ.
    #[test]
    fn products_are_those_of_the_inverse_scatter() {
        let mut rows = random(60, 5);
        rows.normalise_rows();
        let known: Vec<Option<ClassId>> = (0..60).map(|at| [Some(0), Some(1), None][at % 3]).collect();
        let projection = Projection { principal: Arc::new(rows.clone()) };
        let projected = projection.project(&known, 2);

        let x = |row: usize, column: usize| f64::from(rows.row(row)[column]);
        let mut scatter = vec![0f64; 25];
        (0..5).for_each(|at| scatter[at * 6] = 1.0);
        for class in 0..2 {
            let members: Vec<usize> = (0..60).filter(|&at| known[at] == Some(class)).collect();
            let n = members.len() as f64;
            let mean = |c: usize| members.iter().map(|&m| x(m, c)).sum::<f64>() / n;
            for (i, j) in (0..25).map(|at| (at / 5, at % 5)) {
                let sum: f64 = members.iter().map(|&m| (x(m, i) - mean(i)) * (x(m, j) - mean(j))).sum();
                scatter[i * 5 + j] += n * sum;
            }
        }
        let identity: Vec<f64> = (0..25).map(|at| f64::from(u8::from(at % 6 == 0))).collect();
        let inverse = Lu::new(scatter, 5).unwrap().solve(&identity, 5);
        let centred = |i: usize, c: usize| x(i, c) - (0..60).map(|r| x(r, c)).sum::<f64>() / 60.0;
        let product = |i: usize, j: usize| -> f64 {
            (0..25).map(|at| centred(i, at / 5) * inverse[at] * centred(j, at % 5)).sum()
        };
        for (i, j) in [(0, 1), (0, 3), (7, 41), (58, 59)] {
            let want = product(i, j) / (product(i, i) * product(j, j)).sqrt();
            let have: f32 = projected.row(i).iter().zip(projected.row(j)).map(|(a, b)| a * b).sum();
            assert!((f64::from(have) - want).abs() < 1e-5, "{i} {j}: {have} {want}");
        }
    }

    /// With one column too many, the direction that is dropped is the one of least variance.
    #[test]
    fn the_direction_of_least_variance_is_dropped() {
        let rows = random(300, 300);
        let directions = principal_directions(&rows, 299, &|| Ok(())).unwrap();
        let direction = |at: usize| &directions[at * 300..][..300];
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        for (i, j) in (0..299).flat_map(|i| [(i, i), (i, (i + 1) % 299)]) {
            let want = if i == j { 1.0 } else { 0.0 };
            assert!((dot(direction(i), direction(j)) - want).abs() < 1e-4);
        }
        let total: f32 = rows.values().iter().map(|v| v * v).sum();
        let kept: f32 = project_onto(&rows, &directions, 299).values().iter().map(|v| v * v).sum();
        // No direction has less than the one of least variance, so no column has.
        let column = |j: usize| (0..300).map(|i| rows.row(i)[j].powi(2)).sum::<f32>();
        let least = (0..300).map(column).fold(f32::INFINITY, f32::min);
        assert!(total - kept <= least + 1e-4 * total, "{total} {kept} {least}");
    }
}
