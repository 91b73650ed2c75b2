//! Probers over a cable, and over a device with known faults.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use testbed::{Chance, DeviceKind, DeviceOptions, Faults, Impairments, Spawner};
use trafficgen::Transmit;
use trafficgen::memory::{Path, SimulatedPort, SimulatedTime, cable};

use super::*;
use crate::devices::tests::impaired;

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
    // The kernel drops frames of a cable if other tests' traffic occupies its core. This is rare,
    // and the counters must then report the loss.
    let lost = u64::from(echoes.warm_up_lost) + (200 - back.len() as u64);
    assert!(lost <= 10, "{}", books());
    assert!((sent - lost..=sent).contains(&echoes.served), "{}", books());
    assert!(back.iter().all(|&nanos| nanos > 500), "{}", books());
}

#[test]
fn solo_prober_measures_a_link() {
    over_a_cable(Prober::Solo);
}

#[test]
fn blocking_prober_measures_a_link() {
    over_a_cable(Prober::Pair);
}

#[test]
fn prober_gives_up_after_consecutive_losses() {
    let clock = Clock::start();
    let interrupt = Interrupt::never();
    let request = EchoRequest {
        frame_bytes: 64,
        warm_up: 0,
        packets: 10_000,
        prober: Prober::Solo,
    };
    let mut tally = Tally::new(request, &clock, &interrupt);
    let outcome = (0..LOSSES_MAX).try_for_each(|_| {
        assert!(tally.next().is_some());
        tally.record(None)
    });
    assert!(matches!(outcome, Err(ProbeError::NoReply)));
    assert_eq!(tally.round_trip_ns.len(), 20);
}

#[test]
fn frame_of_64_bytes_has_18_bytes_of_payload() {
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
fn prober_measures_known_losses_and_delay() {
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
    assert_eq!((back.received, back.discarded()), (195, 0));
}

/// End of a cable in memory; its clock advances to the next arrival.
struct MemoryEnd {
    way: SimulatedPort,
    time: Arc<SimulatedTime>,
}

impl Datagrams for MemoryEnd {
    fn send(&self, datagram: &[u8]) -> io::Result<()> {
        self.way.clone().send(&[datagram]).map(drop)
    }

    fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        if let Some((_, datagram)) = self.way.take() {
            room[..datagram.len()].copy_from_slice(&datagram);
            return Ok(Some(datagram.len()));
        }
        let now = self.time.look_ns();
        // If no frame is in flight, time advances by a millisecond.
        let leap = self.way.next_ns().map_or(1_000_000, |next| next - now);
        self.time.pass(leap);
        Ok(None)
    }
}

/// Echoes over a cable in memory.
pub(crate) fn over(forth: Path, back: Path, request: EchoRequest) -> Result<Echoes, ProbeError> {
    let time = SimulatedTime::new(1);
    let (_, ways) = cable(&time, forth, back);
    let ends = ways.map(|way| MemoryEnd {
        way,
        time: Arc::clone(&time),
    });
    let interrupt = Interrupt::never();
    let mut tally = Tally::new(request, &*time, &interrupt);
    solo::between(&ends, &mut tally)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn echo_results_equal_the_faults_of_the_link(
        forth_ns in 0_u64..300_000,
        back_ns in 0_u64..300_000,
        lose_every in 3_u64..60,
        repeat_every in 2_u64..60,
    ) {
        let forth = Path {
            delay_ns: forth_ns,
            lose_every: Some(lose_every),
            ..Path::default()
        };
        let back = Path {
            delay_ns: back_ns,
            repeat_every: Some(repeat_every),
            ..Path::default()
        };
        let request = EchoRequest {
            frame_bytes: 128,
            warm_up: 10,
            packets: 200,
            prober: Prober::Solo,
        };
        let echoes = over(forth, back, request).unwrap();
        for (place, round_trip) in (11_u64..).zip(&echoes.round_trip_ns) {
            prop_assert_eq!(round_trip.is_none(), place.is_multiple_of(lose_every));
            let took = round_trip.map(u64::from);
            let wanted = forth_ns + back_ns;
            // Reading the clock takes time as well.
            prop_assert!(took.is_none_or(|took| (wanted..wanted + 20).contains(&took)));
        }
        prop_assert_eq!(echoes.served, 210 - 210 / lose_every);
        prop_assert_eq!(u64::from(echoes.warm_up_lost), 10 / lose_every);
    }
}

#[test]
fn dead_link_is_reported_as_silent() {
    let forth = Path {
        lose_every: Some(1),
        ..Path::default()
    };
    let request = EchoRequest {
        frame_bytes: 64,
        warm_up: 0,
        packets: 100,
        prober: Prober::Solo,
    };
    let outcome = over(forth, Path::default(), request);
    assert!(matches!(outcome, Err(ProbeError::NoReply)));
}
