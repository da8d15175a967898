//! `a2lp report`: finished runs as a page to look at, and its charts as files.

use crate::Outcome;
use crate::args::{DrawingOptions, MapArg, ReportArgs, ReportOptions};
#[cfg(not(feature = "networks"))]
use crate::features::NETWORKS;
use crate::features::{FIGURES, Lacking};
use crate::output::{check_folder, record_path, refuse_existing, trace_path};
use crate::progress::{ProgressBars, counting_bar};
use a2lp::FeatureMatrix;
#[cfg(feature = "networks")]
use a2lp_data::images::thumbnail;
use a2lp_data::{FeatureFile, FieldNames, read_pictures, write_atomically};
use a2lp_report::record::Inputs;
use a2lp_report::trace::Item;
use a2lp_report::{Chapter, Experiment, Run, RunRecord, Trace, figures, lay_out, page};
use anyhow::{Context, bail};
use base64::Engine;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Items of the list that get a thumbnail.
const THUMBNAILS: usize = 200;
/// Pixels a side of a thumbnail.
const THUMBNAIL_SIDE: usize = 64;

pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<Outcome> {
    let drawn = Drawings { page: Some(args.out.clone()), drawing: args.drawing.clone(), force: args.force };
    drawn.check()?;
    let mut chapters = args.runs.iter().map(|run| read_chapter(run)).collect::<anyhow::Result<Vec<_>>>()?;
    let told = drawn.draw(&mut chapters, args.threads)?;
    std::io::stdout().write_all(told.as_bytes())?;
    Ok(Outcome::Done)
}

/// The pictures asked for, and where they go.
pub(crate) struct Drawings {
    page: Option<PathBuf>,
    drawing: DrawingOptions,
    force: bool,
}

impl Drawings {
    /// What `--report` and its companions ask for; the page goes to `usual` unless a file is named.
    pub(crate) fn new(drawing: &ReportOptions, usual: &Path, force: bool) -> anyhow::Result<Self> {
        let page = drawing.report.as_ref().map(|file| file.clone().unwrap_or_else(|| usual.to_path_buf()));
        if page.is_none() && drawing.more.figures.is_none() && drawing.more.map.is_some() {
            bail!("--map is for the page and the figures; add --report or --figures DIR");
        }
        Ok(Drawings { page, drawing: drawing.more.clone(), force })
    }

    /// Refuses before any work when a file is in the way.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if let Some(page) = &self.page {
            refuse_existing(page, self.force)?;
            check_folder(page)?;
        }
        let figures = self.drawing.figures.as_deref();
        if let Some(folder) = figures.filter(|folder| !self.force && folder.exists())
            && !std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
        {
            bail!("{} is not an empty folder; pass --force to draw into it all the same", folder.display());
        }
        Ok(())
    }

    /// Draws all that was asked for and tells where it is.
    pub(crate) fn draw(&self, chapters: &mut [Chapter], threads: usize) -> anyhow::Result<String> {
        if self.page.is_none() && self.drawing.figures.is_none() {
            return Ok(String::new());
        }
        if self.drawing.map == Some(MapArg::Tsne) {
            for chapter in chapters.iter_mut() {
                if let Chapter::Run(run) = chapter {
                    by_tsne(run, threads)?;
                }
            }
        }
        let mut told = String::new();
        if let Some(file) = &self.page {
            let html = page(chapters);
            write_atomically(file, self.force, |out| out.write_all(html.as_bytes()))?;
            told += &format!("page in {} (open it in a browser)\n", file.display());
        }
        if let Some(folder) = &self.drawing.figures {
            let count = draw_figures(chapters, folder, self.force)?;
            let kinds = if FIGURES.is_built { "each as SVG and PNG" } else { "as SVG" };
            told += &format!("{count} figures in {}, {kinds}\n", folder.display());
            if !FIGURES.is_built {
                eprintln!("note: {}", Lacking { what: "PNG", feature: FIGURES });
            }
        }
        Ok(told)
    }
}

fn draw_figures(chapters: &[Chapter], folder: &Path, force: bool) -> anyhow::Result<usize> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mut count = 0;
    for (at, chapter) in chapters.iter().enumerate() {
        for figure in figures(chapter) {
            let name =
                if chapters.len() > 1 { format!("{}-{}", at + 1, figure.name) } else { figure.name.clone() };
            #[cfg(feature = "figures")]
            let png = figure.png()?;
            write_atomically(&folder.join(format!("{name}.svg")), force, |out| {
                out.write_all(figure.svg.as_bytes())
            })?;
            #[cfg(feature = "figures")]
            write_atomically(&folder.join(format!("{name}.png")), force, |out| out.write_all(&png))?;
            count += 1;
        }
    }
    Ok(count)
}

/// Reads what a run or an experiment left behind.
fn read_chapter(path: &Path) -> anyhow::Result<Chapter> {
    if path.is_dir() {
        let results = path.join("results.json");
        if results.exists() {
            return read_experiment(path, &results).map(Chapter::Experiment);
        }
        let labels = path.join("labels.csv");
        if record_path(&labels).exists() {
            return read_run(&labels).map(Chapter::Run);
        }
        bail!(
            "{}: neither an experiment (results.json) nor a demo (labels.csv.run.json) is in it",
            path.display()
        );
    }
    // The record or the trace may be named as well.
    let name = path.to_string_lossy();
    let labels = name.strip_suffix(".run.json").or(name.strip_suffix(".trace.json")).map_or(path, Path::new);
    read_run(labels).map(Chapter::Run)
}

/// The record of the run that made these labels.
pub(crate) fn read_record(labels: &Path) -> anyhow::Result<RunRecord> {
    let path = record_path(labels);
    if !path.exists() {
        bail!("{}: no such file; `a2lp label` writes it beside the labels", path.display());
    }
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text)
        .with_context(|| format!("{}: not a run record of this version", path.display()))
}

fn read_run(labels: &Path) -> anyhow::Result<Run> {
    let record = read_record(labels)?;
    let path = trace_path(labels);
    let trace = if path.exists() {
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let trace: Trace = serde_json::from_str(&text)
            .with_context(|| format!("{}: not a trace of this version", path.display()))?;
        trace.check().map_err(|wrong| anyhow::anyhow!("{}: damaged: {wrong}", path.display()))?;
        if trace.map.target_items != record.summary.items {
            bail!("{} and {} are from different runs", path.display(), record_path(labels).display());
        }
        Some(trace)
    } else {
        eprintln!("note: {} is missing, so the page has no map and no items", path.display());
        None
    };
    let title = title(labels, record.inputs.as_ref());
    Ok(Run { title, record, trace })
}

/// What to call a run: the files' names without their endings.
pub(crate) fn title(labels: &Path, inputs: Option<&Inputs>) -> String {
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = labels.file_name().unwrap_or_default().to_string_lossy();
    match inputs {
        Some(inputs) => format!("{name}: {} from {}", stem(&inputs.target.path), stem(&inputs.source.path)),
        None => name.into_owned(),
    }
}

fn read_experiment(folder: &Path, results: &Path) -> anyhow::Result<Experiment> {
    #[derive(serde::Deserialize)]
    struct Results {
        shown: Experiment,
    }
    let text = std::fs::read_to_string(results).with_context(|| results.display().to_string())?;
    let results: Results = serde_json::from_str(&text).with_context(|| {
        format!("{}: not the results of an experiment of this version", results.display())
    })?;
    with_pictures(results.shown, folder)
}

/// Adds the pictures that an experiment drew into its folder.
pub(crate) fn with_pictures(mut experiment: Experiment, folder: &Path) -> anyhow::Result<Experiment> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "png"))
        .collect();
    files.sort_unstable();
    for file in files {
        let bytes = std::fs::read(&file).with_context(|| file.display().to_string())?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        experiment.pictures.push((name, base64::engine::general_purpose::STANDARD.encode(bytes)));
    }
    Ok(experiment)
}

/// Lays the map of a run out by t-SNE, from the features it was made of.
fn by_tsne(run: &mut Run, threads: usize) -> anyhow::Result<()> {
    let (Some(trace), Some(inputs)) = (&mut run.trace, &run.record.inputs) else { return Ok(()) };
    let map = &mut trace.map;
    let mut values = Vec::new();
    let mut columns = 0;
    for (input, rows) in
        [(&inputs.source, &map.rows[..map.source_points]), (&inputs.target, &map.rows[map.source_points..])]
    {
        if input.path == Path::new("-") {
            bail!("the features came from standard input and are gone; t-SNE needs the features of the run");
        }
        let names = FieldNames { features: input.feature_column.clone(), ..FieldNames::default() };
        let file =
            FeatureFile::open_set(&input.paths(), &names).context("t-SNE needs the features of the run")?;
        if (file.rows(), file.columns()) != (input.rows, input.columns) {
            bail!(
                "{} has {} × {} values now, {} × {} when the run was made; t-SNE needs the features of the run",
                input.path.display(),
                file.rows(),
                file.columns(),
                input.rows,
                input.columns
            );
        }
        columns = file.columns();
        let mut features = file.read()?;
        features.remove_rows(&input.skipped_rows);
        if let Some(row) = rows.iter().find(|&&row| row as usize >= features.rows()) {
            bail!("the trace names row {row} of {}, which has no such row", input.path.display());
        }
        rows.iter().for_each(|&row| values.extend_from_slice(features.row(row as usize)));
    }
    let features = FeatureMatrix::new(map.rows.len(), columns, values)?;
    let bar = counting_bar("laying out the map [{bar:32}] {percent:>3} %  {eta} left");
    lay_out(map, features, threads, &ProgressBars::default(), &|done, total| {
        bar(done, total);
        if crate::interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(())
}

/// Gives items whose ids are paths of image files thumbnails. When the first is no such path, none is looked for.
#[cfg(not(feature = "networks"))]
fn add_photos(items: &mut [&mut Item]) {
    let first = items.first().and_then(|item| item.id.as_deref());
    if first.is_some_and(|id| Path::new(id).is_file()) {
        eprintln!("note: {}", Lacking { what: "thumbnails of photos", feature: NETWORKS });
    }
}

/// Gives items whose ids are paths of image files thumbnails. When the first is no such path, none is looked for.
#[cfg(feature = "networks")]
fn add_photos(items: &mut [&mut Item]) {
    for item in items {
        let small = item.id.as_deref().and_then(|id| thumbnail(Path::new(id), THUMBNAIL_SIDE).ok());
        let Some(small) = small else { return };
        item.thumbnail = Some(base64::engine::general_purpose::STANDARD.encode(small));
    }
}

/// Gives the items of a trace thumbnails, where the target file holds images or their paths.
pub(crate) fn add_thumbnails(trace: &mut Trace, target: &Path) -> anyhow::Result<()> {
    let groups = trace.reach.iter_mut().flat_map(|reach| &mut reach.groups);
    let central = groups.flat_map(|group| &mut group.central);
    let mut items: Vec<&mut Item> = trace.least_certain.iter_mut().take(THUMBNAILS).chain(central).collect();
    let rows: Vec<usize> = items.iter().map(|item| item.row).collect();
    let Some(pictures) = read_pictures(target, &rows)? else {
        add_photos(&mut items);
        return Ok(());
    };
    for (item, picture) in items.iter_mut().zip(pictures) {
        let png = picture.shrunk(THUMBNAIL_SIDE).png();
        item.thumbnail = png.map(|png| base64::engine::general_purpose::STANDARD.encode(png));
    }
    Ok(())
}
