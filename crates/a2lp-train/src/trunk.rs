//! The frozen part of a network for photos. What it makes of the images is computed once and kept in a file, a few random crops
//! of each image included, so that training costs no more than the layers behind it.

use crate::error::TrainError;
use crate::networks::LearnerNetwork;
use crate::parts::Parts;
use a2lp_data::images::{Transform, decode};
use burn::tensor::{Device, Tensor, TensorData};
use half::f16;
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Images worked on between two looks at the clock: finished ones survive an interruption.
const TOGETHER: usize = 16;

/// Images as a network for photos sees them.
#[derive(Clone, Copy)]
pub(crate) struct Photos<'a> {
    pub(crate) paths: &'a [PathBuf],
    pub(crate) train: &'a Transform,
    pub(crate) test: &'a Transform,
    pub(crate) upright: bool,
}

/// The first layers of a network.
pub(crate) struct Trunk<'a> {
    pub(crate) network: &'a LearnerNetwork,
    pub(crate) layers: usize,
    pub(crate) device: &'a Device,
    /// Random crops of each image.
    pub(crate) crops: usize,
}

/// What a trunk made of the images of a domain: of each image as it is, then of its crops, in numbers of half the size.
#[derive(Debug)]
pub struct CachedMaps {
    parts: Parts,
    path: PathBuf,
    pub(crate) fingerprint: String,
    /// Channels, height and width.
    shape: [usize; 3],
    /// Maps of an image.
    variants: usize,
    /// Layers that made them.
    pub(crate) layers: usize,
}

impl Trunk<'_> {
    /// Makes the maps that are not in the file yet. `go_on` gets the images that are done, all images, and the bytes of the whole file.
    pub(crate) fn cache(
        &self,
        photos: Photos<'_>,
        path: &Path,
        fingerprint: String,
        go_on: &dyn Fn(usize, usize, u64) -> ControlFlow<()>,
    ) -> Result<CachedMaps, TrainError> {
        let fail = |error: std::io::Error| TrainError::Io { path: path.to_path_buf(), error };
        let side = photos.test.side();
        let blank = self.maps(vec![0.0; 3 * side * side], 1, side);
        let [_, channels, height, width] = blank.dims();
        let shape = [channels, height, width];
        let (images, variants) = (photos.paths.len(), 1 + self.crops);
        let row_bytes = variants * channels * height * width * size_of::<f16>();
        let mut parts = match Parts::find(path, &fingerprint).map_err(fail)? {
            Some(found) if found.row_bytes() == row_bytes => found,
            _ => Parts::create(path, &fingerprint, row_bytes).map_err(fail)?,
        };
        while parts.rows() < images {
            let done = parts.rows();
            if go_on(done, images, (images * row_bytes) as u64).is_break() {
                return Err(TrainError::Cancelled);
            }
            let some = done..images.min(done + TOGETHER);
            let rows: Vec<Vec<u8>> =
                some.into_par_iter().map(|image| self.row(photos, image)).collect::<Result<_, _>>()?;
            parts.append(&rows.concat()).map_err(fail)?;
        }
        let (path, layers) = (path.to_path_buf(), self.layers);
        Ok(CachedMaps { parts, path, fingerprint, shape, variants, layers })
    }

    fn maps(&self, values: Vec<f32>, images: usize, side: usize) -> Tensor<4> {
        let images = Tensor::from_data(TensorData::new(values, [images, 3, side, side]), self.device);
        self.network.maps(images, self.layers)
    }

    /// The maps of an image and its crops. A crop depends on the numbers of image and crop alone.
    fn row(&self, photos: Photos<'_>, image: usize) -> Result<Vec<u8>, TrainError> {
        let picture = decode(&photos.paths[image], photos.upright)?;
        let mut values = photos.test.apply(&picture, 0);
        for crop in 0..self.crops {
            values.extend(photos.train.apply(&picture, (image * self.crops + crop) as u64));
        }
        let maps = self.maps(values, 1 + self.crops, photos.test.side());
        Ok(maps.into_data().iter::<f32>().flat_map(|value| f16::from_f32(value).to_le_bytes()).collect())
    }
}

impl CachedMaps {
    /// How many images there are.
    pub fn len(&self) -> usize {
        self.parts.rows()
    }

    /// No images?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The maps of some images, and their shape: of each image as it is, or of the crop that `crop` names for its place among
    /// the rows.
    pub(crate) fn batch(
        &self,
        rows: &[usize],
        crop: Option<&dyn Fn(usize, usize) -> usize>,
    ) -> Result<(Vec<f32>, [usize; 4]), TrainError> {
        let [channels, height, width] = self.shape;
        let size = channels * height * width * size_of::<f16>();
        let mut values = Vec::with_capacity(rows.len() * size / 2);
        for (at, &row) in rows.iter().enumerate() {
            let variant = crop.map_or(0, |crop| crop(at, self.variants));
            let bytes = self
                .parts
                .read_some(row, variant * size..(variant + 1) * size)
                .map_err(|error| TrainError::Io { path: self.path.clone(), error })?;
            values.extend(bytes.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32()));
        }
        Ok((values, [rows.len(), channels, height, width]))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::networks::{Batch, Domain, Pass};

    /// Five pictures of noise, 40 × 50.
    pub(crate) fn pictures(folder: &Path) -> Vec<PathBuf> {
        let picture = |at: usize| {
            let path = folder.join(format!("{at}.ppm"));
            let pixels = (0..40 * 50 * 3usize).map(|i| ((i * 7919 + at * 104_729) % 251) as u8);
            std::fs::write(&path, [&b"P6 50 40 255\n"[..], &pixels.collect::<Vec<u8>>()].concat()).unwrap();
            path
        };
        (0..5).map(picture).collect()
    }

    fn go_on(_: usize, _: usize, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    #[test]
    fn layers_behind_cached_maps_compute_what_the_whole_network_does() {
        let folder = tempfile::tempdir().unwrap();
        let paths = pictures(folder.path());
        let device = Device::flex();
        let weights = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/narrow.safetensors");
        let network = LearnerNetwork::narrow_resnet(3, &weights, &device);
        let (train, test) = (Transform::named("small-train").unwrap(), Transform::named("small").unwrap());
        let photos = Photos { paths: &paths, train: &train, test: &test, upright: false };
        let trunk = Trunk { network: &network, layers: 4, device: &device, crops: 2 };
        let file = folder.path().join("maps");

        // Interrupted before anything is done, then finished.
        let stop = |_: usize, _: usize, _: u64| ControlFlow::Break(());
        let stopped = trunk.cache(photos, &file, "a".into(), &stop);
        assert!(matches!(stopped, Err(TrainError::Cancelled)));
        let maps = trunk.cache(photos, &file, "a".into(), &go_on).unwrap();
        assert_eq!(maps.len(), 5);
        let bytes = std::fs::read(&file).unwrap();
        trunk.cache(photos, &file, "a".into(), &stop).expect("nothing is left to do");
        // A crash in the middle of a row.
        std::fs::write(&file, &bytes[..bytes.len() * 3 / 5]).unwrap();
        trunk.cache(photos, &file, "a".into(), &go_on).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), bytes);

        let rows = [4, 1];
        let (values, shape) = maps.batch(&rows, None).unwrap();
        let pass = Pass::evaluation(Domain::Target);
        let behind = network.forward(Batch::maps(values.clone(), shape, 4, &device), pass).logits;
        let images = rows.map(|row| test.apply(&decode(&paths[row], false).unwrap(), 0)).concat();
        let side = test.side();
        let whole = network.forward(Batch::images(images, [2, 3, side, side], &device), pass).logits;
        let difference = (behind - whole.clone()).abs().max().into_scalar::<f32>();
        let size = whole.abs().max().into_scalar::<f32>();
        assert!(difference < 2e-3 * size, "{difference} of {size}");
        let crop = |at: usize, variants: usize| (at + 1) % variants;
        assert_ne!(maps.batch(&rows, Some(&crop)).unwrap().0, values);
    }
}
