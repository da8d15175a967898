//! Scores that are shifted and scaled by row and by packed row.

use super::{Loops, MAX_WIDTH, ScoreTile, floats, floats_mut, grow, vectorised};

/// What is taken off the scores of some rows, and a factor on the rest.
#[derive(Clone, Copy)]
pub(crate) struct Shift<'a> {
    pub(crate) off: &'a [f32],
    pub(crate) scale: &'a [f32],
}

impl ScoreTile {
    /// Writes (score − offᵢ + constant − offⱼ)·scaleᵢ·scaleⱼ into another tile, for every row i and packed row j.
    pub(crate) fn shift_and_scale(
        &self,
        rows: Shift<'_>,
        packed_rows: Shift<'_>,
        constant: f32,
        into: &mut ScoreTile,
    ) {
        (into.rows, into.packed_rows, into.width) = (self.rows, self.packed_rows, self.width);
        let count = self.rows * self.packed_rows.next_multiple_of(self.width.max(1));
        grow(&mut into.scores, count);
        let size = (self.rows * self.width).max(1);
        let panels = floats(&self.scores)[..count].chunks_exact(size);
        let out = floats_mut(&mut into.scores)[..count].chunks_exact_mut(size);
        for ((panel, out), first) in panels.zip(out).zip((0..self.packed_rows).step_by(self.width)) {
            let live = first..self.packed_rows.min(first + self.width);
            // The last panel may be padded.
            let (mut off, mut scale) = ([0f32; MAX_WIDTH], [0f32; MAX_WIDTH]);
            off[..live.len()].copy_from_slice(&packed_rows.off[live.clone()]);
            scale[..live.len()].copy_from_slice(&packed_rows.scale[live]);
            let lanes = Shift { off: &off[..self.width], scale: &scale[..self.width] };
            vectorised(ShiftPanel { panel, rows, lanes, constant, out });
        }
    }
}

/// One panel of scores to be shifted and scaled.
struct ShiftPanel<'a> {
    panel: &'a [f32],
    rows: Shift<'a>,
    lanes: Shift<'a>,
    constant: f32,
    out: &'a mut [f32],
}

impl Loops for ShiftPanel<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let width = self.lanes.off.len();
        let lines = self.panel.chunks_exact(width).zip(self.out.chunks_exact_mut(width));
        for ((line, out), (off, scale)) in lines.zip(self.rows.off.iter().zip(self.rows.scale)) {
            let off = off - self.constant;
            let lanes = self.lanes.off.iter().zip(self.lanes.scale);
            for ((out, score), (lane_off, lane_scale)) in out.iter_mut().zip(line).zip(lanes) {
                *out = (score - off - lane_off) * scale * lane_scale;
            }
        }
    }
}
