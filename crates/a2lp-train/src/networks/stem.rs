//! The convolutions of a LeNet, forward and backward: patches times weights, a few images at a time on every core.
//!
//! At these sizes burn's own spend their time elsewhere than in multiplying; a step takes a third of theirs. What stands in
//! front of the first layer that burn differentiates needs no more of its graph than the gradient of what comes out here.

use a2lp::internal::Factor;
use rayon::prelude::*;

/// Images that are worked on together; sums are made in this order, however many threads there are.
const TOGETHER: usize = 8;
const KERNEL: usize = 5;

/// A convolution of 5 × 5 and the largest of every 2 × 2 places.
#[derive(Clone, Copy, Debug)]
struct Layer {
    channels: usize,
    side: usize,
    maps: usize,
}

const FIRST: Layer = Layer { channels: 1, side: 28, maps: 20 };
const SECOND: Layer = Layer { channels: 20, side: 12, maps: 50 };

/// Weights and biases of both layers, in PyTorch's order.
#[derive(Clone, Debug)]
pub(crate) struct StemWeights {
    pub(crate) first: (Vec<f32>, Vec<f32>),
    pub(crate) second: (Vec<f32>, Vec<f32>),
}

/// What a batch leaves behind for the way back.
#[derive(Clone, Debug)]
pub(crate) struct Trail {
    weights: StemWeights,
    parts: Vec<Part>,
}

/// A few images on their way.
#[derive(Clone, Debug)]
struct Part {
    images: Vec<f32>,
    /// After the first layer.
    between: Vec<f32>,
    /// Which of four places was the largest, after either layer.
    winners: [Vec<u8>; 2],
}

impl StemWeights {
    /// Numbers that come out for an image.
    pub(crate) const WIDTH: usize = 50 * 4 * 4;

    /// What comes out for images of 28 × 28, and the trail back.
    pub(crate) fn forward(self, images: &[f32]) -> (Vec<f32>, Trail) {
        let made: Vec<(Vec<f32>, Part)> = images
            .par_chunks(TOGETHER * FIRST.side * FIRST.side)
            .map(|images| {
                let (between, first) = FIRST.forward(&self.first, images);
                let (out, second) = SECOND.forward(&self.second, &between);
                (out, Part { images: images.to_vec(), between, winners: [first, second] })
            })
            .collect();
        let (out, parts): (Vec<_>, Vec<_>) = made.into_iter().unzip();
        (out.concat(), Trail { weights: self, parts })
    }
}

impl Trail {
    /// The gradient of the weights from that of what came out.
    pub(crate) fn back(&self, gradient: &[f32]) -> StemWeights {
        let parts: Vec<StemWeights> = self
            .parts
            .par_iter()
            .zip(gradient.par_chunks(TOGETHER * StemWeights::WIDTH))
            .map(|(part, gradient)| {
                let [first, second] = &part.winners;
                let (second, before) = SECOND.back(&self.weights.second.0, &part.between, second, gradient);
                let (first, _) = FIRST.back(&self.weights.first.0, &part.images, first, &before);
                StemWeights { first, second }
            })
            .collect();
        let mut sum = StemWeights {
            first: (vec![0.0; FIRST.maps * FIRST.patch()], vec![0.0; FIRST.maps]),
            second: (vec![0.0; SECOND.maps * SECOND.patch()], vec![0.0; SECOND.maps]),
        };
        for part in &parts {
            sum.add(part);
        }
        sum
    }
}

impl StemWeights {
    pub(crate) fn add(&mut self, other: &StemWeights) {
        let pairs = [
            (&mut self.first.0, &other.first.0),
            (&mut self.first.1, &other.first.1),
            (&mut self.second.0, &other.second.0),
            (&mut self.second.1, &other.second.1),
        ];
        for (sum, values) in pairs {
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
    }
}

impl Layer {
    fn out(self) -> usize {
        self.side + 1 - KERNEL
    }

    fn halved(self) -> usize {
        self.out() / 2
    }

    /// Numbers of a patch.
    fn patch(self) -> usize {
        self.channels * KERNEL * KERNEL
    }

    /// Every line of every patch: where it begins in the images, and where in the matrix of patches (numbers of a patch
    /// down, places of all images across).
    fn lines(self, count: usize) -> impl Iterator<Item = (usize, usize)> {
        let (out, side) = (self.out(), self.side);
        let places = count * out * out;
        (0..self.patch()).flat_map(move |number| {
            let (channel, dy, dx) = (number / 25, number / 5 % 5, number % 5);
            (0..count * out).map(move |line| {
                let (image, y) = (line / out, line % out);
                let from = ((image * self.channels + channel) * side + y + dy) * side + dx;
                (from, number * places + line * out)
            })
        })
    }

    fn patches(self, images: &[f32], count: usize) -> Vec<f32> {
        let out = self.out();
        let mut patches = vec![0.0; self.patch() * count * out * out];
        for (from, to) in self.lines(count) {
            patches[to..to + out].copy_from_slice(&images[from..from + out]);
        }
        patches
    }

    fn count(self, images: &[f32]) -> usize {
        images.len() / (self.channels * self.side * self.side)
    }

    /// The largest of every 2 × 2 places, images down, and which of the four it was.
    fn forward(self, (weights, bias): &(Vec<f32>, Vec<f32>), images: &[f32]) -> (Vec<f32>, Vec<u8>) {
        let (count, out, half) = (self.count(images), self.out(), self.halved());
        let places = count * out * out;
        let patches = self.patches(images, count);
        let mut maps = vec![0f32; self.maps * places];
        Factor::new(&patches, places).multiply(weights, &mut maps);
        let mut largest = Vec::with_capacity(count * self.maps * half * half);
        let mut winners = Vec::with_capacity(largest.capacity());
        for (image, map) in (0..count).flat_map(|image| (0..self.maps).map(move |map| (image, map))) {
            let values = &maps[map * places + image * out * out..][..out * out];
            for (y, x) in (0..half).flat_map(|y| (0..half).map(move |x| (y, x))) {
                let corner = 2 * y * out + 2 * x;
                let four =
                    [values[corner], values[corner + 1], values[corner + out], values[corner + out + 1]];
                let winner = (1..4).fold(0, |best, at| if four[at] > four[best] { at } else { best });
                largest.push(four[winner] + bias[map]);
                winners.push(winner as u8);
            }
        }
        (largest, winners)
    }

    /// The gradient of weights and biases, and of the images.
    fn back(
        self,
        weights: &[f32],
        images: &[f32],
        winners: &[u8],
        gradient: &[f32],
    ) -> ((Vec<f32>, Vec<f32>), Vec<f32>) {
        let (count, out, half) = (self.count(images), self.out(), self.halved());
        let places = count * out * out;
        let mut maps = vec![0f32; self.maps * places];
        let mut of_bias = vec![0f32; self.maps];
        for (at, (&winner, &gradient)) in winners.iter().zip(gradient).enumerate() {
            let (image, map) = (at / (half * half) / self.maps, at / (half * half) % self.maps);
            let (y, x) = (at / half % half, at % half);
            let (dy, dx) = (usize::from(winner) / 2, usize::from(winner) % 2);
            maps[map * places + image * out * out + (2 * y + dy) * out + 2 * x + dx] = gradient;
            of_bias[map] += gradient;
        }
        let patches = self.patches(images, count);
        let mut of_weights = vec![0f32; self.maps * self.patch()];
        Factor::transposed(&patches, places).multiply(&maps, &mut of_weights);
        let mut of_images = Vec::new();
        // The gradient of pixels is not needed.
        if self.channels > 1 {
            let mut of_patches = patches;
            let patch = self.patch();
            let turned: Vec<f32> =
                (0..weights.len()).map(|at| weights[at % self.maps * patch + at / self.maps]).collect();
            Factor::new(&maps, places).multiply(&turned, &mut of_patches);
            of_images = vec![0f32; images.len()];
            for (to, from) in self.lines(count) {
                let line = &of_patches[from..from + out];
                of_images[to..to + out].iter_mut().zip(line).for_each(|(sum, value)| *sum += value);
            }
        }
        ((of_weights, of_bias), of_images)
    }
}
