//! One file in, RGB pixels out.

use super::resize::{Filter, resize};
use crate::error::{DataError, Problem};
use crate::guard::guarded;
use crate::pictures::Picture;
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ExtendedColorType, ImageDecoder, ImageReader, Limits};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// No image has more pixels; Pillow draws the line at the same place.
const MAX_PIXELS: u64 = 178_956_970;
/// No format makes more than this many bytes out of one, so a header that promises more is lying.
const MAX_EXPANSION: u64 = 1100;

/// Reads an image file, whatever its name says it is, as RGB; grey, palette, CMYK and 16-bit images are converted, and
/// transparency is dropped. With `upright`, EXIF orientation is applied.
pub fn decode(path: &Path, upright: bool) -> Result<Picture, DataError> {
    guarded("image", || decode_file(path, upright)).map_err(|problem| DataError::new(path, problem))
}

fn decode_file(path: &Path, upright: bool) -> Result<Picture, Problem> {
    let wrong = |error: image::ImageError| Problem::Image(error.to_string());
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    if bytes == 0 {
        return Err(Problem::Empty);
    }
    let mut reader = ImageReader::new(BufReader::new(file)).with_guessed_format()?;
    if reader.format().is_none() {
        return Err(Problem::Image("not an image of a kind that is known here".into()));
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(8 * MAX_PIXELS);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(wrong)?;
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    if pixels == 0 || pixels > MAX_PIXELS {
        return Err(Problem::Image(format!(
            "{width} × {height} pixels; at least 1 and at most {MAX_PIXELS} are read"
        )));
    }
    if decoder.total_bytes() > MAX_EXPANSION * bytes + (1 << 20) {
        return Err(Problem::Image(format!("{bytes} bytes cannot hold {width} × {height} pixels")));
    }
    let orientation = decoder.orientation().map_err(wrong)?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(wrong)?;
    if upright {
        image.apply_orientation(orientation);
    }
    let rgb = image.into_rgb8();
    let (width, height) = (rgb.width() as usize, rgb.height() as usize);
    Ok(Picture { width, height, channels: 3, pixels: rgb.into_raw() })
}

/// A small JPEG of an image file, at most `side` pixels a side.
pub fn thumbnail(path: &Path, side: usize) -> Result<Vec<u8>, DataError> {
    let picture = decode(path, true)?;
    let scale = (side as f64 / picture.width.max(picture.height) as f64).min(1.0);
    let size = |pixels: usize| ((pixels as f64 * scale).round() as usize).max(1);
    let small = resize(&picture, size(picture.width), size(picture.height), Filter::Bilinear);
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, 80)
        .encode(&small.pixels, small.width as u32, small.height as u32, ExtendedColorType::Rgb8)
        .map_err(|error| DataError::new(path, Problem::Image(error.to_string())))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn save(dir: &Path, name: &str, image: &DynamicImage, format: image::ImageFormat) -> std::path::PathBuf {
        let path = dir.join(name);
        image.save_with_format(&path, format).unwrap();
        path
    }

    #[test]
    fn every_kind_of_picture_comes_out_as_rgb() {
        use image::ImageFormat::{Bmp, Jpeg, Png, Pnm, WebP};
        let dir = tempfile::tempdir().unwrap();
        let rgb = DynamicImage::ImageRgb8(image::RgbImage::from_fn(9, 5, |x, y| {
            image::Rgb([20 * x as u8, 40 * y as u8, 100])
        }));
        for (name, format) in [("a.png", Png), ("a.bmp", Bmp), ("a.ppm", Pnm), ("a.webp", WebP)] {
            let picture = decode(&save(dir.path(), name, &rgb, format), false).unwrap();
            assert_eq!((picture.width, picture.height, picture.channels), (9, 5, 3));
            assert_eq!(picture.pixels, rgb.as_bytes(), "{name}");
        }
        // A name that lies, as in half of all folders.
        let lying = save(dir.path(), "really-a-jpeg.png", &rgb, Jpeg);
        let picture = decode(&lying, false).unwrap();
        let far = picture.pixels.iter().zip(rgb.as_bytes()).filter(|(a, b)| a.abs_diff(**b) > 40).count();
        assert!(far < 14, "{far}");
        let grey = DynamicImage::ImageLuma8(image::GrayImage::from_pixel(3, 2, image::Luma([77])));
        assert_eq!(decode(&save(dir.path(), "g.png", &grey, Png), false).unwrap().pixels, [77; 18]);
        let deep = DynamicImage::ImageLuma16(image::ImageBuffer::from_pixel(2, 1, image::Luma([0xABCDu16])));
        let deep = decode(&save(dir.path(), "d.png", &deep, Png), false).unwrap();
        assert!(deep.pixels.iter().all(|&p| p.abs_diff(0xAB) <= 1), "{:?}", deep.pixels);
        let clear = DynamicImage::ImageRgba8(image::RgbaImage::from_pixel(1, 1, image::Rgba([1, 2, 3, 0])));
        assert_eq!(decode(&save(dir.path(), "t.png", &clear, Png), false).unwrap().pixels, [1, 2, 3]);
    }

    #[test]
    fn hostile_files_are_refused_by_name_and_cost_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        let whole = {
            let noise =
                image::RgbImage::from_fn(64, 64, |x, y| image::Rgb([(x * y) as u8, (x ^ y) as u8, y as u8]));
            let path = dir.path().join("whole.png");
            noise.save(&path).unwrap();
            fs::read(path).unwrap()
        };
        // A PNG header that promises 30,000 × 30,000 pixels, and one that promises 10,000 × 10,000 in a few bytes.
        let huge = |side: u32| {
            let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
            bytes.extend(side.to_be_bytes());
            bytes.extend(side.to_be_bytes());
            bytes.extend([8, 2, 0, 0, 0]);
            let crc = crc32(&bytes[12..]);
            bytes.extend(crc.to_be_bytes());
            bytes.extend(b"\0\0\0\0IDAT\x35\xaf\x06\x1e");
            bytes
        };
        for (path, part) in [
            (write("empty.jpg", b""), "empty"),
            (write("zip.jpg", b"PK\x03\x04 not an image"), "not an image"),
            (write("text.png", b"hello"), "not an image"),
            (write("cut.png", &whole[..whole.len() / 2]), ""),
            (write("large.png", &huge(30_000)), "30000 × 30000"),
            (write("lies.png", &huge(10_000)), "cannot hold 10000 × 10000"),
            (write("soi.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF\0"), ""),
        ] {
            let error = decode(&path, true).unwrap_err().to_string();
            assert!(error.contains(path.file_name().unwrap().to_str().unwrap()), "{error}");
            assert!(error.contains(part), "{error}");
        }
        let one = dir.path().join("one.png");
        image::RgbImage::from_pixel(1, 1, image::Rgb([5, 6, 7])).save(&one).unwrap();
        assert_eq!(decode(&one, false).unwrap().pixels, [5, 6, 7]);
        assert!(decode(&dir.path().join("missing.png"), false).is_err());
    }

    fn crc32(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |crc, &byte| {
            (0..8)
                .fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 })
        })
    }
}
