//! R3: NaN, infinities, subnormal, zero, duplicate and constant rows, at the edges and in the middle of both domains.

use crate::Effort;
use crate::commands::{Clusters, code, labels, run, told};
use crate::files;
use crate::tally::{Tally, expect};
use std::path::Path;

const SOURCE: usize = 24;
const TARGET: usize = 30;
const COLUMNS: usize = 6;

pub(crate) fn check(effort: Effort) -> Tally {
    let mut tally = Tally::default();
    let folder = files::scratch();
    let places = |rows: usize| [0, rows / 2, rows - 1];
    let methods: &[&str] = effort.of(&["a2lp"], &["lp", "a2lp", "consensus"]);
    for in_source in [true, false] {
        let rows = if in_source { SOURCE } else { TARGET };
        for row in places(rows) {
            for column in places(COLUMNS) {
                for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                    let mut data = Clusters::new(SOURCE, TARGET, COLUMNS, 3, 1);
                    let values = if in_source { &mut data.source } else { &mut data.target };
                    values[row * COLUMNS + column] = bad;
                    data.write(folder.path());
                    let file = if in_source { "src.npz" } else { "tgt.npy" };
                    let name = format!("{bad} in row {row}, column {column} of {file}");
                    tally.case(format!("{name}, refused"), refused(folder.path(), file, row, column));
                    let skipped = |method| skipped(folder.path(), method, file, row, in_source);
                    for method in methods {
                        tally.case(format!("{name}, left out by {method}"), skipped(method));
                    }
                }
            }
            for (kind, made) in odd_rows() {
                for method in methods {
                    let similarities: &[&str] = match *method {
                        // It has graphs of its own.
                        "consensus" => &["cosine"],
                        _ => effort.of(&["cosine"], &["cosine", "gaussian", "dot3"]),
                    };
                    for similarity in similarities {
                        let mut data = Clusters::new(SOURCE, TARGET, COLUMNS, 3, 1);
                        let values = if in_source { &mut data.source } else { &mut data.target };
                        let first: Vec<f32> = values[..COLUMNS].to_vec();
                        values[row * COLUMNS..][..COLUMNS].copy_from_slice(&made(&first));
                        if *similarity == "dot3" {
                            // It knows no negative numbers.
                            data.source
                                .iter_mut()
                                .chain(&mut data.target)
                                .for_each(|value| *value = value.abs());
                        }
                        data.write(folder.path());
                        let words = format!("--method {method} --similarity {similarity}");
                        let wrong = if kind == "huge" && *similarity == "dot3" {
                            overflows(folder.path(), &words)
                        } else {
                            sound(folder.path(), &words, TARGET)
                        };
                        tally.case(format!("a {kind} row {row} (source: {in_source}), {words}"), wrong);
                    }
                }
            }
        }
    }
    tally
}

type Made = fn(&[f32]) -> Vec<f32>;

/// Rows that are odd and valid, made of the first row.
fn odd_rows() -> [(&'static str, Made); 5] {
    [
        ("zero", |row| vec![0.0; row.len()]),
        ("subnormal", |row| row.iter().map(|value| value.signum() * 1e-42).collect()),
        ("huge", |row| row.iter().map(|value| value * 1e18).collect()),
        ("duplicate", <[f32]>::to_vec),
        ("constant", |row| vec![0.25; row.len()]),
    ]
}

const LABEL: &str =
    "label --source src.npz --target tgt.npy --neighbours 5 --rounds 3 --force --probabilities --out";

fn refused(folder: &Path, file: &str, row: usize, column: usize) -> Result<(), String> {
    std::fs::remove_file(folder.join("no.csv")).ok();
    let output = run(folder, &format!("{LABEL} no.csv"));
    expect(code(&output) == 2, || format!("exit code {}", code(&output)))?;
    let wanted = format!("{file}: row {row}, column {column} is ");
    expect(told(&output).contains(&wanted), || told(&output))?;
    expect(told(&output).contains("--skip-invalid"), || told(&output))?;
    expect(!folder.join("no.csv").exists(), || "an output was written".into())
}

fn skipped(folder: &Path, method: &str, file: &str, row: usize, in_source: bool) -> Result<(), String> {
    let rows = if in_source { TARGET } else { TARGET - 1 };
    sound(folder, &format!("--method {method} --skip-invalid"), rows)?;
    let output = run(folder, &format!("{LABEL} x.csv --method {method} --skip-invalid"));
    let wanted = format!("{file}: 1 of {} rows", if in_source { SOURCE } else { TARGET });
    expect(told(&output).contains(&wanted) && told(&output).contains(&format!("left out: {row}\n")), || {
        told(&output)
    })?;
    let numbers: Vec<String> = labels(&folder.join("x.csv")).iter().map(|line| line[0].clone()).collect();
    let kept = in_source || !numbers.contains(&row.to_string());
    expect(kept, || format!("row {row} is in the output"))
}

/// Third powers of huge numbers are no numbers, and that is said.
fn overflows(folder: &Path, words: &str) -> Result<(), String> {
    let output = run(folder, &format!("{LABEL} x.csv {words}"));
    expect(code(&output) == 2 && told(&output).contains("overflow; scale the features down"), || {
        told(&output)
    })
}

/// A run ends well, and its output holds probabilities.
fn sound(folder: &Path, words: &str, rows: usize) -> Result<(), String> {
    let output = run(folder, &format!("{LABEL} x.csv {words}"));
    expect(matches!(code(&output), 0 | 1), || format!("exit code {}: {}", code(&output), told(&output)))?;
    let lines = labels(&folder.join("x.csv"));
    expect(lines.len() == rows, || format!("{} rows of {rows}", lines.len()))?;
    for line in lines {
        let numbers: Vec<f64> = line[2..]
            .iter()
            .filter(|field| field.parse::<f64>().is_ok())
            .map(|f| f.parse().unwrap_or(0.0))
            .collect();
        expect(numbers.iter().all(|number| number.is_finite()), || format!("{line:?}"))?;
        // The probabilities of the three classes come last.
        let sum: f64 = line[line.len() - 3..].iter().filter_map(|field| field.parse::<f64>().ok()).sum();
        let none = line[1].is_empty();
        expect(none || (sum - 1.0).abs() < 1e-6, || format!("probabilities add up to {sum}: {line:?}"))?;
    }
    let record = std::fs::read_to_string(folder.join("x.csv.run.json")).unwrap_or_default();
    expect(!record.contains("NaN") && !record.contains("null,\n      null"), || "NaN in the record".into())
}
