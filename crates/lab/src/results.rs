//! The records of a run, put in order for whoever wants to know what came of it.

use std::collections::BTreeMap;

use crate::record::{
    ChangeOutcome, DeviceRecord, EchoOutcome, Entry, FlowTableOutcome, MeterAct, MeterOutcome,
    MeterUnit, Outcome, RateOutcome, RequestsOutcome, Session, TcpOutcome, Trial,
};
use crate::{ChangeTest, MatchSet, Scenario};

/// Sessions and trials of a run.
#[derive(Clone, Debug, Default)]
pub struct Results {
    sessions: Vec<Session>,
    trials: Vec<Trial>,
}

impl Results {
    /// Puts `entries` in order. Of a trial that was done again, the last counts.
    #[must_use]
    pub fn new(entries: Vec<Entry>) -> Self {
        let mut sessions = Vec::new();
        let mut trials: BTreeMap<String, Trial> = BTreeMap::new();
        for entry in entries {
            match entry {
                Entry::Session(session) => sessions.push(*session),
                Entry::Trial(trial) => {
                    trials.insert(trial.id.clone(), *trial);
                }
            }
        }
        let mut trials: Vec<Trial> = trials.into_values().collect();
        trials.sort_by_key(|trial| (trial.scenario, trial.order));
        Self { sessions, trials }
    }

    /// The starts of the lab, oldest first.
    #[must_use]
    pub fn sessions(&self) -> &[Session] {
        &self.sessions
    }

    /// All trials, whatever they are worth, in the order of their plan.
    #[must_use]
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// The devices that any session had, as the last one had them, in its order.
    #[must_use]
    pub fn devices(&self) -> Vec<&DeviceRecord> {
        let mut devices: Vec<&DeviceRecord> = Vec::new();
        let newest_first = self.sessions.iter().rev();
        for device in newest_first.flat_map(|session| &session.devices) {
            if !devices.iter().any(|known| known.name == device.name) {
                devices.push(device);
            }
        }
        devices
    }

    /// The devices that took part in `scenario`, whatever came of it.
    #[must_use]
    pub fn devices_in(&self, scenario: Scenario) -> Vec<&DeviceRecord> {
        let took_part = |device: &&DeviceRecord| {
            let mut trials = self.trials.iter();
            trials.any(|trial| trial.scenario == scenario && trial.device == device.name)
        };
        self.devices().into_iter().filter(took_part).collect()
    }

    /// Whether there is anything of `scenario`.
    #[must_use]
    pub fn has(&self, scenario: Scenario) -> bool {
        self.trials.iter().any(|trial| trial.scenario == scenario)
    }

    /// The valid echoes of `device` by `set` with frames of `frame_bytes`, by run.
    pub fn echoes<'a>(
        &'a self,
        device: &'a str,
        set: MatchSet,
        frame_bytes: u16,
    ) -> impl Iterator<Item = (&'a Trial, &'a EchoOutcome)> {
        self.valid(device)
            .filter_map(move |(trial, outcome)| match outcome {
                Outcome::Echo(echo) if echo.match_set == set && echo.frame_bytes == frame_bytes => {
                    Some((trial, echo))
                }
                _ => None,
            })
    }

    /// The valid TCP streams of `device`, by run.
    pub fn streams<'a>(
        &'a self,
        device: &'a str,
    ) -> impl Iterator<Item = (&'a Trial, &'a TcpOutcome)> {
        self.valid(device)
            .filter_map(|(trial, outcome)| match outcome {
                Outcome::TcpThroughput(tcp) => Some((trial, tcp)),
                _ => None,
            })
    }

    /// The valid forwarding rates of `device` where `intended` frames a second were
    /// to be offered, or as many as possible (none), by run.
    pub fn rates<'a>(
        &'a self,
        device: &'a str,
        intended: Option<u32>,
    ) -> impl Iterator<Item = (&'a Trial, &'a RateOutcome)> {
        self.valid(device)
            .filter_map(move |(trial, outcome)| match outcome {
                Outcome::ForwardingRate(rate) if rate.intended_pps == intended => {
                    Some((trial, rate))
                }
                _ => None,
            })
    }

    /// The valid flow tables of `device`, by run.
    pub fn flow_tables<'a>(
        &'a self,
        device: &'a str,
    ) -> impl Iterator<Item = (&'a Trial, &'a FlowTableOutcome)> {
        self.valid(device)
            .filter_map(|(trial, outcome)| match outcome {
                Outcome::FlowTable(table) => Some((trial, table)),
                _ => None,
            })
    }

    /// The valid meters of `device` that are like this one, by run.
    pub fn meters<'a>(
        &'a self,
        device: &'a str,
        (unit, act, pps): (MeterUnit, MeterAct, u32),
    ) -> impl Iterator<Item = (&'a Trial, &'a MeterOutcome)> {
        self.valid(device)
            .filter_map(move |(trial, outcome)| match outcome {
                Outcome::Meter(meter)
                    if (meter.unit, meter.act, meter.nominal_pps) == (unit, act, pps) =>
                {
                    Some((trial, meter))
                }
                _ => None,
            })
    }

    /// The valid tests of `device` in which rules changed in this way, by run.
    pub fn changes<'a>(
        &'a self,
        device: &'a str,
        test: ChangeTest,
    ) -> impl Iterator<Item = (&'a Trial, &'a ChangeOutcome)> {
        self.valid(device)
            .filter_map(move |(trial, outcome)| match outcome {
                Outcome::Change(change) if change.test == test.name() => Some((trial, change)),
                _ => None,
            })
    }

    /// The valid tests of `device` by requests over TCP, by run.
    pub fn requests<'a>(
        &'a self,
        device: &'a str,
    ) -> impl Iterator<Item = (&'a Trial, &'a RequestsOutcome)> {
        self.valid(device)
            .filter_map(|(trial, outcome)| match outcome {
                Outcome::Requests(requests) => Some((trial, requests)),
                _ => None,
            })
    }

    fn valid<'a>(&'a self, device: &'a str) -> impl Iterator<Item = (&'a Trial, &'a Outcome)> {
        self.trials
            .iter()
            .filter(move |trial| trial.device == device && trial.is_valid())
            .filter_map(|trial| Some((trial, trial.outcome.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_trial_done_again_counts_once() {
        let mut first = fixture::echo_trial("ovs", 1, MatchSet::Ip, 64);
        let second = first.clone();
        first.outcome = None;
        let entries = [first, second].map(|trial| Entry::Trial(Box::new(trial)));
        let results = Results::new(entries.to_vec());
        assert_eq!(results.trials().len(), 1);
        assert_eq!(results.echoes("ovs", MatchSet::Ip, 64).count(), 1);
        assert_eq!(results.echoes("ovs", MatchSet::Ip, 128).count(), 0);
    }

    #[test]
    fn a_device_is_shown_where_it_took_part() {
        let trial = fixture::echo_trial("ovs", 1, MatchSet::Ip, 64);
        let mut entries = fixture::entries();
        entries.retain(|entry| matches!(entry, Entry::Session(_)));
        entries.push(Entry::Trial(Box::new(trial)));
        let results = Results::new(entries);
        let names = |scenario| {
            let devices = results.devices_in(scenario).into_iter();
            devices.map(|device| device.name.as_str()).collect()
        };
        let of_echo: Vec<&str> = names(Scenario::Echo);
        assert_eq!(of_echo, ["ovs"]);
        let of_tcp: Vec<&str> = names(Scenario::TcpThroughput);
        assert!(of_tcp.is_empty(), "{of_tcp:?}");
        assert!(results.devices().len() > 1);
    }

    #[test]
    fn void_trials_are_kept_but_do_not_count() {
        let results = Results::new(fixture::entries());
        let void = results.trials().iter().filter(|trial| !trial.is_valid());
        assert!(void.count() > 0);
        let outcomes = results.valid("comporta");
        assert!(outcomes.count() > 0);
    }
}
