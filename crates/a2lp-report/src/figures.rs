//! The charts as files: SVG as it stands on the page but in fixed colours, and PNG drawn from it.

use crate::Chapter;
use crate::Chart;
use crate::charts::{self, Figure};
use crate::svg::Ink;
#[cfg(feature = "figures")]
use resvg::{tiny_skia, usvg};

/// Pixels of a PNG for each unit of its SVG: 520 units come out 2080 pixels wide.
#[cfg(feature = "figures")]
const PIXELS_PER_UNIT: f32 = 4.0;

/// A chart as a file.
pub struct FigureFile {
    /// Without ending.
    pub name: String,
    /// A picture that stands on its own.
    pub svg: String,
}

#[cfg(feature = "figures")]
impl FigureFile {
    /// The same as PNG, in the font that comes with this crate: the same on every machine.
    pub fn png(&self) -> Result<Vec<u8>, FigureError> {
        let mut options = usvg::Options { font_family: "Ubuntu".into(), ..usvg::Options::default() };
        let fonts = options.fontdb_mut();
        fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
        // For signs the first lacks.
        fonts.load_font_data(epaint_default_fonts::HACK_REGULAR.to_vec());
        fonts.set_sans_serif_family("Ubuntu");
        let tree = usvg::Tree::from_str(&self.svg, &options).map_err(|e| FigureError(e.to_string()))?;
        let size = tree.size();
        let pixels = |units: f32| (units * PIXELS_PER_UNIT).ceil() as u32;
        let mut pixmap = tiny_skia::Pixmap::new(pixels(size.width()), pixels(size.height()))
            .ok_or_else(|| FigureError("a picture of no size".into()))?;
        let scale = tiny_skia::Transform::from_scale(PIXELS_PER_UNIT, PIXELS_PER_UNIT);
        resvg::render(&tree, scale, &mut pixmap.as_mut());
        pixmap.encode_png().map_err(|e| FigureError(e.to_string()))
    }
}

/// A picture could not be drawn.
#[cfg(feature = "figures")]
#[derive(Debug, thiserror::Error)]
#[error("drawing a figure: {0}")]
pub struct FigureError(String);

/// Every chart of a chapter.
pub fn figures(chapter: &Chapter) -> Vec<FigureFile> {
    let file = |figure: Figure| FigureFile { name: figure.name.into(), svg: figure.svg };
    match chapter {
        Chapter::Run(run) => charts::map(run, &Ink::PAPER)
            .into_iter()
            .chain(charts::draw(run, &Ink::PAPER))
            .map(file)
            .collect(),
        Chapter::Experiment(experiment) => {
            let one = experiment.chart.iter().map(|chart| ("chart", chart));
            let more = experiment.charts.iter().map(|(title, _, chart)| (title.as_str(), chart));
            let file = |(name, chart): (&str, &Chart)| FigureFile {
                name: name.to_lowercase().replace(' ', "-"),
                svg: charts::of_experiment(&Ink::PAPER, chart),
            };
            one.chain(more).map(file).collect()
        }
    }
}
