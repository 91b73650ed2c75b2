//! Delay and loss against load, beside each other: the one bends up where the other begins.

use maud::{Markup, html};

use super::drawings::{Against, panels};
use super::material::Material;
use super::multiples;

/// Two drawings for each combination of what is not shown.
pub(super) fn pair(
    material: &Material<'_>,
    title: &'static str,
    (delay, lost): (&str, &str),
    along: &'static str,
) -> Markup {
    let along = material.axis(along);
    let against = |name, log| Against {
        figure: material.figure(name),
        along,
        log,
    };
    let delays = panels(material, against(delay, true));
    let losses = panels(material, against(lost, false));
    let titles = [delay, lost].map(|name| format!("{title} · {}", material.figure(name).title));
    let pairs = delays.iter().zip(&losses);
    let pairs: Vec<Markup> = pairs
        .map(|(above, below)| {
            html! { div.pair { (above.draw(&titles[0])) (below.draw(&titles[1])) } }
        })
        .collect();
    multiples::grid(title, &pairs, 2)
}
