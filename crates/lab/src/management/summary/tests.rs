//! Summaries of samples and replies.

use base::Instant;
use testbed::{CoreTimes, RunTimes, Switches, Usage};

use super::*;
use crate::management::{Counter, InterfaceCounts, SwitchSample, Width};

fn sample(at_ms: u64, user_ms: u64, softirq_ms: u64) -> Sample {
    let process = ProcessSample {
        usage: Usage {
            user: Duration::from_millis(user_ms),
            system: Duration::from_millis(user_ms / 2),
            resident_bytes: 1_000 + at_ms,
        },
        switches: Switches {
            voluntary: at_ms,
            involuntary: at_ms / 10,
        },
        times: Some(RunTimes {
            ran: Duration::from_millis(user_ms),
            waited: Duration::from_millis(at_ms / 2),
        }),
    };
    let core = CoreTimes {
        softirq: Duration::from_millis(softirq_ms),
        steal: Duration::from_millis(softirq_ms / 2),
        ..CoreTimes::default()
    };
    Sample {
        at: Instant::from_millis(at_ms),
        processes: vec![Some(process), None, Some(process)],
        cores: vec![CoreTimes::default(), core],
        pressure: Some(Duration::from_millis(at_ms / 4)),
    }
}

#[test]
fn summary_has_the_usage_between_samples() {
    let mut samples = Samples::default();
    for (at, user, softirq) in [(0, 0, 0), (500, 100, 50), (1_000, 400, 100)] {
        samples.keep(sample(at, user, softirq));
    }
    let mut record = management_record(&samples);
    assert_eq!((record.samples, record.seconds), (3, 1.0));
    assert_eq!((record.user_seconds, record.system_seconds), (0.8, 0.4));
    assert_eq!(record.resident_bytes_max, 4_000);
    assert_eq!(record.voluntary_switches, 2_000);
    assert_eq!(record.involuntary_switches, 200);
    assert_eq!(
        (&record.softirq, &record.steal),
        (&vec![0.0, 0.1], &vec![0.0, 0.05])
    );
    assert_eq!(record.pressure, Some(0.25));
    // Two processes, with half of the user time in the kernel in addition.
    assert_eq!(record.cores_used, [(0.5, 0.6), (1.0, 1.8)]);
    // 0.4 s in each of two, and half of that in the run queue.
    assert_eq!(record.run_seconds, Some(0.8));
    assert_eq!(record.wait_seconds, Some(1.0));
    assert_eq!((record.cores(), record.ns_per_frame()), (Some(0.8), None));
    assert_eq!(record.switches_per_second(), Some(2_200.0));
    record.host_frames = Some(400_000);
    assert_eq!(record.ns_per_frame(), Some(2_000.0));
    record.run_seconds = None;
    assert!((record.cores().unwrap() - 1.2).abs() < 1e-9, "by ticks");
    record.resident_bytes_max = 0;
    assert_eq!((record.cores(), record.agent), (None, None));
}

fn switch_sample(up_time: u32, octets: u64, frames: u32, load: u8) -> (Instant, SwitchSample) {
    let wide = |value| Counter {
        value,
        width: Width::Bits64,
    };
    let narrow = |value: u32| Counter {
        value: value.into(),
        width: Width::Bits32,
    };
    let interface = InterfaceCounts {
        in_octets: wide(octets),
        in_frames: [narrow(frames), narrow(1), narrow(2)],
        out_octets: wide(0),
        out_frames: [narrow(0); 3],
    };
    let sample = SwitchSample {
        up_time,
        interfaces: vec![interface],
        loads: vec![load, 3],
    };
    (Instant::START, sample)
}

#[test]
fn counters_may_wrap_between_replies_but_a_restart_resets_them() {
    let mut polls = Polls {
        switch: vec![
            switch_sample(1, u64::MAX, u32::MAX, 10),
            switch_sample(2, 99, 9, 90),
            switch_sample(3, 199, 19, 40),
        ],
        unanswered: 2,
        ..Polls::default()
    };
    let agent = agent_record(&polls);
    let interface = agent.interfaces.unwrap()[0];
    assert_eq!((interface.in_octets, interface.in_frames), (200, 20));
    assert_eq!((agent.load_max, agent.unanswered), (vec![90, 3], 2));
    polls.switch.push(switch_sample(1, 300, 30, 1));
    assert_eq!(agent_record(&polls).interfaces, None);
    polls.switch.truncate(1);
    assert_eq!(agent_record(&polls).interfaces, None);
}

#[test]
fn summary_record_survives_serialization() {
    let record = ManagementRecord {
        seconds: 1.5,
        softirq: vec![0.25],
        host_frames: Some(7),
        ..ManagementRecord::default()
    };
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(
        serde_json::from_str::<ManagementRecord>(&text).unwrap(),
        record
    );
    assert!(!text.contains("agent"));
}
