//! Conjugate gradients on a block: the loops between two exchanges.

use super::{CHUNK, Matrix, SEGMENT};
use crate::affinity::times;
use crate::kernels::{Loops, vectorised};
use crate::propagation::loops;
use rayon::prelude::*;
use std::ops::Range;

/// Sums over the chunks of a block, one after the other.
pub type Sums<const W: usize> = Vec<[f64; W]>;

/// q = (I − αS)p for the rows of a block, which stand in `p` from `own` on, and p·q of every chunk.
pub fn multiply<const W: usize>(
    matrix: &Matrix,
    own: usize,
    p: &[[f32; W]],
    alpha: f32,
    q: &mut [[f32; W]],
) -> Sums<W> {
    q.par_chunks_mut(CHUNK)
        .enumerate()
        .map(|(chunk, q)| vectorised(Chunk { matrix, first: chunk * CHUNK, own, p, alpha, q }))
        .collect()
}

/// What the rows of a block add to the rows of S·p that belong to anchors: for every segment, a row per anchor.
pub fn to_anchors<const W: usize>(entries: &Matrix, p: &[[f32; W]]) -> Vec<[f32; W]> {
    (0..entries.ends.len())
        .into_par_iter()
        .with_min_len(64)
        .map(|row| vectorised(Row { entries: entries.row(row), p }))
        .collect()
}

/// The entries of S between the rows of a block and the anchors: for every segment, a row per anchor. Columns are the rows of the
/// block, counted from `own`.
pub fn anchor_entries(
    matrix: &Matrix,
    own: usize,
    anchor_of: impl Fn(u32) -> Option<usize>,
    anchors: usize,
) -> Matrix {
    let rows = matrix.ends.len();
    let place = |row: usize, anchor: usize| row / SEGMENT * anchors + anchor;
    // Anchors are the last columns of a row.
    let of_row = |row: usize| {
        let links = matrix.row(row).iter().rev();
        links.map_while(|&(column, value)| Some((anchor_of(column)?, value)))
    };
    let mut ends = vec![0u32; rows.div_ceil(SEGMENT) * anchors];
    for row in 0..rows {
        of_row(row).for_each(|(anchor, _)| ends[place(row, anchor)] += 1);
    }
    let mut sum = 0;
    let mut next: Vec<u32> = Vec::with_capacity(ends.len());
    for end in &mut ends {
        next.push(sum);
        sum += *end;
        *end = sum;
    }
    let mut entries = vec![(0u32, 0f32); sum as usize];
    for row in 0..rows {
        for (anchor, value) in of_row(row) {
            let slot = &mut next[place(row, anchor)];
            entries[*slot as usize] = ((own + row) as u32, value);
            *slot += 1;
        }
    }
    Matrix { ends, entries }
}

/// r ← r − step·q, and r·r of every chunk.
pub fn descend<const W: usize>(r: &mut [[f32; W]], q: &[[f32; W]], step: [f32; W]) -> Sums<W> {
    let parts = r.par_chunks_mut(CHUNK).zip(q.par_chunks(CHUNK));
    parts.map(|(r, q)| vectorised(loops::Descend { r, q, step, sum: [0.0; W] })).collect()
}

/// x ← x + step·p, then p ← r + keep·p.
pub fn advance<const W: usize>(
    x: &mut [[f32; W]],
    p: &mut [[f32; W]],
    r: &[[f32; W]],
    step: [f32; W],
    keep: [f32; W],
) {
    let parts = x.par_chunks_mut(CHUNK).zip(p.par_chunks_mut(CHUNK)).zip(r.par_chunks(CHUNK));
    parts.for_each(|((x, p), r)| vectorised(loops::Advance { x, p, r, step, keep }));
}

/// q ← p − αq for anchors, whose number in all is that of `p`, and p·q of the chunks they are in. The first chunk may have begun with
/// rows: `begun` is the sum of those.
pub fn subtract<const W: usize>(
    p: &[[f32; W]],
    alpha: f32,
    q: &mut [[f32; W]],
    rows: usize,
    begun: [f64; W],
) -> Sums<W> {
    let mut sums = Vec::new();
    for chunk in chunks_after(rows, p.len()) {
        let sum = if chunk.start == 0 { begun } else { [0.0; W] };
        sums.push(vectorised(loops::Subtract { p: &p[chunk.clone()], alpha, q: &mut q[chunk], sum }));
    }
    sums
}

/// r ← r − step·q for anchors, and r·r, in the same way.
pub fn descend_anchors<const W: usize>(
    r: &mut [[f32; W]],
    q: &[[f32; W]],
    step: [f32; W],
    rows: usize,
    begun: [f64; W],
) -> Sums<W> {
    let mut sums = Vec::new();
    for chunk in chunks_after(rows, q.len()) {
        let sum = if chunk.start == 0 { begun } else { [0.0; W] };
        sums.push(vectorised(loops::Descend { r: &mut r[chunk.clone()], q: &q[chunk], step, sum }));
    }
    sums
}

/// The chunks of so many nodes after so many rows: the first fills up the last chunk of the rows.
fn chunks_after(rows: usize, nodes: usize) -> impl Iterator<Item = Range<usize>> {
    let first = if rows.is_multiple_of(CHUNK) { CHUNK } else { CHUNK - rows % CHUNK };
    let start = move |chunk: usize| if chunk == 0 { 0 } else { (first + (chunk - 1) * CHUNK).min(nodes) };
    (0..).map(move |chunk| start(chunk)..start(chunk + 1)).take_while(|chunk| !chunk.is_empty())
}

/// S·p for one anchor, over the other anchors.
pub fn between_anchors<const W: usize>(entries: &[(u32, f32)], p: &[[f32; W]]) -> [f32; W] {
    vectorised(Row { entries, p })
}

struct Row<'a, const W: usize> {
    entries: &'a [(u32, f32)],
    p: &'a [[f32; W]],
}

impl<const W: usize> Loops for Row<'_, W> {
    type Output = [f32; W];

    #[inline(always)]
    fn run(self) -> [f32; W] {
        times(self.entries, self.p)
    }
}

struct Chunk<'a, const W: usize> {
    matrix: &'a Matrix,
    first: usize,
    own: usize,
    p: &'a [[f32; W]],
    alpha: f32,
    q: &'a mut [[f32; W]],
}

impl<const W: usize> Loops for Chunk<'_, W> {
    type Output = [f64; W];

    #[inline(always)]
    fn run(self) -> [f64; W] {
        let Chunk { matrix, first, own, p, alpha, q } = self;
        for (row, q) in (first..).zip(q.iter_mut()) {
            *q = times(matrix.row(row), p);
        }
        let p = &p[own + first..][..q.len()];
        loops::Subtract { p, alpha, q, sum: [0.0; W] }.run()
    }
}
