//! All comparisons as numbers: how great each difference is, how sure, and what is left of that
//! when one asks so many questions at once.

use maud::{Markup, html};
use stats::{CONFIDENCE, holm};

use super::comparison::{Comparison, Verdict};
use crate::format::{decimal, decimals};
use crate::html::parts;

/// A probability below this is told as being below.
const LEAST_TOLD: f64 = 0.0001;

/// For each comparison its probability corrected for their number (Holm); none for those of too
/// few runs.
pub(super) fn corrected(comparisons: &[Comparison]) -> Vec<Option<f64>> {
    let known: Vec<f64> = comparisons.iter().filter_map(|one| one.p).collect();
    let mut all = holm(&known).into_iter();
    let next = |one: &Comparison| one.p.and_then(|_| all.next());
    comparisons.iter().map(next).collect()
}

/// How many comparisons are still proven, all together.
pub(super) fn proven_together(comparisons: &[Comparison]) -> usize {
    let corrected = corrected(comparisons).into_iter();
    let proven = corrected.filter(|p| p.is_some_and(|p| p < 1.0 - CONFIDENCE));
    proven.count()
}

pub(super) fn table(comparisons: &[Comparison]) -> Markup {
    let caption = html! {
        b { "All comparisons in numbers. " }
        "The ratio with its 99\u{a0}% interval over runs; how much oftener a run lies above one of the other device than below it, "
        "from −1 to 1 (Cliff’s delta); how likely such a ratio is by chance (p), and that corrected for the number of comparisons (Holm). "
        "No difference is proven where the interval holds 1."
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
        Some(p) if p < LEAST_TOLD => html! { td { "< " (decimal(LEAST_TOLD, 4)) } },
        Some(p) => html! { td { (decimal(p, 4)) } },
        None => html! { td.none { "–" } },
    };
    html! {
        tr {
            th scope="row" { a href={ "#" (one.place) } { (one.name()) } }
            td {
                span.value { (decimal(ratio, digits)) }
                span.interval {
                    @match interval {
                        Some(interval) => (parts::range(&interval, 1.0, digits)),
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
                    Verdict::Unsure => "no difference is proven",
                })
            }
        }
    }
}
