//! CAN's contrastive domain discrepancy: kernel distances between domains, small within a class, large between classes.

use burn::tensor::{Device, Int, Tensor, TensorData};

/// Kernels, each twice as wide as the one before; the third has the mean distance for its width.
const KERNELS: i32 = 5;
const LEAST_WIDTH: f64 = 1e-5;

/// Rows of one domain in the order of classes: how many there are of each.
#[derive(Clone, Debug)]
pub(crate) struct Grouped {
    pub(crate) counts: Vec<usize>,
}

impl Grouped {
    /// The group of every row.
    fn groups(&self) -> Vec<usize> {
        self.counts.iter().enumerate().flat_map(|(group, &count)| std::iter::repeat_n(group, count)).collect()
    }

    /// Pairs of rows within a group, as positions in the matrix of all pairs, and the group of each.
    fn pairs(&self) -> (Vec<usize>, Vec<usize>) {
        let groups = self.groups();
        let rows = groups.len();
        (0..rows * rows)
            .filter(|place| groups[place / rows] == groups[place % rows])
            .map(|place| (place, groups[place / rows]))
            .unzip()
    }
}

/// One layer: its activations of the source and of the target items.
pub(crate) type Layer = (Tensor<2>, Tensor<2>);

/// intra − inter over the sampled classes, divided by how many classes there are in all: `total`.
pub(crate) fn contrastive_discrepancy(
    layers: &[Layer],
    source: &Grouped,
    target: &Grouped,
    total: usize,
) -> Tensor<1> {
    let distances: Vec<Distances> =
        layers.iter().map(|layer| Distances::new(layer, source, target)).collect();
    let widths: Vec<Tensor<2>> = distances.iter().map(|d| d.widths(source, target)).collect();
    of_mmd(mmd(&distances, &widths, source, target), total)
}

/// CDD from the discrepancies of all pairs of classes.
fn of_mmd(mmd: Tensor<2>, total: usize) -> Tensor<1> {
    let [groups, _] = mmd.dims();
    let device = mmd.device();
    let total = total as f64;
    let weight = |place: usize| {
        if place / groups == place % groups { 1.0 / total } else { -1.0 / (total * (total - 1.0)) }
    };
    let weights: Vec<f32> = (0..groups * groups).map(|place| weight(place) as f32).collect();
    (mmd * Tensor::from_data(TensorData::new(weights, [groups, groups]), &device)).sum()
}

/// Squared distances of a layer.
struct Distances {
    /// Of pairs within a class, in the order of [`Grouped::pairs`].
    source: Tensor<1>,
    target: Tensor<1>,
    /// Of all source rows to all target rows.
    across: Tensor<2>,
}

impl Distances {
    fn new((source, target): &Layer, by_source: &Grouped, by_target: &Grouped) -> Self {
        let within = |rows: &Tensor<2>, grouped: &Grouped| {
            let [count, _] = rows.dims();
            let all = squared_distances(rows.clone(), rows.clone()).reshape([count * count]);
            all.select(0, indices(&grouped.pairs().0, &rows.device()))
        };
        Distances {
            source: within(source, by_source),
            target: within(target, by_target),
            across: squared_distances(source.clone(), target.clone()),
        }
    }

    /// The mean distance of every pair of classes, a class of the source down and one of the target across; no
    /// gradient goes through it.
    fn widths(&self, source: &Grouped, target: &Grouped) -> Tensor<2> {
        let flat =
            |tensor: &Tensor<1>| -> Vec<f32> { tensor.clone().detach().into_data().iter::<f32>().collect() };
        let across: Vec<f32> = self.across.clone().detach().into_data().iter::<f32>().collect();
        let sums = |distances: Vec<f32>, grouped: &Grouped| {
            let mut sums = vec![0f64; grouped.counts.len()];
            for (distance, group) in distances.into_iter().zip(grouped.pairs().1) {
                sums[group] += f64::from(distance);
            }
            sums
        };
        let (ss, tt) = (sums(flat(&self.source), source), sums(flat(&self.target), target));
        let (rows, columns) = (source.groups(), target.groups());
        let groups = source.counts.len();
        let mut st = vec![0f64; groups * groups];
        for (place, distance) in across.into_iter().enumerate() {
            st[rows[place / columns.len()] * groups + columns[place % columns.len()]] += f64::from(distance);
        }
        let width = |place: usize| {
            let (a, b) = (place / groups, place % groups);
            let (s, t) = (source.counts[a] as f64, target.counts[b] as f64);
            ((ss[a] + tt[b] + 2.0 * st[place]) / (s * s + t * t + 2.0 * s * t - s - t)) as f32
        };
        let widths: Vec<f32> = (0..groups * groups).map(width).collect();
        Tensor::from_data(TensorData::new(widths, [groups, groups]), &self.across.device())
    }
}

/// The discrepancy of every pair of classes, summed over layers.
fn mmd(distances: &[Distances], widths: &[Tensor<2>], source: &Grouped, target: &Grouped) -> Tensor<2> {
    let device = widths[0].device();
    let groups = source.counts.len();
    // Means over the pairs within each class, as matrices: classes down, pairs across.
    let within = |grouped: &Grouped| -> Tensor<2> {
        let (_, of) = grouped.pairs();
        let mut mean = vec![0f32; groups * of.len()];
        for (pair, &group) in of.iter().enumerate() {
            mean[group * of.len() + pair] = 1.0 / (grouped.counts[group] * grouped.counts[group]) as f32;
        }
        Tensor::from_data(TensorData::new(mean, [groups, of.len()]), &device)
    };
    let mean_of = |grouped: &Grouped| -> Tensor<2> {
        let of = grouped.groups();
        let mut mean = vec![0f32; groups * of.len()];
        for (row, &group) in of.iter().enumerate() {
            mean[group * of.len() + row] = 1.0 / grouped.counts[group] as f32;
        }
        Tensor::from_data(TensorData::new(mean, [groups, of.len()]), &device)
    };
    let pairs = |grouped: &Grouped| indices(&grouped.pairs().1, &device);
    let rows = |grouped: &Grouped| indices(&grouped.groups(), &device);
    let mut total = Tensor::zeros([groups, groups], &device);
    for (layer, widths) in distances.iter().zip(widths) {
        // Within the source's class a with the width of (a, b), for every b; and the other way round.
        let ss = kernel(column(layer.source.clone()), widths.clone().select(0, pairs(source)));
        let tt = kernel(column(layer.target.clone()), widths.clone().transpose().select(0, pairs(target)));
        let st = kernel(layer.across.clone(), widths.clone().select(0, rows(source)).select(1, rows(target)));
        total = total + within(source).matmul(ss) + within(target).matmul(tt).transpose()
            - mean_of(source).matmul(st).matmul(mean_of(target).transpose()) * 2.0;
    }
    total
}

/// Σ exp(−distance / width) over the kernels.
fn kernel(distances: Tensor<2>, widths: Tensor<2>) -> Tensor<2> {
    let one = |at: i32| {
        let width = (widths.clone() * 2f64.powi(at - KERNELS / 2)).clamp_min(LEAST_WIDTH);
        (-(distances.clone() / width).clamp(1e-5, 1e5)).exp()
    };
    (1..KERNELS).fold(one(0), |sum, at| sum + one(at))
}

/// By differences, not by products: equal rows are exactly 0 apart.
fn squared_distances(a: Tensor<2>, b: Tensor<2>) -> Tensor<2> {
    let ([rows, width], [columns, _]) = (a.dims(), b.dims());
    let difference = a.reshape([rows, 1, width]) - b.reshape([1, columns, width]);
    (difference.clone() * difference).sum_dim(2).reshape([rows, columns])
}

fn column(values: Tensor<1>) -> Tensor<2> {
    let [length] = values.dims();
    values.reshape([length, 1])
}

fn indices(values: &[usize], device: &Device) -> Tensor<1, Int> {
    let values: Vec<i32> = values.iter().map(|&value| value as i32).collect();
    let length = values.len();
    Tensor::from_data(TensorData::new(values, [length]), device)
}

#[cfg(test)]
mod tests {
    use super::super::scalar;
    use super::super::tests::matrix;
    use super::*;

    fn golden(device: &Device) -> (Tensor<2>, Tensor<2>, Grouped) {
        let source = matrix(&[&[1.0, 0.0], &[0.8, 0.2], &[0.0, 1.0], &[0.1, 0.9]], device);
        let target = matrix(&[&[0.9, 0.3], &[0.7, 0.1], &[0.2, 0.8], &[0.3, 1.1]], device);
        (source, target, Grouped { counts: vec![2, 2] })
    }

    #[test]
    fn the_golden_value() {
        let (source, target, two) = golden(&Device::flex());
        let layer = (source, target);
        let distances = [Distances::new(&layer, &two, &two)];
        let widths = [distances[0].widths(&two, &two)];
        let found = mmd(&distances, &widths, &two, &two);
        let values: Vec<f32> = found.clone().into_data().iter::<f32>().collect();
        for (value, expected) in values.iter().zip([1.875394, 6.181577, 6.616197, 3.310178]) {
            assert!((value - expected).abs() < 1e-5, "{values:?}");
        }
        assert!((scalar(&of_mmd(found, 3)) + 0.404438).abs() < 1e-5);
        assert!((scalar(&contrastive_discrepancy(&[layer], &two, &two, 3)) + 0.404438).abs() < 1e-5);
    }

    /// The definition, pair by pair, in double precision.
    fn plain(source: &[Vec<f64>], target: &[Vec<f64>], s: &Grouped, t: &Grouped, total: usize) -> f64 {
        let split = |rows: &[Vec<f64>], grouped: &Grouped| {
            let mut rest = rows;
            grouped
                .counts
                .iter()
                .map(|&count| {
                    let (a, b) = rest.split_at(count);
                    rest = b;
                    a.to_vec()
                })
                .collect::<Vec<_>>()
        };
        let (source, target) = (split(source, s), split(target, t));
        let d = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
        let all = |a: &[Vec<f64>], b: &[Vec<f64>]| -> Vec<f64> {
            a.iter()
                .flat_map(|a| b.iter().map(move |b| (a.clone(), b.clone())))
                .map(|(a, b)| d(&a, &b))
                .collect()
        };
        let mut result = 0.0;
        for (a, xs) in source.iter().enumerate() {
            for (b, xt) in target.iter().enumerate() {
                let (ss, tt, st) = (all(xs, xs), all(xt, xt), all(xs, xt));
                let (n, m) = (xs.len() as f64, xt.len() as f64);
                let sum = |v: &[f64]| v.iter().sum::<f64>();
                let width = (sum(&ss) + sum(&tt) + 2.0 * sum(&st)) / (n * n + m * m + 2.0 * n * m - n - m);
                let k = |v: &[f64]| {
                    let one = |d: f64| {
                        (0..5)
                            .map(|i| (-(d / (width / 4.0 * 2f64.powi(i)).max(1e-5)).clamp(1e-5, 1e5)).exp())
                            .sum::<f64>()
                    };
                    v.iter().map(|&d| one(d)).sum::<f64>() / v.len() as f64
                };
                let mmd = k(&ss) + k(&tt) - 2.0 * k(&st);
                let total = total as f64;
                result += if a == b { mmd / total } else { -mmd / (total * (total - 1.0)) };
            }
        }
        result
    }

    #[test]
    fn classes_of_different_sizes_and_two_layers_as_by_definition() {
        let device = Device::flex();
        let (s, t) = (Grouped { counts: vec![1, 3, 2] }, Grouped { counts: vec![2, 1, 3] });
        let rows = |seed: usize, width: usize| -> Vec<Vec<f64>> {
            (0..6)
                .map(|r| (0..width).map(|c| ((seed + 7 * r + 13 * c) * 37 % 101) as f64 / 50.0).collect())
                .collect()
        };
        let tensor = |rows: &[Vec<f64>]| {
            let values: Vec<f32> = rows.concat().iter().map(|&v| v as f32).collect();
            Tensor::<2>::from_data(TensorData::new(values, [rows.len(), rows[0].len()]), &device)
        };
        let (a, b, c, d) = (rows(1, 4), rows(50, 4), rows(3, 2), rows(77, 2));
        let expected = plain(&a, &b, &s, &t, 5) + plain(&c, &d, &s, &t, 5);
        let layers = [(tensor(&a), tensor(&b)), (tensor(&c), tensor(&d))];
        let found = scalar(&contrastive_discrepancy(&layers, &s, &t, 5));
        assert!((found - expected).abs() < 1e-5, "{found} beside {expected}");
    }

    #[test]
    fn the_gradient_is_that_of_small_differences_at_fixed_widths() {
        let device = Device::flex().autodiff();
        let (source, target, two) = golden(&device);
        let source = source.require_grad();
        let widths = [Distances::new(&(source.clone(), target.clone()), &two, &two).widths(&two, &two)];
        let value = |source: Tensor<2>| {
            let distances = [Distances::new(&(source, target.clone()), &two, &two)];
            of_mmd(mmd(&distances, &widths, &two, &two), 3)
        };
        let gradient: Vec<f32> =
            source.grad(&value(source.clone()).backward()).unwrap().into_data().iter::<f32>().collect();
        let start: Vec<f32> = source.clone().detach().into_data().iter::<f32>().collect();
        for place in 0..start.len() {
            let moved = |by: f32| {
                let mut values = start.clone();
                values[place] += by;
                scalar(&value(Tensor::from_data(TensorData::new(values, [4, 2]), &device)))
            };
            let slope = (moved(5e-3) - moved(-5e-3)) / 1e-2;
            let error = (slope - f64::from(gradient[place])).abs();
            assert!(error < 5e-3 * (1.0 + slope.abs()), "{place}: {} beside {slope}", gradient[place]);
        }
    }
}
