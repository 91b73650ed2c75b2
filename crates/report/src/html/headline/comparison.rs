//! One number of two devices, and whether it tells them apart.

use maud::{Markup, html};
use record::Better;
use stats::{CONFIDENCE, Interval, cliffs_delta, paired_contrast};

use crate::analysis::{ByRun, RUNS_MIN};
use crate::format::{decimal, decimals};
use crate::html::catalogue::MainFigure;
use crate::html::parts;

/// What a comparison comes to, with the certainty of all intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The first device is better.
    Better,
    /// The second is.
    Worse,
    /// The interval leaves a doubt.
    Unsure,
}

impl Verdict {
    /// Its class in the style sheet.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Unsure => "unsure",
        }
    }
}

/// A device's number.
pub(super) struct Side {
    name: String,
    runs: ByRun,
    shown: Option<String>,
}

impl Side {
    /// `runs` of the device `name`; `show` prints their mean.
    pub(super) fn of(name: &str, runs: ByRun, show: impl Fn(f64) -> String) -> Self {
        let shown = runs.mean().map(show);
        Self {
            name: name.to_owned(),
            runs,
            shown,
        }
    }
}

/// How likely ratios so far from 1 are by chance, run by run; none for too few runs.
fn chance(ours: &ByRun, theirs: &ByRun) -> Option<f64> {
    let pairs = ours.paired_with(theirs).into_iter();
    let pairs: Vec<(f64, f64)> = pairs.map(|(_, a, b)| (b.ln(), a.ln())).collect();
    let sound = pairs.len() >= RUNS_MIN && pairs.iter().all(|(a, b)| (a + b).is_finite());
    let contrast = sound
        .then(|| paired_contrast(&pairs, CONFIDENCE))
        .flatten()?;
    Some(contrast.p)
}

/// One number of two devices.
pub(super) struct Comparison {
    /// The place in the page that tells more.
    pub(super) place: &'static str,
    what: String,
    baseline: String,
    values: [String; 2],
    test: String,
    /// The mean of ratios, and its interval for enough runs.
    pub(super) ratio: (f64, Option<Interval>),
    /// How likely a ratio so far from 1 is by chance, for enough runs.
    pub(super) p: Option<f64>,
    /// How much oftener a run of the first exceeds one of the second than the other way round:
    /// Cliff's delta.
    pub(super) delta: Option<f64>,
    better: Better,
}

impl Comparison {
    /// Of what `ours` and `theirs` say of the same thing; none if either says nothing.
    pub(super) fn of(
        (place, what): (&'static str, &str),
        ours: Side,
        theirs: Side,
        test: String,
        better: Better,
    ) -> Option<Self> {
        let (our_mean, their_mean) = (ours.runs.mean()?, theirs.runs.mean()?);
        let interval = ours.runs.ratio_to(&theirs.runs);
        let values = [&ours, &theirs].map(|side| {
            let shown = side.shown.as_deref().unwrap_or_default();
            format!("{} {shown}", side.name)
        });
        Some(Self {
            place,
            what: what.to_owned(),
            baseline: theirs.name.clone(),
            values,
            test,
            ratio: (
                interval.map_or(our_mean / their_mean, |interval| interval.mean),
                interval,
            ),
            p: chance(&ours.runs, &theirs.runs),
            delta: cliffs_delta(&theirs.runs.values(), &ours.runs.values()),
            better,
        })
    }

    /// Of an experiment's main figure over several tests, each run's ratio already a mean.
    pub(super) fn over_tests(
        main: &MainFigure<'_>,
        values: [String; 2],
        (baseline, ours, theirs): (&str, &ByRun, &ByRun),
        tests: usize,
    ) -> Option<Self> {
        let (our_mean, their_mean) = (ours.mean()?, theirs.mean()?);
        let interval = ours.ratio_to(theirs);
        let over = match tests {
            1 => String::new(),
            tests => format!(", geometric mean of {tests} tests"),
        };
        Some(Self {
            place: main.experiment.name,
            what: main.experiment.title.to_owned(),
            baseline: baseline.to_owned(),
            values,
            test: format!("{}{over}", main.figure.title),
            ratio: (
                interval.map_or(our_mean / their_mean, |interval| interval.mean),
                interval,
            ),
            p: chance(ours, theirs),
            delta: cliffs_delta(&theirs.values(), &ours.values()),
            better: main.figure.better,
        })
    }

    /// Whether the interval leaves a doubt which of the two is better.
    pub(super) fn verdict(&self) -> Verdict {
        let Some(interval) = self.ratio.1 else {
            return Verdict::Unsure;
        };
        match (interval.high < 1.0, interval.low > 1.0, self.better) {
            (true, _, Better::Lower) | (_, true, Better::Higher) => Verdict::Better,
            (true, _, Better::Higher) | (_, true, Better::Lower) => Verdict::Worse,
            (false, false, _) | (_, _, Better::Neither) => Verdict::Unsure,
        }
    }

    /// What is compared with what, in few words.
    pub(super) fn claim(&self) -> String {
        match self.what.starts_with("the ") {
            true => format!("{} of {}", self.what, self.baseline),
            false => format!("{}, as a multiple of {}", self.what, self.baseline),
        }
    }

    /// What is compared, for the head of a row.
    pub(super) fn name(&self) -> &str {
        self.what.strip_prefix("the ").unwrap_or(&self.what)
    }

    /// Which way is better.
    pub(super) const fn direction(&self) -> &'static str {
        match self.better {
            Better::Lower => "lower is better",
            Better::Higher => "higher is better",
            Better::Neither => "neither way is better",
        }
    }

    pub(super) fn line(&self) -> String {
        let (ratio, interval) = self.ratio;
        let digits = decimals(ratio).max(1);
        let sure = interval.map_or_else(
            || "too few runs for an interval".to_owned(),
            |interval| {
                let range = parts::range(&interval, 1.0, digits);
                format!("99 % interval {range}, {} runs", interval.runs)
            },
        );
        format!(
            "{:>5} × {}: {} ({sure})",
            decimal(ratio, digits),
            self.claim(),
            self.values.join(", "),
        )
    }

    pub(super) fn card(&self) -> Markup {
        let (ratio, interval) = self.ratio;
        let digits = decimals(ratio).max(1);
        html! {
            div.card.{ (self.verdict().class()) } {
                p.ratio { (decimal(ratio, digits)) span.times { "×" } }
                p.claim { a href={ "#" (self.place) } { (self.claim()) } }
                p.values { span { (self.values[0]) } ", " span { (self.values[1]) } }
                p.test { span { (self.test) } "; " span { (self.direction()) } }
                p.sure {
                    @match interval {
                        Some(interval) => {
                            "99\u{a0}% interval " (parts::range(&interval, 1.0, digits)) ", "
                            (interval.runs) " runs"
                            @if self.verdict() == Verdict::Unsure { ": no difference is proven" }
                        },
                        None => "too few runs for an interval: nothing is proven",
                    }
                }
            }
        }
    }
}
