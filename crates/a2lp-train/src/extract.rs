//! Features of every image of a set. Finished batches are kept in a file beside the output, so that an extraction that
//! was interrupted goes on where it stopped.

use crate::backbone::Backbone;
use crate::error::TrainError;
use crate::parts::Parts;
use a2lp_data::images::{ImageItem, ImageSet, Transform, decode};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::time::UNIX_EPOCH;

/// An extraction to be done.
pub struct Extraction<'a> {
    /// The images.
    pub images: &'a ImageSet,
    /// The transform of the images.
    pub transform: &'a Transform,
    /// The network.
    pub backbone: &'a Backbone,
    /// Apply EXIF orientation.
    pub upright: bool,
    /// Leave out images that cannot be read, instead of failing.
    pub skip_broken: bool,
    /// Images at a time.
    pub batch: usize,
}

/// The result.
#[derive(Debug)]
pub struct Extracted {
    /// Row after row.
    pub features: Vec<f32>,
    /// Numbers of a row.
    pub columns: usize,
    /// Which image each row belongs to.
    pub rows: Vec<usize>,
    /// Images that could not be read, and why.
    pub broken: Vec<(PathBuf, String)>,
    /// Images that were done before this call.
    pub resumed: usize,
}

impl Extraction<'_> {
    /// What the features depend on: the bytes of the weights, the transform, and the images by name, size and time.
    pub fn fingerprint(&self) -> Result<String, TrainError> {
        let mut hash = Sha256::new();
        hash_file(&mut hash, self.backbone.file())?;
        hash.update(format!("{}\n{}\n{}\n", env!("CARGO_PKG_VERSION"), self.transform.name(), self.upright));
        if let Some(runner) = self.backbone.onnx_runner() {
            hash.update(format!("{runner}\n"));
        }
        for image in &self.images.images {
            hash.update(stamp(&image.path));
        }
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Extracts what is not in `parts` yet; `progress` gets the number of images done and of all images.
    pub fn run(
        &self,
        parts: &Path,
        fingerprint: &str,
        progress: &dyn Fn(u64, u64) -> ControlFlow<()>,
    ) -> Result<Extracted, TrainError> {
        let fail = |error: std::io::Error| TrainError::Io { path: parts.to_path_buf(), error };
        let images = &self.images.images;
        let mut found = Parts::find(parts, fingerprint).map_err(fail)?;
        let mut columns = found.as_ref().map_or(0, |parts| parts.row_bytes() / 4);
        let resumed = found.as_ref().map_or(0, Parts::rows).min(images.len());
        let bytes = found.as_ref().map_or(Ok(Vec::new()), |parts| parts.read(0, resumed)).map_err(fail)?;
        let mut features: Vec<f32> =
            bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        let batches: Vec<Range<usize>> = (resumed..images.len())
            .step_by(self.batch.max(1))
            .map(|start| start..images.len().min(start + self.batch.max(1)))
            .collect();
        // The next batch is read and transformed while the network looks at this one.
        std::thread::scope(|scope| {
            let (send, receive) = sync_channel(1);
            let ahead = batches.clone();
            scope.spawn(move || {
                // Sending fails once nobody waits for more.
                ahead.into_iter().try_for_each(|batch| send.send(self.pictures(batch)))
            });
            for batch in batches {
                if progress(batch.start as u64, images.len() as u64).is_break() {
                    return Err(TrainError::Cancelled);
                }
                let pictures = receive.recv().unwrap_or_else(|_| self.pictures(batch.clone()))?;
                let rows = self.rows_of(&pictures, &mut columns)?;
                // Only now is it known how wide a row is.
                if found.is_none() && columns > 0 {
                    let mut new = Parts::create(parts, fingerprint, 4 * columns).map_err(fail)?;
                    // None of the images before this batch could be read.
                    features = vec![f32::NAN; batch.start * columns];
                    new.append(&bytes_of(&features)).map_err(fail)?;
                    found = Some(new);
                }
                if let Some(found) = &mut found {
                    found.append(&bytes_of(&rows)).map_err(fail)?;
                }
                features.extend(rows);
            }
            Ok(())
        })?;
        let _ = progress(images.len() as u64, images.len() as u64);
        Ok(self.sorted_out(features, columns, resumed))
    }

    /// What the network is to see of these images; `None` for one that cannot be read, if those may be left out.
    fn pictures(&self, batch: Range<usize>) -> Result<Vec<Option<Vec<f32>>>, TrainError> {
        let picture = |image: &ImageItem| match decode(&image.path, self.upright) {
            Ok(picture) => Ok(Some(self.transform.apply(&picture, 0))),
            Err(_) if self.skip_broken => Ok(None),
            Err(error) => Err(TrainError::Data(error)),
        };
        self.images.images[batch].par_iter().map(picture).collect()
    }

    /// The features of a batch; rows of NaN stand for images that could not be read.
    fn rows_of(&self, pictures: &[Option<Vec<f32>>], columns: &mut usize) -> Result<Vec<f32>, TrainError> {
        let readable: Vec<f32> = pictures.iter().flatten().flatten().copied().collect();
        let count = pictures.iter().flatten().count();
        let mut found = Vec::new();
        if count > 0 {
            let (features, width) = self.backbone.features(readable, count, self.transform.side())?;
            (found, *columns) = (features, width);
        }
        let mut rows = Vec::with_capacity(pictures.len() * *columns);
        let mut found = found.chunks_exact((*columns).max(1));
        for picture in pictures {
            match picture {
                Some(_) => rows.extend(found.next().into_iter().flatten()),
                None => rows.extend(std::iter::repeat_n(f32::NAN, *columns)),
            }
        }
        Ok(rows)
    }

    fn sorted_out(&self, features: Vec<f32>, columns: usize, resumed: usize) -> Extracted {
        let mut kept = Vec::with_capacity(features.len());
        let (mut rows, mut broken) = (Vec::new(), Vec::new());
        for (at, image) in self.images.images.iter().enumerate() {
            match features
                .get(at * columns..(at + 1) * columns)
                .filter(|row| !row.is_empty() && !row[0].is_nan())
            {
                Some(row) => {
                    kept.extend_from_slice(row);
                    rows.push(at);
                }
                None => {
                    let why = decode(&image.path, self.upright).err();
                    let why = why
                        .map_or("could not be read earlier".to_string(), |error| error.problem.to_string());
                    broken.push((image.path.clone(), why));
                }
            }
        }
        Extracted { features: kept, columns, rows, broken, resumed }
    }
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Takes in every byte of a file.
pub(crate) fn hash_file(hash: &mut Sha256, path: &Path) -> Result<(), TrainError> {
    let fail = |error: std::io::Error| TrainError::Io { path: path.to_path_buf(), error };
    let mut file = File::open(path).map_err(fail)?;
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block).map_err(fail)? {
            0 => return Ok(()),
            read => hash.update(&block[..read]),
        }
    }
}

/// Name, size and time of a file: enough to notice that it changed, without reading it.
pub(crate) fn stamp(path: &Path) -> String {
    let known = std::fs::metadata(path).ok();
    let modified = known.as_ref().and_then(|m| m.modified().ok()?.duration_since(UNIX_EPOCH).ok());
    let (size, nanos) = (known.map_or(0, |m| m.len()), modified.map_or(0, |time| time.as_nanos()));
    format!("{}\n{size} {nanos}\n", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::OnnxEngine;
    use crate::trunk::tests::pictures;

    #[test]
    fn images_that_cannot_be_read_leave_the_others_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let images = folder.path().join("images");
        std::fs::create_dir(&images).unwrap();
        std::fs::write(&pictures(&images)[0], "no picture").unwrap();
        let images = ImageSet::open(&images).unwrap();
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/narrow.onnx");
        let backbone = Backbone::open_onnx(&model, OnnxEngine::Rten).unwrap();
        let transform = Transform::named("small").unwrap();
        let extracted = |batch: usize| {
            let extraction = Extraction {
                images: &images,
                transform: &transform,
                backbone: &backbone,
                upright: false,
                skip_broken: true,
                batch,
            };
            let parts = folder.path().join(format!("parts-{batch}"));
            let run = || extraction.run(&parts, "a", &|_, _| ControlFlow::Continue(())).unwrap();
            let (first, again) = (run(), run());
            assert_eq!((again.resumed, again.features), (5, first.features.clone()));
            first
        };
        // The first batch of one image has no features, and nobody knows how many there are of an image.
        let (one, all) = (extracted(1), extracted(5));
        assert_eq!(one.rows, [1, 2, 3, 4]);
        assert_eq!(one.broken.len(), 1);
        assert_eq!((one.rows, one.features), (all.rows, all.features));
    }
}
