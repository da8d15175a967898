//! A convolution over all channels: patches times weights, a few images at a time on every core.

use super::{Layer, Windows};
use a2lp::internal::Factor;
use rayon::prelude::*;

/// Images are worked on together until they have this many windows: small products would not pay for laying them out.
const PLACES: usize = 256;
/// Rows of a product that are worked on together.
const ROWS: usize = 48;

/// Every window of an image, all channels of it, times the weights of every map.
#[derive(Clone, Debug)]
pub(super) struct Convolution {
    pub(super) channels: usize,
    pub(super) maps: usize,
    pub(super) windows: Windows,
}

impl Layer<2> for Convolution {
    type Trail = ();

    fn forward(&self, [images, weights]: [&[f32]; 2]) -> (Vec<f32>, ()) {
        let places = self.windows.places();
        let mut out = vec![0f32; self.count(images) * self.maps * places];
        out.par_chunks_mut(self.together() * self.maps * places)
            .zip(images.par_chunks(self.together() * self.image()))
            .for_each(|(out, images)| {
                let count = self.count(images);
                let factor = self.patches(images, |patches| Factor::new(patches, count * places));
                if count == 1 {
                    return product(weights, &factor, self.patch(), out);
                }
                let mut maps = vec![0f32; out.len()];
                product(weights, &factor, self.patch(), &mut maps);
                self.between(count, |inside, across| out[inside].copy_from_slice(&maps[across]));
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
        let places = self.windows.places();
        let turned = if of_images { turned(weights, self.patch()) } else { Vec::new() };
        let mut back = vec![0f32; if of_images { images.len() } else { 0 }];
        let step = self.together() * self.image();
        let slots: Vec<&mut [f32]> = match of_images {
            true => back.chunks_mut(step).collect(),
            false => (0..images.len().div_ceil(step)).map(|_| &mut [][..]).collect(),
        };
        let parts: Vec<Vec<f32>> = slots
            .into_par_iter()
            .zip(images.par_chunks(step))
            .zip(gradient.par_chunks(self.together() * self.maps * places))
            .map(|((back, images), gradient)| {
                let count = self.count(images);
                let gathered;
                let maps = if count == 1 {
                    gradient
                } else {
                    let mut maps = vec![0f32; gradient.len()];
                    self.between(count, |inside, across| maps[across].copy_from_slice(&gradient[inside]));
                    gathered = maps;
                    &gathered
                };
                if of_images {
                    self.back_to_images(&turned, maps, count, back);
                }
                let mut sum = Vec::new();
                if of_weights {
                    let factor = self.patches(images, |patches| Factor::transposed(patches, count * places));
                    sum = vec![0f32; weights.len()];
                    product(maps, &factor, count * places, &mut sum);
                }
                sum
            })
            .collect();
        let mut parts = parts.into_iter();
        let mut sum = parts.next().unwrap_or_default();
        for part in parts {
            sum.par_iter_mut().zip(part).with_min_len(1 << 14).for_each(|(sum, value)| *sum += value);
        }
        [back, sum]
    }
}

/// A·B, some rows of A at a time; `inner` is the length of those.
fn product(a: &[f32], factor: &Factor, inner: usize, out: &mut [f32]) {
    let rows = a.len() / inner;
    let columns = out.len() / rows;
    out.par_chunks_mut(ROWS * columns)
        .zip(a.par_chunks(ROWS * inner))
        .for_each(|(out, a)| factor.multiply(a, out));
}

/// The transpose of a matrix with rows of this length.
fn turned(matrix: &[f32], columns: usize) -> Vec<f32> {
    /// Lines that are written together, so that what is read is read once.
    const LINES: usize = 16;
    let rows = matrix.len() / columns;
    let mut out = vec![0f32; matrix.len()];
    out.par_chunks_mut(LINES * rows).enumerate().for_each(|(at, lines)| {
        for (row, values) in matrix.chunks_exact(columns).enumerate() {
            let slots = lines[row..].iter_mut().step_by(rows);
            slots.zip(&values[at * LINES..]).for_each(|(to, from)| *to = *from);
        }
    });
    out
}

impl Convolution {
    /// Numbers of an image.
    fn image(&self) -> usize {
        self.channels * self.windows.pixels()
    }

    /// Numbers of a patch.
    fn patch(&self) -> usize {
        self.channels * self.windows.kernel[0] * self.windows.kernel[1]
    }

    /// Images that are worked on together.
    fn together(&self) -> usize {
        PLACES.div_ceil(self.windows.places())
    }

    fn count(&self, images: &[f32]) -> usize {
        images.len() / self.image()
    }

    /// Every stretch of places of one map: where it lies with images down, and where with maps down.
    fn between(&self, count: usize, mut each: impl FnMut(std::ops::Range<usize>, std::ops::Range<usize>)) {
        let places = self.windows.places();
        for (image, map) in (0..count).flat_map(|image| (0..self.maps).map(move |map| (image, map))) {
            let inside = (image * self.maps + map) * places;
            let across = (map * count + image) * places;
            each(inside..inside + places, across..across + places);
        }
    }

    /// Are patches the image itself?
    fn is_plain(&self) -> bool {
        let Windows { image, kernel, stride, before, out } = self.windows;
        kernel == [1, 1] && stride == [1, 1] && before == [0, 0] && out == image
    }

    /// Hands on the matrix of patches: numbers of a patch down, places of all images across.
    fn patches<T>(&self, images: &[f32], with: impl FnOnce(&[f32]) -> T) -> T {
        let count = self.count(images);
        if count == 1 && self.is_plain() {
            return with(images);
        }
        let mut patches = vec![0f32; self.patch() * count * self.windows.places()];
        self.lines(count, |from, to, length, step| {
            let line = &mut patches[to..to + length];
            match step {
                1 => line.copy_from_slice(&images[from..from + length]),
                _ => line
                    .iter_mut()
                    .zip(images[from..].iter().step_by(step))
                    .for_each(|(to, from)| *to = *from),
            }
        });
        with(&patches)
    }

    /// Every line of every patch that is inside its image: where it begins in the images, where in the matrix of patches, its
    /// length, and the step between its numbers in the image.
    fn lines(&self, count: usize, mut each: impl FnMut(usize, usize, usize, usize)) {
        let Windows { image: [_, width], kernel, stride, out, .. } = self.windows;
        let (places, pixels) = (self.windows.places(), self.windows.pixels());
        for number in 0..self.patch() {
            let (channel, within) = (number / (kernel[0] * kernel[1]), number % (kernel[0] * kernel[1]));
            let (down, first_row) = self.windows.inside(0, within / kernel[1]);
            let (across, first_column) = self.windows.inside(1, within % kernel[1]);
            if across.is_empty() {
                continue;
            }
            for image in 0..count {
                let plane = (image * self.channels + channel) * pixels;
                for (step, y) in down.clone().enumerate() {
                    let from = plane + (first_row + step * stride[0]) * width + first_column;
                    let to = (number * count + image) * places + y * out[1] + across.start;
                    each(from, to, across.len(), stride[1]);
                }
            }
        }
    }

    /// The gradient of some images from that of their maps.
    fn back_to_images(&self, turned: &[f32], maps: &[f32], count: usize, back: &mut [f32]) {
        let columns = count * self.windows.places();
        let factor = Factor::new(maps, columns);
        if count == 1 && self.is_plain() {
            return product(turned, &factor, self.maps, back);
        }
        let mut of_patches = vec![0f32; self.patch() * columns];
        product(turned, &factor, self.maps, &mut of_patches);
        self.lines(count, |to, from, length, step| {
            let line = &of_patches[from..from + length];
            match step {
                1 => back[to..to + length].iter_mut().zip(line).for_each(|(sum, value)| *sum += value),
                _ => back[to..].iter_mut().step_by(step).zip(line).for_each(|(sum, value)| *sum += value),
            }
        });
    }
}
