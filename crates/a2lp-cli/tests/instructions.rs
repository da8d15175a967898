//! The same bytes whatever vector instructions the CPU has: the slower paths are forced on this machine.

use a2lp_data::ArrayFile;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Writes clouds of `classes` classes, the target's moved, as `src.npz` and `tgt.npz`.
fn write_domains(dir: &Path, rows: usize, columns: usize, classes: usize) {
    let mut state = 5u64;
    let mut number = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let means: Vec<f32> = (0..classes * columns).map(|_| number()).collect();
    for (name, shift) in [("src", 0.0), ("tgt", 0.3)] {
        let values: Vec<f32> = (0..rows * columns)
            .map(|at| {
                let class = at / columns % classes;
                means[class * columns + at % columns] + 0.9 * number() + shift
            })
            .collect();
        let labels: Vec<i64> = (0..rows).map(|row| (row % classes) as i64).collect();
        let mut file = ArrayFile::new().matrix("features", rows, columns, &values);
        if name == "src" {
            file = file.integers("labels", &labels);
        }
        file.write(&dir.join(format!("{name}.npz")), true).unwrap();
    }
}

/// The outputs of a command under each instruction set are equal.
fn same_everywhere(dir: &Path, what: &str, args: &str, out: &str) {
    let mut first: Option<Vec<u8>> = None;
    for level in ["avx512", "avx2", "portable"] {
        let output = Command::new(env!("CARGO_BIN_EXE_a2lp"))
            .current_dir(dir)
            .env("A2LP_CPU", level)
            .args(args.split_whitespace())
            .args(["--force", "--out", out])
            .output()
            .unwrap();
        assert!(output.status.success(), "{what}, {level}: {}", String::from_utf8_lossy(&output.stderr));
        let bytes = fs::read(dir.join(out)).unwrap();
        assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes, "{what}: {level} gives other bytes");
    }
}

#[test]
fn graphs_and_labels_are_the_same_on_every_cpu() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_domains(dir, 400, 150, 6);
    for method in ["exact", "screened", "pruned", "nndescent"] {
        let args =
            format!("graph --features src.npz --features tgt.npz --neighbours 10 --graph-method {method}");
        same_everywhere(dir, method, &args, "graph.npz");
    }
    for (what, options) in [
        ("A2LP", ""),
        ("gaussian", "--similarity gaussian --gauss-sigma2 50"),
        ("dense solver", "--solver dense"),
        ("consensus", "--method consensus --views 3"),
    ] {
        let args = format!("label --source src.npz --target tgt.npz --probabilities {options}");
        same_everywhere(dir, what, &args, "labels.csv");
    }
}
