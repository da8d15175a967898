//! Drawing: a chart area with axes, and the marks that go on it, as SVG text.

use std::fmt::Write;

/// Colours by role. On a page they are variables that follow the reader's theme; on paper they are fixed.
pub(crate) struct Ink {
    pub(crate) text: &'static str,
    pub(crate) muted: &'static str,
    pub(crate) grid: &'static str,
    pub(crate) surface: &'static str,
    pub(crate) accent: &'static str,
    pub(crate) second: &'static str,
    pub(crate) good: &'static str,
    pub(crate) bad: &'static str,
}

impl Ink {
    pub(crate) const PAGE: Ink = Ink {
        text: "var(--text)",
        muted: "var(--muted)",
        grid: "var(--grid)",
        surface: "var(--surface)",
        accent: "var(--accent)",
        second: "var(--second)",
        good: "var(--good)",
        bad: "var(--bad)",
    };
    pub(crate) const PAPER: Ink = Ink {
        text: "#1b1f24",
        muted: "#59616b",
        grid: "#e2e5e9",
        surface: "#ffffff",
        accent: "#1f6fc4",
        second: "#c8701a",
        good: "#2d8a4a",
        bad: "#c23b3b",
    };

    /// The colour of the nth line of a chart.
    pub(crate) fn line(&self, at: usize) -> &'static str {
        [self.accent, self.second, self.good, self.bad, self.muted][at % 5]
    }
}

/// Colours for classes that tell well apart on light and dark ground; beyond ten they are spread round the wheel.
pub fn class_colour(class: usize) -> String {
    const FIRST: [&str; 10] = [
        "#3b7dd8", "#e8871e", "#3fa35b", "#d64545", "#9063cd", "#a1725b", "#de6fa9", "#7b848f", "#b5a51f",
        "#25a9bd",
    ];
    match FIRST.get(class) {
        Some(colour) => (*colour).to_string(),
        None => {
            let hue = (class as f64 * 137.508) % 360.0;
            let lightness = [0.55, 0.42, 0.66][class % 3];
            hsl(hue, 0.6, lightness)
        }
    }
}

fn hsl(hue: f64, saturation: f64, lightness: f64) -> String {
    let chroma = saturation * lightness.min(1.0 - lightness);
    let channel = |n: f64| {
        let k = (n + hue / 30.0) % 12.0;
        let value = lightness - chroma * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
        (255.0 * value).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", channel(0.0), channel(8.0), channel(4.0))
}

/// Text escaped for HTML and SVG, also inside quotes.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // XML has no place for control characters.
            c if c.is_control() && c != '\n' => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

/// The first `most` characters, and a sign when there were more.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// A picture under construction.
pub(crate) struct Drawing<'a> {
    pub(crate) ink: &'a Ink,
    pub(crate) width: f64,
    pub(crate) height: f64,
    body: String,
}

/// Where text hangs from.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl<'a> Drawing<'a> {
    pub(crate) fn new(ink: &'a Ink, width: f64, height: f64) -> Self {
        Drawing { ink, width, height, body: String::new() }
    }

    pub(crate) fn raw(&mut self, svg: &str) {
        self.body += svg;
    }

    pub(crate) fn text(&mut self, x: f64, y: f64, anchor: Anchor, colour: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        let _ = write!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" style="fill:{colour}">{text}</text>"#
        );
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, dashed: bool) {
        let dash = if dashed { r#" stroke-dasharray="5 4""# } else { "" };
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = write!(
            self.body,
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" style="stroke:{colour}"{dash}/>"#
        );
    }

    /// A rectangle that tells what it stands for when pointed at.
    pub(crate) fn bar(&mut self, x: f64, y: f64, width: f64, height: f64, colour: &str, tip: &str) {
        let (width, height) = (width.max(0.0), height.max(0.0));
        let _ = write!(
            self.body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" style="fill:{colour}"><title>{}</title></rect>"#,
            escape(tip)
        );
    }

    pub(crate) fn dot(&mut self, x: f64, y: f64, radius: f64, colour: &str, tip: &str) {
        let _ = write!(
            self.body,
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius:.1}" style="fill:{colour}"><title>{}</title></circle>"#,
            escape(tip)
        );
    }

    pub(crate) fn path(&mut self, points: &[(f64, f64)], colour: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = write!(
            self.body,
            r#"<polyline points="{}" fill="none" stroke-width="2" stroke-linejoin="round" style="stroke:{colour}"/>"#,
            points.join(" ")
        );
    }

    /// Coloured words in a row above the chart: what each line is.
    pub(crate) fn key(&mut self, x: f64, y: f64, entries: &[(String, String)]) {
        let mut at = x;
        for (name, colour) in entries {
            self.bar(at, y - 9.0, 10.0, 10.0, colour, name);
            self.text(at + 14.0, y, Anchor::Start, self.ink.text, name);
            at += 28.0 + 6.6 * name.chars().count() as f64;
        }
    }

    /// The finished SVG. `label` is what it is called for those who do not see it.
    pub(crate) fn finish(self, label: &str) -> String {
        let Drawing { width, height, body, ink } = self;
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" role="img" aria-label="{}" font-family="Ubuntu, system-ui, sans-serif" font-size="12"><rect width="100%" height="100%" style="fill:{}"/>{body}</svg>"#,
            escape(label),
            ink.surface
        )
    }
}

/// Where charts begin, right of the numbers of their y axis.
pub(crate) const LEFT: f64 = 60.0;

/// A rectangle with a scale along each side.
pub(crate) struct Axes {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: (f64, f64),
    y: (f64, f64),
}

impl Axes {
    /// Axes that fill a drawing but for its margins.
    pub(crate) fn new(drawing: &Drawing<'_>, x: (f64, f64), y: (f64, f64)) -> Self {
        let widen = |(low, high): (f64, f64)| if high > low { (low, high) } else { (low - 0.5, low + 0.5) };
        Axes {
            left: LEFT,
            right: drawing.width - 16.0,
            top: 30.0,
            bottom: drawing.height - 40.0,
            x: widen(x),
            y: widen(y),
        }
    }

    /// The same, with more room at the left.
    pub(crate) fn starting_at(self, left: f64) -> Self {
        Axes { left, ..self }
    }

    /// Lines down at round values of x.
    pub(crate) fn draw_down(&self, drawing: &mut Drawing<'_>) {
        for value in self.ticks_x() {
            let x = self.x(value);
            drawing.line((x, self.top), (x, self.bottom), drawing.ink.grid, false);
        }
    }

    pub(crate) fn x(&self, value: f64) -> f64 {
        self.left + (self.right - self.left) * (value - self.x.0) / (self.x.1 - self.x.0)
    }

    pub(crate) fn y(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * (value - self.y.0) / (self.y.1 - self.y.0)
    }

    /// Lines across at round values of y.
    pub(crate) fn draw_y(&self, drawing: &mut Drawing<'_>, format: impl Fn(f64) -> String) {
        for value in ticks(self.y.0, self.y.1) {
            let y = self.y(value);
            drawing.line((self.left, y), (self.right, y), drawing.ink.grid, false);
            drawing.text(self.left - 6.0, y + 4.0, Anchor::End, drawing.ink.muted, &format(value));
        }
    }

    /// Numbers below at the given values of x, and the name of the axis.
    pub(crate) fn draw_x(
        &self,
        drawing: &mut Drawing<'_>,
        values: &[f64],
        format: impl Fn(f64) -> String,
        name: &str,
    ) {
        for &value in values {
            drawing.text(
                self.x(value),
                self.bottom + 16.0,
                Anchor::Middle,
                drawing.ink.muted,
                &format(value),
            );
        }
        drawing.text(
            (self.left + self.right) / 2.0,
            self.bottom + 33.0,
            Anchor::Middle,
            drawing.ink.muted,
            name,
        );
    }

    pub(crate) fn ticks_x(&self) -> Vec<f64> {
        ticks(self.x.0, self.x.1)
    }
}

/// About five round numbers between `low` and `high`.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 4.0;
    let magnitude = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|s| s * magnitude).find(|&s| s >= rough * 0.999);
    let step = step.unwrap_or(10.0 * magnitude);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|at| at as f64 * step).collect()
}

/// 12345 → "12,345"
pub(crate) fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// 1 → "1 label", 12345 → "12,345 labels"
pub(crate) fn several(number: usize, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// 0.9473 → "94.7 %"
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks(0.0, 1.0), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(ticks(3.0, 11.0), [4.0, 6.0, 8.0, 10.0]);
    }

    #[test]
    fn names_cannot_break_out_of_markup() {
        assert_eq!(escape("<b a=\"1\">&'\u{1}"), "&lt;b a=&quot;1&quot;&gt;&amp;&#39; ");
        assert_eq!(shorten("päris long", 5), "päri…");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(999), "999");
    }

    #[test]
    fn colours_are_colours() {
        let colours: std::collections::BTreeSet<String> = (0..60).map(class_colour).collect();
        assert_eq!(colours.len(), 60);
        assert!(colours.iter().all(|c| c.len() == 7 && c.starts_with('#')));
        assert_eq!(hsl(0.0, 1.0, 0.5), "#ff0000");
    }
}
