//! A finished network: what it says of new items, and the file it is kept in.

use super::evaluate;
use super::inputs::Inputs;
use super::state::{Values, put, read_values, values_of, write_values};
use crate::backbone::BackboneName;
use crate::device::DeviceName;
use crate::error::TrainError;
use crate::networks::{BodyShape, Domain, LearnerNetwork, NetworkShape};
use burn::tensor::Device;
use std::ops::ControlFlow;
use std::path::Path;

/// A network that works in the target domain.
pub struct TrainedModel {
    shape: NetworkShape,
    network: LearnerNetwork,
}

impl TrainedModel {
    pub(crate) fn new(mut shape: NetworkShape, mut network: LearnerNetwork) -> Self {
        // It has done its work.
        network.discriminator = None;
        shape.discriminator = None;
        TrainedModel { shape, network }
    }

    /// Writes weights and shape as safetensors; a backbone has the names of the files it is known from, so that others
    /// can use it, and the target's normalisations under them.
    pub fn write(&self, path: &Path) -> Result<(), TrainError> {
        let values = values_of(&self.network, "");
        let values = values.into_iter().filter(|(name, _)| !is_source(name));
        let values: Values = values.map(|(name, value)| outward(&self.shape.body, &name, value)).collect();
        write_values(path, &values, Some(&self.shape))
    }

    /// Reads what [`Self::write`] wrote.
    pub fn read(path: &Path) -> Result<Self, TrainError> {
        let wrong = |message: String| TrainError::Weights { path: path.to_path_buf(), message };
        let bytes =
            std::fs::read(path).map_err(|error| TrainError::Io { path: path.to_path_buf(), error })?;
        let (head, values) = read_values(&bytes).map_err(wrong)?;
        let shape: NetworkShape = serde_json::from_str(&head)
            .map_err(|_| wrong("not the weights of a network that a2lp trained".into()))?;
        let device = Device::flex();
        let network = LearnerNetwork::new(&shape, None, 0, &device)?;
        let mut inward = Values::new();
        for (name, (dims, _)) in values_of(&network, "") {
            let known = outward(&shape.body, &name, (dims.clone(), Vec::new())).0;
            if let Some((found, values)) = values.get(&known) {
                let values = if is_linear_weight(&name) { transposed(found, values) } else { values.clone() };
                inward.insert(name, (dims, values));
            }
        }
        let network = put(network, "", inward).map_err(wrong)?;
        Ok(TrainedModel { shape, network })
    }

    /// Which network it is.
    pub fn shape(&self) -> &NetworkShape {
        &self.shape
    }

    #[cfg(test)]
    pub(super) fn network(&self) -> &LearnerNetwork {
        &self.network
    }

    /// A probability per class for every item.
    pub fn predict(&self, inputs: &Inputs, device: DeviceName) -> Result<Vec<f32>, TrainError> {
        let device = device.open()?;
        let go_on = || ControlFlow::Continue(());
        Ok(evaluate(&self.network, inputs, Domain::Target, &device, &go_on)?.1)
    }
}

fn is_source(name: &str) -> bool {
    name.split('.').any(|part| part == "source")
}

fn is_linear_weight(name: &str) -> bool {
    ["bottleneck.weight", "classifier.weight", "fc1.weight"].iter().any(|end| name.ends_with(end))
}

/// The name others know a value by, and its layout there.
fn outward(
    body: &BodyShape,
    name: &str,
    (shape, values): (Vec<usize>, Vec<f32>),
) -> (String, (Vec<usize>, Vec<f32>)) {
    let linear = is_linear_weight(name);
    let mut parts: Vec<&str> = name.split('.').filter(|part| !part.is_empty() && *part != "target").collect();
    if parts[0] == "body" {
        // The header names the kind of the body.
        parts.drain(..2);
    }
    let lite = *body == BodyShape::Backbone(BackboneName::EfficientnetLite0) && name.contains("body.");
    let last = parts.len() - 1;
    let part = |(at, part): (usize, &&str)| {
        if lite && at < last && !part.starts_with(|c: char| c.is_ascii_digit()) {
            format!("_{part}")
        } else {
            (*part).to_string()
        }
    };
    let known = parts.iter().enumerate().map(part).collect::<Vec<_>>().join(".");
    let known = known.replace("downsample.conv", "downsample.0").replace("downsample.bn1", "downsample.1");
    let known = if known.starts_with("classifier.") { known.replace("classifier.", "fc.") } else { known };
    if linear {
        let turned = transposed(&shape, &values);
        (known, (shape.into_iter().rev().collect(), turned))
    } else {
        (known, (shape, values))
    }
}

/// PyTorch keeps linear layers with the outputs down, burn with the inputs down.
fn transposed(shape: &[usize], values: &[f32]) -> Vec<f32> {
    let &[rows, columns] = shape else { return values.to_vec() };
    if values.is_empty() {
        return Vec::new();
    }
    (0..columns).flat_map(|column| (0..rows).map(move |row| values[row * columns + column])).collect()
}
