//! OpenFlow 1.0's setters, told in a version that no longer has them.
//!
//! A setter of 1.0 acts on any frame that has the header, and sets a tag where
//! there is none. A later version names the protocol and the tag, so the rule's
//! own match is asked which is meant.

use flow::field::VID_PRESENT;
use flow::{Action, Field, Match};

use super::encode::Context;
use crate::faith::Faith;

/// What is known of the outermost tag of the frames at some point of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// There is one.
    There,
    /// There is none.
    Missing,
    /// There may be one.
    Unknown,
}

impl Tag {
    /// What the match says.
    pub(super) fn of(matching: &Match) -> Self {
        let present = u128::from(VID_PRESENT);
        match matching.term(Field::VlanVid) {
            Some(vid) if vid.value & present != 0 => Self::There,
            Some(vid) if vid.mask & present != 0 => Self::Missing,
            Some(_) | None => Self::Unknown,
        }
    }

    /// What is known when `action` is done.
    pub(super) const fn after(self, action: &Action) -> Self {
        match action {
            Action::SetVlanVid(_) | Action::SetVlanPcp(_) | Action::PushVlan(_) => Self::There,
            // There may be another below it.
            Action::PopVlan => Self::Unknown,
            _ => self,
        }
    }
}

/// The actions of a later version that mean the same as `action` in its place,
/// or why there are none.
pub(super) fn modern(
    action: &Action,
    context: Context<'_>,
    tag: Tag,
) -> Result<Vec<Action>, &'static str> {
    Ok(match *action {
        Action::SetVlanVid(vid) => {
            let mut actions = push_if_missing(tag, context.faith)?;
            actions.push(Action::set(Field::VlanVid, (VID_PRESENT | vid).into()));
            actions
        }
        Action::SetVlanPcp(pcp) => {
            let mut actions = push_if_missing(tag, context.faith)?;
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
        // Whoever writes it ends the queue behind them.
        Action::Enqueue { port, queue } => vec![Action::SetQueue(queue), Action::output(port)],
        ref action => vec![action.clone()],
    })
}

/// The push that a setter of 1.0 does by itself. Where nobody knows, good faith
/// tells it as Open vSwitch does: with the push.
fn push_if_missing(tag: Tag, faith: Faith) -> Result<Vec<Action>, &'static str> {
    match (tag, faith) {
        (Tag::There, _) => Ok(Vec::new()),
        (Tag::Missing, _) | (Tag::Unknown, Faith::Good) => Ok(vec![Action::PushVlan(0x8100)]),
        (Tag::Unknown, Faith::Exact) => {
            Err("a VLAN setter where the match does not say whether there is a tag")
        }
    }
}

/// The port of the protocol that the match names; of all three if it names none,
/// for each does nothing to the frames of the others.
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
