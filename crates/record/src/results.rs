//! The records of a run, put in order for whoever wants to know what came of it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use crate::{
    Catalogue, ChangeOutcome, Description, DeviceRecord, EchoOutcome, Entry, ExperimentName,
    FlowTableOutcome, MatchSet, MeterAct, MeterOutcome, MeterUnit, Outcome, RateOutcome,
    RequestsOutcome, Session, TcpOutcome, Trial,
};

/// An experiment of a run; keys sort in the order of reports.
#[derive(Clone, Debug)]
pub struct ExperimentKey {
    position: usize,
    name: ExperimentName,
    description: Option<&'static Description>,
}

impl ExperimentKey {
    /// Name of the experiment.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Description of the experiment, or `None` if the catalogue has none.
    #[must_use]
    pub const fn description(&self) -> Option<&'static Description> {
        self.description
    }
}

impl PartialEq for ExperimentKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ExperimentKey {}

impl PartialOrd for ExperimentKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ExperimentKey {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.position, &self.name).cmp(&(other.position, &other.name))
    }
}

impl fmt::Display for ExperimentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

/// Sessions and trials of a run.
#[derive(Clone, Debug)]
pub struct Results {
    catalogue: Catalogue,
    sessions: Vec<Session>,
    trials: Vec<Trial>,
}

impl Results {
    /// Sorts `entries` in the order of `catalogue`. Of a trial that was repeated, the last counts.
    #[must_use]
    pub fn new(entries: Vec<Entry>, catalogue: Catalogue) -> Self {
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
        trials.sort_by_key(|trial| (catalogue.position(trial.experiment.as_str()), trial.order));
        Self {
            catalogue,
            sessions,
            trials,
        }
    }

    /// Descriptions of all experiments.
    #[must_use]
    pub const fn catalogue(&self) -> Catalogue {
        self.catalogue
    }

    /// Key of a trial's experiment.
    #[must_use]
    pub fn key(&self, trial: &Trial) -> ExperimentKey {
        ExperimentKey {
            position: self.catalogue.position(trial.experiment.as_str()),
            name: trial.experiment.clone(),
            description: self.description(trial),
        }
    }

    /// Returns the description of a trial's experiment, or `None` if the catalogue has none.
    #[must_use]
    pub fn description(&self, trial: &Trial) -> Option<&'static Description> {
        self.catalogue.find(trial.experiment.as_str())
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

    /// The devices that took part in `experiment`, whatever came of it.
    #[must_use]
    pub fn devices_in(&self, experiment: &str) -> Vec<&DeviceRecord> {
        let took_part = |device: &&DeviceRecord| {
            let mut trials = self.trials.iter();
            trials.any(|trial| trial.experiment == experiment && trial.device == device.name)
        };
        self.devices().into_iter().filter(took_part).collect()
    }

    /// Whether there is anything of `experiment`.
    #[must_use]
    pub fn has(&self, experiment: &str) -> bool {
        self.trials
            .iter()
            .any(|trial| trial.experiment == experiment)
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
        test: &'a str,
    ) -> impl Iterator<Item = (&'a Trial, &'a ChangeOutcome)> {
        self.valid(device)
            .filter_map(move |(trial, outcome)| match outcome {
                Outcome::Change(change) if change.test == test => Some((trial, change)),
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

    fn results(entries: Vec<Entry>) -> Results {
        Results::new(entries, Catalogue::new(&[]))
    }

    #[test]
    fn a_trial_done_again_counts_once() {
        let mut first = fixture::echo_trial("ovs", 1, MatchSet::Ip, 64);
        let second = first.clone();
        first.outcome = None;
        let entries = [first, second].map(|trial| Entry::Trial(Box::new(trial)));
        let results = results(entries.to_vec());
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
        let results = results(entries);
        let names = |experiment: &str| {
            let devices = results.devices_in(experiment).into_iter();
            devices.map(|device| device.name.as_str()).collect()
        };
        let of_echo: Vec<&str> = names("echo");
        assert_eq!(of_echo, ["ovs"]);
        let of_tcp: Vec<&str> = names("tcp-throughput");
        assert!(of_tcp.is_empty(), "{of_tcp:?}");
        assert!(results.devices().len() > 1);
    }

    #[test]
    fn void_trials_are_kept_but_do_not_count() {
        let results = results(fixture::entries());
        let void = results.trials().iter().filter(|trial| !trial.is_valid());
        assert!(void.count() > 0);
        let outcomes = results.valid("comporta");
        assert!(outcomes.count() > 0);
    }
}
