//! The tests of a run and their order: a pure function of the options.
//!
//! Tests come in blocks. A block holds the same test once for every device, in
//! random order, so that whatever drifts (heat, neighbours, the machine's mood)
//! falls on all devices alike, and a calibration stands beside every result.

use std::time::Duration;

use base::SplitMix64;
use record::{ChangeTest, MeterAct, MeterUnit};
use record::{MatchSet, Point};
use testbed::DeviceKind;

use crate::{Catalogued, Options, Scenario};

/// One test on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is done.
    pub test: Test,
    /// To which device.
    pub device: DeviceKind,
    /// The how manieth time, from 1.
    pub run: u32,
}

/// What is done, with its parameters that vary within a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// Echoes.
    Echo {
        /// What the rules match on.
        match_set: MatchSet,
        /// The size of frames with their checksum.
        frame_bytes: u16,
    },
    /// One TCP stream.
    TcpThroughput,
    /// Small frames.
    ForwardingRate(Offer),
    /// A large flow table.
    FlowTable,
    /// A meter.
    Meter(MeterTest),
    /// Rules that change.
    Change(ChangeTest),
    /// Requests and replies over one TCP connection.
    TcpRequests,
    /// An experiment of the catalogue, at a point of its parameters.
    Catalogued(Catalogued, Point),
}

/// A meter, by what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterTest {
    /// What it counts.
    pub unit: MeterUnit,
    /// What it does to what exceeds its rate.
    pub act: MeterAct,
    /// The frames that it lets pass in a second, whatever it counts.
    pub pps: u32,
}

/// How many frames are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Offer {
    /// So many a second, evenly.
    Paced(u32),
    /// As many as the generator can send.
    FlatOut,
}

impl Step {
    /// What tells this test from all others of a run.
    #[must_use]
    pub fn id(&self) -> String {
        let (scenario, device, run) = (self.test.scenario(), self.device, self.run);
        match &self.test {
            Test::Echo {
                match_set,
                frame_bytes,
            } => format!("{scenario}/{match_set}/{frame_bytes}/{device}/{run}"),
            Test::Catalogued(one, point) => {
                let label = point.label(&one.experiment().description);
                let parts = [scenario.name(), &label, device.name(), &run.to_string()];
                let parts = parts.into_iter().filter(|part| !part.is_empty());
                parts.collect::<Vec<_>>().join("/")
            }
            Test::TcpThroughput | Test::FlowTable | Test::TcpRequests => {
                format!("{scenario}/{device}/{run}")
            }
            Test::Meter(MeterTest { unit, act, pps }) => {
                let (unit, act) = (unit.name(), act.name());
                format!("{scenario}/{unit}-{act}/{pps}/{device}/{run}")
            }
            Test::Change(change) => format!("{scenario}/{}/{device}/{run}", change.name()),
            Test::ForwardingRate(Offer::Paced(pps)) => format!("{scenario}/{pps}/{device}/{run}"),
            Test::ForwardingRate(Offer::FlatOut) => format!("{scenario}/flat-out/{device}/{run}"),
        }
    }

    /// About how long it will take, for a forecast.
    #[must_use]
    pub fn estimate(&self, options: &Options) -> Duration {
        let parameters = &options.parameters;
        let (fixed, round_trip) = typical(self.device);
        let echo = &parameters.echo;
        fixed
            + match &self.test {
                Test::Catalogued(one, point) => {
                    Duration::from_secs_f64((one.experiment().seconds)(point))
                }
                Test::Echo { .. } | Test::TcpRequests => round_trip * (echo.packets + echo.warm_up),
                Test::TcpThroughput => {
                    Duration::from_secs(parameters.tcp_throughput.seconds.into())
                }
                Test::ForwardingRate(_) => {
                    Duration::from_millis(parameters.forwarding_rate.milliseconds.into())
                }
                Test::Meter(_) => Duration::from_secs((parameters.meters.seconds + 1).into()),
                Test::Change(test) => {
                    let flows = match test {
                        ChangeTest::Dump => parameters.changes.dump_flows,
                        ChangeTest::Quiet | ChangeTest::Effect | ChangeTest::FlowMods => 0,
                    };
                    // With the search for the rate before it.
                    Duration::from_millis(u64::from(parameters.changes.milliseconds) + 1_500)
                        + Duration::from_micros(20) * flows
                }
                // Added, told and deleted, and the wait for memory to be returned.
                Test::FlowTable => {
                    Duration::from_secs(3) + Duration::from_micros(30) * parameters.flow_table.flows
                }
            }
    }
}

/// What any test takes on `device` beside what it measures, and what a round trip takes, about.
const fn typical(device: DeviceKind) -> (Duration, Duration) {
    let fixed = Duration::from_millis(match device {
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
        | DeviceKind::VlanBridge
        | DeviceKind::Forwarder
        | DeviceKind::Impaired(_)
        | DeviceKind::Direct => 50,
    });
    let round_trip = Duration::from_micros(match device {
        DeviceKind::Impaired(_) => 450,
        DeviceKind::Ovs
        | DeviceKind::OvsTso
        | DeviceKind::OvsTap
        | DeviceKind::OvsVlanBridge
        | DeviceKind::External(_) => 110,
        DeviceKind::Comporta
        | DeviceKind::VlanBridge
        | DeviceKind::ComportaXdp
        | DeviceKind::ComportaDpdk
        | DeviceKind::ComportaTap
        | DeviceKind::Forwarder
        | DeviceKind::OvsAfxdp
        | DeviceKind::OvsDpdk => 50,
        DeviceKind::LinuxBridge | DeviceKind::Direct => 15,
    });
    (fixed, round_trip)
}

impl Test {
    /// The experiment that it belongs to.
    #[must_use]
    pub const fn scenario(&self) -> Scenario {
        match self {
            Self::Echo { .. } => Scenario::Echo,
            Self::TcpThroughput => Scenario::TcpThroughput,
            Self::ForwardingRate(_) => Scenario::ForwardingRate,
            Self::FlowTable => Scenario::FlowTable,
            Self::Meter(_) => Scenario::Meters,
            Self::Change(_) => Scenario::Changes,
            Self::TcpRequests => Scenario::TcpRequests,
            Self::Catalogued(one, _) => Scenario::Catalogued(*one),
        }
    }

    /// What the rules match on while it is done.
    #[must_use]
    pub const fn match_set(&self) -> MatchSet {
        match self {
            Self::Echo { match_set, .. } => *match_set,
            Self::TcpThroughput
            | Self::ForwardingRate(_)
            | Self::FlowTable
            | Self::Meter(_)
            | Self::Change(_)
            | Self::TcpRequests
            | Self::Catalogued(..) => MatchSet::Port,
        }
    }
}

/// All tests of a run, in their order.
#[must_use]
pub fn plan(options: &Options) -> Vec<Step> {
    let mut steps = Vec::new();
    // Whenever a run is interrupted, it has as much of every scenario.
    for run in 1..=options.runs {
        for &scenario in &options.scenarios {
            // A run's order depends on the seed and its own number only, so that
            // more runs, or other scenarios beside it, leave it as it was.
            let mut random = SplitMix64::new(options.seed ^ (u64::from(run) << 32));
            let mut blocks = tests(scenario, options);
            random.shuffle(&mut blocks);
            for test in blocks {
                let mut devices = options.devices.clone();
                random.shuffle(&mut devices);
                let is_for_floor = scenario.is_calibrated() || !options.floor_only;
                devices.retain(|device| {
                    let is_wanted = *device != DeviceKind::Direct || is_for_floor;
                    is_wanted && takes_part(*device, &test)
                });
                steps.extend(devices.into_iter().map(|device| Step {
                    test: test.clone(),
                    device,
                    run,
                }));
            }
        }
    }
    steps
}

/// Open vSwitch with TCP segmentation offload differs from Open vSwitch as it comes
/// in nothing but how it carries TCP; only what speaks OpenFlow has flow tables and
/// meters; and Open vSwitch's userspace data path has no band that remarks.
fn takes_part(device: DeviceKind, test: &Test) -> bool {
    let alone =
        device != DeviceKind::OvsTso || matches!(test, Test::TcpThroughput | Test::TcpRequests);
    let can = match test {
        Test::Meter(MeterTest {
            act: MeterAct::Remark,
            ..
        }) => matches!(
            device,
            DeviceKind::Comporta
                | DeviceKind::ComportaXdp
                | DeviceKind::ComportaDpdk
                | DeviceKind::ComportaTap
                | DeviceKind::VlanBridge
                | DeviceKind::External(_)
        ),
        Test::FlowTable | Test::Meter(_) | Test::Change(_) => device.speaks_openflow(),
        Test::Catalogued(one, point) => (one.experiment().takes)(device, point),
        Test::Echo { .. } | Test::TcpThroughput | Test::TcpRequests | Test::ForwardingRate(_) => {
            true
        }
    };
    alone && can
}

/// The tests of one round of `scenario`.
fn tests(scenario: Scenario, options: &Options) -> Vec<Test> {
    let parameters = &options.parameters;
    match scenario {
        Scenario::Echo => {
            let echo = &parameters.echo;
            let sizes = echo.frame_bytes.iter();
            sizes
                .flat_map(|&frame_bytes| {
                    echo.match_sets.iter().map(move |&match_set| Test::Echo {
                        match_set,
                        frame_bytes,
                    })
                })
                .collect()
        }
        Scenario::TcpThroughput => vec![Test::TcpThroughput],
        Scenario::FlowTable => vec![Test::FlowTable],
        Scenario::Meters => meters(&parameters.meters.pps),
        Scenario::TcpRequests => vec![Test::TcpRequests],
        Scenario::Changes => ChangeTest::ALL.map(Test::Change).to_vec(),
        Scenario::Catalogued(one) => {
            let points = parameters.settings.points(&one.experiment().description);
            let points = points.expect("checked with the options").into_iter();
            points.map(|point| Test::Catalogued(one, point)).collect()
        }
        Scenario::ForwardingRate => {
            let paced = parameters.forwarding_rate.paced_pps.iter();
            paced
                .map(|&pps| Offer::Paced(pps))
                .chain([Offer::FlatOut])
                .map(Test::ForwardingRate)
                .collect()
        }
    }
}

/// A meter of each kind for each rate.
fn meters(rates: &[u32]) -> Vec<Test> {
    let rates = rates.iter().copied();
    let acts = |pps| MeterAct::ALL.map(|act| (act, pps));
    let units = |(act, pps)| MeterUnit::ALL.map(|unit| Test::Meter(MeterTest { unit, act, pps }));
    rates.flat_map(acts).flat_map(units).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn options() -> Options {
        Options {
            scenarios: Scenario::OWN.to_vec(),
            ..Options::default()
        }
    }

    #[test]
    fn every_test_is_done_on_every_device_in_every_run() {
        let steps = plan(&options());
        let of_all = 5 * 4 * (3 * 5 + 1 + 1 + 7);
        let of_those_with_flows = 5 * 2;
        // Four rates by two units: dropped by two devices, remarked by one.
        let of_meters = 5 * 4 * 2 * (2 + 1);
        let of_changes = 5 * 2 * 4;
        assert_eq!(
            steps.len(),
            of_all + of_those_with_flows + of_meters + of_changes
        );
        let ids: BTreeSet<String> = steps.iter().map(Step::id).collect();
        assert_eq!(ids.len(), steps.len());
    }

    #[test]
    fn devices_take_turns() {
        let mut options = options();
        let all_take_part = [
            Scenario::Echo,
            Scenario::TcpThroughput,
            Scenario::ForwardingRate,
        ];
        options
            .scenarios
            .retain(|scenario| all_take_part.contains(scenario));
        for block in plan(&options).chunks(4) {
            let devices: BTreeSet<DeviceKind> = block.iter().map(|step| step.device).collect();
            assert_eq!(devices.len(), 4);
            assert!(block.iter().all(|step| step.test == block[0].test));
        }
    }

    #[test]
    fn a_cable_for_calibration_takes_part_where_its_part_is_drawn() {
        let with = |devices: &[DeviceKind], words: &str| {
            let asked: crate::Asked = words.parse().unwrap();
            let mut options = Options {
                scenarios: asked.0,
                devices: devices.to_vec(),
                runs: 1,
                ..Options::quick()
            };
            options.add_calibration();
            let of_cable = plan(&options).into_iter();
            let of_cable = of_cable.filter(|step| step.device == DeviceKind::Direct);
            let names: BTreeSet<&str> = of_cable.map(|step| step.test.scenario().name()).collect();
            names.into_iter().collect::<Vec<_>>()
        };
        let ours = &[DeviceKind::Comporta];
        let drawn = [
            "calibration-load",
            "calibration-size",
            "echo",
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
    fn the_seed_decides_the_order_and_more_runs_do_not_change_it() {
        let few = plan(&Options {
            scenarios: vec![Scenario::Echo],
            runs: 2,
            ..Options::default()
        });
        let more = plan(&Options {
            scenarios: vec![Scenario::Echo],
            ..Options::default()
        });
        assert!(more.starts_with(&few));
        let other = plan(&Options {
            seed: 2,
            ..Options::default()
        });
        assert_ne!(more, other);
    }

    #[test]
    fn an_id_tells_what_is_done() {
        let step = |test| Step {
            test,
            device: DeviceKind::Ovs,
            run: 3,
        };
        let echo = step(Test::Echo {
            match_set: MatchSet::Exact,
            frame_bytes: 64,
        });
        assert_eq!(echo.id(), "echo/exact/64/ovs/3");
        let rate = step(Test::ForwardingRate(Offer::FlatOut));
        assert_eq!(rate.id(), "forwarding-rate/flat-out/ovs/3");
    }
}
