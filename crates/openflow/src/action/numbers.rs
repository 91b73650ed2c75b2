//! The table of action numbers: a row for each action and range of versions.

use std::ops::RangeInclusive;

use crate::version::Version;

/// The actions on the wire, independent of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActionKind {
    Output,
    Enqueue,
    SetQueue,
    PopQueue,
    Group,
    SetField,
    SetVlanVid,
    SetVlanPcp,
    SetDlSrc,
    SetDlDst,
    SetNwSrc,
    SetNwDst,
    SetNwTos,
    SetNwEcn,
    SetTpSrc,
    SetTpDst,
    PushVlan,
    PopVlan,
    PushMpls,
    PopMpls,
    PushPbb,
    PopPbb,
    SetMplsTtl,
    DecMplsTtl,
    SetMplsLabel,
    SetMplsTc,
    SetIpTtl,
    DecIpTtl,
    CopyTtlOut,
    CopyTtlIn,
    SetTunnel,
    SetTunnel64,
    RegLoad,
    RegLoad2,
    WriteMetadata,
    Resubmit,
    ResubmitTable,
    ResubmitConnection,
    RegMove,
    CopyField,
    StackPush,
    StackPop,
    OutputReg,
    OutputReg2,
    OutputTruncated,
    Controller,
    Controller2,
    DecTtlIds,
    Note,
    Exit,
    Clone,
    Learn,
    Learn2,
    FinTimeout,
    Multipath,
    Bundle,
    BundleLoad,
    Conjunction,
    CheckPacketLarger,
    Sample,
    Sample2,
    Sample3,
    Sample4,
    Encap,
    Decap,
    DecNshTtl,
    DeleteField,
    Conntrack,
    Nat,
    ConntrackClear,
    DebugSlow,
    DebugRecirc,
    Meter,
}

/// The number of an action and the field that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActionNumber {
    /// The specification's number, in the action's header.
    Standard(u16),
    /// Nicira's subtype, after its experimenter id.
    Nicira(u16),
    /// The Open Networking Foundation's subtype, after its experimenter id.
    Onf(u16),
}

/// The length of an action in bytes, including the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActionLength {
    Exactly(usize),
    AtLeast(usize),
}

/// An action in a range of versions.
#[derive(Debug)]
pub(crate) struct ActionRow {
    pub(crate) kind: ActionKind,
    pub(crate) versions: RangeInclusive<Version>,
    pub(crate) number: ActionNumber,
    pub(crate) length: ActionLength,
    /// Bytes of padding between the header and the first argument.
    pub(crate) skip: usize,
}

const fn row(
    kind: ActionKind,
    versions: RangeInclusive<Version>,
    number: ActionNumber,
    length: ActionLength,
    skip: usize,
) -> ActionRow {
    ActionRow {
        kind,
        versions,
        number,
        length,
        skip,
    }
}

/// The type of a vendor (experimenter) action in its header.
pub(crate) const EXPERIMENTER: u16 = 0xffff;

/// All actions. If a version has several numbers for one, the encoder uses the first. If 1.5 has an
/// equivalent of its own, Nicira's action ends with 1.4.
#[rustfmt::skip]
pub(crate) const ACTIONS: &[ActionRow] = { use {ActionKind::*, ActionLength::*, ActionNumber::*, Version::*}; &[
    //  kind         versions   number      length        skip
    row(Output,            V10..=V10, Standard(0),  Exactly(8),  0),
    row(Output,            V11..=V15, Standard(0),  Exactly(16), 0),
    row(SetVlanVid,        V10..=V11, Standard(1),  Exactly(8),  0),
    row(SetVlanPcp,        V10..=V11, Standard(2),  Exactly(8),  0),
    row(PopVlan,           V10..=V10, Standard(3),  Exactly(8),  0),
    row(SetDlSrc,          V10..=V10, Standard(4),  Exactly(16), 0),
    row(SetDlDst,          V10..=V10, Standard(5),  Exactly(16), 0),
    row(SetNwSrc,          V10..=V10, Standard(6),  Exactly(8),  0),
    row(SetNwDst,          V10..=V10, Standard(7),  Exactly(8),  0),
    row(SetNwTos,          V10..=V10, Standard(8),  Exactly(8),  0),
    row(SetDlSrc,          V11..=V11, Standard(3),  Exactly(16), 0),
    row(SetDlDst,          V11..=V11, Standard(4),  Exactly(16), 0),
    row(SetNwSrc,          V11..=V11, Standard(5),  Exactly(8),  0),
    row(SetNwDst,          V11..=V11, Standard(6),  Exactly(8),  0),
    row(SetNwTos,          V11..=V11, Standard(7),  Exactly(8),  0),
    row(SetNwEcn,          V11..=V11, Standard(8),  Exactly(8),  0),
    row(SetTpSrc,          V10..=V11, Standard(9),  Exactly(8),  0),
    row(SetTpDst,          V10..=V11, Standard(10), Exactly(8),  0),
    row(Enqueue,           V10..=V10, Standard(11), Exactly(16), 0),
    row(CopyTtlOut,        V11..=V15, Standard(11), Exactly(8),  0),
    row(CopyTtlIn,         V11..=V15, Standard(12), Exactly(8),  0),
    row(SetMplsLabel,      V11..=V11, Standard(13), Exactly(8),  0),
    row(SetMplsTc,         V11..=V11, Standard(14), Exactly(8),  0),
    row(SetMplsTtl,        V11..=V15, Standard(15), Exactly(8),  0),
    row(DecMplsTtl,        V11..=V15, Standard(16), Exactly(8),  0),
    row(PushVlan,          V11..=V15, Standard(17), Exactly(8),  0),
    row(PopVlan,           V11..=V15, Standard(18), Exactly(8),  0),
    row(PushMpls,          V11..=V15, Standard(19), Exactly(8),  0),
    row(PopMpls,           V11..=V15, Standard(20), Exactly(8),  0),
    row(SetQueue,          V11..=V15, Standard(21), Exactly(8),  0),
    row(Group,             V11..=V15, Standard(22), Exactly(8),  0),
    row(SetIpTtl,          V11..=V15, Standard(23), Exactly(8),  0),
    row(DecIpTtl,          V11..=V15, Standard(24), Exactly(8),  0),
    row(SetField,          V12..=V15, Standard(25), AtLeast(8),  0),
    row(PushPbb,           V13..=V15, Standard(26), Exactly(8),  0),
    row(PopPbb,            V13..=V15, Standard(27), Exactly(8),  0),
    row(CopyField,         V15..=V15, Standard(28), AtLeast(24), 0),
    row(Meter,             V15..=V15, Standard(29), Exactly(8),  0),
    row(SetTunnel,         V10..=V15, Nicira(2),    Exactly(16), 2),
    row(SetQueue,          V10..=V15, Nicira(4),    Exactly(16), 2),
    row(PopQueue,          V10..=V15, Nicira(5),    Exactly(16), 0),
    row(RegLoad,           V10..=V14, Nicira(7),    Exactly(24), 0),
    row(SetTunnel64,       V10..=V15, Nicira(9),    Exactly(24), 6),
    row(DecIpTtl,          V10..=V15, Nicira(18),   Exactly(16), 0),
    row(WriteMetadata,     V10..=V10, Nicira(22),   Exactly(32), 6),
    row(PushMpls,          V10..=V15, Nicira(23),   Exactly(16), 0),
    row(PopMpls,           V10..=V15, Nicira(24),   Exactly(16), 0),
    row(SetMplsTtl,        V10..=V15, Nicira(25),   Exactly(16), 0),
    row(DecMplsTtl,        V10..=V15, Nicira(26),   Exactly(16), 0),
    row(SetMplsLabel,      V10..=V15, Nicira(30),   Exactly(16), 2),
    row(SetMplsTc,         V10..=V15, Nicira(31),   Exactly(16), 0),
    row(RegLoad2,          V10..=V14, Nicira(33),   AtLeast(16), 0),
    row(Group,             V10..=V10, Nicira(40),   Exactly(16), 2),
    row(Resubmit,          V10..=V15, Nicira(1),    Exactly(16), 0),
    row(RegMove,           V10..=V14, Nicira(6),    AtLeast(24), 0),
    row(Note,              V10..=V15, Nicira(8),    AtLeast(16), 0),
    row(Multipath,         V10..=V15, Nicira(10),   AtLeast(32), 0),
    row(Bundle,            V10..=V15, Nicira(12),   AtLeast(32), 0),
    row(BundleLoad,        V10..=V15, Nicira(13),   AtLeast(32), 0),
    row(ResubmitTable,     V10..=V15, Nicira(14),   Exactly(16), 0),
    row(ResubmitConnection, V10..=V15, Nicira(44),  Exactly(16), 0),
    row(OutputReg,         V10..=V15, Nicira(15),   Exactly(24), 0),
    row(Learn,             V10..=V15, Nicira(16),   AtLeast(32), 0),
    row(Exit,              V10..=V15, Nicira(17),   Exactly(16), 0),
    row(FinTimeout,        V10..=V15, Nicira(19),   Exactly(16), 0),
    row(Controller,        V10..=V15, Nicira(20),   Exactly(16), 0),
    row(DecTtlIds,         V10..=V15, Nicira(21),   AtLeast(16), 0),
    row(StackPush,         V10..=V15, Nicira(27),   AtLeast(24), 0),
    row(StackPop,          V10..=V15, Nicira(28),   AtLeast(24), 0),
    row(Sample,            V10..=V15, Nicira(29),   Exactly(24), 0),
    row(OutputReg2,        V10..=V15, Nicira(32),   AtLeast(24), 0),
    row(Conjunction,       V10..=V15, Nicira(34),   Exactly(16), 0),
    row(Conntrack,         V10..=V15, Nicira(35),   AtLeast(24), 0),
    row(Nat,               V10..=V15, Nicira(36),   AtLeast(16), 2),
    row(ConntrackClear,    V10..=V15, Nicira(43),   Exactly(16), 0),
    row(Controller2,       V10..=V15, Nicira(37),   AtLeast(16), 6),
    row(Sample2,           V10..=V15, Nicira(38),   Exactly(32), 0),
    row(OutputTruncated,   V10..=V15, Nicira(39),   Exactly(16), 0),
    row(Sample3,           V10..=V15, Nicira(41),   Exactly(32), 0),
    row(Clone,             V10..=V15, Nicira(42),   AtLeast(16), 6),
    row(Learn2,            V10..=V15, Nicira(45),   AtLeast(40), 0),
    row(Encap,             V13..=V15, Nicira(46),   AtLeast(16), 0),
    row(Decap,             V13..=V15, Nicira(47),   Exactly(16), 0),
    row(DecNshTtl,         V13..=V15, Nicira(48),   Exactly(16), 0),
    row(DeleteField,       V10..=V15, Nicira(50),   Exactly(24), 0),
    row(CheckPacketLarger, V10..=V15, Nicira(49),   AtLeast(24), 0),
    row(Sample4,           V10..=V15, Nicira(51),   Exactly(40), 0),
    row(DebugSlow,         V10..=V15, Nicira(254),  Exactly(16), 0),
    row(DebugRecirc,       V10..=V15, Nicira(255),  Exactly(16), 0),
    row(CopyField,         V13..=V13, Onf(3200),    AtLeast(32), 2),
]};

impl ActionRow {
    pub(crate) fn by_number(number: ActionNumber, version: Version) -> Option<&'static Self> {
        ACTIONS
            .iter()
            .find(|row| row.number == number && row.versions.contains(&version))
    }

    /// The row with which `version` encodes the action: with its own number, if it has one.
    pub(crate) fn by_kind(kind: ActionKind, version: Version) -> Option<&'static Self> {
        ACTIONS
            .iter()
            .find(|row| row.kind == kind && row.versions.contains(&version))
    }
}

/// The numbers of the specification's actions that this switch supports, for its features.
pub(crate) fn standard_numbers(version: Version) -> impl Iterator<Item = u16> {
    ACTIONS
        .iter()
        .filter(move |row| row.versions.contains(&version))
        .filter_map(|row| match row.number {
            ActionNumber::Standard(number) => Some(number),
            ActionNumber::Nicira(_) | ActionNumber::Onf(_) => None,
        })
}
