//! Every layer beside burn's, there and back, and beside finite differences.

use super::*;
use burn::nn::conv::Conv2dConfig;
use burn::nn::pool::MaxPool2dConfig;
use burn::tensor::Device;

/// Numbers without a pattern, from -1 to 1.
fn some<const D: usize>(shape: [usize; D], device: &Device, salt: usize) -> Tensor<D> {
    let count: usize = shape.iter().product();
    let value = |at: usize| {
        let mixed = (at + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    Tensor::from_data(TensorData::new((0..count).map(value).collect::<Vec<f32>>(), shape), device)
}

fn read<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

fn assert_close(ours: &[f32], theirs: &[f32], what: &str) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let worst = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs() / (1.0 + b.abs())).fold(0.0, f32::max);
    assert!(worst < 1e-4, "{what}: {worst}");
}

/// A convolution: channels and maps, kernel, stride, groups, padding, and the count, height and width of the images.
type Case = ([usize; 2], usize, usize, usize, PaddingConfig2d, [usize; 3]);

const CONVOLUTIONS: [Case; 11] = [
    ([3, 8], 7, 2, 1, PaddingConfig2d::Explicit(3, 3, 3, 3), [2, 17, 20]),
    ([4, 6], 3, 1, 1, PaddingConfig2d::Explicit(1, 1, 1, 1), [3, 9, 7]),
    ([4, 6], 3, 2, 1, PaddingConfig2d::Explicit(1, 1, 1, 1), [3, 8, 8]),
    // More images than are worked on together.
    ([5, 70], 3, 1, 1, PaddingConfig2d::Explicit(1, 1, 1, 1), [150, 2, 2]),
    ([5, 9], 1, 1, 1, PaddingConfig2d::Valid, [2, 18, 18]),
    ([5, 9], 1, 2, 1, PaddingConfig2d::Valid, [2, 7, 6]),
    ([3, 4], 3, 2, 1, PaddingConfig2d::Same, [2, 10, 9]),
    ([6, 6], 3, 1, 6, PaddingConfig2d::Same, [2, 6, 5]),
    ([6, 6], 5, 2, 6, PaddingConfig2d::Same, [3, 14, 13]),
    // A kernel larger than the image.
    ([6, 6], 5, 2, 6, PaddingConfig2d::Same, [2, 2, 3]),
    ([1, 20], 5, 1, 1, PaddingConfig2d::Valid, [11, 28, 28]),
];

#[test]
fn convolutions_are_those_of_burn_there_and_back() {
    let device = Device::flex().autodiff();
    for (channels, kernel, stride, groups, padding, [count, height, width]) in CONVOLUTIONS {
        let what = format!("{channels:?} {kernel} {stride} {groups} {padding:?} {height}×{width}");
        let mut conv = Conv2dConfig::new(channels, [kernel, kernel])
            .with_stride([stride, stride])
            .with_groups(groups)
            .with_padding(padding)
            .init(&device);
        let [maps, of_group, ..] = conv.weight.val().dims();
        conv.weight = burn::module::Param::from_tensor(some([maps, of_group, kernel, kernel], &device, 7));
        let images = some([count, channels[0], height, width], &device, 0);
        let run = |forward: &dyn Fn(Tensor<4>) -> Tensor<4>| {
            let images = images.clone().detach().require_grad();
            let out = forward(images.clone());
            let weighted = out.clone() * some(out.dims(), &device, 3);
            let gradients = weighted.sum().backward();
            let bias = conv.bias.as_ref().unwrap();
            [
                read(out),
                read(images.grad(&gradients).unwrap()),
                read(conv.weight.val().grad(&gradients).unwrap()),
                read(bias.val().grad(&gradients).unwrap()),
            ]
        };
        let theirs = run(&|images| conv.forward(images));
        let ours = run(&|images| by_hand(&conv, &images).unwrap());
        for ((ours, theirs), of) in ours.iter().zip(&theirs).zip(["maps", "images", "weights", "bias"]) {
            assert_close(ours, theirs, &format!("{what}, {of}"));
        }
        // Without a graph it is the same.
        let plain = images.clone().inner();
        let conv = burn::module::Module::valid(&conv);
        assert_eq!(read(by_hand(&conv, &plain).unwrap()), ours[0], "{what}");
    }
}

#[test]
fn the_largest_of_every_window_is_that_of_burn() {
    let device = Device::flex().autodiff();
    for (kernel, stride, border, [height, width]) in
        [(3, 2, 1, [8, 9]), (2, 2, 0, [6, 6]), (2, 2, 0, [5, 7]), (3, 1, 1, [4, 4])]
    {
        let padding = || PaddingConfig2d::Explicit(border, border, border, border);
        let pool = MaxPool2dConfig::new([kernel, kernel])
            .with_strides([stride, stride])
            .with_padding(padding())
            .init();
        let run = |forward: &dyn Fn(Tensor<4>) -> Tensor<4>| {
            let images = some([3, 4, height, width], &device, 1).require_grad();
            let out = forward(images.clone());
            let gradients = (out.clone() * some(out.dims(), &device, 5)).sum().backward();
            (read(out), read(images.grad(&gradients).unwrap()))
        };
        let ours = run(&|images| max_pool(&pool, images));
        assert_eq!(ours, run(&|images| pool.forward(images)));
    }
}

#[test]
fn gradients_of_a_normalisation_are_finite_differences() {
    let (channels, places, count) = (3, 5, 4);
    let layer = BatchNorm { channels, places, epsilon: 1e-3 };
    let device = Device::flex();
    let inputs = [
        read(some([count, channels, places], &device, 1)),
        read(some([1, channels, 1], &device, 2)),
        read(some([1, channels, 1], &device, 3)),
    ];
    let along = read(some([count, channels, places], &device, 4));
    let loss = |inputs: &[Vec<f32>; 3]| {
        let (out, _) = layer.forward(inputs.each_ref().map(Vec::as_slice));
        out.iter().zip(&along).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
    };
    let slices = inputs.each_ref().map(Vec::as_slice);
    let (_, moments) = layer.forward(slices);
    for (channel, &mean) in moments.means.iter().enumerate() {
        let values = inputs[0].chunks(places).skip(channel).step_by(channels).flatten();
        let want: f32 = values.clone().sum::<f32>() / (count * places) as f32;
        let variance = values.map(|x| (x - want).powi(2)).sum::<f32>() / (count * places) as f32;
        assert!((mean - want).abs() < 1e-6 && (moments.variances[channel] - variance).abs() < 1e-6);
    }
    let found = layer.backward(slices, &moments, &along, [true; 3]);
    for (which, gradient) in found.iter().enumerate() {
        for at in 0..gradient.len() {
            let mut moved = inputs.clone();
            let step = 1e-2;
            moved[which][at] += step;
            let above = loss(&moved);
            moved[which][at] -= 2.0 * step;
            let slope = (above - loss(&moved)) / (2.0 * f64::from(step));
            let have = f64::from(gradient[at]);
            assert!((have - slope).abs() < 2e-3 * (1.0 + slope.abs()), "{which} {at}: {have} {slope}");
        }
    }
}

#[test]
fn rectifiers_are_those_of_burn_there_and_back() {
    let device = Device::flex().autodiff();
    let run = |forward: &dyn Fn(Tensor<2>) -> Tensor<2>| {
        let x = (some([40, 90], &device, 2) * 9.0).detach().require_grad();
        let out = forward(x.clone());
        let gradients = (out.clone() * some([40, 90], &device, 5)).sum().backward();
        (read(out), read(x.grad(&gradients).unwrap()))
    };
    assert_eq!(run(&relu), run(&activation::relu));
    assert_eq!(run(&relu6), run(&|x| x.clamp(0.0, 6.0)));
}
