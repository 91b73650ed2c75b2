//! Parsers for the headers of frames.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use record::nearest;
use trafficgen::Template;
use trafficgen::template::{Encapsulation, FlowField, Flows, Label, Party, Protocol, Tag, Tunnel};

use super::BadWord;

/// Kind of frames: protocol and encapsulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameKind {
    protocol: Protocol,
    encapsulation: EncapsulationKind,
}

/// Encapsulation of a packet, without its identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EncapsulationKind {
    Nothing,
    Vlan,
    QinQ,
    Mpls,
    Vxlan,
    Gre,
    Geneve,
}

const PROTOCOLS: [(&str, Protocol); 4] = [
    ("udp", Protocol::Udp),
    ("udp6", Protocol::Udp6),
    ("tcp", Protocol::Tcp),
    ("icmp", Protocol::Icmp),
];

const AROUND: [(&str, EncapsulationKind); 6] = [
    ("vlan", EncapsulationKind::Vlan),
    ("qinq", EncapsulationKind::QinQ),
    ("mpls", EncapsulationKind::Mpls),
    ("vxlan", EncapsulationKind::Vxlan),
    ("gre", EncapsulationKind::Gre),
    ("geneve", EncapsulationKind::Geneve),
];

impl Default for FrameKind {
    fn default() -> Self {
        Self {
            protocol: Protocol::Udp,
            encapsulation: EncapsulationKind::Nothing,
        }
    }
}

impl FromStr for FrameKind {
    type Err = BadWord;

    /// Parses `udp`, `vlan` or `vxlan+tcp`; the default protocol is UDP.
    fn from_str(text: &str) -> Result<Self, BadWord> {
        let mut kind = Self::default();
        let (mut carried, mut around) = (0, 0);
        for word in text.split('+') {
            let protocol = PROTOCOLS.iter().find(|(name, _)| *name == word);
            let outside = AROUND.iter().find(|(name, _)| *name == word);
            match (protocol, outside) {
                (Some((_, protocol)), _) => (kind.protocol, carried) = (*protocol, carried + 1),
                (_, Some((_, outside))) => {
                    (kind.encapsulation, around) = (*outside, around + 1);
                }
                _ => return Err(unknown(word)),
            }
        }
        match carried <= 1 && around <= 1 {
            true => Ok(kind),
            false => Err(BadWord(format!(
                "'{text}': frames have one protocol and one encapsulation"
            ))),
        }
    }
}

fn unknown(word: &str) -> BadWord {
    let names = PROTOCOLS.iter().map(|(name, _)| *name);
    let names: Vec<&str> = names.chain(AROUND.iter().map(|(name, _)| *name)).collect();
    BadWord(format!(
        "unknown frames '{word}'{}: expected one of {}, or two joined by +, as vxlan+tcp",
        nearest(word, names.iter().copied()),
        names.join(", ")
    ))
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = PROTOCOLS.iter().find(|(_, one)| *one == self.protocol);
        let around = AROUND.iter().find(|(_, one)| *one == self.encapsulation);
        let words = [
            around.map(|(name, _)| *name),
            protocol.map(|(name, _)| *name),
        ];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        f.write_str(&words.join("+"))
    }
}

/// Ethernet address, written as six pairs of digits between colons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl FromStr for Mac {
    type Err = BadWord;

    fn from_str(text: &str) -> Result<Self, BadWord> {
        let bad = || {
            BadWord(format!(
                "invalid Ethernet address '{text}': expected one like 02:00:00:00:01:02"
            ))
        };
        let byte = |pair: &str| {
            let digits = (1..=2).contains(&pair.len());
            let byte = u8::from_str_radix(pair, 16).ok();
            byte.filter(|_| digits && pair.chars().all(|one| one.is_ascii_hexdigit()))
        };
        let bytes: Option<Vec<u8>> = text.split(':').map(byte).collect();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Mac).ok_or_else(bad)
    }
}

/// Addresses of a source or destination; the tester chooses those that are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// Ethernet address.
    pub mac: Option<Mac>,
    /// IPv4 address.
    pub address: Option<Ipv4Addr>,
    /// UDP or TCP port.
    pub port: Option<u16>,
}

impl Addresses {
    /// Returns the addresses, with those of the tester's station `number` for the missing ones.
    fn or(self, number: u8) -> Party {
        let mut party = Party::numbered(number);
        party.mac = self.mac.map_or(party.mac, |Mac(mac)| mac);
        party.ipv4 = self.address.unwrap_or(party.ipv4);
        party.port = self.port.unwrap_or(party.port);
        party
    }
}

/// Headers of frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderOptions {
    /// Protocol and encapsulation.
    pub kind: FrameKind,
    /// Source.
    pub source: Addresses,
    /// Destination.
    pub destination: Addresses,
    /// VLAN identifier (12 bits), of the inner tag if there are two.
    pub vid: u16,
    /// MPLS label (20 bits).
    pub label: u32,
    /// Tunnel identifier (24 bits).
    pub vni: u32,
    /// DSCP (six bits).
    pub dscp: u8,
    /// Number of flows.
    pub flows: u32,
    /// True for flows in random order.
    pub random: bool,
    /// Seed of that order and of random gaps.
    pub seed: u64,
}

impl Default for HeaderOptions {
    fn default() -> Self {
        Self {
            kind: FrameKind::default(),
            source: Addresses::default(),
            destination: Addresses::default(),
            vid: 10,
            label: 16,
            vni: 1,
            dscp: 0,
            flows: 1,
            random: false,
            seed: 1,
        }
    }
}

impl HeaderOptions {
    /// Returns the template of the frames. Flows differ in the source address.
    #[must_use]
    pub fn template(&self) -> Template {
        let fields: &[FlowField] = match self.flows {
            1 => &[],
            _ => &[FlowField::SourceAddress],
        };
        let flows = match self.random {
            true => Flows::random(self.flows, self.seed, fields),
            false => Flows::sequential(self.flows, fields),
        };
        Template {
            protocol: self.kind.protocol,
            encapsulation: self.encapsulation(),
            source: self.source.or(1),
            destination: self.destination.or(2),
            dscp: self.dscp,
            flows,
            ..Template::udp(64)
        }
    }

    fn encapsulation(&self) -> Encapsulation {
        let tag = |vid| Tag { vid, pcp: 0 };
        // The endpoints of the tunnel are other stations than those inside.
        let tunnel = Tunnel {
            source: Party::numbered(3),
            destination: Party::numbered(4),
            vni: self.vni,
        };
        match self.kind.encapsulation {
            EncapsulationKind::Nothing => Encapsulation::Plain,
            EncapsulationKind::Vlan => Encapsulation::Vlan(tag(self.vid)),
            EncapsulationKind::QinQ => Encapsulation::QinQ {
                outer: tag(OUTER_VID),
                inner: tag(self.vid),
            },
            EncapsulationKind::Mpls => Encapsulation::Mpls(Label {
                value: self.label,
                class: 0,
                ttl: 64,
            }),
            EncapsulationKind::Vxlan => Encapsulation::Vxlan(tunnel),
            EncapsulationKind::Gre => Encapsulation::Gre(tunnel),
            EncapsulationKind::Geneve => Encapsulation::Geneve(tunnel),
        }
    }
}

/// VLAN identifier of the outer tag, if there are two.
const OUTER_VID: u16 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_kinds_parse_as_they_are_printed_and_can_be_sent() {
        for (protocol, _) in PROTOCOLS {
            for around in AROUND.map(|(name, _)| Some(name)).into_iter().chain([None]) {
                let text =
                    around.map_or_else(|| protocol.to_owned(), |one| format!("{one}+{protocol}"));
                let kind: FrameKind = text.parse().unwrap();
                assert_eq!(kind.to_string(), text);
                let headers = HeaderOptions {
                    kind,
                    flows: 1_000,
                    ..HeaderOptions::default()
                };
                let template = Template {
                    frame_bytes: 256,
                    ..headers.template()
                };
                assert_eq!(template.check(), Ok(()), "{text}");
            }
        }
        assert_eq!("vlan".parse::<FrameKind>().unwrap().to_string(), "vlan+udp");
    }

    #[test]
    fn unknown_frame_kind_suggests_the_nearest() {
        let message = |text: &str| text.parse::<FrameKind>().unwrap_err().to_string();
        assert!(
            message("vlam").contains("did you mean 'vlan'?"),
            "{}",
            message("vlam")
        );
        assert!(message("tcp+udp").contains("one protocol"));
        assert!("vlan+mpls".parse::<FrameKind>().is_err());
        assert!("".parse::<FrameKind>().is_err());
    }

    #[test]
    fn given_addresses_are_kept_and_others_have_defaults() {
        let headers = HeaderOptions {
            source: Addresses {
                mac: Some("2:0:0:0:a:FF".parse().unwrap()),
                ..Addresses::default()
            },
            destination: Addresses {
                address: Some(Ipv4Addr::new(10, 0, 0, 9)),
                port: Some(53),
                ..Addresses::default()
            },
            ..HeaderOptions::default()
        };
        let template = headers.template();
        assert_eq!(template.source.mac, [2, 0, 0, 0, 10, 255]);
        assert_eq!(template.source.ipv4, Party::numbered(1).ipv4);
        assert_eq!(template.destination.ipv4.octets(), [10, 0, 0, 9]);
        assert_eq!(template.destination.port, 53);
        for bad in [
            "",
            "1:2:3:4:5",
            "1:2:3:4:5:6:7",
            "+1:2:3:4:5:6",
            "123:2:3:4:5:6",
        ] {
            assert!(bad.parse::<Mac>().is_err(), "{bad}");
        }
    }
}
