//! The records of a run, in the order of reports.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use crate::{Catalogue, Description, DeviceRecord, Entry, ExperimentName, Session, Trial};

/// Experiment of a run; keys sort in the order of reports.
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
    /// Sorts `entries` in the order of `catalogue`. Of trials with the same identifier, the last
    /// counts.
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

    /// Returns the descriptions of all experiments.
    #[must_use]
    pub const fn catalogue(&self) -> Catalogue {
        self.catalogue
    }

    /// Returns the key of a trial's experiment.
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

    /// Returns the sessions, oldest first.
    #[must_use]
    pub fn sessions(&self) -> &[Session] {
        &self.sessions
    }

    /// Returns all trials, valid or not, in the order of the plan.
    #[must_use]
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Returns the devices of all sessions, each as the last session has it.
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

    /// Returns the devices that have trials of `experiment`, valid or not.
    #[must_use]
    pub fn devices_in(&self, experiment: &str) -> Vec<&DeviceRecord> {
        let took_part = |device: &&DeviceRecord| {
            let mut trials = self.trials.iter();
            trials.any(|trial| trial.experiment == experiment && trial.device == device.name)
        };
        self.devices().into_iter().filter(took_part).collect()
    }

    /// Returns true if there is a trial of `experiment`.
    #[must_use]
    pub fn has(&self, experiment: &str) -> bool {
        self.trials
            .iter()
            .any(|trial| trial.experiment == experiment)
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
    fn repeated_trial_counts_once() {
        let mut first = fixture::echo_trial("ovs", 1, "ip", 64);
        let second = first.clone();
        first.reading = None;
        let entries = [first, second].map(|trial| Entry::Trial(Box::new(trial)));
        let results = results(entries.to_vec());
        assert_eq!(results.trials().len(), 1);
        assert!(results.trials()[0].is_valid(), "the last one counts");
    }

    #[test]
    fn devices_of_an_experiment_are_those_of_its_trials() {
        let trial = fixture::echo_trial("ovs", 1, "ip", 64);
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
    fn void_trials_are_kept() {
        let results = results(fixture::entries());
        let void = results.trials().iter().filter(|trial| !trial.is_valid());
        assert!(void.count() > 0);
    }
}
