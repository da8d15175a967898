//! The readers, and the good files that the bad ones are made of.

use a2lp_data::images::decode;
use a2lp_data::{
    FeatureFile, FieldNames, read_class_names, read_graph, read_ids, read_labels, read_pictures,
};
use std::path::{Path, PathBuf};

/// A good file.
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// The files of `reliability/corpus`.
pub(crate) fn corpus() -> Vec<Sample> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending != "json"))
        .collect();
    paths.sort();
    let sample = |path: PathBuf| Sample {
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        bytes: std::fs::read(&path).unwrap_or_default(),
    };
    paths.into_iter().map(sample).collect()
}

/// A network that the tests know, too large for the fuzzing.
pub(crate) fn network() -> Sample {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/a2lp-train/tests/reference/narrow.onnx");
    Sample { name: "network.onnx".into(), bytes: std::fs::read(path).unwrap_or_default() }
}

/// What readers made of a file: bytes that came out of it, and errors.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) decoded_bytes: usize,
    pub(crate) errors: Vec<String>,
}

impl Outcome {
    fn add<T, E: std::fmt::Display>(&mut self, result: Result<T, E>, bytes: impl FnOnce(&T) -> usize) {
        match result {
            Ok(value) => self.decoded_bytes += bytes(&value),
            Err(error) => self.errors.push(error.to_string()),
        }
    }
}

/// Reads a file in every way that its kind can be read.
pub(crate) fn read(path: &Path) -> Outcome {
    let mut outcome = Outcome::default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let words = |words: &Vec<String>| words.iter().map(|word| word.len() + 24).sum();
    let fields = FieldNames::default();
    if name.ends_with(".toml") {
        outcome.add(a2lp_cli::check_config(path), |()| 0);
    } else if name.starts_with("picture") {
        outcome.add(decode(path, true), |picture| picture.pixels.len());
    } else if name.ends_with(".onnx") {
        outcome.add(a2lp_train::Backbone::open_onnx(path, a2lp_train::OnnxEngine::Rten), |_| 0);
    } else if name.starts_with("weights") {
        outcome.add(a2lp_train::load_smallest(path), |_| 0);
    } else if name.starts_with("graph") {
        outcome.add(read_graph(path), |graph| 12 * graph.columns.len());
    } else {
        outcome.add(read_labels(path, &fields), |column| 24 * column.len());
        if name.ends_with(".txt") {
            return outcome;
        }
        match FeatureFile::open(path) {
            Err(error) => outcome.errors.push(error.to_string()),
            Ok(mut file) => {
                outcome.add(file.labels(), |column| column.as_ref().map_or(0, |column| 24 * column.len()));
                outcome.add(file.ids(), |ids| ids.as_ref().map_or(0, words));
                outcome.add(file.class_names(), |names| names.as_ref().map_or(0, words));
                outcome.add(file.read(), |matrix| 4 * matrix.values().len());
            }
        }
        if name.ends_with(".npy") || name.ends_with(".npz") {
            outcome.add(read_pictures(path, &[0, 1]), |_| 0);
            outcome.add(read_ids(path, &fields), |ids| words(ids));
            outcome.add(read_class_names(path), |names| words(names));
        }
    }
    outcome
}

/// A folder in memory where there is one, for many small files.
pub(crate) fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.unwrap_or_else(|error| panic!("no temporary folder: {error}"))
}
