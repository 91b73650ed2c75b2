//! What a run needs of the machine beside its devices: the programs that experiments call.

use std::collections::BTreeSet;

use testbed::Requirement;

use crate::{Options, Scenario};

/// A program, and the Debian package that brings it.
type Needed = (&'static str, &'static str);

const IPERF3: Needed = ("iperf3", "iperf3");

/// The programs that an experiment's hosts run.
fn programs(scenario: Scenario) -> &'static [Needed] {
    match scenario.name() {
        "tcp-throughput" | "vlan-ports" => &[IPERF3],
        "learning" => &[("ping", "iputils-ping"), ("ip", "iproute2")],
        _ => &[],
    }
}

/// What the devices and experiments of `options` need.
pub(super) fn requirements(options: &Options) -> Vec<Requirement> {
    let devices = options.devices.iter();
    let of_devices = devices.flat_map(|device| device.requirements(&options.comporta));
    let programs: BTreeSet<&Needed> = options
        .scenarios
        .iter()
        .flat_map(|scenario| programs(*scenario))
        .collect();
    let of_experiments = programs
        .into_iter()
        .map(|(program, package)| Requirement::Program { program, package });
    of_devices.chain(of_experiments).collect()
}

/// Whether some experiment measures by iperf3, whose version then belongs into the records.
pub(super) fn wants_iperf3(options: &Options) -> bool {
    let mut scenarios = options.scenarios.iter();
    scenarios.any(|scenario| programs(*scenario).contains(&IPERF3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(name: &str) -> Options {
        Options {
            scenarios: Scenario::all().filter(|one| one.name() == name).collect(),
            devices: Vec::new(),
            ..Options::default()
        }
    }

    #[test]
    fn programs_that_experiments_call_are_asked_for() {
        for (name, wanted) in [
            ("tcp-throughput", &["iperf3"][..]),
            ("vlan-ports", &["iperf3"]),
            ("learning", &["ip", "ping"]),
            ("echo", &[]),
        ] {
            let options = options(name);
            assert_eq!(options.scenarios.len(), 1, "{name}");
            let programs: Vec<&str> = requirements(&options)
                .into_iter()
                .filter_map(|one| match one {
                    Requirement::Program { program, .. } => Some(program),
                    _ => None,
                })
                .collect();
            assert_eq!(programs, wanted, "{name}");
            assert_eq!(wants_iperf3(&options), programs.contains(&"iperf3"));
        }
    }
}
