//! The command line, as the user writes it. What it means is decided in the commands.

#[cfg(not(feature = "networks"))]
mod absent;
mod experiment;
#[cfg(feature = "networks")]
mod extract;
mod label;
mod parameters;
mod review;
#[cfg(feature = "networks")]
mod train;

#[cfg(not(feature = "networks"))]
use absent::{ExtractArgs, PredictArgs, TrainArgs};
#[cfg(feature = "networks")]
pub(crate) use experiment::PairsArgs;
pub(crate) use experiment::{
    AlphaArgs, ExperimentArgs, ExperimentCommand, InitArgs, MixArgs, NoiseArgs, SimilarityArgs, UnknownArgs,
};
#[cfg(feature = "networks")]
pub(crate) use extract::ExtractArgs;
pub(crate) use label::LabelArgs;
use parameters::{MethodOptions, TableArgs};
#[cfg(feature = "networks")]
pub(crate) use parameters::{OptionTable, PairsOptions, TrainOptions};
pub(crate) use review::ReviewArgs;
#[cfg(feature = "networks")]
pub(crate) use train::{PredictArgs, TrainArgs, TrainHow};

use a2lp::{AnchorWeights, GraphMethod, Method, Neighbours, Parameters, Similarity, SourceNodes};
use a2lp_data::{FieldNames, Format};
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
    Review(ReviewArgs),
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
const LARGE: &str = "More rows than memory holds";
const PAPERS: &str = "Reproducing papers";
const PICTURES: &str = "Pictures";

/// What columns or arrays are called, where the usual names do not fit.
#[derive(Args, Clone, Default)]
pub(crate) struct ColumnArgs {
    /// The column (Parquet, Arrow) or array (.npz, .mat, .h5, .safetensors) of features [default: features, or the only one that
    /// can be]
    #[arg(long, value_name = "NAME", help_heading = FILES, hide_short_help = true)]
    feature_column: Option<String>,
    /// The column or array of labels [default: labels, label or class]
    #[arg(long, value_name = "NAME", help_heading = FILES, hide_short_help = true)]
    label_column: Option<String>,
    /// The column or array of ids [default: ids, id, path or filename]
    #[arg(long, value_name = "NAME", help_heading = FILES, hide_short_help = true)]
    id_column: Option<String>,
}

impl ColumnArgs {
    pub(crate) fn names(&self) -> FieldNames {
        FieldNames {
            features: self.feature_column.clone(),
            labels: self.label_column.clone(),
            ids: self.id_column.clone(),
        }
    }
}

/// What to draw of a run.
#[derive(Args, Clone, Default)]
pub(crate) struct ReportOptions {
    /// Write a page to look at: a map of the items, rounds, confidence, classes, the graph, and the items to check by
    /// hand. One HTML file, needs no network [default file: beside the output]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, help_heading = PICTURES, value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub(crate) more: DrawingOptions,
}

/// How to draw, and where else to.
#[derive(Args, Clone, Default)]
pub(crate) struct DrawingOptions {
    /// How the map is laid out: pca, the directions along which items differ most, at once; or tsne, neighbours next to
    /// neighbours, up to a minute [default: pca]
    #[arg(long, help_heading = PICTURES, hide_short_help = true)]
    pub(crate) map: Option<MapArg>,
    /// Also draw every chart into this folder, as SVG and PNG fit for a paper
    #[cfg_attr(
        not(feature = "figures"),
        doc = "\n\n[not in this build: PNG, which needs the feature `figures`; SVG is drawn]"
    )]
    #[arg(long, value_name = "DIR", help_heading = PICTURES, hide_short_help = true, value_hint = ValueHint::DirPath)]
    pub(crate) figures: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MapArg {
    Pca,
    Tsne,
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
    pub(crate) drawing: DrawingOptions,
    /// Worker threads; 0 = one per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Replace files that exist
    #[arg(long)]
    pub(crate) force: bool,
}

/// Turn feature files into another format
///
/// Several files become one, in the order given; a pattern in quotes ('shards/*.parquet') stands for all files it matches, in the
/// order of their names; - is CSV on standard input. Labels and ids in the files are kept; class names replace
/// their numbers.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  a2lp convert part1.csv part2.npz --out all.parquet\n  a2lp convert office.mat --feature-column fts --out office.npz"
)]
pub(crate) struct ConvertArgs {
    /// Files of features
    #[arg(help = format!("Files of features: {}", Format::readable_endings()), value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Where they go
    #[arg(long, help = format!("Where they go: {}; with .npy, labels and ids go into files beside it", Format::writable_endings()), value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
    /// Labels of all rows, where the files have none
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) labels: Option<PathBuf>,
    /// Ids of all rows, where the files have none
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ids: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
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
    /// Features; several files or a pattern in quotes are stacked in order
    #[arg(long, value_name = "FILE", required = true, num_args = 1.., action = clap::ArgAction::Append, value_hint = ValueHint::FilePath)]
    pub(crate) features: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
    /// k, the neighbours of each row
    #[arg(long, value_name = "K", default_value_t = 20)]
    pub(crate) neighbours: usize,
    /// Where the graph goes (.npz)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
    /// How alike two vectors are
    #[arg(long, default_value = Similarity::WORDS[0].0, value_parser = parser(Similarity::WORDS))]
    pub(crate) similarity: Similarity,
    /// σ² of the Gaussian similarity
    #[arg(long, value_name = "S", default_value_t = Similarity::DEFAULT_SIGMA2)]
    pub(crate) gauss_sigma2: f64,
    /// How neighbours are searched for; see `a2lp label --help`
    #[arg(long, default_value = "auto", value_parser = graph_method())]
    pub(crate) graph_method: GraphMethod,
    /// Seed of searches that have something random in them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Refuse to start if the run needs more memory than this: 4G, 500M
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
    /// A feature or label file of any format, or a pattern of files in quotes
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
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
    pub(crate) drawing: ReportOptions,
}

fn positive(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&number| number > 0).ok_or_else(|| "a number of at least 1 is needed".into())
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
                Parameters::paper().neighbours(20).alpha(0.5).rounds(6)
            }
            Some(Preset::Visda) => {
                Parameters::paper().neighbours(100).alpha(0.75).rounds(8).source_nodes(SourceNodes::Centres)
            }
        }
    }
}

/// A parser for a closed list of words and their values.
fn parser<T: Copy + Send + Sync + 'static>(
    values: &'static [(&'static str, T)],
) -> impl clap::builder::TypedValueParser<Value = T> {
    use clap::builder::TypedValueParser;
    PossibleValuesParser::new(values.iter().map(|(name, _)| *name)).map(move |given: String| {
        let found = values.iter().find(|(name, _)| *name == given);
        found.expect("clap lets only the listed words through").1
    })
}

/// The same, with a line of help for every word.
#[cfg(feature = "networks")]
fn described<T: Copy + Send + Sync + 'static>(
    values: &'static [(&'static str, T)],
    about: &'static [(&'static str, &'static str)],
) -> impl clap::builder::TypedValueParser<Value = T> {
    use clap::builder::{PossibleValue, TypedValueParser};
    let words = about.iter().map(|(word, help)| PossibleValue::new(word).help(help.trim()));
    PossibleValuesParser::new(words).map(move |given: String| {
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
