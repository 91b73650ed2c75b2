//! `comporta top`: the rates of a switch, updated every interval: ports, tables, workers, busiest
//! rules and controllers.
//!
//! The switch reports counters; the display shows their differences, divided by the time between
//! two replies by the switch's own clock.

mod draw;
mod rates;
mod sheet;
mod terminal;
mod text;
mod view;

use std::time::Duration;

use crate::error::WatchError;
use crate::target::SwitchTarget;
use sheet::RowOrder;

/// The minimum interval, which limits the load on the switch.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputForm {
    /// An interactive screen.
    Screen,
    /// Text, this number of times; without end if none.
    Text(Option<u64>),
}

/// Options of `comporta top`.
#[derive(Clone, Debug)]
pub struct TopOptions {
    /// The switch. If a bridge selects it, only that bridge is shown.
    pub target: SwitchTarget,
    /// The time between two replies.
    pub interval: Duration,
    /// The number of the busiest rules of each bridge to request.
    pub rules: usize,
    /// The column by which rows are sorted, in tables that have it.
    pub sort: Option<String>,
    /// The form of the output.
    pub form: OutputForm,
}

/// Runs until the user quits, or the requested number of texts is printed.
///
/// # Errors
/// The switch does not answer the first request, or the terminal cannot be written to.
pub fn run(options: TopOptions) -> Result<(), WatchError> {
    let options = TopOptions {
        interval: options.interval.max(INTERVAL_MIN),
        ..options
    };
    let order = match &options.sort {
        Some(name) => Some(RowOrder::by(name).ok_or_else(|| WatchError::NoColumn {
            name: name.clone(),
            known: rates::column_names().join(", "),
        })?),
        None => None,
    };
    match options.form {
        OutputForm::Screen => terminal::run(options, order),
        OutputForm::Text(count) => text::run(&options, count, order),
    }
}
