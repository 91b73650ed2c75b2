//! Warm-up: frames move until the rate of the device is steady.
//!
//! A flow cache fills over many seconds: Open vSwitch raises the number of flows that its data path
//! may hold step by step, so that 100,000 flows take it most of a minute. Between two steps its rate
//! and the number of its flows stay the same for several seconds. A device is steady when two
//! windows in a row agree and the number of its cached flows no longer grows; if it has
//! [`LARGE_CACHE`] flows or more, all of [`WINDOWS_LARGE`] windows must agree. A device that is not
//! steady after [`WARM_UP_MAX`] is measured as it is then, and the time shows that.

use std::time::Duration;

use crate::Failure;
use crate::switch::BridgeTarget;

/// Length of one window.
const WINDOW: Duration = Duration::from_secs(3);

/// Difference between two windows, as a share of the larger rate, below which they agree.
const AGREEMENT: f64 = 0.05;

/// Number of cached flows from which more windows must agree, and the number of these windows: they
/// are longer than the time between two steps of Open vSwitch's flow limit.
const LARGE_CACHE: f64 = 10_000.0;
const WINDOWS_LARGE: u32 = 6;

/// Longest warm-up.
const WARM_UP_MAX: Duration = Duration::from_secs(120);

/// One window: packets per second, and flows in the cache of the device if it has one.
#[derive(Clone, Copy, Debug)]
struct RateWindow {
    rate: f64,
    flows: Option<f64>,
}

impl RateWindow {
    /// True if this window and the `earlier` one show the same state.
    fn agrees_with(self, earlier: Self) -> bool {
        let difference = (self.rate - earlier.rate).abs();
        let grows = match (self.flows, earlier.flows) {
            (Some(now), Some(before)) => now > before * (1.0 + AGREEMENT),
            _ => false,
        };
        !grows && difference <= AGREEMENT * self.rate.max(earlier.rate)
    }

    /// The number of windows that must agree, this one included.
    fn windows_required(self) -> u32 {
        match self.flows {
            Some(flows) if flows >= LARGE_CACHE => WINDOWS_LARGE,
            _ => 2,
        }
    }
}

/// Waits until the rate of `bridge` is steady, at most [`WARM_UP_MAX`]. `cached_flows` returns the
/// number of flows in the device's cache. Returns the time that this took, in seconds.
pub(crate) fn warm_up(
    bridge: &BridgeTarget<'_>,
    mut cached_flows: impl FnMut() -> Result<Option<f64>, Failure>,
) -> Result<f64, Failure> {
    let mut window = || -> Result<RateWindow, Failure> {
        Ok(RateWindow {
            rate: bridge.rate(Duration::ZERO, WINDOW)?,
            flows: cached_flows()?,
        })
    };
    let clock = &bridge.site.clock;
    let start = clock.now();
    let mut first = window()?;
    let mut agreeing = 1;
    loop {
        let elapsed = clock.now().since(start);
        let later = window()?;
        // All are compared with the first of them, so that a slow growth is not missed.
        if later.agrees_with(first) {
            agreeing += 1;
        } else {
            (first, agreeing) = (later, 1);
        }
        if agreeing >= later.windows_required() || elapsed >= WARM_UP_MAX {
            return Ok(clock.now().since(start).as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(rate: f64, flows: Option<f64>) -> RateWindow {
        RateWindow { rate, flows }
    }

    #[test]
    fn windows_agree_within_five_per_cent() {
        let earlier = window(100.0, None);
        assert!(window(95.0, None).agrees_with(earlier));
        assert!(window(105.0, None).agrees_with(earlier));
        assert!(!window(94.0, None).agrees_with(earlier));
        assert!(!window(106.0, None).agrees_with(earlier));
        assert!(window(0.0, None).agrees_with(window(0.0, None)));
    }

    #[test]
    fn large_cache_requires_more_windows() {
        assert_eq!(window(1.0, None).windows_required(), 2);
        assert_eq!(window(1.0, Some(2.0)).windows_required(), 2);
        assert_eq!(window(1.0, Some(24_000.0)).windows_required(), 6);
    }

    #[test]
    fn growing_cache_is_not_steady() {
        let earlier = window(100.0, Some(24_000.0));
        assert!(!window(100.0, Some(38_000.0)).agrees_with(earlier));
        assert!(window(100.0, Some(24_500.0)).agrees_with(earlier));
        assert!(window(100.0, Some(10_000.0)).agrees_with(earlier));
    }
}
