//! The effect of each OpenFlow action on a packet. An action on a header that the packet does not
//! have does nothing.

use std::net::{Ipv4Addr, Ipv6Addr};

use base::{PortNo, Priority, QueueId};
use flow::field::VID_PRESENT;
use flow::{Action, Field, MaxLen};
use packet::wire::{ethernet::EtherType, mpls};
use packet::{MacAddr, Packet, RewriteError, Transport, TtlExpired};

use super::Execution;
use crate::instructions::action_facts::is_ethernet_field;
use crate::limits::MPLS_LABELS_MAX;
use crate::verdict::DropReason;

impl Execution<'_> {
    /// Executes actions in order, up to the first that ends the packet.
    pub(crate) fn apply(
        &mut self,
        packet: &mut Packet<'_>,
        actions: &[Action],
    ) -> Result<(), DropReason> {
        for (place, action) in actions.iter().enumerate() {
            if self.exited {
                break;
            }
            self.trace.on_action(action);
            self.act(packet, action)?;
            if self.verdict.is_over_limit {
                return Err(DropReason::TooManyOutputs);
            }
            if self.pause.is_some() {
                self.pause_actions(&actions[place + 1..]);
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn act(
        &mut self,
        packet: &mut Packet<'_>,
        action: &Action,
    ) -> Result<(), DropReason> {
        match action {
            Action::Output { port, max_len } => self.output(packet, *port, *max_len),
            Action::SetField { field, value, mask } => {
                self.set_field(packet, *field, *value, *mask)
            }
            Action::Group(group) => self.group(packet, *group),
            Action::Meter(meter) => self.submit_to_meter(packet, *meter),
            Action::Enqueue { port, queue } => self.enqueue(packet, *port, *queue),
            Action::SetQueue(queue) => {
                self.set_queue(*queue);
                Ok(())
            }
            Action::Extended(extension) => self.extend(packet, extension),
            change if self.is_bare() && is_of_frames(change) => Ok(()),
            change => {
                self.preserve_state(packet)?;
                self.mark_modified();
                self.change(packet, change)
            }
        }
    }

    /// Selects the queue for later outputs. As in Open vSwitch, a number that no port can have
    /// selects none.
    fn set_queue(&mut self, queue: QueueId) {
        self.priority = Priority::for_queue(queue).unwrap_or(self.priority);
    }

    /// Outputs the packet to one port by this queue.
    fn enqueue(
        &mut self,
        packet: &Packet<'_>,
        port: PortNo,
        queue: QueueId,
    ) -> Result<(), DropReason> {
        let before = self.priority;
        self.set_queue(queue);
        let done = self.output(packet, port, MaxLen::WHOLE);
        self.priority = before;
        done
    }

    pub(crate) fn set_field(
        &mut self,
        packet: &mut Packet<'_>,
        field: Field,
        value: u128,
        mask: u128,
    ) -> Result<(), DropReason> {
        let value = if mask == field.full_mask() {
            value
        } else {
            match self.field(packet, field) {
                Some(old) => old & !mask | value & mask,
                None => return Ok(()),
            }
        };
        if self.set_register(field, value) || (self.is_bare() && is_ethernet_field(field)) {
            return Ok(());
        }
        self.preserve_state(packet)?;
        self.mark_modified();
        write_field(packet, field, value).map_err(drop_reason_of)
    }

    /// Executes actions that modify the packet, except set-field.
    fn change(&mut self, packet: &mut Packet<'_>, action: &Action) -> Result<(), DropReason> {
        let done = match action {
            Action::SetVlanVid(vid) => tagged(packet).map(|()| packet.set_vlan_vid(*vid)),
            Action::SetVlanPcp(pcp) => tagged(packet).map(|()| packet.set_vlan_pcp(*pcp)),
            Action::PushVlan(tpid) => packet.push_vlan(*tpid),
            Action::PopVlan => packet.pop_vlan(),
            Action::PushMpls(_) if mpls_labels(packet) >= MPLS_LABELS_MAX => {
                return Err(DropReason::TooManyMplsLabels);
            }
            Action::PushMpls(eth_type) => packet.push_mpls(*eth_type),
            Action::PopMpls(eth_type) => packet.pop_mpls(*eth_type),
            Action::PushPbb(eth_type) => packet.push_pbb(*eth_type),
            Action::PopPbb => packet.pop_pbb(),
            Action::DecMplsTtl => return self.handle_ttl_result(packet.dec_mpls_ttl()),
            Action::DecIpTtl => return self.handle_ttl_result(packet.dec_ip_ttl()),
            other => {
                set(packet, other);
                Ok(())
            }
        };
        done.map_err(drop_reason_of)
    }

    pub(crate) fn handle_ttl_result(
        &mut self,
        done: Result<(), TtlExpired>,
    ) -> Result<(), DropReason> {
        done.map_err(|TtlExpired| self.handle_expired_ttl())
    }
}

/// True if the action only applies to Ethernet frames.
const fn is_of_frames(action: &Action) -> bool {
    matches!(
        action,
        Action::SetVlanVid(_)
            | Action::SetVlanPcp(_)
            | Action::PushVlan(_)
            | Action::PopVlan
            | Action::PushMpls(_)
            | Action::PopMpls(_)
            | Action::PushPbb(_)
            | Action::PopPbb
    )
}

pub(crate) fn drop_reason_of(error: RewriteError) -> DropReason {
    match error {
        RewriteError::NoBufferSpace(_) => DropReason::NoRoom,
        RewriteError::Malformed(reason) => DropReason::Malformed(reason),
    }
}

/// Returns the number of MPLS labels of a packet, up to the limit.
pub(crate) fn mpls_labels(packet: &Packet<'_>) -> usize {
    let headers = packet.headers();
    if !matches!(
        headers.link.eth_type,
        EtherType::MPLS | EtherType::MPLS_MULTICAST
    ) {
        return 0;
    }
    let bytes = packet.frame().bytes();
    let entries = bytes.get(headers.network_at()..).unwrap_or_default();
    let mut labels = 0;
    for entry in entries.chunks_exact(mpls::LEN).take(MPLS_LABELS_MAX) {
        labels += 1;
        if entry[2] & 1 == 1 {
            break;
        }
    }
    labels
}

/// OpenFlow 1.0 sets VLAN id and priority also where there is no tag: it adds one.
fn tagged(packet: &mut Packet<'_>) -> Result<(), RewriteError> {
    match packet.headers().link.tag {
        Some(_) => Ok(()),
        None => packet.push_vlan(0x8100),
    }
}

/// Executes actions that cannot fail.
fn set(packet: &mut Packet<'_>, action: &Action) {
    match action {
        Action::SetNwSrc(address) => packet.set_ipv4_src(Ipv4Addr::from_bits(*address)),
        Action::SetNwDst(address) => packet.set_ipv4_dst(Ipv4Addr::from_bits(*address)),
        Action::SetNwTos(tos) => packet.set_ip_dscp(tos >> 2),
        Action::SetTpSrc(port) => packet.set_port_src(*port),
        Action::SetTpDst(port) => packet.set_port_dst(*port),
        Action::SetMplsTtl(ttl) => packet.set_mpls_ttl(*ttl),
        Action::SetIpTtl(ttl) => packet.set_ip_ttl(*ttl),
        Action::CopyTtlOut => packet.copy_ttl_out(),
        Action::CopyTtlIn => packet.copy_ttl_in(),
        _ => {}
    }
}

/// Writes a whole field. The value fits it.
fn write_field(packet: &mut Packet<'_>, field: Field, value: u128) -> Result<(), RewriteError> {
    let mac = MacAddr::from_u64(low_u64(value));
    let v4 = Ipv4Addr::from_bits(low_u32(value));
    let v6 = Ipv6Addr::from_bits(value);
    match field {
        Field::EthDst => packet.set_eth_dst(mac),
        Field::EthSrc => packet.set_eth_src(mac),
        Field::EthType => packet.set_eth_type(low_u16(value))?,
        Field::VlanVid => packet.set_vlan_vid(low_u16(value)),
        Field::VlanPcp => packet.set_vlan_pcp(low_u8(value)),
        Field::MplsLabel => packet.set_mpls_label(low_u32(value)),
        Field::MplsTtl => packet.set_mpls_ttl(low_u8(value)),
        Field::MplsTc => packet.set_mpls_tc(low_u8(value)),
        Field::MplsBos => packet.set_mpls_bos(value != 0),
        Field::PbbIsid => packet.set_pbb_isid(low_u32(value)),
        Field::PbbUca => packet.set_pbb_uca(value != 0),
        Field::ArpOp => packet.set_arp_op(low_u16(value)),
        Field::ArpSpa => packet.set_arp_spa(v4),
        Field::ArpTpa => packet.set_arp_tpa(v4),
        Field::ArpSha => packet.set_arp_sha(mac),
        Field::ArpTha => packet.set_arp_tha(mac),
        Field::VlanTci => write_tci(packet, low_u16(value))?,
        Field::IpTos => packet.set_ip_dscp(low_u8(value) >> 2),
        Field::IpDscp => packet.set_ip_dscp(low_u8(value)),
        Field::IpEcn => packet.set_ip_ecn(low_u8(value)),
        Field::IpProto => packet.set_ip_proto(low_u8(value))?,
        Field::IpTtl => packet.set_ip_ttl(low_u8(value)),
        Field::Ipv4Src => packet.set_ipv4_src(v4),
        Field::Ipv4Dst => packet.set_ipv4_dst(v4),
        Field::Ipv6Src => packet.set_ipv6_src(v6),
        Field::Ipv6Dst => packet.set_ipv6_dst(v6),
        Field::Ipv6Flabel => packet.set_ipv6_flabel(low_u32(value)),
        Field::TcpSrc | Field::UdpSrc | Field::SctpSrc if has_ports(packet, field) => {
            packet.set_port_src(low_u16(value));
        }
        Field::TcpDst | Field::UdpDst | Field::SctpDst if has_ports(packet, field) => {
            packet.set_port_dst(low_u16(value));
        }
        Field::Icmpv4Type => packet.set_icmpv4_type(low_u8(value)),
        Field::Icmpv4Code => packet.set_icmpv4_code(low_u8(value)),
        Field::Icmpv6Type => packet.set_icmpv6_type(low_u8(value)),
        Field::Icmpv6Code => packet.set_icmpv6_code(low_u8(value)),
        Field::Ipv6NdTarget => packet.set_nd_target(v6),
        Field::Ipv6NdSll => packet.set_nd_sll(mac),
        Field::Ipv6NdTll => packet.set_nd_tll(mac),
        Field::NdReserved => packet.set_nd_reserved(low_u32(value)),
        Field::NdOptionsType => packet.set_nd_option_type(low_u8(value)),
        Field::NshFlags => packet.set_nsh_flags(low_u8(value)),
        Field::NshTtl => packet.set_nsh_ttl(low_u8(value)),
        Field::NshSpi => packet.set_nsh_path(low_u32(value)),
        Field::NshSi => packet.set_nsh_index(low_u8(value)),
        Field::NshC1 => packet.set_nsh_context(0, low_u32(value)),
        Field::NshC2 => packet.set_nsh_context(1, low_u32(value)),
        Field::NshC3 => packet.set_nsh_context(2, low_u32(value)),
        Field::NshC4 => packet.set_nsh_context(3, low_u32(value)),
        // A port of another transport protocol, or a field that is not writable.
        _ => {}
    }
    Ok(())
}

/// Writes the whole outermost tag. Without the present bit it removes the tag.
fn write_tci(packet: &mut Packet<'_>, tci: u16) -> Result<(), RewriteError> {
    if tci & VID_PRESENT == 0 {
        return packet.pop_vlan();
    }
    tagged(packet)?;
    packet.set_vlan_vid(tci & 0x0fff);
    packet.set_vlan_pcp(low_u8(u128::from(tci >> 13)));
    Ok(())
}

/// True if `field` is a port of the packet's transport protocol.
fn has_ports(packet: &Packet<'_>, field: Field) -> bool {
    match packet.headers().transport {
        Transport::Tcp(_) => matches!(field, Field::TcpSrc | Field::TcpDst),
        Transport::Udp(_) => matches!(field, Field::UdpSrc | Field::UdpDst),
        Transport::Sctp(_) => matches!(field, Field::SctpSrc | Field::SctpDst),
        Transport::None | Transport::Icmpv4(_) | Transport::Icmpv6(_) => false,
    }
}

pub(crate) const fn low_u64(value: u128) -> u64 {
    let [_, _, _, _, _, _, _, _, a, b, c, d, e, f, g, h] = value.to_be_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

pub(crate) const fn low_u32(value: u128) -> u32 {
    let [.., a, b, c, d] = value.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

pub(crate) const fn low_u16(value: u128) -> u16 {
    let [.., a, b] = value.to_be_bytes();
    u16::from_be_bytes([a, b])
}

pub(crate) const fn low_u8(value: u128) -> u8 {
    let [.., a] = value.to_be_bytes();
    a
}
