//! Measurements over simulated paths report the configured impairments: counts exactly, times
//! within a histogram's precision.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::memory::{Path, PathCounts, Service, SimulatedTime, cable};
use crate::template::{Encapsulation, FlowField, Flows, Tag};
use crate::{Expectation, LiveTotals, Mix, Pace, Rate, Template, Time, pdv_ns};

const ONE: TestPortNo = TestPortNo(0);
const OTHER: TestPortNo = TestPortNo(1);
const PPS: u64 = 100_000;

/// A request for one stream of 100 ms.
fn request(stream: Stream) -> Request {
    Request {
        drain: Duration::from_millis(60),
        ..Request::new(vec![stream], Length::of(Duration::from_millis(100)))
    }
}

fn forth(template: Template) -> Stream {
    Stream::new(template, Pace::Constant(Rate::Frames(PPS)), ONE, OTHER)
}

fn over(forth: Path, request: &Request) -> (Measurement, PathCounts) {
    let time = SimulatedTime::new(200);
    let (mut ends, [way, _]) = cable(&time, forth, Path::default());
    let measured = measure(&mut ends, request, &*time, &Interrupt::never());
    (measured.unwrap(), way.done())
}

/// Measures one stream over a path.
fn one(path: Path) -> (StreamOutcome, PathCounts) {
    let (mut measured, done) = over(path, &request(forth(Template::udp(64))));
    assert_eq!(measured.refusals, []);
    (measured.streams.remove(0), done)
}

#[test]
fn clean_path_loses_nothing_at_the_exact_rate() {
    let (stream, done) = one(Path {
        delay_ns: 30_000,
        ..Path::default()
    });
    assert_eq!(done.sent, 10_000);
    assert_eq!(
        (stream.intended.frames, stream.achieved.frames),
        (10_000, 10_000)
    );
    assert_eq!(stream.achieved.pps(), 100_000.0);
    assert_eq!(stream.achieved.l2_bits(), 100_000.0 * 64.0 * 8.0);
    assert_eq!(stream.achieved.l1_bits(), 100_000.0 * 84.0 * 8.0);
    assert_eq!(
        (stream.received, stream.lost, stream.duplicated),
        (10_000, 0, 0)
    );
    assert_eq!(
        (stream.reordered, stream.modified, stream.corrupt),
        (0, 0, 0)
    );
    assert!((stream.received_pps() / 100_000.0 - 1.0).abs() < 1e-4);
    let precision = 30;
    assert!(stream.delay_from_sent.min().abs_diff(30_000) <= precision);
    assert!(stream.delay_from_sent.max().abs_diff(30_000) <= precision);
    assert_eq!(stream.ipdv.max(), 0);
    assert_eq!(stream.jitter_ns, 0.0);
    assert_eq!(pdv_ns(&stream.delay_from_sent, 0.999), 0);
}

#[test]
fn frame_records_have_timestamps_and_the_last_loss_its_number() {
    let keep = Keep {
        from: 9_000,
        most: 500,
    };
    let request = Request {
        keep: Some(keep),
        ..request(forth(Template::udp(64)))
    };
    let path = Path {
        delay_ns: 30_000,
        lose_every: Some(4_000),
        ..Path::default()
    };
    let (measured, _) = over(path, &request);
    let stream = &measured.streams[0];
    // The 8000th frame has the number 7999.
    assert_eq!(stream.last_lost, Some(7_999));
    let numbers: Vec<u64> = stream
        .records
        .iter()
        .map(|records| records.number)
        .collect();
    assert_eq!(numbers, (9_000..9_500).collect::<Vec<u64>>());
    for records in &stream.records {
        let due = measured.began_ns + records.number * 10_000;
        assert_eq!(records.received_ns - records.sent_ns, 30_000);
        assert!((due..due + 1_000).contains(&records.sent_ns));
    }
}

#[test]
fn stepped_rate_is_sent_as_scheduled() {
    let stepped = Pace::Stepped {
        before: Rate::Frames(100_000),
        at_ns: 40_000_000,
        after: Rate::Frames(50_000),
    };
    let mut stream = forth(Template::udp(64));
    stream.pace = stepped;
    let request = Request {
        keep: Some(Keep {
            from: 3_998,
            most: 4,
        }),
        ..request(stream)
    };
    let (measured, done) = over(Path::default(), &request);
    assert_eq!(done.sent, 4_000 + 3_000);
    assert_eq!(measured.refusals, []);
    let since = |ns: u64| (ns - measured.began_ns) / 1_000 * 1_000;
    let sent: Vec<u64> = measured.streams[0]
        .records
        .iter()
        .map(|records| since(records.sent_ns))
        .collect();
    assert_eq!(sent, [39_980_000, 39_990_000, 40_000_000, 40_020_000]);
}

#[test]
fn delay_from_the_due_time_includes_the_lateness() {
    let (stream, _) = one(Path {
        delay_ns: 10_000,
        ..Path::default()
    });
    let late = stream.lateness.mean();
    assert!(late > 0.0);
    let waited = stream.delay_from_intended.mean() - stream.delay_from_sent.mean();
    assert!((waited - late).abs() < 20.0, "{waited} {late}");
}

#[test]
fn losses_duplicates_and_reordering_are_counted_exactly() {
    let (stream, done) = one(Path {
        delay_ns: 5_000,
        lose_every: Some(1_000),
        repeat_every: Some(300),
        hold_every: Some((700, 45_000)),
        ..Path::default()
    });
    // Frame 7000 is lost and therefore not delayed.
    assert_eq!((done.lost, done.repeated, done.held), (10, 30, 13));
    assert_eq!((stream.lost, stream.received), (10, 9_990));
    assert_eq!(stream.duplicated, done.repeated);
    assert_eq!(stream.loss_runs.len(), 10);
    assert_eq!(stream.loss_runs.max(), 1);
    // The gap is 10 us: four frames overtake one that is delayed by 45 us.
    assert_eq!(
        (stream.reordered, stream.extent.min(), stream.extent.max()),
        (13, 4, 4)
    );
}

#[test]
fn random_losses_are_counted_exactly() {
    let (stream, done) = one(Path {
        lose_share: 0.2,
        seed: 3,
        ..Path::default()
    });
    assert!((1_500..2_500).contains(&done.lost), "{done:?}");
    assert_eq!(stream.lost, done.lost);
    assert_eq!(stream.loss_ratio(), done.lost as f64 / 10_000.0);
}

#[test]
fn jitter_appears_as_delay_variation() {
    let (stream, _) = one(Path {
        delay_ns: 100_000,
        jitter_ns: 8_000,
        seed: 1,
        ..Path::default()
    });
    // Delays are uniform over 8 us: the variation is the full range, the mean difference a third of
    // it.
    assert!(pdv_ns(&stream.delay_from_sent, 0.999).abs_diff(8_000) < 200);
    assert!((stream.ipdv.mean() - 8_000.0 / 3.0).abs() < 150.0);
    assert_eq!(stream.reordered, 0);
}

#[test]
fn device_of_half_the_capacity_forwards_half() {
    let service = Service {
        frame_ns: 20_000,
        queue: 10,
    };
    let (stream, done) = one(Path {
        service: Some(service),
        ..Path::default()
    });
    assert_eq!(stream.lost, done.lost);
    assert!(stream.received.abs_diff(5_000) < 20, "{}", stream.received);
    // A forwarded frame has waited for ten others.
    assert!(stream.delay_from_sent.value_at_quantile(0.9) > 190_000);
}

#[test]
fn slow_sender_makes_the_measurement_void() {
    let path = Path {
        sender_gap_ns: 12_500,
        ..Path::default()
    };
    let (measured, done) = over(path, &request(forth(Template::udp(64))));
    let [
        Refusal::Shortfall {
            intended, achieved, ..
        },
    ] = measured.refusals[..]
    else {
        panic!("{:?}", measured.refusals);
    };
    assert_eq!(intended, 100_000.0);
    assert!((79_000.0..80_500.0).contains(&achieved), "{achieved}");
    let stream = &measured.streams[0];
    assert_eq!((stream.achieved.frames, stream.lost), (done.sent, 0));
    assert!(measured.clone().valid().is_err());
    // The delay from the due time grows steadily.
    assert!(stream.delay_from_intended.max() > 15_000_000);
    assert!(stream.delay_from_sent.max() < 1_000);
}

#[test]
fn frames_that_the_tester_loses_void_the_measurement() {
    let path = Path {
        drop_every: Some(5_000),
        ..Path::default()
    };
    let (measured, done) = over(path, &request(forth(Template::udp(64))));
    let frames = done.dropped;
    assert_eq!(frames, 2);
    assert_eq!(measured.refusals, [Refusal::Dropped { end: OTHER, frames }]);
}

#[test]
fn modified_corrupt_and_foreign_frames_are_distinguished() {
    fn harm(frame: &mut Vec<u8>, nth: u64) {
        match nth % 1_000 {
            1 => frame[0] ^= 1,  // the destination
            2 => frame[44] ^= 1, // the payload
            3 => frame[55] ^= 8, // the signature's time
            4 => frame.truncate(30),
            _ => {}
        }
    }
    let path = Path {
        rewrite: Some(harm),
        ..Path::default()
    };
    let (measured, _) = over(path, &request(forth(Template::udp(64))));
    let stream = &measured.streams[0];
    assert_eq!((stream.modified, stream.corrupt), (10, 20));
    assert_eq!((stream.received, stream.lost), (9_990, 10));
    assert_eq!(measured.ends[1].foreign, 10);
    assert_eq!(measured.ends[1].samples.len(), 8);
    assert_eq!(measured.ends[1].samples[0].len(), 30);
}

#[test]
fn pushed_tag_is_modified_unless_expected() {
    fn push(frame: &mut Vec<u8>, _: u64) {
        frame.splice(12..12, [0x81, 0, 0x60, 5]);
    }
    let path = Path {
        rewrite: Some(push),
        ..Path::default()
    };
    let fields = [FlowField::SourceAddress, FlowField::DestinationPort];
    let sent = Template {
        flows: Flows::random(500, 1, &fields),
        ..Template::udp(64)
    };
    let unaware = forth(sent.clone());
    let (measured, _) = over(path.clone(), &request(unaware.clone()));
    assert_eq!(measured.streams[0].modified, 10_000);
    let tagged = Template {
        frame_bytes: 68,
        encapsulation: Encapsulation::Vlan(Tag { vid: 5, pcp: 3 }),
        ..sent
    };
    let expectation = Expectation {
        rewritten: Some(tagged.into()),
        ..Expectation::default()
    };
    let aware = Stream {
        expectation,
        ..unaware
    };
    let (measured, _) = over(path, &request(aware));
    let stream = &measured.streams[0];
    assert_eq!(
        (stream.received, stream.modified, stream.corrupt),
        (10_000, 0, 0)
    );
}

#[test]
fn directions_and_misdelivered_frames_are_counted_separately() {
    let time = SimulatedTime::new(200);
    let back = Path {
        lose_every: Some(10),
        ..Path::default()
    };
    let (mut ends, _) = cable(&time, Path::default(), back);
    let stream = |from, to| {
        Stream::new(
            Template::udp(128),
            Pace::Poisson {
                rate: Rate::Frames(PPS),
                seed: 9,
            },
            from,
            to,
        )
    };
    let request = Request {
        streams: vec![stream(ONE, OTHER), stream(OTHER, ONE), stream(ONE, ONE)],
        ..request(stream(ONE, OTHER))
    };
    let measured = measure(&mut ends, &request, &*time, &Interrupt::never()).unwrap();
    let [forth, back, lost] = &measured.streams[..] else {
        panic!("three streams were requested");
    };
    assert_eq!((forth.lost, forth.misdelivered), (0, 0));
    assert_eq!(back.lost, back.achieved.frames / 10);
    assert_eq!(
        (lost.received, lost.misdelivered),
        (0, lost.achieved.frames)
    );
    assert!(forth.achieved.frames.abs_diff(10_000) < 500);
}

#[test]
fn warm_up_is_sent_and_not_counted() {
    let warm = Request {
        warm_up: Duration::from_millis(50),
        ..request(forth(Template::udp(64)))
    };
    let path = Path {
        lose_every: Some(100),
        repeat_every: Some(50),
        ..Path::default()
    };
    let (measured, done) = over(path, &warm);
    let stream = &measured.streams[0];
    assert_eq!(done.sent, 15_000);
    assert_eq!(
        (stream.intended.frames, stream.achieved.frames),
        (10_000, 10_000)
    );
    // A lost frame is not duplicated.
    assert_eq!((stream.lost, stream.duplicated), (100, 100));
    assert_eq!(stream.achieved.pps(), 100_000.0);
}

#[test]
fn frame_count_of_a_request_is_exact() {
    let time = SimulatedTime::new(200);
    let (mut ends, [way, _]) = cable(&time, Path::default(), Path::default());
    for pace in [Pace::FlatOut, Pace::Constant(Rate::Line(1_000_000_000))] {
        let mix = Mix::imix(&Template::udp(64)).unwrap();
        let streams = vec![Stream::new(mix, pace, ONE, OTHER)];
        let request = Request::new(streams, Length::Frames(12_000));
        let before = way.done().sent;
        let measured = measure(&mut ends, &request, &*time, &Interrupt::never()).unwrap();
        let stream = &measured.streams[0];
        assert_eq!(way.done().sent - before, 12_000);
        assert_eq!(
            (stream.received, stream.modified, stream.lost),
            (12_000, 0, 0)
        );
        assert_eq!(stream.achieved.bytes, 1_000 * (7 * 64 + 4 * 570 + 1518));
    }
}

#[test]
fn line_rate_of_a_mix_is_exact() {
    let mix = Mix::imix_csit(&Template::udp(64)).unwrap();
    let pace = Pace::Constant(Rate::Line(100_000_000));
    let (measured, _) = over(
        Path::default(),
        &request(Stream::new(mix, pace, ONE, OTHER)),
    );
    let stream = &measured.streams[0];
    // The tolerance is one frame of the largest size in 100 ms.
    let step = 10.0 * f64::from(1538 * 8);
    assert!((stream.achieved.l1_bits() - 1e8).abs() <= step);
    assert_eq!(stream.intended.frames, stream.received);
}

#[test]
fn measurement_stops_on_an_interruption() {
    let time = SimulatedTime::new(200);
    let (mut ends, _) = cable(&time, Path::default(), Path::default());
    let interrupt = Interrupt::never();
    interrupt.request();
    let outcome = measure(
        &mut ends,
        &request(forth(Template::udp(64))),
        &*time,
        &interrupt,
    );
    assert!(matches!(outcome, Err(MeasureError::Interrupted)));
}

#[test]
fn thread_pair_counts_like_one_thread() {
    let time = SimulatedTime::new(50);
    let path = Path {
        lose_every: Some(1_000),
        repeat_every: Some(70),
        ..Path::default()
    };
    let (mut ends, [way, _]) = cable(&time, path, Path::default());
    let request = Request {
        threads: Threads::Pair {
            send: 0,
            receive: 0,
        },
        length: Length::Frames(7_000),
        drain: Duration::from_secs(1),
        ..request(Stream::new(Template::udp(64), Pace::FlatOut, ONE, OTHER))
    };
    let measured = measure(&mut ends, &request, &*time, &Interrupt::never()).unwrap();
    let stream = &measured.streams[0];
    let done = way.done();
    assert_eq!((stream.received, stream.lost), (6_993, done.lost));
    assert_eq!(stream.duplicated, done.repeated);
}

#[test]
fn invalid_requests_are_refused_before_transmission() {
    let time: Arc<SimulatedTime> = SimulatedTime::new(200);
    let before = time.look_ns();
    let (mut ends, _) = cable(&time, Path::default(), Path::default());
    let clock: &dyn Time = &*time;
    let mut refused = |stream: Stream| {
        measure(&mut ends, &request(stream), clock, &Interrupt::never()).unwrap_err()
    };
    let nowhere = Stream {
        to: TestPortNo(2),
        ..forth(Template::udp(64))
    };
    assert!(matches!(refused(nowhere), MeasureError::Request(_)));
    let short = refused(forth(Template::udp(63)));
    let text = "frame size 63 out of range: 64 to 9000 bytes with FCS";
    assert_eq!(short.to_string(), text);
    assert_eq!(time.look_ns(), before);
}

/// A clock that ends a measurement at a given time.
struct EndingClock<'a> {
    time: Arc<SimulatedTime>,
    live: &'a Live,
    at_ns: u64,
}

impl Time for EndingClock<'_> {
    fn now_ns(&self) -> u64 {
        let now = self.time.now_ns();
        if now >= self.at_ns {
            self.live.end();
        }
        now
    }
}

/// Measures longer streams that are ended after 30 ms.
fn ended(forth: Path, pace: Pace, length: Length, threads: Threads) -> (StreamOutcome, LiveTotals) {
    let live = Live::default();
    let time = SimulatedTime::new(100);
    let (mut ends, _) = cable(&time, forth, Path::default());
    let ending = EndingClock {
        at_ns: time.look_ns() + 30_000_000,
        time,
        live: &live,
    };
    let request = Request {
        threads,
        length,
        ..request(Stream::new(Template::udp(64), pace, ONE, OTHER))
    };
    let measured = measure_live(&mut ends, &request, &ending, &Interrupt::never(), &live);
    let mut measured = measured.unwrap();
    assert_eq!(measured.refusals, []);
    (measured.streams.remove(0), live.totals())
}

#[test]
fn early_end_keeps_the_results_until_then() {
    let forth = || Path {
        delay_ns: 20_000,
        ..Path::default()
    };
    let pair = Threads::Pair {
        send: 0,
        receive: 0,
    };
    let hour = Length::of(Duration::from_secs(3_600));
    for (threads, length) in [
        (Threads::Solo, hour),
        (Threads::Solo, Length::Frames(1 << 40)),
        (pair, hour),
    ] {
        for pace in [Pace::Constant(Rate::Frames(PPS)), Pace::FlatOut] {
            let (stream, totals) = ended(forth(), pace, length, threads);
            let sent = stream.achieved.frames;
            assert_eq!((stream.received, stream.lost), (sent, 0), "{pace:?}");
            assert!(stream.shortfall().abs() < 0.001, "{stream:?}");
            assert_eq!((totals.sent, totals.received), (sent, sent));
            assert_eq!(totals.sent_bytes, 64 * sent);
            let mean = totals.delays_ns / sent.max(1);
            assert!(mean >= 20_000 && totals.delay_max_ns >= mean, "{totals:?}");
        }
    }
    let (paced, _) = ended(
        forth(),
        Pace::Constant(Rate::Frames(PPS)),
        hour,
        Threads::Solo,
    );
    // 3000 frames in 30 ms, and those of the 64 rounds until the end was noticed.
    assert!((3_000..3_010).contains(&paced.achieved.frames), "{paced:?}");
}

#[test]
fn late_stream_ends_early_too() {
    let slow = Path {
        sender_gap_ns: 50_000,
        ..Path::default()
    };
    let live = Live::default();
    live.end();
    let time = SimulatedTime::new(100);
    let (mut ends, _) = cable(&time, slow, Path::default());
    let request = request(forth(Template::udp(64)));
    let measured = measure_live(&mut ends, &request, &*time, &Interrupt::never(), &live);
    assert!(measured.unwrap().streams[0].achieved.frames < 10);
}
