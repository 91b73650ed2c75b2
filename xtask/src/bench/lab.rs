//! Rows that the lab measures: experiments, devices, and the figures of their records.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::Bench;
use super::figures::Figures;
use super::groups::BenchGroup;
use super::rows::{
    AFXDP, BRIDGE, BenchRow, CABLE, FORWARDER, NFTABLES, OURS, OURS_XDP, OVS, OVS_TSO,
};
use crate::shell::{ProgramOutcome, Shell};
use crate::{TaskError, setup};

/// An experiment of the lab.
struct LabExperiment {
    group: BenchGroup,
    /// Directory, below the bench's.
    name: &'static str,
    scenario: &'static str,
    /// Devices that one call of the lab interleaves; the calls are interleaved too.
    devices: &'static [&'static str],
    /// Further arguments, at full length and quick.
    words: [&'static str; 2],
    /// The rows, and the trials and fields that they read.
    readings: &'static [RowReading],
}

/// The experiment of rates and overload.
const RATE: &str = "forwarding-rate";

/// The figure of a row in a trial.
struct RowReading {
    row: &'static str,
    /// The value of the first parameter in a trial's id; any if empty.
    test: &'static str,
    read: fn(&Value) -> Option<f64>,
}

/// Devices that never sleep would take the core from others, and run alone.
const SWITCHES: &[&str] = &[
    "comporta,comporta-xdp,ovs,linux-bridge,direct",
    "forwarder",
    "ovs-afxdp",
];
/// Devices whose ports are the hosts' own interfaces.
const TAPS: &[&str] = &["comporta-tap,ovs-tap"];
const STREAMS: &[&str] = &["comporta,ovs,ovs-tso,linux-bridge,direct"];
const SPEAKERS: &[&str] = &["comporta,ovs"];
/// Devices that track connections.
const TRACKERS: &[&str] = &["comporta,ovs,nftables,direct"];

#[rustfmt::skip]
const EXPERIMENTS: [LabExperiment; 17] = [
    LabExperiment {
        group: BenchGroup::Changes, name: "changes", scenario: "changes", devices: SPEAKERS,
        words: ["--change-millis 12000 --dump-flows 1000000", "--change-millis 500 --dump-flows 20000"],
        readings: &[
            RowReading { row: "effect",           test: "effect",    read: |trial| figure(trial, "effect_p50_us") },
            RowReading { row: "effect-p99",       test: "effect",    read: |trial| figure(trial, "effect_p99_us") },
            RowReading { row: "barrier",          test: "effect",    read: |trial| figure(trial, "barrier_p50_us") },
            RowReading { row: "late",             test: "effect",    read: |trial| figure(trial, "late") },
            RowReading { row: "loss-quiet",       test: "quiet",     read: lost },
            RowReading { row: "loss-flow-mods",   test: "flow-mods", read: lost },
            RowReading { row: "loss-dump",        test: "dump",      read: lost },
            RowReading { row: "delay-quiet",      test: "quiet",     read: |trial| figure(trial, "delay_p999_us") },
            RowReading { row: "delay-flow-mods",  test: "flow-mods", read: |trial| figure(trial, "delay_p999_us") },
            RowReading { row: "delay-dump",       test: "dump",      read: |trial| figure(trial, "delay_p999_us") },
        ],
    },
    LabExperiment {
        group: BenchGroup::Table, name: "flow-table", scenario: "flow-table", devices: SPEAKERS,
        words: ["--flows 1000000", "--flows 20000"],
        readings: &[
            RowReading { row: "memory", test: "", read: |trial| {
                let growth = figure(trial, "full_bytes")? - figure(trial, "empty_bytes")?;
                Some(growth / number(trial, "/reading/point/flows")?)
            } },
            RowReading { row: "added", test: "", read: |trial| figure(trial, "add_s") },
        ],
    },
    rate(BenchGroup::Veth, "rate", SWITCHES),
    echo(BenchGroup::Veth, "echo", SWITCHES),
    streams(BenchGroup::Veth, "tcp", STREAMS, ["--tcp-seconds 5", "--tcp-seconds 1"], &[
        RowReading { row: "tcp", test: "", read: bits },
        RowReading { row: "tcp-again", test: "", read: |trial| figure(trial, "retransmits") },
    ]),
    streams(BenchGroup::Veth, "tcp-back", STREAMS, ["--tcp-seconds 5 --tcp-reverse", "--tcp-seconds 1 --tcp-reverse"], &[
        RowReading { row: "tcp-back", test: "", read: bits },
    ]),
    streams(BenchGroup::Veth, "tcp-8", STREAMS, ["--tcp-seconds 5 --tcp-streams 8", "--tcp-seconds 1 --tcp-streams 8"], &[
        RowReading { row: "tcp-8", test: "", read: bits },
    ]),
    streams(BenchGroup::Veth, "tcp-8-back", STREAMS, ["--tcp-seconds 5 --tcp-streams 8 --tcp-reverse", "--tcp-seconds 1 --tcp-streams 8 --tcp-reverse"], &[
        RowReading { row: "tcp-8-back", test: "", read: bits },
    ]),
    requests(BenchGroup::Veth, "requests", STREAMS),
    rate(BenchGroup::Tap, "tap-rate", TAPS),
    echo(BenchGroup::Tap, "tap-echo", TAPS),
    streams(BenchGroup::Tap, "tap-tcp", TAPS, ["--tcp-seconds 5", "--tcp-seconds 1"], &[
        RowReading { row: "tcp", test: "", read: bits },
        RowReading { row: "tcp-again", test: "", read: |trial| figure(trial, "retransmits") },
    ]),
    requests(BenchGroup::Tap, "tap-requests", TAPS),
    stateful("ct-http", "http-connections", ["--set seconds=5", "--set seconds=1"], &[
        RowReading { row: "http-firewall", test: "firewall",      read: |trial| figure(trial, "connections_s") },
        RowReading { row: "http-10000",    test: "firewall",      read: |trial| figure(trial, "ten_thousand_s") },
        RowReading { row: "http-balancer", test: "load-balancer", read: |trial| figure(trial, "connections_s") },
    ]),
    stateful("ct-tcp", "firewall-throughput", ["--set seconds=5", "--set seconds=1"], &[
        RowReading { row: "tcp", test: "", read: bits },
    ]),
    stateful("ct-new", "connection-rate", ["--set connections=100000", "--set connections=5000"], &[
        RowReading { row: "new-tcp", test: "tcp", read: |trial| figure(trial, "connections_s") },
        RowReading { row: "new-udp", test: "udp", read: |trial| figure(trial, "connections_s") },
    ]),
    stateful("ct-first", "first-packet", ["--set connections=10000", "--set connections=1000"], &[
        RowReading { row: "first-packet", test: "", read: |trial| figure(trial, "first_p50_us") },
    ]),
];

/// An experiment with connection tracking.
const fn stateful(
    name: &'static str,
    scenario: &'static str,
    words: [&'static str; 2],
    readings: &'static [RowReading],
) -> LabExperiment {
    LabExperiment {
        group: BenchGroup::StatefulHosts,
        name,
        scenario,
        devices: TRACKERS,
        words,
        readings,
    }
}

/// 64-byte frames at set rates and at the highest offered load.
const fn rate(
    group: BenchGroup,
    name: &'static str,
    devices: &'static [&'static str],
) -> LabExperiment {
    LabExperiment {
        group,
        name,
        scenario: RATE,
        devices,
        words: [
            "--rate-millis 2000 --rates 150000,200000,250000,300000,400000",
            "--rate-millis 200 --rates 150000,300000",
        ],
        readings: &[RowReading {
            row: "rate",
            test: "flat-out",
            read: received_rate,
        }],
    }
}

/// Round trips of 64-byte frames.
#[rustfmt::skip]
const fn echo(
    group: BenchGroup,
    name: &'static str,
    devices: &'static [&'static str],
) -> LabExperiment {
    LabExperiment {
        group,
        name,
        scenario: "echo",
        devices,
        words: ["--match exact --frame-bytes 64 --packets 10000", "--match exact --frame-bytes 64 --packets 500"],
        readings: &[
            RowReading { row: "echo",      test: "", read: |trial| micros(quantile(trial, "/reading/samples/round_trip_ns", 0.5)) },
            RowReading { row: "echo-p99",  test: "", read: |trial| micros(quantile(trial, "/reading/samples/round_trip_ns", 0.99)) },
            RowReading { row: "echo-p999", test: "", read: |trial| micros(quantile(trial, "/reading/samples/round_trip_ns", 0.999)) },
        ],
    }
}

/// TCP request-response with 1-byte payloads.
const fn requests(
    group: BenchGroup,
    name: &'static str,
    devices: &'static [&'static str],
) -> LabExperiment {
    LabExperiment {
        group,
        name,
        scenario: "tcp-requests",
        devices,
        words: ["--packets 10000", "--packets 500"],
        readings: &[RowReading {
            row: "requests",
            test: "",
            read: |trial| figure(trial, "requests_s"),
        }],
    }
}

/// TCP streams.
const fn streams(
    group: BenchGroup,
    name: &'static str,
    devices: &'static [&'static str],
    words: [&'static str; 2],
    readings: &'static [RowReading],
) -> LabExperiment {
    LabExperiment {
        group,
        name,
        scenario: "tcp-throughput",
        devices,
        words,
        readings,
    }
}

/// The row that all trials of a rate produce: the rate at the highest offered load as a share of
/// the best rate.
const OVERLOAD: &str = "overload";

/// Measures the rows of a group.
pub(super) fn measure(
    bench: &Bench,
    shell: &mut Shell,
    group: BenchGroup,
    rows: &[&BenchRow],
    figures: &mut Figures,
) -> Result<(), TaskError> {
    setup::run(shell)?;
    let comporta = bench.build(shell, "cli", "comporta")?;
    for experiment in EXPERIMENTS.iter().filter(|one| one.group == group) {
        let is_asked = |name: &str| rows.iter().any(|row| row.name == name);
        let asked = experiment.readings.iter().any(|one| is_asked(one.row))
            || (experiment.scenario == RATE && is_asked(OVERLOAD));
        if !asked || shell.interrupted() {
            continue;
        }
        if let Err(failure) = carry_out(bench, shell, &comporta, experiment, rows, figures) {
            figures.fail(
                &format!("{}/{}", group.name(), experiment.name),
                failure.to_string(),
            );
        }
    }
    Ok(())
}

/// Runs the lab, and reads its records.
fn carry_out(
    bench: &Bench,
    shell: &mut Shell,
    comporta: &Path,
    experiment: &LabExperiment,
    rows: &[&BenchRow],
    figures: &mut Figures,
) -> Result<(), TaskError> {
    let mut sets = experiment.devices.to_vec();
    for run in 1..=bench.runs {
        let mut failed = Vec::new();
        for (place, set) in sets.iter().enumerate() {
            // Short, since the devices' socket paths are limited to 107 bytes.
            let directory = format!("{}-{run}-{place}", experiment.name);
            let directory = bench.directory.join(directory);
            let done = call(bench, shell, comporta, (experiment, set, run), &directory);
            if shell.interrupted() {
                return Err("interrupted".into());
            }
            match done {
                Ok(()) => read(experiment, rows, &trials(&directory)?, figures),
                Err(failure) => {
                    let name = format!("{}, {set}", experiment.name);
                    figures.fail(&name, failure.to_string());
                    failed.push(*set);
                }
            }
        }
        // Devices that could not be set up are not tried again.
        sets.retain(|set| !failed.contains(set));
    }
    Ok(())
}

/// Adds the samples of the rows in `trials`.
fn read(experiment: &LabExperiment, rows: &[&BenchRow], trials: &[Value], figures: &mut Figures) {
    for reading in experiment.readings {
        let Some(row) = rows.iter().find(|row| row.name == reading.row) else {
            continue;
        };
        let mut is_missing = true;
        for trial in trials.iter().filter(|trial| is_of(trial, reading.test)) {
            if let (Some(column), Some(value)) = (column(trial), (reading.read)(trial)) {
                figures.add(row, column, value);
                is_missing = false;
            }
        }
        if is_missing {
            figures.fail(&row.id(), "no valid trial has this figure".to_owned());
        }
    }
    if let Some(row) = rows.iter().find(|row| row.name == OVERLOAD) {
        for (column, value) in overloads(trials) {
            figures.add(row, column, value);
        }
    }
}

fn call(
    bench: &Bench,
    shell: &mut Shell,
    comporta: &Path,
    (experiment, devices, run): (&LabExperiment, &str, u32),
    directory: &Path,
) -> Result<(), TaskError> {
    let [full, quick] = experiment.words;
    let words = if bench.quick { quick } else { full };
    let mut command = Command::new(comporta);
    command
        .args(["lab", "run", experiment.scenario, "--device", devices])
        .arg("--no-calibration")
        .args(["--runs", "1", "--seed", &run.to_string()])
        .args(words.split(' '))
        .arg("--out")
        .arg(directory);
    match shell.run(&mut command)? {
        ProgramOutcome::Success => Ok(()),
        outcome => Err(crate::test::explain(&outcome).into()),
    }
}

/// Returns the valid trials in order.
fn trials(directory: &Path) -> Result<Vec<Value>, TaskError> {
    let text = fs::read_to_string(directory.join("records.jsonl"))?;
    let mut trials = Vec::new();
    for line in text.lines() {
        let entry: Value = serde_json::from_str(line)?;
        if entry.get("kind").and_then(Value::as_str) != Some("trial") {
            continue;
        }
        let flaws = entry.get("flaws").and_then(Value::as_array);
        let is_void = |flaw: &Value| flaw.get("void").and_then(Value::as_bool) != Some(false);
        if !flaws.is_some_and(|flaws| flaws.iter().any(is_void)) {
            trials.push(entry);
        }
    }
    Ok(trials)
}

/// True if a trial belongs to this test.
fn is_of(trial: &Value, test: &str) -> bool {
    let id = trial.get("id").and_then(Value::as_str).unwrap_or_default();
    let parameter = id.split('/').nth(1).and_then(|part| part.split_once('='));
    test.is_empty() || parameter.is_some_and(|(_, value)| value == test)
}

/// Returns the column of a trial's device.
fn column(trial: &Value) -> Option<&'static str> {
    let columns = [
        ("comporta", OURS),
        ("comporta-xdp", OURS_XDP),
        ("ovs", OVS),
        ("ovs-tso", OVS_TSO),
        ("ovs-afxdp", AFXDP),
        ("comporta-tap", OURS),
        ("ovs-tap", OVS),
        ("linux-bridge", BRIDGE),
        ("nftables", NFTABLES),
        ("forwarder", FORWARDER),
        ("direct", CABLE),
    ];
    let device = trial.get("device")?.as_str()?;
    columns
        .into_iter()
        .find(|(name, _)| *name == device)
        .map(|(_, column)| column)
}

/// Returns a number of the outcome.
fn number(trial: &Value, path: &str) -> Option<f64> {
    trial.get("outcome")?.pointer(path)?.as_f64()
}

/// Returns a figure of the experiment by its name.
fn figure(trial: &Value, name: &str) -> Option<f64> {
    number(trial, &format!("/reading/figures/{name}"))
}

/// Returns a quantile of numbers; null values do not count.
fn quantile(trial: &Value, path: &str, share: f64) -> Option<f64> {
    let all = trial.get("outcome")?.pointer(path)?.as_array()?;
    let mut all: Vec<f64> = all.iter().filter_map(Value::as_f64).collect();
    all.sort_by(f64::total_cmp);
    // The smallest number that at least this share does not exceed.
    let place = all
        .iter()
        .enumerate()
        .find(|(place, _)| (place + 1) as f64 >= share * all.len() as f64);
    place.map(|(_, value)| *value)
}

fn micros(nanoseconds: Option<f64>) -> Option<f64> {
    nanoseconds.map(|nanoseconds| nanoseconds / 1e3)
}

/// Returns the loss in packets per million.
fn lost(trial: &Value) -> Option<f64> {
    figure(trial, "loss").map(|share| share * 1e6)
}

/// Returns the received packets per second.
fn received_rate(trial: &Value) -> Option<f64> {
    figure(trial, "received_pps")
}

fn bits(trial: &Value) -> Option<f64> {
    figure(trial, "bit_s").map(|bits| bits / 1e9)
}

/// Returns for each run and device the rate at the highest offered load as a share of the best set
/// rate.
fn overloads(trials: &[Value]) -> Vec<(&'static str, f64)> {
    let mut all = Vec::new();
    for flat_out in trials.iter().filter(|trial| is_of(trial, "flat-out")) {
        let same = |key: &str, trial: &Value| trial.get(key) == flat_out.get(key);
        let paced = trials.iter().filter(|trial| {
            same("device", trial) && same("run", trial) && !is_of(trial, "flat-out")
        });
        let most = paced.filter_map(received_rate).fold(0.0, f64::max);
        if let (Some(column), Some(rate)) = (column(flat_out), received_rate(flat_out))
            && most > 0.0
        {
            all.push((column, rate / most));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::rows::chosen;
    use serde_json::json;

    fn rate(device: &str, test: &str, received: u32) -> Value {
        json!({
            "id": format!("forwarding-rate/offer={test}/{device}/1"), "device": device, "run": 1,
            "outcome": { "reading": { "figures": { "received_pps": received } } },
        })
    }

    #[test]
    fn overload_is_held_against_the_best_set_rate() {
        let trials = [
            rate("ovs", "100000", 200_000),
            rate("ovs", "300000", 400_000),
            rate("comporta", "300000", 600_000),
            rate("ovs", "flat-out", 300_000),
        ];
        assert_eq!(overloads(&trials), [(OVS, 0.75)]);
    }

    #[test]
    fn quantile_ignores_lost_packets() {
        let trial = json!({ "outcome": { "samples": [4, null, 1, 3, 2] } });
        assert_eq!(quantile(&trial, "/samples", 0.5), Some(2.0));
        assert_eq!(quantile(&trial, "/samples", 0.999), Some(4.0));
        assert_eq!(quantile(&trial, "/nothing", 0.5), None);
    }

    #[test]
    fn readings_find_the_figures_of_records() {
        let echo = json!({
            "id": "echo/match_set=exact/frame_bytes=64/comporta/1",
            "outcome": { "reading": { "samples": { "round_trip_ns": [1000, 2000, 3000] } } },
        });
        let figures = json!({
            "effect_p50_us": 50, "effect_p99_us": 99, "barrier_p50_us": 5, "late": 0,
            "loss": 1e-5, "delay_p999_us": 999, "full_bytes": 900, "empty_bytes": 100,
            "add_s": 7, "received_pps": 6, "requests_s": 8, "bit_s": 2e9, "retransmits": 4,
            "connections_s": 9, "ten_thousand_s": 2, "first_p50_us": 3,
        });
        let other =
            json!({ "outcome": { "reading": { "point": { "flows": 2 }, "figures": figures } } });
        for experiment in &EXPERIMENTS {
            for reading in experiment.readings {
                let trial = if experiment.scenario == "echo" {
                    &echo
                } else {
                    &other
                };
                assert!((reading.read)(trial).is_some(), "{}", reading.row);
            }
        }
        assert_eq!(lost(&other), Some(10.0));
        assert!(is_of(&echo, "exact") && !is_of(&echo, "64"));
    }

    #[test]
    fn readings_and_rows_correspond() {
        let read = |row: &BenchRow| {
            let of_group = EXPERIMENTS.iter().filter(|one| one.group == row.group);
            of_group
                .flat_map(|one| one.readings)
                .filter(|one| one.row == row.name)
                .count()
        };
        let rows = chosen(&[]).expect("all");
        for row in &rows {
            if [
                BenchGroup::Changes,
                BenchGroup::Table,
                BenchGroup::Veth,
                BenchGroup::Tap,
                BenchGroup::StatefulHosts,
            ]
            .contains(&row.group)
            {
                assert_eq!(read(row), usize::from(row.name != OVERLOAD), "{}", row.name);
            }
        }
        for experiment in &EXPERIMENTS {
            for reading in experiment.readings {
                let is =
                    |row: &&&BenchRow| row.group == experiment.group && row.name == reading.row;
                assert_eq!(rows.iter().filter(is).count(), 1, "{}", reading.row);
            }
        }
    }
}
