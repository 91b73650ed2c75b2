//! Readings of one experiment, by device, point and run.

use std::collections::{BTreeMap, BTreeSet};

use record::{
    Description, DeviceRecord, Figure, Focus, Parameter, Point, Reading, Results, Role, Samples,
    Trial, Value, Values,
};
use stats::{Distribution, Histogram, inter_packet_variations, supports_quantile};

use crate::analysis::ByRun;

/// All readings of an experiment.
pub(in crate::html) struct Readings<'a> {
    /// Experiment.
    pub(in crate::html) experiment: &'static Description,
    /// Devices that it was measured on.
    pub(in crate::html) devices: Vec<&'a DeviceRecord>,
    trials: Vec<(&'a Trial, &'a Reading)>,
}

/// Some axes with one value each, in the order of their declaration.
pub(super) type Facet = Vec<(&'static Parameter, Value)>;

impl<'a> Readings<'a> {
    /// Returns the readings of `experiment`; `None` if it was not measured.
    pub(super) fn of(results: &'a Results, experiment: &'static Description) -> Option<Self> {
        let name = experiment.name;
        let trials = results.trials().iter();
        let readings = trials
            .filter(|trial| trial.experiment == name)
            .filter_map(|trial| Some((trial, trial.reading.as_ref()?)));
        results.has(name).then(|| Self {
            experiment,
            devices: results.devices_in(name),
            trials: readings.collect(),
        })
    }

    /// Returns a figure that the experiment declares.
    pub(super) fn figure(&self, name: &str) -> &'static Figure {
        let figure = self.experiment.figure(name);
        figure.expect("a test of the catalogue checks the views")
    }

    /// Returns a parameter that the experiment declares.
    pub(super) fn axis(&self, name: &str) -> &'static Parameter {
        let parameter = self.experiment.parameter(name);
        parameter.expect("a test of the catalogue checks the views")
    }

    /// Returns the bare link, if it was measured.
    pub(super) fn link(&self) -> Option<&'a DeviceRecord> {
        self.devices.iter().find(|one| one.calibration).copied()
    }

    /// Returns the axes that have more than one value.
    pub(super) fn varied(&self) -> Vec<&'static Parameter> {
        let axes = self.experiment.parameters.iter();
        axes.filter(|one| one.role == Role::Axis && self.values(one).len() > 1)
            .collect()
    }

    /// Returns the values of `parameter`: numbers in ascending order, then words as declared.
    pub(super) fn values(&self, parameter: &Parameter) -> Vec<Value> {
        let points = self.trials.iter().map(|(_, reading)| &reading.point);
        let present: BTreeSet<&Value> = points.filter_map(|p| p.get(parameter.name)).collect();
        let mut values: Vec<Value> = present.into_iter().cloned().collect();
        if let Values::Words { all, .. } = parameter.values {
            let position = |value: &Value| all.iter().position(|word| Value::word(word) == *value);
            values.sort_by_key(position);
        }
        values
    }

    /// Returns all combinations of the varied axes except `shown`.
    pub(super) fn facets(&self, shown: &[&str]) -> Vec<Facet> {
        let mut facets = vec![Facet::new()];
        for parameter in self.varied() {
            if shown.contains(&parameter.name) {
                continue;
            }
            let values = self.values(parameter);
            let with_each = |facet: &Facet| {
                let values = values.iter();
                values
                    .map(|value| with(facet, parameter, value))
                    .collect::<Vec<_>>()
            };
            facets = facets.iter().flat_map(with_each).collect();
        }
        facets.retain(|facet| self.trials.iter().any(|(_, one)| is_at(&one.point, facet)));
        facets
    }

    /// Returns the facets in which the parameters of `focus` have the given values.
    pub(super) fn facets_at(&self, focus: &[(&str, Focus)]) -> Vec<Facet> {
        let mut facets = self.facets(&[]);
        for (name, at) in focus {
            let parameter = self.axis(name);
            let values = self.values(parameter);
            let value = match at {
                Focus::First => values.first().cloned(),
                Focus::Last => values.last().cloned(),
                Focus::Word(word) => Some(Value::word(word)),
            };
            // An axis with one value is in no facet.
            let is_single = values.len() < 2;
            facets.retain(|facet| {
                let here = facet.iter().find(|(one, _)| one.name == *name);
                match here {
                    Some((_, here)) => Some(here) == value.as_ref(),
                    None => is_single && values.first() == value.as_ref(),
                }
            });
        }
        facets
    }

    /// Returns `facet` with the axes that have one value only and are not `shown`.
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

    /// Returns `figure` of `device` at a facet in the unit of reports, for each valid run.
    pub(super) fn by_run(&self, device: &str, figure: &Figure, facet: &Facet) -> ByRun {
        let mut runs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (trial, reading) in self.valid(device, facet) {
            if let Some(value) = reading.figures.get(figure.name) {
                runs.entry(trial.run)
                    .or_default()
                    .push(figure.shown(*value));
            }
        }
        let means = runs.into_iter();
        ByRun::new(means.map(|(run, values)| {
            let count = values.len() as f64;
            (run, values.into_iter().sum::<f64>() / count)
        }))
    }

    /// Returns the distribution of samples or of a histogram over all valid runs; `None` if there
    /// are no values.
    pub(super) fn distribution(
        &self,
        device: &str,
        name: &str,
        facet: &Facet,
    ) -> Option<DelayDistribution> {
        let samples = self.samples(device, name, facet);
        let values = samples.iter().flat_map(|(_, samples)| samples.iter());
        if let Some(all) = Distribution::new(values.flatten().copied()) {
            return Some(DelayDistribution::Exact(all));
        }
        let mut all = Histogram::default();
        for (_, reading) in self.valid(device, facet) {
            // A histogram of a later lab, or a damaged one, counts as missing.
            let one = reading.histograms.get(name);
            if let Some(Ok(one)) = one.map(|text| Histogram::decode(text)) {
                all.merge(&one);
            }
        }
        (all.count() > 0).then_some(DelayDistribution::Binned(all))
    }

    /// Returns the distribution of the differences between consecutive samples, over all valid
    /// runs.
    pub(super) fn variations(
        &self,
        device: &str,
        name: &str,
        facet: &Facet,
    ) -> Option<DelayDistribution> {
        let samples = self.samples(device, name, facet);
        let all = samples
            .iter()
            .flat_map(|(_, samples)| inter_packet_variations(samples));
        Distribution::new(all).map(DelayDistribution::Exact)
    }

    /// Returns the samples of each valid run.
    pub(super) fn samples(
        &self,
        device: &str,
        name: &str,
        facet: &Facet,
    ) -> Vec<(u32, &'a Samples)> {
        let valid = self.valid(device, facet);
        valid
            .filter_map(|(trial, reading)| Some((trial.run, reading.samples.get(name)?)))
            .collect()
    }

    /// Returns the number of values of a run's distribution, of the smallest and of all together;
    /// `None` without distributions.
    fn value_counts(&self, device: &str, facet: &Facet) -> Option<(u64, u64)> {
        let mut counts = Vec::new();
        for (_, reading) in self.valid(device, facet) {
            counts.push(value_count(reading)?);
        }
        let least = counts.iter().copied().min()?;
        Some((least, counts.iter().sum()))
    }

    /// Returns the number of packets that were sent in all runs, if `figure` is a share of them
    /// that was lost; `None` if it is another figure, or if the number is not recorded.
    pub(super) fn sent(&self, device: &str, figure: &Figure, facet: &Facet) -> Option<u64> {
        let mut sum = None;
        for (_, reading) in self.valid(device, facet) {
            if let Some(of) = reading.of.get(figure.name) {
                *sum.get_or_insert(0) += of;
            }
        }
        // If nothing was lost, the distribution has as many values as packets were sent.
        let is_loss = LOSSES.contains(&figure.name);
        sum.or_else(|| match is_loss {
            true => self.value_counts(device, facet).map(|(_, all)| all),
            false => None,
        })
    }

    /// Returns true if the runs were long enough for `figure`, if it is a percentile of a
    /// distribution: twenty values of each run must lie beyond it.
    pub(super) fn supports(&self, device: &str, figure: &Figure, facet: &Facet) -> bool {
        let Some(share) = share_of(figure.name).filter(|share| *share > 0.5) else {
            return true;
        };
        let values = self.value_counts(device, facet);
        values.is_none_or(|(least, _)| supports_quantile(least, share))
    }

    /// Returns the recorded reason why `figure` of `device` has no value at a facet.
    pub(super) fn reason(&self, device: &str, figure: &str, facet: &Facet) -> Option<&'a str> {
        let all = self.all(device, facet);
        let mut reasons = all.filter_map(|(trial, reading)| {
            let void = trial.flaws.iter().find(|flaw| flaw.void);
            let absent = reading.absent.get(figure).map(String::as_str);
            absent.or_else(|| void.map(|flaw| flaw.reason.as_str()))
        });
        reasons.next()
    }

    /// Returns the parameters that have one value only, in words, with the value.
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
        let trials = self.trials.iter().copied();
        trials.filter(move |(trial, one)| trial.device == device && is_at(&one.point, facet))
    }
}

/// Distribution of times in nanoseconds.
pub(super) enum DelayDistribution {
    /// Of samples.
    Exact(Distribution),
    /// Of a histogram.
    Binned(Histogram),
}

/// Points of a curve of samples; more would not show.
const POINTS: usize = 160;

impl DelayDistribution {
    /// Returns the number of values.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Exact(all) => all.count(),
            Self::Binned(all) => usize::try_from(all.count()).unwrap_or(usize::MAX),
        }
    }

    /// Returns a quantile, given in ten-thousandths, in nanoseconds.
    pub(super) fn quantile(&self, ten_thousandths: u16) -> f64 {
        match self {
            Self::Exact(all) => {
                let rank = (all.count() * usize::from(ten_thousandths)).div_ceil(10_000);
                let last = all.count() - 1;
                f64::from(all.values()[rank.max(1).min(last + 1) - 1])
            }
            Self::Binned(all) => all.quantile(f64::from(ten_thousandths) / 1e4) as f64,
        }
    }

    /// Returns the points of the cumulative distribution: nanoseconds and shares.
    pub(super) fn shares(&self) -> Vec<(f64, f64)> {
        match self {
            Self::Exact(all) => {
                let points = all.curve(POINTS).into_iter();
                points.map(|(ns, share)| (f64::from(ns), share)).collect()
            }
            Self::Binned(all) => shares(all),
        }
    }

    /// Returns the same with all points of the tail.
    pub(super) fn shares_with_tail(&self) -> Vec<(f64, f64)> {
        match self {
            Self::Exact(all) => {
                let values = all.values().iter().map(|&ns| u64::from(ns));
                shares(&Histogram::of(values))
            }
            Self::Binned(all) => shares(all),
        }
    }
}

fn shares(all: &Histogram) -> Vec<(f64, f64)> {
    let points = all.shares().into_iter();
    points.map(|(ns, share)| (ns as f64, share)).collect()
}

/// Distributions that the percentiles and losses of an experiment refer to.
const DELAYS: [&str; 2] = ["delay_ns", "round_trip_ns"];

/// Figures that are losses in packets or in per cent, of the packets of a distribution.
const LOSSES: [&str; 2] = ["loss_percent", "lost"];

fn value_count(reading: &Reading) -> Option<u64> {
    DELAYS.iter().find_map(|name| {
        if let Some(samples) = reading.samples.get(*name) {
            return Some(samples.iter().flatten().count() as u64);
        }
        let histogram = reading.histograms.get(*name)?;
        Some(Histogram::decode(histogram).ok()?.count())
    })
}

/// Returns the share in the name of a percentile: 0.999 for `p999_us`; `None` for other figures.
fn share_of(figure: &str) -> Option<f64> {
    let digits = figure.strip_prefix('p')?.split('_').next()?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number
        .then(|| format!("0.{digits}").parse().ok())
        .flatten()
}

fn is_at(point: &Point, facet: &Facet) -> bool {
    let mut parts = facet.iter();
    parts.all(|(parameter, value)| point.get(parameter.name) == Some(value))
}

/// Returns a facet as the end of a title: ` · size 64, load 50`; empty for no axes.
pub(super) fn suffix(facet: &Facet) -> String {
    match heading(facet) {
        text if text.is_empty() => text,
        text => format!(" · {text}"),
    }
}

/// Returns a facet as the head of a column or of a row: `size 64, load 50`.
pub(super) fn heading(facet: &Facet) -> String {
    let parts = facet.iter();
    let parts: Vec<String> = parts
        .map(|(parameter, value)| format!("{} {}", parameter.name, shown(value)))
        .collect();
    parts.join(", ")
}

/// Returns a value as text.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) => crate::format::count(*number),
        Value::Word(word) => word.clone(),
    }
}

/// Returns the number of a parameter as text.
pub(super) fn shown_number(value: f64) -> String {
    crate::format::decimal(value, usize::from(value.fract() != 0.0))
}

/// Returns `facet` with one more axis.
pub(super) fn with(facet: &Facet, parameter: &'static Parameter, value: &Value) -> Facet {
    let mut facet = facet.clone();
    facet.push((parameter, value.clone()));
    facet
}
