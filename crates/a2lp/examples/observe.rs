//! Watches a run and stops it from outside: `cargo run --release -p a2lp --example observe`

use a2lp::{Domains, Error, FeatureMatrix, FinishedRound, Labels, Observer, Parameters, Run, Stage};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Prints each round; gives up after a time.
struct Patience(Instant);

impl Observer for Patience {
    fn progress(&self, _stage: Stage, _done: u64, _total: u64) -> ControlFlow<()> {
        if Instant::now() < self.0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn round(&self, finished: &FinishedRound<'_>) {
        println!("round {}: mean confidence {:.3}", finished.round.round, finished.round.mean_confidence);
    }
}

fn main() -> Result<(), Error> {
    let rows: Vec<[f32; 4]> =
        (0..4000u32).map(|i| [0, 1, 2, 3].map(|c| (i * (c + 3) * 7919 % 1009) as f32 / 1009.0)).collect();
    let labels: Vec<&str> = rows.iter().map(|row| if row[0] > row[1] { "left" } else { "right" }).collect();
    let matrix = FeatureMatrix::from_rows(&rows)?;
    let parameters = Parameters::paper().rounds(3).check()?;
    for patience in [Duration::from_secs(60), Duration::ZERO] {
        let domains = Domains::new(matrix.clone(), Labels::new(&labels), matrix.clone())?;
        match Run::new(domains, &parameters).observe(&Patience(Instant::now() + patience)).label() {
            Ok(_) => println!("done"),
            Err(Error::Cancelled) => println!("stopped after {patience:?}"),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
