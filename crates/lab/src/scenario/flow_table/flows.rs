//! The flows of the experiment, as messages of OpenFlow 1.0: all twelve fields are
//! given, and no two flows are the same.

use std::ops::Range;

use base::{PortNo, Xid};
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, Match, MatchBuilder};
use openflow::{Message, Version};

/// The flows' addresses lie in 10.0.0.0/8.
const NETWORK: u32 = 0x0a00_0000;

/// Spreads numbers over the network's 24 bits, each to a place of its own since it is
/// odd: flows come in no order of their addresses.
const SPREAD: u32 = 0x9e_3779;

/// The messages that add the flows of these numbers.
pub(super) fn messages(numbers: Range<u32>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in numbers {
        encode(&Message::FlowMod(flow(number)), &mut bytes);
    }
    bytes
}

/// Appends a message.
pub(super) fn encode(message: &Message, bytes: &mut Vec<u8>) {
    message
        .encode(XID, Version::V10, bytes)
        .expect("the lab says nothing that OpenFlow 1.0 cannot");
}

/// Answers come in the order of questions, and need no numbers.
const XID: Xid = Xid(1);

fn flow(number: u32) -> FlowMod {
    // The two ports do two things; a controller has a few, not a million.
    let port = PortNo(1 + number % 2);
    let actions = Instructions::apply(vec![Action::output(port)]);
    FlowMod::new(FlowModCommand::Add, u16::MAX, matching(number), actions)
}

fn matching(number: u32) -> Match {
    let address = NETWORK | number.wrapping_mul(SPREAD) & 0x00ff_ffff;
    let fields: [(Field, u128); 12] = [
        (Field::InPort, 1),
        (Field::EthDst, 0x0200_0000_0002),
        (Field::EthSrc, 0x0200_0000_0001),
        (Field::EthType, 0x0800),
        (Field::VlanVid, 0x1005),
        (Field::VlanPcp, 3),
        (Field::IpDscp, 9),
        (Field::IpProto, 6),
        (Field::Ipv4Src, address.into()),
        (Field::Ipv4Dst, 0x0b00_0001),
        (Field::TcpSrc, 1000),
        (Field::TcpDst, 80),
    ];
    let mut building = MatchBuilder::default();
    for (field, value) in fields {
        let added = building.add_exact(field, value);
        added.expect("fields follow their prerequisites");
    }
    building.build()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn flows_are_exact_and_no_two_the_same() {
        let flows: BTreeSet<_> = (0..20_000).map(matching).collect();
        assert_eq!(flows.len(), 20_000);
        assert!(flows.iter().all(|flow| flow.terms().count() == 12));
    }

    #[test]
    fn a_device_reads_what_is_meant() {
        let bytes = messages(7..8);
        let (_, message) = Message::decode(&bytes, Version::V10).unwrap();
        let Message::FlowMod(read) = message else {
            panic!("{message:?}");
        };
        assert_eq!((read.matching, read.priority), (matching(7), u16::MAX));
    }
}
