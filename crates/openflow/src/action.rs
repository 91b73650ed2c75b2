//! Actions on the wire: a number table for all versions and for Nicira, and how
//! each is read. How they are written is in `action::encode`, and how OpenFlow
//! 1.0's setters are told in versions that lack them in `action::legacy`.
//!
//! Nicira's actions are read in every version, as Open vSwitch does, as far as
//! they mean something that [`Action`] can say; the rest is refused by name.

mod argument;
mod encode;
mod legacy;

use std::ops::RangeInclusive;

use base::{GroupId, MeterId, PortNo, QueueId, TableId};
use flow::{Action, Field, MaxLen, MetadataWrite, Refusal};

use argument::{at_most, one_of, set_vlan_pcp, set_vlan_vid};
pub(crate) use encode::{Context, encode, encode_goto, encode_metadata, encode_meter};

use crate::codec::{Malformed, Reader};
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
    Resubmit,
    WriteMetadata,
    Meter,
}

/// Where an action's number stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    /// In the action's header.
    Own(u16),
    /// Behind Nicira's id.
    Nicira(u16),
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
    row(Output,        V11..=V15, Own(0),     Exactly(16),  0),
    row(SetVlanVid,    V10..=V11, Own(1),     Exactly(8),   0),
    row(SetVlanPcp,    V10..=V11, Own(2),     Exactly(8),   0),
    row(PopVlan,       V10..=V10, Own(3),     Exactly(8),   0),
    row(SetDlSrc,      V10..=V10, Own(4),     Exactly(16),  0),
    row(SetDlDst,      V10..=V10, Own(5),     Exactly(16),  0),
    row(SetNwSrc,      V10..=V10, Own(6),     Exactly(8),   0),
    row(SetNwDst,      V10..=V10, Own(7),     Exactly(8),   0),
    row(SetNwTos,      V10..=V10, Own(8),     Exactly(8),   0),
    row(SetDlSrc,      V11..=V11, Own(3),     Exactly(16),  0),
    row(SetDlDst,      V11..=V11, Own(4),     Exactly(16),  0),
    row(SetNwSrc,      V11..=V11, Own(5),     Exactly(8),   0),
    row(SetNwDst,      V11..=V11, Own(6),     Exactly(8),   0),
    row(SetNwTos,      V11..=V11, Own(7),     Exactly(8),   0),
    row(SetNwEcn,      V11..=V11, Own(8),     Exactly(8),   0),
    row(SetTpSrc,      V10..=V11, Own(9),     Exactly(8),   0),
    row(SetTpDst,      V10..=V11, Own(10),    Exactly(8),   0),
    row(Enqueue,       V10..=V10, Own(11),    Exactly(16),  0),
    row(CopyTtlOut,    V11..=V15, Own(11),    Exactly(8),   0),
    row(CopyTtlIn,     V11..=V15, Own(12),    Exactly(8),   0),
    row(SetMplsLabel,  V11..=V11, Own(13),    Exactly(8),   0),
    row(SetMplsTc,     V11..=V11, Own(14),    Exactly(8),   0),
    row(SetMplsTtl,    V11..=V15, Own(15),    Exactly(8),   0),
    row(DecMplsTtl,    V11..=V15, Own(16),    Exactly(8),   0),
    row(PushVlan,      V11..=V15, Own(17),    Exactly(8),   0),
    row(PopVlan,       V11..=V15, Own(18),    Exactly(8),   0),
    row(PushMpls,      V11..=V15, Own(19),    Exactly(8),   0),
    row(PopMpls,       V11..=V15, Own(20),    Exactly(8),   0),
    row(SetQueue,      V11..=V15, Own(21),    Exactly(8),   0),
    row(Group,         V11..=V15, Own(22),    Exactly(8),   0),
    row(SetIpTtl,      V11..=V15, Own(23),    Exactly(8),   0),
    row(DecIpTtl,      V11..=V15, Own(24),    Exactly(8),   0),
    row(SetField,      V12..=V15, Own(25),    AtLeast(8),   0),
    row(PushPbb,       V13..=V15, Own(26),    Exactly(8),   0),
    row(PopPbb,        V13..=V15, Own(27),    Exactly(8),   0),
    row(Meter,         V15..=V15, Own(29),    Exactly(8),   0),
    row(SetTunnel,     V10..=V15, Nicira(2),  Exactly(16),  2),
    row(SetQueue,      V10..=V15, Nicira(4),  Exactly(16),  2),
    row(PopQueue,      V10..=V15, Nicira(5),  Exactly(16),  0),
    row(RegLoad,       V10..=V15, Nicira(7),  Exactly(24),  0),
    row(SetTunnel64,   V10..=V15, Nicira(9),  Exactly(24),  6),
    row(Resubmit,      V10..=V10, Nicira(14), Exactly(16),  0),
    row(DecIpTtl,      V10..=V15, Nicira(18), Exactly(16),  0),
    row(WriteMetadata, V10..=V10, Nicira(22), Exactly(32),  6),
    row(PushMpls,      V10..=V15, Nicira(23), Exactly(16),  0),
    row(PopMpls,       V10..=V15, Nicira(24), Exactly(16),  0),
    row(SetMplsTtl,    V10..=V15, Nicira(25), Exactly(16),  0),
    row(DecMplsTtl,    V10..=V15, Nicira(26), Exactly(16),  0),
    row(SetMplsLabel,  V10..=V15, Nicira(30), Exactly(16),  2),
    row(SetMplsTc,     V10..=V15, Nicira(31), Exactly(16),  0),
    row(RegLoad2,      V10..=V15, Nicira(33), AtLeast(24),  6),
    row(Group,         V10..=V10, Nicira(40), Exactly(16),  2),
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
/// it says of itself.
pub(crate) fn own_numbers(version: Version) -> impl Iterator<Item = u16> {
    numbers(version, |_| true)
}

/// Those of them that a bucket can have: all but the meter, which stands before the
/// other actions of a rule.
pub(crate) fn bucket_numbers(version: Version) -> impl Iterator<Item = u16> {
    numbers(version, |kind| kind != Kind::Meter)
}

fn numbers(version: Version, takes: fn(Kind) -> bool) -> impl Iterator<Item = u16> {
    ROWS.iter()
        .filter(move |row| row.versions.contains(&version) && takes(row.kind))
        .filter_map(|row| match row.number {
            Number::Own(number) => Some(number),
            Number::Nicira(_) => None,
        })
}

/// One entry of an action list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// An action proper.
    Action(Action),
    /// Nicira's end of a queue: back to what the frame came with.
    PopQueue,
    /// OpenFlow 1.0's way to go on in a later table.
    Goto(TableId),
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
            Item::Goto(_) | Item::Metadata(_) => return Err(unknown),
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
    if body.u32()? != NICIRA {
        return Err(start.fail(Refusal::ActionBadExperimenter));
    }
    let number = body.u16()?;
    let row = Row::numbered(Number::Nicira(number), version);
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
        // The length means nothing to ports but the controller (OF 1.3.5, 7.2.5),
        // and is told as it was given all the same.
        Kind::Output => Action::Output {
            port: port_no::decode(r)?,
            max_len: MaxLen(r.u16()?),
        },
        Kind::Enqueue => decode_enqueue(r)?,
        Kind::SetQueue => Action::SetQueue(QueueId(r.u32()?)),
        Kind::PopQueue => return Ok(Item::PopQueue),
        Kind::Group => Action::Group(GroupId(r.u32()?)),
        Kind::SetField => decode_set_field(r)?,
        Kind::SetVlanVid => set_vlan_vid(at_most(r.u16()?, 0x0fff)?, r.version()),
        Kind::SetVlanPcp => set_vlan_pcp(at_most(r.u8()?, 7)?, r.version()),
        Kind::SetDlSrc => Action::set(Field::EthSrc, r.number(6)?),
        Kind::SetDlDst => Action::set(Field::EthDst, r.number(6)?),
        Kind::SetNwSrc => Action::SetNwSrc(r.u32()?),
        Kind::SetNwDst => Action::SetNwDst(r.u32()?),
        Kind::SetNwTos => match r.u8()? {
            tos if tos & 3 == 0 => Action::SetNwTos(tos),
            _ => return Err(Refusal::ActionBadArgument.into()),
        },
        Kind::SetNwEcn => Action::set(Field::IpEcn, at_most(r.u8()?, 3)?.into()),
        Kind::SetTpSrc => Action::SetTpSrc(r.u16()?),
        Kind::SetTpDst => Action::SetTpDst(r.u16()?),
        Kind::PushVlan => Action::PushVlan(one_of(r.u16()?, [0x8100, 0x88a8])?),
        Kind::PopVlan => Action::PopVlan,
        Kind::PushMpls => Action::PushMpls(one_of(r.u16()?, [0x8847, 0x8848])?),
        Kind::PopMpls => Action::PopMpls(r.u16()?),
        Kind::PushPbb => match r.u16()? {
            eth_type @ 0x88e7 => Action::PushPbb(eth_type),
            _ => return Err(Refusal::ActionBadArgument.into()),
        },
        Kind::PopPbb => Action::PopPbb,
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
        Kind::RegLoad => decode_reg_load(r)?,
        Kind::RegLoad2 => decode_reg_load2(r)?,
        Kind::Resubmit => return decode_resubmit(r),
        // What `decode_meter` has left: one behind other actions, or in a set.
        Kind::Meter => return Err(Refusal::ActionUnsupportedOrder.into()),
        Kind::WriteMetadata => {
            let (value, mask) = (r.u64()?, r.u64()?);
            return Ok(Item::Metadata(MetadataWrite { value, mask }));
        }
    };
    Ok(Item::Action(action))
}

/// Reads a meter, if the list begins with one: then all that follows is metered, as
/// by the instruction of 1.3 and 1.4.
pub(crate) fn decode_meter(r: &mut Reader<'_>) -> Result<Option<MeterId>, Malformed> {
    let mut head = r.clone();
    let row = match (head.u16(), head.u16()) {
        (Ok(number), Ok(8)) => Row::numbered(Number::Own(number), r.version()),
        _ => None,
    };
    if row.is_none_or(|row| row.kind != Kind::Meter) {
        return Ok(None);
    }
    r.skip(4)?;
    r.u32().map(|meter| Some(MeterId(meter)))
}

fn decode_enqueue(r: &mut Reader<'_>) -> Result<Action, Malformed> {
    let port = port_no::decode(r)?;
    r.skip(6)?;
    let queue = QueueId(r.u32()?);
    Ok(Action::Enqueue { port, queue })
}

/// `set_field`: one OXM field, padded to eight bytes (OF 1.3.5, 7.2.5), and with a
/// mask in 1.5 only (OF 1.5.1, 7.2.6.7).
fn decode_set_field(r: &mut Reader<'_>) -> Result<Action, Bad> {
    let whole = r.len();
    let header = Header::decode(r)?;
    if header.masked && r.version() != Version::V15 {
        return Err(Refusal::ActionBadSetType.into());
    }
    if (4 + 4 + header.length).next_multiple_of(8) != whole + 4 {
        return Err(Refusal::ActionBadSetLength.into());
    }
    let mut payload = r.sub_or(header.length, Refusal::ActionBadSetLength)?;
    let field = settable(header, &mut payload)?;
    decode_value(field, header, &mut payload)
}

/// Reads the bits to set and, if there is one, the mask.
fn decode_value(field: Field, header: Header, payload: &mut Reader<'_>) -> Result<Action, Bad> {
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

/// `NXAST_REG_LOAD`: up to 64 bits of a number into consecutive bits of a field.
fn decode_reg_load(r: &mut Reader<'_>) -> Result<Action, Bad> {
    let place = r.u16()?;
    let (offset, bits) = (u32::from(place >> 6), u32::from(place & 0x3f) + 1);
    let header = Header::decode(r)?;
    let value = u128::from(r.u64()?);
    // An experimenter's field has no room for whose it is here.
    let field = Field::from_oxm(header.id).or_else(|| Field::from_nxm(header.id));
    let field = match field {
        Some(field) if field.info().writable && !header.masked => field,
        _ => return Err(Refusal::ActionBadSetType.into()),
    };
    if header.length != field.bytes() || offset + bits > u32::from(field.info().bits) {
        return Err(Refusal::ActionBadSetLength.into());
    }
    let ones = (1_u128 << bits) - 1;
    if value & !ones != 0 {
        return Err(Refusal::ActionBadSetArgument.into());
    }
    Ok(set(field, value << offset, ones << offset))
}

/// `NXAST_REG_LOAD2`: a field as in a match, padded to eight bytes.
fn decode_reg_load2(r: &mut Reader<'_>) -> Result<Action, Bad> {
    let header = Header::decode(r)?;
    let mut payload = r.sub_or(header.length, Refusal::ActionBadSetLength)?;
    if r.len() >= 8 {
        return Err(Refusal::ActionBadSetLength.into());
    }
    let field = settable(header, &mut payload)?;
    decode_value(field, header, &mut payload)
}

/// `NXAST_RESUBMIT_TABLE` into another table by the same port: what `ovs-ofctl`
/// makes of `goto_table` for 1.0. Any other use is more than a rule can say.
fn decode_resubmit(r: &mut Reader<'_>) -> Result<Item, Bad> {
    let in_port = port_no::from_u16(r.u16()?);
    let table = TableId(r.u8()?);
    if in_port == PortNo::IN_PORT && table != TableId::ALL {
        Ok(Item::Goto(table))
    } else {
        Err(Refusal::ActionBadExperimenterType.into())
    }
}

#[cfg(test)]
mod tests;
