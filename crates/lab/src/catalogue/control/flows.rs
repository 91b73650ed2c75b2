//! Numbered flows: the rule of each, and the frames that match only this rule.

use std::net::Ipv4Addr;

use base::{Cookie, PortNo, TableId};
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, Match, MatchBuilder};
use openflow::{Message, Version};
use packet::MacAddr;

use crate::catalogue::prelude::*;
use crate::frames::UdpFrame;

/// MAC addresses of the frames. The hosts have others, so that their network stacks do not reply.
pub(super) const NEAR: [u8; 6] = [0x02, 0, 0, 0, 0, 0xb1];
pub(super) const FAR: [u8; 6] = [0x02, 0, 0, 0, 0, 0xb2];

/// Network of the flows' destination addresses, 10.64.0.0/10.
const NETWORK: u32 = 0x0a40_0000;
const FLOWS_MAX: u32 = 1 << 22;

/// Source address of all frames, in no network of the testbed.
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 32, 0, 1);

/// Cookie of the experiment's rules.
pub(super) const COOKIE: Cookie = Cookie(0x0f10);

/// DSCP values (AF11 and AF21 of RFC 2597) that show which of two rules forwarded a frame.
pub(super) const MARKS: [u8; 2] = [10, 18];

/// Priority above the rule that drops all other frames.
const PRIORITY: u16 = 0x8000;

/// UDP source and destination port of all flows.
const PORTS: (u16, u16) = (40_011, 7_711);

/// The parameter for the kind of rules.
pub(super) const TABLE: Parameter = Parameter::axis(
    "table",
    "fields that the rules match: one address (wildcard) or all twelve fields of OpenFlow 1.0 (exact)",
    Values::words(&["wildcard"], &["wildcard", "exact"]),
);

/// Rules of one kind in one version of OpenFlow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowRules {
    version: Version,
    is_exact: bool,
}

impl FlowRules {
    pub(super) fn new(version: Version, point: &Point) -> Self {
        let is_exact = point.get("table").is_some() && point.word("table") == "exact";
        Self { version, is_exact }
    }

    pub(super) const fn of(version: Version) -> Self {
        Self {
            version,
            is_exact: false,
        }
    }

    /// Returns a flow-mod for this flow: its rule outputs to the server, and sets the mark if there
    /// is one.
    pub(super) fn message(self, command: FlowModCommand, flow: u32, mark: Option<u8>) -> Message {
        Message::FlowMod(self.rule(command, flow, mark))
    }

    /// Returns the flow-mod as [`FlowMod`].
    pub(super) fn rule(self, command: FlowModCommand, flow: u32, mark: Option<u8>) -> FlowMod {
        let mut actions = Vec::new();
        if let Some(dscp) = mark {
            actions.push(Action::set(Field::IpDscp, dscp.into()));
        }
        actions.push(Action::output(PortNo(2)));
        // In OpenFlow 1.0, rules without wildcards always have the highest priority (OF 1.0.1,
        // 3.4).
        let priority = match (self.is_exact, self.version) {
            (true, Version::V10) => u16::MAX,
            _ => PRIORITY,
        };
        let actions = Instructions::apply(actions);
        let mut rule = FlowMod::new(command, priority, self.matching(flow), actions);
        rule.cookie = COOKIE;
        // In OpenFlow 1.0, only additions name a table.
        if self.version == Version::V10 && command != FlowModCommand::Add {
            rule.table = TableId::ALL;
        }
        rule
    }

    fn matching(self, flow: u32) -> Match {
        let mac = |address: [u8; 6]| u128::from(MacAddr(address).to_u64());
        let destination = u128::from(address(flow).to_bits());
        let few: &[(Field, u128)] = &[(Field::EthType, 0x0800), (Field::Ipv4Dst, destination)];
        let all: &[(Field, u128)] = &[
            (Field::InPort, 1),
            (Field::EthSrc, mac(NEAR)),
            (Field::EthDst, mac(FAR)),
            (Field::VlanVid, 0),
            (Field::EthType, 0x0800),
            (Field::IpDscp, 0),
            (Field::IpProto, 17),
            (Field::Ipv4Src, CLIENT.to_bits().into()),
            (Field::Ipv4Dst, destination),
            (Field::UdpSrc, PORTS.0.into()),
            (Field::UdpDst, PORTS.1.into()),
        ];
        let mut building = MatchBuilder::default();
        for (field, value) in if self.is_exact { all } else { few } {
            let added = building.add_exact(*field, *value);
            added.expect("fields follow their prerequisites");
        }
        building.build()
    }
}

fn address(flow: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(NETWORK | (flow % FLOWS_MAX))
}

/// Returns the smallest frame of a flow.
pub(super) fn frame(flow: u32) -> UdpFrame {
    sized(flow, 64)
}

/// Returns a frame of a flow with this size in bytes, the checksum (FCS) included.
pub(super) fn sized(flow: u32, frame_bytes: u16) -> UdpFrame {
    let frame = UdpFrame {
        eth_src: NEAR,
        eth_dst: FAR,
        tag: None,
        ip_src: CLIENT,
        ip_dst: address(flow),
        dscp: 0,
        udp_src: PORTS.0,
        udp_dst: PORTS.1,
        payload: 0,
    };
    frame.sized(frame_bytes)
}

/// Returns the deletion of all rules in all tables.
pub(super) fn delete_all() -> Message {
    let command = FlowModCommand::Delete;
    let no_instructions = Instructions::default();
    Message::FlowMod(FlowMod {
        table: TableId::ALL,
        ..FlowMod::new(command, 0, Match::any(), no_instructions)
    })
}

/// Returns the rule that drops frames without another rule, so that the device does not send them
/// to the controller.
pub(super) fn drop_rest() -> Message {
    let (command, no_instructions) = (FlowModCommand::Add, Instructions::default());
    Message::FlowMod(FlowMod::new(command, 1, Match::any(), no_instructions))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn flow_mods_encode_in_both_versions() {
        for version in [Version::V10, Version::V13] {
            for is_exact in [false, true] {
                let flows = FlowRules { version, is_exact };
                for command in [
                    FlowModCommand::Add,
                    FlowModCommand::ModifyStrict,
                    FlowModCommand::DeleteStrict,
                ] {
                    for mark in [None, Some(MARKS[0])] {
                        let message = flows.message(command, 7, mark);
                        let encoded = message.encode(base::Xid(1), version, &mut Vec::new());
                        assert!(encoded.is_ok(), "{encoded:?}");
                    }
                }
            }
            for message in [delete_all(), drop_rest()] {
                assert!(
                    message
                        .encode(base::Xid(1), version, &mut Vec::new())
                        .is_ok()
                );
            }
        }
    }

    #[test]
    fn flows_are_all_different() {
        let flows = FlowRules::of(Version::V13);
        let all: BTreeSet<_> = (0..5_000).map(|flow| flows.matching(flow)).collect();
        assert_eq!(all.len(), 5_000);
    }
}
