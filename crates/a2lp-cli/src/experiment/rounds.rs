//! Round by round (figure 4): accuracy and PoW when the unlabelled items come from the same domain (SSL) and from another
//! (UDA).

use super::{Finding, Study, owned, run_pair, sample};
use crate::Outcome;
use crate::args::ExperimentArgs;
use crate::table::{percent, render};
use a2lp_report::Chart;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// One setting and seed.
#[derive(Serialize, Deserialize)]
struct Curve {
    rounds: Vec<Point>,
    /// The first round after which no label changed, if there is one.
    settled: Option<usize>,
}

#[derive(Serialize, Deserialize)]
struct Point {
    accuracy: f64,
    class_mean: f64,
    pow: f64,
    changed: usize,
    unreached: usize,
    anchors: usize,
}

pub(super) fn run(args: &ExperimentArgs) -> anyhow::Result<Outcome> {
    let study = Study::new("rounds", args)?;
    let (source, target) = study.pair_names()?;
    let seeds = &args.seeds;
    let notebook = study.notebook(&[&source, &target], 2 * seeds.len(), json!(null))?;
    let mut text = String::new();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for setting in ["SSL", "UDA"] {
        let mut curves: Vec<Curve> = Vec::new();
        // Without a draw there is nothing random about source and target.
        let needed = if setting == "UDA" && args.per_class.is_none() { &seeds[..1] } else { &seeds[..] };
        for &seed in needed {
            curves.push(notebook.cell(&format!("{setting}, seed {seed}"), || {
                let (labelled, unlabelled) = match setting {
                    "SSL" => sample::split(&study, &source, seed)?,
                    _ => sample::pair(&study, &source, &target, seed)?,
                };
                let run = run_pair(&labelled, &unlabelled, study.parameters(), None)?;
                let points = run.labelling.rounds.iter().zip(&run.rounds).map(|(round, score)| Point {
                    accuracy: score.accuracy,
                    class_mean: score.mean_class_accuracy,
                    pow: score.pow,
                    changed: round.changed,
                    unreached: round.unreached,
                    anchors: round.anchors,
                });
                let rounds: Vec<Point> = points.collect();
                Ok(Curve { settled: settled(&rounds), rounds })
            })?);
        }
        let what = match setting {
            "SSL" => format!("SSL: {source}, part of it unlabelled"),
            _ => format!("UDA: {source}→{target}"),
        };
        let mean = |round: usize, of: &dyn Fn(&Point) -> f64| {
            curves.iter().map(|curve| of(&curve.rounds[round])).sum::<f64>() / curves.len() as f64
        };
        let lines: Vec<Vec<String>> = (0..curves[0].rounds.len())
            .map(|round| {
                vec![
                    (round + 1).to_string(),
                    percent(mean(round, &|p| p.accuracy)),
                    percent(mean(round, &|p| p.class_mean)),
                    percent(mean(round, &|p| p.pow)),
                    format!("{:.0}", mean(round, &|p| p.changed as f64)),
                    format!("{:.0}", mean(round, &|p| p.anchors as f64)),
                    format!("{:.0}", mean(round, &|p| p.unreached as f64)),
                ]
            })
            .collect();
        let header = ["round", "accuracy %", "class mean %", "PoW %", "changed", "anchors", "unreached"];
        let noun = if curves.len() == 1 { "one run" } else { "mean of the seeds" };
        text += &format!("{what} ({noun})\n{}", render(&header, &lines));
        let ends: Vec<String> = curves
            .iter()
            .map(|curve| curve.settled.map_or("never".into(), |round| format!("round {round}")))
            .collect();
        text += &format!("  no label changes after: {}\n\n", ends.join(", "));
        rows.extend(lines.into_iter().map(|line| [vec![setting.to_string()], line].concat()));
    }
    let header =
        ["setting", "round", "accuracy", "mean_class_accuracy", "pow", "changed", "anchors", "unreached"];
    let title = format!("{}: round by round", study.manifest.name);
    study.finish(&notebook, Finding { title, text, header: owned(&header), chart: Some(curves(&rows)), rows })
}

/// Accuracy and PoW of both settings over the rounds.
fn curves(rows: &[Vec<String>]) -> Chart {
    let of = |setting: &str, column: usize| {
        let rows = rows.iter().filter(|row| row[0] == setting);
        let number = |text: &String| text.parse().unwrap_or(0.0);
        rows.map(|row| (number(&row[1]), number(&row[column]))).collect()
    };
    let series = [("SSL", "accuracy", 2), ("UDA", "accuracy", 2), ("SSL", "PoW", 4), ("UDA", "PoW", 4)];
    let series = series.map(|(setting, what, column)| (format!("{setting} {what} %"), of(setting, column)));
    Chart::Lines { x: "round".into(), series: series.into() }
}

/// The first round after which every further round changed nothing.
fn settled(rounds: &[Point]) -> Option<usize> {
    let last_change = rounds.iter().rposition(|point| point.changed > 0).unwrap_or(0);
    // The first round has nothing to differ from, and a change in the last leaves nothing settled.
    (last_change + 1 < rounds.len()).then_some(last_change + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settled_is_the_round_of_the_last_change() {
        let rounds = |changes: &[usize]| -> Vec<Point> {
            let point = |&changed| Point {
                accuracy: 0.0,
                class_mean: 0.0,
                pow: 0.0,
                changed,
                unreached: 0,
                anchors: 0,
            };
            changes.iter().map(point).collect()
        };
        assert_eq!(settled(&rounds(&[0, 5, 2, 0, 0])), Some(3));
        assert_eq!(settled(&rounds(&[0, 5, 0, 1])), None);
        assert_eq!(settled(&rounds(&[0, 0, 0])), Some(1));
    }
}
