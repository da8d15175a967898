//! The cheap look: rows in six bits, products in whole numbers. It proposes neighbours that are then scored in full.
//!
//! Whole numbers add up the same in any order, so every instruction set gives the same scores here too.

#[cfg(target_arch = "x86_64")]
use super::cpu::Instructions;
use super::{CacheLine, Chain, Hit, Loops, MAX_WIDTH, ScoreTile, grow, vectorised};
use crate::features::FeatureMatrix;
use rayon::prelude::*;
use std::ops::Range;

/// Bytes of a row handled before moving on.
const DEPTH: usize = 512;

/// Distance between the rows of a stretch of bytes.
const STRETCH: usize = DEPTH + 64;

/// Rows as small whole numbers: row ≈ scale · (bytes), with what is needed to get scores back.
///
/// Non-negative rows use 0 to 63, others −31 to 31. One factor of a product is made non-negative by adding
/// `offset`, because that is what the CPU's instructions want; the sums take it out again.
pub(crate) struct QuantisedRows {
    bytes: Vec<i8>,
    /// Bytes of a row: the columns, padded with zeros.
    width: usize,
    offset: u8,
    scales: Vec<f32>,
    /// Added to the scores of a row: −‖v‖² for distances, else 0.
    biases: Vec<f32>,
    sums: Vec<i32>,
    /// ‖v − scale · bytes‖ of each row.
    errors: Vec<f32>,
    /// ‖v‖ of each row.
    norms: Vec<f32>,
}

impl QuantisedRows {
    pub(crate) fn new(features: &FeatureMatrix, chain: Chain) -> Self {
        Self::of(features, chain, !features.is_non_negative())
    }

    /// The rows as part of rows that may be signed.
    pub(crate) fn of(features: &FeatureMatrix, chain: Chain, signed: bool) -> Self {
        Self::from_rows(features, chain, signed, features.rows(), |row| row)
    }

    /// The rows in another order.
    pub(crate) fn in_order(features: &FeatureMatrix, chain: Chain, order: &[u32]) -> Self {
        let signed = !features.is_non_negative();
        Self::from_rows(features, chain, signed, order.len(), |position| order[position] as usize)
    }

    fn from_rows(
        features: &FeatureMatrix,
        chain: Chain,
        signed: bool,
        rows: usize,
        row_at: impl Fn(usize) -> usize + Sync,
    ) -> Self {
        let columns = features.columns();
        let (largest, offset) = (if signed { 31.0 } else { 63.0 }, offset_of(signed));
        let width = width_of(columns);
        let mut bytes = vec![0i8; rows * width];
        let distances = chain == Chain::SquaredDistance;
        let described: Vec<(f32, f32, i32, f32, f32)> = bytes
            .par_chunks_exact_mut(width)
            .with_min_len(64)
            .enumerate()
            .map(|(position, bytes)| {
                let values = features.row(row_at(position));
                let Described { scale, sum, square, error } = vectorised(Quantise { values, largest, bytes });
                let bias = if distances { -square as f32 } else { 0.0 };
                (scale, bias, sum, error.sqrt() as f32, square.sqrt() as f32)
            })
            .collect();
        // −‖a−b‖² = 2a·b − ‖a‖² − ‖b‖²
        let factor = if distances { std::f32::consts::SQRT_2 } else { 1.0 };
        QuantisedRows {
            bytes,
            width,
            offset,
            scales: described.iter().map(|d| d.0 * factor).collect(),
            biases: described.iter().map(|d| d.1).collect(),
            sums: described.iter().map(|d| d.2).collect(),
            errors: described.iter().map(|d| d.3).collect(),
            norms: described.iter().map(|d| d.4).collect(),
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.scales.len()
    }

    /// Bytes of a row in [`to_records`](Self::to_records).
    pub(crate) fn record_bytes(columns: usize) -> usize {
        width_of(columns) + 12
    }

    /// The rows one after the other: bytes, scale, bias and sum of each. They can propose neighbours, but bound no errors.
    pub(crate) fn to_records(&self) -> Vec<u8> {
        let mut records = Vec::with_capacity(self.rows() * (self.width + 12));
        for row in 0..self.rows() {
            records.extend(self.row(row).iter().map(|&byte| byte as u8));
            records.extend(self.scales[row].to_le_bytes());
            records.extend(self.biases[row].to_le_bytes());
            records.extend(self.sums[row].to_le_bytes());
        }
        records
    }

    /// From such records.
    pub(crate) fn from_records(records: &[u8], columns: usize, signed: bool) -> Self {
        let width = width_of(columns);
        let rows = records.len() / (width + 12);
        let mut quantised = QuantisedRows {
            bytes: Vec::with_capacity(rows * width),
            width,
            offset: offset_of(signed),
            scales: Vec::with_capacity(rows),
            biases: Vec::with_capacity(rows),
            sums: Vec::with_capacity(rows),
            errors: Vec::new(),
            norms: Vec::new(),
        };
        for record in records.chunks_exact(width + 12) {
            let (bytes, rest) = record.split_at(width);
            quantised.bytes.extend(bytes.iter().map(|&byte| byte as i8));
            let (numbers, _) = rest.as_chunks::<4>();
            quantised.scales.push(f32::from_le_bytes(numbers[0]));
            quantised.biases.push(f32::from_le_bytes(numbers[1]));
            quantised.sums.push(i32::from_le_bytes(numbers[2]));
        }
        quantised
    }

    fn row(&self, row: usize) -> &[i8] {
        &self.bytes[row * self.width..][..self.width]
    }

    /// Cheap scores of one row against some others: the same numbers as [`ScoreTile::look`] compares.
    pub(crate) fn scores_of(&self, row: usize, others: &[u32], scores: &mut Vec<f32>) {
        scores.clear();
        vectorised(OneToMany { rows: self, row, others, scores });
    }

    /// Largest possible difference between a cheap score and the true one, for each row against any other:
    /// |a·b − â·b̂| ≤ ‖a−â‖‖b̂‖ + ‖a‖‖b−b̂‖ (twice that for distances), and a little for rounding.
    pub(crate) fn error_bounds(&self, chain: Chain) -> Vec<f32> {
        let largest = |values: &[f32]| values.iter().copied().fold(0f32, f32::max);
        let (error, norm) = (largest(&self.errors), largest(&self.norms));
        let factor = if chain == Chain::SquaredDistance { 2.0 } else { 1.0 };
        let bound = |(own_error, own_norm): (&f32, &f32)| {
            let rounding = 1e-5 * (own_norm + norm) * (own_norm + norm);
            factor * (own_error * (norm + error) + own_norm * error) + rounding
        };
        self.errors.iter().zip(&self.norms).map(bound).collect()
    }
}

/// A row on its way to six bits.
struct Quantise<'a> {
    values: &'a [f32],
    /// The largest byte.
    largest: f32,
    bytes: &'a mut [i8],
}

/// What a row lost on that way.
struct Described {
    scale: f32,
    sum: i32,
    /// ‖v‖² and ‖v − scale · bytes‖².
    square: f64,
    error: f64,
}

impl Loops for Quantise<'_> {
    type Output = Described;

    #[inline(always)]
    fn run(self) -> Described {
        /// Sums side by side, so that one addition need not wait for the other.
        const LANES: usize = 16;
        let mut reach = [0f32; LANES];
        let lanes = |values: &[f32], at: usize| values.get(at).copied().unwrap_or(0.0);
        let (chunks, rest) = self.values.as_chunks::<LANES>();
        for values in chunks {
            reach = std::array::from_fn(|i| reach[i].max(values[i].abs()));
        }
        let reach = reach.into_iter().chain(rest.iter().map(|value| value.abs())).fold(0f32, f32::max);
        let scale = reach / self.largest;
        let inverse = if scale > 0.0 && scale.recip().is_finite() { scale.recip() } else { 0.0 };
        let (mut sums, mut squares, mut errors) = ([0i32; LANES], [0f64; LANES], [0f64; LANES]);
        let padded: [f32; LANES] = std::array::from_fn(|i| lanes(rest, i));
        let last = (!rest.is_empty()).then_some(&padded);
        for (values, bytes) in chunks.iter().chain(last).zip(self.bytes.chunks_mut(LANES)) {
            let rounded: [f32; LANES] = std::array::from_fn(|i| (values[i] * inverse).round_ties_even());
            for (byte, rounded) in bytes.iter_mut().zip(rounded) {
                *byte = rounded as i8;
            }
            for i in 0..LANES {
                sums[i] += rounded[i] as i32;
                squares[i] += f64::from(values[i]) * f64::from(values[i]);
                errors[i] += (f64::from(values[i]) - f64::from(scale) * f64::from(rounded[i])).powi(2);
            }
        }
        let sum = sums.into_iter().sum();
        Described { scale, sum, square: squares.into_iter().sum(), error: errors.into_iter().sum() }
    }
}

/// What makes the bytes of signed rows non-negative.
fn offset_of(signed: bool) -> u8 {
    if signed { 32 } else { 0 }
}

/// Bytes of a row of so many columns.
fn width_of(columns: usize) -> usize {
    columns.next_multiple_of(64)
}

/// One call of an integer register tile: as many rows as it is high, `STRETCH` bytes apart, against one panel.
pub(super) struct ByteTile<'a> {
    pub(super) rows: &'a [u8],
    pub(super) panel: &'a [i8],
    /// Groups of four columns.
    pub(super) groups: usize,
    /// Sums of each row with every lane of the panel.
    pub(super) sums: &'a mut [i32],
    /// Go on from what the sums hold (earlier columns) instead of from zero.
    pub(super) resume: bool,
}

/// What makes scores of the sums of a register tile, after the last column: score = (sum − correction) · scale + bias.
pub(super) struct Finish<'a> {
    /// The rows of the tile that exist.
    pub(super) rows: &'a [RowEnd],
    /// The number of the first of them.
    pub(super) first_row: u32,
    /// Every lane of the panel; the bias of a lane that does not exist is NaN, so that it reaches no threshold.
    pub(super) scales: &'a [f32],
    pub(super) biases: &'a [f32],
    pub(super) corrections: &'a [i32],
    pub(super) thresholds: &'a [f32],
    /// The number of the first lane.
    pub(super) first_lane: u32,
}

/// A row's part in its scores, and the score that it asks for.
#[derive(Clone, Copy)]
pub(super) struct RowEnd {
    pub(super) scale: f32,
    pub(super) bias: f32,
    pub(super) threshold: f32,
}

/// An integer register tile and its shape. `run` adds up the products of `height` rows with `width` lanes; `finish` collects the
/// scores that reach a threshold from the sums of a tile.
#[derive(Clone, Copy)]
pub(super) struct IntegerKernel {
    pub(super) height: usize,
    pub(super) width: usize,
    run: unsafe fn(ByteTile<'_>),
    finish: unsafe fn(sums: &[i32], &Finish<'_>, &mut Vec<Hit>),
}

const PORTABLE: IntegerKernel = IntegerKernel { height: 4, width: 8, run: portable, finish: finish_portable };

/// The kernels this CPU can run, slowest first.
pub(super) fn available() -> Vec<IntegerKernel> {
    #[allow(unused_mut)]
    let mut kernels = vec![PORTABLE];
    #[cfg(target_arch = "x86_64")]
    {
        use super::x86::{bytes_avx_vnni, bytes_avx2, bytes_vnni, finish_avx2, finish_avx512};
        if Instructions::Avx2.allowed() {
            let run = bytes_avx2::<STRETCH>;
            kernels.push(IntegerKernel { height: 3, width: 16, run, finish: finish_avx2 });
        }
        if Instructions::AvxVnni.allowed() && is_x86_feature_detected!("avxvnni") {
            let run = bytes_avx_vnni::<STRETCH>;
            kernels.push(IntegerKernel { height: 6, width: 16, run, finish: finish_avx2 });
        }
        if Instructions::Avx512.allowed() && is_x86_feature_detected!("avx512vnni") {
            let run = bytes_vnni::<STRETCH>;
            kernels.push(IntegerKernel { height: 12, width: 32, run, finish: finish_avx512 });
        }
    }
    kernels
}

fn portable(tile: ByteTile<'_>) {
    let ByteTile { rows, panel, groups, sums, resume } = tile;
    if !resume {
        sums.fill(0);
    }
    for (row, sums) in rows.chunks_exact(STRETCH).zip(sums.chunks_exact_mut(PORTABLE.width)) {
        for (a, b) in row.chunks_exact(4).zip(panel.chunks_exact(4 * PORTABLE.width)).take(groups) {
            for (sum, b) in sums.iter_mut().zip(b.chunks_exact(4)) {
                *sum += (0..4).map(|p| i32::from(a[p]) * i32::from(b[p])).sum::<i32>();
            }
        }
    }
}

fn finish_portable(sums: &[i32], finish: &Finish<'_>, hits: &mut Vec<Hit>) {
    for ((row, end), sums) in (finish.first_row..).zip(finish.rows).zip(sums.chunks_exact(PORTABLE.width)) {
        for (lane, sum) in sums.iter().enumerate() {
            let score = (sum - finish.corrections[lane]) as f32 * (end.scale * finish.scales[lane])
                + (end.bias + finish.biases[lane]);
            if score >= finish.thresholds[lane].min(end.threshold) {
                hits.push(Hit { row, packed_row: finish.first_lane + lane as u32, score });
            }
        }
    }
}

/// Quantised rows laid out for [`ScoreTile::look`]: panels, interleaved four columns at a time.
pub(crate) struct PackedBytes {
    kernel: IntegerKernel,
    values: Vec<CacheLine>,
    rows: usize,
    /// What gets scores back, of every packed row and of the lanes that fill the last panel.
    scales: Vec<f32>,
    biases: Vec<f32>,
    /// The part of the sums that the offset of the other factor makes.
    corrections: Vec<i32>,
}

/// The bytes of some cache lines.
fn bytes_mut(lines: &mut [CacheLine]) -> &mut [i8] {
    // SAFETY: a `CacheLine` is 64 bytes without padding, and any bytes make one.
    #[allow(unsafe_code)]
    unsafe {
        std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * 64)
    }
}

/// The same, to be read.
fn bytes(lines: &[CacheLine]) -> &[i8] {
    // SAFETY: as above.
    #[allow(unsafe_code)]
    unsafe {
        std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * 64)
    }
}

impl PackedBytes {
    pub(crate) fn new() -> Self {
        Self::for_kernel(available().pop().unwrap_or(PORTABLE))
    }

    pub(super) fn for_kernel(kernel: IntegerKernel) -> Self {
        PackedBytes {
            kernel,
            values: Vec::new(),
            rows: 0,
            scales: Vec::new(),
            biases: Vec::new(),
            corrections: Vec::new(),
        }
    }

    pub(crate) fn pack(&mut self, rows: &QuantisedRows, range: Range<usize>) {
        let kernel = self.kernel;
        let panel_bytes = kernel.width * rows.width;
        grow(&mut self.values, range.len().div_ceil(kernel.width) * panel_bytes / 4);
        let starts = range.clone().step_by(kernel.width);
        for (panel, first) in bytes_mut(&mut self.values).chunks_exact_mut(panel_bytes).zip(starts) {
            for lane in 0..kernel.width {
                // Lanes past the end repeat the last row; their scores are not used.
                let row = rows.row((first + lane).min(range.end - 1));
                for (group, four) in panel.chunks_exact_mut(4 * kernel.width).zip(row.chunks_exact(4)) {
                    group[4 * lane..][..4].copy_from_slice(four);
                }
            }
        }
        self.rows = range.len();
        let lanes = range.len().next_multiple_of(kernel.width);
        self.scales.clear();
        self.scales.extend_from_slice(&rows.scales[range.clone()]);
        self.scales.resize(lanes, 0.0);
        self.biases.clear();
        self.biases.extend_from_slice(&rows.biases[range.clone()]);
        self.biases.resize(lanes, f32::NAN);
        self.corrections.clear();
        self.corrections.extend(rows.sums[range].iter().map(|sum| i32::from(rows.offset) * sum));
        self.corrections.resize(lanes, 0);
    }
}

impl ScoreTile {
    /// Collects the pairs of some rows and packed rows whose cheap score reaches the threshold of either. No scores are kept.
    pub(crate) fn look(
        &mut self,
        rows: &QuantisedRows,
        wanted: impl ExactSizeIterator<Item = usize> + Clone,
        packed: &PackedBytes,
        [row_thresholds, packed_thresholds]: [&[f32]; 2],
        hits: &mut Vec<Hit>,
    ) {
        hits.clear();
        let IntegerKernel { height, width, run, finish } = packed.kernel;
        if wanted.len() == 0 || packed.rows == 0 {
            return;
        }
        let end = |(row, &threshold): (usize, &f32)| RowEnd {
            scale: rows.scales[row],
            bias: rows.biases[row],
            threshold,
        };
        let ends: Vec<RowEnd> = wanted.clone().zip(row_thresholds).map(end).collect();
        // Whole register tiles; the rows that do not exist come last.
        let tiles = wanted.len().div_ceil(height);
        let panels = packed.rows.div_ceil(width);
        // Sums outlive a call only if columns are left after it.
        let in_one_go = rows.width <= DEPTH;
        self.sums.resize(height * width * if in_one_go { 1 } else { tiles * panels }, 0);
        grow(&mut self.stretch, tiles * height * STRETCH / 4);
        for start in (0..rows.width).step_by(DEPTH) {
            let depth = DEPTH.min(rows.width - start);
            let stretch = bytes_mut(&mut self.stretch);
            for (copy, row) in stretch.chunks_exact_mut(STRETCH).zip(wanted.clone()) {
                for (copy, &byte) in copy.iter_mut().zip(&rows.row(row)[start..start + depth]) {
                    *copy = byte + rows.offset as i8;
                }
            }
            let lines = unsigned(stretch);
            for panel in 0..panels {
                let lanes = panel * width..(panel + 1) * width;
                let live = lanes.start..packed.rows.min(lanes.end);
                let mut thresholds = [f32::INFINITY; MAX_WIDTH];
                thresholds[..live.len()].copy_from_slice(&packed_thresholds[live]);
                let values = &bytes(&packed.values)[panel * width * rows.width..][..width * rows.width];
                let values = &values[start * width..][..depth * width];
                for (tile, ends) in ends.chunks(height).enumerate() {
                    let at = if in_one_go { 0 } else { panel * tiles + tile };
                    let sums = &mut self.sums[at * height * width..][..height * width];
                    let byte_tile = ByteTile {
                        rows: &lines[tile * height * STRETCH..][..height * STRETCH],
                        panel: values,
                        groups: depth / 4,
                        sums,
                        resume: start > 0,
                    };
                    let whole = Finish {
                        rows: ends,
                        first_row: (tile * height) as u32,
                        scales: &packed.scales[lanes.clone()],
                        biases: &packed.biases[lanes.clone()],
                        corrections: &packed.corrections[lanes.clone()],
                        thresholds: &thresholds[..width],
                        first_lane: lanes.start as u32,
                    };
                    // SAFETY: `available` offers a kernel only after finding its features on this CPU; the slices
                    // were just cut to the lengths it asks for.
                    #[allow(unsafe_code)]
                    unsafe {
                        run(byte_tile);
                        if start + depth == rows.width {
                            finish(sums, &whole, hits);
                        }
                    }
                }
            }
        }
    }
}

/// Cheap scores of one row against others that lie anywhere.
struct OneToMany<'a> {
    rows: &'a QuantisedRows,
    row: usize,
    others: &'a [u32],
    scores: &'a mut Vec<f32>,
}

impl Loops for OneToMany<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let OneToMany { rows, row, others, scores } = self;
        let (scale, bias) = (rows.scales[row], rows.biases[row]);
        let own = rows.row(row).as_chunks::<64>().0;
        for other in others.iter().map(|&other| other as usize) {
            let mut sum = 0i32;
            for (a, b) in own.iter().zip(rows.row(other).as_chunks::<64>().0) {
                for at in 0..64 {
                    sum += i32::from(a[at]) * i32::from(b[at]);
                }
            }
            scores.push(sum as f32 * (scale * rows.scales[other]) + (bias + rows.biases[other]));
        }
    }
}

/// The same bytes without sign: the offset has made them non-negative.
fn unsigned(bytes: &[i8]) -> &[u8] {
    // SAFETY: i8 and u8 have the same size and every value is valid.
    #[allow(unsafe_code)]
    unsafe {
        std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::similarity::Similarity;

    #[test]
    fn every_instruction_set_gives_the_scores_of_the_plain_sum() {
        for (rows, columns, low) in [(1, 1, 0), (40, 63, 0), (70, 129, -500), (33, 1030, -1000)] {
            let values: Vec<f32> = (0..rows * columns)
                .map(|at| ((at * 7919 + at / 7) % (1000 - low as usize)) as f32)
                .map(|v| v + low as f32)
                .collect();
            let features = FeatureMatrix::new(rows, columns, values).unwrap();
            for similarity in [Similarity::Dot3, Similarity::Gaussian { sigma2: 1.0 }] {
                let quantised = QuantisedRows::new(&features, similarity.chain());
                let bounds = quantised.error_bounds(similarity.chain());
                for kernel in available() {
                    let mut packed = PackedBytes::for_kernel(kernel);
                    let mut tile = ScoreTile::new();
                    let (own, others) = (rows / 3..rows, 0..rows.div_ceil(2));
                    packed.pack(&quantised, others.clone());
                    let everyone = vec![f32::NEG_INFINITY; rows];
                    let mut hits = Vec::new();
                    // Twice, so that buffers with something in them are met as well.
                    for _ in 0..2 {
                        let thresholds = [&everyone[..own.len()], &everyone[..others.len()]];
                        tile.look(&quantised, own.clone(), &packed, thresholds, &mut hits);
                    }
                    hits.sort_by_key(|hit| (hit.row, hit.packed_row));
                    let pairs: Vec<(usize, usize)> = (0..own.len())
                        .flat_map(|row| (0..others.len()).map(move |other| (row, other)))
                        .collect();
                    assert_eq!(hits.len(), pairs.len());
                    for (hit, &(row, other)) in hits.iter().zip(&pairs) {
                        assert_eq!((hit.row as usize, hit.packed_row as usize), (row, other));
                        let (i, j) = (own.start + row, others.start + other);
                        let products = quantised.row(i).iter().zip(quantised.row(j));
                        let sum: i32 = products.map(|(&a, &b)| i32::from(a) * i32::from(b)).sum();
                        let want = sum as f32 * (quantised.scales[i] * quantised.scales[j])
                            + (quantised.biases[i] + quantised.biases[j]);
                        let score = hit.score;
                        assert_eq!(score.to_bits(), want.to_bits(), "width {}, ({i},{j})", kernel.width);
                        let exact = similarity.score(similarity.chain().of(features.row(i), features.row(j)));
                        let bound = bounds[i];
                        assert!((score - exact).abs() <= bound, "({i},{j}): {score} {exact} {bound}");
                    }
                    // One row against others gives the same scores.
                    let numbers: Vec<u32> = others.clone().map(|other| other as u32).collect();
                    let mut scores = Vec::new();
                    quantised.scores_of(own.start, &numbers, &mut scores);
                    let of_first: Vec<f32> = hits[..others.len()].iter().map(|hit| hit.score).collect();
                    assert_eq!(of_first, scores);
                    // A pair is a hit exactly if it reaches the threshold of its row or of its packed row.
                    let middle = |at: usize| hits[at * hits.len() / 5].score;
                    let least = |count: usize| (0..count).map(|at| middle(at % 5)).collect::<Vec<f32>>();
                    let (of_rows, of_packed) = (least(own.len()), least(others.len()));
                    let reaches = |hit: &&Hit| {
                        hit.score >= of_rows[hit.row as usize]
                            || hit.score >= of_packed[hit.packed_row as usize]
                    };
                    let want: Vec<Hit> = hits.iter().filter(reaches).copied().collect();
                    tile.look(&quantised, own.clone(), &packed, [&of_rows, &of_packed], &mut hits);
                    hits.sort_by_key(|hit| (hit.row, hit.packed_row));
                    assert_eq!(hits, want);
                }
            }
        }
    }
}
