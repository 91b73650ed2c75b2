//! A short run of the lab's experiments with connection tracking.

use std::fs;
use std::time::Duration;

use serde_json::Value;
use testbed::Failure;

use crate::lab::run_lab;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};

/// Longest duration of the run.
const WAIT_LIMIT: Duration = Duration::from_secs(90);

pub(crate) const TESTS: &[SystemTest] = tests![stateful_experiments_measure_three_trackers,];

/// Trials of each device: two protocols, two rule sets, and one of each other experiment.
const TRIALS: usize = 7;

fn stateful_experiments_measure_three_trackers(context: &TestContext) -> TestResult {
    let out = context.unique_path("stateful");
    let words = format!(
        "run connection-rate concurrent-connections established-rate first-packet \
         http-connections --profile quick --runs 1 --no-calibration \
         --set connections=500 --set packets=2000 --set seconds=1 \
         --device comporta,ovs,nftables --out {}",
        out.display()
    );
    run_lab(context, WAIT_LIMIT, &words)?;
    let records = fs::read_to_string(out.join("records.jsonl"));
    let records = records.map_err(Failure::to("read the lab's records"))?;
    for device in ["comporta", "ovs", "nftables"] {
        let entries = records.lines().map(serde_json::from_str::<Value>);
        let entries: Vec<Value> = entries.collect::<Result<_, _>>()?;
        let is_of_device = |entry: &&Value| entry["kind"] == "trial" && entry["device"] == device;
        let trials: Vec<&Value> = entries.iter().filter(is_of_device).collect();
        assert_eq!(trials.len(), TRIALS, "{device}: {records}");
        let figure =
            |trial: &Value, name: &str| trial["outcome"]["reading"]["figures"][name].as_f64();
        for trial in trials {
            let figures = match trial["scenario"].as_str() {
                Some("connection-rate" | "http-connections") => "connections_s",
                Some("concurrent-connections") => "held",
                Some("established-rate") => "packets_s",
                _ => "first_p50_us",
            };
            assert!(figure(trial, figures) > Some(0.0), "{trial}");
            for none in ["failed", "lost"] {
                assert!(figure(trial, none).unwrap_or(0.0) == 0.0, "{trial}");
            }
            if let Some(held) = figure(trial, "held") {
                assert!(held == 500.0, "{trial}");
            }
        }
    }
    Ok(())
}
