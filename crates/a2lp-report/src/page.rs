//! The page: one HTML file with everything in it.

mod groups;

use crate::charts::{self, Figure};
use crate::svg::{Ink, class_colour, count, escape, percent};
use crate::trace::{Item, MAX_ITEMS, MAX_POINTS, Map};
use crate::words;
use crate::{Chapter, Experiment, Run};
use groups::groups_html;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The looks of the report, for pages that look alike.
pub const STYLE: &str = include_str!("page/style.css");
/// The map of the items, for pages that have one.
pub const MAP_SCRIPT: &str = include_str!("page/map.js");
const SCRIPT: &str = include_str!("page/script.js");
/// A page stays below this, whatever is on it.
const MAX_BYTES: usize = 2_900_000;

/// What the script needs of a run.
#[derive(Serialize)]
struct PageData<'a> {
    classes: &'a [String],
    /// Classes that the run knows; those after them only the truth has.
    known: usize,
    colours: Vec<String>,
    map: &'a Map,
    items: &'a [Item],
}

/// The page of these chapters. When they are many, each map gets fewer points, so that the file stays below 3 MB.
pub fn page(chapters: &[Chapter]) -> String {
    let runs = chapters.iter().filter(|chapter| matches!(chapter, Chapter::Run(_))).count().max(1);
    let mut points = MAX_POINTS / runs;
    let mut items = MAX_ITEMS;
    loop {
        let page = compose(chapters, points, items);
        if page.len() <= MAX_BYTES || points < 50 {
            return page;
        }
        (points, items) = (points / 2, items / 2);
    }
}

fn compose(chapters: &[Chapter], points: usize, items: usize) -> String {
    let title = match chapters {
        [only] => only.title().to_string(),
        several => format!("{} runs", several.len()),
    };
    let mut body = String::new();
    if chapters.len() > 1 {
        body += &comparison(chapters);
    }
    for (at, chapter) in chapters.iter().enumerate() {
        body += &match chapter {
            Chapter::Run(run) => run_section(run, at, points, items),
            Chapter::Experiment(experiment) => experiment_section(experiment, at),
        };
    }
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="a2lp {version}">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{title} · a2lp</title>
<style>{STYLE}</style>
</head>
<body>
<main>
{body}
</main>
<footer>Made by a2lp {version}. This file holds everything it shows and loads nothing.</footer>
<script>{MAP_SCRIPT}{SCRIPT}</script>
</body>
</html>
"#,
        title = escape(&title),
        version = env!("CARGO_PKG_VERSION"),
    )
}

/// Several runs side by side.
fn comparison(chapters: &[Chapter]) -> String {
    let runs: Vec<(usize, &Run)> = chapters
        .iter()
        .enumerate()
        .filter_map(|(at, chapter)| match chapter {
            Chapter::Run(run) => Some((at, run)),
            Chapter::Experiment(_) => None,
        })
        .collect();
    let mut html = String::from("<section><h1>Side by side</h1>");
    if runs.len() > 1 {
        let keys: BTreeSet<&String> = runs.iter().flat_map(|(_, run)| run.record.settings.keys()).collect();
        let value = |run: &Run, key: &str| run.record.settings.get(key).map_or(String::new(), plain);
        let differing: Vec<&String> = keys
            .into_iter()
            .filter(|key| runs.iter().any(|(_, run)| value(run, key) != value(runs[0].1, key)))
            .collect();
        html += "<div class=\"scroll\"><table><thead><tr><th>run</th><th>items</th><th>labelled</th><th>unreached</th><th>mean confidence</th><th>accuracy</th><th>warnings</th>";
        differing.iter().for_each(|key| html += &format!("<th>{}</th>", escape(key)));
        html += "</tr></thead><tbody>";
        for (at, run) in &runs {
            let summary = &run.record.summary;
            let accuracy = summary.accuracy.map_or("not known".into(), percent);
            let _ = write!(
                html,
                "<tr><td><a href=\"#chapter-{at}\">{}</a></td><td>{}</td><td>{}</td><td>{}</td><td>{:.3}</td><td>{accuracy}</td><td>{}</td>",
                escape(&run.title),
                count(summary.items),
                count(summary.labelled),
                count(summary.unreached),
                summary.mean_confidence,
                summary.warnings.len()
            );
            differing.iter().for_each(|key| html += &format!("<td>{}</td>", escape(&value(run, key))));
            html += "</tr>";
        }
        html += "</tbody></table></div>";
    }
    html += "<ul>";
    for (at, chapter) in chapters.iter().enumerate() {
        let _ = write!(html, "<li><a href=\"#chapter-{at}\">{}</a></li>", escape(chapter.title()));
    }
    html + "</ul></section>"
}

fn run_section(run: &Run, at: usize, points: usize, items: usize) -> String {
    let record = &run.record;
    let mut html = format!("<section class=\"run\" id=\"chapter-{at}\"><h1>{}</h1>", escape(&run.title));
    for warning in &record.summary.warnings {
        let _ = write!(html, "<p class=\"warning\"><b>Look at this:</b> {}</p>", escape(&warning.message));
    }
    html += "<div class=\"words\">";
    words::summary(run).iter().for_each(|sentence| html += &format!("<p>{}</p>", escape(sentence)));
    html += "</div>";

    let figures = charts::draw(run, &Ink::PAGE);
    let some = |names: &[&str]| -> String {
        figures.iter().filter(|figure| names.contains(&figure.name)).map(figure_html).collect()
    };
    if let Some(trace) = &run.trace {
        let map = thinned(&trace.map, points);
        let least_certain = &trace.least_certain[..trace.least_certain.len().min(items)];
        let caption = charts::map_caption(&map);
        html += &map_html(at, &caption, map.frames.len(), !map.truth.is_empty());
        html += &group("Round by round", &some(&["accuracy", "rounds"]));
        html += &group("How sure, and how rightly", &some(&["confidence", "coverage", "calibration"]));
        html += &group("How the target differs from the source", &some(&["classes", "reach"]));
        html += &groups_html(run, items);
        html += &group("Mistakes", &some(&["confusion"]));
        let graph = graph_words(run).map_or(String::new(), |words| format!("<p>{}</p>", escape(&words)));
        html += &group("The graph", &(graph + &some(&["degrees", "pow", "affinity"])));
        html += &items_html(
            at,
            least_certain.len(),
            record.summary.items,
            !map.truth.is_empty(),
            record.consensus.is_some(),
        );
        let data = PageData {
            classes: &trace.classes,
            known: trace.source_counts.len(),
            colours: (0..trace.classes.len()).map(class_colour).collect(),
            map: &map,
            items: least_certain,
        };
        // Inside a script element only "</" can end it early.
        let json = serde_json::to_string(&data)
            .unwrap_or_default()
            .replace("</", "<\\/")
            .replace("<!--", "<\\u0021--");
        let _ = write!(html, "<script type=\"application/json\" class=\"data\">{json}</script>");
    } else {
        html += &group("Round by round", &some(&["accuracy", "rounds"]));
        html += "<p class=\"note\">The trace of this run (the file that ends in .trace.json) is not there, so there is no map and no list of items.</p>";
    }
    html += &settings_html(run);
    html + "</section>"
}

fn figure_html(figure: &Figure) -> String {
    format!(
        "<figure><figcaption><h3>{}</h3><p>{}</p></figcaption>{}</figure>",
        escape(figure.title),
        escape(&figure.caption),
        figure.svg
    )
}

fn group(title: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!("<h2>{}</h2><div class=\"figures\">{content}</div>", escape(title))
}

fn map_html(at: usize, caption: &str, frames: usize, truth: bool) -> String {
    let truth = if truth { "<option value=\"truth\">right or wrong</option>" } else { "" };
    let slider = if frames > 1 {
        format!(
            "<label class=\"rounds\">after round <output></output> <input type=\"range\" min=\"0\" max=\"{0}\" value=\"{0}\" step=\"1\" aria-label=\"round\"></label><button type=\"button\" class=\"play\">play</button>",
            frames - 1
        )
    } else {
        String::new()
    };
    format!(
        "<h2>Map</h2><p class=\"caption\">{caption}</p>
<div class=\"map\" data-chapter=\"{at}\">
<div class=\"controls\"><label>colour by <select aria-label=\"colour by\"><option value=\"class\">class</option><option value=\"domain\">domain</option><option value=\"confidence\">confidence</option>{truth}</select></label>
<span class=\"domains\"><button type=\"button\" aria-pressed=\"true\" data-domain=\"source\">□ source</button><button type=\"button\" aria-pressed=\"true\" data-domain=\"target\">● target</button><button type=\"button\" aria-pressed=\"true\" data-domain=\"anchors\">◆ anchors</button></span>
{slider}<span class=\"zoom\"><button type=\"button\" data-zoom=\"in\" aria-label=\"closer\">+</button><button type=\"button\" data-zoom=\"out\" aria-label=\"farther\">−</button><button type=\"button\" data-zoom=\"all\">all</button></span></div>
<div class=\"stage\"><canvas role=\"img\" aria-label=\"map of the items\"></canvas><div class=\"tip\" hidden></div></div>
<div class=\"legend\"></div>
<noscript><p class=\"note\">The map and the list of items need JavaScript.</p></noscript>
</div>",
        caption = escape(caption)
    )
}

fn items_html(at: usize, shown: usize, all: usize, truth: bool, consensus: bool) -> String {
    if shown == 0 {
        return String::new();
    }
    let first = if consensus { "those on which the views disagree first" } else { "the worst first" };
    let which = if shown < all {
        format!("The {} least certain of {} items, {first}.", count(shown), count(all))
    } else {
        format!("All {} items, {first}.", count(all))
    };
    let truth = if truth {
        "<label>show <select class=\"right\" aria-label=\"right or wrong\"><option value=\"\">all</option><option value=\"wrong\">wrong only</option><option value=\"right\">right only</option></select></label>"
    } else {
        ""
    };
    format!(
        "<h2>Items to check by hand</h2><p class=\"caption\">{which} Click a heading to sort.</p>
<div class=\"items\" data-chapter=\"{at}\">
<div class=\"controls\"><label>find <input type=\"search\" class=\"find\" placeholder=\"id, row or class\"></label>
<label>label <select class=\"class\" aria-label=\"label\"><option value=\"\">any</option></select></label>
<label>confidence up to <input type=\"number\" class=\"most\" min=\"0\" max=\"1\" step=\"0.05\" value=\"1\"></label>{truth}
<button type=\"button\" class=\"download\">download CSV</button><span class=\"count\"></span></div>
<div class=\"scroll tall\"><table><thead></thead><tbody></tbody></table></div>
<button type=\"button\" class=\"more\" hidden>show more</button></div>"
    )
}

fn graph_words(run: &Run) -> Option<String> {
    let graph = run.trace.as_ref()?.graph.as_ref()?;
    let mut text = format!(
        "{} nodes and {} edges before any anchor, in {}.",
        count(graph.nodes),
        count(graph.edges),
        match graph.components {
            1 => "one piece".into(),
            pieces => format!(
                "{} pieces, of which the largest holds {} of the nodes",
                count(pieces),
                percent(graph.largest as f64 / graph.nodes.max(1) as f64)
            ),
        }
    );
    text += &format!(
        " {} of the target items have a path to a label, {} are joined to a labelled one directly.",
        percent(graph.reached_targets as f64 / graph.targets.max(1) as f64),
        percent(graph.touching as f64 / graph.targets.max(1) as f64)
    );
    if let Some(found) = &run.record.graph {
        text += &format!(" Neighbours were found by {found}.");
    }
    Some(text)
}

fn settings_html(run: &Run) -> String {
    let record = &run.record;
    let mut html = String::from("<h2>Settings, and how to run it again</h2>");
    if !record.command.is_empty() {
        let _ = write!(html, "<pre class=\"command\">{}</pre>", escape(&shell_line(&record.command)));
    }
    html += "<div class=\"scroll\"><table class=\"settings\"><tbody>";
    let mut row = |name: &str, value: String| {
        let _ = write!(html, "<tr><th>{}</th><td>{}</td></tr>", escape(name), escape(&value));
    };
    row("version", record.a2lp.clone());
    if record.finished_unix_secs > 0 {
        row("finished", date(record.finished_unix_secs));
    }
    if let Some(inputs) = &record.inputs {
        for (name, input) in [("source", &inputs.source), ("target", &inputs.target)] {
            let shape = format!("{} × {}, {}", count(input.rows), count(input.columns), input.element_type);
            let more = match input.more_files.len() {
                0 => String::new(),
                more => format!(" and {more} more files"),
            };
            row(name, format!("{}{more} ({shape})", input.path.display()));
            if !input.skipped_rows.is_empty() {
                row(&format!("{name} rows left out"), count(input.skipped_rows.len()));
            }
        }
        row("source labels", inputs.source_labels.display().to_string());
    }
    for (name, value) in &record.settings {
        row(&name.replace('_', " "), plain(value));
    }
    let t = &record.timings;
    row(
        "seconds",
        format!(
            "{:.2} reading, {:.2} finding neighbours, {:.2} measuring reach, {:.2} rounds, {:.2} in all",
            t.read_secs, t.neighbours_secs, t.reach_secs, t.rounds_secs, t.total_secs
        ),
    );
    if let Some(peak) = record.memory.peak_bytes {
        row("memory", format!("{:.0} MiB at the peak", peak as f64 / f64::from(1 << 20)));
    }
    html + "</tbody></table></div>"
}

fn experiment_section(experiment: &Experiment, at: usize) -> String {
    let mut html = format!("<section id=\"chapter-{at}\"><h1>{}</h1>", escape(&experiment.title));
    if let Some(chart) = &experiment.chart {
        let _ = write!(
            html,
            "<div class=\"figures\"><figure>{}</figure></div>",
            charts::of_experiment(&Ink::PAGE, chart)
        );
    }
    if !experiment.charts.is_empty() {
        html += "<div class=\"figures\">";
        for (title, about, chart) in &experiment.charts {
            let _ = write!(
                html,
                "<figure><figcaption><h3>{}</h3><p>{}</p></figcaption>{}</figure>",
                escape(title),
                escape(about),
                charts::of_experiment(&Ink::PAGE, chart)
            );
        }
        html += "</div>";
    }
    if !experiment.pictures.is_empty() {
        html += "<div class=\"figures\">";
        for (title, png) in &experiment.pictures {
            let title = escape(title);
            let _ = write!(
                html,
                "<figure><figcaption><h3>{title}</h3></figcaption><img alt=\"{title}\" src=\"data:image/png;base64,{}\"></figure>",
                escape(png)
            );
        }
        html += "</div>";
    }
    let _ = write!(html, "<div class=\"scroll\"><pre>{}</pre></div>", escape(&experiment.text));
    html +=
        "<details><summary>All results</summary><div class=\"scroll\"><table class=\"results\"><thead><tr>";
    experiment.header.iter().for_each(|name| html += &format!("<th>{}</th>", escape(name)));
    html += "</tr></thead><tbody>";
    for row in &experiment.rows {
        html += "<tr>";
        row.iter().for_each(|cell| html += &format!("<td>{}</td>", escape(cell)));
        html += "</tr>";
    }
    html += "</tbody></table></div></details>";
    let _ = write!(
        html,
        "<h2>Settings, and how to run it again</h2><pre class=\"command\">{}</pre><details><summary>All settings</summary><pre>{}</pre></details>",
        escape(&shell_line(&experiment.command)),
        escape(&serde_json::to_string_pretty(&experiment.settings).unwrap_or_default())
    );
    html + "</section>"
}

/// At most `most` points, evenly taken from each domain.
fn thinned(map: &Map, most: usize) -> Map {
    let all = map.x.len();
    if all <= most {
        return map.clone();
    }
    let sources = map.source_points;
    let kept_sources = sources * most / all;
    let take = |count: usize, kept: usize| (0..kept).map(move |at| at * count / kept);
    let from_source: Vec<usize> = take(sources, kept_sources).collect();
    let from_target: Vec<usize> = take(all - sources, most - kept_sources).collect();
    let every: Vec<usize> =
        from_source.iter().copied().chain(from_target.iter().map(|at| sources + at)).collect();
    fn pick<T: Clone>(values: &[T], at: &[usize]) -> Vec<T> {
        // Truth and ids may be missing altogether.
        if values.is_empty() { Vec::new() } else { at.iter().map(|&at| values[at].clone()).collect() }
    }
    Map {
        x: pick(&map.x, &every),
        y: pick(&map.y, &every),
        rows: pick(&map.rows, &every),
        source_points: from_source.len(),
        source_labels: pick(&map.source_labels, &from_source),
        frames: map
            .frames
            .iter()
            .map(|frame| crate::trace::Frame {
                round: frame.round,
                labels: pick(&frame.labels, &from_target),
                confidence: pick(&frame.confidence, &from_target),
            })
            .collect(),
        truth: pick(&map.truth, &from_target),
        ids: pick(&map.ids, &from_target),
        ..map.clone()
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Words as one would type them.
fn shell_line(words: &[String]) -> String {
    let safe = |c: char| c.is_alphanumeric() || "-_./=,:+@%".contains(c);
    let quoted = words.iter().map(|word| match word.as_str() {
        word if !word.is_empty() && word.chars().all(safe) => word.to_string(),
        word => format!("'{}'", word.replace('\'', r"'\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// A day and a time of day, in UTC.
fn date(unix_secs: u64) -> String {
    let (days, secs) = (unix_secs / 86400, unix_secs % 86400);
    // Years that begin in March make leap days the last of a year; 719468 days from 0000-03-01 to 1970-01-01.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", secs / 3600, secs % 3600 / 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_827_696), "2000-02-29 12:34 UTC");
        assert_eq!(date(1_792_108_799), "2026-10-15 23:59 UTC");
    }

    #[test]
    fn commands_can_be_pasted_into_a_shell() {
        let words = ["a2lp", "label", "--source", "my file's.npy", ""].map(String::from);
        assert_eq!(shell_line(&words), r"a2lp label --source 'my file'\''s.npy' ''");
    }
}
