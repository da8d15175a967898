//! The audit: how many labels are wrong, from answers about items drawn at random, with statements that hold however often one looks
//! and whenever one stops.
//!
//! The sets A_1 ⊂ … ⊂ A_10 are the most confident 10 %, 20 %, …, 100 % of the items. Each set has a *wealth* W: the stake of a gambler
//! who bets against "M or more of these labels are wrong". If that is true, W is a non-negative supermartingale that starts at 1, so it
//! reaches 1/δ at any time with probability at most δ (Ville's inequality). A set whose W has ever reached 1/δ is *signed off*: fewer
//! than M of its labels are wrong, with confidence 1 − δ. Sets are tested in a fixed order, the next larger one when one is signed off,
//! which needs no correction for testing several.

/// Sets of the ladder.
pub const SETS: usize = 10;
/// The set that is tested first: the most confident 30 %.
pub const FIRST_SET: usize = 3;
/// The probability that any statement of an audit is false.
pub const DELTA: f64 = 0.05;
/// Prior of the bets: a = ½, b = a(4/e − 1).
const A: f64 = 0.5;
/// Prior of the interval.
const INTERVAL_PRIOR: (f64, f64) = (1.0, 3.0);

/// The stake against "this many labels or more of a set are wrong".
#[derive(Clone, Debug, PartialEq)]
pub struct Wealth {
    size: usize,
    /// M: the smallest number of wrong labels that is too many.
    too_many: usize,
    b: f64,
    answers: usize,
    wrong: usize,
    log: f64,
    best_log: f64,
}

impl Wealth {
    /// Of a set of `size` items in which at most a share of `max_error` may be wrong.
    pub fn new(size: usize, max_error: f64) -> Self {
        // The small number keeps 0.05·1000 from being 49.999….
        let too_many = (max_error * size as f64 + 1e-9).floor() as usize + 1;
        let b = A * (4.0 / max_error - 1.0);
        Wealth { size, too_many, b, answers: 0, wrong: 0, log: 0.0, best_log: 0.0 }
    }

    /// Bets on the next item of the set in the order of the draw, and takes its answer.
    pub fn answer(&mut self, is_wrong: bool) {
        let (i, s) = (self.answers as f64, self.wrong as f64);
        let mu = (self.too_many as f64 - s) / (self.size as f64 - i);
        let eta = mu.min((A + s) / (A + self.b + i));
        self.log += match is_wrong {
            // Every item left would have to be wrong: one that is right refutes the hypothesis.
            _ if mu >= 1.0 => {
                if is_wrong {
                    0.0
                } else {
                    f64::INFINITY
                }
            }
            true => (eta / mu).ln(),
            false => ((1.0 - eta) / (1.0 - mu)).ln(),
        };
        self.answers += 1;
        self.wrong += usize::from(is_wrong);
        if self.wrong >= self.too_many {
            self.log = f64::NEG_INFINITY;
        } else if self.answers == self.size {
            self.log = f64::INFINITY;
        }
        self.best_log = self.best_log.max(self.log);
    }

    /// ln W after the last answer.
    pub fn log(&self) -> f64 {
        self.log
    }

    /// Has W ever reached 1/δ?
    pub fn signed_off(&self, delta: f64) -> bool {
        self.best_log >= -delta.ln()
    }

    /// Answers so far, and how many of them found a wrong label.
    pub fn answers(&self) -> (usize, usize) {
        (self.answers, self.wrong)
    }
}

/// The numbers of wrong labels among `size` that are still possible after `answers` of which `wrong` found one: (fewest, most), with
/// confidence 1 − δ at all times together.
///
/// With s wrong in t answers among N it keeps the numbers m with B(a+s, b+t−s)/B(a, b) < (1/δ)·(m)ₛ·(N−m)ₜ₋ₛ/(N)ₜ, where (n)ₖ is the falling
/// factorial.
pub fn wrong_interval(size: usize, answers: usize, wrong: usize, delta: f64) -> (usize, usize) {
    interval_with_prior(size, answers, wrong, delta, INTERVAL_PRIOR)
}

fn interval_with_prior(size: usize, t: usize, s: usize, delta: f64, (a, b): (f64, f64)) -> (usize, usize) {
    let ln_beta = |x: f64, y: f64| ln_gamma(x) + ln_gamma(y) - ln_gamma(x + y);
    let falling = |n: usize, k: usize| ln_gamma(n as f64 + 1.0) - ln_gamma((n - k) as f64 + 1.0);
    let evidence = ln_beta(a + s as f64, b + (t - s) as f64) - ln_beta(a, b);
    let possible =
        |m: usize| evidence - (falling(m, s) + falling(size - m, t - s) - falling(size, t)) < -delta.ln();
    // The likelihood rises up to its peak and falls beyond, so the possible numbers on either side of it have no gap.
    let (fewest, most) = (s, size - (t - s));
    let peak = (s * (size + 1)).checked_div(t).map_or(fewest, |peak| peak.clamp(fewest, most));
    let first = |range: std::ops::Range<usize>, is_past: &dyn Fn(usize) -> bool| {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_past(middle) { high = middle } else { low = middle + 1 }
        }
        low
    };
    let lowest = first(fewest..peak, &possible);
    let highest = first(peak + 1..most + 1, &|m| !possible(m)) - 1;
    (lowest, highest)
}

/// ln Γ(x) for x > 0: Stirling's series, after steps up to where it is exact.
fn ln_gamma(mut x: f64) -> f64 {
    let mut below = 0.0;
    while x < 10.0 {
        below += x.ln();
        x += 1.0;
    }
    let (r, r2) = (1.0 / x, 1.0 / (x * x));
    let series =
        r * (1.0 / 12.0 - r2 * (1.0 / 360.0 - r2 * (1.0 / 1260.0 - r2 * (1.0 / 1680.0 - r2 / 1188.0))));
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - below
}

/// What an audit is to show. It is fixed before the first answer.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Promise {
    /// The share of wrong labels that is allowed.
    pub max_error: f64,
    /// The probability that the statement is false.
    pub delta: f64,
    /// The set that is tested first, from 1 to 10.
    pub first_set: usize,
}

impl Promise {
    /// Fewer than this share wrong with 95 % confidence, tested from the most confident 30 % on.
    pub fn new(max_error: f64) -> Self {
        Promise { max_error, delta: DELTA, first_set: FIRST_SET }
    }
}

/// An audit of one version of the labels.
///
/// ```
/// use a2lp_review::audit::{Ladder, Promise};
///
/// // Four items; the draw shows them in this order.
/// let mut ladder = Ladder::new(&[0.9, 0.8, 0.7, 0.6], &[2, 0, 3, 1], Promise::new(0.05));
/// while let Some(item) = ladder.next() {
///     ladder.answer(item, item == 3);
/// }
/// assert_eq!(ladder.accepted(), 3);
/// ```
#[derive(Clone, Debug)]
pub struct Ladder {
    promise: Promise,
    /// Items of each set in the order of the draw.
    sets: Vec<Vec<usize>>,
    /// Items by confidence, the most confident first.
    ranked: Vec<usize>,
    wealth: Vec<Wealth>,
    answers: Vec<Option<bool>>,
    /// The set under test, from 0; all are signed off if there is none.
    testing: usize,
}

impl Ladder {
    /// Of items with these confidences, drawn in the order of `draw`, which names every item once.
    pub fn new(confidence: &[f64], draw: &[usize], promise: Promise) -> Self {
        let items = confidence.len();
        let mut ranked: Vec<usize> = (0..items).collect();
        ranked.sort_by(|&a, &b| confidence[b].total_cmp(&confidence[a]));
        let mut rank = vec![0; items];
        ranked.iter().enumerate().for_each(|(at, &item)| rank[item] = at);
        // As Python rounds: halves to the even number.
        let size = |set: usize| ((items * set) as f64 / SETS as f64).round_ties_even().max(1.0) as usize;
        let sizes: Vec<usize> = (1..=SETS).map(|set| size(set).min(items)).collect();
        let sets: Vec<Vec<usize>> = sizes
            .iter()
            .map(|&size| draw.iter().copied().filter(|&item| rank[item] < size).collect())
            .collect();
        let wealth = sizes.iter().map(|&size| Wealth::new(size, promise.max_error)).collect();
        let testing = promise.first_set.clamp(1, SETS) - 1;
        Ladder { promise, sets, ranked, wealth, answers: vec![None; items], testing }
    }

    /// The item to show: the first of the set under test that has no answer. `None` if there is nothing left to ask.
    pub fn next(&self) -> Option<usize> {
        let set = self.sets.get(self.testing)?;
        let answered = self.wealth[self.testing].answers().0;
        set[answered..].iter().copied().find(|&item| self.answers[item].is_none())
    }

    /// Takes the answer about an item.
    pub fn answer(&mut self, item: usize, is_wrong: bool) {
        self.answers[item] = Some(is_wrong);
        while self.testing < SETS && self.advance(self.testing) {
            self.testing += 1;
        }
    }

    /// Bets on the answers that follow without a gap in the order of the draw. Is the set signed off then?
    fn advance(&mut self, set: usize) -> bool {
        let wealth = &mut self.wealth[set];
        while let Some(&item) = self.sets[set].get(wealth.answers().0)
            && let Some(is_wrong) = self.answers[item]
        {
            wealth.answer(is_wrong);
        }
        wealth.signed_off(self.promise.delta)
    }

    /// The largest set that is signed off, from 1; 0 if none is.
    pub fn signed_off(&self) -> usize {
        if self.testing < self.promise.first_set { 0 } else { self.testing }
    }

    /// Items of the largest set that is signed off.
    pub fn accepted(&self) -> usize {
        self.set_size(self.signed_off())
    }

    /// The set under test, from 1. The last one stays when all are signed off.
    pub fn testing(&self) -> usize {
        (self.testing + 1).min(SETS)
    }

    /// Items of a set, from 1; none in set 0.
    pub fn set_size(&self, set: usize) -> usize {
        set.checked_sub(1).map_or(0, |set| self.sets[set].len())
    }

    /// The stake on a set, from 1.
    pub fn wealth(&self, set: usize) -> &Wealth {
        &self.wealth[set - 1]
    }

    /// Items by confidence, the most confident first. The first of them are the sets.
    pub fn ranked(&self) -> &[usize] {
        &self.ranked
    }

    /// What was promised.
    pub fn promise(&self) -> Promise {
        self.promise
    }

    /// The fewest and most wrong labels in a set, from 1, from the answers about it in the order of the draw.
    pub fn wrong_in(&self, set: usize) -> (usize, usize) {
        let (answers, wrong) = self.answers_in(set);
        wrong_interval(self.set_size(set), answers, wrong, self.promise.delta)
    }

    /// The answers about a set that follow without a gap in the order of the draw, and how many of them found a wrong label.
    pub fn answers_in(&self, set: usize) -> (usize, usize) {
        let answers = self.sets[set - 1].iter().map_while(|&item| self.answers[item]);
        answers.fold((0, 0), |(all, wrong), is_wrong| (all + 1, wrong + usize::from(is_wrong)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_error_so_many_answers_sign_off() {
        for (max_error, answers) in [(0.05, 65), (0.02, 151)] {
            let mut wealth = Wealth::new(1000, max_error);
            let count = (1..).find(|_| {
                wealth.answer(false);
                wealth.signed_off(0.05)
            });
            assert_eq!(count, Some(answers));
        }
    }

    #[test]
    fn a_set_with_too_many_wrong_labels_is_never_signed_off() {
        let mut wealth = Wealth::new(20, 0.05);
        (0..2).for_each(|_| wealth.answer(true));
        (0..18).for_each(|_| wealth.answer(false));
        assert!(!wealth.signed_off(0.05));
        let mut all_seen = Wealth::new(20, 0.05);
        all_seen.answer(true);
        (0..19).for_each(|_| all_seen.answer(false));
        assert!(all_seen.signed_off(0.05));
    }

    #[test]
    fn ln_gamma_is_the_logarithm_of_a_factorial() {
        let mut factorial = 0.0;
        for n in 1..200 {
            assert!((ln_gamma(n as f64) - factorial).abs() < 1e-10 * factorial.max(1.0), "{n}");
            factorial += (n as f64).ln();
        }
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-12);
    }

    #[test]
    fn empty_and_tiny_targets_have_ladders() {
        let empty = Ladder::new(&[], &[], Promise::new(0.05));
        assert_eq!((empty.next(), empty.accepted()), (None, 0));
        let mut one = Ladder::new(&[0.4], &[0], Promise::new(0.05));
        assert_eq!(one.next(), Some(0));
        one.answer(0, false);
        assert_eq!((one.next(), one.accepted(), one.signed_off()), (None, 1, 10));
    }
}
