//! Actions of the simulated switch. They use the packet crate's rewriting, so that the expected
//! frames of an experiment are compared with those of another implementation.

use std::net::Ipv4Addr;

use base::PortNo;
use flow::{Action, Field};
use packet::{Depth, Frame, MacAddr, Packet};

/// Returns the output ports of the actions, each with the frame as it is at that output.
pub(in crate::catalogue) fn execute(frame: &[u8], actions: &[Action]) -> Vec<(PortNo, Vec<u8>)> {
    let mut frame = Frame::from_bytes(frame);
    let mut packet = Packet::parse(&mut frame, Depth::Transport).expect("frames are whole");
    let mut out = Vec::new();
    for action in actions {
        match action {
            Action::Output { port, .. } => out.push((*port, packet.frame().bytes().to_vec())),
            other => rewrite(&mut packet, other),
        }
    }
    out
}

fn rewrite(packet: &mut Packet<'_>, action: &Action) {
    match action {
        Action::SetField { field, value, .. } => {
            let value = u64::try_from(*value).expect("no field is longer");
            match field {
                Field::EthSrc => packet.set_eth_src(MacAddr::from_u64(value)),
                Field::EthDst => packet.set_eth_dst(MacAddr::from_u64(value)),
                Field::IpDscp => packet.set_ip_dscp(u8::try_from(value).expect("six bits")),
                other => panic!("no experiment sets {other:?}"),
            }
        }
        Action::SetVlanVid(vid) => packet.set_vlan_vid(*vid),
        Action::SetVlanPcp(pcp) => packet.set_vlan_pcp(*pcp),
        Action::PopVlan => packet.pop_vlan().expect("there is a tag"),
        Action::SetNwSrc(address) => packet.set_ipv4_src(Ipv4Addr::from_bits(*address)),
        Action::SetNwDst(address) => packet.set_ipv4_dst(Ipv4Addr::from_bits(*address)),
        Action::SetNwTos(tos) => packet.set_ip_dscp(tos >> 2),
        Action::SetTpSrc(port) => packet.set_port_src(*port),
        Action::SetTpDst(port) => packet.set_port_dst(*port),
        other => panic!("no experiment has {other:?}"),
    }
}
