//! Reports in a real browser. Screenshots go to `target/tmp/screenshots`.

#![cfg(unix)]

mod chromium;

use chromium::Page;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

fn a2lp(dir: &Path, args: &[&str]) -> Output {
    let out = Command::new(env!("CARGO_BIN_EXE_a2lp")).current_dir(dir).args(args).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    out
}

/// Pixels of the map that something is drawn on.
const PAINTED: &str = "(() => { const c = document.querySelector('canvas'); \
    const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; \
    let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 40; return n; })()";

/// Where on the screen some painted pixel of the map is.
const SOME_POINT: &str = "(() => { const c = document.querySelector('canvas'); c.scrollIntoView({block: 'center'}); \
    const b = c.getBoundingClientRect(); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; \
    for (let i = 3; i < d.length; i += 4) if (d[i] > 150) { const p = (i - 3) / 4; \
    return [b.left + (p % c.width) * b.width / c.width, b.top + Math.floor(p / c.width) * b.height / c.height]; } })()";

#[test]
fn the_page_of_the_demo_does_what_it_promises() {
    let dir = tempfile::tempdir().unwrap();
    a2lp(dir.path(), &["demo", "--more-seeds", "0", "--report"]);
    let file = dir.path().join("a2lp-demo/report.html");
    assert!(fs::metadata(&file).unwrap().len() < 3_000_000);
    let Some(mut page) = Page::open(&file) else { return };
    page.wait_for("document.querySelectorAll('.items tbody tr').length > 0");
    page.screenshot("demo-light");

    // Words, warnings before them, charts, settings.
    assert_eq!(
        page.text("document.querySelector('.words p').textContent"),
        "All 1,000 target items got a label."
    );
    for part in
        ["Accuracy round by round", "How sure", "Calibration", "Classes", "Confusion matrix", "Neighbours"]
    {
        assert_eq!(
            page.eval(&format!("document.body.textContent.includes({part:?})")),
            json!(true),
            "{part}"
        );
    }
    assert!(page.text("document.querySelector('.command').textContent").starts_with("a2lp label --source "));

    // Hover: with sources and anchors out of the way every point is a target item.
    let everything = page.number(PAINTED);
    page.click("[data-domain=source]");
    page.click("[data-domain=anchors]");
    let targets = page.number(PAINTED);
    assert!(targets > 1000.0 && targets < everything, "{targets} of {everything}");
    let place = page.eval(SOME_POINT);
    page.point_at(place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    page.wait_for("!document.querySelector('.tip').hidden");
    let tip = page.text("document.querySelector('.tip').textContent");
    assert!(tip.starts_with("drawing-") && tip.contains("confidence 0."), "{tip}");
    assert!(tip.contains("right") || tip.contains("in truth"), "{tip}");
    page.click("[data-domain=anchors]");

    // The legend hides and shows classes.
    let before = page.number(PAINTED);
    page.click(".legend button");
    assert_eq!(page.text("document.querySelector('.legend button').getAttribute('aria-pressed')"), "false");
    assert!(page.number(PAINTED) < before);
    page.click(".legend button");
    assert_eq!(page.number(PAINTED), before);

    // The slider goes back in time: fewer anchors, other labels.
    let picture = "document.querySelector('canvas').toDataURL()";
    let last = page.text(picture);
    let output = "document.querySelector('.rounds output').textContent";
    assert!(page.text(output).starts_with("10 ("));
    page.press(".rounds input", "Home", 36);
    page.wait_for("document.querySelector('.rounds input').value === '0'");
    assert_eq!(page.text(output), "1 (no anchors yet)");
    assert_ne!(page.text(picture), last);
    page.screenshot("demo-round-1");
    page.press(".rounds input", "End", 35);
    page.wait_for("document.querySelector('.rounds input').value === '9'");
    assert_eq!(page.text(picture), last);

    // Other colours.
    let mut pictures = vec![last];
    for colour in ["domain", "confidence", "truth"] {
        page.choose(".map select", colour);
        pictures.push(page.text(picture));
        page.screenshot(&format!("demo-{colour}"));
    }
    pictures.sort();
    pictures.dedup();
    assert_eq!(pictures.len(), 4);
    page.choose(".map select", "class");
    page.click("[data-zoom=in]");
    assert_ne!(page.text(picture), pictures[0]);
    page.click("[data-zoom=all]");

    // The list: find, filter, sort.
    let rows = "document.querySelectorAll('.items tbody tr').length";
    assert_eq!(page.number(rows), 100.0);
    assert_eq!(page.eval("document.querySelector('.items tbody img').naturalWidth > 0"), json!(true));
    page.choose(".items .right", "wrong");
    let wrong = page.number(rows);
    assert!(wrong > 0.0 && wrong < 100.0, "{wrong}");
    page.type_into(".items .find", "drawing-004");
    let found = page.number(rows);
    assert!(found > 0.0 && found < wrong, "{found} of {wrong}");
    let ids = "[...document.querySelectorAll('.items td.id')].every((c) => c.textContent.startsWith('drawing-004'))";
    assert_eq!(page.eval(ids), json!(true));
    page.click(".items thead th:nth-child(8)");
    page.click(".items thead th:nth-child(8)");
    assert_eq!(page.text("document.querySelector('[aria-sort]').getAttribute('aria-sort')"), "descending");
    let confidences = "JSON.stringify([...document.querySelectorAll('.items tbody tr')].map((r) => Number(r.children[7].textContent)))";
    let sorted: Vec<f64> = serde_json::from_str(&page.text(confidences)).unwrap();
    assert!(sorted.windows(2).all(|pair| pair[0] >= pair[1]), "{sorted:?}");

    // The download is what is shown, in its order.
    let downloads = tempfile::tempdir().unwrap();
    page.download_to(downloads.path());
    page.click(".items .download");
    let csv = downloads.path().join("items.csv");
    let began = Instant::now();
    while !csv.exists() {
        assert!(began.elapsed() < Duration::from_secs(30), "no download");
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut reader = csv::Reader::from_path(&csv).unwrap();
    assert_eq!(&reader.headers().unwrap()[0], "row");
    let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(lines.len() as f64, found);
    assert!(
        lines
            .iter()
            .zip(&sorted)
            .all(|(line, &shown)| (line[6].parse::<f64>().unwrap() - shown).abs() < 1e-3)
    );

    // Dark, on a phone, on paper.
    let background = "getComputedStyle(document.body).backgroundColor";
    let light = page.text(background);
    page.go_dark();
    assert_ne!(page.text(background), light);
    page.screenshot("demo-dark");
    page.resize(390, 844, true);
    page.wait_for("document.querySelector('canvas').clientWidth < 390");
    assert_eq!(page.eval("document.documentElement.scrollWidth <= 390"), json!(true));
    page.screenshot("demo-phone");
    assert!(page.print().starts_with(b"%PDF"));

    assert!(page.complaints.is_empty(), "{:#?}", page.complaints);
}

#[test]
fn names_that_look_like_markup_stay_names() {
    let dir = tempfile::tempdir().unwrap();
    let evil = "</script><img src=x onerror=alert(1)>";
    let mut source = String::from("x,y,label\n");
    let mut target = String::from("x,y,id\n");
    for item in 0..12 {
        let t = 0.02 * f64::from(item);
        source += &format!("1,{t},\"{evil}\"\n{t},1,\"<b>&amp;\"\n");
        target += &format!("1,{},{evil}{item}\n{},1,\"it's, \"\"quoted\"\" {item}\"\n", t + 0.1, t + 0.1);
    }
    fs::write(dir.path().join("s.csv"), source).unwrap();
    fs::write(dir.path().join("t.csv"), target).unwrap();
    let run = ["label", "--source", "s.csv", "--target", "t.csv", "--neighbours", "5", "--out", "a.csv"];
    a2lp(dir.path(), &run);
    let run = ["label", "--source", "s.csv", "--target", "t.csv", "--rounds", "1", "--out", "b.csv"];
    a2lp(dir.path(), &run);
    a2lp(dir.path(), &["report", "a.csv", "b.csv", "--out", "both.html"]);
    let Some(mut page) = Page::open(&dir.path().join("both.html")) else { return };
    page.wait_for("document.querySelectorAll('.items tbody tr').length === 48");
    assert_eq!(page.number("document.querySelectorAll('img').length"), 0.0);
    assert_eq!(page.number("document.querySelectorAll('section.run').length"), 2.0);
    let legend = page.text("document.querySelector('.legend button').textContent");
    assert!(legend.starts_with(evil) || legend.starts_with("<b>&amp;"), "{legend}");
    // Two runs are compared, and only what differs is listed.
    let head = page.text("document.querySelector('table thead').textContent");
    assert!(head.contains("rounds") && head.contains("neighbours") && !head.contains("alpha"), "{head}");
    page.screenshot("two-runs");
    assert!(page.complaints.is_empty(), "{:#?}", page.complaints);
}
