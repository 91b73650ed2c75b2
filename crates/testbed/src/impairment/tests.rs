//! Faults on a real path: the measured faults equal the counters.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::{Bench, DeviceKind, DeviceOptions, Settings, Setup, Spawner};

/// Sends `count` frames from the client, one every 100 us, and returns the numbers that arrive at
/// the server, with their delays.
fn through(forth: Faults, count: u32) -> Option<(Vec<(u32, Duration)>, FaultCounts)> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root makes namespaces");
        return None;
    }
    let options = DeviceOptions {
        kind: DeviceKind::Impaired(None),
        directory: PathBuf::from("."),
        cores: Vec::new(),
        comporta: PathBuf::new(),
    };
    let impairments = Impairments {
        forth,
        ..Impairments::default()
    };
    let setup = Setup {
        settings: Settings::Impairments(Box::new(impairments)),
        ..Setup::default()
    };
    let clock = Clock::start();
    let bench = Bench::build_as(&Spawner::new().unwrap(), &clock, &options, &setup).unwrap();
    let (client, server) = (bench.client(), bench.server());
    let sender = client.namespace.raw_sender(client.interface).unwrap();
    let receiver = server.namespace.raw_receiver(server.interface).unwrap();
    let (mut received, mut sent_at) = (Vec::new(), Vec::new());
    let mut room = [0; 128];
    let start = clock.now();
    let end = start + Duration::from_micros(100) * count + Duration::from_millis(300);
    while clock.now() < end {
        let number = u32::try_from(sent_at.len()).unwrap();
        if number < count && clock.now() >= start + Duration::from_micros(100) * number {
            let mut frame = [0xee; 60];
            frame[14..18].copy_from_slice(&number.to_be_bytes());
            sent_at.push(clock.now());
            sender.send(&[frame]).unwrap();
        }
        while receiver.receive(&mut room).unwrap().is_some() {
            let number = u32::from_be_bytes(room[14..18].try_into().unwrap());
            let place = usize::try_from(number).unwrap();
            received.push((number, clock.now().since(sent_at[place])));
        }
    }
    let impairment = bench.device().impairment().unwrap();
    impairment.check().unwrap();
    Some((received, impairment.counts()[0]))
}

#[test]
fn forwarder_counts_equal_the_received_frames() {
    let faults = Faults {
        delay: Duration::from_millis(2),
        jitter: Duration::from_micros(500),
        loss: Chance::Share(0.05),
        duplication: Chance::Share(0.02),
        reordering: Chance::Every(NonZeroU64::new(50).unwrap()),
        reordering_by: Duration::from_millis(1),
        ..Faults::default()
    };
    let Some((received, counts)) = through(faults, 2_000) else {
        return;
    };
    assert_eq!(counts.received, 2_000, "{counts:?}");
    assert_eq!(received.len() as u64, counts.sent, "{counts:?}");
    assert_eq!(counts.sent + counts.discarded(), 2_000 + counts.duplicated);
    let mut distinct: Vec<u32> = received.iter().map(|(number, _)| *number).collect();
    let mut highest = 0;
    let late = distinct.iter().filter(|number| {
        let is_late = **number < highest;
        highest = highest.max(**number);
        is_late
    });
    assert_eq!(late.count() as u64, counts.reordered, "{counts:?}");
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len() as u64, 2_000 - counts.lost);
    let earliest = received.iter().map(|(_, took)| *took).min().unwrap();
    assert!(earliest >= Duration::from_millis(2), "{earliest:?}");
}

#[test]
fn rate_limit_bounds_the_received_frames() {
    let faults = Faults {
        // 5,000 frames of 64 bytes a second, for an offered load of 10,000.
        rate_bits: NonZeroU64::new(5_000 * 512),
        queue_frames: 10,
        ..Faults::default()
    };
    let Some((received, counts)) = through(faults, 1_000) else {
        return;
    };
    assert_eq!(received.len() as u64, counts.sent);
    assert_eq!(counts.sent + counts.queue_dropped, 1_000, "{counts:?}");
    assert!(
        counts.queue_dropped > 0 && counts.no_room == 0,
        "{counts:?}"
    );
    // A frame waits at most for eleven transmissions of 200 us, including its own.
    let longest = Duration::from_nanos(counts.held_ns_max.saturating_sub(counts.late_ns_max));
    assert!(longest <= Duration::from_micros(2_200), "{counts:?}");
}
