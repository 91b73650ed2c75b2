//! Meter commands and queries of a pipeline.

use base::{Instant, MeterId};
use flow::{
    BandKinds, FlowRemovedReason, MeterConfig, MeterFeatures, MeterFlags, MeterMod,
    MeterModCommand, MeterStats, Refusal,
};

use super::Pipeline;
use crate::counters::Totals;
use crate::limits::BANDS_MAX;
use crate::meters::MeterDecision;
#[cfg(test)]
use crate::meters::MeterTable;
use crate::rules::Changes;

impl Pipeline {
    /// Applies `command` completely or, with a refusal, not at all.
    ///
    /// # Errors
    /// The specification's reasons (OF 1.3.5, 7.4.4.13).
    pub fn meter_mod(&mut self, command: &MeterMod, now: Instant) -> Result<Changes, Refusal> {
        let is_addition = match command.command {
            MeterModCommand::Add => true,
            MeterModCommand::Modify => false,
            MeterModCommand::Delete => {
                let mut changes = Changes::default();
                self.delete_meters(command.meter, now, &mut changes);
                self.delete_orphaned(now, &mut changes);
                return Ok(changes);
            }
        };
        let allocator = &mut self.allocator;
        self.meters
            .put(command, is_addition, self.limits, allocator, now)?;
        Ok(Changes::default())
    }

    /// Deletes meters and the rules that name them.
    pub(super) fn delete_meters(&mut self, meter: MeterId, now: Instant, changes: &mut Changes) {
        let deleted: Vec<_> = match meter {
            MeterId::ALL => self.meters.ids().collect(),
            one => self.meters.find(one).map(|_| one).into_iter().collect(),
        };
        for id in deleted {
            let reason = FlowRemovedReason::MeterDelete;
            for rule in self.meters.rules_of(id) {
                self.remove(&rule, Some(reason), now, changes);
            }
            self.meters.remove(id);
        }
    }

    /// Returns the meter table.
    #[cfg(test)]
    pub(crate) const fn meters(&self) -> &MeterTable {
        &self.meters
    }

    /// Submits a packet to a meter, counted by `writer`. Returns `None` if the meter does not exist.
    #[must_use]
    pub fn submit_to_meter(
        &self,
        id: MeterId,
        writer: usize,
        weight: Totals,
        now: Instant,
    ) -> Option<MeterDecision> {
        let meter = self.meters.find(id)?;
        Some(meter.submit(writer, weight, now))
    }

    /// Returns the ids of all meters.
    pub fn meter_ids(&self) -> impl Iterator<Item = MeterId> + '_ {
        self.meters.ids()
    }

    /// Returns the statistics of a meter, or with [`MeterId::ALL`] of all.
    ///
    /// # Errors
    /// The meter does not exist.
    pub fn meter_stats(&self, meter: MeterId, now: Instant) -> Result<Vec<MeterStats>, Refusal> {
        self.meters.stats(meter, now)
    }

    /// Returns the configuration of a meter, or with [`MeterId::ALL`] of all.
    ///
    /// # Errors
    /// The meter does not exist.
    pub fn meter_configs(&self, meter: MeterId) -> Result<Vec<MeterConfig>, Refusal> {
        self.meters.configs(meter)
    }

    /// Returns the limits and capabilities of the meter table.
    #[must_use]
    pub fn meter_features(&self) -> MeterFeatures {
        MeterFeatures {
            meters_max: u32::try_from(self.limits.meters).unwrap_or(u32::MAX),
            kinds: BandKinds::DROP.with(BandKinds::DSCP_REMARK),
            flags: MeterFlags::ALL,
            bands_max: BANDS_MAX,
            colours_max: 0,
        }
    }
}
