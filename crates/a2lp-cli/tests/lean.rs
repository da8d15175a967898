//! A build without the features: what is absent is marked, and says how to get it. `make lean` runs this.

#![cfg(not(any(feature = "networks", feature = "tables", feature = "figures")))]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn a2lp(dir: &Path, args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_a2lp")).current_dir(dir).args(args.split_whitespace()).output().unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

#[test]
fn commands_that_are_absent_say_how_to_get_them() {
    let dir = tempfile::tempdir().unwrap();
    for args in [
        "train --demo",
        "train --help",
        "extract --images x --backbone resnet50 --weights w --out y.npz",
        "predict",
        "experiment pairs x --learners mstn --pseudo-labels own",
    ] {
        let output = a2lp(dir.path(), args);
        let told = told(&output);
        assert_eq!(output.status.code(), Some(2), "{args}: {told}");
        assert!(
            told.contains("cargo install --path crates/a2lp-cli --force --features networks"),
            "{args}: {told}"
        );
    }
    // Lines are broken to the width of the terminal.
    let help = |args: &str| -> String {
        told(&a2lp(dir.path(), args)).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (all, pairs, report) = (help("--help"), help("experiment pairs --help"), help("report --help"));
    assert_eq!(all.matches("[needs the feature `networks`]").count(), 3, "{all}");
    assert!(pairs.contains("[not in this build: needs the feature `networks`]"), "{pairs}");
    assert!(report.contains("needs the feature `figures`"), "{report}");
}

#[test]
fn files_that_need_tables_say_how_to_get_them() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("x.csv"), "label,a,b\n0,1,2\n1,2,1\n").unwrap();
    fs::write(dir.join("x.parquet"), b"PAR1 and so on").unwrap();
    fs::write(dir.join("x.feather"), b"ARROW1 and so on").unwrap();
    fs::write(dir.join("x.h5"), b"\x89HDF\r\n\x1a\n and so on").unwrap();
    for args in [
        "inspect x.parquet",
        "inspect x.feather",
        "label --source x.csv --target x.h5 --out labels.csv",
        "label --source x.csv --target x.csv --out labels.parquet",
        "convert x.csv --out y.arrow",
        "experiment init .",
        "convert x.csv --out y.h5",
    ] {
        let output = a2lp(dir, args);
        let told = told(&output);
        assert_eq!(output.status.code(), Some(2), "{args}: {told}");
        assert!(told.contains("--features tables"), "{args}: {told}");
    }
    assert!(!dir.join("y.arrow").exists() && !dir.join("labels.csv").exists());
}

/// Figures come as SVG; that PNG is missing is said.
#[test]
fn figures_are_drawn_as_svg() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..12).map(|at| format!("{},{at},{}\n", at % 2, 3 + at % 2 * 9)).collect();
    fs::write(dir.path().join("x.csv"), format!("label,a,b\n{rows}")).unwrap();
    let output = a2lp(
        dir.path(),
        "label --source x.csv --target x.csv --neighbours 3 --out labels.csv --figures figures",
    );
    assert!(told(&output).contains("--features figures"), "{}", told(&output));
    let names: Vec<String> = fs::read_dir(dir.path().join("figures"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert!(!names.is_empty() && names.iter().all(|name| name.ends_with(".svg")), "{names:?}");
}
