//! The options of `a2lp train` and `a2lp predict`.

use super::*;
use a2lp_data::label_endings;
use a2lp_train::{Body, DeviceName, Labeller, Learner};
use serde::Serialize;

/// Train a network that works in the target domain
///
/// Alternates pseudo-labelling and learning (algorithm 1 of the paper). Each round extracts features of both domains, labels the
/// target by A²LP, and takes some steps with a learner that aligns the domains. Source and target are folders of images, files
/// of features (a small network is trained on them) or arrays of small grey images (a LeNet). Each round ends with a checkpoint:
/// the same command continues an interrupted run and ends with the same result.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  a2lp train --demo\n  a2lp train --source src.npz --target tgt.npz --learner mstn --out run/\n  a2lp train --source amazon/ --target webcam/ --learner can --backbone resnet50 --weights resnet50.safetensors --out run/"
)]
pub(crate) struct TrainArgs {
    /// The labelled domain: a folder of images, features (.npz, .npy, …) or images of n × h × w bytes
    #[arg(long, value_name = "PATH", required_unless_present = "demo", help_heading = FILES, value_hint = ValueHint::AnyPath)]
    pub(crate) source: Option<PathBuf>,
    /// The domain to adapt to, likewise. Class folders of it are used for evaluation only
    #[arg(long, value_name = "PATH", required_unless_present = "demo", help_heading = FILES, value_hint = ValueHint::AnyPath)]
    pub(crate) target: Option<PathBuf>,
    /// A dataset: --source and --target are then names of domains in it
    #[arg(long, value_name = "DIR", help_heading = FILES, value_hint = ValueHint::DirPath)]
    pub(crate) root: Option<PathBuf>,
    /// Labels of the source, where its file has none
    #[arg(long, value_name = "FILE", help_heading = FILES, value_hint = ValueHint::FilePath)]
    pub(crate) source_labels: Option<PathBuf>,
    /// Folder for the network, its labels, metrics and checkpoint [default for --demo: a2lp-train-demo]
    #[arg(long, value_name = "DIR", required_unless_present = "demo", help_heading = FILES, value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Start anew in a folder that holds another run
    #[arg(long, help_heading = FILES)]
    pub(crate) force: bool,
    /// Built-in domains and a LeNet, no files needed: source-only, and MSTN and CAN with their own labels and with A²LP's
    #[arg(long, conflicts_with_all = ["source", "target", "root", "source_labels", "eval_labels"], help_heading = EVERYDAY)]
    pub(crate) demo: bool,
    /// True labels of the target: accuracies after every round. They cannot influence the run
    #[arg(long, value_name = "FILE", help_heading = EVALUATION, value_hint = ValueHint::FilePath)]
    pub(crate) eval_labels: Option<PathBuf>,
    /// Print JSON
    #[arg(long, help_heading = EVERYDAY)]
    pub(crate) json: bool,
    /// Write a page to look at: accuracy, losses and pseudo-labels round by round [default file: report.html in the folder]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, help_heading = PICTURES, value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<Option<PathBuf>>,
    /// Loss on the target [default: can]
    #[arg(long, value_parser = described(Learner::WORDS, Learner::ABOUT), help_heading = EVERYDAY)]
    pub(crate) learner: Option<Learner>,
    #[command(flatten)]
    pub(crate) how: TrainHow<TrainOptions>,
    /// Settings of a paper's dataset; single options still win
    #[arg(long, help_heading = PAPERS, hide_short_help = true)]
    pub(crate) preset: Option<Preset>,
    /// Worker threads; 0 = one per core. Another number may change the last digits of a run
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = EVERYDAY, hide_short_help = true)]
    pub(crate) threads: usize,
}

/// How to train; shared with `experiment pairs`, which offers fewer of the settings.
#[derive(Args, Serialize)]
#[serde(bound = "")]
pub(crate) struct TrainHow<T: OptionTable> {
    /// Where pseudo-labels come from; own = the learner's (MSTN's argmax, CAN's k-means), auto = the consensus
    /// where it is quick enough, else a2lp [default: auto; a2lp with --preset and in experiments]
    #[arg(long, value_delimiter = ',', value_parser = parser(Labeller::WORDS), help_heading = EVERYDAY)]
    pub(crate) pseudo_labels: Vec<Labeller>,
    /// The network: lenet for small grey images, adapter for features, the others for photos, with --weights [default: by the
    /// input]
    #[arg(long, value_name = "NAME", value_parser = parser(Body::words()), help_heading = EVERYDAY)]
    pub(crate) backbone: Option<Body>,
    /// Weights that a backbone starts from (.safetensors or .pth)
    #[arg(long, value_name = "FILE", help_heading = EVERYDAY, value_hint = ValueHint::FilePath)]
    pub(crate) weights: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) settings: TableArgs<T>,
    /// Folder for what the layers of --freeze-until make of the images; runs that freeze the same layers can share it, and it stays
    /// there [default: in the folder of the run, until it is finished]
    #[arg(long, value_name = "DIR", hide_short_help = true, help_heading = FILES, value_hint = ValueHint::DirPath)]
    #[serde(skip)]
    pub(crate) cache: Option<PathBuf>,
    /// Transform of the images, by a name of `a2lp extract --help`; training crops and flips at random [default: as there]
    #[arg(long, value_name = "NAME", hide_short_help = true, help_heading = EVERYDAY)]
    pub(crate) transform: Option<String>,
    /// Apply EXIF orientation
    #[arg(long, hide_short_help = true, help_heading = EVERYDAY)]
    pub(crate) upright: bool,
    /// Device; vulkan and cuda need a build with that feature [default: cpu]
    #[arg(long, value_name = "NAME", value_parser = parser(DeviceName::WORDS), hide_short_help = true, help_heading = EVERYDAY)]
    pub(crate) device: Option<DeviceName>,
}

/// Label new items with a network that `a2lp train` made
#[derive(Args)]
#[command(after_help = "Example: a2lp predict --model run/ --images new/ --out labels.csv")]
pub(crate) struct PredictArgs {
    /// The folder of a training run
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) model: PathBuf,
    /// New items of the kind the network was trained on: images, features, or arrays of images
    #[arg(long, alias = "features", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) images: PathBuf,
    /// Where the labels go
    #[arg(long, help = format!("Where the labels go, as {}", label_endings()), value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
    /// Also write the probability of every class
    #[arg(long)]
    pub(crate) probabilities: bool,
    /// True labels, to print how many are right
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) eval_labels: Option<PathBuf>,
    /// Device [default: cpu]
    #[arg(long, value_name = "NAME", value_parser = parser(DeviceName::WORDS))]
    pub(crate) device: Option<DeviceName>,
    /// Worker threads; 0 = one per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Replace an output file that exists
    #[arg(long)]
    pub(crate) force: bool,
}
