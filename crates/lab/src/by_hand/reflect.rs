//! An interface that sends everything back, for round trips through a device from another interface or
//! another machine.

use std::time::Duration;

use report::format::count;
use serde_json::{Value, json};
use testbed::Interrupt;
use testbed::{Clock, Machine};
use trafficgen::Reflector;
use trafficgen::template::{FRAME_BYTES, Reflection};

use super::ends::open;
use super::{By, ByHandError, Listener, PortName, Second};

/// What is to be sent back.
#[derive(Clone, Debug)]
pub struct Turning {
    /// Where.
    pub at: PortName,
    /// Which addresses are swapped.
    pub reflection: Reflection,
    /// For how long; until it is enough, if there is no number.
    pub time: Option<Duration>,
    /// On which core; the last, if none is said.
    pub core: Option<usize>,
    /// By which way.
    pub by: By,
}

/// What was sent back.
#[derive(Clone, Debug, PartialEq)]
pub struct ReflectionTally {
    at: String,
    reflected: u64,
    dropped: u64,
    seconds: f64,
    is_interrupted: bool,
}

/// How often it is looked whether it is enough.
const LOOK: Duration = Duration::from_millis(20);
/// How often it is told how it goes.
const TELL: Duration = Duration::from_secs(1);

impl Turning {
    /// Does it.
    ///
    /// # Errors
    /// See [`ByHandError`].
    pub fn run(
        &self,
        clock: &Clock,
        interrupt: &Interrupt,
        tell: &mut Listener<'_>,
    ) -> Result<ReflectionTally, ByHandError> {
        let failed = |cause| ByHandError::Io {
            what: "send frames back",
            cause,
        };
        let end = open(&self.at, self.by, *FRAME_BYTES.end(), clock)?;
        let core = self.core.unwrap_or_else(|| Machine::this().cores - 1);
        let reflector = Reflector::start(end, self.reflection, core).map_err(failed)?;
        let began = clock.now();
        let (mut told, mut before) = (began, 0);
        while !interrupt.is_set() && !reflector.has_ended() {
            let now = clock.now();
            if self.time.is_some_and(|time| now.since(began) >= time) {
                break;
            }
            if now.since(told) >= TELL {
                let reflected = reflector.reflected();
                tell(&Second {
                    at_seconds: now.since(began).as_secs_f64(),
                    seconds: now.since(told).as_secs_f64(),
                    sent: Some(reflected - before),
                    ..Second::default()
                });
                (told, before) = (now, reflected);
            }
            clock.sleep_until(now + LOOK);
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
    /// Whether the user ended it.
    #[must_use]
    pub const fn is_interrupted(&self) -> bool {
        self.is_interrupted
    }

    /// Whether everything was sent back.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.dropped == 0
    }

    /// As text for people.
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

    /// As a line for programs.
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
