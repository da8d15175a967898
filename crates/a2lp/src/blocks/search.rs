//! The nearest rows of a block among the groups near it.

use super::{BlockLists, Grouping};
use crate::error::Error;
use crate::features::FeatureMatrix;
use crate::kernels::{PackedBytes, QuantisedRows};
use crate::neighbours::{GroupSearch, GroupedRows, Held, LentRows, Pool, Room, least_visited};
use crate::similarity::Similarity;
use rayon::prelude::*;
use std::ops::Range;

/// Rows in six bits, a record of the same size each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SixBits {
    /// Features of a row.
    pub columns: usize,
    /// Does any row have a number below zero?
    pub signed: bool,
    /// Decides what scores are made of.
    pub similarity: Similarity,
}

impl SixBits {
    /// Bytes of a record.
    pub fn record_bytes(&self) -> usize {
        QuantisedRows::record_bytes(self.columns)
    }

    /// The records of some rows.
    pub fn records(&self, rows: Vec<f32>) -> Vec<u8> {
        let rows = FeatureMatrix::from_parts(rows.len() / self.columns, self.columns, rows);
        QuantisedRows::of(&rows, self.similarity.chain(), self.signed).to_records()
    }
}

/// Rows on disk or elsewhere, by position.
pub trait RowStore: Sync {
    /// Rows may be out of reach.
    type Failure: From<Error> + Send;

    /// The number of the row at a position.
    fn number(&self, position: usize) -> u32;
    /// The position of the row with a number.
    fn position(&self, number: u32) -> usize;
    /// The features of the rows at these positions, which ascend.
    fn features(&self, positions: &[usize]) -> Result<Vec<f32>, Self::Failure>;
    /// The six-bit records of the rows at these positions.
    fn records(&self, positions: Range<usize>) -> Result<Vec<u8>, Self::Failure>;
}

/// A search among groups.
pub struct BlockSearch<'a> {
    /// The centres.
    pub grouping: &'a Grouping,
    /// First position of each group, and the end.
    pub starts: &'a [usize],
    /// Nearest groups that a row looks at.
    pub probes: usize,
    /// Neighbours of a row.
    pub k: usize,
    /// The similarity, and the shape of the records.
    pub six_bits: SixBits,
    /// Rows whose candidates are held in full at a time; the result does not depend on it.
    pub batch: usize,
}

impl BlockSearch<'_> {
    /// The nearest rows of those at `own`, worked on in pieces of so many rows at a time on every thread.
    pub fn find<S: RowStore>(
        &self,
        store: &S,
        own: Range<usize>,
        piece: usize,
    ) -> Result<BlockLists, S::Failure> {
        let columns = self.six_bits.columns;
        let stored = Stored { store, six_bits: self.six_bits };
        let least = least_visited(self.k, columns);
        let search = GroupSearch {
            rows: &stored,
            centres: &self.grouping.centres,
            pools: &[Pool::of_all(self.starts, self.k, self.probes, least)],
            columns,
            similarity: self.six_bits.similarity,
            batch: self.batch,
        };
        let found = (0..own.len().div_ceil(piece))
            .into_par_iter()
            .with_max_len(1)
            .map_init(Room::new, |room, at| {
                let start = own.start + at * piece;
                search.find(start..own.end.min(start + piece), room)
            })
            .collect::<Result<Vec<_>, S::Failure>>()?;
        let mut lists = crate::neighbours::NeighbourLists::with_capacity(own.len(), self.k);
        for piece in &found {
            (0..piece.nodes()).for_each(|row| lists.push(piece.of(row), self.k));
        }
        Ok(BlockLists::new(lists, self.k))
    }
}

struct Stored<'a, S> {
    store: &'a S,
    six_bits: SixBits,
}

impl<S: RowStore> GroupedRows for Stored<'_, S> {
    type Failure = S::Failure;

    fn number(&self, position: usize) -> u32 {
        self.store.number(position)
    }

    fn rows(&self, numbers: &mut dyn Iterator<Item = u32>) -> Result<LentRows<'_>, S::Failure> {
        let mut wanted: Vec<(usize, u32)> =
            numbers.map(|number| (self.store.position(number), number)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let positions: Vec<usize> = wanted.iter().map(|&(position, _)| position).collect();
        let values = self.store.features(&positions)?;
        let rows = FeatureMatrix::from_parts(positions.len(), self.six_bits.columns, values);
        let mut numbers: Vec<(u32, u32)> =
            wanted.iter().zip(0..).map(|(&(_, number), at)| (number, at)).collect();
        numbers.sort_unstable();
        Ok(LentRows::Some { numbers, rows })
    }

    fn quantised(&self, positions: &Range<usize>) -> Result<(Held<'_, QuantisedRows>, usize), S::Failure> {
        let records = self.store.records(positions.clone())?;
        let rows = QuantisedRows::from_records(&records, self.six_bits.columns, self.six_bits.signed);
        Ok((Held::Own(rows), positions.start))
    }

    fn packed(
        &self,
        _: usize,
        _: usize,
        positions: Range<usize>,
    ) -> Result<Held<'_, PackedBytes>, S::Failure> {
        let records = self.store.records(positions)?;
        let rows = QuantisedRows::from_records(&records, self.six_bits.columns, self.six_bits.signed);
        let mut packed = PackedBytes::new();
        packed.pack(&rows, 0..rows.rows());
        Ok(Held::Own(packed))
    }
}
