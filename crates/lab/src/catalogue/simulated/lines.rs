//! Load over simulated ends.

use std::ops::Range;
use std::sync::Arc;

use testbed::Interrupt;
use trafficgen::memory::{Path, SimulatedTime, cable};
use trafficgen::{Measurement, Request, TestPort, measure};

use crate::catalogue::lines::{Offer, refused};
use crate::trial::TrialError;

/// Step of the simulated clock.
pub(super) const STEP_NS: u64 = 1_000;

/// Ends at all ports of a device.
pub(in crate::catalogue) struct SimulatedLines {
    pub(super) ends: Vec<TestPort>,
    pub(in crate::catalogue) time: Arc<SimulatedTime>,
}

impl Offer for SimulatedLines {
    fn offer(&mut self, request: &Request) -> Result<Measurement, TrialError> {
        let measured = measure(&mut self.ends, request, &*self.time, &Interrupt::never());
        measured.map_err(refused)
    }
}

/// Returns a link whose forward direction drops all frames during `dead`, in nanoseconds from now.
pub(in crate::catalogue) fn dead_for(dead: Range<u64>, path: Path) -> SimulatedLines {
    let time = SimulatedTime::new(STEP_NS);
    let now = time.look_ns();
    let path = Path {
        dark_ns: now + dead.start..now + dead.end,
        ..path
    };
    let (ends, _) = cable(&time, path, Path::default());
    SimulatedLines {
        ends: ends.into(),
        time,
    }
}
