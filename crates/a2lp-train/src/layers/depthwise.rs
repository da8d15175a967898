//! A convolution of every channel with a kernel of its own.

use super::{Layer, Windows};
use rayon::prelude::*;

/// Every window of a channel times the weights of that channel.
#[derive(Clone, Debug)]
pub(super) struct Depthwise {
    pub(super) channels: usize,
    pub(super) windows: Windows,
}

impl Layer<2> for Depthwise {
    type Trail = ();

    fn forward(&self, [images, weights]: [&[f32]; 2]) -> (Vec<f32>, ()) {
        let planes = images.len() / self.windows.pixels();
        let mut out = vec![0f32; planes * self.windows.places()];
        out.par_chunks_mut(self.windows.places())
            .zip(images.par_chunks(self.windows.pixels()))
            .enumerate()
            .for_each(|(plane, (out, image))| {
                let weights = self.of_channel(weights, plane);
                self.lines(|number, from, to, length, step| {
                    let weight = weights[number];
                    let line = &mut out[to..to + length];
                    match step {
                        1 => line
                            .iter_mut()
                            .zip(&image[from..from + length])
                            .for_each(|(o, x)| *o += weight * x),
                        _ => line
                            .iter_mut()
                            .zip(image[from..].iter().step_by(step))
                            .for_each(|(o, x)| *o += weight * x),
                    }
                });
            });
        (out, ())
    }

    fn backward(
        &self,
        [images, weights]: [&[f32]; 2],
        (): &(),
        gradient: &[f32],
        [of_images, of_weights]: [bool; 2],
    ) -> [Vec<f32>; 2] {
        let (pixels, places) = (self.windows.pixels(), self.windows.places());
        let mut back = vec![0f32; if of_images { images.len() } else { 0 }];
        if of_images {
            back.par_chunks_mut(pixels).zip(gradient.par_chunks(places)).enumerate().for_each(
                |(plane, (back, gradient))| {
                    let weights = self.of_channel(weights, plane);
                    self.lines(|number, to, from, length, step| {
                        let (weight, line) = (weights[number], &gradient[from..from + length]);
                        match step {
                            1 => {
                                back[to..to + length].iter_mut().zip(line).for_each(|(x, g)| *x += weight * g)
                            }
                            _ => back[to..]
                                .iter_mut()
                                .step_by(step)
                                .zip(line)
                                .for_each(|(x, g)| *x += weight * g),
                        }
                    });
                },
            );
        }
        let mut sum = vec![0f32; if of_weights { weights.len() } else { 0 }];
        if of_weights {
            let planes = images.len() / pixels;
            let size = self.kernel();
            sum.par_chunks_mut(size).enumerate().for_each(|(channel, sum)| {
                for plane in (channel..planes).step_by(self.channels) {
                    let (image, gradient) =
                        (&images[plane * pixels..][..pixels], &gradient[plane * places..][..places]);
                    self.lines(|number, from, to, length, step| {
                        let line = &gradient[to..to + length];
                        sum[number] += match step {
                            1 => dot(line, &image[from..from + length]),
                            _ => {
                                line.iter().zip(image[from..].iter().step_by(step)).map(|(g, x)| g * x).sum()
                            }
                        };
                    });
                }
            });
        }
        [back, sum]
    }
}

/// Eight sums side by side, added up in the end.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_left), (b, b_left)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut sums = [0f32; 8];
    for (a, b) in a.iter().zip(b) {
        (0..8).for_each(|at| sums[at] += a[at] * b[at]);
    }
    a_left.iter().zip(b_left).fold(sums.iter().sum(), |sum, (a, b)| sum + a * b)
}

impl Depthwise {
    fn kernel(&self) -> usize {
        self.windows.kernel[0] * self.windows.kernel[1]
    }

    /// The weights that a plane of a batch is multiplied by.
    fn of_channel<'w>(&self, weights: &'w [f32], plane: usize) -> &'w [f32] {
        &weights[plane % self.channels * self.kernel()..][..self.kernel()]
    }

    /// For every number of the kernel, its lines inside the image: the number, where the line begins in the image and among the
    /// windows, its length, and the step between its numbers in the image.
    fn lines(&self, mut each: impl FnMut(usize, usize, usize, usize, usize)) {
        let Windows { image: [_, width], kernel, stride, out, .. } = self.windows;
        for number in 0..self.kernel() {
            let (down, first_row) = self.windows.inside(0, number / kernel[1]);
            let (across, first_column) = self.windows.inside(1, number % kernel[1]);
            if across.is_empty() {
                continue;
            }
            for (step, y) in down.enumerate() {
                let from = (first_row + step * stride[0]) * width + first_column;
                each(number, from, y * out[1] + across.start, across.len(), stride[1]);
            }
        }
    }
}
