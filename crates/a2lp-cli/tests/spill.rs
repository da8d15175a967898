//! `a2lp label --spill` as a user runs it: the bytes of a run in memory, from files.

use a2lp_data::ArrayFile;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn command(dir: &Path, args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_a2lp"));
    command.current_dir(dir).args(args.split_whitespace());
    command
}

fn a2lp(dir: &Path, args: &str) -> Output {
    command(dir, args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    format!("{:?} {}{}", output.status, text(&output.stderr), text(&output.stdout))
}

/// Folders `src` and `tgt` with two files each; the ids of the target are words.
fn shards(rows: usize) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let columns = 16;
    for (domain, shift) in [("src", 0.0f32), ("tgt", 0.2)] {
        fs::create_dir(dir.path().join(domain)).unwrap();
        for (part, count) in [rows / 3, rows - rows / 3].into_iter().enumerate() {
            let value = |at: usize| {
                let (row, column) = (at / columns, at % columns);
                let bits = ((at + part * 500_000 + (shift * 1e7) as usize) as u64)
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let noise =
                    ((bits ^ bits >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f32 / (1 << 24) as f32;
                noise + shift + if row % 8 == column % 8 { 1.5 } else { 0.0 }
            };
            let values: Vec<f32> = (0..count * columns).map(value).collect();
            let labels: Vec<String> = (0..count).map(|row| format!("class {}", row % 8 % 4)).collect();
            let ids: Vec<String> = (0..count).map(|row| format!("{part}, item \"{row}\"")).collect();
            let file = ArrayFile::new().matrix("features", count, columns, &values).strings("ids", &ids);
            let file = if domain == "src" { file.strings("labels", &labels) } else { file };
            file.write(&dir.path().join(domain).join(format!("part{part}.npz")), false).unwrap();
        }
    }
    dir
}

const LABEL: &str = "label --source src --target tgt --method a2lp --neighbours 10";

/// All parts, one below the other.
fn joined(folder: &Path) -> String {
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|ending| ending == "csv"));
    names.sort();
    let mut all = String::new();
    for path in names {
        let text = fs::read_to_string(path).unwrap();
        all += if all.is_empty() { &text } else { text.split_once('\n').unwrap().1 };
    }
    all
}

fn in_memory(dir: &Path) -> String {
    let out = a2lp(
        dir,
        &format!("{LABEL} --rounds 4 --graph-method pruned --unknown off --no-quality --out whole.csv"),
    );
    assert!(out.status.success(), "{}", stderr(&out));
    fs::read_to_string(dir.join("whole.csv")).unwrap()
}

#[test]
fn files_give_the_bytes_of_memory_part_by_part() {
    let dir = shards(9000);
    let spill = format!("{LABEL} --rounds 4 --spill work --max-memory 400M --out labels");
    let plan = a2lp(dir.path(), &format!("{spill} --dry-run"));
    let text = String::from_utf8(plan.stdout).unwrap();
    assert!(text.contains("machine-hours") && text.contains("9000 source and 9000 target rows"), "{text}");
    assert!(!dir.path().join("labels").exists() && !dir.path().join("work").exists());

    let out = a2lp(dir.path(), &spill);
    assert!(out.status.success(), "{}", stderr(&out));
    assert_eq!(joined(&dir.path().join("labels")), in_memory(dir.path()));
    let first = fs::read_to_string(dir.path().join("labels/part0.csv")).unwrap();
    assert_eq!(first.lines().count(), 3001);
    assert!(first.lines().nth(2).unwrap().starts_with("1,\"0, item \"\"1\"\"\","), "{first:.200}");
    let record = fs::read_to_string(dir.path().join("labels/_run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["outputs"], serde_json::json!(["part0.csv", "part1.csv"]));
    assert!(record["outcome"]["recall"].as_f64().unwrap() > 0.9);
    assert_eq!(record["outcome"]["rounds"].as_array().unwrap().len(), 4);
    assert_eq!(fs::read_dir(dir.path().join("work")).unwrap().count(), 0);

    // Nothing is replaced unless asked.
    let again = a2lp(dir.path(), &spill);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("exists already"), "{}", stderr(&again));
    assert!(a2lp(dir.path(), &format!("{spill} --force --threads 1")).status.success());
    assert_eq!(joined(&dir.path().join("labels")), fs::read_to_string(dir.path().join("whole.csv")).unwrap());
}

#[test]
#[cfg(unix)]
fn interrupted_runs_go_on() {
    let dir = shards(24_000);
    let spill = format!("{LABEL} --rounds 8 --spill work --out labels");
    let mut stops = 0;
    for wait in [300u64, 700, 1100] {
        let mut run =
            command(dir.path(), &spill).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
        let asked = Instant::now();
        let status = run.wait().unwrap();
        if status.success() {
            break;
        }
        assert_eq!(status.code(), Some(130));
        assert!(asked.elapsed() < Duration::from_secs(10));
        stops += 1;
    }
    assert!(stops > 0);
    let out = a2lp(dir.path(), &spill);
    if !out.status.success() {
        // It was already done.
        assert!(stderr(&out).contains("exists already"), "{}", stderr(&out));
    }
    let whole = a2lp(
        dir.path(),
        &format!("{LABEL} --rounds 8 --graph-method pruned --unknown off --no-quality --out whole.csv"),
    );
    assert!(whole.status.success());
    assert_eq!(joined(&dir.path().join("labels")), fs::read_to_string(dir.path().join("whole.csv")).unwrap());
}

#[test]
fn what_needs_all_rows_in_memory_is_refused_before_anything_is_read() {
    let dir = shards(600);
    for (options, says) in [
        ("--spill work --out labels --eval-labels truth.txt", "--eval-labels needs all rows in one memory"),
        ("--spill work --out labels --graph-method exact", "graph-method = exact"),
        ("--spill work --out labels --unknown flag", "unknown = flag"),
        ("--spill work --out labels --max-memory 2M", "needs at least"),
        ("--spill work --out src/part0.npz", "--out is a folder"),
        ("--cluster auto --out labels", "pip install 'a2lp[ray]'"),
    ] {
        let out = a2lp(dir.path(), &format!("{LABEL} {options}"));
        assert_eq!(out.status.code(), Some(2), "{options}: {}", stderr(&out));
        assert!(stderr(&out).contains(says), "{options}: {}", stderr(&out));
        assert!(!dir.path().join("labels").exists(), "{options}");
    }
    let consensus = LABEL.replace("--method a2lp", "--method consensus");
    let out = a2lp(dir.path(), &format!("{consensus} --spill work --out labels"));
    assert!(stderr(&out).contains("method = consensus"), "{}", stderr(&out));
    fs::create_dir(dir.path().join("empty")).unwrap();
    let out = a2lp(dir.path(), "label --source empty --target tgt --spill work --out labels");
    assert!(stderr(&out).contains("a folder without files of features"), "{}", stderr(&out));
}
