//! Files of all formats, sets of files and standard input, as a user gives them.

use a2lp_data::{ArrayFile, FeatureFile};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn a2lp(dir: &Path, args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_a2lp")).current_dir(dir).args(args.split_whitespace()).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `src.csv` with labels and ids and `tgt.csv` with ids, two clear clusters, 20 rows each.
fn small() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (mut source, mut target) = (String::from("id,x,y,z,label\n"), String::from("id,x,y,z\n"));
    for item in 0..20 {
        let t = item as f32 / 20.0;
        let (x, y, name) = if item % 2 == 0 { (1.0, 0.1 * t, "mug") } else { (0.1 * t, 1.0, "bike") };
        source += &format!("s{item},{x},{y},0.0,{name}\n");
        target += &format!("t{item},{x},{y},{}\n", 0.3 + 0.1 * t);
    }
    fs::write(dir.path().join("src.csv"), source).unwrap();
    fs::write(dir.path().join("tgt.csv"), target).unwrap();
    dir
}

fn good(dir: &Path, args: &str) -> Output {
    let output = a2lp(dir, args);
    assert_eq!(output.status.code(), Some(0), "{args}: {}", stderr(&output));
    output
}

#[test]
fn every_format_gives_the_same_labels() {
    let dir = small();
    good(dir.path(), "label --source src.csv --target tgt.csv --neighbours 12 --out want.csv");
    let want = fs::read_to_string(dir.path().join("want.csv")).unwrap();
    assert!(want.starts_with("row,id,label,"), "{want}");
    // Each is made of the one before, so every format is read and written.
    let mut before = "csv";
    for ending in ["parquet", "arrow", "feather", "safetensors", "h5", "mat", "npz"] {
        for name in ["src", "tgt"] {
            good(dir.path(), &format!("convert {name}.{before} --out {name}.{ending}"));
        }
        good(
            dir.path(),
            &format!("label --source src.{ending} --target tgt.{ending} --neighbours 12 --force --out x.csv"),
        );
        assert_eq!(fs::read_to_string(dir.path().join("x.csv")).unwrap(), want, "{ending}");
        let told = good(dir.path(), &format!("inspect src.{ending}"));
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(told.contains("20 rows × 3 columns") && told.contains("20 rows, 2 classes"), "{told}");
        before = ending;
    }
}

#[test]
fn several_files_a_pattern_and_a_list_in_the_options_are_one_set() {
    let dir = small();
    good(dir.path(), "label --source src.csv --target tgt.csv --neighbours 12 --out want.csv");
    let want = fs::read_to_string(dir.path().join("want.csv")).unwrap();
    let text = fs::read_to_string(dir.path().join("src.csv")).unwrap();
    let (head, rows) = text.split_once('\n').unwrap();
    let rows: Vec<&str> = rows.lines().collect();
    for (name, rows) in [("part-a.csv", &rows[..7]), ("part-b.csv", &rows[7..])] {
        fs::write(dir.path().join(name), format!("{head}\n{}\n", rows.join("\n"))).unwrap();
    }
    good(dir.path(), "convert part-b.csv --out part-b.parquet");
    fs::write(dir.path().join("o.toml"), "source = [\"part-a.csv\", \"part-b.csv\"]\nneighbours = 12\n")
        .unwrap();
    for source in [
        "--source part-a.csv part-b.csv",
        "--source part-a.csv --source part-b.csv",
        "--source part-*.csv",
        "--source part-a.csv part-b.parquet",
        "--config o.toml",
        "--config o.toml --source src.csv",
    ] {
        good(dir.path(), &format!("label {source} --target tgt.csv --neighbours 12 --force --out x.csv"));
        assert_eq!(fs::read_to_string(dir.path().join("x.csv")).unwrap(), want, "{source}");
    }
    let record = fs::read_to_string(dir.path().join("x.csv.run.json")).unwrap();
    assert!(!record.contains("more_files"));
    let none = a2lp(dir.path(), "label --source nothing-*.npy --target tgt.csv --force --out x.csv");
    assert!(stderr(&none).contains("nothing-*.npy: no file matches"), "{}", stderr(&none));
}

#[test]
fn a_table_comes_in_through_standard_input() {
    let dir = small();
    good(dir.path(), "label --source src.csv --target tgt.csv --neighbours 12 --out want.csv");
    let run = |args: &str, input: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_a2lp"))
            .current_dir(dir.path())
            .args(args.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let target = fs::read_to_string(dir.path().join("tgt.csv")).unwrap();
    let output = run("label --source src.csv --target - --neighbours 12 --out x.csv", &target);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let [got, want] = ["x.csv", "want.csv"].map(|name| fs::read_to_string(dir.path().join(name)).unwrap());
    assert_eq!(got, want);
    let output = run("label --source - --target - --out y.csv", &target);
    assert!(stderr(&output).contains("only one set of features can come from standard input"));
    let output = run("convert - --out t.npz", &target);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(FeatureFile::open(&dir.path().join("t.npz")).unwrap().rows(), 20);
}

#[test]
fn rows_with_nan_are_refused_or_left_out_and_listed() {
    let dir = small();
    let values = |bad: &[usize]| -> Vec<f32> {
        let row = |item: usize| if item.is_multiple_of(2) { [1.0, 0.1] } else { [0.1, 1.0] };
        let mut values: Vec<f32> = (0..20).flat_map(row).collect();
        bad.iter().for_each(|&at| values[2 * at + 1] = f32::NAN);
        values
    };
    let labels: Vec<String> = (0..20).map(|item| ["mug", "bike"][item % 2].to_string()).collect();
    let (source, target) = (values(&[3]), values(&[0, 19]));
    ArrayFile::new()
        .matrix("features", 20, 2, &source)
        .strings("labels", &labels)
        .write(&dir.path().join("s.npz"), false)
        .unwrap();
    ArrayFile::new().matrix("features", 20, 2, &target).write(&dir.path().join("t.npy"), false).unwrap();
    fs::write(dir.path().join("truth.txt"), labels.join("\n")).unwrap();
    let label = "label --source s.npz --target t.npy --neighbours 6 --eval-labels truth.txt";
    let refused = a2lp(dir.path(), &format!("{label} --out x.csv"));
    let told = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        told.contains("s.npz: row 3, column 1 is NaN and 2 more rows hold NaN or infinities; repair"),
        "{told}"
    );
    assert!(told.contains("--skip-invalid"), "{told}");
    let output = good(dir.path(), &format!("{label} --skip-invalid --out x.csv"));
    let told = stderr(&output);
    assert!(told.contains("s.npz: 1 of 20 rows hold NaN or infinities and are left out: 3\n"), "{told}");
    assert!(told.contains("t.npy: 2 of 20 rows hold NaN or infinities and are left out: 0, 19\n"), "{told}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("accuracy 100.0 %"));
    let written = fs::read_to_string(dir.path().join("x.csv")).unwrap();
    let rows: Vec<&str> = written.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!((rows.len(), rows[0], rows[17]), (18, "1", "18"));
    let record: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(dir.path().join("x.csv.run.json")).unwrap()).unwrap();
    assert_eq!(record["inputs"]["target"]["skipped_rows"], serde_json::json!([0, 19]));
}

#[test]
fn labels_as_a_table_are_read_again() {
    let dir = small();
    for name in ["x.parquet", "x.arrow", "x.feather"] {
        good(
            dir.path(),
            &format!("label --source src.csv --target tgt.csv --neighbours 12 --probabilities --out {name}"),
        );
        let told = good(dir.path(), &format!("inspect {name} --feature-column p_mug --label-column label"));
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(told.contains("20 rows × 1 columns") && told.contains("bike"), "{told}");
    }
}
