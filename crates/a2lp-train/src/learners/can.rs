//! Contrastive adaptation network: the contrastive domain discrepancy of class-aware batches.

use super::Recipe;
use crate::backbone::BackboneName;
use crate::error::TrainError;
use crate::losses::{Grouped, contrastive_discrepancy};
use crate::networks::{BodyShape, Domain};
use crate::training::{Objective, RoundView, Step, TrainSettings, TrainingLabels};
use burn::tensor::activation::softmax;

pub(super) struct Can;

impl Recipe for Can {
    fn set_defaults(&self, settings: &mut TrainSettings, body: BodyShape) {
        settings.min_confidence = 0.7;
        if let BodyShape::Backbone(name) = body {
            settings.steps = None;
            settings.batch = 30;
            settings.stop_after = Some(match name {
                BackboneName::EfficientnetLite0 => "blocks.2".into(),
                _ => "layer1".into(),
            });
        }
    }

    fn uses_pseudo_labels(&self) -> bool {
        true
    }

    fn own_labels(&self, seen: &RoundView<'_>) -> Option<TrainingLabels> {
        Some(seen.clusters())
    }

    fn is_class_aware(&self) -> bool {
        true
    }

    /// The discrepancy is taken in the features and in the probabilities.
    fn objective(&self, step: &mut Step<'_>) -> Result<Objective, TrainError> {
        let objective = step.source(None)?.objective();
        let Some(batch) = step.class_aware_batch() else { return Ok(objective) };
        let counts = |groups: &[Vec<usize>]| Grouped { counts: groups.iter().map(Vec::len).collect() };
        let (by_source, by_target) = (counts(&batch.source), counts(&batch.target));
        let source = step.pass(Domain::Source, &batch.source.concat())?;
        let target = step.pass(Domain::Target, &batch.target.concat())?;
        let layers =
            [(source.features, target.features), (softmax(source.logits, 1), softmax(target.logits, 1))];
        let cdd = contrastive_discrepancy(&layers, &by_source, &by_target, step.classes());
        Ok(objective.and_target(cdd, step.settings().target_weight))
    }
}
