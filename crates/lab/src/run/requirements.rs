//! Requirements of a run besides its devices: programs that experiments start.

use std::collections::BTreeSet;

use testbed::Requirement;

use crate::RunOptions;
use crate::catalogue::{HostProgram, IPERF3};

/// Returns the requirements of the devices and experiments of `options`.
pub(super) fn requirements(options: &RunOptions) -> Vec<Requirement> {
    let devices = options.devices.iter();
    let of_devices = devices.flat_map(|device| device.requirements(&options.comporta));
    let of_experiments = programs(options)
        .into_iter()
        .map(|(program, package)| Requirement::Program { program, package });
    of_devices.chain(of_experiments).collect()
}

/// Returns true if an experiment uses iperf3, whose version the records then contain.
pub(super) fn uses_iperf3(options: &RunOptions) -> bool {
    programs(options).contains(&IPERF3)
}

fn programs(options: &RunOptions) -> BTreeSet<HostProgram> {
    let experiments = options.experiments.iter();
    let programs = experiments.flat_map(|one| one.experiment().programs);
    programs.copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_experiments_are_required() {
        for (name, expected) in [
            ("tcp-throughput", &["iperf3"][..]),
            ("vlan-ports", &["iperf3"]),
            ("learning", &["ip", "ping"]),
            ("echo", &[]),
        ] {
            let options = RunOptions {
                experiments: vec![name.parse().unwrap()],
                devices: Vec::new(),
                ..RunOptions::default()
            };
            let programs: Vec<&str> = requirements(&options)
                .into_iter()
                .filter_map(|one| match one {
                    Requirement::Program { program, .. } => Some(program),
                    _ => None,
                })
                .collect();
            assert_eq!(programs, expected, "{name}");
            assert_eq!(uses_iperf3(&options), programs.contains(&"iperf3"));
        }
    }
}
