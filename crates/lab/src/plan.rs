//! The trials of a run and their order: a pure function of the options.
//!
//! Trials are ordered in blocks. A block has one trial for each device, at the same point of the
//! same experiment, in random order, so that drift (temperature, other tenants of the machine)
//! affects all devices alike, and a calibration is next to every result:
//!
//! ```text
//! run 1:  echo  ip/64: ovs, comporta, direct | exact/64: comporta, direct, ovs | ...
//! run 2:  echo  exact/64: direct, ovs, comporta | ip/64: ...
//! ```
//!
//! The plan resolves the test setup of each trial, so that a run needs no more than the plan.

use std::time::Duration;

use base::SplitMix64;
use record::Point;
use testbed::DeviceKind;

use crate::catalogue::Experiment;
use crate::names::ExperimentId;
use crate::options::RunOptions;
use crate::setup::SetupRequest;

/// Trial of a plan.
#[derive(Clone, Debug)]
pub struct PlannedTrial {
    /// Experiment.
    pub experiment: ExperimentId,
    /// Values of its parameters.
    pub point: Point,
    /// Device under test.
    pub device: DeviceKind,
    /// Number of the repetition, from 1.
    pub run: u32,
    /// Dedicated test setup; `None` for the shared setup of the device.
    pub(crate) setup: Option<SetupRequest>,
}

impl PlannedTrial {
    /// Returns the identifier, unique in the run: `echo/match_set=ip/frame_bytes=64/ovs/3`.
    #[must_use]
    pub fn id(&self) -> String {
        let label = self.point.label(self.experiment.description());
        let run = self.run.to_string();
        let parts = [self.experiment.name(), &label, self.device.name(), &run];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join("/")
    }

    /// Returns the approximate duration, for a forecast.
    #[must_use]
    pub fn estimate(&self) -> Duration {
        let seconds = (self.experiment.experiment().seconds)(&self.point);
        overhead(self.device) + Duration::from_secs_f64(seconds)
    }
}

/// Returns the typical duration of a trial's preparation on `device`.
const fn overhead(device: DeviceKind) -> Duration {
    Duration::from_millis(match device {
        DeviceKind::Ovs
        | DeviceKind::OvsTso
        | DeviceKind::OvsAfxdp
        | DeviceKind::OvsDpdk
        | DeviceKind::OvsTap
        | DeviceKind::OvsVlanBridge
        | DeviceKind::External(_) => 600,
        DeviceKind::Comporta
        | DeviceKind::ComportaXdp
        | DeviceKind::ComportaDpdk
        | DeviceKind::ComportaTap
        | DeviceKind::LinuxBridge
        | DeviceKind::Nftables
        | DeviceKind::VlanBridge
        | DeviceKind::Forwarder
        | DeviceKind::Impaired(_)
        | DeviceKind::Direct => 50,
    })
}

/// Returns all trials of a run, in their order.
///
/// # Panics
/// The settings are invalid: [`RunOptions::check`] refuses them.
#[must_use]
pub fn plan(options: &RunOptions) -> Vec<PlannedTrial> {
    let mut trials = Vec::new();
    // An interrupted run has as many runs of every experiment.
    for run in 1..=options.runs {
        for &experiment in &options.experiments {
            // The order depends on the seed and the number of the run only, so that more runs or
            // other experiments do not change it.
            let mut random = SplitMix64::new(options.seed ^ (u64::from(run) << 32));
            let points = options.settings.points(experiment.description());
            let mut points = points.expect("the options are checked");
            random.shuffle(&mut points);
            for point in points {
                let devices = block(options, experiment, &point, &mut random);
                trials.extend(devices.into_iter().map(|device| PlannedTrial {
                    setup: experiment.experiment().dedicated_setup(device, &point),
                    experiment,
                    point: point.clone(),
                    device,
                    run,
                }));
            }
        }
    }
    trials
}

/// Returns the devices of a block, in random order.
fn block(
    options: &RunOptions,
    experiment: ExperimentId,
    point: &Point,
    random: &mut SplitMix64,
) -> Vec<DeviceKind> {
    let mut devices = options.devices.clone();
    random.shuffle(&mut devices);
    let is_drawn = experiment.is_calibrated() || !options.calibration_only;
    devices.retain(|device| {
        let is_wanted = *device != DeviceKind::Direct || is_drawn;
        is_wanted && takes_part(*device, experiment.experiment(), point)
    });
    devices
}

/// Returns true if `device` is measured at a point of `experiment`. Open vSwitch with TCP
/// segmentation offload differs from Open vSwitch without it in TCP only.
fn takes_part(device: DeviceKind, experiment: &Experiment, point: &Point) -> bool {
    let differs = device != DeviceKind::OvsTso || experiment.measures_tcp;
    differs && (experiment.applies_to)(device, point)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Selection;
    use record::Profile;
    use std::collections::BTreeSet;

    fn experiments(names: &[&str]) -> Vec<ExperimentId> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn options(names: &[&str]) -> RunOptions {
        RunOptions {
            experiments: experiments(names),
            ..RunOptions::default()
        }
    }

    fn ids(trials: &[PlannedTrial]) -> Vec<String> {
        trials.iter().map(PlannedTrial::id).collect()
    }

    #[test]
    fn plan_has_every_trial_on_every_device_in_every_run() {
        let trials = plan(&options(&[
            "echo",
            "tcp-throughput",
            "forwarding-rate",
            "flow-table",
            "meters",
            "changes",
            "tcp-requests",
        ]));
        let of_all = 5 * 4 * (3 * 5 + 1 + 1 + 7);
        let of_flow_table = 5 * 2;
        // Four rates by two units: two devices drop, one remarks.
        let of_meters = 5 * 4 * 2 * (2 + 1);
        let of_changes = 5 * 2 * 4;
        assert_eq!(
            trials.len(),
            of_all + of_flow_table + of_meters + of_changes
        );
        let distinct: BTreeSet<String> = ids(&trials).into_iter().collect();
        assert_eq!(distinct.len(), trials.len());
    }

    #[test]
    fn devices_take_turns() {
        let options = options(&["echo", "tcp-throughput", "forwarding-rate"]);
        for block in plan(&options).chunks(4) {
            let devices: BTreeSet<DeviceKind> = block.iter().map(|trial| trial.device).collect();
            assert_eq!(devices.len(), 4);
            let first = &block[0];
            assert!(
                block
                    .iter()
                    .all(|one| { one.experiment == first.experiment && one.point == first.point })
            );
        }
    }

    #[test]
    fn calibration_takes_part_where_its_share_is_drawn() {
        let with = |devices: &[DeviceKind], words: &str| {
            let selection: Selection = words.parse().unwrap();
            let mut options = RunOptions {
                experiments: selection.0,
                devices: devices.to_vec(),
                runs: 1,
                ..RunOptions::of(Profile::Quick)
            };
            options.add_calibration();
            let of_link = plan(&options).into_iter();
            let of_link = of_link.filter(|trial| trial.device == DeviceKind::Direct);
            let names: BTreeSet<&str> = of_link.map(|trial| trial.experiment.name()).collect();
            names.into_iter().collect::<Vec<_>>()
        };
        let ours = &[DeviceKind::Comporta];
        let drawn = [
            "calibration-load",
            "calibration-size",
            "connection-rate",
            "echo",
            "established-rate",
            "first-packet",
            "latency-vs-load",
            "latency-vs-size",
        ];
        assert_eq!(with(ours, "all"), drawn);
        assert_eq!(with(ours, "calibration"), drawn[..2]);
        assert_eq!(with(ours, "throughput"), [""; 0]);
        assert!(with(&[DeviceKind::Direct], "all").len() > drawn.len());
        assert_eq!(with(&[DeviceKind::Forwarder], "echo"), [""; 0]);
    }

    #[test]
    fn plan_order_depends_on_the_seed_and_not_on_the_number_of_runs() {
        let echo = |runs, seed| {
            let planned = plan(&RunOptions {
                runs,
                seed,
                ..options(&["echo"])
            });
            ids(&planned)
        };
        let (few, more) = (echo(2, 1), echo(5, 1));
        assert!(more.starts_with(&few));
        assert_ne!(more, echo(5, 2));
    }

    #[test]
    fn trial_identifier_names_experiment_axes_device_and_run() {
        let trials = ids(&plan(&options(&["echo", "forwarding-rate", "flow-table"])));
        for id in [
            "echo/match_set=exact/frame_bytes=64/ovs/3",
            "forwarding-rate/offer=flat-out/ovs/3",
            "flow-table/ovs/3",
        ] {
            assert!(trials.iter().any(|trial| trial == id), "{id}");
        }
    }

    #[test]
    fn plan_resolves_the_setup_of_each_trial() {
        let of = |name: &str| plan(&options(&[name])).remove(0).setup;
        assert!(of("echo").is_none());
        let chain = of("chain").expect("a chain of bridges is a dedicated setup");
        assert!(chain.topology.is_chain());
    }
}
