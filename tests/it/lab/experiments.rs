//! The lab with real devices, as its users call it: echoes, few of them. What it makes of
//! what it measures is tested where it is written.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use testbed::{Failure, Program};

use crate::support::command::{CommandOutput, comporta_binary};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};

/// How long the lab may take for hosts, two devices, and some round trips.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

pub(crate) const TESTS: &[SystemTest] = tests![
    the_lab_measures_devices_of_dpdk,
    the_lab_measures_devices_with_tap_interfaces,
    experiments_find_what_a_device_is_known_to_do,
    experiments_of_the_catalogue_come_to_figures_on_this_switch,
    frames_ports_and_a_lost_controller_are_found_as_they_are_on_this_switch,
];

fn the_lab_measures_devices_of_dpdk(context: &TestContext) -> TestResult {
    are_usable(context, &["comporta-dpdk", "ovs-dpdk"])?;
    // They never sleep, so each is measured alone.
    measures(context, &["comporta-dpdk"])?;
    measures(context, &["ovs-dpdk"])
}

fn the_lab_measures_devices_with_tap_interfaces(context: &TestContext) -> TestResult {
    are_usable(context, &["comporta-tap", "ovs-tap"])?;
    measures(context, &["comporta-tap", "ovs-tap"])
}

fn lab(context: &TestContext, words: &str) -> Result<String, Failure> {
    let words = words.split_whitespace();
    let program = Program::new(comporta_binary()).arg("lab").args(words);
    CommandOutput::run_within(WAIT_LIMIT, context, program)?.expect_success()
}

/// Whether the lab lists these devices, and finds nothing missing for them.
fn are_usable(context: &TestContext, devices: &[&str]) -> TestResult {
    let told = lab(context, "list")?;
    for device in devices {
        let mut lines = told.lines().skip_while(|line| !line.contains(device));
        assert!(lines.next().is_some(), "{told}");
        let lacks = lines.next().is_some_and(|line| line.contains("not usable"));
        assert!(!lacks, "{told}");
    }
    Ok(())
}

/// Has the lab measure echoes through these devices in turns, and looks for its records.
fn measures(context: &TestContext, devices: &[&str]) -> TestResult {
    let (first, all) = (devices[0], devices.join(","));
    let out = context.unique_path(first);
    let words = format!(
        "run echo --quick --runs 1 --packets 200 --match port --frame-bytes 64 \
         --device {all} --out {}",
        out.display()
    );
    lab(context, &words)?;
    let records = fs::read_to_string(out.join("records.jsonl"));
    let records = records.map_err(Failure::to("read the lab's records"))?;
    for device in devices {
        let of_device = format!("\"device\":\"{device}\"");
        let is_echo = |line: &str| line.contains(&of_device) && line.contains("round_trip_ns");
        assert!(records.lines().any(is_echo), "{records}");
    }
    Ok(())
}

/// The trials of a run.
fn trials(out: &Path) -> Result<Vec<Value>, Failure> {
    let records = fs::read_to_string(out.join("records.jsonl"));
    let records = records.map_err(Failure::to("read the lab's records"))?;
    let lines = records.lines().map(serde_json::from_str);
    let entries: Vec<Value> = lines.collect::<Result<_, _>>().expect("records are JSON");
    let is_trial = |entry: &Value| entry["kind"] == "trial";
    Ok(entries.into_iter().filter(is_trial).collect())
}

/// A figure of a trial of the catalogue; none if it has no value.
fn figure(trial: &Value, name: &str) -> Option<f64> {
    trial["outcome"]["reading"]["figures"][name].as_f64()
}

/// A forwarder that loses each tenth frame, sends each seventh twice and holds all for 300 us.
fn experiments_find_what_a_device_is_known_to_do(context: &TestContext) -> TestResult {
    let file = context.unique_path("faulty.toml");
    let faults = "seed = 1\n[forth]\ndelay_us = 300\nloss_every = 10\nduplication_every = 7\n";
    fs::write(&file, faults)?;
    let out = context.unique_path("known");
    let words = format!(
        "run latency-vs-size --profile quick --runs 1 --set size=64,128,512,1024 --set millis=500 \
         --device impaired:{} --out {}",
        file.display(),
        out.display()
    );
    lab(context, &words)?;
    let mut told = 0;
    for trial in trials(&out)? {
        // Where others want the tester's core a rate is not reached, and the lab says so.
        let Some(loss) = figure(&trial, "loss_percent") else {
            let absent = &trial["outcome"]["reading"]["absent"]["loss_percent"];
            let reason = absent.as_str().unwrap_or_default();
            assert!(reason.contains("the tester is too slow"), "{trial}");
            continue;
        };
        told += 1;
        assert!((loss - 10.0).abs() < 0.5, "{trial}");
        assert!(figure(&trial, "p50_us") >= Some(300.0), "{trial}");
        assert!(figure(&trial, "duplicated") > Some(0.0), "{trial}");
    }
    assert!(told > 0, "no rate was reached");
    Ok(())
}

fn experiments_of_the_catalogue_come_to_figures_on_this_switch(
    context: &TestContext,
) -> TestResult {
    let out = context.unique_path("catalogue");
    let words = format!(
        "run echo-legacy table-capacity echo-rewrite chain learning action-delay link-flap \
         control-echo barrier-truth --profile quick --runs 1 --set packets=100 --set warm-up=10 \
         --set size=100 --set most=2000 --set sample=50 --set switches=1,3 --set pings=10 \
         --set millis=100 --device comporta --out {}",
        out.display()
    );
    lab(context, &words)?;
    let all = trials(&out)?;
    let of = |scenario: &str| -> Vec<&Value> {
        let of = all.iter().filter(|trial| trial["scenario"] == scenario);
        of.collect()
    };
    for trial in &all {
        let flaws = trial["flaws"].as_array().into_iter().flatten();
        let void: Vec<_> = flaws.filter(|flaw| flaw["void"] == true).collect();
        assert!(void.is_empty(), "{trial}");
        let reading = &trial["outcome"]["reading"];
        let figures = reading["figures"].as_object().map_or(0, |all| all.len());
        assert!(figures > 0, "{trial}");
    }
    let capacity = of("table-capacity")[0];
    assert_eq!(figure(capacity, "accepted"), Some(2000.0), "{capacity}");
    assert_eq!(figure(capacity, "listed"), Some(2000.0), "{capacity}");
    assert_eq!(
        figure(capacity, "effective_percent"),
        Some(100.0),
        "{capacity}"
    );
    // All six fields, the tagged ones too, came out as they were to be rewritten.
    let rewritten = of("echo-rewrite");
    assert_eq!(rewritten.len(), 6);
    assert!(
        rewritten
            .iter()
            .all(|trial| figure(trial, "p50_us").is_some())
    );
    assert_eq!(of("chain").len(), 2);
    let learning = of("learning")[0];
    assert_eq!(figure(learning, "reached"), Some(12.0), "{learning}");
    assert_eq!(figure(learning, "answered"), Some(10.0), "{learning}");
    let report = fs::read_to_string(out.join("report.html"))?;
    assert!(
        report.contains("Rewriting header fields"),
        "the report has its sections"
    );
    Ok(())
}

fn frames_ports_and_a_lost_controller_are_found_as_they_are_on_this_switch(
    context: &TestContext,
) -> TestResult {
    let out = context.unique_path("robust");
    let words = format!(
        "run port-status tags-and-labels mtu controller-loss --profile quick --runs 1 \
         --set burst=0 --set action=push-vlan,push-mpls --set millis=20 --set after-millis=700 \
         --device comporta --out {}",
        out.display()
    );
    lab(context, &words)?;
    let all = trials(&out)?;
    let of = |scenario: &str| all.iter().find(|trial| trial["scenario"] == scenario);
    let is = |scenario: &str, name: &str, wanted: f64| {
        let trial = of(scenario).expect("it was done");
        assert_eq!(figure(trial, name), Some(wanted), "{name}: {trial}");
    };
    for name in ["never", "wrong"] {
        is("port-status", name, 0.0);
    }
    for trial in all
        .iter()
        .filter(|one| one["scenario"] == "tags-and-labels")
    {
        let wrong = ["changed", "damaged"].map(|name| figure(trial, name));
        assert_eq!(wrong, [Some(0.0); 2], "{trial}");
    }
    // What is too long is neither sent nor cut, and the port's counters own up to it.
    for name in [
        "over_percent",
        "far_percent",
        "fragments",
        "told",
        "changed",
    ] {
        is("mtu", name, 0.0);
    }
    // Where others want the device's core it forwards late, and counts later than it is asked.
    if of("mtu").and_then(|trial| figure(trial, "beside_percent")) == Some(100.0) {
        is("mtu", "counted_percent", 100.0);
    }
    is("controller-loss", "rules_kept_percent", 100.0);
    is("controller-loss", "by_itself_ms", 0.0);
    Ok(())
}
