//! Decoding of actions. `action::numbers` has their numbers in all versions and Nicira's,
//! `action::encode` writes them, and `action::legacy` translates OpenFlow 1.0's setters for
//! versions without them.
//!
//! The decoder accepts Nicira's actions in every version, as Open vSwitch does. Those without an
//! equivalent in the specification are in `action::extension`.

mod argument;
mod encode;
mod extension;
mod legacy;
pub(crate) mod numbers;

use std::sync::Arc;

use base::{GroupId, MeterId, QueueId};
use flow::{Action, Extension, Field, MaxLen, MetadataWrite, Refusal};

use argument::{at_most, set_vlan_pcp, set_vlan_vid, tag_of};
pub(crate) use encode::{EncodeContext, encode, encode_goto, encode_metadata, encode_meter};
pub(crate) use numbers::{ActionKind, standard_numbers};
use numbers::{ActionLength, ActionNumber, ActionRow, EXPERIMENTER};

use crate::codec::{Malformed, Reader};
use crate::experimenter::{NICIRA, ONF};
use crate::oxm::{self, OxmHeader};
use crate::port_no;
use crate::version::Version;

/// An entry of an action list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ActionItem {
    /// An action of the `flow` crate.
    Action(Action),
    /// `NXAST_POP_QUEUE`: restores the queue that the packet had at the start.
    PopQueue,
    /// OpenFlow 1.0's write to the metadata register (`NXAST_WRITE_METADATA`).
    Metadata(MetadataWrite),
}

/// The capacity to reserve for the actions up to the end of `r`. An action has at least eight
/// bytes. Few rules have more than four actions, so the capacity is at most four.
pub(crate) const fn capacity_hint(r: &Reader<'_>) -> usize {
    match r.len() / 8 {
        few @ ..4 => few,
        _ => 4,
    }
}

/// Decodes actions to the end of `r`. Refuses actions that later versions have as instructions.
pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Vec<Action>, Malformed> {
    let mut actions = Vec::new();
    decode_into(r, &mut actions)?;
    Ok(actions)
}

/// Like [`decode`], but appends to `actions`.
pub(crate) fn decode_into(r: &mut Reader<'_>, actions: &mut Vec<Action>) -> Result<(), Malformed> {
    while !r.is_empty() {
        let unknown = r.fail(Refusal::ActionBadExperimenterType);
        match decode_one(r)? {
            ActionItem::Action(action) => actions.push(action),
            ActionItem::PopQueue => pop_queue(actions),
            ActionItem::Metadata(_) => return Err(unknown),
        }
    }
    Ok(())
}

/// Handles `pop_queue`: folds `set_queue`, one output and `pop_queue` into [`Action::Enqueue`]. In
/// any other list it appends [`Extension::PopQueue`].
pub(crate) fn pop_queue(actions: &mut Vec<Action>) {
    let is_set = |action: &Action| matches!(action, Action::SetQueue(_));
    let folded = match actions.as_slice() {
        [
            before @ ..,
            Action::SetQueue(queue),
            Action::Output { port, .. },
        ] if !before.iter().any(is_set) => Some((before.len(), *port, *queue)),
        _ => None,
    };
    match folded {
        Some((before, port, queue)) => {
            actions.truncate(before);
            actions.push(Action::Enqueue { port, queue });
        }
        None => actions.push(Action::Extended(Extension::PopQueue)),
    }
}

/// Decodes the next action.
pub(crate) fn decode_one(r: &mut Reader<'_>) -> Result<ActionItem, Malformed> {
    decode_with_kind(r).map(|(_, item)| item)
}

/// Like [`decode_one`], but also returns the action's kind on the wire.
pub(crate) fn decode_with_kind(r: &mut Reader<'_>) -> Result<(ActionKind, ActionItem), Malformed> {
    let start = r.clone();
    let mut head = r.clone().on_short(Refusal::ActionBadLength);
    let (number, length) = (head.u16()?, usize::from(head.u16()?));
    if length < 8 || length % 8 != 0 {
        return Err(start.fail(Refusal::ActionBadLength));
    }
    let mut body = r.sub_or(length, Refusal::ActionBadLength)?;
    body.skip(4)?;
    let row = action_row(number, &start, &mut body)?;
    let fits = match row.length {
        ActionLength::Exactly(required) => length == required,
        ActionLength::AtLeast(least) => length >= least,
    };
    if !fits {
        return Err(start.fail(Refusal::ActionBadLength));
    }
    let wrong = |refusal| match refusal {
        BodyError::Argument(refusal) => start.fail(refusal),
        BodyError::Shape(malformed) => malformed,
    };
    match row.kind {
        ActionKind::Controller2 | ActionKind::WriteMetadata => {
            body.zeros(row.skip, Refusal::RequestMustBeZero)?;
        }
        _ => body.skip(row.skip)?,
    }
    let item = decode_body(row.kind, &mut body).map_err(wrong)?;
    if let Some(refusal) = padding_refusal(row.kind) {
        body.zeros(body.len(), refusal)?;
    }
    Ok((row.kind, item))
}

/// The error for nonzero padding after the arguments of an action. The specification requires zeros
/// after a field (OF 1.3.5, 7.2.5), and `nicira-ext.h` where a later form may use the bytes; other
/// padding is not checked. The error is the one that Open vSwitch 3.1 returns.
const fn padding_refusal(kind: ActionKind) -> Option<Refusal> {
    match kind {
        ActionKind::SetField | ActionKind::RegLoad2 => Some(Refusal::ActionBadSetArgument),
        ActionKind::ResubmitTable
        | ActionKind::ResubmitConnection
        | ActionKind::OutputReg
        | ActionKind::Learn
        | ActionKind::Learn2 => Some(Refusal::ActionBadArgument),
        ActionKind::OutputReg2
        | ActionKind::RegMove
        | ActionKind::CopyField
        | ActionKind::StackPush
        | ActionKind::StackPop
        | ActionKind::CheckPacketLarger
        | ActionKind::Sample3
        | ActionKind::Sample4 => Some(Refusal::RequestMustBeZero),
        _ => None,
    }
}

/// The row of the action. Advances `body` past the experimenter's id and number.
fn action_row(
    number: u16,
    start: &Reader<'_>,
    body: &mut Reader<'_>,
) -> Result<&'static ActionRow, Malformed> {
    let version = body.version();
    if number != EXPERIMENTER {
        let row = ActionRow::by_number(ActionNumber::Standard(number), version);
        return row.ok_or_else(|| start.fail(Refusal::ActionBadType));
    }
    let action_number = match body.u32()? {
        NICIRA => ActionNumber::Nicira,
        ONF => ActionNumber::Onf,
        _ => return Err(start.fail(Refusal::ActionBadExperimenter)),
    };
    let number = body.u16()?;
    let row = ActionRow::by_number(action_number(number), version);
    row.ok_or_else(|| start.fail(Refusal::ActionBadExperimenterType))
}

/// The reason to refuse the body of an action.
enum BodyError {
    /// A value that is not allowed.
    Argument(Refusal),
    /// A malformed layout.
    Shape(Malformed),
}

impl From<Malformed> for BodyError {
    fn from(malformed: Malformed) -> Self {
        Self::Shape(malformed)
    }
}

impl From<Refusal> for BodyError {
    fn from(refusal: Refusal) -> Self {
        Self::Argument(refusal)
    }
}

/// Decodes the arguments.
fn decode_body(kind: ActionKind, r: &mut Reader<'_>) -> Result<ActionItem, BodyError> {
    let action = match kind {
        // `max_len` has a meaning only for the controller port (OF 1.3.5, 7.2.5), but is kept for
        // every port.
        ActionKind::Output => Action::Output {
            port: port_no::decode(r)?,
            max_len: MaxLen(r.u16()?),
        },
        ActionKind::Enqueue => decode_enqueue(r)?,
        ActionKind::SetQueue => Action::SetQueue(QueueId(r.u32()?)),
        ActionKind::PopQueue => return Ok(ActionItem::PopQueue),
        ActionKind::Group => Action::Group(GroupId(r.u32()?)),
        ActionKind::SetField => decode_set_field(r)?,
        ActionKind::SetVlanVid => set_vlan_vid(at_most(r.u16()?, 0x0fff)?, r.version()),
        ActionKind::SetVlanPcp => set_vlan_pcp(at_most(r.u8()?, 7)?, r.version()),
        ActionKind::SetDlSrc => Action::set(Field::EthSrc, r.number(6)?),
        ActionKind::SetDlDst => Action::set(Field::EthDst, r.number(6)?),
        ActionKind::SetNwSrc => Action::SetNwSrc(r.u32()?),
        ActionKind::SetNwDst => Action::SetNwDst(r.u32()?),
        ActionKind::SetNwTos => match r.u8()? {
            tos if tos & 3 == 0 => Action::SetNwTos(tos),
            _ => return Err(Refusal::ActionBadArgument.into()),
        },
        ActionKind::SetNwEcn => Action::set(Field::IpEcn, at_most(r.u8()?, 3)?.into()),
        ActionKind::SetTpSrc => Action::SetTpSrc(r.u16()?),
        ActionKind::SetTpDst => Action::SetTpDst(r.u16()?),
        ActionKind::PushVlan => Action::PushVlan(tag_of(r.u16()?, &[0x8100, 0x88a8])?),
        ActionKind::PopVlan => Action::PopVlan,
        ActionKind::PushMpls => Action::PushMpls(tag_of(r.u16()?, &[0x8847, 0x8848])?),
        ActionKind::PopMpls => Action::PopMpls(r.u16()?),
        ActionKind::PushPbb => Action::PushPbb(tag_of(r.u16()?, &[0x88e7])?),
        ActionKind::PopPbb => Action::PopPbb,
        ActionKind::SetMplsTtl => Action::SetMplsTtl(r.u8()?),
        ActionKind::DecMplsTtl => Action::DecMplsTtl,
        ActionKind::SetMplsLabel => {
            Action::set(Field::MplsLabel, at_most(r.u32()?, 0xf_ffff)?.into())
        }
        ActionKind::SetMplsTc => Action::set(Field::MplsTc, at_most(r.u8()?, 7)?.into()),
        ActionKind::SetIpTtl => Action::SetIpTtl(r.u8()?),
        ActionKind::DecIpTtl => Action::DecIpTtl,
        ActionKind::CopyTtlOut => Action::CopyTtlOut,
        ActionKind::CopyTtlIn => Action::CopyTtlIn,
        ActionKind::SetTunnel => Action::set(Field::TunnelId, r.u32()?.into()),
        ActionKind::SetTunnel64 => Action::set(Field::TunnelId, r.u64()?.into()),
        ActionKind::RegLoad2 => decode_reg_load2(r)?,
        ActionKind::Meter => Action::Meter(MeterId(r.u32()?)),
        ActionKind::WriteMetadata => {
            let (value, mask) = (r.u64()?, r.u64()?);
            return Ok(ActionItem::Metadata(MetadataWrite { value, mask }));
        }
        kind => Action::Extended(extension::decode(kind, r)?),
    };
    Ok(ActionItem::Action(action))
}

/// Decodes a meter action at the start of the list. It meters all actions after it, as the meter
/// instruction of 1.3 and 1.4 does.
pub(crate) fn decode_meter(r: &mut Reader<'_>) -> Result<Option<MeterId>, Malformed> {
    let mut head = r.clone();
    let row = match (head.u16(), head.u16()) {
        (Ok(number), Ok(8)) => ActionRow::by_number(ActionNumber::Standard(number), r.version()),
        _ => None,
    };
    if row.is_none_or(|row| row.kind != ActionKind::Meter) {
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

/// `set_field`: one OXM field, padded to eight bytes (OF 1.3.5, 7.2.5). Only 1.5 allows a mask
/// (OF 1.5.1, 7.2.6.7).
fn decode_set_field(r: &mut Reader<'_>) -> Result<Action, BodyError> {
    let whole = r.len();
    let header = OxmHeader::decode(r)?;
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

/// Decodes the value and the optional mask.
fn decode_value(
    field: Field,
    header: OxmHeader,
    payload: &mut Reader<'_>,
) -> Result<Action, BodyError> {
    if field.option().is_some() {
        return decode_option(field, header, payload);
    }
    let width = field.bytes();
    let value = payload.number(width)?;
    let mask = if header.masked {
        payload.number(width)?
    } else {
        field.full_mask()
    };
    payload.end()?;
    if value & !(mask & field.full_mask()) != 0 {
        return Err(Refusal::ActionBadSetArgument.into());
    }
    Ok(set(field, value, mask & field.full_mask()))
}

/// Decodes the value of a tunnel option; its mask must have at least one bit.
fn decode_option(
    field: Field,
    header: OxmHeader,
    payload: &mut Reader<'_>,
) -> Result<Action, BodyError> {
    let term = oxm::decode_option(field, header, payload)?;
    if term.mask.is_zero() || !(term.value & !term.mask).is_zero() {
        return Err(Refusal::ActionBadSetArgument.into());
    }
    Ok(Action::Extended(Extension::SetOption(Arc::new(term))))
}

/// The field of a header, if an action may set it.
fn settable(header: OxmHeader, payload: &mut Reader<'_>) -> Result<Field, BodyError> {
    match header.field(payload)? {
        Some(field) if field.info().writable => Ok(field),
        _ => Err(Refusal::ActionBadSetType.into()),
    }
}

/// The action that writes the masked bits of `field`. The TTL has an action of its own.
fn set(field: Field, value: u128, mask: u128) -> Action {
    match (field, u8::try_from(value)) {
        (Field::IpTtl, Ok(ttl)) if mask == field.full_mask() => Action::SetIpTtl(ttl),
        _ => Action::SetField { field, value, mask },
    }
}

/// `NXAST_REG_LOAD2`: a field encoded as in a match, padded to eight bytes.
fn decode_reg_load2(r: &mut Reader<'_>) -> Result<Action, BodyError> {
    let header = OxmHeader::decode(r)?;
    let mut payload = r.sub_or(header.length, Refusal::ActionBadSetLength)?;
    if r.len() >= 8 {
        return Err(Refusal::ActionBadSetLength.into());
    }
    let field = settable(header, &mut payload)?;
    decode_value(field, header, &mut payload)
}

#[cfg(test)]
mod tests;
