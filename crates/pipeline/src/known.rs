//! What is certain of a frame at a point of an action list: by the match it
//! satisfied and the actions done to it since.

use flow::field::{Prerequisite, VID_PRESENT};
use flow::{Action, Field, Match};

/// How sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// Every such frame is so.
    Yes,
    /// No such frame is so.
    No,
    /// Some may be.
    Maybe,
}

use Certainty::{Maybe, No, Yes};

impl Certainty {
    fn of(known: Option<bool>) -> Self {
        match known {
            Some(true) => Yes,
            Some(false) => No,
            None => Maybe,
        }
    }

    const fn and(self, other: Self) -> Self {
        match (self, other) {
            (No, _) | (_, No) => No,
            (Yes, Yes) => Yes,
            _ => Maybe,
        }
    }

    /// Certain if either is.
    pub(crate) const fn or(self, other: Self) -> Self {
        match (self, other) {
            (Yes, _) | (_, Yes) => Yes,
            (No, No) => No,
            _ => Maybe,
        }
    }
}

/// What is known of the frame's structure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    eth_type: Option<u128>,
    tag: Certainty,
    ip_proto: Option<u128>,
    icmpv6_type: Option<u128>,
}

impl Known {
    /// What the match says.
    pub(crate) fn of(matching: &Match) -> Self {
        let present = u128::from(VID_PRESENT);
        let vlan = matching.term(Field::VlanVid);
        let tag = vlan.map(|term| (term.mask & present != 0).then_some(term.value & present != 0));
        Self {
            eth_type: matching.exact(Field::EthType),
            tag: Certainty::of(tag.flatten()),
            ip_proto: matching.exact(Field::IpProto),
            icmpv6_type: matching.exact(Field::Icmpv6Type),
        }
    }

    /// Nothing.
    pub(crate) const fn nothing() -> Self {
        Self {
            eth_type: None,
            tag: Maybe,
            ip_proto: None,
            icmpv6_type: None,
        }
    }

    /// Whether the frame has what `needs` asks for.
    pub(crate) fn fulfils(&self, needs: Prerequisite) -> Certainty {
        let one_of = |known: Option<u128>, wanted: &[u128]| {
            Certainty::of(known.map(|value| wanted.contains(&value)))
        };
        let eth_type = |wanted: &[u128]| one_of(self.eth_type, wanted);
        let ip = |proto| eth_type(&[0x0800, 0x86dd]).and(one_of(self.ip_proto, &[proto]));
        let nd = |kinds: &[u128]| {
            self.fulfils(Prerequisite::Icmpv6)
                .and(one_of(self.icmpv6_type, kinds))
        };
        match needs {
            Prerequisite::None | Prerequisite::InPort => Yes,
            Prerequisite::VlanTag => self.tag,
            Prerequisite::Mpls => eth_type(&[0x8847, 0x8848]),
            Prerequisite::Arp => eth_type(&[0x0806, 0x8035]),
            Prerequisite::Ip => eth_type(&[0x0800, 0x86dd]),
            Prerequisite::Ipv4 => eth_type(&[0x0800]),
            Prerequisite::Ipv6 => eth_type(&[0x86dd]),
            Prerequisite::Tcp => ip(6),
            Prerequisite::Udp => ip(17),
            Prerequisite::Sctp => ip(132),
            Prerequisite::Icmpv4 => eth_type(&[0x0800]).and(one_of(self.ip_proto, &[1])),
            Prerequisite::Icmpv6 => eth_type(&[0x86dd]).and(one_of(self.ip_proto, &[58])),
            Prerequisite::Nd => nd(&[135, 136]),
            Prerequisite::NdSolicitation => nd(&[135]),
            Prerequisite::NdAdvertisement => nd(&[136]),
        }
    }

    /// Follows an action.
    pub(crate) fn after(&mut self, action: &Action) {
        match action {
            Action::PushVlan(_) | Action::SetVlanVid(_) | Action::SetVlanPcp(_) => self.tag = Yes,
            Action::PopVlan => self.tag = Maybe,
            Action::PushMpls(eth_type) | Action::PopMpls(eth_type) => {
                self.eth_type = Some(u128::from(*eth_type));
                self.ip_proto = None;
                self.icmpv6_type = None;
            }
            Action::SetField {
                field: Field::Icmpv6Type,
                value,
                mask,
            } => {
                let all = *mask == Field::Icmpv6Type.full_mask();
                self.icmpv6_type = all.then_some(*value);
            }
            _ => {}
        }
    }
}
