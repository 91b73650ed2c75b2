//! A device that is ended and started again at its station, and how far it has come when.

use base::Instant;
use record::MatchSet;
use testbed::{Clock, Ending, Mode, Spawner, Stopped};

use super::{CALL, Calls, Station};
use crate::LabError;

/// How far a device had come when, that was started again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restarted {
    /// When it was told to end, and when it was gone.
    pub(crate) stopped: Stopped,
    /// When all of its bridges had called their controllers, to within the five milliseconds
    /// at which these look; none in legacy mode.
    pub(crate) called: Option<Instant>,
    /// When it had answered the barrier behind its rules.
    pub(crate) ruled: Option<Instant>,
}

impl Station {
    /// Ends the device, starts it at once again, waits for its calls, and gives it the rules of
    /// `set`. Its hosts and cables stay as they are.
    pub(crate) fn restart(
        &mut self,
        ending: Ending,
        set: MatchSet,
        spawner: &Spawner,
        clock: &Clock,
    ) -> Result<Restarted, LabError> {
        let calls = match self.bench.device().mode() {
            Mode::Legacy => None,
            Mode::OpenFlow => Some(Calls::await_of(
                self.bench.options(),
                self.bench.setup(),
                self.application.clone(),
                self.description.as_ref(),
            )?),
        };
        let stopped = self.bench.end_device(clock, ending)?;
        self.controllers.clear();
        self.bench.start_device_again(spawner)?;
        let Some(calls) = calls else {
            return Ok(Restarted {
                stopped,
                called: None,
                ruled: None,
            });
        };
        self.controllers = calls.accept(&mut self.bench, clock, CALL)?;
        let called = clock.now();
        let prepared = self.prepare(set);
        prepared.map_err(|source| LabError::Controller {
            device: self.kind().to_string(),
            source,
        })?;
        Ok(Restarted {
            stopped,
            called: Some(called),
            ruled: Some(clock.now()),
        })
    }
}
