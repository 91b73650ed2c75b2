//! Reader of matches. Keys have any order, so ambiguous names and prerequisites are resolved after
//! the last one.

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

/// Parses a match without other keys.
pub(super) fn whole(text: Token<'_>) -> Result<Match, ParseError> {
    let mut draft = MatchDraft::default();
    let mut items = KeyValues::new(text);
    while let Some(item) = items.next_pair()? {
        if !draft.take(item)? {
            let known = names::match_names();
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
        ValueFormat::ConnectionFlags => special::ct_state(token),
        ValueFormat::TunnelFlags => special::tunnel_flags(token),
        ValueFormat::Fragment => special::fragment(token),
        ValueFormat::Typed => Ok((special::packet_type(token)?, full)),
    }
}

/// Parses a port: of a 32-bit field as it is, of a 16-bit field its lower half.
fn port(field: Field, token: Token<'_>) -> Result<MaskedValue, ParseError> {
    let (port, full) = (u128::from(address::port(token)?.0), field.full_mask());
    let reserved = u128::from(PortNo::MAX.0);
    if port > full && port < reserved {
        return Err(token.error("out of range: expected a port of 16 bits"));
    }
    Ok((port & full, full))
}

/// Term with its key.
#[derive(Clone, Copy, Debug)]
struct DraftTerm<'a> {
    pair: MaskedValue,
    key: Token<'a>,
}

/// A match being read.
#[derive(Debug, Default)]
pub(super) struct MatchDraft<'a> {
    terms: BTreeMap<Field, DraftTerm<'a>>,
    /// Terms on tunnel options.
    options: BTreeMap<Field, (WideMaskedValue, Token<'a>)>,
    /// Keys whose field depends on the protocol.
    pending: Vec<(KeyMeaning, KeyValue<'a>)>,
}

impl<'a> MatchDraft<'a> {
    /// Takes `item` if it is a protocol or a field; otherwise returns false.
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
            if names::is_unsupported_field(item.key.text) {
                return Err(item.key.error("not supported: matching on this field"));
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
                self.pending.push((meaning, item));
            }
        }
        Ok(true)
    }

    /// Takes a term on a tunnel option, which may test its presence only.
    fn take_option(&mut self, field: Field, item: KeyValue<'a>) -> Result<(), ParseError> {
        if item.value.is_some_and(|value| value.text == "*") {
            return Ok(());
        }
        let pair = options::optional_term(item.value)?;
        match self.options.insert(field, (pair, item.key)) {
            Some((before, first)) if before != pair => Err(contradiction(item.key, first)),
            Some(_) | None => Ok(()),
        }
    }

    /// Adds a term. An equal one for the same field is ignored, a different one is an error.
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
        for (meaning, item) in std::mem::take(&mut self.pending) {
            let field = self.resolve(meaning, item.key)?;
            self.add(field, value(field, item.required_value()?)?, item.key)?;
        }
        self.require_tag();
        let mut builder = MatchBuilder::default();
        for (field, DraftTerm { pair, key }) in self.terms {
            builder
                .add(field, pair.0, pair.1)
                .map_err(|refusal| key.error(term_error(field, refusal)))?;
        }
        for (field, ((value, mask), key)) in self.options {
            builder
                .add_option(field, value, mask)
                .map_err(|refusal| key.error(term_error(field, refusal)))?;
        }
        Ok(builder.build())
    }

    /// Returns the value of `field` if all its bits are given.
    fn exact(&self, field: Field) -> Option<u128> {
        let expected = self.terms.get(&field)?;
        (expected.pair.1 == field.full_mask()).then_some(expected.pair.0)
    }

    /// Returns the field that a name denotes under the given protocol.
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
        field.ok_or_else(|| key.error("requires `tcp`, `udp` or `sctp`, or their IPv6 variants"))
    }

    /// Requires a tag if a priority is given, like `ovs-ofctl`.
    fn require_tag(&mut self) {
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

/// Returns the field of the transport header at this position: for ICMP type and code, as in
/// OpenFlow 1.0.
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

/// Error: two keys contradict each other.
fn contradiction(key: Token<'_>, first: Token<'_>) -> ParseError {
    let (name, column) = (first.text, first.at + 1);
    key.error(format!("contradicts `{name}` in column {column}"))
}

/// Exact value.
fn exactly(field: Field, value: u128) -> MaskedValue {
    (value, field.full_mask())
}

/// Returns the message for a term that the match does not accept.
fn term_error(field: Field, refusal: Refusal) -> String {
    match refusal {
        Refusal::MatchBadMask => "this field does not support masks".to_owned(),
        Refusal::MatchBadPrerequisite => {
            format!(
                "requires {}",
                prerequisite_syntax(field.info().prerequisite)
            )
        }
        other => other.to_string(),
    }
}

/// Returns the syntax that satisfies a prerequisite.
fn prerequisite_syntax(prerequisite: Prerequisite) -> &'static str {
    match prerequisite {
        Prerequisite::None => "nothing",
        Prerequisite::InPort => "`in_port`",
        Prerequisite::VlanTag => "a VLAN tag, which the match excludes",
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
