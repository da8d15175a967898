//! The experiments as a user runs them, and the claims they must bear out.

#[path = "../../a2lp-data/tests/shared_data/mod.rs"]
mod shared_data;

use a2lp_data::ArrayFile;
use a2lp_data::demo::{self, DemoDomain};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

fn a2lp(dir: &Path, args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_a2lp")).current_dir(dir).args(args.split_whitespace()).output().unwrap()
}

fn good(dir: &Path, args: &str) -> String {
    let output = a2lp(dir, args);
    assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A folder `set` with the demo's two domains, 40 drawings of each digit.
fn domains() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("set")).unwrap();
    let write = |name: &str, domain: DemoDomain| {
        let f = &domain.features;
        ArrayFile::new()
            .matrix("features", f.rows(), f.columns(), f.values())
            .strings("labels", &domain.labels)
            .write(&dir.path().join("set").join(name), false)
            .unwrap();
    };
    write("clean.npz", demo::source(1, 40));
    write("rough.npz", demo::target(1, 40));
    good(dir.path(), "experiment init set");
    dir
}

fn results(dir: &Path, out: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(dir.join(out).join("results.json")).unwrap()).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn pairs_are_tabled_kept_and_resumed() {
    let dir = domains();
    let text = good(dir.path(), "experiment pairs set --out p");
    for part in ["clean→rough", "rough→clean", "average", "mean class accuracy %", "A²LP centres"] {
        assert!(text.contains(part), "{text}");
    }
    let first = fs::read(dir.path().join("p/results.csv")).unwrap();
    assert_eq!(String::from_utf8_lossy(&first).lines().count(), 1 + 2 * 6);

    // One cell is lost: only that one is run again.
    fs::remove_file(dir.path().join("p/cells/clean-to-rough.json")).unwrap();
    let again = good(dir.path(), "experiment pairs set --out p");
    assert!(again.contains("(1 cells from an earlier run)"), "{again}");
    assert_eq!(fs::read(dir.path().join("p/results.csv")).unwrap(), first);

    let other = a2lp(dir.path(), "experiment pairs set --out p --neighbours 10");
    assert_eq!(other.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&other.stderr).contains("other settings"));
    let anew = good(dir.path(), "experiment pairs set --out p --neighbours 10 --force");
    assert!(!anew.contains("earlier run"));
    // Other features under the same name: what was kept is not theirs.
    let other = demo::source(2, 40);
    ArrayFile::new()
        .matrix("features", other.features.rows(), other.features.columns(), other.features.values())
        .strings("labels", &other.labels)
        .write(&dir.path().join("set/clean.npz"), true)
        .unwrap();
    let stale = a2lp(dir.path(), "experiment pairs set --out p --neighbours 10");
    assert_eq!(stale.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&stale.stderr).contains("have changed"));
    let missing = a2lp(dir.path(), "experiment pairs .");
    assert!(String::from_utf8_lossy(&missing.stderr).contains("a2lp experiment init"));
}

#[test]
fn pairs_print_the_papers_rows_beside_ours() {
    let dir = domains();
    fs::rename(dir.path().join("set/clean.npz"), dir.path().join("set/amazon.npz")).unwrap();
    fs::rename(dir.path().join("set/rough.npz"), dir.path().join("set/webcam.npz")).unwrap();
    good(dir.path(), "experiment init set --force");
    let text = good(dir.path(), "experiment pairs set --out p --preset office31 --per-class 10 --seeds 0,1");
    let line = text.lines().find(|line| line.contains("amazon→webcam")).unwrap();
    assert!(text.contains("A²LP (paper)") && line.ends_with("81.1          87.7"), "{text}");
    assert_eq!(results(dir.path(), "p")["cells"].as_object().unwrap().len(), 4);
}

#[test]
fn the_graph_gains_useful_weight_under_shift_only() {
    let dir = domains();
    let text = good(dir.path(), "experiment rounds set --out r");
    assert!(text.contains("no label changes after"), "{text}");
    let results = results(dir.path(), "r");
    let rise = |cell: &str| {
        let rounds = results["cells"][cell]["rounds"].as_array().unwrap();
        (number(&rounds[0]["pow"]), number(&rounds[rounds.len() - 1]["pow"]))
    };
    let (ssl_first, ssl_last) = rise("SSL, seed 0");
    let (uda_first, uda_last) = rise("UDA, seed 0");
    assert!(uda_last > 1.3 * uda_first, "UDA: {uda_first} to {uda_last}");
    assert!(ssl_last / ssl_first < 0.7 * uda_last / uda_first, "SSL: {ssl_first} to {ssl_last}");
    let accuracy = |cell: &str, at: usize| number(&results["cells"][cell]["rounds"][at]["accuracy"]);
    assert!(accuracy("SSL, seed 0", 0) > accuracy("UDA, seed 0", 0) + 0.03);
}

#[test]
fn wrong_first_labels_cost_accuracy() {
    let dir = domains();
    good(dir.path(), "experiment noise set --out n --levels 0,0.5,1 --seeds 0,1,2");
    let results = results(dir.path(), "n");
    let mean = |level: &str| {
        (0..3).map(|seed| number(&results["cells"][format!("noise {level}, seed {seed}")])).sum::<f64>() / 3.0
    };
    assert!(mean("0") > mean("1") + 0.05, "{} against {}", mean("0"), mean("1"));
    assert!(mean("0") > mean("0.5") - 0.005 && mean("0.5") > mean("1") - 0.005);
    // True first labels help more than propagated ones.
    assert!(mean("0") > number(&results["cells"]["label propagation"]) + 0.01);
}

#[test]
fn one_thing_at_a_time() {
    let dir = domains();
    good(dir.path(), "experiment alpha set --out a --alphas 0.25,0.5,2");
    let cells = &results(dir.path(), "a")["cells"];
    let overall = |cell: &Value| number(&cell["a2lp"]["overall"]);
    assert!(overall(&cells["alpha 0.5"]) > overall(&cells["alpha 2"]) + 0.2, "α above 1 is no propagation");

    good(dir.path(), "experiment similarity set --out s --k-list 5,20,all");
    let cells = results(dir.path(), "s")["cells"].clone();
    assert_eq!(cells.as_object().unwrap().len(), 9);
    assert!(
        overall(&cells["cosine, k 20"]) > overall(&cells["cosine, k all"]),
        "the full graph blurs classes"
    );

    // A shared search gives what a search of its own gives.
    good(dir.path(), "experiment weights set --out w");
    good(dir.path(), "experiment variant set --out v");
    let (weights, variant) = (results(dir.path(), "w"), results(dir.path(), "v"));
    assert_eq!(weights["cells"]["entropy"], variant["cells"]["all source rows"]);
    assert_eq!(weights["cells"]["entropy"], cells["cosine, k 20"]);

    good(dir.path(), "experiment timing set --out t");
    let cells = results(dir.path(), "t")["cells"].clone();
    let accuracies: Vec<f64> =
        cells.as_object().unwrap().values().map(|cell| number(&cell["accuracy"])).collect();
    assert_eq!(accuracies.len(), 4);
    assert!(accuracies.iter().all(|a| (a - accuracies[0]).abs() < 0.03), "{accuracies:?}");
}

#[test]
fn pictures_of_the_graph() {
    let dir = domains();
    let text = good(dir.path(), "experiment affinity set --out f");
    assert!(text.contains("uda-anchors"));
    for name in ["ssl", "uda", "uda-anchors"] {
        let bytes = fs::read(dir.path().join(format!("f/{name}.png"))).unwrap();
        assert_eq!(&bytes[1..4], b"PNG");
    }
    let sums = fs::read_to_string(dir.path().join("f/block_sums.csv")).unwrap();
    assert_eq!(sums.lines().count(), 1 + 3 * 10);
    let cells = &results(dir.path(), "f")["cells"];
    assert!(number(&cells["uda-anchors"]["pow"]) > number(&cells["uda"]["pow"]));
    // PoW here and in `rounds` are the same quantity.
    good(dir.path(), "experiment rounds set --out r");
    let rounds = results(dir.path(), "r");
    let pow = number(&rounds["cells"]["UDA, seed 0"]["rounds"][0]["pow"]);
    assert!((number(&cells["uda"]["pow"]) - pow).abs() < 1e-5);
}

#[test]
fn office_caltech10_averages_agree_with_the_reference() {
    let Some(shared) = shared_data::find("experiment_pairs") else { return };
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("office_caltech10");
    fs::create_dir(&set).unwrap();
    for entry in fs::read_dir(shared.join("data/office_caltech10")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "npy") {
            fs::copy(&path, set.join(path.file_name().unwrap())).unwrap();
        }
    }
    good(dir.path(), "experiment init office_caltech10");
    good(dir.path(), "experiment pairs office_caltech10 --out p");
    let reference = fs::read_to_string(shared.join("reference/office_caltech10.json")).unwrap();
    let reference: Value = serde_json::from_str(&reference).unwrap();
    let results = results(dir.path(), "p");
    for (method, variant, last) in [(2, "default", false), (3, "default", true), (5, "centres", true)] {
        let (mut ours, mut theirs) = (0.0, 0.0);
        for (name, variants) in reference["pairs"].as_object().unwrap() {
            let rounds = variants[variant]["accuracy_by_round"].as_array().unwrap();
            theirs += number(&rounds[if last { rounds.len() - 1 } else { 0 }]) / 12.0;
            let cell = &results["cells"][name.replace("->", "→")];
            ours += 100.0 * number(&cell["accuracies"][method]["overall"]) / 12.0;
        }
        assert!((ours - theirs).abs() < 0.1, "{variant}: {ours} against {theirs}");
    }
}

/// A folder `set` whose numbers are whole, so that every machine computes the same: three classes of 24 rows, the second
/// domain turned towards one axis.
fn whole_numbers() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("set")).unwrap();
    for (name, turn) in [("first.csv", 0), ("second.csv", 7)] {
        let mut csv = String::from("a,b,c,d,e,label\n");
        for item in 0..72 {
            let class = item % 3;
            let value = |column: usize| {
                let noise = (item * 31 + column * 17 + turn * 13) * 2654435761 % 4294967296 / 330382099;
                noise + if column == class { 12 } else { 0 } + if column == 3 { turn } else { 0 }
            };
            let row: Vec<String> = (0..5).map(|column| value(column).to_string()).collect();
            csv += &format!("{},{}\n", row.join(","), ["ant", "bee", "cow"][class]);
        }
        fs::write(dir.path().join("set").join(name), csv).unwrap();
    }
    good(dir.path(), "experiment init set");
    dir
}

/// Tables as printed, word for word. `A2LP_UPDATE_SNAPSHOTS=1 cargo test` writes them anew.
#[test]
fn tables_are_those_of_the_snapshots() {
    let dir = whole_numbers();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    for (experiment, options) in [
        ("pairs", "--neighbours 5"),
        ("rounds", "--neighbours 5 --rounds 4"),
        ("similarity", "--k-list 3,6,all --rounds 3 --gauss-sigma2 50"),
        ("alpha", "--alphas 0.25,0.5,0.75,2 --neighbours 5 --rounds 3"),
        ("noise", "--levels 0,0.5,1 --seeds 0,1,2 --neighbours 5"),
        ("weights", "--neighbours 5"),
        ("variant", "--neighbours 5"),
        ("affinity", "--neighbours 5 --rounds 3"),
        ("mix", "--neighbours 5"),
        ("unknown", "--neighbours 5 --seeds 0,1"),
    ] {
        let printed = good(dir.path(), &format!("experiment {experiment} set --out {experiment} {options}"));
        let file = folder.join(format!("{experiment}.txt"));
        if std::env::var_os("A2LP_UPDATE_SNAPSHOTS").is_some() {
            fs::write(&file, &printed).unwrap();
        }
        let golden = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        assert_eq!(printed, golden, "{experiment} prints another table than {}", file.display());
    }
}

/// The mean of a column over the rows of `results.csv` that hold all these words.
fn mean_of(dir: &Path, out: &str, column: &str, words: &[&str]) -> f64 {
    let text = fs::read_to_string(dir.join(out).join("results.csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let at = header.iter().position(|name| *name == column).unwrap();
    let rows = lines.filter(|row| words.iter().all(|word| row.contains(word)));
    let values: Vec<f64> = rows.filter_map(|row| row[at].parse().ok()).collect();
    assert!(!values.is_empty(), "no {column} for {words:?} in {text}");
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn targets_that_lack_classes_need_their_own_mix() {
    let dir = domains();
    let text = good(dir.path(), "experiment mix set --out m --seeds 0,1");
    assert!(text.contains("own chosen") && text.contains("shift"), "{text}");
    let of = |column: &str, scenario: &str| mean_of(dir.path(), "m", column, &[scenario]);
    assert!(of("consensus_auto", "third") > of("consensus_same", "third") + 10.0, "{text}");
    assert!(of("consensus_auto", "third") > of("a2lp", "third"), "{text}");
    assert!(of("consensus_auto", "closed") > of("a2lp", "closed"), "{text}");
    let given = good(dir.path(), "experiment mix set --out g --present 0,1,2 --source clean --target rough");
    assert!(given.contains("given") && given.contains("120"), "{given}");
    let missing = a2lp(dir.path(), "experiment mix set --out h --present cat");
    assert!(String::from_utf8_lossy(&missing.stderr).contains("the target has no such class"));
}

#[test]
fn reach_beats_confidence_at_finding_new_classes() {
    let Some(shared) = shared_data::find("experiment-unknown") else { return };
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("set")).unwrap();
    for name in ["amazon_feat", "amazon_label", "webcam_feat", "webcam_label"] {
        let file = format!("{name}.npy");
        fs::copy(shared.join("data/office_caltech10").join(&file), dir.path().join("set").join(&file))
            .unwrap();
    }
    good(dir.path(), "experiment init set");
    let text = good(dir.path(), "experiment unknown set --out u --seeds 0,1");
    let auroc = |score: &str| mean_of(dir.path(), "u", "auroc", &["half unknown", score]);
    assert!(auroc("reach") > 98.0 && auroc("A²LP confidence") < 90.0, "{text}");
    assert!(mean_of(dir.path(), "u", "false_flags", &["reach"]) < 5.0, "{text}");
    let given = "experiment unknown set --out g --known 0,1,2 --new 8,9 --source amazon --target webcam";
    assert!(good(dir.path(), given).contains("given"));
}

#[test]
fn an_experiment_can_be_looked_at() {
    let dir = whole_numbers();
    let text = good(dir.path(), "experiment rounds set --out r --neighbours 5 --report");
    assert!(text.contains("page in r/report.html"), "{text}");
    let page = fs::read_to_string(dir.path().join("r/report.html")).unwrap();
    for part in ["round by round", "UDA accuracy %", "SSL PoW %", "experiment rounds set --out r"] {
        assert!(page.contains(part), "{part}");
    }
    // The same from the folder, later, and several in one.
    good(dir.path(), "experiment affinity set --out a --neighbours 5");
    good(dir.path(), "report r a --out both.html --figures figures");
    let both = fs::read_to_string(dir.path().join("both.html")).unwrap();
    assert!(
        both.contains("data:image/png;base64,")
            && both.contains("uda-anchors")
            && both.contains("UDA accuracy %")
    );
    if cfg!(feature = "figures") {
        assert!(fs::read(dir.path().join("figures/1-chart.png")).unwrap().starts_with(b"\x89PNG"));
    }
    assert_eq!(a2lp(dir.path(), "report r --out both.html").status.code(), Some(2));
}
