//! The domain discriminator: two hidden layers with dropout, one logit.

use crate::draws::Draws;
use crate::layers::relu;
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};

const DROPOUT: f64 = 0.5;

/// Tells domains apart: positive for the target, negative for the source.
#[derive(Module, Debug)]
pub struct Discriminator {
    fc1: Linear,
    fc2: Linear,
    fc3: Linear,
    /// Share of the units that are left out in training.
    pub(crate) dropout: f64,
}

impl Discriminator {
    pub(crate) fn new(columns: usize, width: usize, draws: &mut Draws, device: &Device) -> Self {
        Discriminator {
            fc1: draws.normal_linear(columns, width, 0.01, 0.0, device),
            fc2: draws.normal_linear(width, width, 0.01, 0.0, device),
            fc3: draws.normal_linear(width, 1, 0.3, 0.0, device),
            dropout: DROPOUT,
        }
    }

    /// One logit a row, with units left out as `draws` decides.
    pub(crate) fn forward(&self, features: Tensor<2>, draws: &mut Draws) -> Tensor<2> {
        let x = self.drop_units(relu(self.fc1.forward(features)), draws);
        let x = self.drop_units(relu(self.fc2.forward(x)), draws);
        self.fc3.forward(x)
    }

    fn drop_units(&self, x: Tensor<2>, draws: &mut Draws) -> Tensor<2> {
        let kept = (1.0 / (1.0 - self.dropout)) as f32;
        let count = x.shape().num_elements();
        let mask: Vec<f32> =
            (0..count).map(|_| if draws.chance(self.dropout) { 0.0 } else { kept }).collect();
        let mask = Tensor::from_data(TensorData::new(mask, x.dims()), &x.device());
        x * mask
    }
}
