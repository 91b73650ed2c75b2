//! Rates of a device with known losses.

use std::num::NonZeroU64;

use record::Value;
use testbed::{Chance, Clock, Faults, Impairments, Spawner};

use super::*;
use crate::Interrupt;
use crate::cores::Cores;
use crate::devices::tests::impaired;
use crate::tools::Paths;

fn flaws(load: IntendedLoad, offered: u64, received: u64) -> Vec<(bool, String)> {
    let outcome = RateOutcome {
        load,
        seconds: 1.0,
        offered,
        path: RatePath {
            device_in: Some(offered),
            server_received: received,
            ..RatePath::default()
        },
        check: PathCheck {
            sent: 100,
            intact: 100,
            ..PathCheck::default()
        },
    };
    let measured = outcome.measured(&Point::default(), 0, Conditions::default());
    let flaws = measured.flaws.into_iter();
    flaws.map(|flaw| (flaw.void, flaw.reason)).collect()
}

const RATE: IntendedLoad = IntendedLoad::Constant(100_000);

#[test]
fn losses_of_a_device_are_not_those_of_the_tester() {
    assert_eq!(flaws(RATE, 100_000, 50_000), []);
    assert_eq!(flaws(IntendedLoad::FlatOut, 400_000, 100_000), []);
}

#[test]
fn generator_shortfall_voids_the_trial() {
    let reason = "the generator offered 90000 frames per second instead of 100000";
    assert_eq!(flaws(RATE, 90_000, 90_000), [(true, reason.to_owned())]);
}

#[test]
fn limit_of_the_generator_is_not_that_of_the_device() {
    let notes = flaws(IntendedLoad::FlatOut, 400_000, 399_000);
    assert!(matches!(&notes[..], [(false, reason)] if reason.contains("may be the limit")));
}

#[test]
fn received_frames_above_the_offered_load_void_the_trial() {
    let flaws = flaws(IntendedLoad::FlatOut, 100, 101);
    assert!(flaws.iter().any(|(void, _)| *void));
}

fn every(count: u64) -> Chance {
    Chance::Every(NonZeroU64::new(count).unwrap())
}

/// Returns the figures of 200 frames through a device with `faults`, and true for each void flaw.
fn through(faults: Faults) -> Option<(Reading, Vec<bool>)> {
    let bench = impaired(Impairments {
        forth: faults,
        back: Faults::default(),
        seed: 1,
    })?;
    let paths = Paths {
        directory: std::env::temp_dir(),
        comporta: "comporta".into(),
    };
    let point = Point::default()
        .with("offer", Value::Number(1_000))
        .with("frame_bytes", Value::Number(64))
        .with("millis", Value::Number(200));
    let clock = Clock::start();
    let tools = Tools {
        clock: &clock,
        spawner: &Spawner::new().unwrap(),
        cores: &Cores {
            tester: vec![0],
            device: vec![0],
        },
        interrupt: &Interrupt::never(),
        paths: &paths,
    };
    let measured = measure_on(&bench, &point, |_| Ok(None), &tools).unwrap();
    let void = measured.flaws.iter().map(|flaw| flaw.void).collect();
    Some((measured.reading, void))
}

#[test]
fn losses_of_a_device_are_counted_and_located() {
    let faults = Faults {
        loss: every(4),
        ..Faults::default()
    };
    let Some((reading, _)) = through(faults) else {
        return;
    };
    let offered = reading.of["loss"];
    assert!(offered > 100, "{offered}");
    // A hundred frames precede the trial, so it begins with the first of four.
    let lost = (offered / 4) as f64 / offered as f64;
    let near = |name: &str, expected: f64| {
        let value = reading.figures[name];
        assert!((value - expected).abs() < 1e-12, "{name}: {value}");
    };
    near("loss", lost);
    near("check_intact", 75.0);
    near("sent_share", 1.0);
    near("ingress_share", 1.0);
    near("egress_share", reading.figures["received_share"]);
}

#[test]
fn duplicated_and_modified_frames_are_found() {
    let faults = Faults {
        duplication: every(10),
        ..Faults::default()
    };
    let Some((reading, void)) = through(faults) else {
        return;
    };
    assert!(reading.figures["received_share"] > 1.0);
    assert!(reading.figures["check_duplicates"] > 0.0 && void.contains(&true));
    let faults = Faults {
        change: every(5),
        ..Faults::default()
    };
    let Some((reading, _)) = through(faults) else {
        return;
    };
    let checked = ["check_intact", "check_modified"].map(|name| reading.figures[name]);
    assert_eq!(checked, [80.0, 20.0]);
}
