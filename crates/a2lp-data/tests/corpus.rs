//! Files that NumPy, SciPy, pandas, pyarrow, h5py and safetensors wrote (`reliability/make_corpus.py`), all with the same numbers.

use a2lp_data::{
    ArrayFile, Column, FeatureFile, Field, FieldNames, Problem, TableColumn, TableFile, expand, read_ids,
    read_labels,
};
use std::path::{Path, PathBuf};

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reliability/corpus").join(name)
}

#[derive(Clone, Debug, PartialEq)]
struct Expected {
    features: Vec<f32>,
    labels: Vec<String>,
    ids: Vec<String>,
}

fn expected() -> Expected {
    let text = std::fs::read_to_string(corpus("expected.json")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let words =
        |name: &str| value[name].as_array().unwrap().iter().map(|w| w.as_str().unwrap().into()).collect();
    let rows = value["features"].as_array().unwrap().iter();
    let features = rows.flat_map(|row| row.as_array().unwrap()).map(|v| v.as_f64().unwrap() as f32).collect();
    Expected { features, labels: words("labels"), ids: words("ids") }
}

/// Numbers count from `first`.
fn named(labels: Column, first: i64) -> Vec<String> {
    match labels {
        Column::Integers(numbers) => {
            numbers.iter().map(|n| ["bike", "mug", "tree"][(n - first) as usize].to_string()).collect()
        }
        Column::Strings(words) => words,
    }
}

#[test]
fn every_format_holds_the_same_features_labels_and_ids() {
    let expected = expected();
    // File, array of features where it needs a name, number of the first class, ids?
    let files = [
        ("c-order.npy", "", None, false),
        ("fortran-double.npy", "", None, false),
        ("half.npy", "", None, false),
        ("stored.npz", "", Some(0), true),
        ("deflated.npz", "", Some(0), false),
        ("list.parquet", "", Some(0), true),
        ("half-none.parquet", "", Some(0), true),
        ("large-zstd.parquet", "", Some(0), true),
        ("fixed-gzip.parquet", "features", Some(0), true),
        ("lz4.parquet", "", Some(0), true),
        ("wide-brotli.parquet", "", Some(0), false),
        ("lz4.feather", "", Some(0), true),
        ("zstd.feather", "", Some(0), true),
        ("plain.feather", "", Some(0), true),
        ("stream.arrow", "", Some(0), true),
        ("polars.arrow", "", Some(0), true),
        ("plain.safetensors", "", Some(0), false),
        ("plain.h5", "", Some(0), true),
        ("chunked.h5", "train/features", None, false),
        ("half.h5", "", None, false),
        ("v5.mat", "", Some(1), false),
        ("v7.mat", "fts", Some(1), false),
        ("v73.mat", "", Some(1), false),
        ("v73-cells.mat", "", Some(1), false),
        ("table.csv", "", Some(0), true),
    ];
    for (name, array, first, has_ids) in files {
        let names =
            FieldNames { features: (!array.is_empty()).then(|| array.to_string()), labels: None, ids: None };
        let mut file =
            FeatureFile::open_set(&[corpus(name)], &names).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((file.rows(), file.columns()), (12, 5), "{name}");
        let labels = file.labels().unwrap_or_else(|error| panic!("{name}: {error}"));
        let labels = labels.map(|labels| named(labels, first.unwrap_or(0)));
        assert_eq!(labels, first.map(|_| expected.labels.clone()), "{name}");
        assert_eq!(file.ids().unwrap(), has_ids.then(|| expected.ids.clone()), "{name}");
        assert_eq!(file.read().unwrap().values(), expected.features, "{name}");
        if first.is_some() {
            let alone = read_labels(&corpus(name), &FieldNames::default()).unwrap();
            assert_eq!(named(alone, first.unwrap_or(0)), expected.labels, "{name}");
        }
    }
    let names = FieldNames { labels: Some("train/labels".into()), ..FieldNames::default() };
    assert_eq!(named(read_labels(&corpus("chunked.h5"), &names).unwrap(), 0), expected.labels);
    assert_eq!(named(read_labels(&corpus("words.npy"), &names).unwrap(), 0), expected.labels);
    assert_eq!(named(read_labels(&corpus("lines.txt"), &names).unwrap(), 0), expected.labels);
    assert_eq!(read_ids(&corpus("list.parquet"), &names).unwrap(), expected.ids);
}

#[test]
fn what_is_written_is_read_again_from_every_format() {
    let expected = expected();
    let dir = tempfile::tempdir().unwrap();
    let check = |name: &str| {
        let mut file = FeatureFile::open(&dir.path().join(name)).unwrap_or_else(|error| panic!("{error}"));
        let labels = named(file.labels().unwrap().unwrap(), 0);
        let ids = file.ids().unwrap().unwrap();
        let features = file.read().unwrap().values().to_vec();
        assert_eq!(Expected { features, labels, ids }, expected, "{name}");
    };
    for name in ["x.npz", "x.safetensors", "x.h5", "x.mat"] {
        let arrays = ArrayFile::new()
            .matrix("features", 12, 5, &expected.features)
            .strings("labels", &expected.labels)
            .strings("ids", &expected.ids);
        arrays.write(&dir.path().join(name), false).unwrap();
        check(name);
    }
    let words = |words: &'static [String]| words.iter().map(|word| Some(word.as_str())).collect::<Vec<_>>();
    let kept: &'static Expected = Box::leak(Box::new(expected.clone()));
    for name in ["x.parquet", "x.arrow", "x.feather"] {
        let table = TableFile::new()
            .column("id", TableColumn::Words(words(&kept.ids)))
            .column("label", TableColumn::Words(words(&kept.labels)))
            .column("features", TableColumn::Vectors(5, &kept.features));
        table.write(&dir.path().join(name), false).unwrap();
        check(name);
    }
}

#[test]
fn a_pattern_is_one_set_in_the_order_of_names() {
    let dir = tempfile::tempdir().unwrap();
    for (at, name) in ["b.npy", "a.parquet", "c.csv"].iter().enumerate() {
        let path = dir.path().join(name);
        let values = [at as f32, 1.0];
        match *name {
            "a.parquet" => TableFile::new()
                .column("features", TableColumn::Vectors(2, &values))
                .write(&path, false)
                .unwrap(),
            "b.npy" => ArrayFile::new().matrix("features", 1, 2, &values).write(&path, false).unwrap(),
            _ => std::fs::write(&path, "2,1\n").unwrap(),
        }
    }
    let file = FeatureFile::open(&dir.path().join("[abc].*")).unwrap();
    assert_eq!(file.rows(), 3);
    assert_eq!(file.locate(1), (&*dir.path().join("b.npy"), 0));
    assert_eq!(file.read().unwrap().values(), [1.0, 1.0, 0.0, 1.0, 2.0, 1.0]);
    let error = FeatureFile::open(&dir.path().join("*.h5")).err().unwrap().to_string();
    assert!(error.contains("no file matches"), "{error}");
    std::fs::write(dir.path().join("d.csv"), "1,2,3\n").unwrap();
    let error = FeatureFile::open(&dir.path().join("?.csv")).err().unwrap().to_string();
    assert!(error.contains("d.csv: 3 features a row where") && error.contains("has 2"), "{error}");
    assert_eq!(expand(Path::new("-")).unwrap(), [PathBuf::from("-")]);
}

#[test]
fn missing_and_ragged_features_are_named_with_their_row() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let words = vec![Some("a"), None];
    TableFile::new()
        .column("features", TableColumn::Vectors(1, &[1.0, 2.0]))
        .column("label", TableColumn::Words(words))
        .write(&path, false)
        .unwrap();
    let error = FeatureFile::open(&path).unwrap().labels().unwrap_err().to_string();
    assert!(error.ends_with("row 1: the value is missing (null)"), "{error}");
    let names = FieldNames { features: Some("vectors".into()), ..FieldNames::default() };
    let error = FeatureFile::open_set(&[path], &names).err().unwrap();
    assert!(matches!(error.problem, Problem::LacksField { field: Field::Features, .. }));
    assert!(error.to_string().contains("no column 'vectors'; it has: features ("), "{error}");
}

#[test]
fn a_column_per_feature_is_read_whatever_the_file_weighs() {
    let dir = tempfile::tempdir().unwrap();
    let width = 70;
    // The second is much smaller than its numbers, and so not given room for all of them at once.
    for (rows, period) in [(999, 101), (60_000, 1)] {
        let features: Vec<f32> = (0..rows * width).map(|at| (at % period) as f32).collect();
        for name in ["x.parquet", "x.feather"] {
            let mut table = TableFile::new();
            for at in 0..width {
                table = table.column(&format!("f{at}"), TableColumn::Strided(width, &features[at..]));
            }
            let path = dir.path().join(name);
            table.write(&path, true).unwrap();
            let file = FeatureFile::open(&path).unwrap();
            assert_eq!((file.rows(), file.columns()), (rows, width));
            assert!(file.read().unwrap().values() == features, "{name}, {rows} rows");
        }
    }
}

#[test]
fn class_lists_of_a_set_may_differ() {
    let dir = tempfile::tempdir().unwrap();
    for (name, classes) in [("a.npz", ["mug", "bike"]), ("b.npz", ["bike", "tree"])] {
        let file = ArrayFile::new().matrix("features", 2, 1, &[1.0, 2.0]).integers("labels", &[0, 1]);
        file.strings("class_names", &classes).write(&dir.path().join(name), false).unwrap();
    }
    let mut set = FeatureFile::open(&dir.path().join("*.npz")).unwrap();
    assert_eq!(set.labels().unwrap().unwrap().into_strings(), ["mug", "bike", "bike", "tree"]);
    assert_eq!(set.class_names().unwrap(), None);
}
