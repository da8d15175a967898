//! Two domains made in code, so that everything can be tried without a file: digits drawn as clean, thin,
//! upright strokes, light on dark; and the same digits slanted, thick, warped and noisy, dark on light.
//!
//! The target's style was picked among about ten, looking at seeds 0 to 4, so that the step between the domains is
//! hard but not hopeless: figures on those seeds are flattering, other seeds are the fair ones. Every method gets the
//! same images and the same features, and no method has settings of its own for them.

mod gradients;
mod raster;
mod strokes;

use a2lp::FeatureMatrix;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Width and height of an image.
pub const SIDE: usize = 28;

/// Names of the classes.
pub const CLASSES: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// Images, what they show, and features of them.
pub struct DemoDomain {
    /// Grey images, [`SIDE`] × [`SIDE`], one after the other.
    pub images: Vec<u8>,
    /// The digit each image shows.
    pub labels: Vec<&'static str>,
    /// Histograms of gradient directions.
    pub features: FeatureMatrix,
}

/// How a domain draws: means and spreads of what varies from image to image.
struct Style {
    thickness: (f32, f32),
    slant: (f32, f32),
    rotation: f32,
    stretch: f32,
    shift: f32,
    warp: f32,
    noise: f32,
    inverted: bool,
}

/// Clean strokes.
const SOURCE: Style = Style {
    thickness: (2.0, 0.3),
    slant: (0.0, 0.08),
    rotation: 0.06,
    stretch: 0.08,
    shift: 0.8,
    warp: 0.02,
    noise: 2.0,
    inverted: false,
};

/// Slanted, thick, noisy, inverted.
const TARGET: Style = Style {
    thickness: (4.2, 0.6),
    slant: (0.5, 0.12),
    rotation: 0.1,
    stretch: 0.1,
    shift: 0.8,
    warp: 0.03,
    noise: 30.0,
    inverted: true,
};

/// The source domain: `per_class` images of each digit.
pub fn source(seed: u64, per_class: usize) -> DemoDomain {
    draw(&SOURCE, seed, 0, per_class)
}

/// The target domain: `per_class` images of each digit, in an order that gives nothing away.
pub fn target(seed: u64, per_class: usize) -> DemoDomain {
    draw(&TARGET, seed, 1, per_class)
}

fn draw(style: &Style, seed: u64, stream: u64, per_class: usize) -> DemoDomain {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    let mut digits: Vec<usize> = (0..10).flat_map(|digit| std::iter::repeat_n(digit, per_class)).collect();
    // Fisher–Yates, from our own generator so that the order never changes with a library.
    for last in (1..digits.len()).rev() {
        digits.swap(last, rng.random_range(0..=last));
    }
    let mut images = Vec::with_capacity(digits.len() * SIDE * SIDE);
    let mut values = Vec::with_capacity(digits.len() * gradients::LENGTH);
    for &digit in &digits {
        let image = draw_one(style, digit, &mut rng);
        values.extend(gradients::describe(&image));
        images.extend(image);
    }
    let features = FeatureMatrix::new(digits.len(), gradients::LENGTH, values)
        .expect("one row of LENGTH values was added per digit");
    DemoDomain { images, labels: digits.into_iter().map(|digit| CLASSES[digit]).collect(), features }
}

fn draw_one(style: &Style, digit: usize, rng: &mut impl Rng) -> Vec<u8> {
    let slant = style.slant.0 + style.slant.1 * normal(rng);
    let angle = style.rotation * normal(rng);
    let stretch = [1.0 + style.stretch * normal(rng), 1.0 + style.stretch * normal(rng)];
    let shift = [style.shift * normal(rng), style.shift * normal(rng)];
    let warps: Vec<[f32; 3]> = (0..2)
        .map(|_| {
            [
                style.warp * normal(rng),
                rng.random_range(0.6..1.4),
                rng.random_range(0.0..std::f32::consts::TAU),
            ]
        })
        .collect();
    let thickness = (style.thickness.0 + style.thickness.1 * normal(rng)).max(1.0);
    let place = |[x, y]: [f32; 2]| {
        let wave =
            |t: f32, [size, rate, phase]: [f32; 3]| size * (std::f32::consts::TAU * rate * t + phase).sin();
        let (x, y) = (x - 0.5 + wave(y, warps[0]), y - 0.5 + wave(x, warps[1]));
        // Slant as handwriting has it: the top leans to the right.
        let (x, y) = ((x - slant * y) * stretch[0], y * stretch[1]);
        let (sin, cos) = angle.sin_cos();
        let centre = SIDE as f32 / 2.0;
        [centre + 20.0 * (cos * x - sin * y) + shift[0], centre + 20.0 * (sin * x + cos * y) + shift[1]]
    };
    let strokes: Vec<Vec<[f32; 2]>> =
        strokes::glyph(digit).into_iter().map(|line| line.into_iter().map(place).collect()).collect();
    let ink = raster::render(&strokes, thickness);
    ink.into_iter()
        .map(|ink| {
            let grey = if style.inverted { 225.0 - 190.0 * ink } else { 15.0 + 225.0 * ink };
            (grey + style.noise * normal(rng)).round().clamp(0.0, 255.0) as u8
        })
        .collect()
}

/// A standard normal number, as the sum of twelve uniform ones less six: no logarithm, the same everywhere.
fn normal(rng: &mut impl Rng) -> f32 {
    (0..12).map(|_| rng.random_range(0.0f32..1.0)).sum::<f32>() - 6.0
}
