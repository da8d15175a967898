//! The map of a report: a sample of the items, in the plane.

use crate::trace::{AnchorPoint, Frame, MAX_POINTS, Map, MapKind, NO_CLASS};
use crate::watch::{Layout, WatchedRounds, spread};
use a2lp::evaluation::TargetTruth;
use a2lp::{ClassId, Labelling};
use std::collections::BTreeMap;

/// Bytes of ids kept for the map.
const ID_BYTES: usize = 600_000;

/// The map by principal components.
pub(crate) fn make_map(
    Layout { plane, places }: &Layout,
    source_labels: &[ClassId],
    labelling: &Labelling,
    seen: &WatchedRounds,
    truth: Option<&TargetTruth>,
    ids: Option<&[String]>,
) -> Map {
    let (sources, targets) = (source_labels.len(), labelling.pseudo_labels.len());
    // Each domain gets points in proportion, but not less than half of what an equal share would be.
    let share = MAX_POINTS * sources / (sources + targets);
    let for_sources = share.clamp(MAX_POINTS / 4, MAX_POINTS * 3 / 4).max(MAX_POINTS.saturating_sub(targets));
    let source_rows = stratified(sources, for_sources, |row| Some(source_labels[row]));
    let labels = labelling.pseudo_labels.labels();
    let target_rows = stratified(targets, MAX_POINTS - source_rows.len().min(MAX_POINTS), |row| labels[row]);

    let drawn: Vec<[f32; 2]> = source_rows
        .iter()
        .copied()
        .chain(target_rows.iter().map(|row| sources + row))
        .map(|row| places[row])
        .collect();
    let scale = Scale::of(&drawn);
    let (x, y) = scale.points(&drawn);
    let frames = seen
        .confidence
        .iter()
        .filter_map(|(&round, confidence)| {
            let labels = labelling.labels_by_round.get(round - 1)?;
            Some(Frame {
                round,
                labels: target_rows.iter().map(|&row| packed_class(labels[row])).collect(),
                confidence: target_rows.iter().map(|&row| confidence[row]).collect(),
            })
        })
        .collect();
    let anchors = labelling
        .anchors
        .iter()
        .map(|anchor| {
            let (x, y) = scale.place(plane.place(&anchor.vector));
            // An anchor made after one round takes part in the next.
            AnchorPoint {
                class: packed_class(Some(anchor.class)),
                round: anchor.round + 1,
                items: anchor.items,
                x,
                y,
            }
        })
        .collect();
    let ids: Vec<String> =
        ids.map_or(Vec::new(), |ids| target_rows.iter().map(|&row| ids[row].clone()).collect());
    let ids = if ids.iter().map(String::len).sum::<usize>() > ID_BYTES { Vec::new() } else { ids };
    Map {
        kind: MapKind::Pca,
        explained: Some(plane.explained),
        source_items: sources,
        target_items: targets,
        source_points: source_rows.len(),
        x,
        y,
        rows: source_rows.iter().chain(&target_rows).map(|&row| row as u32).collect(),
        source_labels: source_rows.iter().map(|&row| packed_class(Some(source_labels[row]))).collect(),
        frames,
        truth: truth.map_or(Vec::new(), |truth| {
            target_rows.iter().map(|&row| packed_class(Some(truth.ids()[row]))).collect()
        }),
        ids,
        anchors,
    }
}

/// Rows 0 to `count`, or a sample of `most` of them: every class in proportion but with at least one row, and evenly
/// spaced within the class.
fn stratified(count: usize, most: usize, class_of: impl Fn(usize) -> Option<ClassId>) -> Vec<usize> {
    if count <= most {
        return (0..count).collect();
    }
    let mut classes: BTreeMap<Option<ClassId>, Vec<usize>> = BTreeMap::new();
    for row in 0..count {
        classes.entry(class_of(row)).or_default().push(row);
    }
    let room = most.saturating_sub(classes.len());
    let mut rows: Vec<usize> = classes
        .values()
        .flat_map(|rows| spread(rows.len(), (rows.len() * room / count).max(1)).map(|at| rows[at]))
        .collect();
    rows.sort_unstable();
    rows
}

/// From the plane to whole numbers, the same in both directions.
pub(crate) struct Scale {
    centre: [f32; 2],
    per_unit: f32,
}

impl Scale {
    const SIDE: f32 = 65535.0;

    pub(crate) fn of(places: &[[f32; 2]]) -> Self {
        let range = |axis: usize| {
            let values = places.iter().map(|place| place[axis]);
            (values.clone().fold(f32::INFINITY, f32::min), values.fold(f32::NEG_INFINITY, f32::max))
        };
        let ((left, right), (bottom, top)) = (range(0), range(1));
        let size = (right - left).max(top - bottom);
        let per_unit = if size > 0.0 && size.is_finite() { Self::SIDE / size } else { 0.0 };
        Scale { centre: [(left + right) / 2.0, (bottom + top) / 2.0], per_unit }
    }

    pub(crate) fn place(&self, place: [f32; 2]) -> (i32, i32) {
        let at = |axis: usize| {
            ((place[axis] - self.centre[axis]) * self.per_unit + Self::SIDE / 2.0).round() as i32
        };
        (at(0), at(1))
    }

    pub(crate) fn points(&self, places: &[[f32; 2]]) -> (Vec<u16>, Vec<u16>) {
        let clamp = |at: i32| at.clamp(0, i32::from(u16::MAX)) as u16;
        places.iter().map(|&place| self.place(place)).map(|(x, y)| (clamp(x), clamp(y))).unzip()
    }
}

pub(crate) fn packed_class(class: Option<ClassId>) -> u16 {
    class.and_then(|class| u16::try_from(class).ok()).unwrap_or(NO_CLASS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_keep_every_class_and_their_proportions() {
        let class_of = |row: usize| Some(if row == 77 { 9 } else { ClassId::from(row.is_multiple_of(4)) });
        let rows = stratified(100_000, 1000, class_of);
        assert!(rows.len() <= 1000 && rows.len() > 990, "{}", rows.len());
        assert!(rows.contains(&77) && rows.is_sorted());
        let quarter = rows.iter().filter(|&&row| row.is_multiple_of(4)).count();
        assert!((240..260).contains(&quarter), "{quarter}");
        assert_eq!(stratified(5, 10, class_of), [0, 1, 2, 3, 4]);
    }
}
