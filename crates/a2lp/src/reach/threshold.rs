//! The threshold below which reach is too small, from the upper half of all reaches: most items are of known classes.

/// Standard deviations below the middle at which an item is too far off: the 5 % quantile of a normal distribution.
const DEVIATIONS: f64 = 1.645;
/// Standard deviations between the middle and the 0.9 quantile.
const UPPER: f64 = 1.2816;
/// No threshold is higher.
const HIGHEST: f64 = 0.4;
/// A threshold that grows by less stays.
const STEP: f64 = 1e-9;
/// Most steps; a few are enough in practice.
const STEPS: usize = 50;

/// The lowest threshold that the items above it confirm: with their median c and s = ln(0.9 quantile / c) / 1.2816 it is
/// c·e^(−1.645·s), but at most 0.4.
pub(super) fn find_threshold(reach: &[f32]) -> f64 {
    let sorted = sorted(reach);
    let mut threshold = 0.0;
    for _ in 0..STEPS {
        let kept = above(&sorted, threshold);
        let (middle, upper) = (quantile(kept, 0.5), quantile(kept, 0.9));
        let next = match middle > 0.0 {
            true => HIGHEST.min(middle * (-DEVIATIONS * (upper / middle).ln() / UPPER).exp()),
            false => 0.0,
        };
        if next <= threshold + STEP {
            break;
        }
        threshold = next;
    }
    threshold
}

/// ln(0.9 quantile / median) of the reaches from the threshold on; `None` if the median is 0.
pub(super) fn spread(reach: &[f32], threshold: f64) -> Option<f64> {
    let sorted = sorted(reach);
    let kept = above(&sorted, threshold);
    let (middle, upper) = (quantile(kept, 0.5), quantile(kept, 0.9));
    (middle > 0.0).then(|| (upper / middle).ln())
}

fn sorted(reach: &[f32]) -> Vec<f64> {
    let mut sorted: Vec<f64> = reach.iter().map(|&value| f64::from(value)).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn above(sorted: &[f64], threshold: f64) -> &[f64] {
    &sorted[sorted.partition_point(|&value| value < threshold)..]
}

/// Between two values it is interpolated; 0 if there are none.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = share * last as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    sorted[low] + part * (sorted[(low + 1).min(last)] - sorted[low])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_interpolated() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.5), 2.0);
        assert!((quantile(&[1.0, 2.0, 4.0], 0.9) - 3.6).abs() < 1e-12);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn a_threshold_is_the_lower_tail_of_its_own_upper_half() {
        // ln(1.2) / 1.2816 = 0.14226; e^(-1.645 · 0.14226) = 0.7913; the cap decides.
        let even: Vec<f32> = (0..=10).map(|at| 0.75 + 0.05 * at as f32).collect();
        assert_eq!(find_threshold(&even), HIGHEST);
        // Median 0.1, 0.9 quantile 0.1: the whole set at one point, which is its own threshold.
        assert!((find_threshold(&[0.1; 9]) - 0.1).abs() < 1e-8);
        assert!(find_threshold(&[0.0, 0.0, 0.0]) == 0.0);
        // A tail of small values does not move the middle far.
        let tailed: Vec<f32> = even.iter().copied().chain([0.01, 0.02, 0.03]).collect();
        assert_eq!(tailed.iter().filter(|&&value| f64::from(value) < find_threshold(&tailed)).count(), 3);
    }
}
