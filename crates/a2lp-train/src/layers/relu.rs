//! Numbers below 0 become 0, and those above a limit the limit.

use super::Layer;
use rayon::prelude::*;

/// Numbers of a task.
const TASK: usize = 1 << 15;

/// A rectifier; the limit may be infinite.
#[derive(Clone, Debug)]
pub(super) struct Relu {
    pub(super) most: f32,
}

impl Layer<1> for Relu {
    type Trail = ();

    fn forward(&self, [x]: [&[f32]; 1]) -> (Vec<f32>, ()) {
        let mut out = vec![0f32; x.len()];
        out.par_chunks_mut(TASK).zip(x.par_chunks(TASK)).for_each(|(out, x)| {
            // A NaN stays one.
            out.iter_mut().zip(x).for_each(|(out, &x)| *out = x.clamp(0.0, self.most));
        });
        (out, ())
    }

    fn backward(&self, [x]: [&[f32]; 1], (): &(), gradient: &[f32], _: [bool; 1]) -> [Vec<f32>; 1] {
        let mut back = vec![0f32; x.len()];
        back.par_chunks_mut(TASK).zip(x.par_chunks(TASK)).zip(gradient.par_chunks(TASK)).for_each(
            |((back, x), gradient)| {
                for ((back, &x), &gradient) in back.iter_mut().zip(x).zip(gradient) {
                    *back = if x > 0.0 && x < self.most { gradient } else { 0.0 };
                }
            },
        );
        [back]
    }
}
