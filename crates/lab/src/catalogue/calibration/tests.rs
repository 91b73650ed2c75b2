//! Calibration over a simulated link.

use testbed::Interrupt;
use trafficgen::memory::{Path, SimulatedTime, cable};
use trafficgen::{Length, Pace, Rate, Request, Stream, Template, TestPortNo, measure};

use super::*;
use crate::catalogue::Experiment;
use record::Value;

/// Returns the results of a sender that needs 4 µs per frame.
fn calibrated(pps: u64) -> Reading {
    let time = SimulatedTime::new(100);
    let slow = Path {
        sender_gap_ns: 4_000,
        ..Path::default()
    };
    let (mut ends, _) = cable(&time, slow, Path::default());
    let pace = Pace::Constant(Rate::Frames(pps));
    let stream = Stream::new(Template::udp(64), pace, TestPortNo(0), TestPortNo(1));
    let length = Length::of(Duration::from_millis(50));
    let request = Request::new(vec![stream], length);
    let measured = measure(&mut ends, &request, &*time, &Interrupt::never()).unwrap();
    let mut reading = Reading::at(&Point::default());
    put_tester_figures(&measured, &mut reading);
    reading
}

#[test]
fn calibration_reports_the_shortfall_of_the_tester() {
    let (slow, fast) = (calibrated(100_000), calibrated(400_000));
    assert_eq!(slow.figures["intended_kpps"], 100.0);
    assert_eq!(fast.figures["intended_kpps"], 400.0);
    assert!(slow.figures["lateness_p99_us"] < 1.0, "{slow:?}");
    assert!(fast.figures["lateness_p99_us"] > 1_000.0, "{fast:?}");
    assert_eq!(fast.figures["tester_lost"], 0.0);
    assert!(fast.absent.is_empty());
}

#[test]
fn calibration_takes_a_bare_link_only() {
    let of = |experiment: &Experiment, kind| (experiment.applies_to)(kind, &Point::default());
    for experiment in [&size::SIZE, &load::LOAD] {
        assert!(of(experiment, DeviceKind::Direct));
        assert!(!of(experiment, DeviceKind::Comporta));
        assert!(!of(experiment, DeviceKind::Impaired(None)));
        let point = Point::default().with("millis", Value::Number(200));
        assert_eq!((experiment.seconds)(&point), 0.5);
    }
}
