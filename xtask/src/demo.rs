//! The demonstration: the lab measures comporta, Open vSwitch, the Linux bridge and a
//! bare cable side by side, and writes a report.
//!
//! What is measured, and how, is the lab's business; this only calls it.

use std::process::Command;
use std::time::Duration;

use crate::metadata::cargo;
use crate::shell::{Outcome, Shell, now};
use crate::{Failure, setup};

/// All of it, set-up and building included, ends within this.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// What the lab may take to end its devices and write the report when its time is over.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// The package with the binary, and the binary, from the project's root.
const PACKAGE: &str = "cli";
const BINARY: &str = "target/release/comporta";

/// What is measured. Five rounds of all of it take some five minutes; if there is
/// less time, the report is of fewer rounds.
#[rustfmt::skip]
const MEASURE: [&str; 15] = [
    "lab", "run", "echo", "tcp-throughput", "forwarding-rate",
    "--device", "comporta,ovs,ovs-tso,linux-bridge,direct",
    "--runs", "5",
    "--tcp-seconds", "3",
    "--rate-millis", "1000",
    "--rates", "100000,200000,300000",
];

/// Builds, measures, reports.
pub(crate) fn run(shell: &mut Shell) -> Result<(), Failure> {
    let deadline = now() + LIMIT - LAST_WORDS;
    setup::run(shell)?;
    println!("\n== building {BINARY}");
    let mut build = Command::new(cargo());
    build.args(["build", "--release", "--package", PACKAGE]);
    match shell.run(&mut build)? {
        Outcome::Success => {}
        Outcome::Interrupted => return Err("interrupted".into()),
        Outcome::Overdue | Outcome::Failed(_) => return Err("the build failed".into()),
    }
    println!("\n== measuring: comporta {}", MEASURE.join(" "));
    let mut measure = Command::new(shell.root().join(BINARY));
    measure.args(MEASURE);
    let left = deadline.saturating_duration_since(now());
    let mut last_line = String::new();
    let outcome = shell.run_heard_for(&mut measure, left, &mut |line| {
        last_line.clear();
        last_line.push_str(line);
    })?;
    match outcome {
        Outcome::Success => {}
        Outcome::Interrupted => return Err("interrupted".into()),
        Outcome::Overdue => {
            println!("the time was over: the report is of what was measured so far")
        }
        Outcome::Failed(status) => return Err(format!("the lab failed: {status}").into()),
    }
    let report = shell.root().join(&last_line);
    if !report.is_file() {
        return Err("the lab wrote no report".into());
    }
    println!("\nreport: {}", report.display());
    Ok(())
}
