//! Weights from files: `.safetensors`, and `.pth` through a reader that executes nothing.

use crate::error::TrainError;
use burn::store::{ApplyResult, ModuleSnapshot, PyTorchToBurnAdapter, PytorchStore, SafetensorsStore};
use std::path::Path;

/// What became of the tensors of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadedWeights {
    /// Tensors that were taken.
    pub taken: usize,
    /// Tensors of the file that the network has no place for, but for the classifier and counters.
    pub unused: Vec<String>,
}

/// Loads every tensor of a network; `names` are regular expressions and what their matches become.
pub(crate) fn load<M: ModuleSnapshot>(
    network: &mut M,
    path: &Path,
    names: &[(&str, &str)],
) -> Result<LoadedWeights, TrainError> {
    let wrong = |message: String| TrainError::Weights { path: path.to_path_buf(), message };
    if !path.is_file() {
        return Err(wrong("no such file".into()));
    }
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    let result: ApplyResult = match ending.as_str() {
        "safetensors" => {
            let mut store = SafetensorsStore::from_file(path)
                .with_from_adapter(PyTorchToBurnAdapter)
                .allow_partial(true)
                .validate(false);
            for (from, to) in names {
                store = store.with_key_remapping(from, *to);
            }
            network.load_from(&mut store).map_err(|error| wrong(error.to_string()))?
        }
        "pth" | "pt" | "bin" => {
            let mut store = PytorchStore::from_file(path).allow_partial(true).validate(false);
            for (from, to) in names {
                store = store.with_key_remapping(from, *to);
            }
            network.load_from(&mut store).map_err(|error| wrong(error.to_string()))?
        }
        _ => return Err(wrong("weights come as .safetensors or .pth".into())),
    };
    if let Some(error) = result.errors.first() {
        return Err(wrong(format!("{error}")));
    }
    if !result.missing.is_empty() {
        let names: Vec<&str> = result.missing.iter().take(5).map(|(name, _)| name.as_str()).collect();
        let message = format!(
            "{} tensors of the network are not in the file: {}{}",
            result.missing.len(),
            names.join(", "),
            if result.missing.len() > 5 { ", …" } else { "" }
        );
        return Err(wrong(message));
    }
    let unused = result.unused.into_iter().filter(|name| {
        !name.ends_with("num_batches_tracked") && !name.starts_with("fc.") && !name.starts_with("classifier.")
    });
    Ok(LoadedWeights { taken: result.applied.len(), unused: unused.collect() })
}
