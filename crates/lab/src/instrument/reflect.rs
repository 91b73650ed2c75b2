//! Reflector: an interface that sends every frame back, for round trips from another interface or
//! another machine.

use std::time::Duration;

use report::format::count;
use serde_json::{Value, json};
use testbed::Interrupt;
use testbed::{Clock, Machine};
use trafficgen::Reflector;
use trafficgen::template::{FRAME_BYTES, Reflection};

use super::ends::open;
use super::{InstrumentError, IoMethod, Listener, PortName, ProgressReport};

/// Parameters of a reflector.
#[derive(Clone, Debug)]
pub struct ReflectorOptions {
    /// Interface.
    pub at: PortName,
    /// Addresses to swap.
    pub reflection: Reflection,
    /// Duration; until the user interrupts it if `None`.
    pub time: Option<Duration>,
    /// Core; the last one if `None`.
    pub core: Option<usize>,
    /// Transmit and receive method.
    pub by: IoMethod,
}

/// Results of a reflector.
#[derive(Clone, Debug, PartialEq)]
pub struct ReflectionTally {
    at: String,
    reflected: u64,
    dropped: u64,
    seconds: f64,
    is_interrupted: bool,
}

/// Interval of checks for the end.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Interval of progress reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

impl ReflectorOptions {
    /// Reflects frames until the end of the duration or an interruption.
    ///
    /// # Errors
    /// See [`InstrumentError`].
    pub fn run(
        &self,
        clock: &Clock,
        interrupt: &Interrupt,
        report: &mut Listener<'_>,
    ) -> Result<ReflectionTally, InstrumentError> {
        let failed = |cause| InstrumentError::Io {
            what: "send frames back",
            cause,
        };
        let end = open(&self.at, self.by, *FRAME_BYTES.end(), clock)?;
        let core = self.core.unwrap_or_else(|| Machine::this().cores - 1);
        let reflector = Reflector::start(end, self.reflection, core).map_err(failed)?;
        let began = clock.now();
        let (mut reported, mut before) = (began, 0);
        while !interrupt.is_set() && !reflector.has_ended() {
            let now = clock.now();
            if self.time.is_some_and(|time| now.since(began) >= time) {
                break;
            }
            if now.since(reported) >= REPORT_INTERVAL {
                let reflected = reflector.reflected();
                report(&ProgressReport {
                    at_seconds: now.since(began).as_secs_f64(),
                    seconds: now.since(reported).as_secs_f64(),
                    sent: Some(reflected - before),
                    ..ProgressReport::default()
                });
                (reported, before) = (now, reflected);
            }
            clock.sleep_until(now + CHECK_INTERVAL);
        }
        let seconds = clock.now().since(began).as_secs_f64();
        let (_end, reflected, dropped) = reflector.stop().map_err(failed)?;
        Ok(ReflectionTally {
            at: self.at.to_string(),
            reflected,
            dropped,
            seconds,
            is_interrupted: interrupt.is_set(),
        })
    }
}

impl ReflectionTally {
    /// Returns true if the user interrupted the reflector.
    #[must_use]
    pub const fn is_interrupted(&self) -> bool {
        self.is_interrupted
    }

    /// Returns true if every frame was sent back.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.dropped == 0
    }

    /// Returns the results as text.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "{}\n  sent back  {} frames in {:.3} s\n  tester     lost {} itself\n",
            self.at,
            count(self.reflected),
            self.seconds,
            count(self.dropped)
        )
    }

    /// Returns the results as a line of JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "kind": "tally",
            "interrupted": self.is_interrupted,
            "valid": self.is_valid(),
            "interface": self.at,
            "reflected": self.reflected,
            "seconds": self.seconds,
            "tester_dropped": self.dropped,
        })
    }
}
