//! What results must come to, said in a line or a file, and whether they do.
//!
//! A threshold is met if the whole interval of a figure lies on the right side of it, not met
//! if the whole lies on the wrong side, and else it is inconclusive: that is neither a pass
//! nor a failure, and a program that must decide is told so ([`exit_code`]). A figure that was
//! not measured is inconclusive too.
//!
//! `echo[device=comporta,match_set=ip].p99_us < 50` is a limit in the figure's unit;
//! `forwarding-rate[offer=flat-out].received_pps >= 2.5 * ovs` is one in terms of another
//! device at the same point, run by run, which holds on machines whose speed nobody knows.
//! Without a device in the brackets it is for all devices but bare cables.

mod judge;
mod output;
mod parse;
mod rules;

use std::fmt;
use std::path::PathBuf;

use record::nearest;
use record::{Catalogue, Description};
use stats::Interval;

use crate::figures::{self, CellKey};

pub use judge::judge;
pub use output::{junit, markdown};
pub use parse::BadThreshold;
pub use rules::{BadRules, read_rules};

/// Something that results must come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The experiment; `None` for all.
    pub experiment: Option<&'static Description>,
    /// The devices; none for all but bare cables.
    pub device: Option<String>,
    /// What the parameters of a point must be, as text.
    pub point: Vec<(String, String)>,
    /// The figure; none for all.
    pub figure: Option<String>,
    /// What it is held against.
    pub limit: Limit,
}

/// What a figure is held against.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// A number in its unit.
    Number {
        /// On which side it must lie.
        side: Side,
        /// The number.
        number: f64,
    },
    /// So many times what another device has at the same point.
    Device {
        /// On which side it must lie.
        side: Side,
        /// How many times.
        factor: f64,
        /// The other device.
        device: String,
    },
    /// What it was in another run, or better, or worse by no more than a share.
    Baseline {
        /// The directory of the other run.
        directory: PathBuf,
        /// The share.
        regression: f64,
    },
}

/// On which side of a limit a figure must lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Below.
    Less,
    /// Below, or there.
    AtMost,
    /// Above.
    More,
    /// Above, or there.
    AtLeast,
}

impl Side {
    /// Every side.
    pub const ALL: [Self; 4] = [Self::AtMost, Self::AtLeast, Self::Less, Self::More];

    /// As it is written.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
        }
    }

    /// What `interval` says of a number that must lie on this side of `limit`.
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
    /// Checks that its figure and parameters are declared by its experiment, or by any of
    /// `catalogue`.
    fn check_names(&self, catalogue: Catalogue) -> Result<(), String> {
        let experiments: Vec<&Description> = match self.experiment {
            Some(experiment) => vec![experiment],
            None => catalogue.iter().collect(),
        };
        let whose = self.experiment.map_or("no scenario", |one| one.name);
        let refuse = |kind: &str, text: &str, known: Vec<&'static str>| {
            let has = if self.experiment.is_some() {
                "has no"
            } else {
                "has a"
            };
            let hint = nearest(text, known.iter().copied());
            let all = match (self.experiment, known.is_empty()) {
                (Some(_), false) => format!(": one of {} is wanted", known.join(", ")),
                (Some(_), true) => ": it has none".to_owned(),
                (None, _) => String::new(),
            };
            Err(format!("{whose} {has} {kind} '{text}'{hint}{all}"))
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

/// Whether results come to what they must.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// They do not.
    NotMet,
    /// It cannot be told.
    Inconclusive,
    /// They do.
    Met,
}

impl Verdict {
    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotMet => "not met",
            Self::Inconclusive => "inconclusive",
            Self::Met => "met",
        }
    }
}

/// A threshold held against a figure, or against there being none.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The threshold, as text.
    pub threshold: String,
    /// What was judged; none if there was nothing.
    pub cell: Option<CellKey>,
    /// Whether it is met.
    pub verdict: Verdict,
    /// What it is judged by: the figure, or its ratio to another.
    pub interval: Option<Interval>,
    /// What `interval` is of, with its unit, or why there is none.
    pub said: String,
}

/// What a program that must decide returns when a threshold is not met.
pub const NOT_MET: u8 = 1;
/// What it returns when none is not met, but one is inconclusive.
pub const INCONCLUSIVE: u8 = 4;

/// What a program should return: 0, [`NOT_MET`] or [`INCONCLUSIVE`].
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
