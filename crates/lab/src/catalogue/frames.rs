//! Frames of all kinds: what they carry, what stands before it, how long they are, and what of
//! that a device changes.

pub(super) mod icmp;
pub(super) mod kinds;
pub(super) mod mtu;
pub(super) mod tags;

use record::Reading;
use trafficgen::Refusal;

use super::offered::{Offered, without};
use crate::catalogue::prelude::*;
use crate::trial::Measured;

/// Frames that came out otherwise than they should.
const CHANGED: Figure = figure_of("changed", "Modified", Better::Lower);
/// Frames whose checksums did not hold.
const DAMAGED: Figure = figure_of("damaged", "Corrupt", Better::Lower);

const fn figure_of(name: &'static str, title: &'static str, better: Better) -> Figure {
    Figure::new(name, title, "frames", better)
}

/// The reading as an outcome. Here frames that come out otherwise than they should are a finding
/// about the device, and no reason to discard it.
fn measured(offered: &Offered, mut reading: Reading) -> Measured {
    let refusals = &offered.measurement.refusals;
    let is_short = |one: &&Refusal| matches!(one, Refusal::Shortfall { .. });
    if let Some(short) = refusals.iter().find(is_short) {
        reading = without(&reading, &format!("the tester is too slow: {short}"));
    }
    // What became of frames is known at whatever rate they came.
    reading.put("changed", offered.sum(|one| one.modified) as f64);
    reading.put("damaged", offered.sum(|one| one.corrupt) as f64);
    let mut measured = Measured::new(reading, offered.conditions.clone());
    for refusal in refusals.iter().filter(|one| !is_short(one)) {
        measured.void(refusal.to_string());
    }
    measured
}
