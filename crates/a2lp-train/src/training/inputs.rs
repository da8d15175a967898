//! The items of a domain, as a network takes them.

use crate::draws::{Draws, Purpose};
use crate::error::TrainError;
use crate::networks::{Batch, LeNet};
use crate::trunk::{CachedMaps, Photos};
use a2lp_data::Picture;
use a2lp_data::images::{Filter, Transform, decode, resize};
use burn::tensor::Device;
use rayon::prelude::*;
use std::path::PathBuf;

/// How a batch of images is changed at random in training.
#[derive(Clone, Copy)]
pub(crate) struct Augmentation {
    pub(crate) seed: u64,
    /// Of small images.
    pub(crate) jitter: f32,
}

/// The items of a domain.
pub enum Inputs {
    /// Features: rows scaled to one length.
    Rows {
        /// Features of an item.
        columns: usize,
        /// Row after row.
        values: Vec<f32>,
    },
    /// Grey images for a LeNet, in [0, 1].
    Digits(Vec<f32>),
    /// Image files.
    Files {
        /// Where they are.
        paths: Vec<PathBuf>,
        /// The random transform of training.
        train: Transform,
        /// The transform otherwise.
        test: Transform,
        /// Apply EXIF orientation.
        upright: bool,
    },
    /// What the frozen part of a network made of image files.
    Maps(CachedMaps),
}

impl Inputs {
    /// Features, each row scaled to the length √columns, so that entries are about 1 on the average.
    pub fn rows(columns: usize, mut values: Vec<f32>) -> Self {
        for row in values.chunks_exact_mut(columns.max(1)) {
            let length = row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
            if length > 0.0 {
                let scale = ((columns as f64).sqrt() / length) as f32;
                row.iter_mut().for_each(|v| *v *= scale);
            }
        }
        Inputs::Rows { columns, values }
    }

    /// Images of any size, made grey and resized for a LeNet.
    pub fn digits(pictures: &[Picture]) -> Self {
        let side = LeNet::SIDE;
        let one = |picture: &Picture| -> Vec<f32> {
            let grey = if picture.channels == 1 { picture.clone() } else { grey(picture) };
            let fits = grey.width == side && grey.height == side;
            let small = if fits { grey } else { resize(&grey, side, side, Filter::Bilinear) };
            small.pixels.iter().map(|&pixel| f32::from(pixel) / 255.0).collect()
        };
        Inputs::Digits(pictures.par_iter().map(one).collect::<Vec<_>>().concat())
    }

    /// Image files, and how they are seen.
    pub(crate) fn photos(&self) -> Option<Photos<'_>> {
        match self {
            Inputs::Files { paths, train, test, upright } => {
                Some(Photos { paths, train, test, upright: *upright })
            }
            _ => None,
        }
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        match self {
            Inputs::Rows { columns, values } => values.len() / (*columns).max(1),
            Inputs::Digits(values) => values.len() / (LeNet::SIDE * LeNet::SIDE),
            Inputs::Files { paths, .. } => paths.len(),
            Inputs::Maps(maps) => maps.len(),
        }
    }

    /// No items?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some items; augmented if training asks for it.
    pub(crate) fn batch(
        &self,
        rows: &[usize],
        augmentation: Option<Augmentation>,
        device: &Device,
    ) -> Result<Batch, TrainError> {
        let pick = |values: &[f32], width: usize| -> Vec<f32> {
            rows.iter().flat_map(|&row| &values[row * width..(row + 1) * width]).copied().collect()
        };
        match self {
            Inputs::Rows { columns, values } => {
                Ok(Batch::rows(pick(values, *columns), [rows.len(), *columns], device))
            }
            Inputs::Digits(values) => {
                let side = LeNet::SIDE;
                let mut images = pick(values, side * side);
                if let Some(Augmentation { seed, jitter }) = augmentation.filter(|a| a.jitter > 0.0) {
                    images.par_chunks_mut(side * side).enumerate().for_each(|(at, image)| {
                        let moved = jittered(image, jitter, Draws::new(seed, Purpose::Augment, at as u64));
                        image.copy_from_slice(&moved);
                    });
                }
                Ok(Batch::images(images, [rows.len(), 1, side, side], device))
            }
            Inputs::Files { paths, train, test, upright } => {
                let images: Vec<Vec<f32>> = rows
                    .par_iter()
                    .enumerate()
                    .map(|(at, &row)| {
                        let picture = decode(&paths[row], *upright)?;
                        Ok(match augmentation {
                            Some(Augmentation { seed, .. }) => {
                                train.apply(&picture, seed.wrapping_add(at as u64))
                            }
                            None => test.apply(&picture, 0),
                        })
                    })
                    .collect::<Result<_, TrainError>>()?;
                let side = test.side();
                Ok(Batch::images(images.concat(), [rows.len(), 3, side, side], device))
            }
            Inputs::Maps(maps) => {
                // In training any of an image's maps may come, the one of the whole image too.
                let draw = augmentation.map(|Augmentation { seed, .. }| {
                    move |at: usize, variants: usize| {
                        Draws::new(seed, Purpose::Augment, at as u64).below(variants)
                    }
                });
                let draw = draw.as_ref().map(|draw| draw as &dyn Fn(usize, usize) -> usize);
                let (values, shape) = maps.batch(rows, draw)?;
                Ok(Batch::maps(values, shape, maps.layers, device))
            }
        }
    }
}

/// A small image with a random zoom and shift, in place of the random crops of photos.
fn jittered(image: &[f32], jitter: f32, mut draws: Draws) -> Vec<f32> {
    let side = LeNet::SIDE;
    let centre = (side - 1) as f32 / 2.0;
    let zoom = draws.between(1.0 - jitter, 1.0 + jitter);
    let shift = 8.0 * jitter;
    let (dx, dy) = (draws.between(-shift, shift), draws.between(-shift, shift));
    let pixel = |x: f32, y: f32| {
        let inside = |v: f32| (0.0..side as f32).contains(&v);
        if inside(x) && inside(y) { image[y as usize * side + x as usize] } else { 0.0 }
    };
    let place = |at: usize, shift: f32| (at as f32 - centre) * zoom + centre + shift;
    let value = |at: usize| {
        let (x, y) = (place(at % side, dx), place(at / side, dy));
        let (left, top) = (x.floor(), y.floor());
        let (right, below) = (x - left, y - top);
        let line = |y: f32| pixel(left, y) * (1.0 - right) + pixel(left + 1.0, y) * right;
        line(top) * (1.0 - below) + line(top + 1.0) * below
    };
    (0..side * side).map(value).collect()
}

/// The usual weights of red, green and blue.
fn grey(picture: &Picture) -> Picture {
    let pixels = picture
        .pixels
        .chunks_exact(picture.channels)
        .map(|p| (0.299 * f32::from(p[0]) + 0.587 * f32::from(p[1]) + 0.114 * f32::from(p[2])).round() as u8);
    Picture { channels: 1, pixels: pixels.collect(), ..*picture }
}
