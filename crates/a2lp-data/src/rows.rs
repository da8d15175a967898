//! Where features go on their way from files into the one matrix of a run.

use crate::error::Problem;

/// Values that are made room for before any of them is there: a file has to prove larger claims by its content.
const UNPROVED: usize = 1 << 20;

/// The rows of one file, appended to the rows of the files before it.
pub(crate) struct Rows<'a> {
    values: &'a mut Vec<f32>,
    /// Where the rows of this file end.
    end: usize,
    /// Where the rows of the last file end.
    total: usize,
    /// Takes values that are not to be kept.
    sink: Option<Sink<'a>>,
    /// Values that it has taken.
    taken: usize,
}

/// Takes the values of consecutive rows, in pieces of any size.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&[f32]) -> Result<(), Problem>;

impl<'a> Rows<'a> {
    /// Room for `count` values of this file below `values`, of `total` in all files.
    pub(crate) fn new(values: &'a mut Vec<f32>, count: usize, total: usize) -> Self {
        let end = values.len() + count;
        Rows { values, end, total, sink: None, taken: 0 }
    }

    /// The `count` values of one file, passed on as they come. `values` is room for formats that need the whole file at once.
    pub(crate) fn streamed(values: &'a mut Vec<f32>, count: usize, sink: Sink<'a>) -> Self {
        Rows { sink: Some(sink), ..Self::new(values, count, count) }
    }

    /// Values of this file that are still to come.
    #[cfg(feature = "tables")]
    pub(crate) fn room(&self) -> usize {
        self.end - self.values.len()
    }

    /// Adds values. Memory grows with what was read, not with what the file claims.
    pub(crate) fn push(&mut self, values: &[f32]) -> Result<(), Problem> {
        let length = self.taken + self.values.len() + values.len();
        if length > self.end {
            return Err(Problem::Changed);
        }
        if let Some(sink) = &mut self.sink {
            self.taken += values.len();
            return sink(values);
        }
        if length > self.values.capacity() {
            self.reserve((2 * length).max(UNPROVED).min(self.total.max(length)))?;
        }
        self.values.extend_from_slice(values);
        Ok(())
    }

    /// Makes room for everything at once: for a file that is known to be as long as it claims.
    pub(crate) fn reserve_all(&mut self) -> Result<(), Problem> {
        if self.sink.is_some() { Ok(()) } else { self.reserve(self.end) }
    }

    /// All rows of this file, zero, to be filled in any order; for a file that is known to be as long as it claims.
    pub(crate) fn whole(&mut self) -> Result<&mut [f32], Problem> {
        let start = self.values.len();
        self.reserve(self.end)?;
        self.values.resize(self.end, 0.0);
        Ok(&mut self.values[start..])
    }

    /// Did every row come?
    pub(crate) fn finish(self) -> Result<(), Problem> {
        if self.taken + self.values.len() != self.end {
            return Err(Problem::Changed);
        }
        match self.sink {
            Some(sink) if !self.values.is_empty() => sink(self.values),
            _ => Ok(()),
        }
    }

    fn reserve(&mut self, length: usize) -> Result<(), Problem> {
        let more = length.saturating_sub(self.values.len());
        self.values.try_reserve_exact(more).map_err(|_| Problem::Memory(4 * length as u128))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_alone_takes_no_memory() {
        let mut values = Vec::new();
        let mut rows = Rows::new(&mut values, 1 << 40, 1 << 40);
        rows.push(&[1.0; 8]).unwrap();
        assert!(rows.finish().is_err());
        assert!(values.capacity() <= UNPROVED);
    }

    #[test]
    fn an_honest_file_ends_with_memory_of_its_size() {
        let mut values = Vec::new();
        let total = 5 * UNPROVED;
        let mut rows = Rows::new(&mut values, total, total);
        (0..total / 64).for_each(|_| rows.push(&[0.5; 64]).unwrap());
        assert!(rows.push(&[0.5]).is_err());
        rows.finish().unwrap();
        assert_eq!(values.capacity(), total);
    }
}
