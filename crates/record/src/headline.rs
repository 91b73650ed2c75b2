//! Figures that represent an experiment where a report has room for few: its overview and its
//! comparisons.

/// Figure in the overview of a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Headline {
    /// Title of the row.
    pub title: &'static str,
    /// Number in the row.
    pub figure: HeadlineFigure,
    /// Parameters that have one value in the row; of the others, all values are summarized.
    pub at: &'static [(&'static str, Focus)],
}

/// Number of a headline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HeadlineFigure {
    /// A figure of the experiment.
    Figure(&'static str),
    /// The greatest value of the parameter `along` up to which `figure` does not exceed `limit` in
    /// any run, in `unit`s of `per`.
    Highest {
        /// Parameter, of which only numbers count.
        along: &'static str,
        /// Figure.
        figure: &'static str,
        /// Limit of the figure.
        limit: f64,
        /// Unit, as printed.
        unit: &'static str,
        /// Size of the unit.
        per: f64,
    },
}

/// Value of a parameter in a headline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Focus {
    /// The first of the measured values.
    First,
    /// The last of the measured values.
    Last,
    /// This word.
    Word(&'static str),
}
