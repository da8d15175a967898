//! `a2lp predict`: labels of new items by a trained network.

use super::data::{self, Reading};
use super::{MODEL, ModelFile, WEIGHTS};
use crate::Outcome;
use crate::args::PredictArgs;
use crate::table::percent;
use a2lp::evaluation::TargetTruth;
use a2lp::{Classes, PseudoLabels};
use a2lp_data::{LabelTable, check_labels_path};
use a2lp_train::TrainedModel;
use anyhow::{Context, bail};
use std::io::Write;

pub(crate) fn predict(args: &PredictArgs) -> anyhow::Result<Outcome> {
    if args.threads > 0 {
        rayon::ThreadPoolBuilder::new().num_threads(args.threads).build_global().ok();
    }
    check_labels_path(&args.out, args.force)?;
    let path = args.model.join(MODEL);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("{}: no finished training run", args.model.display()))?;
    let file: ModelFile = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    let model = TrainedModel::read(&args.model.join(WEIGHTS))?;
    let reading = Reading {
        root: None,
        body: Some(file.body),
        transform: file.transform.as_deref(),
        upright: file.upright,
    };
    let (items, _) = data::open(&args.images, args.eval_labels.as_deref(), &reading)?;
    if let (a2lp_train::Inputs::Rows { columns, .. }, a2lp_train::BodyShape::Adapter(wanted)) =
        (&items.inputs, model.shape().body)
        && *columns != wanted
    {
        bail!("{} has {columns} columns, the network takes {wanted}", args.images.display());
    }
    let classes = Classes::new(file.classes)?;
    let probabilities = model.predict(&items.inputs, args.device.unwrap_or_default())?;
    let labels = PseudoLabels::from_probabilities(classes.len(), probabilities);
    let (ids, probabilities) = (items.ids.as_deref(), args.probabilities);
    LabelTable { ids, probabilities, ..LabelTable::new(&classes, &labels) }.write(&args.out, args.force)?;
    let mean = labels.confidence().iter().sum::<f32>() / labels.len().max(1) as f32;
    let mut text = format!(
        "{} items labelled, mean confidence {mean:.3}; labels in {}\n",
        labels.len(),
        args.out.display()
    );
    if let Some(truth) = items.labels.as_ref().map(|truth| TargetTruth::new(&classes, truth)) {
        let score = truth.score(labels.labels())?;
        text += &format!(
            "accuracy {} %, mean over classes {} %\n",
            percent(score.accuracy),
            percent(score.mean_class_accuracy)
        );
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(Outcome::Done)
}
