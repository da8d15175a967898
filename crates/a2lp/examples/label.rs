//! Labels a shifted domain and shows what comes back: `cargo run --release -p a2lp --example label`

use a2lp::{Domains, FeatureMatrix, Labels, Parameters, label};

fn main() -> Result<(), a2lp::Error> {
    // Two classes on a circle; the target is the source turned by 0.5.
    let point = |angle: f32| [angle.cos() + 1.0, angle.sin() + 1.0, 0.5];
    let spread = |centre: f32| (0..20).map(move |i| point(centre + 0.03 * i as f32));
    let source: Vec<[f32; 3]> = spread(0.0).chain(spread(2.0)).collect();
    let target: Vec<[f32; 3]> = spread(0.5).chain(spread(2.5)).collect();
    let names: Vec<&str> = (0..40).map(|i| if i < 20 { "east" } else { "west" }).collect();

    let domains = Domains::new(
        FeatureMatrix::from_rows(&source)?,
        Labels::new(&names),
        FeatureMatrix::from_rows(&target)?,
    )?;
    let parameters = Parameters::new().neighbours(10).rounds(5).check()?;
    let labelling = label(domains, &parameters)?;

    for item in [0, 19, 20, 39] {
        let found = &labelling.pseudo_labels;
        let name = found.labels()[item].map_or("none", |class| labelling.classes.name(class));
        println!(
            "item {item:>2}: {name}, confidence {:.3}, {:?}",
            found.confidence()[item],
            found.status()[item]
        );
    }
    for round in &labelling.rounds {
        println!("round {}: {} anchors, {} labels changed", round.round, round.anchors, round.changed);
    }
    for warning in labelling.warnings() {
        println!("warning: {warning}");
    }
    Ok(())
}
