//! R6: the memory plan, beside what the process held; and a run that would need too much is refused before it takes it.

use crate::Effort;
use crate::commands::{Clusters, code, run, told};
use crate::tally::{Tally, expect};
use std::path::Path;

/// How far the plan may be off; twice as far in a quick run, which many things run beside.
const TOLERANCE: f64 = 0.15;

pub(crate) fn check(effort: Effort) -> Tally {
    let mut tally = Tally::default();
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    // What small processes hold depends on the scheduling of their threads, and small sizes need no plan.
    let sizes: &[(usize, usize)] =
        effort.of(&[(16_000, 512)], &[(20_000, 256), (16_000, 1024), (60_000, 128), (40_000, 512)]);
    let close = |ratio: f64| {
        let off = effort.of(2.0, 1.0) * TOLERANCE;
        expect((1.0 - off..=1.0 + off).contains(&ratio), || {
            format!("the plan is {ratio:.2} times what was held")
        })
    };
    let mut ratios = Vec::new();
    for &(rows, columns) in sizes {
        Clusters::new(rows / 2, rows / 2, columns, 10, 3).write(folder.path());
        let kinds: &[&str] = effort.of(
            &["--method a2lp", "--method a2lp --no-quality"],
            &[
                "",
                "--method lp",
                "--method a2lp",
                "--method a2lp --unknown off",
                "--method a2lp --no-quality",
                "--method a2lp --neighbours 100",
                "--method a2lp --guard",
                "--method consensus --views 2",
                "--method consensus",
                "--method consensus --unknown off",
                "--method a2lp --graph-method screened",
                "--method a2lp --graph-method screened --no-quality",
                "--method a2lp --graph-method screened --unknown off",
                "--method a2lp --graph-method pruned",
                "--method a2lp --graph-method nndescent",
                "--method a2lp --threads 1",
            ],
        );
        for words in kinds {
            let tried = planned(folder.path(), words);
            if let Ok(ratio) = tried {
                ratios.push(ratio);
            }
            let wrong = tried.and_then(close);
            tally.case(format!("{rows} × {columns}, {words}"), wrong);
        }
        for ending in ["parquet", "feather", "h5", "csv"] {
            let wrong = from_format(folder.path(), ending);
            if let Ok(ratio) = wrong {
                ratios.push(ratio);
            }
            tally.case(format!("{rows} × {columns}, .{ending}"), wrong.and_then(close));
        }
        tally.case(format!("{rows} × {columns}, --max-memory"), refused(folder.path()));
    }
    let (low, high) =
        ratios.iter().fold((f64::MAX, 0f64), |(low, high), &ratio| (low.min(ratio), high.max(ratio)));
    tally.note(format!("the plan was {low:.2} to {high:.2} times what was held"));
    tally
}

/// Plan and memory of a run on files of another format.
fn from_format(folder: &Path, ending: &str) -> Result<f64, String> {
    for (from, to) in [("src.npz", "src"), ("tgt.npy", "tgt")] {
        let output = run(folder, &format!("convert {from} --force --out {to}.{ending}"));
        expect(code(&output) == 0, || told(&output))?;
    }
    measured(folder, &format!("--source src.{ending} --target tgt.{ending}"))
}

fn planned(folder: &Path, words: &str) -> Result<f64, String> {
    measured(folder, &format!("--source src.npz --target tgt.npy {words}"))
}

fn measured(folder: &Path, words: &str) -> Result<f64, String> {
    let output = run(folder, &format!("label --out x.csv --force {words}"));
    expect(matches!(code(&output), 0 | 1), || told(&output))?;
    let record = std::fs::read_to_string(folder.join("x.csv.run.json")).map_err(|error| error.to_string())?;
    let record: serde_json::Value = serde_json::from_str(&record).map_err(|error| error.to_string())?;
    let bytes = |name: &str| record["memory"][name].as_f64().ok_or(format!("no {name}"));
    Ok(bytes("planned_bytes")? / bytes("peak_bytes")?)
}

/// Refused, and without having taken the memory: 8 GB of features that would take seconds to read.
fn refused(folder: &Path) -> Result<(), String> {
    std::fs::remove_file(folder.join("y.csv")).ok();
    // A million rows that are a hole in the file: nothing on disk, 4 GB in memory.
    let path = folder.join("hole.npy");
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1024), }\n";
    let head = [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes()].concat();
    std::fs::write(&path, &head).map_err(|error| error.to_string())?;
    let file = std::fs::File::options().write(true).open(&path).map_err(|error| error.to_string())?;
    file.set_len(head.len() as u64 + 4 * 1024 * 1_000_000).map_err(|error| error.to_string())?;
    std::fs::write(folder.join("two.txt"), "a\nb\n".repeat(500_000)).map_err(|error| error.to_string())?;
    let started = std::time::Instant::now();
    let words =
        "label --source hole.npy --source-labels two.txt --target hole.npy --out y.csv --max-memory 2M";
    let output = run(folder, words);
    let secs = started.elapsed().as_secs_f64();
    std::fs::remove_file(&path).ok();
    expect(secs < 2.0, || format!("took {secs:.1} s, as if the features had been read"))?;
    expect(code(&output) == 2, || format!("exit code {}", code(&output)))?;
    expect(told(&output).contains("--max-memory allows 2 MiB"), || told(&output))?;
    expect(!folder.join("y.csv").exists(), || "an output was written".into())
}
