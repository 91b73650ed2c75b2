//! Results of a trial: figures by name, samples, histograms and series.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stats::Distribution;

use crate::{Figure, Point};

/// Values in the order of their measurement, in nanoseconds; `None` for a lost packet.
pub type Samples = Vec<Option<u32>>;

/// Reason for an absent percentile.
pub(crate) const TOO_FEW: &str =
    "too few packets returned: fewer than 20 lie beyond this percentile";

/// Results of a trial, in the form that all experiments share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Values of the experiment's parameters.
    pub point: Point,
    /// Figures by name, in the unit at the end of the name.
    pub figures: BTreeMap<String, f64>,
    /// Figures without a value, each with the reason in words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: BTreeMap<String, String>,
    /// For each figure that is a share, the number of packets that it is a share of.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub of: BTreeMap<String, u64>,
    /// Samples by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub samples: BTreeMap<String, Samples>,
    /// Distributions by name, in nanoseconds unless stated otherwise: HdrHistogram V2 format,
    /// deflated, in base64.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub histograms: BTreeMap<String, String>,
    /// Socket types and timestamp sources of the tester, in words; `None` if not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instrument: Option<String>,
    /// Counters of the device's rules; `None` without OpenFlow, or if not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openflow: Option<OpenFlowEvidence>,
    /// Pairs of numbers by name, usually in the order of time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Vec<[f64; 2]>>,
}

/// Counters of a device's rules, which prove that packets took the path of the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenFlowEvidence {
    /// Packet-ins that the device sent during the trial.
    pub packet_ins: u64,
    /// Packets of the rule towards the server.
    pub towards_server: u64,
    /// Packets of the rule towards the client.
    pub towards_client: u64,
}

impl Reading {
    /// Returns a reading without figures, of a trial at `point`.
    #[must_use]
    pub fn at(point: &Point) -> Self {
        Self {
            point: point.clone(),
            ..Self::default()
        }
    }

    /// Adds a figure. A value that is not finite becomes an absent figure.
    pub fn put(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.figures.insert(name.to_owned(), value);
        } else {
            self.lack(name, "the result is not a number");
        }
    }

    /// Adds the share `count` of `all` packets; an absent figure if `all` is 0.
    pub fn put_share(&mut self, name: &str, count: u64, all: u64) {
        match all {
            0 => self.lack(name, "no packet was sent"),
            all => {
                self.put(name, count as f64 / all as f64);
                self.of.insert(name.to_owned(), all);
            }
        }
    }

    /// Adds quantiles of nanoseconds as figures in microseconds. The quantiles are given in
    /// thousandths; those that too few values support become absent figures.
    pub fn put_quantiles_us(&mut self, all: &Distribution, quantiles: &[(&str, u16)]) {
        for &(name, thousandths) in quantiles {
            match all.supports(thousandths) {
                true => self.put(name, f64::from(all.quantile(thousandths)) / 1e3),
                false => self.lack(name, TOO_FEW),
            }
        }
    }

    /// Records the reason why a figure has no value.
    pub fn lack(&mut self, name: &str, reason: impl Into<String>) {
        self.absent.insert(name.to_owned(), reason.into());
    }

    /// Records one reason why several figures have no value.
    pub fn lack_each<'a>(&mut self, names: impl IntoIterator<Item = &'a str>, reason: &str) {
        for name in names {
            self.lack(name, reason);
        }
    }

    /// Returns a reading of a trial at `point` in which all `figures` are absent for one reason.
    #[must_use]
    pub fn lacking(point: &Point, figures: &[Figure], reason: &str) -> Self {
        let mut reading = Self::at(point);
        reading.lack_each(figures.iter().map(|figure| figure.name), reason);
        reading
    }
}
