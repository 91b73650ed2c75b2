//! Thresholds for figures, in one line or in a file.
//!
//! A threshold is met if the whole interval of a figure is on the required side of the limit, and
//! not met if the whole interval is on the other side. Otherwise, and for a figure that was not
//! measured, it is inconclusive, which has an exit code of its own ([`exit_code`]).
//!
//! `echo[device=comporta,match_set=ip].p99_us < 50` has a limit in the figure's unit.
//! `forwarding-rate[offer=flat-out].received_pps >= 2.5 * ovs` has one relative to another device
//! at the same point, run by run, which is independent of the machine's speed. Without a device in
//! the brackets, a threshold applies to all devices except the bare link.

mod judge;
mod output;
mod parse;
mod rules;

use std::fmt;
use std::path::PathBuf;

use record::{Catalogue, Description, nearest};
use stats::Interval;

use crate::figures::{self, CellKey};

pub use judge::judge;
pub use output::{junit, markdown};
pub use parse::BadThreshold;
pub use rules::{BadRules, read_rules};

/// Threshold for figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// Experiment; `None` for all.
    pub experiment: Option<&'static Description>,
    /// Device; `None` for all except the bare link.
    pub device: Option<String>,
    /// Required values of parameters, as text.
    pub point: Vec<(String, String)>,
    /// Figure; `None` for all.
    pub figure: Option<String>,
    /// Limit.
    pub limit: Limit,
}

/// Limit of a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// Number in the figure's unit.
    Number {
        /// Required side.
        side: Side,
        /// Number.
        number: f64,
    },
    /// Multiple of the figure of another device at the same point.
    Device {
        /// Required side.
        side: Side,
        /// Factor.
        factor: f64,
        /// Other device.
        device: String,
    },
    /// The figure in another run, with a tolerated regression.
    Baseline {
        /// Directory of the other run.
        directory: PathBuf,
        /// Tolerated regression as a share.
        regression: f64,
    },
}

/// Required side of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Below.
    Less,
    /// Below or equal.
    AtMost,
    /// Above.
    More,
    /// Above or equal.
    AtLeast,
}

impl Side {
    /// All sides, the longest operators first.
    pub const ALL: [Self; 4] = [Self::AtMost, Self::AtLeast, Self::Less, Self::More];

    /// Returns the operator.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
        }
    }

    /// Returns the verdict on an interval that must be on this side of `limit`.
    fn judge(self, interval: &Interval, limit: f64) -> Verdict {
        let (low, high) = (interval.low, interval.high);
        let (met, not_met) = match self {
            Self::Less => (high < limit, low >= limit),
            Self::AtMost => (high <= limit, low > limit),
            Self::More => (low > limit, high <= limit),
            Self::AtLeast => (low >= limit, high < limit),
        };
        match (met, not_met) {
            (true, _) => Verdict::Met,
            (_, true) => Verdict::NotMet,
            _ => Verdict::Inconclusive,
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.experiment.map_or("*", |one| one.name))?;
        let device = self.device.iter().map(|device| format!("device={device}"));
        let point = self
            .point
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let filters: Vec<String> = device.chain(point).collect();
        if !filters.is_empty() {
            write!(f, "[{}]", filters.join(","))?;
        }
        write!(f, ".{}", self.figure.as_deref().unwrap_or("*"))?;
        match &self.limit {
            Limit::Number { side, number } => write!(f, " {} {number}", side.sign()),
            Limit::Device {
                side,
                factor,
                device,
            } => write!(f, " {} {factor} * {device}", side.sign()),
            Limit::Baseline {
                directory,
                regression,
            } => {
                let share = regression * 100.0;
                write!(f, " no worse than in {} by {share} %", directory.display())
            }
        }
    }
}

impl Threshold {
    /// Checks that the experiment, or any of `catalogue`, declares the figure and the parameters.
    fn check_names(&self, catalogue: Catalogue) -> Result<(), String> {
        let experiments: Vec<&Description> = match self.experiment {
            Some(experiment) => vec![experiment],
            None => catalogue.iter().collect(),
        };
        let subject = self.experiment.map_or("no experiment", |one| one.name);
        let refuse = |kind: &str, text: &str, known: Vec<&'static str>| {
            let has = if self.experiment.is_some() {
                "has no"
            } else {
                "has a"
            };
            let hint = nearest(text, known.iter().copied());
            let all = match (self.experiment, known.is_empty()) {
                (Some(_), false) => format!(": expected one of {}", known.join(", ")),
                (Some(_), true) => ": it has none".to_owned(),
                (None, _) => String::new(),
            };
            Err(format!("{subject} {has} {kind} '{text}'{hint}{all}"))
        };
        if let Some(name) = &self.figure {
            let known = experiments.iter().flat_map(|one| figures::declared(one));
            let known: Vec<&'static str> = known.map(|figure| figure.name).collect();
            if !known.contains(&name.as_str()) {
                return refuse("figure", name, known);
            }
        }
        for (name, _) in &self.point {
            let known = experiments.iter().flat_map(|one| figures::parameters(one));
            let known: Vec<&'static str> = known.collect();
            if !known.contains(&name.as_str()) {
                return refuse("parameter", name, known);
            }
        }
        Ok(())
    }
}

/// Verdict on a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The figure is on the other side of the limit.
    NotMet,
    /// The interval contains the limit, or there is none.
    Inconclusive,
    /// The figure is on the required side.
    Met,
}

impl Verdict {
    /// Returns the verdict in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotMet => "not met",
            Self::Inconclusive => "inconclusive",
            Self::Met => "met",
        }
    }
}

/// Verdict on one threshold and one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Threshold as text.
    pub threshold: String,
    /// Cell; `None` if there is no such figure.
    pub cell: Option<CellKey>,
    /// Verdict.
    pub verdict: Verdict,
    /// Interval of the figure, or of its ratio to another.
    pub interval: Option<Interval>,
    /// The interval with its unit, or the reason why there is none.
    pub measured: String,
}

/// Exit code if a threshold is not met.
pub const NOT_MET: u8 = 1;
/// Exit code if no threshold is not met, and one is inconclusive.
pub const INCONCLUSIVE: u8 = 4;

/// Returns the exit code: 0, [`NOT_MET`] or [`INCONCLUSIVE`].
#[must_use]
pub fn exit_code(judgements: &[Judgement]) -> u8 {
    let verdicts = judgements.iter().map(|judgement| judgement.verdict);
    match verdicts.min() {
        Some(Verdict::NotMet) => NOT_MET,
        Some(Verdict::Inconclusive) => INCONCLUSIVE,
        Some(Verdict::Met) | None => 0,
    }
}

#[cfg(test)]
mod tests;
