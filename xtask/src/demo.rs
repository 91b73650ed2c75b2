//! The demonstration: builds Comporta, measures it next to Open vSwitch, the Linux bridge and a bare
//! link, and writes a report, all within ten minutes.
//!
//! The lab measures; this module calls it. On a fresh machine the build takes most of the time, so
//! the demonstration measures the largest plan that fits into the rest with all its runs: fewer
//! sizes and devices, but never too few runs for confidence intervals.

use std::process::Command;
use std::time::Duration;

use crate::metadata::cargo;
use crate::shell::{ProgramOutcome, Shell, now};
use crate::{TaskError, setup};

/// Time limit of the demonstration, set-up and build included.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// Time that the lab needs after its last trial: it stops the devices and writes the report.
const REPORT: Duration = Duration::from_secs(30);

/// The package of the binary, the profile that builds it fast, and the binary.
const PACKAGE: &str = "cli";
const PROFILE: &str = "demo";
const BINARY: &str = "target/demo/comporta";

/// Experiments of the lab, from the most to the fewest trials. Each has five runs.
#[rustfmt::skip]
const PLANS: [&str; 4] = [
    "echo tcp-throughput forwarding-rate --device comporta,ovs,ovs-tso,linux-bridge,direct \
     --tcp-seconds 3 --rate-millis 1000 --rates 100000,200000,300000",
    "echo tcp-throughput forwarding-rate --device comporta,ovs,ovs-tso,linux-bridge,direct \
     --match port,exact --frame-bytes 64,256 --tcp-seconds 2 --rate-millis 500 --rates 200000",
    "echo tcp-throughput forwarding-rate --device comporta,ovs,linux-bridge \
     --match exact --frame-bytes 64,256 --tcp-seconds 2 --rate-millis 500 --rates 200000",
    "echo tcp-throughput forwarding-rate --device comporta,ovs \
     --match exact --frame-bytes 64 --tcp-seconds 1 --rate-millis 500 --rates 200000",
];

/// Builds, measures and reports.
pub(crate) fn run(shell: &mut Shell) -> Result<(), TaskError> {
    let deadline = now() + LIMIT - REPORT;
    setup::demonstration(shell)?;
    println!("\n== building {BINARY}");
    let mut build = Command::new(cargo());
    build.args(["build", "--profile", PROFILE, "--package", PACKAGE]);
    match shell.run(&mut build)? {
        ProgramOutcome::Success => {}
        ProgramOutcome::Interrupted => return Err("interrupted".into()),
        ProgramOutcome::Overdue | ProgramOutcome::Failed(_) => {
            return Err("the build failed".into());
        }
    }
    let plan = choose(shell, deadline.saturating_duration_since(now()))?;
    let words: Vec<&str> = plan.split_whitespace().chain(["--runs", "5"]).collect();
    println!("\n== measuring: comporta lab run {}", words.join(" "));
    let mut measure = Command::new(shell.root().join(BINARY));
    measure.args(["lab", "run"]).args(&words);
    let left = deadline.saturating_duration_since(now());
    let mut last_line = String::new();
    let outcome = shell.run_heard_for(&mut measure, left, &mut |line| {
        last_line.clear();
        last_line.push_str(line);
    })?;
    match outcome {
        ProgramOutcome::Success => {}
        ProgramOutcome::Interrupted => return Err("interrupted".into()),
        ProgramOutcome::Overdue => {
            println!("time limit reached: the report covers the completed trials")
        }
        ProgramOutcome::Failed(status) => return Err(format!("the lab failed: {status}").into()),
    }
    let report = shell.root().join(&last_line);
    if !report.is_file() {
        return Err("the lab wrote no report".into());
    }
    println!("\nreport: {}", report.display());
    Ok(())
}

/// Returns the largest plan that the lab expects to complete in `time`, or the smallest plan.
fn choose(shell: &mut Shell, time: Duration) -> Result<&'static str, TaskError> {
    let [.., smallest] = PLANS;
    for plan in PLANS {
        let mut command = Command::new(shell.root().join(BINARY));
        command.args(["lab", "plan"]).args(plan.split_whitespace());
        command.args(["--runs", "5"]);
        let mut last_line = String::new();
        let outcome = shell.run_taken(&mut command, &mut |line| {
            last_line.clear();
            last_line.push_str(line);
        })?;
        if outcome != ProgramOutcome::Success {
            return Err(format!("lab plan: {}", crate::test::explain(&outcome)).into());
        }
        let needed = duration(&last_line)
            .ok_or_else(|| format!("lab plan printed no duration: {last_line}"))?;
        if needed <= time {
            return Ok(plan);
        }
    }
    Ok(smallest)
}

/// Returns the duration at the end of a line, as in `about 1 h 6 min 22 s`.
fn duration(line: &str) -> Option<Duration> {
    let (_, text) = line.rsplit_once("about ")?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut seconds = 0.0;
    for pair in words.chunks(2) {
        let [number, unit] = pair else {
            return None;
        };
        let unit = match *unit {
            "h" => 3600.0,
            "min" => 60.0,
            "s" => 1.0,
            _ => return None,
        };
        seconds += unit * number.parse::<f64>().ok()?;
    }
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_is_read_from_the_last_words() {
        let seconds = |line| duration(line).map(|time| time.as_secs());
        assert_eq!(seconds("405 tests in 5 runs, about 6 min 22 s"), Some(382));
        assert_eq!(seconds("9 tests in 1 run, about 8 s"), Some(8));
        assert_eq!(seconds("x, about 1 h 2 min"), Some(3720));
        assert_eq!(seconds("x, about some time"), None);
        assert_eq!(seconds("9 tests"), None);
    }
}
