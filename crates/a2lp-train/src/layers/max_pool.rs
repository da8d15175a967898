//! The largest number of every window.

use super::{Layer, Windows};
use rayon::prelude::*;

/// Windows over every plane; what lies outside the image is never the largest.
#[derive(Clone, Debug)]
pub(super) struct MaxPool {
    pub(super) windows: Windows,
}

impl Layer<1> for MaxPool {
    /// Where in its plane every largest number was.
    type Trail = std::sync::Arc<Vec<u32>>;

    fn forward(&self, [images]: [&[f32]; 1]) -> (Vec<f32>, Self::Trail) {
        let (pixels, places) = (self.windows.pixels(), self.windows.places());
        let planes = images.len() / pixels;
        let (mut out, mut winners) = (vec![0f32; planes * places], vec![0u32; planes * places]);
        out.par_chunks_mut(places)
            .zip(winners.par_chunks_mut(places))
            .zip(images.par_chunks(pixels))
            .for_each(|((out, winners), image)| {
                let Windows { image: [height, width], kernel, stride, before, out: [_, across] } =
                    self.windows;
                for (at, (out, winner)) in out.iter_mut().zip(winners).enumerate() {
                    let (top, left) = (at / across * stride[0], at % across * stride[1]);
                    let rows = top.saturating_sub(before[0])..(top + kernel[0] - before[0]).min(height);
                    let columns = left.saturating_sub(before[1])..(left + kernel[1] - before[1]).min(width);
                    let mut best = (f32::NEG_INFINITY, rows.start * width + columns.start);
                    for row in rows {
                        for (at, &value) in
                            (row * width + columns.start..).zip(&image[row * width..][columns.clone()])
                        {
                            if value > best.0 || value.is_nan() {
                                best = (value, at);
                            }
                        }
                    }
                    (*out, *winner) = (best.0, best.1 as u32);
                }
            });
        (out, winners.into())
    }

    fn backward(
        &self,
        [images]: [&[f32]; 1],
        winners: &Self::Trail,
        gradient: &[f32],
        _: [bool; 1],
    ) -> [Vec<f32>; 1] {
        let (pixels, places) = (self.windows.pixels(), self.windows.places());
        let mut back = vec![0f32; images.len()];
        back.par_chunks_mut(pixels)
            .zip(winners.par_chunks(places))
            .zip(gradient.par_chunks(places))
            .for_each(|((back, winners), gradient)| {
                winners.iter().zip(gradient).for_each(|(&winner, value)| back[winner as usize] += value);
            });
        [back]
    }
}
