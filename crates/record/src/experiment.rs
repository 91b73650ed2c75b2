//! Descriptions of experiments: what a plan, a record and a report need to know of each.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use testbed::Topology;

use crate::{Parameter, Point, UnknownName};

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
    /// How hosts and bridges are joined in the test at a point; `None` for one bridge between two
    /// hosts.
    pub topology: Option<fn(&Point) -> Topology>,
}

impl Description {
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
}

impl Description {
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
    /// There is none; the text suggests the nearest name.
    pub fn parse(self, name: &str) -> Result<&'static Description, UnknownName> {
        let unknown = || UnknownName::new("scenario", name, self.iter().map(|one| one.name));
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

/// Where experiments come from: the sections of a report, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// The instrument alone.
    Calibration,
    /// Costa et al., evaluation of OpenFlow data planes.
    DataPlanes,
    /// Yasuda, a userspace OpenFlow switch in a 48-port box.
    UserspaceSwitch,
    /// OFLOPS with NetFPGA: latency and frame loss.
    LatencyAndLoss,
    /// vSDNBox: a cheap whitebox.
    Whitebox,
    /// The control plane, after the modules of OFLOPS and its successors.
    Oflops,
    /// RFC 2544 and RFC 2889, with RFC 9004 and searches after MLRsearch.
    Benchmarking,
    /// What goes wrong in the field.
    Robustness,
}

impl Family {
    /// Every family, in the order of reports.
    pub const ALL: [Self; 8] = [
        Self::Calibration,
        Self::DataPlanes,
        Self::UserspaceSwitch,
        Self::LatencyAndLoss,
        Self::Whitebox,
        Self::Oflops,
        Self::Benchmarking,
        Self::Robustness,
    ];

    /// The name by which all its experiments are asked for at once.
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
        }
    }

    /// Its title in a report.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Calibration => "The instrument itself",
            Self::DataPlanes => "Experiment A: evaluation of OpenFlow data planes",
            Self::UserspaceSwitch => "Experiment B: a userspace switch in a 48-port box",
            Self::LatencyAndLoss => "Experiment C: latency and frame loss",
            Self::Whitebox => "Experiment D: a cheap whitebox",
            Self::Oflops => "The control plane, after OFLOPS",
            Self::Benchmarking => "RFC 2544 and RFC 2889",
            Self::Robustness => "What goes wrong in the field",
        }
    }
}

/// A number that a test comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its name in records and thresholds, with its unit at the end: `p99_us`.
    pub name: &'static str,
    /// What it is, as the head of a column: `99 %`.
    pub title: &'static str,
    /// Its unit as printed; empty for a plain number.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
}

/// Which way of a number is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better: a delay.
    Lower,
    /// More is better: a rate.
    Higher,
    /// Neither: a count that says what happened.
    Neither,
}

/// A way to look at the outcome of an experiment: a table or a drawing. Where an axis has
/// more values than the view shows, there is one view for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// A table of one figure: a row for each device, a column for each value of `across`.
    Matrix {
        /// What it shows.
        title: &'static str,
        /// The figure.
        figure: &'static str,
        /// The parameter whose values are the columns.
        across: &'static str,
        /// Rows of others to stand under it, by their key in the published data; empty if none.
        published: &'static str,
    },
    /// A table of several figures: a row for each device and point, a column for each figure.
    Table {
        /// What it shows.
        title: &'static str,
        /// The figures.
        figures: &'static [&'static str],
    },
    /// A figure against a parameter, a line for each device, with the intervals over runs.
    Lines {
        /// What it shows.
        title: &'static str,
        /// The figure, upwards.
        figure: &'static str,
        /// The parameter, to the right.
        along: &'static str,
        /// Whether equal factors, and not equal steps, take equal room upwards.
        log: bool,
    },
    /// Delay and loss against load, beside each other: where a device is saturated, the one
    /// bends up as the other begins.
    Load {
        /// What it shows.
        title: &'static str,
        /// The figure of the delay, by factors.
        delay: &'static str,
        /// The figure of the loss.
        lost: &'static str,
        /// The parameter that is the load, to the right.
        along: &'static str,
    },
    /// What single runs came to: a dot for each run of each device, and a box for five or more.
    Runs {
        /// What it shows.
        title: &'static str,
        /// The figure, to the right.
        figure: &'static str,
        /// The parameter whose values are the groups.
        across: &'static str,
    },
    /// The share of values up to each: a curve for each device.
    Shares {
        /// What it shows.
        title: &'static str,
        /// The histogram.
        histogram: &'static str,
    },
    /// Values by how many nines of all stay below them: a curve for each device.
    Percentiles {
        /// What it shows.
        title: &'static str,
        /// The histogram.
        histogram: &'static str,
    },
    /// One figure as bars, a group for each value of `across`.
    Bars {
        /// What it shows.
        title: &'static str,
        /// The figure.
        figure: &'static str,
        /// The parameter whose values are the groups.
        across: &'static str,
    },
    /// What a figure is at one value of a parameter, divided by what it is at another, run by
    /// run: a row for each device.
    Ratio {
        /// What it shows.
        title: &'static str,
        /// The figure.
        figure: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// Its value above.
        of: &'static str,
        /// Its value below.
        to: &'static str,
        /// Rows of others to stand under it, by their key in the published data; empty if none.
        published: &'static str,
    },
}

impl View {
    /// The figure that it shows first; none if it shows whole distributions.
    #[must_use]
    pub const fn figure(&self) -> Option<&'static str> {
        match *self {
            Self::Matrix { figure, .. }
            | Self::Lines { figure, .. }
            | Self::Bars { figure, .. }
            | Self::Runs { figure, .. }
            | Self::Ratio { figure, .. } => Some(figure),
            Self::Load { delay, .. } => Some(delay),
            Self::Table { figures, .. } => match figures.first() {
                Some(first) => Some(*first),
                None => None,
            },
            Self::Shares { .. } | Self::Percentiles { .. } => None,
        }
    }
}
