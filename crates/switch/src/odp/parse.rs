//! The parser of datapath flows, which accepts what Open vSwitch's `odp_flow_from_string` accepts.
//!
//! ```text
//! tunnel(tun_id=0x1,src=1.1.1.1,dst=2.2.2.2,ttl=64,flags(key)),in_port(1),
//!   eth(src=50:54:00:00:00:05,dst=50:54:00:00:00:07),eth_type(0x8100),vlan(vid=5,pcp=0),
//!   encap(eth_type(0x0800),ipv4(src=10.0.0.1/255.0.0.0,frag=no))
//! ```
//!
//! A flow has values and masks. A frame is composed of the values alone, as in Open vSwitch: the
//! text `src=10.0.0.1/0.0.0.0` gives the address 10.0.0.1.

use std::fmt;

use base::PortNo;
use flow::field::VID_PRESENT;
use flow::{Field, HeaderFields, Match, MatchBuilder};
use packet::wire::vlan::VlanTag;

use super::scan::{MaskedNumber, OdpScanner};
use super::tunnel::OdpTunnel;
use super::value::OdpFormat;
use super::{KEYS, implied_ether_type};

/// The maximum nesting of `encap()`: a frame has at most two tags.
const DEPTH_MAX: usize = 3;

/// The limit of parsed terms, so that a flow stays within a Netlink attribute of 64 KiB.
const TERMS_MAX: usize = 4096;

/// The limit of MPLS labels.
const LABELS_MAX: usize = 3;

/// EtherType of frames that are not of Ethernet II (`ovs-fields(7)`, `eth_type`).
const NO_ETHER_TYPE: u128 = 0x05ff;

/// The tag protocol identifier without a text.
const CUSTOMER: u16 = 0x8100;

/// The bit of a tag's control information that is set if there is a tag.
const TAG_PRESENT: u16 = 1 << 12;

/// The length of a flow's identifier in text: a UUID.
const UFID_LEN: usize = 36;

/// The names of TCP flags, from bit 0.
const TCP_FLAGS: [(&str, u32); 12] = [
    ("fin", 1),
    ("syn", 2),
    ("rst", 4),
    ("psh", 8),
    ("ack", 0x10),
    ("urg", 0x20),
    ("ece", 0x40),
    ("cwr", 0x80),
    ("ns", 0x100),
    ("[200]", 0x200),
    ("[400]", 0x400),
    ("[800]", 0x800),
];

/// The names of connection states, with the bits of the datapath.
const CT_STATES: [(&str, u32); 8] = [
    ("new", 0x01),
    ("est", 0x02),
    ("rel", 0x04),
    ("rpl", 0x08),
    ("inv", 0x10),
    ("trk", 0x20),
    ("snat", 0x40),
    ("dnat", 0x80),
];

/// A text that is no datapath flow, from the group at fault to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OdpFlowError {
    /// The syntax is wrong.
    Syntax(String),
    /// The group is longer than a Netlink attribute.
    TooLong(String),
}

impl OdpFlowError {
    /// Returns the text of the error number.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Syntax(_) => "Invalid argument",
            Self::TooLong(_) => "Argument list too long",
        }
    }
}

impl fmt::Display for OdpFlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Syntax(text) | Self::TooLong(text)) = self;
        write!(f, "syntax error at {text}")
    }
}

/// A VLAN tag of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OdpTag {
    /// The tag protocol identifier.
    pub tpid: u16,
    /// The control information, with the presence bit.
    pub tci: u16,
    /// Its mask.
    pub mask: u16,
}

/// A parsed datapath flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OdpFlow {
    /// The ingress port.
    pub in_port: Option<MaskedNumber>,
    /// The tunnel of the packet.
    pub tunnel: Option<OdpTunnel>,
    /// The recirculation id.
    pub recirc_id: u32,
    /// The queue of the packet.
    pub skb_priority: MaskedNumber,
    /// The mark of the packet.
    pub skb_mark: MaskedNumber,
    /// The state, zone, mark and label of the packet's connection.
    pub connection: [MaskedNumber; 4],
    /// Namespace and type of the packet.
    pub packet_type: Option<(u16, u16)>,
    /// VLAN tags, the outermost first.
    pub tags: Vec<OdpTag>,
    /// MPLS label stack entries and their masks, the outermost first.
    pub labels: Vec<(u32, u32)>,
    /// The other header fields: a place in [`KEYS`], and the number.
    pub(super) fields: Vec<(usize, MaskedNumber)>,
    /// True if the flow has addresses of Ethernet, examined or not.
    pub(super) has_ethernet: bool,
}

impl OdpFlow {
    /// Parses a flow. `port` finds the datapath number of a port name.
    ///
    /// # Errors
    /// The text is malformed; the error is Open vSwitch's message.
    pub fn parse(text: &str, port: impl Fn(&str) -> Option<u32>) -> Result<Self, OdpFlowError> {
        let mut flow = Self::default();
        let mut scanner = OdpScanner::new(text);
        loop {
            scanner.skip_delimiters();
            if scanner.rest().is_empty() {
                break;
            }
            let start = scanner.rest();
            let error = || OdpFlowError::Syntax(start.to_owned());
            if scanner.skip("ufid:") {
                let fits = |letter: char| letter.is_ascii_hexdigit() || letter == '-';
                if scanner.word(fits).len() != UFID_LEN {
                    return Err(error());
                }
                scanner.skip_delimiters();
                continue;
            }
            flow.group(&mut scanner, &port, 0).ok_or_else(error)?;
            if flow.is_too_long() {
                return Err(OdpFlowError::TooLong(start.to_owned()));
            }
        }
        Ok(flow)
    }

    fn is_too_long(&self) -> bool {
        let tunnel = self.tunnel.as_ref();
        self.fields.len() > TERMS_MAX || tunnel.is_some_and(OdpTunnel::is_too_long)
    }

    fn group(
        &mut self,
        scanner: &mut OdpScanner<'_>,
        port: &impl Fn(&str) -> Option<u32>,
        depth: usize,
    ) -> Option<()> {
        let name = scanner.group()?;
        match name {
            "in_port" => self.in_port = Some(in_port(scanner, port)?),
            "skb_priority" => self.skb_priority = scanner.masked_number(32)?,
            "skb_mark" => self.skb_mark = scanner.masked_number(32)?,
            "recirc_id" => self.recirc_id = u32::try_from(scanner.number(32)?).ok()?,
            "dp_hash" => self.single("dp_hash", scanner.masked_number(32)?)?,
            "ct_state" => self.connection[0] = scanner.flags(&CT_STATES, 8)?,
            "ct_zone" => self.connection[1] = scanner.masked_number(16)?,
            "ct_mark" => self.connection[2] = scanner.masked_number(32)?,
            "ct_label" => self.connection[3] = scanner.masked_number(128)?,
            "ct_tuple4" | "ct_tuple6" => return skip_tuple(scanner),
            "tunnel" => {
                let tunnel = self.tunnel.get_or_insert_default();
                return tunnel.read(scanner);
            }
            "packet_type" => return self.packet_type(scanner),
            "vlan" => return self.tag(scanner),
            "mpls" => return self.mpls(scanner),
            "eth_type" => self.eth_type(scanner)?,
            "tcp_flags" => self.single("tcp_flags", scanner.flags(&TCP_FLAGS, 16)?)?,
            "encap" if depth < DEPTH_MAX => return self.encap(scanner, port, depth),
            "eth" => {
                self.has_ethernet = true;
                return self.attributes(scanner, name);
            }
            name => return self.attributes(scanner, name),
        }
        scanner.skip(")").then_some(())
    }

    fn encap(
        &mut self,
        scanner: &mut OdpScanner<'_>,
        port: &impl Fn(&str) -> Option<u32>,
        depth: usize,
    ) -> Option<()> {
        loop {
            scanner.skip_delimiters();
            if scanner.skip(")") {
                return Some(());
            }
            self.group(scanner, port, depth + 1)?;
        }
    }

    /// Reads the attributes of a group in [`KEYS`] up to its closing parenthesis.
    fn attributes(&mut self, scanner: &mut OdpScanner<'_>, group: &str) -> Option<()> {
        KEYS.iter()
            .find(|key| key.group == group && !key.attribute.is_empty())?;
        while let Some(attribute) = scanner.attribute() {
            if matches!(attribute, "tos" | "tclass") {
                self.tos(scanner, group, attribute)?;
            } else {
                let mut keys = KEYS.iter().enumerate();
                let found = keys.find(|(_, key)| key.group == group && key.attribute == attribute);
                let (place, key) = found.filter(|(_, key)| key.field != Field::IpEcn)?;
                let number = key.form.scan(scanner, key.field)?;
                self.fields.push((place, number));
            }
            if !scanner.skip(",") {
                break;
            }
        }
        scanner.skip(")").then_some(())
    }

    /// Reads the octet of DSCP and ECN, which are two fields.
    fn tos(&mut self, scanner: &mut OdpScanner<'_>, group: &str, attribute: &str) -> Option<()> {
        let MaskedNumber { value, mask } = scanner.masked_number(8)?;
        let place = KEYS
            .iter()
            .position(|key| key.group == group && key.attribute == attribute)?;
        let part = |shift: u32, bits: u32| MaskedNumber {
            value: value >> shift & ((1 << bits) - 1),
            mask: mask >> shift & ((1 << bits) - 1),
        };
        self.fields.push((place, part(2, 6)));
        // The ECN is the next row of the table.
        self.fields.push((place + 1, part(0, 2)));
        Some(())
    }

    fn single(&mut self, group: &str, number: MaskedNumber) -> Option<()> {
        let place = KEYS.iter().position(|key| key.group == group)?;
        self.fields.push((place, number));
        Some(())
    }

    /// Reads an EtherType. Before a tag it is the tag's protocol identifier.
    fn eth_type(&mut self, scanner: &mut OdpScanner<'_>) -> Option<()> {
        let number = scanner.masked_number(16)?;
        self.single("eth_type", number)
    }

    fn tag(&mut self, scanner: &mut OdpScanner<'_>) -> Option<()> {
        let (mut tci, mut mask) = (TAG_PRESENT, TAG_PRESENT);
        while let Some(attribute) = scanner.attribute() {
            let (bits, shift) = match attribute {
                "vid" => (12, 0),
                "pcp" => (3, 13),
                "cfi" => (1, 12),
                _ => return None,
            };
            let number = scanner.masked_number(bits)?;
            let place = |number: u128| Some(u16::try_from(number).ok()? << shift);
            let all = place((1 << bits) - 1)?;
            tci = tci & !all | place(number.value)?;
            mask = mask & !all | place(number.mask)?;
            if !scanner.skip(",") {
                break;
            }
        }
        let is_type = |(place, _): &(usize, MaskedNumber)| KEYS[*place].field == Field::EthType;
        let of_tag = self.fields.iter().rposition(is_type);
        let of_tag = of_tag.map(|place| self.fields.remove(place).1.value);
        let tpid = of_tag.and_then(|value| u16::try_from(value).ok());
        self.tags.push(OdpTag {
            tpid: tpid.unwrap_or(CUSTOMER),
            tci,
            mask,
        });
        (self.tags.len() < DEPTH_MAX && scanner.skip(")")).then_some(())
    }

    fn mpls(&mut self, scanner: &mut OdpScanner<'_>) -> Option<()> {
        let mut entry = None;
        while let Some(attribute) = scanner.attribute() {
            let (bits, shift) = match attribute {
                "label" => (20, 12),
                "tc" => (3, 9),
                "ttl" => (8, 0),
                "bos" => (1, 8),
                _ => return None,
            };
            // A label begins an entry.
            if attribute == "label" || entry.is_none() {
                self.labels.extend(entry.replace((0, 0)));
            }
            let number = scanner.masked_number(bits)?;
            let place = |number: u128| Some(u32::try_from(number).ok()? << shift);
            if let Some((value, mask)) = &mut entry {
                *value |= place(number.value)?;
                *mask |= place(number.mask)?;
            }
            if !scanner.skip(",") {
                break;
            }
        }
        self.labels.extend(entry);
        (self.labels.len() <= LABELS_MAX && scanner.skip(")")).then_some(())
    }

    fn packet_type(&mut self, scanner: &mut OdpScanner<'_>) -> Option<()> {
        let (mut space, mut id) = (0, 0);
        while let Some(attribute) = scanner.attribute() {
            let number = u16::try_from(scanner.masked_number(16)?.value).ok()?;
            match attribute {
                "ns" => space = number,
                "id" => id = number,
                _ => return None,
            }
            if !scanner.skip(",") {
                break;
            }
        }
        self.packet_type = Some((space, id));
        scanner.skip(")").then_some(())
    }

    /// True if the packet has no Ethernet header.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.packet_type.is_some_and(|(space, _)| space != 0)
    }

    /// Returns the header fields of a frame with the values of the flow.
    #[must_use]
    pub fn frame_fields(&self) -> HeaderFields {
        let mut fields = HeaderFields::default();
        let kind = self.packet_type.filter(|kind| *kind != (0, 0));
        if let Some((space, id)) = kind {
            let number = u128::from(space) << 16 | u128::from(id);
            fields.set(Field::PacketType, number);
        } else {
            fields.set(
                Field::EthType,
                implied_ether_type(self).unwrap_or(NO_ETHER_TYPE),
            );
        }
        for (place, number) in &self.fields {
            fields.set(KEYS[*place].field, number.value);
        }
        for tag in &self.tags {
            let [high, _] = tag.tci.to_be_bytes();
            fields.push_tag(VlanTag {
                tpid: tag.tpid,
                pcp: high >> 5,
                dei: false,
                vid: tag.tci & 0x0fff,
            });
        }
        for (entry, _) in &self.labels {
            fields.push_label(*entry);
        }
        fields
    }

    /// True if the flow has a connection, which only connection tracking gives a packet.
    #[must_use]
    pub fn is_tracked(&self) -> bool {
        let mut numbers = self.connection.iter();
        numbers.any(|number| number.value & number.mask != 0)
    }

    /// Returns the match of OpenFlow with the values and masks of the flow. `port` returns the
    /// port with a datapath number.
    ///
    /// # Errors
    /// A field lacks its prerequisite; the error is a message for a person.
    pub fn to_match(&self, port: impl Fn(u32) -> Option<PortNo>) -> Result<Match, String> {
        let mut builder = MatchBuilder::default();
        let mut add = |field: Field, value: u128, mask: u128| {
            let added = builder.add(field, value & mask, mask);
            let name = field.info().ofctl;
            added
                .map_err(|_| format!("{name} contradicts the other fields or lacks a prerequisite"))
        };
        if let Some(number) = self.in_port.filter(|port| port.mask != 0) {
            let number = u32::try_from(number.value).unwrap_or(u32::MAX);
            let PortNo(port) =
                port(number).ok_or_else(|| format!("in_port({number}): no such port"))?;
            add(Field::InPort, port.into(), u32::MAX.into())?;
        }
        if self.skb_mark.mask != 0 {
            add(Field::PktMark, self.skb_mark.value, self.skb_mark.mask)?;
        }
        if let Some(tag) = self.tags.first() {
            let (vid, pcp) = (tag.mask & 0x0fff, tag.mask >> 13);
            let present = VID_PRESENT;
            add(
                Field::VlanVid,
                (tag.tci & 0x0fff | present).into(),
                (vid | present).into(),
            )?;
            if pcp != 0 {
                add(Field::VlanPcp, (tag.tci >> 13).into(), pcp.into())?;
            }
        }
        let mut fields = self.fields.clone();
        fields.sort_by_key(|(place, _)| *place);
        for (place, number) in fields.iter().filter(|(_, number)| number.mask != 0) {
            add(KEYS[*place].field, number.value, number.mask)?;
        }
        if let Some((entry, mask)) = self.labels.first() {
            let parts = [
                (Field::MplsLabel, 12, 0x000f_ffff),
                (Field::MplsTc, 9, 7),
                (Field::MplsBos, 8, 1),
                (Field::MplsTtl, 0, 0xff),
            ];
            for (field, shift, all) in parts {
                let mask = mask >> shift & all;
                if mask != 0 {
                    add(field, (entry >> shift & all).into(), mask.into())?;
                }
            }
        }
        Ok(builder.build())
    }
}

fn in_port(
    scanner: &mut OdpScanner<'_>,
    port: &impl Fn(&str) -> Option<u32>,
) -> Option<MaskedNumber> {
    if let Some(number) = scanner.masked_number(32) {
        return Some(number);
    }
    let name = scanner.word(|letter| letter != ')');
    port(name).map(|number| MaskedNumber {
        value: number.into(),
        mask: u32::MAX.into(),
    })
}

/// Skips the original direction of a connection.
fn skip_tuple(scanner: &mut OdpScanner<'_>) -> Option<()> {
    while let Some(attribute) = scanner.attribute() {
        match attribute {
            "src" | "dst" if scanner.rest().contains('.') || scanner.rest().contains(':') => {
                let fits =
                    |letter: char| letter.is_ascii_hexdigit() || matches!(letter, ':' | '.' | '/');
                scanner.word(fits);
            }
            "proto" => _ = scanner.masked_number(8)?,
            "tp_src" | "tp_dst" => _ = scanner.masked_number(16)?,
            _ => return None,
        }
        if !scanner.skip(",") {
            break;
        }
    }
    scanner.skip(")").then_some(())
}

impl OdpFormat {
    /// Reads a value and its mask.
    fn scan(self, scanner: &mut OdpScanner<'_>, field: Field) -> Option<MaskedNumber> {
        let bits = u32::from(field.info().bits);
        let ones = u128::MAX >> (u128::BITS - bits);
        match self {
            Self::Decimal | Self::Hex | Self::PlainHex => scanner.masked_number(bits),
            Self::Mac => scanner.masked(ones, OdpScanner::mac),
            Self::Ipv4 => scanner.masked(ones, OdpScanner::ipv4),
            Self::Ipv6 => scanner.masked(ones, OdpScanner::ipv6),
            Self::Frag => {
                let word = scanner.word(|letter| letter.is_ascii_lowercase());
                let value = Self::fragment(word)?.into();
                Some(MaskedNumber { value, mask: ones })
            }
            Self::Vid => None,
        }
    }
}
