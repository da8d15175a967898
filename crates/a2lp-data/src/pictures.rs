//! Small pictures of items, from the images that stand beside features.

use crate::error::{DataError, Problem};
use crate::formats::Format;
use crate::formats::Npz;
use crate::formats::{ElementType, Header};
use std::io::Read;
use std::path::Path;

/// Longest side of an image that is read.
const MAX_SIDE: usize = 4096;

/// An image of 8-bit pixels, row after row.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Pixels across.
    pub width: usize,
    /// Pixels down.
    pub height: usize,
    /// 1 for grey, 3 for red, green and blue.
    pub channels: usize,
    /// The pixels.
    pub pixels: Vec<u8>,
}

impl Picture {
    /// The same at no more than `side` pixels a side: blocks of pixels are averaged.
    pub fn shrunk(&self, side: usize) -> Picture {
        let step = self.width.max(self.height).div_ceil(side.max(1)).max(1);
        let (width, height) = (self.width.div_ceil(step), self.height.div_ceil(step));
        let mut pixels = Vec::with_capacity(width * height * self.channels);
        for y in 0..height {
            for x in 0..width {
                for channel in 0..self.channels {
                    let (mut sum, mut count) = (0usize, 0);
                    for line in y * step..self.height.min((y + 1) * step) {
                        for column in x * step..self.width.min((x + 1) * step) {
                            sum += usize::from(
                                self.pixels[(line * self.width + column) * self.channels + channel],
                            );
                            count += 1;
                        }
                    }
                    pixels.push((sum / count) as u8);
                }
            }
        }
        Picture { width, height, channels: self.channels, pixels }
    }

    /// As a PNG; `None` if it has no pixels.
    pub fn png(&self) -> Option<Vec<u8>> {
        let colour = if self.channels == 3 { png::ColorType::Rgb } else { png::ColorType::Grayscale };
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_color(colour);
        encoder.write_header().ok()?.write_image_data(&self.pixels).ok()?;
        Some(bytes)
    }
}

/// The images of these rows from an array of images (n × h × w or n × h × w × 3, u8): an `.npy` file, or the field `images`
/// of an archive. In the order asked for; `None` when the file holds no such images. Only the rows asked for are kept in
/// memory.
pub fn read_pictures(path: &Path, rows: &[usize]) -> Result<Option<Vec<Picture>>, DataError> {
    read(path, Some(rows)).map_err(|problem| DataError::new(path, problem))
}

/// All images of such a file.
pub fn read_all_pictures(path: &Path) -> Result<Option<Vec<Picture>>, DataError> {
    read(path, None).map_err(|problem| DataError::new(path, problem))
}

fn read(path: &Path, rows: Option<&[usize]>) -> Result<Option<Vec<Picture>>, Problem> {
    match Format::detect(path).map_err(|error| error.problem)? {
        Format::Npy => {
            let (header, reader) = Header::open(path)?;
            read_rows(&header, reader, rows)
        }
        Format::Npz => {
            let mut npz = Npz::open(path)?;
            if !npz.has("images") {
                return Ok(None);
            }
            let (header, reader) = npz.array("images")?;
            read_rows(&header, reader, rows)
        }
        _ => Ok(None),
    }
}

fn read_rows(
    header: &Header,
    mut reader: impl Read,
    rows: Option<&[usize]>,
) -> Result<Option<Vec<Picture>>, Problem> {
    let (count, height, width, channels) = match header.shape[..] {
        [count, height, width] => (count, height, width, 1),
        [count, height, width, 3] => (count, height, width, 3),
        _ => return Ok(None),
    };
    let sized = (1..=MAX_SIDE).contains(&width) && (1..=MAX_SIDE).contains(&height);
    if header.element != ElementType::Unsigned(1) || header.fortran_order || !sized {
        return Ok(None);
    }
    let every: Vec<usize> = if rows.is_none() { (0..count).collect() } else { Vec::new() };
    let rows = rows.unwrap_or(&every);
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&at| rows[at]);
    let mut pictures = vec![None; rows.len()];
    let mut pixels = vec![0; width * height * channels];
    let mut next = 0;
    for at in order {
        let row = rows[at];
        if row >= count {
            return Ok(None);
        }
        // A row asked for twice is still in `pixels`.
        while next <= row {
            reader.read_exact(&mut pixels)?;
            next += 1;
        }
        pictures[at] = Some(Picture { width, height, channels, pixels: pixels.clone() });
    }
    Ok(pictures.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ArrayFile;

    #[test]
    fn pictures_come_in_the_order_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("images.npz");
        let pixels: Vec<u8> = (0..5 * 4).map(|at| at as u8).collect();
        ArrayFile::new().images("images", 5, 2, &pixels).write(&path, false).unwrap();
        let pictures = read_pictures(&path, &[3, 0, 3]).unwrap().unwrap();
        assert_eq!(pictures[0].pixels, [12, 13, 14, 15]);
        assert_eq!(pictures[1].pixels, [0, 1, 2, 3]);
        assert_eq!(pictures[0], pictures[2]);
        assert_eq!(read_pictures(&path, &[5]).unwrap(), None);
        assert_eq!(pictures[0].shrunk(1).pixels, [13]);
        assert_eq!(pictures[0].shrunk(2), pictures[0]);
        ArrayFile::new().strings("ids", &["a"]).write(&dir.path().join("none.npz"), false).unwrap();
        assert_eq!(read_pictures(&dir.path().join("none.npz"), &[0]).unwrap(), None);
    }
}
