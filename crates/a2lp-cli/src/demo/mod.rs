//! `a2lp demo`: the method on two domains made in code.

mod picture;

use crate::Outcome;
use crate::args::{Cli, Command, DemoArgs, ReportOptions};
use crate::label;
use crate::progress::ProgressBars;
use crate::report::Drawings;
use crate::table::{percent, render};
use a2lp::evaluation::{Evaluator, RoundScore, TargetTruth};
use a2lp::{Domains, Labelling, Labels, Parameters, Run, Unknown, baselines};
use a2lp_data::LabelTable;
use a2lp_data::demo::{self, DemoDomain, SIDE};
use a2lp_data::{ArrayFile, write_atomically};
use anyhow::{Context, bail};
use clap::Parser;
use std::io::Write;
use std::path::Path;

/// Accuracies of one seed.
struct Result {
    nearest_neighbour: f64,
    nearest_centre: f64,
    rounds: Vec<RoundScore>,
    /// By the method that `label` takes by default.
    recommended: Labelling,
    consensus: f64,
}

impl Result {
    fn lp(&self) -> f64 {
        self.rounds.first().map_or(0.0, |round| round.accuracy)
    }

    fn a2lp(&self) -> f64 {
        self.rounds.last().map_or(0.0, |round| round.accuracy)
    }
}

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<Outcome> {
    if args.drawing.report.as_ref().is_some_and(Option::is_some) || args.drawing.more.figures.is_some() {
        Drawings::new(&args.drawing, Path::new(""), args.force)?.check()?;
    }
    let mut out = std::io::stdout().lock();
    let per_class = args.per_class as usize;
    writeln!(
        out,
        "source: {0} clean drawings of digits with labels; target: {0} slanted, thick, noisy, inverted ones without\n",
        10 * per_class
    )?;
    let seeds: Vec<u64> = (args.seed..=args.seed.saturating_add(args.more_seeds)).collect();
    let mut results = Vec::new();
    for &seed in &seeds {
        let (source, target) = (demo::source(seed, per_class), demo::target(seed, per_class));
        results.push(measure(&source, &target, args.threads)?);
    }

    type Accuracy = fn(&Result) -> f64;
    let columns: [(&str, Accuracy); 5] = [
        ("nearest neighbour", |r| r.nearest_neighbour),
        ("nearest centre", |r| r.nearest_centre),
        ("label propagation", Result::lp),
        ("A²LP", Result::a2lp),
        ("consensus", |r| r.consensus),
    ];
    let mut header = vec!["correct %"];
    header.extend(columns.iter().map(|(name, _)| *name));
    let mut rows: Vec<Vec<String>> = seeds
        .iter()
        .zip(&results)
        .map(|(seed, result)| {
            std::iter::once(format!("seed {seed}"))
                .chain(columns.iter().map(|(_, of)| percent(of(result))))
                .collect()
        })
        .collect();
    if results.len() > 1 {
        let mean = |of: Accuracy| results.iter().map(of).sum::<f64>() / results.len() as f64;
        rows.push(
            std::iter::once("mean".to_string())
                .chain(columns.iter().map(|(_, of)| percent(mean(*of))))
                .collect(),
        );
    }
    writeln!(out, "{}", render(&header, &rows))?;
    let first = &results[0];
    writeln!(out, "{}", curve(args.seed, &first.rounds))?;

    let (source, target) = (demo::source(args.seed, per_class), demo::target(args.seed, per_class));
    save(args, &source, &target, first)?;
    let drawn = label_saved(args)?;
    let dir = args.out.display();
    let look = match drawn.is_empty() {
        true => format!(
            "look at it: a2lp report {dir} --out report.html\ncorrect and check it: a2lp review {dir}/labels.csv\n\n"
        ),
        false => format!("{drawn}\n"),
    };
    writeln!(
        out,
        "files in {dir}: source.npz, target.npz (features, images, ids), truth.txt, labels.csv, demo.svg\n{look}\
         label the same target yourself:\n  \
         a2lp label --source {dir}/source.npz --target {dir}/target.npz --eval-labels {dir}/truth.txt --out my-labels.csv"
    )?;
    Ok(Outcome::Done)
}

/// Runs `a2lp label` on the saved files, which leaves a run record, a trace, and the pictures asked for; tells where
/// those are.
fn label_saved(args: &DemoArgs) -> anyhow::Result<String> {
    let file = |name: &str| args.out.join(name).into_os_string();
    let words = ["a2lp".into(), "label".into(), "--source".into(), file("source.npz"), "--target".into()]
        .into_iter()
        .chain([
            file("target.npz"),
            "--eval-labels".into(),
            file("truth.txt"),
            "--out".into(),
            file("labels.csv"),
        ]);
    let words: Vec<std::ffi::OsString> = words.collect();
    let command = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let Command::Label(mut again) = Cli::parse_from(words).command else { return Ok(String::new()) };
    again.force = true;
    again.parameters.give("threads", args.threads);
    let page = args.drawing.report.as_ref().map(|page| page.clone().or(Some(args.out.join("report.html"))));
    again.drawing = ReportOptions { report: page, more: args.drawing.more.clone() };
    Ok(label::label_files(&again, command)?.drawn)
}

fn measure(source: &DemoDomain, target: &DemoDomain, threads: usize) -> anyhow::Result<Result> {
    let domains =
        Domains::new(source.features.clone(), Labels::new(&source.labels), target.features.clone())?;
    let truth = TargetTruth::new(domains.source_labels().classes(), &target.labels);
    let nearest_neighbour = truth.score(&baselines::nearest_neighbour(&domains))?.accuracy;
    let nearest_centre = truth.score(&baselines::nearest_centre(&domains))?.accuracy;
    let parameters = Parameters::new().threads(threads).check()?;
    let recommended = Run::new(domains.clone(), &parameters).observe(&ProgressBars::default()).label()?;
    let consensus = truth.score(recommended.pseudo_labels.labels())?.accuracy;
    let evaluator = Evaluator::new(truth);
    let parameters = Parameters::paper().unknown(Unknown::Off).threads(threads).check()?;
    drop(Run::new(domains, &parameters).observe(&(ProgressBars::default(), &evaluator)).label()?);
    Ok(Result { nearest_neighbour, nearest_centre, rounds: evaluator.rounds(), recommended, consensus })
}

/// The rounds as bars of text.
fn curve(seed: u64, rounds: &[RoundScore]) -> String {
    let mut text = format!("round by round, seed {seed} (round 1 is plain label propagation):\n");
    for round in rounds {
        let length = (40.0 * round.accuracy).round() as usize;
        let bar: String = (0..40).map(|at| if at < length { '█' } else { '·' }).collect();
        text += &format!("  {:>2}  {bar}  {} %\n", round.round, percent(round.accuracy));
    }
    text
}

fn save(args: &DemoArgs, source: &DemoDomain, target: &DemoDomain, result: &Result) -> anyhow::Result<()> {
    std::fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    // Files are made beside the folder's own and compared: a demo that ran before is not in the way.
    let scratch = args.out.join(".new");
    std::fs::create_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
    let written = write_files(&scratch, source, target, result).and_then(|()| adopt(args, &scratch));
    std::fs::remove_dir_all(&scratch).ok();
    written
}

fn write_files(dir: &Path, source: &DemoDomain, target: &DemoDomain, result: &Result) -> anyhow::Result<()> {
    fn arrays(domain: &DemoDomain) -> ArrayFile<'_> {
        let f = &domain.features;
        let file = ArrayFile::new().matrix("features", f.rows(), f.columns(), f.values());
        file.images("images", f.rows(), SIDE, &domain.images)
    }
    arrays(source).strings("labels", &source.labels).write(&dir.join("source.npz"), true)?;
    let ids: Vec<String> = (0..target.labels.len()).map(|at| format!("drawing-{at:05}")).collect();
    arrays(target).strings("ids", &ids).write(&dir.join("target.npz"), true)?;
    write_atomically(&dir.join("truth.txt"), true, |file| writeln!(file, "{}", target.labels.join("\n")))?;
    let table = LabelTable { ids: Some(&ids), ..LabelTable::of(&result.recommended) };
    table.write(&dir.join("labels.csv"), true)?;
    let picture = picture::draw(source, target, result.nearest_neighbour, &result.rounds)?;
    write_atomically(&dir.join("demo.svg"), true, |file| file.write_all(picture.as_bytes()))?;
    Ok(())
}

/// Moves new files into place unless that would replace different ones unasked.
fn adopt(args: &DemoArgs, scratch: &Path) -> anyhow::Result<()> {
    let mut moves = Vec::new();
    for entry in std::fs::read_dir(scratch)? {
        let new = entry?.path();
        let old = args.out.join(new.file_name().unwrap_or_default());
        if old.exists() && !args.force && std::fs::read(&old)? != std::fs::read(&new)? {
            bail!(
                "{} is from a different demo; pass --force to replace it or --out for another folder",
                old.display()
            );
        }
        moves.push((new, old));
    }
    for (new, old) in moves {
        std::fs::rename(new, old)?;
    }
    Ok(())
}
