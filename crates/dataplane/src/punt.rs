//! Punt: control frames of other switches that a port takes out of the data path before the tables.
//!
//! The bridge handles them on the control thread. A bridge without such ports has none of this.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use base::PortNo;
use packet::MacAddr;
use packet::wire::bfd::BfdDatagram;
use packet::wire::cfm::ContinuityCheckHeader;
use packet::wire::{ethernet, lldp, slow};

/// The destination address of BPDUs (IEEE 802.1D, table 7-10).
pub const BRIDGE_GROUP_ADDRESS: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0];

/// The LLC header of spanning tree frames: both service access points, and the control byte for
/// unnumbered information (IEEE 802.1D, 9.2).
const SPANNING: [u8; 3] = [0x42, 0x42, 0x03];

/// The maximum value of a length field in place of an EtherType (IEEE 802.3, 3.2.6).
const LENGTH_MAX: u16 = 1500;

/// The protocols that a port punts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PuntedProtocols {
    /// The slow protocols of IEEE 802.3, among them LACP.
    pub slow: bool,
    /// STP and RSTP.
    pub spanning: bool,
    /// BFD control packets.
    pub bfd: Option<BfdFilter>,
    /// Continuity check messages.
    pub cfm: Option<CfmFilter>,
    /// LLDP.
    pub lldp: bool,
}

/// The BFD control packets of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BfdFilter {
    /// The Ethernet destination; any if absent.
    pub eth_dst: Option<MacAddr>,
    /// The IPv4 destination; any if absent.
    pub ip_dst: Option<Ipv4Addr>,
    /// The tunnel key must be zero.
    pub check_tunnel_key: bool,
}

/// The continuity check messages of a maintenance point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CfmFilter {
    /// The Ethernet destination.
    pub eth_dst: MacAddr,
    /// The tunnel key must be zero.
    pub check_tunnel_key: bool,
}

/// The protocol of a punted frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PuntedProtocol {
    /// A slow protocol of IEEE 802.3.
    Slow,
    /// STP or RSTP.
    Spanning,
    /// BFD.
    Bfd,
    /// Connectivity fault management.
    Cfm,
    /// LLDP.
    Lldp,
}

impl PuntedProtocols {
    /// Returns the protocol of a frame that the port punts; none if the tables get the frame.
    /// `tunnel_key` is that of the tunnel through which the frame arrived, or zero. The order of
    /// the protocols is that of Open vSwitch.
    #[inline]
    pub fn protocol(self, frame: &[u8], tunnel_key: u64) -> Option<PuntedProtocol> {
        if self
            .cfm
            .is_some_and(|filter| filter.takes(frame, tunnel_key))
        {
            Some(PuntedProtocol::Cfm)
        } else if self
            .bfd
            .is_some_and(|filter| filter.takes(frame, tunnel_key))
        {
            Some(PuntedProtocol::Bfd)
        } else if self.slow && slow::is_slow_protocol(frame) {
            Some(PuntedProtocol::Slow)
        } else if self.spanning && is_bpdu(frame) {
            Some(PuntedProtocol::Spanning)
        } else if self.lldp && lldp::is_lldp(frame) {
            Some(PuntedProtocol::Lldp)
        } else {
            None
        }
    }

    /// Returns whether the port punts this frame.
    #[inline]
    pub fn takes(self, frame: &[u8], tunnel_key: u64) -> bool {
        self.protocol(frame, tunnel_key).is_some()
    }

    fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

impl BfdFilter {
    fn takes(self, frame: &[u8], tunnel_key: u64) -> bool {
        BfdDatagram::find(frame).is_some_and(|datagram| {
            self.eth_dst
                .is_none_or(|address| address == datagram.eth_dst)
                && self.ip_dst.is_none_or(|address| address == datagram.ip_dst)
                && (!self.check_tunnel_key || tunnel_key == 0)
        })
    }
}

impl CfmFilter {
    fn takes(self, frame: &[u8], tunnel_key: u64) -> bool {
        let found = ContinuityCheckHeader::find(frame);
        found.is_some_and(|(header, _)| header.dst == self.eth_dst)
            && (!self.check_tunnel_key || tunnel_key == 0)
    }
}

/// Returns whether a frame is a BPDU; [`bpdu`] returns its bytes.
#[inline]
pub fn is_bpdu(frame: &[u8]) -> bool {
    let begins = frame.first_chunk() == Some(&BRIDGE_GROUP_ADDRESS);
    begins && bpdu(frame).is_some()
}

/// Returns the LLC header and the BPDU of a spanning tree frame, by its length field.
pub fn bpdu(frame: &[u8]) -> Option<&[u8]> {
    let (header, rest) = frame.split_first_chunk::<{ ethernet::LEN }>()?;
    let length = u16::from_be_bytes([header[12], header[13]]);
    let rest = rest.get(..usize::from(length))?;
    (length <= LENGTH_MAX && rest.starts_with(&SPANNING)).then_some(rest)
}

/// The punted protocols of each port of a bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PuntTable(BTreeMap<PortNo, PuntedProtocols>);

impl PuntTable {
    /// Compiles the table; none if no port punts.
    pub fn compile(
        ports: impl IntoIterator<Item = (PortNo, PuntedProtocols)>,
    ) -> Option<Arc<Self>> {
        let some = ports.into_iter().filter(|(_, what)| !what.is_nothing());
        let some: BTreeMap<_, _> = some.collect();
        (!some.is_empty()).then(|| Arc::new(Self(some)))
    }

    /// Returns the protocols that a port punts; none if it punts none.
    pub fn of(&self, port: PortNo) -> Option<PuntedProtocols> {
        self.0.get(&port).copied()
    }
}

#[cfg(test)]
mod tests {
    use packet::wire::bfd::{BfdAddresses, BfdControl};

    use super::*;

    fn frame(dst: [u8; 6], rest: &[u8]) -> Vec<u8> {
        [&dst[..], &[2, 0, 0, 0, 0, 1], rest, &[0; 46]].concat()
    }

    #[test]
    fn punt_takes_configured_protocols_only() {
        let bpdu_frame = frame(BRIDGE_GROUP_ADDRESS, &[0, 7, 0x42, 0x42, 3, 1, 2, 3, 4]);
        let slow_frame = frame([0x01, 0x80, 0xc2, 0, 0, 2], &[0x88, 0x09, 1]);
        let others = [
            frame(BRIDGE_GROUP_ADDRESS, &[0x42, 0x42, 0x42, 0x42, 3]),
            frame(BRIDGE_GROUP_ADDRESS, &[0, 7, 0xaa, 0xaa, 3]),
            frame([2; 6], &[0, 7, 0x42, 0x42, 3, 1, 2, 3, 4]),
            frame([0x01, 0x80, 0xc2, 0, 0, 2], &[0x88, 0xcc]),
            Vec::new(),
        ];
        let (slow, spanning) = (true, true);
        let both = PuntedProtocols {
            slow,
            spanning,
            ..PuntedProtocols::default()
        };
        let speaks_lacp = PuntedProtocols {
            slow,
            ..PuntedProtocols::default()
        };
        assert!(both.takes(&bpdu_frame, 0) && both.takes(&slow_frame, 0));
        assert!(!speaks_lacp.takes(&bpdu_frame, 0) && speaks_lacp.takes(&slow_frame, 0));
        assert!(!others.iter().any(|frame| both.takes(frame, 0)));
        assert_eq!(bpdu(&bpdu_frame), Some(&[0x42, 0x42, 3, 1, 2, 3, 4][..]));
        assert_eq!(bpdu(&bpdu_frame[..20]), None, "it is cut off");
    }

    #[test]
    fn punt_takes_messages_of_monitors_by_their_filters() {
        let addresses = BfdAddresses {
            eth_dst: MacAddr([0, 0x23, 0x20, 0, 0, 1]),
            eth_src: MacAddr([2, 0, 0, 0, 0, 1]),
            ip_src: Ipv4Addr::new(10, 0, 0, 1),
            ip_dst: Ipv4Addr::new(10, 0, 0, 2),
            udp_src: 49152,
        };
        let control = addresses.emit(&BfdControl::default());
        let bfd = |filter, tunnel_key| {
            let protocols = PuntedProtocols {
                bfd: Some(filter),
                ..PuntedProtocols::default()
            };
            protocols.protocol(&control, tunnel_key) == Some(PuntedProtocol::Bfd)
        };
        let any = BfdFilter::default();
        let for_host = |ip_dst| BfdFilter {
            ip_dst: Some(ip_dst),
            ..any
        };
        let keyed = BfdFilter {
            check_tunnel_key: true,
            ..any
        };
        assert!(bfd(any, 7) && bfd(for_host(addresses.ip_dst), 0) && bfd(keyed, 0));
        assert!(!bfd(for_host(addresses.ip_src), 0) && !bfd(keyed, 7));
        let eth_dst = Some(addresses.eth_src);
        assert!(!bfd(BfdFilter { eth_dst, ..any }, 0));
        let message = frame(packet::wire::cfm::ADDRESS.0, &[0x89, 0x02]);
        let cfm = |eth_dst| {
            let check_tunnel_key = false;
            let protocols = PuntedProtocols {
                cfm: Some(CfmFilter {
                    eth_dst,
                    check_tunnel_key,
                }),
                ..PuntedProtocols::default()
            };
            protocols.protocol(&message, 7) == Some(PuntedProtocol::Cfm)
        };
        assert!(cfm(packet::wire::cfm::ADDRESS) && !cfm(packet::wire::cfm::ADDRESS_EXTENDED));
        let announcement = frame(lldp::ADDRESS.0, &[0x88, 0xcc]);
        let lldp = PuntedProtocols {
            lldp: true,
            ..PuntedProtocols::default()
        };
        assert_eq!(lldp.protocol(&announcement, 0), Some(PuntedProtocol::Lldp));
        assert_eq!(lldp.protocol(&control, 0), None);
    }

    #[test]
    fn punt_table_without_protocols_compiles_to_none() {
        let nothing = PuntedProtocols::default();
        assert_eq!(PuntTable::compile([(PortNo(1), nothing)]), None);
        let slow = PuntedProtocols {
            slow: true,
            ..nothing
        };
        let compiled = PuntTable::compile([(PortNo(1), nothing), (PortNo(2), slow)]);
        let compiled = compiled.expect("one takes something");
        assert_eq!(compiled.of(PortNo(1)), None);
        assert_eq!(compiled.of(PortNo(2)), Some(slow));
    }
}
