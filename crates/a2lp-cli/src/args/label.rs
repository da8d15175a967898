//! The options of `a2lp label`.

use super::*;
use a2lp_data::label_endings;

fn features_help(domain: &str) -> String {
    format!(
        "Features of the {domain}: {}. Several files, or a pattern in quotes ('shards/*.parquet'), are one set; - is CSV on standard input",
        Format::readable_endings()
    )
}

/// Label the items of a target domain
///
/// Reads features of a labelled source and an unlabelled target, propagates the labels over neighbour graphs, and writes one
/// row per target item: row, id, label, confidence, margin, status, votes, reach.
///
/// `confidence` is 1 − entropy/ln K of the class probabilities: 1 = one class only, 0 = all alike. It orders items
/// well but is not a calibrated probability: 0.9 does not mean nine out of ten right.
///
/// `status` is `labelled`; `low-confidence` (below --min-confidence, label kept); `weak` (a path to a label exists,
/// but the scores are within the solver's error); `unreached` (no path to any label; the label stays empty); or `unknown`
/// (with --unknown flag: the item matches nothing in the source; `nearest_label` names the class it looks most like).
///
/// `votes` tells how many graphs of a consensus gave the label. `reach` is 1 on average, and small where the source has nothing
/// like the item.
#[derive(Args)]
#[command(
    after_help = "Example: a2lp label --source src.npy --source-labels src_labels.npy --target tgt.npy --out labels.csv\nMore options: a2lp label --help"
)]
#[command(
    after_long_help = "Example: a2lp label --source src.npy --source-labels src_labels.npy --target tgt.npy --out labels.csv\n\nA TOML file can set every option under the same name (neighbours = 30); --config reads it. The command line wins."
)]
pub(crate) struct LabelArgs {
    /// Features of the labelled domain
    #[arg(long, long_help = features_help("labelled domain"), value_name = "FILE", required = true, num_args = 1.., help_heading = FILES, value_hint = ValueHint::FilePath)]
    pub(crate) source: Vec<PathBuf>,
    /// Labels of the source, one per row; not needed when the source file holds them
    #[arg(long, value_name = "FILE", help_heading = FILES, value_hint = ValueHint::FilePath)]
    pub(crate) source_labels: Option<PathBuf>,
    /// Features of the domain to be labelled
    #[arg(long, long_help = features_help("domain to be labelled"), value_name = "FILE", required = true, num_args = 1.., help_heading = FILES, value_hint = ValueHint::FilePath)]
    pub(crate) target: Vec<PathBuf>,
    /// Where the labels go
    #[arg(long, long_help = format!("Where the labels go, as {}. Beside it go the run record, FILE.run.json, and what `a2lp report` needs, FILE.trace.json", label_endings()), value_name = "FILE", help_heading = FILES, value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
    /// Ids of the target items, copied to the output; not needed when the target file holds them
    #[arg(long, value_name = "FILE", help_heading = FILES, hide_short_help = true, value_hint = ValueHint::FilePath)]
    pub(crate) target_ids: Option<PathBuf>,
    /// Labels that a person gave to target items, never contradicted: a table with the columns row or id, and label, as
    /// `a2lp review` exports it, or an export of Label Studio (.json). Classes that the source lacks are allowed
    #[arg(long, value_name = "FILE", help_heading = FILES, hide_short_help = true, value_hint = ValueHint::FilePath)]
    pub(crate) known: Option<PathBuf>,
    /// Class names, one per line; labels that are numbers are positions in this list
    #[arg(long, value_name = "FILE", help_heading = FILES, hide_short_help = true, value_hint = ValueHint::FilePath)]
    pub(crate) class_names: Option<PathBuf>,
    /// Read options from a TOML file; options on the command line win
    #[arg(long, value_name = "FILE", help_heading = FILES, hide_short_help = true, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// A neighbour graph to use instead of searching: a sparse matrix of scipy.sparse.save_npz over the source rows, then
    /// the target rows, from `a2lp graph` or another program. Directed rows are symmetrised, a symmetric matrix is taken as
    /// it is
    #[arg(long, value_name = "FILE", help_heading = FILES, hide_short_help = true, value_hint = ValueHint::FilePath)]
    pub(crate) graph: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
    /// Leave out rows that hold NaN or infinities, of source and target, and list them, instead of stopping
    #[arg(long, help_heading = FILES, hide_short_help = true)]
    pub(crate) skip_invalid: bool,
    /// Add the probability of every class to the output
    #[arg(long, help_heading = FILES, hide_short_help = true)]
    pub(crate) probabilities: bool,
    /// Replace output files that exist
    #[arg(long, help_heading = FILES, hide_short_help = true)]
    pub(crate) force: bool,
    /// Print the summary as JSON on standard output
    #[arg(long, help_heading = FILES, hide_short_help = true)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) parameters: TableArgs<MethodOptions>,
    /// Do not measure the quality of the labels, which takes another graph
    #[arg(long, conflicts_with = "guard", help_heading = EVERYDAY, hide_short_help = true)]
    pub(crate) no_quality: bool,
    /// Share of unreached items (0 to 1) above which the exit code is 1 [default: 0.5]
    #[arg(long, value_name = "SHARE", help_heading = EVERYDAY, hide_short_help = true)]
    pub(crate) max_unreached: Option<f64>,
    /// Exit code 1 at any warning, not only when labels did not reach or the solver did not converge
    #[arg(long, help_heading = EVERYDAY, hide_short_help = true)]
    pub(crate) strict: bool,
    /// Print method, memory and seconds of the run, and stop before it starts
    #[arg(long, help_heading = EVERYDAY, hide_short_help = true)]
    pub(crate) dry_run: bool,
    /// Refuse to start if the run needs more memory than this: 4G, 500M. With --spill, what the run may take; with --cluster, each
    /// of its workers
    #[arg(long, value_name = "SIZE", help_heading = EVERYDAY, hide_short_help = true, value_parser = crate::memory::parse)]
    pub(crate) max_memory: Option<u64>,

    /// Label more rows than memory holds: the rows go to files in this folder, by methods lp and a2lp. --out is then a folder with a
    /// labels file for each file of the target. An interrupted run goes on from here
    #[arg(long, value_name = "FOLDER", help_heading = LARGE, hide_short_help = true, conflicts_with = "cluster", value_hint = ValueHint::DirPath)]
    pub(crate) spill: Option<PathBuf>,
    /// Label on a Ray cluster, like --spill: its address, or `auto` for the one at hand or else one on this machine. Needs the Python
    /// package
    #[arg(long, value_name = "ADDRESS", help_heading = LARGE, hide_short_help = true)]
    pub(crate) cluster: Option<String>,
    /// Workers on the cluster [default: one for every two of its cores]
    #[arg(long, value_name = "N", help_heading = LARGE, hide_short_help = true, requires = "cluster")]
    pub(crate) workers: Option<usize>,

    #[command(flatten)]
    pub(crate) drawing: ReportOptions,

    /// True labels of the target: prints accuracies and more. They cannot influence the result
    #[arg(long, value_name = "FILE", help_heading = EVALUATION, value_hint = ValueHint::FilePath)]
    pub(crate) eval_labels: Option<PathBuf>,

    /// Settings of a paper's dataset; single options still win
    #[arg(long, help_heading = PAPERS, hide_short_help = true)]
    pub(crate) preset: Option<Preset>,
}
