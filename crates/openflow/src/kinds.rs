//! The table of message numbers: the number, minimum length and sender of each message and each
//! multipart type in each version.
//!
//! A new version needs rows here and match arms in the bodies.

use std::ops::RangeInclusive;

use crate::experimenter::{NICIRA, ONF};
use crate::version::Version;

/// The message types, one for each body format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Hello,
    Error,
    EchoRequest,
    EchoReply,
    FeaturesRequest,
    FeaturesReply,
    GetConfigRequest,
    GetConfigReply,
    SetConfig,
    PacketIn,
    FlowRemoved,
    NxFlowRemoved,
    PortStatus,
    PacketOut,
    FlowMod,
    NxFlowMod,
    GroupMod,
    PortMod,
    TableMod,
    MeterMod,
    MultipartRequest,
    MultipartReply,
    BarrierRequest,
    BarrierReply,
    QueueConfigRequest,
    QueueConfigReply,
    RoleRequest,
    RoleReply,
    RoleStatus,
    GetAsyncRequest,
    GetAsyncReply,
    SetAsync,
    FlowFormat,
    TableIds,
    PacketInFormat,
    NxPacketIn,
    NxPacketIn2,
    Resume,
    ControllerId,
    BundleControl,
    BundleAdd,
    MonitorCancel,
    MonitorPaused,
    MonitorResumed,
    TableStatus,
    RequestForward,
    SetAsyncProperties,
    ControllerStatus,
    TlvTableMod,
    TlvTableRequest,
    TlvTableReply,
    FlushZone,
    FlushConnections,
}

/// The multipart types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MultipartKind {
    Description,
    Flow,
    NxFlow,
    Aggregate,
    NxAggregate,
    Table,
    Port,
    Queue,
    Group,
    GroupDesc,
    GroupFeatures,
    Meter,
    MeterConfig,
    MeterFeatures,
    TableFeatures,
    PortDesc,
    TableDesc,
    QueueDesc,
    FlowCounts,
    FlowMonitor,
    BundleFeatures,
    ControllerStatus,
    IpfixBridge,
    IpfixFlow,
}

/// The number of a type and the field that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeNumber {
    /// The specification's number, in the header.
    Standard(u16),
    /// Nicira's subtype, in a vendor (experimenter) message.
    Nicira(u32),
    /// The Open Networking Foundation's subtype, in an experimenter message.
    Onf(u32),
}

impl TypeNumber {
    /// The experimenter id and subtype, unless the number is the specification's.
    pub(crate) const fn experimenter(self) -> Option<(u32, u32)> {
        match self {
            Self::Standard(_) => None,
            Self::Nicira(number) => Some((NICIRA, number)),
            Self::Onf(number) => Some((ONF, number)),
        }
    }

    /// The number of an experimenter's subtype, if the experimenter is known.
    pub(crate) const fn of(experimenter: u32, number: u32) -> Option<Self> {
        match experimenter {
            NICIRA => Some(Self::Nicira(number)),
            ONF => Some(Self::Onf(number)),
            _ => None,
        }
    }
}

/// The ends that may send a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageSender {
    Either,
    Controller,
    Switch,
}

/// A message type in a range of versions.
#[derive(Debug)]
pub(crate) struct MessageKindRow {
    pub(crate) kind: MessageKind,
    pub(crate) versions: RangeInclusive<Version>,
    pub(crate) number: TypeNumber,
    /// The minimum length of the body in bytes, after the header or after the experimenter's
    /// subtype.
    pub(crate) body_min: usize,
    pub(crate) sender: MessageSender,
}

/// A multipart type in a range of versions.
#[derive(Debug)]
pub(crate) struct MultipartKindRow {
    pub(crate) kind: MultipartKind,
    pub(crate) versions: RangeInclusive<Version>,
    pub(crate) number: TypeNumber,
}

#[rustfmt::skip]
const fn row(
    kind: MessageKind, from: Version, to: Version, number: TypeNumber, body_min: usize, sender: MessageSender,
) -> MessageKindRow {
    MessageKindRow { kind, versions: from..=to, number, body_min, sender }
}

#[rustfmt::skip]
const fn multipart(kind: MultipartKind, from: Version, to: Version, number: TypeNumber) -> MultipartKindRow {
    MultipartKindRow { kind, versions: from..=to, number }
}

#[rustfmt::skip]
pub(crate) const MESSAGES: &[MessageKindRow] = {
    use MessageKind::*; use TypeNumber::*; use MessageSender::*; use Version::*;
    &[
    //  kind               from to   number      least sender
    row(Hello,              V10, V15, Standard(0),    0, Either),
    row(Error,              V10, V15, Standard(1),    4, Either),
    row(EchoRequest,        V10, V15, Standard(2),    0, Either),
    row(EchoReply,          V10, V15, Standard(3),    0, Either),
    row(FeaturesRequest,    V10, V15, Standard(5),    0, Controller),
    row(FeaturesReply,      V10, V15, Standard(6),   24, Switch),
    row(GetConfigRequest,   V10, V15, Standard(7),    0, Controller),
    row(GetConfigReply,     V10, V15, Standard(8),    4, Switch),
    row(SetConfig,          V10, V15, Standard(9),    4, Controller),
    row(PacketIn,           V10, V10, Standard(10),  10, Switch),
    row(PacketIn,           V11, V11, Standard(10),  16, Switch),
    row(PacketIn,           V12, V12, Standard(10),  18, Switch),
    row(PacketIn,           V13, V15, Standard(10),  26, Switch),
    row(FlowRemoved,        V10, V10, Standard(11),  80, Switch),
    row(FlowRemoved,        V11, V11, Standard(11), 128, Switch),
    row(FlowRemoved,        V12, V14, Standard(11),  48, Switch),
    row(FlowRemoved,        V15, V15, Standard(11),  24, Switch),
    row(PortStatus,         V10, V10, Standard(12),  56, Switch),
    row(PortStatus,         V11, V13, Standard(12),  72, Switch),
    row(PortStatus,         V14, V15, Standard(12),  48, Switch),
    row(PacketOut,          V10, V10, Standard(13),   8, Controller),
    row(PacketOut,          V11, V15, Standard(13),  16, Controller),
    row(FlowMod,            V10, V10, Standard(14),  64, Controller),
    row(FlowMod,            V11, V11, Standard(14), 128, Controller),
    row(FlowMod,            V12, V15, Standard(14),  48, Controller),
    row(GroupMod,           V11, V14, Standard(15),   8, Controller),
    row(GroupMod,           V15, V15, Standard(15),  16, Controller),
    row(PortMod,            V10, V10, Standard(15),  24, Controller),
    row(PortMod,            V11, V13, Standard(16),  32, Controller),
    row(PortMod,            V14, V15, Standard(16),  24, Controller),
    row(TableMod,           V11, V15, Standard(17),   8, Controller),
    row(MultipartRequest,   V10, V10, Standard(16),   4, Controller),
    row(MultipartRequest,   V11, V15, Standard(18),   8, Controller),
    row(MultipartReply,     V10, V10, Standard(17),   4, Switch),
    row(MultipartReply,     V11, V15, Standard(19),   8, Switch),
    row(BarrierRequest,     V10, V10, Standard(18),   0, Controller),
    row(BarrierRequest,     V11, V15, Standard(20),   0, Controller),
    row(BarrierReply,       V10, V10, Standard(19),   0, Switch),
    row(BarrierReply,       V11, V15, Standard(21),   0, Switch),
    row(QueueConfigRequest, V10, V10, Standard(20),   4, Controller),
    row(QueueConfigRequest, V11, V13, Standard(22),   8, Controller),
    row(QueueConfigReply,   V10, V10, Standard(21),   8, Switch),
    row(QueueConfigReply,   V11, V13, Standard(23),   8, Switch),
    row(RoleRequest,        V12, V15, Standard(24),  16, Controller),
    row(RoleReply,          V12, V15, Standard(25),  16, Switch),
    row(GetAsyncRequest,    V13, V15, Standard(26),   0, Controller),
    row(GetAsyncReply,      V13, V13, Standard(27),  24, Switch),
    row(GetAsyncReply,      V14, V15, Standard(27),   0, Switch),
    row(SetAsync,           V13, V13, Standard(28),  24, Controller),
    row(SetAsync,           V14, V15, Standard(28),   0, Controller),
    row(MeterMod,           V13, V15, Standard(29),   8, Controller),
    row(RoleStatus,         V14, V15, Standard(30),  16, Switch),
    row(RoleStatus,         V13, V13, Onf(1911),     16, Switch),
    row(TableStatus,        V14, V15, Standard(31),  16, Switch),
    row(RequestForward,     V14, V15, Standard(32),   8, Switch),
    row(RequestForward,     V13, V13, Onf(2350),      8, Switch),
    row(RequestForward,     V10, V12, Nicira(132),    8, Switch),
    row(SetAsyncProperties, V10, V13, Nicira(27),     0, Controller),
    row(RoleRequest,        V10, V11, Nicira(10),     4, Controller),
    row(RoleReply,          V10, V11, Nicira(11),     4, Switch),
    row(FlowFormat,         V10, V10, Nicira(12),     4, Controller),
    row(NxFlowMod,          V10, V10, Nicira(13),    32, Controller),
    row(GroupMod,           V10, V10, Nicira(31),    16, Controller),
    row(NxFlowRemoved,      V10, V10, Nicira(14),    40, Switch),
    row(TableIds,           V10, V10, Nicira(15),     8, Controller),
    row(PacketInFormat,     V10, V15, Nicira(16),     4, Controller),
    row(NxPacketIn,         V10, V15, Nicira(17),    24, Switch),
    row(SetAsync,           V10, V12, Nicira(19),    24, Controller),
    row(MonitorCancel,      V10, V12, Nicira(21),     4, Controller),
    row(MonitorPaused,      V10, V12, Nicira(22),     0, Switch),
    row(MonitorResumed,     V10, V12, Nicira(23),     0, Switch),
    // ONF's extension 187 to 1.3.
    row(MonitorCancel,      V13, V13, Onf(1870),      4, Controller),
    row(MonitorPaused,      V13, V13, Onf(1871),      0, Switch),
    row(MonitorResumed,     V13, V13, Onf(1872),      0, Switch),
    row(ControllerId,       V10, V15, Nicira(20),     8, Controller),
    row(TlvTableMod,        V10, V15, Nicira(24),     8, Controller),
    row(TlvTableRequest,    V10, V15, Nicira(25),     0, Controller),
    row(TlvTableReply,      V10, V15, Nicira(26),    16, Switch),
    row(Resume,             V10, V15, Nicira(28),     0, Controller),
    row(FlushZone,          V10, V15, Nicira(29),     8, Controller),
    row(NxPacketIn2,        V10, V15, Nicira(30),     0, Switch),
    row(FlushConnections,   V10, V15, Nicira(32),     8, Controller),
    // ONF's extension 230 to 1.3.
    row(BundleControl,      V13, V13, Onf(2300),      8, Either),
    row(BundleAdd,          V13, V13, Onf(2301),      8, Controller),
    row(BundleControl,      V14, V15, Standard(33),   8, Either),
    row(BundleAdd,          V14, V15, Standard(34),   8, Controller),
    row(ControllerStatus,   V15, V15, Standard(35),  16, Switch),
    ]
};

#[rustfmt::skip]
pub(crate) const MULTIPARTS: &[MultipartKindRow] = {
    use TypeNumber::*; use MultipartKind::*; use Version::*;
    &[
    //   part           from to   number
    multipart(Description,      V10, V15, Standard(0)),
    multipart(Flow,             V10, V15, Standard(1)),
    multipart(Aggregate,        V10, V15, Standard(2)),
    multipart(Table,            V10, V15, Standard(3)),
    multipart(Port,             V10, V15, Standard(4)),
    multipart(Queue,            V10, V15, Standard(5)),
    multipart(Group,            V11, V15, Standard(6)),
    multipart(GroupDesc,        V11, V15, Standard(7)),
    multipart(GroupFeatures,    V12, V15, Standard(8)),
    multipart(Meter,            V13, V15, Standard(9)),
    multipart(MeterConfig,      V13, V15, Standard(10)),
    multipart(MeterFeatures,    V13, V15, Standard(11)),
    multipart(TableFeatures,    V13, V15, Standard(12)),
    // The specification has it from 1.3 on; Open vSwitch and `ovs-ofctl` also use it in earlier
    // versions.
    multipart(PortDesc,         V10, V15, Standard(13)),
    multipart(TableDesc,        V14, V15, Standard(14)),
    multipart(QueueDesc,        V14, V15, Standard(15)),
    multipart(FlowMonitor,      V14, V15, Standard(16)),
    multipart(FlowCounts,       V15, V15, Standard(17)),
    multipart(ControllerStatus, V15, V15, Standard(18)),
    multipart(BundleFeatures,   V15, V15, Standard(19)),
    multipart(NxFlow,           V10, V10, Nicira(0)),
    multipart(NxAggregate,      V10, V10, Nicira(1)),
    multipart(IpfixBridge,      V10, V15, Nicira(3)),
    multipart(IpfixFlow,        V10, V15, Nicira(4)),
    multipart(Group,            V10, V10, Nicira(7)),
    multipart(GroupDesc,        V10, V10, Nicira(8)),
    multipart(GroupFeatures,    V10, V10, Nicira(9)),
    multipart(FlowMonitor,      V10, V12, Nicira(2)),
    multipart(FlowMonitor,      V13, V13, Onf(1870)),
    ]
};

/// An upper bound of the specification's message numbers.
const STANDARD_NUMBERS_MAX: usize = 40;

/// The rows of the specification's messages by version and number: an index, because each received
/// message needs a lookup.
static STANDARD: [[Option<&MessageKindRow>; STANDARD_NUMBERS_MAX]; Version::ALL.len()] = {
    let mut rows = [[None; STANDARD_NUMBERS_MAX]; Version::ALL.len()];
    let mut at = 0;
    while at < MESSAGES.len() {
        let row = &MESSAGES[at];
        if let TypeNumber::Standard(number) = row.number {
            let mut version = *row.versions.start() as usize;
            while version <= *row.versions.end() as usize {
                rows[version][number as usize] = Some(row);
                version += 1;
            }
        }
        at += 1;
    }
    rows
};

impl MessageKindRow {
    /// The row of this number.
    #[inline]
    pub(crate) fn by_number(number: TypeNumber, version: Version) -> Option<&'static Self> {
        if let TypeNumber::Standard(number) = number {
            let rows = &STANDARD[version as usize];
            return rows.get(usize::from(number)).copied().flatten();
        }
        MESSAGES
            .iter()
            .find(|row| row.number == number && row.versions.contains(&version))
    }

    /// The row of this message type in `version`, if it exists there.
    pub(crate) fn by_kind(kind: MessageKind, version: Version) -> Option<&'static Self> {
        MESSAGES
            .iter()
            .find(|row| row.kind == kind && row.versions.contains(&version))
    }
}

impl MultipartKindRow {
    /// The row of this number.
    pub(crate) fn by_number(number: TypeNumber, version: Version) -> Option<&'static Self> {
        MULTIPARTS
            .iter()
            .find(|row| row.number == number && row.versions.contains(&version))
    }

    /// The row of this multipart type in `version`, if it exists there.
    pub(crate) fn by_kind(kind: MultipartKind, version: Version) -> Option<&'static Self> {
        MULTIPARTS
            .iter()
            .find(|row| row.kind == kind && row.versions.contains(&version))
    }
}

/// The type of a vendor (experimenter) message in its header.
pub(crate) const EXPERIMENTER_MESSAGE: u16 = 4;

/// The multipart type of a vendor (experimenter) request or reply.
pub(crate) const EXPERIMENTER_MULTIPART: u16 = 0xffff;

#[cfg(test)]
mod vectors;

#[cfg(test)]
mod absent;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_numbers_and_kinds_map_one_to_one() {
        for version in Version::ALL {
            for row in MESSAGES
                .iter()
                .filter(|row| row.versions.contains(&version))
            {
                assert_eq!(
                    MessageKindRow::by_number(row.number, version).map(|found| found.kind),
                    Some(row.kind)
                );
                assert_eq!(
                    MessageKindRow::by_kind(row.kind, version).map(|found| found.number),
                    Some(row.number)
                );
            }
            for row in MULTIPARTS
                .iter()
                .filter(|row| row.versions.contains(&version))
            {
                assert_eq!(
                    MultipartKindRow::by_number(row.number, version).map(|found| found.kind),
                    Some(row.kind)
                );
                assert_eq!(
                    MultipartKindRow::by_kind(row.kind, version).map(|found| found.number),
                    Some(row.number)
                );
            }
        }
    }
}
