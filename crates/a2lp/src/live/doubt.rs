//! Which item to show: one that is in doubt, among others in doubt, so that a word about it settles many.

use super::LiveLabels;

/// The neighbours of an item that was chosen count for this much of what they did: they will probably follow it.
const AFTER_A_NEIGHBOUR: f32 = 0.25;

impl LiveLabels {
    /// The items that a person should look at, the one that repairs most first: doubt about it, times that doubt and the doubt among
    /// its neighbours, where doubt is one minus the margin. Items that `skips` names are left out, and so are known ones.
    pub fn doubtful(&self, count: usize, skips: impl Fn(usize) -> bool) -> Vec<usize> {
        let labels = &self.labelling.pseudo_labels;
        let doubt: Vec<[f32; 1]> = labels.margin().iter().map(|margin| [1.0 - margin]).collect();
        let mut among_neighbours = vec![[0f32; 1]; doubt.len()];
        let prepared = self.neighbours().prepare(&doubt);
        self.neighbours().multiply_rows(&prepared, 0..doubt.len(), &doubt, &mut among_neighbours);
        let left_out = |item: usize| self.labelling.known.get(item).is_some() || skips(item);
        let score = |item: usize| match left_out(item) {
            true => -1.0,
            false => doubt[item][0] * (doubt[item][0] + among_neighbours[item][0]),
        };
        let mut scores: Vec<f32> = (0..doubt.len()).map(score).collect();
        let mut heap: std::collections::BinaryHeap<Scored> = (0..scores.len())
            .filter(|&item| scores[item] >= 0.0)
            .map(|item| Scored(scores[item], item))
            .collect();
        let (mut chosen, mut row) = (Vec::new(), Vec::new());
        while chosen.len() < count
            && let Some(Scored(score, item)) = heap.pop()
        {
            // Scores only fall; an entry that is out of date is put back where it belongs.
            if score != scores[item] {
                heap.push(Scored(scores[item], item));
                continue;
            }
            chosen.push(item);
            scores[item] = -1.0;
            self.neighbours().row(item, &mut row);
            for &(neighbour, _) in &row {
                if scores[neighbour as usize] > 0.0 {
                    scores[neighbour as usize] *= AFTER_A_NEIGHBOUR;
                }
            }
        }
        chosen
    }

    /// The items of the target that look most like one, the most similar first.
    pub fn look_alikes(&self, item: usize) -> Vec<usize> {
        let mut row = Vec::new();
        self.neighbours().row(item, &mut row);
        row.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        row.into_iter().map(|(item, _)| item as usize).collect()
    }
}

/// An item and its score; higher scores first, then lower items.
#[derive(PartialEq)]
struct Scored(f32, usize);

impl Eq for Scored {}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(other.1.cmp(&self.1))
    }
}
