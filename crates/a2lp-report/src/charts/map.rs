//! The map of the items.

use super::{Figure, figure};
use crate::Run;
use crate::svg::{Anchor, Drawing, Ink, class_colour, count, percent, shorten};
use crate::trace::{Map, MapKind, NO_CLASS};

/// The map as a still picture: after the last round, coloured by class.
pub(crate) fn map(run: &Run, ink: &Ink) -> Option<Figure> {
    let trace = run.trace.as_ref()?;
    let map = &trace.map;
    let frame = map.frames.last()?;
    let side = 520.0;
    let shown = trace.source_counts.len().min(24);
    let mut drawing = Drawing::new(ink, side + 190.0, side + 16.0);
    let place = |x: f64, y: f64| {
        (12.0 + (side - 24.0) * x / 65535.0, 8.0 + (side - 24.0) * (1.0 - y / 65535.0) + 12.0)
    };
    let colour = |class: u16| match class {
        NO_CLASS => ink.muted.to_string(),
        class => class_colour(usize::from(class)),
    };
    for at in 0..map.x.len() {
        let (x, y) = place(f64::from(map.x[at]), f64::from(map.y[at]));
        match at.checked_sub(map.source_points) {
            None => drawing.raw(&format!(
                r#"<rect x="{:.1}" y="{:.1}" width="3" height="3" fill="none" stroke-width="0.8" style="stroke:{}" stroke-opacity="0.55"/>"#,
                x - 1.5,
                y - 1.5,
                colour(map.source_labels[at])
            )),
            Some(item) => drawing.raw(&format!(
                r#"<circle cx="{x:.1}" cy="{y:.1}" r="2" style="fill:{}" fill-opacity="0.75"/>"#,
                colour(frame.labels[item])
            )),
        }
    }
    let latest = map.anchors.iter().map(|anchor| anchor.round).max();
    for anchor in map.anchors.iter().filter(|anchor| Some(anchor.round) == latest) {
        let (x, y) = place(f64::from(anchor.x), f64::from(anchor.y));
        let d = 6.0;
        drawing.raw(&format!(
            r#"<path d="M{x:.1} {:.1}L{:.1} {y:.1}L{x:.1} {:.1}L{:.1} {y:.1}Z" stroke-width="1.5" style="fill:{};stroke:{}"/>"#,
            y - d,
            x + d,
            y + d,
            x - d,
            colour(anchor.class),
            ink.text
        ));
    }
    for class in 0..shown {
        let y = 30.0 + 17.0 * class as f64;
        drawing.bar(side + 12.0, y - 9.0, 10.0, 10.0, &class_colour(class), &trace.classes[class]);
        drawing.text(side + 28.0, y, Anchor::Start, ink.text, &shorten(&trace.classes[class], 22));
    }
    let below = 30.0 + 17.0 * shown as f64;
    if trace.source_counts.len() > shown {
        let more = trace.source_counts.len() - shown;
        drawing.text(side + 28.0, below, Anchor::Start, ink.muted, &format!("and {more} more"));
    }
    let marks = [
        ("source", "M0 0h7v7h-7z"),
        ("target", "M3.5 0a3.5 3.5 0 1 0 .01 0z"),
        ("newest anchors", "M3.5 -1l4.5 4.5l-4.5 4.5l-4.5 -4.5z"),
    ];
    for (line, (name, path)) in marks.iter().enumerate() {
        let y = below + 24.0 + 17.0 * line as f64;
        let fill = if line == 0 { "none" } else { ink.muted };
        drawing.raw(&format!(
            r#"<path transform="translate({:.1} {:.1})" d="{path}" style="fill:{fill};stroke:{}"/>"#,
            side + 13.5,
            y - 7.5,
            ink.muted
        ));
        drawing.text(side + 28.0, y, Anchor::Start, ink.muted, name);
    }
    Some(figure("map", "The items in two dimensions", map_caption(map), drawing))
}

/// Caption of the map: how it was made, and what it omits.
pub(crate) fn map_caption(map: &Map) -> String {
    let mut caption = match (map.kind, map.explained) {
        (MapKind::Pca, Some([x, y])) => format!(
            "Principal components: the two directions along which the items differ most, {} of all variance. What \
             overlaps here may be apart in the other dimensions.",
            percent(x + y)
        ),
        (MapKind::Pca, None) => "Principal components.".into(),
        (MapKind::Tsne, _) => {
            "t-SNE by cosine: neighbours stay neighbours; sizes and distances of clusters mean \
                               little. Anchors stand at the mean of their items."
                .into()
        }
    };
    let all = map.source_items + map.target_items;
    if map.x.len() < all {
        caption += &format!(
            " {} of {} items are drawn: a sample with every class in proportion.",
            count(map.x.len()),
            count(all)
        );
    }
    caption
}
