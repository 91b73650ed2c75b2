//! The same drawing for each value of what it does not show: a few open, the rest on request.

use maud::{Markup, html};

/// So many drawings stand open; they have their axes in common, so that they can be compared.
const OPEN: usize = 4;

/// Drawings in columns. Each counts for `each` of those that may stand open.
pub(super) fn grid(title: &str, figures: &[Markup], each: usize) -> Markup {
    let open = (OPEN / each).min(figures.len());
    // One that would be alone behind a click is shown with the others.
    let open = if figures.len() == open + 1 {
        figures.len()
    } else {
        open
    };
    let (first, rest) = figures.split_at(open);
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
