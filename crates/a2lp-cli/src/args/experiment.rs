//! The options of `a2lp experiment`.

use super::*;
#[cfg(feature = "networks")]
use a2lp_train::Learner;
/// A build without networks has no learners, and refuses every value of `--learners`.
#[cfg(not(feature = "networks"))]
type Learner = String;

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
    /// Targets that lack classes or have other class shares
    ///
    /// Every pair of domains, with the target whole (closed), with half of its classes, with three in ten of them (third), and
    /// with half of its items drawn by random class shares (shift). Prints label propagation, A²LP and the consensus with each
    /// assumption about the class mix.
    Mix(MixArgs),
    /// Targets with classes that the source lacks
    ///
    /// Every pair of domains, with the source whole and with half of its classes. Prints how well reach tells items of unknown
    /// classes from the others, beside simpler scores that flag as many items.
    Unknown(UnknownArgs),
}

/// Describe a folder of domains in a file, domains.toml
///
/// Finds features, in any format that a2lp reads, and the labels that belong to them by name: amazon_feat.npy and amazon_label.npy.
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
    /// Train networks, with these learners, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    #[cfg_attr(feature = "networks", arg(value_parser = parser(Learner::WORDS)))]
    #[cfg_attr(
        not(feature = "networks"),
        arg(value_parser = absent::learners, num_args = 1.., allow_hyphen_values = true),
        doc = "\n\n[not in this build: needs the feature `networks`]"
    )]
    pub(crate) learners: Vec<Learner>,
    #[cfg(feature = "networks")]
    #[command(flatten)]
    pub(crate) how: TrainHow<PairsOptions>,
}

#[derive(Args)]
pub(crate) struct SimilarityArgs {
    #[command(flatten)]
    pub(crate) common: ExperimentArgs,
    /// Values of k; `all` is the full graph
    #[arg(long, value_delimiter = ',', default_value = "5,10,15,20,25,30,all", value_parser = parse_neighbours)]
    pub(crate) k_list: Vec<Neighbours>,
    /// σ² of the Gaussian similarity
    #[arg(long, value_name = "S", default_value_t = Similarity::DEFAULT_SIGMA2)]
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
pub(crate) struct MixArgs {
    #[command(flatten)]
    pub(crate) common: ExperimentArgs,
    /// Graphs that vote in the consensus: 2 or 3
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) views: usize,
    /// Instead of the draws, leave only these classes in the target, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) present: Vec<String>,
}

#[derive(Args)]
pub(crate) struct UnknownArgs {
    #[command(flatten)]
    pub(crate) common: ExperimentArgs,
    /// Instead of the draws, leave only these classes in the source, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) known: Vec<String>,
    /// With --known: the classes that the target has besides, separated by commas [default: all others]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "known")]
    pub(crate) new: Vec<String>,
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
