//! Things that stay in memory as long as there is room, and go to a temporary file if there is not.

use crate::error::ShardError;
use a2lp::blocks::Matrix;
use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Something that can be put into a file.
pub(crate) trait Shelved: Clone {
    fn bytes(&self) -> usize;
    fn write(&self, file: &mut dyn Write) -> std::io::Result<()>;
    fn read(file: &mut dyn Read) -> std::io::Result<Self>;
}

impl Shelved for Vec<f32> {
    fn bytes(&self) -> usize {
        4 * self.len()
    }

    fn write(&self, file: &mut dyn Write) -> std::io::Result<()> {
        file.write_all(&(self.len() as u64).to_le_bytes())?;
        file.write_all(bytemuck::cast_slice(self))
    }

    fn read(file: &mut dyn Read) -> std::io::Result<Self> {
        let mut values = vec![0f32; length(file)?];
        file.read_exact(bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }
}

impl Shelved for Matrix {
    fn bytes(&self) -> usize {
        4 * self.ends.len() + 8 * self.entries.len()
    }

    fn write(&self, file: &mut dyn Write) -> std::io::Result<()> {
        file.write_all(&(self.ends.len() as u64).to_le_bytes())?;
        file.write_all(&(self.entries.len() as u64).to_le_bytes())?;
        file.write_all(bytemuck::cast_slice(&self.ends))?;
        for entries in self.entries.chunks(1 << 14) {
            let packed: Vec<[u32; 2]> =
                entries.iter().map(|&(column, value)| [column, value.to_bits()]).collect();
            file.write_all(bytemuck::cast_slice(&packed))?;
        }
        Ok(())
    }

    fn read(file: &mut dyn Read) -> std::io::Result<Self> {
        let (rows, count) = (length(file)?, length(file)?);
        let mut ends = vec![0u32; rows];
        file.read_exact(bytemuck::cast_slice_mut(&mut ends))?;
        let mut entries = Vec::with_capacity(count);
        let mut packed = vec![[0u32; 2]; count.min(1 << 14)];
        while entries.len() < count {
            let some = &mut packed[..(count - entries.len()).min(1 << 14)];
            file.read_exact(bytemuck::cast_slice_mut(some))?;
            entries.extend(some.iter().map(|&[column, bits]| (column, f32::from_bits(bits))));
        }
        Ok(Matrix { ends, entries })
    }
}

fn length(file: &mut dyn Read) -> std::io::Result<usize> {
    let mut bytes = [0u8; 8];
    file.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes) as usize)
}

/// Memory that may still be taken, and a folder for what does not fit.
pub(crate) struct Room {
    left: Arc<AtomicUsize>,
    folder: Arc<tempfile::TempDir>,
    files: usize,
}

impl Room {
    /// So many bytes of memory, and a temporary folder within `scratch` or where the system has its own.
    pub(crate) fn new(scratch: Option<&Path>, bytes: usize) -> Result<Self, ShardError> {
        let folder = match scratch {
            Some(folder) => tempfile::tempdir_in(folder),
            None => tempfile::tempdir(),
        };
        let folder = folder.map_err(|error| ShardError::storage("a temporary folder", error))?;
        Ok(Room { left: Arc::new(AtomicUsize::new(bytes)), folder: Arc::new(folder), files: 0 })
    }

    /// Puts something into memory if it fits, else into a file.
    pub(crate) fn shelve<T: Shelved>(&mut self, value: T) -> Result<Shelf<T>, ShardError> {
        let bytes = value.bytes();
        let take = |left: usize| left.checked_sub(bytes);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            return Ok(Shelf::Memory { value: Some(value), bytes, left: self.left.clone() });
        }
        self.files += 1;
        let path = self.folder.path().join(self.files.to_string());
        let fail = |error| ShardError::file(&path, error);
        let mut file = File::create(&path).map_err(fail)?;
        value.write(&mut file).map_err(fail)?;
        Ok(Shelf::File { path, _folder: self.folder.clone() })
    }
}

/// Something in memory or in a file. Memory is given back, and the file removed, with it.
pub(crate) enum Shelf<T> {
    Memory { value: Option<T>, bytes: usize, left: Arc<AtomicUsize> },
    File { path: PathBuf, _folder: Arc<tempfile::TempDir> },
}

impl<T: Shelved> Shelf<T> {
    /// What is there.
    pub(crate) fn get(&self) -> Result<Cow<'_, T>, ShardError> {
        match self {
            Shelf::Memory { value: Some(value), .. } => Ok(Cow::Borrowed(value)),
            Shelf::Memory { value: None, .. } => Err(ShardError::Broken("a shelf is empty".into())),
            Shelf::File { path, .. } => {
                let fail = |error| ShardError::file(path, error);
                let mut file = File::open(path).map_err(fail)?;
                Ok(Cow::Owned(T::read(&mut file).map_err(fail)?))
            }
        }
    }

    /// Takes it out.
    pub(crate) fn take(&mut self) -> Result<T, ShardError> {
        match self {
            Shelf::Memory { value, bytes, left } => {
                left.fetch_add(std::mem::take(bytes), Ordering::Relaxed);
                value.take().ok_or_else(|| ShardError::Broken("a shelf is empty".into()))
            }
            Shelf::File { .. } => self.get().map(Cow::into_owned),
        }
    }
}

impl<T> Drop for Shelf<T> {
    fn drop(&mut self) {
        match self {
            Shelf::Memory { bytes, left, .. } => {
                left.fetch_add(*bytes, Ordering::Relaxed);
            }
            // It is in a temporary folder, which goes too.
            Shelf::File { path, .. } => drop(std::fs::remove_file(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_comes_back_from_a_file() {
        let mut room = Room::new(None, 100).unwrap();
        let matrix = Matrix { ends: vec![1, 3], entries: vec![(4, 0.5), (1, -2.0), (7, f32::MIN_POSITIVE)] };
        let small = room.shelve(vec![1.0f32; 20]).unwrap();
        let mut large = room.shelve(matrix.clone()).unwrap();
        assert!(matches!((&small, &large), (Shelf::Memory { .. }, Shelf::File { .. })));
        assert_eq!(*large.get().unwrap(), matrix);
        assert_eq!(large.take().unwrap(), matrix);
        // Room is given back.
        drop(small);
        assert!(matches!(room.shelve(vec![1.0f32; 25]).unwrap(), Shelf::Memory { .. }));
        assert!(matches!(room.shelve(vec![1.0f32; 26]).unwrap(), Shelf::File { .. }));
        let folder = room.folder.path().to_path_buf();
        drop((large, room));
        assert!(!folder.exists());
    }
}
