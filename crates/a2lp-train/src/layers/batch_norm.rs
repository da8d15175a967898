//! Normalisation of every channel by the mean and the variance of a batch.

use super::Layer;
use rayon::prelude::*;

/// Images of so many channels and places; scale and shift per channel.
#[derive(Clone, Debug)]
pub(crate) struct BatchNorm {
    pub(crate) channels: usize,
    pub(crate) places: usize,
    pub(crate) epsilon: f64,
}

/// Mean and variance of every channel in a batch.
#[derive(Clone, Debug)]
pub(crate) struct Moments {
    pub(crate) means: Vec<f32>,
    pub(crate) variances: Vec<f32>,
}

impl Layer<3> for BatchNorm {
    type Trail = Moments;

    fn forward(&self, [images, weight, bias]: [&[f32]; 3]) -> (Vec<f32>, Moments) {
        let count = self.count(images);
        let of_count = |sums: Vec<[f64; 1]>| sums.into_iter().map(|[sum]| (sum / count) as f32).collect();
        let means: Vec<f32> = of_count(self.sums(images, images, |_, x, _| [x]));
        let squares = |channel: usize, x: f64, _| [(x - f64::from(means[channel])).powi(2)];
        let variances: Vec<f32> = of_count(self.sums(images, images, squares));
        let mut out = vec![0f32; images.len()];
        let pairs = out.par_chunks_mut(self.image()).zip(images.par_chunks(self.image()));
        pairs.with_min_len(self.least()).for_each(|(out, image)| {
            for (channel, (out, image)) in self.planes_mut(out).zip(self.planes(image)).enumerate() {
                let scale = weight[channel] * self.inverse(variances[channel]);
                let (mean, bias) = (means[channel], bias[channel]);
                out.iter_mut().zip(image).for_each(|(out, x)| *out = (x - mean) * scale + bias);
            }
        });
        (out, Moments { means, variances })
    }

    fn backward(
        &self,
        [images, weight, _]: [&[f32]; 3],
        moments: &Moments,
        gradient: &[f32],
        [of_images, ..]: [bool; 3],
    ) -> [Vec<f32>; 3] {
        let Moments { means, variances } = moments;
        let sums = self.sums(images, gradient, |channel, x, g| [g, g * (x - f64::from(means[channel]))]);
        let of_bias: Vec<f32> = sums.iter().map(|sum| sum[0] as f32).collect();
        let inverses: Vec<f32> = variances.iter().map(|&variance| self.inverse(variance)).collect();
        let of_weight: Vec<f32> =
            sums.iter().zip(&inverses).map(|(sum, &inverse)| (sum[1] * f64::from(inverse)) as f32).collect();
        let mut back = vec![0f32; if of_images { images.len() } else { 0 }];
        let count = self.count(images) as f32;
        back.par_chunks_mut(self.image())
            .zip(images.par_chunks(self.image()))
            .zip(gradient.par_chunks(self.image()))
            .with_min_len(self.least())
            .for_each(|((back, image), gradient)| {
                let planes = self.planes_mut(back).zip(self.planes(image)).zip(self.planes(gradient));
                for (channel, ((back, image), gradient)) in planes.enumerate() {
                    let (mean, inverse) = (means[channel], inverses[channel]);
                    let scale = weight[channel] * inverse;
                    let (shift, slope) = (of_bias[channel] / count, of_weight[channel] * inverse / count);
                    for ((back, x), g) in back.iter_mut().zip(image).zip(gradient) {
                        *back = scale * (g - shift - (x - mean) * slope);
                    }
                }
            });
        [back, of_weight, of_bias]
    }
}

impl BatchNorm {
    /// Numbers of an image.
    fn image(&self) -> usize {
        self.channels * self.places
    }

    /// Images that are worth a thread of their own.
    fn least(&self) -> usize {
        (1 << 15) / self.image() + 1
    }

    /// Numbers of a channel in a batch.
    fn count(&self, images: &[f32]) -> f64 {
        (images.len() / self.channels) as f64
    }

    fn inverse(&self, variance: f32) -> f32 {
        (f64::from(variance) + self.epsilon).sqrt().recip() as f32
    }

    fn planes<'i>(&self, image: &'i [f32]) -> impl Iterator<Item = &'i [f32]> {
        image.chunks_exact(self.places)
    }

    fn planes_mut<'i>(&self, image: &'i mut [f32]) -> impl Iterator<Item = &'i mut [f32]> {
        image.chunks_exact_mut(self.places)
    }

    /// For every channel the sums of `term(channel, a, b)` over all its numbers, image after image.
    fn sums<const S: usize>(
        &self,
        a: &[f32],
        b: &[f32],
        term: impl Fn(usize, f64, f64) -> [f64; S] + Sync,
    ) -> Vec<[f64; S]> {
        // Sums side by side: one alone would wait for each addition.
        const LANES: usize = 8;
        let of_images: Vec<Vec<[f64; S]>> = a
            .par_chunks(self.image())
            .zip(b.par_chunks(self.image()))
            .with_min_len(self.least())
            .map(|(a, b)| {
                let planes = self.planes(a).zip(self.planes(b)).enumerate();
                let of_plane = |(channel, (a, b)): (usize, (&[f32], &[f32]))| {
                    let mut sums = [[0f64; LANES]; S];
                    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
                        for (lane, (&a, &b)) in a.iter().zip(b).enumerate() {
                            let terms = term(channel, f64::from(a), f64::from(b));
                            (0..S).for_each(|at| sums[at][lane] += terms[at]);
                        }
                    }
                    sums.map(|lanes| lanes.iter().sum())
                };
                planes.map(of_plane).collect()
            })
            .collect();
        let mut all = vec![[0f64; S]; self.channels];
        for sums in of_images {
            all.iter_mut().zip(sums).for_each(|(all, sums)| (0..S).for_each(|at| all[at] += sums[at]));
        }
        all
    }
}
