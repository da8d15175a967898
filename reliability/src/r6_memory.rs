//! R6: the memory plan, beside what the process held; and a run that would need too much is refused before it takes it.

use crate::Effort;
use crate::commands::{Clusters, code, run, told};
use crate::files;
use crate::tally::{Tally, expect};
use std::path::Path;

/// How far the plan may be off.
const TOLERANCE: f64 = 0.15;

pub(crate) fn check(effort: Effort) -> Tally {
    let mut tally = Tally::default();
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let sizes: &[(usize, usize)] =
        effort.of(&[(6_000, 512)], &[(6_000, 512), (20_000, 256), (16_000, 1024), (60_000, 128)]);
    let mut ratios = Vec::new();
    for &(rows, columns) in sizes {
        Clusters::new(rows / 2, rows / 2, columns, 10, 3).write(folder.path());
        let kinds: &[&str] = effort.of(
            &["--method a2lp", "--method a2lp --no-quality"],
            &[
                "--method lp",
                "--method a2lp",
                "--method a2lp --no-quality",
                "--method a2lp --neighbours 100",
                "--method a2lp --guard",
                "--method consensus --views 2",
                "--method consensus",
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
            let wrong = tried.and_then(|ratio| {
                expect((1.0 - TOLERANCE..=1.0 + TOLERANCE).contains(&ratio), || {
                    format!("the plan is {ratio:.2} times what was held")
                })
            });
            tally.case(format!("{rows} × {columns}, {words}"), wrong);
        }
        tally.case(format!("{rows} × {columns}, --max-memory"), refused(folder.path()));
    }
    let (low, high) =
        ratios.iter().fold((f64::MAX, 0f64), |(low, high), &ratio| (low.min(ratio), high.max(ratio)));
    tally.note(format!("the plan was {low:.2} to {high:.2} times what was held"));
    tally
}

fn planned(folder: &Path, words: &str) -> Result<f64, String> {
    let output = run(folder, &format!("label --source src.npz --target tgt.npy --out x.csv --force {words}"));
    expect(matches!(code(&output), 0 | 1), || told(&output))?;
    let record = std::fs::read_to_string(folder.join("x.csv.run.json")).map_err(|error| error.to_string())?;
    let record: serde_json::Value = serde_json::from_str(&record).map_err(|error| error.to_string())?;
    let bytes = |name: &str| record["memory"][name].as_f64().ok_or(format!("no {name}"));
    Ok(bytes("planned_bytes")? / bytes("peak_bytes")?)
}

/// Refused, and without having taken the memory: an address space of a tenth of the features is enough to say so.
fn refused(folder: &Path) -> Result<(), String> {
    std::fs::remove_file(folder.join("y.csv")).ok();
    let output = run(folder, "label --source src.npz --target tgt.npy --out y.csv --max-memory 2M");
    expect(code(&output) == 2, || format!("exit code {}", code(&output)))?;
    expect(told(&output).contains("--max-memory allows 2 MiB"), || told(&output))?;
    expect(!folder.join("y.csv").exists(), || "an output was written".into())
}
