//! The one place where similarities are computed, and the only one with `unsafe`.
//!
//! Every score between two rows is a single chain of fused multiply-adds over the columns in order,
//!
//! ```text
//! Product          acc ← fma(aₚ, bₚ, acc)              p = 0, 1, …, d−1
//! SquaredDistance  acc ← fma(aₚ−bₚ, aₚ−bₚ, acc)
//! ```
//!
//! Vector lanes run over *pairs*, never over columns, so a blocked AVX-512 tile, an AVX2 tile and a plain
//! loop give the same bits. That is what makes graphs equal whatever kernel, block size or thread count
//! found them.

mod cpu;
mod integer;
mod shift;
#[cfg(test)]
mod tests;
mod vectorised;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86;

#[cfg(target_arch = "x86_64")]
use cpu::Instructions;
pub(crate) use integer::{PackedBytes, QuantisedRows};
pub(crate) use shift::Shift;
use std::ops::Range;
pub(crate) use vectorised::{Loops, vectorised};

/// What a chain accumulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chain {
    /// Σ aₚ·bₚ
    Product,
    /// Σ (aₚ−bₚ)²
    SquaredDistance,
}

impl Chain {
    #[inline(always)]
    fn step(self, a: f32, b: f32, acc: f32) -> f32 {
        match self {
            Chain::Product => a.mul_add(b, acc),
            Chain::SquaredDistance => (a - b).mul_add(a - b, acc),
        }
    }

    /// The chain for one pair of rows: the definition every tile must reproduce bit for bit.
    pub(crate) fn of(self, a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).fold(0.0, |acc, (&a, &b)| self.step(a, b, acc))
    }
}

/// Asks for a value to be brought near, for it is needed soon. It changes nothing but the time.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has the instruction, which reads nothing.
    #[allow(unsafe_code)]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
            std::ptr::from_ref(value).cast(),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Pairs scored side by side when they have nothing but one row in common.
const ABREAST: usize = 8;

/// Most vectors of such pairs at a time: one chain of additions alone would wait for each to finish.
const CHAINS: usize = 2;

impl Chain {
    /// The chains of one row with each of `others`, in order.
    pub(crate) fn of_each<'r>(self, a: &[f32], others: impl Iterator<Item = &'r [f32]>, out: &mut Vec<f32>) {
        out.clear();
        let mut waiting: [&[f32]; CHAINS * ABREAST] = [&[]; CHAINS * ABREAST];
        let mut count = 0;
        for other in others {
            waiting[count] = &other[..a.len()];
            count += 1;
            if count == waiting.len() {
                self.of_some(a, &mut waiting, count, out);
                count = 0;
            }
        }
        if count > 0 {
            self.of_some(a, &mut waiting, count, out);
        }
    }

    /// The same for the first `count` of `others`, which are as long as `a`.
    fn of_some(self, a: &[f32], others: &mut [&[f32]; CHAINS * ABREAST], count: usize, out: &mut Vec<f32>) {
        let last = others[count - 1];
        let vectors = count.div_ceil(ABREAST);
        others[count..vectors * ABREAST].fill(last);
        let (vectors, _) = others[..vectors * ABREAST].as_chunks::<ABREAST>();
        #[cfg(target_arch = "x86_64")]
        if Instructions::Avx2.allowed() {
            // SAFETY: AVX2 is allowed only where it and FMA were found on this CPU; all rows are as long as `a`.
            #[allow(unsafe_code)]
            let scores = unsafe {
                match vectors {
                    &[vector] => x86::abreast(self, a, [vector]).to_vec(),
                    _ => x86::abreast::<CHAINS>(self, a, std::array::from_fn(|v| vectors[v])).to_vec(),
                }
            };
            return out.extend_from_slice(&scores.as_flattened()[..count]);
        }
        for vector in vectors {
            out.extend(abreast(self, a, vector));
        }
        out.truncate(out.len() - (vectors.len() * ABREAST - count));
    }
}

/// Several chains at once.
fn abreast(chain: Chain, a: &[f32], others: &[&[f32]; ABREAST]) -> [f32; ABREAST] {
    let mut acc = [0f32; ABREAST];
    for (p, &a) in a.iter().enumerate() {
        for i in 0..ABREAST {
            acc[i] = chain.step(a, others[i][p], acc[i]);
        }
    }
    acc
}

/// Columns handled before moving on: a panel of this depth stays in the first-level cache.
const DEPTH: usize = 128;

/// Distance between the rows of a stretch: one line more than DEPTH, so that rows do not share cache sets.
const STRETCH: usize = DEPTH + 16;

/// One call of a register tile: up to MR rows against one panel, over `depth` columns.
struct RegisterTile<'a> {
    /// As many rows as the tile is high, STRETCH apart.
    rows: &'a [f32],
    /// Rows whose results are wanted; other results are not stored.
    live: usize,
    panel: &'a [f32],
    depth: usize,
    /// Go on from what `out` holds (a later stretch of columns) instead of from zero.
    resume: bool,
}

/// A register tile and its shape. Its functions require the instruction set they were written for, `height` rows,
/// `depth` ≤ STRETCH, `depth · width` values in the panel, and `live · width` in the output.
#[derive(Clone, Copy)]
struct Kernel {
    /// Rows of a tile (MR).
    height: usize,
    /// Columns of a tile (NR): packed rows are interleaved in panels this wide.
    width: usize,
    product: unsafe fn(RegisterTile<'_>, out: &mut [f32]),
    squared_distance: unsafe fn(RegisterTile<'_>, out: &mut [f32]),
}

const PORTABLE: Kernel =
    Kernel { height: 4, width: 8, product: portable::<false>, squared_distance: portable::<true> };

#[cfg(target_arch = "x86_64")]
const AVX2: Kernel =
    Kernel { height: 6, width: 16, product: x86::avx2::<false>, squared_distance: x86::avx2::<true> };

#[cfg(target_arch = "x86_64")]
const AVX512: Kernel =
    Kernel { height: 12, width: 32, product: x86::avx512::<false>, squared_distance: x86::avx512::<true> };

/// The kernels this CPU can run, slowest first.
fn available() -> Vec<Kernel> {
    #[allow(unused_mut)]
    let mut kernels = vec![PORTABLE];
    #[cfg(target_arch = "x86_64")]
    {
        if Instructions::Avx2.allowed() {
            kernels.push(AVX2);
        }
        if Instructions::Avx512.allowed() {
            kernels.push(AVX512);
        }
    }
    kernels
}

/// Columns interleaved at a time.
const PACKED_COLUMNS: usize = 32;

/// A block of rows laid out for [`ScoreTile`]: panels of NR rows, interleaved column by column.
pub(crate) struct PackedRows {
    kernel: Kernel,
    values: Vec<CacheLine>,
    rows: usize,
    columns: usize,
}

/// Panels start on a cache line, so that no vector straddles two.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct CacheLine([f32; 16]);

/// The floats of some cache lines.
fn floats(lines: &[CacheLine]) -> &[f32] {
    // SAFETY: a `CacheLine` is exactly 16 floats without padding.
    #[allow(unsafe_code)]
    unsafe {
        std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * 16)
    }
}

/// The same, to be written.
fn floats_mut(lines: &mut [CacheLine]) -> &mut [f32] {
    // SAFETY: as above, and any 16 floats make a `CacheLine`.
    #[allow(unsafe_code)]
    unsafe {
        std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * 16)
    }
}

impl PackedRows {
    pub(crate) fn new() -> Self {
        Self::for_kernel(available().pop().unwrap_or(PORTABLE))
    }

    fn for_kernel(kernel: Kernel) -> Self {
        PackedRows { kernel, values: Vec::new(), rows: 0, columns: 0 }
    }

    /// Replaces the contents by `source`, whose rows are `columns` long; the buffer is reused.
    pub(crate) fn pack(&mut self, source: &[f32], columns: usize) {
        let width = self.kernel.width;
        self.rows = source.len().checked_div(columns).unwrap_or(0);
        self.columns = columns;
        self.values.clear();
        self.values.resize((self.stride() * columns).div_ceil(16), CacheLine([0.0; 16]));
        if columns == 0 {
            return;
        }
        for (panel, rows) in
            floats_mut(&mut self.values).chunks_exact_mut(width * columns).zip(source.chunks(width * columns))
        {
            // Few columns at a time, so that what is written stays in the first-level cache.
            for (block, first) in panel.chunks_mut(width * PACKED_COLUMNS).zip((0..).step_by(PACKED_COLUMNS))
            {
                for (lane, row) in rows.chunks_exact(columns).enumerate() {
                    for (slot, &value) in block[lane..].iter_mut().step_by(width).zip(&row[first..]) {
                        *slot = value;
                    }
                }
            }
        }
    }

    /// The same, where `source` holds the columns one after the other: packed row r is its column r, of `rows`.
    pub(crate) fn pack_columns(&mut self, source: &[f32], rows: usize) {
        let width = self.kernel.width;
        self.rows = rows;
        self.columns = source.len().checked_div(rows).unwrap_or(0);
        self.values.clear();
        self.values.resize((self.stride() * self.columns).div_ceil(16), CacheLine([0.0; 16]));
        if source.is_empty() {
            return;
        }
        let columns = self.columns;
        for (panel, first) in
            floats_mut(&mut self.values).chunks_exact_mut(width * columns).zip((0..rows).step_by(width))
        {
            let live = width.min(rows - first);
            for (slot, line) in panel.chunks_exact_mut(width).zip(source.chunks_exact(rows)) {
                slot[..live].copy_from_slice(&line[first..first + live]);
            }
        }
    }

    /// Rows that are packed.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The panels, one after the other.
    fn panels(&self) -> impl Iterator<Item = &[f32]> {
        let count = self.stride() / self.kernel.width;
        floats(&self.values).chunks_exact(self.kernel.width * self.columns).take(count)
    }

    /// Rows with padding.
    fn stride(&self) -> usize {
        self.rows.next_multiple_of(self.kernel.width)
    }
}

/// Scores of some rows against the rows of a [`PackedRows`]; buffers are reused from tile to tile.
///
/// Kept panel by panel, as the register tiles make them: writing and reading both stay within few pages.
pub(crate) struct ScoreTile {
    scores: Vec<CacheLine>,
    rows: usize,
    packed_rows: usize,
    width: usize,
    /// A stretch of columns of all rows, close together.
    stretch: Vec<CacheLine>,
    /// Sums of bytes while columns are left.
    sums: Vec<i32>,
}

impl ScoreTile {
    pub(crate) fn new() -> Self {
        ScoreTile {
            scores: Vec::new(),
            rows: 0,
            packed_rows: 0,
            width: 1,
            stretch: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// Every stretch of scores as (row, first packed row, scores), panel by panel, rows in order.
    pub(crate) fn segments(&self) -> impl Iterator<Item = (usize, usize, &[f32])> {
        let panels = floats(&self.scores).chunks_exact((self.rows * self.width).max(1));
        panels.enumerate().take(self.packed_rows.div_ceil(self.width)).flat_map(move |(p, panel)| {
            let first = p * self.width;
            let live = self.width.min(self.packed_rows - first);
            panel.chunks_exact(self.width).enumerate().map(move |(row, scores)| (row, first, &scores[..live]))
        })
    }

    /// Scores every row in `a` (row-major, as wide as the packed rows) against every packed row.
    pub(crate) fn score(&mut self, chain: Chain, a: &[f32], packed: &PackedRows) {
        let (columns, kernel) = (packed.columns, packed.kernel);
        let rows = a.len().checked_div(columns).unwrap_or(0);
        (self.rows, self.packed_rows, self.width) = (rows, packed.rows, kernel.width);
        if rows == 0 {
            return;
        }
        grow(&mut self.scores, rows * packed.stride());
        // Room for the rows that a last, incomplete register tile reads without need.
        grow(&mut self.stretch, rows.next_multiple_of(kernel.height) * STRETCH);
        let run = match chain {
            Chain::Product => kernel.product,
            Chain::SquaredDistance => kernel.squared_distance,
        };
        for start in (0..columns).step_by(DEPTH) {
            let depth = DEPTH.min(columns - start);
            let stretch = floats_mut(&mut self.stretch);
            for (copy, row) in stretch.chunks_exact_mut(STRETCH).zip(a.chunks_exact(columns)) {
                copy[..depth].copy_from_slice(&row[start..start + depth]);
            }
            let panels =
                packed.panels().zip(floats_mut(&mut self.scores).chunks_exact_mut(rows * kernel.width));
            for (panel, scores) in panels {
                let panel = &panel[start * kernel.width..][..depth * kernel.width];
                for top in (0..rows).step_by(kernel.height) {
                    let live = kernel.height.min(rows - top);
                    let lines = &stretch[top * STRETCH..][..kernel.height * STRETCH];
                    let out = &mut scores[top * kernel.width..][..live * kernel.width];
                    let tile = RegisterTile { rows: lines, live, panel, depth, resume: start > 0 };
                    // SAFETY: `available` offers a kernel only after finding its features on this CPU, and the
                    // slices were just cut to the promised lengths.
                    #[allow(unsafe_code)]
                    unsafe {
                        run(tile, out)
                    }
                }
            }
        }
    }
}

/// Makes sure there are at least `count` floats; what they hold does not matter.
fn grow(lines: &mut Vec<CacheLine>, count: usize) {
    if lines.len() * 16 < count {
        lines.resize(count.div_ceil(16), CacheLine([0.0; 16]));
    }
}

/// A score worth a second look: its row and packed row within the tile, and itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hit {
    pub(crate) row: u32,
    pub(crate) packed_row: u32,
    pub(crate) score: f32,
}

impl ScoreTile {
    /// Collects the scores `sign · accumulated` that reach the threshold of their row or of their packed row.
    ///
    /// Nearly all scores of a large search fall short of both, so this is what selection costs.
    pub(crate) fn collect_hits(&self, sign: f32, rows: &[f32], packed_rows: &[f32], hits: &mut Vec<Hit>) {
        hits.clear();
        (0..self.panels()).for_each(|panel| self.add_hits(panel, sign, rows, packed_rows, hits));
    }

    /// The number of panels, each with the scores of all rows against a few packed rows.
    pub(crate) fn panels(&self) -> usize {
        if self.rows == 0 { 0 } else { self.packed_rows.div_ceil(self.width) }
    }

    /// Number of packed rows.
    pub(crate) fn packed_rows(&self) -> usize {
        self.packed_rows
    }

    /// The packed rows of a panel.
    fn packed_rows_of(&self, panel: usize) -> Range<usize> {
        panel * self.width..self.packed_rows.min((panel + 1) * self.width)
    }

    /// Adds the hits of one panel.
    pub(crate) fn add_hits(
        &self,
        panel: usize,
        sign: f32,
        rows: &[f32],
        packed_rows: &[f32],
        hits: &mut Vec<Hit>,
    ) {
        let own = self.packed_rows_of(panel);
        let size = self.rows * self.width;
        let scores = &floats(&self.scores)[panel * size..][..size];
        let live = &packed_rows[own.clone()];
        let mut thresholds = [f32::INFINITY; MAX_WIDTH];
        thresholds[..live.len()].copy_from_slice(live);
        let before = hits.len();
        let thresholds = &thresholds[..self.width];
        let scan = Scan { panel: scores, sign, rows, thresholds, first: own.start as u32 };
        match self.width {
            // SAFETY: panels this wide are made by the AVX-512 kernel only, which `available` offers only after
            // finding its features on this CPU; the panel is 32 wide and there are as many thresholds.
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code)]
            32 => unsafe { x86::scan_avx512(scan, hits) },
            _ => scan.run(hits),
        }
        if live.len() < self.width {
            // The rest of the panel is padding.
            let mut at = 0;
            hits.retain(|hit| {
                at += 1;
                at <= before || (hit.packed_row as usize) < self.packed_rows
            });
        }
    }
}

/// The widest panel of any kernel.
const MAX_WIDTH: usize = 32;

/// One panel to be searched for hits.
struct Scan<'a> {
    panel: &'a [f32],
    sign: f32,
    rows: &'a [f32],
    thresholds: &'a [f32],
    first: u32,
}

impl Scan<'_> {
    fn run(&self, hits: &mut Vec<Hit>) {
        let lines = self.panel.chunks_exact(self.thresholds.len());
        for ((row, line), &row_threshold) in (0..).zip(lines).zip(self.rows) {
            let good = |score: f32, threshold: f32| score >= threshold.min(row_threshold);
            let scores = || line.iter().map(|&accumulated| self.sign * accumulated).zip(self.thresholds);
            if scores().fold(false, |any, (score, &threshold)| any | good(score, threshold)) {
                let found =
                    (self.first..).zip(scores()).filter(|(_, (score, threshold))| good(*score, **threshold));
                hits.extend(found.map(|(packed_row, (score, _))| Hit { row, packed_row, score }));
            }
        }
    }
}

/// The register tile in plain Rust, for CPUs without one of their own.
fn portable<const SQUARED: bool>(tile: RegisterTile<'_>, out: &mut [f32]) {
    let chain = if SQUARED { Chain::SquaredDistance } else { Chain::Product };
    for (row, line) in
        tile.rows.chunks_exact(STRETCH).zip(out.chunks_exact_mut(PORTABLE.width)).take(tile.live)
    {
        let mut acc = [0.0f32; PORTABLE.width];
        if tile.resume {
            acc.copy_from_slice(line);
        }
        for (&a, b) in row[..tile.depth].iter().zip(tile.panel.chunks_exact(PORTABLE.width)) {
            for (acc, &b) in acc.iter_mut().zip(b) {
                *acc = chain.step(a, b, *acc);
            }
        }
        line.copy_from_slice(&acc);
    }
}
