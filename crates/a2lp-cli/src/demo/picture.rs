//! The demo as one picture: drawings of both domains, and accuracy round by round.

use super::{DemoDomain, RoundScore, SIDE};
use a2lp_data::demo::CLASSES;
use base64::Engine;

const ROWS: usize = 3;

/// An SVG that stands on its own and reads on light and dark pages.
pub(super) fn draw(
    source: &DemoDomain,
    target: &DemoDomain,
    nearest_neighbour: f64,
    rounds: &[RoundScore],
) -> anyhow::Result<String> {
    let mut svg = String::from(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 300" font-family="system-ui, sans-serif" font-size="13">
<rect width="860" height="300" rx="8" fill="#ffffff"/>
"##,
    );
    for (y, title, domain) in [(34, "source: labelled", source), (174, "target: to be labelled", target)] {
        let sheet = contact_sheet(domain)?;
        svg += &format!(
            r##"<text x="20" y="{}" fill="#333">{title}</text>
<image x="20" y="{y}" width="350" height="105" style="image-rendering:pixelated" href="data:image/png;base64,{sheet}"/>
"##,
            y - 8
        );
    }

    // The curve, on a scale that begins at a round number below everything shown.
    let accuracies: Vec<f64> = rounds.iter().map(|r| r.accuracy).collect();
    let lowest = accuracies.iter().copied().fold(nearest_neighbour, f64::min);
    let floor = ((lowest * 10.0).floor() / 10.0 - 0.1).max(0.0);
    let (left, right, top, bottom) = (450.0, 830.0, 40.0, 250.0);
    let x = |at: usize| left + (right - left) * at as f64 / (rounds.len().max(2) - 1) as f64;
    let y = |accuracy: f64| bottom - (bottom - top) * (accuracy - floor) / (1.0 - floor);
    svg += r##"<text x="450" y="26" fill="#333">target items labelled correctly</text>
"##;
    let mut tick = floor;
    while tick < 1.0 + 1e-9 {
        svg += &format!(
            r##"<line x1="{left}" x2="{right}" y1="{0:.1}" y2="{0:.1}" stroke="#e3e3e3"/><text x="440" y="{1:.1}" fill="#666" text-anchor="end">{2:.0} %</text>
"##,
            y(tick),
            y(tick) + 4.0,
            100.0 * tick
        );
        tick += 0.1;
    }
    for at in 0..rounds.len() {
        svg += &format!(
            r##"<text x="{:.1}" y="268" fill="#666" text-anchor="middle">{}</text>
"##,
            x(at),
            at + 1
        );
    }
    svg += r##"<text x="640" y="290" fill="#666" text-anchor="middle">round</text>
"##;
    svg += &format!(
        r##"<line x1="{left}" x2="{right}" y1="{0:.1}" y2="{0:.1}" stroke="#888" stroke-dasharray="5 4"/><text x="{right}" y="{1:.1}" fill="#555" text-anchor="end">nearest neighbour {2:.1} %</text>
"##,
        y(nearest_neighbour),
        y(nearest_neighbour) + 16.0,
        100.0 * nearest_neighbour
    );
    let points: Vec<String> =
        accuracies.iter().enumerate().map(|(at, &a)| format!("{:.1},{:.1}", x(at), y(a))).collect();
    svg += &format!(
        r##"<polyline points="{}" fill="none" stroke="#0b6bcb" stroke-width="2.5"/>
"##,
        points.join(" ")
    );
    for (at, &accuracy) in accuracies.iter().enumerate() {
        svg += &format!(r##"<circle cx="{:.1}" cy="{:.1}" r="4" fill="#0b6bcb"/>"##, x(at), y(accuracy));
    }
    if let (Some(&lp), Some(&last)) = (accuracies.first(), accuracies.last()) {
        svg += &format!(
            r##"
<text x="{:.1}" y="{:.1}" fill="#0b6bcb">label propagation {:.1} %</text>
<text x="{right}" y="{:.1}" fill="#0b6bcb" font-weight="600" text-anchor="end">A²LP {:.1} %</text>
"##,
            x(0) + 10.0,
            y(lp) + 16.0,
            100.0 * lp,
            y(last) + 22.0,
            100.0 * last
        );
    }
    svg += "</svg>\n";
    Ok(svg)
}

/// The first drawings of each digit, a column a digit, as a PNG in base64.
fn contact_sheet(domain: &DemoDomain) -> anyhow::Result<String> {
    let width = CLASSES.len() * SIDE;
    let mut pixels = vec![0u8; width * ROWS * SIDE];
    for (column, class) in CLASSES.iter().enumerate() {
        let drawings = domain.labels.iter().enumerate().filter(|(_, label)| *label == class);
        for (row, (item, _)) in drawings.take(ROWS).enumerate() {
            let image = &domain.images[item * SIDE * SIDE..][..SIDE * SIDE];
            for (line, source) in image.chunks_exact(SIDE).enumerate() {
                let at = (row * SIDE + line) * width + column * SIDE;
                pixels[at..at + SIDE].copy_from_slice(source);
            }
        }
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width as u32, (ROWS * SIDE) as u32);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(base64::engine::general_purpose::STANDARD.encode(file))
}
