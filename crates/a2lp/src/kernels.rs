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

/// Columns handled before moving on: a panel of this depth stays in the first-level cache.
const DEPTH: usize = 256;

/// Most rows a register tile takes at once (MR).
const MAX_HEIGHT: usize = 12;

/// One call of a register tile: `height` rows against one panel, over `depth` columns.
struct RegisterTile<'a> {
    /// Rows past the last live one repeat it; their results are not stored.
    rows: [&'a [f32]; MAX_HEIGHT],
    live: usize,
    panel: &'a [f32],
    depth: usize,
    /// Go on from what `out` holds (a later stretch of columns) instead of from zero.
    resume: bool,
}

/// A register tile and its shape. `run` requires the instruction set the tile was chosen for,
/// `depth` values behind every row, `depth · width` in the panel, and `live` output rows of `width`.
#[derive(Clone, Copy)]
struct Kernel {
    /// Rows of a tile (MR).
    height: usize,
    /// Columns of a tile (NR): packed rows are interleaved in panels this wide.
    width: usize,
    product: unsafe fn(RegisterTile<'_>, out: &mut [f32], stride: usize),
    squared_distance: unsafe fn(RegisterTile<'_>, out: &mut [f32], stride: usize),
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
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            kernels.push(AVX2);
        }
        if is_x86_feature_detected!("avx512f") {
            kernels.push(AVX512);
        }
    }
    kernels
}

/// A block of rows laid out for [`score_tile`]: panels of NR rows, interleaved column by column.
pub(crate) struct PackedRows {
    kernel: Kernel,
    values: Vec<f32>,
    rows: usize,
    columns: usize,
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
        self.values.resize(self.stride() * columns, 0.0);
        if columns == 0 {
            return;
        }
        for (panel, rows) in self.values.chunks_exact_mut(width * columns).zip(source.chunks(width * columns))
        {
            for (lane, row) in rows.chunks_exact(columns).enumerate() {
                for (slot, &value) in panel[lane..].iter_mut().step_by(width).zip(row) {
                    *slot = value;
                }
            }
        }
    }

    /// Distance between the starts of two rows in the output of [`score_tile`].
    pub(crate) fn stride(&self) -> usize {
        self.rows.next_multiple_of(self.kernel.width)
    }
}

/// Scores of every row in `a` (row-major, as wide as the packed rows) against every packed row:
/// `out[i * packed.stride() + j]`. Entries past the last packed row are meaningless.
pub(crate) fn score_tile(chain: Chain, a: &[f32], packed: &PackedRows, out: &mut Vec<f32>) {
    let (columns, stride, kernel) = (packed.columns, packed.stride(), packed.kernel);
    let rows = a.len().checked_div(columns).unwrap_or(0);
    out.resize(rows * stride, 0.0);
    let run = match chain {
        Chain::Product => kernel.product,
        Chain::SquaredDistance => kernel.squared_distance,
    };
    for start in (0..columns).step_by(DEPTH) {
        let depth = DEPTH.min(columns - start);
        for (p, panel) in packed.values.chunks_exact(kernel.width * columns).enumerate() {
            let panel = &panel[start * kernel.width..][..depth * kernel.width];
            for top in (0..rows).step_by(kernel.height) {
                let live = kernel.height.min(rows - top);
                let lines = std::array::from_fn(|i| &a[(top + i.min(live - 1)) * columns + start..][..depth]);
                let tile = RegisterTile { rows: lines, live, panel, depth, resume: start > 0 };
                let corner = &mut out[top * stride + p * kernel.width..];
                assert!(corner.len() >= (live - 1) * stride + kernel.width);
                // SAFETY: `available` offers a kernel only after finding its features on this CPU; the
                // slices above have exactly the promised lengths, and `corner` was just checked.
                #[allow(unsafe_code)]
                unsafe {
                    run(tile, corner, stride)
                }
            }
        }
    }
}

/// The register tile in plain Rust, for CPUs without one of their own.
fn portable<const SQUARED: bool>(tile: RegisterTile<'_>, out: &mut [f32], stride: usize) {
    let chain = if SQUARED { Chain::SquaredDistance } else { Chain::Product };
    for (i, row) in tile.rows[..tile.live].iter().enumerate() {
        let line = &mut out[i * stride..][..PORTABLE.width];
        let mut acc = [0.0f32; PORTABLE.width];
        if tile.resume {
            acc.copy_from_slice(line);
        }
        for (&a, b) in row.iter().zip(tile.panel.chunks_exact(PORTABLE.width)) {
            for (acc, &b) in acc.iter_mut().zip(b) {
                *acc = chain.step(a, b, *acc);
            }
        }
        line.copy_from_slice(&acc);
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    //! Register tiles of two vectors a row, every accumulator in a register of its own.

    use super::RegisterTile;
    use std::arch::x86_64::*;

    macro_rules! register_tile {
        ($name:ident, $features:literal, $height:literal, $lanes:literal,
         $zero:ident, $load:ident, $store:ident, $splat:ident, $sub:ident, $fma:ident) => {
            /// # Safety
            /// The CPU must have the named features, and `tile` and `out` the lengths that `Kernel` asks for.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $name<const SQUARED: bool>(
                tile: RegisterTile<'_>,
                out: &mut [f32],
                stride: usize,
            ) {
                let rows: [*const f32; $height] = std::array::from_fn(|i| tile.rows[i].as_ptr());
                let (panel, out) = (tile.panel.as_ptr(), out.as_mut_ptr());
                let mut acc = [[$zero(); 2]; $height];
                // SAFETY: the caller promises `depth` values behind every row, `depth · 2 · lanes` behind
                // `panel`, and room for `live` rows of `2 · lanes` behind `out`; loads are unaligned.
                unsafe {
                    if tile.resume {
                        for i in 0..tile.live {
                            acc[i] = [$load(out.add(i * stride)), $load(out.add(i * stride + $lanes))];
                        }
                    }
                    for p in 0..tile.depth {
                        let b = [$load(panel.add(2 * $lanes * p)), $load(panel.add(2 * $lanes * p + $lanes))];
                        for i in 0..$height {
                            let a = $splat(*rows[i].add(p));
                            for j in 0..2 {
                                acc[i][j] = if SQUARED {
                                    let difference = $sub(a, b[j]);
                                    $fma(difference, difference, acc[i][j])
                                } else {
                                    $fma(a, b[j], acc[i][j])
                                };
                            }
                        }
                    }
                    for i in 0..$height {
                        if i < tile.live {
                            $store(out.add(i * stride), acc[i][0]);
                            $store(out.add(i * stride + $lanes), acc[i][1]);
                        }
                    }
                }
            }
        };
    }

    register_tile!(
        avx2,
        "avx2,fma",
        6,
        8,
        _mm256_setzero_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_set1_ps,
        _mm256_sub_ps,
        _mm256_fmadd_ps
    );
    register_tile!(
        avx512,
        "avx512f",
        12,
        16,
        _mm512_setzero_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_set1_ps,
        _mm512_sub_ps,
        _mm512_fmadd_ps
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, mut state: u64) -> Vec<f32> {
        (0..count)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 40) as f32 / (1u64 << 24) as f32 - 0.3
            })
            .collect()
    }

    #[test]
    fn every_instruction_set_gives_the_bits_of_the_plain_chain() {
        for kernel in available() {
            for (m, n, d) in [(1, 1, 1), (5, 33, 7), (13, 40, 255), (25, 31, 256), (7, 70, 600), (3, 2, 513)]
            {
                let (a, b) = (numbers(m * d, 1), numbers(n * d, 2));
                let mut packed = PackedRows::for_kernel(kernel);
                packed.pack(&b, d);
                for chain in [Chain::Product, Chain::SquaredDistance] {
                    let mut out = Vec::new();
                    score_tile(chain, &a, &packed, &mut out);
                    for i in 0..m {
                        for j in 0..n {
                            let want = chain.of(&a[i * d..][..d], &b[j * d..][..d]);
                            let got = out[i * packed.stride() + j];
                            assert_eq!(
                                got.to_bits(),
                                want.to_bits(),
                                "width {} {chain:?} {m}x{n}x{d} ({i},{j})",
                                kernel.width
                            );
                        }
                    }
                }
            }
        }
    }
}
