//! The demonstration: the lab measures comporta, a Linux bridge and Open vSwitch
//! side by side, and writes a report.
//!
//! What is measured, and how, is the lab's business; this only calls it.

use std::process::Command;
use std::time::Duration;

use crate::metadata::cargo;
use crate::shell::{Outcome, Shell, now};
use crate::{Failure, setup};

/// All of it, set-up and building included, ends within this.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// The package with the binary, and the binary, from the project's root.
const PACKAGE: &str = "cli";
const BINARY: &str = "target/release/comporta";

/// Where records and report go, from the project's root.
const REPORT: &str = "results/demo/report.html";

/// The calls of the binary, one after the other.
#[rustfmt::skip]
const CALLS: [&[&str]; 4] = [
    &["lab", "run", "echo",            "--devices", "comporta,linux-bridge,ovs", "--out", "results/demo", "--quick"],
    &["lab", "run", "tcp-throughput",  "--devices", "comporta,linux-bridge,ovs", "--out", "results/demo", "--quick"],
    &["lab", "run", "forwarding-rate", "--devices", "comporta,linux-bridge,ovs", "--out", "results/demo", "--quick"],
    &["lab", "report", "results/demo"],
];

/// Builds, measures, reports.
pub(crate) fn run(shell: &mut Shell) -> Result<(), Failure> {
    let deadline = now() + LIMIT;
    setup::run(shell)?;
    let build = ["build", "--release", "--package", PACKAGE];
    let mut commands = vec![(Command::new(cargo()), &build[..])];
    commands.extend(CALLS.map(|call| (Command::new(shell.root().join(BINARY)), call)));
    for (mut command, arguments) in commands {
        println!("\n== {}", arguments.join(" "));
        let left = deadline.saturating_duration_since(now());
        match shell.run_for(command.args(arguments), left)? {
            Outcome::Success => {}
            Outcome::Interrupted => return Err("interrupted".into()),
            Outcome::Overdue => {
                let limit = LIMIT.as_secs() / 60;
                return Err(format!("the demonstration took more than {limit} minutes").into());
            }
            Outcome::Failed(status) => {
                return Err(format!("`{}` failed: {status}", arguments.join(" ")).into());
            }
        }
    }
    let report = shell.root().join(REPORT);
    if !report.is_file() {
        return Err(format!("the lab wrote no {REPORT}").into());
    }
    println!("\nreport: {}", report.display());
    Ok(())
}
