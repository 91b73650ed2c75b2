//! Descriptions of experiments, which plans, records and reports share.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use testbed::Topology;

use crate::{Headline, Parameter, Point, UnknownName, View};

/// Description of an experiment: its method in words, its parameters, figures and views.
pub struct Description {
    /// Name on the command line and in records, in lower case with hyphens.
    pub name: &'static str,
    /// Title in a report.
    pub title: &'static str,
    /// Family: the section of a report.
    pub family: Family,
    /// The question that the experiment answers, in a sentence.
    pub question: &'static str,
    /// The text that describes it: a published experiment with its figure or table, a
    /// standard with its section, a module of OFLOPS.
    pub source: &'static str,
    /// Steps of the method in order, a sentence each.
    pub steps: &'static [&'static str],
    /// Parameters: the axes of the plan and the constants.
    pub parameters: &'static [Parameter],
    /// Results of a test.
    pub figures: &'static [Figure],
    /// Tables and drawings of a report, in its order.
    pub views: &'static [View],
    /// Rows in the overview of a report; the first is compared between devices. If there is none,
    /// the first figure of the views stands in, over all points.
    pub headlines: &'static [Headline],
    /// Topology of hosts and bridges at a point; `None` for one bridge between two hosts.
    pub topology: Option<fn(&Point) -> Topology>,
}

impl Description {
    /// Description without any content, for the fields that an experiment leaves out.
    pub const EMPTY: Self = Self {
        name: "",
        title: "",
        family: Family::Robustness,
        question: "",
        source: "",
        steps: &[],
        parameters: &[],
        figures: &[],
        views: &[],
        headlines: &[],
        topology: None,
    };

    /// Returns the parameter of this name, or `None` if it is not declared.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.parameters.iter().find(|one| one.name == name)
    }

    /// Returns the figure of this name, or `None` if it is not declared.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&'static Figure> {
        self.figures.iter().find(|one| one.name == name)
    }

    /// Returns how hosts and bridges are joined in the test at `point`.
    #[must_use]
    pub fn topology_at(&self, point: &Point) -> Topology {
        self.topology.map_or_else(Topology::default, |at| at(point))
    }
}

impl PartialEq for Description {
    /// Names are unique.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Descriptions of all experiments, in the order of reports.
#[derive(Clone, Copy)]
pub struct Catalogue(&'static [&'static Description]);

impl Catalogue {
    /// A catalogue of these experiments.
    #[must_use]
    pub const fn new(all: &'static [&'static Description]) -> Self {
        Self(all)
    }

    /// All experiments, in the order of reports.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = &'static Description> + Clone {
        self.0.iter().copied()
    }

    /// Returns the experiment of this name, or `None` if there is none.
    #[must_use]
    pub fn find(self, name: &str) -> Option<&'static Description> {
        self.iter().find(|one| one.name == name)
    }

    /// Position of an experiment in the order of reports; unknown ones come last.
    #[must_use]
    pub fn position(self, name: &str) -> usize {
        let position = self.iter().position(|one| one.name == name);
        position.unwrap_or(self.0.len())
    }

    /// Returns the experiment of this name.
    ///
    /// # Errors
    /// The catalogue has no such experiment; the text suggests the nearest name.
    pub fn parse(self, name: &str) -> Result<&'static Description, UnknownName> {
        let unknown = || UnknownName::new("experiment", name, self.iter().map(|one| one.name));
        self.find(name).ok_or_else(unknown)
    }
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|one| one.name))
            .finish()
    }
}

/// Name of an experiment in a record. A record may name one that the catalogue does not have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExperimentName(Cow<'static, str>);

impl ExperimentName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&'static str> for ExperimentName {
    fn from(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }
}

impl PartialEq<str> for ExperimentName {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for ExperimentName {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Display for ExperimentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Origin of an experiment: the sections of a report, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// The tester alone.
    Calibration,
    /// Costa et al., evaluation of OpenFlow data planes.
    DataPlanes,
    /// Yasuda, a userspace OpenFlow switch in a 48-port box.
    UserspaceSwitch,
    /// OFLOPS with NetFPGA: latency and frame loss.
    LatencyAndLoss,
    /// vSDNBox: a low-cost white-box switch.
    Whitebox,
    /// Control plane, after the modules of OFLOPS and its successors.
    Oflops,
    /// RFC 2544 and RFC 2889, with RFC 9004 and MLRsearch (RFC 9971).
    Benchmarking,
    /// Failures and overload in operation.
    Robustness,
    /// Connection tracking and translation, after RFC 9411.
    Stateful,
}

impl Family {
    /// Every family, in the order of reports.
    pub const ALL: [Self; 9] = [
        Self::Calibration,
        Self::DataPlanes,
        Self::UserspaceSwitch,
        Self::LatencyAndLoss,
        Self::Whitebox,
        Self::Oflops,
        Self::Benchmarking,
        Self::Robustness,
        Self::Stateful,
    ];

    /// Returns the name that selects all experiments of the family.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calibration => "calibration",
            Self::DataPlanes => "experiment-a",
            Self::UserspaceSwitch => "experiment-b",
            Self::LatencyAndLoss => "experiment-c",
            Self::Whitebox => "experiment-d",
            Self::Oflops => "oflops",
            Self::Benchmarking => "rfc2544",
            Self::Robustness => "robustness",
            Self::Stateful => "stateful",
        }
    }

    /// Returns the title of the family's section in a report.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Calibration => "Calibration of the tester",
            Self::DataPlanes => "Experiment A: evaluation of OpenFlow data planes",
            Self::UserspaceSwitch => "Experiment B: userspace switch in a 48-port box",
            Self::LatencyAndLoss => "Experiment C: latency and frame loss",
            Self::Whitebox => "Experiment D: low-cost white-box switch",
            Self::Oflops => "Control plane (OFLOPS)",
            Self::Benchmarking => "RFC 2544 and RFC 2889",
            Self::Robustness => "Robustness",
            Self::Stateful => "Connection tracking",
        }
    }
}

/// Number that a trial yields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// Name in records and thresholds, with the unit at its end: `p99_us`.
    pub name: &'static str,
    /// Title of a column: `99 %`.
    pub title: &'static str,
    /// Unit as printed; empty for a count or a share.
    pub unit: &'static str,
    /// Direction in which the figure is better.
    pub better: Better,
    /// Unit of reports, if it differs from `unit`.
    pub display: Option<DisplayUnit>,
}

/// Unit in which a report shows a figure: a bit rate in Gbit/s, a share in per cent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DisplayUnit {
    /// Unit as printed.
    pub unit: &'static str,
    /// Size of the unit, in units of the figure.
    pub per: f64,
}

impl Figure {
    /// Returns a figure that reports show in its own unit.
    #[must_use]
    pub const fn new(
        name: &'static str,
        title: &'static str,
        unit: &'static str,
        better: Better,
    ) -> Self {
        Self {
            name,
            title,
            unit,
            better,
            display: None,
        }
    }

    /// Returns the figure with a unit for reports: one `unit` is `per` units of the figure.
    #[must_use]
    pub const fn shown_in(mut self, unit: &'static str, per: f64) -> Self {
        self.display = Some(DisplayUnit { unit, per });
        self
    }

    /// Returns the unit of reports.
    #[must_use]
    pub const fn shown_unit(&self) -> &'static str {
        match self.display {
            Some(display) => display.unit,
            None => self.unit,
        }
    }

    /// Returns `value` in the unit of reports.
    #[must_use]
    pub fn shown(&self, value: f64) -> f64 {
        self.display.map_or(value, |display| value / display.per)
    }
}

/// Direction in which a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Lower values are better: a delay.
    Lower,
    /// Higher values are better: a rate.
    Higher,
    /// Neither direction is better: a count for information.
    Neither,
}
