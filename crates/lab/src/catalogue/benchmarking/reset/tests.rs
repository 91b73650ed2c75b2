//! The measured outage equals the configured one, and so do its parts.

use testbed::StopTimes;
use trafficgen::memory::Path;

use super::*;
use crate::catalogue::simulated::{SimulatedLines, dead_for};

const PPS: u64 = 10_000;
const LENGTH: Duration = Duration::from_millis(800);

/// Returns the results of a device that was stopped during `dead`, in milliseconds from the
/// beginning. The request to stop was at its start.
fn reading_of(dead: std::ops::Range<u64>, controller: bool) -> Reading {
    let ms = 1_000_000;
    let path = Path {
        delay_ns: 50_000,
        ..Path::default()
    };
    let mut device: SimulatedLines = dead_for(dead.start * ms..dead.end * ms, path);
    let began = device.time.look_ns();
    let at = |millis: u64| Instant::from_nanos(began + millis * ms);
    let restarted = RestartTimes {
        stopped: StopTimes {
            signalled: at(dead.start),
            ended: at(dead.start + 5),
        },
        connected: controller.then_some(at(dead.start + 120)),
        rules_installed: controller.then_some(at(dead.start + 130)),
    };
    let measured = device.offer(&request(PPS, LENGTH)).unwrap();
    let mut reading = Reading::at(&Point::default());
    put_restart_times(&measured, &restarted, PPS, &mut reading);
    reading
}

/// Gap between two frames in milliseconds, which limits the resolution.
const GAP_MS: f64 = 1e3 / PPS as f64;

#[test]
fn outage_equals_the_downtime_of_the_device() {
    for dead in [100..250, 100..107, 130..700] {
        let reading = reading_of(dead.clone(), true);
        let length = (dead.end - dead.start) as f64;
        for name in ["outage_ms", "loss_outage_ms", "first_frame_ms"] {
            let off = (reading.figures[name] - length).abs();
            assert!(off <= GAP_MS + 0.06, "{name} of {dead:?}: off by {off}");
        }
        assert_eq!(reading.figures["ended_ms"], 5.0);
        assert_eq!(reading.figures["called_ms"], 120.0);
        assert_eq!(reading.figures["ruled_ms"], 130.0);
        assert!(reading.absent.is_empty());
    }
}

#[test]
fn device_without_controller_has_no_connection_time() {
    let reading = reading_of(100..150, false);
    assert!(reading.absent["called_ms"].contains("no controller"));
    assert!(reading.absent["ruled_ms"].contains("no controller"));
    assert!(reading.figures.contains_key("outage_ms"));
}

#[test]
fn device_without_recovery_has_no_outage() {
    let reading = reading_of(100..900, true);
    assert!(reading.absent["outage_ms"].contains("no frame arrived after the restart"));
    assert!(reading.absent["first_frame_ms"].contains("no frame arrived after the restart"));
    assert_eq!(reading.figures["lost"], 7_000.0);
}

#[test]
fn device_that_drops_frames_is_not_restarted() {
    let ms = 1_000_000;
    let mut late = dead_for(0..200 * ms, Path::default());
    assert!(forwards(PPS, &mut late).is_ok());
    let mut dead = dead_for(0..60_000 * ms, Path::default());
    let refused = forwards(PPS, &mut dead).unwrap_err().to_string();
    assert!(refused.contains("did not forward all frames"), "{refused}");
}

#[test]
fn device_without_forwarding_has_no_outage() {
    let reading = reading_of(0..900, true);
    assert!(reading.absent["outage_ms"].contains("before the device was stopped"));
}
