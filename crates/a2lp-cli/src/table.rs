//! Plain text tables: first column to the left, the others to the right.

use std::fmt::Write;

/// Lines of equal columns under a header.
pub(crate) fn render(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].as_str()).chain([header[column]]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let mut text = String::new();
    let mut line = |cells: &[&str]| {
        let mut out = String::from(" ");
        for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            // Writing to a String cannot fail.
            let _ =
                if column == 0 { write!(out, " {cell:<width$}") } else { write!(out, "  {cell:>width$}") };
        }
        text.push_str(out.trim_end());
        text.push('\n');
    };
    line(header);
    for row in rows {
        line(&row.iter().map(String::as_str).collect::<Vec<_>>());
    }
    text
}

/// 0.9473 → "94.7"
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [vec!["mug".into(), "7".into()], vec!["bicycle".into(), "123".into()]];
        assert_eq!(
            render(&["class", "items"], &rows),
            "  class    items\n  mug          7\n  bicycle    123\n"
        );
    }
}
