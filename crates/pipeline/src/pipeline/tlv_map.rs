//! The TLV map: the assignment of Geneve options to `tun_metadata` fields (`ovs-fields(7)`, "Tunnel
//! Metadata"). Tunnel ports encode and decode the options; this module only checks their use.

use base::{GroupId, TableId};
use flow::{
    Action, Field, Match, Refusal, Subfield, TlvCommand, TlvMapping, TlvTable, TlvTableMod, Wide,
};
use imbl::OrdMap;

use super::Pipeline;
use crate::instructions::SharedInstructions;
use crate::instructions::action_facts::{all_fields, all_subfields};
use crate::instructions::match_facts::MatchFacts;
use crate::limits::{TLV_FIELDS, TLV_LENGTH_MAX, TLV_SPACE_MAX};

/// The mappings, by the number of the field.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlvMap {
    mappings: OrdMap<u16, TlvMapping>,
}

impl TlvMap {
    fn add(&mut self, mapping: TlvMapping) -> Result<(), Refusal> {
        check(&mapping)?;
        if self.mappings.contains_key(&mapping.index) {
            return Err(Refusal::TlvAlreadyMapped);
        }
        let option = |mapping: &TlvMapping| (mapping.class, mapping.kind);
        let mut others = self.mappings.values();
        if others.any(|other| option(other) == option(&mapping)) {
            return Err(Refusal::TlvDuplicate);
        }
        self.mappings.insert(mapping.index, mapping);
        if self.bytes() > TLV_SPACE_MAX {
            return Err(Refusal::TlvTableFull);
        }
        Ok(())
    }

    /// Returns the mask of the bits that the option of `field` has, if it is mapped.
    fn value_mask(&self, field: Field) -> Option<Wide> {
        let number = u16::try_from(field.option()?).ok()?;
        let mapping = self.mappings.get(&number)?;
        Some(Wide::ones(8 * usize::from(mapping.length)))
    }

    /// Returns the length of the option of `field` in bytes; zero if it is not mapped.
    pub(super) fn length_of(&self, field: Field) -> u8 {
        let number = field.option().and_then(|number| u16::try_from(number).ok());
        let mapping = number.and_then(|number| self.mappings.get(&number));
        mapping.map_or(0, |mapping| mapping.length)
    }

    /// Checks that each tunnel option of a rule is mapped, and that the values of its match fit.
    pub(crate) fn check_rule(
        &self,
        matching: &Match,
        facts: MatchFacts,
        instructions: &SharedInstructions,
    ) -> Result<(), Refusal> {
        if facts.has_options() {
            for term in matching.options() {
                let mask = self.value_mask(term.field).ok_or(Refusal::TlvUnmapped)?;
                if !(term.value & !mask).is_zero() {
                    return Err(Refusal::MatchBadValue);
                }
            }
        }
        if instructions.facts().has_options {
            self.check_actions(instructions.actions())?;
        }
        Ok(())
    }

    /// Checks that each tunnel option of these actions is mapped, and that no part of one is beyond
    /// its length.
    pub(crate) fn check_actions<'a>(
        &self,
        actions: impl Iterator<Item = &'a Action>,
    ) -> Result<(), Refusal> {
        let mut is_mapped =
            |field: Field| field.option().is_none() || self.value_mask(field).is_some();
        let mut is_within = |part: Subfield| {
            let mask = self.value_mask(part.field());
            !part.is_tunnel_option()
                || mask.is_some_and(|mask| (part.wide_mask() & !mask).is_zero())
        };
        for action in actions {
            if !all_fields(action, &mut is_mapped) {
                return Err(Refusal::TlvUnmapped);
            }
            if !all_subfields(action, &mut is_within) {
                return Err(Refusal::ActionBadSetLength);
            }
        }
        Ok(())
    }

    /// Returns the map after `change`. `is_used` reports if a rule or group uses a field.
    fn changed(
        &self,
        change: &TlvTableMod,
        is_used: impl Fn(u16) -> bool,
    ) -> Result<Self, Refusal> {
        change.mappings.iter().try_for_each(check)?;
        let removed: Vec<u16> = match change.command {
            TlvCommand::Add => Vec::new(),
            TlvCommand::Delete => change
                .mappings
                .iter()
                .map(|mapping| mapping.index)
                .collect(),
            TlvCommand::Clear => self.mappings.keys().copied().collect(),
        };
        if removed.iter().any(|index| is_used(*index)) {
            return Err(Refusal::TlvInUse);
        }
        let mut map = self.clone();
        removed.iter().for_each(|index| {
            map.mappings.remove(index);
        });
        if change.command == TlvCommand::Add {
            for mapping in &change.mappings {
                map.add(*mapping)?;
            }
        }
        Ok(map)
    }

    /// Returns the length of all values together, in bytes.
    fn bytes(&self) -> u32 {
        let lengths = self.mappings.values();
        lengths.map(|mapping| u32::from(mapping.length)).sum()
    }
}

/// Checks a mapping by itself.
fn check(mapping: &TlvMapping) -> Result<(), Refusal> {
    if !mapping.length.is_multiple_of(4) || mapping.length > TLV_LENGTH_MAX {
        return Err(Refusal::TlvBadLength);
    }
    if mapping.index >= TLV_FIELDS {
        return Err(Refusal::TlvBadField);
    }
    Ok(())
}

impl Pipeline {
    /// Changes the TLV map completely or, with a refusal, not at all. The removal of a mapping that
    /// does not exist is no error.
    ///
    /// # Errors
    /// The option or field is mapped already, the field does not exist, the value is too long, all
    /// values together are too long, or a rule or group uses a removed mapping.
    pub fn tlv_table_mod(&mut self, change: &TlvTableMod) -> Result<(), Refusal> {
        self.tlv_map = self
            .tlv_map
            .changed(change, |index| self.uses_option(index))?;
        Ok(())
    }

    /// Returns the TLV map.
    #[must_use]
    pub fn tlv_table(&self) -> TlvTable {
        TlvTable {
            space_max: TLV_SPACE_MAX,
            fields_max: TLV_FIELDS,
            mappings: self.tlv_map.mappings.values().copied().collect(),
        }
    }

    /// Returns the mappings of tunnel options.
    pub fn tunnel_options(&self) -> impl Iterator<Item = &TlvMapping> {
        self.tlv_map.mappings.values()
    }

    /// Returns the mask of the bits that the tunnel option of `field` has, if it is mapped.
    pub(crate) fn tunnel_option_mask(&self, field: Field) -> Option<Wide> {
        self.tlv_map.value_mask(field)
    }

    /// True if a rule or bucket uses a tunnel option. All are examined: mappings are removed by hand.
    fn uses_option(&self, index: u16) -> bool {
        let mut is_other = |field: Field| field.option() != Some(index.into());
        let mut rules = self.rules.rules(TableId::ALL);
        let by_rules = rules.any(|rule| {
            let mut fields = rule.matching().options().map(|term| term.field);
            let mut actions = rule.instructions.actions();
            !fields.all(&mut is_other) || !actions.all(|action| all_fields(action, &mut is_other))
        });
        let mut buckets = self
            .group_descs(GroupId::ALL)
            .flat_map(|group| group.buckets);
        by_rules
            || buckets.any(|bucket| {
                let mut actions = bucket.actions.iter();
                !actions.all(|action| all_fields(action, &mut is_other))
            })
    }
}
