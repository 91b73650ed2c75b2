//! Restart of a device in its test setup, and the times of its progress.

use base::Instant;
use testbed::{Mode, StopSignal, StopTimes};

use super::{CONNECT_LIMIT, Listeners, TestSetup};
use crate::LabError;
use crate::rules::MatchSet;
use crate::tools::Tools;

/// Times of a restart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RestartTimes {
    /// Request to end, and end of the process.
    pub(crate) stopped: StopTimes,
    /// Connection of all bridges to their controllers, to within the polling interval of five
    /// milliseconds; `None` in legacy mode.
    pub(crate) connected: Option<Instant>,
    /// Reply to the barrier after the rules; `None` in legacy mode.
    pub(crate) rules_installed: Option<Instant>,
}

impl TestSetup {
    /// Ends the device and restarts it at once, waits for its connections, and installs the rules
    /// of `set`. Hosts and links remain.
    pub(crate) fn restart(
        &mut self,
        ending: StopSignal,
        set: MatchSet,
        tools: &Tools<'_>,
    ) -> Result<RestartTimes, LabError> {
        let clock = tools.clock;
        let listeners = match self.bench.device().mode() {
            Mode::Legacy => None,
            Mode::OpenFlow => Some(Listeners::open(
                self.bench.options(),
                self.bench.setup(),
                self.application.clone(),
                self.description.as_ref(),
            )?),
        };
        let stopped = self.bench.end_device(clock, ending)?;
        self.controllers.clear();
        self.bench.restart_device(tools.spawner)?;
        let Some(listeners) = listeners else {
            return Ok(RestartTimes {
                stopped,
                connected: None,
                rules_installed: None,
            });
        };
        self.controllers = listeners.accept(&mut self.bench, clock, CONNECT_LIMIT)?;
        let connected = clock.now();
        let prepared = self.prepare(set);
        prepared.map_err(|source| LabError::Controller {
            device: self.kind().to_string(),
            source,
        })?;
        Ok(RestartTimes {
            stopped,
            connected: Some(connected),
            rules_installed: Some(clock.now()),
        })
    }
}
