//! Groups of unknown items on the page.

use crate::Run;
use crate::svg::{count, escape, several};
use crate::trace::{MAX_GROUPS, MAX_ITEMS};
use std::fmt::Write;

/// Groups of unknown items, each with its most central ones. The fewer items a page may show, the fewer groups.
pub(super) fn groups_html(run: &Run, items: usize) -> String {
    let groups =
        run.trace.as_ref().and_then(|trace| trace.reach.as_ref()).map_or(&[][..], |reach| &reach.groups);
    let all = run.record.unknown.as_ref().map_or(0, |unknown| unknown.groups.len());
    let shown = groups.len().min(items * MAX_GROUPS / MAX_ITEMS);
    if shown == 0 {
        return String::new();
    }
    let mut html = format!(
        "<h2>Unknown items that look alike</h2><p class=\"caption\">Candidates for new classes: {} of {} groups, the largest first, each with its most central items. The run record lists the rows.</p><div class=\"groups\">",
        count(shown),
        count(all)
    );
    for (at, group) in groups[..shown].iter().enumerate() {
        let _ = write!(
            html,
            "<figure><figcaption><h3>Group {}: {}</h3></figcaption><div class=\"central\">",
            at + 1,
            several(group.items, "item")
        );
        for item in &group.central {
            let name = item.id.clone().unwrap_or_else(|| format!("row {}", item.row));
            let tip = format!(
                "{name}\nrow {}, reach {:.3}{}",
                item.row,
                item.reach.unwrap_or(0.0),
                item.truth.as_ref().map_or(String::new(), |truth| format!("\ntruth: {truth}"))
            );
            let inside = match &item.thumbnail {
                Some(data) => {
                    let kind = if data.starts_with("/9j/") { "jpeg" } else { "png" };
                    format!(
                        "<img alt=\"{}\" src=\"data:image/{kind};base64,{}\">",
                        escape(&name),
                        escape(data)
                    )
                }
                None => format!("<span>{}</span>", escape(&name)),
            };
            let _ = write!(html, "<div title=\"{}\">{inside}</div>", escape(&tip));
        }
        html += "</div></figure>";
    }
    html + "</div>"
}
