//! The items that a report shows one by one: the least certain, and the most central of unknown groups.

use crate::trace::{
    GroupTrace, Item, LEAST_REACH, MAX_GROUP_ITEMS, MAX_GROUPS, MAX_ITEMS, MOST_REACH, ReachBin, ReachTrace,
};
use a2lp::evaluation::TargetTruth;
use a2lp::{ClassId, Labelling, Status, UnknownGroup, ViewName};

/// Bins of the histogram of reach.
const REACH_BINS: usize = 30;

/// The items of a finished run.
pub(crate) struct Items<'a> {
    pub(crate) labelling: &'a Labelling,
    pub(crate) truth: Option<&'a TargetTruth>,
    pub(crate) ids: Option<&'a [String]>,
}

impl Items<'_> {
    /// The items to check by hand, the worst first.
    pub(crate) fn least_certain(&self) -> Vec<Item> {
        let pseudo = &self.labelling.pseudo_labels;
        let rank = |item: usize| match pseudo.status()[item] {
            Status::Unreached => 0,
            Status::Unknown => 1,
            Status::Weak => 2,
            // What views of a consensus do not agree on comes before what they are unsure of together.
            _ => 3 + usize::from(self.views_agree(item)),
        };
        let mut order: Vec<usize> = (0..pseudo.len()).collect();
        let compare = |&a: &usize, &b: &usize| {
            let confidence = pseudo.confidence();
            rank(a).cmp(&rank(b)).then(confidence[a].total_cmp(&confidence[b])).then(a.cmp(&b))
        };
        if order.len() > MAX_ITEMS {
            order.select_nth_unstable_by(MAX_ITEMS, compare);
            order.truncate(MAX_ITEMS);
        }
        order.sort_unstable_by(compare);
        order.into_iter().map(|row| self.item(row)).collect()
    }

    /// The histogram of reach, and the groups of unknown items.
    pub(crate) fn reach(&self) -> Option<ReachTrace> {
        let reach = self.labelling.reach.as_ref()?;
        let mut bins = vec![ReachBin::default(); REACH_BINS];
        for (item, &value) in reach.values.iter().enumerate() {
            let place = (f64::from(value) / LEAST_REACH).ln() / (MOST_REACH / LEAST_REACH).ln();
            let bin = &mut bins[((place * REACH_BINS as f64).max(0.0) as usize).min(REACH_BINS - 1)];
            bin.items += 1;
            bin.new += usize::from(self.truth.is_some_and(|truth| truth.is_unknown(item)));
        }
        let group = |group: &UnknownGroup| GroupTrace {
            items: group.items.len(),
            central: group.items.iter().take(MAX_GROUP_ITEMS).map(|&row| self.item(row)).collect(),
        };
        let groups = reach.groups.iter().take(MAX_GROUPS).map(group).collect();
        Some(ReachTrace { bins, groups })
    }

    fn item(&self, row: usize) -> Item {
        let pseudo = &self.labelling.pseudo_labels;
        let p = pseudo.probabilities(row);
        let name = |class: ClassId| self.labelling.classes.name(class).to_string();
        let label = pseudo.labels()[row];
        let others = (0..p.len()).filter(|&class| Some(class as ClassId) != label && p[class] > 0.0);
        let second =
            others.max_by(|&a, &b| p[a].total_cmp(&p[b]).then(b.cmp(&a))).filter(|_| label.is_some());
        Item {
            row,
            id: self.ids.map(|ids| ids[row].clone()),
            label: label.map(name),
            probability: label.map_or(0.0, |class| p[class as usize]),
            second: second.map(|class| name(class as ClassId)),
            second_probability: second.map_or(0.0, |class| p[class]),
            confidence: pseudo.confidence()[row],
            status: pseudo.status()[row],
            views: (!self.views_agree(row)).then(|| self.opinions(row)),
            reach: self.labelling.reach.as_ref().map(|reach| reach.values[row]),
            nearest: self.labelling.nearest_labels.as_ref().and_then(|labels| labels[row]).map(name),
            truth: self.truth.map(|truth| truth.names()[truth.ids()[row] as usize].clone()),
            thumbnail: None,
        }
    }

    /// The last label that each view of a consensus gave an item, before the vote.
    fn view_labels(&self, row: usize) -> impl Iterator<Item = (ViewName, Option<ClassId>)> + '_ {
        self.labelling
            .views
            .iter()
            .filter_map(move |view| Some((view.name, view.labels_by_round.last()?[row])))
    }

    fn views_agree(&self, row: usize) -> bool {
        let mut labels = self.view_labels(row).map(|(_, label)| label);
        let first = labels.next();
        labels.all(|label| Some(label) == first)
    }

    /// What each view calls an item, in words.
    fn opinions(&self, row: usize) -> String {
        let said = self.view_labels(row).map(|(view, label)| {
            let label = label.map_or("nothing", |class| self.labelling.classes.name(class));
            format!("{}: {label}", view.as_str())
        });
        said.collect::<Vec<_>>().join(", ")
    }
}
