//! What an experiment is made of.

use controller::Application;
use testbed::{DeviceKind, FailMode, Mode, Topology};

use super::{Parameter, Point};
use crate::scenario::Tools;
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// An experiment: its method in words and as a function.
pub struct Experiment {
    /// The name it is asked for by, in lower case with hyphens.
    pub name: &'static str,
    /// Its title in a report.
    pub title: &'static str,
    /// Where it comes from, and with which others it belongs together.
    pub family: Family,
    /// The question that it answers, in a sentence.
    pub question: &'static str,
    /// The text that describes it: a published experiment with its figure or table, a
    /// standard with its section, a module of OFLOPS.
    pub source: &'static str,
    /// What is done, in order, a sentence a step.
    pub steps: &'static [&'static str],
    /// What varies from test to test, and what else can be set.
    pub parameters: &'static [Parameter],
    /// The numbers that a test comes to.
    pub figures: &'static [Figure],
    /// How a report shows them, in this order.
    pub views: &'static [View],
    /// Where the device stands.
    pub(crate) setting: Setting,
    /// Which devices it makes sense on, at which points.
    pub(crate) takes: fn(DeviceKind, &Point) -> bool,
    /// About how many seconds a test takes, for a forecast.
    pub(crate) seconds: fn(&Point) -> f64,
    /// Does it once, at one point, on the device of a station.
    pub(crate) measure: fn(&Point, &mut Station, &Tools<'_>) -> Result<Measured, TrialError>,
}

/// Where the device of a test stands.
#[derive(Clone, Copy)]
pub(crate) enum Setting {
    /// Between two hosts in its usual mode, under a controller that does nothing by itself: up
    /// for the whole run.
    Usual,
    /// As said for each point, made for the one test.
    Own(fn(&Point) -> Own),
}

/// A place that is made for one test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Own {
    /// How hosts and bridges are joined.
    pub(crate) topology: Topology,
    /// How the device decides where frames go; in its usual way, if none is said.
    pub(crate) mode: Option<Mode>,
    /// What it does while its controllers are gone.
    pub(crate) fail_mode: FailMode,
    /// What its controllers do by themselves.
    pub(crate) application: Application,
    /// Whether it may run on all cores, the tester's too.
    pub(crate) on_all_cores: bool,
    /// Whether it must be another than that for the whole run, even if it is alike: what is done
    /// to it is not to be done to that one.
    pub(crate) apart: bool,
}

impl Own {
    /// Whether it is no other than that for the whole run.
    pub(crate) fn is_usual(&self) -> bool {
        let alike = self.topology == Topology::default() && self.mode.is_none();
        let by_rules = self.application.is_silent() && self.fail_mode == FailMode::Secure;
        alike && by_rules && !self.on_all_cores && !self.apart
    }
}

impl Experiment {
    /// The parameter of that name.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.parameters.iter().find(|one| one.name == name)
    }

    /// The figure of that name.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&'static Figure> {
        self.figures.iter().find(|one| one.name == name)
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
