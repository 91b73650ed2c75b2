//! How one connection is to be understood: its version, and the Nicira
//! extensions that its controller has turned on.
//!
//! Most switches to turn are of OpenFlow 1.0; `ovs-ofctl` does so before its first
//! flow-mod. The form of packet-in messages is of every version.

use crate::version::Version;

/// What both ends of a connection have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The negotiated version.
    pub version: Version,
    /// Flow-removed messages of OpenFlow 1.0 are Nicira's, with an NXM match
    /// (`NXT_SET_FLOW_FORMAT`).
    pub nxm: bool,
    /// The upper byte of an OpenFlow 1.0 flow-mod's command is a table
    /// (`NXT_FLOW_MOD_TABLE_ID`).
    pub table_ids: bool,
    /// The form of packet-in messages (`NXT_SET_PACKET_IN_FORMAT`), of any version.
    pub packet_in: PacketInFormat,
}

/// The form of packet-in messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketInFormat {
    /// As the version's specification has it.
    #[default]
    Standard,
    /// With an NXM match and the rule's cookie (`NXT_PACKET_IN`).
    Nicira,
    /// Made of properties, which tell also how to go on (`NXT_PACKET_IN2`).
    Nicira2,
}

impl Dialect {
    /// A version as it is when nobody has turned anything on.
    #[must_use]
    pub const fn new(version: Version) -> Self {
        Self {
            version,
            nxm: false,
            table_ids: false,
            packet_in: PacketInFormat::Standard,
        }
    }

    /// Whether counts are OXS fields.
    pub(crate) const fn uses_oxs(self) -> bool {
        match self.version {
            Version::V10 | Version::V11 | Version::V12 | Version::V13 | Version::V14 => false,
            Version::V15 => true,
        }
    }

    /// The dialect after `change`.
    #[must_use]
    pub const fn after(mut self, change: NiciraSetting) -> Self {
        match change {
            NiciraSetting::FlowFormat(format) => self.nxm = matches!(format, FlowFormat::Nicira),
            NiciraSetting::TableIds(enabled) => self.table_ids = enabled,
            NiciraSetting::PacketInFormat(format) => self.packet_in = format,
        }
        self
    }
}

impl From<Version> for Dialect {
    fn from(version: Version) -> Self {
        Self::new(version)
    }
}

/// Whether something is written as the specification has it or as Nicira does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowFormat {
    /// As the version's specification has it.
    Standard,
    /// As Nicira's extension of OpenFlow 1.0 has it: NXM matches, cookies.
    Nicira,
    /// Only what tells rules apart and what they counted: `OFPMP_FLOW_STATS` of
    /// OpenFlow 1.5.
    Counts,
}

/// A switch that the controller turns. The channel keeps it and nobody answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NiciraSetting {
    /// The form of flow-removed messages.
    FlowFormat(FlowFormat),
    /// Whether flow-mods name their table.
    TableIds(bool),
    /// The form of packet-in messages.
    PacketInFormat(PacketInFormat),
}
