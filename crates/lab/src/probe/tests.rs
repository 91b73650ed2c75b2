//! Probers over a cable, and over a device whose faults are known.

use super::*;
use crate::devices::tests::impaired;
use std::num::NonZeroU64;
use std::path::PathBuf;

use testbed::{Chance, DeviceKind, DeviceOptions, Faults, Impairments, Spawner};

fn over_a_cable(prober: Prober) {
    if let Err(missing) = testbed::check(&DeviceKind::Direct.requirements("comporta".as_ref())) {
        println!("skipped: {missing}");
        return;
    }
    let options = DeviceOptions {
        kind: DeviceKind::Direct,
        directory: PathBuf::from("."),
        cores: Vec::new(),
        comporta: PathBuf::new(),
    };
    let clock = Clock::start();
    let bench = Bench::build(&Spawner::new().unwrap(), &clock, &options).unwrap();
    let request = EchoRequest {
        frame_bytes: 64,
        warm_up: 10,
        packets: 200,
        prober,
    };
    let interrupt = Interrupt::never();
    let sent = u64::from(request.warm_up + request.packets);
    let before = [bench.client(), bench.server()].map(|host| host.counters().unwrap());
    let echoes = echo(&bench, request, &[], &clock, &interrupt).unwrap();
    let counted = [
        bench.client().counters().unwrap().since(&before[0]),
        bench.server().counters().unwrap().since(&before[1]),
    ];
    let back: Vec<u32> = echoes.round_trip_ns.iter().copied().flatten().collect();
    let books = || format!("{back} back, {echoes:?}, {counted:?}", back = back.len());
    assert_eq!(echoes.round_trip_ns.len(), 200);
    assert_eq!(echoes.served, counted[1].rx_packets, "{}", books());
    // The kernel drops frames of a cable whose core is crowded by other tests' traffic:
    // seldom, and then the books must say so.
    let lost = u64::from(echoes.warm_up_lost) + (200 - back.len() as u64);
    assert!(lost <= 10, "{}", books());
    assert!((sent - lost..=sent).contains(&echoes.served), "{}", books());
    assert!(back.iter().all(|&nanos| nanos > 500), "{}", books());
}

#[test]
fn one_thread_echoes_over_a_cable() {
    over_a_cable(Prober::Solo);
}

#[test]
fn two_blocking_ends_echo_over_a_cable() {
    over_a_cable(Prober::Pair);
}

#[test]
fn silence_is_told_before_patience_runs_out_ten_thousand_times() {
    let clock = Clock::start();
    let interrupt = Interrupt::never();
    let request = EchoRequest {
        frame_bytes: 64,
        warm_up: 0,
        packets: 10_000,
        prober: Prober::Solo,
    };
    let mut tally = Tally::new(request, &clock, &interrupt);
    let outcome = (0..SILENCE).try_for_each(|_| {
        assert!(tally.next().is_some());
        tally.book(None)
    });
    assert!(matches!(outcome, Err(ProbeError::Silence)));
    assert_eq!(tally.round_trip_ns.len(), 20);
}

#[test]
fn a_frame_of_64_bytes_carries_18_of_payload() {
    let payload = |frame_bytes| {
        let request = EchoRequest {
            frame_bytes,
            warm_up: 0,
            packets: 1,
            prober: Prober::Solo,
        };
        request.payload()
    };
    assert_eq!((payload(64), payload(128), payload(256)), (18, 82, 210));
}

#[test]
fn the_losses_and_the_delay_that_a_device_has_are_found() {
    let hold = Duration::from_micros(300);
    let back = Faults {
        delay: hold,
        ..Faults::default()
    };
    let forth = Faults {
        loss: Chance::Every(NonZeroU64::new(40).unwrap()),
        ..back
    };
    let faults = Impairments {
        forth,
        back,
        seed: 1,
    };
    let Some(bench) = impaired(faults) else {
        return;
    };
    let request = EchoRequest {
        frame_bytes: 64,
        warm_up: 10,
        packets: 190,
        prober: Prober::Solo,
    };
    let clock = Clock::start();
    let interrupt = Interrupt::never();
    let echoes = echo(&bench, request, &[], &clock, &interrupt).unwrap();
    let lost: Vec<usize> = (0..190)
        .filter(|&index| echoes.round_trip_ns[index].is_none())
        .collect();
    assert_eq!(
        lost,
        [29, 69, 109, 149, 189],
        "each fortieth, after ten of warm-up"
    );
    assert_eq!(echoes.served, 195);
    let returned = echoes.round_trip_ns.iter().flatten();
    assert!(
        returned.copied().all(|nanos| nanos >= 600_000),
        "held twice"
    );
    let impairment = bench.device().impairment().unwrap();
    let [forth, back] = impairment.counts();
    assert_eq!((forth.received, forth.lost, forth.sent), (200, 5, 195));
    assert_eq!((back.received, back.gone()), (195, 0));
}
