//! Writer of actions and instructions.

use std::fmt;

use base::PortNo;

use super::address;
use super::extension_write::HexNumber;
use super::match_write::{CommaList, write_set_value};
use super::name_map::{NameMap, WithNames};
use super::names::set_name;
use crate::action::{Action, Instructions, MaxLen, MetadataWrite};

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&WithNames(self, NameMap::empty()), f)
    }
}

impl fmt::Display for WithNames<'_, Action> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(action, names) = *self;
        match *action {
            Action::Output { port, max_len } => write_output(f, port, max_len, names),
            Action::Enqueue { port, queue } => {
                write!(f, "enqueue:{}:{}", WithNames(&port, names), queue.0)
            }
            Action::SetQueue(queue) => write!(f, "set_queue:{}", queue.0),
            Action::Group(group) => write!(f, "group:{}", group.0),
            Action::Meter(meter) => write!(f, "meter:{}", meter.0),
            Action::SetField { field, value, mask } => {
                f.write_str("set_field:")?;
                write_set_value(f, field, (value, mask), names)?;
                write!(f, "->{}", set_name(field))
            }
            Action::SetVlanVid(vid) => write!(f, "mod_vlan_vid:{vid}"),
            Action::SetVlanPcp(pcp) => write!(f, "mod_vlan_pcp:{pcp}"),
            Action::SetNwSrc(address) => write_nw(f, "mod_nw_src", address),
            Action::SetNwDst(address) => write_nw(f, "mod_nw_dst", address),
            Action::SetNwTos(tos) => write!(f, "mod_nw_tos:{tos}"),
            Action::SetTpSrc(port) => write!(f, "mod_tp_src:{port}"),
            Action::SetTpDst(port) => write!(f, "mod_tp_dst:{port}"),
            Action::PushVlan(tpid) => write!(f, "push_vlan:0x{tpid:04x}"),
            Action::PopVlan => f.write_str("pop_vlan"),
            Action::PushMpls(eth_type) => write!(f, "push_mpls:0x{eth_type:04x}"),
            Action::PopMpls(eth_type) => write!(f, "pop_mpls:0x{eth_type:04x}"),
            Action::PushPbb(eth_type) => write!(f, "push_pbb:0x{eth_type:04x}"),
            Action::PopPbb => f.write_str("pop_pbb"),
            Action::SetMplsTtl(ttl) => write!(f, "set_mpls_ttl({ttl})"),
            Action::DecMplsTtl => f.write_str("dec_mpls_ttl"),
            Action::SetIpTtl(ttl) => write!(f, "mod_nw_ttl:{ttl}"),
            Action::DecIpTtl => f.write_str("dec_ttl"),
            Action::CopyTtlOut => f.write_str("copy_ttl_out"),
            Action::CopyTtlIn => f.write_str("copy_ttl_in"),
            Action::Extended(ref extension) => write!(f, "{}", WithNames(extension, names)),
        }
    }
}

/// Writes an output: reserved ports by name, the controller with its length.
fn write_output(
    f: &mut fmt::Formatter<'_>,
    port: PortNo,
    max_len: MaxLen,
    names: &NameMap,
) -> fmt::Result {
    match port.reserved_name() {
        Some(name) if port == PortNo::CONTROLLER => write!(f, "{name}:{}", max_len.0),
        Some(name) => f.write_str(name),
        None => write!(f, "output:{}", WithNames(&port, names)),
    }
}

/// Writes an action on an IPv4 address.
fn write_nw(f: &mut fmt::Formatter<'_>, name: &str, address: u32) -> fmt::Result {
    write!(f, "{name}:")?;
    address::write_ipv4(f, (u128::from(address), u128::from(u32::MAX)))
}

impl fmt::Display for Instructions {
    /// Writes the text after `actions=`; empty instructions are `drop`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&WithNames(self, NameMap::empty()), f)
    }
}

impl fmt::Display for WithNames<'_, Instructions> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(does, names) = *self;
        let mut list = CommaList::new(f);
        if let Some(meter) = does.meter {
            write!(list.next()?, "meter:{}", meter.0)?;
        }
        for action in &does.apply {
            write!(list.next()?, "{}", WithNames(action, names))?;
        }
        if does.clear {
            list.next()?.write_str("clear_actions")?;
        }
        if !does.write.is_empty() {
            write_nested(list.next()?, &does.write, names)?;
        }
        if let Some(metadata) = does.metadata {
            write_metadata(list.next()?, metadata)?;
        }
        if let Some(table) = does.goto {
            write!(list.next()?, "goto_table:{}", WithNames(&table, names))?;
        }
        if list.is_empty() {
            list.next()?.write_str("drop")?;
        }
        Ok(())
    }
}

/// Writes the actions of write-actions.
fn write_nested(f: &mut fmt::Formatter<'_>, actions: &[Action], names: &NameMap) -> fmt::Result {
    f.write_str("write_actions(")?;
    let mut list = CommaList::new(f);
    for action in actions {
        write!(list.next()?, "{}", WithNames(action, names))?;
    }
    f.write_str(")")
}

/// Writes the metadata instruction; a mask of all ones is omitted.
fn write_metadata(f: &mut fmt::Formatter<'_>, metadata: MetadataWrite) -> fmt::Result {
    let MetadataWrite { value, mask } = metadata;
    write!(f, "write_metadata:{}", HexNumber(value.into()))?;
    match mask {
        u64::MAX => Ok(()),
        _ => write!(f, "/{}", HexNumber(mask.into())),
    }
}
