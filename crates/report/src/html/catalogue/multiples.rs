//! Small multiples: the same drawing for each value of an axis, with common scales.

use maud::{Markup, html};

/// Greatest number of drawings that are visible at first.
const VISIBLE: usize = 4;

/// Returns the drawings in columns, the first ones visible and the others on request. Each counts
/// as `weight` drawings.
pub(super) fn grid(title: &str, figures: &[Markup], weight: usize) -> Markup {
    let visible = (VISIBLE / weight).min(figures.len());
    // A single hidden drawing is shown with the others.
    let visible = if figures.len() == visible + 1 {
        figures.len()
    } else {
        visible
    };
    let (first, rest) = figures.split_at(visible);
    html! {
        @if !first.is_empty() { div.figures { @for figure in first { (figure) } } }
        @if !rest.is_empty() {
            details.more {
                summary { span { (title) } ": " span { (rest.len()) " more" } }
                div.figures { @for figure in rest { (figure) } }
            }
        }
    }
}
