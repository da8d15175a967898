//! Loss functions. One function per formula; each takes tensors and gives a scalar.

mod cdd;
mod centroids;

pub(crate) use cdd::{Grouped, contrastive_discrepancy};
pub(crate) use centroids::Centroids;

use burn::tensor::activation::{log_sigmoid, log_softmax, softmax};
use burn::tensor::{Device, Tensor, TensorData};

/// One row per item with a 1 in the column of its class; rows of `None` are empty.
pub(crate) fn one_hot(classes: &[Option<u32>], count: usize, device: &Device) -> Tensor<2> {
    let mut values = vec![0f32; classes.len() * count];
    for (row, class) in classes.iter().enumerate() {
        if let Some(class) = class {
            values[row * count + *class as usize] = 1.0;
        }
    }
    Tensor::from_data(TensorData::new(values, [classes.len(), count]), device)
}

/// Mean over the items of −ln p(class).
pub(crate) fn cross_entropy(logits: Tensor<2>, classes: &[u32]) -> Tensor<1> {
    let ones: Vec<(Option<u32>, f32)> = classes.iter().map(|&class| (Some(class), 1.0)).collect();
    weighted_cross_entropy(logits, &ones)
}

/// Σ w·(−ln p(class)) / Σ w over items that have a class; 0 where none has.
pub(crate) fn weighted_cross_entropy(logits: Tensor<2>, items: &[(Option<u32>, f32)]) -> Tensor<1> {
    let [rows, count] = logits.dims();
    let total: f32 = items.iter().filter(|(class, _)| class.is_some()).map(|(_, weight)| weight).sum();
    let mut weights = vec![0f32; rows * count];
    for (row, (class, weight)) in items.iter().enumerate() {
        if let Some(class) = class {
            weights[row * count + *class as usize] = -weight / total.max(f32::MIN_POSITIVE);
        }
    }
    let weights = Tensor::from_data(TensorData::new(weights, [rows, count]), &logits.device());
    (log_softmax(logits, 1) * weights).sum()
}

/// Mean entropy of the predictions (eq. 2): small where each item is sure of some class.
pub(crate) fn entropy(logits: Tensor<2>) -> Tensor<1> {
    let [rows, _] = logits.dims();
    (softmax(logits.clone(), 1) * log_softmax(logits, 1)).sum() * (-1.0 / rows.max(1) as f64)
}

/// Gradient reversal: passes values on, and gradients times −strength.
pub(crate) fn reverse_gradient(x: Tensor<2>, strength: f64) -> Tensor<2> {
    let value = x.clone().detach();
    value.clone() + (value - x) * strength
}

/// Loss of the discriminator: mean over the target of −ln σ(z), plus mean over the source of −ln σ(−z).
pub(crate) fn adversarial(source: Tensor<2>, target: Tensor<2>) -> Tensor<1> {
    -log_sigmoid(target).mean() - log_sigmoid(-source).mean()
}

/// The value of a scalar.
pub(crate) fn scalar(loss: &Tensor<1>) -> f64 {
    let data = loss.clone().detach().into_data();
    data.iter::<f64>().next().unwrap_or(f64::NAN)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn matrix(rows: &[&[f32]], device: &Device) -> Tensor<2> {
        let values: Vec<f32> = rows.concat();
        Tensor::from_data(TensorData::new(values, [rows.len(), rows[0].len()]), device)
    }

    #[test]
    fn losses_by_hand() {
        let device = Device::flex();
        // p = (1/4, 3/4) and (1/2, 1/2).
        let logits = matrix(&[&[0.0, 3f32.ln()], &[1.0, 1.0]], &device);
        let ce = scalar(&cross_entropy(logits.clone(), &[1, 0]));
        assert!((ce - (-(0.75f64).ln() - 0.5f64.ln()) / 2.0).abs() < 1e-6, "{ce}");
        let weighted = scalar(&weighted_cross_entropy(logits.clone(), &[(Some(1), 0.5), (None, 9.0)]));
        assert!((weighted + 0.75f64.ln()).abs() < 1e-6, "{weighted}");
        assert_eq!(scalar(&weighted_cross_entropy(logits.clone(), &[(None, 1.0), (None, 1.0)])), 0.0);
        let h = scalar(&entropy(logits));
        let expected = (-(0.25 * 0.25f64.ln() + 0.75 * 0.75f64.ln()) + 2f64.ln()) / 2.0;
        assert!((h - expected).abs() < 1e-6, "{h}");
        // A discriminator that knows nothing: ln 2 for either domain.
        let zero = Tensor::zeros([3, 1], &device);
        let confused = scalar(&adversarial(zero.clone(), zero.clone()));
        assert!((confused - 2.0 * 2f64.ln()).abs() < 1e-6);
        let sure = scalar(&adversarial(zero.clone() - 9.0, zero + 9.0));
        assert!((0.0..1e-3).contains(&sure), "{sure}");
    }

    #[test]
    fn the_gradient_is_turned_round_and_scaled_and_the_value_is_not() {
        let device = Device::flex().autodiff();
        let x = matrix(&[&[1.0, -2.0]], &device).require_grad();
        let y = reverse_gradient(x.clone(), 0.25);
        assert_eq!(y.clone().into_data().iter::<f32>().collect::<Vec<_>>(), [1.0, -2.0]);
        let grads = (y * 3.0).sum().backward();
        let gradient = x.grad(&grads).unwrap().into_data();
        assert_eq!(gradient.iter::<f32>().collect::<Vec<_>>(), [-0.75, -0.75]);
    }
}
