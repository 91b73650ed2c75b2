//! A device's place in a run: its station while it has one. A device that has died, or whose
//! connection is gone, is started anew for its next test; one that fails again and again is
//! given up.

use record::DeviceRecord;
use testbed::{DeviceKind, Mode};

use crate::scenario::Tools;
use crate::station::Station;
use crate::{LabError, Scenario};

/// Tests of an experiment in a row that cannot be done, before the device is given up for it;
/// and attempts in a row to start it, before it is given up for good.
const FAILURES_MAX: u32 = 3;

/// A place.
pub(crate) struct Place {
    kind: DeviceKind,
    station: Option<Station>,
    /// Why it has no station.
    absent: String,
    /// How often in a row it could not be started.
    unstarted: u32,
    /// Tests of a scenario that could not be done, since the last that could.
    failures: Option<(Scenario, u32)>,
}

impl Place {
    /// Of a device that was started, or could not be.
    pub(crate) fn of(kind: DeviceKind, built: Result<Station, &LabError>) -> Self {
        let absent = built.as_ref().err().map(ToString::to_string);
        Self {
            kind,
            unstarted: absent.is_some().into(),
            absent: absent.unwrap_or_default(),
            station: built.ok(),
            failures: None,
        }
    }

    /// The device.
    pub(crate) const fn kind(&self) -> DeviceKind {
        self.kind
    }

    /// Its station, if it has one.
    pub(crate) const fn station(&self) -> Option<&Station> {
        self.station.as_ref()
    }

    /// How the device is set up, for the records.
    pub(crate) fn record(&self) -> Result<DeviceRecord, testbed::Failure> {
        match &self.station {
            Some(station) => station.record(),
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

    /// Does a test of `scenario` at its station, which is made anew if the device has none, and
    /// tells what a reader must know of that. A device that does not stand it is taken away.
    pub(crate) fn attempt<T>(
        &mut self,
        scenario: Scenario,
        tools: &Tools<'_>,
        test: impl FnOnce(&mut Station) -> Result<T, String>,
    ) -> (Result<T, String>, Option<String>) {
        if self.failed_in(scenario) >= FAILURES_MAX {
            let reason = format!(
                "given up: {FAILURES_MAX} tests of this experiment in a row could not be done on this device"
            );
            return (Err(reason), None);
        }
        let (station, told) = match self.ready(tools) {
            Ok(ready) => ready,
            Err(reason) => return (Err(reason), None),
        };
        let outcome = test(station);
        let gone = outcome.is_err().then(|| station.is_sound().err()).flatten();
        self.note(scenario, outcome.is_ok());
        if let Some(reason) = gone {
            self.absent = reason;
            self.station = None;
        }
        (outcome, told)
    }

    /// Its station, and why it was made anew, if it was.
    fn ready(&mut self, tools: &Tools<'_>) -> Result<(&mut Station, Option<String>), String> {
        let died = self.station.as_mut().and_then(Station::death);
        if let Some(reason) = died {
            self.absent = reason;
            self.station = None;
        }
        if self.station.is_none() && self.unstarted >= FAILURES_MAX {
            return Err(format!("given up: {}", self.absent));
        }
        let mut told = None;
        let station = match self.station.take() {
            Some(station) => station,
            None => {
                let built = Station::build(
                    self.kind,
                    tools.options,
                    tools.cores,
                    tools.spawner,
                    tools.clock,
                );
                match built {
                    Ok(station) => {
                        told = Some(format!("the device was started anew: {}", self.absent));
                        station
                    }
                    Err(error) => {
                        self.unstarted += 1;
                        self.absent = error.to_string();
                        return Err(self.absent.clone());
                    }
                }
            }
        };
        self.unstarted = 0;
        Ok((self.station.insert(station), told))
    }

    fn note(&mut self, scenario: Scenario, done: bool) {
        let before = self.failed_in(scenario);
        self.failures = (!done).then_some((scenario, before + 1));
    }

    fn failed_in(&self, scenario: Scenario) -> u32 {
        let failed = self.failures.filter(|(failed, _)| *failed == scenario);
        failed.map_or(0, |(_, times)| times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_failures_in_a_row_are_of_one_experiment() {
        let never: LabError = testbed::Failure::Unfit("it burns".to_owned()).into();
        let mut place = Place::of(DeviceKind::Ovs, Err(&never));
        assert_eq!(
            (place.station().is_none(), &place.absent[..]),
            (true, "it burns")
        );
        for failures in 1..=3 {
            place.note(Scenario::Echo, false);
            assert_eq!(place.failed_in(Scenario::Echo), failures);
        }
        assert_eq!(place.failed_in(Scenario::Meters), 0);
        place.note(Scenario::Meters, false);
        assert_eq!(place.failed_in(Scenario::Echo), 0, "another came between");
        place.note(Scenario::Meters, true);
        assert_eq!(place.failed_in(Scenario::Meters), 0);
    }

    #[test]
    fn who_could_not_be_started_is_told_of_in_the_records() {
        let never: LabError = testbed::Failure::Unfit("it burns".to_owned()).into();
        let place = Place::of(DeviceKind::Ovs, Err(&never));
        let record = place.record().unwrap();
        assert_eq!(record.commands, ["# it burns"]);
        assert!(record.openflow && record.version.contains("could not be started"));
    }
}
