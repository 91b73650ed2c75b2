//! Delay and loss against load, side by side.

use maud::{Markup, html};

use super::drawings::{Against, panels};
use super::multiples;
use super::readings::Readings;

/// Returns two drawings for each combination of the axes that are not shown.
pub(super) fn pair(
    readings: &Readings<'_>,
    title: &'static str,
    (delay, lost): (&str, &str),
    along: &'static str,
) -> Markup {
    let along = readings.axis(along);
    let against = |name, log| Against {
        figure: readings.figure(name),
        along,
        log,
    };
    let delays = panels(readings, against(delay, true));
    let losses = panels(readings, against(lost, false));
    let titles = [delay, lost].map(|name| format!("{title} · {}", readings.figure(name).title));
    let pairs = delays.iter().zip(&losses);
    let pairs: Vec<Markup> = pairs
        .map(|(above, below)| {
            html! { div.pair { (above.draw(&titles[0])) (below.draw(&titles[1])) } }
        })
        .collect();
    multiples::grid(title, &pairs, 2)
}
