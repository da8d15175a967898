//! NN-Descent (Dong, Moses, Li, 2011), the search the paper names: a neighbour of a neighbour is likely to be a
//! neighbour. Lists start within groups of similar rows; then, round after round, everything that a node has newly met
//! is introduced to everything else it knows.
//!
//! A list ends as the best k of all that it was offered, which does not depend on the order of the offers, and samples
//! are drawn by hashes: the result depends on the seed alone, not on threads.

use super::partition::{Centres, usual_groups};
use super::{NeighbourLists, Ranked};
use crate::error::Error;
use crate::features::FeatureMatrix;
use crate::kernels::{PackedRows, ScoreTile};
use crate::observer::{Observer, Stage, report_progress};
use crate::similarity::Similarity;
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Most new (and most old) acquaintances that a node introduces to each other in a round.
const MOST_INTRODUCED: usize = 60;
/// The search ends when a round improves fewer than this share of the entries.
const STOP_AT: f64 = 0.001;
/// Most rows compared with each other at the start.
const LARGEST_GROUP: usize = 1024;
/// Every row starts in this many groups: groups that do not overlap would never hear of each other.
const OVERLAP: usize = 2;
/// Nodes handled as one piece of parallel work.
const NODES_PER_TASK: usize = 64;

/// The `k` nearest other rows of every row, most of them.
pub(super) fn find(
    features: &FeatureMatrix,
    k: usize,
    similarity: Similarity,
    seed: u64,
    observer: &dyn Observer,
) -> Result<NeighbourLists, Error> {
    let rows = features.rows();
    let descent =
        Descent { features, similarity, k: k.min(rows - 1), seed, lists: Vec::new(), order: Vec::new() };
    let most_rounds = (rows as f64).log2().round().max(5.0) as u64;
    // Most searches need few of the rounds they may take.
    let progress = |round: u64, nodes: usize| {
        report_progress(
            observer,
            Stage::Neighbours,
            round * rows as u64 + nodes as u64,
            most_rounds * rows as u64,
        )
    };
    progress(0, 0)?;
    let descent = descent.start();
    for round in 0..most_rounds {
        let improved = descent.round(round, &|nodes| progress(round, nodes))?;
        if improved as f64 <= STOP_AT * (rows * k) as f64 {
            break;
        }
    }
    let mut lists = NeighbourLists::with_capacity(rows, k);
    for list in &descent.lists {
        let list: Vec<Ranked> = lock(list).kept.iter().map(|entry| entry.neighbour).collect();
        let edges = list.partition_point(|neighbour| neighbour.score() > similarity.floor());
        lists.push(&list[..edges], k);
    }
    Ok(lists)
}

struct Descent<'a> {
    features: &'a FeatureMatrix,
    similarity: Similarity,
    k: usize,
    seed: u64,
    lists: Vec<Mutex<List>>,
    /// The nodes, group by group: what is used together is read together.
    order: Vec<u32>,
}

/// The nearest nodes met so far, nearest first.
#[derive(Default)]
struct List {
    kept: Vec<Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    neighbour: Ranked,
    /// Met in this round, and counted as an improvement at its end.
    fresh: bool,
    /// Not yet introduced to the others.
    new: bool,
}

impl List {
    /// Scores below this cannot enter.
    fn threshold(&self, k: usize) -> f32 {
        match self.kept.last() {
            Some(last) if self.kept.len() == k => last.neighbour.score(),
            _ => f32::NEG_INFINITY,
        }
    }

    fn offer(&mut self, neighbour: Ranked, k: usize) {
        let at = self.kept.partition_point(|entry| entry.neighbour > neighbour);
        if at < k && self.kept.get(at).is_none_or(|entry| entry.neighbour != neighbour) {
            self.kept.truncate(k - 1);
            self.kept.insert(at, Entry { neighbour, fresh: true, new: true });
        }
    }
}

/// Acquaintances that a node introduces to each other, with the hashes they were drawn by.
#[derive(Default)]
struct Sample {
    new: Vec<(u32, u32)>,
    old: Vec<(u32, u32)>,
}

impl Sample {
    /// Keeps the nodes of the smallest hashes.
    fn draw(&mut self, hash: u32, node: u32, new: bool) {
        let drawn = if new { &mut self.new } else { &mut self.old };
        if let Err(at) = drawn.binary_search(&(hash, node))
            && at < MOST_INTRODUCED
        {
            drawn.truncate(MOST_INTRODUCED - 1);
            drawn.insert(at, (hash, node));
        }
    }
}

impl Descent<'_> {
    /// Fills the lists: the rest of a node's group, and where that is too little, nodes drawn by hash.
    fn start(mut self) -> Self {
        let (rows, k) = (self.features.rows(), self.k);
        let groups = usual_groups(rows).min(rows / (2 * k + 2)).max(1);
        let centres = Centres::find_in(self.features, self.similarity, groups, self.seed);
        let overlap = OVERLAP.min(centres.count());
        let mut pieces: Vec<Vec<u32>> = vec![Vec::new(); centres.count()];
        let near = centres.nearest(rows, |row| self.features.row(row), overlap);
        for (node, near) in (0..).zip(near.chunks(overlap)) {
            near.iter().for_each(|&group| pieces[group as usize].push(node));
        }
        self.order = (0..rows as u32).collect();
        self.order.sort_by_key(|&node| near[node as usize * overlap]);
        self.lists.resize_with(rows, Mutex::default);
        pieces
            .par_iter()
            .flat_map(|piece| piece.par_chunks(LARGEST_GROUP))
            .for_each_init(Room::new, |room, members| self.introduce(members, members.len(), room));
        self.lists.par_iter().enumerate().with_min_len(NODES_PER_TASK).for_each(|(node, list)| {
            let mut list = lock(list);
            for attempt in 0..4 * k as u32 {
                if list.kept.len() == k {
                    break;
                }
                let other = hash(self.seed, node as u32, attempt) as usize % rows;
                if other != node {
                    let chain = self.similarity.chain();
                    let accumulated = chain.of(self.features.row(node), self.features.row(other));
                    list.offer(Ranked::new(self.similarity.score(accumulated), other as u32), k);
                }
            }
        });
        self
    }

    /// One round of introductions; returns how many entries improved.
    fn round(
        &self,
        round: u64,
        progress: &(dyn Fn(usize) -> Result<(), Error> + Sync),
    ) -> Result<usize, Error> {
        let samples = self.draw(round);
        let done = AtomicUsize::new(0);
        self.order.par_chunks(NODES_PER_TASK).try_for_each_init(Room::new, |room, nodes| {
            for &node in nodes {
                let Sample { new, old } = &*lock(&samples[node as usize]);
                let members: Vec<u32> = new.iter().chain(old).map(|drawn| drawn.1).collect();
                self.introduce(&members, new.len(), room);
            }
            progress(done.fetch_add(nodes.len(), Ordering::Relaxed))
        })?;
        let improved = |list: &Mutex<List>| {
            let mut list = lock(list);
            list.kept.iter_mut().map(|entry| usize::from(std::mem::take(&mut entry.fresh))).sum::<usize>()
        };
        Ok(self.lists.par_iter().with_min_len(NODES_PER_TASK).map(improved).sum())
    }

    /// Draws what every node introduces: nodes it lists and nodes that list it.
    fn draw(&self, round: u64) -> Vec<Mutex<Sample>> {
        let mut samples: Vec<Mutex<Sample>> = Vec::new();
        samples.resize_with(self.lists.len(), Mutex::default);
        let seed = self.seed ^ (round + 1) << 32;
        let pair_hash = |a: u32, b: u32| hash(seed, a.min(b), a.max(b)) as u32;
        self.lists.par_iter().enumerate().with_min_len(NODES_PER_TASK).for_each(|(node, list)| {
            let node = node as u32;
            for entry in &lock(list).kept {
                let other = entry.neighbour.node();
                let hash = pair_hash(node, other);
                lock(&samples[node as usize]).draw(hash, other, entry.new);
                lock(&samples[other as usize]).draw(hash, node, entry.new);
            }
        });
        // What was drawn is new no more.
        self.lists.par_iter().enumerate().with_min_len(NODES_PER_TASK).for_each(|(node, list)| {
            let sample = lock(&samples[node]);
            for entry in lock(list).kept.iter_mut().filter(|entry| entry.new) {
                let other = entry.neighbour.node();
                let drawn = (pair_hash(node as u32, other), other);
                entry.fresh = false;
                entry.new = sample.new.binary_search(&drawn).is_err();
            }
        });
        samples
    }

    /// Scores the first `new` members against all and offers each to the other.
    fn introduce(&self, members: &[u32], new: usize, room: &mut Room) {
        if new == 0 || members.len() < 2 {
            return;
        }
        let Room { packed, tile, values, hits } = room;
        let columns = self.features.columns();
        values.clear();
        members.iter().for_each(|&node| values.extend_from_slice(self.features.row(node as usize)));
        packed.pack(&values[..new * columns], columns);
        tile.score(self.similarity.chain(), values, packed);
        let thresholds: Vec<f32> =
            members.iter().map(|&node| lock(&self.lists[node as usize]).threshold(self.k)).collect();
        tile.collect_hits(self.similarity.score(1.0), &thresholds, &thresholds[..new], hits);
        for hit in hits.iter() {
            let (a, b) = (members[hit.row as usize], members[hit.packed_row as usize]);
            // Two new ones meet twice; a node that is both new and old may meet itself.
            if hit.row > hit.packed_row && a != b {
                lock(&self.lists[a as usize]).offer(Ranked::new(hit.score, b), self.k);
                lock(&self.lists[b as usize]).offer(Ranked::new(hit.score, a), self.k);
            }
        }
    }
}

/// Buffers of one worker.
struct Room {
    packed: PackedRows,
    tile: ScoreTile,
    values: Vec<f32>,
    hits: Vec<crate::kernels::Hit>,
}

impl Room {
    fn new() -> Self {
        Room { packed: PackedRows::new(), tile: ScoreTile::new(), values: Vec::new(), hits: Vec::new() }
    }
}

/// A number that looks random and depends on nothing but its arguments.
fn hash(seed: u64, a: u32, b: u32) -> u64 {
    let mut z = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (u64::from(a) << 32 | u64::from(b));
    for factor in [0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB] {
        z = (z ^ z >> 30).wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(factor);
    }
    z ^ z >> 31
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
