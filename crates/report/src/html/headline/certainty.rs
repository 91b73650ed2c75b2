//! Table of all comparisons: size, precision and significance, with the correction for multiple
//! comparisons.

use maud::{Markup, html};
use stats::{CONFIDENCE, holm};

use super::comparison::{Comparison, Verdict};
use crate::format::{decimal, decimals};
use crate::html::parts;

/// Least probability that is shown as a number.
const P_MIN: f64 = 0.0001;

/// Returns the probability of each comparison after Holm's correction; `None` for too few runs.
pub(super) fn corrected(comparisons: &[Comparison]) -> Vec<Option<f64>> {
    let known: Vec<f64> = comparisons.iter().filter_map(|one| one.p).collect();
    let mut all = holm(&known).into_iter();
    let next = |one: &Comparison| one.p.and_then(|_| all.next());
    comparisons.iter().map(next).collect()
}

/// Returns the number of comparisons that are significant after the correction.
pub(super) fn significant_together(comparisons: &[Comparison]) -> usize {
    let corrected = corrected(comparisons).into_iter();
    let significant = corrected.filter(|p| p.is_some_and(|p| p < 1.0 - CONFIDENCE));
    significant.count()
}

pub(super) fn table(comparisons: &[Comparison]) -> Markup {
    let caption = html! {
        b { "All comparisons in numbers. " }
        "Ratio with its 99\u{a0}% interval over runs; Cliff’s delta: by how much more often a run exceeds one of the other device than the other way round, from −1 to 1; "
        "p: probability of such a ratio for equal devices, and after Holm’s correction for multiple comparisons. "
        "There is no significant difference if the interval contains 1."
    };
    let head = html! {
        tr {
            th scope="col" { "Comparison" }
            th scope="col" { "Ratio" }
            th scope="col" { "Delta" }
            th scope="col" { "p" }
            th scope="col" { "p, corrected" }
            th scope="col" { "Verdict" }
        }
    };
    let body = html! {
        tbody {
            @for (one, corrected) in comparisons.iter().zip(corrected(comparisons)) { (row(one, corrected)) }
        }
    };
    html! {
        details.more {
            summary { "All comparisons in numbers" }
            (parts::table(&caption, &head, &body))
        }
    }
}

fn row(one: &Comparison, corrected: Option<f64>) -> Markup {
    let (ratio, interval) = one.ratio;
    let digits = decimals(ratio).max(1);
    let probability = |p: Option<f64>| match p {
        Some(p) if p < P_MIN => html! { td { "< " (decimal(P_MIN, 4)) } },
        Some(p) => html! { td { (decimal(p, 4)) } },
        None => html! { td.none { "–" } },
    };
    html! {
        tr {
            th scope="row" { a href={ "#" (one.anchor) } { (one.name()) } }
            td {
                span.value { (decimal(ratio, digits)) }
                span.interval {
                    @match interval {
                        Some(interval) => (parts::range(&interval, digits)),
                        None => "too few runs",
                    }
                }
            }
            @match one.delta {
                Some(delta) => td { (decimal(delta, 2)) },
                None => td.none { "–" },
            }
            (probability(one.p))
            (probability(corrected))
            td {
                (match one.verdict() {
                    Verdict::Better => "better",
                    Verdict::Worse => "worse",
                    Verdict::Unproven => "no significant difference",
                })
            }
        }
    }
}
