//! From a picture to what a network takes: resize, crop, flip, normalise. Named after who uses it (the table of the
//! image pipeline); the random ones draw from the seed they are given.

use super::resize::{Filter, resize};
use crate::pictures::Picture;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Resize the shorter side to this many pixels, the other in proportion: cut off or rounded to a whole number.
    ShorterSide(usize, Filter, Rest),
    /// Resize both sides to this many pixels, whatever the shape was.
    Square(usize, Filter),
    CentreCrop(usize, Offset),
    RandomCrop(usize),
    /// A random crop of 8 % to all of the area, sides from 3:4 to 4:3, resized to this many pixels.
    RandomResizedCrop(usize),
    Flip,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rest {
    CutOff,
    Rounded,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Offset {
    Rounded,
    Down,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    /// Of a pixel between 0 and 255: (pixel − mean) / deviation, by channel.
    mean: [f32; 3],
    deviation: [f32; 3],
    /// Blue first.
    bgr: bool,
}

/// The mean and deviation of ImageNet's pixels that torchvision's networks expect.
const IMAGENET: Scale = Scale {
    mean: [0.485 * 255.0, 0.456 * 255.0, 0.406 * 255.0],
    deviation: [0.229 * 255.0, 0.224 * 255.0, 0.225 * 255.0],
    bgr: false,
};
const LITE: Scale = Scale { mean: [127.0; 3], deviation: [128.0; 3], bgr: false };
const CAFFE: Scale = Scale { mean: [122.679, 116.669, 104.007], deviation: [1.0; 3], bgr: true };

/// A named way from pictures to tensors of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Transform {
    name: &'static str,
    steps: Vec<Step>,
    scale: Scale,
    side: usize,
}

impl Transform {
    /// Every name there is: a family, and `-train` behind it for its random form.
    pub const NAMES: [&'static str; 17] = [
        "ours",
        "ours-train",
        "simple",
        "simple-train",
        "longs",
        "longs-train",
        "can",
        "can-train",
        "tll",
        "tll-train",
        "dsbn",
        "dsbn-train",
        "mstn",
        "mstn-train",
        "lite",
        "small",
        "small-train",
    ];

    /// The transform of this name.
    pub fn named(name: &str) -> Option<Self> {
        use Filter::{Bicubic, Bilinear};
        use Step::{CentreCrop, Flip, RandomCrop, RandomResizedCrop, ShorterSide, Square};
        let short = ShorterSide(256, Bilinear, Rest::CutOff);
        let centre = |side| CentreCrop(side, Offset::Rounded);
        let (steps, scale, side) = match name {
            "ours" | "dsbn" => (vec![short, centre(224)], IMAGENET, 224),
            "ours-train" => (vec![short, RandomCrop(224), Flip], IMAGENET, 224),
            "simple" | "simple-train" => (vec![Square(224, Bilinear)], IMAGENET, 224),
            "longs" | "tll" => (vec![Square(256, Bilinear), centre(224)], IMAGENET, 224),
            "longs-train" | "tll-train" => {
                (vec![Square(256, Bilinear), RandomResizedCrop(224), Flip], IMAGENET, 224)
            }
            "can" => (vec![Square(256, Bicubic), centre(224)], IMAGENET, 224),
            "can-train" => (vec![Square(256, Bicubic), RandomCrop(224), Flip], IMAGENET, 224),
            "dsbn-train" => (vec![RandomResizedCrop(224), Flip], IMAGENET, 224),
            "mstn" => (vec![Square(256, Bilinear), centre(227)], CAFFE, 227),
            "mstn-train" => (vec![Square(256, Bilinear), RandomCrop(227), Flip], CAFFE, 227),
            "lite" => {
                (vec![ShorterSide(256, Bicubic, Rest::Rounded), CentreCrop(224, Offset::Down)], LITE, 224)
            }
            "small" => (vec![ShorterSide(72, Bilinear, Rest::CutOff), centre(64)], IMAGENET, 64),
            "small-train" => {
                (vec![ShorterSide(72, Bilinear, Rest::CutOff), RandomCrop(64), Flip], IMAGENET, 64)
            }
            _ => return None,
        };
        let name = Self::NAMES.into_iter().find(|known| *known == name)?;
        Some(Transform { name, steps, scale, side })
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Pixels a side of what comes out.
    pub fn side(&self) -> usize {
        self.side
    }

    /// Three channels of side × side numbers. Only random transforms look at the seed.
    pub fn apply(&self, picture: &Picture, seed: u64) -> Vec<f32> {
        let picture = self.shape(picture, seed);
        let plane = self.side * self.side;
        let mut out = vec![0f32; 3 * plane];
        for channel in 0..3 {
            let from = if self.scale.bgr { 2 - channel } else { channel };
            let (mean, deviation) = (self.scale.mean[from], self.scale.deviation[from]);
            let pixels = picture.pixels.iter().skip(from).step_by(3);
            for (out, &pixel) in out[channel * plane..][..plane].iter_mut().zip(pixels) {
                *out = (f32::from(pixel) - mean) / deviation;
            }
        }
        out
    }

    /// The pixels that are normalised in the end.
    pub fn shape(&self, picture: &Picture, seed: u64) -> Picture {
        let mut draws = ChaCha8Rng::seed_from_u64(seed);
        let mut picture = rgb(picture);
        for step in &self.steps {
            picture = step.apply(picture, &mut draws);
        }
        // A crop larger than the picture leaves a border; it is black.
        if (picture.width, picture.height) != (self.side, self.side) {
            picture = crop(&picture, 0, 0, self.side);
        }
        picture
    }
}

impl Step {
    fn apply(self, picture: Picture, draws: &mut impl Rng) -> Picture {
        let (width, height) = (picture.width, picture.height);
        match self {
            Step::ShorterSide(side, filter, rest) => {
                let (short, long) = (width.min(height) as f64, width.max(height) as f64);
                let other = side as f64 * long / short;
                let other = match rest {
                    Rest::CutOff => other.floor(),
                    Rest::Rounded => other.round(),
                } as usize;
                if width <= height {
                    resize(&picture, side, other, filter)
                } else {
                    resize(&picture, other, side, filter)
                }
            }
            Step::Square(side, filter) => resize(&picture, side, side, filter),
            Step::CentreCrop(side, offset) => {
                let half = |size: usize| {
                    let free = size.saturating_sub(side) as f64 / 2.0;
                    match offset {
                        // As Python rounds: halves go to the even number.
                        Offset::Rounded => free.round_ties_even() as usize,
                        Offset::Down => free as usize,
                    }
                };
                crop(&picture, half(width), half(height), side)
            }
            Step::RandomCrop(side) => {
                let mut draw = |size: usize| draws.random_range(0..=size.saturating_sub(side));
                let (left, top) = (draw(width), draw(height));
                crop(&picture, left, top, side)
            }
            Step::RandomResizedCrop(side) => {
                let (left, top, w, h) = random_box(width, height, draws);
                resize(&cut(&picture, left, top, w, h), side, side, Filter::Bilinear)
            }
            Step::Flip => {
                if draws.random_bool(0.5) {
                    mirror(&picture)
                } else {
                    picture
                }
            }
        }
    }
}

/// A part of 8 % to 100 % of the area and of a shape between 3:4 and 4:3; the middle after ten draws that do not fit.
fn random_box(width: usize, height: usize, draws: &mut impl Rng) -> (usize, usize, usize, usize) {
    let area = (width * height) as f64;
    for _ in 0..10 {
        let wanted = area * draws.random_range(0.08..=1.0);
        let ratio: f64 = draws.random_range((0.75f64).ln()..=(4.0f64 / 3.0).ln()).exp();
        let (w, h) = ((wanted * ratio).sqrt().round() as usize, (wanted / ratio).sqrt().round() as usize);
        if (1..=width).contains(&w) && (1..=height).contains(&h) {
            return (draws.random_range(0..=width - w), draws.random_range(0..=height - h), w, h);
        }
    }
    let ratio = width as f64 / height as f64;
    let (w, h) = if ratio < 0.75 {
        (width, ((width as f64 / 0.75).round() as usize).min(height))
    } else if ratio > 4.0 / 3.0 {
        (((height as f64 * 4.0 / 3.0).round() as usize).min(width), height)
    } else {
        (width, height)
    };
    ((width - w) / 2, (height - h) / 2, w, h)
}

fn rgb(picture: &Picture) -> Picture {
    let pixels = match picture.channels {
        3 => picture.pixels.clone(),
        _ => picture.pixels.iter().flat_map(|&grey| [grey; 3]).collect(),
    };
    Picture { channels: 3, pixels, ..*picture }
}

/// A square part; what lies outside is black.
fn crop(picture: &Picture, left: usize, top: usize, side: usize) -> Picture {
    let (w, h) = (side.min(picture.width - left), side.min(picture.height - top));
    let part = cut(picture, left, top, w, h);
    if (w, h) == (side, side) {
        return part;
    }
    let mut pixels = vec![0; side * side * 3];
    let (x, y) = ((side - w) / 2, (side - h) / 2);
    for (line, row) in part.pixels.chunks_exact(3 * w).enumerate() {
        pixels[3 * ((y + line) * side + x)..][..3 * w].copy_from_slice(row);
    }
    Picture { width: side, height: side, channels: 3, pixels }
}

fn cut(picture: &Picture, left: usize, top: usize, width: usize, height: usize) -> Picture {
    let rows = picture.pixels.chunks_exact(3 * picture.width).skip(top).take(height);
    let pixels = rows.flat_map(|row| row[3 * left..][..3 * width].iter().copied()).collect();
    Picture { width, height, channels: 3, pixels }
}

fn mirror(picture: &Picture) -> Picture {
    let rows = picture.pixels.chunks_exact(3 * picture.width);
    let pixels = rows.flat_map(|row| row.chunks_exact(3).rev().flatten().copied()).collect();
    Picture { pixels, ..*picture }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gradient(width: usize, height: usize) -> Picture {
        let pixels = (0..height)
            .flat_map(|y| {
                (0..width).flat_map(move |x| [(x * 255 / width) as u8, (y * 255 / height) as u8, 7])
            })
            .collect();
        Picture { width, height, channels: 3, pixels }
    }

    #[test]
    fn every_name_makes_its_size_from_any_picture() {
        for name in Transform::NAMES {
            let transform = Transform::named(name).unwrap();
            assert_eq!(transform.name(), name);
            for (width, height) in [(1, 1), (300, 300), (640, 221), (100, 900), (3, 2000)] {
                let values = transform.apply(&gradient(width, height), 5);
                assert_eq!(
                    values.len(),
                    3 * transform.side() * transform.side(),
                    "{name} {width} × {height}"
                );
                assert!(values.iter().all(|v| v.is_finite()));
            }
        }
        assert_eq!(Transform::named("mine"), None);
    }

    #[test]
    fn seeds_decide_random_transforms_and_nothing_else() {
        let picture = gradient(400, 300);
        for name in Transform::NAMES {
            let transform = Transform::named(name).unwrap();
            assert_eq!(transform.apply(&picture, 1), transform.apply(&picture, 1), "{name}");
            let random = name.ends_with("-train") && name != "simple-train";
            let differ = (2..8).any(|seed| transform.apply(&picture, seed) != transform.apply(&picture, 1));
            assert_eq!(differ, random, "{name}");
        }
    }

    #[test]
    fn the_middle_is_kept_and_pixels_are_normalised() {
        // 512 × 256: the shorter side is 256 already, so the crop begins at (144, 16).
        let picture = gradient(512, 256);
        let shaped = Transform::named("ours").unwrap().shape(&picture, 0);
        assert_eq!(shaped.pixels[..3], picture.pixels[3 * (16 * 512 + 144)..][..3]);
        let values = Transform::named("ours").unwrap().apply(&picture, 0);
        let red = f32::from(shaped.pixels[0]) / 255.0;
        assert!((values[0] - (red - 0.485) / 0.229).abs() < 1e-5);
        // Caffe's order: blue first, less its own mean.
        let values = Transform::named("mstn").unwrap().apply(&picture, 0);
        assert!((values[0] - (7.0 - 104.007)).abs() < 0.6, "{}", values[0]);
    }

    #[test]
    fn shrinking_averages_all_that_is_covered() {
        // Stripes one pixel wide: sampling would show one colour, averaging shows grey.
        let pixels = (0..64 * 64).flat_map(|at| [if at % 2 == 0 { 0 } else { 255 }; 3]).collect();
        let stripes = Picture { width: 64, height: 64, channels: 3, pixels };
        for filter in [Filter::Bilinear, Filter::Bicubic] {
            let small = resize(&stripes, 8, 8, filter);
            assert!(small.pixels.iter().all(|&p| (115..=140).contains(&p)), "{:?}", &small.pixels[..9]);
        }
    }
}
