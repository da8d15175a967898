//! How fast this machine is, so that a plan can tell seconds. Nothing else depends on it: the same data get the same search,
//! graph and labels everywhere.

use crate::features::FeatureMatrix;
use crate::kernels::{Chain, PackedBytes, PackedRows, QuantisedRows, ScoreTile};
use std::hint::black_box;
use std::ops::{Add, AddAssign, Mul};
use std::time::Instant;

/// How many times as long the kinds of work take as on the machine that the constants of the plan come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Machine {
    /// Scores of pairs of rows, in full.
    pub(crate) full: f64,
    /// Scores in six bits.
    pub(crate) cheap: f64,
    /// Rows read from anywhere in memory.
    pub(crate) memory: f64,
}

/// Nanoseconds of the three measurements below on the machine whose seconds the plan's constants are.
const REFERENCE_NANOS: [f64; 3] = [3.4e6, 0.81e6, 2.0e6];

/// Rows, packed rows and columns that are scored.
const SHAPE: [usize; 3] = [288, 1152, 512];

/// Cache lines of the memory that is read, and how many of them are.
const LINES: usize = 1 << 20;
const READ: usize = 1 << 18;

impl Machine {
    /// The machine whose seconds the constants are: 2.5 GHz, AVX-512.
    pub(crate) const REFERENCE: Machine = Machine { full: 1.0, cheap: 1.0, memory: 1.0 };

    /// Measures this machine, on one thread. Takes about a tenth of a second.
    pub(crate) fn measure() -> Self {
        let [full, cheap] = score_nanos();
        let times = |nanos: f64, at: usize| nanos / REFERENCE_NANOS[at];
        Machine { full: times(full, 0), cheap: times(cheap, 1), memory: times(read_nanos(), 2) }
    }
}

/// Seconds on one thread of the machine that the constants of the plan come from, by the kind of work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Work {
    full: f64,
    cheap: f64,
    memory: f64,
}

impl Work {
    /// Scores of pairs of rows, in full.
    pub(crate) fn full(secs: f64) -> Self {
        Work { full: secs, ..Work::default() }
    }

    /// Scores in six bits.
    pub(crate) fn cheap(secs: f64) -> Self {
        Work { cheap: secs, ..Work::default() }
    }

    /// What waits for memory.
    pub(crate) fn memory(secs: f64) -> Self {
        Work { memory: secs, ..Work::default() }
    }

    /// Seconds on the machine that the constants come from.
    pub(crate) fn secs(self) -> f64 {
        self.secs_on(Machine::REFERENCE)
    }

    /// Seconds on this machine.
    pub(crate) fn secs_on(self, machine: Machine) -> f64 {
        self.full * machine.full + self.cheap * machine.cheap + self.memory * machine.memory
    }
}

impl Add for Work {
    type Output = Work;

    fn add(self, other: Work) -> Work {
        Work {
            full: self.full + other.full,
            cheap: self.cheap + other.cheap,
            memory: self.memory + other.memory,
        }
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Work) {
        *self = *self + other;
    }
}

impl Mul<f64> for Work {
    type Output = Work;

    fn mul(self, times: f64) -> Work {
        Work { full: self.full * times, cheap: self.cheap * times, memory: self.memory * times }
    }
}

/// The best of some runs: others may use the machine too.
fn best_nanos(runs: usize, mut run: impl FnMut()) -> f64 {
    let nanos = (0..runs).map(|_| {
        let started = Instant::now();
        run();
        started.elapsed().as_nanos() as f64
    });
    nanos.fold(f64::INFINITY, f64::min)
}

/// What scoring some rows takes, in full and in six bits.
fn score_nanos() -> [f64; 2] {
    let [rows, packed_rows, columns] = SHAPE;
    let values = (0..packed_rows * columns).map(|at| (at * 7919 % 1000) as f32);
    let features = FeatureMatrix::from_parts(packed_rows, columns, values.collect());
    let (mut packed, mut tile) = (PackedRows::new(), ScoreTile::new());
    packed.pack(features.values(), columns);
    let full = best_nanos(5, || tile.score(Chain::Product, black_box(features.block(0..rows)), &packed));
    let quantised = QuantisedRows::new(&features, Chain::Product);
    let (mut bytes, mut hits) = (PackedBytes::new(), Vec::new());
    bytes.pack(&quantised, 0..packed_rows);
    let nobody = vec![f32::INFINITY; packed_rows];
    let thresholds = [&nobody[..rows], &nobody];
    let cheap = best_nanos(5, || tile.look(black_box(&quantised), 0..rows, &bytes, thresholds, &mut hits));
    [full, cheap]
}

/// What reading cache lines from anywhere takes.
fn read_nanos() -> f64 {
    let lines = vec![[1u64; 8]; LINES];
    best_nanos(3, || {
        let sum: u64 = (0..READ).map(|at| lines[at.wrapping_mul(0x9E37_79B1) % LINES][0]).sum();
        black_box(sum);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_is_positive_and_finite() {
        let Machine { full, cheap, memory } = Machine::measure();
        for times in [full, cheap, memory] {
            assert!(times.is_finite() && times > 0.0, "{times}");
        }
    }
}
