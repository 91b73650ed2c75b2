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
use crate::target::Target;
use sheet::Order;

/// The minimum interval, which limits the load on the switch.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An interactive screen.
    Screen,
    /// Text, this number of times; without end if none.
    Text(Option<u64>),
}

/// Options of `comporta top`.
#[derive(Clone, Debug)]
pub struct Options {
    /// The switch. If a bridge selects it, only that bridge is shown.
    pub target: Target,
    /// The time between two replies.
    pub interval: Duration,
    /// The number of the busiest rules of each bridge to request.
    pub rules: usize,
    /// The column by which rows are sorted, in tables that have it.
    pub sort: Option<String>,
    /// The form of the output.
    pub form: Form,
}

/// Runs until the user quits, or the requested number of texts is printed.
///
/// # Errors
/// The switch does not answer the first request, or the terminal cannot be written to.
pub fn run(options: Options) -> Result<(), WatchError> {
    let options = Options {
        interval: options.interval.max(INTERVAL_MIN),
        ..options
    };
    let order = match &options.sort {
        Some(name) => Some(Order::by(name).ok_or_else(|| WatchError::NoColumn {
            name: name.clone(),
            known: rates::column_names().join(", "),
        })?),
        None => None,
    };
    match options.form {
        Form::Screen => terminal::run(options, order),
        Form::Text(count) => text::run(&options, count, order),
    }
}
