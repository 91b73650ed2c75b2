//! Frames of all kinds: protocols, encapsulations and sizes, and their modification by a device.

pub(super) mod icmp;
pub(super) mod kinds;
pub(super) mod mtu;
pub(super) mod tags;

use record::Reading;
use trafficgen::Refusal;

use super::offered::{LoadResult, without};
use crate::catalogue::prelude::*;
use crate::trial::TrialResult;

/// Frames that arrived with other headers than expected.
const CHANGED: Figure = figure_of("changed", "Modified", Better::Lower);
/// Frames that arrived with a wrong checksum.
const DAMAGED: Figure = figure_of("damaged", "Corrupt", Better::Lower);

const fn figure_of(name: &'static str, title: &'static str, better: Better) -> Figure {
    Figure::new(name, title, "frames", better)
}

/// Returns the results. Modified frames are a finding about the device here, and do not void the
/// trial.
fn measured(offered: &LoadResult, mut reading: Reading) -> TrialResult {
    let refusals = &offered.measurement.refusals;
    let is_short = |one: &&Refusal| matches!(one, Refusal::Shortfall { .. });
    if let Some(short) = refusals.iter().find(is_short) {
        reading = without(&reading, &format!("the tester is too slow: {short}"));
    }
    // Modification does not depend on the rate, so these figures survive a shortfall.
    reading.put("changed", offered.sum(|one| one.modified) as f64);
    reading.put("damaged", offered.sum(|one| one.corrupt) as f64);
    let mut measured = TrialResult::new(reading, offered.conditions.clone());
    for refusal in refusals.iter().filter(|one| !is_short(one)) {
        measured.void(refusal.to_string());
    }
    measured
}
