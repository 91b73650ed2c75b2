//! A small run that never happened, for tests and for looking at reports: made of
//! a seed, so that it is the same everywhere.

use base::SplitMix64;

use crate::{
    Catalogue, ChangeOutcome, Conditions, Description, DeviceRecord, EchoOutcome, Entry, Flaw,
    FlowTableOutcome, FrameCounts, MachineRecord, ManagementRecord, MatchSet, MeterAct,
    MeterOutcome, MeterUnit, MeterWindow, OpenFlowEvidence, Outcome, Parameters, PassageRecord,
    PathCheck, Prober, ProcessUse, RateOutcome, RatePath, RequestsOutcome, Results, SCHEMA,
    Session, TcpOutcome, Trial, own,
};

/// Name, version, and typical round trip (ns), TCP (bit/s) and frames a second.
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

const RUNS: u32 = 3;
const PACKETS: u32 = 200;
const RATES: [Option<u32>; 3] = [Some(100_000), Some(300_000), None];

/// Descriptions of the run's experiments.
pub const CATALOGUE: Catalogue = Catalogue::new(&DESCRIPTIONS);
const DESCRIPTIONS: [&Description; 7] = {
    let all = &own::DESCRIPTIONS;
    [
        &all[0], &all[1], &all[2], &all[3], &all[4], &all[5], &all[6],
    ]
};

/// Results of such a run, with these records.
#[must_use]
pub fn results(entries: Vec<Entry>) -> Results {
    Results::new(entries, CATALOGUE)
}

/// The records of the run: every scenario, one void trial, one with a note.
pub fn entries() -> Vec<Entry> {
    let mut entries = vec![Entry::Session(Box::new(session()))];
    let mut trials = Vec::new();
    for run in 1..=RUNS {
        for (device, ..) in DEVICES {
            for set in MatchSet::ALL {
                for frame_bytes in [64, 256] {
                    trials.push(echo_trial(device, run, set, frame_bytes));
                }
            }
            trials.push(tcp_trial(device, run));
            trials.push(requests_trial(device, run));
            trials.extend(RATES.map(|intended| rate_trial(device, run, intended)));
            if matches!(device, "comporta" | "ovs") {
                trials.push(flow_table_trial(device, run));
                trials.push(meter_trial(device, run));
                trials.push(change_trial(device, run));
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

/// One trial must be void and one noted, as in real life.
fn spoil(trials: &mut [Trial]) {
    let find = |trials: &mut [Trial], id: &str, flaw: Flaw| {
        let trial = trials.iter_mut().find(|trial| trial.id == id);
        trial.expect("it is in the fixture").flaws.push(flaw);
    };
    let flaw = |void, reason: &str| Flaw {
        void,
        reason: reason.to_owned(),
    };
    find(
        trials,
        "echo/mac/64/comporta/2",
        flaw(
            true,
            "the device sent 3 frames to the controller: they did not match the rules",
        ),
    );
    find(
        trials,
        "echo/ip/64/ovs/1",
        flaw(
            false,
            "the hypervisor gave 1.4 % of the cores' time to others",
        ),
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
        planned: 174,
        parameters: Parameters::default(),
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
        openflow: matches!(name, "comporta" | "ovs"),
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

fn trial(id: String, experiment: &'static str, device: &str, run: u32, outcome: Outcome) -> Trial {
    let process = matches!(device, "comporta" | "ovs").then_some(ProcessUse {
        user_seconds: 0.31,
        system_seconds: 0.62,
        resident_bytes: 18 << 20,
    });
    Trial {
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
            passage: Some(Box::new(passage())),
            realtime_moved_ns: Some(-1_200),
            realtime_step_ns: Some(0),
        }),
        outcome: Some(outcome),
    }
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

/// Of a thousand frames five find no room at the device.
fn passage() -> PassageRecord {
    let counts = |received, sent| FrameCounts {
        received,
        received_bytes: received * 60,
        sent,
        sent_bytes: sent * 60,
        ..FrameCounts::default()
    };
    PassageRecord {
        hosts: vec![counts(0, 1_000), counts(995, 0)],
        cables: vec![counts(1_000, 0), counts(0, 995)],
        ports: vec![counts(995, 0), counts(0, 995)],
        untold: None,
        packet_ins: Some(0),
        backlog_dropped: Some(0),
        segments: false,
    }
}

/// A seed that is different for every trial.
fn seeded(id: &str) -> SplitMix64 {
    let hash = id.bytes().fold(17_u64, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(byte.into())
    });
    SplitMix64::new(hash)
}

/// An echo test of `device`.
pub fn echo_trial(device: &str, run: u32, match_set: MatchSet, frame_bytes: u16) -> Trial {
    let id = format!("echo/{match_set}/{frame_bytes}/{device}/{run}");
    let mut random = seeded(&id);
    let (typical_ns, ..) = typical(device);
    let level = typical_ns * (1.0 + 0.02 * random.normal()) + f64::from(frame_bytes);
    let round_trip_ns = (0..PACKETS)
        .map(|packet| {
            let spread = random.normal().abs().mul_add(0.06, 1.0);
            let stall = if packet % 67 == 66 { 4.0 } else { 1.0 };
            let lost = device == "ovs" && packet == 150;
            (!lost).then_some(nanoseconds(level * spread * stall))
        })
        .collect();
    let sent = u64::from(PACKETS) + 500;
    let openflow = matches!(device, "comporta" | "ovs").then_some(OpenFlowEvidence {
        packet_ins: 0,
        towards_server: sent,
        towards_client: sent,
    });
    let outcome = EchoOutcome {
        match_set,
        frame_bytes,
        prober: Prober::Solo,
        warm_up: 500,
        warm_up_lost: 0,
        served: sent,
        seconds: level * f64::from(PACKETS) / 1e9,
        round_trip_ns,
        openflow,
    };
    trial(id, "echo", device, run, Outcome::Echo(outcome))
}

fn tcp_trial(device: &str, run: u32) -> Trial {
    let id = format!("tcp-throughput/{device}/{run}");
    let mut random = seeded(&id);
    let (_, bits, _) = typical(device);
    let bits_per_second = bits * (1.0 + 0.03 * random.normal());
    let outcome = TcpOutcome {
        bits_per_second,
        seconds: 10.0,
        retransmits: random.next_u64() % 900,
        sender_cpu_percent: 40.0,
        receiver_cpu_percent: 55.0,
        each_second: vec![bits_per_second; 10],
    };
    trial(
        id,
        "tcp-throughput",
        device,
        run,
        Outcome::TcpThroughput(outcome),
    )
}

fn rate_trial(device: &str, run: u32, intended_pps: Option<u32>) -> Trial {
    let name = intended_pps.map_or_else(|| "flat-out".to_owned(), |pps| pps.to_string());
    let id = format!("forwarding-rate/{name}/{device}/{run}");
    let mut random = seeded(&id);
    let (_, _, pps) = typical(device);
    let most = pps * (1.0 + 0.03 * random.normal());
    let offered_pps = intended_pps.map_or(8.0e5, f64::from);
    let received = whole(most.min(offered_pps) * 2.0);
    let offered = whole(offered_pps * 2.0);
    let through = (device != "direct").then_some(());
    let outcome = RateOutcome {
        frame_bytes: 64,
        intended_pps,
        seconds: 2.0,
        offered,
        received,
        path: RatePath {
            client_sent: offered,
            client_dropped: 0,
            device_in: through.map(|()| offered),
            device_matched: matches!(device, "comporta" | "ovs").then_some(received),
            device_out: through.map(|()| received),
            device_out_dropped: through.map(|()| 0),
            server_received: received,
        },
        check: PathCheck {
            sent: 100,
            intact: 100,
            changed: 0,
            duplicates: 0,
        },
    };
    trial(
        id,
        "forwarding-rate",
        device,
        run,
        Outcome::ForwardingRate(outcome),
    )
}

/// A large flow table of `device`.
pub fn flow_table_trial(device: &str, run: u32) -> Trial {
    let id = format!("flow-table/{device}/{run}");
    let mut random = seeded(&id);
    let slow = if device == "ovs" { 4.0 } else { 1.0 };
    let outcome = FlowTableOutcome {
        flows: 100_000,
        part: 10_000,
        add_seconds: 0.3 * slow * (1.0 + 0.03 * random.normal()),
        first_seconds: 0.029 * slow,
        last_seconds: 0.031 * slow,
        empty_bytes: 18 << 20,
        full_bytes: 48 << 20,
        left_bytes: 19 << 20,
        told: 100_002,
        told_bytes: 9_600_000,
        tell_seconds: 0.2 * slow,
        echoes: 150,
        echo_ns_max: 900_000,
        delete_seconds: 0.1 * slow,
    };
    trial(id, "flow-table", device, run, Outcome::FlowTable(outcome))
}

/// A meter of `device`.
fn meter_trial(device: &str, run: u32) -> Trial {
    let id = format!("meters/packets-drop/10000/{device}/{run}");
    let off = if device == "ovs" { 40 } else { 4 };
    let window = |passed| MeterWindow {
        seconds: 1.0,
        passed,
    };
    let outcome = MeterOutcome {
        unit: MeterUnit::Packets,
        act: MeterAct::Drop,
        rate: 10_000,
        nominal_pps: 10_000,
        frame_bytes: 64,
        offered: 100_000,
        seconds: 5.0,
        windows: vec![window(10_000 + off), window(10_000 - off / 2)],
    };
    let outcome = Outcome::Meter(outcome);
    trial(id, "meters", device, run, outcome)
}

/// Requests through `device`.
fn requests_trial(device: &str, run: u32) -> Trial {
    let id = format!("tcp-requests/{device}/{run}");
    let (round_trip_ns, ..) = typical(device);
    let outcome = RequestsOutcome {
        answered: 10_000,
        seconds: 10_000.0 * round_trip_ns / 1e9,
    };
    let outcome = Outcome::Requests(outcome);
    trial(id, "tcp-requests", device, run, outcome)
}

/// Rules of `device` that change.
fn change_trial(device: &str, run: u32) -> Trial {
    let id = format!("changes/effect/{device}/{run}");
    let slow = if device == "ovs" { 9 } else { 1 };
    let outcome = ChangeOutcome {
        test: "effect".to_owned(),
        pps: 100_000,
        seconds: 5.0,
        sent: 500_000,
        received: 500_000,
        delay_ns_p50: 20_000 * slow,
        delay_ns_p99: 60_000 * slow,
        delay_ns_p999: 90_000 * slow,
        delay_ns_max: 400_000 * slow,
        changes: 900,
        effect_ns: (0..900).map(|n| (60_000 + 100 * n) * slow).collect(),
        barrier_ns: vec![80_000 * slow; 900],
        ..ChangeOutcome::default()
    };
    trial(id, "changes", device, run, Outcome::Change(outcome))
}

fn nanoseconds(value: f64) -> u32 {
    u32::try_from(whole(value)).expect("a round trip is short")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the made-up numbers are small and positive"
)]
/// A small positive number without its fraction.
#[must_use]
pub fn whole(value: f64) -> u64 {
    value as u64
}
