//! The affinity between labelled and unlabelled nodes as a picture (figure 1): pairs of the same class, both sides sorted
//! by class. SSL, UDA, and UDA with anchors.

use super::manifest::{Domain, pair};
use super::{Finding, Study, dot_chart, owned, sample, truth_of};
use crate::Outcome;
use crate::args::ExperimentArgs;
use crate::interrupt::CtrlC;
use crate::table::{percent, render};
use a2lp::{ClassId, FinishedRound, Observer, Run};
use a2lp_data::write_atomically;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Mutex;

/// Most pixels on a side; larger blocks are pooled by their largest value.
const SIDE: usize = 1000;
/// The darkest colour stands for this weight: a mutual pair of equal vectors.
const DARKEST: f32 = 2.0;

/// The figures of one picture.
#[derive(Default, Serialize, Deserialize)]
struct Block {
    accuracy: f64,
    pow: f64,
    /// Weight between labelled and unlabelled nodes, by class of the labelled (rows) and of the unlabelled (columns).
    sums: Vec<Vec<f64>>,
    classes: Vec<String>,
    width: usize,
    height: usize,
    /// Largest weight in each pixel, row after row.
    pixels: Vec<f32>,
}

pub(super) fn run(args: &ExperimentArgs) -> anyhow::Result<Outcome> {
    let study = Study::new("affinity", args)?;
    let (source, target) = study.pair_names()?;
    let notebook = study.notebook(&[&source, &target], 3, json!(null))?;
    let seed = args.seeds[0];
    let mut rows = Vec::new();
    let mut sums = Vec::new();
    for (name, rounds) in [("ssl", Some(1)), ("uda", Some(1)), ("uda-anchors", args.rounds)] {
        let block: Block = notebook.cell(name, || {
            let (labelled, unlabelled) = match name {
                "ssl" => sample::split(&study, &source, seed)?,
                _ => sample::pair(&study, &source, &target, seed)?,
            };
            picture(&study, &labelled, &unlabelled, rounds)
        })?;
        let path = notebook.folder().join(format!("{name}.png"));
        let bytes = png(&block)?;
        write_atomically(&path, true, |file| file.write_all(&bytes))?;
        rows.push(vec![name.to_string(), percent(block.accuracy), percent(block.pow)]);
        for (class, row) in block.classes.iter().zip(&block.sums) {
            let numbers = row.iter().map(|sum| format!("{sum:.4}"));
            sums.push(
                [name.to_string(), class.clone()].into_iter().chain(numbers).collect::<Vec<_>>().join(","),
            );
        }
    }
    write_atomically(&notebook.folder().join("block_sums.csv"), true, |file| {
        writeln!(file, "setting,labelled_class,weight to unlabelled nodes of each class in the same order")?;
        sums.iter().try_for_each(|line| writeln!(file, "{line}"))
    })?;
    let title = format!("{}, {source}→{target}: who is joined to whom", study.manifest.name);
    let mut text = render(&["graph", "accuracy %", "PoW %"], &rows);
    text += "\n  ssl.png, uda.png, uda-anchors.png: rows are labelled nodes (anchors after their class), columns unlabelled ones,\n  \
             both by class; only pairs of the same class are drawn. block_sums.csv: the weight between all classes.\n";
    let chart = Some(dot_chart(&rows, &[(1, "accuracy %"), (2, "PoW %")]));
    let header = owned(&["graph", "accuracy", "pow"]);
    study.finish(&notebook, Finding { title, text, header, rows, chart })
}

fn picture(
    study: &Study<'_>,
    source: &Domain,
    target: &Domain,
    rounds: Option<usize>,
) -> anyhow::Result<Block> {
    let domains = pair(source, target)?;
    let truth = truth_of(&domains, target);
    let classes = domains.source_labels().classes().clone();
    let unlabelled: Vec<Option<ClassId>> = target.labels.iter().map(|name| classes.find(name)).collect();
    let painter = Painter { unlabelled, classes: classes.len(), block: Mutex::default() };
    let parameters = study.parameters();
    let parameters = rounds.map_or(parameters.clone(), |rounds| parameters.rounds(rounds)).check()?;
    let labelling = Run::new(domains, &parameters).observe(&(CtrlC, &painter)).label()?;
    let accuracy = truth.score(labelling.pseudo_labels.labels())?.accuracy;
    let painted = painter.block.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    Ok(Block { accuracy, classes: classes.names().to_vec(), ..painted })
}

/// Paints the graph of every round; the last stays.
struct Painter {
    unlabelled: Vec<Option<ClassId>>,
    classes: usize,
    block: Mutex<Block>,
}

impl Observer for Painter {
    fn round(&self, round: &FinishedRound<'_>) {
        let labels = round.node_labels;
        // Sorting is stable: sources of a class come before its anchors.
        let mut rows: Vec<usize> = (0..labels.len()).filter(|&node| labels[node].is_some()).collect();
        rows.sort_by_key(|&node| labels[node]);
        let mut columns: Vec<usize> = (0..self.unlabelled.len()).collect();
        columns.sort_by_key(|&item| self.unlabelled[item].unwrap_or(ClassId::MAX));
        let mut column_of = vec![0; columns.len()];
        columns.iter().enumerate().for_each(|(at, &item)| column_of[item] = at);

        let (height, width) = (rows.len().min(SIDE), columns.len().min(SIDE));
        let mut block = Block { width, height, ..Block::default() };
        block.pixels = vec![0.0; width * height];
        block.sums = vec![vec![0.0; self.classes]; self.classes];
        let (mut all, mut same, mut entries) = (0.0, 0.0, Vec::new());
        for node in 0..labels.len() {
            round.affinity.row(node, &mut entries);
            all += entries.iter().map(|entry| f64::from(entry.1)).sum::<f64>();
        }
        for (at, &node) in rows.iter().enumerate() {
            let Some(class) = labels[node] else { continue };
            round.affinity.row(node, &mut entries);
            for &(other, weight) in &entries {
                let Some(item) = (other as usize).checked_sub(round.first_target) else { continue };
                let Some(Some(truth)) = self.unlabelled.get(item) else { continue };
                block.sums[class as usize][*truth as usize] += f64::from(weight);
                if *truth == class {
                    // Counted from both ends.
                    same += 2.0 * f64::from(weight);
                    let pixel = at * height / rows.len() * width + column_of[item] * width / columns.len();
                    block.pixels[pixel] = block.pixels[pixel].max(weight);
                }
            }
        }
        block.pow = if all > 0.0 { same / all } else { 0.0 };
        *self.block.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = block;
    }
}

/// White to dark red.
fn png(block: &Block) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, block.width.max(1) as u32, block.height.max(1) as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let colours = block.pixels.iter().flat_map(|&weight| {
        let t = (weight / DARKEST).clamp(0.0, 1.0);
        let mix = |white: f32, dark: f32| (white + (dark - white) * t.sqrt()).round() as u8;
        [mix(255.0, 103.0), mix(255.0, 0.0), mix(255.0, 13.0)]
    });
    encoder.write_header()?.write_image_data(&colours.collect::<Vec<u8>>())?;
    Ok(bytes)
}
