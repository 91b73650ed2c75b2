//! Writing actions and instructions.

use std::fmt;

use base::PortNo;

use super::address;
use super::extension_write::Hex;
use super::match_write::{Commas, write_set_value};
use super::names;
use crate::action::{Action, Instructions, MaxLen, MetadataWrite};

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Output { port, max_len } => write_output(f, port, max_len),
            Self::Enqueue { port, queue } => write!(f, "enqueue:{port}:{}", queue.0),
            Self::SetQueue(queue) => write!(f, "set_queue:{}", queue.0),
            Self::Group(group) => write!(f, "group:{}", group.0),
            Self::Meter(meter) => write!(f, "meter:{}", meter.0),
            Self::SetField { field, value, mask } => {
                f.write_str("set_field:")?;
                write_set_value(f, field, (value, mask))?;
                write!(f, "->{}", names::set_name(field))
            }
            Self::SetVlanVid(vid) => write!(f, "mod_vlan_vid:{vid}"),
            Self::SetVlanPcp(pcp) => write!(f, "mod_vlan_pcp:{pcp}"),
            Self::SetNwSrc(address) => write_nw(f, "mod_nw_src", address),
            Self::SetNwDst(address) => write_nw(f, "mod_nw_dst", address),
            Self::SetNwTos(tos) => write!(f, "mod_nw_tos:{tos}"),
            Self::SetTpSrc(port) => write!(f, "mod_tp_src:{port}"),
            Self::SetTpDst(port) => write!(f, "mod_tp_dst:{port}"),
            Self::PushVlan(tpid) => write!(f, "push_vlan:0x{tpid:04x}"),
            Self::PopVlan => f.write_str("pop_vlan"),
            Self::PushMpls(eth_type) => write!(f, "push_mpls:0x{eth_type:04x}"),
            Self::PopMpls(eth_type) => write!(f, "pop_mpls:0x{eth_type:04x}"),
            Self::PushPbb(eth_type) => write!(f, "push_pbb:0x{eth_type:04x}"),
            Self::PopPbb => f.write_str("pop_pbb"),
            Self::SetMplsTtl(ttl) => write!(f, "set_mpls_ttl({ttl})"),
            Self::DecMplsTtl => f.write_str("dec_mpls_ttl"),
            Self::SetIpTtl(ttl) => write!(f, "mod_nw_ttl:{ttl}"),
            Self::DecIpTtl => f.write_str("dec_ttl"),
            Self::CopyTtlOut => f.write_str("copy_ttl_out"),
            Self::CopyTtlIn => f.write_str("copy_ttl_in"),
            Self::Extended(ref extension) => write!(f, "{extension}"),
        }
    }
}

/// Writes an output: reserved ports by name alone, the controller with its length.
fn write_output(f: &mut fmt::Formatter<'_>, port: PortNo, max_len: MaxLen) -> fmt::Result {
    match port.reserved_name() {
        Some(name) if port == PortNo::CONTROLLER => write!(f, "{name}:{}", max_len.0),
        Some(name) => f.write_str(name),
        None => write!(f, "output:{port}"),
    }
}

/// Writes an action on an IPv4 address.
fn write_nw(f: &mut fmt::Formatter<'_>, name: &str, address: u32) -> fmt::Result {
    write!(f, "{name}:")?;
    address::write_ipv4(f, (u128::from(address), u128::from(u32::MAX)))
}

impl fmt::Display for Instructions {
    /// Writes what stands behind `actions=`; no instructions at all are `drop`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = Commas::new(f);
        if let Some(meter) = self.meter {
            write!(list.next()?, "meter:{}", meter.0)?;
        }
        for action in &self.apply {
            write!(list.next()?, "{action}")?;
        }
        if self.clear {
            list.next()?.write_str("clear_actions")?;
        }
        if !self.write.is_empty() {
            write_nested(list.next()?, &self.write)?;
        }
        if let Some(metadata) = self.metadata {
            write_metadata(list.next()?, metadata)?;
        }
        if let Some(table) = self.goto {
            write!(list.next()?, "goto_table:{table}")?;
        }
        if list.is_empty() {
            list.next()?.write_str("drop")?;
        }
        Ok(())
    }
}

/// Writes the actions to be written into the action set.
fn write_nested(f: &mut fmt::Formatter<'_>, actions: &[Action]) -> fmt::Result {
    f.write_str("write_actions(")?;
    let mut list = Commas::new(f);
    for action in actions {
        write!(list.next()?, "{action}")?;
    }
    f.write_str(")")
}

/// Writes the metadata instruction; a mask of all ones is not mentioned.
fn write_metadata(f: &mut fmt::Formatter<'_>, metadata: MetadataWrite) -> fmt::Result {
    let MetadataWrite { value, mask } = metadata;
    write!(f, "write_metadata:{}", Hex(value.into()))?;
    match mask {
        u64::MAX => Ok(()),
        _ => write!(f, "/{}", Hex(mask.into())),
    }
}
