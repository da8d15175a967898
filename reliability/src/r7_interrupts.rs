//! R7: Ctrl-C and sudden death at any moment, then the same command again: no half-written file, the same result.

use crate::Effort;
use crate::commands::{Clusters, command, told};
use crate::files;
use crate::mutate::Draws;
use crate::tally::{Tally, expect};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Something that takes a while.
struct Job {
    name: &'static str,
    /// Makes the command.
    start: Box<dyn Fn(&Path) -> Command>,
    /// Files that are whole or not there.
    outputs: &'static [&'static str],
    /// What an interrupted run may leave for the next, and a fresh one must not find.
    leftovers: &'static [&'static str],
}

pub(crate) fn check(effort: Effort) -> Tally {
    let mut tally = Tally::default();
    let folder = files::scratch();
    let folder = folder.path();
    let each = effort.of(1, 10);
    Clusters::new(3000, 3000, 256, 12, 9).write(folder);
    domains(&folder.join("set"));
    pictures(&folder.join("pictures"), effort.of(24, 400));
    let set_up = command(folder, "experiment init set").output();
    assert!(set_up.is_ok_and(|output| output.status.success()), "no manifest");
    let mut latencies = Vec::new();
    let mut draws = Draws(77);
    for job in jobs(effort) {
        if let Some(why) = job_is_impossible(&job) {
            tally.note(format!("{} not tried: {why}", job.name));
            continue;
        }
        clean(folder, &job);
        let started = Instant::now();
        let whole = (job.start)(folder).output().unwrap_or_else(|error| panic!("{}: {error}", job.name));
        let secs = started.elapsed().as_secs_f64();
        tally.case(
            format!("{} uninterrupted", job.name),
            expect(matches!(whole.status.code(), Some(0 | 1)), || told(&whole)),
        );
        let wanted = contents(folder, &job);
        for signal in ["INT", "KILL"] {
            for at in 0..each {
                clean(folder, &job);
                let moment = secs * (draws.below(1000) as f64 + 0.5) / 1000.0;
                let name = format!("{}, SIG{signal} number {at} after {moment:.2} s of {secs:.2}", job.name);
                let (tried, latency) = interrupted(folder, &job, signal, moment, &wanted);
                latencies.extend(latency);
                tally.case(name, tried);
            }
        }
    }
    latencies.sort_by(f64::total_cmp);
    if let Some(&p95) = latencies.get(latencies.len() * 95 / 100) {
        tally.case("95 of 100 return within a second", expect(p95 <= 1.0, || format!("{p95:.2} s")));
        let most = latencies.last().copied().unwrap_or(0.0);
        tally.note(format!(
            "{} returned after SIGINT within {p95:.2} s (p95), {most:.2} s at most",
            latencies.len()
        ));
    }
    tally
}

fn jobs(effort: Effort) -> Vec<Job> {
    let words = |words: &'static str| -> Box<dyn Fn(&Path) -> Command> {
        Box::new(move |folder| command(folder, words))
    };
    let network =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/a2lp-train/tests/reference/narrow.onnx");
    vec![
        Job {
            name: "label",
            start: words(
                "label --source src.npz --target tgt.npy --method consensus --force --out labels.csv",
            ),
            outputs: &["labels.csv"],
            leftovers: &["labels.csv.run.json", "labels.csv.trace.json"],
        },
        Job {
            name: "extract",
            start: Box::new(move |folder| {
                let mut command = command(folder, "extract --images pictures --batch 4 --out x.npz --onnx");
                command.arg(&network);
                command
            }),
            outputs: &["x.npz"],
            leftovers: &["x.npz.parts", "x.npz.run.json"],
        },
        Job {
            name: "experiment",
            start: words("experiment pairs set --out results --rounds 40"),
            outputs: &["results/results.csv"],
            leftovers: &["results"],
        },
        Job {
            name: "train",
            start: Box::new(move |folder| {
                let options =
                    "train --source set/a.npz --target set/b.npz --learner mstn --pseudo-labels a2lp";
                let mut command = command(folder, options);
                let steps = effort.of("10", "60");
                command.args(["--train-rounds", "4", "--threads", "1", "--out", "run", "--steps", steps]);
                command
            }),
            outputs: &["run/labels.csv", "run/model.safetensors"],
            leftovers: &["run"],
        },
        Job {
            name: "Python",
            start: Box::new(|folder| {
                let mut command = Command::new(python().unwrap_or_default());
                command.current_dir(folder).args(["-c", SCRIPT]);
                command
            }),
            outputs: &["labels.npy"],
            leftovers: &[],
        },
    ]
}

/// Labels by the Python package.
const SCRIPT: &str = "
import numpy as np, a2lp, os
source = np.load('src.npz')
found = a2lp.A2LP(method='consensus').fit(
    np.concatenate([source['features'], np.load('tgt.npy')]),
    np.concatenate([source['labels'], np.full(len(np.load('tgt.npy')), -1)]))
np.save('part.npy', found.transduction_)
os.replace('part.npy', 'labels.npy')
";

/// A Python that has the package: the one that `make test` installs it for, or the one that `A2LP_PYTHON` names.
fn python() -> Option<PathBuf> {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/python/venv/bin/python");
    let named = std::env::var_os("A2LP_PYTHON").map_or(usual, PathBuf::from);
    let known = Command::new(&named).args(["-c", "import a2lp"]).stderr(Stdio::null()).status();
    known.is_ok_and(|status| status.success()).then_some(named)
}

fn job_is_impossible(job: &Job) -> Option<&'static str> {
    (job.name == "Python" && python().is_none()).then_some("the package is not installed")
}

/// Interrupts a command, looks at what it left, and runs it again.
fn interrupted(
    folder: &Path,
    job: &Job,
    signal: &str,
    moment: f64,
    wanted: &[Option<Vec<u8>>],
) -> (Result<(), String>, Option<f64>) {
    let mut child = match (job.start)(folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
        Ok(child) => child,
        Err(error) => return (Err(error.to_string()), None),
    };
    std::thread::sleep(Duration::from_secs_f64(moment));
    let sent = Instant::now();
    let finished_before = matches!(child.try_wait(), Ok(Some(_)));
    kill(&child, signal);
    let ended = wait(&mut child);
    let latency = (signal == "INT" && !finished_before).then(|| sent.elapsed().as_secs_f64());
    let look = || {
        ended?;
        for (name, (found, wanted)) in job.outputs.iter().zip(contents(folder, job).iter().zip(wanted)) {
            expect(found.is_none() || found == wanted, || format!("{name} is there, but not whole"))?;
        }
        if signal == "INT" {
            expect(parts(folder).is_empty(), || format!("left behind: {:?}", parts(folder)))?;
        }
        let again = (job.start)(folder).output().map_err(|error| error.to_string())?;
        expect(matches!(again.status.code(), Some(0 | 1)), || told(&again))?;
        for (name, (found, wanted)) in job.outputs.iter().zip(contents(folder, job).iter().zip(wanted)) {
            expect(found == wanted, || format!("{name} is another after resuming"))?;
        }
        Ok(())
    };
    (look(), latency)
}

fn kill(child: &Child, signal: &str) {
    Command::new("kill")
        .args([format!("-{signal}"), child.id().to_string()])
        .stderr(Stdio::null())
        .status()
        .ok();
}

fn wait(child: &mut Child) -> Result<(), String> {
    for _ in 0..6000 {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().ok();
    Err("did not end within 30 s".into())
}

fn contents(folder: &Path, job: &Job) -> Vec<Option<Vec<u8>>> {
    job.outputs.iter().map(|name| std::fs::read(folder.join(name)).ok()).collect()
}

/// Temporary files that were not taken away.
fn parts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(parts(&path));
        } else if path.extension().is_some_and(|ending| ending == "part") {
            found.push(path);
        }
    }
    found
}

fn clean(folder: &Path, job: &Job) {
    for name in job.outputs.iter().chain(job.leftovers) {
        let path = folder.join(name);
        std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path)).ok();
    }
    parts(folder).iter().for_each(|path| std::fs::remove_file(path).unwrap_or_default());
}

/// Three small domains.
fn domains(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap_or_else(|error| panic!("{error}"));
    for (name, seed) in [("a", 1), ("b", 2), ("c", 3)] {
        let data = Clusters::new(600, 10, 64, 8, seed);
        a2lp_data::ArrayFile::new()
            .matrix("features", 600, 64, &data.source)
            .integers("labels", &data.labels)
            .write(&folder.join(format!("{name}.npz")), true)
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Pictures of two classes.
fn pictures(folder: &Path, count: usize) {
    for at in 0..count {
        let class = folder.join(if at % 2 == 0 { "even" } else { "odd" });
        std::fs::create_dir_all(&class).unwrap_or_else(|error| panic!("{error}"));
        let file =
            std::fs::File::create(class.join(format!("{at:04}.png"))).unwrap_or_else(|e| panic!("{e}"));
        let mut encoder = png::Encoder::new(file, 64, 48);
        encoder.set_color(png::ColorType::Rgb);
        let pixels: Vec<u8> = (0..64 * 48 * 3).map(|place| (place * (at + 3) % 251) as u8).collect();
        encoder
            .write_header()
            .and_then(|mut w| w.write_image_data(&pixels))
            .unwrap_or_else(|e| panic!("{e}"));
    }
}
