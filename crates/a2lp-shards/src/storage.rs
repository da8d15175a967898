//! Where stages leave their results: names and bytes, written once, whole or not at all. A folder here; anything that can do the
//! same elsewhere.

use crate::error::ShardError;
use bytemuck::Pod;
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Named results that do not change once they are there.
pub trait Storage: Send + Sync {
    /// Bytes of a result; `None` if it is not there.
    fn length(&self, name: &str) -> Result<Option<u64>, ShardError>;
    /// Fills `bytes` with what stands from `offset` on.
    fn read_into(&self, name: &str, offset: u64, bytes: &mut [u8]) -> Result<(), ShardError>;
    /// Writes a result, whole or not at all.
    fn write(&self, name: &str, parts: &[&[u8]]) -> Result<(), ShardError>;
    /// Removes a result, if it is there.
    fn remove(&self, name: &str) -> Result<(), ShardError>;
}

impl dyn Storage + '_ {
    /// Is it there?
    pub fn has(&self, name: &str) -> Result<bool, ShardError> {
        Ok(self.length(name)?.is_some())
    }

    /// So many values from a place on.
    pub fn read<T: Pod>(&self, name: &str, first: usize, count: usize) -> Result<Vec<T>, ShardError> {
        let mut values = vec![T::zeroed(); count];
        let offset = (first * size_of::<T>()) as u64;
        self.read_into(name, offset, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    /// All values.
    pub fn read_all<T: Pod>(&self, name: &str) -> Result<Vec<T>, ShardError> {
        let Some(length) = self.length(name)? else { return Err(ShardError::storage(name, "it is missing")) };
        self.read(name, 0, length as usize / size_of::<T>())
    }
}

/// A folder.
pub struct Folder {
    root: PathBuf,
    /// Files that were read lately.
    open: Mutex<HashMap<String, Arc<File>>>,
}

/// Most files that are held open.
const MOST_OPEN: usize = 256;

impl Folder {
    /// This folder, which is made if it is not there.
    pub fn new(root: &Path) -> Result<Self, ShardError> {
        std::fs::create_dir_all(root).map_err(|error| ShardError::file(root, error))?;
        Ok(Folder { root: root.to_path_buf(), open: Mutex::default() })
    }

    fn opened(&self, name: &str) -> Result<Arc<File>, ShardError> {
        let mut open = self.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(file) = open.get(name) {
            return Ok(file.clone());
        }
        let path = self.root.join(name);
        let file = Arc::new(File::open(&path).map_err(|error| ShardError::file(&path, error))?);
        if open.len() >= MOST_OPEN {
            open.clear();
        }
        open.insert(name.into(), file.clone());
        Ok(file)
    }

    fn forget(&self, name: &str) {
        self.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).remove(name);
    }
}

impl Storage for Folder {
    fn length(&self, name: &str) -> Result<Option<u64>, ShardError> {
        let path = self.root.join(name);
        match std::fs::metadata(&path) {
            Ok(about) => Ok(Some(about.len())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ShardError::file(&path, error)),
        }
    }

    fn read_into(&self, name: &str, offset: u64, bytes: &mut [u8]) -> Result<(), ShardError> {
        let fail = |error| ShardError::file(&self.root.join(name), error);
        read_exact_at(self.opened(name)?.as_ref(), bytes, offset).map_err(fail)
    }

    fn write(&self, name: &str, parts: &[&[u8]]) -> Result<(), ShardError> {
        let path = self.root.join(name);
        let fail = |error: std::io::Error| ShardError::file(&path, error);
        let folder = path.parent().unwrap_or(&self.root);
        std::fs::create_dir_all(folder).map_err(fail)?;
        let mut file = tempfile::Builder::new().prefix(".part-").tempfile_in(folder).map_err(fail)?;
        parts.iter().try_for_each(|part| file.write_all(part)).map_err(fail)?;
        file.persist(&path).map_err(|error| fail(error.error))?;
        self.forget(name);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), ShardError> {
        self.forget(name);
        let path = self.root.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(ShardError::file(&path, error)),
            _ => Ok(()),
        }
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let read = std::os::windows::fs::FileExt::seek_read(file, &mut bytes[done..], offset + done as u64)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        done += read;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_whole_and_can_be_read_in_parts() {
        let folder = tempfile::tempdir().unwrap();
        let storage: &dyn Storage = &Folder::new(folder.path()).unwrap();
        assert!(!storage.has("a/b").unwrap());
        assert!(storage.read_all::<u32>("a/b").unwrap_err().to_string().contains("a/b"));
        storage.write("a/b", &[bytemuck::cast_slice(&[1u32, 2]), bytemuck::cast_slice(&[3u32])]).unwrap();
        assert_eq!(storage.read_all::<u32>("a/b").unwrap(), [1, 2, 3]);
        assert_eq!(storage.read::<u32>("a/b", 1, 2).unwrap(), [2, 3]);
        assert!(storage.read::<u32>("a/b", 2, 2).is_err());
        // A new result under an old name is the one that is read.
        storage.write("a/b", &[&[7, 0, 0, 0]]).unwrap();
        assert_eq!(storage.read_all::<u32>("a/b").unwrap(), [7]);
        storage.remove("a/b").unwrap();
        storage.remove("a/b").unwrap();
        assert!(!storage.has("a/b").unwrap());
        assert_eq!(std::fs::read_dir(folder.path().join("a")).unwrap().count(), 0);
    }
}
