//! A meter: bands, each a rate that frames may not exceed for long (OF 1.3.5, 5.7).
//!
//! A band is a bucket of tokens, kept as a single number: the time at which the
//! bucket will be full again (the virtual scheduling form of the generic cell rate
//! algorithm, ITU-T I.371, annex A). A frame that finds its tokens moves that time on
//! by what it costs at the band's rate; one that does not exceeds the band and
//! costs nothing. All workers share the number and change it by
//! compare-and-exchange: nobody waits for anybody, and the rate holds for all of
//! them together.
//!
//! Every frame is submitted to every band, and of the bands that it exceeds the
//! one with the highest rate acts. A frame that costs more than a bucket holds passes
//! whole where the bucket is full, and those behind it pay for it: so a frame that
//! stands for many segments passes a meter whose burst is a few of them.
//!
//! All counts are kept whether `OFPMF_STATS` asks for them or not: they cost no
//! more than to ask.

use std::sync::atomic::{AtomicU64, Ordering};

use base::{Instant, MeterId};
use flow::{BandKind, BandStats, MeterConfig, MeterFlags, MeterMod, MeterStats};

use crate::counters::{CounterAllocator, Counters, OBSERVER, Totals};

/// Ticks of a nanosecond: fine enough that a frame's cost at a million frames a
/// second is not rounded by more than a ten-thousandth. 64 bits of them are 36 years.
const TICKS_PER_NANO: u64 = 16;
const TICKS_PER_SEC: u64 = 1_000_000_000 * TICKS_PER_NANO;

/// How long frames may come at any rate where no burst is given: a fortieth of a
/// second, so that what passes in any second is within three hundredths of the rate,
/// and a sender or a worker that pauses for no longer loses nothing by it. The
/// specification leaves it to the switch (OF 1.3.5, 7.3.4.4.1); Open vSwitch gives a
/// whole second's frames, so that twice the rate passes in the first.
const USUAL_BURST: u64 = TICKS_PER_SEC / 40;

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
    /// Ticks that an empty bucket takes to fill.
    burst: u64,
    /// When the bucket is full, in ticks since the start; in the past if it is.
    full_at: AtomicU64,
    /// The frames it acted on.
    counters: Counters,
}

/// What a meter says of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterDecision {
    /// It passes.
    Pass,
    /// It is dropped.
    Drop,
    /// Its drop precedence is raised by so many levels.
    Remark(u8),
}

impl Meter {
    /// The meter that `command` describes. One whose place it takes hands on its
    /// age and its counters, but not its bands' (OF 1.3.5, 6.6).
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

    /// Submits a frame, counted as `writer`. One who only looks on takes nothing from
    /// the frames to come, and so always passes.
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

    /// Whether it may change a frame.
    pub(crate) fn remarks(&self) -> bool {
        let mut kinds = self.bands.iter().map(|band| band.given.kind);
        kinds.any(|kind| matches!(kind, BandKind::DscpRemark(_)))
    }

    /// The meter as it is described.
    pub(crate) fn config(&self) -> MeterConfig {
        MeterConfig {
            flags: self.flags,
            meter: self.id,
            bands: self.bands.iter().map(|band| band.given).collect(),
        }
    }

    /// The meter as statistics tell it.
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
        // A burst is given in what the rate is a number of in a second.
        let burst = u128::from(given.burst) * u128::from(TICKS_PER_SEC) / u128::from(given.rate);
        let burst = u64::try_from(burst).unwrap_or(u64::MAX);
        Self {
            given,
            burst: if flags.contains(MeterFlags::BURST) {
                burst.max(1)
            } else {
                USUAL_BURST
            },
            full_at: AtomicU64::new(0),
            counters: allocator.allocate(),
        }
    }

    /// Takes the frame's tokens, if they are there.
    fn takes(&self, weight: Totals, in_packets: bool, now: Instant) -> bool {
        let rate = u64::from(self.given.rate);
        let cost = if in_packets {
            weight.packets.saturating_mul(TICKS_PER_SEC) / rate
        } else {
            // Kilobits: eight thousandths of a byte's.
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

/// The code point of the same class with the drop precedence raised by `levels`, or
/// as far as it goes; none for a code point that has no drop precedence. These are
/// the classes of assured forwarding, four, of three precedences each (RFC 2597, 6).
#[must_use]
pub fn raise_drop_precedence(dscp: u8, levels: u8) -> Option<u8> {
    let (class, precedence) = (dscp >> 3, dscp >> 1 & 3);
    let assured = (1..=4).contains(&class) && precedence != 0 && dscp & 1 == 0;
    let higher = precedence.saturating_add(levels).min(3);
    assured.then_some(class << 3 | higher << 1)
}

#[cfg(test)]
mod tests;
