//! The dialect of a connection: its version and the Nicira extensions that its controller has
//! enabled.
//!
//! Most settings exist in OpenFlow 1.0 only; `ovs-ofctl` enables them before its first flow-mod.
//! The packet-in format exists in every version.

use crate::version::Version;

/// The negotiated format of a connection's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The negotiated version.
    pub version: Version,
    /// Flow-removed messages of OpenFlow 1.0 have Nicira's format with an NXM match
    /// (`NXT_SET_FLOW_FORMAT`).
    pub nxm: bool,
    /// The upper byte of an OpenFlow 1.0 flow-mod's command is a table id
    /// (`NXT_FLOW_MOD_TABLE_ID`).
    pub table_ids: bool,
    /// The format of packet-in messages (`NXT_SET_PACKET_IN_FORMAT`), in any version.
    pub packet_in: PacketInFormat,
    /// `debug_slow` and `debug_recirc` are decoded. Open vSwitch refuses them, except for tests
    /// (ovs-vswitchd(8), `--enable-dummy`).
    pub debug_actions: bool,
}

/// The format of packet-in messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketInFormat {
    /// The format of the version's specification.
    #[default]
    Standard,
    /// Nicira's format with an NXM match and the rule's cookie (`NXT_PACKET_IN`).
    Nicira,
    /// A list of properties, which can include a continuation (`NXT_PACKET_IN2`).
    Nicira2,
}

impl Dialect {
    /// The dialect of a version before the controller enables any extension.
    #[must_use]
    pub const fn new(version: Version) -> Self {
        Self {
            version,
            nxm: false,
            table_ids: false,
            packet_in: PacketInFormat::Standard,
            debug_actions: true,
        }
    }

    /// Returns true if counters are OXS fields.
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

/// The format of flow statistics and flow-removed messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowFormat {
    /// The format of the version's specification.
    Standard,
    /// Nicira's extension of OpenFlow 1.0, with NXM matches and cookies.
    Nicira,
    /// Only the match and the counters of each rule: `OFPMP_FLOW_STATS` of OpenFlow 1.5.
    Counts,
}

/// A setting of the connection that the controller changes. The channel applies it without a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NiciraSetting {
    /// The format of flow-removed messages.
    FlowFormat(FlowFormat),
    /// Enables the table id in flow-mods.
    TableIds(bool),
    /// The format of packet-in messages.
    PacketInFormat(PacketInFormat),
}
