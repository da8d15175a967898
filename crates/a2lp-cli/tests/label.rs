//! `a2lp label` and `a2lp inspect` as a user runs them.

use a2lp_data::ArrayFile;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn a2lp(dir: &Path, args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_a2lp")).current_dir(dir).args(args.split_whitespace()).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A folder with `src.csv` and `tgt.csv`: two clear clusters, the target's moved a little.
fn small() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut source = String::from("id,x,y,z,label\n");
    let mut target = String::from("x,y,z\n");
    let mut truth = String::new();
    for item in 0..20 {
        let t = item as f32 / 20.0;
        let (x, y, name) = if item % 2 == 0 { (1.0, 0.1 * t, "mug") } else { (0.1 * t, 1.0, "bike") };
        source += &format!("s{item},{x},{y},0.0,{name}\n");
        target += &format!("{x},{y},{}\n", 0.3 + 0.1 * t);
        truth += &format!("{name}\n");
    }
    fs::write(dir.path().join("src.csv"), source).unwrap();
    fs::write(dir.path().join("tgt.csv"), target).unwrap();
    fs::write(dir.path().join("truth.txt"), truth).unwrap();
    dir
}

const LABEL: &str = "label --source src.csv --target tgt.csv --neighbours 12";

#[test]
fn labels_and_run_record_of_two_csv_files() {
    let dir = small();
    let out = a2lp(dir.path(), &format!("{LABEL} --eval-labels truth.txt --out labels.csv"));
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    assert!(stdout(&out).contains("accuracy 100.0 %, mean over classes 100.0 %"), "{}", stdout(&out));
    let labels = fs::read_to_string(dir.path().join("labels.csv")).unwrap();
    let mut lines = labels.lines();
    assert_eq!(lines.next(), Some("row,label,confidence,margin,status,votes,reach"));
    assert!(lines.next().unwrap().starts_with("0,mug,1.000000,1.000000,labelled,3,1.0"));
    assert_eq!(lines.count(), 19);
    let record = fs::read_to_string(dir.path().join("labels.csv.run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["settings"]["neighbours"], 12);
    assert_eq!(record["settings"]["alpha"], 0.5);
    assert_eq!(record["rounds"].as_array().unwrap().len(), 10);
    assert_eq!(record["evaluation"]["accuracy"], 1.0);
    assert_eq!(record["inputs"]["target"]["rows"], 20);
    assert!(record["timings"]["total_secs"].as_f64().unwrap() > 0.0);
}

#[test]
fn nothing_is_overwritten_unless_forced() {
    let dir = small();
    fs::write(dir.path().join("labels.csv"), "precious").unwrap();
    let out = a2lp(dir.path(), &format!("{LABEL} --out labels.csv"));
    assert_eq!(code(&out), 2);
    assert!(stderr(&out).contains("labels.csv: exists already\npass --force"), "{}", stderr(&out));
    assert_eq!(fs::read_to_string(dir.path().join("labels.csv")).unwrap(), "precious");
    assert_eq!(code(&a2lp(dir.path(), &format!("{LABEL} --out labels.csv --force"))), 0);
    assert!(fs::read_to_string(dir.path().join("labels.csv")).unwrap().starts_with("row,"));
    // The record alone in the way is refused as well.
    fs::write(dir.path().join("other.csv.run.json"), "precious").unwrap();
    assert_eq!(code(&a2lp(dir.path(), &format!("{LABEL} --out other.csv"))), 2);
    assert!(!dir.path().join("other.csv").exists());
    // No temporary file stays behind.
    let left = fs::read_dir(dir.path())
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
    assert_eq!(left.count(), 0);
}

#[test]
fn json_goes_to_stdout_and_nothing_else_does() {
    let dir = small();
    let out = a2lp(dir.path(), &format!("{LABEL} --out labels.csv --json --eval-labels truth.txt"));
    let summary: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(summary["items"], 20);
    assert_eq!(summary["accuracy"], 1.0);
    assert_eq!(summary["class_counts"]["mug"], 10);
}

#[test]
fn ids_and_probabilities_on_request() {
    let dir = small();
    let ids: Vec<String> = (0..20).map(|i| format!("photo {i}.jpg")).collect();
    fs::write(dir.path().join("ids.txt"), ids.join("\n")).unwrap();
    let out = a2lp(dir.path(), &format!("{LABEL} --out labels.csv --target-ids ids.txt --probabilities"));
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    let labels = fs::read_to_string(dir.path().join("labels.csv")).unwrap();
    assert!(
        labels.starts_with(
            "row,id,label,confidence,margin,status,votes,reach,p_bike,p_mug\n0,photo 0.jpg,mug,"
        ),
        "{labels}"
    );
}

#[test]
fn options_from_a_file_and_flags_that_win() {
    let dir = small();
    fs::write(
        dir.path().join("run.toml"),
        "source = 'src.csv'\ntarget = \"tgt.csv\"\nout = 'a.csv'\nneighbours = 12\nalpha = 0.75\nrounds = 2\nstop-when-stable = true\n",
    )
    .unwrap();
    let out = a2lp(dir.path(), "label --config run.toml --rounds 4");
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    let record: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(dir.path().join("a.csv.run.json")).unwrap()).unwrap();
    assert_eq!(record["settings"]["alpha"], 0.75);
    assert_eq!(record["settings"]["rounds"], 4);
    assert_eq!(record["settings"]["stop_when_stable"], true);

    fs::write(dir.path().join("typo.toml"), "neighbors = 3\n").unwrap();
    let out = a2lp(dir.path(), "label --config typo.toml --source src.csv --target tgt.csv --out b.csv");
    assert_eq!(code(&out), 2);
    assert!(
        stderr(&out).contains("unknown option 'neighbors'; did you mean 'neighbours'?"),
        "{}",
        stderr(&out)
    );
}

#[test]
fn presets_set_what_flags_do_not() {
    let dir = small();
    let out =
        a2lp(dir.path(), "label --source src.csv --target tgt.csv --out v.csv --preset visda --rounds 3");
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    let record: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(dir.path().join("v.csv.run.json")).unwrap()).unwrap();
    let settings = &record["settings"];
    assert_eq!(
        (&settings["neighbours"], &settings["alpha"], &settings["rounds"], &settings["source_nodes"]),
        (&100.into(), &0.75.into(), &3.into(), &"centres".into())
    );
}

#[test]
fn the_same_bytes_for_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    // Enough rows that the work splits.
    let value = |at: usize| ((at * 7919 + at * at % 613) % 1000) as f32 / 1000.0 - 0.2;
    let values: Vec<f32> = (0..3000 * 8).map(value).collect();
    let labels: Vec<String> = (0..1000).map(|row| format!("c{}", (values[row * 8] * 5.0).floor())).collect();
    ArrayFile::new()
        .matrix("features", 1000, 8, &values[..8000])
        .strings("labels", &labels)
        .write(&dir.path().join("s.npz"), false)
        .unwrap();
    ArrayFile::new()
        .matrix("features", 2000, 8, &values[8000..])
        .write(&dir.path().join("t.npz"), false)
        .unwrap();
    let bytes: Vec<Vec<u8>> = [1, 2, 8]
        .iter()
        .map(|threads| {
            let out = a2lp(dir.path(), &format!("label --source s.npz --target t.npz --out l{threads}.csv --threads {threads} --probabilities"));
            assert_eq!(code(&out), 0, "{}", stderr(&out));
            fs::read(dir.path().join(format!("l{threads}.csv"))).unwrap()
        })
        .collect();
    assert!(bytes[0] == bytes[1] && bytes[1] == bytes[2]);
}

#[test]
fn bad_input_is_named_with_file_and_place() {
    let dir = small();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("nan.csv", "1,2,3\n4,nan,6\n");
    write("narrow.csv", "1,2\n3,4\n");
    write("word.csv", "1,2,3\n4,five,6\n");
    write("ragged.csv", "1,2,3\n4,5\n");
    write("empty.csv", "");
    write("short.txt", "mug\nbike\n");
    write("model.pt", "whatever");
    write("notes.docx", "whatever");
    let cases = [
        ("--source src.csv --target nan.csv", "nan.csv: row 1, column 1 is NaN; repair such rows, or leave"),
        ("--source src.csv --target narrow.csv", "src.csv has 3 columns, narrow.csv has 2"),
        ("--source src.csv --target word.csv", "word.csv: line 2: column 1: 'five' is not a number"),
        (
            "--source src.csv --target ragged.csv",
            "ragged.csv: line 2: 2 fields where the lines before have 3",
        ),
        ("--source src.csv --target empty.csv", "empty.csv: the file is empty"),
        ("--source src.csv --target missing.npy", "missing.npy: No such file"),
        ("--source src.csv --target model.pt", "model.pt: pickled Python objects are not read"),
        ("--source src.csv --target notes.docx", "notes.docx: unknown format"),
        ("--source tgt.csv --target src.csv", "tgt.csv holds no labels; give them with --source-labels"),
        (
            "--source src.csv --source-labels short.txt --target tgt.csv",
            "short.txt has 2 labels, but src.csv has 20 rows",
        ),
        (
            "--source src.csv --target tgt.csv --eval-labels short.txt",
            "short.txt has 2 labels, but tgt.csv has 20 rows",
        ),
        ("--source src.csv --target tgt.csv --alpha 1 --solver dense", "I − αS is singular for α = 1"),
        ("--source src.csv --target tgt.csv --alpha 2", "the paper's ablation, not a setting"),
        ("--source src.csv --target tgt.csv --neighbours 0", "neighbours = 0: at least 1"),
    ];
    for (args, message) in cases {
        let out = a2lp(dir.path(), &format!("label {args} --out out.csv"));
        assert_eq!(code(&out), 2, "{args}");
        assert!(stderr(&out).contains(message), "{args}: {}", stderr(&out));
        assert!(!dir.path().join("out.csv").exists());
    }
    let out = a2lp(dir.path(), &format!("{LABEL} --out no/such/folder/out.csv"));
    assert!(stderr(&out).contains("no/such/folder: no such folder"), "{}", stderr(&out));
}

#[test]
fn what_no_label_reaches_stays_empty_and_is_said() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s.csv"), "x,y,label\n1,0,a\n0.9,0,b\n").unwrap();
    fs::write(dir.path().join("t.csv"), "0,1\n0,2\n1,0\n").unwrap();
    let out = a2lp(dir.path(), "label --source s.csv --target t.csv --out l.csv --rounds 1");
    assert_eq!(code(&out), 1, "two of three are over the default limit of a half");
    assert!(stderr(&out).contains("warning: 2 of 3 target items (66.7 %) have no path to any label"));
    let labels = fs::read_to_string(dir.path().join("l.csv")).unwrap();
    assert_eq!(labels.lines().nth(1), Some("0,,0.000000,0.000000,unreached,0.000000"));
    let out = a2lp(
        dir.path(),
        "label --source s.csv --target t.csv --out l.csv --force --rounds 1 --max-unreached 0.9",
    );
    assert_eq!(code(&out), 0);
}

#[test]
fn class_names_turn_positions_into_names() {
    let dir = small();
    let numbers: Vec<&str> = (0..20).map(|i| if i % 2 == 0 { "1" } else { "0" }).collect();
    fs::write(dir.path().join("numbers.txt"), numbers.join("\n")).unwrap();
    fs::write(dir.path().join("names.txt"), "bicycle\ncup\nghost\n").unwrap();
    let out = a2lp(
        dir.path(),
        &format!(
            "{LABEL} --out l.csv --source-labels numbers.txt --class-names names.txt --eval-labels numbers.txt"
        ),
    );
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    assert!(stdout(&out).contains("accuracy 100.0 %"));
    assert!(fs::read_to_string(dir.path().join("l.csv")).unwrap().contains("0,cup,1.0"));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let dir = small();
    let mut child = Command::new(env!("CARGO_BIN_EXE_a2lp"))
        .current_dir(dir.path())
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    assert_eq!(stderr(&out), "");
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_run_with_130_and_writes_nothing() {
    let dir = small();
    let before = fs::read_dir(dir.path()).unwrap().count();
    let mut child = Command::new(env!("CARGO_BIN_EXE_a2lp"))
        .current_dir(dir.path())
        .args("label --source src.csv --target - --out l.csv".split(' '))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // More than a pipe holds: once it is written, the program is reading, and so it listens for the signal.
    input.write_all("1,2,3\n".repeat(200_000).as_bytes()).unwrap();
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    drop(input);
    let out = child.wait_with_output().unwrap();
    assert_eq!(code(&out), 130, "{}", stderr(&out));
    assert!(stderr(&out).contains("interrupted; nothing was written"));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), before);
}

#[test]
fn inspect_counts_what_is_wrong() {
    let dir = small();
    fs::write(dir.path().join("bad.csv"), "1,2\n0,0\n1,2\nnan,1\n3,inf\n-1,0\n").unwrap();
    let out = a2lp(dir.path(), "inspect bad.csv");
    assert_eq!(code(&out), 1);
    let text = stdout(&out);
    for part in [
        "6 rows × 2 columns, text",
        "row length  0.0000 to 2.2361",
        "negative    1 values",
        "NaN or ±Inf 2 values in 2 rows: 3, 4",
        "zero rows   1",
        "duplicates  1 (row 2 repeats row 0)",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let text = stdout(&a2lp(dir.path(), "inspect src.csv"));
    assert!(
        text.contains("20 rows × 3 columns") && text.contains("labels      20 rows, 2 classes"),
        "{text}"
    );
    let text = stdout(&a2lp(dir.path(), "inspect truth.txt"));
    assert!(text.contains("labels      20 rows, 2 classes") && text.contains("bike     10"), "{text}");
    let json: serde_json::Value =
        serde_json::from_slice(&a2lp(dir.path(), "inspect bad.csv --json").stdout).unwrap();
    assert_eq!(json["features"]["first_invalid_rows"], serde_json::json!([3, 4]));
}

#[test]
fn short_help_shows_ten_options_and_long_help_all() {
    let dir = tempfile::tempdir().unwrap();
    let count = |text: &str| text.lines().filter(|line| line.trim_start().starts_with("--")).count();
    let short = stdout(&a2lp(dir.path(), "label -h"));
    assert_eq!(count(&short), 10, "{short}");
    let long = stdout(&a2lp(dir.path(), "label --help"));
    assert!(count(&long) > 25, "{long}");
    assert!(long.contains("not a calibrated probability"));
}

#[test]
fn completions_and_man_pages() {
    let dir = tempfile::tempdir().unwrap();
    assert!(stdout(&a2lp(dir.path(), "completions zsh")).contains("--min-confidence"));
    assert_eq!(code(&a2lp(dir.path(), "man .")), 0);
    let page = fs::read_to_string(dir.path().join("a2lp-label.1")).unwrap();
    assert!(page.contains("neighbours"));
}

#[test]
fn a_dry_run_tells_the_plan_and_a_limit_on_memory_is_kept() {
    let dir = small();
    let plan = a2lp(dir.path(), &format!("{LABEL} --out labels.csv --dry-run"));
    assert_eq!(code(&plan), 0);
    let text = stdout(&plan);
    for part in ["12 each, exact search", "solver cg", "MiB at the peak", "Nothing was run"] {
        assert!(text.contains(part), "{text}");
    }
    let json = a2lp(dir.path(), &format!("{LABEL} --out labels.csv --dry-run --json --graph-method pruned"));
    let plan: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(plan["method"], "pruned");
    assert!(plan["peak_bytes"].as_u64().unwrap() > plan["feature_bytes"].as_u64().unwrap());

    let refused = a2lp(dir.path(), &format!("{LABEL} --out labels.csv --max-memory 1M"));
    assert_eq!(code(&refused), 2);
    assert!(stderr(&refused).contains("--max-memory allows 1 MiB"));
    assert!(!dir.path().join("labels.csv").exists());
    assert_eq!(code(&a2lp(dir.path(), &format!("{LABEL} --out labels.csv --max-memory 4G"))), 0);
}

#[test]
fn a_run_can_be_looked_at_now_and_later() {
    let dir = small();
    let out = a2lp(dir.path(), &format!("{LABEL} --out labels.csv --report --figures figures"));
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    assert!(stdout(&out).contains("page in labels.html"), "{}", stdout(&out));
    let page = fs::read_to_string(dir.path().join("labels.html")).unwrap();
    assert!(page.contains("All 20 target items got a label.") && page.contains("tgt from src"));
    assert!(!page.contains("Calibration"), "without truth there is nothing to calibrate against");
    for name in ["map", "rounds", "confidence", "classes", "degrees", "affinity"] {
        let svg = fs::read_to_string(dir.path().join(format!("figures/{name}.svg"))).unwrap();
        assert!(svg.starts_with("<svg") && !svg.contains("var("), "{name}");
        let png = dir.path().join(format!("figures/{name}.png"));
        assert!(!cfg!(feature = "figures") || fs::read(png).unwrap().starts_with(b"\x89PNG"));
    }

    // Later, from what the run left behind: the same page, also when the features are gone.
    fs::remove_file(dir.path().join("tgt.csv")).unwrap();
    assert_eq!(code(&a2lp(dir.path(), "report labels.csv --out again.html")), 0);
    assert_eq!(fs::read_to_string(dir.path().join("again.html")).unwrap(), page);
    let tsne = a2lp(dir.path(), "report labels.csv --out tsne.html --map tsne");
    assert_eq!(code(&tsne), 2);
    assert!(stderr(&tsne).contains("t-SNE needs the features of the run"), "{}", stderr(&tsne));
    assert!(!dir.path().join("tsne.html").exists());

    // In the way, half there, or damaged.
    assert!(stderr(&a2lp(dir.path(), "report labels.csv --out again.html")).contains("pass --force"));
    let trace = fs::read_to_string(dir.path().join("labels.csv.trace.json")).unwrap();
    fs::write(
        dir.path().join("labels.csv.trace.json"),
        trace.replacen("\"source_points\":20", "\"source_points\":99", 1),
    )
    .unwrap();
    let damaged = a2lp(dir.path(), "report labels.csv --out x.html");
    assert!(stderr(&damaged).contains("damaged: more source points than points"), "{}", stderr(&damaged));
    fs::remove_file(dir.path().join("labels.csv.trace.json")).unwrap();
    let without = a2lp(dir.path(), "report labels.csv --out x.html");
    assert_eq!(code(&without), 0);
    assert!(stderr(&without).contains("is missing"), "{}", stderr(&without));
    assert!(stderr(&a2lp(dir.path(), "report nothing.csv")).contains("nothing.csv.run.json: no such file"));
}

#[test]
fn the_map_by_tsne_is_the_same_on_any_number_of_threads() {
    let dir = small();
    let run = |threads: usize, out: &str| {
        let args = format!("{LABEL} --out {out}.csv --threads {threads} --report --map tsne");
        let done = a2lp(dir.path(), &args);
        assert_eq!(code(&done), 0, "{}", stderr(&done));
        let page = fs::read_to_string(dir.path().join(format!("{out}.html"))).unwrap();
        assert!(page.contains("t-SNE by cosine"));
        let map = page.split("\"kind\":\"tsne\"").nth(1).unwrap();
        map[..map.find("\"rows\"").unwrap()].to_string()
    };
    assert_eq!(run(1, "one"), run(3, "three"));
    let alone = a2lp(dir.path(), &format!("{LABEL} --out z.csv --map tsne"));
    assert!(stderr(&alone).contains("add --report or --figures"), "{}", stderr(&alone));
}

#[test]
fn views_that_vote_and_a_guard() {
    let dir = small();
    let out = a2lp(
        dir.path(),
        &format!("{LABEL} --method consensus --guard --eval-labels truth.txt --out labels.csv --report"),
    );
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    let text = stdout(&out);
    for part in ["views raw, centred, discriminant agree on", "quality ", "guard: ", "accuracy 100.0 %"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let labels = fs::read_to_string(dir.path().join("labels.csv")).unwrap();
    assert!(labels.starts_with("row,label,confidence,margin,status,votes,reach\n"), "{labels}");
    let record = fs::read_to_string(dir.path().join("labels.csv.run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["settings"]["method"], "consensus");
    assert_eq!(record["consensus"]["views"][1]["name"], "centred");
    let accuracies =
        |view: usize| record["consensus"]["views"][view]["accuracy_by_round"].as_array().unwrap().len();
    assert_eq!((accuracies(0), accuracies(2)), (10, 9), "the third view votes from the second round on");
    assert_eq!(record["consensus"]["mix"]["chosen"], "same");
    assert_eq!(record["consensus"]["class_shares"][0]["class"], "bike");
    assert!(record["rounds"][9]["agreement"].as_f64().unwrap() > 0.9);
    assert!(record["summary"]["quality"]["score"].as_f64().unwrap() > 0.65);
    assert!(record["guard"]["lp_score"].as_f64().unwrap() > 0.65);
    let page = fs::read_to_string(dir.path().join("labels.html")).unwrap();
    assert!(page.contains("3 views voted"));

    let out = a2lp(dir.path(), &format!("{LABEL} --guard --source-nodes centres --out centres.csv"));
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    assert!(stderr(&out).contains("cannot measure quality over class centres"), "{}", stderr(&out));
    let out = a2lp(dir.path(), &format!("{LABEL} --method lp --no-quality --out lp.csv"));
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    assert!(!stdout(&out).contains("quality"), "{}", stdout(&out));
    let out = a2lp(dir.path(), &format!("{LABEL} --method consensus --source-nodes centres --out no.csv"));
    assert_eq!(code(&out), 2);
    assert!(stderr(&out).contains("consensus builds its own graphs"), "{}", stderr(&out));
}

#[test]
fn labels_in_every_format_say_the_same() {
    let dir = small();
    for ending in ["csv", "jsonl", "npz", "json"] {
        let out = a2lp(
            dir.path(),
            &format!("{LABEL} --method consensus --probabilities --out labels.{ending} --no-quality"),
        );
        assert_eq!(code(&out), 0, "{}", stderr(&out));
    }
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    let csv = read("labels.csv");
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let lines = read("labels.jsonl");
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((rows.len(), lines.len()), (20, 20));
    for (row, line) in rows.iter().zip(&lines) {
        assert_eq!(line["row"].to_string(), row[0]);
        assert_eq!(line["label"], row[1]);
        assert!((line["confidence"].as_f64().unwrap() - row[2].parse::<f64>().unwrap()).abs() < 1e-6);
        assert_eq!(line["status"], row[4]);
        assert_eq!(line["votes"].to_string(), row[5]);
        assert!(
            (line["probabilities"]["bike"].as_f64().unwrap() - row[7].parse::<f64>().unwrap()).abs() < 1e-6
        );
        assert!((line["reach"].as_f64().unwrap() - row[6].parse::<f64>().unwrap()).abs() < 1e-6);
    }
    // What we write as .npz can be the labels of something else.
    let names = a2lp_data::read_labels(&dir.path().join("labels.npz"), &Default::default()).unwrap();
    assert_eq!(names.len(), 20);
    let tasks: serde_json::Value = serde_json::from_str(&read("labels.json")).unwrap();
    let tasks = tasks.as_array().unwrap();
    assert_eq!(tasks.len(), 20);
    let scores: Vec<f64> =
        tasks.iter().map(|task| task["predictions"][0]["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted(), "{scores:?}");
    let first = tasks[0]["data"]["row"].as_u64().unwrap() as usize;
    assert_eq!(tasks[0]["predictions"][0]["result"][0]["value"]["choices"][0], rows[first][1]);

    let out = a2lp(dir.path(), &format!("{LABEL} --out labels.xlsx"));
    assert_eq!(code(&out), 2);
    assert!(stderr(&out).contains("labels are written as .csv"), "{}", stderr(&out));
}

#[test]
fn features_go_from_any_format_to_any() {
    let dir = small();
    let mut last = "src.csv".to_string();
    for ending in ["npz", "safetensors", "csv", "npy"] {
        let out = a2lp(dir.path(), &format!("convert {last} --out c.{ending}"));
        assert_eq!(code(&out), 0, "{}", stderr(&out));
        assert_eq!(stdout(&out), format!("20 rows of 3 features, labels, ids in c.{ending}\n"));
        last = format!("c.{ending}");
    }
    let read = |name: &str| a2lp_data::FeatureFile::open(&dir.path().join(name)).unwrap();
    assert_eq!(read("c.npy").read().unwrap(), read("src.csv").read().unwrap());
    assert_eq!(read("c.csv").labels().unwrap(), read("src.csv").labels().unwrap());
    assert_eq!(read("c.npz").ids().unwrap(), read("src.csv").ids().unwrap());
    let words = a2lp_data::read_labels(&dir.path().join("c.labels.npy"), &Default::default()).unwrap();
    assert_eq!(Some(words), read("c.npz").labels().unwrap());

    let out = a2lp(dir.path(), "convert c.npz c.safetensors --out both.npz");
    assert_eq!(stdout(&out), "40 rows of 3 features, labels, ids in both.npz\n", "{}", stderr(&out));
    for (args, part) in [
        ("convert c.npz tgt.csv --out no.npz", "tgt.csv: it has no labels, but another file of the set has"),
        ("convert c.npz --out no.xlsx", "features are written as .npy, .npz"),
        ("convert c.npz --out c.csv", "exists already"),
        ("convert c.npz --labels truth.txt --out yes.npz", ""),
        ("convert gone.npz --out no.npz", "error: gone.npz: No such file or directory (os error 2)\n"),
        ("convert c.npz tgt.csv --labels truth.txt --out no.npz", "tgt.csv: it has no ids"),
        ("convert c.npz c.safetensors --labels truth.txt --out no.npz", "20 labels for 40 rows"),
    ] {
        let out = a2lp(dir.path(), args);
        assert_eq!(code(&out), if part.is_empty() { 0 } else { 2 }, "{args}");
        assert!(stderr(&out).contains(part), "{args}: {}", stderr(&out));
    }
}

#[test]
fn a_solver_that_gives_up_is_told() {
    let dir = small();
    let out = a2lp(dir.path(), &format!("{LABEL} --method a2lp --out labels.csv --max-iterations 1"));
    assert_eq!(code(&out), 1, "{}", stderr(&out));
    assert!(stderr(&out).contains("the solver stopped after 1 iterations"), "{}", stderr(&out));
}
