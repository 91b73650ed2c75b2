//! Views: the tables and drawings of an experiment in a report.

use crate::Focus;

/// Table or drawing of an experiment's results. An axis that a view does not show has one copy of
/// the view for each of its values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum View {
    /// Table of one figure: a row for each device, a column for each value of `across`.
    Matrix {
        /// Title.
        title: &'static str,
        /// Figure.
        figure: &'static str,
        /// Parameter of the columns.
        across: &'static str,
        /// Key of the published rows below the table; empty if there are none.
        published: &'static str,
    },
    /// Table of several figures: a row for each device and point, a column for each figure.
    Table {
        /// Title.
        title: &'static str,
        /// Figures.
        figures: &'static [&'static str],
    },
    /// Figure against a parameter: a line for each device, with the intervals over runs.
    Lines {
        /// Title.
        title: &'static str,
        /// Figure, on the vertical axis.
        figure: &'static str,
        /// Parameter, on the horizontal axis.
        along: &'static str,
        /// True for a logarithmic vertical axis.
        log: bool,
    },
    /// Figure against another figure: a line for each device, through the values of `along`.
    Against {
        /// Title.
        title: &'static str,
        /// Figure on the horizontal axis.
        x: &'static str,
        /// Figure on the vertical axis.
        y: &'static str,
        /// Parameter whose values are the points of a line: numbers first, in order.
        along: &'static str,
        /// True to draw the line on which both figures are equal.
        diagonal: bool,
    },
    /// Delay and loss against load, side by side.
    Load {
        /// Title.
        title: &'static str,
        /// Figure of the delay, on a logarithmic axis.
        delay: &'static str,
        /// Figure of the loss.
        lost: &'static str,
        /// Parameter of the load, on the horizontal axis.
        along: &'static str,
    },
    /// Single runs: a dot for each run of each device, and a box for five or more.
    Runs {
        /// Title.
        title: &'static str,
        /// Figure, on the horizontal axis.
        figure: &'static str,
        /// Parameter of the groups.
        across: &'static str,
    },
    /// Cumulative distribution: a curve for each device.
    Shares {
        /// Title.
        title: &'static str,
        /// Name of the samples or of the histogram.
        values: &'static str,
    },
    /// Cumulative distribution of the differences between consecutive samples (IPDV).
    Variations {
        /// Title.
        title: &'static str,
        /// Name of the samples.
        samples: &'static str,
    },
    /// Percentiles on an axis of nines (90 %, 99 %, 99.9 %): a curve for each device.
    Percentiles {
        /// Title.
        title: &'static str,
        /// Name of the samples or of the histogram.
        values: &'static str,
    },
    /// Bars of one figure, a group for each value of `across`.
    Bars {
        /// Title.
        title: &'static str,
        /// Figure.
        figure: &'static str,
        /// Parameter of the groups.
        across: &'static str,
    },
    /// Ratio of a figure at two values of a parameter, run by run: a row for each device.
    Ratio {
        /// Title.
        title: &'static str,
        /// Figure.
        figure: &'static str,
        /// Parameter.
        parameter: &'static str,
        /// Value of the parameter in the numerator.
        of: &'static str,
        /// Value of the parameter in the denominator.
        to: &'static str,
        /// Key of the published rows below the table; empty if there are none.
        published: &'static str,
    },
    /// Difference between a figure of a device and that of the bare link in the same run: a row
    /// for each device, a column for each value of `across`.
    AboveLink {
        /// Title.
        title: &'static str,
        /// Figure.
        figure: &'static str,
        /// Parameter of the columns.
        across: &'static str,
    },
    /// Precision of a mean: the interval over runs beside intervals within one run.
    Precision {
        /// Title.
        title: &'static str,
        /// Name of the samples.
        samples: &'static str,
        /// Parameters that have one value in the table.
        at: &'static [(&'static str, Focus)],
    },
}

impl View {
    /// Returns the first figure of the view, or `None` if it shows distributions.
    #[must_use]
    pub const fn figure(&self) -> Option<&'static str> {
        match *self {
            Self::Matrix { figure, .. }
            | Self::Lines { figure, .. }
            | Self::Bars { figure, .. }
            | Self::Runs { figure, .. }
            | Self::AboveLink { figure, .. }
            | Self::Ratio { figure, .. } => Some(figure),
            Self::Against { y, .. } => Some(y),
            Self::Load { delay, .. } => Some(delay),
            Self::Table { figures, .. } => match figures.first() {
                Some(first) => Some(*first),
                None => None,
            },
            Self::Shares { .. }
            | Self::Variations { .. }
            | Self::Percentiles { .. }
            | Self::Precision { .. } => None,
        }
    }
}
