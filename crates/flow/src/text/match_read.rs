//! Reading matches. Keys come in any order, so what a name means, and whether a
//! field's prerequisites are there, is decided when all have been read.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use base::PortNo;

use super::error::ParseError;
use super::lexer::{KeyValue, KeyValues, Token};
use super::names::{self, KeyMeaning, PROTOCOLS, TransportPort, ValueFormat};
use super::nearest::with_nearest;
use super::number::{MaskedValue, masked, unsigned};
use super::options::{self, WideMaskedValue};
use super::{address, special};
use crate::field::{Field, Prerequisite, VID_PRESENT};
use crate::matching::{Match, MatchBuilder};
use crate::refusal::Refusal;

/// Reads a match that stands alone.
pub(super) fn whole(text: Token<'_>) -> Result<Match, ParseError> {
    let mut draft = MatchDraft::default();
    let mut items = KeyValues::new(text);
    while let Some(item) = items.next_pair()? {
        if !draft.take(item)? {
            let known = names::of_matches();
            let problem = with_nearest("unknown match field", item.key.text, known);
            return Err(item.key.error(problem));
        }
    }
    draft.finish()
}

/// Reads a value of `field`, with its mask.
pub(super) fn value(field: Field, token: Token<'_>) -> Result<MaskedValue, ParseError> {
    let full = field.full_mask();
    match names::form(field) {
        ValueFormat::Decimal | ValueFormat::Octet | ValueFormat::Hex(_) => {
            masked(token, full, |part| unsigned(part, full))
        }
        ValueFormat::Mac => address::mac(token, full),
        ValueFormat::Ipv4 => address::ipv4(token, full),
        ValueFormat::Ipv6 => address::ipv6(token, full),
        ValueFormat::Port => port(field, token),
        ValueFormat::Flags => special::tcp_flags(token),
        ValueFormat::TunnelFlags => special::tunnel_flags(token),
        ValueFormat::Fragment => special::fragment(token),
        ValueFormat::Typed => Ok((special::packet_type(token)?, full)),
    }
}

/// Reads a port; of 32 bits it is as it is, of 16 its lower half.
fn port(field: Field, token: Token<'_>) -> Result<MaskedValue, ParseError> {
    let (port, full) = (u128::from(address::port(token)?.0), field.full_mask());
    let reserved = u128::from(PortNo::MAX.0);
    if port > full && port < reserved {
        return Err(token.error("out of range: a port of 16 bits is wanted"));
    }
    Ok((port & full, full))
}

/// A term, and the key that asked for it.
#[derive(Clone, Copy, Debug)]
struct DraftTerm<'a> {
    pair: MaskedValue,
    key: Token<'a>,
}

/// A match being read.
#[derive(Debug, Default)]
pub(super) struct MatchDraft<'a> {
    terms: BTreeMap<Field, DraftTerm<'a>>,
    /// What is asked of tunnel options.
    options: BTreeMap<Field, (WideMaskedValue, Token<'a>)>,
    /// Keys whose field depends on the protocol.
    waiting: Vec<(KeyMeaning, KeyValue<'a>)>,
}

impl<'a> MatchDraft<'a> {
    /// Takes `item` if it is a protocol or a field; else returns false.
    pub(super) fn take(&mut self, item: KeyValue<'a>) -> Result<bool, ParseError> {
        if let Some(protocol) = PROTOCOLS.iter().find(|known| known.name == item.key.text) {
            item.reject_value()?;
            self.add(
                Field::EthType,
                exactly(Field::EthType, protocol.eth_type),
                item.key,
            )?;
            if let Some(number) = protocol.ip_proto {
                self.add(Field::IpProto, exactly(Field::IpProto, number), item.key)?;
            }
            return Ok(true);
        }
        let Some(meaning) = names::meaning(item.key.text) else {
            if names::is_foreign_field(item.key.text) {
                return Err(item.key.error("not supported yet: matching on this field"));
            }
            return Ok(false);
        };
        if let KeyMeaning::Field(field) = meaning
            && field.option().is_some()
        {
            return self.take_option(field, item).map(|()| true);
        }
        let token = item.required_value()?;
        if token.text == "*" {
            return Ok(true);
        }
        match meaning {
            KeyMeaning::Field(field) => self.add(field, value(field, token)?, item.key)?,
            KeyMeaning::Tos => {
                let dscp = special::tos(token)?;
                self.add(Field::IpDscp, exactly(Field::IpDscp, dscp), item.key)?;
            }
            KeyMeaning::DlVlan => self.add(Field::VlanVid, special::dl_vlan(token)?, item.key)?,
            KeyMeaning::Tci => self.add_tci(special::vlan_tci(token)?, item.key)?,
            KeyMeaning::ArpOr(..) | KeyMeaning::Transport(_) | KeyMeaning::ByFamily(..) => {
                self.waiting.push((meaning, item));
            }
        }
        Ok(true)
    }

    /// Takes what is asked of a tunnel option, perhaps no more than that it be there.
    fn take_option(&mut self, field: Field, item: KeyValue<'a>) -> Result<(), ParseError> {
        if item.value.is_some_and(|value| value.text == "*") {
            return Ok(());
        }
        let pair = options::asked(item.value)?;
        match self.options.insert(field, (pair, item.key)) {
            Some((before, first)) if before != pair => Err(contradiction(item.key, first)),
            Some(_) | None => Ok(()),
        }
    }

    /// Adds a term. Twice the same is once; twice different is an error.
    fn add(&mut self, field: Field, pair: MaskedValue, key: Token<'a>) -> Result<(), ParseError> {
        match self.terms.entry(field) {
            Entry::Vacant(place) => {
                place.insert(DraftTerm { pair, key });
                Ok(())
            }
            Entry::Occupied(place) if place.get().pair == pair => Ok(()),
            Entry::Occupied(place) => Err(contradiction(key, place.get().key)),
        }
    }

    fn add_tci(&mut self, tci: special::TciTerms, key: Token<'a>) -> Result<(), ParseError> {
        if let Some(pcp) = tci.pcp {
            self.add(Field::VlanPcp, exactly(Field::VlanPcp, pcp), key)?;
        }
        if tci.vid.1 == 0 {
            return Ok(());
        }
        self.add(Field::VlanVid, tci.vid, key)
    }

    /// The match, with everything in its place.
    pub(super) fn finish(mut self) -> Result<Match, ParseError> {
        for (meaning, item) in std::mem::take(&mut self.waiting) {
            let field = self.resolve(meaning, item.key)?;
            self.add(field, value(field, item.required_value()?)?, item.key)?;
        }
        self.imply_tag();
        let mut building = MatchBuilder::default();
        for (field, DraftTerm { pair, key }) in self.terms {
            building
                .add(field, pair.0, pair.1)
                .map_err(|refusal| key.error(complaint(field, refusal)))?;
        }
        for (field, ((value, mask), key)) in self.options {
            building
                .add_option(field, value, mask)
                .map_err(|refusal| key.error(complaint(field, refusal)))?;
        }
        Ok(building.build())
    }

    /// All of `field`'s value, if it is asked for.
    fn exact(&self, field: Field) -> Option<u128> {
        let wanted = self.terms.get(&field)?;
        (wanted.pair.1 == field.full_mask()).then_some(wanted.pair.0)
    }

    /// The field that a name means with the protocol at hand.
    fn resolve(&self, meaning: KeyMeaning, key: Token<'_>) -> Result<Field, ParseError> {
        let eth_type = self.exact(Field::EthType);
        let field = match meaning {
            KeyMeaning::ArpOr(arp, other) => match eth_type {
                Some(0x0806 | 0x8035) => Some(arp),
                _ => Some(other),
            },
            KeyMeaning::ByFamily(four, six) => match eth_type {
                Some(0x86dd) => Some(six),
                _ => Some(four),
            },
            KeyMeaning::Transport(side) => transport(side, eth_type, self.exact(Field::IpProto)),
            KeyMeaning::Field(field) => Some(field),
            KeyMeaning::Tos => Some(Field::IpDscp),
            KeyMeaning::DlVlan | KeyMeaning::Tci => Some(Field::VlanVid),
        };
        field.ok_or_else(|| key.error("needs `tcp`, `udp`, `sctp`, or their twins for IPv6"))
    }

    /// Asks for a tag where a priority is asked for, as `ovs-ofctl` does.
    fn imply_tag(&mut self) {
        let present = u128::from(VID_PRESENT);
        if let Some(pcp) = self.terms.get(&Field::VlanPcp).copied() {
            let pair = (present, present);
            let tag = self.terms.entry(Field::VlanVid);
            let (value, mask) = &mut tag.or_insert(DraftTerm { pair, ..pcp }).pair;
            if *mask & present == 0 {
                *value |= present;
                *mask |= present;
            }
        }
    }
}

/// The field that stands at this side of the transport header. For ICMP it is
/// type and code, as OpenFlow 1.0 has it.
fn transport(side: TransportPort, eth_type: Option<u128>, ip_proto: Option<u128>) -> Option<Field> {
    let (source, destination) = match (eth_type?, ip_proto?) {
        (0x0800 | 0x86dd, 6) => (Field::TcpSrc, Field::TcpDst),
        (0x0800 | 0x86dd, 17) => (Field::UdpSrc, Field::UdpDst),
        (0x0800 | 0x86dd, 132) => (Field::SctpSrc, Field::SctpDst),
        (0x0800, 1) => (Field::Icmpv4Type, Field::Icmpv4Code),
        (0x86dd, 58) => (Field::Icmpv6Type, Field::Icmpv6Code),
        _ => return None,
    };
    Some(match side {
        TransportPort::Source => source,
        TransportPort::Destination => destination,
    })
}

/// Two keys want different bits of one field.
fn contradiction(key: Token<'_>, first: Token<'_>) -> ParseError {
    let (name, column) = (first.text, first.at + 1);
    key.error(format!("contradicts `{name}` in column {column}"))
}

/// This value and nothing else.
fn exactly(field: Field, value: u128) -> MaskedValue {
    (value, field.full_mask())
}

/// What to say when a term does not fit the match.
fn complaint(field: Field, refusal: Refusal) -> String {
    match refusal {
        Refusal::MatchBadMask => "this field takes no mask".to_owned(),
        Refusal::MatchBadPrerequisite => format!("needs {}", prerequisite(field.info().needs)),
        other => other.to_string(),
    }
}

/// How to write what a field needs.
fn prerequisite(needs: Prerequisite) -> &'static str {
    match needs {
        Prerequisite::None => "nothing",
        Prerequisite::InPort => "`in_port`",
        Prerequisite::VlanTag => "a VLAN tag, which the match says is not there",
        Prerequisite::Mpls => "`mpls` or `mplsm`",
        Prerequisite::Pbb => "`dl_type=0x88e7`",
        Prerequisite::Arp => "`arp` or `rarp`",
        Prerequisite::Ip => "`ip` or `ipv6`",
        Prerequisite::Ipv4 => "`ip`",
        Prerequisite::Ipv6 => "`ipv6`",
        Prerequisite::Tcp => "`tcp` or `tcp6`",
        Prerequisite::Udp => "`udp` or `udp6`",
        Prerequisite::Sctp => "`sctp` or `sctp6`",
        Prerequisite::Icmpv4 => "`icmp`, or `icmp6` for IPv6",
        Prerequisite::Icmpv6 => "`icmp6`",
        Prerequisite::Nd => "`icmp6,icmp_type=135` or `icmp6,icmp_type=136`",
        Prerequisite::NdSolicitation => "`icmp6,icmp_type=135`",
        Prerequisite::Nsh => "`dl_type=0x894f`",
        Prerequisite::NdAdvertisement => "`icmp6,icmp_type=136`",
    }
}
