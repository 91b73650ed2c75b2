//! Which options of tunnels are known by which fields (`ovs-fields(7)`, "Tunnel Metadata").
//!
//! What a port of a tunnel makes of them is not known here.

use base::{GroupId, TableId};
use flow::{
    Action, Extension, Field, LearnSpec, Match, Refusal, TlvCommand, TlvMapping, TlvTable,
    TlvTableMod, Wide,
};
use imbl::OrdMap;

use crate::check::extension::touches;
use crate::instructions::SharedInstructions;
use crate::limits::{TLV_FIELDS, TLV_LENGTH_MAX, TLV_SPACE_MAX};
use crate::match_facts::MatchFacts;
use crate::pipeline::Pipeline;

/// The mappings, by the number of the field.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlvMap {
    mappings: OrdMap<u16, TlvMapping>,
}

impl TlvMap {
    /// These and one more.
    fn add(&mut self, mapping: TlvMapping) -> Result<(), Refusal> {
        check(&mapping)?;
        if self.mappings.contains_key(&mapping.index) {
            return Err(Refusal::TlvAlreadyMapped);
        }
        let option = |one: &TlvMapping| (one.class, one.kind);
        if self
            .mappings
            .values()
            .any(|known| option(known) == option(&mapping))
        {
            return Err(Refusal::TlvDuplicate);
        }
        self.mappings.insert(mapping.index, mapping);
        if self.space() > TLV_SPACE_MAX {
            return Err(Refusal::TlvTableFull);
        }
        Ok(())
    }

    /// The bits that the option which is bound to `field` has; none if none is.
    pub(crate) fn room(&self, field: Field) -> Option<Wide> {
        let number = u16::try_from(field.option()?).ok()?;
        let mapping = self.mappings.get(&number)?;
        Some(Wide::ones(8 * usize::from(mapping.length)))
    }

    /// Judges a rule's match and deed: each tunnel option must be mapped, and have room
    /// for what is asked of it.
    pub(crate) fn check_rule(
        &self,
        matching: &Match,
        asked: MatchFacts,
        deed: &SharedInstructions,
    ) -> Result<(), Refusal> {
        if asked.has_options() {
            for term in matching.options() {
                let room = self.room(term.field).ok_or(Refusal::TlvUnmapped)?;
                if !(term.value & !room).is_zero() {
                    return Err(Refusal::MatchBadValue);
                }
            }
        }
        if deed.facts().has_options {
            self.check_actions(deed.actions())?;
        }
        Ok(())
    }

    /// Judges the tunnel options that actions are about.
    pub(crate) fn check_actions<'a>(
        &self,
        mut actions: impl Iterator<Item = &'a Action>,
    ) -> Result<(), Refusal> {
        let mut mapped = |field: Field| field.option().is_none() || self.room(field).is_some();
        let all = actions.all(|action| all_fields(action, &mut mapped));
        all.then_some(()).ok_or(Refusal::TlvUnmapped)
    }

    /// All mappings.
    pub(crate) fn mappings(&self) -> impl Iterator<Item = &TlvMapping> {
        self.mappings.values()
    }

    /// How many bytes all values have together.
    fn space(&self) -> u32 {
        let lengths = self.mappings.values();
        lengths.map(|mapping| u32::from(mapping.length)).sum()
    }
}

/// What a mapping may say, whatever others there are.
fn check(mapping: &TlvMapping) -> Result<(), Refusal> {
    if !mapping.length.is_multiple_of(4) || mapping.length > TLV_LENGTH_MAX {
        return Err(Refusal::TlvBadLength);
    }
    if mapping.index >= TLV_FIELDS {
        return Err(Refusal::TlvBadField);
    }
    Ok(())
}

/// Whether all fields that an action reads or writes are such.
pub(crate) fn all_fields(action: &Action, such: &mut dyn FnMut(Field) -> bool) -> bool {
    match action {
        Action::SetField { field, .. } => such(*field),
        Action::Extended(Extension::Clone(inside)) => {
            inside.iter().all(|action| all_fields(action, such))
        }
        Action::Extended(extension) => {
            if let Extension::Learn(learn) = extension {
                let mut targets = learn.specs.iter().filter_map(|spec| match spec {
                    LearnSpec::Match { to, .. } | LearnSpec::Load { to, .. } => Some(to.field()),
                    LearnSpec::Output(_) => None,
                });
                if !targets.all(&mut *such) {
                    return false;
                }
            }
            touches(extension).into_iter().all(such)
        }
        _ => true,
    }
}

impl Pipeline {
    /// Whether a rule or a bucket is about a tunnel option. All are looked at: options are
    /// taken away by hand.
    fn uses_option(&self, index: u16) -> bool {
        let mut another = |field: Field| field.option() != Some(index.into());
        let ids = self.table_ids(TableId::ALL).into_iter();
        let mut rules = ids.flat_map(|id| self.rules(id));
        let by_rules = rules.any(|rule| {
            let mut fields = rule.matching().options().map(|term| term.field);
            let mut actions = rule.instructions.actions();
            !fields.all(&mut another) || !actions.all(|action| all_fields(action, &mut another))
        });
        let mut buckets = self
            .group_descs(GroupId::ALL)
            .flat_map(|group| group.buckets);
        by_rules
            || buckets.any(|bucket| {
                let mut actions = bucket.actions.iter();
                !actions.all(|action| all_fields(action, &mut another))
            })
    }

    /// Changes the map of tunnel options: does all of `change` or, with a refusal, none of it.
    /// What is to be taken away and is not there is no fault.
    ///
    /// # Errors
    /// The option or the field has its mapping, there is no such field, the value cannot be
    /// so long, all together have no room, or a rule or a group uses what is to be taken away.
    pub fn tlv_table_mod(&mut self, change: &TlvTableMod) -> Result<(), Refusal> {
        change.mappings.iter().try_for_each(check)?;
        let mut options = self.options.clone();
        let going: Vec<u16> = match change.command {
            TlvCommand::Add => Vec::new(),
            TlvCommand::Delete => change
                .mappings
                .iter()
                .map(|mapping| mapping.index)
                .collect(),
            TlvCommand::Clear => options.mappings.keys().copied().collect(),
        };
        if going.into_iter().any(|index| self.uses_option(index)) {
            return Err(Refusal::TlvInUse);
        }
        match change.command {
            TlvCommand::Add => {
                for mapping in &change.mappings {
                    options.add(*mapping)?;
                }
            }
            TlvCommand::Delete => {
                for mapping in &change.mappings {
                    options.mappings.remove(&mapping.index);
                }
            }
            TlvCommand::Clear => options = TlvMap::default(),
        }
        self.options = options;
        Ok(())
    }

    /// The map of tunnel options.
    #[must_use]
    pub fn tlv_table(&self) -> TlvTable {
        TlvTable {
            space_max: TLV_SPACE_MAX,
            fields_max: TLV_FIELDS,
            mappings: self.options.mappings.values().copied().collect(),
        }
    }
}
