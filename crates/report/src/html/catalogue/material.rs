//! The readings of one experiment, put in order: which devices, which points, which numbers.

use std::collections::{BTreeMap, BTreeSet};

use record::{
    Description, DeviceRecord, Figure, Outcome, Parameter, Point, Reading, Results, Role, Trial,
    Value, Values,
};
use stats::{Histogram, supports_quantile};

use crate::analysis::ByRun;

/// Everything of one experiment.
pub(in crate::html) struct Material<'a> {
    /// The experiment.
    pub(super) experiment: &'static Description,
    /// The devices that took part.
    pub(super) devices: Vec<&'a DeviceRecord>,
    readings: Vec<(&'a Trial, &'a Reading)>,
}

/// Some axes with a value each, in the order of their declaration: what a table is about.
pub(super) type Facet = Vec<(&'static Parameter, Value)>;

impl<'a> Material<'a> {
    /// What there is of `experiment`; none if there is nothing.
    pub(super) fn of(results: &'a Results, experiment: &'static Description) -> Option<Self> {
        let name = experiment.name;
        let trials = results.trials().iter();
        let readings = trials.filter_map(|trial| match &trial.outcome {
            Some(Outcome::Reading(reading)) if trial.experiment == name => Some((trial, reading)),
            _ => None,
        });
        results.has(name).then(|| Self {
            experiment,
            devices: results.devices_in(name),
            readings: readings.collect(),
        })
    }

    /// A figure that the experiment declares.
    pub(super) fn figure(&self, name: &str) -> &'static Figure {
        let figure = self.experiment.figure(name);
        figure.expect("the catalogue's test looks after views")
    }

    /// A parameter that the experiment declares.
    pub(super) fn axis(&self, name: &str) -> &'static Parameter {
        let parameter = self.experiment.parameter(name);
        parameter.expect("the catalogue's test looks after views")
    }

    /// The axes that have more than one value here.
    pub(super) fn varied(&self) -> Vec<&'static Parameter> {
        let axes = self.experiment.parameters.iter();
        axes.filter(|one| one.role == Role::Axis && self.values(one).len() > 1)
            .collect()
    }

    /// The values of `parameter` here: numbers ascending, words as declared.
    pub(super) fn values(&self, parameter: &Parameter) -> Vec<Value> {
        let points = self.readings.iter().map(|(_, reading)| &reading.point);
        let present: BTreeSet<&Value> = points.filter_map(|p| p.get(parameter.name)).collect();
        let mut values: Vec<Value> = present.into_iter().cloned().collect();
        if let Values::Words { all, .. } = parameter.values {
            let place = |value: &Value| all.iter().position(|word| Value::word(word) == *value);
            values.sort_by_key(place);
        }
        values
    }

    /// Every combination of the varied axes but `shown`.
    pub(super) fn facets(&self, shown: &[&str]) -> Vec<Facet> {
        let mut facets = vec![Facet::new()];
        for parameter in self.varied() {
            if shown.contains(&parameter.name) {
                continue;
            }
            let values = self.values(parameter);
            let with_each = |facet: &Facet| {
                let longer = |value: &Value| {
                    let mut facet = facet.clone();
                    facet.push((parameter, value.clone()));
                    facet
                };
                values.iter().map(longer).collect::<Vec<_>>()
            };
            facets = facets.iter().flat_map(with_each).collect();
        }
        facets.retain(|facet| {
            self.readings
                .iter()
                .any(|(_, one)| agrees(&one.point, facet))
        });
        facets
    }

    /// `facet` with the axes that have one value here and are not `shown`: all there is to say of a
    /// place.
    pub(super) fn whole(&self, facet: &Facet, shown: &[&str]) -> Facet {
        let axes = self.experiment.parameters.iter();
        let axes = axes.filter(|one| one.role == Role::Axis && !shown.contains(&one.name));
        axes.filter_map(|axis| {
            let given = facet.iter().find(|(one, _)| one.name == axis.name);
            let given = given.map(|(_, value)| value.clone());
            let value = given.or_else(|| match self.values(axis).as_slice() {
                [only] => Some(only.clone()),
                _ => None,
            });
            Some((axis, value?))
        })
        .collect()
    }

    /// `figure` of `device` where `facet` says, a number for each valid run.
    pub(super) fn by_run(&self, device: &str, figure: &str, facet: &Facet) -> ByRun {
        let mut runs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (trial, reading) in self.valid(device, facet) {
            if let Some(value) = reading.figures.get(figure) {
                runs.entry(trial.run).or_default().push(*value);
            }
        }
        let means = runs.into_iter();
        ByRun::new(means.map(|(run, values)| {
            let count = values.len() as f64;
            (run, values.into_iter().sum::<f64>() / count)
        }))
    }

    /// All runs' values of a histogram together; none if there are none.
    pub(super) fn histogram(&self, device: &str, name: &str, facet: &Facet) -> Option<Histogram> {
        let mut all = Histogram::default();
        for (_, reading) in self.valid(device, facet) {
            // What cannot be read is of a later lab, or damaged: it shows as missing.
            let one = reading.histograms.get(name);
            if let Some(Ok(one)) = one.map(|text| Histogram::decode(text)) {
                all.merge(&one);
            }
        }
        (all.count() > 0).then_some(all)
    }

    /// How many values each run's distribution has at least, and all together; none without one.
    pub(super) fn values_of(&self, device: &str, facet: &Facet) -> Option<(u64, u64)> {
        let mut counts = Vec::new();
        for (_, reading) in self.valid(device, facet) {
            let delays = DELAYS
                .iter()
                .find_map(|name| reading.histograms.get(*name))?;
            counts.push(Histogram::decode(delays).ok()?.count());
        }
        let least = counts.iter().copied().min()?;
        Some((least, counts.iter().sum()))
    }

    /// Whether runs were long enough for `figure`, if it is a percentile of what has a
    /// distribution: twenty values of each must be expected beyond it.
    pub(super) fn supports(&self, device: &str, figure: &Figure, facet: &Facet) -> bool {
        let Some(share) = share_of(figure.name).filter(|share| *share > 0.5) else {
            return true;
        };
        let values = self.values_of(device, facet);
        values.is_none_or(|(least, _)| supports_quantile(least, share))
    }

    /// Why `figure` of `device` has no value where `facet` says, if that was told.
    pub(super) fn reason(&self, device: &str, figure: &str, facet: &Facet) -> Option<&'a str> {
        let all = self.all(device, facet);
        let mut told = all.filter_map(|(trial, reading)| {
            let void = trial.flaws.iter().find(|flaw| flaw.void);
            let absent = reading.absent.get(figure).map(String::as_str);
            absent.or_else(|| void.map(|flaw| flaw.reason.as_str()))
        });
        told.next()
    }

    /// What is the same in all tests: what it is, and its value.
    pub(super) fn constants(&self) -> Vec<(&'static str, String)> {
        let parameters = self.experiment.parameters.iter();
        parameters
            .filter_map(|parameter| match self.values(parameter).as_slice() {
                [only] => Some((parameter.about, shown(only))),
                _ => None,
            })
            .collect()
    }

    fn valid(&self, device: &str, facet: &Facet) -> impl Iterator<Item = (&'a Trial, &'a Reading)> {
        self.all(device, facet)
            .filter(|(trial, _)| trial.is_valid())
    }

    fn all(&self, device: &str, facet: &Facet) -> impl Iterator<Item = (&'a Trial, &'a Reading)> {
        let readings = self.readings.iter().copied();
        readings.filter(move |(trial, one)| trial.device == device && agrees(&one.point, facet))
    }
}

/// The distributions that percentiles and losses of an experiment are of.
const DELAYS: [&str; 2] = ["delay_ns", "round_trip_ns"];

/// The share that a percentile's name tells: 0.999 for `p999_us`; none for other figures.
fn share_of(figure: &str) -> Option<f64> {
    let digits = figure.strip_prefix('p')?.split('_').next()?;
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| format!("0.{digits}").parse().ok()).flatten()
}

fn agrees(point: &Point, facet: &Facet) -> bool {
    let mut parts = facet.iter();
    parts.all(|(parameter, value)| point.get(parameter.name) == Some(value))
}

/// ` · size 64, load 50`, for behind a title; empty if nothing is to be said.
pub(super) fn words(facet: &Facet) -> String {
    let parts = facet.iter();
    let parts: Vec<String> = parts
        .map(|(parameter, value)| format!("{} {}", parameter.name, shown(value)))
        .collect();
    match parts.as_slice() {
        [] => String::new(),
        parts => format!(" · {}", parts.join(", ")),
    }
}

/// A value as people read it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) => crate::format::count(*number),
        Value::Word(word) => word.clone(),
    }
}

/// A number of a parameter as people read it.
pub(super) fn shown_number(value: f64) -> String {
    crate::format::decimal(value, usize::from(value.fract() != 0.0))
}

/// `facet` and one more.
pub(super) fn with(facet: &Facet, parameter: &'static Parameter, value: &Value) -> Facet {
    let mut facet = facet.clone();
    facet.push((parameter, value.clone()));
    facet
}
