//! Looks at a host as one who is to run a switch there: what of its set-up costs frames or
//! time, why, and how it is mended. What can be mended at once and undone later, it mends
//! if it is asked to; the rest it only names.
//!
//! What it knows it reads from the kernel's files (sysfs(5), proc(5)) and from ethtool. It
//! measures nothing: that is the lab's business.

mod checks;
mod cpu_list;
mod finding;
mod host;
mod remedy;

pub use cpu_list::{BadCpuList, CpuList};
pub use finding::{Finding, Mend, State, table};
pub use host::Host;
pub use remedy::{Attempt, Remedied, RemedyError, mend, undo};

/// What the switch is going to be started with.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The workers' cores.
    pub cores: CpuList,
    /// The interfaces that are to be ports.
    pub ports: Vec<String>,
}

/// All that is found, in the order of the checks.
#[must_use]
pub fn examine(host: &Host, asked: &Asked) -> Vec<Finding> {
    let mut findings = Vec::new();
    for check in checks::ALL {
        findings.extend(check(host, asked));
    }
    findings
}

#[cfg(test)]
mod tests;
