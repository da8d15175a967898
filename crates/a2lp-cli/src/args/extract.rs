//! The options of `a2lp extract`.

use super::*;
use a2lp_train::BackboneName;

/// Turn images into features
///
/// Reads a folder with a folder per class (also Office-31's `images` level, category.txt, or a list of `path label`), or a
/// folder of images without classes, and writes features, labels, class names and paths into one file that `a2lp label`
/// reads. An extraction that was interrupted goes on where it stopped.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  a2lp extract --images amazon/ --backbone resnet50 --weights resnet50.safetensors --out amazon.npz\n  a2lp extract --images photos/ --onnx model.onnx --out photos.npz\n  a2lp extract --images office31/ --domain amazon,webcam,dslr --backbone resnet50 --weights resnet50.safetensors --out features/"
)]
pub(crate) struct ExtractArgs {
    /// The images: a folder, or a list of lines `path label`
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) images: PathBuf,
    /// Take this domain of the dataset in --images: a folder in it, or a list in its image_list folder. Several, with
    /// commas, go into the folder --out, one file each; classes that not all of them have are named
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) domain: Vec<String>,
    /// The network; ResNets have torchvision's names
    #[arg(long, value_parser = parser(BackboneName::WORDS), requires = "weights", required_unless_present = "onnx")]
    pub(crate) backbone: Option<BackboneName>,
    /// Its weights (.safetensors or .pth)
    #[arg(long, value_name = "FILE", requires = "backbone", value_hint = ValueHint::FilePath)]
    pub(crate) weights: Option<PathBuf>,
    /// A network in ONNX with one input of images and one output of vectors, instead
    #[arg(long, value_name = "FILE", conflicts_with = "backbone", value_hint = ValueHint::FilePath)]
    pub(crate) onnx: Option<PathBuf>,
    /// The library of ONNX Runtime that is to run the model. Without it: ORT_DYLIB_PATH, else the library of a Python package
    /// `onnxruntime` that is installed here, else rten, which is part of a2lp and slower
    #[arg(long, value_name = "FILE", requires = "onnx", value_hint = ValueHint::FilePath)]
    pub(crate) onnx_runtime: Option<PathBuf>,
    /// Where the features go: .npz, .safetensors, or .npy with the labels and paths beside it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
    /// Transform of the images before the network sees them: ours (shorter side 256, centre crop 224, ImageNet's mean and
    /// deviation), simple, longs, can, tll, dsbn, mstn or lite [default: lite for efficientnet-lite0, else ours]
    #[arg(long, value_name = "NAME")]
    pub(crate) transform: Option<String>,
    /// Images at a time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) batch: u32,
    /// Apply EXIF orientation
    #[arg(long)]
    pub(crate) upright: bool,
    /// Leave out images that cannot be read, and list them, instead of stopping at the first
    #[arg(long)]
    pub(crate) skip_broken: bool,
    /// Worker threads; 0 = one per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Replace an output file that exists
    #[arg(long)]
    pub(crate) force: bool,
}
