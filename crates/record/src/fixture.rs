//! A run that never took place, for tests and for looking at reports. It is computed from a seed,
//! so that it is the same everywhere.

mod descriptions;

use base::SplitMix64;

use crate::{
    Conditions, DeviceRecord, Entry, Flaw, FrameCounts, MachineRecord, ManagementRecord,
    OpenFlowEvidence, PathCounters, Point, ProcessUse, Reading, Results, RoundTrips, SCHEMA,
    Session, SessionParameters, Trial, Value,
};

pub use descriptions::CATALOGUE;

/// Name, version, and typical round trip (ns), TCP throughput (bit/s) and frames per second.
const DEVICES: [(&str, &str, f64, f64, f64); 4] = [
    ("comporta", "comporta 0.1.0", 41_000.0, 9.4e9, 3.9e5),
    (
        "ovs",
        "ovs-vswitchd (Open vSwitch) 3.1.0",
        106_000.0,
        0.95e9,
        1.7e5,
    ),
    ("linux-bridge", "Linux 6.18.0", 12_300.0, 2.4e10, 4.7e5),
    ("direct", "veth pair", 9_100.0, 2.9e10, 7.8e5),
];

/// Records of schema 1 in shapes that a reader converts: trials of the lab, with short durations.
pub const OLD_SHAPES: &str = include_str!("../records/old-shapes.jsonl");
/// Trials of schema 1 as the first labs wrote them.
pub const SCHEMA_1: &str = include_str!("../records/schema-1.jsonl");

const RUNS: u32 = 3;
const PLANNED: u64 = 186;
const PACKETS: u32 = 400;
const RATES: [Option<u32>; 3] = [Some(100_000), Some(300_000), None];

/// Match sets and frame sizes of the echoes.
const MATCH_SETS: [&str; 5] = ["port", "mac", "ip", "udp", "exact"];
const FRAME_BYTES: [u16; 2] = [64, 256];

/// Returns the results of a run with these records.
#[must_use]
pub fn results(entries: Vec<Entry>) -> Results {
    Results::new(entries, CATALOGUE)
}

/// Returns the records of the run: every experiment, one void trial, one with a note.
pub fn entries() -> Vec<Entry> {
    let mut entries = vec![Entry::Session(Box::new(session()))];
    let mut trials = Vec::new();
    for run in 1..=RUNS {
        for (device, ..) in DEVICES {
            for set in MATCH_SETS {
                let of_size = |size| echo_trial(device, run, set, size);
                trials.extend(FRAME_BYTES.map(of_size));
            }
            trials.push(tcp_trial(device, run));
            trials.push(requests_trial(device, run));
            trials.extend(RATES.map(|intended| rate_trial(device, run, intended)));
            if has_rules(device) {
                trials.push(flow_table_trial(device, run));
            }
        }
    }
    spoil(&mut trials);
    for (order, mut trial) in trials.into_iter().enumerate() {
        trial.order = order;
        entries.push(Entry::Trial(Box::new(trial)));
    }
    entries
}

fn has_rules(device: &str) -> bool {
    matches!(device, "comporta" | "ovs")
}

/// Makes one trial void, and adds a note to another.
fn spoil(trials: &mut [Trial]) {
    let mut add = |id: &str, void, reason: &str| {
        let trial = trials.iter_mut().find(|trial| trial.id == id);
        let flaws = &mut trial.expect("it is in the fixture").flaws;
        flaws.push(Flaw {
            void,
            reason: reason.to_owned(),
        });
    };
    add(
        "echo/match_set=mac/frame_bytes=64/comporta/2",
        true,
        "the device sent 3 frames to the controller: they did not match the rules",
    );
    add(
        "echo/match_set=ip/frame_bytes=64/ovs/1",
        false,
        "steal time: the hypervisor gave 1.4 % of the cores' time to others",
    );
}

fn session() -> Session {
    Session {
        schema: SCHEMA,
        started: "2026-01-02T03:04:05.678Z".to_owned(),
        lab_version: "0.1.0".to_owned(),
        command_line: "comporta lab run echo tcp-throughput forwarding-rate --runs 3".to_owned(),
        seed: 1,
        runs: RUNS,
        planned: PLANNED,
        parameters: SessionParameters::default(),
        machine: MachineRecord {
            kernel: "6.18.0".to_owned(),
            processor: "A processor <of the fixture>".to_owned(),
            cores: 2,
            memory_bytes: 8 << 30,
            clock_source: "tsc".to_owned(),
            virtual_machine: true,
        },
        tester_cores: vec![0],
        device_cores: vec![1],
        iperf3: Some("iperf 3.12".to_owned()),
        devices: DEVICES.map(device).to_vec(),
    }
}

fn device((name, version, ..): (&str, &str, f64, f64, f64)) -> DeviceRecord {
    let offloads: &[&str] = if name == "ovs" {
        &["rx", "sg", "gso"]
    } else {
        &["rx", "tx", "sg", "tso", "gso"]
    };
    DeviceRecord {
        name: name.to_owned(),
        version: version.to_owned(),
        openflow: has_rules(name),
        calibration: name == "direct",
        host_offloads: offloads.iter().map(ToString::to_string).collect(),
        commands: vec![format!("{name} --as-a-user-starts-it")],
        inventory: None,
        mode: None,
        ports: None,
    }
}

fn typical(name: &str) -> (f64, f64, f64) {
    let known = DEVICES.iter().find(|(device, ..)| *device == name);
    let (_, _, round_trip, bits, pps) = known.expect("a device of the fixture");
    (*round_trip, *bits, *pps)
}

fn trial(
    experiment: &'static str,
    device: &str,
    run: u32,
    axes: &[&str],
    point: Point,
) -> (Trial, SplitMix64) {
    let mut id = experiment.to_owned();
    for axis in axes {
        let value = point.get(axis).expect("axes are in the point");
        id.push_str(&format!("/{axis}={value}"));
    }
    id.push_str(&format!("/{device}/{run}"));
    let process = has_rules(device).then_some(ProcessUse {
        user_seconds: 0.31,
        system_seconds: 0.62,
        resident_bytes: 18 << 20,
    });
    let random = seeded(&id);
    let trial = Trial {
        id,
        experiment: experiment.into(),
        device: device.to_owned(),
        run,
        order: 0,
        started: "2026-01-02T03:04:06.000Z".to_owned(),
        seconds: 1.25,
        flaws: Vec::new(),
        conditions: Some(Conditions {
            seconds: 1.0,
            steal: 0.001,
            pressure: Some(0.02),
            tester_busy: 0.99,
            device_busy: 0.94,
            management: process.map(|used| Box::new(management(used))),
            process,
            path_counters: Some(Box::new(path_counters())),
            realtime_moved_ns: Some(-1_200),
            realtime_step_ns: Some(0),
        }),
        reading: Some(Reading::at(&point)),
    };
    (trial, random)
}

/// Returns the reading of a trial, which has one.
fn reading(trial: &mut Trial) -> &mut Reading {
    trial.reading.as_mut().expect("the trial is new")
}

fn management(used: ProcessUse) -> ManagementRecord {
    ManagementRecord {
        seconds: 1.0,
        samples: 2,
        user_seconds: used.user_seconds,
        system_seconds: used.system_seconds,
        run_seconds: Some(0.9271),
        wait_seconds: Some(0.0132),
        host_frames: Some(200_000),
        resident_bytes_max: used.resident_bytes,
        voluntary_switches: 1_204,
        involuntary_switches: 31,
        softirq: vec![0.11, 0.32],
        steal: vec![0.001, 0.001],
        pressure: Some(0.02),
        cores_used: vec![(1.0, 0.93)],
        ..ManagementRecord::default()
    }
}

/// Counters of a thousand frames, of which the device drops five.
fn path_counters() -> PathCounters {
    let counts = |received, sent| FrameCounts {
        received,
        received_bytes: received * 60,
        sent,
        sent_bytes: sent * 60,
        ..FrameCounts::default()
    };
    PathCounters {
        hosts: vec![counts(0, 1_000), counts(995, 0)],
        cables: vec![counts(1_000, 0), counts(0, 995)],
        ports: vec![counts(995, 0), counts(0, 995)],
        port_stats_error: None,
        packet_ins: Some(0),
        backlog_dropped: Some(0),
        segments: false,
    }
}

/// Returns a generator with a seed of its own for every trial.
fn seeded(id: &str) -> SplitMix64 {
    let hash = id.bytes().fold(17_u64, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(byte.into())
    });
    SplitMix64::new(hash)
}

/// Returns an echo trial of `device`.
pub fn echo_trial(device: &str, run: u32, match_set: &str, frame_bytes: u16) -> Trial {
    let point = Point::default()
        .with("match_set", Value::word(match_set))
        .with("frame_bytes", Value::Number(frame_bytes.into()))
        .with("prober", Value::word("solo"))
        .with("packets", Value::Number(PACKETS.into()));
    let axes = ["match_set", "frame_bytes"];
    let (mut trial, mut random) = trial("echo", device, run, &axes, point);
    let (typical_ns, ..) = typical(device);
    let level = typical_ns * (1.0 + 0.02 * random.normal()) + f64::from(frame_bytes);
    let samples = (0..PACKETS).map(|packet| {
        let spread = random.normal().abs().mul_add(0.06, 1.0);
        let stall = if packet % 67 == 66 { 4.0 } else { 1.0 };
        let lost = device == "ovs" && packet == 150;
        (!lost).then_some(nanoseconds(level * spread * stall))
    });
    let round_trips = RoundTrips::new(samples.collect());
    let sent = u64::from(PACKETS) + 500;
    let reading = reading(&mut trial);
    round_trips.put_into(reading);
    reading.openflow = has_rules(device).then_some(OpenFlowEvidence {
        packet_ins: 0,
        towards_server: sent,
        towards_client: sent,
    });
    trial
}

/// Returns a trial of one TCP stream through `device`.
pub fn tcp_trial(device: &str, run: u32) -> Trial {
    let point = Point::default().with("seconds", Value::Number(10));
    let point = point.with("streams", Value::Number(1));
    let (mut trial, mut random) = trial("tcp-throughput", device, run, &[], point);
    let (_, bits, _) = typical(device);
    let reading = reading(&mut trial);
    reading.put("bit_s", bits * (1.0 + 0.03 * random.normal()));
    reading.put("retransmits", (random.next_u64() % 900) as f64);
    match has_rules(device) {
        true => reading.put("cpu_percent", 93.0),
        false => reading.lack("cpu_percent", "the device is not a process of its own"),
    }
    trial
}

fn rate_trial(device: &str, run: u32, intended_pps: Option<u32>) -> Trial {
    let offer = intended_pps.map(|pps| Value::Number(pps.into()));
    let point = Point::default()
        .with("offer", offer.unwrap_or_else(|| Value::word("flat-out")))
        .with("frame_bytes", Value::Number(64));
    let (mut trial, mut random) = trial("forwarding-rate", device, run, &["offer"], point);
    let (_, _, pps) = typical(device);
    let most = pps * (1.0 + 0.03 * random.normal());
    let offered_pps = intended_pps.map_or(8.0e5, f64::from);
    let received = whole(most.min(offered_pps) * 2.0);
    let offered = whole(offered_pps * 2.0);
    let reading = reading(&mut trial);
    reading.put("offered_pps", offered as f64 / 2.0);
    reading.put("received_pps", received as f64 / 2.0);
    reading.put_share("loss", offered - received, offered);
    trial
}

/// Returns a trial of a large flow table of `device`.
pub fn flow_table_trial(device: &str, run: u32) -> Trial {
    let point = Point::default().with("flows", Value::Number(100_000));
    let (mut trial, mut random) = trial("flow-table", device, run, &[], point);
    let slow = if device == "ovs" { 4.0 } else { 1.0 };
    let seconds = 0.3 * slow * (1.0 + 0.03 * random.normal());
    let reading = reading(&mut trial);
    reading.put("add_s", 1e5 / seconds);
    reading.put("left_bytes", f64::from(1 << 20));
    reading.put("delete_ms", 100.0 * slow);
    trial
}

/// Returns a trial of requests through `device`.
pub fn requests_trial(device: &str, run: u32) -> Trial {
    let point = Point::default().with("packets", Value::Number(10_000));
    let (mut trial, _) = trial("tcp-requests", device, run, &[], point);
    let (round_trip_ns, ..) = typical(device);
    reading(&mut trial).put("requests_s", 1e9 / round_trip_ns);
    trial
}

fn nanoseconds(value: f64) -> u32 {
    u32::try_from(whole(value)).expect("a round trip is short")
}

/// Returns a small positive number without its fraction.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the numbers of the fixture are small and positive"
)]
#[must_use]
pub fn whole(value: f64) -> u64 {
    value as u64
}
