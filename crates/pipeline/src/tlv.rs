//! Which options of tunnels are known by which fields (`ovs-fields(7)`, "Tunnel Metadata").
//!
//! No port is a tunnel's yet: what the fields hold is what rules have written.

use flow::{Refusal, TlvCommand, TlvMapping, TlvTable, TlvTableMod};
use imbl::OrdMap;

use crate::limits::{TLV_FIELDS, TLV_LENGTH_MAX, TLV_SPACE_MAX};
use crate::pipeline::Pipeline;

/// The mappings, by the number of the field.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    mappings: OrdMap<u16, TlvMapping>,
}

impl Options {
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

impl Pipeline {
    /// Changes the map of tunnel options: does all of `change` or, with a refusal, none of it.
    /// What is to be taken away and is not there is no fault.
    ///
    /// # Errors
    /// The option or the field has its mapping, there is no such field, the value cannot be
    /// so long, or all together have no room.
    pub fn tlv_table_mod(&mut self, change: &TlvTableMod) -> Result<(), Refusal> {
        change.mappings.iter().try_for_each(check)?;
        let mut options = self.options.clone();
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
            TlvCommand::Clear => options = Options::default(),
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
