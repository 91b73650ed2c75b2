//! Ethernet, IPv4 and IPv6 addresses with their masks, and ports.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use base::PortNo;
use packet::MacAddr;

use super::error::ParseError;
use super::lexer::Token;
use super::name_map::{NameMap, WithNames, unquoted};
use super::number::{MaskedValue, masked, number, unsigned};

/// Parses an Ethernet address, with an optional mask of the same form.
pub(super) fn mac(token: Token<'_>, full: u128) -> Result<MaskedValue, ParseError> {
    masked(token, full, |part| {
        part.text
            .parse::<MacAddr>()
            .map(|mac| u128::from(mac.to_u64()))
            .map_err(|error| part.error(error.to_string()))
    })
}

/// Parses an IPv4 address, with an optional prefix length or mask.
pub(super) fn ipv4(token: Token<'_>, full: u128) -> Result<MaskedValue, ParseError> {
    prefixed(token, full, |part| {
        part.text
            .parse::<Ipv4Addr>()
            .map(|address| u128::from(address.to_bits()))
            .map_err(|_| part.error("expected an IPv4 address, such as 10.0.0.1"))
    })
}

/// Parses an IPv6 address, with an optional prefix length or mask.
pub(super) fn ipv6(token: Token<'_>, full: u128) -> Result<MaskedValue, ParseError> {
    prefixed(token, full, |part| {
        part.text
            .parse::<Ipv6Addr>()
            .map(Ipv6Addr::to_bits)
            .map_err(|_| part.error("expected an IPv6 address, such as fe80::1"))
    })
}

/// Parses an address with an optional prefix length or mask.
fn prefixed(
    token: Token<'_>,
    full: u128,
    read: impl Fn(Token<'_>) -> Result<u128, ParseError>,
) -> Result<MaskedValue, ParseError> {
    match token.split_once("/") {
        Some((address, length)) if length.text.chars().all(|c| c.is_ascii_digit()) => {
            let bits = full.count_ones();
            let length = unsigned(length, u128::from(bits))?;
            let wild = u32::try_from(length).map_or(0, |length| bits - length);
            let mask = full & u128::MAX.checked_shl(wild).unwrap_or(0);
            Ok((read(address)? & mask, mask))
        }
        _ => masked(token, full, read),
    }
}

/// Returns the length of the prefix that `mask` represents, or `None` for other masks.
fn prefix_length(mask: u128, bits: u32) -> Option<u32> {
    let wild = mask.trailing_zeros().min(bits);
    let length = bits - wild;
    (mask.count_ones() == length).then_some(length)
}

/// Parses a port: a number, a reserved name in any case, or a name from the map.
pub(super) fn port(token: Token<'_>) -> Result<PortNo, ParseError> {
    let name = unquoted(token.text);
    if let Some(port) = name.and_then(|name| named(&name, token)) {
        return Ok(port);
    }
    if token.text.starts_with(|c: char| c.is_ascii_digit()) {
        number::<u32>(token)?;
    }
    match token.text.parse() {
        Ok(port) if !token.text.starts_with('+') => Ok(port),
        _ => Err(token.error("expected a port: a number, or a name such as LOCAL or IN_PORT")),
    }
}

/// Returns the port with this name, except for the reserved names unless quoted.
fn named(name: &str, token: Token<'_>) -> Option<PortNo> {
    let reserved = token.text == name && name.parse::<PortNo>().is_ok();
    token.names.port(name).filter(|_| !reserved)
}

/// Writes an Ethernet address.
pub(super) fn write_mac(f: &mut fmt::Formatter<'_>, value: u128) -> fmt::Result {
    let number = u64::try_from(value).expect("the field has 48 bits");
    write!(f, "{}", MacAddr::from_u64(number))
}

/// Writes a port by its name or number.
pub(super) fn write_port(f: &mut fmt::Formatter<'_>, value: u128, names: &NameMap) -> fmt::Result {
    let number = u32::try_from(value).expect("the field has 32 bits");
    write!(f, "{}", WithNames(&PortNo(number), names))
}

/// Writes an IPv4 address with its prefix length or mask.
pub(super) fn write_ipv4(f: &mut fmt::Formatter<'_>, (value, mask): MaskedValue) -> fmt::Result {
    let address = |bits| Ipv4Addr::from_bits(u32::try_from(bits).expect("the field has 32 bits"));
    write!(f, "{}", address(value))?;
    match prefix_length(mask, 32) {
        Some(32) => Ok(()),
        Some(length) => write!(f, "/{length}"),
        None => write!(f, "/{}", address(mask)),
    }
}

/// Writes an IPv6 address with its prefix length or mask.
pub(super) fn write_ipv6(f: &mut fmt::Formatter<'_>, (value, mask): MaskedValue) -> fmt::Result {
    write!(f, "{}", Ipv6Text(Ipv6Addr::from_bits(value)))?;
    match prefix_length(mask, 128) {
        Some(128) => Ok(()),
        Some(length) => write!(f, "/{length}"),
        None => write!(f, "/{}", Ipv6Text(Ipv6Addr::from_bits(mask))),
    }
}

/// An IPv6 address in the text form of `inet_ntop`, which Open vSwitch prints: the form of
/// [`Ipv6Addr`], except that an IPv4-compatible address (RFC 4291, 2.5.5.1) ends in dotted decimal.
///
/// ```
/// use flow::text::Ipv6Text;
///
/// assert_eq!(Ipv6Text("::2:6".parse().unwrap()).to_string(), "::0.2.0.6");
/// assert_eq!(Ipv6Text("::6".parse().unwrap()).to_string(), "::6");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Text(
    /// The address.
    pub Ipv6Addr,
);

impl fmt::Display for Ipv6Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match u32::try_from(self.0.to_bits()) {
            Ok(low) if low > 0xffff => write!(f, "::{}", Ipv4Addr::from_bits(low)),
            _ => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lexer::line;
    use super::*;

    struct FormatWith<F: Fn(&mut fmt::Formatter<'_>) -> fmt::Result>(F);

    impl<F: Fn(&mut fmt::Formatter<'_>) -> fmt::Result> fmt::Display for FormatWith<F> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0(f)
        }
    }

    fn through_ipv4(text: &str) -> Result<String, String> {
        ipv4(line(text).expect("short"), u32::MAX.into())
            .map(|pair| FormatWith(|f: &mut fmt::Formatter<'_>| write_ipv4(f, pair)).to_string())
            .map_err(|error| error.problem)
    }

    fn through_ipv6(text: &str) -> Result<String, String> {
        ipv6(line(text).expect("short"), u128::MAX)
            .map(|pair| FormatWith(|f: &mut fmt::Formatter<'_>| write_ipv6(f, pair)).to_string())
            .map_err(|error| error.problem)
    }

    #[test]
    fn prefix_mask_is_written_as_length() {
        for (text, written) in [
            ("10.1.2.3", "10.1.2.3"),
            ("10.1.2.3/32", "10.1.2.3"),
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("10.1.2.3/255.0.0.0", "10.0.0.0/8"),
            ("10.1.2.3/255.0.0.255", "10.0.0.3/255.0.0.255"),
            ("10.1.2.3/0", "0.0.0.0/0"),
        ] {
            assert_eq!(through_ipv4(text).as_deref(), Ok(written), "{text}");
        }
        for (text, written) in [
            ("fe80:0::1", "fe80::1"),
            ("fe80::1/10", "fe80::/10"),
            ("fe80::1/ffc0::", "fe80::/10"),
            ("fe80::1/ffff::1", "fe80::1/ffff::1"),
            ("::1/0", "::/0"),
            ("::1.2.3.4", "::1.2.3.4"),
            ("::1:0/::1:0", "::0.1.0.0/::0.1.0.0"),
            ("::ffff:1.2.3.4", "::ffff:1.2.3.4"),
        ] {
            assert_eq!(through_ipv6(text).as_deref(), Ok(written), "{text}");
        }
    }

    #[test]
    fn prefixes_longer_than_the_address_are_refused() {
        assert!(
            through_ipv4("10.0.0.0/33")
                .expect_err("33")
                .contains("0 to 32")
        );
        assert!(
            through_ipv6("::/129")
                .expect_err("129")
                .contains("0 to 128")
        );
        assert!(
            through_ipv4("10.0.0/8")
                .expect_err("three bytes")
                .contains("IPv4")
        );
        assert!(through_ipv4("10.0.0.0/").is_err());
    }

    #[test]
    fn ports_are_numbers_or_reserved_names() {
        let read = |text| port(line(text).expect("short")).map_err(|error| error.problem);
        assert_eq!(read("7"), Ok(PortNo(7)));
        assert_eq!(read("local"), Ok(PortNo::LOCAL));
        for text in ["eth0", "", "+1", "-1", "4294967296", "08"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
