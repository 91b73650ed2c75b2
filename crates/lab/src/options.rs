//! What a user may ask of a run, with defaults that reproduce the published
//! experiments, and the bounds within which that makes sense.

use std::path::PathBuf;

use record::Profile;
use record::{BadOption, Parameters, are_distinct, first_broken};
use report::Language;
use testbed::DeviceKind;

use crate::Scenario;

/// A run: which experiments, on which devices, how often, and where to.
#[derive(Clone, Debug)]
pub struct Options {
    /// The experiments, done in this order.
    pub scenarios: Vec<Scenario>,
    /// The devices; all are up during the whole run, and tested in turns.
    pub devices: Vec<DeviceKind>,
    /// Whether the bare cable is among the devices for calibration alone: it takes part where the
    /// tester's own part of a delay is drawn, and nowhere else.
    pub floor_only: bool,
    /// How often every test is done. Two at least make an interval.
    pub runs: u32,
    /// What determines the order of tests.
    pub seed: u64,
    /// The directory for records, logs and the report; made if it is not there.
    pub directory: PathBuf,
    /// Whether to go on with the run in `directory`, leaving out what it has.
    pub resume: bool,
    /// The program `comporta`, for the device of that name.
    pub comporta: PathBuf,
    /// The cores for the lab's own threads and for hosts' programs; chosen if empty.
    pub tester_cores: Vec<usize>,
    /// The cores for the devices; chosen if empty.
    pub device_cores: Vec<usize>,
    /// The command that asked for this run, for the record.
    pub command_line: String,
    /// The language of the report.
    pub language: Language,
    /// How the experiments are done.
    pub parameters: Parameters,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            scenarios: vec![Scenario::Echo],
            devices: vec![
                DeviceKind::Comporta,
                DeviceKind::Ovs,
                DeviceKind::LinuxBridge,
                DeviceKind::Direct,
            ],
            floor_only: false,
            runs: 5,
            seed: 1,
            directory: PathBuf::from("results/lab"),
            resume: false,
            comporta: PathBuf::from("comporta"),
            tester_cores: Vec::new(),
            device_cores: Vec::new(),
            command_line: String::new(),
            language: Language::default(),
            parameters: Parameters::default(),
        }
    }
}

impl Options {
    /// As this profile has it.
    #[must_use]
    pub fn of(profile: Profile) -> Self {
        match profile {
            Profile::Quick => Self::quick(),
            Profile::Paper | Profile::Rfc => {
                let mut options = Self::default();
                options.parameters.settings.profile = profile;
                options
            }
        }
    }

    /// A quick look: enough to see the devices apart, too little to quote.
    #[must_use]
    pub fn quick() -> Self {
        let mut options = Self {
            runs: 3,
            ..Self::default()
        };
        let Parameters {
            echo,
            tcp_throughput,
            forwarding_rate,
            flow_table,
            meters,
            changes,
            settings,
        } = &mut options.parameters;
        settings.profile = Profile::Quick;
        echo.packets = 2_000;
        echo.frame_bytes = vec![64];
        tcp_throughput.seconds = 2;
        forwarding_rate.milliseconds = 500;
        forwarding_rate.paced_pps = vec![100_000, 200_000];
        flow_table.flows = 20_000;
        changes.milliseconds = 1_000;
        changes.dump_flows = 20_000;
        meters.seconds = 2;
        meters.pps = vec![100_000];
        options
    }

    /// Adds the bare cable to the devices, if it is not among them and something that is asked for is
    /// drawn beside what the tester itself costs. Beside a device that never sleeps there is none, nor
    /// beside network cards, whose cable is another.
    pub fn add_calibration(&mut self) {
        let is_calibration = |one: &Scenario| one.family() == record::Family::Calibration;
        if self.scenarios.iter().all(is_calibration) {
            // Nobody else takes part.
            self.devices = vec![DeviceKind::Direct];
        }
        let is_asked = self.devices.contains(&DeviceKind::Direct);
        let is_wanted = self.scenarios.iter().any(|one| one.is_calibrated());
        let is_apart = |kind: &DeviceKind| kind.polls() || matches!(kind, DeviceKind::External(_));
        if is_wanted && !is_asked && !self.devices.iter().any(is_apart) {
            self.devices.push(DeviceKind::Direct);
            self.floor_only = true;
        }
    }

    /// The first of `results/run-1`, `results/run-2` and so on that is not there yet.
    #[must_use]
    pub fn free_directory() -> PathBuf {
        (1_u32..)
            .map(|number| PathBuf::from(format!("results/run-{number}")))
            .find(|directory| !directory.exists())
            .expect("there are more numbers than directories")
    }

    /// Checks that the run makes sense.
    ///
    /// # Errors
    /// The first option that does not, with what would.
    pub fn check(&self) -> Result<(), BadOption> {
        first_broken(&[
            (
                are_distinct(&self.scenarios) && !self.scenarios.is_empty(),
                "scenarios: at least one, and each once",
            ),
            (
                are_distinct(&names(&self.devices)) && !self.devices.is_empty(),
                "devices: at least one, and each once",
            ),
            (
                self.devices.len() == 1 || !self.devices.iter().any(|device| device.polls()),
                "devices: forwarder, impaired, ovs-afxdp and those of DPDK never sleep; each is measured alone",
            ),
            ((1..=1_000).contains(&self.runs), "runs: from 1 to 1000"),
        ])?;
        let catalogued = self.scenarios.iter().filter_map(|scenario| match scenario {
            Scenario::Catalogued(one) => Some(&one.experiment().description),
            _ => None,
        });
        let settings = &self.parameters.settings;
        let checked = settings.check(&catalogued.collect::<Vec<_>>());
        checked.map_err(|error| BadOption(error.to_string()))?;
        self.parameters.check()
    }
}

/// What devices are called in records, where nothing else tells them apart.
fn names(devices: &[DeviceKind]) -> Vec<&'static str> {
    devices.iter().map(|device| device.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_make_sense() {
        assert_eq!(Options::default().check(), Ok(()));
    }

    #[test]
    fn what_makes_none_is_told_with_what_would() {
        let check = |edit: fn(&mut Options)| {
            let mut options = Options::default();
            edit(&mut options);
            options.check().map_err(|error| error.to_string())
        };
        let told = |text: &str| Err(text.to_owned());
        assert_eq!(check(|o| o.runs = 0), told("runs: from 1 to 1000"));
        assert_eq!(
            check(|o| o.parameters.echo.frame_bytes = vec![60]),
            told("frame sizes: from 64 to 1518 bytes, the checksum (FCS) included")
        );
        assert_eq!(
            check(|o| o.devices.push(DeviceKind::Ovs)),
            told("devices: at least one, and each once")
        );
        assert_eq!(
            check(|o| o.devices.push(DeviceKind::Forwarder)),
            told(
                "devices: forwarder, impaired, ovs-afxdp and those of DPDK never sleep; each is measured alone"
            )
        );
        assert_eq!(
            check(|o| o.parameters.forwarding_rate.paced_pps = vec![0]),
            told("rates: each above zero, and once")
        );
    }
}
