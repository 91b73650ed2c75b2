//! The number table: which message, and which kind of statistics, has which
//! number in which version, how long it is at least, and who may send it.
//!
//! A version more is rows here and match arms in the bodies.

use std::ops::RangeInclusive;

use crate::faults::ONF;
use crate::version::Version;

/// Nicira's experimenter id, and its OpenFlow 1.0 vendor id.
pub(crate) const NICIRA: u32 = 0x0000_2320;

/// Every message that the crate knows, by the shape of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
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
}

/// Every kind of statistics, by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
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

/// Where a number stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    /// In the header: the specification's own.
    Own(u16),
    /// Behind Nicira's id, in a vendor (experimenter) message.
    Nicira(u32),
    /// Behind the Open Networking Foundation's id.
    Onf(u32),
}

impl Number {
    /// Whose number it is, and the number, if it is not the specification's own.
    pub(crate) const fn experimenter(self) -> Option<(u32, u32)> {
        match self {
            Self::Own(_) => None,
            Self::Nicira(number) => Some((NICIRA, number)),
            Self::Onf(number) => Some((ONF, number)),
        }
    }

    /// The number of an experimenter, if we know whose it is.
    pub(crate) const fn of(experimenter: u32, number: u32) -> Option<Self> {
        match experimenter {
            NICIRA => Some(Self::Nicira(number)),
            ONF => Some(Self::Onf(number)),
            _ => None,
        }
    }
}

/// Who sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    Either,
    Controller,
    Switch,
}

/// A message of some versions.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) kind: Kind,
    pub(crate) versions: RangeInclusive<Version>,
    pub(crate) number: Number,
    /// The least bytes of its body: behind the header, or behind Nicira's number.
    pub(crate) least: usize,
    pub(crate) sender: Sender,
}

/// A kind of statistics of some versions.
#[derive(Debug)]
pub(crate) struct PartRow {
    pub(crate) part: Part,
    pub(crate) versions: RangeInclusive<Version>,
    pub(crate) number: Number,
}

#[rustfmt::skip]
const fn row(
    kind: Kind, from: Version, to: Version, number: Number, least: usize, sender: Sender,
) -> Row {
    Row { kind, versions: from..=to, number, least, sender }
}

#[rustfmt::skip]
const fn part(part: Part, from: Version, to: Version, number: Number) -> PartRow {
    PartRow { part, versions: from..=to, number }
}

#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = {
    use Kind::*; use Number::*; use Sender::*; use Version::*;
    &[
    //  kind               from to   number      least sender
    row(Hello,              V10, V15, Own(0),      0, Either),
    row(Error,              V10, V15, Own(1),      4, Either),
    row(EchoRequest,        V10, V15, Own(2),      0, Either),
    row(EchoReply,          V10, V15, Own(3),      0, Either),
    row(FeaturesRequest,    V10, V15, Own(5),      0, Controller),
    row(FeaturesReply,      V10, V15, Own(6),     24, Switch),
    row(GetConfigRequest,   V10, V15, Own(7),      0, Controller),
    row(GetConfigReply,     V10, V15, Own(8),      4, Switch),
    row(SetConfig,          V10, V15, Own(9),      4, Controller),
    row(PacketIn,           V10, V10, Own(10),    10, Switch),
    row(PacketIn,           V11, V11, Own(10),    16, Switch),
    row(PacketIn,           V12, V12, Own(10),    18, Switch),
    row(PacketIn,           V13, V15, Own(10),    26, Switch),
    row(FlowRemoved,        V10, V10, Own(11),    80, Switch),
    row(FlowRemoved,        V11, V11, Own(11),   128, Switch),
    row(FlowRemoved,        V12, V14, Own(11),    48, Switch),
    row(FlowRemoved,        V15, V15, Own(11),    24, Switch),
    row(PortStatus,         V10, V10, Own(12),    56, Switch),
    row(PortStatus,         V11, V13, Own(12),    72, Switch),
    row(PortStatus,         V14, V15, Own(12),    48, Switch),
    row(PacketOut,          V10, V10, Own(13),     8, Controller),
    row(PacketOut,          V11, V15, Own(13),    16, Controller),
    row(FlowMod,            V10, V10, Own(14),    64, Controller),
    row(FlowMod,            V11, V11, Own(14),   128, Controller),
    row(FlowMod,            V12, V15, Own(14),    48, Controller),
    row(GroupMod,           V11, V14, Own(15),     8, Controller),
    row(GroupMod,           V15, V15, Own(15),    16, Controller),
    row(PortMod,            V10, V10, Own(15),    24, Controller),
    row(PortMod,            V11, V13, Own(16),    32, Controller),
    row(PortMod,            V14, V15, Own(16),    24, Controller),
    row(TableMod,           V11, V15, Own(17),     8, Controller),
    row(MultipartRequest,   V10, V10, Own(16),     4, Controller),
    row(MultipartRequest,   V11, V15, Own(18),     8, Controller),
    row(MultipartReply,     V10, V10, Own(17),     4, Switch),
    row(MultipartReply,     V11, V15, Own(19),     8, Switch),
    row(BarrierRequest,     V10, V10, Own(18),     0, Controller),
    row(BarrierRequest,     V11, V15, Own(20),     0, Controller),
    row(BarrierReply,       V10, V10, Own(19),     0, Switch),
    row(BarrierReply,       V11, V15, Own(21),     0, Switch),
    row(QueueConfigRequest, V10, V10, Own(20),     4, Controller),
    row(QueueConfigRequest, V11, V13, Own(22),     8, Controller),
    row(QueueConfigReply,   V10, V10, Own(21),     8, Switch),
    row(QueueConfigReply,   V11, V13, Own(23),     8, Switch),
    row(RoleRequest,        V12, V15, Own(24),    16, Controller),
    row(RoleReply,          V12, V15, Own(25),    16, Switch),
    row(GetAsyncRequest,    V13, V15, Own(26),     0, Controller),
    row(GetAsyncReply,      V13, V13, Own(27),    24, Switch),
    row(GetAsyncReply,      V14, V15, Own(27),     0, Switch),
    row(SetAsync,           V13, V13, Own(28),    24, Controller),
    row(SetAsync,           V14, V15, Own(28),     0, Controller),
    row(MeterMod,           V13, V15, Own(29),     8, Controller),
    row(RoleStatus,         V14, V15, Own(30),    16, Switch),
    row(TableStatus,        V14, V15, Own(31),    16, Switch),
    row(RequestForward,     V14, V15, Own(32),     8, Switch),
    row(RequestForward,     V13, V13, Onf(2350),   8, Switch),
    row(RequestForward,     V10, V12, Nicira(132), 8, Switch),
    row(SetAsyncProperties, V10, V13, Nicira(27),  0, Controller),
    row(RoleRequest,        V10, V11, Nicira(10),  4, Controller),
    row(RoleReply,          V10, V11, Nicira(11),  4, Switch),
    row(FlowFormat,         V10, V10, Nicira(12),  4, Controller),
    row(NxFlowMod,          V10, V10, Nicira(13), 32, Controller),
    row(GroupMod,           V10, V10, Nicira(31), 16, Controller),
    row(NxFlowRemoved,      V10, V10, Nicira(14), 40, Switch),
    row(TableIds,           V10, V10, Nicira(15),  8, Controller),
    row(PacketInFormat,     V10, V15, Nicira(16),  4, Controller),
    row(NxPacketIn,         V10, V15, Nicira(17), 24, Switch),
    row(SetAsync,           V10, V12, Nicira(19), 24, Controller),
    row(MonitorCancel,      V10, V12, Nicira(21),  4, Controller),
    row(MonitorPaused,      V10, V12, Nicira(22),  0, Switch),
    row(MonitorResumed,     V10, V12, Nicira(23),  0, Switch),
    // In 1.3, ONF's extension 187.
    row(MonitorCancel,      V13, V13, Onf(1870),   4, Controller),
    row(MonitorPaused,      V13, V13, Onf(1871),   0, Switch),
    row(MonitorResumed,     V13, V13, Onf(1872),   0, Switch),
    row(ControllerId,       V10, V15, Nicira(20),  8, Controller),
    row(TlvTableMod,        V10, V15, Nicira(24),  8, Controller),
    row(TlvTableRequest,    V10, V15, Nicira(25),  0, Controller),
    row(TlvTableReply,      V10, V15, Nicira(26), 16, Switch),
    row(Resume,             V10, V15, Nicira(28),  0, Controller),
    row(NxPacketIn2,        V10, V15, Nicira(30),  0, Switch),
    // In 1.3, ONF's extension 230.
    row(BundleControl,      V13, V13, Onf(2300),   8, Either),
    row(BundleAdd,          V13, V13, Onf(2301),   8, Controller),
    row(BundleControl,      V14, V15, Own(33),     8, Either),
    row(BundleAdd,          V14, V15, Own(34),     8, Controller),
    row(ControllerStatus,   V15, V15, Own(35),    16, Switch),
    ]
};

#[rustfmt::skip]
pub(crate) const PARTS: &[PartRow] = {
    use Number::*; use Part::*; use Version::*;
    &[
    //   part           from to   number
    part(Description,   V10, V15, Own(0)),
    part(Flow,          V10, V15, Own(1)),
    part(Aggregate,     V10, V15, Own(2)),
    part(Table,         V10, V15, Own(3)),
    part(Port,          V10, V15, Own(4)),
    part(Queue,         V10, V15, Own(5)),
    part(Group,         V11, V15, Own(6)),
    part(GroupDesc,     V11, V15, Own(7)),
    part(GroupFeatures, V12, V15, Own(8)),
    part(Meter,         V13, V15, Own(9)),
    part(MeterConfig,   V13, V15, Own(10)),
    part(MeterFeatures, V13, V15, Own(11)),
    part(TableFeatures, V13, V15, Own(12)),
    // In the specification from 1.3 on; Open vSwitch and `ovs-ofctl` use it before all
    // the same.
    part(PortDesc,      V10, V15, Own(13)),
    part(TableDesc,     V14, V15, Own(14)),
    part(QueueDesc,     V14, V15, Own(15)),
    part(FlowMonitor,   V14, V15, Own(16)),
    part(FlowCounts,    V15, V15, Own(17)),
    part(ControllerStatus, V15, V15, Own(18)),
    part(BundleFeatures,V15, V15, Own(19)),
    part(NxFlow,        V10, V10, Nicira(0)),
    part(NxAggregate,   V10, V10, Nicira(1)),
    part(IpfixBridge,   V10, V15, Nicira(3)),
    part(IpfixFlow,     V10, V15, Nicira(4)),
    part(Group,         V10, V10, Nicira(7)),
    part(GroupDesc,     V10, V10, Nicira(8)),
    part(GroupFeatures, V10, V10, Nicira(9)),
    part(FlowMonitor,   V10, V12, Nicira(2)),
    part(FlowMonitor,   V13, V13, Onf(1870)),
    ]
};

/// How many numbers of its own the specification has given to messages, and some.
const OWN_NUMBERS: usize = 40;

/// The rows of those, by version: every message that comes asks for one.
static OWN: [[Option<&Row>; OWN_NUMBERS]; Version::ALL.len()] = {
    let mut rows = [[None; OWN_NUMBERS]; Version::ALL.len()];
    let mut at = 0;
    while at < ROWS.len() {
        let row = &ROWS[at];
        if let Number::Own(number) = row.number {
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

impl Row {
    /// The message with this number.
    #[inline]
    pub(crate) fn numbered(number: Number, version: Version) -> Option<&'static Self> {
        if let Number::Own(number) = number {
            let rows = &OWN[version as usize];
            return rows.get(usize::from(number)).copied().flatten();
        }
        ROWS.iter()
            .find(|row| row.number == number && row.versions.contains(&version))
    }

    /// How `version` numbers this message, if it has it.
    pub(crate) fn of(kind: Kind, version: Version) -> Option<&'static Self> {
        ROWS.iter()
            .find(|row| row.kind == kind && row.versions.contains(&version))
    }
}

impl PartRow {
    /// The kind of statistics with this number.
    pub(crate) fn numbered(number: Number, version: Version) -> Option<&'static Self> {
        PARTS
            .iter()
            .find(|row| row.number == number && row.versions.contains(&version))
    }

    /// How `version` numbers this kind of statistics, if it has it.
    pub(crate) fn of(part: Part, version: Version) -> Option<&'static Self> {
        PARTS
            .iter()
            .find(|row| row.part == part && row.versions.contains(&version))
    }
}

/// What stands in the header of a vendor (experimenter) message.
pub(crate) const EXPERIMENTER_MESSAGE: u16 = 4;

/// What stands in the header of vendor (experimenter) statistics.
pub(crate) const EXPERIMENTER_PART: u16 = 0xffff;

#[cfg(test)]
mod vectors;

#[cfg(test)]
mod absent;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_means_one_message_and_a_message_has_one_number() {
        for version in Version::ALL {
            for row in ROWS.iter().filter(|row| row.versions.contains(&version)) {
                assert_eq!(
                    Row::numbered(row.number, version).map(|found| found.kind),
                    Some(row.kind)
                );
                assert_eq!(
                    Row::of(row.kind, version).map(|found| found.number),
                    Some(row.number)
                );
            }
            for row in PARTS.iter().filter(|row| row.versions.contains(&version)) {
                assert_eq!(
                    PartRow::numbered(row.number, version).map(|found| found.part),
                    Some(row.part)
                );
                assert_eq!(
                    PartRow::of(row.part, version).map(|found| found.number),
                    Some(row.number)
                );
            }
        }
    }
}
