//! `a2lp train` and `a2lp predict` as a user runs them, on features and on small images.

use a2lp_data::ArrayFile;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

fn a2lp(dir: &Path, args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_a2lp")).current_dir(dir).args(args.split_whitespace()).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Two domains of three classes with 8 features; the target is turned and shifted.
fn domains() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let names = ["bike", "mug", "pen"];
    let labels: Vec<&str> = (0..90).map(|item| names[item % 3]).collect();
    for target in [false, true] {
        let row = |item: usize| -> Vec<f32> {
            let noise = |at: usize| ((item * 7919 + at * 104_729 + 17) % 1009) as f32 / 1009.0 - 0.5;
            let value = |at: usize| if at % 3 == item % 3 { 2.0 } else { 0.2 } + noise(at);
            (0..8)
                .map(|at| if target { 0.8 * value(at) + 0.5 * value(at + 1) + 0.3 } else { value(at) })
                .collect()
        };
        let first = if target { 90 } else { 0 };
        let values: Vec<f32> = (first..first + 90).flat_map(row).collect();
        let file = ArrayFile::new().matrix("features", 90, 8, &values);
        let (name, file) =
            if target { ("tgt.npz", file) } else { ("src.npz", file.strings("labels", &labels)) };
        file.write(&dir.path().join(name), false).unwrap();
    }
    fs::write(dir.path().join("truth.txt"), labels.join("\n")).unwrap();
    dir
}

const QUICK: &str = "--train-rounds 3 --steps 10 --batch 16 --neighbours 60";

#[test]
fn features_in_a_network_and_its_labels_out() {
    let dir = domains();
    let run = format!(
        "train --source src.npz --target tgt.npz --eval-labels truth.txt --learner mstn --out run --report {QUICK}"
    );
    let out = a2lp(dir.path(), &run);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    let told = text(&out);
    assert!(
        told.contains("mstn with auto pseudo-labels on adapter: 90 source and 90 target items, 3 classes"),
        "{told}"
    );
    assert!(told.contains("accuracy of the network") && told.contains("peeking"), "{told}");
    assert!(told.contains("quality, judged without the target's labels:"), "{told}");
    for file in [
        "weights.safetensors",
        "model.json",
        "run.json",
        "labels.csv",
        "pseudo-labels.csv",
        "checkpoint.safetensors",
        "report.html",
    ] {
        assert!(dir.path().join("run").join(file).exists(), "{file}");
    }
    assert_eq!(fs::read_to_string(dir.path().join("run/metrics.jsonl")).unwrap().lines().count(), 3);
    let labels = fs::read_to_string(dir.path().join("run/labels.csv")).unwrap();
    assert_eq!(labels.lines().next(), Some("row,label,confidence,margin,status"));
    assert_eq!(labels.lines().count(), 91);

    let page = fs::read_to_string(dir.path().join("run/report.html")).unwrap();
    for part in ["run: mstn with auto pseudo-labels", "Losses", "Pseudo-labels kept"] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(a2lp(dir.path(), "report run --out later.html").status.code(), Some(0));

    // The network says of the same items what it said in the end.
    let predict = "predict --model run --images tgt.npz --eval-labels truth.txt --out again.csv";
    let out = a2lp(dir.path(), predict);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    assert!(text(&out).contains("90 items labelled") && text(&out).contains("accuracy"), "{}", text(&out));
    // Labels without training may have looked better.
    let of_network = fs::read_to_string(dir.path().join("run/labels-of-network.csv")).unwrap_or(labels);
    assert_eq!(fs::read_to_string(dir.path().join("again.csv")).unwrap(), of_network);
    assert_eq!(a2lp(dir.path(), predict).status.code(), Some(2), "an existing file is not replaced");

    // Again: nothing is left to do. With other settings: not in this folder.
    let again = a2lp(dir.path(), &run);
    assert!(text(&again).contains("3 rounds were there already"), "{}", text(&again));
    let other = a2lp(dir.path(), &format!("{run} --seed 1"));
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other).contains("other settings"), "{}", text(&other));
    let forced = a2lp(dir.path(), &format!("{run} --seed 1 --force --json"));
    assert_eq!(forced.status.code(), Some(0), "{}", text(&forced));
    let summary: serde_json::Value = serde_json::from_slice(&forced.stdout).unwrap();
    assert!(summary["accuracy"].as_f64().unwrap() > 0.6, "{summary}");
}

#[test]
fn the_truth_cannot_reach_the_run() {
    let dir = domains();
    let run = |more: &str| {
        let args = format!("train --source src.npz --target tgt.npz --learner can --out {more} {QUICK}");
        let out = a2lp(dir.path(), &args);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    };
    let wrong: Vec<&str> = (0..90).map(|item| ["pen", "bike", "mug"][item % 3]).collect();
    fs::write(dir.path().join("wrong.txt"), wrong.join("\n")).unwrap();
    run("a --eval-labels truth.txt");
    run("b --eval-labels wrong.txt");
    run("c");
    let bytes = |folder: &str| fs::read(dir.path().join(folder).join("weights.safetensors")).unwrap();
    assert!(bytes("a") == bytes("b") && bytes("b") == bytes("c"));
}

#[test]
fn small_images_train_a_lenet() {
    let dir = tempfile::tempdir().unwrap();
    // A bar that lies or stands; 16 × 16 in the source, 28 × 28 in the target.
    for (name, side, count) in [("a", 16, 40), ("b", 28, 40)] {
        let image = |item: usize| -> Vec<u8> {
            let at = side / 4 + item % (side / 2);
            (0..side * side)
                .map(|p| {
                    if (if item.is_multiple_of(2) { p / side } else { p % side }) == at {
                        250
                    } else {
                        (p * 7 + item) as u8 % 30
                    }
                })
                .collect()
        };
        let pixels: Vec<u8> = (0..count).flat_map(image).collect();
        ArrayFile::new()
            .images("images", count, side, &pixels)
            .write(&dir.path().join(format!("{name}.npz")), false)
            .unwrap();
        let labels: Vec<&str> = (0..count).map(|item| ["lies", "stands"][item % 2]).collect();
        fs::write(dir.path().join(format!("{name}.txt")), labels.join("\n")).unwrap();
    }
    let run = "train --source a.npz --source-labels a.txt --target b.npz --eval-labels b.txt --learner can --pseudo-labels own --out run --train-rounds 2 --steps 10 --warm-up 20 --batch 16";
    let out = a2lp(dir.path(), run);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    assert!(text(&out).contains("on lenet: 40 source and 40 target items, 2 classes"), "{}", text(&out));
    let out = a2lp(dir.path(), "predict --model run --images b.npz --out labels.csv");
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
}

#[test]
fn pairs_of_domains_with_several_learners() {
    let dir = domains();
    let folder = dir.path().join("set");
    fs::create_dir(&folder).unwrap();
    fs::copy(dir.path().join("src.npz"), folder.join("a.npz")).unwrap();
    fs::copy(dir.path().join("tgt.npz"), folder.join("b.npz")).unwrap();
    fs::copy(dir.path().join("truth.txt"), folder.join("b_labels.txt")).unwrap();
    assert_eq!(a2lp(dir.path(), "experiment init set").status.code(), Some(0));
    let run = "experiment pairs set --learners source-only,mstn --pseudo-labels own,a2lp --seeds 0,1 --source a --neighbours 60 --train-rounds 2 --steps 5 --batch 16 --out results";
    let out = a2lp(dir.path(), run);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    let told = text(&out);
    assert!(told.contains("mstn own") && told.contains("mstn a2lp − own") && told.contains("±"), "{told}");
    assert_eq!(fs::read_to_string(dir.path().join("results/results.csv")).unwrap().lines().count(), 7);
    assert!(text(&a2lp(dir.path(), run)).contains("6 cells from an earlier run"));
    // Whatever may change the outcome is part of the fingerprint.
    for other in ["--upright", "--device cpu", "--rate 0.02"] {
        let out = a2lp(dir.path(), &format!("{run} {other}"));
        assert!(text(&out).contains("other settings"), "{other}: {}", text(&out));
    }
    let anew = a2lp(dir.path(), &format!("{run} --force"));
    assert_eq!(anew.status.code(), Some(0), "{}", text(&anew));
    assert!(!text(&anew).contains("earlier run"), "{}", text(&anew));
}

#[test]
fn what_cannot_be_is_said() {
    let dir = domains();
    for (args, part) in [
        ("train --source src.npz --target tgt.npz", "--out"),
        // Words are checked before any file is opened: none of these exists.
        (
            "train --source none.npz --target none.npz --out run --learner magic",
            "possible values: source-only",
        ),
        (
            "train --source none.npz --target none.npz --out run --pseudo-labels magic",
            "possible values: auto, own, lp",
        ),
        (
            "train --source none.npz --target none.npz --out run --backbone magic",
            "possible values: lenet, adapter",
        ),
        (
            "train --source none.npz --target none.npz --out run --device magic",
            "possible values: cpu, vulkan",
        ),
        ("train --source src.npz --target tgt.npz --out run --backbone resnet50", "takes images"),
        ("train --source src.npz --target none.npz --out run", "none.npz"),
        ("train --source tgt.npz --target tgt.npz --out run", "has no labels"),
        ("train --source src.npz --target tgt.npz --out run --rate 0", "above 0"),
        ("train --source src.npz --target tgt.npz --out run --stop-after layer1", "no such layers"),
        ("train --source src.npz --target tgt.npz --out run --device cuda", "built without cuda"),
        ("train --source src.npz --target tgt.npz --out .", "holds no run"),
        ("predict --model nowhere --images tgt.npz --out x.csv", "no finished training run"),
    ] {
        let out = a2lp(dir.path(), args);
        assert_eq!(out.status.code(), Some(2), "{args}: {}", text(&out));
        assert!(text(&out).contains(part), "{args}: {}", text(&out));
        assert!(!args.contains("magic") || !dir.path().join("run").exists(), "{args}");
    }
    // A target that nothing reaches is told, not hidden.
    let out = a2lp(
        dir.path(),
        "train --source src.npz --target tgt.npz --out run --train-rounds 1 --steps 2 --neighbours 2 --pseudo-labels a2lp",
    );
    assert_eq!(out.status.code(), Some(1), "{}", text(&out));
    assert!(text(&out).contains("no label reaches"), "{}", text(&out));
}
