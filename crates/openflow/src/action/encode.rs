//! Encoding of actions.

use base::{MeterId, PortNo, TableId};
use flow::field::VID_PRESENT;
use flow::{Action, Field, Match, MetadataWrite, OptionTerm};

use super::legacy::{self, VlanTagState};
use super::{ActionKind, ActionLength, ActionNumber, ActionRow, EXPERIMENTER, extension};
use crate::codec::{EncodeError, Writer};
use crate::experimenter::{NICIRA, ONF};
use crate::fidelity::Fidelity;
use crate::oxm::{self, HeaderFamily, OxmHeader};
use crate::port_no;
use crate::version::Version;

/// The context of a list of actions: the match of its packets, and the fidelity of the encoding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodeContext<'a> {
    pub(crate) matching: &'a Match,
    pub(crate) fidelity: Fidelity,
}

/// The facts known at a position of a list, from the match and from the preceding actions.
#[derive(Clone, Copy, Debug)]
struct ListState {
    tag: VlanTagState,
    /// Set if an earlier action selected a queue.
    queue_set: bool,
}

impl ListState {
    const fn and(self, action: &Action) -> Self {
        Self {
            tag: self.tag.after(action),
            queue_set: self.queue_set || matches!(action, Action::SetQueue(_)),
        }
    }
}

/// Appends `actions`. With [`Fidelity::BestEffort`] it omits those that the version lacks.
pub(crate) fn encode(
    actions: &[Action],
    context: EncodeContext<'_>,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let mut before = ListState {
        tag: VlanTagState::of(context.matching),
        queue_set: false,
    };
    for action in actions {
        let length = w.len();
        match encode_one(action, context, before, w) {
            Err(_) if context.fidelity == Fidelity::BestEffort => w.truncate(length),
            result => result?,
        }
        before = before.and(action);
    }
    Ok(())
}

/// Appends `goto_table` as an action, for OpenFlow 1.0.
pub(crate) fn encode_goto(table: TableId, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    put(ActionKind::ResubmitTable, w, |w| {
        port_no::encode_u16(PortNo::IN_PORT, w)?;
        w.u8(table.0);
        Ok(())
    })
}

/// Appends `write_metadata` as an action, for OpenFlow 1.0.
pub(crate) fn encode_metadata(write: MetadataWrite, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    put(ActionKind::WriteMetadata, w, |w| {
        w.u64(write.value);
        w.u64(write.mask);
        Ok(())
    })
}

fn encode_one(
    action: &Action,
    context: EncodeContext<'_>,
    before: ListState,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    match *action {
        Action::Output { port, max_len } => put(ActionKind::Output, w, |w| {
            port_no::encode(port, w)?;
            w.u16(max_len.0);
            Ok(())
        }),
        Action::SetQueue(queue) => put_u32(ActionKind::SetQueue, queue.0, w),
        Action::Group(group) => put_u32(ActionKind::Group, group.0, w),
        Action::Meter(meter) => put_u32(ActionKind::Meter, meter.0, w),
        Action::SetField { field, value, mask } => set_field(field, value, mask, w),
        Action::PushVlan(eth_type) => put_u16(ActionKind::PushVlan, eth_type, w),
        Action::PopVlan => put_empty(ActionKind::PopVlan, w),
        Action::PushMpls(eth_type) => put_u16(ActionKind::PushMpls, eth_type, w),
        Action::PopMpls(eth_type) => put_u16(ActionKind::PopMpls, eth_type, w),
        Action::PushPbb(eth_type) => put_u16(ActionKind::PushPbb, eth_type, w),
        Action::PopPbb => put_empty(ActionKind::PopPbb, w),
        Action::SetMplsTtl(ttl) => put_u8(ActionKind::SetMplsTtl, ttl, w),
        Action::DecMplsTtl => put_empty(ActionKind::DecMplsTtl, w),
        Action::SetIpTtl(ttl) if has(ActionKind::SetIpTtl, w) => {
            put_u8(ActionKind::SetIpTtl, ttl, w)
        }
        Action::SetIpTtl(ttl) => reg_loads(Field::IpTtl, ttl.into(), Field::IpTtl.full_mask(), w),
        Action::DecIpTtl => put_empty(ActionKind::DecIpTtl, w),
        Action::CopyTtlOut => put_empty(ActionKind::CopyTtlOut, w),
        Action::CopyTtlIn => put_empty(ActionKind::CopyTtlIn, w),
        Action::Extended(ref extension) => extension::encode(extension, context, w),
        Action::Enqueue { .. }
        | Action::SetVlanVid(_)
        | Action::SetVlanPcp(_)
        | Action::SetNwSrc(_)
        | Action::SetNwDst(_)
        | Action::SetNwTos(_)
        | Action::SetTpSrc(_)
        | Action::SetTpDst(_) => encode_legacy(action, context, before, w),
    }
}

/// Appends an action that exists in the oldest versions only, or its translation.
fn encode_legacy(
    action: &Action,
    context: EncodeContext<'_>,
    before: ListState,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    match *action {
        Action::Enqueue { port, queue } if has(ActionKind::Enqueue, w) => {
            put(ActionKind::Enqueue, w, |w| {
                port_no::encode(port, w)?;
                w.zeros(6);
                w.u32(queue.0);
                Ok(())
            })
        }
        // The setters of 1.1 add no tag.
        Action::SetVlanVid(vid) if w.version() == Version::V10 => {
            put_u16(ActionKind::SetVlanVid, vid, w)
        }
        Action::SetVlanPcp(pcp) if w.version() == Version::V10 => {
            put_u8(ActionKind::SetVlanPcp, pcp, w)
        }
        Action::SetNwSrc(address) if has(ActionKind::SetNwSrc, w) => {
            put_u32(ActionKind::SetNwSrc, address, w)
        }
        Action::SetNwDst(address) if has(ActionKind::SetNwDst, w) => {
            put_u32(ActionKind::SetNwDst, address, w)
        }
        Action::SetNwTos(tos) if has(ActionKind::SetNwTos, w) => {
            put_u8(ActionKind::SetNwTos, tos, w)
        }
        Action::SetTpSrc(port) if has(ActionKind::SetTpSrc, w) => {
            put_u16(ActionKind::SetTpSrc, port, w)
        }
        Action::SetTpDst(port) if has(ActionKind::SetTpDst, w) => {
            put_u16(ActionKind::SetTpDst, port, w)
        }
        _ => encode_translated(action, context, before, w),
    }
}

/// Appends the equivalent of `action`, which exists in older versions only.
fn encode_translated(
    action: &Action,
    context: EncodeContext<'_>,
    before: ListState,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let translated =
        legacy::translate(action, context, before.tag).map_err(|part| w.unsupported(part))?;
    translated
        .iter()
        .try_for_each(|action| encode_one(action, context, before, w))?;
    match (action, before.queue_set, context.fidelity) {
        // Restores the original queue with Nicira's action;
        (Action::Enqueue { .. }, false, _) => put_empty(ActionKind::PopQueue, w),
        // no action restores a queue that an earlier action set.
        (Action::Enqueue { .. }, true, Fidelity::Lossless) => {
            Err(w.unsupported("an enqueue between outputs to another queue"))
        }
        _ => Ok(()),
    }
}

/// Appends a write to a field, in the best form that the version has.
pub(super) fn set_field(
    field: Field,
    value: u128,
    mask: u128,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let masked = mask != field.full_mask();
    if masked && w.version() != Version::V15 {
        return reg_loads(field, value, mask, w);
    }
    if let Some((kind, bytes, value)) = setter(field, value)
        && !has(ActionKind::SetField, w)
        && has(kind, w)
        && !(is_label(kind) && w.version() == Version::V10)
    {
        return put(kind, w, |w| {
            w.number(bytes, value);
            Ok(())
        });
    }
    if !has(ActionKind::SetField, w) {
        return reg_loads(field, value, mask, w);
    }
    put(ActionKind::SetField, w, |w| {
        oxm::encode_value(field, HeaderFamily::Oxm, (value, mask), w)
    })
}

/// Appends a write to a tunnel option. Nicira's action accepts masks in all versions.
pub(super) fn set_option(term: &OptionTerm, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let is_standard = term.is_exact() || w.version() == Version::V15;
    let kind = match has(ActionKind::SetField, w) && is_standard {
        true => ActionKind::SetField,
        false => ActionKind::RegLoad2,
    };
    put(kind, w, |w| oxm::encode_option(term, w))
}

/// The dedicated action of OpenFlow 1.0, 1.1 or Nicira that writes `field`, the length of its
/// argument in bytes, and the argument.
fn setter(field: Field, value: u128) -> Option<(ActionKind, usize, u128)> {
    let vid_bits = u128::from(VID_PRESENT - 1);
    Some(match field {
        Field::EthSrc => (ActionKind::SetDlSrc, 6, value),
        Field::EthDst => (ActionKind::SetDlDst, 6, value),
        Field::VlanVid => (ActionKind::SetVlanVid, 2, value & vid_bits),
        Field::VlanPcp => (ActionKind::SetVlanPcp, 1, value),
        Field::Ipv4Src => (ActionKind::SetNwSrc, 4, value),
        Field::Ipv4Dst => (ActionKind::SetNwDst, 4, value),
        Field::IpDscp => (ActionKind::SetNwTos, 1, value << 2),
        Field::IpEcn => (ActionKind::SetNwEcn, 1, value),
        Field::TcpSrc | Field::UdpSrc | Field::SctpSrc => (ActionKind::SetTpSrc, 2, value),
        Field::TcpDst | Field::UdpDst | Field::SctpDst => (ActionKind::SetTpDst, 2, value),
        Field::MplsLabel => (ActionKind::SetMplsLabel, 4, value),
        Field::MplsTc => (ActionKind::SetMplsTc, 1, value),
        Field::TunnelId if value <= u32::MAX.into() => (ActionKind::SetTunnel, 4, value),
        Field::TunnelId => (ActionKind::SetTunnel64, 8, value),
        _ => return None,
    })
}

/// True for the setters of MPLS fields. Open vSwitch 3.1 sends a write to such a field to peers of
/// OpenFlow 1.0 as `NXAST_REG_LOAD`, although Nicira's setters exist there.
const fn is_label(kind: ActionKind) -> bool {
    matches!(kind, ActionKind::SetMplsLabel | ActionKind::SetMplsTc)
}

/// Appends an `NXAST_REG_LOAD` for each run of ones in `mask`, at most 64 bits each. For an
/// experimenter field, which does not fit there, it appends `NXAST_REG_LOAD2`.
fn reg_loads(field: Field, value: u128, mask: u128, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let Some(header) = short_header(field) else {
        return reg_load2(field, value, mask, w);
    };
    let mut left = mask;
    while left != 0 {
        let offset = left.trailing_zeros();
        let bits = (left >> offset).trailing_ones().min(64);
        let ones = (1_u128 << bits) - 1;
        put(ActionKind::RegLoad, w, |w| {
            w.number(2, (offset << 6 | (bits - 1)).into());
            header.encode(w);
            w.number(8, value >> offset & ones);
            Ok(())
        })?;
        left &= !(ones << offset);
    }
    Ok(())
}

/// The header of `field`, unless it includes an experimenter id.
pub(super) fn short_header(field: Field) -> Option<OxmHeader> {
    let header = oxm::header_of(field, HeaderFamily::Nxm, false);
    header.filter(|header| header.length == field.bytes())
}

/// Appends `NXAST_REG_LOAD2`, which encodes the field as in a match.
pub(super) fn reg_load2(
    field: Field,
    value: u128,
    mask: u128,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    put(ActionKind::RegLoad2, w, |w| {
        oxm::encode_value(field, HeaderFamily::Nxm, (value, mask), w)
    })
}

/// Appends a meter as an action of 1.5.
pub(crate) fn encode_meter(meter: MeterId, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    put_u32(ActionKind::Meter, meter.0, w)
}

fn has(kind: ActionKind, w: &Writer<'_>) -> bool {
    ActionRow::by_kind(kind, w.version()).is_some()
}

fn put_empty(kind: ActionKind, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    put(kind, w, |_| Ok(()))
}

fn put_u8(kind: ActionKind, argument: u8, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    put(kind, w, |w| {
        w.u8(argument);
        Ok(())
    })
}

fn put_u16(kind: ActionKind, argument: u16, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    put(kind, w, |w| {
        w.u16(argument);
        Ok(())
    })
}

fn put_u32(kind: ActionKind, argument: u32, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    put(kind, w, |w| {
        w.u32(argument);
        Ok(())
    })
}

/// Appends the header of an experimenter action.
fn experimenter(id: u32, number: u16, w: &mut Writer<'_>) {
    w.u16(EXPERIMENTER);
    w.u16(0);
    w.u32(id);
    w.u16(number);
}

/// Appends an action in the layout of its row: header, padding, arguments, padding.
pub(super) fn put(
    kind: ActionKind,
    w: &mut Writer<'_>,
    arguments: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let row = ActionRow::by_kind(kind, w.version()).ok_or_else(|| w.unsupported("this action"))?;
    w.nested(2, |w| {
        match row.number {
            ActionNumber::Standard(number) => {
                w.u16(number);
                w.u16(0);
            }
            ActionNumber::Nicira(number) => experimenter(NICIRA, number, w),
            ActionNumber::Onf(number) => experimenter(ONF, number, w),
        }
        w.zeros(row.skip);
        arguments(w)?;
        match row.length {
            ActionLength::Exactly(length) => w.zeros(length - w.len()),
            ActionLength::AtLeast(_) => w.pad_to(8),
        }
        Ok(())
    })
    .map(drop)
}
