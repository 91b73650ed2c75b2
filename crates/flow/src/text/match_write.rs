//! Writer of matches, in the order of `ovs-ofctl`.

use std::fmt;

use super::name_map::{NameMap, WithNames};
use super::names::{self, PROTOCOLS, ValueFormat};
use super::number::MaskedValue;
use super::{address, options, special};
use crate::field::{Field, widen};
use crate::matching::{Match, Term};

/// Number of fields before the protocol's name.
const BEFORE_PROTOCOL: usize = 17;

/// Number of fields that are written otherwise, or are views.
const OTHERS: usize = Field::COUNT - Field::TunMetadata0 as usize;

/// Fields in the order of printing, except for those that the protocol's name or the keys of the
/// tag represent.
#[rustfmt::skip]
const ORDER: [Field; Field::COUNT - OTHERS - 1] = {
    use Field::*;
    [
        PktMark, RecircId, DpHash, ConjId, ActsetOutput,
        CtState, CtZone, CtMark, CtLabel, CtNwSrc, CtIpv6Src, CtNwDst, CtIpv6Dst,
        CtNwProto, CtTpSrc, CtTpDst, PacketType,
        Reg0, Reg1, Reg2, Reg3, Reg4, Reg5, Reg6, Reg7,
        Reg8, Reg9, Reg10, Reg11, Reg12, Reg13, Reg14, Reg15,
        TunnelId, TunSrc, TunDst, TunIpv6Src, TunIpv6Dst, TunGbpId, TunGbpFlags,
        TunErspanVer, TunErspanIdx, TunErspanDir, TunErspanHwid, TunGtpuFlags, TunGtpuMsgtype, TunFlags,
        Metadata, InPort, InPhyPort, VlanVid, EthSrc, EthDst, EthType,
        NshFlags, NshTtl, NshMdtype, NshNp, NshSpi, NshSi, NshC1, NshC2, NshC3, NshC4,
        Ipv4Src, Ipv4Dst, ArpSpa, ArpTpa, Ipv6Src, Ipv6Dst, Ipv6Flabel, Ipv6Exthdr,
        IpProto, ArpOp, ArpSha, ArpTha, IpDscp, IpEcn, IpTtl, MplsLabel, MplsTc, MplsBos, MplsTtl, PbbIsid, PbbUca, IpFrag,
        Icmpv4Type, Icmpv4Code, Icmpv6Type, Icmpv6Code, Ipv6NdTarget, Ipv6NdSll, Ipv6NdTll,
        NdReserved, NdOptionsType,
        TcpSrc, TcpDst, UdpSrc, UdpDst, SctpSrc, SctpDst, TcpFlags,
    ]
};

/// A list with commas between its items.
pub(super) struct CommaList<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    empty: bool,
}

impl<'a, 'b> CommaList<'a, 'b> {
    /// The empty list.
    pub(super) fn new(f: &'a mut fmt::Formatter<'b>) -> Self {
        Self { f, empty: true }
    }

    /// True if nothing has been written.
    pub(super) fn is_empty(&self) -> bool {
        self.empty
    }

    /// Returns the writer for the next item.
    pub(super) fn next(&mut self) -> Result<&mut fmt::Formatter<'b>, fmt::Error> {
        if !self.empty {
            self.f.write_str(",")?;
        }
        self.empty = false;
        Ok(self.f)
    }
}

impl fmt::Display for Match {
    /// Writes the match like `ovs-ofctl`; the match that accepts every frame is empty.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&WithNames(self, NameMap::empty()), f)
    }
}

impl fmt::Display for WithNames<'_, Match> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_match(&mut CommaList::new(f), self.0, self.1)
    }
}

/// Writes the terms of `matching` into `list`.
pub(super) fn write_match(
    list: &mut CommaList<'_, '_>,
    matching: &Match,
    names: &NameMap,
) -> fmt::Result {
    let (before, behind) = ORDER.split_at(BEFORE_PROTOCOL);
    for term in before.iter().filter_map(|field| matching.term(*field)) {
        write_term(list.next()?, &term, names)?;
    }
    let spoken = write_protocol(list, matching)?;
    for field in behind {
        // Tunnel options follow the other tunnel fields.
        if *field == Field::Metadata {
            for term in matching.options() {
                options::write_term(list.next()?, &term)?;
            }
        }
        let Some(term) = matching.term(*field) else {
            continue;
        };
        match term.field {
            Field::EthType if spoken.eth_type => {}
            Field::IpProto if spoken.ip_proto => {}
            Field::VlanVid => {
                let pcp = matching.exact(Field::VlanPcp);
                special::write_vlan(list.next()?, (term.value, term.mask), pcp)?;
            }
            _ => write_term(list.next()?, &term, names)?,
        }
    }
    Ok(())
}

/// Fields that the protocol's name represents.
struct WrittenProtocol {
    eth_type: bool,
    ip_proto: bool,
}

/// Writes the protocol's name, if there is one.
fn write_protocol(
    list: &mut CommaList<'_, '_>,
    matching: &Match,
) -> Result<WrittenProtocol, fmt::Error> {
    let eth_type = matching.exact(Field::EthType);
    let ip_proto = matching.exact(Field::IpProto);
    let known = |ip_proto| {
        PROTOCOLS
            .iter()
            .find(|known| eth_type == Some(known.eth_type) && ip_proto == known.ip_proto)
    };
    let Some(protocol) = known(ip_proto).or_else(|| known(None)) else {
        return Ok(WrittenProtocol {
            eth_type: false,
            ip_proto: false,
        });
    };
    list.next()?.write_str(protocol.name)?;
    let ip_proto = protocol.ip_proto.is_some();
    Ok(WrittenProtocol {
        eth_type: true,
        ip_proto,
    })
}

/// Writes `name=value` with the mask, unless it is all ones.
fn write_term(f: &mut fmt::Formatter<'_>, term: &Term, names: &NameMap) -> fmt::Result {
    let pair = (term.value, term.mask);
    write!(f, "{}=", match_name(term.field))?;
    match names::form(term.field) {
        ValueFormat::Port => address::write_port(f, term.value, names),
        _ if term.field == Field::IpDscp => write!(f, "{}", term.value << 2),
        ValueFormat::Decimal | ValueFormat::Octet if term.is_exact() => write!(f, "{}", term.value),
        ValueFormat::Decimal => write!(f, "0x{:x}/0x{:x}", term.value, term.mask),
        ValueFormat::Octet => write!(f, "0x{:02x}/0x{:02x}", term.value, term.mask),
        ValueFormat::Hex(digits) => write_hex(f, pair, digits, term.is_exact()),
        ValueFormat::TunnelFlags => special::write_tunnel_flags(f, term.value),
        ValueFormat::Flags => special::write_tcp_flags(f, pair),
        ValueFormat::ConnectionFlags => special::write_ct_state(f, pair),
        ValueFormat::Fragment => special::write_fragment(f, pair),
        ValueFormat::Typed => special::write_packet_type(f, term.value),
        form @ (ValueFormat::Mac | ValueFormat::Ipv4 | ValueFormat::Ipv6) => {
            write_address(f, form, pair, term.is_exact())
        }
    }
}

/// The field's name in a match.
fn match_name(field: Field) -> &'static str {
    match field {
        Field::TcpSrc | Field::UdpSrc | Field::SctpSrc => "tp_src",
        Field::TcpDst | Field::UdpDst | Field::SctpDst => "tp_dst",
        Field::IpFrag => "nw_frag",
        _ => field.info().ofctl,
    }
}

/// Writes a hexadecimal number with the mask, unless it is all ones.
fn write_hex(
    f: &mut fmt::Formatter<'_>,
    (value, mask): MaskedValue,
    digits: usize,
    exact: bool,
) -> fmt::Result {
    // Like C's `%#x`, which the tool uses for numbers without padding, this omits 0x before zero.
    match value {
        0 if digits == 1 => f.write_str("0")?,
        _ => write!(f, "0x{value:0digits$x}")?,
    }
    if exact {
        return Ok(());
    }
    write!(f, "/0x{mask:0digits$x}")
}

/// Writes an address.
fn write_address(
    f: &mut fmt::Formatter<'_>,
    form: ValueFormat,
    (value, mask): MaskedValue,
    exact: bool,
) -> fmt::Result {
    match form {
        ValueFormat::Ipv4 => address::write_ipv4(f, (value, mask)),
        ValueFormat::Ipv6 => address::write_ipv6(f, (value, mask)),
        _ if exact => address::write_mac(f, value),
        _ => {
            address::write_mac(f, value)?;
            f.write_str("/")?;
            address::write_mac(f, mask)
        }
    }
}

/// Writes a value in the form of set-field: as in a match, but decimal numbers stay decimal with a
/// mask, and hexadecimal ones are not padded.
pub(super) fn write_set_value(
    f: &mut fmt::Formatter<'_>,
    field: Field,
    pair: MaskedValue,
    names: &NameMap,
) -> fmt::Result {
    let exact = pair.1 == field.full_mask();
    match names::form(field) {
        ValueFormat::Decimal | ValueFormat::Octet if exact => write!(f, "{}", pair.0),
        ValueFormat::Decimal | ValueFormat::Octet => write!(f, "{}/0x{:x}", pair.0, pair.1),
        ValueFormat::Hex(_)
        | ValueFormat::Flags
        | ValueFormat::ConnectionFlags
        | ValueFormat::Fragment => write_hex(f, pair, 1, exact),
        ValueFormat::Typed => special::write_packet_type(f, pair.0),
        ValueFormat::TunnelFlags if pair.0 == 0 => f.write_str("0"),
        ValueFormat::TunnelFlags => f.write_str("oam"),
        ValueFormat::Port if field == Field::NxInPort => {
            let port = u16::try_from(pair.0).expect("the field has 16 bits");
            address::write_port(f, widen(port).into(), names)
        }
        ValueFormat::Port => address::write_port(f, pair.0, names),
        form @ (ValueFormat::Mac | ValueFormat::Ipv4 | ValueFormat::Ipv6) => {
            write_address(f, form, pair, exact)
        }
    }
}
