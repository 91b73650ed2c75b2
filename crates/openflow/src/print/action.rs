//! Actions and instructions in their wire form: of two forms with one meaning, the text shows the
//! one in the message (`mod_dl_src` of 1.0 is a `set_field`).

use ::flow::{Action, Refusal, writes_connection};
use packet::MacAddr;

use flow::text::{NameMap, WithNames};

use super::refusal_names::DecodeErrorName;
use super::text::AlternateHex;
use crate::action::{self, ActionItem, ActionKind};
use crate::codec::Reader;
use crate::instruction;
use crate::version::Version;

/// Bytes of a Nicira action before its nested actions.
const CLONE_HEAD: usize = 16;

/// Bytes of an instruction before its actions.
const INSTRUCTION_HEAD: usize = 8;

/// Formats a list of actions, separated by commas; an empty list is `drop`.
pub(super) fn list(r: Reader<'_>, names: &NameMap) -> Result<String, DecodeErrorName> {
    let mut texts = Vec::new();
    format_each(r, names, &mut texts)?;
    Ok(join(&texts))
}

/// Formats each action.
fn format_each(
    mut r: Reader<'_>,
    names: &NameMap,
    texts: &mut Vec<String>,
) -> Result<(), DecodeErrorName> {
    while !r.is_empty() {
        if let Some(meter) = action::decode_meter(&mut r)? {
            texts.push(format!("meter:{}", meter.0));
            continue;
        }
        let mut start = r.clone();
        if texts
            .last()
            .is_some_and(|last| last.starts_with("write_metadata:"))
        {
            return Err(r.fail(Refusal::ActionUnsupportedOrder).into());
        }
        let (kind, item) = action::decode_with_kind(&mut r)?;
        let nested = start.sub(start.len() - r.len())?;
        texts.push(format_action(kind, &item, names, nested)?);
    }
    Ok(())
}

fn join(texts: &[String]) -> String {
    match texts {
        [] => "drop".to_owned(),
        texts => texts.join(","),
    }
}

/// Formats an action, which consists of the bytes of `whole`.
fn format_action(
    kind: ActionKind,
    item: &ActionItem,
    names: &NameMap,
    mut whole: Reader<'_>,
) -> Result<String, DecodeErrorName> {
    let action = match item {
        ActionItem::Action(action) => action,
        ActionItem::PopQueue => return Ok("pop_queue".to_owned()),
        ActionItem::Metadata(write) => return Ok(metadata(write.value, write.mask)),
    };
    // Only `ct`, whose inner actions are formatted with it, may have these.
    if kind == ActionKind::Nat || writes_connection(action) {
        return Err(whole.fail(Refusal::ActionBadSetArgument).into());
    }
    if kind == ActionKind::Clone {
        whole.skip(CLONE_HEAD)?;
        return Ok(format!("clone({})", list(whole, names)?));
    }
    Ok(setter(kind, action, whole.version())
        .unwrap_or_else(|| WithNames(action, names).to_string()))
}

/// Formats a setter that is a set-field under another name.
fn setter(kind: ActionKind, action: &Action, version: Version) -> Option<String> {
    if kind == ActionKind::PopVlan && version == Version::V10 {
        return Some("strip_vlan".to_owned());
    }
    if let (ActionKind::SetField, Action::SetIpTtl(ttl)) = (kind, action) {
        return Some(format!("set_field:{ttl}->nw_ttl"));
    }
    let Action::SetField { value, .. } = action else {
        return None;
    };
    let number = u64::try_from(*value).unwrap_or(u64::MAX);
    Some(match kind {
        ActionKind::SetDlSrc => format!("mod_dl_src:{}", MacAddr::from_u64(number)),
        ActionKind::SetDlDst => format!("mod_dl_dst:{}", MacAddr::from_u64(number)),
        ActionKind::SetNwEcn => format!("mod_nw_ecn:{number}"),
        ActionKind::SetVlanVid => format!("set_vlan_vid:{}", number & 0xfff),
        ActionKind::SetVlanPcp => format!("set_vlan_pcp:{number}"),
        ActionKind::SetMplsLabel => format!("set_mpls_label({number})"),
        ActionKind::SetMplsTc => format!("set_mpls_tc({number})"),
        ActionKind::SetTunnel => format!("set_tunnel:{}", AlternateHex(number)),
        ActionKind::SetTunnel64 => format!("set_tunnel64:{}", AlternateHex(number)),
        _ => return None,
    })
}

fn metadata(value: u64, mask: u64) -> String {
    match mask {
        u64::MAX => format!("write_metadata:{}", AlternateHex(value)),
        mask => format!(
            "write_metadata:{}/{}",
            AlternateHex(value),
            AlternateHex(mask)
        ),
    }
}

/// Formats the actions of 1.0, or instructions in the order of their execution.
pub(super) fn instructions(r: &mut Reader<'_>) -> Result<String, DecodeErrorName> {
    let names = NameMap::empty();
    if r.version() == Version::V10 {
        let whole = r.clone();
        r.rest();
        return list(whole, names);
    }
    let mut rest = r.clone();
    let read = instruction::decode(r)?;
    let (mut apply, mut write, mut writes) = (Vec::new(), Vec::new(), false);
    while !rest.is_empty() {
        let mut head = rest.clone();
        let (kind, length) = (head.u16()?, usize::from(head.u16()?));
        let mut body = rest.sub_or(length, Refusal::InstructionBadLength)?;
        body.skip(INSTRUCTION_HEAD)?;
        match kind {
            instruction::APPLY_ACTIONS => format_each(body, names, &mut apply)?,
            instruction::WRITE_ACTIONS => {
                writes = true;
                format_each(body, names, &mut write)?;
            }
            _ => {}
        }
    }
    let mut texts = Vec::new();
    if let Some(meter) = read.meter.filter(|_| r.version() < Version::V15) {
        texts.push(format!("meter:{}", meter.0));
    }
    texts.append(&mut apply);
    if read.clear {
        texts.push("clear_actions".to_owned());
    }
    if writes {
        texts.push(format!("write_actions({})", join(&write)));
    }
    texts.extend(read.metadata.map(|write| metadata(write.value, write.mask)));
    texts.extend(read.goto.map(|table| format!("goto_table:{table}")));
    Ok(join(&texts))
}
