//! Three views of the data vote, and plain label propagation is the fallback: `cargo run --release -p a2lp --example consensus`

use a2lp::{Domains, FeatureMatrix, Labels, Method, Parameters, Run};

fn main() -> Result<(), a2lp::Error> {
    // Three classes of ten dimensions; the target is shifted and noisier.
    let value = |item: usize, column: usize, noise: f32| {
        let random = ((item * 7919 + column * 104_729) % 1009) as f32 / 1009.0 - 0.5;
        if column % 3 == item % 3 { 1.5 + noise * random } else { 0.3 + noise * random }
    };
    let row = |item: usize, noise: f32, shift: f32| -> [f32; 10] {
        std::array::from_fn(|column| value(item, column, noise) + shift)
    };
    let source: Vec<[f32; 10]> = (0..90).map(|item| row(item, 1.0, 0.0)).collect();
    let target: Vec<[f32; 10]> = (90..180).map(|item| row(item, 1.5, 0.4)).collect();
    let names: Vec<&str> = (0..90).map(|item| ["mug", "bike", "lamp"][item % 3]).collect();

    let domains = Domains::new(
        FeatureMatrix::from_rows(&source)?,
        Labels::new(&names),
        FeatureMatrix::from_rows(&target)?,
    )?;
    let parameters = Parameters::new().method(Method::Consensus).neighbours(10).guard(true).check()?;
    let labelling = Run::new(domains, &parameters).label()?;

    println!("{} items on which the views disagree", labelling.disagreements().len());
    for view in &labelling.views {
        println!("view {}: {} rounds", view.name.as_str(), view.labels_by_round.len());
    }
    if let Some(guard) = &labelling.guard {
        println!("quality {:.3}, of plain propagation {:.3}", guard.score, guard.lp_score);
    }
    Ok(())
}
