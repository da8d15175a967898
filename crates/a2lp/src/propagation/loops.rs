//! The loops of conjugate gradients over a chunk of rows, `W` classes at once. f32 vectors, f64 sums in order.

use crate::kernels::Loops;

/// q ← p − αq, and p·q.
pub(crate) struct Subtract<'a, const W: usize> {
    pub(crate) p: &'a [[f32; W]],
    pub(crate) alpha: f32,
    pub(crate) q: &'a mut [[f32; W]],
    /// What is added to.
    pub(crate) sum: [f64; W],
}

impl<const W: usize> Loops for Subtract<'_, W> {
    type Output = [f64; W];

    #[inline(always)]
    fn run(self) -> [f64; W] {
        let mut sum = self.sum;
        for (q, p) in self.q.iter_mut().zip(self.p) {
            *q = std::array::from_fn(|c| p[c] - self.alpha * q[c]);
            for c in 0..W {
                sum[c] += f64::from(p[c]) * f64::from(q[c]);
            }
        }
        sum
    }
}

/// r ← r − step·q, and r·r.
pub(crate) struct Descend<'a, const W: usize> {
    pub(crate) r: &'a mut [[f32; W]],
    pub(crate) q: &'a [[f32; W]],
    pub(crate) step: [f32; W],
    /// What is added to.
    pub(crate) sum: [f64; W],
}

impl<const W: usize> Loops for Descend<'_, W> {
    type Output = [f64; W];

    #[inline(always)]
    fn run(self) -> [f64; W] {
        let mut sum = self.sum;
        for (r, q) in self.r.iter_mut().zip(self.q) {
            *r = std::array::from_fn(|c| r[c] - self.step[c] * q[c]);
            for c in 0..W {
                sum[c] += f64::from(r[c]) * f64::from(r[c]);
            }
        }
        sum
    }
}

/// x ← x + step·p, then p ← r + keep·p.
pub(crate) struct Advance<'a, const W: usize> {
    pub(crate) x: &'a mut [[f32; W]],
    pub(crate) p: &'a mut [[f32; W]],
    pub(crate) r: &'a [[f32; W]],
    pub(crate) step: [f32; W],
    pub(crate) keep: [f32; W],
}

impl<const W: usize> Loops for Advance<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // Several rows as one run of numbers: compilers make good vector code of that, and poor of short rows.
        const ROWS: usize = 8;
        let (step, keep) = ([self.step; ROWS], [self.keep; ROWS]);
        let (step, keep) = (step.as_flattened(), keep.as_flattened());
        let rows = self.x.chunks_mut(ROWS).zip(self.p.chunks_mut(ROWS)).zip(self.r.chunks(ROWS));
        for ((x, p), r) in rows {
            let numbers = x.as_flattened_mut().iter_mut().zip(p.as_flattened_mut()).zip(r.as_flattened());
            for (((x, p), r), (step, keep)) in numbers.zip(step.iter().zip(keep)) {
                *x += step * *p;
                *p = r + keep * *p;
            }
        }
    }
}
