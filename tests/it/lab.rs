//! The lab with real devices, as its users call it: echoes, few of them. What it makes of
//! what it measures is tested where it is written.

use std::fs;
use std::time::Duration;

use testbed::{Failure, Program};

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::rig::{Ran, binary};

/// How long the lab may take for hosts, two devices, and some round trips.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const RULES: &[Rule] = rules![
    the_lab_measures_devices_of_dpdk,
    the_lab_measures_devices_with_tap_interfaces,
];

fn the_lab_measures_devices_of_dpdk(ground: &Ground) -> Outcome {
    are_usable(ground, &["comporta-dpdk", "ovs-dpdk"])?;
    // They never sleep, so each is measured alone.
    measures(ground, &["comporta-dpdk"])?;
    measures(ground, &["ovs-dpdk"])
}

fn the_lab_measures_devices_with_tap_interfaces(ground: &Ground) -> Outcome {
    are_usable(ground, &["comporta-tap", "ovs-tap"])?;
    measures(ground, &["comporta-tap", "ovs-tap"])
}

fn lab(ground: &Ground, words: &str) -> Result<String, Failure> {
    let words = words.split_whitespace();
    let program = Program::new(binary()).arg("lab").args(words);
    Ran::within(PATIENCE, ground, program)?.good()
}

/// Whether the lab lists these devices, and finds nothing missing for them.
fn are_usable(ground: &Ground, devices: &[&str]) -> Outcome {
    let told = lab(ground, "list")?;
    for device in devices {
        let mut lines = told.lines().skip_while(|line| !line.contains(device));
        assert!(lines.next().is_some(), "{told}");
        let lacks = lines.next().is_some_and(|line| line.contains("not usable"));
        assert!(!lacks, "{told}");
    }
    Ok(())
}

/// Has the lab measure echoes through these devices in turns, and looks for its records.
fn measures(ground: &Ground, devices: &[&str]) -> Outcome {
    let (first, all) = (devices[0], devices.join(","));
    let out = ground.file(first);
    let words = format!(
        "run echo --quick --runs 1 --packets 200 --match port --frame-bytes 64 \
         --device {all} --out {}",
        out.display()
    );
    lab(ground, &words)?;
    let records = fs::read_to_string(out.join("records.jsonl"));
    let records = records.map_err(Failure::to("read the lab's records"))?;
    for device in devices {
        let of_device = format!("\"device\":\"{device}\"");
        let is_echo = |line: &str| line.contains(&of_device) && line.contains("round_trip_ns");
        assert!(records.lines().any(is_echo), "{records}");
    }
    Ok(())
}
