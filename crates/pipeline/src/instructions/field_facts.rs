//! Facts about the packets at a point of an action list, from the match and the actions before it:
//! an abstract interpretation of the header fields that prerequisites need.

use flow::field::{Prerequisite, VID_PRESENT};
use flow::{Action, Encap, Extension, Field, Match, PacketType};

use super::action_facts::written_subfield;

/// Facts that hold for every packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FieldFacts {
    eth_type: Option<u128>,
    tag: bool,
    ip_proto: Option<u128>,
    icmpv6_type: Option<u128>,
    /// True if the match permits only packets of a connection.
    connection: bool,
    /// True if packets have no Ethernet header, or may have none.
    bare: bool,
}

impl FieldFacts {
    /// Returns the facts of a match.
    pub(crate) fn of(matching: &Match) -> Self {
        let present = u128::from(VID_PRESENT);
        let vlan = matching.term(Field::VlanVid);
        Self {
            eth_type: matching.exact(Field::EthType).or_else(|| of_bare(matching)),
            tag: vlan.is_some_and(|term| term.value & present != 0),
            ip_proto: matching.exact(Field::IpProto),
            icmpv6_type: matching.exact(Field::Icmpv6Type),
            connection: requires_connection(matching),
            bare: matching.exact(Field::PacketType).unwrap_or(0) != 0,
        }
    }

    /// True if every packet belonged to a connection when it matched.
    pub(crate) const fn has_connection(&self) -> bool {
        self.connection
    }

    /// True if the Ethernet header may be missing.
    pub(crate) const fn is_bare(&self) -> bool {
        self.bare
    }

    /// True if every packet satisfies the prerequisite.
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
            Prerequisite::Pbb => eth_type(&[0x88e7]),
            Prerequisite::Arp => eth_type(&[0x0806, 0x8035]),
            Prerequisite::Ip => eth_type(&[0x0800, 0x86dd]),
            Prerequisite::Ipv4 => eth_type(&[0x0800]),
            Prerequisite::Ipv6 => eth_type(&[0x86dd]),
            Prerequisite::Tcp => ip(6),
            Prerequisite::Udp => ip(17),
            Prerequisite::Sctp => ip(132),
            Prerequisite::Icmpv4 => eth_type(&[0x0800]) && one_of(self.ip_proto, &[1]),
            Prerequisite::Icmpv6 => eth_type(&[0x86dd]) && one_of(self.ip_proto, &[58]),
            Prerequisite::Nsh => eth_type(&[0x894f]),
            Prerequisite::Nd => nd(&[135, 136]),
            Prerequisite::NdSolicitation => nd(&[135]),
            Prerequisite::NdAdvertisement => nd(&[136]),
        }
    }

    /// Applies an action. After a popped tag there may be another, or none.
    pub(crate) fn after(&mut self, action: &Action) {
        match action {
            Action::PushVlan(_) | Action::SetVlanVid(_) | Action::SetVlanPcp(_) => self.tag = true,
            Action::PopVlan => self.tag = false,
            Action::PushMpls(eth_type) | Action::PopMpls(eth_type) => {
                self.eth_type = Some(u128::from(*eth_type));
                self.ip_proto = None;
                self.icmpv6_type = None;
            }
            Action::PushPbb(eth_type) => self.become_type(Some(u128::from(*eth_type))),
            Action::PopPbb => self.become_type(None),
            Action::SetField { field, value, mask } => self.wrote(*field, *mask, Some(*value)),
            Action::Extended(Extension::Encap(encap)) => self.become_packet(encap),
            Action::Extended(Extension::Decap { .. }) if self.bare => {
                self.become_type(None);
                self.bare = true;
            }
            Action::Extended(Extension::Decap { .. }) => {
                (self.bare, self.tag) = (true, false);
            }
            Action::Extended(extension) => {
                let value = match extension {
                    Extension::Load { to, value } => Some(to.place(u128::from(*value))),
                    _ => None,
                };
                if let Some(to) = written_subfield(extension) {
                    self.wrote(to.field(), to.mask(), value);
                }
            }
            _ => {}
        }
    }

    /// Applies a write of these bits of a field; `value` is `None` if it depends on the packet.
    fn wrote(&mut self, field: Field, mask: u128, value: Option<u128>) {
        let present = u128::from(VID_PRESENT);
        let whole = value.filter(|_| mask == field.full_mask());
        match field {
            Field::EthType => {
                self.eth_type = whole;
                self.ip_proto = None;
                self.icmpv6_type = None;
            }
            Field::IpProto => {
                self.ip_proto = whole;
                self.icmpv6_type = None;
            }
            Field::Icmpv6Type => self.icmpv6_type = whole,
            Field::VlanTci if mask & present != 0 => {
                self.tag = value.is_some_and(|value| value & present != 0);
            }
            _ => {}
        }
    }

    /// Applies an added header; nothing is known of it.
    fn become_packet(&mut self, encap: &Encap) {
        let kind = encap.makes();
        match kind.ether_type() {
            None => self.bare = false,
            Some(eth_type) => {
                self.become_type(Some(u128::from(eth_type)));
                self.bare = true;
            }
        }
    }

    /// Resets all facts but the EtherType, if it is known.
    fn become_type(&mut self, eth_type: Option<u128>) {
        *self = Self {
            eth_type,
            ..Self::default()
        };
    }
}

/// Flags of `ct_state` in a match, by their bits: those that only a packet of a connection has.
const OF_CONNECTION: u128 = 0b1100_1111;
const INVALID: u128 = 1 << 4;
const TRACKED: u128 = 1 << 5;

/// True if packets that match have a connection: a flag implies it, or they are tracked and not
/// invalid (`ovs-fields(7)`, ct_nw_src).
fn requires_connection(matching: &Match) -> bool {
    matching.term(Field::CtState).is_some_and(|term| {
        term.value & OF_CONNECTION != 0
            || term.value & TRACKED != 0 && term.mask & INVALID != 0 && term.value & INVALID == 0
    })
}

/// Returns the EtherType of packets without an Ethernet header, if the match selects them.
fn of_bare(matching: &Match) -> Option<u128> {
    let kind = u32::try_from(matching.exact(Field::PacketType)?).ok()?;
    PacketType(kind).ether_type().map(u128::from)
}
