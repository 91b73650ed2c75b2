//! Options of a run, with defaults that reproduce the published experiments, and their bounds.

use std::path::PathBuf;

use record::{Family, Profile, Settings};
use report::Language;
use testbed::DeviceKind;

use crate::failure::BadOption;
use crate::names::ExperimentId;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Experiments, measured in this order.
    pub experiments: Vec<ExperimentId>,
    /// Devices; all are set up during the whole run, and measured in turn.
    pub devices: Vec<DeviceKind>,
    /// True if the bare link is measured only for experiments that draw the tester's own share.
    pub calibration_only: bool,
    /// Number of repetitions of each trial. An interval needs three.
    pub runs: u32,
    /// Seed of the order of trials.
    pub seed: u64,
    /// Directory for records, logs and the report; created if it does not exist.
    pub directory: PathBuf,
    /// True to continue the run in `directory`, without its completed trials.
    pub resume: bool,
    /// The program `comporta`, for the device of that name.
    pub comporta: PathBuf,
    /// Cores of the lab's threads and of the hosts' programs; chosen if empty.
    pub tester_cores: Vec<usize>,
    /// Cores of the devices; chosen if empty.
    pub device_cores: Vec<usize>,
    /// Command line, for the records.
    pub command_line: String,
    /// Language of the report.
    pub language: Language,
    /// Profile, and values of the experiments' parameters.
    pub settings: Settings,
}

impl Default for RunOptions {
    fn default() -> Self {
        let echo = ExperimentId::all().find(|one| one.name() == "echo");
        Self {
            experiments: echo.into_iter().collect(),
            devices: vec![
                DeviceKind::Comporta,
                DeviceKind::Ovs,
                DeviceKind::LinuxBridge,
                DeviceKind::Direct,
            ],
            calibration_only: false,
            runs: 5,
            seed: 1,
            directory: PathBuf::from("results/lab"),
            resume: false,
            comporta: PathBuf::from("comporta"),
            tester_cores: Vec::new(),
            device_cores: Vec::new(),
            command_line: String::new(),
            language: Language::default(),
            settings: Settings::default(),
        }
    }
}

impl RunOptions {
    /// Returns the defaults of a profile.
    #[must_use]
    pub fn of(profile: Profile) -> Self {
        let mut options = Self::default();
        options.settings.profile = profile;
        if profile == Profile::Quick {
            options.runs = 3;
        }
        options
    }

    /// Adds the bare link to the devices if an experiment is drawn beside the tester's own share.
    /// It is not added to a device that never sleeps, nor to network cards, whose link is another
    /// one.
    pub fn add_calibration(&mut self) {
        let is_calibration = |one: &ExperimentId| one.family() == Family::Calibration;
        if self.experiments.iter().all(is_calibration) {
            // No other device takes part.
            self.devices = vec![DeviceKind::Direct];
        }
        let is_given = self.devices.contains(&DeviceKind::Direct);
        let is_drawn = self.experiments.iter().any(|one| one.is_calibrated());
        let is_alone = |kind: &DeviceKind| kind.polls() || matches!(kind, DeviceKind::External(_));
        if is_drawn && !is_given && !self.devices.iter().any(is_alone) {
            self.devices.push(DeviceKind::Direct);
            self.calibration_only = true;
        }
    }

    /// Returns the first of `results/run-1`, `results/run-2` and so on that does not exist.
    #[must_use]
    pub fn free_directory() -> PathBuf {
        (1_u32..)
            .map(|number| PathBuf::from(format!("results/run-{number}")))
            .find(|directory| !directory.exists())
            .expect("there are more numbers than directories")
    }

    /// Checks the options.
    ///
    /// # Errors
    /// The first invalid option, with the valid values.
    pub fn check(&self) -> Result<(), BadOption> {
        let polls = |device: &DeviceKind| device.polls();
        for (is_valid, rule) in [
            (
                are_distinct(&self.experiments) && !self.experiments.is_empty(),
                "experiments: at least one, and each once",
            ),
            (
                are_distinct(&names(&self.devices)) && !self.devices.is_empty(),
                "devices: at least one, and each once",
            ),
            (
                self.devices.len() == 1 || !self.devices.iter().any(polls),
                "devices: forwarder, impaired, ovs-afxdp and those of DPDK never sleep; each is measured alone",
            ),
            ((1..=1_000).contains(&self.runs), "runs: from 1 to 1000"),
        ] {
            if !is_valid {
                return Err(BadOption(rule.to_owned()));
            }
        }
        let experiments = self.experiments.iter().map(|one| one.description());
        let checked = self.settings.check(&experiments.collect::<Vec<_>>());
        checked.map_err(|error| BadOption(error.to_string()))
    }
}

/// Returns the names of devices in records, where nothing else distinguishes them.
fn names(devices: &[DeviceKind]) -> Vec<&'static str> {
    devices.iter().map(|device| device.name()).collect()
}

/// Returns true if no two items are equal.
fn are_distinct<T: PartialEq>(items: &[T]) -> bool {
    let mut indices = 1..items.len();
    indices.all(|index| !items[..index].contains(&items[index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid() {
        assert_eq!(RunOptions::default().check(), Ok(()));
    }

    #[test]
    fn invalid_options_are_refused_with_the_valid_ones() {
        let check = |edit: fn(&mut RunOptions)| {
            let mut options = RunOptions::default();
            edit(&mut options);
            options.check().map_err(|error| error.to_string())
        };
        let refused = |text: &str| Err(text.to_owned());
        assert_eq!(check(|o| o.runs = 0), refused("runs: from 1 to 1000"));
        assert_eq!(
            check(|o| o.settings.parse("frame_bytes=60").unwrap()),
            refused("invalid frame_bytes=60 of echo: expected a whole number from 64 to 1518")
        );
        assert_eq!(
            check(|o| o.devices.push(DeviceKind::Ovs)),
            refused("devices: at least one, and each once")
        );
        assert_eq!(
            check(|o| o.devices.push(DeviceKind::Forwarder)),
            refused(
                "devices: forwarder, impaired, ovs-afxdp and those of DPDK never sleep; each is measured alone"
            )
        );
    }
}
