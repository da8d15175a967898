//! A small network over features that were extracted before.

use super::{DomainNorm, Pass};
use crate::draws::Draws;
use crate::layers::relu;
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};

/// One hidden layer with a normalisation per domain: features in, 256 better ones out.
#[derive(Module, Debug)]
pub struct Adapter {
    fc1: Linear,
    bn1: DomainNorm,
}

impl Adapter {
    /// Features of the hidden layer.
    pub const WIDTH: usize = 256;

    pub(crate) fn new(columns: usize, width: usize, draws: &mut Draws, device: &Device) -> Self {
        Adapter { fc1: draws.linear(columns, width, device), bn1: DomainNorm::new(width, 1e-5, device) }
    }

    /// The hidden layer.
    pub fn features(&self, rows: Tensor<2>, pass: Pass) -> Tensor<2> {
        relu(self.bn1.forward(self.fc1.forward(rows), pass))
    }

    /// Gives the source a normalisation of its own, equal to the target's so far.
    pub fn split_domains(&mut self) {
        self.bn1.split();
    }
}
