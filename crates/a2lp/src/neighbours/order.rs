//! Another order of the rows: neighbours stand close together, so that work goes through memory, or through the blocks of a
//! cluster, in stretches.

use std::ops::Range;
use std::sync::Arc;

/// The rows in another order. Nodes after the last row keep their numbers as positions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Order {
    /// The row at each position.
    rows: Vec<u32>,
    /// The position of each row.
    positions: Vec<u32>,
}

impl Order {
    /// From the row at each position.
    pub(crate) fn new(rows: Vec<u32>) -> Self {
        let mut positions = vec![0u32; rows.len()];
        rows.iter().zip(0..).for_each(|(&row, position)| positions[row as usize] = position);
        Order { rows, positions }
    }

    /// The order of some rows, numbered from the first of them.
    pub(crate) fn within(&self, rows: Range<usize>) -> Self {
        let inside = self.rows.iter().filter(|&&row| rows.contains(&(row as usize)));
        Order::new(inside.map(|row| row - rows.start as u32).collect())
    }
}

/// Node numbers and positions, for nodes that may be in another order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbering(Option<Arc<Order>>);

impl Numbering {
    pub(crate) fn new(order: Option<&Arc<Order>>) -> Self {
        Numbering(order.cloned())
    }

    #[inline]
    pub(crate) fn node_at(&self, position: usize) -> usize {
        match &self.0 {
            Some(order) => order.rows.get(position).map_or(position, |&row| row as usize),
            None => position,
        }
    }

    #[inline]
    pub(crate) fn position_of(&self, node: usize) -> usize {
        match &self.0 {
            Some(order) => order.positions.get(node).map_or(node, |&position| position as usize),
            None => node,
        }
    }

    /// Is every node at the position of its number?
    pub(crate) fn is_plain(&self) -> bool {
        self.0.is_none()
    }
}
