//! Slot of a device in a run: its shared test setup, while it has one. A device that has ended, or
//! whose connection is lost, is restarted for its next trial; one that fails repeatedly is given
//! up.

use record::DeviceRecord;
use testbed::{DeviceKind, Mode};

use crate::LabError;
use crate::names::ExperimentId;
use crate::setup::{SetupRequest, TestSetup};
use crate::tools::Tools;

/// Consecutive failed trials of an experiment after which the device is given up for it, and
/// consecutive failed starts after which it is given up for the run.
const FAILURES_MAX: u32 = 3;

/// Slot of a device.
pub(super) struct DeviceSlot {
    kind: DeviceKind,
    setup: Option<TestSetup>,
    /// Reason for the absence of a setup.
    absent: String,
    /// Consecutive failed starts.
    failed_starts: u32,
    /// Consecutive failed trials, and their experiment.
    failed_trials: Option<(ExperimentId, u32)>,
}

impl DeviceSlot {
    /// Returns the slot of a device that was started, or failed to start.
    pub(super) fn new(kind: DeviceKind, built: Result<TestSetup, &LabError>) -> Self {
        let absent = built.as_ref().err().map(ToString::to_string);
        Self {
            kind,
            failed_starts: absent.is_some().into(),
            absent: absent.unwrap_or_default(),
            setup: built.ok(),
            failed_trials: None,
        }
    }

    /// Returns the device.
    pub(super) const fn kind(&self) -> DeviceKind {
        self.kind
    }

    /// Returns the shared setup, if there is one.
    pub(super) const fn setup(&self) -> Option<&TestSetup> {
        self.setup.as_ref()
    }

    /// Returns the configuration of the device, for the records.
    pub(super) fn record(&self) -> Result<DeviceRecord, testbed::Failure> {
        match &self.setup {
            Some(setup) => setup.record(),
            None => Ok(DeviceRecord {
                name: self.kind.name().to_owned(),
                version: "could not be started".to_owned(),
                openflow: self.kind.modes()[0] == Mode::OpenFlow,
                calibration: self.kind == DeviceKind::Direct,
                host_offloads: Vec::new(),
                commands: vec![format!("# {}", self.absent)],
                inventory: None,
                mode: Some(self.kind.modes()[0].name().to_owned()),
                ports: Some(self.kind.port_kind().to_owned()),
            }),
        }
    }

    /// Runs a trial of `experiment` on the shared setup, which is built if there is none. Returns
    /// its results, and a remark for readers if the device was restarted. A device that fails a
    /// health check afterwards is removed.
    pub(super) fn run_trial<T>(
        &mut self,
        experiment: ExperimentId,
        tools: &Tools<'_>,
        trial: impl FnOnce(&mut TestSetup) -> Result<T, String>,
    ) -> (Result<T, String>, Option<String>) {
        if self.failures_of(experiment) >= FAILURES_MAX {
            let reason = format!(
                "given up: {FAILURES_MAX} consecutive trials of this experiment failed on this device"
            );
            return (Err(reason), None);
        }
        let (setup, remark) = match self.ready(tools) {
            Ok(ready) => ready,
            Err(reason) => return (Err(reason), None),
        };
        let outcome = trial(setup);
        let failure = match outcome {
            Ok(_) => None,
            Err(_) => setup.check_health().err(),
        };
        self.note(experiment, outcome.is_ok());
        if let Some(reason) = failure {
            self.remove(reason);
        }
        (outcome, remark)
    }

    /// Returns the setup, and a remark if it was rebuilt.
    fn ready(&mut self, tools: &Tools<'_>) -> Result<(&mut TestSetup, Option<String>), String> {
        let ended = self.setup.as_mut().and_then(TestSetup::exit_reason);
        if let Some(reason) = ended {
            self.remove(reason);
        }
        if self.setup.is_none() && self.failed_starts >= FAILURES_MAX {
            return Err(format!("given up: {}", self.absent));
        }
        let mut remark = None;
        let setup = match self.setup.take() {
            Some(setup) => setup,
            None => match TestSetup::build(SetupRequest::of(self.kind), tools) {
                Ok(setup) => {
                    remark = Some(format!("the device was restarted: {}", self.absent));
                    setup
                }
                Err(error) => {
                    self.failed_starts += 1;
                    self.absent = error.to_string();
                    return Err(self.absent.clone());
                }
            },
        };
        self.failed_starts = 0;
        Ok((self.setup.insert(setup), remark))
    }

    fn remove(&mut self, reason: String) {
        self.absent = reason;
        self.setup = None;
    }

    fn note(&mut self, experiment: ExperimentId, succeeded: bool) {
        let before = self.failures_of(experiment);
        self.failed_trials = (!succeeded).then_some((experiment, before + 1));
    }

    fn failures_of(&self, experiment: ExperimentId) -> u32 {
        let failed = self.failed_trials;
        let failed = failed.filter(|(failed, _)| *failed == experiment);
        failed.map_or(0, |(_, times)| times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absent_slot() -> DeviceSlot {
        let failed: LabError = testbed::Failure::Unfit("it burns".to_owned()).into();
        DeviceSlot::new(DeviceKind::Ovs, Err(&failed))
    }

    #[test]
    fn consecutive_failures_are_counted_by_experiment() {
        let [echo, meters] = ["echo", "meters"].map(|name| name.parse().unwrap());
        let mut slot = absent_slot();
        assert_eq!(
            (slot.setup().is_none(), &slot.absent[..]),
            (true, "it burns")
        );
        for failures in 1..=3 {
            slot.note(echo, false);
            assert_eq!(slot.failures_of(echo), failures);
        }
        assert_eq!(slot.failures_of(meters), 0);
        slot.note(meters, false);
        assert_eq!(slot.failures_of(echo), 0, "another experiment is between");
        slot.note(meters, true);
        assert_eq!(slot.failures_of(meters), 0);
    }

    #[test]
    fn device_that_failed_to_start_is_in_the_records() {
        let record = absent_slot().record().unwrap();
        assert_eq!(record.commands, ["# it burns"]);
        assert!(record.openflow && record.version.contains("could not be started"));
    }
}
