//! Where tests find real data, and how `make test` learns which of them could run.

use std::path::PathBuf;

/// The data folder: `A2LP_TEST_DATA`, else a folder `shared` beside the project. `None`, noted, when it is not there.
pub(crate) fn find(test: &str) -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var_os("A2LP_TEST_DATA").map_or_else(|| root.join("../shared"), PathBuf::from);
    let found = folder.join("data").is_dir();
    let notes = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("data-tests");
    std::fs::create_dir_all(&notes).unwrap();
    std::fs::write(notes.join(format!("{}-{test}", if found { "ran" } else { "skipped" })), "").unwrap();
    if !found {
        eprintln!("{test}: skipped, no data at {}", folder.display());
    }
    found.then_some(folder)
}
