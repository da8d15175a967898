//! Trains a small network on features of two domains, writes it, and uses it on new items:
//! `cargo run --release -p a2lp-train --example train`

use a2lp_train::{
    Body, DeviceName, Inputs, Learner, TrainError, TrainObserver, TrainSettings, TrainedModel, TrainedRound,
    Training,
};
use std::ops::ControlFlow;

/// Prints each round.
struct Printer;

impl TrainObserver for Printer {
    fn progress(&self, _round: usize, _step: usize, _steps: usize) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn round(&self, round: &TrainedRound<'_>) -> Result<(), TrainError> {
        println!("round {}: loss on the source {:.3}", round.round, round.losses.source);
        Ok(())
    }
}

/// Items of three classes over eight features.
fn items(first: usize, shift: f32) -> Inputs {
    let value = |item: usize, column: usize| {
        let random = ((item * 7919 + column * 104_729) % 1009) as f32 / 1009.0;
        let own = if column % 3 == item % 3 { 2.0 } else { 0.2 };
        own + random + shift * (column % 2) as f32
    };
    let rows = (first..first + 90).flat_map(|item| (0..8).map(move |column| value(item, column)));
    Inputs::rows(8, rows.collect())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("a2lp-example-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (source, target) = (items(0, 0.0), items(90, 0.5));
    let labels: Vec<u32> = (0..90).map(|item| item % 3).collect();

    let (learner, body) = (Learner::Can, Body::Adapter.shape(&source));
    let settings = TrainSettings::new(learner, body).rounds(2).steps(Some(20)).check(body)?;
    let training = Training {
        settings: &settings,
        shape: learner.network(body, 3),
        weights: None,
        source: &source,
        labels: &labels,
        target: &target,
        checkpoint: &folder.join("checkpoint.safetensors"),
        cache: &folder.join("cache"),
        device: DeviceName::Cpu,
    };
    let weights = folder.join("weights.safetensors");
    training.run(&Printer)?.model.write(&weights)?;

    let probabilities = TrainedModel::read(&weights)?.predict(&items(180, 0.5), DeviceName::Cpu)?;
    println!("the first new item: {:.3?}", &probabilities[..3]);
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
