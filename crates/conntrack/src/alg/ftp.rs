//! Announcements of FTP control connections.
//!
//! | message | from | family |
//! |---|---|---|
//! | `PORT h1,h2,h3,h4,p1,p2` | client | IPv4 |
//! | `227 ... (h1,h2,h3,h4,p1,p2)` | server | IPv4 |
//! | `EPRT \|1\|address\|port\|` | client | IPv4 |
//! | `EPRT \|2\|address\|port\|` | client | IPv6 |
//! | `229 Entering Extended Passive Mode (\|\|\|port\|)` | server | both |
//!
//! Open vSwitch reads the extended messages (RFC 2428) over IPv6 only. EPRT with the number of the
//! other family announces nothing over IPv4, where servers refuse it, and is malformed over IPv6.
//!
//! Only the first 128 bytes of a segment are read. A number at the end of the segment is malformed:
//! the next segment may continue it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use crate::key::AddressFamily;

/// Bytes of a segment that are read, about twice the longest announcement.
const LEN_MAX: usize = 128;

/// End of the control connection that awaits the data connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FtpMode {
    /// The client.
    Active,
    /// The server.
    Passive,
}

/// Form of an announced address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FtpAddressForm {
    /// Four numbers with commas (RFC 959).
    Commas,
    /// The usual text form (RFC 2428).
    Extended,
}

/// An announced address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FtpAddress {
    pub(super) address: IpAddr,
    pub(super) form: FtpAddressForm,
    /// Its bytes in the payload.
    pub(super) range: Range<usize>,
}

impl FtpAddressForm {
    /// Returns the text of an address.
    pub(super) fn text(self, address: IpAddr) -> String {
        match self {
            Self::Commas => address.to_string().replace('.', ","),
            Self::Extended => address.to_string(),
        }
    }
}

/// A segment of a control connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FtpMessage {
    /// No announcement.
    Other,
    /// An announcement that is malformed.
    Malformed,
    /// An announcement.
    Announcement {
        mode: FtpMode,
        /// The extended passive reply has none.
        address: Option<FtpAddress>,
        port: u16,
    },
}

/// Parses the payload of a segment.
pub(super) fn parse(payload: &[u8], family: AddressFamily) -> FtpMessage {
    let text = &payload[..payload.len().min(LEN_MAX)];
    let announcement = match family {
        AddressFamily::V4 if starts_with(text, b"PORT") => parse_v4(text, 4, FtpMode::Active),
        AddressFamily::V4 if starts_with(text, b"227") => parse_v4(text, 3, FtpMode::Passive),
        _ if starts_with(text, b"EPRT") => parse_eprt(text, family),
        AddressFamily::V4 if starts_with(text, b"229") => parse_epsv(text),
        AddressFamily::V6 if contains(text, b"EXTENDED PASSIVE") => parse_epsv(text),
        AddressFamily::V4 | AddressFamily::V6 => return FtpMessage::Other,
    };
    announcement.unwrap_or(FtpMessage::Malformed)
}

fn parse_v4(text: &[u8], command_len: usize, mode: FtpMode) -> Option<FtpMessage> {
    let space = command_len + text[command_len..].iter().position(|byte| *byte == b' ')?;
    let start = space + text[space..].iter().position(u8::is_ascii_digit)?;
    let mut at = start;
    let mut numbers = [0_u8; 6];
    let mut address_end = start;
    for (index, number) in numbers.iter_mut().enumerate() {
        let (value, end) = number_at(text, at, 3)?;
        *number = u8::try_from(value).ok()?;
        if index == 3 {
            address_end = end;
        }
        // Commas separate the numbers; any byte ends the last one.
        if index < 5 && text[end] != b',' {
            return None;
        }
        at = end + 1;
    }
    let [a, b, c, d, high, low] = numbers;
    let address = FtpAddress {
        address: Ipv4Addr::new(a, b, c, d).into(),
        form: FtpAddressForm::Commas,
        range: start..address_end,
    };
    announcement(mode, Some(address), u16::from_be_bytes([high, low]))
}

fn parse_eprt(text: &[u8], family: AddressFamily) -> Option<FtpMessage> {
    let number = 4 + text[4..].iter().position(u8::is_ascii_digit)?;
    let (number, end) = number_at(text, number, 1)?;
    match (family, number) {
        (AddressFamily::V4, 1) | (AddressFamily::V6, 2) => {}
        (AddressFamily::V4, _) => return Some(FtpMessage::Other),
        (AddressFamily::V6, _) => return None,
    }
    let start = end + 1;
    let is_of_address = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
    let len = text
        .get(start..)?
        .iter()
        .position(|byte| !is_of_address(byte))?;
    let range = start..start + len;
    let printed = std::str::from_utf8(&text[range.clone()]).ok()?;
    let address = match family {
        AddressFamily::V4 => printed.parse::<Ipv4Addr>().ok()?.into(),
        AddressFamily::V6 => printed.parse::<Ipv6Addr>().ok()?.into(),
    };
    let (port, _) = number_at(text, range.end + 1, 5)?;
    let address = FtpAddress {
        address,
        form: FtpAddressForm::Extended,
        range,
    };
    announcement(FtpMode::Active, Some(address), u16::try_from(port).ok()?)
}

fn parse_epsv(text: &[u8]) -> Option<FtpMessage> {
    let parenthesis = text.iter().position(|byte| *byte == b'(')?;
    let digit = text[parenthesis..].iter().position(u8::is_ascii_digit)?;
    let (port, _) = number_at(text, parenthesis + digit, 5)?;
    announcement(FtpMode::Passive, None, u16::try_from(port).ok()?)
}

fn announcement(mode: FtpMode, address: Option<FtpAddress>, port: u16) -> Option<FtpMessage> {
    (port != 0).then_some(FtpMessage::Announcement {
        mode,
        address,
        port,
    })
}

/// Returns the number at `at` and the offset of the byte that ends it.
fn number_at(text: &[u8], at: usize, digits_max: usize) -> Option<(u32, usize)> {
    let rest = text.get(at..)?;
    let len = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    if len == 0 || len > digits_max {
        return None;
    }
    let digits = std::str::from_utf8(&rest[..len]).ok()?;
    Some((digits.parse().ok()?, at + len))
}

fn starts_with(text: &[u8], prefix: &[u8]) -> bool {
    text.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

fn contains(text: &[u8], pattern: &[u8]) -> bool {
    text.windows(pattern.len())
        .any(|window| window.eq_ignore_ascii_case(pattern))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn v4(text: &str) -> FtpMessage {
        parse(text.as_bytes(), AddressFamily::V4)
    }

    fn v6(text: &str) -> FtpMessage {
        parse(text.as_bytes(), AddressFamily::V6)
    }

    fn announced(address: &str, form: FtpAddressForm, range: Range<usize>) -> Option<FtpAddress> {
        Some(FtpAddress {
            address: address.parse().expect("an address"),
            form,
            range,
        })
    }

    fn found(mode: FtpMode, address: &str, range: Range<usize>, port: u16) -> FtpMessage {
        FtpMessage::Announcement {
            mode,
            address: announced(address, FtpAddressForm::Commas, range),
            port,
        }
    }

    fn extended(address: &str, range: Range<usize>, port: u16) -> FtpMessage {
        FtpMessage::Announcement {
            mode: FtpMode::Active,
            address: announced(address, FtpAddressForm::Extended, range),
            port,
        }
    }

    #[test]
    fn ftp_announcements_are_parsed() {
        let active = found(FtpMode::Active, "10.1.2.33", 5..14, 5_001);
        assert_eq!(v4("PORT 10,1,2,33,19,137\r\n"), active);
        assert_eq!(v4("port 10,1,2,33,19,137\r\n"), active);
        let passive = found(FtpMode::Passive, "10.1.2.3", 27..35, 258);
        assert_eq!(v4("227 Entering Passive Mode (10,1,2,3,1,2).\r\n"), passive);
        let active = extended("fd00::1", 8..15, 6_446);
        assert_eq!(v6("EPRT |2|fd00::1|6446|\r\n"), active);
        let active = extended("10.1.2.33", 8..17, 6_446);
        assert_eq!(v4("EPRT |1|10.1.2.33|6446|\r\n"), active);
        let passive = FtpMessage::Announcement {
            mode: FtpMode::Passive,
            address: None,
            port: 6_446,
        };
        let text = "229 Entering Extended Passive Mode (|||6446|)\r\n";
        assert_eq!(v6(text), passive);
        assert_eq!(v4(text), passive);
    }

    #[test]
    fn ftp_address_is_printed_in_its_form() {
        let address = IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3));
        assert_eq!(FtpAddressForm::Commas.text(address), "10,1,2,3");
        assert_eq!(FtpAddressForm::Extended.text(address), "10.1.2.3");
        let address = IpAddr::V6(Ipv6Addr::LOCALHOST);
        assert_eq!(FtpAddressForm::Extended.text(address), "::1");
    }

    #[test]
    fn ftp_messages_that_lie_or_are_split_are_malformed() {
        for text in [
            "PORT",
            "PORT 10,1,2,33,19,137",
            "PORT 10,1,2,333,19,137\r\n",
            "PORT 10,1,2,33,19\r\n",
            "PORT 10,1,2,33,0,0\r\n",
            "PORT 10.1.2.33,19,137\r\n",
            "227 (10,1,2,3,1000,2)\r\n",
            "EPRT |1|10.0.0.256|6446|\r\n",
            "EPRT |1|10.0.0.1|6446",
            "229 Extended Passive (|||",
        ] {
            assert_eq!(v4(text), FtpMessage::Malformed, "{text}");
        }
        for text in [
            "EPRT |1|10.0.0.1|6446|\r\n",
            "EPRT |2|fd00::g|6446|\r\n",
            "EPRT |2|fd00::1|66000|\r\n",
            "EPRT |2|fd00::1|64",
            "229 Extended Passive (|||",
        ] {
            assert_eq!(v6(text), FtpMessage::Malformed, "{text}");
        }
        assert_eq!(v4("USER anonymous\r\n"), FtpMessage::Other);
        assert_eq!(v4("EPRT |2|fd00::1|6446|\r\n"), FtpMessage::Other);
    }

    proptest! {
        #[test]
        fn ftp_parser_accepts_arbitrary_bytes(
            start in prop::sample::select(vec!["PORT ", "227 ", "EPRT ", "229 Extended Passive ("]),
            rest in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let payload = [start.as_bytes(), &rest[..]].concat();
            for family in [AddressFamily::V4, AddressFamily::V6] {
                if let FtpMessage::Announcement { address: Some(address), .. } =
                    parse(&payload, family)
                {
                    prop_assert!(address.range.end < payload.len());
                }
            }
        }
    }
}
