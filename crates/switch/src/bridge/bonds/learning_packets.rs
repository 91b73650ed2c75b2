//! Gratuitous learning packets of a bond after a failover.

use std::net::Ipv4Addr;

use packet::wire::arp::ArpAddresses;
use packet::wire::ethernet::{EtherType, Ethernet};
use packet::{Frame, Link, MacAddr};

use super::{Bridge, BridgeBond, Effect};
use dataplane::bonds::EgressFrame;
use dataplane::normal::NormalContext;
use dataplane::vlans::FrameVlans;

/// The RARP opcode "request reverse", which makes switches learn the sender's address (RFC 903).
const REVERSE_REQUEST: u16 = 3;

impl Bridge {
    /// Sends gratuitous learning packets, as Open vSwitch does: one for each address behind other
    /// ports, so that the switch at the other end learns the new active member.
    pub(super) fn send_learning_packets(&self, name: &str, effects: &mut Vec<Effect>) {
        let Some(BridgeBond { state, .. }) = self.protocols.bonds.bonds.get(name) else {
            return;
        };
        let fdb = self.normal.fdb.view();
        let context = NormalContext {
            mirrors: self.normal.mirrors.as_deref(),
            fdb: &fdb,
            switching: self.normal.switching.as_deref(),
            multicast: None,
        };
        let others = fdb
            .iter()
            .filter(|(_, station)| station.port() != state.fdb_port);
        for (address, station) in others {
            let within = FrameVlans::of_vlan(address.vid);
            if !context.may_pass(station.port(), state.fdb_port, &within) {
                continue;
            }
            let mut frame = Frame::from_bytes(&learning_packet(address.mac));
            let Ok(link) = Link::parse(frame.bytes()) else {
                continue;
            };
            let leaving = EgressFrame {
                frame: &frame,
                link: &link,
                within,
                writer: None,
            };
            let Some(exit) = state.exit(&leaving) else {
                continue;
            };
            if context.retag(exit, &within).change(&mut frame) {
                effects.push(Effect::Transmit(exit, frame, None));
            }
        }
    }
}

/// Builds a gratuitous learning packet: a RARP request of a host for its own address.
fn learning_packet(station: MacAddr) -> Vec<u8> {
    let addresses = ArpAddresses {
        sha: station,
        spa: Ipv4Addr::UNSPECIFIED,
        tha: station,
        tpa: Ipv4Addr::UNSPECIFIED,
    };
    let header = Ethernet {
        dst: MacAddr::BROADCAST,
        src: station,
    };
    [
        &header.emit(EtherType::RARP.0)[..],
        &addresses.emit(REVERSE_REQUEST),
    ]
    .concat()
}
