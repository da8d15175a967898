//! R4: degenerate shapes and label sets, with every solver and every search. An answer that adds up, or an error.

use crate::Effort;
use crate::mutate::Draws;
use crate::tally::{Tally, expect};
use a2lp::{Domains, FeatureMatrix, GraphMethod, Labels, Method, Parameters, Similarity, Solver, Status};

/// Source rows, target rows, columns, classes, and what is odd about it.
type Case = (usize, usize, usize, usize, Odd);

#[derive(Clone, Copy, Debug)]
enum Odd {
    Nothing,
    /// All rows are the same.
    Same,
    /// All rows are zero.
    Zero,
    /// The domains share no direction.
    Apart,
    /// Every row twice.
    Twice,
    /// All labels but one are of one class.
    Lopsided,
    /// Numbers near the largest and the smallest there are.
    Extreme,
    /// A class that no source row has.
    Missing,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for odd in [
        Odd::Nothing,
        Odd::Same,
        Odd::Zero,
        Odd::Apart,
        Odd::Twice,
        Odd::Lopsided,
        Odd::Extreme,
        Odd::Missing,
    ] {
        for (source, target, columns, classes) in [
            (1, 1, 1, 1),
            (2, 1, 1, 2),
            (1, 9, 3, 1),
            (9, 1, 3, 3),
            (6, 40, 2, 2),
            (40, 6, 17, 20),
            (30, 30, 64, 3),
        ] {
            cases.push((source, target, columns, classes, odd));
        }
    }
    cases
}

pub(crate) fn check(effort: Effort) -> Tally {
    let mut tally = Tally::default();
    let neighbours: &[Option<usize>] = effort.of(&[Some(3), None], &[Some(1), Some(3), Some(1000), None]);
    let methods: &[Method] = effort.of(&[Method::A2lp], &[Method::Lp, Method::A2lp, Method::Consensus]);
    for case in cases() {
        for solver in [Solver::Cg, Solver::Dense] {
            for graph in
                [GraphMethod::Exact, GraphMethod::Screened, GraphMethod::Pruned, GraphMethod::Nndescent]
            {
                for &neighbours in neighbours {
                    for &method in methods {
                        let name = format!("{case:?} {solver:?} {graph:?} k {neighbours:?} {method:?}");
                        let tried = std::panic::catch_unwind(|| one(case, solver, graph, neighbours, method));
                        tally.case(name, tried.unwrap_or_else(|_| Err("a panic".into())));
                    }
                }
            }
        }
    }
    tally
}

fn one(
    case: Case,
    solver: Solver,
    graph: GraphMethod,
    neighbours: Option<usize>,
    method: Method,
) -> Result<(), String> {
    let (source_rows, target_rows, columns, classes, odd) = case;
    let mut draws = Draws(7);
    let mut number = || (draws.next() as f64 / u64::MAX as f64) as f32 + 0.01;
    let rows = source_rows + target_rows;
    let mut values: Vec<f32> = (0..rows * columns).map(|_| number()).collect();
    for row in 0..rows {
        for column in 0..columns {
            let at = row * columns + column;
            match odd {
                Odd::Same => values[at] = values[column],
                Odd::Zero => values[at] = 0.0,
                Odd::Apart if (row < source_rows) == (column % 2 == 0) => values[at] = 0.0,
                Odd::Twice => values[at] = values[(row / 2 * 2) * columns + column],
                Odd::Extreme => values[at] *= if row % 2 == 0 { 3e37 } else { 1e-38 },
                _ => {}
            }
        }
    }
    let label = |row: usize| match odd {
        Odd::Lopsided => usize::from(row == 0 && classes > 1),
        Odd::Missing => row % classes / 2,
        _ => row % classes,
    };
    let names: Vec<String> = (0..classes).map(|class| class.to_string()).collect();
    let labels: Vec<String> = (0..source_rows).map(|row| label(row).to_string()).collect();
    let classes = a2lp::Classes::new(names).map_err(|error| error.to_string())?;
    let features = FeatureMatrix::new(rows, columns, values).map_err(|error| error.to_string())?;
    let labels = Labels::within(classes, &labels).map_err(|error| error.to_string())?;
    let mut parameters = Parameters::paper()
        .method(method)
        .solver(solver)
        .graph_method(graph)
        .similarity(Similarity::Cosine)
        .rounds(3)
        .threads(1);
    parameters = match neighbours {
        Some(k) => parameters.neighbours(k),
        None => parameters.full_graph(),
    };
    // What cannot be, is said before anything runs.
    let (Ok(parameters), Ok(domains)) = (parameters.check(), Domains::stacked(features, source_rows, labels))
    else {
        return Ok(());
    };
    let Ok(found) = a2lp::label(domains, &parameters) else { return Ok(()) };
    let labels = &found.pseudo_labels;
    expect(labels.len() == target_rows, || format!("{} labels for {target_rows} items", labels.len()))?;
    for item in 0..labels.len() {
        let all = labels.probabilities(item);
        let finite = all.iter().all(|p| p.is_finite()) && labels.confidence()[item].is_finite();
        expect(finite, || format!("item {item}: {all:?}"))?;
        let sum: f64 = all.iter().map(|&p| f64::from(p)).sum();
        let reached = labels.status()[item] != Status::Unreached;
        expect(!reached || (sum - 1.0).abs() <= 1e-6, || format!("item {item} adds up to {sum}"))?;
        expect(labels.labels()[item].is_some() || !reached, || format!("item {item} has no label"))?;
    }
    Ok(())
}
