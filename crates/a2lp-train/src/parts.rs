//! A file of rows that grows batch by batch: work that was interrupted goes on where it stopped.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Result, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Finished rows of one length, behind a line that says what they belong to.
#[derive(Debug)]
pub(crate) struct Parts {
    file: Mutex<File>,
    /// Where the rows begin.
    start: u64,
    row_bytes: usize,
    rows: usize,
}

/// The first line of the file.
#[derive(Serialize, Deserialize)]
struct Head {
    fingerprint: String,
    row_bytes: usize,
}

impl Parts {
    /// What an earlier run with this fingerprint left; `None` if there is nothing of the kind.
    pub(crate) fn find(path: &Path, fingerprint: &str) -> Result<Option<Self>> {
        let file = match File::options().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut line = Vec::new();
        BufReader::new(&file).take(4096).read_until(b'\n', &mut line)?;
        let head: Option<Head> = serde_json::from_slice(&line).ok();
        let Some(Head { row_bytes, .. }) =
            head.filter(|head| head.fingerprint == fingerprint && head.row_bytes > 0)
        else {
            return Ok(None);
        };
        let start = line.len() as u64;
        // A row that was cut off by a crash is made again.
        let rows = (file.metadata()?.len().saturating_sub(start) / row_bytes as u64) as usize;
        Ok(Some(Parts { file: Mutex::new(file), start, row_bytes, rows }))
    }

    /// An empty file in place of whatever was there.
    pub(crate) fn create(path: &Path, fingerprint: &str, row_bytes: usize) -> Result<Self> {
        let mut line = serde_json::to_vec(&Head { fingerprint: fingerprint.into(), row_bytes })?;
        line.push(b'\n');
        let mut file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        file.write_all(&line)?;
        Ok(Parts { file: Mutex::new(file), start: line.len() as u64, row_bytes, rows: 0 })
    }

    pub(crate) fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// How many rows are finished.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The file, at a byte of a row.
    fn at(&self, row: usize, byte: usize) -> Result<MutexGuard<'_, File>> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.start + row as u64 * self.row_bytes as u64 + byte as u64))?;
        Ok(file)
    }

    /// Adds finished rows; they survive a crash from then on.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut file = self.at(self.rows, 0)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        drop(file);
        self.rows += bytes.len() / self.row_bytes;
        Ok(())
    }

    /// Some rows, from this one on.
    pub(crate) fn read(&self, first: usize, rows: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; rows * self.row_bytes];
        self.at(first, 0)?.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Some bytes of a row.
    pub(crate) fn read_some(&self, row: usize, bytes: Range<usize>) -> Result<Vec<u8>> {
        let mut read = vec![0; bytes.len()];
        self.at(row, bytes.start)?.read_exact(&mut read)?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_rows_are_found_again_and_half_rows_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows");
        assert!(Parts::find(&path, "a").unwrap().is_none());
        let mut parts = Parts::create(&path, "a", 3).unwrap();
        parts.append(b"abcdef").unwrap();
        drop(parts);
        File::options().append(true).open(&path).unwrap().write_all(b"xy").unwrap();
        let mut parts = Parts::find(&path, "a").unwrap().unwrap();
        assert_eq!((parts.rows(), parts.row_bytes()), (2, 3));
        parts.append(b"ghi").unwrap();
        assert_eq!(parts.read(1, 2).unwrap(), b"defghi");
        assert_eq!(parts.read_some(2, 1..3).unwrap(), b"hi");
        assert!(Parts::find(&path, "b").unwrap().is_none(), "rows of another run");
        assert_eq!(Parts::create(&path, "b", 3).unwrap().rows(), 0);
    }
}
