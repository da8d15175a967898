//! The searches among rows of unit length. An exact search serves the raw view, the centred view and reach in one pass over all
//! pairs of rows.

use super::half_of_each;
use crate::error::Error;
use crate::features::FeatureMatrix;
use crate::neighbours::{Centring, GraphReport, NeighbourLists, Wanted, find_together};
use crate::parameters::GraphMethod;
use crate::reach;
use crate::setup::Setup;
use crate::similarity::Similarity;

/// What was found among rows of unit length.
pub(super) struct UnitSearches {
    pub(super) raw: (NeighbourLists, GraphReport),
    /// `None` if the centred view must search for itself.
    pub(super) centred: Option<(NeighbourLists, GraphReport)>,
    /// The neighbours that reach is measured on, if it is to be measured.
    pub(super) reach: Option<NeighbourLists>,
}

impl UnitSearches {
    /// Searches for the k nearest, for the neighbours of the centred view if it `wants_centred`, and for those of reach.
    pub(super) fn find(
        unit: &FeatureMatrix,
        first_target: usize,
        k: usize,
        similarity: Similarity,
        wants_centred: bool,
        run: &Setup<'_>,
    ) -> Result<Self, Error> {
        let (rows, columns) = (unit.rows(), unit.columns());
        let wants_reach = run.parameters.measures_reach(rows, columns);
        let nearest = Wanted::Nearest(k);
        let mut found = match run.parameters.graph_method.resolve(rows, columns, nearest) {
            GraphMethod::Exact => {
                Self::find_together(unit, first_target, k, similarity, (wants_centred, wants_reach), run)?
            }
            _ => UnitSearches { raw: run.search(unit, nearest, similarity)?, centred: None, reach: None },
        };
        if wants_reach && found.reach.is_none() {
            found.reach = Some(reach::search(unit.clone(), first_target, run)?);
        }
        Ok(found)
    }

    /// One pass for all, but for rankings whose rows lie too near their mean.
    fn find_together(
        unit: &FeatureMatrix,
        first_target: usize,
        k: usize,
        similarity: Similarity,
        (wants_centred, wants_reach): (bool, bool),
        run: &Setup<'_>,
    ) -> Result<Self, Error> {
        let (source, target) = (unit.mean(0..first_target), unit.mean(first_target..unit.rows()));
        let middle = reach::middle(&source, &target);
        let centring = |points, wanted: bool| match wanted {
            true => Centring::new(unit, first_target, points),
            false => None,
        };
        let own = centring([&source, &target], wants_centred);
        let between = centring([&middle, &middle], wants_reach);
        let mut searches = vec![(Wanted::Nearest(k), None)];
        searches.extend(own.as_ref().map(|own| (half_of_each(k, first_target), Some(own))));
        searches.extend(between.as_ref().map(|between| (reach::wanted(first_target), Some(between))));
        let mut lists = find_together(unit, &searches, similarity, run.observer)?.into_iter();
        let mut next = || lists.next().expect("every search gives its lists");
        Ok(UnitSearches { raw: next(), centred: own.map(|_| next()), reach: between.map(|_| next().0) })
    }
}
