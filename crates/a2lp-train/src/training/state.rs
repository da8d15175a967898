//! All that a run must remember between two rounds, and the file it is kept in.

use super::labelling::TrainingLabels;
use super::optimiser::Sgd;
use crate::error::TrainError;
use crate::losses::Centroids;
use crate::networks::LearnerNetwork;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor, TensorData};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Where a run is. Random choices depend on the numbers of rounds and steps, so there is nothing else to keep of them.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// Rounds that are finished.
    pub(crate) rounds: usize,
    /// Steps that are finished, warm-up included.
    pub(crate) steps: u64,
    pub(crate) network: LearnerNetwork,
    pub(crate) sgd: Sgd,
    pub(crate) centroids: Option<Centroids>,
    /// The pseudo-labels of the last round.
    pub(crate) labels: Option<TrainingLabels>,
    /// The target's centres in the last round.
    pub(crate) centres: Option<Vec<Vec<f64>>>,
    /// CAN's test said that there is nothing left to learn.
    pub(crate) settled: bool,
}

/// The header of a checkpoint.
#[derive(Serialize, Deserialize)]
struct Head {
    fingerprint: String,
    rounds: usize,
    steps: u64,
    settled: bool,
    centres: Option<Vec<Vec<f64>>>,
    seen: Option<[Vec<bool>; 2]>,
    labels: Option<Vec<Option<u32>>>,
}

/// Values by name.
pub(crate) type Values = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

impl State {
    /// Everything as one file.
    pub(crate) fn write(&self, path: &Path, fingerprint: &str) -> Result<(), TrainError> {
        let mut values = values_of(&self.network, "network");
        for (name, velocity) in &self.sgd.velocities {
            let flat: Vec<f32> = velocity.clone().into_data().iter::<f32>().collect();
            values.insert(format!("velocity.{name}"), (vec![flat.len()], flat));
        }
        if let Some(centroids) = &self.centroids {
            for (name, moving) in [("source", &centroids.source), ("target", &centroids.target)] {
                values
                    .insert(format!("centroids.{name}"), (vec![moving.values.len()], moving.values.clone()));
            }
        }
        if let Some(labels) = &self.labels {
            values.insert("labels.weights".into(), (vec![labels.weights.len()], labels.weights.clone()));
        }
        let head = Head {
            fingerprint: fingerprint.into(),
            rounds: self.rounds,
            steps: self.steps,
            settled: self.settled,
            centres: self.centres.clone(),
            seen: self.centroids.as_ref().map(|c| [c.source.seen.clone(), c.target.seen.clone()]),
            labels: self.labels.as_ref().map(|labels| labels.labels.clone()),
        };
        write_values(path, &values, Some(&head))
    }

    /// Goes on from a file, in place of a fresh start. `false`: there is none, or it belongs to another run.
    pub(crate) fn read(
        &mut self,
        path: &Path,
        fingerprint: &str,
        device: &Device,
    ) -> Result<bool, TrainError> {
        let wrong = |message: String| TrainError::Checkpoint { path: path.to_path_buf(), message };
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(TrainError::Io { path: path.to_path_buf(), error }),
        };
        let (head, mut values) = read_values(&bytes).map_err(wrong)?;
        let head: Head = serde_json::from_str(&head).map_err(|error| wrong(error.to_string()))?;
        if head.fingerprint != fingerprint {
            return Ok(false);
        }
        let mut take = |name: &str| values.remove(name).map(|(_, values)| values);
        if let (Some(centroids), Some([source, target])) = (&mut self.centroids, head.seen) {
            let both = (take("centroids.source"), take("centroids.target"));
            let (Some(s), Some(t)) = both else { return Err(wrong("it has no centroids".into())) };
            (centroids.source.values, centroids.target.values) = (s, t);
            (centroids.source.seen, centroids.target.seen) = (source, target);
        }
        self.labels = match head.labels {
            Some(labels) => {
                let weights = take("labels.weights").ok_or_else(|| wrong("labels without weights".into()))?;
                Some(TrainingLabels { labels, weights })
            }
            None => None,
        };
        self.sgd.velocities = values
            .iter()
            .filter_map(|(name, (_, values))| Some((name.strip_prefix("velocity.")?, values)))
            .map(|(name, values)| {
                let data = TensorData::new(values.clone(), [values.len()]);
                (name.to_string(), Tensor::from_data(data, device))
            })
            .collect();
        self.network = put(self.network.clone(), "network", values).map_err(wrong)?;
        (self.rounds, self.steps, self.settled) = (head.rounds, head.steps, head.settled);
        self.centres = head.centres;
        Ok(true)
    }
}

/// Every value of a network, statistics included.
pub(crate) fn values_of(network: &impl Module, prefix: &str) -> Values {
    let mut collect = Collect { path: vec![prefix.into()], values: Values::new() };
    network.visit(&mut collect);
    collect.values
}

/// Puts values in the place of a network's own; every one must be there.
pub(crate) fn put<M: Module>(network: M, prefix: &str, values: Values) -> Result<M, String> {
    let mut put = Put { path: vec![prefix.into()], values, missing: None };
    let network = network.map(&mut put);
    match put.missing {
        Some(name) => Err(format!("it has no '{name}' of the right shape")),
        None => Ok(network),
    }
}

struct Collect {
    path: Vec<String>,
    values: Values,
}

impl ModuleVisitor for Collect {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.into());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val().detach();
        let shape = value.dims().to_vec();
        self.values.insert(self.path.join("."), (shape, value.into_data().iter::<f32>().collect()));
    }
}

struct Put {
    path: Vec<String>,
    values: Values,
    missing: Option<String>,
}

impl ModuleMapper for Put {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.into());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.join(".");
        let shape = param.val().dims();
        match self.values.remove(&name) {
            Some((found, values)) if found == shape => {
                let (id, old, mapper) = param.consume();
                let value = Tensor::from_data(TensorData::new(values, shape), &old.device());
                let value = if old.is_require_grad() { value.require_grad() } else { value };
                Param::from_mapped_value(id, value, mapper)
            }
            _ => {
                self.missing.get_or_insert(name);
                param
            }
        }
    }
}

/// The key of the header that holds what is not a tensor.
const HEAD: &str = "a2lp";

/// Writes tensors and a header of our own as safetensors, whole or not at all.
pub(crate) fn write_values(
    path: &Path,
    values: &Values,
    head: Option<&impl Serialize>,
) -> Result<(), TrainError> {
    let wrong = |message: String| TrainError::Checkpoint { path: path.to_path_buf(), message };
    let bytes: Vec<(&str, &[usize], Vec<u8>)> = values
        .iter()
        .map(|(name, (shape, values))| {
            (name.as_str(), &shape[..], values.iter().flat_map(|v| v.to_le_bytes()).collect())
        })
        .collect();
    let views = bytes
        .iter()
        .map(|(name, shape, bytes)| Ok((*name, TensorView::new(Dtype::F32, shape.to_vec(), bytes)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(|error| wrong(error.to_string()))?;
    let head = match head {
        Some(head) => {
            let text = serde_json::to_string(head).map_err(|error| wrong(error.to_string()))?;
            Some(HashMap::from([(HEAD.to_string(), text)]))
        }
        None => None,
    };
    let file = safetensors::serialize(views, head).map_err(|error| wrong(error.to_string()))?;
    Ok(a2lp_data::write_atomically(path, true, |out| out.write_all(&file))?)
}

/// The header of our own and the tensors of a safetensors file.
pub(crate) fn read_values(bytes: &[u8]) -> Result<(String, Values), String> {
    let damaged = |error: safetensors::SafeTensorError| error.to_string();
    let file = SafeTensors::deserialize(bytes).map_err(damaged)?;
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
    let head = metadata.metadata().as_ref().and_then(|words| words.get(HEAD)).cloned().unwrap_or_default();
    let mut values = Values::new();
    for (name, view) in file.tensors() {
        if view.dtype() != Dtype::F32 {
            return Err(format!("'{name}' is not of float32"));
        }
        let numbers = view.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        values.insert(name, (view.shape().to_vec(), numbers.collect()));
    }
    Ok((head, values))
}
