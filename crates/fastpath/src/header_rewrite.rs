//! Header rewrites: changes of the bytes of a frame by one operation of an action program.

use std::net::{Ipv4Addr, Ipv6Addr};

use flow::{Action, Field};
use packet::{MacAddr, Packet, RewriteError, Transport, TtlExpired};
use pipeline::DropReason;

/// One rewrite. It does nothing to a frame without the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderRewrite {
    EthDst(MacAddr),
    EthSrc(MacAddr),
    PushVlan(u16),
    PopVlan,
    /// Changes the tag of a frame that has one.
    VlanVid(u16),
    VlanPcp(u8),
    /// Changes the tag, and pushes one first if the frame has none (OpenFlow 1.0).
    TagVid(u16),
    TagPcp(u8),
    Ipv4Src(Ipv4Addr),
    Ipv4Dst(Ipv4Addr),
    Ipv6Src(Ipv6Addr),
    Ipv6Dst(Ipv6Addr),
    Dscp(u8),
    Ecn(u8),
    Ttl(u8),
    DecTtl,
    /// Changes a port of this protocol, or of any protocol that has ports if `None`.
    PortSrc(Option<PortProtocol>, u16),
    PortDst(Option<PortProtocol>, u16),
}

/// A transport protocol that has ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortProtocol {
    Tcp,
    Udp,
    Sctp,
}

/// Reason why a rewrite was not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RewriteFailure {
    /// The time to live has expired; the executor reports it to controllers.
    TtlExpired,
    /// The frame is dropped.
    Dropped(DropReason),
}

impl From<TtlExpired> for RewriteFailure {
    fn from(TtlExpired: TtlExpired) -> Self {
        Self::TtlExpired
    }
}

impl From<RewriteError> for RewriteFailure {
    fn from(error: RewriteError) -> Self {
        Self::Dropped(match error {
            RewriteError::NoBufferSpace(_) => DropReason::NoRoom,
            RewriteError::Malformed(reason) => DropReason::Malformed(reason),
        })
    }
}

impl HeaderRewrite {
    /// Returns the rewrite of `action`, or `None` if it is not a rewrite.
    pub(crate) fn of(action: &Action) -> Option<Self> {
        Some(match action {
            Action::SetField { field, value, mask } if *mask == field.full_mask() => {
                return Self::of_field(*field, *value);
            }
            Action::SetVlanVid(vid) => Self::TagVid(*vid),
            Action::SetVlanPcp(pcp) => Self::TagPcp(*pcp),
            Action::SetNwSrc(address) => Self::Ipv4Src(Ipv4Addr::from_bits(*address)),
            Action::SetNwDst(address) => Self::Ipv4Dst(Ipv4Addr::from_bits(*address)),
            Action::SetNwTos(tos) => Self::Dscp(tos >> 2),
            Action::SetTpSrc(port) => Self::PortSrc(None, *port),
            Action::SetTpDst(port) => Self::PortDst(None, *port),
            Action::SetIpTtl(ttl) => Self::Ttl(*ttl),
            Action::DecIpTtl => Self::DecTtl,
            Action::PushVlan(tpid) => Self::PushVlan(*tpid),
            Action::PopVlan => Self::PopVlan,
            _ => return None,
        })
    }

    /// Returns the rewrite of a whole field, or `None` if the field is not rewritten here.
    pub(crate) fn of_field(field: Field, value: u128) -> Option<Self> {
        use PortProtocol::{Sctp, Tcp, Udp};
        let [.., octet] = value.to_be_bytes();
        let [.., a, b] = value.to_be_bytes();
        let short = u16::from_be_bytes([a, b]);
        let mac = || MacAddr::from_u64(low_half(value));
        let v4 = || Ipv4Addr::from_bits(u32::try_from(value & 0xffff_ffff).expect("32 bits"));
        Some(match field {
            Field::EthDst => Self::EthDst(mac()),
            Field::EthSrc => Self::EthSrc(mac()),
            Field::VlanVid => Self::VlanVid(short),
            Field::VlanPcp => Self::VlanPcp(octet),
            Field::Ipv4Src => Self::Ipv4Src(v4()),
            Field::Ipv4Dst => Self::Ipv4Dst(v4()),
            Field::Ipv6Src => Self::Ipv6Src(Ipv6Addr::from_bits(value)),
            Field::Ipv6Dst => Self::Ipv6Dst(Ipv6Addr::from_bits(value)),
            Field::IpTos => Self::Dscp(octet >> 2),
            Field::IpDscp => Self::Dscp(octet),
            Field::IpEcn => Self::Ecn(octet),
            Field::IpTtl => Self::Ttl(octet),
            Field::TcpSrc => Self::PortSrc(Some(Tcp), short),
            Field::UdpSrc => Self::PortSrc(Some(Udp), short),
            Field::SctpSrc => Self::PortSrc(Some(Sctp), short),
            Field::TcpDst => Self::PortDst(Some(Tcp), short),
            Field::UdpDst => Self::PortDst(Some(Udp), short),
            Field::SctpDst => Self::PortDst(Some(Sctp), short),
            _ => return None,
        })
    }

    /// Applies the rewrite.
    pub(crate) fn apply(self, packet: &mut Packet<'_>) -> Result<(), RewriteFailure> {
        match self {
            Self::EthDst(address) => packet.set_eth_dst(address),
            Self::EthSrc(address) => packet.set_eth_src(address),
            Self::PushVlan(tpid) => packet.push_vlan(tpid)?,
            Self::PopVlan => packet.pop_vlan()?,
            Self::VlanVid(vid) => packet.set_vlan_vid(vid),
            Self::VlanPcp(pcp) => packet.set_vlan_pcp(pcp),
            Self::TagVid(vid) => {
                ensure_tag(packet)?;
                packet.set_vlan_vid(vid);
            }
            Self::TagPcp(pcp) => {
                ensure_tag(packet)?;
                packet.set_vlan_pcp(pcp);
            }
            Self::Ipv4Src(address) => packet.set_ipv4_src(address),
            Self::Ipv4Dst(address) => packet.set_ipv4_dst(address),
            Self::Ipv6Src(address) => packet.set_ipv6_src(address),
            Self::Ipv6Dst(address) => packet.set_ipv6_dst(address),
            Self::Dscp(dscp) => packet.set_ip_dscp(dscp),
            Self::Ecn(ecn) => packet.set_ip_ecn(ecn),
            Self::Ttl(ttl) => packet.set_ip_ttl(ttl),
            Self::DecTtl => packet.dec_ip_ttl()?,
            Self::PortSrc(protocol, port) if has_ports_of(packet, protocol) => {
                packet.set_port_src(port)
            }
            Self::PortDst(protocol, port) if has_ports_of(packet, protocol) => {
                packet.set_port_dst(port)
            }
            Self::PortSrc(..) | Self::PortDst(..) => {}
        }
        Ok(())
    }
}

/// Pushes a VLAN tag if the frame has none.
fn ensure_tag(packet: &mut Packet<'_>) -> Result<(), RewriteError> {
    match packet.headers().link.tag {
        Some(_) => Ok(()),
        None => packet.push_vlan(0x8100),
    }
}

/// True if the transport of the frame is `protocol`, or anything if that is `None`.
fn has_ports_of(packet: &Packet<'_>, protocol: Option<PortProtocol>) -> bool {
    match (protocol, &packet.headers().transport) {
        (None, _)
        | (Some(PortProtocol::Tcp), Transport::Tcp(_))
        | (Some(PortProtocol::Udp), Transport::Udp(_))
        | (Some(PortProtocol::Sctp), Transport::Sctp(_)) => true,
        (Some(_), _) => false,
    }
}

fn low_half(value: u128) -> u64 {
    u64::try_from(value & u128::from(u64::MAX)).expect("64 bits")
}
