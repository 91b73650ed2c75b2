//! `comporta top`: what a switch does, second by second: its ports, tables, workers, busiest
//! rules and controllers.
//!
//! What the switch tells are counts; what is shown are their differences over the time that
//! passed between two answers by the switch's own clock.

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

/// The shortest interval: the switch has other things to do than to tell how it is.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// In what form it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// On the whole terminal, until the reader has seen enough.
    Screen,
    /// As text, so many times; none for until it is ended.
    Text(Option<u64>),
}

/// What is to be shown, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whom to ask. If it names a bridge, that alone is shown.
    pub target: Target,
    /// The time between two answers.
    pub interval: Duration,
    /// How many of the busiest rules of each bridge are asked for.
    pub rules: usize,
    /// The column that rows are sorted by, where there is one of that name.
    pub sort: Option<String>,
    /// In what form.
    pub form: Form,
}

/// Shows it, until the reader or the switch's first refusal ends it.
///
/// # Errors
/// The switch does not answer the first question, or the terminal cannot be written to.
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
