//! R8: writes that fail. What was there stays whole, or what is new is whole.

use crate::Effort;
use crate::commands::{Clusters, binary, code, run, told};
use crate::tally::{Tally, expect};
use std::path::Path;
use std::process::{Command, Output};

const OLD: &[u8] = b"what was there before\n";

pub(crate) fn check(effort: Effort) -> Tally {
    let mut tally = Tally::default();
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let folder = folder.path();
    Clusters::new(300, 400, 16, 4, 4).write(folder);
    let label =
        "label --source src.npz --target tgt.npy --neighbours 8 --threads 1 --probabilities --force --out";
    let mut writes: Vec<(String, &str)> = Vec::new();
    for name in ["x.csv", "x.jsonl", "x.npz", "x.parquet", "x.arrow", "x.json"] {
        writes.push((format!("{label} {name}"), name));
    }
    for name in ["y.npy", "y.npz", "y.safetensors", "y.csv", "y.parquet", "y.feather", "y.h5", "y.mat"] {
        writes.push((format!("convert tgt.npy --force --out {name}"), name));
    }
    writes.push(("graph --features tgt.npy --force --out g.npz".into(), "g.npz"));
    for (words, name) in &writes {
        let good = run(folder, words);
        let path = folder.join(name);
        let new = std::fs::read(&path).unwrap_or_default();
        tally.case(words, expect(code(&good) < 2 && !new.is_empty(), || told(&good)));
        let blocks = new.len() / 1024 + 1;
        let steps = effort.of(3, 12).min(blocks);
        for step in 0..steps {
            // The system limits the size of files and fails every write beyond it.
            let limit = blocks * step / steps;
            put(&path, OLD);
            let output = limited(folder, words, limit);
            let wrong = whole(&path, &new).and_then(|()| {
                let failed = std::fs::read(&path).is_ok_and(|now| now == OLD);
                expect(!failed || code(&output) == 2, || {
                    format!("exit code {} and the old file", code(&output))
                })
            });
            tally.case(
                format!("{words}, writes fail after {limit} KiB"),
                wrong.and_then(|()| no_parts(folder)),
            );
        }
        // A folder that cannot be written to.
        let elsewhere = words.replace(name, &format!("/proc/{name}"));
        let output = run(folder, &elsewhere);
        tally.case(
            &elsewhere,
            expect(code(&output) == 2 && told(&output).contains("/proc"), || told(&output)),
        );
        // Not over an existing file unless asked.
        put(&path, OLD);
        let output = run(folder, &words.replace(" --force", ""));
        let kept = expect(code(&output) == 2, || format!("exit code {}", code(&output)))
            .and_then(|()| expect(std::fs::read(&path).is_ok_and(|now| now == OLD), || "replaced".into()));
        tally.case(format!("{words}, not asked to replace"), kept);
    }
    full_disk(folder, &writes, &mut tally);
    tally
}

fn put(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn whole(path: &Path, new: &[u8]) -> Result<(), String> {
    let now = std::fs::read(path).map_err(|error| error.to_string())?;
    expect(now == OLD || now == new, || {
        format!("{} bytes that are neither the old nor the new file", now.len())
    })
}

fn no_parts(folder: &Path) -> Result<(), String> {
    let mut names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let part = names.find(|name| name.to_string_lossy().ends_with(".part"));
    part.map_or(Ok(()), |name| Err(format!("{} was left behind", name.to_string_lossy())))
}

/// Runs a command whose files cannot grow beyond a number of KiB.
fn limited(folder: &Path, words: &str, kib: usize) -> Output {
    let script = format!("trap '' XFSZ; ulimit -f {kib}; exec \"$0\" {words}");
    Command::new("bash")
        .current_dir(folder)
        .args(["-c", &script])
        .arg(binary())
        .output()
        .unwrap_or_else(|error| panic!("bash: {error}"))
}

/// A disk of its own that is too small; only the superuser can make one.
fn full_disk(folder: &Path, writes: &[(String, &str)], tally: &mut Tally) {
    let disk = folder.join("disk");
    std::fs::create_dir_all(&disk).ok();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"])
        .arg(&disk)
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        tally.note("full disk not tried: only the superuser can mount one");
        return;
    }
    for (words, name) in writes {
        run(folder, words);
        let (path, new) = (disk.join(name), std::fs::read(folder.join(name)).unwrap_or_default());
        put(&path, OLD);
        let output = run(folder, &words.replace(name, &format!("disk/{name}")));
        let wrong = whole(&path, &new)
            .and_then(|()| expect(code(&output) < 2 || told(&output).contains("disk/"), || told(&output)))
            .and_then(|()| no_parts(&disk));
        tally.case(format!("{words}, on a full disk"), wrong);
        for entry in std::fs::read_dir(&disk).into_iter().flatten().flatten() {
            std::fs::remove_file(entry.path()).ok();
        }
    }
    Command::new("umount").arg(&disk).status().ok();
}
