//! Reader of one action.

use std::sync::Arc;

use base::{GroupId, MeterId, PortNo, QueueId};

use super::error::ParseError;
use super::lexer::{KeyValue, Token};
use super::nearest::with_nearest;
use super::number::{number, unsigned};
use super::{address, extension_read, match_read, names, options, special};
use crate::action::{Action, MaxLen};
use crate::extension::Extension;
use crate::field::{Field, VID_PRESENT};
use crate::options::OptionTerm;

/// Reads the argument of one action.
type ActionReader = fn(KeyValue<'_>) -> Result<Action, ParseError>;

/// Every action by every name.
#[rustfmt::skip]
const ACTIONS: &[(&str, ActionReader)] = &[
    ("output",         |item| output(item.required_value()?)),
    ("controller",     controller),
    ("enqueue",        |item| enqueue(item.required_value()?)),
    ("set_queue",      |item| argument(item).map(|number| Action::SetQueue(QueueId(number)))),
    ("meter",          |item| argument(item).map(|number| Action::Meter(MeterId(number)))),
    ("group",          |item| argument(item).map(|number| Action::Group(GroupId(number)))),
    ("set_field",      |item| set_field(item.required_value()?)),
    ("mod_dl_src",     |item| set(Field::EthSrc, item)),
    ("mod_dl_dst",     |item| set(Field::EthDst, item)),
    ("mod_nw_src",     |item| ipv4(item).map(Action::SetNwSrc)),
    ("mod_nw_dst",     |item| ipv4(item).map(Action::SetNwDst)),
    ("mod_nw_tos",     |item| special::tos(item.required_value()?).map(|dscp| Action::SetNwTos(tos_byte(dscp)))),
    ("mod_nw_ecn",     |item| set(Field::IpEcn, item)),
    ("mod_nw_ttl",     |item| argument(item).map(Action::SetIpTtl)),
    ("mod_tp_src",     |item| argument(item).map(Action::SetTpSrc)),
    ("mod_tp_dst",     |item| argument(item).map(Action::SetTpDst)),
    ("dec_ttl",        dec_ttl),
    ("mod_vlan_vid",   |item| vid(item).map(Action::SetVlanVid)),
    ("mod_vlan_pcp",   |item| pcp(item).map(Action::SetVlanPcp)),
    ("set_vlan_vid",   |item| vid(item).map(|vid| Action::set(Field::VlanVid, u128::from(vid | VID_PRESENT)))),
    ("set_vlan_pcp",   |item| set(Field::VlanPcp, item)),
    ("push_vlan",      |item| argument(item).map(Action::PushVlan)),
    ("pop_vlan",       |item| bare(item, Action::PopVlan)),
    ("strip_vlan",     |item| bare(item, Action::PopVlan)),
    ("push_mpls",      |item| argument(item).map(Action::PushMpls)),
    ("pop_mpls",       |item| argument(item).map(Action::PopMpls)),
    ("set_mpls_label", |item| set(Field::MplsLabel, item)),
    ("set_mpls_tc",    |item| set(Field::MplsTc, item)),
    ("set_mpls_ttl",   |item| argument(item).map(Action::SetMplsTtl)),
    ("dec_mpls_ttl",   |item| bare(item, Action::DecMplsTtl)),
    ("copy_ttl_out",   |item| bare(item, Action::CopyTtlOut)),
    ("copy_ttl_in",    |item| bare(item, Action::CopyTtlIn)),
    ("push_pbb",       |item| argument(item).map(Action::PushPbb)),
    ("pop_pbb",        |item| bare(item, Action::PopPbb)),
    ("set_tunnel",     |item| set(Field::TunnelId, item)),
    ("set_tunnel64",   |item| set(Field::TunnelId, item)),
];

/// The names of all of them.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ACTIONS.iter().map(|(name, _)| *name)
}

/// Parses an action, or a port as an output to it.
pub(super) fn action(item: KeyValue<'_>) -> Result<Action, ParseError> {
    let name = item.key.text;
    if let Some((_, read)) = ACTIONS.iter().find(|(known, _)| is_name(known, name)) {
        return read(item.reject_target()?);
    }
    if let Some(read) = extension_read::action(item) {
        return read;
    }
    let Ok(port) = address::port(item.key) else {
        let known = ACTIONS.iter().map(|(known, _)| *known);
        let known = known.chain(extension_read::names()).chain(["drop"]);
        return Err(item.key.error(with_nearest("unknown action", name, known)));
    };
    item.reject_value()?;
    Ok(Action::output(port))
}

/// Compares names exactly, except for `controller`, which like all ports has any case.
fn is_name(known: &str, name: &str) -> bool {
    known == name || (known == "controller" && known.eq_ignore_ascii_case(name))
}

/// Parses the only argument, a number in the action's range.
fn argument<T: super::number::BoundedInt>(item: KeyValue<'_>) -> Result<T, ParseError> {
    number(item.required_value()?)
}

/// Checks that there is no argument.
fn bare(item: KeyValue<'_>, action: Action) -> Result<Action, ParseError> {
    item.reject_value().map(|()| action)
}

/// Reads a port to send to.
fn output(token: Token<'_>) -> Result<Action, ParseError> {
    if let Some(read) = extension_read::output(token) {
        return read;
    }
    address::port(token).map(Action::output)
}

/// Reads `controller`, `controller:128` or `controller(max_len=128)`.
fn controller(item: KeyValue<'_>) -> Result<Action, ParseError> {
    let mut max_len = MaxLen::WHOLE;
    match item.value {
        None => {}
        Some(length) if length.text.starts_with(|c: char| c.is_ascii_digit()) => {
            max_len = MaxLen(number(length)?);
        }
        Some(options) => return extension_read::controller(options),
    }
    Ok(Action::Output {
        port: PortNo::CONTROLLER,
        max_len,
    })
}

/// Reads `port:queue` or `port,queue`.
fn enqueue(token: Token<'_>) -> Result<Action, ParseError> {
    let parts = token.split_once(":").or_else(|| token.split_once(","));
    let Some((port, queue)) = parts else {
        return Err(token.error("expected a port and a queue: enqueue:PORT:QUEUE"));
    };
    Ok(Action::Enqueue {
        port: address::port(port.trim())?,
        queue: QueueId(number(queue.trim())?),
    })
}

/// Reads `value[/mask]->field`.
fn set_field(token: Token<'_>) -> Result<Action, ParseError> {
    let Some((value, name)) = token.split_once("->") else {
        return Err(token.error("expected a value and a field: set_field:VALUE->FIELD"));
    };
    if let Some(field) = names::settable(name.text).filter(|field| field.option().is_some()) {
        return set_option(field, value);
    }
    let (field, (value, mask)) = match name.text {
        "nw_tos" => {
            let field = Field::IpDscp;
            (field, (special::tos(value)?, field.full_mask()))
        }
        _ => {
            let field = settable(name)?;
            (field, match_read::value(field, value)?)
        }
    };
    if !field.info().writable {
        return Err(name.error("this field cannot be set"));
    }
    if mask != field.full_mask() && field.info().maskable == crate::field::Maskable::No {
        return Err(token.error("this field does not support masks"));
    }
    if mask == 0 {
        return Err(token.error("the mask selects no bits"));
    }
    Ok(Action::SetField { field, value, mask })
}

/// Reads the bits of a tunnel option.
fn set_option(field: Field, token: Token<'_>) -> Result<Action, ParseError> {
    let (value, mask) = options::masked(token)?;
    if mask.is_zero() {
        return Err(token.error("the mask selects no bits"));
    }
    let term = Arc::new(OptionTerm { field, value, mask });
    Ok(Action::Extended(Extension::SetOption(term)))
}

/// The field that set-field calls by this name.
fn settable(name: Token<'_>) -> Result<Field, ParseError> {
    let plain = match name.text {
        "nw_src" => "ip_src",
        "nw_dst" => "ip_dst",
        "tp_src" => "tcp_src",
        "tp_dst" => "tcp_dst",
        "nw_proto" => "ip_proto",
        "in_port" => "in_port_nxm",
        "in_port_oxm" => "in_port",
        other => other,
    };
    names::settable(plain).ok_or_else(|| {
        name.error(match names::is_unsupported_field(plain) {
            true => "not supported: setting this field",
            false => "expected a field name, such as eth_src or vlan_vid",
        })
    })
}

/// Reads a whole value of `field`.
fn set(field: Field, item: KeyValue<'_>) -> Result<Action, ParseError> {
    let token = item.required_value()?;
    match match_read::value(field, token)? {
        (value, mask) if mask == field.full_mask() => Ok(Action::set(field, value)),
        _ => Err(token.error("expected a value without a mask")),
    }
}

/// Reads an IPv4 address.
fn ipv4(item: KeyValue<'_>) -> Result<u32, ParseError> {
    let token = item.required_value()?;
    match address::ipv4(token, u128::from(u32::MAX))? {
        (value, mask) if mask == u128::from(u32::MAX) => {
            Ok(u32::try_from(value).expect("an IPv4 address has 32 bits"))
        }
        _ => Err(token.error("expected an address without a mask")),
    }
}

/// Reads a VLAN id.
fn vid(item: KeyValue<'_>) -> Result<u16, ParseError> {
    let vid = unsigned(item.required_value()?, 0xfff)?;
    Ok(u16::try_from(vid).expect("at most 4095"))
}

/// Reads a VLAN priority.
fn pcp(item: KeyValue<'_>) -> Result<u8, ParseError> {
    let pcp = unsigned(item.required_value()?, 7)?;
    Ok(u8::try_from(pcp).expect("at most 7"))
}

/// The ToS byte with this DSCP.
fn tos_byte(dscp: u128) -> u8 {
    u8::try_from(dscp << 2).expect("a DSCP has six bits")
}

/// Parses `dec_ttl`, or `dec_ttl(id, ...)` with the ids of controllers to notify.
fn dec_ttl(item: KeyValue<'_>) -> Result<Action, ParseError> {
    item.value
        .map_or(Ok(Action::DecIpTtl), extension_read::dec_ttl)
}
