//! A folder of domains and the small file, `domains.toml`, that says what is in it.

use a2lp::{Domains, FeatureMatrix, Labels};
use a2lp_data::{
    FeatureFile, FieldNames, Format, Problem, expand, read_class_names, read_labels, read_pictures,
    write_atomically,
};
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Name of the file.
pub(crate) const FILE: &str = "domains.toml";

/// What `domains.toml` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Manifest {
    /// A name for tables.
    pub(crate) name: String,
    /// A file of class names, one per line; labels that are numbers then are positions in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) class_names: Option<PathBuf>,
    /// The domains.
    pub(crate) domain: Vec<DomainFiles>,
    /// The folder; paths are relative to it.
    #[serde(skip)]
    folder: PathBuf,
}

/// The files of one domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DomainFiles {
    pub(crate) name: String,
    pub(crate) features: PathBuf,
    /// Not needed when the features file holds them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) labels: Option<PathBuf>,
}

/// A domain in memory.
#[derive(Clone)]
pub(crate) struct Domain {
    pub(crate) features: FeatureMatrix,
    pub(crate) labels: Vec<String>,
}

impl Domain {
    /// Some of the rows.
    pub(crate) fn rows(&self, rows: &[usize]) -> anyhow::Result<Domain> {
        let features: Vec<&[f32]> = rows.iter().map(|&row| self.features.row(row)).collect();
        let labels = rows.iter().map(|&row| self.labels[row].clone()).collect();
        Ok(Domain { features: FeatureMatrix::from_rows(&features)?, labels })
    }
}

impl Manifest {
    /// Reads the manifest of a folder.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        if !path.exists() {
            bail!(
                "{}: no {FILE} here; write one with: a2lp experiment init {}",
                folder.display(),
                folder.display()
            );
        }
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let mut manifest: Manifest = toml::from_str(&text).with_context(|| path.display().to_string())?;
        manifest.folder = folder.to_path_buf();
        let mut names: Vec<&str> = manifest.domain.iter().map(|domain| domain.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            bail!("{}: domain '{}' appears twice", path.display(), twice[0]);
        }
        if manifest.domain.is_empty() {
            bail!("{}: no domain is listed", path.display());
        }
        Ok(manifest)
    }

    /// Describes a folder by the files it finds: features with more than one column, and labels by their names.
    pub(crate) fn find(folder: &Path) -> anyhow::Result<Self> {
        let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
        let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.sort();
        let mut domain = Vec::new();
        let may_hold_features =
            |path: &Path| Format::of_ending(path).is_some_and(|format| format != Format::Text);
        for path in files.iter().filter(|path| may_hold_features(path)) {
            // What is neither a matrix of features nor an array of images is a file of labels, or a file we do not know.
            let own = match FeatureFile::open(path) {
                Ok(file) if file.columns() < 2 || file.rows() == 0 => continue,
                Ok(mut file) => matches!(file.labels(), Ok(Some(_))),
                // A domain that this build cannot read is not left out without a word.
                Err(error) if matches!(error.problem, Problem::LacksFeature { .. }) => {
                    return Err(error.into());
                }
                Err(_) if matches!(read_pictures(path, &[0]), Ok(Some(_))) => false,
                Err(_) => continue,
            };
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let name = bare_name(&stem);
            let labels = files.iter().find(|other| *other != path && is_labels_of(other, &name));
            if !own && labels.is_none() {
                eprintln!("note: {} has no labels; left out", path.display());
                continue;
            }
            let relative = |path: &Path| PathBuf::from(path.file_name().unwrap_or_default());
            domain.push(DomainFiles {
                name,
                features: relative(path),
                labels: labels.filter(|_| !own).map(|path| relative(path)),
            });
        }
        if domain.is_empty() {
            bail!("{}: no file of features with labels found", folder.display());
        }
        let full = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
        let name = full.file_name().map_or("domains".into(), |name| name.to_string_lossy().into_owned());
        let class_names = ["class_names.txt", "classes.txt"]
            .into_iter()
            .map(PathBuf::from)
            .find(|name| folder.join(name).exists());
        Ok(Manifest { name, class_names, domain, folder: folder.to_path_buf() })
    }

    /// Writes `domains.toml`.
    pub(crate) fn write(&self, force: bool) -> anyhow::Result<PathBuf> {
        let path = self.folder.join(FILE);
        let text = format!(
            "# What `a2lp experiment` works on. Paths are relative to this file.\n{}",
            toml::to_string(self)?
        );
        write_atomically(&path, force, |file| file.write_all(text.as_bytes()))?;
        Ok(path)
    }

    /// The files of a domain.
    pub(crate) fn files(&self, name: &str) -> anyhow::Result<&DomainFiles> {
        self.domain.iter().find(|domain| domain.name == name).with_context(|| {
            let known: Vec<&str> = self.domain.iter().map(|domain| domain.name.as_str()).collect();
            format!(
                "no domain '{name}' in {}; there are {}",
                self.folder.join(FILE).display(),
                known.join(", ")
            )
        })
    }

    /// What results on a domain depend on: its files, their sizes and when they were last changed.
    pub(crate) fn fingerprint(&self, name: &str) -> anyhow::Result<Value> {
        let files = self.files(name)?;
        let paths = [Some(&files.features), files.labels.as_ref(), self.class_names.as_ref()];
        // A pattern stands for several files.
        let mut all = Vec::new();
        for path in paths.into_iter().flatten() {
            all.extend(expand(&self.folder.join(path))?);
        }
        let described = all.into_iter().map(|full| {
            let path = full.strip_prefix(&self.folder).unwrap_or(&full);
            let about = full.metadata().with_context(|| full.display().to_string())?;
            let changed = about.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            Ok(json!({ "path": path, "bytes": about.len(), "changed_unix_nanos": changed.map(|at| at.as_nanos() as u64) }))
        });
        Ok(json!({ "name": name, "files": described.collect::<anyhow::Result<Vec<Value>>>()? }))
    }

    /// Where the items of a domain are, and their labels if they have a file of their own.
    #[cfg(feature = "networks")]
    pub(crate) fn paths(&self, name: &str) -> anyhow::Result<(PathBuf, Option<PathBuf>)> {
        let files = self.files(name)?;
        Ok((self.folder.join(&files.features), files.labels.as_ref().map(|labels| self.folder.join(labels))))
    }

    /// Reads a domain.
    pub(crate) fn load(&self, name: &str) -> anyhow::Result<Domain> {
        let files = self.files(name)?;
        let path = self.folder.join(&files.features);
        let mut file = FeatureFile::open(&path)?;
        let names = match &self.class_names {
            Some(names) => Some(read_class_names(&self.folder.join(names))?),
            None => file.class_names()?,
        };
        let labels = match &files.labels {
            Some(labels) => read_labels(&self.folder.join(labels), &FieldNames::default())?,
            None => file.labels()?.with_context(|| format!("{} holds no labels", path.display()))?,
        };
        if labels.len() != file.rows() {
            bail!("domain '{name}': {} labels for {} rows of features", labels.len(), file.rows());
        }
        let labels = labels.into_class_names(names.as_deref()).with_context(|| format!("domain '{name}'"))?;
        Ok(Domain { features: file.read()?, labels })
    }
}

/// Source and target as the method takes them.
pub(crate) fn pair(source: &Domain, target: &Domain) -> anyhow::Result<Domains> {
    Ok(Domains::new(source.features.clone(), Labels::new(&source.labels), target.features.clone())?)
}

/// `amazon_feat` → `amazon`
fn bare_name(stem: &str) -> String {
    let endings = ["features", "feature", "feats", "feat", "embeddings", "images", "x"];
    let cut = endings.iter().find_map(|ending| stem.strip_suffix(ending)?.strip_suffix(['_', '-', '.']));
    cut.filter(|name| !name.is_empty()).unwrap_or(stem).to_string()
}

fn is_labels_of(path: &Path, name: &str) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let endings = ["labels", "label", "y", "targets", "classes"];
    matches!(Format::of_ending(path), Some(Format::Npy | Format::Csv | Format::Text))
        && stem
            .strip_prefix(name)
            .is_some_and(|rest| endings.contains(&rest.trim_start_matches(['_', '-', '.'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_features_and_labels() {
        for (stem, name) in
            [("amazon_feat", "amazon"), ("webcam-features", "webcam"), ("dslr", "dslr"), ("_x", "_x")]
        {
            assert_eq!(bare_name(stem), name);
        }
        assert!(is_labels_of(Path::new("d/amazon_label.npy"), "amazon"));
        assert!(is_labels_of(Path::new("amazon-y.txt"), "amazon"));
        assert!(!is_labels_of(Path::new("amazonas_label.npy"), "amazon"));
        assert!(!is_labels_of(Path::new("amazon_feat.npy"), "amazon"));
    }
}
