//! Text of a request to flush connections: `[zone=N] [ORIGINAL] [REPLY]` (ovs-appctl
//! `dpctl/flush-conntrack`, ovs-ofctl(8), "ct-flush"). The messages are those of Open vSwitch.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use conntrack::{AddressFamily, KeyProtocol};
use openflow::{ConntrackFlush, ConntrackTuple};

/// Parses the arguments of a request: a zone, and the tuples of both directions. An empty tuple
/// matches any.
///
/// # Errors
/// A part is malformed or unknown; the message names it.
///
/// # Examples
/// ```
/// use switch::connection_filter::parse_request;
///
/// let request = parse_request(&["zone=5", "ct_nw_proto=17,ct_tp_src=53"]).unwrap();
/// assert_eq!((request.zone, request.protocol), (Some(5), 17));
/// assert_eq!(request.original.src_port, 53);
/// ```
pub fn parse_request(words: &[&str]) -> Result<ConntrackFlush, String> {
    let mut request = ConntrackFlush::default();
    let tuples = match words {
        [first, rest @ ..] if first.starts_with("zone=") => {
            let zone = first
                .strip_prefix("zone=")
                .and_then(|zone| zone.parse().ok());
            request.zone = Some(zone.ok_or("failed to parse zone")?);
            rest
        }
        all => all,
    };
    if tuples.len() > 2 {
        return Err("invalid arguments".to_owned());
    }
    let mut family = None;
    for (number, text) in tuples.iter().enumerate() {
        let mut parser = TupleParser {
            tuple: ConntrackTuple::default(),
            protocol: request.protocol,
            family,
        };
        parser.parse(text)?;
        family = parser.family;
        request.protocol = parser.protocol;
        if number == 0 {
            request.original = parser.tuple;
        } else {
            request.reply = parser.tuple;
        }
    }
    Ok(request)
}

/// A tuple while it is parsed. Protocol and version of IP are those of both tuples.
struct TupleParser {
    tuple: ConntrackTuple,
    protocol: u8,
    family: Option<AddressFamily>,
}

impl TupleParser {
    fn parse(&mut self, text: &str) -> Result<(), String> {
        let parts = text.split(|c: char| c == ',' || c.is_ascii_whitespace());
        for part in parts.filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            if value.is_empty() {
                return Err(format!("field {key} missing value"));
            }
            self.set(key, value)?;
        }
        let has_port = self.tuple.src_port != 0 || self.tuple.dst_port != 0;
        if self.protocol == 0 && has_port {
            return Err("port is set without protocol".to_owned());
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "ct_nw_src" | "ct_nw_dst" => {
                let mapped = |address: Ipv4Addr| address.to_ipv6_mapped();
                let parse = |text: &str| number(key, text).map(mapped);
                self.set_address(key, value, AddressFamily::V4, parse)
            }
            "ct_ipv6_src" | "ct_ipv6_dst" => {
                let parse = |text: &str| number(key, text);
                self.set_address(key, value, AddressFamily::V6, parse)
            }
            "ct_nw_proto" => number(key, value).map(|protocol| self.protocol = protocol),
            "ct_tp_src" => number(key, value).map(|port| self.tuple.src_port = port),
            "ct_tp_dst" => number(key, value).map(|port| self.tuple.dst_port = port),
            "icmp_id" | "icmp_type" | "icmp_code" => self.set_icmp(key, value),
            _ => Err(format!("invalid conntrack tuple field: {key}")),
        }
    }

    fn set_address(
        &mut self,
        key: &str,
        value: &str,
        family: AddressFamily,
        parse: impl FnOnce(&str) -> Result<Ipv6Addr, String>,
    ) -> Result<(), String> {
        if self.family.is_some_and(|other| other != family) {
            return Err(format!("the L3 protocol does not match {value}"));
        }
        let address = if key.ends_with("src") {
            &mut self.tuple.src
        } else {
            &mut self.tuple.dst
        };
        if !address.is_unspecified() {
            return Err(format!("{key} is set multiple times"));
        }
        *address = parse(value)?;
        self.family = Some(family);
        Ok(())
    }

    fn set_icmp(&mut self, key: &str, value: &str) -> Result<(), String> {
        if !KeyProtocol(self.protocol).is_icmp() {
            return Err("invalid L4 fields".to_owned());
        }
        match key {
            "icmp_id" => self.tuple.src_port = number(key, value)?,
            "icmp_type" => self.tuple.set_icmp_type(number(key, value)?),
            _ => self.tuple.set_icmp_code(number(key, value)?),
        }
        Ok(())
    }
}

/// Parses a value; the error names its key.
fn number<T: FromStr>(key: &str, value: &str) -> Result<T, String> {
    let failed = |_| format!("failed to parse field {key}");
    value.parse().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flush_request_has_zone_and_tuples() {
        assert_eq!(parse_request(&[]), Ok(ConntrackFlush::default()));
        let icmp =
            "ct_nw_src=10.1.1.2,ct_nw_dst=10.1.1.1,ct_nw_proto=1,icmp_id=7,icmp_type=8,icmp_code=3";
        let request = parse_request(&["zone=5", icmp]).expect(icmp);
        assert_eq!((request.zone, request.protocol), (Some(5), 1));
        let tuple = request.original;
        assert_eq!(tuple.src.to_ipv4_mapped(), Some(Ipv4Addr::new(10, 1, 1, 2)));
        let message = (tuple.src_port, tuple.icmp_type(), tuple.icmp_code());
        assert_eq!(message, (7, 8, 3));
        let request = parse_request(&["", "ct_ipv6_src=fd00::1"]).expect("a reply tuple");
        assert_eq!(request.original, ConntrackTuple::default());
        assert_eq!(
            request.reply.src,
            "fd00::1".parse::<Ipv6Addr>().expect("an address")
        );
    }

    #[test]
    fn flush_request_names_its_malformed_part() {
        let cases: [(&[&str], &str); 11] = [
            (&["zone=x"], "failed to parse zone"),
            (&["zone=70000"], "failed to parse zone"),
            (&["ct_nw_src"], "field ct_nw_src missing value"),
            (&["ct_nw_src=10.1"], "failed to parse field ct_nw_src"),
            (
                &["ct_nw_src=10.1.1.1,ct_nw_src=10.1.1.2"],
                "ct_nw_src is set multiple times",
            ),
            (
                &["ct_nw_src=10.1.1.1", "ct_ipv6_src=fd00::1"],
                "the L3 protocol does not match fd00::1",
            ),
            (&["ct_nw_proto=300"], "failed to parse field ct_nw_proto"),
            (&["ct_tp_src=1"], "port is set without protocol"),
            (&["ct_nw_proto=17,icmp_id=1"], "invalid L4 fields"),
            (
                &["nw_src=10.1.1.1"],
                "invalid conntrack tuple field: nw_src",
            ),
            (&["", "", ""], "invalid arguments"),
        ];
        for (words, problem) in cases {
            assert_eq!(parse_request(words), Err(problem.to_owned()), "{words:?}");
        }
    }
}
