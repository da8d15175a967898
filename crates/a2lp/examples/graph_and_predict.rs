//! Builds a neighbour graph, labels over it, and labels points that come later:
//! `cargo run --release -p a2lp --example graph_and_predict`

use a2lp::{Domains, FeatureMatrix, Labels, Parameters, Run, neighbour_graph};

fn main() -> Result<(), a2lp::Error> {
    let point = |angle: f32| [angle.cos() + 1.0, angle.sin() + 1.0, 0.5];
    let arc = |from: f32| (0..30).map(move |at| point(from + 0.02 * at as f32));
    let source = FeatureMatrix::from_rows(&arc(0.0).chain(arc(2.0)).collect::<Vec<_>>())?;
    let target = FeatureMatrix::from_rows(&arc(0.4).chain(arc(2.4)).collect::<Vec<_>>())?;
    let names: Vec<&str> = (0..60).map(|item| if item < 30 { "east" } else { "west" }).collect();
    let parameters = Parameters::new().neighbours(8).check()?;

    // The nodes of a graph are the source rows, then the target rows.
    let domains = Domains::new(source, Labels::new(&names), target)?;
    let found = neighbour_graph(domains.features().clone(), &parameters, false, &())?;
    println!("{} nodes, {} edges, {}", found.graph.nodes(), found.graph.columns.len(), found.report);

    let (labelling, model) = Run::new(domains, &parameters).graph(found.graph).fit()?;
    let later = FeatureMatrix::from_rows(&[point(0.5), point(2.5)])?;
    for label in model.predict(later, &parameters)?.labels() {
        println!("{}", label.map_or("none", |class| labelling.classes.name(class)));
    }
    Ok(())
}
