//! Targets with classes that the source lacks, as a user meets them.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

fn a2lp(dir: &Path, args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_a2lp")).current_dir(dir).args(args.split_whitespace()).output().unwrap()
}

/// What a run printed and warned of; it must end with exit code 0.
fn good(dir: &Path, args: &str) -> (String, String) {
    let output = a2lp(dir, args);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert_eq!(output.status.code(), Some(0), "{args}: {err}");
    (out, err)
}

/// A folder with `src.csv`, `tgt.csv` and `truth.txt`: clusters about axes. The target has a class, lamp, that the source lacks.
fn domains() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let names = ["mug", "bike", "chair", "lamp"];
    let mut noise = 1u64;
    let mut row = |axis: usize, shift: f64| {
        let mut value = |column: usize| {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let random = (noise >> 33) as f64 / (1u64 << 31) as f64 - 0.5;
            0.3 + shift + 0.8 * random + if column == axis { 2.0 } else { 0.0 }
        };
        (0..8).map(|column| format!("{:.4}", value(column))).collect::<Vec<_>>().join(",")
    };
    let header = (0..8).map(|column| format!("x{column}")).collect::<Vec<_>>().join(",");
    let (mut source, mut target, mut truth) =
        (format!("{header},label\n"), format!("{header}\n"), String::new());
    (0..90).for_each(|item| source += &format!("{},{}\n", row(item % 3, 0.0), names[item % 3]));
    for item in 0..120 {
        target += &format!("{}\n", row(item % 4, 0.1));
        truth += &format!("{}\n", names[item % 4]);
    }
    for (name, text) in [("src.csv", source), ("tgt.csv", target), ("truth.txt", truth)] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

const LABEL: &str = "label --source src.csv --target tgt.csv";

/// The columns of the labels file, by name.
fn column(dir: &Path, name: &str) -> Option<Vec<String>> {
    let text = fs::read_to_string(dir.join("labels.csv")).unwrap();
    let mut lines = text.lines();
    let at = lines.next().unwrap().split(',').position(|column| column == name)?;
    Some(lines.map(|line| line.split(',').nth(at).unwrap().to_string()).collect())
}

fn record(dir: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(dir.join("labels.csv.run.json")).unwrap()).unwrap()
}

#[test]
fn by_default_unknown_items_are_ranked_and_keep_their_labels() {
    let dir = domains();
    let (out, err) = good(dir.path(), &format!("{LABEL} --out labels.csv"));
    assert!(out.contains("unknown classes: probably of classes that the source lacks"), "{out}");
    assert!(out.contains("--unknown flag"), "{out}");
    assert!(err.contains("match nothing in the source"), "{err}");
    assert!(column(dir.path(), "label").unwrap().iter().all(|label| !label.is_empty()));
    assert_eq!(column(dir.path(), "nearest_label"), None);
    let reach: Vec<f64> =
        column(dir.path(), "reach").unwrap().iter().map(|value| value.parse().unwrap()).collect();
    let mean = |lamp: bool| {
        let values = (0..120).filter(|item| (item % 4 == 3) == lamp).map(|item| reach[item]);
        values.sum::<f64>() / if lamp { 30.0 } else { 90.0 }
    };
    assert!(mean(true) < 0.3 * mean(false), "{} beside {}", mean(true), mean(false));
}

#[test]
fn flagged_items_have_no_label_but_the_nearest_one() {
    let dir = domains();
    let (out, err) = good(
        dir.path(),
        &format!("{LABEL} --out labels.csv --unknown flag --eval-labels truth.txt --report"),
    );
    assert!(out.contains("unknown; mean confidence") && out.contains("AUROC"), "{out}");
    assert!(!err.contains("match nothing in the source"), "what was asked for is no warning: {err}");
    let [label, status, nearest, confidence] =
        ["label", "status", "nearest_label", "confidence"].map(|name| column(dir.path(), name).unwrap());
    let mut wrong = 0;
    for item in 0..120 {
        let is_unknown = status[item] == "unknown";
        wrong += usize::from(is_unknown != (item % 4 == 3));
        assert_eq!(label[item].is_empty(), is_unknown, "row {item}");
        assert_eq!(nearest[item].is_empty(), !is_unknown, "row {item}");
        assert!(!is_unknown || confidence[item].parse::<f64>().unwrap() == 0.0, "row {item}");
    }
    assert!(wrong <= 3, "{wrong} of 120 are flagged wrongly");
    let record = record(dir.path());
    assert_eq!(record["unknown"]["verdict"], "new");
    assert_eq!(record["summary"]["unknown"], record["unknown"]["items"]);
    let groups = record["unknown"]["groups"].as_array().unwrap();
    assert!(!groups.is_empty() && groups[0]["rows"][0].as_u64().unwrap() % 4 == 3, "{groups:?}");
    assert!(record["unknown"]["score"]["h_score"].as_f64().unwrap() > 0.9);

    // The page, now and from the files alone.
    let page = fs::read_to_string(dir.path().join("labels.html")).unwrap();
    for part in
        ["Unknown items that look alike", "Group 1", "threshold", "How the target differs from the source"]
    {
        assert!(page.contains(part), "{part}");
    }
    good(dir.path(), "report labels.csv --out later.html");
    assert!(fs::read_to_string(dir.path().join("later.html")).unwrap().contains("Group 1"));
}

#[test]
fn without_it_nothing_is_said() {
    let dir = domains();
    let (out, _) = good(dir.path(), &format!("{LABEL} --out labels.csv --unknown off"));
    assert!(!out.contains("unknown") && column(dir.path(), "reach").is_none(), "{out}");
    assert!(record(dir.path())["unknown"].is_null());
}

#[test]
fn what_cannot_be_told_is_an_answer() {
    let dir = domains();
    let text = fs::read_to_string(dir.path().join("tgt.csv")).unwrap();
    let few: String = text.lines().take(6).map(|line| format!("{line}\n")).collect();
    fs::write(dir.path().join("tgt.csv"), few).unwrap();
    let (out, _) = good(dir.path(), &format!("{LABEL} --out labels.csv --unknown flag"));
    assert!(out.contains("cannot tell") && out.contains("the target has fewer than 20 rows"), "{out}");
    assert!(column(dir.path(), "label").unwrap().iter().all(|label| !label.is_empty()));
    // Also for whoever reads the record: `report` does.
    assert_eq!(record(dir.path())["unknown"]["verdict"], "cannot-tell");
    good(dir.path(), "report labels.csv --out later.html");
}

#[test]
fn the_first_line_names_the_method_and_why() {
    let dir = domains();
    let first = |args: &str| {
        let (out, _) = good(dir.path(), &format!("{LABEL} --out labels.csv --force {args}"));
        out.lines().next().unwrap().to_string()
    };
    assert_eq!(first(""), "method: consensus of 3 views (auto)");
    assert_eq!(first("--views 2"), "method: consensus of 2 views (auto)");
    assert_eq!(first("--method a2lp"), "method: a2lp");
    assert_eq!(first("--preset office31"), "method: a2lp");
    assert_eq!(
        first("--similarity gaussian"),
        "method: a2lp (auto: the consensus cannot use similarity gaussian)"
    );
    assert_eq!(record(dir.path())["settings"]["method"], "auto");
    good(dir.path(), "graph --features src.csv --features tgt.csv --out graph.npz");
    assert_eq!(first("--graph graph.npz"), "method: a2lp (auto: the consensus cannot use a given graph)");
}
