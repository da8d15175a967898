//! How wrong the first labels may be (table 1): anchors are made from true labels of which a share was replaced, and
//! labels are propagated once more.

use super::manifest::{Domain, pair};
use super::{
    Finding, Study, dot_chart, mean_and_error, once, owned, run_pair, sample, shared_graph, truth_of,
};
use crate::Outcome;
use crate::args::NoiseArgs;
use crate::interrupt::CtrlC;
use crate::table::{percent, render};
use a2lp::{ClassId, Domains, NeighbourGraph, Parameters, Run};
use serde_json::json;
use std::cell::OnceCell;

pub(super) fn run(args: &NoiseArgs) -> anyhow::Result<Outcome> {
    let study = Study::new("noise", &args.common)?;
    let (source, target) = study.pair_names()?;
    let seeds = &args.common.seeds;
    if let Some(level) = args.levels.iter().find(|level| !(0.0..=1.0).contains(*level)) {
        anyhow::bail!("--levels {level}: shares between 0 and 1 are needed");
    }
    let cells = 1 + args.levels.len() * seeds.len();
    let further = json!({ "levels": args.levels, "noise_weights": args.noise_weights });
    let notebook = study.notebook(&[&source, &target], cells, further)?;
    let (source_data, target_data) = sample::pair(&study, &source, &target, seeds[0])?;
    let kept = OnceCell::new();
    let graph = || once(&kept, || shared_graph(&source_data, &target_data, study.parameters()));
    let plain: f64 = notebook.cell("label propagation", || {
        let run = run_pair(&source_data, &target_data, study.parameters().rounds(1), Some(graph()?))?;
        Ok(run.accuracy()?.overall)
    })?;
    let mut rows = vec![vec!["label propagation".to_string(), percent(plain), String::new()]];
    for &level in &args.levels {
        let mut accuracies = Vec::new();
        for &seed in seeds {
            accuracies.push(notebook.cell(&format!("noise {level}, seed {seed}"), || {
                let parameters = study.parameters().anchor_weights(args.noise_weights);
                trial(parameters, &source_data, &target_data, graph()?, level, seed)
            })?);
        }
        let (mean, error) = mean_and_error(&accuracies);
        let error = if seeds.len() > 1 { format!("{:.2}", 100.0 * error) } else { String::new() };
        rows.push(vec![format!("{:.0} % wrong", 100.0 * level), percent(mean), error]);
    }
    let title = format!(
        "{}, {source}→{target}: anchors from true labels, some of them replaced by wrong ones ({} {})",
        study.manifest.name,
        seeds.len(),
        if seeds.len() == 1 { "seed" } else { "seeds" }
    );
    let text = render(&["first labels", "accuracy %", "± standard error"], &rows);
    let header = owned(&["first_labels", "accuracy", "standard_error"]);
    let chart = Some(dot_chart(&rows, &[(1, "accuracy %")]));
    study.finish(&notebook, Finding { title, text, header, rows, chart })
}

/// Two rounds, the anchors between them from wrong labels; the accuracy of the second.
fn trial(
    parameters: Parameters,
    source: &Domain,
    target: &Domain,
    graph: &NeighbourGraph,
    level: f64,
    seed: u64,
) -> anyhow::Result<f64> {
    let domains = pair(source, target)?;
    let truth = truth_of(&domains, target);
    let assumed = corrupted(&domains, target, level, seed);
    let parameters = parameters.rounds(2).check()?;
    let labelling = Run::new(domains, &parameters)
        .graph(graph.clone())
        .assume_first_labels(&assumed)
        .observe(&CtrlC)
        .label()?;
    Ok(truth.score(labelling.pseudo_labels.labels())?.accuracy)
}

/// The true classes, exactly ⌊level · items⌋ of them replaced by another, all others equally likely.
fn corrupted(domains: &Domains, target: &Domain, level: f64, seed: u64) -> Vec<Option<ClassId>> {
    let classes = domains.source_labels().classes();
    let mut labels: Vec<Option<ClassId>> = target.labels.iter().map(|name| classes.find(name)).collect();
    let mut order: Vec<usize> = (0..labels.len()).collect();
    order.sort_by_key(|&item| sample::mix(seed, item as u64));
    let wrong = (level * labels.len() as f64 + 1e-9).floor() as usize;
    for &item in &order[..wrong.min(order.len())] {
        let draw = |count: usize| (sample::mix(seed ^ 0x5EED, item as u64) % count.max(1) as u64) as ClassId;
        labels[item] = match labels[item] {
            Some(class) if classes.len() > 1 => {
                let other = draw(classes.len() - 1);
                Some(if other >= class { other + 1 } else { other })
            }
            Some(class) => Some(class),
            // The source lacks its class: whatever it gets is wrong.
            None => Some(draw(classes.len())),
        };
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2lp::FeatureMatrix;

    #[test]
    fn exactly_so_many_labels_are_wrong() {
        let labels: Vec<String> = (0..90).map(|item| format!("c{}", item % 3)).collect();
        let domain = Domain { features: FeatureMatrix::new(90, 1, vec![1.0; 90]).unwrap(), labels };
        let domains = pair(&domain, &domain).unwrap();
        for (level, wrong) in [(0.0, 0), (0.1, 9), (0.35, 31), (1.0, 90)] {
            let noisy = corrupted(&domains, &domain, level, 7);
            let differ = (0..90).filter(|&item| noisy[item] != Some(item as u32 % 3)).count();
            assert_eq!(differ, wrong, "level {level}");
        }
        // Wrong labels are spread over the other classes.
        let noisy = corrupted(&domains, &domain, 1.0, 7);
        let counts = [0, 1, 2].map(|class| noisy.iter().filter(|label| **label == Some(class)).count());
        assert!(counts.iter().all(|&count| count > 15), "{counts:?}");
    }
}
