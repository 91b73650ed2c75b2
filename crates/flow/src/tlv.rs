//! Which options of tunnels are known by which field: a map that a controller makes
//! (`ovs-fields(7)`, "Tunnel Metadata"; `nicira-ext.h` of Open vSwitch 3.1, NXT_TLV_TABLE_*).
//!
//! Not here: whether a map can be had. Its limits are the pipeline's.

/// An option of a tunnel, and the field that holds its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlvMapping {
    /// Whose option it is.
    pub class: u16,
    /// Which of those.
    pub kind: u8,
    /// Bytes of the value.
    pub length: u8,
    /// The number of the field: 5 for `tun_metadata5`.
    pub index: u16,
}

/// What is to become of mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlvCommand {
    /// They are made.
    Add,
    /// They are taken away.
    Delete,
    /// All that there are are taken away.
    Clear,
}

/// A change of the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlvTableMod {
    /// What is to be done.
    pub command: TlvCommand,
    /// With which mappings; those to be taken away are known by their field.
    pub mappings: Vec<TlvMapping>,
}

/// The map, and how much of it there can be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlvTable {
    /// How many bytes all values can have together.
    pub space_max: u32,
    /// How many fields there are.
    pub fields_max: u16,
    /// The mappings, by their fields.
    pub mappings: Vec<TlvMapping>,
}
