//! Weights from files: `.safetensors`, and `.pth` through a reader that executes nothing.

use crate::error::TrainError;
use a2lp_data::without_panic;
use burn::store::{
    ApplyResult, ModuleSnapshot, ModuleStore, PyTorchToBurnAdapter, PytorchStore, SafetensorsStore,
};
use std::path::Path;

/// What became of the tensors of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadedWeights {
    /// Tensors that were taken.
    pub taken: usize,
    /// Tensors of the file that the network has no place for, but for the classifier and counters.
    pub unused: Vec<String>,
}

/// Applies a file; should its reader panic over it, that is an error as well.
fn apply<M: ModuleSnapshot, S: ModuleStore>(network: &mut M, store: &mut S) -> Result<ApplyResult, String>
where
    S::Error: std::fmt::Display,
{
    without_panic(|| network.load_from(store)).and_then(|result| result.map_err(|error| error.to_string()))
}

/// Loads every tensor of a network; `names` are regular expressions with their replacements.
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
            apply(network, &mut store).map_err(wrong)?
        }
        "pth" | "pt" | "bin" => {
            let mut store = PytorchStore::from_file(path).allow_partial(true).validate(false);
            for (from, to) in names {
                store = store.with_key_remapping(from, *to);
            }
            apply(network, &mut store).map_err(wrong)?
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

/// The smallest network there is, for those who try to break the readers: `weight` of 3 × 2 and `bias` of 3.
#[doc(hidden)]
pub fn load_smallest(path: &Path) -> Result<LoadedWeights, TrainError> {
    load(&mut burn::nn::LinearConfig::new(2, 3).init(&Default::default()), path, &[])
}
