//! Changing the meter table (OF 1.3.5, 6.6 and 7.3.4.4).
//!
//! Beside the meters of rules there are two that no rule names: the switch submits
//! to `CONTROLLER` each frame that goes to the controllers, and to `SLOWPATH` what
//! the fast path cannot do by itself, which is nothing: there every frame takes the
//! same path. Either drops, or does not: there is no frame to remark that would go on.

use std::sync::Arc;

use base::{Instant, MeterId};
use flow::field::Depth;
use flow::{
    Action, BandKind, BandKinds, Extension, FlowRemovedReason, MeterConfig, MeterFeatures,
    MeterFlags, MeterMod, MeterModCommand, MeterStats, Refusal,
};
use imbl::OrdMap;

use crate::flow_mod::Changes;
use crate::limits::BANDS_MAX;
use crate::meter::Meter;
use crate::pipeline::Pipeline;
use crate::references::References;
use crate::rule::Rule;

/// The meters.
#[derive(Clone, Debug, Default)]
pub(crate) struct MeterTable {
    meters: OrdMap<MeterId, Arc<Meter>>,
    /// How many of them may change a frame.
    remarking: usize,
    users: References<MeterId>,
}

impl MeterTable {
    /// A meter, if there is one of this number.
    #[inline]
    pub(crate) fn find(&self, meter: MeterId) -> Option<&Arc<Meter>> {
        self.meters.get(&meter)
    }

    /// How deep a frame must be read for the meters.
    pub(crate) const fn depth(&self) -> Depth {
        match self.remarking {
            0 => Depth::Link,
            _ => Depth::Network,
        }
    }

    /// Takes note of a rule.
    pub(crate) fn rule_came(&mut self, rule: &Arc<Rule>) {
        let named = rule.instructions.facts().meters.iter().copied();
        self.users.add(rule, named);
    }

    /// Takes note that a rule is gone.
    pub(crate) fn rule_went(&mut self, rule: &Rule) {
        let named = rule.instructions.facts().meters.iter().copied();
        self.users.remove(rule, named);
    }

    fn put(&mut self, id: MeterId, meter: Meter) {
        self.take(id);
        self.remarking += usize::from(meter.remarks());
        self.meters.insert(id, Arc::new(meter));
    }

    fn take(&mut self, id: MeterId) {
        if let Some(old) = self.meters.remove(&id) {
            self.remarking -= usize::from(old.remarks());
        }
    }

    /// One meter, or with [`MeterId::ALL`] all.
    fn asked(&self, meter: MeterId) -> Result<Vec<(MeterId, &Arc<Meter>)>, Refusal> {
        if meter == MeterId::ALL {
            return Ok(self.meters.iter().map(|(id, meter)| (*id, meter)).collect());
        }
        let found = self.find(meter).ok_or(Refusal::MeterModUnknownMeter)?;
        Ok(vec![(meter, found)])
    }
}

/// The meters that actions name, those within others among them.
pub(crate) fn meters_of<'a>(actions: impl IntoIterator<Item = &'a Action>) -> Vec<MeterId> {
    let mut named = Vec::new();
    for action in actions {
        collect_meters(action, &mut named);
    }
    named
}

fn collect_meters(action: &Action, named: &mut Vec<MeterId>) {
    match action {
        Action::Meter(meter) => named.push(*meter),
        Action::Extended(Extension::Clone(inside)) => {
            inside
                .iter()
                .for_each(|action| collect_meters(action, named));
        }
        _ => {}
    }
}

impl Pipeline {
    /// Does all of `command` or, with a refusal, none of it.
    ///
    /// # Errors
    /// The specification's reasons (OF 1.3.5, 7.4.4.13).
    pub fn meter_mod(&mut self, command: &MeterMod, now: Instant) -> Result<Changes, Refusal> {
        match command.command {
            MeterModCommand::Add => self.put_meter(command, true, now)?,
            MeterModCommand::Modify => self.put_meter(command, false, now)?,
            MeterModCommand::Delete => return Ok(self.delete_meter(command.meter, now)),
        }
        Ok(Changes::default())
    }

    fn put_meter(&mut self, command: &MeterMod, adds: bool, now: Instant) -> Result<(), Refusal> {
        let id = command.meter;
        if !id.is_ordinary() && !id.is_virtual() {
            return Err(Refusal::MeterModInvalidMeter);
        }
        let room = self.limits().meters;
        let table = self.meters();
        let old = table.find(id).cloned();
        match (&old, adds) {
            (Some(_), true) => return Err(Refusal::MeterModExists),
            (None, false) => return Err(Refusal::MeterModUnknownMeter),
            (None, true) if table.meters.len() >= room => {
                return Err(Refusal::MeterModOutOfMeters);
            }
            (None, true) | (Some(_), false) => {}
        }
        check_bands(command)?;
        let meter = Meter::new(command, old.as_deref(), self.allocator(), now);
        self.meters_mut().put(id, meter);
        Ok(())
    }

    fn delete_meter(&mut self, meter: MeterId, now: Instant) -> Changes {
        let mut changes = Changes::default();
        let table = self.meters_mut();
        let gone: Vec<_> = match meter {
            MeterId::ALL => table.meters.keys().copied().collect(),
            one => table.find(one).map(|_| one).into_iter().collect(),
        };
        for id in gone {
            let users = self.meters().users.of(id);
            let reason = FlowRemovedReason::MeterDelete;
            for rule in users {
                self.take(&rule, Some(reason), now, &mut changes);
            }
            self.meters_mut().take(id);
        }
        self.delete_orphaned(now, &mut changes);
        changes
    }

    /// Whether these meters are there, and no virtual ones. It is Open vSwitch's
    /// choice of words where the specification has none.
    pub(crate) fn check_meters(
        &self,
        meters: impl IntoIterator<Item = MeterId>,
    ) -> Result<(), Refusal> {
        let is_there = |id: MeterId| id.is_ordinary() && self.meters().find(id).is_some();
        let all = meters.into_iter().all(is_there);
        all.then_some(()).ok_or(Refusal::MeterModInvalidMeter)
    }

    /// The meters that there are.
    pub fn meter_ids(&self) -> impl Iterator<Item = MeterId> + '_ {
        self.meters().meters.keys().copied()
    }

    /// The counts of a meter, or with [`MeterId::ALL`] of all.
    ///
    /// # Errors
    /// There is no such meter.
    pub fn meter_stats(&self, meter: MeterId, now: Instant) -> Result<Vec<MeterStats>, Refusal> {
        let table = self.meters();
        let asked = table.asked(meter)?.into_iter();
        Ok(asked
            .map(|(id, meter)| meter.statistics(table.users.count(id), now))
            .collect())
    }

    /// What a meter is, or with [`MeterId::ALL`] what all are.
    ///
    /// # Errors
    /// There is no such meter.
    pub fn meter_configs(&self, meter: MeterId) -> Result<Vec<MeterConfig>, Refusal> {
        let asked = self.meters().asked(meter)?.into_iter();
        Ok(asked.map(|(_, meter)| meter.config()).collect())
    }

    /// What the meter table can hold.
    #[must_use]
    pub fn meter_features(&self) -> MeterFeatures {
        MeterFeatures {
            meters_max: u32::try_from(self.limits().meters).unwrap_or(u32::MAX),
            kinds: BandKinds::DROP.with(BandKinds::DSCP_REMARK),
            flags: MeterFlags::ALL,
            bands_max: BANDS_MAX,
            colours_max: 0,
        }
    }
}

/// Judges a meter's flags and bands.
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
