//! Resizing by convolution: every new pixel is a weighted mean of the old ones under a filter, which is widened when the
//! picture shrinks. First along the rows, then down the columns, rounding to whole grey levels in between, as Pillow does.

use crate::pictures::Picture;

/// How pixels are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// A triangle.
    Bilinear,
    /// Catmull and Rom's cubic, a = −½.
    Bicubic,
}

impl Filter {
    /// Old pixels on either side that count when a picture keeps its size.
    fn reach(self) -> f64 {
        match self {
            Filter::Bilinear => 1.0,
            Filter::Bicubic => 2.0,
        }
    }

    fn weight(self, x: f64) -> f64 {
        let x = x.abs();
        match self {
            Filter::Bilinear => (1.0 - x).max(0.0),
            Filter::Bicubic if x < 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
            Filter::Bicubic if x < 2.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
            Filter::Bicubic => 0.0,
        }
    }
}

/// Bits after the point of a weight: sums of 8-bit pixels, with what a cubic overshoots, stay within 32 bits.
const BITS: u32 = 22;

/// The old pixels under one new pixel: where they begin, and what each weighs.
struct Window {
    start: usize,
    weights: Vec<i32>,
}

/// The window of every new pixel along an axis.
fn windows(old: usize, new: usize, filter: Filter) -> Vec<Window> {
    let step = old as f64 / new as f64;
    let widened = step.max(1.0);
    let reach = filter.reach() * widened;
    let window = |at: usize| {
        let centre = (at as f64 + 0.5) * step;
        let start = (centre - reach + 0.5).max(0.0) as usize;
        let end = ((centre + reach + 0.5) as usize).min(old);
        let weights: Vec<f64> =
            (start..end).map(|pixel| filter.weight((pixel as f64 + 0.5 - centre) / widened)).collect();
        let total: f64 = weights.iter().sum();
        let whole = |weight: f64| (weight / total * f64::from(1u32 << BITS)).round() as i32;
        Window { start, weights: weights.into_iter().map(whole).collect() }
    };
    (0..new).map(window).collect()
}

fn grey_level(sum: i32) -> u8 {
    (sum >> BITS).clamp(0, 255) as u8
}

/// Half a grey level, so that cutting off rounds.
const HALF: i32 = 1 << (BITS - 1);

/// A picture of another size.
pub fn resize(picture: &Picture, width: usize, height: usize, filter: Filter) -> Picture {
    let across = along_rows(picture, width.max(1), filter);
    down_columns(across, height.max(1), filter)
}

fn along_rows(picture: &Picture, width: usize, filter: Filter) -> Picture {
    if picture.width == width {
        return picture.clone();
    }
    let channels = picture.channels;
    let windows = windows(picture.width, width, filter);
    let mut pixels = Vec::with_capacity(width * picture.height * channels);
    for row in picture.pixels.chunks_exact(picture.width * channels) {
        for window in &windows {
            let mut sums = [HALF; 4];
            let under = row[window.start * channels..].chunks_exact(channels);
            for (pixel, &weight) in under.zip(&window.weights) {
                sums.iter_mut().zip(pixel).for_each(|(sum, &value)| *sum += weight * i32::from(value));
            }
            pixels.extend(sums[..channels].iter().map(|&sum| grey_level(sum)));
        }
    }
    Picture { width, height: picture.height, channels, pixels }
}

fn down_columns(picture: Picture, height: usize, filter: Filter) -> Picture {
    if picture.height == height {
        return picture;
    }
    let line = picture.width * picture.channels;
    let mut pixels = Vec::with_capacity(line * height);
    let mut sums = vec![0i32; line];
    for window in windows(picture.height, height, filter) {
        sums.fill(HALF);
        for (row, &weight) in picture.pixels[window.start * line..].chunks_exact(line).zip(&window.weights) {
            sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += weight * i32::from(value));
        }
        pixels.extend(sums.iter().map(|&sum| grey_level(sum)));
    }
    Picture { width: picture.width, height, channels: picture.channels, pixels }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, in floating point: within one grey level, for both filters and all directions.
    #[test]
    fn pixels_are_weighted_means() {
        let (width, height) = (37, 23);
        let pixels: Vec<u8> = (0..width * height * 3).map(|at| (at * 7919 % 256) as u8).collect();
        let picture = Picture { width, height, channels: 3, pixels };
        for filter in [Filter::Bilinear, Filter::Bicubic] {
            for new in [1, 5, 23, 37, 80] {
                let resized = resize(&picture, new, height, filter);
                let step = width as f64 / new as f64;
                let wide = step.max(1.0);
                for (at, &have) in resized.pixels.iter().enumerate() {
                    let (row, x, channel) = (at / (3 * new), at / 3 % new, at % 3);
                    let centre = (x as f64 + 0.5) * step;
                    let (mut sum, mut total) = (0.0, 0.0);
                    for old in 0..width {
                        let distance = (old as f64 + 0.5 - centre) / wide;
                        let weight = filter.weight(distance);
                        total += weight;
                        sum += weight * f64::from(picture.pixels[(row * width + old) * 3 + channel]);
                    }
                    let want = (sum / total).clamp(0.0, 255.0);
                    assert!((f64::from(have) - want).abs() <= 1.0, "{filter:?} {new}: {have} {want}");
                }
            }
        }
    }

    #[test]
    fn the_same_size_is_the_same_picture_and_one_colour_stays() {
        let picture = Picture { width: 3, height: 2, channels: 1, pixels: vec![1, 2, 3, 4, 5, 255] };
        assert_eq!(resize(&picture, 3, 2, Filter::Bicubic), picture);
        let plain = Picture { width: 50, height: 40, channels: 3, pixels: vec![255; 6000] };
        for (width, height) in [(7, 3), (200, 90), (1, 1)] {
            let resized = resize(&plain, width, height, Filter::Bicubic);
            assert_eq!(resized.pixels, vec![255; width * height * 3]);
        }
    }
}
