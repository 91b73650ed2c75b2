//! Checks of a host for settings that cause drops or latency in a switch, with the cost and the
//! remedy of each. Remedies that take effect at once and can be undone are applied on request; the
//! others are only reported.
//!
//! The checks read the kernel's files (sysfs(5), proc(5)) and ethtool. They measure nothing; the
//! lab does.

mod checks;
mod cpu_list;
mod finding;
mod host;
mod remedy;

pub use cpu_list::{CpuList, ParseCpuListError};
pub use finding::{Finding, Remedy, Severity, table};
pub use host::Host;
pub use remedy::{Attempt, RemedyError, RemedyRecord, apply_remedies, undo};

/// The cores and ports with which the switch will be started.
#[derive(Clone, Debug, Default)]
pub struct SwitchSetup {
    /// The workers' cores.
    pub cores: CpuList,
    /// The interfaces of its ports.
    pub ports: Vec<String>,
}

/// Returns all findings, in the order of the checks.
#[must_use]
pub fn examine(host: &Host, setup: &SwitchSetup) -> Vec<Finding> {
    let mut findings = Vec::new();
    for check in checks::ALL {
        findings.extend(check(host, setup));
    }
    findings
}

#[cfg(test)]
mod tests;
