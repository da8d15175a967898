//! Training data: folders of images, files of features, arrays of small images.

use super::Body;
use crate::label::input::note_unknown_classes;
use a2lp::Classes;
use a2lp::evaluation::TargetTruth;
use a2lp_data::images::{ImageSet, Transform, compare_classes, decode};
use a2lp_data::{Column, FeatureFile, FieldNames, read_all_pictures, read_labels};
use a2lp_train::Inputs;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

/// The items of a domain with their labels and ids.
pub(crate) struct Items {
    pub(crate) inputs: Inputs,
    /// Class names, one per item.
    pub(crate) labels: Option<Vec<String>>,
    /// All classes there are, in their order, where a list of them is given.
    pub(crate) classes: Option<Vec<String>>,
    pub(crate) ids: Option<Vec<String>>,
    /// For a word on classes that differ.
    images: Option<ImageSet>,
}

/// How files are read.
#[derive(Clone)]
pub(crate) struct Reading<'a> {
    pub(crate) root: Option<&'a Path>,
    /// As asked for; `None`: by what the file holds.
    pub(crate) body: Option<Body>,
    pub(crate) transform: Option<&'a str>,
    pub(crate) upright: bool,
}

/// Opens a domain and says which kind of network it is for.
pub(super) fn open(path: &Path, labels: Option<&Path>, reading: &Reading) -> anyhow::Result<(Items, Body)> {
    let (mut items, body) = if reading.root.is_some() || path.is_dir() || is_list(path) {
        open_images(path, reading)?
    } else {
        open_arrays(path, reading)?
    };
    if let Some(labels) = labels {
        let column = read_labels(labels, &FieldNames::default())?;
        let known = items.classes.as_deref();
        let names = match known {
            Some(names) => column.into_known_names(Some(names)),
            None => column.into_strings(),
        };
        if names.len() != items.inputs.len() {
            bail!(
                "{} has {} labels, but {} has {} items; one per item is needed",
                labels.display(),
                names.len(),
                path.display(),
                items.inputs.len()
            );
        }
        items.labels = Some(names);
    }
    if items.inputs.is_empty() {
        bail!("{}: no items", path.display());
    }
    Ok((items, body))
}

fn is_list(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "txt")
}

fn open_images(path: &Path, reading: &Reading) -> anyhow::Result<(Items, Body)> {
    let set = match reading.root {
        Some(root) => ImageSet::open_domain(root, &path.to_string_lossy())?,
        None => ImageSet::open(path)?,
    };
    let paths: Vec<PathBuf> = set.images.iter().map(|image| image.path.clone()).collect();
    let ids = paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let Some(body) = reading.body else {
        bail!(
            "{} holds images; name a network with --backbone (resnet50, efficientnet-lite0, … with --weights, or lenet)",
            path.display()
        );
    };
    let inputs = match body {
        Body::Lenet => {
            let pictures: Vec<_> =
                paths.iter().map(|path| decode(path, reading.upright)).collect::<Result<_, _>>()?;
            Inputs::digits(&pictures)
        }
        Body::Adapter => bail!("{} holds images; an adapter takes features", path.display()),
        Body::Backbone(name) => {
            let word = reading.transform.unwrap_or(name.usual_transform());
            let named = |word: &str| {
                Transform::named(word)
                    .with_context(|| format!("--transform {word}: one of {}", Transform::NAMES.join(", ")))
            };
            let test = named(word)?;
            let train = Transform::named(&format!("{word}-train")).unwrap_or_else(|| test.clone());
            Inputs::Files { paths, train, test, upright: reading.upright }
        }
    };
    let labels = (!set.classes.is_empty()).then(|| {
        set.images.iter().map(|image| image.class.map_or(String::new(), |c| set.classes[c].clone())).collect()
    });
    let classes = (!set.classes.is_empty()).then(|| set.classes.clone());
    Ok((Items { inputs, labels, classes, ids: Some(ids), images: Some(set) }, body))
}

fn open_arrays(path: &Path, reading: &Reading) -> anyhow::Result<(Items, Body)> {
    let wants_images = reading.body == Some(Body::Lenet);
    let features = FeatureFile::open(path);
    let images = if wants_images || features.is_err() { read_all_pictures(path)? } else { None };
    if let Some(pictures) = images {
        let own = features.ok();
        let (mut labels, mut classes, mut ids) = (None, None, None);
        if let Some(mut file) = own {
            (classes, ids) = (file.class_names()?, file.ids()?);
            labels = match file.labels()? {
                Some(column) => Some(column.into_class_names(classes.as_deref())?),
                None => None,
            };
        } else if path.extension().is_some_and(|ending| ending == "npz") {
            labels = read_labels(path, &FieldNames::default()).ok().map(Column::into_strings);
        }
        return Ok((
            Items { inputs: Inputs::digits(&pictures), labels, classes, ids, images: None },
            Body::Lenet,
        ));
    }
    let mut file = features?;
    if let Some(body) = reading.body.filter(|&body| body != Body::Adapter) {
        bail!("{} holds features, and {} takes images", path.display(), body.as_str());
    }
    let (classes, ids) = (file.class_names()?, file.ids()?);
    let labels = match file.labels()? {
        Some(column) => {
            Some(column.into_class_names(classes.as_deref()).with_context(|| path.display().to_string())?)
        }
        None => None,
    };
    let columns = file.columns();
    let matrix = file.read()?;
    if let Some(at) = matrix.values().iter().position(|value| !value.is_finite()) {
        bail!(
            "{}: row {}, column {} is {}; remove or repair such rows",
            path.display(),
            at / columns,
            at % columns,
            matrix.values()[at]
        );
    }
    let inputs = Inputs::rows(columns, matrix.into_values());
    Ok((Items { inputs, labels, classes, ids, images: None }, Body::Adapter))
}

/// A source and a target that belong together.
pub(crate) struct Pair {
    pub(crate) source: Items,
    pub(crate) target: Items,
    pub(crate) body: Body,
    pub(crate) classes: Classes,
    /// The source's, as numbers.
    pub(crate) labels: Vec<u32>,
    /// The target's, where they are known: for evaluation only.
    pub(crate) truth: Option<TargetTruth>,
}

/// Where a domain is, and where its labels are if they have a file of their own.
pub(crate) type Place<'a> = (&'a Path, Option<&'a Path>);

/// Opens both domains and checks that they fit.
pub(crate) fn open_pair(source: Place, target: Place, reading: &Reading) -> anyhow::Result<Pair> {
    let path = source.0;
    let (source, body) = open(path, source.1, reading)?;
    let (target, _) = open(target.0, target.1, &Reading { body: Some(body), ..reading.clone() })?;
    if let (Inputs::Rows { columns: a, .. }, Inputs::Rows { columns: b, .. }) =
        (&source.inputs, &target.inputs)
        && a != b
    {
        bail!("the source has {a} columns, the target {b}; both need features of the same extractor");
    }
    if let (Some(a), Some(b)) = (&source.images, &target.images)
        && let Some(difference) = compare_classes(a, b, ["the source", "the target"])
    {
        eprintln!("warning: {difference}");
    }
    let labels = source
        .labels
        .as_ref()
        .with_context(|| format!("{} has no labels; give them with --source-labels", path.display()))?;
    let classes = match &source.classes {
        Some(names) => Classes::new(names.clone())?,
        None => Classes::from_labels(labels),
    };
    let labels = a2lp::Labels::within(classes.clone(), labels)?.ids().to_vec();
    if classes.len() < 2 {
        bail!("{}: {} class; at least two are needed", path.display(), classes.len());
    }
    // Numbers are positions in the source's list of names, as in `a2lp label`.
    let truth = target.labels.clone().map(|labels| {
        let names = Column::Strings(labels).into_known_names(source.classes.as_deref());
        TargetTruth::new(&classes, &names)
    });
    if let Some(truth) = &truth {
        note_unknown_classes(truth);
    }
    Ok(Pair { source, target, body, classes, labels, truth })
}

impl Items {
    /// Items of which nothing else is known.
    pub(crate) fn new(inputs: Inputs) -> Self {
        Items { inputs, labels: None, classes: None, ids: None, images: None }
    }
}
