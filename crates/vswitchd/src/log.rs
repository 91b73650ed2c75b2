//! The bridge from `tracing` to [`Logging`]; adds the time.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::thread;

use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use runtime::wall;

use crate::error::DaemonError;
use crate::logging::{LogOutputs, LogRecord, Logging};

/// The threads without a name in the log: the first one, and that of the tasks for sockets, which
/// are one thread in Open vSwitch.
const UNNAMED: [&str; 2] = ["main", "peers"];

/// Starts logging according to the arguments of `-v`, also of panics, which end the process. `role`
/// distinguishes this process from the one that runs the switch.
///
/// # Errors
/// A malformed argument.
pub fn start_logging(
    specs: &[String],
    outlets: LogOutputs,
    role: Option<&'static str>,
) -> Result<Arc<Logging>, DaemonError> {
    let logging = Logging::new(specs, outlets, wall(), role).map_err(DaemonError::Words)?;
    let logging = Arc::new(logging);
    let layer = LogLayer(Arc::clone(&logging));
    tracing_subscriber::registry().with(layer).init();
    let of_panics = Arc::clone(&logging);
    runtime::abort_on_panic(move |report| {
        let thread = thread::current();
        let name = thread.name().filter(|name| !UNNAMED.contains(name));
        of_panics.write_emergency(name, wall(), report);
    });
    Ok(logging)
}

struct LogLayer(Arc<Logging>);

impl<S: Subscriber> Layer<S> for LogLayer {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // Levels may change at any time.
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.0.is_enabled(*metadata.level(), metadata.target())
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut words = Words::default();
        event.record(&mut words);
        let thread = thread::current();
        self.0.write(LogRecord {
            level: *event.metadata().level(),
            target: event.metadata().target(),
            thread: thread.name().filter(|name| !UNNAMED.contains(name)),
            now: wall(),
            message: &format!("{}{}", words.message, words.fields),
        });
    }
}

/// The message of an event, and its other fields.
#[derive(Default)]
struct Words {
    message: String,
    fields: String,
}

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
