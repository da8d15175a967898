//! Which images there are and which class each belongs to, in the layouts people use.

use crate::error::{DataError, Problem};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const ENDINGS: [&str; 8] = ["jpg", "jpeg", "png", "ppm", "bmp", "pgm", "webp", "pnm"];
/// The file that lists the classes of a dataset.
const CATEGORIES: &str = "category.txt";

/// An image file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageItem {
    /// Where it is.
    pub path: PathBuf,
    /// Its class, as a position in [`ImageSet::classes`]; `None` in a folder without classes.
    pub class: Option<usize>,
}

/// Images and their classes, in an order that depends on names only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageSet {
    /// The class names; empty when nothing is labelled.
    pub classes: Vec<String>,
    /// The images, by class and then by path; in the order of the list for image lists.
    pub images: Vec<ImageItem>,
}

impl ImageSet {
    /// Reads a folder with a folder per class (also one level down, in `images`), a folder of images without classes, or
    /// a list of lines `path label`.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let fail = |problem| DataError::new(path, problem);
        let set = if path.is_dir() { Self::folder(path) } else { Self::list(path, None) }.map_err(fail)?;
        if set.images.is_empty() {
            return Err(fail(Problem::Table(format!(
                "no images here; looked for files ending in {}",
                ENDINGS.join(", ")
            ))));
        }
        Ok(set)
    }

    /// Reads one domain of a dataset: its folder, or its list in `image_list`, `list` or beside it.
    pub fn open_domain(root: &Path, domain: &str) -> Result<Self, DataError> {
        let folder = root.join(domain);
        if folder.is_dir() {
            return Self::open(&folder);
        }
        let lists =
            ["image_list/{}.txt", "list/{}.txt", "list/{}_list.txt", "{}_list.txt", "{}List.txt", "{}.txt"];
        match lists.iter().map(|name| root.join(name.replace("{}", domain))).find(|list| list.is_file()) {
            Some(list) => Self::list(&list, Some(root)).map_err(|problem| DataError::new(&list, problem)),
            None => {
                let folders = subfolders(root).unwrap_or_default().join(", ");
                let message = format!(
                    "no domain '{domain}' (a folder, or a list in image_list/); folders here: {folders}"
                );
                Err(DataError::new(root, Problem::Table(message)))
            }
        }
    }

    /// Images per class.
    pub fn counts(&self) -> Vec<(String, usize)> {
        let mut counts = vec![0; self.classes.len()];
        self.images.iter().filter_map(|image| image.class).for_each(|class| counts[class] += 1);
        self.classes.iter().cloned().zip(counts).collect()
    }

    fn folder(root: &Path) -> Result<Self, Problem> {
        let listed =
            [root.join(CATEGORIES), root.join("..").join(CATEGORIES)].into_iter().find(|file| file.is_file());
        if let Some(file) = listed {
            let text = std::fs::read_to_string(file)?;
            let classes: Vec<String> =
                text.lines().map(str::trim).filter(|l| !l.is_empty()).map(String::from).collect();
            return Self::by_class(root, classes);
        }
        let names = subfolders(root)?;
        // Office-31's archive has everything one level down.
        if names == ["images"] {
            return Self::folder(&root.join("images"));
        }
        if names.is_empty() {
            let images =
                images_below(root)?.into_iter().map(|path| ImageItem { path, class: None }).collect();
            return Ok(ImageSet { classes: Vec::new(), images });
        }
        let loose =
            std::fs::read_dir(root)?.filter_map(Result::ok).filter(|entry| is_image(&entry.path())).count();
        if loose > 0 {
            let message = format!(
                "{loose} images beside {} folders; one folder per class, or no folders at all",
                names.len()
            );
            return Err(Problem::Table(message));
        }
        Self::by_class(root, names)
    }

    fn by_class(root: &Path, classes: Vec<String>) -> Result<Self, Problem> {
        let inner = root.join("images");
        let root =
            if inner.is_dir() && !classes.iter().any(|class| class == "images") { &inner } else { root };
        let mut images = Vec::new();
        for (class, name) in classes.iter().enumerate() {
            let folder = root.join(name);
            if folder.is_dir() {
                images.extend(
                    images_below(&folder)?.into_iter().map(|path| ImageItem { path, class: Some(class) }),
                );
            }
        }
        Ok(ImageSet { classes, images })
    }

    /// Lines `path label`: the last word is the label, paths are relative to the root (else to the list's folder).
    fn list(file: &Path, root: Option<&Path>) -> Result<Self, Problem> {
        let text = std::fs::read_to_string(file)?;
        let here = file.parent().unwrap_or(Path::new("."));
        let mut named: Vec<(PathBuf, &str)> = Vec::new();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let Some((path, label)) = line.trim().rsplit_once(char::is_whitespace) else {
                return Err(Problem::Line {
                    line: at as u64 + 1,
                    message: format!("'{line}' is not a path and a label"),
                });
            };
            named.push((root.unwrap_or(here).join(path.trim()), label));
        }
        let numbers: Option<Vec<usize>> = named.iter().map(|(_, label)| label.parse().ok()).collect();
        let classes: Vec<String> = match &numbers {
            // Numbers are positions; the folder names of their images are their names, where they agree.
            Some(numbers) => {
                let count = numbers.iter().max().map_or(0, |largest| largest + 1);
                if count > named.len().max(1000) * 10 {
                    return Err(Problem::Table(format!(
                        "label {} in a list of {} images",
                        count - 1,
                        named.len()
                    )));
                }
                let mut names: BTreeMap<usize, Option<String>> = BTreeMap::new();
                for ((path, _), &class) in named.iter().zip(numbers) {
                    let parent = path
                        .parent()
                        .and_then(Path::file_name)
                        .map(|name| name.to_string_lossy().into_owned());
                    let name = names.entry(class).or_insert_with(|| parent.clone());
                    if *name != parent {
                        *name = None;
                    }
                }
                let mut seen = std::collections::BTreeSet::new();
                let distinct = names.values().flatten().all(|name| seen.insert(name.clone()));
                (0..count)
                    .map(|class| match names.get(&class) {
                        Some(Some(name)) if distinct => name.clone(),
                        _ => class.to_string(),
                    })
                    .collect()
            }
            None => {
                let mut names: Vec<String> = named.iter().map(|(_, label)| label.to_string()).collect();
                names.sort_unstable();
                names.dedup();
                names
            }
        };
        let images = named
            .iter()
            .enumerate()
            .map(|(at, (path, label))| ImageItem {
                path: path.clone(),
                class: match &numbers {
                    Some(numbers) => Some(numbers[at]),
                    None => classes.binary_search(&label.to_string()).ok(),
                },
            })
            .collect();
        Ok(ImageSet { classes, images })
    }
}

/// Which classes only one of two sets has, in words; `None` when there are none, in whatever order.
pub fn compare_classes(a: &ImageSet, b: &ImageSet, names: [&str; 2]) -> Option<String> {
    if a.classes.is_empty() || b.classes.is_empty() {
        return None;
    }
    let only = |of: &ImageSet, other: &ImageSet| -> Vec<String> {
        of.classes.iter().filter(|class| !other.classes.contains(class)).cloned().collect()
    };
    let parts: Vec<String> = [(names[0], only(a, b)), (names[1], only(b, a))]
        .into_iter()
        .filter(|(_, classes)| !classes.is_empty())
        .map(|(name, classes)| format!("only {name} has: {}", classes.join(", ")))
        .collect();
    let counts =
        format!("{} has {} classes, {} has {}", names[0], a.classes.len(), names[1], b.classes.len());
    (!parts.is_empty()).then(|| format!("{counts}; {}", parts.join("; ")))
}

fn is_image(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str())) && path.is_file()
}

fn subfolders(root: &Path) -> Result<Vec<String>, Problem> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Images in a folder and below it, by path.
fn images_below(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            // Links to folders are not followed: they may lead in circles.
            if entry.file_type()?.is_dir() {
                open.push(path);
            } else if is_image(&path) {
                found.push(path);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        dir
    }

    fn found(set: &ImageSet, root: &Path) -> Vec<(String, Option<usize>)> {
        let name = |path: &Path| path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        set.images.iter().map(|image| (name(&image.path), image.class)).collect()
    }

    #[test]
    fn a_folder_per_class_in_the_order_of_names() {
        let dir = tree(&["mug/b.JPG", "mug/deeper/a.png", "bike/1.bmp", "bike/notes.txt", ".git/x.png"]);
        let set = ImageSet::open(dir.path()).unwrap();
        assert_eq!(set.classes, ["bike", "mug"]);
        assert_eq!(
            found(&set, dir.path()),
            [
                ("bike/1.bmp".into(), Some(0)),
                ("mug/b.JPG".into(), Some(1)),
                ("mug/deeper/a.png".into(), Some(1))
            ]
        );
        assert_eq!(set.counts(), [("bike".into(), 1), ("mug".into(), 2)]);
    }

    #[test]
    fn office_31_has_one_level_more() {
        let dir = tree(&["amazon/images/mug/1.jpg", "amazon/images/bike/1.jpg", "webcam/images/mug/1.jpg"]);
        let set = ImageSet::open_domain(dir.path(), "amazon").unwrap();
        assert_eq!(set.classes, ["bike", "mug"]);
        let other = ImageSet::open_domain(dir.path(), "webcam").unwrap();
        assert_eq!(
            compare_classes(&set, &other, ["amazon", "webcam"]).unwrap(),
            "amazon has 2 classes, webcam has 1; only amazon has: bike"
        );
        assert_eq!(compare_classes(&set, &set, ["amazon", "amazon"]), None);
        let error = ImageSet::open_domain(dir.path(), "dslr").unwrap_err().to_string();
        assert!(error.contains("amazon, webcam"), "{error}");
    }

    #[test]
    fn a_category_file_decides_names_order_and_what_is_left_out() {
        let dir = tree(&["a/mug/1.jpg", "a/bike/1.jpg", "a/other/1.jpg"]);
        fs::write(dir.path().join("category.txt"), "mug\nbike\npen\n").unwrap();
        let set = ImageSet::open_domain(dir.path(), "a").unwrap();
        assert_eq!(set.classes, ["mug", "bike", "pen"]);
        assert_eq!(
            found(&set, dir.path()),
            [("a/mug/1.jpg".into(), Some(0)), ("a/bike/1.jpg".into(), Some(1))]
        );
    }

    #[test]
    fn lists_of_paths_and_labels() {
        let dir = tree(&["amazon/back pack/1.jpg"]);
        fs::create_dir(dir.path().join("image_list")).unwrap();
        let list = "amazon/back pack/1.jpg 1\n\namazon/bike/2.jpg 0\n";
        fs::write(dir.path().join("image_list/amazon.txt"), list).unwrap();
        fs::remove_dir_all(dir.path().join("amazon")).unwrap();
        let set = ImageSet::open_domain(dir.path(), "amazon").unwrap();
        assert_eq!(set.classes, ["bike", "back pack"]);
        assert_eq!(
            found(&set, dir.path()),
            [("amazon/back pack/1.jpg".into(), Some(1)), ("amazon/bike/2.jpg".into(), Some(0))]
        );
        fs::write(dir.path().join("words.txt"), "x.jpg mug\ny.jpg bike\n").unwrap();
        assert_eq!(ImageSet::open(&dir.path().join("words.txt")).unwrap().classes, ["bike", "mug"]);
        fs::write(dir.path().join("bad.txt"), "x.jpg mug\njustpath\n").unwrap();
        assert!(ImageSet::open(&dir.path().join("bad.txt")).unwrap_err().to_string().contains("line 2"));
        fs::write(dir.path().join("huge.txt"), "x.jpg 4294967295\n").unwrap();
        assert!(ImageSet::open(&dir.path().join("huge.txt")).is_err());
    }

    #[test]
    fn images_without_classes_and_folders_without_sense() {
        let dir = tree(&["b.png", "a.png"]);
        let set = ImageSet::open(dir.path()).unwrap();
        assert!(set.classes.is_empty());
        assert_eq!(found(&set, dir.path()), [("a.png".into(), None), ("b.png".into(), None)]);
        let mixed = tree(&["b.png", "mug/a.png"]);
        assert!(ImageSet::open(mixed.path()).unwrap_err().to_string().contains("1 images beside 1 folders"));
        let empty = tree(&["notes.txt"]);
        assert!(ImageSet::open(empty.path()).unwrap_err().to_string().contains("no images here"));
    }
}
