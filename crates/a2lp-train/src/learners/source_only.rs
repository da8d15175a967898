//! No loss on the target: the baseline.

use super::Recipe;
use crate::error::TrainError;
use crate::training::{Objective, Step};

pub(super) struct SourceOnly;

impl Recipe for SourceOnly {
    fn splits_domains(&self) -> bool {
        false
    }

    fn objective(&self, step: &mut Step<'_>) -> Result<Objective, TrainError> {
        Ok(step.source(None)?.objective())
    }
}
