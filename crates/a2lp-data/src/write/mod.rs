//! Writing files: whole or not at all, and never over another unless asked.

mod arrays;
mod features;
mod labels;
mod tables;

pub(crate) use arrays::Array;
pub use arrays::ArrayFile;
pub use features::LabelledFeatures;
pub use labels::{LabelTable, check_labels_path, choice, label_endings, origin};
pub use tables::{TableColumn, TableFile};

use crate::error::{DataError, Problem};
use std::io::{BufWriter, Seek, Write};
use std::path::Path;

/// A file that is being written.
pub trait Output: Write + Seek + Send {}

impl<W: Write + Seek + Send> Output for W {}

/// Refuses an output that exists already, before any work.
pub fn refuse_existing(path: &Path, force: bool) -> Result<(), DataError> {
    match path.exists() && !force {
        true => Err(DataError::new(path, Problem::Exists)),
        false => Ok(()),
    }
}

/// Writes through a temporary file in the same folder that takes the final name only when it is complete.
pub fn write_atomically(
    path: &Path,
    force: bool,
    write: impl FnOnce(&mut dyn Output) -> std::io::Result<()>,
) -> Result<(), DataError> {
    let fail = |problem: Problem| DataError::new(path, problem);
    refuse_existing(path, force)?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".a2lp-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What a newly created file would have, less the umask.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(folder).map_err(|e| fail(e.into()))?;
    let mut writer = BufWriter::new(file);
    write(&mut writer).and_then(|()| writer.flush()).map_err(|e| fail(e.into()))?;
    let file = writer.into_inner().map_err(|e| fail(e.into_error().into()))?;
    file.as_file().sync_all().map_err(|e| fail(e.into()))?;
    if force {
        file.persist(path).map_err(|e| fail(e.error.into()))?;
    } else {
        file.persist_noclobber(path).map_err(|e| match e.error.kind() {
            std::io::ErrorKind::AlreadyExists => fail(Problem::Exists),
            _ => fail(e.error.into()),
        })?;
    }
    Ok(())
}
