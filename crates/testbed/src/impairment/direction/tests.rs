//! Faults by a simulated clock.

use super::*;
use crate::Chance;
use std::num::NonZeroU64;

const MICRO: Duration = Duration::from_micros(1);

fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1_000)
}

fn every(count: u64) -> Chance {
    Chance::Every(NonZeroU64::new(count).unwrap())
}

/// Sends `count` frames, one every `gap` microseconds, and lists the departures: number and time in
/// microseconds.
fn through(faults: Faults, count: u8, gap: u64) -> (Vec<(u8, u64)>, FaultCounts) {
    let mut line = ImpairedDirection::new(faults, 1);
    let mut out = Vec::new();
    for tick in 0..100_000 {
        let now = at(tick);
        if tick.is_multiple_of(gap) && tick / gap < u64::from(count) {
            let number = u8::try_from(tick / gap).unwrap();
            line.handle_frame(&[&[number][..], &[0; 59]].concat(), now);
        }
        while let Some(frame) = line.poll_frame(now) {
            out.push((frame[0], tick));
            line.handle_sent(frame, false);
        }
    }
    (out, *line.counts())
}

#[test]
fn frames_are_delayed_and_stay_in_order() {
    let faults = Faults {
        delay: 100 * MICRO,
        ..Faults::default()
    };
    let (out, counts) = through(faults, 5, 10);
    assert_eq!(out, [(0, 100), (1, 110), (2, 120), (3, 130), (4, 140)]);
    assert_eq!((counts.sent, counts.discarded()), (5, 0));
    assert_eq!(counts.held_ns_mean(), Some(100_000.0));
    assert_eq!((counts.held_ns_max, counts.late_ns_max), (100_000, 0));
}

#[test]
fn jitter_stays_in_its_range_and_does_not_reorder() {
    let faults = Faults {
        delay: 100 * MICRO,
        jitter: 500 * MICRO,
        ..Faults::default()
    };
    let (out, counts) = through(faults, 200, 20);
    assert!(out.is_sorted_by_key(|(number, _)| *number) && out.len() == 200);
    assert_eq!(counts.reordered, 0);
    let held: Vec<u64> = out
        .iter()
        .map(|&(n, left)| left - u64::from(n) * 20)
        .collect();
    assert!(
        held.iter().all(|held| (100..=601).contains(held)),
        "{held:?}"
    );
    assert!(held.iter().max() > Some(&400) && held.iter().min() < Some(&300));
}

#[test]
fn faults_affect_their_frames_and_are_counted() {
    let faults = Faults {
        loss: every(4),
        duplication: every(5),
        ..Faults::default()
    };
    let (out, counts) = through(faults, 20, 10);
    let numbers: Vec<u8> = out.iter().map(|(number, _)| *number).collect();
    // The 20th is lost, so it is not duplicated.
    let expected = [0, 1, 2, 4, 4, 5, 6, 8, 9, 9, 10, 12, 13, 14, 14, 16, 17, 18];
    assert_eq!(numbers, expected);
    assert_eq!(
        (counts.received, counts.lost, counts.duplicated),
        (20, 5, 3)
    );
    assert_eq!(
        counts.received + counts.duplicated,
        counts.sent + counts.discarded()
    );
}

#[test]
fn delayed_frame_is_overtaken() {
    let faults = Faults {
        delay: 50 * MICRO,
        reordering: every(3),
        reordering_by: 25 * MICRO,
        ..Faults::default()
    };
    let (out, counts) = through(faults, 7, 10);
    let numbers: Vec<u8> = out.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [0, 1, 3, 4, 2, 6, 5]);
    // The last delayed frame is the sixth; one more frame overtakes it.
    assert_eq!((counts.held_back, counts.reordered), (2, 2));
}

#[test]
fn rate_limit_spaces_frames_and_its_queue_overflows() {
    let faults = Faults {
        // A frame of 64 bytes with FCS takes 10 us.
        rate_bits: NonZeroU64::new(51_200_000),
        queue_frames: 4,
        ..Faults::default()
    };
    let (out, counts) = through(faults, 100, 5);
    assert!(
        out.windows(2).all(|pair| pair[1].1 - pair[0].1 == 10),
        "{out:?}"
    );
    assert_eq!(counts.sent + counts.queue_dropped, 100);
    // At twice the rate, half of the frames pass, and the queue drains at the end.
    assert_eq!(counts.sent, 54);
    let (out, counts) = through(faults, 10, 10);
    assert_eq!((out.len(), counts.queue_dropped), (10, 0));
}

#[test]
fn equal_seeds_affect_the_same_frames() {
    let faults = Faults {
        loss: Chance::Share(0.3),
        jitter: 30 * MICRO,
        ..Faults::default()
    };
    let first = through(faults, 250, 3);
    assert_eq!(first, through(faults, 250, 3));
    assert!((50..=100).contains(&first.1.lost), "{:?}", first.1);
}

#[test]
fn memory_is_bounded_and_excess_frames_are_counted() {
    let faults = Faults {
        delay: Duration::from_secs(3_600),
        ..Faults::default()
    };
    let mut line = ImpairedDirection::new(faults, 1);
    for _ in 0..1_000 {
        line.handle_frame(&[0; 65_000], Instant::START);
    }
    let counts = line.counts();
    let fit = (HELD_BYTES_MAX / (65_000 + HELD_FRAME_BYTES)) as u64;
    assert_eq!((counts.received, counts.no_room), (1_000, 1_000 - fit));
}
