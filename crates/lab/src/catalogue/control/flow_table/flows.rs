//! Flows of the experiment `flow-table`, as messages of OpenFlow 1.0. Each matches all twelve fields
//! exactly, and no two are equal.

use std::ops::Range;

use base::{PortNo, Xid};
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, Match, MatchBuilder};
use openflow::{Message, Version};

/// Network of the flows' source addresses, 10.0.0.0/8.
const NETWORK: u32 = 0x0a00_0000;

/// Factor that maps consecutive numbers to scattered addresses; it is odd, and so has an inverse
/// modulo 2^24.
const SPREAD: u32 = 0x9e_3779;

/// Returns the messages that add the flows with these numbers.
pub(super) fn messages(numbers: Range<u32>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in numbers {
        Message::FlowMod(flow(number))
            .encode(XID, Version::V10, &mut bytes)
            .expect("OpenFlow 1.0 can express the flow");
    }
    bytes
}

/// Transaction number of all messages: replies arrive in the order of the requests.
const XID: Xid = Xid(1);

fn flow(number: u32) -> FlowMod {
    // Two different actions, since controllers use few.
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
    fn flows_are_exact_and_differ() {
        let flows: BTreeSet<_> = (0..20_000).map(matching).collect();
        assert_eq!(flows.len(), 20_000);
        assert!(flows.iter().all(|flow| flow.terms().count() == 12));
    }

    #[test]
    fn message_decodes_to_its_flow() {
        let bytes = messages(7..8);
        let (_, message) = Message::decode(&bytes, Version::V10).unwrap();
        let Message::FlowMod(read) = message else {
            panic!("{message:?}");
        };
        assert_eq!((read.matching, read.priority), (matching(7), u16::MAX));
    }
}
