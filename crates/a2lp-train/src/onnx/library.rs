//! The library of ONNX Runtime: the file that was named, or one that is on the machine.

use super::runtime::version_of;
use std::path::{Path, PathBuf};

/// The variable that names the library, as ONNX Runtime's own tools have it.
const VARIABLE: &str = "ORT_DYLIB_PATH";

/// A library that somebody named, and its minor version.
pub(super) fn named(path: &Path) -> Result<(PathBuf, u32), String> {
    match path.is_file().then(|| version_of(path)).flatten() {
        Some(version) => Ok((path.to_path_buf(), version)),
        None if !path.is_file() => {
            Err(format!("{}: no such file; it should be the library of ONNX Runtime", path.display()))
        }
        None => Err(format!("{}: this is not a library of ONNX Runtime 1.17 or later", path.display())),
    }
}

/// The library that the environment names, else that of a Python package that can be seen from here. `None` without either.
pub(super) fn find() -> Result<Option<(PathBuf, u32)>, String> {
    if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return named(Path::new(&path)).map(Some).map_err(|message| format!("{VARIABLE}: {message}"));
    }
    let found = prefixes().into_iter().flat_map(|prefix| libraries_under(&prefix));
    Ok(found.into_iter().find_map(|path| version_of(&path).map(|version| (path, version))))
}

/// Where Pythons are installed: the environment in use, the place of this program, and of the Pythons on the path.
fn prefixes() -> Vec<PathBuf> {
    let mut prefixes: Vec<PathBuf> =
        ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(std::env::var_os).map(PathBuf::from).collect();
    let above = |file: &Path| Some(file.parent()?.parent()?.to_path_buf());
    prefixes.extend(std::env::current_exe().ok().and_then(|program| above(&program)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    for folder in std::env::split_paths(&path) {
        // A link in a folder of programs leads to where the Python is.
        let python = folder.join("python3");
        let real = python.canonicalize().ok();
        prefixes.extend(
            [Some(python).filter(|_| real.is_some()), real]
                .into_iter()
                .flatten()
                .filter_map(|python| above(&python)),
        );
    }
    prefixes.extend(std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local")));
    let mut seen = Vec::new();
    prefixes.retain(|prefix| {
        !seen.contains(prefix) && {
            seen.push(prefix.clone());
            true
        }
    });
    prefixes
}

/// The libraries of packages named `onnxruntime` in a Python's folders.
fn libraries_under(prefix: &Path) -> Vec<PathBuf> {
    let mut packages: Vec<PathBuf> = vec![prefix.join("Lib/site-packages")];
    for version in entries(&prefix.join("lib"), |name| name.starts_with("python3")) {
        packages.extend([version.join("site-packages"), version.join("dist-packages")]);
    }
    let is_library = |name: &str| {
        name.starts_with("libonnxruntime.so") || name == "onnxruntime.dll" || {
            name.starts_with("libonnxruntime.") && name.ends_with(".dylib")
        }
    };
    packages.iter().flat_map(|folder| entries(&folder.join("onnxruntime/capi"), is_library)).collect()
}

/// The entries of a folder with such names, in order; none if there is no such folder.
fn entries(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let read = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = read
        .filter(|entry| entry.file_name().to_str().is_some_and(&wanted))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}
