//! OpenFlow 1.0's setters in versions that no longer have them.
//!
//! A setter of 1.0 acts on any packet that has the header, and adds a missing VLAN tag. A later
//! version names the protocol and the tag, so the translation depends on the rule's match.

use flow::field::VID_PRESENT;
use flow::{Action, Field, Match};

use super::encode::EncodeContext;
use crate::fidelity::Fidelity;

/// The state of the packets' outermost VLAN tag at a position of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VlanTagState {
    /// The packets have a tag.
    Present,
    /// The packets have no tag.
    Absent,
    /// The packets may have a tag.
    Unknown,
}

impl VlanTagState {
    /// The state that the match implies.
    pub(super) fn of(matching: &Match) -> Self {
        let present = u128::from(VID_PRESENT);
        match matching.term(Field::VlanVid) {
            Some(vid) if vid.value & present != 0 => Self::Present,
            Some(vid) if vid.mask & present != 0 => Self::Absent,
            Some(_) | None => Self::Unknown,
        }
    }

    /// The state after `action`.
    pub(super) const fn after(self, action: &Action) -> Self {
        match action {
            Action::SetVlanVid(_) | Action::SetVlanPcp(_) | Action::PushVlan(_) => Self::Present,
            // Another tag may follow.
            Action::PopVlan => Self::Unknown,
            _ => self,
        }
    }
}

/// The equivalent actions of a later version, or the reason why there are none.
pub(super) fn translate(
    action: &Action,
    context: EncodeContext<'_>,
    tag: VlanTagState,
) -> Result<Vec<Action>, &'static str> {
    Ok(match *action {
        Action::SetVlanVid(vid) => {
            let mut actions = push_if_missing(tag, context.fidelity)?;
            actions.push(Action::set(Field::VlanVid, (VID_PRESENT | vid).into()));
            actions
        }
        Action::SetVlanPcp(pcp) => {
            let mut actions = push_if_missing(tag, context.fidelity)?;
            actions.push(Action::set(Field::VlanPcp, pcp.into()));
            actions
        }
        Action::SetNwSrc(address) => vec![Action::set(Field::Ipv4Src, address.into())],
        Action::SetNwDst(address) => vec![Action::set(Field::Ipv4Dst, address.into())],
        Action::SetNwTos(tos) => vec![Action::set(Field::IpDscp, (tos >> 2).into())],
        Action::SetTpSrc(port) => {
            let fields = [Field::TcpSrc, Field::UdpSrc, Field::SctpSrc];
            set_ports(fields, port, context.matching)
        }
        Action::SetTpDst(port) => {
            let fields = [Field::TcpDst, Field::UdpDst, Field::SctpDst];
            set_ports(fields, port, context.matching)
        }
        // The caller appends `pop_queue`.
        Action::Enqueue { port, queue } => vec![Action::SetQueue(queue), Action::output(port)],
        ref action => vec![action.clone()],
    })
}

/// The push that a setter of 1.0 implies. If the tag is unknown, [`Fidelity::BestEffort`] includes
/// the push, as Open vSwitch does.
fn push_if_missing(tag: VlanTagState, fidelity: Fidelity) -> Result<Vec<Action>, &'static str> {
    match (tag, fidelity) {
        (VlanTagState::Present, _) => Ok(Vec::new()),
        (VlanTagState::Absent, _) | (VlanTagState::Unknown, Fidelity::BestEffort) => {
            Ok(vec![Action::PushVlan(0x8100)])
        }
        (VlanTagState::Unknown, Fidelity::Lossless) => {
            Err("a VLAN setter without a match on the presence of a tag")
        }
    }
}

/// Sets the port of the protocol in the match. Without a protocol it sets the ports of all three,
/// because each has no effect on packets of the others.
fn set_ports(fields: [Field; 3], port: u16, matching: &Match) -> Vec<Action> {
    let proto = matching.exact(Field::IpProto);
    [6, 17, 132]
        .into_iter()
        .zip(fields)
        .filter(|(number, _)| proto.is_none_or(|proto| proto == *number))
        .map(|(_, field)| Action::set(field, port.into()))
        .collect()
}

#[cfg(test)]
mod tests;
