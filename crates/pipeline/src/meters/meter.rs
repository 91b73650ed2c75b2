//! A meter: bands, each a rate that packets may not exceed for long (OF 1.3.5, 5.7).
//!
//! # Token buckets as one number
//!
//! A band is a token bucket (RFC 2697), stored as the time at which it will be full: the virtual
//! scheduling form of the generic cell rate algorithm (ITU-T I.371, annex A).
//!
//! ```text
//!               full_at - burst            now            full_at
//!   ------------------|---------------------|-----------------|----> time
//!                     |<------ tokens ----->|<--- missing --->|
//!
//!   conforms:  full_at <= now + burst - cost     then  full_at = max(full_at, now) + cost
//! ```
//!
//! All workers share the number and change it by compare-and-exchange: no worker waits for another,
//! and the rate holds for all of them together. A packet costs one division and one atomic
//! operation for each band.
//!
//! Every packet is submitted to every band; of the bands that it exceeds, the one with the highest
//! rate acts. A packet that costs more than the bucket's capacity passes if the bucket is full, and
//! later packets pay for it: a packet of many segments passes a meter whose burst is a few
//! segments.
//!
//! Counters are kept regardless of `OFPMF_STATS`: to test the flag would cost as much.

use std::sync::atomic::{AtomicU64, Ordering};

use base::{Instant, MeterId};
use flow::{BandKind, BandStats, MeterConfig, MeterFlags, MeterMod, MeterStats};

use crate::counters::{CounterAllocator, Counters, OBSERVER, Totals};

/// Ticks per nanosecond: at a million packets per second, the cost of a packet is rounded by less
/// than a ten-thousandth. 64 bits of ticks are 36 years.
const TICKS_PER_NANO: u64 = 16;
const TICKS_PER_SEC: u64 = 1_000_000_000 * TICKS_PER_NANO;

/// Burst of a band without an explicit one: a fortieth of a second. So the packets that pass in any
/// second exceed the rate by less than three hundredths, and a sender or worker that pauses for no
/// longer loses nothing. The specification leaves the value to the switch (OF 1.3.5, 7.3.4.4.1);
/// Open vSwitch uses a second, so that twice the rate passes in the first.
const USUAL_BURST: u64 = TICKS_PER_SEC / 40;

/// Smallest burst of a band of packets without an explicit one, but never more than a second: a
/// low rate, as of logged packets, must pass the packets of one event.
const USUAL_BURST_PACKETS: u64 = 10;

/// A meter.
#[derive(Debug)]
pub(crate) struct Meter {
    id: MeterId,
    flags: MeterFlags,
    bands: Vec<MeterBand>,
    created: Instant,
    counters: Counters,
}

/// A band.
#[derive(Debug)]
struct MeterBand {
    given: flow::Band,
    /// Time in which an empty bucket fills, in ticks.
    burst: u64,
    /// Time at which the bucket is full, in ticks since the start; in the past if it is full.
    full_at: AtomicU64,
    /// Packets that the band acted on.
    counters: Counters,
}

/// The decision of a meter about one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterDecision {
    /// The packet passes.
    Pass,
    /// The packet is dropped.
    Drop,
    /// The packet's drop precedence is raised by this number of levels.
    Remark(u8),
}

impl Meter {
    /// Creates the meter that `command` describes. It inherits age and counters of the meter that
    /// it replaces, but not those of its bands (OF 1.3.5, 6.6).
    pub(crate) fn new(
        command: &MeterMod,
        old: Option<&Self>,
        allocator: &mut CounterAllocator,
        now: Instant,
    ) -> Self {
        let bands = command.bands.iter();
        let bands = bands.map(|given| MeterBand::new(*given, command.flags, allocator));
        Self {
            id: command.meter,
            flags: command.flags,
            bands: bands.collect(),
            created: old.map_or(now, |old| old.created),
            counters: old.map_or_else(|| allocator.allocate(), |old| old.counters.clone()),
        }
    }

    /// Submits a packet, counted as `writer`. A packet of an observer takes no tokens and always
    /// passes.
    pub(crate) fn submit(&self, writer: usize, weight: Totals, now: Instant) -> MeterDecision {
        if writer == OBSERVER {
            return MeterDecision::Pass;
        }
        self.counters.add(writer, weight, now);
        let in_packets = self.flags.contains(MeterFlags::PKTPS);
        let mut worst: Option<&MeterBand> = None;
        for band in &self.bands {
            let exceeded = !band.takes(weight, in_packets, now);
            if exceeded && worst.is_none_or(|worst| worst.given.rate < band.given.rate) {
                worst = Some(band);
            }
        }
        let Some(band) = worst else {
            return MeterDecision::Pass;
        };
        band.counters.add(writer, weight, now);
        match band.given.kind {
            BandKind::Drop => MeterDecision::Drop,
            BandKind::DscpRemark(level) => MeterDecision::Remark(level),
        }
    }

    /// True if the meter may remark a packet.
    pub(crate) fn remarks(&self) -> bool {
        let mut kinds = self.bands.iter().map(|band| band.given.kind);
        kinds.any(|kind| matches!(kind, BandKind::DscpRemark(_)))
    }

    /// Returns the configuration.
    pub(crate) fn config(&self) -> MeterConfig {
        MeterConfig {
            flags: self.flags,
            meter: self.id,
            bands: self.bands.iter().map(|band| band.given).collect(),
        }
    }

    /// Returns the statistics.
    pub(crate) fn statistics(&self, flows: u32, now: Instant) -> MeterStats {
        let totals = self.counters.totals();
        let bands = self.bands.iter().map(|band| {
            let totals = band.counters.totals();
            BandStats {
                packets: totals.packets,
                bytes: totals.bytes,
            }
        });
        MeterStats {
            meter: self.id,
            flows,
            packets: totals.packets,
            bytes: totals.bytes,
            duration: now - self.created,
            bands: bands.collect(),
        }
    }
}

impl MeterBand {
    fn new(given: flow::Band, flags: MeterFlags, allocator: &mut CounterAllocator) -> Self {
        // The burst has the unit of the rate, without "per second".
        let burst = u128::from(given.burst) * u128::from(TICKS_PER_SEC) / u128::from(given.rate);
        let burst = u64::try_from(burst).unwrap_or(u64::MAX);
        Self {
            given,
            burst: if flags.contains(MeterFlags::BURST) {
                burst.max(1)
            } else {
                usual_burst(given.rate, flags)
            },
            full_at: AtomicU64::new(0),
            counters: allocator.allocate(),
        }
    }

    /// Takes the packet's tokens, if the bucket has them.
    fn takes(&self, weight: Totals, in_packets: bool, now: Instant) -> bool {
        let rate = u64::from(self.given.rate);
        let cost = if in_packets {
            weight.packets.saturating_mul(TICKS_PER_SEC) / rate
        } else {
            // The rate is in kilobits per second.
            (weight.bytes * 8).saturating_mul(TICKS_PER_SEC / 1000) / rate
        };
        let now = now.as_nanos().saturating_mul(TICKS_PER_NANO);
        let room = self.burst - cost.min(self.burst);
        let taken = self
            .full_at
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |full_at| {
                let full_at = full_at.max(now);
                (full_at - now <= room).then(|| full_at.saturating_add(cost))
            });
        taken.is_ok()
    }
}

/// Returns the burst of a band without an explicit one, in ticks.
fn usual_burst(rate: u32, flags: MeterFlags) -> u64 {
    if flags.contains(MeterFlags::PKTPS) {
        let packets = USUAL_BURST_PACKETS * TICKS_PER_SEC / u64::from(rate);
        packets.clamp(USUAL_BURST, TICKS_PER_SEC)
    } else {
        USUAL_BURST
    }
}

/// Returns the code point of the same class with the drop precedence raised by `levels`, or to the
/// maximum; `None` for a code point without a drop precedence. The classes of assured forwarding
/// are four, with three precedences each (RFC 2597, 6).
#[must_use]
pub fn raise_drop_precedence(dscp: u8, levels: u8) -> Option<u8> {
    let (class, precedence) = (dscp >> 3, dscp >> 1 & 3);
    let assured = (1..=4).contains(&class) && precedence != 0 && dscp & 1 == 0;
    let higher = precedence.saturating_add(levels).min(3);
    assured.then_some(class << 3 | higher << 1)
}

#[cfg(test)]
mod tests;
