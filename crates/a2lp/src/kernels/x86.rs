//! Register tiles of two vectors a row, every accumulator in a register of its own.

use super::integer::{ByteTile, Finish};
use super::{ABREAST, Chain, Hit, RegisterTile, STRETCH, Scan, prefetch};
use std::arch::x86_64::*;

/// # Safety
/// The CPU must have AVX-512; the panel is 32 wide and there are 32 thresholds.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn scan_avx512(scan: Scan<'_>, hits: &mut Vec<Hit>) {
    let sign = _mm512_set1_ps(scan.sign);
    // SAFETY: the caller promises 32 thresholds, and every line below is 32 long.
    unsafe {
        let thresholds =
            [_mm512_loadu_ps(scan.thresholds.as_ptr()), _mm512_loadu_ps(scan.thresholds.as_ptr().add(16))];
        for ((row, line), &row_threshold) in (0..).zip(scan.panel.chunks_exact(32)).zip(scan.rows) {
            let row_threshold = _mm512_set1_ps(row_threshold);
            let mut found = 0u32;
            for half in 0..2 {
                let scores = _mm512_mul_ps(sign, _mm512_loadu_ps(line.as_ptr().add(16 * half)));
                let least = _mm512_min_ps(thresholds[half], row_threshold);
                found |= u32::from(_mm512_cmp_ps_mask::<_CMP_GE_OQ>(scores, least)) << (16 * half);
            }
            while found != 0 {
                let at = found.trailing_zeros();
                found &= found - 1;
                hits.push(Hit { row, packed_row: scan.first + at, score: scan.sign * line[at as usize] });
            }
        }
    }
}

macro_rules! register_tile {
    ($name:ident, $features:literal, $height:literal, $lanes:literal,
     $zero:ident, $load:ident, $store:ident, $splat:ident, $sub:ident, $fma:ident) => {
        /// # Safety
        /// The CPU must have the named features, and `tile` and `out` the lengths that `Kernel` asks for.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $name<const SQUARED: bool>(tile: RegisterTile<'_>, out: &mut [f32]) {
            let (rows, panel, out) = (tile.rows.as_ptr(), tile.panel.as_ptr(), out.as_mut_ptr());
            let mut acc = [[$zero(); 2]; $height];
            // SAFETY: the caller promises `depth` values behind every row, `depth · 2 · lanes` behind
            // `panel`, and room for `live` rows of `2 · lanes` behind `out`; loads are unaligned.
            unsafe {
                if tile.resume {
                    for i in 0..tile.live {
                        acc[i] = [$load(out.add(i * 2 * $lanes)), $load(out.add((i * 2 + 1) * $lanes))];
                    }
                }
                for p in 0..tile.depth {
                    let b = [$load(panel.add(2 * $lanes * p)), $load(panel.add(2 * $lanes * p + $lanes))];
                    for i in 0..$height {
                        let a = $splat(*rows.add(i * STRETCH + p));
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
                        $store(out.add(i * 2 * $lanes), acc[i][0]);
                        $store(out.add((i * 2 + 1) * $lanes), acc[i][1]);
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

/// Scores of the sums of a register tile of bytes, and those that reach a threshold.
macro_rules! finish_bytes {
    ($name:ident, $features:literal, $lanes:literal, $load:ident, $load_whole:ident, $store:ident, $splat:ident,
     $sub:ident, $to_float:ident, $mul:ident, $add:ident, $min:ident, $reached:ident) => {
        /// # Safety
        /// The CPU must have the named features; `sums` and `finish` must have the lengths that `IntegerKernel` asks for.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $name(sums: &[i32], finish: &Finish<'_>, hits: &mut Vec<Hit>) {
            // SAFETY: all reads stay within two vectors a row, and as many lanes, which the caller promises.
            unsafe {
                for j in 0..2 {
                    let lane = |values: &[f32]| $load(values.as_ptr().add($lanes * j));
                    let (scales, biases) = (lane(finish.scales), lane(finish.biases));
                    let thresholds = lane(finish.thresholds);
                    let corrections = $load_whole(finish.corrections.as_ptr().add($lanes * j).cast());
                    for ((i, row), sums) in (0..).zip(finish.rows).zip(sums.chunks_exact(2 * $lanes)) {
                        let sums = $load_whole(sums.as_ptr().add($lanes * j).cast());
                        let scaled =
                            $mul($to_float($sub(sums, corrections)), $mul($splat(row.scale), scales));
                        let scores = $add(scaled, $add($splat(row.bias), biases));
                        let mut found = $reached(scores, $min(thresholds, $splat(row.threshold)));
                        if found == 0 {
                            continue;
                        }
                        let mut values = [0f32; $lanes];
                        $store(values.as_mut_ptr(), scores);
                        while found != 0 {
                            let at = found.trailing_zeros();
                            found &= found - 1;
                            hits.push(Hit {
                                row: finish.first_row + i,
                                packed_row: finish.first_lane + ($lanes * j) as u32 + at,
                                score: values[at as usize],
                            });
                        }
                    }
                }
            }
        }
    };
}

/// A register tile of bytes for instructions that add up four products at once.
macro_rules! bytes_tile {
    ($name:ident, $features:literal, $height:literal, $lanes:literal, $zero:ident, $load:ident, $store:ident, $splat:ident,
     $dot:ident) => {
        /// # Safety
        /// The CPU must have the named features; `tile` must have the lengths that `IntegerKernel` asks for.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $name<const STRETCH: usize>(tile: ByteTile<'_>) {
            let (rows, panel, sums) = (tile.rows.as_ptr(), tile.panel.as_ptr(), tile.sums.as_mut_ptr());
            let mut acc = [[$zero(); 2]; $height];
            // SAFETY: all reads and writes stay within the lengths the caller promises; they are unaligned.
            unsafe {
                if tile.resume {
                    for i in 0..$height {
                        let sums = sums.add(2 * $lanes * i);
                        acc[i] = [$load(sums.cast()), $load(sums.add($lanes).cast())];
                    }
                }
                for g in 0..tile.groups {
                    let panel = panel.add(8 * $lanes * g);
                    let b = [$load(panel.cast()), $load(panel.add(4 * $lanes).cast())];
                    for i in 0..$height {
                        let a = $splat(rows.add(i * STRETCH + 4 * g).cast::<i32>().read_unaligned());
                        for j in 0..2 {
                            acc[i][j] = $dot(acc[i][j], a, b[j]);
                        }
                    }
                }
                for i in 0..$height {
                    let sums = sums.add(2 * $lanes * i);
                    $store(sums.cast(), acc[i][0]);
                    $store(sums.add($lanes).cast(), acc[i][1]);
                }
            }
        }
    };
}

#[inline]
#[target_feature(enable = "avx2")]
fn reached_256(scores: __m256, least: __m256) -> u32 {
    _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GE_OQ>(scores, least)) as u32
}

#[inline]
#[target_feature(enable = "avx512f")]
fn reached_512(scores: __m512, least: __m512) -> u32 {
    _mm512_cmp_ps_mask::<_CMP_GE_OQ>(scores, least).into()
}

bytes_tile!(
    bytes_vnni,
    "avx512f,avx512vnni",
    12,
    16,
    _mm512_setzero_si512,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_set1_epi32,
    _mm512_dpbusd_epi32
);
finish_bytes!(
    finish_avx512,
    "avx512f",
    16,
    _mm512_loadu_ps,
    _mm512_loadu_si512,
    _mm512_storeu_ps,
    _mm512_set1_ps,
    _mm512_sub_epi32,
    _mm512_cvtepi32_ps,
    _mm512_mul_ps,
    _mm512_add_ps,
    _mm512_min_ps,
    reached_512
);
bytes_tile!(
    bytes_avx_vnni,
    "avx2,avxvnni",
    6,
    8,
    _mm256_setzero_si256,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_set1_epi32,
    _mm256_dpbusd_avx_epi32
);
finish_bytes!(
    finish_avx2,
    "avx2",
    8,
    _mm256_loadu_ps,
    _mm256_loadu_si256,
    _mm256_storeu_ps,
    _mm256_set1_ps,
    _mm256_sub_epi32,
    _mm256_cvtepi32_ps,
    _mm256_mul_ps,
    _mm256_add_ps,
    _mm256_min_ps,
    reached_256
);

/// Products of six-bit numbers (0…63 by −31…31 or 0…63) fit into 16 bits pairwise; this many pairs may be added up
/// before they are widened: 4 · 2 · 63 · 63 = 31,752.
const NARROW: usize = 4;

/// # Safety
/// The CPU must have AVX2; `tile` must have the lengths that `IntegerKernel` asks for. Bytes stay within six bits, and there
/// are a multiple of `NARROW` groups.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn bytes_avx2<const STRETCH: usize>(tile: ByteTile<'_>) {
    let (rows, panel, sums) = (tile.rows.as_ptr(), tile.panel.as_ptr(), tile.sums.as_mut_ptr());
    let ones = _mm256_set1_epi16(1);
    let mut acc = [[_mm256_setzero_si256(); 2]; 3];
    // SAFETY: all reads and writes stay within the lengths the caller promises; they are unaligned.
    unsafe {
        if tile.resume {
            for i in 0..3 {
                for j in 0..2 {
                    acc[i][j] = _mm256_loadu_si256(sums.add(16 * i + 8 * j).cast());
                }
            }
        }
        for first in (0..tile.groups).step_by(NARROW) {
            let mut narrow = [[_mm256_setzero_si256(); 2]; 3];
            for g in first..first + NARROW {
                let b = [
                    _mm256_loadu_si256(panel.add(64 * g).cast()),
                    _mm256_loadu_si256(panel.add(64 * g + 32).cast()),
                ];
                for i in 0..3 {
                    let a = _mm256_set1_epi32(rows.add(i * STRETCH + 4 * g).cast::<i32>().read_unaligned());
                    for j in 0..2 {
                        narrow[i][j] = _mm256_add_epi16(narrow[i][j], _mm256_maddubs_epi16(a, b[j]));
                    }
                }
            }
            for i in 0..3 {
                for j in 0..2 {
                    acc[i][j] = _mm256_add_epi32(acc[i][j], _mm256_madd_epi16(narrow[i][j], ones));
                }
            }
        }
        for i in 0..3 {
            for j in 0..2 {
                _mm256_storeu_si256(sums.add(16 * i + 8 * j).cast(), acc[i][j]);
            }
        }
    }
}

/// Columns from the one that is used to the one that is asked for.
const AHEAD: usize = 128;

/// The chains of one row with `V` times eight others: eight columns of eight rows are turned, so that lanes run over rows.
///
/// # Safety
/// The CPU must have AVX2 and FMA; all rows must be as long as `a`.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn abreast<const V: usize>(
    chain: Chain,
    a: &[f32],
    others: [[&[f32]; ABREAST]; V],
) -> [[f32; ABREAST]; V] {
    let mut acc = [_mm256_setzero_ps(); V];
    // A cache line of every row at a time: where rows lie powers of two apart, few of their lines fit into the cache together.
    let whole = a.len() / 16 * 16;
    for p in (0..whole).step_by(16) {
        for v in 0..V {
            for row in others[v] {
                prefetch(&row[(p + AHEAD).min(a.len() - 1)]);
            }
            for p in [p, p + 8] {
                // SAFETY: eight columns are left in every row.
                let rows = std::array::from_fn(|i| unsafe { _mm256_loadu_ps(others[v][i].as_ptr().add(p)) });
                for (q, b) in turned(rows).into_iter().enumerate() {
                    let a = _mm256_set1_ps(a[p + q]);
                    acc[v] = match chain {
                        Chain::Product => _mm256_fmadd_ps(a, b, acc[v]),
                        Chain::SquaredDistance => {
                            let difference = _mm256_sub_ps(a, b);
                            _mm256_fmadd_ps(difference, difference, acc[v])
                        }
                    };
                }
            }
        }
    }
    let mut out = [[0f32; ABREAST]; V];
    for v in 0..V {
        // SAFETY: there is room for eight.
        unsafe { _mm256_storeu_ps(out[v].as_mut_ptr(), acc[v]) };
        for p in whole..a.len() {
            for i in 0..ABREAST {
                out[v][i] = chain.step(a[p], others[v][i][p], out[v][i]);
            }
        }
    }
    out
}

/// The columns of eight rows of eight.
#[inline]
#[target_feature(enable = "avx2")]
fn turned(rows: [__m256; 8]) -> [__m256; 8] {
    // Rows 0 and 1, 2 and 3, … column by column, in either half of a vector; then fours of rows; then halves.
    let pairs: [__m256; 8] = [
        _mm256_unpacklo_ps(rows[0], rows[1]),
        _mm256_unpackhi_ps(rows[0], rows[1]),
        _mm256_unpacklo_ps(rows[2], rows[3]),
        _mm256_unpackhi_ps(rows[2], rows[3]),
        _mm256_unpacklo_ps(rows[4], rows[5]),
        _mm256_unpackhi_ps(rows[4], rows[5]),
        _mm256_unpacklo_ps(rows[6], rows[7]),
        _mm256_unpackhi_ps(rows[6], rows[7]),
    ];
    const LOW: i32 = 0b01_00_01_00;
    const HIGH: i32 = 0b11_10_11_10;
    let fours: [__m256; 8] = [
        _mm256_shuffle_ps::<LOW>(pairs[0], pairs[2]),
        _mm256_shuffle_ps::<HIGH>(pairs[0], pairs[2]),
        _mm256_shuffle_ps::<LOW>(pairs[1], pairs[3]),
        _mm256_shuffle_ps::<HIGH>(pairs[1], pairs[3]),
        _mm256_shuffle_ps::<LOW>(pairs[4], pairs[6]),
        _mm256_shuffle_ps::<HIGH>(pairs[4], pairs[6]),
        _mm256_shuffle_ps::<LOW>(pairs[5], pairs[7]),
        _mm256_shuffle_ps::<HIGH>(pairs[5], pairs[7]),
    ];
    [
        _mm256_permute2f128_ps::<0x20>(fours[0], fours[4]),
        _mm256_permute2f128_ps::<0x20>(fours[1], fours[5]),
        _mm256_permute2f128_ps::<0x20>(fours[2], fours[6]),
        _mm256_permute2f128_ps::<0x20>(fours[3], fours[7]),
        _mm256_permute2f128_ps::<0x31>(fours[0], fours[4]),
        _mm256_permute2f128_ps::<0x31>(fours[1], fours[5]),
        _mm256_permute2f128_ps::<0x31>(fours[2], fours[6]),
        _mm256_permute2f128_ps::<0x31>(fours[3], fours[7]),
    ]
}
