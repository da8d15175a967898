//! The options of `a2lp review`.

use super::*;

/// Check, correct and sign off labels on a page
///
/// Opens a page in the browser for labels that `a2lp label` made. Check: items drawn at random show how many labels are right, and which
/// can be accepted. Correct: the items most worth a click; every correction changes the labels of its neighbours at once. Map: all items.
/// Finish: labels, a certificate, and the corrections, as files.
///
/// Everything is kept as it happens in LABELS.review.jsonl beside the labels. The same command goes on where it was.
#[derive(Args)]
#[command(after_help = "Example: a2lp review labels.csv --images photos/")]
pub(crate) struct ReviewArgs {
    /// Labels of a run of `a2lp label`, with its record, LABELS.run.json, beside them
    #[arg(value_name = "LABELS", value_hint = ValueHint::FilePath)]
    pub(crate) labels: PathBuf,
    /// A folder of image files, named by the ids of the items or by their rows. Not needed if the target file holds `images`, or if the
    /// ids are paths of image files
    #[arg(long, value_name = "DIR", help_heading = FILES, value_hint = ValueHint::DirPath)]
    pub(crate) images: Option<PathBuf>,
    /// A text for every row of the target: a column of a table
    #[arg(long, value_name = "FILE:COLUMN", help_heading = FILES)]
    pub(crate) text: Option<String>,
    /// Work a certificate out again from the labels and say yes or no
    #[arg(long, value_name = "CERTIFICATE", help_heading = FILES, value_hint = ValueHint::FilePath, conflicts_with_all = ["images", "text", "export", "host", "port"])]
    pub(crate) verify: Option<PathBuf>,
    /// Write the labels as reviewed so far into a file and stop, without a page
    #[arg(long, value_name = "FILE", help_heading = FILES, value_hint = ValueHint::FilePath, conflicts_with_all = ["host", "port"])]
    pub(crate) export: Option<PathBuf>,
    /// With --export: write the certificate as well
    #[arg(long, value_name = "FILE", help_heading = FILES, value_hint = ValueHint::FilePath, requires = "export")]
    pub(crate) certificate: Option<PathBuf>,
    /// With --export: write the corrections as well, as .csv, or as .json for Label Studio
    #[arg(long, value_name = "FILE", help_heading = FILES, value_hint = ValueHint::FilePath, requires = "export")]
    pub(crate) corrections: Option<PathBuf>,
    /// Replace output files that exist
    #[arg(long, help_heading = FILES)]
    pub(crate) force: bool,
    /// Listen on this address instead of this machine only, for example 0.0.0.0. Whoever reads the page's address can change labels
    #[arg(long, value_name = "ADDRESS", help_heading = EVERYDAY)]
    pub(crate) host: Option<std::net::IpAddr>,
    /// The name by which browsers ask for this machine, if --host is given
    #[arg(long, value_name = "NAME", help_heading = EVERYDAY, requires = "host")]
    pub(crate) host_name: Option<String>,
    /// The port of the page; any free one unless it is given
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true, help_heading = EVERYDAY)]
    pub(crate) port: u16,
    /// Print the address of the page, but do not open it
    #[arg(long, help_heading = EVERYDAY)]
    pub(crate) no_browser: bool,
    /// Do not run the full method with the corrections while you pause
    #[arg(long, help_heading = EVERYDAY)]
    pub(crate) no_full_runs: bool,
    /// Worker threads; 0 = one per core
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, help_heading = EVERYDAY)]
    pub(crate) threads: usize,
}
