//! `a2lp demo` as a newcomer runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn a2lp(dir: &Path, args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_a2lp")).current_dir(dir).args(args.split_whitespace()).output().unwrap()
}

#[test]
fn the_demo_beats_label_propagation_by_five_points_and_its_files_work() {
    let dir = tempfile::tempdir().unwrap();
    let out = a2lp(dir.path(), "demo");
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success(), "{text}");
    let mean = text.lines().find(|line| line.trim_start().starts_with("mean")).unwrap();
    let numbers: Vec<f64> = mean.split_whitespace().skip(1).map(|n| n.parse().unwrap()).collect();
    let [nearest, _, lp, a2lp_accuracy, consensus] = numbers[..] else { panic!("{mean}") };
    assert!(a2lp_accuracy - lp >= 5.0 && lp > nearest && consensus > a2lp_accuracy, "{mean}");

    // The command it suggests gives the labels it saved.
    let suggested = text.lines().last().unwrap().trim().strip_prefix("a2lp ").unwrap().to_string();
    let out = a2lp(dir.path(), &suggested);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(
        fs::read(dir.path().join("my-labels.csv")).unwrap(),
        fs::read(dir.path().join("a2lp-demo/labels.csv")).unwrap()
    );
    assert!(fs::read_to_string(dir.path().join("a2lp-demo/demo.svg")).unwrap().starts_with("<svg"));

    // Again is fine; another seed in the same place is not, unless forced.
    assert!(a2lp(dir.path(), "demo").status.success());
    let out = a2lp(dir.path(), "demo --seed 9 --more-seeds 0");
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("is from a different demo; pass --force"));
    assert!(a2lp(dir.path(), "demo --seed 9 --more-seeds 0 --force").status.success());
}
