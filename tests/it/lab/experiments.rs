//! Short runs of the lab's experiments with real devices. Tests of the analysis of their results
//! are in the lab's crate.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use testbed::Failure;

use crate::lab::run_lab;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};

/// Longest duration of a command of the lab, with two devices.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

pub(crate) const TESTS: &[SystemTest] = tests![
    lab_measures_dpdk_devices,
    lab_measures_devices_with_tap_ports,
    experiments_measure_the_faults_of_an_impaired_device,
    catalogue_experiments_yield_figures_of_comporta,
    experiments_find_no_errors_of_frames_ports_and_controller_loss,
];

fn lab_measures_dpdk_devices(context: &TestContext) -> TestResult {
    expect_usable(context, &["comporta-dpdk", "ovs-dpdk"])?;
    // DPDK devices poll permanently, so each is measured alone.
    measure_echoes(context, &["comporta-dpdk"])?;
    measure_echoes(context, &["ovs-dpdk"])
}

fn lab_measures_devices_with_tap_ports(context: &TestContext) -> TestResult {
    expect_usable(context, &["comporta-tap", "ovs-tap"])?;
    measure_echoes(context, &["comporta-tap", "ovs-tap"])
}

/// Asserts that the lab lists these devices as usable.
fn expect_usable(context: &TestContext, devices: &[&str]) -> TestResult {
    let list = run_lab(context, WAIT_LIMIT, "list")?;
    for device in devices {
        let mut lines = list.lines().skip_while(|line| !line.contains(device));
        assert!(lines.next().is_some(), "{list}");
        let is_unusable = lines.next().is_some_and(|line| line.contains("not usable"));
        assert!(!is_unusable, "{list}");
    }
    Ok(())
}

/// Runs the echo experiment with these devices, and asserts that it records their round trips.
fn measure_echoes(context: &TestContext, devices: &[&str]) -> TestResult {
    let (first, all) = (devices[0], devices.join(","));
    let out = context.unique_path(first);
    let words = format!(
        "run echo --quick --runs 1 --packets 200 --match port --frame-bytes 64 \
         --device {all} --out {}",
        out.display()
    );
    run_lab(context, WAIT_LIMIT, &words)?;
    let records = fs::read_to_string(out.join("records.jsonl"));
    let records = records.map_err(Failure::to("read the lab's records"))?;
    for device in devices {
        let of_device = format!("\"device\":\"{device}\"");
        let is_echo = |line: &str| line.contains(&of_device) && line.contains("round_trip_ns");
        assert!(records.lines().any(is_echo), "{records}");
    }
    Ok(())
}

/// Trials of a run.
fn trials(out: &Path) -> Result<Vec<Value>, Failure> {
    let records = fs::read_to_string(out.join("records.jsonl"));
    let records = records.map_err(Failure::to("read the lab's records"))?;
    let lines = records.lines().map(serde_json::from_str);
    let entries: Vec<Value> = lines.collect::<Result<_, _>>().expect("a record is JSON");
    let is_trial = |entry: &Value| entry["kind"] == "trial";
    Ok(entries.into_iter().filter(is_trial).collect())
}

/// Value of a trial's figure, or `None` if it has no value.
fn figure(trial: &Value, name: &str) -> Option<f64> {
    trial["outcome"]["reading"]["figures"][name].as_f64()
}

/// A forwarder that drops each tenth frame, duplicates each seventh, and delays all by 300 us.
fn experiments_measure_the_faults_of_an_impaired_device(context: &TestContext) -> TestResult {
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
    run_lab(context, WAIT_LIMIT, &words)?;
    let mut measured = 0;
    for trial in trials(&out)? {
        // If other processes use the tester's core, the rate is not reached, and the lab records
        // the reason.
        let Some(loss) = figure(&trial, "loss_percent") else {
            let absent = &trial["outcome"]["reading"]["absent"]["loss_percent"];
            let reason = absent.as_str().unwrap_or_default();
            assert!(reason.contains("the tester is too slow"), "{trial}");
            continue;
        };
        measured += 1;
        assert!((loss - 10.0).abs() < 0.5, "{trial}");
        assert!(figure(&trial, "p50_us") >= Some(300.0), "{trial}");
        assert!(figure(&trial, "duplicated") > Some(0.0), "{trial}");
    }
    assert!(measured > 0, "no trial reached its rate");
    Ok(())
}

fn catalogue_experiments_yield_figures_of_comporta(context: &TestContext) -> TestResult {
    let out = context.unique_path("catalogue");
    let words = format!(
        "run echo-legacy table-capacity echo-rewrite chain learning action-delay link-flap \
         control-echo barrier-truth --profile quick --runs 1 --set packets=100 --set warm-up=10 \
         --set size=100 --set most=2000 --set sample=50 --set switches=1,3 --set pings=10 \
         --set millis=100 --device comporta --out {}",
        out.display()
    );
    run_lab(context, WAIT_LIMIT, &words)?;
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
    // All six fields, also of tagged frames, were rewritten as configured.
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
        report.contains("Header rewriting"),
        "the report has a section about rewriting"
    );
    Ok(())
}

fn experiments_find_no_errors_of_frames_ports_and_controller_loss(
    context: &TestContext,
) -> TestResult {
    let out = context.unique_path("robust");
    let words = format!(
        "run port-status tags-and-labels mtu controller-loss --profile quick --runs 1 \
         --set burst=0 --set action=push-vlan,push-mpls --set millis=20 --set after-millis=700 \
         --device comporta --out {}",
        out.display()
    );
    run_lab(context, WAIT_LIMIT, &words)?;
    let all = trials(&out)?;
    let of = |scenario: &str| all.iter().find(|trial| trial["scenario"] == scenario);
    let expect_figure = |scenario: &str, name: &str, expected: f64| {
        let trial = of(scenario).expect("the run has a trial of the experiment");
        assert_eq!(figure(trial, name), Some(expected), "{name}: {trial}");
    };
    for name in ["never", "wrong"] {
        expect_figure("port-status", name, 0.0);
    }
    for trial in all
        .iter()
        .filter(|one| one["scenario"] == "tags-and-labels")
    {
        let error_frames = ["changed", "damaged"].map(|name| figure(trial, name));
        assert_eq!(error_frames, [Some(0.0); 2], "{trial}");
    }
    // Frames above the MTU are neither sent nor truncated, and the port's counters count them.
    for name in [
        "over_percent",
        "far_percent",
        "fragments",
        "told",
        "changed",
    ] {
        expect_figure("mtu", name, 0.0);
    }
    // If other processes use the device's core, it forwards later than its counters are read.
    if of("mtu").and_then(|trial| figure(trial, "beside_percent")) == Some(100.0) {
        expect_figure("mtu", "counted_percent", 100.0);
    }
    expect_figure("controller-loss", "rules_kept_percent", 100.0);
    expect_figure("controller-loss", "by_itself_ms", 0.0);
    Ok(())
}
