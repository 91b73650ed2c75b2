//! Rates, in simulated time.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use flow::text::parse_meter_line;

use super::*;

fn meter(line: &str, writers: usize) -> Meter {
    let command = parse_meter_line(line).expect(line);
    Meter::new(
        &command,
        None,
        &mut CounterAllocator::new(writers),
        Instant::START,
    )
}

/// Returns the weight of a packet of this length.
const fn bytes(bytes: u64) -> Totals {
    Totals { packets: 1, bytes }
}

/// Returns the number of packets that pass in a second, if one arrives every `every` nanoseconds at
/// a worker that polls every `look` nanoseconds.
fn passes(meter: &Meter, start: Instant, every: u64, look: u64, weight: Totals) -> u64 {
    let count = 1_000_000_000 / every;
    let passed = (0..count).filter(|index| {
        let at = (index * every).next_multiple_of(look);
        meter.submit(0, weight, start + Duration::from_nanos(at)) == MeterDecision::Pass
    });
    passed.count() as u64
}

#[track_caller]
fn check(passed: u64, rate: u64) {
    let off = passed.abs_diff(rate) as f64 / rate as f64;
    assert!(off <= 0.03, "{passed} of {rate}: {:.1} % off", off * 100.0);
}

#[test]
fn packet_rate_is_within_three_percent_in_any_second() {
    for rate in [1_000, 3_000, 14_880, 100_000, 333_333, 1_000_000] {
        let line = format!("meter=1,pktps,bands=type=drop,rate={rate}");
        let meter = meter(&line, 1);
        // Twice and ten times the rate, polled immediately or later, also after a pause.
        let loads = [(2, 1), (10, 1), (2, 1_000_000), (10, 1_000_000)];
        for (index, (factor, look)) in (0..).zip(loads) {
            let start = Instant::from_secs(10 * index);
            let every = 1_000_000_000 / (rate * factor);
            check(passes(&meter, start, every, look, bytes(60)), rate);
        }
    }
}

#[test]
fn conforming_packets_pass() {
    for rate in [1_000, 1_000_000] {
        let line = format!("meter=1,pktps,bands=type=drop,rate={rate}");
        let meter = meter(&line, 1);
        let every = 1_000_000_000 / rate;
        assert_eq!(passes(&meter, Instant::START, every, 1, bytes(60)), rate);
    }
}

#[test]
fn kilobit_rate_holds_for_any_frame_length() {
    for (kbps, length) in [
        (1_000, 125),
        (10_000, 1_514),
        (1_000_000, 1_514),
        (1_000_000, 60),
    ] {
        let line = format!("meter=1,kbps,bands=type=drop,rate={kbps}");
        let meter = meter(&line, 1);
        let rate = kbps * 1_000 / 8 / length;
        let every = 1_000_000_000 / (rate * 3);
        check(
            passes(&meter, Instant::START, every, 1, bytes(length)),
            rate,
        );
    }
}

/// A packet may exceed the burst, since it stands for many segments.
#[test]
fn large_packet_is_paid_for_by_later_ones() {
    let meter = meter(
        "meter=1,pktps,burst,bands=type=drop,rate=100,burst_size=1",
        1,
    );
    let many = Totals {
        packets: 50,
        bytes: 65_000,
    };
    let at = |millis| Instant::from_millis(millis);
    assert_eq!(meter.submit(0, many, at(0)), MeterDecision::Pass);
    assert_eq!(meter.submit(0, bytes(60), at(400)), MeterDecision::Drop);
    assert_eq!(meter.submit(0, bytes(60), at(495)), MeterDecision::Drop);
    assert_eq!(meter.submit(0, bytes(60), at(500)), MeterDecision::Pass);
    assert_eq!(meter.submit(0, many, at(509)), MeterDecision::Drop);
    assert_eq!(meter.submit(0, many, at(510)), MeterDecision::Pass);
}

#[test]
fn burst_has_the_configured_size() {
    let meter = meter(
        "meter=1,pktps,burst,bands=type=drop,rate=1000,burst_size=300",
        1,
    );
    for pause in [0, 1, 100] {
        let now = Instant::from_secs(pause);
        let burst = (0..1_000).filter(|_| meter.submit(0, bytes(60), now) == MeterDecision::Pass);
        assert_eq!(burst.count(), 300);
    }
}

/// The packets of an event pass at a low rate, as those of a second.
#[test]
fn low_rate_without_a_burst_passes_ten_packets_at_once() {
    for (rate, expected) in [(10, 10), (100, 10), (400, 10), (4, 4), (1, 1)] {
        let meter = meter(&format!("meter=1,pktps,bands=type=drop,rate={rate}"), 1);
        let passed = (0..20).filter(|_| {
            let decision = meter.submit(0, bytes(60), Instant::from_secs(1));
            decision == MeterDecision::Pass
        });
        assert_eq!(passed.count(), expected, "{rate}");
    }
}

/// A part of a token is no token: a burst passes no additional packet because a little time has
/// passed.
#[test]
fn slow_burst_has_the_configured_size() {
    let meter = meter("meter=1,pktps,burst,bands=type=drop,rate=1,burst_size=2", 1);
    let passed = (0..100).filter(|index| {
        let now = Instant::START + Duration::from_millis(index * 9);
        meter.submit(0, bytes(60), now) == MeterDecision::Pass
    });
    assert_eq!(passed.count(), 2);
}

#[test]
fn late_clock_gives_no_tokens_twice() {
    let meter = meter(
        "meter=1,pktps,burst,bands=type=drop,rate=10,burst_size=1",
        1,
    );
    assert_eq!(
        meter.submit(0, bytes(60), Instant::from_secs(5)),
        MeterDecision::Pass
    );
    for at in [4, 5, 0] {
        assert_eq!(
            meter.submit(0, bytes(60), Instant::from_secs(at)),
            MeterDecision::Drop
        );
    }
}

#[test]
fn exceeded_band_with_the_highest_rate_acts() {
    let line = "meter=1,pktps,burst,bands=type=drop,rate=20,burst_size=2,\
                type=dscp_remark,rate=10,burst_size=1,prec_level=1";
    let meter = meter(line, 1);
    let outcomes = [(); 3].map(|()| meter.submit(0, bytes(60), Instant::START));
    assert_eq!(
        outcomes,
        [
            MeterDecision::Pass,
            MeterDecision::Remark(1),
            MeterDecision::Drop
        ]
    );
    let stats = meter.statistics(0, Instant::from_secs(2));
    let acted: Vec<_> = stats.bands.iter().map(|band| band.packets).collect();
    assert_eq!((stats.packets, acted), (3, vec![1, 1]));
    assert_eq!(stats.duration, Duration::from_secs(2));
}

#[test]
fn rates_that_are_as_great_as_can_be_do_no_harm() {
    let line = "meter=1,kbps,burst,bands=type=drop,rate=4294967295,burst_size=4294967295,\
                type=drop,rate=1,burst_size=4294967295";
    let meter = meter(line, 1);
    let huge = Totals {
        packets: u64::from(u32::MAX),
        bytes: u64::from(u32::MAX),
    };
    for at in [0, u64::MAX / 2, u64::MAX] {
        assert_eq!(
            meter.submit(0, huge, Instant::from_nanos(at)),
            MeterDecision::Pass
        );
    }
}

/// The rate is that of the meter, not of each worker.
#[test]
fn workers_share_the_rate() {
    const WORKERS: usize = 4;
    const EACH: u64 = 20_000;
    let line = "meter=1,pktps,burst,bands=type=drop,rate=1000,burst_size=500";
    let meter = meter(line, WORKERS);
    let together = Barrier::new(WORKERS);
    let work = |writer| {
        together.wait();
        let times = (0..EACH).map(|index| Instant::from_nanos(index * 1_000_000_000 / EACH));
        times
            .filter(|now| meter.submit(writer, bytes(60), *now) == MeterDecision::Pass)
            .count()
    };
    let passed: usize = thread::scope(|scope| {
        let work = &work;
        let workers = [0, 1, 2, 3].map(|writer| scope.spawn(move || work(writer)));
        workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"))
            .sum()
    });
    // A second's packets and the burst, and one packet for the fraction at the end.
    assert!((1_400..=1_501).contains(&passed), "{passed}");
    let stats = meter.statistics(0, Instant::START);
    assert_eq!(stats.packets, EACH * WORKERS as u64);
    assert_eq!(stats.bands[0].packets + passed as u64, stats.packets);
}

#[test]
fn drop_precedence_is_raised_within_its_class() {
    // AF11, AF12, AF13.
    assert_eq!(raise_drop_precedence(10, 1), Some(12));
    assert_eq!(raise_drop_precedence(10, 2), Some(14));
    assert_eq!(raise_drop_precedence(12, 1), Some(14));
    assert_eq!(raise_drop_precedence(14, 1), Some(14));
    assert_eq!(raise_drop_precedence(10, 255), Some(14));
    // AF41.
    assert_eq!(raise_drop_precedence(34, 1), Some(36));
    // Best effort, a class selector, expedited forwarding, and unassigned code points.
    for dscp in [0, 8, 46, 11, 42] {
        assert_eq!(raise_drop_precedence(dscp, 1), None, "{dscp}");
    }
}
