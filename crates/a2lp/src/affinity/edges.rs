//! The edges that neighbour lists make, kept apart from the weights of a round: anchors push neighbours out of the ends of lists,
//! so an edge is there as long as the list of either end still reaches its place.

use super::sparse::{Block, Layout, SparseGraph, degree, segments};
use super::{Affinity, Edges, inverse_root};
use crate::error::Error;
use crate::neighbours::{NeighbourLists, Numbering, Ranked};
use crate::similarity::Similarity;
use rayon::prelude::*;
use std::borrow::Borrow;
use std::ops::Range;

/// A place in a list, counted over the nodes that were searched for; the last stands for all that come after it too.
type Place = u8;

/// The edge does not go this way.
const ABSENT: Place = Place::MAX;

/// The edges between the nodes that were searched for.
pub(crate) struct BaseEdges {
    blocks: Vec<EdgeBlock>,
    layout: Layout,
    numbering: Numbering,
    similarity: Similarity,
}

/// The edges of consecutive rows, columns ascending: row r of the block has those from `starts[r]` to `starts[r + 1]`.
struct EdgeBlock {
    starts: Vec<usize>,
    /// Column, and the weight ε of each direction.
    entries: Vec<(u32, f32)>,
    /// The place of the column in the row's list, and that of the row in the column's.
    places: Vec<[Place; 2]>,
}

/// A directed edge on its way to the node it points at.
#[derive(Clone, Copy)]
struct SentEdge {
    from: u32,
    to: u32,
    weight: f32,
    place: Place,
}

/// The edges that come from a block, by the block they point into; in ascending order of origin.
struct Sent {
    /// Where the edges into each block end.
    ends: Vec<usize>,
    edges: Vec<SentEdge>,
}

impl Sent {
    fn to(&self, block: usize) -> &[SentEdge] {
        let start = if block == 0 { 0 } else { self.ends[block - 1] };
        &self.edges[start..self.ends[block]]
    }
}

/// An edge between a row of a block and an anchor.
#[derive(Clone, Copy)]
struct Link {
    row: u32,
    anchor: u32,
    weight: f32,
}

/// A + Aᵀ of the lists, normalised. A mutual pair weighs 2ε, a one-way pair ε.
pub(crate) fn symmetrise(lists: &NeighbourLists, similarity: Similarity) -> Result<Affinity<'static>, Error> {
    let BaseEdges { blocks, layout, numbering, .. } = BaseEdges::new(lists, similarity);
    affinity_of(blocks.into_par_iter(), layout, numbering, lists, similarity)
}

impl BaseEdges {
    /// Can places of lists of `k` neighbours be told apart?
    pub(crate) fn can_follow(k: usize) -> bool {
        k < usize::from(ABSENT)
    }

    /// The edges of these lists, but for those of anchors.
    pub(crate) fn new(lists: &NeighbourLists, similarity: Similarity) -> Self {
        let layout = Layout::new(lists.searched());
        let directed = Directed { lists, similarity, numbering: Numbering::new(lists.order()) };
        let sent = directed.sent(layout);
        let join = |block| directed.join(block, layout.rows(block), &sent);
        let blocks = (0..layout.blocks()).into_par_iter().map(join).collect();
        BaseEdges { blocks, layout, numbering: directed.numbering, similarity }
    }

    /// A + Aᵀ, where `lists` are those that the edges were made of, after anchors have been inserted.
    pub(crate) fn affinity(&self, lists: &NeighbourLists) -> Result<Affinity<'static>, Error> {
        affinity_of(self.blocks.par_iter(), self.layout, self.numbering.clone(), lists, self.similarity)
    }
}

fn place(at: usize) -> Place {
    at.min(usize::from(ABSENT) - 1) as Place
}

/// The edges of neighbour lists, each from the node that lists the other.
struct Directed<'a> {
    lists: &'a NeighbourLists,
    similarity: Similarity,
    numbering: Numbering,
}

impl Directed<'_> {
    /// The neighbours of the node at a position that are no anchors: their positions, weights and places.
    fn of(&self, position: usize) -> impl Iterator<Item = (u32, f32, Place)> {
        let searched = self.lists.searched();
        let base = self.lists.of(self.numbering.node_at(position)).iter();
        let base = base.filter(move |neighbour| (neighbour.node() as usize) < searched);
        let edge = |(at, neighbour): (usize, &Ranked)| {
            let to = self.numbering.position_of(neighbour.node() as usize) as u32;
            (to, self.similarity.weight(neighbour.score()), place(at))
        };
        base.enumerate().map(edge).filter(|edge| edge.1 > 0.0)
    }

    /// The edges that come from each block.
    fn sent(&self, layout: Layout) -> Vec<Sent> {
        let sent = |block: usize| {
            let mut ends = vec![0; layout.blocks()];
            for from in layout.rows(block) {
                self.of(from).for_each(|(to, ..)| ends[layout.block_of(to as usize)] += 1);
            }
            let mut next: Vec<usize> = Vec::with_capacity(ends.len());
            let mut all = 0;
            for end in &mut ends {
                next.push(all);
                all += *end;
                *end = all;
            }
            let mut edges = vec![SentEdge { from: 0, to: 0, weight: 0.0, place: ABSENT }; all];
            for from in layout.rows(block) {
                for (to, weight, place) in self.of(from) {
                    let slot = &mut next[layout.block_of(to as usize)];
                    edges[*slot] = SentEdge { from: from as u32, to, weight, place };
                    *slot += 1;
                }
            }
            Sent { ends, edges }
        };
        (0..layout.blocks()).into_par_iter().map(sent).collect()
    }

    /// What the nodes of a block list and who lists them.
    fn join(&self, block: usize, rows: Range<usize>, sent: &[Sent]) -> EdgeBlock {
        // Incoming edges by node; they come in ascending order of origin and stay so.
        let incoming = || sent.iter().flat_map(|sent| sent.to(block));
        let mut ends = vec![0usize; rows.len() + 1];
        incoming().for_each(|edge| ends[edge.to as usize - rows.start + 1] += 1);
        for row in 0..rows.len() {
            ends[row + 1] += ends[row];
        }
        let mut listed_by = vec![(0u32, 0f32, 0 as Place); ends[rows.len()]];
        let mut next = ends.clone();
        for edge in incoming() {
            let slot = &mut next[edge.to as usize - rows.start];
            listed_by[*slot] = (edge.from, edge.weight, edge.place);
            *slot += 1;
        }

        let most = 2 * listed_by.len();
        let mut block = EdgeBlock {
            starts: Vec::with_capacity(rows.len() + 1),
            entries: Vec::with_capacity(most),
            places: Vec::with_capacity(most),
        };
        let mut listed: Vec<(u32, f32, Place)> = Vec::new();
        block.starts.push(0);
        for (row, position) in rows.enumerate() {
            listed.clear();
            listed.extend(self.of(position));
            listed.sort_unstable_by_key(|edge| edge.0);
            let mut listed_by = listed_by[ends[row]..ends[row + 1]].iter().copied().peekable();
            let mut add = |column, weight, places| {
                block.entries.push((column, weight));
                block.places.push(places);
            };
            for &(column, weight, place) in &listed {
                while let Some((other, weight, back)) = listed_by.next_if(|other| other.0 < column) {
                    add(other, weight, [ABSENT, back]);
                }
                match listed_by.next_if(|other| other.0 == column) {
                    Some((_, same, back)) if same == weight => add(column, weight, [place, back]),
                    // The directions of a graph that was given may differ; then each has an entry.
                    Some((_, other, back)) => {
                        add(column, weight, [place, ABSENT]);
                        add(column, other, [ABSENT, back]);
                    }
                    None => add(column, weight, [place, ABSENT]),
                }
            }
            listed_by.for_each(|(other, weight, back)| add(other, weight, [ABSENT, back]));
            block.starts.push(block.entries.len());
        }
        block.entries.shrink_to_fit();
        block.places.shrink_to_fit();
        block
    }
}

/// A + Aᵀ of the edges that lists still reach, with the anchors in them, normalised.
fn affinity_of<B: Borrow<EdgeBlock>>(
    edges: impl IndexedParallelIterator<Item = B>,
    layout: Layout,
    numbering: Numbering,
    lists: &NeighbourLists,
    similarity: Similarity,
) -> Result<Affinity<'static>, Error> {
    let (kept, mut links): (Vec<Vec<Place>>, Vec<Vec<Link>>) = (0..layout.blocks())
        .into_par_iter()
        .map(|block| kept_and_links(layout.rows(block), lists, &numbering, similarity))
        .unzip();
    let kept = kept.concat();
    let among_anchors = add_links_of_anchors(&mut links, layout, lists, &numbering, similarity);
    links.par_iter_mut().for_each(add_up);

    let (mut blocks, mut degrees): (Vec<Block>, Vec<Vec<f64>>) = edges
        .zip(&links)
        .enumerate()
        .map(|(block, (edges, links))| edges.borrow().weighted(layout.rows(block), &kept, links))
        .unzip();
    let (anchors, of_anchors) = rows_of_anchors(&links, among_anchors, layout, lists);
    blocks.push(anchors);
    degrees.push(of_anchors);
    let degrees = degrees.concat();
    if let Some(position) = degrees.iter().position(|d| !d.is_finite()) {
        return Err(Error::WeightOverflow(numbering.node_at(position)));
    }

    let scale: Vec<f64> = degrees.iter().map(|&degree| inverse_root(degree)).collect();
    blocks.par_iter_mut().enumerate().for_each(|(block, rows)| {
        rows.multiply(layout.first(block), &scale);
    });
    let graph = SparseGraph::new(blocks, layout);
    Ok(Affinity::new(Edges::Sparse(graph), numbering, degrees))
}

/// How many of the neighbours that were searched for the lists of some rows still have, and the anchors in them.
fn kept_and_links(
    rows: Range<usize>,
    lists: &NeighbourLists,
    numbering: &Numbering,
    similarity: Similarity,
) -> (Vec<Place>, Vec<Link>) {
    let searched = lists.searched();
    let mut links = Vec::new();
    let kept = rows.enumerate().map(|(row, position)| {
        let mut kept = 0;
        for neighbour in lists.of(numbering.node_at(position)) {
            if (neighbour.node() as usize) < searched {
                kept += 1;
                continue;
            }
            let weight = similarity.weight(neighbour.score());
            if weight > 0.0 {
                links.push(Link { row: row as u32, anchor: neighbour.node() - searched as u32, weight });
            }
        }
        // One more than the last place.
        if kept > 0 { place(kept - 1).saturating_add(1) } else { 0 }
    });
    (kept.collect(), links)
}

/// Adds what the anchors list to the links of the blocks. Returns the edges among anchors, in both directions.
fn add_links_of_anchors(
    links: &mut [Vec<Link>],
    layout: Layout,
    lists: &NeighbourLists,
    numbering: &Numbering,
    similarity: Similarity,
) -> Vec<Link> {
    let searched = lists.searched();
    let mut among = Vec::new();
    for anchor in searched..lists.nodes() {
        let number = (anchor - searched) as u32;
        for neighbour in lists.of(anchor) {
            let (node, weight) = (neighbour.node() as usize, similarity.weight(neighbour.score()));
            if weight <= 0.0 {
                continue;
            }
            if let Some(other) = node.checked_sub(searched) {
                among.push(Link { row: number, anchor: other as u32, weight });
                among.push(Link { row: other as u32, anchor: number, weight });
                continue;
            }
            let position = numbering.position_of(node);
            let block = layout.block_of(position);
            let row = (position - layout.rows(block).start) as u32;
            links[block].push(Link { row, anchor: number, weight });
        }
    }
    add_up(&mut among);
    among
}

/// Sorts links, and adds up those between the same two nodes.
fn add_up(links: &mut Vec<Link>) {
    links.sort_by_key(|link| (link.row, link.anchor));
    links.dedup_by(|next, kept| {
        let same = (next.row, next.anchor) == (kept.row, kept.anchor);
        kept.weight += if same { next.weight } else { 0.0 };
        same
    });
}

impl EdgeBlock {
    /// The rows of A + Aᵀ and their sums: the edges that are left, then the anchors.
    fn weighted(&self, rows: Range<usize>, kept: &[Place], links: &[Link]) -> (Block, Vec<f64>) {
        let mut block = Block::with_capacity(rows.len(), self.entries.len() + links.len());
        let mut degrees = Vec::with_capacity(rows.len());
        let mut links = links.iter().peekable();
        for (row, (bounds, &own)) in self.starts.windows(2).zip(&kept[rows.clone()]).enumerate() {
            let edges = bounds[0]..bounds[1];
            for (&(column, weight), [place, back]) in
                self.entries[edges.clone()].iter().zip(&self.places[edges])
            {
                let listed = if *place < own { weight } else { 0.0 };
                let listed_by = if *back < kept[column as usize] { weight } else { 0.0 };
                if listed + listed_by > 0.0 {
                    block.add(column, listed + listed_by);
                }
            }
            while let Some(link) = links.next_if(|link| link.row as usize == row) {
                block.add(kept.len() as u32 + link.anchor, link.weight);
            }
            degrees.push(degree(block.end_row()));
        }
        block.shrink_to_fit();
        (block, degrees)
    }
}

/// The rows of the anchors and their sums, which are added up segment by segment.
fn rows_of_anchors(
    links: &[Vec<Link>],
    among: Vec<Link>,
    layout: Layout,
    lists: &NeighbourLists,
) -> (Block, Vec<f64>) {
    let searched = lists.searched();
    let mut rows: Vec<Vec<(u32, f32)>> = vec![Vec::new(); lists.nodes() - searched];
    for (block, links) in links.iter().enumerate() {
        let first = layout.first(block) as u32;
        links.iter().for_each(|link| rows[link.anchor as usize].push((first + link.row, link.weight)));
    }
    among.iter().for_each(|link| rows[link.row as usize].push((searched as u32 + link.anchor, link.weight)));
    let mut block = Block::with_capacity(rows.len(), rows.iter().map(Vec::len).sum());
    let mut degrees = Vec::with_capacity(rows.len());
    for row in rows {
        row.iter().for_each(|&(column, weight)| block.add(column, weight));
        degrees.push(segments(block.end_row(), searched).map(degree).sum());
    }
    (block, degrees)
}
