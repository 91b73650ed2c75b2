//! Values with a syntax of their own: VLAN tags, ToS, TCP and tunnel flags, fragments.

use std::fmt;

use super::error::ParseError;
use super::lexer::Token;
use super::number::{MaskedValue, masked, number, unsigned};
use crate::connection_fields::ConnectionFields;
use crate::field::{Field, VID_PRESENT, frag};

/// The bits of a tag that are its priority.
const TCI_PCP: u16 = 0xe000;

/// Twelve bits: the VLAN id of a tag.
const VID: u16 = 0x0fff;

/// Value of `dl_vlan` in OpenFlow 1.0 for a frame without a tag (`OFP_VLAN_NONE`).
const VLAN_NONE: u16 = 0xffff;

/// Reads `dl_vlan` as a value of `vlan_vid`.
pub(super) fn dl_vlan(token: Token<'_>) -> Result<MaskedValue, ParseError> {
    let full = Field::VlanVid.full_mask();
    match number::<u16>(token) {
        Ok(vid @ 0..=VID) => Ok((u128::from(vid | VID_PRESENT), full)),
        Ok(VLAN_NONE) => Ok((0, full)),
        _ => Err(token.error("expected a VLAN id from 0 to 4095, or 0xffff for no tag")),
    }
}

/// Terms on both fields of a tag.
pub(super) struct TciTerms {
    pub(super) vid: MaskedValue,
    pub(super) pcp: Option<u128>,
}

/// Parses `vlan_tci`: control information of a tag with an optional mask. The CFI bit is the
/// presence bit; without a tag all bits are zero.
pub(super) fn vlan_tci(token: Token<'_>) -> Result<TciTerms, ParseError> {
    let (value, mask) = masked(token, 0xffff, |part| number::<u16>(part).map(u128::from))?;
    let priority = u128::from(TCI_PCP);
    let vid = (value & !priority, mask & !priority);
    let present = u128::from(VID_PRESENT);
    let pcp = match mask & priority {
        0 => None,
        // No tag: the priority's zeros add nothing.
        some if some == priority && mask & present != 0 && value & (present | priority) == 0 => {
            None
        }
        some if some == priority && value & present != 0 => Some(value >> 13),
        some if some == priority => {
            return Err(token.error("a priority without a tag: set bit 0x1000 in value and mask"));
        }
        _ => {
            return Err(
                token.error("the priority must be matched completely or not at all: mask 0xe000")
            );
        }
    };
    Ok(TciTerms { vid, pcp })
}

/// Parses `nw_tos`, the ToS byte with the DSCP in its upper six bits. Returns the DSCP.
pub(super) fn tos(token: Token<'_>) -> Result<u128, ParseError> {
    match unsigned(token, 255)? {
        byte if byte & 3 == 0 => Ok(byte >> 2),
        _ => {
            Err(token
                .error("expected a multiple of 4: the lower two bits are not part of the DSCP"))
        }
    }
}

/// Writes the terms on a tag. `pcp` is given only if `vid` requires a tag.
pub(super) fn write_vlan(
    f: &mut fmt::Formatter<'_>,
    (value, mask): MaskedValue,
    pcp: Option<u128>,
) -> fmt::Result {
    let (vid, present) = (u128::from(VID), u128::from(VID_PRESENT));
    match (mask & vid, pcp) {
        (m, Some(pcp)) if m == 0 && value == present => write!(f, "dl_vlan_pcp={pcp}"),
        (m, None) if m == vid && value & present != 0 => write!(f, "dl_vlan={}", value & vid),
        (m, Some(pcp)) if m == vid && value & present != 0 => {
            write!(f, "dl_vlan={},dl_vlan_pcp={pcp}", value & vid)
        }
        _ => {
            let value = value | pcp.unwrap_or(0) << 13;
            let mask = mask | pcp.map_or(0, |_| u128::from(TCI_PCP));
            write!(f, "vlan_tci=0x{value:04x}/0x{mask:04x}")
        }
    }
}

/// The names of TCP's flags, from bit 0 (RFC 9293, 3.1; RFC 3540 for `ns`).
const TCP_FLAGS: [&str; 12] = [
    "fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns", "[200]", "[400]", "[800]",
];

/// Names of the flags of a field, from bit 0, and the message for another name.
#[derive(Clone, Copy)]
struct FlagNames {
    names: &'static [&'static str],
    expected: &'static str,
}

const TCP: FlagNames = FlagNames {
    names: &TCP_FLAGS,
    expected: "expected a TCP flag: fin, syn, rst, psh, ack, urg, ece, cwr or ns",
};

const CT: FlagNames = FlagNames {
    names: &ConnectionFields::STATES,
    expected: "expected a state: new, est, rel, rpl, inv, trk, snat or dnat",
};

/// Reads `tcp_flags`: `+syn-ack`, `syn|ack`, or numbers.
pub(super) fn tcp_flags(token: Token<'_>) -> Result<MaskedValue, ParseError> {
    flags(token, Field::TcpFlags, TCP)
}

/// Reads `ct_state`: `+trk-new`, `trk|est`, or numbers.
pub(super) fn ct_state(token: Token<'_>) -> Result<MaskedValue, ParseError> {
    flags(token, Field::CtState, CT)
}

fn flags(token: Token<'_>, field: Field, known: FlagNames) -> Result<MaskedValue, ParseError> {
    let full = field.full_mask();
    if token.text.starts_with(['+', '-']) {
        return signed_flags(token, known);
    }
    if token.text.starts_with(|c: char| c.is_ascii_digit()) && !token.text.contains('|') {
        return masked(token, full, |part| unsigned(part, full));
    }
    let mut flags = 0;
    let mut rest = Some(token);
    while let Some(part) = rest {
        let (name, others) = match part.split_once("|") {
            Some((name, others)) => (name, Some(others)),
            None => (part, None),
        };
        flags |= match unsigned(name, full) {
            Ok(bits) => bits,
            Err(_) => flag(name, known)?,
        };
        rest = others;
    }
    Ok((flags, full))
}

/// Parses flags with `+` for set and `-` for clear.
fn signed_flags(token: Token<'_>, known: FlagNames) -> Result<MaskedValue, ParseError> {
    let (mut flags, mut mask) = (0, 0);
    let mut rest = token;
    while !rest.text.is_empty() {
        let (sign, unsigned) = rest.split_at(1);
        let len = unsigned
            .text
            .find(['+', '-'])
            .unwrap_or(unsigned.text.len());
        let (name, others) = unsigned.split_at(len);
        let bit = flag(name, known)?;
        if mask & bit != 0 {
            return Err(name.error("duplicate flag"));
        }
        mask |= bit;
        if sign.text == "+" {
            flags |= bit;
        }
        rest = others;
    }
    Ok((flags, mask))
}

/// Reads the name of one flag.
fn flag(name: Token<'_>, known: FlagNames) -> Result<u128, ParseError> {
    let bit = known.names.iter().position(|known| *known == name.text);
    bit.map(|bit| 1 << bit)
        .ok_or_else(|| name.error(known.expected))
}

/// Writes TCP flags: `syn|ack` with a full mask, otherwise `+syn-ack`.
pub(super) fn write_tcp_flags(f: &mut fmt::Formatter<'_>, pair: MaskedValue) -> fmt::Result {
    write_flags(f, pair, Field::TcpFlags, TCP)
}

/// Writes the state of a connection: `est|trk` with a full mask, otherwise `+est+trk`.
pub(super) fn write_ct_state(f: &mut fmt::Formatter<'_>, pair: MaskedValue) -> fmt::Result {
    write_flags(f, pair, Field::CtState, CT)
}

fn write_flags(
    f: &mut fmt::Formatter<'_>,
    (flags, mask): MaskedValue,
    field: Field,
    known: FlagNames,
) -> fmt::Result {
    let exact = mask == field.full_mask();
    if exact && flags == 0 {
        return f.write_str("0");
    }
    let mut separator = "";
    for (bit, name) in known.names.iter().enumerate() {
        let set = flags >> bit & 1 == 1;
        if exact && set {
            write!(f, "{separator}{name}")?;
            separator = "|";
        } else if !exact && mask >> bit & 1 == 1 {
            write!(f, "{}{name}", if set { '+' } else { '-' })?;
        }
    }
    Ok(())
}

/// The one flag of a tunnel (`ovs-fields(7)`, tun_flags).
const TUNNEL_OAM: &str = "oam";

/// Reads `tun_flags`: `+oam`, `-oam`, `oam`, or numbers.
pub(super) fn tunnel_flags(token: Token<'_>) -> Result<MaskedValue, ParseError> {
    let full = Field::TunFlags.full_mask();
    let (sign, name) = match token.text.strip_prefix(['+', '-']) {
        Some(_) => token.split_at(1),
        None => token.split_at(0),
    };
    match (sign.text, name.text) {
        ("-", TUNNEL_OAM) => Ok((0, full)),
        (_, TUNNEL_OAM) => Ok((1, full)),
        ("", text) if text.starts_with(|c: char| c.is_ascii_digit()) => {
            masked(token, full, |part| unsigned(part, full))
        }
        _ => Err(token.error("expected a tunnel's flag: +oam or -oam")),
    }
}

/// Writes the flags of a tunnel in a match.
pub(super) fn write_tunnel_flags(f: &mut fmt::Formatter<'_>, flags: u128) -> fmt::Result {
    let sign = if flags == 0 { '-' } else { '+' };
    write!(f, "{sign}{TUNNEL_OAM}")
}

/// Kinds of fragment: name, value, mask.
const FRAGMENTS: [(&str, u8, u8); 5] = [
    ("no", 0, frag::ANY | frag::LATER),
    ("yes", frag::ANY, frag::ANY),
    ("first", frag::ANY, frag::ANY | frag::LATER),
    ("later", frag::ANY | frag::LATER, frag::ANY | frag::LATER),
    ("not_later", 0, frag::LATER),
];

/// Parses `ip_frag`: a word, or numbers for other combinations.
pub(super) fn fragment(token: Token<'_>) -> Result<MaskedValue, ParseError> {
    if let Some((_, value, mask)) = FRAGMENTS.iter().find(|(name, ..)| *name == token.text) {
        return Ok((u128::from(*value), u128::from(*mask)));
    }
    if token.text.starts_with(|c: char| c.is_ascii_digit()) {
        return masked(token, 0xff, |part| unsigned(part, 0xff));
    }
    Err(token.error("expected a kind of fragment: no, yes, first, later or not_later"))
}

/// Writes a kind of fragment.
pub(super) fn write_fragment(
    f: &mut fmt::Formatter<'_>,
    (value, mask): MaskedValue,
) -> fmt::Result {
    let known = FRAGMENTS
        .iter()
        .find(|(_, v, m)| u128::from(*v) == value && u128::from(*m) == mask);
    match known {
        Some((name, ..)) => f.write_str(name),
        None => write!(f, "0x{value:x}/0x{mask:x}"),
    }
}

/// Parses `packet_type`: `(name space,type)`, sixteen bits each, or both as one number.
pub(super) fn packet_type(token: Token<'_>) -> Result<u128, ParseError> {
    let inner = token
        .text
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'));
    let Some(inner) = inner else {
        return number::<u32>(token).map(u128::from);
    };
    let inner = Token {
        text: inner,
        at: token.at + 1,
        ..token
    };
    let Some((space, kind)) = inner.split_once(",") else {
        return Err(token.error("expected a name space and a type: (0,0)"));
    };
    let (space, kind) = (number::<u16>(space.trim())?, number::<u16>(kind.trim())?);
    Ok(u128::from(space) << 16 | u128::from(kind))
}

/// Writes `packet_type` as `ovs-ofctl` does: numbers of more than one decimal digit in hexadecimal.
pub(super) fn write_packet_type(f: &mut fmt::Formatter<'_>, value: u128) -> fmt::Result {
    let number = |number: u128| match number {
        ..10 => number.to_string(),
        _ => format!("0x{number:x}"),
    };
    write!(f, "({},{})", number(value >> 16), number(value & 0xffff))
}
