//! Actions on the wire: a number table for all versions and for Nicira, and how
//! each is read. How they are written is in `action::encode`, and how OpenFlow
//! 1.0's setters are told in versions that lack them in `action::legacy`.
//!
//! Nicira's actions are read in every version, as Open vSwitch does. Those that
//! mean something else than the specification's own are in `action::extension`.
//! Connection tracking, and packets that are no Ethernet, are refused by name.

mod encode;
mod extension;
mod legacy;

use std::ops::RangeInclusive;

use base::{GroupId, PortNo, QueueId};
use flow::{Action, Field, MaxLen, MetadataWrite, Refusal};

pub(crate) use encode::{Context, encode, encode_goto, encode_metadata};

use crate::codec::{Malformed, Reader};
use crate::faults::ONF;
use crate::kinds::NICIRA;
use crate::oxm::Header;
use crate::port_no;
use crate::version::Version;

/// What an action on the wire is, whatever its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
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
    SetTpSrc,
    SetTpDst,
    PushVlan,
    PopVlan,
    PushMpls,
    PopMpls,
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
}

/// Where an action's number stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    /// In the action's header.
    Own(u16),
    /// Behind Nicira's id.
    Nicira(u16),
    /// Behind the id of the Open Networking Foundation.
    Onf(u16),
}

/// How long an action is, its header included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Exactly(usize),
    AtLeast(usize),
}

/// An action of some versions.
#[derive(Debug)]
struct Row {
    kind: Kind,
    versions: RangeInclusive<Version>,
    number: Number,
    length: Length,
    /// Bytes of padding between the header and the first argument.
    skip: usize,
}

const fn row(
    kind: Kind,
    versions: RangeInclusive<Version>,
    number: Number,
    length: Length,
    skip: usize,
) -> Row {
    Row {
        kind,
        versions,
        number,
        length,
        skip,
    }
}

/// What stands in the header of a vendor's (experimenter's) action.
const EXPERIMENTER: u16 = 0xffff;

#[rustfmt::skip]
const ROWS: &[Row] = { use {Kind::*, Length::*, Number::*, Version::*}; &[
    //  kind         versions   number      length        skip
    row(Output,        V10..=V10, Own(0),     Exactly(8),   0),
    row(Output,        V13..=V13, Own(0),     Exactly(16),  0),
    row(SetVlanVid,    V10..=V10, Own(1),     Exactly(8),   0),
    row(SetVlanPcp,    V10..=V10, Own(2),     Exactly(8),   0),
    row(PopVlan,       V10..=V10, Own(3),     Exactly(8),   0),
    row(SetDlSrc,      V10..=V10, Own(4),     Exactly(16),  0),
    row(SetDlDst,      V10..=V10, Own(5),     Exactly(16),  0),
    row(SetNwSrc,      V10..=V10, Own(6),     Exactly(8),   0),
    row(SetNwDst,      V10..=V10, Own(7),     Exactly(8),   0),
    row(SetNwTos,      V10..=V10, Own(8),     Exactly(8),   0),
    row(SetTpSrc,      V10..=V10, Own(9),     Exactly(8),   0),
    row(SetTpDst,      V10..=V10, Own(10),    Exactly(8),   0),
    row(Enqueue,       V10..=V10, Own(11),    Exactly(16),  0),
    row(CopyTtlOut,    V13..=V13, Own(11),    Exactly(8),   0),
    row(CopyTtlIn,     V13..=V13, Own(12),    Exactly(8),   0),
    row(SetMplsTtl,    V13..=V13, Own(15),    Exactly(8),   0),
    row(DecMplsTtl,    V13..=V13, Own(16),    Exactly(8),   0),
    row(PushVlan,      V13..=V13, Own(17),    Exactly(8),   0),
    row(PopVlan,       V13..=V13, Own(18),    Exactly(8),   0),
    row(PushMpls,      V13..=V13, Own(19),    Exactly(8),   0),
    row(PopMpls,       V13..=V13, Own(20),    Exactly(8),   0),
    row(SetQueue,      V13..=V13, Own(21),    Exactly(8),   0),
    row(Group,         V13..=V13, Own(22),    Exactly(8),   0),
    row(SetIpTtl,      V13..=V13, Own(23),    Exactly(8),   0),
    row(DecIpTtl,      V13..=V13, Own(24),    Exactly(8),   0),
    row(SetField,      V13..=V13, Own(25),    AtLeast(8),   0),
    row(SetTunnel,     V10..=V13, Nicira(2),  Exactly(16),  2),
    row(SetQueue,      V10..=V13, Nicira(4),  Exactly(16),  2),
    row(PopQueue,      V10..=V13, Nicira(5),  Exactly(16),  0),
    row(RegLoad,       V10..=V13, Nicira(7),  Exactly(24),  0),
    row(SetTunnel64,   V10..=V13, Nicira(9),  Exactly(24),  6),
    row(DecIpTtl,      V10..=V13, Nicira(18), Exactly(16),  0),
    row(WriteMetadata, V10..=V10, Nicira(22), Exactly(32),  6),
    row(PushMpls,      V10..=V13, Nicira(23), Exactly(16),  0),
    row(PopMpls,       V10..=V13, Nicira(24), Exactly(16),  0),
    row(SetMplsTtl,    V10..=V13, Nicira(25), Exactly(16),  0),
    row(DecMplsTtl,    V10..=V13, Nicira(26), Exactly(16),  0),
    row(SetMplsLabel,  V10..=V13, Nicira(30), Exactly(16),  2),
    row(SetMplsTc,     V10..=V13, Nicira(31), Exactly(16),  0),
    row(RegLoad2,      V10..=V13, Nicira(33), AtLeast(24),  6),
    row(Group,         V10..=V10, Nicira(40), Exactly(16),  2),
    row(Resubmit,      V10..=V13, Nicira(1), Exactly(16),  0),
    row(RegMove,       V10..=V13, Nicira(6), AtLeast(24),  0),
    row(Note,          V10..=V13, Nicira(8), AtLeast(16),  0),
    row(Multipath,     V10..=V13, Nicira(10),AtLeast(32),  0),
    row(Bundle,        V10..=V13, Nicira(12),AtLeast(32),  0),
    row(BundleLoad,    V10..=V13, Nicira(13),AtLeast(32),  0),
    row(ResubmitTable, V10..=V13, Nicira(14),Exactly(16),  0),
    row(OutputReg,     V10..=V13, Nicira(15),Exactly(24),  0),
    row(Learn,         V10..=V13, Nicira(16),AtLeast(32),  0),
    row(Exit,          V10..=V13, Nicira(17),Exactly(16),  0),
    row(FinTimeout,    V10..=V13, Nicira(19),Exactly(16),  0),
    row(Controller,    V10..=V13, Nicira(20),Exactly(16),  0),
    row(DecTtlIds,     V10..=V13, Nicira(21),AtLeast(16),  0),
    row(StackPush,     V10..=V13, Nicira(27),AtLeast(24),  0),
    row(StackPop,      V10..=V13, Nicira(28),AtLeast(24),  0),
    row(Sample,        V10..=V13, Nicira(29),Exactly(24),  0),
    row(OutputReg2,    V10..=V13, Nicira(32),AtLeast(24),  0),
    row(Conjunction,   V10..=V13, Nicira(34),Exactly(16),  0),
    row(Controller2,   V10..=V13, Nicira(37),AtLeast(16),  6),
    row(Sample2,       V10..=V13, Nicira(38),Exactly(32),  0),
    row(OutputTruncated,V10..=V13, Nicira(39),Exactly(16),  0),
    row(Sample3,       V10..=V13, Nicira(41),Exactly(32),  0),
    row(Clone,         V10..=V13, Nicira(42),AtLeast(16),  6),
    row(Learn2,        V10..=V13, Nicira(45),AtLeast(40),  0),
    row(CheckPacketLarger,V10..=V13, Nicira(49),AtLeast(24),  0),
    row(CopyField,     V13..=V13, Onf(3200), AtLeast(32),  2),
]};

impl Row {
    fn numbered(number: Number, version: Version) -> Option<&'static Self> {
        ROWS.iter()
            .find(|row| row.number == number && row.versions.contains(&version))
    }

    /// How `version` writes it: by its own number, if it has one.
    fn of(kind: Kind, version: Version) -> Option<&'static Self> {
        ROWS.iter()
            .find(|row| row.kind == kind && row.versions.contains(&version))
    }
}

/// The numbers of the specification's own actions that this switch does, for what
/// it says of itself: all but groups, of which it has none yet.
pub(crate) fn own_numbers(version: Version) -> impl Iterator<Item = u16> {
    ROWS.iter()
        .filter(move |row| row.versions.contains(&version) && row.kind != Kind::Group)
        .filter_map(|row| match row.number {
            Number::Own(number) => Some(number),
            Number::Nicira(_) | Number::Onf(_) => None,
        })
}

/// One entry of an action list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// An action proper.
    Action(Action),
    /// Nicira's end of a queue: back to what the frame came with.
    PopQueue,
    /// OpenFlow 1.0's way to write the metadata register.
    Metadata(MetadataWrite),
}

/// Reads actions to the end of `r`; what is an instruction elsewhere is refused.
pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Vec<Action>, Malformed> {
    let mut actions = Vec::new();
    while !r.is_empty() {
        let unknown = r.fail(Refusal::ActionBadExperimenterType);
        match decode_one(r)? {
            Item::Action(action) => actions.push(action),
            Item::PopQueue => pop_queue(&mut actions).ok_or(unknown)?,
            Item::Metadata(_) => return Err(unknown),
        }
    }
    Ok(actions)
}

/// Folds a queue that is set for a single output, and ends with it, into
/// [`Action::Enqueue`]. Any other end of a queue is more than a rule can say.
pub(crate) fn pop_queue(actions: &mut Vec<Action>) -> Option<()> {
    let [
        before @ ..,
        Action::SetQueue(queue),
        Action::Output { port, .. },
    ] = actions.as_slice()
    else {
        return None;
    };
    let enqueue = Action::Enqueue {
        port: *port,
        queue: *queue,
    };
    if before
        .iter()
        .any(|action| matches!(action, Action::SetQueue(_)))
    {
        return None;
    }
    actions.truncate(before.len());
    actions.push(enqueue);
    Some(())
}

/// Reads the next action.
pub(crate) fn decode_one(r: &mut Reader<'_>) -> Result<Item, Malformed> {
    let start = r.clone();
    let mut head = r.clone().on_short(Refusal::ActionBadLength);
    let (number, length) = (head.u16()?, usize::from(head.u16()?));
    if length < 8 || length % 8 != 0 {
        return Err(start.fail(Refusal::ActionBadLength));
    }
    let mut body = r.sub_or(length, Refusal::ActionBadLength)?;
    body.skip(4)?;
    let row = row_of(number, &start, &mut body)?;
    let fits = match row.length {
        Length::Exactly(wanted) => length == wanted,
        Length::AtLeast(least) => length >= least,
    };
    if !fits {
        return Err(start.fail(Refusal::ActionBadLength));
    }
    body.skip(row.skip)?;
    let item = decode_body(row.kind, &mut body).map_err(|fault| match fault {
        Bad::Argument(fault) => start.fail(fault),
        Bad::Shape(malformed) => malformed,
    })?;
    Ok(item)
}

/// The action's row; `body` then stands behind its number.
fn row_of(
    number: u16,
    start: &Reader<'_>,
    body: &mut Reader<'_>,
) -> Result<&'static Row, Malformed> {
    let version = body.version();
    if number != EXPERIMENTER {
        let row = Row::numbered(Number::Own(number), version);
        return row.ok_or_else(|| start.fail(Refusal::ActionBadType));
    }
    let whose = match body.u32()? {
        NICIRA => Number::Nicira,
        ONF => Number::Onf,
        _ => return Err(start.fail(Refusal::ActionBadExperimenter)),
    };
    let number = body.u16()?;
    let row = Row::numbered(whose(number), version);
    row.ok_or_else(|| start.fail(Refusal::ActionBadExperimenterType))
}

/// Why a body is refused.
enum Bad {
    /// For what it says.
    Argument(Refusal),
    /// For how it is laid out.
    Shape(Malformed),
}

impl From<Malformed> for Bad {
    fn from(malformed: Malformed) -> Self {
        Self::Shape(malformed)
    }
}

impl From<Refusal> for Bad {
    fn from(refusal: Refusal) -> Self {
        Self::Argument(refusal)
    }
}

/// Reads the arguments. Padding behind them is not looked at.
fn decode_body(kind: Kind, r: &mut Reader<'_>) -> Result<Item, Bad> {
    let action = match kind {
        Kind::Output => {
            let (port, max_len) = (port_no::decode(r)?, MaxLen(r.u16()?));
            match port {
                PortNo::CONTROLLER => Action::Output { port, max_len },
                // A length means nothing to other ports (OF 1.3.5, 7.2.5).
                port => Action::output(port),
            }
        }
        Kind::Enqueue => decode_enqueue(r)?,
        Kind::SetQueue => Action::SetQueue(QueueId(r.u32()?)),
        Kind::PopQueue => return Ok(Item::PopQueue),
        Kind::Group => Action::Group(GroupId(r.u32()?)),
        Kind::SetField => decode_set_field(r)?,
        Kind::SetVlanVid => Action::SetVlanVid(at_most(r.u16()?, 0x0fff)?),
        Kind::SetVlanPcp => Action::SetVlanPcp(at_most(r.u8()?, 7)?),
        Kind::SetDlSrc => Action::set(Field::EthSrc, r.number(6)?),
        Kind::SetDlDst => Action::set(Field::EthDst, r.number(6)?),
        Kind::SetNwSrc => Action::SetNwSrc(r.u32()?),
        Kind::SetNwDst => Action::SetNwDst(r.u32()?),
        Kind::SetNwTos => match r.u8()? {
            tos if tos & 3 == 0 => Action::SetNwTos(tos),
            _ => return Err(Refusal::ActionBadArgument.into()),
        },
        Kind::SetTpSrc => Action::SetTpSrc(r.u16()?),
        Kind::SetTpDst => Action::SetTpDst(r.u16()?),
        Kind::PushVlan => Action::PushVlan(one_of(r.u16()?, [0x8100, 0x88a8])?),
        Kind::PopVlan => Action::PopVlan,
        Kind::PushMpls => Action::PushMpls(one_of(r.u16()?, [0x8847, 0x8848])?),
        Kind::PopMpls => Action::PopMpls(r.u16()?),
        Kind::SetMplsTtl => Action::SetMplsTtl(r.u8()?),
        Kind::DecMplsTtl => Action::DecMplsTtl,
        Kind::SetMplsLabel => Action::set(Field::MplsLabel, at_most(r.u32()?, 0xf_ffff)?.into()),
        Kind::SetMplsTc => Action::set(Field::MplsTc, at_most(r.u8()?, 7)?.into()),
        Kind::SetIpTtl => Action::SetIpTtl(r.u8()?),
        Kind::DecIpTtl => Action::DecIpTtl,
        Kind::CopyTtlOut => Action::CopyTtlOut,
        Kind::CopyTtlIn => Action::CopyTtlIn,
        Kind::SetTunnel => Action::set(Field::TunnelId, r.u32()?.into()),
        Kind::SetTunnel64 => Action::set(Field::TunnelId, r.u64()?.into()),
        Kind::RegLoad2 => decode_reg_load2(r)?,
        Kind::WriteMetadata => {
            let (value, mask) = (r.u64()?, r.u64()?);
            return Ok(Item::Metadata(MetadataWrite { value, mask }));
        }
        kind => Action::Extended(extension::decode(kind, r)?),
    };
    Ok(Item::Action(action))
}

fn at_most<T: PartialOrd>(value: T, highest: T) -> Result<T, Refusal> {
    if value <= highest {
        Ok(value)
    } else {
        Err(Refusal::ActionBadArgument)
    }
}

fn one_of(value: u16, known: [u16; 2]) -> Result<u16, Refusal> {
    if known.contains(&value) {
        Ok(value)
    } else {
        Err(Refusal::ActionBadArgument)
    }
}

fn decode_enqueue(r: &mut Reader<'_>) -> Result<Action, Malformed> {
    let port = port_no::decode(r)?;
    r.skip(6)?;
    let queue = QueueId(r.u32()?);
    Ok(Action::Enqueue { port, queue })
}

/// `set_field`: one OXM field without a mask, padded to eight bytes (OF 1.3.5,
/// 7.2.5).
fn decode_set_field(r: &mut Reader<'_>) -> Result<Action, Bad> {
    let whole = r.len();
    let header = Header::decode(r)?;
    if header.masked {
        return Err(Refusal::ActionBadSetType.into());
    }
    if (4 + 4 + header.length).next_multiple_of(8) != whole + 4 {
        return Err(Refusal::ActionBadSetLength.into());
    }
    let mut payload = r.sub_or(header.length, Refusal::ActionBadSetLength)?;
    let field = settable(header, &mut payload)?;
    let value = payload.number(field.bytes())?;
    payload.end()?;
    if value & !field.full_mask() != 0 {
        return Err(Refusal::ActionBadSetArgument.into());
    }
    Ok(set(field, value, field.full_mask()))
}

/// The field of a header that an action may set.
fn settable(header: Header, payload: &mut Reader<'_>) -> Result<Field, Bad> {
    match header.field(payload)? {
        Some(field) if field.info().writable => Ok(field),
        _ => Err(Refusal::ActionBadSetType.into()),
    }
}

/// The action that writes the masked bits of `field`. The TTL has its own.
fn set(field: Field, value: u128, mask: u128) -> Action {
    match (field, u8::try_from(value)) {
        (Field::IpTtl, Ok(ttl)) if mask == field.full_mask() => Action::SetIpTtl(ttl),
        _ => Action::SetField { field, value, mask },
    }
}

/// `NXAST_REG_LOAD2`: a field as in a match, padded to eight bytes.
fn decode_reg_load2(r: &mut Reader<'_>) -> Result<Action, Bad> {
    let header = Header::decode(r)?;
    let mut payload = r.sub_or(header.length, Refusal::ActionBadSetLength)?;
    if r.len() >= 8 {
        return Err(Refusal::ActionBadSetLength.into());
    }
    let field = settable(header, &mut payload)?;
    let value = payload.number(field.bytes())?;
    let mask = if header.masked {
        payload.number(field.bytes())?
    } else {
        field.full_mask()
    };
    payload.end()?;
    if value & !(mask & field.full_mask()) != 0 {
        return Err(Refusal::ActionBadSetArgument.into());
    }
    Ok(set(field, value, mask & field.full_mask()))
}

#[cfg(test)]
mod tests;
