//! How long the methods take beside each other: `cargo bench -p a2lp --bench methods`. Best of three, taken in turns.

use a2lp::{Domains, FeatureMatrix, Labels, Method, Parameters, Unknown, label};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Instant;

/// Two domains of equal size: rows round centres, as features of a network have them, the target's moved aside.
fn domains(rows: usize, columns: usize, classes: usize) -> Result<Domains, a2lp::Error> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let centres: Vec<f32> = (0..classes * columns).map(|_| rng.random_range(0.0f32..1.0)).collect();
    let aside: Vec<f32> = (0..columns).map(|_| rng.random_range(-0.3f32..0.3)).collect();
    let values = (0..rows * columns).map(|at| {
        let (row, column) = (at / columns, at % columns);
        let moved = if row < rows / 2 { 0.0 } else { aside[column] };
        (centres[row % classes * columns + column] + moved + rng.random_range(-1.0f32..1.0)).max(0.0)
    });
    let features = FeatureMatrix::new(rows, columns, values.collect())?;
    let labels: Vec<String> = (0..rows / 2).map(|row| (row % classes).to_string()).collect();
    Domains::stacked(features, rows / 2, Labels::new(&labels))
}

fn main() -> Result<(), a2lp::Error> {
    let methods = [
        (Method::Lp, 3, Unknown::Off, "lp"),
        (Method::A2lp, 3, Unknown::Off, "a2lp"),
        (Method::A2lp, 3, Unknown::Rank, "a2lp and reach"),
        (Method::Consensus, 2, Unknown::Off, "2 views"),
        (Method::Consensus, 3, Unknown::Off, "3 views"),
        (Method::Consensus, 3, Unknown::Rank, "3 views, reach"),
    ];
    println!("seconds, and times the A²LP of the same run; 10 rounds, k = 20, 10 classes");
    print!("{:>16}", "rows × columns");
    methods.iter().for_each(|(_, _, _, name)| print!(" {name:>16}"));
    println!();
    for (rows, columns) in [(2_000, 1280), (8_000, 512), (20_000, 500), (24_000, 2048)] {
        let data = domains(rows, columns, 10)?;
        let mut best = [f64::INFINITY; 6];
        for _ in 0..3 {
            for ((method, views, unknown, _), best) in methods.iter().zip(&mut best) {
                let parameters = Parameters::new().method(*method).views(*views).unknown(*unknown).check()?;
                let (data, started) = (data.clone(), Instant::now());
                drop(label(data, &parameters)?);
                *best = best.min(started.elapsed().as_secs_f64());
            }
        }
        print!("{:>16}", format!("{rows} × {columns}"));
        best.iter().for_each(|secs| print!(" {:>16}", format!("{secs:.2} ({:.2} ×)", secs / best[1])));
        println!();
    }
    Ok(())
}
