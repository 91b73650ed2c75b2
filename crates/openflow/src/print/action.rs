//! Actions and instructions as they lie on the wire: what has one meaning and two
//! forms is told in the form that was sent (`mod_dl_src` of 1.0 is a `set_field`).

use ::flow::{Action, Refusal};
use packet::MacAddr;

use flow::text::{Named, Roster};

use super::names::Unreadable;
use super::text::Hex;
use crate::action::{self, Item, Kind};
use crate::codec::Reader;
use crate::instruction;
use crate::version::Version;

/// Bytes of an action of Nicira's before the actions that are nested in it.
const CLONE_HEAD: usize = 16;

/// Bytes of an instruction before the actions in it.
const INSTRUCTION_HEAD: usize = 8;

/// A list of actions with commas between them; none are `drop`.
pub(super) fn list(r: Reader<'_>, names: &Roster) -> Result<String, Unreadable> {
    let mut told = Vec::new();
    each(r, names, &mut told)?;
    Ok(joined(&told))
}

/// Adds the text of each action.
fn each(mut r: Reader<'_>, names: &Roster, told: &mut Vec<String>) -> Result<(), Unreadable> {
    while !r.is_empty() {
        if let Some(meter) = action::decode_meter(&mut r)? {
            told.push(format!("meter:{}", meter.0));
            continue;
        }
        let mut start = r.clone();
        if told
            .last()
            .is_some_and(|last| last.starts_with("write_metadata:"))
        {
            return Err(r.fail(Refusal::ActionUnsupportedOrder).into());
        }
        let (kind, item) = action::decode_named(&mut r)?;
        let nested = start.sub(start.len() - r.len())?;
        told.push(one(kind, &item, names, nested)?);
    }
    Ok(())
}

fn joined(told: &[String]) -> String {
    match told {
        [] => "drop".to_owned(),
        told => told.join(","),
    }
}

/// The text of an action, whose bytes `whole` has.
fn one(
    kind: Kind,
    item: &Item,
    names: &Roster,
    mut whole: Reader<'_>,
) -> Result<String, Unreadable> {
    let action = match item {
        Item::Action(action) => action,
        Item::PopQueue => return Ok("pop_queue".to_owned()),
        Item::Metadata(write) => return Ok(metadata(write.value, write.mask)),
    };
    if kind == Kind::Clone {
        whole.skip(CLONE_HEAD)?;
        return Ok(format!("clone({})", list(whole, names)?));
    }
    Ok(setter(kind, action, whole.version()).unwrap_or_else(|| Named(action, names).to_string()))
}

/// The text of a setter that is a set-field under another name.
fn setter(kind: Kind, action: &Action, version: Version) -> Option<String> {
    if kind == Kind::PopVlan && version == Version::V10 {
        return Some("strip_vlan".to_owned());
    }
    if let (Kind::SetField, Action::SetIpTtl(ttl)) = (kind, action) {
        return Some(format!("set_field:{ttl}->nw_ttl"));
    }
    let Action::SetField { value, .. } = action else {
        return None;
    };
    let number = u64::try_from(*value).unwrap_or(u64::MAX);
    Some(match kind {
        Kind::SetDlSrc => format!("mod_dl_src:{}", MacAddr::from_u64(number)),
        Kind::SetDlDst => format!("mod_dl_dst:{}", MacAddr::from_u64(number)),
        Kind::SetNwEcn => format!("mod_nw_ecn:{number}"),
        Kind::SetVlanVid => format!("set_vlan_vid:{}", number & 0xfff),
        Kind::SetVlanPcp => format!("set_vlan_pcp:{number}"),
        Kind::SetMplsLabel => format!("set_mpls_label({number})"),
        Kind::SetMplsTc => format!("set_mpls_tc({number})"),
        Kind::SetTunnel => format!("set_tunnel:{}", Hex(number)),
        Kind::SetTunnel64 => format!("set_tunnel64:{}", Hex(number)),
        _ => return None,
    })
}

fn metadata(value: u64, mask: u64) -> String {
    match mask {
        u64::MAX => format!("write_metadata:{}", Hex(value)),
        mask => format!("write_metadata:{}/{}", Hex(value), Hex(mask)),
    }
}

/// What a rule does: the actions of 1.0, or instructions in the order in which they
/// are done.
pub(super) fn instructions(r: &mut Reader<'_>) -> Result<String, Unreadable> {
    let names = Roster::nameless();
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
            instruction::APPLY_ACTIONS => each(body, names, &mut apply)?,
            instruction::WRITE_ACTIONS => {
                writes = true;
                each(body, names, &mut write)?;
            }
            _ => {}
        }
    }
    let mut told = Vec::new();
    if let Some(meter) = read.meter.filter(|_| r.version() < Version::V15) {
        told.push(format!("meter:{}", meter.0));
    }
    told.append(&mut apply);
    if read.clear {
        told.push("clear_actions".to_owned());
    }
    if writes {
        told.push(format!("write_actions({})", joined(&write)));
    }
    told.extend(read.metadata.map(|write| metadata(write.value, write.mask)));
    told.extend(read.goto.map(|table| format!("goto_table:{table}")));
    Ok(joined(&told))
}
