//! Streams through a simulated device that drops long frames, and through one that splits them.

use std::sync::Arc;

use testbed::Interrupt;
use trafficgen::memory::{Path, SimulatedTime, cable};

use super::*;
use crate::catalogue::simulated::point;

/// Measures a path that treats each frame by its size; `rewrite` receives the number of each frame.
fn over(rewrite: fn(&mut Vec<u8>, u64)) -> Measurement {
    let time = SimulatedTime::new(200);
    let path = Path {
        delay_ns: 20_000,
        rewrite: Some(rewrite),
        ..Path::default()
    };
    let (mut ends, _) = cable(&Arc::clone(&time), path, Path::default());
    let pace = Pace::Constant(Rate::Frames(10_000));
    let stream = |size| Stream::new(Template::udp(size), pace, TestPortNo(0), TestPortNo(1));
    let streams = sizes(1_500).map(stream).to_vec();
    let mut request = Request::new(streams, Length::of(Duration::from_millis(10)));
    request.drain = Duration::from_millis(60);
    measure_streams(&mut ends, &request, &*time, &Interrupt::never()).unwrap()
}

#[test]
fn frame_sizes_follow_from_the_mtu() {
    assert_eq!(sizes(1_500), [64, 1_518, 1_519, 2_018]);
    // The longest frame does not exceed the tester's limit.
    assert_eq!(sizes(8_400)[3], 8_918);
    assert!(u32::from(sizes(8_400)[3]) < CABLE);
}

#[test]
fn received_frames_are_counted_by_size_without_fragments() {
    // Only the first half of a frame that is too long leaves, without its signature.
    let measurement = over(|frame, _| {
        if frame.len() > 1_514 {
            frame.truncate(700);
        }
    });
    let counted = UnsentFrames {
        counted: 150,
        missing: 200,
    };
    let reading = reading(&point(&MTU, &[]), &measurement, Some(counted));
    let figure = |name: &str| reading.figures[name];
    assert_eq!(
        (figure("beside_percent"), figure("fits_percent")),
        (100.0, 100.0)
    );
    assert_eq!((figure("over_percent"), figure("far_percent")), (0.0, 0.0));
    assert_eq!((figure("fragments"), figure("told")), (200.0, 0.0));
    assert_eq!((figure("counted_percent"), figure("changed")), (75.0, 0.0));
}

#[test]
fn device_without_missing_frames_has_no_counted_share() {
    let measurement = over(|_, _| {});
    let counted = UnsentFrames {
        counted: 0,
        missing: 0,
    };
    let all = reading(&point(&MTU, &[]), &measurement, Some(counted));
    assert!(CAME.iter().all(|name| all.figures[*name] == 100.0));
    assert_eq!(all.absent["counted_percent"], "none was missing");
    let without = reading(&point(&MTU, &[]), &measurement, None);
    assert_eq!(
        without.absent["counted_percent"],
        "the device has no controller"
    );
}
