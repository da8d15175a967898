//! MSTN's loss: the squared distance between the class centroids of the two domains.

use super::one_hot;
use burn::tensor::{Device, Tensor, TensorData};

/// Share of the past in a moving centroid.
const THETA: f64 = 0.7;

/// Moving centroids of all classes in both domains.
#[derive(Clone, Debug)]
pub(crate) struct Centroids {
    classes: usize,
    pub(crate) source: Moving,
    pub(crate) target: Moving,
}

/// Moving centroids of one domain; a class that has not been seen has none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moving {
    /// Class after class.
    pub(crate) values: Vec<f32>,
    pub(crate) seen: Vec<bool>,
}

impl Centroids {
    pub(crate) fn new(classes: usize, columns: usize) -> Self {
        let none = Moving { values: vec![0.0; classes * columns], seen: vec![false; classes] };
        Centroids { classes, source: none.clone(), target: none }
    }

    /// Takes a batch of both domains in; mean over all entries of (Cs − Ct)², over the classes seen in both.
    pub(crate) fn distance(
        &mut self,
        source: Tensor<2>,
        source_classes: &[Option<u32>],
        target: Tensor<2>,
        target_classes: &[Option<u32>],
    ) -> Tensor<1> {
        let device = source.device();
        let [_, columns] = source.dims();
        let source = self.source.update(source, source_classes, self.classes);
        let target = self.target.update(target, target_classes, self.classes);
        let both = self.source.seen.iter().zip(&self.target.seen).map(|(&s, &t)| f32::from(u8::from(s && t)));
        let both: Tensor<2> = Tensor::from_data(TensorData::new(both.collect(), [self.classes, 1]), &device);
        let difference = (source - target) * both;
        (difference.clone() * difference).sum() / (self.classes * columns) as f64
    }
}

impl Moving {
    /// θ·old + (1 − θ)·mean of the batch where a class has items, the first mean as it is, and the old value where it
    /// has none. The gradient goes through the batch only.
    fn update(&mut self, features: Tensor<2>, of: &[Option<u32>], classes: usize) -> Tensor<2> {
        let device = features.device();
        let [_, columns] = features.dims();
        let mut counts = vec![0usize; classes];
        of.iter().flatten().for_each(|&class| counts[class as usize] += 1);
        let column = |values: Vec<f32>, device: &Device| -> Tensor<2> {
            Tensor::from_data(TensorData::new(values, [classes, 1]), device)
        };
        let share = |class: usize| match (counts[class], self.seen[class]) {
            (0, _) => 0.0,
            (_, false) => 1.0,
            (_, true) => 1.0 - THETA,
        };
        let new: Vec<f32> =
            (0..classes).map(|class| (share(class) / counts[class].max(1) as f64) as f32).collect();
        let old: Vec<f32> = (0..classes).map(|class| (1.0 - share(class)) as f32).collect();
        let before = Tensor::from_data(TensorData::new(self.values.clone(), [classes, columns]), &device);
        let sums = one_hot(of, classes, &device).transpose().matmul(features);
        let moved = before * column(old, &device) + sums * column(new, &device);
        self.values = moved.clone().detach().into_data().iter::<f32>().collect();
        counts.iter().zip(&mut self.seen).for_each(|(&count, seen)| *seen |= count > 0);
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::super::scalar;
    use super::super::tests::matrix;
    use super::*;

    #[test]
    fn by_hand_with_an_absent_class() {
        let device = Device::flex().autodiff();
        let mut centroids = Centroids::new(3, 2);
        // Class 2 is nowhere, class 1 is not in the target.
        let source = matrix(&[&[1.0, 0.0], &[3.0, 0.0], &[0.0, 5.0]], &device);
        let target = matrix(&[&[0.0, 1.0], &[7.0, 7.0]], &device);
        let classes = [Some(0), Some(0), Some(1)];
        let loss = centroids.distance(source.clone(), &classes, target.clone(), &[Some(0), None]);
        // Class 0: (2, 0) and (0, 1); 5 over 3 classes of 2 entries.
        assert!((scalar(&loss) - 5.0 / 6.0).abs() < 1e-6);
        assert_eq!(centroids.source.seen, [true, true, false]);
        assert_eq!(centroids.target.seen, [true, false, false]);

        // Class 0 moves to 0.7·(2, 0) + 0.3·(0, 5); class 1 stays.
        let x = matrix(&[&[0.0, 5.0]], &device).require_grad();
        let loss = centroids.distance(x.clone(), &[Some(0)], target, &[Some(0), Some(0)]);
        assert_eq!(centroids.source.values, [1.4, 1.5, 0.0, 5.0, 0.0, 0.0]);
        // Target: 0.7·(0, 1) + 0.3·(3.5, 4).
        let expected = ((1.4f64 - 1.05).powi(2) + (1.5f64 - 1.9).powi(2)) / 6.0;
        assert!((scalar(&loss) - expected).abs() < 1e-6);
        // The past is not differentiated: ∂/∂x = 2·0.3·(Cs − Ct)/6.
        let gradient: Vec<f32> = x.grad(&loss.backward()).unwrap().into_data().iter::<f32>().collect();
        assert!((gradient[0] - 0.035).abs() < 1e-6 && (gradient[1] + 0.04).abs() < 1e-6, "{gradient:?}");
    }
}
