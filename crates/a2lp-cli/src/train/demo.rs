//! `a2lp train --demo`: learners on the built-in domains, from pixels.

use super::data::Items;
use super::{CACHE, FinishedRun, Task, describe, draw, prepare, write_charts, write_outputs};
use crate::Outcome;
use crate::args::TrainArgs;
use crate::table::{percent, render};
use a2lp::evaluation::TargetTruth;
use a2lp::{Classes, Labels};
use a2lp_data::Picture;
use a2lp_data::demo::{self, CLASSES, DemoDomain, SIDE};
use a2lp_report::Chapter;
use a2lp_train::{Body, Inputs, Labeller, Learner};
use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Drawings of each digit in each domain.
const PER_CLASS: usize = 100;

pub(super) fn run(args: &TrainArgs) -> anyhow::Result<Outcome> {
    let folder = args.out.clone().unwrap_or_else(|| PathBuf::from("a2lp-train-demo"));
    let (source, target) =
        (demo::source(args.how.seed(), PER_CLASS), demo::target(args.how.seed(), PER_CLASS));
    let classes = Classes::new(CLASSES.map(String::from).to_vec())?;
    let labels = Labels::within(classes.clone(), &source.labels)?;
    let truth = TargetTruth::new(&classes, &target.labels);
    let (source, target) = (items(&source, false), items(&target, true));
    let runs = runs(args);
    println!(
        "source: {0} clean drawings of digits with labels; target: {0} slanted, thick, noisy ones without\n",
        10 * PER_CLASS
    );
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let (mut rows, mut chapters) = (Vec::new(), Vec::new());
    for (kind, labeller) in runs {
        let name = match kind.uses_pseudo_labels() {
            true => format!("{}-{}", kind.as_str(), labeller.as_str()),
            false => kind.as_str().to_string(),
        };
        let out = folder.join(&name);
        prepare(&out, args.force)?;
        let task = Task {
            source: &source,
            target: &target,
            classes: &classes,
            labels: labels.ids(),
            body: Body::Lenet,
            truth: Some(&truth),
            how: &args.how,
            folder: &out,
            cache: &out.join(CACHE),
        };
        let settings = task.settings(kind, args.preset, |settings| settings.labeller(labeller))?;
        let began = Instant::now();
        let finished = task.train(&settings)?;
        write_outputs(&task, &settings, &finished, began.elapsed().as_secs_f64())?;
        let FinishedRun { rounds, .. } = &finished;
        let last = rounds.last();
        let known = |value: Option<f64>| value.map_or("–".to_string(), percent);
        let secs: f64 = rounds.iter().map(|line| line.label_secs + line.step_secs).sum();
        rows.push(vec![
            kind.as_str().to_string(),
            if kind.uses_pseudo_labels() { labeller.as_str().into() } else { "–".into() },
            known(last.and_then(|line| line.accuracy)),
            known(last.and_then(|line| line.pseudo_label_accuracy)),
            format!("{secs:.0}"),
        ]);
        eprintln!("{name}: {} %", known(last.and_then(|line| line.accuracy)));
        let text = describe(&task, &settings, &finished);
        chapters.push(Chapter::Experiment(write_charts(&task, &settings, &finished, text)?));
    }
    let mut text =
        render(&["learner", "pseudo-labels", "accuracy %", "of the pseudo-labels %", "seconds"], &rows);
    text += &format!("\nnetworks, labels and metrics of each in {}\n", folder.display());
    if args.report.is_some() {
        text += &draw(args, &folder, &mut chapters)?;
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(Outcome::Done)
}

/// The learner asked for with the labels asked for, or the paper's comparison.
fn runs(args: &TrainArgs) -> Vec<(Learner, Labeller)> {
    let asked = args.how.pseudo_labels.clone();
    let labellers = if asked.is_empty() { vec![Labeller::Own, Labeller::A2lp] } else { asked };
    let learners = match args.learner {
        Some(learner) => vec![learner],
        None => vec![Learner::SourceOnly, Learner::Mstn, Learner::Can],
    };
    let with = |kind: Learner| match kind.uses_pseudo_labels() {
        true => labellers.iter().map(|&labeller| (kind, labeller)).collect(),
        false => vec![(kind, Labeller::A2lp)],
    };
    learners.into_iter().flat_map(with).collect()
}

/// Light on dark in both domains: a network that sees pixels should not have to learn an inversion.
fn items(domain: &DemoDomain, inverted: bool) -> Items {
    let turn = |&pixel: &u8| if inverted { 255 - pixel } else { pixel };
    let picture = |pixels: &[u8]| Picture {
        width: SIDE,
        height: SIDE,
        channels: 1,
        pixels: pixels.iter().map(turn).collect(),
    };
    let pictures: Vec<Picture> = domain.images.chunks_exact(SIDE * SIDE).map(picture).collect();
    Items::new(Inputs::digits(&pictures))
}
