//! Figures that represent an experiment in the overview and in comparisons.

use std::collections::BTreeMap;

use record::{Better, Description, Figure, HeadlineFigure, View};

use super::readings::{Facet, Readings, heading, suffix};
use crate::analysis::ByRun;

/// Figure of an experiment at some of its points.
pub(in crate::html) struct MainFigure<'r, 'a> {
    /// Title.
    pub(in crate::html) title: String,
    /// Figure.
    pub(in crate::html) figure: &'static Figure,
    /// Experiment.
    pub(in crate::html) experiment: &'static Description,
    readings: &'r Readings<'a>,
    facets: Vec<Facet>,
}

/// Row of the overview.
pub(in crate::html) enum OverviewRow<'r, 'a> {
    /// A figure.
    Figure(MainFigure<'r, 'a>),
    /// The greatest value of a parameter at which another figure stays within a limit.
    Highest(Highest<'r, 'a>),
}

/// Returns the main figure of each experiment, for comparisons.
pub(in crate::html) fn main_figures<'r, 'a>(all: &'r [Readings<'a>]) -> Vec<MainFigure<'r, 'a>> {
    all.iter().map(main_figure).collect()
}

fn main_figure<'r, 'a>(readings: &'r Readings<'a>) -> MainFigure<'r, 'a> {
    let headlines = rows_of(readings).into_iter();
    let mut figures = headlines.filter_map(|row| match row {
        OverviewRow::Figure(figure) => Some(figure),
        OverviewRow::Highest(_) => None,
    });
    figures.next().unwrap_or_else(|| over_all_points(readings))
}

/// Returns the rows of the overview.
pub(in crate::html) fn rows<'r, 'a>(all: &'r [Readings<'a>]) -> Vec<OverviewRow<'r, 'a>> {
    let rows = all.iter().flat_map(|readings| {
        let rows = rows_of(readings);
        match rows.is_empty() {
            true => vec![OverviewRow::Figure(over_all_points(readings))],
            false => rows,
        }
    });
    rows.collect()
}

/// Returns the headlines of an experiment.
fn rows_of<'r, 'a>(readings: &'r Readings<'a>) -> Vec<OverviewRow<'r, 'a>> {
    let experiment = readings.experiment;
    let rows = experiment.headlines.iter().map(|headline| {
        let facets = readings.facets_at(headline.at);
        let title = headline.title.to_owned();
        match headline.figure {
            HeadlineFigure::Figure(name) => OverviewRow::Figure(MainFigure {
                title,
                figure: readings.figure(name),
                experiment,
                readings,
                facets,
            }),
            HeadlineFigure::Highest {
                along,
                figure,
                limit,
                unit,
                per,
            } => OverviewRow::Highest(Highest {
                title,
                experiment,
                unit,
                readings,
                along,
                figure: readings.figure(figure),
                limit,
                per,
            }),
        }
    });
    rows.collect()
}

/// Returns the figure that represents an experiment without headlines, over all its points: the
/// first figure of its views with a better direction, or else the first such figure of all.
fn over_all_points<'r, 'a>(readings: &'r Readings<'a>) -> MainFigure<'r, 'a> {
    let experiment = readings.experiment;
    let has_direction = |figure: &&Figure| figure.better != Better::Neither;
    let shown = experiment.views.iter().filter_map(View::figure);
    let mut shown = shown.filter_map(|name| experiment.figure(name));
    let figure = shown
        .find(has_direction)
        .or_else(|| experiment.figures.iter().find(has_direction))
        .unwrap_or(&experiment.figures[0]);
    MainFigure {
        title: format!("{}: {}", experiment.title, figure.title),
        figure,
        experiment,
        readings,
        facets: readings.facets(&[]),
    }
}

impl MainFigure<'_, '_> {
    /// Returns the values of the parameters if the figure is of one point; otherwise an empty text.
    pub(in crate::html) fn place(&self) -> String {
        match self.facets.as_slice() {
            [only] => heading(only),
            _ => String::new(),
        }
    }

    /// Returns the least and the greatest of a device's means over runs; `None` if it has none.
    pub(in crate::html) fn range(&self, device: &str) -> Option<(f64, f64)> {
        let facets = self.facets.iter();
        let means = facets.filter_map(|facet| self.at(device, facet).mean());
        let means: Vec<f64> = means.collect();
        let low = means.iter().copied().reduce(f64::min)?;
        let high = means.iter().copied().reduce(f64::max)?;
        Some((low, high))
    }

    /// Returns the figure of `a` and of `b` over the points of both: for each run the geometric
    /// means over the same points, and the number of points; `None` without any.
    pub(in crate::html) fn paired(&self, a: &str, b: &str) -> Option<(ByRun, ByRun, usize)> {
        if self.figure.better == Better::Neither {
            return None;
        }
        let mut sums: BTreeMap<u32, [f64; 3]> = BTreeMap::new();
        let mut points = 0;
        for facet in &self.facets {
            let pairs = self.at(a, facet).paired_with(&self.at(b, facet));
            // A ratio needs positive numbers.
            let pairs = pairs.into_iter().filter(|(_, a, b)| *a > 0.0 && *b > 0.0);
            let before = sums.values().map(|[_, _, count]| *count).sum::<f64>();
            for (run, a, b) in pairs {
                let sum = sums.entry(run).or_default();
                *sum = [sum[0] + a.ln(), sum[1] + b.ln(), sum[2] + 1.0];
            }
            let after = sums.values().map(|[_, _, count]| *count).sum::<f64>();
            points += usize::from(after > before);
        }
        let mean = |index: usize| {
            let means = sums.iter();
            ByRun::new(means.map(|(run, sum)| (*run, (sum[index] / sum[2]).exp())))
        };
        (points > 0).then(|| (mean(0), mean(1), points))
    }

    /// Returns the values of every device at every point of the experiment.
    pub(in crate::html) fn cells(&self) -> Vec<(&str, String, ByRun)> {
        let mut cells = Vec::new();
        for facet in self.readings.facets(&[]) {
            for device in &self.readings.devices {
                let runs = self.at(&device.name, &facet);
                let place = suffix(&facet).replace(" · ", ", ");
                cells.push((device.name.as_str(), place, runs));
            }
        }
        cells
    }

    fn at(&self, device: &str, facet: &Facet) -> ByRun {
        self.readings.by_run(device, self.figure, facet)
    }
}

/// The greatest value of a parameter up to which a figure stays within a limit in all runs.
pub(in crate::html) struct Highest<'r, 'a> {
    /// Title.
    pub(in crate::html) title: String,
    /// Experiment.
    pub(in crate::html) experiment: &'static Description,
    /// Unit of the parameter.
    pub(in crate::html) unit: &'static str,
    readings: &'r Readings<'a>,
    along: &'static str,
    figure: &'static Figure,
    limit: f64,
    per: f64,
}

impl Highest<'_, '_> {
    /// Returns the value for a device as text, `≥ 300` if it is the greatest that was measured and
    /// `< 100` if it is below the least; `None` if there is none.
    pub(in crate::html) fn text(&self, device: &str) -> Option<String> {
        let axis = self.readings.axis(self.along);
        let values = self.readings.values(axis);
        let steps: Vec<_> = values.iter().filter(|one| one.number().is_some()).collect();
        let runs = |value| {
            let facet = vec![(axis, value)];
            self.readings.by_run(device, self.figure, &facet)
        };
        let limit = self.figure.shown(self.limit);
        let is_within = |value: &&&record::Value| {
            let runs = runs((**value).clone());
            runs.runs() > 0 && runs.values().iter().all(|one| *one <= limit)
        };
        let number = |value: &record::Value| {
            let number = value.number().unwrap_or_default() as f64 / self.per;
            crate::format::decimal(number, 0)
        };
        let (first, last) = (steps.first()?, steps.last()?);
        match steps.iter().take_while(is_within).last() {
            Some(highest) if highest == last => Some(format!("≥ {}", number(highest))),
            Some(highest) => Some(number(highest)),
            None if runs((*first).clone()).runs() == 0 => None,
            None => Some(format!("< {}", number(first))),
        }
    }
}

#[cfg(test)]
mod tests {
    use record::fixture;

    use super::*;
    use crate::html::catalogue::all_readings;

    #[test]
    fn highest_rate_without_loss_is_a_measured_one() {
        let results = fixture::results(fixture::entries());
        let all = all_readings(&results);
        let rows = rows(&all);
        let highest = rows.iter().find_map(|row| match row {
            OverviewRow::Highest(highest) => Some(highest),
            OverviewRow::Figure(_) => None,
        });
        let highest = highest.unwrap();
        let rates = ["comporta", "ovs", "linux-bridge"].map(|name| highest.text(name).unwrap());
        for rate in &rates {
            assert!(
                ["≥ 300", "100", "200", "< 100"].contains(&rate.as_str()),
                "{rates:?}"
            );
        }
        assert_eq!(highest.text("none"), None);
    }

    #[test]
    fn headline_is_of_one_point() {
        let results = fixture::results(fixture::entries());
        let all = all_readings(&results);
        let mains = main_figures(&all);
        let echo = mains.iter().find(|one| one.experiment.name == "echo");
        let place = echo.unwrap().place();
        assert_eq!(place, "match_set exact, frame_bytes 64");
    }
}
