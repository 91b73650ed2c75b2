//! The meter table (OF 1.3.5, 6.6 and 7.3.4.4).
//!
//! Two virtual meters, which rules cannot name, supplement the meters of rules: `CONTROLLER` meters
//! every packet to the controllers, and `SLOWPATH` the packets that the fast path cannot handle,
//! which are none: all packets take the same path. Both drop or pass; a packet-in cannot be remarked.

use std::sync::Arc;

use base::{Instant, MeterId};
use flow::field::Depth;
use flow::{BandKind, MeterConfig, MeterFlags, MeterMod, MeterStats, Refusal};
use imbl::OrdMap;

use super::Meter;
use crate::counters::CounterAllocator;
use crate::limits::{BANDS_MAX, Limits};
use crate::rules::Rule;
use crate::rules::references::References;

/// The meters of a pipeline.
#[derive(Clone, Debug, Default)]
pub(crate) struct MeterTable {
    meters: OrdMap<MeterId, Arc<Meter>>,
    /// Number of meters that may remark a packet.
    remarking: usize,
    /// The rules that name each meter.
    rules: References<MeterId>,
}

impl MeterTable {
    /// Returns the meter with this id.
    #[inline]
    pub(crate) fn find(&self, meter: MeterId) -> Option<&Arc<Meter>> {
        self.meters.get(&meter)
    }

    /// Returns the ids of all meters.
    pub(crate) fn ids(&self) -> impl Iterator<Item = MeterId> + '_ {
        self.meters.keys().copied()
    }

    /// Returns the parse depth that the meters need.
    pub(crate) const fn depth(&self) -> Depth {
        match self.remarking {
            0 => Depth::Link,
            _ => Depth::Network,
        }
    }

    /// Adds the references of a rule.
    pub(crate) fn rule_added(&mut self, rule: &Arc<Rule>) {
        let meters = rule.instructions.facts().meters.iter().copied();
        self.rules.add(rule, meters);
    }

    /// Removes the references of a rule.
    pub(crate) fn rule_removed(&mut self, rule: &Rule) {
        let meters = rule.instructions.facts().meters.iter().copied();
        self.rules.remove(rule, meters);
    }

    /// Returns the rules that name a meter.
    pub(crate) fn rules_of(&self, meter: MeterId) -> Vec<Arc<Rule>> {
        self.rules.of(meter)
    }

    /// Checks that all of these meters exist and none is virtual. The specification has no error for
    /// it; this is Open vSwitch's.
    pub(crate) fn check_all_exist(
        &self,
        meters: impl IntoIterator<Item = MeterId>,
    ) -> Result<(), Refusal> {
        let exists = |id: MeterId| id.is_ordinary() && self.find(id).is_some();
        let all = meters.into_iter().all(exists);
        all.then_some(()).ok_or(Refusal::MeterModInvalidMeter)
    }

    /// Adds a meter, or modifies an existing one.
    pub(crate) fn put(
        &mut self,
        command: &MeterMod,
        is_addition: bool,
        limits: Limits,
        allocator: &mut CounterAllocator,
        now: Instant,
    ) -> Result<(), Refusal> {
        let id = command.meter;
        if !id.is_ordinary() && !id.is_virtual() {
            return Err(Refusal::MeterModInvalidMeter);
        }
        let old = self.find(id).cloned();
        match (&old, is_addition) {
            (Some(_), true) => return Err(Refusal::MeterModExists),
            (None, false) => return Err(Refusal::MeterModUnknownMeter),
            (None, true) if self.meters.len() >= limits.meters => {
                return Err(Refusal::MeterModOutOfMeters);
            }
            (None, true) | (Some(_), false) => {}
        }
        check_bands(command)?;
        let meter = Meter::new(command, old.as_deref(), allocator, now);
        self.remove(id);
        self.remarking += usize::from(meter.remarks());
        self.meters.insert(id, Arc::new(meter));
        Ok(())
    }

    /// Removes a meter.
    pub(crate) fn remove(&mut self, id: MeterId) {
        if let Some(old) = self.meters.remove(&id) {
            self.remarking -= usize::from(old.remarks());
        }
    }

    /// Returns the statistics of a meter, or with [`MeterId::ALL`] of all.
    pub(crate) fn stats(&self, meter: MeterId, now: Instant) -> Result<Vec<MeterStats>, Refusal> {
        let selected = self.selected(meter)?.into_iter();
        Ok(selected
            .map(|(id, meter)| meter.statistics(self.rules.count(id), now))
            .collect())
    }

    /// Returns the configuration of a meter, or with [`MeterId::ALL`] of all.
    pub(crate) fn configs(&self, meter: MeterId) -> Result<Vec<MeterConfig>, Refusal> {
        let selected = self.selected(meter)?.into_iter();
        Ok(selected.map(|(_, meter)| meter.config()).collect())
    }

    /// Returns one meter, or with [`MeterId::ALL`] all.
    fn selected(&self, meter: MeterId) -> Result<Vec<(MeterId, &Arc<Meter>)>, Refusal> {
        if meter == MeterId::ALL {
            return Ok(self.meters.iter().map(|(id, meter)| (*id, meter)).collect());
        }
        let found = self.find(meter).ok_or(Refusal::MeterModUnknownMeter)?;
        Ok(vec![(meter, found)])
    }
}

/// Checks the flags and bands of a meter.
fn check_bands(command: &MeterMod) -> Result<(), Refusal> {
    let flags = command.flags;
    let both = flags.contains(MeterFlags::KBPS) && flags.contains(MeterFlags::PKTPS);
    if both || !MeterFlags::ALL.contains(flags) {
        return Err(Refusal::MeterModBadFlags);
    }
    if command.bands.len() > usize::from(BANDS_MAX) {
        return Err(Refusal::MeterModOutOfBands);
    }
    for band in &command.bands {
        match band.kind {
            BandKind::DscpRemark(_) if command.meter.is_virtual() => {
                return Err(Refusal::MeterModBadBand);
            }
            BandKind::DscpRemark(0) => return Err(Refusal::MeterModBadBandValue),
            BandKind::DscpRemark(_) | BandKind::Drop => {}
        }
        if band.rate == 0 {
            return Err(Refusal::MeterModBadRate);
        }
        if flags.contains(MeterFlags::BURST) && band.burst == 0 {
            return Err(Refusal::MeterModBadBurst);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
