//! From a batch of images to a batch of features, by one of our networks or by an ONNX model.

use crate::error::TrainError;
use crate::networks::{Domain, EfficientNetLite0, Pass, ResNet};
use crate::onnx::{OnnxEngine, OnnxModel, OnnxRunner};
use crate::weights::{LoadedWeights, load};
use burn::tensor::{Device, Tensor, TensorData};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A network that is known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackboneName {
    /// 512 features.
    Resnet18,
    /// 2048 features.
    Resnet50,
    /// 2048 features.
    Resnet101,
    /// 1280 features.
    EfficientnetLite0,
}

impl BackboneName {
    /// The words that users write, and their values.
    pub const WORDS: &[(&str, BackboneName)] = &[
        ("resnet18", BackboneName::Resnet18),
        ("resnet50", BackboneName::Resnet50),
        ("resnet101", BackboneName::Resnet101),
        ("efficientnet-lite0", BackboneName::EfficientnetLite0),
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }

    /// The transform its weights were trained with.
    pub fn usual_transform(self) -> &'static str {
        match self {
            BackboneName::EfficientnetLite0 => "lite",
            _ => "ours",
        }
    }
}

/// Something that turns images into features.
pub struct Backbone {
    network: Network,
    /// Where its weights came from.
    file: PathBuf,
}

enum Network {
    ResNet(Box<ResNet>, Device),
    Lite0(Box<EfficientNetLite0>, Device),
    Onnx(OnnxModel),
}

/// torchvision numbers the parts of a shortcut. What a file knows of a normalisation is the target's.
pub(crate) const RESNET_NAMES: &[(&str, &str)] = &[
    (r"downsample\.0\.", "downsample.conv."),
    (r"downsample\.1\.", "downsample.bn1."),
    (r"(bn\d)\.", "$1.target."),
];
/// The names of the original are all private.
pub(crate) const LITE_NAMES: &[(&str, &str)] = &[(r"^_", ""), (r"\._", "."), (r"(bn\d)\.", "$1.target.")];

impl Backbone {
    /// A network by name with weights from a file.
    pub fn open(name: BackboneName, weights: &Path) -> Result<(Self, LoadedWeights), TrainError> {
        let device = Device::flex();
        let file = weights.to_path_buf();
        let resnet = |mut network: ResNet, device: Device| -> Result<_, TrainError> {
            let loaded = load(&mut network, weights, RESNET_NAMES)?;
            Ok((Network::ResNet(Box::new(network), device), loaded))
        };
        let (network, loaded) = match name {
            BackboneName::Resnet18 => resnet(ResNet::resnet18(&device), device),
            BackboneName::Resnet50 => resnet(ResNet::resnet50(&device), device),
            BackboneName::Resnet101 => resnet(ResNet::resnet101(&device), device),
            BackboneName::EfficientnetLite0 => {
                let mut network = EfficientNetLite0::new(&device);
                let loaded = load(&mut network, weights, LITE_NAMES)?;
                Ok((Network::Lite0(Box::new(network), device), loaded))
            }
        }?;
        Ok((Backbone { network, file }, loaded))
    }

    /// A network in ONNX with one input of images and one output of vectors.
    pub fn open_onnx(path: &Path, engine: OnnxEngine<'_>) -> Result<Self, TrainError> {
        let model = OnnxModel::open(path, engine)
            .map_err(|message| TrainError::Network { path: path.to_path_buf(), message })?;
        Ok(Backbone { network: Network::Onnx(model), file: path.to_path_buf() })
    }

    /// The program that runs an ONNX model; `None` for our own networks.
    pub fn onnx_runner(&self) -> Option<&OnnxRunner> {
        match &self.network {
            Network::Onnx(model) => Some(&model.runner),
            _ => None,
        }
    }

    /// The file its weights came from.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Features of `count` images of 3 × side × side, and how many there are of each.
    pub fn features(
        &self,
        images: Vec<f32>,
        count: usize,
        side: usize,
    ) -> Result<(Vec<f32>, usize), TrainError> {
        let wrong = |message: String| TrainError::Network { path: self.file.clone(), message };
        let (features, shape) = match &self.network {
            Network::ResNet(network, device) => {
                in_parallel(images, count, side, device, |images| network.features(images, AS_TARGET))
                    .map_err(wrong)?
            }
            Network::Lite0(network, device) => {
                in_parallel(images, count, side, device, |images| network.features(images, AS_TARGET))
                    .map_err(wrong)?
            }
            Network::Onnx(model) => model.run(images, count, side).map_err(wrong)?,
        };
        // 1 × 1 maps are vectors as well.
        let width = shape.iter().skip(1).product::<usize>();
        let flat = shape.first() == Some(&count) && shape.iter().skip(2).all(|&size| size == 1);
        if !flat || features.len() != count * width {
            return Err(wrong(format!(
                "the output for {count} images has shape {shape:?}; one vector each is needed"
            )));
        }
        Ok((features, width))
    }
}

/// A network that was not trained for two domains has one normalisation, and it is called the target's.
const AS_TARGET: Pass = Pass { domain: Domain::Target, training: false, stop_after: None };

/// Runs a network on parts of a batch, one for each thread: a convolution of burn keeps no more than one core busy.
fn in_parallel(
    images: Vec<f32>,
    count: usize,
    side: usize,
    device: &Device,
    network: impl Fn(Tensor<4>) -> Tensor<2> + Sync,
) -> Result<(Vec<f32>, Vec<usize>), String> {
    let image = 3 * side * side;
    let part = count.div_ceil(rayon::current_num_threads()).max(1);
    let parts: Vec<(Vec<f32>, usize)> = images
        .par_chunks(part * image)
        .map(|images| {
            let shape = [images.len() / image, 3, side, side];
            let features = network(Tensor::from_data(TensorData::new(images.to_vec(), shape), device));
            let columns = features.dims()[1];
            let values = features.into_data().try_into_vec::<f32>().map_err(|error| format!("{error:?}"))?;
            Ok((values, columns))
        })
        .collect::<Result<_, String>>()?;
    let columns = parts.first().map_or(0, |part| part.1);
    Ok((parts.into_iter().flat_map(|part| part.0).collect(), vec![count, columns]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::module::{Module, ModuleMapper, Param};

    fn reference(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference").join(name)
    }

    /// The images and the features of `tests/reference/make.py`.
    fn expected() -> (Vec<f32>, Vec<f32>) {
        let images = (0..2 * 3 * 64 * 64).map(|at| ((at * 37) % 101) as f32 / 50.0 - 1.0).collect();
        let text = std::fs::read_to_string(reference("narrow.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let rows = json["features"].as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap());
        (images, rows.map(|value| value.as_f64().unwrap() as f32).collect())
    }

    fn largest_error(features: &[f32], expected: &[f32]) -> f32 {
        assert_eq!(features.len(), expected.len());
        features.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    }

    #[test]
    fn a_narrow_resnet_computes_what_pytorch_does_from_either_file() {
        let (images, expected) = expected();
        let device = Device::flex();
        for file in ["narrow.safetensors", "narrow.pth"] {
            let mut network = ResNet::narrow(&device);
            let loaded = load(&mut network, &reference(file), RESNET_NAMES).unwrap();
            assert_eq!(loaded.unused, [""; 0], "{file}");
            assert_eq!(loaded.taken, 53 + 4 * 53, "{file}");
            let (features, shape) =
                in_parallel(images.clone(), 2, 64, &device, |images| network.features(images, AS_TARGET))
                    .unwrap();
            assert_eq!(shape, [2, 64]);
            let error = largest_error(&features, &expected);
            assert!(error <= 1e-4, "{file}: {error}");
        }
    }

    /// The numbers that `tests/reference/make.py` gives a tensor of this name: a hash of the name and of the place.
    fn number(name: &str, place: usize) -> f32 {
        let start = name
            .bytes()
            .fold(2_166_136_261u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619));
        let mut hash = start.wrapping_add((place as u32).wrapping_mul(2_654_435_761));
        hash = (hash ^ (hash >> 15)).wrapping_mul(2_246_822_519);
        hash = (hash ^ (hash >> 13)).wrapping_mul(3_266_489_917);
        (hash >> 8) as f32 / (1 << 24) as f32
    }

    /// Fills a ResNet with those numbers, under torchvision's names.
    #[derive(Default)]
    struct Numbers(Vec<String>);

    impl ModuleMapper for Numbers {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.0.push(name.into());
        }

        fn exit_module(&mut self, _: &str, _: &str) {
            self.0.pop();
        }

        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let name = self.0.join(".").replace(".target", "");
            let name =
                name.replace("downsample.conv", "downsample.0").replace("downsample.bn1", "downsample.1");
            let dims = param.val().dims();
            let fan_in: usize = dims[1..].iter().product();
            let values = (0..dims.iter().product()).map(|place| {
                let number = number(&name, place);
                match name.rsplit('.').next() {
                    Some("running_var") => 0.5 + number,
                    Some("bias" | "running_mean") => 0.4 * number - 0.2,
                    _ if D == 1 => 0.4 + 0.4 * number,
                    _ => (number - 0.5) * (12.0 / fan_in as f32).sqrt(),
                }
            });
            let tensor =
                Tensor::from_data(TensorData::new(values.collect::<Vec<f32>>(), dims), &param.val().device());
            param.map(|_| tensor)
        }
    }

    #[test]
    fn the_whole_resnets_compute_what_pytorch_does() {
        let text = std::fs::read_to_string(reference("whole.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let (images, _) = expected();
        let device = Device::flex();
        for (name, network) in
            [("resnet18", ResNet::resnet18(&device)), ("resnet50", ResNet::resnet50(&device))]
        {
            let network = network.map(&mut Numbers::default());
            let (features, shape) =
                in_parallel(images.clone(), 2, 64, &device, |images| network.features(images, AS_TARGET))
                    .unwrap();
            assert_eq!(shape[1], json[name]["columns"].as_u64().unwrap() as usize);
            let every = json[name]["every"].as_u64().unwrap() as usize;
            let some: Vec<f32> = features.iter().step_by(every).copied().collect();
            let values = json[name]["features"].as_array().unwrap();
            let expected: Vec<f32> = values.iter().map(|value| value.as_f64().unwrap() as f32).collect();
            let size = expected.iter().map(|value| value.abs()).sum::<f32>() / expected.len() as f32;
            assert!(size > 0.1, "{name}: numbers of {size} prove nothing");
            let error = largest_error(&some, &expected);
            assert!(error <= 1e-4, "{name}: {error}");
        }
    }

    #[test]
    fn the_same_network_in_onnx() {
        let (images, expected) = expected();
        // `Found` takes ONNX Runtime on machines that have it.
        for engine in [OnnxEngine::Rten, OnnxEngine::Found] {
            let backbone = Backbone::open_onnx(&reference("narrow.onnx"), engine).unwrap();
            let (features, columns) = backbone.features(images.clone(), 2, 64).unwrap();
            assert_eq!(columns, 64);
            let error = largest_error(&features, &expected);
            assert!(error <= 1e-4, "{:?}: {error}", backbone.onnx_runner());
        }
    }

    #[test]
    fn weights_that_do_not_fit_are_refused_by_name() {
        let wrong =
            Backbone::open(BackboneName::Resnet18, &reference("narrow.pth")).err().unwrap().to_string();
        assert!(wrong.contains("narrow.pth"), "{wrong}");
        let missing =
            Backbone::open(BackboneName::EfficientnetLite0, &reference("narrow.pth")).err().unwrap();
        assert!(missing.to_string().contains("Shape mismatch for 'bn1"), "{missing}");
        let dir = tempfile::tempdir().unwrap();
        let hostile = dir.path().join("hostile.pth");
        // A pickle that would run a command if it were executed.
        std::fs::write(
            &hostile,
            b"\x80\x02cposix\nsystem\nX\x0c\x00\x00\x00touch hackedq\x00\x85q\x01Rq\x02.",
        )
        .unwrap();
        assert!(Backbone::open(BackboneName::Resnet18, &hostile).is_err());
        assert!(Backbone::open(BackboneName::Resnet18, Path::new("none.pth")).is_err());
        for engine in [OnnxEngine::Rten, OnnxEngine::Found] {
            assert!(Backbone::open_onnx(&reference("narrow.json"), engine).is_err());
        }
        // A library that is none is named, and nothing else is used in its place.
        let library = OnnxEngine::Library(&hostile);
        let error = Backbone::open_onnx(&reference("narrow.onnx"), library).err().unwrap().to_string();
        assert!(error.contains("hostile.pth") && error.contains("not a library of ONNX Runtime"), "{error}");
    }
}
