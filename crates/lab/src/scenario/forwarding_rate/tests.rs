//! Rates of a device whose losses are known.

use std::num::NonZeroU64;

use record::Conditions;
use record::Parameters;
use testbed::{Chance, Clock, Faults, Impairments, Spawner};

use super::*;
use crate::Interrupt;
use crate::cores::Cores;
use crate::devices::tests::impaired;

fn outcome(intended_pps: Option<u32>, offered: u64, received: u64) -> RateOutcome {
    RateOutcome {
        frame_bytes: 64,
        intended_pps,
        seconds: 1.0,
        offered,
        received,
        path: RatePath {
            device_in: Some(offered),
            ..RatePath::default()
        },
        check: PathCheck {
            sent: 100,
            intact: 100,
            ..PathCheck::default()
        },
    }
}

fn flaws(outcome: RateOutcome) -> Vec<(bool, String)> {
    let measured = judge(outcome, 0, Conditions::default());
    let flaws = measured.flaws.into_iter();
    flaws.map(|flaw| (flaw.void, flaw.reason)).collect()
}

#[test]
fn a_device_that_loses_is_measured_and_not_blamed_on_the_tester() {
    assert_eq!(flaws(outcome(Some(100_000), 100_000, 50_000)), []);
    assert_eq!(flaws(outcome(None, 400_000, 100_000)), []);
}

#[test]
fn a_generator_that_falls_short_voids() {
    let told = "the generator offered 90000 frames a second instead of 100000";
    assert_eq!(
        flaws(outcome(Some(100_000), 90_000, 90_000)),
        [(true, told.to_owned())]
    );
}

#[test]
fn a_limit_of_the_generator_is_not_taken_for_the_devices() {
    let told = flaws(outcome(None, 400_000, 399_000));
    assert!(matches!(&told[..], [(false, reason)] if reason.contains("may be what limits")));
}

#[test]
fn more_out_than_in_voids() {
    assert!(flaws(outcome(None, 100, 101)).iter().any(|(void, _)| *void));
}
fn every(count: u64) -> Chance {
    Chance::Every(NonZeroU64::new(count).unwrap())
}

/// What comes of 200 frames through a device with `faults`.
fn through(faults: Faults) -> Option<(RateOutcome, Vec<bool>)> {
    let bench = impaired(Impairments {
        forth: faults,
        back: Faults::default(),
        seed: 1,
    })?;
    let mut parameters = Parameters::default();
    parameters.forwarding_rate.milliseconds = 200;
    let clock = Clock::start();
    let tools = Tools {
        clock: &clock,
        spawner: &Spawner::new().unwrap(),
        cores: &Cores {
            tester: vec![0],
            device: vec![0],
        },
        interrupt: &Interrupt::never(),
        parameters: &parameters,
        options: &crate::Options::default(),
    };
    let offer = Offer::Paced(1_000);
    let measured = measure_on(&bench, offer, |_| Ok(None), &tools).unwrap();
    let void = measured.flaws.iter().map(|flaw| flaw.void).collect();
    match measured.outcome {
        Outcome::ForwardingRate(outcome) => Some((outcome, void)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_losses_of_a_device_are_found_and_placed() {
    let faults = Faults {
        loss: every(4),
        ..Faults::default()
    };
    let Some((outcome, _)) = through(faults) else {
        return;
    };
    let (offered, path) = (outcome.offered, outcome.path);
    assert!(offered > 100, "{offered}");
    // A hundred marked frames go before, so the test begins with the first of four.
    assert_eq!(outcome.received, offered - offered / 4);
    assert_eq!(outcome.check.intact, 75);
    assert_eq!((path.client_sent, path.device_in), (offered, Some(offered)));
    assert_eq!(path.device_out, Some(outcome.received));
}

#[test]
fn frames_that_come_twice_or_changed_are_found() {
    let faults = Faults {
        duplication: every(10),
        ..Faults::default()
    };
    let Some((outcome, void)) = through(faults) else {
        return;
    };
    assert!(outcome.received > outcome.offered);
    assert!(outcome.check.duplicates > 0 && void.contains(&true));
    let faults = Faults {
        change: every(5),
        ..Faults::default()
    };
    let Some((outcome, _)) = through(faults) else {
        return;
    };
    assert_eq!((outcome.check.intact, outcome.check.changed), (80, 20));
}
