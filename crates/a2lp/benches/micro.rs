//! How long the parts of a run take on made-up features: `cargo bench -p a2lp`. Best of five.
//!
//! For a look beside other libraries see `benches/compare.py` at the top of the repository.

use a2lp::{Domains, FeatureMatrix, GraphMethod, Labels, Parameters, Run, Similarity, neighbour_graph};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Rows round centres, as features of a network have them.
fn features(rows: usize, columns: usize) -> FeatureMatrix {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let centres: Vec<f32> = (0..40 * columns).map(|_| rng.random_range(-1.0f32..1.0)).collect();
    let values = (0..rows * columns)
        .map(|at| centres[at / columns % 40 * columns + at % columns] + rng.random_range(-0.8f32..0.8))
        .collect();
    FeatureMatrix::new(rows, columns, values).expect("rows × columns values")
}

fn best_of_five(mut secs: impl FnMut() -> f64) -> f64 {
    (0..5).map(|_| secs()).fold(f64::INFINITY, f64::min)
}

fn main() -> Result<(), a2lp::Error> {
    let (rows, k) = (8000, 20);
    println!("neighbour graph, {rows} rows, k = {k}: milliseconds");
    println!(
        "{:>8} {:>10} {:>8} {:>9} {:>8} {:>10}",
        "columns", "", "exact", "screened", "pruned", "nndescent"
    );
    for columns in [64, 512] {
        let matrix = features(rows, columns);
        for (name, similarity) in [
            ("cosine", Similarity::Cosine),
            ("gaussian", Similarity::Gaussian { sigma2: 1.0 }),
            ("dot3", Similarity::Dot3),
        ] {
            print!("{columns:>8} {name:>10}");
            let methods =
                [GraphMethod::Exact, GraphMethod::Screened, GraphMethod::Pruned, GraphMethod::Nndescent];
            for (method, width) in methods.into_iter().zip([8, 9, 8, 10]) {
                let parameters =
                    Parameters::paper().neighbours(k).similarity(similarity).graph_method(method).check()?;
                let secs = best_of_five(|| {
                    neighbour_graph(matrix.clone(), &parameters, false, &()).expect("a graph").secs
                });
                print!(" {:>width$.1}", 1e3 * secs);
            }
            println!();
        }
    }

    println!("\none round on a finished graph, {rows} rows: milliseconds");
    println!("{:>8} {:>8} {:>12} {:>8}", "k", "classes", "A + Aᵀ", "solve");
    let matrix = features(rows, 64);
    let half = rows / 2 * 64;
    for k in [20, 100] {
        let parameters = Parameters::paper().neighbours(k).rounds(1).check()?;
        let graph = neighbour_graph(matrix.clone(), &parameters, false, &())?.graph;
        for classes in [4, 12, 31, 345] {
            let labels: Vec<String> = (0..rows / 2).map(|row| (row % classes).to_string()).collect();
            let mut forming = f64::INFINITY;
            let solving = best_of_five(|| {
                let part = |values: &[f32]| FeatureMatrix::new(rows / 2, 64, values.to_vec()).expect("half");
                let (source, target) = (part(&matrix.values()[..half]), part(&matrix.values()[half..]));
                let domains = Domains::new(source, Labels::new(&labels), target).expect("two halves");
                let labelling = Run::new(domains, &parameters).graph(graph.clone()).label().expect("labels");
                forming = forming.min(labelling.rounds[0].graph_secs);
                labelling.rounds[0].solve_secs
            });
            println!("{k:>8} {classes:>8} {:>12.2} {:>8.2}", 1e3 * forming, 1e3 * solving);
        }
    }
    Ok(())
}
