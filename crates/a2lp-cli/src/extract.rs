//! `a2lp extract`: a folder of images in, a file of features out.

use crate::Outcome;
use crate::args::ExtractArgs;
use crate::output::{record_path, refuse_existing, write_json};
use crate::progress::counting_bar;
use a2lp_data::ArrayFile;
use a2lp_data::images::{ImageSet, Transform, compare_classes};
use a2lp_train::{Backbone, Extraction, OnnxEngine, OnnxRunner};
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// One set of images and the file its features go to.
struct Job {
    images: ImageSet,
    out: PathBuf,
}

pub(crate) fn run(args: &ExtractArgs) -> anyhow::Result<Outcome> {
    let jobs = jobs(args)?;
    if args.threads > 0 {
        // Fails only when a pool is there already, and there is none yet.
        rayon::ThreadPoolBuilder::new().num_threads(args.threads).build_global().ok();
    }
    let (backbone, usual) = open_backbone(args)?;
    let name = args.transform.as_deref().unwrap_or(usual);
    let Some(transform) = Transform::named(name) else {
        bail!("--transform {name}: one of {}", Transform::NAMES.join(", "));
    };
    let mut outcome = Outcome::Done;
    for job in &jobs {
        if let Outcome::LookAtIt = extract(args, job, &backbone, &transform)? {
            outcome = Outcome::LookAtIt;
        }
    }
    Ok(outcome)
}

/// The images to extract from; notes classes that not all domains have.
fn jobs(args: &ExtractArgs) -> anyhow::Result<Vec<Job>> {
    if args.domain.len() < 2 {
        let known =
            |ending: &std::ffi::OsStr| ["npz", "npy", "safetensors"].iter().any(|known| ending == *known);
        if !args.out.extension().is_some_and(known) {
            bail!("{}: features go into an .npz, .npy or .safetensors file", args.out.display());
        }
        let images = match args.domain.first() {
            Some(domain) => ImageSet::open_domain(&args.images, domain)?,
            None => ImageSet::open(&args.images)?,
        };
        return Ok(vec![Job { images, out: args.out.clone() }]);
    }
    let open = |domain: &String| -> anyhow::Result<Job> {
        let images = ImageSet::open_domain(&args.images, domain)?;
        Ok(Job { images, out: args.out.join(format!("{domain}.npz")) })
    };
    let jobs: Vec<Job> = args.domain.iter().map(open).collect::<anyhow::Result<_>>()?;
    std::fs::create_dir_all(&args.out)
        .with_context(|| format!("cannot make the folder {}", args.out.display()))?;
    for (domain, job) in args.domain.iter().zip(&jobs).skip(1) {
        let labels = [args.domain[0].as_str(), domain.as_str()];
        if let Some(difference) = compare_classes(&jobs[0].images, &job.images, labels) {
            eprintln!("warning: {difference}");
        }
    }
    Ok(jobs)
}

fn extract(
    args: &ExtractArgs,
    job: &Job,
    backbone: &Backbone,
    transform: &Transform,
) -> anyhow::Result<Outcome> {
    let Job { images, out } = job;
    tell_counts(images)?;
    let extraction = Extraction {
        images,
        transform,
        backbone,
        upright: args.upright,
        skip_broken: args.skip_broken,
        batch: args.batch as usize,
    };
    let fingerprint = extraction.fingerprint()?;
    if !args.force && up_to_date(out, &fingerprint)? {
        let text = format!("{} is up to date: same weights, transform and images\n", out.display());
        std::io::stdout().write_all(text.as_bytes())?;
        return Ok(Outcome::Done);
    }

    let started = Instant::now();
    let parts = parts_path(out);
    let bar = counting_bar("extracting [{bar:32}] {pos} of {len} images  {per_sec}  {eta} left");
    let extracted = extraction.run(&parts, &fingerprint, &|done, total| {
        bar(done, total);
        if crate::interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let extracted = match extracted {
        Err(a2lp_train::TrainError::Cancelled) => bail!(
            "interrupted; finished batches are kept in {}, the same command goes on from there",
            parts.display()
        ),
        other => other?,
    };
    if extracted.rows.is_empty() {
        bail!("{}: none of the images could be read", args.images.display());
    }
    let secs = started.elapsed().as_secs_f64();
    write(args, job, &extracted, &extraction, &fingerprint, secs)?;
    std::fs::remove_file(&parts).ok();

    for (path, why) in extracted.broken.iter().take(10) {
        eprintln!("warning: left out {}: {why}", path.display());
    }
    if extracted.broken.len() > 10 {
        eprintln!(
            "warning: and {} more; all are listed in {}",
            extracted.broken.len() - 10,
            record_path(out).display()
        );
    }
    let made = extracted.rows.len() - extracted.resumed.min(extracted.rows.len());
    let text = format!(
        "{} × {} features in {} ({:.1} images/s{})\n",
        extracted.rows.len(),
        extracted.columns,
        out.display(),
        made as f64 / secs.max(1e-9),
        if extracted.resumed > 0 {
            format!(", {} were there already", extracted.resumed)
        } else {
            String::new()
        }
    );
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(if extracted.broken.is_empty() { Outcome::Done } else { Outcome::LookAtIt })
}

fn open_backbone(args: &ExtractArgs) -> anyhow::Result<(Backbone, &'static str)> {
    let (Some(name), Some(weights)) = (args.backbone, &args.weights) else {
        let path = args.onnx.as_deref().context("--backbone with --weights, or --onnx, is needed")?;
        let engine = args.onnx_runtime.as_deref().map_or(OnnxEngine::Found, OnnxEngine::Library);
        let backbone = Backbone::open_onnx(path, engine)?;
        match backbone.onnx_runner() {
            Some(OnnxRunner::Rten) => eprintln!(
                "note: rten runs the model. ONNX Runtime takes about half the time: pip install onnxruntime, or name its library with --onnx-runtime"
            ),
            Some(runner @ OnnxRunner::Runtime { library, .. }) => {
                eprintln!("note: {runner} runs the model ({})", library.display());
            }
            None => {}
        }
        return Ok((backbone, "ours"));
    };
    let (opened, loaded) = Backbone::open(name, weights)?;
    if !loaded.unused.is_empty() {
        let some: Vec<&str> = loaded.unused.iter().take(5).map(String::as_str).collect();
        eprintln!(
            "note: {} tensors of {} have no place in {}: {}{}",
            loaded.unused.len(),
            weights.display(),
            name.as_str(),
            some.join(", "),
            if loaded.unused.len() > 5 { ", …" } else { "" }
        );
    }
    Ok((opened, name.usual_transform()))
}

fn tell_counts(images: &ImageSet) -> anyhow::Result<()> {
    let mut text = format!("{} images", images.images.len());
    if images.classes.is_empty() {
        text += " without classes\n";
    } else {
        let counts: Vec<String> =
            images.counts().iter().map(|(class, count)| format!("{class} {count}")).collect();
        text += &format!(" of {} classes: {}\n", images.classes.len(), counts.join(", "));
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Is the output there already, made of the same weights, transform and images?
fn up_to_date(out: &Path, fingerprint: &str) -> anyhow::Result<bool> {
    if !out.exists() {
        return Ok(false);
    }
    let record = std::fs::read_to_string(record_path(out)).ok();
    let record: Option<Value> = record.and_then(|text| serde_json::from_str(&text).ok());
    match record.as_ref().and_then(|record| record["fingerprint"].as_str()) {
        Some(earlier) if earlier == fingerprint => Ok(true),
        Some(_) => bail!(
            "{} was made of other weights or images, with another transform or another ONNX runtime; pass --force to replace it",
            out.display()
        ),
        None => Ok(refuse_existing(out, false).map(|()| false)?),
    }
}

fn parts_path(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".parts");
    name.into()
}

fn write(
    args: &ExtractArgs,
    job: &Job,
    extracted: &a2lp_train::Extracted,
    extraction: &Extraction<'_>,
    fingerprint: &str,
    secs: f64,
) -> anyhow::Result<()> {
    let Job { images, out } = job;
    let path = |row: &usize| images.images[*row].path.to_string_lossy().into_owned();
    let ids: Vec<String> = extracted.rows.iter().map(path).collect();
    let class = |row: &usize| images.images[*row].class;
    let numbers: Vec<i64> =
        extracted.rows.iter().map(|row| class(row).map_or(-1, |class| class as i64)).collect();
    let named = |row: &usize| class(row).map_or("", |class| images.classes[class].as_str());
    let names: Vec<&str> = extracted.rows.iter().map(named).collect();
    let mut file = ArrayFile::new()
        .matrix("features", extracted.rows.len(), extracted.columns, &extracted.features)
        .strings("ids", &ids);
    if !images.classes.is_empty() {
        // A safetensors file has no tensors of words: there, labels are positions in the list of names.
        let is_safetensors = out.extension().is_some_and(|ending| ending == "safetensors");
        file =
            if is_safetensors { file.integers("labels", &numbers) } else { file.strings("labels", &names) };
        file = file.strings("class_names", &images.classes);
    }
    file.write(out, args.force)?;
    let broken: Vec<Value> =
        extracted.broken.iter().map(|(path, why)| json!({ "path": path, "why": why })).collect();
    let record = json!({
        "a2lp": env!("CARGO_PKG_VERSION"),
        "command": crate::command_line(),
        "fingerprint": fingerprint,
        "transform": extraction.transform.name(),
        "weights": args.weights.as_ref().or(args.onnx.as_ref()),
        "backbone": args.backbone,
        "onnx_runner": extraction.backbone.onnx_runner().map(OnnxRunner::to_string),
        "images": images.images.len(),
        "columns": extracted.columns,
        "broken": broken,
        "seconds": secs,
    });
    write_json(&record_path(out), true, &record)?;
    Ok(())
}
