//! t-SNE with Barnes and Hut's approximation (van der Maaten 2014): near neighbours stay near.
//!
//! Starts from the principal components and adds in a fixed order, so the same rows give the same map on any number of
//! threads.

use crate::map::Scale;
use crate::trace::{Map, MapKind, NO_CLASS};
use a2lp::{Error, FeatureMatrix, Observer, Parameters, neighbour_graph};
use rayon::prelude::*;
use std::ops::ControlFlow;

const PERPLEXITY: f64 = 30.0;
const ITERATIONS: usize = 750;
/// Iterations in which attraction is exaggerated, and by how much.
const EXAGGERATED: (usize, f64) = (250, 12.0);
/// A cell this much smaller than its distance counts as one point.
const THETA: f64 = 0.5;

/// Lays the points of `map` out anew. `features` are their rows in the same order, any length; `on_progress` gets
/// the iterations done and all there are.
pub fn lay_out(
    map: &mut Map,
    features: FeatureMatrix,
    threads: usize,
    observer: &dyn Observer,
    on_progress: &(dyn Fn(u64, u64) -> ControlFlow<()> + Sync),
) -> Result<(), Error> {
    let points = features.rows();
    let neighbours = ((3.0 * PERPLEXITY) as usize).min(points.saturating_sub(1)).max(1);
    let parameters = Parameters::new().neighbours(neighbours).threads(threads).check()?;
    let graph = neighbour_graph(features, &parameters, false, observer)?.graph;
    let start: Vec<[f64; 2]> =
        map.x.iter().zip(&map.y).map(|(&x, &y)| [f64::from(x), f64::from(y)]).collect();
    let places = parameters.on_threads(|| {
        let attraction = Attraction::new(points, |node| {
            let row = graph.starts[node]..graph.starts[node + 1];
            // |a − b|² of unit rows
            graph.columns[row.clone()]
                .iter()
                .zip(&graph.weights[row])
                .map(|(&other, &cosine)| (other, (2.0 - 2.0 * f64::from(cosine)).max(0.0)))
                .collect()
        });
        descend(&attraction, start, on_progress)
    })??;
    let places: Vec<[f32; 2]> = places.iter().map(|place| place.map(|v| v as f32)).collect();
    let scale = Scale::of(&places);
    (map.x, map.y) = scale.points(&places);
    map.kind = MapKind::Tsne;
    map.explained = None;
    place_anchors(map);
    Ok(())
}

/// t-SNE has no place for what it was not shown: anchors go to the mean of the drawn items they stand for.
fn place_anchors(map: &mut Map) {
    let first_target = map.source_points;
    for anchor in &mut map.anchors {
        let made_of = map.frames.iter().rev().find(|frame| frame.round < anchor.round).or(map.frames.first());
        let Some(frame) = made_of else { continue };
        let (mut x, mut y, mut total) = (0.0, 0.0, 0.0);
        for (at, (&label, &confidence)) in frame.labels.iter().zip(&frame.confidence).enumerate() {
            if label == anchor.class && label != NO_CLASS {
                let weight = f64::from(confidence) + 1e-3;
                x += weight * f64::from(map.x[first_target + at]);
                y += weight * f64::from(map.y[first_target + at]);
                total += weight;
            }
        }
        if total > 0.0 {
            (anchor.x, anchor.y) = ((x / total) as i32, (y / total) as i32);
        }
    }
}

/// The symmetric matrix P of attractions.
struct Attraction {
    starts: Vec<usize>,
    entries: Vec<(u32, f64)>,
}

impl Attraction {
    fn new(points: usize, distances: impl Fn(usize) -> Vec<(u32, f64)> + Sync) -> Self {
        let rows: Vec<Vec<(u32, f64)>> =
            (0..points).into_par_iter().map(|point| conditional(&distances(point))).collect();
        // p_ij = (p_j|i + p_i|j) / 2n
        let mut both: Vec<(u32, u32, f64)> = rows
            .iter()
            .enumerate()
            .flat_map(|(i, row)| row.iter().flat_map(move |&(j, p)| [(i as u32, j, p), (j, i as u32, p)]))
            .collect();
        both.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
        both.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2 += next.2;
            }
            same
        });
        let starts = (0..=points as u32).map(|point| both.partition_point(|entry| entry.0 < point)).collect();
        let entries = both.into_iter().map(|(_, j, p)| (j, p / (2.0 * points as f64))).collect();
        Attraction { starts, entries }
    }
}

/// p_j|i of one point, as peaked as the perplexity asks for.
fn conditional(distances: &[(u32, f64)]) -> Vec<(u32, f64)> {
    let nearest = distances.iter().map(|entry| entry.1).fold(f64::INFINITY, f64::min);
    let wanted = PERPLEXITY.min(distances.len() as f64 / 3.0).max(1.0).ln();
    let (mut low, mut high, mut beta) = (0.0, f64::INFINITY, 1.0);
    let mut weights: Vec<f64> = Vec::new();
    for _ in 0..60 {
        weights = distances.iter().map(|entry| (-beta * (entry.1 - nearest)).exp()).collect();
        let total: f64 = weights.iter().sum();
        let mean: f64 =
            distances.iter().zip(&weights).map(|(entry, w)| (entry.1 - nearest) * w).sum::<f64>() / total;
        let entropy = total.ln() + beta * mean;
        if entropy > wanted {
            low = beta
        } else {
            high = beta
        }
        beta = if high.is_finite() { (low + high) / 2.0 } else { 2.0 * beta };
    }
    let total: f64 = weights.iter().sum();
    distances.iter().zip(weights).map(|(entry, w)| (entry.0, w / total)).collect()
}

/// Gradient descent with momentum and a gain per coordinate.
fn descend(
    attraction: &Attraction,
    mut places: Vec<[f64; 2]>,
    on_progress: &(dyn Fn(u64, u64) -> ControlFlow<()> + Sync),
) -> Result<Vec<[f64; 2]>, Error> {
    let points = places.len();
    shrink(&mut places);
    let mut moves = vec![[0f64; 2]; points];
    let mut gains = vec![[1f64; 2]; points];
    let rate = (points as f64 / EXAGGERATED.1 / 4.0).max(50.0);
    for iteration in 0..ITERATIONS {
        if on_progress(iteration as u64, ITERATIONS as u64).is_break() {
            return Err(Error::Cancelled);
        }
        let (exaggeration, momentum) =
            if iteration < EXAGGERATED.0 { (EXAGGERATED.1, 0.5) } else { (1.0, 0.8) };
        let tree = Tree::of(&places);
        let repulsion: Vec<([f64; 2], f64)> = places.par_iter().map(|&place| tree.repulsion(place)).collect();
        let total: f64 = repulsion.iter().map(|r| r.1).sum::<f64>().max(f64::MIN_POSITIVE);
        let gradient: Vec<[f64; 2]> = (0..points)
            .into_par_iter()
            .map(|i| {
                let mut pull = [0f64; 2];
                for &(j, p) in &attraction.entries[attraction.starts[i]..attraction.starts[i + 1]] {
                    let [dx, dy] =
                        [places[i][0] - places[j as usize][0], places[i][1] - places[j as usize][1]];
                    let weight = exaggeration * p / (1.0 + dx * dx + dy * dy);
                    pull[0] += weight * dx;
                    pull[1] += weight * dy;
                }
                [0, 1].map(|axis| 4.0 * (pull[axis] - repulsion[i].0[axis] / total))
            })
            .collect();
        for i in 0..points {
            for axis in 0..2 {
                let same_way = (gradient[i][axis] > 0.0) == (moves[i][axis] > 0.0);
                gains[i][axis] =
                    if same_way { (gains[i][axis] * 0.8).max(0.01) } else { gains[i][axis] + 0.2 };
                moves[i][axis] = momentum * moves[i][axis] - rate * gains[i][axis] * gradient[i][axis];
                places[i][axis] += moves[i][axis];
            }
        }
    }
    let _ = on_progress(ITERATIONS as u64, ITERATIONS as u64);
    Ok(places)
}

/// Centres the start and makes it tiny; points in one place are moved apart a little.
fn shrink(places: &mut [[f64; 2]]) {
    let count = places.len().max(1) as f64;
    for axis in 0..2 {
        let mean = places.iter().map(|place| place[axis]).sum::<f64>() / count;
        let spread = (places.iter().map(|place| (place[axis] - mean).powi(2)).sum::<f64>() / count).sqrt();
        for (at, place) in places.iter_mut().enumerate() {
            let apart = ((at * (2 * axis + 1)) as f64 * 0.618).fract() * 1e-6;
            place[axis] = if spread > 0.0 { 1e-4 * (place[axis] - mean) / spread } else { 0.0 } + apart;
        }
    }
}

/// A quadtree whose cells know how many points they hold and where those lie on average.
struct Tree {
    cells: Vec<Cell>,
}

#[derive(Clone, Copy)]
struct Cell {
    centre: [f64; 2],
    half: f64,
    points: f64,
    sum: [f64; 2],
    /// 0 means none: no node has the root as its child.
    children: [u32; 4],
}

/// Cells this deep take any number of points.
const DEPTH: usize = 40;

impl Tree {
    fn of(places: &[[f64; 2]]) -> Self {
        let range = |axis: usize| {
            let values = places.iter().map(|place| place[axis]);
            (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
        };
        let ((left, right), (bottom, top)) = (range(0), range(1));
        let half = (right - left).max(top - bottom) / 2.0 + 1e-12;
        let mut tree = Tree { cells: vec![Cell::new([(left + right) / 2.0, (bottom + top) / 2.0], half)] };
        places.iter().for_each(|&place| tree.insert(place));
        tree
    }

    fn insert(&mut self, place: [f64; 2]) {
        let mut at = 0;
        for _ in 0..DEPTH {
            let cell = self.cells[at];
            // The first point of a cell stays there until a second comes.
            let was_alone = cell.points == 1.0;
            self.cells[at].add(place, 1.0);
            if cell.points == 0.0 {
                return;
            }
            if was_alone && cell.children == [0; 4] {
                let earlier = self.child(at, cell.sum);
                self.cells[earlier].add(cell.sum, 1.0);
            }
            at = self.child(at, place);
        }
        self.cells[at].add(place, 1.0);
    }

    /// The child that `place` belongs to, made if need be.
    fn child(&mut self, at: usize, place: [f64; 2]) -> usize {
        let Cell { centre, half, children, .. } = self.cells[at];
        let quadrant = usize::from(place[0] > centre[0]) + 2 * usize::from(place[1] > centre[1]);
        if children[quadrant] == 0 {
            let quarter = half / 2.0;
            let towards = |high: bool| if high { quarter } else { -quarter };
            let centre = [centre[0] + towards(quadrant & 1 == 1), centre[1] + towards(quadrant & 2 == 2)];
            self.cells.push(Cell::new(centre, quarter));
            self.cells[at].children[quadrant] = self.cells.len() as u32 - 1;
        }
        self.cells[at].children[quadrant] as usize
    }

    /// Σ q²·(y_i − y_j) and Σ q over the other points, q = 1/(1 + |y_i − y_j|²).
    fn repulsion(&self, place: [f64; 2]) -> ([f64; 2], f64) {
        let (mut force, mut total) = ([0f64; 2], -1.0);
        let mut open = vec![0u32];
        while let Some(at) = open.pop() {
            let cell = &self.cells[at as usize];
            let (dx, dy) = (place[0] - cell.sum[0] / cell.points, place[1] - cell.sum[1] / cell.points);
            let distance = dx * dx + dy * dy;
            if cell.children == [0; 4] || (2.0 * cell.half).powi(2) < THETA * THETA * distance {
                let q = 1.0 / (1.0 + distance);
                total += cell.points * q;
                force[0] += cell.points * q * q * dx;
                force[1] += cell.points * q * q * dy;
            } else {
                open.extend(cell.children.iter().filter(|&&child| child != 0));
            }
        }
        // The point itself was counted with q = 1 and no force.
        (force, total)
    }
}

impl Cell {
    fn new(centre: [f64; 2], half: f64) -> Self {
        Cell { centre, half, points: 0.0, sum: [0.0; 2], children: [0; 4] }
    }

    fn add(&mut self, place: [f64; 2], points: f64) {
        self.points += points;
        self.sum[0] += place[0];
        self.sum[1] += place[1];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scattered(count: usize) -> Vec<[f64; 2]> {
        (0..count)
            .map(|at| [((at * 37) as f64 * 0.618).fract() * 10.0, ((at * 53) as f64 * 0.414).fract() * 10.0])
            .collect()
    }

    #[test]
    fn the_tree_adds_up_what_all_pairs_do() {
        let mut places = scattered(500);
        places.extend([[3.0, 3.0]; 20]);
        let tree = Tree::of(&places);
        for &place in places.iter().step_by(25) {
            let (force, total) = tree.repulsion(place);
            let (mut exact_force, mut exact_total) = ([0f64; 2], -1.0);
            for other in &places {
                let (dx, dy) = (place[0] - other[0], place[1] - other[1]);
                let q = 1.0 / (1.0 + dx * dx + dy * dy);
                exact_total += q;
                exact_force[0] += q * q * dx;
                exact_force[1] += q * q * dy;
            }
            assert!((total / exact_total - 1.0).abs() < 0.02, "{total} {exact_total}");
            for axis in 0..2 {
                assert!(
                    (force[axis] - exact_force[axis]).abs() < 0.05 * exact_total.sqrt(),
                    "{force:?} {exact_force:?}"
                );
            }
        }
    }

    #[test]
    fn rows_of_p_are_as_peaked_as_asked() {
        let distances: Vec<(u32, f64)> = (0..90).map(|at| (at, f64::from(at) * 0.01)).collect();
        let row = conditional(&distances);
        assert!((row.iter().map(|entry| entry.1).sum::<f64>() - 1.0).abs() < 1e-9);
        let entropy: f64 = row.iter().map(|entry| -entry.1 * entry.1.ln()).sum();
        assert!((entropy.exp() - 30.0).abs() < 0.01, "{}", entropy.exp());
        assert!(conditional(&[]).is_empty());
    }

    #[test]
    fn clusters_come_out_apart() {
        // Three clusters of 60 rows in 8 dimensions.
        let rows: Vec<[f32; 8]> = (0..180)
            .map(|at| {
                let mut row: [f32; 8] =
                    std::array::from_fn(|d| ((at * 8 + d) as f32 * 0.754_877_7).fract() * 0.3);
                row[at % 3] += 1.0;
                row
            })
            .collect();
        let attraction_start = scattered(180);
        let unit: Vec<Vec<f64>> = rows
            .iter()
            .map(|row| {
                let length = row.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
                row.iter().map(|&v| f64::from(v) / length).collect()
            })
            .collect();
        let attraction = Attraction::new(180, |i| {
            (0..180)
                .filter(|&j| j != i)
                .map(|j| (j as u32, unit[i].iter().zip(&unit[j]).map(|(a, b)| (a - b).powi(2)).sum()))
                .collect()
        });
        let places = descend(&attraction, attraction_start, &|_, _| ControlFlow::Continue(())).unwrap();
        let near = (0..180).filter(|&i| {
            let distance = |j: usize| (places[i][0] - places[j][0]).hypot(places[i][1] - places[j][1]);
            let nearest = (0..180).filter(|&j| j != i).min_by(|&a, &b| distance(a).total_cmp(&distance(b)));
            nearest.is_some_and(|j| j % 3 == i % 3)
        });
        assert!(near.count() >= 175);
    }
}
