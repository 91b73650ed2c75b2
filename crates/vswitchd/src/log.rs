//! The bridge from `tracing` to [`Logging`]: adds the time, escapes the text of peers and limits the
//! rate of messages.

mod limits;
mod text;
mod worker_lines;

use std::fmt::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use runtime::wall;

use crate::error::DaemonError;
use crate::logging::{LogOutputs, LogRecord, Logging};
use limits::LogLimits;
use worker_lines::{WorkerLine, WorkerLines};

/// The threads without a name in the log: the first one, and those of the tasks for sockets, which
/// are one thread in Open vSwitch.
const UNNAMED: [&str; 3] = ["main", "tasks", "peers"];

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
    let layer = LogLayer {
        logging: Arc::clone(&logging),
        limits: LogLimits::default(),
        worker_lines: WorkerLines::default(),
    };
    tracing_subscriber::registry().with(layer).init();
    let of_panics = Arc::clone(&logging);
    runtime::abort_on_panic(move |report| {
        let thread = thread::current();
        let name = thread.name().filter(|name| !UNNAMED.contains(name));
        of_panics.write_emergency(name, wall(), report);
    });
    Ok(logging)
}

struct LogLayer {
    logging: Arc<Logging>,
    limits: LogLimits,
    worker_lines: WorkerLines,
}

impl LogLayer {
    /// Returns the number of suppressed messages before this one; `None` if this one is suppressed.
    /// Messages for debugging are not limited.
    fn admit(&self, metadata: &'static Metadata<'static>, now: Duration) -> Option<u64> {
        if *metadata.level() > Level::INFO {
            return Some(0);
        }
        let place = std::ptr::from_ref(metadata).addr();
        self.limits.admit(place, now)
    }
}

impl<S: Subscriber> Layer<S> for LogLayer {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // Levels may change at any time.
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.logging
            .is_enabled(*metadata.level(), metadata.target())
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let (metadata, now) = (event.metadata(), wall());
        let Some(suppressed) = self.admit(metadata, now) else {
            return;
        };
        let mut words = Words::default();
        event.record(&mut words);
        let mut message = format!("{}{}", text::message(&words.message), words.fields);
        if suppressed > 0 {
            // Writing to a string cannot fail.
            let _ = write!(message, " ({suppressed} similar messages suppressed)");
        }
        let thread = thread::current();
        let name = thread.name().filter(|name| !UNNAMED.contains(name));
        if WorkerLines::is_worker(name) {
            let line = WorkerLine {
                level: *metadata.level(),
                target: metadata.target(),
                thread: name.unwrap_or_default().to_owned(),
                now,
                message,
            };
            return self.worker_lines.send(&self.logging, line);
        }
        self.logging.write(LogRecord {
            level: *metadata.level(),
            target: metadata.target(),
            thread: name,
            now,
            message: &message,
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
            name => write!(
                self.fields,
                " {name}={}",
                text::field(&format!("{value:?}"))
            ),
        };
    }
}
