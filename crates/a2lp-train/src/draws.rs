//! Our own random numbers, because the deep-learning library shares one generator in the whole process.

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A stream of random numbers that depends on the seed and on what it is for.
pub(crate) struct Draws(ChaCha8Rng);

/// What a stream is for; streams of one seed have nothing to do with each other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Weights,
    SourceOrder,
    TargetOrder,
    ClassOrder,
    Step,
    Augment,
}

impl Draws {
    /// The `at`-th stream for a purpose: any step of a run can be drawn again without those before it.
    pub(crate) fn new(seed: u64, purpose: Purpose, at: u64) -> Self {
        let mut draws = ChaCha8Rng::seed_from_u64(seed);
        draws.set_stream(at * 8 + purpose as u64);
        Draws(draws)
    }

    pub(crate) fn chance(&mut self, of: f64) -> bool {
        self.0.random_range(0.0..1.0) < of
    }

    pub(crate) fn between(&mut self, low: f32, high: f32) -> f32 {
        self.0.random_range(low..high)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end)
    }

    pub(crate) fn seed(&mut self) -> u64 {
        self.0.random_range(0..u64::MAX)
    }

    /// 0, 1, …, count − 1 in another order.
    pub(crate) fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }

    /// `wanted` different ones of `from`.
    pub(crate) fn some(&mut self, from: &[usize], wanted: usize) -> Vec<usize> {
        let mut left = from.to_vec();
        let wanted = wanted.min(left.len());
        for at in 0..wanted {
            let other = at + self.below(left.len() - at);
            left.swap(at, other);
        }
        left.truncate(wanted);
        left
    }

    fn normal(&mut self) -> f32 {
        // Box–Muller.
        let (a, b): (f64, f64) = (self.0.random_range(f64::MIN_POSITIVE..1.0), self.0.random_range(0.0..1.0));
        ((-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()) as f32
    }

    /// PyTorch's start of linear layers and convolutions: ±1/√(values that go in).
    pub(crate) fn uniform<const D: usize>(
        &mut self,
        shape: [usize; D],
        fan_in: usize,
        device: &Device,
    ) -> Param<Tensor<D>> {
        let bound = 1.0 / (fan_in.max(1) as f32).sqrt();
        let values = (0..shape.iter().product()).map(|_| self.0.random_range(-bound..bound)).collect();
        param(values, shape, device)
    }

    pub(crate) fn linear(&mut self, columns: usize, width: usize, device: &Device) -> Linear {
        Linear {
            weight: self.uniform([columns, width], columns, device),
            bias: Some(self.uniform([width], columns, device)),
        }
    }

    pub(crate) fn normal_linear(
        &mut self,
        columns: usize,
        width: usize,
        deviation: f32,
        bias: f32,
        device: &Device,
    ) -> Linear {
        let values = (0..columns * width).map(|_| deviation * self.normal()).collect();
        Linear {
            weight: param(values, [columns, width], device),
            bias: Some(param(vec![bias; width], [width], device)),
        }
    }
}

fn param<const D: usize>(values: Vec<f32>, shape: [usize; D], device: &Device) -> Param<Tensor<D>> {
    Param::from_data(TensorData::new(values, shape), device)
}
