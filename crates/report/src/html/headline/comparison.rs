//! Comparison of one figure of two devices.

use maud::{Markup, html};
use record::Better;
use stats::{CONFIDENCE, Interval, cliffs_delta, paired_contrast};

use crate::analysis::{ByRun, RUNS_MIN};
use crate::format::{decimal, decimals};
use crate::html::catalogue::MainFigure;
use crate::html::parts;

/// Result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The first device is better.
    Better,
    /// The first device is worse.
    Worse,
    /// The interval contains 1.
    Unproven,
}

impl Verdict {
    /// Returns the class in the style sheet.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Unproven => "unproven",
        }
    }
}

/// Returns the probability of such ratios, run by run, if the devices were equal; `None` for too
/// few runs.
fn probability(ours: &ByRun, theirs: &ByRun) -> Option<f64> {
    let pairs = ours.paired_with(theirs).into_iter();
    let pairs: Vec<(f64, f64)> = pairs.map(|(_, a, b)| (b.ln(), a.ln())).collect();
    let is_defined = pairs.len() >= RUNS_MIN && pairs.iter().all(|(a, b)| (a + b).is_finite());
    let contrast = is_defined
        .then(|| paired_contrast(&pairs, CONFIDENCE))
        .flatten()?;
    Some(contrast.p)
}

/// Comparison of one figure of two devices.
pub(super) struct Comparison {
    /// Anchor of the experiment in the page.
    pub(super) anchor: &'static str,
    name: String,
    baseline: String,
    values: [String; 2],
    /// Figure and points.
    detail: String,
    /// Mean of the ratios, and its interval if there are enough runs.
    pub(super) ratio: (f64, Option<Interval>),
    /// Probability of such a ratio if the devices were equal.
    pub(super) p: Option<f64>,
    /// Cliff's delta: by how much more often a run of the first device exceeds one of the second
    /// than the other way round.
    pub(super) delta: Option<f64>,
    better: Better,
}

impl Comparison {
    /// Returns the comparison of an experiment's main figure, with the geometric mean of its points
    /// for each run; `None` if a device has no runs.
    pub(super) fn over_points(
        main: &MainFigure<'_, '_>,
        values: [String; 2],
        (baseline, ours, theirs): (&str, &ByRun, &ByRun),
        points: usize,
    ) -> Option<Self> {
        let (our_mean, their_mean) = (ours.mean()?, theirs.mean()?);
        let interval = ours.ratio_to(theirs);
        let mut detail = vec![main.figure.title.to_owned()];
        match (points, main.place()) {
            (1, place) if place.is_empty() => {}
            (1, place) => detail.push(place),
            (points, _) => detail.push(format!("geometric mean of {points} points")),
        }
        Some(Self {
            anchor: main.experiment.name,
            name: main.experiment.title.to_owned(),
            baseline: baseline.to_owned(),
            values,
            detail: detail.join(", "),
            ratio: (
                interval.map_or(our_mean / their_mean, |interval| interval.mean),
                interval,
            ),
            p: probability(ours, theirs),
            delta: cliffs_delta(&theirs.values(), &ours.values()),
            better: main.figure.better,
        })
    }

    /// Returns which device is better.
    pub(super) fn verdict(&self) -> Verdict {
        let Some(interval) = self.ratio.1 else {
            return Verdict::Unproven;
        };
        match (interval.high < 1.0, interval.low > 1.0, self.better) {
            (true, _, Better::Lower) | (_, true, Better::Higher) => Verdict::Better,
            (true, _, Better::Higher) | (_, true, Better::Lower) => Verdict::Worse,
            (false, false, _) | (_, _, Better::Neither) => Verdict::Unproven,
        }
    }

    /// Returns the meaning of the ratio in words.
    fn claim(&self) -> String {
        format!("{}, relative to {}", self.name, self.baseline)
    }

    /// Returns the title of the experiment.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the direction in which the figure is better, in words.
    pub(super) const fn direction(&self) -> &'static str {
        match self.better {
            Better::Lower => "lower is better",
            Better::Higher => "higher is better",
            Better::Neither => "neither direction is better",
        }
    }

    /// Returns the comparison in one line, for the terminal.
    pub(super) fn line(&self) -> String {
        let (ratio, interval) = self.ratio;
        let digits = decimals(ratio).max(1);
        let precision = interval.map_or_else(
            || "too few runs for an interval".to_owned(),
            |interval| {
                let range = parts::range(&interval, digits);
                format!("99 % interval {range}, {} runs", interval.runs)
            },
        );
        format!(
            "{:>5} × {}: {} ({precision})",
            decimal(ratio, digits),
            self.claim(),
            self.values.join(", "),
        )
    }

    /// Returns the comparison as a card.
    pub(super) fn card(&self) -> Markup {
        let (ratio, interval) = self.ratio;
        let digits = decimals(ratio).max(1);
        html! {
            div.card.{ (self.verdict().class()) } {
                p.ratio { (decimal(ratio, digits)) span.times { "×" } }
                p.claim { a href={ "#" (self.anchor) } { (self.claim()) } }
                p.values { span { (self.values[0]) } ", " span { (self.values[1]) } }
                p.test { span { (self.detail) } "; " span { (self.direction()) } }
                p.sure {
                    @match interval {
                        Some(interval) => {
                            "99\u{a0}% interval " (parts::range(&interval, digits)) ", "
                            (interval.runs) " runs"
                            @if self.verdict() == Verdict::Unproven { ": no significant difference" }
                        },
                        None => "too few runs for an interval",
                    }
                }
            }
        }
    }
}
