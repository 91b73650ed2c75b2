//! Bisection for the highest rate of frames that a device carries: nearly all frames have arrived
//! when the last is sent. Frames in a growing queue do not count, even if they arrive later.

use std::time::Duration;

use crate::catalogue::control::rig::{ControlRig, discard_messages};
use crate::catalogue::control::traffic::Traffic;
use crate::trial::TrialError;

/// Upper end of the bisection in frames per second: more than one thread sends and receives.
pub(super) const RATE_MAX: u64 = 2_000_000;
/// Number of steps; the last two rates differ by less than a hundredth of the upper end.
pub(super) const STEPS: u32 = 8;
/// Time of a step.
const STEP: Duration = Duration::from_millis(100);
/// Greatest percentage of frames that may be in flight when the last is sent, and of due frames
/// that may not have been sent.
const MISSING_MAX: u64 = 3;

/// Returns the highest rate that the device carries, in frames per second.
pub(super) fn highest_carried(rig: &mut dyn ControlRig) -> Result<u64, TrialError> {
    let (mut carried, mut beyond) = (0_u64, RATE_MAX);
    for _ in 0..STEPS {
        let rate = carried.midpoint(beyond);
        match is_carried(rate, rig)? {
            true => carried = rate,
            false => beyond = rate,
        }
    }
    match carried {
        0 => Err(TrialError::Impossible(format!(
            "the device carries less than {beyond} frames per second"
        ))),
        carried => Ok(carried),
    }
}

fn is_carried(pps: u64, rig: &mut dyn ControlRig) -> Result<bool, TrialError> {
    let began = rig.now();
    let mut traffic = Traffic::new(1, pps, began);
    while rig.now().since(began) < STEP {
        traffic.turn(rig)?;
        discard_messages(rig)?;
        traffic.receive_frames(rig, |_| {})?;
    }
    let due = pps * u64::try_from(STEP.as_millis()).expect("a step is short") / 1_000;
    let (sent, received) = (traffic.sent(), traffic.received());
    traffic.drain(rig, |_| {})?;
    let nearly = |part: u64, whole: u64| part * 100 >= whole * (100 - MISSING_MAX);
    Ok(nearly(sent, due) && nearly(received, sent))
}
