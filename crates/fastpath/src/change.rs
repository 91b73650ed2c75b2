//! What a step of a program does to the bytes of a frame.

use std::net::{Ipv4Addr, Ipv6Addr};

use flow::{Action, Field};
use packet::{MacAddr, Packet, RewriteError, Transport, TtlExpired};
use pipeline::DropReason;

/// One change. To a frame that lacks the header it does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    EthDst(MacAddr),
    EthSrc(MacAddr),
    PushVlan(u16),
    PopVlan,
    /// Of a frame that has a tag.
    VlanVid(u16),
    VlanPcp(u8),
    /// Of any frame: one without a tag gets one (OpenFlow 1.0).
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
    /// Of this transport; of any, if none is named.
    PortSrc(Option<Ports>, u16),
    PortDst(Option<Ports>, u16),
}

/// A transport that has ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ports {
    Tcp,
    Udp,
    Sctp,
}

/// Why a change was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unmade {
    /// The time to live is over; whom that is told, others know.
    Expired,
    /// The frame is lost.
    Lost(DropReason),
}

impl From<TtlExpired> for Unmade {
    fn from(TtlExpired: TtlExpired) -> Self {
        Self::Expired
    }
}

impl From<RewriteError> for Unmade {
    fn from(error: RewriteError) -> Self {
        Self::Lost(match error {
            RewriteError::NoBufferSpace(_) => DropReason::NoRoom,
            RewriteError::Malformed(reason) => DropReason::Malformed(reason),
        })
    }
}

impl Change {
    /// The change that `action` makes, if it is one of these.
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

    /// Writes all of a field.
    pub(crate) fn of_field(field: Field, value: u128) -> Option<Self> {
        use Ports::{Sctp, Tcp, Udp};
        let [.., octet] = value.to_be_bytes();
        let [.., a, b] = value.to_be_bytes();
        let short = u16::from_be_bytes([a, b]);
        let mac = || MacAddr::from_u64(low(value));
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

    /// Makes the change.
    pub(crate) fn make(self, packet: &mut Packet<'_>) -> Result<(), Unmade> {
        match self {
            Self::EthDst(address) => packet.set_eth_dst(address),
            Self::EthSrc(address) => packet.set_eth_src(address),
            Self::PushVlan(tpid) => packet.push_vlan(tpid)?,
            Self::PopVlan => packet.pop_vlan()?,
            Self::VlanVid(vid) => packet.set_vlan_vid(vid),
            Self::VlanPcp(pcp) => packet.set_vlan_pcp(pcp),
            Self::TagVid(vid) => {
                tag(packet)?;
                packet.set_vlan_vid(vid);
            }
            Self::TagPcp(pcp) => {
                tag(packet)?;
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
            Self::PortSrc(of, port) if has(packet, of) => packet.set_port_src(port),
            Self::PortDst(of, port) if has(packet, of) => packet.set_port_dst(port),
            Self::PortSrc(..) | Self::PortDst(..) => {}
        }
        Ok(())
    }
}

/// Makes sure that there is a tag.
fn tag(packet: &mut Packet<'_>) -> Result<(), RewriteError> {
    match packet.headers().link.tag {
        Some(_) => Ok(()),
        None => packet.push_vlan(0x8100),
    }
}

/// Whether the frame's transport is the one that is meant.
fn has(packet: &Packet<'_>, ports: Option<Ports>) -> bool {
    match (ports, &packet.headers().transport) {
        (None, _)
        | (Some(Ports::Tcp), Transport::Tcp(_))
        | (Some(Ports::Udp), Transport::Udp(_))
        | (Some(Ports::Sctp), Transport::Sctp(_)) => true,
        (Some(_), _) => false,
    }
}

fn low(value: u128) -> u64 {
    u64::try_from(value & u128::from(u64::MAX)).expect("64 bits")
}
