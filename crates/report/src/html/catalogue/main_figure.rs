//! The one figure of an experiment that stands for all where there is room for one.

use std::collections::BTreeMap;

use record::Results;
use record::{Better, Description, Figure, View};

use super::material::{Facet, Material};
use crate::analysis::ByRun;

/// An experiment's main figure, and what it came to.
pub(in crate::html) struct MainFigure<'a> {
    /// The experiment.
    pub(in crate::html) experiment: &'static Description,
    /// The figure.
    pub(in crate::html) figure: &'static Figure,
    material: Material<'a>,
}

/// Those of all experiments that there is anything of.
pub(in crate::html) fn mains(results: &Results) -> Vec<MainFigure<'_>> {
    let all = super::families(results).flat_map(|family| super::materials(results, family));
    all.map(|material| MainFigure {
        experiment: material.experiment,
        figure: main_figure(material.experiment),
        material,
    })
    .collect()
}

/// The figure that its first view shows, if one way of it is better; or else the first of
/// which that can be said.
fn main_figure(experiment: &'static Description) -> &'static Figure {
    let judged = |figure: &&Figure| figure.better != Better::Neither;
    let shown = experiment.views.iter().filter_map(View::figure);
    let mut shown = shown.filter_map(|name| experiment.figure(name));
    let found = shown.find(judged);
    found
        .or_else(|| experiment.figures.iter().find(judged))
        .unwrap_or(&experiment.figures[0])
}

impl MainFigure<'_> {
    /// The least and the most of a device's means over runs, test by test; none if it has none.
    pub(in crate::html) fn range(&self, device: &str) -> Option<(f64, f64)> {
        let facets = self.material.facets(&[]);
        let means = facets
            .iter()
            .filter_map(|facet| self.at(device, facet).mean());
        let means: Vec<f64> = means.collect();
        let low = means.iter().copied().reduce(f64::min)?;
        let high = means.iter().copied().reduce(f64::max)?;
        Some((low, high))
    }

    /// The figure of `a` and of `b` over the tests that both did: for each run the geometric
    /// means of the same tests, and how many tests there are; none without any.
    pub(in crate::html) fn paired(&self, a: &str, b: &str) -> Option<(ByRun, ByRun, usize)> {
        if self.figure.better == Better::Neither {
            return None;
        }
        let mut sums: BTreeMap<u32, [f64; 3]> = BTreeMap::new();
        let mut tests = 0;
        for facet in self.material.facets(&[]) {
            let pairs = self.at(a, &facet).paired_with(&self.at(b, &facet));
            // A ratio to nothing, or of nothing, is none.
            let pairs = pairs.into_iter().filter(|(_, a, b)| *a > 0.0 && *b > 0.0);
            let before = sums.values().map(|[_, _, count]| *count).sum::<f64>();
            for (run, a, b) in pairs {
                let sum = sums.entry(run).or_default();
                *sum = [sum[0] + a.ln(), sum[1] + b.ln(), sum[2] + 1.0];
            }
            let after = sums.values().map(|[_, _, count]| *count).sum::<f64>();
            tests += usize::from(after > before);
        }
        let mean = |place: usize| {
            ByRun::new(
                sums.iter()
                    .map(|(run, sum)| (*run, (sum[place] / sum[2]).exp())),
            )
        };
        (tests > 0).then(|| (mean(0), mean(1), tests))
    }

    /// Every device at every point, with what its runs came to.
    pub(in crate::html) fn cells(&self) -> Vec<(&str, String, ByRun)> {
        let mut cells = Vec::new();
        for facet in self.material.facets(&[]) {
            for device in &self.material.devices {
                let runs = self.at(&device.name, &facet);
                let place = super::material::words(&facet).replace(" · ", ", ");
                cells.push((device.name.as_str(), place, runs));
            }
        }
        cells
    }

    fn at(&self, device: &str, facet: &Facet) -> ByRun {
        self.material.by_run(device, self.figure.name, facet)
    }
}
