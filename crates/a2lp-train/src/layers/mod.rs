//! Layers by hand for the CPU, forward and backward: convolutions, batch normalisation, the largest of a window.
//!
//! At the sizes we train, burn's own spend most of their time on the way back. A layer here is plain numbers in and out, and knows
//! nothing of burn; [`apply`] makes an operation of it that burn differentiates. On other devices, and wherever a
//! function here returns `None`, the caller uses burn's.
//!
//! Sums over images run over parts of a batch that depend on its size alone, so the number of threads does not show in the bits.

mod batch_norm;
mod convolution;
mod depthwise;
mod max_pool;
mod relu;
#[cfg(test)]
mod tests;

use crate::training::Group;
use batch_norm::{BatchNorm, Moments};
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::{Autodiff, AutodiffBackend, Flex, TensorMetadata};
use burn::nn::PaddingConfig2d;
use burn::nn::conv::Conv2d;
use burn::nn::pool::MaxPool2d;
use burn::tensor::{Tensor, TensorData, activation};
use convolution::Convolution;
use depthwise::Depthwise;
use max_pool::MaxPool;
use rayon::prelude::*;
use relu::Relu;
use std::fmt::Debug;

/// A function of `N` tensors that knows its gradient.
pub(crate) trait Layer<const N: usize>: Clone + Send + Sync + Debug + 'static {
    /// What the way back needs besides the inputs.
    type Trail: Clone + Send + Debug + 'static;

    /// The numbers that come out.
    fn forward(&self, inputs: [&[f32]; N]) -> (Vec<f32>, Self::Trail);

    /// The gradients of the inputs that are wanted; the others may be empty.
    fn backward(
        &self,
        inputs: [&[f32]; N],
        trail: &Self::Trail,
        gradient: &[f32],
        wanted: [bool; N],
    ) -> [Vec<f32>; N];
}

type Tracked = <Autodiff<Flex> as burn::backend::BackendTypes>::FloatTensorPrimitive;

/// A tensor on the CPU, with or without a graph behind it.
pub(crate) enum Held {
    Plain(FlexTensor),
    Tracked(Tracked),
}

impl Held {
    /// `None` for a tensor on another device.
    pub(crate) fn of<const D: usize>(tensor: &Tensor<D>) -> Option<Self> {
        match tensor.clone().try_into_primitive::<Autodiff<Flex>>() {
            Ok(tracked) => Some(Held::Tracked(tracked)),
            Err(_) => tensor.clone().try_into_primitive::<Flex>().ok().map(Held::Plain),
        }
    }

    fn plain(self) -> FlexTensor {
        match self {
            Held::Plain(tensor) => tensor,
            Held::Tracked(tensor) => tensor.into_primitive(),
        }
    }

    fn tracked(self) -> Tracked {
        match self {
            Held::Plain(tensor) => Autodiff::<Flex>::from_inner(tensor),
            Held::Tracked(tensor) => tensor,
        }
    }
}

/// What a layer has to keep until the gradient comes.
#[derive(Clone, Debug)]
struct Kept<L, T, const N: usize> {
    layer: L,
    inputs: [FlexTensor; N],
    trail: T,
}

#[derive(Debug)]
struct Operation<L>(std::marker::PhantomData<fn() -> L>);

impl<L: Layer<N>, const N: usize> Backward<Flex, N> for Operation<L> {
    type State = Kept<L, L::Trail, N>;

    fn backward(self, ops: Ops<Self::State, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let Kept { layer, inputs, trail } = ops.state;
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let found = layer.backward(inputs.each_ref().map(numbers), &trail, numbers(&gradient), wanted);
        for ((parent, input), gradient) in ops.parents.into_iter().zip(&inputs).zip(found) {
            if let Some(parent) = parent {
                let data = TensorData::new(gradient, input.shape());
                grads.register::<Flex>(parent.id, FlexTensor::from_data(data));
            }
        }
    }
}

/// The numbers of a tensor whose rows lie one after the other.
fn numbers(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice::<f32>().unwrap_or_default()
}

/// Runs a layer, as a part of the graph if any input is one. `shape` is that of what comes out.
pub(crate) fn apply<L: Layer<N>, const N: usize, const D: usize>(
    layer: L,
    inputs: [Held; N],
    shape: [usize; D],
) -> (Tensor<D>, L::Trail) {
    let run = |inputs: [FlexTensor; N]| {
        let inputs = inputs.map(|input| input.to_contiguous());
        let (out, trail) = layer.forward(inputs.each_ref().map(numbers));
        (FlexTensor::from_data(TensorData::new(out, shape)), inputs, trail)
    };
    if inputs.iter().all(|input| matches!(input, Held::Plain(_))) {
        let (out, _, trail) = run(inputs.map(Held::plain));
        return (Tensor::from_primitive::<Flex>(out), trail);
    }
    let tracked = inputs.map(Held::tracked);
    let nodes = tracked.each_ref().map(|tensor| tensor.node());
    let (out, inputs, trail) = run(tracked.map(|tensor| tensor.into_primitive()));
    let operation = Operation::<L>(std::marker::PhantomData);
    let prepared = Backward::<Flex, N>::prepare::<
        burn::backend::autodiff::checkpoint::strategy::NoCheckpointing,
    >(operation, nodes);
    let out = match prepared.compute_bound().stateful() {
        OpsKind::Tracked(prep) => {
            prep.finish(Kept { layer: layer.clone(), inputs, trail: trail.clone() }, out)
        }
        OpsKind::UnTracked(prep) => prep.finish(out),
    };
    (Tensor::from_primitive::<Autodiff<Flex>>(out), trail)
}

/// The images convolved with the kernels of a layer of burn's, and its bias added.
pub(crate) fn convolve(conv: &Conv2d, images: Tensor<4>) -> Tensor<4> {
    by_hand(conv, &images).unwrap_or_else(|| conv.forward(images))
}

fn by_hand(conv: &Conv2d, images: &Tensor<4>) -> Option<Tensor<4>> {
    let weight = conv.weight.val();
    let [count, channels, height, width] = images.dims();
    let [maps, _, kernel_height, kernel_width] = weight.dims();
    let kernel = [kernel_height, kernel_width];
    if conv.dilation != [1, 1] || count * height * width == 0 {
        return None;
    }
    let windows = Windows::new([height, width], kernel, conv.stride, &conv.padding);
    let inputs = [Held::of(images)?, Held::of(&weight)?];
    let shape = [count, maps, windows.out[0], windows.out[1]];
    let out = match conv.groups {
        1 => apply(Convolution { channels, maps, windows }, inputs, shape).0,
        groups if groups == channels && maps == channels => {
            apply(Depthwise { channels, windows }, inputs, shape).0
        }
        _ => return None,
    };
    Some(match &conv.bias {
        Some(bias) => out + bias.val().reshape([1, maps, 1, 1]),
        None => out,
    })
}

/// Numbers below 0 become 0.
pub(crate) fn relu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    rectified(&x, f32::INFINITY).unwrap_or_else(|| activation::relu(x))
}

/// Numbers below 0 become 0, and those above 6 become 6.
pub(crate) fn relu6<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    rectified(&x, 6.0).unwrap_or_else(|| x.clamp(0.0, 6.0))
}

fn rectified<const D: usize>(x: &Tensor<D>, most: f32) -> Option<Tensor<D>> {
    Some(apply(Relu { most }, [Held::of(x)?], x.dims()).0)
}

/// The largest number of every window of the images.
pub(crate) fn max_pool(pool: &MaxPool2d, images: Tensor<4>) -> Tensor<4> {
    let [count, channels, height, width] = images.dims();
    if pool.dilation != [1, 1] || pool.ceil_mode || count * height * width == 0 {
        return pool.forward(images);
    }
    let Some(held) = Held::of(&images) else {
        return pool.forward(images);
    };
    let windows = Windows::new([height, width], pool.kernel_size, pool.stride, &pool.padding);
    apply(MaxPool { windows }, [held], [count, channels, windows.out[0], windows.out[1]]).0
}

/// Every channel (the second dimension) normalised by the batch, scaled and shifted; and its means and variances. `None` on
/// devices other than the CPU.
pub(crate) fn batch_norm(
    x: &Tensor<3>,
    weight: &Tensor<1>,
    bias: &Tensor<1>,
    epsilon: f64,
) -> Option<(Tensor<3>, Tensor<1>, Tensor<1>)> {
    let [_, channels, places] = x.dims();
    let inputs = [Held::of(x)?, Held::of(weight)?, Held::of(bias)?];
    let (out, Moments { means, variances }) =
        apply(BatchNorm { channels, places, epsilon }, inputs, x.dims());
    let tensor = |values| Tensor::from_data(TensorData::new(values, [channels]), &x.device());
    Some((out, tensor(means), tensor(variances)))
}

/// A step of stochastic gradient descent with momentum: g ← g + decay·w, v ← momentum·v + g, w ← w − rate·v. Returns w and v; `None`
/// on devices other than the CPU.
pub(crate) fn descend<const D: usize>(
    weights: &Tensor<D>,
    gradient: &Tensor<D>,
    velocity: Option<&Tensor<1>>,
    momentum: f32,
    group: Group,
) -> Option<(Tensor<D>, Tensor<1>)> {
    let contiguous = |held: Held| held.plain().to_contiguous();
    let (w, g) = (contiguous(Held::of(weights)?), contiguous(Held::of(gradient)?));
    let v = match velocity {
        Some(velocity) => Some(contiguous(Held::of(velocity)?)),
        None => None,
    };
    let (w, g, v) = (numbers(&w), numbers(&g), v.as_ref().map(numbers));
    let (rate, decay) = (group.rate as f32, group.decay as f32);
    let (mut moved, mut velocity) = (vec![0f32; w.len()], vec![0f32; w.len()]);
    /// Numbers of a task.
    const TASK: usize = 1 << 15;
    moved.par_chunks_mut(TASK).zip(velocity.par_chunks_mut(TASK)).enumerate().for_each(
        |(task, (moved, velocity))| {
            let at = task * TASK..task * TASK + moved.len();
            let before = v.map(|v| &v[at.clone()]);
            for (i, (w, g)) in w[at.clone()].iter().zip(&g[at.clone()]).enumerate() {
                let g = g + w * decay;
                velocity[i] = before.map_or(g, |before| before[i] * momentum + g);
                moved[i] = w - velocity[i] * rate;
            }
        },
    );
    let count = velocity.len();
    let moved = FlexTensor::from_data(TensorData::new(moved, weights.dims()));
    let velocity = FlexTensor::from_data(TensorData::new(velocity, [count]));
    Some((Tensor::from_primitive::<Flex>(moved), Tensor::from_primitive::<Flex>(velocity)))
}

/// Windows that slide over an image: their size and steps, the border around the image, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Windows {
    /// Height and width of the image.
    image: [usize; 2],
    kernel: [usize; 2],
    stride: [usize; 2],
    /// Rows above and columns left of the image that windows may cover.
    before: [usize; 2],
    /// Windows down and across.
    out: [usize; 2],
}

impl Windows {
    pub(crate) fn new(
        image: [usize; 2],
        kernel: [usize; 2],
        stride: [usize; 2],
        padding: &PaddingConfig2d,
    ) -> Self {
        let border = |axis: usize| match padding {
            PaddingConfig2d::Valid => (0, 0),
            PaddingConfig2d::Explicit(top, left, bottom, right) => {
                if axis == 0 {
                    (*top, *bottom)
                } else {
                    (*left, *right)
                }
            }
            // As many windows as steps fit into the image, the odd row or column below or to the right.
            PaddingConfig2d::Same => {
                let windows = image[axis].div_ceil(stride[axis]);
                let all = ((windows - 1) * stride[axis] + kernel[axis]).saturating_sub(image[axis]);
                (all / 2, all - all / 2)
            }
        };
        let borders = [border(0), border(1)];
        let out = |axis: usize| {
            let covered = image[axis] + borders[axis].0 + borders[axis].1;
            (covered + stride[axis]).saturating_sub(kernel[axis]) / stride[axis]
        };
        Windows { image, kernel, stride, before: borders.map(|border| border.0), out: [out(0), out(1)] }
    }

    /// Places of an image.
    fn pixels(&self) -> usize {
        self.image[0] * self.image[1]
    }

    /// Windows of an image.
    fn places(&self) -> usize {
        self.out[0] * self.out[1]
    }

    /// Along an axis, for a place within the window: the windows whose place is inside the image, and where the first one's lies.
    fn inside(&self, axis: usize, within: usize) -> (std::ops::Range<usize>, usize) {
        let (stride, before) = (self.stride[axis], self.before[axis]);
        let first = before.saturating_sub(within).div_ceil(stride);
        let end = (self.image[axis] + before).saturating_sub(within).div_ceil(stride).min(self.out[axis]);
        (first..end.max(first), (first * stride + within).saturating_sub(before))
    }
}
