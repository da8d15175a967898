//! R5: any number of threads, the same bits.

use crate::Effort;
use crate::commands::Clusters;
use crate::tally::{Tally, expect};
use a2lp::{Domains, FeatureMatrix, GraphMethod, Labels, Parameters};

pub(crate) fn check(effort: Effort) -> Tally {
    let mut tally = Tally::default();
    let (rows, repeats) = (effort.of(2_000, 25_000), effort.of(2, 20));
    let data = Clusters::new(rows, rows, 64, 10, 5);
    for method in [GraphMethod::Exact, GraphMethod::Screened, GraphMethod::Pruned, GraphMethod::Nndescent] {
        let mut first = None;
        for threads in [1, 2, 3, 8] {
            for repeat in 0..repeats {
                let print = fingerprint(&data, method, threads);
                let wanted = *first.get_or_insert(print.clone().unwrap_or(0));
                let wrong = print.and_then(|print| expect(print == wanted, || "other bits".into()));
                tally.case(format!("{method:?}, {threads} threads, repeat {repeat}"), wrong);
            }
        }
    }
    tally.note(format!("{} rows of 64", 2 * rows));
    tally
}

/// A number made of every label and every bit of every confidence and probability.
fn fingerprint(data: &Clusters, method: GraphMethod, threads: usize) -> Result<u64, String> {
    let text = |error: a2lp::Error| error.to_string();
    let matrix =
        |values: &Vec<f32>| FeatureMatrix::new(values.len() / data.columns, data.columns, values.clone());
    let names: Vec<String> = data.labels.iter().map(i64::to_string).collect();
    let domains = Domains::new(
        matrix(&data.source).map_err(text)?,
        Labels::new(&names),
        matrix(&data.target).map_err(text)?,
    );
    let parameters =
        Parameters::new().graph_method(method).rounds(2).threads(threads).check().map_err(text)?;
    let found = a2lp::label(domains.map_err(text)?, &parameters).map_err(text)?;
    let labels = &found.pseudo_labels;
    let mut print = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |bits: u64| print = (print ^ bits).wrapping_mul(0x0000_0100_0000_01b3);
    for item in 0..labels.len() {
        add(labels.labels()[item].map_or(u64::MAX, u64::from));
        add(u64::from(labels.confidence()[item].to_bits()));
        labels.probabilities(item).iter().for_each(|p| add(u64::from(p.to_bits())));
    }
    found.reach.iter().flat_map(|reach| &reach.values).for_each(|reach| add(u64::from(reach.to_bits())));
    Ok(print)
}
