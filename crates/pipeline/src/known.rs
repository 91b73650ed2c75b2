//! What is certain of a frame at a point of an action list: by the match it
//! satisfied and the actions done to it since.

use flow::field::{Prerequisite, VID_PRESENT};
use flow::{Action, Field, Match};

/// What every such frame has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    eth_type: Option<u128>,
    tag: bool,
    ip_proto: Option<u128>,
    icmpv6_type: Option<u128>,
}

impl Known {
    /// What the match says.
    pub(crate) fn of(matching: &Match) -> Self {
        let present = u128::from(VID_PRESENT);
        let vlan = matching.term(Field::VlanVid);
        Self {
            eth_type: matching.exact(Field::EthType),
            tag: vlan.is_some_and(|term| term.value & present != 0),
            ip_proto: matching.exact(Field::IpProto),
            icmpv6_type: matching.exact(Field::Icmpv6Type),
        }
    }

    /// Whether the frame certainly has what `needs` asks for.
    pub(crate) fn fulfils(&self, needs: Prerequisite) -> bool {
        let one_of = |known: Option<u128>, wanted: &[u128]| {
            known.is_some_and(|value| wanted.contains(&value))
        };
        let eth_type = |wanted: &[u128]| one_of(self.eth_type, wanted);
        let ip = |proto| eth_type(&[0x0800, 0x86dd]) && one_of(self.ip_proto, &[proto]);
        let nd =
            |kinds: &[u128]| self.fulfils(Prerequisite::Icmpv6) && one_of(self.icmpv6_type, kinds);
        match needs {
            Prerequisite::None | Prerequisite::InPort => true,
            Prerequisite::VlanTag => self.tag,
            Prerequisite::Mpls => eth_type(&[0x8847, 0x8848]),
            Prerequisite::Arp => eth_type(&[0x0806, 0x8035]),
            Prerequisite::Ip => eth_type(&[0x0800, 0x86dd]),
            Prerequisite::Ipv4 => eth_type(&[0x0800]),
            Prerequisite::Ipv6 => eth_type(&[0x86dd]),
            Prerequisite::Tcp => ip(6),
            Prerequisite::Udp => ip(17),
            Prerequisite::Sctp => ip(132),
            Prerequisite::Icmpv4 => eth_type(&[0x0800]) && one_of(self.ip_proto, &[1]),
            Prerequisite::Icmpv6 => eth_type(&[0x86dd]) && one_of(self.ip_proto, &[58]),
            Prerequisite::Nd => nd(&[135, 136]),
            Prerequisite::NdSolicitation => nd(&[135]),
            Prerequisite::NdAdvertisement => nd(&[136]),
        }
    }

    /// Follows an action. Behind a popped tag there may be another, or none.
    pub(crate) fn after(&mut self, action: &Action) {
        match action {
            Action::PushVlan(_) | Action::SetVlanVid(_) | Action::SetVlanPcp(_) => self.tag = true,
            Action::PopVlan => self.tag = false,
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
            Action::SetField {
                field: Field::VlanTci,
                value,
                mask,
            } if mask & u128::from(VID_PRESENT) != 0 => {
                self.tag = value & u128::from(VID_PRESENT) != 0;
            }
            _ => {}
        }
    }
}
