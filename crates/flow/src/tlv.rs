//! TLV map: the assignment of Geneve options to `tun_metadata` fields by a controller
//! (`ovs-fields(7)`, "Tunnel Metadata"; `nicira-ext.h` of Open vSwitch 3.1, NXT_TLV_TABLE_*).
//!
//! Crate `pipeline` enforces its limits.

/// Tunnel option and the field that holds its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlvMapping {
    /// Option class.
    pub class: u16,
    /// Option type within the class.
    pub kind: u8,
    /// Length of the value in bytes.
    pub length: u8,
    /// The number of the field: 5 for `tun_metadata5`.
    pub index: u16,
}

/// Command for the TLV map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlvCommand {
    /// Add mappings.
    Add,
    /// Delete mappings.
    Delete,
    /// Delete all mappings.
    Clear,
}

/// Change of the TLV map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlvTableMod {
    /// Command.
    pub command: TlvCommand,
    /// Mappings; those to delete are identified by their field.
    pub mappings: Vec<TlvMapping>,
}

/// TLV map with its limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlvTable {
    /// Largest total length of the values, in bytes.
    pub space_max: u32,
    /// Number of fields.
    pub fields_max: u16,
    /// Mappings, in the order of their fields.
    pub mappings: Vec<TlvMapping>,
}
