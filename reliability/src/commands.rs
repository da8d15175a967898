//! The binary, as a user runs it, and small domains to run it on.

use crate::mutate::Draws;
use a2lp_data::ArrayFile;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The binary beside this one, or the one that `A2LP_BIN` names.
pub(crate) fn binary() -> PathBuf {
    if let Some(named) = std::env::var_os("A2LP_BIN") {
        return named.into();
    }
    let here = std::env::current_exe().unwrap_or_default();
    here.with_file_name("a2lp")
}

/// A command, still to be run.
pub(crate) fn command(folder: &Path, words: &str) -> Command {
    let mut command = Command::new(binary());
    command.current_dir(folder).args(words.split_whitespace());
    command
}

/// Runs a command to its end.
pub(crate) fn run(folder: &Path, words: &str) -> Output {
    command(folder, words).output().unwrap_or_else(|error| panic!("{}: {error}", binary().display()))
}

pub(crate) fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// Two domains of clusters, the target's moved a little.
pub(crate) struct Clusters {
    pub(crate) classes: usize,
    pub(crate) columns: usize,
    pub(crate) source: Vec<f32>,
    pub(crate) target: Vec<f32>,
    pub(crate) labels: Vec<i64>,
}

impl Clusters {
    pub(crate) fn new(
        source_rows: usize,
        target_rows: usize,
        columns: usize,
        classes: usize,
        seed: u64,
    ) -> Self {
        let mut draws = Draws(seed);
        // Sums of uniform numbers are near enough to normal ones.
        let mut noise = || (0..4).map(|_| draws.next() as f64 / u64::MAX as f64 - 0.5).sum::<f64>() as f32;
        let centres: Vec<f32> = (0..classes * columns).map(|_| noise()).collect();
        let shift: Vec<f32> = (0..columns).map(|_| 0.3 * noise()).collect();
        let mut domain = |rows: usize, moved: f32| {
            let labels: Vec<i64> = (0..rows).map(|row| (row % classes) as i64).collect();
            let mut values = Vec::with_capacity(rows * columns);
            for &label in &labels {
                for column in 0..columns {
                    let centre = centres[label as usize * columns + column];
                    values.push(centre + moved * shift[column] + 0.7 * noise());
                }
            }
            (values, labels)
        };
        let (source, labels) = domain(source_rows, 0.0);
        let (target, _) = domain(target_rows, 1.0);
        Clusters { classes, columns, source, target, labels }
    }

    /// `src.npz` with labels and `tgt.npy`.
    pub(crate) fn write(&self, folder: &Path) {
        let rows = |values: &[f32]| values.len() / self.columns;
        ArrayFile::new()
            .matrix("features", rows(&self.source), self.columns, &self.source)
            .integers("labels", &self.labels)
            .write(&folder.join("src.npz"), true)
            .unwrap_or_else(|error| panic!("{error}"));
        ArrayFile::new()
            .matrix("features", rows(&self.target), self.columns, &self.target)
            .write(&folder.join("tgt.npy"), true)
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

/// The labels file as rows of fields.
pub(crate) fn labels(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().skip(1).map(|line| line.split(',').map(String::from).collect()).collect()
}
