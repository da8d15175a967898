//! What items look like: pictures and texts that the page shows. Items are asked for by number, never by a path.

use crate::thumbnails::Thumbnails;
use a2lp_data::Picture;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Most bytes of a file that is sent as it is.
const MAX_FILE: u64 = 32 << 20;

/// Pictures and texts of the items of a session.
#[derive(Default)]
pub struct Looks {
    pictures: Pictures,
    texts: Option<Vec<String>>,
    thumbnails: Thumbnails,
}

/// Where pictures come from.
#[derive(Default)]
pub enum Pictures {
    /// There are none.
    #[default]
    None,
    /// An image file for each item that has one.
    Files(Vec<Option<PathBuf>>),
    /// Pixels in memory, one picture for each item.
    Pixels(Vec<Picture>),
}

impl Looks {
    /// Pictures and texts.
    pub fn new(pictures: Pictures, texts: Option<Vec<String>>) -> Self {
        Looks { pictures, texts, thumbnails: Thumbnails::default() }
    }

    /// Are there texts?
    pub fn has_texts(&self) -> bool {
        self.texts.is_some()
    }

    /// The text of an item.
    pub(crate) fn text(&self, item: usize) -> Option<&str> {
        self.texts.as_ref()?.get(item).map(String::as_str)
    }

    /// Is there a picture of any item?
    pub fn has_pictures(&self) -> bool {
        match &self.pictures {
            Pictures::None => false,
            Pictures::Files(files) => files.iter().any(Option::is_some),
            Pictures::Pixels(pictures) => !pictures.is_empty(),
        }
    }

    /// The picture of an item, and its type.
    pub(crate) fn picture(&self, item: usize, is_small: bool) -> Option<(&'static str, Vec<u8>)> {
        match &self.pictures {
            Pictures::None => None,
            Pictures::Files(files) => self.file(item, files.get(item)?.as_deref()?, is_small),
            Pictures::Pixels(pictures) => Some(("image/png", pictures.get(item)?.png()?)),
        }
    }

    /// A file, made smaller if this build can decode it.
    fn file(&self, item: usize, path: &Path, is_small: bool) -> Option<(&'static str, Vec<u8>)> {
        let smaller = self.thumbnails.smaller(item, path, is_small);
        smaller.map(|jpeg| ("image/jpeg", jpeg)).or_else(|| as_it_is(path))
    }
}

/// The bytes of a file, if it is a picture that browsers show.
fn as_it_is(path: &Path) -> Option<(&'static str, Vec<u8>)> {
    if std::fs::metadata(path).ok()?.len() > MAX_FILE {
        return None;
    }
    let bytes = std::fs::read(path).ok()?;
    Some((image_type(&bytes)?, bytes))
}

/// The type of a picture that browsers show, by its first bytes. What is not one is not sent.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'B', b'M', ..] => Some("image/bmp"),
        _ => None,
    }
}

/// The image file of each item in a folder: named by its id, with or without folders and an ending, or by its row.
pub fn find_pictures(
    folder: &Path,
    names: impl Iterator<Item = (u64, Option<String>)>,
) -> std::io::Result<Vec<Option<PathBuf>>> {
    let mut files = Names::default();
    files.collect(folder, folder, 0)?;
    let find = |(row, id): (u64, Option<String>)| {
        let id = id.map(|id| id.replace('\\', "/"));
        // An id may be a longer path than the one within the folder.
        let by_id = id.as_deref().and_then(|id| ends(id).find_map(|end| files.get(end)));
        by_id.or_else(|| files.get(&row.to_string()))
    };
    Ok(names.map(find).collect())
}

/// A path, then without its first folder, and so on.
fn ends(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| path.split_once('/').map(|(_, rest)| rest))
}

/// Files by what they may be called; `None` for a name that several files have.
#[derive(Default)]
struct Names(HashMap<String, Option<PathBuf>>);

impl Names {
    const MAX_DEPTH: usize = 8;

    fn get(&self, name: &str) -> Option<PathBuf> {
        self.0.get(name).cloned().flatten()
    }

    /// Notes the files below a folder.
    fn collect(&mut self, folder: &Path, root: &Path, depth: usize) -> std::io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                if depth < Self::MAX_DEPTH {
                    self.collect(&path, root, depth + 1)?;
                }
            } else if let Ok(within) = path.strip_prefix(root) {
                let name = within.to_string_lossy().replace('\\', "/");
                let stem = name.rsplit_once('.').map(|(stem, _)| stem).filter(|stem| !stem.is_empty());
                for called in ends(&name).chain(stem.into_iter().flat_map(ends)) {
                    let known = self.0.entry(called.to_string()).or_insert_with(|| Some(path.clone()));
                    if known.as_ref().is_some_and(|known| *known != path) {
                        *known = None;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_found_by_every_name_that_is_theirs_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        for name in ["mug/1.png", "bike/1.png", "bike/b.jpg", "7.png"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, "x").expect("a file");
        }
        let names = ["mug/1.png", "/elsewhere/photos/mug/1", "b", "b.jpg", "bike/b", "1.png", "x"];
        let names = names.iter().map(|name| (99, Some(name.to_string()))).chain([(7, None), (1, None)]);
        let found = find_pictures(dir.path(), names).expect("a folder that can be read");
        let found: Vec<Option<String>> = found
            .into_iter()
            .map(|path| Some(path?.strip_prefix(dir.path()).ok()?.to_string_lossy().into_owned()))
            .collect();
        let found: Vec<Option<&str>> = found.iter().map(Option::as_deref).collect();
        let mug = Some("mug/1.png");
        let b = Some("bike/b.jpg");
        // Two files are called 1.png.
        assert_eq!(found, [mug, mug, b, b, b, None, None, Some("7.png"), None]);
    }
}
