//! The command line, as the user writes it. What it means is decided in the commands.

use a2lp::{
    AnchorMode, AnchorSpace, AnchorWeights, GraphMethod, LabelWeight, Method, Neighbours, Parameters,
    Similarity, Solver, SourceNodes, Unreached,
};
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Label a new domain without labelling it
///
/// You have labelled data from one domain and unlabelled data from another, both as feature vectors of the same
/// extractor. `a2lp label` gives every target item a label and a confidence. `a2lp demo` shows it on two built-in
/// domains.
#[derive(Parser)]
#[command(name = "a2lp", version, max_term_width = 110, args_override_self = true)]
#[command(
    after_help = "Start with: a2lp demo\nExit codes: 0 done; 1 done, look at the warnings; 2 usage or input error; 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Label(Box<LabelArgs>),
    Graph(GraphArgs),
    Convert(ConvertArgs),
    Inspect(InspectArgs),
    Demo(DemoArgs),
    Report(ReportArgs),
    Extract(ExtractArgs),
    Train(Box<TrainArgs>),
    Predict(PredictArgs),
    /// Run one of the paper's experiments on a folder of domains
    #[command(subcommand)]
    Experiment(ExperimentCommand),
    /// Print a completion script for a shell
    Completions {
        /// The shell, for example bash
        shell: clap_complete::Shell,
    },
    /// Write man pages into a folder
    Man {
        /// The folder; it must exist
        dir: PathBuf,
    },
}

const EVERYDAY: &str = "Everyday";
const FILES: &str = "Files";
const EVALUATION: &str = "Evaluation";
const PAPERS: &str = "Reproducing papers";
const PICTURES: &str = "Pictures";

/// What to draw of a run.
#[derive(Args, Clone, Default)]
pub(crate) struct Looks {
    /// Write a page to look at: a map of the items, rounds, confidence, classes, the graph, and the items to check by
    /// hand. One HTML file, needs no network [default file: beside the output]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, help_heading = PICTURES, value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub(crate) more: MoreLooks,
}

/// How to draw, and where else to.
#[derive(Args, Clone, Default)]
pub(crate) struct MoreLooks {
    /// How the map is laid out: pca, the directions along which items differ most, at once; or tsne, neighbours next to
    /// neighbours, up to a minute [default: pca]
    #[arg(long, help_heading = PICTURES, hide_short_help = true)]
    pub(crate) map: Option<MapArg>,
    /// Also draw every chart into this folder, as SVG and PNG fit for a paper
    #[arg(long, value_name = "DIR", help_heading = PICTURES, hide_short_help = true, value_hint = ValueHint::DirPath)]
    pub(crate) figures: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MapArg {
    Pca,
    Tsne,
}

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
    /// The network: resnet18, resnet50 or resnet101 with torchvision's names, or efficientnet-lite0
    #[arg(long, requires = "weights", required_unless_present = "onnx")]
    pub(crate) backbone: Option<String>,
    /// Its weights (.safetensors or .pth)
    #[arg(long, value_name = "FILE", requires = "backbone", value_hint = ValueHint::FilePath)]
    pub(crate) weights: Option<PathBuf>,
    /// A network in ONNX with one input of images and one output of vectors, instead
    #[arg(long, value_name = "FILE", conflicts_with = "backbone", value_hint = ValueHint::FilePath)]
    pub(crate) onnx: Option<PathBuf>,
    /// Where the features go: .npz, .safetensors, or .npy with the labels and paths beside it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
    /// What is done to an image before the network sees it: ours (shorter side 256, centre crop 224, ImageNet's mean and
    /// deviation), simple, longs, can, tll, dsbn, mstn or lite [default: lite for efficientnet-lite0, else ours]
    #[arg(long, value_name = "NAME")]
    pub(crate) transform: Option<String>,
    /// Images at a time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) batch: u32,
    /// Heed the camera's note on how it was held (EXIF orientation)
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

/// Train a network that works in the target domain
///
/// Alternates pseudo-labels and learning (algorithm 1 of the paper): features of both domains, labels for the target by A²LP,
/// some steps of a learner that draws the domains together, again. Source and target are folders of images, files of features
/// (a small network is trained on them) or arrays of small grey images (a LeNet). Each round is kept: the same command goes on
/// where it was interrupted, and gives what it would have given.
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
    /// What the target teaches: source-only (nothing), em (be sure of something), ce (pseudo-labels), dann (look like the
    /// source), mstn (and have the same class centres), can (be near your class, far from others) [default: can]
    #[arg(long, help_heading = EVERYDAY)]
    pub(crate) learner: Option<String>,
    #[command(flatten)]
    pub(crate) how: TrainHow,
    /// Settings of a paper's dataset; single options still win
    #[arg(long, help_heading = PAPERS, hide_short_help = true)]
    pub(crate) preset: Option<Preset>,
    /// k, the neighbours of each node of the graph [default: 20]
    #[arg(long, value_name = "K", help_heading = PAPERS, hide_short_help = true)]
    pub(crate) neighbours: Option<usize>,
    /// How far labels travel in it [default: 0.5]
    #[arg(long, help_heading = PAPERS, hide_short_help = true)]
    pub(crate) alpha: Option<f64>,
    /// Rounds of A²LP each time that pseudo-labels are made [default: 10]
    #[arg(long, value_name = "N", value_parser = positive, help_heading = PAPERS, hide_short_help = true)]
    pub(crate) label_rounds: Option<usize>,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = EVERYDAY, hide_short_help = true)]
    pub(crate) seed: u64,
    /// Worker threads; 0 = one per core. Another number may change the last digits of a run
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = EVERYDAY, hide_short_help = true)]
    pub(crate) threads: usize,
}

/// How to train; shared with `experiment pairs`.
#[derive(Args, Clone, Default)]
pub(crate) struct TrainHow {
    /// Where pseudo-labels come from: own (the learner's: MSTN's argmax, CAN's k-means), lp, a2lp,
    /// consensus [default: a2lp]
    #[arg(long, value_delimiter = ',', help_heading = EVERYDAY)]
    pub(crate) pseudo_labels: Vec<String>,
    /// The network: lenet for small grey images, adapter for features, or resnet18, resnet50, resnet101,
    /// efficientnet-lite0 with --weights [default: by the input]
    #[arg(long, value_name = "NAME", help_heading = EVERYDAY)]
    pub(crate) backbone: Option<String>,
    /// Weights that a backbone starts from (.safetensors or .pth)
    #[arg(long, value_name = "FILE", help_heading = EVERYDAY, value_hint = ValueHint::FilePath)]
    pub(crate) weights: Option<PathBuf>,
    /// Times that pseudo-labels are made and learned from [default: 10; 50 for photos]
    #[arg(long, value_name = "N", value_parser = positive, help_heading = EVERYDAY)]
    pub(crate) train_rounds: Option<usize>,
    /// Steps in a round [default: 100; 200 for photos, for CAN by its formula]
    #[arg(long, value_name = "N", value_parser = positive, help_heading = EVERYDAY)]
    pub(crate) steps: Option<usize>,
    /// Steps on the source alone before the first round [default: 300 for a LeNet, else 0]
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = EVERYDAY)]
    pub(crate) warm_up: Option<usize>,
    /// Items of either domain in a batch [default: 64; 32 for photos, 30 for CAN]
    #[arg(long, value_name = "N", value_parser = positive, hide_short_help = true, help_heading = EVERYDAY)]
    pub(crate) batch: Option<usize>,
    /// Learning rate of new layers at the start [default: 0.01]
    #[arg(long, hide_short_help = true, help_heading = EVERYDAY)]
    pub(crate) rate: Option<f64>,
    /// How much the target's loss counts beside the source's: entropy, pseudo-labels, centroids or discrepancy [default: 0.3;
    /// 0.1 for em, 1 for mstn on photos and 100 on anything smaller]
    #[arg(long, value_name = "W", hide_short_help = true, help_heading = EVERYDAY)]
    pub(crate) target_weight: Option<f64>,
    /// Pseudo-labels of lp and a2lp count when their confidence is above this at first, and above 0 in the end [default:
    /// 0.7 for can and ce, else 0]
    #[arg(long, value_name = "C", hide_short_help = true, help_heading = EVERYDAY)]
    pub(crate) min_confidence: Option<f32>,
    /// No gradient goes further down than the end of this layer: layer1, blocks.2 [default: layer1 for CAN on a ResNet]
    #[arg(long, value_name = "LAYER", hide_short_help = true, help_heading = EVERYDAY)]
    pub(crate) stop_after: Option<String>,
    /// What is done to an image: a name of `a2lp extract --help`; training crops and flips at random [default: as there]
    #[arg(long, value_name = "NAME", hide_short_help = true, help_heading = EVERYDAY)]
    pub(crate) transform: Option<String>,
    /// Heed the camera's note on how it was held (EXIF orientation)
    #[arg(long, hide_short_help = true, help_heading = EVERYDAY)]
    pub(crate) upright: bool,
    /// What computes: cpu, vulkan, cuda; the latter two need a build with that feature [default: cpu]
    #[arg(long, value_name = "NAME", hide_short_help = true, help_heading = EVERYDAY)]
    pub(crate) device: Option<String>,
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
    /// Where the labels go: .csv, .jsonl, .npz, or .json (tasks for Label Studio)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
    /// Also write the probability of every class
    #[arg(long)]
    pub(crate) probabilities: bool,
    /// True labels, to print how many are right
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) eval_labels: Option<PathBuf>,
    /// What computes: cpu, vulkan, cuda [default: cpu]
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<String>,
    /// Worker threads; 0 = one per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Replace an output file that exists
    #[arg(long)]
    pub(crate) force: bool,
}

/// Turn finished runs into a page to look at
///
/// RUN is a labels file (its .run.json and .trace.json beside it are read), or the folder of a demo or an experiment.
/// Several are put side by side. The page is one HTML file that loads nothing.
#[derive(Args)]
#[command(after_help = "Example: a2lp report labels.csv --out report.html")]
pub(crate) struct ReportArgs {
    /// Runs to show
    #[arg(value_name = "RUN", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) runs: Vec<PathBuf>,
    /// Where the page goes
    #[arg(long, value_name = "FILE", default_value = "report.html", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) looks: MoreLooks,
    /// Worker threads; 0 = one per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Replace files that exist
    #[arg(long)]
    pub(crate) force: bool,
}

/// Label the items of a target domain
///
/// Reads features of a labelled source and an unlabelled target (.npy, .npz or .csv), runs label propagation with
/// augmented anchors, and writes one row per target item: row, id, label, confidence, margin, status.
///
/// `confidence` is 1 − entropy/ln K of the class probabilities: 1 = one class only, 0 = all alike. It orders items
/// well but is not a calibrated probability: 0.9 does not mean nine out of ten right.
///
/// `status` is `labelled`; `low-confidence` (below --min-confidence, label kept); `weak` (a path to a label exists,
/// but the scores are within the solver's error); or `unreached` (no path to any label; the label stays empty).
#[derive(Args)]
#[command(
    after_help = "Example: a2lp label --source src.npy --source-labels src_labels.npy --target tgt.npy --out labels.csv\nMore options: a2lp label --help"
)]
#[command(
    after_long_help = "Example: a2lp label --source src.npy --source-labels src_labels.npy --target tgt.npy --out labels.csv\n\nEvery option can stand in a TOML file under the same name (neighbours = 30) and be read with --config; what is\ngiven on the command line wins."
)]
pub(crate) struct LabelArgs {
    /// Features of the labelled domain
    #[arg(long, value_name = "FILE", help_heading = FILES, value_hint = ValueHint::FilePath)]
    pub(crate) source: PathBuf,
    /// Labels of the source, one per row; not needed when the source file holds them
    #[arg(long, value_name = "FILE", help_heading = FILES, value_hint = ValueHint::FilePath)]
    pub(crate) source_labels: Option<PathBuf>,
    /// Features of the domain to be labelled
    #[arg(long, value_name = "FILE", help_heading = FILES, value_hint = ValueHint::FilePath)]
    pub(crate) target: PathBuf,
    /// Where the labels go: .csv, .jsonl (JSON lines), .npz, or .json (tasks for Label Studio, the least certain first).
    /// Beside it go the run record, FILE.run.json, and what `a2lp report` needs, FILE.trace.json
    #[arg(long, value_name = "FILE", help_heading = FILES, value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
    /// Ids of the target items, copied to the output; not needed when the target file holds them
    #[arg(long, value_name = "FILE", help_heading = FILES, hide_short_help = true, value_hint = ValueHint::FilePath)]
    pub(crate) target_ids: Option<PathBuf>,
    /// Class names, one per line: labels that are numbers then are positions in this list
    #[arg(long, value_name = "FILE", help_heading = FILES, hide_short_help = true, value_hint = ValueHint::FilePath)]
    pub(crate) class_names: Option<PathBuf>,
    /// Read options from a TOML file; options on the command line win
    #[arg(long, value_name = "FILE", help_heading = FILES, hide_short_help = true, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// A neighbour graph to use instead of searching: a sparse matrix of scipy.sparse.save_npz over the source rows, then
    /// the target rows, from `a2lp graph` or anyone else. Directed rows are symmetrised, a symmetric matrix is taken as
    /// it is
    #[arg(long, value_name = "FILE", help_heading = FILES, hide_short_help = true, value_hint = ValueHint::FilePath)]
    pub(crate) graph: Option<PathBuf>,
    /// Add the probability of every class to the output
    #[arg(long, help_heading = FILES, hide_short_help = true)]
    pub(crate) probabilities: bool,
    /// Replace output files that exist
    #[arg(long, help_heading = FILES, hide_short_help = true)]
    pub(crate) force: bool,
    /// Print the summary as JSON on standard output
    #[arg(long, help_heading = FILES, hide_short_help = true)]
    pub(crate) json: bool,

    /// How labels come to the target: lp (label propagation, once), a2lp (with anchors, the paper's), consensus (two or
    /// three differently built graphs that vote in every round: two to four times as long, more reliable where the domains are
    /// far apart) [default: a2lp]
    #[arg(long, help_heading = EVERYDAY, value_parser = parser(Method::WORDS))]
    pub(crate) method: Option<Method>,
    /// Graphs that vote in a consensus: 2 (raw, centred) or 3 (and discriminant) [default: 3]
    #[arg(long, value_name = "N", help_heading = EVERYDAY, hide_short_help = true)]
    pub(crate) views: Option<usize>,
    /// Take the labels of plain label propagation instead, when their quality score is higher by more than 0.01
    #[arg(long, help_heading = EVERYDAY, hide_short_help = true)]
    pub(crate) guard: bool,
    /// Do not measure the quality of the labels, which takes another graph
    #[arg(long, conflicts_with = "guard", help_heading = EVERYDAY, hide_short_help = true)]
    pub(crate) no_quality: bool,
    /// k, the neighbours of each node, or `all`. Raise it when items stay unreached, lower it for classes with few
    /// items [default: 20]
    #[arg(long, value_name = "K", help_heading = EVERYDAY, value_parser = parse_neighbours)]
    pub(crate) neighbours: Option<Neighbours>,
    /// How far labels travel, from 0 to 1. Raise it when the domains are far apart and clusters are clean
    /// [default: 0.5]
    #[arg(long, help_heading = EVERYDAY)]
    pub(crate) alpha: Option<f64>,
    /// Rounds of propagation with new anchors before each; 1 is plain label propagation [default: 10]
    #[arg(long, value_name = "N", help_heading = EVERYDAY, hide_short_help = true)]
    pub(crate) rounds: Option<usize>,
    /// Mark items below this confidence (0 to 1) as low-confidence; they keep their label [default: 0]
    #[arg(long, value_name = "W", help_heading = EVERYDAY)]
    pub(crate) min_confidence: Option<f32>,
    /// How alike two vectors are. Cosine suits network features; the others use the vectors' lengths as well
    /// [default: cosine]
    #[arg(long, help_heading = EVERYDAY, hide_short_help = true)]
    pub(crate) similarity: Option<SimilarityArg>,
    /// σ² of the Gaussian similarity. Raise it when all items come out unreached; about the typical squared
    /// distance between neighbours works [default: 1]
    #[arg(long, value_name = "S", help_heading = EVERYDAY, hide_short_help = true)]
    pub(crate) gauss_sigma2: Option<f64>,
    /// How neighbours are searched for. Exact compares every pair in full. Screened looks at six bits of every number
    /// first and misses next to nothing; pruned looks only at groups of rows nearby and misses about one in a hundred;
    /// nndescent is the paper's. These three report how many neighbours they missed. Auto takes exact, and for so many
    /// rows that it would take long, screened or pruned [default: auto]
    #[arg(long, help_heading = EVERYDAY, hide_short_help = true, value_parser = graph_method())]
    pub(crate) graph_method: Option<GraphMethod>,
    /// Source rows that become nodes: all, or one centre per class, for a source far larger than the target
    /// [default: all]
    #[arg(long, help_heading = EVERYDAY, hide_short_help = true, value_parser = parser(SourceNodes::WORDS))]
    pub(crate) source_nodes: Option<SourceNodes>,
    /// What an item gets that no label reaches: nothing, or the label of the most similar labelled node
    /// [default: unlabelled]
    #[arg(long, help_heading = EVERYDAY, hide_short_help = true, value_parser = parser(Unreached::WORDS))]
    pub(crate) unreached: Option<Unreached>,
    /// Share of unreached items (0 to 1) above which the exit code is 1 [default: 0.5]
    #[arg(long, value_name = "SHARE", help_heading = EVERYDAY, hide_short_help = true)]
    pub(crate) max_unreached: Option<f64>,
    /// Worker threads; 0 = one per core. The labels do not depend on it [default: 0]
    #[arg(long, value_name = "N", help_heading = EVERYDAY, hide_short_help = true)]
    pub(crate) threads: Option<usize>,
    /// Seed of everything random; kept in the run record. Only pruned and nndescent use it [default: 0]
    #[arg(long, value_name = "N", help_heading = EVERYDAY, hide_short_help = true)]
    pub(crate) seed: Option<u64>,
    /// Print what the run would do and take (method, memory, seconds), and stop before it begins
    #[arg(long, help_heading = EVERYDAY, hide_short_help = true)]
    pub(crate) dry_run: bool,
    /// Refuse to begin when more memory than this would be needed: 4G, 500M
    #[arg(long, value_name = "SIZE", help_heading = EVERYDAY, hide_short_help = true, value_parser = crate::memory::parse)]
    pub(crate) max_memory: Option<u64>,

    #[command(flatten)]
    pub(crate) looks: Looks,

    /// True labels of the target: prints accuracies and more. They cannot influence the result
    #[arg(long, value_name = "FILE", help_heading = EVALUATION, value_hint = ValueHint::FilePath)]
    pub(crate) eval_labels: Option<PathBuf>,

    /// Settings of a paper's dataset; single options still win
    #[arg(long, help_heading = PAPERS, hide_short_help = true)]
    pub(crate) preset: Option<Preset>,
    /// How the linear system is solved: auto takes cg for alpha < 1 and dense above. Dense needs 8·n² bytes
    /// [default: auto]
    #[arg(long, help_heading = PAPERS, hide_short_help = true, value_parser = parser(Solver::WORDS))]
    pub(crate) solver: Option<Solver>,
    /// Relative residual at which cg stops. Raise it if a run does not converge [default: 1e-6]
    #[arg(long, help_heading = PAPERS, hide_short_help = true)]
    pub(crate) tolerance: Option<f64>,
    /// Weights of the items in an anchor; uniform is the paper's ablation [default: entropy]
    #[arg(long, help_heading = PAPERS, hide_short_help = true, value_parser = parser(AnchorWeights::WORDS))]
    pub(crate) anchor_weights: Option<AnchorWeights>,
    /// Keep the anchors of earlier rounds, or only the newest [default: add]
    #[arg(long, help_heading = PAPERS, hide_short_help = true, value_parser = parser(AnchorMode::WORDS))]
    pub(crate) anchor_mode: Option<AnchorMode>,
    /// Average rows of unit length (the authors' code) or rows as given (the paper's eq. 9) [default: unit]
    #[arg(long, help_heading = PAPERS, hide_short_help = true, value_parser = parser(AnchorSpace::WORDS))]
    pub(crate) anchor_space: Option<AnchorSpace>,
    /// Count the node itself among its k neighbours, as the authors' code does
    #[arg(long, help_heading = PAPERS, hide_short_help = true)]
    pub(crate) k_includes_self: bool,
    /// Let classes weigh alike however many labelled nodes they have; for a very unbalanced source
    /// [default: none]
    #[arg(long, help_heading = PAPERS, hide_short_help = true, value_parser = parser(LabelWeight::WORDS))]
    pub(crate) label_weight: Option<LabelWeight>,
    /// End early when a round changes no label
    #[arg(long, help_heading = PAPERS, hide_short_help = true)]
    pub(crate) stop_when_stable: bool,
}

/// Turn feature files into another format
///
/// Several files become one, in the order given. Labels and ids that stand in the files come along; class names take the place
/// of their numbers.
#[derive(Args)]
#[command(after_help = "Example: a2lp convert part1.csv part2.npz --out all.safetensors")]
pub(crate) struct ConvertArgs {
    /// Files of features: .npy, .npz, .safetensors, .csv
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Where they go: .npz, .npy (labels and ids in files beside it), .safetensors or .csv
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
    /// Labels of all rows, where the files have none
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) labels: Option<PathBuf>,
    /// Ids of all rows, where the files have none
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ids: Option<PathBuf>,
    /// Replace a file that exists
    #[arg(long)]
    pub(crate) force: bool,
}

/// Find the neighbours of every row and save the graph
///
/// Writes a sparse matrix that `scipy.sparse.load_npz` opens: each row holds the K nearest rows and their
/// similarities. Several files are stacked in the order given.
#[derive(Args)]
#[command(
    after_help = "Example: a2lp graph --features src.npy --features tgt.npy --neighbours 20 --out graph.npz"
)]
pub(crate) struct GraphArgs {
    /// Features; may be given several times
    #[arg(long, value_name = "FILE", required = true, action = clap::ArgAction::Append, value_hint = ValueHint::FilePath)]
    pub(crate) features: Vec<PathBuf>,
    /// k, the neighbours of each row
    #[arg(long, value_name = "K", default_value_t = 20)]
    pub(crate) neighbours: usize,
    /// Where the graph goes (.npz)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
    /// How alike two vectors are
    #[arg(long, value_enum, default_value_t = SimilarityArg::Cosine)]
    pub(crate) similarity: SimilarityArg,
    /// σ² of the Gaussian similarity
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    pub(crate) gauss_sigma2: f64,
    /// How neighbours are searched for; see `a2lp label --help`
    #[arg(long, default_value = "auto", value_parser = graph_method())]
    pub(crate) graph_method: GraphMethod,
    /// Seed of searches that have something random in them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Refuse to begin when more memory than this would be needed: 4G, 500M
    #[arg(long, value_name = "SIZE", value_parser = crate::memory::parse)]
    pub(crate) max_memory: Option<u64>,
    /// Save A + Aᵀ, the matrix that labels are propagated over, instead of the lists
    #[arg(long)]
    pub(crate) symmetric: bool,
    /// Worker threads; 0 = one per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Replace an output file that exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Tell what is in a feature or label file
///
/// Shape, type, classes and counts, lengths of the rows, NaN and infinities, zero rows, exact duplicates.
#[derive(Args)]
pub(crate) struct InspectArgs {
    /// A feature or label file (.npy, .npz, .csv, .txt)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the method on two built-in domains; needs no file
///
/// Draws digits as clean strokes (source) and slanted, thick, noisy and inverted (target), describes them by
/// gradient histograms, labels the target by nearest neighbour, label propagation and A²LP, and prints how often
/// each is right. The domains and the labels are saved as files that `a2lp label` can be run on.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Seed of the drawings
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Also run this many further seeds and print means
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) more_seeds: u64,
    /// Images of each digit in each domain
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=2000))]
    pub(crate) per_class: u32,
    /// Folder for the files
    #[arg(long, value_name = "DIR", default_value = "a2lp-demo", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
    /// Worker threads; 0 = one per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Replace files of an earlier, different demo
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) looks: Looks,
}

/// Run one of the paper's experiments on a folder of domains
///
/// Each prints a table and keeps every finished cell in its folder, so that the same command goes on where it was
/// interrupted.
#[derive(Subcommand)]
#[command(after_help = "Start with: a2lp experiment init DIR, then: a2lp experiment pairs DIR")]
pub(crate) enum ExperimentCommand {
    Init(InitArgs),
    /// Every ordered pair of domains (tables 4, 5, 6, 9)
    ///
    /// Nearest neighbour, nearest centre, label propagation and A²LP, with all source rows and with class centres. With
    /// --learners, networks are trained instead, every learner with every kind of pseudo-labels and every seed.
    Pairs(Box<PairsArgs>),
    /// Accuracy and PoW round by round, within a domain and across domains (figure 4)
    Rounds(ExperimentArgs),
    /// Three similarities and several k (figure 3)
    Similarity(SimilarityArgs),
    /// How far labels travel (table 7)
    Alpha(AlphaArgs),
    /// How wrong the first labels may be (table 1)
    Noise(NoiseArgs),
    /// Entropy weights against uniform ones (table 3)
    Weights(ExperimentArgs),
    /// All source rows against class centres and against clusters of each class (table 2)
    Variant(ExperimentArgs),
    /// Exact search and NN-Descent, dense solver and conjugate gradients (table 8)
    Timing(ExperimentArgs),
    /// The graph between labelled and unlabelled items as pictures (figure 1)
    Affinity(ExperimentArgs),
}

/// Describe a folder of domains in a file, domains.toml
///
/// Finds features (.npy, .npz, .csv) and the labels that belong to them by name: amazon_feat.npy and amazon_label.npy.
#[derive(Args)]
pub(crate) struct InitArgs {
    /// The folder
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Replace a domains.toml that exists
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Args)]
pub(crate) struct ExperimentArgs {
    /// A folder with a domains.toml
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Folder for results [default: a2lp-EXPERIMENT-NAME]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// The source domain [default: the first; pairs takes all]
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    /// The target domain [default: the second; pairs takes all]
    #[arg(long, value_name = "NAME")]
    pub(crate) target: Option<String>,
    /// Draw this many labelled and this many other, unlabelled rows of each class
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) per_class: Option<usize>,
    /// Seeds of draws; figures are means over them
    #[arg(long, value_delimiter = ',', default_value = "0", num_args = 1..)]
    pub(crate) seeds: Vec<u64>,
    /// Settings of a paper's dataset, and the paper's figures beside ours in `pairs`; single options still win
    #[arg(long)]
    pub(crate) preset: Option<Preset>,
    /// k, the neighbours of each node [default: 20]
    #[arg(long, value_name = "K")]
    pub(crate) neighbours: Option<usize>,
    /// How far labels travel [default: 0.5]
    #[arg(long)]
    pub(crate) alpha: Option<f64>,
    /// Rounds of propagation [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<usize>,
    /// How neighbours are searched for [default: auto]
    #[arg(long, value_parser = graph_method())]
    pub(crate) graph_method: Option<GraphMethod>,
    /// Count the node itself among its k neighbours, as the authors' code does
    #[arg(long)]
    pub(crate) k_includes_self: bool,
    /// Worker threads; 0 = one per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Start anew in a folder that holds another experiment
    #[arg(long)]
    pub(crate) force: bool,
    /// Also write the results as a page to look at [default file: report.html in the folder]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<Option<PathBuf>>,
}

#[derive(Args)]
pub(crate) struct PairsArgs {
    #[command(flatten)]
    pub(crate) common: ExperimentArgs,
    /// `consensus` adds two and three voting views to the table; lp and a2lp are always in it
    #[arg(long, conflicts_with = "learners", value_parser = parser(Method::WORDS))]
    pub(crate) method: Option<Method>,
    /// Train networks: source-only, em, ce, dann, mstn, can, with commas
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) learners: Vec<String>,
    #[command(flatten)]
    pub(crate) how: TrainHow,
}

#[derive(Args)]
pub(crate) struct SimilarityArgs {
    #[command(flatten)]
    pub(crate) common: ExperimentArgs,
    /// Values of k; `all` is the full graph
    #[arg(long, value_delimiter = ',', default_value = "5,10,15,20,25,30,all", value_parser = parse_neighbours)]
    pub(crate) k_list: Vec<Neighbours>,
    /// σ² of the Gaussian similarity
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    pub(crate) gauss_sigma2: f64,
}

#[derive(Args)]
pub(crate) struct AlphaArgs {
    #[command(flatten)]
    pub(crate) common: ExperimentArgs,
    /// Values of α; the dense solver is used above 1
    #[arg(long, value_delimiter = ',', default_value = "0.1,0.25,0.4,0.5,0.6,0.75,0.9,2.0")]
    pub(crate) alphas: Vec<f64>,
}

#[derive(Args)]
pub(crate) struct NoiseArgs {
    #[command(flatten)]
    pub(crate) common: ExperimentArgs,
    /// Shares of wrong labels
    #[arg(long, value_delimiter = ',', default_value = "0,0.1,0.3,0.5,0.6,0.7,0.8,1.0")]
    pub(crate) levels: Vec<f64>,
    /// Weights of the items in the anchors: those of the propagated labels, as the authors' code has it, or all one
    #[arg(long, default_value = "entropy", value_parser = parser(&[("entropy", AnchorWeights::Entropy), ("one", AnchorWeights::Uniform)]))]
    pub(crate) noise_weights: AnchorWeights,
}

fn positive(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&number| number > 0).ok_or_else(|| "a number of at least 1 is needed".into())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimilarityArg {
    Cosine,
    Gaussian,
    Dot3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// k 20, alpha 0.5, 6 rounds, all source nodes
    Office31,
    /// k 20, alpha 0.5, 6 rounds, all source nodes
    Imageclef,
    /// k 100, alpha 0.75, 8 rounds, source centres
    Visda,
}

impl Preset {
    /// The settings of a dataset, or the recommended ones.
    pub(crate) fn parameters(preset: Option<Preset>) -> Parameters {
        match preset {
            None => Parameters::new(),
            Some(Preset::Office31 | Preset::Imageclef) => {
                Parameters::new().neighbours(20).alpha(0.5).rounds(6)
            }
            Some(Preset::Visda) => {
                Parameters::new().neighbours(100).alpha(0.75).rounds(8).source_nodes(SourceNodes::Centres)
            }
        }
    }
}

impl SimilarityArg {
    pub(crate) fn with(self, sigma2: f64) -> Similarity {
        match self {
            SimilarityArg::Cosine => Similarity::Cosine,
            SimilarityArg::Gaussian => Similarity::Gaussian { sigma2 },
            SimilarityArg::Dot3 => Similarity::Dot3,
        }
    }
}

/// A parser for a closed list of words and what they stand for.
fn parser<T: Copy + Send + Sync + 'static>(
    values: &'static [(&'static str, T)],
) -> impl clap::builder::TypedValueParser<Value = T> {
    use clap::builder::TypedValueParser;
    PossibleValuesParser::new(values.iter().map(|(name, _)| *name)).map(move |given: String| {
        let found = values.iter().find(|(name, _)| *name == given);
        found.expect("clap lets only the listed words through").1
    })
}

fn graph_method() -> impl clap::builder::TypedValueParser<Value = GraphMethod> {
    parser(GraphMethod::WORDS)
}

fn parse_neighbours(text: &str) -> Result<Neighbours, String> {
    if text == "all" {
        return Ok(Neighbours::All);
    }
    text.parse().map(Neighbours::Nearest).map_err(|_| "a whole number or `all` is needed".into())
}
